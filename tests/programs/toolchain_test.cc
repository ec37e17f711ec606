// SPDX-License-Identifier: Apache-2.0
// Tools of many languages inside the sandbox, as root and as another uid: each does its work, in its workspace and through the
// agent's proxy; each attempt to go past the proxy ends at once with a message that its user understands, and the server that
// it aimed at has seen nobody.
#include <gtest/gtest.h>
#include <unistd.h>

#include <ostream>

#include "tests/programs/workshop.h"

namespace oarlock::test {
namespace {

// How much longer than the same program unconfined a refused one may take.
constexpr double kRefusedWithinSeconds = 2.0;

// One directory of tests/programs/data: work.sh is the work, past.sh goes past the proxy to TARGET.
struct Tool {
  const char* name;
  const char* data;
  std::vector<const char*> needs;  // programs
  std::vector<const char*> prints;  // what the work says when it is right
  int requests;                    // that the work makes of the proxy, at least
  int code;                        // of past.sh, refused
  std::vector<const char*> says;   // then, to its user; PORT stands for the target's
  uint64_t connects;               // attempts of past.sh that the log must show
  const char* process;             // who made them
  bool builds = true;              // whether it runs what it has built
  const char* policy = "";
};

const Tool kTools[] = {
    {"Node", "node", {"node"},
     {"agent: hello from the origin", "tunnel: hello from the origin", "workers: hello from the origin,hello from the origin",
      " 10\n", "exec: ONE", "spawn: two", "fork: hello from forked", "files: written"},
     13, 3, {"connect EACCES 127.0.0.1:PORT"}, 1, "node", false},
    {"Java", "java", {"java", "javac"},
     {"client: hello from the origin", "async: 8", "sum: 5000050000", "process: CHILD 0", "files: written"},
     9, 3, {"java.net.ConnectException: Permission denied", "socket: java.net.BindException: Permission denied"}, 3, "java", false},
    {"Gcc", "gcc", {"gcc"}, {"sum: 56\nsum: 56\n", "broken.c:2"}, 0, 3, {"connect: Permission denied"}, 1, "past"},
    {"Make", "make", {"make", "curl"},
     {"made: 1 4 9 16 25 36 49 64", kHello, "up to date"}, 1, 2, {"Couldn't connect to server", "make: *** [Makefile:"}, 1, "curl", false},
    {"Cmake", "cmake", {"cmake", "make", "gcc"},
     {"Looking for strlen - found", kHello, "100% tests passed"}, 1, 1, {"Permission denied"}, 1, "cmake"},
    {"NpmCi", "npm", {"npm", "node", "openssl"},
     {"added 1 package", "greetings, npm 42"}, 1, 1, {"connect EACCES 127.0.0.1:PORT", "rejected by your operating system"}, 2, "npm ci", false},
    {"PipInstall", "pip", {"pip3"},
     {"Successfully installed greet-1.0", "greetings, pip"}, 2, 1, {"Permission denied"}, 2, "python3", false},
    {"Cargo", "cargo", {"cargo", "gcc"}, {"greetings, cargo, by a build script 14"}, 0, 101, {"Permission denied"}, 3, "cargo"},
    {"Perl", "perl", {"perl"},
     {"page: hello from the origin", "pair: from the child", "status: 7", "open3: PIPE", "lines: 10", "alarm: 1"},
     1, 3, {"Could not connect to '127.0.0.1:PORT': Permission denied", "IO::Socket::INET: Permission denied"}, 2, "perl", false},
    {"Sqlite3", "sqlite3", {"sqlite3", "curl"}, {"200\n1048576\n200\nok\n200\n"}, 0, 1,
     {"unable to open database", "Permission denied"}, 1, "curl", false},
    {"Tar", "tar", {"tar", "gzip", "xz", "bzip2", "curl"}, {"8\n"}, 0, 2, {"Couldn't connect to server", "tar: Exiting with failure status"}, 1, "curl", false},
    {"Rsync", "rsync", {"rsync"}, {"files transferred: 1", "mode: 640"}, 0, 10,
     {"failed to connect to 127.0.0.1 (127.0.0.1): Permission denied (13)"}, 1, "rsync", false},
    {"Asyncio", "asyncio", {},
     {"pages: 8 hello from the origin", "words: WORD0", "threads: 0 0 1 3 6 10 15 21", "signal", "over a pair"},
     24, 3, {"Permission denied"}, 1, "python3", false},
    {"Multiprocessing", "pool", {},
     {"fork pool: 332833500", "spawn pool: 332833500", "fork pages: hello from the origin\n", "spawn pages: hello from the origin\n",
      "fork queue: 2646700 [0, 0, 0]", "spawn queue: 2646700 [0, 0, 0]", "fork value: 2000", "spawn value: 2000", "spawn block: block",
      "executor: 1 2"},
     16, 3, {"PermissionError: [Errno 13] Permission denied"}, 2, "python3", false, R"(,"shm":"host")"},
};

std::ostream& operator<<(std::ostream& out, const Tool& tool) { return out << tool.name; }

class Toolchain : public testing::TestWithParam<std::tuple<Tool, Identity>> {};

std::string Said(const Outcome& outcome) { return outcome.out + outcome.err; }

TEST_P(Toolchain, WorksAndDoesNotGoPast) {
  const auto& [tool, identity] = GetParam();
  if (::getuid() != 0) GTEST_SKIP() << "run_as needs root";
  for (const char* needed : tool.needs)
    // Where the module finds it, whatever else there is on our own PATH.
    if (::access((std::string("/usr/bin/") + needed).c_str(), X_OK) != 0)
      GTEST_SKIP() << needed << " is not installed: scripts/install-deps.sh programs programs-big";
  const std::string policy = std::string(tool.builds ? R"(,"exec_rw":true)" : "") + tool.policy;
  const Workshop shop(identity, tool.data, policy);

  const Outcome work = shop.Inside({"/bin/bash", "work.sh"});
  EXPECT_EQ(work.code, 0) << Said(work);
  for (const char* text : tool.prints) EXPECT_NE(work.out.find(text), std::string::npos) << text << " is not in\n" << Said(work);
  EXPECT_GE(shop.proxy().Requests(), tool.requests);
  EXPECT_GE(shop.origin().Requests(), tool.requests);
  EXPECT_TRUE(shop.Denials().empty()) << testing::PrintToString(shop.Denials());

  // Whoever forgets the proxy, by whatever its tool calls that.
  const std::vector<std::string> past = {"/usr/bin/env", "-u", "http_proxy", "-u", "https_proxy", "-u", "all_proxy", "-u", "HTTP_PROXY",
                                         "-u", "HTTPS_PROXY", "-u", "ALL_PROXY", "/bin/bash", "past.sh"};
  const std::string port = std::to_string(shop.forbidden().port());
  Outcome refused = shop.Inside(past, {{"TARGET", port}});
  EXPECT_EQ(refused.code, tool.code) << Said(refused);
  for (std::string text : tool.says) {
    if (const size_t at = text.find("PORT"); at != std::string::npos) text.replace(at, 4, port);
    EXPECT_NE(Said(refused).find(text), std::string::npos) << text << " is not in\n" << Said(refused);
  }
  EXPECT_EQ(shop.forbidden().connections(), 0);
  EXPECT_EQ(shop.Denials(), (std::map<std::string, uint64_t>{
                                {"TCP_NOT_PROXY 127.0.0.1:" + port + " EACCES " + tool.process, tool.connects}}));

  // The twin: it was the sandbox that refused.
  Outcome bare = shop.Outside(past, {{"TARGET", port}});
  EXPECT_TRUE(Eventually([&] { return shop.forbidden().connections() >= 1; })) << Said(bare);
  for (std::string text : tool.says) {
    if (const size_t at = text.find("PORT"); at != std::string::npos) text.replace(at, 4, port);
    if (text.find("ermission denied") != std::string::npos || text.find("EACCES") != std::string::npos)
      EXPECT_EQ(Said(bare).find(text), std::string::npos) << Said(bare);
  }
  // Best of three, for other tests run beside.
  for (int i = 1; i < 3 && refused.seconds >= bare.seconds + kRefusedWithinSeconds; ++i) {
    refused = shop.Inside(past, {{"TARGET", port}});
    bare = shop.Outside(past, {{"TARGET", port}});
  }
  EXPECT_LT(refused.seconds, bare.seconds + kRefusedWithinSeconds) << Said(refused);
  RecordProperty("work_seconds", std::to_string(work.seconds));
  RecordProperty("refused_seconds", std::to_string(refused.seconds));
}

INSTANTIATE_TEST_SUITE_P(Programs, Toolchain, testing::Combine(testing::ValuesIn(kTools), testing::ValuesIn(kIdentities)),
                         [](const auto& test) { return std::string(std::get<0>(test.param).name) + Name(std::get<1>(test.param)); });

}  // namespace
}  // namespace oarlock::test
