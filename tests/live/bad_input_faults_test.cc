// SPDX-License-Identifier: Apache-2.0
// What may stand around the launcher: filters that refuse its steps or pretend to do them (E-213), other
// sandboxes, used-up limits (E-172), libraries (E-170). Each of its steps takes effect or ends in exit 70,
// and the module never ran.
#include <dirent.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <sys/personality.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <set>
#include <sstream>

#include "notif/abi/landlock.h"
#include "notif/base/pass_fd.h"
#include "tests/live/admission_support.h"
#include "tests/live/bad_input_support.h"

namespace oarlock::test {
namespace {

using Steps = std::vector<std::string>;

constexpr long kCreateRuleset = abi::kSysLandlockCreateRuleset, kAddRule = abi::kSysLandlockAddRule,
               kRestrictSelf = abi::kSysLandlockRestrictSelf;

class FaultTest : public MarkerTest {
 protected:
  FaultTest() : daemon_(std::make_unique<Daemon>()) {}

  // With a private supervisor, which has the same filter around it, and with the node's, which has not.
  void Stops(const OuterFilter& filter, const std::string& code, const std::string& more = "",
             const std::function<void()>& before_filter = {}, const std::string& part = "") const {
    for (const bool node : {true, false}) {
      SCOPED_TRACE(node ? "node supervisor" : "private supervisor");
      ExpectStopped(RunProcess(With(filter, node, more, before_filter)), 70, code, part);
    }
  }
  void Runs(const OuterFilter& filter, const std::string& more = "",
            const std::function<void()>& before_filter = {}) const {
    for (const bool node : {true, false}) {
      SCOPED_TRACE(node ? "node supervisor" : "private supervisor");
      ExpectRan(RunProcess(With(filter, node, more, before_filter)));
    }
  }
  [[nodiscard]] ProcessOptions With(const OuterFilter& filter, bool node, const std::string& more = "",
                                    const std::function<void()>& before_filter = {}) const {
    ProcessOptions options = WithPolicy(Good(more));
    if (node) options.environment["OARLOCK_SUPERVISOR"] = daemon_->socket();
    options.before_exec = [install = filter.BeforeExec(), before_filter] {
      if (before_filter) before_filter();
      install();
    };
    return options;
  }
  std::unique_ptr<Daemon> daemon_;
};

TEST_F(FaultTest, AFilterThatDoesNothingStopsNothing) {
  Runs(OuterFilter());
  OuterFilter other;
  Runs(other.Answer(SYS_vhangup, EPERM));
}

// --- Landlock ----------------------------------------------------------------------------------------------

TEST_F(FaultTest, R_OB_09_R_MO_40_R_MO_41_LandlockRefused) {
  for (const int error : {ENOSYS, EPERM, EOPNOTSUPP, EINVAL, ENOMEM})
    for (const long nr : {kCreateRuleset, kAddRule, kRestrictSelf}) {
      SCOPED_TRACE(nr);
      OuterFilter filter;
      Stops(filter.Answer(nr, error), "K_LANDLOCK ");
    }
}

TEST_F(FaultTest, LandlockThatIsSaidToBeDone) {
  OuterFilter create, restrict, all, without_create;
  Stops(create.Answer(kCreateRuleset, 0), "K_LANDLOCK ");
  Stops(restrict.Answer(kRestrictSelf, 0), "K_LANDLOCK ", "", {}, "something filters us");
  Stops(all.Answer(kCreateRuleset, 0).Answer(kAddRule, 0).Answer(kRestrictSelf, 0), "K_LANDLOCK ");
  Stops(without_create.Answer(kAddRule, 0).Answer(kRestrictSelf, 0), "K_LANDLOCK ");
  // Also where no network is granted and where the proof by files is not to be had.
  OuterFilter again;
  Stops(again.Answer(kRestrictSelf, 0), "K_LANDLOCK ", R"("ro":["/"])");
}

TEST_F(FaultTest, ARulesetWhoseVersionAloneIsReal) {
  // The question for the version is answered, the making is pretended: descriptor 0 would be taken for a
  // ruleset.
  OuterFilter filter;
  Stops(filter.AnswerWherePointer(kCreateRuleset, 0, 0), "K_LANDLOCK ");
}

TEST_F(FaultTest, RulesThatAreNotAdded) {
  // Less than was asked for is not all that was asked for.
  OuterFilter filter;
  Stops(filter.Answer(kAddRule, 0), "K_LANDLOCK ");
}

TEST_F(FaultTest, R_OB_09_SixteenLayers) {
  const auto stack = [](int layers) {
    return [layers] {
      abi::LandlockRulesetAttr attribute{};
      attribute.handled_access_fs = abi::kFsMakeBlock;
      for (int i = 0; i < layers; ++i) {
        const long ruleset = ::syscall(kCreateRuleset, &attribute, sizeof(attribute), 0U);
        if (ruleset < 0 || ::syscall(kRestrictSelf, ruleset, 0U) != 0) ::_exit(118);
        (void)::close(static_cast<int>(ruleset));
      }
    };
  };
  Stops(OuterFilter(), "K_LANDLOCK ", "", stack(16), "sixteen layers");
  Runs(OuterFilter(), "", stack(15));
}

// --- seccomp -----------------------------------------------------------------------------------------------

TEST_F(FaultTest, R_OB_09_SeccompRefused) {
  for (const int error : {EPERM, ENOSYS, EINVAL, ENOMEM, EACCES}) {
    OuterFilter filter;
    Stops(filter.Answer(SYS_seccomp, error), "K_SECCOMP ");
  }
}

TEST_F(FaultTest, SeccompThatIsSaidToBeDone) {
  // Success is a descriptor: 0, which is no listener.
  OuterFilter filter;
  for (const bool node : {true, false}) {
    const Outcome outcome = RunProcess(With(filter.Answer(SYS_seccomp, 0), node));
    ExpectStopped(outcome, 70, "K_");
  }
}

TEST_F(FaultTest, R_OB_09_AnotherListenerAroundUs) {
  // Held by whoever put it there: in flight between two sockets, so that no process is needed for it.
  int pair[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
  const UniqueFd ours(pair[0]), theirs(pair[1]);
  ProcessOptions options = WithPolicy(Good());
  options.environment["OARLOCK_SUPERVISOR"] = daemon_->socket();
  options.before_exec = [&] {
    OuterFilter filter;
    int listener = filter.Notify(SYS_vhangup).Install(abi::kSeccompFlagNewListener);
    if (listener < 0 || SendWithFd(theirs.get(), "", 1, listener) != 1) ::_exit(118);
  };
  ExpectStopped(RunProcess(options), 70, "K_SECCOMP ", "EBUSY");
}

// --- identity ----------------------------------------------------------------------------------------------

TEST_F(FaultTest, AnIdentityThatIsSaidToBeTaken) {
  constexpr const char* kNobodyPolicy = R"("run_as":{"uid":65534,"gid":65534})";
  OuterFilter uid, gid, both;
  Stops(uid.Answer(SYS_setresuid, 0), "K_IDENTITY ", kNobodyPolicy);
  Stops(gid.Answer(SYS_setresgid, 0), "K_IDENTITY ", kNobodyPolicy);
  Stops(both.Answer(SYS_setresgid, 0).Answer(SYS_setresuid, 0), "K_IDENTITY ", kNobodyPolicy);
  const auto with_groups = [] {
    const gid_t groups[] = {7, 8};
    if (::setgroups(2, groups) != 0) ::_exit(118);
  };
  OuterFilter groups;
  Stops(groups.Answer(SYS_setgroups, 0), "K_IDENTITY ", "", with_groups);
  Stops(groups, "K_IDENTITY ", kNobodyPolicy, with_groups);
  for (const int error : {EPERM, ENOSYS}) {
    OuterFilter refused_uid, refused_gid, refused_groups;
    Stops(refused_uid.Answer(SYS_setresuid, error), "K_IDENTITY ", kNobodyPolicy);
    Stops(refused_gid.Answer(SYS_setresgid, error), "K_IDENTITY ", kNobodyPolicy);
    Stops(refused_groups.Answer(SYS_setgroups, error), "K_IDENTITY ", kNobodyPolicy);
  }
  // Without a filter that takes effect, groups and all.
  ProcessOptions options =
      With(OuterFilter(), true, std::string(kNobodyPolicy) + ",\"ro\":[\"" OARLOCK_BINARY_DIR "/tests/bin\"]",
           with_groups);
  options.argv.resize(4);
  options.argv.insert(options.argv.end(), {ProbePath(), "uid", "status,Groups"});
  const Outcome outcome = RunProcess(options);
  EXPECT_EQ(outcome.out, "uid -> 0 65534 65534\nstatus,Groups -> 0\n") << outcome.err;
}

TEST_F(FaultTest, IdsOfAnotherProcess) {
  // Answers of the filter, which cannot fail otherwise: a filter for gid 0 would be left out, and other places be looked after.
  for (const long nr : {SYS_geteuid, SYS_getegid}) {
    OuterFilter filter;
    Stops(filter.Answer(nr, EPERM), "K_IDENTITY ", "", {}, "something filters us");
  }
}

TEST_F(FaultTest, CapabilitiesThatAreSaidToBeDropped) {
  OuterFilter capset, bounding;
  Stops(capset.Answer(SYS_capset, 0), "K_CAPS ");
  Stops(bounding.AnswerWhere(SYS_prctl, 0, PR_CAPBSET_DROP, 0), "K_CAPS ");
  for (const int error : {EPERM, ENOSYS}) {
    OuterFilter refused, refused_bounding, refused_ambient;
    Stops(refused.Answer(SYS_capset, error), "K_CAPS ");
    Stops(refused_bounding.AnswerWhere(SYS_prctl, 0, PR_CAPBSET_DROP, error), "K_CAPS ");
    Stops(refused_ambient.AnswerWhere(SYS_prctl, 0, PR_CAP_AMBIENT, error), "K_CAPS ");
    OuterFilter unreadable;
    Stops(unreadable.Answer(SYS_capget, error), "K_CAPS ");
  }
  // A capget that says nothing is no process without capabilities, whose groups and bounding set could stay.
  OuterFilter blind, blind_alone;
  Stops(blind.Answer(SYS_capget, 0).Answer(SYS_capset, 0), "K_");
  Stops(blind_alone.Answer(SYS_capget, 0), "K_CAPS ");
  // A kernel that knows no capability at all.
  OuterFilter unknown;
  Stops(unknown.AnswerWhere(SYS_prctl, 0, PR_CAPBSET_DROP, EINVAL).AnswerWhere(SYS_prctl, 0, PR_CAPBSET_READ, EINVAL), "K_CAPS ");
}

TEST_F(FaultTest, SecureBitsThatAreSaidToBeSet) {
  OuterFilter filter;
  Stops(filter.AnswerWhere(SYS_prctl, 0, PR_SET_SECUREBITS, 0), "K_CAPS ");
}

TEST_F(FaultTest, NoNewPrivsThatIsSaidToBeSet) {
  OuterFilter set, everything;
  Stops(set.AnswerWhere(SYS_prctl, 0, PR_SET_NO_NEW_PRIVS, 0), "K_NNP ");
  Stops(everything.Answer(SYS_prctl, 0), "K_");
  for (const int error : {EPERM, EINVAL, ENOSYS}) {
    OuterFilter refused, unreadable;
    Stops(refused.AnswerWhere(SYS_prctl, 0, PR_SET_NO_NEW_PRIVS, error), "K_NNP ");
    Stops(unreadable.AnswerWhere(SYS_prctl, 0, PR_GET_NO_NEW_PRIVS, error), "K_NNP ");
  }
}

// --- descriptors and limits --------------------------------------------------------------------------------

TEST_F(FaultTest, DescriptorsThatAreSaidToBeClosed) {
  const auto with_one_more = [] {
    const int fd = ::open("/", O_RDONLY | O_DIRECTORY);
    if (::dup2(fd, 77) != 77) ::_exit(118);
    (void)::close(fd);
  };
  OuterFilter filter;
  Stops(filter.Answer(SYS_close_range, 0), "K_UNSUPPORTED ", "", with_one_more, "77");
  for (const int error : {EPERM, ENOSYS}) {
    OuterFilter refused;
    Stops(refused.Answer(SYS_close_range, error), "K_", "", with_one_more);
  }
  Runs(OuterFilter(), "", with_one_more);
}

TEST_F(FaultTest, LimitsThatAreSaidToBeSet) {
  // By the node's supervisor: a private one needs limits of its own, and has its own words where it cannot
  // have them.
  const auto stops = [&](const OuterFilter& filter, const std::string& more) {
    ExpectStopped(RunProcess(With(filter, true, more)), 70, "K_UNSUPPORTED ");
    ExpectStopped(RunProcess(With(filter, false, more)), 70, "K_");
  };
  constexpr const char* kLimited = R"("limits":{"nofile":64})";
  OuterFilter set, both;
  // glibc's setrlimit and getrlimit are prlimit64, with a new or an old limit.
  stops(set.AnswerWherePointer(SYS_prlimit64, 2, 0).AnswerWherePointer(SYS_setrlimit, 1, 0), kLimited);
  // Where reading says nothing either, what is read is what stood there before.
  both.Answer(SYS_prlimit64, 0).Answer(SYS_setrlimit, 0).Answer(SYS_getrlimit, 0);
  stops(both, kLimited);
  stops(both, "");
  for (const int error : {EPERM, ENOSYS}) {
    OuterFilter refused;
    stops(refused.Answer(SYS_prlimit64, error).Answer(SYS_setrlimit, error), kLimited);
  }
}

TEST_F(FaultTest, APersonalityThatIsSaidToBeReset) {
  const auto weaken = [] { (void)::personality(ADDR_NO_RANDOMIZE); };
  OuterFilter said, refused;
  Stops(said.Answer(SYS_personality, 0), "K_UNSUPPORTED ", "", weaken);
  Stops(refused.Answer(SYS_personality, EPERM), "K_UNSUPPORTED ", "", weaken);
}

TEST_F(FaultTest, ASignalMaskThatIsSaidToBeCleared) {
  // The module would start deaf to what was blocked around it.
  const auto block = [] {
    sigset_t set;
    (void)::sigemptyset(&set);
    (void)::sigaddset(&set, SIGTERM);
    (void)::sigprocmask(SIG_BLOCK, &set, nullptr);
  };
  ProcessOptions options = With(OuterFilter(), true, "\"ro\":[\"" OARLOCK_BINARY_DIR "/tests/bin\"]", block);
  options.argv.resize(4);
  options.argv.insert(options.argv.end(), {ProbePath(), "status,SigBlk"});
  EXPECT_EQ(RunProcess(options).out, "status,SigBlk -> 0 0000000000000000\n") << "the twin";
  OuterFilter filter;
  Stops(filter.Answer(SYS_rt_sigprocmask, 0), "K_", "", block);
}

TEST_F(FaultTest, ADescriptorLimitThatIsUsedUp) {
  // At each number of descriptors the launch holds in full or stops with one line.
  for (const bool node : {true, false})
    for (rlim_t limit = 3; limit <= 40; ++limit) {
      SCOPED_TRACE(std::string(node ? "node" : "private") + " supervisor, " + std::to_string(limit) +
                   " descriptors");
      ProcessOptions options = WithPolicy(Good());
      if (node) options.environment["OARLOCK_SUPERVISOR"] = daemon_->socket();
      options.before_exec = [limit] {
        const rlimit files{limit, limit};
        (void)::setrlimit(RLIMIT_NOFILE, &files);
      };
      const Outcome outcome = RunProcess(options);
      if (outcome.code == 0)
        ExpectRan(outcome);
      else
        ExpectStopped(outcome, 70, "");
    }
}

TEST_F(FaultTest, NoMoreProcesses) {
  // As a user with a limit of its own: a private supervisor and the proof need a process each.
  ASSERT_EQ(::chown((t_ / "state").c_str(), 61235, 61235), 0);
  for (rlim_t limit = 1; limit <= 4; ++limit) {
    SCOPED_TRACE(limit);
    ProcessOptions options = WithPolicy(Good());
    options.uid = 61235;
    options.before_exec = [limit] {
      const rlimit processes{limit, limit};
      (void)::setrlimit(RLIMIT_NPROC, &processes);
    };
    const Outcome outcome = RunProcess(options);
    if (outcome.code == 0)
      ExpectRan(outcome);
    else
      ExpectStopped(outcome, 70, "K_");
  }
}

TEST_F(FaultTest, AFileSizeLimit) {
  // Of the private supervisor's log: below 64 MiB it says so and does not run.
  for (const rlim_t limit : {rlim_t{0}, rlim_t{4096}, rlim_t{1} << 20}) {
    ProcessOptions options = WithPolicy(Good());
    options.before_exec = [limit] {
      const rlimit size{limit, limit};
      (void)::setrlimit(RLIMIT_FSIZE, &size);
    };
    ExpectStopped(RunProcess(options), 70, "K_NOTIFY ", "RLIMIT_FSIZE");
  }
}

// --- calls that hand over ----------------------------------------------------------------------------------

TEST_F(FaultTest, AHandOverThatFails) {
  for (const int error : {EPERM, ENOSYS, EACCES}) {
    OuterFilter sendmsg, socket, connect, clone;
    Stops(sendmsg.Answer(SYS_sendmsg, error), "K_NOTIFY ");
    Stops(socket.Answer(SYS_socket, error), "K_");
    ExpectStopped(RunProcess(With(connect.Answer(SYS_connect, error), true)), 70, "K_");
    ExpectStopped(RunProcess(With(clone.Answer(SYS_clone, error), true)), 70, "K_NOTIFY ");
  }
  // A connect that pretends: neither the wall nor the proof can be believed.
  OuterFilter answered;
  ExpectStopped(RunProcess(With(answered.Answer(SYS_connect, 0), true)), 70, "K_");
}

TEST_F(FaultTest, AMessageThatIsSaidToBeSent) {
  OuterFilter filter;
  (void)filter.Answer(SYS_sendmsg, 0);
  // Side by side: the launcher's own patience is five seconds.
  Process private_one(With(filter, false)), node_one(With(filter, true));
  for (Process* process : {&private_one, &node_one}) ExpectStopped(process->Wait(), 70, "K_NOTIFY ");
}

TEST_F(FaultTest, AProcessThatIsSaidToBeMade) {
  // Whoever believes it goes on in the place of its own child. Whatever comes of that, no module.
  for (const bool node : {true, false}) {
    OuterFilter filter;
    const Outcome outcome = RunProcess(With(filter.Answer(SYS_clone, 0), node));
    EXPECT_NE(outcome.code, 0);
    EXPECT_FALSE(Ran(outcome));
  }
}

TEST_F(FaultTest, ASupervisorThatCannotReadUs) {
  // Around the private supervisor as well: what it needs is refused, and it says so.
  for (const auto& [nr, name] : {std::pair<long, const char*>{SYS_process_vm_readv, "process_vm_readv"},
                                 {438, "pidfd_getfd"},
                                 {SYS_io_uring_setup, "io_uring"},
                                 {SYS_ioctl, "ioctl"}}) {
    SCOPED_TRACE(name);
    for (const int error : {EPERM, ENOSYS}) {
      OuterFilter filter;
      ExpectStopped(RunProcess(With(filter.Answer(nr, error), false)), 70, "K_NOTIFY ");
    }
  }
}

// --- libraries (E-170) -------------------------------------------------------------------------------------

class LibraryTest : public MarkerTest {
 protected:
  LibraryTest() {
    // Where the module may read it, too.
    std::filesystem::copy_file(OARLOCK_BINARY_DIR "/tests/bin/libbad_input_preload.so", t_ / "preload.so");
    (void)t_.WriteFile("work/mark", "", 0666);
  }
  [[nodiscard]] std::string library() const { return t_ / "preload.so"; }
  // The programs that it got into.
  [[nodiscard]] std::set<std::string> Loaded() const {
    std::set<std::string> programs;
    std::istringstream lines(ReadWholeFile(work_ + "/mark"));
    for (std::string line; std::getline(lines, line);) programs.insert(line);
    (void)t_.WriteFile("work/mark", "", 0666);
    return programs;
  }
};

TEST_F(LibraryTest, NothingIsLoadedIntoOurPrograms) {
  ProcessOptions bare;
  bare.argv = {"/bin/true"};
  const std::string shell = std::filesystem::canonical("/bin/sh");
  for (const char* name : {"LD_PRELOAD", "LD_AUDIT"}) {
    SCOPED_TRACE(name);
    bare.environment = {{name, library()}, {"PRELOAD_MARK", work_ + "/mark"}};
    EXPECT_EQ(RunProcess(bare).code, 0);
    EXPECT_EQ(Loaded(), std::set<std::string>{std::filesystem::canonical("/bin/true")}) << "the twin";

    for (const bool in_module : {false, true}) {
      ProcessOptions options =
          WithPolicy(Good(in_module ? "\"ro\":[\"" + library() + "\"]" : R"("env":{"keep":[]})"));
      options.environment[name] = library();
      options.environment["PRELOAD_MARK"] = work_ + "/mark";
      const Outcome outcome = RunProcess(options);
      EXPECT_EQ(outcome.code, 0) << outcome.err;
      std::filesystem::remove(marker());
      // The module is the module's business; launcher and supervisor are not.
      EXPECT_EQ(Loaded(), in_module ? std::set<std::string>{shell} : std::set<std::string>{});
    }
  }
}

TEST_F(LibraryTest, OtherVariablesChangeNothing) {
  const std::string directory = t_.MakeDirectory("libraries");
  for (const char* name :
       {"libc.so.6", "libstdc++.so.6", "liburing.so.2", "libcrypto.so.3", "libseccomp.so.2", "libgcc_s.so.1"})
    std::filesystem::copy_file(library(), directory + "/" + name);
  const std::string conf = t_.WriteFile(
      "openssl.cnf",
      "openssl_conf = x\n[x]\nengines = y\n[y]\nz = z\n[z]\ndynamic_path = " + library() + "\ninit = 1\n");
  for (const auto& [name, value] : std::map<std::string, std::string>{
           {"LD_LIBRARY_PATH", directory},
           {"GLIBC_TUNABLES",
            "glibc.malloc.check=3:glibc.malloc.perturb=85:glibc.rtld.nns=99:glibc.malloc.tcache_count=0"},
           {"GCONV_PATH", directory},
           {"LOCPATH", directory},
           {"MALLOC_CHECK_", "3"},
           {"MALLOC_PERTURB_", "85"},
           {"LD_BIND_NOW", "1"},
           {"LD_DEBUG", "all"},
           {"LD_DEBUG_OUTPUT", work_ + "/debug"},
           {"LD_PROFILE", "libc.so.6"},
           {"LD_SHOW_AUXV", "1"},
           {"LD_TRACE_LOADED_OBJECTS", "1"},
           {"OPENSSL_CONF", conf},
           {"OPENSSL_ENGINES", directory},
           {"NLSPATH", directory + "/%N"},
           {"TZ", "/etc/passwd"},
           {"TMPDIR", "/nonexistent"},
           {"RES_OPTIONS", "debug"},
           {"HOSTALIASES", conf},
           {"LANG", std::string(5000, 'x')},
           {"PATH", ""},
           {"IFS", "/"},
           {"BASH_ENV", conf},
           {"", "nameless"},
       }) {
    SCOPED_TRACE(name);
    ProcessOptions options = WithPolicy(Good(R"("env":{"keep":[]})"));
    options.environment[name] = value;
    options.environment["PRELOAD_MARK"] = work_ + "/mark";
    ExpectRan(RunProcess(options));
    EXPECT_EQ(Loaded(), std::set<std::string>{});
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(work_), {}), 1)
        << "something was left behind";
  }
}

// The private supervisor: what it has of us is what we say here.
TEST_F(LibraryTest, ThePrivateSupervisorHasNothingOfTheModules) {
  ProcessOptions options = WithPolicy(Good());
  options.argv.back() = "echo RAN; exec /bin/sleep 60";
  options.environment["LD_PRELOAD"] = library();
  options.environment["SECRET"] = "of-the-module";
  const UniqueFd secret(::open(t_.WriteFile("secret", "x").c_str(), O_RDONLY | O_CLOEXEC));
  options.before_exec = [&] { (void)::dup2(secret.get(), 88); };
  options.directory = t_.path();
  Process module(options);
  ASSERT_TRUE(module.WaitFor("RAN")) << module.err();
  // Found as the one that has this session's log open.
  pid_t supervisor = -1;
  ASSERT_TRUE(Eventually([&] {
    for (const auto& process : std::filesystem::directory_iterator("/proc")) {
      const std::string name = process.path().filename();
      if (name.find_first_not_of("0123456789") != std::string::npos) continue;
      std::error_code ignored;
      for (const auto& fd : std::filesystem::directory_iterator(process.path() / "fd", ignored)) {
        const std::string target = std::filesystem::read_symlink(fd.path(), ignored);
        if (target.starts_with(t_ / "state/oarlock/audit/")) supervisor = std::stoi(name);
      }
    }
    return supervisor > 0;
  }));
  const std::string proc = "/proc/" + std::to_string(supervisor);
  EXPECT_EQ(std::filesystem::read_symlink(proc + "/exe"),
            OARLOCK_BINARY_DIR "/libexec/oarlock/oarlock-private");
  EXPECT_EQ(std::filesystem::read_symlink(proc + "/cwd"), "/");
  std::string environment = ReadWholeFile(proc + "/environ");
  std::ranges::replace(environment, '\0', '\n');
  EXPECT_EQ(environment, "PATH=/usr/sbin:/usr/bin:/sbin:/bin\nLANG=C.UTF-8\n");
  for (int fd = 0; fd <= 2; ++fd)
    EXPECT_EQ(std::filesystem::read_symlink(proc + "/fd/" + std::to_string(fd)), "/dev/null");
  for (const auto& fd : std::filesystem::directory_iterator(proc + "/fd"))
    EXPECT_NE(std::filesystem::read_symlink(fd.path()), t_ / "secret");
  std::istringstream maps(ReadWholeFile(proc + "/maps"));
  for (std::string line; std::getline(maps, line);) EXPECT_EQ(line.find(".so"), std::string::npos) << line;
  // It is neither above nor below the module.
  std::istringstream status(ReadWholeFile("/proc/" + std::to_string(module.pid()) + "/status"));
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("PPid:")) EXPECT_EQ(line, "PPid:\t" + std::to_string(::getpid()));
  EXPECT_EQ(ReadWholeFile("/proc/" + std::to_string(module.pid()) + "/task/" + std::to_string(module.pid()) +
                          "/children"),
            "");
  module.Signal(SIGKILL);
  (void)module.Wait();
  EXPECT_TRUE(Eventually([&] { return !std::filesystem::exists(proc); })) << "it stays behind";
}

}  // namespace
}  // namespace oarlock::test
