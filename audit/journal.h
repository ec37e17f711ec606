// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>

#include "audit/chain.h"
#include "audit/format.h"
#include "audit/host.h"
#include "audit/limits.h"
#include "audit/log_file.h"
#include "audit/record.h"
#include "audit/writer.h"
#include "notif/base/result.h"

namespace oarlock::audit {

// What the writer does, without its thread and its ring: takes records, makes lines of them, appends these in
// batches, keeps the chain and the head, and decides what becomes of records while the log cannot be written.
// Time comes in as an argument, so that a test needs no waiting.
//
// One thread. No heap memory after Open (but for a reopened log). Records are the caller's: from Add until
// TakeFinished returns them they must stay where they are, and they are linked through `next`, so that the
// queue has no bound of its own (the shards' pools are its bound) and never refuses a record.
class Journal {
 public:
  // Opens the log, finds the end of its chain and notes what is wrong with it. What was noted is written with
  // the first batch; Turn writes it also without one.
  [[nodiscard]] static Result<std::unique_ptr<Journal>> Open(const WriterOptions& options, const Host& host);
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;
  ~Journal();

  void Add(Record& record) noexcept;
  // Writes at most one batch, and finishes the records that it holds, or those that have waited too long for
  // it.
  void Turn(uint64_t now_ns) noexcept;
  // The next finished record or null. `result` is 0 (its line is in the log) or -EIO (it is counted instead).
  // From then on it is the caller's again.
  [[nodiscard]] Record* TakeFinished() noexcept;
  // When Turn wants to be called again if nothing is added; UINT64_MAX: never.
  [[nodiscard]] uint64_t wake_at_ns() const noexcept;
  // Whether records are waiting for their lines.
  [[nodiscard]] bool waiting() const noexcept { return queue_.first != nullptr; }

  // With the next Turn the log's path is opened anew; the chain goes on in what is there then.
  void Reopen() noexcept { reopen_ = true; }
  // The last word: tries once more to tell of lost records, and says so on stderr where it cannot.
  void Close(uint64_t now_ns) noexcept;

  [[nodiscard]] Head end() const noexcept { return last_; }
  [[nodiscard]] const WriterCounters& counters() const noexcept { return counters_; }

 private:
  struct Queue {
    Record* first = nullptr;
    Record* last = nullptr;
    void Push(Record& record) noexcept;
    [[nodiscard]] Record* Pop() noexcept;
  };
  struct PendingNotice {
    Notice notice = Notice::kNone;
    uint64_t before = 0, after = 0;
    uint64_t real_us = 0;
  };
  // What a line of the batch stands for.
  struct Line {
    enum class Kind : uint8_t { kRecord, kNotice, kUnavailable, kCheckpoint };
    Kind kind;
    size_t end;  // in the buffer
    Head after;  // the chain when it is written
  };

  Journal(const WriterOptions& options, const Host& host, LogFile file);

  void NoteEnd(const LogEnd& end, const Result<Head>& head);
  void Note(Notice notice, uint64_t before, uint64_t after) noexcept;
  void LookAtFile(uint64_t now_ns) noexcept;
  void TryReopen(uint64_t now_ns) noexcept;
  void WriteLastCheckpoint() noexcept;
  void KeepReserve(uint64_t now_ns) noexcept;

  // Fills the buffer with what is to be said, and with records if asked. False if there is nothing to write.
  bool Compose(bool with_records) noexcept;
  bool AddLine(Line::Kind kind, const Record& record) noexcept;
  void PutLine(Line::Kind kind, const Record& record) noexcept;
  // One batch. 0 or an errno.
  int Write(bool with_records, uint64_t now_ns) noexcept;
  // Appends the buffer, or what is left of it. Whole lines are accepted; the piece of a line is cut off
  // again. 0 or an errno.
  int WriteBatch(uint64_t now_ns) noexcept;
  void Accept(const Line& line) noexcept;
  void DropBuffer() noexcept;
  void Failed(int error, uint64_t now_ns) noexcept;
  void RefuseAll() noexcept;
  void Count(const Record& record) noexcept;
  [[nodiscard]] bool HasOwnWords() const noexcept {
    return notice_count_ > 0 || lost_.records > 0 || in_file_ > 0;
  }
  [[nodiscard]] Ulid NextId(uint64_t real_us) noexcept;
  void Warn(const char* format, ...) const noexcept __attribute__((format(printf, 2, 3)));

  const WriterOptions options_;
  const Host host_;
  LogFile file_;
  LogFile::Facts expected_;  // as we left it
  uint64_t reserved_to_ = 0;
  bool reserving_ = true;
  uint64_t reserve_at_ns_ = 0;
  uint64_t looked_at_ns_ = 0;
  bool open_line_ = false;  // the file does not end in a newline: the next batch begins with one

  Head last_;  // of what is written
  Queue queue_, finished_;

  std::array<PendingNotice, kMaxNotices> notices_;
  size_t notice_count_ = 0;

  // Answered without a record, and not yet told.
  struct Lost {
    uint64_t refusals = 0, records = 0;
    uint64_t first_us = 0, last_us = 0;
  };
  Lost lost_;
  Lost told_;  // what the buffer's AUDIT_UNAVAILABLE line tells

  enum class State : uint8_t {
    kGood,
    kWaiting,  // the last batch failed less than kUnwrittenWaitNs ago: records wait
    kDown,     // records are counted and answered at once
  };
  State state_ = State::kGood;
  uint64_t failing_since_ns_ = 0;
  uint64_t try_at_ns_ = 0;
  bool reopen_ = false;
  uint64_t reopen_at_ns_ = 0;
  bool warned_head_ = false, warned_reopen_ = false;

  std::array<uint8_t, 10> id_random_{};

  std::unique_ptr<char[]> buffer_;
  size_t buffer_size_ = 0;
  size_t lead_ = 0;  // bytes before the first line: the newline that closes an open one
  // Bytes of the buffer that are in the file behind its last accepted line: a piece of a line that could not
  // be cut off (an append-only file). The rest is written before anything else is.
  size_t in_file_ = 0;
  size_t accepted_ = 0;  // bytes of the buffer up to the end of its last accepted line
  size_t accepted_lines_ = 0;
  std::array<Line, kMaxBatchLines> lines_;
  size_t line_count_ = 0;
  Head composed_;  // the chain at the end of the buffer
  uint64_t composed_us_ = 0;

  WriterCounters counters_;
};

}  // namespace oarlock::audit
