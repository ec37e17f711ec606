// SPDX-License-Identifier: Apache-2.0
// capped-launcher ABI POLICY.json -- /abs/argv0 ...: `oarlock sandbox-exec` as if the kernel's Landlock had this ABI; 0: none.
#include <unistd.h>

#include <cstdlib>

#include "child/landlock.h"
#include "child/launcher.h"

int main(int argc, char** argv, char** environment) {
  if (argc < 2) return 64;
  oarlock::child::CapLandlockAbi(std::atoi(argv[1]));
  ::_exit(oarlock::child::Launch(argc - 2, argv + 2, environment));
}
