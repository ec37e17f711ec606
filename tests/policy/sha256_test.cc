// SPDX-License-Identifier: Apache-2.0
#include "notif/base/sha256.h"

#include <gtest/gtest.h>

#include "notif/base/text.h"

namespace oarlock {
namespace {

// FIPS 180-2, appendix B, and the empty message.
TEST(Sha256, KnownAnswers) {
  EXPECT_EQ(Sha256Hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(Sha256Hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(Sha256Hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(Sha256Hex(std::string(1'000'000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, PiecesGiveTheSame) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += static_cast<char>(i * 7);
  const std::string whole = Sha256Hex(text);
  for (size_t step = 1; step <= 130; ++step) {
    Sha256 hash;
    for (size_t i = 0; i < text.size(); i += step) hash.Update(std::string_view(text).substr(i, step));
    EXPECT_EQ(Hex(hash.Final()), whole) << step;
  }
}

// A chain hashes its common part once and goes on from a copy.
TEST(Sha256, CopiesGoTheirOwnWays) {
  Sha256 first;
  first.Update(std::string_view("common"));
  Sha256 second = first;
  first.Update(std::string_view("1"));
  second.Update(std::string_view("2"));
  EXPECT_EQ(Hex(first.Final()), Sha256Hex("common1"));
  EXPECT_EQ(Hex(second.Final()), Sha256Hex("common2"));
}

}  // namespace
}  // namespace oarlock
