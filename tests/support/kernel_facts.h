// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include "notif/abi/landlock.h"
#include "notif/abi/process.h"
#include "notif/base/unique_fd.h"

// What this kernel has, asked of it and not read off its version.
namespace oarlock::test {

// 0: none.
inline int KernelLandlockAbi() {
  return static_cast<int>(std::max(0L, ::syscall(abi::kSysLandlockCreateRuleset, nullptr, 0, abi::kLandlockCreateRulesetVersion)));
}
// 6.9
inline bool KernelHasThreadPidfd() {
  return UniqueFd(static_cast<int>(::syscall(abi::kSysPidfdOpen, ::getpid(), abi::kPidfdThread))).valid();
}
}  // namespace oarlock::test
