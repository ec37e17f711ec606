// SPDX-License-Identifier: Apache-2.0
// oarlockd: the node supervisor.
#include <grp.h>
#include <limits.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "notif/base/places.h"
#include "notif/base/resolve.h"
#include "notif/base/text.h"
#include "supervisor/supervisor.h"

namespace oarlock::supervisor {
namespace {

constexpr int kExitUsage = 64;

// stderr, without ever waiting for its reader: a stalled one must not stop admission. What finds no room is counted, and so is
// what strangers could make us say without end.
class PatientSink : public spdlog::sinks::base_sink<std::mutex> {
 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t text;
    formatter_->format(message, text);
    const auto now = message.time;
    if (now - window_ > std::chrono::seconds(1)) {
      window_ = now;
      in_window_ = 0;
    }
    pollfd ready{STDERR_FILENO, POLLOUT, 0};
    // POLLOUT of a pipe: PIPE_BUF bytes fit.
    const bool room = ::poll(&ready, 1, 0) == 1 && (ready.revents & POLLOUT) != 0 && text.size() <= PIPE_BUF;
    if (!room || in_window_ >= kLinesPerSecond) {
      ++dropped_;
      return;
    }
    ++in_window_;
    if (dropped_ != 0) {
      const std::string note = "oarlockd: warning: " + std::to_string(dropped_) + " lines were left out here\n";
      if (note.size() + text.size() <= PIPE_BUF) {
        (void)!::write(STDERR_FILENO, note.data(), note.size());
        dropped_ = 0;
      }
    }
    (void)!::write(STDERR_FILENO, text.data(), text.size());
  }
  void flush_() override {}

 private:
  static constexpr int kLinesPerSecond = 200;
  spdlog::log_clock::time_point window_;
  int in_window_ = 0;
  uint64_t dropped_ = 0;
};

struct DaemonOptions {
  std::string socket, control, log, max_grant, durability = "written";
  std::vector<std::string> admit_users, admit_groups;
  unsigned shards = 1;
};

// A number or a name.
bool ParseUser(const std::string& text, uint32_t* uid) {
  uint64_t number = 0;
  if (ParseNumber(text, 0, UINT32_MAX - 1, &number)) return *uid = static_cast<uint32_t>(number), true;
  const passwd* entry = ::getpwnam(text.c_str());
  if (entry != nullptr) *uid = entry->pw_uid;
  return entry != nullptr;
}
bool ParseGroup(const std::string& text, uint32_t* gid) {
  uint64_t number = 0;
  if (ParseNumber(text, 0, UINT32_MAX - 1, &number)) return *gid = static_cast<uint32_t>(number), true;
  const group* entry = ::getgrnam(text.c_str());
  if (entry != nullptr) *gid = entry->gr_gid;
  return entry != nullptr;
}

int Fail(const std::string& text) {
  spdlog::error("{}", text);
  return 1;
}

// What to serve and where, with every default filled in.
struct Plan {
  Supervisor::Options options;
  std::string socket, control, log;
  unsigned socket_mode = 0600;
  int socket_gid = -1;
};

// 0, or the exit code with the reason told.
int MakePlan(const DaemonOptions& options, Plan* plan) {
  Admission::Options& admission = plan->options.admission;
  for (const std::string& user : options.admit_users) {
    uint32_t uid = 0;
    if (!ParseUser(user, &uid)) return spdlog::error("--admit-uid '{}': no such user", Printable(user, 60)), kExitUsage;
    admission.admit_uids.push_back(uid);
  }
  for (const std::string& group : options.admit_groups) {
    uint32_t gid = 0;
    if (!ParseGroup(group, &gid)) return spdlog::error("--admit-group '{}': no such group", Printable(group, 60)), kExitUsage;
    admission.admit_gids.push_back(gid);
  }
  if (options.durability != "written") return spdlog::error("--durability '{}': only 'written' is built", Printable(options.durability, 20)), kExitUsage;
  if (!options.max_grant.empty()) {
    auto ceiling = Ceiling::Load(options.max_grant);
    if (!ceiling) return Fail(ceiling.error().Message());
    admission.ceiling = std::move(*ceiling);
  }

  const Places places = Places::ForSelf();
  plan->socket = options.socket.empty() ? places.admission : options.socket;
  if (plan->socket.empty()) return Fail("no runtime directory for this user: name a socket with --socket");
  plan->control = options.control.empty() ? DirectoryOf(plan->socket) + "/control.sock" : options.control;
  if (plan->control == plan->socket) return spdlog::error("--socket and --control name the same file"), kExitUsage;
  plan->log = options.log.empty() ? places.log : options.log;
  if (plan->log.empty()) return Fail("no place for the log: name a file with --log");

  // Who may admit is asked of each peer; the file's mode lets those through that may.
  const bool users = !options.admit_users.empty(), group = !admission.admit_gids.empty();
  plan->socket_mode = users ? 0666 : group ? 0660 : 0600;
  if (group) plan->socket_gid = static_cast<int>(admission.admit_gids.front());
  // Only directories of our own default places are made; a path that the operator gives must be there.
  if (options.socket.empty())
    if (auto made = MakeDirectory(DirectoryOf(plan->socket), users ? 0711 : group ? 0750 : 0700, plan->socket_gid); !made) return Fail(made.error().Message());
  if (options.log.empty())
    if (auto made = MakeDirectory(DirectoryOf(plan->log), 0750); !made) return Fail(made.error().Message());
  plan->options.log.path = plan->log;
  plan->options.log.head_path = DirectoryOf(plan->log) + "/audit.head";
  plan->options.shards = options.shards;
  admission.own_sockets = {plan->socket, plan->control};
  admission.runtime = places.runtime;
  admission.reader_program = FindProgram("oarlock-private");
  return 0;
}

// Both doors, whose files go with it.
struct Doors {
  UniqueFd admission, control;
  std::string admission_path, control_path;  // empty: not ours
  Doors() = default;
  Doors(const Doors&) = delete;
  Doors& operator=(const Doors&) = delete;
  ~Doors() {
    for (const std::string& path : {admission_path, control_path})
      if (!path.empty()) (void)::unlink(path.c_str());
  }
};

// Before anything of another supervisor's is touched: whoever holds the doors holds the log too.
int OpenDoors(const Plan& plan, Doors* doors) {
  auto admission = ListenUnix(plan.socket, SOCK_STREAM, plan.socket_mode, plan.socket_gid);
  if (!admission) return Fail(admission.error().Message());
  doors->admission = std::move(*admission);
  doors->admission_path = plan.socket;
  auto control = ListenUnix(plan.control, SOCK_SEQPACKET, 0600);
  if (!control) return Fail(control.error().Message());
  doors->control = std::move(*control);
  doors->control_path = plan.control;
  return 0;
}

void Serve(Doors& doors, Supervisor& supervisor) {
  supervisor.admission().Listen(std::move(doors.admission));
  supervisor.control().Listen(std::move(doors.control));
  supervisor.admission().OnFailed([](const std::string& text) { spdlog::warn("admission refused: {}", Printable(text, 400)); });
  supervisor.admission().OnStarted([](const SessionInfo& session) {
    spdlog::info("session {} started: pid {} uid {} module '{}'", session.facts.id.text(), session.facts.pid, session.facts.uid, Printable(session.facts.module, 60));
  });
  supervisor.admission().OnEnded([](const SessionInfo& session, const EndedSession& ended) {
    spdlog::info("session {} ended: {} calls, {} refused", session.facts.id.text(), ended.calls, ended.refusals);
  });
}

int Run(const DaemonOptions& options) {
  if (auto prepared = PrepareProcess(); !prepared) return Fail(prepared.error().Message());
  // Readers are our only children, and nobody waits for them.
  struct sigaction unwaited {};
  unwaited.sa_handler = SIG_DFL;
  unwaited.sa_flags = SA_NOCLDWAIT;
  (void)::sigaction(SIGCHLD, &unwaited, nullptr);
  sigset_t stop;
  (void)::sigemptyset(&stop);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) (void)::sigaddset(&stop, signal);
  const UniqueFd signals(::signalfd(-1, &stop, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!signals.valid()) return Fail(std::string("signalfd: ") + ErrnoName(errno));  // it would be deaf to all of them
  Plan plan;
  if (const int code = MakePlan(options, &plan); code != 0) return code;
  Doors doors;
  if (const int code = OpenDoors(plan, &doors); code != 0) return code;
  auto started = Supervisor::Start(std::move(plan.options));
  if (!started) return Fail(started.error().Message());
  Supervisor& supervisor = **started;
  Serve(doors, supervisor);

  std::function<void(int)> on_signal = [&](int) {
    signalfd_siginfo info{};
    bool ends = false;
    while (::read(signals.get(), &info, sizeof(info)) == sizeof(info)) {
      if (info.ssi_signo == SIGHUP) supervisor.ReopenLog();
      else ends = true;
    }
    if (ends) supervisor.reactor().Stop();
    else supervisor.reactor().OnReady(signals.get(), POLLIN, on_signal);
  };
  supervisor.reactor().OnReady(signals.get(), POLLIN, on_signal);
  spdlog::info("ready: admission at {}, control at {}, log at {}", plan.socket, plan.control, plan.log);
  supervisor.reactor().Run();
  started->reset();
  spdlog::info("stopped");
  return 0;
}

}  // namespace
}  // namespace oarlock::supervisor

int main(int argc, char** argv) {
  using oarlock::supervisor::DaemonOptions;
  spdlog::set_default_logger(std::make_shared<spdlog::logger>("oarlockd", std::make_shared<oarlock::supervisor::PatientSink>()));
  spdlog::set_pattern("oarlockd: %l: %v");
  DaemonOptions options;
  CLI::App app{"Oarlock's node supervisor: answers the socket and connect calls of every sandbox on this node"};
  app.add_option("--socket", options.socket, "The admission socket");
  app.add_option("--control", options.control, "The control socket (default: control.sock beside the admission socket)");
  app.add_option("--log", options.log, "The audit log");
  app.add_option("--admit-uid", options.admit_users, "Users who may admit sandboxes, beside root and our own")->take_all()->allow_extra_args(false);
  app.add_option("--admit-group", options.admit_groups, "Groups whose members may")->take_all()->allow_extra_args(false);
  app.add_option("--max-grant", options.max_grant, "A file with the most that any grant may hold");
  app.add_option("--durability", options.durability, "When a record counts as kept: written");
  app.add_option("--shards", options.shards, "Threads that answer calls")->check(CLI::Range(1, 64));
  app.set_version_flag("--version", OARLOCK_VERSION);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return error.get_exit_code() == 0 ? app.exit(error) : (app.exit(error), oarlock::supervisor::kExitUsage);
  }
  return oarlock::supervisor::Run(options);
}
