// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "notif/wire.h"
#include "tests/support/daemon.h"
#include "tests/support/process.h"
#include "tests/support/sandbox.h"
#include "tests/support/temporary.h"

namespace oarlock::test {

inline constexpr uid_t kNobody = 65534, kSomebody = 65533;

// A process whose uid has its own privileges dropped, as a launcher of ours leaves it; root's as well.
inline const std::vector<std::string> kConfined = {"dropcaps", "nnp", "filter"};

inline std::vector<std::string> operator+(std::vector<std::string> a, const std::vector<std::string>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

inline std::string SpeakerPath() { return OARLOCK_BINARY_DIR "/tests/bin/admission-speaker"; }

inline ProcessOptions SpeakerOptions(const std::vector<std::string>& steps) {
  ProcessOptions options;
  options.argv = std::vector<std::string>{SpeakerPath()} + steps;
  options.timeout = std::chrono::seconds(60);
  return options;
}
inline Outcome Speak(const std::vector<std::string>& steps) { return RunProcess(SpeakerOptions(steps)); }

// A message as our launcher would send it, of a session that may reach nothing.
inline wire::Admission SampleAdmission() {
  wire::Admission admission;
  admission.module = "speaker";
  admission.kind = "test";
  admission.policy_json = "{}";
  admission.policy_sha256 = std::string(64, '0');
  admission.filter = "test";
  admission.probe.fill(0x5a);
  admission.fds = {"seccompFd"};
  return admission;
}

// A supervisor, the number of descriptors that it has when nothing is going on, and the question whether it
// is well.
class Node {
 public:
  explicit Node(std::vector<std::string> arguments = {}) : daemon_(std::move(arguments)) {
    Launches();
    // Closes are another thread's; two equal looks are rest.
    EXPECT_TRUE(Eventually([this] {
      const size_t before = daemon_.Descriptors();
      return !Eventually([&] { return daemon_.Descriptors() != before; }, std::chrono::milliseconds(150));
    }));
    descriptors_ = daemon_.Descriptors();
  }
  [[nodiscard]] Daemon& daemon() noexcept { return daemon_; }
  [[nodiscard]] std::string socket() const { return daemon_.socket(); }
  [[nodiscard]] std::string control() const { return daemon_.control(); }
  [[nodiscard]] const TemporaryDirectory& directory() const noexcept { return directory_; }

  std::string Write(const std::string& name, const std::string& text) const {
    return directory_.WriteFile(name, text);
  }
  std::string Write(const std::string& name, const wire::Admission& admission) const {
    return Write(name, wire::Encode(admission));
  }

  // An ordinary launch goes through.
  void Launches() {
    Sandbox sandbox;
    sandbox.Supervisor(daemon_.socket());
    const Outcome outcome = sandbox.Probe({"pid"});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_TRUE(outcome.out.starts_with("pid -> 0 ")) << outcome.out;
  }
  // It lives, works, and has let go of everything.
  void ExpectWell(std::chrono::milliseconds patience = std::chrono::seconds(10)) {
    ASSERT_TRUE(daemon_.process().Running()) << "the supervisor has ended";
    Launches();
    EXPECT_TRUE(Eventually([this] { return daemon_.Descriptors() == descriptors_; }, patience))
        << daemon_.Descriptors() << " descriptors, " << descriptors_ << " before";
  }

 private:
  TemporaryDirectory directory_;
  Daemon daemon_;
  size_t descriptors_ = 0;
};

}  // namespace oarlock::test
