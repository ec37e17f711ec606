// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "notif/kernel.h"

namespace oarlock::supervisor {

// WAIT_KILLABLE_RECV holds every handler back until a received call is answered, so a call that stays pending is ended by us
// when a signal waits for it.
enum class SignalVerdict : uint8_t {
  kNone,       // no signal that counts waits for this thread
  kRestart,    // answer -ERESTARTSYS: the kernel makes EINTR or a restart of it, as SA_RESTART says
  kInterrupt,  // answer -EINTR, but only when a second look says the same
};

// Whether the set of pending signals holds one that is neither blocked, nor ignored, nor ignored by default.
[[nodiscard]] bool HasDeliverable(uint64_t pending, const kernel::TaskSignals& task) noexcept;

// `task` is the caller's thread `tid`. `leader` is its thread group's leader, needed where LeaderMatters(); absent: it is
// dead. Pure.
//
// Only the thread that the kernel has chosen for a process-wide signal may see -ERESTARTSYS: in another, errno 512 would
// leak to the program. Which one was chosen cannot be seen; the kernel prefers the leader, unless that blocks the signal.
// SIGCHLD is left to the plain EINTR, since programs block it in all threads but one of their choice.
[[nodiscard]] SignalVerdict JudgeSignals(pid_t tid, const kernel::TaskSignals& task,
                                         const std::optional<kernel::TaskSignals>& leader) noexcept;
[[nodiscard]] bool LeaderMatters(pid_t tid, const kernel::TaskSignals& task) noexcept;

}  // namespace oarlock::supervisor
