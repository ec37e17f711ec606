// SPDX-License-Identifier: Apache-2.0
// oarlock-probe: does what its words say, one after the other, and prints what came of each as "word -> result". A word is an
// operation and its arguments, separated by commas: "tcp,127.0.0.1,8080". A result is "0", "0 text" or the name of an errno.
// Runs inside the sandbox and, as the twin of a denial, outside.
#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

namespace {

using Words = std::vector<std::string>;

std::string Name(int error) {
  const char* name = strerrorname_np(error);
  return name != nullptr ? name : "errno" + std::to_string(error);
}
std::string Result(long value) { return value < 0 ? Name(errno) : "0"; }
long Number(const Words& words, size_t at, long otherwise = 0) {
  return at < words.size() && !words[at].empty() ? std::strtol(words[at].c_str(), nullptr, 0) : otherwise;
}

socklen_t MakeAddress(const std::string& host, long port, sockaddr_storage* storage) {
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

socklen_t MakeUnix(const std::string& name, sockaddr_un* address) {
  *address = {};
  address->sun_family = AF_UNIX;
  std::memcpy(address->sun_path, name.data(), std::min(name.size(), sizeof(address->sun_path)));
  if (!name.empty() && name[0] == '@') {
    address->sun_path[0] = '\0';
    return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
  }
  return sizeof(*address);
}

// The greeting, so that "0" means that the other end is really there.
std::string Greeting(int fd) {
  pollfd ready{fd, POLLIN, 0};
  char buffer[256];
  if (poll(&ready, 1, 3000) <= 0) return "0 (silent)";
  const ssize_t got = recv(fd, buffer, sizeof(buffer), 0);
  if (got <= 0) return "0 (closed)";
  std::string text(buffer, static_cast<size_t>(got));
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return "0 " + text;
}

std::string Connect(int domain, int type, int protocol, const void* address, socklen_t size) {
  const int fd = socket(domain, type, protocol);
  if (fd < 0) return "socket:" + Name(errno);
  std::string result = connect(fd, static_cast<const sockaddr*>(address), size) == 0 ? Greeting(fd) : Name(errno);
  close(fd);
  return result;
}

std::string Tcp(const Words& words, int type, int protocol) {
  sockaddr_storage address;
  const socklen_t size = MakeAddress(words.at(1), Number(words, 2), &address);
  return Connect(address.ss_family, type, protocol, &address, size);
}

// An address of the first host on an AF_INET6 socket, whatever its own family.
std::string TcpNonBlocking(const Words& words) {
  sockaddr_storage address;
  const socklen_t size = MakeAddress(words.at(1), Number(words, 2), &address);
  const int fd = socket(address.ss_family, SOCK_STREAM | SOCK_NONBLOCK, 0);
  if (fd < 0) return "socket:" + Name(errno);
  if (connect(fd, reinterpret_cast<sockaddr*>(&address), size) == 0) return Greeting(fd);
  if (errno != EINPROGRESS) return Name(errno);
  pollfd ready{fd, POLLOUT, 0};
  if (poll(&ready, 1, 5000) <= 0) return "EINPROGRESS timeout";
  int error = 0;
  socklen_t length = sizeof(error);
  getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length);
  return "EINPROGRESS " + (error == 0 ? Greeting(fd) : Name(error));
}

std::string Unix(const Words& words, int type) {
  sockaddr_un address;
  const socklen_t size = MakeUnix(words.at(1), &address);
  return Connect(AF_UNIX, type, 0, &address, size);
}

std::string FastOpen(const Words& words, int how) {
  sockaddr_storage address;
  const socklen_t size = MakeAddress(words.at(1), Number(words, 2), &address);
  const int fd = socket(address.ss_family, SOCK_STREAM, static_cast<int>(Number(words, 3)));
  if (fd < 0) return "socket:" + Name(errno);
  char text[] = "fastopen";
  iovec part{text, sizeof(text) - 1};
  mmsghdr message{};
  message.msg_hdr.msg_name = &address;
  message.msg_hdr.msg_namelen = size;
  message.msg_hdr.msg_iov = &part;
  message.msg_hdr.msg_iovlen = 1;
  if (how == 0) return Result(sendto(fd, text, sizeof(text) - 1, MSG_FASTOPEN, reinterpret_cast<sockaddr*>(&address), size));
  if (how == 1) return Result(sendmsg(fd, &message.msg_hdr, MSG_FASTOPEN));
  return Result(sendmmsg(fd, &message, 1, MSG_FASTOPEN));
}

// A send with a name on one end of a datagram pair: reaches any path without socket() or connect().
std::string PairSend(const Words& words, int type) {
  int pair[2];
  if (socketpair(AF_UNIX, type, 0, pair) != 0) return "socketpair:" + Name(errno);
  sockaddr_un address;
  const socklen_t size = MakeUnix(words.at(1), &address);
  return Result(sendto(pair[0], "pair", 4, 0, reinterpret_cast<sockaddr*>(&address), size));
}

std::string PairConnect(const Words& words) {
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0) return "socketpair:" + Name(errno);
  sockaddr_un address;
  const socklen_t size = MakeUnix(words.at(1), &address);
  return Result(connect(pair[0], reinterpret_cast<sockaddr*>(&address), size));
}

// "option,LEVEL,NAME[,VALUE]" on a fresh TCP socket (IPv6 for level 41).
std::string Option(const Words& words) {
  const long level = Number(words, 1);
  const int fd = socket(level == IPPROTO_IPV6 ? AF_INET6 : AF_INET, SOCK_STREAM, 0);
  if (fd < 0) return "socket:" + Name(errno);
  const int value = static_cast<int>(Number(words, 3, 1));
  return Result(setsockopt(fd, static_cast<int>(level), static_cast<int>(Number(words, 2)), &value, sizeof(value)));
}

std::string Linger(const Words& words) {
  const int fd = socket(static_cast<int>(Number(words, 3, AF_INET)), SOCK_STREAM, 0);
  if (fd < 0) return "socket:" + Name(errno);
  linger value{static_cast<int>(Number(words, 1)), static_cast<int>(Number(words, 2))};
  if (setsockopt(fd, SOL_SOCKET, SO_LINGER, &value, sizeof(value)) != 0) return Name(errno);
  socklen_t size = sizeof(value);
  getsockopt(fd, SOL_SOCKET, SO_LINGER, &value, &size);
  return "0 " + std::to_string(value.l_onoff) + " " + std::to_string(value.l_linger);
}

std::string Bind(const Words& words, bool then_listen) {
  sockaddr_storage storage{};
  socklen_t size = 0;
  int domain = AF_UNIX;
  if (words.at(1)[0] == '/' || words.at(1)[0] == '@') {
    size = MakeUnix(words.at(1), reinterpret_cast<sockaddr_un*>(&storage));
  } else {
    size = MakeAddress(words.at(1), Number(words, 2), &storage);
    domain = storage.ss_family;
  }
  const int fd = socket(domain, SOCK_STREAM, 0);
  if (fd < 0) return "socket:" + Name(errno);
  if (bind(fd, reinterpret_cast<sockaddr*>(&storage), size) != 0) return Name(errno);
  return then_listen ? Result(listen(fd, 1)) : "0";
}

std::string Listen(const Words& words) {
  const int fd = socket(static_cast<int>(Number(words, 1, AF_INET)), SOCK_STREAM, static_cast<int>(Number(words, 2)));
  if (fd < 0) return "socket:" + Name(errno);
  return Result(listen(fd, 1));
}

std::string Accept(const Words& words) {
  const int fd = socket(static_cast<int>(Number(words, 1, AF_INET)), SOCK_STREAM, 0);
  if (fd < 0) return "socket:" + Name(errno);
  return Result(accept4(fd, nullptr, nullptr, static_cast<int>(Number(words, 2))));
}

// "rawconnect,DOMAIN,TYPE,LENGTH,HEX": any bytes as an address. LENGTH may differ from what HEX holds.
std::string RawConnect(const Words& words) {
  const int fd = socket(static_cast<int>(Number(words, 1)), static_cast<int>(Number(words, 2)), 0);
  if (fd < 0) return "socket:" + Name(errno);
  unsigned char bytes[4096] = {};
  const std::string hex = words.size() > 4 ? words[4] : "";
  for (size_t i = 0; i + 1 < hex.size(); i += 2) bytes[i / 2] = static_cast<unsigned char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  return Result(syscall(SYS_connect, fd, bytes, Number(words, 3)));
}

// "badconnect,FD": the proxy's address on a descriptor that is none of ours to connect.
std::string BadDescriptor(const Words& words) {
  sockaddr_storage address;
  const socklen_t size = MakeAddress(words.at(2), Number(words, 3), &address);
  return Result(connect(static_cast<int>(Number(words, 1)), reinterpret_cast<sockaddr*>(&address), size));
}

std::string Pointer(const Words& words) {
  const int fd = socket(static_cast<int>(Number(words, 1)), SOCK_STREAM, 0);
  if (fd < 0) return "socket:" + Name(errno);
  return Result(syscall(SYS_connect, fd, Number(words, 2), 16));
}

// connect, connect(AF_UNSPEC), connect again.
std::string Reconnect(const Words& words) {
  sockaddr_storage address;
  const socklen_t size = MakeAddress(words.at(1), Number(words, 2), &address);
  const int fd = socket(address.ss_family, SOCK_STREAM, 0);
  if (fd < 0) return "socket:" + Name(errno);
  std::string steps = Result(connect(fd, reinterpret_cast<sockaddr*>(&address), size));
  steps += " " + Result(connect(fd, reinterpret_cast<sockaddr*>(&address), size));
  sockaddr none{};
  none.sa_family = AF_UNSPEC;
  steps += " " + Result(connect(fd, &none, sizeof(none)));
  steps += " " + Result(connect(fd, reinterpret_cast<sockaddr*>(&address), size));
  return steps;
}

std::string Open(const Words& words) {
  const int fd = open(words.at(1).c_str(), static_cast<int>(Number(words, 2)) | O_CLOEXEC, static_cast<mode_t>(Number(words, 3, 0600)));
  const std::string result = Result(fd);
  if (fd >= 0) close(fd);
  return result;
}

std::string Read(const Words& words) {
  const int fd = open(words.at(1).c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return Name(errno);
  char buffer[256];
  const ssize_t got = read(fd, buffer, sizeof(buffer));
  close(fd);
  return got < 0 ? Name(errno) : "0 " + std::string(buffer, static_cast<size_t>(got));
}

std::string Write(const Words& words) {
  const int fd = open(words.at(1).c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0) return Name(errno);
  const std::string result = Result(write(fd, "x", 1));
  close(fd);
  return result;
}

std::string List(const Words& words) {
  DIR* directory = opendir(words.at(1).c_str());
  if (directory == nullptr) return Name(errno);
  closedir(directory);
  return "0";
}

// The syscall, so that libc's own checks do not stand between.
std::string Call(const Words& words) {
  long arguments[6] = {};
  for (size_t i = 0; i < 6; ++i) arguments[i] = Number(words, i + 2);
  errno = 0;
  return Result(syscall(Number(words, 1), arguments[0], arguments[1], arguments[2], arguments[3], arguments[4], arguments[5]));
}

std::string Descriptors() {
  std::string text = "0";
  for (int fd = 0; fd < 1024; ++fd)
    if (fcntl(fd, F_GETFD) >= 0) text += " " + std::to_string(fd);
  return text;
}

std::string Status(const Words& words) {
  FILE* file = fopen("/proc/self/status", "re");
  if (file == nullptr) return Name(errno);
  char line[1024];
  std::string result = "absent";
  while (fgets(line, sizeof(line), file) != nullptr)
    if (std::strncmp(line, words.at(1).c_str(), words.at(1).size()) == 0 && line[words.at(1).size()] == ':') {
      result = "0 ";
      for (const char* c = line + words.at(1).size() + 1; *c != '\0' && *c != '\n'; ++c)
        if (*c != '\t' || result.back() != ' ') result += *c == '\t' ? ' ' : *c;
    }
  fclose(file);
  while (!result.empty() && result.back() == ' ') result.pop_back();
  return result;
}

std::string Limit(const Words& words) {
  rlimit limit{};
  if (getrlimit(static_cast<__rlimit_resource_t>(Number(words, 1)), &limit) != 0) return Name(errno);
  return "0 " + std::to_string(limit.rlim_cur) + " " + std::to_string(limit.rlim_max);
}

std::string Fork(const Words&) {
  const pid_t pid = fork();
  if (pid < 0) return Name(errno);
  if (pid == 0) _exit(0);
  int status = 0;
  waitpid(pid, &status, 0);
  return "0";
}

std::string Environment(const Words& words) {
  const char* value = getenv(words.at(1).c_str());
  return value == nullptr ? "absent" : "0 " + std::string(value);
}

std::string Sleep(const Words& words) {
  usleep(static_cast<useconds_t>(Number(words, 1) * 1000));
  return "0";
}

const std::map<std::string, std::string (*)(const Words&)> kOperations = {
    {"tcp", [](const Words& w) { return Tcp(w, SOCK_STREAM, static_cast<int>(Number(w, 3))); }},
    {"udp", [](const Words& w) { return Tcp(w, SOCK_DGRAM, 0); }},
    {"tcpnb", TcpNonBlocking},
    {"reconnect", Reconnect},
    {"unix", [](const Words& w) { return Unix(w, SOCK_STREAM); }},
    {"unixseq", [](const Words& w) { return Unix(w, SOCK_SEQPACKET); }},
    {"unixnb", [](const Words& w) { return Unix(w, SOCK_STREAM | SOCK_NONBLOCK); }},
    {"socket", [](const Words& w) { return Result(socket(static_cast<int>(Number(w, 1)), static_cast<int>(Number(w, 2)), static_cast<int>(Number(w, 3)))); }},
    {"socketpair", [](const Words& w) { int p[2]; return Result(socketpair(static_cast<int>(Number(w, 1)), static_cast<int>(Number(w, 2)), 0, p)); }},
    {"pairsend", [](const Words& w) { return PairSend(w, SOCK_DGRAM); }},
    {"rawpairsend", [](const Words& w) { return PairSend(w, SOCK_RAW); }},
    {"pairconnect", PairConnect},
    {"fastopen", [](const Words& w) { return FastOpen(w, 0); }},
    {"fastopenmsg", [](const Words& w) { return FastOpen(w, 1); }},
    {"fastopenmmsg", [](const Words& w) { return FastOpen(w, 2); }},
    {"option", Option},
    {"linger", Linger},
    {"bind", [](const Words& w) { return Bind(w, false); }},
    {"bindlisten", [](const Words& w) { return Bind(w, true); }},
    {"listen", Listen},
    {"accept", Accept},
    {"rawconnect", RawConnect},
    {"badconnect", BadDescriptor},
    {"pointer", Pointer},
    {"open", Open},
    {"read", Read},
    {"write", Write},
    {"list", List},
    {"call", Call},
    {"kill", [](const Words& w) { return Result(kill(static_cast<pid_t>(Number(w, 1)), static_cast<int>(Number(w, 2)))); }},
    {"fds", [](const Words&) { return Descriptors(); }},
    {"status", Status},
    {"limit", Limit},
    {"fork", Fork},
    {"env", Environment},
    {"sleep", Sleep},
    {"uid", [](const Words&) { return "0 " + std::to_string(getuid()) + " " + std::to_string(getgid()); }},
    {"pid", [](const Words&) { return "0 " + std::to_string(getpid()); }},
    {"cwd", [](const Words&) { char path[4096]; return getcwd(path, sizeof(path)) == nullptr ? Name(errno) : "0 " + std::string(path); }},
    {"dumpable", [](const Words& w) { return Result(prctl(PR_SET_DUMPABLE, Number(w, 1))); }},
};

}  // namespace

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    Words words;
    std::string text(argv[i]);
    for (size_t at = 0; at <= text.size();) {
      const size_t comma = std::min(text.find(',', at), text.size());
      words.push_back(text.substr(at, comma - at));
      at = comma + 1;
    }
    const auto operation = kOperations.find(words[0]);
    if (operation == kOperations.end()) {
      fprintf(stderr, "no operation '%s'\n", words[0].c_str());
      return 2;
    }
    printf("%s -> %s\n", argv[i], operation->second(words).c_str());
    fflush(stdout);
  }
  return 0;
}
