// SPDX-License-Identifier: Apache-2.0
// oarlock-bench-launch: times COUNT rounds of fork, exec and wait of one program, started bare and in other ways in turn.
//   oarlock-bench-launch COUNT [NAME=VALUE...] /PROGRAM ARGS... [--- [NAME=VALUE...] /PROGRAM ARGS...]...
// Prints one line "p50 p99" in nanoseconds for each command, in their order. NAME=VALUE is a command's whole environment.
// What a command leaves behind is waited for, untimed, before the next.
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace {

int64_t Now() {
  timespec now{};
  (void)clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

struct Command {
  std::vector<char*> argv, environment;
  std::vector<int64_t> times;
};

int64_t Once(Command& command) {
  const int64_t begin = Now();
  const pid_t pid = vfork();
  if (pid == 0) {
    execve(command.argv[0], command.argv.data(), command.environment.data());
    _exit(127);
  }
  int status = 0;
  if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0) return -1;
  const int64_t end = Now();
  // The private supervisor's end: ours to wait for, as the subreaper.
  while (waitpid(-1, &status, 0) > 0) continue;
  return end - begin;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  (void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  const long count = std::strtol(argv[1], nullptr, 10);
  std::vector<Command> commands(1);
  for (int i = 2; i < argc; ++i) {
    Command& command = commands.back();
    if (std::strcmp(argv[i], "---") == 0) commands.emplace_back();
    else if (command.argv.empty() && argv[i][0] != '/') command.environment.push_back(argv[i]);
    else command.argv.push_back(argv[i]);
  }
  for (Command& command : commands) {
    command.argv.push_back(nullptr);
    command.environment.push_back(nullptr);
  }
  for (long i = -3; i < count; ++i)
    for (Command& command : commands) {
      const int64_t time = Once(command);
      if (time < 0) {
        std::fprintf(stderr, "oarlock-bench-launch: %s failed\n", command.argv[0]);
        return 3;
      }
      if (i >= 0) command.times.push_back(time);
    }
  for (Command& command : commands) {
    std::ranges::sort(command.times);
    std::printf("%lld %lld\n", static_cast<long long>(command.times[command.times.size() / 2]),
                static_cast<long long>(command.times[command.times.size() * 99 / 100]));
  }
  return 0;
}
