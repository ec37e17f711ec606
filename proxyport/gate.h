// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <optional>
#include <string>

#include "notif/grant.h"
#include "notif/refusals.h"

// The gate: which endpoint a call may reach. Pure: (grant, what the module asked, facts of the socket) -> Decision. No system
// calls, no memory of its own beyond the grant's constants; any thread may ask.
namespace oarlock::proxyport {

// A socket address as the module passed it: copied once from its memory, never read there again.
struct Address {
  static constexpr uint32_t kMaxSize = 128;  // sizeof(struct sockaddr_storage), the kernel's own limit
  uint8_t bytes[kMaxSize] = {};
  uint32_t size = 0;

  [[nodiscard]] uint16_t family() const noexcept;  // AF_UNSPEC where size < 2
};

// An address of ours that the supervisor connects to. What the module wrote only *chooses* it.
struct Target {
  enum class Kind : uint8_t { kTcp, kUnix, kDisconnect };
  Kind kind = Kind::kTcp;
  socklen_t size = 0;
  sockaddr_storage address{};  // zero behind the address proper
};

// What is known of the pinned socket. Fetched lazily: each fact costs a system call.
struct SocketFacts {
  std::optional<int> domain, type, protocol;
  std::optional<uint64_t> netns_cookie;
};

struct Decision {
  enum class Verdict : uint8_t {
    kRefuse,    // with `refusal`
    kConnect,   // to `target`, once the socket's facts pass
    kContinue,  // the kernel may run the call: all its arguments are in registers
  };
  Verdict verdict = Verdict::kRefuse;
  Refusal refusal = Refusal::kNone;
  const Target* target = nullptr;  // owned by the gate

  [[nodiscard]] static Decision Refuse(Refusal refusal) noexcept { return {Verdict::kRefuse, refusal, nullptr}; }
  [[nodiscard]] static Decision Connect(const Target& target) noexcept {
    return {Verdict::kConnect, Refusal::kNone, &target};
  }
  [[nodiscard]] static Decision Continue() noexcept { return {Verdict::kContinue, Refusal::kNone, nullptr}; }
};

class Gate {
 public:
  explicit Gate(const Grant& grant);

  // connect(2): by the address alone. A kConnect to TCP needs JudgeTcpSocket next; to unix, JudgeUnixFailure only where the
  // kernel refused; a disconnect (AF_UNSPEC) needs nothing.
  [[nodiscard]] Decision JudgeConnect(const Address& address) const noexcept;
  // The pinned socket of a TCP connect: needs `protocol`, `domain` where that is not TCP, and `netns_cookie` where
  // needs_netns_cookie(). kNone: pass.
  [[nodiscard]] Refusal JudgeTcpSocket(const SocketFacts& facts) const noexcept;
  // Why the kernel refused a unix connect: kSocketType for a socket that is no fresh stream socket, else kNone (the kernel's
  // errno is passed on).
  [[nodiscard]] static Refusal JudgeUnixFailure(int error, const SocketFacts& facts, bool peer_is_unnamed) noexcept;
  // socket(2) and socketpair(2), by registers alone.
  [[nodiscard]] Decision JudgeSocket(uint32_t domain, uint32_t type, uint32_t protocol) const noexcept;
  [[nodiscard]] Decision JudgeSocketPair(uint32_t domain, uint32_t type) const noexcept;
  // bind(2): never granted; a port of the kernel's choice is a routine probe.
  [[nodiscard]] static Refusal JudgeBind(const Address& address) noexcept;

  // The errno of a refusal under this grant, positive.
  [[nodiscard]] int ErrorOf(Refusal refusal) const noexcept;
  [[nodiscard]] bool needs_netns_cookie() const noexcept { return check_netns_; }

 private:
  [[nodiscard]] Decision JudgeInet(const Address& address) const noexcept;
  [[nodiscard]] Decision JudgeInet6(const Address& address) const noexcept;
  [[nodiscard]] Decision JudgeUnix(const Address& address) const noexcept;

  bool has_proxy_ = false;
  bool has_broker_ = false;
  bool check_netns_ = false;
  NetMode net_ = NetMode::kNone;
  uint64_t netns_cookie_ = 0;
  int refused_tcp_error_ = 0;
  Target inet_;    // the proxy, from an AF_INET sockaddr; size 0: none
  Target inet6_;   // the proxy, from an AF_INET6 sockaddr: ::1, or the mapped form of 127.0.0.1
  Target unix_;    // the broker's resolved path
  Target unspec_;  // a disconnect
  std::string broker_name_, broker_resolved_;
};

}  // namespace oarlock::proxyport
