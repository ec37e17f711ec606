// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "child/landlock.h"
#include "child/step.h"

namespace oarlock::child {

// Proves by effect that the domain is in force: an outer filter can make landlock_restrict_self return 0 without doing it, and
// the module would then run unconfined (E-213). Prove() stands between RestrictSelf and the seccomp filter. K_LANDLOCK.
class LandlockProof {
 public:
  // Before RestrictSelf: what can be opened now and is granted, so that it must open afterwards too. A rule that is said to
  // be added and is not would show as an exec that fails, or worse, late.
  explicit LandlockProof(const std::vector<PathRule>& rules);
  [[nodiscard]] Step Prove(const LandlockRights& handled, const std::vector<PathRule>& rules) const;

 private:
  std::vector<std::string> granted_;
  std::string writable_;  // a directory that we may write to by its permissions; empty: none
};

}  // namespace oarlock::child
