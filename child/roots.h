// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "child/landlock.h"
#include "notif/base/places.h"

namespace oarlock::child {

// The policy's view of the file system, opened: what Landlock will allow, and what the supervisor must know of the broker.
struct Roots {
  std::vector<PathRule> rules;
  std::string broker_resolved;         // canonical; empty without a broker
  UniqueFd report_directory;           // where the report goes; invalid without one
  std::string report_name;
  std::vector<std::string> skipped;    // optional roots that are not there
  std::vector<std::string> warnings;   // one line each
  bool log_below_home = false;         // the sandbox may write where a private supervisor's log lies
};

struct RootsContext {
  Places places;
  std::string policy_directory;  // canonical, empty where the policy came through a descriptor
  std::string supervisor;        // the admission socket that will serve us; empty: a private one
  std::string program;           // argv[0]
  std::string home;              // $HOME at launch
  // `oarlock run` inside its own tree: a policy below a writable root is a warning, not a conflict.
  bool tolerate_own_policy = false;
};

// Follows every path of the policy to its end, opens it, and checks that no writable root lies on or above a place whose
// contents decide what this sandbox may do: Oarlock's own, the policy's, the broker's directory.
[[nodiscard]] Checked<Roots> OpenRoots(const policy::Policy& policy, const RootsContext& context);

}  // namespace oarlock::child
