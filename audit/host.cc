// SPDX-License-Identifier: Apache-2.0
#include "audit/host.h"

#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "notif/base/check.h"

namespace oarlock::audit {
namespace {

uint64_t Microseconds(clockid_t clock) noexcept {
  timespec now{};
  OARLOCK_CHECK(::clock_gettime(clock, &now) == 0);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000 + static_cast<uint64_t>(now.tv_nsec) / 1000;
}

}  // namespace

Host Host::Look(std::string_view program) noexcept {
  Host host;
  if (::gethostname(host.hostname, sizeof(host.hostname) - 1) != 0 || host.hostname[0] == '\0')
    std::memcpy(host.hostname, "localhost", sizeof("localhost"));
  if (program.empty()) program = ::program_invocation_short_name;
  std::memcpy(host.program, program.data(), std::min(program.size(), sizeof(host.program) - 1));
  host.pid = ::getpid();
  host.uid = ::geteuid();
  // Processes' start times count from the boot, suspended time included (proc(5), since 3.x).
  host.boot_us = Microseconds(CLOCK_REALTIME) - Microseconds(CLOCK_BOOTTIME);
  if (const long ticks = ::sysconf(_SC_CLK_TCK); ticks > 0)
    host.ticks_per_second = static_cast<uint64_t>(ticks);
  return host;
}

}  // namespace oarlock::audit
