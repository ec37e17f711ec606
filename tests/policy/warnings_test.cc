// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "policy/policy.h"

namespace oarlock::policy {
namespace {

std::vector<std::string> PointersOf(std::string_view text) {
  const auto policy = Parse(text);
  EXPECT_TRUE(policy) << text;
  std::vector<std::string> pointers;
  for (const Warning& warning : Warnings(policy.value_or(Policy{}))) pointers.push_back(warning.pointer);
  return pointers;
}

using List = std::vector<std::string>;

TEST(Warnings, OfWhatShouldNotBeWritable) {
  for (const char* path : {"/", "/etc", "/etc/ssl", "//etc/../etc/./", "/usr/local", "/home", "/home/anna",
                           "/home/anna/", "/root", "/proc", "/dev", "/tmp", "/var", "/run", "/opt"})
    EXPECT_EQ(PointersOf(R"({"rw":["/srv/w",")" + std::string(path) + "\"]}"), List{"/rw/1"}) << path;
  for (const char* path : {"/srv/w", "/home/anna/work", "/root/work", "/opt/acme", "/tmp/job-81", "/etcetera",
                           "/run/user/1000", "/var/lib/acme"})
    EXPECT_EQ(PointersOf(R"({"rw":[")" + std::string(path) + "\"]}"), List{}) << path;
  EXPECT_EQ(PointersOf(R"({"wo":["/etc"]})"), List{"/wo/0"});
  EXPECT_EQ(PointersOf(R"({"roots":[{"path":"/etc","rights":["make_reg"]}]})"), List{"/roots/0"});
  EXPECT_EQ(
      PointersOf(R"({"roots":[{"path":"/etc","rights":["read_file","read_dir","execute"]}],"ro":["/usr"]})"),
      List{});
}

TEST(Warnings, OfWhatIsReadWhole) {
  EXPECT_EQ(PointersOf(R"({"ro":["/"],"rd":["/home/anna"]})"), (List{"/ro/0", "/rd/0"}));
}

TEST(Warnings, OfAProgramThatTheModuleCanReplace) {
  EXPECT_EQ(PointersOf(R"({"rw":["/srv/w"],"exe":"/srv/w/bin/run"})"), List{"/exe"});
  EXPECT_EQ(PointersOf(R"({"rw":["/srv/w"],"exe":"/srv/w/../b/run"})"), List{});
  EXPECT_EQ(PointersOf(R"({"rw":["/srv/w"],"exe":"/srv/work/run"})"), List{});
}

TEST(Warnings, OfABrokerThatTheLaunchWillRefuse) {
  EXPECT_EQ(PointersOf(R"({"rw":["/srv/w"],"broker_socket":"/srv/w/b.sock"})"), List{"/broker_socket"});
  EXPECT_EQ(PointersOf(R"({"rw":["/srv/w"],"broker_socket":"/run/node/b.sock"})"), List{});
}

TEST(Warnings, OfPatternsAndRoot) {
  EXPECT_EQ(PointersOf(R"({"ro":["/srv/*/b"]})"), List{"/ro/0"});
  EXPECT_EQ(PointersOf(R"({"run_as":{"uid":0,"gid":0}})"), List{"/run_as/uid"});
  EXPECT_EQ(PointersOf(R"({"run_as":{"uid":1000,"gid":0}})"), List{});
}

TEST(Warnings, NoneForAnOrdinaryPolicy) { EXPECT_EQ(PointersOf("{}"), List{}); }

}  // namespace
}  // namespace oarlock::policy
