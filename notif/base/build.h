// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace oarlock {

// Which program this is: the version, and the linker's build id of the running executable in hex. Another build of the same
// version has another id; empty where the linker made none.
[[nodiscard]] std::string BuildVersion();
[[nodiscard]] std::string BuildId();

}  // namespace oarlock
