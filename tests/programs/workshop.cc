// SPDX-License-Identifier: Apache-2.0
#include "tests/programs/workshop.h"

#include <unistd.h>

#include <filesystem>

#include "notif/base/check.h"

namespace oarlock::test {
namespace {

constexpr auto kPatience = std::chrono::seconds(150);

}  // namespace

Workshop::Workshop(Identity identity, const std::string& data, const std::string& policy) : identity_(identity) {
  (void)served_.WriteFile("file.txt", std::string(kHello) + "\n");
  origin_.emplace(served_.path());
  work_ = home_.MakeDirectory("work", 0755, uid(), uid());
  elsewhere_ = home_.MakeDirectory("elsewhere", 0777, uid(), uid());
  std::filesystem::create_directory(work_ + "/tmp");
  if (!data.empty()) {
    std::filesystem::copy(OARLOCK_SOURCE_DIR "/tests/programs/data/" + data, work_, std::filesystem::copy_options::recursive);
    if (std::filesystem::exists(work_ + "/prepare.sh")) {
      ProcessOptions options;
      options.argv = {"/bin/bash", work_ + "/prepare.sh"};
      options.environment = Environment();
      options.environment["SERVED"] = served_.path();
      options.directory = work_;
      const Outcome prepared = RunProcess(options);
      OARLOCK_CHECK(prepared.code == 0, "%s/prepare.sh: %s", data.c_str(), prepared.err.c_str());
    }
  }
  for (const auto& entry : std::filesystem::recursive_directory_iterator(work_))
    OARLOCK_CHECK(::lchown(entry.path().c_str(), uid(), uid()) == 0);
  std::string members = R"("rw":[")" + work_ + R"("],"net":"egress-allowlist","proxy_port":)" + std::to_string(proxy_.port());
  if (identity_ == Identity::kNobody) members += R"(,"run_as":{"uid":65534,"gid":65534})";
  sandbox_.emplace(members + policy);
  sandbox_->Timeout(kPatience);
  for (const auto& [name, value] : Environment()) sandbox_->Environment(name, value);
}

uid_t Workshop::uid() const noexcept { return identity_ == Identity::kNobody ? kNobodyUid : ::getuid(); }

std::map<std::string, std::string> Workshop::Environment() const {
  return {{"ORIGIN", std::to_string(origin_->port())},
          {"PROXY_PORT", std::to_string(proxy_.port())},
          {"WORK", work_},
          {"HOME", work_},
          {"TMPDIR", work_ + "/tmp"},
          {"ELSEWHERE", elsewhere_}};
}

ProcessOptions Workshop::InsideOptions(std::vector<std::string> argv, const std::map<std::string, std::string>& more) const {
  ProcessOptions options = sandbox_->Options(std::move(argv));
  for (const auto& [name, value] : more) options.environment[name] = value;
  options.directory = work_;
  return options;
}

Outcome Workshop::Inside(std::vector<std::string> argv, const std::map<std::string, std::string>& more) const {
  return RunProcess(InsideOptions(std::move(argv), more));
}

Outcome Workshop::Outside(std::vector<std::string> argv, const std::map<std::string, std::string>& more) const {
  ProcessOptions options;
  options.argv = std::move(argv);
  options.environment = Environment();
  for (const auto& [name, value] : more) options.environment[name] = value;
  options.directory = work_;
  options.timeout = kPatience;
  if (identity_ == Identity::kNobody) options.uid = kNobodyUid;
  return RunProcess(options);
}

std::map<std::string, uint64_t> Workshop::Denials() const {
  std::map<std::string, uint64_t> denials;
  for (const LogLine& line : sandbox_->Log())
    if (line.kind == "DENY")
      denials[line.code + " " + (line.target.empty() ? line.call : line.target) + " " + line.errno_name + " " + line.process] += line.count;
  return denials;
}

}  // namespace oarlock::test
