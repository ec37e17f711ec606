// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace oarlock {

// A ULID: 48 bits of milliseconds and 80 random bits, 26 characters of Crockford's base 32, sortable by time.
// Sessions and audit records are named by one. A value without heap memory.
class Ulid {
 public:
  static constexpr size_t kLength = 26;
  Ulid() noexcept { text_.fill('0'); }
  // From the clock's milliseconds and ten random bytes. Pure.
  Ulid(uint64_t milliseconds, const std::array<uint8_t, 10>& random) noexcept;
  // From the real clock and getrandom(2).
  [[nodiscard]] static Ulid Make() noexcept;
  [[nodiscard]] std::string_view text() const noexcept { return {text_.data(), text_.size()}; }
  friend bool operator==(const Ulid&, const Ulid&) = default;

 private:
  std::array<char, kLength> text_;
};

}  // namespace oarlock
