// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace oarlock::child {

inline constexpr int kExitUsage = 64;
inline constexpr int kExitNotConfined = 70;  // anything before exec: the module never ran
inline constexpr int kExitExecFailed = 71;

// `oarlock sandbox-exec POLICY.json -- /abs/argv0 args...`: confines this process and executes the module in its place.
// `arguments` begin behind the verb. Returns only where it failed, with the exit code; the reason is one line on stderr.
//
// POLICY.json may be a path, "fd:N", or "-" for the environment's MOAT_SANDBOX_POLICY. The environment also may hold
//   OARBANK_CONFINED=<fd>      one byte is written to it when the sandbox holds, before exec
//   OARLOCK_SUPERVISOR         the node supervisor's admission socket, or "fd:N"; none: a private supervisor
//   OARLOCK_EXEC_STATUS=<fd>   from `oarlock run`: receives the errno of an exec that failed; closed by exec itself
// All of these are removed from the module's environment.
[[nodiscard]] int Launch(int count, char** arguments, char** environment);

}  // namespace oarlock::child
