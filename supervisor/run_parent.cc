// SPDX-License-Identifier: Apache-2.0
#include "supervisor/run_parent.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "notif/base/check.h"
#include "notif/json.h"

namespace oarlock::supervisor {
namespace {

// Of `oarlock run`, in the manner of env(1) and timeout(1).
constexpr int kExitOurs = 125, kExitNotRunnable = 126, kExitNotFound = 127, kExitSignalled = 128;
constexpr size_t kMaxEnvironment = 8 * 1024 * 1024;

struct Pipe {
  UniqueFd read, write;
};
Result<Pipe> MakePipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return OARLOCK_FAIL("pipe2", errno);
  return Pipe{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

Result<std::vector<std::string>> ReadEnvironment(int fd) {
  std::string text;
  char buffer[64 * 1024];
  for (;;) {
    const ssize_t got = ::pread(fd, buffer, sizeof(buffer), static_cast<off_t>(text.size()));
    if (got < 0) return OARLOCK_FAIL("pread", errno, "the module's environment");
    if (got == 0) break;
    text.append(buffer, static_cast<size_t>(got));
    if (text.size() > kMaxEnvironment) return OARLOCK_FAIL("pread", E2BIG, "the module's environment");
  }
  std::vector<std::string> entries;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\0', at), text.size());
    const std::string entry = text.substr(at, end - at);
    // Ours are set below; those of somebody else's launch must not reach this one.
    if (!entry.starts_with("OARLOCK_SUPERVISOR=") && !entry.starts_with("OARLOCK_EXEC_STATUS=") && !entry.starts_with("OARBANK_CONFINED="))
      entries.push_back(entry);
    at = end + 1;
  }
  return entries;
}

// Reads what is there without waiting; the bytes, 0 at the end, -1 where nothing is there yet.
ssize_t ReadNow(int fd, void* buffer, size_t size) {
  pollfd ready{fd, POLLIN, 0};
  if (::poll(&ready, 1, 0) <= 0) return -1;
  return ::read(fd, buffer, size);
}

std::vector<char*> Pointers(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (std::string& text : strings) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

class Parent {
 public:
  Parent(Supervisor& supervisor, const RunOptions& options, std::string session)
      : reactor_(supervisor.reactor()), admission_(supervisor.admission()), options_(options), session_(std::move(session)) {}

  Status Start(const Inheritance& inheritance);
  void Run();

 private:
  void WatchSignals();
  void OnSignals();
  void WatchConfirmation();
  void ReadConfirmation();
  void ReadExecStatus();
  void OnChildEnded();
  [[nodiscard]] int ExitCode(int status) const;
  void Stage(const char* stage, int code = -1);
  void Footer(const EndedSession& ended) const;
  void MaybeStop();

  Reactor& reactor_;
  Admission& admission_;
  const RunOptions& options_;
  std::string session_;
  UniqueFd signals_, confirmation_, exec_status_, child_;
  pid_t pid_ = -1;
  bool confined_ = false, started_ = false, exited_ = false, session_live_ = false;
  int exec_errno_ = 0;
};

Status Parent::Start(const Inheritance& inheritance) {
  Pipe confirmation = OARLOCK_TRY(MakePipe());
  Pipe exec_status = OARLOCK_TRY(MakePipe());
  int pair[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) return OARLOCK_FAIL("socketpair", errno);
  UniqueFd ours(pair[0]), theirs(pair[1]);
  const int on = 1;
  if (::setsockopt(ours.get(), SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) != 0) return OARLOCK_FAIL("setsockopt", errno, "SO_PASSCRED");

  std::vector<std::string> environment = OARLOCK_TRY(ReadEnvironment(options_.environment_fd));
  environment.push_back("OARBANK_CONFINED=" + std::to_string(confirmation.write.get()));
  environment.push_back("OARLOCK_EXEC_STATUS=" + std::to_string(exec_status.write.get()));
  environment.push_back("OARLOCK_SUPERVISOR=fd:" + std::to_string(theirs.get()));
  std::vector<std::string> arguments = {"oarlock", "sandbox-exec", "fd:" + std::to_string(options_.policy_fd), "--"};
  arguments.insert(arguments.end(), options_.command.begin(), options_.command.end());
  const std::vector<char*> argv = Pointers(arguments), envp = Pointers(environment);
  const int inherit[] = {options_.policy_fd, confirmation.write.get(), exec_status.write.get(), theirs.get()};

  WatchSignals();
  pid_ = ::fork();
  if (pid_ < 0) return OARLOCK_FAIL("fork", errno);
  if (pid_ == 0) {
    // Other threads' locks may be held: nothing but system calls until exec.
    inheritance.Restore();
    for (const int fd : inherit) (void)::fcntl(fd, F_SETFD, 0);
    ::execve(options_.launcher.c_str(), argv.data(), envp.data());
    ::_exit(kExitOurs);
  }
  child_ = OARLOCK_TRY(OpenPidfd(pid_));
  confirmation_ = std::move(confirmation.read);
  exec_status_ = std::move(exec_status.read);
  admission_.OnStarted([this](const SessionInfo&) { session_live_ = true; });
  admission_.OnEnded([this](const SessionInfo&, const EndedSession& ended) {
    session_live_ = false;
    Footer(ended);
    MaybeStop();
  });
  admission_.Serve(std::move(ours), pid_);
  WatchConfirmation();
  reactor_.OnReady(exec_status_.get(), POLLIN, [this](int) { ReadExecStatus(); });
  reactor_.OnReady(child_.get(), POLLIN, [this](int) { OnChildEnded(); });
  return {};
}

void Parent::WatchSignals() {
  sigset_t all;
  (void)::sigfillset(&all);
  // Stops and continues are the shell's business with its own job, us; faults would be our own.
  for (const int signal : {SIGCHLD, SIGTSTP, SIGTTIN, SIGTTOU, SIGCONT, SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP, SIGSYS, SIGPIPE, SIGXFSZ})
    (void)::sigdelset(&all, signal);
  signals_.Reset(::signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK));
  OARLOCK_CHECK(signals_.valid());
  reactor_.OnReady(signals_.get(), POLLIN, [this](int) { OnSignals(); });
}

void Parent::OnSignals() {
  signalfd_siginfo info{};
  while (::read(signals_.get(), &info, sizeof(info)) == sizeof(info)) {
    if (pid_ <= 0 || exited_) continue;
    const bool from_terminal = info.ssi_code > 0;  // SI_KERNEL
    // A terminal signals a whole foreground group; where the module shares the terminal, it has got its own already.
    if (from_terminal && options_.terminal_signals) (void)::kill(started_ ? -pid_ : pid_, static_cast<int>(info.ssi_signo));
    else if (!from_terminal) (void)::kill(pid_, static_cast<int>(info.ssi_signo));
  }
  reactor_.OnReady(signals_.get(), POLLIN, [this](int) { OnSignals(); });
}

void Parent::WatchConfirmation() {
  reactor_.OnReady(confirmation_.get(), POLLIN, [this](int) { ReadConfirmation(); });
}

void Parent::ReadConfirmation() {
  char byte = 0;
  if (!confirmation_.valid()) return;
  const ssize_t got = ReadNow(confirmation_.get(), &byte, 1);
  if (got < 0) return;
  if (got == 1 && !confined_) {
    confined_ = true;
    Stage("confined");
  }
  confirmation_.Reset();
}

// The pipe ends without a word where exec succeeded: it is closed by that.
void Parent::ReadExecStatus() {
  if (!exec_status_.valid()) return;
  ReadConfirmation();
  int error = 0;
  const ssize_t got = ReadNow(exec_status_.get(), &error, sizeof(error));
  if (got < 0) return;
  if (got == sizeof(error)) {
    exec_errno_ = error;
  } else if (confined_) {
    started_ = true;
    Stage("started");
  }
  exec_status_.Reset();
}

void Parent::OnChildEnded() {
  int status = 0;
  pid_t waited = 0;
  while ((waited = ::waitpid(pid_, &status, 0)) < 0 && errno == EINTR) continue;
  ReadConfirmation();
  ReadExecStatus();
  exited_ = true;
  const int code = waited == pid_ ? ExitCode(status) : kExitOurs;
  Stage("exited", code);
  // From here on the outer process ends what is left, unless it is to stay.
  (void)!::write(options_.outcome_fd, &code, sizeof(code));
  MaybeStop();
}

int Parent::ExitCode(int status) const {
  if (exec_errno_ != 0) return exec_errno_ == ENOENT ? kExitNotFound : kExitNotRunnable;
  if (!started_) return kExitOurs;
  return WIFSIGNALED(status) ? kExitSignalled + WTERMSIG(status) : WEXITSTATUS(status);
}

void Parent::Stage(const char* stage, int code) {
  if (options_.status_fd < 0) return;
  Json line = {{"stage", stage}, {"pid", pid_}, {"session", session_}};
  if (code >= 0) line["code"] = code;
  const std::string text = DumpJson(line) + "\n";
  (void)!::write(options_.status_fd, text.data(), text.size());
}

void Parent::Footer(const EndedSession& ended) const {
  if (options_.quiet || ended.denials == 0) return;
  const std::string line = "oarlock: " + std::to_string(ended.denials) + (ended.denials == 1 ? " refusal" : " refusals") +
                           ", 'oarlock audit list --session " + session_ + "' shows " + (ended.denials == 1 ? "it" : "them") + "\n";
  (void)!::write(STDERR_FILENO, line.data(), line.size());
}

void Parent::MaybeStop() {
  if (exited_ && !session_live_) reactor_.Stop();
}

void Parent::Run() { reactor_.Run(); }

}  // namespace

Status RunAsParent(Supervisor& supervisor, const Inheritance& inheritance, const RunOptions& options, const std::string& session) {
  Parent parent(supervisor, options, session);
  if (auto started = parent.Start(inheritance); !started) return started;
  parent.Run();
  return {};
}

}  // namespace oarlock::supervisor
