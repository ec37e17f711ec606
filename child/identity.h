// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "child/step.h"

namespace oarlock::child {

// Takes the module's identity for good: groups emptied, gid and uid set (real, effective and saved), the bounding and ambient
// sets emptied, every capability dropped. Without privilege the ids stay as they are and there is nothing to drop but
// what is there. Then reads it all back: an outer filter can make each of these calls return 0 without doing it (E-213).
// K_IDENTITY, K_CAPS.
[[nodiscard]] Step TakeIdentity(const std::optional<policy::Identity>& run_as);

// no_new_privs, set and read back. K_NNP.
[[nodiscard]] Step SetNoNewPrivs();

}  // namespace oarlock::child
