// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "policy/policy.h"

namespace oarlock::policy {
namespace {

// What somebody copies must be sound, and nothing that its author may not have meant.
TEST(Examples, AreSoundWithoutAWarning) {
  size_t policies = 0;
  for (const auto& entry : std::filesystem::directory_iterator(OARLOCK_SOURCE_DIR "/examples")) {
    if (entry.path().extension() != ".json") continue;
    ++policies;
    std::ifstream file(entry.path());
    const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    for (const Problem& problem : Lint(text)) ADD_FAILURE() << entry.path() << ": " << problem.Line();
    const auto policy = Parse(text);
    if (!policy) continue;
    for (const Warning& warning : Warnings(*policy))
      ADD_FAILURE() << entry.path() << ": " << warning.pointer << ": " << warning.text;
  }
  EXPECT_GE(policies, 2U);
}

}  // namespace
}  // namespace oarlock::policy
