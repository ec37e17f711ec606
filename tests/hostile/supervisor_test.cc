// SPDX-License-Identifier: Apache-2.0
// The supervisor itself as the target: its memory, descriptors, files, and its life, by a module of its own user and by one that is
// root (E-92, E-132, E-152 to E-156). The twin does the same to a process that stands by, and can.
#include <fcntl.h>

#include <filesystem>

#include "tests/hostile/support.h"

namespace oarlock::test {
namespace {

// The private supervisor whose log lies in this directory.
pid_t SupervisorOf(const std::string& directory) {
  namespace fs = std::filesystem;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    if (!ReadWholeFile(entry.path() / "comm").starts_with("oarlock-private")) continue;
    std::error_code error;
    for (const auto& fd : fs::directory_iterator(entry.path() / "fd", error))
      if (fs::read_symlink(fd.path(), error).string().starts_with(directory)) return std::stoi(name);
  }
  return -1;
}

// Somebody who is not in the sandbox.
std::unique_ptr<Process> Stranger(uid_t uid) {
  ProcessOptions options;
  options.argv = {AttackerPath(), "stdin"};
  options.uid = uid;
  options.timeout = std::chrono::minutes(2);
  auto process = std::make_unique<Process>(options);
  EXPECT_TRUE(process->WaitFor("ready"));
  return process;
}

class Target : public testing::TestWithParam<const char*> {
 protected:
  Target() : sandbox_(Egress(proxy_.port())), same_user_(GetParam() == std::string("SameUser")) {
    if (GetParam() == std::string("Node")) {
      daemon_ = std::make_unique<Daemon>();
      sandbox_.Supervisor(daemon_->socket());
    }
    if (same_user_) sandbox_.As(65534);
    sandbox_.Timeout(std::chrono::minutes(2));
    module_ = std::make_unique<Process>(sandbox_.Options(Attack({"stdin"})));
    EXPECT_TRUE(module_->WaitFor("ready")) << module_->err();
    supervisor_ = daemon_ ? daemon_->pid() : SupervisorOf(sandbox_.directory().path());
    EXPECT_GT(supervisor_, 0);
  }
  std::string Inside(const std::string& word) {
    module_->Write(word + "\n");
    EXPECT_TRUE(module_->WaitFor(word + " -> ") && Eventually([&] {
                  (void)module_->WaitFor("\n", std::chrono::milliseconds(1));
                  return module_->out().ends_with("\n");
                })) << module_->out();
    return ResultOf(module_->out(), word);
  }
  TcpServer proxy_;
  Sandbox sandbox_;
  bool same_user_;
  std::unique_ptr<Daemon> daemon_;
  std::unique_ptr<Process> module_;
  pid_t supervisor_ = -1;
};
INSTANTIATE_TEST_SUITE_P(Hostile, Target, testing::Values("SameUser", "Root", "Node"), [](const auto& row) { return std::string(row.param); });

TEST_P(Target, E92_E132_E152_E154_E156_MemoryDescriptorsAndSignals) {
  const auto stranger = Stranger(same_user_ ? 65534 : 0);
  for (const pid_t pid : {supervisor_, stranger->pid()}) {
    SCOPED_TRACE(pid == supervisor_ ? "the supervisor" : "a stranger");
    const std::string done = Inside("process," + std::to_string(pid));
    EXPECT_EQ((done + " ").find("=0 "), std::string::npos) << done;
    (void)Inside("owner," + std::to_string(pid));  // may be said to be done; nothing may be sent
    for (const int signal : {SIGKILL, SIGSTOP, SIGSEGV, 0}) EXPECT_EQ(Inside("kill," + std::to_string(pid) + "," + std::to_string(signal)), "EPERM");
  }
  ::usleep(50'000);
  EXPECT_TRUE(stranger->Running());
  EXPECT_EQ(Inside("to,127.0.0.1," + std::to_string(proxy_.port())), "0") << "it still serves";
  EXPECT_EQ(::kill(supervisor_, 0), 0);

  // The twin, of the same user.
  const std::string word = "process," + std::to_string(stranger->pid()), owner = "owner," + std::to_string(stranger->pid());
  ProcessOptions bare;
  bare.argv = Attack({word, owner});
  if (same_user_) bare.uid = 65534;
  const Outcome twin = RunProcess(bare);
  const std::string done = ResultOf(twin, word);
  for (const char* what : {"mem", "environ", "maps", "auxv", "root", "fdN", "getfd", "readv", "writev", "kcmp", "kill", "tgkill", "sigqueue",
                           "pidfdsignal", "prlimit", "ptrace"})
    EXPECT_NE((" " + done + " ").find(std::string(" ") + what + "=0 "), std::string::npos) << what << ": " << done;
  EXPECT_TRUE(Eventually([&] { return !stranger->Running(); })) << "the twin's owner signal";
}

// No descriptor of the module answers the listener's calls, whatever its number.
TEST_P(Target, E92_ListenerCallsFromInside) {
  EXPECT_EQ(Inside("notif,0"), "EPERM EPERM EPERM EPERM EPERM EPERM");
  EXPECT_EQ(Inside("notif,3"), "EPERM EPERM EPERM EPERM EPERM EPERM");
  const std::string every = Inside("everyfd");
  EXPECT_GT(CountOf(every, "EPERM"), 2) << every;
  EXPECT_EQ(every.find(' '), std::string::npos) << every;
  EXPECT_EQ(Inside("to,127.0.0.1," + std::to_string(proxy_.port())), "0") << "it still serves";
  // Outside the number is just not one of these files'.
  Sandbox bare;
  EXPECT_EQ(ResultOf(bare.RunBare(Attack({"notif,0"})), "notif,0").find("EPERM"), std::string::npos);
}

TEST_P(Target, E211_E214_LogHeadAndSockets) {
  namespace fs = std::filesystem;
  (void)Inside("to,127.0.0.2," + std::to_string(proxy_.port()));  // one refusal to keep
  std::vector<std::string> files;
  const fs::path log_directory = daemon_ ? fs::path(daemon_->log_path()).parent_path() : fs::path(sandbox_.directory() / "state/oarlock/audit");
  for (const auto& entry : fs::directory_iterator(log_directory))
    if (entry.is_regular_file()) files.push_back(entry.path());
  if (daemon_) files.insert(files.end(), {daemon_->socket(), daemon_->control()});
  ASSERT_GE(files.size(), 1U);
  for (const std::string& file : files) {
    SCOPED_TRACE(file);
    const std::string done = Inside("deface," + file);
    EXPECT_EQ((done + " ").find("=0 "), std::string::npos) << done;
    EXPECT_TRUE(fs::exists(file));
  }
  // The twin can: on a copy beside it.
  const std::string copy = log_directory / "copy";
  fs::copy_file(files.front(), copy);
  if (same_user_) ASSERT_EQ(::chown(copy.c_str(), 65534, 65534), 0);
  ProcessOptions bare;
  bare.argv = Attack({"deface," + copy});
  if (same_user_) bare.uid = 65534;
  const std::string twin = ResultOf(RunProcess(bare), "deface," + copy);
  for (const char* what : {"read", "write", "truncating", "truncate", "rename"})
    EXPECT_NE((" " + twin + " ").find(std::string(" ") + what + "=0 "), std::string::npos) << what << ": " << twin;
  std::error_code error;
  fs::remove(copy, error);
  fs::remove(copy + ".moved", error);
  (void)module_->Wait();
  EXPECT_EQ(Refusals(daemon_ ? daemon_->Log() : sandbox_.Log(), "TCP_NOT_PROXY"), 1U);
}

}  // namespace
}  // namespace oarlock::test
