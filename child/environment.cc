// SPDX-License-Identifier: Apache-2.0
#include "child/environment.h"

#include <algorithm>
#include <string_view>

namespace oarlock::child {
namespace {

constexpr std::string_view kProxyNames[] = {"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY",
                                            "http_proxy", "https_proxy", "all_proxy"};
constexpr std::string_view kDirectNames[] = {"NO_PROXY", "no_proxy"};

bool IsLaunchers(std::string_view name) {
  return name == "OARBANK_CONFINED" || name == "MOAT_SANDBOX_POLICY" || name.starts_with("OARLOCK_");
}

std::string_view NameOf(std::string_view entry) { return entry.substr(0, entry.find('=')); }

}  // namespace

std::vector<std::string> MakeEnvironment(const policy::Policy& policy, char* const* inherited) {
  std::vector<std::string> result;
  const auto set = [&](std::string_view name, std::string_view value) {
    std::string entry = std::string(name) + "=" + std::string(value);
    const auto same = std::ranges::find(result, name, [](const std::string& other) { return NameOf(other); });
    if (same != result.end()) *same = std::move(entry);
    else result.push_back(std::move(entry));
  };
  for (char* const* at = inherited; *at != nullptr; ++at) {
    const std::string_view entry(*at);
    const std::string_view name = NameOf(entry);
    if (IsLaunchers(name) || entry.size() == name.size()) continue;
    if (policy.env.keep && std::ranges::find(*policy.env.keep, name) == policy.env.keep->end()) continue;
    set(name, entry.substr(name.size() + 1));
  }
  if (policy.net == NetMode::kEgressAllowlist && policy.proxy_port) {
    const bool v6 = policy.proxy_addr == ProxyAddress::kLoopback6;
    const std::string url = std::string("http://") + (v6 ? "[::1]" : "127.0.0.1") + ":" + std::to_string(*policy.proxy_port);
    for (const std::string_view name : kProxyNames) set(name, url);
    // Node's fetch looks at the variables above only when told to (22.21, 24 and later).
    set("NODE_USE_ENV_PROXY", "1");
    std::erase_if(result, [](const std::string& entry) { return std::ranges::find(kDirectNames, NameOf(entry)) != std::end(kDirectNames); });
  }
  for (const auto& [name, value] : policy.env.set) set(name, value);
  return result;
}

}  // namespace oarlock::child
