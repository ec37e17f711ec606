// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace oarlock {

enum class NetMode : uint8_t { kNone, kEgressAllowlist, kEgressAny, kHost };
enum class ProxyAddress : uint8_t { kLoopback4, kLoopback6 };

// What the supervisor may do for one session. Made by the launcher from the policy, or by an operator for a container
// runtime; the supervisor believes it as far as its ceiling goes. A value: copied, never changed after admission
// (reload swaps it whole).
struct Grant {
  NetMode net = NetMode::kNone;
  ProxyAddress proxy_address = ProxyAddress::kLoopback4;
  uint16_t proxy_port = 0;       // host order; 0: no proxy
  std::string broker_name;       // as the policy writes it; empty: no broker
  std::string broker_resolved;   // absolute, no symbolic link in it: what the supervisor connects to
  uint64_t netns_cookie = 0;     // SO_NETNS_COOKIE of the launcher
  bool check_netns = false;      // a foreign socket can exist in the session: compare each TCP socket's cookie
  int refused_tcp_error = 13;    // EACCES, ENETUNREACH or ECONNREFUSED
  bool audit_approvals = false;
  bool broker_identity = false;
  bool trace = false;            // ptrace and its kin, of the sandbox's own processes

  [[nodiscard]] bool has_broker() const noexcept { return !broker_resolved.empty(); }
  [[nodiscard]] bool has_proxy() const noexcept { return net == NetMode::kEgressAllowlist && proxy_port != 0; }
};

[[nodiscard]] const char* Name(NetMode mode) noexcept;            // "egress-allowlist"
[[nodiscard]] const char* Text(ProxyAddress address) noexcept;    // "127.0.0.1"

}  // namespace oarlock
