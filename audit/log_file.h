// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "audit/chain.h"
#include "notif/base/result.h"
#include "notif/base/unique_fd.h"

namespace oarlock::audit {

struct LogFileOptions {
  std::string path;
  std::string head_path;  // empty: no head
  unsigned mode = 0640;
  int fd = -1;  // an open log instead of `path`, owned by Open from the call on: readable and O_APPEND
};

// The descriptors of one log and its head: opening, checking, appending, cutting back, reserving. Knows
// nothing of records. Beside notif/kernel.h's AppendLog and WriteHead, the only place that asks the kernel
// anything about the log.
//
// Owned and used by one thread. No lock is taken on the file, ours or anybody's: a reader's lock on a
// readable log once failed its writer (E-211). O_NONBLOCK, because a lease can hold an open.
class LogFile {
 public:
  // What is looked at as the log grows.
  struct Facts {
    unsigned mode = 0;
    uint32_t uid = 0, gid = 0;
    uint64_t size = 0;
    uint64_t links = 0;
    uint64_t device = 0, inode = 0;
  };

  // Creates what is not there. Refuses (EPERM, with what is wrong) anything but a regular file that belongs
  // to us or to root and that nobody may write whom `mode` does not let. EWOULDBLOCK: somebody holds a lease.
  [[nodiscard]] static Result<LogFile> Open(const LogFileOptions& options);

  [[nodiscard]] Result<LogEnd> ReadEnd() const;
  // The head as it is on disk. ENOENT: there is none (or an empty one); EBADMSG: unreadable.
  [[nodiscard]] Result<Head> ReadHead() const;

  // Appends as much as can be; the bytes that were, and the errno of why not all (0 if all).
  struct Appended {
    size_t bytes = 0;
    int error = 0;
  };
  [[nodiscard]] Appended Append(const char* bytes, size_t size) const noexcept;
  // 0 or -errno.
  [[nodiscard]] int CutTo(uint64_t size) const noexcept;
  [[nodiscard]] int WriteHead(const Head& head) const noexcept;
  [[nodiscard]] int Look(Facts* facts) const noexcept;
  // Whether the last byte is a newline (or there is none).
  [[nodiscard]] bool EndsInNewline(uint64_t size) const noexcept;
  // Keeps `bytes` allocated behind `size` without making the file longer. 0 or -errno: EOPNOTSUPP where the
  // file system has no such thing, ENOSPC where there is no room.
  [[nodiscard]] int Reserve(uint64_t size, uint64_t bytes) const noexcept;

  [[nodiscard]] bool has_head() const noexcept { return head_.valid(); }

 private:
  UniqueFd log_;
  UniqueFd reading_;  // where `log_` itself cannot be read
  UniqueFd head_;
};

}  // namespace oarlock::audit
