// SPDX-License-Identifier: Apache-2.0
// Policies: any bytes. What parses has no findings, and comes back from its own text unchanged.
#include <string>

#include "notif/base/text.h"
#include "policy/policy.h"
#include "tests/fuzz/fuzz.h"

using namespace oarlock;  // NOLINT(google-build-using-namespace)

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::Input input(data, size);
  // A first byte that no policy begins with, so that a policy file is an input as it stands.
  const bool from_environment = size > 0 && data[0] == 0xff;
  if (from_environment) (void)input.Take<uint8_t>();
  const auto parsed = policy::Parse(input.rest(), from_environment);
  const auto problems = policy::Lint(input.rest(), from_environment);
  OARLOCK_CHECK(problems.size() <= policy::kMaxProblems, "%zu", problems.size());
  OARLOCK_CHECK(parsed.has_value() == problems.empty(), "%zu problems", problems.size());
  for (const policy::Problem& problem : problems) {
    const std::string line = problem.Line();
    OARLOCK_CHECK(IsPrintable(line) && line.size() < 4096, "%zu bytes", line.size());
  }
  if (!parsed) {
    OARLOCK_CHECK(parsed.error() == problems.front(), "%s and %s", parsed.error().Line().c_str(), problems.front().Line().c_str());
    return 0;
  }
  const std::string text = policy::Emit(*parsed);
  const auto again = policy::Parse(text);
  OARLOCK_CHECK(again.has_value(), "%s of %s", again.error().Line().c_str(), text.c_str());
  OARLOCK_CHECK(*again == *parsed, "%s", text.c_str());
  OARLOCK_CHECK(policy::Emit(*again) == text, "%s", text.c_str());
  for (const policy::Warning& warning : policy::Warnings(*parsed)) OARLOCK_CHECK(IsPrintable(warning.text), "%s", warning.pointer.c_str());

  // The grant is what the text says, and no more.
  const Grant grant = policy::ToGrant(*parsed, parsed->broker_socket ? "/run/resolved.sock" : "");
  OARLOCK_CHECK(grant.net == parsed->net && grant.has_broker() == parsed->broker_socket.has_value(), "%s", text.c_str());
  OARLOCK_CHECK(!grant.has_proxy() || (parsed->proxy_port && grant.proxy_port == *parsed->proxy_port), "%s", text.c_str());
  return 0;
}
