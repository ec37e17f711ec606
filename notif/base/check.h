// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace oarlock {
[[noreturn]] void CheckFailed(const char* condition, const char* file, int line, const char* format = nullptr,
                              ...) noexcept __attribute__((format(printf, 4, 5)));
}

// For our own bugs only: a broken invariant stops the process with its values, since a supervisor that goes on
// with wrong state might approve what it should refuse, while a stopped one answers ENOSYS (fails closed).
#define OARLOCK_CHECK(condition, ...)                                                                       \
  do {                                                                                                      \
    if (!(condition)) [[unlikely]]                                                                          \
      ::oarlock::CheckFailed(#condition, __builtin_FILE(), __builtin_LINE() __VA_OPT__(, ) __VA_ARGS__);    \
  } while (false)
