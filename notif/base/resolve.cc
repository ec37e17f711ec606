// SPDX-License-Identifier: Apache-2.0
#include "notif/base/resolve.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <deque>

namespace oarlock {
namespace {

constexpr int kMaxLinks = 40;  // as the kernel (MAXSYMLINKS)

void PushFront(std::deque<std::string>& parts, const std::string& path) {
  std::deque<std::string> more;
  size_t at = 0;
  while (at < path.size()) {
    const size_t slash = std::min(path.find('/', at), path.size());
    if (slash > at) more.push_back(path.substr(at, slash - at));
    at = slash + 1;
  }
  parts.insert(parts.begin(), more.begin(), more.end());
}

}  // namespace

Result<ResolvedPath> ResolvePath(const std::string& path) {
  ResolvedPath resolved;
  std::string at;  // canonical so far; empty for the root
  std::deque<std::string> parts;
  PushFront(parts, path);
  int links = 0;
  // A slash at the end asks for a directory.
  bool wants_directory = path.ends_with('/');
  while (!parts.empty()) {
    const std::string part = parts.front();
    parts.pop_front();
    if (part == ".") continue;
    if (part == "..") {
      at.resize(at.empty() ? 0 : at.rfind('/'));
      continue;
    }
    const std::string next = at + "/" + part;
    struct stat status {};
    if (::lstat(next.c_str(), &status) != 0) return OARLOCK_FAIL("lstat", errno, "'%s'", next.c_str());
    if (S_ISLNK(status.st_mode)) {
      if (++links > kMaxLinks) return OARLOCK_FAIL("readlink", ELOOP, "'%s'", path.c_str());
      char target[4096];
      const ssize_t size = ::readlink(next.c_str(), target, sizeof(target));
      if (size < 0) return OARLOCK_FAIL("readlink", errno, "'%s'", next.c_str());
      if (size == static_cast<ssize_t>(sizeof(target))) return OARLOCK_FAIL("readlink", ENAMETOOLONG, "'%s'", next.c_str());
      const std::string text(target, static_cast<size_t>(size));
      resolved.link_directories.push_back(at.empty() ? "/" : at);
      if (text.starts_with('/')) at.clear();
      if (parts.empty()) wants_directory |= text.ends_with('/');
      PushFront(parts, text);
      continue;
    }
    if ((!parts.empty() || wants_directory) && !S_ISDIR(status.st_mode)) return OARLOCK_FAIL("lstat", ENOTDIR, "'%s'", next.c_str());
    at = next;
  }
  resolved.canonical = at.empty() ? "/" : at;
  return resolved;
}

Result<UniqueFd> OpenCanonical(const std::string& canonical) {
  open_how how{};
  how.flags = O_PATH | O_CLOEXEC;
  how.resolve = RESOLVE_NO_SYMLINKS;
  UniqueFd fd(static_cast<int>(::syscall(SYS_openat2, AT_FDCWD, canonical.c_str(), &how, sizeof(how))));
  if (!fd.valid()) return OARLOCK_FAIL("openat2", errno, "'%s'", canonical.c_str());
  return fd;
}

std::string DirectoryOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, std::max<size_t>(slash, 1));
}

bool IsAtOrBelow(const std::string& path, const std::string& directory) {
  if (directory == "/") return true;
  return path.starts_with(directory) && (path.size() == directory.size() || path[directory.size()] == '/');
}

}  // namespace oarlock
