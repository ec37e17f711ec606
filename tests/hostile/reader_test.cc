// SPDX-License-Identifier: Apache-2.0
// Sessions that see a file system which may not answer: a process of their own touches their memory and descriptors (E-206). Here
// it is killed, hangs for good, and is counted.
#include <filesystem>
#include <sstream>

#include "tests/hostile/stalled_fuse.h"
#include "tests/hostile/support.h"

namespace oarlock::test {
namespace {

// Its children, also those that have ended and were not waited for.
std::vector<pid_t> ChildrenOf(pid_t parent) {
  std::vector<pid_t> children;
  std::error_code error;
  for (const auto& task : std::filesystem::directory_iterator("/proc/" + std::to_string(parent) + "/task", error)) {
    std::istringstream text(ReadWholeFile(task.path() / "children"));
    for (pid_t child = 0; text >> child;) children.push_back(child);
  }
  return children;
}
// 'R', 'S', 'D', 'Z'; '-': there is none.
char StateOf(pid_t pid) {
  const std::string stat = ReadWholeFile("/proc/" + std::to_string(pid) + "/stat");
  const size_t at = stat.rfind(") ");
  return at == std::string::npos ? '-' : stat[at + 2];
}
bool Gone(pid_t pid) { return StateOf(pid) == '-' || StateOf(pid) == 'Z'; }

class ReaderTest : public testing::Test {
 protected:
  ReaderTest() {
    mount_point_ = directory_.MakeDirectory("fuse");
    fuse_ = std::make_unique<StalledFuse>(mount_point_, "x");
    if (fuse_->mounted()) daemon_ = std::make_unique<Daemon>();
  }
  void SetUp() override {
    if (!fuse_->mounted()) GTEST_SKIP() << "no FUSE file system can be mounted here";
  }
  ~ReaderTest() override { fuse_.reset(); }  // first of all

  class Module {
   public:
    explicit Module(const ReaderTest& test) : sandbox_(Egress(test.proxy_.port())) {
      sandbox_.Supervisor(test.daemon_->socket()).Timeout(std::chrono::minutes(2));
      process_ = std::make_unique<Process>(sandbox_.Options(Attack({"stdin"})));
      EXPECT_TRUE(process_->WaitFor("ready")) << process_->err();
    }
    // Each with a word that it has not done before.
    std::string Do(const std::string& word) {
      process_->Write(word + "\n");
      EXPECT_TRUE(process_->WaitFor(word + " -> ") && Eventually([&] {
                    (void)process_->WaitFor("\n", std::chrono::milliseconds(1));
                    return process_->out().ends_with("\n");
                  })) << process_->out();
      return ResultOf(process_->out(), word);
    }
    std::string Connect(int count) { return Do("connects," + std::to_string(count) + "," + port_); }
    void On(uint16_t port) { port_ = std::to_string(port); }

   private:
    Sandbox sandbox_;
    std::unique_ptr<Process> process_;
    std::string port_;
  };
  std::unique_ptr<Module> Start() {
    auto module = std::make_unique<Module>(*this);
    module->On(proxy_.port());
    return module;
  }
  std::unique_ptr<Process> Stalling(const std::string& word) {
    stalling_ = std::make_unique<Sandbox>(Egress(proxy_.port()) + ",\"rd\":[\"" + mount_point_ + "\"]");
    stalling_->Supervisor(daemon_->socket()).Timeout(std::chrono::minutes(2));
    return std::make_unique<Process>(stalling_->Options({StallerPath(), word}));
  }
  [[nodiscard]] std::vector<pid_t> Readers() const { return ChildrenOf(daemon_->pid()); }

  TemporaryDirectory directory_;
  std::string mount_point_;
  TcpServer proxy_;
  std::unique_ptr<Daemon> daemon_;
  std::unique_ptr<Sandbox> stalling_;
  std::unique_ptr<StalledFuse> fuse_;
};

TEST_F(ReaderTest, OneThatIsKilledIsStartedAnew) {
  auto module = Start();
  EXPECT_EQ(module->Connect(3), "0:3");
  std::vector<pid_t> readers = Readers();
  ASSERT_EQ(readers.size(), 1U);
  EXPECT_EQ(ReadWholeFile("/proc/" + std::to_string(readers[0]) + "/comm"), "oarlock-reader\n");
  const pid_t first = readers[0];
  ASSERT_EQ(::kill(first, SIGKILL), 0);
  EXPECT_TRUE(Eventually([&] { return StateOf(first) == '-'; })) << "a child that nobody waits for";
  EXPECT_EQ(module->Connect(4), "0:4");
  readers = Readers();
  ASSERT_EQ(readers.size(), 1U);
  EXPECT_NE(readers[0], first);
  // Again at once: refused until a second has gone by, and then served.
  ASSERT_EQ(::kill(readers[0], SIGKILL), 0);
  int round = 5;
  EXPECT_TRUE(Eventually([&] {
    const std::string seen = module->Connect(round++);
    EXPECT_EQ(CountOf(seen, "0") + CountOf(seen, "EACCES"), round - 1) << seen;
    return CountOf(seen, "EACCES") == 0;
  }));
}

TEST_F(ReaderTest, HoldsNothingOfItsSupervisors) {
  auto module = Start();
  const std::vector<pid_t> readers = Readers();
  ASSERT_EQ(readers.size(), 1U);
  const std::string self = "/proc/" + std::to_string(readers[0]);
  std::vector<std::string> held;
  for (const auto& fd : std::filesystem::directory_iterator(self + "/fd")) held.push_back(std::filesystem::read_symlink(fd.path()));
  std::ranges::sort(held);
  ASSERT_EQ(held.size(), 4U);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(held[i], "/dev/null");
  EXPECT_TRUE(held[3].starts_with("socket:")) << held[3];
  EXPECT_EQ(ReadWholeFile(self + "/environ"), "");
  const std::string status = ReadWholeFile(self + "/status");
  // libc ignores 32 and 33 in what it starts, which are its own.
  EXPECT_NE(status.find("SigBlk:\t0000000000000000\nSigIgn:\t0000000180000000"), std::string::npos) << status;
}

TEST_F(ReaderTest, AHundredSessionsLeaveNoProcessBehind) {
  (void)Start()->Connect(1);
  ASSERT_TRUE(Eventually([&] { return Readers().empty(); }));
  ASSERT_TRUE(Eventually([&] {
    const size_t before = daemon_->Descriptors();
    ::usleep(100'000);
    return daemon_->Descriptors() == before;
  }));
  const size_t before = daemon_->Descriptors();
  for (int round = 0; round < 10; ++round) {
    std::vector<std::unique_ptr<Module>> modules;
    for (int i = 0; i < 10; ++i) modules.push_back(Start());
    EXPECT_EQ(Readers().size(), 10U);
    for (const auto& module : modules) EXPECT_EQ(module->Connect(1), "0:1");
    modules.clear();
    EXPECT_TRUE(Eventually([&] { return Readers().empty(); })) << Readers().size() << " are left";
  }
  EXPECT_TRUE(Eventually([&] { return daemon_->Descriptors() <= before; })) << daemon_->Descriptors() << " descriptors after " << before;
}

// As with the file whose close waits: what is no socket is answered as the kernel answers it, and bad addresses too.
TEST_F(ReaderTest, SameAnswersAsWithoutOne) {
  Sandbox sandbox(Egress(proxy_.port()));
  sandbox.Supervisor(daemon_->socket());
  const std::string port = std::to_string(proxy_.port());
  const std::pair<const char*, const char*> cases[] = {
      {"badconnect,77,127.0.0.1,", "EBADF"}, {"badconnect,77,127.0.0.2,", "EBADF"},     {"badconnect,-1,127.0.0.2,", "EBADF"},
      {"badconnect,0,127.0.0.1,", "ENOTSOCK"}, {"badconnect,0,127.0.0.2,", "ENOTSOCK"},
  };
  std::vector<std::string> words = {"pointer,2,8", "tcp,127.0.0.1," + port};
  for (const auto& [word, errno_name] : cases) words.push_back(word + port);
  const Outcome outcome = sandbox.Probe(words);
  EXPECT_EQ(ResultOf(outcome, "pointer,2,8"), "EFAULT") << outcome.out << outcome.err;
  EXPECT_TRUE(ResultOf(outcome, "tcp,127.0.0.1," + port).starts_with("0 "));
  for (const auto& [word, errno_name] : cases) EXPECT_EQ(ResultOf(outcome, word + port), errno_name) << word;
}

TEST_F(ReaderTest, E206_ASupervisorThatIsKilledWhileOneHangs) {
  auto other = Start();
  EXPECT_EQ(other->Connect(1), "0:1");
  const std::vector<pid_t> before = Readers();
  fuse_->StallReads();
  auto attacker = Stalling("page," + fuse_->file() + "," + std::to_string(proxy_.port()));
  ASSERT_TRUE(attacker->WaitFor("attacking")) << attacker->err();
  ASSERT_TRUE(Eventually([&] { return fuse_->stalled() > 0; })) << "nobody has asked for the page";
  pid_t hanging = -1;
  for (const pid_t reader : Readers())
    if (std::ranges::find(before, reader) == before.end()) hanging = reader;
  ASSERT_GT(hanging, 0);
  // The control: not even SIGKILL ends who hangs there.
  ASSERT_EQ(::kill(hanging, SIGKILL), 0);
  EXPECT_TRUE(Eventually([&] { return StateOf(hanging) == 'D'; })) << StateOf(hanging);
  ::usleep(300'000);
  EXPECT_EQ(StateOf(hanging), 'D');
  EXPECT_EQ(other->Connect(2), "0:2");

  daemon_->process().Signal(SIGKILL);
  EXPECT_TRUE(Eventually([&] { return !daemon_->process().Running(); }, std::chrono::seconds(1)));
  EXPECT_FALSE(Gone(hanging));
  EXPECT_EQ(CountOf(other->Connect(3), "socket:ENOSYS"), 3);
  fuse_.reset();
  EXPECT_TRUE(Eventually([&] { return Gone(hanging); }));
}

// Sent from a page that does not come, with the socket's lock held: whoever connects it then waits for the page.
TEST_F(ReaderTest, E69_E206_SocketWhoseLockIsHeldForGood) {
  auto other = Start();
  fuse_->StallReads();
  auto attacker = Stalling("holds," + fuse_->file() + "," + std::to_string(proxy_.port()));
  ASSERT_TRUE(attacker->WaitFor("attacking")) << attacker->err();
  ASSERT_TRUE(Eventually([&] { return fuse_->stalled() > 0; })) << "nobody has asked for the page";
  EXPECT_EQ(other->Connect(2), "0:2");
  EXPECT_TRUE(attacker->WaitFor("connected: EACCES\n", std::chrono::seconds(5))) << attacker->out();
  daemon_->process().Signal(SIGKILL);
  EXPECT_TRUE(Eventually([&] { return !daemon_->process().Running(); }, std::chrono::seconds(1)));
  EXPECT_EQ(CountOf(other->Connect(3), "socket:ENOSYS"), 3);
  fuse_.reset();
}

}  // namespace
}  // namespace oarlock::test
