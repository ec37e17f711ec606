// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace oarlock {

// Why a call was refused. The closed set of the audit log's `status_code`; the names are API (docs/STABILITY.md).
enum class Reason : uint8_t {
  kNone,
  kTcpNotProxy,
  kUnixNotBroker,
  kUnixAbsent,
  kUnixAbstract,
  kAddrUnreadable,
  kAddrInvalid,
  kSocketType,
  kFamilyDenied,
  kTypeDenied,
  kProtocolDenied,
  kUnixNoGrant,
  kUnixType,
  kBindDenied,
  kListenDenied,
  kAcceptDenied,
  kFastOpen,
  kAddressedSend,
  kSockoptDenied,
  kSyscallDenied,
  kNotBuilt,
  kSelfConnect,
  kForeignArch,
  kAuditUnavailable,
  kGap,
  kCount,
};

// DENY: a person should see it. PROBE: a routine fallback, kept apart and off in the default view.
enum class Kind : uint8_t { kDeny, kProbe };

// One enumerator per row of the errno contract (docs/ERRNO.md): a reason can have several errnos, a row has one.
enum class Refusal : uint8_t {
  kNone,
  kTcpNotProxy,        // errno is the grant's refused_tcp_error
  kUnixNotBroker,
  kUnixAbsent,
  kUnixAbstract,
  kAddressUnreadable,
  kAddressFault,       // EFAULT, as the kernel
  kAddressInvalid,     // EINVAL, as the kernel
  kAddressFamily,      // EAFNOSUPPORT, as the kernel
  kSocketType,
  kFamilyDenied,
  kFamilyProbe,        // NETLINK_ROUTE, or an inet datagram socket under net none
  kDatagramProbe,      // inet SOCK_DGRAM
  kTypeDenied,
  kRawDenied,
  kProtocolDenied,
  kUnixNoGrant,
  kUnixType,
  kBindDenied,
  kBindProbe,          // port 0
  kListenDenied,
  kAcceptDenied,
  kFastOpen,
  kAddressedSend,
  kSocketOption,
  kLease,
  kInterfaceIoctl,
  kCallDenied,
  kForeignTask,        // limits, scheduling or priority of a task outside the sandbox; signals to one
  kExecutableMemory,   // MFD_EXEC under exec_strict
  kTruncateDenied,     // below Landlock ABI 3 only
  kNotBuilt,
  kSelfConnect,
  kAuditUnavailable,
  kCount,
};

struct RefusalRow {
  Reason reason;
  Kind kind;
  int error;                  // positive errno as the program sees it
  bool bypass_attempt;        // severity 4 instead of 3 in the record
  std::string_view sentence;  // the record's status_detail
  std::string_view hint;      // the smallest change that would allow it, or why none can
};

[[nodiscard]] const RefusalRow& Describe(Refusal refusal) noexcept;
[[nodiscard]] std::string_view Name(Reason reason) noexcept;  // "TCP_NOT_PROXY"
[[nodiscard]] std::string_view Name(Kind kind) noexcept;      // "DENY", "PROBE"

}  // namespace oarlock
