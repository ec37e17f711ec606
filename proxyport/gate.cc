// SPDX-License-Identifier: Apache-2.0
#include "proxyport/gate.h"

#include <arpa/inet.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <string_view>

#include "notif/base/check.h"

namespace oarlock::proxyport {
namespace {

constexpr uint32_t kTypeMask = 0xf;  // SOCK_TYPE_MASK: the rest are SOCK_CLOEXEC, SOCK_NONBLOCK and unknown flags
constexpr uint32_t kPathOffset = offsetof(sockaddr_un, sun_path);
constexpr uint32_t kInet6MinSize = 24;  // SIN6_LEN_RFC2133: without the scope id, as the kernel accepts

// Services that libc and its friends look for at every start. Reported as absent without asking the file system: a privileged
// look-up would be an oracle, and it can hang. A trailing '*' stands for anything.
constexpr std::string_view kWellKnown[] = {
    "/run/nscd/socket", "/var/run/nscd/socket",
    "/run/nslcd/socket", "/var/run/nslcd/socket",
    "/run/systemd/userdb/*", "/run/systemd/machine/io.systemd.Machine",
    "/run/systemd/resolve/io.systemd.Resolve", "/run/systemd/resolve.hook/*",
    "/run/systemd/journal/*", "/dev/log",
    "/var/lib/sss/pipes/*", "/run/sssd/*",
    "/var/run/.nscd_socket", "/var/run/avahi-daemon/socket", "/run/avahi-daemon/socket",
    "/tmp/.X11-unix/*", "/run/dbus/system_bus_socket", "/var/run/dbus/system_bus_socket",
    "/run/user/*/bus", "/run/user/*/pulse/native", "/run/user/*/wayland-0", "/run/user/*/pipewire-0",
    "/var/run/pcscd/pcscd.comm", "/run/pcscd/pcscd.comm", "/var/run/winbindd/pipe", "/run/samba/winbindd/pipe",
};

// `pattern` holds at most one '*', which matches any bytes but not '..'.
bool Matches(std::string_view pattern, std::string_view path) noexcept {
  const size_t star = pattern.find('*');
  if (star == std::string_view::npos) return path == pattern;
  const std::string_view head = pattern.substr(0, star), tail = pattern.substr(star + 1);
  return path.size() > head.size() + tail.size() && path.starts_with(head) && path.ends_with(tail) &&
         path.find("..") == std::string_view::npos;
}

bool IsWellKnown(std::string_view path) noexcept {
  return std::ranges::any_of(kWellKnown, [&](std::string_view pattern) { return Matches(pattern, path); });
}

template <typename T>
T As(const Address& address) noexcept {
  T value{};
  std::memcpy(&value, address.bytes, std::min<size_t>(sizeof(value), address.size));
  return value;
}

template <typename T>
Target MakeTarget(Target::Kind kind, const T& address, size_t size) {
  Target target;
  target.kind = kind;
  target.size = static_cast<socklen_t>(size);
  std::memcpy(&target.address, &address, sizeof(address));
  return target;
}

}  // namespace

uint16_t Address::family() const noexcept {
  uint16_t value = AF_UNSPEC;
  if (size >= sizeof(value)) std::memcpy(&value, bytes, sizeof(value));
  return value;
}

Gate::Gate(const Grant& grant)
    : has_proxy_(grant.has_proxy()),
      has_broker_(grant.has_broker()),
      check_netns_(grant.check_netns),
      net_(grant.net),
      netns_cookie_(grant.netns_cookie),
      refused_tcp_error_(grant.refused_tcp_error),
      broker_name_(grant.broker_name),
      broker_resolved_(grant.broker_resolved) {
  unspec_.kind = Target::Kind::kDisconnect;
  unspec_.size = sizeof(sockaddr_in);
  unspec_.address.ss_family = AF_UNSPEC;
  if (has_proxy_) {
    sockaddr_in6 inet6{};
    inet6.sin6_family = AF_INET6;
    inet6.sin6_port = htons(grant.proxy_port);
    if (grant.proxy_address == ProxyAddress::kLoopback4) {
      sockaddr_in inet{};
      inet.sin_family = AF_INET;
      inet.sin_port = htons(grant.proxy_port);
      inet.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      inet_ = MakeTarget(Target::Kind::kTcp, inet, sizeof(inet));
      inet6.sin6_addr.s6_addr[10] = inet6.sin6_addr.s6_addr[11] = 0xff;
      std::memcpy(&inet6.sin6_addr.s6_addr[12], &inet.sin_addr, 4);
    } else {
      inet6.sin6_addr = in6addr_loopback;
    }
    inet6_ = MakeTarget(Target::Kind::kTcp, inet6, sizeof(inet6));
  }
  if (has_broker_) {
    sockaddr_un path{};
    OARLOCK_CHECK(broker_resolved_.size() < sizeof(path.sun_path), "%zu", broker_resolved_.size());
    path.sun_family = AF_UNIX;
    std::memcpy(path.sun_path, broker_resolved_.data(), broker_resolved_.size());
    unix_ = MakeTarget(Target::Kind::kUnix, path, kPathOffset + broker_resolved_.size() + 1);
  }
}

Decision Gate::JudgeConnect(const Address& address) const noexcept {
  if (address.size < sizeof(uint16_t) || address.size > Address::kMaxSize)
    return Decision::Refuse(Refusal::kAddressInvalid);
  switch (address.family()) {
    case AF_UNSPEC: return Decision::Connect(unspec_);
    case AF_INET: return JudgeInet(address);
    case AF_INET6: return JudgeInet6(address);
    case AF_UNIX: return JudgeUnix(address);
    default: return Decision::Refuse(Refusal::kAddressFamily);
  }
}

Decision Gate::JudgeInet(const Address& address) const noexcept {
  if (address.size < sizeof(sockaddr_in)) return Decision::Refuse(Refusal::kAddressInvalid);
  const auto asked = As<sockaddr_in>(address);
  sockaddr_in proxy{};
  std::memcpy(&proxy, &inet_.address, sizeof(proxy));
  if (inet_.size != 0 && asked.sin_addr.s_addr == proxy.sin_addr.s_addr && asked.sin_port == proxy.sin_port)
    return Decision::Connect(inet_);
  return Decision::Refuse(Refusal::kTcpNotProxy);
}

Decision Gate::JudgeInet6(const Address& address) const noexcept {
  if (address.size < kInet6MinSize) return Decision::Refuse(Refusal::kAddressInvalid);
  // The scope id and the flow label do not count: ours are zero.
  const auto asked = As<sockaddr_in6>(address);
  sockaddr_in6 proxy{};
  std::memcpy(&proxy, &inet6_.address, sizeof(proxy));
  if (inet6_.size != 0 && std::memcmp(&asked.sin6_addr, &proxy.sin6_addr, sizeof(proxy.sin6_addr)) == 0 &&
      asked.sin6_port == proxy.sin6_port)
    return Decision::Connect(inet6_);
  return Decision::Refuse(Refusal::kTcpNotProxy);
}

Decision Gate::JudgeUnix(const Address& address) const noexcept {
  if (address.size <= kPathOffset || address.size > sizeof(sockaddr_un))
    return Decision::Refuse(Refusal::kAddressInvalid);
  std::string_view path(reinterpret_cast<const char*>(address.bytes) + kPathOffset, address.size - kPathOffset);
  if (path.front() == '\0') return Decision::Refuse(Refusal::kUnixAbstract);
  path = path.substr(0, path.find('\0'));  // the kernel stops at the first NUL too
  // An exact match of one string: a path has a dozen aliases, and every other one is refused (E-57).
  if (has_broker_ && (path == broker_name_ || path == broker_resolved_)) return Decision::Connect(unix_);
  return Decision::Refuse(IsWellKnown(path) ? Refusal::kUnixAbsent : Refusal::kUnixNotBroker);
}

Refusal Gate::JudgeTcpSocket(const SocketFacts& facts) const noexcept {
  if (facts.protocol != IPPROTO_TCP) {
    // A unix socket given an internet address: the kernel's own EINVAL. Anything else could carry the bytes elsewhere.
    return facts.domain == AF_UNIX ? Refusal::kAddressInvalid : Refusal::kSocketType;
  }
  // 127.0.0.1 of another network namespace is another host.
  if (check_netns_ && facts.netns_cookie != netns_cookie_) return Refusal::kTcpNotProxy;
  return Refusal::kNone;
}

Refusal Gate::JudgeUnixFailure(int error, const SocketFacts& facts, bool peer_is_unnamed) noexcept {
  const bool is_unix = facts.domain == AF_UNIX;
  if (error == EISCONN && is_unix && peer_is_unnamed) return Refusal::kSocketType;  // an end of a socketpair
  if (is_unix && facts.type != SOCK_STREAM && facts.type != SOCK_SEQPACKET) return Refusal::kSocketType;
  return Refusal::kNone;
}

Decision Gate::JudgeSocket(uint32_t domain, uint32_t type, uint32_t protocol) const noexcept {
  const uint32_t kind = type & kTypeMask;
  switch (domain) {
    case AF_UNIX:
      if (kind != SOCK_STREAM && kind != SOCK_SEQPACKET) return Decision::Refuse(Refusal::kUnixType);
      return has_broker_ ? Decision::Continue() : Decision::Refuse(Refusal::kUnixNoGrant);
    case AF_INET:
    case AF_INET6:
      if (net_ == NetMode::kNone)
        return Decision::Refuse(kind == SOCK_DGRAM ? Refusal::kFamilyProbe : Refusal::kFamilyDenied);
      if (kind == SOCK_DGRAM) return Decision::Refuse(Refusal::kDatagramProbe);
      if (kind == SOCK_RAW) return Decision::Refuse(Refusal::kRawDenied);
      if (kind != SOCK_STREAM) return Decision::Refuse(Refusal::kTypeDenied);
      if (protocol != 0 && protocol != IPPROTO_TCP) return Decision::Refuse(Refusal::kProtocolDenied);
      return Decision::Continue();
    case AF_PACKET: return Decision::Refuse(Refusal::kRawDenied);
    case AF_NETLINK:
      return Decision::Refuse(protocol == NETLINK_ROUTE ? Refusal::kFamilyProbe : Refusal::kFamilyDenied);
    default: return Decision::Refuse(Refusal::kFamilyDenied);
  }
}

Decision Gate::JudgeSocketPair(uint32_t domain, uint32_t type) const noexcept {
  if (domain != AF_UNIX) return Decision::Refuse(Refusal::kFamilyDenied);
  const uint32_t kind = type & kTypeMask;
  if (kind == SOCK_STREAM || kind == SOCK_SEQPACKET) return Decision::Continue();
  return Decision::Refuse(Refusal::kUnixType);
}

Refusal Gate::JudgeBind(const Address& address) noexcept {
  // The port stands in the same place in both families.
  const bool inet = (address.family() == AF_INET && address.size >= sizeof(sockaddr_in)) ||
                    (address.family() == AF_INET6 && address.size >= kInet6MinSize);
  if (inet && As<sockaddr_in>(address).sin_port == 0) return Refusal::kBindProbe;
  return Refusal::kBindDenied;
}

int Gate::ErrorOf(Refusal refusal) const noexcept {
  return refusal == Refusal::kTcpNotProxy ? refused_tcp_error_ : Describe(refusal).error;
}

}  // namespace oarlock::proxyport
