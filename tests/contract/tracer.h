// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "notif/abi/landlock.h"
#include "tests/support/process.h"

namespace oarlock::test {

// One system call of the process itself, as it came back.
struct TracedCall {
  long nr = 0;
  std::array<uint64_t, 6> arguments{};
  long result = 0;
  abi::LandlockRulesetAttr ruleset{};  // of landlock_create_ruleset, where it was given one
};

struct Trace {
  Outcome outcome;
  std::vector<TracedCall> calls;  // execve included, each as the call that it was
  bool several_threads = false;
  [[nodiscard]] std::vector<TracedCall> Of(long nr) const;
};

// Runs a program and looks at each of its own calls until it ends or, with `until_exec`, until it has run another program that many
// times. Its children are left alone. `cap`: what the kernel is made to say of Landlock's version where it would say more, so that
// the program finds an older kernel; 0: nothing is changed. Must be used by the thread that calls it.
[[nodiscard]] Trace RunTraced(ProcessOptions options, int until_exec, int cap = 0);

// The same without the list: a launch, or another verb, on a kernel of that Landlock version.
[[nodiscard]] Outcome RunCapped(ProcessOptions options, int cap);

}  // namespace oarlock::test
