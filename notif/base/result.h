// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cerrno>
#include <expected>
#include <string>
#include <utility>

namespace oarlock {

// What the system refused: which operation, on what, with which errno, and where in our source.
//
// Holds no heap memory, so that it can be made on the notification path and after fork. Never logged where it is
// made; logged or counted once, where it is handled. What a *caller* did wrong is not an Error but a Decision.
struct Error {
  int code = 0;               // an errno value, > 0
  const char* operation = ""; // a literal: the system call or step
  char detail[160] = {};      // NUL-terminated, cut at the end where it is longer
  const char* file = "";
  int line = 0;

  // "open '/x': Permission denied (EACCES)". For people; not for the hot path.
  [[nodiscard]] std::string Message() const;
};

template <typename T>
using Result = std::expected<T, Error>;
using Status = Result<void>;

// Makes the failure value: `return Fail("open", errno, "'%s'", path);`. `format` is as for printf.
[[nodiscard]] std::unexpected<Error> Fail(const char* operation, int code, const char* file, int line,
                                          const char* format = nullptr, ...) noexcept
    __attribute__((format(printf, 5, 6)));

// "EACCES" for 13; "errno 4095" style text for what has no name. The pointer is to static or thread storage.
[[nodiscard]] const char* ErrnoName(int code) noexcept;

}  // namespace oarlock

#define OARLOCK_FAIL(operation, code, ...) \
  ::oarlock::Fail(operation, code, __builtin_FILE(), __builtin_LINE() __VA_OPT__(, ) __VA_ARGS__)

// Propagates a failure, or yields the value: `auto fd = OARLOCK_TRY(Open(path));` (a GNU statement expression,
// since libstdc++ 12 has std::expected without its monadic members).
#define OARLOCK_TRY(expression)                                                      \
  ({                                                                                 \
    auto oarlock_result = (expression);                                              \
    if (!oarlock_result) return std::unexpected(std::move(oarlock_result).error());  \
    std::move(oarlock_result).value();                                               \
  })
#define OARLOCK_TRY_VOID(expression)                                                             \
  do {                                                                                           \
    if (auto oarlock_status = (expression); !oarlock_status)                                     \
      return std::unexpected(std::move(oarlock_status).error());                                 \
  } while (false)
