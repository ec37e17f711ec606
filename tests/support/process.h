// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "notif/base/unique_fd.h"

namespace oarlock::test {

struct Outcome {
  int code = -1;             // exit code; 128+n by signal n; -1: it had to be killed for time
  std::string out, err;
  double seconds = 0;
};

struct ProcessOptions {
  std::vector<std::string> argv;               // argv[0] is a path
  std::map<std::string, std::string> environment;  // added to a small clean one (PATH, HOME, LANG)
  std::string input;                           // for stdin
  std::string directory;                       // to start in
  std::optional<uid_t> uid;                    // dropped to, with the same gid and no groups
  std::chrono::milliseconds timeout{20'000};
  std::function<void()> before_exec;           // in the child; async-signal-safe
};

// A child of the test: ended by pid at the latest with this object.
class Process {
 public:
  explicit Process(const ProcessOptions& options);
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  [[nodiscard]] pid_t pid() const noexcept { return pid_; }
  void Signal(int signal) const;
  // Waits until stdout or stderr holds `text`; false after `timeout`.
  [[nodiscard]] bool WaitFor(const std::string& text, std::chrono::milliseconds timeout = std::chrono::seconds(10));
  [[nodiscard]] bool Running();
  // Closes its stdin and waits for its end.
  [[nodiscard]] Outcome Wait();
  void CloseInput() { input_.Reset(); }
  void Write(const std::string& text);
  [[nodiscard]] const std::string& out() const noexcept { return outcome_.out; }
  [[nodiscard]] const std::string& err() const noexcept { return outcome_.err; }

 private:
  bool Pump(std::chrono::milliseconds wait);  // false: both pipes have ended
  void Reap(bool kill);
  ProcessOptions options_;
  pid_t pid_ = -1;
  UniqueFd input_, out_, err_;
  std::chrono::steady_clock::time_point started_;
  Outcome outcome_;
  bool reaped_ = false;
};

// Threads of a process by name.
[[nodiscard]] std::vector<pid_t> ThreadsNamed(pid_t pid, const std::string& name);

// What the programs of the tests print of one operation, "word -> result"; "(not done)" where they did not.
[[nodiscard]] std::string ResultOf(const std::string& out, const std::string& word);
[[nodiscard]] std::string ResultOf(const Outcome& outcome, const std::string& word);

[[nodiscard]] Outcome RunProcess(const ProcessOptions& options);
// By PATH; empty where it is not installed.
[[nodiscard]] std::string FindInstalled(const std::string& name);

// Calls `ready` until it says true or `timeout` has gone by.
[[nodiscard]] bool Eventually(const std::function<bool()>& ready, std::chrono::milliseconds timeout = std::chrono::seconds(10));

}  // namespace oarlock::test
