// SPDX-License-Identifier: Apache-2.0
#include "supervisor/shard.h"

#include <poll.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <future>

#include "notif/base/check.h"
#include "notif/base/thread.h"
#include "notif/kernel.h"
#include "supervisor/watched.h"

namespace oarlock::supervisor {

Shard::Shard(const Options& options) : options_(options) {
  calls_.resize(options_.max_calls);
  for (uint32_t i = options_.max_calls; i-- > 0;) {
    calls_[i].next = free_call_;
    free_call_ = i;
  }
  records_.resize(options_.max_records);
  free_records_.reserve(options_.max_records);
  for (audit::Record& record : records_) free_records_.push_back(&record);
  pending_.reserve(options_.max_calls);
  begun_.reserve(options_.max_calls);
  settling_.reserve(options_.max_calls);
  if (options_.lanes == Options::Lanes::kSlow || options_.lanes == Options::Lanes::kSlowForGood)
    lane_ = std::make_shared<Lane>(beat_);
}

Shard::~Shard() {
  cancelled_.store(true, std::memory_order_relaxed);
  Join();
  if (options_.watchdog != nullptr) options_.watchdog->Forget(&beat_);
}

Result<std::unique_ptr<Shard>> Shard::Start(const Options& options) {
  std::unique_ptr<Shard> shard(new Shard(options));
  std::promise<Status> ready;
  shard->thread_ = OARLOCK_TRY(MakeThread([&shard = *shard, &ready] {
    (void)::prctl(PR_SET_NAME, "oarlock-shard");
    // In its own thread: the ring takes operations and personalities from no other.
    auto ring = Ring::Make({.watches = true});
    if (!ring) {
      ready.set_value(std::unexpected(ring.error()));
      return;
    }
    shard.beat_.Attach(::gettid());
    if (shard.options_.watchdog != nullptr) Watchdog::UnblockSignal();
    shard.ring_.emplace(std::move(*ring));
    shard.ring_fd_ = shard.ring_->fd();
    ready.set_value({});
    shard.Run();
    shard.ring_.reset();
    shard.finished_.store(true, std::memory_order_release);
  }));
  if (auto status = ready.get_future().get(); !status) return std::unexpected(status.error());
  if (options.watchdog != nullptr) options.watchdog->Watch(&shard->beat_);
  return shard;
}

bool Shard::JoinFor(std::chrono::milliseconds limit) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  while (!finished_.load(std::memory_order_acquire)) {
    if (std::chrono::steady_clock::now() >= deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  Join();
  return true;
}

void Shard::Run() {
  // To the end of what the writer has: it acknowledges into this ring.
  while (!stopping_ || free_records_.size() != records_.size()) {
    ring_->SubmitAndWait(WaitNs());
    if (options_.watchdog != nullptr) options_.watchdog->Stir();
    Turn();
  }
}

void Shard::Turn() {
  turn_ns_ = kernel::MonotonicNs();
  stopping_ |= cancelled_.load(std::memory_order_relaxed);
  std::array<Completion, 64> batch;
  const auto dispatch = [&] {
    size_t count = 0;
    do {
      count = ring_->Take(batch);
      for (size_t i = 0; i < count; ++i) Dispatch(batch[i]);
    } while (count == batch.size());
  };
  dispatch();
  // Connects were queued: most end within their submission, and listeners armed again may have more calls already.
  for (unsigned pass = 0; pass < kPassesPerTurn && (!begun_.empty() || !settling_.empty()); ++pass) {
    if (!begun_.empty()) SubmitBegun();
    dispatch();
    bool cancelling = false;
    for (const Begun& begun : settling_) {
      Call& call = calls_[begun.at];
      if (call.generation != begun.generation || call.state != Call::State::kConnecting || !call.attempt.busy())
        continue;
      call.attempt.Settle(*ring_, turn_ns_);
      Pend(begun.at);
      cancelling |= !call.attempt.blocking();
    }
    settling_.clear();
    if (cancelling) {
      ring_->SubmitAndCollect();
      dispatch();
    }
  }
  Look();
  ConsiderPardon();
  Moves();
  // Slots may have become free. Each parked session gets its turn; those that still may not have one are parked again.
  unparking_.swap(parked_);
  for (const uint32_t index : unparking_) {
    Session* session = sessions_[index].session.get();
    if (session == nullptr || !session->parked) continue;
    session->parked = false;
    Arm(index);
  }
  unparking_.clear();
}

uint64_t Shard::WaitNs() const noexcept {
  if (!begun_.empty() || !settling_.empty()) return 0;
  // Another shard may give back what a parked session waits for, and does not tell.
  if (!parked_.empty() && options_.budget != nullptr) return kParkedWaitNs;
  if (pending_.empty()) return kMaxWaitNs;
  const uint64_t now = kernel::MonotonicNs();
  return next_look_ns_ <= now ? 0 : std::min(next_look_ns_ - now, kMaxWaitNs);
}

void Shard::Dispatch(const Completion& completion) {
  const uint64_t token = completion.token;
  const uint32_t index = Token::IndexOf(token);
  const uint32_t generation = Token::GenerationOf(token);
  // A completion for a call that has been answered meanwhile (a cancellation's, as a rule).
  const auto stale_call = [&] { return index >= calls_.size() || calls_[index].generation != generation; };
  // An attempt that ends may ask its socket whom it is connected to, which waits for the socket's lock.
  const auto advance = [&](auto step) {
    Watched(calls_[index].session, Beat::Step::kSubmit, [&] { return step(calls_[index].attempt), 0; });
    AttemptMoved(index);
  };
  switch (Token::KindOf(token)) {
    case TokenKind::kListener:
      if (SessionAt(index, generation) != nullptr) OnListener(index, completion.result);
      return;
    case TokenKind::kConnect:
      if (stale_call()) return;
      advance([&](proxyport::Attempt& attempt) { attempt.OnConnect(*ring_, completion.result); });
      return;
    case TokenKind::kPoll:
      if (stale_call()) return;
      advance([&](proxyport::Attempt& attempt) { attempt.OnPoll(*ring_); });
      return;
    case TokenKind::kCancel:
      if (stale_call()) return;
      calls_[index].attempt.OnCancel(*ring_, completion.result);
      return;
    case TokenKind::kRecorded:
      OARLOCK_CHECK(!stale_call());  // a call waits for its record, whatever happens to its caller
      return OnRecorded(index, completion.result);
    case TokenKind::kAdmit:
      return Admit(Token::PointerOf<NewSession>(token));
    case TokenKind::kAdopt:
      return Adopt(Token::PointerOf<MovedSession>(token));
    case TokenKind::kEndSession:
      if (SessionAt(index, generation) != nullptr) EndSession(index);
      return;
    case TokenKind::kStop:
      stopping_ = true;
      return;
    case TokenKind::kNone:
      return;
    case TokenKind::kMoved:
    case TokenKind::kAdopted:
    case TokenKind::kRecordFree:
    case TokenKind::kAdmitted:
    case TokenKind::kSessionEnded:
    case TokenKind::kClose:
    case TokenKind::kReactor:
      break;
  }
  OARLOCK_CHECK(false, "a completion of unknown kind: %#llx", static_cast<unsigned long long>(token));
}

Session* Shard::SessionAt(uint32_t index, uint32_t generation) noexcept {
  if (index >= sessions_.size() || sessions_[index].generation != generation) return nullptr;
  return sessions_[index].session.get();
}

void Shard::Admit(NewSession* admitted) {
  const auto answer = [&](std::string refusal) {
    admitted->refusal = std::move(refusal);
    ring_->Post(admitted->reply_ring, Token::Pointer(TokenKind::kAdmitted, admitted), 0);
  };
  auto personality = PrepareFor({admitted->uid, admitted->gid, admitted->groups});
  if (!personality) return answer(personality.error().Message());
  const uint32_t index = Install(std::make_unique<Session>(std::move(*admitted)), *personality);
  admitted->index = index;
  admitted->generation = sessions_[index].generation;
  // Halves the round trip where the kernel has it (6.6).
  (void)kernel::EnableSyncWakeUp(sessions_[index].session->listener.get());
  answer("");
  Arm(index);
}

// What one more session needs of the ring.
Result<uint16_t> Shard::PrepareFor(const kernel::Credentials& credentials) {
  // One kernel worker per session that may block in a unix connect: with fewer, a third session could wait for ever.
  if (const uint32_t wanted = live_sessions_ + 1 + kSpareWorkers; wanted > workers_) {
    const uint32_t grown = wanted + wanted / 2;
    OARLOCK_TRY_VOID(ring_->SetMaxBlockedWorkers(grown));
    workers_ = grown;
  }
  return ring_->RegisterPersonality(credentials);
}

uint32_t Shard::Install(std::unique_ptr<Session> session, uint16_t personality) {
  uint32_t index = 0;
  if (!free_sessions_.empty()) {
    index = free_sessions_.back();
    free_sessions_.pop_back();
  } else {
    index = static_cast<uint32_t>(sessions_.size());
    sessions_.emplace_back();
    parked_.reserve(sessions_.size());
    unparking_.reserve(sessions_.size());
    movers_.reserve(sessions_.size());
  }
  SessionSlot& slot = sessions_[index];
  ++slot.generation;
  slot.session = std::move(session);
  slot.session->personality = personality;
  slot.session->tasks.Limit(options_.cached_tasks);
  ++live_sessions_;
  if (lane_ != nullptr) lane_->Serve(slot.session.get());
  return index;
}

std::unique_ptr<Session> Shard::Uninstall(uint32_t index) {
  SessionSlot& slot = sessions_[index];
  if (lane_ != nullptr) lane_->Serve(nullptr);
  ring_->UnregisterPersonality(slot.session->personality);
  ++slot.generation;
  free_sessions_.push_back(index);
  --live_sessions_;
  return std::move(slot.session);
}

void Shard::Arm(uint32_t index) {
  Session& session = *sessions_[index].session;
  if (stopping_ || session.armed || session.parked || session.ended || session.moving) return;
  if (!MayReceive(session)) return Park(index);
  session.armed = true;
  const uint64_t token = Token::Slot(TokenKind::kListener, index, sessions_[index].generation);
  if (alone_ < kAloneCalls || !ring_->Watch(session.listener.get(), POLLIN, token)) ring_->Poll(session.listener.get(), POLLIN, token);
}

void Shard::Park(uint32_t index) {
  sessions_[index].session->parked = true;
  parked_.push_back(index);
}

bool Shard::MayReceive(const Session& session) const noexcept {
  if (free_call_ == kNoSlot || session.in_flight >= kMaxCallsPerSession) return false;
  return options_.budget == nullptr || options_.budget->Allows(session.in_flight, *session.user);
}

void Shard::OnListener(uint32_t index, int events) {
  Session& session = *sessions_[index].session;
  session.armed = false;
  if (session.ended) return MaybeRemove(index);
  if (session.moving) return;  // whoever adopts it is told again
  // POLLERR alone: a signal met the poll itself (the kernel waits for the filter's lock in it), and says nothing of the session.
  if (events < 0 || (events & (POLLIN | POLLHUP | POLLNVAL)) == 0) return Arm(index);
  // One RECV per completion, and none with a poll armed: it would block the shard.
  if (stopping_) return;
  if ((events & POLLIN) != 0) {
    // Other sessions may have taken the slots since the poll was armed; the call stays announced.
    if (!MayReceive(session)) return Park(index);
    Receive(index);
    if (sessions_[index].session != nullptr) Arm(index);
    return;
  }
  EndSession(index);
}

void Shard::EndSession(uint32_t index) {
  Session& session = *sessions_[index].session;
  session.ended = true;
  // Whoever was waiting has gone; what is still in the ring is called back, and the session goes with its last call.
  const std::vector<uint32_t> pending = pending_;  // looking at a call may release it
  for (const uint32_t at : pending) {
    if (sessions_[index].session == nullptr) return;  // that was its last
    if (calls_[at].session != index || calls_[at].state == Call::State::kFree) continue;
    calls_[at].caller_gone = true;
    LookAt(at);
  }
  MaybeRemove(index);
}

void Shard::MaybeRemove(uint32_t index) {
  const Session* session = sessions_[index].session.get();
  if (session == nullptr || !session->ended || session->armed || session->in_flight != 0) return;
  auto ended = std::make_unique<EndedSession>();
  ended->id = session->facts.id;
  ended->shard = this;
  ended->calls = session->calls;
  ended->refusals = session->refusals;
  ended->denials = session->denials;
  const std::unique_ptr<Session> gone = Uninstall(index);
  if (gone->reader != nullptr) CloseElsewhere(gone->reader->TakeConnection());
  ring_->Post(options_.admission_ring, Token::Pointer(TokenKind::kSessionEnded, ended.release()), 0);
}

}  // namespace oarlock::supervisor
