// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <linux/filter.h>

#include <cstdint>
#include <span>
#include <string>

#include "notif/abi/seccomp.h"

// The kernel's side of seccomp filters, for tests: what it loads, what it returns, what it caches. Written
// from the kernel's behaviour (bpf_check_classic, seccomp_check_filter, seccomp_is_const_allow), and
// complete: also instructions that our programs never use, so that a mutated program is judged as the kernel
// would judge it.
namespace oarlock::bpf {

using Program = std::span<const sock_filter>;

// Why seccomp(2) would refuse the program with EINVAL; empty where it would load it.
[[nodiscard]] std::string WhyInvalid(Program program);

// What the filter returns. The program must be one that the kernel would load.
[[nodiscard]] uint32_t Run(Program program, const abi::SeccompData& data);

// Whether the kernel (5.11 and later) would remember that this call is allowed without running the program
// again: true where the path to RET ALLOW looks at number and architecture alone.
[[nodiscard]] bool IsConstantAllow(Program program, uint32_t nr, uint32_t arch);

// One instruction, for messages: "12: jeq 0x29, 3, 0".
[[nodiscard]] std::string Text(Program program, size_t at);

}  // namespace oarlock::bpf
