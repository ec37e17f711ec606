// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "notif/refusals.h"

// The one table of system calls. The filter programs, their proof, the supervisor's dispatch, docs/SYSCALLS.md, the audit
// vocabulary and the tests all read it. One row per call, by name; a number of -1 means that the architecture lacks it.
namespace oarlock {

enum class Arch : uint8_t { kX86_64, kAarch64 };
#if defined(__x86_64__)
inline constexpr Arch kNativeArch = Arch::kX86_64;
#elif defined(__aarch64__)
inline constexpr Arch kNativeArch = Arch::kAarch64;
#else
#error "Oarlock knows x86_64 and aarch64"
#endif

// A filter's variants. All else that a policy says is the supervisor's decision, so there are few.
enum class Age : uint8_t {
  kCurrent,          // Landlock ABI 6 (6.12), which keeps signals inside
  kNoThreadPidfd,    // below: signals are the supervisor's to judge. PIDFD_THREAD (6.9) may be missing too, so that the leader's
                     // descriptor table stands for its threads', which must not differ
  kNoTruncateRight,  // below ABI 3 (6.2): truncation by path is refused too. And below 6.3, whose MFD_NOEXEC_SEAL makes memfd_create
                     // mediable: the one kernel between is held to more than it needs
};
// Few kernels lie between what is told apart here, and those are held to more than they need.
[[nodiscard]] constexpr Age AgeOf(int landlock_abi, bool thread_pidfds, bool noexec_memory) noexcept {
  // Without Landlock at all nobody judges truncation, and the filter need not stand in.
  if ((landlock_abi > 0 && landlock_abi < 3) || !noexec_memory) return Age::kNoTruncateRight;
  return landlock_abi < 6 || !thread_pidfds ? Age::kNoThreadPidfd : Age::kCurrent;
}
// Whose socket calls are.
enum class Network : uint8_t {
  kFull,     // the supervisor's, each socket() and connect()
  kConnect,  // the same without the socket() calls that registers prove harmless: mediation "connect"
  kHost,     // the kernel's: net "host"
};
struct Shape {
  Network network = Network::kFull;
  bool exec_strict = false;       // memfd_create is the supervisor's, execveat(AT_EMPTY_PATH) answers ENOSYS
  bool sysv_ipc = false;          // System V IPC and POSIX message queues allowed
  bool gid_zero = false;          // the module's gid is 0: chmod's setgid bit is refused too
  Age age = Age::kCurrent;
  friend bool operator==(const Shape&, const Shape&) = default;
};
inline constexpr unsigned kShapeCount = 3 * 2 * 2 * 2 * 3;
[[nodiscard]] unsigned ShapeIndex(const Shape& shape) noexcept;      // 0 .. kShapeCount-1
[[nodiscard]] Shape ShapeAt(unsigned index) noexcept;
// "full+strict", "connect+sysv+gid0+nothreadpidfd", "host" ...: the `filter` of the admission message. Static storage.
[[nodiscard]] std::string_view ShapeName(const Shape& shape) noexcept;

// What the filter does with a call.
enum class Action : uint8_t {
  kAllow,   // on the number alone, so that the kernel's bitmap caches it (5.11)
  kNotify,  // the supervisor answers
  kEnosys,  // ERRNO(ENOSYS) in the kernel, not recorded
  kArgs,    // an argument rule decides
};

// One test of an argument. Only the low 32 bits are compared, since that is what the kernel takes for an int (E-07);
// `kPointerSet` alone looks at both halves.
struct ArgTest {
  enum class Op : uint8_t {
    kIn,          // (low32(arg) & mask) is one of `values`
    kNotIn,       // ... is none of them
    kPointerSet,  // the 64-bit argument is not null; mask and values unused
  };
  uint8_t arg;
  Op op;
  uint32_t mask;
  std::span<const uint32_t> values;
};
// All tests hold -> outcome. Outcomes are kAllow, kNotify or kEnosys.
struct ArgClause {
  std::span<const ArgTest> tests;
  Action outcome;
  Refusal refusal = Refusal::kNone;  // what a call that this clause notifies is refused as; kNone: as its row says
};
// The first clause that holds decides, else `otherwise`.
struct ArgRule {
  std::span<const ArgClause> clauses;
  Action otherwise;
};
struct Behaviour {
  Action action;
  const ArgRule* rule;  // if and only if action is kArgs
};

// Which code of the supervisor answers a notify row.
enum class Handler : uint8_t {
  kNone,        // never notified
  kConnect,
  kSocket,
  kSocketPair,
  kSetSockOpt,
  kSend,        // sendto, sendmsg, sendmmsg
  kBind,
  kMemory,      // memfd_create: the supervisor makes the file and gives it
  kTask,        // names a task: let through where that is one of the sandbox's own
  kTrace,       // debugging: refused, or as kTask where the grant says so
  kRefuse,      // RefusalOf, whatever the policy
};

enum class Group : uint8_t {
  kFile, kMemory, kProcess, kSignal, kTime, kNetwork, kIpc, kIdentity, kSandbox, kKernel, kObsolete,
};

// What an argument is to the kernel. kAddress is a socket address that the call reads (one that it writes is a kPointer)
// and is followed by its kAddressLength.
// kTask: the number of a thread or process. kTaskOrGroup: as kill() takes it: 0 or less than -1 is a process group, -1 everybody.
enum class Role : uint8_t {
  kNone, kInt, kFlags, kFd, kPointer, kAddress, kAddressLength, kSize, kPath, kMode, kTask, kTaskOrGroup,
};

// What the shapes that `applies` accepts do instead of the row's base. Where two apply, the first is the one that gives less.
struct ShapeVariant {
  bool (*applies)(const Shape&) noexcept;
  Behaviour behaviour;
  std::string_view when;  // the property in words, for docs/SYSCALLS.md
};

struct CallRow {
  std::string_view name;
  int16_t x86_64;
  int16_t aarch64;
  Group group;
  Behaviour base;
  Handler handler;
  Refusal refusal;       // what a notified call of this row is refused as, where the handler does not choose
  Role roles[6];
  std::string_view why;  // what it is and why this action, in a sentence
  std::span<const ShapeVariant> variants = {};  // the first that applies wins over `base`
};

// Sorted by name, unique by name and by number.
[[nodiscard]] std::span<const CallRow> Calls() noexcept;
// The row behind a number, or null. O(1); `nr` may be anything.
[[nodiscard]] const CallRow* FindCall(Arch arch, uint32_t nr) noexcept;
[[nodiscard]] const CallRow* FindCall(std::string_view name) noexcept;
[[nodiscard]] constexpr int Number(const CallRow& row, Arch arch) noexcept {
  return arch == Arch::kX86_64 ? row.x86_64 : row.aarch64;
}
[[nodiscard]] std::string_view Name(Group group) noexcept;

// What the filter of `shape` does with `row`: the table's meaning. The programs are compiled from this and proved against it.
[[nodiscard]] Behaviour BehaviourIn(const CallRow& row, const Shape& shape) noexcept;
// The outcome for concrete arguments (the oracle of the tests).
[[nodiscard]] Action Evaluate(const Behaviour& behaviour, std::span<const uint64_t, 6> args) noexcept;

// What a notified call is refused as where its handler does not choose: the refusal of the clause that notified it, else
// the row's. The filter cannot pass this on (a notification carries registers alone), so the supervisor asks the same
// rule about the same registers, which the caller can no longer change. Needs no shape: rules of a row differ between
// shapes only by clauses that come later or by masks of the same refusal, so the strictest shape's answer is everyone's
// (tests/notif/calls_test.cc). kNone for a row that is never notified.
[[nodiscard]] Refusal RefusalOf(const CallRow& row, std::span<const uint64_t, 6> args) noexcept;

// The address length of the launcher's proof of the loop where net is "host": connect() with it is notified there, and natively
// EINVAL, being more than a sockaddr_storage.
inline constexpr uint32_t kLoopProbeLength = 129;

// What the launcher may call between loading the filter and the supervisor's acknowledgement, with arguments as it uses
// them. None is ever notified, in any shape: nobody would answer yet (checked while calls.cc compiles).
struct LauncherCall {
  std::string_view name;
  std::array<uint64_t, 6> args;
};
[[nodiscard]] std::span<const LauncherCall> LauncherCalls() noexcept;

}  // namespace oarlock
