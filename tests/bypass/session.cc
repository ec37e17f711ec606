// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <termios.h>

#include <chrono>
#include <sstream>

#include "tests/bypass/inside.h"
#include "tests/bypass/outside.h"

namespace bypass {
namespace {

std::vector<std::string> Words(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

}  // namespace

Session::Session(Outside* outside, void (*before_launch)(Outside&)) : outside_(outside) {
  std::vector<std::string> words = Words(outside->Filled(outside->options().under));
  words.push_back(outside->self());
  words.push_back("--inside");
  int to[2], from[2];
  if (pipe2(to, O_CLOEXEC) != 0 || pipe2(from, O_CLOEXEC) != 0) return;
  terminal_.Reset(posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK));
  char slave_name[64] = "/dev/null";
  if (terminal_.valid() && grantpt(terminal_.get()) == 0 && unlockpt(terminal_.get()) == 0)
    (void)ptsname_r(terminal_.get(), slave_name, sizeof(slave_name));
  int slave = open(slave_name, O_RDWR | O_NOCTTY | O_CLOEXEC);
  // High numbers, so that none is overwritten by what is inherited.
  for (int* fd : {&to[0], &from[1], &slave}) {
    const int high = fcntl(*fd, F_DUPFD_CLOEXEC, 100);
    (void)close(*fd);
    *fd = high;
  }
  // Whoever starts a launcher owns what it passes on.
  for (const int fd : {slave, to[0], from[1]}) (void)fchown(fd, outside->uid(), outside->uid());
  pid_ = fork();
  if (pid_ == 0) {
    (void)setsid();
    (void)ioctl(slave, TIOCSCTTY, 0);
    for (const auto& [number, fd] : outside->inherited()) (void)dup2(fd, number);
    (void)dup2(slave, kFdTerminal);
    (void)dup2(to[0], 0);
    (void)dup2(from[1], 1);
    (void)dup2(slave, 2);
    const sigset_t none{};
    (void)sigprocmask(SIG_SETMASK, &none, nullptr);
    (void)signal(SIGPIPE, SIG_DFL);
    outside->TakeIdentity();
    (void)chdir(outside->Text("work").c_str());
    if (before_launch != nullptr) before_launch(*outside);
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    const std::string state = "XDG_STATE_HOME=" + outside->Text("state"), home = "HOME=" + outside->Text("work");
    std::string environment[] = {"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", state, home};
    char* envp[] = {environment[0].data(), environment[1].data(), environment[2].data(), nullptr};
    (void)execvpe(argv[0], argv.data(), envp);
    _exit(119);
  }
  // Not for input by lines, nor for echo: what is typed can be read at once, and nothing of it comes back.
  termios mode{};
  (void)tcgetattr(slave, &mode);
  cfmakeraw(&mode);
  mode.c_lflag |= ISIG;
  (void)tcsetattr(slave, TCSANOW, &mode);
  slave_.Reset(slave);
  in_.Reset(to[1]);
  out_.Reset(from[0]);
  stdin_holder_.Reset(to[0]);
  stdout_holder_.Reset(from[1]);
  outside->terminal = terminal_.get();
  outside->terminal_slave = slave;
  outside->module_stdout = stdout_holder_.get();
  outside->module_stdin = stdin_holder_.get();
  outside->launch = pid_;
  std::string line;
  for (int i = 0; i < 100 && ReadLineFor(&line, 10'000); ++i) {
    if (!line.starts_with("@@ ready ")) continue;
    ready_ = true;
    break;
  }
  if (!ready_) Finish();
}

Session::~Session() { Finish(); }

void Session::Finish() {
  in_.Reset();
  if (pid_ <= 0) return;
  int status = 0;
  pid_t ended = 0;
  for (int i = 0; i < 5000 && ended == 0; ++i) {
    ended = waitpid(pid_, &status, WNOHANG);
    if (ended == 0) usleep(1000);
  }
  if (ended == 0) {
    (void)kill(-pid_, SIGKILL);
    (void)kill(pid_, SIGKILL);
    (void)waitpid(pid_, &status, 0);
  }
  end_ = WIFEXITED(status) ? "exit " + std::to_string(WEXITSTATUS(status)) : "signal " + std::to_string(WTERMSIG(status));
  (void)Said();
  pid_ = -1;
  outside_->terminal = outside_->terminal_slave = outside_->module_stdout = outside_->module_stdin = -1;
}

std::string Session::Said() {
  char buffer[1024];
  for (ssize_t got; terminal_.valid() && (got = read(terminal_.get(), buffer, sizeof(buffer))) > 0;)
    said_.append(buffer, static_cast<size_t>(got));
  return said_;
}

bool Session::ReadLineFor(std::string* line, int milliseconds) {
  using Clock = std::chrono::steady_clock;
  const auto until = Clock::now() + std::chrono::milliseconds(milliseconds);
  for (;;) {
    if (const size_t end = buffer_.find('\n'); end != std::string::npos) {
      *line = buffer_.substr(0, end);
      buffer_.erase(0, end + 1);
      return true;
    }
    (void)Said();  // a terminal that nobody reads fills up and stops whoever writes to it
    // We hold the write end as well, so the launcher's end shows by its process alone.
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count();
    if (left <= 0) return false;
    pollfd ready{out_.get(), POLLIN, 0};
    if (poll(&ready, 1, static_cast<int>(std::min<long>(left, 50))) > 0) {
      char buffer[4096];
      const ssize_t got = read(out_.get(), buffer, sizeof(buffer));
      if (got > 0) buffer_.append(buffer, static_cast<size_t>(got));
      continue;
    }
    siginfo_t info{};
    if (pid_ > 0 && waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == pid_) return false;
  }
}

Session::Outcome Session::Go(const Row& row) {
  Outcome outcome;
  for (const auto& [key, value] : outside_->values()) WriteLine(in_.get(), "set " + key + "=" + value);
  WriteLine(in_.get(), std::string("go ") + row.id);
  for (std::string line; ReadLineFor(&line, row.seconds * 1000 + 8000);) {
    const std::vector<std::string> words = Words(line);
    if (words.size() < 3 || words[0] != "@@") continue;
    if (words[1] == "ask") {
      const std::string answer = row.answer != nullptr ? row.answer(*outside_, line.substr(7)) : "";
      WriteLine(in_.get(), answer);
    } else if (words[1] == "part" && words.size() >= 6) {
      Part part{words[5], static_cast<Kind>(words[2][0]), words[3] == "1", std::atoi(words[4].c_str()), ""};
      for (size_t i = 0; words.size() > 6 && i + 1 < words[6].size(); i += 2)
        part.leak += static_cast<char>(std::strtol(words[6].substr(i, 2).c_str(), nullptr, 16));
      outcome.parts.push_back(std::move(part));
    } else if (words[1] == "lost") {
      outcome.lost = words[2] + (words.size() > 3 && words[3] != "0" ? " " + words[3] : "");
    } else if (words[1] == "done") {
      outcome.done = true;
      return outcome;
    }
  }
  return outcome;
}

}  // namespace bypass
