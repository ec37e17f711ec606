// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

// Every bound of the log, with its reason.
namespace oarlock::audit {

// The longest line that Format can make, its newline included: every field of a record is of fixed size, and
// a byte that the sandbox chose grows to at most kMaxEscapeBytes. tests/audit/format_test.cc builds the worst
// record and measures.
inline constexpr size_t kMaxLineBytes = 10 * 1024;
// One byte as `\\xNN` in JSON.
inline constexpr size_t kMaxEscapeBytes = 5;

// Lines of one write(2): some 2 KiB each, so that the acknowledgements of the first do not wait for more than
// about half a millisecond of formatting. The buffer holds kMaxBatchBytes, whatever the lines are.
inline constexpr size_t kMaxBatchLines = 128;
inline constexpr size_t kMaxBatchBytes = 512 * 1024;
static_assert(kMaxBatchBytes >= 8 * kMaxLineBytes);

// A record whose sequence is a multiple of this is a checkpoint: the place for a signature, and for a reader
// that does not want to hash a year of lines again. (Not where the log has something to say of itself: that
// comes first.)
inline constexpr uint64_t kCheckpointEvery = 1000;

// Sequences stay below 2^53, where every JSON reader is exact. A head that says more is no head of ours.
inline constexpr uint64_t kMaxSequence = uint64_t{1} << 53;

// Kept allocated beyond the end of the log for the moment the disk is full (some 500 lines), and how much of
// it may be used before more is asked for: one fallocate(2) in 250 lines.
inline constexpr uint64_t kReserveBytes = 1024 * 1024;
inline constexpr uint64_t kReserveRefillBytes = 512 * 1024;

// A log that cannot be written: how long a refusal waits for it, how often it is tried meanwhile, and how
// often after.
inline constexpr uint64_t kUnwrittenWaitNs = 5'000'000'000;
inline constexpr uint64_t kRetryNs = 100'000'000;
inline constexpr uint64_t kDownRetryNs = 1'000'000'000;

// The writer's longest sleep: a lost wake-up (io_uring had such bugs up to 7.3.3) costs a second, not for
// ever. An idle log is looked at as often, for changes of its mode, owner and size.
inline constexpr uint64_t kMaxWaitNs = 1'000'000'000;
inline constexpr uint64_t kIdleLookNs = 1'000'000'000;

// How much of a log's end is searched for its last whole line: a batch and a torn rest of one.
inline constexpr size_t kTailBytes = 2 * kMaxBatchBytes;

// What the log has to say about itself and has not been able to write yet. There are fewer kinds than this,
// and a second one of a kind is merged into the first.
inline constexpr size_t kMaxNotices = 16;

// Opening a log on which somebody holds a lease (EWOULDBLOCK): tried so often, so far apart.
inline constexpr int kOpenTries = 20;
inline constexpr uint64_t kOpenRetryNs = 50'000'000;

// Completions of the writer's ring. Each shard has at most a few hundred records on their way.
inline constexpr unsigned kWriterRingEntries = 1024;
inline constexpr unsigned kWriterRingCompletions = 16 * 1024;

// Readers: a line longer than this is not one of ours and is passed over; and how much is read at once.
inline constexpr size_t kMaxReadLineBytes = 64 * 1024;
inline constexpr size_t kReadChunkBytes = 64 * 1024;

}  // namespace oarlock::audit
