// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

// For .cc files only: this header brings in the JSON library, which costs half a second of compiling each time.
namespace oarlock {

using Json = nlohmann::json;

// Parses one JSON text strictly: valid UTF-8, no trailing bytes, no key twice in one object, at most 20 levels. Never throws.
// `problem` is set, and the result to be thrown away, where the text is refused.
[[nodiscard]] Json ParseStrictJson(std::string_view text, std::string* problem);

// One line. Bytes that are not UTF-8 become U+FFFD rather than an exception.
[[nodiscard]] std::string DumpJson(const Json& json);

}  // namespace oarlock
