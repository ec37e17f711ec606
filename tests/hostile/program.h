// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

// What the attacking programs share: words on the command line, each done in turn and answered by one line "word -> result".
namespace hostile {

using Words = std::vector<std::string>;

inline std::string Name(long error) {
  const char* name = strerrorname_np(static_cast<int>(error));
  return name != nullptr ? name : "errno" + std::to_string(error);
}
inline std::string Result(long value) { return value < 0 ? Name(errno) : "0"; }
inline long Number(const Words& words, size_t at, long otherwise = 0) {
  return at < words.size() && !words[at].empty() ? std::strtol(words[at].c_str(), nullptr, 0) : otherwise;
}

// Negative errno. Touches no errno of libc's: for threads without thread-local storage of their own, too.
inline long Raw(long nr, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0, long f = 0) {
  long result;
  register long r10 asm("r10") = d;
  register long r8 asm("r8") = e;
  register long r9 asm("r9") = f;
  asm volatile("syscall" : "=a"(result) : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9) : "rcx", "r11", "memory");
  return result;
}
inline long Of(const volatile void* pointer) { return reinterpret_cast<long>(pointer); }

struct Address {
  sockaddr_storage storage{};
  socklen_t size = 0;
  [[nodiscard]] sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
  [[nodiscard]] int family() const { return storage.ss_family; }
};
// "/path", "@name" or an IP address.
inline Address MakeAddress(const std::string& host, long port = 0) {
  Address address;
  if (host.starts_with('/') || host.starts_with('@')) {
    auto* un = reinterpret_cast<sockaddr_un*>(&address.storage);
    un->sun_family = AF_UNIX;
    std::memcpy(un->sun_path, host.data(), std::min(host.size(), sizeof(un->sun_path)));
    if (host[0] == '@') un->sun_path[0] = '\0';
    address.size = host[0] == '@' ? static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + host.size()) : sizeof(*un);
  } else if (host.find(':') != std::string::npos) {
    auto* in6 = reinterpret_cast<sockaddr_in6*>(&address.storage);
    in6->sin6_family = AF_INET6;
    in6->sin6_port = htons(static_cast<uint16_t>(port));
    inet_pton(AF_INET6, host.c_str(), &in6->sin6_addr);
    address.size = sizeof(*in6);
  } else {
    auto* in = reinterpret_cast<sockaddr_in*>(&address.storage);
    in->sin_family = AF_INET;
    in->sin_port = htons(static_cast<uint16_t>(port));
    inet_pton(AF_INET, host.c_str(), &in->sin_addr);
    address.size = sizeof(*in);
  }
  return address;
}

// Descriptors that a server outside hands over with the first byte of a connection; a negative errno where it cannot be reached.
inline std::vector<int> Receive(const std::string& path) {
  Address address = MakeAddress(path);
  const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  if (fd < 0 || connect(fd, address.get(), address.size) != 0) return {-errno};
  char byte;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * 16)];
  iovec part{&byte, 1};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  std::vector<int> fds;
  if (recvmsg(fd, &message, 0) == 1)
    for (cmsghdr* c = CMSG_FIRSTHDR(&message); c != nullptr; c = CMSG_NXTHDR(&message, c)) {
      if (c->cmsg_type != SCM_RIGHTS) continue;
      const size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
      fds.resize(count);
      std::memcpy(fds.data(), CMSG_DATA(c), count * sizeof(int));
    }
  // To its end: then the other side has closed its own copy.
  while (read(fd, &byte, 1) > 0) {
  }
  close(fd);
  return fds.empty() ? std::vector<int>{-ENODATA} : fds;
}

// Counts how often something came out how: "0:12 EACCES:7".
class Tally {
 public:
  void Add(const std::string& name) { ++counts_[name]; }
  void AddResult(long result) { Add(result >= 0 ? "0" : Name(-result)); }
  [[nodiscard]] std::string Text() const {
    std::string text;
    for (const auto& [name, count] : counts_) text += (text.empty() ? "" : " ") + name + ":" + std::to_string(count);
    return text;
  }

 private:
  std::map<std::string, long> counts_;
};

inline Words Split(const std::string& text) {
  Words words;
  for (size_t at = 0; at <= text.size();) {
    const size_t comma = std::min(text.find(',', at), text.size());
    words.push_back(text.substr(at, comma - at));
    at = comma + 1;
  }
  return words;
}

using Operations = std::map<std::string, std::string (*)(const Words&)>;

inline void Print(const std::string& word, const std::string& result) {
  printf("%s -> %s\n", word.c_str(), result.c_str());
  fflush(stdout);
}
inline std::string Do(const Operations& operations, const std::string& text) {
  const Words words = Split(text);
  const auto operation = operations.find(words[0]);
  return operation == operations.end() ? "(no such operation)" : operation->second(words);
}

}  // namespace hostile
