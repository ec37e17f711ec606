// SPDX-License-Identifier: Apache-2.0
// bin/oarlock: a small static front. `sandbox-exec` happens in it; every other verb is oarlock-cli's, which may take the time to
// load its libraries.
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "child/launcher.h"
#include "notif/base/places.h"

int main(int argc, char** argv, char** environment) {
  if (argc >= 2 && std::strcmp(argv[1], "sandbox-exec") == 0)
    // A launch that stopped may be half confined: what libraries do at exit has no place there. stderr is not buffered.
    ::_exit(oarlock::child::Launch(argc - 2, argv + 2, environment));
  const auto cli = oarlock::FindProgram("oarlock-cli");
  if (!cli) {
    (void)std::fprintf(stderr, "oarlock: %s\n", cli.error().Message().c_str());
    return 70;
  }
  ::execve(cli->c_str(), argv, environment);
  (void)std::fprintf(stderr, "oarlock: cannot run %s: %s\n", cli->c_str(), oarlock::ErrnoName(errno));
  return 70;
}
