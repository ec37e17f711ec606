// SPDX-License-Identifier: Apache-2.0
#include "supervisor/peer.h"

#include <fcntl.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <sched.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <thread>

#include "notif/abi/seccomp.h"

namespace oarlock::supervisor {
namespace {

// A child that does `prepare` and then waits to be killed.
class Child {
 public:
  explicit Child(const std::function<bool()>& prepare) {
    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      const char ok = prepare() ? 1 : 0;
      (void)!::write(ends[1], &ok, 1);
      for (;;) ::pause();
    }
    ::close(ends[1]);
    char ok = 0;
    EXPECT_EQ(::read(ends[0], &ok, 1), 1);
    EXPECT_EQ(ok, 1) << "the child could not prepare";
    ::close(ends[0]);
  }
  ~Child() { End(); }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  [[nodiscard]] pid_t pid() const noexcept { return pid_; }
  void Kill() const { (void)::kill(pid_, SIGKILL); }
  void End() {
    if (pid_ <= 0) return;
    Kill();
    (void)::waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }

 private:
  pid_t pid_ = -1;
};

UniqueFd MakeListener() {
  // A filter is of its thread; that thread ends, the listener stays.
  UniqueFd listener;
  std::thread([&listener] {
    sock_filter allow[] = {BPF_STMT(BPF_RET | BPF_K, abi::kRetAllow)};
    const sock_fprog program{1, allow};
    (void)::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    listener.Reset(static_cast<int>(
        ::syscall(SYS_seccomp, abi::kSeccompSetModeFilter, abi::kSeccompFlagNewListener, &program)));
  }).join();
  return listener;
}

TEST(ReadProcess, TellsWhatTheKernelSays) {
  const auto facts = ReadProcess(::getpid());
  ASSERT_TRUE(facts);
  EXPECT_EQ(facts->pid, ::getpid());
  EXPECT_EQ(facts->parent, ::getppid());
  EXPECT_EQ(facts->uid, ::geteuid());
  EXPECT_EQ(facts->real_uid, ::getuid());
  EXPECT_EQ(facts->gid, ::getegid());
  EXPECT_GT(facts->start_ticks, 0U);
  const UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0)));
  const auto same = ReadProcess(::getpid(), pidfd.get());
  ASSERT_TRUE(same);
  EXPECT_EQ(same->start_ticks, facts->start_ticks);
}

TEST(ReadProcess, R_OB_13_SeesIdsGroupsAndNoNewPrivs) {
  if (::getuid() != 0) GTEST_SKIP() << "changes ids";
  const Child child([] {
    const gid_t groups[] = {7, 8, 65534};
    return ::setgroups(3, groups) == 0 && ::setresgid(1001, 1002, 1003) == 0 &&
           ::setresuid(2001, 2002, 2003) == 0 && ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0;
  });
  const auto facts = ReadProcess(child.pid());
  ASSERT_TRUE(facts);
  EXPECT_EQ(facts->real_uid, 2001U);
  EXPECT_EQ(facts->uid, 2002U);
  EXPECT_EQ(facts->saved_uid, 2003U);
  EXPECT_EQ(facts->fs_uid, 2002U);
  EXPECT_EQ(facts->real_gid, 1001U);
  EXPECT_EQ(facts->gid, 1002U);
  EXPECT_EQ(facts->saved_gid, 1003U);
  EXPECT_EQ(facts->groups, (std::vector<uint32_t>{7, 8, 65534}));
  EXPECT_TRUE(facts->no_new_privs);
  EXPECT_EQ(facts->effective_capabilities, 0U);
  EXPECT_EQ(facts->parent, ::getpid());
}

TEST(ReadProcess, R_OB_13_AHostileNameDoesNotShiftAnyField) {
  const auto own = ReadProcess(::getpid());
  ASSERT_TRUE(own);
  for (const char* name :
       {") S 1 1 (", "\nUid:\t7\t7\t7", "a) R 1 2 3 4 5", "\nNoNewPrivs:1", "((((((", "))))))", ""}) {
    const Child child([name] { return ::prctl(PR_SET_NAME, name) == 0; });
    const auto facts = ReadProcess(child.pid());
    ASSERT_TRUE(facts) << name;
    EXPECT_EQ(facts->parent, ::getpid()) << name;
    EXPECT_EQ(facts->uid, ::geteuid()) << name;
    EXPECT_FALSE(facts->no_new_privs) << name;
    EXPECT_GE(facts->start_ticks, own->start_ticks) << name;
    EXPECT_LT(facts->start_ticks, own->start_ticks + 100'000'000) << name;
  }
}

TEST(ReadProcess, R_OB_13_SeesTheFilters) {
  const Child child([] {
    sock_filter allow[] = {BPF_STMT(BPF_RET | BPF_K, abi::kRetAllow)};
    const sock_fprog program{1, allow};
    return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           ::syscall(SYS_seccomp, abi::kSeccompSetModeFilter, 0, &program) == 0 &&
           ::syscall(SYS_seccomp, abi::kSeccompSetModeFilter, 0, &program) == 0;
  });
  const auto own = ReadProcess(::getpid()), facts = ReadProcess(child.pid());
  ASSERT_TRUE(own && facts);
  EXPECT_EQ(facts->seccomp_mode, 2);
  EXPECT_EQ(facts->seccomp_filters, own->seccomp_filters + 2);
}

TEST(ReadProcess, AProcessThatEndedIsNobody) {
  Child child([] { return true; });
  const pid_t pid = child.pid();
  const auto pidfd = OpenPidfd(pid);
  ASSERT_TRUE(pidfd);
  ASSERT_TRUE(ReadProcess(pid, pidfd->get()));
  child.End();
  const auto facts = ReadProcess(pid, pidfd->get());
  ASSERT_FALSE(facts);
  EXPECT_EQ(facts.error().code, ESRCH);
  EXPECT_FALSE(ReadProcess(pid));
  EXPECT_FALSE(OpenPidfd(pid));
  for (const pid_t none : {0, -1, INT32_MAX}) {
    EXPECT_FALSE(ReadProcess(none)) << none;
    EXPECT_FALSE(OpenPidfd(none)) << none;
  }
}

TEST(IsListener, KnowsAListenerFromEverythingElse) {
  const UniqueFd listener = MakeListener();
  ASSERT_TRUE(listener.valid());
  EXPECT_TRUE(IsListener(listener.get()));
  const UniqueFd copy(::fcntl(listener.get(), F_DUPFD_CLOEXEC, 100));
  EXPECT_TRUE(IsListener(copy.get()));

  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const UniqueFd reading(ends[0]), writing(ends[1]);
  const UniqueFd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  const UniqueFd event(::eventfd(0, EFD_CLOEXEC));
  const UniqueFd memory(::memfd_create("anon_inode:seccomp notify", MFD_CLOEXEC));
  for (const UniqueFd* fd : {&reading, &writing, &null, &event, &memory}) EXPECT_FALSE(IsListener(fd->get()));
  EXPECT_FALSE(IsListener(-1));
  EXPECT_FALSE(IsListener(1 << 20));
}

TEST(CheckAccess, IsGivenToRootAndNotForTheDead) {
  if (::getuid() != 0) GTEST_SKIP() << "needs CAP_SYS_PTRACE";
  Child child([] { return ::setresuid(65534, 65534, 65534) == 0; });
  const auto pidfd = OpenPidfd(child.pid());
  ASSERT_TRUE(pidfd);
  const auto may = CheckAccess(child.pid(), pidfd->get());
  EXPECT_TRUE(may) << may.error().Message();
  // Not reaped: its number still stands for it, and it has neither memory nor descriptors.
  child.Kill();
  siginfo_t info{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child.pid()), &info, WEXITED | WNOWAIT), 0);
  EXPECT_FALSE(CheckAccess(child.pid(), pidfd->get()));
}

TEST(CheckAccess, IsRefusedToAnotherUser) {
  if (::getuid() != 0) GTEST_SKIP() << "changes ids";
  const Child target([] { return true; });
  const pid_t pid = target.pid();
  const Child looker([pid] {
    if (::setgroups(0, nullptr) != 0 || ::setresgid(65534, 65534, 65534) != 0 ||
        ::setresuid(65534, 65534, 65534) != 0)
      return false;
    const auto pidfd = OpenPidfd(pid);
    if (!pidfd) return false;
    const auto may = CheckAccess(pid, pidfd->get());
    return !may && may.error().code == EPERM &&
           may.error().Message().find("CAP_SYS_PTRACE") != std::string::npos;
  });
}

TEST(SameNetns, ComparesNamespaces) {
  EXPECT_TRUE(SameNetns(::getpid()));
  if (::getuid() != 0) GTEST_SKIP() << "makes a namespace";
  const Child same([] { return true; });
  EXPECT_TRUE(SameNetns(same.pid()));
  const Child other([] { return ::unshare(CLONE_NEWNET) == 0; });
  EXPECT_FALSE(SameNetns(other.pid()));
  EXPECT_FALSE(SameNetns(INT32_MAX));
}

TEST(OpenPeerPidfd, IsOfWhoeverConnected) {
  int pair[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
  const UniqueFd ours(pair[0]), theirs(pair[1]);
  const auto pidfd = OpenPeerPidfd(ours.get(), ::getpid());
  ASSERT_TRUE(pidfd);
  EXPECT_NE(::fcntl(pidfd->get(), F_GETFD) & FD_CLOEXEC, 0);
  EXPECT_TRUE(ReadProcess(::getpid(), pidfd->get()));
}

}  // namespace
}  // namespace oarlock::supervisor
