// SPDX-License-Identifier: Apache-2.0
#include "notif/base/check.h"

#include <unistd.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>

namespace oarlock {

void CheckFailed(const char* condition, const char* file, int line, const char* format, ...) noexcept {
  char text[512];
  int length = std::snprintf(text, sizeof(text), "oarlock: bug at %s:%d: %s", file, line, condition);
  if (format != nullptr && length > 0 && length < static_cast<int>(sizeof(text)) - 3) {
    text[length++] = ' ';
    va_list arguments;
    va_start(arguments, format);
    const int more = std::vsnprintf(text + length, sizeof(text) - static_cast<size_t>(length), format, arguments);
    va_end(arguments);
    if (more > 0) length += more;
  }
  length = std::clamp(length, 0, static_cast<int>(sizeof(text)) - 2);
  text[length++] = '\n';
  (void)!::write(STDERR_FILENO, text, static_cast<size_t>(length));
  std::abort();
}

}  // namespace oarlock
