// SPDX-License-Identifier: Apache-2.0
#include "notif/calls.h"

#include <gtest/gtest.h>
#include <sys/syscall.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <string>

#include "tests/notif/filter_check.h"

namespace oarlock {

// GoogleTest would print a row's bytes.
static void PrintTo(const CallRow* row, std::ostream* out) {
  *out << (row != nullptr ? row->name : "no row");
}

namespace {

constexpr Arch kArchs[] = {Arch::kX86_64, Arch::kAarch64};

TEST(Calls, EveryCallOfBothArchitecturesHasARow) {
  // The gaps that the kernel itself leaves; every other number up to file_setattr is a call.
  const auto is_gap = [](Arch arch, uint32_t nr) {
    if (arch == Arch::kX86_64) return nr >= 337 && nr <= 423;
    return (nr >= 244 && nr <= 259) || (nr >= 295 && nr <= 423);
  };
  for (const Arch arch : kArchs) {
    for (uint32_t nr = 0; nr <= 469; ++nr)
      EXPECT_EQ(FindCall(arch, nr) == nullptr, is_gap(arch, nr)) << static_cast<int>(arch) << ' ' << nr;
  }
  EXPECT_EQ(Calls().size(), 383U);
}

TEST(Calls, AreFoundByNumberAndByName) {
  for (const CallRow& row : Calls()) {
    EXPECT_EQ(FindCall(row.name), &row);
    for (const Arch arch : kArchs) {
      if (Number(row, arch) < 0) continue;
      EXPECT_EQ(FindCall(arch, static_cast<uint32_t>(Number(row, arch))), &row);
    }
  }
}

TEST(Calls, NothingIsFoundForNumbersAndNamesThatAreNone) {
  for (const Arch arch : kArchs)
    for (const uint32_t nr :
         {470U, 511U, 512U, 513U, 1000U, 0x40000000U, 0x4000002aU, 0x7fffffffU, 0x80000000U, 0xffffffffU})
      EXPECT_EQ(FindCall(arch, nr), nullptr) << nr;
  for (const std::string_view name : {"", "a", "connec", "connect2", "zzz", "Connect", " connect"})
    EXPECT_EQ(FindCall(name), nullptr) << name;
}

struct NativeNumber {
  const char* name;
  long nr;
};
// A sample over the whole range from the headers of the machine that runs the test.
constexpr NativeNumber kNativeNumbers[] = {
    {"read", SYS_read},
    {"connect", SYS_connect},
    {"socket", SYS_socket},
    {"socketpair", SYS_socketpair},
    {"setsockopt", SYS_setsockopt},
    {"sendmsg", SYS_sendmsg},
    {"clone", SYS_clone},
    {"openat", SYS_openat},
    {"mknodat", SYS_mknodat},
    {"fchmodat", SYS_fchmodat},
    {"ioctl", SYS_ioctl},
    {"fcntl", SYS_fcntl},
    {"prctl", SYS_prctl},
    {"prlimit64", SYS_prlimit64},
    {"personality", SYS_personality},
    {"ptrace", SYS_ptrace},
    {"seccomp", SYS_seccomp},
    {"bpf", SYS_bpf},
    {"memfd_create", SYS_memfd_create},
    {"execveat", SYS_execveat},
    {"io_uring_setup", SYS_io_uring_setup},
    {"clone3", SYS_clone3},
    {"close_range", SYS_close_range},
    {"openat2", SYS_openat2},
    {"mount_setattr", SYS_mount_setattr},
    {"futex_waitv", SYS_futex_waitv},
    {"landlock_restrict_self", SYS_landlock_restrict_self},
};

TEST(Calls, NumbersAreThoseOfThisMachine) {
  for (const NativeNumber& native : kNativeNumbers) {
    const CallRow* row = FindCall(native.name);
    ASSERT_NE(row, nullptr) << native.name;
    EXPECT_EQ(Number(*row, kNativeArch), native.nr) << native.name;
  }
}

TEST(Shapes, IndexAndShapeAreOneToOne) {
  std::set<std::string> names;
  for (unsigned index = 0; index < kShapeCount; ++index) {
    EXPECT_EQ(ShapeIndex(ShapeAt(index)), index);
    for (unsigned other = 0; other < index; ++other) EXPECT_FALSE(ShapeAt(index) == ShapeAt(other));
    names.emplace(ShapeName(ShapeAt(index)));
  }
  EXPECT_EQ(names.size(), kShapeCount);
}

TEST(Shapes, NamesSayWhatTheyAre) {
  EXPECT_EQ(ShapeName({}), "full");
  EXPECT_EQ(ShapeName({.exec_strict = true}), "full+strict");
  EXPECT_EQ(
      ShapeName({.network = Network::kConnect, .sysv_ipc = true, .gid_zero = true, .age = Age::kNoThreadPidfd}),
      "connect+sysv+gid0+nothreadpidfd");
  EXPECT_EQ(ShapeName({.network = Network::kConnect,
                       .exec_strict = true,
                       .sysv_ipc = true,
                       .gid_zero = true,
                       .age = Age::kNoTruncateRight}),
            "connect+strict+sysv+gid0+notruncateright");
  EXPECT_EQ(ShapeName({.network = Network::kHost, .sysv_ipc = true}), "host+sysv");
}

// No shape may loosen what another forbids, but for what it is named after: from a shape to the one with a
// property added, only the calls of that property change.
TEST(Shapes, APropertyChangesItsOwnCallsAlone) {
  const auto changed = [](const Shape& from, const Shape& to) {
    std::set<std::string> names;
    for (const CallRow& row : Calls()) {
      const Behaviour a = BehaviourIn(row, from);
      const Behaviour b = BehaviourIn(row, to);
      if (a.action != b.action || a.rule != b.rule) names.emplace(row.name);
    }
    return names;
  };
  using Names = std::set<std::string>;
  EXPECT_EQ(changed({}, {.network = Network::kConnect}), Names{"socket"});
  EXPECT_EQ(changed({}, {.network = Network::kHost}),
            (Names{"accept", "accept4", "bind", "connect", "ioctl", "listen", "sendmmsg", "sendmsg", "sendto", "setsockopt", "socket",
                   "socketpair"}));
  EXPECT_EQ(changed({}, {.exec_strict = true}), (Names{"execveat", "memfd_create"}));
  EXPECT_EQ(changed({}, {.gid_zero = true}), (Names{"chmod", "fchmod", "fchmodat", "fchmodat2"}));
  EXPECT_EQ(changed({}, {.age = Age::kNoThreadPidfd}), (Names{"clone", "close_range", "fcntl", "ioctl", "kill", "pidfd_send_signal", "rt_sigqueueinfo",
                   "rt_tgsigqueueinfo", "tgkill", "tkill"}));
  EXPECT_EQ(changed({.age = Age::kNoThreadPidfd}, {.age = Age::kNoTruncateRight}),
            (Names{"open", "openat", "truncate"}));
  EXPECT_EQ(changed({.exec_strict = true, .age = Age::kNoThreadPidfd}, {.exec_strict = true, .age = Age::kNoTruncateRight}),
            (Names{"memfd_create", "open", "openat", "truncate"}));
  EXPECT_EQ(changed({}, {.sysv_ipc = true}),
            (Names{"mq_getsetattr", "mq_notify", "mq_open", "mq_timedreceive", "mq_timedsend", "mq_unlink",
                   "msgctl", "msgget", "msgrcv", "msgsnd", "semctl", "semget", "semop", "semtimedop", "shmat",
                   "shmctl", "shmdt", "shmget"}));
}

// The clause that notifies a call in its own shape names the refusal that RefusalOf finds without knowing the
// shape.
TEST(RefusalOf, NeedsNoShape) {
  size_t notified = 0;
  for (const CallRow& row : Calls()) {
    const std::vector<filter_check::Args> edges = filter_check::EdgeArguments(row);
    for (unsigned index = 0; index < kShapeCount; ++index) {
      const Behaviour behaviour = BehaviourIn(row, ShapeAt(index));
      if (behaviour.rule == nullptr) continue;
      for (const filter_check::Args& args : edges) {
        if (Evaluate(behaviour, args) != Action::kNotify) continue;
        ++notified;
        // The clause, found by cutting the rule's clauses off one after the other.
        Refusal expected = row.refusal;
        for (size_t i = 0; i < behaviour.rule->clauses.size(); ++i) {
          const ArgRule one = {.clauses = behaviour.rule->clauses.subspan(i, 1), .otherwise = Action::kArgs};
          if (Evaluate({Action::kArgs, &one}, args) == Action::kArgs) continue;
          if (one.clauses[0].refusal != Refusal::kNone) expected = one.clauses[0].refusal;
          break;
        }
        ASSERT_EQ(RefusalOf(row, args), expected) << row.name << " in " << ShapeName(ShapeAt(index));
      }
    }
  }
  EXPECT_GT(notified, 100'000U);
}

TEST(RefusalOf, IsSetForWhatIsSimplyRefused) {
  const filter_check::Args none{};
  for (const CallRow& row : Calls()) {
    const bool refused = row.handler == Handler::kRefuse ||
                         row.handler == Handler::kSetSockOpt;
    EXPECT_TRUE(!refused || RefusalOf(row, none) != Refusal::kNone) << row.name;
    EXPECT_TRUE(row.handler != Handler::kNone || RefusalOf(row, none) == Refusal::kNone) << row.name;
  }
}

TEST(Ages, AreTheOldestThatFits) {
  EXPECT_EQ(AgeOf(7, true, true), Age::kCurrent);
  EXPECT_EQ(AgeOf(6, true, true), Age::kCurrent);
  EXPECT_EQ(AgeOf(6, false, true), Age::kNoThreadPidfd);
  EXPECT_EQ(AgeOf(5, true, true), Age::kNoThreadPidfd);
  EXPECT_EQ(AgeOf(3, false, true), Age::kNoThreadPidfd);
  EXPECT_EQ(AgeOf(3, false, false), Age::kNoTruncateRight);
  EXPECT_EQ(AgeOf(2, true, true), Age::kNoTruncateRight);
  // Without Landlock there is no rule that a truncation could break.
  EXPECT_EQ(AgeOf(0, true, true), Age::kNoThreadPidfd);
  EXPECT_EQ(AgeOf(0, false, false), Age::kNoTruncateRight);
}

TEST(LauncherCalls, AreAllowedByEveryProgram) {
  ASSERT_GT(LauncherCalls().size(), 40U);
  for (const Arch arch : kArchs) {
    for (unsigned index = 0; index < kShapeCount; ++index) {
      for (const LauncherCall& call : LauncherCalls()) {
        const CallRow* row = FindCall(call.name);
        ASSERT_NE(row, nullptr) << call.name;
        if (Number(*row, arch) < 0) continue;
        abi::SeccompData data = {.nr = Number(*row, arch),
                                 .arch = filter_check::AuditArch(arch),
                                 .instruction_pointer = 0,
                                 .args = {}};
        std::ranges::copy(call.args, data.args);
        EXPECT_EQ(bpf::Run(filter_check::Generated(arch, ShapeAt(index)), data), abi::kRetAllow) << call.name;
      }
    }
  }
}

TEST(Groups, HaveNames) {
  std::set<std::string_view> names;
  for (const CallRow& row : Calls()) names.insert(Name(row.group));
  EXPECT_EQ(names.size(), 11U);
  EXPECT_FALSE(names.contains(""));
}

}  // namespace
}  // namespace oarlock
