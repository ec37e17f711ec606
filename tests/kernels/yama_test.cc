// SPDX-License-Identifier: Apache-2.0
// Yama's ptrace_scope decides who may look at a module's calls. For each of its values, each way to launch works or refuses in one
// clear line, as doctor says it will. The setting is the machine's, so only a kernel of scripts/kernels.sh is put through this.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>

#include "notif/json.h"
#include "tests/kernels/support.h"

namespace oarlock::test {
namespace {

constexpr uid_t kNobody = 65534;

class YamaTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!YamaScope()) GTEST_SKIP() << "this kernel has no Yama";
    if (!IsThrowAwayGuest()) GTEST_SKIP() << "changes kernel.yama.ptrace_scope: only in a kernel of scripts/kernels.sh";
    for (const uid_t uid : {uid_t{0}, kNobody}) (void)places_.MakeDirectory("state-" + std::to_string(uid), 0755, uid, uid);
  }
  static void SetScope(int scope) {
    std::ofstream("/proc/sys/kernel/yama/ptrace_scope") << scope;
    ASSERT_EQ(YamaScope(), scope);
  }
  [[nodiscard]] std::vector<std::string> Words() const {
    return {"tcp,127.0.0.1," + std::to_string(proxy_.port()), "tcp,127.0.0.1," + std::to_string(other_.port())};
  }
  [[nodiscard]] ProcessOptions As(uid_t uid, std::vector<std::string> argv) const {
    ProcessOptions options;
    options.argv = std::move(argv);
    options.environment["XDG_STATE_HOME"] = places_ / ("state-" + std::to_string(uid));
    if (uid != 0) options.uid = uid;
    options.timeout = std::chrono::seconds(60);
    return options;
  }
  // In a child of the module's first process too.
  [[nodiscard]] Outcome Exec(uid_t uid, const std::string& supervisor = "") const {
    Sandbox sandbox(Egress(proxy_.port()));
    if (uid != 0) sandbox.As(uid);
    if (!supervisor.empty()) sandbox.Supervisor(supervisor);
    sandbox.Timeout(std::chrono::seconds(60));
    return sandbox.Run({"/bin/sh", "-c", "\"$@\"; exit $?", "sh", ProbePath(), Words()[0], Words()[1]});
  }
  [[nodiscard]] Outcome Run(uid_t uid) const {
    return RunProcess(As(uid, {OarlockPath(), "run", "--quiet", "--proxy-port", std::to_string(proxy_.port()), "--ro", OARLOCK_BINARY_DIR "/tests/bin", "--", "/bin/sh", "-c",
                               "\"$@\"; exit $?", "sh", ProbePath(), Words()[0], Words()[1]}));
  }
  // By a process whose parents have gone: it comes to the outer of the two processes of `run`, above the supervisor.
  [[nodiscard]] Outcome RunOrphan(uid_t uid) const {
    return RunProcess(As(uid, {OarlockPath(), "run", "--quiet", "--proxy-port", std::to_string(proxy_.port()), "--ro", OARLOCK_BINARY_DIR "/tests/bin", "--", "/bin/sh", "-c",
                               "/bin/sh -c '(sleep 1; exec \"$0\" \"$@\") &' \"$@\"; sleep 5", "sh", ProbePath(), Words()[0], Words()[1]}));
  }
  void Works(const Outcome& outcome, const char* refusal) const {
    EXPECT_EQ(outcome.code, 0) << outcome.err << outcome.out;
    EXPECT_EQ(ResultOf(outcome, Words()[0]), "0 hello");
    EXPECT_EQ(ResultOf(outcome, Words()[1]), refusal);
    EXPECT_EQ(other_.connections(), 0);
  }
  // The module never ran, and one line says what stands in the way and what would help.
  void IsRefused(const Outcome& outcome, int code) const {
    EXPECT_EQ(outcome.code, code) << outcome.err << outcome.out;
    EXPECT_EQ(outcome.out, "");
    EXPECT_EQ(std::ranges::count(outcome.err, '\n'), 1) << outcome.err;
    EXPECT_NE(outcome.err.find("K_NOTIFY"), std::string::npos) << outcome.err;
    EXPECT_NE(outcome.err.find("ptrace_scope"), std::string::npos) << outcome.err;
  }
  // What doctor says of each way to launch, for this user.
  [[nodiscard]] std::map<std::string, bool> DoctorSays(uid_t uid) const {
    const Outcome outcome = RunProcess(As(uid, {OarlockPath(), "doctor", "--json"}));
    std::string problem;
    const Json said = ParseStrictJson(outcome.out, &problem);
    EXPECT_EQ(problem, "") << outcome.out << outcome.err;
    std::map<std::string, bool> confined;
    for (const Json& launch : said.value("launches", Json::array())) confined[launch.value("way", "")] = launch.value("confined", false);
    return confined;
  }
  TemporaryDirectory places_;
  TcpServer proxy_, other_;
};

class YamaScopeTest : public YamaTest, public testing::WithParamInterface<int> {};

// 3 cannot be taken back before the next boot, so it comes last.
TEST_P(YamaScopeTest, EachWayToLaunch) {
  const int scope = GetParam();
  SetScope(scope);
  // With CAP_SYS_PTRACE: up to 2. Without: 1 spares a parent, which `run` is, and the supervisor of sandbox-exec is not.
  for (const uid_t uid : {uid_t{0}, kNobody}) {
    SCOPED_TRACE(uid == 0 ? "root" : "nobody");
    const bool exec = scope == 0 || (uid == 0 && scope <= 2), run = scope <= 1 || (uid == 0 && scope == 2);
    const Outcome by_exec = Exec(uid), by_run = Run(uid);
    if (exec) Works(by_exec, "EACCES");
    else IsRefused(by_exec, 70);
    if (run) Works(by_run, "ENETUNREACH");
    else IsRefused(by_run, 125);
    if (run) {
      const Outcome orphan = RunOrphan(uid);
      if (exec) {
        Works(orphan, "ENETUNREACH");
      } else {
        // Nobody is left whose descendant it is: it cannot be looked at, so its calls are refused.
        EXPECT_EQ(orphan.code, 0) << orphan.err;
        for (const std::string& word : Words()) EXPECT_EQ(ResultOf(orphan, word), "EACCES");
        EXPECT_EQ(other_.connections(), 0);
      }
    }
    EXPECT_EQ(DoctorSays(uid), (std::map<std::string, bool>{{"run", run}, {"sandbox-exec", exec}}));
  }
  Daemon daemon({"--admit-uid", std::to_string(kNobody)});
  for (const uid_t uid : {uid_t{0}, kNobody}) {
    SCOPED_TRACE(uid == 0 ? "oarlockd, root" : "oarlockd, nobody");
    const Outcome outcome = Exec(uid, daemon.socket());
    if (scope <= 2) Works(outcome, "EACCES");
    else IsRefused(outcome, 70);
  }
  EXPECT_TRUE(daemon.process().Running());
}

INSTANTIATE_TEST_SUITE_P(Scopes, YamaScopeTest, testing::Range(0, 4));

}  // namespace
}  // namespace oarlock::test
