// SPDX-License-Identifier: Apache-2.0
// Addresses in memory that is not there, half there or must not be read, and callers that cannot be looked at. A failure to read
// is never a reason to let a call go on (E-76, E-105).
#include "tests/hostile/support.h"

namespace oarlock::test {
namespace {

class Memory : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Hostile, Memory,
                         testing::Values("end", "half", "lastbyte", "longhalf", "cross", "none", "halfnone", "readonly", "unmapped", "null", "kernel",
                                         "noncanonical", "wrap", "shared", "file", "beyondfile", "crossfile"),
                         [](const auto& row) { return std::string(row.param); });

// The kernel's own answer is ours, as root and as uid 65534.
TEST_P(Memory, E105_AnswersAsTheKernelDoes) {
  TcpServer proxy;
  const TemporaryDirectory directory;
  const std::string work = directory.MakeDirectory("work", 0777);
  const std::string word = std::string("memory,") + GetParam() + "," + std::to_string(proxy.port());
  for (const bool nobody : {false, true}) {
    SCOPED_TRACE(nobody ? "uid 65534" : "root");
    Sandbox sandbox(Egress(proxy.port()) + ",\"rw\":[\"" + work + "\"]" + (nobody ? ",\"run_as\":{\"uid\":65534,\"gid\":65534}" : ""));
    const int before = proxy.connections();
    ProcessOptions options = sandbox.Options(Attack({word}));
    options.directory = work;
    const std::string inside = ResultOf(RunProcess(options), word);
    options.argv = Attack({word});
    const std::string bare = ResultOf(RunProcess(options), word);
    EXPECT_EQ(inside, bare);
    EXPECT_TRUE(bare == "0" || bare == "EFAULT") << bare;
    EXPECT_TRUE(Eventually([&] { return proxy.connections() == before + (inside == "0") + (bare == "0"); }));
    EXPECT_EQ(Refusals(sandbox.Log(), "ADDR_INVALID"), inside == "EFAULT" ? 1U : 0U);
  }
}

// A page whose reader waits for the attacker: the descriptor that could make one is not to be had.
TEST(Caller, E77_E163_UserfaultfdIsRefused) {
  Sandbox sandbox;
  const std::vector<std::string> words = {"uffd,call,0", "uffd,call,1", "uffd,device"};
  const Outcome inside = sandbox.Run(Attack(words)), bare = sandbox.RunBare(Attack(words));
  EXPECT_EQ(ResultOf(inside, words[0]), "EPERM");
  EXPECT_EQ(ResultOf(inside, words[1]), "EPERM");
  EXPECT_NE(ResultOf(inside, words[2]), "0");
  EXPECT_EQ(ResultOf(bare, words[0]), "0") << "the twin";
}

// A supervisor of the caller's own user may not look into a process that is not dumpable: nothing passes. One with the
// capability may, and all goes on.
TEST(Caller, E79_NotDumpable) {
  TcpServer proxy, other;
  const std::vector<std::string> words = {"dumpable,0", "to,127.0.0.1," + std::to_string(proxy.port()), "to,127.0.0.1," + std::to_string(other.port())};
  Sandbox weak(Egress(proxy.port()));
  weak.As(65534);
  const Outcome refused = weak.Run(Attack(words));
  EXPECT_EQ(ResultOf(refused, words[0]), "0") << refused.err;
  EXPECT_EQ(ResultOf(refused, words[1]), "EACCES");
  EXPECT_EQ(ResultOf(refused, words[2]), "EACCES");
  ::usleep(50'000);
  EXPECT_EQ(proxy.connections() + other.connections(), 0);
  EXPECT_EQ(Refusals(weak.Log(), "ADDR_UNREADABLE"), 2U);

  Sandbox strong(Egress(proxy.port()) + ",\"run_as\":{\"uid\":65534,\"gid\":65534}");
  const Outcome served = strong.Run(Attack(words));
  EXPECT_EQ(ResultOf(served, words[1]), "0") << served.out << served.err;
  EXPECT_EQ(ResultOf(served, words[2]), "EACCES");
  EXPECT_TRUE(Eventually([&] { return proxy.connections() == 1; }));
  EXPECT_EQ(other.connections(), 0);
  const Outcome bare = strong.RunBare(Attack(words));
  EXPECT_EQ(ResultOf(bare, words[2]), "0") << "the twin";
  EXPECT_TRUE(Eventually([&] { return other.connections() == 1; }));
}

}  // namespace
}  // namespace oarlock::test
