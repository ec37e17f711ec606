// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <linux/filter.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace oarlock::filter {

// A place in a Draft. Made before or after the code that it names.
enum class Label : uint32_t {};

// A classic BPF program under construction, with labels where the machine has offsets. Build time only:
// whatever cannot be expressed (a label never bound, a conditional jump over more than 255 instructions) is
// our bug and stops the generator.
//
// Only the instructions that the kernel's constant-allow emulator knows can be written (loads of words, AND,
// jumps by constants, returns), so that a program's cached calls depend on nothing else.
class Draft {
 public:
  [[nodiscard]] Label NewLabel();
  void Bind(Label label);  // names the next instruction
  void Load(uint32_t offset);
  void And(uint32_t mask);
  void Jump(Label target);
  // `condition` is BPF_JEQ, BPF_JGT, BPF_JGE or BPF_JSET.
  void JumpIf(uint16_t condition, uint32_t value, Label yes, Label no);
  void Return(uint32_t verdict);

  // The instructions that can be reached from the first, in the order written. Every path ends in a return.
  [[nodiscard]] std::vector<sock_filter> Assemble() const;

 private:
  struct Node {
    uint16_t code;
    uint32_t k;
    std::optional<Label> yes;  // set for jumps
    std::optional<Label> no;   // set for conditional jumps
  };
  [[nodiscard]] size_t At(Label label) const;
  [[nodiscard]] std::vector<bool> Reachable() const;

  std::vector<Node> nodes_;
  std::vector<std::optional<size_t>> places_;  // by label
};

}  // namespace oarlock::filter
