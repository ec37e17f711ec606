// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

// Every raw number of landlock(7) that Oarlock uses, in one header, up to ABI 11 (Linux 7.3). Debian 12's header stops
// at ABI 2. tests/notif/abi_test.cc compares with the system's where both exist.
namespace oarlock::abi {

inline constexpr int kHighestLandlockAbi = 11;

// landlock_create_ruleset(2) flags, with a null attribute
inline constexpr uint32_t kLandlockCreateRulesetVersion = 1U << 0;
inline constexpr uint32_t kLandlockCreateRulesetErrata = 1U << 1;

// Always passed whole: a longer attribute with a zero tail is accepted by every kernel since 6.1.
struct LandlockRulesetAttr {
  uint64_t handled_access_fs;
  uint64_t handled_access_net;  // ABI 4
  uint64_t scoped;              // ABI 6
  uint64_t quiet_access_fs;     // ABI 10
  uint64_t quiet_access_net;    // ABI 10
  uint64_t quiet_scoped;        // ABI 10
};
static_assert(sizeof(LandlockRulesetAttr) == 48);

inline constexpr uint32_t kLandlockRulePathBeneath = 1;
inline constexpr uint32_t kLandlockRuleNetPort = 2;  // ABI 4

struct [[gnu::packed]] LandlockPathBeneathAttr {
  uint64_t allowed_access;
  int32_t parent_fd;
};
static_assert(sizeof(LandlockPathBeneathAttr) == 12);

struct LandlockNetPortAttr {
  uint64_t allowed_access;
  uint64_t port;  // host order
};

// File system rights
inline constexpr uint64_t kFsExecute = 1ULL << 0;
inline constexpr uint64_t kFsWriteFile = 1ULL << 1;
inline constexpr uint64_t kFsReadFile = 1ULL << 2;
inline constexpr uint64_t kFsReadDir = 1ULL << 3;
inline constexpr uint64_t kFsRemoveDir = 1ULL << 4;
inline constexpr uint64_t kFsRemoveFile = 1ULL << 5;
inline constexpr uint64_t kFsMakeChar = 1ULL << 6;
inline constexpr uint64_t kFsMakeDir = 1ULL << 7;
inline constexpr uint64_t kFsMakeReg = 1ULL << 8;
inline constexpr uint64_t kFsMakeSock = 1ULL << 9;
inline constexpr uint64_t kFsMakeFifo = 1ULL << 10;
inline constexpr uint64_t kFsMakeBlock = 1ULL << 11;
inline constexpr uint64_t kFsMakeSym = 1ULL << 12;
inline constexpr uint64_t kFsRefer = 1ULL << 13;        // ABI 2
inline constexpr uint64_t kFsTruncate = 1ULL << 14;     // ABI 3
inline constexpr uint64_t kFsIoctlDev = 1ULL << 15;     // ABI 5
inline constexpr uint64_t kFsResolveUnix = 1ULL << 16;  // ABI 9

// Rights that a rule on something other than a directory may carry; others are EINVAL.
inline constexpr uint64_t kFsFileRights =
    kFsExecute | kFsWriteFile | kFsReadFile | kFsTruncate | kFsIoctlDev | kFsResolveUnix;

// Network rights
inline constexpr uint64_t kNetBindTcp = 1ULL << 0;         // ABI 4
inline constexpr uint64_t kNetConnectTcp = 1ULL << 1;      // ABI 4
inline constexpr uint64_t kNetBindUdp = 1ULL << 2;         // ABI 10
inline constexpr uint64_t kNetConnectSendUdp = 1ULL << 3;  // ABI 10

// Scopes
inline constexpr uint64_t kScopeAbstractUnixSocket = 1ULL << 0;  // ABI 6
inline constexpr uint64_t kScopeSignal = 1ULL << 1;              // ABI 6

// landlock_restrict_self(2) flags
inline constexpr uint32_t kRestrictSelfLogSameExecOff = 1U << 0;    // ABI 7
inline constexpr uint32_t kRestrictSelfLogNewExecOn = 1U << 1;      // ABI 7
inline constexpr uint32_t kRestrictSelfLogSubdomainsOff = 1U << 2;  // ABI 7
inline constexpr uint32_t kRestrictSelfTsync = 1U << 3;             // ABI 8
inline constexpr uint32_t kRestrictSelfNoNewPrivs = 1U << 4;        // ABI 11

// landlock_add_rule(2) flags
inline constexpr uint32_t kAddRuleQuiet = 1U << 0;  // ABI 10

// System call numbers: the same on every architecture.
inline constexpr long kSysLandlockCreateRuleset = 444;
inline constexpr long kSysLandlockAddRule = 445;
inline constexpr long kSysLandlockRestrictSelf = 446;

}  // namespace oarlock::abi
