// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "audit/record.h"
#include "notif/base/result.h"
#include "notif/ring.h"

namespace oarlock::audit {

enum class Durability : uint8_t {
  kWritten,  // write(2) has returned before the answer is sent: a killed supervisor loses nothing
  kSynced,   // fdatasync too. Not built yet
  kRelaxed,  // not built yet
};

struct WriterOptions {
  std::string path;       // the log; its head is `audit.head` beside it, or "<stem>.head" for a private log
  std::string head_path;  // empty: no head, so that a cut-off end cannot be noticed
  unsigned mode = 0640;   // of a log that is created, and the most that others may
  int fd = -1;  // --log-fd: an open log instead of `path` (readable, O_APPEND; owned by the writer from the
                // call of Start on)
  std::string program;  // whose log it is: `app.name`; empty: the running program's name
  Durability durability = Durability::kWritten;
  // One line for an operator, without its newline. Called in the writer's thread; null: to stderr.
  void (*warn)(const char* text) = nullptr;
};

// For the metrics; read from any thread.
struct WriterCounters {
  std::atomic<uint64_t> records = 0;   // lines written
  std::atomic<uint64_t> refusals = 0;  // that those lines stand for, AUDIT_UNAVAILABLE and GAP left out
  std::atomic<uint64_t> batches = 0;   // write(2)
  std::atomic<uint64_t> bytes = 0;
  std::atomic<uint64_t> failures = 0;  // batches that could not be written whole
  std::atomic<uint64_t> lost = 0;      // refusals answered without a record
  std::atomic<bool> available = true;
};

// The one writer of one log file: its own thread, its own ring. Records arrive by Post (token = pointer to
// the record) from any shard's ring; once write(2) has returned for the batch that holds a record, the writer
// Posts `reply_token` back to `reply_ring` with value 0, or -EIO where the record could not be written within
// 5 s (it is then counted, and the next record that can be written tells how many: AUDIT_UNAVAILABLE).
// `durability: written`.
//
// No lock stands between writers or shards. The rings that records come from must live until their
// acknowledgements have.
class Writer {
 public:
  // Opens the log and its head, checks mode, owner and the chain's end, closes a torn last line, and starts
  // the thread.
  [[nodiscard]] static Result<std::unique_ptr<Writer>> Start(const WriterOptions& options);
  virtual ~Writer() = default;  // stops the thread after all that was posted is written

  // Where shards Post records to.
  [[nodiscard]] virtual int ring_fd() const noexcept = 0;
  // Opens the path anew (SIGHUP, after a rotation); the chain continues in the new file. Only asks; safe in a
  // signal handler.
  virtual void Reopen() noexcept = 0;
  [[nodiscard]] virtual const WriterCounters& counters() const noexcept = 0;
};

// Queues `record` on `ring` for the writer with `writer_ring`. It is the writer's until its acknowledgement,
// which is `reply_token` with the value, has come to `reply_ring`.
void Send(Ring& ring, int writer_ring, Record& record) noexcept;
// To be called with the record of an acknowledgement before anything in it is read or changed.
void Returned(Record& record) noexcept;

}  // namespace oarlock::audit
