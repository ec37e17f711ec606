// SPDX-License-Identifier: Apache-2.0
// oarlock-bench-server: the endpoints of the measured connects. One thread for each; accepts, reads one byte, resets, counts.
//   oarlock-bench-server /SOCKET
// Prints "GRANTED FORBIDDEN", two TCP ports of 127.0.0.1. For each line on stdin: "n n n", the connections so far to the granted
// port, the forbidden port and the unix socket. Ends with its stdin.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <thread>

namespace {

std::atomic<long> counts[3];

void Serve(int listening, std::atomic<long>* count) {
  for (;;) {
    const int fd = accept4(listening, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) continue;
    count->fetch_add(1);
    char byte = 0;
    (void)!read(fd, &byte, 1);
    const linger reset{1, 0};
    (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
    close(fd);
  }
}

int ListenTcp(int* port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(name);
  if (bind(fd, reinterpret_cast<const sockaddr*>(&name), size) != 0 || listen(fd, 128) != 0) return -1;
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&name), &size) != 0) return -1;
  *port = ntohs(name.sin_port);
  return fd;
}

int ListenUnix(const char* path) {
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  std::strncpy(name.sun_path, path, sizeof(name.sun_path) - 1);
  return bind(fd, reinterpret_cast<const sockaddr*>(&name), sizeof(name)) == 0 && listen(fd, 128) == 0 ? fd : -1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  int granted = 0, forbidden = 0;
  const int fds[3] = {ListenTcp(&granted), ListenTcp(&forbidden), ListenUnix(argv[1])};
  for (int i = 0; i < 3; ++i) {
    if (fds[i] < 0) return 1;
    std::thread(Serve, fds[i], &counts[i]).detach();
  }
  std::printf("%d %d\n", granted, forbidden);
  (void)std::fflush(stdout);
  for (int c = 0; (c = std::getchar()) != EOF;) {
    if (c != '\n') continue;
    std::printf("%ld %ld %ld\n", counts[0].load(), counts[1].load(), counts[2].load());
    (void)std::fflush(stdout);
  }
  _exit(0);
}
