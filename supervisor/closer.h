// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "notif/ring.h"
#include "supervisor/watchdog.h"

namespace oarlock::supervisor {

// A thread that does nothing but close descriptors which somebody hostile may have touched: the last close of a lingering
// socket, or of one whose queue holds such a socket, waits as long as that somebody chose (8.2 s measured, E-212).
// Descriptors arrive by Post (TokenKind::kClose), the end by kStop. Its thread is nobody's to wait for: a close may outlast
// everything else.
class Closer {
 public:
  // The watchdog ends closes that sleep.
  [[nodiscard]] static Result<std::unique_ptr<Closer>> Start(const std::shared_ptr<Watchdog>& watchdog);
  ~Closer();
  [[nodiscard]] int ring_fd() const noexcept { return ring_fd_; }

 private:
  explicit Closer(std::shared_ptr<Watchdog> watchdog) : watchdog_(std::move(watchdog)), beat_(std::make_shared<Beat>()) {}
  // Both shared with the thread, which may outlive us.
  std::shared_ptr<Watchdog> watchdog_;
  std::shared_ptr<Beat> beat_;
  int ring_fd_ = -1;
};

}  // namespace oarlock::supervisor
