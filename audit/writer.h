// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "audit/record.h"
#include "notif/base/result.h"

namespace oarlock::audit {

struct WriterOptions {
  std::string path;         // the log; its head is `audit.head` beside it, or "<stem>.head" for a private log
  std::string head_path;
  unsigned mode = 0640;     // of a log that is created
  int fd = -1;              // --log-fd: an open log instead of `path` (owned by the writer from here on)
};

// The one writer of one log file: its own thread, its own ring. Records arrive by Post (token = pointer to the record) from any
// shard's ring; once write(2) has returned for the batch that holds a record, the writer Posts `reply_token` back to
// `reply_ring` with value 0, or -EIO where the record could not be written within 5 s (it is then counted, and the next
// record that can be written tells how many: AUDIT_UNAVAILABLE). `durability: written`.
class Writer {
 public:
  // Opens the log and its head, checks mode, owner and the chain's end, closes a torn last line, and starts the thread.
  [[nodiscard]] static Result<std::unique_ptr<Writer>> Start(const WriterOptions& options);
  virtual ~Writer() = default;  // stops the thread after all that was posted is written

  // Where shards Post records to.
  [[nodiscard]] virtual int ring_fd() const noexcept = 0;
};

}  // namespace oarlock::audit
