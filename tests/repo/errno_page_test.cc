// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <regex>
#include <set>
#include <string>

#include "notif/refusals.h"

// docs/ERRNO.md against the table in notif/refusals.cc, each way round: a row that only the page has is a
// promise that nobody keeps, one that only the table has surprises somebody.
namespace oarlock {
namespace {

// "EACCES DENY TCP_NOT_PROXY": what makes a row of the contract.
std::string RowOf(Refusal refusal) {
  const RefusalRow& row = Describe(refusal);
  return std::string(strerrorname_np(row.error)) + " " + std::string(Name(row.kind)) + " " +
         std::string(Name(row.reason));
}

// The rows of the page: | what | `ERRNO`... | KIND `REASON` | why |. A cell may name more errnos behind the
// first.
std::multiset<std::string> RowsOfPage() {
  std::ifstream page(OARLOCK_SOURCE_DIR "/docs/ERRNO.md");
  EXPECT_TRUE(page.good());
  static const std::regex row(R"(^\| [^|]+ \| `(E[A-Z0-9]+)`[^|]* \| (DENY|PROBE) `([A-Z_]+)` \| [^|]+ \|$)");
  std::multiset<std::string> rows;
  for (std::string line; std::getline(page, line);) {
    std::smatch match;
    if (std::regex_match(line, match, row))
      rows.insert(match.str(1) + " " + match.str(2) + " " + match.str(3));
    else
      EXPECT_EQ(line.find("| DENY `"), std::string::npos) << "a row of another form: " << line;
  }
  return rows;
}

std::multiset<std::string> RowsOfTable() {
  std::multiset<std::string> rows;
  for (auto i = static_cast<size_t>(Refusal::kNone) + 1; i < static_cast<size_t>(Refusal::kCount); ++i)
    rows.insert(RowOf(static_cast<Refusal>(i)));
  return rows;
}

TEST(ErrnoPage, HasARowForEachRefusalAndNoOther) { EXPECT_EQ(RowsOfPage(), RowsOfTable()); }

}  // namespace
}  // namespace oarlock
