// SPDX-License-Identifier: Apache-2.0
#include "cli/policy_command.h"

#include <ostream>

#include "notif/base/text.h"
#include "notif/json.h"
#include "policy/policy.h"

namespace oarlock::cli {
namespace {

constexpr int kSound = 0;
constexpr int kFindings = 1;
constexpr int kUnreadable = 70;

std::string Line(const std::string& file, const std::string& rest) {
  return Printable(file, 4096) + ": " + rest + "\n";
}

Json Finding(std::string_view code, const std::string& pointer, const std::string& text) {
  return {{"code", code}, {"pointer", pointer}, {"text", text}};
}

}  // namespace

int PolicyCheck(const std::string& file, bool json, std::ostream& out, std::ostream& err) {
  const auto content = policy::ReadFile(file);
  if (!content) {
    err << Line(file, content.error().Line());
    return kUnreadable;
  }
  const auto problems = policy::Lint(content->text);
  Json findings = Json::array();
  std::string lines;
  for (const policy::Problem& problem : problems) {
    findings.push_back(Finding(policy::Name(problem.code), problem.pointer, problem.text));
    lines += Line(file, problem.Line());
  }
  // Warnings are about what the policy does, and one with findings does nothing.
  if (const auto parsed = policy::Parse(content->text)) {
    for (const policy::Warning& warning : policy::Warnings(*parsed)) {
      findings.push_back(Finding("warning", warning.pointer, warning.text));
      lines += Line(file, "warning " + Printable(warning.pointer, 200) + ": " + warning.text);
    }
  }
  out << (json ? DumpJson(findings) + "\n" : lines);
  return problems.empty() ? kSound : kFindings;
}

int PolicyShow(const std::string& file, std::ostream& out, std::ostream& err) {
  const auto content = policy::ReadFile(file);
  if (!content) {
    err << Line(file, content.error().Line());
    return kUnreadable;
  }
  const auto parsed = policy::Parse(content->text);
  if (!parsed) {
    err << Line(file, parsed.error().Line());
    return kFindings;
  }
  // As ASCII: a variable's value may hold what a terminal would obey.
  out << Json::parse(policy::Emit(*parsed)).dump(-1, ' ', true) << '\n';
  return kSound;
}

}  // namespace oarlock::cli
