// SPDX-License-Identifier: Apache-2.0
// D. User notification and the supervisor.
#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <thread>

#include "tests/bypass/inside.h"
#include "tests/bypass/outside.h"

namespace bypass {
namespace {

// A second task flips the port between the proxy's and the victim's while the first connects; whatever it gets it sends to.
void Flip(Inside& in, const std::string& part, bool process) {
  struct Shared {
    Address address;
    volatile int stop = 0;
    volatile long flips = 0;
  };
  auto* shared = new (mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) Shared;
  shared->address = MakeAddress("127.0.0.1", in.Port("proxy"));
  auto* port = const_cast<volatile in_port_t*>(&reinterpret_cast<sockaddr_in*>(shared->address.get())->sin_port);
  const uint16_t proxy = *port, victim = htons(static_cast<uint16_t>(in.Port("tcp")));
  const auto flip = [&] {
    for (bool on = false; shared->stop == 0; on = !on) {
      *port = on ? proxy : victim;
      shared->flips = shared->flips + 1;
      for (int i = 0; i < 20; ++i) asm volatile("pause");
    }
  };
  pid_t child = -1;
  std::thread thread;
  if (process) {
    child = fork();
    if (child == 0) {
      flip();
      _exit(0);
    }
  } else {
    thread = std::thread(flip);
  }
  long last = -EACCES;
  for (int i = 0; i < 2000; ++i) {
    // On a busy machine each has to get its turn.
    for (const long seen = shared->flips; i % 64 == 0 && shared->flips == seen;) usleep(50);
    const long fd = Socket(AF_INET, SOCK_STREAM);
    if (fd < 0) {
      last = fd;
      break;
    }
    const long result = Raw(SYS_connect, fd, Of(shared->address.get()), shared->address.size);
    if (result == 0) (void)SendText(fd, in.Payload(part));
    else last = result;
    (void)Raw(SYS_close, fd);
  }
  shared->stop = 1;
  if (thread.joinable()) thread.join();
  if (child > 0) (void)waitpid(child, nullptr, 0);
  in.Arrives(part, last);
}

// The number that connect() is given stands for a TCP socket and for a UDP socket in turn.
void Swap(Inside& in) {
  const long udp = Socket(AF_INET, SOCK_DGRAM);
  if (udp < 0) {
    // Without another sort of socket: one that was connected already is swapped in and out.
    return in.Arrives("udp", udp);
  }
  Address proxy = MakeAddress("127.0.0.1", in.Port("udp_proxy"));
  constexpr int kNumber = 90;
  std::atomic<int> tcp = -1;
  std::atomic<bool> stop = false;
  std::atomic<long> flips = 0;
  (void)Raw(SYS_dup2, udp, kNumber);
  std::thread thread([&] {
    for (bool on = false; !stop; on = !on) {
      const int fd = on ? tcp.load() : static_cast<int>(udp);
      if (fd >= 0) (void)Raw(SYS_dup2, fd, kNumber);
      ++flips;
    }
  });
  long result = 0;
  for (int i = 0; i < 500; ++i) {
    // On a busy machine each has to get its turn.
    for (const long seen = flips; i % 32 == 0 && flips == seen;) usleep(50);
    const long fresh = Socket(AF_INET, SOCK_STREAM);
    tcp = static_cast<int>(fresh);
    result = Raw(SYS_connect, kNumber, Of(proxy.get()), proxy.size);
    Address peer;
    unsigned size = sizeof(peer.storage);
    if (Raw(SYS_getpeername, udp, Of(peer.get()), Of(&size)) == 0) (void)SendText(udp, in.Payload("udp"));
    tcp = -1;
    (void)Raw(SYS_close, fresh);
  }
  stop = true;
  thread.join();
  in.Arrives("udp", result);
}

// A thread with a table of its own: the leader's number is a fresh socket, its own one is another.
void TablesApart(Inside& in, const std::string& part, bool by_close_range) {
  constexpr int kNumber = 80;
  const long leaders = Socket(AF_INET, SOCK_STREAM);
  if (leaders < 0) return in.Arrives(part, leaders);
  (void)Raw(SYS_dup2, leaders, kNumber);
  long result = 0;
  std::thread([&] {
    result = by_close_range ? Raw(SYS_close_range, 900, 900, CLOSE_RANGE_UNSHARE) : Raw(SYS_unshare, CLONE_FILES);
    if (result < 0) return;
    const long own = Socket(AF_INET, SOCK_STREAM);
    (void)Raw(SYS_dup2, own, kNumber);
    Address victim = MakeAddress("127.0.0.1", in.Port("tcp"));
    result = Raw(SYS_connect, kNumber, Of(victim.get()), victim.size);
    if (result == 0) (void)SendText(kNumber, in.Payload(part));
  }).join();
  in.Arrives(part, result);
}

// In a process whose leader has ended.
void LeaderGone(Inside& in) {
  const pid_t child = fork();
  if (child == 0) {
    std::thread([&in, leader = getpid()] {
      const std::string path = "/proc/self/task/" + std::to_string(leader) + "/stat";
      for (int i = 0; i < 100; ++i) {
        char line[256] = {};
        const long fd = Open(path, O_RDONLY);
        (void)Raw(SYS_read, fd, Of(line), sizeof(line) - 1);
        (void)Raw(SYS_close, fd);
        if (std::strstr(line, ") Z ") != nullptr) break;
        usleep(5000);
      }
      in.To("thread", "127.0.0.1", in.Port("tcp"));
      _exit(0);
    }).detach();
    (void)Raw(SYS_exit, 0);
  }
  (void)waitpid(child, nullptr, 0);
}

// The address lies where another process's read may not come: whatever cannot be read must not be let through.
void ConnectAt(Inside& in, const std::string& part, void* where, long made) {
  if (made < 0) return in.Arrives(part, made);
  Address victim = MakeAddress("127.0.0.1", in.Port("tcp"));
  std::memcpy(where, victim.get(), victim.size);
  const long fd = Socket(AF_INET, SOCK_STREAM);
  const long result = fd < 0 ? fd : Raw(SYS_connect, fd, Of(where), victim.size);
  if (result == 0) (void)SendText(fd, in.Payload(part));
  in.Arrives(part, result);
}

constexpr Row kRows[] = {
    {.id = "E-70", .what = "a thread rewrites the address between check and use", .inside = [](Inside& in) { Flip(in, "thread", false); }, .seconds = 30},
    {.id = "E-71", .what = "another process rewrites it in shared memory", .inside = [](Inside& in) { Flip(in, "process", true); }, .seconds = 30},
    {.id = "E-72", .what = "dup2 puts another file at the number between check and use", .inside = Swap, .seconds = 20},
    {.id = "E-73", .what = "a thread with a descriptor table of its own: the number is another file than its leader's",
     .inside = [](Inside& in) {
       TablesApart(in, "close_range", true);
       TablesApart(in, "unshare", false);
     }},
    {.id = "E-74", .what = "a thread calls whose leader has ended", .inside = LeaderGone},
    {.id = "E-75", .what = "a thread that is not the leader calls",
     .inside = [](Inside& in) { std::thread([&] { in.To("thread", "127.0.0.1", in.Port("tcp")); }).join(); }},
    {.id = "E-76", .what = "the address lies in memory that no other process can read",
     .inside = [](Inside& in) {
       const long fd = Raw(SYS_memfd_secret, 0);
       void* page = MAP_FAILED;
       if (fd >= 0 && Raw(SYS_ftruncate, fd, 4096) == 0) page = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, static_cast<int>(fd), 0);
       in.Maybe();
       ConnectAt(in, "secret", page, page == MAP_FAILED ? (fd < 0 ? fd : -ENOMEM) : 0);
       // At the very end of what is mapped.
       char* pages = static_cast<char*>(mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
       (void)munmap(pages + 4096, 4096);
       ConnectAt(in, "edge", pages + 4096 - 16, 0);
     }},
    {.id = "E-77", .what = "the address lies in a page that userfaultfd holds back",
     .inside = [](Inside& in) { in.Reports("userfaultfd", Raw(SYS_userfaultfd, O_CLOEXEC)); }},
    {.id = "E-78", .what = "the address lies in a file whose file system does not answer",
     .elsewhere = "a stall of the supervisor, measured there: StalledFileTest.E78_E206_AddressInAFileThatDoesNot, ReaderTest.AHundredSessionsLeaveNoProcessBehind"},
    {.id = "E-79", .what = "the caller cannot be looked at (PR_SET_DUMPABLE 0)",
     .inside = [](Inside& in) {
       (void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
       in.To("connect", "127.0.0.1", in.Port("tcp"));
       (void)prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
     }},
    {.id = "E-80", .what = "a supervisor below a Landlock domain of its own cannot read its callers",
     .elsewhere = "of the supervisor's start, and no way out: FaultTest.ASupervisorThatCannotReadUs"},
    {.id = "E-81", .what = "a signal while a call waits for its answer",
     .elsewhere = "repeats or loses an answer, and no way out: SignalsTest.E83_SigurgStormLosesAndRepeatsNothing"},
    {.id = "E-82", .what = "the supervisor has connected already when the call starts again",
     .elsewhere = "as E-81: SignalsTest.E83_SigurgStormLosesAndRepeatsNothing"},
    {.id = "E-83", .what = "signals before the notification is received",
     .elsewhere = "as E-81: SignalsTest.E83_SigalrmWithoutRestartIsCounted, SignalsTest.E83_ProgramThatRetriesAfterEintrLosesNothing"},
    {.id = "E-84", .what = "an answer that is faster than its caller's sleep",
     .elsewhere = "a bug of older kernels, seen as a lost or doubled answer: SignalsTest.E83_SigurgStormLosesAndRepeatsNothing"},
    {.id = "E-85", .what = "the caller is gone between poll and receive",
     .elsewhere = "of the supervisor's loop, and no way out: FlatTest.E88_SessionsKilledInPendingConnects"},
    {.id = "E-86", .what = "receive blocks whatever the listener's flags say",
     .elsewhere = "as E-85: FlatTest.E88_SessionsKilledInPendingConnects, AdmissionTest.APeerThatTakesItsOwnCallsStallsNobody"},
    {.id = "E-87", .what = "a multishot poll tells of several notifications at once",
     .elsewhere = "as E-85: Exhaustion.E95_AThousandCallersAtOnce"},
    {.id = "E-88", .what = "the caller is killed between receive and answer",
     .elsewhere = "as E-85: SignalsTest.E88_SigkillFreesWhatWaits"},
    {.id = "E-89", .what = "the caller's number is somebody else's by the time that it is looked up",
     .elsewhere = "of the supervisor's order of steps (pidfd, read, pin, then ask whether the call still stands): FlatTest.E88_SessionsKilledInPendingConnects, TaskTest.E155_AnOrphanIsKnownByItsSession"},
    {.id = "E-90", .what = "the supervisor dies",
     .elsewhere = "needs its death: DeathTest.E90_UnderSandboxExecEveryCallFailsAndTheModuleGoesOn, RunTest.LostSupervisorFailsClosed"},
    {.id = "E-91", .what = "somebody else still holds the listener when the supervisor dies",
     .elsewhere = "calls would hang, and that is no way out: DeathTest.E90_UnderSandboxExecEveryCallFailsAndTheModuleGoesOn"},
    {.id = "E-92", .what = "a listener leaks into the sandbox, and the module answers for the supervisor",
     .inside = [](Inside& in) {
       // Whatever is open may be one; a call of the process outside waits on ours.
       long result = -EBADF;
       for (int fd = 3; fd < 128; ++fd) {
         struct {
           uint64_t id;
           char rest[72];
         } request{};
         // A listener without a waiting call would make us wait: our own is at its number, others are asked by poll first.
         pollfd ready{fd, POLLIN, 0};
         if (poll(&ready, 1, 0) != 1 || (ready.revents & POLLIN) == 0) continue;
         const long got = Raw(SYS_ioctl, fd, static_cast<long>(0xc0502100UL), Of(&request));
         if (got < 0) {
           if (fd == kFdListener) result = got;
           continue;
         }
         struct {
           uint64_t id;
           int64_t value;
           int32_t error;
           uint32_t flags;
         } answer{request.id, 0, 0, 1};
         result = Raw(SYS_ioctl, fd, static_cast<long>(0xc0182101UL), Of(&answer));
       }
       in.Arrives("continue", result);
     }},
    {.id = "E-93", .what = "a filter traps the call that hands its listener over",
     .elsewhere = "the launch would hang, and that is no way out: LaunchTest.LaunchedTwoHundredTimes"},
    {.id = "E-94", .what = "an answer with a positive errno reads as success",
     .elsewhere = "of the supervisor's answers, asserted in one place: ErrnoTest.R_OB_32_TcpConnects sees what a refused program sees"},
    {.id = "E-95", .what = "a flood of calls: none of them is let through for want of time",
     .inside = [](Inside& in) {
       static std::atomic<long> arrived = 0, failed = 0;
       std::vector<std::thread> threads;
       for (int i = 0; i < 100; ++i)
         threads.emplace_back([&in] {
           for (int round = 0; round < 20; ++round) {
             Address victim = MakeAddress("127.0.0.1", in.Port("tcp"));
             const long fd = Socket(AF_INET, SOCK_STREAM);
             const long result = fd < 0 ? fd : Raw(SYS_connect, fd, Of(victim.get()), victim.size);
             if (result == 0) (void)SendText(fd, in.Payload("flood")), ++arrived;
             else failed = result;
             if (fd >= 0) (void)Raw(SYS_close, fd);
           }
         });
       for (std::thread& thread : threads) thread.join();
       in.Arrives("flood", arrived > 0 ? 0 : failed.load());
     },
     .seconds = 20},
    {.id = "E-96", .what = "the broker's backlog is full and the connect for the module blocks",
     .elsewhere = "a delay, and no way out: SignalsTest.E96_FullBacklogBlocksOnlyTheThreadThatConnects, BlockingTest.NonBlockToggledNeverStallsTheShard"},
    {.id = "E-97", .what = "the broker sees the supervisor's credentials for the module's",
     .elsewhere = "of what the broker sees: InsideModule.TheBrokerAnswersAndNoOtherSocketDoes"},
    {.id = "E-98", .what = "a line that the supervisor writes first on the module's socket comes second",
     .elsewhere = "nothing is written on the module's socket; InsideModule.TheBrokerAnswersAndNoOtherSocketDoes"},
    {.id = "E-99", .what = "a connect by the supervisor is not judged by the module's Landlock domain",
     .inside = [](Inside& in) {
       // So its own check has to be the same for every socket that looks like the proxy's.
       for (const int flags : {0, static_cast<int>(SOCK_NONBLOCK), static_cast<int>(SOCK_CLOEXEC)}) {
         const std::string part = "flags" + std::to_string(flags);
         const long fd = Socket(AF_INET, SOCK_STREAM | flags);
         Address victim = MakeAddress("127.0.0.2", in.Port("proxy"));
         long result = fd < 0 ? fd : Raw(SYS_connect, fd, Of(victim.get()), victim.size);
         if (result == -EINPROGRESS) {
           pollfd ready{static_cast<int>(fd), POLLOUT, 0};
           result = poll(&ready, 1, 500) == 1 ? 0 : result;
         }
         if (result == 0) (void)SendText(fd, in.Payload(part));
         in.Arrives(part, result);
       }
     }},
    {.id = "E-100", .what = "a descendant that outlives module and launcher goes on with rights of its own",
     .inside = [](Inside& in) {
       const pid_t module = getppid();
       if (fork() == 0) {
         (void)setsid();
         if (fork() == 0) {
           // Until the module is gone; it may be that nobody lets us live so long.
           for (int i = 0; i < 3000 && kill(module, 0) == 0; ++i) usleep(1000);
           usleep(100'000);
           in.To("survivor", "127.0.0.1", in.Port("tcp"));
         }
         _exit(0);
       }
       (void)wait(nullptr);
       in.Arrives("survivor", 0);
     },
     .flags = kAfterwards},
    {.id = "E-101", .what = "clone with CLONE_PARENT makes a child of the supervisor's",
     .inside = [](Inside& in) {
       const long pid = Raw(SYS_clone, CLONE_PARENT | SIGCHLD, 0, 0, 0, 0);
       if (pid == 0) _exit(0);
       in.Reports("parent", pid);
     }},
    {.id = "E-102", .what = "the supervisor's descriptors run out",
     .elsewhere = "of the supervisor: Descriptors.E207_UsedUpByPendingConnectsTheNeighbourGoesOn"},
    {.id = "E-103", .what = "a time-out or an error inside the supervisor",
     .elsewhere = "of the supervisor: FaultTest.ASupervisorThatCannotReadUs, RunTest.LostSupervisorFailsClosed"},
    {.id = "E-104", .what = "a connect that does not wait is passed back as in progress",
     .inside = [](Inside& in) {
       const long fd = Socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK);
       Address victim = MakeAddress("127.0.0.1", in.Port("tcp"));
       long result = fd < 0 ? fd : Raw(SYS_connect, fd, Of(victim.get()), victim.size);
       if (result == -EINPROGRESS || result == 0) {
         pollfd ready{static_cast<int>(fd), POLLOUT, 0};
         (void)poll(&ready, 1, 1000);
         result = SendText(fd, in.Payload("connect"));
       }
       in.Arrives("connect", result);
     }},
    {.id = "E-105", .what = "arguments that only a supervisor sees first: bad descriptors, lengths and pointers",
     .inside = [](Inside& in) {
       Address victim = MakeAddress("127.0.0.1", in.Port("tcp"));
       const long fd = Socket(AF_INET, SOCK_STREAM);
       in.Maybe().Reports("descriptor", Raw(SYS_connect, -1, Of(victim.get()), victim.size));
       in.Maybe().Reports("no-socket", Raw(SYS_connect, 1, Of(victim.get()), victim.size));
       in.Maybe().Reports("pointer", Raw(SYS_connect, fd, 8, 16));
       in.Maybe().Reports("null", Raw(SYS_connect, fd, 0, 16));
       in.Maybe().Reports("kernel", Raw(SYS_connect, fd, static_cast<long>(0xffff888000000000UL), 16));
       in.Maybe().Reports("length", Raw(SYS_connect, fd, Of(victim.get()), 1L << 20));
       const long result = Raw(SYS_connect, fd | (1L << 32), Of(victim.get()), victim.size | (1L << 32));
       if (result == 0) (void)SendText(fd, in.Payload("high"));
       in.Arrives("high", result);
     }},
    {.id = "E-106", .what = "children by fork and vfork call",
     .inside = [](Inside& in) {
       in.Arrives("fork", ResultOfChild([&] {
                    const long fd = Socket(AF_INET, SOCK_STREAM);
                    Address victim = MakeAddress("127.0.0.1", in.Port("tcp"));
                    const long result = fd < 0 ? fd : Raw(SYS_connect, fd, Of(victim.get()), victim.size);
                    if (result == 0) (void)SendText(fd, in.Payload("fork"));
                    return result;
                  }));
       static Address victim;
       victim = MakeAddress("127.0.0.1", in.Port("tcp"));
       static std::string text;
       text = in.Payload("vfork");
       static volatile long result;
       result = -ECHILD;
       const pid_t pid = vfork();
       if (pid == 0) {
         const long fd = Socket(AF_INET, SOCK_STREAM);
         result = fd < 0 ? fd : Raw(SYS_connect, fd, Of(victim.get()), victim.size);
         if (result == 0) (void)SendText(fd, text);
         _exit(0);
       }
       (void)waitpid(pid, nullptr, 0);
       in.Arrives("vfork", result);
     }},
    {.id = "E-107", .what = "a signal to a caller that waits for its answer",
     .elsewhere = "how a waiting call ends, and no way out: SignalsTest.E88_SigkillFreesWhatWaits, BlockingTest.AlarmEndsAPendingConnect"},
    {.id = "E-108", .what = "the supervisor connects where the module's own uid may not",
     .elsewhere = "needs a supervisor and a module of different uids: BrokerTest.FilePermissionsDecideAsForTheModule, BrokerTest.PrivateSupervisorActsAsTheModuleToo"},
    {.id = "E-109", .what = "the module admits a grant of its own making",
     .elsewhere = "needs a node supervisor: AdmissionTest.AModuleReachesNeitherSocket, AdmissionTest.AModuleWithAConnectionFromBeforeIsRefused"},
};

}  // namespace

std::span<const Row> SupervisorRows() { return kRows; }

}  // namespace bypass
