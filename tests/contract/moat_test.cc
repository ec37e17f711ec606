// SPDX-License-Identifier: Apache-2.0
// Profile write-allowlist: reads are open, writes go where the policy lists them. As its authors start it: the policy comes by the
// environment, in best effort.
#include <asm/ioctls.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <set>

#include "child/landlock.h"
#include "child/roots.h"
#include "policy/policy.h"
#include "tests/contract/support.h"
#include "tests/contract/tracer.h"
#include "tests/support/servers.h"

namespace oarlock::test {
namespace {

int KernelAbi() { return child::LandlockAbi().value_or(0); }

// A directory in none of the trees that this profile makes writable by itself.
class Outside {
 public:
  Outside() {
    std::string path = OARLOCK_BINARY_DIR "/tests/outside-XXXXXX";
    if (::mkdtemp(path.data()) != nullptr) path_ = path;
    (void)::chmod(path_.c_str(), 0755);
  }
  ~Outside() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  Outside(const Outside&) = delete;
  Outside& operator=(const Outside&) = delete;
  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  // Everybody's and the user's own: permissions forbid nothing.
  std::string Make(const std::string& name, uid_t uid) const {
    const std::string made = path_ + "/" + name;
    const auto own = [uid](const std::string& what, mode_t mode) {
      EXPECT_EQ(::chmod(what.c_str(), mode), 0) << what;
      EXPECT_EQ(::chown(what.c_str(), uid, uid), 0) << what;
    };
    std::filesystem::create_directory(made);
    std::filesystem::create_directory(made + "/d");
    for (const char* file : {"/f", "/g"}) {
      const UniqueFd fd(::open((made + file).c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666));
      EXPECT_EQ(::write(fd.get(), "text", 4), 4);
      own(made + file, 0666);
    }
    own(made + "/d", 0777);
    own(made, 0777);
    return made;
  }

 private:
  std::string path_;
};

class Agent : public EachUser {
 protected:
  void SetUp() override {
    for (const char* tree : {"/tmp/", "/var/tmp/", "/run/", "/dev/", "/proc/"})
      if (std::string(OARLOCK_BINARY_DIR "/").starts_with(tree)) GTEST_SKIP() << "the build lies in " << tree << ", which this profile makes writable";
    ASSERT_NE(outside_.path(), "");
    work_ = outside_.Make("work", GetParam());
    home_ = outside_.Make("home", GetParam());
    state_ = outside_.Make("state", GetParam());
    ASSERT_EQ(::chmod(state_.c_str(), 0755), 0);
  }
  [[nodiscard]] std::string Policy(const std::string& more = "") const {
    return R"({"version":1,"profile":"write-allowlist","allow_write":[")" + work_ + "\"]" + (more.empty() ? "" : "," + more) + "}";
  }
  [[nodiscard]] ProcessOptions Options(const std::string& policy, const Words& words) const {
    ProcessOptions options;
    options.argv = {OarlockPath(), "sandbox-exec", "-", "--"};
    for (const std::string& word : WithProbe(words)) options.argv.push_back(word);
    options.environment = {{"MOAT_SANDBOX_POLICY", policy}, {"HOME", home_}, {"XDG_STATE_HOME", state_}};
    options.uid = GetParam();
    return options;
  }
  [[nodiscard]] Outcome Run(const std::string& policy, const Words& words) const { return RunProcess(Options(policy, words)); }
  [[nodiscard]] Outcome Bare(const Words& words) const {
    ProcessOptions options = Options("", words);
    options.argv = WithProbe(words);
    options.environment.erase("MOAT_SANDBOX_POLICY");
    return RunProcess(options);
  }
  void Each(const std::string& policy, const std::vector<Row>& rows) const {
    Words words;
    for (const Row& row : rows) words.push_back(row.word);
    const Outcome inside = Run(policy, words);
    ASSERT_EQ(inside.code, 0) << inside.err;
    for (const Row& row : rows) EXPECT_EQ(ResultOf(inside, row.word), row.inside) << row.word;
    const Outcome bare = Bare(words);
    for (const Row& row : rows) EXPECT_EQ(ResultOf(bare, row.word), row.bare) << "the twin: " << row.word;
  }
  static std::string Active(int abi) { return "kernel sandbox active (Landlock ABI v" + std::to_string(abi) + ")\n"; }
  static std::vector<std::string> Degraded(const std::string& err) {
    std::vector<std::string> lines;
    const std::string key = "sandbox launch: DEGRADED ";
    for (size_t at = 0; (at = err.find(key, at)) != std::string::npos; at += key.size())
      lines.push_back(err.substr(at + key.size(), err.find('\n', at) - at - key.size()));
    return lines;
  }
  Outside outside_;
  std::string work_, home_, state_;
};
OARLOCK_EACH_USER(Agent);

TEST_P(Agent, R_MO_01_OneSwitchConfinesTheFiles) {
  const std::string other = outside_.Make("other", GetParam());
  const std::string word = "write," + other + "/new";
  Each(Policy(), {{word, "EACCES", "0"}, {"write," + work_ + "/new", "0", "0"}});
}

TEST_P(Agent, R_MO_07_MetadataIsTheOwnersWhichTheReportSays) {
  const std::string report = outside_.path() + "/report/r.json";
  (void)outside_.Make("report", GetParam());
  const std::string mine = outside_.Make("mine", GetParam());
  const Outcome inside = Run(Policy("\"report\":\"" + report + "\""), {"chmod," + mine + "/f,0600", "utimes," + mine + "/f", "setxattr," + mine + "/f"});
  ASSERT_EQ(inside.code, 0) << inside.err;
  const Json json = Parsed(ReadWholeFile(report));
  const bool held = json["enforcement"]["metadata_writes"] == "enforced";
  for (const std::string& word : {"chmod," + mine + "/f,0600", "utimes," + mine + "/f"}) EXPECT_EQ(ResultOf(inside, word) == "0", !held) << word;
}

TEST_P(Agent, R_MO_10_R_MO_42_OnOlderKernelsFeaturesDropOutOneByOneAndAreListed) {
  const std::string other = outside_.Make("other", GetParam()), report_path = outside_.Make("report", GetParam()) + "/r.json";
  size_t before = SIZE_MAX;
  for (int abi = 1; abi <= KernelAbi(); ++abi) {
    SCOPED_TRACE(abi);
    const Outcome outcome = RunCapped(Options(Policy("\"report\":\"" + report_path + "\""), {"write," + other + "/new", "write," + work_ + "/new", "truncate," + other + "/f,1", "read," + other + "/f"}), abi);
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(ResultOf(outcome, "write," + other + "/new"), "EACCES");
    EXPECT_EQ(ResultOf(outcome, "write," + work_ + "/new"), "0");
    EXPECT_EQ(ResultOf(outcome, "truncate," + other + "/f,1"), "EACCES");
    EXPECT_EQ(ReadWholeFile(other + "/f"), "text");
    EXPECT_NE(outcome.err.find(Active(abi)), std::string::npos) << outcome.err;
    const std::vector<std::string> lines = Degraded(outcome.err);
    const Json report = Parsed(ReadWholeFile(report_path));
    EXPECT_EQ(report["degraded"].get<std::vector<std::string>>(), lines);
    EXPECT_EQ(report["landlock_abi"], abi);
    const auto tells = [&](const std::string& what) {
      return std::ranges::any_of(lines, [&](const std::string& line) { return line.find(what) != std::string::npos; });
    };
    EXPECT_EQ(tells("refer"), abi < 2);
    EXPECT_EQ(tells("truncate"), abi < 3);
    EXPECT_EQ(tells("ioctl"), abi < 5);
    EXPECT_LE(lines.size(), before);
    before = lines.size();
  }
}

TEST_P(Agent, R_MO_20_ThePostureIsSaid) {
  const std::string report_path = outside_.Make("report", GetParam()) + "/r.json";
  ASSERT_EQ(Run(Policy("\"report\":\"" + report_path + "\""), {"pid"}).code, 0);
  const Json report = Parsed(ReadWholeFile(report_path));
  EXPECT_EQ(report["enforcement"]["folders.read"], "unavailable");
  EXPECT_NE(report["reasons"]["folders.read"].get<std::string>().find("reads open"), std::string::npos);
  EXPECT_EQ(report["enforcement"]["folders.write"], "enforced");
  EXPECT_EQ(report["enforcement"]["filesystem"], "enforced");
  EXPECT_NE(ReadWholeFile(OARLOCK_SOURCE_DIR "/docs/POLICY.md").find("eads are open"), std::string::npos) << "the page says so";
}

// Best effort is no excuse for what is there and fails.
TEST_P(Agent, R_MO_11_R_MO_43_WhatIsThereAndFailsStopsBestEffortToo) {
  const auto under = [&](OuterFilter& filter, const std::string& policy) {
    ProcessOptions options = Options(policy, {"say,RAN"});
    options.before_exec = [install = filter.BeforeExec()] {
      (void)::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
      install();
    };
    return RunProcess(options);
  };
  struct Case {
    const char* name;
    OuterFilter filter;
    std::string beginning;
  };
  OuterFilter restrict, rule, pretended, privs, seccomp_said;
  for (Case one : std::vector<Case>{{"restrict_self refused", restrict.Answer(abi::kSysLandlockRestrictSelf, EPERM), "K_LANDLOCK "},
                                    {"add_rule refused", rule.Answer(abi::kSysLandlockAddRule, ENOMEM), "K_LANDLOCK "},
                                    {"restrict_self said to be done", pretended.Answer(abi::kSysLandlockRestrictSelf, 0), "K_LANDLOCK "},
                                    {"no_new_privs refused", privs.AnswerWhere(SYS_prctl, 0, PR_SET_NO_NEW_PRIVS, EPERM), "K_NNP "},
                                    {"seccomp said to be done", seccomp_said.Answer(SYS_seccomp, 0), "K_"}}) {
    SCOPED_TRACE(one.name);
    const Outcome outcome = under(one.filter, Policy());
    EXPECT_EQ(outcome.code, 70) << outcome.err;
    EXPECT_EQ(outcome.out, "");
    EXPECT_NE(outcome.err.find("sandbox launch: " + one.beginning), std::string::npos) << outcome.err;
  }
  for (const std::string& policy : {std::string("{"), std::string("{}"), std::string(), Policy(R"("nett":1)"), Policy(R"("deny_paths":["/etc/shadow"])"), Policy(R"("net":"egress-any")")}) {
    const Outcome outcome = Run(policy, {"say,RAN"});
    EXPECT_EQ(outcome.code, 70) << policy << outcome.err;
    EXPECT_EQ(outcome.out, "");
  }
  ProcessOptions options = Options(Policy(), {"pid"});
  options.argv[4] = "/nonexistent";
  EXPECT_EQ(RunProcess(options).code, 71);
}

TEST_P(Agent, R_MO_27_FilesAndSocketsInTheListGetTheRightsOfFiles) {
  const std::string other = outside_.Make("other", GetParam()), path = other + "/s.sock";
  UnixServer server(path);
  ASSERT_EQ(::chmod(path.c_str(), 0777), 0);
  const std::string policy = R"({"profile":"write-allowlist","allow_write":)" + Quoted({other + "/f", path, other + "/d", other + "/f"}) + "}";
  Each(policy, {{"write," + other + "/f", "0", "0"}, {"to," + path, "0", "0"}, {"write," + other + "/d/new", "0", "0"}, {"write," + other + "/g", "EACCES", "0"}});
}

TEST_P(Agent, R_MO_29_R_MO_30_R_MO_31_EndToEnd) {
  // The agent's own directory: writable by it, outside the list, and denied only under the sandbox.
  const std::string probe = outside_.Make("probe", GetParam()), listed = outside_.Make("listed", GetParam());
  const std::string policy = R"({"allow_write":)" + Quoted({listed}) + R"(,"profile":"write-allowlist"})";
  const std::string script = "cat " + probe + "/f && echo denied > " + probe + "/new; echo status $?; echo allowed > " + listed + "/new && cat " + listed + "/new";
  ProcessOptions options = Options(policy, {});
  options.argv.resize(4);
  options.argv.insert(options.argv.end(), {"/bin/sh", "-c", script});
  const Outcome inside = RunProcess(options);
  EXPECT_EQ(inside.out, "textstatus 2\nallowed\n") << inside.err;
  EXPECT_NE(inside.err.find(Active(KernelAbi())), std::string::npos) << inside.err;
  EXPECT_NE(inside.err.find("Permission denied"), std::string::npos) << inside.err;
  EXPECT_FALSE(std::filesystem::exists(probe + "/new"));
  options.argv.erase(options.argv.begin(), options.argv.begin() + 4);
  EXPECT_EQ(RunProcess(options).out, "textstatus 0\nallowed\n") << "the twin";
}

TEST_P(Agent, R_MO_04_NoCodeWidensItEither) {
  const std::string other = outside_.Make("other", GetParam());
  const Outcome inside = Run(Policy(), {"write," + other + "/new", "widen", "write," + other + "/new2", "exec:write," + other + "/new3", "beneath," + other + ",new4," + std::to_string(O_WRONLY | O_CREAT)});
  ASSERT_EQ(inside.code, 0) << inside.err;
  EXPECT_EQ(ResultOf(inside, "widen"), "0");
  for (const std::string& word : {"write," + other + "/new", "write," + other + "/new2", "exec:write," + other + "/new3", "beneath," + other + ",new4," + std::to_string(O_WRONLY | O_CREAT)})
    EXPECT_EQ(ResultOf(inside, word), "EACCES") << word;
}

TEST(AgentsPolicy, R_MO_39_ApplyingDoesNotChangeIt) {
  const auto parsed = policy::Parse(R"({"profile":"write-allowlist","allow_write":["/usr","/etc/passwd"]})");
  ASSERT_TRUE(parsed);
  const policy::Policy before = *parsed;
  child::RootsContext context;
  context.home = "/root";
  const auto rules = [&] {
    auto roots = child::OpenRoots(*parsed, context);
    EXPECT_TRUE(roots);
    std::vector<std::string> text;
    // What comes and goes in /run and /dev is not the policy's.
    if (roots)
      for (const child::PathRule& rule : roots->rules)
        if (rule.pointer != "/write_defaults") text.push_back(rule.path + " " + std::to_string(rule.rights) + " " + rule.pointer);
    return text;
  };
  EXPECT_EQ(rules(), rules());
  EXPECT_EQ(rules().size(), 3U);
  EXPECT_EQ(*parsed, before);
}

}  // namespace
}  // namespace oarlock::test
