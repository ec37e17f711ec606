// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace oarlock::filter {

// docs/SYSCALLS.md, from the call table and nothing else.
[[nodiscard]] std::string SyscallsPage();

}  // namespace oarlock::filter
