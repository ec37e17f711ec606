// SPDX-License-Identifier: Apache-2.0
// What doctor makes of each Landlock ABI: kernels that this host is not.
#include <gtest/gtest.h>

#include "cli/doctor.h"
#include "notif/abi/landlock.h"
#include "policy/report.h"

namespace oarlock::cli::doctor {
namespace {

TEST(DoctorRightsTest, EveryAbi) {
  for (int abi = 1; abi <= abi::kHighestLandlockAbi; ++abi) {
    SCOPED_TRACE(abi);
    const Check check = JudgeLandlock(abi);
    EXPECT_EQ(check.id, "landlock.rights");
    EXPECT_TRUE(check.found.starts_with("ABI " + std::to_string(abi) + ":")) << check.found;
    // As the report judges it, so that doctor and a launch never differ.
    policy::Facts facts;
    facts.landlock_abi = abi;
    facts.listener = true;
    facts.age = AgeOf(abi, true, true);
    EXPECT_EQ(policy::StateOf("ipc", facts, nullptr).state, policy::State::kEnforced);
    EXPECT_EQ(policy::StateOf("filesystem", facts, nullptr).state, policy::State::kEnforced);
    // What Landlock lacks the supervisor does, without a second wall.
    EXPECT_EQ(check.verdict, abi >= 6 ? Verdict::kOk : Verdict::kLimited) << check.found;
    EXPECT_EQ(check.remedy, abi >= 6 ? "" : "use Linux 6.12 or later");
    EXPECT_FALSE(check.code.has_value());
    // A filter that knew nothing of the ABI would leave signals open, and the report says so.
    facts.age = Age::kCurrent;
    EXPECT_EQ(policy::StateOf("ipc", facts, nullptr).state, abi >= 6 ? policy::State::kEnforced : policy::State::kUnavailable);
  }
}

TEST(DoctorRightsTest, GapsAreNamedUntilTheyAreClosed) {
  const auto names = [](int abi, const char* what) { return JudgeLandlock(abi).found.find(what) != std::string::npos; };
  EXPECT_TRUE(names(1, "EXDEV"));
  EXPECT_FALSE(names(2, "EXDEV"));
  EXPECT_TRUE(names(2, "truncation"));
  EXPECT_FALSE(names(3, "truncation"));
  EXPECT_TRUE(names(5, "signals"));
  EXPECT_FALSE(names(6, "signals"));
  EXPECT_TRUE(names(3, "TCP"));
  EXPECT_FALSE(names(4, "TCP"));
  EXPECT_TRUE(names(8, "pathname unix"));
  EXPECT_FALSE(names(9, "pathname unix"));
  EXPECT_TRUE(names(9, "UDP"));
  EXPECT_EQ(JudgeLandlock(10).found, "ABI 10: every right that we use");
}

}  // namespace
}  // namespace oarlock::cli::doctor
