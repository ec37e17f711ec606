// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <signal.h>
#include <sys/auxv.h>
#include <sys/types.h>

#include <cstdint>
#include <optional>

#include "child/step.h"

namespace oarlock::child {

// This process has one thread: others would stay free of Landlock and of the filter (E-13). K_LANDLOCK.
[[nodiscard]] Step CheckSingleThread();

// The kernel's word on who this process is since its exec, which no filter around us can answer in its place.
[[nodiscard]] inline uid_t OwnUid() { return static_cast<uid_t>(::getauxval(AT_EUID)); }
[[nodiscard]] inline gid_t OwnGid() { return static_cast<gid_t>(::getauxval(AT_EGID)); }
// geteuid and getegid say the same. K_IDENTITY.
[[nodiscard]] Step CheckOwnIds();

// No controlling terminal: a session of our own, or TIOCNOTTY for a group leader, where setsid fails. Read back from
// /proc/self/stat. K_UNSUPPORTED.
[[nodiscard]] Step LeaveTerminal();

// RLIMIT_CORE 0 and, where given, RLIMIT_NOFILE, soft and hard, read back. K_UNSUPPORTED.
[[nodiscard]] Step SetLimits(std::optional<int64_t> nofile);

// The execution domain without what would weaken the module (no randomized addresses, readable is executable, a page at zero; E-146)
// or is another system's; PER_LINUX32 and UNAME26, which a module could set itself, stay. Read back. K_UNSUPPORTED.
[[nodiscard]] Step ResetPersonality();

// What a signal does, read back.
[[nodiscard]] bool SetDisposition(int signal, const struct sigaction& wanted);

// An empty signal mask, read back; ignored signals stay ignored (nohup). K_UNSUPPORTED.
[[nodiscard]] Step ResetSignals();

}  // namespace oarlock::child
