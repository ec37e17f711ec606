// SPDX-License-Identifier: Apache-2.0
#include "proxyport/attempt.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>

#include <cerrno>
#include <cstring>

#include "notif/base/check.h"
#include "notif/kernel.h"

namespace oarlock::proxyport {
namespace {

// A kernel worker that is interrupted without our asking: tried again this often, then the errno is passed on.
constexpr uint8_t kMaxRetries = 8;
// Cancellations that find nothing, one after the other, before the next tick.
constexpr uint8_t kMaxMisses = 64;

const Target kDisconnect = [] {
  Target target;
  target.kind = Target::Kind::kDisconnect;
  target.size = sizeof(sockaddr_in);
  target.address.ss_family = AF_UNSPEC;
  return target;
}();

bool WasCancelled(int result) noexcept {
  // A connect that blocks in a kernel worker is ended by a signal to it, so it reports the interruption.
  return result == -ECANCELED || result == -EINTR;
}

}  // namespace

void Attempt::Begin(Ring& ring, int fd, const Target& target, uint16_t personality, const Tokens& tokens, uint64_t deadline_ns) noexcept {
  OARLOCK_CHECK(phase_ == Phase::kIdle);
  const bool resumed = target_ != nullptr;
  fd_ = fd;
  target_ = &target;
  personality_ = personality;
  tokens_ = tokens;
  end_ = End::kNone;
  result_ = 0;
  cancel_queued_ = false;  // if there was one, it has done its work
  // A resumed attempt (a signal came and went, or it is in another ring now) keeps its deadline and what it knows of the socket.
  if (!resumed) {
    settled_ = nonblocking_ = again_ = self_connected_ = false;
    retries_ = misses_ = 0;
    deadline_ns_ = deadline_ns;
  }
  Submit(ring);
}

void Attempt::Submit(Ring& ring) noexcept {
  phase_ = Phase::kConnecting;
  queued_ = true;
  ring.Connect(fd_, reinterpret_cast<const sockaddr*>(&target_->address), target_->size, personality_,
               tokens_.connect);
}

void Attempt::Settle(Ring& ring, uint64_t now_ns) noexcept {
  if (settled_ || phase_ == Phase::kIdle) return;
  settled_ = true;
  const int flags = kernel::GetFileFlags(fd_);
  nonblocking_ = flags >= 0 && (flags & O_NONBLOCK) != 0;
  if (nonblocking_) {
    // A unix connect on a non-blocking socket ends by itself (EAGAIN).
    if (target_->kind == Target::Kind::kTcp && phase_ == Phase::kConnecting) StopFor(ring, End::kNonBlocking);
    return;
  }
  uint64_t timeout_ns = 0;
  if (deadline_ns_ == 0 && kernel::GetSocketTimeNs(fd_, SOL_SOCKET, SO_SNDTIMEO, &timeout_ns) == 0 && timeout_ns != 0)
    deadline_ns_ = now_ns + timeout_ns;
}

void Attempt::OnConnect(Ring& ring, int result) noexcept {
  switch (phase_) {
    case Phase::kUndoing:
      Finish(ring, -ECONNREFUSED);
      return;
    case Phase::kCancelling:
      if (WasCancelled(result)) Stopped(ring);
      else Finish(ring, result);  // it ended by itself before the cancellation reached it
      return;
    case Phase::kConnecting:
      break;
    case Phase::kIdle:
    case Phase::kWritable:
    case Phase::kUnpolling:
      return;
  }
  if (result == -EALREADY && target_->kind == Target::Kind::kTcp) {
    // A second connect on a connecting socket. A blocking one waits in the kernel; the ring does not, so we do.
    again_ = true;
    const int flags = kernel::GetFileFlags(fd_);
    nonblocking_ = flags >= 0 && (flags & O_NONBLOCK) != 0;
    if (nonblocking_) return Finish(ring, result);
    phase_ = Phase::kWritable;
    ring.Poll(fd_, POLLOUT, tokens_.poll);
    return;
  }
  if (WasCancelled(result) && retries_ < kMaxRetries) {
    ++retries_;
    return Submit(ring);
  }
  Finish(ring, result);
}

void Attempt::OnPoll(Ring& ring) noexcept {
  if (phase_ == Phase::kUnpolling) return Stopped(ring);
  // Connect *again* rather than read SO_ERROR: that would leave the socket connecting, and a third connect would then
  // give 0 for EISCONN.
  if (phase_ == Phase::kWritable) Submit(ring);
}

void Attempt::OnCancel(Ring& ring, int result) noexcept {
  cancel_queued_ = false;
  // It can miss right after the submission, so it is repeated at once; one that reached a busy kernel worker is repeated at
  // the next tick. Only the target's own completion ends this.
  const bool wanted = phase_ == Phase::kCancelling || phase_ == Phase::kUnpolling;
  if (wanted && result == -ENOENT && misses_ < kMaxMisses) {
    ++misses_;
    Ask(ring);
  }
}

void Attempt::Ask(Ring& ring) noexcept {
  if (cancel_queued_) return;
  cancel_queued_ = true;
  ring.Cancel(phase_ == Phase::kUnpolling ? tokens_.poll : tokens_.connect, tokens_.cancel);
}

void Attempt::StopFor(Ring& ring, End end) noexcept {
  if (phase_ == Phase::kConnecting) phase_ = Phase::kCancelling;
  else if (phase_ == Phase::kWritable) phase_ = Phase::kUnpolling;
  else return;  // idle, on its way out already, or undoing: a matter of one turn
  end_ = end;
  Ask(ring);
}

void Attempt::Stopped(Ring& ring) noexcept {
  switch (end_) {
    case End::kNonBlocking:
      return Finish(ring, -EINPROGRESS);
    case End::kTimedOut:
      // As connect(2) natively: TCP goes on in the background, unix did not get in.
      if (target_->kind != Target::Kind::kTcp) return Finish(ring, -EAGAIN);
      return Finish(ring, again_ ? -EALREADY : -EINPROGRESS);
    case End::kStopped:
    case End::kNone:
      return Finish(ring, -ECANCELED);
  }
}

void Attempt::Cancel(Ring& ring, Stop stop) noexcept {
  // A caller that has gone overrides what else was to be answered.
  if (stop == Stop::kGone && (phase_ == Phase::kCancelling || phase_ == Phase::kUnpolling)) end_ = End::kStopped;
  StopFor(ring, End::kStopped);
}

void Attempt::Tick(Ring& ring, uint64_t now_ns) noexcept {
  misses_ = 0;
  if (phase_ == Phase::kCancelling || phase_ == Phase::kUnpolling) return Ask(ring);
  if (deadline_ns_ != 0 && now_ns >= deadline_ns_) StopFor(ring, End::kTimedOut);
}

void Attempt::Finish(Ring& ring, int result) noexcept {
  // While the proxy is down, a loopback connect whose own port happens to be the proxy's connects to itself and then keeps
  // the proxy from binding (E-45).
  const bool may_be_connected = result == 0 || result == -EINPROGRESS;
  if (phase_ != Phase::kUndoing && may_be_connected && target_->kind == Target::Kind::kTcp && IsSelfConnected()) {
    self_connected_ = true;
    phase_ = Phase::kUndoing;
    queued_ = true;
    ring.Connect(fd_, reinterpret_cast<const sockaddr*>(&kDisconnect.address), kDisconnect.size, 0, tokens_.connect);
    return;
  }
  phase_ = Phase::kIdle;
  result_ = result;
}

bool Attempt::IsSelfConnected() const noexcept {
  sockaddr_storage local{};
  socklen_t size = 0;
  if (kernel::GetLocalAddress(fd_, &local, &size) != 0) return false;
  sockaddr_in6 own{}, peer{};
  std::memcpy(&own, &local, sizeof(own));
  std::memcpy(&peer, &target_->address, sizeof(peer));
  if (own.sin6_family != peer.sin6_family || own.sin6_port != peer.sin6_port) return false;
  if (own.sin6_family == AF_INET6) return std::memcmp(&own.sin6_addr, &peer.sin6_addr, sizeof(own.sin6_addr)) == 0;
  sockaddr_in own4{}, peer4{};
  std::memcpy(&own4, &local, sizeof(own4));
  std::memcpy(&peer4, &target_->address, sizeof(peer4));
  return own4.sin_addr.s_addr == peer4.sin_addr.s_addr;
}

}  // namespace oarlock::proxyport
