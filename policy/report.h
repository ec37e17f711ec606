// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "notif/calls.h"
#include "policy/policy.h"

namespace oarlock::policy {

// What can be enforced here, from probes and never from a version number. `enforced`: by the kernel or the supervisor, whatever
// the module does; `cooperative`: for programs that do not work against it; `unavailable`: not at all.
// `tamperable` is the log's alone: it is written first, and the module can change it afterwards.
enum class State : uint8_t { kEnforced, kCooperative, kTamperable, kUnavailable };
[[nodiscard]] std::string_view Name(State state) noexcept;

// The probes' results, gathered by who can make them.
struct Facts {
  int landlock_abi = 0;          // 0: no Landlock
  int landlock_errata = 0;
  bool listener = false;         // a seccomp listener can be installed, and a supervisor serves it
  Age age = Age::kCurrent;
  bool own_uid = false;          // the module has a uid of its own (run_as)
  bool log_below_home = false;   // the module may write where the log of its supervisor lies
  std::string why_no_landlock, why_no_listener;
  std::string session;           // once admitted
  std::vector<std::string> degraded;  // Degradations(), where best effort was asked for
};

struct Capability {
  State state = State::kUnavailable;
  std::string why;  // one sentence, for anything but enforced
};
// `name` is one of Capabilities(). `policy`: of this launch, or null for the node as such.
[[nodiscard]] Capability StateOf(std::string_view name, const Facts& facts, const Policy* policy);

// What the policy would have on the newest kernel with a supervisor and does not have here: "CAPABILITY: reason", one line each.
[[nodiscard]] std::vector<std::string> Degradations(const Facts& facts, const Policy& policy);

// The enforcement report as one line of JSON: the contract's keys and ours.
[[nodiscard]] std::string Report(const Facts& facts, const Policy* policy, std::string_view policy_sha256,
                                 const std::vector<std::string>& skipped_roots);

}  // namespace oarlock::policy
