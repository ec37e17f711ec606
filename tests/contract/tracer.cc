// SPDX-License-Identifier: Apache-2.0
#include "tests/contract/tracer.h"

#include <elf.h>
#include <sched.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "notif/base/check.h"

namespace oarlock::test {
namespace {

bool SetResult(pid_t pid, long value) {
  user_regs_struct registers{};
  iovec part{&registers, sizeof(registers)};
  if (::ptrace(PTRACE_GETREGSET, pid, NT_PRSTATUS, &part) != 0) return false;
#ifdef __x86_64__
  registers.rax = static_cast<unsigned long long>(value);
#else
  registers.regs[0] = static_cast<unsigned long long>(value);
#endif
  return ::ptrace(PTRACE_SETREGSET, pid, NT_PRSTATUS, &part) == 0;
}

void Peek(pid_t pid, const TracedCall& call, abi::LandlockRulesetAttr* ruleset) {
  iovec here{ruleset, std::min<size_t>(call.arguments[1], sizeof(*ruleset))};
  iovec there{reinterpret_cast<void*>(call.arguments[0]), here.iov_len};
  (void)::process_vm_readv(pid, &here, 1, &there, 1, 0);
}

}  // namespace

std::vector<TracedCall> Trace::Of(long nr) const {
  std::vector<TracedCall> found;
  std::ranges::copy_if(calls, std::back_inserter(found), [nr](const TracedCall& call) { return call.nr == nr; });
  return found;
}

Trace RunTraced(ProcessOptions options, int until_exec, int cap) {
  Trace trace;
  options.before_exec = [before = options.before_exec] {
    if (before) before();
    if (::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) ::_exit(117);
  };
  Process process(options);
  const pid_t pid = process.pid();
  constexpr long kOptions = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEEXIT | PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL;
  bool first = true;
  int execs = 0, deliver = 0;
  TracedCall call;
  for (;;) {
    int status = 0;
    // Its end is for Process to reap: it is let go at its exit stop.
    if (::waitpid(pid, &status, __WALL) != pid) break;
    OARLOCK_CHECK(WIFSTOPPED(status), "it ended before it could be looked at");
    deliver = 0;
    const int event = status >> 16;
    if (first) {
      first = false;
      OARLOCK_CHECK(::ptrace(PTRACE_SETOPTIONS, pid, nullptr, kOptions) == 0);
    } else if (event == PTRACE_EVENT_EXIT) {
      break;
    } else if (event == PTRACE_EVENT_EXEC) {
      if (++execs == until_exec) break;
    } else if (WSTOPSIG(status) == (SIGTRAP | 0x80)) {
      __ptrace_syscall_info info{};
      OARLOCK_CHECK(::ptrace(PTRACE_GET_SYSCALL_INFO, pid, sizeof(info), &info) > 0);
      if (info.op == PTRACE_SYSCALL_INFO_ENTRY) {
        call = TracedCall{};
        call.nr = static_cast<long>(info.entry.nr);
        std::copy_n(info.entry.args, 6, call.arguments.begin());
        // An execve that works does not come back as one.
        if (call.nr == SYS_execve) trace.calls.push_back(call);
        if (call.nr == SYS_clone && (call.arguments[0] & CLONE_THREAD) != 0) trace.several_threads = true;
        if (call.nr == SYS_clone3) trace.several_threads = true;
      } else if (info.op == PTRACE_SYSCALL_INFO_EXIT) {
        call.result = static_cast<long>(info.exit.rval);
        const bool create = call.nr == abi::kSysLandlockCreateRuleset;
        if (create && call.arguments[0] != 0) Peek(pid, call, &call.ruleset);
        if (create && call.arguments[0] == 0 && call.arguments[2] == abi::kLandlockCreateRulesetVersion && cap != 0 && call.result > cap) {
          OARLOCK_CHECK(SetResult(pid, cap));
          call.result = cap;
        }
        if (call.nr != SYS_execve) trace.calls.push_back(call);
      }
    } else if (event == 0) {
      deliver = WSTOPSIG(status) == SIGTRAP ? 0 : WSTOPSIG(status);
    }
    if (::ptrace(PTRACE_SYSCALL, pid, nullptr, deliver) != 0) break;
  }
  (void)::ptrace(PTRACE_DETACH, pid, nullptr, 0);
  trace.outcome = process.Wait();
  return trace;
}

Outcome RunCapped(ProcessOptions options, int cap) { return RunTraced(std::move(options), 0, cap).outcome; }

}  // namespace oarlock::test
