// SPDX-License-Identifier: Apache-2.0
#include <sys/ioctl.h>
#include <termios.h>

#include "tests/bypass/inside.h"
#include "tests/bypass/outside.h"

namespace bypass {
std::string KeyArrived(Outside& outside, const std::string& question) {
  // The terminal gives its input to whoever reads it: to us, from another descriptor of the same terminal.
  const std::string part = question.substr(question.find(' ') + 1);
  int waiting = 0;
  usleep(20'000);
  if (ioctl(outside.terminal_slave, FIONREAD, &waiting) == 0 && waiting > 0) outside.Note(part);
  (void)tcflush(outside.terminal_slave, TCIFLUSH);
  return "";
}
std::span<const Row> ProcessRows() { return {}; }
}
