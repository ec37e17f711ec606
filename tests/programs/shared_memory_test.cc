// SPDX-License-Identifier: Apache-2.0
// The policy's `shm`: what it opens, what it does not, and what the report then says (E-137).
#include <gtest/gtest.h>
#include <unistd.h>

#include "notif/json.h"
#include "tests/programs/workshop.h"

namespace oarlock::test {
namespace {

constexpr const char* kHost = R"(,"shm":"host")";

// A file in /dev/shm that is gone with this object.
class Block {
 public:
  explicit Block(const std::string& what) : path_("/dev/shm/oarlock-test-" + what + "-" + std::to_string(::getpid())) {}
  ~Block() { (void)::unlink(path_.c_str()); }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  [[nodiscard]] const std::string& path() const noexcept { return path_; }

 private:
  std::string path_;
};

class SharedMemory : public testing::TestWithParam<Identity> {
 protected:
  void SetUp() override {
    if (::getuid() != 0) GTEST_SKIP() << "run_as needs root";
  }
};

INSTANTIATE_TEST_SUITE_P(Identities, SharedMemory, testing::ValuesIn(kIdentities), [](const auto& test) { return Name(test.param); });

// Python says what it was not given, and where.
TEST_P(SharedMemory, E137_NoneRefusesEverySort) {
  const Workshop none(GetParam(), "", ""), host(GetParam(), "", kHost);
  const std::vector<std::string> argv = {"/usr/bin/python3", "-c", R"(
import concurrent.futures, multiprocessing, multiprocessing.shared_memory
def attempt(name, what):
    try:
        print(name, what())
    except PermissionError as error:
        print(name, type(error).__name__, error)
def pool():
    with multiprocessing.Pool(2) as pool: return pool.map(abs, [-1, 2])
def queue():
    queue = multiprocessing.Queue()
    queue.put(1)
    return queue.get()
def block():
    block = multiprocessing.shared_memory.SharedMemory(create=True, size=16)
    block.close()
    block.unlink()
    return "made"
def executor():
    with concurrent.futures.ProcessPoolExecutor(2) as executor: return list(executor.map(abs, [-1, 2]))
attempt("pool", pool)
attempt("queue", queue)
attempt("block", block)
attempt("executor", executor)
)"};
  const Outcome refused = none.Inside(argv);
  EXPECT_EQ(refused.code, 0) << refused.err;
  EXPECT_NE(refused.out.find("pool PermissionError [Errno 13] Permission denied\n"), std::string::npos) << refused.out;
  EXPECT_NE(refused.out.find("queue PermissionError [Errno 13] Permission denied\n"), std::string::npos) << refused.out;
  EXPECT_NE(refused.out.find("block PermissionError [Errno 13] Permission denied: '/psm_"), std::string::npos) << refused.out;
  EXPECT_NE(refused.out.find("executor PermissionError [Errno 13] Permission denied\n"), std::string::npos) << refused.out;
  EXPECT_LT(refused.seconds, host.Inside(argv).seconds + 2.0);

  const std::string all = "pool [1, 2]\nqueue 1\nblock made\nexecutor [1, 2]\n";
  const Outcome allowed = host.Inside(argv), bare = none.Outside(argv);
  EXPECT_EQ(allowed.out, all) << allowed.err;
  EXPECT_EQ(bare.out, all) << bare.err;
  EXPECT_TRUE(none.Denials().empty() && host.Denials().empty());
}

// It is the host's own: what the module puts there, others find, and the other way round. Its files remain theirs.
TEST_P(SharedMemory, E137_HostIsShared) {
  const Workshop none(GetParam(), "", ""), host(GetParam(), "", kHost);
  const Block theirs("theirs-" + Name(GetParam())), ours("ours-" + Name(GetParam()));
  ASSERT_EQ(RunProcess({.argv = {"/bin/sh", "-c", "echo outside >" + ours.path()}}).code, 0);
  const std::vector<std::string> argv = {"/bin/sh", "-c", "cat " + ours.path() + "; echo inside >" + theirs.path()};
  const Outcome refused = none.Inside(argv);
  EXPECT_EQ(refused.out, "");
  EXPECT_NE(refused.err.find("Permission denied"), std::string::npos) << refused.err;
  EXPECT_NE(::access(theirs.path().c_str(), F_OK), 0);
  const Outcome allowed = host.Inside(argv);
  EXPECT_EQ(allowed.out, "outside\n") << allowed.err;
  EXPECT_EQ(ReadWholeFile(theirs.path()), "inside\n");

  // Not a way to the rest of /dev, nor up from it.
  const Outcome beside = host.Inside({"/bin/sh", "-c", "ls /dev/shm/.. ; echo >/dev/shm/../oarlock-test"});
  EXPECT_EQ(beside.out, "");
  EXPECT_NE(beside.code, 0);
}

// A writable place that programs cannot be started from, also where the workspace's may be.
TEST_P(SharedMemory, E140_NoExecution) {
  const Block block("program-" + Name(GetParam()));
  const std::string start = "cp /bin/true " + block.path() + " && chmod +x " + block.path() + " && " + block.path() + "; code=$?; rm " +
                            block.path() + "; exit $code";
  for (const char* more : {R"(,"shm":"host")", R"(,"shm":"host","exec_rw":true)"}) {
    const Workshop host(GetParam(), "", more);
    const Outcome refused = host.Inside({"/bin/sh", "-c", start});
    EXPECT_EQ(refused.code, 126) << more << refused.err;
    EXPECT_NE(refused.err.find("Permission denied"), std::string::npos) << refused.err;
  }
  // Where the host mounts it noexec, the twin shows nothing: no sandbox is needed there.
  const Outcome bare = Workshop(GetParam(), "", "").Outside({"/bin/sh", "-c", start});
  if (bare.code == 126) GTEST_SKIP() << "/dev/shm is mounted noexec here";
  EXPECT_EQ(bare.code, 0) << bare.err;
}

// What all processes share is not enforced to be the module's own.
TEST_P(SharedMemory, TheReportSaysSo) {
  const TemporaryDirectory places;
  struct Case {
    std::string policy, ipc, why;
  };
  for (const Case& expected : {Case{"", "enforced", ""}, Case{kHost, "unavailable", "the policy sets shm to host: all processes share /dev/shm"},
                               Case{R"(,"sysv_ipc":true)", "unavailable", "the policy sets sysv_ipc"}}) {
    const Workshop shop(GetParam(), "", expected.policy + R"(,"report":")" + (places / "report.json") + R"(")");
    EXPECT_EQ(shop.Inside({"/bin/true"}).code, 0);
    std::string problem;
    const Json report = ParseStrictJson(ReadWholeFile(places / "report.json"), &problem);
    ASSERT_EQ(problem, "");
    EXPECT_EQ(report["enforcement"]["ipc"], expected.ipc) << expected.policy;
    EXPECT_EQ(report["reasons"].value("ipc", ""), expected.why) << expected.policy;
    EXPECT_EQ(report["enforcement"]["filesystem"], "enforced") << expected.policy;

    const Workshop strict(GetParam(), "", expected.policy + R"(,"require":["ipc"])");
    const Outcome required = strict.Inside({"/bin/echo", "started"});
    EXPECT_EQ(required.code, expected.why.empty() ? 0 : 70) << required.err;
    EXPECT_EQ(required.out, expected.why.empty() ? "started\n" : "");
    if (!expected.why.empty()) EXPECT_NE(required.err.find("K_REQUIRED"), std::string::npos) << required.err;
  }
}

// Asked for and not there: no launch, rather than a module without it.
TEST_P(SharedMemory, WhereThereIsNone) {
  const Workshop host(GetParam(), "", kHost), none(GetParam(), "", "");
  const auto without = [](const Workshop& shop) {
    ProcessOptions options = shop.InsideOptions({"/bin/echo", "started"});
    options.argv.insert(options.argv.begin(), {"/usr/bin/unshare", "-m", "/bin/sh", "-c", "mount -t tmpfs none /dev && mknod -m 666 /dev/null c 1 3 && exec \"$@\"", "sh"});
    return RunProcess(options);
  };
  const Outcome refused = without(host);
  EXPECT_EQ(refused.code, 70) << refused.err;
  EXPECT_NE(refused.err.find("P_PATH /shm"), std::string::npos) << refused.err;
  EXPECT_EQ(refused.out, "");
  const Outcome started = without(none);
  EXPECT_EQ(started.out, "started\n") << started.err;
}

}  // namespace
}  // namespace oarlock::test
