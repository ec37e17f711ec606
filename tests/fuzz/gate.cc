// SPDX-License-Identifier: Apache-2.0
// The gate, against an oracle that shares no code with it: for any grant, address and facts of a socket, it lets through what the
// oracle lets through and nothing else, to an address of its own making.
#include <netinet/in.h>
#include <sys/un.h>

#include <string>

#include "proxyport/gate.h"
#include "tests/fuzz/fuzz.h"

using namespace oarlock;             // NOLINT(google-build-using-namespace)
using namespace oarlock::proxyport;  // NOLINT(google-build-using-namespace)

namespace {

enum class Way : int { kNone, kProxy4, kProxy6, kBroker, kDisconnect };

// By offsets of the kernel's structures, in bytes: no structure of the C library, nothing of the gate's.
Way Oracle(const Grant& grant, const Address& address) {
  const uint8_t* b = address.bytes;
  if (address.size < 2 || address.size > 128) return Way::kNone;
  const unsigned family = b[0] | unsigned{b[1]} << 8;  // little-endian machines alone, as both that we know are
  const bool proxy = grant.net == NetMode::kEgressAllowlist && grant.proxy_port != 0;
  const bool on_v4 = grant.proxy_address == ProxyAddress::kLoopback4;
  const auto port = [&] { return (unsigned{b[2]} << 8 | b[3]) == grant.proxy_port; };
  if (family == 0) return Way::kDisconnect;
  if (family == 2) {
    const bool loopback = b[4] == 127 && b[5] == 0 && b[6] == 0 && b[7] == 1;
    return proxy && on_v4 && address.size >= 16 && port() && loopback ? Way::kProxy4 : Way::kNone;
  }
  if (family == 10) {
    if (!proxy || address.size < 24 || !port()) return Way::kNone;
    const uint8_t* ip = b + 8;
    for (int i = 0; i < 10; ++i)
      if (ip[i] != 0) return Way::kNone;
    const bool mapped = ip[10] == 0xff && ip[11] == 0xff && ip[12] == 127 && ip[13] == 0 && ip[14] == 0 && ip[15] == 1;
    const bool six = ip[10] == 0 && ip[11] == 0 && ip[12] == 0 && ip[13] == 0 && ip[14] == 0 && ip[15] == 1;
    return (on_v4 ? mapped : six) ? Way::kProxy6 : Way::kNone;
  }
  if (family == 1) {
    if (grant.broker_resolved.empty() || address.size < 3 || address.size > 110) return Way::kNone;
    std::string path;
    for (uint32_t i = 2; i < address.size && b[i] != 0; ++i) path += static_cast<char>(b[i]);
    return !path.empty() && (path == grant.broker_name || path == grant.broker_resolved) ? Way::kBroker : Way::kNone;
  }
  return Way::kNone;
}

// The one address that this way leads to, as the kernel reads it.
void CheckTarget(const Grant& grant, Way way, const Target& target) {
  uint8_t bytes[sizeof(target.address)];
  std::memcpy(bytes, &target.address, sizeof(bytes));
  uint8_t wanted[sizeof(bytes)] = {};
  size_t size = 0;
  Target::Kind kind = Target::Kind::kTcp;
  const auto port = [&] {
    wanted[2] = static_cast<uint8_t>(grant.proxy_port >> 8);
    wanted[3] = static_cast<uint8_t>(grant.proxy_port);
  };
  switch (way) {
    case Way::kDisconnect:
      kind = Target::Kind::kDisconnect;
      size = 16;
      break;
    case Way::kProxy4:
      size = 16;
      wanted[0] = 2;
      port();
      wanted[4] = 127;
      wanted[7] = 1;
      break;
    case Way::kProxy6:
      size = 28;
      wanted[0] = 10;
      port();
      wanted[8 + 15] = 1;
      if (grant.proxy_address == ProxyAddress::kLoopback4) {
        wanted[8 + 10] = wanted[8 + 11] = 0xff;
        wanted[8 + 12] = 127;
      }
      break;
    case Way::kBroker:
      kind = Target::Kind::kUnix;
      size = 2 + grant.broker_resolved.size() + 1;
      wanted[0] = 1;
      std::memcpy(wanted + 2, grant.broker_resolved.data(), grant.broker_resolved.size());
      break;
    case Way::kNone: OARLOCK_CHECK(false, "no target");
  }
  OARLOCK_CHECK(target.kind == kind && target.size == size && std::memcmp(bytes, wanted, sizeof(bytes)) == 0, "way %d", static_cast<int>(way));
}

void CheckConnect(const Gate& gate, const Grant& grant, const Address& address) {
  const Decision decision = gate.JudgeConnect(address);
  const Way way = Oracle(grant, address);
  OARLOCK_CHECK(decision.verdict != Decision::Verdict::kContinue, "a connect never goes on in the kernel");
  OARLOCK_CHECK((decision.verdict == Decision::Verdict::kConnect) == (way != Way::kNone), "way %d, refusal %d", static_cast<int>(way), static_cast<int>(decision.refusal));
  if (way == Way::kNone) {
    OARLOCK_CHECK(decision.refusal != Refusal::kNone && decision.target == nullptr && gate.ErrorOf(decision.refusal) > 0, "%d", static_cast<int>(decision.refusal));
  } else {
    CheckTarget(grant, way, *decision.target);
  }
}

void CheckSockets(const Gate& gate, const Grant& grant, fuzz::Input& input) {
  const auto domain = input.Take<uint32_t>(), type = input.Take<uint32_t>(), protocol = input.Take<uint32_t>();
  const unsigned kind = type & 0xf;
  const bool unix_stream = domain == 1 && (kind == 1 || kind == 5);
  const bool tcp = (domain == 2 || domain == 10) && kind == 1 && (protocol == 0 || protocol == 6) && grant.net != NetMode::kNone;
  const Decision socket = gate.JudgeSocket(domain, type, protocol);
  OARLOCK_CHECK((socket.verdict == Decision::Verdict::kContinue) == (tcp || (unix_stream && !grant.broker_resolved.empty())), "%u %u %u", domain, type, protocol);
  const Decision pair = gate.JudgeSocketPair(domain, type);
  OARLOCK_CHECK((pair.verdict == Decision::Verdict::kContinue) == unix_stream, "%u %u", domain, type);
  for (const Decision& decision : {socket, pair}) {
    OARLOCK_CHECK(decision.verdict != Decision::Verdict::kConnect, "a socket is no connect");
    if (decision.verdict == Decision::Verdict::kRefuse) OARLOCK_CHECK(decision.refusal != Refusal::kNone && gate.ErrorOf(decision.refusal) > 0, "%u %u", domain, type);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::Input input(data, size);
  Grant grant;
  grant.net = input.Flag() ? NetMode::kEgressAllowlist : NetMode::kNone;
  grant.proxy_address = input.Flag() ? ProxyAddress::kLoopback6 : ProxyAddress::kLoopback4;
  grant.proxy_port = input.Take<uint16_t>();
  grant.check_netns = input.Flag();
  grant.netns_cookie = input.Take<uint64_t>();
  grant.refused_tcp_error = 13;
  const auto path = [&input] {
    std::string text(input.Bytes(input.Take<uint8_t>() % 107));
    return text.empty() || text.find('\0') != std::string::npos ? std::string() : "/" + text;
  };
  grant.broker_name = path();
  grant.broker_resolved = path();
  if (grant.broker_resolved.empty()) grant.broker_name.clear();
  const Gate gate(grant);

  SocketFacts facts;
  const uint8_t known = input.Take<uint8_t>();
  if ((known & 1) != 0) facts.domain = input.Take<uint8_t>();
  if ((known & 2) != 0) facts.type = input.Take<uint8_t>();
  if ((known & 4) != 0) facts.protocol = input.Take<uint16_t>();
  if ((known & 8) != 0) facts.netns_cookie = (known & 16) != 0 ? grant.netns_cookie : input.Take<uint64_t>();
  CheckSockets(gate, grant, input);

  // The address is the rest; its length may claim more than there is.
  Address address;
  const uint8_t claimed = input.Take<uint8_t>();
  const std::string_view bytes = input.Bytes(Address::kMaxSize);
  std::memcpy(address.bytes, bytes.data(), bytes.size());
  address.size = (known & 32) != 0 ? claimed : static_cast<uint32_t>(bytes.size());
  CheckConnect(gate, grant, address);
  // What lies next to it, where an error of one byte would be: each length, and each bit pattern's neighbours in each byte.
  const uint32_t whole = address.size;
  for (address.size = 0; address.size <= Address::kMaxSize + 1; ++address.size) CheckConnect(gate, grant, address);
  address.size = std::min(whole + 1, Address::kMaxSize);
  for (uint32_t i = 0; i < address.size; ++i)
    for (const uint8_t change : {0x01, 0x80, 0xff}) {
      address.bytes[i] ^= change;
      CheckConnect(gate, grant, address);
      address.bytes[i] ^= change;
    }
  address.size = whole;

  const bool passes = facts.protocol == 6 && (!grant.check_netns || facts.netns_cookie == grant.netns_cookie);
  OARLOCK_CHECK((gate.JudgeTcpSocket(facts) == Refusal::kNone) == passes, "protocol %d", facts.protocol.value_or(-1));
  OARLOCK_CHECK(Gate::JudgeBind(address) != Refusal::kNone, "bind is never granted");
  (void)Gate::JudgeUnixFailure(claimed, facts, (known & 64) != 0);
  return 0;
}
