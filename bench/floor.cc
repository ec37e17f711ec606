// SPDX-License-Identifier: Apache-2.0
// oarlock-floor: the least that a supervisor can do which connects for its callers. One thread, blocking; per connect exactly
// RECV, process_vm_readv, pidfd_getfd on a cached pidfd, ID_VALID, one getsockopt, connect of its own address, SEND, close.
// No policy, no log, no signals, no second caller: a yardstick, not a sandbox.
//   oarlock-floor PORT -- PROGRAM ARGS...     under the floor
//   oarlock-floor static -- PROGRAM ARGS...   under a static filter of the same form that notifies nothing
#include <arpa/inet.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "notif/abi/process.h"
#include "notif/abi/seccomp.h"

using namespace oarlock::abi;  // NOLINT(google-build-using-namespace)

namespace {

int Install(bool notify, unsigned long flags) {
  const uint32_t hit = notify ? kRetUserNotif : kRetAllow;
  sock_filter program[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(SeccompData, nr)),
                           BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_connect, 2, 0), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 1, 0),
                           BPF_STMT(BPF_RET | BPF_K, kRetAllow), BPF_STMT(BPF_RET | BPF_K, hit)};
  const sock_fprog filter{sizeof(program) / sizeof(program[0]), program};
  (void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  return static_cast<int>(syscall(SYS_seccomp, kSeccompSetModeFilter, flags, &filter));
}

int Receive(int socket) {
  char byte = 0;
  iovec part{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  if (recvmsg(socket, &message, 0) != 1) return -1;
  int fd = -1;
  std::memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(fd));
  return fd;
}

void Hand(int socket, int fd) {
  char byte = 0;
  iovec part{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(fd));
  std::memcpy(CMSG_DATA(header), &fd, sizeof(fd));
  (void)sendmsg(socket, &message, 0);
  close(fd);
}

// Until the child has ended; its status.
int Serve(int listener, uint16_t port, pid_t child) {
  sockaddr_in own{};
  own.sin_family = AF_INET;
  own.sin_port = htons(port);
  own.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
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
    sockaddr_in asked{};
    iovec local{&asked, sizeof(asked)};
    iovec remote{reinterpret_cast<void*>(call.data.args[1]), sizeof(asked)};
    const bool read = process_vm_readv(tid, &local, 1, &remote, 1, 0) == sizeof(asked);
    if (tid != cached) {
      close(pidfd);
      pidfd = static_cast<int>(syscall(kSysPidfdOpen, tid, kPidfdThread));
      cached = tid;
    }
    const int fd = static_cast<int>(syscall(kSysPidfdGetfd, pidfd, call.data.args[0], 0));
    const bool valid = ioctl(listener, kIoctlNotifIdValid, &call.id) == 0;
    int protocol = 0;
    socklen_t size = sizeof(protocol);
    const bool tcp = getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &size) == 0 && protocol == IPPROTO_TCP;
    const bool granted = read && valid && tcp && asked.sin_port == own.sin_port && asked.sin_addr.s_addr == own.sin_addr.s_addr;
    answer.error = !granted ? -EACCES : connect(fd, reinterpret_cast<sockaddr*>(&own), sizeof(own)) == 0 ? 0 : -errno;
    (void)ioctl(listener, kIoctlNotifSend, &answer);
    close(fd);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  if (std::strcmp(argv[1], "static") == 0) {
    if (Install(false, 0) != 0) return 1;
    execv(argv[3], argv + 3);
    return 1;
  }
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) return 1;
  const pid_t pid = fork();
  if (pid == 0) {
    Hand(pair[1], Install(true, kSeccompFlagNewListener | kSeccompFlagWaitKillableRecv));
    execv(argv[3], argv + 3);
    _exit(1);
  }
  const int listener = Receive(pair[0]);
  (void)ioctl(listener, kIoctlNotifSetFlags, kNotifFdSyncWakeUp);
  return Serve(listener, static_cast<uint16_t>(std::strtol(argv[1], nullptr, 10)), pid);
}
