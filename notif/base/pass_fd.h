// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/socket.h>
#include <sys/types.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <span>

namespace oarlock {

// At most so many descriptors in one message (the kernel's SCM_MAX_FD; unix(7)).
inline constexpr size_t kMaxPassed = 253;

// sendmsg(2) of `bytes` with descriptors (SCM_RIGHTS), which stay the caller's; none: a plain message. Async-signal-safe.
// ETOOMANYREFS, ENOMEM and ENOBUFS: too many of this user's are on their way.
[[nodiscard]] inline ssize_t SendWithFds(int socket, const void* bytes, size_t size, std::span<const int> fds, int flags = MSG_NOSIGNAL) noexcept {
  if (fds.size() > kMaxPassed) {
    errno = EINVAL;  // as the kernel would say
    return -1;
  }
  iovec part{const_cast<void*>(bytes), size};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kMaxPassed)];
  if (!fds.empty()) {
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(fds.size_bytes());
    std::memset(control, 0, message.msg_controllen);
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(fds.size_bytes());
    std::memcpy(CMSG_DATA(header), fds.data(), fds.size_bytes());
  }
  return ::sendmsg(socket, &message, flags);
}
[[nodiscard]] inline ssize_t SendWithFd(int socket, const void* bytes, size_t size, int fd, int flags = MSG_NOSIGNAL) noexcept {
  return SendWithFds(socket, bytes, size, {&fd, 1}, flags);
}

}  // namespace oarlock
