// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "notif/base/unique_fd.h"
#include "tests/bypass/bypass.h"
#include "tests/bypass/servers.h"

namespace bypass {

using oarlock::UniqueFd;

enum class Identity { kRoot, kNoCapabilities, kUnprivileged };

struct Options {
  std::string under;    // the launcher's command line; empty: bare
  Identity identity = Identity::kRoot;
  bool broker = false;  // granted, where {policy} is written
  std::string profile = "module";
  std::set<std::string> only;
  std::string proven;   // results of a bare run: what did not get out there cannot here
  bool json = false;
};

// A process that stands by, with a secret in its memory, its environment and its arguments.
struct Victim {
  pid_t pid = -1;
  unsigned long address = 0;  // of the secret in its memory
};

// All that must not be reached, and how to look at it. One for a run; made before the first launch, in network, mount, IPC and
// host-name namespaces of its own, so that nothing it or a try does is left on the machine.
class Outside {
 public:
  explicit Outside(Options options);
  ~Outside();
  Outside(const Outside&) = delete;
  Outside& operator=(const Outside&) = delete;

  [[nodiscard]] const Options& options() const noexcept { return options_; }
  [[nodiscard]] uid_t uid() const noexcept { return options_.identity == Identity::kUnprivileged ? kNobody : 0; }
  // A value that the inside half is told.
  void Set(const std::string& key, const std::string& value) { values_[key] = value; }
  void Set(const std::string& key, long value) { Set(key, std::to_string(value)); }
  [[nodiscard]] std::string Text(const std::string& key) const;
  [[nodiscard]] int Number(const std::string& key) const { return std::atoi(Text(key).c_str()); }
  [[nodiscard]] const std::map<std::string, std::string>& values() const noexcept { return values_; }
  [[nodiscard]] const std::string& secret() const noexcept { return secret_; }
  [[nodiscard]] Servers& servers() noexcept { return *servers_; }
  // "{work}" and so on.
  [[nodiscard]] std::string Filled(std::string text) const;
  [[nodiscard]] std::string self() const { return Text("tools") + "/oarlock-bypass"; }

  // The file below outside/, with this content and the identity's owner.
  std::string MakeFile(const std::string& name, const std::string& content, mode_t mode = 0644);
  // Runs until the end of the run; of the run's identity, or of a stranger's.
  Victim NewVictim(bool stranger = false);
  [[nodiscard]] static bool Alive(pid_t pid);
  // Becomes the run's identity; in a child.
  void TakeIdentity() const;

  // What the row's `answer` saw.
  void Note(const std::string& part) { noted_.insert(part); }
  [[nodiscard]] bool Noted(const std::string& part) const { return noted_.contains(part); }
  void Forget() { noted_.clear(); }

  // Packets that have left by the one interface that leads away, since the last call: their bytes.
  [[nodiscard]] std::vector<std::string> Departed();
  // The same of the loopback interface, of frames that leave.
  [[nodiscard]] std::vector<std::string> OnLoopback();
  // Whether anybody can connect to it from here, and hears something.
  [[nodiscard]] bool CanConnect(const std::string& host, int port = 0);
  bool StartProxy();
  // The victims at the proxy's port of other addresses.
  void StartNeighbours();
  void StopNeighbours();
  void StopProxy();

  // Descriptors that the next launch inherits, by number.
  [[nodiscard]] const std::map<int, int>& inherited() const noexcept { return inherited_; }
  // The terminal's master side, and the write end of the launch's stdout, as the session holds them.
  int terminal = -1, terminal_slave = -1, module_stdout = -1, module_stdin = -1;
  pid_t launch = -1;

 private:
  void MakeDirectories();
  void MakeNetwork();
  void MakeServers();
  void MakeInherited();
  Options options_;
  std::string base_, secret_;
  std::map<std::string, std::string> values_;
  std::unique_ptr<Servers> servers_;
  std::vector<std::pair<pid_t, int>> victims_;  // and their stdins
  std::map<int, int> inherited_;
  std::set<std::string> noted_;
  UniqueFd away_, loopback_;
  std::jthread waking_;
};

// For rows' answers. "key PART": notes the part when something has been typed into the launch's terminal.
std::string KeyArrived(Outside& outside, const std::string& question);

// One launch: the inside half behind the launcher, spoken to line by line.
class Session {
 public:
  Session(Outside* outside, void (*before_launch)(Outside&));
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  [[nodiscard]] bool ready() const noexcept { return ready_; }
  struct Outcome {
    bool done = false;
    std::vector<Part> parts;
    std::string lost;  // what ended the try: "timeout", "signal 31"
  };
  Outcome Go(const Row& row);
  // Closes its stdin and waits for its end; what it said on its terminal, and how it ended.
  void Finish();
  [[nodiscard]] std::string Said();
  [[nodiscard]] const std::string& end() const noexcept { return end_; }

 private:
  bool ReadLineFor(std::string* line, int milliseconds);
  Outside* outside_;
  pid_t pid_ = -1;
  UniqueFd in_, out_, terminal_, slave_, stdout_holder_, stdin_holder_;
  std::string buffer_, said_, end_;
  bool ready_ = false;
};

}  // namespace bypass
