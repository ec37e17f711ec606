// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <vector>

#include "child/identity.h"
#include "child/landlock.h"
#include "child/prove.h"
#include "cli/doctor.h"
#include "notif/base/places.h"
#include "notif/base/result.h"
#include "notif/filter/programs.h"
#include "notif/json.h"
#include "policy/report.h"

namespace oarlock::cli::doctor {
namespace {

using policy::Code;

constexpr int kFastOpenFlag = 0x20000000;  // MSG_FASTOPEN
constexpr int kMptcp = 262;
constexpr const char* kNoPrivileges = "no_new_privs";
constexpr int kKnockMs = 50;               // for a connection over loopback to be seen

// A domain as a launch makes it, with one root, proved by effect. The problem as the launcher would tell it.
child::Step Restrict(int abi) {
  std::vector<child::PathRule> rules;
  if (const auto own = OwnDirectory(); own) {
    UniqueFd directory(::open(own->c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (directory.valid())
      rules.push_back({.parent = std::move(directory),
                       .rights = abi::kFsReadDir | abi::kFsReadFile | abi::kFsExecute,
                       .is_directory = true,
                       .path = *own,
                       .pointer = ""});
  }
  if (auto step = child::SetNoNewPrivs(); !step) return step;
  const child::LandlockProof proof(rules);
  const child::LandlockRights handled = child::RightsOf(abi);
  auto ruleset = child::MakeRuleset(handled, rules);
  if (!ruleset) return std::unexpected(ruleset.error());
  if (auto step = child::RestrictSelf(ruleset->get(), abi, false); !step) return step;
  return proof.Prove(handled, rules);
}

// A door on 127.0.0.1, and whether somebody stands at it.
class Door {
 public:
  Door() : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
    sockaddr_in any{};
    any.sin_family = AF_INET;
    any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address_);
    open_ = fd_.valid() && ::bind(fd_.get(), reinterpret_cast<const sockaddr*>(&any), sizeof(any)) == 0 && ::listen(fd_.get(), 16) == 0 &&
            ::getsockname(fd_.get(), reinterpret_cast<sockaddr*>(&address_), &size) == 0;
  }
  [[nodiscard]] bool open() const noexcept { return open_; }
  // Accepts whoever is there; under the filter the caller goes without accepting.
  [[nodiscard]] bool Knocked(bool accept) const {
    pollfd ready{fd_.get(), POLLIN, 0};
    if (::poll(&ready, 1, kKnockMs) != 1) return false;
    if (accept) UniqueFd(::accept4(fd_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    return true;
  }
  void FastOpen(const UniqueFd& socket) const {
    (void)::sendto(socket.get(), "x", 1, kFastOpenFlag | MSG_NOSIGNAL | MSG_DONTWAIT, generic(), sizeof(address_));
  }
  // Whether it gets there is not what is asked.
  void Connect(const UniqueFd& socket) const { (void)!::connect(socket.get(), generic(), sizeof(address_)); }

 private:
  [[nodiscard]] const sockaddr* generic() const noexcept { return reinterpret_cast<const sockaddr*>(&address_); }
  UniqueFd fd_;
  sockaddr_in address_{};
  bool open_ = false;
};

UniqueFd Tcp(int protocol) { return UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, protocol)); }

// Two ways to connect that Landlock judges on some kernels only, or on none: without anything around them, in the domain, and
// behind the filter.
std::string TryDetours(int abi) {
  const Door door;
  Json saw = {{"open", door.open()}};
  if (!door.open()) return DumpJson(saw);
  const UniqueFd free = Tcp(0), fenced = Tcp(0), filtered = Tcp(0), free_mptcp = Tcp(kMptcp), fenced_mptcp = Tcp(kMptcp);
  door.FastOpen(free);
  saw["fast_open"] = door.Knocked(true);
  door.Connect(free_mptcp);
  saw["mptcp"] = door.Knocked(true);
  if (auto step = Restrict(abi); !step) return DumpJson({{"open", false}});
  door.FastOpen(fenced);
  saw["fast_open_fenced"] = door.Knocked(true);
  door.Connect(fenced_mptcp);
  saw["mptcp_fenced"] = door.Knocked(true);
  {
    // The listener goes at once, so what would be asked of a supervisor is refused.
    const auto listener = InstallFilter(FilterProgram(Shape{}));
    saw["filter"] = listener.has_value();
    if (!listener) return DumpJson(saw);
  }
  door.FastOpen(filtered);
  saw["fast_open_filtered"] = door.Knocked(false);
  saw["mptcp_filtered"] = Tcp(kMptcp).valid();
  return DumpJson(saw);
}

Check Detours(int abi) {
  constexpr const char* kId = "connect.detours";
  const Trial trial = InChild([abi] { return TryDetours(abi); });
  std::string problem;
  const Json saw = ParseStrictJson(trial.text, &problem);
  const auto is = [&](const char* name) { return saw.value(name, false); };
  if (!problem.empty() || !is("open")) return Skipped(kId, "a listener on 127.0.0.1");
  if (!saw.contains("filter") || !is("filter")) return Skipped(kId, "seccomp.listener");
  if (is("fast_open_filtered") || is("mptcp_filtered"))
    return Unavailable(kId, std::string(is("fast_open_filtered") ? "Fast Open" : "MPTCP") + " passes the filter",
                       "report it: this must not happen", "the promise that nothing but the proxy is reached", std::nullopt);
  std::string found = "Fast Open and MPTCP are refused by the filter";
  std::string open;
  if (is("fast_open_fenced")) open = "Fast Open";
  if (is("mptcp_fenced")) open += open.empty() ? "MPTCP" : " and MPTCP";
  if (!open.empty()) found += "; this kernel's Landlock lets " + open + " through";
  return Ok(kId, std::move(found));
}

}  // namespace

Check JudgeLandlock(int abi) {
  constexpr const char* kId = "landlock.rights";
  // Against the best host there is: what differs is the kernel's doing and not ours.
  policy::Facts best, here;
  best.landlock_abi = abi::kHighestLandlockAbi;
  here.landlock_abi = abi;
  best.listener = here.listener = true;
  here.age = AgeOf(abi, true, true);
  std::string lost, why;
  for (const std::string_view name : policy::Capabilities()) {
    const policy::Capability capability = policy::StateOf(name, here, nullptr);
    if (capability.state == policy::StateOf(name, best, nullptr).state) continue;
    lost += (lost.empty() ? "" : ", ") + std::string(name);
    why = capability.why;
  }
  struct Gap {
    int abi;
    const char* linux;
    const char* text;
  };
  constexpr Gap kGaps[] = {
      {2, "5.19", "renames and links between directories fail (EXDEV)"},
      {3, "6.2", "truncation by path is refused everywhere, by the filter"},
      {4, "6.7", "TCP is judged by the supervisor alone, without a second wall"},
      {5, "6.10", "ioctls on devices of the roots are not judged"},
      {6, "6.12", "signals and abstract sockets are judged by the supervisor alone"},
      {7, "6.15", "refusals of files are not in the kernel's audit log"},
      {9, "7.1", "pathname unix sockets are judged by the supervisor alone"},
      {10, "7.2", "UDP is refused by the filter alone"},
  };
  std::string gaps;
  const char* need = "";
  for (const Gap& gap : kGaps)
    if (abi < gap.abi) {
      gaps += (gaps.empty() ? "" : "; ") + std::string(gap.text);
      // The remedy is the least kernel that closes what costs something.
      if (gap.abi <= 6) need = gap.linux;
    }
  Check check{.id = kId, .found = "ABI " + std::to_string(abi) + (gaps.empty() ? ": every right that we use" : ": " + gaps)};
  if (*need == '\0') return check;
  check.remedy = std::string("use Linux ") + need + " or later";
  if (lost.empty()) {
    check.verdict = Verdict::kLimited;
    return check;
  }
  check.verdict = Verdict::kUnavailable;
  check.found += "; unavailable: " + lost + " (" + why + ")";
  check.stops = "policies that require " + lost;
  check.code = Code::kRequired;
  return check;
}

void CheckLandlock(Checks& checks) {
  Check check{.id = "landlock", .stops = kEveryLaunch, .code = Code::kLandlock};
  const auto abi = child::LandlockAbi();
  const auto skip_rest = [&] {
    check.verdict = Verdict::kUnavailable;
    checks.push_back(check);
    checks.push_back(Skipped("landlock.rights", "landlock"));
    checks.push_back(Skipped("connect.detours", "landlock"));
  };
  if (!abi) {
    const int error = abi.error().code;
    check.found = std::string("landlock_create_ruleset gave ") + ErrnoName(error);
    if (error == EOPNOTSUPP) {
      check.found += ": built in, and switched off at boot";
      check.remedy = "add landlock to the kernel's boot parameter lsm= (or to CONFIG_LSM)";
    } else if (error == ENOSYS && !IsFiltered()) {
      check.found += ": not built in";
      check.remedy = "use a kernel of 6.12 or later with CONFIG_SECURITY_LANDLOCK";
    } else {
      check.remedy = FilterRemedy("the landlock calls");
    }
    return skip_rest();
  }
  const Trial trial = InChild([&] {
    const auto step = Restrict(*abi);
    return step ? std::string("ok") : step.error().code == Code::kNnp ? std::string(kNoPrivileges) : step.error().text;
  });
  if (trial.text == kNoPrivileges) {
    for (const char* id : {"landlock", "landlock.rights", "connect.detours"}) checks.push_back(Skipped(id, "privileges"));
    return;
  }
  if (trial.text != "ok") {
    check.found = trial.problem.empty() ? trial.text : "a domain could not be tried: " + trial.problem;
    const bool deep = check.found.find("sixteen layers") != std::string::npos;
    check.remedy = deep ? "start Oarlock from less deep inside other sandboxes" : FilterRemedy("the landlock calls");
    return skip_rest();
  }
  char errata[24];
  (void)std::snprintf(errata, sizeof(errata), "0x%x", static_cast<unsigned>(child::LandlockErrata().value_or(0)));
  checks.push_back(Ok("landlock", std::string("a domain holds: what it forbids is refused; errata ") + errata));
  checks.push_back(JudgeLandlock(*abi));
  checks.push_back(Detours(*abi));
}

}  // namespace oarlock::cli::doctor
