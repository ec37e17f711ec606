// SPDX-License-Identifier: Apache-2.0
#include "tests/support/servers.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <cstring>
#include <map>
#include <thread>

#include "notif/base/check.h"

namespace oarlock::test {
namespace {

UniqueFd ListenTcp(const std::string& address, uint16_t port) {
  const bool v6 = address.find(':') != std::string::npos;
  UniqueFd fd(::socket(v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  (void)::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  sockaddr_storage storage{};
  socklen_t size = 0;
  if (v6) {
    (void)::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
    auto* in6 = reinterpret_cast<sockaddr_in6*>(&storage);
    in6->sin6_family = AF_INET6;
    in6->sin6_port = htons(port);
    OARLOCK_CHECK(::inet_pton(AF_INET6, address.c_str(), &in6->sin6_addr) == 1);
    size = sizeof(*in6);
  } else {
    auto* in = reinterpret_cast<sockaddr_in*>(&storage);
    in->sin_family = AF_INET;
    in->sin_port = htons(port);
    OARLOCK_CHECK(::inet_pton(AF_INET, address.c_str(), &in->sin_addr) == 1);
    size = sizeof(*in);
  }
  OARLOCK_CHECK(::bind(fd.get(), reinterpret_cast<sockaddr*>(&storage), size) == 0, "%s:%u errno %d", address.c_str(), port, errno);
  OARLOCK_CHECK(::listen(fd.get(), 512) == 0);
  return fd;
}

uint16_t PortOf(int fd) {
  sockaddr_storage storage{};
  socklen_t size = sizeof(storage);
  OARLOCK_CHECK(::getsockname(fd, reinterpret_cast<sockaddr*>(&storage), &size) == 0);
  return ntohs(reinterpret_cast<const sockaddr_in*>(&storage)->sin_port);  // the same place in both families
}

UniqueFd ListenUnix(const std::string& name, int type, mode_t mode, int backlog) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  OARLOCK_CHECK(name.size() < sizeof(address.sun_path));
  std::memcpy(address.sun_path, name.data(), name.size());
  socklen_t size = sizeof(address);
  if (name.starts_with('@')) {
    address.sun_path[0] = '\0';
    size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
  } else {
    (void)::unlink(name.c_str());
  }
  UniqueFd fd(::socket(AF_UNIX, type | SOCK_CLOEXEC, 0));
  OARLOCK_CHECK(::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), size) == 0, "%s errno %d", name.c_str(), errno);
  if (!name.starts_with('@')) OARLOCK_CHECK(::chmod(name.c_str(), mode) == 0);
  OARLOCK_CHECK(::listen(fd.get(), backlog) == 0);
  return fd;
}

}  // namespace

Server::Server(UniqueFd listening, std::string greeting, bool accepting)
    : listening_(std::move(listening)), stop_(::eventfd(0, EFD_CLOEXEC)), greeting_(std::move(greeting)) {
  if (accepting) thread_ = std::thread([this] { Serve(); });
}

int Server::connections() const {
  if (!thread_.joinable()) return connections_;
  for (const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(5);;) {
    {
      const std::lock_guard lock(mutex_);
      pollfd waiting{listening_.get(), POLLIN, 0};
      if (::poll(&waiting, 1, 0) == 0 || std::chrono::steady_clock::now() > deadline) return connections_;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

Server::~Server() {
  const uint64_t one = 1;
  (void)!::write(stop_.get(), &one, sizeof(one));
  if (thread_.joinable()) thread_.join();
}

void Server::Serve() {
  std::map<int, UniqueFd> open;
  for (;;) {
    std::vector<pollfd> ready = {{stop_.get(), POLLIN, 0}, {listening_.get(), POLLIN, 0}};
    for (const auto& [fd, owner] : open) ready.push_back({fd, POLLIN, 0});
    (void)::poll(ready.data(), ready.size(), -1);
    if (ready[0].revents != 0) return;
    for (size_t i = 2; i < ready.size(); ++i) {
      if (ready[i].revents == 0) continue;
      char buffer[4096];
      const ssize_t got = ::recv(ready[i].fd, buffer, sizeof(buffer), MSG_DONTWAIT);
      if (got <= 0) {
        open.erase(ready[i].fd);
        continue;
      }
      {
        const std::lock_guard lock(mutex_);
        if (received_.size() < 1 << 20) received_.append(buffer, static_cast<size_t>(got));
      }
      (void)::send(ready[i].fd, buffer, static_cast<size_t>(got), MSG_NOSIGNAL | MSG_DONTWAIT);
    }
    if (ready[1].revents == 0) continue;
    UniqueFd accepted;
    {
      // Out of the queue and counted in one step, for connections().
      const std::lock_guard lock(mutex_);
      accepted.Reset(::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!accepted.valid()) continue;
      ucred peer{};
      socklen_t size = sizeof(peer);
      if (::getsockopt(accepted.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0) peers_.push_back(peer);
      ++connections_;
    }
    (void)::send(accepted.get(), greeting_.data(), greeting_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    const int fd = accepted.get();
    open.emplace(fd, std::move(accepted));
  }
}

std::vector<ucred> Server::peers() const {
  const std::lock_guard lock(mutex_);
  return peers_;
}

std::string Server::received() const {
  const std::lock_guard lock(mutex_);
  return received_;
}

TcpServer::TcpServer(const std::string& address, uint16_t port, std::string greeting)
    : TcpServer(ListenTcp(address, port), std::move(greeting)) {}

namespace {
thread_local uint16_t last_port = 0;
UniqueFd Note(UniqueFd fd) {
  last_port = PortOf(fd.get());
  return fd;
}
}  // namespace

TcpServer::TcpServer(UniqueFd listening, std::string greeting)
    : Server(Note(std::move(listening)), std::move(greeting), true), port_(last_port) {}

UnixServer::UnixServer(const std::string& name, int type, mode_t mode, bool accepting, int backlog)
    : Server(ListenUnix(name, type, mode, backlog), "hello\n", accepting), path_(name) {}

UnixServer::~UnixServer() {
  if (!path_.starts_with('@')) (void)::unlink(path_.c_str());
}

uint16_t FreePort() {
  const UniqueFd fd = ListenTcp("127.0.0.1", 0);
  return PortOf(fd.get());
}

FullBroker::FullBroker(const std::string& path) : server_(path, SOCK_STREAM, 0666, false, 0) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  for (UniqueFd& filler : fillers_) {
    filler.Reset(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    (void)::connect(filler.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address));
  }
}

}  // namespace oarlock::test
