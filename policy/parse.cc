// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "policy/reader.h"

namespace oarlock::policy {
namespace {

struct Outcome {
  Policy policy;  // sound if and only if `problems` is empty
  std::vector<Problem> problems;
};

Outcome Check(std::string_view text, bool from_environment) {
  JsonDocument document = ReadJson(text);
  Outcome outcome;
  outcome.problems = std::move(document.problems);
  const auto broken = [](const Problem& problem) { return problem.code != Code::kDupKey; };
  if (std::ranges::any_of(outcome.problems, broken)) return outcome;

  const At top{document.root, ""};
  Reader reader;
  reader.from_environment = from_environment;
  if (document.root.kind != JsonValue::Kind::kObject) {
    reader.WrongType(top, "a JSON object");
  } else {
    reader.Members(top, "");
    reader.Finish(document.root);
  }
  for (Found& found : reader.found) {
    // A policy of another version means other things by its fields: what else is wrong with it is not ours to
    // say.
    if (reader.found.front().stage == Stage::kVersion && found.stage != Stage::kVersion) break;
    outcome.problems.push_back(std::move(found.problem));
  }
  outcome.policy = std::move(reader.policy);
  return outcome;
}

}  // namespace

Checked<Policy> Parse(std::string_view text, bool from_environment) {
  Outcome outcome = Check(text, from_environment);
  if (!outcome.problems.empty()) return std::unexpected(std::move(outcome.problems.front()));
  return std::move(outcome.policy);
}

std::vector<Problem> Lint(std::string_view text, bool from_environment) {
  std::vector<Problem> problems = Check(text, from_environment).problems;
  if (problems.size() > kMaxProblems) problems.resize(kMaxProblems);
  return problems;
}

}  // namespace oarlock::policy
