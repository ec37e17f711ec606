// SPDX-License-Identifier: Apache-2.0
#include "notif/filter/page.h"

#include <cstdio>
#include <string_view>
#include <vector>

#include "notif/base/check.h"
#include "notif/base/result.h"
#include "notif/calls.h"

namespace oarlock::filter {
namespace {

constexpr std::string_view kIntroduction =
    R"(# System calls

What the filter of a sandbox does with each system call, on x86_64 and aarch64. Generated from `notif/calls.cc` by the
build target `docs-syscalls`; the filter programs are compiled from the same table and proved equal to it.

- **allowed**: the kernel runs the call. Where no arguments are looked at, it remembers this (5.11 and later), so that the
  call costs nothing more.
- **refused**: the supervisor answers with the errno given, and the refusal is in the audit log under the code given before
  the program sees it. DENY is what a person should see, PROBE a routine fallback.
- **supervised**: the supervisor decides by policy, and performs what it permits itself. docs/ERRNO.md lists the answers.
- **ENOSYS**: answered in the kernel and not recorded, since libraries try these at every start or no program needs them.
- **by arguments**: a rule below decides. Numbers are compared in their low 32 bits, as the kernel takes them; pointers in
  all 64.

Every other number is answered ENOSYS: calls newer than the table, and on x86_64 those of the x32 ABI. A call by another
architecture's entry (`int 0x80` on x86_64, AArch32 on aarch64) kills the process with SIGSYS.

Some rows differ between sandboxes. The conditions: `exec_strict` and `sysv_ipc` are policy fields, `mediation` too; "below
Landlock ABI 6" (Linux 6.12) and "below Landlock ABI 3" (6.2) speak of the kernel, roughly: one that lacks PIDFD_THREAD (6.9) counts
among the former, one that lacks MFD_NOEXEC_SEAL (6.3) among the latter.
)";

constexpr Group kGroups[] = {Group::kNetwork, Group::kFile,   Group::kProcess, Group::kSignal,
                             Group::kMemory,  Group::kIpc,    Group::kTime,    Group::kIdentity,
                             Group::kSandbox, Group::kKernel, Group::kObsolete};

std::string Title(Group group) {
  switch (group) {
    case Group::kFile:
      return "Files and descriptors";
    case Group::kMemory:
      return "Memory";
    case Group::kProcess:
      return "Processes and threads";
    case Group::kSignal:
      return "Signals";
    case Group::kTime:
      return "Time";
    case Group::kNetwork:
      return "Network";
    case Group::kIpc:
      return "Communication between processes";
    case Group::kIdentity:
      return "Identity";
    case Group::kSandbox:
      return "Sandboxes and namespaces";
    case Group::kKernel:
      return "The machine and the kernel";
    case Group::kObsolete:
      return "Obsolete";
  }
  OARLOCK_CHECK(false, "group %u", static_cast<unsigned>(group));
}

std::string Refused(Refusal refusal) {
  const RefusalRow& row = Describe(refusal);
  return "refused: " + std::string(ErrnoName(row.error)) + ", " + std::string(Name(row.kind)) + " `" +
         std::string(Name(row.reason)) + '`';
}

// A notified call. Handlers that choose by more than the row says are the supervisor's.
std::string Notified(const CallRow& row, Refusal refusal) {
  if (refusal == Refusal::kNone) refusal = row.refusal;
  switch (row.handler) {
    case Handler::kRefuse:
    case Handler::kSend:
      return Refused(refusal);
    case Handler::kSetSockOpt:
      return Refused(refusal) + "; SO_LINGER is performed, without a time";
    case Handler::kTask:
      return refusal == row.refusal ? "supervised: of a task outside the sandbox " + Refused(refusal) : Refused(refusal);
    case Handler::kTrace:
      return Refused(refusal) + "; in profile write-allowlist supervised";
    case Handler::kMemory:
      return "supervised: MFD_EXEC " + Refused(refusal);
    case Handler::kNone:
    case Handler::kConnect:
    case Handler::kSocket:
    case Handler::kSocketPair:
    case Handler::kBind:
      return "supervised";
  }
  OARLOCK_CHECK(false, "handler %u", static_cast<unsigned>(row.handler));
}

std::string Outcome(const CallRow& row, Action action, Refusal refusal) {
  switch (action) {
    case Action::kAllow:
      return "allowed";
    case Action::kNotify:
      return Notified(row, refusal);
    case Action::kEnosys:
      return "ENOSYS";
    case Action::kArgs:
      return "by arguments";
  }
  OARLOCK_CHECK(false, "action %u", static_cast<unsigned>(action));
}

std::string Actions(const CallRow& row) {
  std::string text = Outcome(row, row.base.action, Refusal::kNone);
  for (const ShapeVariant& variant : row.variants)
    text += "; " + std::string(variant.when) + ": " + Outcome(row, variant.behaviour.action, Refusal::kNone);
  return text;
}

std::string NumberText(int nr) { return nr < 0 ? "–" : std::to_string(nr); }

// As people write them: modes in octal, flags and requests in hexadecimal, small numbers as they are.
std::string Literal(uint32_t value, Role role) {
  if (value == 0 || (value < 256 && role != Role::kMode && role != Role::kFlags))
    return std::to_string(value);
  char text[16];
  if (role == Role::kMode)
    (void)std::snprintf(text, sizeof(text), "%#o", value);
  else
    (void)std::snprintf(text, sizeof(text), "%#x", value);
  return text;
}

std::string Values(std::span<const uint32_t> values, Role role) {
  std::string text;
  for (const uint32_t value : values) text += (text.empty() ? "" : ", ") + Literal(value, role);
  return text;
}

std::string Test(const CallRow& row, const ArgTest& test) {
  const Role role = row.roles[test.arg];
  std::string arg = "argument " + std::to_string(test.arg);
  if (role == Role::kMode) arg += " (mode)";
  if (role == Role::kFlags) arg += " (flags)";
  if (test.op == ArgTest::Op::kPointerSet) return arg + " is no null pointer";
  const bool is_in = test.op == ArgTest::Op::kIn;
  const bool zero = test.values.size() == 1 && test.values[0] == 0;
  if (zero && test.mask != 0xffffffff)
    return arg + (is_in ? " has no bit of " : " has a bit of ") + Literal(test.mask, role);
  if (test.mask != 0xffffffff) arg += " & " + Literal(test.mask, role);
  return arg + (is_in ? " is " : " is not ") + (test.values.size() == 1 ? "" : "among ") +
         Values(test.values, role);
}

std::string Rule(const CallRow& row, const ArgRule& rule) {
  std::string text;
  for (const ArgClause& clause : rule.clauses) {
    text += "- ";
    for (const ArgTest& test : clause.tests)
      text += (&test == clause.tests.data() ? "" : ", and ") + Test(row, test);
    text += ": " + Outcome(row, clause.outcome, clause.refusal) + '\n';
  }
  return text + "- else: " + Outcome(row, rule.otherwise, Refusal::kNone) + "\n";
}

// Rules with the calls that share them, in the order of the table.
struct SharedRule {
  const ArgRule* rule;
  std::string_view when;
  const CallRow* row;
  std::string names;
};

void Note(std::vector<SharedRule>& rules, const CallRow& row, const Behaviour& behaviour,
          std::string_view when) {
  if (behaviour.rule == nullptr) return;
  const std::string name = '`' + std::string(row.name) + '`';
  for (SharedRule& known : rules) {
    if (known.rule != behaviour.rule || known.when != when || known.row->handler != row.handler) continue;
    known.names += ", " + name;
    return;
  }
  rules.push_back({behaviour.rule, when, &row, name});
}

std::string Rules() {
  std::vector<SharedRule> rules;
  for (const CallRow& row : Calls()) {
    Note(rules, row, row.base, "");
    for (const ShapeVariant& variant : row.variants) Note(rules, row, variant.behaviour, variant.when);
  }
  std::string text = "\n## Argument rules\n\nThe first line that holds decides. Arguments count from 0.\n";
  for (const SharedRule& rule : rules) {
    text += "\n### " + rule.names + (rule.when.empty() ? "" : " (" + std::string(rule.when) + ")") + "\n\n";
    text += Rule(*rule.row, *rule.rule);
  }
  return text;
}

}  // namespace

std::string SyscallsPage() {
  std::string page(kIntroduction);
  for (const Group group : kGroups) {
    page +=
        "\n## " + Title(group) + "\n\n| call | x86_64 | aarch64 | action | why |\n|---|---|---|---|---|\n";
    for (const CallRow& row : Calls()) {
      if (row.group != group) continue;
      page += "| `" + std::string(row.name) + "` | " + NumberText(row.x86_64) + " | " +
              NumberText(row.aarch64) + " | " + Actions(row) + " | " + std::string(row.why) + " |\n";
    }
  }
  return page + Rules();
}

}  // namespace oarlock::filter
