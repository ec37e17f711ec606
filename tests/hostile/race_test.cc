// SPDX-License-Identifier: Apache-2.0
// What is checked is what is done: while the address, the descriptor number or the whole table changes under the call, nothing
// arrives where it may not (E-70 to E-73). Outside, the same races do arrive.
#include "tests/hostile/support.h"
#include "tests/support/kernel_facts.h"
#include "tests/support/scale.h"

namespace oarlock::test {
namespace {

// By a thread, or by another process through shared memory.
class Flip : public testing::TestWithParam<const char*> {
 protected:
  Flip() : agent_(directory_.MakeDirectory("agent")) {}
  static std::string Word(const std::string& kind, long rounds) { return std::string("flip,") + GetParam() + "," + std::to_string(rounds) + "," + kind; }
  static constexpr long kTwin = 5000;
  static constexpr long kRounds = 200'000;
  TemporaryDirectory directory_;
  std::string agent_;
  TcpServer proxy_;

  // The policy's own is reached, the other is not, and both were asked for.
  void Check(const std::string& policy, const std::string& kind, const char* code, const std::function<long()>& reached, const std::function<long()>& forbidden) {
    const long rounds = Scaled(kRounds);
    Sandbox sandbox(policy);
    sandbox.Timeout(std::chrono::minutes(20));
    const std::string word = Word(kind, rounds), twin = Word(kind, kTwin);
    const Outcome inside = sandbox.Run(Attack({word}));
    const std::string tally = ResultOf(inside, word);
    std::printf("inside: %s\n", tally.c_str());
    EXPECT_EQ(inside.code, 0) << inside.err;
    EXPECT_GT(CountOf(tally, "0"), 0) << tally;
    EXPECT_GT(CountOf(tally, "EACCES"), 0) << "nothing was flipped: " << tally;
    EXPECT_EQ(CountOf(tally, "0") + CountOf(tally, "EACCES") + CountOf(tally, "EADDRNOTAVAIL"), rounds) << tally;
    ::usleep(100'000);
    EXPECT_EQ(forbidden(), 0) << "of " << rounds;
    if (reached) EXPECT_TRUE(Eventually([&] { return reached() == CountOf(tally, "0"); })) << reached() << " arrived; " << tally;
    EXPECT_EQ(Refusals(sandbox.Log(), code), static_cast<uint64_t>(CountOf(tally, "EACCES"))) << "each refusal has its record";
    const Outcome bare = sandbox.RunBare(Attack({twin}));
    std::printf("bare: %s\n", ResultOf(bare, twin).c_str());
    EXPECT_TRUE(Eventually([&] { return forbidden() > 0; })) << "the twin: " << bare.out << bare.err;
    std::printf("the twin reached the other %ld times of %ld\n", forbidden(), kTwin);
  }
};
INSTANTIATE_TEST_SUITE_P(Hostile, Flip, testing::Values("thread", "process"), [](const auto& row) { return std::string(row.param); });

TEST_P(Flip, E70_E71_UnixPath) {
  UnixServer broker(agent_ + "/brokerA.sock"), other(agent_ + "/brokerB.sock");
  Check(Broker(agent_ + "/brokerA.sock"), "unix," + agent_ + "/brokerA.sock," + agent_ + "/brokerB.sock", "UNIX_NOT_BROKER",
        [&] { return broker.connections(); }, [&] { return other.connections(); });
}

TEST_P(Flip, E70_E71_TcpPort) {
  TcpServer other;
  Check(Egress(proxy_.port()), "port," + std::to_string(proxy_.port()) + "," + std::to_string(other.port()), "TCP_NOT_PROXY",
        [&] { return proxy_.connections(); }, [&] { return other.connections(); });
}

TEST_P(Flip, E70_E71_TcpAddress) {
  TcpServer other("127.0.0.2", proxy_.port());
  Check(Egress(proxy_.port()), "host," + std::to_string(proxy_.port()), "TCP_NOT_PROXY", [&] { return proxy_.connections(); },
        [&] { return other.connections(); });
}

// A disconnect is harmless, whoever lets it pass unread is not.
TEST_P(Flip, E70_E71_TcpUnspec) {
  TcpServer other;
  Check(Egress(proxy_.port()), "unspec," + std::to_string(other.port()), "TCP_NOT_PROXY", {}, [&] { return other.connections(); });
}

// The same on UDP: a socket of the module's own there is none, and one that the broker has given away stays unconnected.
TEST_P(Flip, E70_E71_UdpUnspec) {
  DatagramSink victim("127.0.0.1", 0);
  HandingBroker broker(agent_ + "/broker.sock", MakeUdp);
  for (const bool own : {true, false}) {
    SCOPED_TRACE(own ? "own socket" : "the broker's socket");
    const std::string kind = "udp," + std::to_string(victim.port()) + "," + (own ? "-" : agent_ + "/broker.sock");
    const long before = victim.Count(), rounds = Scaled(kRounds);
    Sandbox sandbox(Egress(proxy_.port()) + "," + Broker(agent_ + "/broker.sock"));
    sandbox.Timeout(std::chrono::minutes(20));
    const std::string word = Word(kind, rounds), twin = Word(kind, kTwin);
    const Outcome inside = sandbox.Run(Attack({word}));
    const std::string tally = ResultOf(inside, word);
    std::printf("inside: %s\n", tally.c_str());
    EXPECT_EQ(inside.code, 0) << inside.err;
    if (own) EXPECT_EQ(tally, "socket:EAFNOSUPPORT:" + std::to_string(rounds));
    if (!own) EXPECT_EQ(CountOf(tally, "EACCES") + CountOf(tally, "0"), rounds) << tally;
    if (!own) EXPECT_GT(CountOf(tally, "EACCES"), 0) << tally;
    ::usleep(100'000);
    EXPECT_EQ(victim.Count(), before);
    const Outcome bare = sandbox.RunBare(Attack({twin}));
    EXPECT_GT(victim.Count(), before) << "the twin: " << bare.out << bare.err;
    std::printf("the twin: %s, %ld datagrams arrived\n", ResultOf(bare, twin).c_str(), victim.Count() - before);
  }
}

// The number stands for a permitted socket when it is looked at and for another when it is used. Not where the file is pinned.
TEST(Race, E72_DescriptorSwappedByDup2) {
  TemporaryDirectory directory;
  const std::string broker_path = directory.MakeDirectory("agent") + "/broker.sock";
  HandingBroker broker(broker_path, MakeUdp);
  TcpServer proxy;
  DatagramSink victim("127.0.0.1", proxy.port());
  const long rounds = Scaled(200'000);
  const auto word = [&](long count) { return "swap," + std::to_string(count) + "," + std::to_string(proxy.port()) + "," + broker_path; };
  Sandbox sandbox(Egress(proxy.port()) + "," + Broker(broker_path));
  sandbox.Timeout(std::chrono::minutes(20));
  const Outcome inside = sandbox.Run(Attack({word(rounds)}));
  const std::string tally = ResultOf(inside, word(rounds));
  std::printf("inside: %s\n", tally.c_str());
  EXPECT_GT(CountOf(tally, "0"), 0) << tally << inside.err;
  EXPECT_GT(CountOf(tally, "EACCES"), 0) << tally;
  EXPECT_EQ(CountOf(tally, "udp-connected"), 0);
  EXPECT_EQ(victim.Count(), 0);
  const Outcome bare = sandbox.RunBare(Attack({word(5000)}));
  EXPECT_GT(CountOf(ResultOf(bare, word(5000)), "udp-connected"), 0) << bare.out << bare.err;
  EXPECT_GT(victim.Count(), 0) << "the twin";
}

// A thread with a descriptor table of its own: the leader's number is a TCP socket, the thread's the broker's UDP socket.
TEST(Race, E73_TablesApart) {
  for (const char* how : {"closerange", "unshare", "clone"}) {
    SCOPED_TRACE(how);
    TemporaryDirectory directory;
    const std::string broker_path = directory.MakeDirectory("agent") + "/broker.sock";
    HandingBroker broker(broker_path, MakeUdp);
    TcpServer proxy, other;
    DatagramSink victim("127.0.0.1", proxy.port());
    const std::string word =
        std::string("tables,") + how + "," + std::to_string(proxy.port()) + "," + std::to_string(other.port()) + "," + broker_path;
    Sandbox sandbox(Egress(proxy.port()) + "," + Broker(broker_path));
    const Outcome inside = sandbox.Run(Attack({word}));
    if (how == std::string("unshare") || !KernelHasThreadPidfd()) {
      // Without descriptors of threads there must be no such thread.
      EXPECT_EQ(ResultOf(inside, word), how == std::string("clone") ? "clone:EPERM" : "unshare:EPERM");
    } else {
      EXPECT_EQ(ResultOf(inside, word), "udp EACCES, other EACCES, proxy 0, peer 0, leader's untouched") << inside.err;
      EXPECT_TRUE(Eventually([&] { return proxy.connections() == 1; }));
    }
    EXPECT_EQ(victim.Count(), 0);
    EXPECT_EQ(other.connections(), 0);
    const Outcome bare = sandbox.RunBare(Attack({word}));
    EXPECT_TRUE(ResultOf(bare, word).starts_with("udp 0, other 0, ")) << bare.out;
    EXPECT_TRUE(Eventually([&] { return victim.Count() > 0 && other.connections() == 1; })) << "the twin";
  }
}

}  // namespace
}  // namespace oarlock::test
