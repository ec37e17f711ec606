// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <netinet/in.h>
#include <sys/types.h>
#include <sys/un.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "notif/base/unique_fd.h"
#include "tests/endurance/tally.h"

namespace oarlock::test {

[[nodiscard]] inline std::string ClientPath() { return OARLOCK_BINARY_DIR "/tests/bin/oarlock-endurance"; }

// Accepts, greets, counts and resets: hundreds of thousands of connections leave no port in TIME_WAIT.
class Counter {
 public:
  // On a free port of 127.0.0.1, or at a path.
  Counter();
  explicit Counter(const std::string& path);
  ~Counter();
  Counter(const Counter&) = delete;
  Counter& operator=(const Counter&) = delete;
  [[nodiscard]] uint64_t connections() const noexcept { return connections_; }
  [[nodiscard]] uint16_t port() const noexcept { return port_; }
  [[nodiscard]] const std::string& target() const noexcept { return target_; }

 private:
  void Serve();
  uint16_t port_ = 0;  // set by what makes the next
  UniqueFd listening_, stop_;
  std::string target_;
  std::atomic<uint64_t> connections_ = 0;
  std::thread thread_;
};

// A listener whose backlog is full: connects wait until Drain(), which accepts and greets from then on.
class Full {
 public:
  Full();  // TCP
  explicit Full(const std::string& path);
  ~Full();
  Full(const Full&) = delete;
  Full& operator=(const Full&) = delete;
  void Drain();
  [[nodiscard]] uint16_t port() const noexcept { return port_; }
  [[nodiscard]] const std::string& target() const noexcept { return target_; }

 private:
  uint16_t port_ = 0;  // set by what makes the next
  UniqueFd listening_, stop_;
  std::vector<UniqueFd> fillers_;
  std::string target_;
  std::thread thread_;
};

// The value of "name=value" in a client's output; "" where it is not there.
[[nodiscard]] std::string ValueOf(const std::string& out, const std::string& name);
[[nodiscard]] double NumberOf(const std::string& out, const std::string& name);

// What a process holds now.
struct Holding {
  long descriptors = 0, rss_kib = 0;
  long threads = 0;     // of its own
  long io_workers = 0;  // that the kernel made for its rings
  long pidfds = 0, sockets = 0;
};
[[nodiscard]] Holding HoldingOf(pid_t pid);
[[nodiscard]] std::string Describe(const Holding& holding);
// Once two looks apart by 200 ms agree in descriptors and threads: closes are another thread's.
[[nodiscard]] Holding Settled(pid_t pid);

// The process with an open file whose name begins with `prefix` and whose program is called `name`; -1: none.
[[nodiscard]] pid_t FindHolder(const std::string& name, const std::string& prefix);
// Processes with `text` in their command line.
[[nodiscard]] std::vector<pid_t> FindByCommandLine(const std::string& text);

// A file of kTallies for processes inside, mapped here too.
class Tallies {
 public:
  explicit Tallies(const std::string& path);
  ~Tallies();
  Tallies(const Tallies&) = delete;
  Tallies& operator=(const Tallies&) = delete;
  [[nodiscard]] Tally& operator[](size_t at) const { return memory_[at]; }

 private:
  Tally* memory_ = nullptr;
};

}  // namespace oarlock::test
