// SPDX-License-Identifier: Apache-2.0
// oarlockd itself: how it starts, where it refuses to, what it inherits, how it ends (E-208).
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "notif/json.h"
#include "tests/live/admission_support.h"
#include "tests/support/servers.h"

namespace oarlock::test {
namespace {

using Steps = std::vector<std::string>;

class DaemonTest : public ::testing::Test {
 protected:
  DaemonTest() {
    (void)t_.MakeDirectory("run");
    (void)t_.MakeDirectory("log");
  }
  [[nodiscard]] std::string socket() const { return t_ / "run/admit.sock"; }
  [[nodiscard]] std::string control() const { return t_ / "run/control.sock"; }
  [[nodiscard]] std::string log() const { return t_ / "log/audit.jsonl"; }
  [[nodiscard]] ProcessOptions Options(const Steps& more = {}) const {
    ProcessOptions options;
    options.argv = Steps{OarlockdPath(), "--socket", socket(), "--control", control(), "--log", log()} + more;
    options.timeout = std::chrono::minutes(2);
    return options;
  }
  // It comes up although `before_exec` was done to it, serves a launch, and ends as it should.
  void Works(const std::function<void()>& before_exec, const Steps& more = {}) const {
    ProcessOptions options = Options(more);
    options.before_exec = before_exec;
    Process daemon(options);
    // Its words may have nowhere to go.
    ASSERT_TRUE(Eventually([&] { return std::filesystem::exists(control()) || !daemon.Running(); }));
    ASSERT_TRUE(daemon.Running()) << daemon.Wait().err;
    Launches();
    struct stat status{};
    for (const std::string& path : {socket(), control()}) {
      ASSERT_EQ(::stat(path.c_str(), &status), 0);
      EXPECT_EQ(status.st_mode & 07777, 0600U) << path;
    }
    ASSERT_EQ(::stat(log().c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 07777, 0640U);
    EXPECT_TRUE(daemon.Running());
    Ends(daemon, SIGTERM);
    EXPECT_GE(ReadLog(log()).size(), 4U);  // each line of it parses
  }
  void Launches() const {
    Sandbox sandbox;
    sandbox.Supervisor(socket());
    const Outcome outcome = sandbox.Probe({"socket,2,1"});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(outcome.out, "socket,2,1 -> EAFNOSUPPORT\n");
  }
  void Ends(Process& daemon, int signal) const {
    daemon.Signal(signal);
    ASSERT_TRUE(Eventually([&] { return !daemon.Running(); })) << "it is deaf to signal " << signal;
    EXPECT_EQ(daemon.Wait().code, 0);
    EXPECT_FALSE(std::filesystem::exists(socket()));
    EXPECT_FALSE(std::filesystem::exists(control()));
  }
  // It ends at once with `code`, names `part`, and leaves no socket behind.
  void Fails(const ProcessOptions& options, int code, const std::string& part,
             bool sockets_stay = false) const {
    ProcessOptions limited = options;
    limited.timeout = std::chrono::seconds(20);
    const Outcome outcome = RunProcess(limited);
    EXPECT_EQ(outcome.code, code) << outcome.out << outcome.err;
    EXPECT_NE((outcome.out + outcome.err).find(part), std::string::npos) << outcome.out << outcome.err;
    if (!sockets_stay) {
      EXPECT_FALSE(std::filesystem::exists(socket()));
      EXPECT_FALSE(std::filesystem::exists(control()));
    }
  }
  TemporaryDirectory t_;
};

// --- its sockets -------------------------------------------------------------------------------------------

TEST_F(DaemonTest, EndsOnSigtermAndSigintAndTakesItsSocketsAway) {
  for (const int signal : {SIGTERM, SIGINT}) {
    Process daemon(Options());
    ASSERT_TRUE(daemon.WaitFor("ready:")) << daemon.err();
    Launches();
    Ends(daemon, signal);
  }
}

TEST_F(DaemonTest, SighupDoesNotEndIt) {
  Process daemon(Options());
  ASSERT_TRUE(daemon.WaitFor("ready:"));
  for (int i = 0; i < 10; ++i) {
    daemon.Signal(SIGHUP);
    Launches();
  }
  Ends(daemon, SIGTERM);
}

// Rotation, as logrotate does it: the old file is renamed, and the records go on in a new one of the same name.
TEST_F(DaemonTest, SighupGoesOnInANewFile) {
  Process daemon(Options());
  ASSERT_TRUE(daemon.WaitFor("ready:"));
  Launches();
  const std::string old = log() + ".1";
  std::filesystem::rename(log(), old);
  daemon.Signal(SIGHUP);
  EXPECT_TRUE(Eventually([&] { return std::filesystem::exists(log()); }));
  const auto before = std::filesystem::file_size(log());
  Launches();
  EXPECT_TRUE(Eventually([&] { return std::filesystem::file_size(log()) > before; }));
  EXPECT_NE(ReadWholeFile(log()).find("LOG_REOPENED"), std::string::npos);
  EXPECT_NE(ReadWholeFile(old).find("CHECKPOINT"), std::string::npos);
  Ends(daemon, SIGTERM);
}

TEST_F(DaemonTest, ASecondOneOnTheSameSocketIsRefusedAndHarmsNothing) {
  Process first(Options());
  ASSERT_TRUE(first.WaitFor("ready:"));
  Launches();
  // Its own log, so that only the socket is in question.
  ProcessOptions second = Options();
  second.argv = {OarlockdPath(),         "--socket", socket(), "--control", t_ / "run/other.sock", "--log",
                 t_ / "log/second.jsonl"};
  (void)t_.MakeDirectory("second");
  second.argv.back() = t_ / "second/audit.jsonl";
  Fails(second, 1, socket(), true);
  EXPECT_FALSE(std::filesystem::exists(t_ / "run/other.sock"));
  Launches();
  // Another socket, but the control socket is taken: it must not leave the one that it had made already.
  second.argv = {OarlockdPath(), "--socket", t_ / "run/other.sock",    "--control",
                 control(),      "--log",    t_ / "second/audit.jsonl"};
  Fails(second, 1, control(), true);
  EXPECT_FALSE(std::filesystem::exists(t_ / "run/other.sock")) << "a socket that nobody serves stays behind";
  Launches();
  Ends(first, SIGTERM);
}

TEST_F(DaemonTest, ASecondOneByMistakeLeavesTheFirstsLogAlone) {
  Process first(Options());
  ASSERT_TRUE(first.WaitFor("ready:"));
  Launches();
  ASSERT_TRUE(Eventually([&] {
    const std::string before = ReadWholeFile(log());
    return !Eventually([&] { return ReadWholeFile(log()) != before; }, std::chrono::milliseconds(300));
  }));
  const std::string before = ReadWholeFile(log());
  Fails(Options(), 1, socket(), true);
  EXPECT_EQ(ReadWholeFile(log()).size(), before.size()) << "the second wrote into the first's chain";
  Launches();
  Ends(first, SIGTERM);
  // The chain is whole: each sequence number once.
  uint64_t expected = 0;
  for (const LogLine& line : ReadLog(log())) {
    const Json json = Json::parse(line.text);
    const auto sequence = json["metadata"]["sequence"].get<uint64_t>();
    if (expected != 0) EXPECT_EQ(sequence, expected) << line.text;
    expected = sequence + 1;
  }
}

// ... also at once: the dead one's socket may outlive it for a moment, in its ring.
TEST_F(DaemonTest, AKilledOnesSocketsAreReplacedAtOnce) {
  for (int i = 0; i < 10; ++i) {
    Process killed(Options());
    ASSERT_TRUE(killed.WaitFor("ready:")) << i << ": " << killed.err();
    Launches();
    killed.Signal(SIGKILL);
    (void)killed.Wait();
    ASSERT_TRUE(std::filesystem::exists(socket()));
    ASSERT_TRUE(std::filesystem::exists(control()));
  }
  Process last(Options());
  ASSERT_TRUE(last.WaitFor("ready:")) << last.err();
  Launches();
  Ends(last, SIGTERM);
}

TEST_F(DaemonTest, WhatIsNoStaleSocketStays) {
  for (const bool at_control : {false, true}) {
    const std::string path = at_control ? control() : socket();
    SCOPED_TRACE(path);
    const auto fails = [&] {
      Fails(Options(), 1, path, true);
      // What else it left behind is another test's business.
      if (at_control) std::filesystem::remove(socket());
    };
    std::ofstream(path) << "precious";
    fails();
    EXPECT_EQ(ReadWholeFile(path), "precious");
    ASSERT_EQ(::unlink(path.c_str()), 0);
    ASSERT_EQ(::mkdir(path.c_str(), 0755), 0);
    fails();
    EXPECT_TRUE(std::filesystem::is_directory(path));
    ASSERT_EQ(::rmdir(path.c_str()), 0);
    ASSERT_EQ(::symlink("/etc/passwd", path.c_str()), 0);
    fails();
    EXPECT_TRUE(std::filesystem::is_symlink(path));
    ASSERT_EQ(::unlink(path.c_str()), 0);
  }
}

TEST_F(DaemonTest, ALivingSocketOfAnotherTypeStays) {
  // Of somebody else's service: it is no supervisor's, so it is none that died.
  for (const int type : {SOCK_DGRAM, SOCK_SEQPACKET, SOCK_STREAM})
    for (const bool at_control : {false, true}) {
      const std::string path = at_control ? control() : socket();
      SCOPED_TRACE(path + " of type " + std::to_string(type));
      const UniqueFd living(::socket(AF_UNIX, type | SOCK_CLOEXEC, 0));
      sockaddr_un address{};
      address.sun_family = AF_UNIX;
      std::memcpy(address.sun_path, path.data(), path.size());
      ASSERT_EQ(::bind(living.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
      if (type != SOCK_DGRAM) ASSERT_EQ(::listen(living.get(), 8), 0);
      struct stat before{}, after{};
      ASSERT_EQ(::stat(path.c_str(), &before), 0);
      ProcessOptions options = Options();
      options.timeout = std::chrono::seconds(15);  // should it come up after all
      const Outcome outcome = RunProcess(options);
      EXPECT_EQ(outcome.code, 1) << outcome.err;
      EXPECT_EQ(::stat(path.c_str(), &after), 0);
      EXPECT_EQ(before.st_ino, after.st_ino) << "it was taken away";
      (void)::unlink(socket().c_str());
      (void)::unlink(control().c_str());
    }
}

TEST_F(DaemonTest, TheTwoSocketsMustDiffer) {
  ProcessOptions options = Options();
  options.argv = {OarlockdPath(), "--socket", socket(), "--control", socket(), "--log", log()};
  options.timeout = std::chrono::seconds(3);
  const Outcome outcome = RunProcess(options);
  EXPECT_TRUE(outcome.code == 1 || outcome.code == 64) << outcome.code << outcome.err;
}

TEST_F(DaemonTest, PlacesThatCannotBeBoundAreNamed) {
  const auto with = [&](const std::string& admit, const std::string& ctl) {
    ProcessOptions options = Options();
    options.argv = {OarlockdPath(), "--socket", admit, "--control", ctl, "--log", log()};
    return options;
  };
  Fails(with(t_ / "missing/admit.sock", control()), 1, t_ / "missing/admit.sock");
  Fails(with(t_ / "run/" + std::string(120, 's'), control()), 1, "ENAMETOOLONG");
  Fails(with(socket(), t_ / "missing/control.sock"), 1, t_ / "missing/control.sock");
  Fails(with(socket(), t_ / "run/" + std::string(120, 'c')), 1, "ENAMETOOLONG");
}

// --- its log -----------------------------------------------------------------------------------------------

TEST_F(DaemonTest, ALogThatCannotBeIsNamed) {
  const auto with = [&](const std::string& path) {
    ProcessOptions options = Options();
    options.argv = {OarlockdPath(), "--socket", socket(), "--control", control(), "--log", path};
    return options;
  };
  const auto make = [&](const char* name, mode_t mode, uid_t uid = 0) {
    const std::string path = t_ / ("log/" + std::string(name));
    std::ofstream(path) << "";
    EXPECT_TRUE(::chmod(path.c_str(), mode) == 0 && ::chown(path.c_str(), uid, uid) == 0);
    return path;
  };
  Fails(with(t_ / "missing/audit.jsonl"), 1, t_ / "missing/audit.jsonl");
  Fails(with(t_ / "log"), 1, t_ / "log");
  ASSERT_EQ(::symlink("real.jsonl", (t_ / "log/link.jsonl").c_str()), 0);
  Fails(with(t_ / "log/link.jsonl"), 1, t_ / "log/link.jsonl");
  ASSERT_EQ(::mkfifo((t_ / "log/fifo.jsonl").c_str(), 0600), 0);
  Fails(with(t_ / "log/fifo.jsonl"), 1, t_ / "log/fifo.jsonl");
  Fails(with("/dev/null"), 1, "/dev/null");
  Fails(with(make("others.jsonl", 0640, kNobody)), 1, t_ / "log/others.jsonl");
  Fails(with(make("everybodys.jsonl", 0666)), 1, t_ / "log/everybodys.jsonl");
  Fails(with(t_ / "log/" + std::string(300, 'l')), 1, "ENAMETOOLONG");

  // As a user who may not.
  const std::string theirs = t_.MakeDirectory("theirs", 0755, kNobody, kNobody);
  ProcessOptions options;
  options.uid = kNobody;
  options.argv = {OarlockdPath(), "--socket", theirs + "/admit.sock", "--log", log()};
  Fails(options, 1, log());
  (void)t_.WriteFile("readable.jsonl", "", 0644);
  options.argv.back() = t_ / "readable.jsonl";
  Fails(options, 1, t_ / "readable.jsonl");
  options.argv.back() = "/proc/self/audit.jsonl";
  Fails(options, 1, "/proc/self/audit.jsonl");
  EXPECT_FALSE(std::filesystem::exists(theirs + "/admit.sock"));
}

// --- its words ---------------------------------------------------------------------------------------------

TEST_F(DaemonTest, WrongWordsAreUsage) {
  for (const Steps& more : {
           Steps{"--nonsense"},
           Steps{"surplus"},
           Steps{"--socket"},
           Steps{"--shards"},
           Steps{"--shards", "0"},
           Steps{"--shards", "65"},
           Steps{"--shards", "-1"},
           Steps{"--shards", "two"},
           Steps{"--shards", "1.5"},
           Steps{"--admit-uid"},
           Steps{"--admit-uid", "no-such-user-here"},
           Steps{"--admit-uid", "-1"},
           Steps{"--admit-uid", "4294967295"},
           Steps{"--admit-uid", "4294967296"},
           Steps{"--admit-uid", ""},
           Steps{"--admit-uid", "1000,1001"},
           Steps{"--admit-group", "no-such-group-here"},
           Steps{"--admit-group", "4294967295"},
           Steps{"--durability", "synced"},
           Steps{"--durability", "none"},
           Steps{"--max-grant"},
           Steps{"--socket", "/a", "--socket", "/b"},
       }) {
    const Outcome outcome = RunProcess(Options(more));
    EXPECT_EQ(outcome.code, 64) << more[0] << (more.size() > 1 ? " " + more[1] : "") << ": " << outcome.err;
    EXPECT_NE(outcome.err + outcome.out, "") << more[0];
    EXPECT_FALSE(std::filesystem::exists(socket())) << more[0];
  }
  for (const Steps& more : {Steps{"--help"}, Steps{"--version"}})
    EXPECT_EQ(RunProcess(Options(more)).code, 0) << more[0];
}

TEST_F(DaemonTest, ACeilingThatCannotBeReadIsNamed) {
  Fails(Options({"--max-grant", t_ / "missing.json"}), 1, t_ / "missing.json");
  Fails(Options({"--max-grant", t_.path()}), 1, "max-grant");
  Fails(Options({"--max-grant", t_.WriteFile("bad.json", "{")}), 1, "not valid JSON");
  Fails(Options({"--max-grant",
                 t_.WriteFile("bad.json", R"({"uids":[0],"proxy":[{"addr":"10.0.0.1","ports":[1,2]}]})")}),
        1, "/proxy/0/addr");
  Fails(Options({"--max-grant", t_.WriteFile("bad.json", R"({"uid":[0]})")}), 1, "/uid: unknown key");
  Fails(Options({"--max-grant", t_.WriteFile("bad.json", R"({"broker_dirs":["/nonexistent"]})")}), 1,
        "/broker_dirs/0");
}

// --- what it inherits --------------------------------------------------------------------------------------

TEST_F(DaemonTest, EverySignalBlocked) {
  Works([] {
    sigset_t all;
    (void)::sigfillset(&all);
    (void)::sigprocmask(SIG_SETMASK, &all, nullptr);
  });
}

TEST_F(DaemonTest, EverySignalIgnored) {
  Works([] {
    for (int signal = 1; signal < NSIG; ++signal) (void)::signal(signal, SIG_IGN);
  });
}

TEST_F(DaemonTest, EverySignalBlockedAndIgnored) {
  Works([] {
    sigset_t all;
    (void)::sigfillset(&all);
    (void)::sigprocmask(SIG_SETMASK, &all, nullptr);
    for (int signal = 1; signal < NSIG; ++signal) (void)::signal(signal, SIG_IGN);
  });
}

TEST_F(DaemonTest, OddUmasks) {
  for (const mode_t mask : {0, 0777, 077, 0111}) {
    SCOPED_TRACE(mask);
    std::filesystem::remove_all(t_ / "log");
    (void)t_.MakeDirectory("log");
    Works([mask] { (void)::umask(mask); });
  }
}

TEST_F(DaemonTest, ClosedStandardDescriptors) {
  for (int closed = 1; closed < 8; ++closed) {
    SCOPED_TRACE(closed);
    std::filesystem::remove_all(t_ / "log");
    (void)t_.MakeDirectory("log");
    // None of them may become the log or a socket, which would then be written to as stderr.
    Works([closed] {
      for (int fd = 0; fd < 3; ++fd)
        if ((closed >> fd & 1) != 0) (void)::close(fd);
    });
  }
}

TEST_F(DaemonTest, AFullOrReaderlessStderr) {
  Works([] {
    const int full = ::open("/dev/full", O_WRONLY);
    (void)::dup2(full, 1);
    (void)::dup2(full, 2);
  });
  Works([] {
    int ends[2];
    (void)!::pipe(ends);
    (void)::dup2(ends[1], 2);
    (void)::close(ends[0]);
    (void)::close(ends[1]);
  });
}

// A stderr that nobody reads any more must not stop the node: each refused stranger is a line on it.
TEST_F(DaemonTest, AStalledStderr) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const UniqueFd reading(ends[0]), writing(ends[1]);
  ASSERT_GE(::fcntl(writing.get(), F_SETPIPE_SZ, 4096), 0);
  ProcessOptions options = Options();
  options.before_exec = [&] { (void)::dup2(writing.get(), 2); };
  Process daemon(options);
  ASSERT_TRUE(Eventually([&] { return std::filesystem::exists(control()); }));
  Steps refused;
  for (int i = 0; i < 100; ++i)
    refused.insert(refused.end(), {"connect," + socket(), "say,nonsense", "shut", "close"});
  (void)Speak(refused);
  Launches();
  Ends(daemon, SIGTERM);
}

TEST_F(DaemonTest, AFileSizeLimitThatLeavesNoRoomIsRefused) {
  for (const rlim_t limit : {rlim_t{0}, rlim_t{4096}, rlim_t{1} << 20, (rlim_t{64} << 20) - 1}) {
    ProcessOptions options = Options();
    options.before_exec = [limit] {
      const rlimit small{limit, limit};
      (void)::setrlimit(RLIMIT_FSIZE, &small);
    };
    Fails(options, 1, "RLIMIT_FSIZE");
  }
}

TEST_F(DaemonTest, ASoftFileSizeLimitIsRaised) {
  Works([] {
    const rlimit small{4096, RLIM_INFINITY};
    (void)::setrlimit(RLIMIT_FSIZE, &small);
  });
  Works([] {
    const rlimit enough{0, rlim_t{64} << 20};
    (void)::setrlimit(RLIMIT_FSIZE, &enough);
  });
}

TEST_F(DaemonTest, ASoftDescriptorLimitIsRaised) {
  Works([] {
    rlimit files{};
    (void)::getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = 16;
    (void)::setrlimit(RLIMIT_NOFILE, &files);
  });
}

TEST_F(DaemonTest, AHardDescriptorLimitIsAClearRefusal) {
  // Of each session, as long as it can come up at all; and of itself, where it cannot, whichever part of it is the one that
  // cannot be made.
  std::vector<rlim_t> limits = {200, 64};
  for (rlim_t limit = 5; limit <= 30; ++limit) limits.push_back(limit);
  for (const rlim_t limit : limits) {
    SCOPED_TRACE(limit);
    ProcessOptions options = Options();
    options.before_exec = [limit] {
      const rlimit files{limit, limit};
      (void)::setrlimit(RLIMIT_NOFILE, &files);
    };
    Process daemon(options);
    if (!daemon.WaitFor("ready:")) {
      const Outcome outcome = daemon.Wait();
      // 127: not even its libraries could be opened.
      EXPECT_TRUE(outcome.code == 1 || outcome.code == 127) << outcome.code << " " << outcome.err;
      EXPECT_NE(outcome.err, "");
      EXPECT_EQ(outcome.err.find("terminate"), std::string::npos) << outcome.err;
      continue;
    }
    Sandbox sandbox;
    sandbox.Supervisor(socket());
    const Outcome outcome = sandbox.Probe({"pid"});
    EXPECT_EQ(outcome.code, 70);
    EXPECT_TRUE(outcome.err.starts_with("sandbox launch: K_NOTIFY ")) << outcome.err;
    EXPECT_TRUE(daemon.Running());
    Ends(daemon, SIGTERM);
  }
}

TEST_F(DaemonTest, ADirectoryThatIsGone) {
  const std::string gone = t_.MakeDirectory("gone");
  Works([gone] {
    (void)!::chdir(gone.c_str());
    (void)::rmdir(gone.c_str());
  });
}

TEST_F(DaemonTest, ManyInheritedDescriptors) {
  Works([] {
    for (int fd = 3; fd < 200; ++fd) (void)::dup2(0, fd);
  });
}

TEST_F(DaemonTest, NobodyMayLookIntoIt) {
  Process daemon(Options());
  ASSERT_TRUE(daemon.WaitFor("ready:"));
  // Undumpable: its files in /proc are root's, and its user may not trace it.
  struct stat status{};
  ASSERT_EQ(::stat(("/proc/" + std::to_string(daemon.pid()) + "/mem").c_str(), &status), 0);
  EXPECT_EQ(status.st_uid, 0U);
  std::ifstream limits("/proc/" + std::to_string(daemon.pid()) + "/limits");
  for (std::string line; std::getline(limits, line);)
    if (line.starts_with("Max core file size")) EXPECT_NE(line.find(" 0 "), std::string::npos) << line;
  Ends(daemon, SIGTERM);
}

// --- its own places ----------------------------------------------------------------------------------------

// Where no socket and no log are named, its directories are made: closed, or as open as those need who may
// admit.
TEST_F(DaemonTest, ItsDirectoriesAreAsOpenAsTheyMustBe) {
  struct Expected {
    Steps words;
    mode_t mode;
  };
  int number = 0;
  for (const Expected& expected : {Expected{{}, 0700}, Expected{{"--admit-group", "54321"}, 0750}}) {
    const std::string base = t_.MakeDirectory("user" + std::to_string(++number), 0755, kNobody, kNobody);
    ASSERT_EQ(::mkdir((base + "/runtime").c_str(), 0755), 0);
    ASSERT_EQ(::chown((base + "/runtime").c_str(), kNobody, kNobody), 0);
    ProcessOptions options;
    options.argv = Steps{OarlockdPath()} + expected.words;
    options.environment = {{"XDG_RUNTIME_DIR", base + "/runtime"}, {"XDG_STATE_HOME", base + "/state"}};
    options.uid = kNobody;
    // A member of the group, so that it can give the socket to it.
    options.uid.reset();
    options.before_exec = [] {
      const gid_t groups[] = {54321};
      if (::setgroups(1, groups) != 0 || ::setresgid(kNobody, kNobody, kNobody) != 0 ||
          ::setresuid(kNobody, kNobody, kNobody) != 0)
        ::_exit(122);
    };
    options.timeout = std::chrono::minutes(1);
    Process daemon(options);
    ASSERT_TRUE(daemon.WaitFor("ready:")) << daemon.err();
    struct stat status{};
    ASSERT_EQ(::stat((base + "/runtime/oarlock").c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 07777, expected.mode);
    if (!expected.words.empty()) EXPECT_EQ(status.st_gid, 54321U) << "its members cannot get in";
    EXPECT_TRUE(std::filesystem::exists(base + "/runtime/oarlock/admit.sock"));
    EXPECT_TRUE(std::filesystem::exists(base + "/runtime/oarlock/control.sock"));
    EXPECT_TRUE(std::filesystem::exists(base + "/state/oarlock/audit/audit.jsonl"));
    daemon.Signal(SIGTERM);
    EXPECT_EQ(daemon.Wait().code, 0);
  }
}

TEST_F(DaemonTest, WithoutAnyPlaceItSaysWhatToName) {
  ProcessOptions options;
  options.argv = {OarlockdPath()};
  options.uid = 61234;  // no entry anywhere, no runtime directory
  Fails(options, 1, "--socket");
  const std::string theirs = t_.MakeDirectory("theirs", 0755, 61234, 61234);
  options.argv = {OarlockdPath(), "--socket", theirs + "/admit.sock"};
  Fails(options, 1, "--log");
}

}  // namespace
}  // namespace oarlock::test
