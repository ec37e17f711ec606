// SPDX-License-Identifier: Apache-2.0
#include "notif/base/text.h"

#include <charconv>

namespace oarlock {
namespace {
constexpr char kDigits[] = "0123456789abcdef";
}

std::string Printable(std::string_view bytes, size_t limit) {
  std::string text;
  for (const char c : bytes.substr(0, limit)) {
    const auto byte = static_cast<uint8_t>(c);
    if (byte >= 0x20 && byte < 0x7f) {
      text += c;
    } else {
      text += "\\x";
      text += kDigits[byte >> 4];
      text += kDigits[byte & 15];
    }
  }
  if (bytes.size() > limit) text += "...";
  return text;
}

bool IsPrintable(std::string_view text) noexcept {
  for (const char c : text)
    if (static_cast<uint8_t>(c) < 0x20 || c == 0x7f) return false;
  return true;
}

std::string Hex(std::span<const uint8_t> bytes) {
  std::string text;
  text.reserve(bytes.size() * 2);
  for (const uint8_t byte : bytes) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

bool FromHex(std::string_view text, std::span<uint8_t> out) noexcept {
  if (text.size() != out.size() * 2) return false;
  const std::string_view digits(kDigits, 16);
  for (size_t i = 0; i < out.size(); ++i) {
    const size_t high = digits.find(text[2 * i]), low = digits.find(text[2 * i + 1]);
    if (high == std::string_view::npos || low == std::string_view::npos) return false;
    out[i] = static_cast<uint8_t>(high << 4 | low);
  }
  return true;
}

bool ParseNumber(std::string_view text, uint64_t low, uint64_t high, uint64_t* value) noexcept {
  if (text.empty() || text.front() < '0' || text.front() > '9') return false;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
  return error == std::errc() && end == text.data() + text.size() && *value >= low && *value <= high;
}

}  // namespace oarlock
