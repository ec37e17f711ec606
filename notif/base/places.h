// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "notif/base/result.h"

namespace oarlock {

// Where Oarlock's sockets, logs and state lie for one uid: /run and /var for root, the XDG directories for others. No part of
// it may lie where a sandbox can write.
struct Places {
  std::string runtime;     // 0700; empty: this user has no runtime directory, hence no control socket
  std::string admission;   // admit.sock in it
  std::string control;     // control.sock in it
  std::string privates;    // private/ in it: control sockets of private supervisors
  std::string log;         // of oarlockd
  std::string log_directory;  // of private supervisors: one file per session
  std::string grants;      // for container runtimes; root only
  std::string unknown;     // of ForSelf: why the home directory, which the log hangs on, could not be looked up; else empty

  // `xdg_runtime` and `xdg_state` are the values of XDG_RUNTIME_DIR and XDG_STATE_HOME where the caller may be believed, else
  // empty; relative ones are ignored. `home` is the user's home directory from the password file.
  [[nodiscard]] static Places For(uint32_t uid, const std::string& xdg_runtime, const std::string& xdg_state,
                                  const std::string& home);
  // With the process's own environment and password entry.
  [[nodiscard]] static Places ForSelf();
};

// The home directory of `uid` by /etc/passwd itself: a static program cannot use NSS. Empty where it has no entry or
// there is no such file.
[[nodiscard]] Result<std::string> HomeOf(uint32_t uid);

// Makes a directory with `mode`, and with group `gid` where that is not -1, and its missing parents. It must end up a directory
// of ours, or root's, that nobody else may write to.
[[nodiscard]] Status MakeDirectory(const std::string& path, unsigned mode, int gid = -1);

// The directory that the running program's executable lies in, without a trailing slash.
[[nodiscard]] Result<std::string> OwnDirectory();
// A sibling program: "<bin>/../libexec/oarlock/NAME", or beside us where we lie there ourselves. Its owner must be root or
// us, and neither it nor its directory writable by others.
[[nodiscard]] Result<std::string> FindProgram(const char* name);

}  // namespace oarlock
