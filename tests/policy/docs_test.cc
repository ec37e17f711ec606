// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "policy/names.h"
#include "policy/policy.h"

// docs/POLICY.md against the parser: each way round, since a field that is only documented is a promise
// nobody keeps.
namespace oarlock::policy {
namespace {

std::string Read() {
  std::ifstream in(OARLOCK_SOURCE_DIR "/docs/POLICY.md");
  EXPECT_TRUE(in);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

struct DocumentedField {
  std::string type;
  bool built;
  bool null;
};

// The rows of the field tables: | `name` | type | default | built | what it does |
std::map<std::string, DocumentedField> DocumentedFields(const std::string& text) {
  std::map<std::string, DocumentedField> fields;
  std::istringstream lines(text);
  static const std::regex row(R"(^\| `([^`]+)` \| ([^|]+) \| ([^|]+) \| (yes|not yet) \| .+ \|$)");
  for (std::string line; std::getline(lines, line);) {
    std::smatch match;
    if (!std::regex_match(line, match, row)) continue;
    const bool null = match[2].str().find("null") != std::string::npos;
    EXPECT_TRUE(fields.emplace(match[1], DocumentedField{match[2], match[4] == "yes", null}).second)
        << match[1];
  }
  return fields;
}

TEST(PolicyDocs, EveryFieldIsDocumentedAndTheReverse) {
  const auto documented = DocumentedFields(Read());
  std::set<std::string> known;
  for (const FieldInfo& field : Fields()) {
    const std::string name(field.name);
    known.insert(name);
    const auto at = documented.find(name);
    ASSERT_NE(at, documented.end()) << "docs/POLICY.md lacks a row for " << name;
    EXPECT_EQ(at->second.built, field.built) << name;
    EXPECT_EQ(at->second.null, field.null_is_absent) << name;
  }
  for (const auto& [name, field] : documented)
    EXPECT_TRUE(known.contains(name)) << "docs/POLICY.md documents a field that no policy can hold: " << name;
}

TEST(PolicyDocs, EveryCodeAndWordIsDocumented) {
  const std::string text = Read();
  const auto expect = [&](std::string_view word) {
    EXPECT_NE(text.find("`" + std::string(word) + "`"), std::string::npos)
        << "docs/POLICY.md lacks `" << word << "`";
  };
  for (auto code = static_cast<unsigned>(Code::kRead); code <= static_cast<unsigned>(Code::kKUnsupported);
       ++code)
    expect(Name(static_cast<Code>(code)));
  for (const std::string_view capability : Capabilities()) expect(capability);
  for (const auto& right : kRights) expect(right.name);
}

// What a reader copies must work.
TEST(PolicyDocs, TheExamplesParse) {
  const std::string text = Read();
  static const std::regex fence("```json\n([^`]*)```");
  int examples = 0;
  for (auto it = std::sregex_iterator(text.begin(), text.end(), fence); it != std::sregex_iterator(); ++it) {
    const std::string example = (*it)[1];
    for (const Problem& problem : Lint(example)) ADD_FAILURE() << problem.Line();
    ++examples;
  }
  EXPECT_GE(examples, 2);
}

}  // namespace
}  // namespace oarlock::policy
