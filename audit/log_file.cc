// SPDX-License-Identifier: Apache-2.0
#include "audit/log_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "notif/kernel.h"

namespace oarlock::audit {
namespace {

constexpr int kOpenFlags = O_APPEND | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY;
constexpr unsigned kModeBits = 07777;
constexpr unsigned kWriteByOthers = 0022;

template <typename Call>
auto Retry(Call call) noexcept {
  for (;;) {
    const auto result = call();
    if (result >= 0 || errno != EINTR) return result;
  }
}

// A regular file of ours or root's that nobody else may write.
Status Check(int fd, unsigned mode, const char* name) {
  struct stat status{};
  if (::fstat(fd, &status) != 0) return OARLOCK_FAIL("fstat", errno, "'%s'", name);
  if (!S_ISREG(status.st_mode)) return OARLOCK_FAIL("check", EPERM, "'%s' is not a regular file", name);
  if (status.st_uid != ::geteuid() && status.st_uid != 0)
    return OARLOCK_FAIL("check", EPERM, "'%s' belongs to uid %u, not to us or root", name, status.st_uid);
  if ((status.st_mode & kWriteByOthers & ~mode) != 0)
    return OARLOCK_FAIL("check", EPERM, "'%s' may be written by others (mode %04o)", name,
                        status.st_mode & kModeBits);
  return {};
}

// Opens or creates, and checks. A file that was made here gets exactly `mode`, whatever the umask.
Result<UniqueFd> OpenChecked(const std::string& path, unsigned mode, int flags) {
  const char* name = path.c_str();
  UniqueFd fd(Retry([&] { return ::open(name, flags | O_CREAT | O_EXCL, mode); }));
  if (fd.valid()) {
    if (::fchmod(fd.get(), mode) != 0) return OARLOCK_FAIL("fchmod", errno, "'%s'", name);
  } else if (errno == EEXIST) {
    fd.Reset(Retry([&] { return ::open(name, flags); }));
  }
  if (!fd.valid()) return OARLOCK_FAIL("open", errno, "'%s'", name);
  OARLOCK_TRY_VOID(Check(fd.get(), mode, name));
  return fd;
}

}  // namespace

Result<LogFile> LogFile::Open(const LogFileOptions& options) {
  LogFile file;
  if (options.fd >= 0) {
    file.log_.Reset(options.fd);
    if (::fcntl(options.fd, F_SETFD, FD_CLOEXEC) != 0)
      return OARLOCK_FAIL("fcntl", errno, "the log's descriptor %d", options.fd);
    OARLOCK_TRY_VOID(Check(file.log_.get(), options.mode, "the log's descriptor"));
    const int flags = Retry([&] { return ::fcntl(file.log_.get(), F_GETFL); });
    if (flags < 0) return OARLOCK_FAIL("fcntl", errno, "the log's descriptor %d", options.fd);
    if ((flags & O_ACCMODE) == O_RDONLY || (flags & O_APPEND) == 0)
      return OARLOCK_FAIL("check", EINVAL, "the log's descriptor %d must be open for appending", options.fd);
    if ((flags & O_ACCMODE) == O_WRONLY) {
      char link[32];
      (void)std::snprintf(link, sizeof(link), "/proc/self/fd/%d", file.log_.get());
      file.reading_.Reset(Retry([&] { return ::open(link, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY); }));
      if (!file.reading_.valid())
        return OARLOCK_FAIL("open", errno, "the log's descriptor %d for reading its end", options.fd);
    }
  } else {
    file.log_ = OARLOCK_TRY(OpenChecked(options.path, options.mode, O_RDWR | kOpenFlags));
  }
  if (!options.head_path.empty())
    file.head_ = OARLOCK_TRY(OpenChecked(options.head_path, options.mode, O_RDWR | (kOpenFlags & ~O_APPEND)));
  return file;
}

Result<LogEnd> LogFile::ReadEnd() const { return ReadLogEnd(reading_.valid() ? reading_.get() : log_.get()); }

Result<Head> LogFile::ReadHead() const {
  if (!head_.valid()) return OARLOCK_FAIL("read", ENOENT, "the head");
  char text[kHeadSize + 1];
  const ssize_t got = Retry([&] { return ::pread(head_.get(), text, sizeof(text), 0); });
  if (got < 0) return OARLOCK_FAIL("read", errno, "the head");
  if (got == 0) return OARLOCK_FAIL("read", ENOENT, "the head is empty");
  const std::optional<Head> head = ParseHead({text, static_cast<size_t>(got)});
  if (!head) return OARLOCK_FAIL("read", EBADMSG, "the head");
  return *head;
}

LogFile::Appended LogFile::Append(const char* bytes, size_t size) const noexcept {
  // A short write can be a signal's doing; only the next one says whether there is no more room.
  Appended result;
  while (result.bytes < size) {
    const ssize_t written = kernel::AppendLog(log_.get(), bytes + result.bytes, size - result.bytes);
    if (written <= 0) {
      result.error = written < 0 ? static_cast<int>(-written) : EIO;
      break;
    }
    result.bytes += static_cast<size_t>(written);
  }
  return result;
}

int LogFile::CutTo(uint64_t size) const noexcept {
  return Retry([&] { return ::ftruncate(log_.get(), static_cast<off_t>(size)); }) == 0 ? 0 : -errno;
}

int LogFile::WriteHead(const Head& head) const noexcept {
  if (!head_.valid()) return 0;
  const auto text = FormatHead(head);
  return kernel::WriteHead(head_.get(), text.data(), text.size());
}

int LogFile::Look(Facts* facts) const noexcept {
  struct stat status{};
  if (::fstat(log_.get(), &status) != 0) return -errno;
  facts->mode = status.st_mode & kModeBits;
  facts->uid = status.st_uid;
  facts->gid = status.st_gid;
  facts->size = static_cast<uint64_t>(status.st_size);
  facts->links = status.st_nlink;
  facts->device = status.st_dev;
  facts->inode = status.st_ino;
  return 0;
}

bool LogFile::EndsInNewline(uint64_t size) const noexcept {
  if (size == 0) return true;
  char last = '\n';
  const int fd = reading_.valid() ? reading_.get() : log_.get();
  const ssize_t got = Retry([&] { return ::pread(fd, &last, 1, static_cast<off_t>(size - 1)); });
  return got != 1 || last == '\n';
}

int LogFile::Reserve(uint64_t size, uint64_t bytes) const noexcept {
  const int result = Retry([&] {
    return ::fallocate(log_.get(), FALLOC_FL_KEEP_SIZE, static_cast<off_t>(size), static_cast<off_t>(bytes));
  });
  return result == 0 ? 0 : -errno;
}

}  // namespace oarlock::audit
