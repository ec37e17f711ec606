// SPDX-License-Identifier: Apache-2.0
// J. Effects outside by calls that are permitted.
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <termios.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "tests/bypass/inside.h"
#include "tests/bypass/outside.h"

namespace bypass {
namespace {

using Clock = std::chrono::steady_clock;
Clock::time_point asked;

// A futex in a file that the module may read, and somebody outside who waits on it.
struct Waiter {
  uint32_t* word = nullptr;
  std::thread thread;
};
Waiter waiter;

constexpr Row kRows[] = {
    {.id = "E-190", .what = "SO_LINGER on a connection that nobody reads from: its last close waits, whoever makes it",
     .inside = [](Inside& in) {
       (void)in.Ask("hoard");
       const long fd = in.Proxy();
       const linger wait{1, 3};
       const long result = fd < 0 ? fd : Raw(SYS_setsockopt, fd, SOL_SOCKET, SO_LINGER, Of(&wait), sizeof(wait));
       static char much[1 << 16];
       while (fd >= 0 && Raw(SYS_sendto, fd, Of(much), sizeof(much), MSG_DONTWAIT | MSG_NOSIGNAL, 0, 0) > 0) {
       }
       (void)in.Ask("begin");
       (void)Raw(SYS_close, fd);
       (void)in.Ask("end close");
       in.Judged("close", result);
     },
     .answer = [](Outside& outside, const std::string& question) {
       if (question == "hoard") {
         outside.StopProxy();
         (void)outside.servers().Tcp("proxy", "127.0.0.1", outside.Number("proxy"), Servers::Sort::kHoarder);
       } else if (question == "begin") {
         asked = Clock::now();
       } else if (Clock::now() - asked > std::chrono::seconds(1)) {
         outside.Note("close");
       }
       return std::string();
     },
     .clean = [](Outside& outside) {
       outside.StopProxy();
       (void)outside.StartProxy();
     },
     .seconds = 12},
    {.id = "E-191", .what = "the same connection is sent to the broker, whose next receive waits",
     .elsewhere = "as E-190: no connection of the module's lingers; StallTest.E67_LingeringSocketOfTheBroker"},
    {.id = "E-192", .what = "btrfs ioctls make and destroy subvolumes through a read-only descriptor",
     .inside = [](Inside& in) {
       const long fd = Open(in.Text("tools"), O_RDONLY | O_DIRECTORY);
       struct {
         int64_t fd;
         char name[4088];
       } arguments{0, "subvolume"};
       in.Maybe().Reports("create", fd < 0 ? fd : Raw(SYS_ioctl, fd, 0x5000940eL, Of(&arguments)));
     }},
    {.id = "E-193", .what = "flags of files in a read-only tree by ioctl",
     .inside = [](Inside& in) {
       const long fd = Open(in.Text("tools") + "/flagged", O_RDONLY);
       const int flags = FS_NODUMP_FL, version = 4242;
       in.Judged("setflags", fd < 0 ? fd : Raw(SYS_ioctl, fd, FS_IOC_SETFLAGS, Of(&flags)));
       in.Maybe().Judged("setversion", fd < 0 ? fd : Raw(SYS_ioctl, fd, FS_IOC_SETVERSION, Of(&version)));
       const fsxattr attributes{FS_XFLAG_NOATIME, 0, 0, 0, 0, {}};
       in.Maybe().Judged("setxattr", fd < 0 ? fd : Raw(SYS_ioctl, fd, FS_IOC_FSSETXATTR, Of(&attributes)));
     },
     .judge = [](Outside& outside, const Part& part) {
       const UniqueFd fd(open((outside.Text("tools") + "/flagged").c_str(), O_RDONLY | O_CLOEXEC));
       int value = 0;
       fsxattr attributes{};
       if (part.name == "setflags") return ioctl(fd.get(), FS_IOC_GETFLAGS, &value) == 0 && (part.error == 0 || (value & FS_NODUMP_FL) != 0);
       if (part.name == "setversion") return ioctl(fd.get(), FS_IOC_GETVERSION, &value) == 0 && value == 4242;
       return ioctl(fd.get(), FS_IOC_FSGETXATTR, &attributes) == 0 && (attributes.fsx_xflags & FS_XFLAG_NOATIME) != 0;
     }},
    {.id = "E-194", .what = "the node's ephemeral ports are used up by connections to the proxy",
     .elsewhere = "left out, for the machine's sake; the limit of each process is in LaunchTest.Limits, a limit of a sandbox's connections is not built yet"},
    {.id = "E-195", .what = "a filter of the module's own floods the kernel's audit",
     .elsewhere = "left out, for the machine's sake; the log does not depend on the kernel's audit, and the sysctl seccomp/actions_logged is the operator's"},
    {.id = "E-196", .what = "legacy asynchronous I/O takes all of the node's contexts",
     .inside = [](Inside& in) {
       unsigned long context = 0;
       const long result = Raw(SYS_io_setup, 1, Of(&context));
       in.Reports("setup", result);
       if (result == 0) (void)Raw(SYS_io_destroy, static_cast<long>(context));
     }},
    {.id = "E-197", .what = "a lease on a readable file holds up whoever opens it",
     .inside = [](Inside& in) {
       const long fd = Open(in.Text("tools") + "/flagged", O_RDONLY);
       (void)signal(SIGIO, SIG_IGN);
       const long result = fd < 0 ? fd : Raw(SYS_fcntl, fd, F_SETLEASE, F_RDLCK);
       (void)in.Ask("open lease");
       in.Judged("lease", result);
     },
     .answer = [](Outside& outside, const std::string&) {
       const UniqueFd fd(open((outside.Text("tools") + "/flagged").c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
       if (!fd.valid() && errno == EWOULDBLOCK) outside.Note("lease");
       return std::string();
     }},
    {.id = "E-198", .what = "many inotify instances on one directory slow everybody's opens down",
     .inside = [](Inside& in) {
       long result = 0;
       for (int i = 0; i < 100 && result >= 0; ++i) {
         const long fd = Raw(SYS_inotify_init1, 0);
         result = fd < 0 ? fd : Raw(SYS_inotify_add_watch, fd, Of("/etc"), IN_OPEN);
       }
       in.Reports("watch", result);
     },
     .flags = kOpen},
    {.id = "E-199", .what = "locks on readable files",
     .inside = [](Inside& in) {
       const long fd = Open(in.Text("tools") + "/flagged", O_RDONLY);
       const long result = fd < 0 ? fd : Raw(SYS_flock, fd, LOCK_EX | LOCK_NB);
       (void)in.Ask("lock");
       in.Judged("flock", result);
     },
     .answer = [](Outside& outside, const std::string&) {
       const UniqueFd fd(open((outside.Text("tools") + "/flagged").c_str(), O_RDONLY | O_CLOEXEC));
       if (flock(fd.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) outside.Note("flock");
       return std::string();
     },
     .flags = kOpen},
    {.id = "E-200", .what = "a waiter outside is taken off its futex through a read-only mapping",
     .inside = [](Inside& in) {
       const long fd = Open(in.Text("tools") + "/futex", O_RDONLY);
       static uint32_t other = 0;
       void* word = fd < 0 ? MAP_FAILED : mmap(nullptr, 4096, PROT_READ, MAP_SHARED, static_cast<int>(fd), 0);
       const long result = word == MAP_FAILED ? (fd < 0 ? fd : -EACCES) : Raw(SYS_futex, Of(word), FUTEX_REQUEUE, 0, 1, Of(&other), 0);
       (void)in.Ask("wake");
       (void)Raw(SYS_futex, Of(&other), FUTEX_WAKE, 8, 0, 0, 0);
       in.Judged("requeue", result);
     },
     .prepare = [](Outside& outside) {
       const UniqueFd fd(open((outside.Text("tools") + "/futex").c_str(), O_RDWR | O_CLOEXEC));
       waiter.word = static_cast<uint32_t*>(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0));
       waiter.thread = std::thread([] { (void)syscall(SYS_futex, waiter.word, FUTEX_WAIT, 0, nullptr, nullptr, 0); });
       usleep(50'000);
     },
     .answer = [](Outside& outside, const std::string&) {
       if (syscall(SYS_futex, waiter.word, FUTEX_WAKE, 1, nullptr, nullptr, 0) == 0) outside.Note("requeue");
       return std::string();
     },
     .clean = [](Outside&) {
       // Whoever was moved is woken there, or by the end of what it was moved to; otherwise here.
       for (int i = 0; i < 100; ++i) (void)syscall(SYS_futex, waiter.word, FUTEX_WAKE, 8, nullptr, nullptr, 0);
       waiter.thread.detach();
     },
     .flags = kOpen},
    {.id = "E-201", .what = "flags of inherited pipes and terminals are changed for whoever holds them outside",
     .inside = [](Inside& in) {
       const long flags = Raw(SYS_fcntl, 1, F_GETFL);
       const long output = Raw(SYS_fcntl, 1, F_SETFL, flags | O_NONBLOCK);
       (void)in.Ask("flags");
       (void)Raw(SYS_fcntl, 1, F_SETFL, flags);
       in.Judged("output", output);
       const long input = Raw(SYS_fcntl, 0, F_SETFL, O_NONBLOCK);
       const std::string ignored = in.Ask("flags");
       (void)Raw(SYS_fcntl, 0, F_SETFL, 0);
       in.Judged("input", input);
       const long before = Raw(SYS_fcntl, 2, F_GETFL), terminal = Raw(SYS_fcntl, 2, F_SETFL, before | O_NONBLOCK);
       (void)in.Ask("flags");
       (void)Raw(SYS_fcntl, 2, F_SETFL, before);
       in.Judged("terminal", terminal);
       // F_SETPIPE_SZ is not tried: it is of the pipe itself, and holds up nobody whom a reader that does not read would not.
     },
     .answer = [](Outside& outside, const std::string&) {
       if ((fcntl(outside.module_stdout, F_GETFL) & O_NONBLOCK) != 0) outside.Note("output");
       if ((fcntl(outside.terminal_slave, F_GETFL) & O_NONBLOCK) != 0) outside.Note("terminal");
       if ((fcntl(outside.module_stdin, F_GETFL) & O_NONBLOCK) != 0) outside.Note("input");
       return std::string();
     }},
    {.id = "E-202", .what = "size and flow of a shared terminal",
     .inside = [](Inside& in) {
       const winsize size{11, 12, 0, 0};
       const long result = Raw(SYS_ioctl, 2, TIOCSWINSZ, Of(&size));
       (void)in.Ask("size");
       in.Judged("size", result);
     },
     .answer = [](Outside& outside, const std::string&) {
       winsize size{};
       if (ioctl(outside.terminal, TIOCGWINSZ, &size) == 0 && size.ws_row == 11 && size.ws_col == 12) outside.Note("size");
       return std::string();
     },
     .flags = kOpen},
    {.id = "E-203", .what = "a crash in a file whose name holds a line forges one in the kernel's log",
     .elsewhere = "nothing gets out by it; the kernel's log is evidence of nothing: Format.HostileBytesStayInTheirString is of ours"},
    {.id = "E-204", .what = "interface ioctls on a permitted socket tell addresses and hardware",
     .inside = [](Inside& in) {
       const long fd = Socket(AF_INET, SOCK_STREAM);
       char room[1024];
       ifconf list{};
       list.ifc_len = sizeof(room);
       list.ifc_buf = room;
       ifreq request{};
       std::strcpy(request.ifr_name, "lo");
       in.Reports("list", fd < 0 ? fd : Raw(SYS_ioctl, fd, SIOCGIFCONF, Of(&list)));
       in.Reports("hardware", fd < 0 ? fd : Raw(SYS_ioctl, fd, SIOCGIFHWADDR, Of(&request)));
       in.Reports("address", fd < 0 ? fd : Raw(SYS_ioctl, fd, SIOCGIFADDR, Of(&request)));
       in.Reports("index", fd < 0 ? fd : Raw(SYS_ioctl, fd, SIOCGIFINDEX, Of(&request)));
     }},
    {.id = "E-205", .what = "a datagram socket as a standard descriptor sends anywhere by name",
     .inside = [](Inside& in) {
       in.SendTo("udp", 2, MakeAddress("127.0.0.1", in.Port("udp")), "sendmsg");
       in.SendTo("sendto", 2, MakeAddress("127.0.0.1", in.Port("udp")), "sendto");
     },
     .before_launch = [](Outside&) {
       const int fd = socket(AF_INET, SOCK_DGRAM, 0);
       (void)dup2(fd, 2);
       (void)close(fd);
     },
     .flags = kOwnLaunch},
    {.id = "E-206", .what = "a supervisor's thread in a file system that does not answer outlives its killing",
     .elsewhere = "of the supervisor: ReaderTest.E206_ASupervisorThatIsKilledWhileOneHangs, StalledFileTest.E78_E206_AddressInAFileThatDoesNot"},
    {.id = "E-207", .what = "pending connects use up the supervisor's descriptors",
     .elsewhere = "of the supervisor: Descriptors.E207_UsedUpByPendingConnectsTheNeighbourGoesOn"},
    {.id = "E-208", .what = "signal mask, ignored signals and limits that the supervisor inherits",
     .elsewhere = "of the supervisor: Inherit.E208_HostileCircumstances"},
    {.id = "E-209", .what = "a close that runs long: a socket with many sockets queued",
     .elsewhere = "of the supervisor: StallTest.E209_SocketWhoseQueueIsLong"},
    {.id = "E-210", .what = "blocked workers of the supervisor's ring",
     .elsewhere = "of the supervisor: Exhaustion.E210_BlockedWorkers"},
    {.id = "E-211", .what = "locks and leases on the log's files",
     .elsewhere = "of the log: Target.E211_E214_LogHeadAndSockets, JournalTest.AReadersLockDoesNotStopIt"},
    {.id = "E-212", .what = "a refused admission leaves a lingering socket behind",
     .elsewhere = "of the supervisor: AdmissionTest.ARefusedPeersLingeringSocketDelaysNobody"},
    {.id = "E-213", .what = "an outer filter answers the launcher's steps with success and does nothing",
     .inside = [](Inside& in) {
       in.ReadSecret("read", in.Text("secret_file"));
       in.Reports("kept", Raw(SYS_fcntl, kFdFile, F_GETFD));
     },
     .before_launch = [](Outside&) {
       struct Instruction {
         uint16_t code;
         uint8_t yes, no;
         uint32_t k;
       };
       Instruction code[] = {{0x20, 0, 0, 0},
                             {0x15, 4, 0, SYS_landlock_restrict_self},
                             {0x15, 3, 0, SYS_setresuid},
                             {0x15, 2, 0, SYS_setresgid},
                             {0x15, 1, 0, SYS_close_range},
                             {6, 0, 0, SECCOMP_RET_ALLOW},
                             {6, 0, 0, SECCOMP_RET_ERRNO}};
       struct {
         uint16_t length;
         Instruction* code;
       } program{7, code};
       (void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
       if (Raw(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, Of(&program)) != 0) _exit(118);
     },
     .flags = kOwnLaunch},
    {.id = "E-214", .what = "the module changes the mode of a log that its own uid owns",
     .elsewhere = "of the log: Target.E211_E214_LogHeadAndSockets, JournalTest.ChangesByOthersAreRecords"},
};

}  // namespace

std::span<const Row> EffectRows() { return kRows; }

}  // namespace bypass
