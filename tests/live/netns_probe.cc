// SPDX-License-Identifier: Apache-2.0
// netns-probe: socket options that could turn a connection elsewhere, before and after it is made. Its words
// are done one after the other and printed as "word -> result"; there is one current socket.
#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

namespace {

using Words = std::vector<std::string>;

constexpr int kBindToIfindex = 62, kIpUnicastIf = 50, kIpv6UnicastIf = 76, kIpv62292PktOptions = 6,
              kIpv6Rthdr = 57, kIpv6PktInfo = 50, kIpv62292Rthdr = 5, kIpv6NextHop = 9, kIpv6HopOpts = 54,
              kIpv6DstOpts = 59;
constexpr int kPatienceMs = 700;

int current = -1;

std::string Name(int error) {
  const char* name = strerrorname_np(error);
  return name != nullptr ? name : "errno" + std::to_string(error);
}
std::string Result(long value) { return value < 0 ? Name(errno) : "0"; }
long Number(const Words& words, size_t at, long otherwise = 0) {
  return at < words.size() && !words[at].empty() ? std::strtol(words[at].c_str(), nullptr, 0) : otherwise;
}

socklen_t Address(const std::string& host, long port, sockaddr_storage* storage) {
  *storage = {};
  if (host.find(':') != std::string::npos) {
    auto* in6 = reinterpret_cast<sockaddr_in6*>(storage);
    in6->sin6_family = AF_INET6;
    in6->sin6_port = htons(static_cast<uint16_t>(port));
    inet_pton(AF_INET6, host.c_str(), &in6->sin6_addr);
    return sizeof(*in6);
  }
  auto* in = reinterpret_cast<sockaddr_in*>(storage);
  in->sin_family = AF_INET;
  in->sin_port = htons(static_cast<uint16_t>(port));
  inet_pton(AF_INET, host.c_str(), &in->sin_addr);
  return sizeof(*in);
}

// A segment routing header: by way of `segment` to whatever is the destination.
struct SegmentRouting {
  uint8_t next_header = 0, length = 4, type = 4, segments_left = 1, last_entry = 1, flags = 0;
  uint16_t tag = 0;
  in6_addr segments[2] = {};
};
static_assert(sizeof(SegmentRouting) == 40);
SegmentRouting Route(const std::string& segment) {
  SegmentRouting route;
  inet_pton(AF_INET6, segment.c_str(), &route.segments[1]);
  return route;
}

template <typename T>
std::string Set(int level, int name, const T& value) {
  return Result(setsockopt(current, level, name, &value, sizeof(value)));
}

// A control message with one ancillary object.
template <typename T>
std::vector<char> Control(int level, int type, const T& value) {
  std::vector<char> control(CMSG_SPACE(sizeof(value)));
  msghdr message{};
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = level;
  header->cmsg_type = type;
  header->cmsg_len = CMSG_LEN(sizeof(value));
  std::memcpy(CMSG_DATA(header), &value, sizeof(value));
  return control;
}

in6_pktinfo PacketInfo(unsigned index) {
  in6_pktinfo info{};
  info.ipi6_ifindex = index;
  return info;
}

// "option,NAME,INTERFACE,SEGMENT"
std::string Option(const Words& words) {
  const std::string& name = words.at(1);
  const std::string& interface = words.at(2);
  const unsigned index = if_nametoindex(interface.c_str());
  if (name == "rthdr") return Set(IPPROTO_IPV6, kIpv6Rthdr, Route(words.at(3)));
  if (name == "rthdr2292") return Set(IPPROTO_IPV6, kIpv62292Rthdr, Route(words.at(3)));
  if (name == "pktoptions" || name == "pktoptions2292") {
    const auto control =
        Control(IPPROTO_IPV6, name == "pktoptions" ? kIpv6Rthdr : kIpv62292Rthdr, Route(words.at(3)));
    return Result(setsockopt(current, IPPROTO_IPV6, kIpv62292PktOptions, control.data(),
                             static_cast<socklen_t>(control.size())));
  }
  if (name == "pktoptionsinfo") {
    const auto control = Control(IPPROTO_IPV6, kIpv6PktInfo, PacketInfo(index));
    return Result(setsockopt(current, IPPROTO_IPV6, kIpv62292PktOptions, control.data(),
                             static_cast<socklen_t>(control.size())));
  }
  if (name == "pktinfo") return Set(IPPROTO_IPV6, kIpv6PktInfo, PacketInfo(index));
  if (name == "device")
    return Result(setsockopt(current, SOL_SOCKET, SO_BINDTODEVICE, interface.c_str(),
                             static_cast<socklen_t>(interface.size() + 1)));
  if (name == "ifindex") return Set(SOL_SOCKET, kBindToIfindex, static_cast<int>(index));
  if (name == "unicast4") return Set(IPPROTO_IP, kIpUnicastIf, htonl(index));
  if (name == "unicast6") return Set(IPPROTO_IPV6, kIpv6UnicastIf, htonl(index));
  if (name == "mark") return Set(SOL_SOCKET, SO_MARK, 1);
  if (name == "nexthop") {
    sockaddr_storage hop;
    Address(words.at(3), 0, &hop);
    return Set(IPPROTO_IPV6, kIpv6NextHop, *reinterpret_cast<sockaddr_in6*>(&hop));
  }
  // Loose and strict source routes by way of 198.51.100.77.
  if (name == "lsrr" || name == "ssrr") {
    const unsigned char route[8] = {static_cast<unsigned char>(name == "lsrr" ? IPOPT_LSRR : IPOPT_SSRR),
                                    7,
                                    4,
                                    198,
                                    51,
                                    100,
                                    77,
                                    IPOPT_EOL};
    return Result(setsockopt(current, IPPROTO_IP, IP_OPTIONS, route, sizeof(route)));
  }
  const unsigned char padding[8] = {0, 0, 1, 4, 0, 0, 0, 0};
  if (name == "hopopts")
    return Result(setsockopt(current, IPPROTO_IPV6, kIpv6HopOpts, padding, sizeof(padding)));
  if (name == "dstopts")
    return Result(setsockopt(current, IPPROTO_IPV6, kIpv6DstOpts, padding, sizeof(padding)));
  return "no such option";
}

// "send,TEXT[,CONTROL,INTERFACE,SEGMENT]"
std::string Send(const Words& words) {
  std::string text = words.at(1);
  iovec part{text.data(), text.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  std::vector<char> control;
  const std::string kind = words.size() > 2 ? words[2] : "";
  const unsigned index = words.size() > 3 ? if_nametoindex(words[3].c_str()) : 0;
  if (kind == "rthdr") control = Control(IPPROTO_IPV6, kIpv6Rthdr, Route(words.at(4)));
  if (kind == "pktinfo6") control = Control(IPPROTO_IPV6, kIpv6PktInfo, PacketInfo(index));
  if (kind == "pktinfo4") {
    in_pktinfo info{};
    info.ipi_ifindex = static_cast<int>(index);
    control = Control(IPPROTO_IP, IP_PKTINFO, info);
  }
  if (kind == "mark") control = Control(SOL_SOCKET, SO_MARK, 1);
  message.msg_control = control.empty() ? nullptr : control.data();
  message.msg_controllen = control.size();
  return Result(sendmsg(current, &message, MSG_NOSIGNAL | MSG_DONTWAIT));
}

std::string Connect(const Words& words) {
  sockaddr_storage address;
  const socklen_t size = Address(words.at(1), Number(words, 2), &address);
  if (connect(current, reinterpret_cast<sockaddr*>(&address), size) == 0) return "0";
  if (errno != EINPROGRESS) return Name(errno);
  pollfd ready{current, POLLOUT, 0};
  if (poll(&ready, 1, kPatienceMs) <= 0) return "EINPROGRESS";
  int error = 0;
  socklen_t length = sizeof(error);
  getsockopt(current, SOL_SOCKET, SO_ERROR, &error, &length);
  return error == 0 ? "0" : Name(error);
}

std::string Receive() {
  pollfd ready{current, POLLIN, 0};
  if (poll(&ready, 1, kPatienceMs) <= 0) return "silence";
  char buffer[256];
  const ssize_t got = recv(current, buffer, sizeof(buffer), MSG_DONTWAIT);
  if (got < 0) return Name(errno);
  std::string text(buffer, static_cast<size_t>(got));
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return "0 " + text;
}

// "loop,ADDRESS,PORT,TIMES": how often a connect on a fresh blocking socket succeeded, and the last error.
std::string Loop(const Words& words) {
  sockaddr_storage address;
  const socklen_t size = Address(words.at(1), Number(words, 2), &address);
  int successes = 0;
  std::string error = "0";
  for (long i = 0; i < Number(words, 3); ++i) {
    const int fd = socket(address.ss_family, SOCK_STREAM, 0);
    if (fd < 0) return "socket:" + Name(errno);
    if (connect(fd, reinterpret_cast<sockaddr*>(&address), size) == 0)
      ++successes;
    else
      error = Name(errno);
    close(fd);
  }
  return std::to_string(successes) + " " + error;
}

const std::map<std::string, std::string (*)(const Words&)> kWords = {
    {"open",
     [](const Words& w) {
       return Result(current =
                         socket(Number(w, 1) == 6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0));
     }},
    {"use", [](const Words& w) { return current = static_cast<int>(Number(w, 1)), std::string("0"); }},
    {"option", Option},
    {"connect", Connect},
    {"disconnect",
     [](const Words&) {
       sockaddr none{};
       none.sa_family = AF_UNSPEC;
       return Result(connect(current, &none, sizeof(none)));
     }},
    {"send", Send},
    {"receive", [](const Words&) { return Receive(); }},
    {"wait", [](const Words& w) { return Result(usleep(static_cast<useconds_t>(Number(w, 1) * 1000))); }},
    {"loop", Loop},
};

}  // namespace

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    Words words;
    std::string word(argv[i]);
    for (size_t at = 0; at <= word.size();) {
      const size_t comma = std::min(word.find(',', at), word.size());
      words.push_back(word.substr(at, comma - at));
      at = comma + 1;
    }
    const auto known = kWords.find(words[0]);
    if (known == kWords.end()) {
      fprintf(stderr, "no word '%s'\n", words[0].c_str());
      return 2;
    }
    const std::string result = known->second(words);
    printf("%s -> %s\n", argv[i], result.c_str());
    fflush(stdout);
  }
  return 0;
}
