// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <time.h>

#include <atomic>
#include <cstdint>

namespace oarlock::test {

// What one process inside has seen, in a file that the test maps too: it is whole up to the instant at which the process is
// killed, and its times are of the clock that both share.
struct Tally {
  std::atomic<int32_t> pid;
  std::atomic<uint64_t> begun, connected;         // connects while there is a supervisor; connected: and greeted
  std::atomic<uint64_t> lost_at_ns;               // the first ENOSYS
  std::atomic<uint64_t> in_flight;                // that connect had been made when its answer was lost
  std::atomic<uint64_t> later, passed, wrong;     // supervised calls after it; those that succeeded; with another errno
  std::atomic<uint64_t> slowest_ns;               // of the later calls
  std::atomic<int32_t> odd_errno;                 // an errno that nothing explains
  std::atomic<uint64_t> waiting_ended_at_ns;      // a connect that was pending all the time
  std::atomic<int32_t> waiting_errno;
};

// The last belongs to a chain of processes that only counts its members, in `begun`.
inline constexpr unsigned kTallies = 4;

[[nodiscard]] inline uint64_t NowNs() noexcept {
  timespec now{};
  (void)clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

}  // namespace oarlock::test
