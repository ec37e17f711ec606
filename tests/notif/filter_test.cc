// SPDX-License-Identifier: Apache-2.0
// Runs every filter program and compares it with the call table, over numbers and over all edges of the
// rules.
#include <gtest/gtest.h>

#include <string>
#include <tuple>

#include "tests/notif/filter_check.h"

namespace oarlock::filter_check {
namespace {

class FilterPrograms : public testing::TestWithParam<std::tuple<Arch, unsigned>> {};

TEST_P(FilterPrograms, DoWhatTheTableSays) {
  const auto [arch, index] = GetParam();
  const Shape shape = ShapeAt(index);
  EXPECT_EQ(FindDifference(Generated(arch, shape), arch, shape), "");
}

std::string CaseName(const testing::TestParamInfo<std::tuple<Arch, unsigned>>& program) {
  return ProgramName(std::get<Arch>(program.param), ShapeAt(std::get<unsigned>(program.param)));
}
INSTANTIATE_TEST_SUITE_P(EveryShape, FilterPrograms,
                         testing::Combine(testing::Values(Arch::kX86_64, Arch::kAarch64),
                                          testing::Range(0U, kShapeCount)),
                         CaseName);

}  // namespace
}  // namespace oarlock::filter_check
