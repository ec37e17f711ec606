// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "cli/doctor.h"
#include "notif/base/places.h"
#include "notif/base/result.h"
#include "notif/base/text.h"
#include "notif/base/unique_fd.h"
#include "notif/json.h"

namespace oarlock::cli::doctor {
namespace {

constexpr std::chrono::seconds kLimit{20};
constexpr size_t kMaxText = 64 * 1024;
constexpr const char* kPrefix = "sandbox launch: ";

// Logs of our trials go here and are taken away: the state directory is for sessions of modules.
class TrialState {
 public:
  TrialState() {
    const std::string logs = Places::ForSelf().log_directory;
    if (logs.empty()) return;
    std::string name = logs.substr(0, logs.rfind('/')) + "/.doctor-XXXXXX";
    if (::mkdtemp(name.data()) != nullptr) path_ = name;
  }
  TrialState(const TrialState&) = delete;
  TrialState& operator=(const TrialState&) = delete;
  ~TrialState() {
    // A private supervisor writes its last lines a moment after its module has gone.
    for (int attempt = 0; !path_.empty() && attempt < 20; ++attempt) {
      std::error_code error;
      std::filesystem::remove_all(path_, error);
      if (!std::filesystem::exists(path_, error)) return;
      (void)::poll(nullptr, 0, 50);
    }
  }
  // Empty: none could be made, and the launch says why.
  [[nodiscard]] const std::string& path() const noexcept { return path_; }

 private:
  std::string path_;
};

constexpr std::string_view kModule = "module";

std::vector<std::string> EnvironmentOf(const TrialState& state, const std::string& profile, const std::string& supervisor, const std::string& directory, int confined) {
  // Through the environment, so that it needs no file: inside a sandbox there may be no place for one.
  Json policy = {{"version", 1}, {"profile", profile}, {"enforce", "strict"}, {"module", "oarlock-doctor"}, {"net", "none"}};
  if (profile == kModule) policy["ro"] = {directory};
  else policy["write_defaults"] = false;
  std::vector<std::string> entries = {"MOAT_SANDBOX_POLICY=" + DumpJson(policy)};
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text(*entry);
    const bool ours = text.starts_with("OARLOCK_") || text.starts_with("OARBANK_") || text.starts_with("MOAT_SANDBOX_POLICY=");
    const bool replaced = !state.path().empty() && text.starts_with("XDG_STATE_HOME=");
    if (!ours && !replaced) entries.push_back(text);
  }
  if (!state.path().empty()) entries.push_back("XDG_STATE_HOME=" + state.path());
  if (!supervisor.empty()) entries.push_back("OARLOCK_SUPERVISOR=" + supervisor);
  if (confined >= 0) entries.push_back("OARBANK_CONFINED=" + std::to_string(confined));
  return entries;
}

std::vector<char*> Pointers(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (std::string& text : strings) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

// What comes out of both until their ends.
struct Said {
  std::string told, err;
};
Said Listen(UniqueFd told, UniqueFd err, pid_t pid) {
  using Clock = std::chrono::steady_clock;
  Said said;
  const auto deadline = Clock::now() + kLimit;
  pollfd ends[] = {{told.get(), POLLIN, 0}, {err.get(), POLLIN, 0}};
  while (ends[0].fd >= 0 || ends[1].fd >= 0) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) {
      (void)::kill(pid, SIGKILL);
      said.err += "it did not come to an end within 20 s\n";
      break;
    }
    if (::poll(ends, 2, static_cast<int>(left)) <= 0) continue;
    char buffer[4096];
    for (int i = 0; i < 2; ++i) {
      if (ends[i].fd < 0 || ends[i].revents == 0) continue;
      const ssize_t got = ::read(ends[i].fd, buffer, sizeof(buffer));
      std::string& text = i == 0 ? said.told : said.err;
      if (got > 0 && text.size() < kMaxText) text.append(buffer, static_cast<size_t>(got));
      else if (got == 0 || (got < 0 && errno != EINTR)) ends[i].fd = -1;
    }
  }
  return said;
}

// The module is the launcher's own program once more, which says how it is used and ends: it is there wherever we are.
LaunchTrial Try(const std::string& way, const std::string& profile, const std::string& front, const std::string& supervisor) {
  LaunchTrial trial{.way = way};
  const std::string directory = front.substr(0, front.rfind('/'));
  int told_ends[2], err_ends[2];
  if (::pipe2(told_ends, O_CLOEXEC) != 0 || ::pipe2(err_ends, O_CLOEXEC) != 0) {
    trial.text = std::string("it cannot be prepared: ") + ErrnoName(errno);
    return trial;
  }
  UniqueFd told(told_ends[0]), told_write(told_ends[1]), err(err_ends[0]), err_write(err_ends[1]);
  const bool run = way == "run";
  const TrialState state;
  std::vector<std::string> environment = EnvironmentOf(state, profile, supervisor, directory, run ? -1 : told_write.get());
  std::vector<std::string> arguments = {front, "sandbox-exec", "-", "--", front, "sandbox-exec"};
  if (run) {
    const std::string status = std::to_string(told_write.get());
    arguments = {front, "run", "--quiet", "--profile", profile, "--status-fd", status};
    if (profile == kModule) arguments.insert(arguments.end(), {"--ro", directory});
    arguments.insert(arguments.end(), {"--", front, "sandbox-exec"});
  }
  const std::vector<char*> argv = Pointers(arguments), envp = Pointers(environment);
  const pid_t self = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0 || (pid == 0 && ::getpid() == self)) {
    trial.text = std::string("fork gave ") + ErrnoName(errno);
    return trial;
  }
  if (pid == 0) {
    const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null < 0 || ::dup2(null, 0) < 0 || ::dup2(null, 1) < 0 || ::dup2(err_write.get(), 2) < 0) ::_exit(1);
    (void)::fcntl(told_write.get(), F_SETFD, 0);
    ::execve(argv[0], argv.data(), envp.data());
    ::_exit(1);
  }
  told_write.Reset();
  err_write.Reset();
  const Said said = Listen(std::move(told), std::move(err), pid);
  while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) continue;
  trial.confined = run ? said.told.find("\"confined\"") != std::string::npos : !said.told.empty();
  if (trial.confined) return trial;
  size_t at = said.err.find(kPrefix);
  at = at == std::string::npos ? 0 : at + std::strlen(kPrefix);
  const std::string line = said.err.substr(at, said.err.find('\n', at) - at);
  trial.text = line.empty() ? "it ended without a word" : Printable(line, 500);
  if (line.starts_with("K_") || line.starts_with("P_")) trial.code = line.substr(0, line.find(' '));
  return trial;
}

}  // namespace

std::vector<LaunchTrial> TryLaunches(const Node& node, const std::string& profile) {
  const auto front = FindProgram("oarlock");
  if (!front) return {};
  std::vector<LaunchTrial> trials = {Try("run", profile, *front, "")};
  if (!node.named) trials.push_back(Try("sandbox-exec", profile, *front, ""));
  // A descriptor is for one launch, and that is not ours.
  if (!node.socket.empty() && !node.socket.starts_with("fd:")) trials.push_back(Try("node", profile, *front, node.socket));
  return trials;
}

}  // namespace oarlock::cli::doctor
