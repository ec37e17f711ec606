// SPDX-License-Identifier: Apache-2.0
// `oarlock doctor` against this host, and against hosts that lack one thing at a time: a filter around it plays them. Every case
// has its twin of truth: where doctor says that all is well a launch works, and where it names something, the same launch ends
// in exit code 70 with the code that doctor named.
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "notif/abi/landlock.h"
#include "notif/abi/process.h"
#include "notif/base/pass_fd.h"
#include "notif/json.h"
#include "tests/live/bad_input_support.h"
#include "tests/support/daemon.h"
#include "tests/support/kernel_facts.h"

namespace oarlock::test {
namespace {

constexpr uid_t kNobody = 65534;
constexpr const char* kProfile = "seccomp profile";  // where the remedy is, for what a filter takes away
constexpr long kIoUringSetup = 425, kIoUringRegister = 427;

// What doctor said.
struct Diagnosis {
  int code = -1;
  Json json;
  std::string text;

  [[nodiscard]] std::vector<std::string> Unavailable() const {
    std::vector<std::string> ids;
    for (const Json& id : json.value("unavailable", Json::array())) ids.push_back(id.get<std::string>());
    return ids;
  }
  [[nodiscard]] Json Check(const std::string& id) const {
    for (const Json& check : json.value("checks", Json::array()))
      if (check.value("id", "") == id) return check;
    return Json::object();
  }
  [[nodiscard]] std::string State(const std::string& id) const { return Check(id).value("state", "absent"); }
  [[nodiscard]] std::string Field(const std::string& id, const char* name) const { return Check(id).value(name, ""); }
  [[nodiscard]] Json Launch(const std::string& way) const {
    for (const Json& launch : json.value("launches", Json::array()))
      if (launch.value("way", "") == way) return launch;
    return Json::object();
  }
};

class DoctorTest : public MarkerTest {
 protected:
  // Hosts that lack one thing are made of one that lacks nothing. ReportOnceTest.DoctorAgrees asks doctor on older ones.
  void SetUp() override {
    if (KernelLandlockAbi() >= 6) return;
    const Diagnosis bare = Diagnose();
    if (bare.code != 0) GTEST_SKIP() << "this host lacks " << bare.json.value("unavailable", Json::array());
  }
  // What stands around doctor and around the launch alike.
  std::function<void()> around_;
  std::optional<uid_t> uid_;
  std::map<std::string, std::string> environment_;

  void As(uid_t uid) {
    uid_ = uid;
    ASSERT_EQ(::chown((t_ / "state").c_str(), uid, uid), 0);
  }
  [[nodiscard]] ProcessOptions Around(ProcessOptions options) const {
    for (const auto& [name, value] : environment_) options.environment[name] = value;
    options.uid = uid_;
    options.before_exec = around_;
    options.timeout = std::chrono::seconds(60);
    return options;
  }
  [[nodiscard]] Outcome Ask(std::vector<std::string> words) const {
    ProcessOptions options;
    options.argv = {OarlockPath(), "doctor"};
    options.argv.insert(options.argv.end(), words.begin(), words.end());
    options.environment["XDG_STATE_HOME"] = t_ / "state";
    return RunProcess(Around(options));
  }
  [[nodiscard]] static Diagnosis Read(const Outcome& outcome) {
    Diagnosis diagnosis;
    diagnosis.code = outcome.code;
    diagnosis.text = outcome.out + outcome.err;
    std::string problem;
    diagnosis.json = ParseStrictJson(outcome.out, &problem);
    EXPECT_EQ(problem, "") << diagnosis.text;
    EXPECT_EQ(outcome.err, "");
    return diagnosis;
  }
  [[nodiscard]] Diagnosis Diagnose() const { return Read(Ask({"--json"})); }
  [[nodiscard]] Outcome Launch(const std::string& more = "") const { return RunProcess(Around(WithPolicy(Good(more)))); }

  // Doctor names exactly `ids`, each with a reason, a remedy and `code`, and the launch ends with that code.
  void Names(const std::vector<std::string>& ids, const std::string& code, const std::string& remedy = "") const {
    const Diagnosis diagnosis = Diagnose();
    EXPECT_EQ(diagnosis.code, 1) << diagnosis.text;
    EXPECT_EQ(diagnosis.json.value("ok", true), false);
    EXPECT_EQ(diagnosis.Unavailable(), ids) << diagnosis.text;
    for (const std::string& id : ids) {
      EXPECT_EQ(diagnosis.State(id), "unavailable");
      EXPECT_NE(diagnosis.Field(id, "found"), "");
      EXPECT_NE(diagnosis.Field(id, "remedy"), "");
      EXPECT_NE(diagnosis.Field(id, "remedy").find(remedy), std::string::npos) << diagnosis.Field(id, "remedy");
      EXPECT_NE(diagnosis.Field(id, "stops"), "");
      EXPECT_EQ(diagnosis.Field(id, "code"), code);
    }
    EXPECT_EQ(diagnosis.Launch("sandbox-exec").value("confined", false), false);
    ExpectStopped(Launch(), 70, code + " ");
  }
  void NamesUnder(const OuterFilter& filter, const std::vector<std::string>& ids, const std::string& code,
                  const std::string& remedy = kProfile) {
    around_ = filter.BeforeExec();
    Names(ids, code, remedy);
    around_ = {};
  }
  void AllIsWell() const {
    const Diagnosis diagnosis = Diagnose();
    EXPECT_EQ(diagnosis.code, 0) << diagnosis.text;
    EXPECT_EQ(diagnosis.json.value("ok", false), true);
    EXPECT_EQ(diagnosis.Unavailable(), std::vector<std::string>());
    EXPECT_EQ(diagnosis.Launch("run").value("confined", false), true);
    EXPECT_EQ(diagnosis.Launch("sandbox-exec").value("confined", false), true);
    ExpectRan(Launch());
  }
};

// --- as it is -----------------------------------------------------------------------------------------------------------

TEST_F(DoctorTest, ThisHost) { AllIsWell(); }

TEST_F(DoctorTest, Text) {
  const Outcome outcome = Ask({});
  EXPECT_EQ(outcome.code, 0) << outcome.out << outcome.err;
  EXPECT_EQ(outcome.err, "");
  EXPECT_TRUE(outcome.out.ends_with("\n\nEverything of the profile 'module' can be enforced here.\n")) << outcome.out;
  const Diagnosis diagnosis = Diagnose();
  // One line each, then an empty one and the sum.
  EXPECT_EQ(std::ranges::count(outcome.out, '\n'), diagnosis.json["checks"].size() + diagnosis.json["launches"].size() + 2);
  for (const Json& check : diagnosis.json["checks"])
    EXPECT_NE(outcome.out.find(" " + check["id"].get<std::string>() + ": "), std::string::npos) << check;

  OuterFilter filter;
  around_ = filter.Answer(kIoUringSetup, EPERM).BeforeExec();
  const Outcome lacking = Ask({});
  EXPECT_EQ(lacking.code, 1);
  EXPECT_NE(lacking.out.find("\nunavailable  io_uring: io_uring_setup gave EPERM. Remedy: "), std::string::npos) << lacking.out;
  EXPECT_TRUE(lacking.out.ends_with("\n\nUnavailable here: io_uring.\n")) << lacking.out;
}

TEST_F(DoctorTest, Usage) {
  EXPECT_EQ(Ask({"--profile", "nonsense"}).code, 64);
  EXPECT_EQ(Ask({"--nonsense"}).code, 64);
  EXPECT_EQ(Ask({"surplus"}).code, 64);
  EXPECT_EQ(Ask({"--help"}).code, 0);
}

TEST_F(DoctorTest, LeavesNothingBehind) {
  const Diagnosis diagnosis = Diagnose();
  EXPECT_EQ(diagnosis.code, 0) << diagnosis.text;
  std::vector<std::string> left;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(t_ / "state"))
    if (!entry.is_directory()) left.push_back(entry.path());
  EXPECT_EQ(left, std::vector<std::string>());
  EXPECT_FALSE(std::ranges::any_of(std::filesystem::directory_iterator(t_ / "state/oarlock"),
                                   [](const auto& entry) { return entry.path().filename().string().starts_with(".doctor"); }));
}

// --- as another user ------------------------------------------------------------------------------------------------------

TEST_F(DoctorTest, Nobody) {
  As(kNobody);
  std::string scope;
  std::ifstream("/proc/sys/kernel/yama/ptrace_scope") >> scope;
  if (!scope.empty() && scope != "0") GTEST_SKIP() << "Yama's ptrace_scope is " << scope << ": see DoctorTest.Yama";
  AllIsWell();
  const Diagnosis diagnosis = Diagnose();
  EXPECT_EQ(diagnosis.State("run_as"), "limited");
  EXPECT_EQ(diagnosis.Field("run_as", "code"), "K_IDENTITY");
  EXPECT_NE(diagnosis.Field("run_as", "remedy").find("CAP_SETUID"), std::string::npos);
  ExpectStopped(Launch(R"("run_as":{"uid":1,"gid":1})"), 70, "K_IDENTITY ");
  // A login session has one; a test has none.
  EXPECT_EQ(diagnosis.State("runtime_directory"), "limited");
  const std::string runtime = t_.MakeDirectory("runtime", 0700, kNobody, kNobody);
  environment_["XDG_RUNTIME_DIR"] = runtime;
  EXPECT_EQ(Diagnose().State("runtime_directory"), "ok");
}

TEST_F(DoctorTest, RunAsOfRoot) {
  const Diagnosis diagnosis = Diagnose();
  EXPECT_EQ(diagnosis.State("run_as"), "ok");
  ExpectRan(Launch(R"("run_as":{"uid":1,"gid":1})"));
}

TEST_F(DoctorTest, RootWithoutSomeCapabilities) {
  struct Case {
    int capability;
    const char* code;
  };
  constexpr Case kCases[] = {{CAP_SETUID, "K_IDENTITY"}, {CAP_SETGID, "K_IDENTITY"}, {CAP_SYS_PTRACE, "K_NOTIFY"}};
  for (const auto& [capability, code] : kCases) {
    SCOPED_TRACE(capability);
    around_ = [capability] {
      if (::prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) != 0) ::_exit(118);
    };
    AllIsWell();
    const Diagnosis diagnosis = Diagnose();
    EXPECT_EQ(diagnosis.State("run_as"), "limited");
    EXPECT_EQ(diagnosis.Field("run_as", "code"), code) << diagnosis.text;
    ExpectStopped(Launch(R"("run_as":{"uid":1,"gid":1})"), 70, std::string(code) + " ");
  }
}

TEST_F(DoctorTest, Yama) {
  std::string scope;
  if (!(std::ifstream("/proc/sys/kernel/yama/ptrace_scope") >> scope)) GTEST_SKIP() << "this kernel has no Yama";
  As(kNobody);
  const Diagnosis diagnosis = Diagnose();
  const bool well = diagnosis.State("ptrace.unrelated") == "ok";
  EXPECT_NE(diagnosis.Field("ptrace.unrelated", "found").find(scope), std::string::npos);
  EXPECT_EQ(well, scope == "0");
  if (well) ExpectRan(Launch());
  else ExpectStopped(Launch(), 70, "K_NOTIFY ");
}

// --- one thing is missing ---------------------------------------------------------------------------------------------------

TEST_F(DoctorTest, NoIoUring) {
  for (const int error : {EPERM, ENOSYS, ENOMEM}) {
    SCOPED_TRACE(error);
    OuterFilter filter;
    NamesUnder(filter.Answer(kIoUringSetup, error), {"io_uring"}, "K_NOTIFY", error == ENOMEM ? "RLIMIT_MEMLOCK" : "io_uring_setup");
  }
}

TEST_F(DoctorTest, NoIoUringRegister) {
  OuterFilter filter;
  NamesUnder(filter.Answer(kIoUringRegister, EPERM), {"io_uring.personality", "io_uring.workers"}, "K_NOTIFY");
}

TEST_F(DoctorTest, NoListener) {
  constexpr auto kFlags = static_cast<uint32_t>(abi::kSeccompFlagNewListener | abi::kSeccompFlagWaitKillableRecv);
  // EINVAL is what a kernel says that does not know the flag.
  for (const auto& [error, remedy] : {std::pair(EPERM, kProfile), std::pair(ENOSYS, kProfile), std::pair(EINVAL, "Linux 5.19")}) {
    SCOPED_TRACE(error);
    OuterFilter filter;
    NamesUnder(filter.AnswerWhere(SYS_seccomp, 1, kFlags, error), {"seccomp.listener"}, "K_SECCOMP", remedy);
  }
}

TEST_F(DoctorTest, AnotherListenerAroundUs) {
  // In flight between two sockets of ours, so that no process is needed for it.
  int pair[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
  const UniqueFd ours(pair[0]), theirs(pair[1]);
  around_ = [&] {
    OuterFilter filter;
    const int listener = filter.Notify(SYS_vhangup).Install(abi::kSeccompFlagNewListener);
    if (listener < 0 || SendWithFd(theirs.get(), "", 1, listener) != 1) ::_exit(118);
  };
  Names({"seccomp.listener"}, "K_SECCOMP");
  EXPECT_NE(Diagnose().Field("seccomp.listener", "found").find("EBUSY: another listener"), std::string::npos);
}

TEST_F(DoctorTest, ListenerThatCannotBeUsed) {
  // As a security module does that allows the filter and forbids the listener's ioctls.
  OuterFilter filter;
  filter.AnswerWhere(SYS_ioctl, 1, static_cast<uint32_t>(abi::kIoctlNotifRecv), EPERM);
  NamesUnder(filter, {"seccomp.answer"}, "K_NOTIFY", "ioctls");
}

TEST_F(DoctorTest, NoLandlock) {
  for (const auto& [error, remedy] : {std::pair(ENOSYS, kProfile), std::pair(EPERM, kProfile), std::pair(EOPNOTSUPP, "lsm=")}) {
    SCOPED_TRACE(error);
    OuterFilter filter;
    NamesUnder(filter.Answer(abi::kSysLandlockCreateRuleset, error), {"landlock"}, "K_LANDLOCK", remedy);
  }
}

TEST_F(DoctorTest, LandlockThatIsSaidToBeDone) {
  OuterFilter restrict, add;
  NamesUnder(restrict.Answer(abi::kSysLandlockRestrictSelf, 0), {"landlock"}, "K_LANDLOCK");
  NamesUnder(add.Answer(abi::kSysLandlockAddRule, 0), {"landlock"}, "K_LANDLOCK");
}

TEST_F(DoctorTest, NoPidfdGetfd) {
  for (const int error : {EPERM, ENOSYS}) {
    OuterFilter filter;
    NamesUnder(filter.Answer(abi::kSysPidfdGetfd, error), {"pidfd_getfd"}, "K_NOTIFY");
  }
}

TEST_F(DoctorTest, NoPidfdOpen) {
  OuterFilter filter;
  NamesUnder(filter.Answer(abi::kSysPidfdOpen, EPERM), {"pidfd_open"}, "K_NOTIFY");
  // `oarlock run` says so, and does not wait for ever.
  OuterFilter again;
  around_ = again.Answer(abi::kSysPidfdOpen, EPERM).BeforeExec();
  ProcessOptions run;
  run.argv = {OarlockPath(), "run", "--quiet", "--", "/bin/echo", "RAN"};
  run.environment["XDG_STATE_HOME"] = t_ / "state";
  const Outcome outcome = RunProcess(Around(run));
  EXPECT_EQ(outcome.code, 125);
  EXPECT_EQ(outcome.out, "");
  EXPECT_NE(outcome.err.find("pidfd_open: EPERM"), std::string::npos) << outcome.err;
}

TEST_F(DoctorTest, NoProcessVmReadv) {
  for (const int error : {EPERM, ENOSYS}) {
    OuterFilter filter;
    NamesUnder(filter.Answer(SYS_process_vm_readv, error), {"process_vm_readv"}, "K_NOTIFY");
  }
}

TEST_F(DoctorTest, PrivilegesThatCannotBeGivenUp) {
  OuterFilter ambient, no_new_privs;
  NamesUnder(ambient.AnswerWhere(SYS_prctl, 0, PR_CAP_AMBIENT, EPERM), {"privileges"}, "K_CAPS");
  NamesUnder(no_new_privs.AnswerWhere(SYS_prctl, 0, PR_SET_NO_NEW_PRIVS, 0), {"privileges"}, "K_NNP");
}

TEST_F(DoctorTest, NoOpenat2) {
  // As profiles older than the call have it.
  OuterFilter filter;
  NamesUnder(filter.Answer(SYS_openat2, ENOSYS), {"openat2"}, "P_PATH");
}

TEST_F(DoctorTest, NoCloseRange) {
  for (const int error : {ENOSYS, EPERM}) {
    OuterFilter filter;
    NamesUnder(filter.Answer(SYS_close_range, error), {"close_range"}, "K_UNSUPPORTED");
  }
}

TEST_F(DoctorTest, StepsThatAreSaidToBeDone) {
  OuterFilter close_range, signals;
  NamesUnder(close_range.Answer(SYS_close_range, 0), {"close_range"}, "K_UNSUPPORTED");
  NamesUnder(signals.Answer(SYS_rt_sigprocmask, 0), {"session"}, "K_UNSUPPORTED");
}

TEST_F(DoctorTest, AFilterThatTakesNothingAway) {
  OuterFilter filter;
  around_ = filter.Answer(SYS_vhangup, EPERM).BeforeExec();
  AllIsWell();
  EXPECT_NE(Diagnose().Field("surroundings", "found").find("filters around this process: 1"), std::string::npos);
}

// Older kernels lack these, and all goes on.
TEST_F(DoctorTest, WhatOlderKernelsLack) {
  struct Case {
    const char* id;
    OuterFilter filter;
  };
  constexpr auto kSetFlags = static_cast<uint32_t>(abi::kIoctlNotifSetFlags);
  Case cases[] = {{"seccomp.sync_wake_up", OuterFilter().AnswerWhere(SYS_ioctl, 1, kSetFlags, EINVAL)},
                  {"pidfd.thread", OuterFilter().AnswerWhere(SYS_pidfd_open, 1, abi::kPidfdThread, EINVAL)},
                  {"so_peerpidfd", OuterFilter().AnswerWhere(SYS_getsockopt, 2, abi::kSoPeerPidfd, ENOPROTOOPT)},
                  {"so_passrights", OuterFilter().AnswerWhere(SYS_setsockopt, 2, abi::kSoPassRights, ENOPROTOOPT)}};
  for (Case& one : cases) {
    SCOPED_TRACE(one.id);
    around_ = one.filter.BeforeExec();
    AllIsWell();
    const Diagnosis diagnosis = Diagnose();
    EXPECT_EQ(diagnosis.State(one.id), "limited");
    EXPECT_NE(diagnosis.Field(one.id, "remedy").find("Linux"), std::string::npos);
    for (const Json& check : diagnosis.json["checks"]) EXPECT_TRUE(check["state"] != "limited" || check["id"] == one.id) << check;
  }
}

// --- limits and places -----------------------------------------------------------------------------------------------------

std::function<void()> Limited(__rlimit_resource_t resource, rlim_t value) {
  return [=] {
    const rlimit limit{value, value};
    if (::setrlimit(resource, &limit) != 0) ::_exit(118);
  };
}

TEST_F(DoctorTest, FileSize) {
  constexpr rlim_t kLeast = 64 * 1024 * 1024;
  around_ = Limited(RLIMIT_FSIZE, kLeast - 1);
  Names({"limits.file_size"}, "K_NOTIFY");
  around_ = Limited(RLIMIT_FSIZE, kLeast);
  AllIsWell();
  // Not even the trial's own file can be written, and doctor does not die of it.
  around_ = Limited(RLIMIT_FSIZE, 0);
  Names({"limits.file_size", "state_directory"}, "K_NOTIFY");
}

TEST_F(DoctorTest, Files) {
  around_ = Limited(RLIMIT_NOFILE, 259);
  Names({"limits.files"}, "K_NOTIFY");
  around_ = Limited(RLIMIT_NOFILE, 260);
  AllIsWell();
  EXPECT_EQ(Diagnose().State("limits.files"), "limited");
}

TEST_F(DoctorTest, Processes) {
  As(kNobody);
  around_ = Limited(RLIMIT_NPROC, 1);
  Names({"processes"}, "K_NOTIFY");
}

TEST_F(DoctorTest, StateDirectory) {
  As(kNobody);
  const std::string others = t_.MakeDirectory("others", 0755, 1, 1);
  environment_["XDG_STATE_HOME"] = others;
  Names({"state_directory"}, "K_NOTIFY");
  EXPECT_NE(Diagnose().Field("state_directory", "remedy").find("XDG_STATE_HOME"), std::string::npos);
  // Writable by us, and by everybody: somebody else could write our log.
  const std::string open = t_.MakeDirectory("open", 0755, kNobody, kNobody);
  (void)t_.MakeDirectory("open/oarlock", 0755, kNobody, kNobody);
  (void)t_.MakeDirectory("open/oarlock/audit", 0777, kNobody, kNobody);
  environment_["XDG_STATE_HOME"] = open;
  const Diagnosis diagnosis = Diagnose();
  EXPECT_EQ(diagnosis.Unavailable(), std::vector<std::string>{"state_directory"}) << diagnosis.text;
  ExpectStopped(Launch(), 70, "K_NOTIFY ");
}

// --- the node's supervisor -------------------------------------------------------------------------------------------------

TEST_F(DoctorTest, Supervisor) {
  Daemon daemon;
  environment_["OARLOCK_SUPERVISOR"] = daemon.socket();
  const Diagnosis diagnosis = Diagnose();
  EXPECT_EQ(diagnosis.code, 0) << diagnosis.text;
  EXPECT_EQ(diagnosis.State("supervisor"), "ok");
  EXPECT_EQ(diagnosis.Launch("node").value("confined", false), true);
  ExpectRan(Launch());
  const auto log = daemon.Log();
  EXPECT_TRUE(std::ranges::any_of(log, [](const LogLine& line) { return line.text.find("oarlock-doctor") != std::string::npos; }));
}

TEST_F(DoctorTest, SupervisorThatIsNotThere) {
  environment_["OARLOCK_SUPERVISOR"] = t_ / "nobody.sock";
  const Diagnosis diagnosis = Diagnose();
  EXPECT_EQ(diagnosis.code, 1);
  EXPECT_EQ(diagnosis.Unavailable(), std::vector<std::string>{"supervisor"}) << diagnosis.text;
  EXPECT_NE(diagnosis.Field("supervisor", "remedy").find("oarlockd"), std::string::npos);
  ExpectStopped(Launch(), 70, "K_NOTIFY ");
}

TEST_F(DoctorTest, SupervisorThatIsForOneLaunch) {
  environment_["OARLOCK_SUPERVISOR"] = "fd:9";
  const Diagnosis diagnosis = Diagnose();
  EXPECT_EQ(diagnosis.code, 0) << diagnosis.text;
  EXPECT_EQ(diagnosis.State("supervisor"), "info");
  EXPECT_EQ(diagnosis.json["launches"].size(), 1u) << diagnosis.text;
}

TEST_F(DoctorTest, SupervisorThatDoesNotAdmitUs) {
  Daemon daemon({"--admit-uid", "1"});
  As(kNobody);
  environment_["OARLOCK_SUPERVISOR"] = daemon.socket();
  const Diagnosis diagnosis = Diagnose();
  EXPECT_EQ(diagnosis.Unavailable(), std::vector<std::string>{"supervisor"}) << diagnosis.text;
  EXPECT_NE(diagnosis.Field("supervisor", "remedy").find("--admit-uid"), std::string::npos);
  ExpectStopped(Launch(), 70, "K_NOTIFY ");
}

// A container without io_uring on a node with a supervisor: launches work, and only `oarlock run` does not.
TEST_F(DoctorTest, SupervisorHasWhatWeLack) {
  Daemon daemon;
  environment_["OARLOCK_SUPERVISOR"] = daemon.socket();
  for (const auto& [nr, id] : {std::pair(kIoUringSetup, "io_uring"), std::pair(long{SYS_process_vm_readv}, "process_vm_readv")}) {
    SCOPED_TRACE(id);
    OuterFilter filter;
    around_ = filter.Answer(nr, EPERM).BeforeExec();
    const Diagnosis diagnosis = Diagnose();
    EXPECT_EQ(diagnosis.code, 0) << diagnosis.text;
    EXPECT_EQ(diagnosis.State(id), "limited");
    EXPECT_EQ(diagnosis.Field(id, "stops"), "'oarlock run'");
    EXPECT_EQ(diagnosis.Launch("run").value("confined", true), false);
    ExpectRan(Launch());
    ProcessOptions run;
    run.argv = {OarlockPath(), "run", "--quiet", "--", "/bin/true"};
    run.environment["XDG_STATE_HOME"] = t_ / "state";
    EXPECT_EQ(RunProcess(Around(run)).code, 125);
  }
}

// --- inside ----------------------------------------------------------------------------------------------------------------

TEST_F(DoctorTest, InsideASandbox) {
  const std::string built = OARLOCK_BINARY_DIR;
  const std::string policy = WritePolicy(Good("\"ro\":[\"" + built + "/bin\",\"" + built + "/libexec\"]"));
  const ProcessOptions options = Launcher({policy, "--", OarlockPath(), "doctor", "--json"});
  const Diagnosis diagnosis = Read(RunProcess(Around(options)));
  EXPECT_EQ(diagnosis.code, 1) << diagnosis.text;
  EXPECT_EQ(diagnosis.State("seccomp.listener"), "unavailable");
  EXPECT_EQ(diagnosis.State("io_uring"), "unavailable");
  // One domain inside another is what Landlock is for.
  EXPECT_EQ(diagnosis.State("landlock"), "ok") << diagnosis.text;
  EXPECT_NE(diagnosis.Field("surroundings", "found").find("filters around this process: 1"), std::string::npos);
  for (const char* way : {"run", "sandbox-exec"}) EXPECT_EQ(diagnosis.Launch(way).value("confined", true), false) << way;
  // And so it is told by a launch in there, which never runs its program.
  const std::string inner = t_.WriteFile("work/inner.json", Good(), 0644);
  const Outcome launch =
      RunProcess(Around(Launcher({policy, "--", OarlockPath(), "sandbox-exec", inner, "--", "/bin/sh", "-c", "echo RAN"})));
  ExpectStopped(launch, 70, "");
  constexpr size_t kPrefix = sizeof("sandbox launch: ") - 1;
  const std::string code = launch.err.substr(kPrefix, launch.err.find(' ', kPrefix) - kPrefix);
  EXPECT_EQ(diagnosis.Launch("sandbox-exec").value("code", ""), code) << diagnosis.text;
  const auto ids = diagnosis.Unavailable();
  EXPECT_TRUE(std::ranges::any_of(ids, [&](const std::string& id) { return diagnosis.Field(id, "code") == code; })) << code;
}

}  // namespace
}  // namespace oarlock::test
