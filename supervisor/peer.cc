// SPDX-License-Identifier: Apache-2.0
#include "supervisor/peer.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string_view>

#include "notif/abi/process.h"
#include "notif/abi/seccomp.h"

namespace oarlock::supervisor {
namespace {

Result<std::string> ReadProcFile(pid_t pid, const char* name) {
  char path[64];
  (void)std::snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
  const UniqueFd fd(::open(path, O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return OARLOCK_FAIL("open", errno == ENOENT ? ESRCH : errno, "%s", path);
  std::string text;
  char buffer[4096];
  for (;;) {
    const ssize_t got = ::read(fd.get(), buffer, sizeof(buffer));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return OARLOCK_FAIL("read", errno, "%s", path);
    if (got == 0) return text;
    text.append(buffer, static_cast<size_t>(got));
  }
}

// The words behind "key:" as numbers of `base`.
std::vector<uint64_t> Numbers(std::string_view text, std::string_view key, int base) {
  std::vector<uint64_t> numbers;
  const size_t at = text.find(key);
  if (at == std::string_view::npos) return numbers;
  std::string_view line = text.substr(at + key.size());
  line = line.substr(0, line.find('\n'));
  const char* cursor = line.data();
  const char* const end = line.data() + line.size();
  while (cursor != end) {
    if (*cursor == ' ' || *cursor == '\t') {
      ++cursor;
      continue;
    }
    uint64_t value = 0;
    const auto [next, error] = std::from_chars(cursor, end, value, base);
    if (error != std::errc()) break;
    numbers.push_back(value);
    cursor = next;
  }
  return numbers;
}

bool IsAlive(int pidfd) { return ::syscall(SYS_pidfd_send_signal, pidfd, 0, nullptr, 0) == 0 || errno == EPERM; }

}  // namespace

Result<kernel::Lineage> ReadLineage(pid_t pid) {
  kernel::Lineage lineage;
  if (const int error = kernel::ReadLineage(pid, &lineage); error != 0) return OARLOCK_FAIL("read", -error, "/proc/%d/stat", pid);
  return lineage;
}

Result<ProcessFacts> ReadProcess(pid_t pid) {
  const std::string status = OARLOCK_TRY(ReadProcFile(pid, "status"));
  const kernel::Lineage lineage = OARLOCK_TRY(ReadLineage(pid));
  ProcessFacts facts;
  facts.pid = pid;
  const auto first = [&](const char* key, int base) {
    const auto numbers = Numbers(status, key, base);
    return numbers.empty() ? 0 : numbers.front();
  };
  const auto uids = Numbers(status, "\nUid:", 10), gids = Numbers(status, "\nGid:", 10);
  if (uids.size() != 4 || gids.size() != 4) return OARLOCK_FAIL("read", ESRCH, "/proc/%d/status", pid);
  const auto narrow = [](uint64_t value) { return static_cast<uint32_t>(value); };
  facts.real_uid = narrow(uids[0]), facts.uid = narrow(uids[1]), facts.saved_uid = narrow(uids[2]), facts.fs_uid = narrow(uids[3]);
  facts.real_gid = narrow(gids[0]), facts.gid = narrow(gids[1]), facts.saved_gid = narrow(gids[2]), facts.fs_gid = narrow(gids[3]);
  for (const uint64_t group : Numbers(status, "\nGroups:", 10)) facts.groups.push_back(narrow(group));
  facts.parent = lineage.parent;
  facts.start_ticks = lineage.start_ticks;
  facts.effective_capabilities = first("\nCapEff:", 16);
  facts.permitted_capabilities = first("\nCapPrm:", 16);
  facts.bounding_capabilities = first("\nCapBnd:", 16);
  facts.no_new_privs = first("\nNoNewPrivs:", 10) == 1;
  facts.seccomp_mode = static_cast<int>(first("\nSeccomp:", 10));
  facts.seccomp_filters = static_cast<int>(first("\nSeccomp_filters:", 10));
  return facts;
}

Result<ProcessFacts> ReadProcess(pid_t pid, int pidfd) {
  auto facts = ReadProcess(pid);
  if (!IsAlive(pidfd)) return OARLOCK_FAIL("pidfd_send_signal", ESRCH, "process %d", pid);
  return facts;
}

Status CheckAccess(pid_t pid, int pidfd) {
  constexpr const char* kRemedy =
      "the supervisor needs CAP_SYS_PTRACE, or the module's own uid and to be its parent under Yama ptrace_scope 1";
  // An address that nobody maps: EFAULT is what we may hope for.
  char byte = 0;
  iovec local{&byte, 1};
  iovec remote{reinterpret_cast<void*>(8), 1};  // NOLINT(performance-no-int-to-ptr): page zero of another process
  if (::process_vm_readv(pid, &local, 1, &remote, 1, 0) < 0 && errno != EFAULT)
    return OARLOCK_FAIL("process_vm_readv", errno, "of process %d (%s)", pid, kRemedy);
  // A descriptor that nobody has: EBADF comes after the question whether we may.
  const UniqueFd copy(static_cast<int>(::syscall(abi::kSysPidfdGetfd, pidfd, INT32_MAX, 0U)));
  if (!copy.valid() && errno != EBADF)
    return OARLOCK_FAIL("pidfd_getfd", errno, "of process %d (%s)", pid, kRemedy);
  return {};
}

bool IsListener(int fd) {
  char link[64], target[64] = {};
  (void)std::snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
  if (::readlink(link, target, sizeof(target) - 1) < 0) return false;
  return std::string_view(target) == "anon_inode:seccomp notify";
}

bool SameNetns(pid_t pid) {
  char path[64];
  (void)std::snprintf(path, sizeof(path), "/proc/%d/ns/net", pid);
  struct stat own {}, other {};
  return ::stat("/proc/self/ns/net", &own) == 0 && ::stat(path, &other) == 0 && own.st_dev == other.st_dev &&
         own.st_ino == other.st_ino;
}

bool HasSlowMount(pid_t pid) {
  std::ifstream mounts("/proc/" + std::to_string(pid) + "/mountinfo");
  if (!mounts) return true;
  static constexpr std::array kSlow = {"fuse", "fuseblk", "nfs", "nfs4", "9p", "virtiofs", "cifs", "smb3", "ceph", "afs", "lustre",
                                       "ocfs2", "gfs2", "orangefs", "coda", "glusterfs", "beegfs", "autofs"};
  for (std::string line; std::getline(mounts, line);) {
    // "... - type source options"; a dash of its own occurs nowhere before.
    const size_t dash = line.find(" - ");
    if (dash == std::string::npos) return true;
    const std::string type = line.substr(dash + 3, line.find(' ', dash + 3) - dash - 3);
    if (type.starts_with("fuse.") || std::ranges::find(kSlow, type) != kSlow.end()) return true;
  }
  return false;
}

Result<UniqueFd> OpenPidfd(pid_t pid) {
  UniqueFd fd(static_cast<int>(::syscall(abi::kSysPidfdOpen, pid, 0U)));
  if (!fd.valid()) return OARLOCK_FAIL("pidfd_open", errno, "process %d", pid);
  return fd;
}

Result<UniqueFd> OpenPeerPidfd(int socket, pid_t peer) {
  int fd = -1;
  socklen_t size = sizeof(fd);
  if (::getsockopt(socket, SOL_SOCKET, abi::kSoPeerPidfd, &fd, &size) == 0) return UniqueFd(fd);
  auto opened = OpenPidfd(peer);
  // A peer that had gone before the look has closed its end, unless a child keeps it open; the credentials of each message
  // are checked too.
  pollfd connection{socket, POLLRDHUP, 0};
  if (opened && ::poll(&connection, 1, 0) > 0 && (connection.revents & (POLLHUP | POLLERR)) != 0)
    return OARLOCK_FAIL("poll", ESRCH, "the peer has gone");
  return opened;
}

}  // namespace oarlock::supervisor
