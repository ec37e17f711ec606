// SPDX-License-Identifier: Apache-2.0
#include "audit/format.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdlib>
#include <cstring>
#include <functional>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <sstream>

#include "audit/escape.h"
#include "notif/calls.h"
#include "tests/audit/support.h"

namespace oarlock::audit {
namespace {

using namespace std::string_literals;
using nlohmann::json;
using testing::FormatLine;
using testing::Inet4;
using testing::Inet6;
using testing::SampleCall;
using testing::SampleSession;
using testing::SetAddress;
using testing::Unix;

// --- OCSF
// ------------------------------------------------------------------------------------------------------------

// What the schema (1.8.0) requires of the classes that we write, their enumerations and their types, in so
// far as we use them. Tools reject events that break these.
class OcsfCheck {
 public:
  explicit OcsfCheck(const json& event) : event_(event) {}

  void Run() {
    Base();
    Actor();
    switch (event_["class_uid"].get<int>()) {
      case 4001:
        return Network();
      case 1003:
        EXPECT_EQ(event_["activity_id"], 4);
        Text("/kernel/name");
        EXPECT_EQ(event_["/kernel/type_id"_json_pointer], 2);
        return;
      case 5019:
        EXPECT_EQ(event_["activity_id"], 1);
        return Integer("/state_id");
      case 6002:
        EXPECT_TRUE(event_["activity_id"] == 3 || event_["activity_id"] == 4 || event_["activity_id"] == 99);
        return Text("/app/name");
      default:
        ADD_FAILURE() << "class " << event_["class_uid"];
    }
  }

 private:
  [[nodiscard]] bool Has(const std::string& pointer) const {
    return event_.contains(json::json_pointer(pointer));
  }
  void Integer(const std::string& pointer) const {
    EXPECT_TRUE(Has(pointer) && event_[json::json_pointer(pointer)].is_number_integer()) << pointer;
  }
  void Text(const std::string& pointer) const {
    const bool text = Has(pointer) && event_[json::json_pointer(pointer)].is_string();
    EXPECT_TRUE(text && !event_[json::json_pointer(pointer)].get<std::string>().empty()) << pointer;
  }

  // base_event, and the profiles host and security_control
  void Base() const {
    for (const char* required : {"/activity_id", "/category_uid", "/class_uid", "/severity_id", "/time",
                                 "/type_uid", "/status_id", "/metadata/sequence", "/device/type_id"})
      Integer(required);
    for (const char* required : {"/metadata/version", "/metadata/product/name",
                                 "/metadata/product/vendor_name", "/metadata/uid", "/device/hostname"})
      Text(required);
    for (const char* optional : {"/count", "/start_time", "/end_time"})
      if (Has(optional)) Integer(optional);
    EXPECT_TRUE(event_["/metadata/profiles"_json_pointer].is_array());
    const int class_uid = event_["class_uid"], activity = event_["activity_id"];
    EXPECT_EQ(event_["type_uid"], class_uid * 100 + activity);
    EXPECT_EQ(event_["category_uid"], class_uid / 1000);
    EXPECT_TRUE(event_["severity_id"] >= 0 && event_["severity_id"] <= 6);
    EXPECT_TRUE(event_["status_id"] == 1 || event_["status_id"] == 2);
    if (activity == 99) Text("/activity_name");
    if (class_uid == 4001 || class_uid == 1003) {
      Integer("/action_id");
      Integer("/disposition_id");
      EXPECT_TRUE(Has("/firewall_rule/name") || Has("/firewall_rule/uid"));
    }
    if (!Has("/policy")) return;
    Text("/policy/uid");
    Text("/policy/version");
  }

  // actor: one of its parts; process: one of pid, uid; user: a uid that is text
  void Actor() const {
    EXPECT_TRUE(Has("/actor/process/pid") || Has("/actor/process/uid"));
    for (const char* number : {"/actor/process/pid", "/actor/process/tid", "/actor/process/created_time"})
      if (Has(number)) Integer(number);
    for (const char* text : {"/actor/process/uid", "/actor/process/user/uid", "/actor/process/container/uid"})
      if (Has(text)) Text(text);
  }

  void Network() const {
    const int activity = event_["activity_id"];
    EXPECT_TRUE(activity == 1 || activity == 6 || activity == 7 || activity == 99);
    EXPECT_TRUE(Has("/dst_endpoint") || Has("/src_endpoint"));
    for (const std::string end : {"/dst_endpoint", "/src_endpoint"})
      EXPECT_TRUE(!Has(end) || Has(end + "/ip") || Has(end + "/name") || Has(end + "/hostname"));
    Integer("/connection_info/direction_id");
    Text("/connection_info/protocol_name");
    Integer("/connection_info/protocol_num");
  }

  const json& event_;
};

json Parse(const std::string& line) {
  EXPECT_EQ(line.find('\n'), std::string::npos);
  for (const char c : line) EXPECT_TRUE(static_cast<unsigned char>(c) >= 0x20 && c != 0x7f);
  json event = json::parse(line, nullptr, false);
  EXPECT_FALSE(event.is_discarded()) << line;
  if (!event.is_discarded()) OcsfCheck(event).Run();
  return event;
}

// --- every refusal
// ---------------------------------------------------------------------------------------------------

// A call that the refusal is an answer to.
struct Sample {
  Refusal refusal;
  const char* call;
  int class_uid;
  int activity;
  const char* rule;
  std::function<void(Record&)> fill = [](Record&) {};
};

void Socket(Record& record, int family, int type, int protocol) {
  record.args[0] = static_cast<uint64_t>(family);
  record.args[1] = static_cast<uint64_t>(type);
  record.args[2] = static_cast<uint64_t>(protocol);
}

std::vector<Sample> Samples() {
  const auto address = [](const std::string& bytes) { return [bytes](Record& r) { SetAddress(r, bytes); }; };
  const auto socket = [](int family, int type, int protocol) {
    return [=](Record& r) { Socket(r, family, type | SOCK_CLOEXEC, protocol); };
  };
  const std::string inet = Inet4(0xc0000201, 443);
  return {
      {Refusal::kTcpNotProxy, "connect", 4001, 1, "net.proxy", address(inet)},
      {Refusal::kUnixNotBroker, "connect", 4001, 1, "unix.broker", address(Unix("/run/docker.sock"))},
      {Refusal::kUnixAbsent, "connect", 4001, 1, "unix.well_known", address(Unix("/var/run/nscd/socket"))},
      {Refusal::kUnixAbstract, "connect", 4001, 1, "unix.abstract", address(Unix("\0/tmp/.X11-unix/X0"s))},
      {Refusal::kAddressUnreadable, "connect", 4001, 1, "address"},
      {Refusal::kAddressFault, "connect", 4001, 1, "address"},
      {Refusal::kAddressInvalid, "connect", 4001, 1, "address", address(inet.substr(0, 5))},
      {Refusal::kAddressFamily, "connect", 4001, 1, "address", address("\x10\x00\x00\x00"s)},
      {Refusal::kSocketType, "connect", 4001, 1, "socket.type", address(Inet4(0x7f000001, 3128))},
      {Refusal::kFamilyDenied, "socket", 4001, 1, "socket.family", socket(AF_VSOCK, SOCK_STREAM, 0)},
      {Refusal::kFamilyProbe, "socket", 4001, 1, "socket.family", socket(AF_NETLINK, SOCK_RAW, 0)},
      {Refusal::kDatagramProbe, "socket", 4001, 1, "socket.type", socket(AF_INET, SOCK_DGRAM, 0)},
      {Refusal::kTypeDenied, "socketpair", 4001, 1, "socket.type", socket(AF_INET, SOCK_SEQPACKET, 0)},
      {Refusal::kRawDenied, "socket", 4001, 1, "socket.type", socket(AF_PACKET, SOCK_RAW, 0)},
      {Refusal::kProtocolDenied, "socket", 4001, 1, "socket.protocol", socket(AF_INET, SOCK_STREAM, 262)},
      {Refusal::kUnixNoGrant, "socket", 4001, 1, "unix.socket", socket(AF_UNIX, SOCK_STREAM, 0)},
      {Refusal::kUnixType, "socketpair", 4001, 1, "unix.type", socket(AF_UNIX, SOCK_DGRAM, 0)},
      {Refusal::kBindDenied, "bind", 4001, 7, "net.bind", address(Inet4(0, 8080))},
      {Refusal::kBindProbe, "bind", 4001, 7, "net.bind", address(Inet4(0x7f000001, 0))},
      {Refusal::kListenDenied, "listen", 4001, 7, "net.listen"},
      {Refusal::kAcceptDenied, "accept4", 4001, 7, "net.accept"},
      {Refusal::kFastOpen, "sendto", 4001, 6, "send.fastopen", address(inet)},
      {Refusal::kAddressedSend, "sendmsg", 4001, 6, "send.address", address(inet)},
      {Refusal::kSocketOption, "setsockopt", 4001, 99, "socket.option",
       [](Record& r) { Socket(r, 3, IPPROTO_TCP, 23); }},
      {Refusal::kLease, "fcntl", 1003, 4, "call.table"},
      {Refusal::kInterfaceIoctl, "ioctl", 1003, 4, "call.table"},
      {Refusal::kCallDenied, "mount", 1003, 4, "call.table"},
      {Refusal::kForeignTask, "setpriority", 1003, 4, "call.table"},
      {Refusal::kExecutableMemory, "memfd_create", 1003, 4, "call.table"},
      {Refusal::kTruncateDenied, "truncate", 1003, 4, "call.table"},
      {Refusal::kNotBuilt, "io_uring_setup", 1003, 4, "call.table"},
      {Refusal::kSelfConnect, "connect", 4001, 1, "net.self_connect", address(Inet4(0x7f000001, 3128))},
      {Refusal::kAuditUnavailable, "connect", 4001, 1, "audit.log", address(inet)},
  };
}

TEST(Format, SamplesCoverEveryRefusal) {
  std::vector<bool> seen(static_cast<size_t>(Refusal::kCount));
  for (const Sample& sample : Samples()) seen[static_cast<size_t>(sample.refusal)] = true;
  for (size_t i = 1; i < seen.size(); ++i) EXPECT_TRUE(seen[i]) << "no sample for refusal " << i;
}

TEST(Format, EveryRefusalFieldByField) {
  const SessionFacts session = SampleSession();
  uint64_t sequence = 1;
  for (const Sample& sample : Samples()) {
    SCOPED_TRACE(static_cast<int>(sample.refusal));
    Record record = SampleCall(sample.refusal, sample.call, session);
    sample.fill(record);
    const RefusalRow& row = Describe(sample.refusal);
    Stamp stamp{.sequence = ++sequence, .id = Ulid(5, {1}), .previous = kZeroHash, .real_us = 1};
    stamp.previous[0] = 'f';
    const json event = Parse(FormatLine(record, stamp));

    EXPECT_EQ(event["class_uid"], sample.class_uid);
    EXPECT_EQ(event["activity_id"], sample.activity);
    EXPECT_EQ(event["severity_id"], row.bypass_attempt ? 4 : 3);
    EXPECT_EQ(event["action_id"], 2);
    EXPECT_EQ(event["disposition_id"], 2);
    EXPECT_EQ(event["status_id"], 2);
    EXPECT_EQ(event["status_code"], std::string(Name(row.reason)));
    EXPECT_EQ(event["status_detail"], std::string(row.sentence));
    EXPECT_EQ(event["count"], 1);
    EXPECT_FALSE(event.contains("start_time"));
    EXPECT_EQ(event["time"], 1'700'000'123'456);
    EXPECT_EQ(event["time_dt"], "2023-11-14T22:15:23.456789Z");

    const json& rule = event["firewall_rule"];
    EXPECT_EQ(rule["uid"], sample.rule);
    EXPECT_EQ(rule["type"], "supervisor");
    EXPECT_FALSE(rule["name"].get<std::string>().empty());
    if (rule["uid"] == "net.proxy") {
      EXPECT_EQ(rule["condition"], "127.0.0.1:3128");
    }
    if (rule["uid"] == "unix.broker") {
      EXPECT_EQ(rule["condition"], "/run/broker/weather.sock");
    }
    EXPECT_EQ(event["policy"]["uid"], std::string(64, 'a'));
    EXPECT_EQ(event["policy"]["version"], "1");

    const json& process = event["actor"]["process"];
    EXPECT_EQ(process["pid"], 4001);
    EXPECT_EQ(process["tid"], 4002);
    EXPECT_EQ(process["name"], "curl");
    EXPECT_EQ(process["path"], "/usr/bin/curl");
    EXPECT_EQ(process["uid"], "4001:123456");
    EXPECT_EQ(process["created_time"], 1'699'000'000'000 + 1'234'560);
    EXPECT_EQ(process["user"]["uid"], "1001");
    EXPECT_EQ(process["sandbox"], std::string(session.id.text()));
    EXPECT_FALSE(process.contains("container"));

    const json& metadata = event["metadata"];
    EXPECT_EQ(metadata["version"], "1.8.0");
    EXPECT_EQ(metadata["product"]["name"], "Oarlock");
    EXPECT_EQ(metadata["sequence"], sequence);
    EXPECT_EQ(metadata["uid"], std::string(stamp.id.text()));
    EXPECT_EQ(metadata["tenant_uid"], "weather");
    EXPECT_FALSE(metadata.contains("is_truncated"));
    EXPECT_EQ(metadata["profiles"], json::array({"datetime", "host", "security_control"}));
    EXPECT_EQ(event["device"]["hostname"], "node1");

    const json& ours = event["unmapped"];
    EXPECT_EQ(ours["syscall"], sample.call);
    EXPECT_EQ(ours["nr"], record.nr);
    EXPECT_EQ(ours["arch"], kNativeArch == Arch::kX86_64 ? "x86_64" : "aarch64");
    EXPECT_EQ(ours["errno"], row.error);
    EXPECT_EQ(ours["errno_name"], std::string(ErrnoName(row.error)));
    EXPECT_EQ(ours["kind"], row.kind == Kind::kDeny ? "DENY" : "PROBE");
    EXPECT_EQ(ours["notif_id"], "18364758544493064720");
    EXPECT_EQ(ours["decision_ns"], 950);
    EXPECT_EQ(ours["queue_ns"], 2100);
    EXPECT_EQ(ours["mono_ns"], 55'000'000'001);
    EXPECT_EQ(ours["hint"], std::string(row.hint));
    EXPECT_EQ(ours["prev_hash"], std::string(View(stamp.previous)));
    EXPECT_EQ(ours["hash"].get<std::string>().size(), 64U);
    EXPECT_NE(ours["hash"], std::string(64, '0'));
    EXPECT_EQ(ours.contains("raw_addr"), record.address_size > 0);
    if (sample.class_uid == 1003) {
      EXPECT_EQ(event["kernel"]["name"], sample.call);
      EXPECT_FALSE(event.contains("connection_info"));
    }
  }
}

// --- where to
// --------------------------------------------------------------------------------------------------------

json Connect(const std::string& address, const std::function<void(Record&)>& fill = [](Record&) {}) {
  const SessionFacts session = SampleSession();
  Record record = SampleCall(Refusal::kTcpNotProxy, "connect", session);
  SetAddress(record, address);
  fill(record);
  return Parse(FormatLine(record));
}

TEST(Format, InternetAddresses) {
  json event = Connect(Inet4(0xc0000201, 443), [](Record& r) {
    r.socket_domain = AF_INET, r.socket_type = SOCK_STREAM, r.socket_protocol = IPPROTO_TCP;
  });
  EXPECT_EQ(event["dst_endpoint"], json({{"ip", "192.0.2.1"}, {"port", 443}}));
  EXPECT_EQ(event["unmapped"]["raw_addr"], "020001bbc00002010000000000000000");
  EXPECT_EQ(
      event["connection_info"],
      json({{"direction_id", 2}, {"protocol_name", "tcp"}, {"protocol_num", 6}, {"protocol_ver_id", 4}}));
  EXPECT_EQ(event["unmapped"]["socket_family"], AF_INET);
  EXPECT_EQ(event["unmapped"]["socket_type"], SOCK_STREAM);
  EXPECT_EQ(event["unmapped"]["socket_protocol"], IPPROTO_TCP);
  EXPECT_FALSE(event.contains("src_endpoint"));

  event = Connect(Inet6("2001:db8::1", 8443));
  EXPECT_EQ(event["dst_endpoint"], json({{"ip", "2001:db8::1"}, {"port", 8443}}));
  EXPECT_EQ(event["connection_info"]["protocol_ver_id"], 6);

  // What it reaches, and beside it what was sent.
  event = Connect(Inet6("::ffff:192.0.2.1", 443));
  EXPECT_EQ(event["dst_endpoint"]["ip"], "192.0.2.1");
  EXPECT_EQ(event["unmapped"]["raw_addr"], "0a0001bb0000000000000000000000000000ffffc000020100000000");
  EXPECT_EQ(event["unmapped"]["address_family"], AF_INET6);
}

TEST(Format, UnixAddresses) {
  EXPECT_EQ(Connect(Unix("/run/x"))["dst_endpoint"], json({{"name", "/run/x"}}));
  EXPECT_EQ(Connect(Unix("/run/x\0junk"s))["dst_endpoint"]["name"], "/run/x");
  EXPECT_EQ(Connect(Unix("\0x\0y"s))["dst_endpoint"]["name"], "@x\\x00y");
  EXPECT_EQ(Connect(Unix(""))["dst_endpoint"]["name"], "");
  // A relative path that looks like an abstract name is told apart.
  EXPECT_EQ(Connect(Unix("@x"))["dst_endpoint"]["name"], "\\x40x");
  EXPECT_EQ(Connect(Unix(std::string(108, 'p')))["dst_endpoint"]["name"], std::string(108, 'p'));
}

TEST(Format, AddressesThatAreNone) {
  for (const std::string& bytes :
       {"\x02"s, Inet4(1, 1).substr(0, 5), "\x10\x00netlink"s, std::string(128, '\xff')}) {
    const json event = Connect(bytes);
    EXPECT_FALSE(event.contains("dst_endpoint"));
    EXPECT_EQ(event["src_endpoint"], json({{"hostname", "node1"}}));
    EXPECT_EQ(event["unmapped"]["raw_addr"].get<std::string>().size(), 2 * bytes.size());
  }
}

TEST(Format, SocketCallsSayWhatWasAskedFor) {
  const SessionFacts session = SampleSession();
  Record record = SampleCall(Refusal::kProtocolDenied, "socket", session);
  // The kernel looks at 32 bits, and so does the record; the flags in the type are no part of it.
  Socket(record, AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 262);
  record.args[0] |= 0xdead'0000'0000'0000;
  const json event = Parse(FormatLine(record));
  EXPECT_EQ(
      event["connection_info"],
      json({{"direction_id", 0}, {"protocol_name", "mptcp"}, {"protocol_num", -1}, {"protocol_ver_id", 4}}));
  EXPECT_EQ(event["unmapped"]["socket_family"], AF_INET);
  EXPECT_EQ(event["unmapped"]["socket_type"], SOCK_STREAM);
  EXPECT_EQ(event["unmapped"]["socket_protocol"], 262);
  EXPECT_EQ(event["unmapped"]["args"], json::array({"0xdead000000000002", "0x80801", "0x106"}));
}

TEST(Format, SocketOptionsSayWhich) {
  const SessionFacts session = SampleSession();
  Record record = SampleCall(Refusal::kSocketOption, "setsockopt", session);
  record.args[1] = IPPROTO_TCP;
  record.args[2] = 23;
  const json event = Parse(FormatLine(record));
  EXPECT_EQ(event["activity_name"], "setsockopt");
  EXPECT_EQ(event["unmapped"]["option_level"], 6);
  EXPECT_EQ(event["unmapped"]["option_name"], 23);
}

TEST(Format, ACallThatNobodyKnows) {
  const SessionFacts session = SampleSession();
  Record record = SampleCall(Refusal::kCallDenied, "mount", session);
  record.nr = 0xffff'fff0;
  const json event = Parse(FormatLine(record));
  EXPECT_EQ(event["class_uid"], 1003);
  EXPECT_EQ(event["kernel"]["name"], "syscall_4294967280");
  EXPECT_EQ(event["unmapped"]["args"].size(), 6U);
}

TEST(Format, EveryCallOfTheTable) {
  const SessionFacts session = SampleSession();
  for (const CallRow& row : Calls()) {
    if (Number(row, kNativeArch) < 0) continue;
    SCOPED_TRACE(row.name);
    const json event = Parse(FormatLine(SampleCall(Refusal::kCallDenied, row.name, session)));
    EXPECT_EQ(event["class_uid"], row.group == Group::kNetwork ? 4001 : 1003);
    EXPECT_EQ(event["unmapped"]["syscall"], std::string(row.name));
  }
}

// --- approvals, processes that are gone, folding
// --------------------------------------------------------------------

TEST(Format, Approval) {
  const SessionFacts session = SampleSession();
  Record record = SampleCall(Refusal::kNone, "connect", session);
  record.verdict = Verdict::kAllowed;
  record.error = 0;
  SetAddress(record, Inet4(0x7f000001, 3128));
  json event = Parse(FormatLine(record));
  EXPECT_EQ(event["action_id"], 1);
  EXPECT_EQ(event["disposition_id"], 1);
  EXPECT_EQ(event["status_id"], 1);
  EXPECT_EQ(event["severity_id"], 1);
  EXPECT_FALSE(event.contains("status_code"));
  EXPECT_FALSE(event["unmapped"].contains("kind"));
  EXPECT_FALSE(event["unmapped"].contains("hint"));
  EXPECT_EQ(event["unmapped"]["errno"], 0);
  EXPECT_EQ(event["firewall_rule"]["uid"], "net.proxy");
  // Allowed, and still it did not succeed.
  record.error = ECONNREFUSED;
  event = Parse(FormatLine(record));
  EXPECT_EQ(event["action_id"], 1);
  EXPECT_EQ(event["status_id"], 2);
  EXPECT_EQ(event["unmapped"]["errno_name"], "ECONNREFUSED");
}

TEST(Format, AProcessThatIsGone) {
  const SessionFacts session = SampleSession();
  Record record = SampleCall(Refusal::kTcpNotProxy, "connect", session);
  record.task = {};
  const json event = Parse(FormatLine(record));
  const json& process = event["actor"]["process"];
  EXPECT_FALSE(process.contains("pid"));
  EXPECT_EQ(process["uid"], "tid:4002");
  EXPECT_EQ(process["user"]["uid"], "1001");  // the session's
}

TEST(Format, FoldedAndIdentified) {
  const SessionFacts session = SampleSession();
  Record record = SampleCall(Refusal::kTcpNotProxy, "connect", session);
  record.id = Ulid(77, {9, 9});
  record.count = 1234;
  record.first_us = 1'700'000'000'000'999;
  record.last_us = 1'700'000'009'000'000;
  const json event = Parse(FormatLine(record, {.sequence = 9, .id = Ulid(1, {1})}));
  EXPECT_EQ(event["metadata"]["uid"], std::string(record.id.text()));
  EXPECT_EQ(event["count"], 1234);
  EXPECT_EQ(event["start_time"], 1'700'000'000'000);
  EXPECT_EQ(event["end_time"], 1'700'000'009'000);
  // One refusal has one time.
  record.count = 1;
  record.last_us = record.first_us;
  EXPECT_FALSE(Parse(FormatLine(record)).contains("start_time"));
}

TEST(Format, Container) {
  SessionFacts session = SampleSession();
  std::strcpy(session.container, "3f4a");
  const json event = Parse(FormatLine(SampleCall(Refusal::kTcpNotProxy, "connect", session)));
  EXPECT_EQ(event["actor"]["process"]["container"]["uid"], "3f4a");
  EXPECT_EQ(event["metadata"]["profiles"][0], "container");
}

// --- sessions and the supervisor
// ------------------------------------------------------------------------------------

TEST(Format, Sessions) {
  const SessionFacts session = SampleSession();
  Record record;
  record.session = &session;
  record.type = RecordType::kSessionStart;
  record.real_us = 1'000'000;
  json event = Parse(FormatLine(record));
  EXPECT_EQ(event["class_uid"], 5019);
  EXPECT_EQ(event["state_id"], 2);
  EXPECT_EQ(event["status_code"], "SESSION_STARTED");
  EXPECT_EQ(event["policy"]["uid"], std::string(64, 'a'));
  EXPECT_EQ(event["actor"]["process"]["pid"], 4000);
  EXPECT_EQ(event["actor"]["process"]["user"]["uid"], "1001");
  EXPECT_EQ(event["unmapped"]["session"], std::string(session.id.text()));
  EXPECT_EQ(event["unmapped"]["module"], "weather");
  EXPECT_EQ(event["unmapped"]["module_kind"], "runner");
  EXPECT_EQ(event["unmapped"]["proxy"], "127.0.0.1:3128");
  EXPECT_EQ(event["unmapped"]["broker"], "/run/broker/weather.sock");
  EXPECT_FALSE(event["unmapped"].contains("calls"));

  record.type = RecordType::kSessionEnd;
  record.calls = 17;
  record.refusals = 3;
  event = Parse(FormatLine(record));
  EXPECT_EQ(event["state_id"], 1);
  EXPECT_EQ(event["status_code"], "SESSION_ENDED");
  EXPECT_EQ(event["unmapped"]["calls"], 17);
  EXPECT_EQ(event["unmapped"]["refusals"], 3);
}

TEST(Format, Lifecycle) {
  Record record;
  record.real_us = 1'000'000;
  const auto event = [&](RecordType type) {
    record.type = type;
    return Parse(FormatLine(record));
  };
  json value = event(RecordType::kSupervisorStart);
  EXPECT_EQ(value["activity_id"], 3);
  EXPECT_EQ(value["status_code"], "SUPERVISOR_STARTED");
  EXPECT_EQ(value["app"]["name"], "oarlockd");
  EXPECT_EQ(value["actor"]["process"]["pid"], 321);
  EXPECT_EQ(event(RecordType::kSupervisorStop)["activity_id"], 4);
  EXPECT_EQ(event(RecordType::kCheckpoint)["status_code"], "CHECKPOINT");

  record.count = 12;
  value = event(RecordType::kGap);
  EXPECT_EQ(value["status_code"], "GAP");
  EXPECT_EQ(value["count"], 12);
  record.calls = 15;
  record.first_us = 5'000;
  record.last_us = 6'000;
  value = event(RecordType::kUnavailable);
  EXPECT_EQ(value["status_code"], "AUDIT_UNAVAILABLE");
  EXPECT_EQ(value["count"], 12);
  EXPECT_EQ(value["start_time"], 5);
  EXPECT_EQ(value["unmapped"]["lost_records"], 15);
  EXPECT_EQ(value["severity_id"], 4);
}

TEST(Format, EveryNotice) {
  Record record;
  record.type = RecordType::kNotice;
  record.real_us = 1'000'000;
  record.before = 0640;
  record.after = 0666;
  for (size_t i = 1; i < static_cast<size_t>(Notice::kCount); ++i) {
    record.notice = static_cast<Notice>(i);
    const NoticeText& text = Describe(record.notice);
    const json event = Parse(FormatLine(record));
    EXPECT_EQ(event["status_code"], std::string(text.code));
    EXPECT_TRUE(IsStatusCode(text.code));
    EXPECT_EQ(event["status_detail"], std::string(text.sentence));
    if (!text.before.empty()) {
      EXPECT_TRUE(event["unmapped"].contains(std::string(text.before)));
    }
    if (record.notice == Notice::kModeChanged) {
      EXPECT_EQ(event["unmapped"]["mode_before"], "0640");
      EXPECT_EQ(event["unmapped"]["mode_after"], "0666");
    }
  }
}

// --- injection
// --------------------------------------------------------------------------------------------------------

std::string Unhex(const std::string& digits) {
  std::string bytes;
  for (size_t i = 0; i + 1 < digits.size(); i += 2)
    bytes += static_cast<char>(std::stoi(digits.substr(i, 2), nullptr, 16));
  return bytes;
}

void ExpectIntact(std::string comm, std::string path, const std::string& name) {
  const SessionFacts session = SampleSession();
  Record record = SampleCall(Refusal::kUnixNotBroker, "connect", session);
  comm.resize(std::min<size_t>(comm.size(), sizeof(record.task.name)));
  path.resize(std::min<size_t>(path.size(), sizeof(record.task.path)));
  std::memcpy(record.task.name, comm.data(), comm.size());
  record.task.name_size = static_cast<uint8_t>(comm.size());
  std::memcpy(record.task.path, path.data(), path.size());
  record.task.path_size = static_cast<uint16_t>(path.size());
  SetAddress(record, Unix(name));
  const json event = Parse(FormatLine(record));
  const json& process = event["actor"]["process"];
  EXPECT_EQ(Unescape(process.value("name", "")), comm);
  EXPECT_EQ(Unescape(process.value("path", "")), path);
  EXPECT_EQ(Unhex(event["unmapped"]["raw_addr"]), Unix(name));
  const std::string end = event["dst_endpoint"]["name"];
  if (name.empty()) {
    EXPECT_EQ(end, "");
  } else if (name[0] == '\0') {
    EXPECT_EQ(Unescape(end), "@" + name.substr(1));
  } else {
    EXPECT_EQ(Unescape(end), name.substr(0, name.find('\0')));
  }
  // Nothing of it got out of its string.
  EXPECT_EQ(event["unmapped"]["kind"], "DENY");
  EXPECT_EQ(event["status_code"], "UNIX_NOT_BROKER");
  EXPECT_EQ(event["metadata"]["sequence"], 1);
}

TEST(Format, HostileBytesStayInTheirString) {
  const std::string forged = "x\",\"kind\":\"PROBE\"}}\n{\"metadata\":{\"sequence\":1,\"uid\":\"";
  for (const std::string& bytes :
       {"a\nb"s, "\x1b[2J\x1b]0;owned\x07"s, "\"quoted\\\""s, "\xff\xfe\xc0\x80"s,
        "\xe2\x80\xae"s + "txt.exe", "\0\0\0"s, "\xe2\x80\xa8"s, "\xc2\x9b"s + "31m", "\\x0a"s, "\\"s, forged,
        std::string(108, '\x01'), std::string(108, 'p'), "\0"s + forged, "nul\0inside"s, "\r\n"s,
        "\xf3\xa0\x80\xa0"s, "</script>"s, "\xed\xa0\x80"s}) {
    SCOPED_TRACE(Escape(bytes));
    ExpectIntact(bytes, "/" + bytes, bytes);
  }
}

TEST(Format, RandomBytesStayInTheirString) {
  std::mt19937 random(42);
  const auto bytes = [&](size_t limit) {
    std::string text(random() % (limit + 1), '\0');
    for (char& c : text)
      c = static_cast<char>(random() % 2 == 0 ? "\"\\\n\x1b{}:,\xe2\x80\xae"[random() % 11] : random());
    return text;
  };
  for (int i = 0; i < 2000; ++i) ExpectIntact(bytes(16), bytes(512), bytes(126));
}

// The longest line that anybody can make us write.
TEST(Format, WorstCaseFits) {
  size_t longest = 0;
  SessionFacts session = SampleSession();
  const auto fill = [](auto& text) { std::memset(text, '\xff', sizeof(text) - 1); };
  fill(session.module);
  fill(session.kind);
  fill(session.policy_sha256);
  fill(session.proxy);
  fill(session.broker);
  fill(session.container);
  session.policy_version = INT32_MIN;
  Host host;
  fill(host.hostname);
  fill(host.program);
  host.boot_us = UINT64_MAX / 2;
  const Stamp stamp{.sequence = UINT64_MAX, .id = Ulid(5, {1}), .previous = kZeroHash, .real_us = UINT64_MAX};
  for (size_t refusal = 1; refusal < static_cast<size_t>(Refusal::kCount); ++refusal) {
    for (const CallRow& row : Calls()) {
      if (Number(row, kNativeArch) < 0) continue;
      Record record = SampleCall(static_cast<Refusal>(refusal), row.name, session);
      std::memset(record.task.name, '\xff', sizeof(record.task.name));
      std::memset(record.task.path, '\xff', sizeof(record.task.path));
      record.task.name_size = sizeof(record.task.name);
      record.task.path_size = sizeof(record.task.path);
      record.task.path_cut = true;
      record.task.uid = UINT32_MAX;
      record.task.start_ticks = record.notification = record.real_us = record.mono_ns = UINT64_MAX;
      record.queue_ns = record.decision_ns = record.count = record.first_us = record.last_us = UINT64_MAX;
      record.tid = record.task.pid = INT32_MAX;
      record.error = INT32_MAX;
      record.socket_domain = record.socket_type = record.socket_protocol = INT32_MAX;
      for (uint64_t& arg : record.args) arg = UINT64_MAX;
      SetAddress(record, Unix(std::string(126, '\xff')));
      std::vector<char> buffer(kMaxLineBytes);
      const size_t size = Format(record, host, stamp, std::span<char, kMaxLineBytes>(buffer));
      longest = std::max(longest, size);
    }
  }
  for (const RecordType type :
       {RecordType::kSessionStart, RecordType::kSessionEnd, RecordType::kUnavailable}) {
    Record record;
    record.type = type;
    record.session = &session;
    record.count = record.first_us = record.last_us = record.calls = record.refusals = record.mono_ns =
        UINT64_MAX;
    std::vector<char> buffer(kMaxLineBytes);
    longest = std::max(longest, Format(record, host, stamp, std::span<char, kMaxLineBytes>(buffer)));
  }
  RecordProperty("longest", std::to_string(longest));
  EXPECT_LE(longest, kMaxLineBytes);
  EXPECT_GT(longest, kMaxLineBytes / 2) << "the bound is far from what can happen";
}

TEST(Format, TruncatedPathIsSaid) {
  const SessionFacts session = SampleSession();
  Record record = SampleCall(Refusal::kTcpNotProxy, "connect", session);
  record.task.path_cut = true;
  EXPECT_EQ(Parse(FormatLine(record))["metadata"]["is_truncated"], true);
}

// --- times
// ------------------------------------------------------------------------------------------------------------

std::string TimeText(uint64_t real_us) {
  char text[kTimeTextSize];
  return {text, FormatTime(real_us, text)};
}

TEST(FormatTime, Dates) {
  EXPECT_EQ(TimeText(0), "1970-01-01T00:00:00.000000Z");
  EXPECT_EQ(TimeText(951'782'400'000'001), "2000-02-29T00:00:00.000001Z");
  EXPECT_EQ(TimeText(1'709'251'199'999'999), "2024-02-29T23:59:59.999999Z");
  EXPECT_EQ(TimeText(4'107'542'400'000'000), "2100-03-01T00:00:00.000000Z");
  EXPECT_EQ(TimeText(253'402'300'799'000'000), "9999-12-31T23:59:59.000000Z");
}

TEST(FormatTime, AgreesWithTheLibrary) {
  std::mt19937_64 random(3);
  for (int i = 0; i < 20'000; ++i) {
    const auto seconds = static_cast<time_t>(random() % 253'402'300'799);
    tm parts{};
    ASSERT_NE(::gmtime_r(&seconds, &parts), nullptr);
    char text[40];
    ASSERT_GT(std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S.000000Z", &parts), 0U);
    ASSERT_EQ(TimeText(static_cast<uint64_t>(seconds) * 1'000'000), text);
  }
}

// --- golden lines
// ------------------------------------------------------------------------------------------------------

// The bytes of some lines as they stand in docs and in other people's parsers. OARLOCK_UPDATE_GOLDEN=1 writes
// them anew.
TEST(Format, GoldenLines) {
  if (kNativeArch != Arch::kX86_64) GTEST_SKIP() << "call numbers differ";
  const SessionFacts session = SampleSession();
  std::string lines;
  uint64_t sequence = 0;
  const auto add = [&](const Record& record) {
    std::vector<char> buffer(kMaxLineBytes);
    const Stamp stamp{
        .sequence = ++sequence, .id = Ulid(1'700'000'123'456, {1, 2, 3}), .real_us = 1'700'000'000'000'000};
    lines +=
        {buffer.data(), Format(record, testing::SampleHost(), stamp, std::span<char, kMaxLineBytes>(buffer))};
  };
  for (const Sample& sample : Samples()) {
    Record record = SampleCall(sample.refusal, sample.call, session);
    sample.fill(record);
    add(record);
  }
  for (const RecordType type :
       {RecordType::kSupervisorStart, RecordType::kSupervisorStop, RecordType::kSessionStart,
        RecordType::kSessionEnd, RecordType::kGap, RecordType::kUnavailable, RecordType::kCheckpoint}) {
    Record record;
    record.type = type;
    if (type == RecordType::kSessionStart || type == RecordType::kSessionEnd) record.session = &session;
    add(record);
  }
  Record notice;
  notice.type = RecordType::kNotice;
  notice.notice = Notice::kModeChanged;
  notice.before = 0640;
  notice.after = 0666;
  add(notice);
  // The version is written once, in the build.
  const std::string version = "\"vendor_name\":\"Oarlock\",\"version\":\"" OARLOCK_VERSION "\"";
  for (size_t at = lines.find(version); at != std::string::npos; at = lines.find(version, at))
    lines.replace(at, version.size(), "\"vendor_name\":\"Oarlock\",\"version\":\"@VERSION@\"");

  const std::string path = OARLOCK_SOURCE_DIR "/tests/audit/golden/lines.jsonl";
  if (std::getenv("OARLOCK_UPDATE_GOLDEN") != nullptr) testing::WriteFile(path, lines);
  std::istringstream expected(testing::ReadFile(path)), actual(lines);
  std::string want, got;
  size_t number = 0;
  while (std::getline(actual, got)) {
    ++number;
    ASSERT_TRUE(std::getline(expected, want)) << "line " << number << " is new";
    EXPECT_EQ(got, want) << "line " << number;
  }
  EXPECT_FALSE(std::getline(expected, want)) << "lines are missing";
}

// --- the page
// ---------------------------------------------------------------------------------------------------------

// docs/AUDIT.md names every code, every rule and every field that a line can hold.
TEST(AuditPage, NamesEverything) {
  const std::string page = testing::ReadFile(OARLOCK_SOURCE_DIR "/docs/AUDIT.md");
  ASSERT_FALSE(page.empty());
  const auto named = [&](const std::string& word) {
    return page.find("`" + word + "`") != std::string::npos ||
           page.find("." + word + "`") != std::string::npos;
  };
  for (size_t i = 1; i < static_cast<size_t>(Reason::kCount); ++i)
    EXPECT_TRUE(named(std::string(Name(static_cast<Reason>(i))))) << Name(static_cast<Reason>(i));
  for (size_t i = 1; i < static_cast<size_t>(Notice::kCount); ++i) {
    const NoticeText& notice = Describe(static_cast<Notice>(i));
    EXPECT_TRUE(named(std::string(notice.code))) << notice.code;
    for (const std::string_view number : {notice.before, notice.after})
      EXPECT_TRUE(number.empty() || named(std::string(number))) << number;
  }
  for (const std::string_view code : {kCodeSupervisorStarted, kCodeSupervisorStopped, kCodeSessionStarted,
                                      kCodeSessionEnded, kCodeCheckpoint})
    EXPECT_TRUE(named(std::string(code))) << code;
  for (size_t i = 0; i < static_cast<size_t>(Rule::kCount); ++i)
    EXPECT_TRUE(named(std::string(Describe(static_cast<Rule>(i)).uid)));
  for (size_t i = 0; i < static_cast<size_t>(Layer::kCount); ++i)
    EXPECT_TRUE(named(std::string(Name(static_cast<Layer>(i)))));

  const std::function<void(const json&)> walk = [&](const json& value) {
    for (const auto& [key, member] : value.items()) {
      // An object is named with its members.
      EXPECT_TRUE(named(key) || (member.is_object() && page.find(key + ".") != std::string::npos)) << key;
      if (member.is_object()) walk(member);
    }
  };
  std::istringstream lines(testing::ReadFile(OARLOCK_SOURCE_DIR "/tests/audit/golden/lines.jsonl"));
  size_t count = 0;
  for (std::string line; std::getline(lines, line); ++count) walk(json::parse(line));
  EXPECT_GT(count, 30U);
}

TEST(Vocabulary, CodesAreDistinctAndKnown) {
  std::set<std::string_view> codes;
  for (size_t i = 1; i < static_cast<size_t>(Reason::kCount); ++i) codes.insert(Name(static_cast<Reason>(i)));
  for (size_t i = 1; i < static_cast<size_t>(Notice::kCount); ++i)
    codes.insert(Describe(static_cast<Notice>(i)).code);
  EXPECT_EQ(codes.size(), static_cast<size_t>(Reason::kCount) + static_cast<size_t>(Notice::kCount) - 2);
  for (const std::string_view code : codes) EXPECT_TRUE(IsStatusCode(code)) << code;
  EXPECT_FALSE(IsStatusCode(""));
  EXPECT_FALSE(IsStatusCode("NONE"));
  EXPECT_FALSE(IsStatusCode("TCP"));
  std::set<std::string_view> rules;
  for (size_t i = 0; i < static_cast<size_t>(Rule::kCount); ++i)
    rules.insert(Describe(static_cast<Rule>(i)).uid);
  EXPECT_EQ(rules.size(), static_cast<size_t>(Rule::kCount));
}

}  // namespace
}  // namespace oarlock::audit
