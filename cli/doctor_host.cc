// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <system_error>
#include <thread>
#include <vector>

#include "cli/doctor.h"
#include "notif/abi/process.h"
#include "notif/base/places.h"
#include "notif/base/result.h"
#include "notif/base/text.h"
#include "notif/base/unique_fd.h"
#include "supervisor/limits.h"

namespace oarlock::cli::doctor {
namespace {

using policy::Code;

// A session's calls in flight and the session itself.
constexpr rlim_t kFiles = supervisor::kMaxCallsPerSession + supervisor::kDescriptorsPerSession;
// What the profile gives a module, unless its policy says otherwise.
constexpr rlim_t kModuleFiles = 4096;
// Of a private supervisor, with some to spare for kernel workers.
constexpr int kThreads = 8;

// What `call` gave, for a sentence.
std::string Gave(const char* call, int error) { return std::string(call) + " gave " + ErrnoName(error); }

// --- socket options ------------------------------------------------------------------------------------------------------

void CheckSockets(Checks& checks) {
  int pair[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) {
    checks.push_back(SupervisorsNeed("sockets", std::string("socketpair gave ") + ErrnoName(errno), FilterRemedy("socketpair")));
    return;
  }
  const UniqueFd one(pair[0]), two(pair[1]);
  int peer = -1;
  socklen_t size = sizeof(peer);
  const bool named = ::getsockopt(one.get(), SOL_SOCKET, abi::kSoPeerPidfd, &peer, &size) == 0;
  int error = errno;
  const UniqueFd pidfd(named ? peer : -1);
  checks.push_back(named ? Ok("so_peerpidfd", "a connection names its peer for good")
                         : Limited("so_peerpidfd", Gave("SO_PEERPIDFD", error), Since("6.5"),
                                   "nothing; a peer is named by pid and looked at twice"));
  const int off = 0;
  const bool rights = ::setsockopt(one.get(), SOL_SOCKET, abi::kSoPassRights, &off, sizeof(off)) == 0;
  error = errno;
  checks.push_back(rights ? Ok("so_passrights", "descriptors that nobody asked for stay away from the control socket")
                          : Limited("so_passrights", Gave("SO_PASSRIGHTS", error), Since("6.16"),
                                    "nothing; such descriptors are received, and closed by a thread of their own"));
  uint64_t cookie = 0;
  size = sizeof(cookie);
  const bool counted = ::getsockopt(one.get(), SOL_SOCKET, abi::kSoNetnsCookie, &cookie, &size) == 0;
  error = errno;
  checks.push_back(counted ? Ok("so_netns_cookie", "a socket's network namespace can be told")
                           : Unavailable("so_netns_cookie", Gave("SO_NETNS_COOKIE", error), Since("5.14"), kEveryLaunch, Code::kNotify));
}

// --- limits ----------------------------------------------------------------------------------------------------------------

void CheckLimits(Checks& checks) {
  rlimit files{}, size{};
  (void)::getrlimit(RLIMIT_NOFILE, &files);
  const std::string hard = "the hard limit of RLIMIT_NOFILE is " + std::to_string(files.rlim_max);
  const std::string raise = "raise it to " + std::to_string(kModuleFiles) + " or more (ulimit -Hn, LimitNOFILE=, Docker: --ulimit nofile)";
  const rlim_t sessions = (files.rlim_max - supervisor::kMaxCallsPerSession) / supervisor::kDescriptorsPerSession;
  if (files.rlim_max < kFiles)
    checks.push_back(SupervisorsNeed("limits.files", hard + ", and one session takes " + std::to_string(kFiles), raise));
  else if (files.rlim_max < kModuleFiles)
    checks.push_back(Limited("limits.files", hard, raise, "descriptors above that for modules"));
  else
    checks.push_back(Ok("limits.files", hard + ", so a node supervisor holds " + std::to_string(sessions) + " sessions"));
  (void)::getrlimit(RLIMIT_FSIZE, &size);
  if (size.rlim_max != RLIM_INFINITY && size.rlim_max < supervisor::kMinFileSize)
    checks.push_back(SupervisorsNeed("limits.file_size",
                                     "the hard limit of RLIMIT_FSIZE is " + std::to_string(size.rlim_max) + " bytes, too little for a log",
                                     "raise it to 64 MiB or more (ulimit -Hf, LimitFSIZE=)"));
  else
    checks.push_back(Ok("limits.file_size", "a log has room"));

  const Trial threads = InChild([] {
    std::atomic<bool> stop = false;
    std::vector<std::jthread> made;
    int failed = 0;
    try {
      for (int i = 0; i < kThreads; ++i) made.emplace_back([&] { stop.wait(false); });
    } catch (const std::system_error& error) {
      failed = error.code().value();
    }
    stop = true;
    stop.notify_all();
    made.clear();
    return std::to_string(failed);
  });
  if (threads.text == "0") checks.push_back(Ok("limits.threads", std::to_string(kThreads) + " threads can be started"));
  else
    checks.push_back(SupervisorsNeed("limits.threads",
                                     threads.text.empty() ? threads.problem : Gave("starting a thread", std::stoi(threads.text)),
                                     "raise RLIMIT_NPROC and the pids limit of the cgroup"));
}

// --- places ----------------------------------------------------------------------------------------------------------------

// A file of ours is made, written and taken away again.
std::string TryFile(const std::string& directory) {
  (void)::signal(SIGXFSZ, SIG_IGN);  // as every supervisor does
  if (auto made = MakeDirectory(directory, 0700); !made) return made.error().Message();
  const std::string path = directory + "/.doctor." + std::to_string(::getpid());
  const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0600));
  if (!fd.valid()) return "open '" + path + "': " + ErrnoName(errno);
  const std::string block(4096, '\n');
  const bool written = ::write(fd.get(), block.data(), block.size()) == static_cast<ssize_t>(block.size()) && ::fdatasync(fd.get()) == 0;
  const int error = errno;
  (void)::unlink(path.c_str());
  return written ? "ok" : "write '" + path + "': " + ErrnoName(error);
}

// A socket is bound in it and taken away again.
std::string TrySocket(const std::string& runtime) {
  for (const std::string& directory : {runtime, runtime + "/private"})
    if (auto made = MakeDirectory(directory, 0700); !made) return made.error().Message();
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = runtime + "/private/.doctor." + std::to_string(::getpid());
  if (path.size() >= sizeof(address.sun_path)) return "'" + runtime + "' is too long for a socket's path";
  std::memcpy(address.sun_path, path.data(), path.size());
  const UniqueFd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0)
    return "bind '" + path + "': " + ErrnoName(errno);
  (void)::unlink(path.c_str());
  return "ok";
}

// A file system may hang, and a limit may kill: both in a child.
std::string Told(const Trial& trial) { return trial.text.empty() ? trial.problem : trial.text; }

void CheckPlaces(Checks& checks) {
  const Places places = Places::ForSelf();
  const auto plain = [](const std::string& text) { return Printable(text, 300); };
  if (places.log_directory.empty()) {
    checks.push_back(SupervisorsNeed("state_directory",
                                     "there is no place for the log: this user has no home directory, and XDG_STATE_HOME is not set",
                                     "set XDG_STATE_HOME to a directory of this user"));
  } else if (const std::string state = Told(InChild([&] { return TryFile(places.log_directory); })); state == "ok") {
    checks.push_back(Ok("state_directory", plain(places.log_directory) + " takes a log"));
  } else {
    checks.push_back(SupervisorsNeed("state_directory", plain(state),
                                     "set XDG_STATE_HOME to a directory of this user, with room, that nobody else writes to"));
  }
  constexpr const char* kNoControl = "sandbox-check of runs without a node supervisor";
  if (places.runtime.empty()) {
    checks.push_back(Limited("runtime_directory", "this user has no runtime directory, so private supervisors have no control socket",
                             "set XDG_RUNTIME_DIR to a directory of this user (systemd-logind makes one)", kNoControl));
  } else if (const std::string runtime = Told(InChild([&] { return TrySocket(places.runtime); })); runtime == "ok") {
    checks.push_back(Ok("runtime_directory", plain(places.runtime) + " takes a control socket"));
  } else {
    checks.push_back(Limited("runtime_directory", plain(runtime),
                             "make it a directory of this user that nobody else may write to, or set XDG_RUNTIME_DIR", kNoControl));
  }
}

void CheckPrograms(Checks& checks) {
  std::string missing;
  for (const char* name : {"oarlock", "oarlock-private"}) {
    const auto program = FindProgram(name);
    if (!program) missing = program.error().Message();
    else if (::access(program->c_str(), X_OK) != 0) missing = *program + " may not be executed: " + ErrnoName(errno);
    if (!missing.empty()) break;
  }
  if (missing.empty()) checks.push_back(Ok("programs", "the launcher and the private supervisor are there"));
  else checks.push_back(SupervisorsNeed("programs", Printable(missing, 300), "install all of Oarlock, on a file system without noexec"));
}

std::string FirstLine(const char* path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::string StatusField(const std::string& key) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with(key + ":\t")) return line.substr(key.size() + 2);
  return "";
}

Check Surroundings() {
  const std::string filters = StatusField("Seccomp_filters"), tracer = StatusField("TracerPid");
  std::string found = IsFiltered() ? "seccomp filters around this process: " + filters : "no seccomp filter is around this process";
  if (StatusField("NoNewPrivs") == "1") found += "; no_new_privs is set";
  if (!tracer.empty() && tracer != "0") found += "; process " + tracer + " traces this one";
  return Info("surroundings", std::move(found));
}

// Where our own cgroup of version 2 is, and whether a leaf could be made in it.
Check Cgroups() {
  std::ifstream mounts("/proc/self/mountinfo"), own("/proc/self/cgroup");
  std::string mount, path;
  for (std::string line; std::getline(mounts, line);) {
    const size_t dash = line.find(" - cgroup2 ");
    if (dash == std::string::npos) continue;
    std::istringstream fields(line);
    std::string word;
    for (int i = 0; i < 5; ++i) fields >> word;
    mount = word;
    break;
  }
  for (std::string line; std::getline(own, line);)
    if (line.starts_with("0::/")) path = line.substr(3);
  if (mount.empty()) return Info("cgroups", "no cgroup v2 is mounted (not used yet)");
  const std::string directory = mount + (path == "/" ? "" : path);
  const bool writable = ::access(directory.c_str(), W_OK) == 0 && ::access((directory + "/cgroup.procs").c_str(), W_OK) == 0;
  const std::string controllers = FirstLine((directory + "/cgroup.controllers").c_str());
  return Info("cgroups", Printable(directory, 200) + (writable ? " may be written" : " may not be written") +
                             ", controllers: " + (controllers.empty() ? "none" : Printable(controllers, 100)) + " (not used yet)");
}

Check UserNamespaces() {
  const Trial trial = InChild([] { return std::string(::unshare(CLONE_NEWUSER) == 0 ? "ok" : ErrnoName(errno)); });
  const std::string why = Told(trial);
  return Info("user_namespaces", (why == "ok" ? "can be made" : "cannot be made: " + why) + " (not used)");
}

}  // namespace

Node FindNode() {
  const char* named = ::getenv("OARLOCK_SUPERVISOR");
  if (named != nullptr && *named != '\0') return {.socket = named, .named = true};
  const std::string socket = Places::ForSelf().admission;
  struct stat status {};
  if (!socket.empty() && ::stat(socket.c_str(), &status) == 0 && S_ISSOCK(status.st_mode)) return {.socket = socket};
  return {};
}

void CheckHost(Checks& checks) {
  CheckSockets(checks);
  CheckLimits(checks);
  CheckPlaces(checks);
  CheckPrograms(checks);
}

void TellHost(Checks& checks) {
  utsname name{};
  (void)::uname(&name);
  checks.push_back(Info("kernel", std::string(name.sysname) + " " + name.release + " " + name.machine));
  checks.push_back(Surroundings());
  checks.push_back(Cgroups());
  checks.push_back(UserNamespaces());
}

}  // namespace oarlock::cli::doctor
