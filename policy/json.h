// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "policy/policy.h"

// Text -> tree, for the rest of this room only. The tree keeps what a policy's checks need and a common DOM
// forgets: where each value stands, whether a number was written as an integer, and keys that stand twice.
namespace oarlock::policy {

struct JsonValue {
  enum class Kind : uint8_t { kNull, kBool, kInteger, kReal, kString, kList, kObject };
  Kind kind = Kind::kNull;
  bool boolean = false;
  bool negative = false;   // of an integer
  bool huge = false;       // an integer outside 64 bits: `magnitude` says nothing
  bool duplicate = false;  // a member whose key stood before in the same object
  uint64_t magnitude = 0;
  double real = 0;               // of any number
  size_t position = 0;           // grows through the document; of a member: its key's
  std::string key;               // of a member
  std::string string;            // a string's value, a number's token where it is huge or real
  std::vector<JsonValue> items;  // of a list or an object

  // The first member of that name, or null.
  [[nodiscard]] const JsonValue* Find(std::string_view name) const noexcept;
};

struct JsonDocument {
  JsonValue root;
  // P_READ (too long), P_JSON, P_DUPKEY, P_RANGE for a number that no double can hold; by place. `root` is
  // whole only if this is empty, or holds P_DUPKEY alone.
  std::vector<Problem> problems;
};

// Strict RFC 8259: UTF-8 without a byte order mark, one value, nesting at most kMaxDepth, no NUL byte.
[[nodiscard]] JsonDocument ReadJson(std::string_view text);

// One more step of a JSON pointer: "/a~1b" for "a/b".
[[nodiscard]] std::string PointerStep(std::string_view key);

// A JSON string, with its quotes.
[[nodiscard]] std::string JsonQuote(std::string_view text);

}  // namespace oarlock::policy
