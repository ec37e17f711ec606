// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <vector>

#include "notif/filter/draft.h"
#include "tests/notif/bpf_eval.h"

namespace oarlock::filter {
namespace {

TEST(Draft, JumpsGoToTheirLabelsAndUnreachableCodeIsDropped) {
  Draft draft;
  const Label equal = draft.NewLabel();
  const Label other = draft.NewLabel();
  const Label end = draft.NewLabel();
  draft.Load(0);
  draft.JumpIf(BPF_JEQ, 7, equal, other);
  draft.Return(99);  // nothing leads here
  draft.Bind(other);
  draft.Jump(end);
  draft.Return(98);
  draft.Bind(equal);
  draft.Return(1);
  draft.Bind(end);
  draft.And(0xf0);
  draft.Return(2);
  const std::vector<sock_filter> program = draft.Assemble();
  EXPECT_EQ(program.size(), 6U);
  EXPECT_EQ(bpf::WhyInvalid(program), "");
  EXPECT_EQ(bpf::Run(program, {.nr = 7, .arch = 0, .instruction_pointer = 0, .args = {}}), 1U);
  EXPECT_EQ(bpf::Run(program, {.nr = 8, .arch = 0, .instruction_pointer = 0, .args = {}}), 2U);
}

// A jump over `distance` instructions that can all be reached.
std::vector<sock_filter> JumpOver(size_t distance) {
  Draft draft;
  const Label far = draft.NewLabel();
  const Label near = draft.NewLabel();
  draft.Load(0);
  draft.JumpIf(BPF_JGT, 1, far, near);
  draft.Bind(near);
  for (size_t i = 0; i + 1 < distance; ++i) draft.And(static_cast<uint32_t>(i));
  draft.Return(1);
  draft.Bind(far);
  draft.Return(2);
  return draft.Assemble();
}

TEST(Draft, AConditionalJumpReaches255Instructions) {
  const std::vector<sock_filter> program = JumpOver(255);
  EXPECT_EQ(program[1].jt, 255);
  EXPECT_EQ(bpf::Run(program, {.nr = 2, .arch = 0, .instruction_pointer = 0, .args = {}}), 2U);
}

TEST(DraftDeathTest, AConditionalJumpDoesNotReach256) { EXPECT_DEATH((void)JumpOver(256), "jumps over"); }

TEST(DraftDeathTest, ALabelIsBoundOnceAndBeforeTheEnd) {
  Draft twice;
  const Label label = twice.NewLabel();
  twice.Bind(label);
  EXPECT_DEATH(twice.Bind(label), "bound twice");

  Draft never;
  never.Jump(never.NewLabel());
  EXPECT_DEATH((void)never.Assemble(), "names no instruction");
}

TEST(DraftDeathTest, AProgramGoesForwardAndEndsInAReturn) {
  Draft back;
  const Label start = back.NewLabel();
  back.Bind(start);
  back.Load(0);
  back.Jump(start);
  EXPECT_DEATH((void)back.Assemble(), "jumps back");

  Draft open;
  open.Load(0);
  EXPECT_DEATH((void)open.Assemble(), "falls off");
}

}  // namespace
}  // namespace oarlock::filter
