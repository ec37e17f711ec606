// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "notif/base/result.h"
#include "supervisor/beat.h"

namespace oarlock::supervisor {

// Looks at every watched thread's beat each 5 ms and signals one that it sees *asleep* in the same close or RECV at two looks:
// the last close of a lingering socket waits as long as its owner chose (E-66), and RECV waits for ever where whoever admitted
// the session kept a copy of the listener and receives too. A signal ends either at once. Parked while nothing moves; shares
// no lock with a watched thread.
class Watchdog {
 public:
  // The signal that watched threads leave unblocked. Its handler does nothing.
  [[nodiscard]] static int Signal() noexcept;
  // Installs the handler and starts the thread. Before any watched thread, which inherits the disposition.
  [[nodiscard]] static Result<std::shared_ptr<Watchdog>> Start();
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  // From the thread that makes and ends watched threads. A beat must outlive Forget.
  void Watch(Beat* beat);
  void Forget(Beat* beat);

  // A watched thread, each time that it wakes up: one load, and a system call only where the watchdog sleeps.
  void Stir() noexcept {
    if (parked_.load(std::memory_order_relaxed)) Unpark();
  }

  // In a watched thread, once: lets the signal through.
  static void UnblockSignal() noexcept;

 private:
  Watchdog() = default;
  void Run();
  void Look();
  void Unpark() noexcept;

  struct Watched {
    Beat* beat;
    Beat::Reading last;
  };
  std::mutex mutex_;                 // of the list; never held by a watched thread
  std::vector<Watched> watched_;
  std::atomic<bool> parked_ = false;
  std::atomic<bool> stopping_ = false;
  unsigned quiet_ = 0;               // looks without any movement
  std::thread thread_;
};

}  // namespace oarlock::supervisor
