// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "notif/base/result.h"
#include "notif/base/unique_fd.h"

namespace oarlock::supervisor {

// A process that reads the memory of one session's tasks and duplicates their descriptors, for sessions whose files can make
// whoever touches them wait for ever, where not even SIGKILL helps: a page of a FUSE file, its last close. What hangs is that
// process, which holds nothing but its end of a socket; a thread of ours would keep every listener of the node open.
//
// Owned by its session and used on that session's shard's thread. It ends by itself once this object is gone, and is never
// waited for: whoever uses this ignores the ends of its children (SA_NOCLDWAIT).
class Reader {
 public:
  // `program` is oarlock-private.
  [[nodiscard]] static Result<std::unique_ptr<Reader>> Start(const std::string& program);
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  // As kernel::ReadCaller, and -ETIMEDOUT where it hangs: after kHangNs, and from then on at once until the answer has come.
  [[nodiscard]] int Read(pid_t tid, uint64_t pointer, void* to, size_t size);
  // As kernel::OpenTask and PinDescriptor for a socket; -ENOTSOCK or -EBADF (O_PATH) for what is none, which never gets here.
  [[nodiscard]] int Pin(pid_t tid, int fd);
  // A socket that came too late, for the caller to close; invalid as a rule.
  [[nodiscard]] UniqueFd TakeLate() noexcept { return std::move(late_); }
  // The connection, which may hold such a socket too: before the end, for the caller to close.
  [[nodiscard]] UniqueFd TakeConnection() noexcept { return std::move(socket_); }

 private:
  struct Request;
  struct Reply;
  explicit Reader(std::string program) : program_(std::move(program)) {}
  [[nodiscard]] Status Spawn();
  [[nodiscard]] int Ask(Request& request, Reply* reply, UniqueFd* pinned);
  [[nodiscard]] int Await(uint64_t sequence, uint64_t wait_ns, Reply* reply, UniqueFd* pinned);
  friend int ServeReads(int socket);

  std::string program_;
  UniqueFd socket_, late_;
  uint64_t sequence_ = 0;
  uint64_t hanging_ = 0;        // the request that has not been answered; 0: none
  uint64_t restarted_ns_ = 0;
};

// The reader's own side: serves requests until the other end has gone. The descriptor is kReaderSocket.
inline constexpr int kReaderSocket = 3;
inline constexpr const char* kReaderVerb = "reader";
[[nodiscard]] int ServeReads(int socket);

}  // namespace oarlock::supervisor
