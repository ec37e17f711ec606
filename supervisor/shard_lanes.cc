// SPDX-License-Identifier: Apache-2.0
// Sessions that make their shard wait: noticed, sent to a lane of their own, and taken back after a quiet minute.
#include <algorithm>
#include <cerrno>
#include <utility>

#include "notif/base/check.h"
#include "notif/kernel.h"
#include "supervisor/shard.h"

namespace oarlock::supervisor {

// Preemption crosses the bound too, so it takes several within a short while; a close that had to be ended was no accident.
void Shard::Strike(uint32_t index, uint64_t now_ns, uint64_t waited_ns) {
  Session& session = *sessions_[index].session;
  std::ranges::rotate(session.strikes_ns, session.strikes_ns.begin() + 1);
  session.strikes_ns.back() = now_ns;
  if (options_.lanes != Options::Lanes::kFast) return;
  const uint64_t first = session.strikes_ns.front();
  if (waited_ns >= options_.patience.move_ns || (first != 0 && now_ns - first <= options_.patience.window_ns)) BeginMove(index);
}

// A connect waits for its socket's lock, which a sender can hold while it faults pages in (E-69). One that was submitted alone
// is the one that waited; where there were several, the next are submitted one by one to find out.
void Shard::SubmitBegun() {
  settling_.insert(settling_.end(), begun_.begin(), begun_.end());
  const size_t count = begun_.size();
  begun_.clear();
  const uint64_t since_ns = kernel::MonotonicNs();
  beat_.Enter(Beat::Step::kSubmit);
  ring_->SubmitAndCollect();
  beat_.Leave();
  if (lane_ != nullptr) lane_->AwaitReturn();
  const uint64_t now_ns = kernel::MonotonicNs();
  if (now_ns - since_ns <= options_.patience.strike_ns) return;
  if (count == 1) calls_[settling_.back().at].submit_ns = now_ns - since_ns;  // counts once its result is known
  else careful_until_ns_ = now_ns + kStrikeWindowNs;
}

void Shard::ConsiderPardon() {
  if (options_.lanes != Options::Lanes::kSlow) return;
  for (uint32_t index = 0; index < sessions_.size(); ++index) {
    const Session* session = sessions_[index].session.get();
    if (session != nullptr && turn_ns_ > session->strikes_ns.back() + options_.patience.pardon_ns) BeginMove(index);
  }
}

void Shard::BeginMove(uint32_t index) {
  Session& session = *sessions_[index].session;
  if (session.moving || session.ended || stopping_) return;
  session.moving = true;
  movers_.push_back(index);
  if (!session.armed) return;
  const uint64_t token = Token::Slot(TokenKind::kListener, index, sessions_[index].generation);
  if (ring_->Unwatch(token)) session.armed = false;
  else ring_->Cancel(token, Token::Make(TokenKind::kNone, 0));
}

void Shard::Moves() {
  // Its calls change state below, and one that is sent away leaves the list.
  std::erase_if(movers_, [this](uint32_t index) { return MovedOn(index); });
}

bool Shard::MovedOn(uint32_t index) {
  Session* session = sessions_[index].session.get();
  if (session == nullptr) return true;
  if (session->ended || stopping_) {
    session->moving = false;
    MaybeRemove(index);
    return true;
  }
  uint32_t held = 0;
  for (size_t i = pending_.size(); i-- > 0;) {
    const uint32_t at = pending_[i];
    Call& call = calls_[at];
    if (call.session != index) continue;
    switch (call.state) {
      case Call::State::kQueued:
        Unqueue(at);
        Hold(at);
        break;
      case Call::State::kRetry:
        Hold(at);
        break;
      case Call::State::kConnecting:
        call.attempt.Cancel(*ring_, proxyport::Attempt::Stop::kMove);
        break;
      case Call::State::kHeld:
      case Call::State::kFree:
      case Call::State::kStarting:
      case Call::State::kRecord:
      case Call::State::kRecording:
        break;  // the last two come back from the writer
    }
    if (call.state == Call::State::kHeld) ++held;
  }
  if (session->armed || held != session->in_flight) return false;
  SendAway(index);
  return true;
}

void Shard::Hold(uint32_t at) {
  Call& call = calls_[at];
  call.state = Call::State::kHeld;
  call.signalled = call.interrupt_seen = false;
  Pend(at);  // its caller may go meanwhile
}

void Shard::SendAway(uint32_t index) {
  auto moved = std::make_unique<MovedSession>();
  for (size_t i = pending_.size(); i-- > 0;) {
    const uint32_t at = pending_[i];
    if (calls_[at].session != index) continue;
    Unpend(at);
    moved->calls.push_back(std::move(calls_[at]));
    Recycle(at);
  }
  std::ranges::sort(moved->calls, {}, &Call::received_ns);
  moved->session = Uninstall(index);
  moved->id = moved->session->facts.id;
  moved->from = this;
  moved->to_slow = lane_ == nullptr;
  moved->session->moving = false;
  ring_->Post(options_.admission_ring, Token::Pointer(TokenKind::kMoved, moved.release()), 0);
}

void Shard::Adopt(MovedSession* moved) {
  const auto answer = [&](std::string refusal) {
    moved->refusal = std::move(refusal);
    ring_->Post(moved->reply_ring, Token::Pointer(TokenKind::kAdopted, moved), 0);
  };
  if (options_.max_calls - in_flight_ < moved->calls.size()) return answer("no room for its calls");
  const Session& session = *moved->session;
  auto personality = PrepareFor({session.facts.uid, session.gid, session.groups});
  if (!personality) return answer(personality.error().Message());
  std::vector<Call> calls = std::move(moved->calls);
  const uint32_t index = Install(std::move(moved->session), *personality);
  Session& adopted = *sessions_[index].session;
  // A lane counts the quiet minute from here.
  adopted.strikes_ns.fill(0);
  adopted.strikes_ns.back() = kernel::MonotonicNs();
  moved->index = index;
  moved->generation = sessions_[index].generation;
  answer("");
  for (Call& call : calls) {
    const uint32_t at = TakeCall();
    const uint32_t generation = calls_[at].generation;
    calls_[at] = std::move(call);
    calls_[at].generation = generation;
    calls_[at].session = index;
    calls_[at].next = calls_[at].pending_at = kNoSlot;
    calls_[at].state = Call::State::kStarting;
    calls_[at].submit_ns = 0;
    CountIn(adopted);
    // Judged already, or not yet.
    if (calls_[at].target != nullptr && calls_[at].fd.valid()) Connect(at);
    else Handle(at);
    if (sessions_[index].session == nullptr) return;
  }
  Arm(index);
}

void Shard::CountIn(Session& session) noexcept {
  ++session.in_flight;
  ++in_flight_;
  if (options_.budget != nullptr) options_.budget->Add(*session.user);
}

}  // namespace oarlock::supervisor
