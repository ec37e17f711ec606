// SPDX-License-Identifier: Apache-2.0
// Our own numbers of kernel interfaces beside those of the system's headers, where these have them. Most of
// it is checked while compiling; the headers differ from machine to machine, so a name that is absent is no
// failure.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/audit.h>
#include <linux/btrfs.h>
#include <linux/close_range.h>
#include <linux/filter.h>
#include <linux/fs.h>
#include <linux/fscrypt.h>
#include <linux/fsverity.h>
#include <linux/landlock.h>
#include <linux/prctl.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/personality.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <cstddef>

#include "notif/abi/landlock.h"
#include "notif/abi/process.h"
#include "notif/abi/seccomp.h"
#include "notif/calls.h"

namespace oarlock {
namespace {

// --- seccomp
static_assert(abi::kSeccompSetModeFilter == SECCOMP_SET_MODE_FILTER);
static_assert(abi::kSeccompGetActionAvail == SECCOMP_GET_ACTION_AVAIL);
static_assert(abi::kSeccompGetNotifSizes == SECCOMP_GET_NOTIF_SIZES);
static_assert(abi::kSeccompFlagNewListener == SECCOMP_FILTER_FLAG_NEW_LISTENER);
#ifdef SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
static_assert(abi::kSeccompFlagWaitKillableRecv == SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV);
#endif
static_assert(abi::kRetKillProcess == SECCOMP_RET_KILL_PROCESS);
static_assert(abi::kRetErrno == SECCOMP_RET_ERRNO);
static_assert(abi::kRetUserNotif == SECCOMP_RET_USER_NOTIF);
static_assert(abi::kRetAllow == SECCOMP_RET_ALLOW);
static_assert(abi::kMaxInstructions == BPF_MAXINSNS);
static_assert(sizeof(abi::SeccompData) == sizeof(seccomp_data));
static_assert(offsetof(abi::SeccompData, nr) == offsetof(seccomp_data, nr));
static_assert(offsetof(abi::SeccompData, arch) == offsetof(seccomp_data, arch));
static_assert(offsetof(abi::SeccompData, instruction_pointer) == offsetof(seccomp_data, instruction_pointer));
static_assert(offsetof(abi::SeccompData, args) == offsetof(seccomp_data, args));
static_assert(sizeof(abi::SeccompNotif) == sizeof(seccomp_notif));
static_assert(offsetof(abi::SeccompNotif, id) == offsetof(seccomp_notif, id));
static_assert(offsetof(abi::SeccompNotif, pid) == offsetof(seccomp_notif, pid));
static_assert(offsetof(abi::SeccompNotif, flags) == offsetof(seccomp_notif, flags));
static_assert(offsetof(abi::SeccompNotif, data) == offsetof(seccomp_notif, data));
static_assert(sizeof(abi::SeccompNotifResponse) == sizeof(seccomp_notif_resp));
static_assert(offsetof(abi::SeccompNotifResponse, id) == offsetof(seccomp_notif_resp, id));
static_assert(offsetof(abi::SeccompNotifResponse, value) == offsetof(seccomp_notif_resp, val));
static_assert(offsetof(abi::SeccompNotifResponse, error) == offsetof(seccomp_notif_resp, error));
static_assert(offsetof(abi::SeccompNotifResponse, flags) == offsetof(seccomp_notif_resp, flags));
static_assert(abi::kNotifFlagContinue == SECCOMP_USER_NOTIF_FLAG_CONTINUE);
static_assert(abi::kIoctlNotifRecv == SECCOMP_IOCTL_NOTIF_RECV);
static_assert(abi::kIoctlNotifSend == SECCOMP_IOCTL_NOTIF_SEND);
static_assert(abi::kIoctlNotifIdValid == SECCOMP_IOCTL_NOTIF_ID_VALID);
#ifdef SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP
static_assert(abi::kNotifFdSyncWakeUp == SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP);
#endif
#ifdef SECCOMP_IOCTL_NOTIF_SET_FLAGS
static_assert(abi::kIoctlNotifSetFlags == SECCOMP_IOCTL_NOTIF_SET_FLAGS);
#endif
static_assert(abi::kAuditArchX86_64 == AUDIT_ARCH_X86_64);
static_assert(abi::kAuditArchI386 == AUDIT_ARCH_I386);
static_assert(abi::kAuditArchAarch64 == AUDIT_ARCH_AARCH64);
static_assert(abi::kAuditArchArm == AUDIT_ARCH_ARM);
#ifdef __X32_SYSCALL_BIT
static_assert(abi::kX32Bit == __X32_SYSCALL_BIT);
#endif

// --- Landlock
static_assert(abi::kLandlockCreateRulesetVersion == LANDLOCK_CREATE_RULESET_VERSION);
#ifdef LANDLOCK_CREATE_RULESET_ERRATA
static_assert(abi::kLandlockCreateRulesetErrata == LANDLOCK_CREATE_RULESET_ERRATA);
#endif
static_assert(abi::kLandlockRulePathBeneath == LANDLOCK_RULE_PATH_BENEATH);
static_assert(sizeof(abi::LandlockPathBeneathAttr) == sizeof(landlock_path_beneath_attr));
static_assert(offsetof(abi::LandlockRulesetAttr, handled_access_fs) ==
              offsetof(landlock_ruleset_attr, handled_access_fs));
static_assert(abi::kFsExecute == LANDLOCK_ACCESS_FS_EXECUTE);
static_assert(abi::kFsWriteFile == LANDLOCK_ACCESS_FS_WRITE_FILE);
static_assert(abi::kFsReadFile == LANDLOCK_ACCESS_FS_READ_FILE);
static_assert(abi::kFsReadDir == LANDLOCK_ACCESS_FS_READ_DIR);
static_assert(abi::kFsRemoveDir == LANDLOCK_ACCESS_FS_REMOVE_DIR);
static_assert(abi::kFsRemoveFile == LANDLOCK_ACCESS_FS_REMOVE_FILE);
static_assert(abi::kFsMakeChar == LANDLOCK_ACCESS_FS_MAKE_CHAR);
static_assert(abi::kFsMakeDir == LANDLOCK_ACCESS_FS_MAKE_DIR);
static_assert(abi::kFsMakeReg == LANDLOCK_ACCESS_FS_MAKE_REG);
static_assert(abi::kFsMakeSock == LANDLOCK_ACCESS_FS_MAKE_SOCK);
static_assert(abi::kFsMakeFifo == LANDLOCK_ACCESS_FS_MAKE_FIFO);
static_assert(abi::kFsMakeBlock == LANDLOCK_ACCESS_FS_MAKE_BLOCK);
static_assert(abi::kFsMakeSym == LANDLOCK_ACCESS_FS_MAKE_SYM);
#ifdef LANDLOCK_ACCESS_FS_REFER
static_assert(abi::kFsRefer == LANDLOCK_ACCESS_FS_REFER);
#endif
#ifdef LANDLOCK_ACCESS_FS_TRUNCATE
static_assert(abi::kFsTruncate == LANDLOCK_ACCESS_FS_TRUNCATE);
#endif
#ifdef LANDLOCK_ACCESS_FS_IOCTL_DEV
static_assert(abi::kFsIoctlDev == LANDLOCK_ACCESS_FS_IOCTL_DEV);
#endif
#ifdef LANDLOCK_ACCESS_FS_RESOLVE_UNIX
static_assert(abi::kFsResolveUnix == LANDLOCK_ACCESS_FS_RESOLVE_UNIX);
#endif
#ifdef LANDLOCK_ACCESS_NET_BIND_TCP
static_assert(abi::kNetBindTcp == LANDLOCK_ACCESS_NET_BIND_TCP);
static_assert(abi::kNetConnectTcp == LANDLOCK_ACCESS_NET_CONNECT_TCP);
static_assert(abi::kLandlockRuleNetPort == LANDLOCK_RULE_NET_PORT);
#endif
#ifdef LANDLOCK_SCOPE_SIGNAL
static_assert(abi::kScopeAbstractUnixSocket == LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET);
static_assert(abi::kScopeSignal == LANDLOCK_SCOPE_SIGNAL);
#endif
#ifdef LANDLOCK_RESTRICT_SELF_LOG_NEW_EXEC_ON
static_assert(abi::kRestrictSelfLogSameExecOff == LANDLOCK_RESTRICT_SELF_LOG_SAME_EXEC_OFF);
static_assert(abi::kRestrictSelfLogNewExecOn == LANDLOCK_RESTRICT_SELF_LOG_NEW_EXEC_ON);
static_assert(abi::kRestrictSelfLogSubdomainsOff == LANDLOCK_RESTRICT_SELF_LOG_SUBDOMAINS_OFF);
#endif
static_assert(abi::kSysLandlockCreateRuleset == SYS_landlock_create_ruleset);
static_assert(abi::kSysLandlockAddRule == SYS_landlock_add_rule);
static_assert(abi::kSysLandlockRestrictSelf == SYS_landlock_restrict_self);

// --- processes and sockets
static_assert(abi::kSysPidfdOpen == SYS_pidfd_open);
static_assert(abi::kSysPidfdGetfd == SYS_pidfd_getfd);
#ifdef PIDFD_THREAD
static_assert(abi::kPidfdThread == PIDFD_THREAD);
#endif
#ifdef SO_NETNS_COOKIE
static_assert(abi::kSoNetnsCookie == SO_NETNS_COOKIE);
#endif
#ifdef SO_PASSPIDFD
static_assert(abi::kSoPassPidfd == SO_PASSPIDFD);
static_assert(abi::kSoPeerPidfd == SO_PEERPIDFD);
#endif
#ifdef SO_PASSRIGHTS
static_assert(abi::kSoPassRights == SO_PASSRIGHTS);
#endif

// --- what the argument rules spell out: the rule of `name` gives `outcome` for these arguments, by their
// names here
Action Outcome(std::string_view name, const Shape& shape, std::array<uint64_t, 6> args) {
  const CallRow* row = FindCall(name);
  return row == nullptr ? Action::kArgs : Evaluate(BehaviourIn(*row, shape), args);
}

constexpr uint64_t kTmpfileAlone = O_TMPFILE & ~O_DIRECTORY;

TEST(RuleConstants, OpenFlagsAreTheSystems) {
  static_assert(kTmpfileAlone == 020000000,
                "__O_TMPFILE is the same on both architectures; O_DIRECTORY is not");
  static_assert(O_CREAT == 0100 && O_TRUNC == 01000 && O_ACCMODE == 03 && S_ISUID == 04000 &&
                S_ISGID == 02000);
  for (const uint64_t creating : {uint64_t{O_CREAT}, uint64_t{O_TMPFILE}}) {
    EXPECT_EQ(Outcome("openat", {}, {3, 0x1000, creating | O_RDWR, S_ISUID | 0700}), Action::kNotify);
    EXPECT_EQ(Outcome("openat", {}, {3, 0x1000, creating | O_RDWR, S_ISGID | 0700}), Action::kNotify);
    EXPECT_EQ(Outcome("openat", {}, {3, 0x1000, creating | O_RDWR, S_ISVTX | 0777}), Action::kAllow);
  }
  for (const uint64_t plain :
       {O_DIRECTORY, O_PATH, O_NOFOLLOW, O_CLOEXEC, O_APPEND, O_DIRECT, O_NOATIME, O_EXCL})
    EXPECT_EQ(Outcome("openat", {}, {3, 0x1000, plain, S_ISUID}), Action::kAllow) << plain;
  const Shape old = {.age = Age::kNoTruncateRight};
  EXPECT_EQ(Outcome("openat", old, {3, 0x1000, O_RDONLY | O_TRUNC}), Action::kNotify);
  EXPECT_EQ(Outcome("openat", old, {3, 0x1000, O_ACCMODE | O_TRUNC}), Action::kNotify);
  EXPECT_EQ(Outcome("openat", old, {3, 0x1000, O_WRONLY | O_TRUNC}), Action::kAllow);
  EXPECT_EQ(Outcome("openat", old, {3, 0x1000, O_RDWR | O_TRUNC}), Action::kAllow);
  EXPECT_EQ(Outcome("mknodat", {}, {3, 0x1000, S_IFCHR | 0600}), Action::kNotify);
  EXPECT_EQ(Outcome("mknodat", {}, {3, 0x1000, S_IFBLK | 0600}), Action::kNotify);
  for (const uint64_t type : {0, S_IFREG, S_IFIFO, S_IFSOCK})
    EXPECT_EQ(Outcome("mknodat", {}, {3, 0x1000, type | 0600}), Action::kAllow) << type;
  EXPECT_EQ(Outcome("execveat", {.exec_strict = true}, {3, 0, 0, 0, AT_EMPTY_PATH}), Action::kEnosys);
  EXPECT_EQ(Outcome("fcntl", {}, {3, F_SETLEASE, F_RDLCK}), Action::kNotify);
}

TEST(RuleConstants, CloneFlagsAreTheSystems) {
  for (const uint64_t flag :
       {uint64_t{CLONE_NEWNS}, uint64_t{CLONE_NEWCGROUP}, uint64_t{CLONE_NEWUTS}, uint64_t{CLONE_NEWIPC},
        uint64_t{CLONE_NEWUSER}, uint64_t{CLONE_NEWPID}, uint64_t{CLONE_NEWNET}, uint64_t{CLONE_PARENT}})
    EXPECT_EQ(Outcome("clone", {}, {flag}), Action::kNotify) << flag;
  const uint64_t thread = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM |
                          CLONE_SETTLS | CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID;
  const Shape old = {.age = Age::kNoThreadPidfd};
  EXPECT_EQ(Outcome("clone", old, {thread}), Action::kAllow);
  EXPECT_EQ(Outcome("clone", old, {thread & ~uint64_t{CLONE_FILES}}), Action::kNotify);
  EXPECT_EQ(Outcome("close_range", old, {3, ~0U, CLOSE_RANGE_UNSHARE}), Action::kNotify);
  EXPECT_EQ(Outcome("close_range", old, {3, ~0U, CLOSE_RANGE_CLOEXEC}), Action::kAllow);
}

TEST(RuleConstants, ProcessSettingsAreTheSystems) {
  for (const uint64_t option : {PR_SET_MM, PR_SET_PTRACER, PR_SCHED_CORE})
    EXPECT_EQ(Outcome("prctl", {}, {option}), Action::kNotify) << option;
  for (const uint64_t plain : {uint64_t{PER_LINUX}, uint64_t{PER_LINUX32}, uint64_t{UNAME26},
                               uint64_t{PER_LINUX32} | uint64_t{UNAME26}, uint64_t{0xffffffff}})
    EXPECT_EQ(Outcome("personality", {}, {plain}), Action::kAllow) << plain;
  for (const uint64_t persona : {READ_IMPLIES_EXEC, ADDR_NO_RANDOMIZE, MMAP_PAGE_ZERO})
    EXPECT_EQ(Outcome("personality", {}, {persona}), Action::kNotify) << persona;
}

TEST(RuleConstants, RequestsAreTheSystems) {
  for (const uint64_t request : {uint64_t{TIOCSTI},
                                 uint64_t{TIOCLINUX},
                                 uint64_t{TIOCCONS},
                                 uint64_t{TIOCSETD},
                                 uint64_t{FS_IOC_SETFLAGS},
                                 uint64_t{FS_IOC_SETVERSION},
                                 uint64_t{FS_IOC_FSSETXATTR},
                                 uint64_t{FS_IOC_ENABLE_VERITY},
                                 uint64_t{FS_IOC_SET_ENCRYPTION_POLICY},
                                 uint64_t{SECCOMP_IOCTL_NOTIF_RECV},
                                 uint64_t{SECCOMP_IOCTL_NOTIF_SEND},
                                 uint64_t{SECCOMP_IOCTL_NOTIF_ID_VALID},
                                 uint64_t{SECCOMP_IOCTL_NOTIF_ADDFD},
                                 uint64_t{abi::kIoctlNotifSetFlags},
                                 uint64_t{BTRFS_IOC_SUBVOL_CREATE_V2},
                                 uint64_t{BTRFS_IOC_SNAP_DESTROY_V2},
                                 uint64_t{SIOCGIFCONF},
                                 uint64_t{SIOCGIFHWADDR},
                                 uint64_t{SIOCETHTOOL},
                                 uint64_t{SIOCGARP}})
    EXPECT_EQ(Outcome("ioctl", {}, {3, request}), Action::kNotify) << std::hex << request;
  for (const uint64_t request :
       {uint64_t{TCGETS}, uint64_t{TIOCGWINSZ}, uint64_t{FIONREAD}, uint64_t{FIONBIO}, uint64_t{FICLONE},
        uint64_t{FICLONERANGE}, uint64_t{FIDEDUPERANGE}, uint64_t{FS_IOC_GETFLAGS},
        uint64_t{FS_IOC_FSGETXATTR}, uint64_t{SIOCATMARK}, uint64_t{SIOCOUTQNSD}, uint64_t{SIOCOUTQ},
        uint64_t{SIOCINQ}})
    EXPECT_EQ(Outcome("ioctl", {}, {3, request}), Action::kAllow) << std::hex << request;
}

TEST(RuleConstants, SocketNumbersAreTheSystems) {
  const Shape connect = {.network = Network::kConnect};
  for (const uint64_t family : {AF_INET, AF_INET6})
    for (const uint64_t protocol : {0, int{IPPROTO_TCP}})
      EXPECT_EQ(Outcome("socket", connect, {family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, protocol}),
                Action::kAllow);
  for (const uint64_t type : {SOCK_STREAM, SOCK_SEQPACKET}) {
    EXPECT_EQ(Outcome("socket", connect, {AF_UNIX, type}), Action::kAllow);
    EXPECT_EQ(Outcome("socketpair", {}, {AF_UNIX, type}), Action::kAllow);
  }
  EXPECT_EQ(Outcome("socket", connect, {AF_INET, SOCK_STREAM, IPPROTO_MPTCP}), Action::kNotify);
  EXPECT_EQ(Outcome("sendto", {}, {3, 0x1000, 1, MSG_FASTOPEN}), Action::kNotify);
  EXPECT_EQ(Outcome("sendmsg", {}, {3, 0x1000, MSG_FASTOPEN}), Action::kNotify);
  EXPECT_EQ(Outcome("sendmmsg", {}, {3, 0x1000, 1, MSG_FASTOPEN}), Action::kNotify);
}

struct Option {
  int level;
  int name;
  Action outcome;
};
constexpr Option kOptions[] = {
    {SOL_SOCKET, SO_REUSEADDR, Action::kAllow},
    {SOL_SOCKET, SO_KEEPALIVE, Action::kAllow},
    {SOL_SOCKET, SO_RCVTIMEO, Action::kAllow},
    {SOL_SOCKET, SO_SNDTIMEO, Action::kAllow},
    {SOL_SOCKET, SO_SNDBUF, Action::kAllow},
    {SOL_SOCKET, SO_PASSCRED, Action::kAllow},
    {SOL_SOCKET, SO_REUSEPORT, Action::kAllow},
    {SOL_SOCKET, SO_RESERVE_MEM, Action::kAllow},
    {SOL_SOCKET, abi::kSoPassPidfd, Action::kAllow},
    {SOL_SOCKET, abi::kSoPassRights, Action::kNotify},
    {SOL_SOCKET, SO_LINGER, Action::kNotify},
    {SOL_SOCKET, SO_MARK, Action::kNotify},
    {SOL_SOCKET, SO_BINDTODEVICE, Action::kNotify},
    {SOL_SOCKET, SO_BINDTOIFINDEX, Action::kNotify},
    {SOL_SOCKET, SO_ATTACH_FILTER, Action::kNotify},
    {IPPROTO_TCP, TCP_NODELAY, Action::kAllow},
    {IPPROTO_TCP, TCP_USER_TIMEOUT, Action::kAllow},
    {IPPROTO_TCP, TCP_NOTSENT_LOWAT, Action::kAllow},
    {IPPROTO_TCP, TCP_INQ, Action::kAllow},
    {IPPROTO_TCP, TCP_FASTOPEN, Action::kNotify},
    {IPPROTO_TCP, TCP_FASTOPEN_CONNECT, Action::kNotify},
    {IPPROTO_TCP, TCP_ULP, Action::kNotify},
    {IPPROTO_TCP, TCP_REPAIR, Action::kNotify},
    {IPPROTO_IP, IP_TOS, Action::kAllow},
    {IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, Action::kAllow},
    {IPPROTO_IP, IP_OPTIONS, Action::kNotify},
    {IPPROTO_IP, IP_TRANSPARENT, Action::kNotify},
    {IPPROTO_IP, IP_UNICAST_IF, Action::kNotify},
    {IPPROTO_IPV6, IPV6_V6ONLY, Action::kAllow},
    {IPPROTO_IPV6, IPV6_TCLASS, Action::kAllow},
    {IPPROTO_IPV6, IPV6_RTHDR, Action::kNotify},
    {IPPROTO_IPV6, IPV6_HOPOPTS, Action::kNotify},
};

TEST(RuleConstants, SocketOptionsAreTheSystems) {
  for (const Option& option : kOptions)
    EXPECT_EQ(Outcome("setsockopt", {},
                      {3, static_cast<uint64_t>(option.level), static_cast<uint64_t>(option.name)}),
              option.outcome)
        << option.level << ' ' << option.name;
}

}  // namespace
}  // namespace oarlock
