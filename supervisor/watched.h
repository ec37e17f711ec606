// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "notif/kernel.h"
#include "supervisor/shard.h"

namespace oarlock::supervisor {

// Does `act`, a step that the session's module can make slow: seen by the watchdog while it lasts, and held against the session
// where it lasted long or had to be ended. Two looks at the clock, 40 ns.
template <typename Act>
auto Shard::Watched(uint32_t index, Beat::Step step, Act act) {
  const uint64_t since_ns = kernel::MonotonicNs();
  beat_.Enter(step);
  const auto result = act();
  beat_.Leave();
  if (lane_ != nullptr) lane_->AwaitReturn();
  const uint64_t now_ns = kernel::MonotonicNs();
  const bool ended = beat_.TakeInterruption() == Beat::Step::kClose && step == Beat::Step::kClose;
  const uint64_t waited_ns = ended ? UINT64_MAX : now_ns - since_ns;
  if (waited_ns > options_.patience.strike_ns) Strike(index, now_ns, waited_ns);
  return result;
}

}  // namespace oarlock::supervisor
