// SPDX-License-Identifier: Apache-2.0
#include "notif/wire.h"

#include <gtest/gtest.h>

#include <functional>
#include <random>

#include "notif/json.h"

namespace oarlock::wire {
namespace {

constexpr const char* kHash = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
constexpr uint64_t kSeed = 20260117;

Admission Sample() {
  Admission admission;
  admission.module = "dev.acme.render";
  admission.kind = "runner";
  admission.policy_json = R"({"module":"dev.acme.render","version":1})";
  admission.policy_sha256 = kHash;
  admission.filter = "full+strict";
  admission.probe = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 255};
  admission.grant.net = NetMode::kEgressAllowlist;
  admission.grant.proxy_port = 3128;
  admission.grant.broker_name = "/run/node/broker.sock";
  admission.grant.broker_resolved = "/run/node/broker-81.sock";
  admission.grant.netns_cookie = 4096;
  admission.pid = 4711;
  admission.fds = {"seccompFd"};
  return admission;
}

void ExpectSame(const Admission& a, const Admission& b) {
  EXPECT_EQ(a.module, b.module);
  EXPECT_EQ(a.kind, b.kind);
  EXPECT_EQ(DumpJson(Json::parse(a.policy_json)), b.policy_json);
  EXPECT_EQ(a.policy_sha256, b.policy_sha256);
  EXPECT_EQ(a.filter, b.filter);
  EXPECT_EQ(a.probe, b.probe);
  EXPECT_EQ(a.pid, b.pid);
  EXPECT_EQ(a.fds, b.fds);
  EXPECT_EQ(b.grant_name, "");
  EXPECT_EQ(a.grant.net, b.grant.net);
  EXPECT_EQ(a.grant.proxy_port, b.grant.proxy_port);
  EXPECT_EQ(a.grant.proxy_address, b.grant.proxy_address);
  EXPECT_EQ(a.grant.broker_name, b.grant.broker_name);
  EXPECT_EQ(a.grant.broker_resolved, b.grant.broker_resolved);
  EXPECT_EQ(a.grant.netns_cookie, b.grant.netns_cookie);
  EXPECT_EQ(a.grant.check_netns, b.grant.check_netns);
  EXPECT_EQ(a.grant.refused_tcp_error, b.grant.refused_tcp_error);
  EXPECT_EQ(a.grant.audit_approvals, b.grant.audit_approvals);
  EXPECT_EQ(a.grant.broker_identity, b.grant.broker_identity);
  EXPECT_EQ(a.grant.trace, b.grant.trace);
}

// --- round trips -------------------------------------------------------------------------------------------

class Generator {
 public:
  explicit Generator(uint64_t seed) : random_(seed) {}
  uint64_t Below(uint64_t limit) { return std::uniform_int_distribution<uint64_t>(0, limit - 1)(random_); }
  bool Coin() { return Below(2) == 0; }

  Admission Next() {
    Admission admission;
    admission.module = Text(200, "abc XYZ019._-/\"\\{}\xc3\xa9\xf0\x9f\x98\x80");
    admission.kind = Text(40, "abc XYZ019._-:\"\\");
    admission.policy_json = DumpJson(Object(3));
    for (int i = 0; i < 64; ++i) admission.policy_sha256 += "0123456789abcdef"[Below(16)];
    admission.filter = Text(64, "abcdefghijklmnopqrstuvwxyz+-_019");
    for (uint8_t& byte : admission.probe) byte = static_cast<uint8_t>(Below(256));
    admission.pid = static_cast<int64_t>(Coin() ? Below(70000) : Below(uint64_t{INT32_MAX} + 1));
    admission.fds = {"seccompFd"};
    if (Coin()) admission.fds.insert(Coin() ? admission.fds.begin() : admission.fds.end(), "cgroup");
    Grant& grant = admission.grant;
    if (Coin()) {
      grant.net = NetMode::kEgressAllowlist;
      grant.proxy_port = static_cast<uint16_t>(1 + Below(65535));
      if (Coin()) grant.proxy_address = ProxyAddress::kLoopback6;
    }
    if (Coin()) {
      grant.broker_name = "/" + Text(106, "abc/._- \"\\");
      grant.broker_resolved = "/" + Text(106, "abc/._-");
    }
    grant.netns_cookie = Coin() ? random_() : Below(5000);
    grant.check_netns = Coin();
    grant.audit_approvals = Coin();
    grant.trace = Coin();
    constexpr int kErrors[] = {EACCES, ENETUNREACH, ECONNREFUSED};
    grant.refused_tcp_error = kErrors[Below(3)];
    return admission;
  }

  // Whole characters of `alphabet` (UTF-8) up to `limit` bytes.
  std::string Text(size_t limit, std::string_view alphabet) {
    std::vector<std::string> letters;
    for (size_t at = 0; at < alphabet.size();) {
      const auto lead = static_cast<uint8_t>(alphabet[at]);
      const size_t size = lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
      letters.emplace_back(alphabet.substr(at, size));
      at += size;
    }
    std::string text;
    const size_t wanted = Below(limit + 1);
    for (;;) {
      const std::string& letter = letters[Below(letters.size())];
      if (text.size() + letter.size() > wanted) return text;
      text += letter;
    }
  }

 private:
  Json Value(int depth) {
    switch (Below(depth > 0 ? 6 : 4)) {
      case 0:
        return nullptr;
      case 1:
        return Coin();
      case 2:
        return static_cast<int64_t>(random_());
      case 3:
        return Text(30, "abc\"\\\xc3\xa9{}[]:,");
      case 4: {
        Json array = Json::array();
        for (uint64_t i = Below(4); i > 0; --i) array.push_back(Value(depth - 1));
        return array;
      }
      default:
        return Object(depth - 1);
    }
  }
  Json Object(int depth) {
    Json object = Json::object();
    for (uint64_t i = Below(6); i > 0; --i) object[Text(10, "abcdef/~\"")] = Value(depth);
    return object;
  }
  std::mt19937_64 random_;
};

TEST(WireAdmission, RandomOnesSurviveTheRoundTrip) {
  Generator generator(kSeed);
  for (int i = 0; i < 1000; ++i) {
    SCOPED_TRACE(i);
    const Admission admission = generator.Next();
    const std::string message = Encode(admission);
    const auto decoded = Decode(message);
    ASSERT_TRUE(decoded) << decoded.error().Message() << "\n" << message;
    ExpectSame(admission, *decoded);
    // Canonical: the same again.
    Admission again = *decoded;
    EXPECT_EQ(Encode(again), message);
  }
}

TEST(WireAdmission, IsTheOciContainerProcessState) {
  const Json json = Json::parse(Encode(Sample()));
  EXPECT_EQ(json["ociVersion"], "1.1.0");
  EXPECT_EQ(json["fds"], Json::parse(R"(["seccompFd"])"));
  EXPECT_EQ(json["pid"], 4711);
  EXPECT_TRUE(json["metadata"].is_string());
  for (const char* member : {"ociVersion", "id", "status", "pid", "bundle"})
    EXPECT_TRUE(json["state"].contains(member)) << member;
  const Json metadata = Json::parse(json["metadata"].get<std::string>());
  for (const char* member :
       {"oarlock", "module", "kind", "policy", "policy_sha256", "grant", "filter", "probe"})
    EXPECT_TRUE(metadata.contains(member)) << member;
  EXPECT_EQ(metadata["oarlock"], kWireVersion);
  EXPECT_EQ(metadata["grant"]["proxy"], Json::parse(R"({"addr":"127.0.0.1","port":3128})"));
  EXPECT_EQ(metadata["grant"]["broker"],
            Json::parse(R"({"name":"/run/node/broker.sock","resolved":"/run/node/broker-81.sock"})"));
}

// --- wrong ones --------------------------------------------------------------------------------------------

struct Wrong {
  const char* name;
  std::function<void(Json& state, Json& metadata)> change;
  const char* text;  // that the refusal holds
};
std::ostream& operator<<(std::ostream& out, const Wrong& wrong) { return out << wrong.name; }

std::string Changed(const std::function<void(Json&, Json&)>& change) {
  Json state = Json::parse(Encode(Sample()));
  Json metadata = Json::parse(state["metadata"].get<std::string>());
  change(state, metadata);
  if (state.is_object() && state.contains("metadata") && state["metadata"].is_string() &&
      state["metadata"].get<std::string>().starts_with('{'))
    state["metadata"] = DumpJson(metadata);
  return DumpJson(state);
}

const std::vector<Wrong>& WrongOnes() {
  static const std::string long201(201, 'a'), long65(65, 'a'), path108 = "/" + std::string(107, 'p');
  static const std::vector<Wrong> wrong = {
      {"FdsAbsent", [](Json& s, Json&) { s.erase("fds"); }, "'fds'"},
      {"FdsNoArray", [](Json& s, Json&) { s["fds"] = "seccompFd"; }, "'fds'"},
      {"FdsEmpty", [](Json& s, Json&) { s["fds"] = Json::array(); }, "seccompFd"},
      {"FdsThree", [](Json& s, Json&) { s["fds"] = {"seccompFd", "cgroup", "cgroup"}; }, "'fds'"},
      {"FdsNumber", [](Json& s, Json&) { s["fds"] = {7}; }, "'fds' must hold strings"},
      {"FdsUnknown", [](Json& s, Json&) { s["fds"] = {"seccompFd", "pidFd"}; }, "pidFd"},
      {"FdsUnknownAlone", [](Json& s, Json&) { s["fds"] = {"seccompfd"}; }, "seccompfd"},
      {"FdsTwoListeners", [](Json& s, Json&) { s["fds"] = {"seccompFd", "seccompFd"}; }, "exactly once"},
      {"FdsCgroupAlone", [](Json& s, Json&) { s["fds"] = {"cgroup"}; }, "exactly once"},
      {"PidNegative", [](Json& s, Json&) { s["pid"] = -1; }, "'pid'"},
      {"PidHuge", [](Json& s, Json&) { s["pid"] = 2147483648; }, "'pid'"},
      {"PidHuge64", [](Json& s, Json&) { s["pid"] = 18446744073709551615ULL; }, "'pid'"},
      {"PidReal", [](Json& s, Json&) { s["pid"] = 1.5; }, "'pid'"},
      {"PidString", [](Json& s, Json&) { s["pid"] = "1"; }, "'pid'"},
      {"MetadataAbsent", [](Json& s, Json&) { s.erase("metadata"); }, "'metadata'"},
      {"MetadataObject", [](Json& s, Json& m) { s["metadata"] = m; }, "'metadata' must be a string"},
      {"MetadataEmpty", [](Json& s, Json&) { s["metadata"] = ""; }, "'metadata'"},
      {"MetadataGrantPath", [](Json& s, Json&) { s["metadata"] = "../shadow"; }, "name of a grant"},
      {"MetadataGrantHidden", [](Json& s, Json&) { s["metadata"] = ".hidden"; }, "name of a grant"},
      {"MetadataGrantLong", [](Json& s, Json&) { s["metadata"] = long65; }, "name of a grant"},
      {"MetadataGrantNewline", [](Json& s, Json&) { s["metadata"] = "a\n"; }, "name of a grant"},
      {"MetadataArray", [](Json& s, Json&) { s["metadata"] = "[1]"; }, "name of a grant"},
      {"VersionAbsent", [](Json&, Json& m) { m.erase("oarlock"); }, "oarlock"},
      {"VersionTwo", [](Json&, Json& m) { m["oarlock"] = 2; }, "version 2"},
      {"VersionZero", [](Json&, Json& m) { m["oarlock"] = 0; }, "version 0"},
      {"VersionString", [](Json&, Json& m) { m["oarlock"] = "1"; }, "version"},
      {"VersionNull", [](Json&, Json& m) { m["oarlock"] = nullptr; }, "version"},
      {"VersionTrue", [](Json&, Json& m) { m["oarlock"] = true; }, "version"},
      {"MetadataExtraKey", [](Json&, Json& m) { m["extra"] = 1; }, "unknown key 'extra'"},
      {"ModuleAbsent", [](Json&, Json& m) { m.erase("module"); }, "module"},
      {"ModuleNumber", [](Json&, Json& m) { m["module"] = 1; }, "'module' must be a string"},
      {"ModuleLong", [](Json&, Json& m) { m["module"] = long201; }, "'module' is too long"},
      {"ModuleNul", [](Json&, Json& m) { m["module"] = std::string("a\0b", 3); }, "'module' holds a NUL"},
      {"ModuleNewline", [](Json&, Json& m) { m["module"] = "a\nb"; }, "control characters"},
      {"ModuleEscape", [](Json&, Json& m) { m["module"] = "\x1b[31m"; }, "control characters"},
      {"KindAbsent", [](Json&, Json& m) { m.erase("kind"); }, "kind"},
      {"KindLong", [](Json&, Json& m) { m["kind"] = std::string(41, 'k'); }, "'kind' is too long"},
      {"KindDelete", [](Json&, Json& m) { m["kind"] = "a\x7f"; }, "control characters"},
      {"PolicyAbsent", [](Json&, Json& m) { m.erase("policy"); }, "policy"},
      {"PolicyString", [](Json&, Json& m) { m["policy"] = "{}"; }, "'policy' must be an object"},
      {"PolicyNull", [](Json&, Json& m) { m["policy"] = nullptr; }, "'policy' must be an object"},
      {"HashAbsent", [](Json&, Json& m) { m.erase("policy_sha256"); }, "policy_sha256"},
      {"HashShort", [](Json&, Json& m) { m["policy_sha256"] = std::string(63, '0'); }, "64 hex digits"},
      {"HashUpper", [](Json&, Json& m) { m["policy_sha256"] = std::string(64, 'A'); }, "64 hex digits"},
      {"HashLong", [](Json&, Json& m) { m["policy_sha256"] = std::string(65, '0'); }, "policy_sha256"},
      {"FilterAbsent", [](Json&, Json& m) { m.erase("filter"); }, "filter"},
      {"FilterLong", [](Json&, Json& m) { m["filter"] = long65; }, "'filter' is too long"},
      {"ProbeAbsent", [](Json&, Json& m) { m.erase("probe"); }, "probe"},
      {"ProbeShort", [](Json&, Json& m) { m["probe"] = std::string(30, '0'); }, "32 hex digits"},
      {"ProbeLong", [](Json&, Json& m) { m["probe"] = std::string(34, '0'); }, "probe"},
      {"ProbeNoHex", [](Json&, Json& m) { m["probe"] = std::string(32, 'g'); }, "32 hex digits"},
      {"GrantAbsent", [](Json&, Json& m) { m.erase("grant"); }, "grant"},
      {"GrantString", [](Json&, Json& m) { m["grant"] = "all"; }, "grant"},
      {"GrantNull", [](Json&, Json& m) { m["grant"] = nullptr; }, "grant"},
      {"GrantExtraKey", [](Json&, Json& m) { m["grant"]["unix_any"] = true; }, "unix_any"},
      {"NetAbsent", [](Json&, Json& m) { m["grant"].erase("net"); }, "net"},
      {"NetUnknown", [](Json&, Json& m) { m["grant"]["net"] = "all"; }, "'net' is no known mode"},
      {"NetNumber", [](Json&, Json& m) { m["grant"]["net"] = 1; }, "'net'"},
      {"NetAny",
       [](Json&, Json& m) {
         m["grant"]["net"] = "egress-any";
         m["grant"].erase("proxy");
       },
       "egress-any"},
      {"NetHostWithProxy", [](Json&, Json& m) { m["grant"]["net"] = "host"; }, "proxy"},
      {"NetNoneWithProxy", [](Json&, Json& m) { m["grant"]["net"] = "none"; }, "proxy"},
      {"AllowlistWithoutProxy", [](Json&, Json& m) { m["grant"].erase("proxy"); }, "proxy"},
      {"CookieAbsent", [](Json&, Json& m) { m["grant"].erase("netns_cookie"); }, "netns_cookie"},
      {"CookieNegative", [](Json&, Json& m) { m["grant"]["netns_cookie"] = -1; }, "netns_cookie"},
      {"CookieReal", [](Json&, Json& m) { m["grant"]["netns_cookie"] = 1.5; }, "netns_cookie"},
      {"CheckNetnsNumber", [](Json&, Json& m) { m["grant"]["check_netns"] = 0; }, "check_netns"},
      {"ApprovalsString", [](Json&, Json& m) { m["grant"]["audit_approvals"] = "no"; }, "audit_approvals"},
      {"IdentityTrue", [](Json&, Json& m) { m["grant"]["broker_identity"] = true; }, "broker_identity"},
      {"RefusedTcpUnknown", [](Json&, Json& m) { m["grant"]["refused_tcp"] = "EPERM"; }, "refused_tcp"},
      {"RefusedTcpNumber", [](Json&, Json& m) { m["grant"]["refused_tcp"] = 13; }, "refused_tcp"},
      {"ProxyString", [](Json&, Json& m) { m["grant"]["proxy"] = "127.0.0.1:3128"; }, "grant.proxy"},
      {"ProxyNoAddress", [](Json&, Json& m) { m["grant"]["proxy"].erase("addr"); }, "addr"},
      {"ProxyAnyAddress", [](Json&, Json& m) { m["grant"]["proxy"]["addr"] = "0.0.0.0"; }, "'addr' must be"},
      {"ProxyOtherLoopback", [](Json&, Json& m) { m["grant"]["proxy"]["addr"] = "127.0.0.2"; },
       "'addr' must be"},
      {"ProxyMapped", [](Json&, Json& m) { m["grant"]["proxy"]["addr"] = "::ffff:127.0.0.1"; }, "'addr'"},
      {"ProxyName", [](Json&, Json& m) { m["grant"]["proxy"]["addr"] = "localhost"; }, "'addr'"},
      {"PortAbsent", [](Json&, Json& m) { m["grant"]["proxy"].erase("port"); }, "port"},
      {"PortZero", [](Json&, Json& m) { m["grant"]["proxy"]["port"] = 0; }, "port"},
      {"PortAbove", [](Json&, Json& m) { m["grant"]["proxy"]["port"] = 65536; }, "port"},
      {"PortWraps", [](Json&, Json& m) { m["grant"]["proxy"]["port"] = 4294970424; }, "port"},
      {"PortNegative", [](Json&, Json& m) { m["grant"]["proxy"]["port"] = -1; }, "port"},
      {"PortReal", [](Json&, Json& m) { m["grant"]["proxy"]["port"] = 3128.0; }, "port"},
      {"PortString", [](Json&, Json& m) { m["grant"]["proxy"]["port"] = "3128"; }, "port"},
      {"ProxyExtraKey", [](Json&, Json& m) { m["grant"]["proxy"]["ports"] = 1; }, "unknown key 'ports'"},
      {"BrokerString", [](Json&, Json& m) { m["grant"]["broker"] = "/run/b"; }, "grant.broker"},
      {"BrokerNoName", [](Json&, Json& m) { m["grant"]["broker"].erase("name"); }, "name"},
      {"BrokerNoResolved", [](Json&, Json& m) { m["grant"]["broker"].erase("resolved"); }, "resolved"},
      {"BrokerRelative", [](Json&, Json& m) { m["grant"]["broker"]["resolved"] = "run/b"; }, "absolute"},
      {"BrokerNameRelative", [](Json&, Json& m) { m["grant"]["broker"]["name"] = "b"; }, "absolute"},
      {"BrokerEmpty", [](Json&, Json& m) { m["grant"]["broker"]["resolved"] = ""; }, "absolute"},
      {"BrokerAbstract", [](Json&, Json& m) { m["grant"]["broker"]["resolved"] = std::string("\0abc", 4); },
       "NUL"},
      {"BrokerNulInside", [](Json&, Json& m) { m["grant"]["broker"]["resolved"] = std::string("/a\0b", 4); },
       "NUL"},
      {"BrokerTooLong", [](Json&, Json& m) { m["grant"]["broker"]["resolved"] = path108; }, "too long"},
      {"BrokerNameTooLong", [](Json&, Json& m) { m["grant"]["broker"]["name"] = path108; }, "too long"},
      {"BrokerExtraKey", [](Json&, Json& m) { m["grant"]["broker"]["fd"] = 3; }, "unknown key 'fd'"},
  };
  return wrong;
}

class WrongAdmission : public ::testing::TestWithParam<Wrong> {};
TEST_P(WrongAdmission, IsRefusedWithASentenceThatNamesIt) {
  const auto decoded = Decode(Changed(GetParam().change));
  ASSERT_FALSE(decoded);
  EXPECT_EQ(decoded.error().code, EPROTO);
  EXPECT_NE(std::string(decoded.error().detail).find(GetParam().text), std::string::npos)
      << decoded.error().detail;
}
INSTANTIATE_TEST_SUITE_P(Wire, WrongAdmission, ::testing::ValuesIn(WrongOnes()),
                         [](const auto& wrong) { return wrong.param.name; });

TEST(WireAdmission, TheUnchangedSampleIsAccepted) {
  // The twin of all that is wrong above.
  const auto decoded = Decode(Changed([](Json&, Json&) {}));
  ASSERT_TRUE(decoded) << decoded.error().Message();
  ExpectSame(Sample(), *decoded);
}

struct WrongText {
  const char* name;
  std::string text;
  const char* part;
};
std::ostream& operator<<(std::ostream& out, const WrongText& wrong) { return out << wrong.name; }

std::vector<WrongText> WrongTexts() {
  const std::string good = Encode(Sample());
  std::string twice = good;
  twice.replace(0, 1, R"({"pid":1,)");
  std::string twice_inside = good;
  const size_t at = twice_inside.find(R"(\"filter\")");
  twice_inside.insert(at, R"(\"module\":\"b\",)");
  std::string twice_in_grant = good;
  twice_in_grant.insert(twice_in_grant.find(R"(\"netns_cookie\")"), R"(\"net\":\"none\",)");
  std::string escaped = good;
  escaped.insert(escaped.find(R"(\"filter\")"), R"(\"m\\u006fdule\":\"b\",)");
  return {
      {"Empty", "", "not valid JSON"},
      {"Blank", " \n", "not valid JSON"},
      {"Garbage", std::string("\xff\xfe\x00\x01", 4), "not valid JSON"},
      {"Binary", std::string(4096, '\0'), "not valid JSON"},
      {"Array", "[" + good + "]", "not a JSON object"},
      {"String", "\"seccompFd\"", "not a JSON object"},
      {"Null", "null", "not a JSON object"},
      {"Truncated", good.substr(0, good.size() - 1), "not valid JSON"},
      {"TruncatedInString", good.substr(0, good.size() / 2), "not valid JSON"},
      {"Trailing", good + "x", "not valid JSON"},
      {"TwoObjects", good + good, "not valid JSON"},
      {"TrailingNul", good + std::string(1, '\0'), "not valid JSON"},
      {"NulHidesText", good + std::string(1, '\0') + good, "not valid JSON"},
      {"NulHidesTextInMetadata", R"({"fds":["seccompFd"],"metadata":"{}\u0000{\"oarlock\":2}"})",
       "metadata: not valid JSON"},
      {"InvalidUtf8", R"({"fds":["seccompFd"],"metadata":"a)" + std::string("\xff") + "\"}",
       "not valid JSON"},
      {"DuplicateKey", twice, "'pid' stands twice"},
      {"DuplicateKeyInMetadata", twice_inside, "'module' stands twice"},
      {"DuplicateKeyEscaped", escaped, "'module' stands twice"},
      {"DuplicateKeyInGrant", twice_in_grant, "'net' stands twice"},
      {"MetadataTruncated", R"({"fds":["seccompFd"],"metadata":"{\"oarlock\":1"})",
       "metadata: not valid JSON"},
      {"MetadataTrailing", R"({"fds":["seccompFd"],"metadata":"{} {}"})", "metadata: not valid JSON"},
      {"DeepEnvelope",
       R"({"x":)" + std::string(30, '[') + std::string(30, ']') + R"(,"fds":["seccompFd"],"metadata":"a"})",
       "nested too deeply"},
      {"DeepWithoutEnd", std::string(100000, '['), ""},
      {"DeepObjects",
       [] {
         std::string text;
         for (int i = 0; i < 10000; ++i) text += "{\"a\":";
         return text;
       }(),
       ""},
  };
}

class WrongMessage : public ::testing::TestWithParam<WrongText> {};
TEST_P(WrongMessage, IsRefusedWithASentenceThatNamesIt) {
  const auto decoded = Decode(GetParam().text);
  ASSERT_FALSE(decoded);
  EXPECT_EQ(decoded.error().code, EPROTO);
  EXPECT_NE(std::string(decoded.error().detail).find(GetParam().part), std::string::npos)
      << decoded.error().detail;
}
INSTANTIATE_TEST_SUITE_P(Wire, WrongMessage, ::testing::ValuesIn(WrongTexts()),
                         [](const auto& wrong) { return wrong.param.name; });

TEST(WireAdmission, AVersionThatOnlyLooksLikeOursIsRefused) {
  for (const char* version : {"1.0", "1e0", "10e-1"}) {
    std::string message = Encode(Sample());
    const std::string from = R"(\"oarlock\":1)";
    message.replace(message.find(from), from.size(), std::string(R"(\"oarlock\":)") + version);
    EXPECT_FALSE(Decode(message)) << version;
  }
}

TEST(WireAdmission, AnotherVersionIsNamedBesideOurs) {
  const auto decoded = Decode(Changed([](Json&, Json& m) { m["oarlock"] = 7; }));
  ASSERT_FALSE(decoded);
  const std::string text = decoded.error().detail;
  EXPECT_NE(text.find("version 7"), std::string::npos) << text;
  EXPECT_NE(text.find("version 1"), std::string::npos) << text;
}

TEST(WireAdmission, TextsOfTheMessageAreQuotedAsOnePrintableLine) {
  for (const char* key : {"a\nb", "\x1b[2J", "\xc2\x9b"}) {
    const auto decoded = Decode(Changed([key](Json&, Json& m) { m[key] = 1; }));
    ASSERT_FALSE(decoded);
    for (const char c : std::string_view(decoded.error().detail))
      EXPECT_TRUE(c >= 0x20 && c < 0x7f) << decoded.error().detail;
  }
  const auto decoded =
      Decode(Changed([](Json& s, Json&) { s["fds"] = {"seccompFd", std::string(5000, 'x') + "\n"}; }));
  ASSERT_FALSE(decoded);
  EXPECT_LT(std::string_view(decoded.error().detail).size(), 160U);
}

// The envelope is the OCI's and may grow; what we do not use does not count.
TEST(WireAdmission, TheEnvelopeMayHoldMore) {
  const auto decoded = Decode(Changed([](Json& s, Json&) {
    s["ociVersion"] = "9.9.9";
    s["annotations"] = {{"a", {1, 2, 3}}};
    s["state"] = nullptr;
  }));
  ASSERT_TRUE(decoded) << decoded.error().Message();
  ExpectSame(Sample(), *decoded);
  const auto without_pid = Decode(Changed([](Json& s, Json&) { s.erase("pid"); }));
  ASSERT_TRUE(without_pid);
  EXPECT_EQ(without_pid->pid, 0);
}

TEST(WireAdmission, AGrantsNameComesAlone) {
  for (const char* name : {"render", "a", "Render-1.2_x"}) {
    const auto decoded = Decode(Changed([name](Json& s, Json&) { s["metadata"] = name; }));
    ASSERT_TRUE(decoded) << name;
    EXPECT_EQ(decoded->grant_name, name);
    EXPECT_EQ(decoded->grant.net, NetMode::kNone);
    EXPECT_FALSE(decoded->grant.has_broker());
    EXPECT_FALSE(decoded->grant.has_proxy());
  }
}

TEST(WireAdmission, LabelsMayFillTheirRoom) {
  Admission admission = Sample();
  admission.module = std::string(200, 'm');
  admission.kind = std::string(40, 'k');
  admission.filter = std::string(64, 'f');
  admission.grant.broker_name = admission.grant.broker_resolved = "/" + std::string(106, 'b');
  const auto decoded = Decode(Encode(admission));
  ASSERT_TRUE(decoded) << decoded.error().Message();
  ExpectSame(admission, *decoded);
  admission.module = admission.kind = admission.filter = "";
  const auto empty = Decode(Encode(admission));
  ASSERT_TRUE(empty);
  ExpectSame(admission, *empty);
}

// --- sizes and depth ---------------------------------------------------------------------------------------

std::string OfSize(size_t size) {
  Admission admission = Sample();
  admission.policy_json = R"({"x-pad":""})";
  const size_t bare = Encode(admission).size();
  admission.policy_json = R"({"x-pad":")" + std::string(size - bare, 'p') + R"("})";
  return Encode(admission);
}

TEST(WireAdmission, IsOf128KiBAtMost) {
  for (const size_t size : {kMaxMessageBytes - 1, kMaxMessageBytes}) {
    const std::string message = OfSize(size);
    ASSERT_EQ(message.size(), size);
    EXPECT_TRUE(Decode(message)) << size;
  }
  for (const size_t size : {kMaxMessageBytes + 1, kMaxMessageBytes * 2}) {
    const std::string message = OfSize(size);
    ASSERT_EQ(message.size(), size);
    const auto decoded = Decode(message);
    ASSERT_FALSE(decoded);
    EXPECT_NE(std::string(decoded.error().detail).find("128 KiB"), std::string::npos);
  }
}

TEST(WireAdmission, ThePolicyMayNestAsDeepAsAPolicyFile) {
  const auto nested = [](int levels) {
    Admission admission = Sample();
    admission.policy_json = R"({"x-deep":)" + std::string(static_cast<size_t>(levels), '[') +
                            std::string(static_cast<size_t>(levels), ']') + "}";
    return Encode(admission);
  };
  EXPECT_TRUE(Decode(nested(15)));  // sixteen levels with the object around them
  const auto deep = Decode(nested(40));
  ASSERT_FALSE(deep);
  EXPECT_NE(std::string(deep.error().detail).find("deep"), std::string::npos) << deep.error().detail;
}

// --- random bytes ------------------------------------------------------------------------------------------

TEST(WireAdmission, NoMutationCrashesTheDecoder) {
  std::mt19937_64 random(kSeed + 1);
  const std::string good = Encode(Sample());
  constexpr std::string_view kPieces[] = {"{",
                                          "}",
                                          "[",
                                          "]",
                                          "\"",
                                          "\\\"",
                                          ":",
                                          ",",
                                          "null",
                                          "true",
                                          "-1",
                                          "1e999",
                                          "18446744073709551616",
                                          "\\\\u0000",
                                          "\\u0000",
                                          "seccompFd"};
  int accepted = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string message = good;
    for (uint64_t changes = 1 + random() % 4; changes > 0; --changes) {
      const size_t at = random() % (message.size() + 1);
      switch (random() % 5) {
        case 0:
          if (at < message.size()) message[at] = static_cast<char>(random());
          break;
        case 1:
          message.erase(at, random() % 8);
          break;
        case 2:
          message.insert(at, kPieces[random() % std::size(kPieces)]);
          break;
        case 3:
          message.insert(at, message.substr(random() % message.size(), random() % 64));
          break;
        default:
          if (at < message.size()) message[at] = static_cast<char>(message[at] ^ (1 << random() % 8));
      }
      if (message.empty()) message = "{";
    }
    const auto decoded = Decode(message);
    if (!decoded) {
      ASSERT_EQ(decoded.error().code, EPROTO);
      ASSERT_NE(decoded.error().detail[0], '\0') << message;
      continue;
    }
    // What is accepted keeps every promise that the supervisor builds on.
    ++accepted;
    if (!decoded->grant_name.empty()) continue;
    const Grant& grant = decoded->grant;
    ASSERT_EQ(grant.net == NetMode::kEgressAllowlist, grant.proxy_port != 0) << message;
    ASSERT_TRUE(grant.net == NetMode::kNone || grant.net == NetMode::kEgressAllowlist) << message;
    if (grant.has_broker()) {
      ASSERT_TRUE(grant.broker_resolved.starts_with('/') && grant.broker_resolved.size() < 108) << message;
      ASSERT_EQ(grant.broker_resolved.find('\0'), std::string::npos) << message;
    }
    ASSERT_TRUE(grant.refused_tcp_error == EACCES || grant.refused_tcp_error == ENETUNREACH ||
                grant.refused_tcp_error == ECONNREFUSED);
    ASSERT_LE(decoded->module.size(), 200U);
    const auto again = Decode(Encode(*decoded));
    ASSERT_TRUE(again) << message;
    ExpectSame(*decoded, *again);
  }
  // The mutations are gentle enough to get past the JSON parser, too.
  EXPECT_GT(accepted, 100);
}

TEST(WireAdmission, NoBytesCrashTheDecoders) {
  std::mt19937_64 random(kSeed + 2);
  for (int i = 0; i < 5000; ++i) {
    std::string bytes(random() % 300, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random());
    if (i % 3 == 0 && !bytes.empty()) bytes[0] = '{';
    EXPECT_FALSE(Decode(bytes));
    EXPECT_FALSE(DecodeAnswer(bytes));
    (void)DecodePrepared(bytes);
  }
}

// --- answers -----------------------------------------------------------------------------------------------

TEST(WireAnswer, SurvivesTheRoundTrip) {
  const std::string line =
      Encode(Answer{.ok = true, .session = "01JQ00000000000000000000AB", .code = {}, .error = {}});
  EXPECT_EQ(line, "{\"ok\":true,\"session\":\"01JQ00000000000000000000AB\"}\n");
  const auto ok = DecodeAnswer(line);
  ASSERT_TRUE(ok);
  EXPECT_TRUE(ok->ok);
  EXPECT_EQ(ok->session, "01JQ00000000000000000000AB");

  for (const std::string& text :
       {std::string("no"), std::string("a \"quoted\"\nline\t\x01"), std::string(2000, 'e')}) {
    const std::string refusal = Encode(Answer{.ok = false, .session = {}, .code = "K_NOTIFY", .error = text});
    EXPECT_EQ(refusal.find('\n'), refusal.size() - 1) << "one line";
    const auto no = DecodeAnswer(refusal);
    ASSERT_TRUE(no);
    EXPECT_FALSE(no->ok);
    EXPECT_EQ(no->code, "K_NOTIFY");
    EXPECT_EQ(no->error, text);
  }
}

TEST(WireAnswer, WrongOnesAreRefused) {
  for (const char* text :
       {"",
        "\n",
        "ok",
        "[]",
        "null",
        "true",
        "{}",
        R"({"ok":1})",
        R"({"ok":"true"})",
        R"({"ok":null})",
        R"({"ok":true})",
        R"({"ok":true,"session":1})",
        R"({"ok":true,"session":null})",
        R"({"ok":false})",
        R"({"ok":false,"code":"K_NOTIFY"})",
        R"({"ok":false,"error":"x"})",
        R"({"ok":false,"code":"K_NOTIFY","error":7})",
        R"({"ok":true,"session":"a","extra":1})",
        R"({"ok":false,"ok":true,"session":"a"})",
        R"({"ok":true,"session":"a"}x)",
        R"({"ok":true,"session":"a")",
        R"({"ok":true,"session":"0123456789012345678901234567890123456789012345678901234567890123456789"})",
        R"({"cgroup":"/a"})"})
    EXPECT_FALSE(DecodeAnswer(text)) << text;
}

TEST(WirePrepared, SurvivesTheRoundTrip) {
  EXPECT_EQ(Encode(Prepared{}), "{}\n");
  const auto none = DecodePrepared("{}\n");
  ASSERT_TRUE(none);
  EXPECT_EQ(none->cgroup, "");
  for (const std::string& path : {std::string("/sys/fs/cgroup/oarlock/c1/run"), std::string(4095, '/')}) {
    const auto prepared = DecodePrepared(Encode(Prepared{path}));
    ASSERT_TRUE(prepared);
    EXPECT_EQ(prepared->cgroup, path);
  }
}

TEST(WirePrepared, WrongOnesAreRefused) {
  for (const char* text : {"", "[]", "null", "1", R"({"cgroup":1})", R"({"cgroup":null})",
                           R"({"cgroup":"/a","x":1})", R"({"cgroup":"/a","cgroup":"/b"})",
                           R"({"cgroup":"a\u0000b"})", R"({"ok":false,"code":"K_NOTIFY","error":"no"})"})
    EXPECT_FALSE(DecodePrepared(text)) << text;
  EXPECT_FALSE(DecodePrepared(R"({"cgroup":")" + std::string(4096, 'a') + "\"}"));
}

TEST(WirePrepared, TheLineIsTheOneOfThePage) {
  EXPECT_EQ(kPrepareLine, "{\"oarlock\":1,\"prepare\":true}\n");
  // It is no admission by itself.
  EXPECT_FALSE(Decode(kPrepareLine));
}

}  // namespace
}  // namespace oarlock::wire
