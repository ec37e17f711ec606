// SPDX-License-Identifier: Apache-2.0
#include "supervisor/control.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "notif/abi/process.h"
#include "notif/base/text.h"
#include "notif/json.h"
#include "supervisor/lanes.h"

namespace oarlock::supervisor {
namespace {

constexpr size_t kMaxRequest = 4096;
constexpr size_t kMaxPeers = 64;
constexpr int kIdleTimeoutMs = 30'000;  // between two requests

std::string Failure(const std::string& text) { return DumpJson({{"ok", false}, {"error", text}}); }

Json Describe(const SessionInfo& session) {
  return {{"session", std::string(session.facts.id.text())},
          {"pid", session.facts.pid},
          {"module", session.facts.module},
          {"uid", session.facts.uid},
          {"started", session.started_us / 1000},
          {"lane", Lanes::IsSlow(session.shard) ? "slow" : "fast"}};
}

// Removes the socket file of a supervisor that has gone. EADDRINUSE: one lives. A killed one's ring may keep its socket a moment
// longer than the process.
Status RemoveDead(const std::string& path, const sockaddr* address, int type) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) return {};
  if (!S_ISSOCK(status.st_mode)) return OARLOCK_FAIL("bind", EEXIST, "%s is there and no socket", path.c_str());
  for (int attempt = 0; attempt < 20; ++attempt) {
    const UniqueFd probe(::socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (::connect(probe.get(), address, sizeof(sockaddr_un)) != 0 && errno == ECONNREFUSED) {
      (void)::unlink(path.c_str());
      return {};
    }
    (void)::poll(nullptr, 0, 50);
  }
  return OARLOCK_FAIL("bind", EADDRINUSE, "%s: another supervisor serves it", path.c_str());
}

}  // namespace

Result<UniqueFd> ListenUnix(const std::string& path, int type, unsigned mode, int gid) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) return OARLOCK_FAIL("bind", ENAMETOOLONG, "%s", path.c_str());
  std::memcpy(address.sun_path, path.data(), path.size());
  const auto* generic = reinterpret_cast<const sockaddr*>(&address);

  OARLOCK_TRY_VOID(RemoveDead(path, generic, type));
  UniqueFd listening(::socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!listening.valid()) return OARLOCK_FAIL("socket", errno);
  // Accepted sockets inherit it: every message then shows who really sent it, from the first on.
  const int on = 1;
  (void)::setsockopt(listening.get(), SOL_SOCKET, SO_PASSCRED, &on, sizeof(on));
  const mode_t before = ::umask(0777 & ~mode);
  const int bound = ::bind(listening.get(), generic, sizeof(address));
  const int error = errno;
  (void)::umask(before);
  if (bound != 0) return OARLOCK_FAIL("bind", error, "%s", path.c_str());
  if (gid >= 0 && ::chown(path.c_str(), static_cast<uid_t>(-1), static_cast<gid_t>(gid)) != 0)
    return OARLOCK_FAIL("chown", errno, "%s", path.c_str());
  if (::chmod(path.c_str(), mode) != 0) return OARLOCK_FAIL("chmod", errno, "%s", path.c_str());
  if (::listen(listening.get(), 512) != 0) return OARLOCK_FAIL("listen", errno, "%s", path.c_str());
  return listening;
}

void Control::Listen(UniqueFd listening) {
  listening_ = std::move(listening);
  const int fd = listening_.get();
  // Accepted sockets inherit it. No request carries a descriptor; one whose close lingers must not even arrive (6.16; below, the
  // closer takes it).
  const int off = 0;
  (void)::setsockopt(fd, SOL_SOCKET, abi::kSoPassRights, &off, sizeof(off));
  reactor_.OnConnection(fd, [this](UniqueFd socket) { Take(std::move(socket)); });
}

void Control::Take(UniqueFd socket) {
  const int fd = socket.get();
  const bool crowded = peers_.size() >= kMaxPeers;
  peers_[fd].socket = std::move(socket);
  if (crowded) Drop(fd);
  else Await(fd);
}

void Control::Await(int fd) {
  Peer& peer = peers_.at(fd);
  if (peer.timer != 0) reactor_.Forget(peer.timer);
  peer.timer = reactor_.After(std::chrono::milliseconds(kIdleTimeoutMs), [this, fd] {
    peers_.at(fd).timer = 0;
    Drop(fd);
  });
  peer.poll = reactor_.OnReady(fd, POLLIN, [this, fd](int) {
    peers_.at(fd).poll = 0;
    OnReadable(fd);
  });
}

void Control::OnReadable(int fd) {
  char buffer[kMaxRequest];
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(ucred)) + CMSG_SPACE(sizeof(int) * 4)];
  iovec part{buffer, sizeof(buffer)};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  const ssize_t got = ::recvmsg(fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return Await(fd);
  if (got <= 0) return Drop(fd);

  ucred peer{}, sender{};
  bool has_sender = false, has_descriptors = false;
  socklen_t size = sizeof(peer);
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr; header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET) continue;
    if (header->cmsg_type == SCM_CREDENTIALS) {
      std::memcpy(&sender, CMSG_DATA(header), sizeof(sender));
      has_sender = true;
    } else if (header->cmsg_type == SCM_RIGHTS) {
      has_descriptors = true;
      for (size_t i = 0; i < (header->cmsg_len - CMSG_LEN(0)) / sizeof(int); ++i) {
        int received = -1;
        std::memcpy(&received, CMSG_DATA(header) + i * sizeof(int), sizeof(received));
        reactor_.Post(closer_ring_, Token::Make(TokenKind::kClose, static_cast<uint64_t>(received)), 0);
      }
    }
  }
  std::string answer;
  if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 || !has_sender || sender.pid != peer.pid)
    answer = Failure("the message is not of the process that connected");
  else if (has_descriptors)
    answer = Failure("no descriptors are due");
  else if ((message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0)
    answer = Failure("the request is longer than 4096 bytes");
  else
    answer = Answer(std::string(buffer, static_cast<size_t>(got)), peer);
  (void)::send(fd, answer.data(), answer.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  Await(fd);
}

std::string Control::Answer(const std::string& request, const ucred& peer) {
  const auto process = ReadProcess(peer.pid);
  if (!process) return Failure("the peer cannot be looked at");
  if (auto may = admission_.MayAsk(peer, *process); !may) return Failure(may.error().detail);
  std::string problem;
  const Json json = ParseStrictJson(request, &problem);
  if (!problem.empty()) return Failure(problem);
  const Json version = json.is_object() ? json.value("oarlock", Json()) : Json();
  if (!version.is_number_integer() || version != wire::kWireVersion)
    return Failure("the request must be an object of version 1");
  const Json verb = json.value("verb", Json());
  if (verb == "check") {
    const Json pid = json.value("pid", Json());
    if (!pid.is_number_unsigned() || pid.get<uint64_t>() > INT32_MAX) return Failure("'pid' must be a process id");
    const auto wanted = static_cast<pid_t>(pid.get<uint64_t>());
    const SessionInfo* session = admission_.Find(wanted);
    if (session == nullptr) return Failure("no session of ours");
    // Children inherit the filter and can only add to it.
    const auto confined = ReadProcess(wanted);
    if (!confined || !confined->no_new_privs || confined->seccomp_mode != 2 ||
        confined->seccomp_filters < session->seccomp_filters)
      return Failure("the process does not show the session's filter");
    return DumpJson({{"ok", true}, {"session", std::string(session->facts.id.text())}});
  }
  if (verb == "ps") {
    Json sessions = Json::array();
    for (const SessionInfo* session : admission_.Sessions()) sessions.push_back(Describe(*session));
    return DumpJson({{"ok", true}, {"sessions", sessions}});
  }
  return Failure("unknown verb '" + Printable(DumpJson(verb), 40) + "'");
}

void Control::Drop(int fd) {
  const auto at = peers_.find(fd);
  if (at == peers_.end()) return;
  if (at->second.timer != 0) reactor_.Forget(at->second.timer);
  if (at->second.poll != 0) reactor_.Forget(at->second.poll);
  reactor_.Post(closer_ring_, Token::Make(TokenKind::kClose, static_cast<uint64_t>(at->second.socket.Release())), 0);
  peers_.erase(at);
}

}  // namespace oarlock::supervisor
