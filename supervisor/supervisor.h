// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <signal.h>
#include <sys/resource.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "audit/writer.h"
#include "supervisor/admission.h"
#include "supervisor/closer.h"
#include "supervisor/control.h"
#include "supervisor/shard.h"

namespace oarlock::supervisor {

// The parts of one supervisor, node-wide or private, wired together: the log's writer, the closer, the shards, admission and
// control on the calling thread's reactor. main() makes one; nothing in it is global.
class Supervisor {
 public:
  struct Options {
    audit::WriterOptions log;
    unsigned shards = 1;
    Patience patience;
    bool slow_lanes = true;        // false: for one session, which has no neighbours to be kept from
    uint32_t calls_per_shard = kMaxCallsPerShard;
    uint32_t records_per_shard = kMaxRecordsPerShard;
    Admission::Options admission;  // its shards and rings are filled in here
  };
  [[nodiscard]] static Result<std::unique_ptr<Supervisor>> Start(Options options);
  // Stops the shards, writes what is left, stops the writer. Callers that still wait are answered ENOSYS by the kernel.
  ~Supervisor();

  [[nodiscard]] Reactor& reactor() noexcept { return *reactor_; }
  [[nodiscard]] Admission& admission() noexcept { return *admission_; }
  [[nodiscard]] Control& control() noexcept { return *control_; }
  // Goes on in a new file after a rotation.
  void ReopenLog() noexcept { writer_->Reopen(); }

 private:
  Supervisor() = default;
  void Log(audit::RecordType type, audit::Record& record);

  audit::Record start_record_, stop_record_;  // the writer's until it has stopped
  // Torn down from the last to the first. The writer acknowledges into the reactor's ring, so it goes before that.
  std::shared_ptr<Watchdog> watchdog_;
  std::unique_ptr<Closer> closer_;
  std::unique_ptr<Reactor> reactor_;
  std::unique_ptr<audit::Writer> writer_;
  std::unique_ptr<Lanes> lanes_;
  std::unique_ptr<Admission> admission_;
  std::unique_ptr<Control> control_;
};

// What a supervisor was started with, so that a module which it starts gets that and not the supervisor's own.
struct Inheritance {
  sigset_t ignored{};      // signals that were ignored (nohup)
  mode_t umask = 022;
  rlimit files{}, processes{}, file_size{}, core{};

  // In a child between fork and exec; async-signal-safe.
  void Restore() const noexcept;
};

// What every supervisor does to its own process before it starts a thread, since what it inherits is somebody else's choice:
// signal mask and dispositions, umask, limits, dumpability. EFBIG: RLIMIT_FSIZE leaves no room for a log.
[[nodiscard]] Result<Inheritance> PrepareProcess();

}  // namespace oarlock::supervisor
