// SPDX-License-Identifier: Apache-2.0
// What a supervisor holds does not grow with what it has done: descriptors within 5 and memory within 1 MiB between the first
// tenth and the end. Memory is not compared under sanitizers, which keep what was freed.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <deque>

#include "tests/endurance/support.h"
#include "tests/support/daemon.h"
#include "tests/support/sandbox.h"
#include "tests/support/scale.h"

namespace oarlock::test {
namespace {

#ifdef OARLOCK_SANITIZED
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

class FlatTest : public testing::Test {
 protected:
  TemporaryDirectory directory_;
  std::string agent_ = directory_.MakeDirectory("agent");
  Counter proxy_;
  Counter broker_{agent_ + "/broker.sock"};

  [[nodiscard]] std::string Policy(uint16_t port) const {
    return "\"net\":\"egress-allowlist\",\"proxy_port\":" + std::to_string(port) + ",\"broker_socket\":\"" + agent_ + "/broker.sock\"";
  }

  // A kernel worker that has nothing to do goes after some 5 s, but the last of each ring stays.
  static Holding AtRest(pid_t pid, const Holding* goal) {
    Holding now = Settled(pid);
    if (goal != nullptr)
      (void)Eventually([&] { return (now = HoldingOf(pid)).io_workers <= goal->io_workers && now.descriptors <= goal->descriptors && now.threads <= goal->threads; },
                       std::chrono::seconds(15));
    return now;
  }

  // `live` sessions are still there, and each may have been given a thread of its own meanwhile.
  static void ExpectFlat(const char* what, pid_t pid, const Holding& tenth, long live = 0) {
    const Holding end = AtRest(pid, &tenth);
    std::printf("%s: after a tenth %s; at the end %s\n", what, Describe(tenth).c_str(), Describe(end).c_str());
    EXPECT_LE(std::abs(end.descriptors - tenth.descriptors), 5) << Describe(tenth) << " -> " << Describe(end);
    EXPECT_LE(end.threads, tenth.threads + live);
    EXPECT_LE(end.io_workers, std::max(tenth.io_workers, end.threads)) << "kernel workers are left";
    if (!kSanitized) EXPECT_LE(end.rss_kib - tenth.rss_kib, 1024) << Describe(tenth) << " -> " << Describe(end);
  }

  // Connects of all that there is: to the proxy, to the broker, refused by the policy (each a record), refused by the kernel.
  static void Connect(Process& client, const Counter& proxy, const Counter& broker, uint16_t denied, long count) {
    const uint64_t before = proxy.connections() + broker.connections();
    const long half = std::max(1L, count / 2), few = std::max(1L, count / 50);
    size_t seen = client.out().size();
    const auto ask = [&](const std::string& line, long expected) {
      client.Write(line + "\n");
      std::string answer;
      (void)Eventually(
          [&] {
            (void)client.WaitFor("\x01", std::chrono::milliseconds(1));
            answer = client.out().substr(seen);
            return answer.find('\n') != std::string::npos || !client.Running();
          },
          std::chrono::minutes(20));
      seen += answer.size();
      EXPECT_EQ(answer, "right=" + std::to_string(expected) + " odd=none\n") << client.err();
    };
    ask(proxy.target() + " " + std::to_string(half) + " allowed", half);
    ask(broker.target() + " " + std::to_string(count - half) + " allowed", count - half);
    ask("tcp:" + std::to_string(denied) + " " + std::to_string(few) + " refused", few);
    EXPECT_EQ(proxy.connections() + broker.connections() - before, static_cast<uint64_t>(count));
  }

  void ManyConnects(const char* what, Sandbox& sandbox, const std::string& holds, Daemon* daemon) {
    const long count = Scaled(100'000);
    sandbox.Timeout(std::chrono::minutes(50));
    if (daemon != nullptr) sandbox.Supervisor(daemon->socket());
    Counter denied;
    Process client(sandbox.Options({ClientPath(), "serve"}));
    ASSERT_TRUE(client.WaitFor("ready")) << client.err();
    ASSERT_TRUE(Eventually([&] { return client.WaitFor("\n", std::chrono::milliseconds(1)); }));
    const pid_t pid = daemon != nullptr ? daemon->pid() : FindHolder("oarlock-private", holds);
    ASSERT_GT(pid, 1);
    const Holding fresh = Settled(pid);
    Connect(client, proxy_, broker_, denied.port(), count / 10);
    const Holding tenth = AtRest(pid, nullptr);
    Connect(client, proxy_, broker_, denied.port(), count - count / 10);
    ExpectFlat(what, pid, tenth, 1);
    EXPECT_EQ(denied.connections(), 0U);
    EXPECT_EQ(client.Wait().code, 0);
    // And with the session all that it had is gone.
    if (daemon == nullptr) {
      EXPECT_TRUE(Eventually([&] { return FindHolder("oarlock-private", holds) < 0; }));
      return;
    }
    const Holding rest = AtRest(pid, &fresh);
    EXPECT_LE(rest.descriptors, fresh.descriptors) << Describe(fresh) << " -> " << Describe(rest);
    EXPECT_LE(rest.threads, fresh.threads) << Describe(fresh) << " -> " << Describe(rest);
  }

  // `count` launches of a program that connects once, four at a time; how many failed.
  static long Launch(const ProcessOptions& options, long count) {
    std::vector<std::string> entries = {"PATH=/usr/bin:/bin"};
    for (const auto& [name, value] : options.environment) entries.push_back(name + "=" + value);
    std::vector<char*> argv, envp;
    for (const std::string& word : options.argv) argv.push_back(const_cast<char*>(word.c_str()));
    for (std::string& entry : entries) envp.push_back(entry.data());
    argv.push_back(nullptr);
    envp.push_back(nullptr);
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, 1, "/dev/null", O_WRONLY, 0);
    std::deque<pid_t> running;
    long failed = 0;
    const auto reap = [&] {
      int status = 0;
      if (::waitpid(running.front(), &status, 0) != running.front() || status != 0) ++failed;
      running.pop_front();
    };
    for (long i = 0; i < count; ++i) {
      if (running.size() == 4) reap();
      pid_t pid = -1;
      if (::posix_spawn(&pid, argv[0], &files, nullptr, argv.data(), envp.data()) == 0) running.push_back(pid);
      else ++failed;
    }
    while (!running.empty()) reap();
    posix_spawn_file_actions_destroy(&files);
    return failed;
  }
};

TEST_F(FlatTest, ConnectsOfANodeSupervisor) {
  Daemon daemon;
  Sandbox sandbox(Policy(proxy_.port()));
  ManyConnects("oarlockd, connects", sandbox, "", &daemon);
}

TEST_F(FlatTest, ConnectsOfAPrivateSupervisor) {
  Sandbox sandbox(Policy(proxy_.port()));
  ManyConnects("private supervisor, connects", sandbox, sandbox.directory().path(), nullptr);
}

TEST_F(FlatTest, AdmissionsOfANodeSupervisor) {
  // A sanitized launch takes a hundred times as long.
  const long count = std::max(20L, Scaled(10'000) / (kSanitized ? 10 : 1));
  Daemon daemon;
  Sandbox sandbox(Policy(proxy_.port()));
  sandbox.Supervisor(daemon.socket());
  const ProcessOptions options = sandbox.Options({ClientPath(), "loop", proxy_.target(), "1"});
  EXPECT_EQ(Launch(options, count / 10), 0);
  const Holding tenth = AtRest(daemon.pid(), nullptr);
  EXPECT_EQ(Launch(options, count - count / 10), 0);
  ExpectFlat("oarlockd, admissions", daemon.pid(), tenth);
  EXPECT_EQ(proxy_.connections(), static_cast<uint64_t>(count));
}

// Sessions that are killed while their threads' connects wait: at the broker, each for a kernel worker, and at the proxy.
TEST_F(FlatTest, E88_SessionsKilledInPendingConnects) {
  const long count = std::max(20L, Scaled(400) / (kSanitized ? 2 : 1));
  Daemon daemon;
  Full tcp, unix(agent_ + "/full.sock");
  Sandbox sandbox("\"net\":\"egress-allowlist\",\"proxy_port\":" + std::to_string(tcp.port()) + ",\"broker_socket\":\"" + agent_ + "/full.sock\"");
  sandbox.Supervisor(daemon.socket());
  const auto kill_some = [&](long sessions) {
    // Four at a time, so that workers of several sessions exist at once.
    for (long done = 0; done < sessions; done += 4) {
      std::vector<std::unique_ptr<Process>> processes;
      for (long i = done; i < std::min(done + 4, sessions); ++i)
        processes.push_back(std::make_unique<Process>(sandbox.Options({ClientPath(), "hang", (i % 2 == 0 ? unix : tcp).target(), "6"})));
      for (const auto& process : processes) EXPECT_TRUE(process->WaitFor("hanging", std::chrono::seconds(20))) << process->err();
      EXPECT_GE(HoldingOf(daemon.pid()).io_workers, processes.size() > 1 ? 1 : 0) << "no worker waits";
      for (const auto& process : processes) process->Signal(SIGKILL);
      for (const auto& process : processes) EXPECT_EQ(process->Wait().code, 128 + SIGKILL);
    }
  };
  const Holding before = Settled(daemon.pid());
  kill_some(std::max(4L, count / 10));
  (void)Eventually([&] { return HoldingOf(daemon.pid()).descriptors <= before.descriptors; });
  const Holding tenth = AtRest(daemon.pid(), nullptr);
  EXPECT_LE(tenth.descriptors, before.descriptors) << Describe(before) << " -> " << Describe(tenth);
  kill_some(count - count / 10);
  ExpectFlat("oarlockd, sessions killed in pending connects", daemon.pid(), tenth);
  // And it serves.
  Sandbox next(Policy(proxy_.port()));
  next.Supervisor(daemon.socket());
  EXPECT_EQ(next.Run({ClientPath(), "loop", broker_.target(), "20"}).out, "right=20 odd=none\n");
}

}  // namespace
}  // namespace oarlock::test
