// SPDX-License-Identifier: Apache-2.0
// Calls: those that reach other processes, the kernel or another sandbox are refused, and those that programs live by are not.
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/contract/support.h"
#include "tests/support/servers.h"

namespace oarlock::test {
namespace {

class Calls : public EachUser {
 protected:
  Outcome Run(const Words& words, const std::string& more = "") const {
    Sandbox sandbox(more);
    sandbox.As(GetParam());
    return Inside(sandbox, words);
  }
  Outcome Twin(const Words& words) const {
    Sandbox sandbox;
    sandbox.As(GetParam());
    return Bare(sandbox, words);
  }
};
OARLOCK_EACH_USER(Calls);

std::string Call(long nr, const std::string& arguments = "") { return "call," + std::to_string(nr) + arguments; }

std::unique_ptr<Process> Stranger(uid_t uid) {
  ProcessOptions options;
  options.argv = {"/bin/sleep", "300"};
  options.uid = uid;
  options.timeout = std::chrono::minutes(2);
  auto process = std::make_unique<Process>(options);
  const std::string comm = "/proc/" + std::to_string(process->pid()) + "/comm";
  EXPECT_TRUE(Eventually([&] { return ReadWholeFile(comm) == "sleep\n"; }));
  return process;
}

TEST_P(Calls, R_OB_29_NoSignalLeavesTheSandbox) {
  struct Way {
    std::string word, inside;
  };
  const auto ways = [](pid_t pid) {
    const std::string target = std::to_string(pid);
    return std::vector<Way>{{"kill," + target + ",10", "EPERM"},
                            {"kill,-" + target + ",10", "EPERM"},
                            {"tgkill," + target + ",10", "EPERM"},
                            {"pidfdsend," + target + ",10", "EPERM"},
                            {"fork:kill," + target + ",10", "EPERM"},
                            {"owner," + target + ",10", ""}};  // may be said to be done; nothing may be sent
  };
  for (size_t i = 0; i < ways(1).size(); ++i) {
    const auto stranger = Stranger(GetParam());
    const Way way = ways(stranger->pid())[i];
    const Outcome inside = Run({way.word});
    if (!way.inside.empty()) EXPECT_EQ(ResultOf(inside, way.word), way.inside) << inside.err;
    ::usleep(50'000);
    EXPECT_TRUE(stranger->Running()) << way.word;
    const Outcome bare = Twin({way.word});
    EXPECT_TRUE(Eventually([&] { return !stranger->Running(); }, std::chrono::seconds(3))) << "the twin: " << way.word << " " << bare.out;
  }
  const Outcome own = Run({"killchild,15", "killchild,9", "fork:killchild,15"});
  EXPECT_EQ(own.out, "killchild,15 -> 0 signal 15\nkillchild,9 -> 0 signal 9\nfork:killchild,15 -> 0 signal 15\n") << own.err;
}

TEST_P(Calls, R_OB_37_R_MO_03_EveryDescendantIsConfined) {
  TemporaryDirectory t;
  const std::string outside = t.MakeDirectory("outside", 0777);
  (void)t.WriteFile("outside/f", "text", 0666);
  TcpServer other;
  const auto stranger = Stranger(GetParam());
  const std::vector<std::pair<std::string, std::string>> probes = {{"read," + outside + "/f", "EACCES"},
                                                                   {"write," + outside + "/new", "EACCES"},
                                                                   {"to,127.0.0.1," + std::to_string(other.port()), "socket:EAFNOSUPPORT"},
                                                                   {"clone," + std::to_string(CLONE_NEWUSER), "EPERM"},
                                                                   {"kill," + std::to_string(stranger->pid()) + ",0", "EPERM"}};
  for (const char* where : {"", "fork:", "fork:fork:", "thread:", "thread:fork:", "exec:", "fork:exec:", "setsid:", "setsid:fork:exec:"}) {
    Words words;
    for (const auto& [word, expected] : probes) words.push_back(where + word);
    const Outcome inside = Run(words);
    for (const auto& [word, expected] : probes) EXPECT_EQ(ResultOf(inside, where + word), expected) << where << word << inside.err;
    const Outcome bare = Twin(words);
    for (const auto& [word, expected] : probes) {
      const std::string result = ResultOf(bare, where + word);
      EXPECT_TRUE(result.starts_with("0") || result == "exit 0") << "the twin: " << where << word << " " << result;
    }
    std::filesystem::remove(outside + "/new");
  }
  EXPECT_EQ(other.connections(), 9) << "the twins' alone";
}

TEST_P(Calls, R_OB_38_NoMountsAndNoNamespaces) {
  const std::vector<std::pair<const char*, std::string>> calls = {
      {"unshare", Call(SYS_unshare, "," + std::to_string(CLONE_NEWUSER))}, {"unshare of mounts", Call(SYS_unshare, "," + std::to_string(CLONE_NEWNS))},
      {"setns", Call(SYS_setns, ",0,0")}, {"mount", Call(SYS_mount)}, {"umount2", Call(SYS_umount2)}, {"pivot_root", Call(SYS_pivot_root)}, {"chroot", Call(SYS_chroot)},
      {"open_tree", Call(428, ",-100,0,1")}, {"move_mount", Call(429)}, {"fsopen", Call(430)}, {"fsconfig", Call(431)}, {"fsmount", Call(432)}, {"fspick", Call(433)},
      {"mount_setattr", Call(442)}};
  Words words;
  for (const auto& [name, word] : calls) words.push_back(word);
  const Outcome inside = Run(words), bare = Twin(words);
  for (const auto& [name, word] : calls) {
    EXPECT_EQ(ResultOf(inside, word), "EPERM") << name << inside.err;
    // Arguments are wrong or privilege lacks; for root it is never a matter of permission.
    if (GetParam() == 0) EXPECT_NE(ResultOf(bare, word), "EPERM") << "the twin: " << name;
  }
}

TEST_P(Calls, R_OB_39_NoNamespaceByClone) {
  Words words, plain = {"clone,0", "newthread", "spawn,/bin/true", "system,exit 3"};
  for (const long flag : {CLONE_NEWNS, CLONE_NEWCGROUP, CLONE_NEWUTS, CLONE_NEWIPC, CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET}) {
    words.push_back("clone," + std::to_string(flag));
    words.push_back("clone," + std::to_string(flag | (1L << 40)));  // what stands above 32 bits the kernel does not see
  }
  words.push_back("clone," + std::to_string(CLONE_NEWNS | CLONE_NEWUSER | CLONE_NEWPID));
  const Outcome inside = Run(words), free = Run(plain), bare = Twin(words);
  int made = 0;
  for (const std::string& word : words) {
    EXPECT_EQ(ResultOf(inside, word), "EPERM") << word << inside.err;
    made += ResultOf(bare, word) == "exit 0" ? 1 : 0;
  }
  EXPECT_GE(made, GetParam() == 0 ? 14 : 2) << "the twin: " << bare.out;
  EXPECT_EQ(ResultOf(free, plain[0]), "exit 0") << free.err;
  EXPECT_EQ(ResultOf(free, plain[1]), "0");
  EXPECT_EQ(ResultOf(free, plain[2]), "exit 0");
  EXPECT_EQ(ResultOf(free, plain[3]), "exit 3");
}

TEST_P(Calls, R_OB_40_Clone3IsAbsentAndNobodyMindsIt) {
  const Words words = {"call,435,0,0", "system,exit 4", "spawn,/bin/true", "spawn,/bin/false", "newthread", "thread:fork:pid"};
  const Outcome inside = Run(words), bare = Twin({words[0]});
  EXPECT_EQ(ResultOf(inside, words[0]), "ENOSYS") << inside.err;
  EXPECT_EQ(ResultOf(bare, words[0]), "EINVAL") << "the twin: it is there";
  EXPECT_EQ(ResultOf(inside, words[1]), "exit 4");
  EXPECT_EQ(ResultOf(inside, words[2]), "exit 0");
  EXPECT_EQ(ResultOf(inside, words[3]), "exit 1");
  EXPECT_EQ(ResultOf(inside, words[4]), "0");
  Sandbox sandbox;
  sandbox.As(GetParam());
  EXPECT_EQ(sandbox.Run({"/usr/bin/python3", "-c",
                         "import threading, subprocess, os\n"
                         "ts = [threading.Thread(target=lambda: subprocess.run(['/bin/true'], check=True)) for _ in range(8)]\n"
                         "[t.start() for t in ts]; [t.join() for t in ts]\n"
                         "print(subprocess.check_output('echo out', shell=True).decode(), end='')\n"
                         "print(os.waitstatus_to_exitcode(os.system('exit 6')))\n"})
                .out,
            "out\n6\n");
}

TEST_P(Calls, R_OB_41_NoTracingKernelProgramsKeysOrModules) {
  const auto stranger = Stranger(GetParam());
  const std::string pid = std::to_string(stranger->pid());
  const std::vector<std::pair<std::string, std::string>> calls = {{Call(SYS_ptrace, ",16," + pid), "EPERM"},
                                                                  {Call(SYS_process_vm_readv, "," + pid), "EPERM"},
                                                                  {Call(SYS_process_vm_writev, "," + pid), "EPERM"},
                                                                  {"pidfdget," + pid + ",0", "EPERM"},
                                                                  {Call(SYS_bpf, ",0,0,0"), "EPERM"},
                                                                  {Call(SYS_perf_event_open), "EPERM"},
                                                                  {Call(SYS_add_key), "EPERM"},
                                                                  {Call(SYS_request_key), "EPERM"},
                                                                  {Call(SYS_keyctl, ",0,-3,0"), "EPERM"},
                                                                  {Call(SYS_init_module), "EPERM"},
                                                                  {Call(SYS_finit_module, ",-1"), "EPERM"},
                                                                  {Call(SYS_delete_module), "EPERM"},
                                                                  {Call(SYS_kexec_load), "EPERM"},
                                                                  {Call(SYS_userfaultfd), "EPERM"}};
  Words words;
  for (const auto& [word, expected] : calls) words.push_back(word);
  const Outcome inside = Run(words);
  for (const auto& [word, expected] : calls) EXPECT_EQ(ResultOf(inside, word), expected) << word << inside.err;
  const Words twins = {"pidfdget," + pid + ",0", Call(SYS_process_vm_readv, "," + pid), Call(SYS_keyctl, ",0,-3,0")};
  const Outcome bare = Twin(twins);
  for (const std::string& word : twins) EXPECT_EQ(ResultOf(bare, word), "0") << "the twin: " << word;
  EXPECT_EQ(ResultOf(Twin({"fork:" + Call(SYS_ptrace, ",16," + pid)}), "fork:" + Call(SYS_ptrace, ",16," + pid)), "0") << "the twin";
#ifdef __x86_64__
  // The i386 entry has numbers of its own. Killed is the process that uses it.
  const std::string own = ResultOf(Twin({"int80"}), "int80");
  if (own == "exit 0") EXPECT_EQ(ResultOf(Run({"int80"}), "int80"), "signal 31");
#endif
}

TEST_P(Calls, R_MO_09_ThePolicyOfTheEnvironmentIsNotTheModules) {
  TemporaryDirectory t;
  const std::string state = t.MakeDirectory("state", 0755, GetParam(), GetParam());
  ProcessOptions options;
  options.argv = {OarlockPath(), "sandbox-exec", "-", "--"};
  for (const std::string& word : WithProbe({"environ,MOAT_SANDBOX_POLICY", "environ,KEPT", "fork:environ,MOAT", "exec:environ,MOAT", "list,/root"})) options.argv.push_back(word);
  options.environment = {{"MOAT_SANDBOX_POLICY", R"({"profile":"module","ro":[")" OARLOCK_BINARY_DIR R"(/tests/bin"]})"}, {"XDG_STATE_HOME", state}, {"KEPT", "1"}};
  options.uid = GetParam();
  const Outcome outcome = RunProcess(options);
  EXPECT_EQ(outcome.out, "environ,MOAT_SANDBOX_POLICY -> absent\nenviron,KEPT -> 0\nfork:environ,MOAT -> absent\nexec:environ,MOAT -> absent\nlist,/root -> EACCES\n") << outcome.err;
  EXPECT_EQ(ResultOf([&] {
              ProcessOptions bare = options;
              bare.argv = WithProbe({"environ,MOAT_SANDBOX_POLICY"});
              return RunProcess(bare);
            }(), "environ,MOAT_SANDBOX_POLICY"), "0") << "the twin";
}

}  // namespace
}  // namespace oarlock::test
