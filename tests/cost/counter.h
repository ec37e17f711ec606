// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <array>
#include <atomic>
#include <string>
#include <thread>
#include <vector>

namespace oarlock::test {

// Traces one thread by ptrace, from a thread of its own, and counts its system calls by number.
class SyscallCounter {
 public:
  static constexpr size_t kNumbers = 512;
  using Counts = std::array<long, kNumbers>;

  explicit SyscallCounter(pid_t tid);
  ~SyscallCounter();  // lets the thread go
  SyscallCounter(const SyscallCounter&) = delete;
  SyscallCounter& operator=(const SyscallCounter&) = delete;

  // False: it could not be traced; error() says why.
  [[nodiscard]] bool attached() const noexcept { return error_ == 0; }
  [[nodiscard]] int error() const noexcept { return error_; }
  [[nodiscard]] Counts Read() const;

 private:
  void Trace();
  pid_t tid_;
  int error_ = 0;
  std::atomic<int> state_ = 0;  // 0 attaching, 1 tracing, 2 done
  std::atomic<bool> stopping_ = false;
  std::array<std::atomic<long>, kNumbers> counts_{};
  std::thread thread_;
};

// The process whose command line holds both; -1: none.
[[nodiscard]] pid_t ProcessWith(const std::string& program, const std::string& argument);

}  // namespace oarlock::test
