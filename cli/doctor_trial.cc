// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>

#include "cli/doctor.h"
#include "notif/base/result.h"
#include "notif/base/unique_fd.h"

namespace oarlock::cli::doctor {
namespace {

void WriteAll(int fd, const std::string& text) {
  for (size_t at = 0; at < text.size();) {
    const ssize_t wrote = ::write(fd, text.data() + at, text.size() - at);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return;
    at += static_cast<size_t>(wrote);
  }
}

}  // namespace

const char* Name(Verdict verdict) noexcept {
  switch (verdict) {
    case Verdict::kOk:
      return "ok";
    case Verdict::kLimited:
      return "limited";
    case Verdict::kUnavailable:
      return "unavailable";
    case Verdict::kSkipped:
      return "skipped";
    case Verdict::kInfo:
      return "info";
  }
  return "info";
}

Check Ok(std::string id, std::string found) { return {.id = std::move(id), .verdict = Verdict::kOk, .found = std::move(found)}; }
Check Info(std::string id, std::string found) { return {.id = std::move(id), .verdict = Verdict::kInfo, .found = std::move(found)}; }
Check Skipped(std::string id, const std::string& needed) {
  return {.id = std::move(id), .verdict = Verdict::kSkipped, .found = "cannot be tried without " + needed};
}

Check Limited(std::string id, std::string found, std::string remedy, std::string stops) {
  return {.id = std::move(id),
          .verdict = Verdict::kLimited,
          .found = std::move(found),
          .remedy = std::move(remedy),
          .stops = std::move(stops)};
}
Check Unavailable(std::string id, std::string found, std::string remedy, std::string stops, std::optional<policy::Code> code) {
  Check check = Limited(std::move(id), std::move(found), std::move(remedy), std::move(stops));
  check.verdict = Verdict::kUnavailable;
  check.code = code;
  return check;
}
Check SupervisorsNeed(std::string id, std::string found, std::string remedy) {
  Check check = Unavailable(std::move(id), std::move(found), std::move(remedy), kOwnSupervisor, policy::Code::kNotify);
  check.supervisors = true;
  return check;
}

Trial InChild(const std::function<std::string()>& body, std::chrono::milliseconds limit) {
  using Clock = std::chrono::steady_clock;
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return {"", std::string("pipe2 gave ") + ErrnoName(errno)};
  UniqueFd read(ends[0]), write(ends[1]);
  const pid_t self = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) return {"", std::string("fork gave ") + ErrnoName(errno)};
  if (pid == 0) {
    // A filter around us can make fork return 0 without a child.
    if (::getpid() == self) return {"", "fork had no effect"};
    read.Reset();
    // What fails in here is told by our caller, once.
    if (const int null = ::open("/dev/null", O_WRONLY | O_CLOEXEC); null >= 0) (void)::dup2(null, STDERR_FILENO);
    WriteAll(write.get(), body());
    ::_exit(0);
  }
  write.Reset();
  Trial trial;
  const auto deadline = Clock::now() + limit;
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    pollfd ready{read.get(), POLLIN, 0};
    const int polled = left <= 0 ? 0 : ::poll(&ready, 1, static_cast<int>(left));
    if (polled < 0 && errno == EINTR) continue;
    if (polled <= 0) {
      trial = {"", "it did not come to an end within " + std::to_string(limit.count() / 1000) + " s"};
      break;
    }
    char buffer[4096];
    const ssize_t got = ::read(read.get(), buffer, sizeof(buffer));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    trial.text.append(buffer, static_cast<size_t>(got));
  }
  if (!trial.problem.empty()) (void)::kill(pid, SIGKILL);
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
  if (trial.text.empty() && trial.problem.empty())
    trial.problem = WIFSIGNALED(status) ? "it was ended by signal " + std::to_string(WTERMSIG(status)) : "it ended without a word";
  return trial;
}

bool IsFiltered() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("Seccomp:")) return line.find_first_of("12") != std::string::npos;
  return false;
}

std::string FilterRemedy(const std::string& call) {
  if (!IsFiltered())
    return "no seccomp filter is around this process, so the kernel or a security module refuses " + call +
           ": see the kernel's log (dmesg) and its configuration";
  return "a seccomp filter is around this process: allow " + call +
         " in the container's or service's seccomp profile (Docker: --security-opt seccomp=FILE, Kubernetes: a Localhost profile, "
         "systemd: SystemCallFilter=), or start Oarlock outside of it";
}

std::string Since(const char* version) {
  const char* or_else = IsFiltered() ? ", or allow it in the seccomp filter that is around this process" : "";
  return std::string("use Linux ") + version + " or later" + or_else;
}

}  // namespace oarlock::cli::doctor
