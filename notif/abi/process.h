// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>

// Numbers of pidfd, socket and prctl interfaces that Debian 12's headers (6.1) lack or name elsewhere.
namespace oarlock::abi {

inline constexpr long kSysPidfdOpen = 434;
inline constexpr long kSysPidfdGetfd = 438;
inline constexpr unsigned kPidfdThread = O_EXCL;  // pidfd_open(2) flag, 6.9

inline constexpr int kSoNetnsCookie = 71;  // 5.14
inline constexpr int kSoPassPidfd = 76;    // 6.5
inline constexpr int kSoPeerPidfd = 77;    // 6.5
inline constexpr int kSoPassRights = 83;   // 6.16

// memfd_create(2)
inline constexpr unsigned kMfdCloexec = 1;
inline constexpr unsigned kMfdAllowSealing = 2;
inline constexpr unsigned kMfdNoexecSeal = 8;  // 6.3: can never be made executable
inline constexpr unsigned kMfdExec = 0x10;     // 6.3

// Errno values that never reach a program natively: the kernel turns them into EINTR or a restart.
inline constexpr int kErestartsys = 512;

}  // namespace oarlock::abi
