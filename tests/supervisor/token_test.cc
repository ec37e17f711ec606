// SPDX-License-Identifier: Apache-2.0
#include "supervisor/token.h"

#include <gtest/gtest.h>

#include <memory>
#include <random>

namespace oarlock::supervisor {
namespace {

constexpr TokenKind kKinds[] = {TokenKind::kNone,       TokenKind::kListener,     TokenKind::kConnect,
                                TokenKind::kPoll,       TokenKind::kCancel,       TokenKind::kRecorded,
                                TokenKind::kRecordFree, TokenKind::kAdmit,        TokenKind::kStop,
                                TokenKind::kAdmitted,   TokenKind::kSessionEnded, TokenKind::kEndSession,
                                TokenKind::kClose,      TokenKind::kReactor};

TEST(Token, KeepsKindIndexAndGenerationApart) {
  std::mt19937 random(1);
  for (const TokenKind kind : kKinds)
    for (int i = 0; i < 1000; ++i) {
      const uint32_t index = random() & 0xffffff, generation = random();
      const uint64_t token = Token::Slot(kind, index, generation);
      ASSERT_EQ(Token::KindOf(token), kind);
      ASSERT_EQ(Token::IndexOf(token), index);
      ASSERT_EQ(Token::GenerationOf(token), generation);
    }
}

TEST(Token, HoldsTheEdges) {
  constexpr uint32_t kIndex = (1U << Token::kIndexBits) - 1;
  constexpr uint64_t token = Token::Slot(TokenKind::kReactor, kIndex, UINT32_MAX);
  static_assert(Token::KindOf(token) == TokenKind::kReactor);
  static_assert(Token::IndexOf(token) == kIndex);
  static_assert(Token::GenerationOf(token) == UINT32_MAX);
  // One more does not run over into the generation.
  EXPECT_EQ(Token::GenerationOf(Token::Slot(TokenKind::kConnect, kIndex + 1, 7)), 7U);
  EXPECT_EQ(Token::KindOf(Token::Make(TokenKind::kClose, UINT64_MAX)), TokenKind::kClose);
  EXPECT_EQ(Token::PayloadOf(Token::Make(TokenKind::kClose, 0xff'0000'0000'0001ULL)), 0xff'0000'0000'0001ULL);
  // No kind's token is the ring's own mark for a failed post.
  for (const TokenKind kind : kKinds) EXPECT_NE(Token::Make(kind, UINT64_MAX), UINT64_MAX);
}

TEST(Token, AnotherGenerationIsAnotherToken) {
  const uint64_t old = Token::Slot(TokenKind::kConnect, 5, 1), now = Token::Slot(TokenKind::kConnect, 5, 2);
  EXPECT_NE(old, now);
  EXPECT_EQ(Token::IndexOf(old), Token::IndexOf(now));
  EXPECT_NE(Token::Slot(TokenKind::kConnect, 5, 1), Token::Slot(TokenKind::kPoll, 5, 1));
}

TEST(Token, CarriesPointers) {
  const auto on_heap = std::make_unique<int>(1);
  static int on_data = 2;
  int on_stack = 3;
  for (int* pointer : {on_heap.get(), &on_data, &on_stack})
    for (const TokenKind kind : {TokenKind::kAdmit, TokenKind::kSessionEnded, TokenKind::kRecordFree}) {
      const uint64_t token = Token::Pointer(kind, pointer);
      EXPECT_EQ(Token::KindOf(token), kind);
      EXPECT_EQ(Token::PointerOf<int>(token), pointer);
    }
}

}  // namespace
}  // namespace oarlock::supervisor
