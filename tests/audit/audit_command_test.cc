// SPDX-License-Identifier: Apache-2.0
#include "cli/audit_command.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>

#include "tests/audit/support.h"

namespace oarlock::cli {
namespace {

using audit::testing::FormatLine;

struct Outcome {
  int code;
  std::string out, err;
};

class AuditCommandTest : public ::testing::Test {
 protected:
  AuditCommandTest() {
    log_ = directory_.path("audit.jsonl");
    std::string text;
    Add(Refusal::kTcpNotProxy, &text);
    Add(Refusal::kUnixAbsent, &text);
    Add(Refusal::kUnixNotBroker, &text);
    audit::testing::WriteFile(log_, text);
    list_.source.log = log_;
  }
  void Add(Refusal refusal, std::string* text) {
    audit::Record record = audit::testing::SampleCall(refusal, "connect", session_);
    record.real_us += 1'000'000 * ++sequence_;
    audit::testing::SetAddress(record, refusal == Refusal::kTcpNotProxy
                                           ? audit::testing::Inet4(0xc0000201, 443)
                                           : audit::testing::Unix("/run/x"));
    const audit::Stamp stamp{.sequence = sequence_, .id = Ulid(sequence_, {1})};
    ids_.emplace_back(stamp.id.text());
    lines_.push_back(FormatLine(record, stamp));
    *text += lines_.back() + "\n";
  }
  Outcome List() {
    std::ostringstream out, err;
    const int code = AuditList(list_, out, err);
    return {code, out.str(), err.str()};
  }
  Outcome Show(const std::string& id, bool json = false) {
    std::ostringstream out, err;
    AuditSource source = list_.source;
    source.json = json;
    const int code = AuditShow(id, source, out, err);
    return {code, out.str(), err.str()};
  }
  static size_t Count(const std::string& text) { return static_cast<size_t>(std::ranges::count(text, '\n')); }

  audit::testing::TempDirectory directory_;
  audit::SessionFacts session_ = audit::testing::SampleSession();
  std::string log_;
  uint64_t sequence_ = 0;
  std::vector<std::string> ids_, lines_;
  AuditListOptions list_;
};

TEST_F(AuditCommandTest, ListsWhatAPersonShouldSee) {
  const Outcome outcome = List();
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.err, "");
  EXPECT_EQ(outcome.out,
            "2023-11-14T22:15:24.456789Z DENY TCP_NOT_PROXY "
            "curl[4001] connect ipv4 192.0.2.1:443 -> EACCES\n"
            "2023-11-14T22:15:26.456789Z DENY UNIX_NOT_BROKER "
            "curl[4001] connect unix /run/x -> EACCES\n");
  list_.all = true;
  EXPECT_EQ(Count(List().out), 3U);
}

TEST_F(AuditCommandTest, JsonIsTheLogsOwnLines) {
  list_.source.json = true;
  EXPECT_EQ(List().out, lines_[0] + "\n" + lines_[2] + "\n");
  list_.source.terminal = true;
  EXPECT_EQ(List().out, lines_[0] + "\n" + lines_[2] + "\n");
}

TEST_F(AuditCommandTest, Filters) {
  list_.reason = "unix_not_broker";
  EXPECT_EQ(Count(List().out), 1U);
  list_.reason = "UNIX_ABSENT";
  EXPECT_EQ(Count(List().out), 1U) << "asked for by name, a probe is shown";
  list_.reason.clear();
  list_.session = std::string(session_.id.text());
  EXPECT_EQ(Count(List().out), 2U);
  list_.session = "01HF7YAT";
  EXPECT_EQ(Count(List().out), 2U);
  list_.session = "nobody";
  EXPECT_EQ(List().out, "");
  EXPECT_EQ(List().code, 0);
  list_.session.clear();
  list_.process = "curl";
  EXPECT_EQ(Count(List().out), 2U);
  list_.target = ":443";
  EXPECT_EQ(Count(List().out), 1U);
  list_.target.clear();
  list_.since = "2023-11-14T22:15:26Z";
  EXPECT_EQ(Count(List().out), 1U);
  list_.until = "2023-11-14T22:15:26.4Z";
  EXPECT_EQ(Count(List().out), 0U);
  list_.until.clear();
  list_.since = "1h";
  EXPECT_EQ(Count(List().out), 0U);
}

TEST_F(AuditCommandTest, UsageErrors) {
  list_.reason = "NO_SUCH_CODE\x1b";
  Outcome outcome = List();
  EXPECT_EQ(outcome.code, 64);
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(outcome.err.find('\x1b'), std::string::npos);
  list_.reason.clear();
  list_.since = "yesterday";
  outcome = List();
  EXPECT_EQ(outcome.code, 64);
  EXPECT_NE(outcome.err.find("--since 'yesterday' is no moment"), std::string::npos);
  EXPECT_EQ(Show("short").code, 64);
  EXPECT_EQ(Show("").code, 64);
}

TEST_F(AuditCommandTest, UnreadableLogs) {
  list_.source.log = directory_.path("none");
  const Outcome outcome = List();
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find(list_.source.log), std::string::npos);
  EXPECT_EQ(Show(ids_[0]).code, 2);
}

TEST_F(AuditCommandTest, BadLinesAreSaid) {
  audit::testing::WriteFile(log_, "junk\n" + lines_[0] + "\n");
  const Outcome outcome = List();
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(Count(outcome.out), 1U);
  EXPECT_NE(outcome.err.find("1 lines are no records"), std::string::npos);
}

TEST_F(AuditCommandTest, ShowsOneRecord) {
  list_.ids = true;
  EXPECT_EQ(List().out.substr(0, 27), ids_[0] + " ");
  Outcome outcome = Show(ids_[1]);  // a probe, and still
  EXPECT_EQ(outcome.code, 0);
  EXPECT_NE(outcome.out.find("reason    UNIX_ABSENT\n"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("target    unix /run/x\n"), std::string::npos);
  EXPECT_NE(outcome.out.find("errno     ENOENT (2)\n"), std::string::npos);
  EXPECT_NE(outcome.out.find("rule      unix.well_known\n"), std::string::npos);
  EXPECT_EQ(outcome.out.find('\x1b'), std::string::npos);
  outcome = Show(ids_[1], true);
  EXPECT_EQ(outcome.out, lines_[1] + "\n");
  outcome = Show("01HF7YAT00041061050R3GG28B");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.out, "");
  EXPECT_NE(outcome.err.find("no record"), std::string::npos);
}

TEST_F(AuditCommandTest, ColoursOnlyWhenAsked) {
  EXPECT_EQ(List().out.find('\x1b'), std::string::npos);
  list_.source.colour = true;
  EXPECT_NE(List().out.find('\x1b'), std::string::npos);
}

TEST_F(AuditCommandTest, WithoutALogAnywhere) {
  if (::access("/var/log/oarlock/audit.jsonl", R_OK) == 0) GTEST_SKIP() << "this machine has one";
  ASSERT_EQ(::setenv("XDG_STATE_HOME", directory_.path("state").c_str(), 1), 0);
  list_.source.log.clear();
  const Outcome outcome = List();
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find("--log"), std::string::npos);
}

}  // namespace
}  // namespace oarlock::cli
