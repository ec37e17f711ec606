// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/policy_command.h"
#include "policy/policy.h"

namespace oarlock::cli {
namespace {

class PolicyCommandTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = "/tmp/oarlock-command-XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  std::string Write(const std::string& text, mode_t mode = 0600) {
    const std::string path = directory_ + "/p.json";
    std::ofstream(path, std::ios::binary) << text;
    EXPECT_EQ(::chmod(path.c_str(), mode), 0);
    return path;
  }
  int Check(const std::string& file, bool json = false) {
    out_.str("");
    err_.str("");
    return PolicyCheck(file, json, out_, err_);
  }
  int Show(const std::string& file) {
    out_.str("");
    err_.str("");
    return PolicyShow(file, out_, err_);
  }

  std::string directory_;
  std::ostringstream out_, err_;
};

TEST_F(PolicyCommandTest, ASoundPolicyIsSilent) {
  EXPECT_EQ(Check(Write(R"({"module":"a"})")), 0);
  EXPECT_EQ(out_.str(), "");
  EXPECT_EQ(err_.str(), "");
  EXPECT_EQ(Check(directory_ + "/p.json", true), 0);
  EXPECT_EQ(out_.str(), "[]\n");
}

TEST_F(PolicyCommandTest, FindingsAreOneLineEach) {
  const std::string file = Write(R"({"nett":"none","proxy_port":0})");
  EXPECT_EQ(Check(file), 1);
  EXPECT_EQ(out_.str(), file + ": P_UNKNOWN /nett: unknown field \"nett\"; did you mean \"net\"?\n" + file +
                            ": P_RANGE /proxy_port: must be an integer from 1 to 65535 or null, got 0\n");
  EXPECT_EQ(err_.str(), "");
}

TEST_F(PolicyCommandTest, FindingsAreJson) {
  EXPECT_EQ(Check(Write("{\"a\\u001b\\n\": 1, \"gpu\": 1}"), true), 1);
  const auto array = nlohmann::json::parse(out_.str());
  ASSERT_EQ(array.size(), 2U);
  EXPECT_EQ(array[0].at("code"), "P_UNKNOWN");
  EXPECT_EQ(array[0].at("pointer"), "/a\x1b\n");
  EXPECT_EQ(array[1].at("code"), "P_TYPE");
  EXPECT_EQ(array[1].at("pointer"), "/gpu");
  for (const auto& finding : array) EXPECT_EQ(finding.size(), 3U);
  EXPECT_EQ(std::ranges::count(out_.str(), '\n'), 1);
}

TEST_F(PolicyCommandTest, WarningsAreNoFindings) {
  const std::string file = Write(R"({"rw":["/etc"]})");
  EXPECT_EQ(Check(file), 0);
  EXPECT_EQ(out_.str().substr(0, file.size() + 17), file + ": warning /rw/0: ");
  EXPECT_EQ(Check(file, true), 0);
  const auto array = nlohmann::json::parse(out_.str());
  ASSERT_EQ(array.size(), 1U);
  EXPECT_EQ(array[0].at("code"), "warning");
}

TEST_F(PolicyCommandTest, WhatCannotBeReadIsSeventy) {
  EXPECT_EQ(Check(directory_ + "/absent"), 70);
  EXPECT_EQ(out_.str(), "");
  EXPECT_NE(err_.str().find("P_READ : "), std::string::npos) << err_.str();
  EXPECT_EQ(Check(Write("{}", 0666), true), 70);
  EXPECT_EQ(Show(directory_ + "/p.json"), 70);
  EXPECT_EQ(out_.str(), "");
}

TEST_F(PolicyCommandTest, ShowsTheEffectivePolicy) {
  EXPECT_EQ(Show(Write("{\n \"module\": \"a\",\n \"x-note\": 1}")), 0);
  EXPECT_EQ(std::ranges::count(out_.str(), '\n'), 1);
  const auto shown = nlohmann::json::parse(out_.str());
  EXPECT_EQ(shown.at("module"), "a");
  EXPECT_EQ(shown.at("net"), "none");
  EXPECT_EQ(shown.at("limits").at("nofile"), 4096);
  EXPECT_FALSE(shown.contains("x-note"));
  // Keys in order, at every level.
  EXPECT_EQ(shown.dump() + "\n", out_.str());
  EXPECT_EQ(Show(Write(out_.str())), 0);
}

TEST_F(PolicyCommandTest, ShowsAHostileValueAsAscii) {
  EXPECT_EQ(Show(Write("{\"env\":{\"set\":{\"A\":\"\\u009b2J\\u001b\\u007f\\u202e\"}}}")), 0);
  for (const char c : out_.str()) EXPECT_TRUE(c == '\n' || (c >= 0x20 && c < 0x7f));
  EXPECT_EQ(Show(Write(out_.str())), 0);
}

TEST_F(PolicyCommandTest, ShowsNoPolicyThatIsNotSound) {
  EXPECT_EQ(Show(Write(R"({"net":"any"})")), 1);
  EXPECT_EQ(out_.str(), "");
  EXPECT_NE(err_.str().find("P_RANGE /net: "), std::string::npos);
}

TEST_F(PolicyCommandTest, AHostileFileStaysInItsLines) {
  EXPECT_EQ(
      Check(Write("{\"\\u001b[2J\\n\": \"\\u0007\", \"module\": \"\\u001b\\n\", \"net\": \"\\u009b\"}")), 1);
  EXPECT_EQ(std::ranges::count(out_.str(), '\n'), 3);
  for (const char c : out_.str()) EXPECT_TRUE(c == '\n' || (c >= 0x20 && c < 0x7f));
}

}  // namespace
}  // namespace oarlock::cli
