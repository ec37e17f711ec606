// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <memory>
#include <span>

#include "notif/base/result.h"
#include "notif/kernel.h"

namespace oarlock {

struct Completion {
  uint64_t token;   // as given to the operation
  int32_t result;   // >= 0, or -errno
};

// One io_uring, used by one thread: the one that made it (SINGLE_ISSUER; personalities too can be registered by no other).
// A part of the seam of notif/kernel.h. liburing is seen by notif/ring.cc alone.
//
// Operations are queued and reach the kernel with the next Submit…; a full queue submits by itself. A pointer given to an
// operation is borrowed until its completion. Every operation yields exactly one completion, also a cancelled one
// (-ECANCELED); Post yields one on the *target* ring only.
class Ring {
 public:
  struct Options {
    unsigned entries = 256;
    unsigned completions = 4096;
    bool watches = false;  // Watch will be asked of it
  };
  // ENOSYS, EPERM: io_uring is absent or switched off (kernel.io_uring_disabled, a container's profile); the message
  // names the remedy.
  [[nodiscard]] static Result<Ring> Make(const Options& options);
  Ring(Ring&&) noexcept;
  Ring& operator=(Ring&&) noexcept;
  ~Ring();

  // One-shot poll; the result is the event mask.
  void Poll(int fd, short events, uint64_t token);
  // The same, for a few descriptors that are asked often: waited for by poll(2) in SubmitAndWait. Its wake-up can stay on the
  // CPU of the caller that makes it (seccomp's SYNC_WAKE_UP asks for that), the ring's own cannot: measured, 14 against 19 to
  // 46 us for the round trip of a socket(2). Every wait costs 0.1 us for each. False where kMaxWatched are watched: then
  // Poll.
  [[nodiscard]] bool Watch(int fd, short events, uint64_t token);
  // Forgets one; there will be no completion. False where it is not watched (any more).
  [[nodiscard]] bool Unwatch(uint64_t token);
  // Polls in the ring whatever is watched, from the next submission on.
  void PollInstead();
  static constexpr unsigned kMaxWatched = 4;
  // Connects `fd` to an address of ours that stays valid until the completion, with the given personality (0: the ring's).
  // Never gives EINPROGRESS: a connect that does not finish at once stays in flight until it does or is cancelled, also on
  // an O_NONBLOCK socket; unix on an O_NONBLOCK socket gives EAGAIN.
  void Connect(int fd, const sockaddr* address, socklen_t size, uint16_t personality, uint64_t token);
  // Asks for the cancellation of the operation with `target`'s token. Only a request: its own completion decides. Right
  // after a submission it can miss, so it is repeated until the target's completion has come.
  void Cancel(uint64_t target, uint64_t token);
  // Puts a completion {token, value} into another ring (MSG_RING).
  void Post(int ring_fd, uint64_t token, int32_t value);

  // Submits what is queued and waits until a completion is there or `timeout_ns` has gone by (UINT64_MAX: no limit).
  void SubmitAndWait(uint64_t timeout_ns);
  // Submits what is queued and runs what can complete at once; never waits.
  void SubmitAndCollect();
  // Moves completions out; returns how many. Zero: none left for now.
  [[nodiscard]] size_t Take(std::span<Completion> out);

  // Registers `credentials`, with no capabilities, as a personality: effective ids only, raw calls on this thread alone, and
  // back (a changed real id would let a neighbour of that uid signal us in that moment). EPERM without CAP_SETUID and
  // CAP_SETGID unless they are the thread's own.
  [[nodiscard]] Result<uint16_t> RegisterPersonality(const kernel::Credentials& credentials);
  void UnregisterPersonality(uint16_t personality);
  // The most kernel workers that may block at once in this ring's operations.
  [[nodiscard]] Status SetMaxBlockedWorkers(unsigned count);

  [[nodiscard]] int fd() const noexcept;

 private:
  struct State;
  explicit Ring(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace oarlock
