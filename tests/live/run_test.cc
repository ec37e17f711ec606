// SPDX-License-Identifier: Apache-2.0
// `oarlock run`: exit codes, stages, signals, what is left behind.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "notif/json.h"
#include "tests/support/sandbox.h"
#include "tests/support/servers.h"

namespace oarlock::test {
namespace {

class RunTest : public testing::Test {
 protected:
  ProcessOptions Options(std::vector<std::string> more) const {
    ProcessOptions options;
    options.argv = {OarlockPath(), "run"};
    options.argv.insert(options.argv.end(), more.begin(), more.end());
    options.environment["XDG_STATE_HOME"] = state_.path();
    return options;
  }
  Outcome Run(std::vector<std::string> more) const { return RunProcess(Options(std::move(more))); }
  std::vector<LogLine> Log() const { return ReadLog(state_ / "oarlock/audit"); }
  TemporaryDirectory state_;
};

TEST_F(RunTest, ExitCodes) {
  EXPECT_EQ(Run({"--", "sh", "-c", "exit 0"}).code, 0);
  EXPECT_EQ(Run({"--", "sh", "-c", "exit 42"}).code, 42);
  EXPECT_EQ(Run({"--", "sh", "-c", "exit 70"}).code, 70) << "the command's own";
  EXPECT_EQ(Run({"--", "sh", "-c", "exit 125"}).code, 125);
  EXPECT_EQ(Run({"--", "sh", "-c", "exit 255"}).code, 255);
  EXPECT_EQ(Run({"--", "sh", "-c", "kill -SEGV $$"}).code, 139);
  EXPECT_EQ(Run({"--", "sh", "-c", "kill -KILL $$"}).code, 137);
  EXPECT_EQ(Run({"--", "sh", "-c", "kill -ABRT $$"}).code, 134);
  EXPECT_EQ(Run({"--", "no-such-command"}).code, 127);
  EXPECT_EQ(Run({"--", "/no/such/command"}).code, 127);
  EXPECT_EQ(Run({"--", "/etc/passwd"}).code, 126);
  EXPECT_EQ(Run({}).code, 64);
  EXPECT_EQ(Run({"--proxy-port", "0", "--", "true"}).code, 64);
  EXPECT_EQ(Run({"--nonsense", "--", "true"}).code, 64);
  EXPECT_EQ(Run({"--rw", "/no/such/directory", "--", "true"}).code, 125);
  EXPECT_EQ(Run({"--broker", "/etc/passwd", "--", "true"}).code, 125);
}

TEST_F(RunTest, ReachesTheProxyAndSaysWhatWasRefused) {
  TcpServer proxy, other;
  const Outcome allowed = Run({"--proxy-port", std::to_string(proxy.port()), "--ro", OARLOCK_BINARY_DIR "/tests/bin", "--", ProbePath(),
                               "tcp,127.0.0.1," + std::to_string(proxy.port())});
  EXPECT_EQ(allowed.out, "tcp,127.0.0.1," + std::to_string(proxy.port()) + " -> 0 hello\n");
  EXPECT_EQ(allowed.err, "") << "no refusal, no footer";
  const std::string refused_word = "tcp,127.0.0.1," + std::to_string(other.port());
  const Outcome refused = Run({"--proxy-port", std::to_string(proxy.port()), "--", ProbePath(), refused_word, refused_word});
  EXPECT_EQ(refused.out, refused_word + " -> ENETUNREACH\n" + refused_word + " -> ENETUNREACH\n");
  EXPECT_EQ(refused.err.rfind("oarlock: 2 refusals, 'oarlock audit list --session ", 0), 0U) << refused.err;
  EXPECT_EQ(other.connections(), 0);
  // What the footer says to type works.
  const size_t at = refused.err.find("--session ") + 10;
  ProcessOptions list;
  list.argv = {OarlockPath(), "audit", "list", "--session", refused.err.substr(at, 26)};
  list.environment["XDG_STATE_HOME"] = state_.path();
  const Outcome listed = RunProcess(list);
  EXPECT_EQ(listed.code, 0) << listed.err;
  EXPECT_EQ(std::ranges::count(listed.out, '\n'), 2) << listed.out;
  EXPECT_NE(listed.out.find("DENY TCP_NOT_PROXY"), std::string::npos);
  EXPECT_EQ(Run({"--quiet", "--", ProbePath(), "socket,2,1,0"}).err, "");
}

TEST_F(RunTest, StagesOnTheStatusDescriptor) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  UniqueFd read_end(ends[0]), write_end(ends[1]);
  ProcessOptions options = Options({"--status-fd", "9", "--", "sh", "-c", "exit 3"});
  options.before_exec = [&] { (void)dup2(ends[1], 9); };
  EXPECT_EQ(RunProcess(options).code, 3);
  write_end.Reset();
  std::string text(4096, '\0');
  text.resize(static_cast<size_t>(std::max<ssize_t>(0, read(read_end.get(), text.data(), text.size()))));
  std::vector<std::string> stages;
  for (size_t at = 0; at < text.size(); at = text.find('\n', at) + 1) {
    std::string problem;
    const Json line = ParseStrictJson(text.substr(at, text.find('\n', at) - at), &problem);
    ASSERT_EQ(problem, "") << text;
    stages.push_back(line["stage"]);
    EXPECT_EQ(line["session"].get<std::string>().size(), 26U);
    if (line["stage"] == "exited") EXPECT_EQ(line["code"], 3);
  }
  EXPECT_EQ(stages, (std::vector<std::string>{"confined", "started", "exited"}));
}

TEST_F(RunTest, SignalsAreForwarded) {
  Process process(Options({"--", "sh", "-c", "trap 'echo got term; exit 5' TERM; echo ready; while :; do sleep 0.1; done"}));
  ASSERT_TRUE(process.WaitFor("ready")) << process.err();
  process.Signal(SIGTERM);
  ASSERT_TRUE(process.WaitFor("got term"));
  EXPECT_EQ(process.Wait().code, 5);
}

TEST_F(RunTest, InterruptEndsAPendingConnect) {
  TemporaryDirectory directory;
  const std::string agent = directory.MakeDirectory("agent");
  UnixServer broker(agent + "/b.sock", SOCK_STREAM, 0666, false, 0);
  Process process(Options({"--broker", agent + "/b.sock", "--", "python3", "-c",
                           "import socket\n"
                           "a=socket.socket(socket.AF_UNIX); a.connect('" + agent + "/b.sock'); print('ready',flush=True)\n"
                           "try:\n  b=socket.socket(socket.AF_UNIX); b.connect('" + agent + "/b.sock')\n"
                           "except KeyboardInterrupt: print('interrupted')\n"}));
  ASSERT_TRUE(process.WaitFor("ready")) << process.err();
  usleep(300'000);
  process.Signal(SIGINT);
  const Outcome outcome = process.Wait();
  EXPECT_EQ(outcome.out, "ready\ninterrupted\n") << outcome.err;
  EXPECT_LT(outcome.seconds, 15) << "nobody else would end it";
}

bool IsAlive(pid_t pid) { return std::filesystem::exists("/proc/" + std::to_string(pid)) ; }

TEST_F(RunTest, R_OB_15_WhatIsLeftIsEnded) {
  TemporaryDirectory directory;
  const std::string work = directory.MakeDirectory("work");
  const Outcome outcome = Run({"--rw", work, "--", "sh", "-c", "setsid sh -c 'echo $$ > " + work + "/pid; sleep 60' & until [ -s " + work + "/pid ]; do sleep 0.05; done; exit 6"});
  EXPECT_EQ(outcome.code, 6);
  const pid_t pid = std::atoi(ReadWholeFile(work + "/pid").c_str());
  ASSERT_GT(pid, 1);
  EXPECT_TRUE(Eventually([&] { return !IsAlive(pid); }, std::chrono::seconds(1)));
}

TEST_F(RunTest, KeepChildrenLeavesThemSupervised) {
  TemporaryDirectory directory;
  const std::string work = directory.MakeDirectory("work");
  TcpServer proxy, other;
  const Outcome outcome = Run({"--keep-children", "--proxy-port", std::to_string(proxy.port()), "--rw", work, "--ro", OARLOCK_BINARY_DIR "/tests/bin", "--", "sh", "-c",
                               "setsid sh -c 'exec </dev/null >" + work + "/out 2>&1; echo $$ > " + work + "/pid; until [ -e " + work + "/go ]; do sleep 0.05; done; exec " +
                                   ProbePath() + " tcp,127.0.0.1," + std::to_string(proxy.port()) + " tcp,127.0.0.1," + std::to_string(other.port()) +
                                   "' & until [ -s " + work + "/pid ]; do sleep 0.05; done; exit 0"});
  // Run returns, the daemon stays.
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  (void)directory.WriteFile("work/go", "");
  const std::string expected = "tcp,127.0.0.1," + std::to_string(proxy.port()) + " -> 0 hello\ntcp,127.0.0.1," + std::to_string(other.port()) + " -> ENETUNREACH\n";
  EXPECT_TRUE(Eventually([&] { return ReadWholeFile(work + "/out") == expected; }, std::chrono::seconds(5))) << ReadWholeFile(work + "/out");
  EXPECT_EQ(other.connections(), 0);
}

// kill -9 of the supervisor: calls fail, and the outer process ends what is left.
TEST_F(RunTest, LostSupervisorFailsClosed) {
  Process process(Options({"--", "sh", "-c", "echo $PPID; sleep 60"}));
  ASSERT_TRUE(Eventually([&] { return process.WaitFor("\n", std::chrono::milliseconds(50)); }));
  const pid_t supervisor = std::atoi(process.out().c_str());
  ASSERT_GT(supervisor, 1);
  ASSERT_EQ(kill(supervisor, SIGKILL), 0);
  const Outcome outcome = process.Wait();
  EXPECT_EQ(outcome.code, 125);
  EXPECT_NE(outcome.err.find("supervisor was lost"), std::string::npos) << outcome.err;
  EXPECT_LT(outcome.seconds, 5);
}

TEST_F(RunTest, PipesEndWithTheCommand) {
  ProcessOptions options;
  options.argv = {"/bin/sh", "-c", "x=$(" + OarlockPath() + " run -- true); " + OarlockPath() + " run -- echo hi | cat; echo done"};
  options.environment["XDG_STATE_HOME"] = state_.path();
  const Outcome outcome = RunProcess(options);
  EXPECT_EQ(outcome.out, "hi\ndone\n") << outcome.err;
}

TEST_F(RunTest, InputReachesTheCommand) {
  ProcessOptions options = Options({"--", "cat"});
  options.input = "some text\n";
  EXPECT_EQ(RunProcess(options).out, "some text\n");
}

TEST_F(RunTest, AsAnOrdinaryUser) {
  TemporaryDirectory home;
  ASSERT_EQ(chown(home.path().c_str(), 65534, 65534), 0);
  ProcessOptions options = Options({"--", "sh", "-c", "id -u; exit 9"});
  options.uid = 65534;
  options.environment["XDG_STATE_HOME"] = home / "state";
  const Outcome outcome = RunProcess(options);
  EXPECT_EQ(outcome.out, "65534\n") << outcome.err;
  EXPECT_EQ(outcome.code, 9);
}

TEST_F(RunTest, DryRunPrintsThePolicy) {
  const Outcome outcome = Run({"--dry-run", "--proxy-port", "3128", "--", "true"});
  std::string problem;
  const Json policy = ParseStrictJson(outcome.out, &problem);
  ASSERT_EQ(problem, "") << outcome.out;
  EXPECT_EQ(policy["proxy_port"], 3128);
  EXPECT_EQ(policy["refuse_with"]["tcp"], "ENETUNREACH");
}

TEST_F(RunTest, PolicyFile) {
  TemporaryDirectory directory;
  const std::string policy = directory.WriteFile("p.json", "{\"net\":\"none\",\"rw\":[\"" + directory.path() + "\"]}");
  const Outcome outcome = Run({"--policy", policy, "--", "sh", "-c", "echo x > " + directory.path() + "/made && cat " + directory.path() + "/made"});
  EXPECT_EQ(outcome.out, "x\n");
  EXPECT_NE(outcome.err.find("warning"), std::string::npos) << "the command can change its own next run";
  EXPECT_EQ(Run({"--policy", policy, "--proxy-port", "1", "--", "true"}).code, 64);
  EXPECT_EQ(Run({"--policy", directory / "none.json", "--", "true"}).code, 125);
}

}  // namespace
}  // namespace oarlock::test
