// SPDX-License-Identifier: Apache-2.0
// oarlock-private: the supervisor of one run. Static, with few libraries, started with an environment of our making.
//   --connection N    for `sandbox-exec`: serves the launcher at the other end of descriptor N
//   --run ... -- /abs/argv0 args...    for `oarlock run`: starts the launcher itself
//   --log-directory DIR, --runtime-directory DIR (empty: no control socket)
//   reader            for oarlockd: touches what may hang, asked over descriptor 3 (supervisor/reader.h)
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>

#include "notif/base/places.h"
#include "notif/base/text.h"
#include "supervisor/reader.h"
#include "supervisor/run_parent.h"
#include "supervisor/supervisor.h"

namespace oarlock::supervisor {
namespace {

constexpr uint32_t kCalls = 512, kRecords = 64;
// A launch waits for us: so many of the dead are looked for at one start, among so many names, and the rest at the next.
constexpr int kMaxDead = 64, kMaxNames = 4096;
// A socket that refuses may be about to listen. Not with a dead process's number, and not for so long.
constexpr time_t kListensBySeconds = 60;

struct Arguments {
  int connection = -1;
  std::string log_directory, runtime_directory;
  bool run = false;
  RunOptions options;
};

bool Parse(int argc, char** argv, Arguments* out) {
  const auto number = [](const char* text, int* value) {
    uint64_t parsed = 0;
    if (text == nullptr || !ParseNumber(text, 0, INT32_MAX, &parsed)) return false;
    *value = static_cast<int>(parsed);
    return true;
  };
  for (int i = 1; i < argc; ++i) {
    const std::string_view name(argv[i]);
    if (name == "--") {
      for (int j = i + 1; j < argc; ++j) out->options.command.emplace_back(argv[j]);
      break;
    }
    if (name == "--run") out->run = true;
    else if (name == "--quiet") out->options.quiet = true;
    else if (name == "--keep-children") out->options.keep_children = true;
    else if (name == "--share-terminal") out->options.terminal_signals = false;
    else if (i + 1 >= argc) return false;
    else if (name == "--log-directory") out->log_directory = argv[++i];
    else if (name == "--runtime-directory") out->runtime_directory = argv[++i];
    else if (name == "--launcher") out->options.launcher = argv[++i];
    else if (name == "--connection" ? !number(argv[++i], &out->connection)
             : name == "--policy-fd" ? !number(argv[++i], &out->options.policy_fd)
             : name == "--environment-fd" ? !number(argv[++i], &out->options.environment_fd)
             : name == "--outcome-fd" ? !number(argv[++i], &out->options.outcome_fd)
             : name == "--status-fd" ? !number(argv[++i], &out->options.status_fd)
                                     : true)
      return false;
  }
  return out->run ? !out->options.command.empty() && !out->options.launcher.empty() : out->connection >= 0;
}

// Told where it is heard: to the launcher by the answer it waits for, else on stderr.
int Fail(const Arguments& arguments, const std::string& text) {
  if (arguments.connection >= 0) {
    const std::string line = wire::Encode(wire::Answer{.ok = false, .session = {}, .code = "K_NOTIFY", .error = text});
    (void)::send(arguments.connection, line.data(), line.size(), MSG_NOSIGNAL);
  } else {
    (void)std::fprintf(stderr, "oarlock: %s\n", text.c_str());
  }
  return 1;
}

// Removes the control sockets that killed private supervisors of this user have left in `directory`: "PID.sock", nobody there.
void SweepDead(const std::string& directory) {
  DIR* names = ::opendir(directory.c_str());
  if (names == nullptr) return;
  int looks = 0;
  for (int seen = 0; seen < kMaxNames && looks < kMaxDead; ++seen) {
    const dirent* entry = ::readdir(names);
    if (entry == nullptr) break;
    const std::string_view name(entry->d_name);
    uint64_t pid = 0;
    if (!name.ends_with(".sock") || !ParseNumber(name.substr(0, name.size() - 5), 1, INT32_MAX, &pid)) continue;
    struct stat status {};
    if (::fstatat(::dirfd(names), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISSOCK(status.st_mode) || status.st_uid != ::geteuid()) continue;
    // The number may be in use again, or that of a process which nobody waits for.
    const bool gone = ::kill(static_cast<pid_t>(pid), 0) != 0 && errno == ESRCH;
    if (!gone && ::time(nullptr) - status.st_mtime < kListensBySeconds) continue;
    ++looks;
    const std::string path = directory + "/" + entry->d_name;
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof(address.sun_path)) break;
    std::ranges::copy(path, address.sun_path);
    const UniqueFd probe(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (::connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 && errno == ECONNREFUSED) (void)::unlink(path.c_str());
  }
  (void)::closedir(names);
}

int Main(const Arguments& arguments) {
  // What we were left over for ourselves; only the run's parent has children that may have it.
  for (const int fd : {arguments.connection, arguments.options.policy_fd, arguments.options.environment_fd,
                       arguments.options.outcome_fd, arguments.options.status_fd})
    if (fd >= 0) (void)::fcntl(fd, F_SETFD, FD_CLOEXEC);
  auto inheritance = PrepareProcess();
  if (!inheritance) return Fail(arguments, inheritance.error().Message());
  if (arguments.log_directory.empty())
    return Fail(arguments, "there is no place for the log: this user has no home directory, and XDG_STATE_HOME is not set");
  if (auto made = MakeDirectory(arguments.log_directory, 0700); !made) return Fail(arguments, made.error().Message());

  const Ulid session = Ulid::Make();
  Supervisor::Options options;
  const std::string stem = arguments.log_directory + "/" + std::string(session.text());
  options.log.path = stem + ".jsonl";
  options.log.head_path = stem + ".head";
  options.log.mode = 0600;
  options.log.program = "oarlock-private";
  options.calls_per_shard = kCalls;
  options.records_per_shard = kRecords;
  options.slow_lanes = false;
  options.admission.session_id = session;
  const std::string& runtime = arguments.runtime_directory;
  const std::string control = runtime.empty() ? "" : runtime + "/private/" + std::to_string(::getpid()) + ".sock";
  options.admission.runtime = runtime;
  options.admission.own_sockets = {control};
  auto started = Supervisor::Start(std::move(options));
  if (!started) return Fail(arguments, started.error().Message());
  Supervisor& supervisor = **started;

  // Without a runtime directory nobody can ask us anything; the report says so.
  bool controlled = false;
  if (!control.empty() && MakeDirectory(runtime, 0700) && MakeDirectory(runtime + "/private", 0700)) {
    SweepDead(runtime + "/private");
    if (auto listening = ListenUnix(control, SOCK_SEQPACKET, 0600); listening) {
      supervisor.control().Listen(std::move(*listening));
      controlled = true;
    }
  }
  int code = 0;
  if (arguments.run) {
    if (auto ran = RunAsParent(supervisor, *inheritance, arguments.options, std::string(session.text())); !ran) code = Fail(arguments, ran.error().Message());
  } else {
    supervisor.admission().OnFailed([&](const std::string&) {
      code = 1;
      supervisor.reactor().Stop();
    });
    supervisor.admission().OnEnded([&](const SessionInfo&, const EndedSession&) { supervisor.reactor().Stop(); });
    supervisor.admission().Serve(UniqueFd(arguments.connection), std::nullopt);
    supervisor.reactor().Run();
  }
  if (controlled) (void)::unlink(control.c_str());
  started->reset();
  return code;
}

}  // namespace
}  // namespace oarlock::supervisor

int main(int argc, char** argv) {
  if (argc == 2 && std::strcmp(argv[1], oarlock::supervisor::kReaderVerb) == 0)
    return oarlock::supervisor::ServeReads(oarlock::supervisor::kReaderSocket);
  oarlock::supervisor::Arguments arguments;
  if (!oarlock::supervisor::Parse(argc, argv, &arguments)) {
    (void)std::fprintf(stderr, "oarlock-private is started by oarlock, not by hand\n");
    return 64;
  }
  return oarlock::supervisor::Main(arguments);
}
