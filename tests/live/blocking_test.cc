// SPDX-License-Identifier: Apache-2.0
// Connects that stay pending, and what they may not do: hold up the shard, other sandboxes, other threads, signals.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>

#include "tests/support/daemon.h"
#include "tests/support/sandbox.h"
#include "tests/support/scale.h"
#include "tests/support/servers.h"

namespace oarlock::test {
namespace {

// Connects in a loop and prints the longest call in milliseconds once its stdin ends.
constexpr const char* kNeighbour =
    "import socket,sys,time,select\n"
    "port=int(sys.argv[1]); worst=0; n=0\n"
    "print('ready',flush=True)\n"
    "while not select.select([sys.stdin],[],[],0)[0]:\n"
    "  t=time.monotonic(); s=socket.socket(); s.connect(('127.0.0.1',port)); worst=max(worst,time.monotonic()-t); n+=1; s.close()\n"
    "  time.sleep(0.002)\n"
    "print('worst',round(worst*1000,1),'of',n,flush=True)\n";

class BlockingTest : public testing::Test {
 protected:
  TemporaryDirectory directory_;
  Daemon daemon_;
  TcpServer proxy_;

  std::string Egress() const { return "\"net\":\"egress-allowlist\",\"proxy_port\":" + std::to_string(proxy_.port()); }
  std::unique_ptr<Process> Neighbour(Sandbox& sandbox) {
    sandbox.Supervisor(daemon_.socket()).Timeout(std::chrono::minutes(3));
    auto process = std::make_unique<Process>(sandbox.Options({"/usr/bin/python3", "-c", kNeighbour, std::to_string(proxy_.port())}));
    EXPECT_TRUE(process->WaitFor("ready")) << process->err();
    return process;
  }
  static double Worst(const Outcome& outcome) {
    const size_t at = outcome.out.find("worst ");
    return at == std::string::npos ? 1e9 : std::strtod(outcome.out.c_str() + at + 6, nullptr);
  }
};

// 10,000 connects to a full backlog while O_NONBLOCK flips: the shard never waits. The bound is the issue's: 100 ms.
TEST_F(BlockingTest, NonBlockToggledNeverStallsTheShard) {
  const std::string agent = directory_.MakeDirectory("agent");
  FullBroker broker(agent + "/broker.sock");
  Sandbox quiet(Egress());
  auto neighbour = Neighbour(quiet);
  Sandbox hostile("\"broker_socket\":\"" + agent + "/broker.sock\"");
  hostile.Supervisor(daemon_.socket()).Timeout(std::chrono::minutes(2));
  const std::string rounds = std::to_string(Scaled(10'000));
  const Outcome outcome = hostile.Run({OARLOCK_BINARY_DIR "/tests/bin/oarlock-toggler", "nonblock", agent + "/broker.sock", rounds});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  // At once where it was non-blocking, after SO_SNDTIMEO where it was not: nothing gets in, nothing else comes out.
  EXPECT_EQ(outcome.out, "EAGAIN " + rounds + "\n");
  neighbour->CloseInput();
  const Outcome seen = neighbour->Wait();
  EXPECT_LT(Worst(seen), 100.0) << seen.out << seen.err << outcome.out;
  std::printf("toggled: %sneighbour: %s", outcome.out.c_str(), seen.out.c_str());
}

TEST_F(BlockingTest, BlockedConnectHoldsUpItsThreadAlone) {
  const std::string agent = directory_.MakeDirectory("agent");
  FullBroker broker(agent + "/broker.sock");
  Sandbox sandbox(Egress() + ",\"broker_socket\":\"" + agent + "/broker.sock\"");
  sandbox.Supervisor(daemon_.socket());
  Process process(sandbox.Options({"/usr/bin/python3", "-c",
                                   "import socket,threading,time\n"
                                   "def block():\n"
                                   "  socket.socket(socket.AF_UNIX).connect('" + agent + "/broker.sock')\n"
                                   "for i in range(8): threading.Thread(target=block,daemon=True).start()\n"
                                   "time.sleep(0.3)\n"
                                   "for i in range(50): s=socket.socket(); s.connect(('127.0.0.1'," + std::to_string(proxy_.port()) + ")); s.close()\n"
                                   "print('others go on',flush=True); time.sleep(60)\n"}));
  EXPECT_TRUE(process.WaitFor("others go on")) << process.out() << process.err();
  Sandbox second(Egress());
  second.Supervisor(daemon_.socket());
  EXPECT_EQ(second.Probe({"tcp,127.0.0.1," + std::to_string(proxy_.port())}).code, 0) << "other sandboxes go on";
  process.Signal(SIGKILL);
  const Outcome outcome = process.Wait();
  EXPECT_EQ(outcome.code, 128 + SIGKILL);
  EXPECT_TRUE(Eventually([&] { return daemon_.process().WaitFor("ended", std::chrono::milliseconds(10)); })) << "SIGKILL frees it";
}

// A pending connect is ended by a signal whose handler runs, as SA_RESTART says (WAIT_KILLABLE holds it back until we answer).
TEST_F(BlockingTest, AlarmEndsAPendingConnect) {
  const std::string agent = directory_.MakeDirectory("agent");
  FullBroker broker(agent + "/broker.sock");
  for (const char* private_or_node : {"node", "private"}) {
    Sandbox sandbox("\"broker_socket\":\"" + agent + "/broker.sock\"");
    if (std::strcmp(private_or_node, "node") == 0) sandbox.Supervisor(daemon_.socket());
    const Outcome outcome = sandbox.Run({"/usr/bin/python3", "-c",
                                         "import signal,socket,time\n"
                                         "def handler(*a): raise TimeoutError('alarm')\n"
                                         "signal.signal(signal.SIGALRM,handler); signal.alarm(1); t=time.monotonic()\n"
                                         "try: socket.socket(socket.AF_UNIX).connect('" + agent + "/broker.sock'); print('connected')\n"
                                         "except TimeoutError: print('alarmed', time.monotonic()-t < 1.5)\n"});
    EXPECT_EQ(outcome.out, "alarmed True\n") << private_or_node << outcome.err;
  }
}

TEST_F(BlockingTest, SendTimeoutIsKept) {
  const std::string agent = directory_.MakeDirectory("agent");
  FullBroker broker(agent + "/broker.sock");
  Sandbox sandbox("\"broker_socket\":\"" + agent + "/broker.sock\"");
  sandbox.Supervisor(daemon_.socket());
  const Outcome outcome = sandbox.Run({"/usr/bin/python3", "-c",
                                       "import errno,socket,struct,time\n"
                                       "s=socket.socket(socket.AF_UNIX); s.setsockopt(socket.SOL_SOCKET,socket.SO_SNDTIMEO,struct.pack('ll',0,500000)); t=time.monotonic()\n"
                                       "e=s.connect_ex('" + agent + "/broker.sock'); print(errno.errorcode[e], 0.4 < time.monotonic()-t < 0.6+0.2)\n"});
  EXPECT_EQ(outcome.out, "EAGAIN True\n") << outcome.err;
}

TEST_F(BlockingTest, CallerThatGoesTakesItsConnectAlong) {
  const std::string agent = directory_.MakeDirectory("agent");
  FullBroker broker(agent + "/broker.sock");
  Sandbox sandbox("\"broker_socket\":\"" + agent + "/broker.sock\"");
  sandbox.Supervisor(daemon_.socket());
  const size_t before = daemon_.Descriptors();
  for (int round = 0; round < 20; ++round) {
    Process process(sandbox.Options({"/usr/bin/python3", "-c",
                                     "import socket,sys; s=socket.socket(socket.AF_UNIX); print('go',flush=True); s.connect('" + agent + "/broker.sock')"}));
    ASSERT_TRUE(process.WaitFor("go"));
    usleep(static_cast<useconds_t>(20'000 * (round % 8)));
    process.Signal(SIGKILL);
    EXPECT_EQ(process.Wait().code, 128 + SIGKILL);
  }
  EXPECT_TRUE(Eventually([&] { return daemon_.Descriptors() <= before; })) << before << " before, " << daemon_.Descriptors() << " now";
}

}  // namespace
}  // namespace oarlock::test
