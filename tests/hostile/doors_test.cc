// SPDX-License-Identifier: Apache-2.0
// Every other way to a socket than a permitted connect(): each is tried inside and, as its twin, outside. What counts is what the
// servers saw. errno_test holds the answers; here it is proved that each attack is a real one.
#include <signal.h>

#include "tests/hostile/support.h"
#include "tests/support/kernel_facts.h"

namespace oarlock::test {
namespace {

// All that may not be reached.
struct Victims {
  explicit Victims(const TemporaryDirectory& directory, uint16_t proxy_port)
      : second("127.0.0.2", proxy_port), sixth("::1", proxy_port), udp("127.0.0.1", 0), udp_at_proxy("127.0.0.1", proxy_port),
        lite("127.0.0.1", 0, IPPROTO_UDPLITE), path(directory / "victim.sock"), datagram_path(directory / "datagram.sock"),
        stream(path), abstract("@hostile-" + std::to_string(::getpid())), datagram(datagram_path, 0),
        abstract_datagram("@hostile-datagram-" + std::to_string(::getpid()), 0) {}
  long Arrived() {
    return other.connections() + second.connections() + sixth.connections() + stream.connections() + abstract.connections() + udp.Count() +
           udp_at_proxy.Count() + lite.Count() + datagram.Count() + abstract_datagram.Count();
  }
  TcpServer other, second, sixth;
  DatagramSink udp, udp_at_proxy, lite;
  std::string path, datagram_path;
  UnixServer stream, abstract;
  DatagramSink datagram, abstract_datagram;
};

struct Door {
  const char* name;
  const char* word;      // with {places}
  const char* expected;  // inside
};
std::ostream& operator<<(std::ostream& out, const Door& door) { return out << door.name; }

// 4294967296 is 2^32: the kernel looks at the low half alone.
constexpr Door kDoors[] = {
    {"E01_Ring", "ring,{other}", "setup:ENOSYS"},
    {"E07_FastOpenHighBits", "fast,sendto,127.0.0.1,{other},0,4294967296", "EOPNOTSUPP"},
    {"E07_MptcpHighBits", "to,127.0.0.1,{other},1,4294967558", "socket:EPROTONOSUPPORT"},
    {"E07_UdpHighBits", "to,127.0.0.1,{udp},4294967298", "socket:EAFNOSUPPORT"},
    {"E07_PairHighBits", "pair,4294967298,sendto,{datagram}", "socketpair:EACCES"},
    {"E14_OwnFilterThatAllowsAll", "filter,allow,{other}", "0 EACCES"},
    {"E15_OwnListener", "filter,listener,{other}", "EBUSY EACCES"},
    {"E20_FastOpenSendto", "fast,sendto,127.0.0.1,{other}", "EOPNOTSUPP"},
    {"E21_FastOpenSendmsg", "fast,sendmsg,127.0.0.1,{other}", "EOPNOTSUPP"},
    {"E21_FastOpenSendmmsg", "fast,sendmmsg,127.0.0.1,{other}", "EOPNOTSUPP"},
    {"E22_FastOpenMapped", "fast,sendto,::ffff:127.0.0.1,{other}", "EOPNOTSUPP"},
    {"E22_FastOpenMptcp", "fast,sendto,127.0.0.1,{other},262", "socket:EPROTONOSUPPORT"},
    {"E22_FastOpenV6", "fast,sendmsg,::1,{proxy}", "EOPNOTSUPP"},
    {"E23_FastOpenByOption", "fast,option,127.0.0.1,{other}", "EACCES"},
    {"E24_Mptcp", "to,127.0.0.1,{other},1,262", "socket:EPROTONOSUPPORT"},
    {"E24_MptcpV6", "to,::ffff:127.0.0.1,{other},1,262", "socket:EPROTONOSUPPORT"},
    {"E29_UdpSendto", "datagram,sendto,127.0.0.1,{udp}", "socket:EAFNOSUPPORT"},
    {"E29_UdpConnect", "datagram,connect,127.0.0.1,{udp}", "socket:EAFNOSUPPORT"},
    {"E29_UdpV6", "datagram,sendto,::ffff:127.0.0.1,{udp}", "socket:EAFNOSUPPORT"},
    {"E29_UdpLite", "datagram,sendto,127.0.0.1,{lite},136", "socket:EAFNOSUPPORT"},
    {"E33_DisconnectThenOther", "again,127.0.0.1,{proxy},plain,{other}", "EACCES"},
    {"E33_ShortDisconnectThenOther", "again,127.0.0.1,{proxy},short,{other}", "EACCES"},
    {"E33_DisconnectThenFastOpen", "again,127.0.0.1,{proxy},fast,{other}", "EOPNOTSUPP"},
    {"E34_Any", "to,0.0.0.0,{other}", "EACCES"},
    {"E34_Any6", "to,::,{proxy}", "EACCES"},
    {"E34_MappedAny", "to,::ffff:0.0.0.0,{other}", "EACCES"},
    {"E34_AnotherLoopback", "to,127.0.0.2,{proxy}", "EACCES"},
    {"E34_MappedAnotherLoopback", "to,::ffff:127.0.0.2,{proxy}", "EACCES"},
    {"E34_Loopback6", "to,::1,{proxy}", "EACCES"},
    {"E35_UdpToTheProxy", "datagram,connect,127.0.0.1,{proxy}", "socket:EAFNOSUPPORT"},
    {"E36_Length128", "length,127.0.0.1,{other},128", "EACCES"},
    {"E36_LengthHighBits", "length,127.0.0.1,{other},4294967312", "EACCES"},
    {"E50_AnotherPath", "to,{path}", "EACCES"},
    {"E51_PairSendto", "pair,2,sendto,{datagram}", "socketpair:EACCES"},
    {"E51_PairSendmsg", "pair,2,sendmsg,{datagram}", "socketpair:EACCES"},
    {"E51_PairConnect", "pair,2,connect,{datagram}", "socketpair:EACCES"},
    {"E51_Datagram", "datagram,sendto,{datagram}", "socket:EACCES"},
    {"E52_RawPairSendto", "pair,3,sendto,{datagram}", "socketpair:EACCES"},
    {"E52_RawSocket", "to,{datagram},0,3", "socket:EACCES"},
    {"E54_Abstract", "to,{abstract}", "ECONNREFUSED"},
    {"E54_AbstractDatagram", "pair,2,sendto,{abstractdatagram}", "socketpair:EACCES"},
    {"E57_PathHandle", "alias,fd,{path}", "EACCES"},
    {"E57_DevFd", "alias,dev,{path}", "EACCES"},
    {"E57_DirectoryHandle", "alias,directory,{path}", "EACCES"},
    {"E58_NoNul", "bytes,{pathhex}", "EACCES"},
    {"E58_JunkBehindTheNul", "bytes,{pathhex}00{brokerhex}", "EACCES"},
    {"E65_SecondOfSendmmsg", "pair,2,sendmmsg,{datagram}", "socketpair:EACCES"},
    {"E70_ForkedChild", "fork/to,127.0.0.1,{other}", "EACCES"},
    {"E74_DeadLeader", "deadleader/to,127.0.0.1,{other}", "EACCES"},
    {"E75_AnotherThread", "thread/to,127.0.0.1,{other}", "EACCES"},
    {"E106_VforkedChild", "vfork/to,127.0.0.1,{other}", "EACCES"},
};

std::string Hex(const std::string& text) {
  std::string hex;
  for (const char c : text) {
    char two[3];
    (void)std::snprintf(two, sizeof(two), "%02x", static_cast<unsigned char>(c));
    hex += two;
  }
  return hex;
}

class Doors : public testing::TestWithParam<Door> {
 protected:
  Doors() : broker_path_(directory_.MakeDirectory("agent") + "/broker.sock"), broker_(broker_path_), victims_(directory_, proxy_.port()) {}
  std::string Filled(std::string word) const {
    const std::pair<const char*, std::string> places[] = {
        {"{other}", std::to_string(victims_.other.port())}, {"{proxy}", std::to_string(proxy_.port())}, {"{udp}", std::to_string(victims_.udp.port())},
        {"{lite}", std::to_string(victims_.lite.port())},   {"{path}", victims_.path},                   {"{datagram}", victims_.datagram_path},
        {"{abstract}", "@hostile-" + std::to_string(::getpid())}, {"{abstractdatagram}", "@hostile-datagram-" + std::to_string(::getpid())},
        {"{pathhex}", Hex(victims_.path)},                   {"{brokerhex}", Hex(broker_path_)}};
    for (const auto& [place, value] : places)
      for (size_t at; (at = word.find(place)) != std::string::npos;) word.replace(at, std::strlen(place), value);
    return word;
  }
  std::string Policy() const { return Egress(proxy_.port()) + "," + Broker(broker_path_); }
  TemporaryDirectory directory_;
  TcpServer proxy_;
  std::string broker_path_;
  UnixServer broker_;
  Victims victims_;
};

TEST_P(Doors, LeadNowhere) {
  const std::string word = Filled(GetParam().word);
  if (word.starts_with("datagram") && word.ends_with(",136") && !victims_.lite.usable()) GTEST_SKIP() << "this kernel has no UDP-Lite: no twin";
  for (const bool nobody : {false, true}) {
    SCOPED_TRACE(nobody ? "uid 65534" : "root");
    Sandbox sandbox(Policy() + (nobody ? ",\"run_as\":{\"uid\":65534,\"gid\":65534}" : ""));
    const Outcome inside = sandbox.Run(Attack({word}));
    EXPECT_EQ(ResultOf(inside, word), GetParam().expected) << inside.err;
    ::usleep(50'000);  // what is on its way may arrive
    EXPECT_EQ(victims_.Arrived(), 0);
  }
  Sandbox twin;
  const Outcome bare = twin.RunBare(Attack({word}));
  if (word.starts_with("fast,") && ResultOf(bare, word) == "EOPNOTSUPP") GTEST_SKIP() << "this kernel has no Fast Open on MPTCP: no twin";
  EXPECT_TRUE(Eventually([&] { return victims_.Arrived() > 0; }, std::chrono::seconds(3))) << "the twin: " << bare.out << bare.err;
}
INSTANTIATE_TEST_SUITE_P(Hostile, Doors, testing::ValuesIn(kDoors), [](const auto& row) { return std::string(row.param.name); });

class OtherDoors : public Doors {};

// The i386 entry: the numbers of its socket and connect are other calls' in a filter that does not ask which entry it was.
TEST_F(OtherDoors, E05_ForeignArchitecture) {
  for (const char* how : {"socket", "socketcall", "own"}) {
    SCOPED_TRACE(how);
    const std::string word = std::string("int80,") + how + "," + std::to_string(victims_.other.port());
    Sandbox sandbox(Policy());
    const Outcome bare = sandbox.RunBare(Attack({word}));
    if (ResultOf(bare, word) != "0") GTEST_SKIP() << "this kernel has no i386 entry: " << bare.out;
    const int before = victims_.other.connections();
    EXPECT_TRUE(Eventually([&] { return victims_.other.connections() > 0; }));
    const Outcome inside = sandbox.Run(Attack({word}));
    EXPECT_EQ(inside.code, 128 + SIGSYS) << inside.out;
    ::usleep(50'000);
    EXPECT_LE(victims_.other.connections(), before + 1);
  }
}

// This kernel may have no x32; then the twin fails as well, and what remains is that nothing but ENOSYS is ever said.
TEST_F(OtherDoors, E06_X32Numbers) {
  const std::string word = "x32," + std::to_string(victims_.other.port());
  Sandbox sandbox(Policy());
  EXPECT_EQ(ResultOf(sandbox.Run(Attack({word})), word), "socket:ENOSYS");
  ::usleep(50'000);
  EXPECT_EQ(victims_.Arrived(), 0);
  const std::string bare = ResultOf(sandbox.RunBare(Attack({word})), word);
  EXPECT_TRUE(bare == "0" || bare == "socket:ENOSYS") << bare;
}

// A door inwards: whoever is outside connects to it.
TEST_F(OtherDoors, E28_E25_ListeningOnPortsOfTheNode) {
  for (const std::string word : {"listen,0,plain", "listen,0,bind", "listen,262,plain", "listen,262,bind"}) {
    SCOPED_TRACE(word);
    for (const bool inside : {true, false}) {
      Sandbox sandbox(Policy());
      ProcessOptions options = sandbox.Options(Attack({word}));
      if (!inside) options.argv = Attack({word});
      Process process(options);
      if (inside) {
        const Outcome outcome = process.Wait();
        EXPECT_EQ(outcome.out.find("listening "), std::string::npos) << outcome.out;
        EXPECT_EQ(ResultOf(outcome, word),
                  word.starts_with("listen,262") ? "socket:EPROTONOSUPPORT" : word.ends_with("bind") ? "bind:EACCES" : "listen:EACCES");
        continue;
      }
      ASSERT_TRUE(process.WaitFor("listening ") && process.WaitFor("\n")) << process.out();
      const auto port = static_cast<uint16_t>(std::atoi(process.out().c_str() + process.out().find("listening ") + 10));
      sockaddr_in address{};
      address.sin_family = AF_INET;
      address.sin_port = htons(port);
      address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      const UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
      EXPECT_EQ(::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
      EXPECT_EQ(ResultOf(process.Wait(), word), "0") << "the twin";
    }
  }
}

// What callers of every sort may do they do: the refusals above are none of the task's kind. Only a thread whose leader is dead
// cannot be looked at by a kernel without descriptors of threads.
TEST_F(OtherDoors, E73_E75_E106_EveryTaskReachesTheProxy) {
  Sandbox sandbox(Policy());
  const std::string to = "to,127.0.0.1," + std::to_string(proxy_.port());
  const std::vector<std::string> words = {to, "thread/" + to, "fork/" + to, "vfork/" + to, "thread/to," + broker_path_, "deadleader/" + to};
  const Outcome inside = sandbox.Run(Attack(words));
  const bool dead_may = KernelHasThreadPidfd();
  for (const std::string& word : words)
    EXPECT_EQ(ResultOf(inside, word), word.starts_with("deadleader/") && !dead_may ? "EACCES" : "0") << word << "\n" << inside.out << inside.err;
  EXPECT_TRUE(Eventually([&] { return proxy_.connections() == (dead_may ? 5 : 4) && broker_.connections() == 1; }));
}

}  // namespace
}  // namespace oarlock::test
