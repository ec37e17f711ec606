// SPDX-License-Identifier: Apache-2.0
#include "child/confine.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/personality.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <optional>
#include <string>

#include "notif/base/unique_fd.h"

namespace oarlock::child {

Step CheckSingleThread() {
  DIR* tasks = ::opendir("/proc/self/task");
  if (tasks == nullptr) return Stop(Code::kLandlock, "", std::string("/proc/self/task: ") + ErrnoName(errno) + " (is /proc mounted?)");
  int count = 0;
  while (const dirent* entry = ::readdir(tasks))
    if (entry->d_name[0] != '.') ++count;
  (void)::closedir(tasks);
  if (count != 1) return Stop(Code::kLandlock, "", "the launcher has more than one thread, and the others would stay unconfined");
  return {};
}

Step LeaveTerminal() {
  if (::setsid() < 0) {
    const UniqueFd terminal(::open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC));
    if (terminal.valid()) {
      // A session leader that gives its terminal up hangs up its own foreground group, us included.
      struct sigaction ignore {}, before {};
      ignore.sa_handler = SIG_IGN;
      (void)::sigaction(SIGHUP, &ignore, &before);
      const int result = ::ioctl(terminal.get(), TIOCNOTTY);
      const int error = errno;
      // Where it is blocked it waits all the same, and would end us when the mask is cleared: ignoring it anew discards it.
      (void)::sigaction(SIGHUP, &ignore, nullptr);
      (void)::sigaction(SIGHUP, &before, nullptr);
      if (result != 0) return Stop(Code::kKUnsupported, "/tty", std::string("TIOCNOTTY: ") + ErrnoName(error));
    }
  }
  const UniqueFd terminal(::open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (terminal.valid()) return Stop(Code::kKUnsupported, "/tty", "the controlling terminal is still there after setsid and TIOCNOTTY");
  return {};
}

namespace {

Step SetLimit(__rlimit_resource_t resource, const char* name, rlim_t value, const std::string& pointer) {
  // Not zeros: a call that is made to return 0 without doing anything must not look like one that did.
  constexpr rlimit kUntouched{0x5a5a5a5a, 0x5a5a5a5b};
  rlimit limit = kUntouched;
  if (::getrlimit(resource, &limit) != 0) return Stop(Code::kKUnsupported, pointer, std::string(name) + ": " + ErrnoName(errno));
  const bool read = limit.rlim_cur != kUntouched.rlim_cur || limit.rlim_max != kUntouched.rlim_max;
  // A lower hard limit around us stands; it is the stricter one.
  limit.rlim_cur = limit.rlim_max = std::min(value, limit.rlim_max);
  rlimit now = kUntouched;
  if (::setrlimit(resource, &limit) != 0 || ::getrlimit(resource, &now) != 0)
    return Stop(Code::kKUnsupported, pointer, std::string(name) + ": " + ErrnoName(errno));
  if (!read || now.rlim_cur != limit.rlim_cur || now.rlim_max != limit.rlim_max)
    return Stop(Code::kKUnsupported, pointer, std::string(name) + " did not change although setrlimit said so: something filters us");
  return {};
}

}  // namespace

Step SetLimits(std::optional<int64_t> nofile) {
  if (auto step = SetLimit(RLIMIT_CORE, "RLIMIT_CORE", 0, ""); !step) return step;
  if (nofile) return SetLimit(RLIMIT_NOFILE, "RLIMIT_NOFILE", static_cast<rlim_t>(*nofile), "/limits/nofile");
  return {};
}

Step ResetPersonality() {
  constexpr unsigned long kKept = static_cast<unsigned long>(PER_LINUX32) | static_cast<unsigned long>(UNAME26);
  // Not by personality(2) itself, which a filter around us can answer.
  const auto read = [] {
    std::ifstream file("/proc/self/personality");
    unsigned long value = 0;
    file >> std::hex >> value;
    return file ? std::optional(value) : std::nullopt;
  };
  const auto inherited = read();
  if (!inherited) return Stop(Code::kKUnsupported, "", "/proc/self/personality cannot be read");
  const unsigned long wanted = *inherited & kKept;
  if (*inherited == wanted) return {};
  if (::personality(wanted) == -1) return Stop(Code::kKUnsupported, "", std::string("personality: ") + ErrnoName(errno));
  if (read() != wanted) return Stop(Code::kKUnsupported, "", "the personality stays although the call said otherwise: something filters us");
  return {};
}

Step ResetSignals() {
  sigset_t none, now;
  (void)::sigemptyset(&none);
  (void)::sigfillset(&now);
  if (::sigprocmask(SIG_SETMASK, &none, nullptr) != 0 || ::sigprocmask(SIG_SETMASK, nullptr, &now) != 0)
    return Stop(Code::kKUnsupported, "", std::string("sigprocmask: ") + ErrnoName(errno));
  if (::sigisemptyset(&now) == 0)
    return Stop(Code::kKUnsupported, "", "signals stay blocked although sigprocmask said otherwise: something filters us");
  return {};
}

}  // namespace oarlock::child
