// SPDX-License-Identifier: Apache-2.0
#include "notif/json.h"

#include <set>
#include <vector>

#include "notif/base/text.h"

namespace oarlock {
namespace {
constexpr int kMaxDepth = 20;
}

Json ParseStrictJson(std::string_view text, std::string* problem) {
  // The library takes a NUL for the end of the text.
  if (text.find('\0') != std::string_view::npos) {
    *problem = "not valid JSON: it holds a NUL byte";
    return {};
  }
  std::vector<std::set<std::string>> seen;
  std::string duplicate;
  bool deep = false;
  const auto watch = [&](int depth, Json::parse_event_t event, Json& value) {
    deep = deep || depth > kMaxDepth;
    if (event == Json::parse_event_t::object_start) seen.emplace_back();
    if (event == Json::parse_event_t::object_end) seen.pop_back();
    if (event == Json::parse_event_t::key && !seen.back().insert(value.get<std::string>()).second)
      duplicate = "the key '" + Printable(value.get<std::string>(), 40) + "' stands twice";
    return !deep;
  };
  Json parsed = Json::parse(text, watch, false);
  if (deep) *problem = "nested too deeply";
  else if (parsed.is_discarded()) *problem = "not valid JSON";
  else if (!duplicate.empty()) *problem = duplicate;
  return parsed;
}

std::string DumpJson(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

}  // namespace oarlock
