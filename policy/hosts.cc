// SPDX-License-Identifier: Apache-2.0
#include "policy/hosts.h"

#include <algorithm>

#include "notif/base/text.h"

namespace oarlock::policy {
namespace {

constexpr size_t kMaxHostBytes = 253;
constexpr size_t kMaxLabelBytes = 63;
constexpr size_t kMaxHttpPathBytes = 2048;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool IsHexDigit(char c) { return IsDigit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

// inet_aton and every URL parser take "127.1", "0x7f.1" and "2130706433" for addresses: a name whose last
// label is a number is never a host name.
bool IsNumericLabel(std::string_view label) {
  if (label.starts_with("0x") || label.starts_with("0X"))
    return std::ranges::all_of(label.substr(2), IsHexDigit);
  return std::ranges::all_of(label, IsDigit);
}

bool EqualFold(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return IsLetter(c) ? static_cast<char>(c | 0x20) : c; };
  return std::ranges::equal(a, b, {}, lower, lower);
}

bool IsBelow(std::string_view name, std::string_view parent) {
  return name.size() > parent.size() + 1 && name[name.size() - parent.size() - 1] == '.' &&
         EqualFold(name.substr(name.size() - parent.size()), parent);
}

std::string_view WithoutPort(std::string_view entry) { return entry.substr(0, entry.find(':')); }

}  // namespace

std::optional<std::string> HostProblem(std::string_view host, bool wildcard) {
  if (wildcard && host.starts_with("*.")) host.remove_prefix(2);
  if (host.empty()) return "the host name is empty";
  if (host.find('*') != std::string_view::npos)
    return wildcard ? "* stands only as a leading *. before a name" : "takes no wildcard";
  if (host.find('/') != std::string_view::npos)
    return "is neither a URL nor a network: write the host name alone";
  if (host.find_first_of("[]:") != std::string_view::npos)
    return "IP addresses are not accepted: write a host name";
  if (host.size() > kMaxHostBytes) return "the host name is longer than 253 bytes";
  std::string_view rest = host, label;
  while (true) {
    const size_t dot = rest.find('.');
    label = rest.substr(0, dot);
    if (label.empty()) return "has an empty label (two dots, or a dot at an end)";
    if (label.size() > kMaxLabelBytes) return "a label of the host name is longer than 63 bytes";
    if (label.starts_with('-') || label.ends_with('-')) return "a label may not start or end with a hyphen";
    for (const char c : label)
      if (!IsLetter(c) && !IsDigit(c) && c != '-' && c != '_')
        return "letters, digits, hyphens and dots only (international names in their xn-- form)";
    if (dot == std::string_view::npos) break;
    rest.remove_prefix(dot + 1);
  }
  if (IsNumericLabel(label)) return "IP addresses are not accepted: write a host name";
  return std::nullopt;
}

std::optional<std::string> AllowEntryProblem(std::string_view entry) {
  if (std::ranges::count(entry, ':') > 1 || entry.starts_with('['))
    return "IP addresses are not accepted: write a host name";
  if (const size_t colon = entry.find(':'); colon != std::string_view::npos) {
    const std::string_view port = entry.substr(colon + 1);
    uint64_t number = 0;
    if (port.starts_with('0') || !ParseNumber(port, 1, 65535, &number)) return "the port must be 1 to 65535";
  }
  return HostProblem(WithoutPort(entry), true);
}

bool IsAllowed(std::string_view host, std::span<const std::string> net_allow) {
  return std::ranges::any_of(net_allow, [&](std::string_view entry) {
    const std::string_view name = WithoutPort(entry);
    if (EqualFold(host, name)) return true;
    return name.starts_with("*.") && IsBelow(host, name.substr(2));
  });
}

std::optional<std::string> ParseHttpRule(std::string_view text, HttpRule* rule) {
  static constexpr std::string_view kForm = "must be \"allow METHOD host/path\" or \"deny METHOD host/path\"";
  const size_t first = text.find(' ');
  if (first == std::string_view::npos) return std::string(kForm);
  const size_t second = text.find(' ', first + 1);
  if (second == std::string_view::npos) return std::string(kForm);
  const std::string_view verdict = text.substr(0, first);
  rule->method = text.substr(first + 1, second - first - 1);
  const std::string_view target = text.substr(second + 1);
  const size_t slash = target.find('/');
  if ((verdict != "allow" && verdict != "deny") || slash == std::string_view::npos) return std::string(kForm);
  rule->allow = verdict == "allow";
  if (rule->method != "*" && (rule->method.empty() || !std::ranges::all_of(rule->method, [](char c) {
                                return c >= 'A' && c <= 'Z';
                              })))
    return "the method must be * or in capital letters, as GET";
  rule->host = target.substr(0, slash);
  rule->path = target.substr(slash);
  if (rule->path.size() > kMaxHttpPathBytes) return "the path is longer than 2048 bytes";
  if (!std::ranges::all_of(rule->path, [](char c) { return c > 0x20 && c < 0x7f; }))
    return "the path must be printable ASCII without spaces (percent-encode the rest)";
  return HostProblem(rule->host, true);
}

bool IsToken(std::string_view text) noexcept {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return IsLetter(c) || IsDigit(c) || std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
  });
}

}  // namespace oarlock::policy
