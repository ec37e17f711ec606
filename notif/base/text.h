// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace oarlock {

// For messages to people: bytes outside printable ASCII become \xNN, the result is cut to `limit` source bytes and then ends
// in "...". Never holds a control character, so one message stays one line.
[[nodiscard]] std::string Printable(std::string_view bytes, size_t limit);
// No control characters (C0, DEL). Any other byte passes.
[[nodiscard]] bool IsPrintable(std::string_view text) noexcept;

[[nodiscard]] std::string Hex(std::span<const uint8_t> bytes);  // lower case
// Exactly out.size() bytes, lower case; false where `text` is anything else.
[[nodiscard]] bool FromHex(std::string_view text, std::span<uint8_t> out) noexcept;

// A whole decimal number from `low` to `high`; false for anything else (signs, spaces, empty).
[[nodiscard]] bool ParseNumber(std::string_view text, uint64_t low, uint64_t high, uint64_t* value) noexcept;

}  // namespace oarlock
