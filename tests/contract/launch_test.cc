// SPDX-License-Identifier: Apache-2.0
// The launch itself: what is set, in which order, on which kernels, and what a launch that is refused leaves behind.
#include <elf.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "child/landlock.h"
#include "notif/abi/process.h"
#include "notif/base/sha256.h"
#include "tests/contract/support.h"
#include "tests/contract/tracer.h"
#include "tests/support/daemon.h"
#include "tests/support/servers.h"

namespace oarlock::test {
namespace {

class Launch : public EachUser {};
OARLOCK_EACH_USER(Launch);
class LaunchMarker : public MarkerTest {};

ProcessOptions Status() {
  ProcessOptions options;
  options.argv = {OarlockPath(), "sandbox-status"};
  return options;
}

int KernelAbi() { return child::LandlockAbi().value_or(0); }

// What rests on the supervisor alone, whatever Landlock can.
const std::set<std::string> kNet = {"net.none", "net.egress-allowlist", "net.destination", "no_loopback", "no_link_local", "unix.pathname"};

// --- capabilities by kernel ----------------------------------------------------------------------------------------------------

TEST(Report, R_OB_02_ParityFromAbi6) {
  if (KernelAbi() < 6) GTEST_SKIP() << "this kernel has Landlock ABI " << KernelAbi();
  for (int abi = 6; abi <= KernelAbi(); ++abi) {
    const Json report = Parsed(RunCapped(Status(), abi).out);
    EXPECT_EQ(report["landlock_abi"], abi);
    for (const char* always : {"filesystem", "ipc", "net.none", "net.egress-allowlist", "no_loopback", "no_link_local", "gpu.compute",
                               "exec_writable_deny", "folders.read", "folders.write", "net.destination", "unix.pathname", "sysv_ipc"})
      EXPECT_EQ(report["enforcement"][always], "enforced") << always;
  }
  const Json before = Parsed(RunCapped(Status(), 5).out);
  EXPECT_EQ(before["landlock_abi"], 5);
  // Signals are the supervisor's to judge there.
  EXPECT_EQ(before["enforcement"]["ipc"], "enforced");
}

TEST(Report, R_OB_42_FilesAndProgramsAtAbi3) {
  const Json report = Parsed(RunCapped(Status(), 3).out);
  EXPECT_EQ(report["landlock_abi"], 3);
  for (const char* name : {"filesystem", "net.none", "exec_writable_deny", "gpu.compute"}) EXPECT_EQ(report["enforcement"][name], "enforced") << name;
}

// The wall's port rules knew no addresses: only where destinations are held may any of these be said to be.
TEST(Report, R_OB_03_R_OB_43_NetworkRestsOnDestinations) {
  for (const int abi : {3, 4, 5, 7}) {
    for (const bool listener : {true, false}) {
      SCOPED_TRACE(std::to_string(abi) + (listener ? "" : ", no listener"));
      ProcessOptions options = Status();
      OuterFilter filter;
      (void)filter.Answer(SYS_seccomp, EPERM);
      if (!listener) options.before_exec = filter.BeforeExec();
      const Json report = Parsed(RunCapped(options, abi).out);
      EXPECT_EQ(report["listener"], listener);
      for (const std::string& name : kNet) EXPECT_EQ(report["enforcement"][name], listener ? "enforced" : "unavailable") << name;
      EXPECT_EQ(report["enforcement"]["net.egress-any"], "unavailable");
    }
  }
}

TEST_F(LaunchMarker, R_OB_03_WorkThatNeedsWhatThereIsNotIsNotStarted) {
  ProcessOptions options = WithPolicy(Good(R"("require":["ipc"],"sysv_ipc":true)"));
  ExpectStopped(RunProcess(options), 70, "K_REQUIRED /require/0: ", "'ipc' is unavailable");
  options = WithPolicy(Good(R"("require":["ipc"])"));
  ExpectRan(RunCapped(options, 5));
  ExpectRan(RunProcess(options));
  // The proxy's mode needs a listener at any version, and so does every other.
  OuterFilter filter;
  (void)filter.Answer(SYS_seccomp, EPERM);
  for (const char* policy : {R"("net":"egress-allowlist","proxy_port":3128)", R"("require":["net.egress-allowlist"])", R"("net":"none")"}) {
    options = WithPolicy(Good(policy));
    ExpectRan(RunCapped(options, 3));
    options.before_exec = filter.BeforeExec();
    ExpectStopped(RunCapped(options, 3), 70, "K_SECCOMP ");
  }
}

// A kernel before 6.2 cannot judge truncation. Where newer pidfds were put into such a kernel, the launch must still see to it.
TEST_F(LaunchMarker, R_MO_42_R_OB_42_FilesAreHeldAtEveryAbi) {
  const std::string outside = t_.MakeDirectory("outside", 0777);
  (void)t_.WriteFile("outside/f", "text", 0666);
  (void)t_.WriteFile("work/f", "text", 0666);
  std::filesystem::create_directory(work_ + "/sub");
  const Words words = {"write," + work_ + "/new", "read," + work_ + "/f", "truncate," + outside + "/f,0", "open," + outside + "/f," + std::to_string(O_TRUNC),
                       "read," + outside + "/f", "write," + outside + "/new", "list,/root", "unlink," + outside + "/f",
                       "rename," + work_ + "/f," + outside + "/g", "exec," + work_ + "/program", "memoryexec", "socket,2,1,0", "to,127.0.0.1,9"};
  std::filesystem::copy_file("/bin/true", work_ + "/program");
  for (int abi = 1; abi <= KernelAbi(); ++abi) {
    SCOPED_TRACE(abi);
    ProcessOptions options = WithPolicy("{\"rw\":[\"" + work_ + "\"],\"ro\":[\"" OARLOCK_BINARY_DIR "/tests/bin\"]}");
    options.argv.resize(4);
    for (const std::string& word : WithProbe(words)) options.argv.push_back(word);
    const Outcome outcome = RunCapped(options, abi);
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(ResultOf(outcome, words[0]), "0");
    EXPECT_EQ(ResultOf(outcome, words[1]), "0 text");
    // Below ABI 3 it is the supervisor who refuses truncation by a path.
    for (size_t i = 2; i < 9; ++i) EXPECT_EQ(ResultOf(outcome, words[i]), "EACCES") << words[i];
    EXPECT_EQ(ReadWholeFile(outside + "/f"), "text");
    EXPECT_EQ(ResultOf(outcome, words[9]), "EACCES");
    const std::string memory = ResultOf(outcome, words[10]);
    EXPECT_TRUE(memory == "ENOSYS" || memory == "memfd:ENOSYS") << memory;
    EXPECT_EQ(ResultOf(outcome, words[11]), "EAFNOSUPPORT");
    EXPECT_EQ(ResultOf(outcome, words[12]), "socket:EAFNOSUPPORT");
    std::filesystem::remove(work_ + "/new");
  }
  ProcessOptions bare;
  bare.argv = WithProbe({words[0], words[9], words[10], "rename," + work_ + "/f," + outside + "/g", words[2], words[7]});
  EXPECT_EQ(RunProcess(bare).out, words[0] + " -> 0\n" + words[9] + " -> exit 0\nmemoryexec -> exit 9\n" + "rename," + work_ + "/f," + outside + "/g -> 0\n" + words[2] + " -> 0\n" + words[7] + " -> 0\n");
}

// --- steps and their order -----------------------------------------------------------------------------------------------------

TEST_P(Launch, R_OB_05_R_MO_24_NoNewPrivsIsSetBeforeExec) {
  // A setuid program of root's, started by nobody: what it is at all is shown by the hook that runs before the launch.
  TemporaryDirectory directory;
  const std::string helper = directory / "setuid";
  std::filesystem::copy_file(ContractProbe(), helper);
  ASSERT_EQ(::chmod(helper.c_str(), 04755), 0);
  Sandbox sandbox;
  (void)sandbox.directory().WriteFile("policy.json", "{\"ro\":[\"" + directory.path() + "\",\"" OARLOCK_BINARY_DIR "/tests/bin\"]}");
  sandbox.As(GetParam());
  ProcessOptions options = sandbox.Options({helper, "euid", "status,NoNewPrivs"});
  std::string launch;
  for (const std::string& word : options.argv) launch += "'" + word + "' ";
  options.argv = {"/bin/sh", "-c", "'" + helper + "' euid 'status,NoNewPrivs'; exec " + launch};
  const Outcome outcome = RunProcess(options);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "euid -> 0 0\nstatus,NoNewPrivs -> 0 0\neuid -> 0 " + std::to_string(GetParam()) + "\nstatus,NoNewPrivs -> 0 1\n")
      << "the first two lines are the hook's: the twin";
}

TEST(Steps, R_OB_06_R_OB_07_NoNewPrivsThenLandlockThenSeccompThenExec) {
  Sandbox sandbox;
  for (int abi = 1; abi <= KernelAbi(); ++abi) {
    SCOPED_TRACE(abi);
    const Trace trace = RunTraced(sandbox.Options(WithProbe({"status,Seccomp_filters", "status,NoNewPrivs"})), 1, abi);
    ASSERT_EQ(trace.outcome.code, 0) << trace.outcome.err;
    std::vector<std::string> order;
    for (const TracedCall& call : trace.calls) {
      if (call.nr == SYS_prctl && call.arguments[0] == PR_SET_NO_NEW_PRIVS && call.result == 0) order.emplace_back("no_new_privs");
      if (call.nr == abi::kSysLandlockRestrictSelf && call.result == 0) order.emplace_back("landlock");
      if (call.nr == SYS_seccomp && call.arguments[0] == abi::kSeccompSetModeFilter && call.result >= 0) order.emplace_back("seccomp");
      if (call.nr == SYS_execve) order.emplace_back("exec");
    }
    EXPECT_EQ(order, (std::vector<std::string>{"no_new_privs", "landlock", "seccomp", "exec"}));
    // All that this version can handle is handled.
    const auto created = trace.Of(abi::kSysLandlockCreateRuleset);
    const auto real = std::ranges::find_if(created, [](const TracedCall& call) { return call.arguments[0] != 0 && call.result >= 0; });
    ASSERT_NE(real, created.end());
    const child::LandlockRights rights = child::RightsOf(abi);
    EXPECT_EQ(real->ruleset.handled_access_fs, rights.fs);
    EXPECT_EQ(real->ruleset.handled_access_net, rights.net);
    EXPECT_EQ(real->ruleset.scoped, rights.scoped);
    // One filter more than around us.
    ProcessOptions own;
    own.argv = WithProbe({"status,Seccomp_filters"});
    const int outer = std::atoi(ResultOf(RunProcess(own), "status,Seccomp_filters").c_str() + 2);
    EXPECT_EQ(ResultOf(trace.outcome, "status,Seccomp_filters"), "0 " + std::to_string(outer + 1));
  }
}

TEST(Steps, R_MO_12_R_MO_13_ASmallStaticProgramOfOneThread) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "with a sanitizer it is neither small nor static";
#endif
  std::ifstream file(OarlockPath(), std::ios::binary);
  Elf64_Ehdr header{};
  file.read(reinterpret_cast<char*>(&header), sizeof(header));
  ASSERT_EQ(std::string(reinterpret_cast<char*>(header.e_ident), 4), "\x7f" "ELF");
  bool loader = false;
  for (int i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment{};
    file.seekg(static_cast<std::streamoff>(header.e_phoff + static_cast<uint64_t>(i) * header.e_phentsize));
    file.read(reinterpret_cast<char*>(&segment), sizeof(segment));
    loader |= segment.p_type == PT_INTERP;
  }
  Sandbox sandbox;
  const Trace trace = RunTraced(sandbox.Options(WithProbe({"ids"})), 1);
  EXPECT_EQ(trace.outcome.code, 0) << trace.outcome.err;
  EXPECT_FALSE(trace.several_threads);
  EXPECT_FALSE(trace.Of(abi::kSysLandlockRestrictSelf).empty());
#ifdef OARLOCK_SANITIZED
  GTEST_SKIP() << "a sanitizer's runtime is a library: " << loader;
#endif
  EXPECT_FALSE(loader) << "it is linked with libraries, which decide what runs in it";
  // What a launch maps and reads of it. Debug information is not loaded.
  uint64_t loaded = 0;
  for (int i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment{};
    file.seekg(static_cast<std::streamoff>(header.e_phoff + static_cast<uint64_t>(i) * header.e_phentsize));
    file.read(reinterpret_cast<char*>(&segment), sizeof(segment));
    if (segment.p_type == PT_LOAD) loaded += segment.p_filesz;
  }
  EXPECT_GT(loaded, 100'000U);
  EXPECT_LT(loaded, 8U << 20);
}

TEST_F(LaunchMarker, R_OB_09_WhatAroundUsRefusesAStepStopsTheLaunch) {
  // The seed's own list, beside FaultTest's: each of the three Landlock calls absent, seccomp forbidden.
  for (const auto& [nr, error, code] : std::vector<std::tuple<long, int, std::string>>{{abi::kSysLandlockCreateRuleset, ENOSYS, "K_LANDLOCK"},
                                                                                      {abi::kSysLandlockAddRule, ENOSYS, "K_LANDLOCK"},
                                                                                      {abi::kSysLandlockRestrictSelf, ENOSYS, "K_LANDLOCK"},
                                                                                      {SYS_seccomp, EPERM, "K_SECCOMP"}}) {
    OuterFilter filter;
    ProcessOptions options = WithPolicy(Good());
    options.before_exec = filter.Answer(nr, error).BeforeExec();
    ExpectStopped(RunProcess(options), 70, code + " ");
  }
  ExpectRan(RunProcess(WithPolicy(Good())));
}

// --- the process and its container ---------------------------------------------------------------------------------------------

TEST_P(Launch, R_OB_15_TheContainerIsAtLeastTheProcessGroup) {
  Sandbox sandbox;
  sandbox.As(GetParam());
  // Child and grandchild stay in the group; setsid leaves it, and is not found by the group.
  const std::string script = "sh -c 'sleep 300 & echo grandchild $!; wait' & echo child $!; setsid sh -c 'echo session $$; exec sleep 300' & echo module $$; wait";
  Process process(sandbox.Options({"/bin/sh", "-c", script}));
  ASSERT_TRUE(process.WaitFor("grandchild ") && process.WaitFor("session ") && process.WaitFor("module ") && process.WaitFor("child ")) << process.err();
  ASSERT_TRUE(Eventually([&] { (void)process.WaitFor("@", std::chrono::milliseconds(10)); return std::ranges::count(process.out(), '\n') >= 4; }));
  const auto pid = [&](const std::string& word) {
    for (size_t at = 0; at < process.out().size(); at = process.out().find('\n', at) + 1)
      if (process.out().compare(at, word.size() + 1, word + " ") == 0) return std::atoi(process.out().c_str() + at + word.size());
    return -1;
  };
  const pid_t module = pid("module"), child = pid("child"), grandchild = pid("grandchild"), session = pid("session");
  ASSERT_TRUE(module > 1 && child > 1 && grandchild > 1 && session > 1) << process.out();
  EXPECT_EQ(module, process.pid());
  EXPECT_EQ(::getpgid(child), module);
  EXPECT_EQ(::getpgid(grandchild), module);
  EXPECT_NE(::getpgid(session), module);
  const auto alive = [](pid_t p) {
    std::ifstream file("/proc/" + std::to_string(p) + "/stat");
    std::string text((std::istreambuf_iterator<char>(file)), {});
    return !text.empty() && text.find(") Z ") == std::string::npos;
  };
  ASSERT_EQ(::kill(-module, SIGKILL), 0);
  EXPECT_TRUE(Eventually([&] { return !alive(child) && !alive(grandchild) && !alive(module); }));
  EXPECT_TRUE(alive(session)) << "a session of its own is not in the group";
  (void)::kill(session, SIGKILL);
}

TEST_F(LaunchMarker, R_MO_02_AppliedAfterThePrivilegeIsDropped) {
  // A hook of root's before the launch is free; the module is nobody and confined.
  const std::string hook = t_.MakeDirectory("hook", 0700);
  (void)t_.WriteFile("hook/own", "root's", 0600);
  ProcessOptions options = WithPolicy(Good(R"("run_as":{"uid":65534,"gid":65534},"ro":[")" OARLOCK_BINARY_DIR R"(/tests/bin"])"));
  options.argv.resize(4);
  for (const std::string& word : WithProbe({"uid", "status,NoNewPrivs", "status,CapEff", "read," + hook + "/own", "write," + work_ + "/f", "write,/tmp/contract-not-here", "list,/root"})) options.argv.push_back(word);
  std::string launch;
  for (const std::string& word : options.argv) launch += "'" + word + "' ";
  options.argv = {"/bin/sh", "-c", ContractProbe() + " uid 'read," + hook + "/own' 'write," + hook + "/new'; exec " + launch};
  const Outcome outcome = RunProcess(options);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "uid -> 0 0 0\nread," + hook + "/own -> 0 root's\nwrite," + hook + "/new -> 0\n"
                         "uid -> 0 65534 65534\nstatus,NoNewPrivs -> 0 1\nstatus,CapEff -> 0 0000000000000000\nread," + hook + "/own -> EACCES\nwrite," + work_ +
                             "/f -> 0\nwrite,/tmp/contract-not-here -> EACCES\nlist,/root -> EACCES\n");
}

TEST_F(LaunchMarker, R_MO_33_WithoutAnyContainerOrPrivilegeWithinASecond) {
  ASSERT_EQ(::chown((t_ / "state").c_str(), 65534, 65534), 0);
  double best = 60;
  for (int i = 0; i < 5; ++i) {
    ProcessOptions options = WithPolicy(Good());
    options.uid = 65534;
    const Outcome outcome = RunProcess(options);
    ExpectRan(outcome);
    best = std::min(best, outcome.seconds);
  }
  EXPECT_LT(best, 1.0);
}

// --- what a refusal leaves behind ----------------------------------------------------------------------------------------------

// Every process whose environment or files show that it came of this test.
std::set<std::string> ProcessesWith(const std::string& text) {
  std::set<std::string> found;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
    const std::string pid = entry.path().filename();
    if (pid.find_first_not_of("0123456789") != std::string::npos || std::stoi(pid) == ::getpid()) continue;
    if (ReadWholeFile(entry.path() / "environ").find(text) != std::string::npos) found.insert(pid);
    for (const auto& fd : std::filesystem::directory_iterator(entry.path() / "fd", error))
      if (std::filesystem::read_symlink(fd.path(), error).string().find(text) != std::string::npos) found.insert(pid);
  }
  return found;
}
std::set<std::string> FilesBelow(const std::string& path) {
  std::set<std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(path)) files.insert(entry.path());
  return files;
}

TEST_F(LaunchMarker, R_MO_19_R_MO_38_ARefusedLaunchLeavesNothingBehind) {
  ASSERT_EQ(::mkdir((t_ / "runtime").c_str(), 0700), 0);
  struct Case {
    const char* name;
    std::string policy;
    int cap = 0;
  };
  for (const Case& one : std::vector<Case>{{"misspelt", Good("\"nett\":1"), 0},
                                           {"missing root", Good(R"("ro":["/nonexistent"])"), 0},
                                           {"not built", Good(R"("net":"egress-any")"), 0},
                                           {"no GPU of that name", Good(R"("gpu":true,"gpu_devices":["/etc/passwd"])"), 0},
                                           {"required", Good(R"("require":["cgroup.kill"])"), 5}}) {
    SCOPED_TRACE(one.name);
    ProcessOptions options = WithPolicy(one.policy);
    options.environment["XDG_RUNTIME_DIR"] = t_ / "runtime";
    const auto before = FilesBelow(t_.path());
    const Outcome outcome = RunCapped(options, one.cap);
    EXPECT_EQ(outcome.code, 70) << outcome.err;
    EXPECT_TRUE(Eventually([&] { return ProcessesWith(t_.path()).empty(); }, std::chrono::seconds(3))) << *ProcessesWith(t_.path()).begin();
    std::set<std::string> after = FilesBelow(t_.path());
    // A supervisor that had been started for it may have its log, and no more.
    std::erase_if(after, [&](const std::string& path) { return before.contains(path) || path.starts_with(t_ / "state"); });
    EXPECT_EQ(after, std::set<std::string>{});
  }
  // With the node's supervisor: no session, and as many descriptors as before.
  Daemon daemon;
  const size_t descriptors = daemon.Descriptors();
  for (const char* more : {R"("nett":1)", R"("ro":["/nonexistent"])", R"("require":["cgroup.kill"])"}) {
    ProcessOptions options = WithPolicy(Good(more));
    options.environment["OARLOCK_SUPERVISOR"] = daemon.socket();
    EXPECT_EQ(RunProcess(options).code, 70);
  }
  EXPECT_TRUE(Eventually([&] { return daemon.Descriptors() == descriptors; }));
  EXPECT_TRUE(std::ranges::none_of(daemon.Log(), [](const LogLine& line) { return line.class_uid == 5019; })) << "a session began";
  ProcessOptions options = WithPolicy(Good());
  options.environment["OARLOCK_SUPERVISOR"] = daemon.socket();
  ExpectRan(RunProcess(options));
  EXPECT_TRUE(std::ranges::any_of(daemon.Log(), [](const LogLine& line) { return line.class_uid == 5019; })) << "the twin";
}

TEST_F(LaunchMarker, R_MO_18_TheReportNamesThePolicyAndTheLauncher) {
  const std::string report_path = t_ / "report.json";
  std::set<std::string> hashes, builds;
  for (const char* module : {"one", "two", "one"}) {
    const std::string policy = "{\"version\":1,\"module\":\"" + std::string(module) + "\",\"rw\":[\"" + work_ + "\"],\"report\":\"" + report_path + "\"}";
    ExpectRan(RunProcess(WithPolicy(policy)));
    const Json report = Parsed(ReadWholeFile(report_path));
    EXPECT_EQ(report["policy_sha256"], Sha256Hex(policy));
    hashes.insert(report["policy_sha256"].get<std::string>());
    EXPECT_EQ(report["launcher"]["version"], OARLOCK_VERSION);
    builds.insert(report["launcher"]["build_id"].get<std::string>());
  }
  EXPECT_EQ(hashes.size(), 2U);
  ASSERT_EQ(builds.size(), 1U);
  // The id is of this very program, as any tool reads it from the file.
  EXPECT_EQ(builds.begin()->size(), 40U);
  std::string bytes;
  for (size_t i = 0; i + 1 < builds.begin()->size(); i += 2) bytes += static_cast<char>(std::stoi(builds.begin()->substr(i, 2), nullptr, 16));
  EXPECT_NE(ReadWholeFile(OarlockPath()).find(bytes), std::string::npos);
  EXPECT_EQ(ReadWholeFile(CliPath()).find(bytes), std::string::npos);
}

// --- kernels without Landlock --------------------------------------------------------------------------------------------------

TEST_F(LaunchMarker, R_MO_23_R_MO_40_R_MO_41_R_MO_43_WithoutLandlockStrictDoesNotRunAndSaysWhy) {
  // A user-space kernel answers ENOSYS; one with it built in but off, EOPNOTSUPP; a filter around us, EPERM.
  std::set<std::string> reasons;
  for (const int error : {ENOSYS, EOPNOTSUPP, EPERM}) {
    OuterFilter filter;
    (void)filter.Answer(abi::kSysLandlockCreateRuleset, error).Answer(abi::kSysLandlockAddRule, error).Answer(abi::kSysLandlockRestrictSelf, error);
    ProcessOptions options = Status();
    options.before_exec = filter.BeforeExec();
    const Json report = Parsed(RunProcess(options).out);
    EXPECT_TRUE(report["backend"].is_null());
    EXPECT_EQ(report["landlock_abi"], 0);
    EXPECT_EQ(report["enforcement"]["filesystem"], "unavailable");
    reasons.insert(report["reasons"]["filesystem"].get<std::string>());
    options = WithPolicy(Good());
    options.before_exec = filter.BeforeExec();
    ExpectStopped(RunProcess(options), 70, "K_LANDLOCK ", error == EOPNOTSUPP ? "lsm=" : "");
  }
  EXPECT_EQ(reasons.size(), 3U) << "each has its own words";
  EXPECT_EQ(Parsed(RunProcess(Status()).out)["backend"], "landlock") << "the twin";
}

}  // namespace
}  // namespace oarlock::test
