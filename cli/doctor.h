// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "policy/policy.h"

// What `oarlock doctor` asks of a host. Every answer comes from doing what a launch or a supervisor does, in a child where it
// cannot be undone; version numbers stand in texts only.
namespace oarlock::cli::doctor {

enum class Verdict : uint8_t {
  kOk,
  kLimited,      // the profile holds; some policies are refused, or something is slower or less told
  kUnavailable,  // something of the profile cannot be had here
  kSkipped,      // cannot be tried without something else that is unavailable
  kInfo,
};
[[nodiscard]] const char* Name(Verdict verdict) noexcept;

struct Check {
  std::string id;
  Verdict verdict = Verdict::kOk;
  std::string found = {};             // what the trial gave
  std::string remedy = {};            // what to do about it; empty where nothing is wrong
  std::string stops = {};             // what does not work without it
  std::optional<policy::Code> code = {};  // what such a launch is refused with
  bool supervisors = false;           // the supervisor needs it, so a node's supervisor may have it where we do not
};
using Checks = std::vector<Check>;

// Runs `body` in a child of ours and yields what it returned. `problem`: why there is nothing, for a sentence.
struct Trial {
  std::string text, problem;
};
[[nodiscard]] Trial InChild(const std::function<std::string()>& body, std::chrono::milliseconds limit = std::chrono::seconds(10));

// Whether a seccomp filter is around us already, by /proc/self/status.
[[nodiscard]] bool IsFiltered();
// What to do where `call` gave `error` although the kernel has it.
[[nodiscard]] std::string FilterRemedy(const std::string& call);
// ... and where a kernel before `version` has it not.
[[nodiscard]] std::string Since(const char* version);

inline constexpr const char* kEveryLaunch = "every launch";
inline constexpr const char* kOwnSupervisor = "'oarlock run', and 'sandbox-exec' without a node supervisor";

[[nodiscard]] Check Ok(std::string id, std::string found);
[[nodiscard]] Check Info(std::string id, std::string found);
[[nodiscard]] Check Skipped(std::string id, const std::string& needed);
[[nodiscard]] Check Limited(std::string id, std::string found, std::string remedy, std::string stops);
[[nodiscard]] Check Unavailable(std::string id, std::string found, std::string remedy, std::string stops, std::optional<policy::Code> code);
// What every supervisor must be able to do: without it our own kind is refused, K_NOTIFY.
[[nodiscard]] Check SupervisorsNeed(std::string id, std::string found, std::string remedy);

// The node supervisor's admission socket that launches from here use, by OARLOCK_SUPERVISOR; else the one at the default place
// where there is one. Empty: none.
struct Node {
  std::string socket = {};
  bool named = false;  // by OARLOCK_SUPERVISOR: then launches use no private supervisor
};
[[nodiscard]] Node FindNode();

// What the launcher does to itself beside Landlock and the filter.
void CheckSteps(Checks& checks);
// seccomp's listener and what a supervisor does with it: a module and its supervisor are played, as parent and child and as
// strangers, with real calls.
void CheckCalls(Checks& checks, const Node& node);
void CheckLandlock(Checks& checks);
// What `abi` of Landlock leaves open, for the profile and for what else it judges. Pure.
[[nodiscard]] Check JudgeLandlock(int abi);
void CheckRing(Checks& checks);
// Limits, places, programs.
void CheckHost(Checks& checks);
// What is only told: kernel, what is around us, cgroups, user namespaces.
void TellHost(Checks& checks);

// The end of it all: a module is launched in each way that there is.
struct LaunchTrial {
  std::string way = {};  // "run", "sandbox-exec", "node"
  bool confined = false;
  std::string code = {};  // of a launch that was refused: "K_NOTIFY"
  std::string text = {};  // the launcher's own line
};
[[nodiscard]] std::vector<LaunchTrial> TryLaunches(const Node& node, const std::string& profile);

}  // namespace oarlock::cli::doctor
