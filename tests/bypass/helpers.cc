// SPDX-License-Identifier: Apache-2.0
// What of this program others start: victims, a payload to execute, and a launcher of Landlock alone to compare with.
#include <fcntl.h>
#include <linux/landlock.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "tests/bypass/inside.h"

namespace bypass {
namespace {

// Stands by until its stdin ends. Its secret lies where process_vm_readv finds it.
int BeVictim(const char* secret) {
  static char memory[64];
  (void)snprintf(memory, sizeof(memory), "%s", secret);
  (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
  WriteLine(1, std::to_string(reinterpret_cast<unsigned long>(memory)));
  char byte;
  while (read(0, &byte, 1) > 0) {
  }
  return 0;
}

// Newer than Debian 12's header.
struct Ruleset {
  uint64_t handled_access_fs, handled_access_net, scoped;
};
struct PathRule {
  uint64_t allowed_access;
  int32_t parent_fd;
} __attribute__((packed));
struct PortRule {
  uint64_t allowed_access, port;
};

// "--landlock PORT TOOLS WORK -- PROGRAM...": everything that this kernel's Landlock has, and nothing else.
int LaunchByLandlock(int argc, char** argv) {
  if (argc < 7) return 64;
  const long abi = syscall(SYS_landlock_create_ruleset, nullptr, 0, 1);
  if (abi < 4) return 70;
  const uint64_t all = abi >= 5 ? 0xffff : 0x7fff;
  Ruleset ruleset{all, 3, abi >= 6 ? 3UL : 0UL};
  const int fd = static_cast<int>(syscall(SYS_landlock_create_ruleset, &ruleset, abi >= 6 ? sizeof(ruleset) : 16, 0));
  if (fd < 0) return 70;
  const uint64_t read = LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;
  const auto add = [&](const char* path, uint64_t access) {
    PathRule rule{access, open(path, O_PATH | O_CLOEXEC)};
    return rule.parent_fd < 0 || syscall(SYS_landlock_add_rule, fd, 1, &rule, 0) == 0;
  };
  for (const char* path : {"/usr", "/lib", "/lib64", "/bin", "/etc", "/proc"})
    if (!add(path, read)) return 70;
  if (!add(argv[3], read) || !add(argv[4], all & ~uint64_t{LANDLOCK_ACCESS_FS_EXECUTE})) return 70;
  PortRule port{2 /* connect */, static_cast<uint64_t>(std::atoi(argv[2]))};
  if (syscall(SYS_landlock_add_rule, fd, 2, &port, 0) != 0) return 70;
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || syscall(SYS_landlock_restrict_self, fd, 0) != 0) return 70;
  (void)close(fd);
  (void)execv(argv[6], argv + 6);
  return 71;
}

}  // namespace

int RunHelper(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  if (mode == "--inside") return RunInside();
  if (mode == "--victim" && argc > 2) return BeVictim(argv[2]);
  if (mode == "--landlock") return LaunchByLandlock(argc, argv);
  if (mode == "--payload") return 42;
  if (mode == "--euid") return static_cast<int>(geteuid() % 251);
  return -1;
}

}  // namespace bypass
