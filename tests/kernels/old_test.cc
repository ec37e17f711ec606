// SPDX-License-Identifier: Apache-2.0
// What older kernels need: below 6.9 there is no descriptor of a thread, so all threads of a process must share one table of
// descriptors; below Landlock ABI 3 truncation by path is refused. Everywhere else nothing of this is in the way. Each test
// asks the kernel what holds and then expects exactly that.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>

#include "tests/kernels/support.h"

namespace oarlock::test {
namespace {

constexpr uid_t kNobody = 65534;

class OldKernelTest : public testing::TestWithParam<uid_t> {
 protected:
  OldKernelTest() {
    for (const char* name : {"ro", "rw"}) (void)places_.MakeDirectory(name, 0777);
    (void)places_.MakeDirectory("agent");
    broker_ = std::make_unique<UnixServer>(broker_path_);
    sandbox_ = std::make_unique<Sandbox>(Egress(proxy_.port()) + "," + Broker(broker_path_) + ",\"rw\":[\"" + (places_ / "rw") + "\"],\"roots\":[{\"path\":\"" + (places_ / "ro") +
                                         "\",\"rights\":[\"read_file\",\"read_dir\"]}]");
    sandbox_->Timeout(std::chrono::seconds(60));
    if (GetParam() != 0) sandbox_->As(GetParam());
  }
  [[nodiscard]] Outcome Attack(std::vector<std::string> words) const {
    words.insert(words.begin(), KernelsAttackerPath());
    return sandbox_->Run(words);
  }
  [[nodiscard]] Outcome Bare(std::vector<std::string> words) const {
    words.insert(words.begin(), KernelsAttackerPath());
    return sandbox_->RunBare(words);
  }
  std::string File(const std::string& name) const { return places_.WriteFile(name, "text", 0666); }
  [[nodiscard]] uint64_t Denied(const std::string& call) const {
    uint64_t count = 0;
    for (const LogLine& line : sandbox_->Log())
      if (line.kind == "DENY" && line.code == "SYSCALL_DENIED" && line.call == call) count += line.count;
    return count;
  }
  TemporaryDirectory places_;
  std::string broker_path_ = places_ / "agent/broker.sock";
  TcpServer proxy_, other_;
  std::unique_ptr<UnixServer> broker_;
  std::unique_ptr<Sandbox> sandbox_;
};

TEST_P(OldKernelTest, FilesThreadsAndNetworkWork) {
  const std::string threads = "threads,16," + std::to_string(proxy_.port());
  const std::string tcp = "tcp,127.0.0.1," + std::to_string(proxy_.port()), other = "tcp,127.0.0.1," + std::to_string(other_.port());
  EXPECT_EQ(ResultOf(Attack({threads}), threads), "16");
  const Outcome outcome = sandbox_->Probe({tcp, "unix," + broker_path_, other, "write," + (places_ / "rw/new"), "read," + File("ro/file"), "fork", "write," + (places_ / "ro/new")});
  EXPECT_EQ(ResultOf(outcome, tcp), "0 hello");
  EXPECT_EQ(ResultOf(outcome, "unix," + broker_path_), "0 hello");
  EXPECT_EQ(ResultOf(outcome, other), "EACCES");
  EXPECT_EQ(ResultOf(outcome, "write," + (places_ / "rw/new")), "0");
  EXPECT_EQ(ResultOf(outcome, "read," + (places_ / "ro/file")), "0 text");
  EXPECT_EQ(ResultOf(outcome, "fork"), "0");
  EXPECT_EQ(ResultOf(outcome, "write," + (places_ / "ro/new")), "EACCES");
  EXPECT_EQ(other_.connections(), 0);
  EXPECT_EQ(proxy_.connections(), 17);
  const auto peers = broker_->peers();
  ASSERT_EQ(peers.size(), 1U);
  EXPECT_EQ(peers[0].uid, GetParam());
}

// A real interpreter with threads of libc's making, which clone in the ordinary way.
TEST_P(OldKernelTest, PythonsThreadsReachTheProxy) {
  const std::string python = FindInstalled("python3");
  if (python.empty()) GTEST_SKIP() << "needs python3";
  const Outcome outcome = sandbox_->Run({python, "-c", R"(
import socket, sys, threading
got = []
def work():
  with socket.create_connection(('127.0.0.1', int(sys.argv[1]))) as s: got.append(s.recv(5))
threads = [threading.Thread(target=work) for _ in range(8)]
for t in threads: t.start()
for t in threads: t.join()
with open(sys.argv[2], 'w') as f: f.write('longer')
with open(sys.argv[2], 'w') as f: f.write('ok')
print(len(got), set(got), open(sys.argv[2]).read())
)", std::to_string(proxy_.port()), places_ / "rw/text"});
  EXPECT_EQ(outcome.out, "8 {b'hello'} ok\n") << outcome.err;
}

TEST_P(OldKernelTest, AThreadWithATableOfItsOwn) {
  const bool lacks = !KernelHasThreadPidfd();
  const Outcome outcome = Attack({"owntable,clone", "owntable,closerange"});
  for (const char* word : {"owntable,clone", "owntable,closerange"}) {
    EXPECT_EQ(ResultOf(outcome, word), lacks ? "EPERM" : "0") << word;
    EXPECT_EQ(ResultOf(Bare({word}), word), "0") << "the twin of " << word;
  }
  EXPECT_EQ(Denied("clone"), lacks ? 1U : 0U);
  EXPECT_EQ(Denied("close_range"), lacks ? 1U : 0U);
}

// The leader stands for its threads there, and a dead one has no descriptors to look at.
TEST_P(OldKernelTest, AThreadWhoseLeaderIsDead) {
  const std::string word = "deadleader/to,127.0.0.1," + std::to_string(proxy_.port());
  const Outcome inside = sandbox_->Run({AttackerPath(), word});
  EXPECT_EQ(ResultOf(inside, word), KernelHasThreadPidfd() ? "0" : "EACCES") << inside.err;
  EXPECT_EQ(proxy_.connections(), KernelHasThreadPidfd() ? 1 : 0);
  if (!KernelHasThreadPidfd()) EXPECT_EQ(std::ranges::count(sandbox_->Log(), "DENY", &LogLine::kind), 1);
  const Outcome bare = sandbox_->RunBare({AttackerPath(), word});
  EXPECT_EQ(ResultOf(bare, word), "0") << "the twin";
}

TEST_P(OldKernelTest, TruncationOfWhatMayOnlyBeRead) {
  // Access mode 3 is for neither reading nor writing.
  const std::vector<std::string> words = {"opentrunc," + File("ro/a"), "truncate," + File("ro/b"), "truncatehandle," + File("ro/c"), "openneither," + File("ro/d")};
  const Outcome outcome = Attack(words);
  for (const std::string& word : words) EXPECT_EQ(ResultOf(outcome, word), "EACCES") << word;
  for (const char* name : {"a", "b", "c", "d"}) EXPECT_EQ(ReadWholeFile(places_ / ("ro/" + std::string(name))), "text");
  const Outcome bare = Bare(words);
  for (const std::string& word : words) EXPECT_EQ(ResultOf(bare, word), "0") << "the twin of " << word;
  for (const char* name : {"a", "b", "c", "d"}) EXPECT_EQ(ReadWholeFile(places_ / ("ro/" + std::string(name))), "");
}

// Where Landlock cannot tell one file from the other, the filter refuses it everywhere, and the log says so.
TEST_P(OldKernelTest, TruncationOfWhatMayBeWritten) {
  const bool lacks = KernelLandlockAbi() < 3;
  const std::string words[] = {"opentrunc," + File("rw/a"), "truncate," + File("rw/b")};
  const Outcome outcome = Attack({words[0], words[1]});
  for (const std::string& word : words) EXPECT_EQ(ResultOf(outcome, word), lacks ? "EACCES" : "0") << word;
  EXPECT_EQ(Denied("open") + Denied("openat"), lacks ? 1U : 0U);
  EXPECT_EQ(Denied("truncate"), lacks ? 1U : 0U);
  // With the right to write, everybody's way to empty a file works on all kernels.
  const std::string file = File("rw/c");
  EXPECT_EQ(ResultOf(sandbox_->Probe({"open," + file + ",0x201"}), "open," + file + ",0x201"), "0");
  EXPECT_EQ(ReadWholeFile(file), "");
}

INSTANTIATE_TEST_SUITE_P(Users, OldKernelTest, testing::Values(0, kNobody), [](const auto& row) { return row.param == 0 ? "Root" : "Nobody"; });

}  // namespace
}  // namespace oarlock::test
