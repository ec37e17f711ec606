// SPDX-License-Identifier: Apache-2.0
#include "notif/base/places.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "notif/base/unique_fd.h"

namespace oarlock {
namespace {

std::string Environment(const char* name) {
  const char* value = ::secure_getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

bool IsDirectory(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

}  // namespace

Places Places::For(uint32_t uid, const std::string& xdg_runtime, const std::string& xdg_state, const std::string& home) {
  Places places;
  std::string state = xdg_state.starts_with('/') ? xdg_state : std::string();
  if (state.empty() && home.starts_with('/')) state = home + "/.local/state";
  if (!state.empty()) places.log_directory = state + "/oarlock/audit";
  if (uid == 0) {
    places.runtime = "/run/oarlock";
    places.log = "/var/log/oarlock/audit.jsonl";
    places.grants = "/etc/oarlock/grants";
  } else {
    const std::string system = "/run/user/" + std::to_string(uid);
    if (xdg_runtime.starts_with('/')) places.runtime = xdg_runtime + "/oarlock";
    else if (IsDirectory(system)) places.runtime = system + "/oarlock";
    if (!places.log_directory.empty()) places.log = places.log_directory + "/audit.jsonl";
  }
  if (!places.runtime.empty()) {
    places.admission = places.runtime + "/admit.sock";
    places.control = places.runtime + "/control.sock";
    places.privates = places.runtime + "/private";
  }
  return places;
}

Places Places::ForSelf() {
  return For(::geteuid(), Environment("XDG_RUNTIME_DIR"), Environment("XDG_STATE_HOME"), HomeOf(::geteuid()));
}

std::string HomeOf(uint32_t uid) {
  std::ifstream file("/etc/passwd");
  std::string line;
  while (std::getline(file, line)) {
    // name:password:uid:gid:gecos:home:shell
    std::string fields[7];
    size_t field = 0;
    for (const char c : line) {
      if (c == ':') {
        if (++field == 7) break;
      } else {
        fields[field] += c;
      }
    }
    if (field >= 5 && fields[2] == std::to_string(uid)) return fields[5];
  }
  return {};
}

Status MakeDirectory(const std::string& path, unsigned mode, int gid) {
  for (size_t at = path.find('/', 1); at != std::string::npos; at = path.find('/', at + 1)) {
    const std::string parent = path.substr(0, at);
    if (::mkdir(parent.c_str(), 0755) != 0 && errno != EEXIST) return OARLOCK_FAIL("mkdir", errno, "%s", parent.c_str());
  }
  const bool made = ::mkdir(path.c_str(), mode) == 0;
  if (!made && errno != EEXIST) return OARLOCK_FAIL("mkdir", errno, "%s", path.c_str());
  // Whatever the umask; one that was there keeps its owner's choice.
  if (made && (::chmod(path.c_str(), mode) != 0 || (gid >= 0 && ::chown(path.c_str(), static_cast<uid_t>(-1), static_cast<gid_t>(gid)) != 0)))
    return OARLOCK_FAIL("chmod", errno, "%s", path.c_str());
  const UniqueFd fd(::open(path.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat status {};
  if (!fd.valid() || ::fstat(fd.get(), &status) != 0) return OARLOCK_FAIL("open", errno, "%s", path.c_str());
  if ((status.st_uid != ::geteuid() && status.st_uid != 0) || (status.st_mode & 0022) != 0)
    return OARLOCK_FAIL("open", EPERM, "%s (its owner must be this user or root, and nobody else may write to it)", path.c_str());
  return {};
}

Result<std::string> OwnDirectory() {
  char path[4096];
  const ssize_t size = ::readlink("/proc/self/exe", path, sizeof(path));
  if (size <= 0 || size == static_cast<ssize_t>(sizeof(path))) return OARLOCK_FAIL("readlink", errno, "/proc/self/exe");
  const std::string self(path, static_cast<size_t>(size));
  return self.substr(0, self.rfind('/'));
}

Result<std::string> FindProgram(const char* name) {
  const std::string own = OARLOCK_TRY(OwnDirectory());
  const std::string parent = own.substr(0, own.rfind('/'));
  for (const std::string& directory : {parent + "/libexec/oarlock", own, parent.substr(0, parent.rfind('/')) + "/bin"}) {
    const std::string path = directory + "/" + name;
    struct stat file {}, around {};
    if (::stat(path.c_str(), &file) != 0 || ::stat(directory.c_str(), &around) != 0) continue;
    const auto trusted = [](const struct stat& status) {
      return (status.st_uid == 0 || status.st_uid == ::geteuid()) && (status.st_mode & 0002) == 0;
    };
    if (!S_ISREG(file.st_mode) || !trusted(file) || !trusted(around))
      return OARLOCK_FAIL("stat", EPERM, "%s (its owner must be root or this user, and others may not write to it)", path.c_str());
    return path;
  }
  const std::string place = own.ends_with("/libexec/oarlock") ? own : parent + "/libexec/oarlock";
  return OARLOCK_FAIL("stat", ENOENT, "%s/%s (the installation is incomplete)", place.c_str(), name);
}

}  // namespace oarlock
