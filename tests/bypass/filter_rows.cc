// SPDX-License-Identifier: Apache-2.0
// A. Getting round the system-call filter.
#include <linux/io_uring.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/reg.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <thread>

#include "tests/bypass/inside.h"
#include "tests/bypass/outside.h"
#include "tests/bypass/ring.h"

namespace bypass {
namespace {

constexpr long kHigh = 1L << 32;
constexpr int kMptcp = 262;

// --- other entries to the kernel ---

long Int80(long nr, long b, long c, long d) {
  long result;
  asm volatile("int $0x80" : "=a"(result) : "a"(nr), "b"(b), "c"(c), "d"(d) : "r8", "r9", "r10", "r11", "memory");
  return static_cast<int>(result);
}

// Each in a child: a filter that looks at the entry kills it.
void ForeignEntry(Inside& in) {
  constexpr long kSocketcall = 102, kSocket = 359, kConnect = 362;
  char* low = static_cast<char*>(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0));
  Address victim = MakeAddress("127.0.0.1", in.Port("tcp"));
  std::memcpy(low, victim.get(), sizeof(sockaddr_in));
  auto* arguments = reinterpret_cast<uint32_t*>(low + 128);
  const auto number = [](long value) { return static_cast<uint32_t>(value); };
  const auto finish = [&](const char* part, long fd, long result) {
    if (result == 0) (void)SendText(fd, in.Payload(part));
    return result;
  };
  in.Arrives("socket", ResultOfChild([&] {
               const long fd = Int80(kSocket, AF_INET, SOCK_STREAM, 0);
               return finish("socket", fd, fd < 0 ? fd : Int80(kConnect, fd, Of(low), sizeof(sockaddr_in)));
             }));
  in.Arrives("socketcall", ResultOfChild([&] {
               arguments[0] = AF_INET, arguments[1] = SOCK_STREAM, arguments[2] = 0;
               const long fd = Int80(kSocketcall, 1, Of(arguments), 0);
               arguments[0] = number(fd), arguments[1] = number(Of(low)), arguments[2] = sizeof(sockaddr_in);
               return finish("socketcall", fd, fd < 0 ? fd : Int80(kSocketcall, 3, Of(arguments), 0));
             }));
}

// --- tracing ---

// A child that makes a harmless call with the arguments of a connect; its tracer rewrites the number at the entry.
void RewrittenNumber(Inside& in) {
  Address victim = MakeAddress("127.0.0.1", in.Port("tcp"));
  const pid_t child = fork();
  if (child == 0) {
    if (Raw(SYS_ptrace, PTRACE_TRACEME) < 0) _exit(1);
    const long fd = Socket(AF_INET, SOCK_STREAM);
    (void)raise(SIGSTOP);
    const long result = Raw(SYS_getpid, fd, Of(victim.get()), victim.size);
    if (result == 0) (void)SendText(fd, in.Payload("rewritten"));
    _exit(0);
  }
  int status = 0;
  (void)waitpid(child, &status, 0);
  if (!WIFSTOPPED(status)) return in.Arrives("rewritten", -EPERM);
  long result = Raw(SYS_ptrace, PTRACE_SYSCALL, child, 0, 0);
  (void)waitpid(child, &status, 0);
  if (result == 0) result = Raw(SYS_ptrace, PTRACE_POKEUSER, child, 8 * ORIG_RAX, SYS_connect);
  (void)Raw(SYS_ptrace, PTRACE_DETACH, child, 0, 0);
  (void)waitpid(child, &status, 0);
  in.Arrives("rewritten", result);
}

struct Instruction {
  uint16_t code;
  uint8_t yes, no;
  uint32_t k;
};
struct Program {
  uint16_t length;
  Instruction* code;
};
long Install(Program program, long flags = 0) {
  (void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  return Raw(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, Of(&program));
}
long InstallOnConnect(uint32_t action, long flags = 0) {
  Instruction code[] = {{0x20, 0, 0, 0}, {0x15, 0, 1, SYS_connect}, {6, 0, 0, action}, {6, 0, 0, SECCOMP_RET_ALLOW}};
  return Install({4, code}, flags);
}
long InstallAllow() {
  Instruction code[] = {{6, 0, 0, SECCOMP_RET_ALLOW}};
  return Install({1, code});
}

// A filter that refuses connect, put to sleep by a tracer: whoever can do this to his own filter can do it to any.
void SuspendedFilter(Inside& in) {
  const long kSuspend = 1L << 21;
  const pid_t child = fork();
  if (child == 0) {
    (void)InstallOnConnect(SECCOMP_RET_ERRNO | EACCES);
    (void)raise(SIGSTOP);
    in.To("suspended", "127.0.0.1", in.Port("tcp"));
    _exit(0);
  }
  int status = 0;
  (void)waitpid(child, &status, WUNTRACED);
  const long result = Raw(SYS_ptrace, PTRACE_SEIZE, child, 0, kSuspend);
  (void)kill(child, SIGCONT);
  for (int i = 0; i < 8 && waitpid(child, &status, 0) == child && !WIFEXITED(status); ++i) (void)Raw(SYS_ptrace, PTRACE_CONT, child, 0, 0);
  if (result < 0) in.Arrives("suspended", result);
}

// --- rows ---

constexpr Row kRows[] = {
    {.id = "E-01", .what = "io_uring does socket, connect and send without any of these calls",
     .inside = [](Inside& in) {
       io_uring_params parameters{};
       const long fd = Raw(SYS_io_uring_setup, 8, Of(&parameters));
       if (fd < 0) return in.Arrives("ring", fd);
       Ring ring(static_cast<int>(fd), parameters);
       Address victim = MakeAddress("127.0.0.1", in.Port("tcp"));
       in.Arrives("ring", ring.ConnectAndSend(victim, in.Payload("ring")));
     }},
    {.id = "E-02", .what = "an inherited ring runs with the credentials that were registered in it before",
     .inside = [](Inside& in) {
       Ring ring(kFdRing, in.Text("ring"));
       if (ring.error() != 0) return in.Leaks("open", -ring.error(), "");
       const std::string path = in.Text("secret_file");
       io_uring_sqe sqe{};
       sqe.opcode = IORING_OP_OPENAT;
       sqe.fd = AT_FDCWD;
       sqe.addr = reinterpret_cast<uint64_t>(path.c_str());
       sqe.open_flags = O_RDONLY;
       sqe.personality = static_cast<uint16_t>(in.Number("ring_personality"));
       in.ReadSecretFrom("open", ring.Run(sqe));
     }},
    {.id = "E-03", .what = "an inherited ring that the kernel polls acts for its owner by shared memory alone",
     .inside = [](Inside& in) {
       Ring ring(kFdPolledRing, in.Text("polled"));
       if (ring.error() != 0) return in.Arrives("connect", -ring.error());
       io_uring_sqe sqe{};
       sqe.opcode = IORING_OP_CONNECT;
       sqe.fd = static_cast<int>(in.Number("polled_socket"));
       sqe.addr = static_cast<uint64_t>(in.Number("polled_address"));
       sqe.off = sizeof(sockaddr_in);
       const long result = ring.Run(sqe);
       sqe = {};
       sqe.opcode = IORING_OP_SEND;
       sqe.fd = static_cast<int>(in.Number("polled_socket"));
       sqe.addr = static_cast<uint64_t>(in.Number("polled_text"));
       sqe.len = 14;
       if (result == 0) (void)ring.Run(sqe);
       in.Arrives("connect", result);
     }},
    {.id = "E-04", .what = "a ring is passed on by SCM_RIGHTS",
     .inside = [](Inside& in) {
       io_uring_params parameters{};
       const long fd = Raw(SYS_io_uring_setup, 8, Of(&parameters));
       int pair[2] = {-1, -1};
       (void)socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
       in.Maybe().Reports("send", fd < 0 ? fd : SendDescriptor(pair[0], static_cast<int>(fd)));
     }},
    {.id = "E-05", .what = "the i386 entry, whose numbers mean other calls to a filter that does not look at the entry", .inside = ForeignEntry},
    {.id = "E-06", .what = "x32 numbers share the architecture of x86_64",
     .inside = [](Inside& in) {
       constexpr long kX32 = 0x40000000;
       Address victim = MakeAddress("127.0.0.1", in.Port("tcp"));
       const long fd = Raw(kX32 | SYS_socket, AF_INET, SOCK_STREAM, 0);
       const long result = fd < 0 ? fd : Raw(kX32 | SYS_connect, fd, Of(victim.get()), victim.size);
       if (result == 0) (void)SendText(fd, in.Payload("x32"));
       in.Maybe().Arrives("x32", result);
     }},
    {.id = "E-07", .what = "high halves of 32-bit arguments, which the kernel cuts off and a filter may compare",
     .inside = [](Inside& in) {
       const Address tcp = MakeAddress("127.0.0.1", in.Port("tcp")), udp = MakeAddress("127.0.0.1", in.Port("udp"));
       in.SendTo("fastopen", Socket(AF_INET, SOCK_STREAM), tcp, "sendto", MSG_FASTOPEN | kHigh);
       in.To("mptcp", "127.0.0.1", in.Port("tcp"), SOCK_STREAM, kMptcp | kHigh);
       in.SendTo("udp", Socket(AF_INET, SOCK_DGRAM | kHigh), udp);
       in.SendTo("family", Socket(AF_UNIX | kHigh, SOCK_DGRAM), MakeAddress(in.Text("datagram")));
       int pair[2] = {-1, -1};
       const long made = Raw(SYS_socketpair, AF_UNIX | kHigh, SOCK_DGRAM | kHigh, 0, Of(pair));
       in.SendTo("pair", made < 0 ? made : pair[0], MakeAddress(in.Text("datagram")));
       in.Reports("clone", ResultOfChild([] {
                    const long pid = Raw(SYS_clone, CLONE_NEWUSER | kHigh | SIGCHLD, 0, 0, 0, 0);
                    if (pid == 0) _exit(0);
                    return pid < 0 ? pid : 0;
                  }));
       char key = 'h';
       in.Judged("terminal", Raw(SYS_ioctl, 2, static_cast<long>(TIOCSTI) | kHigh, Of(&key)));
       (void)in.Ask("key terminal");
     },
     .answer = KeyArrived},
    {.id = "E-08", .what = "garbage in the high half of the call's number",
     .inside = [](Inside& in) {
       const long fd = Raw(SYS_socket | kHigh * 7, AF_INET, SOCK_STREAM, 0);
       Address victim = MakeAddress("127.0.0.1", in.Port("tcp"));
       const long result = fd < 0 ? fd : Raw(SYS_connect | kHigh * 7, fd, Of(victim.get()), victim.size);
       if (result == 0) (void)SendText(fd, in.Payload("connect"));
       in.Arrives("connect", result);
     }},
    {.id = "E-09", .what = "a call that is newer than the list: fchmodat2 and file_setattr set what chmod may not",
     .inside = [](Inside& in) {
       const std::string path = in.Text("work") + "/newer";
       (void)Raw(SYS_close, Open(path, O_CREAT | O_WRONLY, 0644));
       in.Judged("fchmodat2", Raw(452, AT_FDCWD, Of(path.c_str()), 04755, 0));
       // file_setattr: the flag "no dump" of a file outside.
       const std::string own = in.Text("own_file");
       uint64_t attributes[4] = {0x80, 0, 0, 0};
       in.Maybe().Reports("file_setattr", Raw(469, AT_FDCWD, Of(own.c_str()), Of(attributes), 24, 0));
       in.Maybe().Reports("nr1000", Raw(1000));
     },
     .judge = [](Outside& outside, const Part&) {
       struct stat status{};
       return stat((outside.Text("work") + "/newer").c_str(), &status) == 0 && (status.st_mode & 04000) != 0;
     }},
    {.id = "E-10", .what = "clone3 has its flags in memory, where no filter reads them",
     .inside = [](Inside& in) {
       in.Reports("newuser", ResultOfChild([] {
                    uint64_t arguments[11] = {CLONE_NEWUSER};
                    arguments[4] = SIGCHLD;
                    const long pid = Raw(SYS_clone3, Of(arguments), 64);
                    if (pid == 0) _exit(0);
                    return pid < 0 ? pid : 0;
                  }));
     }},
    {.id = "E-11", .what = "a debugger in the sandbox rewrites the number of a call at its entry", .inside = RewrittenNumber},
    {.id = "E-12", .what = "PTRACE_O_SUSPEND_SECCOMP puts a filter to sleep", .inside = SuspendedFilter},
    {.id = "E-13", .what = "threads from before the confinement stay free",
     .elsewhere = "exec ends every other thread, so that a module never meets one; the launcher's own count is checked before it confines itself; LaunchTest.IdentityOfRootWithoutCapabilities"},
    {.id = "E-14", .what = "the module stacks a filter of its own that allows everything",
     .inside = [](Inside& in) {
       const long installed = InstallAllow();
       if (installed < 0) return in.Arrives("allow", installed);
       in.To("allow", "127.0.0.1", in.Port("tcp"));
     }},
    {.id = "E-15", .what = "the module installs a listener of its own and answers itself",
     .inside = [](Inside& in) {
       const long listener = InstallOnConnect(SECCOMP_RET_USER_NOTIF, SECCOMP_FILTER_FLAG_NEW_LISTENER);
       if (listener >= 0) std::thread([fd = static_cast<int>(listener)] { AnswerContinue(fd); }).detach();
       in.To("answered", "127.0.0.1", in.Port("tcp"));
     }},
    {.id = "E-16", .what = "the launcher runs below somebody else's listener, who answers that all may go on",
     .inside = [](Inside& in) { in.To("below", "127.0.0.1", in.Port("tcp")); },
     .before_launch = [](Outside&) {
       // The listener's holder is a process of its own, with the listener's number in a shared table.
       const long listener = InstallOnConnect(SECCOMP_RET_USER_NOTIF, SECCOMP_FILTER_FLAG_NEW_LISTENER);
       if (listener < 0) _exit(118);
       if (fork() == 0) {
         (void)setsid();
         (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
         // Copies of the servers' sockets would keep their ports taken.
         (void)Raw(SYS_dup2, listener, 3);
         (void)Raw(SYS_close_range, 4, ~0U, 0);
         AnswerContinue(3);
         _exit(0);
       }
       (void)Raw(SYS_close, listener);
     },
     .flags = kOwnLaunch},
    {.id = "E-17", .what = "a sandbox without no_new_privs",
     .inside = [](Inside& in) { in.Reports("privileges", prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 0 ? 0 : -EPERM); }},
    {.id = "E-18", .what = "filters are stacked until there is no more room",
     .inside = [](Inside& in) {
       for (int i = 0; i < 5000 && InstallAllow() == 0; ++i) {
       }
       in.To("stacked", "127.0.0.1", in.Port("tcp"));
     },
     .seconds = 20},
};

}  // namespace

std::span<const Row> FilterRows() { return kRows; }

}  // namespace bypass
