// SPDX-License-Identifier: Apache-2.0
// What two parts of Oarlock say to each other: any bytes from a peer. What is understood comes back from its own text unchanged.
#include "notif/wire.h"

#include "notif/base/text.h"
#include "notif/json.h"
#include "tests/fuzz/fuzz.h"

using namespace oarlock;  // NOLINT(google-build-using-namespace)

namespace {

// It goes into an answer of one line.
void CheckError(const Error& error) { OARLOCK_CHECK(error.code == EPROTO && IsPrintable(error.Message()), "%d", error.code); }

void CheckAdmission(std::string_view text) {
  const auto first = wire::Decode(text);
  if (!first) return CheckError(first.error());
  OARLOCK_CHECK(first->fds.size() <= wire::kMaxDescriptors, "%zu", first->fds.size());
  if (!first->grant_name.empty()) return;  // a runtime's: not ours to write
  OARLOCK_CHECK(IsPrintable(first->module) && IsPrintable(first->kind), "labels");
  const Grant& a = first->grant;
  OARLOCK_CHECK(a.net == NetMode::kNone || a.net == NetMode::kEgressAllowlist, "net %d", static_cast<int>(a.net));
  OARLOCK_CHECK((a.net == NetMode::kEgressAllowlist) == (a.proxy_port != 0), "port %d", a.proxy_port);
  OARLOCK_CHECK(a.broker_resolved.size() <= wire::kMaxBrokerPath && a.has_broker() == !a.broker_name.empty(), "a broker");
  const auto second = wire::Decode(wire::Encode(*first));
  OARLOCK_CHECK(second.has_value(), "%s", second.error().Message().c_str());
  const Grant& b = second->grant;
  OARLOCK_CHECK(first->module == second->module && first->kind == second->kind && first->policy_json == second->policy_json &&
                    first->policy_sha256 == second->policy_sha256 && first->filter == second->filter && first->probe == second->probe &&
                    first->pid == second->pid && first->fds == second->fds,
                "%s", second->policy_json.c_str());
  OARLOCK_CHECK(a.net == b.net && a.proxy_address == b.proxy_address && a.proxy_port == b.proxy_port && a.broker_name == b.broker_name &&
                    a.broker_resolved == b.broker_resolved && a.netns_cookie == b.netns_cookie && a.check_netns == b.check_netns &&
                    a.refused_tcp_error == b.refused_tcp_error && a.audit_approvals == b.audit_approvals && a.broker_identity == b.broker_identity,
                "%s", second->policy_json.c_str());
}

void CheckAnswer(std::string_view text) {
  const auto first = wire::DecodeAnswer(text);
  if (!first) return CheckError(first.error());
  std::string line = wire::Encode(*first);
  OARLOCK_CHECK(line.ends_with('\n') && line.find('\n') == line.size() - 1, "%s", line.c_str());
  line.pop_back();
  const auto second = wire::DecodeAnswer(line);
  OARLOCK_CHECK(second && second->ok == first->ok, "%s", line.c_str());
  OARLOCK_CHECK(first->ok ? second->session == first->session : second->code == first->code && second->error == first->error, "%s", line.c_str());
}

void CheckPrepared(std::string_view text) {
  const auto first = wire::DecodePrepared(text);
  if (!first) return CheckError(first.error());
  std::string line = wire::Encode(*first);
  line.pop_back();
  const auto second = wire::DecodePrepared(line);
  OARLOCK_CHECK(second && second->cgroup == first->cgroup, "%s", line.c_str());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  CheckAdmission(text);
  CheckAnswer(text);
  CheckPrepared(text);
  return 0;
}
