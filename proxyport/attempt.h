// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <utility>

#include "notif/ring.h"
#include "proxyport/gate.h"

namespace oarlock::proxyport {

// One connect on behalf of a caller: its pinned socket, a constant address of ours, through the ring. Embedded in the
// shard's call; the shard gives it the ring's completions and asks at each turn. Lives on the shard's thread.
//
// Always IORING_OP_CONNECT, never connect(2): a plain connect on a socket that *was* O_NONBLOCK when it was looked at can
// block the thread (another thread of the module changes the flag). The ring's connect never gives EINPROGRESS, so that
// answer is made by cancelling: the connection goes on in the kernel, and SO_ERROR stays for the caller.
//
// The socket stays open while busy(); closing it is the owner's. There is no deadline of our own: the kernel's, SO_SNDTIMEO,
// a signal or the caller's end finish it.
class Attempt {
 public:
  // Tokens for the ring; all three are this attempt's until it is no longer busy().
  struct Tokens {
    uint64_t connect, poll, cancel;
  };

  // Queues the connect. `fd` is borrowed until the attempt is no longer busy(). `deadline_ns`: when SO_SNDTIMEO ends the wait,
  // where the caller has waited before; 0: it begins now.
  void Begin(Ring& ring, int fd, const Target& target, uint16_t personality, const Tokens& tokens, uint64_t deadline_ns = 0) noexcept;
  // After the submission that carried Begin, where the completion has not come: looks at the socket's flags once and answers a
  // non-blocking TCP caller by cancelling. `now_ns` starts SO_SNDTIMEO.
  void Settle(Ring& ring, uint64_t now_ns) noexcept;

  // Completions of the tokens. Any that is stale is ignored.
  void OnConnect(Ring& ring, int result) noexcept;
  void OnPoll(Ring& ring) noexcept;
  void OnCancel(Ring& ring, int result) noexcept;
  // Whether a connect was queued since the last question. Its submission waits for the socket's lock, so whoever submits looks at
  // the clock.
  [[nodiscard]] bool TakeQueued() noexcept { return std::exchange(queued_, false); }

  // Stops the attempt: the caller has gone, a signal waits for it, or it is to go on in another ring. The end comes with a later completion.
  enum class Stop : uint8_t { kGone, kSignal, kMove };
  void Cancel(Ring& ring, Stop stop) noexcept;
  // Now and then: ends the attempt if SO_SNDTIMEO has gone by, and repeats a cancellation that has not worked yet.
  void Tick(Ring& ring, uint64_t now_ns) noexcept;

  // Something is in the ring that refers to the socket.
  [[nodiscard]] bool busy() const noexcept { return phase_ != Phase::kIdle; }
  // The result once no longer busy(): 0, or -errno. -ECANCELED after Cancel() where the connect had not ended by itself.
  [[nodiscard]] int result() const noexcept { return result_; }
  // The socket had connected to itself: SELF_CONNECT, and it has been disconnected again.
  [[nodiscard]] bool self_connected() const noexcept { return self_connected_; }
  [[nodiscard]] bool settled() const noexcept { return settled_; }
  [[nodiscard]] bool blocking() const noexcept { return settled_ && !nonblocking_; }
  [[nodiscard]] uint64_t deadline_ns() const noexcept { return deadline_ns_; }

 private:
  enum class Phase : uint8_t {
    kIdle,
    kConnecting,   // the connect is in the ring
    kCancelling,   // ... and so is its cancellation
    kWritable,     // a second connect on a connecting socket: waits for POLLOUT, then connects again
    kUnpolling,    // ... and that wait is being cancelled
    kUndoing,      // disconnects a self-connected socket
  };
  enum class End : uint8_t { kNone, kNonBlocking, kTimedOut, kStopped };

  void Submit(Ring& ring) noexcept;
  void Ask(Ring& ring) noexcept;            // queues a cancellation of what is in flight
  void StopFor(Ring& ring, End end) noexcept;
  void Stopped(Ring& ring) noexcept;        // what was in flight has been cancelled
  void Finish(Ring& ring, int result) noexcept;
  [[nodiscard]] bool IsSelfConnected() const noexcept;

  Phase phase_ = Phase::kIdle;
  End end_ = End::kNone;
  bool settled_ = false;
  bool nonblocking_ = false;
  bool again_ = false;           // the socket was connecting already when we began
  bool self_connected_ = false;
  bool queued_ = false;  // a connect, TakeQueued
  bool cancel_queued_ = false;
  uint8_t retries_ = 0;
  uint8_t misses_ = 0;
  uint16_t personality_ = 0;
  int fd_ = -1;
  int result_ = 0;
  const Target* target_ = nullptr;
  uint64_t deadline_ns_ = 0;     // 0: none
  Tokens tokens_{};
};

}  // namespace oarlock::proxyport
