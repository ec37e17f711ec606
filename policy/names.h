// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cerrno>
#include <cstdint>
#include <span>
#include <string_view>

#include "notif/abi/landlock.h"
#include "policy/policy.h"

// The closed vocabularies of POLICY.json, each once: the parser and Emit read the same table.
namespace oarlock::policy {

template <typename Value>
struct Named {
  Value value;
  std::string_view name;
};

inline constexpr std::array<Named<Profile>, 2> kProfiles{{
    {Profile::kModule, "module"},
    {Profile::kWriteAllowlist, "write-allowlist"},
}};
inline constexpr std::array<Named<Enforce>, 2> kEnforces{{
    {Enforce::kStrict, "strict"},
    {Enforce::kBestEffort, "best-effort"},
}};
inline constexpr std::array<Named<NetMode>, 4> kNets{{
    {NetMode::kNone, "none"},
    {NetMode::kEgressAllowlist, "egress-allowlist"},
    {NetMode::kEgressAny, "egress-any"},
    {NetMode::kHost, "host"},
}};
inline constexpr std::array<Named<ProxyAddress>, 2> kProxyAddresses{{
    {ProxyAddress::kLoopback4, "127.0.0.1"},
    {ProxyAddress::kLoopback6, "::1"},
}};
inline constexpr std::array<Named<Mediation>, 2> kMediations{{
    {Mediation::kFull, "full"},
    {Mediation::kConnect, "connect"},
}};
inline constexpr std::array<Named<Local>, 2> kLocals{{
    {Local::kNone, "none"},
    {Local::kOwn, "own"},
}};
inline constexpr std::array<Named<Tty>, 2> kTtys{{
    {Tty::kNone, "none"},
    {Tty::kInherit, "inherit"},
}};
inline constexpr std::array<Named<Shm>, 2> kShms{{
    {Shm::kNone, "none"},
    {Shm::kHost, "host"},
}};
inline constexpr std::array<Named<int>, 3> kTcpErrors{{
    {EACCES, "EACCES"},
    {ENETUNREACH, "ENETUNREACH"},
    {ECONNREFUSED, "ECONNREFUSED"},
}};
inline constexpr std::array<Named<bool>, 2> kGpus{{
    {false, "none"},
    {true, "compute"},
}};
// landlockconfig's names, in Landlock's order. Not its groups (abi.all ...), whose meaning depends on a
// kernel's ABI, and not resolve_unix, which would open every socket below the root behind the supervisor's
// back.
inline constexpr std::array<Named<uint64_t>, 16> kRights{{
    {abi::kFsExecute, "execute"},
    {abi::kFsWriteFile, "write_file"},
    {abi::kFsReadFile, "read_file"},
    {abi::kFsReadDir, "read_dir"},
    {abi::kFsRemoveDir, "remove_dir"},
    {abi::kFsRemoveFile, "remove_file"},
    {abi::kFsMakeChar, "make_char"},
    {abi::kFsMakeDir, "make_dir"},
    {abi::kFsMakeReg, "make_reg"},
    {abi::kFsMakeSock, "make_sock"},
    {abi::kFsMakeFifo, "make_fifo"},
    {abi::kFsMakeBlock, "make_block"},
    {abi::kFsMakeSym, "make_sym"},
    {abi::kFsRefer, "refer"},
    {abi::kFsTruncate, "truncate"},
    {abi::kFsIoctlDev, "ioctl_dev"},
}};

// The name of a value; empty for one that no policy can hold.
template <typename Value, size_t N>
[[nodiscard]] constexpr std::string_view NameIn(const std::array<Named<Value>, N>& names,
                                                Value value) noexcept {
  for (const auto& row : names)
    if (row.value == value) return row.name;
  return {};
}

// The word nearest to `word` by letters added, dropped, changed or swapped, whatever their case; empty where
// none is near enough to be a slip.
[[nodiscard]] std::string_view Nearest(std::string_view word, std::span<const std::string_view> words);

}  // namespace oarlock::policy
