// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <sstream>

#include "policy/names.h"
#include "policy/policy.h"
#include "tests/policy/bad_policies.h"

// Properties over many policies: what Emit writes Parse reads back, whatever the order and the spaces of the
// original; and no damage to a policy's bytes ever makes Parse grant what the bytes do not say.
namespace oarlock::policy {
namespace {

using Json = nlohmann::ordered_json;

class Generator {
 public:
  explicit Generator(uint64_t seed) : random_(seed) {}

  // The members of a random sound policy, in a random order.
  Json Members() {
    Json policy = Json::object();
    const auto maybe = [&](const char* name, auto make) {
      if (Below(2) == 0) policy[name] = make();
    };
    maybe("version", [] { return 1; });
    maybe("profile", [] { return "module"; });
    maybe("enforce", [] { return "strict"; });
    maybe("require",
          [&] { return Some(std::vector<std::string_view>(Capabilities().begin(), Capabilities().end())); });
    maybe("module", [&] { return Text(); });
    maybe("kind", [&] { return Text(); });
    maybe("exe", [&] { return OrNull(Path()); });
    for (const char* name : {"ro", "rw", "rd", "wo", "gpu_devices"}) maybe(name, [&] { return Paths(); });
    maybe("roots", [&] { return Roots(); });
    maybe("base_system", [&] { return Coin(); });
    Execution(&policy);
    maybe("write_defaults", [&] { return Coin(); });
    maybe("deny_paths", [] { return Json::array(); });
    Network(&policy);
    maybe("proxy_addr", [&] { return Pick<const char*>({"127.0.0.1", "::1"}); });
    for (const char* name : {"http_rules", "net_allow_private", "tls_intercept", "inject", "unix_allow"})
      maybe(name, [] { return Json::array(); });
    maybe("broker_socket", [&] { return OrNull(Path()); });
    maybe("gpu", [&] { return Pick<Json>({true, false, "none", "compute"}); });
    maybe("limits", [&] {
      Json limits = Json::object();
      if (Coin()) limits["nofile"] = 16 + Below(1'000'000);
      if (Coin()) limits["swap_gb"] = Pick<Json>({0, 0.0, -0.0});
      if (Coin()) limits["hard"] = false;
      return limits;
    });
    maybe("cgroup", [] { return nullptr; });
    maybe("supervisor", [&] { return OrNull(Coin() ? Path() : "fd:" + std::to_string(3 + Below(1000))); });
    maybe("sysv_ipc", [&] { return Coin(); });
    maybe("run_as", [&] { return OrNull(Json{{"uid", Below(4294967295)}, {"gid", Below(4294967295)}}); });
    maybe("mediation", [&] { return Pick<const char*>({"full", "connect"}); });
    for (const char* name : {"local_unix", "local_tcp", "netlink_route"}) maybe(name, [] { return "none"; });
    maybe("refuse_with", [&] {
      Json refuse = Json::object();
      if (Coin()) refuse["tcp"] = Pick<const char*>({"EACCES", "ENETUNREACH", "ECONNREFUSED"});
      return refuse;
    });
    maybe("broker_identity", [] { return false; });
    for (const char* name : {"audit_approvals", "pty", "log_denials"}) maybe(name, [&] { return Coin(); });
    maybe("tty", [&] { return Pick<const char*>({"inherit", "none"}); });
    maybe("shm", [&] { return Pick<const char*>({"host", "none"}); });
    maybe("env", [&] { return Env(); });
    maybe("keep_fds", [&] {
      Json fds = Json::array();
      for (uint64_t i = Below(4); i > 0; --i) fds.push_back(3 + Below(1000));
      return fds;
    });
    maybe("report", [&] { return OrNull(Path()); });
    maybe("x-note", [&] { return Json{{"net", "host"}, {"list", {1, 2.5, nullptr, Text()}}}; });
    return policy;
  }

  // The same JSON with the members of every object in another order, in other white space.
  std::string Spell(const Json& value) {
    return Space() +
           (value.is_object()  ? SpellObject(value)
            : value.is_array() ? SpellList(value)
                               : value.dump(-1, ' ', Coin())) +
           Space();
  }

  uint64_t Below(uint64_t bound) { return std::uniform_int_distribution<uint64_t>(0, bound - 1)(random_); }

 private:
  bool Coin() { return Below(2) == 0; }
  template <typename Value>
  Value Pick(std::initializer_list<Value> values) {
    return *(values.begin() + Below(values.size()));
  }
  Json OrNull(Json value) { return Coin() ? std::move(value) : Json(nullptr); }
  std::string Text() {
    static const std::vector<std::string> kParts = {
        "a", "B", "9", " ", ".", "\"", "\\", "/", "\xc3\xa9", "\xf0\x9f\x98\x80", "~", "\xe2\x80\xae"};
    std::string text;
    for (uint64_t i = Below(8); i > 0; --i) text += kParts[Below(kParts.size())];
    return text;
  }
  std::string Path() { return Pick<const char*>({"/", "/srv/", "/srv/../", "//x/./"}) + Text(); }
  Json Paths() {
    Json paths = Json::array();
    for (uint64_t i = Below(4); i > 0; --i) paths.push_back(Path());
    return paths;
  }
  Json Some(std::vector<std::string_view> words) {
    std::ranges::shuffle(words, random_);
    words.resize(Below(words.size() + 1));
    return words;
  }
  Json Roots() {
    Json roots = Json::array();
    for (uint64_t i = Below(3); i > 0; --i) {
      Json root{{"path", Path()},
                {"rights", {kRights[Below(kRights.size())].name, kRights[Below(kRights.size())].name}}};
      if (Coin()) root["optional"] = Coin();
      roots.push_back(root);
    }
    return roots;
  }
  void Execution(Json* policy) {
    const bool exec_rw = Coin();
    if (Coin()) (*policy)["exec_rw"] = exec_rw;
    if (Coin()) (*policy)["exec_writable"] = exec_rw;
    const bool said = exec_rw && (policy->contains("exec_rw") || policy->contains("exec_writable"));
    if (Coin()) (*policy)["exec_strict"] = said ? false : Coin();
  }
  void Network(Json* policy) {
    switch (Below(4)) {
      case 0:
        (*policy)["net"] = "egress-allowlist";
        (*policy)["proxy_port"] = 1 + Below(65535);
        break;
      case 1:
        (*policy)["net"] = "egress-any";
        break;
      case 2:
        (*policy)["net"] = "none";
        (*policy)["proxy_port"] = nullptr;
        break;
      default:
        break;
    }
  }
  Json Env() {
    Json env = Json::object();
    if (Coin()) env["keep"] = OrNull({"PATH", "A" + std::to_string(Below(9))});
    if (Coin()) {
      env["set"] = Json::object();
      for (uint64_t i = Below(4); i > 0; --i) env["set"]["V" + std::to_string(Below(9))] = Text() + "\n\t=";
    }
    return env;
  }

  std::string Space() {
    std::string space;
    for (uint64_t i = Below(3); i > 0; --i) space += Pick({' ', '\n', '\t', '\r'});
    return space;
  }
  std::string SpellObject(const Json& value) {
    std::vector<std::string> keys;
    for (const auto& [key, item] : value.items()) keys.push_back(key);
    std::ranges::shuffle(keys, random_);
    std::string text = "{";
    for (const std::string& key : keys)
      text += (text.size() > 1 ? "," : "") + Space() + Json(key).dump(-1, ' ', Coin()) + Space() + ":" +
              Spell(value.at(key));
    return text + "}";
  }
  std::string SpellList(const Json& value) {
    std::string text = "[";
    for (const auto& item : value) text += (text.size() > 1 ? "," : "") + Spell(item);
    return text + "]";
  }

  std::mt19937_64 random_;
};

TEST(RoundTrip, R_MO_28_ParseOfEmitIsThePolicy) {
  Generator generator(20240611);
  for (int i = 0; i < 1500; ++i) {
    const Json members = generator.Members();
    const std::string text = generator.Spell(members);
    const auto policy = Parse(text);
    ASSERT_TRUE(policy) << text << "\n" << policy.error().Line();
    EXPECT_TRUE(Lint(text).empty()) << text;

    const std::string emitted = Emit(*policy);
    const auto again = Parse(emitted);
    ASSERT_TRUE(again) << emitted << "\n" << again.error().Line();
    ASSERT_EQ(*again, *policy) << emitted;
    ASSERT_EQ(Emit(*again), emitted);
    EXPECT_EQ(emitted.find('\n'), std::string::npos);
    // An object of nlohmann::json keeps its keys sorted: the same bytes mean sorted keys at every level.
    ASSERT_EQ(nlohmann::json::parse(emitted).dump(), emitted);

    const auto respelt = Parse(generator.Spell(members));
    ASSERT_TRUE(respelt);
    ASSERT_EQ(*respelt, *policy) << "order or white space changed the meaning of " << text;
    ASSERT_EQ(Emit(*respelt), emitted);
  }
}

// What is not built cannot come out of Parse; Emit must write it all the same, for the day it can.
TEST(RoundTrip, EmitWritesWhatIsNotBuiltYet) {
  Policy policy;
  policy.profile = Profile::kWriteAllowlist;
  policy.enforce = Enforce::kBestEffort;
  policy.allow_write = {"/w"};
  policy.net = NetMode::kEgressAllowlist;
  policy.net_allow = {"*.a.org:8443"};
  policy.http_rules = {"deny GET x.a.org/"};
  policy.net_allow_private = {"x.a.org"};
  policy.tls_intercept = {"y.a.org"};
  policy.inject = {{"x.a.org", "Authorization", "env:T"}};
  policy.unix_allow = {"/u.sock"};
  policy.limits = {.cpu = 0.25,
                   .mem_gb = 1.5,
                   .swap_gb = 0.1,
                   .pids = 7,
                   .nofile = 64,
                   .connects_per_second = 3,
                   .hard = true};
  policy.cgroup = "/sys/fs/cgroup/x";
  policy.seccomp =
      Seccomp{"SCMP_ACT_ERRNO",
              1,
              {"SCMP_ARCH_X86_64"},
              {"SECCOMP_FILTER_FLAG_LOG"},
              {{{"read"}, "SCMP_ACT_ERRNO", 13, {{1, 18446744073709551615U, 2, "SCMP_CMP_MASKED_EQ"}}}}};
  policy.local_unix = policy.local_tcp = policy.netlink_route = Local::kOwn;
  policy.broker_identity = true;
  const auto emitted = nlohmann::json::parse(Emit(policy));
  const auto expected =
      nlohmann::json::parse(R"({"profile":"write-allowlist","enforce":"best-effort","allow_write":["/w"],
    "net_allow":["*.a.org:8443"],"http_rules":["deny GET x.a.org/"],"net_allow_private":["x.a.org"],"tls_intercept":["y.a.org"],
    "inject":[{"host":"x.a.org","header":"Authorization","from":"env:T"}],"unix_allow":["/u.sock"],
    "limits":{"cpu":0.25,"mem_gb":1.5,"swap_gb":0.1,"pids":7,"nofile":64,"connects_per_second":3,"hard":true},
    "cgroup":"/sys/fs/cgroup/x","seccomp":{"defaultAction":"SCMP_ACT_ERRNO","defaultErrnoRet":1,"architectures":["SCMP_ARCH_X86_64"],
    "flags":["SECCOMP_FILTER_FLAG_LOG"],"syscalls":[{"names":["read"],"action":"SCMP_ACT_ERRNO","errnoRet":13,
    "args":[{"index":1,"value":18446744073709551615,"valueTwo":2,"op":"SCMP_CMP_MASKED_EQ"}]}]},
    "local_unix":"own","local_tcp":"own","netlink_route":"own","broker_identity":true})");
  for (const auto& [key, value] : expected.items()) EXPECT_EQ(emitted.at(key), value) << key;
  // Only what is not built is wrong with it: no rule of the page is.
  for (const Problem& problem : Lint(Emit(policy)))
    EXPECT_EQ(problem.code, Code::kUnsupported) << problem.Line();
}

TEST(RoundTrip, EmitOfBytesThatAreNoTextIsRefusedByParse) {
  Policy policy;
  policy.ro = {"/a\xff"};
  const auto result = Parse(Emit(policy));
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, Code::kJson);
}

// --- damage
// ----------------------------------------------------------------------------------------------------------

std::set<std::string> StringsOf(const Json& policy, const std::string& key) {
  std::set<std::string> strings;
  if (policy.contains(key) && policy[key].is_array())
    for (const Json& item : policy[key]) strings.insert(item.get<std::string>());
  return strings;
}

// Every key below `value` stands in the parser's table. `prefix` is as in FieldInfo::name.
void ExpectKnownKeys(const Json& value, const std::string& prefix, const std::set<std::string>& known,
                     const std::string& text) {
  if (value.is_array())
    for (const Json& item : value) ExpectKnownKeys(item, prefix + "[]", known, text);
  if (!value.is_object() || prefix == "env.set") return;
  for (const auto& [key, item] : value.items()) {
    if (prefix.empty() && key.starts_with("x-")) continue;
    const std::string name = prefix.empty() ? key : prefix + "." + key;
    EXPECT_TRUE(known.contains(name)) << "accepted with the unknown key " << name << ": " << text;
    ExpectKnownKeys(item, name, known, text);
  }
}

// What a sound policy grants must be said by the text, as another parser reads it.
void ExpectGrantsNoMoreThanItSays(const Policy& policy, const std::string& text,
                                  const std::set<std::string>& known) {
  const Json said = Json::parse(text, nullptr, false);
  ASSERT_TRUE(said.is_object()) << text;
  ExpectKnownKeys(said, "", known, text);
  const auto lists =
      std::vector<std::pair<const char*, const std::vector<std::string>*>>{{"ro", &policy.ro},
                                                                           {"rw", &policy.rw},
                                                                           {"rd", &policy.rd},
                                                                           {"wo", &policy.wo},
                                                                           {"allow_write", &policy.allow_write},
                                                                           {"require", &policy.require}};
  for (const auto& [name, list] : lists) {
    const auto strings = StringsOf(said, name);
    EXPECT_EQ(std::set<std::string>(list->begin(), list->end()), strings) << text;
  }
  const bool module = said.value("profile", "module") == "module";
  EXPECT_EQ(policy.profile == Profile::kModule, module) << text;
  EXPECT_EQ(std::string(oarlock::Name(policy.net)), said.value("net", module ? "none" : "host")) << text;
  EXPECT_EQ(policy.exec_rw, said.value("exec_rw", false) || said.value("exec_writable", false)) << text;
  EXPECT_EQ(policy.base_system, said.value("base_system", module)) << text;
  EXPECT_EQ(policy.sysv_ipc, said.value("sysv_ipc", !module)) << text;
  EXPECT_EQ(policy.pty, said.value("pty", !module)) << text;
  const auto text_of = [&](const char* key) {
    return said.contains(key) && said[key].is_string() ? std::optional(said[key].get<std::string>())
                                                       : std::nullopt;
  };
  EXPECT_EQ(policy.broker_socket, text_of("broker_socket")) << text;
  EXPECT_EQ(policy.exe, text_of("exe")) << text;
  const bool port = said.contains("proxy_port") && said["proxy_port"].is_number();
  EXPECT_EQ(policy.proxy_port.has_value(), port) << text;
  EXPECT_EQ(policy.proxy_port.value_or(0), port ? said["proxy_port"].get<int64_t>() : 0) << text;
  EXPECT_EQ(policy.roots.size(), said.contains("roots") ? said["roots"].size() : 0) << text;
}

std::string Damage(std::string text, Generator* random) {
  static constexpr std::string_view kBytes = "{}[]\",:0123456789.-+eEtrufalsn\\/x \n\t~*";
  for (uint64_t edits = random->Below(4) == 0 ? 3 : 1; edits > 0 && !text.empty(); --edits) {
    const size_t at = random->Below(text.size());
    switch (random->Below(6)) {
      case 0:
        text[at] = static_cast<char>(random->Below(256));
        break;
      case 1:
        text[at] = kBytes[random->Below(kBytes.size())];
        break;
      case 2:
        text.erase(at, 1 + random->Below(8));
        break;
      case 3:
        text.insert(at, 1, kBytes[random->Below(kBytes.size())]);
        break;
      case 4:
        text.insert(at, text.substr(random->Below(text.size()), random->Below(24)));
        break;
      default:
        text.resize(at);
        break;
    }
  }
  return text;
}

TEST(Damage, R_MO_28_NeverGrantsMoreThanTheBytesSay) {
  std::set<std::string> known;
  for (const FieldInfo& field : Fields()) known.insert(std::string(field.name));
  // Mostly sound ones: damage that makes a wrong policy sound is rare.
  std::vector<std::string> seeds;
  Generator generator(42);
  for (const auto& bad : testing::kBadPolicies) {
    seeds.emplace_back(bad.text);
    seeds.push_back(generator.Members().dump());
    if (!bad.twin.empty()) seeds.insert(seeds.end(), 2, std::string(bad.twin));
  }

  int accepted = 0;
  for (int i = 0; i < 25'000; ++i) {
    const std::string text = Damage(seeds[generator.Below(seeds.size())], &generator);
    const auto policy = Parse(text);
    const auto problems = Lint(text);
    ASSERT_EQ(policy.has_value(), problems.empty()) << text;
    if (!policy) {
      ASSERT_EQ(policy.error(), problems.front()) << text;
      for (const Problem& problem : problems)
        for (const char c : problem.Line()) ASSERT_TRUE(c >= 0x20 && c < 0x7f) << problem.Line();
      continue;
    }
    ++accepted;
    ExpectGrantsNoMoreThanItSays(*policy, text, known);
    const auto again = Parse(Emit(*policy));
    ASSERT_TRUE(again) << text;
    ASSERT_EQ(*again, *policy) << text;
    (void)Warnings(*policy);
    if (HasFailure()) return;
  }
  // The test says nothing if damage is always fatal.
  EXPECT_GT(accepted, 200);
}

}  // namespace
}  // namespace oarlock::policy
