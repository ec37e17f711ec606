// SPDX-License-Identifier: Apache-2.0
// Sessions on the move between the fast lane and slow ones: no call is lost, answered twice or let through on the way.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>


#include "tests/support/daemon.h"
#include "tests/support/scale.h"
#include "tests/support/servers.h"

namespace oarlock::test {
namespace {

size_t Shards(pid_t daemon) { return ThreadsNamed(daemon, "oarlock-shard").size(); }

class LanesTest : public ::testing::Test {
 protected:
  // Any step counts as a long one, and a session is taken back after `pardon_ms`.
  void Start(int pardon_ms, std::optional<uid_t> uid = {}, uint64_t window_ns = 1'000'000'000, uint64_t move_ns = UINT64_MAX) {
    daemon_ = std::make_unique<Process>(ProcessOptions{
        .argv = {OARLOCK_BINARY_DIR "/tests/bin/lanes-daemon", directory_ / "admit.sock", directory_ / "control.sock",
                 directory_ / "audit.jsonl", std::to_string(window_ns), std::to_string(move_ns), std::to_string(pardon_ms * 1'000'000LL)},
        .environment = {}, .input = {}, .directory = {}, .uid = uid, .timeout = std::chrono::minutes(5), .before_exec = {}});
    ASSERT_TRUE(daemon_->WaitFor("ready:")) << daemon_->err();
  }
  void Inside(Sandbox& sandbox) const { sandbox.Supervisor(directory_ / "admit.sock").Timeout(std::chrono::minutes(3)); }
  [[nodiscard]] std::string Policy(const std::string& broker = "") const {
    return "\"net\":\"egress-allowlist\",\"proxy_port\":" + std::to_string(proxy_.port()) +
           (broker.empty() ? "" : ",\"broker_socket\":\"" + broker + "\"");
  }
  void Ends() {
    daemon_->Signal(SIGTERM);
    const Outcome outcome = daemon_->Wait();
    EXPECT_EQ(outcome.code, 0) << outcome.err;
  }

  TemporaryDirectory directory_;
  TcpServer proxy_, forbidden_;
  std::unique_ptr<Process> daemon_;
};

constexpr const char* kClient = R"(
import socket, sys, threading, errno
proxy, other, broker, rounds = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
wrong = []
def run():
  for i in range(rounds):
    try:
      s = socket.create_connection(('127.0.0.1', proxy)); s.close()
      s = socket.socket(socket.AF_UNIX); s.connect(broker); s.close()
    except OSError as e: wrong.append(repr(e))
    s = socket.socket()
    e = s.connect_ex(('127.0.0.1', other)); s.close()
    if e != errno.EACCES: wrong.append(e)
threads = [threading.Thread(target=run) for i in range(4)]
for t in threads: t.start()
for t in threads: t.join()
print(len(wrong), wrong[:5])
)";

TEST_F(LanesTest, NoCallIsLostBetweenLanes) {
  ASSERT_NO_FATAL_FAILURE(Start(1));
  UnixServer broker(directory_ / "broker.sock");
  const long rounds = Scaled(5000);
  Sandbox sandbox(Policy(directory_ / "broker.sock"));
  Inside(sandbox);
  Process client(sandbox.Options({"/usr/bin/python3", "-c", kClient, std::to_string(proxy_.port()), std::to_string(forbidden_.port()),
                                  directory_ / "broker.sock", std::to_string(rounds)}));
  size_t most = 0;
  while (client.Running()) {
    most = std::max(most, Shards(daemon_->pid()));
    (void)client.WaitFor("\n", std::chrono::milliseconds(20));
  }
  const Outcome outcome = client.Wait();
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "0 []\n");
  EXPECT_GT(most, 2U) << "it never moved";
  EXPECT_TRUE(Eventually([&] { return proxy_.connections() == 4 * rounds && broker.connections() == 4 * rounds; }))
      << proxy_.connections() << " " << broker.connections();
  EXPECT_EQ(forbidden_.connections(), 0);
  size_t denied = 0;
  for (const LogLine& line : ReadLog(directory_ / "audit.jsonl"))
    if (line.code == "TCP_NOT_PROXY") denied += line.count;
  EXPECT_EQ(denied, static_cast<size_t>(4 * rounds));
  EXPECT_TRUE(Eventually([&] { return Shards(daemon_->pid()) == 2; })) << "a lane outlives its session";
  Ends();
}

// Connects that wait in the kernel, and those that wait behind them, go along; so do their signals and their caller's end.
TEST_F(LanesTest, WaitingConnectsGoAlong) {
  ASSERT_NO_FATAL_FAILURE(Start(1));
  const std::string path = directory_ / "full.sock";
  UniqueFd listening(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  ASSERT_EQ(::bind(listening.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  ASSERT_EQ(::listen(listening.get(), 0), 0);
  Sandbox sandbox(Policy(path));
  Inside(sandbox);
  Process waiting(sandbox.Options({"/usr/bin/python3", "-c",
                                   "import socket, sys, threading, time\n"
                                   "made = []\n"
                                   "def wait():\n"
                                   "  s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); made.append(s)\n"
                                   "ts = [threading.Thread(target=wait) for i in range(6)]\n"
                                   "for t in ts: t.start()\n"
                                   "for i in range(60):\n"
                                   "  s = socket.create_connection(('127.0.0.1', int(sys.argv[2]))); s.close(); time.sleep(0.003)\n"
                                   "print('busy', len(made), flush=True)\n"
                                   "for t in ts: t.join()\n"
                                   "print('made', len(made), flush=True)\n",
                                   path, std::to_string(proxy_.port())}));
  ASSERT_TRUE(waiting.WaitFor("busy", std::chrono::seconds(60))) << waiting.err();
  EXPECT_NE(waiting.out().find("busy 1\n"), std::string::npos) << waiting.out();
  std::vector<UniqueFd> accepted;
  for (int i = 0; i < 6; ++i) {
    accepted.emplace_back(::accept4(listening.get(), nullptr, nullptr, SOCK_CLOEXEC));
    EXPECT_TRUE(accepted.back().valid());
  }
  EXPECT_TRUE(waiting.WaitFor("made 6")) << waiting.out() << waiting.err();
  EXPECT_EQ(waiting.Wait().code, 0);

  // Killed while they wait, whichever lane they are in.
  for (int i = 0; i < 10; ++i) {
    Process killed(sandbox.Options({"/usr/bin/python3", "-c",
                                    "import socket, sys, threading\n"
                                    "def wait():\n"
                                    "  for i in range(3): socket.socket(socket.AF_UNIX).connect(sys.argv[1])\n"
                                    "for i in range(6): threading.Thread(target=wait).start()\n"
                                    "print('waits', flush=True)\n"
                                    "while True: socket.create_connection(('127.0.0.1', int(sys.argv[2]))).close()\n",
                                    path, std::to_string(proxy_.port())}));
    ASSERT_TRUE(killed.WaitFor("waits"));
    killed.Signal(SIGKILL);
    EXPECT_EQ(killed.Wait().code, 128 + SIGKILL);
  }
  EXPECT_TRUE(Eventually([&] { return Shards(daemon_->pid()) == 2; }));
  Ends();
}

// A session is moved as it stands: no further call of its has to come first.
TEST_F(LanesTest, ASilentSessionIsMovedWithItsWaitingConnect) {
  ASSERT_NO_FATAL_FAILURE(Start(300));
  const std::string path = directory_ / "full.sock";
  FullBroker broker(path);
  Sandbox sandbox(Policy(path));
  Inside(sandbox);
  for (int round = 0; round < 3; ++round) {
    // Slow since its launch, waited for beside the ring after that many calls of one thread, and quiet from the connect on.
    Process silent(sandbox.Options({"/usr/bin/python3", "-c",
                                    "import signal, socket, sys\n"
                                    "for i in range(40): s = socket.socket(socket.AF_UNIX)\n"
                                    "signal.signal(signal.SIGUSR1, lambda *a: (print('handled', flush=True), sys.exit(0)))\n"
                                    "print('waits', flush=True)\n"
                                    "s.connect(sys.argv[1])\n",
                                    path}));
    ASSERT_TRUE(silent.WaitFor("waits")) << silent.err();
    EXPECT_TRUE(Eventually([&] { return Shards(daemon_->pid()) == 3; }));
    EXPECT_TRUE(Eventually([&] { return Shards(daemon_->pid()) == 2; })) << "it is not taken back";
    EXPECT_TRUE(silent.Running());
    silent.Signal(SIGUSR1);
    EXPECT_TRUE(silent.WaitFor("handled")) << silent.err();
    EXPECT_EQ(silent.Wait().code, 0);
  }
  Ends();
}

// Three long waits send a session away, or a single one that is long enough.
TEST_F(LanesTest, OneLongWaitIsEnough) {
  for (const bool enough : {false, true}) {
    // However many there are, no three of them count.
    ASSERT_NO_FATAL_FAILURE(Start(60'000, {}, 0, enough ? 0 : UINT64_MAX));
    Sandbox sandbox(Policy());
    Inside(sandbox);
    // The proof's call is read, pinned and closed.
    Process client(sandbox.Options({ProbePath(), "pid", "sleep,30000"}));
    ASSERT_TRUE(client.WaitFor("pid -> 0")) << client.err();
    if (enough) EXPECT_TRUE(Eventually([&] { return Shards(daemon_->pid()) == 3; }));
    else EXPECT_EQ(Shards(daemon_->pid()), 2U);
    client.Signal(SIGKILL);
    (void)client.Wait();
    Ends();
  }
}

// A lane needs a thread. While there is none, the session waits; nothing is refused, and nothing stops.
TEST_F(LanesTest, WithoutAThreadForItASessionWaits) {
  constexpr uid_t kOwn = 61237;  // the limit holds for all but root
  ASSERT_EQ(::chown(directory_.path().c_str(), kOwn, kOwn), 0);
  ASSERT_NO_FATAL_FAILURE(Start(1, kOwn));
  // As the user itself: root's right to set another's limits (CAP_SYS_RESOURCE) is not everywhere.
  const auto limit = [&](rlim_t tasks) {
    const Outcome set = RunProcess({.argv = {"/usr/bin/prlimit", "--pid", std::to_string(daemon_->pid()), "--nproc=" + std::to_string(tasks) + ":"},
                                    .environment = {}, .input = {}, .directory = {}, .uid = kOwn, .before_exec = {}});
    return set.code == 0 ? "" : set.err;
  };
  rlimit own{};
  ASSERT_EQ(::getrlimit(RLIMIT_NPROC, &own), 0);
  Sandbox sandbox(Policy());
  Inside(sandbox);
  sandbox.As(kOwn);
  Process client(sandbox.Options({"/usr/bin/python3", "-c",
                                  "import socket, sys\n"
                                  "print('begins', flush=True)\n"
                                  "sys.stdin.read(1)\n"
                                  "for i in range(50): socket.create_connection(('127.0.0.1', int(sys.argv[1]))).close()\n"
                                  "print('done', flush=True)\n",
                                  std::to_string(proxy_.port())}));
  ASSERT_TRUE(client.WaitFor("begins")) << client.err();
  ASSERT_EQ(limit(1), "");
  client.Write("x");
  EXPECT_FALSE(client.WaitFor("done", std::chrono::seconds(1))) << "it was never to move";
  EXPECT_TRUE(client.Running()) << client.err();
  ASSERT_TRUE(daemon_->Running()) << daemon_->err();
  EXPECT_EQ(Shards(daemon_->pid()), 2U);
  ASSERT_EQ(limit(own.rlim_cur), "");
  EXPECT_TRUE(client.WaitFor("done")) << client.err();
  EXPECT_EQ(client.Wait().code, 0);
  EXPECT_EQ(proxy_.connections(), 50);
  Ends();
}

// Whom somebody else admitted is slow from the start, and for good.
TEST(LanesOfOthers, AreTheirOwnFromTheStart) {
  Daemon daemon({"--admit-uid", "65534"});
  TcpServer proxy;
  const std::string policy = "\"net\":\"egress-allowlist\",\"proxy_port\":" + std::to_string(proxy.port());
  const size_t before = Shards(daemon.pid());
  for (const bool other : {false, true}) {
    Sandbox sandbox(policy);
    sandbox.Supervisor(daemon.socket());
    if (other) sandbox.As(65534);
    Process process(sandbox.Options({ProbePath(), "tcp,127.0.0.1," + std::to_string(proxy.port()), "sleep,1000"}));
    EXPECT_TRUE(process.WaitFor("tcp")) << process.err();
    EXPECT_EQ(Shards(daemon.pid()), before + (other ? 1 : 0));
    EXPECT_EQ(process.Wait().code, 0) << process.err();
  }
  EXPECT_EQ(proxy.connections(), 2);
  EXPECT_TRUE(Eventually([&] { return Shards(daemon.pid()) == before; }));
}

}  // namespace
}  // namespace oarlock::test
