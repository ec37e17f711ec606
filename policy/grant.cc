// SPDX-License-Identifier: Apache-2.0
#include "policy/policy.h"

namespace oarlock::policy {

Grant ToGrant(const Policy& policy, std::string_view broker_resolved) {
  Grant grant;
  grant.net = policy.net;
  grant.proxy_address = policy.proxy_addr;
  grant.proxy_port = policy.proxy_port.value_or(0);
  grant.broker_name = policy.broker_socket.value_or("");
  grant.broker_resolved = broker_resolved;
  grant.refused_tcp_error = policy.refuse_tcp_error;
  grant.audit_approvals = policy.audit_approvals;
  grant.broker_identity = policy.broker_identity;
  grant.trace = policy.profile == Profile::kWriteAllowlist;
  return grant;
}

}  // namespace oarlock::policy
