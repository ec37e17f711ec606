// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "notif/json.h"
#include "tests/live/bad_input_support.h"
#include "tests/support/sandbox.h"

// The contract's statements, one test or more each; the names of the tests carry their ids (ids.txt).
namespace oarlock::test {

using Words = std::vector<std::string>;

inline std::string ContractProbe() { return OARLOCK_BINARY_DIR "/tests/bin/contract-probe"; }
inline Words WithProbe(Words words) {
  words.insert(words.begin(), ContractProbe());
  return words;
}
inline Outcome Inside(const Sandbox& sandbox, const Words& words) { return sandbox.Run(WithProbe(words)); }
inline Outcome Bare(const Sandbox& sandbox, const Words& words) { return sandbox.RunBare(WithProbe(words)); }

// What a module gets, and what the same program gets without a sandbox: a refusal that its twin gets too would prove nothing.
struct Row {
  std::string word, inside, bare;
};
inline void Compare(const Sandbox& sandbox, const std::vector<Row>& rows) {
  Words words;
  for (const Row& row : rows) words.push_back(row.word);
  const Outcome inside = Inside(sandbox, words);
  for (const Row& row : rows) EXPECT_EQ(ResultOf(inside, row.word), row.inside) << row.word << "\n" << inside.err;
  const Outcome bare = Bare(sandbox, words);
  for (const Row& row : rows) EXPECT_EQ(ResultOf(bare, row.word), row.bare) << "the twin: " << row.word;
}

inline Json Parsed(const std::string& text) {
  std::string problem;
  Json json = ParseStrictJson(text, &problem);
  EXPECT_EQ(problem, "") << text;
  return json;
}

// As root, and as somebody who has no privilege at all: the launcher's own user.
class EachUser : public ::testing::TestWithParam<uid_t> {};
#define OARLOCK_EACH_USER(suite) \
  INSTANTIATE_TEST_SUITE_P(Contract, suite, ::testing::Values(0U, 65534U), [](const auto& row) { return row.param == 0 ? "Root" : "Nobody"; })

// Changes that a directory may see, each by a name of its own; all of them can be done where nothing forbids it.
inline std::vector<std::string> Changes(const std::string& at) {
  return {"write," + at + "/new",
          "open," + at + "/f," + std::to_string(O_WRONLY),
          "open," + at + "/f," + std::to_string(O_RDWR),
          "truncate," + at + "/f,1",
          "open," + at + "/f," + std::to_string(O_WRONLY | O_TRUNC),
          "mkdir," + at + "/newdir",
          "symlink,f," + at + "/newlink",
          "link," + at + "/g," + at + "/newhard",
          "mkfifo," + at + "/newfifo",
          "bind," + at + "/newsocket",
          "rename," + at + "/g," + at + "/g2",
          "unlink," + at + "/f",
          "rmdir," + at + "/d"};
}

inline std::string Quoted(const std::vector<std::string>& paths) {
  std::string text;
  for (const std::string& path : paths) text += (text.empty() ? "\"" : ",\"") + path + "\"";
  return "[" + text + "]";
}

}  // namespace oarlock::test
