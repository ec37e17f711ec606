// SPDX-License-Identifier: Apache-2.0
#include "cli/status_command.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ostream>
#include <vector>

#include "child/identity.h"
#include "child/landlock.h"
#include "notif/abi/process.h"
#include "notif/base/places.h"
#include "notif/base/unique_fd.h"
#include "notif/filter/programs.h"
#include "notif/json.h"
#include "notif/ring.h"
#include "policy/report.h"

namespace oarlock::cli {
namespace {

// Does in a child what a launch does, since it cannot be undone. 0, or the errno of the filter's installation.
int TryListener() {
  const pid_t pid = ::fork();
  if (pid < 0) return errno;
  if (pid == 0) {
    if (!child::SetNoNewPrivs()) ::_exit(EPERM);
    const auto listener = InstallFilter(FilterProgram(Shape{}));
    ::_exit(listener ? 0 : listener.error().code);
  }
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
  return WIFEXITED(status) ? WEXITSTATUS(status) : EPERM;
}

policy::Facts Probe() {
  policy::Facts facts;
  if (const auto abi = child::LandlockAbi(); abi) facts.landlock_abi = *abi;
  else facts.why_no_landlock = abi.error().Message();
  facts.landlock_errata = child::LandlockErrata().value_or(0);
  facts.age = child::KernelAge(facts.landlock_abi);
  const int filter = TryListener();
  const auto ring = Ring::Make({.entries = 8, .completions = 16});
  facts.listener = filter == 0 && ring.has_value();
  if (filter != 0) facts.why_no_listener = std::string("a seccomp listener cannot be installed: ") + ErrnoName(filter);
  else if (!ring) facts.why_no_listener = ring.error().Message();
  return facts;
}

// Asks one supervisor. Its answer counts only where it runs as root or as us: anybody can serve a socket.
bool Ask(const std::string& path, int32_t pid) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof(address.sun_path)) return false;
  std::memcpy(address.sun_path, path.data(), path.size());
  const UniqueFd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  const timeval limit{2, 0};
  (void)::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
  (void)::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) return false;
  ucred peer{};
  socklen_t size = sizeof(peer);
  if (::getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 || (peer.uid != 0 && peer.uid != ::geteuid())) return false;
  const std::string request = DumpJson({{"oarlock", 1}, {"verb", "check"}, {"pid", pid}});
  char answer[4096];
  if (::send(socket.get(), request.data(), request.size(), MSG_NOSIGNAL) < 0) return false;
  const ssize_t got = ::recv(socket.get(), answer, sizeof(answer), 0);
  if (got <= 0) return false;
  std::string problem;
  const Json json = ParseStrictJson(std::string_view(answer, static_cast<size_t>(got)), &problem);
  return problem.empty() && json.is_object() && json.value("ok", Json()) == true;
}

std::vector<std::string> Supervisors(const std::string& control) {
  if (!control.empty()) return {control};
  std::vector<std::string> paths;
  if (const char* admission = ::getenv("OARLOCK_SUPERVISOR"); admission != nullptr && admission[0] == '/') {
    const std::string path(admission);
    paths.push_back(path.substr(0, path.rfind('/')) + "/control.sock");
  }
  for (const Places& places : {Places::ForSelf(), Places::For(0, "", "", "")}) {
    paths.push_back(places.control);
    DIR* privates = places.privates.empty() ? nullptr : ::opendir(places.privates.c_str());
    if (privates == nullptr) continue;
    while (const dirent* entry = ::readdir(privates))
      if (std::string_view(entry->d_name).ends_with(".sock")) paths.push_back(places.privates + "/" + entry->d_name);
    (void)::closedir(privates);
  }
  return paths;
}

}  // namespace

int SandboxStatus(std::ostream& out) {
  out << policy::Report(Probe(), nullptr, "", {}) << "\n";
  return 0;
}

int SandboxCheck(int32_t pid, const std::string& control, std::ostream& err) {
  for (const std::string& path : Supervisors(control))
    if (Ask(path, pid)) return 0;
  err << "oarlock sandbox-check: no supervisor confirms process " << pid << "\n";
  return 1;
}

}  // namespace oarlock::cli
