// SPDX-License-Identifier: Apache-2.0
// exec_strict and memfd_create: programs have their anonymous files, and none can be run (E-140). The supervisor makes the file, so the
// rest is that nobody can tell: whose it is, what its name, flags, seals and errors are, whose limit it counts against.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>

#include "tests/support/daemon.h"
#include "tests/support/sandbox.h"

namespace oarlock::test {
namespace {

// `call`: memfd_create as it is, with a name by address.
constexpr const char* kPrelude = R"(
import ctypes, errno, fcntl, mmap, os, platform, resource, signal, stat, sys, threading
libc = ctypes.CDLL(None, use_errno=True)
number = 319 if platform.machine() == 'x86_64' else 279
def call(name, flags):
  if isinstance(name, bytes): name = ctypes.c_char_p(name)
  else: name = ctypes.c_long(name)
  fd = libc.syscall(ctypes.c_long(number), name, ctypes.c_long(flags))
  if fd < 0: raise OSError(ctypes.get_errno(), '')
  return fd
def result(make):
  try: made = make()
  except OSError as e: return errno.errorcode[e.errno]
  return '0' if made is None else str(made)
def say(what, make): print(what, '->', result(make), flush=True)
CLOEXEC, SEALING, HUGETLB, NOEXEC, EXEC = 1, 2, 4, 8, 16
)";

constexpr const char* kRunning = R"(
program = open('/bin/true', 'rb').read()
fd = call(b'payload', 0)
os.write(fd, program)
def runs(run):
  def child():
    pid = os.fork()
    if pid == 0:
      try: run()
      except OSError as e: os._exit(e.errno)
      os._exit(99)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return 'ran' if code == 0 else errno.errorcode.get(code, code)
  return child
def empty_path():
  libc.syscall(ctypes.c_long(322 if number == 319 else 281), ctypes.c_long(fd), b'', ctypes.c_long(0), ctypes.c_long(0), ctypes.c_long(0x1000))
  raise OSError(ctypes.get_errno(), '')
ways = {
  'proc': lambda: os.execv('/proc/self/fd/%d' % fd, ['x']),
  'dev': lambda: os.execv('/dev/fd/%d' % fd, ['x']),
  'thread': lambda: os.execv('/proc/thread-self/fd/%d' % fd, ['x']),
  'empty': empty_path,
}
for name, way in ways.items(): say('exec ' + name, runs(way))
say('fchmod', lambda: os.fchmod(fd, 0o755))
say('chmod', lambda: os.chmod('/proc/self/fd/%d' % fd, 0o700))
say('fchmod less', lambda: os.fchmod(fd, 0o600))
for name, way in ways.items(): say('again ' + name, runs(way))
link = lambda: os.link('/proc/self/fd/%d' % fd, 'linked', follow_symlinks=True)
say('link', link)
)";

constexpr const char* kTelling = R"(
one = call(b'one', 0)
print('name ->', os.readlink('/proc/self/fd/%d' % one))
status = os.fstat(one)
print('owner ->', status.st_uid == os.getuid() and status.st_gid == os.getgid())
print('size ->', status.st_size)
print('flags ->', hex(fcntl.fcntl(one, fcntl.F_GETFL)))
print('cloexec ->', fcntl.fcntl(one, fcntl.F_GETFD), fcntl.fcntl(call(b'two', CLOEXEC), fcntl.F_GETFD))
say('chmod', lambda: os.fchmod(one, 0o600))
say('write', lambda: os.write(one, b'x' * 10000))
say('map', lambda: mmap.mmap(one, 10000)[5])
say('reopened', lambda: os.read(os.open('/proc/self/fd/%d' % one, os.O_RDONLY), 3))
say('unsealable', lambda: fcntl.fcntl(one, 1033, 2))
three = call(b'three', SEALING)
say('sealable', lambda: fcntl.fcntl(three, 1033, 8))
say('sealed', lambda: os.write(three, b'x'))
say('asked for', lambda: fcntl.fcntl(call(b'four', NOEXEC), 1033, 2))
for length in (0, 1, 120, 127, 128, 129, 248, 249, 250, 251, 5000): say('name of %d' % length, lambda: len(os.readlink('/proc/self/fd/%d' % call(b'n' * length, 0))))
say('bytes', lambda: repr(os.readlink('/proc/self/fd/%d' % call(b'\xff\x01 "', 0)).encode(errors='surrogateescape')))
for flags in (0x20, 0x80000000, NOEXEC | EXEC, 1 << 26, HUGETLB | 63 << 26): say('flags %#x' % flags, lambda: call(b'', flags) and None)
say('flags above', lambda: call(b'', 1 << 32) and None)
say('huge', lambda: call(b'', HUGETLB) and None)
for address in (0, 8, -1, 1 << 62): say('name at %d' % address, lambda: call(address, 0) and None)
page = mmap.mmap(-1, 8192)
base = ctypes.addressof(ctypes.c_char.from_buffer(page))
libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
assert libc.mprotect(base + 4096, 4096, 0) == 0
page[4090:4096] = b'abcde\0'
say('name up to a hole', lambda: os.readlink('/proc/self/fd/%d' % call(base + 4090, 0)))
page[4090:4096] = b'abcdef'
say('name into a hole', lambda: call(base + 4090, 0))
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
made = []
def fill():
  while True: made.append(call(b'many', 0))
say('too many', fill)
os.close(made.pop())
say('one again', lambda: call(b'many', 0) and None)
)";

std::vector<std::string> Python(const std::string& text) { return {"/usr/bin/python3", "-c", kPrelude + text}; }
const std::string kStrict = "\"exec_strict\":true";

class MemoryTest : public testing::TestWithParam<uid_t> {
 protected:
  MemoryTest() : daemon_({"--admit-uid", std::to_string(GetParam())}) {}
  void Serve(Sandbox& sandbox, bool node) {
    sandbox.As(GetParam());
    if (node) sandbox.Supervisor(daemon_.socket());
  }
  std::vector<LogLine> Log(const Sandbox& sandbox, bool node) { return node ? daemon_.Log() : sandbox.Log(); }
  Daemon daemon_;
};

TEST_P(MemoryTest, E140_NothingInMemoryRuns) {
  for (const bool node : {false, true}) {
    SCOPED_TRACE(node ? "oarlockd" : "private");
    Sandbox sandbox(kStrict);
    Serve(sandbox, node);
    const Outcome inside = sandbox.Run(Python(kRunning));
    ASSERT_EQ(inside.code, 0) << inside.err << inside.out;
    for (const std::string when : {"exec ", "again "}) {
      for (const char* way : {"proc", "dev", "thread"}) EXPECT_EQ(ResultOf(inside, when + way), "EACCES") << when << way;
      EXPECT_EQ(ResultOf(inside, when + "empty"), "ENOSYS");
    }
    EXPECT_EQ(ResultOf(inside, "fchmod"), "EPERM");
    EXPECT_EQ(ResultOf(inside, "chmod"), "EPERM");
    EXPECT_EQ(ResultOf(inside, "fchmod less"), "0");
    EXPECT_NE(ResultOf(inside, "link"), "0");
    const Outcome bare = sandbox.RunBare(Python(kRunning));
    for (const char* way : {"proc", "dev", "thread", "empty"}) EXPECT_EQ(ResultOf(bare, std::string("exec ") + way), "ran") << bare.err;
    EXPECT_EQ(ResultOf(bare, "fchmod"), "0");
    // Where the policy lets files be run that the module wrote, this is one.
    Sandbox lax("\"exec_rw\":true");
    Serve(lax, node);
    EXPECT_EQ(ResultOf(lax.Run(Python(kRunning)), "exec proc"), "ran");
  }
}

TEST_P(MemoryTest, IsAsIfTheModuleHadMadeIt) {
  for (const bool node : {false, true}) {
    SCOPED_TRACE(node ? "oarlockd" : "private");
    Sandbox sandbox(kStrict);
    Serve(sandbox, node);
    const Outcome inside = sandbox.Run(Python(kTelling)), bare = sandbox.RunBare(Python(kTelling));
    ASSERT_EQ(inside.code, 0) << inside.err << inside.out;
    EXPECT_EQ(inside.out, bare.out);
    // Some of it, in case nothing at all was told.
    EXPECT_EQ(ResultOf(inside, "name of 249"), "266");
    EXPECT_EQ(ResultOf(inside, "name of 250"), "EINVAL");
    EXPECT_EQ(ResultOf(inside, "name at 8"), "EFAULT");
    EXPECT_EQ(ResultOf(inside, "too many"), "EMFILE");
    EXPECT_EQ(ResultOf(inside, "owner"), "True");
    EXPECT_EQ(ResultOf(inside, "unsealable"), "EPERM");
    for (const LogLine& line : Log(sandbox, node)) EXPECT_NE(line.call, "memfd_create") << line.text;
  }
}

TEST_P(MemoryTest, AskedToBeExecutableIsRefused) {
  for (const bool node : {false, true}) {
    Sandbox sandbox(kStrict);
    Serve(sandbox, node);
    const auto program = Python("say('exec', lambda: call(b'x', EXEC | CLOEXEC) and None)\n");
    EXPECT_EQ(ResultOf(sandbox.Run(program), "exec"), "EACCES");
    EXPECT_EQ(ResultOf(sandbox.RunBare(program), "exec"), "0");
    const auto log = Log(sandbox, node);
    const auto line = std::ranges::find(log, "memfd_create", &LogLine::call);
    ASSERT_NE(line, log.end());
    EXPECT_EQ(line->code, "SYSCALL_DENIED");
    EXPECT_EQ(line->kind, "DENY");
    EXPECT_EQ(line->errno_name, "EACCES");
  }
}

TEST_P(MemoryTest, ApprovalsAreRecordedWhereThePolicySaysSo) {
  Sandbox sandbox(kStrict + ",\"audit_approvals\":true");
  Serve(sandbox, false);
  ASSERT_EQ(sandbox.Run(Python("os.write(call(b'x', 0), b'y')\n")).code, 0);
  const auto log = sandbox.Log();
  const auto line = std::ranges::find(log, "memfd_create", &LogLine::call);
  ASSERT_NE(line, log.end());
  EXPECT_NE(line->text.find("\"action_id\":1"), std::string::npos) << line->text;
}

// Threads, signals without SA_RESTART, closes of numbers by others: each call gets a file of its own, and none is left behind.
TEST_P(MemoryTest, ManyAtOnceGetOneEach) {
  const std::string text = R"(
ticks = 0
def tick(*_):
  global ticks
  ticks += 1
signal.signal(signal.SIGALRM, tick)
signal.siginterrupt(signal.SIGALRM, True)
made, wrong, again = [0] * 8, [], [0] * 8
def work(which):
  for i in range(200):
    name = b'%d-%d' % (which, i)
    while True:
      try: fd = call(name, CLOEXEC); break
      except InterruptedError: again[which] += 1
    if os.readlink('/proc/self/fd/%d' % fd) != '/memfd:%s (deleted)' % name.decode(): wrong.append(name)
    os.write(fd, name)
    if os.pread(fd, 100, 0) != name: wrong.append(name)
    os.close(fd)
    made[which] += 1
signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
threads = [threading.Thread(target=work, args=(i,)) for i in range(7)]
for t in threads: t.start()
work(7)
for t in threads: t.join()
signal.setitimer(signal.ITIMER_REAL, 0)
print('made ->', sum(made), 'wrong', wrong)
print('left ->', [n for n in os.listdir('/proc/self/fd') if 'memfd' in (os.readlink('/proc/self/fd/' + n) if os.path.lexists('/proc/self/fd/' + n) else '')])
)";
  Sandbox sandbox(kStrict);
  Serve(sandbox, true);
  // Something has been served before, so that what is kept for good is there.
  ASSERT_EQ(sandbox.Run(Python("call(b'', 0)\n")).code, 0);
  const size_t before = daemon_.Descriptors();
  const Outcome inside = sandbox.Run(Python(text));
  EXPECT_EQ(ResultOf(inside, "made"), "1600 wrong []") << inside.err;
  EXPECT_EQ(ResultOf(inside, "left"), "[]");
  EXPECT_TRUE(Eventually([&] { return daemon_.Descriptors() <= before; })) << daemon_.Descriptors() << " of " << before;
}

// A caller that is killed in the middle takes nothing down and leaves nothing open.
TEST_P(MemoryTest, CallersThatAreKilled) {
  const std::string text = R"(
for i in range(60):
  pid = os.fork()
  if pid == 0:
    while True: os.close(call(b'x' * 249, 0))
  if i % 3 == 0: signal.sigtimedwait([], 0.001)
  os.kill(pid, signal.SIGKILL)
  os.waitpid(pid, 0)
say('after', lambda: call(b'', 0) and None)
)";
  Sandbox sandbox(kStrict);
  Serve(sandbox, true);
  ASSERT_EQ(sandbox.Run(Python("call(b'', 0)\n")).code, 0);
  const size_t before = daemon_.Descriptors();
  const Outcome inside = sandbox.Run(Python(text));
  EXPECT_EQ(ResultOf(inside, "after"), "0") << inside.err;
  EXPECT_TRUE(Eventually([&] { return daemon_.Descriptors() <= before; })) << daemon_.Descriptors() << " of " << before;
  EXPECT_TRUE(daemon_.process().Running());
}

INSTANTIATE_TEST_SUITE_P(Users, MemoryTest, ::testing::Values(0, 65534), [](const auto& row) { return row.param == 0 ? "AsRoot" : "AsNobody"; });

// A supervisor that has no descriptor left makes the call wait, as any other.
TEST(MemoryShortage, TheCallWaits) {
  Daemon daemon;
  Sandbox sandbox(kStrict);
  sandbox.Supervisor(daemon.socket());
  Process module(sandbox.Options(Python(R"(
print('ready', result(lambda: call(b'x', 0) and None), flush=True)
sys.stdin.readline()
say('made', lambda: call(b'x', 0) and None)
)")));
  ASSERT_TRUE(module.WaitFor("ready 0")) << module.err();
  rlimit before{};
  ASSERT_EQ(::prlimit(daemon.pid(), RLIMIT_NOFILE, nullptr, &before), 0);
  const rlimit none{3, before.rlim_max};
  ASSERT_EQ(::prlimit(daemon.pid(), RLIMIT_NOFILE, &none, nullptr), 0);
  module.Write("go\n");
  EXPECT_FALSE(module.WaitFor("made", std::chrono::milliseconds(700))) << module.out();
  ASSERT_EQ(::prlimit(daemon.pid(), RLIMIT_NOFILE, &before, nullptr), 0);
  EXPECT_TRUE(module.WaitFor("made -> 0\n", std::chrono::seconds(5))) << module.out();
  for (const LogLine& line : daemon.Log()) EXPECT_NE(line.call, "memfd_create") << line.text;
}

}  // namespace
}  // namespace oarlock::test
