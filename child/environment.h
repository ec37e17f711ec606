// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "policy/policy.h"

namespace oarlock::child {

// The module's environment: what was inherited without the launcher's own variables, or what the policy keeps, plus the proxy's
// variables for egress-allowlist (and no NO_PROXY, which would send clients straight into a refusal), plus the policy's
// own. Order is kept; a name stands once. Pure.
[[nodiscard]] std::vector<std::string> MakeEnvironment(const policy::Policy& policy, char* const* inherited);

}  // namespace oarlock::child
