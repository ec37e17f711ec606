// SPDX-License-Identifier: Apache-2.0
// The supervisor is killed while modules connect: from then on every supervised call fails, at once, and what is left behave as
// each form of launch promises. 200 times, spread over the forms.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <memory>
#include <random>

#include "notif/json.h"
#include "tests/endurance/support.h"
#include "tests/support/sandbox.h"
#include "tests/support/scale.h"

namespace oarlock::test {
namespace {

constexpr uint64_t kSecond = 1'000'000'000;

class DeathTest : public testing::Test {
 protected:
  TemporaryDirectory directory_;
  std::string work_ = directory_.MakeDirectory("work", 0777), agent_ = directory_.MakeDirectory("agent");
  Counter proxy_;
  Counter broker_{agent_ + "/broker.sock"};
  Full full_;
  std::mt19937 random_{20'261'130};
  int number_ = 0;

  // A session whose loop goes to the proxy while another thread's connect waits at the broker, or the other way round.
  struct Module {
    Module(DeathTest& test, bool is_tcp, bool tree)
        : path(test.work_ + "/" + std::to_string(test.number_++) + ".tally"),
          tallies(path),
          full(is_tcp ? new Full(path + ".sock") : new Full),
          server(is_tcp ? test.proxy_ : test.broker_),
          before(server.connections()),
          sandbox("\"net\":\"egress-allowlist\",\"proxy_port\":" + std::to_string(is_tcp ? server.port() : full->port()) +
                  ",\"broker_socket\":\"" + (is_tcp ? path + ".sock" : test.agent_ + "/broker.sock") + "\",\"rw\":[\"" + path + "\"]"),
          argv({ClientPath(), "outlive", path, server.target(), full->target()}) {
      if (tree) argv.emplace_back("tree");
    }
    const std::string path;
    Tallies tallies;
    std::unique_ptr<Full> full;
    Counter& server;
    const uint64_t before;
    Sandbox sandbox;
    std::vector<std::string> argv;
    std::unique_ptr<Process> process;
  };

  // At a random moment of a loop that is well under way, with the connect of its other thread pending.
  uint64_t KillIn(pid_t supervisor, const std::vector<Module*>& modules) {
    for (const Module* module : modules) EXPECT_TRUE(Eventually([&] { return module->tallies[0].connected > 20; })) << module->process->err();
    ::usleep(100'000 + random_() % 5000);
    const uint64_t at = NowNs();
    EXPECT_EQ(::kill(supervisor, SIGKILL), 0);
    return at;
  }

  // Of all rounds: from the kill to the first call that failed, the longest of the later calls, and calls that the kill met after
  // they had been made.
  double slowest_loss_ms_ = 0, slowest_call_ms_ = 0;
  uint64_t later_ = 0, met_ = 0;
  void TearDown() override {
    std::printf("%llu later calls: the first fails %.1f ms after the kill at the latest, the slowest takes %.1f ms; %llu calls were met in flight\n",
                static_cast<unsigned long long>(later_), slowest_loss_ms_, slowest_call_ms_, static_cast<unsigned long long>(met_));
  }

  // What each process of the session saw. `ended`: it has been ended by then, perhaps in the middle of a call.
  void ExpectClosed(const Module& module, uint64_t killed_at, bool ended) {
    uint64_t connected = 0, perhaps = 0;
    for (unsigned i = 0; i < kTallies; ++i) {
      const Tally& tally = module.tallies[i];
      if (tally.pid == 0) continue;
      later_ += tally.later;
      met_ += tally.in_flight;
      slowest_call_ms_ = std::max(slowest_call_ms_, static_cast<double>(tally.slowest_ns) / 1e6);
      if (tally.lost_at_ns != 0) slowest_loss_ms_ = std::max(slowest_loss_ms_, static_cast<double>(tally.lost_at_ns - killed_at) / 1e6);
      SCOPED_TRACE("process " + std::to_string(i) + ", " + std::to_string(tally.connected) + " connects, " + std::to_string(tally.later) + " later calls");
      connected += tally.connected;
      EXPECT_EQ(tally.passed, 0U) << "a call went through without a supervisor";
      EXPECT_EQ(tally.wrong, 0U) << strerrorname_np(tally.odd_errno);
      EXPECT_EQ(tally.odd_errno, 0);
      EXPECT_LT(tally.slowest_ns, kSecond);
      // The call that the kill met may have been made by then: that is one of a call before the death.
      if (tally.lost_at_ns != 0) perhaps += tally.in_flight;
      else if (ended) perhaps += tally.begun - tally.connected;
      if (!ended) EXPECT_GT(tally.later, 0U);
      if (!ended || tally.lost_at_ns != 0) EXPECT_LT(tally.lost_at_ns - killed_at, kSecond);
    }
    // The one that had waited all the time, at the other target.
    const Tally& first = module.tallies[0];
    if (!ended || first.waiting_ended_at_ns != 0) {
      EXPECT_EQ(first.waiting_errno, ENOSYS);
      EXPECT_LT(first.waiting_ended_at_ns - killed_at, kSecond);
    }
    const uint64_t served = module.server.connections() - module.before;
    EXPECT_GE(served, connected);
    EXPECT_LE(served, connected + perhaps) << "a connection that no program was told of";
  }
  [[nodiscard]] long Rounds() const { return std::max(2L, (Scaled(200) + 2) / 3); }
};

// `run`: nothing of the sandbox is left.
TEST_F(DeathTest, E90_UnderRunEverythingIsEnded) {
  for (long round = 0; round < Rounds(); ++round) {
    SCOPED_TRACE(round);
    Module module(*this, round % 2 == 0, true);
    ProcessOptions options = module.sandbox.Options(module.argv);
    options.argv[1] = "run";
    options.argv.insert(options.argv.begin() + 2, "--policy");
    module.process = std::make_unique<Process>(options);
    ASSERT_TRUE(module.process->WaitFor("looping")) << module.process->err();
    ASSERT_TRUE(Eventually([&] { return module.tallies[1].connected > 0 && module.tallies[2].connected > 0 && module.tallies[3].begun > 10; }));
    const pid_t supervisor = FindHolder("oarlock-private", module.sandbox.directory().path());
    ASSERT_GT(supervisor, 1);
    const uint64_t killed_at = KillIn(supervisor, {&module});
    const Outcome outcome = module.process->Wait();
    EXPECT_EQ(outcome.code, 125);
    EXPECT_NE(outcome.err.find("supervisor was lost"), std::string::npos) << outcome.err;
    // The orphan in a session of its own, and the one that is another process every 0.1 ms, too.
    const uint64_t hops = module.tallies[3].begun;
    const auto left = FindByCommandLine(module.path);
    EXPECT_TRUE(left.empty()) << left.size() << " processes are left, " << left.front();
    ::usleep(20'000);
    EXPECT_EQ(module.tallies[3].begun, hops) << "somebody still forks";
    for (const pid_t pid : left) (void)::kill(pid, SIGKILL);
    EXPECT_NE(::access(("/run/oarlock/private/" + std::to_string(supervisor) + ".sock").c_str(), F_OK), 0) << "its control socket is left";
    ExpectClosed(module, killed_at, true);
  }
}

// `sandbox-exec` with a supervisor of its own: the module goes on, without its calls.
TEST_F(DeathTest, E90_UnderSandboxExecEveryCallFailsAndTheModuleGoesOn) {
  for (long round = 0; round < Rounds(); ++round) {
    SCOPED_TRACE(round);
    Module module(*this, round % 2 == 0, false);
    module.process = std::make_unique<Process>(module.sandbox.Options(module.argv));
    ASSERT_TRUE(module.process->WaitFor("looping")) << module.process->err();
    const pid_t supervisor = FindHolder("oarlock-private", module.sandbox.directory().path());
    ASSERT_GT(supervisor, 1);
    const uint64_t killed_at = KillIn(supervisor, {&module});
    ASSERT_TRUE(module.process->WaitFor("lost")) << module.process->out() << module.process->err();
    EXPECT_EQ(module.tallies[0].pid, module.process->pid());
    ExpectClosed(module, killed_at, false);
    const Outcome outcome = module.process->Wait();
    EXPECT_EQ(outcome.code, 7) << "its own end: " << outcome.err;
    EXPECT_NE(outcome.out.find("done"), std::string::npos);
    EXPECT_EQ(module.tallies[0].passed, 0U);
    EXPECT_LT(FindHolder("oarlock-private", module.sandbox.directory().path()), 0) << "somebody still has its files";
    // The dead one's log is whole; and a next launch is not held up by what it left.
    for (const LogLine& line : module.sandbox.Log()) EXPECT_NE(line.class_uid, 0) << line.text;
    EXPECT_EQ(module.sandbox.Run({ClientPath(), "loop", module.server.target(), "1"}).code, 0);
  }
}

// `oarlockd`: its sandboxes are left alone, a new one comes up in its place and serves new ones, and never the old.
TEST_F(DeathTest, E90_UnderOarlockdSandboxesAreLeftAloneAndANewOneServesNewOnes) {
  (void)directory_.MakeDirectory("run");
  (void)directory_.MakeDirectory("log");
  ProcessOptions options;
  options.argv = {OarlockdPath(), "--socket", directory_ / "run/admit.sock", "--control", directory_ / "run/control.sock", "--log", directory_ / "log/audit.jsonl"};
  options.timeout = std::chrono::hours(1);
  auto daemon = std::make_unique<Process>(options);
  ASSERT_TRUE(daemon->WaitFor("ready:")) << daemon->err();
  for (long round = 0; round < Rounds(); ++round) {
    SCOPED_TRACE(round);
    Module tcp(*this, true, false), unix(*this, false, false);
    for (Module* module : {&tcp, &unix}) {
      module->sandbox.Supervisor(directory_ / "run/admit.sock");
      module->process = std::make_unique<Process>(module->sandbox.Options(module->argv));
      ASSERT_TRUE(module->process->WaitFor("looping")) << module->process->err();
    }
    const uint64_t killed_at = KillIn(daemon->pid(), {&tcp, &unix});
    EXPECT_EQ(daemon->Wait().code, 128 + SIGKILL);
    for (Module* module : {&tcp, &unix}) {
      ASSERT_TRUE(module->process->WaitFor("lost")) << module->process->out() << module->process->err();
      EXPECT_TRUE(module->process->Running()) << "it is not the supervisor's to end";
      ExpectClosed(*module, killed_at, false);
    }
    // Nobody is admitted while there is none.
    Sandbox fresh("\"net\":\"egress-allowlist\",\"proxy_port\":" + std::to_string(proxy_.port()));
    fresh.Supervisor(directory_ / "run/admit.sock");
    EXPECT_EQ(fresh.Run({ClientPath(), "loop", proxy_.target(), "1"}).code, 70);
    daemon = std::make_unique<Process>(options);
    ASSERT_TRUE(daemon->WaitFor("ready:")) << daemon->err();
    EXPECT_EQ(fresh.Run({ClientPath(), "loop", proxy_.target(), "5"}).out, "right=5 odd=none\n");
    for (Module* module : {&tcp, &unix}) {
      const Outcome outcome = module->process->Wait();
      EXPECT_EQ(outcome.code, 7) << "its own end: " << outcome.err;
      EXPECT_EQ(module->tallies[0].passed, 0U) << "the new supervisor served an old sandbox";
    }
    EXPECT_FALSE(ReadLog(directory_ / "log/audit.jsonl").empty());
  }
  daemon->Signal(SIGTERM);
  EXPECT_EQ(daemon->Wait().code, 0);
}

}  // namespace
}  // namespace oarlock::test
