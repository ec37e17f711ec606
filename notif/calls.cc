// SPDX-License-Identifier: Apache-2.0
#include "notif/calls.h"

#include <algorithm>
#include <array>

#include "notif/base/check.h"
#include "notif/call_rules.h"

namespace oarlock {
namespace {

using enum Role;
using enum Group;
using namespace rules;  // NOLINT(google-build-using-namespace): the other half of this file
using Args = std::span<const uint64_t, 6>;

// --- what shapes change

constexpr bool SocketInKernel(const Shape& shape) noexcept { return shape.network == Network::kConnect; }
constexpr bool HostNetwork(const Shape& shape) noexcept { return shape.network == Network::kHost; }
constexpr bool ExecStrict(const Shape& shape) noexcept { return shape.exec_strict; }
constexpr bool SysvIpc(const Shape& shape) noexcept { return shape.sysv_ipc; }
constexpr bool GidZero(const Shape& shape) noexcept { return shape.gid_zero; }
constexpr bool NoThreadPidfd(const Shape& shape) noexcept { return shape.age != Age::kCurrent; }
constexpr bool HostNetworkOnOld(const Shape& shape) noexcept { return HostNetwork(shape) && NoThreadPidfd(shape); }
constexpr bool NoTruncateRight(const Shape& shape) noexcept { return shape.age == Age::kNoTruncateRight; }

constexpr bool ExecStrictOnOldest(const Shape& shape) noexcept { return ExecStrict(shape) && NoTruncateRight(shape); }

constexpr Behaviour kAllowed = {Action::kAllow, nullptr};
constexpr Behaviour kNotified = {Action::kNotify, nullptr};
constexpr Behaviour kAnsweredEnosys = {Action::kEnosys, nullptr};
constexpr Behaviour By(const ArgRule& rule) { return {Action::kArgs, &rule}; }

constexpr std::string_view kWhenGidZero = "the module's gid is 0";
constexpr std::string_view kWhenOld = "below Landlock ABI 6";
constexpr std::string_view kWhenOlder = "below Landlock ABI 3";

constexpr std::string_view kWhenHost = "net is \"host\"";

constexpr ShapeVariant kAllowedOnHost[] = {{HostNetwork, kAllowed, kWhenHost}};
constexpr ShapeVariant kConnectOnHost[] = {{HostNetwork, By(kProbeRule), kWhenHost}};
constexpr ShapeVariant kSocketByNetwork[] = {{SocketInKernel, By(kSocketRule), "mediation is \"connect\""},
                                             {HostNetwork, kAllowed, kWhenHost}};
constexpr ShapeVariant kMadeWhenStrict[] = {{ExecStrictOnOldest, kAnsweredEnosys, "exec_strict below 6.3"},
                                            {ExecStrict, kNotified, "exec_strict"}};
constexpr ShapeVariant kExecveatWhenStrict[] = {{ExecStrict, By(kNamedExecRule), "exec_strict"}};
constexpr ShapeVariant kAllowedWithSysv[] = {{SysvIpc, kAllowed, "sysv_ipc"}};
template <uint8_t kMode>
constexpr ShapeVariant kModeByGid[] = {{GidZero, By(kModeRule<kMode, kSetIds>), kWhenGidZero}};
constexpr ShapeVariant kCloneByAge[] = {{NoThreadPidfd, By(kCloneSharedRule), kWhenOld}};
constexpr ShapeVariant kCloseRangeByAge[] = {{NoThreadPidfd, By(kCloseSharedRule), kWhenOld}};
constexpr ShapeVariant kSignalByAge[] = {{NoThreadPidfd, kNotified, kWhenOld}};
constexpr ShapeVariant kSignalByFdByAge[] = {{NoThreadPidfd, kAnsweredEnosys, kWhenOld}};
constexpr ShapeVariant kFcntlByAge[] = {{NoThreadPidfd, By(kLeaseOrOwnerRule), kWhenOld}};
constexpr ShapeVariant kIoctlByShape[] = {{HostNetworkOnOld, By(kDeviceOrAsyncRule), "net is \"host\", below Landlock ABI 6"},
                                          {HostNetwork, By(kDeviceRule), kWhenHost},
                                          {NoThreadPidfd, By(kIoctlOrAsyncRule), kWhenOld}};
template <uint8_t kFlagsArg>
constexpr ShapeVariant kOpenByAge[] = {{NoTruncateRight, By(kOpenOrTruncRule<kFlagsArg>), kWhenOlder}};
constexpr ShapeVariant kTruncateByAge[] = {{NoTruncateRight, kNotified, kWhenOlder}};

// --- the table

using Variants = std::span<const ShapeVariant>;
struct Roles {
  Role role[6] = {};
};

constexpr CallRow Row(std::string_view name, int x86_64, int aarch64, Group group, const Roles& roles,
                      std::string_view why, Behaviour base, Handler handler, Refusal refusal,
                      Variants variants) {
  const Role* r = roles.role;
  return {name,
          static_cast<int16_t>(x86_64),
          static_cast<int16_t>(aarch64),
          group,
          base,
          handler,
          refusal,
          {r[0], r[1], r[2], r[3], r[4], r[5]},
          why,
          variants};
}

// On the number alone.
constexpr CallRow Allow(std::string_view name, int x86_64, int aarch64, Group group, const Roles& roles,
                        std::string_view why) {
  return Row(name, x86_64, aarch64, group, roles, why, kAllowed, Handler::kNone, Refusal::kNone, {});
}
// Allowed but in some shapes.
constexpr CallRow AllowOr(std::string_view name, int x86_64, int aarch64, Group group, const Roles& roles,
                          std::string_view why, Handler handler, Refusal refusal, Variants variants) {
  return Row(name, x86_64, aarch64, group, roles, why, kAllowed, handler, refusal, variants);
}
// An argument rule.
constexpr CallRow Judge(std::string_view name, int x86_64, int aarch64, Group group, const Roles& roles,
                        std::string_view why, const ArgRule& rule, Handler handler, Refusal refusal,
                        Variants variants = {}) {
  return Row(name, x86_64, aarch64, group, roles, why, By(rule), handler, refusal, variants);
}
// The supervisor performs the call or refuses it.
constexpr CallRow Mediate(std::string_view name, int x86_64, int aarch64, Group group, const Roles& roles,
                          std::string_view why, Handler handler, Refusal refusal, Variants variants = {}) {
  return Row(name, x86_64, aarch64, group, roles, why, kNotified, handler, refusal, variants);
}
// Notified so that the refusal is recorded.
constexpr CallRow Refuse(std::string_view name, int x86_64, int aarch64, Group group, const Roles& roles,
                         std::string_view why, Refusal refusal = Refusal::kCallDenied,
                         Variants variants = {}) {
  return Row(name, x86_64, aarch64, group, roles, why, kNotified, Handler::kRefuse, refusal, variants);
}
// ENOSYS in the kernel: what libraries ask for at every start, and what no program needs.
constexpr CallRow Absent(std::string_view name, int x86_64, int aarch64, Group group, const Roles& roles,
                         std::string_view why, Variants variants = {}) {
  return Row(name, x86_64, aarch64, group, roles, why, kAnsweredEnosys, Handler::kNone, Refusal::kNone,
             variants);
}

constexpr CallRow kRows[] = {
    Absent("_sysctl", 156, -1, kObsolete, {kPointer}, "Removed from the kernel in 5.5; no program needs it."),
    Refuse("accept", 43, 202, kNetwork, {kFd, kPointer, kPointer},
           "Takes a connection from outside; only possible after listen(), which is refused, and refused "
           "here too for a descriptor that was passed in.",
           Refusal::kAcceptDenied, kAllowedOnHost),
    Refuse("accept4", 288, 242, kNetwork, {kFd, kPointer, kPointer, kFlags},
           "accept() with flags; refused for the same reason.", Refusal::kAcceptDenied, kAllowedOnHost),
    Allow("access", 21, -1, kFile, {kPath, kInt},
          "Asks about permissions; Landlock does not cover metadata, file permissions do."),
    Refuse("acct", 163, 89, kKernel, {kPath}, "Turns process accounting of the machine on or off."),
    Refuse("add_key", 248, 217, kKernel, {kPointer, kPointer, kPointer, kSize, kInt},
           "Keyrings are shared by uid and outlive the sandbox."),
    Refuse("adjtimex", 159, 171, kTime, {kPointer}, "Steers the machine's clock."),
    Absent("afs_syscall", 183, -1, kObsolete, {}, "Never implemented in this kernel."),
    Allow("alarm", 37, -1, kTime, {kInt}, "A timer for the caller itself."),
    Allow("arch_prctl", 158, -1, kProcess, {kInt, kPointer},
          "Sets the thread pointer at every start; touches the caller alone."),
    Mediate("bind", 49, 200, kNetwork, {kFd, kAddress, kAddressLength},
            "Gives a socket a name of the module's choice: a listener's port or a path that others trust.",
            Handler::kBind, Refusal::kBindDenied, kAllowedOnHost),
    Refuse("bpf", 321, 280, kKernel, {kInt, kPointer, kSize}, "Loads programs into the kernel."),
    Allow("brk", 12, 214, kMemory, {kPointer}, "Moves the caller's own heap end."),
    Allow("cachestat", 451, 451, kFile, {kFd, kPointer, kPointer, kFlags},
          "Counts cached pages of an open file."),
    Allow("capget", 125, 90, kIdentity, {kPointer, kPointer},
          "Reads capabilities; all of them are dropped before."),
    Allow("capset", 126, 91, kIdentity, {kPointer, kPointer},
          "Can only give capabilities up: none are left and none can come back."),
    Allow("chdir", 80, 49, kFile, {kPath},
          "The working directory gives no right; Landlock judges each later open."),
    Judge("chmod", 90, -1, kFile, {kPath, kMode},
          "Changes permissions of own files; the setuid bit would let another user run as this one.",
          kModeRule<1, kSetUid>, Handler::kRefuse, Refusal::kCallDenied, kModeByGid<1>),
    Allow("chown", 92, -1, kFile, {kPath, kInt, kInt},
          "Powerless without CAP_CHOWN but for groups the caller is in."),
    Refuse("chroot", 161, 51, kKernel, {kPath},
           "Swaps the root directory; needs a capability and has no use here."),
    Refuse("clock_adjtime", 305, 266, kTime, {kInt, kPointer}, "Steers a clock of the machine."),
    Allow("clock_getres", 229, 114, kTime, {kInt, kPointer}, "Reads a clock's resolution."),
    Allow("clock_gettime", 228, 113, kTime, {kInt, kPointer}, "Reads a clock."),
    Allow("clock_nanosleep", 230, 115, kTime, {kInt, kFlags, kPointer, kPointer}, "Sleeps."),
    Refuse("clock_settime", 227, 112, kTime, {kInt, kPointer}, "Sets a clock of the machine."),
    Judge("clone", 56, 220, kProcess, {kFlags, kPointer, kPointer, kPointer, kPointer},
          "Makes threads and processes; namespaces would bring fresh capabilities, CLONE_PARENT a child that "
          "the launcher's parent must reap.",
          kCloneRule, Handler::kRefuse, Refusal::kCallDenied, kCloneByAge),
    Absent("clone3", 435, 435, kProcess, {kPointer, kSize},
           "Its flags lie in memory, where a filter cannot look; ENOSYS makes libc use clone()."),
    Allow("close", 3, 57, kFile, {kFd}, "Gives a descriptor up."),
    AllowOr("close_range", 436, 436, kFile, {kFd, kFd, kFlags}, "Gives descriptors up.", Handler::kRefuse,
            Refusal::kCallDenied, kCloseRangeByAge),
    Mediate(
        "connect", 42, 203, kNetwork, {kFd, kAddress, kAddressLength},
        "The supervisor performs it with an address of its own: the caller's could change after any check.",
        Handler::kConnect, Refusal::kNone, kConnectOnHost),
    Allow("copy_file_range", 326, 285, kFile, {kFd, kPointer, kFd, kPointer, kSize, kFlags},
          "Copies between descriptors that were judged when opened."),
    Judge("creat", 85, -1, kFile, {kPath, kMode},
          "Landlock judges the path; a setuid or setgid file would lend this user's rights to others.",
          kModeRule<1, kSetIds>, Handler::kRefuse, Refusal::kCallDenied),
    Absent("create_module", 174, -1, kObsolete, {kPointer, kSize}, "Removed from the kernel in 2.6."),
    Refuse("delete_module", 176, 106, kKernel, {kPointer, kFlags}, "Unloads a kernel module."),
    Allow("dup", 32, 23, kFile, {kFd}, "Copies a descriptor the caller has."),
    Allow("dup2", 33, -1, kFile, {kFd, kFd},
          "Copies a descriptor the caller has; mediation works on a pinned copy, so a swap under it changes "
          "nothing."),
    Allow("dup3", 292, 24, kFile, {kFd, kFd, kFlags}, "dup2() with flags."),
    Allow("epoll_create", 213, -1, kFile, {kInt}, "An event queue of the caller's own."),
    Allow("epoll_create1", 291, 20, kFile, {kFlags}, "An event queue of the caller's own."),
    Allow("epoll_ctl", 233, 21, kFile, {kFd, kInt, kFd, kPointer}, "Changes an event queue."),
    Absent("epoll_ctl_old", 214, -1, kObsolete, {}, "Never implemented on 64 bits."),
    Allow("epoll_pwait", 281, 22, kFile, {kFd, kPointer, kInt, kInt, kPointer, kSize}, "Waits for events."),
    Allow("epoll_pwait2", 441, 441, kFile, {kFd, kPointer, kInt, kPointer, kPointer, kSize},
          "Waits for events."),
    Allow("epoll_wait", 232, -1, kFile, {kFd, kPointer, kInt, kInt}, "Waits for events."),
    Absent("epoll_wait_old", 215, -1, kObsolete, {}, "Never implemented on 64 bits."),
    Allow("eventfd", 284, -1, kIpc, {kInt}, "A counter of the caller's own."),
    Allow("eventfd2", 290, 19, kIpc, {kInt, kFlags}, "A counter of the caller's own."),
    Allow("execve", 59, 221, kProcess, {kPath, kPointer, kPointer},
          "Runs a program; Landlock judges the path, and filter, domain and listener stay."),
    AllowOr("execveat", 322, 281, kProcess, {kFd, kPath, kPointer, kPointer, kFlags},
            "execve() by descriptor; under exec_strict not for an anonymous file, whose EXECUTE right "
            "Landlock never asks about.",
            Handler::kNone, Refusal::kNone, kExecveatWhenStrict),
    Allow("exit", 60, 93, kProcess, {kInt}, "Ends the thread."),
    Allow("exit_group", 231, 94, kProcess, {kInt}, "Ends the process."),
    Allow("faccessat", 269, 48, kFile, {kFd, kPath, kInt},
          "Asks about permissions; Landlock does not cover metadata, file permissions do."),
    Allow("faccessat2", 439, 439, kFile, {kFd, kPath, kInt, kFlags}, "faccessat() with flags."),
    Allow("fadvise64", 221, 223, kFile, {kFd, kInt, kSize, kInt}, "Advice about an open file."),
    Allow("fallocate", 285, 47, kFile, {kFd, kFlags, kInt, kSize},
          "Needs a descriptor open for writing, which Landlock judged."),
    Refuse("fanotify_init", 300, 262, kKernel, {kFlags, kFlags},
           "Would watch files outside the sandbox, even without privilege."),
    Refuse("fanotify_mark", 301, 263, kKernel, {kFd, kFlags, kInt, kFd, kPath},
           "Would watch files outside the sandbox, even without privilege."),
    Allow("fchdir", 81, 50, kFile, {kFd},
          "The working directory gives no right; Landlock judges each later open."),
    Judge("fchmod", 91, 52, kFile, {kFd, kMode}, "chmod() by descriptor; the same bits.",
          kModeRule<1, kSetUid>, Handler::kRefuse, Refusal::kCallDenied, kModeByGid<1>),
    Judge("fchmodat", 268, 53, kFile, {kFd, kPath, kMode}, "chmod() below a directory; the same bits.",
          kModeRule<2, kSetUid>, Handler::kRefuse, Refusal::kCallDenied, kModeByGid<2>),
    Judge("fchmodat2", 452, 452, kFile, {kFd, kPath, kMode, kFlags},
          "fchmodat() with flags, since 6.6; the same bits.", kModeRule<2, kSetUid>, Handler::kRefuse,
          Refusal::kCallDenied, kModeByGid<2>),
    Allow("fchown", 93, 55, kFile, {kFd, kInt, kInt},
          "Powerless without CAP_CHOWN but for groups the caller is in."),
    Allow("fchownat", 260, 54, kFile, {kFd, kPath, kInt, kInt, kFlags},
          "Powerless without CAP_CHOWN but for groups the caller is in."),
    Judge("fcntl", 72, 25, kFile, {kFd, kInt, kTask},
          "Descriptor flags, locks and pipes of the caller's own; a lease would hold up other users' opens "
          "for up to 45 seconds, and an owner outside be sent signals, which Landlock's scope (ABI 6) keeps inside.",
          kLeaseRule, Handler::kTask, Refusal::kForeignTask, kFcntlByAge),
    Allow("fdatasync", 75, 83, kFile, {kFd}, "Writes an open file's data out."),
    Allow("fgetxattr", 193, 10, kFile, {kFd, kPointer, kPointer, kSize},
          "Reads metadata, which file permissions guard."),
    Absent("file_getattr", 468, 468, kFile, {kFd, kPath, kPointer, kSize, kFlags},
           "Newer than most kernels in use; programs fall back to an ioctl."),
    Absent("file_setattr", 469, 469, kFile, {kFd, kPath, kPointer, kSize, kFlags},
           "Sets inode flags without a Landlock check; programs fall back to an ioctl."),
    Refuse("finit_module", 313, 273, kKernel, {kFd, kPointer, kFlags}, "Loads a kernel module."),
    Allow("flistxattr", 196, 13, kFile, {kFd, kPointer, kSize},
          "Reads metadata, which file permissions guard."),
    Allow("flock", 73, 32, kFile, {kFd, kInt}, "Locks an open file."),
    Allow("fork", 57, -1, kProcess, {}, "Makes a child, which inherits filter and domain."),
    Allow("fremovexattr", 199, 16, kFile, {kFd, kPointer},
          "Changes metadata of own files, which file permissions guard."),
    Refuse("fsconfig", 431, 431, kKernel, {kFd, kInt, kPointer, kPointer, kInt},
           "Part of the mount interface: builds a file system."),
    Allow("fsetxattr", 190, 7, kFile, {kFd, kPointer, kPointer, kSize, kFlags},
          "Changes metadata of own files, which file permissions guard."),
    Refuse("fsmount", 432, 432, kKernel, {kFd, kFlags, kFlags},
           "Part of the mount interface: makes a detached mount, which Landlock does not see."),
    Refuse("fsopen", 430, 430, kKernel, {kPointer, kFlags},
           "Part of the mount interface: opens a file system type."),
    Refuse("fspick", 433, 433, kKernel, {kFd, kPath, kFlags},
           "Part of the mount interface: opens a mounted file system for change."),
    Allow("fstat", 5, 80, kFile, {kFd, kPointer}, "Reads an open file's metadata."),
    Allow("fstatfs", 138, 44, kFile, {kFd, kPointer}, "Reads facts of a file system."),
    Allow("fsync", 74, 82, kFile, {kFd}, "Writes an open file out."),
    Allow("ftruncate", 77, 46, kFile, {kFd, kInt},
          "Needs a descriptor open for writing, which Landlock judged."),
    Allow("futex", 202, 98, kIpc, {kPointer, kInt, kInt, kPointer, kPointer, kInt},
          "Waits and wakes on the caller's own memory."),
    Allow("futex_requeue", 456, 456, kIpc, {kPointer, kFlags, kInt, kInt}, "futex() in parts, since 6.7."),
    Allow("futex_wait", 455, 455, kIpc, {kPointer, kInt, kInt, kFlags, kPointer, kInt},
          "futex() in parts, since 6.7."),
    Allow("futex_waitv", 449, 449, kIpc, {kPointer, kInt, kFlags, kPointer, kInt},
          "Waits on several futexes."),
    Allow("futex_wake", 454, 454, kIpc, {kPointer, kInt, kInt, kFlags}, "futex() in parts, since 6.7."),
    Allow("futimesat", 261, -1, kFile, {kFd, kPath, kPointer},
          "Sets times of own files, which file permissions guard."),
    Absent("get_kernel_syms", 177, -1, kObsolete, {kPointer}, "Removed from the kernel in 2.6."),
    Allow("get_mempolicy", 239, 236, kMemory, {kPointer, kPointer, kInt, kPointer, kFlags},
          "Reads the caller's own memory policy."),
    Allow("get_robust_list", 274, 100, kIpc, {kInt, kPointer, kPointer},
          "Reads a lock list; another process's needs the right to trace it."),
    Absent("get_thread_area", 211, -1, kObsolete, {kPointer},
           "32-bit segments; no 64-bit program needs them."),
    Allow("getcpu", 309, 168, kProcess, {kPointer, kPointer, kPointer}, "Reads which CPU runs the caller."),
    Allow("getcwd", 79, 17, kFile, {kPointer, kSize}, "Reads the working directory's name."),
    Allow("getdents", 78, -1, kFile, {kFd, kPointer, kSize}, "Lists an open directory."),
    Allow("getdents64", 217, 61, kFile, {kFd, kPointer, kSize}, "Lists an open directory."),
    Allow("getegid", 108, 177, kIdentity, {}, "Reads the caller's ids."),
    Allow("geteuid", 107, 175, kIdentity, {}, "Reads the caller's ids."),
    Allow("getgid", 104, 176, kIdentity, {}, "Reads the caller's ids."),
    Allow("getgroups", 115, 158, kIdentity, {kInt, kPointer}, "Reads the caller's groups."),
    Allow("getitimer", 36, 102, kTime, {kInt, kPointer}, "Reads the caller's timer."),
    Allow("getpeername", 52, 205, kNetwork, {kFd, kPointer, kPointer}, "Reads a socket's address."),
    Allow("getpgid", 121, 155, kIdentity, {kInt}, "Reads a process group."),
    Allow("getpgrp", 111, -1, kIdentity, {}, "Reads the caller's process group."),
    Allow("getpid", 39, 172, kIdentity, {}, "Reads the caller's ids."),
    Absent("getpmsg", 181, -1, kObsolete, {}, "Never implemented in this kernel."),
    Allow("getppid", 110, 173, kIdentity, {}, "Reads the parent's id."),
    Allow("getpriority", 140, 141, kProcess, {kInt, kInt}, "Reads a priority."),
    Allow("getrandom", 318, 278, kProcess, {kPointer, kSize, kFlags}, "Random bytes."),
    Allow("getresgid", 120, 150, kIdentity, {kPointer, kPointer, kPointer}, "Reads the caller's ids."),
    Allow("getresuid", 118, 148, kIdentity, {kPointer, kPointer, kPointer}, "Reads the caller's ids."),
    Allow("getrlimit", 97, 163, kProcess, {kInt, kPointer}, "Reads a limit."),
    Allow("getrusage", 98, 165, kProcess, {kInt, kPointer}, "Reads the caller's use of resources."),
    Allow("getsid", 124, 156, kIdentity, {kInt}, "Reads a session id."),
    Allow("getsockname", 51, 204, kNetwork, {kFd, kPointer, kPointer}, "Reads a socket's address."),
    Allow("getsockopt", 55, 209, kNetwork, {kFd, kInt, kInt, kPointer, kPointer},
          "Reads a socket's options."),
    Allow("gettid", 186, 178, kIdentity, {}, "Reads the caller's ids."),
    Allow("gettimeofday", 96, 169, kTime, {kPointer, kPointer}, "Reads the clock."),
    Allow("getuid", 102, 174, kIdentity, {}, "Reads the caller's ids."),
    Allow("getxattr", 191, 8, kFile, {kPath, kPointer, kPointer, kSize},
          "Reads metadata, which file permissions guard."),
    Allow("getxattrat", 464, 464, kFile, {kFd, kPath, kFlags, kPointer, kPointer, kSize},
          "Reads metadata, which file permissions guard."),
    Refuse("init_module", 175, 105, kKernel, {kPointer, kSize, kPointer}, "Loads a kernel module."),
    Allow("inotify_add_watch", 254, 27, kFile, {kFd, kPath, kInt},
          "Watches what the caller's file permissions let it list."),
    Allow("inotify_init", 253, -1, kFile, {}, "A watch queue of the caller's own."),
    Allow("inotify_init1", 294, 26, kFile, {kFlags}, "A watch queue of the caller's own."),
    Allow("inotify_rm_watch", 255, 28, kFile, {kFd, kInt}, "Ends a watch."),
    Absent("io_cancel", 210, 3, kKernel, {kInt, kPointer, kPointer},
           "Legacy asynchronous I/O; see io_setup."),
    Absent("io_destroy", 207, 1, kKernel, {kInt}, "Legacy asynchronous I/O; see io_setup."),
    Absent("io_getevents", 208, 4, kKernel, {kInt, kInt, kInt, kPointer, kPointer},
           "Legacy asynchronous I/O; see io_setup."),
    Absent("io_pgetevents", 333, 292, kKernel, {kInt, kInt, kInt, kPointer, kPointer, kPointer},
           "Legacy asynchronous I/O; see io_setup."),
    Absent("io_setup", 206, 0, kKernel, {kInt, kPointer},
           "Legacy asynchronous I/O; its contexts are counted for the whole machine, so that one sandbox "
           "could use them up."),
    Absent("io_submit", 209, 2, kKernel, {kInt, kInt, kPointer}, "Legacy asynchronous I/O; see io_setup."),
    Absent("io_uring_enter", 426, 426, kKernel, {kFd, kInt, kInt, kFlags, kPointer, kSize},
           "Without a ring there is nothing to enter."),
    Absent("io_uring_register", 427, 427, kKernel, {kFd, kInt, kPointer, kInt},
           "Without a ring there is nothing to register; from 7.0 it takes filters without one."),
    Refuse("io_uring_setup", 425, 425, kKernel, {kInt, kPointer},
           "A second system call interface that no filter sees; ENOSYS says \"not built\", so that every "
           "program falls back.",
           Refusal::kNotBuilt),
    Judge("ioctl", 16, 29, kFile, {kFd, kInt, kPointer},
          "Device and socket requests; refused are those that type into terminals, drive a seccomp listener, "
          "change read-only trees or read the machine's network interfaces.",
          kIoctlRule, Handler::kRefuse, Refusal::kCallDenied, kIoctlByShape),
    Refuse("ioperm", 173, -1, kKernel, {kInt, kInt, kInt}, "Direct access to I/O ports."),
    Refuse("iopl", 172, -1, kKernel, {kInt}, "Direct access to I/O ports."),
    Allow("ioprio_get", 252, 31, kProcess, {kInt, kInt}, "Reads an I/O priority."),
    Judge("ioprio_set", 251, 30, kProcess, {kInt, kTask, kInt},
          "I/O priority of a task of the sandbox; Landlock's scope does not cover it.",
          kTaskOrManyRule<kIoPriorityOfOne>, Handler::kTask, Refusal::kForeignTask),
    Mediate("kcmp", 312, 272, kProcess, {kTask, kTask, kInt, kInt, kInt},
            "Compares kernel objects of other processes; debuggers may, of the sandbox's own.", Handler::kTrace,
            Refusal::kCallDenied),
    Refuse("kexec_file_load", 320, 294, kKernel, {kFd, kFd, kSize, kPointer, kFlags}, "Replaces the kernel."),
    Refuse("kexec_load", 246, 104, kKernel, {kInt, kInt, kPointer, kFlags}, "Replaces the kernel."),
    Refuse("keyctl", 250, 219, kKernel, {kInt, kInt, kInt, kInt, kInt},
           "Keyrings are shared by uid and outlive the sandbox."),
    AllowOr("kill", 62, 129, kSignal, {kTaskOrGroup, kInt},
            "Signals; Landlock's scope (ABI 6) keeps them inside, or else the supervisor.", Handler::kTask,
            Refusal::kForeignTask, kSignalByAge),
    Allow("landlock_add_rule", 445, 445, kSandbox, {kFd, kInt, kPointer, kFlags},
          "Fills a ruleset; a domain of one's own can only narrow."),
    Allow("landlock_create_ruleset", 444, 444, kSandbox, {kPointer, kSize, kFlags},
          "Makes a ruleset; a domain of one's own can only narrow."),
    Allow("landlock_restrict_self", 446, 446, kSandbox, {kFd, kFlags}, "Narrows the caller further."),
    Allow("lchown", 94, -1, kFile, {kPath, kInt, kInt},
          "Powerless without CAP_CHOWN but for groups the caller is in."),
    Allow("lgetxattr", 192, 9, kFile, {kPath, kPointer, kPointer, kSize},
          "Reads metadata, which file permissions guard."),
    Allow("link", 86, -1, kFile, {kPath, kPath}, "Landlock judges both directories."),
    Allow("linkat", 265, 37, kFile, {kFd, kPath, kFd, kPath, kFlags}, "Landlock judges both directories."),
    Refuse("listen", 50, 201, kNetwork, {kFd, kInt},
           "Even without bind() it opens a port of the kernel's choice on every address.",
           Refusal::kListenDenied, kAllowedOnHost),
    Absent("listmount", 458, 458, kKernel, {kPointer, kPointer, kSize, kFlags},
           "Lists mounts; programs fall back to /proc."),
    Allow("listxattr", 194, 11, kFile, {kPath, kPointer, kSize},
          "Reads metadata, which file permissions guard."),
    Allow("listxattrat", 465, 465, kFile, {kFd, kPath, kFlags, kPointer, kSize},
          "Reads metadata, which file permissions guard."),
    Allow("llistxattr", 195, 12, kFile, {kPath, kPointer, kSize},
          "Reads metadata, which file permissions guard."),
    Absent("lookup_dcookie", 212, 18, kObsolete, {kInt, kPointer, kSize}, "Removed from the kernel in 6.6."),
    Allow("lremovexattr", 198, 15, kFile, {kPath, kPointer},
          "Changes metadata of own files, which file permissions guard."),
    Allow("lseek", 8, 62, kFile, {kFd, kInt, kInt}, "Moves a file offset."),
    Allow("lsetxattr", 189, 6, kFile, {kPath, kPointer, kPointer, kSize, kFlags},
          "Changes metadata of own files, which file permissions guard."),
    Absent("lsm_get_self_attr", 459, 459, kSandbox, {kInt, kPointer, kPointer, kFlags},
           "Reads security labels; programs fall back to /proc."),
    Absent("lsm_list_modules", 461, 461, kSandbox, {kPointer, kPointer, kFlags},
           "Lists security modules; programs fall back to securityfs."),
    Absent("lsm_set_self_attr", 460, 460, kSandbox, {kInt, kPointer, kSize, kFlags},
           "Changes security labels; programs fall back to /proc."),
    Allow("lstat", 6, -1, kFile, {kPath, kPointer}, "Reads metadata, which file permissions guard."),
    Allow("madvise", 28, 233, kMemory, {kPointer, kSize, kInt}, "Advice about the caller's own memory."),
    Allow("map_shadow_stack", 453, 453, kMemory, {kPointer, kSize, kFlags},
          "A shadow stack of the caller's own."),
    Allow("mbind", 237, 235, kMemory, {kPointer, kSize, kInt, kPointer, kInt, kFlags},
          "Memory policy of the caller's own pages."),
    Allow("membarrier", 324, 283, kIpc, {kInt, kFlags, kInt},
          "Orders memory among the caller's own threads."),
    AllowOr("memfd_create", 319, 279, kMemory, {kPointer, kFlags},
            "Programs keep data in anonymous files; under exec_strict it would be a way to run code that no "
            "path rule judged, so the supervisor makes the file, of a kind that cannot be executed.",
            Handler::kMemory, Refusal::kExecutableMemory, kMadeWhenStrict),
    Absent("memfd_secret", 447, 447, kMemory, {kFlags},
           "Memory that the supervisor could not read; programs fall back."),
    Refuse("migrate_pages", 256, 238, kMemory, {kInt, kInt, kPointer, kPointer},
           "Moves another process's pages."),
    Allow("mincore", 27, 232, kMemory, {kPointer, kSize, kPointer},
          "Asks which of the caller's own pages are resident."),
    Judge("mkdir", 83, -1, kFile, {kPath, kMode},
          "Landlock judges the path; the setuid bit has no use on a directory.", kModeRule<1, kSetUid>,
          Handler::kRefuse, Refusal::kCallDenied),
    Judge("mkdirat", 258, 34, kFile, {kFd, kPath, kMode}, "mkdir() below a directory; the same bit.",
          kModeRule<2, kSetUid>, Handler::kRefuse, Refusal::kCallDenied),
    Judge("mknod", 133, -1, kFile, {kPath, kMode, kInt},
          "Landlock judges the path; devices and setuid or setgid files are refused.", kNodeRule<1>,
          Handler::kRefuse, Refusal::kCallDenied),
    Judge("mknodat", 259, 33, kFile, {kFd, kPath, kMode, kInt}, "mknod() below a directory; the same rule.",
          kNodeRule<2>, Handler::kRefuse, Refusal::kCallDenied),
    Allow("mlock", 149, 228, kMemory, {kPointer, kSize},
          "Locks the caller's own pages, within RLIMIT_MEMLOCK."),
    Allow("mlock2", 325, 284, kMemory, {kPointer, kSize, kFlags},
          "Locks the caller's own pages, within RLIMIT_MEMLOCK."),
    Allow("mlockall", 151, 230, kMemory, {kFlags}, "Locks the caller's own pages, within RLIMIT_MEMLOCK."),
    Allow("mmap", 9, 222, kMemory, {kPointer, kSize, kFlags, kFlags, kFd, kInt},
          "Maps memory or an open file."),
    Absent("modify_ldt", 154, -1, kObsolete, {kInt, kPointer, kSize},
           "16-bit segments: a rich source of kernel bugs, needed by DOS emulators alone."),
    Refuse("mount", 165, 40, kKernel, {kPath, kPath, kPointer, kFlags, kPointer},
           "Would change what paths mean; Landlock forbids it too."),
    Refuse("mount_setattr", 442, 442, kKernel, {kFd, kPath, kFlags, kPointer, kSize},
           "Changes mounts, and Landlock has no hook for it."),
    Refuse("move_mount", 429, 429, kKernel, {kFd, kPath, kFd, kPath, kFlags},
           "Part of the mount interface: attaches a mount."),
    Refuse("move_pages", 279, 239, kMemory, {kInt, kInt, kPointer, kPointer, kPointer, kFlags},
           "Moves another process's pages."),
    Allow("mprotect", 10, 226, kMemory, {kPointer, kSize, kFlags},
          "Changes protection of the caller's own pages."),
    Absent("mq_getsetattr", 245, 185, kIpc, {kFd, kPointer, kPointer},
           "POSIX message queues: one namespace for the machine.", kAllowedWithSysv),
    Absent("mq_notify", 244, 184, kIpc, {kFd, kPointer},
           "POSIX message queues: one namespace for the machine.", kAllowedWithSysv),
    Absent("mq_open", 240, 180, kIpc, {kPointer, kFlags, kMode, kPointer},
           "POSIX message queues: one namespace for the machine.", kAllowedWithSysv),
    Absent("mq_timedreceive", 243, 183, kIpc, {kFd, kPointer, kSize, kPointer, kPointer},
           "POSIX message queues: one namespace for the machine.", kAllowedWithSysv),
    Absent("mq_timedsend", 242, 182, kIpc, {kFd, kPointer, kSize, kInt, kPointer},
           "POSIX message queues: one namespace for the machine.", kAllowedWithSysv),
    Absent("mq_unlink", 241, 181, kIpc, {kPointer},
           "POSIX message queues: one namespace for the machine, and Landlock has no hook for removal.",
           kAllowedWithSysv),
    Allow("mremap", 25, 216, kMemory, {kPointer, kSize, kSize, kFlags, kPointer},
          "Moves the caller's own mappings."),
    Allow("mseal", 462, 462, kMemory, {kPointer, kSize, kFlags}, "Fixes the caller's own mappings."),
    Refuse("msgctl", 71, 187, kIpc, {kInt, kInt, kPointer},
           "System V queues: one namespace for the machine, without a Landlock hook.", Refusal::kCallDenied,
           kAllowedWithSysv),
    Refuse("msgget", 68, 186, kIpc, {kInt, kFlags},
           "System V queues: one namespace for the machine, without a Landlock hook.", Refusal::kCallDenied,
           kAllowedWithSysv),
    Refuse("msgrcv", 70, 188, kIpc, {kInt, kPointer, kSize, kInt, kFlags},
           "System V queues: one namespace for the machine, without a Landlock hook.", Refusal::kCallDenied,
           kAllowedWithSysv),
    Refuse("msgsnd", 69, 189, kIpc, {kInt, kPointer, kSize, kFlags},
           "System V queues: one namespace for the machine, without a Landlock hook.", Refusal::kCallDenied,
           kAllowedWithSysv),
    Allow("msync", 26, 227, kMemory, {kPointer, kSize, kFlags}, "Writes mapped pages out."),
    Allow("munlock", 150, 229, kMemory, {kPointer, kSize}, "Unlocks the caller's own pages."),
    Allow("munlockall", 152, 231, kMemory, {}, "Unlocks the caller's own pages."),
    Allow("munmap", 11, 215, kMemory, {kPointer, kSize}, "Removes the caller's own mappings."),
    Refuse("name_to_handle_at", 303, 264, kFile, {kFd, kPath, kPointer, kPointer, kFlags},
           "File handles name files apart from any path."),
    Allow("nanosleep", 35, 101, kTime, {kPointer, kPointer}, "Sleeps."),
    Allow("newfstatat", 262, 79, kFile, {kFd, kPath, kPointer, kFlags},
          "Reads metadata, which file permissions guard."),
    Absent("nfsservctl", 180, 42, kObsolete, {kInt, kPointer, kPointer}, "Removed from the kernel in 3.1."),
    Judge(
        "open", 2, -1, kFile, {kPath, kFlags, kMode},
        "Landlock judges the path; a created setuid or setgid file would lend this user's rights to others.",
        kOpenRule<1>, Handler::kRefuse, Refusal::kCallDenied, kOpenByAge<1>),
    Refuse("open_by_handle_at", 304, 265, kFile, {kFd, kPointer, kFlags},
           "Opens a file apart from any path."),
    Refuse("open_tree", 428, 428, kKernel, {kFd, kPath, kFlags},
           "Part of the mount interface: copies a mount, which Landlock does not see."),
    Refuse("open_tree_attr", 467, 467, kKernel, {kFd, kPath, kFlags, kPointer, kSize},
           "Part of the mount interface: copies and changes a mount."),
    Judge(
        "openat", 257, 56, kFile, {kFd, kPath, kFlags, kMode},
        "Landlock judges the path; a created setuid or setgid file would lend this user's rights to others.",
        kOpenRule<2>, Handler::kRefuse, Refusal::kCallDenied, kOpenByAge<2>),
    Absent("openat2", 437, 437, kFile, {kFd, kPath, kPointer, kSize},
           "Its mode bits lie in memory, where a filter cannot look; ENOSYS makes programs use openat()."),
    Allow("pause", 34, -1, kSignal, {}, "Waits for a signal."),
    Refuse("perf_event_open", 298, 241, kKernel, {kPointer, kInt, kInt, kFd, kFlags},
           "Measures other processes and is a rich source of kernel bugs."),
    Judge("personality", 135, 92, kProcess, {kInt},
          "Only the plain personalities: READ_IMPLIES_EXEC and a fixed address layout weaken the program.",
          kPersonalityRule, Handler::kRefuse, Refusal::kCallDenied),
    Refuse("pidfd_getfd", 438, 438, kProcess, {kFd, kFd, kFlags},
           "Takes descriptors out of another process."),
    Allow("pidfd_open", 434, 434, kProcess, {kInt, kFlags},
          "A handle to a process; what it may do is judged at each use."),
    AllowOr("pidfd_send_signal", 424, 424, kSignal, {kFd, kInt, kPointer, kFlags},
            "Signals; Landlock's scope (ABI 6) keeps them inside. Without it, whose a descriptor is can change after any "
            "look; ENOSYS makes programs use kill().",
            Handler::kNone, Refusal::kNone, kSignalByFdByAge),
    Allow("pipe", 22, -1, kIpc, {kPointer}, "A pipe of the caller's own."),
    Allow("pipe2", 293, 59, kIpc, {kPointer, kFlags}, "A pipe of the caller's own."),
    Refuse("pivot_root", 155, 41, kKernel, {kPath, kPath}, "Swaps the root mount."),
    Allow("pkey_alloc", 330, 289, kMemory, {kFlags, kFlags}, "Protection keys of the caller's own pages."),
    Allow("pkey_free", 331, 290, kMemory, {kInt}, "Protection keys of the caller's own pages."),
    Allow("pkey_mprotect", 329, 288, kMemory, {kPointer, kSize, kFlags, kInt},
          "Protection keys of the caller's own pages."),
    Allow("poll", 7, -1, kFile, {kPointer, kInt, kInt}, "Waits for events."),
    Allow("ppoll", 271, 73, kFile, {kPointer, kInt, kPointer, kPointer, kSize}, "Waits for events."),
    Judge("prctl", 157, 167, kProcess, {kInt, kInt, kInt, kInt, kInt},
          "Settings of the caller itself; refused are PR_SET_MM, PR_SET_PTRACER (opens the way for an "
          "outside tracer) and PR_SCHED_CORE.",
          kPrctlRule, Handler::kRefuse, Refusal::kCallDenied),
    Allow("pread64", 17, 67, kFile, {kFd, kPointer, kSize, kInt},
          "Reads a descriptor that was judged when opened."),
    Allow("preadv", 295, 69, kFile, {kFd, kPointer, kInt, kInt, kInt},
          "Reads a descriptor that was judged when opened."),
    Allow("preadv2", 327, 286, kFile, {kFd, kPointer, kInt, kInt, kInt, kFlags},
          "Reads a descriptor that was judged when opened."),
    Judge("prlimit64", 302, 261, kProcess, {kTask, kInt, kPointer, kPointer},
          "Limits of a task of the sandbox; those of another process of this uid would be a way to kill it that no "
          "signal scope sees.",
          kTaskRule, Handler::kTask, Refusal::kForeignTask),
    Absent("process_madvise", 440, 440, kMemory, {kFd, kPointer, kInt, kInt, kFlags},
           "Advice about another process's memory; programs fall back."),
    Absent("process_mrelease", 448, 448, kMemory, {kFd, kFlags},
           "Frees a dying process's memory; programs fall back."),
    Mediate("process_vm_readv", 310, 270, kProcess, {kTask, kPointer, kInt, kPointer, kInt, kFlags},
            "Reads another process's memory; debuggers may, of the sandbox's own.", Handler::kTrace,
            Refusal::kCallDenied),
    Mediate("process_vm_writev", 311, 271, kProcess, {kTask, kPointer, kInt, kPointer, kInt, kFlags},
            "Writes another process's memory; debuggers may, of the sandbox's own.", Handler::kTrace,
            Refusal::kCallDenied),
    Allow("pselect6", 270, 72, kFile, {kInt, kPointer, kPointer, kPointer, kPointer, kPointer},
          "Waits for events."),
    Mediate("ptrace", 101, 117, kProcess, {kInt, kTask, kPointer, kPointer},
            "Controls another process; also within the sandbox a rich source of kernel bugs. Debuggers may, of the "
            "sandbox's own.",
            Handler::kTrace, Refusal::kCallDenied),
    Absent("putpmsg", 182, -1, kObsolete, {}, "Never implemented in this kernel."),
    Allow("pwrite64", 18, 68, kFile, {kFd, kPointer, kSize, kInt},
          "Writes a descriptor that was judged when opened."),
    Allow("pwritev", 296, 70, kFile, {kFd, kPointer, kInt, kInt, kInt},
          "Writes a descriptor that was judged when opened."),
    Allow("pwritev2", 328, 287, kFile, {kFd, kPointer, kInt, kInt, kInt, kFlags},
          "Writes a descriptor that was judged when opened."),
    Absent("query_module", 178, -1, kObsolete, {kPointer, kInt, kPointer, kSize, kPointer},
           "Removed from the kernel in 2.6."),
    Refuse("quotactl", 179, 60, kKernel, {kInt, kPointer, kInt, kPointer},
           "Reads and sets quotas of a file system."),
    Refuse("quotactl_fd", 443, 443, kKernel, {kFd, kInt, kInt, kPointer},
           "Reads and sets quotas of a file system."),
    Allow("read", 0, 63, kFile, {kFd, kPointer, kSize}, "Reads a descriptor that was judged when opened."),
    Allow("readahead", 187, 213, kFile, {kFd, kInt, kSize}, "Reads ahead in an open file."),
    Allow("readlink", 89, -1, kFile, {kPath, kPointer, kSize},
          "Reads metadata, which file permissions guard."),
    Allow("readlinkat", 267, 78, kFile, {kFd, kPath, kPointer, kSize},
          "Reads metadata, which file permissions guard."),
    Allow("readv", 19, 65, kFile, {kFd, kPointer, kInt}, "Reads a descriptor that was judged when opened."),
    Refuse("reboot", 169, 142, kKernel, {kInt, kInt, kInt, kPointer}, "Stops the machine."),
    Allow("recvfrom", 45, 207, kNetwork, {kFd, kPointer, kSize, kFlags, kPointer, kPointer},
          "Receives on a socket the caller has."),
    Allow("recvmmsg", 299, 243, kNetwork, {kFd, kPointer, kInt, kFlags, kPointer},
          "Receives on a socket the caller has."),
    Allow("recvmsg", 47, 212, kNetwork, {kFd, kPointer, kFlags},
          "Receives on a socket the caller has; descriptors in it are the sender's gift."),
    Absent("remap_file_pages", 216, 234, kObsolete, {kPointer, kSize, kInt, kInt, kFlags},
           "Replaced by mmap(); emulated by the kernel since 4.0."),
    Allow("removexattr", 197, 14, kFile, {kPath, kPointer},
          "Changes metadata of own files, which file permissions guard."),
    Allow("removexattrat", 466, 466, kFile, {kFd, kPath, kFlags, kPointer},
          "Changes metadata of own files, which file permissions guard."),
    Allow("rename", 82, -1, kFile, {kPath, kPath}, "Landlock judges both directories."),
    Allow("renameat", 264, 38, kFile, {kFd, kPath, kFd, kPath}, "Landlock judges both directories."),
    Allow("renameat2", 316, 276, kFile, {kFd, kPath, kFd, kPath, kFlags},
          "Landlock judges both directories."),
    Refuse("request_key", 249, 218, kKernel, {kPointer, kPointer, kPointer, kInt},
           "Keyrings are shared by uid, and a helper outside may be run for a missing key."),
    Allow("restart_syscall", 219, 128, kSignal, {},
          "The kernel itself makes it after a stop; must stay allowed or a notified call cannot be resumed."),
    Allow("rmdir", 84, -1, kFile, {kPath}, "Landlock judges the directory."),
    Allow("rseq", 334, 293, kProcess, {kPointer, kSize, kFlags, kInt},
          "Registers the caller's restartable sequences at every start."),
    Allow("rt_sigaction", 13, 134, kSignal, {kInt, kPointer, kPointer, kSize},
          "Handlers of the caller itself."),
    Allow("rt_sigpending", 127, 136, kSignal, {kPointer, kSize}, "Reads the caller's pending signals."),
    Allow("rt_sigprocmask", 14, 135, kSignal, {kInt, kPointer, kPointer, kSize},
          "Signal mask of the caller itself."),
    AllowOr("rt_sigqueueinfo", 129, 138, kSignal, {kTask, kInt, kPointer},
            "Signals; Landlock's scope (ABI 6) keeps them inside, or else the supervisor.", Handler::kTask,
            Refusal::kForeignTask, kSignalByAge),
    Allow("rt_sigreturn", 15, 139, kSignal, {}, "Ends a handler; must stay allowed."),
    Allow("rt_sigsuspend", 130, 133, kSignal, {kPointer, kSize}, "Waits for a signal."),
    Allow("rt_sigtimedwait", 128, 137, kSignal, {kPointer, kPointer, kPointer, kSize}, "Waits for a signal."),
    AllowOr("rt_tgsigqueueinfo", 297, 240, kSignal, {kInt, kTask, kInt, kPointer},
            "Signals; Landlock's scope (ABI 6) keeps them inside, or else the supervisor.", Handler::kTask,
            Refusal::kForeignTask, kSignalByAge),
    Allow("sched_get_priority_max", 146, 125, kProcess, {kInt}, "Reads a constant."),
    Allow("sched_get_priority_min", 147, 126, kProcess, {kInt}, "Reads a constant."),
    Allow("sched_getaffinity", 204, 123, kProcess, {kInt, kSize, kPointer}, "Reads an affinity."),
    Allow("sched_getattr", 315, 275, kProcess, {kInt, kPointer, kSize, kFlags},
          "Reads scheduling attributes."),
    Allow("sched_getparam", 143, 121, kProcess, {kInt, kPointer}, "Reads scheduling parameters."),
    Allow("sched_getscheduler", 145, 120, kProcess, {kInt}, "Reads a scheduling policy."),
    Allow("sched_rr_get_interval", 148, 127, kProcess, {kInt, kPointer}, "Reads a time slice."),
    Judge("sched_setaffinity", 203, 122, kProcess, {kTask, kSize, kPointer},
          "CPUs of a task of the sandbox (threads are named by number); Landlock's scope does not cover it.",
          kTaskRule, Handler::kTask, Refusal::kForeignTask),
    Judge("sched_setattr", 314, 274, kProcess, {kTask, kPointer, kFlags},
          "Scheduling of a task of the sandbox (threads are named by number); Landlock's scope does not cover it.",
          kTaskRule, Handler::kTask, Refusal::kForeignTask),
    Judge("sched_setparam", 142, 118, kProcess, {kTask, kPointer},
          "Scheduling of a task of the sandbox (threads are named by number); Landlock's scope does not cover it.",
          kTaskRule, Handler::kTask, Refusal::kForeignTask),
    Judge("sched_setscheduler", 144, 119, kProcess, {kTask, kInt, kPointer},
          "Scheduling of a task of the sandbox (threads are named by number); Landlock's scope does not cover it.",
          kTaskRule, Handler::kTask, Refusal::kForeignTask),
    Allow("sched_yield", 24, 124, kProcess, {}, "Gives the CPU up."),
    Allow("seccomp", 317, 277, kSandbox, {kInt, kFlags, kPointer},
          "A filter of one's own can only narrow, and a second listener is refused by the kernel."),
    Absent("security", 185, -1, kObsolete, {}, "Never implemented in this kernel."),
    Allow("select", 23, -1, kFile, {kInt, kPointer, kPointer, kPointer, kPointer}, "Waits for events."),
    Refuse("semctl", 66, 191, kIpc, {kInt, kInt, kInt, kInt},
           "System V semaphores: one namespace for the machine, without a Landlock hook.",
           Refusal::kCallDenied, kAllowedWithSysv),
    Refuse("semget", 64, 190, kIpc, {kInt, kInt, kFlags},
           "System V semaphores: one namespace for the machine, without a Landlock hook.",
           Refusal::kCallDenied, kAllowedWithSysv),
    Refuse("semop", 65, 193, kIpc, {kInt, kPointer, kInt},
           "System V semaphores: one namespace for the machine, without a Landlock hook.",
           Refusal::kCallDenied, kAllowedWithSysv),
    Refuse("semtimedop", 220, 192, kIpc, {kInt, kPointer, kInt, kPointer},
           "System V semaphores: one namespace for the machine, without a Landlock hook.",
           Refusal::kCallDenied, kAllowedWithSysv),
    Allow("sendfile", 40, 71, kFile, {kFd, kFd, kPointer, kSize},
          "Copies between descriptors that were judged when opened."),
    Judge("sendmmsg", 307, 269, kNetwork, {kFd, kPointer, kInt, kFlags},
          "Sends; MSG_FASTOPEN would connect without connect(), and only the flags argument can ask for it. "
          "Addresses in memory are harmless, since no datagram socket can exist.",
          kFastOpenRule<3>, Handler::kSend, Refusal::kFastOpen, kAllowedOnHost),
    Judge("sendmsg", 46, 211, kNetwork, {kFd, kPointer, kFlags},
          "Sends; MSG_FASTOPEN would connect without connect(), and only the flags argument can ask for it. "
          "An address in memory is harmless, since no datagram socket can exist.",
          kFastOpenRule<2>, Handler::kSend, Refusal::kFastOpen, kAllowedOnHost),
    Judge("sendto", 44, 206, kNetwork, {kFd, kPointer, kSize, kFlags, kAddress, kAddressLength},
          "Sends; MSG_FASTOPEN would connect without connect(), and an address may reach a peer that no "
          "connect() was judged for.",
          kSendToRule, Handler::kSend, Refusal::kNone, kAllowedOnHost),
    Allow("set_mempolicy", 238, 237, kMemory, {kInt, kPointer, kInt}, "Memory policy of the caller itself."),
    Absent("set_mempolicy_home_node", 450, 450, kMemory, {kPointer, kSize, kInt, kFlags},
           "A refinement of mbind(); programs fall back."),
    Allow("set_robust_list", 273, 99, kIpc, {kPointer, kSize},
          "Registers the caller's robust locks at every start."),
    Absent("set_thread_area", 205, -1, kObsolete, {kPointer},
           "32-bit segments; no 64-bit program needs them."),
    Allow("set_tid_address", 218, 96, kProcess, {kPointer},
          "Registers the caller's thread id address at every start."),
    Refuse("setdomainname", 171, 162, kKernel, {kPointer, kSize}, "Renames the machine."),
    Allow("setfsgid", 123, 152, kIdentity, {kInt}, "Powerless without capabilities."),
    Allow("setfsuid", 122, 151, kIdentity, {kInt}, "Powerless without capabilities."),
    Allow("setgid", 106, 144, kIdentity, {kInt}, "Powerless without capabilities."),
    Allow("setgroups", 116, 159, kIdentity, {kInt, kPointer}, "Powerless without capabilities."),
    Refuse("sethostname", 170, 161, kKernel, {kPointer, kSize}, "Renames the machine."),
    Allow("setitimer", 38, 103, kTime, {kInt, kPointer, kPointer}, "A timer for the caller itself."),
    Refuse("setns", 308, 268, kSandbox, {kFd, kInt}, "Enters another namespace."),
    Allow("setpgid", 109, 154, kIdentity, {kInt, kInt}, "Process groups of the caller's own children."),
    Judge("setpriority", 141, 140, kProcess, {kInt, kTask, kInt},
          "Priority of a task of the sandbox; Landlock's scope does not cover it.",
          kTaskOrManyRule<kPriorityOfOne>, Handler::kTask, Refusal::kForeignTask),
    Allow("setregid", 114, 143, kIdentity, {kInt, kInt}, "Powerless without capabilities."),
    Allow("setresgid", 119, 149, kIdentity, {kInt, kInt, kInt}, "Powerless without capabilities."),
    Allow("setresuid", 117, 147, kIdentity, {kInt, kInt, kInt}, "Powerless without capabilities."),
    Allow("setreuid", 113, 145, kIdentity, {kInt, kInt}, "Powerless without capabilities."),
    Allow("setrlimit", 160, 164, kProcess, {kInt, kPointer}, "The caller's own limits, below the hard ones."),
    Allow("setsid", 112, 157, kIdentity, {}, "A session of the caller's own."),
    Judge("setsockopt", 54, 208, kNetwork, {kFd, kInt, kInt, kPointer, kSize},
          "By allow-list: routing headers, binding to a device, fast open and protocol swaps send a "
          "permitted connection elsewhere. SO_LINGER is performed by the supervisor, without a time.",
          kSocketOptionRule, Handler::kSetSockOpt, Refusal::kSocketOption, kAllowedOnHost),
    Refuse("settimeofday", 164, 170, kTime, {kPointer, kPointer}, "Sets the machine's clock."),
    Allow("setuid", 105, 146, kIdentity, {kInt}, "Powerless without capabilities."),
    Allow("setxattr", 188, 5, kFile, {kPath, kPointer, kPointer, kSize, kFlags},
          "Changes metadata of own files, which file permissions guard."),
    Allow("setxattrat", 463, 463, kFile, {kFd, kPath, kFlags, kPointer, kPointer, kSize},
          "Changes metadata of own files, which file permissions guard."),
    Refuse("shmat", 30, 196, kIpc, {kInt, kPointer, kFlags},
           "System V memory: one namespace for the machine, without a Landlock hook.", Refusal::kCallDenied,
           kAllowedWithSysv),
    Refuse("shmctl", 31, 195, kIpc, {kInt, kInt, kPointer},
           "System V memory: one namespace for the machine, without a Landlock hook.", Refusal::kCallDenied,
           kAllowedWithSysv),
    Refuse("shmdt", 67, 197, kIpc, {kPointer},
           "System V memory: one namespace for the machine, without a Landlock hook.", Refusal::kCallDenied,
           kAllowedWithSysv),
    Refuse("shmget", 29, 194, kIpc, {kInt, kSize, kFlags},
           "System V memory: one namespace for the machine, without a Landlock hook.", Refusal::kCallDenied,
           kAllowedWithSysv),
    Allow("shutdown", 48, 210, kNetwork, {kFd, kInt}, "Ends a connection the caller has."),
    Allow("sigaltstack", 131, 132, kSignal, {kPointer, kPointer}, "A signal stack of the caller's own."),
    Allow("signalfd", 282, -1, kSignal, {kFd, kPointer, kSize}, "Reads the caller's own signals."),
    Allow("signalfd4", 289, 74, kSignal, {kFd, kPointer, kSize, kFlags}, "Reads the caller's own signals."),
    Mediate("socket", 41, 198, kNetwork, {kInt, kInt, kInt},
            "A module gets stream sockets alone: each other family, type and protocol has a way out that "
            "connect() never sees.",
            Handler::kSocket, Refusal::kNone, kSocketByNetwork),
    Judge("socketpair", 53, 199, kNetwork, {kInt, kInt, kInt, kPointer},
          "Stream pairs are pipes; a datagram or raw unix pair can send to any path without connect().",
          kSocketPairRule, Handler::kSocketPair, Refusal::kNone, kAllowedOnHost),
    Allow("splice", 275, 76, kFile, {kFd, kPointer, kFd, kPointer, kSize, kFlags},
          "Copies between descriptors that were judged when opened."),
    Allow("stat", 4, -1, kFile, {kPath, kPointer}, "Reads metadata, which file permissions guard."),
    Allow("statfs", 137, 43, kFile, {kPath, kPointer}, "Reads facts of a file system."),
    Absent("statmount", 457, 457, kKernel, {kPointer, kPointer, kSize, kFlags},
           "Reads facts of a mount; programs fall back to /proc."),
    Allow("statx", 332, 291, kFile, {kFd, kPath, kFlags, kInt, kPointer},
          "Reads metadata, which file permissions guard."),
    Refuse("swapoff", 168, 225, kKernel, {kPath}, "Changes the machine's swap space."),
    Refuse("swapon", 167, 224, kKernel, {kPath, kFlags}, "Changes the machine's swap space."),
    Allow("symlink", 88, -1, kFile, {kPath, kPath},
          "Landlock judges the directory; following a link is judged by its target."),
    Allow("symlinkat", 266, 36, kFile, {kPath, kFd, kPath},
          "Landlock judges the directory; following a link is judged by its target."),
    Allow("sync", 162, 81, kFile, {}, "Writes file systems out."),
    Allow("sync_file_range", 277, 84, kFile, {kFd, kInt, kSize, kFlags}, "Writes an open file's data out."),
    Allow("syncfs", 306, 267, kFile, {kFd}, "Writes a file system out."),
    Absent("sysfs", 139, -1, kObsolete, {kInt, kInt, kInt}, "Lists file system types; programs read /proc."),
    Allow("sysinfo", 99, 179, kProcess, {kPointer}, "Reads the machine's load and memory."),
    Refuse("syslog", 103, 116, kKernel, {kInt, kPointer, kInt}, "Reads and clears the kernel's log."),
    Allow("tee", 276, 77, kFile, {kFd, kFd, kSize, kFlags}, "Copies between pipes the caller has."),
    AllowOr("tgkill", 234, 131, kSignal, {kInt, kTask, kInt},
            "Signals; Landlock's scope (ABI 6) keeps them inside, or else the supervisor.", Handler::kTask,
            Refusal::kForeignTask, kSignalByAge),
    Allow("time", 201, -1, kTime, {kPointer}, "Reads the clock."),
    Allow("timer_create", 222, 107, kTime, {kInt, kPointer, kPointer}, "A timer for the caller itself."),
    Allow("timer_delete", 226, 111, kTime, {kInt}, "A timer for the caller itself."),
    Allow("timer_getoverrun", 225, 109, kTime, {kInt}, "A timer for the caller itself."),
    Allow("timer_gettime", 224, 108, kTime, {kInt, kPointer}, "A timer for the caller itself."),
    Allow("timer_settime", 223, 110, kTime, {kInt, kFlags, kPointer, kPointer},
          "A timer for the caller itself."),
    Allow("timerfd_create", 283, 85, kTime, {kInt, kFlags}, "A timer for the caller itself."),
    Allow("timerfd_gettime", 287, 87, kTime, {kFd, kPointer}, "A timer for the caller itself."),
    Allow("timerfd_settime", 286, 86, kTime, {kFd, kFlags, kPointer, kPointer},
          "A timer for the caller itself."),
    Allow("times", 100, 153, kTime, {kPointer}, "Reads the caller's use of time."),
    AllowOr("tkill", 200, 130, kSignal, {kTask, kInt},
            "Signals; Landlock's scope (ABI 6) keeps them inside, or else the supervisor.", Handler::kTask,
            Refusal::kForeignTask, kSignalByAge),
    AllowOr("truncate", 76, 45, kFile, {kPath, kInt}, "Landlock judges the path, from ABI 3 on.",
            Handler::kRefuse, Refusal::kTruncateDenied, kTruncateByAge),
    Absent("tuxcall", 184, -1, kObsolete, {}, "Never implemented in this kernel."),
    Allow("umask", 95, 166, kFile, {kMode}, "File mode mask of the caller itself."),
    Refuse("umount2", 166, 39, kKernel, {kPath, kFlags},
           "Would change what paths mean; Landlock forbids it too."),
    Allow("uname", 63, 160, kProcess, {kPointer}, "Reads the machine's names."),
    Allow("unlink", 87, -1, kFile, {kPath}, "Landlock judges the directory."),
    Allow("unlinkat", 263, 35, kFile, {kFd, kPath, kFlags}, "Landlock judges the directory."),
    Refuse("unshare", 272, 97, kSandbox, {kFlags},
           "New namespaces bring fresh capabilities and much kernel code within reach; a private descriptor "
           "table would make the supervisor look at the wrong one."),
    Absent("uprobe", 336, -1, kObsolete, {},
           "The kernel's own entry from probes; a program that makes it itself gets an error natively too."),
    Allow("uretprobe", 335, -1, kProcess, {},
          "The kernel's own entry from return probes; refusing it kills a probed program."),
    Absent("uselib", 134, -1, kObsolete, {kPath}, "Removed from most kernels; loads an a.out library."),
    Refuse("userfaultfd", 323, 282, kMemory, {kFlags},
           "Lets the module hold up whoever reads its memory: the supervisor among them."),
    Absent("ustat", 136, -1, kObsolete, {kInt, kPointer}, "Replaced by statfs()."),
    Allow("utime", 132, -1, kFile, {kPath, kPointer},
          "Sets times of own files, which file permissions guard."),
    Allow("utimensat", 280, 88, kFile, {kFd, kPath, kPointer, kFlags},
          "Sets times of own files, which file permissions guard."),
    Allow("utimes", 235, -1, kFile, {kPath, kPointer},
          "Sets times of own files, which file permissions guard."),
    Allow("vfork", 58, -1, kProcess, {}, "Makes a child, which inherits filter and domain."),
    Refuse("vhangup", 153, 58, kKernel, {}, "Hangs up the terminal."),
    Absent("vmsplice", 278, 75, kFile, {kFd, kPointer, kInt, kFlags},
           "Gives the caller's own pages to a pipe; a source of kernel bugs, and programs fall back."),
    Absent("vserver", 236, -1, kObsolete, {}, "Never implemented in this kernel."),
    Allow("wait4", 61, 260, kProcess, {kInt, kPointer, kFlags, kPointer}, "Reaps a child."),
    Allow("waitid", 247, 95, kProcess, {kInt, kInt, kPointer, kFlags, kPointer}, "Reaps a child."),
    Allow("write", 1, 64, kFile, {kFd, kPointer, kSize}, "Writes a descriptor that was judged when opened."),
    Allow("writev", 20, 66, kFile, {kFd, kPointer, kInt}, "Writes a descriptor that was judged when opened."),
};
constexpr size_t kRowCount = std::size(kRows);

// --- the table's meaning, at compile time too

constexpr bool Holds(const ArgTest& test, Args args) {
  if (test.op == Op::kPointerSet) return args[test.arg] != 0;
  const bool among =
      std::ranges::find(test.values, static_cast<uint32_t>(args[test.arg]) & test.mask) != test.values.end();
  return among == (test.op == Op::kIn);
}

// The clause that decides, or null for `otherwise`.
constexpr const ArgClause* Deciding(const ArgRule& rule, Args args) {
  for (const ArgClause& clause : rule.clauses)
    if (std::ranges::all_of(clause.tests, [&](const ArgTest& test) { return Holds(test, args); }))
      return &clause;
  return nullptr;
}

constexpr Action EvaluateRule(const Behaviour& behaviour, Args args) {
  if (behaviour.action != Action::kArgs) return behaviour.action;
  const ArgClause* clause = Deciding(*behaviour.rule, args);
  return clause != nullptr ? clause->outcome : behaviour.rule->otherwise;
}

constexpr const Behaviour& Select(const CallRow& row, const Shape& shape) {
  for (const ShapeVariant& variant : row.variants)
    if (variant.applies(shape)) return variant.behaviour;
  return row.base;
}

constexpr Shape MakeShape(unsigned index) {
  const unsigned rest = index / 3;
  return {.network = static_cast<Network>(index % 3),
          .exec_strict = (rest & 1) != 0,
          .sysv_ipc = (rest & 2) != 0,
          .gid_zero = (rest & 4) != 0,
          .age = static_cast<Age>(rest >> 3)};
}
constexpr unsigned IndexOf(const Shape& shape) {
  const unsigned rest = (shape.exec_strict ? 1U : 0U) | (shape.sysv_ipc ? 2U : 0U) | (shape.gid_zero ? 4U : 0U) |
                        (static_cast<unsigned>(shape.age) << 3);
  return rest * 3 + static_cast<unsigned>(shape.network);
}
static_assert(MakeShape(kShapeCount - 1).age == Age::kNoTruncateRight && IndexOf(MakeShape(37)) == 37);

constexpr Shape kStrictest = {.network = Network::kFull,
                              .exec_strict = true,
                              .sysv_ipc = false,
                              .gid_zero = true,
                              .age = Age::kNoTruncateRight};

// --- the launcher's calls

constexpr uint64_t kSomewhere = 0x7ffd12345678;  // stands for any pointer
constexpr uint64_t kGarbage = ~uint64_t{0};      // stands for a register that the caller did not set

constexpr LauncherCall kLauncherCalls[] = {
    {"brk", {0}},
    {"capget", {kSomewhere, kSomewhere}},
    {"clock_gettime", {1, kSomewhere}},
    {"clock_nanosleep", {1, 0, kSomewhere, 0}},
    {"close", {3}},
    {"close_range", {3, 0xffffffff, 0}},
    {"close_range", {3, 0xffffffff, 4}},  // CLOSE_RANGE_CLOEXEC
    {"dup3", {3, 4, 02000000}},
    {"execve", {kSomewhere, kSomewhere, kSomewhere}},
    {"exit_group", {70}},
    {"fcntl", {3, 1, kGarbage}},  // F_GETFD
    {"fcntl", {3, 2, 1}},         // F_SETFD
    {"fcntl", {3, 3, kGarbage}},  // F_GETFL
    {"fcntl", {3, 4, 04000}},     // F_SETFL
    {"fcntl", {3, 1030, 3}},      // F_DUPFD_CLOEXEC
    {"fstat", {3, kSomewhere}},
    {"futex", {kSomewhere, 128, 0, 0, 0, 0}},
    {"getdents64", {3, kSomewhere, 4096}},
    {"getpid", {}},
    {"getrandom", {kSomewhere, 16, 0}},
    {"getresgid", {kSomewhere, kSomewhere, kSomewhere}},
    {"getresuid", {kSomewhere, kSomewhere, kSomewhere}},
    {"getsockopt", {3, 1, 4, kSomewhere, kSomewhere}},
    {"gettid", {}},
    {"lseek", {3, 0, 0}},
    {"madvise", {kSomewhere, 4096, 4}},
    {"mmap", {0, 4096, 3, 0x22, kGarbage, 0}},
    {"mprotect", {kSomewhere, 4096, 1}},
    {"munmap", {kSomewhere, 4096}},
    {"newfstatat", {3, kSomewhere, kSomewhere, 0x1000}},
    {"openat", {static_cast<uint64_t>(-100), kSomewhere, 02000000, kGarbage}},  // O_RDONLY|O_CLOEXEC, no mode
    {"openat", {3, kSomewhere, 02200000, kGarbage}},                            // with O_DIRECTORY on x86_64,
    {"openat", {3, kSomewhere, 02040000, kGarbage}},                            // and on aarch64
    {"openat", {3, kSomewhere, 02000001, kGarbage}},                            // O_WRONLY
    {"poll", {kSomewhere, 1, 5000}},
    {"ppoll", {kSomewhere, 1, kSomewhere, 0, 8}},
    {"prctl", {3, kGarbage}},     // PR_GET_DUMPABLE
    {"prctl", {21, kGarbage}},    // PR_GET_SECCOMP
    {"prctl", {23, 1}},           // PR_CAPBSET_READ
    {"prctl", {39, 0, 0, 0, 0}},  // PR_GET_NO_NEW_PRIVS
    {"prctl", {47, 1, 1, 0, 0}},  // PR_CAP_AMBIENT
    {"read", {3, kSomewhere, 4096}},
    {"readlinkat", {3, kSomewhere, kSomewhere, 4096}},
    {"readv", {3, kSomewhere, 1}},
    {"recvfrom", {3, kSomewhere, 4096, 0, 0, 0}},
    {"recvmsg", {3, kSomewhere, 0x40000000}},  // MSG_CMSG_CLOEXEC
    {"rt_sigaction", {13, kSomewhere, kSomewhere, 8}},
    {"rt_sigprocmask", {2, kSomewhere, kSomewhere, 8}},
    {"rt_sigreturn", {}},
    {"sendmsg", {3, kSomewhere, 0}},
    {"sendmsg", {3, kSomewhere, 0x4000}},  // MSG_NOSIGNAL
    {"sendto", {3, kSomewhere, 4096, 0x4000, 0, 0}},
    {"shutdown", {3, 1}},
    {"statx", {3, kSomewhere, 0x1000, 0x7ff, kSomewhere}},
    {"write", {3, kSomewhere, 1}},
    {"writev", {3, kSomewhere, 2}},
};

// --- what must hold of the table

template <typename Predicate>
constexpr bool EveryRow(Predicate predicate) {
  return std::ranges::all_of(kRows, predicate);
}
template <typename Predicate>
constexpr bool EveryBehaviour(const CallRow& row, Predicate predicate) {
  return predicate(row.base) && std::ranges::all_of(row.variants, [&](const ShapeVariant& variant) {
           return predicate(variant.behaviour);
         });
}
template <typename Predicate>
constexpr bool EveryTest(const CallRow& row, Predicate predicate) {
  return EveryBehaviour(row, [&](const Behaviour& behaviour) {
    return behaviour.action != Action::kArgs ||
           std::ranges::all_of(behaviour.rule->clauses, [&](const ArgClause& clause) {
             return std::ranges::all_of(clause.tests, predicate);
           });
  });
}

constexpr bool CanNotify(const CallRow& row) {
  return !EveryBehaviour(row, [](const Behaviour& behaviour) {
    if (behaviour.action != Action::kArgs) return behaviour.action != Action::kNotify;
    return behaviour.rule->otherwise != Action::kNotify &&
           std::ranges::none_of(behaviour.rule->clauses,
                                [](const ArgClause& clause) { return clause.outcome == Action::kNotify; });
  });
}

static_assert(std::ranges::is_sorted(kRows, {}, &CallRow::name), "rows are sorted by name");
static_assert(std::ranges::adjacent_find(kRows, {}, &CallRow::name) == std::end(kRows),
              "each call has one row");
static_assert(EveryRow([](const CallRow& row) { return row.why.size() > 4 && row.why.ends_with('.'); }),
              "each row gives its reason in a sentence");
static_assert(EveryRow([](const CallRow& row) { return row.x86_64 >= 0 || row.aarch64 >= 0; }),
              "each call exists somewhere");
// A rule is followed rather than compared with null, where it must be there: under sanitizers g++ 12 does not
// take the address of a template's variable for a constant other than null.
static_assert(EveryRow([](const CallRow& row) {
                return EveryBehaviour(row, [](const Behaviour& behaviour) {
                  return behaviour.action == Action::kArgs ? !behaviour.rule->clauses.empty()
                                                           : behaviour.rule == nullptr;
                });
              }),
              "an argument rule if and only if the action is kArgs");
static_assert(EveryRow([](const CallRow& row) {
                return EveryBehaviour(row, [](const Behaviour& behaviour) {
                  return behaviour.action != Action::kArgs ||
                         (behaviour.rule->otherwise != Action::kArgs &&
                          std::ranges::all_of(behaviour.rule->clauses, [](const ArgClause& clause) {
                            return clause.outcome != Action::kArgs && !clause.tests.empty() &&
                                   (clause.refusal == Refusal::kNone || clause.outcome == Action::kNotify);
                          }));
                });
              }),
              "a rule's outcomes are final, no clause is empty, and only a notified clause has a refusal");
static_assert(EveryRow([](const CallRow& row) { return (row.handler != Handler::kNone) == CanNotify(row); }),
              "a handler if and only if some shape can notify the call");
static_assert(EveryRow([](const CallRow& row) {
                return (row.handler == Handler::kRefuse) <= (row.refusal != Refusal::kNone) &&
                       (row.handler == Handler::kNone) <= (row.refusal == Refusal::kNone);
              }),
              "what is simply refused says as what; what is never notified says nothing");
static_assert(EveryRow([](const CallRow& row) {
                for (size_t i = 0; i < 6; ++i) {
                  if (row.roles[i] == kAddress && (i == 5 || row.roles[i + 1] != kAddressLength))
                    return false;
                  if (row.roles[i] == kAddressLength && (i == 0 || row.roles[i - 1] != kAddress))
                    return false;
                  if (row.roles[i] == kNone && i < 5 && row.roles[i + 1] != kNone) return false;
                }
                return true;
              }),
              "an address is followed by its length, and no argument by a missing one");
static_assert(EveryRow([](const CallRow& row) {
                return EveryTest(row, [&row](const ArgTest& test) {
                  const Role role = row.roles[test.arg];
                  const bool pointer = role == kPointer || role == kAddress || role == kPath;
                  return test.arg < 6 && role != kNone && pointer == (test.op == Op::kPointerSet);
                });
              }),
              "tests look at arguments that the call has: pointers for null, numbers by value");
static_assert(EveryRow([](const CallRow& row) {
                return EveryTest(row, [](const ArgTest& test) {
                  if (test.op == Op::kPointerSet) return test.mask == 0 && test.values.empty();
                  return test.mask != 0 && !test.values.empty() && std::ranges::is_sorted(test.values) &&
                         std::ranges::adjacent_find(test.values) == test.values.end() &&
                         std::ranges::all_of(test.values,
                                             [&](uint32_t value) { return (value & ~test.mask) == 0; });
                });
              }),
              "sets are sorted, not empty, and lie under their masks");

// --- the index by number

constexpr size_t kIndexSize = 512;
constexpr int16_t kUnknown = -1;
using NumberIndex = std::array<int16_t, kIndexSize>;

template <Arch kArch>
constexpr NumberIndex MakeIndex() {
  NumberIndex index{};
  index.fill(kUnknown);
  for (size_t row = 0; row < kRowCount; ++row) {
    const int nr = Number(kRows[row], kArch);
    if (nr >= 0) index.at(static_cast<size_t>(nr)) = static_cast<int16_t>(row);
  }
  return index;
}
constexpr NumberIndex kIndexX86_64 = MakeIndex<Arch::kX86_64>();
constexpr NumberIndex kIndexAarch64 = MakeIndex<Arch::kAarch64>();

constexpr bool NumbersUnique(const NumberIndex& index, Arch arch) {
  const auto known = std::ranges::count_if(index, [](int16_t row) { return row != kUnknown; });
  return known == std::ranges::count_if(kRows, [&](const CallRow& row) { return Number(row, arch) >= 0; });
}
static_assert(NumbersUnique(kIndexX86_64, Arch::kX86_64) && NumbersUnique(kIndexAarch64, Arch::kAarch64),
              "each number has one row");

constexpr const CallRow* FindByName(std::string_view name) {
  const auto* row = std::ranges::lower_bound(kRows, name, {}, &CallRow::name);
  return row != std::end(kRows) && row->name == name ? row : nullptr;
}

constexpr bool LauncherIsNeverNotified() {
  for (const LauncherCall& call : kLauncherCalls) {
    const CallRow* row = FindByName(call.name);
    if (row == nullptr) return false;
    for (unsigned shape = 0; shape < kShapeCount; ++shape)
      if (EvaluateRule(Select(*row, MakeShape(shape)), call.args) != Action::kAllow) return false;
  }
  return true;
}
static_assert(LauncherIsNeverNotified(),
              "between filter and hand-over nobody answers: the launcher's calls are allowed");

// --- names of shapes

struct ShapeText {
  std::array<char, 48> text{};
  size_t size = 0;
  constexpr void Append(std::string_view part) {
    for (const char c : part) text.at(size++) = c;
  }
};

constexpr std::array<ShapeText, kShapeCount> MakeShapeTexts() {
  std::array<ShapeText, kShapeCount> texts;
  for (unsigned i = 0; i < kShapeCount; ++i) {
    const Shape shape = MakeShape(i);
    constexpr std::string_view kNames[] = {"full", "connect", "host"};
    texts.at(i).Append(kNames[static_cast<size_t>(shape.network)]);
    if (shape.exec_strict) texts.at(i).Append("+strict");
    if (shape.sysv_ipc) texts.at(i).Append("+sysv");
    if (shape.gid_zero) texts.at(i).Append("+gid0");
    if (shape.age == Age::kNoThreadPidfd) texts.at(i).Append("+nothreadpidfd");
    if (shape.age == Age::kNoTruncateRight) texts.at(i).Append("+notruncateright");
  }
  return texts;
}
constexpr std::array<ShapeText, kShapeCount> kShapeTexts = MakeShapeTexts();

}  // namespace

unsigned ShapeIndex(const Shape& shape) noexcept { return IndexOf(shape); }

Shape ShapeAt(unsigned index) noexcept {
  OARLOCK_CHECK(index < kShapeCount, "shape %u of %u", index, kShapeCount);
  return MakeShape(index);
}

std::string_view ShapeName(const Shape& shape) noexcept {
  const ShapeText& text = kShapeTexts.at(IndexOf(shape));
  return {text.text.data(), text.size};
}

std::span<const CallRow> Calls() noexcept { return kRows; }

const CallRow* FindCall(Arch arch, uint32_t nr) noexcept {
  if (nr >= kIndexSize) return nullptr;
  const int16_t row = (arch == Arch::kX86_64 ? kIndexX86_64 : kIndexAarch64)[nr];
  return row == kUnknown ? nullptr : &kRows[row];
}

const CallRow* FindCall(std::string_view name) noexcept { return FindByName(name); }

std::string_view Name(Group group) noexcept {
  switch (group) {
    case kFile:
      return "file";
    case kMemory:
      return "memory";
    case kProcess:
      return "process";
    case kSignal:
      return "signal";
    case kTime:
      return "time";
    case kNetwork:
      return "network";
    case kIpc:
      return "ipc";
    case kIdentity:
      return "identity";
    case kSandbox:
      return "sandbox";
    case kKernel:
      return "kernel";
    case kObsolete:
      return "obsolete";
  }
  OARLOCK_CHECK(false, "group %u", static_cast<unsigned>(group));
}

Behaviour BehaviourIn(const CallRow& row, const Shape& shape) noexcept { return Select(row, shape); }

Action Evaluate(const Behaviour& behaviour, Args args) noexcept { return EvaluateRule(behaviour, args); }

Refusal RefusalOf(const CallRow& row, Args args) noexcept {
  const Behaviour& behaviour = Select(row, kStrictest);
  if (behaviour.action != Action::kArgs) return row.refusal;
  const ArgClause* clause = Deciding(*behaviour.rule, args);
  return clause != nullptr && clause->refusal != Refusal::kNone ? clause->refusal : row.refusal;
}

std::span<const LauncherCall> LauncherCalls() noexcept { return kLauncherCalls; }

}  // namespace oarlock
