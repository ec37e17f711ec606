// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "child/step.h"

namespace oarlock::child {

// This process has one thread: others would stay free of Landlock and of the filter (E-13). K_LANDLOCK.
[[nodiscard]] Step CheckSingleThread();

// No controlling terminal: a session of our own, or TIOCNOTTY for a group leader, where setsid fails. Proved by /dev/tty being
// gone. K_UNSUPPORTED.
[[nodiscard]] Step LeaveTerminal();

// RLIMIT_CORE 0 and, where given, RLIMIT_NOFILE, soft and hard, read back. K_UNSUPPORTED.
[[nodiscard]] Step SetLimits(std::optional<int64_t> nofile);

// The execution domain without what would weaken the module (no randomized addresses, readable is executable, a page at zero; E-146)
// or is another system's; PER_LINUX32 and UNAME26, which a module could set itself, stay. Read back. K_UNSUPPORTED.
[[nodiscard]] Step ResetPersonality();

// An empty signal mask, read back; ignored signals stay ignored (nohup). K_UNSUPPORTED.
[[nodiscard]] Step ResetSignals();

}  // namespace oarlock::child
