// SPDX-License-Identifier: Apache-2.0
// The launcher on a kernel whose Landlock is older: OARLOCK_TEST_ABI says how old (0: none). All else is the product's, so the domain has no
// scope for signals and the filter is that of such a kernel.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "child/landlock.h"
#include "child/launcher.h"

// Linked with --wrap: the launcher's question comes here.
oarlock::Result<int> Asked() asm("__wrap__ZN7oarlock5child11LandlockAbiEv");
oarlock::Result<int> Real() asm("__real__ZN7oarlock5child11LandlockAbiEv");

oarlock::Result<int> Asked() {
  auto abi = Real();
  const char* most = ::getenv("OARLOCK_TEST_ABI");
  if (!abi || most == nullptr) return abi;
  if (std::strcmp(most, "0") == 0) return OARLOCK_FAIL("landlock_create_ruleset", ENOSYS, "(a test has taken it away)");
  return std::min(*abi, ::atoi(most));
}

int main(int argc, char** argv, char** environment) {
  if (argc < 2 || std::strcmp(argv[1], "sandbox-exec") != 0) return 64;
  ::_exit(oarlock::child::Launch(argc - 2, argv + 2, environment));
}
