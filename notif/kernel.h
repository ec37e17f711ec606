// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/socket.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "notif/abi/seccomp.h"
#include "notif/base/unique_fd.h"

// The one seam between the supervisor and the outside: every question that a shard or the log's writer asks of the kernel
// passes through these functions and notif/ring.h. A link-time seam: the product links notif/kernel.cc and notif/ring.cc,
// tests/sim links a simulated kernel with a seeded scheduler. No virtual call, no template in the loop.
//
// Results are plain ints, zero or positive on success and -errno on failure, never an exception or heap memory: they are
// used on the path between notification and reply. EINTR is retried inside. Any thread, unless said otherwise.
namespace oarlock::kernel {

// CLOCK_MONOTONIC in nanoseconds; CLOCK_REALTIME in microseconds since the epoch.
[[nodiscard]] uint64_t MonotonicNs() noexcept;
[[nodiscard]] uint64_t RealtimeUs() noexcept;

// --- the listener ---------------------------------------------------------------------------------------------------
// Call only after a poll completion said POLLIN, once per completion and with no poll armed: RECV blocks even on an
// O_NONBLOCK listener (up to 7.3). -ENOENT: the caller is gone, a normal event.
[[nodiscard]] int Receive(int listener, abi::SeccompNotif* notification) noexcept;
// Answers a call. `error` <= 0 is asserted: a positive value would read as success. -ENOENT: the caller is gone, normal.
[[nodiscard]] int Reply(int listener, uint64_t id, int64_t value, int error) noexcept;
// Lets the kernel run the call itself. Only for calls that are judged by registers alone; never connect or bind.
[[nodiscard]] int ReplyContinue(int listener, uint64_t id) noexcept;
// 0 while the caller still waits for this id, -ENOENT after.
[[nodiscard]] int IdValid(int listener, uint64_t id) noexcept;
// Gives the caller a copy of `fd`, and returns its number there. Waits until the caller's thread has run, so a caller that gets no CPU
// makes it slow. -ENOENT or -ESRCH: the caller is gone; -EMFILE: it is the caller that has no number free.
[[nodiscard]] int InstallDescriptor(int listener, uint64_t id, int fd, bool close_on_exec) noexcept;
// SYNC_WAKE_UP (6.6): halves the round trip. -EINVAL before.
[[nodiscard]] int EnableSyncWakeUp(int listener) noexcept;

// --- the caller -----------------------------------------------------------------------------------------------------
// Reads `size` bytes at `address` of thread `tid`: all of them, or -errno (-EFAULT where a part is unmapped).
[[nodiscard]] int ReadCaller(pid_t tid, uint64_t address, void* buffer, size_t size) noexcept;
// Writes likewise (answers that a call returns through a pointer).
[[nodiscard]] int WriteCaller(pid_t tid, uint64_t address, const void* buffer, size_t size) noexcept;
// A pidfd of the *thread* (PIDFD_THREAD, 6.9), or of its leader below 6.9. -ESRCH where it is gone.
[[nodiscard]] int OpenTask(pid_t tid) noexcept;
// A duplicate of the caller's descriptor, close-on-exec. -ESRCH: the pidfd's task is gone; -EBADF: no such descriptor.
[[nodiscard]] int PinDescriptor(int pidfd, int fd) noexcept;

struct TaskSignals {
  uint64_t thread_pending = 0;   // SigPnd
  uint64_t shared_pending = 0;   // ShdPnd
  uint64_t blocked = 0;          // SigBlk
  uint64_t ignored = 0;          // SigIgn
  uint64_t caught = 0;           // SigCgt
  pid_t tgid = 0;
  int threads = 0;
  char state = '?';              // 'Z' or 'X': dead
};
// /proc/TID/status, opened once and read again at each look (6 us). -errno where the task is gone.
[[nodiscard]] int OpenTaskStatus(pid_t tid) noexcept;
[[nodiscard]] int ReadTaskSignals(int status_fd, TaskSignals* signals) noexcept;

// Whose a task is. -ESRCH: there is none.
struct TaskPlace {
  pid_t tgid = 0;
  int seccomp_filters = 0;
  bool nested = false;  // lives in a pid namespace below ours: the numbers that it names are others there
};
[[nodiscard]] int LocateTask(pid_t tid, TaskPlace* place) noexcept;
// Whether `tid` is a thread of the process that `other` is one of. Takes no descriptor.
[[nodiscard]] bool InOneProcess(pid_t tid, pid_t other) noexcept;
// Where a process comes from, and which of its number it is: /proc/PID/stat fields 4, 6 and 22, the latter in clock ticks since boot.
struct Lineage {
  pid_t parent = 0;
  pid_t session = 0;  // its number is taken by no process while one is in it, but the one that made it
  uint64_t start_ticks = 0;
};
[[nodiscard]] int ReadLineage(pid_t pid, Lineage* lineage) noexcept;
// Its process group, by getpgid(2): of many processes, far cheaper than the above.
[[nodiscard]] int GroupOf(pid_t pid) noexcept;
// Now, in the same ticks.
[[nodiscard]] uint64_t BootTicks() noexcept;
// Every process that we see, in parts: fills `pids` from a descriptor of OpenProcesses. How many, 0 at the end, or -errno.
[[nodiscard]] int OpenProcesses() noexcept;
[[nodiscard]] int ListProcesses(int fd, std::span<pid_t> pids) noexcept;

// What a record says about the process behind a call. Text is raw bytes of the sandbox, cut, not terminated.
struct TaskDescription {
  pid_t pid = 0;                // the thread group's
  uint64_t start_ticks = 0;     // as Lineage
  uint32_t uid = 0;             // effective
  uint8_t name_size = 0;
  uint16_t path_size = 0;
  bool path_cut = false;
  char name[16] = {};
  char path[512] = {};
};
[[nodiscard]] int DescribeTask(pid_t tid, TaskDescription* description) noexcept;

// --- sockets --------------------------------------------------------------------------------------------------------
[[nodiscard]] int GetSocketInt(int fd, int level, int name, int* value) noexcept;
[[nodiscard]] int GetSocketTimeNs(int fd, int level, int name, uint64_t* ns) noexcept;  // 0: no limit
[[nodiscard]] int GetNetnsCookie(int fd, uint64_t* cookie) noexcept;
[[nodiscard]] int GetLocalAddress(int fd, sockaddr_storage* address, socklen_t* size) noexcept;
[[nodiscard]] int GetPeerAddress(int fd, sockaddr_storage* address, socklen_t* size) noexcept;
[[nodiscard]] int SetLinger(int fd, bool on, int seconds) noexcept;
[[nodiscard]] int GetFileFlags(int fd) noexcept;  // F_GETFL
void Close(int fd) noexcept;

// --- credentials ----------------------------------------------------------------------------------------------------
struct Credentials {
  uint32_t uid = 0;
  uint32_t gid = 0;
  std::span<const uint32_t> groups;  // borrowed
};

// --- memory ---------------------------------------------------------------------------------------------------------
// Whether memfd_create(2) knows MFD_NOEXEC_SEAL (6.3); asked once, by trying.
[[nodiscard]] bool HasNoexecMemory() noexcept;
// memfd_create(2) of a file that can never be executed, as this user would have made it: it is the owner. `flags` are the kernel's to
// judge; close-on-exec for us. -ENOSYS where there is no MFD_NOEXEC_SEAL, -EPERM where we cannot act as the user.
[[nodiscard]] int MakeMemory(const char* name, unsigned flags, uint32_t uid, uint32_t gid) noexcept;

// --- the log --------------------------------------------------------------------------------------------------------
// Appends all of `size` bytes to the log (O_APPEND) or nothing that counts: returns the bytes written, which is less than
// `size` on a full disk, or -errno.
[[nodiscard]] ssize_t AppendLog(int fd, const void* bytes, size_t size) noexcept;
[[nodiscard]] int WriteHead(int fd, const void* bytes, size_t size) noexcept;  // whole file at offset 0
[[nodiscard]] int SyncLog(int fd) noexcept;                                    // fdatasync

}  // namespace oarlock::kernel
