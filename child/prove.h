// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "child/landlock.h"
#include "child/step.h"

namespace oarlock::child {

// Proves by effect that the domain is in force: an outer filter can make landlock_restrict_self return 0 without doing it, and
// the module would then run unconfined (E-213). Between RestrictSelf and the seccomp filter. K_LANDLOCK.
[[nodiscard]] Step ProveLandlock(int abi, const std::vector<PathRule>& rules);

}  // namespace oarlock::child
