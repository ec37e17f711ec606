// SPDX-License-Identifier: Apache-2.0
#include "notif/base/sha256.h"

#include <openssl/sha.h>

#include <new>
#include <type_traits>

#include "notif/base/check.h"
#include "notif/base/text.h"

namespace oarlock {
namespace {

SHA256_CTX* Context(std::array<std::byte, 112>& state) noexcept {
  return std::launder(reinterpret_cast<SHA256_CTX*>(state.data()));
}

}  // namespace

Sha256::Sha256() noexcept {
  static_assert(sizeof(SHA256_CTX) <= sizeof(state_) && alignof(SHA256_CTX) <= 8);
  static_assert(std::is_trivially_copyable_v<SHA256_CTX>, "copying the bytes copies the state");
  OARLOCK_CHECK(SHA256_Init(::new (static_cast<void*>(state_.data())) SHA256_CTX) == 1);
}

void Sha256::Update(std::span<const uint8_t> bytes) noexcept {
  OARLOCK_CHECK(SHA256_Update(Context(state_), bytes.data(), bytes.size()) == 1);
}

void Sha256::Update(std::string_view bytes) noexcept {
  OARLOCK_CHECK(SHA256_Update(Context(state_), bytes.data(), bytes.size()) == 1);
}

Sha256::Digest Sha256::Final() noexcept {
  Digest digest;
  OARLOCK_CHECK(SHA256_Final(digest.data(), Context(state_)) == 1);
  return digest;
}

Sha256::Digest Sha256Of(std::string_view bytes) noexcept {
  Sha256 hash;
  hash.Update(bytes);
  return hash.Final();
}

std::string Sha256Hex(std::string_view bytes) { return Hex(Sha256Of(bytes)); }

}  // namespace oarlock
