// SPDX-License-Identifier: Apache-2.0
// oarlock-cost-client: makes calls by number, so that what each costs its supervisor can be counted.
//   oarlock-cost-client PORT|/SOCKET
// Each line on stdin is "socket N", "connect N" or "turns N" (socket(2), each by a thread of its own); the answer is "done N GOOD", GOOD being how many did what they should.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  sockaddr_storage peer{};
  socklen_t size = 0;
  if (argv[1][0] == '/') {
    auto* name = reinterpret_cast<sockaddr_un*>(&peer);
    name->sun_family = AF_UNIX;
    std::strncpy(name->sun_path, argv[1], sizeof(name->sun_path) - 1);
    size = sizeof(*name);
  } else {
    auto* name = reinterpret_cast<sockaddr_in*>(&peer);
    name->sin_family = AF_INET;
    name->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    name->sin_port = htons(static_cast<uint16_t>(std::strtol(argv[1], nullptr, 10)));
    size = sizeof(*name);
  }
  char word[16];
  for (long count = 0; std::scanf("%15s %ld", word, &count) == 2;) {
    const bool connects = std::strcmp(word, "connect") == 0, turns = std::strcmp(word, "turns") == 0;
    long good = 0;
    for (long i = 0; i < count; ++i) {
      int fd = -1;
      const auto open = [&] { fd = socket(peer.ss_family, SOCK_STREAM, 0); };
      if (turns) std::thread(open).join();
      else open();
      if (fd < 0) continue;
      char byte = 0;
      if (!connects) ++good;
      // The server's greeting shows that it has accepted: no backlog fills.
      else if (connect(fd, reinterpret_cast<const sockaddr*>(&peer), size) == 0 && read(fd, &byte, 1) == 1) ++good;
      close(fd);
    }
    std::printf("done %ld %ld\n", count, good);
    (void)std::fflush(stdout);
  }
  return 0;
}
