// SPDX-License-Identifier: Apache-2.0
#include "tests/notif/filter_proof.h"

#include <z3++.h>

#include <cerrno>
#include <cstddef>
#include <map>
#include <optional>
#include <vector>

#include "tests/notif/filter_check.h"

namespace oarlock::filter_check {
namespace {

// By what a filter returns: the condition under which it does.
using Outcomes = std::map<uint32_t, z3::expr>;

// The input of a filter, symbolic: struct seccomp_data word by word.
class Input {
 public:
  explicit Input(z3::context& context) : context_(context) {}
  [[nodiscard]] z3::expr nr() const { return context_.bv_const("nr", 32); }
  [[nodiscard]] z3::expr arch() const { return context_.bv_const("arch", 32); }
  [[nodiscard]] z3::expr pointer() const { return context_.bv_const("ip", 64); }
  [[nodiscard]] z3::expr arg(unsigned index) const {
    return context_.bv_const(("arg" + std::to_string(index)).c_str(), 64);
  }
  [[nodiscard]] z3::expr Word(uint32_t offset) const {
    if (offset == offsetof(abi::SeccompData, nr)) return nr();
    if (offset == offsetof(abi::SeccompData, arch)) return arch();
    const uint32_t quad = offset / 8 * 8;
    const z3::expr whole = quad == offsetof(abi::SeccompData, instruction_pointer)
                               ? pointer()
                               : arg((quad - static_cast<uint32_t>(offsetof(abi::SeccompData, args))) / 8);
    return offset % 8 == 0 ? whole.extract(31, 0)
                           : whole.extract(63, 32);  // little-endian, as both architectures are
  }

 private:
  z3::context& context_;
};

// All paths at once: each instruction has the condition under which it runs and the accumulator it then
// meets. Jumps go forward, so one pass in order suffices.
class SymbolicRun {
 public:
  SymbolicRun(z3::context& context, const Input& input, bpf::Program program)
      : context_(context), input_(input), program_(program), states_(program.size()) {}

  // None, with `problem` set, for an instruction that our programs never contain.
  std::optional<Outcomes> Run(std::string& problem) {
    Arrive(0, {context_.bool_val(true), context_.bv_val(0, 32)});
    for (size_t at = 0; at < program_.size(); ++at) {
      if (!states_[at]) continue;
      if (Step(at, *states_[at])) continue;
      problem = bpf::Text(program_, at) + ": not an instruction that the proof knows";
      return std::nullopt;
    }
    return outcomes_;
  }

 private:
  struct State {
    z3::expr condition;
    z3::expr accumulator;
  };

  void Arrive(size_t at, const State& state) {
    std::optional<State>& known = states_.at(at);
    if (!known) {
      known.emplace(state);
      return;
    }
    if (!z3::eq(known->accumulator, state.accumulator))
      known->accumulator = z3::ite(state.condition, state.accumulator, known->accumulator);
    known->condition = known->condition || state.condition;
  }

  void Return(uint32_t verdict, const z3::expr& condition) {
    const auto [place, fresh] = outcomes_.emplace(verdict, condition);
    if (!fresh) place->second = place->second || condition;
  }

  bool Step(size_t at, const State& state) {
    const sock_filter& here = program_[at];
    const z3::expr operand = context_.bv_val(here.k, 32);
    switch (here.code) {
      case BPF_LD | BPF_W | BPF_ABS:
        Arrive(at + 1, {state.condition, input_.Word(here.k)});
        return true;
      case BPF_ALU | BPF_AND | BPF_K:
        Arrive(at + 1, {state.condition, state.accumulator & operand});
        return true;
      case BPF_JMP | BPF_JA:
        Arrive(at + 1 + here.k, state);
        return true;
      case BPF_JMP | BPF_JEQ | BPF_K:
        return Branch(at, state, state.accumulator == operand);
      case BPF_JMP | BPF_JGT | BPF_K:
        return Branch(at, state, z3::ugt(state.accumulator, operand));
      case BPF_JMP | BPF_JGE | BPF_K:
        return Branch(at, state, z3::uge(state.accumulator, operand));
      case BPF_JMP | BPF_JSET | BPF_K:
        return Branch(at, state, (state.accumulator & operand) != 0);
      case BPF_RET | BPF_K:
        Return(here.k, state.condition);
        return true;
      default:
        return false;
    }
  }

  bool Branch(size_t at, const State& state, const z3::expr& taken) {
    Arrive(at + 1 + program_[at].jt, {state.condition && taken, state.accumulator});
    Arrive(at + 1 + program_[at].jf, {state.condition && !taken, state.accumulator});
    return true;
  }

  z3::context& context_;
  const Input& input_;
  bpf::Program program_;
  std::vector<std::optional<State>> states_;
  Outcomes outcomes_;
};

// The table as a formula.
class TableFormula {
 public:
  TableFormula(z3::context& context, const Input& input) : context_(context), input_(input) {}

  Outcomes Build(Arch arch, const Shape& shape) {
    const z3::expr native = input_.arch() == context_.bv_val(AuditArch(arch), 32);
    z3::expr allow = context_.bool_val(false);
    z3::expr notify = context_.bool_val(false);
    for (const CallRow& row : Calls()) {
      if (Number(row, arch) < 0) continue;
      const z3::expr called = native && input_.nr() == context_.bv_val(Number(row, arch), 32);
      const Behaviour behaviour = BehaviourIn(row, shape);
      allow = allow || (called && Gives(behaviour, Action::kAllow));
      notify = notify || (called && Gives(behaviour, Action::kNotify));
    }
    // ENOSYS is the rest, for calls without a row (x32 and later ones) as for those whose row says so.
    Outcomes outcomes;
    outcomes.emplace(abi::kRetAllow, allow);
    outcomes.emplace(abi::kRetUserNotif, notify);
    outcomes.emplace(abi::kRetKillProcess, !native);
    outcomes.emplace(abi::kRetErrno | ENOSYS, native && !allow && !notify);
    return outcomes;
  }

 private:
  z3::expr Gives(const Behaviour& behaviour, Action wanted) {
    if (behaviour.action != Action::kArgs) return context_.bool_val(behaviour.action == wanted);
    z3::expr result = context_.bool_val(behaviour.rule->otherwise == wanted);
    for (size_t i = behaviour.rule->clauses.size(); i-- > 0;) {
      const ArgClause& clause = behaviour.rule->clauses[i];
      z3::expr holds = context_.bool_val(true);
      for (const ArgTest& test : clause.tests) holds = holds && Holds(test);
      result = z3::ite(holds, context_.bool_val(clause.outcome == wanted), result);
    }
    return result;
  }

  z3::expr Holds(const ArgTest& test) {
    const z3::expr arg = input_.arg(test.arg);
    if (test.op == ArgTest::Op::kPointerSet) return arg != context_.bv_val(0, 64);
    const z3::expr masked = arg.extract(31, 0) & context_.bv_val(test.mask, 32);
    z3::expr among = context_.bool_val(false);
    for (const uint32_t value : test.values) among = among || masked == context_.bv_val(value, 32);
    return test.op == ArgTest::Op::kIn ? among : !among;
  }

  z3::context& context_;
  const Input& input_;
};

std::string Counterexample(const z3::model& model, const Input& input) {
  const auto value = [&](const z3::expr& expression) {
    return " " + expression.decl().name().str() + "=" +
           std::to_string(model.eval(expression, true).get_numeral_uint64());
  };
  std::string text = "program and table differ for" + value(input.arch()) + value(input.nr());
  for (unsigned i = 0; i < 6; ++i) text += value(input.arg(i));
  return text;
}

}  // namespace

std::string FindCounterexample(bpf::Program program, Arch arch, const Shape& shape) {
  if (std::string why = bpf::WhyInvalid(program); !why.empty()) return why;
  z3::context context;
  const Input input(context);
  std::string problem;
  const std::optional<Outcomes> runs = SymbolicRun(context, input, program).Run(problem);
  if (!runs) return problem;
  const Outcomes table = TableFormula(context, input).Build(arch, shape);

  // Compared in both directions, so that a symbolic run that gave an input two outcomes would show.
  const z3::expr never = context.bool_val(false);
  const auto condition_of = [&](const Outcomes& outcomes, uint32_t verdict) {
    const auto found = outcomes.find(verdict);
    return found == outcomes.end() ? never : found->second;
  };
  z3::expr differs = never;
  for (const auto& [verdict, condition] : table)
    differs = differs || condition != condition_of(*runs, verdict);
  for (const auto& [verdict, condition] : *runs)
    if (!table.contains(verdict)) differs = differs || condition;
  // z3's own "qfbv" without the steps that find nothing here: 0.6 s a program instead of 1.0.
  const auto tactic = [&context](const char* name) { return z3::tactic(context, name); };
  z3::solver solver = (tactic("simplify") & tactic("propagate-values") & tactic("solve-eqs") &
                       tactic("bit-blast") & tactic("sat"))
                          .mk_solver();
  solver.add(differs);
  switch (solver.check()) {
    case z3::unsat:
      return "";
    case z3::sat:
      return Counterexample(solver.get_model(), input);
    case z3::unknown:
      break;
  }
  return "z3 gives no answer: " + solver.reason_unknown();
}

}  // namespace oarlock::filter_check
