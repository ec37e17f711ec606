// SPDX-License-Identifier: Apache-2.0
#include "tests/faults/matrix.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <filesystem>
#include <map>
#include <mutex>
#include <sstream>
#include <thread>
#include <utility>

#include "notif/base/check.h"
#include "tests/support/sandbox.h"

namespace oarlock::test::faults {
namespace {

std::string InmatePath() { return OARLOCK_BINARY_DIR "/tests/bin/oarlock-inmate"; }

std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// "name(...) = value" of strace; empty for what is no call.
std::string NameOf(const std::string& line) {
  const size_t end = line.find('(');
  if (end == std::string::npos || end == 0) return {};
  return std::ranges::all_of(line.substr(0, end), [](char c) { return std::islower(c) || std::isdigit(c) || c == '_'; }) ? line.substr(0, end) : "";
}

uintmax_t SizeOf(const std::string& path) {
  std::error_code gone;
  const uintmax_t size = std::filesystem::file_size(path, gone);
  return gone ? 0 : size;
}

bool FaultIn(const Named& named, const std::string& fault) {
  if (named.faults.empty()) return fault.starts_with("error=");
  return (" " + named.faults + " ").find(" " + fault + " ") != std::string::npos;
}

// Whether `look` printed the same as in a whole launch; with `less`, grants may be missing.
bool SameLook(const std::string& whole, const std::string& out, bool less, std::string* difference) {
  const auto expected = Lines(whole), got = Lines(out);
  for (size_t i = 0; i < std::max(expected.size(), got.size()); ++i) {
    const std::string a = i < expected.size() ? expected[i] : "(nothing)", b = i < got.size() ? got[i] : "(nothing)";
    if (a == b) continue;
    if (less && a.starts_with("grant ") && b.starts_with(a.substr(0, a.find("->")))) continue;
    *difference = "'" + b + "' in the place of '" + a + "'";
    return false;
  }
  return true;
}

}  // namespace

// Names of one length, so that every worker's launch makes the same calls.
struct Matrix::Room {
  std::string path;
  std::unique_ptr<UnixServer> other, broker;
};

struct Matrix::End {
  enum class Kind : int { kStopped, kNamed, kExecFailed, kAtStart, kWrong, kNotReached };
  Kind kind = Kind::kWrong;
  const Named* named = nullptr;
  std::string text;
};

Matrix::Matrix(World world, size_t workers)
    : world_(std::move(world)), abstract_("@oarlock-faults-" + std::to_string(::getpid())) {
  if (!world_.private_supervisor) daemon_ = std::make_unique<Daemon>(std::vector<std::string>{"--admit-uid", "65534"});
  for (size_t i = 0; i < workers; ++i) {
    auto room = std::make_unique<Room>();
    room->path = t_.MakeDirectory("w" + std::to_string(10 + i));
    const auto make = [&](const std::string& name, mode_t mode) {
      const std::string path = room->path + "/" + name;
      OARLOCK_CHECK(::mkdir(path.c_str(), mode) == 0 && ::chmod(path.c_str(), mode) == 0);
    };
    for (const char* name : {"ro", "rd", "state", "report", "policy", "broker"}) make(name, 0755);
    for (const char* name : {"rw", "wo"}) make(name, 0777);
    const auto copy = [&](const char* name, const char* where) { std::filesystem::copy_file(InmatePath(), room->path + "/" + where + "/" + name); };
    copy("inmate", "ro");
    for (const char* where : {"ro", "rd", "rw"}) copy("true", where);
    const std::string below = room->path.substr(t_.path().size() + 1);
    (void)t_.WriteFile(below + "/ro/file", "read me");
    (void)t_.WriteFile(below + "/rd/file", "read me");
    (void)t_.WriteFile(below + "/secret", "secret");
    const std::string& p = room->path;
    std::string policy = R"({"version":1,"module":"faulted","ro":["P/ro"],"rd":["P/rd"],"rw":["P/rw"],"wo":["P/wo"],"exe":"P/ro/inmate",)"
                         R"("roots":[{"path":"/proc","rights":["read_file","read_dir"]}],"net":"egress-allowlist","proxy_port":)" + std::to_string(proxy_.port()) +
                         R"(,"broker_socket":"P/broker/socket","report":"P/report/report.json","limits":{"nofile":512},"env":{"keep":["HOME"]})" +
                         (world_.policy.empty() ? "" : ",") + world_.policy + "}";
    for (size_t at = 0; (at = policy.find("\"P/", at)) != std::string::npos;) policy.replace(at + 1, 1, p);
    (void)t_.WriteFile(below + "/policy/policy.json", policy);
    for (const char* name : {"/state", "/report"}) OARLOCK_CHECK(::chown((p + name).c_str(), world_.uid, world_.uid) == 0);
    room->other = std::make_unique<UnixServer>(p + "/other.sock");
    room->broker = std::make_unique<UnixServer>(p + "/broker/socket");
    rooms_.push_back(std::move(room));
  }
}

Matrix::~Matrix() = default;

int Matrix::forbidden_connections() const {
  int count = other_.connections() + abstract_.connections();
  for (const auto& room : rooms_) count += room->other->connections();
  return count;
}

Outcome Matrix::Launch(const Room& room, const std::vector<std::string>& strace, const std::string& log) const {
  for (const char* left : {"/rw/ran", "/rw/new", "/wo/new", "/byte", "/status", "/report/report.json"}) std::filesystem::remove(room.path + left);
  ProcessOptions options;
  options.argv = {InmatePath(), "hold", world_.terminal, "--", "/usr/bin/strace", "-o", log};
  options.argv.insert(options.argv.end(), strace.begin(), strace.end());
  options.argv.insert(options.argv.end(), {InmatePath(), "start"});
  options.argv.insert(options.argv.end(), world_.start.begin(), world_.start.end());
  options.argv.insert(options.argv.end(), {"byte=" + room.path + "/byte", "status=" + room.path + "/status", "--", OarlockPath(), "sandbox-exec",
                                           room.path + "/policy/policy.json", "--", room.path + "/ro/inmate", "look", room.path,
                                           std::to_string(proxy_.port()), std::to_string(other_.port()), "@oarlock-faults-" + std::to_string(::getpid())});
  options.environment = {{"OARBANK_CONFINED", "10"}, {"OARLOCK_EXEC_STATUS", "11"}, {"OARBANK_SERVICE_KEPT", "fd:9"}};
  if (world_.state_home) options.environment["XDG_STATE_HOME"] = room.path + "/state";
  if (daemon_) options.environment["OARLOCK_SUPERVISOR"] = daemon_->socket();
  options.directory = "/";
  options.timeout = std::chrono::minutes(3);
  Outcome outcome = RunProcess(options);
  for (size_t at = 0; (at = outcome.out.find(room.path, at)) != std::string::npos;) outcome.out.replace(at, room.path.size(), "T");
  return outcome;
}

std::string Matrix::Bare() {
  ProcessOptions options;
  const Room& room = *rooms_[0];
  options.argv = {InmatePath(), "look", room.path, std::to_string(proxy_.port()), std::to_string(other_.port()), "@oarlock-faults-" + std::to_string(::getpid())};
  const Outcome outcome = RunProcess(options);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  return outcome.out;
}

std::vector<Call> Matrix::Calls() {
  const std::string log = t_ / "whole.log";
  // What the first launch makes, the log's directory above all, changes the calls of the next.
  for (const auto& room : rooms_) EXPECT_EQ(Launch(*room, {}, log).code, 0);
  const Outcome outcome = Launch(*rooms_[0], {}, log);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  EXPECT_EQ(SizeOf(rooms_[0]->path + "/byte"), 1U);
  EXPECT_GT(SizeOf(rooms_[0]->path + "/report/report.json"), 0U);
  whole_ = outcome.out;

  std::vector<Call> calls;
  std::map<std::string, int> occurrences;
  bool started = false, confirmed = false, confining = false;
  enum : int { kBefore, kStart, kLauncher, kModule } at = kBefore;
  for (const std::string& line : Lines(ReadWholeFile(log))) {
    Call call;
    call.name = NameOf(line);
    if (call.name.empty()) continue;
    call.line = line;
    // strace does not count the exec that it does itself.
    const bool own = at == kBefore && occurrences.empty() && call.name == "execve" && !std::exchange(started, true);
    call.occurrence = own ? 0 : ++occurrences[call.name];
    // The first thing that the launcher does.
    if (at == kStart && line.starts_with("rt_sigaction(SIGPIPE, {sa_handler=SIG_IGN")) at = kLauncher;
    call.at_start = at == kStart;
    confining |= at == kLauncher && line.find("\"/proc/self/personality\"") != std::string::npos;
    call.confining = confining;
    call.confirmed = confirmed;
    call.is_exec = at == kLauncher && call.name == "execve";
    if (at == kStart || at == kLauncher) calls.push_back(call);
    if (call.is_exec) at = kModule;
    confirmed |= at == kLauncher && line.starts_with("write(10, \"\\1\", 1)");
    if (line.starts_with("execve(\"" + OarlockPath() + "\"")) at = kStart;
  }
  EXPECT_EQ(at, kModule) << ReadWholeFile(log);
  return calls;
}

Matrix::End Matrix::RunCase(const Room& room, const Case& one) const {
  const std::string log = room.path + "/strace.log";
  // A call more or less that a wait needed moves the count: then the fault was another's or nobody's, and the case is run again.
  for (int attempt = 0; attempt < 4; ++attempt) {
    std::filesystem::remove(log);
    const Outcome outcome = Launch(room, {"-e", "trace=" + one.call.name, "-e", "inject=" + one.call.name + ":" + one.fault + ":when=" + std::to_string(one.call.occurrence)}, log);
    std::string injected;
    for (const std::string& line : Lines(ReadWholeFile(log)))
      if (line.find("(INJECTED)") != std::string::npos) injected = line;
    if (injected.empty()) continue;
    return Judge(room, one, injected, outcome);
  }
  return {End::Kind::kNotReached, nullptr, ""};
}

Matrix::End Matrix::Judge(const Room& room, const Case& one, const std::string& line, const Outcome& outcome) const {
  const bool ran = outcome.out.find("RAN") != std::string::npos || std::filesystem::exists(room.path + "/rw/ran");
  const uintmax_t byte = SizeOf(room.path + "/byte"), status = SizeOf(room.path + "/status");
  const std::string told = line + "\n    exit " + std::to_string(outcome.code) + ", stderr: " + (outcome.err.empty() ? "(nothing)\n" : outcome.err);
  const auto wrong = [&](const std::string& why) { return End{End::Kind::kWrong, nullptr, why + "\n    " + told}; };

  if (outcome.out.find("LEFT") != std::string::npos) return wrong("a process is left behind: " + outcome.out.substr(outcome.out.find("LEFT")));
  const Named* named = nullptr;
  for (const Named& candidate : NamedContinuations())
    if (candidate.call == one.call.name && FaultIn(candidate, one.fault) && line.find(candidate.part) != std::string::npos &&
        (candidate.as == Named::As::kStart ? one.call.at_start && !ran : ran)) {
      named = &candidate;
      break;
    }
  const bool one_line = outcome.err.starts_with("sandbox launch: ") && std::ranges::count(outcome.err, '\n') == 1 && outcome.err.ends_with('\n');
  if (outcome.code == 70 || outcome.code == 71) {
    if (ran) return wrong("the module ran");
    if (!one_line) return wrong("not one clear line");
    if ((outcome.code == 71) != one.call.is_exec) return wrong(one.call.is_exec ? "an exec that failed is 71" : "71 is for an exec that failed");
    // The confirmation says that the sandbox holds; after it nothing is left but the exec.
    if (byte != (one.call.confirmed ? 1U : 0U)) return wrong("OARBANK_CONFINED has " + std::to_string(byte) + " bytes");
    if (status != (outcome.code == 71 ? sizeof(int) : 0U)) return wrong("OARLOCK_EXEC_STATUS has " + std::to_string(status) + " bytes");
    return {outcome.code == 70 ? End::Kind::kStopped : End::Kind::kExecFailed, nullptr, told};
  }
  if (outcome.code == 0 && ran) {
    if (named == nullptr) {
      std::string difference;
      const bool same = SameLook(whole_, outcome.out, false, &difference);
      return wrong(same ? "the module ran, whole, and that is not named" : "the module ran, and not as in a whole launch: " + difference);
    }
    if (!outcome.err.empty()) return wrong("the module ran with a word on stderr");
    if (byte != 1) return wrong("OARBANK_CONFINED has " + std::to_string(byte) + " bytes");
    std::string difference;
    if (!SameLook(whole_, outcome.out, named->as == Named::As::kLess, &difference)) return wrong("the module ran, and not as in a whole launch: " + difference);
    return {End::Kind::kNamed, named, told};
  }
  if (named != nullptr && !ran && byte == 0 && outcome.code != 0) return {End::Kind::kAtStart, named, told};
  return wrong(outcome.code >= 128 ? "ended by a signal" : "ended in a way of its own");
}

void Matrix::Run(const std::vector<Case>& cases) {
  std::vector<End> ends(cases.size());
  std::atomic<size_t> next = 0;
  {
    std::vector<std::jthread> workers;
    for (const auto& room : rooms_)
      workers.emplace_back([&] {
        for (size_t i = 0; (i = next++) < cases.size();) ends[i] = RunCase(*room, cases[i]);
      });
  }
  std::map<End::Kind, size_t> counts;
  std::map<std::string, size_t> continuations;
  size_t shown = 0;
  for (size_t i = 0; i < cases.size(); ++i) {
    ++counts[ends[i].kind];
    if (ends[i].named != nullptr) ++continuations[ends[i].named->call + " " + ends[i].named->part + ": " + ends[i].named->reason];
    const bool bad = ends[i].kind == End::Kind::kWrong || ends[i].kind == End::Kind::kNotReached;
    constexpr size_t kShown = 400;
    if (bad && ++shown <= kShown)
      ADD_FAILURE() << world_.name << ": " << (cases[i].call.name + " " + std::to_string(cases[i].call.occurrence) + " " + cases[i].fault) << "\n  " << (ends[i].text.empty() ? "never reached" : ends[i].text);
  }
  std::printf("%s: %zu cases: %zu exit 70, %zu exit 71, %zu named continuations, %zu ended by the C library's start, %zu wrong, %zu not reached\n", world_.name.c_str(),
              cases.size(), counts[End::Kind::kStopped], counts[End::Kind::kExecFailed], counts[End::Kind::kNamed], counts[End::Kind::kAtStart],
              counts[End::Kind::kWrong], counts[End::Kind::kNotReached]);
  for (const auto& [what, count] : continuations) std::printf("  %5zu  %s\n", count, what.c_str());
}

}  // namespace oarlock::test::faults
