// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <unordered_map>

#include "notif/base/unique_fd.h"
#include "notif/ring.h"

namespace oarlock::supervisor {

// The loop of a thread that is on no call's path (admission, control, the parent of a run): callbacks over one ring.
// Used on the thread that made it. Callbacks may add and remove others.
class Reactor {
 public:
  using Id = uint64_t;
  explicit Reactor(Ring ring) : ring_(std::move(ring)) {}

  // Calls `ready` once, with the events, when `fd` is ready. `fd` is borrowed and must outlive the call or Forget().
  Id OnReady(int fd, short events, std::function<void(int)> ready);
  // Calls `due` once, no earlier than after `delay`.
  Id After(std::chrono::milliseconds delay, std::function<void()> due);
  // The callback will not run. A poll that is in the ring may hold its file a moment longer.
  void Forget(Id id);
  // Calls `taken` with each connection to `listening`, which is non-blocking, borrowed, and listened to for ever: a few at a time, so
  // that a crowd at the door does not keep the rest of the loop waiting, and later where we are short of descriptors or memory.
  void OnConnection(int listening, std::function<void(UniqueFd)> taken);
  // Completions that other rings posted.
  void OnPost(std::function<void(uint64_t token, int32_t value)> post) { post_ = std::move(post); }
  // From this thread into another ring.
  void Post(int ring_fd, uint64_t token, int32_t value) { ring_.Post(ring_fd, token, value); }
  [[nodiscard]] Ring& ring() noexcept { return ring_; }

  // Sends what was posted, without waiting; and handles what has come.
  void Flush() { ring_.SubmitAndCollect(); }
  void Drain();

  void Run();   // until Stop()
  void Stop() noexcept { stopping_ = true; }
  [[nodiscard]] int ring_fd() const noexcept { return ring_.fd(); }

 private:
  [[nodiscard]] uint64_t WaitNs() const;
  void Accept(int listening, const std::function<void(UniqueFd)>& taken);
  void Handle(const Completion& completion);
  Ring ring_;
  Id next_ = 1;
  std::unordered_map<Id, std::function<void(int)>> ready_;
  std::map<std::pair<uint64_t, Id>, std::function<void()>> timers_;  // by when due
  std::function<void(uint64_t, int32_t)> post_;
  bool stopping_ = false;
};

}  // namespace oarlock::supervisor
