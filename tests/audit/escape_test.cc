// SPDX-License-Identifier: Apache-2.0
#include "audit/escape.h"

#include <gtest/gtest.h>

#include <random>

namespace oarlock::audit {
namespace {

struct Case {
  const char* name;
  std::string bytes;
  std::string text;
};

class EscapeTest : public ::testing::TestWithParam<Case> {};

TEST_P(EscapeTest, IsReadableAndReversible) {
  EXPECT_EQ(Escape(GetParam().bytes), GetParam().text);
  EXPECT_EQ(Unescape(GetParam().text), GetParam().bytes);
}

using namespace std::string_literals;
INSTANTIATE_TEST_SUITE_P(
    Cases, EscapeTest,
    ::testing::Values(
        Case{"plain", "/usr/bin/curl", "/usr/bin/curl"}, Case{"space", "a b", "a b"},
        Case{"quote", "a\"b", "a\"b"},  // JSON's business, not ours
        Case{"newline", "a\nb", "a\\x0ab"}, Case{"nul", "a\0b"s, "a\\x00b"},
        Case{"escape", "\x1b[31m", "\\x1b[31m"}, Case{"del", "\x7f", "\\x7f"},
        Case{"backslash", "a\\b", "a\\x5cb"}, Case{"what_looks_escaped", "\\x41", "\\x5cx41"},
        // NOLINTNEXTLINE: bytes, not text
        Case{"umlaut", "\xc3\xa4", "\xc3\xa4"}, Case{"cjk", "\xe6\xbc\xa2", "\xe6\xbc\xa2"},
        Case{"emoji", "\xf0\x9f\x9a\xa3", "\xf0\x9f\x9a\xa3"}, Case{"no_utf8", "\xff\xfe", "\\xff\\xfe"},
        Case{"cut_short", "\xe6\xbc", "\\xe6\\xbc"}, Case{"lone_continuation", "\x80", "\\x80"},
        Case{"overlong_slash", "\xc0\xaf", "\\xc0\\xaf"},
        Case{"overlong_three", "\xe0\x80\xaf", "\\xe0\\x80\\xaf"},
        Case{"surrogate", "\xed\xa0\x80", "\\xed\\xa0\\x80"},
        Case{"beyond_unicode", "\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80"},
        Case{"c1", "\xc2\x9b", "\\xc2\\x9b"}, Case{"rtl_override", "\xe2\x80\xae", "\\xe2\\x80\\xae"},
        Case{"isolate", "\xe2\x81\xa6", "\\xe2\\x81\\xa6"},
        Case{"line_separator", "\xe2\x80\xa8", "\\xe2\\x80\\xa8"},
        Case{"paragraph_separator", "\xe2\x80\xa9", "\\xe2\\x80\\xa9"},
        Case{"zero_width", "\xe2\x80\x8b", "\\xe2\\x80\\x8b"}, Case{"bom", "\xef\xbb\xbf", "\\xef\\xbb\\xbf"},
        Case{"tag", "\xf3\xa0\x81\x81", "\\xf3\\xa0\\x81\\x81"}),
    [](const auto& each) { return each.param.name; });

TEST(Escape, AnyBytesComeBack) {
  std::mt19937 random(7);
  for (int i = 0; i < 20'000; ++i) {
    std::string bytes(random() % 40, '\0');
    for (char& c : bytes)
      c = static_cast<char>(random() % 3 == 0 ? "\\x0\"\n\xe2\x80\xae"[random() % 8] : random());
    const std::string text = Escape(bytes);
    ASSERT_EQ(Unescape(text), bytes);
    ASSERT_EQ(Escape(Unescape(text)), text);
    for (const char c : text) ASSERT_TRUE(static_cast<unsigned char>(c) >= 0x20 && c != 0x7f);
  }
}

TEST(Escape, TextThatWasNeverEscapedHasAMeaning) {
  EXPECT_EQ(Unescape("a\\b"), "a\\b");
  EXPECT_EQ(Unescape("\\x4"), "\\x4");
  EXPECT_EQ(Unescape("\\xZZ"), "\\xZZ");
  EXPECT_EQ(Unescape("\\"), "\\");
}

TEST(ForTerminal, KeepsTheLogsOwnEscapes) {
  EXPECT_EQ(ForTerminal("a\\x0ab"), "a\\x0ab");
  EXPECT_EQ(ForTerminal("a\x1b[2J\xe2\x80\xae"), "a\\x1b[2J\\xe2\\x80\\xae");
}

}  // namespace
}  // namespace oarlock::audit
