// SPDX-License-Identifier: Apache-2.0
#include "notif/filter/draft.h"

#include <limits>

#include "notif/base/check.h"

namespace oarlock::filter {

Label Draft::NewLabel() {
  places_.emplace_back();
  return static_cast<Label>(places_.size() - 1);
}

void Draft::Bind(Label label) {
  std::optional<size_t>& place = places_.at(static_cast<size_t>(label));
  OARLOCK_CHECK(!place, "label %u is bound twice", static_cast<unsigned>(label));
  place = nodes_.size();
}

void Draft::Load(uint32_t offset) { nodes_.push_back({BPF_LD | BPF_W | BPF_ABS, offset, {}, {}}); }
void Draft::And(uint32_t mask) { nodes_.push_back({BPF_ALU | BPF_AND | BPF_K, mask, {}, {}}); }
void Draft::Jump(Label target) { nodes_.push_back({BPF_JMP | BPF_JA, 0, target, {}}); }
void Draft::Return(uint32_t verdict) { nodes_.push_back({BPF_RET | BPF_K, verdict, {}, {}}); }

void Draft::JumpIf(uint16_t condition, uint32_t value, Label yes, Label no) {
  OARLOCK_CHECK(condition == BPF_JEQ || condition == BPF_JGT || condition == BPF_JGE ||
                condition == BPF_JSET);
  nodes_.push_back({static_cast<uint16_t>(BPF_JMP | condition | BPF_K), value, yes, no});
}

size_t Draft::At(Label label) const {
  const std::optional<size_t>& place = places_.at(static_cast<size_t>(label));
  OARLOCK_CHECK(place && *place < nodes_.size(), "label %u names no instruction",
                static_cast<unsigned>(label));
  return *place;
}

std::vector<bool> Draft::Reachable() const {
  std::vector<bool> reached(nodes_.size());
  reached.at(0) = true;
  // Jumps go forward only, so one pass in order meets each node after all that lead to it.
  for (size_t i = 0; i < nodes_.size(); ++i) {
    if (!reached[i]) continue;
    const Node& node = nodes_[i];
    if (BPF_CLASS(node.code) == BPF_RET) continue;
    if (!node.yes) {
      OARLOCK_CHECK(i + 1 < nodes_.size(), "the program falls off its end");
      reached[i + 1] = true;
      continue;
    }
    for (const std::optional<Label>& target : {node.yes, node.no}) {
      if (!target) continue;
      OARLOCK_CHECK(At(*target) > i, "instruction %zu jumps back to %zu", i, At(*target));
      reached[At(*target)] = true;
    }
  }
  return reached;
}

std::vector<sock_filter> Draft::Assemble() const {
  const std::vector<bool> reached = Reachable();
  std::vector<size_t> place(nodes_.size());
  size_t count = 0;
  for (size_t i = 0; i < nodes_.size(); ++i) {
    place[i] = count;
    if (reached[i]) ++count;
  }

  std::vector<sock_filter> program;
  program.reserve(count);
  for (size_t i = 0; i < nodes_.size(); ++i) {
    if (!reached[i]) continue;
    const Node& node = nodes_[i];
    sock_filter instruction = {node.code, 0, 0, node.k};
    const auto offset = [&](Label label) { return place[At(label)] - place[i] - 1; };
    if (node.no) {
      const size_t yes = offset(*node.yes);
      const size_t no = offset(*node.no);
      constexpr size_t kFarthest = std::numeric_limits<uint8_t>::max();
      OARLOCK_CHECK(yes <= kFarthest && no <= kFarthest, "instruction %zu jumps over %zu and %zu", i, yes,
                    no);
      instruction.jt = static_cast<uint8_t>(yes);
      instruction.jf = static_cast<uint8_t>(no);
    } else if (node.yes) {
      instruction.k = static_cast<uint32_t>(offset(*node.yes));
    }
    program.push_back(instruction);
  }
  return program;
}

}  // namespace oarlock::filter
