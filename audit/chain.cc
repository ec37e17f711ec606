// SPDX-License-Identifier: Apache-2.0
#include "audit/chain.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>

#include "audit/limits.h"
#include "audit/lines.h"
#include "notif/base/check.h"
#include "notif/base/sha256.h"
#include "notif/base/text.h"

namespace oarlock::audit {
namespace {

constexpr std::string_view kStart = R"({"metadata":{"sequence":)";
constexpr std::string_view kPrevious = R"("prev_hash":")";
constexpr std::string_view kBetween = R"(","hash":")";
constexpr std::string_view kEnd = R"("}})";
constexpr size_t kDigits = 64;
constexpr size_t kTail = kPrevious.size() + kDigits + kBetween.size() + kDigits + kEnd.size();
constexpr std::string_view kTornLine = R"("status_code":"TORN_LINE")";
// How the first record of a file that continues another's chain can read.
constexpr std::string_view kContinuing[] = {R"("status_code":"LOG_REOPENED")", R"("status_code":"LOG_CUT")",
                                            R"("status_code":"LOG_SHRUNK")"};
constexpr std::string_view kTornBytes = R"("torn_bytes":)";

// Where the hash's digits stand in a line of ours.
size_t HashOffset(std::string_view line) noexcept { return line.size() - kEnd.size() - kDigits; }

bool IsHex(std::string_view digits) noexcept {
  return std::ranges::all_of(digits, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

Hash ToHash(std::string_view digits) noexcept {
  Hash hash;
  std::memcpy(hash.data(), digits.data(), hash.size());
  return hash;
}

Hash Digest(Sha256& sha) noexcept {
  static constexpr char kHex[] = "0123456789abcdef";
  const Sha256::Digest digest = sha.Final();
  Hash hash;
  for (size_t i = 0; i < digest.size(); ++i) {
    hash[2 * i] = kHex[digest[i] >> 4];
    hash[2 * i + 1] = kHex[digest[i] & 15];
  }
  return hash;
}

bool Contains(std::string_view text, std::string_view part) noexcept {
  return text.find(part) != std::string_view::npos;
}

// The number behind `key`, which occurs once in a line: in a string its quotes would be escaped.
std::optional<uint64_t> NumberBehind(std::string_view line, std::string_view key) noexcept {
  const size_t at = line.find(key);
  if (at == std::string_view::npos) return std::nullopt;
  uint64_t value = 0;
  const char* first = line.data() + at + key.size();
  const auto [end, error] = std::from_chars(first, line.data() + line.size(), value);
  if (error != std::errc() || end == first) return std::nullopt;
  return value;
}

ssize_t ReadAt(int fd, char* out, size_t size, uint64_t offset) noexcept {
  size_t done = 0;
  while (done < size) {
    const ssize_t got = ::pread(fd, out + done, size - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return -errno;
    if (got == 0) break;
    done += static_cast<size_t>(got);
  }
  return static_cast<ssize_t>(done);
}

// Goes through the lines of one log.
class Verifier {
 public:
  Verifier(const std::optional<Head>& before, const std::optional<Head>& head)
      : before_(before), head_(head) {}

  void Whole(std::string_view line) {
    ++result_.lines;
    const std::optional<Link> link = ParseLink(line);
    if (!link) {
      Settle(std::nullopt);
      unknown_ = line.size();
      return;
    }
    Settle(line);
    ++result_.records;
    if (HashOf(line) != link->hash) Find(Finding::Kind::kEdited, link->sequence, 0);
    if (result_.records == 1) {
      result_.first_sequence = link->sequence;
      result_.first_previous = link->previous;
      if (before_) Follows(*link, *before_);
      const bool begins = link->sequence == 1 && link->previous == kZeroHash;
      if (!before_ && !begins && !Continues(line)) Find(Finding::Kind::kStartMissing, link->sequence, 1);
    } else {
      Follows(*link, result_.last);
    }
    if (head_ && link->sequence == head_->sequence && link->hash != head_->hash)
      Find(Finding::Kind::kHeadDiffers, link->sequence, 0);
    result_.last = {link->sequence, link->hash};
  }

  void TooLong() {
    ++result_.lines;
    Settle(std::nullopt);
    Find(Finding::Kind::kNotARecord, 0, 0);
  }

  Verification End(bool torn) {
    Settle(std::nullopt);
    if (torn) {
      ++result_.lines;
      Find(Finding::Kind::kUnfinished, 0, 0);
    }
    if (head_ && head_->sequence > result_.last.sequence)
      Find(Finding::Kind::kHeadMissing, result_.last.sequence, head_->sequence);
    return std::move(result_);
  }

 private:
  void Follows(const Link& link, const Head& previous) {
    if (link.sequence != previous.sequence + 1)
      Find(Finding::Kind::kSequence, link.sequence, previous.sequence + 1);
    if (link.previous != previous.hash) Find(Finding::Kind::kNotLinked, link.sequence, 0);
  }

  // Whether this first record of a file says that the chain began in another one.
  static bool Continues(std::string_view line) noexcept {
    return std::ranges::any_of(kContinuing, [&](std::string_view code) { return Contains(line, code); });
  }

  // Judges a line that was no record by the one behind it: a torn line is noted at once, with its size.
  void Settle(std::optional<std::string_view> next) {
    if (!unknown_) return;
    if (next && Contains(*next, kTornLine) && NumberBehind(*next, kTornBytes) == *unknown_) {
      ++result_.torn;
    } else {
      Find(Finding::Kind::kNotARecord, 0, 0, next ? result_.lines - 1 : result_.lines);
    }
    unknown_.reset();
  }

  void Find(Finding::Kind kind, uint64_t sequence, uint64_t expected, uint64_t line = 0) {
    ++result_.findings_total;
    if (result_.findings.size() < kMaxFindings)
      result_.findings.push_back({kind, line != 0 ? line : result_.lines, sequence, expected});
  }

  const std::optional<Head>& before_;
  const std::optional<Head>& head_;
  Verification result_;
  std::optional<size_t> unknown_;  // the size of a line that was no record
};

}  // namespace

std::optional<Link> ParseLink(std::string_view line) noexcept {
  if (!line.starts_with(kStart) || line.size() < kStart.size() + kTail || line.size() >= kMaxLineBytes)
    return std::nullopt;
  const std::string_view tail = line.substr(line.size() - kTail);
  const std::string_view previous = tail.substr(kPrevious.size(), kDigits);
  const std::string_view hash = tail.substr(kPrevious.size() + kDigits + kBetween.size(), kDigits);
  if (!tail.starts_with(kPrevious) || !tail.ends_with(kEnd) || !IsHex(previous) || !IsHex(hash) ||
      tail.substr(kPrevious.size() + kDigits, kBetween.size()) != kBetween)
    return std::nullopt;
  Link link;
  const char* first = line.data() + kStart.size();
  const auto [end, error] = std::from_chars(first, line.data() + line.size(), link.sequence);
  if (error != std::errc() || end == first || *end != ',' || link.sequence == 0 ||
      link.sequence >= kMaxSequence)
    return std::nullopt;
  link.previous = ToHash(previous);
  link.hash = ToHash(hash);
  return link;
}

Hash HashOf(std::string_view line) noexcept {
  const size_t at = HashOffset(line);
  Sha256 sha;
  sha.Update(line.substr(0, at));
  sha.Update(View(kZeroHash));
  sha.Update(line.substr(at + kDigits));
  return Digest(sha);
}

Hash Seal(std::span<char> line) noexcept {
  const std::string_view view(line.data(), line.size());
  OARLOCK_CHECK(view.size() > kTail && view.ends_with(kEnd));
  const size_t at = HashOffset(view);
  OARLOCK_CHECK(view.substr(at, kDigits) == View(kZeroHash));
  Sha256 sha;
  sha.Update(view);
  const Hash hash = Digest(sha);
  std::memcpy(line.data() + at, hash.data(), hash.size());
  return hash;
}

std::array<char, kHeadSize> FormatHead(const Head& head) noexcept {
  std::array<char, kHeadSize> text;
  uint64_t rest = head.sequence;
  for (size_t i = 20; i > 0; --i, rest /= 10) text[i - 1] = static_cast<char>('0' + rest % 10);
  text[20] = ':';
  std::memcpy(text.data() + 21, head.hash.data(), head.hash.size());
  text[kHeadSize - 1] = '\n';
  return text;
}

std::optional<Head> ParseHead(std::string_view text) noexcept {
  if (text.ends_with('\n')) text.remove_suffix(1);
  const size_t colon = text.find(':');
  Head head;
  if (colon == std::string_view::npos || colon > 20 ||
      !ParseNumber(text.substr(0, colon), 0, kMaxSequence - 1, &head.sequence))
    return std::nullopt;
  const std::string_view hash = text.substr(colon + 1);
  if (hash.size() != kDigits || !IsHex(hash)) return std::nullopt;
  head.hash = ToHash(hash);
  return head;
}

Result<LogEnd> ReadLogEnd(int fd) {
  struct stat status{};
  if (::fstat(fd, &status) != 0) return OARLOCK_FAIL("fstat", errno, "the log");
  LogEnd end;
  end.size = static_cast<uint64_t>(status.st_size);
  const size_t size = static_cast<size_t>(std::min<uint64_t>(end.size, kTailBytes));
  std::string buffer(size, '\0');
  const ssize_t got = ReadAt(fd, buffer.data(), size, end.size - size);
  if (got < 0) return OARLOCK_FAIL("read", static_cast<int>(-got), "the end of the log");
  std::string_view text(buffer.data(), static_cast<size_t>(got));
  if (text.empty()) return end;

  // Behind the last newline.
  const size_t newline = text.rfind('\n');
  const size_t rest_at = newline == std::string_view::npos ? 0 : newline + 1;
  const std::string_view rest = text.substr(rest_at);
  if (!rest.empty()) {
    end.lacks_newline = true;
    const std::optional<Link> link = ParseLink(rest);
    if (link && HashOf(rest) == link->hash) {
      end.last = {link->sequence, link->hash};
      return end;
    }
    end.torn_bytes = rest.size();
  }
  // The last line of ours before it. Without a newline before it, a piece at the start of what was read is no
  // whole line, unless it is the start of the file.
  text = text.substr(0, rest_at);
  while (!text.empty()) {
    text.remove_suffix(1);
    const size_t before = text.rfind('\n');
    if (before == std::string_view::npos && end.size > size) break;
    const std::string_view line = text.substr(before == std::string_view::npos ? 0 : before + 1);
    if (const std::optional<Link> link = ParseLink(line)) {
      end.last = {link->sequence, link->hash};
      end.altered = HashOf(line) != link->hash;
      return end;
    }
    end.foreign = true;
    text = text.substr(0, text.size() - line.size());
  }
  end.foreign = end.foreign || end.size > size;
  return end;
}

std::string_view Sentence(Finding::Kind kind) noexcept {
  switch (kind) {
    case Finding::Kind::kEdited:
      return "the line was edited: its hash is not that of its bytes";
    case Finding::Kind::kNotLinked:
      return "the line does not continue the one before: a line was removed, inserted or moved here";
    case Finding::Kind::kStartMissing:
      return "the start of the log is missing: its first record begins no chain and continues none";
    case Finding::Kind::kSequence:
      return "the sequence has a hole or goes back here";
    case Finding::Kind::kNotARecord:
      return "the line is no record";
    case Finding::Kind::kUnfinished:
      return "the last line has no end";
    case Finding::Kind::kHeadMissing:
      return "the end of the log was cut off: the head knows of later records";
    case Finding::Kind::kHeadDiffers:
      return "the record is not the one that the head knows";
  }
  OARLOCK_CHECK(false, "finding %d", static_cast<int>(kind));
}

Result<Verification> Verify(int fd, const std::optional<Head>& before, const std::optional<Head>& head) {
  Verifier verifier(before, head);
  LineReader lines(fd, kMaxLineBytes);
  for (;;) {
    switch (lines.Next()) {
      case LineReader::Got::kLine:
        verifier.Whole(lines.line());
        break;
      case LineReader::Got::kTooLong:
        verifier.TooLong();
        break;
      case LineReader::Got::kTorn:
        return verifier.End(true);
      case LineReader::Got::kEnd:
        return verifier.End(false);
      case LineReader::Got::kError:
        return OARLOCK_FAIL("read", lines.error(), "the log");
    }
  }
}

}  // namespace oarlock::audit
