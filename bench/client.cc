// SPDX-License-Identifier: Apache-2.0
// oarlock-bench-client: the measured program. The same binary runs bare, under a static filter, under the floor and under
// Oarlock. It first proves that each operation does what it should, then times COUNT of them one by one and prints
// "operation p50 p99 mean" in nanoseconds.
//   oarlock-bench-client OPERATION COUNT [PORT]
//     connect   socket (not timed), connect to 127.0.0.1:PORT (timed), close (not timed)
//     socket    socket(AF_INET, SOCK_STREAM) (timed): the trivial notified call
//     getppid, read, openat, stat   calls that nobody mediates
//     fork      fork, exit and wait
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace {

int64_t Now() {
  timespec now{};
  (void)clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

[[noreturn]] void Wrong(const char* what) {
  std::fprintf(stderr, "oarlock-bench-client: %s is wrong here\n", what);
  std::exit(3);
}

sockaddr_in proxy{};

// One operation, timed; negative where it failed.
int64_t Connect() {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  const int64_t begin = Now();
  const int result = connect(fd, reinterpret_cast<sockaddr*>(&proxy), sizeof(proxy));
  const int64_t end = Now();
  // Reset rather than TIME_WAIT: ports must not run out.
  const linger reset{1, 0};
  (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
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
int64_t Getppid() {
  const int64_t begin = Now();
  const long result = syscall(SYS_getppid);
  const int64_t end = Now();
  return result >= 0 ? end - begin : -1;
}
int64_t Read() {
  static const int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
  char byte = 0;
  const int64_t begin = Now();
  const ssize_t got = read(fd, &byte, 1);
  const int64_t end = Now();
  return got == 1 ? end - begin : -1;
}
int64_t OpenAt() {
  const int64_t begin = Now();
  const int fd = open("/etc/passwd", O_RDONLY | O_CLOEXEC);
  const int64_t end = Now();
  if (fd < 0) return -1;
  close(fd);
  return end - begin;
}
int64_t Stat() {
  struct stat status {};
  const int64_t begin = Now();
  const int result = stat("/etc/passwd", &status);
  const int64_t end = Now();
  return result == 0 ? end - begin : -1;
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
  if (argc < 3) return 2;
  const long count = std::strtol(argv[2], nullptr, 10);
  proxy.sin_family = AF_INET;
  proxy.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  proxy.sin_port = htons(static_cast<uint16_t>(argc > 3 ? std::strtol(argv[3], nullptr, 10) : 0));
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
