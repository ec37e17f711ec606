// SPDX-License-Identifier: Apache-2.0
#include "child/descriptors.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "notif/base/text.h"

namespace oarlock::child {
namespace {

// Whose regular files are no files: nsfs, proc, mqueue.
constexpr long kOddFileSystems[] = {0x6e736673, 0x9fa0, 0x19800202};
constexpr unsigned kMemoryDevices[] = {3, 5, 7, 8, 9};

Step Unsuitable(int fd, const std::string& pointer, const std::string& what) {
  return Stop(Code::kKUnsupported, pointer, "descriptor " + std::to_string(fd) + " is " + what +
                                                ": only files, pipes, terminals and connected stream sockets can be handed to a module");
}

int SocketOption(int fd, int name) {
  int value = -1;
  socklen_t size = sizeof(value);
  return ::getsockopt(fd, SOL_SOCKET, name, &value, &size) == 0 ? value : -1;
}

// Each open of these is another terminal's: the opener's own, the console of the day, a new one.
constexpr unsigned kTerminalAliases = 5;
constexpr int kFlagsKept = O_APPEND | O_NONBLOCK | O_DIRECT;

// Whether two numbers are one description. Where nobody can tell: whether they look like it.
bool SameDescription(int a, int b) {
  struct stat first {}, second {};
  const bool alike = ::fstat(a, &first) == 0 && ::fstat(b, &second) == 0 && first.st_dev == second.st_dev && first.st_ino == second.st_ino &&
                     ::fcntl(a, F_GETFL) == ::fcntl(b, F_GETFL);
  constexpr int kKcmpFile = 0;
  const pid_t self = ::getpid();
  const long order = ::syscall(SYS_kcmp, self, self, kKcmpFile, a, b);
  return alike && (order < 0 || order == 0);
}

// The same file in a new description. Invalid where it is none of a kind that we open anew, or may not or cannot be opened as it was.
Checked<UniqueFd> Reopened(int fd) {
  const auto failed = [fd](const char* call) {
    return Stop(Code::kKUnsupported, "", "descriptor " + std::to_string(fd) + ": " + call + ": " + ErrnoName(errno));
  };
  struct stat before {}, after {};
  const int flags = ::fcntl(fd, F_GETFL);
  if (flags < 0 || ::fcntl(fd, F_GETFL) != flags) return failed("F_GETFL");
  if (::fstat(fd, &before) != 0) return failed("fstat");
  if ((flags & O_ACCMODE) == O_ACCMODE) return UniqueFd();
  const bool is_pipe = S_ISFIFO(before.st_mode);
  if (!is_pipe && !(S_ISCHR(before.st_mode) && major(before.st_rdev) != kTerminalAliases && ::isatty(fd) == 1)) return UniqueFd();
  const std::string path = "/proc/self/fd/" + std::to_string(fd);
  // O_NONBLOCK: a FIFO would wait for its other end, a line for its carrier.
  int opened = -1;
  do opened = ::open(path.c_str(), (flags & O_ACCMODE) | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  while (opened < 0 && errno == EINTR);
  if (opened < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOSYS || errno == EINVAL)) return failed("open");
  if (opened < 0) return UniqueFd();
  if (opened <= 2) return Stop(Code::kKUnsupported, "", "a descriptor was opened and is none: something filters us");
  UniqueFd fresh(opened);
  if (::fstat(fresh.get(), &after) != 0) return failed("fstat");
  if (after.st_dev != before.st_dev || after.st_ino != before.st_ino || after.st_rdev != before.st_rdev) return UniqueFd();
  // Opened after its last writer has gone, a FIFO does not tell of that end, but waits for the next writer.
  pollfd ends[2] = {{fd, 0, 0}, {fresh.get(), 0, 0}};
  int polled = -1;
  do polled = ::poll(ends, 2, 0);
  while (polled < 0 && errno == EINTR);
  if (polled < 0) return failed("poll");
  if (ends[0].revents != ends[1].revents) return UniqueFd();
  if (::fcntl(fresh.get(), F_SETFL, flags & kFlagsKept) != 0) return failed("F_SETFL");
  if ((::fcntl(fresh.get(), F_GETFL) & kFlagsKept) != (flags & kFlagsKept)) return failed("F_SETFL had no effect");
  return fresh;
}

struct LinuxDirent64 {
  uint64_t inode;
  int64_t offset;
  uint16_t size;
  uint8_t type;
  char name[];
};

}  // namespace

Step EnsureStandardDescriptors() {
  for (int fd = 0; fd <= 2; ++fd) {
    if (::fcntl(fd, F_GETFD) >= 0) continue;
    // The lowest free number: exactly `fd`, since those below are open.
    const int opened = ::open("/dev/null", fd == 0 ? O_RDONLY : O_WRONLY);
    if (opened != fd) return Stop(Code::kKUnsupported, "", "descriptor " + std::to_string(fd) + " is closed and /dev/null cannot take its place");
  }
  return {};
}

Checked<std::vector<int>> KeptDescriptors(const std::optional<std::vector<int>>& policy, char** environment) {
  std::vector<int> kept;
  const auto add = [&](int fd, const std::string& pointer) -> Step {
    if (::fcntl(fd, F_GETFD) < 0) return Stop(Code::kRange, pointer, "descriptor " + std::to_string(fd) + " is not open");
    kept.push_back(fd);
    return {};
  };
  if (policy) {
    for (size_t i = 0; i < policy->size(); ++i)
      if (auto step = add((*policy)[i], "/keep_fds/" + std::to_string(i)); !step) return std::unexpected(step.error());
  } else {
    for (char** entry = environment; *entry != nullptr; ++entry) {
      const std::string_view text(*entry);
      const size_t equals = text.find('=');
      if (!text.starts_with("OARBANK_") || equals == std::string_view::npos || text.starts_with("OARBANK_CONFINED=")) continue;
      const std::string_view value = text.substr(equals + 1);
      uint64_t fd = 0;
      if (!value.starts_with("fd:") || !ParseNumber(value.substr(3), 3, INT32_MAX, &fd)) continue;
      if (auto step = add(static_cast<int>(fd), "/keep_fds"); !step)
        return Stop(Code::kRange, "/keep_fds", std::string(text.substr(0, equals)) + " names it: " + step.error().text);
    }
  }
  std::ranges::sort(kept);
  kept.erase(std::ranges::unique(kept).begin(), kept.end());
  return kept;
}

Step ClassifyDescriptor(int fd, const std::string& pointer) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) return Unsuitable(fd, pointer, "closed");
  const int flags = ::fcntl(fd, F_GETFL);
  if (flags < 0 || (flags & O_PATH) != 0) return Unsuitable(fd, pointer, "a handle without access (O_PATH)");
  if (S_ISFIFO(status.st_mode)) return {};
  if (S_ISREG(status.st_mode)) {
    struct statfs system {};
    if (::fstatfs(fd, &system) == 0 && std::ranges::find(kOddFileSystems, system.f_type) != std::end(kOddFileSystems))
      return Unsuitable(fd, pointer, "a namespace, a process file or a message queue");
    return {};
  }
  if (S_ISCHR(status.st_mode)) {
    // null, zero, full, random, urandom
    const bool harmless = major(status.st_rdev) == 1 && std::ranges::find(kMemoryDevices, minor(status.st_rdev)) != std::end(kMemoryDevices);
    if (harmless || ::isatty(fd) == 1) return {};
    return Unsuitable(fd, pointer, "a device");
  }
  if (S_ISSOCK(status.st_mode)) {
    const int type = SocketOption(fd, SO_TYPE), domain = SocketOption(fd, SO_DOMAIN);
    if (domain != AF_UNIX && domain != AF_INET && domain != AF_INET6) return Unsuitable(fd, pointer, "a socket of another family");
    if (type != SOCK_STREAM && type != SOCK_SEQPACKET) return Unsuitable(fd, pointer, "a datagram or raw socket");
    if (SocketOption(fd, SO_ACCEPTCONN) != 0) return Unsuitable(fd, pointer, "a listening socket");
    sockaddr_storage peer{};
    socklen_t size = sizeof(peer);
    if (::getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &size) != 0) return Unsuitable(fd, pointer, "a socket that is not connected");
    return {};
  }
  if (S_ISDIR(status.st_mode)) return Unsuitable(fd, pointer, "a directory");
  if (S_ISBLK(status.st_mode)) return Unsuitable(fd, pointer, "a device");
  return Unsuitable(fd, pointer, "no file, pipe, terminal or socket (a ring, a listener or the like)");
}

Step OwnStandardDescriptions() {
  int first[3];  // the lowest number of the same description
  for (int fd = 0; fd <= 2; ++fd)
    for (first[fd] = 0; first[fd] != fd && !SameDescription(first[fd], fd);) ++first[fd];
  UniqueFd fresh[3];
  for (int fd = 0; fd <= 2; ++fd) {
    if (first[fd] != fd) continue;
    auto reopened = Reopened(fd);
    if (!reopened) return std::unexpected(reopened.error());
    fresh[fd] = std::move(*reopened);
  }
  for (int fd = 0; fd <= 2; ++fd) {
    const UniqueFd& mine = fresh[first[fd]];
    if (!mine.valid()) continue;
    if (::dup2(mine.get(), fd) != fd || !SameDescription(mine.get(), fd))
      return Stop(Code::kKUnsupported, "", "descriptor " + std::to_string(fd) + " cannot be given a description of its own");
  }
  return {};
}

Step CloseOthers(const std::vector<int>& kept) {
  unsigned from = 3;
  const auto close = [](unsigned first, unsigned last) { return first > last || ::syscall(SYS_close_range, first, last, 0U) == 0; };
  for (const int fd : kept) {
    if (fd < 3) continue;
    if (!close(from, static_cast<unsigned>(fd) - 1)) break;
    from = static_cast<unsigned>(fd) + 1;
  }
  if (close(from, ~0U)) return {};
  const auto error = OARLOCK_FAIL("close_range", errno);
  return Stop(Code::kKUnsupported, error.error());
}

Checked<DescriptorTable> DescriptorTable::Open() {
  UniqueFd fd(::open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid()) {
    const auto error = OARLOCK_FAIL("open", errno, "/proc/self/fd (is /proc mounted?)");
    return Stop(Code::kKUnsupported, error.error());
  }
  return DescriptorTable(std::move(fd));
}

Checked<std::vector<int>> DescriptorTable::List() {
  std::vector<int> open;
  alignas(LinuxDirent64) char buffer[8192];
  if (::lseek(fd_.get(), 0, SEEK_SET) != 0) return Stop(Code::kKUnsupported, "", "/proc/self/fd cannot be read again");
  for (;;) {
    const long got = ::syscall(SYS_getdents64, fd_.get(), buffer, sizeof(buffer));
    if (got < 0) return Stop(Code::kKUnsupported, "", std::string("/proc/self/fd cannot be read: ") + ErrnoName(errno));
    if (got == 0) break;
    for (long at = 0; at < got;) {
      const auto* entry = reinterpret_cast<const LinuxDirent64*>(buffer + at);
      at += entry->size;
      uint64_t fd = 0;
      if (ParseNumber(entry->name, 0, INT32_MAX, &fd) && static_cast<int>(fd) != fd_.get()) open.push_back(static_cast<int>(fd));
    }
  }
  std::ranges::sort(open);
  return open;
}

}  // namespace oarlock::child
