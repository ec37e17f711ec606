// SPDX-License-Identifier: Apache-2.0
#include "notif/filter/arguments.h"

#include <array>
#include <cstddef>
#include <optional>
#include <vector>

#include "notif/filter/verdict.h"

namespace oarlock::filter {
namespace {

constexpr uint32_t kAllBits = 0xffffffffU;

class RuleWriter {
 public:
  RuleWriter(Draft& draft, const ArgRule& rule) : draft_(draft), rule_(rule) {}

  void Write() {
    for (const ArgClause& clause : rule_.clauses) {
      const Label next_clause = draft_.NewLabel();
      for (size_t i = 0; i < clause.tests.size(); ++i) {
        const bool last = i + 1 == clause.tests.size();
        const Label holds = last ? Outcome(clause.outcome) : draft_.NewLabel();
        WriteTest(clause.tests[i], holds, next_clause);
        if (!last) Enter(holds);
      }
      Enter(next_clause);
    }
    Finish();
  }

 private:
  // What the accumulator holds: a word of the call's data under a mask.
  struct Loaded {
    uint32_t offset;
    uint32_t mask;
    friend bool operator==(const Loaded&, const Loaded&) = default;
  };
  struct Arrival {
    Label at;
    std::optional<Loaded> loaded;
  };

  static uint32_t LowWord(uint8_t arg) {
    return static_cast<uint32_t>(offsetof(abi::SeccompData, args)) + 8U * arg;
  }

  Label Outcome(Action action) {
    std::optional<Label>& label = outcomes_.at(static_cast<size_t>(action));
    if (!label) label = draft_.NewLabel();
    return *label;
  }

  // A word is loaded once for tests that follow each other on it, which is most of an ioctl's.
  void Want(Loaded wanted) {
    if (loaded_ == wanted) return;
    const bool whole = loaded_ && loaded_->offset == wanted.offset && loaded_->mask == kAllBits;
    if (!whole) draft_.Load(wanted.offset);
    if (wanted.mask != kAllBits) draft_.And(wanted.mask);
    loaded_ = wanted;
  }

  void Branch(uint16_t condition, uint32_t value, Label yes, Label no) {
    draft_.JumpIf(condition, value, yes, no);
    arrivals_.push_back({yes, loaded_});
    arrivals_.push_back({no, loaded_});
  }

  // All ways to a place must agree on the accumulator, or it is unknown there.
  void Enter(Label label) {
    draft_.Bind(label);
    bool first = true;
    for (const Arrival& arrival : arrivals_) {
      if (arrival.at != label) continue;
      if (first)
        loaded_ = arrival.loaded;
      else if (loaded_ != arrival.loaded)
        loaded_.reset();
      first = false;
    }
  }

  void WriteTest(const ArgTest& test, Label holds, Label fails) {
    const uint32_t low = LowWord(test.arg);
    if (test.op == ArgTest::Op::kPointerSet) {
      const Label high_half = draft_.NewLabel();
      Want({low, kAllBits});
      Branch(BPF_JEQ, 0, high_half, holds);
      Enter(high_half);
      Want({low + 4, kAllBits});
      Branch(BPF_JEQ, 0, fails, holds);
      return;
    }
    const bool is_in = test.op == ArgTest::Op::kIn;
    const Label among = is_in ? holds : fails;
    const Label not_among = is_in ? fails : holds;
    if (test.values.size() == 1 && test.values[0] == 0 && test.mask != kAllBits) {
      Want({low, kAllBits});
      Branch(BPF_JSET, test.mask, not_among, among);
      return;
    }
    Want({low, test.mask});
    for (size_t i = 0; i < test.values.size(); ++i) {
      const bool last = i + 1 == test.values.size();
      const Label otherwise = last ? not_among : draft_.NewLabel();
      Branch(BPF_JEQ, test.values[i], among, otherwise);
      if (!last) Enter(otherwise);
    }
  }

  // The label of the last clause's failure is bound here: `otherwise` comes first, then the outcomes.
  void Finish() {
    const std::optional<Label> otherwise = outcomes_.at(static_cast<size_t>(rule_.otherwise));
    if (otherwise) draft_.Bind(*otherwise);
    draft_.Return(Verdict(rule_.otherwise));
    for (const Action action : {Action::kAllow, Action::kNotify, Action::kEnosys}) {
      const std::optional<Label> label = outcomes_.at(static_cast<size_t>(action));
      if (!label || action == rule_.otherwise) continue;
      draft_.Bind(*label);
      draft_.Return(Verdict(action));
    }
  }

  Draft& draft_;
  const ArgRule& rule_;
  std::optional<Loaded> loaded_;
  std::vector<Arrival> arrivals_;
  std::array<std::optional<Label>, 4> outcomes_;  // by Action
};

}  // namespace

void EmitRule(Draft& draft, const ArgRule& rule) { RuleWriter(draft, rule).Write(); }

}  // namespace oarlock::filter
