// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cerrno>
#include <cstdint>

#include "notif/abi/seccomp.h"
#include "notif/base/check.h"
#include "notif/calls.h"

namespace oarlock::filter {

inline constexpr uint32_t kEnosysVerdict = abi::kRetErrno | ENOSYS;

// What a filter returns for an outcome. kArgs is none.
[[nodiscard]] inline uint32_t Verdict(Action action) {
  switch (action) {
    case Action::kAllow:
      return abi::kRetAllow;
    case Action::kNotify:
      return abi::kRetUserNotif;
    case Action::kEnosys:
      return kEnosysVerdict;
    case Action::kArgs:
      break;
  }
  OARLOCK_CHECK(false, "action %u has no verdict", static_cast<unsigned>(action));
}

[[nodiscard]] constexpr uint32_t AuditArch(Arch arch) {
  return arch == Arch::kX86_64 ? abi::kAuditArchX86_64 : abi::kAuditArchAarch64;
}

}  // namespace oarlock::filter
