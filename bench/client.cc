// SPDX-License-Identifier: Apache-2.0
// oarlock-bench-client: the measured program. The same binary runs bare, under a static filter, under the floor and under
// Oarlock. It times COUNT operations, each of which must do what it should, and prints "operation p50 p99 mean" in nanoseconds.
//   oarlock-bench-client OPERATION COUNT [PORT|/SOCKET]
//     connect   socket (not timed), connect to 127.0.0.1:PORT or the unix socket (timed), a byte, the peer's end (not timed)
//     socket    socket(AF_INET, SOCK_STREAM) (timed): the trivial notified call
//     getppid, read, openat, stat   calls that nobody mediates, timed sixteen at a time
//     fork      fork, exit and wait
//     true      nothing: what is launched
//     try       one connect; prints its errno
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace {

constexpr int kBatch = 16;  // cheap calls are timed by this many: the clock costs as much as one of them

int64_t Now() {
  timespec now{};
  (void)clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

[[noreturn]] void Wrong(const char* what) {
  std::fprintf(stderr, "oarlock-bench-client: %s is wrong here: %s\n", what, std::strerror(errno));
  std::exit(3);
}

sockaddr_storage peer{};
socklen_t peer_size = 0;

void SetPeer(const char* text) {
  if (text[0] == '/') {
    auto* name = reinterpret_cast<sockaddr_un*>(&peer);
    name->sun_family = AF_UNIX;
    std::strncpy(name->sun_path, text, sizeof(name->sun_path) - 1);
    peer_size = sizeof(*name);
  } else {
    auto* name = reinterpret_cast<sockaddr_in*>(&peer);
    name->sin_family = AF_INET;
    name->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    name->sin_port = htons(static_cast<uint16_t>(std::strtol(text, nullptr, 10)));
    peer_size = sizeof(*name);
  }
}

int ConnectOnce(int fd) { return connect(fd, reinterpret_cast<const sockaddr*>(&peer), peer_size); }

// One sample, timed; negative where it failed.
int64_t Connect() {
  const int fd = socket(peer.ss_family, SOCK_STREAM, 0);
  const int64_t begin = Now();
  const int result = ConnectOnce(fd);
  const int64_t end = Now();
  // The server resets once it has read: no TIME_WAIT, and it sleeps in accept again before the next connect.
  char byte = 0;
  if (result == 0 && write(fd, &byte, 1) == 1) (void)!read(fd, &byte, 1);
  close(fd);
  return result == 0 ? end - begin : -1;
}
int64_t Socket() {
  const int64_t begin = Now();
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  const int64_t end = Now();
  if (fd < 0) return -1;
  close(fd);
  return end - begin;
}

template <typename Call>
int64_t Batch(Call call) {
  const int64_t begin = Now();
  bool good = true;
  for (int i = 0; i < kBatch; ++i) good &= call();
  const int64_t end = Now();
  return good ? (end - begin) / kBatch : -1;
}
int64_t Getppid() {
  return Batch([] { return syscall(SYS_getppid) >= 0; });
}
int64_t Read() {
  static const int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
  return Batch([] {
    char byte = 0;
    return read(fd, &byte, 1) == 1;
  });
}
int64_t OpenAt() {
  int fds[kBatch];
  int used = 0;
  const int64_t time = Batch([&] { return (fds[used++] = open("/etc/passwd", O_RDONLY | O_CLOEXEC)) >= 0; });
  for (const int fd : fds) close(fd);
  return time;
}
int64_t Stat() {
  return Batch([] {
    struct stat status {};
    return stat("/etc/passwd", &status) == 0;
  });
}
int64_t Fork() {
  const int64_t begin = Now();
  const pid_t pid = fork();
  if (pid == 0) _exit(7);
  int status = 0;
  if (pid < 0 || waitpid(pid, &status, 0) != pid || WEXITSTATUS(status) != 7) return -1;
  return Now() - begin;
}

struct Operation {
  const char* name;
  int64_t (*run)();
};
constexpr Operation kOperations[] = {{"connect", Connect}, {"socket", Socket}, {"getppid", Getppid}, {"read", Read},
                                     {"openat", OpenAt},   {"stat", Stat},     {"fork", Fork}};

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::strcmp(argv[1], "true") == 0) return 0;
  if (argc < 3) return 2;
  if (argc > 3) SetPeer(argv[3]);
  if (std::strcmp(argv[1], "try") == 0) {
    const int result = ConnectOnce(socket(peer.ss_family, SOCK_STREAM, 0));
    std::printf("%d\n", result == 0 ? 0 : errno);
    return 0;
  }
  const long count = std::strtol(argv[2], nullptr, 10);
  for (const Operation& operation : kOperations) {
    if (std::strcmp(operation.name, argv[1]) != 0) continue;
    std::vector<int64_t> times;
    times.reserve(static_cast<size_t>(count));
    for (long i = 0; i < count / 10 + 10; ++i)
      if (operation.run() < 0) Wrong(operation.name);
    for (long i = 0; i < count; ++i) {
      const int64_t time = operation.run();
      if (time < 0) Wrong(operation.name);
      times.push_back(time);
    }
    std::ranges::sort(times);
    int64_t sum = 0;
    for (const int64_t time : times) sum += time;
    std::printf("%s %lld %lld %lld\n", operation.name, static_cast<long long>(times[times.size() / 2]),
                static_cast<long long>(times[times.size() * 99 / 100]), static_cast<long long>(sum / count));
    return 0;
  }
  return 2;
}
