// SPDX-License-Identifier: Apache-2.0
// No packet of a module's sockets leaves the host, whatever options they carry (E-42, E-43), and 127.0.0.1 of
// another network namespace is another host. In a network namespace of this program's own with one interface
// that leads outside, where everything that leaves is seen.
#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <set>
#include <span>
#include <thread>

#include "tests/support/daemon.h"
#include "tests/support/sandbox.h"
#include "tests/support/servers.h"

namespace oarlock::test {
namespace {

using Words = std::vector<std::string>;

constexpr uid_t kNobody = 65534;
constexpr const char* kInterface = "exit0";
constexpr const char* kSegment = "2001:db8:77::1";

std::string ProbeOfOurs() { return OARLOCK_BINARY_DIR "/tests/bin/netns-probe"; }

void Ip(Words words) {
  ProcessOptions options;
  words.insert(words.begin(), FindInstalled("ip"));
  options.argv = words;
  const Outcome outcome = RunProcess(options);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
}

// Sets the loopback interface of the calling thread's namespace up.
bool RaiseLoopback() {
  const UniqueFd fd(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request{};
  std::strcpy(request.ifr_name, "lo");
  request.ifr_flags = IFF_UP;
  return ::ioctl(fd.get(), SIOCSIFFLAGS, &request) == 0;
}

// What leaves by the interface, neighbour discovery and multicast reports of the kernel's own left out, and
// what the kernel still sends for connections of twins that are over.
class Capture {
 public:
  Capture() : fd_(::socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, htons(ETH_P_ALL))) {
    sockaddr_ll address{};
    address.sll_family = AF_PACKET;
    address.sll_protocol = htons(ETH_P_ALL);
    address.sll_ifindex = static_cast<int>(::if_nametoindex(kInterface));
    EXPECT_EQ(::bind(fd_.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  }
  struct Seen {
    int packets = 0;
    std::string bytes;  // of all of them
    [[nodiscard]] bool Holds(const std::string& text) const { return bytes.find(text) != std::string::npos; }
  };
  Seen Take() {
    Seen seen;
    for (;;) {
      std::array<uint8_t, 4096> frame{};
      sockaddr_ll from{};
      socklen_t size = sizeof(from);
      const ssize_t got =
          ::recvfrom(fd_.get(), frame.data(), frame.size(), 0, reinterpret_cast<sockaddr*>(&from), &size);
      if (got <= 0) return seen;
      if (from.sll_pkttype != PACKET_OUTGOING || IsNoise(std::span(frame).first(static_cast<size_t>(got))))
        continue;
      ++seen.packets;
      seen.bytes.append(reinterpret_cast<const char*>(frame.data()), static_cast<size_t>(got));
    }
  }
  // A twin has spoken to this port; the kernel may repeat that for minutes.
  static void Forget(uint16_t port) { Ports().insert(port); }

 private:
  static std::set<uint16_t>& Ports() {
    static std::set<uint16_t> ports;
    return ports;
  }
  static bool IsNoise(std::span<const uint8_t> frame) {
    const auto word = [&](size_t at) {
      return at + 1 < frame.size() ? static_cast<uint16_t>(frame[at] << 8 | frame[at + 1]) : uint16_t{0};
    };
    constexpr size_t kIp = 14;
    if (frame.size() < kIp + 40) return false;
    size_t at = kIp;
    uint8_t protocol = 0;
    if (word(12) == ETH_P_IP) {
      protocol = frame[kIp + 9];
      if (protocol == IPPROTO_IGMP) return true;
      at += size_t{4} * (frame[kIp] & 0x0f);
    } else if (word(12) == ETH_P_IPV6) {
      protocol = frame[kIp + 6];
      at += 40;
      // Multicast reports carry a router alert; ours would be a module's hop-by-hop options.
      const bool to_multicast = frame[kIp + 24] == 0xff;
      if (protocol == IPPROTO_ICMPV6 || (protocol == IPPROTO_HOPOPTS && to_multicast)) return true;
      while ((protocol == IPPROTO_HOPOPTS || protocol == IPPROTO_ROUTING || protocol == IPPROTO_DSTOPTS) &&
             at + 8 <= frame.size()) {
        protocol = frame[at];
        at += size_t{8} * (frame[at + 1] + size_t{1});
      }
    }
    return protocol == IPPROTO_TCP && (Ports().contains(word(at)) || Ports().contains(word(at + 2)));
  }
  UniqueFd fd_;
};

// Moves this program into a namespace of its own, once; all that it starts is in there, too.
class NetnsTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    static const bool moved = [] {
      if (::getuid() != 0 || ::unshare(CLONE_NEWNET) != 0 || !RaiseLoopback()) return false;
      Ip({"link", "add", kInterface, "type", "veth", "peer", "name", "exit1"});
      // No address is asked for, so that whatever is sent really leaves.
      for (const char* interface : {kInterface, "exit1"}) Ip({"link", "set", interface, "arp", "off", "up"});
      Ip({"addr", "add", "198.51.100.1/24", "dev", kInterface});
      Ip({"-6", "addr", "add", "2001:db8::1/64", "dev", kInterface, "nodad"});
      Ip({"route", "add", "default", "dev", kInterface});
      Ip({"-6", "route", "add", "default", "dev", kInterface});
      return true;
    }();
    if (!moved) GTEST_SKIP() << "needs root and a network namespace of its own";
  }

  // The policy of a module whose proxy is at this server.
  static std::string Policy(const TcpServer& server, bool v6) {
    return std::string("\"net\":\"egress-allowlist\",\"proxy_addr\":\"") + (v6 ? "::1" : "127.0.0.1") +
           "\",\"proxy_port\":" + std::to_string(server.port());
  }
  static Outcome Run(const Sandbox& sandbox, Words words, bool inside) {
    words.insert(words.begin(), ProbeOfOurs());
    return inside ? sandbox.Run(words) : sandbox.RunBare(words);
  }
};

// --- options (E-42, E-43) ----------------------------------------------------------------------------------

struct OptionCase {
  const char* name;
  const char* option;  // of the probe
  bool v6;
  // What the twin is known to do: the catalogue's findings. Others may or may not; inside nothing may.
  bool before_leaves, after_leaves;
  bool root_only = false;
};
std::ostream& operator<<(std::ostream& out, const OptionCase& option) { return out << option.name; }

constexpr OptionCase kOptions[] = {
    {"SegmentRouting", "rthdr", true, true, true},
    {"BindToDevice6", "device", true, true, true},
    {"BindToDevice4", "device", false, true, false},
    {"BindToIfindex6", "ifindex", true, true, true},
    {"BindToIfindex4", "ifindex", false, true, false},
    {"OldPacketOptions", "pktoptions", true, false, false},
    {"OldPacketOptionsOldRoute", "pktoptions2292", true, false, false},
    {"OldPacketOptionsInterface", "pktoptionsinfo", true, false, false},
    {"OldSegmentRouting", "rthdr2292", true, false, false},
    {"PacketInfo", "pktinfo", true, false, false},
    {"UnicastInterface6", "unicast6", true, false, false},
    {"UnicastInterface4", "unicast4", false, false, false},
    {"LooseSourceRoute", "lsrr", false, false, false, true},
    {"StrictSourceRoute", "ssrr", false, false, false, true},
    {"NextHop", "nexthop", true, false, false, true},
    {"HopByHop", "hopopts", true, false, false, true},
    {"DestinationOptions", "dstopts", true, false, false, true},
    {"Mark6", "mark", true, false, false, true},
    {"Mark4", "mark", false, false, false, true},
};

class OptionTest : public NetnsTest, public ::testing::WithParamInterface<OptionCase> {};

TEST_P(OptionTest, LetsNothingOut) {
  const OptionCase& option = GetParam();
  enum class When { kBefore, kAfter, kMapped };
  Capture capture;
  for (const uid_t uid : {kNobody, uid_t{0}})
    for (const When when : {When::kBefore, When::kAfter, When::kMapped}) {
      // The mapped form of an IPv4 address, as a JVM says it.
      if (when == When::kMapped && option.v6) continue;
      SCOPED_TRACE("uid " + std::to_string(uid) +
                   (when == When::kAfter ? ", after connect" : ", before connect"));
      TcpServer proxy(option.v6 ? "::1" : "127.0.0.1");
      Sandbox sandbox(Policy(proxy, option.v6));
      if (uid != 0) sandbox.As(uid);
      const std::string open = option.v6 || when == When::kMapped ? "open,6" : "open,4";
      const std::string set = std::string("option,") + option.option + "," + kInterface + "," + kSegment;
      const std::string connect = std::string("connect,") +
                                  (option.v6               ? "::1"
                                   : when == When::kMapped ? "::ffff:127.0.0.1"
                                                           : "127.0.0.1") +
                                  "," + std::to_string(proxy.port());
      const std::string send = "send,a-secret-of-the-module";
      const Words words = when == When::kAfter ? Words{open, connect, "receive", set, send, "wait,300"}
                                               : Words{open, set, connect, "receive", send, "wait,100"};
      (void)capture.Take();
      const Outcome inside = Run(sandbox, words, true);
      EXPECT_EQ(inside.code, 0) << inside.err;
      EXPECT_EQ(ResultOf(inside, set), "ENOPROTOOPT");
      // The permitted connection is what it should be, and it is all there is.
      EXPECT_EQ(ResultOf(inside, connect), "0") << inside.out;
      EXPECT_EQ(ResultOf(inside, "receive"), "0 hello") << inside.out;
      EXPECT_EQ(ResultOf(inside, send), "0");
      EXPECT_EQ(capture.Take().packets, 0) << inside.out;
      EXPECT_EQ(proxy.connections(), 1);
      EXPECT_TRUE(Eventually([&] { return proxy.received() == "a-secret-of-the-module"; }));
      // The attempt is in the log.
      const auto log = sandbox.Log();
      EXPECT_EQ(
          std::ranges::count_if(
              log, [](const LogLine& line) { return line.code == "SOCKOPT_DENIED" && line.count == 1; }),
          1);

      const Outcome bare = Run(sandbox, words, false);
      EXPECT_EQ(bare.code, 0) << bare.err;
      const Capture::Seen leaked = capture.Take();
      Capture::Forget(proxy.port());
      if (when == When::kAfter ? option.after_leaves : when == When::kBefore && option.before_leaves) {
        EXPECT_EQ(ResultOf(bare, set), "0") << bare.out;
        EXPECT_GT(leaked.packets, 0) << "the twin shows nothing: " << bare.out;
        if (when == When::kAfter) EXPECT_TRUE(leaked.Holds("a-secret-of-the-module")) << bare.out;
      }
    }
}
INSTANTIATE_TEST_SUITE_P(Netns, OptionTest, ::testing::ValuesIn(kOptions),
                         [](const auto& option) { return option.param.name; });

TEST_F(NetnsTest, AncillaryDataLetsNothingOut) {
  for (const uid_t uid : {kNobody, uid_t{0}})
    for (const bool v6 : {true, false}) {
      SCOPED_TRACE("uid " + std::to_string(uid) + (v6 ? ", IPv6" : ", IPv4"));
      TcpServer proxy(v6 ? "::1" : "127.0.0.1");
      Sandbox sandbox(Policy(proxy, v6));
      if (uid != 0) sandbox.As(uid);
      const std::string connect =
          std::string("connect,") + (v6 ? "::1" : "127.0.0.1") + "," + std::to_string(proxy.port());
      Words words = {v6 ? "open,6" : "open,4", connect, "receive"};
      for (const char* kind : v6 ? std::vector<const char*>{"rthdr", "pktinfo6", "mark"}
                                 : std::vector<const char*>{"pktinfo4", "mark"})
        words.push_back(std::string("send,a-secret-of-the-module,") + kind + "," + kInterface + "," +
                        kSegment);
      words.emplace_back("wait,300");
      Capture capture;
      const Outcome inside = Run(sandbox, words, true);
      EXPECT_EQ(ResultOf(inside, connect), "0") << inside.out << inside.err;
      const Capture::Seen seen = capture.Take();
      EXPECT_EQ(seen.packets, 0) << inside.out;
      Capture::Forget(proxy.port());
    }
}

TEST_F(NetnsTest, PlainConnectsToTheOutsideSendNothing) {
  TcpServer proxy;
  Sandbox sandbox(Policy(proxy, false));
  sandbox.As(kNobody);
  const std::string port = std::to_string(proxy.port());
  const Words words = {
      "open,4",  "connect,203.0.113.9," + port,  "open,6", "connect,2001:db8:5::9," + port,
      "open,4",  "connect,198.51.100.2," + port, "open,6", "connect,::ffff:203.0.113.9," + port,
      "wait,100"};
  Capture capture;
  const Outcome inside = Run(sandbox, words, true);
  for (const std::string& word : words)
    if (word.starts_with("connect")) EXPECT_EQ(ResultOf(inside, word), "EACCES") << word << inside.err;
  EXPECT_EQ(capture.Take().packets, 0);
  (void)Run(sandbox, words, false);
  EXPECT_GE(capture.Take().packets, 4) << "the twin";
  Capture::Forget(proxy.port());
  EXPECT_EQ(proxy.connections(), 0);
}

TEST_F(NetnsTest, R_OB_32_TheHostsOwnAddressesAreNotTheProxy) {
  // A server on every address of the host, the proxy's port included: only the one address counts.
  TcpServer everywhere("0.0.0.0");
  Sandbox sandbox(Policy(everywhere, false));
  const std::string port = std::to_string(everywhere.port());
  const Words words = {"open,4", "connect,198.51.100.1," + port, "open,4", "connect,0.0.0.0," + port,
                       "open,4", "connect,127.0.0.2," + port,    "open,4", "connect,127.0.0.1," + port};
  const Outcome inside = Run(sandbox, words, true);
  EXPECT_EQ(ResultOf(inside, words[1]), "EACCES");
  EXPECT_EQ(ResultOf(inside, words[3]), "EACCES");
  EXPECT_EQ(ResultOf(inside, words[5]), "EACCES");
  EXPECT_EQ(ResultOf(inside, words[7]), "0");
  EXPECT_TRUE(Eventually([&] { return everywhere.connections() == 1; }));
  const Outcome bare = Run(sandbox, words, false);
  for (size_t i = 1; i < words.size(); i += 2) EXPECT_EQ(ResultOf(bare, words[i]), "0") << words[i];
  EXPECT_TRUE(Eventually([&] { return everywhere.connections() == 5; }));
}

// --- another namespace -------------------------------------------------------------------------------------

// A namespace with servers at 127.0.0.1. What a thread makes in there stays in there, whoever holds it.
class OtherNamespace {
 public:
  explicit OtherNamespace(uint16_t port) {
    std::thread([&] {
      if (::unshare(CLONE_NEWNET) != 0 || !RaiseLoopback()) return;
      namespace_.Reset(::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
      victim_ = std::make_unique<TcpServer>("127.0.0.1", port, "foreign\n");
      decoy_ = std::make_unique<TcpServer>("127.0.0.1", 0, "decoy\n");
    }).join();
  }
  // A connection between two sockets of that namespace.
  [[nodiscard]] UniqueFd Connect() const {
    UniqueFd fd;
    std::thread([&] {
      if (::setns(namespace_.get(), CLONE_NEWNET) != 0) return;
      UniqueFd made(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
      sockaddr_in address{};
      address.sin_family = AF_INET;
      address.sin_port = htons(decoy_->port());
      address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      if (::connect(made.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0)
        fd = std::move(made);
    }).join();
    EXPECT_TRUE(fd.valid());
    return fd;
  }
  // For a child: its whole process goes there.
  void Enter() const {
    if (::setns(namespace_.get(), CLONE_NEWNET) != 0) ::_exit(118);
  }
  [[nodiscard]] const TcpServer& victim() const noexcept { return *victim_; }

 private:
  UniqueFd namespace_;
  std::unique_ptr<TcpServer> victim_, decoy_;
};

TEST_F(NetnsTest, ASocketOfAnotherNamespaceReachesNothingThere) {
  TcpServer proxy("127.0.0.1", 0, "home\n");
  const std::string connect = "connect,127.0.0.1," + std::to_string(proxy.port());
  const std::string connect6 = "connect,::ffff:127.0.0.1," + std::to_string(proxy.port());
  Daemon daemon;
  for (const bool node : {false, true})
    for (const bool named : {false, true}) {
      SCOPED_TRACE(std::string(node ? "node" : "private") + " supervisor, kept by " +
                   (named ? "its variable" : "the policy"));
      OtherNamespace other(proxy.port());
      Sandbox sandbox(Policy(proxy, false) + (named ? "" : ",\"keep_fds\":[50]"));
      if (node) sandbox.Supervisor(daemon.socket());
      if (named) sandbox.Environment("OARBANK_STREAM", "fd:50");
      const Words words = {ProbeOfOurs(), "use,50", "disconnect", connect, "receive", "open,4", connect6};
      const auto hand_over = [&](ProcessOptions options) {
        const UniqueFd socket = other.Connect();
        options.before_exec = [&] {
          if (::dup2(socket.get(), 50) < 0) ::_exit(118);
        };
        return RunProcess(options);
      };
      const int before = proxy.connections();
      const Outcome inside = hand_over(sandbox.Options(words));
      EXPECT_EQ(inside.code, 0) << inside.err;
      EXPECT_EQ(ResultOf(inside, "disconnect"), "0");
      EXPECT_EQ(ResultOf(inside, connect), "EACCES") << inside.out;
      EXPECT_EQ(other.victim().connections(), 0);
      EXPECT_EQ(proxy.connections(), before);
      const auto log = node ? daemon.Log() : sandbox.Log();
      EXPECT_TRUE(std::ranges::any_of(log, [&](const LogLine& line) {
        return line.code == "TCP_NOT_PROXY" && line.target == "127.0.0.1:" + std::to_string(proxy.port());
      }));

      // Its own sockets are at home.
      const Outcome own = hand_over(sandbox.Options({ProbeOfOurs(), "open,4", connect, "receive"}));
      EXPECT_EQ(ResultOf(own, connect), "0") << own.out << own.err;
      EXPECT_EQ(ResultOf(own, "receive"), "0 home");

      ProcessOptions bare;
      bare.argv = words;
      const Outcome twin = hand_over(bare);
      EXPECT_EQ(ResultOf(twin, connect), "0") << twin.out;
      EXPECT_TRUE(Eventually([&] { return other.victim().connections() == 1; }));
    }
}

TEST_F(NetnsTest, AnUnconnectedSocketOfAnotherNamespaceIsNotHandedOver) {
  UniqueFd foreign;
  std::thread([&] {
    if (::unshare(CLONE_NEWNET) == 0) foreign.Reset(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  }).join();
  ASSERT_TRUE(foreign.valid());
  Sandbox sandbox("\"keep_fds\":[50]");
  ProcessOptions options = sandbox.Options({ProbeOfOurs(), "use,50"});
  options.before_exec = [&] {
    if (::dup2(foreign.get(), 50) < 0) ::_exit(118);
  };
  const Outcome outcome = RunProcess(options);
  EXPECT_EQ(outcome.code, 70);
  EXPECT_TRUE(outcome.err.starts_with("sandbox launch: K_UNSUPPORTED /keep_fds: ")) << outcome.err;
}

// A whole launch in another namespace than the supervisor's: its 127.0.0.1 is its own, and so is its proxy.
TEST_F(NetnsTest, ALauncherInAnotherNamespaceHasItsOwnLoopback) {
  TcpServer proxy("127.0.0.1", 0, "home\n");
  Daemon daemon;
  OtherNamespace other(proxy.port());
  Sandbox sandbox(Policy(proxy, false));
  sandbox.Supervisor(daemon.socket());
  const std::string connect = "connect,127.0.0.1," + std::to_string(proxy.port());
  ProcessOptions options = sandbox.Options({ProbeOfOurs(), "open,4", connect, "receive"});
  options.before_exec = [&] { other.Enter(); };
  const Outcome outcome = RunProcess(options);
  // It may be served, with what is its own, or be refused; it never reaches ours.
  EXPECT_TRUE(outcome.code == 0 || outcome.code == 70) << outcome.code << outcome.err;
  if (outcome.code == 0) EXPECT_EQ(ResultOf(outcome, "receive"), "0 foreign") << outcome.out;
  EXPECT_EQ(proxy.connections(), 0);
}

// --- self-connect (E-45) -----------------------------------------------------------------------------------

// Of this program's own namespace.
class PortRange {
 public:
  PortRange() { std::getline(std::ifstream(kFile), before_); }
  ~PortRange() { Restore(); }
  PortRange(const PortRange&) = delete;
  PortRange& operator=(const PortRange&) = delete;
  void Set(int low, int high) const { std::ofstream(kFile) << low << " " << high << std::flush; }
  void Restore() const { std::ofstream(kFile) << before_ << std::flush; }

 private:
  static constexpr const char* kFile = "/proc/sys/net/ipv4/ip_local_port_range";
  std::string before_;
};

TEST_F(NetnsTest, AModuleDoesNotConnectToItselfWhileTheProxyIsDown) {
  // One ephemeral port: the next socket's own is the proxy's.
  const PortRange range;
  constexpr int kPort = 45678;
  range.Set(kPort, kPort);
  for (const bool v6 : {false, true}) {
    Sandbox sandbox(std::string("\"net\":\"egress-allowlist\",\"proxy_addr\":\"") +
                    (v6 ? "::1" : "127.0.0.1") + "\",\"proxy_port\":" + std::to_string(kPort));
    const std::string loop =
        std::string("loop,") + (v6 ? "::1" : "127.0.0.1") + "," + std::to_string(kPort) + ",200";
    const Outcome inside = Run(sandbox, {loop}, true);
    EXPECT_TRUE(ResultOf(inside, loop).starts_with("0 ")) << inside.out << inside.err;
    size_t seen = 0;
    for (const LogLine& line : sandbox.Log())
      if (line.code == "SELF_CONNECT") {
        seen += line.count;
        EXPECT_EQ(line.errno_name, "ECONNREFUSED");
      }
    EXPECT_GT(seen, 0U);
    // The proxy can come back at once.
    {
      TcpServer proxy(v6 ? "::1" : "127.0.0.1", kPort, "back\n");
      range.Restore();
      const std::string connect =
          std::string("connect,") + (v6 ? "::1" : "127.0.0.1") + "," + std::to_string(kPort);
      EXPECT_EQ(ResultOf(Run(sandbox, {v6 ? "open,6" : "open,4", connect, "receive"}, true), "receive"),
                "0 back");
    }
    range.Set(kPort, kPort);
    const Outcome bare = Run(sandbox, {loop}, false);
    EXPECT_FALSE(ResultOf(bare, loop).starts_with("0 ")) << "the twin: " << bare.out;
  }
}

}  // namespace
}  // namespace oarlock::test
