// SPDX-License-Identifier: Apache-2.0
// A launch is all or nothing, whichever of its system calls fails and how: exit 70 with one line and no module, or, where a call
// decides nothing about confinement and is named for it in named.cc, a module that finds itself confined in full.
#include <gtest/gtest.h>
#include <unistd.h>

#include <map>
#include <set>
#include <sstream>
#include <thread>

#include "tests/faults/matrix.h"
#include "tests/support/scale.h"

namespace oarlock::test::faults {
namespace {

constexpr const char* kErrors[] = {"EPERM", "EACCES", "ENOSYS", "EINVAL", "ENOMEM", "EMFILE", "EINTR"};

// The launcher's own start by root, with a node supervisor and another identity for the module.
World Node() { return {"node supervisor", R"("run_as":{"uid":65534,"gid":65534})", {}}; }
// Root stays root, leads its terminal's session, and starts its supervisor itself. Fewer roots, so that the run is short.
World Private() { return {"private supervisor", R"("base_system":false)", {"leader"}, "leader", 0, true, true}; }
// A user without capabilities.
World Unprivileged() { return {"unprivileged", R"("base_system":false)", {"uid=65534"}, "yes", 65534, false}; }

class FaultMatrix : public ::testing::Test {
 protected:
  void SetUp() override {
    if (::getuid() != 0) GTEST_SKIP() << "needs root, for a state that the launcher has to undo";
    if (::access("/usr/bin/strace", X_OK) != 0) GTEST_SKIP() << "strace is not installed";
  }
  static size_t Workers() { return std::max(2U, std::thread::hardware_concurrency()); }
  // Every tenth at OARLOCK_SCALE=0.1; seven errors a call, so that all of them come up.
  static std::vector<Case> Selected(const std::vector<Case>& cases) {
    const long wanted = Scaled(static_cast<long>(cases.size()));
    const size_t step = std::max<size_t>(1, cases.size() / static_cast<size_t>(wanted));
    std::vector<Case> selected;
    for (size_t i = 0; i < cases.size(); i += step) selected.push_back(cases[i]);
    return selected;
  }
  static void Errors(const World& world) {
    Matrix matrix(world, Workers());
    const auto calls = matrix.Calls();
    if (HasFailure()) return;
    std::vector<Case> cases;
    for (const Call& call : calls)
      for (const char* error : kErrors) cases.push_back({call, std::string("error=") + error});
    matrix.Run(Selected(cases));
    EXPECT_EQ(matrix.forbidden_connections(), 0);
  }
  static void Pretences(const World& world) {
    // Memory that is said to be there is the C library's to use, and it does.
    const std::set<std::string> memory = {"brk", "mmap", "munmap", "mprotect", "mremap"};
    // What a look-up in the preparation leaves in memory says what there is, and no filter can write it.
    const std::set<std::string> look_ups = {"newfstatat", "readlink", "read", "pread64", "getdents64", "lseek"};
    Matrix matrix(world, Workers());
    const auto calls = matrix.Calls();
    if (HasFailure()) return;
    std::vector<Case> cases;
    for (const Call& call : calls)
      if (!call.at_start && !memory.contains(call.name) && (call.confining || !look_ups.contains(call.name))) cases.push_back({call, "retval=0"});
    matrix.Run(Selected(cases));
    EXPECT_EQ(matrix.forbidden_connections(), 0);
  }
};

std::map<std::string, std::string> Facts(const std::string& text, const std::string& kind) {
  std::map<std::string, std::string> facts;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);)
    if (const size_t arrow = line.find(" -> "); line.starts_with(kind + " ") && arrow != std::string::npos)
      facts[line.substr(kind.size() + 1, arrow - kind.size() - 1)] = line.substr(arrow + 4);
  return facts;
}

// What every case is compared with, and its twin: nothing that is refused inside is refused outside in the same way.
TEST_F(FaultMatrix, AWholeLaunchIsConfined) {
  for (const World& world : {Node(), Private(), Unprivileged()}) {
    SCOPED_TRACE(world.name);
    Matrix matrix(world, 1);
    (void)matrix.Calls();
    auto state = Facts(matrix.whole(), "state");
    for (const char* set : {"CapInh", "CapPrm", "CapEff", "CapAmb", "SigBlk", "SigPnd", "ShdPnd"}) EXPECT_EQ(state[set], "0000000000000000") << set;
    if (world.uid == 0) EXPECT_EQ(state["CapBnd"], "0000000000000000");
    if (world.uid == 0) EXPECT_EQ(state["Groups"], "");
    EXPECT_EQ(state["NoNewPrivs"], "1");
    EXPECT_EQ(state["Seccomp"], "2");
    EXPECT_EQ(state["Seccomp_filters"], "1");
    EXPECT_EQ(state["terminal"], "0");
    EXPECT_EQ(state["session"], "own");
    EXPECT_EQ(state["personality"], "00000000");
    EXPECT_EQ(state["children"], "ECHILD");
    EXPECT_EQ(state["limit 4"], "0 0");
    EXPECT_EQ(state["limit 7"], "512 512");
    std::string descriptors;
    for (const auto& [name, value] : state)
      if (name.starts_with("fd ")) descriptors += name.substr(2);
    EXPECT_EQ(descriptors, " 0 1 2 9");
    for (const auto& [name, value] : Facts(matrix.whole(), "grant")) EXPECT_TRUE(value == "0" || !name.starts_with("connect")) << name << " " << value;
    EXPECT_EQ(matrix.forbidden_connections(), 0);

    auto bare = Facts(matrix.Bare(), "deny");
    const auto denied = Facts(matrix.whole(), "deny");
    EXPECT_GT(denied.size(), 25U);
    // What a machine may not have, or may refuse to anyone.
    const std::set<std::string> absent = {"memory device", "terminal", "memory of the parent", "ptrace", "sethostname", "keyctl", "unshare", "raw socket", "packet socket"};
    for (const auto& [name, value] : denied) {
      EXPECT_NE(value, "0") << name;
      if (!absent.contains(name)) EXPECT_NE(value, bare[name]) << name;
    }
    EXPECT_EQ(matrix.forbidden_connections(), 3) << "the twin's";
  }
}

TEST_F(FaultMatrix, NodeErrors) { Errors(Node()); }
TEST_F(FaultMatrix, PrivateErrors) { Errors(Private()); }
TEST_F(FaultMatrix, UnprivilegedErrors) { Errors(Unprivileged()); }
TEST_F(FaultMatrix, NodePretences) { Pretences(Node()); }
TEST_F(FaultMatrix, PrivatePretences) { Pretences(Private()); }

}  // namespace
}  // namespace oarlock::test::faults
