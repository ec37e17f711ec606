// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>

namespace oarlock::cli {

// `oarlock sandbox-status`: the node's enforcement report, one line of JSON, from probes that do what a launch would.
[[nodiscard]] int SandboxStatus(std::ostream& out);

// `oarlock sandbox-check PID`: 0 where a supervisor (the node's, or a private one, of root or of our own uid) says that the
// process is confined by a session of its own, else 1. An outer filter never makes it 0.
[[nodiscard]] int SandboxCheck(int32_t pid, const std::string& control, std::ostream& err);

}  // namespace oarlock::cli
