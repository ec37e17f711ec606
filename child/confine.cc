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
#include <cstdlib>
#include <optional>
#include <string>

#include "notif/base/read_text.h"
#include "notif/base/unique_fd.h"

namespace oarlock::child {
namespace {

constexpr size_t kMaxProcBytes = 4096;

}  // namespace

Step CheckSingleThread() {
  DIR* tasks = ::opendir("/proc/self/task");
  if (tasks == nullptr) return Stop(Code::kLandlock, "", std::string("/proc/self/task: ") + ErrnoName(errno) + " (is /proc mounted?)");
  int count = 0;
  errno = 0;
  while (const dirent* entry = ::readdir(tasks))
    if (entry->d_name[0] != '.') ++count;
  const int error = errno;
  (void)::closedir(tasks);
  if (error != 0) return Stop(Code::kLandlock, "", std::string("/proc/self/task cannot be read: ") + ErrnoName(error));
  if (count != 1) return Stop(Code::kLandlock, "", "the launcher has more than one thread, and the others would stay unconfined");
  return {};
}

Step CheckOwnIds() {
  if (::geteuid() == OwnUid() && ::getegid() == OwnGid()) return {};
  return Stop(Code::kIdentity, "", "the kernel gave this process other ids than geteuid and getegid say: something filters us");
}

namespace {

// The number of the controlling terminal, 0 for none. Not by opening /dev/tty, which can fail for many reasons.
std::optional<long> ControllingTerminal() {
  const auto text = ReadText("/proc/self/stat", kMaxProcBytes);
  if (!text) return std::nullopt;
  // Behind the name, which may hold anything: state, parent, group, session, terminal.
  const size_t name = text->rfind(')');
  if (name == std::string::npos) return std::nullopt;
  const char* at = text->c_str() + name + 1;
  while (*at == ' ') ++at;
  if (*at == '\0') return std::nullopt;
  ++at;
  long fields[4];
  for (long& field : fields) {
    char* end = nullptr;
    field = std::strtol(at, &end, 10);
    if (end == at) return std::nullopt;
    at = end;
  }
  return fields[3];
}

}  // namespace

bool SetDisposition(int signal, const struct sigaction& wanted) {
  struct sigaction now {};
  now.sa_handler = SIG_ERR;
  return ::sigaction(signal, &wanted, nullptr) == 0 && ::sigaction(signal, nullptr, &now) == 0 && now.sa_handler == wanted.sa_handler;
}

Step LeaveTerminal() {
  if (::setsid() < 0) {
    // The leader of a group stays where it is, and gives up the terminal alone.
    if (errno != EPERM || ::getpgrp() != ::getpid()) return Stop(Code::kKUnsupported, "/tty", std::string("setsid: ") + ErrnoName(errno));
    const UniqueFd terminal(::open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC));
    if (terminal.valid()) {
      // A session leader that gives its terminal up hangs up its own foreground group, us included.
      struct sigaction ignore {}, before {};
      ignore.sa_handler = SIG_IGN;
      if (::sigaction(SIGHUP, nullptr, &before) != 0 || !SetDisposition(SIGHUP, ignore)) return Stop(Code::kKUnsupported, "/tty", "SIGHUP cannot be ignored");
      const int result = ::ioctl(terminal.get(), TIOCNOTTY);
      const int error = errno;
      // Where it is blocked it waits all the same, and would end us when the mask is cleared: ignoring it anew discards it.
      if (!SetDisposition(SIGHUP, ignore) || !SetDisposition(SIGHUP, before)) return Stop(Code::kKUnsupported, "/tty", "SIGHUP stays ignored");
      if (result != 0) return Stop(Code::kKUnsupported, "/tty", std::string("TIOCNOTTY: ") + ErrnoName(error));
    }
  }
  const auto terminal = ControllingTerminal();
  if (!terminal) return Stop(Code::kKUnsupported, "/tty", "/proc/self/stat, which shows the controlling terminal, cannot be read");
  if (*terminal != 0) return Stop(Code::kKUnsupported, "/tty", "the controlling terminal is still there after setsid and TIOCNOTTY");
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
    const auto text = ReadText("/proc/self/personality", kMaxProcBytes);
    char* end = nullptr;
    const unsigned long value = text ? std::strtoul(text->c_str(), &end, 16) : 0;
    return text && end != text->c_str() ? std::optional(value) : std::nullopt;
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
