// SPDX-License-Identifier: Apache-2.0
#include "proxyport/gate.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>
#include <random>

namespace oarlock::proxyport {
namespace {

constexpr uint16_t kPort = 3128;
constexpr const char* kBroker = "/run/agent/broker-7.sock";
constexpr const char* kBrokerAsWritten = "/var/run/agent/broker-7.sock";

Grant MakeGrant(bool proxy, bool broker, ProxyAddress address = ProxyAddress::kLoopback4) {
  Grant grant;
  if (proxy) {
    grant.net = NetMode::kEgressAllowlist;
    grant.proxy_address = address;
    grant.proxy_port = kPort;
  }
  if (broker) {
    grant.broker_name = kBrokerAsWritten;
    grant.broker_resolved = kBroker;
  }
  return grant;
}

Address Raw(const void* bytes, size_t size) {
  Address address;
  std::memcpy(address.bytes, bytes, std::min<size_t>(size, sizeof(address.bytes)));
  address.size = static_cast<uint32_t>(size);
  return address;
}
Address In(const char* host, uint16_t port, size_t size = sizeof(sockaddr_in)) {
  sockaddr_in in{};
  in.sin_family = AF_INET;
  in.sin_port = htons(port);
  EXPECT_EQ(inet_pton(AF_INET, host, &in.sin_addr), 1);
  Address address = Raw(&in, sizeof(in));
  address.size = static_cast<uint32_t>(size);
  return address;
}
Address In6(const char* host, uint16_t port, uint32_t scope = 0, size_t size = sizeof(sockaddr_in6)) {
  sockaddr_in6 in6{};
  in6.sin6_family = AF_INET6;
  in6.sin6_port = htons(port);
  in6.sin6_scope_id = scope;
  EXPECT_EQ(inet_pton(AF_INET6, host, &in6.sin6_addr), 1);
  Address address = Raw(&in6, sizeof(in6));
  address.size = static_cast<uint32_t>(size);
  return address;
}
Address Path(const std::string& path, size_t extra = 1) {
  // Longer than a sockaddr_un, for what is too long for one.
  sockaddr_storage room{};
  room.ss_family = AF_UNIX;
  constexpr size_t kPath = offsetof(sockaddr_un, sun_path);
  EXPECT_LE(kPath + path.size() + extra, sizeof(room));
  std::memcpy(reinterpret_cast<char*>(&room) + kPath, path.data(), path.size());
  return Raw(&room, kPath + path.size() + extra);
}

struct Case {
  const char* name;
  Address address;
  Refusal refusal;  // kNone: connects
};

void Check(const Gate& gate, const std::vector<Case>& cases) {
  for (const Case& entry : cases) {
    const Decision decision = gate.JudgeConnect(entry.address);
    EXPECT_EQ(static_cast<int>(decision.refusal), static_cast<int>(entry.refusal)) << entry.name;
    EXPECT_EQ(decision.verdict == Decision::Verdict::kConnect, entry.refusal == Refusal::kNone) << entry.name;
    EXPECT_EQ(decision.target != nullptr, entry.refusal == Refusal::kNone) << entry.name;
  }
}

TEST(GateTest, TcpReachesExactlyTheProxy) {
  const Gate gate(MakeGrant(true, false));
  Check(gate, {
                  {"the proxy", In("127.0.0.1", kPort), Refusal::kNone},
                  {"the proxy, bytes behind", In("127.0.0.1", kPort, 128), Refusal::kNone},
                  {"mapped", In6("::ffff:127.0.0.1", kPort), Refusal::kNone},
                  {"mapped, bogus scope", In6("::ffff:127.0.0.1", kPort, 77), Refusal::kNone},
                  {"mapped, no scope field", In6("::ffff:127.0.0.1", kPort, 0, 24), Refusal::kNone},
                  {"other port", In("127.0.0.1", kPort + 1), Refusal::kTcpNotProxy},
                  {"port zero", In("127.0.0.1", 0), Refusal::kTcpNotProxy},
                  {"any", In("0.0.0.0", kPort), Refusal::kTcpNotProxy},
                  {"another loopback", In("127.0.0.2", kPort), Refusal::kTcpNotProxy},
                  {"outside", In("203.0.113.1", kPort), Refusal::kTcpNotProxy},
                  {"link-local", In("169.254.169.254", 80), Refusal::kTcpNotProxy},
                  {"::1 is another listener", In6("::1", kPort), Refusal::kTcpNotProxy},
                  {"::", In6("::", kPort), Refusal::kTcpNotProxy},
                  {"mapped any", In6("::ffff:0.0.0.0", kPort), Refusal::kTcpNotProxy},
                  {"compatible form", In6("::127.0.0.1", kPort), Refusal::kTcpNotProxy},
                  {"mapped, other port", In6("::ffff:127.0.0.1", kPort + 1), Refusal::kTcpNotProxy},
                  {"mapped other", In6("::ffff:127.0.0.2", kPort), Refusal::kTcpNotProxy},
                  {"short", In("127.0.0.1", kPort, 15), Refusal::kAddressInvalid},
                  {"family alone", In("127.0.0.1", kPort, 2), Refusal::kAddressInvalid},
                  {"one byte", In("127.0.0.1", kPort, 1), Refusal::kAddressInvalid},
                  {"nothing", In("127.0.0.1", kPort, 0), Refusal::kAddressInvalid},
                  {"too long", In("127.0.0.1", kPort, 129), Refusal::kAddressInvalid},
                  {"short v6", In6("::ffff:127.0.0.1", kPort, 0, 23), Refusal::kAddressInvalid},
              });
}

TEST(GateTest, ProxyOnLoopback6) {
  const Gate gate(MakeGrant(true, false, ProxyAddress::kLoopback6));
  Check(gate, {
                  {"the proxy", In6("::1", kPort), Refusal::kNone},
                  {"v4", In("127.0.0.1", kPort), Refusal::kTcpNotProxy},
                  {"mapped", In6("::ffff:127.0.0.1", kPort), Refusal::kTcpNotProxy},
              });
}

TEST(GateTest, WithoutAProxyNoTcp) {
  const Gate gate(MakeGrant(false, true));
  Check(gate, {
                  {"loopback", In("127.0.0.1", kPort), Refusal::kTcpNotProxy},
                  // An unset proxy must not be matched by an all-zero address.
                  {"zero", In("0.0.0.0", 0), Refusal::kTcpNotProxy},
                  {"zero v6", In6("::", 0), Refusal::kTcpNotProxy},
              });
}

TEST(GateTest, UnixReachesExactlyTheBroker) {
  const Gate gate(MakeGrant(false, true));
  const std::string broker(kBroker);
  Check(gate, {
                  {"resolved", Path(broker), Refusal::kNone},
                  {"as written", Path(kBrokerAsWritten), Refusal::kNone},
                  {"without the NUL", Path(broker, 0), Refusal::kNone},
                  {"junk behind the NUL", Path(broker + std::string("\0x", 2)), Refusal::kNone},
                  {"whole field", Path(broker, sizeof(sockaddr_un::sun_path) - broker.size()), Refusal::kNone},
                  {"prefix", Path(broker.substr(0, broker.size() - 1)), Refusal::kUnixNotBroker},
                  {"longer", Path(broker + "x"), Refusal::kUnixNotBroker},
                  {"dot", Path("/run/./agent/broker-7.sock"), Refusal::kUnixNotBroker},
                  {"double slash", Path("/run//agent/broker-7.sock"), Refusal::kUnixNotBroker},
                  {"up and down", Path("/run/agent/../agent/broker-7.sock"), Refusal::kUnixNotBroker},
                  {"by the root link", Path("/proc/self/root/run/agent/broker-7.sock"), Refusal::kUnixNotBroker},
                  {"relative", Path("broker-7.sock"), Refusal::kUnixNotBroker},
                  {"by descriptor", Path("/proc/self/fd/3"), Refusal::kUnixNotBroker},
                  {"abstract twin", Path(std::string("\0", 1) + broker), Refusal::kUnixAbstract},
                  {"abstract", Path(std::string("\0name", 5), 0), Refusal::kUnixAbstract},
                  {"nscd", Path("/var/run/nscd/socket"), Refusal::kUnixAbsent},
                  {"journal", Path("/run/systemd/journal/socket"), Refusal::kUnixAbsent},
                  {"bus of a user", Path("/run/user/1000/bus"), Refusal::kUnixAbsent},
                  {"well-known, climbing", Path("/run/user/../agent/bus"), Refusal::kUnixNotBroker},
                  {"no name", Raw("\1\0", 2), Refusal::kAddressInvalid},
                  {"too long for a path", Path(std::string(108, 'x'), 3), Refusal::kAddressInvalid},
              });
}

TEST(GateTest, WithoutABrokerNoUnix) {
  const Gate gate(MakeGrant(true, false));
  Check(gate, {
                  {"a path", Path(kBroker), Refusal::kUnixNotBroker},
                  {"empty path", Raw("\1\0\0", 3), Refusal::kUnixAbstract},
              });
}

TEST(GateTest, OtherFamilies) {
  const Gate gate(MakeGrant(true, true));
  for (const int number : {AF_NETLINK, AF_PACKET, AF_VSOCK, AF_BLUETOOTH, 45, 65535}) {
    const auto family = static_cast<uint16_t>(number);
    Address address;
    address.size = 16;
    std::memcpy(address.bytes, &family, sizeof(family));
    EXPECT_EQ(gate.JudgeConnect(address).refusal, Refusal::kAddressFamily) << family;
  }
  const Decision disconnect = gate.JudgeConnect(Raw("\0\0", 2));
  ASSERT_EQ(disconnect.verdict, Decision::Verdict::kConnect);
  EXPECT_EQ(disconnect.target->kind, Target::Kind::kDisconnect);
}

// What is connected is ours to the last byte, whatever stands in the module's address.
TEST(GateTest, TargetIsAConstantOfOurs) {
  const Gate gate(MakeGrant(true, true));
  std::mt19937 random(7);
  for (int round = 0; round < 2000; ++round) {
    Address address = round % 2 == 0 ? In("127.0.0.1", kPort, 16 + random() % 113) : In6("::ffff:127.0.0.1", kPort, random(), 28 + random() % 101);
    for (uint32_t i = round % 2 == 0 ? 8 : 24; i < address.size; ++i) address.bytes[i] = static_cast<uint8_t>(random());
    const Decision decision = gate.JudgeConnect(address);
    ASSERT_EQ(decision.verdict, Decision::Verdict::kConnect);
    const auto* family = reinterpret_cast<const sockaddr*>(&decision.target->address);
    if (family->sa_family == AF_INET) {
      sockaddr_in expected{};
      expected.sin_family = AF_INET;
      expected.sin_port = htons(kPort);
      expected.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      EXPECT_EQ(decision.target->size, sizeof(expected));
      EXPECT_EQ(std::memcmp(&decision.target->address, &expected, sizeof(expected)), 0);
    } else {
      EXPECT_EQ(decision.target->size, sizeof(sockaddr_in6));
      EXPECT_EQ(reinterpret_cast<const sockaddr_in6*>(family)->sin6_scope_id, 0U);
    }
  }
}

// No address that random bytes make reaches anything but the two constants.
TEST(GateTest, RandomAddressesReachNothingElse) {
  const Gate gate(MakeGrant(true, true));
  std::mt19937 random(11);
  for (int round = 0; round < 200'000; ++round) {
    Address address;
    address.size = random() % 140;
    for (uint8_t& byte : address.bytes) byte = static_cast<uint8_t>(random() % 4 == 0 ? random() : 0);
    const uint16_t families[] = {AF_INET, AF_INET6, AF_UNIX, AF_UNSPEC};
    const uint16_t family = families[random() % 4];
    std::memcpy(address.bytes, &family, sizeof(family));
    const Decision decision = gate.JudgeConnect(address);
    if (decision.verdict != Decision::Verdict::kConnect) continue;
    const bool proxy = decision.target->kind == Target::Kind::kTcp && std::memcmp(address.bytes + 2, "\x0c\x38", 2) == 0;
    EXPECT_TRUE(proxy || decision.target->kind == Target::Kind::kDisconnect);
  }
}

TEST(GateTest, TcpSocketMustBeTcp) {
  const Gate gate(MakeGrant(true, false));
  EXPECT_EQ(gate.JudgeTcpSocket({.domain = {}, .type = {}, .protocol = IPPROTO_TCP, .netns_cookie = {}}), Refusal::kNone);
  for (const int protocol : {17 /* UDP */, 262 /* MPTCP */, 132 /* SCTP */, 256 /* SMC */, 0})
    EXPECT_EQ(gate.JudgeTcpSocket({.domain = AF_INET, .type = {}, .protocol = protocol, .netns_cookie = {}}), Refusal::kSocketType) << protocol;
  EXPECT_EQ(gate.JudgeTcpSocket({.domain = AF_UNIX, .type = {}, .protocol = 0, .netns_cookie = {}}), Refusal::kAddressInvalid);
  EXPECT_EQ(gate.JudgeTcpSocket({}), Refusal::kSocketType) << "what is not known does not pass";
}

TEST(GateTest, ForeignNetworkNamespace) {
  Grant grant = MakeGrant(true, false);
  grant.check_netns = true;
  grant.netns_cookie = 42;
  const Gate gate(grant);
  EXPECT_TRUE(gate.needs_netns_cookie());
  EXPECT_EQ(gate.JudgeTcpSocket({.domain = {}, .type = {}, .protocol = IPPROTO_TCP, .netns_cookie = 42}), Refusal::kNone);
  EXPECT_EQ(gate.JudgeTcpSocket({.domain = {}, .type = {}, .protocol = IPPROTO_TCP, .netns_cookie = 43}), Refusal::kTcpNotProxy);
  EXPECT_EQ(gate.JudgeTcpSocket({.domain = {}, .type = {}, .protocol = IPPROTO_TCP, .netns_cookie = {}}), Refusal::kTcpNotProxy);
}

TEST(GateTest, SocketCalls) {
  const Gate both(MakeGrant(true, true)), none(MakeGrant(false, false));
  struct Row {
    uint32_t domain, type, protocol;
    Refusal with_both, with_none;
  };
  constexpr auto kGo = Refusal::kNone;
  for (const Row& row : std::vector<Row>{
           {AF_UNIX, SOCK_STREAM, 0, kGo, Refusal::kUnixNoGrant},
           {AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, kGo, Refusal::kUnixNoGrant},
           {AF_UNIX, SOCK_SEQPACKET, 0, kGo, Refusal::kUnixNoGrant},
           {AF_UNIX, SOCK_DGRAM, 0, Refusal::kUnixType, Refusal::kUnixType},
           {AF_UNIX, SOCK_RAW, 0, Refusal::kUnixType, Refusal::kUnixType},
           {AF_UNIX, 10, 0, Refusal::kUnixType, Refusal::kUnixType},
           {AF_INET, SOCK_STREAM, 0, kGo, Refusal::kFamilyDenied},
           {AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, IPPROTO_TCP, kGo, Refusal::kFamilyDenied},
           {AF_INET, SOCK_STREAM, 262, Refusal::kProtocolDenied, Refusal::kFamilyDenied},
           {AF_INET, SOCK_STREAM, 132, Refusal::kProtocolDenied, Refusal::kFamilyDenied},
           {AF_INET, SOCK_DGRAM, 0, Refusal::kDatagramProbe, Refusal::kFamilyProbe},
           {AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, IPPROTO_UDP, Refusal::kDatagramProbe, Refusal::kFamilyProbe},
           {AF_INET, SOCK_RAW, IPPROTO_ICMP, Refusal::kRawDenied, Refusal::kFamilyDenied},
           {AF_INET, SOCK_SEQPACKET, 132, Refusal::kTypeDenied, Refusal::kFamilyDenied},
           {AF_PACKET, SOCK_RAW, 0, Refusal::kRawDenied, Refusal::kRawDenied},
           {AF_NETLINK, SOCK_RAW, NETLINK_ROUTE, Refusal::kFamilyProbe, Refusal::kFamilyProbe},
           {AF_NETLINK, SOCK_RAW, NETLINK_AUDIT, Refusal::kFamilyDenied, Refusal::kFamilyDenied},
           {AF_VSOCK, SOCK_STREAM, 0, Refusal::kFamilyDenied, Refusal::kFamilyDenied},
           {38 /* ALG */, SOCK_SEQPACKET, 0, Refusal::kFamilyDenied, Refusal::kFamilyDenied},
           {43 /* SMC */, SOCK_STREAM, 0, Refusal::kFamilyDenied, Refusal::kFamilyDenied},
           {0, SOCK_STREAM, 0, Refusal::kFamilyDenied, Refusal::kFamilyDenied},
           {UINT32_MAX, SOCK_STREAM, 0, Refusal::kFamilyDenied, Refusal::kFamilyDenied},
       }) {
    const auto check = [&](const Gate& gate, Refusal expected) {
      const Decision decision = gate.JudgeSocket(row.domain, row.type, row.protocol);
      EXPECT_EQ(static_cast<int>(decision.refusal), static_cast<int>(expected)) << row.domain << "," << row.type << "," << row.protocol;
      EXPECT_EQ(decision.verdict, expected == kGo ? Decision::Verdict::kContinue : Decision::Verdict::kRefuse);
    };
    check(both, row.with_both);
    check(none, row.with_none);
  }
}

TEST(GateTest, SocketPairs) {
  const Gate gate(MakeGrant(false, false));
  EXPECT_EQ(gate.JudgeSocketPair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC).verdict, Decision::Verdict::kContinue);
  EXPECT_EQ(gate.JudgeSocketPair(AF_UNIX, SOCK_SEQPACKET).verdict, Decision::Verdict::kContinue);
  EXPECT_EQ(gate.JudgeSocketPair(AF_UNIX, SOCK_DGRAM).refusal, Refusal::kUnixType);
  EXPECT_EQ(gate.JudgeSocketPair(AF_UNIX, SOCK_RAW | SOCK_NONBLOCK).refusal, Refusal::kUnixType);
  EXPECT_EQ(gate.JudgeSocketPair(AF_INET, SOCK_STREAM).refusal, Refusal::kFamilyDenied);
}

TEST(GateTest, UnixFailures) {
  const SocketFacts stream{.domain = AF_UNIX, .type = SOCK_STREAM, .protocol = 0, .netns_cookie = {}};
  const SocketFacts datagram{.domain = AF_UNIX, .type = SOCK_DGRAM, .protocol = 0, .netns_cookie = {}};
  const SocketFacts tcp{.domain = AF_INET, .type = SOCK_STREAM, .protocol = IPPROTO_TCP, .netns_cookie = {}};
  EXPECT_EQ(Gate::JudgeUnixFailure(EISCONN, stream, true), Refusal::kSocketType) << "an end of a pair";
  EXPECT_EQ(Gate::JudgeUnixFailure(EISCONN, stream, false), Refusal::kNone) << "a second connect";
  EXPECT_EQ(Gate::JudgeUnixFailure(EPROTOTYPE, datagram, false), Refusal::kSocketType);
  EXPECT_EQ(Gate::JudgeUnixFailure(ECONNREFUSED, stream, false), Refusal::kNone);
  EXPECT_EQ(Gate::JudgeUnixFailure(EINVAL, tcp, false), Refusal::kNone) << "a wrong family is the kernel's to name";
}

TEST(GateTest, Binds) {
  EXPECT_EQ(Gate::JudgeBind(In("127.0.0.1", 0)), Refusal::kBindProbe);
  EXPECT_EQ(Gate::JudgeBind(In6("::1", 0)), Refusal::kBindProbe);
  EXPECT_EQ(Gate::JudgeBind(In("127.0.0.1", 80)), Refusal::kBindDenied);
  EXPECT_EQ(Gate::JudgeBind(Path("/tmp/x")), Refusal::kBindDenied);
  EXPECT_EQ(Gate::JudgeBind(In("127.0.0.1", 0, 2)), Refusal::kBindDenied) << "a port that is not there is not port 0";
}

TEST(GateTest, RefusedTcpErrnoIsTheGrants) {
  Grant grant = MakeGrant(true, true);
  EXPECT_EQ(Gate(grant).ErrorOf(Refusal::kTcpNotProxy), EACCES);
  grant.refused_tcp_error = ENETUNREACH;
  EXPECT_EQ(Gate(grant).ErrorOf(Refusal::kTcpNotProxy), ENETUNREACH);
  EXPECT_EQ(Gate(grant).ErrorOf(Refusal::kUnixNotBroker), EACCES);
}

}  // namespace
}  // namespace oarlock::proxyport
