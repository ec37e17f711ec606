// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "notif/abi/seccomp.h"
#include "tests/support/process.h"
#include "tests/support/sandbox.h"
#include "tests/support/temporary.h"

namespace oarlock::test {

// A seccomp filter that somebody has put around the launcher. Rules are asked in order; the first that fits
// answers.
class OuterFilter {
 public:
  // Every call of `nr` gives `error`; 0: it says that it was done, and nothing is.
  OuterFilter& Answer(long nr, int error) {
    code_.insert(code_.end(), {Jump(BPF_JEQ, static_cast<uint32_t>(nr), 0, 1),
                               Return(abi::kRetErrno | static_cast<uint32_t>(error))});
    return *this;
  }
  // ... only where the low half of argument `index` is `value`.
  OuterFilter& AnswerWhere(long nr, unsigned index, uint32_t value, int error) {
    code_.insert(code_.end(), {Jump(BPF_JEQ, static_cast<uint32_t>(nr), 0, 4), Load(Low(index)),
                               Jump(BPF_JEQ, value, 0, 1),
                               Return(abi::kRetErrno | static_cast<uint32_t>(error)), Load(0)});
    return *this;
  }
  // ... only where argument `index` is not null.
  OuterFilter& AnswerWherePointer(long nr, unsigned index, int error) {
    code_.insert(code_.end(), {Jump(BPF_JEQ, static_cast<uint32_t>(nr), 0, 6), Load(Low(index)),
                               Jump(BPF_JEQ, 0, 0, 2), Load(Low(index) + 4), Jump(BPF_JEQ, 0, 1, 0),
                               Return(abi::kRetErrno | static_cast<uint32_t>(error)), Load(0)});
    return *this;
  }
  OuterFilter& Notify(long nr) {
    code_.insert(code_.end(), {Jump(BPF_JEQ, static_cast<uint32_t>(nr), 0, 1), Return(abi::kRetUserNotif)});
    return *this;
  }
  // In a child before exec: async-signal-safe. Root needs no no_new_privs for it, so that the launcher's own
  // is in question. The listener, if asked for; -1 on failure.
  [[nodiscard]] int Install(unsigned long flags = 0) {
    code_.push_back(Return(abi::kRetAllow));
    const sock_fprog program{static_cast<unsigned short>(code_.size()), code_.data()};
    return static_cast<int>(::syscall(SYS_seccomp, abi::kSeccompSetModeFilter, flags, &program));
  }
  // To be used as ProcessOptions::before_exec.
  [[nodiscard]] std::function<void()> BeforeExec() const {
    return [filter = *this]() mutable {
      if (filter.Install() != 0) ::_exit(119);
    };
  }
  OuterFilter() {
    code_.reserve(64);
    code_.push_back(Load(0));
  }

 private:
  static constexpr uint32_t Low(unsigned index) {
    return static_cast<uint32_t>(offsetof(abi::SeccompData, args)) + 8 * index;
  }
  static sock_filter Load(uint32_t offset) { return BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offset); }
  static sock_filter Jump(unsigned how, uint32_t value, uint8_t yes, uint8_t no) {
    return BPF_JUMP(static_cast<uint16_t>(BPF_JMP | how | BPF_K), value, yes, no);
  }
  static sock_filter Return(uint32_t value) { return BPF_STMT(BPF_RET | BPF_K, value); }
  std::vector<sock_filter> code_;
};

// A place to work in, and a program whose having run cannot be missed: it says so on stdout and leaves a file
// behind.
class MarkerTest : public ::testing::Test {
 protected:
  MarkerTest() {
    work_ = t_.MakeDirectory("work", 0777);
    (void)t_.MakeDirectory("state", 0755);
    (void)t_.MakeDirectory("policies", 0755);
  }

  [[nodiscard]] std::string marker() const { return work_ + "/ran"; }
  [[nodiscard]] std::vector<std::string> Program() const {
    return {"/bin/sh", "-c", "echo RAN; echo ran > " + marker()};
  }
  // A sound policy that lets the program leave its mark, and `more` members.
  [[nodiscard]] std::string Good(const std::string& more = "") const {
    return "{\"version\":1,\"module\":\"marked\",\"rw\":[\"" + work_ + "\"]" +
           (more.empty() ? "" : "," + more) + "}";
  }
  std::string WritePolicy(const std::string& text) const {
    return t_.WriteFile("policies/policy.json", text);
  }

  // The launcher with these words behind its verb.
  [[nodiscard]] ProcessOptions Launcher(const std::vector<std::string>& words) const {
    ProcessOptions options;
    options.argv = {OarlockPath(), "sandbox-exec"};
    options.argv.insert(options.argv.end(), words.begin(), words.end());
    options.environment["XDG_STATE_HOME"] = t_ / "state";
    options.timeout = std::chrono::seconds(30);
    return options;
  }
  [[nodiscard]] ProcessOptions WithPolicy(const std::string& policy_text) const {
    std::vector<std::string> words = {WritePolicy(policy_text), "--"};
    for (const std::string& word : Program()) words.push_back(word);
    return Launcher(words);
  }

  [[nodiscard]] bool Ran(const Outcome& outcome) const {
    return outcome.out.find("RAN") != std::string::npos || std::filesystem::exists(marker());
  }
  void ExpectRan(const Outcome& outcome) const {
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(outcome.out, "RAN\n");
    EXPECT_EQ(outcome.err, "");
    EXPECT_TRUE(std::filesystem::exists(marker()));
    std::filesystem::remove(marker());
  }
  // Exit code, exactly one line with this beginning, and no trace of the program.
  void ExpectStopped(const Outcome& outcome, int code, const std::string& beginning,
                     const std::string& part = "") const {
    const bool ran = Ran(outcome);
    std::filesystem::remove(marker());
    ASSERT_EQ(outcome.code, code) << (ran ? "and it ran: " : "") << outcome.out << outcome.err;
    EXPECT_FALSE(ran) << outcome.out;
    EXPECT_EQ(outcome.out, "");
    EXPECT_TRUE(outcome.err.starts_with("sandbox launch: " + beginning))
        << outcome.err << "expected: " << beginning;
    EXPECT_NE(outcome.err.find(part), std::string::npos) << outcome.err << "expected: " << part;
    EXPECT_EQ(std::ranges::count_if(outcome.err, [](char c) { return c == '\n'; }), 1) << outcome.err;
    EXPECT_TRUE(outcome.err.ends_with('\n')) << outcome.err;
  }

  TemporaryDirectory t_;
  std::string work_;
};

}  // namespace oarlock::test
