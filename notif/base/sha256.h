// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace oarlock {

// SHA-256 of bytes that arrive in pieces. OpenSSL's low-level functions behind a value without heap memory:
// the EVP interface would read openssl.cnf (a file that the module's user may own) and costs a launch about a
// millisecond. Cannot fail. One thread at a time.
class Sha256 {
 public:
  using Digest = std::array<uint8_t, 32>;

  Sha256() noexcept;
  void Update(std::span<const uint8_t> bytes) noexcept;
  void Update(std::string_view bytes) noexcept;
  // The digest of all that came before. Once; the object is spent afterwards.
  [[nodiscard]] Digest Final() noexcept;

 private:
  // Room for SHA256_CTX, so that no OpenSSL header stands in ours; sha256.cc asserts that it fits.
  alignas(8) std::array<std::byte, 112> state_;
};

// The digest of one piece, and the same as 64 hex digits.
[[nodiscard]] Sha256::Digest Sha256Of(std::string_view bytes) noexcept;
[[nodiscard]] std::string Sha256Hex(std::string_view bytes);

}  // namespace oarlock
