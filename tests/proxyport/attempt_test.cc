// SPDX-License-Identifier: Apache-2.0
#include "proxyport/attempt.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/un.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "notif/kernel.h"
#include "tests/support/servers.h"
#include "tests/support/temporary.h"

namespace oarlock::proxyport {
namespace {

constexpr Attempt::Tokens kTokens{1, 2, 3};

// Drives one attempt as a shard does.
class Driver {
 public:
  Driver() : ring_(std::move(*Ring::Make({}))) {}

  void Begin(Attempt& attempt, int fd, const Target& target) {
    attempt.Begin(ring_, fd, target, 0, kTokens);
    ring_.SubmitAndCollect();
    Collect(attempt);
    if (attempt.busy()) {
      attempt.Settle(ring_, kernel::MonotonicNs());
      ring_.SubmitAndCollect();
      Collect(attempt);
    }
  }
  // Until it has ended or `ms` have gone by.
  void Drive(Attempt& attempt, int ms) {
    const uint64_t end = kernel::MonotonicNs() + static_cast<uint64_t>(ms) * 1'000'000;
    while (attempt.busy() && kernel::MonotonicNs() < end) {
      ring_.SubmitAndWait(10'000'000);
      Collect(attempt);
      attempt.Tick(ring_, kernel::MonotonicNs());
    }
  }
  Ring& ring() { return ring_; }

 private:
  void Collect(Attempt& attempt) {
    std::array<Completion, 16> batch;
    for (size_t count = ring_.Take(batch); count != 0; count = ring_.Take(batch))
      for (size_t i = 0; i < count; ++i) {
        if (batch[i].token == kTokens.connect) attempt.OnConnect(ring_, batch[i].result);
        if (batch[i].token == kTokens.poll) attempt.OnPoll(ring_);
        if (batch[i].token == kTokens.cancel) attempt.OnCancel(ring_, batch[i].result);
      }
  }
  Ring ring_;
};

Target TcpTarget(uint16_t port) {
  Target target;
  target.kind = Target::Kind::kTcp;
  sockaddr_in in{};
  in.sin_family = AF_INET;
  in.sin_port = htons(port);
  in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  std::memcpy(&target.address, &in, sizeof(in));
  target.size = sizeof(in);
  return target;
}

Target UnixTarget(const std::string& path) {
  Target target;
  target.kind = Target::Kind::kUnix;
  sockaddr_un un{};
  un.sun_family = AF_UNIX;
  std::memcpy(un.sun_path, path.data(), path.size());
  std::memcpy(&target.address, &un, sizeof(un));
  target.size = sizeof(un);
  return target;
}

UniqueFd TcpSocket(int flags = 0) { return UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | flags, 0)); }
UniqueFd UnixSocket(int flags = 0) { return UniqueFd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | flags, 0)); }

// A listener of 127.0.0.1 whose backlog is full: further SYNs are dropped, so a connect stays pending.
class FullPort {
 public:
  FullPort() : listening_(TcpSocket()) {
    sockaddr_in in{};
    in.sin_family = AF_INET;
    in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::bind(listening_.get(), reinterpret_cast<sockaddr*>(&in), sizeof(in)), 0);
    EXPECT_EQ(::listen(listening_.get(), 0), 0);
    socklen_t size = sizeof(in);
    EXPECT_EQ(::getsockname(listening_.get(), reinterpret_cast<sockaddr*>(&in), &size), 0);
    port_ = ntohs(in.sin_port);
    for (int i = 0; i < 4; ++i) {
      fillers_.push_back(TcpSocket(SOCK_NONBLOCK));
      (void)::connect(fillers_.back().get(), reinterpret_cast<sockaddr*>(&in), sizeof(in));
    }
  }
  [[nodiscard]] uint16_t port() const { return port_; }
  // Takes all that waits, so that pending ones come in with their next SYN.
  void Empty() {
    (void)::fcntl(listening_.get(), F_SETFL, O_NONBLOCK);
    for (int fd = 0; (fd = ::accept(listening_.get(), nullptr, nullptr)) >= 0;) accepted_.emplace_back(fd);
  }

 private:
  UniqueFd listening_;
  uint16_t port_ = 0;
  std::vector<UniqueFd> fillers_, accepted_;
};

TEST(AttemptTest, ConnectsToAnOpenPort) {
  test::TcpServer server;
  const Target target = TcpTarget(server.port());
  for (const int flags : {0, static_cast<int>(SOCK_NONBLOCK)}) {
    Driver driver;
    Attempt attempt;
    const UniqueFd socket = TcpSocket(flags);
    driver.Begin(attempt, socket.get(), target);
    driver.Drive(attempt, 2000);
    ASSERT_FALSE(attempt.busy());
    EXPECT_TRUE(attempt.result() == 0 || (flags != 0 && attempt.result() == -EINPROGRESS)) << attempt.result();
    pollfd ready{socket.get(), POLLOUT, 0};
    EXPECT_EQ(::poll(&ready, 1, 2000), 1);
    int error = -1;
    ASSERT_EQ(kernel::GetSocketInt(socket.get(), SOL_SOCKET, SO_ERROR, &error), 0);
    EXPECT_EQ(error, 0);
  }
}

TEST(AttemptTest, ClosedPortIsRefused) {
  const Target target = TcpTarget(test::FreePort());
  Driver driver;
  Attempt attempt;
  const UniqueFd socket = TcpSocket();
  driver.Begin(attempt, socket.get(), target);
  driver.Drive(attempt, 2000);
  EXPECT_EQ(attempt.result(), -ECONNREFUSED);
}

TEST(AttemptTest, NonBlockingOnAFullPortIsInProgressAndGoesOn) {
  FullPort full;
  const Target target = TcpTarget(full.port());
  Driver driver;
  Attempt attempt;
  const UniqueFd socket = TcpSocket(SOCK_NONBLOCK);
  driver.Begin(attempt, socket.get(), target);
  driver.Drive(attempt, 500);
  ASSERT_FALSE(attempt.busy()) << "a cancellation must have ended it";
  EXPECT_EQ(attempt.result(), -EINPROGRESS);
  // The connection goes on in the kernel: once there is room it comes in, with SO_ERROR 0.
  pollfd ready{socket.get(), POLLOUT, 0};
  EXPECT_EQ(::poll(&ready, 1, 0), 0);
  full.Empty();
  EXPECT_EQ(::poll(&ready, 1, 8000), 1);
  int error = -1;
  ASSERT_EQ(kernel::GetSocketInt(socket.get(), SOL_SOCKET, SO_ERROR, &error), 0);
  EXPECT_EQ(error, 0);
}

TEST(AttemptTest, BlockingOnAFullPortWaitsAndIsCancelled) {
  FullPort full;
  const Target target = TcpTarget(full.port());
  Driver driver;
  Attempt attempt;
  const UniqueFd socket = TcpSocket();
  driver.Begin(attempt, socket.get(), target);
  driver.Drive(attempt, 300);
  ASSERT_TRUE(attempt.busy());
  EXPECT_TRUE(attempt.blocking());
  attempt.Cancel(driver.ring(), Attempt::Stop::kSignal);
  driver.Drive(attempt, 1000);
  ASSERT_FALSE(attempt.busy());
  EXPECT_EQ(attempt.result(), -ECANCELED);
}

TEST(AttemptTest, SendTimeoutEndsABlockingConnect) {
  FullPort full;
  const Target target = TcpTarget(full.port());
  Driver driver;
  Attempt attempt;
  const UniqueFd socket = TcpSocket();
  const timeval limit{0, 300'000};
  ASSERT_EQ(::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)), 0);
  driver.Begin(attempt, socket.get(), target);
  EXPECT_NE(attempt.deadline_ns(), 0U);
  driver.Drive(attempt, 3000);
  ASSERT_FALSE(attempt.busy());
  EXPECT_EQ(attempt.result(), -EINPROGRESS) << "as connect(2) natively";
}

TEST(AttemptTest, SecondConnectOnAConnectingSocketWaits) {
  FullPort full;
  const Target target = TcpTarget(full.port());
  Driver driver;
  const UniqueFd socket = TcpSocket(SOCK_NONBLOCK);
  Attempt first;
  driver.Begin(first, socket.get(), target);
  driver.Drive(first, 500);
  ASSERT_EQ(first.result(), -EINPROGRESS);
  Attempt again;
  driver.Begin(again, socket.get(), target);
  driver.Drive(again, 500);
  EXPECT_EQ(again.result(), -EALREADY) << "non-blocking";
  // Blocking: it waits for the connection and then is 0, where reading SO_ERROR would leave the socket connecting.
  ASSERT_EQ(::fcntl(socket.get(), F_SETFL, 0), 0);
  Attempt waiting;
  driver.Begin(waiting, socket.get(), target);
  driver.Drive(waiting, 200);
  EXPECT_TRUE(waiting.busy());
  full.Empty();
  driver.Drive(waiting, 8000);
  EXPECT_EQ(waiting.result(), 0);
  Attempt third;
  driver.Begin(third, socket.get(), target);
  driver.Drive(third, 500);
  EXPECT_EQ(third.result(), -EISCONN);
}

TEST(AttemptTest, FullUnixBacklog) {
  test::TemporaryDirectory directory;
  test::UnixServer server(directory / "broker.sock", SOCK_STREAM, 0666, false, 0);
  const Target target = UnixTarget(directory / "broker.sock");
  const UniqueFd filler = UnixSocket();
  ASSERT_EQ(::connect(filler.get(), reinterpret_cast<const sockaddr*>(&target.address), target.size), 0);
  Driver driver;
  {
    Attempt attempt;
    const UniqueFd socket = UnixSocket(SOCK_NONBLOCK);
    driver.Begin(attempt, socket.get(), target);
    driver.Drive(attempt, 1000);
    EXPECT_EQ(attempt.result(), -EAGAIN);
  }
  {
    Attempt attempt;
    const UniqueFd socket = UnixSocket();
    driver.Begin(attempt, socket.get(), target);
    driver.Drive(attempt, 300);
    ASSERT_TRUE(attempt.busy());
    attempt.Cancel(driver.ring(), Attempt::Stop::kGone);
    driver.Drive(attempt, 2000);
    EXPECT_FALSE(attempt.busy()) << "a blocked kernel worker is called back";
    EXPECT_EQ(attempt.result(), -ECANCELED);
  }
  {
    Attempt attempt;
    const UniqueFd socket = UnixSocket();
    const timeval limit{0, 300'000};
    ASSERT_EQ(::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)), 0);
    driver.Begin(attempt, socket.get(), target);
    driver.Drive(attempt, 3000);
    EXPECT_EQ(attempt.result(), -EAGAIN);
  }
}

// A loopback connect whose own port is the one that it connects to reaches itself, and then keeps the server from binding.
TEST(AttemptTest, SelfConnectIsUndone) {
  const uint16_t port = test::FreePort();
  const Target target = TcpTarget(port);
  Driver driver;
  Attempt attempt;
  const UniqueFd socket = TcpSocket();
  ASSERT_EQ(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&target.address), target.size), 0);
  {
    // The twin: natively it works.
    const UniqueFd native = TcpSocket();
    const int on = 1;
    (void)::setsockopt(native.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    const Target other = TcpTarget(test::FreePort());
    ASSERT_EQ(::bind(native.get(), reinterpret_cast<const sockaddr*>(&other.address), other.size), 0);
    EXPECT_EQ(::connect(native.get(), reinterpret_cast<const sockaddr*>(&other.address), other.size), 0);
  }
  driver.Begin(attempt, socket.get(), target);
  driver.Drive(attempt, 1000);
  ASSERT_FALSE(attempt.busy());
  EXPECT_TRUE(attempt.self_connected());
  EXPECT_EQ(attempt.result(), -ECONNREFUSED);
  sockaddr_storage peer{};
  socklen_t size = 0;
  EXPECT_EQ(kernel::GetPeerAddress(socket.get(), &peer, &size), -ENOTCONN);
}

TEST(AttemptTest, DisconnectIsPerformed) {
  test::TcpServer server;
  const Target target = TcpTarget(server.port());
  Target none;
  none.kind = Target::Kind::kDisconnect;
  none.size = sizeof(sockaddr_in);
  Driver driver;
  const UniqueFd socket = TcpSocket();
  for (int round = 0; round < 3; ++round) {
    Attempt connect, disconnect;
    driver.Begin(connect, socket.get(), target);
    driver.Drive(connect, 1000);
    EXPECT_EQ(connect.result(), 0);
    driver.Begin(disconnect, socket.get(), none);
    driver.Drive(disconnect, 1000);
    EXPECT_EQ(disconnect.result(), 0);
  }
}

}  // namespace
}  // namespace oarlock::proxyport
