// SPDX-License-Identifier: Apache-2.0
// oarlock-toggler: attacks one connect with a second thread. Prints how its connects ended, as "errno count" lines.
//   nonblock PATH ROUNDS      unix connects while O_NONBLOCK of the socket is toggled all the time; SO_SNDTIMEO ends one that
//                             blocks after 5 ms
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <thread>

namespace {

std::atomic<int> toggled = -1;
std::atomic<bool> stop = false;

void Toggle() {
  for (bool on = false; !stop; on = !on) {
    const int fd = toggled;
    if (fd >= 0) (void)fcntl(fd, F_SETFL, on ? O_NONBLOCK : 0);
  }
}

int NonBlock(const char* path, long rounds) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path, sizeof(address.sun_path) - 1);
  std::map<std::string, long> results;
  std::thread toggler(Toggle);
  for (long round = 0; round < rounds; ++round) {
    const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    if (fd < 0) {
      ++results[std::string("socket:") + strerrorname_np(errno)];
      continue;
    }
    const timeval limit{0, 5000};
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
    toggled = fd;
    const int result = connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address));
    const int error = result == 0 ? 0 : errno;
    toggled = -1;
    ++results[error == 0 ? "0" : strerrorname_np(error)];
    close(fd);
  }
  stop = true;
  toggler.join();
  for (const auto& [name, count] : results) printf("%s %ld\n", name.c_str(), count);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 4 && std::strcmp(argv[1], "nonblock") == 0) return NonBlock(argv[2], std::strtol(argv[3], nullptr, 10));
  return 2;
}
