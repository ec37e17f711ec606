// SPDX-License-Identifier: Apache-2.0
#include "supervisor/closer.h"

#include <sys/prctl.h>

#include <array>
#include <future>

#include "notif/kernel.h"
#include "supervisor/limits.h"
#include "supervisor/token.h"

namespace oarlock::supervisor {

Result<std::unique_ptr<Closer>> Closer::Start() {
  auto closer = std::make_unique<Closer>();
  std::promise<Result<int>> ready;
  std::thread([&ready] {
    (void)::prctl(PR_SET_NAME, "oarlock-closer");
    auto ring = Ring::Make({.entries = 8, .completions = 1024});
    const bool made = ring.has_value();
    ready.set_value(made ? Result<int>(ring->fd()) : std::unexpected(ring.error()));  // `ready` is gone after this
    if (!made) return;
    std::array<Completion, 32> batch;
    for (;;) {
      ring->SubmitAndWait(kMaxWaitNs);
      for (size_t count = ring->Take(batch); count != 0; count = ring->Take(batch))
        for (size_t i = 0; i < count; ++i) {
          if (Token::KindOf(batch[i].token) == TokenKind::kStop) return;
          kernel::Close(static_cast<int>(Token::PayloadOf(batch[i].token)));
        }
    }
  }).detach();
  auto started = ready.get_future().get();
  if (!started) return std::unexpected(started.error());
  closer->ring_fd_ = *started;
  return closer;
}

}  // namespace oarlock::supervisor
