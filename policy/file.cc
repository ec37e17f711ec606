// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <limits>

#include "notif/base/result.h"
#include "notif/base/sha256.h"
#include "notif/base/text.h"
#include "notif/base/unique_fd.h"
#include "policy/policy.h"

namespace oarlock::policy {
namespace {

std::unexpected<Problem> Unreadable(std::string text) {
  return std::unexpected(Problem{Code::kRead, "", std::move(text)});
}

std::string Shown(const std::string& name) { return "'" + Printable(name, 200) + "'"; }

std::unexpected<Problem> Failed(const char* step, const std::string& name, int error) {
  return Unreadable(OARLOCK_FAIL(step, error, "%s", Shown(name).c_str()).error().Message());
}

std::string_view TypeOf(mode_t mode) {
  switch (mode & S_IFMT) {
    case S_IFDIR:
      return "a directory";
    case S_IFIFO:
      return "a pipe";
    case S_IFSOCK:
      return "a socket";
    case S_IFCHR:
    case S_IFBLK:
      return "a device";
    case S_IFLNK:
      return "a symbolic link";
    default:
      return "no regular file";
  }
}

// What may be trusted with saying what a module may do: nobody but root and the launcher's own user can have
// written it.
std::optional<std::string> Mistrusted(const struct stat& status) {
  if (!S_ISREG(status.st_mode)) return "is " + std::string(TypeOf(status.st_mode)) + ", not a regular file";
  if (status.st_uid != 0 && status.st_uid != ::geteuid())
    return "belongs to uid " + std::to_string(status.st_uid) + "; it must belong to root or to uid " +
           std::to_string(::geteuid());
  if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0)
    return "is writable by its group or by others; chmod go-w it";
  if (static_cast<uint64_t>(status.st_size) > kMaxFileBytes)
    return "holds " + std::to_string(status.st_size) + " bytes; at most " + std::to_string(kMaxFileBytes) +
           " are read";
  return std::nullopt;
}

// `fd` is borrowed, and its offset is neither used nor moved.
Checked<File> ReadOpen(int fd, const std::string& name) {
  struct stat status{};
  if (::fstat(fd, &status) != 0) return Failed("fstat", name, errno);
  if (const auto reason = Mistrusted(status)) return Unreadable(Shown(name) + " " + *reason);
  File file;
  file.text.resize(static_cast<size_t>(status.st_size) + 1);  // one more, to see it grow
  size_t size = 0;
  while (size < file.text.size()) {
    const ssize_t count =
        ::pread(fd, file.text.data() + size, file.text.size() - size, static_cast<off_t>(size));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return Failed("read", name, errno);
    if (count == 0) break;
    size += static_cast<size_t>(count);
  }
  // A policy is replaced by rename, never rewritten in place; half of one is none.
  if (size != static_cast<size_t>(status.st_size))
    return Unreadable(Shown(name) + " changed while it was read");
  file.text.resize(size);
  file.sha256 = Sha256Hex(file.text);
  return file;
}

// The path of an open directory, as the kernel sees it.
Checked<std::string> CanonicalPath(int directory, const std::string& name) {
  std::array<char, 4096> target;  // PATH_MAX: a longer one cannot be a rule either
  const std::string link = "/proc/self/fd/" + std::to_string(directory);
  const ssize_t size = ::readlink(link.c_str(), target.data(), target.size());
  if (size < 0) return Failed("finding the directory (is /proc mounted?) of", name, errno);
  if (static_cast<size_t>(size) == target.size())
    return Failed("finding the directory of", name, ENAMETOOLONG);
  return std::string(target.data(), static_cast<size_t>(size));
}

}  // namespace

Checked<File> ReadFile(const std::string& name) {
  if (name.starts_with("fd:")) {
    uint64_t fd = 0;
    if (!ParseNumber(std::string_view(name).substr(3), 0, std::numeric_limits<int>::max(), &fd))
      return Unreadable(Shown(name) + " is no descriptor; write fd:N, or ./fd:... for a file of that name");
    return ReadOpen(static_cast<int>(fd), name);
  }
  if (name.empty() || name.find('\0') != std::string::npos)
    return Unreadable(Shown(name) + " is no file name");

  // The directory first, so that what is said of it is true of the file that is read, whatever is renamed
  // meanwhile.
  const size_t slash = name.rfind('/');
  const std::string parent = slash == std::string::npos ? "." : name.substr(0, slash + 1);
  const std::string base = slash == std::string::npos ? name : name.substr(slash + 1);
  if (base.empty() || base == "." || base == "..")
    return Unreadable(Shown(name) + " is a directory, not a regular file");
  const UniqueFd directory(::open(parent.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!directory.valid()) return Failed("open", name, errno);
  // O_NONBLOCK: a pipe without a writer must not hold the launch up before fstat shows it for what it is.
  const UniqueFd fd(
      ::openat(directory.get(), base.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY));
  if (!fd.valid() && errno == ELOOP)
    return Unreadable(Shown(name) + " is a symbolic link; name the file itself");
  if (!fd.valid()) return Failed("open", name, errno);

  Checked<File> file = ReadOpen(fd.get(), name);
  if (!file) return file;
  Checked<std::string> path = CanonicalPath(directory.get(), name);
  if (!path) return std::unexpected(std::move(path).error());
  file->directory_of = std::move(*path);
  return file;
}

}  // namespace oarlock::policy
