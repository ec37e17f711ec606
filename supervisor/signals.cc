// SPDX-License-Identifier: Apache-2.0
#include "supervisor/signals.h"

#include <csignal>

namespace oarlock::supervisor {
namespace {

constexpr uint64_t Bit(int signal) noexcept { return 1ULL << (signal - 1); }
constexpr uint64_t kIgnoredByDefault = Bit(SIGCHLD) | Bit(SIGCONT) | Bit(SIGURG) | Bit(SIGWINCH);

uint64_t Deliverable(uint64_t pending, const kernel::TaskSignals& task) noexcept {
  return pending & ~task.blocked & ~task.ignored & ~(kIgnoredByDefault & ~task.caught);
}

bool IsDead(const kernel::TaskSignals& task) noexcept { return task.state == 'Z' || task.state == 'X'; }

}  // namespace

bool HasDeliverable(uint64_t pending, const kernel::TaskSignals& task) noexcept {
  return Deliverable(pending, task) != 0;
}

bool LeaderMatters(pid_t tid, const kernel::TaskSignals& task) noexcept {
  return task.threads > 1 && tid != task.tgid && HasDeliverable(task.shared_pending, task);
}

SignalVerdict JudgeSignals(pid_t tid, const kernel::TaskSignals& task,
                           const std::optional<kernel::TaskSignals>& leader) noexcept {
  if (HasDeliverable(task.thread_pending, task)) return SignalVerdict::kRestart;
  const uint64_t shared = Deliverable(task.shared_pending, task);
  if (shared == 0) return SignalVerdict::kNone;
  if (task.threads <= 1) return SignalVerdict::kRestart;
  const uint64_t chosen_by_leader = shared & ~Bit(SIGCHLD);
  if (tid == task.tgid) return chosen_by_leader != 0 ? SignalVerdict::kRestart : SignalVerdict::kInterrupt;
  if (!leader || IsDead(*leader)) return SignalVerdict::kInterrupt;
  const bool leader_takes_all = (shared & Bit(SIGCHLD)) == 0 && (shared & leader->blocked) == 0;
  return leader_takes_all ? SignalVerdict::kNone : SignalVerdict::kInterrupt;
}

}  // namespace oarlock::supervisor
