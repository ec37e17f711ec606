// SPDX-License-Identifier: Apache-2.0
#include "supervisor/reactor.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "notif/kernel.h"
#include "supervisor/limits.h"
#include "supervisor/token.h"

namespace oarlock::supervisor {

Reactor::Id Reactor::OnReady(int fd, short events, std::function<void(int)> ready) {
  const Id id = next_++;
  ready_.emplace(id, std::move(ready));
  ring_.Poll(fd, events, Token::Make(TokenKind::kReactor, id));
  return id;
}

Reactor::Id Reactor::After(std::chrono::milliseconds delay, std::function<void()> due) {
  const Id id = next_++;
  const auto ns = static_cast<uint64_t>(std::chrono::nanoseconds(delay).count());
  timers_.emplace(std::pair(kernel::MonotonicNs() + ns, id), std::move(due));
  return id;
}

void Reactor::OnConnection(int listening, std::function<void(UniqueFd)> taken) {
  OnReady(listening, POLLIN, [this, listening, taken = std::move(taken)](int) { Accept(listening, taken); });
}

void Reactor::Accept(int listening, const std::function<void(UniqueFd)>& taken) {
  for (int i = 0; i < kAcceptsAtOnce; ++i) {
    UniqueFd socket(::accept4(listening, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket.valid() && IsShortage(errno)) {
      After(kAcceptRetry, [this, listening, taken] { Accept(listening, taken); });
      return;
    }
    if (!socket.valid()) break;
    taken(std::move(socket));
  }
  OnConnection(listening, taken);
}

void Reactor::Forget(Id id) {
  if (ready_.erase(id) != 0) ring_.Cancel(Token::Make(TokenKind::kReactor, id), Token::Make(TokenKind::kReactor, 0));
  std::erase_if(timers_, [id](const auto& timer) { return timer.first.second == id; });
}

uint64_t Reactor::WaitNs() const {
  if (timers_.empty()) return kMaxWaitNs;
  const uint64_t due = timers_.begin()->first.first, now = kernel::MonotonicNs();
  return due <= now ? 0 : std::min(due - now, kMaxWaitNs);
}

void Reactor::Handle(const Completion& completion) {
  if (Token::KindOf(completion.token) != TokenKind::kReactor) {
    if (post_) post_(completion.token, completion.result);
    return;
  }
  const auto at = ready_.find(Token::PayloadOf(completion.token));
  if (at == ready_.end()) return;  // forgotten meanwhile
  const auto ready = std::move(at->second);
  ready_.erase(at);
  ready(completion.result);
}

void Reactor::Drain() {
  std::array<Completion, 32> batch;
  ring_.SubmitAndCollect();
  for (size_t count = ring_.Take(batch); count != 0; count = ring_.Take(batch))
    for (size_t i = 0; i < count; ++i) Handle(batch[i]);
}

void Reactor::Run() {
  std::array<Completion, 32> batch;
  while (!stopping_) {
    ring_.SubmitAndWait(WaitNs());
    for (size_t count = ring_.Take(batch); count != 0; count = ring_.Take(batch))
      for (size_t i = 0; i < count; ++i) Handle(batch[i]);
    while (!timers_.empty() && timers_.begin()->first.first <= kernel::MonotonicNs() && !stopping_) {
      const auto due = std::move(timers_.begin()->second);
      timers_.erase(timers_.begin());
      due();
    }
  }
}

}  // namespace oarlock::supervisor
