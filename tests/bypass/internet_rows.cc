// SPDX-License-Identifier: Apache-2.0
// B. IP networking.
#include <fcntl.h>
#include <linux/ipv6.h>
#include <linux/netlink.h>
#include <netinet/ip.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <fstream>

#include "tests/bypass/inside.h"
#include "tests/bypass/outside.h"

namespace bypass {
namespace {

constexpr int kMptcp = 262;
constexpr const char* kSegment = "2001:db8:77::1";

long Set(long fd, int level, int name, const void* value, size_t size) {
  return Raw(SYS_setsockopt, fd, level, name, Of(value), static_cast<long>(size));
}
long SetNumber(long fd, int level, int name, int value) { return Set(fd, level, name, &value, sizeof(value)); }

// --- doors inwards ---

// Listens by these means and asks the outside half to come.
void ListenAnd(Inside& in, const std::string& part, long fd, bool binds) {
  if (fd < 0) return in.Judged(part, fd);
  Address any = MakeAddress("0.0.0.0", 0);
  long result = binds ? Raw(SYS_bind, fd, Of(any.get()), any.size) : 0;
  if (result == 0) result = Raw(SYS_listen, fd, 1);
  Address own;
  unsigned size = sizeof(own.storage);
  if (result == 0) result = Raw(SYS_getsockname, fd, Of(own.get()), Of(&size));
  if (result == 0) (void)in.Ask("connect " + part + " " + std::to_string(ntohs(reinterpret_cast<sockaddr_in*>(own.get())->sin_port)));
  (void)Raw(SYS_close, fd);
  in.Judged(part, result);
}
// "connect PART PORT": comes to 127.0.0.1 at that port.
std::string Come(Outside& outside, const std::string& question) {
  char part[64] = {};
  int port = 0;
  if (sscanf(question.c_str(), "connect %63s %d", part, &port) != 2) return "what?";
  if (!outside.CanConnect("127.0.0.1", port)) return "no";
  outside.Note(part);
  return "yes";
}

// --- packets that leave ---

struct SegmentRouting {
  uint8_t next_header = 0, length = 4, type = 4, segments_left = 1, last_entry = 1, flags = 0;
  uint16_t tag = 0;
  in6_addr segments[2] = {};
};

// "left PART [TEXT]": notes the part when a packet (with the text) has left since the last question.
std::string Left(Outside& outside, const std::string& question) {
  char part[64] = {}, text[64] = {};
  const int words = sscanf(question.c_str(), "left %63s %63s", part, text);
  usleep(60'000);
  for (const std::string& packet : outside.Departed())
    if (words < 2 || packet.find(text) != std::string::npos) outside.Note(part);
  return "";
}
void ForgetPackets(Outside& outside) {
  usleep(20'000);
  (void)outside.Departed();
  (void)outside.OnLoopback();
}

long StartConnect(long fd, const char* host, int port) {
  Address address = MakeAddress(host, port);
  return Raw(SYS_connect, fd, Of(address.get()), address.size);
}
// An option set before the connect, then on a connection that stands; what leaves is for the outside to see.
template <class Apply>
void BeforeAndAfter(Inside& in, const std::string& name, bool v6, bool after_leaves, Apply apply) {
  const bool able = !in.Text("away").empty();
  const int domain = v6 ? AF_INET6 : AF_INET;
  const char* host = v6 ? "::1" : "127.0.0.1";
  const int port = in.Port("proxy");
  const std::string before = name + "-before", after = name + "-after";
  long fd = Socket(domain, SOCK_STREAM | SOCK_NONBLOCK);
  long result = fd < 0 ? fd : apply(fd);
  if (result == 0) (void)StartConnect(fd, host, port);
  (void)in.Ask("left " + before);
  if (fd >= 0) (void)Raw(SYS_close, fd);
  if (!able) in.Maybe();
  in.Judged(before, result);
  fd = Socket(domain, SOCK_STREAM);
  result = fd < 0 ? fd : StartConnect(fd, host, port);
  // A sandbox may permit 127.0.0.1 alone: its mapped form is a connection of the same kind of socket.
  if (result < 0 && v6 && fd >= 0) {
    (void)Raw(SYS_close, fd);
    fd = Socket(domain, SOCK_STREAM);
    result = StartConnect(fd, "::ffff:127.0.0.1", port);
  }
  if (result == 0) result = apply(fd);
  if (result == 0) (void)SendText(fd, in.Payload(after));
  (void)in.Ask("left " + after + " " + in.Payload(after));
  if (fd >= 0) (void)Raw(SYS_close, fd);
  if (!able || !after_leaves) in.Maybe();
  in.Judged(after, result);
}

// --- the proxy's port ---

// "proxy down", "proxy up PART": notes the part when the proxy cannot have its port back.
std::string Proxy(Outside& outside, const std::string& question) {
  if (question == "proxy down") {
    outside.StopProxy();
    return "down";
  }
  char part[64] = {};
  if (sscanf(question.c_str(), "proxy up %63s", part) != 1) return "what?";
  const int port = outside.Number("proxy");
  // Our own poll may hold the old socket for a moment; whoever has taken the port keeps it.
  int got = -EADDRINUSE;
  for (int i = 0; i < 30 && got < 0; ++i) {
    if (i > 0) usleep(10'000);
    got = outside.servers().Tcp("proxy", "127.0.0.1", port, Servers::Sort::kQuiet);
  }
  if (got != port) outside.Note(part);
  return got == port ? "up" : "taken";
}
void ProxyAgain(Outside& outside) {
  outside.StopProxy();
  (void)outside.StartProxy();
}

constexpr Row kRows[] = {
    {.id = "E-20", .what = "sendto with MSG_FASTOPEN connects inside the send",
     .inside = [](Inside& in) { in.SendTo("sendto", Socket(AF_INET, SOCK_STREAM), MakeAddress("127.0.0.1", in.Port("tcp")), "sendto", MSG_FASTOPEN); }},
    {.id = "E-21", .what = "the same by sendmsg and sendmmsg",
     .inside = [](Inside& in) {
       for (const char* how : {"sendmsg", "sendmmsg"}) in.SendTo(how, Socket(AF_INET, SOCK_STREAM), MakeAddress("127.0.0.1", in.Port("tcp")), how, MSG_FASTOPEN);
     }},
    {.id = "E-22", .what = "fast open on IPv6 and MPTCP sockets",
     .inside = [](Inside& in) {
       in.SendTo("mapped", Socket(AF_INET6, SOCK_STREAM), MakeAddress("::ffff:127.0.0.1", in.Port("tcp")), "sendto", MSG_FASTOPEN);
       in.SendTo("six", Socket(AF_INET6, SOCK_STREAM), MakeAddress("::1", in.Port("tcp6")), "sendto", MSG_FASTOPEN);
       in.SendTo("mptcp", Socket(AF_INET, SOCK_STREAM, kMptcp), MakeAddress("127.0.0.1", in.Port("tcp")), "sendto", MSG_FASTOPEN);
     }},
    {.id = "E-23", .what = "TCP_FASTOPEN_CONNECT, then a connect that sends nothing yet",
     .inside = [](Inside& in) {
       const long fd = Socket(AF_INET, SOCK_STREAM);
       const long set = fd < 0 ? fd : SetNumber(fd, IPPROTO_TCP, TCP_FASTOPEN_CONNECT, 1);
       in.Reports("option", set);
       in.ConnectAndSend("connect", fd, MakeAddress("127.0.0.1", in.Port("tcp")));
     }},
    {.id = "E-24", .what = "an MPTCP socket connects, and falls back to TCP",
     .inside = [](Inside& in) {
       in.To("mptcp", "127.0.0.1", in.Port("tcp"), SOCK_STREAM, kMptcp);
       in.To("mptcp6", "::1", in.Port("tcp6"), SOCK_STREAM, kMptcp);
     }},
    {.id = "E-25", .what = "an MPTCP socket binds and listens",
     .inside = [](Inside& in) { ListenAnd(in, "mptcp", Socket(AF_INET, SOCK_STREAM, kMptcp), true); }, .answer = Come},
    {.id = "E-26", .what = "SCTP, SMC and DCCP sockets",
     .inside = [](Inside& in) {
       in.Maybe().Reports("sctp", Socket(AF_INET, SOCK_STREAM, 132));
       in.Maybe().Reports("sctp-packets", Socket(AF_INET, SOCK_SEQPACKET, 132));
       in.Maybe().Reports("smc-family", Socket(43, SOCK_STREAM));
       in.Maybe().Reports("smc", Socket(AF_INET, SOCK_STREAM, 256));
       in.Maybe().Reports("dccp", Socket(AF_INET, 6, 33));
     }},
    {.id = "E-27", .what = "TCP_ULP puts another protocol under a TCP socket",
     .inside = [](Inside& in) {
       const long fd = in.Proxy();
       for (const std::string name : {"smc", "tls", "espintcp", "mptcp"})
         in.Maybe().Reports(name, fd < 0 ? fd : Set(fd, IPPROTO_TCP, TCP_ULP, name.c_str(), name.size()));
     }},
    {.id = "E-28", .what = "listen without bind opens a port on every address",
     .inside = [](Inside& in) { ListenAnd(in, "listen", Socket(AF_INET, SOCK_STREAM), false); }, .answer = Come},
    {.id = "E-29", .what = "UDP and UDP-Lite",
     .inside = [](Inside& in) {
       in.SendTo("sendto", Socket(AF_INET, SOCK_DGRAM), MakeAddress("127.0.0.1", in.Port("udp")));
       in.To("connect", "127.0.0.1", in.Port("udp"), SOCK_DGRAM);
       in.To("mapped", "::ffff:127.0.0.1", in.Port("udp"), SOCK_DGRAM);
       in.Maybe().SendTo("lite", Socket(AF_INET, SOCK_DGRAM, IPPROTO_UDPLITE), MakeAddress("127.0.0.1", in.Port("lite")));
     }},
    {.id = "E-30", .what = "ping, raw and packet sockets",
     .inside = [](Inside& in) {
       in.Maybe().Reports("ping", Socket(AF_INET, SOCK_DGRAM, IPPROTO_ICMP));
       in.Reports("raw", Socket(AF_INET, SOCK_RAW, IPPROTO_ICMP));
       in.Reports("raw6", Socket(AF_INET6, SOCK_RAW, IPPROTO_ICMPV6));
       in.Reports("packet", Socket(AF_PACKET, SOCK_RAW, 0));
     }},
    {.id = "E-31", .what = "other families: netlink, vsock, alg, xdp and the rest",
     .inside = [](Inside& in) {
       in.Reports("netlink", Socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE));
       in.Reports("audit", Socket(AF_NETLINK, SOCK_RAW, 9));
       // Whatever this kernel knows beside the internet's and unix.
       for (int family = 3; family < 48; ++family)
         if (family != AF_INET6 && family != AF_NETLINK && family != AF_PACKET)
           in.Maybe().Reports("family" + std::to_string(family), std::max({Socket(family, SOCK_STREAM), Socket(family, SOCK_DGRAM), Socket(family, SOCK_SEQPACKET), Socket(family, SOCK_RAW)}));
     }},
    {.id = "E-32", .what = "another address at the proxy's port number",
     .inside = [](Inside& in) {
       in.To("loopback", "127.0.0.2", in.Port("proxy"));
       if (in.Text("away").empty()) in.Maybe();
       in.To("node", "198.51.100.1", in.Port("proxy"));
     }},
    {.id = "E-33", .what = "a permitted connection is taken apart by AF_UNSPEC and its socket used again",
     .inside = [](Inside& in) {
       const auto undone = [&](bool brief) {
         const long fd = in.Proxy();
         sockaddr none{};
         none.sa_family = AF_UNSPEC;
         if (fd >= 0) (void)Raw(SYS_connect, fd, Of(&none), brief ? 2 : sizeof(none));
         return fd;
       };
       in.ConnectAndSend("connect", undone(false), MakeAddress("127.0.0.1", in.Port("tcp")));
       in.ConnectAndSend("brief", undone(true), MakeAddress("127.0.0.1", in.Port("tcp")));
       in.SendTo("fastopen", undone(false), MakeAddress("127.0.0.1", in.Port("tcp")), "sendto", MSG_FASTOPEN);
       ListenAnd(in, "listen", undone(false), false);
     },
     .answer = Come},
    {.id = "E-34", .what = "other spellings of an address: any, mapped, other loopbacks, scopes",
     .inside = [](Inside& in) {
       const int tcp = in.Port("tcp"), proxy = in.Port("proxy");
       in.To("any", "0.0.0.0", tcp);
       in.To("mapped", "::ffff:127.0.0.1", tcp);
       in.To("mapped-any", "::ffff:0.0.0.0", tcp);
       in.To("second", "127.0.0.2", proxy);
       in.To("far", "127.1.2.3", proxy);
       in.To("mapped-far", "::ffff:127.1.2.3", proxy);
       in.To("six", "::1", in.Port("tcp6"));
       in.To("any6", "::", in.Port("tcp6"));
       in.Maybe().To("compatible", "::127.0.0.1", tcp, SOCK_STREAM | SOCK_NONBLOCK);
       Address scoped = MakeAddress("::ffff:127.0.0.1", tcp);
       reinterpret_cast<sockaddr_in6*>(scoped.get())->sin6_scope_id = 77;
       in.ConnectAndSend("scope", Socket(AF_INET6, SOCK_STREAM), scoped);
     }},
    {.id = "E-35", .what = "the right address on the wrong socket, and the reverse",
     .inside = [](Inside& in) {
       in.To("udp", "127.0.0.1", in.Port("udp_proxy"), SOCK_DGRAM);
       in.Maybe().ConnectAndSend("four-six", Socket(AF_INET, SOCK_STREAM), MakeAddress("::1", in.Port("tcp6")));
       in.Maybe().ConnectAndSend("four-unix", Socket(AF_INET, SOCK_STREAM), MakeAddress(in.Text("stream")));
       in.Maybe().ConnectAndSend("unix-four", Socket(AF_UNIX, SOCK_STREAM), MakeAddress("127.0.0.1", in.Port("tcp")));
       // An IPv6 socket takes an address of the other family where its length allows it.
       in.Maybe().ConnectAndSend("six-four", Socket(AF_INET6, SOCK_STREAM), MakeAddress("127.0.0.1", in.Port("tcp")));
     }},
    {.id = "E-36", .what = "lengths of the address from too short to too long",
     .inside = [](Inside& in) {
       for (const long length : {16L, 17L, 28L, 64L, 128L, (1L << 32) + 16, 0L, 1L, 2L, 8L, 15L, 129L, 4096L, 1L << 20, -1L}) {
         const long fd = Socket(AF_INET, SOCK_STREAM);
         static char room[1 << 21];
         Address address = MakeAddress("127.0.0.1", in.Port("tcp"));
         std::memcpy(room, address.get(), sizeof(sockaddr_in));
         const std::string part = "length" + std::to_string(length);
         const long result = fd < 0 ? fd : Raw(SYS_connect, fd, Of(room), length);
         if (result == 0) (void)SendText(fd, in.Payload(part));
         (void)Raw(SYS_close, fd);
         if (length < 16 || (length > 128 && length < (1L << 32))) in.Maybe();
         in.Arrives(part, result);
       }
     }},
    {.id = "E-37", .what = "IP_OPTIONS: a source route sends the packets of a permitted connect by way of another host",
     .inside = [](Inside& in) {
       for (const bool strict : {false, true}) {
         const std::string part = strict ? "strict" : "loose";
         const unsigned char route[8] = {static_cast<unsigned char>(strict ? IPOPT_SSRR : IPOPT_LSRR), 7, 4, 127, 0, 0, 5, IPOPT_EOL};
         const long fd = Socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK);
         const long result = fd < 0 ? fd : Set(fd, IPPROTO_IP, IP_OPTIONS, route, sizeof(route));
         if (fd >= 0) (void)StartConnect(fd, "127.0.0.1", in.Port("proxy"));
         (void)in.Ask("route " + part);
         (void)Raw(SYS_close, fd);
         in.Judged(part, result);
       }
     },
     .prepare = ForgetPackets,
     .answer = [](Outside& outside, const std::string& question) {
       usleep(30'000);
       for (const std::string& packet : outside.OnLoopback())
         if (packet.size() > 20 && packet.substr(16, 4) == std::string("\x7f\0\0\x05", 4)) outside.Note(question.substr(6));
       return std::string();
     }},
    {.id = "E-38", .what = "IP_TRANSPARENT, SO_MARK, TCP_REPAIR and SO_BINDTODEVICE on a socket before it connects",
     .inside = [](Inside& in) {
       const long fd = Socket(AF_INET, SOCK_STREAM);
       in.Reports("transparent", fd < 0 ? fd : SetNumber(fd, IPPROTO_IP, IP_TRANSPARENT, 1));
       in.Reports("mark", fd < 0 ? fd : SetNumber(fd, SOL_SOCKET, SO_MARK, 1));
       in.Reports("repair", fd < 0 ? fd : SetNumber(fd, IPPROTO_TCP, TCP_REPAIR, 1));
       in.Reports("device", fd < 0 ? fd : Set(fd, SOL_SOCKET, SO_BINDTODEVICE, "lo", 3));
     }},
    {.id = "E-39", .what = "the module takes the proxy's port while the proxy is down",
     .inside = [](Inside& in) {
       for (const int protocol : {0, kMptcp}) {
         const std::string part = protocol == 0 ? "tcp" : "mptcp";
         const long fd = Socket(AF_INET, SOCK_STREAM, protocol);
         (void)in.Ask("proxy down");
         Address address = MakeAddress("127.0.0.1", in.Port("proxy"));
         long result = fd < 0 ? fd : Raw(SYS_bind, fd, Of(address.get()), address.size);
         if (result == 0) result = Raw(SYS_listen, fd, 1);
         (void)in.Ask("proxy up " + part);
         (void)Raw(SYS_close, fd);
         (void)in.Ask("proxy down");
         (void)in.Ask("proxy up again");
         in.Judged(part, result);
       }
     },
     .answer = Proxy, .clean = ProxyAgain},
    {.id = "E-40", .what = "the proxy is used as a relay to other ports of the node",
     .elsewhere = "what goes through the proxy is the proxy's to judge (SECURITY.md); the suite's own proxy relays nothing"},
    {.id = "E-41", .what = "a TCP connection from before the confinement",
     .inside = [](Inside& in) { in.Arrives("send", SendText(kFdTcp, in.Payload("send"))); }},
    {.id = "E-42", .what = "IPV6_RTHDR: segment routing sends a connection's packets by way of another host",
     .inside = [](Inside& in) {
       BeforeAndAfter(in, "route", true, true, [](long fd) {
         SegmentRouting route;
         inet_pton(AF_INET6, kSegment, &route.segments[1]);
         return Set(fd, IPPROTO_IPV6, IPV6_RTHDR, &route, sizeof(route));
       });
     },
     .prepare = ForgetPackets,
     .answer = Left},
    {.id = "E-43", .what = "SO_BINDTODEVICE and SO_BINDTOIFINDEX send a permitted connection's packets out of the node",
     .inside = [](Inside& in) {
       const std::string device = in.Text("away");
       const int index = static_cast<int>(in.Number("away_index"));
       for (const bool v6 : {false, true}) {
         BeforeAndAfter(in, v6 ? "device6" : "device", v6, v6, [&](long fd) { return Set(fd, SOL_SOCKET, SO_BINDTODEVICE, device.c_str(), device.size() + 1); });
         BeforeAndAfter(in, v6 ? "index6" : "index", v6, v6, [&](long fd) { return SetNumber(fd, SOL_SOCKET, 62, index); });
       }
     },
     .prepare = ForgetPackets, .answer = Left, .seconds = 12},
    {.id = "E-44", .what = "IPV6_2292PKTOPTIONS, ancillary data and the unicast interface do the same",
     .inside = [](Inside& in) {
       const int index = static_cast<int>(in.Number("away_index"));
       const auto maybe = [&](const std::string& name, bool v6, const std::function<long(long)>& apply) {
         const long fd = Socket(v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_NONBLOCK);
         const long result = fd < 0 ? fd : apply(fd);
         if (result == 0) (void)StartConnect(fd, v6 ? "::1" : "127.0.0.1", in.Port("proxy"));
         (void)in.Ask("left " + name);
         (void)Raw(SYS_close, fd);
         in.Maybe().Judged(name, result);
       };
       maybe("unicast4", false, [&](long fd) { return SetNumber(fd, IPPROTO_IP, 50, static_cast<int>(htonl(static_cast<uint32_t>(index)))); });
       maybe("unicast6", true, [&](long fd) { return SetNumber(fd, IPPROTO_IPV6, 76, static_cast<int>(htonl(static_cast<uint32_t>(index)))); });
       maybe("pktoptions", true, [&](long fd) {
         alignas(cmsghdr) char control[CMSG_SPACE(sizeof(SegmentRouting))] = {};
         auto* header = reinterpret_cast<cmsghdr*>(control);
         header->cmsg_level = IPPROTO_IPV6;
         header->cmsg_type = IPV6_RTHDR;
         header->cmsg_len = CMSG_LEN(sizeof(SegmentRouting));
         SegmentRouting route;
         inet_pton(AF_INET6, kSegment, &route.segments[1]);
         std::memcpy(CMSG_DATA(header), &route, sizeof(route));
         return Set(fd, IPPROTO_IPV6, 6, control, sizeof(control));
       });
       maybe("pktinfo", true, [&](long fd) {
         in6_pktinfo info{};
         info.ipi6_ifindex = static_cast<unsigned>(index);
         return Set(fd, IPPROTO_IPV6, IPV6_PKTINFO, &info, sizeof(info));
       });
     },
     .prepare = ForgetPackets, .answer = Left},
    {.id = "E-45", .what = "while the proxy is down the module connects to its own port and keeps the proxy from coming back",
     .inside = [](Inside& in) {
       const uint32_t port = static_cast<uint32_t>(in.Port("proxy"));
       // What is connected goes without TIME_WAIT, or the port would be taken for a minute after us.
       long last = -1;
       const auto attempt = [&](bool option, int rounds) {
         long result = -ECONNREFUSED;
         const linger off{1, 0};
         if (last >= 0) {
           (void)Set(last, SOL_SOCKET, SO_LINGER, &off, sizeof(off));
           (void)Raw(SYS_close, last);
           last = -1;
         }
         for (int i = 0; i < rounds && result < 0; ++i) {
           const long fd = Socket(AF_INET, SOCK_STREAM);
           if (fd < 0) return fd;
           // IP_LOCAL_PORT_RANGE: exactly the proxy's.
           const uint32_t range = port << 16 | port;
           if (option) (void)Set(fd, IPPROTO_IP, 51, &range, sizeof(range));
           result = StartConnect(fd, "127.0.0.1", static_cast<int>(port));
           if (result < 0) (void)Raw(SYS_close, fd);
           else last = fd;
         }
         return result;
       };
       (void)in.Ask("proxy down");
       long result = attempt(true, 1);
       (void)in.Ask("proxy up option");
       in.Judged("option", result);
       (void)attempt(false, 0);
       (void)in.Ask("proxy down");
       result = attempt(false, 3000);
       (void)in.Ask("proxy up loop");
       (void)attempt(false, 0);
       in.Maybe().Judged("loop", result);
     },
     // The kernel picks no port for a connect that anybody has bound, whatever the address.
     // And of all the ephemeral ports of this namespace, those about the proxy's are enough.
     .prepare = [](Outside& outside) {
       outside.StopNeighbours();
       const int port = outside.Number("proxy");
       std::ofstream("/proc/sys/net/ipv4/ip_local_port_range") << port - 100 << " " << port + 100 << std::flush;
     },
     .answer = Proxy,
     .clean = [](Outside& outside) {
       std::ofstream("/proc/sys/net/ipv4/ip_local_port_range") << "32768 60999" << std::flush;
       ProxyAgain(outside);
       outside.StartNeighbours();
     },
     .seconds = 20},
    {.id = "E-46", .what = "the supervisor takes the module's real uid for an instant and can be signalled meanwhile",
     .elsewhere = "of the supervisor: it changes effective ids alone; BrokerTest.PrivateSupervisorActsAsTheModuleToo and Target.E92_E132_E152_E154_E156_MemoryDescriptorsAndSignals"},
};

}  // namespace

std::span<const Row> InternetRows() { return kRows; }

}  // namespace bypass
