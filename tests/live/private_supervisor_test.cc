// SPDX-License-Identifier: Apache-2.0
// A private supervisor that cannot be started, and what killed ones have left behind.
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <optional>
#include <set>

#include "tests/live/bad_input_support.h"
#include "tests/support/sandbox.h"

namespace oarlock::test {
namespace {

constexpr uid_t kNobody = 65534;

// --- one that cannot be started ----------------------------------------------------------------------------

// An installation of its own, of which a part is damaged.
class StartTest : public MarkerTest {
 protected:
  StartTest() {
    for (const char* name : {"prefix", "prefix/bin", "prefix/libexec", "prefix/libexec/oarlock"}) (void)t_.MakeDirectory(name);
    std::filesystem::copy_file(OarlockPath(), t_ / "prefix/bin/oarlock");
    std::filesystem::copy_file(CliPath(), t_ / "prefix/libexec/oarlock/oarlock-cli");
    Install(OARLOCK_BINARY_DIR "/libexec/oarlock/oarlock-private");
  }
  [[nodiscard]] std::string Program() const { return t_ / "prefix/libexec/oarlock/oarlock-private"; }
  void Install(const std::string& file) const {
    std::filesystem::copy_file(file, Program(), std::filesystem::copy_options::overwrite_existing);
  }
  [[nodiscard]] ProcessOptions Launch(std::optional<uid_t> uid, bool run = false) const {
    ProcessOptions options = WithPolicy(Good());
    options.argv[0] = t_ / "prefix/bin/oarlock";
    if (run) {
      options.argv[1] = "run";
      options.argv.insert(options.argv.begin() + 2, "--policy");
    }
    options.uid = uid;
    const std::string state = "state-" + std::to_string(uid.value_or(0));
    if (!std::filesystem::exists(t_ / state)) (void)t_.MakeDirectory(state, 0755, uid.value_or(0), uid.value_or(0));
    options.environment["XDG_STATE_HOME"] = t_ / state;
    return options;
  }
  void ExpectNotStarted(const std::string& part) const {
    for (const std::optional<uid_t> uid : {std::optional<uid_t>(), std::optional<uid_t>(kNobody)}) {
      SCOPED_TRACE(uid ? "another user" : "root");
      ExpectStopped(RunProcess(Launch(uid)), 70, "K_NOTIFY ", part);
      const Outcome outcome = RunProcess(Launch(uid, true));
      EXPECT_EQ(outcome.code, 125);
      EXPECT_FALSE(Ran(outcome));
      EXPECT_EQ(std::ranges::count(outcome.err, '\n'), 1) << outcome.err;
      EXPECT_NE(outcome.err.find(part), std::string::npos) << outcome.err;
    }
  }
};

TEST_F(StartTest, AWholeInstallationRuns) {
  for (const std::optional<uid_t> uid : {std::optional<uid_t>(), std::optional<uid_t>(kNobody)})
    for (const bool run : {false, true}) ExpectRan(RunProcess(Launch(uid, run)));
}

TEST_F(StartTest, R_MO_17_NotThere) {
  std::filesystem::remove(Program());
  ExpectNotStarted(Program() + " (the installation is incomplete): No such file or directory (ENOENT)");
}

TEST_F(StartTest, NotExecutable) {
  for (const mode_t mode : {0000, 0644}) {
    ASSERT_EQ(::chmod(Program().c_str(), mode), 0);
    ExpectNotStarted("cannot start " + Program() + ": EACCES");
  }
}

TEST_F(StartTest, NoProgramAtAll) {
  std::filesystem::remove(Program());
  (void)t_.WriteFile("prefix/libexec/oarlock/oarlock-private", "Not a program.\n", 0755);
  ExpectNotStarted("cannot start " + Program() + ": ENOEXEC");
}

TEST_F(StartTest, WithoutItsLoader) {
  std::filesystem::remove(Program());
  (void)t_.WriteFile("prefix/libexec/oarlock/oarlock-private", "#!" + (t_ / "loader") + "\n", 0755);
  ExpectNotStarted("cannot start " + Program() + ": ENOENT");
}

TEST_F(StartTest, R_MO_16_AnotherProgramInItsPlace) {
  // It starts, and answers nothing: that is said of it, and no errno of the connection.
  Install("/bin/true");
  for (const std::optional<uid_t> uid : {std::optional<uid_t>(), std::optional<uid_t>(kNobody)})
    ExpectStopped(RunProcess(Launch(uid)), 70, "K_NOTIFY ", Program() + " ended without an answer");
}

// --- what killed ones leave --------------------------------------------------------------------------------

class SweepTest : public ::testing::Test {
 protected:
  SweepTest() {
    (void)t_.MakeDirectory("runtime", 0700, kNobody, kNobody);
    (void)t_.MakeDirectory("runtime/oarlock", 0700, kNobody, kNobody);
    private_ = t_.MakeDirectory("runtime/oarlock/private", 0700, kNobody, kNobody);
    sandbox_.As(kNobody).Environment("XDG_RUNTIME_DIR", t_ / "runtime");
  }
  [[nodiscard]] std::set<std::string> Names() const {
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(private_)) names.insert(entry.path().filename());
    return names;
  }
  // A bound socket that nobody listens at, as a killed supervisor leaves it.
  void MakeDead(const std::string& name, uid_t owner = kNobody, time_t age = 0) const {
    const std::string path = private_ + "/" + name;
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    ASSERT_LT(path.size(), sizeof(address.sun_path));
    std::memcpy(address.sun_path, path.data(), path.size());
    const UniqueFd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    ASSERT_EQ(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
    ASSERT_EQ(::chown(path.c_str(), owner, owner), 0);
    const timespec times[] = {{::time(nullptr) - age, 0}, {::time(nullptr) - age, 0}};
    ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
  }
  // One launch, whose supervisor has started and gone again.
  void LaunchOnce() const {
    ASSERT_EQ(sandbox_.Run({"/bin/true"}).code, 0);
  }
  // Above any pid that Linux gives.
  static std::string NoProcess(int index) { return std::to_string(5'000'000 + index) + ".sock"; }

  TemporaryDirectory t_;
  std::string private_;
  Sandbox sandbox_;
};

TEST_F(SweepTest, AKilledOnesSocketGoesAtTheNextStart) {
  Process module(sandbox_.Options({"/bin/sh", "-c", "echo READY; exec sleep 60"}));
  ASSERT_TRUE(module.WaitFor("READY")) << module.err();
  const std::set<std::string> one = Names();
  ASSERT_EQ(one.size(), 1U);
  const pid_t supervisor = std::stoi(*one.begin());
  ASSERT_EQ(std::filesystem::read_symlink("/proc/" + std::to_string(supervisor) + "/exe"), OARLOCK_BINARY_DIR "/libexec/oarlock/oarlock-private");
  ASSERT_EQ(::kill(supervisor, SIGKILL), 0);
  ASSERT_TRUE(Eventually([&] { return ::kill(supervisor, 0) != 0; })) << "nobody waits for orphans here";
  EXPECT_EQ(Names(), one) << "what is to be swept is not there";

  Process next(sandbox_.Options({"/bin/sh", "-c", "echo READY; exec sleep 60"}));
  ASSERT_TRUE(next.WaitFor("READY")) << next.err();
  EXPECT_EQ(Names().size(), 1U);
  EXPECT_FALSE(Names().contains(*one.begin()));
  // A living one's socket stays, and it answers there.
  const std::set<std::string> living = Names();
  LaunchOnce();
  EXPECT_TRUE(Names().contains(*living.begin()));
  ProcessOptions check;
  check.argv = {OarlockPath(), "sandbox-check", std::to_string(next.pid())};
  check.environment["XDG_RUNTIME_DIR"] = t_ / "runtime";
  check.uid = kNobody;
  const Outcome checked = RunProcess(check);
  EXPECT_EQ(checked.code, 0) << checked.out << checked.err;
}

TEST_F(SweepTest, OnlyWhatAKilledOneLeaves) {
  const std::string self = std::to_string(::getpid()) + ".sock", other = std::to_string(::getppid()) + ".sock";
  MakeDead(NoProcess(1));
  MakeDead(NoProcess(2), 0);        // another user's
  MakeDead("name.sock");            // not of our naming
  MakeDead(self);                   // a living process's, which may be about to listen
  MakeDead(other, kNobody, 3600);   // a living process's, which cannot be: the number is used again
  const std::string target = t_.WriteFile("file", "kept");
  std::filesystem::create_symlink(target, private_ + "/" + NoProcess(3));
  std::filesystem::copy_file(target, private_ + "/" + NoProcess(4));
  LaunchOnce();
  ASSERT_TRUE(Eventually([&] { return Names() == std::set<std::string>{NoProcess(2), "name.sock", self, NoProcess(3), NoProcess(4)}; }))
      << ::testing::PrintToString(Names());
  EXPECT_EQ(ReadWholeFile(target), "kept");
}

TEST_F(SweepTest, SoManyAtOneStart) {
  for (int i = 0; i < 100; ++i) MakeDead(NoProcess(i));
  LaunchOnce();
  ASSERT_TRUE(Eventually([&] { return Names().size() == 36; })) << Names().size();
  LaunchOnce();
  EXPECT_TRUE(Eventually([&] { return Names().empty(); })) << Names().size();
}

}  // namespace
}  // namespace oarlock::test
