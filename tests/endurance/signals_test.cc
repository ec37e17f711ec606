// SPDX-License-Identifier: Apache-2.0
// Signals while connects are made, and connects that wait: what tests/live/blocking_test.cc does not have yet. What holds a
// bound on time stands in timing_test.cc.
#include <gtest/gtest.h>
#include <pty.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/endurance/support.h"
#include "tests/support/daemon.h"
#include "tests/support/sandbox.h"
#include "tests/support/scale.h"

namespace oarlock::test {
namespace {

class SignalsTest : public testing::Test {
 protected:
  TemporaryDirectory directory_;
  Daemon daemon_;
  Counter proxy_;
  std::string agent_ = directory_.MakeDirectory("agent");
  Counter broker_{agent_ + "/broker.sock"};

  [[nodiscard]] static std::string Egress(uint16_t port) { return "\"net\":\"egress-allowlist\",\"proxy_port\":" + std::to_string(port); }
  [[nodiscard]] std::string Policy() const { return Egress(proxy_.port()) + ",\"broker_socket\":\"" + agent_ + "/broker.sock\""; }

  enum class Form { kNative, kPrivate, kNode };
  static constexpr Form kForms[] = {Form::kNative, Form::kPrivate, Form::kNode};
  [[nodiscard]] static const char* NameOf(Form form) {
    return form == Form::kNative ? "native" : form == Form::kPrivate ? "private" : "oarlockd";
  }
  [[nodiscard]] Outcome Client(Form form, std::vector<std::string> words) const {
    Sandbox sandbox(Policy());
    sandbox.Timeout(std::chrono::minutes(20));
    if (form == Form::kNode) sandbox.Supervisor(daemon_.socket());
    words.insert(words.begin(), ClientPath());
    return form == Form::kNative ? sandbox.RunBare(words) : sandbox.Run(words);
  }
};

// What a runtime does that preempts its threads by signals. A call that was made again after it had connected would see EISCONN;
// one that was lost, EINTR.
TEST_F(SignalsTest, E83_SigurgStormLosesAndRepeatsNothing) {
  const long count = Scaled(20'000);
  for (const Counter* server : {&proxy_, &broker_})
    for (const Form form : kForms) {
      SCOPED_TRACE(server->target() + " " + NameOf(form));
      const uint64_t before = server->connections();
      const Outcome outcome = Client(form, {"storm", server->target(), std::to_string(count), "urg", "restart", "once"});
      EXPECT_EQ(outcome.code, 0) << outcome.err;
      EXPECT_EQ(NumberOf(outcome.out, "connected"), count) << outcome.out;
      for (const char* name : {"eisconn", "connect_eintr", "socket_eintr", "lost", "other"}) EXPECT_EQ(NumberOf(outcome.out, name), 0) << name << " " << outcome.out;
      EXPECT_GT(NumberOf(outcome.out, "signals"), 0) << "no storm";
      EXPECT_EQ(server->connections() - before, static_cast<uint64_t>(count)) << "as the server counts";
      std::printf("SIGURG storm, %s, %s: %s", server->target().substr(0, 4).c_str(), NameOf(form), outcome.out.c_str());
    }
}

// Without SA_RESTART the kernel can end a call by EINTR before it has been received, which no supervisor can help. How often, is
// measured; that nothing else happens to it, is asserted.
TEST_F(SignalsTest, E83_SigalrmWithoutRestartIsCounted) {
  const long count = Scaled(20'000);
  for (const Form form : kForms) {
    SCOPED_TRACE(NameOf(form));
    const uint64_t before = proxy_.connections();
    const Outcome outcome = Client(form, {"storm", proxy_.target(), std::to_string(count), "alrm", "plain", "once"});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_GT(NumberOf(outcome.out, "signals"), 0) << "no storm";
    EXPECT_EQ(NumberOf(outcome.out, "other"), 0) << outcome.out;
    EXPECT_EQ(NumberOf(outcome.out, "eisconn"), 0) << outcome.out;
    EXPECT_EQ(NumberOf(outcome.out, "connected") + NumberOf(outcome.out, "lost"), count) << outcome.out;
    // What ended in EINTR has not been done behind the program's back, and what was done has not been lost.
    EXPECT_EQ(proxy_.connections() - before, static_cast<uint64_t>(NumberOf(outcome.out, "connected"))) << outcome.out;
    for (const char* name : {"socket_eintr", "connect_eintr", "lost", "signals"})
      RecordProperty(std::string(NameOf(form)) + "_" + name, ValueOf(outcome.out, name));
    std::printf("SIGALRM at 1 kHz without SA_RESTART, %ld connects, %s: EINTR from socket %s, from connect %s; never completed %s; %s signals\n", count,
                NameOf(form), ValueOf(outcome.out, "socket_eintr").c_str(), ValueOf(outcome.out, "connect_eintr").c_str(),
                ValueOf(outcome.out, "lost").c_str(), ValueOf(outcome.out, "signals").c_str());
  }
}

TEST_F(SignalsTest, E83_ProgramThatRetriesAfterEintrLosesNothing) {
  const long count = Scaled(20'000);
  for (const Counter* server : {&proxy_, &broker_})
    for (const Form form : kForms) {
      SCOPED_TRACE(server->target() + " " + NameOf(form));
      const uint64_t before = server->connections();
      const Outcome outcome = Client(form, {"storm", server->target(), std::to_string(count), "alrm", "plain", "retry"});
      EXPECT_EQ(outcome.code, 0) << outcome.err;
      EXPECT_EQ(NumberOf(outcome.out, "connected"), count) << outcome.out;
      EXPECT_EQ(NumberOf(outcome.out, "other"), 0) << outcome.out;
      EXPECT_EQ(server->connections() - before, static_cast<uint64_t>(count)) << "as the server counts";
    }
}

// A key pressed, not a signal sent: at a terminal, with and without a share in it, under each form that has one.
TEST_F(SignalsTest, CtrlCEndsAPythonProgramWhoseConnectIsPending) {
  Full tcp, unix(agent_ + "/full.sock");
  struct Case {
    const char* name;
    const Full* full;
    bool run, inherit;
  };
  for (const Case& c : {Case{"run", &tcp, true, false}, Case{"run", &unix, true, false}, Case{"run, tty inherit", &tcp, true, true},
                        Case{"run, tty inherit", &unix, true, true}, Case{"sandbox-exec, tty inherit", &tcp, false, true},
                        Case{"sandbox-exec, tty inherit", &unix, false, true}}) {
    SCOPED_TRACE(std::string(c.name) + " " + c.full->target());
    const bool is_tcp = c.full == &tcp;
    Sandbox sandbox(Egress(tcp.port()) + ",\"broker_socket\":\"" + agent_ + "/full.sock\"" + (c.inherit ? ",\"tty\":\"inherit\"" : ""));
    ProcessOptions options = sandbox.Options({"/usr/bin/python3", "-c",
                                              std::string("import socket\nprint('ready',flush=True)\n") +
                                                  (is_tcp ? "socket.create_connection(('127.0.0.1'," + std::to_string(tcp.port()) + "))"
                                                          : "socket.socket(socket.AF_UNIX).connect('" + agent_ + "/full.sock')") +
                                                  "\nprint('connected',flush=True)\n"});
    if (c.run) {
      options.argv[1] = "run";
      options.argv.insert(options.argv.begin() + 2, "--policy");
    }
    int terminal = -1;
    const pid_t pid = ::forkpty(&terminal, nullptr, nullptr, nullptr);
    ASSERT_GE(pid, 0);
    if (pid == 0) {
      std::string state = "XDG_STATE_HOME=" + options.environment.at("XDG_STATE_HOME"), path = "PATH=/usr/bin:/bin";
      char* envp[] = {state.data(), path.data(), nullptr};
      std::vector<char*> argv;
      for (std::string& argument : options.argv) argv.push_back(argument.data());
      argv.push_back(nullptr);
      ::execve(argv[0], argv.data(), envp);
      ::_exit(1);
    }
    const UniqueFd master(terminal);
    std::string text;
    const auto read_some = [&] {
      fd_set set;
      FD_ZERO(&set);
      FD_SET(terminal, &set);
      timeval wait{0, 20'000};
      char buffer[512];
      if (::select(terminal + 1, &set, nullptr, nullptr, &wait) != 1) return;
      if (const ssize_t got = ::read(terminal, buffer, sizeof(buffer)); got > 0) text.append(buffer, static_cast<size_t>(got));
    };
    const bool ready = Eventually([&] {
      read_some();
      return text.find("ready") != std::string::npos;
    });
    ::usleep(300'000);
    if (ready) (void)!::write(terminal, "\x03", 1);
    int status = 0;
    const bool ended = Eventually([&] {
      read_some();
      return ::waitpid(pid, &status, WNOHANG) == pid;
    });
    if (!ended) {
      (void)::kill(-pid, SIGKILL);
      (void)::kill(pid, SIGKILL);
      (void)::waitpid(pid, &status, 0);
    }
    EXPECT_TRUE(ready && ended) << text;
    EXPECT_EQ(WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status), 128 + SIGINT) << text;
    EXPECT_NE(text.find("KeyboardInterrupt"), std::string::npos) << text;
    EXPECT_EQ(text.find("connected"), std::string::npos) << text;
  }
}

// tests/live has the broker's backlog under oarlockd; here the private supervisor, the proxy's backlog, and that those who wait
// get through in the end.
TEST_F(SignalsTest, E96_FullBacklogBlocksOnlyTheThreadThatConnects) {
  constexpr int kThreads = 12;
  for (const Form form : kForms)
    for (const bool is_tcp : {true, false}) {
      SCOPED_TRACE(std::string(NameOf(form)) + (is_tcp ? " tcp" : " unix"));
      const std::string path = agent_ + "/full.sock";
      std::unique_ptr<Full> full(is_tcp ? new Full : new Full(path));
      // The full one is the proxy, and the others go to the broker; or the other way round.
      Sandbox sandbox(Egress(is_tcp ? full->port() : proxy_.port()) + ",\"broker_socket\":\"" + (is_tcp ? agent_ + "/broker.sock" : path) + "\"");
      sandbox.Timeout(std::chrono::minutes(1));
      if (form == Form::kNode) sandbox.Supervisor(daemon_.socket());
      const std::vector<std::string> argv = {ClientPath(), "block", full->target(), std::to_string(kThreads), (is_tcp ? broker_ : proxy_).target(), "50"};
      ProcessOptions options = sandbox.Options(argv);
      if (form == Form::kNative) options.argv = argv;
      Process process(options);
      EXPECT_TRUE(process.WaitFor("waiting=", std::chrono::seconds(20))) << process.out() << process.err();
      EXPECT_EQ(NumberOf(process.out(), "right"), 50) << process.out();
      EXPECT_EQ(NumberOf(process.out(), "waiting"), kThreads) << process.out();
      if (form == Form::kNode) {
        EXPECT_EQ(Client(Form::kNode, {"loop", proxy_.target(), "20"}).out, "right=20 odd=none\n") << "other sandboxes go on";
        EXPECT_EQ(Client(Form::kNode, {"loop", broker_.target(), "20"}).out, "right=20 odd=none\n") << "other sandboxes go on";
      }
      full->Drain();
      EXPECT_TRUE(process.WaitFor("through=", std::chrono::seconds(30))) << process.out();
      EXPECT_EQ(NumberOf(process.out(), "through"), kThreads);
      EXPECT_EQ(process.Wait().code, 0);
      full.reset();
      (void)::unlink(path.c_str());
    }
}

// A non-blocking connect does not wait for those of its session that do.
TEST_F(SignalsTest, E96_NonBlockingConnectDoesNotQueueBehindBlockedOnes) {
  Full full(agent_ + "/full.sock");
  for (const Form form : kForms) {
    SCOPED_TRACE(NameOf(form));
    Sandbox sandbox("\"broker_socket\":\"" + agent_ + "/full.sock\"");
    if (form == Form::kNode) sandbox.Supervisor(daemon_.socket());
    const std::vector<std::string> argv = {ClientPath(), "timeout", full.target(), "0", "4"};
    const Outcome outcome = form == Form::kNative ? sandbox.RunBare(argv) : sandbox.Run(argv);
    EXPECT_EQ(ValueOf(outcome.out, "result"), "EAGAIN") << outcome.code << outcome.out << outcome.err;
  }
}

// EAGAIN says that the backlog is full, and of nothing else: several threads of a program that polls may connect at once.
TEST_F(SignalsTest, E96_NonBlockingConnectsAtOnceAreNotToldOfAFullBacklog) {
  constexpr long kThreads = 8;
  const long count = Scaled(5000);
  for (const Form form : kForms) {
    SCOPED_TRACE(NameOf(form));
    const uint64_t before = broker_.connections();
    const Outcome outcome = Client(form, {"nonblock", broker_.target(), std::to_string(kThreads), std::to_string(count)});
    EXPECT_EQ(NumberOf(outcome.out, "connected"), kThreads * count) << outcome.out << outcome.err;
    EXPECT_EQ(NumberOf(outcome.out, "eagain"), 0) << "the backlog holds 512";
    EXPECT_EQ(broker_.connections() - before, static_cast<uint64_t>(kThreads * count));
  }
}

// SIGKILL is never held back: the sandbox ends, and with it all that its calls held of the supervisor.
TEST_F(SignalsTest, E88_SigkillFreesWhatWaits) {
  constexpr int kThreads = 12;
  Full tcp, unix(agent_ + "/full.sock");
  const Holding before = Settled(daemon_.pid());
  for (const Full* full : {&tcp, &unix})
    for (const Form form : {Form::kPrivate, Form::kNode}) {
      SCOPED_TRACE(std::string(NameOf(form)) + " " + full->target());
      Sandbox sandbox(Egress(tcp.port()) + ",\"broker_socket\":\"" + agent_ + "/full.sock\"");
      sandbox.Timeout(std::chrono::minutes(1));
      if (form == Form::kNode) sandbox.Supervisor(daemon_.socket());
      Process process(sandbox.Options({ClientPath(), "hang", full->target(), std::to_string(kThreads)}));
      EXPECT_TRUE(process.WaitFor("hanging")) << process.out() << process.err();
      const std::string log = form == Form::kNode ? daemon_.log_path() : sandbox.directory().path();
      const pid_t supervisor = form == Form::kNode ? daemon_.pid() : FindHolder("oarlock-private", log);
      ASSERT_GT(supervisor, 1);
      EXPECT_GT(HoldingOf(supervisor).descriptors, form == Form::kNode ? before.descriptors + kThreads : kThreads) << "nothing waits";
      process.Signal(SIGKILL);
      EXPECT_EQ(process.Wait().code, 128 + SIGKILL);
      if (form == Form::kNode) EXPECT_TRUE(Eventually([&] { return HoldingOf(supervisor).descriptors <= before.descriptors; })) << Describe(HoldingOf(supervisor));
      else EXPECT_TRUE(Eventually([&] { return FindHolder("oarlock-private", log) < 0; })) << "a private supervisor outlives its session";
    }
}

}  // namespace
}  // namespace oarlock::test
