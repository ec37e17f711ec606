// SPDX-License-Identifier: Apache-2.0
// What the filter must do, written by hand call by call: the table and the programs made from it cannot be
// wrong together without failing here. Numbers of calls and constants are spelled out on purpose.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <iterator>
#include <string_view>

#include "tests/notif/filter_check.h"

namespace oarlock::filter_check {
namespace {

enum class When {
  kAlways,
  kFull,       // mediation "full"
  kConnect,    // mediation "connect"
  kMediated,   // either of them
  kHost,       // net "host"
  kStrict,     // exec_strict, since 6.3
  kStrictOldest,
  kStrictAny,
  kLax,        // not
  kSysv,       // sysv_ipc
  kNoSysv,     // not
  kGroupZero,  // the module's gid is 0
  kOtherGroup,
  kOld,  // below 6.9
  kCurrent,
  kTruncDenied,  // below Landlock ABI 3
  kTruncJudged,
};

bool Applies(When when, const Shape& shape) {
  switch (when) {
    case When::kAlways:
      return true;
    case When::kFull:
      return shape.network == Network::kFull;
    case When::kConnect:
      return shape.network == Network::kConnect;
    case When::kMediated:
      return shape.network != Network::kHost;
    case When::kHost:
      return shape.network == Network::kHost;
    case When::kStrict:
      return shape.exec_strict && shape.age != Age::kNoTruncateRight;
    case When::kStrictOldest:
      return shape.exec_strict && shape.age == Age::kNoTruncateRight;
    case When::kStrictAny:
      return shape.exec_strict;
    case When::kLax:
      return !shape.exec_strict;
    case When::kSysv:
      return shape.sysv_ipc;
    case When::kNoSysv:
      return !shape.sysv_ipc;
    case When::kGroupZero:
      return shape.gid_zero;
    case When::kOtherGroup:
      return !shape.gid_zero;
    case When::kOld:
      return shape.age != Age::kCurrent;
    case When::kCurrent:
      return shape.age == Age::kCurrent;
    case When::kTruncDenied:
      return shape.age == Age::kNoTruncateRight;
    case When::kTruncJudged:
      return shape.age != Age::kNoTruncateRight;
  }
  return false;
}

constexpr uint32_t kAllow = 0x7fff0000;
constexpr uint32_t kNotify = 0x7fc00000;
constexpr uint32_t kEnosys = 0x00050026;

struct Expectation {
  const char* what;
  int x86_64;  // -1: not there
  int aarch64;
  Args args;
  When when;
  uint32_t verdict;
  Refusal refusal = Refusal::kNone;  // of a notified call, where its handler does not choose
};

constexpr uint64_t kP = 0x7f1234567000;  // a pointer
constexpr uint64_t kBit32 = uint64_t{1} << 32;

using enum When;
constexpr Refusal kDenied = Refusal::kCallDenied;
constexpr Refusal kForeign = Refusal::kForeignTask;
constexpr Refusal kOption = Refusal::kSocketOption;

constexpr Expectation kExpectations[] = {
    // the host's network
    {"connect on the host", 42, 203, {3, kP, 16}, kHost, kAllow},
    {"connect on the host, the longest", 42, 203, {3, kP, 128}, kHost, kAllow},
    {"connect on the host, no length", 42, 203, {3, kP, ~uint64_t{0}}, kHost, kAllow},
    {"connect on the host, the proof", 42, 203, {3, kP, 129}, kHost, kNotify},
    {"connect on the host, the proof and bit 32", 42, 203, {3, kP, kBit32 + 129}, kHost, kNotify},
    {"socket on the host, inet dgram", 41, 198, {2, 2, 0}, kHost, kAllow},
    {"socket on the host, netlink", 41, 198, {16, 3, 0}, kHost, kAllow},
    {"socketpair on the host, unix dgram", 53, 199, {1, 2, 0}, kHost, kAllow},
    {"bind on the host", 49, 200, {3, kP, 16}, kHost, kAllow},
    {"listen on the host", 50, 201, {3, 1}, kHost, kAllow},
    {"accept on the host", 43, 202, {3, 0, 0}, kHost, kAllow},
    {"accept4 on the host", 288, 242, {3, 0, 0, 0}, kHost, kAllow},
    {"sendto on the host, addressed", 44, 206, {3, kP, 1, 0, kP, 16}, kHost, kAllow},
    {"sendmsg on the host, MSG_FASTOPEN", 46, 211, {3, kP, 0x20000000}, kHost, kAllow},
    {"sendmmsg on the host, MSG_FASTOPEN", 307, 269, {3, kP, 1, 0x20000000}, kHost, kAllow},
    {"setsockopt on the host, SO_BINDTODEVICE", 54, 208, {3, 1, 25, kP, 4}, kHost, kAllow},
    {"ioctl on the host, SIOCGIFCONF", 16, 29, {3, 0x8912, kP}, kHost, kAllow},
    // connect and socket
    {"connect", 42, 203, {3, kP, 16}, kMediated, kNotify},
    {"connect, nothing set", 42, 203, {}, kMediated, kNotify},
    {"socket unix stream", 41, 198, {1, 1, 0}, kFull, kNotify},
    {"socket inet stream", 41, 198, {2, 1, 6}, kFull, kNotify},
    {"socket unix stream", 41, 198, {1, 1, 0}, kConnect, kAllow},
    {"socket unix seqpacket", 41, 198, {1, 5, 0}, kConnect, kAllow},
    {"socket unix stream nonblock cloexec", 41, 198, {1, 0x80801, 0}, kConnect, kAllow},
    {"socket unix dgram", 41, 198, {1, 2, 0}, kConnect, kNotify},
    {"socket unix raw", 41, 198, {1, 3, 0}, kConnect, kNotify},
    {"socket unix dgram cloexec", 41, 198, {1, 0x80002, 0}, kConnect, kNotify},
    {"socket inet stream", 41, 198, {2, 1, 0}, kConnect, kAllow},
    {"socket inet stream tcp", 41, 198, {2, 1, 6}, kConnect, kAllow},
    {"socket inet6 stream tcp", 41, 198, {10, 0x80001, 6}, kConnect, kAllow},
    {"socket inet MPTCP", 41, 198, {2, 1, 262}, kConnect, kNotify},
    {"socket inet6 MPTCP", 41, 198, {10, 1, 262}, kConnect, kNotify},
    {"socket inet SCTP", 41, 198, {2, 1, 132}, kConnect, kNotify},
    {"socket inet SMC", 41, 198, {2, 1, 256}, kConnect, kNotify},
    {"socket inet dgram", 41, 198, {2, 2, 0}, kConnect, kNotify},
    {"socket inet raw", 41, 198, {2, 3, 1}, kConnect, kNotify},
    {"socket inet seqpacket", 41, 198, {2, 5, 132}, kConnect, kNotify},
    {"socket inet dccp", 41, 198, {2, 6, 33}, kConnect, kNotify},
    {"socket netlink", 41, 198, {16, 3, 0}, kConnect, kNotify},
    {"socket packet", 41, 198, {17, 3, 768}, kConnect, kNotify},
    {"socket alg", 41, 198, {38, 5, 0}, kConnect, kNotify},
    {"socket vsock", 41, 198, {40, 1, 0}, kConnect, kNotify},
    {"socket smc", 41, 198, {43, 1, 0}, kConnect, kNotify},
    {"socket xdp", 41, 198, {44, 3, 0}, kConnect, kNotify},
    {"socket unspec", 41, 198, {0, 1, 0}, kConnect, kNotify},
    {"socket unix stream, garbage above", 41, 198, {kBit32 | 1, kBit32 | 1, 0}, kConnect, kAllow},
    {"socket netlink, garbage above", 41, 198, {kBit32 | 16, 3, 0}, kConnect, kNotify},
    {"socket MPTCP, garbage above", 41, 198, {2, 1, kBit32 | 262}, kConnect, kNotify},
    {"socket inet stream, garbage above the type",
     41,
     198,
     {2, (uint64_t{1} << 40) | 1, kBit32 | 6},
     kConnect,
     kAllow},
    {"socketpair unix stream", 53, 199, {1, 1, 0, kP}, kAlways, kAllow},
    {"socketpair unix seqpacket cloexec", 53, 199, {1, 0x80005, 0, kP}, kAlways, kAllow},
    {"socketpair unix dgram", 53, 199, {1, 2, 0, kP}, kMediated, kNotify},
    {"socketpair unix raw", 53, 199, {1, 3, 0, kP}, kMediated, kNotify},
    {"socketpair inet stream", 53, 199, {2, 1, 0, kP}, kMediated, kNotify},
    {"socketpair tipc", 53, 199, {30, 1, 0, kP}, kMediated, kNotify},
    {"socketpair unix dgram, garbage above", 53, 199, {kBit32 | 1, kBit32 | 2, 0, kP}, kMediated, kNotify},
    // sends
    {"send", 44, 206, {3, kP, 9, 0, 0, 0}, kAlways, kAllow},
    {"send NOSIGNAL", 44, 206, {3, kP, 9, 0x4000, 0, 0}, kAlways, kAllow},
    {"send FASTOPEN", 44, 206, {3, kP, 9, 0x20000000, 0, 0}, kMediated, kNotify, Refusal::kFastOpen},
    {"sendto FASTOPEN", 44, 206, {3, kP, 9, 0x20004000, kP, 16}, kMediated, kNotify, Refusal::kFastOpen},
    {"sendto", 44, 206, {3, kP, 9, 0, kP, 16}, kMediated, kNotify, Refusal::kAddressedSend},
    {"sendto, address with a high half alone",
     44,
     206,
     {3, kP, 9, 0, kBit32, 16},
     kMediated,
     kNotify,
     Refusal::kAddressedSend},
    {"sendto, length without address", 44, 206, {3, kP, 9, 0, 0, 16}, kAlways, kAllow},
    {"send, FASTOPEN in the high half",
     44,
     206,
     {3, kP, 9, uint64_t{0x20000000} << 32, 0, 0},
     kAlways,
     kAllow},
    {"sendmsg", 46, 211, {3, kP, 0}, kAlways, kAllow},
    {"sendmsg NOSIGNAL", 46, 211, {3, kP, 0x4000}, kAlways, kAllow},
    {"sendmsg FASTOPEN", 46, 211, {3, kP, 0x20000000}, kMediated, kNotify, Refusal::kFastOpen},
    {"sendmsg FASTOPEN, garbage above",
     46,
     211,
     {3, kP, kBit32 | 0x20000000},
     kMediated,
     kNotify,
     Refusal::kFastOpen},
    {"sendmmsg", 307, 269, {3, kP, 1, 0}, kAlways, kAllow},
    {"sendmmsg FASTOPEN", 307, 269, {3, kP, 1, 0x20000000}, kMediated, kNotify, Refusal::kFastOpen},
    {"sendmmsg of many", 307, 269, {3, kP, 0x20000000, 0}, kAlways, kAllow},
    // names, listening, receiving
    {"bind", 49, 200, {3, kP, 16}, kMediated, kNotify, Refusal::kBindDenied},
    {"listen", 50, 201, {3, 5}, kMediated, kNotify, Refusal::kListenDenied},
    {"accept", 43, 202, {3, 0, 0}, kMediated, kNotify, Refusal::kAcceptDenied},
    {"accept4", 288, 242, {3, 0, 0, 0}, kMediated, kNotify, Refusal::kAcceptDenied},
    {"recvfrom", 45, 207, {3, kP, kP, kP, kP, kP}, kAlways, kAllow},
    {"recvmsg", 47, 212, {3, kP, kP, kP, kP, kP}, kAlways, kAllow},
    {"recvmmsg", 299, 243, {3, kP, kP, kP, kP, kP}, kAlways, kAllow},
    {"shutdown", 48, 210, {3, kP, kP, kP, kP, kP}, kAlways, kAllow},
    {"getsockname", 51, 204, {3, kP, kP, kP, kP, kP}, kAlways, kAllow},
    {"getpeername", 52, 205, {3, kP, kP, kP, kP, kP}, kAlways, kAllow},
    {"getsockopt", 55, 209, {3, kP, kP, kP, kP, kP}, kAlways, kAllow},
    // socket options
    {"setsockopt SO_REUSEADDR", 54, 208, {3, 1, 2, kP, 4}, kAlways, kAllow},
    {"setsockopt SO_KEEPALIVE", 54, 208, {3, 1, 9, kP, 4}, kAlways, kAllow},
    {"setsockopt SO_SNDTIMEO", 54, 208, {3, 1, 21, kP, 4}, kAlways, kAllow},
    {"setsockopt SO_LINGER", 54, 208, {3, 1, 13, kP, 4}, kMediated, kNotify, kOption},
    {"setsockopt SO_BINDTODEVICE", 54, 208, {3, 1, 25, kP, 4}, kMediated, kNotify, kOption},
    {"setsockopt SO_ATTACH_FILTER", 54, 208, {3, 1, 26, kP, 4}, kMediated, kNotify, kOption},
    {"setsockopt SO_SNDBUFFORCE", 54, 208, {3, 1, 32, kP, 4}, kMediated, kNotify, kOption},
    {"setsockopt SO_MARK", 54, 208, {3, 1, 36, kP, 4}, kMediated, kNotify, kOption},
    {"setsockopt SO_TXTIME", 54, 208, {3, 1, 61, kP, 4}, kMediated, kNotify, kOption},
    {"setsockopt SO_BINDTOIFINDEX", 54, 208, {3, 1, 62, kP, 4}, kMediated, kNotify, kOption},
    {"setsockopt SO_PASSPIDFD", 54, 208, {3, 1, 76, kP, 4}, kAlways, kAllow},
    {"setsockopt SO_PASSRIGHTS", 54, 208, {3, 1, 83, kP, 4}, kMediated, kNotify, kOption},
    {"setsockopt TCP_NODELAY", 54, 208, {3, 6, 1, kP, 4}, kAlways, kAllow},
    {"setsockopt TCP_USER_TIMEOUT", 54, 208, {3, 6, 18, kP, 4}, kAlways, kAllow},
    {"setsockopt TCP_MD5SIG", 54, 208, {3, 6, 14, kP, 4}, kMediated, kNotify, kOption},
    {"setsockopt TCP_REPAIR", 54, 208, {3, 6, 19, kP, 4}, kMediated, kNotify, kOption},
    {"setsockopt TCP_FASTOPEN", 54, 208, {3, 6, 23, kP, 4}, kMediated, kNotify, kOption},
    {"setsockopt TCP_FASTOPEN_CONNECT", 54, 208, {3, 6, 30, kP, 4}, kMediated, kNotify, kOption},
    {"setsockopt TCP_ULP", 54, 208, {3, 6, 31, kP, 4}, kMediated, kNotify, kOption},
    {"setsockopt IP_TOS", 54, 208, {3, 0, 1, kP, 4}, kAlways, kAllow},
    {"setsockopt IP_OPTIONS", 54, 208, {3, 0, 4, kP, 4}, kMediated, kNotify, kOption},
    {"setsockopt IP_TRANSPARENT", 54, 208, {3, 0, 19, kP, 4}, kMediated, kNotify, kOption},
    {"setsockopt IP_UNICAST_IF", 54, 208, {3, 0, 50, kP, 4}, kMediated, kNotify, kOption},
    {"setsockopt IP_LOCAL_PORT_RANGE", 54, 208, {3, 0, 51, kP, 4}, kMediated, kNotify, kOption},
    {"setsockopt IPV6_V6ONLY", 54, 208, {3, 41, 26, kP, 4}, kAlways, kAllow},
    {"setsockopt IPV6_2292PKTOPTIONS", 54, 208, {3, 41, 6, kP, 4}, kMediated, kNotify, kOption},
    {"setsockopt IPV6_RTHDR", 54, 208, {3, 41, 57, kP, 4}, kMediated, kNotify, kOption},
    {"setsockopt IPV6_HOPOPTS", 54, 208, {3, 41, 54, kP, 4}, kMediated, kNotify, kOption},
    {"setsockopt IPV6_UNICAST_IF", 54, 208, {3, 41, 76, kP, 4}, kMediated, kNotify, kOption},
    {"setsockopt UDP_SEGMENT", 54, 208, {3, 17, 103, kP, 4}, kMediated, kNotify, kOption},
    {"setsockopt of SOL_MPTCP", 54, 208, {3, 284, 1, kP, 4}, kMediated, kNotify, kOption},
    {"setsockopt of SOL_TLS", 54, 208, {3, 282, 1, kP, 4}, kMediated, kNotify, kOption},
    {"setsockopt TCP_NODELAY, garbage above", 54, 208, {3, kBit32 | 6, kBit32 | 1, kP, 4}, kAlways, kAllow},
    {"setsockopt IPV6_RTHDR, garbage above",
     54,
     208,
     {3, kBit32 | 41, kBit32 | 57, kP, 4},
     kMediated,
     kNotify,
     kOption},
    {"setsockopt of level -1", 54, 208, {3, 0xffffffff, 2, kP, 4}, kMediated, kNotify, kOption},
    // processes
    {"clone fork", 56, 220, {0x11}, kAlways, kAllow},
    {"clone of pthread_create", 56, 220, {0x3d0f00, kP, kP, kP, kP}, kAlways, kAllow},
    {"clone vfork", 56, 220, {0x4111}, kAlways, kAllow},
    {"clone NEWUSER", 56, 220, {0x10000011}, kAlways, kNotify, kDenied},
    {"clone NEWNS", 56, 220, {0x20011}, kAlways, kNotify, kDenied},
    {"clone NEWNET", 56, 220, {0x40000011}, kAlways, kNotify, kDenied},
    {"clone NEWPID", 56, 220, {0x20000011}, kAlways, kNotify, kDenied},
    {"clone NEWIPC", 56, 220, {0x08000011}, kAlways, kNotify, kDenied},
    {"clone NEWUTS", 56, 220, {0x04000011}, kAlways, kNotify, kDenied},
    {"clone NEWCGROUP", 56, 220, {0x02000011}, kAlways, kNotify, kDenied},
    {"clone PARENT", 56, 220, {0x8011}, kAlways, kNotify, kDenied},
    {"clone NEWUSER, garbage above", 56, 220, {kBit32 | 0x10000011}, kAlways, kNotify, kDenied},
    {"clone fork, garbage above", 56, 220, {kBit32 | 0x11}, kAlways, kAllow},
    {"clone with an exit signal of 0x91", 56, 220, {0x91}, kAlways, kAllow},
    {"clone thread without files", 56, 220, {0x3d0b00}, kOld, kNotify, kDenied},
    {"clone thread without files", 56, 220, {0x3d0b00}, kCurrent, kAllow},
    {"clone process without files", 56, 220, {0x111}, kOld, kAllow},
    {"clone3", 435, 435, {kP, 88}, kAlways, kEnosys},
    {"fork", 57, -1, {}, kAlways, kAllow},
    {"vfork", 58, -1, {}, kAlways, kAllow},
    {"execve", 59, 221, {kP, kP, kP}, kAlways, kAllow},
    {"execveat", 322, 281, {3, kP, kP, kP, 0}, kAlways, kAllow},
    {"execveat EMPTY_PATH", 322, 281, {3, kP, kP, kP, 0x1000}, kStrictAny, kEnosys},
    {"execveat EMPTY_PATH NOFOLLOW", 322, 281, {3, kP, kP, kP, 0x1100}, kStrictAny, kEnosys},
    {"execveat EMPTY_PATH", 322, 281, {3, kP, kP, kP, 0x1000}, kLax, kAllow},
    {"memfd_create", 319, 279, {kP, 1}, kStrict, kNotify, Refusal::kExecutableMemory},
    {"memfd_create EXEC", 319, 279, {kP, 0x11}, kStrict, kNotify, Refusal::kExecutableMemory},
    {"memfd_create", 319, 279, {kP, 1}, kStrictOldest, kEnosys},
    {"memfd_create NOEXEC_SEAL", 319, 279, {kP, 9}, kStrictOldest, kEnosys},
    {"memfd_create", 319, 279, {kP, 1}, kLax, kAllow},
    {"unshare", 272, 97, {0, kP, kP}, kAlways, kNotify, kDenied},
    {"setns", 308, 268, {0, kP, kP}, kAlways, kNotify, kDenied},
    {"ptrace", 101, 117, {0, kP, kP}, kAlways, kNotify, kDenied},
    {"process_vm_readv", 310, 270, {0, kP, kP}, kAlways, kNotify, kDenied},
    {"process_vm_writev", 311, 271, {0, kP, kP}, kAlways, kNotify, kDenied},
    {"pidfd_getfd", 438, 438, {0, kP, kP}, kAlways, kNotify, kDenied},
    {"kcmp", 312, 272, {0, kP, kP}, kAlways, kNotify, kDenied},
    {"migrate_pages", 256, 238, {0, kP, kP}, kAlways, kNotify, kDenied},
    {"move_pages", 279, 239, {0, kP, kP}, kAlways, kNotify, kDenied},
    {"prctl NO_NEW_PRIVS", 157, 167, {38, 1, 0, 0, 0}, kAlways, kAllow},
    {"prctl SET_DUMPABLE", 157, 167, {4, 0}, kAlways, kAllow},
    {"prctl SET_SECCOMP", 157, 167, {22, 2, kP}, kAlways, kAllow},
    {"prctl SET_MM", 157, 167, {35, 1, 0}, kAlways, kNotify, kDenied},
    {"prctl SET_PTRACER", 157, 167, {0x59616d61, 1}, kAlways, kNotify, kDenied},
    {"prctl SCHED_CORE", 157, 167, {62, 0}, kAlways, kNotify, kDenied},
    {"prctl SET_MM, garbage above", 157, 167, {kBit32 | 35, 1, 0}, kAlways, kNotify, kDenied},
    {"prlimit64 of its own", 302, 261, {0, 7, 0, kP}, kAlways, kAllow},
    {"prlimit64 of 1234", 302, 261, {1234, 7, 0, kP}, kAlways, kNotify, kForeign},
    {"prlimit64 of its own, garbage above", 302, 261, {kBit32, 7, kP, 0}, kAlways, kAllow},
    {"prlimit64 of -1", 302, 261, {0xffffffff, 7, kP, 0}, kAlways, kNotify, kForeign},
    {"sched_setaffinity of its own", 203, 122, {0, 8, kP}, kAlways, kAllow},
    {"sched_setaffinity of 1234", 203, 122, {1234, 8, kP}, kAlways, kNotify, kForeign},
    {"sched_setaffinity of its own, garbage above", 203, 122, {kBit32, 8, kP}, kAlways, kAllow},
    {"sched_setattr of its own", 314, 274, {0, kP, 0}, kAlways, kAllow},
    {"sched_setattr of 1234", 314, 274, {1234, kP, 0}, kAlways, kNotify, kForeign},
    {"sched_setparam of 1234", 142, 118, {1234, kP}, kAlways, kNotify, kForeign},
    {"sched_setscheduler of its own", 144, 119, {0, 3, kP}, kAlways, kAllow},
    {"sched_setscheduler of 1234", 144, 119, {1234, 3, kP}, kAlways, kNotify, kForeign},
    {"setpriority of its own", 141, 140, {0, 0, 5}, kAlways, kAllow},
    {"setpriority of 1234", 141, 140, {0, 1234, 5}, kAlways, kNotify, kForeign},
    {"setpriority of its group", 141, 140, {1, 0, 5}, kAlways, kNotify, kDenied},
    {"setpriority of a user's", 141, 140, {2, 0, 5}, kAlways, kNotify, kDenied},
    {"setpriority of another group", 141, 140, {kBit32 | 1, 1234, 5}, kAlways, kNotify, kDenied},
    {"ioprio_set of its own", 251, 30, {1, 0, 0x6000}, kAlways, kAllow},
    {"ioprio_set of 1234", 251, 30, {1, 1234, 0x6000}, kAlways, kNotify, kForeign},
    {"ioprio_set of its group", 251, 30, {2, 0, 0x6000}, kAlways, kNotify, kDenied},
    {"ioprio_set of a user's", 251, 30, {3, 0, 0x6000}, kAlways, kNotify, kDenied},
    {"ioprio_set of nobody's", 251, 30, {0, 0, 0x6000}, kAlways, kNotify, kDenied},
    {"personality 0", 135, 92, {0}, kAlways, kAllow},
    {"personality LINUX32", 135, 92, {8}, kAlways, kAllow},
    {"personality UNAME26", 135, 92, {0x20000}, kAlways, kAllow},
    {"personality both", 135, 92, {0x20008}, kAlways, kAllow},
    {"personality query", 135, 92, {0xffffffff}, kAlways, kAllow},
    {"personality query, all ones", 135, 92, {~uint64_t{0}}, kAlways, kAllow},
    {"personality ADDR_NO_RANDOMIZE", 135, 92, {0x40000}, kAlways, kNotify, kDenied},
    {"personality READ_IMPLIES_EXEC", 135, 92, {0x400000}, kAlways, kNotify, kDenied},
    {"personality SVR4", 135, 92, {1}, kAlways, kNotify, kDenied},
    {"personality READ_IMPLIES_EXEC, garbage above", 135, 92, {kBit32 | 0x400000}, kAlways, kNotify, kDenied},
    {"close_range", 436, 436, {3, 0xffffffff, 0}, kAlways, kAllow},
    {"close_range CLOEXEC", 436, 436, {3, 0xffffffff, 4}, kAlways, kAllow},
    {"close_range UNSHARE", 436, 436, {3, 0xffffffff, 2}, kOld, kNotify, kDenied},
    {"close_range UNSHARE CLOEXEC", 436, 436, {3, 0xffffffff, 6}, kOld, kNotify, kDenied},
    {"close_range UNSHARE", 436, 436, {3, 0xffffffff, 2}, kCurrent, kAllow},
    // files and modes
    {"open without O_CREAT, any mode", 2, -1, {kP, 0, 06777}, kAlways, kAllow},
    {"openat without O_CREAT, any mode", 257, 56, {3, kP, 0, 06777}, kAlways, kAllow},
    {"open creating", 2, -1, {kP, 0101, 0644}, kAlways, kAllow},
    {"openat creating", 257, 56, {3, kP, 0101, 0644}, kAlways, kAllow},
    {"open creating setuid", 2, -1, {kP, 0101, 04755}, kAlways, kNotify, kDenied},
    {"openat creating setuid", 257, 56, {3, kP, 0101, 04755}, kAlways, kNotify, kDenied},
    {"open creating setgid", 2, -1, {kP, 0101, 02755}, kAlways, kNotify, kDenied},
    {"openat creating setgid", 257, 56, {3, kP, 0101, 02755}, kAlways, kNotify, kDenied},
    {"open creating sticky", 2, -1, {kP, 0101, 01777}, kAlways, kAllow},
    {"openat creating sticky", 257, 56, {3, kP, 0101, 01777}, kAlways, kAllow},
    {"open O_TMPFILE setuid", 2, -1, {kP, 020200002, 04600}, kAlways, kNotify, kDenied},
    {"openat O_TMPFILE setuid", 257, -1, {3, kP, 020200002, 04600}, kAlways, kNotify, kDenied},
    {"openat O_TMPFILE setuid", -1, 56, {3, kP, 020040002, 04600}, kAlways, kNotify, kDenied},
    {"open O_TMPFILE", 2, -1, {kP, 020200002, 0600}, kAlways, kAllow},
    {"openat O_TMPFILE", 257, -1, {3, kP, 020200002, 0600}, kAlways, kAllow},
    {"openat O_TMPFILE", -1, 56, {3, kP, 020040002, 0600}, kAlways, kAllow},
    {"open O_DIRECTORY, any mode", 2, -1, {kP, 0200000, 04600}, kAlways, kAllow},
    {"openat O_DIRECTORY, any mode", 257, -1, {3, kP, 0200000, 04600}, kAlways, kAllow},
    {"openat O_DIRECTORY, any mode", -1, 56, {3, kP, 040000, 04600}, kAlways, kAllow},
    {"open creating setuid, garbage above",
     2,
     -1,
     {kP, kBit32 | 0101, kBit32 | 04755},
     kAlways,
     kNotify,
     kDenied},
    {"openat creating setuid, garbage above",
     257,
     56,
     {3, kP, kBit32 | 0101, kBit32 | 04755},
     kAlways,
     kNotify,
     kDenied},
    {"open RDONLY TRUNC", 2, -1, {kP, 01000, 0}, kTruncDenied, kNotify, Refusal::kTruncateDenied},
    {"openat RDONLY TRUNC", 257, 56, {3, kP, 01000, 0}, kTruncDenied, kNotify, Refusal::kTruncateDenied},
    {"open RDONLY TRUNC", 2, -1, {kP, 01000, 0}, kTruncJudged, kAllow},
    {"openat RDONLY TRUNC", 257, 56, {3, kP, 01000, 0}, kTruncJudged, kAllow},
    {"open TRUNC for ioctl", 2, -1, {kP, 01003, 0}, kTruncDenied, kNotify, Refusal::kTruncateDenied},
    {"openat TRUNC for ioctl", 257, 56, {3, kP, 01003, 0}, kTruncDenied, kNotify, Refusal::kTruncateDenied},
    {"open WRONLY TRUNC", 2, -1, {kP, 01001, 0}, kAlways, kAllow},
    {"openat WRONLY TRUNC", 257, 56, {3, kP, 01001, 0}, kAlways, kAllow},
    {"open RDWR TRUNC", 2, -1, {kP, 01002, 0}, kAlways, kAllow},
    {"openat RDWR TRUNC", 257, 56, {3, kP, 01002, 0}, kAlways, kAllow},
    {"open as fopen does", 2, -1, {kP, 01101, 0644}, kAlways, kAllow},
    {"openat as fopen does", 257, 56, {3, kP, 01101, 0644}, kAlways, kAllow},
    {"open RDONLY CREAT TRUNC", 2, -1, {kP, 01100, 0644}, kTruncDenied, kNotify, Refusal::kTruncateDenied},
    {"openat RDONLY CREAT TRUNC",
     257,
     56,
     {3, kP, 01100, 0644},
     kTruncDenied,
     kNotify,
     Refusal::kTruncateDenied},
    {"open RDONLY CREAT TRUNC setuid", 2, -1, {kP, 01100, 04644}, kTruncDenied, kNotify, kDenied},
    {"openat RDONLY CREAT TRUNC setuid", 257, 56, {3, kP, 01100, 04644}, kTruncDenied, kNotify, kDenied},
    {"openat2", 437, 437, {3, kP, kP, 24}, kAlways, kEnosys},
    {"creat", 85, -1, {kP, 0644}, kAlways, kAllow},
    {"creat setuid", 85, -1, {kP, 04644}, kAlways, kNotify, kDenied},
    {"creat setgid", 85, -1, {kP, 02644}, kAlways, kNotify, kDenied},
    {"mkdir", 83, -1, {kP, 0755}, kAlways, kAllow},
    {"mkdirat", 258, 34, {3, kP, 0755}, kAlways, kAllow},
    {"mkdir setuid", 83, -1, {kP, 04755}, kAlways, kNotify, kDenied},
    {"mkdirat setuid", 258, 34, {3, kP, 04755}, kAlways, kNotify, kDenied},
    {"mkdir setgid", 83, -1, {kP, 02755}, kAlways, kAllow},
    {"mkdirat setgid", 258, 34, {3, kP, 02755}, kAlways, kAllow},
    {"mkdir sticky", 83, -1, {kP, 01777}, kAlways, kAllow},
    {"mkdirat sticky", 258, 34, {3, kP, 01777}, kAlways, kAllow},
    {"mknod fifo", 133, -1, {kP, 0010644}, kAlways, kAllow},
    {"mknodat fifo", 259, 33, {3, kP, 0010644}, kAlways, kAllow},
    {"mknod file", 133, -1, {kP, 0100644}, kAlways, kAllow},
    {"mknodat file", 259, 33, {3, kP, 0100644}, kAlways, kAllow},
    {"mknod socket", 133, -1, {kP, 0140644}, kAlways, kAllow},
    {"mknodat socket", 259, 33, {3, kP, 0140644}, kAlways, kAllow},
    {"mknod char", 133, -1, {kP, 0020644}, kAlways, kNotify, kDenied},
    {"mknodat char", 259, 33, {3, kP, 0020644}, kAlways, kNotify, kDenied},
    {"mknod block", 133, -1, {kP, 0060644}, kAlways, kNotify, kDenied},
    {"mknodat block", 259, 33, {3, kP, 0060644}, kAlways, kNotify, kDenied},
    {"mknod setuid", 133, -1, {kP, 0104644}, kAlways, kNotify, kDenied},
    {"mknodat setuid", 259, 33, {3, kP, 0104644}, kAlways, kNotify, kDenied},
    {"mknod setgid", 133, -1, {kP, 0102644}, kAlways, kNotify, kDenied},
    {"mknodat setgid", 259, 33, {3, kP, 0102644}, kAlways, kNotify, kDenied},
    {"mknod char, garbage above", 133, -1, {kP, kBit32 | 0020644}, kAlways, kNotify, kDenied},
    {"mknodat char, garbage above", 259, 33, {3, kP, kBit32 | 0020644}, kAlways, kNotify, kDenied},
    {"chmod", 90, -1, {kP, 0755}, kAlways, kAllow},
    {"chmodat", 268, 53, {3, kP, 0755}, kAlways, kAllow},
    {"fchmod", 91, 52, {3, 0755}, kAlways, kAllow},
    {"fchmodat2", 452, 452, {3, kP, 0755, 0}, kAlways, kAllow},
    {"chmod sticky", 90, -1, {kP, 01777}, kAlways, kAllow},
    {"chmodat sticky", 268, 53, {3, kP, 01777}, kAlways, kAllow},
    {"fchmod sticky", 91, 52, {3, 01777}, kAlways, kAllow},
    {"fchmodat2 sticky", 452, 452, {3, kP, 01777, 0}, kAlways, kAllow},
    {"chmod setuid", 90, -1, {kP, 04755}, kAlways, kNotify, kDenied},
    {"chmodat setuid", 268, 53, {3, kP, 04755}, kAlways, kNotify, kDenied},
    {"fchmod setuid", 91, 52, {3, 04755}, kAlways, kNotify, kDenied},
    {"fchmodat2 setuid", 452, 452, {3, kP, 04755, 0}, kAlways, kNotify, kDenied},
    {"chmod both", 90, -1, {kP, 06755}, kAlways, kNotify, kDenied},
    {"chmodat both", 268, 53, {3, kP, 06755}, kAlways, kNotify, kDenied},
    {"fchmod both", 91, 52, {3, 06755}, kAlways, kNotify, kDenied},
    {"fchmodat2 both", 452, 452, {3, kP, 06755, 0}, kAlways, kNotify, kDenied},
    {"chmod setgid", 90, -1, {kP, 02755}, kGroupZero, kNotify, kDenied},
    {"chmodat setgid", 268, 53, {3, kP, 02755}, kGroupZero, kNotify, kDenied},
    {"fchmod setgid", 91, 52, {3, 02755}, kGroupZero, kNotify, kDenied},
    {"fchmodat2 setgid", 452, 452, {3, kP, 02755, 0}, kGroupZero, kNotify, kDenied},
    {"chmod setgid", 90, -1, {kP, 02755}, kOtherGroup, kAllow},
    {"chmodat setgid", 268, 53, {3, kP, 02755}, kOtherGroup, kAllow},
    {"fchmod setgid", 91, 52, {3, 02755}, kOtherGroup, kAllow},
    {"fchmodat2 setgid", 452, 452, {3, kP, 02755, 0}, kOtherGroup, kAllow},
    {"chmod setuid, garbage above", 90, -1, {kP, kBit32 | 04755}, kAlways, kNotify, kDenied},
    {"chmodat setuid, garbage above", 268, 53, {3, kP, kBit32 | 04755}, kAlways, kNotify, kDenied},
    {"fchmod setuid, garbage above", 91, 52, {3, kBit32 | 04755}, kAlways, kNotify, kDenied},
    {"fchmodat2 setuid, garbage above", 452, 452, {3, kP, kBit32 | 04755, 0}, kAlways, kNotify, kDenied},
    {"chmod garbage above", 90, -1, {kP, uint64_t{04755} << 32}, kAlways, kAllow},
    {"chmodat garbage above", 268, 53, {3, kP, uint64_t{04755} << 32}, kAlways, kAllow},
    {"fchmod garbage above", 91, 52, {3, uint64_t{04755} << 32}, kAlways, kAllow},
    {"fchmodat2 garbage above", 452, 452, {3, kP, uint64_t{04755} << 32, 0}, kAlways, kAllow},
    {"truncate", 76, 45, {kP, 0}, kTruncDenied, kNotify, Refusal::kTruncateDenied},
    {"truncate", 76, 45, {kP, 0}, kTruncJudged, kAllow},
    {"ftruncate", 77, 46, {3, 0}, kAlways, kAllow},
    {"fcntl GETFD", 72, 25, {3, 1, 7}, kAlways, kAllow},
    {"fcntl SETFD", 72, 25, {3, 2, 1}, kAlways, kAllow},
    {"fcntl SETLK", 72, 25, {3, 6, kP}, kAlways, kAllow},
    {"fcntl SETLEASE", 72, 25, {3, 1024, 1}, kAlways, kNotify, Refusal::kLease},
    {"fcntl SETLEASE, garbage above", 72, 25, {3, kBit32 | 1024, 1}, kAlways, kNotify, Refusal::kLease},
    {"fcntl GETLEASE", 72, 25, {3, 1025}, kAlways, kAllow},
    {"fcntl ADD_SEALS", 72, 25, {3, 1033, 1}, kAlways, kAllow},
    // ioctl
    {"ioctl TCGETS", 16, 29, {3, 0x5401, kP}, kAlways, kAllow},
    {"ioctl TIOCGWINSZ", 16, 29, {3, 0x5413, kP}, kAlways, kAllow},
    {"ioctl FIONREAD", 16, 29, {3, 0x541b, kP}, kAlways, kAllow},
    {"ioctl FIONBIO", 16, 29, {3, 0x5421, kP}, kAlways, kAllow},
    {"ioctl FIOCLEX", 16, 29, {3, 0x5451, kP}, kAlways, kAllow},
    {"ioctl TIOCSTI", 16, 29, {3, 0x5412, kP}, kAlways, kNotify, kDenied},
    {"ioctl TIOCSTI, garbage above", 16, 29, {3, kBit32 | 0x5412, kP}, kAlways, kNotify, kDenied},
    {"ioctl TIOCLINUX", 16, 29, {3, 0x541c, kP}, kAlways, kNotify, kDenied},
    {"ioctl TIOCCONS", 16, 29, {3, 0x541d, kP}, kAlways, kNotify, kDenied},
    {"ioctl TIOCSETD", 16, 29, {3, 0x5423, kP}, kAlways, kNotify, kDenied},
    {"ioctl NOTIF_RECV", 16, 29, {3, 0xc0502100, kP}, kAlways, kNotify, kDenied},
    {"ioctl NOTIF_SEND", 16, 29, {3, 0xc0182101, kP}, kAlways, kNotify, kDenied},
    {"ioctl NOTIF_ID_VALID", 16, 29, {3, 0x40082102, kP}, kAlways, kNotify, kDenied},
    {"ioctl NOTIF_ID_VALID, old number", 16, 29, {3, 0x80082102, kP}, kAlways, kNotify, kDenied},
    {"ioctl NOTIF_ADDFD", 16, 29, {3, 0x40182103, kP}, kAlways, kNotify, kDenied},
    {"ioctl NOTIF_ADDFD of another size", 16, 29, {3, 0x40202103, kP}, kAlways, kNotify, kDenied},
    {"ioctl NOTIF_ADDFD without size and direction", 16, 29, {3, 0x2103, kP}, kAlways, kNotify, kDenied},
    {"ioctl NOTIF_SET_FLAGS", 16, 29, {3, 0x40082104, kP}, kAlways, kNotify, kDenied},
    {"ioctl SIOCGIFCONF", 16, 29, {3, 0x8912, kP}, kMediated, kNotify, Refusal::kInterfaceIoctl},
    {"ioctl SIOCGIFHWADDR", 16, 29, {3, 0x8927, kP}, kMediated, kNotify, Refusal::kInterfaceIoctl},
    {"ioctl SIOCETHTOOL", 16, 29, {3, 0x8946, kP}, kMediated, kNotify, Refusal::kInterfaceIoctl},
    {"ioctl SIOCGARP", 16, 29, {3, 0x8954, kP}, kMediated, kNotify, Refusal::kInterfaceIoctl},
    {"ioctl SIOCGSKNS", 16, 29, {3, 0x894c, kP}, kMediated, kNotify, Refusal::kInterfaceIoctl},
    {"ioctl SIOCGSTAMP_NEW", 16, 29, {3, 0x80108906, kP}, kMediated, kNotify, Refusal::kInterfaceIoctl},
    {"ioctl SIOCGIWESSID", 16, 29, {3, 0x8b1b, kP}, kMediated, kNotify, Refusal::kInterfaceIoctl},
    {"ioctl SIOCDEVPRIVATE", 16, 29, {3, 0x89f0, kP}, kMediated, kNotify, Refusal::kInterfaceIoctl},
    {"ioctl SIOCATMARK", 16, 29, {3, 0x8905, kP}, kAlways, kAllow},
    {"ioctl SIOCGSTAMP", 16, 29, {3, 0x8906, kP}, kAlways, kAllow},
    {"ioctl SIOCGSTAMPNS", 16, 29, {3, 0x8907, kP}, kAlways, kAllow},
    {"ioctl SIOCOUTQNSD", 16, 29, {3, 0x894b, kP}, kAlways, kAllow},
    {"ioctl SIOCGIFCONF, garbage above",
     16,
     29,
     {3, kBit32 | 0x8912, kP},
     kMediated,
     kNotify,
     Refusal::kInterfaceIoctl},
    {"ioctl FICLONE", 16, 29, {3, 0x40049409, kP}, kAlways, kAllow},
    {"ioctl FICLONERANGE", 16, 29, {3, 0x4020940d, kP}, kAlways, kAllow},
    {"ioctl FIDEDUPERANGE", 16, 29, {3, 0xc0189436, kP}, kAlways, kAllow},
    {"ioctl BTRFS_IOC_SUBVOL_CREATE", 16, 29, {3, 0x5000940e, kP}, kAlways, kNotify, kDenied},
    {"ioctl BTRFS_IOC_SNAP_CREATE", 16, 29, {3, 0x50009401, kP}, kAlways, kNotify, kDenied},
    {"ioctl BTRFS_IOC_SNAP_DESTROY", 16, 29, {3, 0x5000940f, kP}, kAlways, kNotify, kDenied},
    {"ioctl FS_IOC_GETFLAGS", 16, 29, {3, 0x80086601, kP}, kAlways, kAllow},
    {"ioctl FS_IOC_SETFLAGS", 16, 29, {3, 0x40086602, kP}, kAlways, kNotify, kDenied},
    {"ioctl FS_IOC_SETVERSION", 16, 29, {3, 0x40087602, kP}, kAlways, kNotify, kDenied},
    {"ioctl FS_IOC_FSGETXATTR", 16, 29, {3, 0x801c581f, kP}, kAlways, kAllow},
    {"ioctl FS_IOC_FSSETXATTR", 16, 29, {3, 0x401c5820, kP}, kAlways, kNotify, kDenied},
    {"ioctl FS_IOC_ENABLE_VERITY", 16, 29, {3, 0x40806685, kP}, kAlways, kNotify, kDenied},
    // System V and POSIX queues
    {"shmget", 29, 194, {1, kP, 4096, 0}, kNoSysv, kNotify, kDenied},
    {"shmget", 29, 194, {1, kP, 4096, 0}, kSysv, kAllow},
    {"shmat", 30, 196, {1, kP, 4096, 0}, kNoSysv, kNotify, kDenied},
    {"shmat", 30, 196, {1, kP, 4096, 0}, kSysv, kAllow},
    {"shmctl", 31, 195, {1, kP, 4096, 0}, kNoSysv, kNotify, kDenied},
    {"shmctl", 31, 195, {1, kP, 4096, 0}, kSysv, kAllow},
    {"shmdt", 67, 197, {1, kP, 4096, 0}, kNoSysv, kNotify, kDenied},
    {"shmdt", 67, 197, {1, kP, 4096, 0}, kSysv, kAllow},
    {"semget", 64, 190, {1, kP, 4096, 0}, kNoSysv, kNotify, kDenied},
    {"semget", 64, 190, {1, kP, 4096, 0}, kSysv, kAllow},
    {"semop", 65, 193, {1, kP, 4096, 0}, kNoSysv, kNotify, kDenied},
    {"semop", 65, 193, {1, kP, 4096, 0}, kSysv, kAllow},
    {"semctl", 66, 191, {1, kP, 4096, 0}, kNoSysv, kNotify, kDenied},
    {"semctl", 66, 191, {1, kP, 4096, 0}, kSysv, kAllow},
    {"semtimedop", 220, 192, {1, kP, 4096, 0}, kNoSysv, kNotify, kDenied},
    {"semtimedop", 220, 192, {1, kP, 4096, 0}, kSysv, kAllow},
    {"msgget", 68, 186, {1, kP, 4096, 0}, kNoSysv, kNotify, kDenied},
    {"msgget", 68, 186, {1, kP, 4096, 0}, kSysv, kAllow},
    {"msgsnd", 69, 189, {1, kP, 4096, 0}, kNoSysv, kNotify, kDenied},
    {"msgsnd", 69, 189, {1, kP, 4096, 0}, kSysv, kAllow},
    {"msgrcv", 70, 188, {1, kP, 4096, 0}, kNoSysv, kNotify, kDenied},
    {"msgrcv", 70, 188, {1, kP, 4096, 0}, kSysv, kAllow},
    {"msgctl", 71, 187, {1, kP, 4096, 0}, kNoSysv, kNotify, kDenied},
    {"msgctl", 71, 187, {1, kP, 4096, 0}, kSysv, kAllow},
    {"mq_open", 240, 180, {kP}, kNoSysv, kEnosys},
    {"mq_open", 240, 180, {kP}, kSysv, kAllow},
    {"mq_unlink", 241, 181, {kP}, kNoSysv, kEnosys},
    {"mq_unlink", 241, 181, {kP}, kSysv, kAllow},
    {"mq_timedsend", 242, 182, {kP}, kNoSysv, kEnosys},
    {"mq_timedsend", 242, 182, {kP}, kSysv, kAllow},
    {"mq_timedreceive", 243, 183, {kP}, kNoSysv, kEnosys},
    {"mq_timedreceive", 243, 183, {kP}, kSysv, kAllow},
    {"mq_notify", 244, 184, {kP}, kNoSysv, kEnosys},
    {"mq_notify", 244, 184, {kP}, kSysv, kAllow},
    {"mq_getsetattr", 245, 185, {kP}, kNoSysv, kEnosys},
    {"mq_getsetattr", 245, 185, {kP}, kSysv, kAllow},
    // refused and recorded
    {"io_uring_setup", 425, 425, {8, kP}, kAlways, kNotify, Refusal::kNotBuilt},
    {"mount", 165, 40, {}, kAlways, kNotify, kDenied},
    {"umount2", 166, 39, {}, kAlways, kNotify, kDenied},
    {"pivot_root", 155, 41, {}, kAlways, kNotify, kDenied},
    {"chroot", 161, 51, {}, kAlways, kNotify, kDenied},
    {"open_tree", 428, 428, {}, kAlways, kNotify, kDenied},
    {"move_mount", 429, 429, {}, kAlways, kNotify, kDenied},
    {"fsopen", 430, 430, {}, kAlways, kNotify, kDenied},
    {"fsconfig", 431, 431, {}, kAlways, kNotify, kDenied},
    {"fsmount", 432, 432, {}, kAlways, kNotify, kDenied},
    {"fspick", 433, 433, {}, kAlways, kNotify, kDenied},
    {"mount_setattr", 442, 442, {}, kAlways, kNotify, kDenied},
    {"open_tree_attr", 467, 467, {}, kAlways, kNotify, kDenied},
    {"add_key", 248, 217, {}, kAlways, kNotify, kDenied},
    {"request_key", 249, 218, {}, kAlways, kNotify, kDenied},
    {"keyctl", 250, 219, {}, kAlways, kNotify, kDenied},
    {"bpf", 321, 280, {}, kAlways, kNotify, kDenied},
    {"init_module", 175, 105, {}, kAlways, kNotify, kDenied},
    {"finit_module", 313, 273, {}, kAlways, kNotify, kDenied},
    {"delete_module", 176, 106, {}, kAlways, kNotify, kDenied},
    {"kexec_load", 246, 104, {}, kAlways, kNotify, kDenied},
    {"kexec_file_load", 320, 294, {}, kAlways, kNotify, kDenied},
    {"perf_event_open", 298, 241, {}, kAlways, kNotify, kDenied},
    {"userfaultfd", 323, 282, {}, kAlways, kNotify, kDenied},
    {"fanotify_init", 300, 262, {}, kAlways, kNotify, kDenied},
    {"fanotify_mark", 301, 263, {}, kAlways, kNotify, kDenied},
    {"name_to_handle_at", 303, 264, {}, kAlways, kNotify, kDenied},
    {"open_by_handle_at", 304, 265, {}, kAlways, kNotify, kDenied},
    {"reboot", 169, 142, {}, kAlways, kNotify, kDenied},
    {"swapon", 167, 224, {}, kAlways, kNotify, kDenied},
    {"swapoff", 168, 225, {}, kAlways, kNotify, kDenied},
    {"sethostname", 170, 161, {}, kAlways, kNotify, kDenied},
    {"setdomainname", 171, 162, {}, kAlways, kNotify, kDenied},
    {"syslog", 103, 116, {}, kAlways, kNotify, kDenied},
    {"acct", 163, 89, {}, kAlways, kNotify, kDenied},
    {"quotactl", 179, 60, {}, kAlways, kNotify, kDenied},
    {"quotactl_fd", 443, 443, {}, kAlways, kNotify, kDenied},
    {"settimeofday", 164, 170, {}, kAlways, kNotify, kDenied},
    {"clock_settime", 227, 112, {}, kAlways, kNotify, kDenied},
    {"adjtimex", 159, 171, {}, kAlways, kNotify, kDenied},
    {"clock_adjtime", 305, 266, {}, kAlways, kNotify, kDenied},
    {"vhangup", 153, 58, {}, kAlways, kNotify, kDenied},
    {"iopl", 172, -1, {}, kAlways, kNotify, kDenied},
    {"ioperm", 173, -1, {}, kAlways, kNotify, kDenied},
    // absent
    {"io_uring_enter", 426, 426, {}, kAlways, kEnosys},
    {"io_uring_register", 427, 427, {}, kAlways, kEnosys},
    {"io_setup", 206, 0, {}, kAlways, kEnosys},
    {"io_destroy", 207, 1, {}, kAlways, kEnosys},
    {"io_submit", 209, 2, {}, kAlways, kEnosys},
    {"io_cancel", 210, 3, {}, kAlways, kEnosys},
    {"io_getevents", 208, 4, {}, kAlways, kEnosys},
    {"io_pgetevents", 333, 292, {}, kAlways, kEnosys},
    {"modify_ldt", 154, -1, {}, kAlways, kEnosys},
    {"vmsplice", 278, 75, {}, kAlways, kEnosys},
    {"uselib", 134, -1, {}, kAlways, kEnosys},
    {"remap_file_pages", 216, 234, {}, kAlways, kEnosys},
    {"process_madvise", 440, 440, {}, kAlways, kEnosys},
    {"memfd_secret", 447, 447, {}, kAlways, kEnosys},
    {"process_mrelease", 448, 448, {}, kAlways, kEnosys},
    {"set_mempolicy_home_node", 450, 450, {}, kAlways, kEnosys},
    {"statmount", 457, 457, {}, kAlways, kEnosys},
    {"listmount", 458, 458, {}, kAlways, kEnosys},
    {"lsm_set_self_attr", 460, 460, {}, kAlways, kEnosys},
    {"file_getattr", 468, 468, {}, kAlways, kEnosys},
    {"file_setattr", 469, 469, {}, kAlways, kEnosys},
    {"uprobe", 336, -1, {}, kAlways, kEnosys},
    {"lookup_dcookie", 212, 18, {}, kAlways, kEnosys},
    {"nfsservctl", 180, 42, {}, kAlways, kEnosys},
    {"a call newer than the table", 470, 470, {2, 1, 0}, kAlways, kEnosys},
    {"a number far above", 1000, 1000, {2, 1, 0}, kAlways, kEnosys},
    {"a number in the gap", 400, 400, {2, 1, 0}, kAlways, kEnosys},
    {"a number in the lower gap", 337, 244, {2, 1, 0}, kAlways, kEnosys},
    {"x32 socket", 1073741865, -1, {2, 1, 0}, kAlways, kEnosys},
    {"x32 connect", 1073741866, -1, {2, 1, 0}, kAlways, kEnosys},
    {"x32 read", 1073741824, -1, {2, 1, 0}, kAlways, kEnosys},
    {"number -2", -2, -2, {2, 1, 0}, kAlways, kEnosys},
    {"the highest plain number", 1073741823, 1073741823, {2, 1, 0}, kAlways, kEnosys},
    // allowed
    {"read", 0, 63, {~uint64_t{0}, ~uint64_t{0}, ~uint64_t{0}, 0, 0, 0}, kAlways, kAllow},
    {"write", 1, 64, {~uint64_t{0}, ~uint64_t{0}, ~uint64_t{0}, 0, 0, 0}, kAlways, kAllow},
    {"close", 3, 57, {~uint64_t{0}, ~uint64_t{0}, ~uint64_t{0}, 0, 0, 0}, kAlways, kAllow},
    {"mmap", 9, 222, {~uint64_t{0}, ~uint64_t{0}, ~uint64_t{0}, 0, 0, 0}, kAlways, kAllow},
    {"mprotect", 10, 226, {~uint64_t{0}, ~uint64_t{0}, ~uint64_t{0}, 0, 0, 0}, kAlways, kAllow},
    {"futex", 202, 98, {~uint64_t{0}, ~uint64_t{0}, ~uint64_t{0}, 0, 0, 0}, kAlways, kAllow},
    {"getppid", 110, 173, {~uint64_t{0}, ~uint64_t{0}, ~uint64_t{0}, 0, 0, 0}, kAlways, kAllow},
    {"uretprobe", 335, -1, {~uint64_t{0}, ~uint64_t{0}, ~uint64_t{0}, 0, 0, 0}, kAlways, kAllow},
    {"rt_sigreturn", 15, 139, {~uint64_t{0}, ~uint64_t{0}, ~uint64_t{0}, 0, 0, 0}, kAlways, kAllow},
    {"restart_syscall", 219, 128, {~uint64_t{0}, ~uint64_t{0}, ~uint64_t{0}, 0, 0, 0}, kAlways, kAllow},
    {"statx", 332, 291, {~uint64_t{0}, ~uint64_t{0}, ~uint64_t{0}, 0, 0, 0}, kAlways, kAllow},
    {"newfstatat", 262, 79, {~uint64_t{0}, ~uint64_t{0}, ~uint64_t{0}, 0, 0, 0}, kAlways, kAllow},
    {"faccessat2", 439, 439, {~uint64_t{0}, ~uint64_t{0}, ~uint64_t{0}, 0, 0, 0}, kAlways, kAllow},
    {"rseq", 334, 293, {~uint64_t{0}, ~uint64_t{0}, ~uint64_t{0}, 0, 0, 0}, kAlways, kAllow},
    {"getrandom", 318, 278, {~uint64_t{0}, ~uint64_t{0}, ~uint64_t{0}, 0, 0, 0}, kAlways, kAllow},
    {"kill", 62, 129, {~uint64_t{0}, ~uint64_t{0}, ~uint64_t{0}, 0, 0, 0}, kCurrent, kAllow},
    {"kill", 62, 129, {1234, 9}, kOld, kNotify, kForeign},
    {"kill of the group", 62, 129, {0, 9}, kOld, kNotify, kForeign},
    {"kill of all", 62, 129, {0xffffffff, 9}, kOld, kNotify, kForeign},
    {"tkill", 200, 130, {1234, 9}, kOld, kNotify, kForeign},
    {"tkill", 200, 130, {1234, 9}, kCurrent, kAllow},
    {"tgkill", 234, 131, {1234, 1234, 9}, kOld, kNotify, kForeign},
    {"tgkill", 234, 131, {1234, 1234, 9}, kCurrent, kAllow},
    {"rt_sigqueueinfo", 129, 138, {1234, 9, kP}, kOld, kNotify, kForeign},
    {"rt_sigqueueinfo", 129, 138, {1234, 9, kP}, kCurrent, kAllow},
    {"rt_tgsigqueueinfo", 297, 240, {1234, 1234, 9, kP}, kOld, kNotify, kForeign},
    {"rt_tgsigqueueinfo", 297, 240, {1234, 1234, 9, kP}, kCurrent, kAllow},
    {"pidfd_send_signal", 424, 424, {3, 9, 0, 0}, kOld, kEnosys},
    {"pidfd_send_signal", 424, 424, {3, 9, 0, 0}, kCurrent, kAllow},
    {"fcntl SETOWN", 72, 25, {3, 8, 1234}, kOld, kNotify, kForeign},
    {"fcntl SETOWN of a group", 72, 25, {3, 8, 0xffffff00}, kOld, kNotify, kDenied},
    {"fcntl SETOWN of a group, all bits", 72, 25, {3, 8, ~uint64_t{0}}, kOld, kNotify, kDenied},
    {"fcntl SETOWN of nobody", 72, 25, {3, 8, 0}, kOld, kAllow},
    {"fcntl SETOWN of nobody, garbage above", 72, 25, {3, kBit32 | 8, kBit32}, kOld, kAllow},
    {"fcntl SETOWN, garbage above", 72, 25, {3, kBit32 | 8, kBit32 | 7}, kOld, kNotify, kForeign},
    {"fcntl SETOWN", 72, 25, {3, 8, 1234}, kCurrent, kAllow},
    {"fcntl SETOWN_EX", 72, 25, {3, 15, kP}, kOld, kNotify, kDenied},
    {"fcntl SETOWN_EX", 72, 25, {3, 15, kP}, kCurrent, kAllow},
    {"fcntl GETOWN", 72, 25, {3, 9, 0}, kAlways, kAllow},
    {"fcntl GETOWN_EX", 72, 25, {3, 16, kP}, kAlways, kAllow},
    {"fcntl SETSIG", 72, 25, {3, 10, 9}, kAlways, kAllow},
    {"fcntl SETFL ASYNC", 72, 25, {3, 4, 020000}, kOld, kNotify, kDenied},
    {"fcntl SETFL ASYNC NONBLOCK", 72, 25, {3, 4, 024000}, kOld, kNotify, kDenied},
    {"fcntl SETFL ASYNC", 72, 25, {3, 4, 020000}, kCurrent, kAllow},
    {"fcntl SETFL APPEND NONBLOCK", 72, 25, {3, 4, 06000}, kAlways, kAllow},
    {"ioctl FIOASYNC", 16, 29, {3, 0x5452, kP}, kOld, kNotify, kDenied},
    {"ioctl FIOASYNC", 16, 29, {3, 0x5452, kP}, kCurrent, kAllow},
    {"ioctl FIONBIO", 16, 29, {3, 0x5421, kP}, kAlways, kAllow},
    {"ioctl FIOSETOWN", 16, 29, {3, 0x8901, kP}, kMediated, kNotify, Refusal::kInterfaceIoctl},
    {"ioctl SIOCSPGRP", 16, 29, {3, 0x8902, kP}, kMediated, kNotify, Refusal::kInterfaceIoctl},
    {"ioctl FIOSETOWN", 16, 29, {3, 0x8901, kP}, kOld, kNotify, Refusal::kInterfaceIoctl},
    {"ioctl SIOCSPGRP", 16, 29, {3, 0x8902, kP}, kOld, kNotify, Refusal::kInterfaceIoctl},
    {"inotify_add_watch", 254, 27, {~uint64_t{0}, ~uint64_t{0}, ~uint64_t{0}, 0, 0, 0}, kAlways, kAllow},
    {"mseal", 462, 462, {~uint64_t{0}, ~uint64_t{0}, ~uint64_t{0}, 0, 0, 0}, kAlways, kAllow},
    {"setxattrat", 463, 463, {~uint64_t{0}, ~uint64_t{0}, ~uint64_t{0}, 0, 0, 0}, kAlways, kAllow},
    {"cachestat", 451, 451, {~uint64_t{0}, ~uint64_t{0}, ~uint64_t{0}, 0, 0, 0}, kAlways, kAllow},
    {"pidfd_open", 434, 434, {~uint64_t{0}, ~uint64_t{0}, ~uint64_t{0}, 0, 0, 0}, kAlways, kAllow},
    {"copy_file_range", 326, 285, {~uint64_t{0}, ~uint64_t{0}, ~uint64_t{0}, 0, 0, 0}, kAlways, kAllow},
    {"arch_prctl", 158, -1, {~uint64_t{0}, ~uint64_t{0}, ~uint64_t{0}, 0, 0, 0}, kAlways, kAllow},
    {"seccomp", 317, 277, {~uint64_t{0}, ~uint64_t{0}, ~uint64_t{0}, 0, 0, 0}, kAlways, kAllow},
    {"landlock_create_ruleset",
     444,
     444,
     {~uint64_t{0}, ~uint64_t{0}, ~uint64_t{0}, 0, 0, 0},
     kAlways,
     kAllow},
    {"landlock_restrict_self",
     446,
     446,
     {~uint64_t{0}, ~uint64_t{0}, ~uint64_t{0}, 0, 0, 0},
     kAlways,
     kAllow},
    {"renameat2", 316, 276, {~uint64_t{0}, ~uint64_t{0}, ~uint64_t{0}, 0, 0, 0}, kAlways, kAllow},
    {"utimensat", 280, 88, {~uint64_t{0}, ~uint64_t{0}, ~uint64_t{0}, 0, 0, 0}, kAlways, kAllow},
    {"eventfd2", 290, 19, {~uint64_t{0}, ~uint64_t{0}, ~uint64_t{0}, 0, 0, 0}, kAlways, kAllow},
    {"epoll_pwait2", 441, 441, {~uint64_t{0}, ~uint64_t{0}, ~uint64_t{0}, 0, 0, 0}, kAlways, kAllow},
    {"membarrier", 324, 283, {~uint64_t{0}, ~uint64_t{0}, ~uint64_t{0}, 0, 0, 0}, kAlways, kAllow},
    {"setsid", 112, 157, {~uint64_t{0}, ~uint64_t{0}, ~uint64_t{0}, 0, 0, 0}, kAlways, kAllow},
    {"wait4", 61, 260, {~uint64_t{0}, ~uint64_t{0}, ~uint64_t{0}, 0, 0, 0}, kAlways, kAllow},
    {"exit_group", 231, 94, {~uint64_t{0}, ~uint64_t{0}, ~uint64_t{0}, 0, 0, 0}, kAlways, kAllow},
};
static_assert(std::size(kExpectations) >= 150);

void Check(const Expectation& expectation, Arch arch) {
  const int nr = arch == Arch::kX86_64 ? expectation.x86_64 : expectation.aarch64;
  if (nr == -1) return;
  SCOPED_TRACE(testing::Message() << expectation.what
                                  << (arch == Arch::kX86_64 ? " on x86_64" : " on aarch64"));
  abi::SeccompData data = {.nr = nr, .arch = AuditArch(arch), .instruction_pointer = 0x401000, .args = {}};
  std::ranges::copy(expectation.args, data.args);
  unsigned shapes = 0;
  for (unsigned index = 0; index < kShapeCount; ++index) {
    const Shape shape = ShapeAt(index);
    if (!Applies(expectation.when, shape)) continue;
    ++shapes;
    EXPECT_EQ(bpf::Run(Generated(arch, shape), data), expectation.verdict) << ShapeName(shape);
  }
  EXPECT_GE(shapes, 8U);

  const CallRow* row = FindCall(arch, static_cast<uint32_t>(data.nr));
  if (expectation.verdict != kNotify) return;
  ASSERT_NE(row, nullptr);
  EXPECT_EQ(RefusalOf(*row, expectation.args), expectation.refusal);
}

TEST(FilterExpectations, HoldInEveryShape) {
  for (const Expectation& expectation : kExpectations) {
    Check(expectation, Arch::kX86_64);
    Check(expectation, Arch::kAarch64);
  }
}

// The names beside the numbers are the table's too, where they begin with one.
TEST(FilterExpectations, NumbersAreThoseOfTheTable) {
  size_t found = 0;
  for (const Expectation& expectation : kExpectations) {
    const std::string_view what = expectation.what;
    const CallRow* row = FindCall(what.substr(0, what.find(' ')));
    if (row == nullptr) continue;
    ++found;
    for (const Arch arch : {Arch::kX86_64, Arch::kAarch64}) {
      const int nr = arch == Arch::kX86_64 ? expectation.x86_64 : expectation.aarch64;
      EXPECT_TRUE(nr < 0 || nr == Number(*row, arch)) << what << ' ' << nr;
    }
  }
  EXPECT_GT(found, std::size(kExpectations) * 9 / 10);
}

TEST(FilterExpectations, ForeignArchitecturesAreKilled) {
  for (unsigned index = 0; index < kShapeCount; ++index) {
    for (const Arch arch : {Arch::kX86_64, Arch::kAarch64}) {
      for (const uint32_t foreign :
           {0x40000003U, 0x40000028U, arch == Arch::kX86_64 ? 0xC00000B7U : 0xC000003EU, 0U}) {
        for (int nr = 0; nr < 512; ++nr) {
          const abi::SeccompData data = {.nr = nr, .arch = foreign, .instruction_pointer = 0, .args = {}};
          ASSERT_EQ(bpf::Run(Generated(arch, ShapeAt(index)), data), 0x80000000U)
              << "call " << nr << " of " << foreign;
        }
      }
    }
  }
}

}  // namespace
}  // namespace oarlock::filter_check
