// SPDX-License-Identifier: Apache-2.0
#include "supervisor/watchdog.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "notif/base/thread.h"
#include "notif/base/unique_fd.h"
#include "supervisor/limits.h"

namespace oarlock::supervisor {
namespace {

// Asleep, interruptibly: what a signal can end. A thread that runs, or waits for the disk, is left alone.
bool IsAsleep(pid_t tid) {
  char path[64], text[512];
  (void)std::snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
  const UniqueFd fd(::open(path, O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return false;
  const ssize_t got = ::read(fd.get(), text, sizeof(text) - 1);
  if (got <= 0) return false;
  text[got] = '\0';
  const char* name_end = std::strrchr(text, ')');
  return name_end != nullptr && name_end[1] == ' ' && name_end[2] == 'S';
}

}  // namespace

int Watchdog::Signal() noexcept { return SIGRTMIN; }

void Watchdog::UnblockSignal() noexcept {
  sigset_t set;
  (void)::sigemptyset(&set);
  (void)::sigaddset(&set, Signal());
  (void)::pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

Result<std::shared_ptr<Watchdog>> Watchdog::Start() {
  struct sigaction action {};
  action.sa_handler = [](int) {};  // no SA_RESTART: the call that sleeps has to come back
  if (::sigaction(Signal(), &action, nullptr) != 0) return OARLOCK_FAIL("sigaction", errno);
  std::shared_ptr<Watchdog> watchdog(new Watchdog);
  watchdog->thread_ = OARLOCK_TRY(MakeThread([self = watchdog.get()] { self->Run(); }));
  return watchdog;
}

Watchdog::~Watchdog() {
  stopping_ = true;
  Unpark();
  if (thread_.joinable()) thread_.join();
}

void Watchdog::Unpark() noexcept {
  parked_.store(false);
  parked_.notify_one();
}

void Watchdog::Watch(Beat* beat) {
  const std::lock_guard lock(mutex_);
  watched_.push_back({beat, beat->Read()});
}

void Watchdog::Forget(Beat* beat) {
  const std::lock_guard lock(mutex_);
  std::erase_if(watched_, [beat](const Watched& watched) { return watched.beat == beat; });
}

void Watchdog::Run() {
  (void)::prctl(PR_SET_NAME, "oarlock-watch");
  while (!stopping_) {
    const timespec interval{0, kWatchIntervalNs};
    (void)::nanosleep(&interval, nullptr);
    Look();
    if (quiet_ < kQuietLooks || stopping_) continue;
    // Somebody may begin between this and the wait: the last look sees it.
    parked_.store(true);
    quiet_ = 0;
    Look();
    if (quiet_ == 0) parked_.store(false);
    else parked_.wait(true);
    quiet_ = 0;
  }
}

void Watchdog::Look() {
  const std::lock_guard lock(mutex_);
  bool moved = false;
  for (Watched& watched : watched_) {
    const Beat::Reading now = watched.beat->Read();
    const bool same = now == watched.last;
    watched.last = now;
    moved |= !same || now.step() != Beat::Step::kNone;
    const bool endable = now.step() == Beat::Step::kClose || now.step() == Beat::Step::kReceive;
    if (!same || !endable || !IsAsleep(watched.beat->tid())) continue;
    // It may have gone on since the look; then the signal makes some other call return early, and those are repeated.
    watched.beat->NoteInterruption(now.step());
    (void)::syscall(SYS_tgkill, ::getpid(), watched.beat->tid(), Signal());
  }
  quiet_ = moved ? 0 : quiet_ + 1;
}

}  // namespace oarlock::supervisor
