// SPDX-License-Identifier: Apache-2.0
// The launcher's other steps, each done in a child by the launcher's own code.
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>

#include "child/confine.h"
#include "child/descriptors.h"
#include "cli/doctor.h"
#include "notif/base/places.h"
#include "notif/base/resolve.h"
#include "notif/base/unique_fd.h"

namespace oarlock::cli::doctor {
namespace {

using child::Step;
using policy::Code;

// A root of a policy, opened.
Step OpenRoot() {
  const auto own = OwnDirectory();
  if (!own) return child::Stop(Code::kPath, own.error());
  auto opened = OpenCanonical(*own);
  if (!opened) return child::Stop(Code::kPath, opened.error());
  return {};
}

// One descriptor that nobody named, closed.
Step CloseOne() {
  auto table = child::DescriptorTable::Open();
  if (!table) return std::unexpected(table.error());
  auto kept = table->List();
  if (!kept) return std::unexpected(kept.error());
  const UniqueFd extra(::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3));
  if (auto step = child::CloseOthers(*kept); !step) return step;
  if (::fcntl(extra.get(), F_GETFD) >= 0) return child::Stop(Code::kKUnsupported, "", "close_range had no effect: something filters us");
  return {};
}

Step Leave() {
  if (auto step = child::LeaveTerminal(); !step) return step;
  rlimit files{};
  (void)::getrlimit(RLIMIT_NOFILE, &files);
  if (auto step = child::SetLimits(static_cast<int64_t>(std::min<rlim_t>(files.rlim_max, INT32_MAX))); !step) return step;
  return child::ResetSignals();
}

void Try(Checks& checks, const char* id, Step (*step)(), const char* works, std::string remedy) {
  // The code's number, then the text.
  const Trial trial = InChild([step] {
    const Step done = step();
    return done ? std::string("ok") : std::to_string(static_cast<int>(done.error().code)) + " " + done.error().text;
  });
  if (trial.text == "ok") return checks.push_back(Ok(id, works));
  Check check{.id = id, .verdict = Verdict::kUnavailable, .found = trial.problem, .remedy = std::move(remedy), .stops = kEveryLaunch};
  int code = 0;
  const auto [end, error] = std::from_chars(trial.text.data(), trial.text.data() + trial.text.size(), code);
  if (error == std::errc()) {
    check.code = static_cast<Code>(code);
    check.found = trial.text.substr(static_cast<size_t>(end - trial.text.data()) + 1);
  }
  checks.push_back(std::move(check));
}

}  // namespace

void CheckSteps(Checks& checks) {
  Try(checks, "proc", child::CheckSingleThread, "/proc is there", "mount /proc");
  const bool filtered = IsFiltered();
  Try(checks, "openat2", OpenRoot, "a path is opened without following links", filtered ? FilterRemedy("openat2") : Since("5.6"));
  Try(checks, "close_range", CloseOne, "descriptors that nobody named are closed", filtered ? FilterRemedy("close_range") : Since("5.9"));
  Try(checks, "session", Leave, "terminal, limits and signals are left behind",
      FilterRemedy("setsid, ioctl, prlimit64 and rt_sigprocmask"));
}

}  // namespace oarlock::cli::doctor
