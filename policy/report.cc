// SPDX-License-Identifier: Apache-2.0
#include "policy/report.h"

#include <algorithm>

#include "notif/base/check.h"
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

Capability Mediated(const Facts& facts, const Policy*) {
  return facts.listener ? Enforced()
                        : Unavailable(facts.why_no_listener.empty() ? kNoListener : facts.why_no_listener);
}

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

Capability ExecDeny(const Facts& facts, const Policy* policy) {
  if (policy != nullptr && policy->exec_rw) return Unavailable("the policy sets exec_rw");
  return Files(facts, policy);
}

Capability ExecDenyMmap(const Facts&, const Policy*) {
  return Unavailable("the loader can still map a file from a root that may not be executed from");
}

Capability SysV(const Facts& facts, const Policy* policy) {
  if (policy != nullptr && policy->sysv_ipc) return Unavailable("the policy sets sysv_ipc");
  return Mediated(facts, policy);
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

Capability Children(const Facts& facts, const Policy* policy) {
  if (const Capability mediated = Mediated(facts, policy); mediated.state != State::kEnforced)
    return mediated;
  return {State::kCooperative,
          "children inherit the confinement; without a cgroup of its own a daemon can outlive its module"};
}

Capability Audit(const Facts& facts, const Policy* policy) {
  if (const Capability mediated = Mediated(facts, policy); mediated.state != State::kEnforced)
    return mediated;
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
    {"folders.read", Files},
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
                 {"degraded", Json::array()}};
  if (policy != nullptr) {
    report["policy_sha256"] = policy_sha256;
    report["skipped_roots"] = skipped_roots;
    report["session"] = facts.session;
  }
  return DumpJson(report);
}

}  // namespace oarlock::policy
