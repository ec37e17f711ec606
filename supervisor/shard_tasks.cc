// SPDX-License-Identifier: Apache-2.0
// Calls that name tasks: signals, limits, scheduling, priority. Those about the sandbox's own go on, and no others.
#include <algorithm>
#include <cerrno>
#include <climits>

#include "notif/base/check.h"
#include "notif/kernel.h"
#include "supervisor/shard.h"
#include "supervisor/watched.h"

namespace oarlock::supervisor {

// The call goes on with the number that was looked at, in a register that nobody can change. Between the two the task may end
// and its number go to another of the same user: SECURITY.md says what that leaves.
void Shard::HandleTask(uint32_t at, const CallRow& row) {
  Call& call = calls_[at];
  const Refusal refusal = RefusalOf(row, call.args);
  if (refusal != row.refusal) return Refuse(at, refusal == Refusal::kNone ? Refusal::kCallDenied : refusal);
  const auto* role = std::ranges::find_if(row.roles, [](Role r) { return r == Role::kTask || r == Role::kTaskOrGroup; });
  OARLOCK_CHECK(role != std::end(row.roles));
  const auto number = static_cast<pid_t>(static_cast<uint32_t>(call.args[role - std::begin(row.roles)]));
  const bool many = *role == Role::kTaskOrGroup && number <= 0 && number != INT_MIN;
  AnswerFound(at, many ? IsGroupInside(call, -number) : IsInside(call, number), refusal);
}

// Attaching is judged as above, and by Landlock, which lets nobody trace what is not confined as much. What is done with a
// process afterwards the kernel allows to its tracer alone.
void Shard::HandleTrace(uint32_t at, const CallRow& row) {
  constexpr uint32_t kAttach = 16, kSeize = 0x4206;
  Call& call = calls_[at];
  if (!sessions_[call.session].session->trace) return Refuse(at, row.refusal);
  const auto request = static_cast<uint32_t>(call.args[0]);
  const bool traced_already = row.roles[0] != Role::kTask && request != kAttach && request != kSeize;
  if (traced_already) return Approve(at);
  int found = 1;
  for (size_t i = 0; i < std::size(row.roles) && found == 1; ++i)
    if (row.roles[i] == Role::kTask) found = IsInside(call, static_cast<pid_t>(static_cast<uint32_t>(call.args[i])));
  AnswerFound(at, found, Refusal::kForeignTask);
}

// By what IsInside or IsGroupInside said.
void Shard::AnswerFound(uint32_t at, int found, Refusal refusal) {
  Call& call = calls_[at];
  if (kernel::IdValid(sessions_[call.session].session->listener.get(), call.id) != 0) return Release(at);
  if (IsShortage(-found)) return TryLater(at);
  if (found == -ESRCH) return Answer(at, -ESRCH);
  if (found != 1) return Refuse(at, refusal);
  Approve(at);
}

// 1, or 0 where the session's tasks live in a pid namespace of their own: what a number means there, nobody can tell here.
int Shard::HasOwnNumbers(const Call& call) {
  Session& session = *sessions_[call.session].session;
  if (!session.own_numbers) {
    kernel::TaskPlace caller;
    if (const int error = kernel::LocateTask(call.tid, &caller); error != 0) return error;
    session.own_numbers = !caller.nested;
  }
  return *session.own_numbers ? 1 : 0;
}

// 1: the task is the caller's own, or one of the session. 0: not, or nobody can tell. -ESRCH: there is none; or our own shortage.
int Shard::IsInside(const Call& call, pid_t tid) {
  const Session& session = *sessions_[call.session].session;
  if (tid <= 0) return -ESRCH;
  if (const int own = HasOwnNumbers(call); own != 1) return own;
  // By far the most: raise(), abort(), pthread_kill().
  if (tid == call.tid || kernel::InOneProcess(call.tid, tid)) return 1;
  kernel::TaskPlace task;
  if (const int error = kernel::LocateTask(tid, &task); error != 0) return error == -ESRCH || IsShortage(-error) ? error : 0;
  // The first process may have had children before it was confined.
  if (task.seccomp_filters < session.seccomp_filters) return 0;
  if (const int found = Descends(session, task.tgid); found != 0) return found;
  // Its parents may have ended. A session (of processes) holds the descendants of its leader alone.
  kernel::Lineage own, leader;
  if (const int error = kernel::ReadLineage(task.tgid, &own); error != 0) return IsShortage(-error) ? error : 0;
  if (own.session == task.tgid || own.session <= 1 || own.start_ticks < session.admitted_ticks) return 0;
  if (const int error = kernel::ReadLineage(own.session, &leader); error != 0) return IsShortage(-error) ? error : 0;
  return leader.session == own.session ? Descends(session, own.session) : 0;
}

// 1: it is the session's first process or comes of it since the session was admitted.
int Shard::Descends(const Session& session, pid_t pid) const {
  kernel::Lineage lineage;
  const pid_t start = pid;
  int restarts = 0;
  for (size_t depth = 0; depth < kMaxAncestors && pid > 1; ++depth, pid = lineage.parent) {
    if (const int error = kernel::ReadLineage(pid, &lineage); error != 0) {
      if (error != -ESRCH || pid == start || ++restarts > kLineageRestarts) return IsShortage(-error) ? error : 0;
      // A parent has ended since it was named: its child has another now.
      lineage.parent = start;
      continue;
    }
    if (pid == session.facts.pid && lineage.start_ticks == session.start_ticks) return 1;
    if (lineage.start_ticks < session.admitted_ticks) return 0;
  }
  return 0;
}

// As IsInside, of all who are in a process group now. 0: the caller's own group; 1: everybody, which is never ours. The whole machine
// is looked through, 1 us each: who asks for this often among many goes to a lane of his own.
int Shard::IsGroupInside(const Call& call, pid_t group) {
  if (group == 1) return 0;
  if (const int own = HasOwnNumbers(call); own != 1) return own;
  return Watched(call.session, Beat::Step::kRead, [&] {
    if (group == 0) group = kernel::GroupOf(call.tid);
    if (group < 0) return group;
    const UniqueFd processes(kernel::OpenProcesses());
    if (!processes.valid()) return processes.get();
    bool any = false;
    pid_t pids[128];
    for (;;) {
      const int count = kernel::ListProcesses(processes.get(), pids);
      if (count < 0) return count;
      if (count == 0) return any ? 1 : -ESRCH;
      for (const pid_t pid : std::span(pids, static_cast<size_t>(count))) {
        // One that we may not look at could be a member.
        const int its = kernel::GroupOf(pid);
        if (its == -ESRCH || (its >= 0 && its != group)) continue;
        if (its < 0) return its;
        const int found = IsInside(call, pid);
        if (found == -ESRCH) continue;
        if (found != 1) return found;
        any = true;
      }
    }
  });
}

}  // namespace oarlock::supervisor
