// SPDX-License-Identifier: Apache-2.0
// A library that somebody puts before a program: it writes down which programs it got into. As LD_AUDIT it
// does the same.
#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

extern "C" unsigned la_version(unsigned version);
extern "C" unsigned la_version(unsigned version) { return version; }

__attribute__((constructor)) static void WriteDown() {
  const char* place = getenv("PRELOAD_MARK");
  if (place == nullptr) return;
  char program[4096];
  const ssize_t size = readlink("/proc/self/exe", program, sizeof(program) - 1);
  const int fd = open(place, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
  if (size <= 0 || fd < 0) return;
  program[size] = '\n';
  (void)!write(fd, program, static_cast<size_t>(size) + 1);
  close(fd);
}
