// SPDX-License-Identifier: Apache-2.0
// oarlock-floor: the least that a supervisor can do which connects for its callers. One thread, blocking; per connect exactly
// RECV, process_vm_readv, pidfd_getfd on a cached pidfd, ID_VALID, one getsockopt, connect of its own address, SEND, close.
// No policy, no log, no signals, no second caller: a yardstick, not a sandbox.
//   oarlock-floor PORT|/SOCKET -- PROGRAM ARGS...   under the floor, which connects to 127.0.0.1:PORT or to the unix socket
//   oarlock-floor static -- PROGRAM ARGS...         under a static filter of the same form that notifies nothing
//   oarlock-floor wall -- PROGRAM ARGS...           under that and one Landlock rule, which allows everything
#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>

#include "notif/abi/landlock.h"
#include "notif/abi/process.h"
#include "notif/abi/seccomp.h"

using namespace oarlock::abi;  // NOLINT(google-build-using-namespace)

namespace {

struct Address {
  sockaddr_storage bytes{};
  socklen_t size = 0;
};

int Install(bool notify, unsigned long flags) {
  const uint32_t hit = notify ? kRetUserNotif : kRetAllow;
  sock_filter program[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(SeccompData, nr)),
                           BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_connect, 2, 0), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 1, 0),
                           BPF_STMT(BPF_RET | BPF_K, kRetAllow), BPF_STMT(BPF_RET | BPF_K, hit)};
  const sock_fprog filter{sizeof(program) / sizeof(program[0]), program};
  (void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  return static_cast<int>(syscall(SYS_seccomp, kSeccompSetModeFilter, flags, &filter));
}

// Every right of the first Landlock is asked about, and one rule on the root directory grants them all.
int BuildWall() {
  LandlockRulesetAttr attribute{};
  attribute.handled_access_fs = kFsMakeSym | (kFsMakeSym - 1);
  const int rules = static_cast<int>(syscall(kSysLandlockCreateRuleset, &attribute, sizeof(attribute.handled_access_fs), 0));
  LandlockPathBeneathAttr all{};
  all.allowed_access = attribute.handled_access_fs;
  all.parent_fd = open("/", O_PATH | O_CLOEXEC);
  if (syscall(kSysLandlockAddRule, rules, kLandlockRulePathBeneath, &all, 0) != 0) return -1;
  (void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  return static_cast<int>(syscall(kSysLandlockRestrictSelf, rules, 0));
}

Address Parse(const char* text) {
  Address own;
  if (text[0] == '/') {
    auto* name = reinterpret_cast<sockaddr_un*>(&own.bytes);
    name->sun_family = AF_UNIX;
    std::strncpy(name->sun_path, text, sizeof(name->sun_path) - 1);
    own.size = sizeof(*name);
  } else {
    auto* name = reinterpret_cast<sockaddr_in*>(&own.bytes);
    name->sin_family = AF_INET;
    name->sin_port = htons(static_cast<uint16_t>(std::strtol(text, nullptr, 10)));
    name->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    own.size = sizeof(*name);
  }
  return own;
}

// Until the child has ended; its status.
int Serve(int listener, const Address& own, pid_t child) {
  const int wanted = own.bytes.ss_family == AF_INET ? int{IPPROTO_TCP} : 0;
  pid_t cached = 0;
  int pidfd = -1;
  for (;;) {
    SeccompNotif call{};
    if (ioctl(listener, kIoctlNotifRecv, &call) != 0) {
      int status = 0;
      if (waitpid(child, &status, errno == ENOENT ? WNOHANG : 0) == child) return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
      continue;
    }
    SeccompNotifResponse answer{call.id, 0, 0, 0};
    if (call.data.nr == SYS_socket) {
      answer.flags = kNotifFlagContinue;
      (void)ioctl(listener, kIoctlNotifSend, &answer);
      continue;
    }
    const auto tid = static_cast<pid_t>(call.pid);
    Address asked;
    iovec local{&asked.bytes, std::min<size_t>(call.data.args[2], own.size)};
    iovec remote{reinterpret_cast<void*>(call.data.args[1]), local.iov_len};
    const bool read = process_vm_readv(tid, &local, 1, &remote, 1, 0) == static_cast<ssize_t>(own.size);
    if (tid != cached) {
      close(pidfd);
      pidfd = static_cast<int>(syscall(kSysPidfdOpen, tid, kPidfdThread));
      cached = tid;
    }
    const int fd = static_cast<int>(syscall(kSysPidfdGetfd, pidfd, call.data.args[0], 0));
    const bool valid = ioctl(listener, kIoctlNotifIdValid, &call.id) == 0;
    int protocol = 0;
    socklen_t size = sizeof(protocol);
    const bool fits = getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &size) == 0 && protocol == wanted;
    const bool granted = read && valid && fits && std::memcmp(&asked.bytes, &own.bytes, own.size) == 0;
    answer.error = !granted ? -EACCES : connect(fd, reinterpret_cast<const sockaddr*>(&own.bytes), own.size) == 0 ? 0 : -errno;
    (void)ioctl(listener, kIoctlNotifSend, &answer);
    close(fd);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  const bool wall = std::strcmp(argv[1], "wall") == 0;
  if (wall || std::strcmp(argv[1], "static") == 0) {
    if ((wall && BuildWall() != 0) || Install(false, 0) != 0) return 1;
    execv(argv[3], argv + 3);
    return 1;
  }
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) return 1;
  const pid_t pid = fork();
  if (pid == 0) {
    // Its number suffices: the parent takes the descriptor by it. exec closes ours, for it is close-on-exec.
    const int listener = Install(true, kSeccompFlagNewListener | kSeccompFlagWaitKillableRecv);
    char taken = 0;
    if (write(pair[1], &listener, sizeof(listener)) != sizeof(listener) || read(pair[1], &taken, 1) != 1) _exit(1);
    execv(argv[3], argv + 3);
    _exit(1);
  }
  int number = -1;
  if (read(pair[0], &number, sizeof(number)) != sizeof(number)) return 1;
  const int own = static_cast<int>(syscall(kSysPidfdOpen, pid, 0));
  const int listener = static_cast<int>(syscall(kSysPidfdGetfd, own, number, 0));
  (void)ioctl(listener, kIoctlNotifSetFlags, kNotifFdSyncWakeUp);
  if (write(pair[0], "", 1) != 1) return 1;
  return Serve(listener, Parse(argv[1]), pid);
}
