// SPDX-License-Identifier: Apache-2.0
// One session uses up what all share: descriptors, workers, places in queues. Calls wait; no neighbour is refused or forgotten
// (E-95, E-207, E-210).
#include <sys/resource.h>

#include "tests/hostile/support.h"

namespace oarlock::test {
namespace {

class Exhaustion : public testing::Test {
 protected:
  Exhaustion() : agent_(directory_.MakeDirectory("agent")), full_path_(agent_ + "/full.sock"), full_(full_path_) {}

  // Threads that connect and wait for ever.
  std::unique_ptr<Process> Attacker(Sandbox& sandbox, const std::string& socket, int threads) {
    sandbox.Supervisor(socket).Timeout(std::chrono::minutes(5));
    auto process = std::make_unique<Process>(sandbox.Options(Attack({"storm," + std::to_string(threads) + ",300000," + full_path_})));
    EXPECT_TRUE(process->WaitFor("pending", std::chrono::seconds(30))) << process->out() << process->err();
    return process;
  }
  TemporaryDirectory directory_;
  std::string agent_, full_path_;
  FullBroker full_;
  TcpServer proxy_;
};

// With the limit of an ordinary system, pending connects hold more descriptors than there are.
class Descriptors : public Exhaustion {
 protected:
  static constexpr int kAttackers = 4, kThreads = 230;
  Descriptors()
      : daemon_([] {
          const rlimit files{1024, 1024};
          (void)::setrlimit(RLIMIT_NOFILE, &files);
        }) {}
  void UseUp() {
    for (int i = 0; i < kAttackers; ++i) {
      sandboxes_.push_back(std::make_unique<Sandbox>(Broker(full_path_)));
      attackers_.push_back(Attacker(*sandboxes_.back(), daemon_.socket(), kThreads));
    }
  }
  // Nobody was refused for want of anything, and nothing has stopped.
  void ExpectWell() {
    for (auto& attacker : attackers_) EXPECT_TRUE(attacker->Running()) << attacker->out();
    attackers_.clear();
    for (const LogLine& line : ReadLog(daemon_.log_path())) EXPECT_TRUE(line.kind.empty()) << line.text;
    EXPECT_TRUE(daemon_.process().Running());
  }
  NodeUnder daemon_;
  std::vector<std::unique_ptr<Sandbox>> sandboxes_;
  std::vector<std::unique_ptr<Process>> attackers_;
};

TEST_F(Descriptors, E207_UsedUpByPendingConnectsTheNeighbourGoesOn) {
  Sandbox neighbour(Egress(proxy_.port()));
  neighbour.Supervisor(daemon_.socket()).Timeout(std::chrono::minutes(2));
  Process process(neighbour.Options(Attack({"stdin"})));
  ASSERT_TRUE(process.WaitFor("ready")) << process.err();
  UseUp();
  const std::string word = "connects,2000," + std::to_string(proxy_.port());
  process.Write(word + "\n");
  EXPECT_TRUE(process.WaitFor(word + " -> 0:2000\n", std::chrono::seconds(20))) << process.out();
  EXPECT_TRUE(Eventually([&] { return proxy_.connections() == 2000; })) << proxy_.connections();
  ExpectWell();
  // The control: the same number of connects with nothing around them.
  EXPECT_EQ(ResultOf(neighbour.RunBare(Attack({word})), word), "0:2000");
}

TEST_F(Descriptors, E207_UsedUpByPendingConnectsALaunchGetsItsAnswer) {
  UseUp();
  Sandbox late(Egress(proxy_.port()));
  late.Supervisor(daemon_.socket());
  const std::string word = "connects,10," + std::to_string(proxy_.port());
  const Outcome outcome = late.Run(Attack({word}));
  // Admitted and served, or told at once what is used up.
  if (outcome.code != 70) {
    EXPECT_EQ(ResultOf(outcome, word), "0:10") << outcome.err;
  } else {
    EXPECT_NE(outcome.err.find("RLIMIT_NOFILE"), std::string::npos) << outcome.err;
  }
  ExpectWell();
}

TEST_F(Exhaustion, E210_BlockedWorkers) {
  Daemon daemon;
  std::vector<std::unique_ptr<Sandbox>> sandboxes;
  std::vector<std::unique_ptr<Process>> attackers;
  for (int i = 0; i < 3; ++i) {
    sandboxes.push_back(std::make_unique<Sandbox>(Broker(full_path_)));
    attackers.push_back(Attacker(*sandboxes.back(), daemon.socket(), 64));
  }
  UnixServer broker(agent_ + "/open.sock");
  // Whoever comes later gets a worker of the kernel: to an open broker, and to wait on a full one.
  for (int i = 0; i < 4; ++i) {
    Sandbox neighbour(Egress(proxy_.port()) + "," + Broker(agent_ + "/open.sock"));
    neighbour.Supervisor(daemon.socket());
    const std::vector<std::string> words = {"to," + agent_ + "/open.sock", "to,127.0.0.1," + std::to_string(proxy_.port())};
    const Outcome outcome = neighbour.Run(Attack(words));
    for (const std::string& word : words) EXPECT_EQ(ResultOf(outcome, word), "0") << outcome.err;
  }
  EXPECT_TRUE(Eventually([&] { return broker.connections() == 4 && proxy_.connections() == 4; }));
  for (auto& attacker : attackers) EXPECT_TRUE(attacker->Running());
  for (auto& attacker : attackers) attacker->Signal(SIGKILL);
  for (auto& attacker : attackers) EXPECT_EQ(attacker->Wait().code, 128 + SIGKILL);
}

// More callers at once than any queue of ours holds.
TEST_F(Exhaustion, E95_AThousandCallersAtOnce) {
  Sandbox sandbox(Egress(proxy_.port()));
  sandbox.Timeout(std::chrono::minutes(1));
  const std::string word = "storm,1000,3000,127.0.0.1," + std::to_string(proxy_.port());
  const Outcome outcome = sandbox.Run(Attack({word}));
  EXPECT_EQ(ResultOf(outcome, word), "started 1000 finished 1000 failed 0") << outcome.err;
  EXPECT_TRUE(Eventually([&] { return proxy_.connections() == 1000; })) << proxy_.connections();
}

}  // namespace
}  // namespace oarlock::test
