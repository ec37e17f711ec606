// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/syscall.h>
#include <unistd.h>

#include <fstream>
#include <optional>
#include <string>

#include "notif/abi/landlock.h"
#include "notif/abi/process.h"
#include "notif/base/unique_fd.h"
#include "tests/hostile/support.h"

// What this kernel has, asked of it and not read off its version.
namespace oarlock::test {

inline std::string KernelsAttackerPath() { return OARLOCK_BINARY_DIR "/tests/bin/kernels-attacker"; }

// 0: none.
inline int KernelLandlockAbi() {
  return static_cast<int>(std::max(0L, ::syscall(abi::kSysLandlockCreateRuleset, nullptr, 0, abi::kLandlockCreateRulesetVersion)));
}
// 6.9
inline bool KernelHasThreadPidfd() {
  return UniqueFd(static_cast<int>(::syscall(abi::kSysPidfdOpen, ::getpid(), abi::kPidfdThread))).valid();
}
// Empty where there is no Yama.
inline std::optional<int> YamaScope() {
  std::ifstream file("/proc/sys/kernel/yama/ptrace_scope");
  int value = 0;
  return file >> value ? std::optional(value) : std::nullopt;
}
// Whether this machine may be changed, because it ends with the test: scripts/kernels-init.sh says so.
inline bool IsThrowAwayGuest() { return ::getenv("OARLOCK_TEST_GUEST") != nullptr; }

inline bool GotThrough(const std::string& result) { return result == "0" || result.starts_with("0 "); }

}  // namespace oarlock::test
