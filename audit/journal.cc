// SPDX-License-Identifier: Apache-2.0
#include "audit/journal.h"

#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "notif/base/check.h"
#include "notif/kernel.h"

namespace oarlock::audit {
namespace {

void WarnToStderr(const char* text) noexcept {
  char line[512];
  const int size = std::snprintf(line, sizeof(line), "oarlock: %s\n", text);
  if (size > 0) (void)!::write(STDERR_FILENO, line, std::min(static_cast<size_t>(size), sizeof(line) - 1));
}

LogFileOptions FileOptions(const WriterOptions& options) {
  return {.path = options.path, .head_path = options.head_path, .mode = options.mode, .fd = options.fd};
}

// A lease on the log can hold our open for a moment; its holder is told by the first try.
Result<LogFile> OpenPatiently(const LogFileOptions& options) {
  for (int tries = 1;; ++tries) {
    auto file = LogFile::Open(options);
    if (file || file.error().code != EWOULDBLOCK || tries == kOpenTries) return file;
    const timespec pause{0, static_cast<long>(kOpenRetryNs)};
    (void)::nanosleep(&pause, nullptr);
  }
}

void Raise(std::atomic<uint64_t>& counter, uint64_t value) noexcept {
  counter.fetch_add(value, std::memory_order_relaxed);
}

}  // namespace

void Journal::Queue::Push(Record& record) noexcept {
  record.next = nullptr;
  if (last != nullptr)
    last->next = &record;
  else
    first = &record;
  last = &record;
}

Record* Journal::Queue::Pop() noexcept {
  Record* record = first;
  if (record == nullptr) return nullptr;
  first = record->next;
  if (first == nullptr) last = nullptr;
  record->next = nullptr;
  return record;
}

Journal::Journal(const WriterOptions& options, const Host& host, LogFile file)
    : options_(options),
      host_(host),
      file_(std::move(file)),
      buffer_(std::make_unique<char[]>(kMaxBatchBytes)) {
  OARLOCK_CHECK(::getrandom(id_random_.data(), id_random_.size(), 0) ==
                static_cast<ssize_t>(id_random_.size()));
  id_random_[0] &= 0x7f;  // room to count up
}

Journal::~Journal() = default;

Result<std::unique_ptr<Journal>> Journal::Open(const WriterOptions& options, const Host& host) {
  if (options.durability != Durability::kWritten)
    return OARLOCK_FAIL("open the log", EOPNOTSUPP, "only durability 'written' is built");
  LogFile file = OARLOCK_TRY(OpenPatiently(FileOptions(options)));
  const LogEnd end = OARLOCK_TRY(file.ReadEnd());
  const Result<Head> head = file.ReadHead();
  std::unique_ptr<Journal> journal(new Journal(options, host, std::move(file)));
  if (const int error = journal->file_.Look(&journal->expected_); error < 0)
    return OARLOCK_FAIL("fstat", -error, "the log");
  journal->expected_.size = end.size;
  journal->NoteEnd(end, head);
  journal->KeepReserve(0);
  return journal;
}

// What the file says of its own past.
void Journal::NoteEnd(const LogEnd& end, const Result<Head>& head) {
  last_ = end.last;
  open_line_ = end.lacks_newline;
  if (end.torn_bytes > 0) Note(Notice::kTornLine, end.torn_bytes, 0);
  if (end.foreign) Note(Notice::kForeign, end.size, 0);
  const bool known = head.has_value();
  if (end.altered || (known && head->sequence == last_.sequence && head->hash != last_.hash))
    Note(Notice::kAltered, last_.sequence, known ? head->sequence : 0);
  if (known && head->sequence > last_.sequence) {
    // The chain goes on from the head: the hole in the log stays where verification finds it.
    Note(Notice::kCut, last_.sequence, head->sequence);
    last_ = *head;
  }
  if (!known && file_.has_head() && last_.sequence > 0) Note(Notice::kHeadLost, last_.sequence, 0);
}

void Journal::Note(Notice notice, uint64_t before, uint64_t after) noexcept {
  const NoticeText& text = Describe(notice);
  if (text.severity >= 4)
    Warn("audit log '%s': %.*s (%llu, %llu)", options_.path.c_str(), static_cast<int>(text.sentence.size()),
         text.sentence.data(), static_cast<unsigned long long>(before),
         static_cast<unsigned long long>(after));
  for (size_t i = 0; i < notice_count_; ++i) {
    if (notices_[i].notice != notice) continue;
    notices_[i].after = after;
    return;
  }
  OARLOCK_CHECK(notice_count_ < notices_.size());
  // Verification knows a torn line by what stands right behind it, and a continued file by how it begins.
  const bool first = notice == Notice::kTornLine || notice == Notice::kReopened;
  const size_t place = first ? 0 : notice_count_;
  const auto at = notices_.begin() + static_cast<ptrdiff_t>(place);
  const auto end = notices_.begin() + static_cast<ptrdiff_t>(notice_count_);
  std::copy_backward(at, end, end + 1);
  notices_[place] = {notice, before, after, kernel::RealtimeUs()};
  ++notice_count_;
}

void Journal::Add(Record& record) noexcept { queue_.Push(record); }

Record* Journal::TakeFinished() noexcept { return finished_.Pop(); }

uint64_t Journal::wake_at_ns() const noexcept {
  uint64_t at = reopen_ ? reopen_at_ns_ : UINT64_MAX;
  const bool records = queue_.first != nullptr;
  if (!records && !HasOwnWords()) return at;
  if (state_ == State::kGood || (state_ == State::kDown && records)) return 0;
  return std::min(at, try_at_ns_);
}

void Journal::Turn(uint64_t now_ns) noexcept {
  if (reopen_ && now_ns >= reopen_at_ns_ && in_file_ == 0) TryReopen(now_ns);
  if (state_ == State::kDown) {
    if (now_ns < try_at_ns_) return RefuseAll();
    // Only our own words at first, so that what they tell of is not told twice when they get through and a
    // record does not.
    if (const int error = Write(false, now_ns); error != 0) return Failed(error, now_ns);
  }
  if (state_ == State::kWaiting && now_ns < try_at_ns_) return;
  if (queue_.first == nullptr && !HasOwnWords()) {
    // Also a log that nothing is written to is looked at now and then.
    if (now_ns - looked_at_ns_ >= kIdleLookNs) LookAtFile(now_ns);
    if (!HasOwnWords()) return;
  }
  if (const int error = Write(true, now_ns); error != 0) Failed(error, now_ns);
}

int Journal::Write(bool with_records, uint64_t now_ns) noexcept {
  int error = 0;
  if (in_file_ == 0) {
    LookAtFile(now_ns);
    if (expected_.links == 0 && options_.fd < 0)
      error = ENOENT;  // nobody would ever read what is written now
    else if (Compose(with_records))
      error = WriteBatch(now_ns);
  } else {
    error = WriteBatch(now_ns);
  }
  if (error != 0) return error;
  state_ = State::kGood;
  counters_.available.store(true, std::memory_order_relaxed);
  return 0;
}

void Journal::Close(uint64_t now_ns) noexcept {
  OARLOCK_CHECK(queue_.first == nullptr, "closed with records waiting");
  if (HasOwnWords()) (void)Write(false, now_ns);
  if (lost_.records > 0)
    Warn("audit log '%s': could not be written; %llu refusals have no record, and no record says so",
         options_.path.c_str(), static_cast<unsigned long long>(lost_.refusals));
}

// --- the buffer
// -------------------------------------------------------------------------------------------------------

bool Journal::Compose(bool with_records) noexcept {
  buffer_size_ = lead_ = accepted_ = accepted_lines_ = line_count_ = 0;
  composed_ = last_;
  composed_us_ = kernel::RealtimeUs();
  told_ = {};
  if (open_line_) {
    buffer_[0] = '\n';
    buffer_size_ = lead_ = 1;
  }
  Record own;
  for (size_t i = 0; i < notice_count_; ++i) {
    own.type = RecordType::kNotice;
    own.notice = notices_[i].notice;
    own.before = notices_[i].before;
    own.after = notices_[i].after;
    own.real_us = notices_[i].real_us;
    OARLOCK_CHECK(AddLine(Line::Kind::kNotice, own));
  }
  if (lost_.records > 0) {
    told_ = lost_;
    own = Record{};
    own.type = RecordType::kUnavailable;
    own.count = lost_.refusals;
    own.calls = lost_.records;
    own.first_us = lost_.first_us;
    own.last_us = lost_.last_us;
    OARLOCK_CHECK(AddLine(Line::Kind::kUnavailable, own));
  }
  if (with_records)
    for (const Record* record = queue_.first; record != nullptr; record = record->next)
      if (!AddLine(Line::Kind::kRecord, *record)) break;
  return line_count_ > 0;
}

// False where there is no room for it.
bool Journal::AddLine(Line::Kind kind, const Record& record) noexcept {
  if (line_count_ + 2 > lines_.size() || kMaxBatchBytes - buffer_size_ < 2 * kMaxLineBytes) return false;
  if ((composed_.sequence + 1) % kCheckpointEvery == 0 && kind != Line::Kind::kNotice) {
    Record checkpoint;
    checkpoint.type = RecordType::kCheckpoint;
    PutLine(Line::Kind::kCheckpoint, checkpoint);
  }
  PutLine(kind, record);
  return true;
}

void Journal::PutLine(Line::Kind kind, const Record& record) noexcept {
  const uint64_t real_us = record.real_us != 0 ? record.real_us : composed_us_;
  const Stamp stamp{.sequence = composed_.sequence + 1,
                    .id = NextId(real_us),
                    .previous = composed_.hash,
                    .real_us = composed_us_};
  char* out = buffer_.get() + buffer_size_;
  const size_t size = Format(record, host_, stamp, std::span<char, kMaxLineBytes>(out, kMaxLineBytes));
  composed_ = {stamp.sequence, Seal({out, size - 1})};
  buffer_size_ += size;
  lines_[line_count_++] = {kind, buffer_size_, composed_};
}

int Journal::WriteBatch(uint64_t now_ns) noexcept {
  const size_t from = accepted_ + in_file_;
  const LogFile::Appended appended = file_.Append(buffer_.get() + from, buffer_size_ - from);
  const size_t reached = from + appended.bytes;
  expected_.size += appended.bytes;
  if (accepted_ == 0 && reached >= lead_) {
    accepted_ = lead_;
    if (lead_ > 0) open_line_ = false;
  }
  const size_t accepted_before = accepted_lines_;
  while (accepted_lines_ < line_count_ && lines_[accepted_lines_].end <= reached)
    Accept(lines_[accepted_lines_++]);
  in_file_ = reached - accepted_;
  if (in_file_ > 0) {
    // A piece of a line. Cut off again, so that whole lines are all that others ever see for long; where that
    // is not allowed, the rest follows as soon as there is room.
    LogFile::Facts now;
    const bool ours =
        file_.Look(&now) == 0 && now.size == expected_.size;  // never cut what somebody else wrote
    if (ours && file_.CutTo(expected_.size - in_file_) == 0) {
      expected_.size -= in_file_;
      reserved_to_ = std::min(reserved_to_, expected_.size);
      in_file_ = 0;
    }
  }
  Raise(counters_.batches, 1);
  Raise(counters_.bytes, appended.bytes);
  if (accepted_lines_ > accepted_before) {
    if (const int error = file_.WriteHead(last_); error < 0 && !warned_head_) {
      warned_head_ = true;
      Warn("audit log '%s': its head cannot be written: %s", options_.path.c_str(), ErrnoName(-error));
    }
  }
  if (appended.error == 0) KeepReserve(now_ns);
  return appended.error;
}

void Journal::Accept(const Line& line) noexcept {
  last_ = line.after;
  accepted_ = line.end;
  Raise(counters_.records, 1);
  switch (line.kind) {
    case Line::Kind::kRecord: {
      Record* record = queue_.Pop();
      OARLOCK_CHECK(record != nullptr);
      if (record->IsRefusal()) Raise(counters_.refusals, record->count);
      record->result = 0;
      finished_.Push(*record);
      break;
    }
    case Line::Kind::kNotice:
      OARLOCK_CHECK(notice_count_ > 0);
      std::copy(notices_.begin() + 1, notices_.begin() + static_cast<ptrdiff_t>(notice_count_),
                notices_.begin());
      --notice_count_;
      break;
    case Line::Kind::kUnavailable:
      lost_.refusals -= told_.refusals;
      lost_.records -= told_.records;
      lost_.first_us = lost_.records > 0 ? told_.last_us : 0;
      break;
    case Line::Kind::kCheckpoint:
      break;
  }
}

// --- a log that cannot be written
// -------------------------------------------------------------------------------------

void Journal::Failed(int error, uint64_t now_ns) noexcept {
  Raise(counters_.failures, 1);
  counters_.available.store(false, std::memory_order_relaxed);
  if (state_ == State::kGood) {
    state_ = State::kWaiting;
    failing_since_ns_ = now_ns;
  }
  const uint64_t deadline = failing_since_ns_ + kUnwrittenWaitNs;
  if (state_ == State::kWaiting && now_ns < deadline) {
    try_at_ns_ = std::min(now_ns + kRetryNs, deadline);
    return;
  }
  if (state_ == State::kWaiting) {
    state_ = State::kDown;
    Warn("audit log '%s' cannot be written: %s; refusals are answered and counted", options_.path.c_str(),
         ErrnoName(error));
  }
  try_at_ns_ = now_ns + kDownRetryNs;
  RefuseAll();
}

void Journal::RefuseAll() noexcept {
  if (queue_.first == nullptr) return;
  DropBuffer();
  while (Record* record = queue_.Pop()) {
    Count(*record);
    record->result = -EIO;
    finished_.Push(*record);
  }
}

// The records in the buffer will not be written. If a piece of one is in the file and cannot be cut off, it
// is a torn line.
void Journal::DropBuffer() noexcept {
  const bool holds_records = std::any_of(lines_.begin() + static_cast<ptrdiff_t>(accepted_lines_),
                                         lines_.begin() + static_cast<ptrdiff_t>(line_count_),
                                         [](const Line& line) { return line.kind == Line::Kind::kRecord; });
  if (!holds_records) return;
  if (in_file_ > 0) {
    open_line_ = true;
    const Line& line = lines_[accepted_lines_];
    if (accepted_ + in_file_ == line.end - 1) {
      // All of it but its newline, which comes with the next batch: a record like any other.
      Accept(line);
      (void)file_.WriteHead(last_);
    } else {
      Note(Notice::kTornLine, in_file_, 0);
    }
    in_file_ = 0;
  }
  line_count_ = accepted_lines_ = 0;
}

void Journal::Count(const Record& record) noexcept {
  ++lost_.records;
  // An approval that cannot be recorded is refused, so every lost call is a refusal; a lost gap record's
  // refusals would be forgotten with it.
  if (record.type != RecordType::kCall && record.type != RecordType::kGap) return;
  lost_.refusals += record.count;
  Raise(counters_.lost, record.count);
  const uint64_t now_us = record.real_us != 0 ? record.real_us : kernel::RealtimeUs();
  const uint64_t first = record.first_us != 0 ? record.first_us : now_us;
  const uint64_t last = record.first_us != 0 ? record.last_us : now_us;
  if (lost_.first_us == 0 || first < lost_.first_us) lost_.first_us = first;
  lost_.last_us = std::max(lost_.last_us, last);
}

// --- the file
// ---------------------------------------------------------------------------------------------------------

// What others did to the log since our last write.
void Journal::LookAtFile(uint64_t now_ns) noexcept {
  looked_at_ns_ = now_ns;
  LogFile::Facts now;
  if (file_.Look(&now) < 0) return;  // the write will say
  if (now.links == 0 && options_.fd < 0) {
    if (expected_.links != 0) Note(Notice::kRemoved, expected_.size, 0);
    expected_.links = 0;
    return TryReopen(now_ns);
  }
  if (now.mode != expected_.mode) Note(Notice::kModeChanged, expected_.mode, now.mode);
  if (now.uid != expected_.uid) Note(Notice::kOwnerChanged, expected_.uid, now.uid);
  if (now.gid != expected_.gid) Note(Notice::kGroupChanged, expected_.gid, now.gid);
  if (now.size != expected_.size) {
    Note(now.size < expected_.size ? Notice::kShrunk : Notice::kGrown, expected_.size, now.size);
    open_line_ = !file_.EndsInNewline(now.size);
    reserved_to_ = std::min(reserved_to_, now.size);
  }
  expected_ = now;
}

void Journal::TryReopen(uint64_t now_ns) noexcept {
  reopen_ = false;
  if (options_.fd >= 0) return;
  auto opened = LogFile::Open(FileOptions(options_));
  LogFile::Facts facts;
  Result<LogEnd> end = LogEnd{};
  if (opened) {
    if (const int error = opened->Look(&facts); error < 0) opened = OARLOCK_FAIL("fstat", -error, "the log");
    if (opened) end = opened->ReadEnd();
  }
  if (!opened || !end) {
    // The old file goes on meanwhile: a record in a rotated file is better than none.
    if (!warned_reopen_)
      Warn("audit log: cannot reopen: %s; the old file stays in use",
           (opened ? end.error() : opened.error()).Message().c_str());
    warned_reopen_ = true;
    reopen_ = true;
    reopen_at_ns_ = now_ns + kDownRetryNs;
    return;
  }
  warned_reopen_ = false;
  if (facts.device == expected_.device && facts.inode == expected_.inode) return;
  if (state_ == State::kGood && expected_.links > 0) WriteLastCheckpoint();

  file_ = std::move(*opened);
  expected_ = facts;
  expected_.size = end->size;
  reserved_to_ = 0;
  reserving_ = true;
  open_line_ = end->lacks_newline;
  Note(Notice::kReopened, 0, 0);
  if (end->torn_bytes > 0) Note(Notice::kTornLine, end->torn_bytes, 0);  // stands before it
  if (end->foreign) Note(Notice::kForeign, end->size, 0);
  if (end->altered) Note(Notice::kAltered, end->last.sequence, 0);
  // A file with lines of its own goes on with its own chain.
  if (end->last.sequence > 0) last_ = end->last;
}

// The old file's last word, so that its end cannot be cut off unnoticed: the new one continues from it.
void Journal::WriteLastCheckpoint() noexcept {
  if (open_line_) return;
  buffer_size_ = lead_ = accepted_ = accepted_lines_ = line_count_ = 0;
  composed_ = last_;
  composed_us_ = kernel::RealtimeUs();
  Record checkpoint;
  checkpoint.type = RecordType::kCheckpoint;
  PutLine(Line::Kind::kCheckpoint, checkpoint);
  const LogFile::Appended appended = file_.Append(buffer_.get(), buffer_size_);
  if (appended.bytes == buffer_size_) {
    Accept(lines_[accepted_lines_++]);
    (void)file_.WriteHead(last_);
  } else if (appended.bytes > 0) {
    (void)file_.CutTo(expected_.size);
  }
  accepted_ = accepted_lines_ = line_count_ = 0;
}

void Journal::KeepReserve(uint64_t now_ns) noexcept {
  const uint64_t size = expected_.size;
  if (!reserving_ || now_ns < reserve_at_ns_ || reserved_to_ >= size + kReserveBytes - kReserveRefillBytes)
    return;
  const int error = file_.Reserve(size, kReserveBytes);
  if (error == 0) {
    reserved_to_ = size + kReserveBytes;
  } else if (error == -ENOSPC || error == -EDQUOT || error == -EFBIG || error == -EINTR) {
    reserve_at_ns_ = now_ns + kDownRetryNs;
  } else {
    reserving_ = false;  // the file system has no such thing
  }
}

// --- odds and ends
// ----------------------------------------------------------------------------------------------------

// The random part counts up, so that ids of one millisecond are in order too.
Ulid Journal::NextId(uint64_t real_us) noexcept {
  for (size_t i = id_random_.size(); i > 0; --i)
    if (++id_random_[i - 1] != 0) break;
  return {real_us / 1000, id_random_};
}

void Journal::Warn(const char* format, ...) const noexcept {
  char text[480];
  va_list arguments;
  va_start(arguments, format);
  (void)std::vsnprintf(text, sizeof(text), format, arguments);
  va_end(arguments);
  if (options_.warn != nullptr)
    options_.warn(text);
  else
    WarnToStderr(text);
}

}  // namespace oarlock::audit
