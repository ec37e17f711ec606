// SPDX-License-Identifier: Apache-2.0
#include "supervisor/record_call.h"

#include <algorithm>
#include <cstring>
#include <iterator>

namespace oarlock::supervisor {

void TakeIn(const abi::SeccompNotif& notification, Call* call) noexcept {
  call->id = notification.id;
  call->tid = static_cast<pid_t>(notification.pid);
  call->nr = static_cast<uint32_t>(notification.data.nr);
  std::copy(std::begin(notification.data.args), std::end(notification.data.args), call->args);
}

void RecordCall(const Call& call, const Session& session, audit::Record* record) noexcept {
  record->verdict = call.approve_after_record ? audit::Verdict::kAllowed : audit::Verdict::kDenied;
  record->refusal = call.refusal;
  record->error = call.error;
  record->session = &session.facts;
  record->nr = call.nr;
  record->tid = call.tid;
  record->notification = call.id;
  std::copy(std::begin(call.args), std::end(call.args), record->args);
  if (call.address_read) {
    record->address_size = static_cast<uint8_t>(call.address.size);
    std::memcpy(record->address, call.address.bytes, call.address.size);
  }
  record->socket_domain = call.socket.domain.value_or(-1);
  record->socket_type = call.socket.type.value_or(-1);
  record->socket_protocol = call.socket.protocol.value_or(-1);
  (void)kernel::DescribeTask(call.tid, &record->task);  // a caller that has gone leaves these empty
  record->mono_ns = call.received_ns;
  const uint64_t now_ns = kernel::MonotonicNs();
  record->real_us = kernel::RealtimeUs() - (now_ns - call.received_ns) / 1000;
  record->first_us = record->last_us = record->real_us;
  record->queue_ns = call.received_ns - call.ready_ns;
  record->decision_ns = now_ns - call.received_ns;
}

}  // namespace oarlock::supervisor
