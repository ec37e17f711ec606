// SPDX-License-Identifier: Apache-2.0
// Limits, CPUs, scheduling and priority of tasks: those of the sandbox as ever, of nobody else's, though the user is the same
// (E-154, E-155). Landlock's signal scope covers none of these calls.
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include <fstream>
#include <iterator>

#include "tests/support/daemon.h"
#include "tests/support/sandbox.h"

namespace oarlock::test {
namespace {

// Makes each call about somebody: outside (argument 1), a thread, a child, a grandchild, nobody, itself by number.
constexpr const char* kProgram = R"(
import ctypes, errno, os, platform, sys, threading, time
libc = ctypes.CDLL(None, use_errno=True)
x86 = platform.machine() == 'x86_64'
def call(nr, *args):
  words = [ctypes.c_long(a) if isinstance(a, int) else a for a in args]
  return '0' if libc.syscall(ctypes.c_long(nr), *words) >= 0 else errno.errorcode[ctypes.get_errno()]
ref = lambda value: ctypes.byref(value)
limit, mask, zero = (ctypes.c_ulong * 2)(0, 0), ctypes.c_ulong(1), ctypes.c_int(0)
attr = (ctypes.c_uint * 12)(48, 3, 0, 0, 19)
calls = {
  'prlimit64': lambda p: call(302 if x86 else 261, p, 4, ref(limit), 0),
  'sched_setaffinity': lambda p: call(203 if x86 else 122, p, 8, ref(mask)),
  'sched_setscheduler': lambda p: call(144 if x86 else 119, p, 3, ref(zero)),
  'sched_setparam': lambda p: call(142 if x86 else 118, p, ref(zero)),
  'sched_setattr': lambda p: call(314 if x86 else 274, p, ref(attr), 0),
  'setpriority': lambda p: call(141 if x86 else 140, 0, p, 19),
  'ioprio_set': lambda p: call(251 if x86 else 30, 1, p, 3 << 13),
}
stop = threading.Event()
thread = threading.Thread(target=stop.wait)
thread.start()
r, w = os.pipe()
child = os.fork()
if child == 0:
  grandchild = os.fork()
  if grandchild: os.write(w, b'%d\n' % grandchild)
  time.sleep(60)
  os._exit(0)
grandchild = int(os.read(r, 20))
gone = os.fork()
if gone == 0: os._exit(0)
os.waitpid(gone, 0)
# Those that lower something last.
bare = len(sys.argv) > 2  # there all of it would be done, to the machine too
who = {'outside': int(sys.argv[1]), 'init': int(sys.argv[1]) if bare else 1, 'nobody': gone, 'thread': thread.native_id, 'child': child, 'grandchild': grandchild, 'self': os.getpid(), 'zero': 0}
for name, pid in who.items():
  for what, make in calls.items(): print(what, name, '->', make(pid), flush=True)
for which in () if bare else (1, 2): print('setpriority all', which, '->', call(141 if x86 else 140, which, 0, 6), flush=True)
for which in () if bare else (2, 3): print('ioprio_set all', which, '->', call(251 if x86 else 30, which, 0, 3 << 13), flush=True)
print('sched_setaffinity negative ->', calls['sched_setaffinity'](-7), flush=True)
stop.set()
os.kill(grandchild, 9)
os.kill(child, 9)
)";
const std::vector<std::string> kCalls = {"prlimit64", "sched_setaffinity", "sched_setscheduler", "sched_setparam", "sched_setattr", "setpriority", "ioprio_set"};

std::string Contents(pid_t pid, const std::string& name) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/" + name);
  return {std::istreambuf_iterator<char>(file), {}};
}

// What these calls can change of a process.
struct State {
  std::string limits;
  cpu_set_t cpus{};
  int policy = 0, nice = 0;
  long io = 0;
  explicit State(pid_t pid) {
    limits = Contents(pid, "limits");
    (void)::sched_getaffinity(pid, sizeof(cpus), &cpus);
    policy = ::sched_getscheduler(pid);
    nice = ::getpriority(PRIO_PROCESS, static_cast<id_t>(pid));
    io = ::syscall(SYS_ioprio_get, 1, pid);
  }
  friend bool operator==(const State& a, const State& b) {
    return a.limits == b.limits && CPU_EQUAL(&a.cpus, &b.cpus) && a.policy == b.policy && a.nice == b.nice && a.io == b.io;
  }
};

// How often the supervisor refused it; the kernel alone refuses some of these too.
uint64_t Refused(const std::vector<LogLine>& log, const std::string& call) {
  uint64_t refused = 0;
  for (const LogLine& line : log)
    if (line.code == "SYSCALL_DENIED" && line.kind == "DENY" && line.call == call) refused += line.count;
  return refused;
}

class TaskTest : public ::testing::TestWithParam<uid_t> {
 protected:
  // Somebody outside, of the module's user.
  [[nodiscard]] static std::unique_ptr<Process> Victim() {
    return std::make_unique<Process>(ProcessOptions{.argv = {"/bin/sleep", "300"}, .environment = {}, .input = {}, .directory = {}, .uid = GetParam(),
                                                    .timeout = std::chrono::minutes(5), .before_exec = {}});
  }
};

TEST_P(TaskTest, E154_E155_TasksOutsideAreOutOfReachAndOnesOwnAreNot) {
  for (const bool node : {false, true}) {
    SCOPED_TRACE(node ? "oarlockd" : "private");
    Daemon daemon({"--admit-uid", std::to_string(GetParam())});
    auto victim = Victim();
    ASSERT_TRUE(Eventually([&] { return Contents(victim->pid(), "comm") == "sleep\n"; }));
    const State before(victim->pid());
    const std::vector<std::string> command = {"/usr/bin/python3", "-c", kProgram, std::to_string(victim->pid())};
    Sandbox sandbox("\"limits\":{}");
    sandbox.As(GetParam());
    if (node) sandbox.Supervisor(daemon.socket());
    const Outcome inside = sandbox.Run(command);
    ASSERT_EQ(inside.code, 0) << inside.err << inside.out;
    for (const std::string& call : kCalls) {
      EXPECT_EQ(ResultOf(inside, call + " outside"), "EPERM") << call;
      EXPECT_EQ(ResultOf(inside, call + " init"), "EPERM") << call;
      EXPECT_EQ(ResultOf(inside, call + " nobody"), "ESRCH") << call;
      for (const char* own : {" thread", " child", " grandchild", " self", " zero"}) EXPECT_EQ(ResultOf(inside, call + own), "0") << call << own;
    }
    for (const char* all : {"setpriority all 1", "setpriority all 2", "ioprio_set all 2", "ioprio_set all 3"}) EXPECT_EQ(ResultOf(inside, all), "EPERM") << all;
    EXPECT_EQ(ResultOf(inside, "sched_setaffinity negative"), "ESRCH");
    EXPECT_TRUE(State(victim->pid()) == before);
    EXPECT_TRUE(victim->Running());
    const auto log = node ? daemon.Log() : sandbox.Log();
    for (const std::string& call : kCalls) EXPECT_EQ(Refused(log, call), call == "setpriority" || call == "ioprio_set" ? 4U : 2U) << call;
    // The twin.
    auto twin = command;
    twin.emplace_back("bare");
    const Outcome bare = sandbox.RunBare(twin);
    for (const std::string& call : kCalls) EXPECT_EQ(ResultOf(bare, call + " outside"), "0") << call;
    EXPECT_FALSE(State(victim->pid()) == before);
  }
}

// A task whose parents have gone: the leader of its session tells whose it is, and if it made a session for itself, nobody does.
TEST_P(TaskTest, E155_AnOrphanIsKnownByItsSession) {
  Sandbox sandbox;
  sandbox.As(GetParam());
  // In a session of its own, as an agent starts it: the test's children lead groups, and those cannot make one.
  ProcessOptions options = sandbox.Options({"/usr/bin/python3", "-c", R"(
import os, time
def orphan(leaves):
  r, w = os.pipe()
  if os.fork() == 0:
    if os.fork() == 0:
      time.sleep(0.2)
      if leaves: os.setsid()
      os.setpriority(os.PRIO_PROCESS, os.getpid(), 3)
      os.write(w, b'%d\n' % os.getpid())
      time.sleep(30)
    os._exit(0)
  os.wait()
  return int(os.read(r, 20))
for what, leaves in (('orphan', False), ('daemon', True)):
  pid = orphan(leaves)
  try: os.setpriority(os.PRIO_PROCESS, pid, 4); print(what, '-> 0')
  except PermissionError: print(what, '-> EPERM')
  print(what, 'has ->', os.getpriority(os.PRIO_PROCESS, pid))
  os.kill(pid, 9)
)"});
  options.argv.insert(options.argv.begin(), {"/usr/bin/setsid", "--wait"});
  const Outcome inside = RunProcess(options);
  EXPECT_EQ(ResultOf(inside, "orphan"), "0") << inside.err;
  EXPECT_EQ(ResultOf(inside, "orphan has"), "4") << inside.err;
  EXPECT_EQ(ResultOf(inside, "daemon"), "EPERM") << inside.err;
  EXPECT_EQ(ResultOf(inside, "daemon has"), "3") << inside.err;
  EXPECT_EQ(Refused(sandbox.Log(), "setpriority"), 1U);
}

// A child that the first process had before it was confined is no part of the sandbox.
TEST_P(TaskTest, E155_AChildFromBeforeTheLaunchIsOutside) {
  Sandbox sandbox;
  sandbox.As(GetParam());
  const ProcessOptions inside = sandbox.Options({"/usr/bin/python3", "-c", R"(
import os
child = int(open('/proc/self/task/%d/children' % os.getpid()).read().split()[0])
try: os.setpriority(os.PRIO_PROCESS, child, 4); print('child -> 0')
except PermissionError: print('child -> EPERM')
print('its own ->', os.getpriority(os.PRIO_PROCESS, child))
)"});
  ProcessOptions options = inside;
  options.argv = {"/bin/sh", "-c", "sleep 20 >/dev/null 2>&1 & exec \"$@\"", "sh"};
  options.argv.insert(options.argv.end(), inside.argv.begin(), inside.argv.end());
  const Outcome outcome = RunProcess(options);
  EXPECT_EQ(ResultOf(outcome, "child"), "EPERM") << outcome.err;
  EXPECT_EQ(ResultOf(outcome, "its own"), "0") << outcome.err;
  EXPECT_EQ(Refused(sandbox.Log(), "setpriority"), 1U);
}

INSTANTIATE_TEST_SUITE_P(Users, TaskTest, ::testing::Values(0, 65534), [](const auto& row) { return row.param == 0 ? "AsRoot" : "AsNobody"; });

}  // namespace
}  // namespace oarlock::test
