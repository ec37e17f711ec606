// SPDX-License-Identifier: Apache-2.0
// Profile write-allowlist: everything can be read, and written only what is listed.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <filesystem>

#include "notif/abi/landlock.h"
#include "tests/live/bad_input_support.h"
#include "tests/support/daemon.h"
#include "tests/support/sandbox.h"
#include "tests/support/servers.h"

namespace oarlock::test {
namespace {

constexpr uid_t kUser = 65534;

// A place outside of /tmp, which the profile makes writable, with a policy in its own directory.
class WriteAllowlistTest : public ::testing::TestWithParam<uid_t> {
 protected:
  WriteAllowlistTest() : place_("/var/lib"), run_("/run") {
    if (::geteuid() != 0) return;
    for (const char* name : {"work", "home", "outside"}) (void)place_.MakeDirectory(name, 0777, kUser, kUser);
    (void)place_.MakeDirectory("state", 0755, uid(), uid());
    (void)place_.MakeDirectory("policy");
    (void)place_.WriteFile("outside/file", "as it was", 0666);
    (void)place_.WriteFile("work/file", "as it was", 0666);
  }
  [[nodiscard]] uid_t uid() const { return GetParam(); }
  [[nodiscard]] ProcessOptions Options(const std::string& more, std::vector<std::string> argv) const {
    const std::string text = "{\"version\":1,\"profile\":\"write-allowlist\",\"allow_write\":[\"" + place_ / "work" + "\"]" +
                             (more.empty() ? "" : "," + more) + "}";
    ProcessOptions options;
    options.argv = {OarlockPath(), "sandbox-exec", place_.WriteFile("policy/policy.json", text), "--"};
    options.argv.insert(options.argv.end(), argv.begin(), argv.end());
    options.environment["XDG_STATE_HOME"] = place_ / "state";
    options.environment["HOME"] = place_ / "home";
    options.uid = uid();
    return options;
  }
  [[nodiscard]] Outcome Run(const std::string& more, std::vector<std::string> argv) const { return RunProcess(Options(more, std::move(argv))); }
  [[nodiscard]] Outcome RunBare(std::vector<std::string> argv) const {
    ProcessOptions options;
    options.argv = std::move(argv);
    options.uid = uid();
    return RunProcess(options);
  }
  [[nodiscard]] std::vector<LogLine> Log() const { return ReadLog(place_ / "state/oarlock/audit"); }

  TemporaryDirectory place_, run_;
};

INSTANTIATE_TEST_SUITE_P(Uids, WriteAllowlistTest, ::testing::Values(0U, kUser), [](const auto& about) { return about.param == 0 ? "Root" : "User"; });

// What each of many acts of writing does in a directory, "act -> errno".
constexpr const char* kWriter = R"(
import errno, os, sys
there, work = sys.argv[1], sys.argv[2]
def act(name, f):
  try: f(); print(name, '-> 0')
  except OSError as e: print(name, '->', errno.errorcode[e.errno])
w = os.O_WRONLY
act('create', lambda: os.close(os.open(there + '/new', w | os.O_CREAT | os.O_EXCL, 0o666)))
act('write', lambda: os.close(os.open(there + '/file', w)))
act('open-truncate', lambda: os.close(os.open(there + '/file', w | os.O_TRUNC)))
act('truncate', lambda: os.truncate(there + '/file', 3))
act('mkdir', lambda: os.mkdir(there + '/dir'))
act('mkfifo', lambda: os.mkfifo(there + '/fifo'))
act('symlink', lambda: os.symlink('/etc', there + '/link'))
open(work + '/mine', 'w').close()
act('link-in', lambda: os.link(work + '/mine', there + '/linked'))
act('rename-in', lambda: os.rename(work + '/mine', there + '/moved'))
act('rename', lambda: os.rename(there + '/file', there + '/file2'))
if os.path.exists(there + '/file2'): os.rename(there + '/file2', there + '/file')
act('rename-out', lambda: os.rename(there + '/file', work + '/stolen'))
act('unlink', lambda: os.unlink(work + '/stolen' if os.path.exists(work + '/stolen') else there + '/file'))
)";
constexpr const char* kActs[] = {"create", "write", "open-truncate", "truncate", "mkdir", "mkfifo", "symlink", "link-in", "rename-in", "rename", "rename-out", "unlink"};

TEST_P(WriteAllowlistTest, R_MO_06_R_MO_07_WritesAreForWhatIsListedWhateverPermissionsSay) {
  const auto writer = [&](const std::string& there) { return std::vector<std::string>{"/usr/bin/python3", "-c", kWriter, there, place_ / "work"}; };
  const Outcome outcome = Run("", writer(place_ / "outside"));
  for (const char* act : kActs) {
    // Between directories the missing right may show as EXDEV, by which programs fall back to copying.
    const std::string result = ResultOf(outcome.out, act);
    const bool moves = std::string(act) == "link-in" || std::string(act).starts_with("rename-");
    EXPECT_TRUE(result == "EACCES" || (moves && result == "EXDEV")) << act << " -> " << result << "\n" << outcome.err;
  }
  EXPECT_EQ(ReadWholeFile(place_ / "outside/file"), "as it was");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(place_ / "outside"), {}), 1);

  (void)::unlink((place_ / "work/mine").c_str());
  const Outcome listed = Run("", writer(place_.MakeDirectory("work/below", 0777, kUser, kUser)));
  (void)place_.WriteFile("outside/file", "as it was", 0666);
  const Outcome bare = RunBare(writer(place_ / "outside"));
  for (const char* act : kActs) {
    const bool no_file = std::string(act) == "write" || std::string(act) == "open-truncate" || std::string(act) == "truncate" ||
                         std::string(act) == "rename" || std::string(act) == "rename-out" || std::string(act) == "unlink";
    EXPECT_EQ(ResultOf(listed.out, act), no_file ? "ENOENT" : "0") << act << listed.err;
    EXPECT_EQ(ResultOf(bare.out, act), "0") << "the twin: " << act << bare.err;
  }
}

TEST_P(WriteAllowlistTest, R_MO_05_ReadsAndProgramsAreOpen) {
  const Outcome outcome = Run("", {"/bin/sh", "-c", "ls / >/dev/null && cat " + place_ / "outside/file" + " && cp /bin/true " + place_ / "work/t" + " && " + place_ / "work/t" + " && echo ran"});
  EXPECT_EQ(outcome.out, "as it wasran\n") << outcome.err;
}

TEST_P(WriteAllowlistTest, R_MO_06_TheDefaults) {
  (void)run_.MakeDirectory("open", 0777);
  ASSERT_EQ(::chmod(run_.path().c_str(), 0777), 0);
  const std::string mark = "oarlock-" + std::to_string(::getpid()) + "-" + std::to_string(uid());
  const std::vector<std::string> good = {"/tmp/" + mark, "/var/tmp/" + mark, "/dev/shm/" + mark, place_ / "home" + "/" + mark, run_ / mark, run_ / "open/" + mark};
  std::string script = "echo x >/dev/null && echo 0 >/proc/self/timerslack_ns && echo devices\n";
  for (const std::string& path : good) script += "echo mine >" + path + "\n";
  const Outcome outcome = Run("", {"/bin/sh", "-c", script});
  EXPECT_EQ(outcome.out, "devices\n") << outcome.err;
  for (const std::string& path : good) {
    EXPECT_EQ(ReadWholeFile(path), "mine\n") << path << outcome.err;
    (void)::unlink(path.c_str());
  }
  EXPECT_EQ(outcome.code, 0) << outcome.err;

  const Outcome without = Run("\"write_defaults\":false", {"/bin/sh", "-c", "for f in " + good[0] + " " + good[3] + " " + good[5] + "; do (echo mine >$f); done"});
  for (const std::string& path : good) EXPECT_FALSE(std::filesystem::exists(path)) << path;
  EXPECT_NE(without.code, 0);
}

TEST_P(WriteAllowlistTest, NeverTheMachine) {
  std::string block;
  for (const auto& entry : std::filesystem::directory_iterator("/dev"))
    if (entry.is_block_file()) block = entry.path();
  // Opened for writing and closed again.
  const std::string script = "for f in /proc/sys/kernel/core_pattern /proc/sysrq-trigger /dev/kmsg " + block + "; do (: >>$f) 2>/dev/null && echo $f; done; true";
  EXPECT_EQ(Run("", {"/bin/sh", "-c", script}).out, "");
  if (uid() == 0) EXPECT_NE(RunBare({"/bin/sh", "-c", script}).out.find("core_pattern"), std::string::npos) << "the twin";
}

// wire.md's places: what lies in /run is left out, anywhere else ends the launch.
TEST_P(WriteAllowlistTest, PlacesThatDecideTheNextLaunch) {
  const std::string policy = R"({"version":1,"profile":"write-allowlist"})";
  (void)run_.MakeDirectory("sub", 0777);
  (void)run_.WriteFile("sub/policy.json", policy);
  (void)run_.MakeDirectory("beside", 0777);
  ProcessOptions options = Options("", {"/bin/sh", "-c", "(echo x >" + run_ / "sub/x" + "); (echo x >" + run_ / "x" + "); echo x >" + run_ / "beside/x"});
  ASSERT_EQ(::chmod(run_.path().c_str(), 0777), 0);
  options.argv[2] = run_ / "sub/policy.json";
  const Outcome beside = RunProcess(options);
  EXPECT_EQ(beside.code, 0) << beside.err;
  EXPECT_FALSE(std::filesystem::exists(run_ / "sub/x"));
  EXPECT_FALSE(std::filesystem::exists(run_ / "x"));
  EXPECT_EQ(ReadWholeFile(run_ / "beside/x"), "x\n");

  const TemporaryDirectory in_tmp;
  options.argv[2] = in_tmp.WriteFile("policy.json", policy);
  const Outcome refused = RunProcess(options);
  EXPECT_EQ(refused.code, 70);
  EXPECT_TRUE(refused.err.find("P_CONFLICT /write_defaults: the writable root '/tmp' holds the policy file's directory") != std::string::npos) << refused.err;

  // A log below $HOME is told, not refused.
  ProcessOptions at_home = Options("\"report\":\"" + place_ / "policy/report.json" + "\"", {"/bin/true"});
  ASSERT_EQ(::chmod((place_ / "policy").c_str(), 0777), 0);
  ASSERT_EQ(::chown((place_ / "policy").c_str(), uid(), uid()), 0);
  at_home.environment["HOME"] = place_ / "state";
  const Outcome told = RunProcess(at_home);
  EXPECT_EQ(told.code, 0) << told.err;
  EXPECT_NE(ReadWholeFile(place_ / "policy/report.json").find("\"audit\":\"tamperable\""), std::string::npos);
}

TEST_P(WriteAllowlistTest, R_MO_25_TheNetworkIsTheHosts) {
  TcpServer outside("127.0.0.2");
  UnixServer path(place_ / "outside/server.sock");
  const Outcome outcome = Run("", {"/usr/bin/python3", "-c", R"(
import os, socket, sys
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); u.bind(('127.0.0.1', 0)); u.sendto(b'x', u.getsockname()); assert u.recv(1) == b'x'
l = socket.create_server(('127.0.0.1', 0)); c = socket.create_connection(l.getsockname()); l.accept()
c.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b'\1\0\0\0\0\0\0\0')
a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
s = socket.create_connection(('127.0.0.2', int(sys.argv[1])))
s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[2])
m = socket.socket(socket.AF_UNIX); m.bind(sys.argv[3]); m.listen(1)
n = socket.socket(socket.AF_UNIX); n.bind('\0oarlock-test-%d' % os.getpid())
print(len(socket.if_nameindex()) > 0)
)",
                                           std::to_string(outside.port()), place_ / "outside/server.sock", place_ / "work/mine.sock"});
  EXPECT_EQ(outcome.out, "True\n") << outcome.err;
  EXPECT_EQ(outside.connections(), 1);
  EXPECT_EQ(path.connections(), 1);
  for (const LogLine& line : Log()) EXPECT_NE(line.kind, "DENY") << line.text;
}

TEST_P(WriteAllowlistTest, R_MO_35_WithAProxyItIsTheModules) {
  TcpServer proxy, other("127.0.0.2", proxy.port());
  UnixServer path(place_ / "outside/server.sock");
  const std::string port = std::to_string(proxy.port());
  const std::vector<std::string> words = {ProbePath(), "tcp,127.0.0.1," + port, "tcp,127.0.0.2," + port, "unix," + place_ / "outside/server.sock"};
  const Outcome outcome = Run("\"net\":\"egress-allowlist\",\"proxy_port\":" + port, words);
  EXPECT_EQ(ResultOf(outcome.out, words[1]), "0 hello") << outcome.out << outcome.err;
  EXPECT_EQ(proxy.connections(), 1);
  EXPECT_EQ(other.connections(), 0) << outcome.out;
  EXPECT_EQ(path.connections(), 0) << outcome.out;
  (void)RunBare(words);
  EXPECT_EQ(other.connections(), 1) << "the twin";
  EXPECT_EQ(path.connections(), 1) << "the twin";
}

// Debuggers work on the sandbox's own, and on nobody else's.
TEST_P(WriteAllowlistTest, TracingStaysInside) {
  constexpr const char* kTracer = R"(
import ctypes, errno, os, sys, time
libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long] * 4
def say(name, result): print(name, '->', '0' if result >= 0 else errno.errorcode[ctypes.get_errno()], flush=True)
child = os.fork()
if child == 0:
  time.sleep(30)
  os._exit(0)
class iovec(ctypes.Structure): _fields_ = [('base', ctypes.c_void_p), ('size', ctypes.c_size_t)]
buffer = ctypes.create_string_buffer(8)
def read(pid): return libc.process_vm_readv(pid, ctypes.byref(iovec(ctypes.addressof(buffer), 8)), 1, ctypes.byref(iovec(ctypes.addressof(buffer), 8)), 1, 0)
for name, pid in (('own', child), ('outside', int(sys.argv[1]))):
  say('read-' + name, read(pid))
  say('seize-' + name, libc.ptrace(0x4206, pid, 0, 0))
  say('interrupt-' + name, libc.ptrace(0x4207, pid, 0, 0))
os.kill(child, 9)
os.waitpid(child, 0)
child = os.fork()
if child == 0:
  libc.ptrace(0, 0, 0, 0)
  os.kill(os.getpid(), 19)
  os._exit(7)
print('stopped', os.WIFSTOPPED(os.waitpid(child, 0)[1]))
say('cont', libc.ptrace(7, child, 0, 0))
print('code', os.WEXITSTATUS(os.waitpid(child, 0)[1]))
)";
  ProcessOptions victim;
  victim.argv = {"/bin/sleep", "60"};
  victim.uid = uid();
  Process outside(victim);
  const std::vector<std::string> words = {"/usr/bin/python3", "-c", kTracer, std::to_string(outside.pid())};
  const Outcome outcome = Run("", words);
  for (const char* name : {"read-own", "seize-own", "interrupt-own", "cont"}) EXPECT_EQ(ResultOf(outcome.out, name), "0") << name << outcome.err;
  EXPECT_NE(outcome.out.find("stopped True"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("code 7"), std::string::npos) << outcome.out;
  EXPECT_EQ(ResultOf(outcome.out, "read-outside"), "EPERM");
  EXPECT_EQ(ResultOf(outcome.out, "seize-outside"), "EPERM");
  size_t recorded = 0;
  for (const LogLine& line : Log()) recorded += line.call == "ptrace" || line.call == "process_vm_readv" ? line.count : 0;
  EXPECT_EQ(recorded, 2U);
  EXPECT_EQ(ResultOf(RunBare(words).out, "seize-outside"), "0") << "the twin";
}

// It could come back through its own connects.
TEST_P(WriteAllowlistTest, TheNodeTakesNoneOfItsOwnUidWithTheHostsNetwork) {
  const Daemon daemon({"--admit-uid", std::to_string(kUser)});
  // Its directory is in /tmp.
  ProcessOptions options = Options("\"write_defaults\":false,\"tty\":\"none\"", {"/bin/echo", "ran"});
  options.environment["OARLOCK_SUPERVISOR"] = daemon.socket();
  const Outcome outcome = RunProcess(options);
  if (uid() == kUser) {
    EXPECT_EQ(outcome.out, "ran\n") << outcome.err;
    return;
  }
  EXPECT_EQ(outcome.code, 70);
  EXPECT_NE(outcome.err.find("K_NOTIFY"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("run_as"), std::string::npos) << outcome.err;
}

TEST_P(WriteAllowlistTest, R_MO_09_R_MO_14_R_MO_15_FromTheEnvironment) {
  ProcessOptions options = Options("", {"/bin/sh", "-c", "tr '\\0' '\\n' </proc/self/environ | grep -c MOAT; env | grep -c MOAT; echo ran"});
  options.argv[2] = "-";
  options.environment["MOAT_SANDBOX_POLICY"] = R"({"version":1,"profile":"write-allowlist","enforce":"best-effort","allow_write":["/nonexistent/workspace"]})";
  const Outcome outcome = RunProcess(options);
  EXPECT_EQ(outcome.out, "0\n0\nran\n") << outcome.err;
  const auto abi = ::syscall(abi::kSysLandlockCreateRuleset, nullptr, 0, abi::kLandlockCreateRulesetVersion);
  EXPECT_NE(("\n" + outcome.err).find("\nkernel sandbox active (Landlock ABI v" + std::to_string(abi) + ")\n"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("'/nonexistent/workspace' is not there"), std::string::npos) << outcome.err;

  for (const char* text : {"", "not json", "{}", R"({"allow_write":["/workspace"]})"}) {
    options.environment["MOAT_SANDBOX_POLICY"] = text;
    const Outcome refused = RunProcess(options);
    EXPECT_EQ(refused.code, 70) << text;
    EXPECT_EQ(refused.out, "") << text;
  }
  options.environment.erase("MOAT_SANDBOX_POLICY");
  EXPECT_EQ(RunProcess(options).code, 70);
}

// E-213: reads of everything are granted, so a domain that is only said to be there must be missed by what it should refuse.
TEST_P(WriteAllowlistTest, E213_ADomainThatIsSaidToBeThere) {
  ProcessOptions options = Options("", {"/bin/sh", "-c", "echo x >" + place_ / "work/ran"});
  OuterFilter filter;
  options.before_exec = filter.Answer(abi::kSysLandlockRestrictSelf, 0).BeforeExec();
  if (uid() != 0) options.before_exec = [install = options.before_exec] {
    if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) ::_exit(118);
    install();
  };
  const Outcome outcome = RunProcess(options);
  EXPECT_EQ(outcome.code, 70);
  EXPECT_NE(outcome.err.find("K_LANDLOCK "), std::string::npos) << outcome.err;
  EXPECT_FALSE(std::filesystem::exists(place_ / "work/ran"));
  options.before_exec = {};
  EXPECT_EQ(RunProcess(options).code, 0) << "the twin";
  EXPECT_TRUE(std::filesystem::exists(place_ / "work/ran"));
}

TEST_P(WriteAllowlistTest, ByRun) {
  ProcessOptions options = Options("", {});
  options.argv = {OarlockPath(), "run", "--profile", "write-allowlist", "--rw", place_ / "work", "--", "/bin/sh", "-c", "echo x >" + place_ / "work/x" + "; echo x >" + place_ / "outside/x"};
  const Outcome outcome = RunProcess(options);
  EXPECT_EQ(outcome.code, 2) << outcome.err;
  EXPECT_EQ(ReadWholeFile(place_ / "work/x"), "x\n") << outcome.err;
  EXPECT_FALSE(std::filesystem::exists(place_ / "outside/x"));
  for (const std::vector<std::string>& wrong : std::vector<std::vector<std::string>>{{"--ro", "/etc"}, {"--broker", "/x"}, {"--policy", "/x"}}) {
    ProcessOptions bad = options;
    bad.argv.insert(bad.argv.begin() + 2, wrong.begin(), wrong.end());
    EXPECT_EQ(RunProcess(bad).code, 64) << wrong[0];
  }
}

}  // namespace
}  // namespace oarlock::test
