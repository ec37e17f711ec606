// SPDX-License-Identifier: Apache-2.0
// Wrong input to `oarlock sandbox-exec`: one clear line, the right exit code, and the module never ran.
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <fstream>

#include "policy/policy.h"
#include "tests/live/admission_support.h"
#include "tests/live/bad_input_support.h"
#include "tests/policy/bad_policies.h"
#include "tests/support/servers.h"

namespace oarlock::test {
namespace {

using Steps = std::vector<std::string>;

class BadInputTest : public MarkerTest {
 protected:
  // Without an answer of the launcher's own making: "CODE pointer: ".
  static std::string Beginning(const std::string& code, const std::string& pointer) {
    return code + " " + pointer + ": ";
  }
  void Stops(const std::string& policy, const std::string& code, const std::string& pointer,
             const std::string& part = "") const {
    SCOPED_TRACE(policy);
    ExpectStopped(RunProcess(WithPolicy(policy)), 70, Beginning(code, pointer), part);
  }
  static int Bound(int type, const std::string& path) {
    const int fd = ::socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.data(), path.size());
    EXPECT_EQ(::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0) << path;
    return fd;
  }
};

TEST_F(BadInputTest, AGoodPolicyRunsTheProgram) {
  // The twin of every case here: it does leave its marks.
  ExpectRan(RunProcess(WithPolicy(Good())));
  ExpectRan(RunProcess(WithPolicy(Good(R"("net":"egress-allowlist","proxy_port":3128)"))));
}

// --- policies ----------------------------------------------------------------------------------------------

TEST_F(BadInputTest, R_OB_12_R_MO_22_EveryWrongPolicyStopsTheLaunch) {
  for (const auto& bad : policy::testing::kBadPolicies) {
    SCOPED_TRACE(bad.name);
    const std::string line = policy::Problem{bad.code, bad.pointer, ""}.Line();
    ExpectStopped(RunProcess(WithPolicy(std::string(bad.text))), 70, line);
    // The same by the environment and by a descriptor, as far as it can be said there.
    if (bad.text.find('\0') == std::string_view::npos &&
        bad.text.find(R"("profile")") == std::string_view::npos &&
        &bad - &policy::testing::kBadPolicies[0] < 60) {
      ProcessOptions options = Launcher(Steps{"-", "--"} + Program());
      options.environment["MOAT_SANDBOX_POLICY"] = bad.text;
      const Outcome outcome = RunProcess(options);
      EXPECT_EQ(outcome.code, 70) << outcome.err;
      EXPECT_FALSE(Ran(outcome));
    }
  }
  ExpectRan(RunProcess(WithPolicy(Good())));
}

TEST_F(BadInputTest, R_OB_09_PathsThatAreNotThere) {
  Stops(Good(R"("ro":["/nonexistent/x"])"), "P_PATH", "/ro/0", "ENOENT");
  Stops(Good(R"("ro":["/usr","/nonexistent"])"), "P_PATH", "/ro/1", "ENOENT");
  Stops(Good(R"("rd":["/nonexistent"])"), "P_PATH", "/rd/0");
  Stops(Good(R"("wo":["/nonexistent"])"), "P_PATH", "/wo/0");
  Stops(Good(R"("exe":"/nonexistent")"), "P_PATH", "/exe");
  Stops(Good(R"("roots":[{"path":"/nonexistent","rights":["read_file"]}])"), "P_PATH", "/roots/0");
  Stops(Good(R"("ro":["/etc/passwd/x"])"), "P_PATH", "/ro/0", "ENOTDIR");
  Stops(Good(R"("ro":["/etc/passwd/"])"), "P_PATH", "/ro/0", "ENOTDIR");
  Stops(Good("\"ro\":[\"/" + std::string(300, 'n') + "\"]"), "P_PATH", "/ro/0", "ENAMETOOLONG");
  Stops(Good(R"("ro":["/usr/*"])"), "P_PATH", "/ro/0");
  ASSERT_EQ(::symlink("loop", (t_ / "loop").c_str()), 0);
  Stops(Good("\"ro\":[\"" + (t_ / "loop") + "\"]"), "P_PATH", "/ro/0", "ELOOP");
  ASSERT_EQ(::symlink("/nonexistent", (t_ / "dangling").c_str()), 0);
  Stops(Good("\"ro\":[\"" + (t_ / "dangling") + "\"]"), "P_PATH", "/ro/0", "ENOENT");
  // Optional ones are no reason to stop.
  ExpectRan(RunProcess(
      WithPolicy(Good(R"("roots":[{"path":"/nonexistent","rights":["read_file"],"optional":true}])"))));
}

TEST_F(BadInputTest, PathsOfTheWrongKind) {
  Stops(Good(R"("gpu":true,"gpu_devices":["/etc/passwd"])"), "P_PATH", "/gpu_devices/0");
  Stops(Good(R"("gpu":true,"gpu_devices":["/dev/null","/nonexistent"])"), "P_PATH", "/gpu_devices/1");
  const std::string file = t_.WriteFile("file", "");
  Stops(Good("\"broker_socket\":\"" + file + "\""), "P_PATH", "/broker_socket", "no socket");
  Stops(Good("\"broker_socket\":\"" + t_.path() + "\""), "P_PATH", "/broker_socket", "no socket");
  Stops(Good("\"broker_socket\":\"" + (t_ / "missing.sock") + "\""), "P_PATH", "/broker_socket", "ENOENT");
  Stops(Good(R"("broker_socket":"/dev/null")"), "P_PATH", "/broker_socket", "no socket");
  // Short as it is written, too long where it leads to.
  const std::string deep = t_.MakeDirectory(std::string(90, 'd'));
  const int before = ::open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  ASSERT_EQ(::chdir(deep.c_str()), 0);
  const UniqueFd bound(Bound(SOCK_STREAM, "broker.sock"));
  ASSERT_EQ(::fchdir(before), 0);
  (void)::close(before);
  ASSERT_EQ(::symlink((deep + "/broker.sock").c_str(), (t_ / "short.sock").c_str()), 0);
  Stops(Good("\"broker_socket\":\"" + (t_ / "short.sock") + "\""), "P_PATH", "/broker_socket",
        "longer than 103");
  // The report cannot be written where it should be.
  Stops(Good("\"report\":\"" + t_.path() + "\""), "P_PATH", "/report");
  Stops(Good("\"report\":\"" + (t_ / "missing/report.json") + "\""), "P_PATH", "/report");
  ASSERT_EQ(::symlink((t_ / "elsewhere").c_str(), (t_ / "report-link").c_str()), 0);
  Stops(Good("\"report\":\"" + (t_ / "report-link") + "\""), "P_PATH", "/report");
  EXPECT_FALSE(std::filesystem::exists(t_ / "elsewhere"));
  ASSERT_EQ(::mkfifo((t_ / "report-fifo").c_str(), 0600), 0);
  Stops(Good("\"report\":\"" + (t_ / "report-fifo") + "\""), "P_PATH", "/report");
  Stops(Good(R"("report":"/dev/full")"), "P_PATH", "/report");
}

TEST_F(BadInputTest, WritableRootsOverWhatDecidesTheNextLaunch) {
  const std::string broker_directory = t_.MakeDirectory("broker");
  UnixServer broker(broker_directory + "/b.sock");
  const std::string with_broker = ",\"broker_socket\":\"" + broker_directory + "/b.sock\"}";
  const auto writing = [](const std::string& path, const char* field = "rw") {
    return std::string("{\"") + field + "\":[\"" + path + "\"]";
  };
  // The policy's own directory, and above; by every field that writes.
  Stops(writing(t_ / "policies") + "}", "P_CONFLICT", "/rw/0", "policy");
  Stops(writing(t_.path()) + "}", "P_CONFLICT", "/rw/0");
  Stops(writing("/tmp") + "}", "P_CONFLICT", "/rw/0");
  Stops(writing("/") + ",\"base_system\":false}", "P_CONFLICT", "/rw/0");
  Stops(writing(t_ / "policies", "wo") + "}", "P_CONFLICT", "/wo/0");
  Stops("{\"roots\":[{\"path\":\"" + (t_ / "policies") + "\",\"rights\":[\"make_sym\"]}]}", "P_CONFLICT",
        "/roots/0");
  // Of the sandbox's other places: the broker's directory, the log, the runtime directory, grants.
  Stops(writing(broker_directory) + with_broker, "P_CONFLICT", "/rw/0", "broker");
  Stops(writing(t_ / "state") + "}", "P_CONFLICT", "/rw/0", "log");
  ASSERT_EQ(::mkdir((t_ / "state/oarlock").c_str(), 0755) == 0 || errno == EEXIST, true);
  Stops(writing(t_ / "state/oarlock") + "}", "P_CONFLICT", "/rw/0", "log");
  Stops(writing("/run") + "}", "P_CONFLICT", "/rw/0", "runtime");
  Stops(writing("/etc") + ",\"base_system\":false}", "P_CONFLICT", "/rw/0", "grants");
  Stops(writing("/var") + "}", "P_CONFLICT", "/rw/0", "log");
  // By an alias, too.
  ASSERT_EQ(::symlink((t_ / "policies").c_str(), (t_ / "alias").c_str()), 0);
  Stops(writing(t_ / "alias") + "}", "P_CONFLICT", "/rw/0", "policy");
  // Beside each of them there is nothing wrong.
  ExpectRan(RunProcess(
      WithPolicy("{\"rw\":[\"" + work_ + "\"],\"ro\":[\"" + (t_ / "policies") + "\"]" + with_broker)));
}

TEST_F(BadInputTest, AWritableRootOverTheSupervisorThatWillServe) {
  // Where its admission socket lies, the next launch could be answered by anybody.
  Node node;
  const std::string directory = node.socket().substr(0, node.socket().rfind('/'));
  ProcessOptions options = WithPolicy("{\"rw\":[\"" + work_ + "\",\"" + directory + "\"]}");
  options.environment["OARLOCK_SUPERVISOR"] = node.socket();
  ExpectStopped(RunProcess(options), 70, "P_CONFLICT /rw/1: ");
  options = WithPolicy("{\"supervisor\":\"" + node.socket() + "\",\"rw\":[\"" + work_ + "\",\"" + directory +
                       "\"]}");
  ExpectStopped(RunProcess(options), 70, "P_CONFLICT /rw/1: ");
  options = WithPolicy(Good());
  options.environment["OARLOCK_SUPERVISOR"] = node.socket();
  ExpectRan(RunProcess(options));
}

// A directory is what it is, not what it is called: mounted elsewhere it is still the policy's own.
TEST_F(BadInputTest, AWritableRootThatIsAMountOfWhatDecides) {
  const std::string alias = t_.MakeDirectory("mounted"), state = t_ / "state", policies = t_ / "policies",
                    top = t_.path();
  for (const std::string& source : {policies, state, top}) {
    SCOPED_TRACE(source);
    ProcessOptions options = WithPolicy("{\"rw\":[\"" + work_ + "\",\"" + alias + "\"]}");
    options.before_exec = [&] {
      if (::unshare(CLONE_NEWNS) != 0 || ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
          ::mount(source.c_str(), alias.c_str(), nullptr, MS_BIND, nullptr) != 0)
        ::_exit(118);
    };
    ExpectStopped(RunProcess(options), 70, "P_CONFLICT /rw/1: ");
  }
}

// What the launcher writes with its own rights must not lie where the module decides what a name leads to.
TEST_F(BadInputTest, AReportInAWritableRoot) {
  (void)t_.MakeDirectory("work/reports", 0777);
  for (const char* name : {"/report.json", "/reports/report.json"}) {
    const Outcome outcome = RunProcess(WithPolicy(Good("\"report\":\"" + work_ + name + "\"")));
    ExpectStopped(outcome, 70, "P_CONFLICT /r");
  }
  // The attack: an earlier run has put a link in the place of the directory.
  const std::string precious = t_.MakeDirectory("precious");
  (void)t_.WriteFile("precious/shadow", "root:secret\n", 0600);
  std::filesystem::remove_all(work_ + "/reports");
  ASSERT_EQ(::symlink(precious.c_str(), (work_ + "/reports").c_str()), 0);
  (void)RunProcess(WithPolicy(Good("\"report\":\"" + work_ + "/reports/shadow\"")));
  EXPECT_EQ(ReadWholeFile(precious + "/shadow"), "root:secret\n")
      << "the launcher wrote where the module pointed";
  ExpectRan(RunProcess(WithPolicy(Good("\"report\":\"" + (t_ / "report.json") + "\""))));
  EXPECT_TRUE(ReadWholeFile(t_ / "report.json").starts_with("{"));
}

TEST_F(BadInputTest, LinksThatTheModuleCouldTurn) {
  (void)t_.MakeDirectory("data");
  UnixServer broker(t_ / "broker.sock");
  ASSERT_EQ(::symlink((t_ / "data").c_str(), (work_ + "/link").c_str()), 0);
  ASSERT_EQ(::symlink((t_ / "broker.sock").c_str(), (work_ + "/broker.sock").c_str()), 0);
  Stops(Good("\"ro\":[\"" + work_ + "/link\"]"), "P_PATH", "/ro/0", "symbolic link");
  Stops(Good("\"rd\":[\"" + work_ + "/link\"]"), "P_PATH", "/rd/0", "symbolic link");
  Stops(Good("\"broker_socket\":\"" + work_ + "/broker.sock\""), "P_PATH", "/broker_socket", "symbolic link");
  ASSERT_EQ(::symlink((work_ + "/link").c_str(), (t_ / "outer").c_str()), 0);
  Stops(Good("\"ro\":[\"" + (t_ / "outer") + "\"]"), "P_PATH", "/ro/0", "symbolic link");
  // A link where it cannot write is just a link.
  ASSERT_EQ(::symlink((t_ / "data").c_str(), (t_ / "good").c_str()), 0);
  ExpectRan(RunProcess(WithPolicy(Good("\"ro\":[\"" + (t_ / "good") + "\"]"))));
}

TEST_F(BadInputTest, R_OB_34_R_OB_45_WhatThisBuildOrHostCannotDo) {
  Stops(Good(R"("net":"egress-any")"), "K_UNSUPPORTED", "/net");
  for (const char* capability :
       {"net.egress-any", "cgroup.limits", "cgroup.kill", "metadata_writes", "exec_writable_deny.mmap"})
    Stops(Good("\"require\":[\"filesystem\",\"" + std::string(capability) + "\"]"), "K_REQUIRED",
          "/require/1", capability);
  Stops(Good(R"("exec_rw":true,"require":["exec_writable_deny"])"), "K_REQUIRED", "/require/0");
  Stops(Good(R"("sysv_ipc":true,"require":["sysv_ipc"])"), "K_REQUIRED", "/require/0");
  if (!std::filesystem::exists("/dev/dri") && !std::filesystem::exists("/dev/kfd") &&
      !std::filesystem::exists("/dev/nvidiactl"))
    Stops(Good(R"("gpu":true)"), "K_GPU", "/gpu");
  ExpectRan(
      RunProcess(WithPolicy(Good(R"("require":["filesystem","ipc","audit","net.none","unix.pathname"])"))));
}

TEST_F(BadInputTest, AnIdentityThatItMayNotTake) {
  ASSERT_EQ(::chown((t_ / "state").c_str(), kNobody, kNobody), 0);
  for (const char* identity : {R"("run_as":{"uid":0,"gid":0})", R"("run_as":{"uid":65533,"gid":65534})",
                               R"("run_as":{"uid":65534,"gid":0})"}) {
    ProcessOptions options = WithPolicy(Good(identity));
    options.uid = kNobody;
    ExpectStopped(RunProcess(options), 70, "K_IDENTITY /run_as: ");
  }
  ProcessOptions options = WithPolicy(Good(R"("run_as":{"uid":65534,"gid":65534})"));
  options.uid = kNobody;
  ExpectRan(RunProcess(options));
}

// --- the policy's file -------------------------------------------------------------------------------------

TEST_F(BadInputTest, PolicyFilesThatAreNotTrusted) {
  const auto launch = [&](const std::string& policy, std::optional<uid_t> uid = {}) {
    ProcessOptions options = Launcher(Steps{policy, "--"} + Program());
    options.uid = uid;
    if (uid) options.environment["XDG_STATE_HOME"] = t_ / "nobodys";
    return RunProcess(options);
  };
  const auto stops = [&](const std::string& policy, const std::string& part, std::optional<uid_t> uid = {}) {
    SCOPED_TRACE(policy);
    ExpectStopped(launch(policy, uid), 70, "P_READ : ", part);
  };
  const std::string good = WritePolicy(Good());
  ExpectRan(launch(good));
  stops(t_ / "missing.json", "ENOENT");
  stops(t_ / "missing/policy.json", "ENOENT");
  stops(good + "/policy.json", "ENOTDIR");
  stops(t_.path(), "directory");
  stops("", "no file name");
  stops(".", "directory");
  stops("/", "directory");
  ASSERT_EQ(::symlink(good.c_str(), (t_ / "link.json").c_str()), 0);
  stops(t_ / "link.json", "symbolic link");
  ASSERT_EQ(::mkfifo((t_ / "fifo.json").c_str(), 0600), 0);
  stops(t_ / "fifo.json", "not a regular file");
  const UniqueFd bound(Bound(SOCK_STREAM, t_ / "socket.json"));
  stops(t_ / "socket.json", "");
  stops("/dev/null", "not a regular file");
  stops("/dev/zero", "not a regular file");
  stops(t_.WriteFile("group.json", Good(), 0664), "writable");
  stops(t_.WriteFile("world.json", Good(), 0646), "writable");
  stops(t_.WriteFile("large.json", std::string((1 << 20) + 1, ' ')), "1048576");
  const std::string theirs = t_.WriteFile("theirs.json", Good(), 0644);
  ASSERT_EQ(::chown(theirs.c_str(), kSomebody, kSomebody), 0);
  stops(theirs, "belongs to uid 65533");
  (void)t_.MakeDirectory("nobodys", 0755, kNobody, kNobody);
  stops(t_.WriteFile("roots.json", Good(), 0600), "EACCES", kNobody);
  stops(theirs, "belongs to uid 65533", kNobody);
  // Root's own and world-readable is for everybody.
  ExpectRan(launch(good, kNobody));
}

TEST_F(BadInputTest, R_MO_14_PoliciesByDescriptorAndEnvironment) {
  const auto launch = [&](const std::string& policy) { return Launcher(Steps{policy, "--"} + Program()); };
  for (const char* name : {"fd:77", "fd:x", "fd:", "fd:-1", "fd:99999999999", "fd: 3"})
    ExpectStopped(RunProcess(launch(name)), 70, "P_READ : ");
  ExpectStopped(RunProcess(launch("-")), 70, "P_READ : ", "MOAT_SANDBOX_POLICY");
  ProcessOptions options = launch("-");
  options.environment["MOAT_SANDBOX_POLICY"] = "";
  ExpectStopped(RunProcess(options), 70, "P_");
  options.environment["MOAT_SANDBOX_POLICY"] = "{";
  ExpectStopped(RunProcess(options), 70, "P_JSON : ");
  options.environment["MOAT_SANDBOX_POLICY"] = Good();  // it must say its profile
  ExpectStopped(RunProcess(options), 70, "P_");
  // A pipe, a directory, a terminal's other end: no file.
  options = launch("fd:0");
  ExpectStopped(RunProcess(options), 70, "P_READ : ", "not a regular file");
  const std::string file = WritePolicy(Good());
  options = launch("fd:60");
  options.before_exec = [&] { (void)::dup2(::open(file.c_str(), O_RDONLY), 60); };
  ExpectRan(RunProcess(options));
  options.before_exec = [&] { (void)::dup2(::open(file.c_str(), O_PATH), 60); };
  ExpectStopped(RunProcess(options), 70, "P_READ : ");
  options.before_exec = [&] { (void)::dup2(::open(file.c_str(), O_WRONLY), 60); };
  ExpectStopped(RunProcess(options), 70, "P_READ : ");
  options.before_exec = [&] { (void)::dup2(::open("/", O_RDONLY | O_DIRECTORY), 60); };
  ExpectStopped(RunProcess(options), 70, "P_READ : ");
}

// --- argument lists ----------------------------------------------------------------------------------------

TEST_F(BadInputTest, R_OB_04_R_OB_11_WrongArgumentListsAreUsage) {
  const std::string policy = WritePolicy(Good());
  for (const Steps& words : {
           Steps{},
           Steps{"--"},
           Steps{policy},
           Steps{policy, "--"},
           Steps{"--", "/bin/true"},
           Steps{policy, "/bin/true"},
           Steps{policy, "true"},
           Steps{policy, policy, "--", "/bin/true"},
           Steps{policy, "-v", "--", "/bin/true"},
           Steps{policy, "--", "true"},
           Steps{policy, "--", "./true"},
           Steps{policy, "--", "../bin/true"},
           Steps{policy, "--", ""},
           Steps{policy, "--", "--"},
           Steps{policy, "--", "-c", "/bin/true"},
           Steps{policy, "---", "/bin/true"},
           Steps{policy, "--\n", "/bin/true"},
           Steps{"--help"},
           Steps{"--version"},
           Steps{"", "", "--", "/bin/true"},
       }) {
    std::string shown;
    for (const std::string& word : words) shown += "'" + word + "' ";
    SCOPED_TRACE(shown);
    ExpectStopped(RunProcess(Launcher(words)), 64, "", "usage:");
  }
  // Control characters do not reach the terminal.
  const Outcome outcome = RunProcess(Launcher({policy, "--", "evil\x1b[2J\nsandbox launch: all is well"}));
  ExpectStopped(outcome, 64, "");
  EXPECT_EQ(outcome.err.find('\x1b'), std::string::npos);
}

TEST_F(BadInputTest, R_OB_10_ProgramsThatCannotBeRun) {
  const std::string policy = WritePolicy(Good());
  const std::string plain = t_.WriteFile("plain", "#!/bin/sh\necho RAN\n", 0644),
                    outside = t_.WriteFile("outside", "#!/bin/sh\necho RAN\n", 0755);
  const std::string written = t_.WriteFile("work/written", "#!/bin/sh\necho RAN\n", 0755);
  const std::string granted = t_.MakeDirectory("granted");
  (void)t_.WriteFile("granted/no-interpreter", "#!/nonexistent/sh\necho RAN\n", 0755);
  (void)t_.WriteFile("granted/foreign-interpreter", "#!" + outside + "\necho RAN\n", 0755);
  (void)t_.WriteFile("granted/garbage", std::string(200, '\x7f'), 0755);
  (void)t_.WriteFile("granted/empty", "", 0755);
  (void)t_.WriteFile("granted/not-executable", "#!/bin/sh\necho RAN\n", 0644);
  const std::string with_granted =
      t_.WriteFile("policies/granted.json", Good("\"ro\":[\"" + granted + "\"]"));
  for (const auto& [program, file] : std::vector<std::pair<std::string, std::string>>{
           {"/nonexistent/program", policy},
           {"/usr/bin/nonexistent-program", policy},
           {"/usr/bin", policy},
           {"/etc/passwd", policy},
           {"/etc/passwd/x", policy},
           {"/dev/null", policy},
           {plain, policy},
           {outside, policy},
           {written, policy},
           {granted + "/no-interpreter", with_granted},
           {granted + "/foreign-interpreter", with_granted},
           {granted + "/garbage", with_granted},
           {granted + "/empty", with_granted},
           {granted + "/not-executable", with_granted},
           {"/" + std::string(5000, 'x'), policy},
           {"/usr/bin/evil\x1b[2J\nname", policy},
       }) {
    SCOPED_TRACE(program.substr(0, 80));
    const Outcome outcome = RunProcess(Launcher({file, "--", program}));
    ExpectStopped(outcome, 71, "EXEC: cannot run ");
    EXPECT_EQ(outcome.err.find('\x1b'), std::string::npos);
  }
  // The twins: it is the place and the mode that made the difference.
  EXPECT_EQ(RunProcess(Launcher({t_.WriteFile("policies/outside.json", Good("\"exe\":\"" + outside + "\"")),
                                 "--", outside}))
                .out,
            "RAN\n");
  EXPECT_EQ(
      RunProcess(Launcher({t_.WriteFile("policies/rw.json", Good("\"exec_rw\":true")), "--", written})).out,
      "RAN\n");
}

// --- descriptors -------------------------------------------------------------------------------------------

TEST_F(BadInputTest, DescriptorsThatMayNotPass) {
  struct Case {
    const char* name;
    std::function<int()> make;  // in the child
  };
  const std::string directory = t_.path(), fifo_less = t_.WriteFile("file", "x");
  const std::vector<Case> cases = {
      {"udp", [] { return ::socket(AF_INET, SOCK_DGRAM, 0); }},
      {"unix datagram", [] { return ::socket(AF_UNIX, SOCK_DGRAM, 0); }},
      {"datagram pair",
       [] {
         int pair[2];
         return ::socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) == 0 ? pair[0] : -1;
       }},
      {"unconnected tcp", [] { return ::socket(AF_INET, SOCK_STREAM, 0); }},
      {"unconnected unix", [] { return ::socket(AF_UNIX, SOCK_STREAM, 0); }},
      {"listening tcp",
       [] {
         const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
         return ::listen(fd, 1) == 0 ? fd : -1;
       }},
      {"netlink", [] { return ::socket(AF_NETLINK, SOCK_RAW, 0); }},
      {"directory", [&directory] { return ::open(directory.c_str(), O_RDONLY | O_DIRECTORY); }},
      {"path handle", [&fifo_less] { return ::open(fifo_less.c_str(), O_PATH); }},
      {"namespace", [] { return ::open("/proc/self/ns/net", O_RDONLY); }},
      {"memory of a process", [] { return ::open("/proc/self/mem", O_RDWR); }},
      {"epoll", [] { return ::epoll_create1(0); }},
      {"eventfd", [] { return ::eventfd(0, 0); }},
      {"pidfd", [] { return static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0)); }},
      {"kernel log", [] { return ::open("/dev/kmsg", O_RDONLY); }},
      {"ring",
       [] {
         char parameters[120] = {};
         return static_cast<int>(::syscall(SYS_io_uring_setup, 4, parameters));
       }},
      {"listener",
       [] {
         OuterFilter filter;
         filter.Notify(SYS_vhangup);
         return filter.Install(abi::kSeccompFlagNewListener);
       }},
  };
  for (const Case& wrong : cases)
    for (const int number : {0, 1, 2, 50}) {
      SCOPED_TRACE(wrong.name + (" at " + std::to_string(number)));
      ProcessOptions options = WithPolicy(Good(number == 50 ? "\"keep_fds\":[50]" : ""));
      options.before_exec = [&] {
        const int fd = wrong.make();
        // dup2 clears close-on-exec, which a listener has from birth.
        if (fd < 0 || ::dup2(fd, number) < 0) ::_exit(118);
        (void)::close(fd);
      };
      const Outcome outcome = RunProcess(options);
      if (outcome.code == 118) continue;  // this kernel has none
      if (number == 2) {
        // Nobody can be told.
        EXPECT_EQ(outcome.code, 70);
        EXPECT_FALSE(Ran(outcome));
        continue;
      }
      ExpectStopped(outcome, 70, std::string("K_UNSUPPORTED ") + (number == 50 ? "/keep_fds: " : ": "),
                    "descriptor " + std::to_string(number));
    }
}

TEST_F(BadInputTest, DescriptorsThatAreNotThere) {
  Stops(Good(R"("keep_fds":[77])"), "P_RANGE", "/keep_fds/0", "77");
  ProcessOptions options = WithPolicy(Good());
  options.environment["OARBANK_DATA"] = "fd:77";
  ExpectStopped(RunProcess(options), 70, "P_RANGE /keep_fds: ", "OARBANK_DATA");
  for (const char* value : {"77", "", "x", "-1", "fd:1", "1.5", "99999999999", " 1"})
    for (const char* name : {"OARBANK_CONFINED", "OARLOCK_EXEC_STATUS"}) {
      options = WithPolicy(Good());
      options.environment[name] = value;
      ExpectStopped(RunProcess(options), 70, "P_RANGE : ", name);
    }
}

// A datagram socket sends anywhere by name, and no filter sees the name (E-205).
TEST_F(BadInputTest, ADatagramSocketAsStdinSendsNothing) {
  const std::string path = t_ / "receiver.sock";
  const UniqueFd receiver(Bound(SOCK_DGRAM, path)), udp(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  ASSERT_EQ(::bind(udp.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(::getsockname(udp.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
  const auto arrived = [](const UniqueFd& fd) {
    char buffer[64];
    return ::recv(fd.get(), buffer, sizeof(buffer), MSG_DONTWAIT) > 0;
  };
  for (const bool is_unix : {true, false}) {
    const std::string word = "sendname,0," + (is_unix ? path : std::to_string(ntohs(address.sin_port)));
    const auto as_stdin = [is_unix] {
      const int fd = ::socket(is_unix ? AF_UNIX : AF_INET, SOCK_DGRAM, 0);
      (void)::dup2(fd, 0);
      (void)::close(fd);
    };
    ProcessOptions bare = SpeakerOptions({word});
    bare.before_exec = as_stdin;
    EXPECT_EQ(ResultOf(RunProcess(bare), word), "0");
    EXPECT_TRUE(arrived(is_unix ? receiver : udp)) << "the twin";
    ProcessOptions inside = Launcher(
        {WritePolicy(Good("\"ro\":[\"" OARLOCK_BINARY_DIR "/tests/bin\"]")), "--", SpeakerPath(), word});
    inside.before_exec = as_stdin;
    ExpectStopped(RunProcess(inside), 70, "K_UNSUPPORTED : ", "datagram");
    EXPECT_FALSE(arrived(is_unix ? receiver : udp));
  }
}

// --- the confirmation --------------------------------------------------------------------------------------

class ConfirmationTest : public BadInputTest {
 protected:
  // Runs with OARBANK_CONFINED=60 and says what came through it.
  std::string Confirmed(ProcessOptions options, Outcome* outcome) {
    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    const UniqueFd reading(ends[0]);
    UniqueFd writing(ends[1]);
    options.environment["OARBANK_CONFINED"] = "60";
    const auto before = options.before_exec;
    options.before_exec = [&writing, before] {
      (void)::dup2(writing.get(), 60);
      if (before) before();
    };
    *outcome = RunProcess(options);
    writing.Reset();
    std::string text(16, '\0');
    const ssize_t got = ::read(reading.get(), text.data(), text.size());
    text.resize(got > 0 ? static_cast<size_t>(got) : 0);
    return text;
  }
};

TEST_F(ConfirmationTest, R_OX_04_IsOneByteAndOnlyOnSuccess) {
  Outcome outcome;
  EXPECT_EQ(Confirmed(WithPolicy(Good()), &outcome), std::string(1, '\x01'));
  ExpectRan(outcome);
  for (const std::string& policy :
       {std::string("{"), Good("\"nett\":1"), Good("\"ro\":[\"/nonexistent\"]"),
        Good("\"net\":\"egress-any\""), Good("\"require\":[\"cgroup.kill\"]"), Good("\"keep_fds\":[77]"),
        Good("\"supervisor\":\"/nonexistent/admit.sock\""), Good("\"report\":\"/dev/full\"")}) {
    EXPECT_EQ(Confirmed(WithPolicy(policy), &outcome), "") << policy;
    EXPECT_EQ(outcome.code, 70) << policy;
    EXPECT_FALSE(Ran(outcome));
  }
  // The launcher's last steps, one by one.
  OuterFilter no_landlock, no_seccomp, no_close;
  for (OuterFilter* filter : {&no_landlock.Answer(446, 0), &no_seccomp.Answer(SYS_seccomp, EPERM)}) {
    ProcessOptions options = WithPolicy(Good());
    options.before_exec = filter->BeforeExec();
    EXPECT_EQ(Confirmed(options, &outcome), "");
    EXPECT_EQ(outcome.code, 70);
  }
  EXPECT_EQ(Confirmed(Launcher({WritePolicy(Good())}), &outcome), "");
  EXPECT_EQ(outcome.code, 64);
}

TEST_F(ConfirmationTest, R_OX_04_ItsDescriptorIsNotTheModules) {
  Outcome outcome;
  const std::string policy = Good("\"ro\":[\"" OARLOCK_BINARY_DIR "/tests/bin\"]");
  EXPECT_EQ(
      Confirmed(Launcher({WritePolicy(policy), "--", ProbePath(), "fds", "env,OARBANK_CONFINED"}), &outcome),
      std::string(1, '\x01'));
  EXPECT_EQ(outcome.out, "fds -> 0 0 1 2\nenv,OARBANK_CONFINED -> absent\n") << outcome.err;
}

TEST_F(ConfirmationTest, OneThatCannotBeWrittenStopsTheLaunch) {
  const auto with = [&](const std::function<int()>& make) {
    ProcessOptions options = WithPolicy(Good());
    options.environment["OARBANK_CONFINED"] = "60";
    options.before_exec = [make] { (void)::dup2(make(), 60); };
    return RunProcess(options);
  };
  ExpectStopped(with([] { return ::open("/dev/full", O_WRONLY); }), 70, "K_UNSUPPORTED ", "OARBANK_CONFINED");
  ExpectStopped(with([] { return ::open("/dev/null", O_RDONLY); }), 70, "K_UNSUPPORTED ", "OARBANK_CONFINED");
  // Whoever was to read it has gone: still an exit code, and not a signal.
  ExpectStopped(with([] {
                  int ends[2];
                  (void)!::pipe(ends);
                  (void)::close(ends[0]);
                  return ends[1];
                }),
                70, "K_UNSUPPORTED ", "OARBANK_CONFINED");
}

TEST_F(ConfirmationTest, AStderrWithoutAReaderDoesNotChangeTheCode) {
  for (const int code : {64, 70, 71}) {
    ProcessOptions options = code == 70   ? WithPolicy("{")
                             : code == 64 ? Launcher({"x"})
                                          : Launcher({WritePolicy(Good()), "--", "/nonexistent"});
    options.before_exec = [] {
      int ends[2];
      (void)!::pipe(ends);
      (void)::close(ends[0]);
      (void)::dup2(ends[1], 2);
      (void)::close(ends[1]);
    };
    EXPECT_EQ(RunProcess(options).code, code);
  }
}

// --- the supervisor ----------------------------------------------------------------------------------------

class BadSupervisorTest : public BadInputTest {
 protected:
  void StopsWith(const std::string& supervisor, const std::string& part,
                 const std::function<void()>& before_exec = {}) const {
    SCOPED_TRACE(supervisor);
    for (const bool in_policy : {false, true}) {
      // Our words for it must begin with a slash or "fd:", which the policy's parser sees to.
      if (in_policy && !supervisor.starts_with("/") && !supervisor.starts_with("fd:5")) continue;
      if (in_policy && supervisor.size() > 107) continue;
      ProcessOptions options = WithPolicy(Good(in_policy ? "\"supervisor\":\"" + supervisor + "\"" : ""));
      if (!in_policy) options.environment["OARLOCK_SUPERVISOR"] = supervisor;
      options.before_exec = before_exec;
      ExpectStopped(RunProcess(options), 70, "K_NOTIFY /supervisor: ", part);
    }
  }
  // A supervisor that says these things: at the first message (prepare), and at the second (the admission).
  std::unique_ptr<Process> Fake(const std::string& first, const std::string& second, bool keeps) {
    const std::string path = t_ / ("fake" + std::to_string(++fakes_) + ".sock");
    Steps steps = {"text," + t_.WriteFile("first", first), "serve," + path + ",1", "receive"};
    if (!second.empty()) steps = steps + Steps{"text," + t_.WriteFile("second", second), "send,-"};
    if (keeps) steps.emplace_back("hold");
    auto process = std::make_unique<Process>(SpeakerOptions(steps));
    EXPECT_TRUE(process->WaitFor("serving")) << process->out();
    return process;
  }
  Outcome LaunchAtFake() const {
    ProcessOptions options = WithPolicy(Good());
    options.environment["OARLOCK_SUPERVISOR"] = t_ / ("fake" + std::to_string(fakes_) + ".sock");
    return RunProcess(options);
  }
  int fakes_ = 0;
};

TEST_F(BadSupervisorTest, OneThatIsNotThere) {
  StopsWith(t_ / "missing.sock", "ENOENT");
  StopsWith(t_ / "missing/admit.sock", "ENOENT");
  StopsWith(t_.WriteFile("file", ""), "ECONNREFUSED");
  StopsWith(t_.path(), "ECONNREFUSED");
  {
    const UniqueFd bound(Bound(SOCK_STREAM, t_ / "stale.sock"));
  }
  StopsWith(t_ / "stale.sock", "ECONNREFUSED");
  StopsWith("relative.sock", "");
  StopsWith("/" + std::string(107, 's'), "too long");
  StopsWith("/" + std::string(5000, 's'), "too long");
  StopsWith("@abstract", "");
  // An empty variable is no supervisor: a private one it is.
  ProcessOptions options = WithPolicy(Good());
  options.environment["OARLOCK_SUPERVISOR"] = "";
  ExpectRan(RunProcess(options));
}

TEST_F(BadSupervisorTest, OneOfTheWrongKind) {
  UnixServer packets(t_ / "packets.sock", SOCK_SEQPACKET);
  StopsWith(t_ / "packets.sock", "EPROTOTYPE");
  const UniqueFd datagrams(Bound(SOCK_DGRAM, t_ / "datagrams.sock"));
  StopsWith(t_ / "datagrams.sock", "EPROTOTYPE");
  for (const char* fd : {"fd:", "fd:x", "fd:0", "fd:1", "fd:2", "fd:-1", "fd:99999999999", "fd: 5"})
    StopsWith(fd, "");
  StopsWith("fd:55", "stream socket");
  StopsWith("fd:55", "stream socket", [] { (void)::dup2(::open("/dev/null", O_RDWR), 55); });
  StopsWith("fd:55", "stream socket", [] { (void)::dup2(::socket(AF_UNIX, SOCK_DGRAM, 0), 55); });
  StopsWith("fd:55", "", [] { (void)::dup2(::socket(AF_UNIX, SOCK_STREAM, 0), 55); });
  StopsWith("fd:55", "", [] {
    int pair[2];
    (void)::socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
    (void)::close(pair[0]);
    (void)::dup2(pair[1], 55);
  });
}

TEST_F(BadSupervisorTest, R_OX_05_OneThatNeverAnswers) {
  UnixServer silent(t_ / "silent.sock", SOCK_STREAM, 0666, false);
  ProcessOptions options = WithPolicy(Good());
  options.environment["OARLOCK_SUPERVISOR"] = t_ / "silent.sock";
  const Outcome outcome = RunProcess(options);
  ExpectStopped(outcome, 70, "K_NOTIFY /supervisor: ", "within 5 s");
  EXPECT_GE(outcome.seconds, 4.9);
  EXPECT_LE(outcome.seconds, 9);
}

TEST_F(BadSupervisorTest, R_OX_05_OneWithAFullBacklog) {
  UnixServer full(t_ / "full.sock", SOCK_STREAM, 0666, false, 0);
  std::vector<UniqueFd> waiting;
  for (;;) {
    UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, (t_ / "full.sock").data(), (t_ / "full.sock").size());
    if (::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) break;
    waiting.push_back(std::move(fd));
  }
  ProcessOptions options = WithPolicy(Good());
  options.environment["OARLOCK_SUPERVISOR"] = t_ / "full.sock";
  const Outcome outcome = RunProcess(options);
  ExpectStopped(outcome, 70, "K_NOTIFY /supervisor: ", "EAGAIN");
  EXPECT_LE(outcome.seconds, 9);
}

TEST_F(BadSupervisorTest, OneThatAnswersNonsense) {
  UnixServer greeting(t_ / "greeting.sock");
  StopsWith(t_ / "greeting.sock", "not understood");
  for (const std::string& first :
       {std::string("\n"), std::string("hello\n"), std::string("[]\n"), std::string("{\"cgroup\":1}\n"),
        std::string("{\"ok\":true}\n"), std::string(5000, 'x'), std::string("\x1b[2J\n"),
        std::string("{}\0\n", 4)}) {
    SCOPED_TRACE(first.substr(0, 30));
    const auto fake = Fake(first, "", false);
    const Outcome outcome = LaunchAtFake();
    ExpectStopped(outcome, 70, "K_NOTIFY /supervisor: ");
    EXPECT_EQ(outcome.err.find('\x1b'), std::string::npos);
  }
  for (const std::string& second :
       {std::string("\n"), std::string("yes\n"), std::string("{}\n"), std::string("{\"ok\":true}\n"),
        std::string("{\"ok\":1,\"session\":\"x\"}\n"),
        std::string("{\"ok\":true,\"session\":\"x\"}trailing\n"), std::string(5000, 'y'),
        std::string("{\"ok\":true,\"session\":\"x\",\"more\":1}\n")}) {
    SCOPED_TRACE(second.substr(0, 30));
    const auto fake = Fake("{}\n", second, true);
    ExpectStopped(LaunchAtFake(), 70, "K_NOTIFY /supervisor: ");
  }
}

TEST_F(BadSupervisorTest, R_MO_38_OneThatRefuses) {
  for (const bool at_once : {true, false}) {
    const std::string no =
        "{\"ok\":false,\"code\":\"K_NOTIFY\",\"error\":\"not you \\u001b[2J\\nsandbox launch: all is "
        "well\"}\n";
    const auto fake = at_once ? Fake(no, "", false) : Fake("{}\n", no, true);
    const Outcome outcome = LaunchAtFake();
    ExpectStopped(outcome, 70, "K_NOTIFY /supervisor: ", "refused: not you");
    EXPECT_EQ(outcome.err.find('\x1b'), std::string::npos);
  }
}

// It takes the listener, says that all is well, and does not do its work.
TEST_F(BadSupervisorTest, OneThatLies) {
  const std::string yes = "{\"ok\":true,\"session\":\"01JQ00000000000000000000AB\"}\n";
  {
    const auto fake = Fake("{}\n", yes, true);  // holds the listener, and nobody answers
    const Outcome outcome = LaunchAtFake();
    ExpectStopped(outcome, 70, "K_NOTIFY ", "proof");
    EXPECT_LE(outcome.seconds, 8);
  }
  {
    const auto fake = Fake("{}\n", yes, false);  // has gone, and the kernel answers
    ExpectStopped(LaunchAtFake(), 70, "K_NOTIFY ", "proof");
  }
}

TEST_F(BadSupervisorTest, OneThatClosesInTheMiddle) {
  {
    const auto fake = Fake("", "", false);
    ExpectStopped(LaunchAtFake(), 70, "K_NOTIFY /supervisor: ");
  }
  {
    const auto fake = Fake("{}\n", "", false);
    ExpectStopped(LaunchAtFake(), 70, "K_NOTIFY /supervisor: ");
  }
  {
    const auto fake = Fake("{}\n", "{\"ok\":true,\"sess", false);
    ExpectStopped(LaunchAtFake(), 70, "K_NOTIFY /supervisor: ");
  }
}

TEST_F(BadSupervisorTest, APolicyThatDoesNotFitIntoTheMessage) {
  // A sound policy file may be larger than the message that carries it.
  std::string names;
  for (int i = 0; i < 12000; ++i) names += (i == 0 ? "\"" : ",\"") + ("VARIABLE_" + std::to_string(i)) + "\"";
  ExpectStopped(RunProcess(WithPolicy(Good("\"env\":{\"keep\":[" + names + "]}"))), 70,
                "K_NOTIFY : ", "128 KiB");
}

TEST_F(BadSupervisorTest, APrivateOneThatHasNoPlaceForItsLog) {
  const std::string file = t_.WriteFile("a-file", "");
  for (const std::string& place :
       {file, file + "/x", std::string("/proc/nowhere"), std::string("/dev/null")}) {
    SCOPED_TRACE(place);
    ProcessOptions options = WithPolicy(Good());
    options.environment["XDG_STATE_HOME"] = place;
    ExpectStopped(RunProcess(options), 70, "K_NOTIFY /supervisor: ");
  }
  // Somebody else's, and one that others may write to.
  const std::string others = t_.MakeDirectory("others"), log = t_.MakeDirectory("others/oarlock");
  ASSERT_EQ(::mkdir((log + "/audit").c_str(), 0777), 0);
  ASSERT_EQ(::chmod((log + "/audit").c_str(), 0777), 0);
  ProcessOptions options = WithPolicy(Good());
  options.environment["XDG_STATE_HOME"] = others;
  ExpectStopped(RunProcess(options), 70, "K_NOTIFY /supervisor: ");
  // Nobody with no home at all.
  options = WithPolicy(Good());
  options.environment.erase("XDG_STATE_HOME");
  options.uid = 61234;
  ExpectStopped(RunProcess(options), 70, "K_NOTIFY /supervisor: ", "XDG_STATE_HOME");
}

}  // namespace
}  // namespace oarlock::test
