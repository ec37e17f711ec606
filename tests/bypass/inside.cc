// SPDX-License-Identifier: Apache-2.0
#include "tests/bypass/inside.h"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <algorithm>

namespace bypass {

bool ReadLine(int fd, std::string* line) {
  line->clear();
  for (char byte;;) {
    const ssize_t got = read(fd, &byte, 1);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) {
      pollfd ready{fd, POLLIN, 0};
      (void)poll(&ready, 1, -1);
      continue;
    }
    if (got <= 0) return false;
    if (byte == '\n') return true;
    *line += byte;
  }
}

void WriteLine(int fd, const std::string& text) {
  const std::string line = text + "\n";
  for (size_t at = 0; at < line.size();) {
    const ssize_t written = write(fd, line.data() + at, line.size() - at);
    if (written < 0 && (errno == EINTR || errno == EAGAIN)) {
      usleep(1000);
      continue;
    }
    if (written <= 0) return;
    at += static_cast<size_t>(written);
  }
}

std::string Inside::Text(const std::string& key) const {
  const auto found = values_.find(key);
  return found == values_.end() ? "" : found->second;
}

long Inside::Number(const std::string& key) const { return std::strtol(Text(key).c_str(), nullptr, 10); }

void Inside::Tell(const std::string& part, Kind kind, long result, const std::string& leak) {
  std::string hex;
  for (const char c : leak.substr(0, 256)) {
    char two[3];
    (void)snprintf(two, sizeof(two), "%02x", static_cast<unsigned char>(c));
    hex += two;
  }
  WriteLine(1, "@@ part " + std::string(1, static_cast<char>(kind)) + " " + (optional_ ? "1" : "0") + " " +
                   std::to_string(result < 0 ? -result : 0) + " " + part + " " + hex);
  optional_ = false;
}

std::string Inside::Ask(const std::string& question) {
  WriteLine(1, "@@ ask " + question);
  std::string line;
  (void)ReadLine(0, &line);
  return line;
}

void Inside::ConnectAndSend(const std::string& part, long fd, Address address) {
  if (fd < 0) return Arrives(part, fd);
  const long result = Raw(SYS_connect, fd, Of(address.get()), address.size);
  if (result == 0) (void)SendText(fd, Payload(part));
  (void)Raw(SYS_close, fd);
  Arrives(part, result);
}

void Inside::To(const std::string& part, const std::string& host, long port, long type, long protocol) {
  Address address = MakeAddress(host, port);
  ConnectAndSend(part, Socket(address.family(), type, protocol), address);
}

void Inside::SendTo(const std::string& part, long fd, Address address, const std::string& how, long flags) {
  if (fd < 0) return Arrives(part, fd);
  std::string text = Payload(part);
  iovec io{text.data(), text.size()};
  mmsghdr messages[2]{};
  for (mmsghdr& message : messages) {
    message.msg_hdr.msg_iov = &io;
    message.msg_hdr.msg_iovlen = 1;
  }
  mmsghdr& named = messages[how == "second" ? 1 : 0];
  named.msg_hdr.msg_name = address.get();
  named.msg_hdr.msg_namelen = address.size;
  flags |= MSG_NOSIGNAL;
  long result = -EINVAL;
  if (how == "sendto") result = Raw(SYS_sendto, fd, Of(text.data()), static_cast<long>(text.size()), flags, Of(address.get()), address.size);
  if (how == "sendmsg") result = Raw(SYS_sendmsg, fd, Of(&named.msg_hdr), flags);
  if (how == "sendmmsg") result = Raw(SYS_sendmmsg, fd, Of(&named), 1, flags);
  if (how == "second") result = Raw(SYS_sendmmsg, fd, Of(messages), 2, flags);
  Arrives(part, result);
}

long Inside::Proxy() {
  const long fd = Socket(AF_INET, SOCK_STREAM);
  if (fd < 0) return fd;
  Address address = MakeAddress("127.0.0.1", Port("proxy"));
  const long result = Raw(SYS_connect, fd, Of(address.get()), address.size);
  return result < 0 ? result : fd;
}

long Inside::ProxyBy6() {
  const long fd = Socket(AF_INET6, SOCK_STREAM);
  if (fd < 0) return fd;
  Address address = MakeAddress("::ffff:127.0.0.1", Port("proxy"));
  const long result = Raw(SYS_connect, fd, Of(address.get()), address.size);
  return result < 0 ? result : fd;
}

void Inside::ReadSecretFrom(const std::string& part, long fd) {
  if (fd < 0) return Leaks(part, fd, "");
  char buffer[128] = {};
  const long got = Raw(SYS_pread64, fd, Of(buffer), sizeof(buffer), 0);
  (void)Raw(SYS_close, fd);
  Leaks(part, got, got > 0 ? std::string(buffer, static_cast<size_t>(got)) : "");
}

void Inside::ReadSecret(const std::string& part, const std::string& path) { ReadSecretFrom(part, Open(path, O_RDONLY)); }

int InChild(const std::function<int()>& work) {
  const pid_t pid = fork();
  if (pid < 0) return errno;
  if (pid == 0) _exit(work());
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

long SendDescriptor(int socket, int fd) {
  char byte = 'x';
  iovec io{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &io;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(header), &fd, sizeof(fd));
  return Raw(SYS_sendmsg, socket, Of(&message), MSG_NOSIGNAL);
}

long FromServer(const std::string& path, const std::string& word) {
  Address address = MakeAddress(path);
  const long fd = Socket(AF_UNIX, SOCK_STREAM);
  if (fd < 0) return fd;
  if (const long result = Raw(SYS_connect, fd, Of(address.get()), address.size); result < 0) return result;
  (void)SendText(fd, word);
  char byte = 0;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
  iovec io{&byte, 1};
  msghdr message{};
  message.msg_iov = &io;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  const long got = Raw(SYS_recvmsg, fd, Of(&message), 0);
  if (got < 0) return got;
  const cmsghdr* header = CMSG_FIRSTHDR(&message);
  int given = -EBADMSG;
  if (header != nullptr) std::memcpy(&given, CMSG_DATA(header), sizeof(given));
  return given;
}

void AnswerContinue(int listener) {
  for (;;) {
    struct {
      uint64_t id;
      char rest[72];
    } request{};
    if (const long got = Raw(SYS_ioctl, listener, static_cast<long>(0xc0502100UL), Of(&request)); got < 0) {
      if (got == -EINTR || got == -ENOENT) continue;
      return;
    }
    struct {
      uint64_t id;
      int64_t value;
      int32_t error;
      uint32_t flags;
    } answer{request.id, 0, 0, 1};
    (void)Raw(SYS_ioctl, listener, static_cast<long>(0xc0182101UL), Of(&answer));
  }
}

namespace {

// A try in a process of its own: what kills or hangs it ends it alone.
void Try(const Row& row, const std::map<std::string, std::string>& values) {
  const pid_t pid = fork();
  if (pid < 0) return WriteLine(1, "@@ lost fork " + std::to_string(errno));
  if (pid == 0) {
    (void)setpgid(0, 0);
    // A job in the background that touches the terminal is not stopped for it.
    signal(SIGTTOU, SIG_IGN);
    signal(SIGTTIN, SIG_IGN);
    signal(SIGPIPE, SIG_IGN);
    Inside inside(row.id, values);
    row.inside(inside);
    _exit(0);
  }
  (void)setpgid(pid, pid);
  int status = 0;
  pid_t ended = 0;
  for (long waited = 0; waited < row.seconds * 1000L && ended == 0; ++waited) {
    ended = waitpid(pid, &status, WNOHANG);
    if (ended == 0) usleep(1000);
  }
  (void)kill(-pid, SIGKILL);
  (void)kill(pid, SIGKILL);
  if (ended == 0) {
    WriteLine(1, "@@ lost timeout 0");
    for (int i = 0; i < 1000 && waitpid(pid, &status, WNOHANG) == 0; ++i) usleep(1000);
  } else if (WIFSIGNALED(status)) {
    WriteLine(1, "@@ lost signal " + std::to_string(WTERMSIG(status)));
  }
}

}  // namespace

int RunInside() {
  signal(SIGPIPE, SIG_IGN);
  const std::vector<Row> rows = AllRows();
  std::map<std::string, std::string> values;
  WriteLine(1, "@@ ready " + std::to_string(getpid()) + " " + std::to_string(getuid()));
  for (std::string line; ReadLine(0, &line);) {
    const size_t space = line.find(' ');
    const std::string word = line.substr(0, space), rest = space == std::string::npos ? "" : line.substr(space + 1);
    if (word == "set") {
      const size_t equals = rest.find('=');
      values[rest.substr(0, equals)] = rest.substr(equals + 1);
    } else if (word == "go") {
      const auto row = std::ranges::find_if(rows, [&](const Row& each) { return rest == each.id; });
      if (row != rows.end() && row->inside != nullptr) Try(*row, values);
      WriteLine(1, "@@ done " + rest);
    } else {
      break;
    }
  }
  return 0;
}

}  // namespace bypass
