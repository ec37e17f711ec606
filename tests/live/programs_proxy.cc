// SPDX-License-Identifier: Apache-2.0
#include "tests/live/programs_proxy.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>

#include "notif/base/check.h"
#include "notif/base/unique_fd.h"
#include "tests/support/servers.h"

namespace oarlock::test {
namespace {

// The port is somebody's between our look and tinyproxy's bind, now and then.
constexpr int kTries = 5;

bool Listens(uint16_t port) {
  const UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
}

int Count(const std::string& text, const std::string& what) {
  int count = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + what.size())) ++count;
  return count;
}

void RunGit(const std::string& directory, std::vector<std::string> words) {
  ProcessOptions options;
  options.argv = {FindInstalled("git")};
  options.argv.insert(options.argv.end(), words.begin(), words.end());
  options.directory = directory;
  options.timeout = std::chrono::seconds(60);
  // Nothing of whoever runs the tests: neither configuration nor identity.
  options.environment = {{"HOME", directory},
                         {"GIT_CONFIG_NOSYSTEM", "1"},
                         {"GIT_AUTHOR_NAME", "test"},
                         {"GIT_AUTHOR_EMAIL", "test@example.invalid"},
                         {"GIT_COMMITTER_NAME", "test"},
                         {"GIT_COMMITTER_EMAIL", "test@example.invalid"}};
  const Outcome outcome = RunProcess(options);
  ASSERT_EQ(outcome.code, 0) << words.front() << ": " << outcome.err;
}

}  // namespace

TinyProxy::TinyProxy() {
  for (int i = 0; i < kTries; ++i) {
    port_ = FreePort();
    const std::string configuration = directory_.WriteFile(
        "tinyproxy.conf", "Port " + std::to_string(port_) +
                              "\nListen 127.0.0.1\nTimeout 60\nMaxClients 64\nLogLevel Info\nLogFile \"" +
                              (directory_ / "log") + "\"\nPidFile \"" + (directory_ / "pid") + "\"\n");
    ProcessOptions options;
    options.argv = {FindInstalled("tinyproxy"), "-d", "-c", configuration};
    options.timeout = std::chrono::hours(1);
    process_ = std::make_unique<Process>(options);
    if (Eventually([&] { return !process_->Running() || Listens(port_); }) && process_->Running()) return;
  }
  OARLOCK_CHECK(false, "tinyproxy does not start: %s", process_->Wait().err.c_str());
}

int TinyProxy::Requests() const {
  return Count(ReadWholeFile(directory_ / "log"), "Request (file descriptor");
}

Origin::Origin(const std::string& served) {
  ProcessOptions options;
  // Port 0: the kernel's choice, which the server tells. Its log goes to a file, so that nobody has to empty
  // a pipe.
  options.argv = {"/bin/sh",
                  "-c",
                  "exec /usr/bin/python3 -u -m http.server --bind 127.0.0.1 --directory \"$1\" 0 2>\"$2\"",
                  "sh",
                  served,
                  directory_ / "log"};
  options.timeout = std::chrono::hours(1);
  process_ = std::make_unique<Process>(options);
  const std::string before = "http://127.0.0.1:";
  OARLOCK_CHECK(process_->WaitFor(before, std::chrono::seconds(60)), "the web server does not start");
  port_ =
      static_cast<uint16_t>(std::stoi(process_->out().substr(process_->out().find(before) + before.size())));
}

int Origin::Requests() const { return Count(ReadWholeFile(directory_ / "log"), "\"GET "); }

void MakeRepository(const std::string& directory, const std::string& hello) {
  const TemporaryDirectory work;
  (void)work.WriteFile("hello.txt", hello);
  RunGit(work.path(), {"init", "-q", "-b", "main"});
  RunGit(work.path(), {"add", "hello.txt"});
  RunGit(work.path(), {"commit", "-q", "-m", "hello"});
  RunGit(work.path(), {"clone", "-q", "--bare", work.path(), directory + "/repo.git"});
  RunGit(directory + "/repo.git", {"update-server-info"});
}

}  // namespace oarlock::test
