// SPDX-License-Identifier: Apache-2.0
#include "audit/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <charconv>
#include <cstddef>
#include <cstring>

namespace oarlock::audit {
namespace {

constexpr size_t kFamilySize = sizeof(sa_family_t);
// What must be there for an address and a port. The kernel wants 16 and 24 bytes; what came is shown all the
// same.
constexpr size_t kInetSize = offsetof(sockaddr_in, sin_zero);
constexpr size_t kInet6Size = offsetof(sockaddr_in6, sin6_scope_id);

void DecodeInet(std::span<const uint8_t> bytes, Address* address) noexcept {
  sockaddr_in in{};
  std::memcpy(&in, bytes.data(), kInetSize);
  address->form = Address::Form::kIp;
  address->ip_version = 4;
  address->port = ntohs(in.sin_port);
  (void)::inet_ntop(AF_INET, &in.sin_addr, address->ip, sizeof(address->ip));
}

void DecodeInet6(std::span<const uint8_t> bytes, Address* address) noexcept {
  sockaddr_in6 in{};
  std::memcpy(&in, bytes.data(), kInet6Size);
  address->form = Address::Form::kIp;
  address->port = ntohs(in.sin6_port);
  address->mapped = IN6_IS_ADDR_V4MAPPED(&in.sin6_addr);
  address->ip_version = address->mapped ? 4 : 6;
  if (address->mapped)
    (void)::inet_ntop(AF_INET, &in.sin6_addr.s6_addr[12], address->ip, sizeof(address->ip));
  else
    (void)::inet_ntop(AF_INET6, &in.sin6_addr, address->ip, sizeof(address->ip));
}

void DecodeUnix(std::span<const uint8_t> bytes, Address* address) noexcept {
  const std::string_view name(reinterpret_cast<const char*>(bytes.data()) + kFamilySize,
                              bytes.size() - kFamilySize);
  if (name.empty()) {
    address->form = Address::Form::kUnnamed;
  } else if (name.front() == '\0') {
    address->form = Address::Form::kAbstract;
    address->name = name.substr(1);
  } else {
    address->form = Address::Form::kPath;
    address->name = name.substr(0, name.find('\0'));
  }
}

bool IsInternet(int family) noexcept { return family == AF_INET || family == AF_INET6; }

std::string_view InternetName(int type, int number) noexcept {
  switch (number) {
    case IPPROTO_TCP:
      return "tcp";
    case IPPROTO_UDP:
      return "udp";
    case IPPROTO_ICMP:
      return "icmp";
    case IPPROTO_ICMPV6:
      return "ipv6-icmp";
    case IPPROTO_SCTP:
      return "sctp";
    case IPPROTO_UDPLITE:
      return "udplite";
    case IPPROTO_DCCP:
      return "dccp";
    case IPPROTO_MPTCP:
      return "mptcp";
    default:
      return type == SOCK_RAW ? "raw" : "";
  }
}

std::string_view UnixName(int type) noexcept {
  switch (type) {
    case SOCK_STREAM:
      return "unix-stream";
    case SOCK_DGRAM:
      return "unix-dgram";
    case SOCK_RAW:
      return "unix-raw";
    case SOCK_SEQPACKET:
      return "unix-seqpacket";
    default:
      return "unix";
  }
}

std::string_view FamilyName(int family) noexcept {
  switch (family) {
    case AF_UNSPEC:
      return "unspecified";
    case AF_NETLINK:
      return "netlink";
    case AF_PACKET:
      return "packet";
    case AF_VSOCK:
      return "vsock";
    case AF_ALG:
      return "alg";
    case AF_XDP:
      return "xdp";
    case AF_BLUETOOTH:
      return "bluetooth";
    case AF_CAN:
      return "can";
    case AF_TIPC:
      return "tipc";
    case AF_RDS:
      return "rds";
    case AF_SMC:
      return "smc";
    case AF_QIPCRTR:
      return "qipcrtr";
    default:
      return "";
  }
}

// "ip-41", "af-44"
std::string_view Numbered(const char (&prefix)[4], int number, std::span<char, 24> buffer) noexcept {
  std::memcpy(buffer.data(), prefix, 3);
  const auto end = std::to_chars(buffer.data() + 3, buffer.data() + buffer.size(), number).ptr;
  return {buffer.data(), static_cast<size_t>(end - buffer.data())};
}

// What the kernel makes of protocol 0.
int EffectiveProtocol(int type, int protocol) noexcept {
  if (protocol != 0) return protocol;
  if (type == SOCK_STREAM) return IPPROTO_TCP;
  return type == SOCK_DGRAM ? IPPROTO_UDP : -1;
}

}  // namespace

Address DecodeAddress(std::span<const uint8_t> bytes) noexcept {
  Address address;
  if (bytes.empty()) return address;
  address.form = Address::Form::kOther;
  if (bytes.size() < kFamilySize) return address;
  sa_family_t family = 0;
  std::memcpy(&family, bytes.data(), sizeof(family));
  address.family = family;
  if (family == AF_INET && bytes.size() >= kInetSize) DecodeInet(bytes, &address);
  if (family == AF_INET6 && bytes.size() >= kInet6Size) DecodeInet6(bytes, &address);
  if (family == AF_UNIX) DecodeUnix(bytes, &address);
  return address;
}

std::string_view ProtocolName(int family, int type, int protocol, std::span<char, 24> buffer) noexcept {
  if (family < 0) return "unknown";
  if (family == AF_UNIX) return UnixName(type);
  if (IsInternet(family)) {
    // Protocol unknown: a stream may also be MPTCP or SCTP, so only the family is said.
    const int number = protocol < 0 ? -1 : EffectiveProtocol(type, protocol);
    const std::string_view name = InternetName(type, number);
    if (!name.empty()) return name;
    return number < 0 ? (family == AF_INET ? "ipv4" : "ipv6") : Numbered("ip-", number, buffer);
  }
  const std::string_view name = FamilyName(family);
  return name.empty() ? Numbered("af-", family, buffer) : name;
}

int ProtocolNumber(int family, int type, int protocol) noexcept {
  if (!IsInternet(family) || protocol < 0) return -1;
  const int number = EffectiveProtocol(type, protocol);
  return number <= 255 ? number : -1;
}

}  // namespace oarlock::audit
