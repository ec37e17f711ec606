// SPDX-License-Identifier: Apache-2.0
#include "supervisor/task_cache.h"

#include <cerrno>
#include <utility>

#include "notif/kernel.h"

namespace oarlock::supervisor {

int TaskCache::Open(pid_t tid) noexcept {
  ++clock_;
  for (size_t i = 0; i < size_; ++i)
    if (entries_[i].tid == tid) {
      entries_[i].used = clock_;
      return entries_[i].pidfd.get();
    }
  UniqueFd pidfd(kernel::OpenTask(tid));
  while (size_ != 0 && (pidfd.get() == -EMFILE || pidfd.get() == -ENFILE)) {
    Drop(entries_[LongestUnused()].tid);
    pidfd = UniqueFd(kernel::OpenTask(tid));
  }
  if (!pidfd.valid()) return pidfd.Release();
  const size_t at = size_ < most_ ? size_++ : LongestUnused();
  entries_[at].tid = tid;
  entries_[at].used = clock_;
  entries_[at].pidfd = std::move(pidfd);
  return entries_[at].pidfd.get();
}

size_t TaskCache::LongestUnused() const noexcept {
  size_t at = 0;
  for (size_t i = 1; i < size_; ++i)
    if (entries_[i].used - clock_ < entries_[at].used - clock_) at = i;  // also across a wrap
  return at;
}

void TaskCache::Drop(pid_t tid) noexcept {
  for (size_t i = 0; i < size_; ++i)
    if (entries_[i].tid == tid) {
      std::swap(entries_[i], entries_[--size_]);
      entries_[size_].pidfd.Reset();
      return;
    }
}

}  // namespace oarlock::supervisor
