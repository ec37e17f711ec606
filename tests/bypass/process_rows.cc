// SPDX-License-Identifier: Apache-2.0
// G. Processes, System V and POSIX objects, terminals, kernel facilities.
#include <asm/ldt.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/landlock.h>
#include <linux/perf_event.h>
#include <linux/tty.h>
#include <mqueue.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <termios.h>

#include "tests/bypass/inside.h"
#include "tests/bypass/outside.h"

namespace bypass {

std::string KeyArrived(Outside& outside, const std::string& question) {
  // The terminal gives its input to whoever reads it: to us, from another descriptor of the same terminal.
  const std::string part = question.substr(question.find(' ') + 1);
  int waiting = 0;
  usleep(20'000);
  if (ioctl(outside.terminal_slave, FIONREAD, &waiting) == 0 && waiting > 0) outside.Note(part);
  (void)tcflush(outside.terminal_slave, TCIFLUSH);
  return "";
}

namespace {

struct Message {
  long type = 1;
  char text[64] = {};
};

// A victim for each of these parts.
template <size_t N>
void PrepareVictims(Outside& outside, const char* const (&parts)[N]) {
  for (const char* part : parts) outside.Set(std::string("victim-") + part, outside.NewVictim().pid);
}
bool VictimDied(Outside& outside, const Part& part) {
  const pid_t pid = outside.Number("victim-" + part.name);
  for (int i = 0; i < 200 && Outside::Alive(pid) && part.error == 0; ++i) usleep(1000);
  return !Outside::Alive(pid);
}

constexpr const char* kSignals[] = {"kill", "tkill", "tgkill", "sigqueue", "tgsigqueue", "pidfd"};
constexpr const char* kOwners[] = {"owner", "owner-ex"};
constexpr const char* kLimits[] = {"cpu", "nofile", "core"};
constexpr const char* kScheduling[] = {"affinity", "policy", "setattr", "param", "nice", "io"};

int ResourceOf(const std::string& part) { return part == "cpu" ? RLIMIT_CPU : part == "nofile" ? RLIMIT_NOFILE : RLIMIT_CORE; }

constexpr Row kRows[] = {
    {.id = "E-150", .what = "System V shared memory, semaphores and queues",
     .inside = [](Inside& in) {
       const long memory = Raw(SYS_shmget, in.Number("shm_key"), 0, 0);
       const long at = memory < 0 ? memory : Raw(SYS_shmat, memory, 0, SHM_RDONLY);
       in.Leaks("memory", at < 0 && at > -4096 ? at : 0, at < 0 && at > -4096 ? "" : std::string(reinterpret_cast<const char*>(at)));
       const long semaphore = Raw(SYS_semget, in.Number("shm_key"), 0, 0);
       sembuf up{0, 5, 0};
       in.Judged("semaphore", semaphore < 0 ? semaphore : Raw(SYS_semop, semaphore, Of(&up), 1));
       const long queue = Raw(SYS_msgget, in.Number("shm_key"), 0);
       Message message;
       const long got = queue < 0 ? queue : Raw(SYS_msgrcv, queue, Of(&message), sizeof(message.text), 0, IPC_NOWAIT);
       in.Leaks("queue", got, message.text);
     },
     .prepare = [](Outside& outside) {
       const int key = 0x0a71;
       outside.Set("shm_key", key);
       const int memory = shmget(key, 4096, IPC_CREAT | 0666), semaphore = semget(key, 1, IPC_CREAT | 0666), queue = msgget(key, IPC_CREAT | 0666);
       outside.Set("semaphore", semaphore);
       auto* at = static_cast<char*>(shmat(memory, nullptr, 0));
       (void)snprintf(at, 64, "%s", outside.secret().c_str());
       (void)shmdt(at);
       (void)semctl(semaphore, 0, SETVAL, 1);
       Message message;
       (void)snprintf(message.text, sizeof(message.text), "%s", outside.secret().c_str());
       (void)msgsnd(queue, &message, sizeof(message.text), IPC_NOWAIT);
     },
     .judge = [](Outside& outside, const Part&) { return semctl(outside.Number("semaphore"), 0, GETVAL) == 6; }},
    {.id = "E-151", .what = "POSIX message queues",
     .inside = [](Inside& in) {
       const bool able = !in.Text("mq").empty();
       const long queue = Raw(SYS_mq_open, Of("oarlock-bypass"), O_RDONLY | O_NONBLOCK, 0, 0);
       char text[128] = {};
       const long got = queue < 0 ? queue : Raw(SYS_mq_timedreceive, queue, Of(text), 64, 0, 0);
       if (!able) in.Maybe();
       in.Leaks("receive", got, text);
       const long removed = Raw(SYS_mq_unlink, Of("oarlock-bypass"));
       (void)in.Ask("queue");
       if (!able) in.Maybe();
       in.Judged("unlink", removed);
     },
     .prepare = [](Outside& outside) {
       mq_attr attributes{};
       attributes.mq_maxmsg = 4;
       attributes.mq_msgsize = 64;
       (void)mq_unlink("/oarlock-bypass");
       const mqd_t queue = mq_open("/oarlock-bypass", O_CREAT | O_RDWR | O_NONBLOCK | O_CLOEXEC, 0666, &attributes);
       outside.Set("mq", queue >= 0 ? "yes" : "");
       (void)fchown(queue, outside.uid(), outside.uid());
       (void)mq_send(queue, outside.secret().c_str(), outside.secret().size(), 0);
       (void)mq_close(queue);
     },
     .answer = [](Outside& outside, const std::string&) {
       const mqd_t queue = mq_open("/oarlock-bypass", O_RDONLY | O_CLOEXEC);
       if (queue < 0 && errno == ENOENT) outside.Note("unlink");
       if (queue >= 0) (void)mq_close(queue);
       return std::string();
     }},
    {.id = "E-152", .what = "signals to processes outside",
     .inside = [](Inside& in) {
       const auto pid = [&](const char* part) { return in.Number(std::string("victim-") + part); };
       siginfo_t info{};
       info.si_code = SI_QUEUE;
       in.Judged("kill", Raw(SYS_kill, pid("kill"), SIGKILL));
       in.Judged("tkill", Raw(SYS_tkill, pid("tkill"), SIGKILL));
       in.Judged("tgkill", Raw(SYS_tgkill, pid("tgkill"), pid("tgkill"), SIGKILL));
       in.Judged("sigqueue", Raw(SYS_rt_sigqueueinfo, pid("sigqueue"), SIGKILL, Of(&info)));
       in.Judged("tgsigqueue", Raw(SYS_rt_tgsigqueueinfo, pid("tgsigqueue"), pid("tgsigqueue"), SIGKILL, Of(&info)));
       const long fd = Raw(SYS_pidfd_open, pid("pidfd"), 0);
       in.Judged("pidfd", fd < 0 ? fd : Raw(SYS_pidfd_send_signal, fd, SIGKILL, 0, 0));
     },
     .prepare = [](Outside& outside) { PrepareVictims(outside, kSignals); },
     .judge = VictimDied},
    {.id = "E-153", .what = "a file's owner outside is sent the file's signal",
     .inside = [](Inside& in) {
       for (const char* part : kOwners) {
         int ends[2] = {-1, -1};
         (void)pipe(ends);
         const long pid = in.Number(std::string("victim-") + part);
         const f_owner_ex owner{F_OWNER_PID, static_cast<pid_t>(pid)};
         (void)Raw(SYS_fcntl, ends[0], F_SETSIG, SIGKILL);
         long result = std::string(part) == "owner" ? Raw(SYS_fcntl, ends[0], F_SETOWN, pid) : Raw(SYS_fcntl, ends[0], F_SETOWN_EX, Of(&owner));
         if (result == 0) result = Raw(SYS_fcntl, ends[0], F_SETFL, O_ASYNC);
         if (result == 0) (void)Raw(SYS_write, ends[1], Of("x"), 1);
         in.Judged(part, result);
       }
     },
     .prepare = [](Outside& outside) { PrepareVictims(outside, kOwners); },
     .judge = VictimDied},
    {.id = "E-154", .what = "limits of processes outside: a limit kills",
     .inside = [](Inside& in) {
       for (const char* part : kLimits) {
         const uint64_t limit[2] = {3, 3};
         in.Judged(part, Raw(SYS_prlimit64, in.Number(std::string("victim-") + part), ResourceOf(part), Of(limit), 0));
       }
     },
     .prepare = [](Outside& outside) { PrepareVictims(outside, kLimits); },
     .judge = [](Outside& outside, const Part& part) {
       rlimit limit{};
       return prlimit(outside.Number("victim-" + part.name), static_cast<__rlimit_resource>(ResourceOf(part.name)), nullptr, &limit) == 0 && limit.rlim_max == 3;
     }},
    {.id = "E-155", .what = "CPUs, scheduling and priority of processes outside",
     .inside = [](Inside& in) {
       const auto pid = [&](const char* part) { return in.Number(std::string("victim-") + part); };
       const uint64_t one = 1;
       const int none = 0;
       uint32_t attributes[12] = {sizeof(attributes), SCHED_BATCH};
       const sched_param param{0};
       in.Judged("affinity", Raw(SYS_sched_setaffinity, pid("affinity"), sizeof(one), Of(&one)));
       in.Judged("policy", Raw(SYS_sched_setscheduler, pid("policy"), SCHED_IDLE, Of(&none)));
       in.Judged("setattr", Raw(SYS_sched_setattr, pid("setattr"), Of(attributes), 0));
       in.Maybe().Judged("param", Raw(SYS_sched_setparam, pid("param"), Of(&param)));
       in.Judged("nice", Raw(SYS_setpriority, PRIO_PROCESS, pid("nice"), 7));
       in.Judged("io", Raw(SYS_ioprio_set, 1, pid("io"), 3 << 13));
     },
     .prepare = [](Outside& outside) { PrepareVictims(outside, kScheduling); },
     .judge = [](Outside& outside, const Part& part) {
       const pid_t pid = outside.Number("victim-" + part.name);
       cpu_set_t set;
       if (part.name == "affinity") return sched_getaffinity(pid, sizeof(set), &set) == 0 && CPU_COUNT(&set) == 1;
       if (part.name == "policy") return sched_getscheduler(pid) == SCHED_IDLE;
       if (part.name == "setattr") return sched_getscheduler(pid) == SCHED_BATCH;
       if (part.name == "nice") return getpriority(PRIO_PROCESS, static_cast<id_t>(pid)) == 7;
       if (part.name == "io") return syscall(SYS_ioprio_get, 1, pid) == 3 << 13;
       return part.error == 0;
     }},
    {.id = "E-156", .what = "memory, descriptors and traces of processes outside",
     .inside = [](Inside& in) {
       const long pid = in.Number("victim"), address = in.Number("victim_address");
       char text[64] = {};
       iovec local{text, sizeof(text) - 1}, remote{reinterpret_cast<void*>(address), sizeof(text) - 1};
       const long got = Raw(SYS_process_vm_readv, pid, Of(&local), 1, Of(&remote), 1, 0);
       in.Leaks("readv", got, text);
       char zero = 's';
       iovec one{&zero, 1}, there{reinterpret_cast<void*>(address), 1};
       in.Reports("writev", Raw(SYS_process_vm_writev, pid, Of(&one), 1, Of(&there), 1, 0));
       const long fd = Raw(SYS_pidfd_open, pid, 0);
       in.Reports("getfd", fd < 0 ? fd : Raw(SYS_pidfd_getfd, fd, 0, 0));
       in.Maybe().Reports("kcmp", Raw(SYS_kcmp, pid, pid, 0, 0, 0));
       long head = 0, size = 0;
       in.Reports("robust", Raw(SYS_get_robust_list, pid, Of(&head), Of(&size)));
       iovec page{reinterpret_cast<void*>(address & ~4095L), 4096};
       in.Reports("madvise", fd < 0 ? fd : Raw(SYS_process_madvise, fd, Of(&page), 1, MADV_COLD, 0));
       const long pages[1] = {address & ~4095L};
       int status[1] = {};
       in.Maybe().Reports("move_pages", Raw(SYS_move_pages, pid, 1, Of(pages), 0, Of(status), 0));
       const unsigned long nodes = 1;
       in.Maybe().Reports("migrate_pages", Raw(SYS_migrate_pages, pid, 64, Of(&nodes), Of(&nodes)));
       in.Reports("seize", Raw(SYS_ptrace, PTRACE_SEIZE, pid, 0, 0));
       in.Reports("exec-fd", Open("/proc/" + in.Text("victim") + "/fd/0", O_PATH));
     }},
    {.id = "E-157", .what = "performance events of a process outside",
     .inside = [](Inside& in) {
       perf_event_attr attributes{};
       attributes.size = sizeof(attributes);
       attributes.type = PERF_TYPE_SOFTWARE;
       attributes.config = PERF_COUNT_SW_TASK_CLOCK;
       in.Reports("open", Raw(SYS_perf_event_open, Of(&attributes), in.Number("victim"), -1, -1, 0));
     }},
    {.id = "E-158", .what = "keyrings, which all processes of a user share",
     .inside = [](Inside& in) {
       const long key = Raw(SYS_add_key, Of("user"), Of("oarlock-bypass"), Of("x"), 1, -4 /* the user's */);
       in.Maybe().Reports("add", key);
       if (key >= 0) (void)Raw(SYS_keyctl, 9 /* unlink */, key, -4);
       in.Maybe().Reports("search", Raw(SYS_keyctl, 0 /* id */, -4, 0));
     }},
    {.id = "E-159", .what = "bpf, the kernel's log, the host's name, quotas",
     .inside = [](Inside& in) {
       bpf_attr attributes{};
       attributes.map_type = BPF_MAP_TYPE_ARRAY;
       attributes.key_size = attributes.value_size = 4;
       attributes.max_entries = 1;
       in.Reports("bpf", Raw(SYS_bpf, BPF_MAP_CREATE, Of(&attributes), sizeof(attributes)));
       in.Reports("syslog", Raw(SYS_syslog, 10, 0, 0));
       // In a namespace of the suite's own.
       in.Reports("hostname", Raw(SYS_sethostname, Of("bypass"), 6));
       in.Reports("domainname", Raw(SYS_setdomainname, Of("bypass"), 6));
       in.Maybe().Reports("quotactl", Raw(SYS_quotactl, 0x800001L << 8, 0, 0, 0));
     }},
    {.id = "E-160", .what = "TIOCSTI types into the terminal that others read",
     .inside = [](Inside& in) {
       char key = 's';
       const auto type = [&](const std::string& part, long fd) {
         const long result = fd < 0 ? fd : Raw(SYS_ioctl, fd, TIOCSTI, Of(&key));
         (void)in.Ask("key " + part);
         in.Judged(part, result);
       };
       type("stderr", 2);
       type("inherited", kFdTerminal);
       type("controlling", Open("/dev/tty", O_RDWR));
     },
     .answer = KeyArrived},
    {.id = "E-161", .what = "other ways to a terminal: pasting, its line discipline",
     .inside = [](Inside& in) {
       char paste = 3;
       in.Maybe().Reports("paste", Raw(SYS_ioctl, 2, TIOCLINUX, Of(&paste)));
       // TIOCCONS is left out: it would take the machine's console.
       const int null_discipline = 27, usual = 0;
       long result = Raw(SYS_ioctl, 2, TIOCSETD, Of(&null_discipline));
       if (result < 0 && result != -EPERM) result = Raw(SYS_ioctl, 2, TIOCSETD, Of(&usual));
       in.Reports("discipline", result);
       (void)Raw(SYS_ioctl, 2, TIOCSETD, Of(&usual));
     }},
    {.id = "E-162", .what = "another process group is put into the terminal's foreground",
     .inside = [](Inside& in) {
       const int group = getpid();
       const long result = Raw(SYS_ioctl, 2, TIOCSPGRP, Of(&group));
       (void)in.Ask("group " + std::to_string(group));
       in.Judged("group", result);
     },
     .prepare = [](Outside& outside) { outside.Set("foreground", tcgetpgrp(outside.terminal)); },
     .answer = [](Outside& outside, const std::string&) {
       int group = 0;
       if (ioctl(outside.terminal, TIOCGPGRP, &group) == 0 && group > 0 && group != outside.launch) outside.Note("group");
       return std::string();
     }},
    {.id = "E-163", .what = "userfaultfd, also the sort that needs no privilege",
     .inside = [](Inside& in) {
       in.Reports("call", Raw(SYS_userfaultfd, O_CLOEXEC | 1 /* of user space alone */));
       in.Maybe().Reports("device", Open("/dev/userfaultfd", O_RDWR));
     }},
    {.id = "E-164", .what = "old and odd calls: modify_ldt, vmsplice, sysfs and others",
     .inside = [](Inside& in) {
       user_desc entry{};
       entry.entry_number = 1;
       in.Reports("modify_ldt", Raw(SYS_modify_ldt, 1, Of(&entry), sizeof(entry)));
       int ends[2] = {-1, -1};
       (void)pipe(ends);
       char text[8] = "splice";
       iovec part{text, 6};
       in.Reports("vmsplice", Raw(SYS_vmsplice, ends[1], Of(&part), 1, 0));
       in.Maybe().Reports("sysfs", Raw(SYS_sysfs, 3));
       in.Maybe().Reports("iopl", Raw(SYS_iopl, 3));
       in.Maybe().Reports("ioperm", Raw(SYS_ioperm, 0x80, 1, 1));
       in.Maybe().Reports("uselib", Raw(SYS_uselib, Of("/bin/true")));
       in.Maybe().Reports("nfsservctl", Raw(SYS_nfsservctl, 0, 0, 0));
       in.Maybe().Reports("lookup_dcookie", Raw(SYS_lookup_dcookie, 0, 0, 0));
       in.Maybe().Reports("_sysctl", Raw(SYS__sysctl, 0));
     }},
    {.id = "E-165", .what = "a launch inside so many Landlock layers that there is no room for another",
     .inside = [](Inside& in) {
       in.To("connect", "127.0.0.1", in.Port("tcp"));
       in.ReadSecret("read", in.Text("secret_file"));
     },
     .before_launch = [](Outside&) {
       (void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
       for (int i = 0; i < 16; ++i) {
         const uint64_t handled = LANDLOCK_ACCESS_FS_MAKE_BLOCK;
         const long fd = Raw(SYS_landlock_create_ruleset, Of(&handled), sizeof(handled), 0);
         if (fd < 0 || Raw(SYS_landlock_restrict_self, fd, 0) != 0) _exit(118);
         (void)Raw(SYS_close, fd);
       }
     },
     .flags = kOwnLaunch},
    {.id = "E-166", .what = "resources that a user's processes share are used up",
     .elsewhere = "left out, for the machine's sake: what is limited is in LaunchTest.Limits, and what is not in SECURITY.md (neighbours of one uid)"},
};

}  // namespace

std::span<const Row> ProcessRows() { return kRows; }

}  // namespace bypass
