// SPDX-License-Identifier: Apache-2.0
// oarlock-calls: prints docs/SYSCALLS.md, or writes it to the file that is its argument.
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iostream>

#include "notif/filter/page.h"

int main(int argc, char** argv) {
  if (argc > 2) {
    std::cerr << "usage: oarlock-calls [FILE]\n";
    return 64;
  }
  if (argc < 2) {
    std::cout << oarlock::filter::SyscallsPage() << std::flush;
    return std::cout ? 0 : 1;
  }
  std::ofstream out(argv[1], std::ios::trunc);
  out << oarlock::filter::SyscallsPage();
  out.close();
  if (out) return 0;
  std::cerr << "oarlock-calls: cannot write " << argv[1] << ": " << std::strerror(errno) << '\n';
  return 1;
}
