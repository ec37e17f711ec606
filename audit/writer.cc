// SPDX-License-Identifier: Apache-2.0
#include "audit/writer.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <future>
#include <thread>

#include "audit/journal.h"
#include "audit/limits.h"
#include "notif/base/check.h"
#include "notif/base/thread.h"
#include "notif/base/unique_fd.h"
#include "notif/kernel.h"

namespace oarlock::audit {
namespace {

// Records are aligned, so no record's token is this.
constexpr uint64_t kWakeToken = 1;
static_assert(alignof(Record) > kWakeToken);

class ThreadedWriter final : public Writer {
 public:
  ThreadedWriter(std::unique_ptr<Journal> journal, UniqueFd wake)
      : journal_(std::move(journal)), wake_(std::move(wake)) {}
  ThreadedWriter(const ThreadedWriter&) = delete;
  ThreadedWriter& operator=(const ThreadedWriter&) = delete;

  ~ThreadedWriter() override {
    if (!thread_.joinable()) return;
    stop_.store(true, std::memory_order_release);
    Wake();
    thread_.join();
  }

  Status StartThread() {
    // Signals are for the program's other threads: none may interrupt a write, and Ctrl-C is not ours to
    // take.
    sigset_t all, before;
    sigfillset(&all);
    OARLOCK_CHECK(::pthread_sigmask(SIG_BLOCK, &all, &before) == 0);
    std::promise<Result<int>> made;
    auto ring = made.get_future();
    auto thread = MakeThread([this, &made] { Run(made); });
    OARLOCK_CHECK(::pthread_sigmask(SIG_SETMASK, &before, nullptr) == 0);
    thread_ = OARLOCK_TRY(std::move(thread));
    const Result<int> result = ring.get();
    if (!result) {
      thread_.join();
      return std::unexpected(result.error());
    }
    ring_fd_ = *result;
    return {};
  }

  [[nodiscard]] int ring_fd() const noexcept override { return ring_fd_; }
  [[nodiscard]] const WriterCounters& counters() const noexcept override { return journal_->counters(); }
  void Reopen() noexcept override {
    reopen_.store(true, std::memory_order_release);
    Wake();
  }

 private:
  void Wake() noexcept {
    const uint64_t one = 1;
    const int before = errno;  // a signal handler's caller must not see ours
    (void)!::write(wake_.get(), &one, sizeof(one));
    errno = before;
  }

  void Run(std::promise<Result<int>>& made) {
    (void)::pthread_setname_np(::pthread_self(), "oarlock-log");
    auto ring = Ring::Make({.entries = kWriterRingEntries, .completions = kWriterRingCompletions});
    if (!ring) {
      made.set_value(std::unexpected(ring.error()));
      return;
    }
    made.set_value(ring->fd());
    ring->Poll(wake_.get(), POLLIN, kWakeToken);
    for (bool stopping = false;;) {
      Wait(*ring);
      const bool taken = TakePosted(*ring);
      stopping = stopping || stop_.load(std::memory_order_acquire);
      if (reopen_.exchange(false, std::memory_order_acq_rel)) journal_->Reopen();
      journal_->Turn(kernel::MonotonicNs());
      while (Record* record = journal_->TakeFinished()) Acknowledge(*ring, *record);
      // What was posted before the stop is in our ring by now or comes with the next look; the last look
      // found nothing.
      if (stopping && !taken && !journal_->waiting()) break;
    }
    ring->SubmitAndCollect();
    journal_->Close(kernel::MonotonicNs());
  }

  void Wait(Ring& ring) noexcept {
    if (stop_.load(std::memory_order_acquire) && journal_->wake_at_ns() == UINT64_MAX)
      return ring.SubmitAndCollect();
    const uint64_t now = kernel::MonotonicNs();
    const uint64_t wake_at = journal_->wake_at_ns();
    if (wake_at <= now) return ring.SubmitAndCollect();
    ring.SubmitAndWait(std::min(wake_at - now, kMaxWaitNs));
  }

  // Takes every record that has arrived. False if there was none.
  bool TakePosted(Ring& ring) noexcept {
    bool any = false;
    std::array<Completion, 256> completions;
    while (const size_t count = ring.Take(completions)) {
      for (size_t i = 0; i < count; ++i) {
        if (completions[i].token == kWakeToken) {
          uint64_t times = 0;
          (void)!::read(wake_.get(), &times, sizeof(times));
          ring.Poll(wake_.get(), POLLIN, kWakeToken);
          continue;
        }
        // NOLINTNEXTLINE(performance-no-int-to-ptr): made by Send
        Record& record = *reinterpret_cast<Record*>(completions[i].token);
        (void)std::atomic_ref(record.in_flight).load(std::memory_order_acquire);  // pairs with Send
        journal_->Add(record);
        any = true;
      }
    }
    return any;
  }

  static void Acknowledge(Ring& ring, Record& record) noexcept {
    const int reply_ring = record.reply_ring;
    const uint64_t token = record.reply_token;
    const int32_t result = record.result;
    // From here on the record is its shard's.
    std::atomic_ref(record.in_flight).store(0, std::memory_order_release);
    if (reply_ring >= 0) ring.Post(reply_ring, token, result);
  }

  std::unique_ptr<Journal> journal_;
  UniqueFd wake_;
  std::atomic<bool> stop_ = false, reopen_ = false;
  int ring_fd_ = -1;
  std::thread thread_;
};

}  // namespace

Result<std::unique_ptr<Writer>> Writer::Start(const WriterOptions& options) {
  auto journal = OARLOCK_TRY(Journal::Open(options, Host::Look(options.program)));
  UniqueFd wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake.valid()) return OARLOCK_FAIL("eventfd", errno, "the log's writer");
  auto writer = std::make_unique<ThreadedWriter>(std::move(journal), std::move(wake));
  OARLOCK_TRY_VOID(writer->StartThread());
  return writer;
}

void Send(Ring& ring, int writer_ring, Record& record) noexcept {
  std::atomic_ref<uint32_t> in_flight(record.in_flight);
  OARLOCK_CHECK(in_flight.load(std::memory_order_relaxed) == 0, "a record that is on its way already");
  in_flight.store(1, std::memory_order_release);
  ring.Post(writer_ring, reinterpret_cast<uint64_t>(&record), 0);
}

void Returned(Record& record) noexcept {
  OARLOCK_CHECK(std::atomic_ref(record.in_flight).load(std::memory_order_acquire) == 0,
                "a record that the writer still has");
}

}  // namespace oarlock::audit
