// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "notif/calls.h"
#include "tests/notif/bpf_eval.h"

namespace oarlock::filter_check {

// Proves with z3 that `program` returns what the call table says for *every* input: architecture and number
// of 32 bits, instruction pointer and six arguments of 64. Empty where it is proved; else the counterexample
// or the instruction that the proof does not know, in words.
//
// The two sides share no code: the program is executed symbolically, all paths at once, while the formula of
// the table is built from its rows and rules.
[[nodiscard]] std::string FindCounterexample(bpf::Program program, Arch arch, const Shape& shape);

}  // namespace oarlock::filter_check
