// SPDX-License-Identifier: Apache-2.0
#include "audit/format.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstring>

#include "audit/address.h"
#include "audit/json_line.h"
#include "notif/base/check.h"
#include "notif/base/result.h"
#include "notif/calls.h"

#ifndef OARLOCK_VERSION
#error "the build says the version (cmake/flags.cmake)"
#endif

namespace oarlock::audit {
namespace {

constexpr int kSocketTypeMask = 0xf;  // SOCK_NONBLOCK and SOCK_CLOEXEC share the argument

// OCSF numbers (schema 1.8.0).
namespace ocsf {
constexpr int kSystemActivity = 1, kNetworkActivity = 4, kDiscovery = 5, kApplicationActivity = 6;
constexpr int kKernelActivity = 1003, kNetworkActivityClass = 4001, kDeviceConfigState = 5019,
              kLifecycle = 6002;
constexpr int kOther = 99;
constexpr int kInvoke = 4;                           // 1003
constexpr int kOpen = 1, kTraffic = 6, kListen = 7;  // 4001
constexpr int kStart = 3, kStop = 4;                 // 6002
constexpr int kLog = 1;                              // 5019
constexpr int kDisabled = 1, kEnabled = 2;           // 5019 state_id
constexpr int kInformational = 1, kMedium = 3, kHigh = 4;
constexpr int kSuccess = 1, kFailure = 2;
constexpr int kActionAllowed = 1, kActionDenied = 2;
constexpr int kDispositionAllowed = 1, kDispositionBlocked = 2;
constexpr int kSystemCall = 2;
constexpr int kInbound = 1, kOutbound = 2, kDirectionUnknown = 0;
}  // namespace ocsf

struct Class {
  int category;
  int uid;
  int activity;
  std::string_view activity_name;  // where the activity is Other
};

// What the call does, for the class and the direction.
enum class Deed : uint8_t { kOpen, kTraffic, kListen, kOtherNetwork, kKernel };

struct NamedDeed {
  std::string_view name;
  Deed deed;
};
constexpr NamedDeed kNetworkCalls[] = {
    {"accept", Deed::kListen},   {"accept4", Deed::kListen}, {"bind", Deed::kListen},
    {"connect", Deed::kOpen},    {"listen", Deed::kListen},  {"sendmmsg", Deed::kTraffic},
    {"sendmsg", Deed::kTraffic}, {"sendto", Deed::kTraffic}, {"socket", Deed::kOpen},
    {"socketpair", Deed::kOpen},
};

Deed DeedOf(const CallRow* row) noexcept {
  if (row == nullptr) return Deed::kKernel;
  for (const NamedDeed& known : kNetworkCalls)
    if (known.name == row->name) return known.deed;
  return row->group == Group::kNetwork ? Deed::kOtherNetwork : Deed::kKernel;
}

Class ClassOf(Deed deed, std::string_view call) noexcept {
  switch (deed) {
    case Deed::kOpen:
      return {ocsf::kNetworkActivity, ocsf::kNetworkActivityClass, ocsf::kOpen, {}};
    case Deed::kTraffic:
      return {ocsf::kNetworkActivity, ocsf::kNetworkActivityClass, ocsf::kTraffic, {}};
    case Deed::kListen:
      return {ocsf::kNetworkActivity, ocsf::kNetworkActivityClass, ocsf::kListen, {}};
    case Deed::kOtherNetwork:
      return {ocsf::kNetworkActivity, ocsf::kNetworkActivityClass, ocsf::kOther, call};
    case Deed::kKernel:
      break;
  }
  return {ocsf::kSystemActivity, ocsf::kKernelActivity, ocsf::kInvoke, {}};
}

struct SocketFacts {
  int family = -1, type = -1, protocol = -1;
};

std::string_view Text(const char* text, size_t capacity) noexcept {
  return {text, ::strnlen(text, capacity)};
}

int Low(uint64_t argument) noexcept { return static_cast<int>(static_cast<uint32_t>(argument)); }

// Formats one record; a value on the stack of Format.
class Formatter {
 public:
  Formatter(const Record& record, const Host& host, const Stamp& stamp, std::span<char> out) noexcept
      : record_(record),
        host_(host),
        stamp_(stamp),
        real_us_(record.real_us != 0 ? record.real_us : stamp.real_us),
        line_(out) {}

  size_t Call() noexcept {
    row_ = FindCall(kNativeArch, record_.nr);
    const Deed deed = DeedOf(row_);
    const std::string_view call = CallName();
    const bool denied = record_.verdict == Verdict::kDenied;
    const bool known = record_.refusal != Refusal::kNone;
    OARLOCK_CHECK(known || !denied, "a refusal without a reason, call %u", record_.nr);
    const RefusalRow& row = Describe(record_.refusal);
    int severity = ocsf::kInformational;
    if (denied) severity = row.bypass_attempt ? ocsf::kHigh : ocsf::kMedium;

    Metadata(true);
    Times(real_us_);
    Classify(ClassOf(deed, call), severity);
    line_.Add("status_id", denied || record_.error != 0 ? ocsf::kFailure : ocsf::kSuccess);
    if (known) line_.Add("status_code", Name(row.reason));
    line_.Add("status_detail", known ? row.sentence : std::string_view("approved"));
    line_.Add("action_id", denied ? ocsf::kActionDenied : ocsf::kActionAllowed);
    line_.Add("disposition_id", denied ? ocsf::kDispositionBlocked : ocsf::kDispositionAllowed);
    Count();

    address_ =
        DecodeAddress({record_.address, std::min(size_t{record_.address_size}, sizeof(record_.address))});
    socket_ = FactsOf(call);
    FirewallRule(denied, call);
    Policy();
    Actor();
    if (deed == Deed::kKernel) {
      line_.Object("kernel");
      line_.Add("name", call);
      line_.Add("type_id", ocsf::kSystemCall);
      line_.EndObject();
    } else {
      Endpoints();
      Connection(deed, call);
    }
    Device();
    line_.Object("unmapped");
    CallDetails(call, denied, row);
    return Close();
  }

  size_t Session() noexcept {
    const bool start = record_.type == RecordType::kSessionStart;
    Metadata(false);
    Times(real_us_);
    Classify({ocsf::kDiscovery, ocsf::kDeviceConfigState, ocsf::kLog, {}}, ocsf::kInformational);
    line_.Add("status_id", ocsf::kSuccess);
    line_.Add("status_code", StatusCode(record_));
    line_.Add("status_detail", start ? "a grant was admitted" : "a session ended");
    line_.Add("state_id", start ? ocsf::kEnabled : ocsf::kDisabled);
    Policy();
    Actor();
    Device();
    line_.Object("unmapped");
    if (record_.session != nullptr) {
      const SessionFacts& session = *record_.session;
      line_.Add("session", session.id.text());
      line_.Add("module", Text(session.module, sizeof(session.module)));
      line_.Add("module_kind", Text(session.kind, sizeof(session.kind)));
      if (session.has_proxy) line_.Add("proxy", Text(session.proxy, sizeof(session.proxy)));
      if (session.broker[0] != '\0') line_.Add("broker", Text(session.broker, sizeof(session.broker)));
    }
    if (!start) {
      line_.Add("calls", record_.calls);
      line_.Add("refusals", record_.refusals);
    }
    Monotonic();
    return Close();
  }

  size_t Lifecycle() noexcept {
    Metadata(false);
    Times(real_us_);
    Class kind{ocsf::kApplicationActivity, ocsf::kLifecycle, ocsf::kOther, {}};
    int severity = ocsf::kInformational;
    std::string_view detail;
    bool failure = false;
    switch (record_.type) {
      case RecordType::kSupervisorStart:
        kind.activity = ocsf::kStart;
        detail = "the supervisor started";
        break;
      case RecordType::kSupervisorStop:
        kind.activity = ocsf::kStop;
        detail = "the supervisor stopped";
        break;
      case RecordType::kGap:
        kind.activity_name = "Gap";
        severity = ocsf::kMedium;
        failure = true;
        detail = "refusals were answered that have no record of their own";
        break;
      case RecordType::kUnavailable:
        kind.activity_name = "Gap";
        severity = ocsf::kHigh;
        failure = true;
        detail = "the log could not be written: refusals were answered without a record of their own";
        break;
      case RecordType::kCheckpoint:
        kind.activity_name = "Checkpoint";
        detail = "the chain up to here";
        break;
      case RecordType::kNotice:
        kind.activity_name = "Notice";
        severity = Describe(record_.notice).severity;
        failure = severity > ocsf::kInformational;
        detail = Describe(record_.notice).sentence;
        break;
      case RecordType::kCall:
      case RecordType::kSessionStart:
      case RecordType::kSessionEnd:
        OARLOCK_CHECK(false, "record type %d", static_cast<int>(record_.type));
    }
    Classify(kind, severity);
    line_.Add("status_id", failure ? ocsf::kFailure : ocsf::kSuccess);
    line_.Add("status_code", StatusCode(record_));
    line_.Add("status_detail", detail);
    if (record_.type == RecordType::kGap || record_.type == RecordType::kUnavailable) Count();
    line_.Object("app");
    line_.Add("name", Text(host_.program, sizeof(host_.program)));
    line_.Add("vendor_name", "Oarlock");
    line_.Add("version", OARLOCK_VERSION);
    line_.EndObject();
    line_.Object("actor");
    line_.Object("process");
    line_.Add("pid", host_.pid);
    line_.Add("name", Text(host_.program, sizeof(host_.program)));
    User(host_.uid);
    line_.EndObject();
    line_.EndObject();
    Device();
    line_.Object("unmapped");
    if (record_.session != nullptr) line_.Add("session", record_.session->id.text());
    if (record_.type == RecordType::kUnavailable) line_.Add("lost_records", record_.calls);
    if (record_.type == RecordType::kNotice) NoticeNumbers();
    Monotonic();
    return Close();
  }

 private:
  void Metadata(bool call) noexcept {
    // The sequence stands first and the hash last, so that a line's place in the chain is found without a
    // JSON parser.
    line_.Object("metadata");
    line_.Add("sequence", stamp_.sequence);
    line_.Add("uid", (record_.id == Ulid{} ? stamp_.id : record_.id).text());
    line_.Add("version", kOcsfVersion);
    line_.Object("product");
    line_.Add("name", "Oarlock");
    line_.Add("vendor_name", "Oarlock");
    line_.Add("version", OARLOCK_VERSION);
    line_.EndObject();
    line_.Array("profiles");
    if (record_.session != nullptr && record_.session->container[0] != '\0') line_.Item("container");
    line_.Item("datetime");
    line_.Item("host");
    if (call) line_.Item("security_control");
    line_.EndArray();
    if (record_.session != nullptr && record_.session->module[0] != '\0')
      line_.Add("tenant_uid", Text(record_.session->module, sizeof(record_.session->module)));
    if (call && record_.task.path_cut) line_.AddTrue("is_truncated");
    line_.EndObject();
  }

  void Times(uint64_t real_us) noexcept {
    line_.Add("time", real_us / 1000);
    char text[kTimeTextSize];
    line_.Add("time_dt", std::string_view(text, FormatTime(real_us, text)));
  }

  void Classify(const Class& kind, int severity) noexcept {
    line_.Add("class_uid", kind.uid);
    line_.Add("category_uid", kind.category);
    line_.Add("activity_id", kind.activity);
    if (!kind.activity_name.empty()) line_.Add("activity_name", kind.activity_name);
    line_.Add("type_uid", kind.uid * 100 + kind.activity);
    line_.Add("severity_id", severity);
  }

  void Count() noexcept {
    line_.Add("count", record_.count);
    if (record_.first_us == 0 || (record_.count == 1 && record_.first_us == record_.last_us)) return;
    line_.Add("start_time", record_.first_us / 1000);
    line_.Add("end_time", record_.last_us / 1000);
  }

  // An approval goes by the rule that let it through.
  Rule RuleOfCall(bool denied, std::string_view call) const noexcept {
    if (denied || record_.refusal != Refusal::kNone) return RuleOf(record_.refusal);
    if (call == "connect") return address_.family == AF_UNIX ? Rule::kUnixBroker : Rule::kTcpProxy;
    return call == "socket" || call == "socketpair" ? Rule::kSocketFamily : Rule::kCallTable;
  }

  void FirewallRule(bool denied, std::string_view call) noexcept {
    const Rule rule = RuleOfCall(denied, call);
    const RuleText& text = Describe(rule);
    line_.Object("firewall_rule");
    line_.Add("name", text.name);
    line_.Add("uid", text.uid);
    line_.Add("type", Name(record_.layer));
    if (record_.session != nullptr) {
      // What the rule's variable was in this session.
      const SessionFacts& session = *record_.session;
      if (rule == Rule::kTcpProxy)
        line_.Add("condition", session.has_proxy ? Text(session.proxy, sizeof(session.proxy)) : "none");
      if (rule == Rule::kUnixBroker)
        line_.Add("condition",
                  session.broker[0] != '\0' ? Text(session.broker, sizeof(session.broker)) : "none");
    }
    line_.EndObject();
  }

  void Policy() noexcept {
    if (record_.session == nullptr) return;
    const SessionFacts& session = *record_.session;
    line_.Object("policy");
    line_.Add("uid", Text(session.policy_sha256, sizeof(session.policy_sha256)));
    char version[12];
    const auto end = std::to_chars(version, version + sizeof(version), session.policy_version).ptr;
    line_.Add("version", std::string_view(version, static_cast<size_t>(end - version)));
    line_.EndObject();
  }

  void User(uint32_t uid) noexcept {
    line_.Object("user");
    line_.AddQuoted("uid", uid);
    line_.EndObject();
  }

  void Actor() noexcept {
    const kernel::TaskDescription& task = record_.task;
    const SessionFacts* session = record_.session;
    line_.Object("actor");
    line_.Object("process");
    const bool described = task.pid > 0;
    if (described) {
      line_.Add("pid", task.pid);
    } else if (record_.type != RecordType::kCall && session != nullptr) {
      line_.Add("pid", session->pid);
    }
    if (record_.tid > 0) line_.Add("tid", record_.tid);
    ProcessUid(task);
    if (task.name_size > 0)
      line_.Add("name", std::string_view(task.name, std::min(size_t{task.name_size}, sizeof(task.name))));
    if (task.path_size > 0)
      line_.Add("path", std::string_view(task.path, std::min(size_t{task.path_size}, sizeof(task.path))));
    if (task.start_ticks != 0) line_.Add("created_time", CreatedMs(task.start_ticks));
    if (described)
      User(task.uid);
    else if (session != nullptr)
      User(session->uid);
    if (session != nullptr) {
      line_.Add("sandbox", session->id.text());
      if (session->container[0] != '\0') {
        line_.Object("container");
        line_.Add("uid", Text(session->container, sizeof(session->container)));
        line_.EndObject();
      }
    }
    line_.EndObject();
    line_.EndObject();
  }

  // "PID:start ticks" outlives the reuse of a pid. A process that was gone before it could be looked at has
  // its thread alone.
  void ProcessUid(const kernel::TaskDescription& task) noexcept {
    char text[48];
    char* at = text;
    if (task.pid > 0) {
      at = std::to_chars(at, text + sizeof(text), task.pid).ptr;
      *at++ = ':';
      at = std::to_chars(at, text + sizeof(text), task.start_ticks).ptr;
    } else if (record_.tid > 0) {
      std::memcpy(at, "tid:", 4);
      at = std::to_chars(at + 4, text + sizeof(text), record_.tid).ptr;
    } else {
      return;
    }
    line_.Add("uid", std::string_view(text, static_cast<size_t>(at - text)));
  }

  [[nodiscard]] uint64_t CreatedMs(uint64_t start_ticks) const noexcept {
    const uint64_t seconds = start_ticks / host_.ticks_per_second,
                   rest = start_ticks % host_.ticks_per_second;
    return host_.boot_us / 1000 + seconds * 1000 + rest * 1000 / host_.ticks_per_second;
  }

  [[nodiscard]] SocketFacts FactsOf(std::string_view call) const noexcept {
    if (call == "socket" || call == "socketpair")
      return {Low(record_.args[0]), Low(record_.args[1]) & kSocketTypeMask, Low(record_.args[2])};
    return {record_.socket_domain, record_.socket_type, record_.socket_protocol};
  }

  void Endpoints() noexcept {
    switch (address_.form) {
      case Address::Form::kIp:
        line_.Object("dst_endpoint");
        line_.Add("ip", std::string_view(address_.ip));
        line_.Add("port", address_.port);
        line_.EndObject();
        return;
      case Address::Form::kPath:
      case Address::Form::kAbstract:
      case Address::Form::kUnnamed:
        line_.Object("dst_endpoint");
        EndpointName();
        line_.EndObject();
        return;
      case Address::Form::kNone:
      case Address::Form::kOther:
        break;
    }
    // The class wants one end at least; here the caller's is the only one known.
    line_.Object("src_endpoint");
    line_.Add("hostname", Text(host_.hostname, sizeof(host_.hostname)));
    line_.EndObject();
  }

  // "@" stands before abstract names; a path that begins with one is told apart by its being escaped.
  void EndpointName() noexcept {
    if (address_.form != Address::Form::kAbstract) {
      line_.Add("name", address_.name, address_.name.starts_with('@') ? size_t{1} : size_t{0});
      return;
    }
    char name[1 + sizeof(record_.address)];
    name[0] = '@';
    std::memcpy(name + 1, address_.name.data(), address_.name.size());
    line_.Add("name", std::string_view(name, 1 + address_.name.size()));
  }

  void Connection(Deed deed, std::string_view call) noexcept {
    const int family = socket_.family >= 0 ? socket_.family : address_.family;
    char buffer[24];
    line_.Object("connection_info");
    line_.Add("direction_id", deed == Deed::kListen                         ? ocsf::kInbound
                              : deed == Deed::kTraffic || call == "connect" ? ocsf::kOutbound
                                                                            : ocsf::kDirectionUnknown);
    line_.Add("protocol_name", ProtocolName(family, socket_.type, socket_.protocol, buffer));
    line_.Add("protocol_num", ProtocolNumber(family, socket_.type, socket_.protocol));
    if (family == AF_INET) line_.Add("protocol_ver_id", 4);
    if (family == AF_INET6) line_.Add("protocol_ver_id", 6);
    line_.EndObject();
  }

  void Device() noexcept {
    line_.Object("device");
    line_.Add("hostname", Text(host_.hostname, sizeof(host_.hostname)));
    line_.Add("type_id", 0);
    line_.EndObject();
  }

  std::string_view CallName() noexcept {
    if (row_ != nullptr) return row_->name;
    std::memcpy(call_name_, "syscall_", 8);
    const auto end = std::to_chars(call_name_ + 8, call_name_ + sizeof(call_name_), record_.nr).ptr;
    return {call_name_, static_cast<size_t>(end - call_name_)};
  }

  void CallDetails(std::string_view call, bool denied, const RefusalRow& row) noexcept {
    line_.Add("syscall", call);
    line_.Add("nr", record_.nr);
    line_.Add("arch", kNativeArch == Arch::kX86_64 ? "x86_64" : "aarch64");
    Arguments();
    line_.Add("errno", record_.error);
    if (record_.error != 0) line_.Add("errno_name", std::string_view(ErrnoName(record_.error)));
    if (denied) line_.Add("kind", Name(row.kind));
    line_.AddQuoted("notif_id", record_.notification);
    line_.Add("decision_ns", record_.decision_ns);
    if (record_.queue_ns != 0) line_.Add("queue_ns", record_.queue_ns);
    Monotonic();
    if (socket_.family >= 0) line_.Add("socket_family", socket_.family);
    if (socket_.type >= 0) line_.Add("socket_type", socket_.type);
    if (socket_.protocol >= 0) line_.Add("socket_protocol", socket_.protocol);
    if (call == "setsockopt" || call == "getsockopt") {
      line_.Add("option_level", Low(record_.args[1]));
      line_.Add("option_name", Low(record_.args[2]));
    }
    if (address_.form != Address::Form::kNone) {
      line_.AddHex("raw_addr",
                   {record_.address, std::min(size_t{record_.address_size}, sizeof(record_.address))});
      if (address_.family >= 0) line_.Add("address_family", address_.family);
    }
    if (denied) line_.Add("hint", row.hint);
  }

  // As many registers as the call has arguments: what `simulate` judges again. Pointers are the caller's own.
  void Arguments() noexcept {
    size_t count = std::size(record_.args);
    if (row_ != nullptr)
      while (count > 0 && row_->roles[count - 1] == Role::kNone) --count;
    line_.Array("args");
    for (size_t i = 0; i < count; ++i) line_.HexItem(record_.args[i]);
    line_.EndArray();
  }

  void NoticeNumbers() noexcept {
    const NoticeText& text = Describe(record_.notice);
    const uint64_t values[] = {record_.before, record_.after};
    const std::string_view names[] = {text.before, text.after};
    for (size_t i = 0; i < 2; ++i) {
      if (names[i].empty()) continue;
      if (!text.octal) {
        line_.Add(names[i], values[i]);
        continue;
      }
      char mode[24] = "0";
      const auto end = std::to_chars(mode + 1, mode + sizeof(mode), values[i], 8).ptr;
      line_.Add(names[i], std::string_view(mode, static_cast<size_t>(end - mode)));
    }
  }

  void Monotonic() noexcept {
    if (record_.mono_ns != 0) line_.Add("mono_ns", record_.mono_ns);
  }

  size_t Close() noexcept {
    line_.Add("prev_hash", View(stamp_.previous));
    line_.Add("hash", View(kZeroHash));
    line_.EndObject();
    return line_.End();
  }

  const Record& record_;
  const Host& host_;
  const Stamp& stamp_;
  const uint64_t real_us_;
  JsonLine line_;
  const CallRow* row_ = nullptr;
  Address address_;
  SocketFacts socket_;
  char call_name_[20];
};

}  // namespace

size_t Format(const Record& record, const Host& host, const Stamp& stamp,
              std::span<char, kMaxLineBytes> out) noexcept {
  Formatter formatter(record, host, stamp, out);
  switch (record.type) {
    case RecordType::kCall:
      return formatter.Call();
    case RecordType::kSessionStart:
    case RecordType::kSessionEnd:
      return formatter.Session();
    case RecordType::kSupervisorStart:
    case RecordType::kSupervisorStop:
    case RecordType::kGap:
    case RecordType::kUnavailable:
    case RecordType::kCheckpoint:
    case RecordType::kNotice:
      break;
  }
  return formatter.Lifecycle();
}

std::string_view StatusCode(const Record& record) noexcept {
  switch (record.type) {
    case RecordType::kCall:
      return record.refusal == Refusal::kNone ? std::string_view() : Name(Describe(record.refusal).reason);
    case RecordType::kSupervisorStart:
      return kCodeSupervisorStarted;
    case RecordType::kSupervisorStop:
      return kCodeSupervisorStopped;
    case RecordType::kSessionStart:
      return kCodeSessionStarted;
    case RecordType::kSessionEnd:
      return kCodeSessionEnded;
    case RecordType::kGap:
      return Name(Reason::kGap);
    case RecordType::kUnavailable:
      return Name(Reason::kAuditUnavailable);
    case RecordType::kCheckpoint:
      return kCodeCheckpoint;
    case RecordType::kNotice:
      return Describe(record.notice).code;
  }
  OARLOCK_CHECK(false, "record type %d", static_cast<int>(record.type));
}

size_t FormatTime(uint64_t real_us, std::span<char, kTimeTextSize> out) noexcept {
  const uint64_t seconds = std::min<uint64_t>(real_us / 1'000'000, 253'402'300'799);  // 9999-12-31T23:59:59
  const uint64_t days = seconds / 86400, of_day = seconds % 86400;
  // Days since 0000-03-01, in eras of 400 years, so that the leap day is the last of its year.
  const uint64_t shifted = days + 719468;
  const uint64_t era = shifted / 146097, of_era = shifted % 146097;
  const uint64_t year_of_era = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
  const uint64_t of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
  const uint64_t march_month = (5 * of_year + 2) / 153;
  const uint64_t day = of_year - (153 * march_month + 2) / 5 + 1;
  const uint64_t month = march_month < 10 ? march_month + 3 : march_month - 9;
  const uint64_t year = year_of_era + era * 400 + (month <= 2 ? 1 : 0);

  size_t at = 0;
  const auto put = [&](uint64_t value, int digits, char after) {
    for (int i = digits; i > 0; --i) {
      uint64_t power = 1;
      for (int j = 1; j < i; ++j) power *= 10;
      out[at++] = static_cast<char>('0' + value / power % 10);
    }
    out[at++] = after;
  };
  put(year, 4, '-');
  put(month, 2, '-');
  put(day, 2, 'T');
  put(of_day / 3600, 2, ':');
  put(of_day / 60 % 60, 2, ':');
  put(of_day % 60, 2, '.');
  put(real_us % 1'000'000, 6, 'Z');
  return at;
}

}  // namespace oarlock::audit
