// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace oarlock::audit {

// A socket address as a caller sent it, for the record. Says what the bytes mean, never whether they are
// right: a refused call's address may be of any length and family. Pure; `name` points into the bytes given.
struct Address {
  enum class Form : uint8_t {
    kNone,   // no bytes
    kOther,  // no family, a family we do not decode, or too short for it
    kIp,
    kPath,      // AF_UNIX: up to the first NUL, as the kernel takes it
    kAbstract,  // AF_UNIX: all bytes behind the leading NUL
    kUnnamed,   // AF_UNIX without a name
  };
  Form form = Form::kNone;
  int family = -1;         // -1: fewer than two bytes
  bool mapped = false;     // ::ffff:a.b.c.d on AF_INET6; `ip` is then the IPv4 address
  uint8_t ip_version = 0;  // 4 or 6, of `ip`
  uint16_t port = 0;
  char ip[46] = {};  // NUL-terminated
  std::string_view name;
};
[[nodiscard]] Address DecodeAddress(std::span<const uint8_t> bytes) noexcept;

// "tcp", "unix-stream", "netlink", "af-44" ...; arguments are -1 where unknown. Written into `buffer` where
// it is no literal; the view is valid as long as the buffer.
[[nodiscard]] std::string_view ProtocolName(int family, int type, int protocol,
                                            std::span<char, 24> buffer) noexcept;
// The IANA number for internet sockets, else -1.
[[nodiscard]] int ProtocolNumber(int family, int type, int protocol) noexcept;

}  // namespace oarlock::audit
