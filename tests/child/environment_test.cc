// SPDX-License-Identifier: Apache-2.0
#include "child/environment.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace oarlock::child {
namespace {

using Strings = std::vector<std::string>;

Strings Make(const policy::Policy& policy, const Strings& inherited) {
  std::vector<char*> entries;
  for (const std::string& entry : inherited) entries.push_back(const_cast<char*>(entry.c_str()));
  entries.push_back(nullptr);
  return MakeEnvironment(policy, entries.data());
}

std::string Value(const Strings& environment, const std::string& name) {
  int times = 0;
  std::string value = "absent";
  for (const std::string& entry : environment)
    if (entry.starts_with(name + "=")) {
      value = entry.substr(name.size() + 1);
      ++times;
    }
  EXPECT_LE(times, 1) << name;
  return value;
}

policy::Policy WithProxy(uint16_t port) {
  policy::Policy policy;
  policy.net = NetMode::kEgressAllowlist;
  policy.proxy_port = port;
  return policy;
}

TEST(MakeEnvironment, KeepsEverythingInOrder) {
  const Strings inherited = {
      "B=2", "A=1", "EMPTY=", "EQUALS=a=b=c", "PATH=/bin", "OARBANK_BROKER=unix:/run/b"};
  EXPECT_EQ(Make({}, inherited), inherited);
  EXPECT_EQ(Make({}, {}), Strings{});
}

TEST(MakeEnvironment, DropsTheLaunchersOwn) {
  const Strings inherited = {"OARBANK_CONFINED=9",
                             "MOAT_SANDBOX_POLICY={}",
                             "OARLOCK_SUPERVISOR=/run/x",
                             "OARLOCK_=1",
                             "OARLOCK_EXEC_STATUS=8",
                             "OARLOCK_ANYTHING=1",
                             "KEPT=1"};
  EXPECT_EQ(Make({}, inherited), Strings{"KEPT=1"});
  // Names that only begin alike are nobody's.
  const Strings alike = {"OARBANK_CONFINED_TOO=1", "XOARLOCK_SUPERVISOR=1", "OARLOCK=1",
                         "oarlock_supervisor=1", "MOAT_SANDBOX_POLICY2=1"};
  EXPECT_EQ(Make({}, alike), alike);
}

TEST(MakeEnvironment, DropsThemAlsoWhereTheyAreKeptByName) {
  policy::Policy policy;
  policy.env.keep = Strings{"OARLOCK_SUPERVISOR", "OARBANK_CONFINED", "MOAT_SANDBOX_POLICY", "A"};
  EXPECT_EQ(Make(policy, {"OARLOCK_SUPERVISOR=/x", "OARBANK_CONFINED=3", "MOAT_SANDBOX_POLICY={}", "A=1"}),
            Strings{"A=1"});
}

TEST(MakeEnvironment, KeepsWhatThePolicyNames) {
  policy::Policy policy;
  policy.env.keep = Strings{"PATH", "ABSENT", "LANG"};
  EXPECT_EQ(Make(policy, {"LANG=C", "HOME=/root", "PATH=/bin", "PATHS=x", "path=y"}),
            (Strings{"LANG=C", "PATH=/bin"}));
  policy.env.keep = Strings{};
  EXPECT_EQ(Make(policy, {"A=1", "LD_PRELOAD=/x"}), Strings{});
}

TEST(MakeEnvironment, SetsWhatThePolicySets) {
  policy::Policy policy;
  policy.env.set = {{"A", "new"}, {"B", ""}, {"C", "a=b\nc"}};
  EXPECT_EQ(Make(policy, {"Z=1", "A=old", "Y=2"}), (Strings{"Z=1", "A=new", "Y=2", "B=", "C=a=b\nc"}));
  policy.env.keep = Strings{};
  EXPECT_EQ(Make(policy, {"Z=1", "A=old"}), (Strings{"A=new", "B=", "C=a=b\nc"}));
}

TEST(MakeEnvironment, ANameStandsOnce) {
  const Strings environment = Make({}, {"A=1", "B=2", "A=3", "A=4"});
  EXPECT_EQ(
      std::ranges::count_if(environment, [](const std::string& entry) { return entry.starts_with("A="); }),
      1);
  EXPECT_EQ(environment.size(), 2U);
}

TEST(MakeEnvironment, EntriesWithoutAValueGo) { EXPECT_EQ(Make({}, {"NOVALUE", "A=1", ""}), Strings{"A=1"}); }

TEST(MakeEnvironment, SetsTheProxysVariables) {
  const Strings environment =
      Make(WithProxy(3128), {"A=1", "http_proxy=http://elsewhere:1", "HTTPS_PROXY=socks5://x"});
  for (const char* name :
       {"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"})
    EXPECT_EQ(Value(environment, name), "http://127.0.0.1:3128") << name;
  EXPECT_EQ(Value(environment, "NODE_USE_ENV_PROXY"), "1");
  EXPECT_EQ(Value(environment, "A"), "1");
}

TEST(MakeEnvironment, TheProxysAddressMayBeIpv6) {
  policy::Policy policy = WithProxy(65535);
  policy.proxy_addr = ProxyAddress::kLoopback6;
  EXPECT_EQ(Value(Make(policy, {}), "HTTPS_PROXY"), "http://[::1]:65535");
}

TEST(MakeEnvironment, NoProxyGoes) {
  for (const char* name : {"NO_PROXY", "no_proxy"}) {
    EXPECT_EQ(Value(Make(WithProxy(1), {std::string(name) + "=localhost"}), name), "absent");
    policy::Policy kept = WithProxy(1);
    kept.env.keep = Strings{name};
    EXPECT_EQ(Value(Make(kept, {std::string(name) + "=localhost"}), name), "absent");
    policy::Policy set = WithProxy(1);
    set.env.set = {{name, "10.0.0.0/8"}};
    EXPECT_EQ(Value(Make(set, {std::string(name) + "=localhost"}), name), "10.0.0.0/8");
  }
}

TEST(MakeEnvironment, ThePolicysOwnProxyVariablesStand) {
  policy::Policy policy = WithProxy(3128);
  policy.env.set = {{"ALL_PROXY", "socks5h://127.0.0.1:3128"}, {"NODE_USE_ENV_PROXY", "0"}};
  const Strings environment = Make(policy, {});
  EXPECT_EQ(Value(environment, "ALL_PROXY"), "socks5h://127.0.0.1:3128");
  EXPECT_EQ(Value(environment, "NODE_USE_ENV_PROXY"), "0");
  EXPECT_EQ(Value(environment, "HTTP_PROXY"), "http://127.0.0.1:3128");
}

TEST(MakeEnvironment, WithoutAProxyNothingIsTouched) {
  const Strings inherited = {"HTTP_PROXY=http://10.0.0.1:1", "NO_PROXY=*"};
  EXPECT_EQ(Make({}, inherited), inherited);
}

TEST(MakeEnvironment, KeepDoesNotHoldTheProxyBack) {
  policy::Policy policy = WithProxy(3128);
  policy.env.keep = Strings{};
  EXPECT_EQ(Value(Make(policy, {"http_proxy=x"}), "http_proxy"), "http://127.0.0.1:3128");
}

}  // namespace
}  // namespace oarlock::child
