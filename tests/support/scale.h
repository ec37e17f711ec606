// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdlib>

namespace oarlock::test {

// `full` rounds at OARLOCK_SCALE=1 (scripts/nightly.sh); a tenth where it is not set. Never less than one.
[[nodiscard]] inline long Scaled(long full) {
  const char* text = std::getenv("OARLOCK_SCALE");
  const double scale = text != nullptr ? std::strtod(text, nullptr) : 0.1;
  return std::max(1L, static_cast<long>(static_cast<double>(full) * scale));
}

}  // namespace oarlock::test
