// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <list>
#include <mutex>
#include <string>
#include <thread>

#include "notif/base/unique_fd.h"
#include "tests/hostile/program.h"

namespace bypass {

// The servers outside, on one thread of their own. What a victim receives is kept; the proxy and the broker only serve.
class Servers {
 public:
  enum class Sort {
    kVictim,    // accepts; what comes is an escape
    kDatagram,  // the same without connections
    kQuiet,     // accepts and forgets: the proxy
    kBroker,    // hands out the descriptor that it is asked for: "datagram" or "file"
    kHoarder,   // accepts and does not read
  };
  Servers();
  ~Servers();
  Servers(const Servers&) = delete;
  Servers& operator=(const Servers&) = delete;

  // On an address or a path; the port, or a negative errno.
  int Tcp(const std::string& name, const std::string& host, int port, Sort sort = Sort::kVictim);
  int Udp(const std::string& name, const std::string& host, int port, int protocol = 0);
  int Unix(const std::string& name, const std::string& path, int type, Sort sort = Sort::kVictim);
  // Closes it and its connections.
  void Remove(const std::string& name);
  // What the broker hands out.
  void Give(const std::string& word, int fd);
  // Whether any victim has received this text, and which.
  [[nodiscard]] std::string WhoReceived(const std::string& text);

 private:
  struct Entry {
    std::string name;
    Sort sort = Sort::kVictim;
    oarlock::UniqueFd fd;
    bool listening = false;
    std::string got;
  };
  int Add(const std::string& name, int domain, int type, int protocol, hostile::Address address, Sort sort);
  void Serve(const std::stop_token& stop);
  void Take(Entry* entry);
  std::mutex mutex_;
  std::list<Entry> entries_;
  std::vector<std::pair<std::string, int>> gifts_;
  std::string log_;  // of connections that are over: "name\ntext\0"
  oarlock::UniqueFd wake_;
  std::jthread thread_;
};

}  // namespace bypass
