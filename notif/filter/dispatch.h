// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "notif/calls.h"
#include "notif/filter/draft.h"

namespace oarlock::filter {

// Where a call number leads: to a verdict, or to the code at a label.
struct Case {
  uint32_t nr;
  uint32_t verdict;
  std::optional<Label> code;  // instead of the verdict
};

// How libseccomp arranges the numbers.
enum class Layout : uint32_t { kChain = 1, kTree = 2 };

// Writes the decision on the call number, which the accumulator holds, for numbers below 2^30; what is not
// among `cases` is ENOSYS. Compiled by libseccomp, which appears in dispatch.cc alone. All that is not
// understood in its output (which another release might write differently) stops the generator.
void EmitDispatch(Draft& draft, std::span<const Case> cases, Layout layout);

// Stops the generator where a number of the table is not the one that libseccomp knows for the name, or where
// a call that it knows is missing: its lists end at 5.17, so newer calls pass.
void CheckNumbers();

}  // namespace oarlock::filter
