// SPDX-License-Identifier: Apache-2.0
// What is waited for by poll(2) beside the ring must hear of everything that the ring hears of.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <optional>
#include <stdexcept>
#include <thread>
#include <vector>

#include "notif/base/unique_fd.h"
#include "notif/kernel.h"
#include "notif/ring.h"

namespace oarlock {
namespace {

constexpr uint64_t kWatched = 1, kOther = 2;
// A wake-up that got lost shows as a wait of this length; one that came takes far less on any machine.
constexpr uint64_t kLostNs = 20'000'000'000;

struct Pipe {
  Pipe() {
    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
    read.Reset(ends[0]);
    write.Reset(ends[1]);
  }
  void Fill() const { EXPECT_EQ(::write(write.get(), "x", 1), 1); }
  void Drain() const {
    char byte = 0;
    EXPECT_EQ(::read(read.get(), &byte, 1), 1);
  }
  UniqueFd read, write;
};

std::vector<Completion> Wait(Ring& ring) {
  std::vector<Completion> all;
  const uint64_t end = kernel::MonotonicNs() + kLostNs;
  while (all.empty()) {
    const uint64_t now = kernel::MonotonicNs();
    if (now >= end) {
      ADD_FAILURE() << "a wake-up was lost";
      break;
    }
    ring.SubmitAndWait(end - now);
    EXPECT_LT(kernel::MonotonicNs(), end) << "a wake-up was lost";
    std::array<Completion, 8> some;
    for (size_t count = ring.Take(some); count != 0; count = ring.Take(some)) all.insert(all.end(), some.begin(), some.begin() + static_cast<long>(count));
  }
  return all;
}

// Something that happens once the other thread is likely to wait.
std::thread Later(std::function<void()> act) {
  return std::thread([act = std::move(act)] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    act();
  });
}

// A unix socket whose backlog is full: a connect to it waits.
class FullListener {
 public:
  FullListener() : listening_(Socket()), first_(Socket()) {
    address_.sun_family = AF_UNIX;
    socklen_t size = sizeof(sa_family_t);  // a name of the kernel's choice
    EXPECT_EQ(::bind(listening_.get(), address(), size), 0);
    EXPECT_EQ(::getsockname(listening_.get(), reinterpret_cast<sockaddr*>(&address_), &size_), 0);
    EXPECT_EQ(::listen(listening_.get(), 0), 0);
    EXPECT_EQ(::connect(first_.get(), address(), size_), 0);
  }
  static UniqueFd Socket() { return UniqueFd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)); }
  void Connect(Ring& ring, const UniqueFd& socket) const { ring.Connect(socket.get(), address(), size_, 0, kOther); }
  void Accept() const { const UniqueFd accepted(::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC)); }

 private:
  [[nodiscard]] const sockaddr* address() const { return reinterpret_cast<const sockaddr*>(&address_); }
  const UniqueFd listening_, first_;
  sockaddr_un address_{};
  socklen_t size_ = sizeof(address_);
};

class RingTest : public ::testing::Test {
 protected:
  RingTest() {
    auto made = Ring::Make({.watches = true});
    if (!made) throw std::runtime_error(made.error().Message());
    ring_.emplace(std::move(*made));
  }
  std::optional<Ring> ring_;
};

TEST_F(RingTest, WatchTellsOnceAndOnlyWhatIsReady) {
  const Pipe first, second;
  ASSERT_TRUE(ring_->Watch(first.read.get(), POLLIN, 10));
  ASSERT_TRUE(ring_->Watch(second.read.get(), POLLIN, 11));
  second.Fill();
  auto told = Wait(*ring_);
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(told[0].token, 11U);
  EXPECT_EQ(told[0].result, POLLIN);
  // It is still readable, but was not asked for again.
  ring_->SubmitAndWait(1'000'000);
  std::array<Completion, 4> none;
  EXPECT_EQ(ring_->Take(none), 0U);
  first.Fill();
  told = Wait(*ring_);
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(told[0].token, 10U);
}

TEST_F(RingTest, WatchTellsOfTheOtherEndsEnd) {
  Pipe pipe;
  ASSERT_TRUE(ring_->Watch(pipe.read.get(), POLLIN, kWatched));
  std::thread later = Later([&] { pipe.write.Reset(); });
  const auto told = Wait(*ring_);
  later.join();
  ASSERT_EQ(told.size(), 1U);
  EXPECT_NE(told[0].result & POLLHUP, 0);
}

TEST_F(RingTest, WatchTakesAFewOnly) {
  std::array<Pipe, Ring::kMaxWatched + 1> pipes;
  for (unsigned i = 0; i < Ring::kMaxWatched; ++i) EXPECT_TRUE(ring_->Watch(pipes[i].read.get(), POLLIN, i));
  EXPECT_FALSE(ring_->Watch(pipes.back().read.get(), POLLIN, Ring::kMaxWatched));
  // What has been told of makes room, and everything is told of.
  for (const Pipe& pipe : pipes) pipe.Fill();
  ring_->Poll(pipes.back().read.get(), POLLIN, Ring::kMaxWatched);
  uint64_t seen = 0;
  while (seen != (1U << pipes.size()) - 1) {
    const auto told = Wait(*ring_);
    if (told.empty()) break;
    for (const Completion& one : told) {
      EXPECT_EQ(seen & (uint64_t{1} << one.token), 0U);
      seen |= uint64_t{1} << one.token;
    }
  }
  EXPECT_TRUE(ring_->Watch(pipes[0].read.get(), POLLIN, 0));
}

TEST_F(RingTest, WhatIsUnwatchedIsNotToldOf) {
  const Pipe first, second;
  ASSERT_TRUE(ring_->Watch(first.read.get(), POLLIN, 10));
  ASSERT_TRUE(ring_->Watch(second.read.get(), POLLIN, 11));
  EXPECT_FALSE(ring_->Unwatch(12));
  EXPECT_TRUE(ring_->Unwatch(10));
  EXPECT_FALSE(ring_->Unwatch(10));
  first.Fill();
  second.Fill();
  const auto told = Wait(*ring_);
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(told[0].token, 11U);
  EXPECT_FALSE(ring_->Unwatch(11));
}

TEST_F(RingTest, WhatIsPolledInsteadIsToldOfOnce) {
  const Pipe first, second;
  ASSERT_TRUE(ring_->Watch(first.read.get(), POLLIN, 10));
  ASSERT_TRUE(ring_->Watch(second.read.get(), POLLIN, 11));
  ring_->PollInstead();
  EXPECT_FALSE(ring_->Unwatch(10));
  second.Fill();
  auto told = Wait(*ring_);
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(told[0].token, 11U);
  first.Fill();
  told = Wait(*ring_);
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(told[0].token, 10U);
}

TEST_F(RingTest, APollInTheRingEndsAWatchingWait) {
  const Pipe watched, other;
  ASSERT_TRUE(ring_->Watch(watched.read.get(), POLLIN, kWatched));
  for (int i = 0; i < 20; ++i) {
    ring_->Poll(other.read.get(), POLLIN, kOther);
    std::thread later = Later([&] { other.Fill(); });
    const auto told = Wait(*ring_);
    later.join();
    ASSERT_EQ(told.size(), 1U);
    EXPECT_EQ(told[0].token, kOther);
    other.Drain();
  }
}

// A unix connect that waits for room in the backlog blocks a worker of the kernel, which completes it from its own thread.
TEST_F(RingTest, AWorkersCompletionEndsAWatchingWait) {
  const FullListener full;
  const Pipe watched;
  ASSERT_TRUE(ring_->Watch(watched.read.get(), POLLIN, kWatched));
  std::vector<UniqueFd> waiting;
  for (int i = 0; i < 10; ++i) {
    waiting.push_back(FullListener::Socket());
    full.Connect(*ring_, waiting.back());
    std::thread later = Later([&] { full.Accept(); });
    const auto told = Wait(*ring_);
    later.join();
    ASSERT_EQ(told.size(), 1U);
    EXPECT_EQ(told[0].token, kOther);
    EXPECT_EQ(told[0].result, 0);
  }
}

// Its completion is long in coming, and until then there is nothing to do (7.2 and 7.3 leave a flag set that says there is).
TEST_F(RingTest, ABlockedConnectDoesNotKeepTheWaitAwake) {
  const FullListener full;
  const UniqueFd waiting = FullListener::Socket();
  const Pipe watched;
  ASSERT_TRUE(ring_->Watch(watched.read.get(), POLLIN, kWatched));
  full.Connect(*ring_, waiting);
  std::array<Completion, 4> none;
  int turns = 0;
  for (const uint64_t end = kernel::MonotonicNs() + 300'000'000; kernel::MonotonicNs() < end; ++turns) {
    ring_->SubmitAndWait(50'000'000);
    ASSERT_EQ(ring_->Take(none), 0U);
  }
  EXPECT_LT(turns, 400);  // the kernel tries the connect some 128 times before a worker of its own does
}

// Another ring's messages, each sent when the one before has come: none may meet a thread that sleeps on.
TEST_F(RingTest, EveryPostEndsAWatchingWait) {
  constexpr uint64_t kRounds = 10'000;
  const Pipe watched;
  ASSERT_TRUE(ring_->Watch(watched.read.get(), POLLIN, UINT64_MAX - 1));
  std::atomic<uint64_t> seen = 0;
  std::thread poster([&, target = ring_->fd()] {
    auto own = Ring::Make({});
    if (!own) return;
    for (uint64_t i = 1; i <= kRounds; ++i) {
      own->Post(target, i, 0);
      own->SubmitAndCollect();
      // From none to some microseconds later: before, while and after the other goes to sleep.
      for (uint64_t spin = 0; seen.load() != i || spin < i % 512; ++spin) std::atomic_signal_fence(std::memory_order_seq_cst);
    }
  });
  for (uint64_t expected = 1; expected <= kRounds;) {
    const auto told = Wait(*ring_);
    if (told.empty()) std::abort();  // the poster would spin for ever
    for (const Completion& one : told) EXPECT_EQ(one.token, expected++);
    seen.store(expected - 1);
  }
  poster.join();
}

// A flood in the ring keeps no watched descriptor waiting.
TEST_F(RingTest, CompletionsDoNotStarveWhatIsWatched) {
  const Pipe watched, busy;
  busy.Fill();
  watched.Fill();
  ASSERT_TRUE(ring_->Watch(watched.read.get(), POLLIN, kWatched));
  for (int i = 0; i < 3; ++i) {
    ring_->Poll(busy.read.get(), POLLIN, kOther);
    for (const Completion& one : Wait(*ring_))
      if (one.token == kWatched) return;
  }
  FAIL() << "not told of in three turns";
}

}  // namespace
}  // namespace oarlock
