// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "supervisor/supervisor.h"

namespace oarlock::supervisor {

// What `oarlock run` asks of its private supervisor, which is the module's parent: exit codes are then exact, and Yama's
// ptrace_scope 1 is satisfied.
struct RunOptions {
  std::string launcher;              // the static front
  int policy_fd = -1;
  int environment_fd = -1;           // the module's environment, NUL-separated
  int outcome_fd = -1;               // to the outer process: the exit code, as an int, once the main process has ended
  int status_fd = -1;                // one JSON line per stage; -1: nobody asked
  bool terminal_signals = true;      // forward what a terminal sends: the module has a session of its own
  bool quiet = false;
  bool keep_children = false;
  std::vector<std::string> command;  // absolute argv0 first
};

// Starts the launcher as our child, serves it and its session until the last task is gone, forwards signals, tells the outer
// process the exit code, and leaves one footer line where anything was refused.
[[nodiscard]] Status RunAsParent(Supervisor& supervisor, const Inheritance& inheritance, const RunOptions& options,
                                 const std::string& session);

}  // namespace oarlock::supervisor
