// SPDX-License-Identifier: Apache-2.0
// The enforcement report against what tries inside find, on whatever kernel this is. `enforced`: every attempt is refused and had
// no effect, while its twin outside gets through. `unavailable` and `cooperative`: an attempt does get through, so that the report
// is no more modest than it must be.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "notif/json.h"
#include "policy/policy.h"
#include "tests/kernels/support.h"

namespace oarlock::test {
namespace {

constexpr uid_t kNobody = 65534;
constexpr const char* kLinkLocal = "169.254.9.9";

// Modest on purpose: the report says `unavailable`, and there is nothing here that could get through.
const std::map<std::string, std::string> kNothingToTry = {
    {"net.egress-any", "not built: a policy that sets it is refused, so no module runs under it"},
    {"cgroup.limits", "not built: a policy that sets hard limits is refused, so no module runs under it"},
};

struct User {
  const char* name;
  std::optional<uid_t> starts_as;  // the launcher
  bool run_as;                     // the policy gives the module nobody's uid
  [[nodiscard]] uid_t module() const { return run_as ? kNobody : starts_as.value_or(0); }
};
std::ostream& operator<<(std::ostream& out, const User& user) { return out << user.name; }

// An attempt at what a key promises.
struct Trial {
  std::string key;
  std::string program;
  std::string word;
  std::string file = {};        // what it must not change
  bool may_lack_twin = false;   // not every kernel lets it through outside
};

// Its own network, in which a link-local address is in reach.
bool MakeNetwork() {
  if (::unshare(CLONE_NEWNET) != 0) return false;
  const UniqueFd fd(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const auto set = [&](const char* name, unsigned long request, const auto& fill) {
    ifreq entry{};
    (void)std::snprintf(entry.ifr_name, sizeof(entry.ifr_name), "%s", name);
    fill(entry);
    return ::ioctl(fd.get(), request, &entry) == 0;
  };
  const auto address = [](ifreq& entry, const char* text) {
    auto* in = reinterpret_cast<sockaddr_in*>(&entry.ifr_addr);
    in->sin_family = AF_INET;
    (void)::inet_pton(AF_INET, text, &in->sin_addr);
  };
  return set("lo", SIOCSIFFLAGS, [](ifreq& entry) { entry.ifr_flags = IFF_UP | IFF_LOOPBACK | IFF_RUNNING; }) &&
         set("lo:1", SIOCSIFADDR, [&](ifreq& entry) { address(entry, kLinkLocal); }) &&
         set("lo:1", SIOCSIFNETMASK, [&](ifreq& entry) { address(entry, "255.255.255.255"); });
}

class ReportTest : public testing::TestWithParam<User> {
 protected:
  static void SetUpTestSuite() { has_network_ = ::geteuid() == 0 && MakeNetwork(); }
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "needs root, for servers in a network of its own";
    ASSERT_TRUE(has_network_);
    uid_ = GetParam().module();
    for (const char* name : {"ro", "rw", "rd", "wo", "outside"}) (void)places_.MakeDirectory(name, 0777);
    (void)places_.MakeDirectory("report", 0755, GetParam().starts_as.value_or(0), GetParam().starts_as.value_or(0));
    (void)places_.MakeDirectory("agent");
    broker_ = std::make_unique<UnixServer>(places_ / "agent/broker.sock");
    ASSERT_EQ(::chmod(datagram_path_.c_str(), 0666), 0);
    victim_ = Victim();
  }
  // A process of the module's user, outside.
  [[nodiscard]] std::unique_ptr<Process> Victim() const {
    auto victim = std::make_unique<Process>(ProcessOptions{.argv = {KernelsAttackerPath(), "wait"}, .environment = {}, .input = {}, .directory = {},
                                                           .uid = uid_, .timeout = std::chrono::minutes(10), .before_exec = {}});
    EXPECT_TRUE(victim->WaitFor("waiting"));
    return victim;
  }
  // Some calls succeed whatever comes of them: what counts is who was reached.
  void LookAtEffects(std::map<std::string, std::string>& results) const {
    for (auto& [word, result] : results) {
      const std::string what = word.substr(word.find(',') + 1);
      if (!GotThrough(result)) continue;
      if (word.starts_with("daemon,")) {
        (void)::unlink(what.c_str());
        if (!Eventually([&] { return std::filesystem::exists(what); }, std::chrono::seconds(3))) result = "ended";
      } else if (word.starts_with("owner,")) {
        for (const auto& victim : owned_)
          if (std::abs(std::atoi(what.c_str())) == victim->pid() &&
              !Eventually([&] { return !victim->Running(); }, std::chrono::milliseconds(500)))
            result = "nothing came";
      }
    }
  }

  // A new file that belongs to the module's user, so that nothing but the sandbox stands in the way.
  std::string File(const std::string& root) {
    const std::string name = root + "/f" + std::to_string(++files_), path = places_.WriteFile(name, "text", 0777);
    EXPECT_EQ(::chown(path.c_str(), uid_, uid_), 0);
    return path;
  }
  std::string Program(const std::string& root) {
    const std::string path = places_ / (root + "/p" + std::to_string(++files_));
    std::filesystem::copy_file(KernelsAttackerPath(), path);
    EXPECT_EQ(::chmod(path.c_str(), 0755), 0);
    return path;
  }
  std::string New(const std::string& root) { return places_ / (root + "/n" + std::to_string(++files_)); }

  void Attack(const std::string& key, const std::string& word, const std::string& file = "", bool may_lack_twin = false) {
    trials_.push_back({key, KernelsAttackerPath(), word, file, may_lack_twin});
  }
  void Probe(const std::string& key, const std::string& word, bool may_lack_twin = false) {
    trials_.push_back({key, ProbePath(), word, "", may_lack_twin});
  }
  void Files() {
    for (const char* root : {"outside", "ro"}) {
      // Access mode 3 opens for neither reading nor writing, and truncates all the same.
      for (const char* what : {"writeto,", "opentrunc,", "openneither,", "truncate,", "truncatehandle,", "unlink,"}) {
        const std::string file = File(root);
        Attack("filesystem", what + file, file);
      }
      for (const char* what : {"create,", "mkdir,", "symlink,", "fifo,"}) Attack("filesystem", what + New(root));
      const std::string moved = File(root), linked = File(root), target = File(root);
      Attack("filesystem", "rename," + moved + "," + New("rw"), moved);
      Attack("filesystem", "rename," + File("rw") + "," + target, target);
      Attack("filesystem", "rename," + File("rw") + "," + New(root));
      Attack("filesystem", "link," + linked + "," + New("rw"), linked);
      Attack("filesystem", "link," + File("rw") + "," + New(root));
    }
    Attack("filesystem", "read," + File("outside"));
    Attack("filesystem", "list," + (places_ / "outside"));
    Attack("filesystem", "exec," + Program("outside"));
    for (const char* what : {"writeto,", "opentrunc,", "openneither,", "truncate,", "unlink,"}) {
      const std::string file = File("rd");
      Attack("folders.read", what + file, file);
    }
    Attack("folders.read", "create," + New("rd"));
    Attack("folders.read", "exec," + Program("rd"));
    Attack("folders.write", "read," + File("wo"));
    Attack("folders.write", "list," + (places_ / "wo"));
    Attack("folders.write", "exec," + Program("wo"));
    const std::string removed = File("wo"), renamed = File("wo"), moved = File("wo");
    Attack("folders.write", "unlink," + removed, removed);
    Attack("folders.write", "rename," + renamed + "," + New("wo"), renamed);
    Attack("folders.write", "rename," + moved + "," + New("rw"), moved);
    Attack("folders.write", "link," + File("wo") + "," + New("rw"));
    Attack("exec_writable_deny", "exec," + Program("rw"));
    Attack("exec_writable_deny", "execmemfd," + KernelsAttackerPath());
    Attack("exec_writable_deny.mmap", "mapexec," + Program("rw"));
    // A file of its own user: what file permissions alone decide.
    Attack("metadata_writes", "chmod," + File("outside"));
    Attack("metadata_writes", "utimes," + File("outside"));
    // As the devices of the policy's `gpu` are: outside every root.
    const std::string device = New("outside");
    if (::mknod(device.c_str(), S_IFCHR | 0666, ::makedev(1, 3)) == 0 && ::chmod(device.c_str(), 0666) == 0)
      Attack("gpu.compute", "read," + device, "", true);  // a nodev mount lets nobody
  }
  void Ipc() {
    const std::string pid = std::to_string(victim_->pid());
    for (const char* how : {"kill", "group", "tkill", "tgkill", "queue", "pidfd"}) Attack("ipc", std::string("signal,") + how + "," + pid);
    // Each kills whom it reaches.
    for (const char* sign : {"", "-"}) {
      owned_.push_back(Victim());
      Attack("ipc", std::string("owner,") + sign + std::to_string(owned_.back()->pid()));
    }
    const bool yama = YamaScope().value_or(0) > 0;
    for (const char* how : {"trace,", "vmread,", "mem,", "getfd,"}) Attack("ipc", how + pid, "", yama);
    Attack("ipc", "posixshm,oarlock-" + pid);
    for (const char* key : {"ipc", "sysv_ipc"})
      for (const std::string word : {"shm", "sem", "msg"}) Attack(key, word);
    Attack("sysv_ipc", "mq,oarlock-" + pid);
    Probe("ipc", "unix," + abstract_name_);
    Attack("children", "daemon," + (places_ / "rw/alive"));
    Attack("cgroup.kill", "daemon," + (places_ / "rw/alive2"));
  }
  void Net() {
    const std::string other = std::to_string(other_.port()), proxy = std::to_string(proxy_.port());
    for (const char* key : {"net.destination", "net.egress-allowlist", "no_loopback"}) {
      Probe(key, "tcp,127.0.0.1," + other);
      Probe(key, "tcp,127.0.0.2," + proxy);
      Probe(key, "tcp,::1," + proxy);
    }
    for (const char* key : {"net.destination", "net.egress-allowlist"}) {
      Probe(key, "tcp,127.0.0.1," + other + ",262", true);  // MPTCP is a setting
      for (const char* how : {"fastopen", "fastopenmsg", "fastopenmmsg"}) Probe(key, std::string(how) + ",127.0.0.1," + other);
    }
    Probe("net.egress-allowlist", "socket,2,2,0");
    Probe("net.egress-allowlist", "bindlisten,127.0.0.1,0");
    Probe("net.egress-allowlist", "listen,2");
    Probe("no_link_local", std::string("tcp,") + kLinkLocal + "," + std::to_string(link_local_.port()));
    Probe("unix.pathname", "unix," + socket_path_);
    Probe("unix.pathname", "pairsend," + datagram_path_);
    Probe("unix.pathname", "rawpairsend," + datagram_path_);
  }
  void NoNet() {
    Probe("net.none", "tcp,127.0.0.1," + std::to_string(other_.port()));
    Probe("net.none", "tcp,127.0.0.1," + std::to_string(proxy_.port()));
    Probe("net.none", "tcp,::1," + std::to_string(proxy_.port()));
    Probe("net.none", "socket,10,2,0");
    Probe("net.none", "socketpair,1,2");
  }
  [[nodiscard]] long Arrived() {
    return other_.connections() + second_.connections() + sixth_.connections() + link_local_.connections() + named_.connections() + abstract_.connections() +
           datagram_.Count();
  }

  [[nodiscard]] std::unique_ptr<Sandbox> Make(const std::string& net, const std::string& more = "") const {
    const auto path = [&](const char* name) { return "[\"" + (places_ / name) + "\"]"; };
    auto sandbox = std::make_unique<Sandbox>(
        net + ",\"roots\":[{\"path\":\"" + (places_ / "ro") + "\",\"rights\":[\"execute\",\"read_file\",\"read_dir\"]}],\"rw\":" + path("rw") + ",\"rd\":" + path("rd") +
        ",\"wo\":" + path("wo") + ",\"report\":\"" + (places_ / "report/r.json") + "\"" +
        (GetParam().run_as ? ",\"run_as\":{\"uid\":65534,\"gid\":65534}" : "") + more);
    if (GetParam().starts_as) sandbox->As(*GetParam().starts_as);
    sandbox->Timeout(std::chrono::seconds(60));
    return sandbox;
  }
  [[nodiscard]] Json Report() const {
    std::string problem;
    Json report = ParseStrictJson(ReadWholeFile(places_ / "report/r.json"), &problem);
    EXPECT_EQ(problem, "");
    return report;
  }
  [[nodiscard]] Outcome Oarlock(std::vector<std::string> words) const {
    ProcessOptions options;
    options.argv = {OarlockPath()};
    options.argv.insert(options.argv.end(), words.begin(), words.end());
    options.uid = GetParam().starts_as;
    return RunProcess(options);
  }
  [[nodiscard]] static Json Status(const Outcome& outcome) {
    std::string problem;
    Json report = ParseStrictJson(outcome.out, &problem);
    EXPECT_EQ(problem, "") << outcome.out << outcome.err;
    return report;
  }

  // Every trial inside, then outside, and both against the report. What it says of the keys tried goes into `states_`.
  void Judge(const Sandbox& sandbox);

  static inline bool has_network_ = false;
  uid_t uid_ = 0;
  int files_ = 0;
  TemporaryDirectory places_;
  TcpServer proxy_, other_, second_{"127.0.0.2", proxy_.port()}, sixth_{"::1", proxy_.port()}, link_local_{kLinkLocal};
  std::string socket_path_ = places_ / "other.sock", datagram_path_ = places_ / "datagram.sock",
              abstract_name_ = "@report-" + std::to_string(::getpid());
  UnixServer named_{socket_path_}, abstract_{abstract_name_};
  DatagramSink datagram_{datagram_path_, 0};
  std::unique_ptr<UnixServer> broker_;
  std::unique_ptr<Process> victim_;
  std::vector<std::unique_ptr<Process>> owned_;
  std::vector<Trial> trials_;
  std::map<std::string, std::string> states_;
};

void ReportTest::Judge(const Sandbox& sandbox) {
  std::map<std::string, std::string> inside;  // by word
  Json report;
  const auto words_for = [&](const std::string& program) {
    std::vector<std::string> words;
    for (const Trial& trial : trials_)
      if (trial.program == program && std::ranges::find(words, trial.word) == words.end()) words.push_back(trial.word);
    return words;
  };
  for (const std::string& program : {ProbePath(), KernelsAttackerPath()}) {
    auto words = words_for(program);
    if (words.empty()) continue;
    auto argv = words;
    argv.insert(argv.begin(), program);
    const Outcome outcome = sandbox.Run(argv);
    ASSERT_EQ(outcome.code, 0) << outcome.err << outcome.out;
    for (const std::string& word : words) inside[word] = ResultOf(outcome, word);
    const Json said = Report()["enforcement"];
    EXPECT_TRUE(report.is_null() || report == said) << "two launches of one policy";
    report = said;
  }
  LookAtEffects(inside);
  const long arrived = Arrived();
  std::map<std::string, bool> changed;
  for (const Trial& trial : trials_)
    if (!trial.file.empty()) changed[trial.file] = ReadWholeFile(trial.file) != "text";

  std::set<std::string> keys;
  for (const Trial& trial : trials_) keys.insert(trial.key);
  long enforced = 0;
  for (const std::string& key : keys) {
    ASSERT_TRUE(report.contains(key)) << key;
    const std::string state = states_[key] = report[key];
    std::string through;
    for (const Trial& trial : trials_) {
      if (trial.key != key) continue;
      EXPECT_NE(inside[trial.word], "(not done)");
      if (GotThrough(inside[trial.word])) through += " " + trial.word;
      if (!trial.file.empty() && !GotThrough(inside[trial.word]))
        EXPECT_FALSE(changed[trial.file]) << trial.word << " said " << inside[trial.word] << " and had its effect";
    }
    if (state == "enforced") EXPECT_EQ(through, "") << key << " is reported enforced";
    else EXPECT_NE(through, "") << key << " is reported " << state << ", and nothing that was tried gets through";
    if (state == "enforced") ++enforced;
  }
  // Every way to a server belongs to a key that is enforced wherever a launch succeeds.
  EXPECT_EQ(arrived, 0);
  EXPECT_GT(enforced, 0);

  for (const std::string& program : {ProbePath(), KernelsAttackerPath()}) {
    std::vector<std::string> words;
    for (const std::string& word : words_for(program))
      if (!GotThrough(inside[word])) words.push_back(word);
    if (words.empty()) continue;
    auto argv = words;
    argv.insert(argv.begin(), program);
    ProcessOptions bare{.argv = argv, .environment = {}, .input = {}, .directory = {}, .uid = uid_, .timeout = std::chrono::seconds(60), .before_exec = {}};
    const Outcome outcome = RunProcess(bare);
    std::map<std::string, std::string> outside;
    for (const std::string& word : words) outside[word] = ResultOf(outcome, word);
    LookAtEffects(outside);
    for (const Trial& trial : trials_)
      if (outside.contains(trial.word) && !trial.may_lack_twin)
        EXPECT_TRUE(GotThrough(outside[trial.word])) << "the twin of " << trial.key << ": " << trial.word << " -> " << outside[trial.word];
  }
}

TEST_P(ReportTest, HoldsWithAProxyAndABroker) {
  Files();
  Ipc();
  Net();
  const auto sandbox = Make(Egress(proxy_.port()) + "," + Broker(places_ / "agent/broker.sock"));
  // The log, from inside. It is there once something was refused.
  (void)sandbox->Probe({"tcp,127.0.0.1," + std::to_string(other_.port())});
  // (A module with a uid of its own is kept out by the files' owner too.)
  Attack("audit", "list," + (sandbox->directory() / "state/oarlock/audit"), "", GetParam().run_as);
  Attack("audit", "create," + (sandbox->directory() / "state/oarlock/audit/forged.jsonl"), "", GetParam().run_as);
  Judge(*sandbox);
  const auto log = sandbox->Log();
  for (const char* code : {"TCP_NOT_PROXY", "UNIX_NOT_BROKER", "FASTOPEN", "LISTEN_DENIED", "UNIX_TYPE"}) EXPECT_GT(Refusals(log, code), 0U) << code;
  // What is granted is reached all the same.
  const std::string word = "tcp,127.0.0.1," + std::to_string(proxy_.port()), broker = "unix," + (places_ / "agent/broker.sock");
  const Outcome granted = sandbox->Probe({word, broker, "read," + File("ro"), "write," + File("rw"), "read," + File("rd"), "write," + File("wo")});
  EXPECT_EQ(ResultOf(granted, word), "0 hello");
  EXPECT_EQ(ResultOf(granted, broker), "0 hello");
  EXPECT_EQ(std::ranges::count(granted.out, '\n'), 6);
  EXPECT_EQ(granted.out.find("-> E"), std::string::npos) << granted.out;
}

TEST_P(ReportTest, HoldsWithoutANetwork) {
  NoNet();
  Judge(*Make("\"net\":\"none\""));
}

// With a uid of its own the module is kept from what is not its own, by file permissions alone.
TEST_P(ReportTest, MetadataOfOthers) {
  const std::string file = places_.WriteFile("outside/others", "text", 0644);
  const auto sandbox = Make("\"net\":\"none\"");
  const Outcome outcome = sandbox->Run({KernelsAttackerPath(), "chmod," + file, "utimes," + file});
  const std::string state = Report()["enforcement"]["metadata_writes"];
  EXPECT_EQ(state, GetParam().run_as ? "cooperative" : "unavailable");
  if (uid_ != 0)
    for (const char* word : {"chmod,", "utimes,"}) EXPECT_EQ(ResultOf(outcome, word + file), "EPERM");
}

// What does not depend on the user is asked once.
class ReportOnceTest : public ReportTest {};

TEST_P(ReportOnceTest, EveryKeyIsTriedOrSaysWhyNot) {
  Files();
  Ipc();
  Net();
  NoNet();
  Attack("audit", "");
  std::set<std::string> tried;
  for (const Trial& trial : trials_) tried.insert(trial.key);
  for (const auto& [key, why] : kNothingToTry) tried.insert(key);
  std::set<std::string> keys;
  for (const std::string_view name : policy::Capabilities()) keys.emplace(name);
  tried.insert("gpu.compute");  // where no device can be made it is not
  EXPECT_EQ(tried, keys);
}

TEST_P(ReportTest, StatusSaysTheSameAndTheKernelsVersion) {
  const auto sandbox = Make("\"net\":\"none\"");
  ASSERT_EQ(sandbox->Probe({"uid"}).code, 0);
  const Json report = Report(), status = Status(Oarlock({"sandbox-status"}));
  for (const Json& said : {report, status}) {
    EXPECT_EQ(said["landlock_abi"], KernelLandlockAbi());
    EXPECT_EQ(said["landlock_errata"],
              std::max(0L, ::syscall(abi::kSysLandlockCreateRuleset, nullptr, 0, abi::kLandlockCreateRulesetErrata)));
    EXPECT_EQ(said["listener"], true);
  }
  for (const std::string_view name : policy::Capabilities()) {
    if (name == "metadata_writes" && GetParam().run_as) continue;  // a matter of the policy
    EXPECT_EQ(report["enforcement"][std::string(name)], status["enforcement"][std::string(name)]) << name;
  }
  for (const auto& [key, why] : kNothingToTry) EXPECT_EQ(report["enforcement"][key], "unavailable") << why;
}

TEST_P(ReportOnceTest, WhatIsNotEnforcedCannotBeRequired) {
  const Json status = Status(Oarlock({"sandbox-status"}));
  std::string enforced;
  for (const std::string_view name : policy::Capabilities()) {
    if (status["enforcement"][std::string(name)] == "enforced") {
      enforced += (enforced.empty() ? "\"" : ",\"") + std::string(name) + "\"";
      continue;
    }
    const Outcome outcome = Make("\"net\":\"none\"", ",\"require\":[\"" + std::string(name) + "\"]")->Probe({"uid"});
    EXPECT_EQ(outcome.code, 70) << name;
    EXPECT_TRUE(outcome.err.starts_with("sandbox launch: K_REQUIRED /require/0: ")) << outcome.err;
    EXPECT_EQ(outcome.out, "") << name;
  }
  EXPECT_EQ(Make("\"net\":\"none\"", ",\"require\":[" + enforced + "]")->Probe({"uid"}).code, 0) << enforced;
}

// Doctor names what the kernel keeps from being enforced, and says what else its Landlock leaves open.
TEST_P(ReportOnceTest, DoctorAgrees) {
  const Json status = Status(Oarlock({"sandbox-status"})), doctor = Status(Oarlock({"doctor", "--json"}));
  // The rest is not built, or a matter of the policy, and hence no lack of the host.
  const bool lacks_ipc = status["enforcement"]["ipc"] != "enforced";
  EXPECT_EQ(doctor["ok"], !lacks_ipc) << doctor;
  EXPECT_EQ(doctor["unavailable"], lacks_ipc ? Json({"landlock.rights"}) : Json::array());
  for (const Json& launch : doctor["launches"]) EXPECT_EQ(launch["confined"], true) << launch;
  std::string rights;
  for (const Json& check : doctor["checks"])
    if (check["id"] == "landlock.rights") rights = check.value("found", "");
  EXPECT_EQ(rights.find("unavailable: ipc (") != std::string::npos, lacks_ipc) << rights;

  // No key of the report: ioctls of a root's own devices, which Landlock judges from ABI 5 on.
  const auto sandbox = Make("\"net\":\"none\"");
  const Outcome outcome = sandbox->Run({KernelsAttackerPath(), "ioctl,/dev/urandom"});
  EXPECT_EQ(ResultOf(outcome, "ioctl,/dev/urandom"), KernelLandlockAbi() >= 5 ? "EACCES" : "0");
  EXPECT_EQ(ResultOf(sandbox->RunBare({KernelsAttackerPath(), "ioctl,/dev/urandom"}), "ioctl,/dev/urandom"), "0") << "the twin";
  EXPECT_EQ(rights.find("ioctls on devices of the roots are not judged") == std::string::npos, KernelLandlockAbi() >= 5) << rights;
}

INSTANTIATE_TEST_SUITE_P(Users, ReportOnceTest, testing::Values(User{"Root", std::nullopt, false}), [](const auto& row) { return std::string(row.param.name); });
INSTANTIATE_TEST_SUITE_P(Users, ReportTest, testing::Values(User{"Root", std::nullopt, false}, User{"Nobody", kNobody, false}, User{"RunAs", std::nullopt, true}),
                         [](const auto& row) { return std::string(row.param.name); });

}  // namespace
}  // namespace oarlock::test
