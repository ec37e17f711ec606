// SPDX-License-Identifier: Apache-2.0
// Looking at calls that stay pending: the caller's end, its signals, SO_SNDTIMEO.
#include <algorithm>
#include <cerrno>

#include "notif/abi/process.h"
#include "notif/kernel.h"
#include "supervisor/shard.h"
#include "supervisor/signals.h"

namespace oarlock::supervisor {
namespace {

std::optional<kernel::TaskSignals> LeaderOf(const kernel::TaskSignals& task) noexcept {
  const UniqueFd status(kernel::OpenTaskStatus(task.tgid));
  if (!status.valid()) return std::nullopt;
  kernel::TaskSignals leader;
  if (kernel::ReadTaskSignals(status.get(), &leader) != 0) return std::nullopt;
  return leader;
}

}  // namespace

void Shard::Pend(uint32_t at) {
  Call& call = calls_[at];
  if (call.pending_at != kNoSlot) return;
  call.pending_at = static_cast<uint32_t>(pending_.size());
  call.next_look_ns = turn_ns_ + kLookIntervalNs;
  // A wait that SO_SNDTIMEO ends is looked at then, not at the next round time.
  if (const uint64_t deadline_ns = call.WaitsUntil(); deadline_ns != 0) call.next_look_ns = std::min(call.next_look_ns, deadline_ns);
  if (pending_.empty() || call.next_look_ns < next_look_ns_) next_look_ns_ = call.next_look_ns;
  pending_.push_back(at);
}

void Shard::Unpend(uint32_t at) {
  Call& call = calls_[at];
  if (call.pending_at == kNoSlot) return;
  const uint32_t last = pending_.back();
  pending_[call.pending_at] = last;
  calls_[last].pending_at = call.pending_at;
  pending_.pop_back();
  call.pending_at = kNoSlot;
}

void Shard::Look() {
  if (pending_.empty()) return;
  const uint64_t now = kernel::MonotonicNs();
  if (now < next_look_ns_) return;
  // Backwards, since looking may end calls and so move the last one down; round robin over turns when the budget is short.
  unsigned looks = 0;
  size_t left = pending_.size();
  if (look_next_ >= left) look_next_ = left;
  size_t position = look_next_ == 0 ? left : look_next_;
  while (left-- > 0 && looks < kLooksPerTurn && !pending_.empty()) {
    position = std::min(position, pending_.size());
    if (position == 0) position = pending_.size();
    const uint32_t at = pending_[--position];
    if (calls_[at].next_look_ns <= now) {
      ++looks;
      calls_[at].next_look_ns = now + kLookIntervalNs;
      LookAt(at);
    }
  }
  look_next_ = position;
  next_look_ns_ = looks >= kLooksPerTurn ? now : UINT64_MAX;
  if (looks < kLooksPerTurn)
    for (const uint32_t at : pending_) {
      Call& call = calls_[at];
      if (const uint64_t deadline_ns = call.WaitsUntil(); deadline_ns > now)
        call.next_look_ns = std::min(call.next_look_ns, deadline_ns);
      next_look_ns_ = std::min(next_look_ns_, call.next_look_ns);
    }
}

void Shard::LookAt(uint32_t at) {
  Call& call = calls_[at];
  Session& session = *sessions_[call.session].session;
  if (!call.caller_gone && kernel::IdValid(session.listener.get(), call.id) != 0) call.caller_gone = true;
  switch (call.state) {
    case Call::State::kRetry: {
      if (call.caller_gone) return Release(at);
      Unpend(at);
      call.state = Call::State::kStarting;
      return Handle(at);
    }
    case Call::State::kQueued: {
      int error = 0;
      if (call.deadline_ns != 0 && kernel::MonotonicNs() >= call.deadline_ns) error = -EAGAIN;  // SO_SNDTIMEO, as natively
      else if (!call.caller_gone && !SignalEnds(call, &error)) return;
      Unqueue(at);
      return call.caller_gone ? Release(at) : Answer(at, error);
    }
    case Call::State::kHeld:
      if (call.caller_gone) Release(at);
      return;
    case Call::State::kConnecting: {
      if (call.caller_gone) {
        call.attempt.Tick(*ring_, turn_ns_);
        return call.attempt.Cancel(*ring_, proxyport::Attempt::Stop::kGone);
      }
      call.attempt.Tick(*ring_, kernel::MonotonicNs());
      int error = 0;
      if (!call.signalled && SignalEnds(call, &error)) {
        call.signalled = true;
        call.attempt.Cancel(*ring_, proxyport::Attempt::Stop::kSignal);
      }
      return;
    }
    case Call::State::kFree:
    case Call::State::kStarting:
    case Call::State::kRecord:
    case Call::State::kRecording:
      // Not pending: the writer's acknowledgement ends these.
      return Unpend(at);
  }
}

// Whether a signal waits for the caller and what its call is to be answered, so that the handler can run.
bool Shard::SignalEnds(Call& call, int* error) {
  if (!call.status.valid()) {
    const int fd = kernel::OpenTaskStatus(call.tid);
    if (fd < 0) return false;
    call.status.Reset(fd);
  }
  kernel::TaskSignals task;
  if (kernel::ReadTaskSignals(call.status.get(), &task) != 0) return false;
  std::optional<kernel::TaskSignals> leader;
  if (LeaderMatters(call.tid, task)) leader = LeaderOf(task);
  switch (JudgeSignals(call.tid, task, leader)) {
    case SignalVerdict::kNone:
      call.interrupt_seen = false;
      return false;
    case SignalVerdict::kRestart:
      *error = -abi::kErestartsys;
      return true;
    case SignalVerdict::kInterrupt:
      *error = -EINTR;
      return std::exchange(call.interrupt_seen, true);
  }
  return false;
}

}  // namespace oarlock::supervisor
