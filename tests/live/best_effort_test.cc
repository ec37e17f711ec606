// SPDX-License-Identifier: Apache-2.0
// enforce: best-effort goes on without what is not there, and never in silence; strict does not (R-MO-10, 11, 23, 40 to 43).
#include <sys/socket.h>
#include <sys/syscall.h>

#include "notif/abi/landlock.h"
#include "notif/base/pass_fd.h"
#include "tests/live/bad_input_support.h"
#include "tests/support/daemon.h"

namespace oarlock::test {
namespace {

constexpr uid_t kUser = 65534;

class BestEffortTest : public MarkerTest {
 protected:
  BestEffortTest() : daemon_({"--admit-uid", std::to_string(kUser)}) {}
  // The policy's own report says what the lines say.
  [[nodiscard]] std::string Policy(const std::string& more = "") const {
    return Good("\"enforce\":\"best-effort\",\"report\":\"" + t_ / "policies/report.json" + "\"" + (more.empty() ? "" : "," + more));
  }
  [[nodiscard]] std::string Report() const { return ReadWholeFile(t_ / "policies/report.json"); }
  [[nodiscard]] Outcome Under(const OuterFilter& filter, const std::string& policy) const {
    ProcessOptions options = WithPolicy(policy);
    options.environment["OARLOCK_SUPERVISOR"] = daemon_.socket();
    options.before_exec = filter.BeforeExec();
    return RunProcess(options);
  }
  [[nodiscard]] Outcome Capped(int abi, const std::string& policy, const std::vector<std::string>& program) const {
    ProcessOptions options = WithPolicy(policy);
    options.argv = {OARLOCK_BINARY_DIR "/tests/bin/older-launcher", "sandbox-exec", options.argv.at(2), "--"};
    options.environment["OARLOCK_TEST_ABI"] = std::to_string(abi);
    options.argv.insert(options.argv.end(), program.begin(), program.end());
    options.environment["OARLOCK_SUPERVISOR"] = daemon_.socket();
    return RunProcess(options);
  }
  // R-MO-43.
  static void NeverSilent(const Outcome& outcome, const std::string& report) {
    const bool silent = report.find("\"backend\":null") != std::string::npos && outcome.err.find("DEGRADED") == std::string::npos;
    EXPECT_FALSE(silent) << report;
  }
  Daemon daemon_;
};

TEST_F(BestEffortTest, R_MO_23_R_MO_40_R_MO_41_WithoutLandlock) {
  for (const int error : {ENOSYS, EPERM, EOPNOTSUPP}) {
    SCOPED_TRACE(error);
    OuterFilter filter;
    filter.Answer(abi::kSysLandlockCreateRuleset, error);
    const Outcome outcome = Under(filter, Policy());
    EXPECT_EQ(outcome.out, "RAN\n") << outcome.err;
    (void)::unlink(marker().c_str());
    EXPECT_NE(outcome.err.find("sandbox launch: DEGRADED filesystem: unavailable: "), std::string::npos) << outcome.err;
    EXPECT_EQ(outcome.err.find("kernel sandbox active"), std::string::npos) << outcome.err;
    EXPECT_NE(Report().find("\"backend\":null"), std::string::npos) << Report();
    EXPECT_NE(Report().find("\"degraded\":[\""), std::string::npos) << Report();
    NeverSilent(outcome, Report());
    ExpectStopped(Under(filter, Good()), 70, "K_LANDLOCK ");
    ExpectStopped(Under(filter, Policy("\"require\":[\"filesystem\"]")), 70, "K_REQUIRED /require/0");
  }
}

TEST_F(BestEffortTest, WhatIsThereAndFailsStillEndsIt) {
  for (const long nr : {abi::kSysLandlockAddRule, abi::kSysLandlockRestrictSelf}) {
    OuterFilter filter;
    ExpectStopped(Under(filter.Answer(nr, EINVAL), Policy()), 70, "K_LANDLOCK ");
  }
  OuterFilter no_new_privs;
  ExpectStopped(Under(no_new_privs.AnswerWhere(SYS_prctl, 0, PR_SET_NO_NEW_PRIVS, EINVAL), Policy()), 70, "K_NNP ");
  OuterFilter seccomp;
  ExpectStopped(Under(seccomp.Answer(SYS_seccomp, ENOSYS), Policy()), 70, "K_SECCOMP ");
}

TEST_F(BestEffortTest, WithoutAListener) {
  // Another one is around us, held by nobody but two sockets.
  int pair[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
  const UniqueFd ours(pair[0]), theirs(pair[1]);
  const auto under = [&](const std::string& policy) {
    ProcessOptions options = WithPolicy(policy);
    options.environment["OARLOCK_SUPERVISOR"] = daemon_.socket();
    options.argv.back() += "; (mount -t tmpfs none /mnt) 2>&1; (nice -n 5 true) && echo nice";
    options.before_exec = [&] {
      OuterFilter filter;
      const int listener = filter.Notify(SYS_vhangup).Install(abi::kSeccompFlagNewListener);
      if (listener < 0 || SendWithFd(theirs.get(), "", 1, listener) != 1) ::_exit(119);
    };
    const Outcome outcome = RunProcess(options);
    (void)::unlink(marker().c_str());
    return outcome;
  };
  const Outcome outcome = under(Policy());
  EXPECT_EQ(outcome.out.find("RAN"), 0U) << outcome.err;
  EXPECT_NE(outcome.out.find("nice"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("denied"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.err.find("sandbox launch: DEGRADED audit: unavailable: a seccomp listener cannot be installed"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("\nkernel sandbox active (Landlock ABI v"), std::string::npos) << outcome.err;
  EXPECT_NE(Report().find("\"listener\":false"), std::string::npos) << Report();

  ExpectStopped(under(Good()), 70, "K_SECCOMP ");
  ExpectStopped(under(Policy("\"net\":\"egress-allowlist\",\"proxy_port\":3128")), 70, "K_NOTIFY ");
  ExpectStopped(under(Policy("\"require\":[\"audit\"]")), 70, "K_REQUIRED /require/0");
}

// Its features drop out one by one.
TEST_F(BestEffortTest, R_MO_10_R_MO_11_OlderLandlocks) {
  const std::vector<std::string> program = {"/bin/sh", "-c", "mkdir -p " + work_ + "/a " + work_ + "/b && : >" + work_ + "/a/f && mv " + work_ + "/a/f " + work_ + "/b/f && echo moved; cat /etc/hostname /root/.profile >/dev/null || echo refused"};
  const Outcome newest = Capped(99, Policy(), program);
  EXPECT_EQ(newest.out, "moved\nrefused\n") << newest.err;
  const auto own = static_cast<int>(::syscall(abi::kSysLandlockCreateRuleset, nullptr, 0, abi::kLandlockCreateRulesetVersion));
  for (int cap = 1; cap <= std::min(own, 7); ++cap) {
    SCOPED_TRACE(cap);
    const Outcome outcome = Capped(cap, Policy(), program);
    EXPECT_EQ(outcome.out, "moved\nrefused\n") << outcome.err;  // at ABI 1 by copying
    EXPECT_NE(outcome.err.find("kernel sandbox active (Landlock ABI v" + std::to_string(cap) + ")\n"), std::string::npos) << outcome.err;
    const auto told = [&](const char* part) { return outcome.err.find(part) != std::string::npos && Report().find(part) != std::string::npos; };
    EXPECT_EQ(told("refer needs"), cap < 2) << outcome.err;
    EXPECT_EQ(told("truncate needs"), cap < 3) << outcome.err;
    EXPECT_EQ(told("ioctl_dev needs"), cap < 5) << outcome.err;
    EXPECT_FALSE(told("ipc: ")) << "signals are the supervisor's below ABI 6: " << outcome.err;
    const Outcome strict = Capped(cap, Good(), program);
    EXPECT_EQ(strict.out, "moved\nrefused\n") << strict.err;
    EXPECT_EQ(strict.err.find("DEGRADED"), std::string::npos) << strict.err;
  }
  const Outcome none = Capped(0, Policy(), program);
  EXPECT_EQ(none.err.find("kernel sandbox active"), std::string::npos) << none.err;
  EXPECT_NE(none.err.find("DEGRADED filesystem: unavailable"), std::string::npos) << none.err;
  ExpectStopped(Capped(0, Good(), program), 70, "K_LANDLOCK ");
}

}  // namespace
}  // namespace oarlock::test
