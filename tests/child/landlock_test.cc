// SPDX-License-Identifier: Apache-2.0
#include "child/landlock.h"

#include <gtest/gtest.h>

namespace oarlock::child {
namespace {

struct Row {
  int abi;
  uint64_t fs, net, scoped;
  uint32_t restrict_flags;
};

// By hand from landlock(7), in plain numbers: a table that is compared with itself proves nothing.
constexpr Row kRows[] = {
    {1, 0x1fff, 0x0, 0x0, 0x0},    // thirteen rights
    {2, 0x3fff, 0x0, 0x0, 0x0},    // refer
    {3, 0x7fff, 0x0, 0x0, 0x0},    // truncate
    {4, 0x7fff, 0x3, 0x0, 0x0},    // TCP bind and connect
    {5, 0xffff, 0x3, 0x0, 0x0},    // device ioctl
    {6, 0xffff, 0x3, 0x3, 0x0},    // abstract sockets, signals
    {7, 0xffff, 0x3, 0x3, 0x7},    // log flags
    {8, 0xffff, 0x3, 0x3, 0x7},    // TSYNC: not used, the launcher has one thread
    {9, 0x1ffff, 0x3, 0x3, 0x7},   // resolve_unix
    {10, 0x1ffff, 0xf, 0x3, 0x7},  // UDP
    {11, 0x1ffff, 0xf, 0x3, 0x7},
};

TEST(RightsOf, EveryAbi) {
  for (const Row& row : kRows) {
    SCOPED_TRACE(row.abi);
    const LandlockRights rights = RightsOf(row.abi);
    EXPECT_EQ(rights.fs, row.fs);
    EXPECT_EQ(rights.net, row.net);
    EXPECT_EQ(rights.scoped, row.scoped);
    EXPECT_EQ(rights.restrict_flags, row.restrict_flags);
  }
  static_assert(std::size(kRows) == abi::kHighestLandlockAbi);
}

TEST(RightsOf, GrowsOnlyAndEndsSomewhere) {
  EXPECT_EQ(RightsOf(0).fs, 0U);
  EXPECT_EQ(RightsOf(-1).fs, 0U);
  for (int abi = 1; abi < 100; ++abi) {
    const LandlockRights before = RightsOf(abi - 1), now = RightsOf(abi);
    EXPECT_EQ(before.fs & ~now.fs, 0U) << abi;
    EXPECT_EQ(before.net & ~now.net, 0U) << abi;
    EXPECT_EQ(before.scoped & ~now.scoped, 0U) << abi;
    EXPECT_EQ(before.restrict_flags & ~now.restrict_flags, 0U) << abi;
  }
  // A newer kernel than we know is asked for nothing that we do not know.
  EXPECT_EQ(RightsOf(99).fs, RightsOf(abi::kHighestLandlockAbi).fs);
  EXPECT_EQ(RightsOf(99).net, RightsOf(abi::kHighestLandlockAbi).net);
}

// This kernel takes exactly what the table says of its ABI, and nothing of the next.
TEST(RightsOf, AgreesWithThisKernel) {
  const auto abi = LandlockAbi();
  if (!abi) GTEST_SKIP() << abi.error().Message();
  EXPECT_GE(*abi, 1);
  const std::vector<PathRule> none;
  for (int lower = 1; lower <= std::min(*abi, abi::kHighestLandlockAbi); ++lower) {
    const auto ruleset = MakeRuleset(RightsOf(lower), none);
    EXPECT_TRUE(ruleset) << "ABI " << lower << ": " << ruleset.error().Line();
  }
  const LandlockRights own = RightsOf(*abi);
  for (int higher = *abi + 1; higher <= abi::kHighestLandlockAbi; ++higher) {
    const LandlockRights rights = RightsOf(higher);
    if (rights.fs == own.fs && rights.net == own.net && rights.scoped == own.scoped) continue;
    const auto ruleset = MakeRuleset(RightsOf(higher), none);
    ASSERT_FALSE(ruleset) << "ABI " << higher;
    EXPECT_EQ(ruleset.error().code, Code::kLandlock);
  }
}

TEST(RightsOf, ErrataAreKnownOrRefused) {
  const auto errata = LandlockErrata();
  if (errata) EXPECT_GE(*errata, 0);
}

}  // namespace
}  // namespace oarlock::child
