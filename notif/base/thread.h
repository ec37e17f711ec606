// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <system_error>
#include <thread>
#include <utility>

#include "notif/base/result.h"

namespace oarlock {

// A thread that runs `body`, or the errno for which there is none now (EAGAIN: RLIMIT_NPROC, the system's limits; pthread_create(3)).
// Std's constructor throws, and a thread that cannot be made is no reason for a supervisor to stop.
template <typename Body>
[[nodiscard]] Result<std::thread> MakeThread(Body&& body) {
  try {
    return std::thread(std::forward<Body>(body));
  } catch (const std::system_error& failure) {
    return OARLOCK_FAIL("pthread_create", failure.code().value());
  }
}

}  // namespace oarlock
