// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <linux/filter.h>

#include <span>

#include "notif/base/result.h"
#include "notif/base/unique_fd.h"
#include "notif/calls.h"

// The filter programs, compiled at build time from the table by notif/filter/generate (libseccomp 2.5.4 as
// the compiler of the number tree; 1.5 to 2 ms a time at launch, hence never there) and embedded as
// constants.
namespace oarlock {

// The program of a shape for the native architecture. Static storage.
[[nodiscard]] std::span<const sock_filter> FilterProgram(const Shape& shape) noexcept;

// Installs `program` on the calling thread by seccomp(2) with NEW_LISTENER | WAIT_KILLABLE_RECV and returns
// the listener (close-on-exec). The caller has no_new_privs and is single-threaded. Errors: EBUSY means that
// another listener is already on this chain (one per chain up to 7.3); EINVAL that the kernel lacks
// WAIT_KILLABLE_RECV.
[[nodiscard]] Result<UniqueFd> InstallFilter(std::span<const sock_filter> program) noexcept;
// ... without a listener: what the supervisor would answer is EPERM, whatever it is.
[[nodiscard]] Status InstallFilterAlone(std::span<const sock_filter> program);

}  // namespace oarlock
