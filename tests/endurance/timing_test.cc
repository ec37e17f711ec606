// SPDX-License-Identifier: Apache-2.0
// Bounds on time of connects that wait, each beside the same program without a sandbox, best of three.
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <thread>

#include "tests/endurance/support.h"
#include "tests/support/daemon.h"
#include "tests/support/sandbox.h"

namespace oarlock::test {
namespace {

constexpr int kTries = 3;

class TimingTest : public testing::TestWithParam<const char*> {
 protected:
  TemporaryDirectory directory_;
  std::string agent_ = directory_.MakeDirectory("agent");
  std::unique_ptr<Daemon> daemon_ = Is("oarlockd") ? std::make_unique<Daemon>() : nullptr;

  [[nodiscard]] bool Is(const char* form) const { return std::string(GetParam()) == form; }
  [[nodiscard]] std::unique_ptr<Sandbox> MakeSandbox(const Full& tcp, const std::string& broker) const {
    auto sandbox = std::make_unique<Sandbox>("\"net\":\"egress-allowlist\",\"proxy_port\":" + std::to_string(tcp.port()) + ",\"broker_socket\":\"" + broker + "\"");
    if (daemon_) sandbox->Supervisor(daemon_->socket());
    return sandbox;
  }
  [[nodiscard]] ProcessOptions Client(const Sandbox& sandbox, std::vector<std::string> words) const {
    words.insert(words.begin(), ClientPath());
    ProcessOptions options = sandbox.Options(words);
    if (Is("native")) options.argv = words;
    options.timeout = std::chrono::seconds(15);
    return options;
  }
  void ExpectSendTimeouts(int crowd);
};
INSTANTIATE_TEST_SUITE_P(Form, TimingTest, testing::Values("native", "private", "oarlockd"), [](const auto& form) { return form.param; });

// alarm(1) while a connect is pending, which goes through 3 s after its begin.
TEST_P(TimingTest, AlarmRunsItsHandlerWithin1300ms) {
  struct Case {
    bool is_tcp, restart;
    int crowd;  // other connects of the session that wait for the same
    double best = 1e9;
  };
  Case cases[] = {{true, true, 0}, {true, false, 0}, {false, true, 0}, {false, false, 0}, {false, true, 4}, {false, false, 4}};
  for (int attempt = 0; attempt < kTries; ++attempt) {
    std::vector<std::unique_ptr<Full>> full;
    std::vector<std::unique_ptr<Sandbox>> sandboxes;
    std::vector<std::unique_ptr<Process>> processes;
    std::vector<Full*> tcps, unixes;
    for (const Case& c : cases) {
      const std::string path = agent_ + "/" + std::to_string(full.size()) + ".sock";
      (void)::unlink(path.c_str());
      auto tcp = std::make_unique<Full>(), unix = std::make_unique<Full>(path);
      sandboxes.push_back(MakeSandbox(*tcp, path));
      processes.push_back(std::make_unique<Process>(Client(*sandboxes.back(), {"alarm", (c.is_tcp ? tcp : unix)->target(), c.restart ? "restart" : "plain", std::to_string(c.crowd)})));
      tcps.push_back(tcp.get());
      unixes.push_back(unix.get());
      full.push_back(std::move(tcp));
      full.push_back(std::move(unix));
    }
    for (const auto& process : processes) ASSERT_TRUE(process->WaitFor("ready")) << process->err();
    // TCP asks again 1 s and 3 s after its first attempt; the answer to the last of these is yes.
    std::this_thread::sleep_for(std::chrono::seconds(2));
    for (Full* tcp : tcps) tcp->Drain();
    std::this_thread::sleep_for(std::chrono::seconds(1));
    for (Full* unix : unixes) unix->Drain();
    bool all = true;
    for (size_t i = 0; i < std::size(cases); ++i) {
      Case& c = cases[i];
      const Outcome outcome = processes[i]->Wait();
      SCOPED_TRACE(std::string(c.is_tcp ? "tcp " : "unix ") + std::to_string(c.crowd) + (c.restart ? " SA_RESTART: " : " plain: ") + outcome.out + outcome.err);
      EXPECT_EQ(NumberOf(outcome.out, "handlers"), 1);
      EXPECT_EQ(ValueOf(outcome.out, "result"), c.restart ? "0" : "EINTR");
      EXPECT_EQ(ValueOf(outcome.out, "greeted"), c.restart ? "1" : "0");
      if (c.restart) EXPECT_GT(NumberOf(outcome.out, "ms"), 2500) << "it was not pending";
      c.best = std::min(c.best, NumberOf(outcome.out, "handler_ms"));
      all = all && c.best < 1300;
    }
    if (all) break;
  }
  for (const Case& c : cases) {
    EXPECT_LT(c.best, 1300) << (c.is_tcp ? "tcp " : "unix ") << c.restart << " behind " << c.crowd;
    EXPECT_GE(c.best, 990);
    std::printf("alarm(1), %s, %s, %s, behind %d others: handler after %.0f ms\n", GetParam(), c.is_tcp ? "tcp" : "unix", c.restart ? "SA_RESTART" : "plain", c.crowd, c.best);
  }
}

// SO_SNDTIMEO of one connect, while `crowd` others of the session wait for the same without a time.
void TimingTest::ExpectSendTimeouts(int crowd) {
  Full tcp, unix(agent_ + "/full.sock");
  const auto sandbox = MakeSandbox(tcp, agent_ + "/full.sock");
  for (const Full* full : {&tcp, &unix})
    for (const int wanted : {300, 1000}) {
      SCOPED_TRACE(full->target() + " " + std::to_string(wanted) + " ms behind " + std::to_string(crowd));
      double best = 1e9;
      for (int attempt = 0; attempt < kTries && std::abs(best - wanted) > 0.2 * wanted; ++attempt) {
        const Outcome outcome = RunProcess(Client(*sandbox, {"timeout", full->target(), std::to_string(wanted), std::to_string(crowd)}));
        ASSERT_EQ(ValueOf(outcome.out, "result"), full == &tcp ? "EINPROGRESS" : "EAGAIN") << "code " << outcome.code << " " << outcome.out << outcome.err;
        const double took = NumberOf(outcome.out, "ms");
        if (std::abs(took - wanted) < std::abs(best - wanted)) best = took;
      }
      EXPECT_LE(std::abs(best - wanted), 0.2 * wanted) << best;
      std::printf("SO_SNDTIMEO %d ms, %s, %s, behind %d others: %.1f ms\n", wanted, GetParam(), full == &tcp ? "tcp" : "unix", crowd, best);
    }
}

TEST_P(TimingTest, SendTimeoutIsKeptWithin20Percent) { ExpectSendTimeouts(0); }
TEST_P(TimingTest, SendTimeoutIsKeptWithin20PercentBehindOthers) { ExpectSendTimeouts(4); }

}  // namespace
}  // namespace oarlock::test
