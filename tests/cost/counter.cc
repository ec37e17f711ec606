// SPDX-License-Identifier: Apache-2.0
#include "tests/cost/counter.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>

#include "tests/support/temporary.h"

namespace oarlock::test {

SyscallCounter::SyscallCounter(pid_t tid) : tid_(tid), thread_([this] { Trace(); }) { state_.wait(0); }

SyscallCounter::~SyscallCounter() {
  stopping_ = true;
  // Again and again: one that comes before the wait interrupts nothing.
  while (state_ == 1) {
    (void)::pthread_kill(thread_.native_handle(), SIGUSR2);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  thread_.join();
}

SyscallCounter::Counts SyscallCounter::Read() const {
  Counts out{};
  for (size_t i = 0; i < kNumbers; ++i) out[i] = counts_[i].load();
  return out;
}

void SyscallCounter::Trace() {
  struct sigaction action {};
  action.sa_handler = [](int) {};
  (void)::sigaction(SIGUSR2, &action, nullptr);
  const auto done = [this](int state) {
    state_ = state;
    state_.notify_all();
  };
  if (::ptrace(PTRACE_SEIZE, tid_, nullptr, PTRACE_O_TRACESYSGOOD) != 0 || ::ptrace(PTRACE_INTERRUPT, tid_, nullptr, nullptr) != 0) {
    error_ = errno;
    return done(2);
  }
  // Not preempted between two stops, neither of the two, as far as we may: a traced step should last little longer than a bare one.
  const sched_param priority{1};
  (void)::sched_setscheduler(tid_, SCHED_FIFO, &priority);
  (void)::sched_setscheduler(0, SCHED_FIFO, &priority);
  bool interrupted = false;
  for (;;) {
    int status = 0;
    if (::waitpid(tid_, &status, __WALL) != tid_) {
      if (errno != EINTR) break;
      if (stopping_ && !interrupted) interrupted = ::ptrace(PTRACE_INTERRUPT, tid_, nullptr, nullptr) == 0;
      continue;
    }
    if (!WIFSTOPPED(status)) break;  // it has ended
    const int signal = WSTOPSIG(status), event = status >> 16;
    if (stopping_) {
      (void)::ptrace(PTRACE_DETACH, tid_, nullptr, event != 0 || signal == (SIGTRAP | 0x80) ? 0L : static_cast<long>(signal));
      break;
    }
    if (signal == (SIGTRAP | 0x80)) {
      __ptrace_syscall_info info{};
      if (::ptrace(PTRACE_GET_SYSCALL_INFO, tid_, sizeof(info), &info) > 0 && info.op == PTRACE_SYSCALL_INFO_ENTRY && info.entry.nr < kNumbers)
        ++counts_[info.entry.nr];
    }
    const long pass = event != 0 || signal == (SIGTRAP | 0x80) ? 0 : signal;
    (void)::ptrace(PTRACE_SYSCALL, tid_, nullptr, pass);
    if (state_ == 0) done(1);
  }
  done(2);
}

pid_t ProcessWith(const std::string& program, const std::string& argument) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
    const int pid = std::atoi(entry.path().filename().c_str());
    if (pid <= 0) continue;
    const std::string line = ReadWholeFile(entry.path() / "cmdline");
    const std::string first = line.substr(0, line.find('\0'));
    if (first.ends_with(program) && line.find(argument) != std::string::npos) return pid;
  }
  return -1;
}

}  // namespace oarlock::test
