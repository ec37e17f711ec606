// SPDX-License-Identifier: Apache-2.0
#include "supervisor/ceiling.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <functional>

#include "tests/support/temporary.h"

namespace oarlock::supervisor {
namespace {

using test::TemporaryDirectory;

// --- the file ----------------------------------------------------------------------------------------------

TEST(CeilingParse, NothingNamedIsNothingAllowed) {
  const auto ceiling = Ceiling::Parse("{}");
  ASSERT_TRUE(ceiling);
  EXPECT_TRUE(ceiling->uids.empty());
  EXPECT_EQ(ceiling->net, NetMode::kNone);
  EXPECT_TRUE(ceiling->proxies.empty());
  EXPECT_TRUE(ceiling->broker_directories.empty());
}

TEST(CeilingParse, ReadsEveryMember) {
  const auto ceiling = Ceiling::Parse(
      R"({"uids":[0,1000,4294967294],"net":"egress-allowlist",
          "proxy":[{"addr":"127.0.0.1","ports":[3128,3130]},{"ports":[1,65535],"addr":"::1"}],
          "broker_dirs":["/","/tmp"],"unix_any":false,"local_unix":"none","local_tcp":"none"})");
  ASSERT_TRUE(ceiling) << ceiling.error().Message();
  EXPECT_EQ(ceiling->uids, (std::vector<uint32_t>{0, 1000, 4294967294}));
  EXPECT_EQ(ceiling->net, NetMode::kEgressAllowlist);
  ASSERT_EQ(ceiling->proxies.size(), 2U);
  EXPECT_EQ(ceiling->proxies[0].address, ProxyAddress::kLoopback4);
  EXPECT_EQ(ceiling->proxies[0].low, 3128);
  EXPECT_EQ(ceiling->proxies[0].high, 3130);
  EXPECT_EQ(ceiling->proxies[1].address, ProxyAddress::kLoopback6);
  EXPECT_EQ(ceiling->proxies[1].high, 65535);
  ASSERT_EQ(ceiling->broker_directories.size(), 2U);
  struct stat status{};
  ASSERT_EQ(::stat("/tmp", &status), 0);
  EXPECT_EQ(ceiling->broker_directories[1].device, status.st_dev);
  EXPECT_EQ(ceiling->broker_directories[1].inode, status.st_ino);
  for (const char* mode : {"none", "egress-allowlist", "egress-any", "host"})
    EXPECT_TRUE(Ceiling::Parse(std::string(R"({"net":")") + mode + "\"}")) << mode;
}

struct WrongCeiling {
  const char* text;
  const char* part;  // of the message
};
std::ostream& operator<<(std::ostream& out, const WrongCeiling& wrong) { return out << wrong.text; }

class CeilingRefusal : public ::testing::TestWithParam<WrongCeiling> {};
TEST_P(CeilingRefusal, NamesWhatIsWrong) {
  const auto ceiling = Ceiling::Parse(GetParam().text);
  ASSERT_FALSE(ceiling) << GetParam().text;
  EXPECT_EQ(ceiling.error().code, EINVAL);
  EXPECT_NE(std::string(ceiling.error().detail).find(GetParam().part), std::string::npos)
      << ceiling.error().detail;
}
INSTANTIATE_TEST_SUITE_P(
    Ceiling, CeilingRefusal,
    ::testing::ValuesIn(std::vector<WrongCeiling>{
        {"", "not valid JSON"},
        {"[]", "one JSON object"},
        {"null", "one JSON object"},
        {"{} {}", "not valid JSON"},
        {R"({"uids":[1],"uids":[2]})", "'uids' stands twice"},
        {R"({"uid":[1]})", "/uid: unknown key"},
        {R"({"UIDS":[1]})", "/UIDS: unknown key"},
        {R"({"uids":1})", "/uids"},
        {R"({"uids":["root"]})", "/uids"},
        {R"({"uids":[-1]})", "/uids"},
        {R"({"uids":[1.5]})", "/uids"},
        {R"({"uids":[4294967295]})", "/uids"},
        {R"({"uids":[4294967296]})", "/uids"},
        {R"({"uids":null})", "/uids"},
        {R"({"net":"all"})", "/net"},
        {R"({"net":1})", "/net"},
        {R"({"net":null})", "/net"},
        {R"({"proxy":{"addr":"127.0.0.1","ports":[1,2]}})", "/proxy"},
        {R"({"proxy":["127.0.0.1:3128"]})", "/proxy/0"},
        {R"({"proxy":[{"addr":"127.0.0.1"}]})", "/proxy/0"},
        {R"({"proxy":[{"ports":[1,2]}]})", "/proxy/0"},
        {R"({"proxy":[{"addr":"127.0.0.1","ports":[1,2],"x":1}]})", "/proxy/0"},
        {R"({"proxy":[{"addr":"127.0.0.1","port":3128}]})", "/proxy/0"},
        {R"({"proxy":[{"addr":"0.0.0.0","ports":[1,2]}]})", "/proxy/0/addr"},
        {R"({"proxy":[{"addr":"127.0.0.2","ports":[1,2]}]})", "/proxy/0/addr"},
        {R"({"proxy":[{"addr":"::ffff:127.0.0.1","ports":[1,2]}]})", "/proxy/0/addr"},
        {R"({"proxy":[{"addr":1,"ports":[1,2]}]})", "/proxy/0/addr"},
        {R"({"proxy":[{"addr":"127.0.0.1","ports":3128}]})", "/proxy/0/ports"},
        {R"({"proxy":[{"addr":"127.0.0.1","ports":[3128]}]})", "/proxy/0/ports"},
        {R"({"proxy":[{"addr":"127.0.0.1","ports":[1,2,3]}]})", "/proxy/0/ports"},
        {R"({"proxy":[{"addr":"127.0.0.1","ports":[0,2]}]})", "/proxy/0/ports"},
        {R"({"proxy":[{"addr":"127.0.0.1","ports":[2,1]}]})", "/proxy/0/ports"},
        {R"({"proxy":[{"addr":"127.0.0.1","ports":[1,65536]}]})", "/proxy/0/ports"},
        {R"({"proxy":[{"addr":"127.0.0.1","ports":[1,2.0]}]})", "/proxy/0/ports"},
        {R"({"proxy":[{"addr":"127.0.0.1","ports":["1","2"]}]})", "/proxy/0/ports"},
        {R"({"proxy":[{"addr":"::1","ports":[1,2]},{"addr":"::1","ports":[4294967297,4294967298]}]})",
         "/proxy/1/ports"},
        {R"({"broker_dirs":"/tmp"})", "/broker_dirs"},
        {R"({"broker_dirs":[1]})", "/broker_dirs/0"},
        {R"({"broker_dirs":["tmp"]})", "/broker_dirs/0"},
        {R"({"broker_dirs":["/tmp","/nonexistent/x"]})", "/broker_dirs/1"},
        {R"({"broker_dirs":["/etc/passwd"]})", "/broker_dirs/0"},
        {R"({"broker_dirs":[""]})", "/broker_dirs/0"},
        {R"({"unix_any":true})", "/unix_any"},
        {R"({"unix_any":0})", "/unix_any"},
        {R"({"local_unix":"own"})", "/local_unix"},
        {R"({"local_tcp":"own"})", "/local_tcp"},
        {R"({"local_tcp":null})", "/local_tcp"},
    }));

TEST(CeilingLoad, ReadsTheFileOrNamesIt) {
  const TemporaryDirectory directory;
  EXPECT_TRUE(Ceiling::Load(directory.WriteFile("good.json", "{\"uids\":[1]}\n")));
  const auto missing = Ceiling::Load(directory / "missing.json");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ENOENT);
  EXPECT_NE(missing.error().Message().find("missing.json"), std::string::npos);
  EXPECT_FALSE(Ceiling::Load(directory.WriteFile("empty.json", "")));
  EXPECT_FALSE(Ceiling::Load(directory.path())) << "a directory";
}

// --- the check ---------------------------------------------------------------------------------------------

class CeilingCheck : public ::testing::Test {
 protected:
  CeilingCheck() {
    allowed_ = directory_.MakeDirectory("allowed");
    other_ = directory_.MakeDirectory("other");
    EXPECT_EQ(::symlink(allowed_.c_str(), (directory_ / "alias").c_str()), 0);
    ceiling_.uids = {0, 1000};
    ceiling_.net = NetMode::kEgressAllowlist;
    ceiling_.proxies = {{ProxyAddress::kLoopback4, 3128, 3130}, {ProxyAddress::kLoopback6, 8080, 8080}};
    struct stat status{};
    EXPECT_EQ(::stat(allowed_.c_str(), &status), 0);
    ceiling_.broker_directories = {{allowed_, status.st_dev, status.st_ino}};
    grant_.net = NetMode::kEgressAllowlist;
    grant_.proxy_port = 3128;
    grant_.broker_name = grant_.broker_resolved = allowed_ + "/broker.sock";
  }
  void Refuses(const char* part) {
    const auto status = ceiling_.Apply(grant_, uid_);
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, EPERM);
    EXPECT_NE(std::string(status.error().detail).find(part), std::string::npos) << status.error().detail;
  }
  void Passes() {
    const auto status = ceiling_.Apply(grant_, uid_);
    EXPECT_TRUE(status) << status.error().detail;
  }
  TemporaryDirectory directory_;
  std::string allowed_, other_;
  Ceiling ceiling_;
  Grant grant_;
  uint32_t uid_ = 1000;
};

TEST_F(CeilingCheck, PassesWhatIsWithin) {
  Passes();
  uid_ = 0;
  Passes();
  grant_.proxy_port = 3130;
  Passes();
  grant_.proxy_address = ProxyAddress::kLoopback6;
  grant_.proxy_port = 8080;
  Passes();
  grant_ = Grant{};
  Passes();
}

TEST_F(CeilingCheck, HoldsTheUid) {
  uid_ = 1001;
  Refuses("uid 1001");
  ceiling_.uids.clear();
  uid_ = 0;
  Refuses("uid 0");
}

TEST_F(CeilingCheck, HoldsTheNetMode) {
  constexpr NetMode kModes[] = {NetMode::kNone, NetMode::kEgressAllowlist, NetMode::kEgressAny,
                                NetMode::kHost};
  grant_.proxy_port = 0;
  for (const NetMode most : kModes)
    for (const NetMode asked : kModes) {
      ceiling_.net = most;
      grant_.net = asked;
      EXPECT_EQ(ceiling_.Apply(grant_, uid_).has_value(), asked <= most)
          << Name(asked) << " under " << Name(most);
    }
}

TEST_F(CeilingCheck, HoldsThePortAndItsAddress) {
  for (const uint16_t port : {uint16_t{1}, uint16_t{3127}, uint16_t{3131}, uint16_t{8080}, uint16_t{65535}}) {
    grant_.proxy_port = port;
    Refuses("proxy port");
  }
  grant_.proxy_address = ProxyAddress::kLoopback6;
  for (const uint16_t port : {uint16_t{3128}, uint16_t{8079}, uint16_t{8081}}) {
    grant_.proxy_port = port;
    Refuses("proxy port");
  }
  ceiling_.proxies.clear();
  grant_.proxy_port = 8080;
  Refuses("proxy port");
}

TEST_F(CeilingCheck, HoldsTheBrokersDirectory) {
  for (const std::string& path :
       {other_ + "/broker.sock", directory_.path() + "/broker.sock", std::string("/broker.sock"),
        allowed_ + "/deeper/broker.sock", directory_.path() + "/missing/broker.sock",
        allowed_ + "-not/broker.sock", allowed_}) {
    grant_.broker_resolved = path;
    Refuses("broker's directory");
  }
  ceiling_.broker_directories.clear();
  grant_.broker_resolved = allowed_ + "/broker.sock";
  Refuses("broker's directory");
}

TEST_F(CeilingCheck, ComparesDirectoriesByWhatTheyAreAndNotByName) {
  grant_.broker_resolved = directory_.path() + "/other/../allowed/broker.sock";
  Passes();
  grant_.broker_resolved = directory_.path() + "//allowed//broker.sock";
  Passes();
  // The operator's directory has been replaced: the name is the same, the directory is not.
  ASSERT_EQ(::rename(allowed_.c_str(), (directory_ / "moved").c_str()), 0);
  ASSERT_EQ(::mkdir(allowed_.c_str(), 0755), 0);
  grant_.broker_resolved = allowed_ + "/broker.sock";
  Refuses("broker's directory");
  grant_.broker_resolved = directory_ / "moved/broker.sock";
  Passes();
}

}  // namespace
}  // namespace oarlock::supervisor
