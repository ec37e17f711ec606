// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "notif/calls.h"
#include "tests/notif/bpf_eval.h"

// Does a filter program do what the call table says? By running it; filter_proof.h asks the same of all
// inputs at once.
namespace oarlock::filter_check {

using Args = std::array<uint64_t, 6>;

[[nodiscard]] constexpr uint32_t AuditArch(Arch arch) {
  return arch == Arch::kX86_64 ? abi::kAuditArchX86_64 : abi::kAuditArchAarch64;
}

// The program that the build made (both architectures, whatever the host's).
[[nodiscard]] bpf::Program Generated(Arch arch, const Shape& shape);

// "x86_64_full_strict": a program's name where letters, digits and lines are all that is allowed.
[[nodiscard]] std::string ProgramName(Arch arch, const Shape& shape);

// What the table says that the filter returns.
[[nodiscard]] uint32_t Expected(Arch arch, const Shape& shape, const abi::SeccompData& data);

// Arguments around every value that any rule of the row, in any shape, compares with: the value, its
// neighbours, other bits outside its mask, garbage in the high half, and each single bit flipped; all
// combinations for rules on several arguments.
[[nodiscard]] std::vector<Args> EdgeArguments(const CallRow& row);

// The first difference between program and table, in words: a program that the kernel would refuse, an input
// with another result, or an allowed call that the kernel would not cache. Empty where none is found.
[[nodiscard]] std::string FindDifference(bpf::Program program, Arch arch, const Shape& shape);

}  // namespace oarlock::filter_check
