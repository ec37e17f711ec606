// SPDX-License-Identifier: Apache-2.0
#include "notif/base/read_text.h"

#include <fcntl.h>
#include <unistd.h>

#include "notif/base/unique_fd.h"

namespace oarlock {

Result<std::string> ReadText(const char* path, size_t limit) {
  UniqueFd fd;
  do fd.Reset(::open(path, O_RDONLY | O_CLOEXEC));
  while (!fd.valid() && errno == EINTR);
  if (!fd.valid()) return OARLOCK_FAIL("open", errno, "'%s'", path);
  std::string text;
  char buffer[4096];
  for (;;) {
    const ssize_t got = ::read(fd.get(), buffer, sizeof(buffer));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return OARLOCK_FAIL("read", errno, "'%s'", path);
    if (got == 0) return text;
    if (text.size() + static_cast<size_t>(got) > limit) return OARLOCK_FAIL("read", EFBIG, "'%s'", path);
    text.append(buffer, static_cast<size_t>(got));
  }
}

}  // namespace oarlock
