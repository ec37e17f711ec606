// SPDX-License-Identifier: Apache-2.0
// A module that makes its supervisor wait: in a close, in a read, in a lock, in a file system that does not answer (E-66 to E-69,
// E-206, E-209, E-212). A neighbour under the same oarlockd connects meanwhile, and of its connects no more than one a minute may
// take over 50 ms. The control is the same neighbour with nobody beside it.
#include <sys/uio.h>

#include <cstdio>
#include <deque>
#include <fstream>
#include <sstream>

#include "tests/hostile/stalled_fuse.h"
#include "tests/hostile/support.h"
#include "tests/support/scale.h"

namespace oarlock::test {
namespace {

// Accepts and never reads.
class SilentServer {
 public:
  SilentServer() : listening_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)), stop_(::eventfd(0, EFD_CLOEXEC)) {
    const int small = 4096;
    (void)::setsockopt(listening_.get(), SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    EXPECT_EQ(::bind(listening_.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(::listen(listening_.get(), 512), 0);
    EXPECT_EQ(::getsockname(listening_.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] {
      for (;;) {
        pollfd ready[2] = {{stop_.get(), POLLIN, 0}, {listening_.get(), POLLIN, 0}};
        (void)::poll(ready, 2, -1);
        if (ready[0].revents != 0) return;
        held_.emplace_back(::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC));
        if (held_.size() > 400) held_.pop_front();
      }
    });
  }
  ~SilentServer() {
    const uint64_t one = 1;
    (void)!::write(stop_.get(), &one, sizeof(one));
    thread_.join();
  }
  SilentServer(const SilentServer&) = delete;
  SilentServer& operator=(const SilentServer&) = delete;
  [[nodiscard]] uint16_t port() const noexcept { return port_; }
  // A connection to it that is full and will wait for this long when its last descriptor is closed.
  [[nodiscard]] UniqueFd Lingering(int seconds) const {
    UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const int small = 4096;
    (void)::setsockopt(fd.get(), SOL_SOCKET, SO_SNDBUF, &small, sizeof(small));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port_);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    (void)::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address));
    static const char block[1 << 16] = {};
    while (::send(fd.get(), block, sizeof(block), MSG_DONTWAIT | MSG_NOSIGNAL) > 0) {
    }
    const linger wait{1, seconds};
    (void)::setsockopt(fd.get(), SOL_SOCKET, SO_LINGER, &wait, sizeof(wait));
    return fd;
  }

 private:
  UniqueFd listening_, stop_;
  uint16_t port_ = 0;
  std::deque<UniqueFd> held_;
  std::thread thread_;
};

// The program that speaks to a supervisor's sockets; "send,w" sends a socket whose close takes eight seconds.
ProcessOptions SpeakerOptions(const std::vector<std::string>& steps) {
  ProcessOptions options;
  options.argv = {OARLOCK_BINARY_DIR "/tests/bin/admission-speaker"};
  options.argv.insert(options.argv.end(), steps.begin(), steps.end());
  options.timeout = std::chrono::minutes(5);
  return options;
}

std::vector<std::string> Stall(const std::string& word) { return {StallerPath(), word}; }

class StallTest : public testing::Test {
 protected:
  static constexpr long kFullMs = 30'000;
  StallTest() : agent_(directory_.MakeDirectory("agent")), daemon_(std::vector<std::string>{"--admit-uid", "65534"}) {}

  // Launched before anything is wrong.
  class Neighbour {
   public:
    Neighbour(const std::string& socket, uint16_t port, long ms)
        : sandbox_(Egress(port)), word_("neighbour," + std::to_string(port) + "," + std::to_string(ms)), ms_(ms) {
      sandbox_.Supervisor(socket).Timeout(std::chrono::minutes(10));
      process_ = std::make_unique<Process>(sandbox_.Options(Stall(word_)));
      EXPECT_TRUE(process_->WaitFor("standing by")) << process_->err();
    }
    std::string Measure() {
      process_->Write("\n");
      (void)process_->WaitFor(" -> ", std::chrono::milliseconds(ms_) + std::chrono::seconds(10));
      (void)process_->WaitFor(" worst ", std::chrono::seconds(1));
      return ResultOf(process_->out(), word_);
    }

   private:
    Sandbox sandbox_;
    std::string word_;
    long ms_;
    std::unique_ptr<Process> process_;
  };
  // A SYN that a full backlog drops is sent again after 1 s: a server that gets no CPU looks like a supervisor that stalls.
  static long SynsSentAgain() {
    std::ifstream file("/proc/net/netstat");
    std::string names, values, name, value;
    while (std::getline(file, names) && std::getline(file, values)) {
      std::istringstream name_words(names), value_words(values);
      while (name_words >> name && value_words >> value)
        if (name == "TCPSynRetrans") return std::strtol(value.c_str(), nullptr, 10);
    }
    return -1;
  }
  static bool Undisturbed(const std::string& seen) {
    return FieldOf(seen, "failed") == 0 && FieldOf(seen, "over50") >= 0 && FieldOf(seen, "over50") <= 1;
  }
  // With the attack begun by `begin`; ended with what it returns. Best of three.
  void ExpectUndisturbed(const std::function<std::shared_ptr<void>()>& begin) {
    const long ms = Scaled(kFullMs);
    bool held = false;
    std::string seen;
    for (int attempt = 0; attempt < 3 && !held; ++attempt) {
      const std::string control = Neighbour(daemon_.socket(), proxy_.port(), std::max(500L, ms / 4)).Measure();
      Neighbour neighbour(daemon_.socket(), proxy_.port(), ms);
      const std::shared_ptr<void> attack = begin();
      const long before = SynsSentAgain();
      seen = neighbour.Measure();
      std::printf("neighbour alone: %s\nneighbour beside it: %s, SYNs sent again meanwhile: %ld\n", control.c_str(), seen.c_str(), SynsSentAgain() - before);
      held = Undisturbed(seen);
    }
    EXPECT_TRUE(held) << seen;
    EXPECT_TRUE(daemon_.process().Running());
  }
  // The attacker's process; ended with it.
  std::function<std::shared_ptr<void>()> Attacking(const std::string& policy, const std::string& word) {
    return [this, policy, word]() -> std::shared_ptr<void> {
      struct Running {
        ~Running() {
          // What it says of itself, if it has come to its end.
          (void)process->WaitFor(" -> ", std::chrono::milliseconds(1500));
          std::printf("attacker: %s", process->out().c_str());
          *said = process->out();
        }
        std::string* said;
        std::unique_ptr<Sandbox> sandbox;
        std::unique_ptr<Process> process;
      };
      auto running = std::make_shared<Running>();
      running->said = &attacker_said_;
      running->sandbox = std::make_unique<Sandbox>(policy);
      running->sandbox->Supervisor(daemon_.socket()).Timeout(std::chrono::minutes(10));
      running->process = std::make_unique<Process>(running->sandbox->Options(Stall(word)));
      EXPECT_TRUE(running->process->WaitFor("attacking", std::chrono::seconds(30))) << running->process->out() << running->process->err();
      return running;
    };
  }
  static std::string Ms() { return std::to_string(Scaled(kFullMs) + 500); }

  TemporaryDirectory directory_;
  std::string agent_;
  TcpServer proxy_;
  SilentServer silent_;
  Daemon daemon_;
  std::string attacker_said_;
};

TEST_F(StallTest, E66_LingeringClose) {
  // The twin waits in its close; inside a time is taken as off.
  Sandbox bare(Egress(silent_.port()));
  const std::string word = "closetime," + std::to_string(silent_.port()) + ",2";
  EXPECT_GE(std::strtod(ResultOf(bare.RunBare(Stall(word)), word).c_str(), nullptr), 1900);
  EXPECT_LT(std::strtod(ResultOf(bare.Run(Stall(word)), word).c_str(), nullptr), 1000);
  ExpectUndisturbed(Attacking(Egress(silent_.port()), "lingers," + Ms() + "," + std::to_string(silent_.port())));
}

// Somebody outside has made the socket so, and gave it away.
TEST_F(StallTest, E67_LingeringSocketOfTheBroker) {
  HandingBroker broker(agent_ + "/broker.sock", [this] { return silent_.Lingering(6); });
  ExpectUndisturbed(Attacking(Egress(proxy_.port()) + "," + Broker(agent_ + "/broker.sock"),
                              "handed," + Ms() + "," + std::to_string(proxy_.port()) + "," + agent_ + "/broker.sock,direct"));
  EXPECT_GT(FieldOf(attacker_said_.substr(attacker_said_.rfind("-> ") + 3), "left"), 0) << "the supervisor never had the last copy: " << attacker_said_;
}

TEST_F(StallTest, E67_SocketWhoseQueueHoldsALingeringOne) {
  HandingBroker broker(agent_ + "/broker.sock", [this] { return silent_.Lingering(6); });
  ExpectUndisturbed(Attacking(Egress(proxy_.port()) + "," + Broker(agent_ + "/broker.sock"),
                              "handed," + Ms() + "," + std::to_string(proxy_.port()) + "," + agent_ + "/broker.sock,queued"));
  EXPECT_GT(FieldOf(attacker_said_.substr(attacker_said_.rfind("-> ") + 3), "left"), 0) << "the supervisor never had the last copy: " << attacker_said_;
}

TEST_F(StallTest, E68_AddressInMemoryThatIsBeingForked) {
  ExpectUndisturbed(Attacking(Egress(proxy_.port()), "forks," + Ms() + ",1024," + std::to_string(proxy_.port())));
  // The twin: whoever reads such a process waits.
  ProcessOptions options;
  options.argv = Stall("forks,2500,1024," + std::to_string(proxy_.port()));
  Process bare(options);
  ASSERT_TRUE(bare.WaitFor("attacking", std::chrono::seconds(30)));
  const auto where = std::strtoull(bare.out().c_str() + bare.out().find("0x"), nullptr, 16);
  double worst = 0;
  for (const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(1500); std::chrono::steady_clock::now() < end;) {
    char byte;
    const iovec local{&byte, 1}, remote{reinterpret_cast<void*>(where), 1};
    const auto before = std::chrono::steady_clock::now();
    EXPECT_EQ(::process_vm_readv(bare.pid(), &local, 1, &remote, 1, 0), 1);
    worst = std::max(worst, std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - before).count());
  }
  std::printf("the twin made a reader wait %.1f ms\n", worst);
  EXPECT_GT(worst, 5);
}

TEST_F(StallTest, E69_SocketWhoseLockIsHeld) {
  ExpectUndisturbed(Attacking(Egress(proxy_.port()), "sends," + Ms() + ",1024," + std::to_string(proxy_.port())));
}

TEST_F(StallTest, E69_SocketWhoseLockIsHeldIsAskedToLinger) {
  const auto attacking = Attacking(Egress(proxy_.port()), "asked," + Ms() + ",2048," + std::to_string(proxy_.port()));
  bool moved = false;
  ExpectUndisturbed([&] {
    auto running = attacking();
    moved |= Eventually([&] { return ThreadsNamed(daemon_.pid(), "oarlock-shard").size() > 1; }, std::chrono::seconds(3));
    return running;
  });
  EXPECT_TRUE(moved) << "what it makes the shard wait for is not held against it";
}

TEST_F(StallTest, E209_SocketWhoseQueueIsLong) {
  ExpectUndisturbed(Attacking(Egress(proxy_.port()) + ",\"limits\":{\"nofile\":65536}", "queues," + Ms() + ",19000," + std::to_string(proxy_.port())));
  // The twin: freeing it takes its time, without sleep.
  Sandbox bare;
  const Outcome twin = bare.RunBare(Stall("queues,100,19000,0"));
  std::printf("the twin: %s", twin.out.c_str());
  EXPECT_GT(FieldOf(ResultOf(twin, "queues,100,19000,0"), "worst"), 5) << twin.out;
}

// The kernel makes senders of a user wait who has that many sockets on their way: a module of a user of its own makes nobody else.
TEST_F(StallTest, E209_LaunchesBesideIt) {
  const auto attack = Attacking(Egress(proxy_.port()) + ",\"limits\":{\"nofile\":65536},\"run_as\":{\"uid\":65534,\"gid\":65534}",
                                "queues,60000,19000," + std::to_string(proxy_.port()))();
  for (int i = 0; i < 5; ++i) {
    Sandbox sandbox(Egress(proxy_.port()));
    sandbox.Supervisor(daemon_.socket());
    const std::string word = "connects,10," + std::to_string(proxy_.port());
    const Outcome outcome = sandbox.Run(Attack({word}));
    EXPECT_EQ(ResultOf(outcome, word), "0:10") << outcome.err;
  }
}

// Peers that are refused admission leave lingering sockets in the queue.
TEST_F(StallTest, E212_ACrowdOfCallers) { ExpectUndisturbed(Attacking(Egress(proxy_.port()), "crowd," + Ms() + ",24")); }

TEST_F(StallTest, E212_RefusedPeersWithLingeringSockets) {
  const std::string bytes = directory_.WriteFile("x", "x");
  ExpectUndisturbed([&]() -> std::shared_ptr<void> {
    auto peers = std::make_shared<std::vector<std::unique_ptr<Process>>>();
    for (const std::vector<std::string>& steps : {
             std::vector<std::string>{"uid,65533", "connect," + daemon_.socket(), "text," + bytes, "send,w", "hold"},
             std::vector<std::string>{"uid,65534", "connect," + daemon_.socket(), "text," + bytes, "send,w", "shut", "hold"},
             std::vector<std::string>{"uid,65534", "connect," + daemon_.socket(), "text," + bytes, "send,wwwww", "hold"},
             std::vector<std::string>{"seqpacket," + daemon_.control(), "text," + bytes, "send,w", "hold"},
         }) {
      daemon_.process().Signal(SIGSTOP);  // sent before it looks who it is
      peers->push_back(std::make_unique<Process>(SpeakerOptions(steps)));
      EXPECT_TRUE(peers->back()->WaitFor("send,"));
      daemon_.process().Signal(SIGCONT);
    }
    return peers;
  });
}

// --- a file system that does not answer --------------------------------------------------------------------

class StalledFileTest : public StallTest {
 protected:
  StalledFileTest() {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(victim_.port());
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    content_.assign(reinterpret_cast<const char*>(&address), sizeof(address));
    mount_point_ = directory_.MakeDirectory("fuse");
    fuse_ = std::make_unique<StalledFuse>(mount_point_, content_);
    if (fuse_->mounted()) inside_ = std::make_unique<Daemon>();
  }
  ~StalledFileTest() override { fuse_.reset(); }  // first of all
  std::unique_ptr<Process> Attacker(const std::string& word) {
    attacker_ = std::make_unique<Sandbox>(Egress(proxy_.port()) + ",\"rd\":[\"" + mount_point_ + "\"]");
    attacker_->Supervisor(inside_->socket()).Timeout(std::chrono::minutes(2));
    return std::make_unique<Process>(attacker_->Options(Stall(word)));
  }
  static void ExpectWell(Neighbour& neighbour) {
    const std::string seen = neighbour.Measure();
    std::printf("neighbour beside it: %s\n", seen.c_str());
    EXPECT_TRUE(Undisturbed(seen)) << seen;
  }
  TcpServer victim_;
  std::string content_, mount_point_;
  std::unique_ptr<Daemon> inside_;
  std::unique_ptr<Sandbox> attacker_;
  std::unique_ptr<StalledFuse> fuse_;
};

TEST_F(StalledFileTest, E78_AddressInAFileThatAnswers) {
  if (!fuse_->mounted()) GTEST_SKIP() << "no FUSE file system can be mounted here";
  const std::string word = "page," + fuse_->file() + "," + std::to_string(proxy_.port());
  EXPECT_EQ(ResultOf(Attacker(word)->Wait(), word), "EACCES");
  ::usleep(50'000);
  EXPECT_EQ(victim_.connections(), 0);
  EXPECT_EQ(ResultOf(attacker_->RunBare(Stall(word)), word), "0") << "the twin";
  EXPECT_TRUE(Eventually([&] { return victim_.connections() == 1; }));
}

TEST_F(StalledFileTest, E78_E206_AddressInAFileThatDoesNot) {
  if (!fuse_->mounted()) GTEST_SKIP() << "no FUSE file system can be mounted here";
  const std::string word = "page," + fuse_->file() + "," + std::to_string(proxy_.port());
  fuse_->StallReads();
  Neighbour neighbour(inside_->socket(), proxy_.port(), Scaled(kFullMs));
  auto attacker = Attacker(word);
  ASSERT_TRUE(attacker->WaitFor("attacking")) << attacker->err();
  EXPECT_TRUE(Eventually([&] { return fuse_->stalled() > 0; })) << "nobody has asked for the page";
  ExpectWell(neighbour);
  EXPECT_TRUE(attacker->WaitFor(word + " -> EACCES\n", std::chrono::seconds(5))) << attacker->out();
  EXPECT_EQ(Refusals(inside_->Log(), "ADDR_UNREADABLE"), 1U);
  // Nor does it keep the supervisor from ending, or its other sessions from being told so.
  inside_->process().Signal(SIGKILL);
  EXPECT_TRUE(Eventually([&] { return !inside_->process().Running(); }, std::chrono::seconds(5)));
  fuse_.reset();
  EXPECT_EQ(victim_.connections(), 0);
}

TEST_F(StalledFileTest, E67_E206_FileWhoseCloseDoesNotEnd) {
  if (!fuse_->mounted()) GTEST_SKIP() << "no FUSE file system can be mounted here";
  const std::string word = "file," + fuse_->file() + "," + std::to_string(proxy_.port()) + ",600000";
  fuse_->StallCloses();
  Neighbour neighbour(inside_->socket(), proxy_.port(), Scaled(kFullMs));
  auto attacker = Attacker(word);
  ASSERT_TRUE(attacker->WaitFor("attacking")) << attacker->err();
  EXPECT_TRUE(Eventually([&] { return fuse_->stalled() > 0; })) << "nobody has closed the file";
  ExpectWell(neighbour);
  fuse_.reset();
}

}  // namespace
}  // namespace oarlock::test
