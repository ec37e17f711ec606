// SPDX-License-Identifier: Apache-2.0
// Breaks filter programs on purpose. Each mutation must be found by running (FindDifference) and by the proof
// (FindCounterexample): the two are the guards of the generator, so they are tested on programs that are
// wrong.
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "tests/notif/filter_check.h"
#include "tests/notif/filter_proof.h"

namespace oarlock::filter_check {
namespace {

using Code = std::vector<sock_filter>;

constexpr uint16_t kLoad = BPF_LD | BPF_W | BPF_ABS;
constexpr uint16_t kAnd = BPF_ALU | BPF_AND | BPF_K;
constexpr uint16_t kJumpEqual = BPF_JMP | BPF_JEQ | BPF_K;
constexpr uint16_t kJumpGreater = BPF_JMP | BPF_JGT | BPF_K;
constexpr uint16_t kJumpGreaterEqual = BPF_JMP | BPF_JGE | BPF_K;
constexpr uint16_t kJumpSet = BPF_JMP | BPF_JSET | BPF_K;
constexpr uint16_t kReturn = BPF_RET | BPF_K;
constexpr uint32_t kEnosys = abi::kRetErrno | ENOSYS;
constexpr uint32_t kArgs = offsetof(abi::SeccompData, args);

size_t Find(const Code& code, uint16_t instruction, uint32_t k, size_t from = 0) {
  for (size_t at = from; at < code.size(); ++at)
    if (code[at].code == instruction && code[at].k == k) return at;
  ADD_FAILURE() << "no instruction " << instruction << ' ' << k << " to break";
  return code.size() - 1;
}
sock_filter& Get(Code& code, uint16_t instruction, uint32_t k, size_t from = 0) {
  return code[Find(code, instruction, k, from)];
}
// Where the arguments' programs begin: the first load of an argument.
size_t FirstArgument(const Code& code) {
  const auto found = std::ranges::find_if(
      code, [](const sock_filter& here) { return here.code == kLoad && here.k >= kArgs; });
  return static_cast<size_t>(found - code.begin());
}

struct Mutation {
  const char* name;
  std::function<void(Code&)> apply;
};

const Mutation kMutations[] = {
    {"DropTheCompareOfPtrace",
     [](Code& code) {
       auto& i = Get(code, kJumpEqual, 101);
       i.jt = i.jf;
     }},
    {"FlipTheFastOpenJump",
     [](Code& code) {
       auto& i = Get(code, kJumpSet, 0x20000000);
       std::swap(i.jt, i.jf);
     }},
    {"ForgetTheX32Bit",
     [](Code& code) {
       const size_t line = Find(code, kJumpGreaterEqual, abi::kX32Bit);
       code[line] = {kAnd, 0, 0, ~abi::kX32Bit};
       code[line + 1] = {BPF_JMP | BPF_JA, 0, 0, 0};  // in place of its return
     }},
    {"ForgetThePointersHighHalf", [](Code& code) { Get(code, kLoad, kArgs + 8 * 4 + 4).k = kArgs + 8 * 4; }},
    {"CompareTheWrongHalfOfClonesFlags",
     [](Code& code) {
       // The load before the test of the namespace bits.
       const size_t test = Find(code, kJumpSet, 0x7e028000);
       code[test - 1].k += 4;
     }},
    {"SwapNotifyForAllow", [](Code& code) { Get(code, kReturn, abi::kRetUserNotif).k = abi::kRetAllow; }},
    {"SwapTheDefaultForAllow",
     [](Code& code) { Get(code, kReturn, kEnosys, Find(code, kReturn, kEnosys) + 1).k = abi::kRetAllow; }},
    {"AllowX32", [](Code& code) { Get(code, kReturn, kEnosys).k = abi::kRetAllow; }},
    {"WidenTheSocketOptions", [](Code& code) { Get(code, kJumpEqual, 12, FirstArgument(code)).k = 13; }},
    {"WidenTheSocketTypes", [](Code& code) { Get(code, kAnd, 0xf).k = 0x7; }},
    {"ForgetTheTypesMask", [](Code& code) { Get(code, kAnd, 0xff00).k = 0xffffffff; }},
    {"AllowForeignArchitectures",
     [](Code& code) { Get(code, kReturn, abi::kRetKillProcess).k = abi::kRetAllow; }},
    {"KillTheThreadAlone", [](Code& code) { Get(code, kReturn, abi::kRetKillProcess).k = 0; }},
    {"TakeAnotherArchitecture",
     [](Code& code) { Get(code, kJumpEqual, abi::kAuditArchX86_64).k = abi::kAuditArchI386; }},
    {"SplitTheNumbersOneTooHigh",
     [](Code& code) {
       const auto split = std::ranges::find(code, kJumpGreater, &sock_filter::code);
       ASSERT_NE(split, code.end());
       ++split->k;
     }},
    {"JumpOneTooShort",
     [](Code& code) {
       const auto split = std::ranges::find_if(
           code, [](const sock_filter& here) { return here.code == kJumpGreater && here.jf > 1; });
       ASSERT_NE(split, code.end());
       --split->jf;
     }},
    {"ForgetSetuid", [](Code& code) { Get(code, kJumpSet, 04000).k = 02000; }},
    {"LookAtTheWrongArgument", [](Code& code) { Get(code, kLoad, kArgs + 8 * 3).k = kArgs + 8 * 2; }},
    {"LoadNoNumber", [](Code& code) { Get(code, kLoad, 0).k = 4; }},
    {"JumpOutOfTheProgram", [](Code& code) { Get(code, kJumpEqual, 12, FirstArgument(code)).jt = 255; }},
    {"EndWithoutReturn", [](Code& code) { code.pop_back(); }},
};

class FilterMutation : public testing::TestWithParam<Mutation> {};

TEST_P(FilterMutation, IsFoundByRunningAndByProof) {
  const Shape shape = {.network = Network::kConnect};
  const bpf::Program sound = Generated(Arch::kX86_64, shape);
  Code broken(sound.begin(), sound.end());
  GetParam().apply(broken);
  const std::string by_running = FindDifference(broken, Arch::kX86_64, shape);
  const std::string by_proof = FindCounterexample(broken, Arch::kX86_64, shape);
  EXPECT_NE(by_running, "");
  EXPECT_NE(by_proof, "");
  RecordProperty("running", by_running);
  RecordProperty("proof", by_proof);
}

std::string MutationName(const testing::TestParamInfo<Mutation>& mutation) { return mutation.param.name; }
INSTANTIATE_TEST_SUITE_P(OneByOne, FilterMutation, testing::ValuesIn(kMutations), MutationName);

// What one could do to an instruction. Not all of it makes a difference: an instruction may be a duplicate of
// another.
std::vector<sock_filter> Variants(const sock_filter& here) {
  std::vector<sock_filter> variants;
  const auto add = [&](const auto& change) {
    sock_filter variant = here;
    change(variant);
    variants.push_back(variant);
  };
  switch (BPF_CLASS(here.code)) {
    case BPF_LD:
      add([](sock_filter& v) { v.k ^= 4; });
      break;
    case BPF_ALU:
      add([](sock_filter& v) { v.k = 0xffffffff; });
      add([](sock_filter& v) { v.k &= v.k - 1; });
      break;
    case BPF_RET:
      for (const uint32_t verdict : {abi::kRetAllow, abi::kRetUserNotif, kEnosys, abi::kRetKillProcess})
        if (verdict != here.k) add([verdict](sock_filter& v) { v.k = verdict; });
      break;
    default:
      if (here.code == (BPF_JMP | BPF_JA)) {
        add([](sock_filter& v) { ++v.k; });
        break;
      }
      add([](sock_filter& v) { ++v.k; });
      add([](sock_filter& v) { v.jt = v.jf; });
      add([](sock_filter& v) { v.jf = v.jt; });
      add([](sock_filter& v) { ++v.jt; });
      add([](sock_filter& v) { ++v.jf; });
  }
  return variants;
}

// The x32 line is a second lock: x32 numbers have no row, so the default refuses them too. Deleting it
// changes nothing, and the line is there all the same (a caller pays one compare for it).
TEST(FilterMutations, X32IsRefusedTwice) {
  for (unsigned index = 0; index < kShapeCount; ++index) {
    const bpf::Program program = Generated(Arch::kX86_64, ShapeAt(index));
    EXPECT_EQ(program[3].code, kLoad);
    EXPECT_EQ(program[3].k, offsetof(abi::SeccompData, nr));
    EXPECT_EQ(program[4].code, kJumpGreaterEqual);
    EXPECT_EQ(program[4].k, abi::kX32Bit);
    const sock_filter& refused = program[5U + program[4].jt];
    EXPECT_EQ(refused.code, kReturn);
    EXPECT_EQ(refused.k, kEnosys);
  }
  const bpf::Program sound = Generated(Arch::kX86_64, Shape{});
  Code code(sound.begin(), sound.end());
  code[4].jt = code[4].jf;
  EXPECT_EQ(FindCounterexample(code, Arch::kX86_64, Shape{}), "");
}

// Small changes of every instruction. Whatever running finds, the proof must refute; and running, which tries
// edges alone, must not miss much that the proof refutes. All of them take an hour: a part here, the rest
// nightly.
#ifndef OARLOCK_MUTATION_STEP
#define OARLOCK_MUTATION_STEP 389
#endif
TEST(FilterMutations, RunningAndProofAgreeOnSmallChanges) {
  const Shape shape = {.network = Network::kConnect, .exec_strict = true, .age = Age::kNoTruncateRight};
  size_t seen = 0;
  size_t tried = 0;
  size_t without_effect = 0;
  size_t missed_by_running = 0;
  for (const Arch arch : {Arch::kX86_64, Arch::kAarch64}) {
    const bpf::Program sound = Generated(arch, shape);
    Code code(sound.begin(), sound.end());
    for (size_t at = 0; at < code.size(); ++at) {
      for (const sock_filter& variant : Variants(sound[at])) {
        if (seen++ % OARLOCK_MUTATION_STEP != 0) continue;
        code[at] = variant;
        ++tried;
        const std::string by_running = FindDifference(code, arch, shape);
        const std::string by_proof = FindCounterexample(code, arch, shape);
        if (by_running.empty()) ++(by_proof.empty() ? without_effect : missed_by_running);
        EXPECT_TRUE(by_running.empty() || !by_proof.empty())
            << bpf::Text(sound, at) << " became " << bpf::Text(code, at) << ": " << by_running;
      }
      code[at] = sound[at];
    }
  }
  std::printf("%zu changes, %zu without effect, %zu found by the proof alone\n", tried, without_effect,
              missed_by_running);
#if OARLOCK_MUTATION_STEP == 1
  EXPECT_LT(without_effect * 5, tried);
  EXPECT_LE(missed_by_running * 50, tried);
#endif
}

}  // namespace
}  // namespace oarlock::filter_check
