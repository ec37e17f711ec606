// SPDX-License-Identifier: Apache-2.0
// The ways out of a call: refused (recorded first), approved, answered, released.
#include <algorithm>
#include <cerrno>
#include <cstring>

#include "audit/writer.h"
#include "notif/base/check.h"
#include "notif/kernel.h"
#include "supervisor/record_call.h"
#include "supervisor/shard.h"
#include "supervisor/watched.h"

namespace oarlock::supervisor {

uint32_t Shard::TakeCall() noexcept {
  const uint32_t at = free_call_;
  OARLOCK_CHECK(at != kNoSlot);  // a poll is armed only while there is one
  Call& call = calls_[at];
  free_call_ = call.next;
  const uint32_t generation = call.generation + 1;
  call = Call{};
  call.generation = generation;
  return at;
}

audit::Record* Shard::TakeRecord() noexcept {
  if (free_records_.empty()) return nullptr;
  audit::Record* record = free_records_.back();
  free_records_.pop_back();
  *record = audit::Record{};
  return record;
}

void Shard::GiveRecord(audit::Record* record) {
  free_records_.push_back(record);
  if (record_head_ == kNoSlot) return;
  const uint32_t at = record_head_;
  record_head_ = calls_[at].next;
  if (record_head_ == kNoSlot) record_tail_ = kNoSlot;
  calls_[at].next = kNoSlot;
  Record(at);
}

void Shard::Refuse(uint32_t at, Refusal refusal) {
  Call& call = calls_[at];
  Session& session = *sessions_[call.session].session;
  call.refusal = refusal;
  call.error = session.gate.ErrorOf(refusal);
  ++session.refusals;
  if (Describe(refusal).kind == Kind::kDeny) ++session.denials;
  Record(at);
}

void Shard::Approve(uint32_t at) {
  Call& call = calls_[at];
  if (!sessions_[call.session].session->audit_approvals) return Approved(at);
  // The record comes before the deed: an approval that cannot be written is not carried out.
  call.approve_after_record = true;
  Record(at);
}

void Shard::Approved(uint32_t at) {
  if (calls_[at].target != nullptr) return Connect(at);
  if (calls_[at].gives) return Give(at);
  AnswerContinue(at);
}

void Shard::Record(uint32_t at) {
  Call& call = calls_[at];
  Unpend(at);
  audit::Record* record = TakeRecord();
  if (record == nullptr) {
    call.state = Call::State::kRecord;
    call.next = kNoSlot;
    if (record_tail_ == kNoSlot) record_head_ = at;
    else calls_[record_tail_].next = at;
    record_tail_ = at;
    return;
  }
  RecordCall(call, *sessions_[call.session].session, record);
  record->reply_ring = ring_fd_;
  record->reply_token = Token::Slot(TokenKind::kRecorded, at, call.generation);
  call.record = record;
  call.state = Call::State::kRecording;
  audit::Send(*ring_, options_.writer_ring, *record);
}

void Shard::OnRecorded(uint32_t at, int result) {
  Call& call = calls_[at];
  OARLOCK_CHECK(call.state == Call::State::kRecording);
  audit::Record* record = std::exchange(call.record, nullptr);
  audit::Returned(*record);
  if (call.approve_after_record && result == 0) {
    call.approve_after_record = false;
    call.state = Call::State::kStarting;
    Approved(at);
  } else {
    // A log that could not be written turns nothing into an approval, and is told from a plain refusal by its errno.
    Answer(at, result == 0 ? -call.error : -Describe(Refusal::kAuditUnavailable).error);
  }
  GiveRecord(record);
}

// Ours may be the last close of whatever the module put there. The watchdog ends one that sleeps; one that may run long goes to
// the closer: no socket (a FUSE file), or a unix socket whose queue the module could fill (E-67, E-209).
void Shard::ClosePinned(Call& call) {
  if (!call.fd.valid()) return;
  if (call.close_elsewhere && options_.closer_ring >= 0) return CloseElsewhere(std::move(call.fd));
  Watched(call.session, Beat::Step::kClose, [&] { return call.fd.Reset(), 0; });
}

void Shard::CloseElsewhere(UniqueFd fd) {
  if (fd.valid()) ring_->Post(options_.closer_ring, Token::Make(TokenKind::kClose, static_cast<uint64_t>(fd.Release())), 0);
}

void Shard::Answer(uint32_t at, int error) {
  Call& call = calls_[at];
  // Closed before the answer: 6 us cheaper than after, when the caller runs again on the same socket.
  ClosePinned(call);
  // -ENOENT: the caller has gone, a normal end.
  (void)kernel::Reply(sessions_[call.session].session->listener.get(), call.id, 0, error);
  Release(at);
}

void Shard::AnswerContinue(uint32_t at) {
  Call& call = calls_[at];
  (void)kernel::ReplyContinue(sessions_[call.session].session->listener.get(), call.id);
  Release(at);
}

void Shard::Release(uint32_t at) {
  Call& call = calls_[at];
  OARLOCK_CHECK(call.state != Call::State::kFree && call.record == nullptr && !call.attempt.busy());
  Unpend(at);
  const uint32_t session_index = call.session;
  ClosePinned(call);
  Recycle(at);
  const Session& session = *sessions_[session_index].session;
  if (session.ended) MaybeRemove(session_index);
  else Arm(session_index);
}

// The slot alone; what the call held has gone or is elsewhere.
void Shard::Recycle(uint32_t at) {
  Call& call = calls_[at];
  Session& session = *sessions_[call.session].session;
  call.status.Reset();
  call.state = Call::State::kFree;
  ++call.generation;  // completions that are still on their way find nobody
  call.next = free_call_;
  free_call_ = at;
  --session.in_flight;
  --in_flight_;
  if (options_.budget != nullptr) options_.budget->Remove(*session.user);
}

}  // namespace oarlock::supervisor
