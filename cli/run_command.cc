// SPDX-License-Identifier: Apache-2.0
#include "cli/run_command.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "child/descriptors.h"
#include "child/launcher.h"
#include "notif/abi/process.h"
#include "notif/base/places.h"
#include "notif/base/resolve.h"
#include "notif/base/text.h"
#include "notif/base/unique_fd.h"
#include "notif/json.h"
#include "policy/policy.h"

namespace oarlock::cli {
namespace {

constexpr const char* kWriteAllowlist = "write-allowlist";
constexpr int kOurs = 125, kNotRunnable = 126, kNotFound = 127;
// How long the supervisor may take to write out its log once nothing of the sandbox is left.
constexpr int kLastWordsMs = 5000;
constexpr int kRoundMs = 20;

int Fail(const std::string& text, int code = kOurs) {
  (void)std::fprintf(stderr, "oarlock run: %s\n", text.c_str());
  return code;
}

std::string WorkingDirectory() {
  char* directory = ::getcwd(nullptr, 0);
  std::string text = directory != nullptr ? directory : "";
  ::free(directory);
  return text;
}

// As execvp(3) would find it.
std::string FindCommand(const std::string& name, int* code) {
  const auto runnable = [&](const std::string& path) {
    struct stat status {};
    if (::stat(path.c_str(), &status) != 0) return false;
    if (S_ISREG(status.st_mode) && ::access(path.c_str(), X_OK) == 0) return true;
    *code = kNotRunnable;
    return false;
  };
  *code = kNotFound;
  if (name.find('/') != std::string::npos) {
    const std::string path = name.starts_with('/') ? name : WorkingDirectory() + "/" + name;
    return runnable(path) ? path : std::string();
  }
  const char* variable = ::getenv("PATH");
  std::string_view directories = variable != nullptr ? variable : "/usr/local/bin:/usr/bin:/bin";
  while (!directories.empty()) {
    const std::string_view directory = directories.substr(0, directories.find(':'));
    directories.remove_prefix(std::min(directory.size() + 1, directories.size()));
    if (!directory.starts_with('/')) continue;
    const std::string path = std::string(directory) + "/" + name;
    if (runnable(path)) return path;
  }
  return {};
}

Json PolicyFromOptions(const RunCommand& command, const std::string& program) {
  Json policy = {{"version", 1}, {"module", "run"}, {"kind", "cli"}, {"exe", program}, {"refuse_with", {{"tcp", "ENETUNREACH"}}}};
  if (command.profile == kWriteAllowlist) {
    policy["profile"] = kWriteAllowlist;
    policy["allow_write"] = command.rw;
  } else {
    policy["ro"] = command.ro;
    policy["rw"] = command.rw;
  }
  if (command.proxy_port) {
    policy["net"] = "egress-allowlist";
    policy["proxy_port"] = *command.proxy_port;
  }
  if (!command.broker.empty()) {
    policy["broker_socket"] = command.broker;
    policy["env"] = {{"set", {{"OARBANK_BROKER", "unix:" + command.broker}}}};
  }
  return policy;
}

// The policy's text, or a line that says what is wrong with it.
std::expected<std::string, std::string> MakePolicy(const RunCommand& command, const std::string& program) {
  if (command.policy.empty()) {
    RunCommand absolute = command;
    // Not followed to its end: the command is told the broker's name as it was written here.
    if (!absolute.broker.empty() && !absolute.broker.starts_with('/')) absolute.broker = WorkingDirectory() + "/" + absolute.broker;
    for (std::vector<std::string>* list : {&absolute.ro, &absolute.rw})
      for (std::string& path : *list) {
        char* resolved = ::realpath(path.c_str(), nullptr);
        if (resolved == nullptr) return std::unexpected("'" + Printable(path, 200) + "': " + ErrnoName(errno));
        path = resolved;
        ::free(resolved);
      }
    const std::string text = DumpJson(PolicyFromOptions(absolute, program));
    if (auto parsed = policy::Parse(text); !parsed) return std::unexpected(parsed.error().Line());
    return text;
  }
  auto file = policy::ReadFile(command.policy);
  if (!file) return std::unexpected(Printable(command.policy, 200) + ": " + file.error().Line());
  auto parsed = policy::Parse(file->text);
  if (!parsed) return std::unexpected(Printable(command.policy, 200) + ": " + parsed.error().Line());
  // Tools give up at once on a network that is not there; an explicit choice of the file stands.
  std::string problem;
  Json json = ParseStrictJson(file->text, &problem);
  if (!json.contains("refuse_with")) json["refuse_with"] = {{"tcp", "ENETUNREACH"}};
  for (const auto& root : parsed->rw)
    if (const auto resolved = ResolvePath(root); resolved && !file->directory_of.empty() && IsAtOrBelow(file->directory_of, resolved->canonical))
      (void)std::fprintf(stderr, "oarlock run: warning: the policy file lies below the writable root '%s': the command can change its own next run\n", Printable(root, 200).c_str());
  return DumpJson(json);
}

// A sealed-off file in memory that a child inherits. Mode 0600, as a policy file must have.
UniqueFd MemoryFile(const char* name, const std::string& content) {
  UniqueFd fd(::memfd_create(name, 0));  // NOLINT(android-cloexec-memfd-create): a child is to inherit it
  if (!fd.valid() || ::fchmod(fd.get(), 0600) != 0) return UniqueFd();
  for (size_t at = 0; at < content.size();) {
    const ssize_t wrote = ::write(fd.get(), content.data() + at, content.size() - at);
    if (wrote <= 0) return UniqueFd();
    at += static_cast<size_t>(wrote);
  }
  return fd;
}

// Takes the exit status of orphans of the sandbox that have ended; they come to us, as we are the subreaper.
void ReapOrphans(pid_t supervisor) {
  for (;;) {
    siginfo_t info{};
    if (::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0 || info.si_pid == supervisor) return;
    (void)::waitpid(info.si_pid, nullptr, WNOHANG);
  }
}

// Ends everything that is below us but `spare`. What a killed process leaves behind is found the next time. False: nothing is
// left.
bool KillDescendants(pid_t spare) {
  bool found = false;
  std::ifstream children("/proc/self/task/" + std::to_string(::getpid()) + "/children");
  for (pid_t pid = 0; children >> pid;) {
    if (pid == spare) continue;
    found = true;
    (void)::kill(pid, SIGKILL);
  }
  ReapOrphans(spare);
  return found;
}

class Outer {
 public:
  Outer(bool keep_children, std::string runtime) : keep_children_(keep_children), runtime_(std::move(runtime)) {}
  int Wait(pid_t supervisor, UniqueFd outcome);

 private:
  void Forward(int signals, pid_t supervisor);
  bool keep_children_;
  std::string runtime_;
};

void Outer::Forward(int signals, pid_t supervisor) {
  signalfd_siginfo info{};
  while (::read(signals, &info, sizeof(info)) == sizeof(info))
    // What the terminal sends reaches the supervisor too; what somebody sends to us alone is for the command.
    if (info.ssi_code <= 0 && info.ssi_signo != SIGCHLD) (void)::kill(supervisor, static_cast<int>(info.ssi_signo));
}

int Outer::Wait(pid_t supervisor, UniqueFd outcome) {
  sigset_t forwarded;
  (void)::sigfillset(&forwarded);
  for (const int signal : {SIGTSTP, SIGTTIN, SIGTTOU, SIGCONT, SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT}) (void)::sigdelset(&forwarded, signal);
  const UniqueFd signals(::signalfd(-1, &forwarded, SFD_CLOEXEC | SFD_NONBLOCK));
  const UniqueFd pidfd(static_cast<int>(::syscall(abi::kSysPidfdOpen, supervisor, 0U)));
  int code = kOurs;
  bool known = false;
  pollfd events[] = {{signals.get(), POLLIN, 0}, {outcome.get(), POLLIN, 0}, {pidfd.get(), POLLIN, 0}};
  for (int rounds = 0; (events[2].revents & POLLIN) == 0;) {
    const bool ending = known;
    (void)::poll(events, 3, ending ? kRoundMs : -1);
    Forward(signals.get(), supervisor);
    ReapOrphans(supervisor);
    if ((events[1].revents & (POLLIN | POLLHUP)) != 0) {
      known = ::read(outcome.get(), &code, sizeof(code)) == sizeof(code);
      events[1].fd = -1;
      if (!known) code = kOurs;
      if (known && keep_children_) return code;
    }
    // The rest goes now; the supervisor stays until it has written what they did.
    if (known) (void)KillDescendants(supervisor);
    if (ending && ++rounds > kLastWordsMs / kRoundMs) (void)::kill(supervisor, SIGKILL);
  }
  // A killed one could not do it; nobody else has its pid as long as it has not been waited for.
  if (!runtime_.empty()) (void)::unlink((runtime_ + "/private/" + std::to_string(supervisor) + ".sock").c_str());
  int status = 0;
  (void)::waitpid(supervisor, &status, 0);
  // Without a supervisor every call answers ENOSYS, and nothing of the sandbox may go on like that.
  for (int rounds = 0; KillDescendants(0) && rounds < kLastWordsMs / kRoundMs; ++rounds) (void)::poll(nullptr, 0, kRoundMs);
  if (!known && WIFSIGNALED(status)) (void)std::fprintf(stderr, "oarlock run: the supervisor was lost (signal %d); the command has been ended\n", WTERMSIG(status));
  return code;
}

}  // namespace

int Run(const RunCommand& command, char** environment) {
  // A file of ours that became descriptor 0 would be the command's input.
  if (auto step = child::EnsureStandardDescriptors(); !step) return Fail(step.error().Line());
  const bool shaped = command.proxy_port || !command.ro.empty() || !command.rw.empty() || !command.broker.empty();
  if (!command.policy.empty() && shaped) return Fail("--policy replaces --proxy-port, --broker, --ro and --rw: give one or the other", child::kExitUsage);
  if (command.profile != "module" && command.profile != kWriteAllowlist) return Fail("--profile '" + Printable(command.profile, 40) + "': must be 'module' or 'write-allowlist'", child::kExitUsage);
  if (command.profile == kWriteAllowlist && !command.policy.empty()) return Fail("--policy says its profile itself: leave --profile out", child::kExitUsage);
  if (command.profile == kWriteAllowlist && (!command.ro.empty() || !command.broker.empty())) return Fail("--profile write-allowlist leaves reads and sockets open: --ro and --broker go with 'module'", child::kExitUsage);
  if (command.status_fd >= 0 && ::fcntl(command.status_fd, F_GETFD) < 0) return Fail("--status-fd " + std::to_string(command.status_fd) + " is not open", child::kExitUsage);

  int code = 0;
  const std::string program = FindCommand(command.command.front(), &code);
  if (program.empty()) return Fail("'" + Printable(command.command.front(), 200) + "': " + (code == kNotFound ? "command not found" : "not executable"), code);
  auto text = MakePolicy(command, program);
  if (!text) return Fail(text.error());
  const auto parsed = policy::Parse(*text);
  if (!parsed) return Fail(parsed.error().Line());
  if (command.dry_run) return (void)std::printf("%s\n", policy::Emit(*parsed).c_str()), 0;

  const auto supervisor = FindProgram("oarlock-private");
  const auto own = OwnDirectory();
  if (!supervisor) return Fail(supervisor.error().Message());
  const std::string launcher = own->substr(0, own->rfind("/libexec/")) + "/bin/oarlock";

  std::string block;
  for (char** entry = environment; *entry != nullptr; ++entry) block += std::string(*entry) + '\0';
  const UniqueFd policy_file = MemoryFile("oarlock-policy", *text), environment_file = MemoryFile("oarlock-environment", block);
  int ends[2];
  if (!policy_file.valid() || !environment_file.valid() || ::pipe2(ends, O_CLOEXEC) != 0) return Fail(std::string("cannot prepare the run: ") + ErrnoName(errno));
  UniqueFd outcome(ends[0]), outcome_write(ends[1]);

  const Places places = Places::ForSelf();
  std::vector<std::string> arguments = {*supervisor, "--run", "--launcher", launcher,
                                        "--policy-fd", std::to_string(policy_file.get()),
                                        "--environment-fd", std::to_string(environment_file.get()),
                                        "--outcome-fd", std::to_string(outcome_write.get()),
                                        "--log-directory", places.log_directory, "--runtime-directory", places.runtime};
  if (command.status_fd >= 0) arguments.insert(arguments.end(), {"--status-fd", std::to_string(command.status_fd)});
  if (command.quiet) arguments.emplace_back("--quiet");
  if (command.keep_children) arguments.emplace_back("--keep-children");
  if (parsed->tty == policy::Tty::kInherit) arguments.emplace_back("--share-terminal");
  arguments.emplace_back("--");
  arguments.push_back(program);
  arguments.insert(arguments.end(), command.command.begin() + 1, command.command.end());
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  const char* const clean[] = {"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8", nullptr};

  // By a pidfd the supervisor's end is seen, and by others it knows the module: without them this would wait for ever.
  if (!UniqueFd(static_cast<int>(::syscall(abi::kSysPidfdOpen, ::getpid(), 0U))).valid()) return Fail(std::string("pidfd_open: ") + ErrnoName(errno) + " ('oarlock doctor' tells what to do)");
  if (::prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) return Fail(std::string("PR_SET_CHILD_SUBREAPER: ") + ErrnoName(errno));
  sigset_t all, before;
  (void)::sigfillset(&all);
  for (const int signal : {SIGTSTP, SIGTTIN, SIGTTOU, SIGCONT}) (void)::sigdelset(&all, signal);
  (void)::sigprocmask(SIG_SETMASK, &all, &before);
  const pid_t pid = ::fork();
  if (pid < 0) return Fail(std::string("fork: ") + ErrnoName(errno));
  if (pid == 0) {
    (void)::sigprocmask(SIG_SETMASK, &before, nullptr);
    (void)::fcntl(outcome_write.get(), F_SETFD, 0);
    ::execve(argv[0], argv.data(), const_cast<char* const*>(clean));
    (void)Fail("cannot start " + Printable(*supervisor, 200) + ": " + ErrnoName(errno));
    ::_exit(kOurs);
  }
  outcome_write.Reset();
  return Outer(command.keep_children, places.runtime).Wait(pid, std::move(outcome));
}

}  // namespace oarlock::cli
