// SPDX-License-Identifier: Apache-2.0
#include "notif/base/result.h"

#include <cstdarg>
#include <cstdio>
#include <cstring>

namespace oarlock {

std::unexpected<Error> Fail(const char* operation, int code, const char* file, int line, const char* format,
                            ...) noexcept {
  Error error;
  error.code = code;
  error.operation = operation;
  error.file = file;
  error.line = line;
  if (format != nullptr) {
    va_list arguments;
    va_start(arguments, format);
    (void)std::vsnprintf(error.detail, sizeof(error.detail), format, arguments);
    va_end(arguments);
  }
  return std::unexpected(error);
}

const char* ErrnoName(int code) noexcept {
  if (const char* name = ::strerrorname_np(code); name != nullptr) return name;
  thread_local char text[24];
  (void)std::snprintf(text, sizeof(text), "errno %d", code);
  return text;
}

std::string Error::Message() const {
  std::string text = operation;
  if (detail[0] != '\0') {
    text += ' ';
    text += detail;
  }
  if (code != 0) {
    const char* description = ::strerrordesc_np(code);
    text += ": ";
    text += description != nullptr ? description : "unknown error";
    text += " (";
    text += ErrnoName(code);
    text += ')';
  }
  return text;
}

}  // namespace oarlock
