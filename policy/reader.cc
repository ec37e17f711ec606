// SPDX-License-Identifier: Apache-2.0
#include "policy/reader.h"

#include <cmath>

#include "notif/base/check.h"
#include "policy/hosts.h"

namespace oarlock::policy {
namespace {

using Kind = JsonValue::Kind;

std::string_view Name(Kind kind) {
  switch (kind) {
    case Kind::kNull:
      return "null";
    case Kind::kBool:
      return "true or false";
    case Kind::kInteger:
      return "a number";
    case Kind::kReal:
      return "a number with fraction or exponent";
    case Kind::kString:
      return "a string";
    case Kind::kList:
      return "a list";
    case Kind::kObject:
      return "an object";
  }
  OARLOCK_CHECK(false, "kind %u", static_cast<unsigned>(kind));
}

std::string Token(const JsonValue& number) {
  if (!number.string.empty()) return Printable(number.string, 40);
  return (number.negative ? "-" : "") + std::to_string(number.magnitude);
}

// "limits.cpu" -> "/limits/cpu"
std::string PointerOf(std::string_view name) {
  std::string pointer = "/" + std::string(name);
  std::ranges::replace(pointer, '.', '/');
  return pointer;
}

std::string Unknown(std::string_view key, std::string_view prefix) {
  std::vector<std::string_view> here;
  std::string_view elsewhere;
  for (const FieldRow& row : FieldRows()) {
    const size_t end = row.name.find_last_of('.') + 1;  // 0 where there is no dot
    if (row.name.substr(0, end) == prefix) here.push_back(row.name.substr(end));
    if (row.name.substr(end) == key && elsewhere.empty()) elsewhere = row.name;
  }
  std::string text = "unknown field " + Shown(key);
  if (!elsewhere.empty()) return text + "; did you mean " + std::string(elsewhere) + "?";
  if (const std::string_view nearest = Nearest(key, here); !nearest.empty())
    return text + "; did you mean " + Shown(nearest) + "?";
  return text + "; remove it" + (prefix.empty() ? " (fields whose names start with x- are ignored)" : "");
}

}  // namespace

bool IsBuilt(std::string_view name) noexcept {
  const auto rows = FieldRows();
  const auto row = std::ranges::find(rows, name, &FieldRow::name);
  OARLOCK_CHECK(row != rows.end(), "no field %.*s", static_cast<int>(name.size()), name.data());
  return row->built;
}

void Reader::Add(Code code, const At& at, std::string text) {
  for (const FieldRow* row : active) failed.insert(row->name);
  found.push_back({Stage::kRules, at.value.position, {code, at.pointer, std::move(text)}});
}

void Reader::Conflict(std::string_view name, std::string text) {
  if (!Sound(name)) return;  // what is wrong with it in itself is told already
  found.push_back({Stage::kRules, seen.at(name), {Code::kConflict, PointerOf(name), std::move(text)}});
}

void Reader::WrongType(const At& at, std::string_view type) {
  std::string text = "must be " + std::string(type) + ", not " + std::string(Name(at.value.kind));
  if (at.value.kind == Kind::kNull) text += "; leave it out instead";
  Add(Code::kType, at, std::move(text));
}

void Reader::OutOfRange(const At& at, const std::string& got, std::string_view hint) {
  std::string text = "must be " + std::string(active.back()->type) + ", got " + got;
  if (!hint.empty()) text += "; did you mean " + Shown(hint) + "?";
  Add(Code::kRange, at, std::move(text));
}

bool Reader::Is(const At& at, Kind kind, std::string_view type) {
  if (at.value.kind == kind) return true;
  WrongType(at, type);
  return false;
}

void Reader::Members(const At& at, std::string_view prefix) {
  for (const JsonValue& member : at.value.items) {
    if (Enough()) return;
    if (member.duplicate || (prefix.empty() && member.key.starts_with("x-"))) continue;
    const At here{member, at.pointer + PointerStep(member.key)};
    // The key "limits.cpu" is not the field limits.cpu.
    const bool plain = member.key.find_first_of(".[]") == std::string::npos;
    const auto rows = FieldRows();
    const auto row = std::ranges::find(rows, std::string(prefix) + member.key, &FieldRow::name);
    if (row == rows.end() || !plain) {
      Add(Code::kUnknown, here, Unknown(member.key, prefix));
      continue;
    }
    if (member.kind == Kind::kNull && row->null_is_absent) continue;
    seen[row->name] = member.position;
    active.push_back(&*row);
    row->read(*this, here);
    active.pop_back();
  }
}

void Reader::Bool(const At& at, bool* out) {
  if (Is(at, Kind::kBool, active.back()->type)) *out = at.value.boolean;
}

bool Reader::Integer(const At& at, int64_t low, int64_t high, int64_t* out) {
  if (at.value.kind == Kind::kReal) {
    Add(Code::kType, at, "must be an integer without fraction or exponent, got " + Token(at.value));
    return false;
  }
  if (!Is(at, Kind::kInteger, active.back()->type)) return false;
  static constexpr auto kMost = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  if (!at.value.huge && at.value.magnitude <= kMost) {
    const auto magnitude = static_cast<int64_t>(at.value.magnitude);
    const int64_t number = at.value.negative ? -magnitude : magnitude;
    if (number >= low && number <= high) {
      *out = number;
      return true;
    }
  }
  OutOfRange(at, Token(at.value));
  return false;
}

bool Reader::Number(const At& at, double* out) {
  if (at.value.kind != Kind::kReal && !Is(at, Kind::kInteger, active.back()->type)) return false;
  *out = at.value.real;
  return true;
}

void Reader::Label(const At& at, size_t limit, std::string* out) {
  if (!Is(at, Kind::kString, active.back()->type)) return;
  if (HasControl(at.value.string)) {
    Add(Code::kRange, at, "may not hold control characters, got " + Shown(at.value.string));
  } else if (at.value.string.size() > limit) {
    Add(Code::kRange, at,
        "must be at most " + std::to_string(limit) + " bytes long, is " +
            std::to_string(at.value.string.size()));
  } else {
    *out = at.value.string;
  }
}

void Reader::Path(const At& at, std::string_view type, size_t limit, std::string* out) {
  if (!Is(at, Kind::kString, type)) return;
  const std::string& path = at.value.string;
  if (path.empty()) {
    Add(Code::kPath, at, "is empty; write an absolute path");
  } else if (path.front() == '~') {
    Add(Code::kPath, at, "~ is not expanded; write an absolute path, got " + Shown(path));
  } else if (path.front() != '/') {
    Add(Code::kPath, at, "must start with /, got " + Shown(path));
  } else if (HasControl(path)) {
    Add(Code::kPath, at, "may not hold NUL, newlines or other control characters, got " + Shown(path));
  } else if (path.size() > limit) {
    Add(Code::kPath, at,
        "must be at most " + std::to_string(limit) + " bytes long, is " + std::to_string(path.size()));
  } else {
    *out = path;
  }
}

void Reader::Paths(const At& at, std::vector<std::string>* out) {
  List(at, [&](const At& item) {
    std::string path;
    Path(item, "an absolute path", kMaxPathBytes, &path);
    if (!path.empty()) out->push_back(std::move(path));
  });
}

void Reader::NeedsMember(const At& at, std::string_view key) {
  if (at.value.Find(key) == nullptr) Add(Code::kType, at, "lacks " + Shown(key));
}

void Reader::Finish(const JsonValue& root_value) {
  Defaults();
  CheckFiles();
  CheckNetwork();
  CheckBuilt();
  // Last of the rules, so that it hides nothing: an empty MOAT_SANDBOX_POLICY is a missing policy, not a
  // sound one.
  if (from_environment && root_value.Find("profile") == nullptr)
    found.push_back({Stage::kRules,
                     std::numeric_limits<size_t>::max(),
                     {Code::kConflict, "/profile", "a policy from the environment must say its profile"}});
  std::ranges::stable_sort(found, {}, [](const Found& one) { return std::pair(one.stage, one.position); });
}

void Reader::Defaults() {
  const bool module = policy.profile == Profile::kModule;
  if (!Has("enforce") && from_environment) policy.enforce = Enforce::kBestEffort;
  if (!Has("exec_rw") && exec_writable) policy.exec_rw = *exec_writable;
  if (!Has("exec_strict")) policy.exec_strict = module && !policy.exec_rw;
  std::ranges::sort(policy.env.set);
  if (module) {
    if (!Has("limits.nofile")) policy.limits.nofile = 4096;
    return;
  }
  if (!Has("base_system")) policy.base_system = false;  // reads are open: it would add nothing
  if (!Has("net")) policy.net = NetMode::kHost;
  const bool host = policy.net == NetMode::kHost;
  if (!Has("unix_allow") && !IsBuilt("unix_allow") && !host) policy.unix_allow.emplace();
  if (!Has("sysv_ipc")) policy.sysv_ipc = true;
  if (!Has("mediation")) policy.mediation = Mediation::kConnect;
  if (!Has("local_unix") && IsBuilt("local_unix")) policy.local_unix = Local::kOwn;
  if (!Has("local_tcp") && IsBuilt("local_tcp") && !host) policy.local_tcp = Local::kOwn;
  if (!Has("netlink_route") && IsBuilt("netlink_route") && !host) policy.netlink_route = Local::kOwn;
  if (!Has("tty")) policy.tty = Tty::kInherit;
  if (!Has("pty")) policy.pty = true;
  if (!Has("shm")) policy.shm = Shm::kHost;
}

void Reader::CheckFiles() {
  if (Sound("exec_rw") && Sound("exec_writable")) {
    if (Has("exec_rw") && exec_writable && *exec_writable != policy.exec_rw)
      Conflict("exec_writable", "is the older name of exec_rw, and the two differ; keep exec_rw");
    if (Has("exec_strict") && Sound("exec_strict") && policy.exec_strict && policy.exec_rw)
      Conflict("exec_strict", "cannot be true with exec_rw, which lets writable roots hold programs");
  }
  if (Has("limits.hard") && policy.limits.hard && Sound("limits") && !policy.limits.cpu &&
      !policy.limits.mem_gb && !policy.limits.pids)
    Conflict("limits.hard", "has nothing to enforce; add cpu, mem_gb or pids");
  if (!Sound("profile")) return;
  if (policy.profile == Profile::kModule) {
    if (Has("allow_write"))
      Conflict("allow_write", "belongs to profile \"write-allowlist\"; in profile \"module\" use rw");
    return;
  }
  const auto read_lists = std::to_array<std::pair<std::string_view, const std::vector<std::string>*>>(
      {{"ro", &policy.ro}, {"rw", &policy.rw}, {"rd", &policy.rd}, {"wo", &policy.wo}});
  for (const auto& [name, list] : read_lists)
    if (!list->empty())
      Conflict(name, "belongs to profile \"module\"; in profile \"write-allowlist\" use allow_write");
}

void Reader::CheckNetwork() {
  if (Sound("net") && Sound("profile")) {
    if (Has("net") && policy.net == NetMode::kHost && policy.profile == Profile::kModule)
      Conflict("net",
               "\"host\" leaves the network alone, which only profile \"write-allowlist\" may ask for");
  }
  if (Sound("net") && policy.net == NetMode::kHost && policy.unix_allow && policy.unix_allow->empty())
    Conflict("unix_allow", "has no effect with net \"host\", which leaves all sockets alone; remove it, or set net to \"none\" or \"egress-allowlist\"");
  if (Sound("profile") && policy.profile == Profile::kModule && policy.unix_allow &&
      !policy.unix_allow->empty())
    Conflict("unix_allow", "belongs to profile \"write-allowlist\"; a module reaches broker_socket alone");
  if (Sound("net")) {
    const bool allowlist = policy.net == NetMode::kEgressAllowlist;
    if (Has("proxy_port") && !allowlist)
      Conflict("proxy_port",
               "needs net \"egress-allowlist\"; net is \"" + std::string(NameIn(kNets, policy.net)) + "\"");
    if (Has("net_allow") && !allowlist)
      Conflict("net_allow",
               "needs net \"egress-allowlist\"; net is \"" + std::string(NameIn(kNets, policy.net)) + "\"");
    if (allowlist && !Has("proxy_port") && !Has("net_allow"))
      Conflict("net", "\"egress-allowlist\" needs proxy_port, the egress proxy's port on loopback");
  }
  if (Has("net_allow") && Has("proxy_port"))
    Conflict("net_allow", "is for a proxy of the supervisor's own; proxy_port names another; keep one");
  if (!Sound("net_allow")) return;
  for (const HostUse& use : host_uses)
    if (!policy.net_allow || !IsAllowed(use.host, *policy.net_allow))
      found.push_back(
          {Stage::kRules, use.position, {use.code, use.pointer, Shown(use.host) + " is not in net_allow"}});
}

void Reader::CheckBuilt() {
  for (const FieldRow& row : FieldRows()) {
    if (row.built || !Has(row.name) || !Sound(row.name) || row.is_strictest(policy)) continue;
    std::string text = "not built yet in this version of Oarlock; ";
    text += row.strictest.empty() ? "leave it out" : "only " + std::string(row.strictest) + " is accepted";
    found.push_back(
        {Stage::kNotBuilt, seen.at(row.name), {Code::kUnsupported, PointerOf(row.name), std::move(text)}});
  }
}

}  // namespace oarlock::policy
