// SPDX-License-Identifier: Apache-2.0
#include "notif/base/ulid.h"

#include <sys/random.h>
#include <time.h>

#include "notif/base/check.h"

namespace oarlock {

Ulid::Ulid(uint64_t milliseconds, const std::array<uint8_t, 10>& random) noexcept {
  static constexpr char kAlphabet[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
  for (size_t i = 0; i < 10; ++i) text_[i] = kAlphabet[(milliseconds >> (5 * (9 - i))) & 31];
  uint32_t bits = 0;
  unsigned held = 0;
  size_t out = 10;
  for (const uint8_t byte : random) {
    bits = (bits << 8) | byte;
    for (held += 8; held >= 5; held -= 5) text_[out++] = kAlphabet[(bits >> (held - 5)) & 31];
  }
}

Ulid Ulid::Make() noexcept {
  timespec now{};
  (void)::clock_gettime(CLOCK_REALTIME, &now);
  std::array<uint8_t, 10> random{};
  OARLOCK_CHECK(::getrandom(random.data(), random.size(), 0) == static_cast<ssize_t>(random.size()));
  return Ulid(static_cast<uint64_t>(now.tv_sec) * 1000 + static_cast<uint64_t>(now.tv_nsec) / 1'000'000, random);
}

}  // namespace oarlock
