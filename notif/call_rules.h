// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "notif/calls.h"

// The argument rules of the call table; for notif/calls.cc alone.
//
// Numbers are written out where the two architectures agree, since a build for one has no headers of the
// other; tests/notif/abi_test.cc compares them with the system's. Of the open flags that differ (O_DIRECTORY,
// O_NOFOLLOW, O_DIRECT, O_LARGEFILE) none is used: O_TMPFILE contains O_DIRECTORY, so its own bit __O_TMPFILE
// is tested alone, which is also what the kernel looks at to decide that a mode is given.
namespace oarlock::rules {

using Op = ArgTest::Op;

inline constexpr uint32_t kAllBits = 0xffffffffU;
inline constexpr uint32_t kNothing[] = {0};

inline constexpr uint32_t kSetUid = 04000;
inline constexpr uint32_t kSetIds = 06000;  // and setgid

// "has one of these bits"
template <uint8_t kArg, uint32_t kBits>
inline constexpr ArgTest kAnyOf = {kArg, Op::kNotIn, kBits, kNothing};

template <uint8_t kMode, uint32_t kBits>
inline constexpr ArgTest kModeTests[] = {kAnyOf<kMode, kBits>};
template <uint8_t kMode, uint32_t kBits>
inline constexpr ArgClause kModeClauses[] = {{kModeTests<kMode, kBits>, Action::kNotify}};
template <uint8_t kMode, uint32_t kBits>
inline constexpr ArgRule kModeRule = {kModeClauses<kMode, kBits>, Action::kAllow};

// Device nodes reach drivers that no path rule judged. S_IFMT is compared whole: S_IFBLK contains S_IFCHR's
// bit.
inline constexpr uint32_t kFileType = 0170000;
inline constexpr uint32_t kDeviceTypes[] = {0020000, 0060000};
template <uint8_t kMode>
inline constexpr ArgTest kDeviceTests[] = {{kMode, Op::kIn, kFileType, kDeviceTypes}};
template <uint8_t kMode>
inline constexpr ArgClause kNodeClauses[] = {{kModeTests<kMode, kSetIds>, Action::kNotify},
                                             {kDeviceTests<kMode>, Action::kNotify}};
template <uint8_t kMode>
inline constexpr ArgRule kNodeRule = {kNodeClauses<kMode>, Action::kAllow};

// open: the mode counts when O_CREAT or __O_TMPFILE is set; else its register holds anything. The mode
// follows the flags.
inline constexpr uint32_t kCreating = 0100 | 020000000;
template <uint8_t kFlagsArg>
inline constexpr ArgTest kCreateTests[] = {kAnyOf<kFlagsArg, kCreating>, kAnyOf<kFlagsArg + 1, kSetIds>};
template <uint8_t kFlagsArg>
inline constexpr ArgClause kOpenClauses[] = {{kCreateTests<kFlagsArg>, Action::kNotify}};
template <uint8_t kFlagsArg>
inline constexpr ArgRule kOpenRule = {kOpenClauses<kFlagsArg>, Action::kAllow};

// Below ABI 3 Landlock asks for WRITE_FILE where the file is opened for writing, and for nothing where
// O_TRUNC empties it without: with access mode O_RDONLY, and with 3, which opens for neither.
inline constexpr uint32_t kAccessAndTrunc = 03 | 01000;
inline constexpr uint32_t kTruncWithoutWrite[] = {01000, 01003};
template <uint8_t kFlagsArg>
inline constexpr ArgTest kTruncTests[] = {{kFlagsArg, Op::kIn, kAccessAndTrunc, kTruncWithoutWrite}};
template <uint8_t kFlagsArg>
inline constexpr ArgClause kOpenOrTruncClauses[] = {
    {kCreateTests<kFlagsArg>, Action::kNotify},
    {kTruncTests<kFlagsArg>, Action::kNotify, Refusal::kTruncateDenied}};
template <uint8_t kFlagsArg>
inline constexpr ArgRule kOpenOrTruncRule = {kOpenOrTruncClauses<kFlagsArg>, Action::kAllow};

// clone: CLONE_NEW* and CLONE_PARENT. CLONE_NEWTIME is no flag here but part of the exit signal.
inline constexpr uint32_t kForbiddenClone = 0x7e028000;
inline constexpr ArgTest kNamespaceTests[] = {kAnyOf<0, kForbiddenClone>};
inline constexpr ArgClause kCloneClauses[] = {{kNamespaceTests, Action::kNotify}};
inline constexpr ArgRule kCloneRule = {kCloneClauses, Action::kAllow};

// Below 6.9 the supervisor can look at a thread's descriptors through its leader alone: CLONE_THREAD needs
// CLONE_FILES, and no thread may leave the shared table later.
inline constexpr uint32_t kThreadAndFiles = 0x10400;
inline constexpr uint32_t kThreadWithoutFiles[] = {0x10000};
inline constexpr ArgTest kOwnTableTests[] = {{0, Op::kIn, kThreadAndFiles, kThreadWithoutFiles}};
inline constexpr ArgClause kCloneSharedClauses[] = {{kNamespaceTests, Action::kNotify},
                                                    {kOwnTableTests, Action::kNotify}};
inline constexpr ArgRule kCloneSharedRule = {kCloneSharedClauses, Action::kAllow};

inline constexpr ArgTest kCloseUnshareTests[] = {kAnyOf<2, 2>};  // CLOSE_RANGE_UNSHARE
inline constexpr ArgClause kCloseUnshareClauses[] = {{kCloseUnshareTests, Action::kNotify}};
inline constexpr ArgRule kCloseSharedRule = {kCloseUnshareClauses, Action::kAllow};

// An anonymous file has no path that EXECUTE could be asked about.
inline constexpr ArgTest kEmptyPathTests[] = {kAnyOf<4, 0x1000>};  // AT_EMPTY_PATH
inline constexpr ArgClause kEmptyPathClauses[] = {{kEmptyPathTests, Action::kEnosys}};
inline constexpr ArgRule kNamedExecRule = {kEmptyPathClauses, Action::kAllow};

inline constexpr uint32_t kPlainPersonalities[] = {0, 8, 0x20000, 0x20008,
                                                   0xffffffff};  // PER_LINUX(32), UNAME26, a query
inline constexpr ArgTest kPersonalityTests[] = {{0, Op::kNotIn, kAllBits, kPlainPersonalities}};
inline constexpr ArgClause kPersonalityClauses[] = {{kPersonalityTests, Action::kNotify}};
inline constexpr ArgRule kPersonalityRule = {kPersonalityClauses, Action::kAllow};

inline constexpr uint32_t kForbiddenPrctl[] = {35, 62,
                                               0x59616d61};  // PR_SET_MM, PR_SCHED_CORE, PR_SET_PTRACER
inline constexpr ArgTest kPrctlTests[] = {{0, Op::kIn, kAllBits, kForbiddenPrctl}};
inline constexpr ArgClause kPrctlClauses[] = {{kPrctlTests, Action::kNotify}};
inline constexpr ArgRule kPrctlRule = {kPrctlClauses, Action::kAllow};

// A task that is named by its number; 0 is the caller.
template <uint8_t kTaskArg>
inline constexpr ArgTest kOtherTaskTests[] = {kAnyOf<kTaskArg, kAllBits>};
inline constexpr ArgClause kTaskClauses[] = {{kOtherTaskTests<0>, Action::kNotify}};
inline constexpr ArgRule kTaskRule = {kTaskClauses, Action::kAllow};
// ... or a process group's or user's tasks, where the argument before it says so: nobody can tell whose all those are.
template <const uint32_t (&kOneTask)[1]>
inline constexpr ArgTest kManyTasksTests[] = {{0, Op::kNotIn, kAllBits, kOneTask}};
template <const uint32_t (&kOneTask)[1]>
inline constexpr ArgClause kTaskOrManyClauses[] = {{kManyTasksTests<kOneTask>, Action::kNotify, Refusal::kCallDenied},
                                                   {kOtherTaskTests<1>, Action::kNotify}};
template <const uint32_t (&kOneTask)[1]>
inline constexpr ArgRule kTaskOrManyRule = {kTaskOrManyClauses<kOneTask>, Action::kAllow};
inline constexpr uint32_t kPriorityOfOne[] = {0};    // PRIO_PROCESS
inline constexpr uint32_t kIoPriorityOfOne[] = {1};  // IOPRIO_WHO_PROCESS

inline constexpr uint32_t kSetLease[] = {1024};
inline constexpr ArgTest kLeaseTests[] = {{1, Op::kIn, kAllBits, kSetLease}};
inline constexpr ArgClause kLeaseClauses[] = {{kLeaseTests, Action::kNotify, Refusal::kLease}};
inline constexpr ArgRule kLeaseRule = {kLeaseClauses, Action::kAllow};

// Below ABI 6 nothing keeps the signal inside that a descriptor's owner gets: any signal (F_SETSIG), when anything can be read. An
// owner by number is looked at; a group's members are those of the day, and F_SETOWN_EX has its number in memory. O_ASYNC makes a
// terminal's foreground group the owner, whoever that is.
inline constexpr uint32_t kSetFlags[] = {4};
inline constexpr uint32_t kSetOwner[] = {8};
inline constexpr uint32_t kSetOwnerByPointer[] = {15};
inline constexpr ArgTest kAsyncTests[] = {{1, Op::kIn, kAllBits, kSetFlags}, kAnyOf<2, 020000>};
inline constexpr ArgTest kOwnerGroupTests[] = {{1, Op::kIn, kAllBits, kSetOwner}, kAnyOf<2, 0x80000000>};
inline constexpr ArgTest kOwnerTests[] = {{1, Op::kIn, kAllBits, kSetOwner}, kAnyOf<2, kAllBits>};
inline constexpr ArgTest kOwnerByPointerTests[] = {{1, Op::kIn, kAllBits, kSetOwnerByPointer}};
inline constexpr ArgClause kLeaseOrOwnerClauses[] = {{kLeaseTests, Action::kNotify, Refusal::kLease},
                                                     {kAsyncTests, Action::kNotify, Refusal::kCallDenied},
                                                     {kOwnerGroupTests, Action::kNotify, Refusal::kCallDenied},
                                                     {kOwnerTests, Action::kNotify},
                                                     {kOwnerByPointerTests, Action::kNotify, Refusal::kCallDenied}};
inline constexpr ArgRule kLeaseOrOwnerRule = {kLeaseOrOwnerClauses, Action::kAllow};

// ioctl requests by type, which is bits 8 to 15.
inline constexpr uint32_t kRequestType = 0xff00;
inline constexpr uint32_t kInterfaceType[] = {0x8900, 0x8b00};  // and wireless ones
inline constexpr uint32_t kSocketRequests[] = {0x8905, 0x8906, 0x8907,
                                               0x894b};  // SIOCATMARK, SIOCGSTAMP(NS), SIOCOUTQNSD
inline constexpr ArgTest kInterfaceTests[] = {{1, Op::kIn, kRequestType, kInterfaceType},
                                              {1, Op::kNotIn, kAllBits, kSocketRequests}};
// btrfs makes, snapshots and deletes subvolumes through a read-only descriptor; some of its requests became
// generic.
inline constexpr uint32_t kBtrfsType[] = {0x9400};
inline constexpr uint32_t kCloneRequests[] = {0x40049409, 0x4020940d,
                                              0xc0189436};  // FICLONE, FICLONERANGE, FIDEDUPERANGE
inline constexpr ArgTest kBtrfsTests[] = {{1, Op::kIn, kRequestType, kBtrfsType},
                                          {1, Op::kNotIn, kAllBits, kCloneRequests}};
// A listener that leaked into a sandbox would let it answer itself. The whole type: ADDFD is accepted with
// any size and direction in its number, so a list of numbers would miss some.
inline constexpr uint32_t kSeccompType[] = {0x2100};
inline constexpr ArgTest kListenerTests[] = {{1, Op::kIn, kRequestType, kSeccompType}};
inline constexpr uint32_t kForbiddenRequests[] = {
    0x5412,      // TIOCSTI: types into the terminal
    0x541c,      // TIOCLINUX: pastes into the console
    0x541d,      // TIOCCONS: takes the console's output
    0x5423,      // TIOCSETD: line disciplines, a source of kernel bugs
    0x40086602,  // FS_IOC_SETFLAGS, and the next: change an own-uid file through a read-only descriptor
    0x40086604,  // EXT4_IOC_SETVERSION, ext4's other number for FS_IOC_SETVERSION
    0x40087602,  // FS_IOC_SETVERSION
    0x401c5820,  // FS_IOC_FSSETXATTR
    0x40806685,  // FS_IOC_ENABLE_VERITY: makes it read-only for good
    0x800c6613,  // FS_IOC_SET_ENCRYPTION_POLICY: on an empty directory
};
inline constexpr ArgTest kRequestTests[] = {{1, Op::kIn, kAllBits, kForbiddenRequests}};
inline constexpr ArgClause kIoctlClauses[] = {{kInterfaceTests, Action::kNotify, Refusal::kInterfaceIoctl},
                                              {kBtrfsTests, Action::kNotify},
                                              {kListenerTests, Action::kNotify},
                                              {kRequestTests, Action::kNotify}};
inline constexpr ArgRule kIoctlRule = {kIoctlClauses, Action::kAllow};
// Where the network is the host's, its interfaces are no secret.
inline constexpr ArgClause kDeviceClauses[] = {{kBtrfsTests, Action::kNotify},
                                               {kListenerTests, Action::kNotify},
                                               {kRequestTests, Action::kNotify}};
inline constexpr ArgRule kDeviceRule = {kDeviceClauses, Action::kAllow};
inline constexpr uint32_t kSetAsync[] = {0x5452};  // FIOASYNC: O_ASYNC, by a number in memory
inline constexpr ArgTest kSetAsyncTests[] = {{1, Op::kIn, kAllBits, kSetAsync}};
inline constexpr ArgClause kIoctlOrAsyncClauses[] = {{kInterfaceTests, Action::kNotify, Refusal::kInterfaceIoctl},
                                                     {kBtrfsTests, Action::kNotify},
                                                     {kListenerTests, Action::kNotify},
                                                     {kRequestTests, Action::kNotify},
                                                     {kSetAsyncTests, Action::kNotify}};
inline constexpr ArgRule kIoctlOrAsyncRule = {kIoctlOrAsyncClauses, Action::kAllow};
inline constexpr uint32_t kSocketOwner[] = {0x8901, 0x8902};  // FIOSETOWN, SIOCSPGRP: whom a socket's signals go to
inline constexpr ArgTest kSocketOwnerTests[] = {{1, Op::kIn, kAllBits, kSocketOwner}};
inline constexpr ArgClause kDeviceOrAsyncClauses[] = {{kSocketOwnerTests, Action::kNotify, Refusal::kInterfaceIoctl},
                                                      {kBtrfsTests, Action::kNotify},
                                                      {kListenerTests, Action::kNotify},
                                                      {kRequestTests, Action::kNotify},
                                                      {kSetAsyncTests, Action::kNotify}};
inline constexpr ArgRule kDeviceOrAsyncRule = {kDeviceOrAsyncClauses, Action::kAllow};

// Sockets. A type's low four bits are the type, the rest SOCK_NONBLOCK and SOCK_CLOEXEC.
inline constexpr uint32_t kTypeBits = 0xf;
inline constexpr uint32_t kUnix[] = {1};
inline constexpr uint32_t kInet[] = {2, 10};
inline constexpr uint32_t kStream[] = {1};
inline constexpr uint32_t kStreamOrSeqpacket[] = {1, 5};
inline constexpr uint32_t kTcp[] = {0, 6};  // not 262, MPTCP, which Landlock does not judge
inline constexpr ArgTest kUnixStreamTests[] = {{0, Op::kIn, kAllBits, kUnix},
                                               {1, Op::kIn, kTypeBits, kStreamOrSeqpacket}};
inline constexpr ArgTest kInetStreamTests[] = {
    {0, Op::kIn, kAllBits, kInet}, {1, Op::kIn, kTypeBits, kStream}, {2, Op::kIn, kAllBits, kTcp}};
inline constexpr ArgClause kSocketClauses[] = {{kUnixStreamTests, Action::kAllow},
                                               {kInetStreamTests, Action::kAllow}};
inline constexpr ArgRule kSocketRule = {kSocketClauses, Action::kNotify};
inline constexpr ArgClause kSocketPairClauses[] = {{kUnixStreamTests, Action::kAllow}};
inline constexpr ArgRule kSocketPairRule = {kSocketPairClauses, Action::kNotify};

// Allow-lists of option names by level. What is not here can send a permitted connection elsewhere (routing
// headers, IP_OPTIONS, SO_BINDTODEVICE, SO_MARK), connect by itself (TCP_FASTOPEN_CONNECT), swap the protocol
// (TCP_ULP, TCP_REPAIR) or hold up a close (SO_LINGER, 13 of SOL_SOCKET, which the supervisor sets instead).
inline constexpr uint32_t kSocketLevel[] = {1};
inline constexpr uint32_t kSocketNames[] = {
    2,   // SO_REUSEADDR
    6,   // SO_BROADCAST
    7,   // SO_SNDBUF
    8,   // SO_RCVBUF
    9,   // SO_KEEPALIVE
    10,  // SO_OOBINLINE
    12,  // SO_PRIORITY
    15,  // SO_REUSEPORT
    16,  // SO_PASSCRED
    18,  // SO_RCVLOWAT
    20,  // SO_RCVTIMEO
    21,  // SO_SNDTIMEO
    29,  // SO_TIMESTAMP
    34,  // SO_PASSSEC
    35,  // SO_TIMESTAMPNS
    37,  // SO_TIMESTAMPING
    40,  // SO_RXQ_OVFL
    42,  // SO_PEEK_OFF
    45,  // SO_SELECT_ERR_QUEUE
    46,  // SO_BUSY_POLL
    47,  // SO_MAX_PACING_RATE
    49,  // SO_INCOMING_CPU
    60,  // SO_ZEROCOPY
    63,  // SO_TIMESTAMP_NEW
    64,  // SO_TIMESTAMPNS_NEW
    65,  // SO_TIMESTAMPING_NEW
    66,  // SO_RCVTIMEO_NEW
    67,  // SO_SNDTIMEO_NEW
    69,  // SO_PREFER_BUSY_POLL
    70,  // SO_BUSY_POLL_BUDGET
    73,  // SO_RESERVE_MEM
    76,  // SO_PASSPIDFD
};
inline constexpr uint32_t kTcpLevel[] = {6};
inline constexpr uint32_t kTcpNames[] = {
    1,   // TCP_NODELAY
    2,   // TCP_MAXSEG
    3,   // TCP_CORK
    4,   // TCP_KEEPIDLE
    5,   // TCP_KEEPINTVL
    6,   // TCP_KEEPCNT
    7,   // TCP_SYNCNT
    8,   // TCP_LINGER2
    9,   // TCP_DEFER_ACCEPT
    10,  // TCP_WINDOW_CLAMP
    12,  // TCP_QUICKACK
    13,  // TCP_CONGESTION
    16,  // TCP_THIN_LINEAR_TIMEOUTS
    17,  // TCP_THIN_DUPACK
    18,  // TCP_USER_TIMEOUT
    25,  // TCP_NOTSENT_LOWAT
    27,  // TCP_SAVE_SYN
    36,  // TCP_INQ
};
inline constexpr uint32_t kIpLevel[] = {0};
inline constexpr uint32_t kIpNames[] = {
    1,   // IP_TOS
    2,   // IP_TTL
    8,   // IP_PKTINFO
    10,  // IP_MTU_DISCOVER
    11,  // IP_RECVERR
    12,  // IP_RECVTTL
    13,  // IP_RECVTOS
    21,  // IP_MINTTL
    24,  // IP_BIND_ADDRESS_NO_PORT
};
inline constexpr uint32_t kIpv6Level[] = {41};
inline constexpr uint32_t kIpv6Names[] = {
    16,  // IPV6_UNICAST_HOPS
    23,  // IPV6_MTU_DISCOVER
    24,  // IPV6_MTU
    25,  // IPV6_RECVERR
    26,  // IPV6_V6ONLY
    49,  // IPV6_RECVPKTINFO
    51,  // IPV6_RECVHOPLIMIT
    62,  // IPV6_DONTFRAG
    66,  // IPV6_RECVTCLASS
    67,  // IPV6_TCLASS
    70,  // IPV6_AUTOFLOWLABEL
    72,  // IPV6_ADDR_PREFERENCES
    73,  // IPV6_MINHOPCOUNT
};
inline constexpr ArgTest kSocketOptionTests[] = {{1, Op::kIn, kAllBits, kSocketLevel},
                                                 {2, Op::kIn, kAllBits, kSocketNames}};
inline constexpr ArgTest kTcpOptionTests[] = {{1, Op::kIn, kAllBits, kTcpLevel},
                                              {2, Op::kIn, kAllBits, kTcpNames}};
inline constexpr ArgTest kIpOptionTests[] = {{1, Op::kIn, kAllBits, kIpLevel},
                                             {2, Op::kIn, kAllBits, kIpNames}};
inline constexpr ArgTest kIpv6OptionTests[] = {{1, Op::kIn, kAllBits, kIpv6Level},
                                               {2, Op::kIn, kAllBits, kIpv6Names}};
inline constexpr ArgClause kSocketOptionClauses[] = {{kSocketOptionTests, Action::kAllow},
                                                     {kTcpOptionTests, Action::kAllow},
                                                     {kIpOptionTests, Action::kAllow},
                                                     {kIpv6OptionTests, Action::kAllow}};
inline constexpr ArgRule kSocketOptionRule = {kSocketOptionClauses, Action::kNotify};

// Where connect() is the kernel's, the launcher proves the loop by one with a length that no address has.
inline constexpr uint32_t kProbeLength[] = {kLoopProbeLength};
inline constexpr ArgTest kProbeTests[] = {{2, Op::kIn, kAllBits, kProbeLength}};
inline constexpr ArgClause kProbeClauses[] = {{kProbeTests, Action::kNotify}};
inline constexpr ArgRule kProbeRule = {kProbeClauses, Action::kAllow};

inline constexpr uint32_t kFastOpen = 0x20000000;  // MSG_FASTOPEN
template <uint8_t kFlagsArg>
inline constexpr ArgTest kFastOpenTests[] = {kAnyOf<kFlagsArg, kFastOpen>};
template <uint8_t kFlagsArg>
inline constexpr ArgClause kFastOpenClauses[] = {
    {kFastOpenTests<kFlagsArg>, Action::kNotify, Refusal::kFastOpen}};
template <uint8_t kFlagsArg>
inline constexpr ArgRule kFastOpenRule = {kFastOpenClauses<kFlagsArg>, Action::kAllow};
inline constexpr ArgTest kAddressTests[] = {{4, Op::kPointerSet, 0, {}}};
inline constexpr ArgClause kSendToClauses[] = {{kFastOpenTests<3>, Action::kNotify, Refusal::kFastOpen},
                                               {kAddressTests, Action::kNotify, Refusal::kAddressedSend}};
inline constexpr ArgRule kSendToRule = {kSendToClauses, Action::kAllow};

}  // namespace oarlock::rules
