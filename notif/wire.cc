// SPDX-License-Identifier: Apache-2.0
#include "notif/wire.h"

#include <set>

#include "notif/base/text.h"
#include "notif/json.h"

namespace oarlock::wire {
namespace {

std::unexpected<Error> Malformed(const std::string& text) { return OARLOCK_FAIL("admission message", EPROTO, "%s", text.c_str()); }

// Reads the fields of one object and notes the first thing that is wrong with it. Every key must be asked for.
class Object {
 public:
  Object(const Json& json, std::string where, std::string* problem)
      : json_(json), where_(std::move(where)), problem_(problem) {
    if (!json_.is_object()) Note("must be an object");
  }
  ~Object() {
    if (!problem_->empty() || !json_.is_object()) return;
    for (const auto& [key, value] : json_.items())
      if (!known_.contains(key)) {
        *problem_ = where_ + ": unknown key '" + Printable(key, 40) + "'";
        return;
      }
  }
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;

  const Json* Find(const char* key, bool required) {
    known_.insert(key);
    if (!json_.is_object()) return nullptr;
    const auto at = json_.find(key);
    if (at != json_.end()) return &*at;
    if (required) Note(std::string("lacks '") + key + "'");
    return nullptr;
  }
  std::string String(const char* key, size_t limit, bool required = true) {
    const Json* value = Find(key, required);
    if (value == nullptr) return {};
    if (!value->is_string()) return Note(std::string("'") + key + "' must be a string"), std::string();
    const auto& text = value->get_ref<const std::string&>();
    if (text.size() > limit) return Note(std::string("'") + key + "' is too long"), std::string();
    if (text.find('\0') != std::string::npos) return Note(std::string("'") + key + "' holds a NUL"), std::string();
    return text;
  }
  uint64_t Unsigned(const char* key, uint64_t limit, bool required = true) {
    const Json* value = Find(key, required);
    if (value == nullptr) return 0;
    if (!value->is_number_unsigned() || value->get<uint64_t>() > limit)
      return Note(std::string("'") + key + "' must be an integer from 0 to " + std::to_string(limit)), 0;
    return value->get<uint64_t>();
  }
  bool Bool(const char* key) {
    const Json* value = Find(key, false);
    if (value == nullptr) return false;
    if (!value->is_boolean()) return Note(std::string("'") + key + "' must be true or false"), false;
    return value->get<bool>();
  }
  void Note(const std::string& text) {
    if (problem_->empty()) *problem_ = where_ + ": " + text;
  }

 private:
  const Json& json_;
  std::string where_;
  std::string* problem_;
  std::set<std::string> known_;
};

constexpr std::pair<const char*, int> kRefusedTcp[] = {
    {"EACCES", EACCES}, {"ENETUNREACH", ENETUNREACH}, {"ECONNREFUSED", ECONNREFUSED}};

Json EncodeGrant(const Grant& grant) {
  Json json = {{"net", Name(grant.net)},
               {"netns_cookie", grant.netns_cookie},
               {"check_netns", grant.check_netns},
               {"audit_approvals", grant.audit_approvals},
               {"broker_identity", grant.broker_identity},
               {"trace", grant.trace}};
  for (const auto& [name, error] : kRefusedTcp)
    if (error == grant.refused_tcp_error) json["refused_tcp"] = name;
  if (grant.proxy_port != 0) json["proxy"] = {{"addr", Text(grant.proxy_address)}, {"port", grant.proxy_port}};
  if (grant.has_broker()) json["broker"] = {{"name", grant.broker_name}, {"resolved", grant.broker_resolved}};
  return json;
}

Grant DecodeGrant(const Json& json, std::string* problem) {
  Grant grant;
  Object object(json, "grant", problem);
  const std::string net = object.String("net", 32);
  bool known = false;
  for (const NetMode mode : {NetMode::kNone, NetMode::kEgressAllowlist, NetMode::kEgressAny, NetMode::kHost})
    if (net == Name(mode)) {
      grant.net = mode;
      known = true;
    }
  if (!known) object.Note("'net' is no known mode");
  grant.netns_cookie = object.Unsigned("netns_cookie", UINT64_MAX);
  grant.check_netns = object.Bool("check_netns");
  grant.audit_approvals = object.Bool("audit_approvals");
  grant.broker_identity = object.Bool("broker_identity");
  if (grant.broker_identity) object.Note("'broker_identity' is not built");
  grant.trace = object.Bool("trace");
  const std::string refused = object.String("refused_tcp", 16, false);
  if (!refused.empty()) {
    grant.refused_tcp_error = 0;
    for (const auto& [name, error] : kRefusedTcp)
      if (refused == name) grant.refused_tcp_error = error;
    if (grant.refused_tcp_error == 0) object.Note("'refused_tcp' is no errno of the contract");
  }
  if (const Json* proxy = object.Find("proxy", false); proxy != nullptr) {
    Object fields(*proxy, "grant.proxy", problem);
    const std::string address = fields.String("addr", 16);
    if (address == Text(ProxyAddress::kLoopback6)) grant.proxy_address = ProxyAddress::kLoopback6;
    else if (address != Text(ProxyAddress::kLoopback4)) fields.Note("'addr' must be 127.0.0.1 or ::1");
    grant.proxy_port = static_cast<uint16_t>(fields.Unsigned("port", 65535));
    if (grant.proxy_port == 0) fields.Note("'port' must be 1 to 65535");
  }
  if (const Json* broker = object.Find("broker", false); broker != nullptr) {
    Object fields(*broker, "grant.broker", problem);
    grant.broker_name = fields.String("name", kMaxBrokerPath);
    grant.broker_resolved = fields.String("resolved", kMaxBrokerPath);
    if (!grant.broker_name.starts_with('/') || !grant.broker_resolved.starts_with('/'))
      fields.Note("both paths must be absolute");
  }
  if ((grant.net == NetMode::kEgressAllowlist) != (grant.proxy_port != 0))
    object.Note("a proxy goes with net egress-allowlist, and only with it");
  if (grant.net == NetMode::kEgressAny) object.Note("net egress-any is not built");
  return grant;
}

bool IsHex(std::string_view text, size_t digits) {
  return text.size() == digits && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

}  // namespace

std::string Encode(const Admission& admission) {
  const Json metadata = {{"oarlock", kWireVersion},
                         {"module", admission.module},
                         {"kind", admission.kind},
                         {"policy", Json::parse(admission.policy_json, nullptr, false)},
                         {"policy_sha256", admission.policy_sha256},
                         {"grant", EncodeGrant(admission.grant)},
                         {"filter", admission.filter},
                         {"probe", Hex(admission.probe)}};
  const Json state = {{"ociVersion", "1.1.0"},
                      {"fds", admission.fds},
                      {"pid", admission.pid},
                      {"metadata", DumpJson(metadata)},
                      {"state",
                       {{"ociVersion", "1.1.0"},
                        {"id", admission.module},
                        {"status", "creating"},
                        {"pid", admission.pid},
                        {"bundle", "/"}}}};
  return DumpJson(state);
}

Result<Admission> Decode(std::string_view message) {
  if (message.size() > kMaxMessageBytes) return Malformed("longer than 128 KiB");
  Admission admission;
  std::string problem;
  const Json state = ParseStrictJson(message, &problem);
  if (!problem.empty()) return Malformed(problem);
  if (!state.is_object()) return Malformed("not a JSON object");

  // The envelope is the OCI's and may grow: only what we use is looked at.
  const auto fds = state.find("fds");
  if (fds == state.end() || !fds->is_array() || fds->size() > kMaxDescriptors) return Malformed("'fds' must name one or two descriptors");
  size_t listeners = 0;
  for (const Json& name : *fds) {
    if (!name.is_string()) return Malformed("'fds' must hold strings");
    const auto& text = name.get_ref<const std::string&>();
    if (text == kListenerName) ++listeners;
    else if (text != kCgroupName) return Malformed("unknown descriptor name '" + Printable(text, 40) + "'");
    admission.fds.push_back(text);
  }
  if (listeners != 1) return Malformed("'fds' must name seccompFd exactly once");
  if (const auto pid = state.find("pid"); pid != state.end()) {
    if (!pid->is_number_integer() || pid->get<int64_t>() < 0 || pid->get<int64_t>() > INT32_MAX)
      return Malformed("'pid' must be a process id");
    admission.pid = pid->get<int64_t>();
  }
  const auto metadata_at = state.find("metadata");
  if (metadata_at == state.end() || !metadata_at->is_string()) return Malformed("'metadata' must be a string");
  const auto& metadata_text = metadata_at->get_ref<const std::string&>();
  if (!metadata_text.starts_with('{')) {
    if (metadata_text.empty() || metadata_text.size() > 64 ||
        metadata_text.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") !=
            std::string::npos ||
        metadata_text.starts_with('.'))
      return Malformed("'metadata' is neither an object nor the name of a grant");
    admission.grant_name = metadata_text;
    return admission;
  }

  const Json metadata = ParseStrictJson(metadata_text, &problem);
  if (!problem.empty()) return Malformed("metadata: " + problem);
  {
    Object object(metadata, "metadata", &problem);
    if (const Json* version = object.Find("oarlock", true); version != nullptr && !(version->is_number_integer() && *version == kWireVersion))
      return Malformed("version " + Printable(DumpJson(*version), 20) +
                       " of the launcher is not version " + std::to_string(kWireVersion) + " of this supervisor");
    admission.module = object.String("module", 200);
    admission.kind = object.String("kind", 40);
    if (!IsPrintable(admission.module) || !IsPrintable(admission.kind)) object.Note("control characters in a label");
    admission.policy_sha256 = object.String("policy_sha256", 64);
    if (!IsHex(admission.policy_sha256, 64)) object.Note("'policy_sha256' must be 64 hex digits");
    admission.filter = object.String("filter", 64);
    const std::string probe = object.String("probe", 2 * kProbeBytes);
    if (!FromHex(probe, admission.probe)) object.Note("'probe' must be 32 hex digits");
    if (const Json* policy = object.Find("policy", true); policy != nullptr) {
      if (!policy->is_object()) object.Note("'policy' must be an object");
      admission.policy_json = DumpJson(*policy);
    }
    if (const Json* grant = object.Find("grant", true); grant != nullptr) admission.grant = DecodeGrant(*grant, &problem);
  }
  if (!problem.empty()) return Malformed(problem);
  return admission;
}

std::string Encode(const Answer& answer) {
  Json json = {{"ok", answer.ok}};
  if (answer.ok) {
    json["session"] = answer.session;
  } else {
    json["code"] = answer.code;
    json["error"] = answer.error;
  }
  return DumpJson(json) + "\n";
}

Result<Answer> DecodeAnswer(std::string_view line) {
  std::string problem;
  const Json json = ParseStrictJson(line, &problem);
  Answer answer;
  if (problem.empty()) {
    Object object(json, "answer", &problem);
    answer.ok = object.Bool("ok");
    answer.session = object.String("session", 64, answer.ok);
    answer.code = object.String("code", 64, !answer.ok);
    answer.error = object.String("error", kMaxAnswerBytes, !answer.ok);
  }
  if (!problem.empty()) return Malformed(problem);
  return answer;
}

std::string Encode(const Prepared& prepared) {
  Json json = Json::object();
  if (!prepared.cgroup.empty()) json["cgroup"] = prepared.cgroup;
  return DumpJson(json) + "\n";
}

Result<Prepared> DecodePrepared(std::string_view line) {
  std::string problem;
  const Json json = ParseStrictJson(line, &problem);
  Prepared prepared;
  if (problem.empty()) {
    Object object(json, "answer", &problem);
    prepared.cgroup = object.String("cgroup", 4095, false);
  }
  if (!problem.empty()) return Malformed(problem);
  return prepared;
}

}  // namespace oarlock::wire
