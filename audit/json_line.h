// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <charconv>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "audit/escape.h"
#include "notif/base/check.h"

namespace oarlock::audit {

// Writes one JSON object into a buffer that it is given, member by member: no heap memory, no locale, never
// more than the buffer. The buffer is sized for the worst record (kMaxLineBytes), so running out of it is a
// bug of ours and stops us. Strings are escaped as escape.h says and then as JSON wants it; keys are literals
// of ours and are written as they are.
class JsonLine {
 public:
  explicit JsonLine(std::span<char> out) noexcept : out_(out) { Put('{'); }

  void Object(std::string_view key) noexcept {
    Key(key);
    Put('{');
    first_ = true;
  }
  void EndObject() noexcept {
    Put('}');
    first_ = false;
  }
  void Array(std::string_view key) noexcept {
    Key(key);
    Put('[');
    first_ = true;
  }
  void EndArray() noexcept {
    Put(']');
    first_ = false;
  }

  // The first `force` bytes are escaped, whatever they are.
  void Add(std::string_view key, std::string_view text, size_t force = 0) noexcept {
    Key(key);
    String(text, force);
  }
  template <std::integral T>
  void Add(std::string_view key, T number) noexcept {
    static_assert(!std::same_as<T, bool> && !std::same_as<T, char>);
    Key(key);
    Number(number);
  }
  void AddTrue(std::string_view key) noexcept {
    Key(key);
    Put("true");
  }
  // A number as a string: for 64-bit values that JSON readers would round.
  void AddQuoted(std::string_view key, uint64_t number) noexcept {
    Key(key);
    Put('"');
    Number(number);
    Put('"');
  }
  // Lower-case digits, two a byte, in memory order.
  void AddHex(std::string_view key, std::span<const uint8_t> bytes) noexcept {
    Key(key);
    Put('"');
    for (const uint8_t byte : bytes) {
      Put(kDigits[byte >> 4]);
      Put(kDigits[byte & 15]);
    }
    Put('"');
  }
  void Item(std::string_view text) noexcept {
    Comma();
    String(text);
  }
  // "0x1f" as an item of an array.
  void HexItem(uint64_t number) noexcept {
    Comma();
    Put("\"0x");
    char digits[16];
    const auto end = std::to_chars(digits, digits + sizeof(digits), number, 16).ptr;
    Put({digits, static_cast<size_t>(end - digits)});
    Put('"');
  }

  // Ends the outermost object and the line; returns the line's size with its newline.
  [[nodiscard]] size_t End() noexcept {
    Put('}');
    Put('\n');
    return size_;
  }

 private:
  static constexpr char kDigits[] = "0123456789abcdef";

  void Put(char c) noexcept {
    OARLOCK_CHECK(size_ < out_.size(), "a line of more than %zu bytes", out_.size());
    out_[size_++] = c;
  }
  void Put(std::string_view text) noexcept {
    OARLOCK_CHECK(text.size() <= out_.size() - size_, "a line of more than %zu bytes", out_.size());
    std::memcpy(out_.data() + size_, text.data(), text.size());
    size_ += text.size();
  }
  void Comma() noexcept {
    if (!first_) Put(',');
    first_ = false;
  }
  void Key(std::string_view key) noexcept {
    Comma();
    Put('"');
    Put(key);
    Put("\":");
  }
  template <std::integral T>
  void Number(T number) noexcept {
    char digits[24];
    const auto end = std::to_chars(digits, digits + sizeof(digits), number).ptr;
    Put({digits, static_cast<size_t>(end - digits)});
  }
  void String(std::string_view text, size_t force = 0) noexcept {
    Put('"');
    for (; force > 0 && !text.empty(); --force) {
      PutEscaped(text.front());
      text.remove_prefix(1);
    }
    while (!text.empty()) {
      // Most texts are one run of ordinary characters.
      size_t run = 0;
      while (run < text.size() && kOrdinary[static_cast<uint8_t>(text[run])]) ++run;
      Put(text.substr(0, run));
      text.remove_prefix(run);
      if (text.empty()) break;
      const size_t size = PlainCharacter(text);
      if (text.front() == '"')
        Put("\\\"");
      else if (size > 0)
        Put(text.substr(0, size));
      else
        PutEscaped(text.front());
      text.remove_prefix(size == 0 ? 1 : size);
    }
    Put('"');
  }
  void PutEscaped(char c) noexcept {
    const auto byte = static_cast<uint8_t>(c);
    Put("\\\\x");
    Put(kDigits[byte >> 4]);
    Put(kDigits[byte & 15]);
  }

  // Printable ASCII that means nothing to JSON or to us.
  static constexpr std::array<bool, 256> kOrdinary = [] {
    std::array<bool, 256> table{};
    for (size_t c = 0x20; c < 0x7f; ++c) table[c] = c != '"' && c != '\\';
    return table;
  }();

  std::span<char> out_;
  size_t size_ = 0;
  bool first_ = true;
};

}  // namespace oarlock::audit
