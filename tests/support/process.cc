// SPDX-License-Identifier: Apache-2.0
#include "tests/support/process.h"

#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "notif/base/check.h"

namespace oarlock::test {
namespace {

using Clock = std::chrono::steady_clock;

void MakePipe(UniqueFd& read, UniqueFd& write) {
  int ends[2];
  OARLOCK_CHECK(::pipe2(ends, O_CLOEXEC) == 0);
  read.Reset(ends[0]);
  write.Reset(ends[1]);
}

}  // namespace

Process::Process(const ProcessOptions& options) : options_(options), started_(Clock::now()) {
  UniqueFd input, out, err;
  MakePipe(input, input_);
  MakePipe(out_, out);
  MakePipe(err_, err);
  std::map<std::string, std::string> environment = {
      {"PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}, {"HOME", "/nonexistent"}, {"LANG", "C.UTF-8"}};
  for (const auto& [name, value] : options_.environment) environment[name] = value;
  std::vector<std::string> entries;
  for (const auto& [name, value] : environment) entries.push_back(name + "=" + value);
  std::vector<char*> argv, envp;
  for (std::string& argument : options_.argv) argv.push_back(argument.data());
  for (std::string& entry : entries) envp.push_back(entry.data());
  argv.push_back(nullptr);
  envp.push_back(nullptr);

  pid_ = ::fork();
  OARLOCK_CHECK(pid_ >= 0);
  if (pid_ == 0) {
    (void)::setpgid(0, 0);
    sigset_t none;
    (void)::sigemptyset(&none);
    (void)::sigprocmask(SIG_SETMASK, &none, nullptr);
    (void)::signal(SIGPIPE, SIG_DFL);
    if (::dup2(input.get(), 0) < 0 || ::dup2(out.get(), 1) < 0 || ::dup2(err.get(), 2) < 0) ::_exit(120);
    if (!options_.directory.empty() && ::chdir(options_.directory.c_str()) != 0) ::_exit(121);
    if (options_.uid && (::setgroups(0, nullptr) != 0 || ::setresgid(*options_.uid, *options_.uid, *options_.uid) != 0 ||
                         ::setresuid(*options_.uid, *options_.uid, *options_.uid) != 0))
      ::_exit(122);
    if (options_.before_exec) options_.before_exec();
    ::execve(argv[0], argv.data(), envp.data());
    ::_exit(127);
  }
  if (!options_.input.empty()) Write(options_.input);
}

Process::~Process() {
  if (!reaped_) Reap(true);
}

void Process::Write(const std::string& text) {
  struct sigaction ignore {}, before {};
  ignore.sa_handler = SIG_IGN;
  (void)::sigaction(SIGPIPE, &ignore, &before);
  (void)!::write(input_.get(), text.data(), text.size());
  (void)::sigaction(SIGPIPE, &before, nullptr);
}

void Process::Signal(int signal) const {
  if (!reaped_) (void)::kill(pid_, signal);
}

bool Process::Pump(std::chrono::milliseconds wait) {
  pollfd ready[] = {{out_.get(), POLLIN, 0}, {err_.get(), POLLIN, 0}};
  if (!out_.valid() && !err_.valid()) return false;
  if (::poll(ready, 2, static_cast<int>(wait.count())) <= 0) return true;
  char buffer[16384];
  const auto take = [&](pollfd& end, UniqueFd& fd, std::string& text) {
    if (end.revents == 0 || !fd.valid()) return;
    const ssize_t got = ::read(fd.get(), buffer, sizeof(buffer));
    if (got > 0) text.append(buffer, static_cast<size_t>(got));
    else if (got == 0 || errno != EINTR) fd.Reset();
  };
  take(ready[0], out_, outcome_.out);
  take(ready[1], err_, outcome_.err);
  return true;
}

bool Process::WaitFor(const std::string& text, std::chrono::milliseconds timeout) {
  const auto deadline = Clock::now() + timeout;
  const auto holds = [&] { return outcome_.out.find(text) != std::string::npos || outcome_.err.find(text) != std::string::npos; };
  while (!holds() && Clock::now() < deadline)
    if (!Pump(std::chrono::milliseconds(50))) break;
  return holds();
}

bool Process::Running() {
  if (reaped_) return false;
  siginfo_t info{};
  return ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == 0;
}

void Process::Reap(bool kill) {
  if (kill) {
    (void)::kill(-pid_, SIGKILL);
    (void)::kill(pid_, SIGKILL);
  }
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) continue;
  reaped_ = true;
  outcome_.code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

Outcome Process::Wait() {
  input_.Reset();
  const auto deadline = started_ + options_.timeout;
  // Somebody may keep the pipes open longer than the process lives: its end is what counts.
  while (Running() && Clock::now() < deadline)
    if (!Pump(std::chrono::milliseconds(20))) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  const bool late = Running();
  Reap(late);
  for (int i = 0; i < 100; ++i) {
    const size_t before = outcome_.out.size() + outcome_.err.size();
    if (!Pump(std::chrono::milliseconds(0)) || before == outcome_.out.size() + outcome_.err.size()) break;
  }
  if (late) outcome_.code = -1;
  outcome_.seconds = std::chrono::duration<double>(Clock::now() - started_).count();
  return outcome_;
}

std::vector<pid_t> ThreadsNamed(pid_t pid, const std::string& name) {
  std::vector<pid_t> threads;
  std::error_code gone;
  for (const auto& task : std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/task", gone)) {
    std::ifstream comm(task.path() / "comm");
    std::string line;
    if (std::getline(comm, line) && line == name) threads.push_back(std::atoi(task.path().filename().c_str()));
  }
  return threads;
}

std::string ResultOf(const std::string& out, const std::string& word) {
  const std::string key = word + " -> ";
  size_t at = out.starts_with(key) ? 0 : out.find("\n" + key);
  if (at == std::string::npos) return "(not done)";
  at = out.find("-> ", at) + 3;
  return out.substr(at, out.find('\n', at) - at);
}

std::string ResultOf(const Outcome& outcome, const std::string& word) {
  const std::string result = ResultOf(outcome.out, word);
  return result == "(not done)" ? result + " " + outcome.err : result;
}

Outcome RunProcess(const ProcessOptions& options) {
  Process process(options);
  return process.Wait();
}

std::string FindInstalled(const std::string& name) {
  for (const char* directory : {"/usr/bin", "/bin", "/usr/sbin", "/sbin", "/usr/local/bin"}) {
    const std::string path = std::string(directory) + "/" + name;
    if (::access(path.c_str(), X_OK) == 0) return path;
  }
  return {};
}

bool Eventually(const std::function<bool()>& ready, std::chrono::milliseconds timeout) {
  const auto deadline = Clock::now() + timeout;
  while (!ready()) {
    if (Clock::now() >= deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

}  // namespace oarlock::test
