// SPDX-License-Identifier: Apache-2.0
// A node supervisor like oarlockd, for which any step counts as a long one: every session is on the move between the fast lane
// and a slow one all the time.
//   lanes-daemon ADMIT CONTROL LOG WINDOW_NS MOVE_NS PARDON_NS
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>

#include <cstdio>
#include <cstdlib>

#include "supervisor/supervisor.h"

using namespace oarlock;              // NOLINT(google-build-using-namespace)
using namespace oarlock::supervisor;  // NOLINT(google-build-using-namespace)

int main(int argc, char** argv) {
  if (argc != 7) return 64;
  (void)::prctl(PR_SET_PDEATHSIG, SIGTERM);
  const auto prepared = PrepareProcess();
  Supervisor::Options options;
  options.log.path = argv[3];
  options.log.head_path = std::string(argv[3]) + ".head";
  options.patience = {.strike_ns = 0,
                      .window_ns = std::strtoull(argv[4], nullptr, 10),
                      .move_ns = std::strtoull(argv[5], nullptr, 10),
                      .pardon_ns = std::strtoull(argv[6], nullptr, 10)};
  options.shards = 2;
  auto admission = ListenUnix(argv[1], SOCK_STREAM, 0600);
  auto control = ListenUnix(argv[2], SOCK_SEQPACKET, 0600);
  auto started = Supervisor::Start(std::move(options));
  if (!prepared || !admission || !control || !started) {
    std::fprintf(stderr, "%s\n", started ? "cannot listen" : started.error().Message().c_str());
    return 1;
  }
  Supervisor& supervisor = **started;
  supervisor.admission().Listen(std::move(*admission));
  supervisor.control().Listen(std::move(*control));
  sigset_t stop;
  (void)::sigemptyset(&stop);
  (void)::sigaddset(&stop, SIGTERM);
  const UniqueFd signals(::signalfd(-1, &stop, SFD_CLOEXEC | SFD_NONBLOCK));
  supervisor.reactor().OnReady(signals.get(), POLLIN, [&](int) { supervisor.reactor().Stop(); });
  std::fprintf(stderr, "ready:\n");
  supervisor.reactor().Run();
  return 0;
}
