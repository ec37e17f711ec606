// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "notif/base/result.h"

// The chain of a log. Each line ends in `"prev_hash":"…","hash":"…"}}`; `hash` is the SHA-256 of the line's
// bytes, without its newline, in which the 64 digits of `hash` itself are zeros. `prev_hash` is the hash of
// the line before; the very first line's is zeros. Sequences go up by one. A chain goes on over restarts and
// rotations: the first line of a later file continues the last of the one before.
//
// What it shows: an edited, inserted, removed or reordered line. What it cannot show: that the end was cut
// off (the head beside the log shows that), or that somebody who may write the log computed it all again.
namespace oarlock::audit {

// 64 lower-case hex digits.
using Hash = std::array<char, 64>;
inline constexpr Hash kZeroHash = [] {
  Hash zeros{};
  zeros.fill('0');
  return zeros;
}();
[[nodiscard]] constexpr std::string_view View(const Hash& hash) noexcept {
  return {hash.data(), hash.size()};
}

// The place of one line in the chain.
struct Link {
  uint64_t sequence = 0;
  Hash previous = kZeroHash;
  Hash hash = kZeroHash;
};
// Puts the hash into a line that Format made (`line` without its newline) and returns it.
Hash Seal(std::span<char> line) noexcept;
// Reads a line's place from its bytes; nothing if it is no line of ours. Does not check the hash.
[[nodiscard]] std::optional<Link> ParseLink(std::string_view line) noexcept;
// The hash that the line (which ParseLink knows) should have.
[[nodiscard]] Hash HashOf(std::string_view line) noexcept;

// The last sequence and hash: where the next line goes on, and the content of the head file. As text
// "SEQUENCE:HASH\n" with 20 digits, so that each write replaces the whole of the one before.
struct Head {
  uint64_t sequence = 0;
  Hash hash = kZeroHash;
  friend bool operator==(const Head&, const Head&) = default;
};
inline constexpr size_t kHeadSize = 20 + 1 + 64 + 1;
[[nodiscard]] std::array<char, kHeadSize> FormatHead(const Head& head) noexcept;
// With or without leading zeros and the newline.
[[nodiscard]] std::optional<Head> ParseHead(std::string_view text) noexcept;

// What the end of a log looks like.
struct LogEnd {
  uint64_t size = 0;
  Head last;                   // of the last whole line of ours; sequence 0: there is none
  bool altered = false;        // that line does not have the hash it should
  bool foreign = false;        // whole lines that are none of ours stand behind it
  uint64_t torn_bytes = 0;     // behind the last newline, unless...
  bool lacks_newline = false;  // ...all that is missing of the last line is its newline
};
// Searches the last kTailBytes of `fd`, whose offset is left alone. Start-up only: takes heap memory.
[[nodiscard]] Result<LogEnd> ReadLogEnd(int fd);

// What verification found wrong, at most kMaxFindings of them.
struct Finding {
  enum class Kind : uint8_t {
    kEdited,        // the line's bytes do not give its hash
    kNotLinked,     // its prev_hash is not the hash of the line before: a line was removed, inserted or moved
                    // here
    kStartMissing,  // the first record neither begins a chain nor says that it continues one
    kSequence,      // its sequence does not follow: `expected` was due
    kNotARecord,    // not a line of ours, and no TORN_LINE record right behind it
    kUnfinished,    // the last line has no newline
    kHeadMissing,   // the head's sequence is beyond the end: the end was cut off
    kHeadDiffers,   // the line of the head's sequence has another hash
  };
  Kind kind;
  uint64_t line = 0;      // from 1
  uint64_t sequence = 0;  // of that line, where it has one
  uint64_t expected = 0;
};
[[nodiscard]] std::string_view Sentence(Finding::Kind kind) noexcept;
inline constexpr size_t kMaxFindings = 100;

struct Verification {
  uint64_t lines = 0;    // read
  uint64_t records = 0;  // lines of ours
  uint64_t torn = 0;     // torn lines that a record behind them notes
  uint64_t first_sequence = 0;
  Hash first_previous = kZeroHash;  // zeros at the start of a chain, else the end of the file before
  Head last;
  uint64_t findings_total = 0;
  std::vector<Finding> findings;
  [[nodiscard]] bool intact() const noexcept { return findings_total == 0; }
};
// Reads the whole log from its start, in memory that does not grow with it. `before`: where the file before
// ended, for a rotated log. `head`: what must be in it. A failure is one of reading.
[[nodiscard]] Result<Verification> Verify(int fd, const std::optional<Head>& before,
                                          const std::optional<Head>& head);

}  // namespace oarlock::audit
