// SPDX-License-Identifier: Apache-2.0
#include "tests/notif/filter_proof.h"

#include <gtest/gtest.h>

#include <string>
#include <tuple>

#include "tests/notif/filter_check.h"

namespace oarlock::filter_check {
namespace {

// One case for each program, so that CTest spreads them over the processors.
class FilterProof : public testing::TestWithParam<std::tuple<Arch, unsigned>> {};

TEST_P(FilterProof, ProgramEqualsTableForAllInputs) {
  const auto [arch, index] = GetParam();
  const Shape shape = ShapeAt(index);
  EXPECT_EQ(FindCounterexample(Generated(arch, shape), arch, shape), "");
}

std::string CaseName(const testing::TestParamInfo<std::tuple<Arch, unsigned>>& program) {
  return ProgramName(std::get<Arch>(program.param), ShapeAt(std::get<unsigned>(program.param)));
}
INSTANTIATE_TEST_SUITE_P(EveryShape, FilterProof,
                         testing::Combine(testing::Values(Arch::kX86_64, Arch::kAarch64),
                                          testing::Range(0U, kShapeCount)),
                         CaseName);

}  // namespace
}  // namespace oarlock::filter_check
