// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "audit/limits.h"

// Bytes that a sandbox chose (paths, process names, abstract socket names) as text: valid UTF-8 stays as it
// is; a backslash and every byte of what cannot be shown safely becomes `\xNN`. "Cannot be shown" is: bytes
// that are not UTF-8 (overlong forms, surrogates), control characters (C0, DEL, C1), line and paragraph
// separators, and all format characters (bidi overrides, zero-width characters, tags), since with them one
// name can be made to look like another, or a line like two. Every backslash of the result starts an escape,
// so Unescape gives back exactly the bytes.
namespace oarlock::audit {

// The size (1 to 4) of the character at the start of `bytes` if it stays as it is, or 0 if its first byte is
// escaped.
[[nodiscard]] size_t PlainCharacter(std::string_view bytes) noexcept;

[[nodiscard]] std::string Escape(std::string_view bytes);
// A backslash that does not start `\xNN` stands for itself, so that any text has a meaning.
[[nodiscard]] std::string Unescape(std::string_view text);

// For terminals: as Escape, but a backslash stays, so that what the log has escaped already reads the same.
[[nodiscard]] std::string ForTerminal(std::string_view text);

}  // namespace oarlock::audit
