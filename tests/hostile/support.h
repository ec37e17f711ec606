// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "notif/base/pass_fd.h"
#include "notif/base/unique_fd.h"
#include "tests/support/daemon.h"
#include "tests/support/sandbox.h"
#include "tests/support/servers.h"

namespace oarlock::test {

inline std::string AttackerPath() { return OARLOCK_BINARY_DIR "/tests/bin/hostile-attacker"; }
inline std::string StallerPath() { return OARLOCK_BINARY_DIR "/tests/bin/hostile-staller"; }

// One count of a tally "0:12 EACCES:7".
inline long CountOf(const std::string& tally, const std::string& name) {
  const std::string text = " " + tally, key = " " + name + ":";
  const size_t at = text.find(key);
  return at == std::string::npos ? 0 : std::strtol(text.c_str() + at + key.size(), nullptr, 10);
}
// One number of "rounds 3 worst 0.2".
inline double FieldOf(const std::string& text, const std::string& name) {
  const size_t at = (" " + text).find(" " + name + " ");
  return at == std::string::npos ? -1 : std::strtod(text.c_str() + at + name.size() + 1, nullptr);
}

inline std::string Egress(uint16_t port) { return "\"net\":\"egress-allowlist\",\"proxy_port\":" + std::to_string(port); }
inline std::string Broker(const std::string& path) { return "\"broker_socket\":\"" + path + "\""; }

// Refusals with this code, folded ones counted in full.
inline uint64_t Refusals(const std::vector<LogLine>& log, const std::string& code) {
  uint64_t count = 0;
  for (const LogLine& line : log)
    if (line.code == code) count += line.count;
  return count;
}

// Counts datagrams: of UDP ("127.0.0.1", a port), UDP-Lite, or of a unix path or "@name".
class DatagramSink {
 public:
  DatagramSink(const std::string& host, uint16_t port, int protocol = 0) {
    sockaddr_storage storage{};
    socklen_t size = sizeof(sockaddr_in);
    int domain = AF_INET;
    if (host[0] == '/' || host[0] == '@') {
      domain = AF_UNIX;
      auto* un = reinterpret_cast<sockaddr_un*>(&storage);
      un->sun_family = AF_UNIX;
      std::memcpy(un->sun_path, host.data(), host.size());
      if (host[0] == '@') un->sun_path[0] = '\0';
      size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + host.size());
    } else {
      auto* in = reinterpret_cast<sockaddr_in*>(&storage);
      in->sin_family = AF_INET;
      in->sin_port = htons(port);
      in->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    }
    fd_.Reset(::socket(domain, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, protocol));
    usable_ = fd_.valid() && ::bind(fd_.get(), reinterpret_cast<sockaddr*>(&storage), size) == 0;
    if (domain == AF_INET) {
      (void)::getsockname(fd_.get(), reinterpret_cast<sockaddr*>(&storage), &size);
      port_ = ntohs(reinterpret_cast<sockaddr_in*>(&storage)->sin_port);
    }
  }
  [[nodiscard]] bool usable() const noexcept { return usable_; }
  [[nodiscard]] uint16_t port() const noexcept { return port_; }
  // How many have come since it was made.
  [[nodiscard]] long Count() {
    char buffer[64];
    while (::recv(fd_.get(), buffer, sizeof(buffer), 0) >= 0) ++count_;
    return count_;
  }

 private:
  UniqueFd fd_;
  bool usable_ = false;
  uint16_t port_ = 0;
  long count_ = 0;
};

// A broker that hands a descriptor to each who connects: what `make` makes.
class HandingBroker {
 public:
  HandingBroker(const std::string& path, std::function<UniqueFd()> make) : make_(std::move(make)), stop_(::eventfd(0, EFD_CLOEXEC)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.data(), path.size());
    listening_.Reset(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(::bind(listening_.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    EXPECT_EQ(::listen(listening_.get(), 64), 0);
    thread_ = std::thread([this] { Serve(); });
  }
  ~HandingBroker() {
    const uint64_t one = 1;
    (void)!::write(stop_.get(), &one, sizeof(one));
    thread_.join();
  }
  HandingBroker(const HandingBroker&) = delete;
  HandingBroker& operator=(const HandingBroker&) = delete;

 private:
  void Serve() {
    for (;;) {
      pollfd ready[2] = {{stop_.get(), POLLIN, 0}, {listening_.get(), POLLIN, 0}};
      (void)::poll(ready, 2, -1);
      if (ready[0].revents != 0) return;
      const UniqueFd peer(::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      const UniqueFd given = make_();
      if (!peer.valid() || !given.valid()) continue;
      (void)!SendWithFd(peer.get(), "x", 1, given.get());
    }
  }
  std::function<UniqueFd()> make_;
  UniqueFd stop_, listening_;
  std::thread thread_;
};
inline UniqueFd MakeUdp() { return UniqueFd(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)); }

// A node supervisor that starts under circumstances of the test's choice.
class NodeUnder {
 public:
  explicit NodeUnder(std::function<void()> before_exec) {
    (void)directory_.MakeDirectory("run");
    (void)directory_.MakeDirectory("log");
    ProcessOptions options;
    options.argv = {OarlockdPath(), "--socket", socket(), "--control", directory_ / "run/control.sock", "--log", log_path()};
    options.timeout = std::chrono::hours(1);
    options.before_exec = std::move(before_exec);
    process_ = std::make_unique<Process>(options);
    EXPECT_TRUE(process_->WaitFor("ready:")) << process_->err();
  }
  ~NodeUnder() {
    if (!process_->Running()) return;
    process_->Signal(SIGTERM);
    if (!Eventually([&] { return !process_->Running(); })) process_->Signal(SIGKILL);
  }
  NodeUnder(const NodeUnder&) = delete;
  NodeUnder& operator=(const NodeUnder&) = delete;
  [[nodiscard]] std::string socket() const { return directory_ / "run/admit.sock"; }
  [[nodiscard]] std::string log_path() const { return directory_ / "log/audit.jsonl"; }
  [[nodiscard]] Process& process() noexcept { return *process_; }

 private:
  TemporaryDirectory directory_;
  std::unique_ptr<Process> process_;
};

inline std::vector<std::string> Attack(std::vector<std::string> words) {
  words.insert(words.begin(), AttackerPath());
  return words;
}

}  // namespace oarlock::test
