// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include "notif/base/unique_fd.h"
#include "supervisor/limits.h"

namespace oarlock::supervisor {

// The pidfds of a session's threads: opening one costs as much as the whole round trip of a notification. One per session, on
// its shard's thread. A pidfd stays true to its thread: once that is gone, pinning through it gives ESRCH, and the entry is
// dropped; a reused thread id is then opened anew.
class TaskCache {
 public:
  // The pidfd of `tid`, or -errno. Borrowed until the next call.
  // Short of descriptors, it gives up others of its own first.
  [[nodiscard]] int Open(pid_t tid) noexcept;
  void Drop(pid_t tid) noexcept;
  // Keeps at most so many, of kCachedTasks. Before the first Open.
  void Limit(size_t most) noexcept { most_ = most; }
  [[nodiscard]] size_t size() const noexcept { return size_; }

 private:
  [[nodiscard]] size_t LongestUnused() const noexcept;
  struct Entry {
    pid_t tid = 0;
    uint32_t used = 0;
    UniqueFd pidfd;
  };
  std::array<Entry, kCachedTasks> entries_;
  size_t size_ = 0;
  size_t most_ = kCachedTasks;
  uint32_t clock_ = 0;
};

}  // namespace oarlock::supervisor
