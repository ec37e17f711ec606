// SPDX-License-Identifier: Apache-2.0
#include "notif/filter/compile.h"

#include <cstddef>
#include <optional>
#include <span>

#include "notif/base/check.h"
#include "notif/filter/arguments.h"
#include "notif/filter/verdict.h"

namespace oarlock::filter {
namespace {

// Rules by address: the table gives calls with the same rule the same one.
struct RuleCode {
  const ArgRule* rule;
  Label label;
};

void EmitArchitecture(Draft& draft, Arch arch) {
  const Label foreign = draft.NewLabel();
  const Label native = draft.NewLabel();
  draft.Load(offsetof(abi::SeccompData, arch));
  draft.JumpIf(BPF_JEQ, AuditArch(arch), native, foreign);
  draft.Bind(foreign);
  draft.Return(abi::kRetKillProcess);
  draft.Bind(native);
  draft.Load(offsetof(abi::SeccompData, nr));
  if (arch != Arch::kX86_64) return;
  // x32 has x86_64's architecture value. Its numbers, and those with any bit above, are calls that nobody
  // allowed.
  const Label x32 = draft.NewLabel();
  const Label plain = draft.NewLabel();
  draft.JumpIf(BPF_JGE, abi::kX32Bit, x32, plain);
  draft.Bind(x32);
  draft.Return(kEnosysVerdict);
  draft.Bind(plain);
}

// Follows the program without looking at arguments: the verdict, or none where it wants to see one.
std::optional<uint32_t> Follow(std::span<const sock_filter> program, uint32_t nr, uint32_t arch) {
  uint32_t accumulator = 0;
  for (size_t at = 0;;) {
    const sock_filter& here = program[at++];
    if (BPF_CLASS(here.code) == BPF_RET) return here.k;
    if (BPF_CLASS(here.code) == BPF_LD) {
      if (here.k > offsetof(abi::SeccompData, arch)) return std::nullopt;
      accumulator = here.k == offsetof(abi::SeccompData, arch) ? arch : nr;
      continue;
    }
    OARLOCK_CHECK(BPF_CLASS(here.code) == BPF_JMP, "code %#x before any argument is loaded", here.code);
    switch (BPF_OP(here.code)) {
      case BPF_JA:
        at += here.k;
        break;
      case BPF_JEQ:
        at += accumulator == here.k ? here.jt : here.jf;
        break;
      case BPF_JGT:
        at += accumulator > here.k ? here.jt : here.jf;
        break;
      case BPF_JGE:
        at += accumulator >= here.k ? here.jt : here.jf;
        break;
      default:
        OARLOCK_CHECK(false, "code %#x before any argument is loaded", here.code);
    }
  }
}

// The tests prove whole programs; this holds where no test is built, against another release of libseccomp.
void CheckNumbersOf(std::span<const sock_filter> program, Arch arch, const Shape& shape) {
  for (uint32_t nr = 0; nr < 1024; ++nr) {
    const CallRow* row = FindCall(arch, nr);
    const Behaviour behaviour =
        row != nullptr ? BehaviourIn(*row, shape) : Behaviour{Action::kEnosys, nullptr};
    const std::optional<uint32_t> verdict = Follow(program, nr, AuditArch(arch));
    if (behaviour.action == Action::kArgs)
      OARLOCK_CHECK(!verdict, "call %u needs its arguments, but the program returns %#x", nr, *verdict);
    else
      OARLOCK_CHECK(verdict == Verdict(behaviour.action), "call %u: %#x", nr, verdict.value_or(0));
    OARLOCK_CHECK(Follow(program, nr, ~AuditArch(arch)) == abi::kRetKillProcess);
  }
}

}  // namespace

std::vector<sock_filter> Compile(Arch arch, const Shape& shape, Layout layout) {
  Draft draft;
  std::vector<RuleCode> rules;
  std::vector<Case> cases;
  for (const CallRow& row : Calls()) {
    if (Number(row, arch) < 0) continue;
    const Behaviour behaviour = BehaviourIn(row, shape);
    Case entry = {.nr = static_cast<uint32_t>(Number(row, arch)), .verdict = 0, .code = std::nullopt};
    if (behaviour.action == Action::kArgs) {
      for (const RuleCode& known : rules)
        if (known.rule == behaviour.rule) entry.code = known.label;
      if (!entry.code) entry.code = rules.emplace_back(behaviour.rule, draft.NewLabel()).label;
    } else {
      entry.verdict = Verdict(behaviour.action);
    }
    cases.push_back(entry);
  }

  EmitArchitecture(draft, arch);
  EmitDispatch(draft, cases, layout);
  for (const RuleCode& code : rules) {
    draft.Bind(code.label);
    EmitRule(draft, *code.rule);
  }

  std::vector<sock_filter> program = draft.Assemble();
  OARLOCK_CHECK(program.size() <= abi::kMaxInstructions, "%zu instructions", program.size());
  CheckNumbersOf(program, arch, shape);
  return program;
}

}  // namespace oarlock::filter
