// SPDX-License-Identifier: Apache-2.0
#include "supervisor/signals.h"

#include <gtest/gtest.h>

#include <csignal>
#include <initializer_list>

namespace oarlock::supervisor {
namespace {

using kernel::TaskSignals;

constexpr pid_t kLeader = 100, kOther = 101;

uint64_t Set(std::initializer_list<int> signals) {
  uint64_t set = 0;
  for (const int signal : signals) set |= 1ULL << (signal - 1);
  return set;
}

// A process with `threads` threads that catches SIGUSR1, SIGALRM, SIGCHLD and a real-time signal.
TaskSignals Task(int threads) {
  TaskSignals task;
  task.tgid = kLeader;
  task.threads = threads;
  task.state = 'S';
  task.caught = Set({SIGUSR1, SIGALRM, SIGCHLD, SIGRTMAX});
  return task;
}

// --- which signals count -----------------------------------------------------------------------------------

TEST(HasDeliverable, EverySignalThatIsNotBlockedIgnoredOrIgnoredByDefault) {
  const TaskSignals plain = [] {
    TaskSignals task = Task(1);
    task.caught = 0;
    return task;
  }();
  for (int signal = 1; signal <= 64; ++signal) {
    SCOPED_TRACE(signal);
    const bool ignored_by_default =
        signal == SIGCHLD || signal == SIGCONT || signal == SIGURG || signal == SIGWINCH;
    EXPECT_EQ(HasDeliverable(Set({signal}), plain), !ignored_by_default);
    TaskSignals caught = plain;
    caught.caught = Set({signal});
    EXPECT_TRUE(HasDeliverable(Set({signal}), caught));
    TaskSignals blocked = caught;
    blocked.blocked = Set({signal});
    EXPECT_FALSE(HasDeliverable(Set({signal}), blocked));
    TaskSignals ignored = plain;
    ignored.ignored = Set({signal});
    EXPECT_FALSE(HasDeliverable(Set({signal}), ignored));
  }
  EXPECT_FALSE(HasDeliverable(0, plain));
}

TEST(HasDeliverable, OneThatCountsIsEnough) {
  TaskSignals task = Task(1);
  task.blocked = Set({SIGTERM});
  task.ignored = Set({SIGHUP});
  task.caught = 0;
  EXPECT_FALSE(HasDeliverable(Set({SIGTERM, SIGHUP, SIGCHLD, SIGURG}), task));
  EXPECT_TRUE(HasDeliverable(Set({SIGTERM, SIGHUP, SIGCHLD, SIGURG, SIGINT}), task));
}

// --- the rule of wire.md section 3 -------------------------------------------------------------------------

TEST(JudgeSignals, NothingPendingIsNothing) {
  EXPECT_EQ(JudgeSignals(kLeader, Task(1), std::nullopt), SignalVerdict::kNone);
  EXPECT_EQ(JudgeSignals(kLeader, Task(2), Task(2)), SignalVerdict::kNone);
  EXPECT_EQ(JudgeSignals(kOther, Task(2), Task(2)), SignalVerdict::kNone);
  EXPECT_EQ(JudgeSignals(kOther, Task(2), std::nullopt), SignalVerdict::kNone);
}

TEST(JudgeSignals, OneOfTheThreadItselfRestarts) {
  for (const int threads : {1, 2, 64})
    for (const pid_t tid : {kLeader, kOther})
      for (const int signal : {SIGUSR1, SIGTERM, SIGSTOP, SIGCHLD, SIGRTMAX}) {
        TaskSignals task = Task(threads);
        task.thread_pending = Set({signal});
        EXPECT_EQ(JudgeSignals(tid, task, Task(threads)), SignalVerdict::kRestart) << signal;
        EXPECT_EQ(JudgeSignals(tid, task, std::nullopt), SignalVerdict::kRestart) << signal;
      }
}

TEST(JudgeSignals, OneOfTheThreadThatDoesNotCountIsNothing) {
  for (const pid_t tid : {kLeader, kOther}) {
    TaskSignals task = Task(2);
    task.thread_pending = Set({SIGUSR1});
    task.blocked = Set({SIGUSR1});
    EXPECT_EQ(JudgeSignals(tid, task, Task(2)), SignalVerdict::kNone);
    task = Task(2);
    task.thread_pending = Set({SIGURG, SIGWINCH, SIGCONT});
    EXPECT_EQ(JudgeSignals(tid, task, Task(2)), SignalVerdict::kNone);
  }
}

TEST(JudgeSignals, AnOnlyThreadTakesTheProcesss) {
  for (const int signal : {SIGALRM, SIGTERM, SIGINT, SIGTSTP, SIGCHLD}) {
    TaskSignals task = Task(1);
    task.shared_pending = Set({signal});
    EXPECT_EQ(JudgeSignals(kLeader, task, std::nullopt), SignalVerdict::kRestart) << signal;
    task.blocked = Set({signal});
    EXPECT_EQ(JudgeSignals(kLeader, task, std::nullopt), SignalVerdict::kNone) << signal;
  }
  TaskSignals uncaught = Task(1);
  uncaught.caught = 0;
  uncaught.shared_pending = Set({SIGCHLD});
  EXPECT_EQ(JudgeSignals(kLeader, uncaught, std::nullopt), SignalVerdict::kNone);
}

TEST(JudgeSignals, OfSeveralThreadsTheLeaderTakesTheProcesss) {
  TaskSignals task = Task(3);
  task.shared_pending = Set({SIGALRM});
  EXPECT_EQ(JudgeSignals(kLeader, task, std::nullopt), SignalVerdict::kRestart);
  EXPECT_EQ(JudgeSignals(kOther, task, Task(3)), SignalVerdict::kNone);
}

TEST(JudgeSignals, SigchldIsAPlainInterruptionAmongSeveral) {
  TaskSignals task = Task(2);
  task.shared_pending = Set({SIGCHLD});
  EXPECT_EQ(JudgeSignals(kLeader, task, std::nullopt), SignalVerdict::kInterrupt);
  EXPECT_EQ(JudgeSignals(kOther, task, Task(2)), SignalVerdict::kInterrupt);
  // With another beside it the leader is chosen for that one.
  task.shared_pending = Set({SIGCHLD, SIGUSR1});
  EXPECT_EQ(JudgeSignals(kLeader, task, std::nullopt), SignalVerdict::kRestart);
  EXPECT_EQ(JudgeSignals(kOther, task, Task(2)), SignalVerdict::kInterrupt);
}

TEST(JudgeSignals, AThreadIsInterruptedWhereTheLeaderCannotTakeIt) {
  TaskSignals task = Task(2);
  task.shared_pending = Set({SIGUSR1});
  EXPECT_EQ(JudgeSignals(kOther, task, std::nullopt), SignalVerdict::kInterrupt) << "it is gone";
  for (const char state : {'Z', 'X'}) {
    TaskSignals dead = Task(2);
    dead.state = state;
    EXPECT_EQ(JudgeSignals(kOther, task, dead), SignalVerdict::kInterrupt) << state;
  }
  for (const char state : {'R', 'S', 'D', 'T', 't'}) {
    TaskSignals alive = Task(2);
    alive.state = state;
    EXPECT_EQ(JudgeSignals(kOther, task, alive), SignalVerdict::kNone) << state;
  }
  TaskSignals blocking = Task(2);
  blocking.blocked = Set({SIGUSR1});
  EXPECT_EQ(JudgeSignals(kOther, task, blocking), SignalVerdict::kInterrupt) << "it blocks the signal";
  blocking.blocked = Set({SIGTERM});
  EXPECT_EQ(JudgeSignals(kOther, task, blocking), SignalVerdict::kNone) << "it blocks another";
  // One of two is blocked there: that one may be ours.
  task.shared_pending = Set({SIGUSR1, SIGTERM});
  EXPECT_EQ(JudgeSignals(kOther, task, blocking), SignalVerdict::kInterrupt);
}

TEST(JudgeSignals, NeverRestartsAThreadThatMayNotHaveBeenChosen) {
  // -ERESTARTSYS in a thread that has no signal to take would reach the program as errno 512.
  constexpr int kSignals[] = {SIGUSR1, SIGCHLD, SIGTERM, SIGURG};
  for (int shared = 0; shared < 16; ++shared)
    for (int blocked = 0; blocked < 16; ++blocked)
      for (int blocked_by_leader = 0; blocked_by_leader < 16; ++blocked_by_leader)
        for (const char state : {'S', 'Z'}) {
          TaskSignals task = Task(4), leader = Task(4);
          for (int i = 0; i < 4; ++i) {
            const uint64_t bit = Set({kSignals[i]});
            if ((shared >> i & 1) != 0) task.shared_pending |= bit;
            if ((blocked >> i & 1) != 0) task.blocked |= bit;
            if ((blocked_by_leader >> i & 1) != 0) leader.blocked |= bit;
          }
          leader.state = state;
          ASSERT_NE(JudgeSignals(kOther, task, leader), SignalVerdict::kRestart);
          const bool any = HasDeliverable(task.shared_pending, task);
          if (!any) ASSERT_EQ(JudgeSignals(kOther, task, leader), SignalVerdict::kNone);
          if (any && state == 'Z') ASSERT_EQ(JudgeSignals(kOther, task, leader), SignalVerdict::kInterrupt);
          ASSERT_EQ(LeaderMatters(kOther, task), any);
        }
}

TEST(LeaderMatters, OnlyForAnotherThreadWithSomethingOfTheProcesss) {
  TaskSignals task = Task(2);
  EXPECT_FALSE(LeaderMatters(kOther, task));
  task.thread_pending = Set({SIGUSR1});
  EXPECT_FALSE(LeaderMatters(kOther, task));
  task.shared_pending = Set({SIGURG});
  EXPECT_FALSE(LeaderMatters(kOther, task));
  task.shared_pending = Set({SIGUSR1});
  EXPECT_TRUE(LeaderMatters(kOther, task));
  EXPECT_FALSE(LeaderMatters(kLeader, task));
  task.threads = 1;
  EXPECT_FALSE(LeaderMatters(kOther, task));
}

}  // namespace
}  // namespace oarlock::supervisor
