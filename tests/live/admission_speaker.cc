// SPDX-License-Identifier: Apache-2.0
// admission-speaker: speaks to a supervisor's sockets as no launcher of ours would. Does what its words say,
// one after the other, and prints what came of each as "word -> result", like oarlock-probe. A word is a step
// and its arguments, separated by commas. There is one current socket, one listener and one text; a
// descriptor to send is named by a letter.
#include <arpa/inet.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "notif/base/pass_fd.h"

namespace {

using Words = std::vector<std::string>;

constexpr unsigned kSetModeFilter = 1;
constexpr unsigned long kNewListener = 1UL << 3;
constexpr unsigned kRetAllow = 0x7fff0000U, kRetUserNotif = 0x7fc00000U;
constexpr int kWaitMs = 10'000;

int current = -1, listener = -1;
std::map<long, int> slots;
std::string text;

std::string Name(int error) {
  const char* name = strerrorname_np(error);
  return name != nullptr ? name : "errno" + std::to_string(error);
}
std::string Result(long value) { return value < 0 ? Name(errno) : "0"; }
long Number(const Words& words, size_t at, long otherwise = 0) {
  return at < words.size() && !words[at].empty() ? std::strtol(words[at].c_str(), nullptr, 0) : otherwise;
}

long NowMs() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000 + now.tv_nsec / 1'000'000;
}

int ConnectTo(const std::string& path, int type, int patience_s = kWaitMs / 1000) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), std::min(path.size(), sizeof(address.sun_path)));
  const int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  // Neither a full backlog nor a supervisor that stopped reading may hold a test up.
  const timeval limit{patience_s, 0};
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
  if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0) return fd;
  const int error = errno;
  close(fd);
  errno = error;
  return -1;
}

std::string Connect(const Words& words, int type) {
  current = ConnectTo(words.at(1), type);
  return Result(current);
}

// Connected by a process that is gone by the time anything is sent.
struct Errand {
  const char* path;
  int fd, error;
};
int RunErrand(void* argument) {
  auto* errand = static_cast<Errand*>(argument);
  errand->fd = ConnectTo(errand->path, SOCK_STREAM);
  errand->error = errno;
  syscall(SYS_exit, 0);
  return 0;
}
std::string ConnectByAnother(const Words& words) {
  alignas(16) static char stack[64 * 1024];
  Errand errand{words.at(1).c_str(), -1, 0};
  const pid_t pid = clone(RunErrand, stack + sizeof(stack), CLONE_VM | CLONE_FILES | SIGCHLD, &errand);
  if (pid < 0) return Name(errno);
  waitpid(pid, nullptr, 0);
  current = errand.fd;
  return errand.fd < 0 ? Name(errand.error) : "0";
}

std::string TakeUid(const Words& words) {
  const auto id = static_cast<uid_t>(Number(words, 1));
  if (setgroups(0, nullptr) != 0 || setresgid(id, id, id) != 0 || setresuid(id, id, id) != 0)
    return Name(errno);
  return "0";
}

std::string Groups(const Words& words) {
  std::vector<gid_t> groups;
  for (size_t i = 1; i < words.size(); ++i) groups.push_back(static_cast<gid_t>(Number(words, i)));
  return Result(setgroups(groups.size(), groups.data()));
}

std::string DropCapabilities() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct none[2]{};
  return Result(syscall(SYS_capset, &header, none));
}

// Every connect is notified; the rest is free, so that the message can be sent.
std::string Filter(bool with_listener) {
  sock_filter code[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
                        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_connect, 0, 1),
                        BPF_STMT(BPF_RET | BPF_K, with_listener ? kRetUserNotif : kRetAllow),
                        BPF_STMT(BPF_RET | BPF_K, kRetAllow)};
  const sock_fprog program{4, code};
  const long made = syscall(SYS_seccomp, kSetModeFilter, with_listener ? kNewListener : 0, &program);
  if (with_listener && made >= 0) listener = static_cast<int>(made);
  return Result(made);
}

// Whatever it is, the supervisor is asked; but for what it takes to speak to it and to go on.
constexpr long kNotAsked[] = {SYS_sendmsg,
                              SYS_recvmsg,
                              SYS_recvfrom,
                              SYS_poll,
                              SYS_shutdown,
                              SYS_close,
                              SYS_read,
                              SYS_write,
                              SYS_exit,
                              SYS_exit_group,
                              SYS_rt_sigreturn,
                              SYS_futex,
                              SYS_clock_gettime,
                              SYS_mmap,
                              SYS_munmap,
                              SYS_brk,
                              SYS_fstat,
                              SYS_newfstatat,
                              SYS_clock_nanosleep,
                              SYS_dup};
std::string FilterEverything() {
  std::vector<sock_filter> code = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0)};
  for (const long nr : kNotAsked) {
    code.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(nr), 0, 1));
    code.push_back(BPF_STMT(BPF_RET | BPF_K, kRetAllow));
  }
  code.push_back(BPF_STMT(BPF_RET | BPF_K, kRetUserNotif));
  const sock_fprog program{static_cast<unsigned short>(code.size()), code.data()};
  const long made = syscall(SYS_seccomp, kSetModeFilter, kNewListener, &program);
  if (made >= 0) listener = static_cast<int>(made);
  return Result(made);
}

// "fuzz,SEED,COUNT": calls of any number with any arguments; how many of them were made, and how many
// succeeded.
std::string Fuzz(const Words& words) {
  uint64_t state = static_cast<uint64_t>(Number(words, 1)) * 2654435761U + 1;
  const auto random = [&state] {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
  };
  static char memory[4096];
  const int sockets[] = {socket(AF_UNIX, SOCK_STREAM, 0), socket(AF_INET, SOCK_STREAM, 0)};
  const auto argument = [&]() -> uint64_t {
    switch (random() % 10) {
      case 0:
        return 0;
      case 1:
        return random() % 64;
      case 2:
        return static_cast<uint64_t>(sockets[random() % 2]);
      case 3:
        return reinterpret_cast<uint64_t>(memory) + random() % sizeof(memory);
      case 4:
        return UINT64_MAX - random() % 4;
      case 5:
        return random();
      case 6:
        return random() & 0xffffffff;
      case 7:
        return 0x7fffffff;
      case 8:
        return (random() % 2 << 32) | random() % 128;
      default:
        return 1ULL << random() % 64;
    }
  };
  // The calls with a meaning to the supervisor half of the time.
  constexpr long kOften[] = {SYS_connect,  SYS_socket,     SYS_socketpair, SYS_bind,   SYS_sendto,
                             SYS_sendmmsg, SYS_setsockopt, SYS_listen,     SYS_accept4};
  long made = 0, succeeded = 0;
  for (long i = 0; i < Number(words, 2); ++i) {
    const long nr =
        random() % 2 == 0 ? kOften[random() % std::size(kOften)] : static_cast<long>(random() % 480);
    if (nr == 335 || nr == 336)
      continue;  // uretprobe and uprobe: no filter is asked, and SIGILL is the answer
    if (std::find(std::begin(kNotAsked), std::end(kNotAsked), nr) != std::end(kNotAsked)) continue;
    for (char& byte : memory)
      if (random() % 8 == 0) byte = static_cast<char>(random() % 4 == 0 ? random() : random() % 11);
    const uint64_t arguments[] = {argument(), argument(), argument(), argument(), argument(), argument()};
    ++made;
    if (syscall(nr, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4], arguments[5]) >= 0)
      ++succeeded;
  }
  return "0 " + std::to_string(made) + " " + std::to_string(succeeded);
}

// The listener of a process that is not us: we have no filter at all.
int InstallAndStay(void* made) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  const std::string result = Filter(true);
  *static_cast<volatile int*>(made) = result == "0" ? 1 : 2;
  for (;;) syscall(SYS_pause);
}
std::string ForeignFilter() {
  alignas(16) static char stack[64 * 1024];
  volatile int made = 0;
  // Shares our memory and our descriptors, and nothing else.
  if (clone(InstallAndStay, stack + sizeof(stack), CLONE_VM | CLONE_FILES | SIGCHLD,
            const_cast<int*>(&made)) < 0)
    return Name(errno);
  while (made == 0) usleep(1000);
  return made == 1 ? "0" : "filter";
}

std::string Load(const Words& words) {
  FILE* file = fopen(words.at(1).c_str(), "re");
  if (file == nullptr) return Name(errno);
  text.clear();
  char buffer[65536];
  for (size_t got = 0; (got = fread(buffer, 1, sizeof(buffer), file)) > 0;) text.append(buffer, got);
  fclose(file);
  return "0 " + std::to_string(text.size());
}

// A TCP connection that cannot get rid of what was written and whose last close waits `seconds`. Its other
// end goes with us.
int Lingering(int seconds) {
  const int listening = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  if (bind(listening, reinterpret_cast<sockaddr*>(&address), size) != 0 || listen(listening, 1) != 0 ||
      getsockname(listening, reinterpret_cast<sockaddr*>(&address), &size) != 0)
    return -1;
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (connect(fd, reinterpret_cast<sockaddr*>(&address), size) != 0) return -1;
  static char filling[65536];
  while (send(fd, filling, sizeof(filling), MSG_DONTWAIT | MSG_NOSIGNAL) > 0) continue;
  const linger wait{1, seconds};
  setsockopt(fd, SOL_SOCKET, SO_LINGER, &wait, sizeof(wait));
  return fd;
}

int MakeDescriptor(char letter) {
  int pair[2];
  switch (letter) {
    case 'L':
      return dup(listener);
    case 'n':
      return open("/dev/null", O_RDWR);
    case 'd':
      return open("/", O_RDONLY | O_DIRECTORY);
    case 'e':
      return epoll_create1(0);
    case 't':
      return socket(AF_INET, SOCK_STREAM, 0);
    case 'u':
      return socket(AF_INET, SOCK_DGRAM, 0);
    case 'p':
      return pipe(pair) == 0 ? pair[0] : -1;
    case 's':
      return socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0 ? pair[0] : -1;
    case 'm':
      return static_cast<int>(syscall(SYS_memfd_create, "anon_inode:seccomp notify", 0U));
    case 'w':
      return Lingering(8);
    case 'W':
      return Lingering(3600);
    default:
      return -1;
  }
}

// "send,LETTERS[,FROM[,COUNT]]": a part of the text with these descriptors; "-" for none.
std::string Send(const Words& words) {
  const std::string letters = words.at(1) == "-" ? "" : words.at(1);
  const auto from = static_cast<size_t>(Number(words, 2));
  const std::string part =
      from <= text.size() ? text.substr(from, static_cast<size_t>(Number(words, 3, 1L << 30))) : "";
  std::vector<int> fds;
  for (const char letter : letters) {
    fds.push_back(MakeDescriptor(letter));
    if (fds.back() < 0) return std::string("descriptor:") + Name(errno);
  }
  size_t sent = 0;
  do {
    const ssize_t wrote = oarlock::SendWithFds(current, part.data() + sent, part.size() - sent, sent == 0 ? std::span<const int>(fds) : std::span<const int>());
    if (wrote < 0) {
      for (const int fd : fds) close(fd);
      return Name(errno) + " after " + std::to_string(sent);
    }
    sent += static_cast<size_t>(wrote);
  } while (sent < part.size());
  for (const int fd : fds) close(fd);
  return "0";
}

// "sendas,PID": the text, with credentials of our saying.
std::string SendAs(const Words& words) {
  iovec piece{text.data(), text.size()};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(ucred)) + CMSG_SPACE(sizeof(int))] = {};
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_CREDENTIALS;
  header->cmsg_len = CMSG_LEN(sizeof(ucred));
  const ucred claimed{static_cast<pid_t>(Number(words, 1, getpid())), getuid(), getgid()};
  std::memcpy(CMSG_DATA(header), &claimed, sizeof(claimed));
  header = CMSG_NXTHDR(&message, header);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(header), &listener, sizeof(int));
  return Result(sendmsg(current, &message, MSG_NOSIGNAL));
}

std::string Say(const Words& words) {
  std::string line = words.at(1);
  for (size_t i = 2; i < words.size(); ++i) line += "," + words[i];
  return Result(send(current, line.data(), line.size(), MSG_NOSIGNAL));
}

// Until the other end has read all that was sent.
std::string Drain() {
  for (const long deadline = NowMs() + kWaitMs; NowMs() < deadline;) {
    int queued = 0;
    if (ioctl(current, SIOCOUTQ, &queued) != 0) return Name(errno);
    if (queued == 0) return "0";
    usleep(2000);
  }
  return "timeout";
}

// One line of a stream, or one packet.
std::string Line() {
  int type = SOCK_STREAM;
  socklen_t size = sizeof(type);
  getsockopt(current, SOL_SOCKET, SO_TYPE, &type, &size);
  std::string line;
  const long deadline = NowMs() + kWaitMs;
  for (;;) {
    pollfd ready{current, POLLIN, 0};
    const long left = deadline - NowMs();
    if (left <= 0 || poll(&ready, 1, static_cast<int>(left)) <= 0)
      return "timeout" + (line.empty() ? "" : " " + line);
    char buffer[8192];
    const ssize_t got = recv(current, buffer, type == SOCK_STREAM ? 1 : sizeof(buffer), 0);
    if (got < 0) return Name(errno);
    if (got == 0) return "closed" + (line.empty() ? "" : " " + line);
    line.append(buffer, static_cast<size_t>(got));
    if (type == SOCK_STREAM && line.back() != '\n') continue;
    while (!line.empty() && line.back() == '\n') line.pop_back();
    return "0 " + line;
  }
}

std::string TimedLine() {
  const long before = NowMs();
  const std::string line = Line();
  return std::to_string(NowMs() - before) + " " + line;
}

// "many,N,PATH": so many silent connections at once, all held; how many of them were turned away within a
// second.
std::string Many(const Words& words) {
  std::vector<int> fds;
  for (long i = 0; i < Number(words, 1); ++i) {
    fds.push_back(ConnectTo(words.at(2), SOCK_STREAM));
    if (fds.back() < 0) return Name(errno) + " at " + std::to_string(i);
  }
  usleep(1'000'000);
  int away = 0;
  std::string last;
  for (const int fd : fds) {
    char buffer[4096];
    const ssize_t got = recv(fd, buffer, sizeof(buffer), MSG_DONTWAIT);
    if (got > 0) last.assign(buffer, static_cast<size_t>(got));
    if (got >= 0) ++away;
  }
  while (!last.empty() && last.back() == '\n') last.pop_back();
  return "0 " + std::to_string(away) + " " + last;
}

std::string Fork() {
  fflush(stdout);
  const pid_t pid = fork();
  if (pid < 0) return Name(errno);
  if (pid == 0) return "0";
  int status = 0;
  waitpid(pid, &status, 0);
  _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
}

// One message with what came beside it, which stays open as long as we live.
std::string Receive() {
  char buffer[65536];
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * 16)];
  iovec piece{buffer, sizeof(buffer)};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  const ssize_t got = recvmsg(current, &message, 0);
  if (got < 0) return Name(errno);
  size_t descriptors = 0;
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr; header = CMSG_NXTHDR(&message, header))
    if (header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS)
      descriptors += (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
  return "0 " + std::to_string(got) + " " + std::to_string(descriptors);
}

// "serve,PATH,TYPE": accepts one connection, receives one message and answers with our text. The connection
// is current then.
std::string Serve(const Words& words) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, words.at(1).data(), std::min(words.at(1).size(), sizeof(address.sun_path)));
  const int listening = socket(AF_UNIX, static_cast<int>(Number(words, 2, SOCK_SEQPACKET)), 0);
  if (bind(listening, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0 ||
      listen(listening, 8) != 0)
    return Name(errno);
  printf("serving\n");
  fflush(stdout);
  current = accept(listening, nullptr, nullptr);
  const std::string received = Receive();
  if (!text.empty() && send(current, text.data(), text.size(), MSG_NOSIGNAL) < 0) return Name(errno);
  return received;
}

// "sendname,FD,TO": a message with a name, on an inherited socket. TO is a path or a port of 127.0.0.1.
std::string SendName(const Words& words) {
  sockaddr_storage address{};
  socklen_t size = 0;
  if (words.at(2)[0] == '/') {
    auto* to = reinterpret_cast<sockaddr_un*>(&address);
    to->sun_family = AF_UNIX;
    std::memcpy(to->sun_path, words[2].data(), std::min(words[2].size(), sizeof(to->sun_path)));
    size = sizeof(*to);
  } else {
    auto* to = reinterpret_cast<sockaddr_in*>(&address);
    to->sin_family = AF_INET;
    to->sin_port = htons(static_cast<uint16_t>(Number(words, 2)));
    to->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    size = sizeof(*to);
  }
  char bytes[] = "named";
  iovec piece{bytes, sizeof(bytes) - 1};
  msghdr message{};
  message.msg_name = &address;
  message.msg_namelen = size;
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  return Result(sendmsg(static_cast<int>(Number(words, 1)), &message, MSG_NOSIGNAL));
}

// A child that keeps the listener too and takes calls from under the supervisor's nose, answering EPERM.
// Before the filter's first call, and ended with us.
std::string Steal() {
  fflush(stdout);
  const pid_t pid = fork();
  if (pid != 0) return Result(pid);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  for (;;) {
    char notification[80] = {};
    if (ioctl(listener, _IOWR('!', 0, char[80]), notification) != 0) continue;
    struct {
      uint64_t id;
      int64_t value;
      int32_t error;
      uint32_t flags;
    } answer{};
    std::memcpy(&answer.id, notification, sizeof(answer.id));
    answer.error = -EPERM;
    ioctl(listener, _IOWR('!', 1, char[24]), &answer);
  }
}

// "crowd,THREADS,PATH": so many threads, each in a connect of its own that the broker does not take.
std::string Crowd(const Words& words) {
  for (long i = 0; i < Number(words, 1); ++i) {
    std::thread([path = words.at(2)] { (void)ConnectTo(path, SOCK_STREAM, 3600); }).detach();
  }
  usleep(1'000'000);
  return "0";
}

// "drip,COUNT,MS": one connect, then nothing for so long.
std::string Drip(const Words& words) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strcpy(address.sun_path, "/nonexistent");
  const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  int stolen = 0;
  for (long i = 0; i < Number(words, 1); ++i) {
    stolen +=
        connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0 && errno == EPERM ? 1 : 0;
    usleep(static_cast<useconds_t>(Number(words, 2) * 1000));
  }
  return "0 " + std::to_string(stolen);
}

std::string Hold() {
  char byte = 0;
  while (read(0, &byte, 1) > 0) continue;
  return "0";
}

const std::map<std::string, std::string (*)(const Words&)> kSteps = {
    {"connect", [](const Words& w) { return Connect(w, SOCK_STREAM); }},
    {"seqpacket", [](const Words& w) { return Connect(w, SOCK_SEQPACKET); }},
    {"connectby", ConnectByAnother},
    {"use", [](const Words& w) { return current = static_cast<int>(Number(w, 1)), std::string("0"); }},
    {"save", [](const Words& w) { return slots[Number(w, 1)] = current, std::string("0"); }},
    {"load", [](const Words& w) { return current = slots[Number(w, 1)], std::string("0"); }},
    {"close", [](const Words&) { return Result(close(current)); }},
    // A connect that leaves the current socket alone, and so what the supervisor says to one.
    {"reach",
     [](const Words& w) {
       const int fd = ConnectTo(w.at(1), static_cast<int>(Number(w, 2, SOCK_STREAM)));
       const std::string result = Result(fd);
       if (fd >= 0) close(fd);
       return result;
     }},
    {"uid", TakeUid},
    {"groups", Groups},
    {"resuid",
     [](const Words& w) {
       return Result(setresuid(static_cast<uid_t>(Number(w, 1)), static_cast<uid_t>(Number(w, 2)),
                               static_cast<uid_t>(Number(w, 3))));
     }},
    {"resgid",
     [](const Words& w) {
       return Result(setresgid(static_cast<gid_t>(Number(w, 1)), static_cast<gid_t>(Number(w, 2)),
                               static_cast<gid_t>(Number(w, 3))));
     }},
    {"nnp", [](const Words&) { return Result(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)); }},
    {"dumpable", [](const Words& w) { return Result(prctl(PR_SET_DUMPABLE, Number(w, 1), 0, 0, 0)); }},
    {"dropcaps", [](const Words&) { return DropCapabilities(); }},
    {"filter", [](const Words&) { return Filter(true); }},
    {"plainfilter", [](const Words&) { return Filter(false); }},
    {"text", Load},
    {"send", Send},
    {"sendas", SendAs},
    {"say", Say},
    {"drain", [](const Words&) { return Drain(); }},
    {"shut", [](const Words&) { return Result(shutdown(current, SHUT_WR)); }},
    {"deaf", [](const Words&) { return Result(shutdown(current, SHUT_RD)); }},
    {"foreignfilter", [](const Words&) { return ForeignFilter(); }},
    {"line", [](const Words&) { return Line(); }},
    {"timedline", [](const Words&) { return TimedLine(); }},
    {"many", Many},
    {"fork", [](const Words&) { return Fork(); }},
    {"serve", Serve},
    {"receive", [](const Words&) { return Receive(); }},
    {"sendname", SendName},
    {"steal", [](const Words&) { return Steal(); }},
    {"drip", Drip},
    {"filterall", [](const Words&) { return FilterEverything(); }},
    {"fuzz", Fuzz},
    {"crowd", Crowd},
    {"hold", [](const Words&) { return Hold(); }},
    {"sleep", [](const Words& w) { return Result(usleep(static_cast<useconds_t>(Number(w, 1) * 1000))); }},
    {"pid", [](const Words&) { return "0 " + std::to_string(getpid()); }},
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
    const auto step = kSteps.find(words[0]);
    if (step == kSteps.end()) {
      fprintf(stderr, "no step '%s'\n", words[0].c_str());
      return 2;
    }
    const std::string result = step->second(words);
    printf("%s -> %s\n", argv[i], result.c_str());
    fflush(stdout);
  }
  return 0;
}
