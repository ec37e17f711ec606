// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

#include "notif/calls.h"
#include "notif/filter/page.h"

namespace oarlock::filter {
namespace {

TEST(SyscallsPage, IsFresh) {
  std::ifstream file(OARLOCK_SOURCE_DIR "/docs/SYSCALLS.md");
  const std::string committed((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  ASSERT_FALSE(committed.empty());
  EXPECT_TRUE(committed == SyscallsPage()) << "docs/SYSCALLS.md is stale: build the target docs-syscalls";
}

TEST(SyscallsPage, NamesEveryCallOnceWithItsReason) {
  const std::string page = SyscallsPage();
  for (const CallRow& row : Calls()) {
    const std::string start = "| `" + std::string(row.name) + "` | ";
    const size_t first = page.find(start);
    ASSERT_NE(first, std::string::npos) << row.name;
    EXPECT_EQ(page.find(start, first + 1), std::string::npos) << row.name;
    EXPECT_NE(page.find(row.why, first), std::string::npos) << row.name;
  }
}

}  // namespace
}  // namespace oarlock::filter
