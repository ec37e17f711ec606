// SPDX-License-Identifier: Apache-2.0
#include "policy/hosts.h"

#include <gtest/gtest.h>

#include <vector>

namespace oarlock::policy {
namespace {

TEST(Hosts, TakesNamesAndPorts) {
  for (const char* entry :
       {"example.org", "a", "localhost", "*.example.org", "example.org:1", "example.org:65535",
        "*.example.org:8443", "xn--bcher-kva.example", "a_b.example", "1.example", "0x7f.example", "A.B.C"})
    EXPECT_EQ(AllowEntryProblem(entry), std::nullopt) << entry;
  const std::string label(63, 'a');
  const std::string longest = label + "." + label + "." + label + "." + std::string(61, 'a');
  EXPECT_EQ(longest.size(), 253U);
  EXPECT_EQ(HostProblem(longest, false), std::nullopt);
  EXPECT_NE(HostProblem(longest + "a", false), std::nullopt);
  EXPECT_NE(HostProblem(label + "a", false), std::nullopt);
}

TEST(Hosts, TakesNoAddressInAnySpelling) {
  for (const char* entry :
       {"10.0.0.1", "127.1", "1", "2130706433", "0x7f000001", "0X7F.1", "a.0x7f", "0177.0.0.01", "1.2.3.4:80",
        "::1", "[::1]", "[::1]:443", "fe80::1", "::ffff:127.0.0.1", "10.0.0.0/8", "a.1", "*.1.2.3.4", "0x"})
    EXPECT_NE(AllowEntryProblem(entry), std::nullopt) << entry;
}

TEST(Hosts, TakesNothingOdd) {
  for (const char* entry :
       {"",        "*",   "*.",   "*.*",   "**.a", "a*",  "a.*",      ".a",           "a.",   "a..b",
        "-a",      "a-",  "a.-b", "a b",   "a,b",  "a/b", "http://a", "a:",           "a:0",  "a:01",
        "a:65536", "a:x", "a:-1", "a:1:2", ":80",  "a@b", "a%62",     "\xc3\xa9.org", "a\tb", "*.a.*"})
    EXPECT_NE(AllowEntryProblem(entry), std::nullopt) << entry;
  EXPECT_NE(HostProblem("*.a", false), std::nullopt);
  EXPECT_NE(HostProblem("a:80", false), std::nullopt);
}

TEST(Hosts, AWildcardCoversWhatIsBelow) {
  const std::vector<std::string> allow = {"*.a.org:8443", "B.org"};
  for (const char* host : {"x.a.org", "x.y.A.ORG", "*.a.org", "*.x.a.org", "b.org"})
    EXPECT_TRUE(IsAllowed(host, allow)) << host;
  for (const char* host : {"a.org", "xa.org", "x.b.org", "*.b.org", "*.org", ".a.org", "org", ""})
    EXPECT_FALSE(IsAllowed(host, allow)) << host;
}

TEST(HttpRules, HaveThreeParts) {
  HttpRule rule;
  ASSERT_EQ(ParseHttpRule("deny GET a.org/v1/*?q=%20", &rule), std::nullopt);
  EXPECT_FALSE(rule.allow);
  EXPECT_EQ(rule.method, "GET");
  EXPECT_EQ(rule.host, "a.org");
  EXPECT_EQ(rule.path, "/v1/*?q=%20");
  ASSERT_EQ(ParseHttpRule("allow * *.a.org/", &rule), std::nullopt);
  EXPECT_TRUE(rule.allow);
  EXPECT_EQ(rule.method, "*");
  for (const char* bad :
       {"", "allow", "allow GET", "allow  GET a.org/", "allow GET a.org", "allow get a.org/",
        "Allow GET a.org/", "allow GET /", "allow GET a.org/a b", "allow GET a.org:80/",
        "allow GET 10.0.0.1/", "allow GET */", "allow G3T a.org/", "allow GET a.org/\xc3\xa9"})
    EXPECT_NE(ParseHttpRule(bad, &rule), std::nullopt) << bad;
}

TEST(Headers, AreTokens) {
  EXPECT_TRUE(IsToken("Authorization"));
  EXPECT_TRUE(IsToken("x-api_key.2"));
  for (const char* bad : {"", "a b", "a:", "a\r\nb", "\xc3\xa9", "a\"", "(a)"})
    EXPECT_FALSE(IsToken(bad)) << bad;
}

}  // namespace
}  // namespace oarlock::policy
