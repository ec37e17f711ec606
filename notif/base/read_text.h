// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

#include "notif/base/result.h"

namespace oarlock {

// All of a file, such as those of /proc, which have no size. Nothing half: a failure in the middle is a failure, EINTR is retried,
// and more than `limit` bytes are EFBIG. Not a stream of the C++ library: those say nothing of why, and start its locales, which
// end the process where a call of theirs fails.
[[nodiscard]] Result<std::string> ReadText(const char* path, size_t limit);

}  // namespace oarlock
