// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

#include "supervisor/beat.h"
#include "supervisor/session.h"

namespace oarlock::supervisor {

// A slow lane: a shard with one session, whose thread may hang on what that session's module does. While it does, the stand-in
// refuses the session's further calls. This is how the two agree on whose the session is, without a lock.
class Lane {
 public:
  // `beat` is the shard's and outlives every use of the lane.
  explicit Lane(Beat& beat) : beat_(beat) {}

  // --- the shard's thread
  // The session that it serves now; null: none.
  void Serve(Session* session) noexcept { session_.store(session, std::memory_order_release); }
  // After every step that may hang: waits until the stand-in, where it has taken over, has given the session back.
  void AwaitReturn() noexcept {
    // Against TakeOver: either we see that it has taken over, or it sees that the beat has moved.
    beat_.Publish();
    while (lent_.load()) lent_.wait(true);
  }

  // --- the stand-in's thread
  [[nodiscard]] Beat::Reading Reading() const noexcept { return beat_.Read(); }
  // The session, if the shard has been in that very step all the while. Until GiveBack the shard touches it no more.
  [[nodiscard]] Session* TakeOver(Beat::Reading hanging) noexcept {
    Session* session = session_.load(std::memory_order_acquire);
    if (session == nullptr) return nullptr;
    lent_.store(true);
    if (beat_.Read() == hanging) return session;
    GiveBack();
    return nullptr;
  }
  void GiveBack() noexcept {
    lent_.store(false);
    lent_.notify_one();
  }

 private:
  Beat& beat_;
  std::atomic<Session*> session_ = nullptr;
  std::atomic<bool> lent_ = false;
};

}  // namespace oarlock::supervisor
