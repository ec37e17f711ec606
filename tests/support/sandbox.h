// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/process.h"
#include "tests/support/temporary.h"

namespace oarlock::test {

// Paths of what was built.
[[nodiscard]] std::string OarlockPath();
[[nodiscard]] std::string OarlockdPath();
[[nodiscard]] std::string CliPath();
[[nodiscard]] std::string ProbePath();

// One line of the audit log, as far as tests look.
struct LogLine {
  std::string text;
  std::string code, kind, call, session, target, process, errno_name;
  int error = 0;
  uint64_t count = 1;
  int class_uid = 0;
  int64_t pid = 0;
};
// Every line of a log file, or of every log in a directory. An unparsable line fails the running test.
[[nodiscard]] std::vector<LogLine> ReadLog(const std::string& path);

// Starts programs under `oarlock sandbox-exec`, with a policy of JSON text and a log of its own.
class Sandbox {
 public:
  // `policy`: the object's members as JSON text, without braces: "\"net\":\"none\"".
  explicit Sandbox(std::string policy = "");
  // Serve by this node supervisor instead of a private one.
  Sandbox& Supervisor(std::string socket);
  // The launcher starts as this uid.
  Sandbox& As(uid_t uid);
  Sandbox& Environment(const std::string& name, const std::string& value);
  Sandbox& Timeout(std::chrono::milliseconds timeout);

  [[nodiscard]] ProcessOptions Options(std::vector<std::string> argv) const;
  [[nodiscard]] Outcome Run(std::vector<std::string> argv) const { return RunProcess(Options(std::move(argv))); }
  // The same program with nothing around it: the twin of a denial.
  [[nodiscard]] Outcome RunBare(std::vector<std::string> argv) const;
  // Runs `oarlock-probe` with these words inside.
  [[nodiscard]] Outcome Probe(std::vector<std::string> words) const;
  [[nodiscard]] Outcome ProbeBare(std::vector<std::string> words) const;

  // Of private supervisors.
  [[nodiscard]] std::vector<LogLine> Log() const;
  [[nodiscard]] const TemporaryDirectory& directory() const noexcept { return directory_; }
  [[nodiscard]] std::string policy_path() const { return directory_ / "policy.json"; }

 private:
  TemporaryDirectory directory_;
  std::string supervisor_;
  std::optional<uid_t> uid_;
  std::map<std::string, std::string> environment_;
  std::chrono::milliseconds timeout_{20'000};
};

}  // namespace oarlock::test
