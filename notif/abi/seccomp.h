// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <linux/filter.h>
#include <sys/ioctl.h>

#include <cstdint>

// Every raw number of seccomp(2) and seccomp_unotify(2) that Oarlock uses, in one header: Debian 12's kernel headers
// are those of 6.1 and lack what came later. tests/notif/abi_test.cc compares with the system's where both exist.
namespace oarlock::abi {

// seccomp(2) operations and flags
inline constexpr unsigned kSeccompSetModeFilter = 1;
inline constexpr unsigned kSeccompGetActionAvail = 2;
inline constexpr unsigned kSeccompGetNotifSizes = 3;
inline constexpr unsigned long kSeccompFlagNewListener = 1UL << 3;       // 5.0
inline constexpr unsigned long kSeccompFlagWaitKillableRecv = 1UL << 5;  // 5.19

// filter return values (the action's upper 16 bits decide, the lower 16 are its data)
inline constexpr uint32_t kRetKillProcess = 0x80000000U;
inline constexpr uint32_t kRetErrno = 0x00050000U;
inline constexpr uint32_t kRetUserNotif = 0x7fc00000U;
inline constexpr uint32_t kRetAllow = 0x7fff0000U;

// Limit of one program (BPF_MAXINSNS).
inline constexpr unsigned kMaxInstructions = 4096;

// struct seccomp_data: what a filter sees.
struct SeccompData {
  int32_t nr;
  uint32_t arch;
  uint64_t instruction_pointer;
  uint64_t args[6];
};
static_assert(sizeof(SeccompData) == 64);

// struct seccomp_notif and seccomp_notif_resp (sizes 80 and 24 on every kernel up to 7.3).
struct SeccompNotif {
  uint64_t id;
  uint32_t pid;  // a *thread* id, in the reader's pid namespace; 0: the caller is outside it
  uint32_t flags;
  SeccompData data;
};
static_assert(sizeof(SeccompNotif) == 80);

struct SeccompNotifResponse {
  uint64_t id;
  int64_t value;
  int32_t error;  // zero or negative: a positive value would read as success
  uint32_t flags;
};
static_assert(sizeof(SeccompNotifResponse) == 24);

// struct seccomp_notif_addfd (5.9). The kernel's flag to answer with the same step is not here: interrupted by a signal, it leaves the
// call answered with 0 and no descriptor (fixed in 6.12.117 and 7.3.4).
struct SeccompNotifAddFd {
  uint64_t id;
  uint32_t flags;
  uint32_t source_fd;
  uint32_t new_fd;
  uint32_t new_fd_flags;
};
static_assert(sizeof(SeccompNotifAddFd) == 24);

inline constexpr uint32_t kNotifFlagContinue = 1U << 0;     // 5.5
inline constexpr uint64_t kNotifFdSyncWakeUp = 1ULL << 0;   // 6.6

inline constexpr unsigned long kIoctlNotifRecv = _IOWR('!', 0, SeccompNotif);
inline constexpr unsigned long kIoctlNotifSend = _IOWR('!', 1, SeccompNotifResponse);
inline constexpr unsigned long kIoctlNotifIdValid = _IOW('!', 2, uint64_t);
inline constexpr unsigned long kIoctlNotifAddFd = _IOW('!', 3, SeccompNotifAddFd);
inline constexpr unsigned long kIoctlNotifSetFlags = _IOW('!', 4, uint64_t);  // argument by value

// audit architectures
inline constexpr uint32_t kAuditArchX86_64 = 0xC000003EU;
inline constexpr uint32_t kAuditArchI386 = 0x40000003U;
inline constexpr uint32_t kAuditArchAarch64 = 0xC00000B7U;
inline constexpr uint32_t kAuditArchArm = 0x40000028U;

// x32 shares x86_64's architecture value; its numbers have bit 30.
inline constexpr uint32_t kX32Bit = 0x40000000U;

}  // namespace oarlock::abi
