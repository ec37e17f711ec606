// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string_view>

namespace oarlock::audit {

// What every record says of this machine and this program, looked up once. A value without heap memory.
struct Host {
  char hostname[65] = {};  // NUL-terminated
  char program[32] = {};   // "oarlockd"
  pid_t pid = 0;
  uint32_t uid = 0;
  uint64_t boot_us = 0;  // real time of the boot, to place start ticks of processes
  uint64_t ticks_per_second = 100;

  // `program`: empty for the running one's name.
  [[nodiscard]] static Host Look(std::string_view program) noexcept;
};

}  // namespace oarlock::audit
