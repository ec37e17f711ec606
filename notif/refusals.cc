// SPDX-License-Identifier: Apache-2.0
#include "notif/refusals.h"

#include <array>
#include <cerrno>

#include "notif/base/check.h"

namespace oarlock {
namespace {

constexpr std::array<std::string_view, static_cast<size_t>(Reason::kCount)> kReasonNames = {
    "NONE",           "TCP_NOT_PROXY",   "UNIX_NOT_BROKER", "UNIX_ABSENT",    "UNIX_ABSTRACT",
    "ADDR_UNREADABLE", "ADDR_INVALID",   "SOCKET_TYPE",     "FAMILY_DENIED",  "TYPE_DENIED",
    "PROTOCOL_DENIED", "UNIX_NO_GRANT",  "UNIX_TYPE",       "BIND_DENIED",    "LISTEN_DENIED",
    "ACCEPT_DENIED",  "FASTOPEN",        "ADDRESSED_SEND",  "SOCKOPT_DENIED", "SYSCALL_DENIED",
    "NOT_BUILT",      "SELF_CONNECT",    "FOREIGN_ARCH",    "AUDIT_UNAVAILABLE", "GAP",
};

constexpr std::string_view kNoHint = "no policy field allows this call";

// The errno contract. Order as the enumeration; evidence for each errno in docs/ERRNO.md.
constexpr std::array<RefusalRow, static_cast<size_t>(Refusal::kCount)> kRows = {{
    {Reason::kNone, Kind::kProbe, 0, false, "", ""},
    {Reason::kTcpNotProxy, Kind::kDeny, EACCES, false, "TCP connects reach the agent's proxy port alone",
     "send the request to the proxy named by HTTP_PROXY, or name another proxy in /proxy_port"},
    {Reason::kUnixNotBroker, Kind::kDeny, EACCES, false, "unix connects reach the module's broker alone",
     "name the socket in /broker_socket if it is the broker"},
    {Reason::kUnixAbsent, Kind::kProbe, ENOENT, false,
     "a system service that libraries look for at every start; reported as absent", kNoHint},
    {Reason::kUnixAbstract, Kind::kDeny, ECONNREFUSED, false, "abstract unix names are not reachable",
     "give the peer a path and name it in /broker_socket"},
    {Reason::kAddrUnreadable, Kind::kDeny, EACCES, true,
     "the address could not be read from the caller's memory, so it was not judged", kNoHint},
    {Reason::kAddrInvalid, Kind::kProbe, EFAULT, false, "the address points at unmapped memory", kNoHint},
    {Reason::kAddrInvalid, Kind::kProbe, EINVAL, false, "the address has an impossible length or form", kNoHint},
    {Reason::kAddrInvalid, Kind::kProbe, EAFNOSUPPORT, false, "the address's family does not fit the socket",
     kNoHint},
    {Reason::kSocketType, Kind::kDeny, EACCES, true,
     "the address is granted, but the descriptor is not a plain stream socket for it",
     "use a TCP or unix stream socket of its own"},
    {Reason::kFamilyDenied, Kind::kDeny, EAFNOSUPPORT, false, "sockets of this family are not granted",
     "set /net to \"egress-allowlist\" for IPv4 and IPv6 streams; no policy field allows other families"},
    {Reason::kFamilyDenied, Kind::kProbe, EAFNOSUPPORT, false,
     "a socket that name resolution tries at every start is not granted", kNoHint},
    {Reason::kTypeDenied, Kind::kProbe, EAFNOSUPPORT, false, "datagram sockets are not granted",
     "resolve names at the proxy; no policy field allows datagram sockets"},
    {Reason::kTypeDenied, Kind::kDeny, EAFNOSUPPORT, false, "sockets of this type are not granted", kNoHint},
    {Reason::kTypeDenied, Kind::kDeny, EPERM, false, "raw and packet sockets are not granted", kNoHint},
    {Reason::kProtocolDenied, Kind::kDeny, EPROTONOSUPPORT, true, "stream sockets speak TCP alone", kNoHint},
    {Reason::kUnixNoGrant, Kind::kProbe, EACCES, false, "unix sockets need a broker grant",
     "name the broker's socket in /broker_socket"},
    {Reason::kUnixType, Kind::kDeny, EACCES, true,
     "unix datagram and raw sockets can reach any path by an addressed send", "use a stream or seqpacket socket"},
    {Reason::kBindDenied, Kind::kDeny, EACCES, false, "binding is not granted", kNoHint},
    {Reason::kBindDenied, Kind::kProbe, EACCES, false, "binding to a port of the kernel's choice is not granted",
     kNoHint},
    {Reason::kListenDenied, Kind::kDeny, EACCES, false, "listening is not granted", kNoHint},
    {Reason::kAcceptDenied, Kind::kDeny, EACCES, false, "accepting is not granted", kNoHint},
    {Reason::kFastOpen, Kind::kDeny, EOPNOTSUPP, true, "MSG_FASTOPEN connects without connect()", kNoHint},
    {Reason::kAddressedSend, Kind::kDeny, EACCES, true, "a send that carries an address is not granted", kNoHint},
    {Reason::kSockoptDenied, Kind::kDeny, ENOPROTOOPT, true, "this socket option is not on the allow-list", kNoHint},
    {Reason::kSyscallDenied, Kind::kDeny, EINVAL, false, "file leases hold up other users of the file", kNoHint},
    {Reason::kSyscallDenied, Kind::kProbe, EPERM, false, "interface requests are not granted", kNoHint},
    {Reason::kSyscallDenied, Kind::kDeny, EPERM, false, "this call is not granted", kNoHint},
    {Reason::kSyscallDenied, Kind::kDeny, EPERM, true, "the task is not one of the sandbox's own", kNoHint},
    {Reason::kSyscallDenied, Kind::kDeny, EACCES, false, "memory from which programs can be run is not granted",
     "set /exec_strict to false, or /exec_rw to true"},
    {Reason::kSyscallDenied, Kind::kDeny, EACCES, false,
     "this kernel's Landlock cannot judge truncation, so truncation by path is refused", "use a kernel since 6.2"},
    {Reason::kNotBuilt, Kind::kProbe, ENOSYS, true, "io_uring would bypass the filter", kNoHint},
    {Reason::kSelfConnect, Kind::kDeny, ECONNREFUSED, true,
     "the proxy is down and the socket had connected to itself", "start the proxy"},
    {Reason::kAuditUnavailable, Kind::kDeny, EACCES, false, "the audit log could not be written", kNoHint},
}};

constexpr bool RowsComplete() {
  for (size_t i = 1; i < kRows.size(); ++i)
    if (kRows[i].error <= 0 || kRows[i].sentence.empty() || kRows[i].hint.empty()) return false;
  return true;
}
static_assert(RowsComplete(), "every refusal has a positive errno, a sentence and a hint");

}  // namespace

const RefusalRow& Describe(Refusal refusal) noexcept {
  OARLOCK_CHECK(refusal < Refusal::kCount);
  return kRows[static_cast<size_t>(refusal)];
}

std::string_view Name(Reason reason) noexcept {
  OARLOCK_CHECK(reason < Reason::kCount);
  return kReasonNames[static_cast<size_t>(reason)];
}

std::string_view Name(Kind kind) noexcept { return kind == Kind::kDeny ? "DENY" : "PROBE"; }

}  // namespace oarlock
