// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "notif/base/result.h"
#include "notif/base/unique_fd.h"
#include "notif/kernel.h"

namespace oarlock::supervisor {

// What /proc says of a process, read through a pidfd so that it is of that process and no later one of its number.
struct ProcessFacts {
  pid_t pid = 0, parent = 0;
  uint64_t start_ticks = 0;
  uint32_t real_uid = 0, uid = 0, saved_uid = 0, fs_uid = 0;  // uid, gid: effective
  uint32_t real_gid = 0, gid = 0, saved_gid = 0, fs_gid = 0;
  std::vector<uint32_t> groups;
  uint64_t effective_capabilities = 0, permitted_capabilities = 0, bounding_capabilities = 0;
  bool no_new_privs = false;
  int seccomp_mode = 0, seccomp_filters = 0;
};
// `pidfd` is borrowed. ESRCH where the process ended meanwhile.
[[nodiscard]] Result<ProcessFacts> ReadProcess(pid_t pid, int pidfd);
// Without a pidfd: what the number stands for now.
[[nodiscard]] Result<ProcessFacts> ReadProcess(pid_t pid);
// Of an ancestor no more than this is asked, for one look.
[[nodiscard]] Result<kernel::Lineage> ReadLineage(pid_t pid);

// Whether we may read its memory and duplicate its descriptors; the error's message says what to do.
[[nodiscard]] Status CheckAccess(pid_t pid, int pidfd);
// Whether `fd` is a seccomp listener.
[[nodiscard]] bool IsListener(int fd);
// Our own network namespace and another process's are the same.
[[nodiscard]] bool SameNetns(pid_t pid);
// Its mount namespace holds a file system whose server can let a reader wait for ever, where no signal helps: FUSE, NFS, 9p and
// their like. True also where that cannot be told.
[[nodiscard]] bool HasSlowMount(pid_t pid);

// A pidfd of the process; of a socket's peer (SO_PEERPIDFD, 6.5), else opened by number, with a look that the connection still
// stands afterwards.
[[nodiscard]] Result<UniqueFd> OpenPidfd(pid_t pid);
[[nodiscard]] Result<UniqueFd> OpenPeerPidfd(int socket, pid_t peer);

}  // namespace oarlock::supervisor
