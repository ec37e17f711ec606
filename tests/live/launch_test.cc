// SPDX-License-Identifier: Apache-2.0
// What a module finds when it starts: its identity, its descriptors, its files, its environment; and what the parent is told.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "notif/json.h"
#include "tests/support/sandbox.h"
#include "tests/support/servers.h"

namespace oarlock::test {
namespace {

constexpr const char* kNobody = "\"run_as\":{\"uid\":65534,\"gid\":65534}";

std::string Line(const Outcome& outcome, const std::string& word) {
  const std::string key = word + " -> ";
  const size_t at = outcome.out.find(key);
  return at == std::string::npos ? "(no result: " + outcome.out + outcome.err + ")"
                                 : outcome.out.substr(at + key.size(), outcome.out.find('\n', at) - at - key.size());
}

TEST(LaunchTest, IdentityOfRootWithoutCapabilities) {
  Sandbox sandbox;
  const Outcome outcome = sandbox.Probe({"uid", "status,CapEff", "status,CapPrm", "status,CapBnd", "status,CapInh", "status,NoNewPrivs",
                                         "status,Seccomp", "status,Seccomp_filters", "status,Groups", "status,SigBlk", "status,Threads"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(Line(outcome, "uid"), "0 0 0");
  for (const char* set : {"status,CapEff", "status,CapPrm", "status,CapBnd", "status,CapInh"}) EXPECT_EQ(Line(outcome, set), "0 0000000000000000");
  EXPECT_EQ(Line(outcome, "status,NoNewPrivs"), "0 1");
  EXPECT_EQ(Line(outcome, "status,Seccomp"), "0 2");
  EXPECT_EQ(Line(outcome, "status,Groups"), "0");
  EXPECT_EQ(Line(outcome, "status,SigBlk"), "0 0000000000000000");
  EXPECT_EQ(Line(outcome, "status,Threads"), "0 1");
}

TEST(LaunchTest, RunAs) {
  Sandbox sandbox(kNobody);
  const Outcome outcome = sandbox.Probe({"uid", "status,Uid", "status,Gid", "status,Groups", "status,CapBnd"});
  EXPECT_EQ(Line(outcome, "uid"), "0 65534 65534");
  EXPECT_EQ(Line(outcome, "status,Uid"), "0 65534 65534 65534 65534");
  EXPECT_EQ(Line(outcome, "status,Gid"), "0 65534 65534 65534 65534");
  EXPECT_EQ(Line(outcome, "status,Groups"), "0");
  EXPECT_EQ(Line(outcome, "status,CapBnd"), "0 0000000000000000");
}

TEST(LaunchTest, RunAsNeedsPrivilege) {
  Sandbox sandbox("\"run_as\":{\"uid\":1,\"gid\":1}");
  sandbox.As(65534);
  const Outcome outcome = sandbox.Probe({"uid"});
  EXPECT_EQ(outcome.code, 70);
  EXPECT_NE(outcome.err.find("sandbox launch: K_IDENTITY"), std::string::npos) << outcome.err;
  EXPECT_EQ(outcome.out, "");
}

TEST(LaunchTest, WithoutAnyPrivilege) {
  Sandbox sandbox;
  sandbox.As(65534);
  const Outcome outcome = sandbox.Probe({"uid", "socket,2,1,0", "status,NoNewPrivs"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(Line(outcome, "uid"), "0 65534 65534");
  EXPECT_EQ(Line(outcome, "socket,2,1,0"), "EAFNOSUPPORT");
  const auto log = sandbox.Log();
  EXPECT_TRUE(std::ranges::any_of(log, [](const LogLine& line) { return line.code == "FAMILY_DENIED"; }));
}

TEST(LaunchTest, R_OB_08_SamePidArgumentsDirectoryAndStatus) {
  Sandbox sandbox;
  ProcessOptions options = sandbox.Options({"/bin/sh", "-c", "echo pid $$; echo \"$0\" \"$1\"; pwd; exit 42", "zero", "one two"});
  options.directory = "/usr/share";
  Process process(options);
  const pid_t pid = process.pid();
  const Outcome outcome = process.Wait();
  EXPECT_EQ(outcome.out, "pid " + std::to_string(pid) + "\nzero one two\n/usr/share\n");
  EXPECT_EQ(outcome.code, 42);
}

TEST(LaunchTest, NoChildThatTheModuleDidNotMake) {
  Sandbox sandbox;
  // wait4(-1) finds nobody, and no SIGCHLD is pending.
  const Outcome outcome = sandbox.Probe({"call,61,-1,0,1,0", "status,SigPnd", "status,ShdPnd"});
  EXPECT_EQ(Line(outcome, "call,61,-1,0,1,0"), "ECHILD");
  EXPECT_EQ(Line(outcome, "status,ShdPnd"), "0 0000000000000000");
}

TEST(LaunchTest, FilesByKindOfRoot) {
  for (const char* policy : {"", kNobody}) {
  TemporaryDirectory directory;
  const std::string ro = directory.MakeDirectory("ro"), rw = directory.MakeDirectory("rw", 0777), rd = directory.MakeDirectory("rd"),
                    wo = directory.MakeDirectory("wo", 0777), outside = directory.MakeDirectory("outside", 0777);
  for (const std::string name : {"ro/f", "rw/f", "rd/f", "wo/f", "outside/f"}) (void)directory.WriteFile(name, "text", 0666);
    Sandbox sandbox("\"rw\":[\"" + rw + "\"],\"rd\":[\"" + rd + "\"],\"wo\":[\"" + wo + "\"],\"roots\":[{\"path\":\"" + ro + "\",\"rights\":[\"execute\",\"read_file\",\"read_dir\"]}]" +
                    (*policy ? std::string(",") + policy : ""));
    struct Expectation {
      std::string word, result;
    };
    std::vector<std::string> words;
    const std::vector<Expectation> expectations = {
        {"read," + ro + "/f", "0 text"}, {"list," + ro, "0"}, {"write," + ro + "/new", "EACCES"}, {"open," + ro + "/f,1", "EACCES"},
        {"read," + rd + "/f", "0 text"}, {"write," + rd + "/f", "EACCES"},
        {"read," + rw + "/f", "0 text"}, {"write," + rw + "/new", "0"}, {"list," + rw, "0"}, {"open," + rw + "/f,0x201", "0"},
        {"write," + wo + "/new", "0"}, {"read," + wo + "/f", "EACCES"}, {"list," + wo, "EACCES"},
        {"read," + outside + "/f", "EACCES"}, {"write," + outside + "/f", "EACCES"}, {"list," + outside, "EACCES"},
        {"list,/root", "EACCES"}, {"list,/", "EACCES"}, {"list,/usr", "0"}, {"list,/etc", "0"}, {"list,/var", "EACCES"},
        {"open,/dev/null,2", "0"}, {"open,/dev/zero,2", "0"}, {"open,/dev/full,1", "0"}, {"open,/dev/ptmx,2", "EACCES"},
        {"open,/dev/kmsg,0", "EACCES"}, {"write,/etc/oarlock-test", "EACCES"}};
    for (const auto& expectation : expectations) words.push_back(expectation.word);
    const Outcome outcome = sandbox.Probe(words);
    for (const auto& expectation : expectations) EXPECT_EQ(Line(outcome, expectation.word), expectation.result) << expectation.word << " " << policy;
    // The twin: nothing of it is forbidden by mode or by absence.
    const Outcome bare = sandbox.ProbeBare({"read," + outside + "/f", "write," + ro + "/f", "read," + wo + "/f", "list,/root"});
    EXPECT_EQ(bare.out.find("EACCES"), std::string::npos) << bare.out;
  }
}

TEST(LaunchTest, R_OB_22_ExecuteOnlyWhereGranted) {
  TemporaryDirectory directory;
  const std::string rw = directory.MakeDirectory("rw", 0777);
  std::string script = directory.WriteFile("rw/script", "#!/bin/sh\necho ran\n", 0755);
  {
    Sandbox sandbox("\"rw\":[\"" + rw + "\"]");
    const Outcome outcome = sandbox.Run({script});
    EXPECT_EQ(outcome.code, 71);
    EXPECT_NE(outcome.err.find("sandbox launch: EXEC: cannot run"), std::string::npos) << outcome.err;
    EXPECT_EQ(sandbox.Run({"/bin/sh", "-c", script}).code, 126);
    EXPECT_EQ(sandbox.RunBare({script}).out, "ran\n");
  }
  {
    Sandbox sandbox("\"rw\":[\"" + rw + "\"],\"exec_rw\":true");
    EXPECT_EQ(sandbox.Run({script}).out, "ran\n");
  }
  {
    Sandbox sandbox("\"rw\":[\"" + rw + "\"],\"exe\":\"" + script + "\"");
    EXPECT_EQ(sandbox.Run({script}).out, "ran\n");
  }
}

TEST(LaunchTest, R_OX_06_DescriptorsThatNobodyNamedAreClosed) {
  TemporaryDirectory directory;
  const std::string secret = directory.WriteFile("secret", "secret", 0600);
  int pair[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
  const UniqueFd kept(pair[0]), other(pair[1]);
  Sandbox sandbox;
  ProcessOptions options = sandbox.Options({ProbePath(), "fds"});
  options.before_exec = [&] {
    (void)dup2(open(secret.c_str(), O_RDONLY), 7);
    (void)dup2(pair[0], 9);
    (void)dup2(pair[0], 12);
  };
  EXPECT_EQ(RunProcess(options).out, "fds -> 0 0 1 2\n");
  // Endpoint descriptors that the agent names survive.
  options.environment["OARBANK_ENDPOINT_CHANNEL"] = "fd:9";
  EXPECT_EQ(RunProcess(options).out, "fds -> 0 0 1 2 9\n");
  options.environment["OARBANK_SERVICE_X"] = "fd:12";
  EXPECT_EQ(RunProcess(options).out, "fds -> 0 0 1 2 9 12\n");
}

TEST(LaunchTest, R_OX_04_ConfirmationByteComesLastAndOnce) {
  for (const bool good : {true, false}) {
    int ends[2];
    ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
    UniqueFd read_end(ends[0]), write_end(ends[1]);
    Sandbox sandbox(good ? "" : "\"require\":[\"net.egress-any\"]");
    ProcessOptions options = sandbox.Options({ProbePath(), "fds", "env,OARBANK_CONFINED", "env,OARLOCK_SUPERVISOR"});
    options.environment["OARBANK_CONFINED"] = "8";
    options.before_exec = [&] { (void)dup2(ends[1], 8); };
    const Outcome outcome = RunProcess(options);
    write_end.Reset();
    char bytes[8];
    EXPECT_EQ(read(read_end.get(), bytes, sizeof(bytes)), good ? 1 : 0);
    if (good) EXPECT_EQ(outcome.out, "fds -> 0 0 1 2\nenv,OARBANK_CONFINED -> absent\nenv,OARLOCK_SUPERVISOR -> absent\n");
    else EXPECT_EQ(outcome.code, 70);
  }
}

TEST(LaunchTest, StandardDescriptorsThatAreClosedBecomeNull) {
  Sandbox sandbox;
  ProcessOptions options = sandbox.Options({"/bin/sh", "-c", "ls -l /proc/self/fd/0 >&2; exit 7"});
  options.before_exec = [] {
    (void)close(0);
    (void)close(1);
  };
  const Outcome outcome = RunProcess(options);
  EXPECT_EQ(outcome.code, 7) << outcome.err;
  EXPECT_NE(outcome.err.find("/dev/null"), std::string::npos) << outcome.err;
}

TEST(LaunchTest, EnvironmentAndProxyVariables) {
  Sandbox sandbox("\"net\":\"egress-allowlist\",\"proxy_port\":4711,\"env\":{\"set\":{\"MODE\":\"module\"}}");
  sandbox.Environment("MOAT_SANDBOX_POLICY", "{}").Environment("OARLOCK_ANYTHING", "x").Environment("NO_PROXY", "localhost").Environment("OTHER", "1");
  const Outcome outcome = sandbox.Probe({"env,HTTP_PROXY", "env,https_proxy", "env,ALL_PROXY", "env,NO_PROXY", "env,MODE", "env,OTHER",
                                         "env,MOAT_SANDBOX_POLICY", "env,OARLOCK_ANYTHING"});
  EXPECT_EQ(outcome.out,
            "env,HTTP_PROXY -> 0 http://127.0.0.1:4711\nenv,https_proxy -> 0 http://127.0.0.1:4711\nenv,ALL_PROXY -> 0 http://127.0.0.1:4711\n"
            "env,NO_PROXY -> absent\nenv,MODE -> 0 module\nenv,OTHER -> 0 1\nenv,MOAT_SANDBOX_POLICY -> absent\nenv,OARLOCK_ANYTHING -> absent\n");
}

TEST(LaunchTest, R_MO_09_PolicyFromTheEnvironment) {
  ProcessOptions options;
  options.argv = {OarlockPath(), "sandbox-exec", "-", "--", "/bin/sh", "-c", "echo in; test -z \"$MOAT_SANDBOX_POLICY\" && echo gone"};
  TemporaryDirectory state;
  options.environment = {{"MOAT_SANDBOX_POLICY", "{\"profile\":\"module\"}"}, {"XDG_STATE_HOME", state.path()}};
  EXPECT_EQ(RunProcess(options).out, "in\ngone\n");
  options.environment.erase("MOAT_SANDBOX_POLICY");
  EXPECT_EQ(RunProcess(options).code, 70);
}

TEST(LaunchTest, Limits) {
  Sandbox sandbox("\"limits\":{\"nofile\":321}");
  const Outcome outcome = sandbox.Probe({"limit,7", "limit,4"});
  EXPECT_EQ(Line(outcome, "limit,7"), "0 321 321");
  EXPECT_EQ(Line(outcome, "limit,4"), "0 0 0");
  EXPECT_EQ(Line(Sandbox().Probe({"limit,7"}), "limit,7"), "0 4096 4096");
}

// E-146: what a module may not set it does not inherit either.
TEST(LaunchTest, PersonalityThatWeakensDoesNotPass) {
#ifdef __SANITIZE_THREAD__
  // Whose runtime does not start where the page at zero is mapped, as root may have it.
  const std::vector<std::string> weak = {"/usr/bin/setarch", "linux32", "-R"};
  const char* inherited = "00040008\n";
#else
  const std::vector<std::string> weak = {"/usr/bin/setarch", "linux32", "-R", "-Z"};
  const char* inherited = "00140008\n";
#endif
  const std::vector<std::string> show = {"/bin/cat", "/proc/self/personality"};
  const auto joined = [](std::vector<std::string> a, const std::vector<std::string>& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
  };
  for (const uid_t uid : {0U, 65534U}) {
    Sandbox sandbox;
    sandbox.As(uid);
    ProcessOptions options = sandbox.Options(show);
    options.argv = joined(weak, options.argv);
    const Outcome outcome = RunProcess(options);
    EXPECT_EQ(outcome.out, "00000008\n") << outcome.err;
    EXPECT_EQ(sandbox.RunBare(joined(weak, show)).out, inherited) << "the twin";
  }
}

TEST(LaunchTest, IgnoredSignalsStayIgnoredAndMasksDoNot) {
  Sandbox sandbox;
  ProcessOptions options = sandbox.Options({ProbePath(), "status,SigBlk", "status,SigIgn"});
  options.before_exec = [] {
    (void)signal(SIGHUP, SIG_IGN);
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, nullptr);
  };
  const Outcome outcome = RunProcess(options);
  EXPECT_EQ(Line(outcome, "status,SigBlk"), "0 0000000000000000");
  EXPECT_EQ(Line(outcome, "status,SigIgn"), "0 0000000000000001");
}

// In a terminal of its own: with tty none it is gone, with inherit it works, its ioctls too.
TEST(LaunchTest, ControllingTerminal) {
  // The hang-up that goes with giving the terminal up is the launcher's own doing, blocked or not.
  for (const auto& [inherit, blocked] : {std::pair(false, false), std::pair(false, true), std::pair(true, false), std::pair(true, true)}) {
    SCOPED_TRACE(blocked ? "signals blocked" : "signals open");
    Sandbox sandbox(inherit ? "\"tty\":\"inherit\"" : "");
    const ProcessOptions options = sandbox.Options({"/bin/sh", "-c", "if (stty raw </dev/tty && stty sane </dev/tty) 2>/dev/null; then echo has; else echo none; fi"});
    int terminal = -1;
    const pid_t pid = forkpty(&terminal, nullptr, nullptr, nullptr);
    ASSERT_GE(pid, 0);
    if (pid == 0) {
      sigset_t all;
      sigfillset(&all);
      if (blocked) sigprocmask(SIG_SETMASK, &all, nullptr);
      std::vector<char*> argv, envp;
      for (const std::string& argument : options.argv) argv.push_back(const_cast<char*>(argument.c_str()));
      std::string state = "XDG_STATE_HOME=" + options.environment.at("XDG_STATE_HOME"), path = "PATH=/usr/bin:/bin";
      envp = {state.data(), path.data(), nullptr};
      argv.push_back(nullptr);
      execve(argv[0], argv.data(), envp.data());
      _exit(1);
    }
    const UniqueFd master(terminal);
    std::string text;
    char buffer[512];
    for (ssize_t got = 0; (got = read(terminal, buffer, sizeof(buffer))) > 0;) text.append(buffer, static_cast<size_t>(got));
    int status = 0;
    (void)waitpid(pid, &status, 0);
    EXPECT_NE(text.find(inherit ? "has" : "none"), std::string::npos) << text;
  }
}

TEST(LaunchTest, R_OB_45_ReportSaysWhatHolds) {
  TemporaryDirectory directory;
  Sandbox sandbox("\"require\":[\"filesystem\",\"net.destination\",\"unix.pathname\"],\"report\":\"" + (directory / "report.json") + "\"");
  EXPECT_EQ(sandbox.Probe({"uid"}).code, 0);
  std::string problem;
  const Json report = ParseStrictJson(ReadWholeFile(directory / "report.json"), &problem);
  ASSERT_EQ(problem, "");
  EXPECT_EQ(report["backend"], "landlock");
  EXPECT_EQ(report["enforcement"]["filesystem"], "enforced");
  EXPECT_EQ(report["enforcement"]["net.egress-any"], "unavailable");
  EXPECT_EQ(report["policy_sha256"].get<std::string>().size(), 64U);
}

TEST(LaunchTest, R_OB_29_SignalsOutsideAreRefused) {
  std::string problem;
  const Json status = ParseStrictJson(RunProcess({.argv = {OarlockPath(), "sandbox-status"}}).out, &problem);
  if (status["enforcement"]["ipc"] != "enforced") GTEST_SKIP() << "this kernel cannot: " << status["reasons"]["ipc"];
  Sandbox sandbox;
  const Outcome outcome = sandbox.Probe({"kill," + std::to_string(getpid()) + ",0", "kill,1,0", "fork"});
  EXPECT_EQ(Line(outcome, "kill," + std::to_string(getpid()) + ",0"), "EPERM");
  EXPECT_EQ(Line(outcome, "fork"), "0");
  EXPECT_EQ(Line(sandbox.ProbeBare({"kill," + std::to_string(getpid()) + ",0"}), "kill," + std::to_string(getpid()) + ",0"), "0");
}

TEST(LaunchTest, NestedLaunchIsRefusedClearly) {
  Sandbox sandbox("\"rd\":[\"" OARLOCK_BINARY_DIR "\"]");
  const Outcome outcome = sandbox.Run({OarlockPath(), "sandbox-exec", sandbox.policy_path(), "--", "/bin/true"});
  EXPECT_TRUE(outcome.code == 70 || outcome.code == 71) << outcome.code;
  EXPECT_NE(outcome.err, "");
}

TEST(LaunchTest, LaunchedTwoHundredTimes) {
  Sandbox sandbox;
  for (int i = 0; i < 200; ++i) ASSERT_EQ(sandbox.Run({"/bin/true"}).code, 0) << i;
}

}  // namespace
}  // namespace oarlock::test
