// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <type_traits>

#include "notif/base/check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace oarlock::fuzz {

// The bytes of one input, taken from the front; zeros behind its end.
class Input {
 public:
  Input(const uint8_t* data, size_t size) : rest_(reinterpret_cast<const char*>(data), size) {}

  template <typename T>
  T Take() {
    static_assert(std::is_integral_v<T>);
    T value{};
    const size_t size = std::min(sizeof(value), rest_.size());
    if (size > 0) std::memcpy(&value, rest_.data(), size);
    rest_.remove_prefix(size);
    return value;
  }
  bool Flag() { return (Take<uint8_t>() & 1) != 0; }
  std::string_view Bytes(size_t wanted) {
    const std::string_view bytes = rest_.substr(0, wanted);
    rest_.remove_prefix(bytes.size());
    return bytes;
  }
  [[nodiscard]] std::string_view rest() const { return rest_; }

 private:
  std::string_view rest_;
};

}  // namespace oarlock::fuzz
