// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "audit/record.h"
#include "notif/calls.h"
#include "notif/ring.h"
#include "supervisor/beat.h"
#include "supervisor/budget.h"
#include "supervisor/lane.h"
#include "supervisor/session.h"
#include "supervisor/token.h"
#include "supervisor/watchdog.h"

namespace oarlock::supervisor {

// When a session that makes its shard wait goes to a lane of its own, and when it comes back; nanoseconds.
struct Patience {
  uint64_t strike_ns = kStrikeNs;        // a step that takes longer counts against its session
  uint64_t window_ns = kStrikeWindowNs;  // kStrikes within it send it away
  uint64_t move_ns = kMoveNs;            // ... and one of this length does so alone
  uint64_t pardon_ns = kPardonNs;        // without a strike for this long, it is taken back
};

// One thread, one ring, its own sessions; shares nothing with other shards. Receives the sessions' calls, judges, acts,
// records, answers. Everything from outside comes as a completion: TokenKind::kAdmit, kEndSession, kStop.
//
// After Start, no heap memory on the path between notification and answer.
class Shard {
 public:
  struct Options {
    uint32_t max_calls = kMaxCallsPerShard;
    uint32_t max_records = kMaxRecordsPerShard;
    int writer_ring = -1;     // where records go
    int admission_ring = -1;  // where kSessionEnded goes
    int closer_ring = -1;     // where descriptors go whose close may run long
    Budget* budget = nullptr;      // of all shards, outlives them; null: there is one session
    size_t cached_tasks = kCachedTasks;  // pidfds kept per session
    Watchdog* watchdog = nullptr;  // outlives the shard; null: none
    // What a session that makes the shard wait leads to.
    enum class Lanes : uint8_t {
      kNone,       // nothing: it has no neighbours
      kFast,       // it is sent away, to a slow lane
      kSlow,       // nothing, and after a quiet minute it is sent back: this is its lane
      kSlowForGood,
    };
    Lanes lanes = Lanes::kNone;
    Patience patience;
  };

  // Starts the thread and waits until its ring stands.
  [[nodiscard]] static Result<std::unique_ptr<Shard>> Start(const Options& options);
  // Ends the thread where kStop has not: where no ring is there to post it, which takes a second at most.
  ~Shard();
  Shard(const Shard&) = delete;
  Shard& operator=(const Shard&) = delete;

  [[nodiscard]] int ring_fd() const noexcept { return ring_fd_; }
  void Join() {
    if (thread_.joinable()) thread_.join();
  }
  // A thread that hangs in a module's memory or file cannot be waited for: false if it has not ended by then.
  [[nodiscard]] bool JoinFor(std::chrono::milliseconds limit);
  // Leaves a thread that does not end to itself; the object must never be destroyed then.
  void Abandon() { thread_.detach(); }
  // Of a slow lane, else null.
  [[nodiscard]] const std::shared_ptr<Lane>& lane() const noexcept { return lane_; }

 private:
  explicit Shard(const Options& options);
  void Run();                                   // the thread
  void Turn();
  void Dispatch(const Completion& completion);
  [[nodiscard]] uint64_t WaitNs() const noexcept;

  // sessions (shard.cc)
  void Admit(NewSession* admitted);
  [[nodiscard]] Result<uint16_t> PrepareFor(const kernel::Credentials& credentials);
  uint32_t Install(std::unique_ptr<Session> session, uint16_t personality);
  [[nodiscard]] std::unique_ptr<Session> Uninstall(uint32_t index);
  void Arm(uint32_t index);
  void Park(uint32_t index);
  [[nodiscard]] bool MayReceive(const Session& session) const noexcept;
  void OnListener(uint32_t index, int events);
  void MaybeRemove(uint32_t index);
  void EndSession(uint32_t index);
  [[nodiscard]] Session* SessionAt(uint32_t index, uint32_t generation) noexcept;

  // lanes (shard_lanes.cc)
  template <typename Act>
  auto Watched(uint32_t index, Beat::Step step, Act act);
  void Strike(uint32_t index, uint64_t now_ns, uint64_t waited_ns);
  void SubmitBegun();
  void ConsiderPardon();
  void BeginMove(uint32_t index);
  void Moves();
  [[nodiscard]] bool MovedOn(uint32_t index);   // true: it is no more on its way
  void Hold(uint32_t at);
  void SendAway(uint32_t index);
  void Adopt(MovedSession* moved);

  // calls (shard_calls.cc)
  void Receive(uint32_t index);
  void NoteCaller(pid_t tid);
  void Handle(uint32_t at);
  void HandleConnect(uint32_t at);
  void HandleSetSockOpt(uint32_t at);
  void HandleBind(uint32_t at);
  void HandleSend(uint32_t at);
  void HandleMemory(uint32_t at);
  void Give(uint32_t at);                       // `fd` to the caller, whose call returns its number
  void Judge(uint32_t at, const proxyport::Decision& decision);
  void Connect(uint32_t at);                    // the gate has passed it
  void BeginAttempt(uint32_t at);
  void NoteSubmission(uint32_t at);
  void AttemptMoved(uint32_t at);               // after each completion of its attempt
  void FinishConnect(uint32_t at);
  void StartNextQueued(uint32_t session_index);
  void Unqueue(uint32_t at);
  enum class Pinned : uint8_t { kOk, kAnswered, kUnreadable };
  [[nodiscard]] Pinned Pin(uint32_t at, int fd);
  void TryLater(uint32_t at);
  [[nodiscard]] int Read(const Call& call, uint64_t pointer, void* to, size_t size);
  [[nodiscard]] int ReadText(const Call& call, uint64_t pointer, std::span<char> to);
  [[nodiscard]] int PinTask(Session& session, uint32_t session_index, pid_t tid, int fd);
  void CloseElsewhere(UniqueFd fd);
  void CountIn(Session& session) noexcept;
  [[nodiscard]] Refusal ReadAddress(uint32_t at, uint64_t pointer, int32_t size);
  int FetchFacts(Call& call);

  // calls that name tasks (shard_tasks.cc)
  void HandleTask(uint32_t at, const CallRow& row);
  void HandleTrace(uint32_t at, const CallRow& row);
  void AnswerFound(uint32_t at, int found, Refusal refusal);
  [[nodiscard]] int HasOwnNumbers(const Call& call);
  [[nodiscard]] int IsInside(const Call& call, pid_t tid);
  [[nodiscard]] int Descends(const Session& session, pid_t pid) const;
  [[nodiscard]] int IsGroupInside(const Call& call, pid_t group);

  // looking (shard_look.cc)
  void Look();
  void LookAt(uint32_t at);
  [[nodiscard]] bool SignalEnds(Call& call, int* error);
  void Pend(uint32_t at);                       // to be looked at from now on
  void Unpend(uint32_t at);

  // answering (shard_answer.cc)
  void Refuse(uint32_t at, Refusal refusal);
  void Approve(uint32_t at);                    // records it first where the grant says so
  void Approved(uint32_t at);
  void Record(uint32_t at);
  void OnRecorded(uint32_t at, int result);
  void Answer(uint32_t at, int error);          // error <= 0
  void AnswerContinue(uint32_t at);
  void Release(uint32_t at);
  void ClosePinned(Call& call);
  void Recycle(uint32_t at);
  [[nodiscard]] uint32_t TakeCall() noexcept;
  [[nodiscard]] audit::Record* TakeRecord() noexcept;
  void GiveRecord(audit::Record* record);

  Options options_;
  // The ring before what it refers to, so that it goes first: a completion may still point into the calls.
  std::vector<Call> calls_;
  std::vector<audit::Record> records_;
  std::vector<audit::Record*> free_records_;
  uint32_t free_call_ = kNoSlot;
  uint32_t record_head_ = kNoSlot, record_tail_ = kNoSlot;  // calls that wait for a record
  struct SessionSlot {
    uint32_t generation = 0;
    std::unique_ptr<Session> session;
  };
  std::vector<SessionSlot> sessions_;
  std::vector<uint32_t> free_sessions_;
  std::vector<uint32_t> pending_;    // calls that are looked at now and then
  size_t look_next_ = 0;
  struct Begun {
    uint32_t at, generation;
  };
  std::vector<Begun> begun_;         // calls whose attempt goes with the next submission
  std::vector<Begun> settling_;      // ... and went with the last
  std::vector<uint32_t> parked_;     // sessions that want a poll and may not have one now
  std::vector<uint32_t> unparking_;
  uint32_t in_flight_ = 0;           // calls in use
  Beat beat_;
  std::shared_ptr<Lane> lane_;       // of a slow lane
  std::vector<uint32_t> movers_;     // sessions on their way to another shard
  uint64_t careful_until_ns_ = 0;    // until then connects are submitted one by one, to see whose makes us wait
  std::atomic<bool> cancelled_ = false, finished_ = false;
  uint32_t live_sessions_ = 0;
  uint32_t workers_ = 0;             // what the ring's worker limit stands at
  bool stopping_ = false;
  pid_t last_caller_ = 0;
  unsigned alone_ = 0;                // calls in a row of that thread, up to kAloneCalls
  uint64_t turn_ns_ = 0;             // when this turn began
  uint64_t next_look_ns_ = 0;
  int ring_fd_ = -1;
  std::optional<Ring> ring_;
  std::thread thread_;
};

}  // namespace oarlock::supervisor
