// SPDX-License-Identifier: Apache-2.0
#include "notif/base/places.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <string_view>

#include "notif/base/read_text.h"
#include "notif/base/unique_fd.h"

namespace oarlock {
namespace {

std::string Environment(const char* name) {
  const char* value = ::secure_getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

// Also where it cannot be told: what lies there must then not be taken for nothing.
bool MayBeDirectory(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) == 0) return S_ISDIR(status.st_mode);
  return errno != ENOENT && errno != ENOTDIR && errno != EACCES;
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
    else if (MayBeDirectory(system)) places.runtime = system + "/oarlock";
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
  const uid_t uid = ::geteuid();
  const std::string state = Environment("XDG_STATE_HOME");
  const auto home = state.starts_with('/') ? Result<std::string>() : HomeOf(uid);
  Places places = For(uid, Environment("XDG_RUNTIME_DIR"), state, home.value_or(""));
  if (!home) places.unknown = home.error().Message();
  return places;
}

Result<std::string> HomeOf(uint32_t uid) {
  constexpr size_t kMaxBytes = 16 << 20;
  const auto text = ReadText("/etc/passwd", kMaxBytes);
  if (!text && text.error().code == ENOENT) return std::string();
  if (!text) return std::unexpected(text.error());
  for (size_t at = 0; at < text->size();) {
    const size_t end = std::min(text->find('\n', at), text->size());
    // name:password:uid:gid:gecos:home:shell
    std::string fields[7];
    size_t field = 0;
    for (const char c : std::string_view(*text).substr(at, end - at)) {
      if (c == ':') {
        if (++field == 7) break;
      } else {
        fields[field] += c;
      }
    }
    if (field >= 5 && fields[2] == std::to_string(uid)) return fields[5];
    at = end + 1;
  }
  return std::string();
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
