// SPDX-License-Identifier: Apache-2.0
#include "tests/bypass/servers.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/stat.h>

namespace bypass {

using oarlock::UniqueFd;

Servers::Servers() : wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)), thread_([this](const std::stop_token& stop) { Serve(stop); }) {}

Servers::~Servers() {
  thread_.request_stop();
  (void)eventfd_write(wake_.get(), 1);
}

int Servers::Add(const std::string& name, int domain, int type, int protocol, hostile::Address address, Sort sort) {
  UniqueFd fd(socket(domain, type | SOCK_CLOEXEC | SOCK_NONBLOCK, protocol));
  if (!fd.valid()) return -errno;
  const int on = 1;
  // Without SO_REUSEADDR a port that a connection of before has used could not be taken again.
  (void)setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (domain == AF_INET6) (void)setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
  if (bind(fd.get(), address.get(), address.size) != 0) return -errno;
  if (type != SOCK_DGRAM && listen(fd.get(), 4096) != 0) return -errno;
  int port = 0;
  if (domain != AF_UNIX) {
    (void)getsockname(fd.get(), address.get(), &address.size);
    port = ntohs(reinterpret_cast<sockaddr_in*>(address.get())->sin_port);
  }
  const std::lock_guard lock(mutex_);
  entries_.push_back({name, sort, std::move(fd), type != SOCK_DGRAM, ""});
  (void)eventfd_write(wake_.get(), 1);
  return port;
}

int Servers::Tcp(const std::string& name, const std::string& host, int port, Sort sort) {
  const hostile::Address address = hostile::MakeAddress(host, port);
  return Add(name, address.family(), SOCK_STREAM, 0, address, sort);
}
int Servers::Udp(const std::string& name, const std::string& host, int port, int protocol) {
  const hostile::Address address = hostile::MakeAddress(host, port);
  return Add(name, address.family(), SOCK_DGRAM, protocol, address, Sort::kDatagram);
}
int Servers::Unix(const std::string& name, const std::string& path, int type, Sort sort) {
  if (path[0] == '/') (void)unlink(path.c_str());
  const int result = Add(name, AF_UNIX, type, 0, hostile::MakeAddress(path), type == SOCK_DGRAM ? Sort::kDatagram : sort);
  // Whoever gets there may: what keeps a module away has to be the sandbox.
  if (path[0] == '/') (void)chmod(path.c_str(), 0777);
  return result;
}

void Servers::Remove(const std::string& name) {
  const std::lock_guard lock(mutex_);
  entries_.remove_if([&](const Entry& entry) { return entry.name == name; });
  (void)eventfd_write(wake_.get(), 1);
}

void Servers::Give(const std::string& word, int fd) {
  const std::lock_guard lock(mutex_);
  gifts_.emplace_back(word, fd);
}

std::string Servers::WhoReceived(const std::string& text) {
  const std::lock_guard lock(mutex_);
  for (const Entry& entry : entries_)
    if (entry.got.find(text) != std::string::npos) return entry.name;
  const size_t at = log_.find(text);
  if (at == std::string::npos) return "";
  const size_t begin = log_.rfind('\0', at) == std::string::npos ? 0 : log_.rfind('\0', at) + 1;
  return log_.substr(begin, log_.find('\n', begin) - begin);
}

// With the lock held.
void Servers::Take(Entry* entry) {
  if (entry->listening) {
    for (;;) {
      UniqueFd peer(accept4(entry->fd.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (!peer.valid()) return;
      // No TIME_WAIT: it would keep the port from whoever tries for it while the server is down.
      const linger off{1, 0};
      (void)setsockopt(peer.get(), SOL_SOCKET, SO_LINGER, &off, sizeof(off));
      entries_.push_back({entry->name, entry->sort, std::move(peer), false, ""});
    }
  }
  char buffer[4096];
  const ssize_t got = recv(entry->fd.get(), buffer, sizeof(buffer), 0);
  if (got <= 0 && entry->sort != Sort::kDatagram) {
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (!entry->got.empty()) log_ += entry->name + "\n" + entry->got + '\0';
    entry->fd.Reset();
    return;
  }
  if (got <= 0) return;
  const std::string text(buffer, static_cast<size_t>(got));
  if (entry->sort == Sort::kBroker) {
    for (const auto& [word, fd] : gifts_) {
      if (word != text) continue;
      char byte = 'x';
      iovec io{&byte, 1};
      alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
      msghdr message{};
      message.msg_iov = &io;
      message.msg_iovlen = 1;
      message.msg_control = control;
      message.msg_controllen = sizeof(control);
      cmsghdr* header = CMSG_FIRSTHDR(&message);
      header->cmsg_level = SOL_SOCKET;
      header->cmsg_type = SCM_RIGHTS;
      header->cmsg_len = CMSG_LEN(sizeof(int));
      std::memcpy(CMSG_DATA(header), &fd, sizeof(fd));
      (void)sendmsg(entry->fd.get(), &message, MSG_NOSIGNAL);
    }
    return;
  }
  if (entry->sort == Sort::kVictim || entry->sort == Sort::kDatagram) entry->got += text;
}

void Servers::Serve(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    std::vector<pollfd> ready{{wake_.get(), POLLIN, 0}};
    std::vector<std::list<Entry>::iterator> which;
    {
      const std::lock_guard lock(mutex_);
      std::erase_if(entries_, [](const Entry& entry) { return !entry.fd.valid(); });
      for (auto entry = entries_.begin(); entry != entries_.end(); ++entry) {
        if (entry->sort == Sort::kHoarder && !entry->listening) continue;
        ready.push_back({entry->fd.get(), POLLIN, 0});
      }
    }
    (void)poll(ready.data(), ready.size(), -1);
    eventfd_t ignored;
    if (ready[0].revents != 0) (void)eventfd_read(wake_.get(), &ignored);
    const std::lock_guard lock(mutex_);
    // What was removed meanwhile is not in the list any more; a number that was used again only gives EAGAIN.
    for (Entry& entry : entries_)
      for (const pollfd& each : ready)
        if (each.revents != 0 && each.fd == entry.fd.get()) {
          Take(&entry);
          break;
        }
  }
}

}  // namespace bypass
