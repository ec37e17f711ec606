// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "child/step.h"
#include "notif/abi/landlock.h"
#include "notif/base/unique_fd.h"
#include "notif/calls.h"

namespace oarlock::child {

// What a Landlock ABI can handle: one row per version, the kernel's growth in one table.
struct LandlockRights {
  uint64_t fs = 0, net = 0, scoped = 0;
  uint32_t restrict_flags = 0;
};
[[nodiscard]] LandlockRights RightsOf(int abi) noexcept;
// ... of which these are handled. On the host's network, sockets of all kinds are left alone.
[[nodiscard]] LandlockRights HandledRights(int abi, bool host_network) noexcept;

// The kernel's ABI by landlock_create_ruleset(NULL, 0, VERSION) alone. ENOSYS: not built in; EOPNOTSUPP: off at boot (lsm=).
[[nodiscard]] Result<int> LandlockAbi();
[[nodiscard]] Result<int> LandlockErrata();
// Which of the filter's ages this kernel is, with that ABI: the rest is found by trying.
[[nodiscard]] Age KernelAge(int landlock_abi);

// One opened object and the rights below it. `parent` is an O_PATH descriptor; for anything but a directory the rights are
// those that a file can have.
struct PathRule {
  UniqueFd parent;
  uint64_t rights = 0;
  bool is_directory = false;
  std::string path;      // canonical
  std::string pointer;   // where the policy asked for it
};

// A ruleset that handles `handled`, with the network wall closed: bind and connect (and UDP from ABI 10) are handled with no
// rule at all. The supervisor's connect is not judged by it.
[[nodiscard]] Checked<UniqueFd> MakeRuleset(const LandlockRights& handled, const std::vector<PathRule>& rules);
// Restricts the calling thread, which has no_new_privs and is the only one.
[[nodiscard]] Step RestrictSelf(int ruleset, int abi, bool log_denials);

}  // namespace oarlock::child
