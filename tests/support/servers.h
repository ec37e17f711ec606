// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/socket.h>
#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "notif/base/unique_fd.h"

// Servers outside the sandbox, in the test's own process: what counts of a denial is what *they* saw.
namespace oarlock::test {

// Accepts, greets each connection with `greeting`, echoes what comes, and counts.
class Server {
 public:
  virtual ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  // Of those that have come by now, those included that were not accepted yet.
  [[nodiscard]] int connections() const;
  // Credentials of every peer so far (unix sockets).
  [[nodiscard]] std::vector<ucred> peers() const;
  [[nodiscard]] std::string received() const;

 protected:
  Server(UniqueFd listening, std::string greeting, bool accepting);

 private:
  void Serve();
  void Handle(int fd);
  UniqueFd listening_, stop_;
  std::string greeting_;
  std::atomic<int> connections_ = 0;
  mutable std::mutex mutex_;
  std::vector<ucred> peers_;
  std::string received_;
  std::thread thread_;
};

class TcpServer : public Server {
 public:
  // On a free port of `address` ("127.0.0.1", "127.0.0.2", "::1", "0.0.0.0"), or on the given one.
  explicit TcpServer(const std::string& address = "127.0.0.1", uint16_t port = 0, std::string greeting = "hello\n");
  [[nodiscard]] uint16_t port() const noexcept { return port_; }

 private:
  TcpServer(UniqueFd listening, std::string greeting);
  uint16_t port_ = 0;
};

class UnixServer : public Server {
 public:
  // `name`: a path, or "@name" for an abstract one. `accepting` false: the backlog fills and stays full.
  explicit UnixServer(const std::string& name, int type = SOCK_STREAM, mode_t mode = 0666, bool accepting = true, int backlog = 128);
  ~UnixServer() override;

 private:
  std::string path_;
};

// A port of 127.0.0.1 that nobody listens on now.
[[nodiscard]] uint16_t FreePort();

// A unix listener whose backlog is full: every further connect waits.
class FullBroker {
 public:
  explicit FullBroker(const std::string& path);

 private:
  UnixServer server_;
  UniqueFd fillers_[2];
};

}  // namespace oarlock::test
