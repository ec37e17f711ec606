// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

namespace oarlock::supervisor {

// The calls that one user's sessions have received and not yet answered, in all shards together.
struct UserLoad {
  std::atomic<uint32_t> in_flight = 0;
};

// What all shards of a supervisor share: each received call costs up to two descriptors, of which the process has so many.
// A session may have one call at any time, so that it is never shut out; beyond that nobody takes more than half of what the
// others leave, neither a user nor a session within its user's share. What waits, waits in the kernel.
class Budget {
 public:
  explicit Budget(uint32_t max) : max_(max) {}

  // Whether a session with `own` calls, of the user with `user`, may receive one more. Shards that ask at the same time may
  // each be told yes: the limit is a share, not a wall.
  [[nodiscard]] bool Allows(uint32_t own, const UserLoad& user) const noexcept {
    if (own == 0) return true;
    const int64_t free = int64_t{max_} - in_flight_.load(std::memory_order_relaxed);
    return 2 * int64_t{own} < free - user.in_flight.load(std::memory_order_relaxed);
  }
  void Add(UserLoad& user) noexcept {
    in_flight_.fetch_add(1, std::memory_order_relaxed);
    user.in_flight.fetch_add(1, std::memory_order_relaxed);
  }
  void Remove(UserLoad& user) noexcept {
    in_flight_.fetch_sub(1, std::memory_order_relaxed);
    user.in_flight.fetch_sub(1, std::memory_order_relaxed);
  }

 private:
  const uint32_t max_;
  std::atomic<uint32_t> in_flight_ = 0;
};

}  // namespace oarlock::supervisor
