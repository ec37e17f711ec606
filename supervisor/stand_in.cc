// SPDX-License-Identifier: Apache-2.0
#include "supervisor/stand_in.h"

#include <poll.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <future>

#include "audit/writer.h"
#include "notif/base/thread.h"
#include "notif/kernel.h"
#include "supervisor/limits.h"
#include "supervisor/record_call.h"
#include "supervisor/token.h"

namespace oarlock::supervisor {

Result<std::unique_ptr<StandIn>> StandIn::Start(int writer_ring) {
  std::unique_ptr<StandIn> self(new StandIn(writer_ring));
  std::promise<Status> ready;
  self->thread_ = OARLOCK_TRY(MakeThread([&self = *self, &ready] {
    (void)::prctl(PR_SET_NAME, "oarlock-standin");
    auto ring = Ring::Make({.entries = 8, .completions = 64});
    if (!ring) return ready.set_value(std::unexpected(ring.error()));
    self.ring_.emplace(std::move(*ring));
    ready.set_value({});
    self.Run();
    self.ring_.reset();
  }));
  if (auto status = ready.get_future().get(); !status) return std::unexpected(status.error());
  return self;
}

StandIn::~StandIn() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void StandIn::Watch(std::shared_ptr<Lane> lane) {
  {
    const std::lock_guard lock(mutex_);
    const Beat::Reading now = lane->Reading();
    watched_.push_back({.lane = std::move(lane), .last = now, .since_ns = kernel::MonotonicNs(), .taken = nullptr});
  }
  changed_.notify_all();
}

void StandIn::Forget(const Lane* lane) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return in_hand_ != lane; });
  std::erase_if(watched_, [lane](Watched& watched) {
    if (watched.lane.get() != lane) return false;
    if (watched.taken != nullptr) watched.lane->GiveBack();
    return true;
  });
}

void StandIn::Run() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    if (watched_.empty()) {
      changed_.wait(lock);
      continue;
    }
    Look(lock);
    // While a session is in our hands, its thread must not wait long for us once it is free again.
    const bool taken = std::ranges::any_of(watched_, [](const Watched& watched) { return watched.taken != nullptr; });
    (void)changed_.wait_for(lock, std::chrono::milliseconds(taken ? kStandInBusyMs : kStandInIdleMs));
  }
  for (Watched& watched : watched_)
    if (watched.taken != nullptr) watched.lane->GiveBack();
}

void StandIn::Look(std::unique_lock<std::mutex>& lock) {
  const uint64_t now = kernel::MonotonicNs();
  for (Watched& watched : watched_) {
    const Beat::Reading reading = watched.lane->Reading();
    if (reading != watched.last) {
      watched.last = reading;
      watched.since_ns = now;
      if (std::exchange(watched.taken, nullptr) != nullptr) watched.lane->GiveBack();
      continue;
    }
    if (reading.step() == Beat::Step::kNone || now - watched.since_ns < kHangNs) continue;
    if (watched.taken == nullptr) watched.taken = watched.lane->TakeOver(reading);
    // One RECV per announcement, as everywhere: with its thread hanging and nobody else at the listener, it does not block.
    for (unsigned i = 0; i < kStandInCalls && watched.taken != nullptr; ++i) {
      pollfd announced{watched.taken->listener.get(), POLLIN, 0};
      if (::poll(&announced, 1, 0) != 1 || (announced.revents & POLLIN) == 0) break;
      // The log may keep us waiting, which is nobody else's matter.
      in_hand_ = watched.lane.get();
      lock.unlock();
      RefuseOne(*watched.taken);
      lock.lock();
      in_hand_ = nullptr;
      changed_.notify_all();
    }
  }
}

void StandIn::RefuseOne(Session& session) {
  abi::SeccompNotif notification;
  if (kernel::Receive(session.listener.get(), &notification) != 0) return;
  Call call;
  TakeIn(notification, &call);
  call.received_ns = call.ready_ns = kernel::MonotonicNs();
  call.refusal = Refusal::kAddressUnreadable;
  call.error = session.gate.ErrorOf(call.refusal);
  ++session.calls;
  ++session.refusals;
  ++session.denials;
  const int written = Write(call, session);
  (void)kernel::Reply(session.listener.get(), call.id, 0, written == 0 ? -call.error : -Describe(Refusal::kAuditUnavailable).error);
}

// Written before it is answered; there is nobody else whom this wait could hold up.
int StandIn::Write(const Call& call, const Session& session) {
  record_ = audit::Record{};
  RecordCall(call, session, &record_);
  record_.reply_ring = ring_->fd();
  record_.reply_token = Token::Make(TokenKind::kRecorded, 0);
  audit::Send(*ring_, writer_ring_, record_);
  std::array<Completion, 4> batch;
  for (;;) {
    ring_->SubmitAndWait(kMaxWaitNs);
    for (size_t count = ring_->Take(batch), i = 0; i < count; ++i)
      if (Token::KindOf(batch[i].token) == TokenKind::kRecorded) {
        audit::Returned(record_);
        return batch[i].result;
      }
  }
}

}  // namespace oarlock::supervisor
