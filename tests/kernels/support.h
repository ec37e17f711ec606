// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdlib>
#include <fstream>
#include <optional>
#include <string>

#include "tests/hostile/support.h"
#include "tests/support/kernel_facts.h"

namespace oarlock::test {

inline std::string KernelsAttackerPath() { return OARLOCK_BINARY_DIR "/tests/bin/kernels-attacker"; }

// Empty where there is no Yama.
inline std::optional<int> YamaScope() {
  std::ifstream file("/proc/sys/kernel/yama/ptrace_scope");
  int value = 0;
  return file >> value ? std::optional(value) : std::nullopt;
}
// Whether this machine may be changed, because it ends with the test: tests/kernels/guest_init says so.
inline bool IsThrowAwayGuest() { return ::getenv("OARLOCK_TEST_GUEST") != nullptr; }

inline bool GotThrough(const std::string& result) { return result == "0" || result.starts_with("0 "); }

}  // namespace oarlock::test
