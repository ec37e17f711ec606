// SPDX-License-Identifier: Apache-2.0
#include "audit/address.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "tests/audit/support.h"

namespace oarlock::audit {
namespace {

using namespace std::string_literals;
using testing::Inet4;
using testing::Inet6;
using testing::Unix;
using Form = Address::Form;

Address Decode(const std::string& bytes) {
  return DecodeAddress({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
}

TEST(DecodeAddress, Inet) {
  const Address address = Decode(Inet4(0x7f000001, 3128));
  EXPECT_EQ(address.form, Form::kIp);
  EXPECT_EQ(address.family, AF_INET);
  EXPECT_STREQ(address.ip, "127.0.0.1");
  EXPECT_EQ(address.port, 3128);
  EXPECT_EQ(address.ip_version, 4);
  EXPECT_FALSE(address.mapped);
}

TEST(DecodeAddress, Inet6) {
  const Address address = Decode(Inet6("2001:db8::1", 443));
  EXPECT_EQ(address.form, Form::kIp);
  EXPECT_STREQ(address.ip, "2001:db8::1");
  EXPECT_EQ(address.port, 443);
  EXPECT_EQ(address.ip_version, 6);
}

TEST(DecodeAddress, MappedIsTheInetAddressThatItReaches) {
  const Address address = Decode(Inet6("::ffff:192.0.2.7", 80));
  EXPECT_TRUE(address.mapped);
  EXPECT_EQ(address.family, AF_INET6);
  EXPECT_STREQ(address.ip, "192.0.2.7");
  EXPECT_EQ(address.ip_version, 4);
}

TEST(DecodeAddress, OddLengths) {
  const std::string inet = Inet4(0x7f000001, 3128), inet6 = Inet6("::1", 1);
  EXPECT_EQ(Decode("").form, Form::kNone);
  EXPECT_EQ(Decode("\x02").form, Form::kOther);
  EXPECT_EQ(Decode("\x02").family, -1);
  EXPECT_EQ(Decode(inet.substr(0, 2)).form, Form::kOther);
  EXPECT_EQ(Decode(inet.substr(0, 2)).family, AF_INET);
  EXPECT_EQ(Decode(inet.substr(0, 7)).form, Form::kOther);
  EXPECT_STREQ(Decode(inet.substr(0, 8)).ip, "127.0.0.1");
  EXPECT_STREQ(Decode(inet + std::string(100, 'x')).ip, "127.0.0.1");
  EXPECT_EQ(Decode(inet6.substr(0, 23)).form, Form::kOther);
  EXPECT_STREQ(Decode(inet6.substr(0, 24)).ip, "::1");
  // Never beyond what was given: every prefix of every sort.
  for (const std::string& whole :
       {inet, inet6, Unix("/run/x"), Unix("\0abstract"s), "\x10\x00"s + std::string(126, 'n')})
    for (size_t size = 0; size <= whole.size(); ++size) (void)Decode(std::string(whole.data(), size));
}

TEST(DecodeAddress, UnixPathEndsAtTheFirstNul) {
  EXPECT_EQ(Decode(Unix("/run/x")).form, Form::kPath);
  EXPECT_EQ(Decode(Unix("/run/x")).name, "/run/x");
  EXPECT_EQ(Decode(Unix("/run/x\0/etc/shadow"s)).name, "/run/x");
  EXPECT_EQ(Decode(Unix(std::string(108, 'p'))).name, std::string(108, 'p'));
}

TEST(DecodeAddress, UnixAbstractKeepsEveryByte) {
  const std::string bytes = Unix("\0a\0b\0"s);
  const Address address = Decode(bytes);
  EXPECT_EQ(address.form, Form::kAbstract);
  EXPECT_EQ(address.name, "a\0b\0"s);
  EXPECT_EQ(Decode(Unix("\0"s)).form, Form::kAbstract);
  EXPECT_EQ(Decode(Unix("\0"s)).name, "");
  EXPECT_EQ(Decode(Unix("")).form, Form::kUnnamed);
}

TEST(ProtocolName, SaysWhatIsKnown) {
  char buffer[24];
  const auto name = [&](int family, int type, int protocol) {
    return std::string(ProtocolName(family, type, protocol, buffer));
  };
  EXPECT_EQ(name(AF_INET, SOCK_STREAM, 0), "tcp");
  EXPECT_EQ(name(AF_INET6, SOCK_STREAM, IPPROTO_TCP), "tcp");
  EXPECT_EQ(name(AF_INET, SOCK_STREAM, 262), "mptcp");
  EXPECT_EQ(name(AF_INET, SOCK_STREAM, 132), "sctp");
  EXPECT_EQ(name(AF_INET, SOCK_DGRAM, 0), "udp");
  EXPECT_EQ(name(AF_INET, SOCK_DGRAM, IPPROTO_ICMP), "icmp");
  EXPECT_EQ(name(AF_INET, SOCK_RAW, 255), "raw");
  EXPECT_EQ(name(AF_INET, SOCK_STREAM, 99), "ip-99");
  EXPECT_EQ(name(AF_INET, -1, -1), "ipv4");
  EXPECT_EQ(name(AF_INET6, SOCK_STREAM, -1), "ipv6");
  EXPECT_EQ(name(AF_UNIX, SOCK_STREAM, 0), "unix-stream");
  EXPECT_EQ(name(AF_UNIX, SOCK_SEQPACKET, 0), "unix-seqpacket");
  EXPECT_EQ(name(AF_UNIX, -1, -1), "unix");
  EXPECT_EQ(name(AF_NETLINK, SOCK_RAW, 0), "netlink");
  EXPECT_EQ(name(AF_PACKET, SOCK_RAW, 3), "packet");
  EXPECT_EQ(name(12345, 0, 0), "af-12345");
  EXPECT_EQ(name(-1, -1, -1), "unknown");
}

TEST(ProtocolNumber, IsIanasOrMinusOne) {
  EXPECT_EQ(ProtocolNumber(AF_INET, SOCK_STREAM, 0), 6);
  EXPECT_EQ(ProtocolNumber(AF_INET6, SOCK_DGRAM, 0), 17);
  EXPECT_EQ(ProtocolNumber(AF_INET, SOCK_STREAM, 262), -1);
  EXPECT_EQ(ProtocolNumber(AF_INET, -1, -1), -1);
  EXPECT_EQ(ProtocolNumber(AF_UNIX, SOCK_STREAM, 0), -1);
}

}  // namespace
}  // namespace oarlock::audit
