// SPDX-License-Identifier: Apache-2.0
#include "notif/filter/programs.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "notif/abi/seccomp.h"
#include "notif/base/check.h"
#include "notif/filter/embedded.h"

namespace oarlock {

std::span<const sock_filter> FilterProgram(const Shape& shape) noexcept {
  const unsigned index = ShapeIndex(shape);
  OARLOCK_CHECK(index < kShapeCount, "shape %u", index);
  if constexpr (kNativeArch == Arch::kX86_64)
    return {filter::kInstructionsX86_64 + filter::kStartsX86_64[index],
            filter::kInstructionsX86_64 + filter::kStartsX86_64[index + 1]};
  else
    return {filter::kInstructionsAarch64 + filter::kStartsAarch64[index],
            filter::kInstructionsAarch64 + filter::kStartsAarch64[index + 1]};
}

Result<UniqueFd> InstallFilter(std::span<const sock_filter> program) noexcept {
  OARLOCK_CHECK(!program.empty() && program.size() <= abi::kMaxInstructions, "%zu instructions",
                program.size());
  // The kernel copies the program; the interface merely forgot a const.
  const sock_fprog argument = {.len = static_cast<unsigned short>(program.size()),
                               .filter = const_cast<sock_filter*>(program.data())};  // NOLINT
  // Not through libc: from here on each call that is not ours might be one that the filter notifies.
  const long listener =
      ::syscall(SYS_seccomp, abi::kSeccompSetModeFilter,
                abi::kSeccompFlagNewListener | abi::kSeccompFlagWaitKillableRecv, &argument);
  if (listener < 0) return OARLOCK_FAIL("seccomp", errno, "%zu instructions", program.size());
  return UniqueFd(static_cast<int>(listener));
}

Status InstallFilterAlone(std::span<const sock_filter> program) {
  std::vector<sock_filter> alone(program.begin(), program.end());
  for (sock_filter& instruction : alone)
    if (instruction.code == (BPF_RET | BPF_K) && instruction.k == abi::kRetUserNotif) instruction.k = abi::kRetErrno | EPERM;
  const sock_fprog argument = {.len = static_cast<unsigned short>(alone.size()), .filter = alone.data()};
  if (::syscall(SYS_seccomp, abi::kSeccompSetModeFilter, 0U, &argument) != 0) return OARLOCK_FAIL("seccomp", errno, "%zu instructions", alone.size());
  return {};
}

}  // namespace oarlock
