// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

// The 64 bits that come back with a completion: a kind, a generation and an index, or a kind and a pointer. The generation
// makes a completion that arrives after its slot was given to another recognisable.
namespace oarlock::supervisor {

enum class TokenKind : uint8_t {
  kNone,           // a completion that nobody waits for
  // of a shard's own operations: (index, generation)
  kListener,       // a session's poll
  kConnect, kPoll, kCancel,
  kRecorded,       // the writer's acknowledgement for a call
  kRecordFree,     // ... for a record that nobody waits for
  // posted between threads: a pointer
  kAdmit,          // to a shard: NewSession*
  kStop,           // to any loop
  kAdmitted,       // from a shard: NewSession*, decided
  kSessionEnded,   // from a shard: EndedSession*
  kEndSession,     // to a shard: end the session with this index and generation
  kMoved,          // from a shard: MovedSession*, to go to another
  kAdopt,          // to a shard: MovedSession*
  kAdopted,        // from a shard: MovedSession*, taken or not
  kClose,          // to the closer: a descriptor number
  kReactor,        // an operation of the reactor: its number
};

struct Token {
  static constexpr unsigned kIndexBits = 24, kGenerationBits = 32;

  [[nodiscard]] static constexpr uint64_t Make(TokenKind kind, uint64_t payload) noexcept {
    return static_cast<uint64_t>(kind) << 56 | (payload & 0x00ff'ffff'ffff'ffffULL);
  }
  [[nodiscard]] static constexpr uint64_t Slot(TokenKind kind, uint32_t index, uint32_t generation) noexcept {
    return Make(kind, static_cast<uint64_t>(generation) << kIndexBits | (index & ((1U << kIndexBits) - 1)));
  }
  [[nodiscard]] static uint64_t Pointer(TokenKind kind, const void* pointer) noexcept {
    return Make(kind, reinterpret_cast<uint64_t>(pointer));
  }

  [[nodiscard]] static constexpr TokenKind KindOf(uint64_t token) noexcept {
    return static_cast<TokenKind>(token >> 56);
  }
  [[nodiscard]] static constexpr uint64_t PayloadOf(uint64_t token) noexcept {
    return token & 0x00ff'ffff'ffff'ffffULL;
  }
  [[nodiscard]] static constexpr uint32_t IndexOf(uint64_t token) noexcept {
    return static_cast<uint32_t>(token & ((1U << kIndexBits) - 1));
  }
  [[nodiscard]] static constexpr uint32_t GenerationOf(uint64_t token) noexcept {
    return static_cast<uint32_t>(PayloadOf(token) >> kIndexBits);
  }
  template <typename T>
  [[nodiscard]] static T* PointerOf(uint64_t token) noexcept {
    return reinterpret_cast<T*>(PayloadOf(token));  // NOLINT(performance-no-int-to-ptr): made by Pointer()
  }
};

}  // namespace oarlock::supervisor
