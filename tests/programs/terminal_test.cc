// SPDX-License-Identifier: Apache-2.0
// A shell with job control, in a terminal that was made outside.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/programs/workshop.h"

namespace oarlock::test {
namespace {

// A program in a new session, whose controlling terminal's other end we hold.
class Terminal {
 public:
  explicit Terminal(const ProcessOptions& options) {
    std::map<std::string, std::string> environment = {{"PATH", "/usr/bin:/bin"}, {"LANG", "C.UTF-8"}, {"TERM", "dumb"}};
    for (const auto& [name, value] : options.environment) environment[name] = value;
    std::vector<std::string> words = options.argv, entries;
    for (const auto& [name, value] : environment) entries.push_back(name + "=" + value);
    std::vector<char*> argv, envp;
    for (std::string& word : words) argv.push_back(word.data());
    for (std::string& entry : entries) envp.push_back(entry.data());
    argv.push_back(nullptr);
    envp.push_back(nullptr);
    int master = -1;
    pid_ = ::forkpty(&master, nullptr, nullptr, nullptr);
    if (pid_ == 0) {
      if (::chdir(options.directory.c_str()) != 0) ::_exit(121);
      if (options.uid && (::setresgid(*options.uid, *options.uid, *options.uid) != 0 || ::setresuid(*options.uid, *options.uid, *options.uid) != 0))
        ::_exit(122);
      ::execve(argv[0], argv.data(), envp.data());
      ::_exit(127);
    }
    master_.Reset(master);
    (void)::fcntl(master, F_SETFD, FD_CLOEXEC);
  }
  ~Terminal() {
    if (status_) return;
    (void)::kill(pid_, SIGKILL);
    (void)::waitpid(pid_, nullptr, 0);
  }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  void Type(const std::string& text) const { EXPECT_EQ(::write(master_.get(), text.data(), text.size()), static_cast<ssize_t>(text.size())); }
  // Types a line and waits for `answer`, which must not stand in the line itself. True where it came.
  [[nodiscard]] bool Ask(const std::string& line, const std::string& answer) {
    const size_t from = seen_.size();
    Type(line + "\n");
    return WaitFor(answer, from);
  }
  [[nodiscard]] bool WaitFor(const std::string& text, size_t from = 0) {
    return Eventually(
        [&] {
          pollfd ready{master_.get(), POLLIN, 0};
          char buffer[4096];
          if (::poll(&ready, 1, 20) > 0)
            if (const ssize_t got = ::read(master_.get(), buffer, sizeof(buffer)); got > 0) seen_.append(buffer, static_cast<size_t>(got));
          return seen_.find(text, from) != std::string::npos;
        },
        std::chrono::seconds(20));
  }
  // Waits until a program of this name is in the foreground.
  [[nodiscard]] bool InForeground(const std::string& name) const {
    return Eventually([&] {
      const pid_t group = ::tcgetpgrp(master_.get());
      return group > 0 && ReadWholeFile("/proc/" + std::to_string(group) + "/comm") == name + "\n";
    });
  }
  void Resize(unsigned short rows, unsigned short columns) const {
    const winsize size{rows, columns, 0, 0};
    EXPECT_EQ(::ioctl(master_.get(), TIOCSWINSZ, &size), 0);
  }
  [[nodiscard]] int Exit() {
    EXPECT_TRUE(Eventually(
        [&] {
          char buffer[4096];
          pollfd ready{master_.get(), POLLIN, 0};
          if (::poll(&ready, 1, 20) > 0)
            if (const ssize_t got = ::read(master_.get(), buffer, sizeof(buffer)); got > 0) seen_.append(buffer, static_cast<size_t>(got));
          int status = 0;
          if (::waitpid(pid_, &status, WNOHANG) != pid_) return false;
          status_ = status;
          return true;
        },
        std::chrono::seconds(20)));
    return status_ && WIFEXITED(*status_) ? WEXITSTATUS(*status_) : -1;
  }
  [[nodiscard]] const std::string& seen() const noexcept { return seen_; }

 private:
  pid_t pid_ = -1;
  UniqueFd master_;
  std::string seen_;
  std::optional<int> status_;
};

constexpr const char* kInherit = R"(,"tty":"inherit")";
const std::vector<std::string> kShell = {"/bin/bash", "--norc", "--noprofile", "--noediting", "-i"};

class JobControl : public testing::TestWithParam<Identity> {
 protected:
  void SetUp() override {
    if (::getuid() != 0) GTEST_SKIP() << "run_as needs root";
  }
};

INSTANTIATE_TEST_SUITE_P(Identities, JobControl, testing::ValuesIn(kIdentities), [](const auto& test) { return Name(test.param); });

TEST_P(JobControl, StopsContinuesAndInterrupts) {
  const Workshop shop(GetParam(), "", kInherit);
  Terminal shell(shop.InsideOptions(kShell, {{"TARGET", std::to_string(shop.forbidden().port())}}));
  // No echo, and answers that their questions do not hold.
  ASSERT_TRUE(shell.Ask("stty -echo; PS1=; echo rea''dy", "ready")) << shell.seen();
  ASSERT_TRUE(shell.Ask("set -o | grep monitor", "on")) << shell.seen();

  shell.Type("sleep 1000\n");
  ASSERT_TRUE(shell.InForeground("sleep"));
  shell.Type("\x1a");
  ASSERT_TRUE(shell.WaitFor("Stopped")) << shell.seen();
  ASSERT_TRUE(shell.Ask("echo code=$?", "code=148")) << shell.seen();
  ASSERT_TRUE(shell.Ask("bg; jobs", "Running")) << shell.seen();
  shell.Type("fg\n");
  ASSERT_TRUE(shell.InForeground("sleep"));
  shell.Type("\x03");
  ASSERT_TRUE(shell.InForeground("bash"));
  ASSERT_TRUE(shell.Ask("echo code=$?", "code=130")) << shell.seen();

  // A pipeline is one job; a background job that reads the terminal is stopped.
  ASSERT_TRUE(shell.Ask("sleep 1000 | cat & kill %%; wait %%; echo pipe=$?", "pipe=143")) << shell.seen();
  ASSERT_TRUE(shell.Ask("cat & sleep 0.5; jobs -s | grep -c cat", "1")) << shell.seen();
  ASSERT_TRUE(shell.Ask("kill -KILL %%; until ! kill -0 %% 2>&-; do sleep 0.1; done; echo gone=$?", "gone=0")) << shell.seen();

  shell.Resize(33, 123);
  ASSERT_TRUE(shell.Ask("stty size", "33 123")) << shell.seen();
  ASSERT_TRUE(shell.Ask("(stty raw; stty sane) </dev/tty && tty && echo term''inal", "terminal")) << shell.seen();

  // Ctrl-C has ended what was in the foreground, and not the supervisor.
  ASSERT_TRUE(shell.Ask("exec 3<>/dev/tcp/127.0.0.1/$PROXY_PORT && echo proxy=yes", "proxy=yes")) << shell.seen();
  ASSERT_TRUE(shell.Ask("(exec 3<>/dev/tcp/127.0.0.1/$TARGET); echo target=$?", "target=1")) << shell.seen();
  EXPECT_NE(shell.seen().find("bash: connect: Permission denied"), std::string::npos) << shell.seen();
  EXPECT_EQ(shop.forbidden().connections(), 0);

  shell.Type("exit 5\n");
  EXPECT_EQ(shell.Exit(), 5) << shell.seen();
  EXPECT_EQ(shop.Denials(), (std::map<std::string, uint64_t>{
                                {"TCP_NOT_PROXY 127.0.0.1:" + std::to_string(shop.forbidden().port()) + " EACCES bash", 1}}));

  // The twin: the same shell in the same sort of terminal gets there.
  ProcessOptions bare = shop.InsideOptions({}, {{"TARGET", std::to_string(shop.forbidden().port())}});
  bare.argv = kShell;
  if (GetParam() == Identity::kNobody) bare.uid = kNobodyUid;
  Terminal twin(bare);
  ASSERT_TRUE(twin.Ask("(exec 3<>/dev/tcp/127.0.0.1/$TARGET); echo target=$?", "target=0")) << twin.seen();
  EXPECT_TRUE(Eventually([&] { return shop.forbidden().connections() >= 1; }));
  twin.Type("exit 6\n");
  EXPECT_EQ(twin.Exit(), 6);
}

// Ctrl-C ends a program whose connect is on its way to the supervisor, or back, over and over.
TEST_P(JobControl, InterruptsAProgramThatConnects) {
  const Workshop shop(GetParam(), "", kInherit);
  Terminal shell(shop.InsideOptions(kShell));
  ASSERT_TRUE(shell.Ask("stty -echo; PS1=; echo rea''dy", "ready")) << shell.seen();
  for (int i = 0; i < 5; ++i) {
    const size_t before = shell.seen().size();
    shell.Type(R"(/usr/bin/python3 -c '
import os, socket
print("conn" + "ects", flush=True)
while True:
    socket.create_connection(("127.0.0.1", int(os.environ["PROXY_PORT"]))).close()'
)");
    ASSERT_TRUE(shell.WaitFor("connects", before)) << shell.seen();
    ::usleep(50'000);  // into its loop
    shell.Type("\x03");
    ASSERT_TRUE(shell.InForeground("bash")) << shell.seen();
    ASSERT_TRUE(shell.Ask("echo code" + std::to_string(i) + "=$?", "code" + std::to_string(i) + "=130")) << shell.seen();
  }
  shell.Type("exit 0\n");
  EXPECT_EQ(shell.Exit(), 0);
}

// Without the terminal there is no job control, and the shell says so instead of hanging.
TEST_P(JobControl, NoneWithoutTheTerminal) {
  const Workshop shop(GetParam(), "", "");
  Terminal shell(shop.InsideOptions(kShell));
  ASSERT_TRUE(shell.WaitFor("no job control in this shell")) << shell.seen();
  ASSERT_TRUE(shell.Ask("set -o | grep monitor", "off")) << shell.seen();
  ASSERT_TRUE(shell.Ask("(: </dev/tty) 2>&1; echo none''=$?", "none=1")) << shell.seen();
  shell.Type("exit 0\n");
  EXPECT_EQ(shell.Exit(), 0);
}

}  // namespace
}  // namespace oarlock::test
