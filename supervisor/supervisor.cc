// SPDX-License-Identifier: Apache-2.0
#include "supervisor/supervisor.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <cerrno>

#include "notif/base/check.h"
#include "notif/kernel.h"

namespace oarlock::supervisor {
void Inheritance::Restore() const noexcept {
  for (int signal = 1; signal < NSIG; ++signal) {
    if (signal == SIGKILL || signal == SIGSTOP) continue;
    struct sigaction action {};
    action.sa_handler = ::sigismember(&ignored, signal) == 1 ? SIG_IGN : SIG_DFL;
    (void)::sigaction(signal, &action, nullptr);
  }
  sigset_t none;
  (void)::sigemptyset(&none);
  (void)::sigprocmask(SIG_SETMASK, &none, nullptr);
  (void)::umask(umask);
  (void)::setrlimit(RLIMIT_NOFILE, &files);
  (void)::setrlimit(RLIMIT_NPROC, &processes);
  (void)::setrlimit(RLIMIT_FSIZE, &file_size);
  (void)::setrlimit(RLIMIT_CORE, &core);
}

Result<Inheritance> PrepareProcess() {
  // Before anything is opened: a file of ours that becomes descriptor 2 would be written over by messages.
  for (int fd = 0; fd <= 2; ++fd)
    if (::fcntl(fd, F_GETFD) < 0 && ::open("/dev/null", O_RDWR) != fd)  // NOLINT(android-cloexec-open): as a standard descriptor is
      return OARLOCK_FAIL("open", errno, "/dev/null for descriptor %d", fd);
  Inheritance before;
  (void)::sigemptyset(&before.ignored);
  // Blocked in every thread that is made from here on; who wants one reads it from a signalfd.
  sigset_t all;
  (void)::sigfillset(&all);
  if (::sigprocmask(SIG_SETMASK, &all, nullptr) != 0) return OARLOCK_FAIL("sigprocmask", errno);
  for (int signal = 1; signal < NSIG; ++signal) {
    if (signal == SIGKILL || signal == SIGSTOP) continue;
    struct sigaction action {}, old {};
    // A full file and a closed socket are errnos here; SIGCHLD ignored would take exit codes away.
    action.sa_handler = signal == SIGXFSZ || signal == SIGPIPE ? SIG_IGN : SIG_DFL;
    if (::sigaction(signal, &action, &old) == 0 && old.sa_handler == SIG_IGN) (void)::sigaddset(&before.ignored, signal);
  }
  before.umask = ::umask(077);
  const auto raise = [](__rlimit_resource_t resource, rlimit* old) {
    (void)::getrlimit(resource, old);
    const rlimit limit{old->rlim_max, old->rlim_max};
    (void)::setrlimit(resource, &limit);
  };
  raise(RLIMIT_NOFILE, &before.files);
  raise(RLIMIT_NPROC, &before.processes);
  raise(RLIMIT_FSIZE, &before.file_size);
  if (before.file_size.rlim_max != RLIM_INFINITY && before.file_size.rlim_max < kMinFileSize)
    return OARLOCK_FAIL("getrlimit", EFBIG, "RLIMIT_FSIZE leaves no room for the log: raise its hard limit to 64 MiB");
  (void)::getrlimit(RLIMIT_CORE, &before.core);
  const rlimit no_core{0, before.core.rlim_max};
  (void)::setrlimit(RLIMIT_CORE, &no_core);
  // Nobody of our uid may read our memory or take our descriptors: a listener is the right to answer.
  if (::prctl(PR_SET_DUMPABLE, 0) != 0) return OARLOCK_FAIL("prctl", errno, "PR_SET_DUMPABLE");
  return before;
}

Result<std::unique_ptr<Supervisor>> Supervisor::Start(Options options) {
  std::unique_ptr<Supervisor> self(new Supervisor);
  self->watchdog_ = OARLOCK_TRY(Watchdog::Start());
  self->closer_ = OARLOCK_TRY(Closer::Start(self->watchdog_));
  self->reactor_ = std::make_unique<Reactor>(OARLOCK_TRY(Ring::Make({})));
  self->writer_ = OARLOCK_TRY(audit::Writer::Start(options.log));
  self->lanes_ = OARLOCK_TRY(Lanes::Start({.shards = options.shards,
                                          .slow_lanes = options.slow_lanes,
                                          .shard = {.max_calls = options.calls_per_shard,
                                                    .max_records = options.records_per_shard,
                                                    .writer_ring = self->writer_->ring_fd(),
                                                    .admission_ring = self->reactor_->ring_fd(),
                                                    .closer_ring = self->closer_->ring_fd(),
                                                    .watchdog = self->watchdog_.get(),
                                                    .patience = options.patience}}));
  options.admission.lanes = self->lanes_.get();
  options.admission.writer_ring = self->writer_->ring_fd();
  options.admission.closer_ring = self->closer_->ring_fd();
  self->admission_ = std::make_unique<Admission>(*self->reactor_, std::move(options.admission));
  self->control_ = std::make_unique<Control>(*self->reactor_, *self->admission_, self->closer_->ring_fd());
  self->reactor_->OnPost([admission = self->admission_.get()](uint64_t token, int32_t value) {
    // kNone: the writer's word for the supervisor's own records, which nobody waits for.
    OARLOCK_CHECK(admission->Handle(token, value) || Token::KindOf(token) == TokenKind::kNone);
  });
  self->Log(audit::RecordType::kSupervisorStart, self->start_record_);
  return self;
}

void Supervisor::Log(audit::RecordType type, audit::Record& record) {
  record.type = type;
  record.real_us = record.first_us = record.last_us = kernel::RealtimeUs();
  record.mono_ns = kernel::MonotonicNs();
  record.reply_ring = reactor_->ring_fd();
  audit::Send(reactor_->ring(), writer_->ring_fd(), record);
}

Supervisor::~Supervisor() {
  if (admission_ == nullptr) return;  // it did not get as far
  admission_->Settle();
  for (const Shard* shard : lanes_->All()) reactor_->Post(shard->ring_fd(), Token::Make(TokenKind::kStop, 0), 0);
  reactor_->Flush();
  lanes_->Join();
  reactor_->Drain();  // sessions that ended meanwhile
  Log(audit::RecordType::kSupervisorStop, stop_record_);
  reactor_->Flush();
  writer_.reset();
  reactor_->Drain();  // the last acknowledgements
  reactor_->Post(closer_->ring_fd(), Token::Make(TokenKind::kStop, 0), 0);
  reactor_->Flush();
}

}  // namespace oarlock::supervisor
