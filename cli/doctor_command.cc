// SPDX-License-Identifier: Apache-2.0
#include "cli/doctor_command.h"

#include <algorithm>
#include <ostream>

#include "cli/doctor.h"
#include "notif/base/text.h"
#include "notif/json.h"

namespace oarlock::cli {
namespace {

using doctor::Check;
using doctor::Checks;
using doctor::LaunchTrial;
using doctor::Node;
using doctor::Verdict;

constexpr int kSound = 0, kLacking = 1, kUsage = 64;

const LaunchTrial* Find(const std::vector<LaunchTrial>& launches, std::string_view way) {
  const auto at = std::ranges::find(launches, way, &LaunchTrial::way);
  return at == launches.end() ? nullptr : &*at;
}

bool IsUnavailable(const Check& check) { return check.verdict == Verdict::kUnavailable; }

Check Processes() {
  const doctor::Trial trial = doctor::InChild([] { return std::string("ok"); });
  if (trial.text == "ok") return doctor::Ok("processes", "processes can be started");
  return doctor::Unavailable("processes", "no process can be started, and nothing else be tried: " + trial.problem,
                             "raise RLIMIT_NPROC and the pids limit of the cgroup", doctor::kOwnSupervisor, policy::Code::kNotify);
}

// The node's supervisor, by what became of the module that was handed to it.
Check Supervisor(const Node& node, const LaunchTrial* launch, bool explained) {
  constexpr const char* kId = "supervisor";
  if (node.socket.empty()) return doctor::Info(kId, "no node supervisor is named or found; 'sandbox-exec' starts a private one");
  const std::string socket = Printable(node.socket, 120);
  if (launch == nullptr) return doctor::Info(kId, "'" + socket + "' is for one launch and was not tried");
  if (launch->confined) return doctor::Ok(kId, "'" + socket + "' admitted a module");
  if (explained && launch->code != policy::Name(policy::Code::kNotify)) return doctor::Skipped(kId, "what is unavailable above");
  Check check = doctor::Unavailable(kId, launch->text, "start oarlockd, with --admit-uid for this user",
                                    "every launch with OARLOCK_SUPERVISOR=" + socket, policy::Code::kNotify);
  if (node.named) check.remedy += "; or unset OARLOCK_SUPERVISOR for a private supervisor";
  // Nobody has asked for it: launches use private ones.
  if (!node.named) check.verdict = Verdict::kLimited;
  return check;
}

// What went wrong in a way that no check has an explanation for.
void AddUnexplained(const std::vector<LaunchTrial>& launches, Checks& checks) {
  for (const LaunchTrial& launch : launches) {
    if (launch.confined || launch.way == "node") continue;
    checks.push_back(doctor::Unavailable("launch." + launch.way, launch.text,
                                         "a security module (AppArmor, SELinux) may forbid to one program what it allows to another",
                                         "'oarlock " + launch.way + "'", std::nullopt));
  }
}

Json ToJson(const Check& check) {
  Json json = {{"id", check.id}, {"state", doctor::Name(check.verdict)}, {"found", check.found}};
  if (!check.remedy.empty()) json["remedy"] = check.remedy;
  if (check.verdict == Verdict::kUnavailable || check.verdict == Verdict::kLimited) {
    json["stops"] = check.stops;
    if (check.code) json["code"] = policy::Name(*check.code);
  }
  return json;
}

Json ToJson(const LaunchTrial& launch) {
  Json json = {{"way", launch.way}, {"confined", launch.confined}};
  if (!launch.confined) {
    json["text"] = launch.text;
    if (!launch.code.empty()) json["code"] = launch.code;
  }
  return json;
}

std::string ToLine(const Check& check) {
  std::string line = doctor::Name(check.verdict);
  line.resize(13, ' ');
  line += check.id + ": " + check.found;
  if (check.verdict == Verdict::kUnavailable || check.verdict == Verdict::kLimited) {
    if (!check.remedy.empty()) line += ". Remedy: " + check.remedy;
    line += ". Without it: " + check.stops + (check.code ? " (" + std::string(policy::Name(*check.code)) + ")" : "");
  }
  return line + "\n";
}

std::string ToLine(const LaunchTrial& launch) {
  std::string line = launch.confined ? "ok" : "refused";
  line.resize(13, ' ');
  return line + "launch." + launch.way + ": " + (launch.confined ? "a module was confined" : launch.text) + "\n";
}

}  // namespace

int Doctor(const DoctorOptions& options, std::ostream& out, std::ostream& err) {
  if (options.profile != "module" && options.profile != "write-allowlist") {
    err << "oarlock doctor: --profile '" << Printable(options.profile, 40) << "': must be 'module' or 'write-allowlist'\n";
    return kUsage;
  }
  const Node node = doctor::FindNode();
  Checks checks;
  doctor::TellHost(checks);
  std::vector<LaunchTrial> launches;
  // Nothing below can be told without a second process.
  if (Check processes = Processes(); IsUnavailable(processes)) {
    checks.push_back(std::move(processes));
  } else {
    doctor::CheckSteps(checks);
    doctor::CheckCalls(checks, node);
    doctor::CheckLandlock(checks);
    doctor::CheckRing(checks);
    doctor::CheckHost(checks);
    launches = doctor::TryLaunches(node, options.profile);
  }
  const LaunchTrial* by_node = Find(launches, "node");
  const bool explained = std::ranges::any_of(checks, IsUnavailable);
  if (!explained) AddUnexplained(launches, checks);
  checks.push_back(Supervisor(node, by_node, explained));
  // Launches from here need nothing of a supervisor's of us, where the node's serves them.
  if (node.named && by_node != nullptr && by_node->confined)
    for (Check& check : checks)
      if (check.supervisors && IsUnavailable(check)) {
        check.verdict = Verdict::kLimited;
        check.stops = "'oarlock run'";
      }

  std::string names;
  Json unavailable = Json::array();
  for (const Check& check : checks)
    if (IsUnavailable(check)) {
      names += (names.empty() ? "" : ", ") + check.id;
      unavailable.push_back(check.id);
    }
  if (options.json) {
    Json json = {{"ok", unavailable.empty()},
                 {"profile", options.profile},
                 {"unavailable", unavailable},
                 {"checks", Json::array()},
                 {"launches", Json::array()}};
    for (const Check& check : checks) json["checks"].push_back(ToJson(check));
    for (const LaunchTrial& launch : launches) json["launches"].push_back(ToJson(launch));
    out << DumpJson(json) << "\n";
  } else {
    for (const Check& check : checks) out << ToLine(check);
    for (const LaunchTrial& launch : launches) out << ToLine(launch);
    const std::string well = "Everything of the profile '" + options.profile + "' can be enforced here.";
    out << "\n" << (names.empty() ? well : "Unavailable here: " + names + ".") << "\n";
  }
  return unavailable.empty() ? kSound : kLacking;
}

}  // namespace oarlock::cli
