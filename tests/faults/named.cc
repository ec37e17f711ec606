// SPDX-License-Identifier: Apache-2.0
#include "tests/faults/matrix.h"

namespace oarlock::test::faults {

const std::vector<Named>& NamedContinuations() {
  constexpr auto kWhole = Named::As::kWhole, kLess = Named::As::kLess, kStart = Named::As::kStart;
  static const std::vector<Named> kNamed = {
      // --- the C library's own: before main, and its memory
      {"arch_prctl", "ARCH_SET_FS", "", "no thread-local storage: it says so and ends", kStart},
      {"brk", "", "", "no memory for thread-local storage: it ends by a signal before main", kStart},
      {"mprotect", "PROT_READ)", "", "its own data stay writable: it says so and ends", kStart},
      {"brk", "", "", "malloc takes its memory by mmap", kWhole},
      {"set_tid_address", "", "", "for threads, and the launcher has none", kWhole},
      {"set_robust_list", "", "", "for threads, and the launcher has none", kWhole},
      {"rseq", "", "", "for threads, and the launcher has none", kWhole},
      {"prlimit64", "RLIMIT_STACK, NULL", "", "for stacks of threads, and the launcher has none", kWhole},
      {"readlink", "\"/proc/self/exe\"", "", "its $ORIGIN, for libraries that a static program does not load", kWhole},
      {"getrandom", "GRND_NONBLOCK", "", "malloc's marks against double frees", kWhole},

      // --- asked again
      {"openat", "\"/proc/self/", "error=EINTR", "retried", kWhole},
      {"openat", "\"/etc/passwd\"", "error=EINTR", "retried", kWhole},
      {"read", "", "error=EINTR", "retried", kWhole},
      {"pread64", "", "error=EINTR", "retried", kWhole},
      {"recvfrom", "", "error=EINTR", "retried", kWhole},
      {"sendmsg", "", "error=EINTR", "retried", kWhole},
      {"wait4", "", "error=EINTR", "retried", kWhole},
      {"poll", "", "", "a wait: asked again until the time is over", kWhole},
      {"poll", "", "retval=0", "a wait: asked again until the time is over", kWhole},

      // --- nothing hangs on it
      {"rt_sigaction", "SIGPIPE, {sa_handler=SIG_IGN", "", "a reader of stderr that has gone then gives a signal for an exit code; the module's SIGPIPE was never changed", kWhole},
      {"rt_sigaction", "SIGPIPE, {sa_handler=SIG_IGN", "retval=0", "the same", kWhole},
      {"close", "", "", "what stays open is closed by the exec, or found by the last look at the table", kWhole},
      {"close", "", "retval=0", "the same", kWhole},
      {"getpid", "", "", "our word for the pid: the supervisor takes the kernel's", kWhole},
      {"getpid", "", "retval=0", "the same", kWhole},
      {"geteuid", "", "", "cannot fail, and who answers it in the kernel's place is found by the first question", kWhole},
      {"geteuid", "", "retval=0", "the same", kWhole},
      {"getegid", "", "", "cannot fail, and who answers it in the kernel's place is found by the first question", kWhole},
      {"getegid", "", "retval=0", "the same", kWhole},
      {"pidfd_open", "", "", "taken for an older kernel, for which the filter is stricter", kWhole},
      {"landlock_create_ruleset", "NULL, 0, 0x2 ", "", "the errata are for the report alone", kWhole},
      {"landlock_create_ruleset", "NULL, 0, 0x2 ", "retval=0", "the same", kWhole},
      {"prctl", "PR_SET_DUMPABLE", "", "the exec does it again; a supervisor that cannot read us refuses", kWhole},
      {"prctl", "PR_SET_DUMPABLE", "retval=0", "the same", kWhole},
      {"setsockopt", "SO_SNDTIMEO", "retval=0", "a full backlog is then waited for without a limit", kWhole},
      {"pipe2", "", "retval=0", "it only tells why a private supervisor did not start", kWhole},
      {"fcntl", "F_GETFD)", "retval=0", "the descriptor is open, and its flag is what is said", kWhole},
      {"fcntl", "F_SETFD, 0)", "retval=0", "the flag is what is asked for already, or the look after it shows that it is not", kWhole},
      {"fcntl", "F_GETFL)", "retval=0", "tells handles without access (O_PATH), which only name what a module may open by its rules", kWhole},

      {"setsid", "", "error=EPERM", "what the kernel says as well to a group's leader, who then gives up the terminal alone", kWhole},
      {"prctl", "PR_CAPBSET_DROP, 0x", "error=EINVAL", "what the kernel says as well: there is no capability of that number", kWhole},
      {"prctl", "PR_CAPBSET_READ, 0x", "error=EINVAL", "what the kernel says as well: there is no capability of that number", kWhole},

      {"memfd_create", "", "", "taken for a newer kernel, where the supervisor makes them, or an older one, where there are none", kWhole},
      {"newfstatat", "(0, \"\",", "", "two numbers of one description get one each then", kWhole},
      {"newfstatat", "(1, \"\",", "", "the same", kWhole},
      {"newfstatat", "(2, \"\",", "", "the same", kWhole},
      {"kcmp", "", "", "told by inode and flags then", kWhole},
      {"kcmp", "", "retval=0", "of two descriptions of one pipe with the same flags, one is enough", kWhole},
      {"openat", "\"/proc/self/fd/", "error=EACCES", "what the kernel says of a pipe of another user: its description stays shared", kWhole},
      {"openat", "\"/proc/self/fd/", "error=EPERM", "the same", kWhole},
      {"openat", "\"/proc/self/fd/", "error=EINTR", "retried", kWhole},
      {"poll", "", "error=EINTR", "retried", kWhole},
      {"rt_sigaction", "SIGHUP, {sa_handler=SIG_IGN", "retval=0", "ignored anew for one that waits, and none does", kWhole},

      // --- files
      {"newfstatat", "\"/run/user/", "", "taken for being there: no writable root may hold it", kWhole},
      {"newfstatat", "", "error=EACCES", "what this user cannot get to, neither can what it starts: an optional root is left out, a place is beyond its reach", kLess},
      {"readlink", "", "error=EACCES", "the same", kLess},
      {"openat", "O_RDONLY|O_CLOEXEC|O_DIRECTORY)", "", "one sample less for the proof that rules were added; the root directory's, which proves the domain, must be EACCES", kWhole},
      {"connect", "sin_port=htons(1)", "error=EACCES", "what the wall says as well", kWhole},
      {"landlock_add_rule", "", "retval=0", "less than is granted, where the proof has no sample of it. A filter cannot tell one rule from another, and without all of them there is no launch", kLess},

      // --- a proof that is answered in the kernel's place, where the step before it was done; if it was not, that is another call's case
      {"getgroups", "", "retval=0", "they are none", kWhole},
      {"capget", "", "retval=0", "what is not told is taken for every capability: all is dropped, and what remains is found", kWhole},
      {"rt_sigaction", "SIGHUP, NULL", "retval=0", "what it did is then a handler that never was, which the exec takes away", kWhole},
      {"prctl", "PR_CAPBSET_READ", "retval=0", "it is dropped", kWhole},
      {"prctl", "PR_CAPBSET_DROP", "retval=0", "one that this process never had: the look after it shows any other", kWhole},
      {"prctl", "PR_CAP_AMBIENT_CLEAR_ALL", "retval=0", "capset takes them too", kWhole},
      {"lseek", "", "retval=0", "the table is at its start", kWhole},
      {"getdents64", "", "retval=0", "the end, which it was; at the start the table would lack 0 to 2", kWhole},
      {"read", "", "retval=0", "the end, which it was; at the start nothing can be told, which stops", kWhole},
  };
  return kNamed;
}

}  // namespace oarlock::test::faults
