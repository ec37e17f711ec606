// SPDX-License-Identifier: Apache-2.0
#include "supervisor/reader.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "notif/base/check.h"
#include "notif/base/pass_fd.h"
#include "notif/kernel.h"
#include "proxyport/gate.h"
#include "supervisor/limits.h"

namespace oarlock::supervisor {

struct Reader::Request {
  uint64_t sequence = 0;
  uint64_t pointer = 0;
  int32_t tid = 0;
  int32_t fd = -1;       // where `pin` is set
  uint32_t size = 0;
  uint32_t pin = 0;
};

struct Reader::Reply {
  uint64_t sequence = 0;
  int32_t result = 0;
  uint32_t size = 0;     // of `bytes`
  char bytes[proxyport::Address::kMaxSize] = {};
};

namespace {

// What posix_spawn wants, freed with it.
struct SpawnPlan {
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  SpawnPlan() {
    (void)::posix_spawn_file_actions_init(&files);
    (void)::posix_spawnattr_init(&attributes);
  }
  ~SpawnPlan() {
    (void)::posix_spawn_file_actions_destroy(&files);
    (void)::posix_spawnattr_destroy(&attributes);
  }
  SpawnPlan(const SpawnPlan&) = delete;
  SpawnPlan& operator=(const SpawnPlan&) = delete;
};

}  // namespace

Result<std::unique_ptr<Reader>> Reader::Start(const std::string& program) {
  std::unique_ptr<Reader> self(new Reader(program));
  OARLOCK_TRY_VOID(self->Spawn());
  return self;
}

// Safe beside other threads: posix_spawn runs none of our code in the child.
Status Reader::Spawn() {
  int pair[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) return OARLOCK_FAIL("socketpair", errno);
  UniqueFd ours(pair[0]), theirs(pair[1]);
  SpawnPlan plan;
  // A hanging reader must not keep a reader of our stderr waiting for its end.
  int error = 0;
  const auto take = [&error](int result) { error = error == 0 ? result : error; };
  for (int fd = 0; fd <= 2; ++fd) take(::posix_spawn_file_actions_addopen(&plan.files, fd, "/dev/null", O_RDWR, 0));
  take(::posix_spawn_file_actions_adddup2(&plan.files, theirs.get(), kReaderSocket));
  take(::posix_spawn_file_actions_addclosefrom_np(&plan.files, kReaderSocket + 1));
  sigset_t none, all;
  (void)::sigemptyset(&none);
  (void)::sigfillset(&all);
  take(::posix_spawnattr_setsigmask(&plan.attributes, &none));
  take(::posix_spawnattr_setsigdefault(&plan.attributes, &all));
  // A session of its own: what is typed at our terminal is not for it.
  take(::posix_spawnattr_setflags(&plan.attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSID));
  const char* const arguments[] = {program_.c_str(), kReaderVerb, nullptr};
  const char* const environment[] = {nullptr};
  pid_t pid = -1;
  if (error == 0)
    error = ::posix_spawn(&pid, program_.c_str(), &plan.files, &plan.attributes, const_cast<char* const*>(arguments),
                          const_cast<char* const*>(environment));
  if (error != 0) return OARLOCK_FAIL("posix_spawn", error, "%s", program_.c_str());
  socket_ = std::move(ours);
  return {};
}

int Reader::Read(pid_t tid, uint64_t pointer, void* to, size_t size) {
  OARLOCK_CHECK(size <= sizeof(Reply::bytes));
  Request request;
  request.tid = tid;
  request.pointer = pointer;
  request.size = static_cast<uint32_t>(size);
  Reply reply;
  UniqueFd none;
  if (const int result = Ask(request, &reply, &none); result != 0) return result;
  if (reply.result == 0 && reply.size != size) return -EIO;
  if (reply.result == 0) std::memcpy(to, reply.bytes, size);
  return reply.result > 0 ? -EIO : reply.result;
}

int Reader::Pin(pid_t tid, int fd) {
  Request request;
  request.tid = tid;
  request.fd = fd;
  request.pin = 1;
  Reply reply;
  UniqueFd pinned;
  if (const int result = Ask(request, &reply, &pinned); result != 0) return result;
  if (reply.result < 0) return reply.result;
  // Without room in our table the descriptor is lost on the way.
  return pinned.valid() ? pinned.Release() : -EMFILE;
}

// 0 once a reply is there, else -ETIMEDOUT.
int Reader::Ask(Request& request, Reply* reply, UniqueFd* pinned) {
  if (hanging_ != 0) {
    // Of no use any more; when it is there, the reader hangs no more.
    const int late = Await(hanging_, 0, reply, pinned);
    if (pinned->valid()) late_ = std::move(*pinned);
    if (late == -ETIMEDOUT) return late;
    hanging_ = 0;
    if (late != 0) socket_.Reset();
  }
  request.sequence = ++sequence_;
  for (int attempt = 0; attempt < 2; ++attempt) {
    if (!socket_.valid()) {
      // Whoever kills it again and again does not keep us busy with that.
      const uint64_t now_ns = kernel::MonotonicNs();
      if (restarted_ns_ != 0 && now_ns - restarted_ns_ < kReaderRestartNs) return -ETIMEDOUT;
      restarted_ns_ = now_ns;
      if (!Spawn()) return -ETIMEDOUT;
    }
    // One request is on its way at a time, so there is room for it.
    if (::send(socket_.get(), &request, sizeof(request), MSG_NOSIGNAL | MSG_DONTWAIT) == sizeof(request)) {
      const int result = Await(request.sequence, kHangNs, reply, pinned);
      if (result == -ETIMEDOUT) hanging_ = request.sequence;
      if (result != -EPIPE) return result;
    }
    socket_.Reset();
  }
  return -ETIMEDOUT;
}

// 0: that reply is there; -ETIMEDOUT: not within the time; -EPIPE: the reader has gone.
int Reader::Await(uint64_t sequence, uint64_t wait_ns, Reply* reply, UniqueFd* pinned) {
  const uint64_t deadline_ns = kernel::MonotonicNs() + wait_ns;
  for (;;) {
    const uint64_t now_ns = kernel::MonotonicNs();
    const uint64_t left_ns = now_ns >= deadline_ns ? 0 : deadline_ns - now_ns;
    pollfd ready{socket_.get(), POLLIN, 0};
    const int polled = ::poll(&ready, 1, static_cast<int>((left_ns + 999'999) / 1'000'000));
    if (polled < 0 && errno == EINTR) continue;
    if (polled <= 0) return -ETIMEDOUT;
    *reply = {};
    iovec part{reply, sizeof(*reply)};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof(control);
    const ssize_t got = ::recvmsg(socket_.get(), &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (got != sizeof(*reply)) return -EPIPE;
    const cmsghdr* const header = CMSG_FIRSTHDR(&message);
    if (header != nullptr && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(header), sizeof(fd));
      pinned->Reset(fd);
    }
    if (reply->sequence == sequence) return 0;
    if (pinned->valid()) late_ = std::move(*pinned);
  }
}

int ServeReads(int socket) {
  (void)::prctl(PR_SET_DUMPABLE, 0);
  (void)::prctl(PR_SET_NAME, "oarlock-reader");
  const rlimit no_core{0, 0};
  (void)::setrlimit(RLIMIT_CORE, &no_core);
  (void)::chdir("/");
  for (;;) {
    Reader::Request request;
    const ssize_t got = ::recv(socket, &request, sizeof(request), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got != sizeof(request)) return 0;
    Reader::Reply reply;
    reply.sequence = request.sequence;
    UniqueFd pinned;
    bool is_socket = false;
    if (request.pin == 0) {
      if (request.size > sizeof(reply.bytes)) return 1;
      reply.size = request.size;
      reply.result = kernel::ReadCaller(request.tid, request.pointer, reply.bytes, request.size);
    } else {
      const UniqueFd task(kernel::OpenTask(request.tid));
      reply.result = task.valid() ? kernel::PinDescriptor(task.get(), request.fd) : task.get();
      if (reply.result >= 0) {
        pinned.Reset(reply.result);
        int domain = 0;
        reply.result = kernel::GetSocketInt(pinned.get(), SOL_SOCKET, SO_DOMAIN, &domain);
        is_socket = reply.result == 0;
        // Takes the socket's lock, which a send from a page that does not come holds for good (E-69): we wait here, not the
        // connect in our supervisor. A send that begins after this is not seen.
        sockaddr_storage address;
        socklen_t size = 0;
        if (is_socket) (void)kernel::GetLocalAddress(pinned.get(), &address, &size);
      }
    }
    const int fd = pinned.get();
    ssize_t sent = SendWithFds(socket, &reply, sizeof(reply), {&fd, is_socket ? 1U : 0U});
    if (sent < 0 && is_socket && (errno == ETOOMANYREFS || errno == ENOMEM || errno == ENOBUFS)) {
      // Too many of our user's are on their way: a shortage, after which the call is tried again.
      reply.result = -ENFILE;
      sent = ::send(socket, &reply, sizeof(reply), MSG_NOSIGNAL);
    }
    if (sent != sizeof(reply)) return 0;
    // Only now is a descriptor closed that is no socket: this may never come back.
  }
}

}  // namespace oarlock::supervisor
