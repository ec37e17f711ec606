// SPDX-License-Identifier: Apache-2.0
#include "audit/chain.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "audit/limits.h"
#include "audit/lines.h"
#include "notif/base/sha256.h"
#include "notif/base/unique_fd.h"
#include "tests/audit/support.h"

namespace oarlock::audit {
namespace {

using testing::FormatLine;
using testing::TempDirectory;
using testing::WriteFile;

// `count` lines of one chain.
std::vector<std::string> MakeChain(size_t count, Head from = {}) {
  const SessionFacts session = testing::SampleSession();
  std::vector<std::string> lines;
  Record record = testing::SampleCall(Refusal::kUnixNotBroker, "connect", session);
  testing::SetAddress(record, testing::Unix("/run/docker.sock"));
  for (size_t i = 0; i < count; ++i) {
    lines.push_back(FormatLine(record, {.sequence = from.sequence + 1, .previous = from.hash}));
    const auto link = ParseLink(lines.back());
    EXPECT_TRUE(link.has_value());
    from = {link->sequence, link->hash};
  }
  return lines;
}

std::string Join(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

Verification VerifyText(const std::string& text, const std::optional<Head>& head = {},
                        const std::optional<Head>& before = {}) {
  const TempDirectory directory;
  WriteFile(directory.path("log"), text);
  const UniqueFd fd(::open(directory.path("log").c_str(), O_RDONLY | O_CLOEXEC));
  auto result = Verify(fd.get(), before, head);
  EXPECT_TRUE(result.has_value());
  return result ? *result : Verification{};
}

std::vector<Finding::Kind> Kinds(const Verification& result) {
  std::vector<Finding::Kind> kinds;
  for (const Finding& finding : result.findings) kinds.push_back(finding.kind);
  return kinds;
}

Head HeadAt(const std::string& line) {
  const auto link = ParseLink(line);
  EXPECT_TRUE(link.has_value());
  return {link->sequence, link->hash};
}

LogEnd EndOf(const std::string& text) {
  const TempDirectory directory;
  WriteFile(directory.path("log"), text);
  const UniqueFd fd(::open(directory.path("log").c_str(), O_RDONLY | O_CLOEXEC));
  auto end = ReadLogEnd(fd.get());
  EXPECT_TRUE(end.has_value());
  return end ? *end : LogEnd{};
}

// --- one line
// ----------------------------------------------------------------------------------------------------------

TEST(Chain, HashIsOfTheLineWithZeros) {
  const std::string line = MakeChain(1)[0];
  const auto link = ParseLink(line);
  ASSERT_TRUE(link.has_value());
  EXPECT_EQ(link->sequence, 1U);
  EXPECT_EQ(link->previous, kZeroHash);
  // As anybody would check it with sha256sum.
  std::string zeroed = line;
  zeroed.replace(line.rfind(std::string(View(link->hash))), 64, std::string(64, '0'));
  EXPECT_EQ(Sha256Hex(zeroed), View(link->hash));
  EXPECT_EQ(HashOf(line), link->hash);
}

TEST(Chain, LinesOfOthersAreNotOurs) {
  const std::string line = MakeChain(1)[0];
  ASSERT_TRUE(ParseLink(line).has_value());
  EXPECT_FALSE(ParseLink("").has_value());
  EXPECT_FALSE(ParseLink("{}").has_value());
  EXPECT_FALSE(ParseLink(line + " ").has_value());
  EXPECT_FALSE(ParseLink(" " + line).has_value());
  EXPECT_FALSE(ParseLink(line.substr(0, line.size() - 1)).has_value());
  EXPECT_FALSE(ParseLink(line.substr(1)).has_value());
  for (size_t i = 0; i < line.size(); ++i) (void)ParseLink(line.substr(0, i));
  std::string big = line;
  big.replace(big.find("1"), 1, "99999999999999999999");
  EXPECT_FALSE(ParseLink(big).has_value());
  std::string upper = line;
  upper[upper.size() - 4] = 'F';
  EXPECT_FALSE(ParseLink(upper).has_value());
}

TEST(Chain, HeadRoundTrips) {
  Head head{.sequence = 1234567, .hash = kZeroHash};
  head.hash[5] = 'a';
  const auto text = FormatHead(head);
  const std::string written(text.data(), text.size());
  EXPECT_EQ(written.substr(0, 21), "00000000000001234567:");
  EXPECT_EQ(ParseHead(written), head);
  EXPECT_EQ(ParseHead("1234567:" + std::string(View(head.hash))), head);
  for (const char* bad : {"", ":", "1:", "x:00", "-1:", "99999999999999999999:"})
    EXPECT_FALSE(ParseHead(std::string(bad) + std::string(View(head.hash)).substr(1)).has_value()) << bad;
  EXPECT_FALSE(ParseHead(std::string(kHeadSize, '\0')).has_value());
}

// --- verification
// ------------------------------------------------------------------------------------------------------

TEST(Verify, AWholeChain) {
  const auto lines = MakeChain(1000);
  const Verification result = VerifyText(Join(lines), HeadAt(lines.back()));
  EXPECT_TRUE(result.intact());
  EXPECT_EQ(result.records, 1000U);
  EXPECT_EQ(result.first_sequence, 1U);
  EXPECT_EQ(result.last, HeadAt(lines.back()));
  EXPECT_TRUE(VerifyText("").intact());
}

TEST(Verify, AnyEditedByteIsFound) {
  const auto lines = MakeChain(20);
  // Every byte of one line in the middle, to another printable one.
  for (size_t at = 0; at < lines[10].size(); ++at) {
    auto edited = lines;
    edited[10][at] = edited[10][at] == 'x' ? 'y' : 'x';
    const Verification result = VerifyText(Join(edited));
    ASSERT_FALSE(result.intact()) << "byte " << at;
    ASSERT_EQ(result.findings[0].line, 11U) << "byte " << at;
  }
}

TEST(Verify, AnEditWithItsOwnHashMadeNewIsFoundInTheNextLine) {
  auto lines = MakeChain(20);
  const Hash old = HeadAt(lines[10]).hash;
  lines[10].replace(lines[10].find("docker"), 6, "dacker");
  const Hash made = HashOf(lines[10]);
  lines[10].replace(lines[10].rfind(std::string(View(old))), 64, std::string(View(made)));
  const Verification result = VerifyText(Join(lines));
  ASSERT_EQ(Kinds(result), std::vector{Finding::Kind::kNotLinked});
  EXPECT_EQ(result.findings[0].line, 12U);
}

TEST(Verify, ARemovedLineIsFound) {
  for (const size_t at : {0U, 1U, 500U, 998U}) {
    auto lines = MakeChain(1000);
    lines.erase(lines.begin() + static_cast<ptrdiff_t>(at));
    const Verification result = VerifyText(Join(lines));
    ASSERT_FALSE(result.intact()) << at;
    EXPECT_EQ(result.findings[0].line, at + 1);
  }
}

TEST(Verify, SwappedLinesAreFound) {
  auto lines = MakeChain(1000);
  std::swap(lines[400], lines[401]);
  const Verification result = VerifyText(Join(lines));
  ASSERT_FALSE(result.intact());
  EXPECT_EQ(result.findings[0].line, 401U);
  EXPECT_EQ(result.findings[0].kind, Finding::Kind::kSequence);
}

TEST(Verify, ADoubledOrInsertedLineIsFound) {
  auto lines = MakeChain(100);
  lines.insert(lines.begin() + 50, lines[50]);
  EXPECT_EQ(VerifyText(Join(lines)).findings.at(0).line, 52U);
  lines = MakeChain(100);
  lines.insert(lines.begin() + 50, "{\"hello\":1}");
  const Verification result = VerifyText(Join(lines));
  ASSERT_EQ(Kinds(result), std::vector{Finding::Kind::kNotARecord});
  EXPECT_EQ(result.findings[0].line, 51U);
}

TEST(Verify, ACutEndShowsAgainstTheHeadAlone) {
  auto lines = MakeChain(100);
  const Head head = HeadAt(lines.back());
  lines.resize(90);
  EXPECT_TRUE(VerifyText(Join(lines)).intact()) << "nothing in the log itself can show it";
  const Verification result = VerifyText(Join(lines), head);
  ASSERT_EQ(Kinds(result), std::vector{Finding::Kind::kHeadMissing});
  EXPECT_EQ(result.findings[0].expected, 100U);
  EXPECT_EQ(result.findings[0].sequence, 90U);
  // A head behind the log is a writer that died between the two, or one that is at work.
  EXPECT_TRUE(VerifyText(Join(MakeChain(100)), HeadAt(lines.back())).intact());
}

TEST(Verify, AChainMadeNewShowsAgainstTheHeadAlone) {
  const Head head = HeadAt(MakeChain(100).back());
  auto forged = MakeChain(99);
  const SessionFacts session = testing::SampleSession();
  forged.push_back(FormatLine(testing::SampleCall(Refusal::kUnixAbsent, "connect", session),
                              {.sequence = 100, .previous = HeadAt(forged.back()).hash}));
  EXPECT_TRUE(VerifyText(Join(forged)).intact());
  EXPECT_EQ(Kinds(VerifyText(Join(forged), head)), std::vector{Finding::Kind::kHeadDiffers});
}

TEST(Verify, ARotatedLogContinuesTheOneBefore) {
  const auto first = MakeChain(50);
  const Head between = HeadAt(first.back());
  const auto second = MakeChain(50, between);
  const Verification result = VerifyText(Join(second), HeadAt(second.back()), between);
  EXPECT_TRUE(result.intact());
  EXPECT_EQ(result.first_sequence, 51U);
  EXPECT_EQ(result.first_previous, between.hash);
  // On its own it must say that it continues another.
  EXPECT_EQ(Kinds(VerifyText(Join(second))), std::vector{Finding::Kind::kStartMissing});
  Record reopened;
  reopened.type = RecordType::kNotice;
  reopened.notice = Notice::kReopened;
  reopened.real_us = 1;
  const std::string start = FormatLine(reopened, {.sequence = 51, .previous = between.hash});
  EXPECT_TRUE(VerifyText(start + "\n" + Join(MakeChain(9, HeadAt(start)))).intact());
  EXPECT_EQ(Kinds(VerifyText(Join(second), {}, HeadAt(first[48]))),
            (std::vector{Finding::Kind::kSequence, Finding::Kind::kNotLinked}));
  // One without the other is no start of a chain.
  EXPECT_FALSE(VerifyText(Join(MakeChain(1, {.sequence = 5, .hash = kZeroHash}))).intact());
}

TEST(Verify, ATornLineIsFineWhereItIsNoted) {
  auto lines = MakeChain(10);
  const std::string torn = MakeChain(11).back().substr(0, 700);
  Record note;
  note.type = RecordType::kNotice;
  note.notice = Notice::kTornLine;
  note.before = torn.size();
  note.real_us = 1;
  lines.push_back(torn);
  const Head end = HeadAt(lines[9]);
  lines.push_back(FormatLine(note, {.sequence = end.sequence + 1, .previous = end.hash}));
  Verification result = VerifyText(Join(lines));
  EXPECT_TRUE(result.intact());
  EXPECT_EQ(result.torn, 1U);
  EXPECT_EQ(result.records, 11U);
  // Another piece in its place is not what was noted.
  lines[10] += "more";
  EXPECT_EQ(Kinds(VerifyText(Join(lines))), std::vector{Finding::Kind::kNotARecord});
  lines.erase(lines.begin() + 11);
  EXPECT_EQ(Kinds(VerifyText(Join(lines))), std::vector{Finding::Kind::kNotARecord});
  EXPECT_EQ(Kinds(VerifyText(Join(MakeChain(3)) + "{\"meta")), std::vector{Finding::Kind::kUnfinished});
}

TEST(Verify, EndlessLinesDoNotFillMemory) {
  const auto lines = MakeChain(2);
  const Verification result = VerifyText(lines[0] + "\n" + std::string(5 << 20, 'x') + "\n" + lines[1] +
                                         "\n" + std::string(5 << 20, 'y'));
  EXPECT_EQ(Kinds(result), (std::vector{Finding::Kind::kNotARecord, Finding::Kind::kUnfinished}));
  EXPECT_EQ(result.records, 2U);
}

TEST(Verify, FindingsAreBounded) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += "junk\n";
  const Verification result = VerifyText(text);
  EXPECT_EQ(result.findings.size(), kMaxFindings);
  EXPECT_EQ(result.findings_total, 1000U);
}

// --- the end of a log
// --------------------------------------------------------------------------------------------------

TEST(ReadLogEnd, OfEveryKind) {
  const auto lines = MakeChain(3);
  const Head last = HeadAt(lines[2]);
  LogEnd end = EndOf("");
  EXPECT_EQ(end.last.sequence, 0U);
  EXPECT_FALSE(end.lacks_newline || end.foreign || end.altered);

  end = EndOf(Join(lines));
  EXPECT_EQ(end.last, last);
  EXPECT_FALSE(end.lacks_newline || end.foreign || end.altered || end.torn_bytes > 0);

  end = EndOf(Join(lines) + "{\"meta");
  EXPECT_EQ(end.last, last);
  EXPECT_EQ(end.torn_bytes, 6U);
  EXPECT_TRUE(end.lacks_newline);
  EXPECT_FALSE(end.foreign);

  // A whole line that lacks its newline alone.
  std::string text = Join(lines);
  text.pop_back();
  end = EndOf(text);
  EXPECT_EQ(end.last, last);
  EXPECT_EQ(end.torn_bytes, 0U);
  EXPECT_TRUE(end.lacks_newline);

  text = Join(lines);
  text[text.size() - 700] ^= 1;
  end = EndOf(text);
  EXPECT_TRUE(end.altered);
  EXPECT_EQ(end.last.sequence, 3U);

  end = EndOf(Join(lines) + "junk\nmore\n");
  EXPECT_EQ(end.last, last);
  EXPECT_TRUE(end.foreign);

  end = EndOf("junk without an end");
  EXPECT_EQ(end.last.sequence, 0U);
  EXPECT_EQ(end.torn_bytes, 19U);
  EXPECT_FALSE(end.foreign);

  end = EndOf("\n\n");
  EXPECT_TRUE(end.foreign);
}

TEST(ReadLogEnd, EveryTornLength) {
  const auto lines = MakeChain(3);
  const std::string whole = Join({lines[0], lines[1]});
  for (size_t size = 1; size < lines[2].size(); ++size) {
    const LogEnd end = EndOf(whole + lines[2].substr(0, size));
    ASSERT_EQ(end.last.sequence, 2U);
    ASSERT_EQ(end.torn_bytes, size);
  }
}

TEST(ReadLogEnd, OfALogLongerThanWhatIsRead) {
  auto lines = MakeChain(1);
  const std::string text = std::string(2 * kTailBytes, 'x') + "\n";
  LogEnd end = EndOf(text + Join(lines));
  EXPECT_EQ(end.last.sequence, 1U);
  EXPECT_FALSE(end.foreign);
  end = EndOf(Join(lines) + text);
  EXPECT_EQ(end.last.sequence, 0U);
  EXPECT_TRUE(end.foreign);
}

// --- lines
// -------------------------------------------------------------------------------------------------------------

TEST(LineReader, FollowsAGrowingFile) {
  const TempDirectory directory;
  const std::string path = directory.path("log");
  WriteFile(path, "one\ntw");
  const UniqueFd fd(::open(path.c_str(), O_RDWR | O_APPEND | O_CLOEXEC));
  LineReader lines(fd.get());
  EXPECT_EQ(lines.Next(), LineReader::Got::kLine);
  EXPECT_EQ(lines.line(), "one");
  EXPECT_EQ(lines.Next(), LineReader::Got::kTorn);
  EXPECT_EQ(lines.line(), "tw");
  EXPECT_EQ(lines.line_offset(), 4U);
  // The writer cuts its piece off and writes another.
  ASSERT_EQ(::ftruncate(fd.get(), 4), 0);
  EXPECT_EQ(lines.Next(), LineReader::Got::kEnd);
  ASSERT_EQ(::write(fd.get(), "three\n\nfour\n", 12), 12);
  EXPECT_EQ(lines.Next(), LineReader::Got::kLine);
  EXPECT_EQ(lines.line(), "three");
  EXPECT_EQ(lines.Next(), LineReader::Got::kLine);
  EXPECT_EQ(lines.line(), "");
  EXPECT_EQ(lines.Next(), LineReader::Got::kLine);
  EXPECT_EQ(lines.line(), "four");
  EXPECT_EQ(lines.line_offset(), 11U);
  EXPECT_EQ(lines.Next(), LineReader::Got::kEnd);
}

TEST(LineReader, EveryChunkSizeGivesTheSameLines) {
  const TempDirectory directory;
  const std::string path = directory.path("log");
  const std::string content = "a\n\nbb\n" + std::string(30, 'c') + "\n" + std::string(9, 'd') + "\ne";
  WriteFile(path, content);
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  for (size_t chunk = 1; chunk < 60; ++chunk) {
    LineReader lines(fd.get(), 10, 0, chunk);
    std::vector<std::string> got;
    std::vector<uint64_t> offsets;
    for (;;) {
      const auto kind = lines.Next();
      if (kind == LineReader::Got::kTorn) break;
      ASSERT_TRUE(kind == LineReader::Got::kLine || kind == LineReader::Got::kTooLong);
      got.push_back(kind == LineReader::Got::kTooLong ? "(too long)" : std::string(lines.line()));
      offsets.push_back(lines.line_offset());
    }
    EXPECT_EQ(got, (std::vector<std::string>{"a", "", "bb", "(too long)", "ddddddddd"})) << chunk;
    EXPECT_EQ(offsets, (std::vector<uint64_t>{0, 2, 3, 6, 37})) << chunk;
    EXPECT_EQ(lines.line(), "e");
  }
}

TEST(LineReader, SaysWhyItCannotRead) {
  const TempDirectory directory;
  const UniqueFd fd(::open(directory.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  LineReader lines(fd.get());
  EXPECT_EQ(lines.Next(), LineReader::Got::kError);
  EXPECT_EQ(lines.error(), EISDIR);
}

}  // namespace
}  // namespace oarlock::audit
