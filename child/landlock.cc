// SPDX-License-Identifier: Apache-2.0
#include "child/landlock.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "notif/abi/process.h"

namespace oarlock::child {
namespace {

using namespace abi;  // NOLINT(google-build-using-namespace): the table below is nothing but its names

struct Growth {
  int abi;
  LandlockRights adds;
};
constexpr std::array<Growth, 9> kGrowth = {{
    {1,
     {.fs = kFsExecute | kFsWriteFile | kFsReadFile | kFsReadDir | kFsRemoveDir | kFsRemoveFile | kFsMakeChar | kFsMakeDir |
            kFsMakeReg | kFsMakeSock | kFsMakeFifo | kFsMakeBlock | kFsMakeSym}},
    {2, {.fs = kFsRefer}},
    {3, {.fs = kFsTruncate}},
    {4, {.net = kNetBindTcp | kNetConnectTcp}},
    {5, {.fs = kFsIoctlDev}},
    {6, {.scoped = kScopeAbstractUnixSocket | kScopeSignal}},
    {7, {.restrict_flags = kRestrictSelfLogSameExecOff | kRestrictSelfLogNewExecOn | kRestrictSelfLogSubdomainsOff}},
    {9, {.fs = kFsResolveUnix}},
    {10, {.net = kNetBindUdp | kNetConnectSendUdp}},
}};

int Create(const LandlockRulesetAttr* attribute, size_t size, uint32_t flags) {
  return static_cast<int>(::syscall(kSysLandlockCreateRuleset, attribute, size, flags));
}

}  // namespace

LandlockRights RightsOf(int abi) noexcept {
  LandlockRights rights;
  for (const Growth& growth : kGrowth) {
    if (abi < growth.abi) break;
    rights.fs |= growth.adds.fs;
    rights.net |= growth.adds.net;
    rights.scoped |= growth.adds.scoped;
    rights.restrict_flags |= growth.adds.restrict_flags;
  }
  return rights;
}

LandlockRights HandledRights(int abi, bool host_network) noexcept {
  LandlockRights rights = RightsOf(abi);
  if (host_network) {
    rights.net = 0;
    rights.fs &= ~kFsResolveUnix;
    rights.scoped &= ~kScopeAbstractUnixSocket;
  }
  return rights;
}

Result<int> LandlockAbi() {
  const int abi = Create(nullptr, 0, kLandlockCreateRulesetVersion);
  if (abi >= 1) return abi;
  if (abi == 0) return OARLOCK_FAIL("landlock_create_ruleset", ENOSYS, "(version 0)");
  if (errno == EOPNOTSUPP)
    return OARLOCK_FAIL("landlock_create_ruleset", EOPNOTSUPP, "(built in but switched off: add landlock to the boot parameter lsm=)");
  return OARLOCK_FAIL("landlock_create_ruleset", errno, "(this kernel, or a filter around us, offers no Landlock)");
}

Age KernelAge(int landlock_abi) {
  const UniqueFd thread(static_cast<int>(::syscall(kSysPidfdOpen, ::getpid(), kPidfdThread)));
  const UniqueFd memory(static_cast<int>(::syscall(SYS_memfd_create, "", kMfdCloexec | kMfdNoexecSeal)));
  // Whatever else is wrong is not the kernel's age.
  return AgeOf(landlock_abi, thread.valid(), memory.valid() || errno != EINVAL);
}

Result<int> LandlockErrata() {
  const int errata = Create(nullptr, 0, kLandlockCreateRulesetErrata);
  if (errata < 0) return OARLOCK_FAIL("landlock_create_ruleset", errno, "(errata)");
  return errata;
}

Checked<UniqueFd> MakeRuleset(const LandlockRights& rights, const std::vector<PathRule>& rules) {
  LandlockRulesetAttr attribute{};
  attribute.handled_access_fs = rights.fs;
  attribute.handled_access_net = rights.net;
  attribute.scoped = rights.scoped;
  UniqueFd ruleset(Create(&attribute, sizeof(attribute), 0));
  if (!ruleset.valid()) {
    const auto error = OARLOCK_FAIL("landlock_create_ruleset", errno, "with rights %#llx", static_cast<unsigned long long>(rights.fs));
    return Stop(Code::kLandlock, error.error());
  }
  for (const PathRule& rule : rules) {
    LandlockPathBeneathAttr beneath{};
    beneath.allowed_access = rule.rights & rights.fs & (rule.is_directory ? ~uint64_t{0} : kFsFileRights);
    beneath.parent_fd = rule.parent.get();
    // A right that this kernel does not handle is not refused either: nothing is left to allow.
    if (beneath.allowed_access == 0) continue;
    if (::syscall(kSysLandlockAddRule, ruleset.get(), kLandlockRulePathBeneath, &beneath, 0U) != 0) {
      const auto error = OARLOCK_FAIL("landlock_add_rule", errno, "'%s'", rule.path.c_str());
      return Stop(Code::kLandlock, rule.pointer, error.error().Message());
    }
  }
  return ruleset;
}

Step RestrictSelf(int ruleset, int abi, bool log_denials) {
  // By default nothing is logged of what an executed program is refused (E-183).
  uint32_t flags = log_denials ? kRestrictSelfLogNewExecOn : kRestrictSelfLogSameExecOff;
  flags &= RightsOf(abi).restrict_flags;
  if (::syscall(kSysLandlockRestrictSelf, ruleset, flags) == 0) return {};
  const int error = errno;
  const char* remedy = error == E2BIG ? "(sixteen layers are stacked already: start it from less deep)" : "";
  const auto failure = OARLOCK_FAIL("landlock_restrict_self", error, "%s", remedy);
  return Stop(Code::kLandlock, failure.error());
}

}  // namespace oarlock::child
