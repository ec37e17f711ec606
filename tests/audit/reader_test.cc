// SPDX-License-Identifier: Apache-2.0
#include "audit/reader.h"

#include <gtest/gtest.h>
#include <malloc.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <fstream>

#include "audit/escape.h"
#include "tests/audit/support.h"

namespace oarlock::audit {
namespace {

using namespace std::string_literals;
using testing::FormatLine;
using testing::SampleCall;
using testing::SampleSession;
using testing::SetAddress;
using testing::TempDirectory;
using testing::WriteFile;

constexpr uint64_t kStart = 1'700'000'000'000'000;

// A line of a refusal at `kStart` plus so many seconds.
std::string LineAt(uint64_t seconds, Refusal refusal = Refusal::kTcpNotProxy, uint64_t sequence = 1,
                   const SessionFacts& session = SampleSession()) {
  Record record = SampleCall(refusal, "connect", session);
  record.real_us = kStart + seconds * 1'000'000;
  SetAddress(record, refusal == Refusal::kTcpNotProxy ? testing::Inet4(0xc0000201, 443)
                                                      : testing::Unix("/run/docker.sock"));
  return FormatLine(record, {.sequence = sequence, .id = Ulid(seconds, {static_cast<uint8_t>(sequence)})});
}

std::vector<Entry> ReadAll(const std::vector<std::string>& paths, Filter filter = {}) {
  auto reader = Reader::Open(paths, std::move(filter));
  EXPECT_TRUE(reader.has_value()) << (reader ? "" : reader.error().Message());
  std::vector<Entry> entries;
  if (reader)
    while (auto entry = reader->Next()) entries.push_back(std::move(*entry));
  return entries;
}

std::vector<uint64_t> Times(const std::vector<Entry>& entries) {
  std::vector<uint64_t> seconds;
  seconds.reserve(entries.size());
  for (const Entry& entry : entries) seconds.push_back((entry.time_us - kStart) / 1'000'000);
  return seconds;
}

// --- one line
// ----------------------------------------------------------------------------------------------------------

TEST(ParseEntry, HasTheFields) {
  const auto entry = ParseEntry(LineAt(5, Refusal::kTcpNotProxy, 9));
  ASSERT_TRUE(entry.has_value());
  EXPECT_EQ(entry->time_us, kStart + 5'000'000);
  EXPECT_EQ(entry->sequence, 9U);
  EXPECT_EQ(entry->class_uid, 4001);
  EXPECT_EQ(entry->code, "TCP_NOT_PROXY");
  EXPECT_EQ(entry->kind, "DENY");
  EXPECT_EQ(entry->session, SampleSession().id.text());
  EXPECT_EQ(entry->module, "weather");
  EXPECT_EQ(entry->process, "curl");
  EXPECT_EQ(entry->path, "/usr/bin/curl");
  EXPECT_EQ(entry->pid, 4001);
  EXPECT_EQ(entry->tid, 4002);
  EXPECT_EQ(entry->uid, 1001);
  EXPECT_EQ(entry->call, "connect");
  EXPECT_EQ(entry->address, "192.0.2.1:443");
  EXPECT_EQ(entry->target, "ipv4 192.0.2.1:443");
  EXPECT_EQ(entry->error, EACCES);
  EXPECT_EQ(entry->error_name, "EACCES");
  EXPECT_EQ(entry->rule, "net.proxy");
  EXPECT_EQ(entry->layer, "supervisor");
  EXPECT_EQ(entry->count, 1U);
  EXPECT_EQ(entry->hash.size(), 64U);
}

TEST(ParseEntry, NeverThrowsWhateverComes) {
  for (const std::string& line :
       {""s, "{"s, "[]"s, "null"s, "{}"s, "1"s, "\xff\xfe"s, R"({"metadata":1})"s,
        R"({"metadata":{"uid":1}})"s, R"({"class_uid":"x","metadata":{"uid":"y"}})"s,
        R"({"class_uid":1e999,"metadata":{"uid":"y"}})"s, std::string(100'000, '[')})
    EXPECT_FALSE(ParseEntry(line).has_value()) << line.substr(0, 50);
  // Of the right shape and with odd fields.
  const auto entry = ParseEntry(
      R"({"class_uid":4001,"metadata":{"uid":"X","sequence":-1},"time":"soon","time_dt":"2026-02-30T00:00:00Z","count":-5,)"
      R"("actor":[],"dst_endpoint":{"ip":7,"name":{}},"unmapped":{"errno":"x","option_name":1.5},"device":null})");
  ASSERT_TRUE(entry.has_value());
  EXPECT_EQ(entry->time_us, 0U);
  EXPECT_EQ(entry->count, 1U);
  EXPECT_EQ(entry->sequence, 0U);
  // Every prefix and every edit of one byte.
  const std::string line = LineAt(0);
  for (size_t i = 0; i < line.size(); ++i) {
    (void)ParseEntry(line.substr(0, i));
    std::string edited = line;
    edited[i] = '"';
    (void)ParseEntry(edited);
  }
}

// --- filters
// -----------------------------------------------------------------------------------------------------------

class FilterTest : public ::testing::Test {
 protected:
  FilterTest() {
    Record record = SampleCall(Refusal::kUnixNotBroker, "connect", session_);
    record.real_us = kStart;
    std::memcpy(record.task.name, "we\nird", 6);
    record.task.name_size = 6;
    SetAddress(record, testing::Unix("/run/a\nb.sock"));
    entry_ = *ParseEntry(FormatLine(record));
  }
  bool Wants(const Filter& filter) {
    EXPECT_TRUE(!filter.Matches(entry_) || filter.MayMatch(entry_.line));
    return filter.Matches(entry_);
  }
  SessionFacts session_ = SampleSession();
  Entry entry_;
};

TEST_F(FilterTest, EachFieldAlone) {
  EXPECT_TRUE(Wants({}));
  EXPECT_TRUE(Wants({.since_us = kStart}));
  EXPECT_FALSE(Wants({.since_us = kStart + 1}));
  EXPECT_TRUE(Wants({.until_us = kStart + 1}));
  EXPECT_FALSE(Wants({.until_us = kStart}));
  Filter filter;
  filter.session = session_.id.text();
  EXPECT_TRUE(Wants(filter));
  filter.session = session_.id.text().substr(0, 6);
  EXPECT_TRUE(Wants(filter));
  filter.session = "01ZZZZ";
  EXPECT_FALSE(Wants(filter));
  filter = {};
  filter.reason = "UNIX_NOT_BROKER";
  EXPECT_TRUE(Wants(filter));
  filter.reason = "TCP_NOT_PROXY";
  EXPECT_FALSE(Wants(filter));
  for (const char* process : {"4001", "4002", "we\nird", "we\\x0aird", "/usr/bin/curl"}) {
    filter = {};
    filter.process = process;
    EXPECT_TRUE(Wants(filter)) << process;
  }
  for (const char* process : {"400", "we", "curl"}) {
    filter = {};
    filter.process = process;
    EXPECT_FALSE(Wants(filter)) << process;
  }
  for (const char* target : {"/run/", "a\nb", "a\\x0ab", ".sock"}) {
    filter = {};
    filter.target = target;
    EXPECT_TRUE(Wants(filter)) << target;
  }
  filter.target = "/var";
  EXPECT_FALSE(Wants(filter));
  filter = {};
  filter.id = entry_.id;
  EXPECT_TRUE(Wants(filter));
  filter.id = "X";
  EXPECT_FALSE(Wants(filter));
}

TEST(Filter, ProbesAndNoiseAreOffByDefault) {
  const SessionFacts session = SampleSession();
  const auto shown = [](const std::string& line, bool all) {
    Filter filter;
    filter.all = all;
    return filter.Matches(*ParseEntry(line));
  };
  const std::string probe = LineAt(0, Refusal::kUnixAbsent);
  Record record = SampleCall(Refusal::kNone, "connect", session);
  record.verdict = Verdict::kAllowed;
  const std::string approval = FormatLine(record);
  record.type = RecordType::kCheckpoint;
  const std::string checkpoint = FormatLine(record);
  record.type = RecordType::kGap;
  const std::string gap = FormatLine(record);
  for (const std::string& line : {probe, approval, checkpoint}) {
    EXPECT_FALSE(shown(line, false));
    EXPECT_TRUE(shown(line, true));
  }
  EXPECT_TRUE(shown(gap, false));
}

// --- files and directories
// ---------------------------------------------------------------------------------------------

TEST(Reader, OneFileInItsOwnOrder) {
  const TempDirectory directory;
  WriteFile(directory.path("a.jsonl"), LineAt(3) + "\n" + LineAt(1) + "\n" + LineAt(2) + "\n");
  EXPECT_EQ(Times(ReadAll({directory.path("a.jsonl")})), (std::vector<uint64_t>{3, 1, 2}));
}

TEST(Reader, PassesOverWhatIsNoRecord) {
  const TempDirectory directory;
  WriteFile(directory.path("a.jsonl"), "junk\n\n" + LineAt(1) + "\n{\"x\":1}\n" + std::string(100'000, 'y') +
                                           "\n" + LineAt(2) + "\n" + LineAt(3).substr(0, 500));
  const std::vector<std::string> paths = {directory.path("a.jsonl")};
  auto reader = Reader::Open(paths);
  ASSERT_TRUE(reader.has_value());
  size_t count = 0;
  while (reader->Next()) ++count;
  EXPECT_EQ(count, 2U);
  EXPECT_EQ(reader->bad_lines(), 4U);
  EXPECT_EQ(reader->torn_lines(), 1U);
  EXPECT_FALSE(reader->Next().has_value());
}

TEST(Reader, DirectoriesAreMergedByTime) {
  const TempDirectory directory;
  const auto file = [&](const std::string& name, const std::vector<uint64_t>& times) {
    std::string text;
    for (const uint64_t time : times) text += LineAt(time) + "\n";
    WriteFile(directory.path(name), text);
  };
  file("b.jsonl", {1, 5, 9});
  file("a.jsonl", {2, 3, 20});
  file("c.jsonl.1", {0, 4});
  file("c.jsonl-20260102", {6});
  file("d.jsonl", {});
  // Not logs of ours, or not to be read.
  file("e.jsonl.gz", {7});
  file("audit.head", {7});
  file(".hidden.jsonl", {7});
  file("f.jsonl.tmp", {7});
  WriteFile(directory.path("g.jsonl"), "junk\n");
  ASSERT_EQ(::mkfifo(directory.path("h.jsonl").c_str(), 0600), 0);
  const std::vector<std::string> paths = {directory.path()};
  auto reader = Reader::Open(paths);
  ASSERT_TRUE(reader.has_value()) << reader.error().Message();
  std::vector<Entry> entries;
  while (auto entry = reader->Next()) entries.push_back(std::move(*entry));
  EXPECT_EQ(Times(entries), (std::vector<uint64_t>{0, 1, 2, 3, 4, 5, 6, 9, 20}));
  ASSERT_EQ(reader->problems().size(), 1U);
  EXPECT_NE(reader->problems()[0].find("h.jsonl"), std::string::npos);
}

TEST(Reader, AFileThatCannotBeReadIsAnError) {
  const TempDirectory directory;
  EXPECT_FALSE(Reader::Open(std::vector<std::string>{directory.path("none")}).has_value());
  ASSERT_EQ(::mkfifo(directory.path("fifo").c_str(), 0600), 0);
  EXPECT_FALSE(Reader::Open(std::vector<std::string>{directory.path("fifo")}).has_value());
}

TEST(Reader, ManyFilesNeedFewDescriptors) {
  const TempDirectory directory;
  // As many sessions as there are, one after the other: more than there are descriptors.
  for (uint64_t i = 0; i < 1500; ++i)
    WriteFile(directory.path("s" + std::to_string(i) + ".jsonl"),
              LineAt(2 * i) + "\n" + LineAt(2 * i + 1) + "\n");
  const auto entries = ReadAll({directory.path()});
  ASSERT_EQ(entries.size(), 3000U);
  for (size_t i = 0; i < entries.size(); ++i) ASSERT_EQ(entries[i].time_us, kStart + i * 1'000'000);
}

TEST(Reader, MemoryDoesNotGrowWithTheLog) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the sanitizers' allocator does not say";
#else
  const TempDirectory directory;
  {
    std::ofstream file(directory.path("big.jsonl"));
    const std::string line = LineAt(1) + "\n";
    for (int i = 0; i < 20'000; ++i) file << line;
  }
  const std::vector<std::string> paths = {directory.path("big.jsonl")};
  auto reader = Reader::Open(paths);
  ASSERT_TRUE(reader.has_value());
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(reader->Next().has_value());
  const size_t before = ::mallinfo2().uordblks;
  size_t count = 100, most = before;
  while (reader->Next()) {
    if (++count % 1000 == 0) most = std::max(most, ::mallinfo2().uordblks);
  }
  EXPECT_EQ(count, 20'000U);
  EXPECT_LT(most, before + 200'000);
#endif
}

// --- moments
// -----------------------------------------------------------------------------------------------------------

TEST(ParseMoment, EveryForm) {
  constexpr uint64_t kNow = 1'800'000'000'000'000;
  const auto moment = [](std::string_view text) { return ParseMoment(text, kNow).value_or(1); };
  EXPECT_EQ(moment("2023-11-14"), 1'699'920'000'000'000U);
  EXPECT_EQ(moment("2023-11-14T22:13:20Z"), kStart);
  EXPECT_EQ(moment("2023-11-14 22:13:20"), kStart);
  EXPECT_EQ(moment("2023-11-14T22:13"), kStart - 20'000'000);
  EXPECT_EQ(moment("2023-11-14T23:13:20+01:00"), kStart);
  EXPECT_EQ(moment("2023-11-14T20:43:20-01:30"), kStart);
  EXPECT_EQ(moment("2023-11-14T22:13:20.5Z"), kStart + 500'000);
  EXPECT_EQ(moment("2023-11-14T22:13:20.123456789Z"), kStart + 123'456);
  EXPECT_EQ(moment("2024-02-29"), 1'709'164'800'000'000U);
  EXPECT_EQ(moment("2100-03-01"), 4'107'542'400'000'000U);
  EXPECT_EQ(moment("@1700000000"), kStart);
  EXPECT_EQ(moment("90s"), kNow - 90'000'000);
  EXPECT_EQ(moment("10m"), kNow - 600'000'000);
  EXPECT_EQ(moment("2h"), kNow - 7'200'000'000);
  EXPECT_EQ(moment("3d"), kNow - 259'200'000'000);
  EXPECT_EQ(moment("1w"), kNow - 604'800'000'000);
  EXPECT_EQ(moment("99999w"), 0U);
  for (const char* bad : {"",
                          "yesterday",
                          "2023",
                          "2023-13-01",
                          "2023-02-29",
                          "2023-02-30",
                          "2023-11-14T25:00",
                          "2023-11-14T",
                          "2023-11-14T10:00:00X",
                          "2023-11-14T10:00:00+0100",
                          "10",
                          "10x",
                          "m",
                          "-5m",
                          "@",
                          "@5m",
                          "5 m",
                          "2023-11-14T22:13:20.Z",
                          "1969-12-31",
                          "99999999999999999999s"})
    EXPECT_FALSE(ParseMoment(bad, kNow).has_value()) << bad;
}

TEST(ParseMoment, ReadsWhatTheLogWrites) {
  for (const uint64_t us :
       {uint64_t{0}, kStart, kStart + 1, uint64_t{951'782'400'000'001}, uint64_t{253'402'300'799'999'999}}) {
    char text[kTimeTextSize];
    const std::string_view written(text, FormatTime(us, text));
    EXPECT_EQ(ParseMoment(written, 0), us) << written;
  }
}

// --- for people
// --------------------------------------------------------------------------------------------------------

TEST(OneLine, Refusals) {
  EXPECT_EQ(OneLine(*ParseEntry(LineAt(0)), false),
            "2023-11-14T22:13:20.000000Z DENY TCP_NOT_PROXY curl[4001] connect "
            "ipv4 192.0.2.1:443 -> EACCES");
  const SessionFacts session = SampleSession();
  Record record = SampleCall(Refusal::kDatagramProbe, "socket", session);
  record.real_us = kStart;
  record.args[0] = 2;
  record.args[1] = 2;
  record.count = 12;
  EXPECT_EQ(OneLine(*ParseEntry(FormatLine(record)), false),
            "2023-11-14T22:13:20.000000Z PROBE TYPE_DENIED curl[4001] socket "
            "udp -> EAFNOSUPPORT (x12)");
  record = SampleCall(Refusal::kCallDenied, "mount", session);
  record.real_us = kStart;
  record.task = {};
  EXPECT_EQ(OneLine(*ParseEntry(FormatLine(record)), false),
            "2023-11-14T22:13:20.000000Z DENY SYSCALL_DENIED ?[4002] mount - "
            "-> EPERM");
  record = SampleCall(Refusal::kSocketOption, "setsockopt", session);
  record.args[1] = 6;
  record.args[2] = 23;
  EXPECT_NE(OneLine(*ParseEntry(FormatLine(record)), false).find(" option 6/23 -> ENOPROTOOPT"),
            std::string::npos);
  record = SampleCall(Refusal::kTcpNotProxy, "connect", session);
  SetAddress(record, testing::Inet6("2001:db8::1", 443));
  EXPECT_NE(OneLine(*ParseEntry(FormatLine(record)), false).find(" ipv6 [2001:db8::1]:443 -> "),
            std::string::npos);
}

TEST(OneLine, OtherRecords) {
  const SessionFacts session = SampleSession();
  Record record;
  record.type = RecordType::kSessionStart;
  record.session = &session;
  record.real_us = kStart;
  EXPECT_EQ(OneLine(*ParseEntry(FormatLine(record)), false),
            "2023-11-14T22:13:20.000000Z NOTE SESSION_STARTED weather[4000] a "
            "grant was admitted (session " +
                std::string(session.id.text()) + ")");
  record = {};
  record.type = RecordType::kUnavailable;
  record.real_us = kStart;
  record.count = 7;
  EXPECT_EQ(OneLine(*ParseEntry(FormatLine(record)), false),
            "2023-11-14T22:13:20.000000Z NOTE AUDIT_UNAVAILABLE oarlockd[321] "
            "the log could not be written: refusals were "
            "answered without a record of their own (x7)");
}

TEST(OneLine, NothingRawReachesATerminal) {
  // A forged line: valid JSON whose strings hold what ours never do.
  const std::string forged =
      R"({"class_uid":4001,"metadata":{"uid":"\u001b[2J","tenant_uid":"\u001b"},"status_code":"\u001b[31m","status_detail":"a\nb",)"
      R"("actor":{"process":{"name":"\u009b\u202e","pid":1,"sandbox":"\n","path":"\r"}},"dst_endpoint":{"name":"\u0007"},)"
      R"("unmapped":{"syscall":"\n","errno_name":"\u2028","errno":1,"kind":"\u001b","hint":"\u0000"}})";
  const auto entry = ParseEntry(forged);
  ASSERT_TRUE(entry.has_value());
  for (const std::string& text : {OneLine(*entry, false), AllFields(*entry, false)}) {
    EXPECT_EQ(text.find('\x1b'), std::string::npos);
    EXPECT_EQ(text.find('\r'), std::string::npos);
    EXPECT_EQ(text.find("\xe2\x80"), std::string::npos);
  }
  EXPECT_EQ(OneLine(*entry, false).find('\n'), std::string::npos);
  EXPECT_NE(OneLine(*entry, true).find("\x1b["), std::string::npos) << "colours are ours";
}

}  // namespace
}  // namespace oarlock::audit
