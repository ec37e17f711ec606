// SPDX-License-Identifier: Apache-2.0
#include "child/identity.h"

#include <grp.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "child/confine.h"

namespace oarlock::child {
namespace {

constexpr int kMaxCapabilities = 64;
// Every kernel that we run on has at least those that this header names.
constexpr int kMinCapabilities = CAP_LAST_CAP + 1;
// Uid 0 is nobody special, for good.
constexpr int kSecureBits = SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP | SECBIT_NO_SETUID_FIXUP_LOCKED |
                            SECBIT_NO_CAP_AMBIENT_RAISE | SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED;

struct Capabilities {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2]{};

  // All of them first: a call that is made to return 0 without doing anything must not look like a process without any.
  bool Get() {
    for (auto& half : data) half = {~0U, ~0U, ~0U};
    return ::syscall(SYS_capget, &header, data) == 0;
  }
  bool Set() { return ::syscall(SYS_capset, &header, data) == 0; }
  [[nodiscard]] bool HasEffective(int capability) const {
    return (data[capability / 32].effective >> (capability % 32) & 1) != 0;
  }
  [[nodiscard]] bool Empty() const {
    return (data[0].effective | data[0].permitted | data[0].inheritable | data[1].effective | data[1].permitted |
            data[1].inheritable) == 0;
  }
};

Step Fail(Code code, const char* what, int error) {
  const char* remedy = error == EPERM ? " (it needs CAP_SETUID, CAP_SETGID and CAP_SETPCAP, as root has)" : "";
  return Stop(code, code == Code::kIdentity ? "/run_as" : "", std::string(what) + ": " + ErrnoName(error) + remedy);
}

Step SetIds(const policy::Identity& wanted) {
  if (::setresgid(wanted.gid, wanted.gid, wanted.gid) != 0) return Fail(Code::kIdentity, "setresgid", errno);
  if (::setresuid(wanted.uid, wanted.uid, wanted.uid) != 0) return Fail(Code::kIdentity, "setresuid", errno);
  // A change of uid makes a process undumpable, and its /proc files root's. The module's exec sets it again anyway.
  (void)::prctl(PR_SET_DUMPABLE, 1);
  return {};
}

Step ProveIdentity(const policy::Identity& wanted, bool groups_emptied) {
  // Not what is wanted: a call that is made to return 0 without doing anything must not look like one that did.
  uid_t uid[3] = {~wanted.uid, ~wanted.uid, ~wanted.uid};
  gid_t gid[3] = {~wanted.gid, ~wanted.gid, ~wanted.gid};
  if (::getresuid(&uid[0], &uid[1], &uid[2]) != 0 || ::getresgid(&gid[0], &gid[1], &gid[2]) != 0)
    return Fail(Code::kIdentity, "getresuid", errno);
  for (int i = 0; i < 3; ++i)
    if (uid[i] != wanted.uid || gid[i] != wanted.gid)
      return Stop(Code::kIdentity, "/run_as", "the ids did not change although the calls said so: something filters us");
  if (groups_emptied && ::getgroups(0, nullptr) != 0)
    return Stop(Code::kIdentity, "/run_as", "supplementary groups remain although setgroups said so: something filters us");
  return {};
}

Step ProveBounding() {
  for (int capability = 0; capability < kMaxCapabilities; ++capability) {
    const int held = ::prctl(PR_CAPBSET_READ, capability, 0, 0, 0);
    if (held == 0) continue;
    if (held == 1) return Stop(Code::kCaps, "", "the bounding set is not empty although the calls said so: something filters us");
    if (errno == EINVAL && capability >= kMinCapabilities) break;
    return Fail(Code::kCaps, "PR_CAPBSET_READ", errno);
  }
  return {};
}

}  // namespace

Step TakeIdentity(const std::optional<policy::Identity>& run_as) {
  Capabilities capabilities;
  if (!capabilities.Get()) return Fail(Code::kCaps, "capget", errno);
  const policy::Identity wanted = run_as.value_or(policy::Identity{OwnUid(), OwnGid()});

  // The bounding set first, while CAP_SETPCAP is there: without it root's exec would take capabilities back.
  const bool may_bound = capabilities.HasEffective(CAP_SETPCAP);
  for (int capability = 0; may_bound && capability < kMaxCapabilities; ++capability) {
    if (::prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) == 0) continue;
    if (errno == EINVAL) break;  // the kernel knows no more
    return Fail(Code::kCaps, "PR_CAPBSET_DROP", errno);
  }
  if (may_bound && ::prctl(PR_SET_SECUREBITS, kSecureBits) != 0) return Fail(Code::kCaps, "PR_SET_SECUREBITS", errno);
  if (may_bound && ::prctl(PR_GET_SECUREBITS) != kSecureBits)
    return Stop(Code::kCaps, "", "the secure bits are not set although the call said so: something filters us");
  if (::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) != 0) return Fail(Code::kCaps, "PR_CAP_AMBIENT", errno);

  const bool may_empty_groups = capabilities.HasEffective(CAP_SETGID);
  if (may_empty_groups && ::setgroups(0, nullptr) != 0) return Fail(Code::kIdentity, "setgroups", errno);
  if (run_as || ::getauxval(AT_UID) != wanted.uid || ::getauxval(AT_GID) != wanted.gid)
    if (auto step = SetIds(wanted); !step) return step;

  capabilities.data[0] = capabilities.data[1] = {};
  if (!capabilities.Set()) return Fail(Code::kCaps, "capset", errno);

  if (auto step = ProveIdentity(wanted, may_empty_groups); !step) return step;
  Capabilities now;
  if (!now.Get()) return Fail(Code::kCaps, "capget", errno);
  if (!now.Empty()) return Stop(Code::kCaps, "", "capabilities remain although capset said so: something filters us");
  return may_bound ? ProveBounding() : Step{};
}

Step SetNoNewPrivs() {
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return Stop(Code::kNnp, "", std::string("PR_SET_NO_NEW_PRIVS: ") + ErrnoName(errno));
  if (::prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1)
    return Stop(Code::kNnp, "", "no_new_privs is not set although the call said so: something filters us");
  return {};
}

}  // namespace oarlock::child
