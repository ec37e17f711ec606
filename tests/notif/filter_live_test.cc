// SPDX-License-Identifier: Apache-2.0
// The programs in the kernel: a child confines itself with one, the test answers as its supervisor.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <thread>
#include <vector>

#include "notif/abi/seccomp.h"
#include "notif/base/pass_fd.h"
#include "notif/base/unique_fd.h"
#include "notif/filter/programs.h"

namespace oarlock {
namespace {

using namespace std::chrono_literals;
using Install = std::function<Result<UniqueFd>()>;
// Runs in the child, confined; its result is the exit status.
using Body = std::function<int()>;

constexpr int kSetUpFailed = 120;

// Hands the listener over as the launcher does: by sendmsg, which no filter may notify.
bool SendDescriptor(int socket, int fd) {
  return oarlock::SendWithFd(socket, "", 1, fd) == 1;
}

UniqueFd ReceiveDescriptor(int socket) {
  char byte;
  iovec data = {&byte, 1};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message = {};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  if (recvmsg(socket, &message, MSG_CMSG_CLOEXEC) != 1) return {};
  const cmsghdr* header = CMSG_FIRSTHDR(&message);
  if (header == nullptr || header->cmsg_type != SCM_RIGHTS) return {};
  int fd;
  std::memcpy(&fd, CMSG_DATA(header), sizeof(fd));
  return UniqueFd(fd);
}

// A child under a filter, and its listener. Killed at the end if it still runs.
class Confined {
 public:
  Confined(const Install& install, const Body& body) {
    std::array<int, 2> sockets{};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets.data()) != 0) return;
    UniqueFd ours(sockets[0]);
    UniqueFd theirs(sockets[1]);
    pid_ = fork();
    if (pid_ == 0) {
      ours.Reset();
      if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) _exit(kSetUpFailed);
      Result<UniqueFd> listener = install();
      if (!listener || !SendDescriptor(theirs.get(), listener->get())) _exit(kSetUpFailed);
      listener->Reset();
      theirs.Reset();
      _exit(body());
    }
    theirs.Reset();
    listener_ = ReceiveDescriptor(ours.get());
  }
  Confined(const Shape& shape, const Body& body)
      : Confined([&shape] { return InstallFilter(FilterProgram(shape)); }, body) {}
  Confined(const Confined&) = delete;
  Confined& operator=(const Confined&) = delete;
  ~Confined() {
    if (pid_ <= 0) return;
    (void)kill(pid_, SIGKILL);
    (void)Wait();
  }

  [[nodiscard]] bool ready() const { return listener_.valid(); }
  [[nodiscard]] pid_t pid() const { return pid_; }

  // The next notified call; false where none comes within `timeout`.
  bool Receive(abi::SeccompNotif& call, std::chrono::milliseconds timeout = 5s) const {
    pollfd waiting = {listener_.get(), POLLIN, 0};
    if (poll(&waiting, 1, static_cast<int>(timeout.count())) != 1 || (waiting.revents & POLLIN) == 0)
      return false;
    call = {};
    return ioctl(listener_.get(), abi::kIoctlNotifRecv, &call) == 0;
  }
  [[nodiscard]] bool Answer(uint64_t id, int error, int64_t value = 0) const {
    abi::SeccompNotifResponse response = {.id = id, .value = value, .error = error, .flags = 0};
    return ioctl(listener_.get(), abi::kIoctlNotifSend, &response) == 0;
  }
  [[nodiscard]] bool IsWaiting(uint64_t id) const {
    return ioctl(listener_.get(), abi::kIoctlNotifIdValid, &id) == 0;
  }

  // The wait status.
  int Wait() {
    int status = -1;
    while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    pid_ = -1;
    return status;
  }
  int ExitStatus() {
    const int status = Wait();
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  pid_t pid_ = -1;
  UniqueFd listener_;
};

// errno of a call, or 0.
template <typename... Args>
int ErrnoOf(long nr, Args... args) {
  return syscall(nr, args...) < 0 ? errno : 0;
}

TEST(FilterLive, EveryShapeLoads) {
  for (unsigned index = 0; index < kShapeCount; ++index) {
    Confined child(ShapeAt(index), [] { return 0; });
    EXPECT_TRUE(child.ready()) << ShapeName(ShapeAt(index));
    EXPECT_EQ(child.ExitStatus(), 0) << ShapeName(ShapeAt(index));
  }
}

TEST(FilterLive, AllowedCallsRunAndAbsentOnesAreEnosysWithoutANotification) {
  Confined child(Shape{.exec_strict = true}, [] {
    int step = 1;
    const auto expect = [&step](bool holds) {
      if (!holds) _exit(step);
      ++step;
    };
    expect(getppid() > 1);
    expect(ErrnoOf(SYS_openat, AT_FDCWD, "/dev/null", O_RDONLY | O_CLOEXEC, 06777) == 0);
    expect(ErrnoOf(SYS_clone3, nullptr, 0) == ENOSYS);
    expect(ErrnoOf(SYS_openat2, AT_FDCWD, "/dev/null", nullptr, 0) == ENOSYS);
    expect(ErrnoOf(SYS_io_uring_enter, -1, 0, 0, 0, nullptr, 0) == ENOSYS);
    expect(ErrnoOf(SYS_execveat, -1, "", nullptr, nullptr, AT_EMPTY_PATH) == ENOSYS);
    expect(ErrnoOf(470) == ENOSYS);
    expect(ErrnoOf(1'000'000) == ENOSYS);
    expect(ErrnoOf(SYS_prlimit64, 0, 7, nullptr, nullptr) == 0);
    expect(ErrnoOf(SYS_fchmod, -1, 0755) == EBADF);
    expect(ErrnoOf(SYS_setsockopt, -1, SOL_SOCKET, SO_KEEPALIVE, nullptr, 0) == EBADF);
    const pid_t forked = fork();  // by clone(), which glibc takes when clone3 is absent
    if (forked == 0) _exit(0);
    int status;
    expect(forked > 0 && waitpid(forked, &status, 0) == forked && status == 0);
    return 0;
  });
  ASSERT_TRUE(child.ready());
  abi::SeccompNotif call;
  EXPECT_FALSE(child.Receive(call)) << "call " << call.data.nr << " was notified";
  EXPECT_EQ(child.ExitStatus(), 0) << "the step of that number";
}

struct Notified {
  long nr;
  std::array<unsigned long, 6> args;
  int error;
};

TEST(FilterLive, NotifiedCallsWaitAndGetTheAnswer) {
  static const sockaddr_un kAddress = {.sun_family = AF_UNIX, .sun_path = "/run/x"};
  static const std::array<Notified, 14> kCalls = {{
      {SYS_connect, {9, reinterpret_cast<unsigned long>(&kAddress), sizeof(kAddress)}, EACCES},
      {SYS_socket, {AF_UNIX, SOCK_STREAM, 0}, EACCES},
      {SYS_socketpair, {AF_UNIX, SOCK_DGRAM, 0, 0}, EACCES},
      {SYS_bind, {9, 0, 0}, EACCES},
      {SYS_listen, {9, 1}, EACCES},
      {SYS_sendto, {9, 0, 0, MSG_FASTOPEN, 0, 0}, EOPNOTSUPP},
      {SYS_setsockopt, {9, 41, 57, 0, 0}, ENOPROTOOPT},
      {SYS_mount, {0, 0, 0, 0, 0}, EPERM},
      {SYS_ptrace, {0, 0, 0, 0}, EPERM},
      {SYS_io_uring_setup, {8, 0}, ENOSYS},
      {SYS_ioctl, {0, TIOCSTI, 0}, EPERM},
      {SYS_ioctl, {0, (1UL << 32) | TIOCSTI, 0}, EPERM},
      {SYS_fchmod, {9, 04755}, EPERM},
      {SYS_fcntl, {9, F_SETLEASE, 0}, EINVAL},
  }};
  Confined child(Shape{}, [] {
    for (size_t i = 0; i < kCalls.size(); ++i) {
      const auto& [nr, args, error] = kCalls.at(i);
      if (ErrnoOf(nr, args[0], args[1], args[2], args[3], args[4], args[5]) != error)
        return static_cast<int>(i) + 1;
    }
    return 0;
  });
  ASSERT_TRUE(child.ready());
  for (const Notified& expected : kCalls) {
    abi::SeccompNotif call;
    ASSERT_TRUE(child.Receive(call)) << expected.nr;
    EXPECT_EQ(call.data.nr, expected.nr);
    EXPECT_EQ(static_cast<pid_t>(call.pid), child.pid());
    EXPECT_TRUE(std::ranges::equal(call.data.args, expected.args));
    EXPECT_TRUE(child.Answer(call.id, -expected.error));
  }
  EXPECT_EQ(child.ExitStatus(), 0) << "the call of that number, from 1";
}

TEST(FilterLive, SocketsStayInTheKernelUnderMediationConnect) {
  Confined child(Shape{.network = Network::kConnect}, [] {
    if (ErrnoOf(SYS_socket, AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0) != 0) return 1;
    if (ErrnoOf(SYS_socket, AF_INET, SOCK_STREAM, 6) != 0) return 2;
    return ErrnoOf(SYS_socket, AF_INET, SOCK_STREAM, 262) == EPROTONOSUPPORT ? 0 : 3;
  });
  ASSERT_TRUE(child.ready());
  abi::SeccompNotif call;
  ASSERT_TRUE(child.Receive(call));
  EXPECT_EQ(call.data.nr, SYS_socket);
  EXPECT_EQ(call.data.args[2], 262U);
  EXPECT_TRUE(child.Answer(call.id, -EPROTONOSUPPORT));
  EXPECT_EQ(child.ExitStatus(), 0);
}

#if defined(__x86_64__)
TEST(FilterLive, AForeignArchitectureIsKilled) {
  Confined child(Shape{}, [] {
    long result = 20;  // getpid of i386
    asm volatile("int $0x80" : "+a"(result) : : "memory");
    return result == -ENOSYS ? 2 : 1;  // 2: this kernel has no 32-bit entry at all
  });
  ASSERT_TRUE(child.ready());
  const int status = child.Wait();
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV) GTEST_SKIP() << "the kernel has no 32-bit entry";
  ASSERT_TRUE(WIFSIGNALED(status)) << "exit status " << WEXITSTATUS(status);
  EXPECT_EQ(WTERMSIG(status), SIGSYS);
}

TEST(FilterLive, X32NumbersAreEnosys) {
  Confined child(Shape{}, [] {
    for (const long nr : {39L, 41L, 42L, 0L}) {
      if (ErrnoOf(static_cast<long>(abi::kX32Bit) | nr, AF_UNIX, SOCK_STREAM, 0) != ENOSYS) return 1;
    }
    return 0;
  });
  ASSERT_TRUE(child.ready());
  EXPECT_EQ(child.ExitStatus(), 0);
}
#endif

TEST(FilterLive, ASecondListenerIsBusy) {
  Confined child(Shape{}, [] {
    const Result<UniqueFd> second = InstallFilter(FilterProgram(Shape{}));
    return !second && second.error().code == EBUSY ? 0 : 1;
  });
  ASSERT_TRUE(child.ready());
  EXPECT_EQ(child.ExitStatus(), 0);
}

// --- WAIT_KILLABLE_RECV, by what it does: once received, a call is not interrupted by a signal that has a
// handler.

volatile sig_atomic_t handled = 0;
void CountSignal(int) { handled = handled + 1; }

// connect() under a signal that comes between notification and answer. 0: answered, and the handler ran; 1:
// interrupted.
int ConnectUnderSignal() {
  struct sigaction action = {};
  action.sa_handler = CountSignal;  // without SA_RESTART
  (void)sigaction(SIGUSR1, &action, nullptr);
  const int error = ErrnoOf(SYS_connect, -1, nullptr, 0);
  if (error == EINTR) return 1;
  return error == ENOANO && handled == 1 ? 0 : 2;
}

// Whether the call still waits after the signal.
void SignalDuringConnect(const Confined& child, bool& waits) {
  abi::SeccompNotif call;
  ASSERT_TRUE(child.Receive(call));
  ASSERT_EQ(kill(child.pid(), SIGUSR1), 0);
  // Long enough for an interruption to show; the control below is what keeps this honest.
  for (int i = 0; i < 40 && child.IsWaiting(call.id); ++i) std::this_thread::sleep_for(5ms);
  waits = child.IsWaiting(call.id);
  EXPECT_EQ(child.Answer(call.id, -ENOANO), waits);
}

TEST(FilterLive, ASignalDoesNotInterruptAReceivedCall) {
  Confined child(Shape{}, ConnectUnderSignal);
  ASSERT_TRUE(child.ready());
  bool waits = false;
  SignalDuringConnect(child, waits);
  EXPECT_TRUE(waits);
  EXPECT_EQ(child.ExitStatus(), 0);
}

TEST(FilterLive, WithoutTheFlagASignalDoesInterrupt) {
  const Install plain = []() -> Result<UniqueFd> {
    const auto program = FilterProgram(Shape{});
    const sock_fprog argument = {.len = static_cast<unsigned short>(program.size()),
                                 .filter = const_cast<sock_filter*>(program.data())};
    const long fd = syscall(SYS_seccomp, abi::kSeccompSetModeFilter, abi::kSeccompFlagNewListener, &argument);
    if (fd < 0) return OARLOCK_FAIL("seccomp", errno);
    return UniqueFd(static_cast<int>(fd));
  };
  Confined child(plain, ConnectUnderSignal);
  ASSERT_TRUE(child.ready());
  bool waits = true;
  SignalDuringConnect(child, waits);
  EXPECT_FALSE(waits);
  EXPECT_EQ(child.ExitStatus(), 1);
}

// --- The bitmap of constantly allowed calls (5.11) shows itself by time alone.

uint64_t NanosecondsPerCall() {
  constexpr int kCalls = 20'000;
  uint64_t best = UINT64_MAX;
  for (int round = 0; round < 15; ++round) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < kCalls; ++i) (void)syscall(SYS_getppid);
    const auto spent = std::chrono::steady_clock::now() - start;
    best = std::min(best, static_cast<uint64_t>(std::chrono::nanoseconds(spent).count()) / kCalls);
  }
  return best;
}

uint64_t MeasureUnder(const Install& install) {
  std::array<int, 2> pipe_ends{};
  if (pipe2(pipe_ends.data(), O_CLOEXEC) != 0) return 0;
  const UniqueFd from(pipe_ends[0]);
  const UniqueFd to(pipe_ends[1]);
  Confined child(install, [&to] {
    const uint64_t result = NanosecondsPerCall();
    return write(to.get(), &result, sizeof(result)) == sizeof(result) ? 0 : 1;
  });
  uint64_t result = 0;
  if (!child.ready() || child.ExitStatus() != 0 ||
      read(from.get(), &result, sizeof(result)) != sizeof(result))
    return 0;
  return result;
}

// The product's program behind 3,000 instructions that the kernel's emulator understands, or behind the same
// with a look at an argument before them, which it does not: only the former's calls can be cached.
std::vector<sock_filter> Behind(uint32_t first_load) {
  std::vector<sock_filter> program(3000, sock_filter{BPF_ALU | BPF_AND | BPF_K, 0, 0, 0xffffffff});
  program.front() = {BPF_LD | BPF_W | BPF_ABS, 0, 0, first_load};
  const auto ours = FilterProgram(Shape{});
  program.insert(program.end(), ours.begin(), ours.end());
  return program;
}

TEST(FilterLive, TheKernelCachesAllowedCalls) {
  const std::vector<sock_filter> constant = Behind(offsetof(abi::SeccompData, nr));
  const std::vector<sock_filter> looking = Behind(offsetof(abi::SeccompData, args));
  const uint64_t cached = MeasureUnder([&] { return InstallFilter(constant); });
  const uint64_t run = MeasureUnder([&] { return InstallFilter(looking); });
  const uint64_t product = MeasureUnder([] { return InstallFilter(FilterProgram(Shape{})); });
  ASSERT_GT(cached, 0U);
  ASSERT_GT(product, 0U);
  std::printf(
      "getppid: %ju ns under the product's program; behind 3,000 instructions %ju ns cached, %ju ns not\n",
      uintmax_t{product}, uintmax_t{cached}, uintmax_t{run});
  EXPECT_LT(cached * 3 / 2, run);
}

}  // namespace
}  // namespace oarlock
