// SPDX-License-Identifier: Apache-2.0
// Signals on kernels whose Landlock has no scope for them (below ABI 6): to the sandbox's own tasks as ever, to nobody else though the
// user is the same (E-152, E-153). The launcher is the product's, told of an older Landlock.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <fstream>
#include <iterator>

#include "tests/support/daemon.h"
#include "tests/support/sandbox.h"

namespace oarlock::test {
namespace {

constexpr const char* kPrelude = R"(
import array, ctypes, errno, fcntl, os, platform, signal, socket, struct, subprocess, sys, threading, time
libc = ctypes.CDLL(None, use_errno=True)
x86 = platform.machine() == 'x86_64'
def call(nr, *args):
  words = [ctypes.c_long(a) if isinstance(a, int) else a for a in args]
  result = libc.syscall(ctypes.c_long(nr), *words)
  if result < 0: raise OSError(ctypes.get_errno(), '')
  return result
def result(make):
  try: make()
  except OSError as e: return errno.errorcode[e.errno]
  return '0'
def say(what, make): print(what, '->', result(make), flush=True)
def info(): return (ctypes.c_int * 32)(10, 0, -1, 0, os.getpid(), os.getuid())
def owned(set_owner):
  # Whoever owns a pipe's reading end gets SIGUSR1 with the first byte.
  r, w = os.pipe()
  try:
    fcntl.fcntl(r, 10, 10)
    set_owner(r)
    fcntl.fcntl(r, fcntl.F_SETFL, os.O_NONBLOCK | 0o20000)
  finally: os.write(w, b'x')
def owned_socket(request, p):
  a, b = socket.socketpair()
  fcntl.fcntl(a, 10, 10)
  fcntl.ioctl(a, request, struct.pack('i', p))
  fcntl.fcntl(a, fcntl.F_SETFL, os.O_NONBLOCK | 0o20000)
  b.send(b'x')
USR1 = 10
calls = {
  'kill': lambda p: call(62 if x86 else 129, p, USR1),
  'kill above': lambda p: call(62 if x86 else 129, (1 << 40) + p, USR1),
  'tkill': lambda p: call(200 if x86 else 130, p, USR1),
  'tgkill': lambda p: call(234 if x86 else 131, p, p, USR1),
  'rt_sigqueueinfo': lambda p: call(129 if x86 else 138, p, USR1, info()),
  'rt_tgsigqueueinfo': lambda p: call(297 if x86 else 240, p, p, USR1, info()),
  'pidfd_send_signal': lambda p: call(424, os.pidfd_open(p), USR1, 0, 0),
  'group': lambda p: call(62 if x86 else 129, -p, USR1),
  'F_SETOWN': lambda p: owned(lambda r: fcntl.fcntl(r, 8, p)),
  'F_SETOWN group': lambda p: owned(lambda r: fcntl.fcntl(r, 8, -p)),
  'F_SETOWN_EX': lambda p: owned(lambda r: fcntl.fcntl(r, 15, struct.pack('ii', 1, p))),
  'F_SETOWN_EX group': lambda p: owned(lambda r: fcntl.fcntl(r, 15, struct.pack('ii', 2, p))),
  'FIOSETOWN': lambda p: owned_socket(0x8901, p),
  'SIOCSPGRP': lambda p: owned_socket(0x8902, p),
}
)";
const std::vector<std::string> kCalls = {"kill", "kill above", "tkill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo", "pidfd_send_signal", "group",
                                         "F_SETOWN", "F_SETOWN group", "F_SETOWN_EX", "F_SETOWN_EX group", "FIOSETOWN", "SIOCSPGRP"};

std::vector<std::string> Python(const std::string& text, std::vector<std::string> arguments = {}) {
  arguments.insert(arguments.begin(), {"/usr/bin/python3", "-c", kPrelude + text});
  return arguments;
}

struct Row {
  uid_t uid;
  int abi;
};

class SignalTest : public testing::TestWithParam<Row> {
 protected:
  SignalTest() : daemon_({"--admit-uid", std::to_string(GetParam().uid)}) {}

  // A sandbox as on such a kernel.
  [[nodiscard]] ProcessOptions Older(Sandbox& sandbox, const std::vector<std::string>& argv) {
    sandbox.As(GetParam().uid).Supervisor(daemon_.socket()).Environment("OARLOCK_TEST_ABI", std::to_string(GetParam().abi));
    ProcessOptions options = sandbox.Options(argv);
    options.argv[0] = OARLOCK_BINARY_DIR "/tests/bin/older-launcher";
    return options;
  }
  // In a session of its own, as an agent starts it; the test's children are leaders of groups, which cannot make one.
  Outcome Run(const std::string& text, const std::string& policy = "", std::vector<std::string> arguments = {}) {
    Sandbox sandbox(policy);
    ProcessOptions options = Older(sandbox, Python(text, std::move(arguments)));
    options.argv.insert(options.argv.begin(), {"/usr/bin/setsid", "--wait"});
    const Outcome outcome = RunProcess(options);
    EXPECT_EQ(outcome.code, 0) << outcome.err << outcome.out;
    return outcome;
  }
  // Somebody outside, of the module's user, in a process group of his own. SIGUSR1 ends him.
  [[nodiscard]] static std::unique_ptr<Process> Victim() {
    auto victim = std::make_unique<Process>(ProcessOptions{.argv = {"/bin/sleep", "300"}, .environment = {}, .input = {}, .directory = {}, .uid = GetParam().uid,
                                                           .timeout = std::chrono::minutes(5), .before_exec = [] { (void)::setpgid(0, 0); }});
    EXPECT_TRUE(Eventually([&] {
      std::ifstream file("/proc/" + std::to_string(victim->pid()) + "/comm");
      return std::string(std::istreambuf_iterator<char>(file), {}) == "sleep\n";
    }));
    return victim;
  }
  [[nodiscard]] uint64_t Refused(const std::string& call) {
    uint64_t refused = 0;
    for (const LogLine& line : daemon_.Log())
      if (line.code == "SYSCALL_DENIED" && line.call == call) refused += line.count;
    return refused;
  }
  Daemon daemon_;
};

TEST_P(SignalTest, E152_E153_TasksOutsideAreOutOfReach) {
  const std::string one = "say('it', lambda: calls[sys.argv[1]](int(sys.argv[2])))\n";
  for (const std::string& call : kCalls) {
    SCOPED_TRACE(call);
    auto victim = Victim();
    const Outcome inside = Run(one, "", {call, std::to_string(victim->pid())});
    EXPECT_EQ(ResultOf(inside, "it"), call == "pidfd_send_signal" ? "ENOSYS" : "EPERM");
    ::usleep(20'000);
    EXPECT_TRUE(victim->Running());
    // The twin.
    Sandbox sandbox;
    sandbox.As(GetParam().uid);
    EXPECT_EQ(ResultOf(sandbox.RunBare(Python(one, {call, std::to_string(victim->pid())})), "it"), "0");
    EXPECT_TRUE(Eventually([&] { return !victim->Running(); }));
  }
  EXPECT_EQ(Refused("kill"), 3U);
  for (const char* call : {"tkill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo"}) EXPECT_EQ(Refused(call), 1U) << call;
  EXPECT_EQ(Refused("fcntl"), 4U);
  // Everybody, init, the supervisor, nobody.
  auto victim = Victim();
  const Outcome inside = Run(R"(
kill = 62 if x86 else 129
say('all', lambda: call(kill, -1, USR1))
say('init', lambda: call(kill, 1, 0))
say('supervisor', lambda: call(kill, int(sys.argv[1]), USR1))
gone = os.fork()
if gone == 0: os._exit(0)
os.waitpid(gone, 0)
for name, number in (('gone', gone), ('least', -1 << 31), ('no group', -gone)): say(name, lambda: call(kill, number, 0))
say('thread -5', lambda: call(200 if x86 else 130, -5, 0))
say('a thread of nobody', lambda: call(234 if x86 else 131, os.getpid(), gone, 0))
say('init as ours', lambda: call(234 if x86 else 131, os.getpid(), 1, 0))
)",
                             "", {std::to_string(daemon_.pid())});
  EXPECT_EQ(ResultOf(inside, "all"), "EPERM");
  EXPECT_EQ(ResultOf(inside, "init"), "EPERM");
  EXPECT_EQ(ResultOf(inside, "supervisor"), "EPERM");
  EXPECT_EQ(ResultOf(inside, "init as ours"), "EPERM");
  for (const char* nobody : {"gone", "least", "no group", "thread -5", "a thread of nobody"}) EXPECT_EQ(ResultOf(inside, nobody), "ESRCH") << nobody;
  EXPECT_TRUE(victim->Running());
  EXPECT_TRUE(daemon_.process().Running());
}

// Each way of programs to signal themselves and their own.
TEST_P(SignalTest, OnesOwnAreNot) {
  const Outcome inside = Run(R"(
got = []
signal.signal(USR1, lambda *_: got.append(1))
def heard(make):
  def run():
    before = len(got)
    make()
    for _ in range(200):
      if len(got) > before: return
      time.sleep(0.01)
    raise OSError(errno.ENOMSG, '')
  return run
me = os.getpid()
for name in ('kill', 'kill above', 'tkill', 'tgkill', 'rt_sigqueueinfo', 'rt_tgsigqueueinfo', 'F_SETOWN'):
  if name != 'F_SETOWN': say('self ' + name, heard(lambda: calls[name](me)))
say('raise', heard(lambda: signal.raise_signal(USR1)))
say('thread', heard(lambda: signal.pthread_kill(threading.get_ident(), USR1)))
def other():
  t = threading.Thread(target=time.sleep, args=(0.3,)); t.start()
  signal.pthread_kill(t.ident, USR1); t.join()
say('other thread', heard(other))
say('group', heard(lambda: os.kill(0, USR1)))
say('own group', heard(lambda: os.killpg(os.getpgrp(), USR1)))
say('timer', heard(lambda: signal.setitimer(signal.ITIMER_REAL, 0) or signal.raise_signal(USR1)))
def ended_by(how, **options):
  child = subprocess.Popen(['/bin/sleep', '60'], **options)
  how(child)
  return -child.wait(5)
print('terminate ->', ended_by(lambda c: c.terminate()))
print('kill ->', ended_by(lambda c: c.kill()))
print('child group ->', ended_by(lambda c: os.killpg(c.pid, 9), start_new_session=True))
print('moved group ->', ended_by(lambda c: os.killpg(c.pid, 9), preexec_fn=lambda: os.setpgid(0, 0)))
for name in ('kill', 'tkill', 'tgkill', 'rt_sigqueueinfo', 'rt_tgsigqueueinfo', 'group'):
  print('child by', name, '->', ended_by(lambda c: calls[name](c.pid), start_new_session=True))
def grandchild(leaves):
  r, w = os.pipe()
  if os.fork() == 0:
    if os.fork() == 0:
      if leaves: os.setpgid(0, 0)
      os.write(w, b'%d\n' % os.getpid())
      time.sleep(60)
    os._exit(0)
  os.wait()
  return int(os.read(r, 20))
say('orphan', lambda: os.kill(grandchild(False), 9))
orphan = grandchild(True)
say('group of an orphan', lambda: os.killpg(orphan, 9))
def aborted():
  pid = os.fork()
  if pid == 0: os.abort()
  return os.WTERMSIG(os.waitpid(pid, 0)[1])
print('abort ->', aborted())
# Of no use here, but the owner is looked at, and it is we.
r, w = os.pipe()
say('own F_SETOWN', lambda: fcntl.fcntl(r, 8, me))
say('no F_SETOWN', lambda: fcntl.fcntl(r, 8, 0))
print('owner ->', fcntl.fcntl(r, 9))
say('async', lambda: fcntl.fcntl(r, fcntl.F_SETFL, 0o20000))
say('FIOASYNC', lambda: fcntl.ioctl(r, 0x5452, struct.pack('i', 1)))
def from_child():
  parent = os.getpid()
  pid = os.fork()
  if pid == 0:
    try: os.kill(parent, USR1)
    except OSError: os._exit(1)
    os._exit(0)
  if os.waitpid(pid, 0)[1]: raise OSError(errno.EPERM, '')
say('parent', heard(from_child))
)");
  for (const char* own : {"self kill", "self kill above", "self tkill", "self tgkill", "self rt_sigqueueinfo", "self rt_tgsigqueueinfo", "raise", "thread",
                          "other thread", "group", "own group", "orphan", "group of an orphan", "own F_SETOWN", "no F_SETOWN", "parent"})
    EXPECT_EQ(ResultOf(inside, own), "0") << own;
  EXPECT_EQ(ResultOf(inside, "terminate"), "15");
  for (const char* killed : {"kill", "child group", "moved group"}) EXPECT_EQ(ResultOf(inside, killed), "9") << killed;
  for (const char* call : {"kill", "tkill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo", "group"})
    EXPECT_EQ(ResultOf(inside, std::string("child by ") + call), "10") << call;
  EXPECT_EQ(ResultOf(inside, "abort"), "6");
  EXPECT_EQ(ResultOf(inside, "async"), "EPERM");
  EXPECT_EQ(ResultOf(inside, "FIOASYNC"), "EPERM");
  for (const char* call : {"kill", "tkill", "tgkill"}) EXPECT_EQ(Refused(call), 0U) << call;
}

// A group is ours when all who are in it are.
TEST_P(SignalTest, Groups) {
  const std::string text = R"(
say('shared', lambda: os.kill(0, 0))
say('shared by number', lambda: os.killpg(os.getpgrp(), 0))
if len(sys.argv) == 1: os.setpgid(0, 0)
say('own', lambda: os.kill(0, 0))
r = subprocess.run(['/usr/bin/timeout', '0.3', '/bin/sleep', '30'])
print('timeout ->', r.returncode)
r = subprocess.run(['/bin/bash', '-c', 'set -m; sleep 30 | sleep 30 & sleep 0.2; kill %1; wait; echo over'], stdout=subprocess.PIPE, timeout=10)
print('job ->', r.stdout)
)";
  // The group that the launcher is started in holds the shell that started it.
  Sandbox sandbox("\"tty\":\"inherit\"");
  ProcessOptions options = Older(sandbox, Python(text));
  std::vector<std::string> argv = {"/bin/sh", "-c", "\"$@\"; exit $?", "sh"};
  argv.insert(argv.end(), options.argv.begin(), options.argv.end());
  options.argv = argv;
  const Outcome inside = RunProcess(options);
  EXPECT_EQ(ResultOf(inside, "shared"), "EPERM") << inside.err;
  EXPECT_EQ(ResultOf(inside, "shared by number"), "EPERM");
  EXPECT_EQ(ResultOf(inside, "own"), "0");
  EXPECT_EQ(ResultOf(inside, "timeout"), "124");
  EXPECT_EQ(ResultOf(inside, "job"), "b'over\\n'");
  EXPECT_EQ(Refused("kill"), 2U);
  argv.resize(4);
  for (const std::string& word : Python(text, {"bare"})) argv.push_back(word);
  const Outcome bare = sandbox.RunBare(argv);
  EXPECT_EQ(ResultOf(bare, "shared"), "0") << bare.err;
  // With a session of its own the group is the module's from the start.
  const Outcome alone = Run(text, "", {"stay"});
  EXPECT_EQ(ResultOf(alone, "shared"), "0");
  EXPECT_EQ(ResultOf(alone, "timeout"), "124");
  EXPECT_EQ(ResultOf(alone, "job"), "b'over\\n'");
}

// O_ASYNC makes the foreground group of a terminal its owner, whoever that is; the terminal may be the module's stdin and no more.
TEST_P(SignalTest, E153_ATerminalsForegroundGroup) {
  const std::string text = R"(
say('async', lambda: fcntl.fcntl(0, fcntl.F_SETFL, fcntl.fcntl(0, fcntl.F_GETFL) | 0o20000))
say('FIOASYNC', lambda: fcntl.ioctl(0, 0x5452, struct.pack('i', 1)))
say('signal', lambda: fcntl.fcntl(0, 10, USR1))
os.write(1, b'armed\n')
time.sleep(float(sys.argv[1]))
)";
  for (const bool bare : {false, true}) {
    SCOPED_TRACE(bare ? "bare" : "inside");
    int master = -1, slave = -1;
    ASSERT_EQ(::openpty(&master, &slave, nullptr, nullptr, nullptr), 0);
    const UniqueFd outer(master), terminal(slave);
    ASSERT_EQ(::fchown(slave, GetParam().uid, GetParam().uid), 0);
    Process victim(ProcessOptions{.argv = {"/usr/bin/setsid", "--ctty", "--wait", "/bin/sleep", "300"}, .environment = {}, .input = {}, .directory = {},
                                  .uid = GetParam().uid, .timeout = std::chrono::minutes(1), .before_exec = [slave] { (void)::dup2(slave, 0); }});
    ASSERT_TRUE(Eventually([&] {
      pid_t foreground = 0;
      if (::ioctl(master, TIOCGPGRP, &foreground) != 0 || foreground <= 0) return false;
      std::ifstream file("/proc/" + std::to_string(foreground) + "/comm");
      return std::string(std::istreambuf_iterator<char>(file), {}) == "sleep\n";
    }));
    Sandbox sandbox;
    const auto argv = Python(text, {"3"});
    ProcessOptions options = Older(sandbox, argv);
    if (bare) options.argv = argv;
    options.before_exec = [slave] { (void)::dup2(slave, 0); };
    Process module(options);
    ASSERT_TRUE(module.WaitFor("armed")) << module.err();
    EXPECT_EQ(ResultOf(module.out(), "async"), bare ? "0" : "EPERM");
    EXPECT_EQ(ResultOf(module.out(), "FIOASYNC"), bare ? "0" : "EPERM");
    ASSERT_EQ(::write(master, "x\n", 2), 2);
    if (bare) {
      EXPECT_TRUE(Eventually([&] { return !victim.Running(); }, std::chrono::seconds(2)));
    } else {
      ::usleep(300'000);
      EXPECT_TRUE(victim.Running());
    }
  }
}

// A child of before the launch is outside, its group too; the first process may not move it into its own group and end it there.
TEST_P(SignalTest, ChildrenFromBeforeTheLaunch) {
  Sandbox sandbox("\"tty\":\"inherit\"");
  const ProcessOptions inside = Older(sandbox, Python(R"(
child = int(open('/proc/self/task/%d/children' % os.getpid()).read().split()[0])
say('child', lambda: os.kill(child, 9))
say('group', lambda: os.kill(0, 9))
os.setpgid(0, 0)
say('moved', lambda: os.setpgid(child, os.getpgrp()))
say('moved group', lambda: os.kill(0, 0))
print('there ->', os.path.exists('/proc/%d' % child))
)"));
  ProcessOptions options = inside;
  // A subshell, which has executed nothing and so may be moved.
  options.argv = {"/bin/sh", "-c", "(while :; do read line </dev/zero; done) >/dev/null 2>&1 & exec \"$@\"", "sh"};
  options.argv.insert(options.argv.end(), inside.argv.begin(), inside.argv.end());
  options.argv[2] = "(trap 'exit' TERM; read line <\"$0\") >/dev/null 2>&1 & exec \"$@\"";
  TemporaryDirectory directory;
  const std::string fifo = directory / "fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0666), 0);
  ASSERT_EQ(::chmod(fifo.c_str(), 0666), 0);
  options.argv[3] = fifo;
  const Outcome outcome = RunProcess(options);
  const UniqueFd release(::open(fifo.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
  EXPECT_EQ(::write(release.get(), "\n", 1), 1);
  EXPECT_EQ(ResultOf(outcome, "child"), "EPERM") << outcome.err;
  EXPECT_EQ(ResultOf(outcome, "group"), "EPERM");
  EXPECT_EQ(ResultOf(outcome, "moved"), "0");
  EXPECT_EQ(ResultOf(outcome, "moved group"), "EPERM");
  EXPECT_EQ(ResultOf(outcome, "there"), "True");
}

TEST_P(SignalTest, ReportAndRequire) {
  TemporaryDirectory directory;
  const std::string place = directory.MakeDirectory("report", 0777) + "/report.json";
  EXPECT_EQ(Run("print('ran')\n", "\"require\":[\"ipc\"],\"report\":\"" + place + "\"").out, "ran\n");
  std::ifstream file(place);
  const std::string report(std::istreambuf_iterator<char>(file), {});
  EXPECT_NE(report.find("\"ipc\":\"enforced\""), std::string::npos) << report;
  EXPECT_NE(report.find("\"landlock_abi\":" + std::to_string(GetParam().abi)), std::string::npos) << report;
}

// A supervisor that has no descriptor left makes the call wait; a program's signals to itself need none.
TEST_P(SignalTest, ShortageMakesThemWait) {
  Sandbox sandbox;
  Process module(Older(sandbox, Python(R"(
got = []
signal.signal(USR1, lambda *_: got.append(1))
child = subprocess.Popen(['/bin/sleep', '60'])
os.kill(os.getpid(), USR1)
print('ready', flush=True)
sys.stdin.readline()
say('self', lambda: os.kill(os.getpid(), USR1))
print('waits', flush=True)
say('child', lambda: child.kill())
)")));
  ASSERT_TRUE(module.WaitFor("ready")) << module.err();
  rlimit before{};
  ASSERT_EQ(::prlimit(daemon_.pid(), RLIMIT_NOFILE, nullptr, &before), 0);
  const rlimit none{3, before.rlim_max};
  ASSERT_EQ(::prlimit(daemon_.pid(), RLIMIT_NOFILE, &none, nullptr), 0);
  module.Write("go\n");
  EXPECT_TRUE(module.WaitFor("self -> 0\nwaits")) << module.out();
  EXPECT_FALSE(module.WaitFor("child ->", std::chrono::milliseconds(500))) << module.out();
  ASSERT_EQ(::prlimit(daemon_.pid(), RLIMIT_NOFILE, &before, nullptr), 0);
  EXPECT_TRUE(module.WaitFor("child -> 0", std::chrono::seconds(5))) << module.out();
}

// Many threads that signal each other, their children and strangers at once: none is lost, none gets out.
TEST_P(SignalTest, Storm) {
  auto victim = Victim();
  const Outcome inside = Run(R"(
victim = int(sys.argv[1])
count, refused = [0], [0]
signal.signal(USR1, lambda *_: None)
me = os.getpid()
lock = threading.Lock()
def work(which):
  own = bad = 0
  for i in range(100):
    os.kill(me, USR1); own += 1
    child = os.fork()
    if child == 0:
      time.sleep(5)
      os._exit(1)
    os.kill(child, 9)
    own += os.WTERMSIG(os.waitpid(child, 0)[1]) == 9
    for name in ('kill', 'tkill', 'tgkill', 'group'):
      try: calls[name](victim)
      except PermissionError: bad += 1
  with lock:
    count[0] += own
    refused[0] += bad
threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
for t in threads: t.start()
for t in threads: t.join()
print('own ->', count[0], 'refused', refused[0])
)",
                             "", {std::to_string(victim->pid())});
  EXPECT_EQ(ResultOf(inside, "own"), "1200 refused 2400");
  EXPECT_TRUE(victim->Running());
  EXPECT_EQ(Refused("kill") + Refused("tkill") + Refused("tgkill"), 2400U);
}

// In a pid namespace of its own the module's numbers are not the supervisor's: what it names there is nobody's, however that number is
// the sandbox's own here.
TEST(SignalNamespace, NumbersOfAnotherNamespaceAreNobodys) {
  if (RunProcess({.argv = {"/usr/bin/unshare", "--pid", "--fork", "--mount-proc", "/bin/true"}, .environment = {}, .input = {}, .directory = {}, .uid = {}, .before_exec = {}}).code != 0)
    GTEST_SKIP() << "no pid namespaces here";
  Daemon daemon;
  Sandbox sandbox;
  sandbox.Supervisor(daemon.socket()).Environment("OARLOCK_TEST_ABI", "5");
  // The neighbour in the namespace is number 2.
  const auto argv = Python(R"(
say('signal', lambda: os.kill(2, 0))
say('priority', lambda: os.setpriority(os.PRIO_PROCESS, 2, 5))
say('group', lambda: os.kill(0, 0))
say('own priority', lambda: os.setpriority(os.PRIO_PROCESS, 0, 5))
)");
  for (const bool bare : {false, true}) {
    SCOPED_TRACE(bare ? "bare" : "inside");
    ProcessOptions options = sandbox.Options(argv);
    options.argv[0] = OARLOCK_BINARY_DIR "/tests/bin/older-launcher";
    if (bare) options.argv = argv;
    options.argv.insert(options.argv.begin(), {"/usr/bin/unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "/bin/sh", "-c",
                                               "sleep 20 >/dev/null 2>&1 </dev/null & \"$@\"; kill $!", "sh"});
    const Outcome outcome = RunProcess(options);
    for (const char* what : {"signal", "priority", "group"}) EXPECT_EQ(ResultOf(outcome, what), bare ? "0" : "EPERM") << what << outcome.err;
    EXPECT_EQ(ResultOf(outcome, "own priority"), "0");
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, SignalTest, ::testing::Values(Row{0, 5}, Row{65534, 5}, Row{65534, 2}),
                         [](const auto& row) { return (row.param.uid == 0 ? "AsRootAbi" : "AsNobodyAbi") + std::to_string(row.param.abi); });

}  // namespace
}  // namespace oarlock::test
