// SPDX-License-Identifier: Apache-2.0
// What a module does to files, by kind of root, and what of that was never promised.
#include <fcntl.h>
#include <linux/random.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <filesystem>

#include "child/roots.h"
#include "policy/policy.h"
#include "tests/contract/support.h"
#include "tests/contract/tracer.h"
#include "tests/support/servers.h"

namespace oarlock::test {
namespace {

constexpr const char* kTestPrograms = OARLOCK_BINARY_DIR "/tests/bin";

class Files : public EachUser {
 protected:
  // Everybody's, with two files and a directory in it: permissions forbid nothing.
  std::string Open(const std::string& name) const {
    const std::string path = t_.MakeDirectory(name, 0777);
    for (const std::string file : {"/f", "/g"}) (void)t_.WriteFile(name + file, "text", 0666);
    (void)t_.MakeDirectory(name + "/d", 0777);
    if (GetParam() != 0)
      for (const std::string part : {"", "/f", "/g", "/d"}) EXPECT_EQ(::chown((path + part).c_str(), GetParam(), GetParam()), 0);
    return path;
  }
  std::string Program(const std::string& name) const {
    std::filesystem::copy_file(ContractProbe(), t_ / name);
    EXPECT_EQ(::chmod((t_ / name).c_str(), 0755), 0);
    return t_ / name;
  }
  TemporaryDirectory t_;
};
OARLOCK_EACH_USER(Files);
using FilesAsRoot = MarkerTest;

TEST_P(Files, R_OB_20_BundleAndToolsAreReadAndExecutedOnly) {
  const std::string bundle = Open("bundle"), program = Program("bundle/program");
  Sandbox sandbox;
  (void)sandbox.directory().WriteFile("policy.json", "{\"ro\":" + Quoted({bundle, kTestPrograms}) + "}");
  sandbox.As(GetParam());
  std::vector<Row> rows = {{"read," + bundle + "/f", "0 text", "0 text"},
                           {"list," + bundle, "0", "0"},
                           {"list," + bundle + "/d", "0", "0"},
                           {"exec," + program, "exit 0", "exit 0"},
                           {"mapexec," + program, "0", "0"}};
  for (const std::string& change : Changes(bundle)) rows.push_back({change, change.starts_with("bind") ? "socket:EACCES" : "EACCES", "0"});
  Compare(sandbox, rows);
}

TEST_P(Files, R_OB_21_WorkDataAndTemporaryHaveEveryFileRight) {
  const std::string work = Open("work"), data = Open("data");
  Sandbox sandbox;
  (void)sandbox.directory().WriteFile("policy.json", "{\"ro\":" + Quoted({kTestPrograms}) + ",\"rw\":" + Quoted({work, data}) + "}");
  sandbox.As(GetParam());
  Words words;
  for (const std::string& root : {work, data})
    for (const std::string& change : Changes(root))
      // A socket is no file: whether it may be bound is not for the roots to say.
      if (!change.starts_with("bind")) words.push_back(change);
  // Across two roots, too: moves and links need a right of their own.
  words.insert(words.end(), {"rename," + work + "/new," + data + "/moved", "link," + data + "/g2," + work + "/linked", "read," + work + "/linked", "list," + data,
                             "rename," + work + "/newdir," + data + "/moveddir", "unlink," + work + "/newlink"});
  const Outcome inside = Inside(sandbox, words);
  for (const std::string& word : words) EXPECT_EQ(ResultOf(inside, word), word.starts_with("read") ? "0 text" : "0") << word << inside.err;
  EXPECT_TRUE(std::filesystem::exists(data + "/moved") && std::filesystem::is_directory(data + "/moveddir") && std::filesystem::exists(work + "/linked"));
  // Device nodes are no part of it.
  const std::string node = "mknod," + work + "/null,1,3";
  EXPECT_EQ(ResultOf(Inside(sandbox, {node}), node), "EPERM");
  EXPECT_FALSE(std::filesystem::exists(work + "/null"));
}

TEST_P(Files, R_OB_22_NothingIsExecutedThereUnlessThePolicySaysSo) {
  const std::string work = Open("work"), program = Program("work/program");
  (void)t_.WriteFile("work/script", "#!/bin/sh\nexit 5\n", 0755);
  const std::string exec = "exec," + program, script = "exec," + work + "/script", map = "mapexec," + program, protect = "protectexec," + program;
  for (const bool allowed : {false, true}) {
    SCOPED_TRACE(allowed);
    Sandbox sandbox;
    (void)sandbox.directory().WriteFile("policy.json", "{\"ro\":" + Quoted({kTestPrograms}) + ",\"rw\":" + Quoted({work}) + ",\"exec_rw\":" + (allowed ? "true" : "false") + "}");
    sandbox.As(GetParam());
    const Outcome outcome = Inside(sandbox, {exec, script, "memoryexec"});
    EXPECT_EQ(ResultOf(outcome, exec), allowed ? "exit 0" : "EACCES");
    EXPECT_EQ(ResultOf(outcome, script), allowed ? "exit 5" : "EACCES");
    // With a supervisor's sealed memfd it is the execution that is refused, without one the memfd.
    const std::string memory = ResultOf(outcome, "memoryexec");
    EXPECT_TRUE(allowed ? memory == "exit 9" : memory == "ENOSYS" || memory == "memfd:ENOSYS") << memory;
  }
  Sandbox sandbox;
  const Outcome bare = Bare(sandbox, {exec, script, "memoryexec", map, protect});
  EXPECT_EQ(bare.out, exec + " -> exit 0\n" + script + " -> exit 5\nmemoryexec -> exit 9\n" + map + " -> 0\n" + protect + " -> 0\n");
}

// The loader and mappings go round EXECUTE. Until a supervisor holds them, they are not said to be held, and a policy that needs it
// is refused; when they are, this test must say that they are refused.
TEST_F(FilesAsRoot, R_OB_22_WhatTheLoaderCanDoIsNotSaidToBeHeld) {
  std::filesystem::copy_file("/bin/true", work_ + "/true");
  ProcessOptions status;
  status.argv = {OarlockPath(), "sandbox-status"};
  const Json report = Parsed(RunProcess(status).out);
  EXPECT_EQ(report["enforcement"]["exec_writable_deny"], "enforced");
  const bool held = report["enforcement"]["exec_writable_deny.mmap"] == "enforced";
  const Words words = {"exec,/lib64/ld-linux-x86-64.so.2," + work_ + "/true", "mapexec," + work_ + "/true", "protectexec," + work_ + "/true"};
  Sandbox sandbox("\"rw\":[\"" + work_ + "\"]");
  const Outcome inside = Inside(sandbox, words);
  if (held)
    for (const std::string& word : words) EXPECT_EQ(ResultOf(inside, word).find("EACCES") != std::string::npos, true) << word << inside.out;
  const Outcome stopped = RunProcess(WithPolicy(Good(R"("require":["exec_writable_deny.mmap"])")));
  if (!held) ExpectStopped(stopped, 70, "K_REQUIRED /require/0: ");
}

TEST_P(Files, R_OB_06_R_OB_23_TheBaseSystemAndNothingElse) {
  Sandbox sandbox;
  sandbox.As(GetParam());
  std::vector<Row> rows;
  for (const std::string path : {"/usr", "/lib", "/lib32", "/lib64", "/bin", "/sbin", "/etc", "/opt", "/proc", "/sys/devices/system/cpu"})
    if (std::filesystem::exists(path)) rows.push_back({"list," + path, "0", "0"});
  rows.push_back({"exec,/bin/true", "exit 0", "exit 0"});
  rows.push_back({"exec,/usr/bin/env", "exit 0", "exit 0"});
  // What this user may read without a sandbox, it may not read here.
  Words elsewhere;
  for (const std::string path : {"/", "/home", "/srv", "/var", "/var/lib", "/run", "/boot", "/sys/kernel", "/sys", "/dev", "/tmp", "/mnt", "/media", "/root"}) elsewhere.push_back("list," + path);
  elsewhere.push_back("open,/dev/kmsg,0");
  const Outcome readable = Bare(sandbox, elsewhere);
  size_t refused = 0;
  for (const std::string& word : elsewhere)
    if (ResultOf(readable, word) == "0") {
      rows.push_back({word, "EACCES", "0"});
      ++refused;
    }
  EXPECT_GE(refused, 5U) << readable.out;
  // Nothing of it is written.
  for (const std::string path : {"/usr", "/etc", "/opt"}) {
    if (GetParam() != 0) continue;
    const std::string mark = path + "/oarlock-contract-" + std::to_string(::getpid());
    rows.push_back({"mkdir," + mark, "EACCES", "0"});
    rows.push_back({"rmdir," + mark, "ENOENT", "0"});
  }
  Compare(sandbox, rows);
}

// A grant is a whole tree: what lies below /etc and belongs to the module's user it can read. Another uid is what keeps it out.
TEST_F(FilesAsRoot, R_OB_23_ASecretBelowEtcIsKeptByItsOwnerAlone) {
  const std::string secret = "/etc/oarlock-contract-" + std::to_string(::getpid());
  {
    const UniqueFd fd(::open(secret.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    ASSERT_EQ(::write(fd.get(), "join code", 9), 9);
  }
  const std::string word = "read," + secret;
  EXPECT_EQ(ResultOf(Inside(Sandbox(R"("run_as":{"uid":65534,"gid":65534})"), {word}), word), "EACCES");
  EXPECT_EQ(ResultOf(Inside(Sandbox(), {word}), word), "0 join code") << "the twin: its owner";
  EXPECT_EQ(ResultOf(Inside(Sandbox(R"("base_system":false)"), {word}), word), "EACCES");
  (void)::unlink(secret.c_str());
}

TEST_P(Files, R_OB_24_FiveDevicesAndNoOther) {
  Sandbox sandbox;
  sandbox.As(GetParam());
  std::vector<Row> rows;
  for (const std::string device : {"null", "zero", "random", "urandom", "full"})
    for (const int flags : {O_RDWR, O_RDONLY, O_WRONLY | O_TRUNC}) rows.push_back({"open,/dev/" + device + "," + std::to_string(flags), "0", "0"});
  for (const std::string device : {"kvm", "fuse", "ptmx", "tty", "kmsg", "mem", "port", "net/tun", "loop-control", "vda", "sda", "hpet", "rtc0", "vhost-net", "console"}) {
    const std::string path = "/dev/" + device;
    const std::string word = "open," + path + "," + std::to_string(O_RDWR | O_NONBLOCK);
    Sandbox twin;
    twin.As(GetParam());
    if (ResultOf(Bare(twin, {word}), word) == "0") rows.push_back({word, "EACCES", "0"});
  }
  EXPECT_GT(rows.size(), 15U) << "no other device could be opened by the twin either";
  Compare(sandbox, rows);
}

TEST_P(Files, R_OB_36_DevicesOfAGpuGrant) {
  // A stand-in: urandom by a name of our own, whose own ioctl (RNDGETENTCNT) needs a right to itself since ABI 5.
  if (::getuid() != 0) GTEST_SKIP() << "makes a device node";
  const std::string device = t_ / "gpu0";
  ASSERT_EQ(::mknod(device.c_str(), S_IFCHR | 0666, makedev(1, 9)), 0);
  ASSERT_EQ(::chmod(device.c_str(), 0666), 0);
  const std::string open = "open," + device + "," + std::to_string(O_RDWR), ioctl = "ioctl," + device + "," + std::to_string(RNDGETENTCNT);
  const auto with = [&](const std::string& more, const Words& words) {
    Sandbox sandbox(more);
    sandbox.As(GetParam());
    return Inside(sandbox, words);
  };
  Sandbox bare;
  bare.As(GetParam());
  if (ResultOf(Bare(bare, {ioctl}), ioctl) != "0") GTEST_SKIP() << "this file system lets nobody use a device node: " << Bare(bare, {open, ioctl}).out;
  for (const std::string word : {"\"gpu\":true", "\"gpu\":\"compute\""}) {
    const Outcome granted = with(word + ",\"gpu_devices\":[\"" + device + "\"]", {open, ioctl, "read," + device});
    EXPECT_EQ(ResultOf(granted, open), "0") << granted.err;
    EXPECT_EQ(ResultOf(granted, ioctl), "0");
  }
  for (const std::string& more : {std::string(), "\"gpu\":false,\"gpu_devices\":[\"" + device + "\"]", "\"gpu\":\"none\",\"gpu_devices\":[\"" + device + "\"]"}) {
    const Outcome without = with(more, {open, ioctl});
    EXPECT_EQ(ResultOf(without, open), "EACCES") << more << without.err;
    EXPECT_EQ(ResultOf(without, ioctl), "open:EACCES") << more;
  }
  // As a root that reads and writes it opens, but the device's own requests stay closed.
  if (child::LandlockAbi().value_or(0) >= 5) {
    const Outcome rw = with("\"rw\":[\"" + device + "\"]", {open, ioctl});
    EXPECT_EQ(ResultOf(rw, open), "0") << rw.err;
    EXPECT_EQ(ResultOf(rw, ioctl), "EACCES");
  }
}

TEST_P(Files, R_OB_46_WhetherAFileIsThereIsNotHidden) {
  const std::string hidden = Open("hidden");
  Sandbox sandbox;
  sandbox.As(GetParam());
  const Outcome inside = Inside(sandbox, {"stat," + hidden + "/f", "access," + hidden + "/f,0", "stat," + hidden + "/none", "read," + hidden + "/f"});
  EXPECT_EQ(ResultOf(inside, "stat," + hidden + "/f"), "0");
  EXPECT_EQ(ResultOf(inside, "access," + hidden + "/f,0"), "0");
  EXPECT_EQ(ResultOf(inside, "stat," + hidden + "/none"), "ENOENT");
  EXPECT_EQ(ResultOf(inside, "read," + hidden + "/f"), "EACCES");
}

TEST(Claims, R_OB_46_R_MO_34_NothingSaysThatNamesAreHiddenOrPathsDenied) {
  ProcessOptions status;
  status.argv = {OarlockPath(), "sandbox-status"};
  const Json report = Parsed(RunProcess(status).out);
  ASSERT_GT(report["enforcement"].size(), 10U);
  for (const auto& [name, state] : report["enforcement"].items())
    for (const char* claim : {"exist", "hid", "stat", "deny_paths", "mask", "secre"}) EXPECT_EQ(name.find(claim), std::string::npos) << name;
  EXPECT_NE(report["enforcement"]["metadata_writes"], "enforced");
  // The page says so too.
  std::string page = ReadWholeFile(OARLOCK_SOURCE_DIR "/docs/GUARANTEES.md");
  EXPECT_NE(page.find("whether a file exists, how"), std::string::npos);
}

TEST_P(Files, R_OX_01_GrantsAreCanonical) {
  const std::string real = Open("real"), beside = t_ / "secret";
  (void)t_.WriteFile("secret", "secret", 0666);
  ASSERT_EQ(::symlink(real.c_str(), (t_ / "link").c_str()), 0);
  ASSERT_EQ(::symlink(beside.c_str(), (t_ / "real/out").c_str()), 0);
  Sandbox sandbox("\"rd\":" + Quoted({t_ / "link", t_ / "./real/../real", t_ / "link"}));
  sandbox.As(GetParam());
  Compare(sandbox, {{"read," + t_ / "link" + "/f", "0 text", "0 text"},
                    {"read," + real + "/f", "0 text", "0 text"},
                    {"list," + t_ / "link", "0", "0"},
                    {"read," + beside, "EACCES", "0 secret"},
                    {"read," + t_ / "link/out", "EACCES", "0 secret"},
                    {"list," + t_.path(), "EACCES", "0"}});
}

TEST_P(Files, R_OX_02_PatternsAreNames) {
  const std::string star = Open("*"), other = Open("other");
  Sandbox sandbox("\"rd\":" + Quoted({star}));
  sandbox.As(GetParam());
  Compare(sandbox, {{"read," + star + "/f", "0 text", "0 text"}, {"read," + other + "/f", "EACCES", "0 text"}, {"list," + star, "0", "0"}, {"list," + other, "EACCES", "0"}});
  // One that fits nothing by name is no root at all.
  for (const char* pattern : {"/ot*", "/oth?r", "/[o]ther", "/{other}"}) {
    Sandbox wrong("\"rd\":" + Quoted({t_.path() + pattern}));
    wrong.As(GetParam());
    const Outcome outcome = Inside(wrong, {"list," + other});
    EXPECT_EQ(outcome.code, 70) << pattern;
    EXPECT_TRUE(outcome.err.starts_with("sandbox launch: P_PATH /rd/0: ")) << outcome.err;
  }
}

TEST_P(Files, R_OX_03_BootstrapGrants) {
  // Only its working directory and the module's own way out: no data, tools, GPU, broker, programs of its own making.
  const std::string work = Open("work"), data = Open("data"), tools = Open("tools");
  UnixServer broker(t_.MakeDirectory("agent") + "/broker.sock");
  TcpServer proxy, other;
  std::filesystem::copy_file(ContractProbe(), work + "/program");
  const std::string to = "to,127.0.0.1," + std::to_string(proxy.port()), elsewhere = "to,127.0.0.1," + std::to_string(other.port());
  Sandbox sandbox("\"kind\":\"coordinator-install\",\"rw\":" + Quoted({work}) + ",\"net\":\"egress-allowlist\",\"proxy_port\":" + std::to_string(proxy.port()));
  sandbox.As(GetParam());
  const std::string mark = "write," + data + "/new";
  std::vector<Row> rows = {{"write," + work + "/new", "0", "0"},
                           {"read," + work + "/f", "0 text", "0 text"},
                           {to, "0", "0"},
                           {elsewhere, "EACCES", "0"},
                           {"read," + data + "/f", "EACCES", "0 text"},
                           {mark, "EACCES", "0"},
                           {"read," + tools + "/f", "EACCES", "0 text"},
                           {"to," + t_ / "agent/broker.sock", "socket:EACCES", "0"},
                           {"exec," + work + "/program", "EACCES", "exit 0"}};
  Words words;
  for (const Row& row : rows) words.push_back(row.word);
  const Outcome inside = Inside(sandbox, words);
  for (const Row& row : rows) EXPECT_EQ(ResultOf(inside, row.word), row.inside) << row.word << inside.err;
  EXPECT_EQ(other.connections(), 0);
  EXPECT_EQ(broker.connections(), 0);
  EXPECT_FALSE(std::filesystem::exists(data + "/new"));
  const Outcome bare = Bare(sandbox, words);
  for (const Row& row : rows) EXPECT_EQ(ResultOf(bare, row.word), row.bare) << "the twin: " << row.word;
}

TEST_P(Files, R_OX_07_AnOutboxIsWrittenAndNothingElse) {
  const std::string box = Open("box"), work = Open("work");
  Sandbox sandbox("\"wo\":" + Quoted({box}) + ",\"rw\":" + Quoted({work}));
  sandbox.As(GetParam());
  Compare(sandbox, {{"write," + box + "/new", "0", "0"},
                    {"open," + box + "/f," + std::to_string(O_WRONLY | O_TRUNC), "0", "0"},
                    {"mkdir," + box + "/newdir", "0", "EEXIST"},
                    {"open," + box + "/d," + std::to_string(O_TMPFILE | O_WRONLY), "0", "0"},
                    {"read," + box + "/g", "EACCES", "0 text"},
                    {"open," + box + "/f," + std::to_string(O_RDWR), "EACCES", "0"},
                    {"list," + box, "EACCES", "0"},
                    {"symlink,f," + box + "/newlink", "EACCES", "0"},
                    {"mkfifo," + box + "/newfifo", "EACCES", "0"},
                    {"link," + work + "/f," + box + "/newhard", "EXDEV", "0"},
                    {"link," + box + "/g," + work + "/newhard", "EXDEV", "0"},
                    {"rename," + box + "/g," + work + "/stolen", "EACCES", "0"},
                    {"rename," + box + "/f," + box + "/f2", "EACCES", "0"},
                    {"unlink," + box + "/new", "EACCES", "0"},
                    {"rmdir," + box + "/d", "EACCES", "0"}});
}

// --- what cannot be widened ----------------------------------------------------------------------------------------------------

TEST_P(Files, R_MO_04_NoCodeWidensIt) {
  const std::string outside = Open("outside"), work = Open("work");
  Sandbox sandbox("\"rw\":" + Quoted({work}) + ",\"keep_fds\":[60]");
  sandbox.As(GetParam());
  // A kept descriptor is read, as it was opened for; it is no way to open the file anew, and a handle on a directory opens nothing.
  const Words words = {"list,/root", "widen", "read," + outside + "/f", "write," + outside + "/new", "list,/", "beneath,/,etc/../root,0",
                       "beneath," + outside + ",f,0", "beneath,/proc/self/root," + outside.substr(1) + "/f,0", "reopen,60,0", "reopen,60,2", "call,0,60,0,0", "write," + work + "/new"};
  ProcessOptions options = sandbox.Options(WithProbe(words));
  const auto pass = [&] {
    const int fd = ::open((outside + "/f").c_str(), O_RDONLY);
    if (::dup2(fd, 60) != 60) ::_exit(118);
    (void)::close(fd);
  };
  options.before_exec = pass;
  const Outcome inside = RunProcess(options);
  ASSERT_EQ(inside.code, 0) << inside.err;
  EXPECT_EQ(ResultOf(inside, "widen"), "0") << "it may have a domain of its own, within ours";
  for (const std::string& word : words) {
    if (word == "widen" || word == "call,0,60,0,0" || word == "write," + work + "/new") continue;
    EXPECT_EQ(ResultOf(inside, word), "EACCES") << word;
  }
  EXPECT_EQ(ResultOf(inside, "call,0,60,0,0"), "0") << "it is kept as what it was";
  EXPECT_EQ(ResultOf(inside, "write," + work + "/new"), "0");
  EXPECT_FALSE(std::filesystem::exists(outside + "/new"));
  options.argv.erase(options.argv.begin(), options.argv.begin() + 4);
  std::erase(options.argv, "widen");
  if (GetParam() != 0) std::erase_if(options.argv, [](const std::string& word) { return word.find("root,0") != std::string::npos || word == "list,/root"; });
  const Outcome bare = RunProcess(options);
  EXPECT_EQ(bare.out.find("EACCES"), std::string::npos) << "the twin: " << bare.out;
}

// --- rules ---------------------------------------------------------------------------------------------------------------------

TEST_F(FilesAsRoot, R_MO_27_R_OB_09_FilesAndSocketsGetTheRightsOfFiles) {
  // Rights that only directories have are EINVAL on anything else, which must not end a launch.
  const std::string file = t_.WriteFile("file", "text", 0666), place = t_.MakeDirectory("place"), fifo = t_ / "fifo";
  UnixServer server(place + "/server.sock");
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0666), 0);
  Sandbox sandbox("\"rw\":" + Quoted({file, place + "/server.sock", fifo, "/dev/null"}));
  const Outcome inside = Inside(sandbox, {"write," + file, "read," + file, "open," + fifo + "," + std::to_string(O_RDWR), "to," + place + "/server.sock", "write," + place + "/beside"});
  ASSERT_EQ(inside.code, 0) << inside.err;
  EXPECT_EQ(ResultOf(inside, "write," + file), "0");
  EXPECT_EQ(ResultOf(inside, "read," + file), "0 textx");
  EXPECT_EQ(ResultOf(inside, "open," + fifo + "," + std::to_string(O_RDWR)), "0");
  EXPECT_EQ(ResultOf(inside, "to," + place + "/server.sock"), "socket:EACCES") << "a root is no grant to connect";
  EXPECT_EQ(ResultOf(inside, "write," + place + "/beside"), "EACCES");
  EXPECT_EQ(server.connections(), 0);
}

TEST_F(FilesAsRoot, R_MO_39_ApplyingDoesNotChangeThePolicy) {
  const auto parsed = policy::Parse("{\"ro\":[\"/usr\",\"/etc\"],\"rw\":[\"" + work_ + "\"],\"exe\":\"/bin/true\",\"exec_rw\":true}");
  ASSERT_TRUE(parsed);
  const policy::Policy before = *parsed;
  child::RootsContext context;
  context.program = "/bin/true";
  const auto rules = [&] {
    auto roots = child::OpenRoots(*parsed, context);
    EXPECT_TRUE(roots);
    std::vector<std::string> text;
    for (const child::PathRule& rule : roots->rules) text.push_back(rule.path + " " + std::to_string(rule.rights) + " " + rule.pointer);
    for (const auto& rule : roots->rules) EXPECT_TRUE(rule.parent.valid());
    return text;
  };
  const auto first = rules();
  EXPECT_GT(first.size(), 5U);
  EXPECT_EQ(first, rules());
  EXPECT_EQ(*parsed, before);
  // A launch and then another from the same file, too.
  for (int i = 0; i < 2; ++i) ExpectRan(RunProcess(WithPolicy(Good())));
}

}  // namespace
}  // namespace oarlock::test
