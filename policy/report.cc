// SPDX-License-Identifier: Apache-2.0
#include "policy/report.h"

#include <algorithm>

#include "notif/base/build.h"
#include "notif/base/check.h"
#include "notif/abi/landlock.h"
#include "notif/json.h"

namespace oarlock::policy {
namespace {

constexpr const char* kNoLandlock = "this kernel offers no Landlock";
constexpr const char* kNoListener = "no supervisor mediates calls here";

Capability Enforced() { return {State::kEnforced, ""}; }
Capability Unavailable(std::string why) { return {State::kUnavailable, std::move(why)}; }

// One row per capability: what it rests on.
using Judge = Capability (*)(const Facts&, const Policy*);

Capability Files(const Facts& facts, const Policy*) {
  if (facts.landlock_abi == 0)
    return Unavailable(facts.why_no_landlock.empty() ? kNoLandlock : facts.why_no_landlock);
  // Below ABI 3 the filter refuses truncation by path instead, which needs no supervisor's judgement.
  if (facts.landlock_abi < 3 && facts.age != Age::kNoTruncateRight)
    return Unavailable("Landlock before ABI 3 cannot judge truncation");
  return Enforced();
}

// What the policy leaves to the host's network nobody judges.
Capability Mediated(const Facts& facts, const Policy* policy) {
  if (policy != nullptr && policy->net == NetMode::kHost) return Unavailable("the policy sets net to host");
  return facts.listener ? Enforced()
                        : Unavailable(facts.why_no_listener.empty() ? kNoListener : facts.why_no_listener);
}

// Calls that a supervisor answers under every policy.
Capability Supervised(const Facts& facts) { return Mediated(facts, nullptr); }

Capability NetAny(const Facts&, const Policy*) { return Unavailable("egress-any is not built"); }

Capability Ipc(const Facts& facts, const Policy* policy) {
  if (const Capability mediated = Mediated(facts, policy); mediated.state != State::kEnforced)
    return mediated;
  // Below ABI 6 the filter sends signals to the supervisor, which sees to abstract names anyway.
  if (facts.landlock_abi < 6 && facts.age == Age::kCurrent)
    return Unavailable("signals to processes outside need Landlock ABI 6 (Linux 6.12) to be refused");
  // What the policy opens is no longer closed, however the kernel holds the rest.
  if (policy != nullptr && policy->sysv_ipc) return Unavailable("the policy sets sysv_ipc");
  if (policy != nullptr && policy->shm == Shm::kHost)
    return Unavailable("the policy sets shm to host: all processes share /dev/shm");
  return Enforced();
}

// Reads are open in this profile, so that no folder is more readable than others.
Capability ReadFolders(const Facts& facts, const Policy* policy) {
  if (policy != nullptr && policy->profile == Profile::kWriteAllowlist) return Unavailable("profile write-allowlist leaves reads open");
  return Files(facts, policy);
}

Capability ExecDeny(const Facts& facts, const Policy* policy) {
  if (policy != nullptr && policy->profile == Profile::kWriteAllowlist)
    return Unavailable("profile write-allowlist lets writable trees hold programs");
  if (policy != nullptr && policy->exec_rw) return Unavailable("the policy sets exec_rw");
  return Files(facts, policy);
}

Capability ExecDenyMmap(const Facts&, const Policy*) {
  return Unavailable("the loader can still map a file from a root that may not be executed from");
}

Capability SysV(const Facts& facts, const Policy* policy) {
  if (policy != nullptr && policy->sysv_ipc) return Unavailable("the policy sets sysv_ipc");
  return Supervised(facts);
}

Capability Metadata(const Facts& facts, const Policy*) {
  if (facts.own_uid)
    return {State::kCooperative, "a uid of its own keeps the module from files that it does not own"};
  return Unavailable("chmod, chown, utimes and xattr outside the roots are judged by file ownership alone");
}

Capability Limits(const Facts&, const Policy*) { return Unavailable("cgroup limits are not built"); }
Capability KillAll(const Facts&, const Policy*) {
  return Unavailable("cgroups are not used yet, so a daemon can outlive its module");
}

Capability Children(const Facts& facts, const Policy*) {
  if (const Capability supervised = Supervised(facts); supervised.state != State::kEnforced)
    return supervised;
  return {State::kCooperative,
          "children inherit the confinement; without a cgroup of its own a daemon can outlive its module"};
}

Capability Audit(const Facts& facts, const Policy*) {
  if (const Capability supervised = Supervised(facts); supervised.state != State::kEnforced)
    return supervised;
  if (facts.log_below_home)
    return {State::kTamperable, "the log lies below $HOME, which the module may write: use the node's supervisor, or another XDG_STATE_HOME"};
  return Enforced();
}

struct Row {
  std::string_view name;
  Judge judge;
};
constexpr Row kRows[] = {
    {"audit", Audit},
    {"cgroup.kill", KillAll},
    {"cgroup.limits", Limits},
    {"children", Children},
    {"exec_writable_deny", ExecDeny},
    {"exec_writable_deny.mmap", ExecDenyMmap},
    {"filesystem", Files},
    {"folders.read", ReadFolders},
    {"folders.write", Files},
    {"gpu.compute", Files},
    {"ipc", Ipc},
    {"metadata_writes", Metadata},
    {"net.destination", Mediated},
    {"net.egress-allowlist", Mediated},
    {"net.egress-any", NetAny},
    {"net.none", Mediated},
    {"no_link_local", Mediated},
    {"no_loopback", Mediated},
    {"sysv_ipc", SysV},
    {"unix.pathname", Mediated},
};

}  // namespace

std::string_view Name(State state) noexcept {
  switch (state) {
    case State::kEnforced:
      return "enforced";
    case State::kCooperative:
      return "cooperative";
    case State::kTamperable:
      return "tamperable";
    case State::kUnavailable:
      return "unavailable";
  }
  return "unavailable";
}

Capability StateOf(std::string_view name, const Facts& facts, const Policy* policy) {
  const auto* row = std::ranges::find(kRows, name, &Row::name);
  OARLOCK_CHECK(row != std::end(kRows), "no capability of this name");
  return row->judge(facts, policy);
}

std::vector<std::string> Degradations(const Facts& facts, const Policy& policy) {
  Facts newest = facts;
  newest.landlock_abi = abi::kHighestLandlockAbi;
  newest.listener = true;
  newest.age = Age::kCurrent;
  std::vector<std::string> lines;
  for (const Row& row : kRows) {
    const Capability here = row.judge(facts, &policy);
    if (here.state != State::kEnforced && row.judge(newest, &policy).state == State::kEnforced) lines.push_back(std::string(row.name) + ": " + here.why);
  }
  // Parts of what is enforced as a whole.
  if (facts.landlock_abi == 1) lines.emplace_back("filesystem: no file can be moved or linked to another directory (refer needs Landlock ABI 2, Linux 5.19)");
  if (facts.landlock_abi == 1 || facts.landlock_abi == 2)
    lines.emplace_back("filesystem: truncate by path is refused everywhere (truncate needs Landlock ABI 3, Linux 6.2)");
  if (facts.landlock_abi >= 1 && facts.landlock_abi < 5) lines.emplace_back("filesystem: the ioctl requests of devices that may be opened are not judged (ioctl_dev needs Landlock ABI 5, Linux 6.10)");
  return lines;
}

std::string Report(const Facts& facts, const Policy* policy, std::string_view policy_sha256,
                   const std::vector<std::string>& skipped_roots) {
  Json enforcement = Json::object(), reasons = Json::object();
  for (const Row& row : kRows) {
    const Capability capability = row.judge(facts, policy);
    enforcement[std::string(row.name)] = Name(capability.state);
    if (!capability.why.empty()) reasons[std::string(row.name)] = capability.why;
  }
  Json report = {{"backend", facts.landlock_abi > 0 ? Json("landlock") : Json(nullptr)},
                 {"landlock_abi", facts.landlock_abi},
                 {"landlock_errata", facts.landlock_errata},
                 {"listener", facts.listener},
                 {"enforcement", std::move(enforcement)},
                 {"reasons", std::move(reasons)},
                 {"degraded", facts.degraded}};
  if (policy != nullptr) {
    report["policy_sha256"] = policy_sha256;
    report["skipped_roots"] = skipped_roots;
    report["session"] = facts.session;
    report["launcher"] = {{"version", BuildVersion()}, {"build_id", BuildId()}};
  }
  return DumpJson(report);
}

}  // namespace oarlock::policy
