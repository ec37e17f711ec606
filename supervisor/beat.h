// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>

namespace oarlock::supervisor {

// What a shard's thread is doing that somebody outside could make slow. Written by that thread, read by the watchdog, without
// a lock; a store costs a nanosecond.
class Beat {
 public:
  enum class Step : uint8_t {
    kNone,
    kReceive,  // RECV: waits where somebody else has taken what the poll announced
    kRead,    // the caller's memory: its mmap lock, a stalled page
    kPin,     // its descriptor table
    kSubmit,  // the socket's lock
    kClose,   // whatever a pinned descriptor's last close does
  };
  // A moment's value: two equal ones with a step in them mean that the thread has been in the same step all the while.
  struct Reading {
    uint64_t word = 0;
    [[nodiscard]] Step step() const noexcept { return static_cast<Step>(word & 0xff); }
    friend bool operator==(const Reading&, const Reading&) = default;
  };

  // The watched thread, before all else.
  void Attach(pid_t tid) noexcept { tid_.store(tid, std::memory_order_release); }
  void Enter(Step step) noexcept { word_.store((++sequence_ << 8) | static_cast<uint64_t>(step), std::memory_order_release); }
  void Leave() noexcept { word_.store(++sequence_ << 8, std::memory_order_release); }
  // Orders the last Enter or Leave before whatever the thread reads next.
  void Publish() noexcept { (void)word_.fetch_add(0, std::memory_order_seq_cst); }
  // The step that the watchdog has ended since the last question; kNone: none.
  [[nodiscard]] Step TakeInterruption() noexcept {
    if (interrupted_.load(std::memory_order_acquire) == Step::kNone) return Step::kNone;
    return interrupted_.exchange(Step::kNone, std::memory_order_acq_rel);
  }

  // The watchdog, and a lane's stand-in.
  [[nodiscard]] Reading Read() const noexcept { return {word_.load(std::memory_order_seq_cst)}; }
  [[nodiscard]] pid_t tid() const noexcept { return tid_.load(std::memory_order_acquire); }
  void NoteInterruption(Step step) noexcept { interrupted_.store(step, std::memory_order_release); }

 private:
  std::atomic<uint64_t> word_ = 0;
  std::atomic<pid_t> tid_ = 0;
  std::atomic<Step> interrupted_ = Step::kNone;
  uint64_t sequence_ = 0;
};

}  // namespace oarlock::supervisor
