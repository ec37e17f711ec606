// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

// The form of host names, allow-list entries and HTTP rules. Pure; no name is ever resolved here.
namespace oarlock::policy {

// Why `host` is no host name that an allow-list may hold (an IP address in any spelling that a resolver
// takes, a stray character, too long), or nothing. `wildcard`: a leading "*." is allowed.
[[nodiscard]] std::optional<std::string> HostProblem(std::string_view host, bool wildcard);

// "host[:port]" or "*.host[:port]".
[[nodiscard]] std::optional<std::string> AllowEntryProblem(std::string_view entry);

// Whether some entry of a sound `net_allow` covers `host` (which may itself be "*.name"), whatever its port.
// "*.name" covers the names below `name`, not `name`.
[[nodiscard]] bool IsAllowed(std::string_view host, std::span<const std::string> net_allow);

// "allow|deny METHOD host/path-glob" in parts; views into the rule.
struct HttpRule {
  bool allow = false;
  std::string_view method, host, path;
};
// The parts, or why it is none.
[[nodiscard]] std::optional<std::string> ParseHttpRule(std::string_view text, HttpRule* rule);

// RFC 9110's token: what a header's name is made of.
[[nodiscard]] bool IsToken(std::string_view text) noexcept;

}  // namespace oarlock::policy
