// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "audit/record.h"
#include "notif/base/unique_fd.h"
#include "notif/wire.h"
#include "proxyport/attempt.h"
#include "proxyport/gate.h"
#include "supervisor/budget.h"
#include "supervisor/limits.h"
#include "supervisor/reader.h"
#include "supervisor/task_cache.h"

namespace oarlock::supervisor {

class Shard;
inline constexpr uint32_t kNoSlot = UINT32_MAX;

// A session on its way to a shard: made by admission, filled by the shard's answer, owned by admission until it is posted
// and again once the answer has come.
struct NewSession {
  UniqueFd listener;
  wire::Admission admission;
  audit::SessionFacts facts;
  uint32_t uid = 0, gid = 0;
  std::vector<uint32_t> groups;
  int reply_ring = -1;
  Shard* shard = nullptr;
  bool slow_files = false;          // HasSlowMount
  std::unique_ptr<Reader> reader;   // where it has such
  std::shared_ptr<UserLoad> user;
  uint64_t start_ticks = 0;
  int seccomp_filters = 0;
  uint32_t admitted_by = 0;
  // the answer
  std::string refusal;        // empty: admitted
  uint32_t index = 0, generation = 0;
};

// Posted to admission when a session has ended; owned by the receiver.
struct EndedSession {
  Ulid id;
  Shard* shard = nullptr;                         // that has it no more
  uint64_t calls = 0, refusals = 0, denials = 0;  // denials: refusals that are no routine probes
};

struct Call;
struct Session;
// A session on its way from one shard to another, with the calls that it had received. Owned by whoever has the message.
struct MovedSession {
  std::unique_ptr<Session> session;
  std::vector<Call> calls;         // in the order in which they came
  Shard* from = nullptr;           // the shard that it has left, until that is noticed
  bool to_slow = false;
  int reply_ring = -1;
  // the answer
  std::string refusal;             // not empty: not taken, and all is still here
  Ulid id;
  uint32_t index = 0, generation = 0;
  MovedSession();
  ~MovedSession();
};

// One received call, from RECV to SEND. Fixed size, from the shard's pool.
struct Call {
  enum class State : uint8_t {
    kFree,
    kStarting,    // being looked at, within one turn
    kRetry,       // short of descriptors or memory: tried again at the next tick
    kQueued,      // behind another blocked unix connect of its session
    kConnecting,  // its attempt is busy
    kHeld,        // its session moves to another shard, and it goes along
    kRecord,      // waits for a record slot
    kRecording,   // the writer has its record
  };
  State state = State::kFree;
  bool caller_gone = false;
  bool interrupt_seen = false;     // a signal asked for EINTR at the last look
  bool signalled = false;          // the attempt was cancelled for a signal
  bool approve_after_record = false;
  bool gives = false;              // `fd` is no pinned one but what the caller is to be given
  bool close_elsewhere = false;    // its pinned descriptor is no fresh TCP or unix socket
  uint32_t generation = 0;
  uint32_t session = kNoSlot;
  uint32_t next = kNoSlot;         // in the free list, a session's queue or the shard's record queue
  uint32_t pending_at = kNoSlot;   // place in the shard's list of calls to look at

  uint64_t id = 0;
  pid_t tid = 0;
  uint32_t nr = 0;
  uint64_t args[6] = {};
  uint64_t received_ns = 0, ready_ns = 0, deadline_ns = 0, real_us = 0, next_look_ns = 0;
  uint64_t submit_ns = 0;          // how long its submission made the shard wait, where that was long

  UniqueFd fd;                     // the caller's pinned descriptor, or what it is to be given
  UniqueFd status;                 // /proc/TID/status, once it has been looked at
  proxyport::Address address;
  bool address_read = false;
  proxyport::SocketFacts socket;
  proxyport::Attempt attempt;
  const proxyport::Target* target = nullptr;

  // When SO_SNDTIMEO ends its wait; 0: never.
  [[nodiscard]] uint64_t WaitsUntil() const noexcept { return attempt.busy() ? attempt.deadline_ns() : deadline_ns; }

  Refusal refusal = Refusal::kNone;
  int error = 0;                   // positive, of the refusal
  audit::Record* record = nullptr;
};

// A supervised tree: one listener, one grant. Owned by one shard and touched by its thread alone.
struct Session {
  explicit Session(NewSession&& admitted)
      : listener(std::move(admitted.listener)),
        gate(admitted.admission.grant),
        facts(admitted.facts),
        start_ticks(admitted.start_ticks),
        admitted_ticks(kernel::BootTicks()),
        seccomp_filters(admitted.seccomp_filters),
        user(std::move(admitted.user)),
        gid(admitted.gid),
        groups(std::move(admitted.groups)),
        reader(std::move(admitted.reader)),
        probe(admitted.admission.probe),
        trace(admitted.admission.grant.trace),
        audit_approvals(admitted.admission.grant.audit_approvals) {}

  UniqueFd listener;
  proxyport::Gate gate;
  audit::SessionFacts facts;
  uint64_t start_ticks;           // of its first process: with its pid, who that is
  uint64_t admitted_ticks;        // all others of it have come since
  int seccomp_filters;            // that all of the session have at least
  std::optional<bool> own_numbers;  // its tasks have the numbers among themselves that they have here; unknown until asked
  std::shared_ptr<UserLoad> user;
  uint32_t gid;
  std::vector<uint32_t> groups;
  std::unique_ptr<Reader> reader;  // touches its memory and descriptors for us; null: nothing of it can hang for ever
  std::array<uint8_t, wire::kProbeBytes> probe;
  bool trace;                     // Grant::trace
  bool audit_approvals;
  bool proved = false;            // the launcher's probe has been answered
  bool armed = false;             // a poll is in the ring
  bool ended = false;             // no task uses the listener any more
  bool parked = false;            // wants a poll, but no call slot is free
  bool moving = false;            // to another shard: receives nothing more here
  uint16_t personality = 0;
  uint32_t in_flight = 0;
  uint32_t blocked_unix = kNoSlot;  // the one unix connect that blocks in the kernel
  uint32_t queue_head = kNoSlot, queue_tail = kNoSlot;  // ... and those that wait for it, in order
  std::array<uint64_t, kStrikes> strikes_ns{};  // when it made its shard wait, the latest last
  TaskCache tasks;
  uint64_t calls = 0, refusals = 0, denials = 0;
};

inline MovedSession::MovedSession() = default;
inline MovedSession::~MovedSession() = default;

}  // namespace oarlock::supervisor
