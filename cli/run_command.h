// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace oarlock::cli {

// `oarlock run`: a policy from options, a private supervisor, the command inside.
struct RunCommand {
  std::optional<uint16_t> proxy_port;
  std::vector<std::string> ro, rw;
  std::string broker;
  std::string policy;      // a policy file instead of the options above
  std::string profile = "module";  // or "write-allowlist"
  int status_fd = -1;
  bool quiet = false;
  bool keep_children = false;
  bool dry_run = false;    // print the effective policy and stop
  std::vector<std::string> command;
};
// The outer process: waits, is the child subreaper, and holds nothing of the sandbox. 125: our failure, 126: not runnable,
// 127: not found, 128+n: ended by signal n, else the command's own. 64: the options make no sense.
[[nodiscard]] int Run(const RunCommand& command, char** environment);

}  // namespace oarlock::cli
