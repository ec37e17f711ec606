// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "audit/record.h"
#include "notif/kernel.h"
#include "supervisor/session.h"

namespace oarlock::supervisor {

// A call as it was received.
void TakeIn(const abi::SeccompNotif& notification, Call* call) noexcept;
// What is known of a call, as its record. The verdict, the refusal and the error are the call's; where the acknowledgement goes
// is left to the caller. Allocates nothing.
void RecordCall(const Call& call, const Session& session, audit::Record* record) noexcept;

}  // namespace oarlock::supervisor
