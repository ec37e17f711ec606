// SPDX-License-Identifier: Apache-2.0
#include "notif/kernel.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "notif/abi/process.h"
#include "notif/base/check.h"

namespace oarlock::kernel {
namespace {

// The call's result, or -errno; EINTR is tried again.
template <typename Call>
auto Retry(Call call) noexcept {
  for (;;) {
    const auto result = call();
    if (result >= 0) return result;
    if (errno != EINTR) return static_cast<decltype(result)>(-errno);
  }
}

uint64_t Now(clockid_t clock) noexcept {
  timespec now{};
  OARLOCK_CHECK(::clock_gettime(clock, &now) == 0);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

int Ioctl(int fd, unsigned long request, void* argument) noexcept {
  return Retry([=] { return ::ioctl(fd, request, argument); });
}

// A tagged pointer (arm64 top byte ignore, x86 linear address masking) as the kernel's own copy would take it.
uint64_t Untag(uint64_t address) noexcept {
#if defined(__aarch64__)
  return address & 0x00ff'ffff'ffff'ffffULL;
#else
  return address & ~(0x3fULL << 57);
#endif
}

int TransferOnce(pid_t tid, uint64_t address, void* buffer, size_t size, bool write) noexcept {
  iovec local{buffer, size};
  iovec remote{reinterpret_cast<void*>(address), size};  // NOLINT(performance-no-int-to-ptr): another process's
  const ssize_t moved = Retry([&] {
    return write ? ::process_vm_writev(tid, &local, 1, &remote, 1, 0)
                 : ::process_vm_readv(tid, &local, 1, &remote, 1, 0);
  });
  if (moved < 0) return static_cast<int>(moved);
  return static_cast<size_t>(moved) == size ? 0 : -EFAULT;
}

int Transfer(pid_t tid, uint64_t address, void* buffer, size_t size, bool write) noexcept {
  const int result = TransferOnce(tid, address, buffer, size, write);
  if (result != -EFAULT || Untag(address) == address) return result;
  return TransferOnce(tid, Untag(address), buffer, size, write);
}

// Reads a whole small file of /proc. The bytes read, or -errno.
int ReadProc(int fd, char* buffer, size_t size) noexcept {
  const ssize_t got = Retry([=] { return ::pread(fd, buffer, size, 0); });
  return static_cast<int>(got);
}

int OpenProc(pid_t tid, const char* name) noexcept {
  char path[64];
  (void)std::snprintf(path, sizeof(path), "/proc/%d/%s", tid, name);
  return Retry([&] { return ::open(path, O_RDONLY | O_CLOEXEC); });
}

// The number behind "Key:\t" in a status text, in `base`. False where the key is absent.
bool Field(std::string_view text, std::string_view key, int base, uint64_t* value) noexcept {
  const size_t at = text.find(key);
  if (at == std::string_view::npos) return false;
  char number[24] = {};
  const std::string_view rest = text.substr(at + key.size(), sizeof(number) - 1);
  std::memcpy(number, rest.data(), rest.size());
  *value = std::strtoull(number, nullptr, base);
  return true;
}

// This thread's identity for files, another's while the object lives. Of all its ids this one alone neither lets the other signal us
// (E-46) nor takes what else we may do. Raw calls: they concern this thread.
class FileIdentity {
 public:
  FileIdentity(uint32_t uid, uint32_t gid) noexcept : uid_(::geteuid()), gid_(::getegid()), uid_changed_(uid != uid_), gid_changed_(gid != gid_) {
    if (gid_changed_) (void)::syscall(SYS_setfsgid, gid);
    if (uid_changed_) (void)::syscall(SYS_setfsuid, uid);
  }
  ~FileIdentity() {
    // They return what stood before, whether they did it or not; an id that nobody has changes nothing.
    if (uid_changed_) {
      (void)::syscall(SYS_setfsuid, uid_);
      OARLOCK_CHECK(static_cast<uid_t>(::syscall(SYS_setfsuid, -1)) == uid_);
    }
    if (gid_changed_) {
      (void)::syscall(SYS_setfsgid, gid_);
      OARLOCK_CHECK(static_cast<gid_t>(::syscall(SYS_setfsgid, -1)) == gid_);
    }
  }
  FileIdentity(const FileIdentity&) = delete;
  FileIdentity& operator=(const FileIdentity&) = delete;

 private:
  uid_t uid_;
  gid_t gid_;
  bool uid_changed_, gid_changed_;
};

// Whether pidfds of threads exist (6.9): asked once, answered by trying.
bool HasThreadPidfds() noexcept {
  static std::atomic<int> known{-1};
  int answer = known.load(std::memory_order_relaxed);
  if (answer < 0) {
    const UniqueFd fd(static_cast<int>(::syscall(abi::kSysPidfdOpen, ::gettid(), abi::kPidfdThread)));
    answer = fd.valid() ? 1 : 0;
    known.store(answer, std::memory_order_relaxed);
  }
  return answer == 1;
}

}  // namespace

uint64_t MonotonicNs() noexcept { return Now(CLOCK_MONOTONIC); }
uint64_t RealtimeUs() noexcept { return Now(CLOCK_REALTIME) / 1000; }

int Receive(int listener, abi::SeccompNotif* notification) noexcept {
  *notification = {};  // the kernel wants the buffer zeroed (EINVAL)
  // Not retried on EINTR inside a loop that would block: RECV waits when the queue has emptied meanwhile.
  const int result = ::ioctl(listener, abi::kIoctlNotifRecv, notification);
  return result == 0 ? 0 : -errno;
}

int Reply(int listener, uint64_t id, int64_t value, int error) noexcept {
  OARLOCK_CHECK(error <= 0, "a positive errno %d would read as success", error);
  OARLOCK_CHECK(error == 0 || value == 0);
  abi::SeccompNotifResponse response{id, value, error, 0};
  return Ioctl(listener, abi::kIoctlNotifSend, &response);
}

int ReplyContinue(int listener, uint64_t id) noexcept {
  abi::SeccompNotifResponse response{id, 0, 0, abi::kNotifFlagContinue};
  return Ioctl(listener, abi::kIoctlNotifSend, &response);
}

int IdValid(int listener, uint64_t id) noexcept { return Ioctl(listener, abi::kIoctlNotifIdValid, &id); }

int InstallDescriptor(int listener, uint64_t id, int fd, bool close_on_exec) noexcept {
  abi::SeccompNotifAddFd add{.id = id,
                             .flags = 0,
                             .source_fd = static_cast<uint32_t>(fd),
                             .new_fd = 0,
                             .new_fd_flags = close_on_exec ? static_cast<uint32_t>(O_CLOEXEC) : 0};
  return Ioctl(listener, abi::kIoctlNotifAddFd, &add);
}

int EnableSyncWakeUp(int listener) noexcept {
  return Retry([=] { return ::ioctl(listener, abi::kIoctlNotifSetFlags, abi::kNotifFdSyncWakeUp); });
}

int ReadCaller(pid_t tid, uint64_t address, void* buffer, size_t size) noexcept {
  return Transfer(tid, address, buffer, size, false);
}

int WriteCaller(pid_t tid, uint64_t address, const void* buffer, size_t size) noexcept {
  return Transfer(tid, address, const_cast<void*>(buffer), size, true);
}

int OpenTask(pid_t tid) noexcept {
  if (HasThreadPidfds())
    return static_cast<int>(Retry([=] { return ::syscall(abi::kSysPidfdOpen, tid, abi::kPidfdThread); }));
  // Below 6.9 only leaders have pidfds. The filter of such kernels keeps the threads' descriptor tables the same.
  const UniqueFd status(OpenTaskStatus(tid));
  if (!status.valid()) return -ESRCH;
  TaskSignals task;
  if (const int error = ReadTaskSignals(status.get(), &task); error < 0) return error;
  return static_cast<int>(Retry([&] { return ::syscall(abi::kSysPidfdOpen, task.tgid, 0U); }));
}

int PinDescriptor(int pidfd, int fd) noexcept {
  return static_cast<int>(Retry([=] { return ::syscall(abi::kSysPidfdGetfd, pidfd, fd, 0U); }));
}

int OpenTaskStatus(pid_t tid) noexcept {
  const int fd = OpenProc(tid, "status");
  return fd == -ENOENT ? -ESRCH : fd;
}

int ReadTaskSignals(int status_fd, TaskSignals* signals) noexcept {
  char buffer[4096];
  const int size = ReadProc(status_fd, buffer, sizeof(buffer));
  if (size < 0) return size;
  const std::string_view text(buffer, static_cast<size_t>(size));
  uint64_t tgid = 0, threads = 0;
  const bool whole = Field(text, "\nTgid:\t", 10, &tgid) && Field(text, "\nThreads:\t", 10, &threads) &&
                     Field(text, "\nSigPnd:\t", 16, &signals->thread_pending) &&
                     Field(text, "\nShdPnd:\t", 16, &signals->shared_pending) &&
                     Field(text, "\nSigBlk:\t", 16, &signals->blocked) &&
                     Field(text, "\nSigIgn:\t", 16, &signals->ignored) &&
                     Field(text, "\nSigCgt:\t", 16, &signals->caught);
  if (!whole) return -ESRCH;
  signals->tgid = static_cast<pid_t>(tgid);
  signals->threads = static_cast<int>(threads);
  // The name can hold a newline only as \n (the kernel escapes it), so the first "\nState:" is the real one.
  const size_t state = text.find("\nState:\t");
  signals->state = state == std::string_view::npos ? '?' : text[state + 8];
  return 0;
}

int LocateTask(pid_t tid, TaskPlace* place) noexcept {
  *place = {};
  const UniqueFd fd(OpenTaskStatus(tid));
  if (!fd.valid()) return fd.get();
  char buffer[4096];
  const int size = ReadProc(fd.get(), buffer, sizeof(buffer));
  if (size < 0) return size;
  const std::string_view text(buffer, static_cast<size_t>(size));
  uint64_t tgid = 0, filters = 0;
  if (!Field(text, "\nTgid:\t", 10, &tgid) || !Field(text, "\nSeccomp_filters:\t", 10, &filters)) return -ESRCH;
  place->tgid = static_cast<pid_t>(tgid);
  place->seccomp_filters = static_cast<int>(filters);
  // "NSpid:\there\tbelow\tfurther below". Where the kernel does not say, it has no pid namespaces.
  if (const size_t at = text.find("\nNSpid:\t"); at != std::string_view::npos) {
    const std::string_view line = text.substr(at + 8, text.find('\n', at + 8) - (at + 8));
    place->nested = line.find('\t') != std::string_view::npos;
  }
  return 0;
}

bool InOneProcess(pid_t tid, pid_t other) noexcept {
  char path[64];
  (void)std::snprintf(path, sizeof(path), "/proc/%d/task/%d", other, tid);
  return ::access(path, F_OK) == 0;
}

int GroupOf(pid_t pid) noexcept {
  const pid_t group = ::getpgid(pid);
  return group < 0 ? -errno : group;
}

uint64_t BootTicks() noexcept {
  static const auto kPerSecond = static_cast<uint64_t>(::sysconf(_SC_CLK_TCK));
  return Now(CLOCK_BOOTTIME) / (1'000'000'000 / kPerSecond);
}

int OpenProcesses() noexcept {
  return Retry([] { return ::open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC); });
}

int ListProcesses(int fd, std::span<pid_t> pids) noexcept {
  struct Entry {
    uint64_t inode;
    int64_t offset;
    uint16_t size;
    uint8_t type;
    char name[];
  };
  OARLOCK_CHECK(!pids.empty());
  alignas(Entry) char buffer[4096];
  // The shortest entry takes 24 bytes, so that all of a buffer's fit.
  const size_t room = std::min(sizeof(buffer), pids.size() * 24);
  for (;;) {
    const long got = Retry([&] { return ::syscall(SYS_getdents64, fd, buffer, room); });
    if (got <= 0) return static_cast<int>(got);
    int count = 0;
    for (long at = 0; at < got;) {
      const auto* entry = reinterpret_cast<const Entry*>(buffer + at);
      at += entry->size;
      if (entry->name[0] >= '1' && entry->name[0] <= '9') pids[static_cast<size_t>(count++)] = static_cast<pid_t>(std::strtol(entry->name, nullptr, 10));
    }
    if (count > 0) return count;
  }
}

int ReadLineage(pid_t pid, Lineage* lineage) noexcept {
  *lineage = {};
  const UniqueFd fd(OpenProc(pid, "stat"));
  if (!fd.valid()) return fd.get() == -ENOENT ? -ESRCH : fd.get();
  char buffer[1024];
  const int size = ReadProc(fd.get(), buffer, sizeof(buffer) - 1);
  if (size < 0) return size;
  buffer[size] = '\0';
  // Fields 4, 6 and 22, counted from behind the last ')': the name in field 2 may hold anything.
  const char* at = std::strrchr(buffer, ')');
  for (int field = 2; at != nullptr && field < 22; ++field) {
    at = std::strchr(at + 1, ' ');
    if (at == nullptr) break;
    const auto number = static_cast<pid_t>(std::strtol(at + 1, nullptr, 10));
    if (field == 3) lineage->parent = number;
    if (field == 5) lineage->session = number;
  }
  if (at == nullptr) return -ESRCH;
  lineage->start_ticks = std::strtoull(at + 1, nullptr, 10);
  return 0;
}

int DescribeTask(pid_t tid, TaskDescription* description) noexcept {
  *description = {};
  char buffer[4096];
  uint64_t value = 0;
  {
    const UniqueFd fd(OpenProc(tid, "status"));
    if (!fd.valid()) return fd.get() == -ENOENT ? -ESRCH : fd.get();
    const int size = ReadProc(fd.get(), buffer, sizeof(buffer));
    if (size < 0) return size;
    const std::string_view text(buffer, static_cast<size_t>(size));
    if (Field(text, "\nTgid:\t", 10, &value)) description->pid = static_cast<pid_t>(value);
    // "Uid:\treal\teffective\t..."
    if (const size_t at = text.find("\nUid:\t"); at != std::string_view::npos)
      if (const size_t tab = text.find('\t', at + 6); tab != std::string_view::npos)
        description->uid = static_cast<uint32_t>(std::strtoul(text.data() + tab + 1, nullptr, 10));
  }
  {
    const UniqueFd fd(OpenProc(tid, "comm"));
    if (fd.valid()) {
      int size = ReadProc(fd.get(), description->name, sizeof(description->name));
      if (size > 0 && description->name[size - 1] == '\n') --size;
      description->name_size = static_cast<uint8_t>(size > 0 ? size : 0);
    }
  }
  Lineage lineage;
  (void)ReadLineage(description->pid, &lineage);
  description->start_ticks = lineage.start_ticks;
  char link[64];
  (void)std::snprintf(link, sizeof(link), "/proc/%d/exe", description->pid);
  const ssize_t size = ::readlink(link, description->path, sizeof(description->path));
  description->path_size = static_cast<uint16_t>(size > 0 ? size : 0);
  description->path_cut = size == static_cast<ssize_t>(sizeof(description->path));
  return 0;
}

int GetSocketInt(int fd, int level, int name, int* value) noexcept {
  socklen_t size = sizeof(*value);
  return Retry([&] { return ::getsockopt(fd, level, name, value, &size); });
}

int GetSocketTimeNs(int fd, int level, int name, uint64_t* ns) noexcept {
  timeval time{};
  socklen_t size = sizeof(time);
  const int result = Retry([&] { return ::getsockopt(fd, level, name, &time, &size); });
  *ns = static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(time.tv_usec) * 1000;
  return result;
}

int GetNetnsCookie(int fd, uint64_t* cookie) noexcept {
  socklen_t size = sizeof(*cookie);
  return Retry([&] { return ::getsockopt(fd, SOL_SOCKET, abi::kSoNetnsCookie, cookie, &size); });
}

int GetLocalAddress(int fd, sockaddr_storage* address, socklen_t* size) noexcept {
  *size = sizeof(*address);
  return Retry([&] { return ::getsockname(fd, reinterpret_cast<sockaddr*>(address), size); });
}

int GetPeerAddress(int fd, sockaddr_storage* address, socklen_t* size) noexcept {
  *size = sizeof(*address);
  return Retry([&] { return ::getpeername(fd, reinterpret_cast<sockaddr*>(address), size); });
}

int SetLinger(int fd, bool on, int seconds) noexcept {
  const linger value{on ? 1 : 0, seconds};
  return Retry([&] { return ::setsockopt(fd, SOL_SOCKET, SO_LINGER, &value, sizeof(value)); });
}

int GetFileFlags(int fd) noexcept {
  return Retry([=] { return ::fcntl(fd, F_GETFL); });
}

void Close(int fd) noexcept { (void)::close(fd); }

bool HasNoexecMemory() noexcept {
  static std::atomic<int> known{-1};
  int answer = known.load(std::memory_order_relaxed);
  if (answer < 0) {
    const UniqueFd fd(static_cast<int>(Retry([] { return ::syscall(SYS_memfd_create, "", abi::kMfdCloexec | abi::kMfdNoexecSeal); })));
    // A shortage proves nothing, and is gone at the next question.
    if (!fd.valid() && fd.get() != -EINVAL && fd.get() != -ENOSYS) return true;
    answer = fd.valid() ? 1 : 0;
    known.store(answer, std::memory_order_relaxed);
  }
  return answer == 1;
}

int MakeMemory(const char* name, unsigned flags, uint32_t uid, uint32_t gid) noexcept {
  if (!HasNoexecMemory()) return -ENOSYS;
  UniqueFd fd;
  {
    const FileIdentity identity(uid, gid);
    fd.Reset(static_cast<int>(
        Retry([=] { return ::syscall(SYS_memfd_create, name, flags | abi::kMfdCloexec | abi::kMfdNoexecSeal); })));
  }
  if (!fd.valid()) return fd.get();
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0 || status.st_uid != uid || status.st_gid != gid || (status.st_mode & 0111) != 0) return -EPERM;
  // MFD_NOEXEC_SEAL implies MFD_ALLOW_SEALING. Who asked for neither may rely on that nobody can seal it.
  if ((flags & (abi::kMfdAllowSealing | abi::kMfdNoexecSeal)) == 0 && ::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SEAL) != 0) return -errno;
  return fd.Release();
}

ssize_t AppendLog(int fd, const void* bytes, size_t size) noexcept {
  return Retry([=] { return ::write(fd, bytes, size); });
}

int WriteHead(int fd, const void* bytes, size_t size) noexcept {
  const ssize_t written = Retry([=] { return ::pwrite(fd, bytes, size, 0); });
  if (written < 0) return static_cast<int>(written);
  return static_cast<size_t>(written) == size ? 0 : -EIO;
}

int SyncLog(int fd) noexcept {
  return Retry([=] { return ::fdatasync(fd); });
}

}  // namespace oarlock::kernel
