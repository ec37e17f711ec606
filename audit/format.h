// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "audit/chain.h"
#include "audit/host.h"
#include "audit/limits.h"
#include "audit/record.h"

// A Record as one line of OCSF 1.8 JSON (docs/AUDIT.md has every field). Pure: no heap memory, no system
// calls.
namespace oarlock::audit {

inline constexpr std::string_view kOcsfVersion = "1.8.0";

// A line's place in the log.
struct Stamp {
  uint64_t sequence = 0;
  Ulid id{};  // used where the record has none
  Hash previous = kZeroHash;
  uint64_t real_us = 0;  // used where the record has none
};

// Writes the line with its newline, 64 zeros in place of its hash (Seal puts it in), and returns its size.
// What the sandbox chose may be anything; it stays inside its string and within kMaxLineBytes.
[[nodiscard]] size_t Format(const Record& record, const Host& host, const Stamp& stamp,
                            std::span<char, kMaxLineBytes> out) noexcept;

// The `status_code` of a record: a reason of notif/refusals.h, or what a record of another class says. Empty
// for an approval.
[[nodiscard]] std::string_view StatusCode(const Record& record) noexcept;

// "2026-01-02T03:04:05.000006Z" into `out`; returns its size (27; years 1970 to 9999).
inline constexpr size_t kTimeTextSize = 27;
size_t FormatTime(uint64_t real_us, std::span<char, kTimeTextSize> out) noexcept;

}  // namespace oarlock::audit
