// SPDX-License-Identifier: Apache-2.0
#include "notif/grant.h"

namespace oarlock {

const char* Name(NetMode mode) noexcept {
  switch (mode) {
    case NetMode::kNone: return "none";
    case NetMode::kEgressAllowlist: return "egress-allowlist";
    case NetMode::kEgressAny: return "egress-any";
    case NetMode::kHost: return "host";
  }
  return "none";
}

const char* Text(ProxyAddress address) noexcept {
  return address == ProxyAddress::kLoopback4 ? "127.0.0.1" : "::1";
}

}  // namespace oarlock
