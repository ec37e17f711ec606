// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "audit/record.h"
#include "notif/base/unique_fd.h"
#include "notif/wire.h"
#include "proxyport/attempt.h"
#include "proxyport/gate.h"
#include "supervisor/task_cache.h"

namespace oarlock::supervisor {

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
  size_t shard = 0;
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
  uint64_t calls = 0, refusals = 0, denials = 0;  // denials: refusals that are no routine probes
};

// One received call, from RECV to SEND. Fixed size, from the shard's pool.
struct Call {
  enum class State : uint8_t {
    kFree,
    kStarting,    // being looked at, within one turn
    kRetry,       // short of descriptors or memory: tried again at the next tick
    kQueued,      // behind another blocked unix connect of its session
    kConnecting,  // its attempt is busy
    kRecord,      // waits for a record slot
    kRecording,   // the writer has its record
  };
  State state = State::kFree;
  bool caller_gone = false;
  bool interrupt_seen = false;     // a signal asked for EINTR at the last look
  bool signalled = false;          // the attempt was cancelled for a signal
  bool approve_after_record = false;
  bool close_elsewhere = false;    // its pinned descriptor is no fresh TCP or unix socket
  uint32_t generation = 0;
  uint32_t session = kNoSlot;
  uint32_t next = kNoSlot;         // in the free list, a session's queue or the shard's record queue
  uint32_t pending_at = kNoSlot;   // place in the shard's list of calls to look at

  uint64_t id = 0;
  pid_t tid = 0;
  uint32_t nr = 0;
  uint64_t args[6] = {};
  uint64_t received_ns = 0, ready_ns = 0, real_us = 0, next_look_ns = 0;

  UniqueFd fd;                     // the caller's pinned descriptor
  UniqueFd status;                 // /proc/TID/status, once it has been looked at
  proxyport::Address address;
  bool address_read = false;
  proxyport::SocketFacts socket;
  proxyport::Attempt attempt;
  const proxyport::Target* target = nullptr;

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
        probe(admitted.admission.probe),
        audit_approvals(admitted.admission.grant.audit_approvals) {}

  UniqueFd listener;
  proxyport::Gate gate;
  audit::SessionFacts facts;
  std::array<uint8_t, wire::kProbeBytes> probe;
  bool audit_approvals;
  bool proved = false;            // the launcher's probe has been answered
  bool armed = false;             // a poll is in the ring
  bool ended = false;             // no task uses the listener any more
  bool parked = false;            // wants a poll, but no call slot is free
  uint16_t personality = 0;
  uint32_t in_flight = 0;
  uint32_t blocked_unix = kNoSlot;  // the one unix connect that blocks in the kernel
  uint32_t queue_head = kNoSlot, queue_tail = kNoSlot;  // ... and those that wait for it, in order
  TaskCache tasks;
  uint64_t calls = 0, refusals = 0, denials = 0;
};

}  // namespace oarlock::supervisor
