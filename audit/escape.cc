// SPDX-License-Identifier: Apache-2.0
#include "audit/escape.h"

#include <cstdint>

namespace oarlock::audit {
namespace {

constexpr char kDigits[] = "0123456789abcdef";

struct Range {
  uint32_t low, high;
};
// Unicode's Cc, Cf, Zl and Zp beyond ASCII. Whole blocks where only their unassigned neighbours come along.
constexpr Range kHidden[] = {
    {0x80, 0x9f},    // C1
    {0xad, 0xad},    // soft hyphen
    {0x600, 0x605},  // Arabic number signs
    {0x61c, 0x61c},  // Arabic letter mark: bidi
    {0x6dd, 0x6dd},     {0x70f, 0x70f},     {0x890, 0x891},     {0x8e2, 0x8e2},
    {0x180e, 0x180e},   {0x200b, 0x200f},  // zero width, left-to-right and right-to-left marks
    {0x2028, 0x202e},                      // line and paragraph separator, bidi embeddings and overrides
    {0x2060, 0x206f},                      // word joiner, bidi isolates
    {0xfeff, 0xfeff},                      // byte order mark
    {0xfff9, 0xfffb},                      // interlinear annotation
    {0x110bd, 0x110bd}, {0x110cd, 0x110cd}, {0x13430, 0x1343f}, {0x1bca0, 0x1bca3},
    {0x1d173, 0x1d17a}, {0xe0000, 0xe0fff},  // tags, variation selectors' supplement
};

bool IsHidden(uint32_t code) noexcept {
  for (const Range& range : kHidden)
    if (code >= range.low && code <= range.high) return true;
  return false;
}

void AppendEscape(std::string& text, char c) {
  const auto byte = static_cast<uint8_t>(c);
  text += "\\x";
  text += kDigits[byte >> 4];
  text += kDigits[byte & 15];
}

int HexValue(char c) noexcept {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

std::string EscapeText(std::string_view bytes, bool backslash) {
  std::string text;
  text.reserve(bytes.size());
  while (!bytes.empty()) {
    size_t size = PlainCharacter(bytes);
    if (size == 0 && bytes.front() == '\\' && !backslash) size = 1;
    if (size == 0) {
      AppendEscape(text, bytes.front());
      bytes.remove_prefix(1);
    } else {
      text += bytes.substr(0, size);
      bytes.remove_prefix(size);
    }
  }
  return text;
}

}  // namespace

size_t PlainCharacter(std::string_view bytes) noexcept {
  const auto at = [&](size_t i) { return static_cast<uint8_t>(bytes[i]); };
  const uint8_t first = at(0);
  if (first < 0x80) return first >= 0x20 && first != 0x7f && first != '\\' ? 1 : 0;
  size_t size = 0;
  uint32_t code = 0;
  uint32_t least = 0;  // what a shorter form could say
  if ((first & 0xe0) == 0xc0) {
    size = 2, code = first & 0x1f, least = 0x80;
  } else if ((first & 0xf0) == 0xe0) {
    size = 3, code = first & 0x0f, least = 0x800;
  } else if ((first & 0xf8) == 0xf0) {
    size = 4, code = first & 0x07, least = 0x10000;
  }
  if (size == 0 || bytes.size() < size) return 0;
  for (size_t i = 1; i < size; ++i) {
    if ((at(i) & 0xc0) != 0x80) return 0;
    code = code << 6 | (at(i) & 0x3fU);
  }
  const bool surrogate = code >= 0xd800 && code <= 0xdfff;
  if (code < least || code > 0x10ffff || surrogate || IsHidden(code)) return 0;
  return size;
}

std::string Escape(std::string_view bytes) { return EscapeText(bytes, true); }

std::string ForTerminal(std::string_view text) { return EscapeText(text, false); }

std::string Unescape(std::string_view text) {
  std::string bytes;
  bytes.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 3 < text.size() && text[i + 1] == 'x') {
      const int high = HexValue(text[i + 2]), low = HexValue(text[i + 3]);
      if (high >= 0 && low >= 0) {
        bytes += static_cast<char>(high << 4 | low);
        i += 3;
        continue;
      }
    }
    bytes += text[i];
  }
  return bytes;
}

}  // namespace oarlock::audit
