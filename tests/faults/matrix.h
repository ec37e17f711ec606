// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/daemon.h"
#include "tests/support/servers.h"
#include "tests/support/temporary.h"

// Launches into which strace injects one fault each: every system call of the launcher, between its start and its exec, fails with
// every error, or is said to have been done when it was not.
namespace oarlock::test::faults {

// A launch to break: who starts it, in what state, with which policy.
struct World {
  std::string name;
  std::string policy;         // members of the policy beside those of every world
  std::vector<std::string> start;  // words for `oarlock-inmate start`
  std::string terminal = "yes";  // as `oarlock-inmate hold` has it
  unsigned uid = 0;           // the launcher's, as `start` has it
  bool state_home = true;     // XDG_STATE_HOME is set; else the log lies where the password file says
  bool private_supervisor = false;
};

// One call of a whole launch, as strace shows it.
struct Call {
  std::string name;
  std::string line;
  int occurrence = 0;       // of that name, counted as strace's when=N does
  bool at_start = false;    // before the launcher's own code: the C library's start
  bool confining = false;   // from the first step of confinement on
  bool is_exec = false;     // the module's exec
  bool confirmed = false;   // after the byte of OARBANK_CONFINED
};

struct Case {
  Call call;
  std::string fault;  // "error=EPERM", "retval=0"
};

// A continuation that is right, or an end before the launcher's own code: what fails, and why nothing is lost by it.
struct Named {
  std::string call;
  std::string part;     // of strace's line of the call that failed; empty: any
  std::string faults;   // those that it is about, "error=EINTR error=ENOSYS"; empty: any error; "retval=0" only where it is said
  std::string reason;
  enum class As : int {
    kWhole,      // the module runs exactly as in a whole launch
    kLess,       // the module runs with less than was granted
    kStart,      // the C library ends the process before main, in its own way
  } as = As::kWhole;
};
[[nodiscard]] const std::vector<Named>& NamedContinuations();

class Matrix {
 public:
  explicit Matrix(World world, size_t workers);
  ~Matrix();
  // The calls of a launch without a fault, whose module found itself as it must.
  [[nodiscard]] std::vector<Call> Calls();
  // Runs the cases and fails the running test for each that ends in no way that is expected.
  void Run(const std::vector<Case>& cases);
  // What `look` prints outside of every sandbox: the twin of each denial.
  [[nodiscard]] std::string Bare();
  // What it prints in a whole launch.
  [[nodiscard]] const std::string& whole() const noexcept { return whole_; }
  // Connections that no sandbox may make.
  [[nodiscard]] int forbidden_connections() const;

 private:
  struct Room;  // the places of one worker
  struct End;   // how a case ended
  [[nodiscard]] Outcome Launch(const Room& room, const std::vector<std::string>& strace, const std::string& log) const;
  [[nodiscard]] End RunCase(const Room& room, const Case& one) const;
  [[nodiscard]] End Judge(const Room& room, const Case& one, const std::string& line, const Outcome& outcome) const;

  World world_;
  TemporaryDirectory t_;
  std::vector<std::unique_ptr<Room>> rooms_;
  std::unique_ptr<Daemon> daemon_;
  TcpServer proxy_, other_;
  UnixServer abstract_;
  std::string whole_;
};

}  // namespace oarlock::test::faults
