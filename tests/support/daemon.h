// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tests/support/process.h"
#include "tests/support/sandbox.h"

namespace oarlock::test {

// An `oarlockd` of its own, with its socket and its log in a directory of its own.
class Daemon {
 public:
  explicit Daemon(std::vector<std::string> more_arguments = {});
  ~Daemon();
  [[nodiscard]] std::string socket() const { return directory_ / "run/admit.sock"; }
  [[nodiscard]] std::string control() const { return directory_ / "run/control.sock"; }
  [[nodiscard]] std::string log_path() const { return directory_ / "log/audit.jsonl"; }
  [[nodiscard]] std::vector<LogLine> Log() const { return ReadLog(log_path()); }
  [[nodiscard]] Process& process() noexcept { return *process_; }
  [[nodiscard]] pid_t pid() const noexcept { return process_->pid(); }
  // Descriptors that it has open now.
  [[nodiscard]] size_t Descriptors() const;
  void Stop();  // SIGTERM and wait

 private:
  TemporaryDirectory directory_;
  std::unique_ptr<Process> process_;
};

}  // namespace oarlock::test
