// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

#include "audit/vocabulary.h"
#include "notif/base/ulid.h"
#include "notif/kernel.h"
#include "notif/refusals.h"

namespace oarlock::audit {

enum class RecordType : uint8_t {
  kCall,             // OCSF 4001 Network Activity or 1003 Kernel Activity: one refused or approved call
  kSupervisorStart,  // 6002 Application Lifecycle
  kSupervisorStop,
  kSessionStart,  // 5019 Device Config State Change: grant admitted
  kSessionEnd,
  kGap,  // 6002, GAP: `count` refusals were answered without a record of their own
  // made by the writer itself
  kUnavailable,  // 6002, AUDIT_UNAVAILABLE: `count` refusals were answered while the log could not be written
  kCheckpoint,   // 6002, CHECKPOINT
  kNotice,       // 6002, the notice's code
};

enum class Verdict : uint8_t { kDenied, kAllowed };

// What the log needs to know of a session, fixed at admission. Owned by the session; outlives its records.
struct SessionFacts {
  Ulid id;
  char module[204] = {};  // as the policy says, NUL-terminated
  char kind[44] = {};
  char policy_sha256[65] = {};  // digest of the policy file
  int policy_version = 1;
  pid_t pid = 0;  // the confined process
  uint32_t uid = 0;
  bool has_proxy = false;
  char proxy[64] = {};  // "127.0.0.1:3128", for rules and hints
  char broker[128] = {};
  char container[72] = {};  // the container runtime's id, or empty
};

// One entry of the log before it is formatted. Fixed size, no heap memory: taken from a shard's pool on the
// path between notification and reply, filled by the shard, formatted and written by the writer, then given
// back. While `in_flight` it belongs to the writer: see Send and Returned in audit/writer.h.
struct Record {
  RecordType type = RecordType::kCall;
  Verdict verdict = Verdict::kDenied;
  Layer layer = Layer::kSupervisor;
  Refusal refusal = Refusal::kNone;
  int error = 0;  // errno as the program sees it, positive
  const SessionFacts* session = nullptr;
  // The record's id. Left as it is, the writer makes one; a fold bucket and a journalled call have one before
  // they are written, so that a successor can tell whether they were.
  Ulid id;

  // the call (type kCall)
  uint32_t nr = 0;  // on the native architecture
  pid_t tid = 0;
  uint64_t notification = 0;
  uint64_t args[6] = {};
  uint8_t address[128] = {};  // the sockaddr as the module sent it
  uint8_t address_size = 0;   // 0: the call carries none, or it could not be read
  int32_t socket_domain = -1, socket_type = -1, socket_protocol = -1;  // where known
  kernel::TaskDescription task;
  uint64_t real_us = 0;  // when it was received; 0: the writer's own time
  uint64_t mono_ns = 0;
  uint64_t queue_ns = 0;     // ready to received, where known
  uint64_t decision_ns = 0;  // received to decided
  // folding: how many refusals this record stands for, and when the first and the last were
  uint64_t count = 1;
  uint64_t first_us = 0, last_us = 0;

  // kSessionEnd: what the session did in all. kUnavailable: `calls` is the records of any sort that were
  // lost.
  uint64_t calls = 0, refusals = 0;
  // kNotice
  Notice notice = Notice::kNone;
  uint64_t before = 0, after = 0;

  // where to send the writer's acknowledgement
  int reply_ring = -1;
  uint64_t reply_token = 0;

  // The writer's, while it is in flight.
  Record* next = nullptr;
  int32_t result = 0;
  // The kernel carries the pointer from ring to ring, which orders memory in fact but not in the language:
  // this flag, set with release and read with acquire at both ends, says it to the compiler and to
  // ThreadSanitizer.
  alignas(4) uint32_t in_flight = 0;

  // Whether it is one of those that the counts of the log add up to.
  [[nodiscard]] bool IsRefusal() const noexcept {
    return type == RecordType::kCall && verdict == Verdict::kDenied;
  }
};

}  // namespace oarlock::audit
