// SPDX-License-Identifier: Apache-2.0
#include "tests/support/sandbox.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "notif/base/check.h"
#include "notif/json.h"

namespace oarlock::test {

std::string OarlockPath() { return OARLOCK_BINARY_DIR "/bin/oarlock"; }
std::string OarlockdPath() { return OARLOCK_BINARY_DIR "/bin/oarlockd"; }
std::string CliPath() { return OARLOCK_BINARY_DIR "/libexec/oarlock/oarlock-cli"; }
std::string ProbePath() { return OARLOCK_BINARY_DIR "/tests/bin/oarlock-probe"; }

std::vector<LogLine> ReadLog(const std::string& path) {
  std::vector<LogLine> lines;
  if (std::filesystem::is_directory(path)) {
    for (const auto& entry : std::filesystem::directory_iterator(path))
      if (entry.path().extension() == ".jsonl") {
        const auto more = ReadLog(entry.path());
        lines.insert(lines.end(), more.begin(), more.end());
      }
    return lines;
  }
  std::ifstream file(path);
  for (std::string text; std::getline(file, text);) {
    if (file.eof()) break;  // no newline yet: it is being written
    std::string problem;
    const Json json = ParseStrictJson(text, &problem);
    EXPECT_EQ(problem, "") << text;
    if (!problem.empty()) continue;
    LogLine line;
    line.text = text;
    line.class_uid = json.value("class_uid", 0);
    line.code = json.value("status_code", "");
    line.count = json.value("count", uint64_t{1});
    const Json unmapped = json.value("unmapped", Json::object());
    line.kind = unmapped.value("kind", "");
    line.call = unmapped.value("syscall", "");
    line.error = unmapped.value("errno", 0);
    line.errno_name = unmapped.value("errno_name", "");
    if (const auto at = Json::json_pointer("/actor/process/sandbox"); json.contains(at)) line.session = json[at];
    if (const auto at = Json::json_pointer("/actor/process/name"); json.contains(at)) line.process = json[at];
    if (const auto at = Json::json_pointer("/actor/process/pid"); json.contains(at)) line.pid = json[at];
    const Json target = json.value("dst_endpoint", Json::object());
    if (target.contains("name")) line.target = target["name"];
    else if (target.contains("ip")) line.target = target.value("ip", "") + ":" + std::to_string(target.value("port", 0));
    lines.push_back(std::move(line));
  }
  return lines;
}

Sandbox::Sandbox(std::string policy) {
  (void)directory_.WriteFile("policy.json", "{\"version\":1,\"module\":\"test\",\"ro\":[\"" OARLOCK_BINARY_DIR "/tests/bin\"]" +
                                                (policy.empty() ? std::string() : "," + policy) + "}");
  OARLOCK_CHECK(::mkdir((directory_ / "state").c_str(), 0777) == 0 && ::chmod((directory_ / "state").c_str(), 0777) == 0);
}

Sandbox& Sandbox::Supervisor(std::string socket) {
  supervisor_ = std::move(socket);
  return *this;
}

Sandbox& Sandbox::As(uid_t uid) {
  uid_ = uid;
  // The policy must be the launcher's own or root's, and its log directory must not be anybody's to write.
  OARLOCK_CHECK(::chown((directory_ / "state").c_str(), uid, uid) == 0 && ::chmod((directory_ / "state").c_str(), 0755) == 0);
  return *this;
}

Sandbox& Sandbox::Environment(const std::string& name, const std::string& value) {
  environment_[name] = value;
  return *this;
}

Sandbox& Sandbox::Timeout(std::chrono::milliseconds timeout) {
  timeout_ = timeout;
  return *this;
}

ProcessOptions Sandbox::Options(std::vector<std::string> argv) const {
  ProcessOptions options;
  options.argv = {OarlockPath(), "sandbox-exec", policy_path(), "--"};
  options.argv.insert(options.argv.end(), argv.begin(), argv.end());
  options.environment = environment_;
  options.environment["XDG_STATE_HOME"] = directory_ / "state";
  if (!supervisor_.empty()) options.environment["OARLOCK_SUPERVISOR"] = supervisor_;
  options.uid = uid_;
  options.timeout = timeout_;
  return options;
}

Outcome Sandbox::RunBare(std::vector<std::string> argv) const {
  ProcessOptions options;
  options.argv = std::move(argv);
  options.environment = environment_;
  options.uid = uid_;
  options.timeout = timeout_;
  return RunProcess(options);
}

Outcome Sandbox::Probe(std::vector<std::string> words) const {
  words.insert(words.begin(), ProbePath());
  return Run(std::move(words));
}

Outcome Sandbox::ProbeBare(std::vector<std::string> words) const {
  words.insert(words.begin(), ProbePath());
  return RunBare(std::move(words));
}

std::vector<LogLine> Sandbox::Log() const { return ReadLog(directory_ / "state/oarlock/audit"); }

}  // namespace oarlock::test
