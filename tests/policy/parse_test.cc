// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <fstream>
#include <set>
#include <sstream>

#include "notif/abi/landlock.h"
#include "policy/names.h"
#include "policy/policy.h"
#include "tests/policy/bad_policies.h"

namespace oarlock::policy {
namespace {

using testing::BadPolicy;
using testing::kBadPolicies;

std::string TestData(const std::string& name) {
  std::ifstream in(OARLOCK_SOURCE_DIR "/tests/policy/testdata/" + name, std::ios::binary);
  EXPECT_TRUE(in) << name;
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

// What a caller shows of a problem, for EXPECT_EQ.
std::string Outcome(const Checked<Policy>& result) {
  return result ? "sound" : std::string(Name(result.error().code)) + " " + result.error().pointer;
}

Policy MustParse(std::string_view text) {
  auto result = Parse(text);
  EXPECT_TRUE(result) << text << "\n" << (result ? "" : result.error().Line());
  return result.value_or(Policy{});
}

bool IsOneLine(const std::string& line) {
  return line.size() < 2600 && std::ranges::all_of(line, [](char c) { return c >= 0x20 && c < 0x7f; });
}

TEST(BadPolicies, AreManyAndNamedOnce) {
  EXPECT_GE(kBadPolicies.size(), 120U);
  std::set<std::string> names;
  for (const BadPolicy& bad : kBadPolicies) EXPECT_TRUE(names.insert(bad.name).second) << bad.name;
}

TEST(BadPolicies, R_MO_37_GiveTheirCodeAndPointer) {
  for (const BadPolicy& bad : kBadPolicies) {
    const auto result = Parse(bad.text);
    const std::string wanted = std::string(Name(bad.code)) + " " + bad.pointer;
    EXPECT_EQ(Outcome(result), wanted) << bad.name << ": " << bad.text << "\n"
                                       << (result ? "" : result.error().Line());
  }
}

TEST(BadPolicies, R_MO_26_HaveSoundTwins) {
  std::set<std::string> fields, with_twin;
  for (const BadPolicy& bad : kBadPolicies) {
    const std::string pointer(bad.pointer);
    const std::string field = pointer.substr(0, pointer.find('/', 1));
    fields.insert(field);
    if (bad.twin.empty()) continue;
    with_twin.insert(field);
    const auto result = Parse(bad.twin);
    EXPECT_TRUE(result) << bad.name << ": " << bad.twin << "\n" << (result ? "" : result.error().Line());
  }
  // No field is only ever seen refused, but for those that take nothing until they are built.
  for (const FieldInfo& info : Fields()) {
    const std::string pointer = "/" + std::string(info.name);
    if (info.built && fields.contains(pointer)) EXPECT_TRUE(with_twin.contains(pointer)) << info.name;
  }
}

TEST(BadPolicies, AreToldInOneClearLine) {
  for (const BadPolicy& bad : kBadPolicies) {
    const auto problems = Lint(bad.text);
    ASSERT_FALSE(problems.empty()) << bad.name;
    EXPECT_EQ(problems.front(), Parse(bad.text).error()) << bad.name;
    EXPECT_LE(problems.size(), kMaxProblems);
    for (const Problem& problem : problems) {
      EXPECT_TRUE(IsOneLine(problem.Line())) << bad.name << ": " << problem.Line();
      EXPECT_GE(problem.text.size(), 8U) << bad.name << ": " << problem.Line();
    }
  }
}

TEST(Policy, DefaultsOfModule) {
  const Policy policy = MustParse("{}");
  Policy expected;
  expected.limits.nofile = 4096;
  EXPECT_EQ(policy, expected);
  EXPECT_EQ(policy.profile, Profile::kModule);
  EXPECT_EQ(policy.enforce, Enforce::kStrict);
  EXPECT_EQ(policy.kind, "runner");
  EXPECT_TRUE(policy.base_system);
  EXPECT_TRUE(policy.exec_strict);
  EXPECT_EQ(policy.net, NetMode::kNone);
  EXPECT_FALSE(policy.sysv_ipc);
  EXPECT_EQ(policy.mediation, Mediation::kFull);
  EXPECT_EQ(policy.tty, Tty::kNone);
  EXPECT_FALSE(policy.pty);
  EXPECT_EQ(policy.shm, Shm::kNone);
  EXPECT_EQ(policy.refuse_tcp_error, EACCES);
  EXPECT_FALSE(policy.env.keep);
  EXPECT_FALSE(policy.keep_fds);
  EXPECT_TRUE(policy.log_denials);
}

TEST(Policy, R_OB_12_TheAgentsOwnPolicyLoadsUnchanged) {
  const Policy policy = MustParse(TestData("sdk_policy.json"));
  EXPECT_EQ(policy.module, "dev.acme.render");
  EXPECT_EQ(policy.ro, (std::vector<std::string>{"/srv/b/1a2b", "/srv/py312"}));
  EXPECT_EQ(policy.rw, (std::vector<std::string>{"/srv/w/81", "/srv/d/render", "/srv/w/81/tmp"}));
  EXPECT_EQ(policy.rd, std::vector<std::string>{"/srv/in"});
  EXPECT_EQ(policy.wo, std::vector<std::string>{"/srv/out"});
  EXPECT_EQ(policy.net, NetMode::kEgressAllowlist);
  EXPECT_EQ(policy.proxy_port, 41873);
  EXPECT_EQ(policy.broker_socket, "/run/node/broker-81.sock");
  EXPECT_EQ(policy.exe, "/srv/py312/bin/python3");
  EXPECT_EQ(policy.kind, "runner");
  EXPECT_FALSE(policy.gpu);
  EXPECT_FALSE(policy.exec_rw);
  EXPECT_EQ(MustParse(Emit(policy)), policy);
}

TEST(Policy, R_OB_12_TheAgentsNullsAreAbsent) {
  const Policy policy = MustParse(TestData("sdk_policy_nulls.json"));
  EXPECT_EQ(policy, MustParse("{}"));
  EXPECT_EQ(MustParse(Emit(policy)), policy);
}

TEST(Policy, NullIsAbsentOnlyWhereTheTableSaysSo) {
  const std::set<std::string_view> nullable = {"exe",        "proxy_port", "broker_socket",
                                               "unix_allow", "cgroup",     "supervisor",
                                               "run_as",     "report",     "env.keep"};
  for (const FieldInfo& field : Fields()) {
    EXPECT_EQ(field.null_is_absent, nullable.contains(field.name)) << field.name;
    if (field.name.find_first_of(".[") != std::string_view::npos) continue;
    const std::string text = "{\"" + std::string(field.name) + "\":null}";
    const auto result = Parse(text);
    if (field.null_is_absent) {
      EXPECT_TRUE(result) << text;
      EXPECT_EQ(result.value_or(Policy{}), MustParse("{}")) << text;
    } else {
      EXPECT_EQ(Outcome(result), "P_TYPE /" + std::string(field.name)) << text;
    }
  }
}

TEST(Policy, TheExampleOfThePageLoadsButForWhatIsNotBuilt) {
  const std::string text = TestData("render.json");
  const Policy policy = MustParse(text);
  EXPECT_TRUE(policy.gpu);
  EXPECT_EQ(policy.require, (std::vector<std::string>{"ipc", "net.destination"}));

  const auto problems = Lint(
      R"({"version":1,"module":"dev.acme.render","ro":["/srv/b/1a2b","/srv/py312","/opt/jdk17"],"rw":["/srv/w/81","/srv/d/render"],
 "exe":"/srv/py312/bin/python3","net":"egress-allowlist","proxy_port":41873,"broker_socket":"/run/node/broker-81.sock","gpu":"compute",
 "limits":{"cpu":4,"mem_gb":8,"hard":true},"require":["ipc","net.destination"]})");
  std::vector<std::string> pointers;
  for (const Problem& problem : problems) {
    EXPECT_EQ(problem.code, Code::kUnsupported);
    pointers.push_back(problem.pointer);
  }
  EXPECT_EQ(pointers, (std::vector<std::string>{"/limits/cpu", "/limits/mem_gb", "/limits/hard"}));
}

TEST(Policy, EveryFieldThatIsBuiltIsRead) {
  const Policy policy = MustParse(R"({
    "version": 1, "profile": "module", "enforce": "strict", "require": ["children", "audit"], "module": "m", "kind": "cli",
    "exe": "/e", "ro": ["/1"], "rw": ["/2"], "rd": ["/3"], "wo": ["/4"],
    "roots": [{"path": "/5", "rights": ["read_file", "ioctl_dev"], "optional": true}, {"path": "/6", "rights": ["execute"]}],
    "base_system": false, "exec_rw": true, "write_defaults": false, "deny_paths": [], "net": "egress-allowlist",
    "proxy_port": 8080, "proxy_addr": "::1", "broker_socket": "/b.sock", "gpu": true, "gpu_devices": ["/dev/x"],
    "limits": {"nofile": 64, "swap_gb": 0, "hard": false}, "cgroup": null, "supervisor": "fd:7", "sysv_ipc": true,
    "run_as": {"uid": 5, "gid": 6}, "mediation": "connect", "local_unix": "none", "refuse_with": {"tcp": "ECONNREFUSED"},
    "broker_identity": false, "audit_approvals": true, "tty": "inherit", "env": {"keep": ["PATH"], "set": {"B": "2", "A": "1"}},
    "pty": true, "shm": "host", "keep_fds": [3, 9], "log_denials": false, "report": "/r.json"})");
  Policy expected;
  expected.require = {"children", "audit"};
  expected.module = "m";
  expected.kind = "cli";
  expected.exe = "/e";
  expected.ro = {"/1"};
  expected.rw = {"/2"};
  expected.rd = {"/3"};
  expected.wo = {"/4"};
  expected.roots = {{"/5", abi::kFsReadFile | abi::kFsIoctlDev, true, ""},
                    {"/6", abi::kFsExecute, false, ""}};
  expected.base_system = false;
  expected.exec_rw = true;
  expected.exec_strict = false;
  expected.write_defaults = false;
  expected.net = NetMode::kEgressAllowlist;
  expected.proxy_port = 8080;
  expected.proxy_addr = ProxyAddress::kLoopback6;
  expected.broker_socket = "/b.sock";
  expected.gpu = true;
  expected.gpu_devices = {"/dev/x"};
  expected.limits.nofile = 64;
  expected.supervisor = "fd:7";
  expected.sysv_ipc = true;
  expected.run_as = Identity{5, 6};
  expected.mediation = Mediation::kConnect;
  expected.refuse_tcp_error = ECONNREFUSED;
  expected.audit_approvals = true;
  expected.tty = Tty::kInherit;
  expected.env.keep = {"PATH"};
  expected.env.set = {{"A", "1"}, {"B", "2"}};
  expected.pty = true;
  expected.shm = Shm::kHost;
  expected.keep_fds = {3, 9};
  expected.log_denials = false;
  expected.report = "/r.json";
  EXPECT_EQ(policy, expected);
  EXPECT_EQ(policy.roots[1].pointer, "/roots/1");
}

TEST(Policy, RootsKnowLandlocksSixteenRights) {
  std::string list;
  for (const auto& right : kRights) list += (list.empty() ? "\"" : ",\"") + std::string(right.name) + "\"";
  const Policy policy = MustParse(R"({"roots":[{"path":"/a","rights":[)" + list + "]}]}");
  EXPECT_EQ(policy.roots.at(0).rights, 0xffffU);
}

TEST(Policy, PathsAreCheckedInFormOnly) {
  const Policy policy =
      MustParse(R"({"ro":["/","//a//b/","/a/./b/../c","/no/such/place","/glob/*.txt","/caf\u00e9","/a b"]})");
  EXPECT_EQ(policy.ro, (std::vector<std::string>{"/", "//a//b/", "/a/./b/../c", "/no/such/place",
                                                 "/glob/*.txt", "/caf\xc3\xa9", "/a b"}));
}

TEST(Policy, PathsMayHave4095Bytes) {
  const std::string longest = "/" + std::string(4094, 'a');
  EXPECT_TRUE(Parse(R"({"ro":[")" + longest + R"("]})"));
  EXPECT_EQ(Outcome(Parse(R"({"ro":[")" + longest + R"(b"]})")), "P_PATH /ro/0");
}

TEST(Policy, LabelsMayHave200Bytes) {
  const std::string label(200, 'm');
  EXPECT_TRUE(Parse(R"({"module":")" + label + "\"}"));
  EXPECT_EQ(Outcome(Parse(R"({"module":")" + label + "m\"}")), "P_RANGE /module");
  // Bytes, not characters: what carries it further is a fixed array.
  std::string accents;
  for (int i = 0; i < 101; ++i) accents += "\xc3\xa9";
  EXPECT_EQ(Outcome(Parse(R"({"module":")" + accents + "\"}")), "P_RANGE /module");
}

TEST(Policy, AWritableRootMayHoldProgramsByEitherName) {
  EXPECT_TRUE(MustParse(R"({"exec_writable":true})").exec_rw);
  EXPECT_FALSE(MustParse(R"({"exec_writable":true})").exec_strict);
  EXPECT_FALSE(MustParse(R"({"exec_writable":false})").exec_rw);
  EXPECT_TRUE(MustParse(R"({"exec_writable":false})").exec_strict);
  EXPECT_FALSE(MustParse(R"({"exec_strict":false})").exec_strict);
}

TEST(Policy, GpuTakesBothSpellings) {
  EXPECT_TRUE(MustParse(R"({"gpu":"compute"})").gpu);
  EXPECT_FALSE(MustParse(R"({"gpu":"none"})").gpu);
  EXPECT_TRUE(MustParse(R"({"gpu":true})").gpu);
}

// The launcher answers it, with the report's `unavailable`.
TEST(Policy, EgressAnyIsAPolicyStill) {
  EXPECT_EQ(MustParse(R"({"net":"egress-any"})").net, NetMode::kEgressAny);
}

TEST(Policy, EverythingBelowAnXKeyIsIgnored) {
  EXPECT_EQ(MustParse(R"({"x-":1,"x-a":{"net":"host","b":[null,{"c":1e3}]},"x-net":"host"})"),
            MustParse("{}"));
}

TEST(Policy, SuggestsTheNearestName) {
  const std::vector<std::pair<const char*, const char*>> cases = {
      {R"({"nett":"none"})", "did you mean \"net\"?"},
      {R"({"porxy_port":1})", "did you mean \"proxy_port\"?"},
      {R"({"nofile":64})", "did you mean limits.nofile?"},
      {R"({"gup":true})", "did you mean \"gpu\"?"},
      {R"({"Exec_RW":true})", "did you mean \"exec_rw\"?"},
      {R"({"limits":{"nofiles":64}})", "did you mean \"nofile\"?"},
      {R"({"limits":{"memgb":64}})", "did you mean \"mem_gb\"?"},
      {R"({"pids":64})", "did you mean limits.pids?"},
      {R"({"roots":[{"path":"/a","rights":["execute"],"right":[]}]})", "did you mean \"rights\"?"},
      {R"({"net":"egress_allowlist"})", "did you mean \"egress-allowlist\"?"},
      {R"({"profile":"writeallowlist"})", "did you mean \"write-allowlist\"?"},
      {R"({"require":["net.no_loopback"]})", "did you mean \"no_loopback\"?"},
      {R"({"roots":[{"path":"/a","rights":["readdir"]}]})", "did you mean \"read_dir\"?"},
  };
  for (const auto& [text, hint] : cases) {
    const auto result = Parse(text);
    ASSERT_FALSE(result) << text;
    EXPECT_NE(result.error().text.find(hint), std::string::npos) << text << "\n" << result.error().Line();
  }
  const auto far = Parse(R"({"frobnicate":1})");
  ASSERT_FALSE(far);
  EXPECT_EQ(far.error().text.find("did you mean"), std::string::npos) << far.error().Line();
}

TEST(Policy, MessagesNameEveryWordThatIsAccepted) {
  const auto check = [](std::string_view field, const auto& names) {
    const std::string text = "{\"" + std::string(field) + "\":\"???\"}";
    const auto result = Parse(text);
    ASSERT_FALSE(result) << text;
    for (const auto& row : names)
      EXPECT_NE(result.error().text.find("\"" + std::string(row.name) + "\""), std::string::npos)
          << result.error().Line();
  };
  check("profile", kProfiles);
  check("enforce", kEnforces);
  check("net", kNets);
  check("proxy_addr", kProxyAddresses);
  check("mediation", kMediations);
  check("local_unix", kLocals);
  check("local_tcp", kLocals);
  check("netlink_route", kLocals);
  check("tty", kTtys);
  check("shm", kShms);
  check("gpu", kGpus);
}

TEST(Policy, R_MO_21_DenyPathsSaysWhatToDoInstead) {
  for (const char* text : {R"({"deny_paths":["/a"]})", R"({"enforce":"best-effort","deny_paths":["/a"]})",
                           R"({"profile":"write-allowlist","deny_paths":["/a"]})"}) {
    const auto result = Parse(text);
    ASSERT_FALSE(result) << text;
    EXPECT_EQ(Outcome(result), "P_UNSUPPORTED /deny_paths") << text;
    EXPECT_NE(result.error().text.find("allowlist-only"), std::string::npos) << result.error().Line();
    EXPECT_NE(result.error().text.find("narrow"), std::string::npos) << result.error().Line();
  }
}

TEST(Policy, EveryFieldThatIsNotBuiltIsRefusedBySaying) {
  const std::vector<std::pair<const char*, const char*>> cases = {
      {"net_allow", R"({"net":"egress-allowlist","net_allow":["*.a.org:8443","b.org"]})"},
      {"http_rules",
       R"({"net":"egress-allowlist","net_allow":["*.a.org","b.org"],"http_rules":["allow * x.a.org/v1/*","deny GET b.org/"]})"},
      {"net_allow_private",
       R"({"net":"egress-allowlist","net_allow":["*.a.org"],"net_allow_private":["x.A.org"]})"},
      {"tls_intercept", R"({"net":"egress-allowlist","net_allow":["a.org"],"tls_intercept":["a.org"]})"},
      {"inject",
       R"({"net":"egress-allowlist","net_allow":["a.org"],"inject":[{"host":"a.org","header":"Authorization","from":"env:T"},
                 {"host":"a.org","header":"X-A","from":"file:/t"},{"host":"a.org","header":"X-B","from":"fd:9"}]})"},
      {"unix_allow", R"({"profile":"write-allowlist","unix_allow":["/run/x.sock"]})"},
      {"limits.cpu", R"({"limits":{"cpu":0.01}})"},
      {"limits.mem_gb", R"({"limits":{"mem_gb":8}})"},
      {"limits.swap_gb", R"({"limits":{"swap_gb":0.5}})"},
      {"limits.pids", R"({"limits":{"pids":1}})"},
      {"limits.connects_per_second", R"({"limits":{"connects_per_second":1}})"},
      {"limits.hard", R"({"limits":{"hard":true,"pids":1}})"},
      {"cgroup", R"({"cgroup":"/sys/fs/cgroup/x"})"},
      {"seccomp",
       R"({"seccomp":{"defaultAction":"SCMP_ACT_ERRNO","defaultErrnoRet":1,"architectures":["SCMP_ARCH_X86_64"],
                   "flags":["SECCOMP_FILTER_FLAG_LOG"],"syscalls":[{"names":["read","openat"],"action":"SCMP_ACT_ALLOW"},
                   {"names":["socket"],"action":"SCMP_ACT_ERRNO","errnoRet":13,"args":[{"index":0,"value":18446744073709551615,
                   "valueTwo":2,"op":"SCMP_CMP_MASKED_EQ"}]}]}})"},
      {"local_unix", R"({"local_unix":"own"})"},
      {"local_tcp", R"({"local_tcp":"own"})"},
      {"netlink_route", R"({"netlink_route":"own"})"},
      {"broker_identity", R"({"broker_identity":true})"},
  };
  std::set<std::string_view> covered;
  for (const auto& [name, text] : cases) {
    covered.insert(name);
    std::string pointer = "/" + std::string(name);
    std::ranges::replace(pointer, '.', '/');
    const auto problems = Lint(text);
    bool told = false;
    for (const Problem& problem : problems) {
      EXPECT_EQ(problem.code, Code::kUnsupported) << text << "\n" << problem.Line();
      if (problem.pointer != pointer) continue;
      told = true;
      EXPECT_NE(problem.text.find("not built yet"), std::string::npos) << problem.Line();
    }
    EXPECT_TRUE(told) << name;
  }
  for (const FieldInfo& field : Fields()) {
    const bool inner = field.name.starts_with("inject[].") || field.name.starts_with("seccomp.");
    EXPECT_TRUE(field.built || inner || covered.contains(field.name)) << field.name;
    EXPECT_FALSE(field.built && inner) << field.name;
  }
}

TEST(Policy, TheStrictestValueOfWhatIsNotBuiltIsAccepted) {
  for (const char* text :
       {R"({"profile":"module"})", R"({"enforce":"strict"})", R"({"http_rules":[]})",
        R"({"net_allow_private":[]})", R"({"tls_intercept":[]})", R"({"inject":[]})", R"({"unix_allow":[]})",
        R"({"limits":{"swap_gb":0,"hard":false}})",
        R"({"local_unix":"none","local_tcp":"none","netlink_route":"none"})", R"({"broker_identity":false})"})
    EXPECT_TRUE(Parse(text)) << text;
}

// A variable that is set to next to nothing must not start a run that looks confined.
TEST(Policy, FromTheEnvironmentTheProfileMustBeSaid) {
  EXPECT_EQ(Outcome(Parse("{}", true)), "P_CONFLICT /profile");
  EXPECT_EQ(Outcome(Parse("", true)), "P_JSON ");
  EXPECT_EQ(Outcome(Parse("not json", true)), "P_JSON ");
  EXPECT_EQ(Outcome(Parse(R"({"allow_write":["/workspace"]})", true)), "P_CONFLICT /allow_write");
  EXPECT_EQ(Outcome(Parse(R"({"deny_paths":["/a"]})", true)), "P_UNSUPPORTED /deny_paths");
  const auto policy = Parse(R"({"profile":"module"})", true);
  ASSERT_TRUE(policy);
  EXPECT_EQ(policy->enforce, Enforce::kBestEffort);
  EXPECT_EQ(Parse(R"({"profile":"module"})")->enforce, Enforce::kStrict);
  EXPECT_EQ(Parse(R"({"profile":"module","enforce":"strict"})", true)->enforce, Enforce::kStrict);
}

TEST(Policy, AMisreadFieldCausesNoSecondComplaint) {
  EXPECT_EQ(Lint(R"({"net":"egress-alowlist","proxy_port":1})").size(), 1U);
  EXPECT_EQ(Lint(R"({"proxy_port":0,"net":"egress-allowlist"})").size(), 1U);
  EXPECT_EQ(Lint(R"({"profile":"modul","allow_write":["/a"],"ro":["/b"]})").size(),
            1U);
  EXPECT_EQ(Lint(R"({"exec_rw":"yes","exec_strict":true})").size(), 1U);
}

TEST(Lint, FindsEverythingInOrder) {
  const auto problems = Lint(
      R"({"local_tcp":"own","ro":["a","/b",1],"nett":1,"shm":"x","limits":{"nofile":1,"cpus":2},"net":"host"})");
  std::vector<std::string> told;
  for (const Problem& problem : problems)
    told.push_back(std::string(Name(problem.code)) + " " + problem.pointer);
  EXPECT_EQ(told, (std::vector<std::string>{"P_PATH /ro/0", "P_TYPE /ro/2", "P_UNKNOWN /nett", "P_RANGE /shm",
                                            "P_RANGE /limits/nofile", "P_UNKNOWN /limits/cpus",
                                            "P_CONFLICT /net", "P_UNSUPPORTED /local_tcp"}));
}

TEST(Lint, DuplicatesComeFirstAndTheFirstOfThemIsJudged) {
  const auto problems = Lint(R"({"shm":"x","net":"none","net":"host"})");
  ASSERT_EQ(problems.size(), 2U);
  EXPECT_EQ(problems[0].Line(), "P_DUPKEY /net: the key stands twice in this object; keep one");
  EXPECT_EQ(problems[1].pointer, "/shm");
}

TEST(Lint, StopsAtAHundred) {
  std::string text = "{";
  for (int i = 0; i < 500; ++i) text += "\"unknown_" + std::to_string(i) + "\":1,";
  text += "\"net\":\"none\"}";
  const auto problems = Lint(text);
  ASSERT_EQ(problems.size(), kMaxProblems);
  EXPECT_EQ(problems.back().pointer, "/unknown_99");
}

TEST(Json, SaysWhere) {
  EXPECT_EQ(Parse("{\n \"ro\": [1,\n  nope]}").error().text.substr(0, 30), "not JSON at line 3, column 4: ");
  EXPECT_EQ(Parse("{}\n x").error().text.substr(0, 28), "not JSON at line 2, column 2");
  EXPECT_EQ(Parse(std::string_view("{}\n\0", 4)).error().text, "a NUL byte at line 2, column 1");
  const std::string deep = "{\"x-a\":\n" + std::string(16, '[');
  EXPECT_EQ(Parse(deep).error().text, "nested deeper than 16 levels at line 2, column 16");
}

TEST(Json, AHostileKeyStaysInItsLine) {
  const auto result = Parse("{\"\\u001b]0;title\\u0007\\n\\u0000/\\u202e\": 1}");
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, Code::kUnknown);
  EXPECT_TRUE(IsOneLine(result.error().Line())) << result.error().Line();
  EXPECT_EQ(result.error().pointer, std::string("/\x1b]0;title\x07\n\0~1\xe2\x80\xae", 18));

  const auto longest = Parse("{\"" + std::string(900'000, 'k') + "\": 1}");
  ASSERT_FALSE(longest);
  EXPECT_LT(longest.error().Line().size(), 900U);
}

TEST(Json, ReadsOneMebibyteAndNotAByteMore) {
  std::string text = R"({"module":"edge","x-pad":")";
  text += std::string(kMaxFileBytes - text.size() - 2, 'p') + "\"}";
  ASSERT_EQ(text.size(), kMaxFileBytes);
  EXPECT_EQ(MustParse(text).module, "edge");
  text += ' ';
  EXPECT_EQ(Outcome(Parse(text)), "P_READ ");
  EXPECT_EQ(Outcome(Parse(std::string(kMaxFileBytes, ' '))), "P_JSON ");
}

// A file of the size that is read, made to be slow or deep, costs no more than a moment.
TEST(Json, AHostileMebibyteIsRefusedQuickly) {
  std::vector<std::string> texts;
  texts.emplace_back(kMaxFileBytes, '[');
  texts.emplace_back(kMaxFileBytes, '"');
  std::string text = "{\"x-a\":[0";
  while (text.size() < kMaxFileBytes - 8) text += ",0";
  texts.push_back(text + "],\"a\":1}");
  text = "{";
  for (int i = 0; text.size() < kMaxFileBytes - 40; ++i) text += "\"profle" + std::to_string(i) + "\":1,";
  texts.push_back(text + "\"b\":1}");
  text = "{";
  while (text.size() < kMaxFileBytes - 40) text += "\"a\":1,";
  texts.push_back(text + "\"b\":1}");
  text = "{\"ro\":[";
  while (text.size() < kMaxFileBytes - 40) text += "\"a\",";
  texts.push_back(text + "\"b\"]}");
  text = "{";
  for (int i = 0; text.size() < kMaxFileBytes - 400; ++i) {
    text += "\"x-" + std::to_string(i) + "\":[{\"a\":";
    text += std::string(12, '[') + std::string(12, ']') + "}],";
  }
  texts.push_back(text + "\"b\":1}");
  for (const std::string& hostile : texts) {
    const auto start = std::chrono::steady_clock::now();
    EXPECT_FALSE(Parse(hostile)) << hostile.substr(0, 60);
    EXPECT_LE(Lint(hostile).size(), kMaxProblems);
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20)) << hostile.substr(0, 60);
  }
}

TEST(Names, EveryCodeHasItsOwn) {
  std::set<std::string_view> names;
  for (auto code = static_cast<unsigned>(Code::kRead); code <= static_cast<unsigned>(Code::kKUnsupported);
       ++code)
    EXPECT_TRUE(names.insert(Name(static_cast<Code>(code))).second);
  EXPECT_EQ(names.size(), 19U);
  EXPECT_EQ(Name(Code::kUnsupported), "P_UNSUPPORTED");
  EXPECT_EQ(Name(Code::kKUnsupported), "K_UNSUPPORTED");
}

TEST(Names, CapabilitiesAreTheReportsKeys) {
  const std::set<std::string_view> names(Capabilities().begin(), Capabilities().end());
  EXPECT_EQ(names.size(), Capabilities().size());
  for (const char* key : {"filesystem",         "ipc",           "net.none",      "net.egress-allowlist",
                          "net.egress-any",     "no_loopback",   "no_link_local", "gpu.compute",
                          "exec_writable_deny", "folders.read",  "folders.write", "exec_writable_deny.mmap",
                          "net.destination",    "unix.pathname", "sysv_ipc",      "metadata_writes",
                          "cgroup.limits",      "cgroup.kill",   "children",      "audit"})
    EXPECT_TRUE(names.contains(key)) << key;
  EXPECT_EQ(names.size(), 20U);
}

TEST(Grant, SaysWhatThePolicyAsks) {
  const Policy policy = MustParse(
      R"({"net":"egress-allowlist","proxy_port":3128,"proxy_addr":"::1","broker_socket":"/var/run/b.sock",
          "audit_approvals":true,"refuse_with":{"tcp":"ENETUNREACH"}})");
  const Grant grant = ToGrant(policy, "/run/b.sock");
  EXPECT_EQ(grant.net, NetMode::kEgressAllowlist);
  EXPECT_EQ(grant.proxy_address, ProxyAddress::kLoopback6);
  EXPECT_EQ(grant.proxy_port, 3128);
  EXPECT_EQ(grant.broker_name, "/var/run/b.sock");
  EXPECT_EQ(grant.broker_resolved, "/run/b.sock");
  EXPECT_EQ(grant.refused_tcp_error, ENETUNREACH);
  EXPECT_TRUE(grant.audit_approvals);
  EXPECT_FALSE(grant.broker_identity);
  EXPECT_EQ(grant.netns_cookie, 0U);
  EXPECT_FALSE(grant.check_netns);
  EXPECT_TRUE(grant.has_proxy());
  EXPECT_TRUE(grant.has_broker());
  EXPECT_FALSE(ToGrant(MustParse("{}"), "").has_broker());
  EXPECT_FALSE(ToGrant(MustParse("{}"), "").has_proxy());
}

}  // namespace
}  // namespace oarlock::policy
