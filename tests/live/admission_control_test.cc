// SPDX-License-Identifier: Apache-2.0
// The control socket, and `oarlock sandbox-check`, which asks it.
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <sstream>
#include <thread>

#include "tests/live/admission_support.h"

namespace oarlock::test {
namespace {

using Steps = std::vector<std::string>;

constexpr const char* kPs = "say,{\"oarlock\":1,\"verb\":\"ps\"}";

Outcome Check(const std::string& pid, const std::vector<std::string>& more = {},
              const std::map<std::string, std::string>& environment = {}, std::optional<uid_t> uid = {}) {
  ProcessOptions options;
  options.argv = std::vector<std::string>{OarlockPath(), "sandbox-check", pid} + more;
  options.environment = environment;
  options.uid = uid;
  return RunProcess(options);
}
Outcome Check(pid_t pid, const Node& node) {
  return Check(std::to_string(pid), {"--control", node.control()});
}

// --- the socket --------------------------------------------------------------------------------------------

class ControlTest : public ::testing::Test {
 protected:
  static std::string Ask(const Node& node, const Steps& steps) {
    return ResultOf(Speak(Steps{"seqpacket," + node.control()} + steps + Steps{"line"}), "line");
  }
};

TEST_F(ControlTest, TellsOfTheSessions) {
  Node node;
  EXPECT_EQ(Ask(node, {kPs}), "0 {\"ok\":true,\"sessions\":[]}");
  Sandbox sandbox;
  sandbox.Supervisor(node.socket());
  Process module(sandbox.Options({ProbePath(), "pid", "sleep,30000"}));
  ASSERT_TRUE(module.WaitFor("pid -> 0"));
  const std::string answer = Ask(node, {kPs});
  for (const std::string& part :
       {"\"pid\":" + std::to_string(module.pid()), std::string("\"module\":\"test\""),
        std::string("\"uid\":0"), std::string("\"session\":\"0")})
    EXPECT_NE(answer.find(part), std::string::npos) << answer;
  module.Signal(SIGKILL);
  (void)module.Wait();
  EXPECT_TRUE(Eventually([&] { return Ask(node, {kPs}) == "0 {\"ok\":true,\"sessions\":[]}"; }));
  node.ExpectWell();
}

TEST_F(ControlTest, TellsWhichLaneASessionIsIn) {
  Daemon daemon({"--admit-uid", "65534"});
  for (const bool other : {false, true}) {
    Sandbox sandbox;
    sandbox.Supervisor(daemon.socket());
    if (other) sandbox.As(65534);
    Process module(sandbox.Options({ProbePath(), "pid", "sleep,30000"}));
    ASSERT_TRUE(module.WaitFor("pid -> 0")) << module.err();
    const std::string answer = ResultOf(Speak({"seqpacket," + daemon.control(), kPs, "line"}), "line");
    EXPECT_NE(answer.find(other ? "\"lane\":\"slow\"" : "\"lane\":\"fast\""), std::string::npos) << answer;
    module.Signal(SIGKILL);
    (void)module.Wait();
    EXPECT_TRUE(Eventually([&] { return ResultOf(Speak({"seqpacket," + daemon.control(), kPs, "line"}), "line").ends_with("[]}"); }));
  }
}

// Clock ticks of CPU that a process has used.
long Ticks(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  std::istringstream fields(text.substr(text.rfind(')') + 1));
  std::string skipped;
  for (int field = 3; field < 14; ++field) fields >> skipped;
  long user = 0, system = 0;
  fields >> user >> system;
  return user + system;
}

// A peer that cannot be accepted now waits, and costs nothing meanwhile.
TEST_F(ControlTest, AShortageOfDescriptorsIsWaitedOut) {
  Daemon daemon;
  const auto limit = [&](const std::string& descriptors) {
    ProcessOptions options;
    options.argv = {"/usr/bin/prlimit", "--pid", std::to_string(daemon.pid()), "--nofile=" + descriptors + ":"};
    const Outcome outcome = RunProcess(options);
    ASSERT_EQ(outcome.code, 0) << outcome.err;
  };
  ASSERT_NO_FATAL_FAILURE(limit("8"));
  Process peer(SpeakerOptions({"seqpacket," + daemon.control(), kPs, "line"}));
  ASSERT_TRUE(peer.WaitFor("say,"));
  const long before = Ticks(daemon.pid());
  ::usleep(1'000'000);
  EXPECT_LT(Ticks(daemon.pid()) - before, ::sysconf(_SC_CLK_TCK) / 3) << "of a second";
  ASSERT_NO_FATAL_FAILURE(limit("512"));
  EXPECT_TRUE(peer.WaitFor("line -> 0 {\"ok\":true")) << peer.out();
}

TEST_F(ControlTest, WrongRequestsAreAnsweredAndHarmNothing) {
  Node node;
  const auto refuses = [&](const std::string& request, const std::string& part) {
    const std::string file = node.Write("request", request);
    const std::string answer = Ask(node, {"text," + file, "send,-"});
    EXPECT_NE(answer.find("\"ok\":false"), std::string::npos) << request.substr(0, 60) << ": " << answer;
    EXPECT_NE(answer.find(part), std::string::npos) << request.substr(0, 60) << ": " << answer;
  };
  refuses("x", "not valid JSON");
  refuses("[]", "must be an object");
  refuses("null", "must be an object");
  refuses("\"ps\"", "must be an object");
  refuses("{}", "version 1");
  refuses(R"({"oarlock":2,"verb":"ps"})", "version 1");
  refuses(R"({"oarlock":"1","verb":"ps"})", "version 1");
  refuses(R"({"verb":"ps"})", "version 1");
  refuses(R"({"oarlock":1})", "unknown verb");
  refuses(R"({"oarlock":1,"verb":"kill"})", "unknown verb");
  refuses(R"({"oarlock":1,"verb":["ps"]})", "unknown verb");
  refuses(R"({"oarlock":1,"verb":null})", "unknown verb");
  refuses(R"({"oarlock":1,"verb":"PS"})", "unknown verb");
  refuses(R"({"oarlock":1,"verb":"ps","verb":"ps"})", "stands twice");
  refuses(R"({"oarlock":1,"verb":"check"})", "process id");
  refuses(R"({"oarlock":1,"verb":"check","pid":-1})", "process id");
  refuses(R"({"oarlock":1,"verb":"check","pid":"1"})", "process id");
  refuses(R"({"oarlock":1,"verb":"check","pid":1.5})", "process id");
  refuses(R"({"oarlock":1,"verb":"check","pid":4294967297})", "process id");
  refuses(R"({"oarlock":1,"verb":"check","pid":0})", "no session");
  refuses(R"({"oarlock":1,"verb":"check","pid":2147483647})", "no session");
  refuses(R"({"oarlock":1,"verb":"ps"})" + std::string(1, '\0') + "x", "not valid JSON");
  refuses(R"({"oarlock":1,"verb":"ps"})" + std::string(5000, ' '), "4096 bytes");
  refuses(std::string(100'000, 'x'), "4096 bytes");
  refuses(std::string(4000, '['), "nested too deeply");
  refuses(std::string(4096, '\0'), "not valid JSON");
  refuses(R"({"oarlock":1,"verb":"\u001b[2J"})", "unknown verb");
  EXPECT_NE(Ask(node, {kPs}).find("\"ok\":true"), std::string::npos);
  node.ExpectWell();
}

TEST_F(ControlTest, OnePeerMayAskAgainAndAgain) {
  Node node;
  Steps steps = {"seqpacket," + node.control()};
  for (int i = 0; i < 200; ++i) steps = steps + Steps{i % 3 == 0 ? "say,nonsense" : kPs, "line"};
  const Outcome outcome = Speak(steps);
  size_t good = 0, bad = 0;
  for (size_t at = 0; (at = outcome.out.find("\"ok\":", at)) != std::string::npos; ++at)
    (outcome.out[at + 5] == 't' ? good : bad) += 1;
  EXPECT_EQ(good, 133U);
  EXPECT_EQ(bad, 67U);
  node.ExpectWell();
}

TEST_F(ControlTest, DescriptorsDoNotArrive) {
  Node node;
  const std::string file = node.Write("request", R"({"oarlock":1,"verb":"ps"})");
  for (int i = 0; i < 20; ++i) {
    const Steps sending = {"seqpacket," + node.control(), "sleep,5", "text," + file, "send,nn"};
    const std::string sent = ResultOf(Speak(sending), "send,nn");
    // Turned back by the kernel (6.16), or by us.
    if (sent != "0") {
      EXPECT_TRUE(sent.starts_with("EPERM")) << sent;
      continue;
    }
    const Outcome outcome = Speak(sending + Steps{"timedline"});
    if (ResultOf(outcome, "send,nn") == "0")
      EXPECT_NE(ResultOf(outcome, "timedline").find("no descriptors are due"), std::string::npos)
          << outcome.out;
  }
  node.ExpectWell();
}

TEST_F(ControlTest, ItsOwnPeersMayAskAndNobodyElse) {
  Node node({"--admit-uid", std::to_string(kNobody)});
  // For root and the supervisor's own user alone; were that door open, the question is asked behind it.
  EXPECT_EQ(ResultOf(Speak({"uid,65534", "seqpacket," + node.control()}), "seqpacket," + node.control()),
            "EACCES");
  ASSERT_EQ(::chmod(node.control().c_str(), 0666), 0);
  const auto ask = [&](const std::string& who) {
    return ResultOf(Speak({who, "seqpacket," + node.control(), kPs, "line"}), "line");
  };
  EXPECT_NE(ask("pid").find("\"ok\":true"), std::string::npos);
  EXPECT_NE(ask("uid,65534").find("\"ok\":true"), std::string::npos);
  EXPECT_NE(ask("uid,65533").find("may not use this supervisor"), std::string::npos);
  // Connected by one who may, spoken by another.
  const Outcome child = Speak({"seqpacket," + node.control(), "fork", "uid,65533", kPs, "line"});
  EXPECT_NE(ResultOf(child, "line").find("not of the process that connected"), std::string::npos)
      << child.out;
  const Outcome gone = Speak({"seqpacket," + node.control(), "save,1", "connectby," + node.socket(), "load,1",
                              "uid,65533", kPs, "line"});
  // The same process, with less than it had: who it was when it connected is what counts.
  EXPECT_NE(ResultOf(gone, "line").find("\"ok\":true"), std::string::npos) << gone.out;
  node.ExpectWell();
}

TEST_F(ControlTest, SixtyFourPeersAndNoMore) {
  Node node;
  // SEQPACKET, so not "many": as many processes.
  std::vector<std::unique_ptr<Process>> peers;
  int answered = 0, turned_away = 0;
  for (int i = 0; i < 70; ++i) {
    peers.push_back(
        std::make_unique<Process>(SpeakerOptions({"seqpacket," + node.control(), kPs, "line", "hold"})));
    ASSERT_TRUE(peers.back()->WaitFor("line -> ")) << i;
    const std::string line = ResultOf(peers.back()->out(), "line");
    if (line.find("\"ok\":true") != std::string::npos)
      ++answered;
    else if (line.starts_with("closed") || line == "ECONNRESET")
      ++turned_away;
  }
  EXPECT_EQ(answered, 64);
  EXPECT_EQ(turned_away, 6);
  node.Launches();
  for (const auto& peer : peers) (void)peer->Wait();
  EXPECT_TRUE(Eventually([&] { return Ask(node, {kPs}).find("\"ok\":true") != std::string::npos; }));
  node.ExpectWell();
}

TEST_F(ControlTest, ASilentPeerIsLetGoAfterThirtySeconds) {
  Node node;
  ProcessOptions options = SpeakerOptions({"seqpacket," + node.control(), "sleep,25000", "timedline"});
  Process silent(options);
  ASSERT_TRUE(silent.WaitFor("timedline", std::chrono::seconds(50)));
  const std::string result = ResultOf(silent.out(), "timedline");
  // The end of the connection, and not just of the supervisor's patience with it.
  EXPECT_NE(result.find("closed"), std::string::npos) << result;
  (void)silent.Wait();
  node.ExpectWell();
}

// --- sandbox-check -----------------------------------------------------------------------------------------

class SandboxCheckTest : public ::testing::Test {
 protected:
  static void ExpectConfined(const Outcome& outcome) {
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(outcome.err, "");
  }
  static void ExpectNot(const Outcome& outcome) {
    EXPECT_EQ(outcome.code, 1) << outcome.err;
    EXPECT_EQ(outcome.out, "");
  }
};

TEST_F(SandboxCheckTest, R_OB_13_AModuleOfANodesSessionIsConfined) {
  Node node;
  Sandbox sandbox;
  sandbox.Supervisor(node.socket());
  Process module(sandbox.Options({"/bin/sh", "-c", "/bin/sleep 60 & echo child $!; wait"}));
  ASSERT_TRUE(module.WaitFor("child "));
  ASSERT_TRUE(module.WaitFor("\n"));
  ExpectConfined(Check(module.pid(), node));
  ExpectConfined(Check(std::stoi(module.out().substr(6)), node));
  // Found beside the admission socket, too.
  ExpectConfined(Check(std::to_string(module.pid()), {}, {{"OARLOCK_SUPERVISOR", node.socket()}}));
  // By a supervisor that is not there, or another one: nobody confirms.
  ExpectNot(Check(std::to_string(module.pid()), {"--control", node.directory() / "none.sock"}));
  Node other;
  ExpectNot(Check(module.pid(), other));
  module.Signal(SIGKILL);
  (void)module.Wait();
  ExpectNot(Check(module.pid(), node));
}

TEST_F(SandboxCheckTest, AModuleOfAPrivateSessionIsConfined) {
  Sandbox sandbox;
  Process module(sandbox.Options({ProbePath(), "pid", "sleep,30000"}));
  ASSERT_TRUE(module.WaitFor("pid -> 0"));
  ExpectConfined(Check(std::to_string(module.pid())));
  ExpectConfined(
      Check(std::to_string(module.pid()), {}, {{"OARLOCK_SUPERVISOR", "/nonexistent/admit.sock"}}));
  ExpectNot(Check(std::to_string(::getpid())));
}

TEST_F(SandboxCheckTest, AModuleOfAUsersOwnPrivateSessionIsConfined) {
  // The runtime directory is what XDG_RUNTIME_DIR says.
  const TemporaryDirectory directory;
  const std::string runtime = directory.MakeDirectory("runtime", 0700, kNobody, kNobody);
  Sandbox sandbox;
  sandbox.As(kNobody).Environment("XDG_RUNTIME_DIR", runtime);
  Process module(sandbox.Options({ProbePath(), "pid", "sleep,30000"}));
  ASSERT_TRUE(module.WaitFor("pid -> 0")) << module.err();
  ExpectConfined(Check(std::to_string(module.pid()), {}, {{"XDG_RUNTIME_DIR", runtime}}, kNobody));
}

TEST_F(SandboxCheckTest, ABareProcessIsNot) {
  Node node;
  Sandbox sandbox;
  sandbox.Supervisor(node.socket());
  Process module(sandbox.Options({ProbePath(), "pid", "sleep,30000"}));  // there is a session, but not theirs
  ASSERT_TRUE(module.WaitFor("pid -> 0"));
  Process bare(SpeakerOptions({"pid", "hold"}));
  ASSERT_TRUE(bare.WaitFor("pid -> 0"));
  for (const pid_t pid : {bare.pid(), ::getpid(), pid_t{1}, pid_t{2}, node.daemon().pid()})
    ExpectNot(Check(pid, node));
  ExpectNot(Check(std::to_string(bare.pid())));
}

TEST_F(SandboxCheckTest, R_OB_14_AProcessUnderSomebodyElsesFilterIsNot) {
  Node node;
  for (const Steps& steps :
       {Steps{"nnp", "plainfilter", "pid", "hold"}, Steps{"dropcaps", "nnp", "filter", "pid", "hold"},
        Steps{"uid,65534", "nnp", "plainfilter", "plainfilter", "pid", "hold"}}) {
    Process foreign(SpeakerOptions(steps));
    ASSERT_TRUE(foreign.WaitFor("pid -> 0")) << foreign.out();
    ExpectNot(Check(foreign.pid(), node));
    ExpectNot(Check(std::to_string(foreign.pid())));
  }
}

TEST_F(SandboxCheckTest, ADeadProcessIsNot) {
  Node node;
  Process gone(SpeakerOptions({"pid"}));
  (void)gone.Wait();
  ExpectNot(Check(gone.pid(), node));
  ExpectNot(Check("2147483647", {"--control", node.control()}));
}

TEST_F(SandboxCheckTest, WrongWordsAreUsage) {
  for (const char* pid : {"0", "-1", "x", "", "1.5", "99999999999"}) EXPECT_EQ(Check(pid).code, 64) << pid;
  ProcessOptions options;
  options.argv = {OarlockPath(), "sandbox-check"};
  EXPECT_EQ(RunProcess(options).code, 64);
  options.argv = {OarlockPath(), "sandbox-check", "1", "2"};
  EXPECT_EQ(RunProcess(options).code, 64);
}

TEST_F(SandboxCheckTest, ALiarIsNotBelieved) {
  const TemporaryDirectory directory;
  const std::string place = directory.MakeDirectory("liar", 0755, kNobody, kNobody);
  const std::string yes = directory.WriteFile("yes", R"({"ok":true,"session":"01JQ00000000000000000000AB"})");
  const auto served = [&](const std::string& who, const std::string& path, std::optional<uid_t> asker) {
    Process liar(SpeakerOptions({who, "text," + yes, "serve," + path}));
    EXPECT_TRUE(liar.WaitFor("serving")) << liar.out();
    return Check(std::to_string(::getpid()), {"--control", path}, {}, asker);
  };
  // Of another uid: to root, and to somebody else.
  ExpectNot(served("uid,65534", place + "/1.sock", std::nullopt));
  // Of root or one's own: that is who may be believed.
  EXPECT_EQ(served("pid", place + "/2.sock", std::nullopt).code, 0);
  EXPECT_EQ(served("uid,65534", place + "/3.sock", kNobody).code, 0);
  ::chmod((place + "/4.sock").c_str(), 0666);
  Process liar(SpeakerOptions({"uid,65534", "text," + yes, "serve," + place + "/4.sock"}));
  ASSERT_TRUE(liar.WaitFor("serving"));
  ASSERT_EQ(::chmod((place + "/4.sock").c_str(), 0666), 0);
  ExpectNot(Check(std::to_string(::getpid()), {"--control", place + "/4.sock"}, {}, kSomebody));
}

TEST_F(SandboxCheckTest, NonsenseAndSilenceAreNoConfirmation) {
  const TemporaryDirectory directory;
  int number = 0;
  for (const std::string& answer :
       {std::string("hello"), std::string("{}"), std::string("{\"ok\":1}"), std::string("{\"ok\":\"true\"}"),
        std::string("[true]"), std::string("{\"ok\":true"), std::string("{\"ok\":false,\"ok\":true}"),
        std::string(4000, '['), std::string("\0", 1)}) {
    const std::string path = directory / (std::to_string(++number) + ".sock");
    Process server(SpeakerOptions({"text," + directory.WriteFile("answer", answer), "serve," + path}));
    ASSERT_TRUE(server.WaitFor("serving"));
    ExpectNot(Check(std::to_string(::getpid()), {"--control", path}));
  }
  // A stream socket, a file, and one that accepts nothing.
  Process stream(SpeakerOptions({"text," + directory.WriteFile("yes", "{\"ok\":true}"),
                                 "serve," + (directory / "stream.sock") + ",1"}));
  ASSERT_TRUE(stream.WaitFor("serving"));
  ExpectNot(Check(std::to_string(::getpid()), {"--control", directory / "stream.sock"}));
  ExpectNot(Check(std::to_string(::getpid()), {"--control", directory / "yes"}));
  ExpectNot(Check(std::to_string(::getpid()), {"--control", directory.path()}));
  ExpectNot(Check(std::to_string(::getpid()), {"--control", "/" + std::string(200, 'x')}));
}

}  // namespace
}  // namespace oarlock::test
