// SPDX-License-Identifier: Apache-2.0
// The broker as an unprivileged module meets it through a supervisor that is root: nobody's deputy (E-108).
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "tests/support/daemon.h"
#include "tests/support/sandbox.h"
#include "tests/support/servers.h"

namespace oarlock::test {
namespace {

class BrokerTest : public testing::Test {
 protected:
  // A module of uid 65534 under the root supervisor, with this broker.
  Outcome Reach(const std::string& broker, const std::string& word, Daemon& daemon) {
    Sandbox sandbox("\"run_as\":{\"uid\":65534,\"gid\":65534},\"broker_socket\":\"" + broker + "\"");
    sandbox.Supervisor(daemon.socket());
    return sandbox.Probe({word});
  }
  static std::string Last(const Outcome& outcome) {
    const size_t at = outcome.out.find(" -> ");
    return at == std::string::npos ? outcome.err : outcome.out.substr(at + 4, outcome.out.size() - at - 5);
  }
  TemporaryDirectory directory_;
};

TEST_F(BrokerTest, FilePermissionsDecideAsForTheModule) {
  Daemon daemon;
  const std::string agent = directory_.MakeDirectory("agent"), closed = directory_.MakeDirectory("closed", 0700);
  UnixServer mine(agent + "/root.sock", SOCK_STREAM, 0600), open(agent + "/open.sock", SOCK_STREAM, 0666), hidden(closed + "/open.sock", SOCK_STREAM, 0666);

  EXPECT_EQ(Last(Reach(agent + "/root.sock", "unix," + agent + "/root.sock", daemon)), "EACCES") << "0600 of root's";
  EXPECT_EQ(mine.connections(), 0);
  EXPECT_EQ(Last(Reach(closed + "/open.sock", "unix," + closed + "/open.sock", daemon)), "EACCES") << "in a directory of root's, 0700";
  EXPECT_EQ(hidden.connections(), 0);
  EXPECT_EQ(Last(Reach(agent + "/open.sock", "unix," + agent + "/open.sock", daemon)), "0 hello");
  ASSERT_EQ(open.connections(), 1);
  EXPECT_EQ(open.peers().front().uid, 65534U) << "SO_PEERCRED shows the module";
  EXPECT_EQ(open.peers().front().gid, 65534U);
  EXPECT_EQ(open.peers().front().pid, daemon.pid());
  // The kernel's own refusal is no policy refusal: nothing is recorded of it.
  EXPECT_TRUE(std::ranges::none_of(daemon.Log(), [](const LogLine& line) { return line.call == "connect"; }));
  // The twin: root itself may.
  Sandbox bare;
  EXPECT_EQ(Last(bare.ProbeBare({"unix," + agent + "/root.sock"})), "0 hello");
  EXPECT_EQ(Last(bare.ProbeBare({"unix," + closed + "/open.sock"})), "0 hello");
}

TEST_F(BrokerTest, PrivateSupervisorActsAsTheModuleToo) {
  const std::string agent = directory_.MakeDirectory("agent");
  UnixServer mine(agent + "/root.sock", SOCK_STREAM, 0600), open(agent + "/open.sock", SOCK_STREAM, 0666);
  Sandbox refused("\"run_as\":{\"uid\":65534,\"gid\":65534},\"broker_socket\":\"" + agent + "/root.sock\"");
  EXPECT_EQ(Last(refused.Probe({"unix," + agent + "/root.sock"})), "EACCES");
  Sandbox allowed("\"run_as\":{\"uid\":65534,\"gid\":65534},\"broker_socket\":\"" + agent + "/open.sock\"");
  EXPECT_EQ(Last(allowed.Probe({"unix," + agent + "/open.sock"})), "0 hello");
  EXPECT_EQ(open.peers().front().uid, 65534U);
  EXPECT_EQ(mine.connections(), 0);
}

TEST_F(BrokerTest, RestartedBrokerIsReached) {
  Daemon daemon;
  const std::string agent = directory_.MakeDirectory("agent"), path = agent + "/broker.sock";
  auto first = std::make_unique<UnixServer>(path);
  Sandbox sandbox("\"broker_socket\":\"" + path + "\"");
  sandbox.Supervisor(daemon.socket());
  Process process(sandbox.Options({"/usr/bin/python3", "-c",
                                   "import socket,sys\n"
                                   "for line in sys.stdin:\n"
                                   "  s=socket.socket(socket.AF_UNIX)\n"
                                   "  try:\n"
                                   "    s.connect('" + path + "'); print('reached', s.recv(9).decode().strip(), flush=True)\n"
                                   "  except OSError as e: print('failed', e.errno, flush=True)\n"}));
  process.Write("go\n");
  ASSERT_TRUE(process.WaitFor("reached hello\n")) << process.out() << process.err();
  first.reset();  // and its socket file with it
  process.Write("go\n");
  ASSERT_TRUE(process.WaitFor("failed 2\n")) << process.out();
  UnixServer second(path);
  process.Write("go\n");
  EXPECT_TRUE(process.WaitFor("reached hello\nfailed 2\nreached hello\n")) << process.out();
  EXPECT_EQ(second.connections(), 1);
}

// A link in the broker's path is followed once, at launch; both names lead to the same constant.
TEST_F(BrokerTest, BrokerBehindALink) {
  Daemon daemon;
  const std::string real = directory_.MakeDirectory("real");
  ASSERT_EQ(symlink(real.c_str(), (directory_ / "link").c_str()), 0);
  UnixServer broker(real + "/broker.sock");
  const std::string written = directory_ / "link/broker.sock";
  EXPECT_EQ(Last(Reach(written, "unix," + written, daemon)), "0 hello");
  EXPECT_EQ(Last(Reach(written, "unix," + real + "/broker.sock", daemon)), "0 hello");
  EXPECT_EQ(Last(Reach(written, "unix," + directory_.path() + "/./link/broker.sock", daemon)), "EACCES");
}

TEST_F(BrokerTest, TwelveAliasesOfAnotherSocket) {
  Daemon daemon;
  const std::string agent = directory_.MakeDirectory("agent"), path = directory_ / "other.sock";
  UnixServer broker(agent + "/broker.sock"), other(path);
  const std::string name = path.substr(1);
  ASSERT_EQ(symlink(path.c_str(), (directory_ / "sl").c_str()), 0);
  ASSERT_EQ(symlink(directory_.path().c_str(), (agent + "/dl").c_str()), 0);
  Sandbox sandbox("\"broker_socket\":\"" + agent + "/broker.sock\"");
  sandbox.Supervisor(daemon.socket());
  const std::vector<std::string> aliases = {
      path, directory_ / "sl", agent + "/dl/other.sock", agent + "/../other.sock", "//" + name, "/./" + name, "/proc/self/root/" + name,
      "/proc/thread-self/root/" + name, "/proc/self/cwd/" + name, "../../../../../../" + name, "/proc/thread-self/cwd/" + name, "/dev/../" + name};
  std::vector<std::string> words;
  for (const std::string& alias : aliases) words.push_back("unix," + alias);
  ProcessOptions options = sandbox.Options({ProbePath()});
  options.argv.insert(options.argv.end(), words.begin(), words.end());
  options.directory = "/";
  const Outcome outcome = RunProcess(options);
  for (const std::string& word : words) EXPECT_NE(outcome.out.find(word + " -> EACCES\n"), std::string::npos) << word << "\n" << outcome.out;
  EXPECT_EQ(other.connections(), 0);
  ProcessOptions bare;
  bare.argv = {ProbePath()};
  bare.argv.insert(bare.argv.end(), words.begin(), words.end());
  bare.directory = "/";
  EXPECT_EQ(RunProcess(bare).out.find("EACCES"), std::string::npos);
  EXPECT_EQ(other.connections(), static_cast<int>(words.size()));
}

}  // namespace
}  // namespace oarlock::test
