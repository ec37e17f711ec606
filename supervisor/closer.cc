// SPDX-License-Identifier: Apache-2.0
#include "supervisor/closer.h"

#include <sys/prctl.h>
#include <unistd.h>

#include <array>
#include <future>

#include "notif/base/thread.h"
#include "notif/kernel.h"
#include "supervisor/limits.h"
#include "supervisor/token.h"

namespace oarlock::supervisor {
namespace {

void Run(Ring& ring, Watchdog& watchdog, Beat& beat) {
  std::array<Completion, 32> batch;
  for (;;) {
    ring.SubmitAndWait(kMaxWaitNs);
    watchdog.Stir();
    for (size_t count = ring.Take(batch); count != 0; count = ring.Take(batch))
      for (size_t i = 0; i < count; ++i) {
        if (Token::KindOf(batch[i].token) == TokenKind::kStop) return;
        beat.Enter(Beat::Step::kClose);
        kernel::Close(static_cast<int>(Token::PayloadOf(batch[i].token)));
        beat.Leave();
      }
  }
}

}  // namespace

Result<std::unique_ptr<Closer>> Closer::Start(const std::shared_ptr<Watchdog>& watchdog) {
  std::unique_ptr<Closer> closer(new Closer(watchdog));
  std::promise<Result<int>> ready;
  auto thread = OARLOCK_TRY(MakeThread([&ready, watchdog, beat = closer->beat_] {
    (void)::prctl(PR_SET_NAME, "oarlock-closer");
    Watchdog::UnblockSignal();
    beat->Attach(::gettid());
    auto ring = Ring::Make({.entries = 8, .completions = 1024});
    const bool made = ring.has_value();
    ready.set_value(made ? Result<int>(ring->fd()) : std::unexpected(ring.error()));  // `ready` is gone after this
    if (made) Run(*ring, *watchdog, *beat);
  }));
  thread.detach();
  auto started = ready.get_future().get();
  if (!started) return std::unexpected(started.error());
  closer->ring_fd_ = *started;
  watchdog->Watch(closer->beat_.get());
  return closer;
}

Closer::~Closer() { watchdog_->Forget(beat_.get()); }

}  // namespace oarlock::supervisor
