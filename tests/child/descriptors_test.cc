// SPDX-License-Identifier: Apache-2.0
#include "child/descriptors.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <functional>
#include <thread>

#include "notif/abi/landlock.h"
#include "notif/abi/seccomp.h"
#include "tests/support/temporary.h"

namespace oarlock::child {
namespace {

using test::TemporaryDirectory;

constexpr int kNumber = 40;  // where the tests below put what they name

// The irreversible in a process of its own; its answer is its exit code.
int InChild(const std::function<int()>& body) {
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(body());
  int status = 0;
  EXPECT_EQ(::waitpid(pid, &status, 0), pid);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// --- what may be kept --------------------------------------------------------------------------------------

class ClassifyTest : public ::testing::Test {
 protected:
  static void Passes(const UniqueFd& fd, const char* what) {
    if (!fd.valid()) GTEST_SKIP() << what << " cannot be made here: errno " << errno;
    const auto step = ClassifyDescriptor(fd.get(), "/keep_fds");
    EXPECT_TRUE(step) << what << ": " << step.error().Line();
  }
  static void Refused(const UniqueFd& fd, const char* what) {
    if (!fd.valid()) GTEST_SKIP() << what << " cannot be made here: errno " << errno;
    const auto step = ClassifyDescriptor(fd.get(), "/keep_fds");
    ASSERT_FALSE(step) << what;
    EXPECT_EQ(step.error().code, Code::kKUnsupported) << what;
    EXPECT_EQ(step.error().pointer, "/keep_fds") << what;
    EXPECT_NE(step.error().text.find(std::to_string(fd.get())), std::string::npos) << step.error().text;
  }
  static UniqueFd Socket(int domain, int type, int protocol = 0) {
    return UniqueFd(::socket(domain, type | SOCK_CLOEXEC, protocol));
  }
  // One end of a connected pair of unix sockets.
  UniqueFd Pair(int type) {
    int pair[2];
    EXPECT_EQ(::socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, pair), 0);
    other_.Reset(pair[1]);
    return UniqueFd(pair[0]);
  }
  static UniqueFd Listening(int domain) {
    UniqueFd fd = Socket(domain, SOCK_STREAM);
    EXPECT_EQ(::listen(fd.get(), 1), 0);  // on a port of the kernel's choice
    return fd;
  }
  UniqueFd ConnectedTcp(int domain, int protocol = 0) {
    other_ = Listening(domain);
    sockaddr_storage address{};
    socklen_t size = sizeof(address);
    EXPECT_EQ(::getsockname(other_.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
    UniqueFd fd = Socket(domain, SOCK_STREAM, protocol);
    if (fd.valid()) EXPECT_EQ(::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
    return fd;
  }
  TemporaryDirectory t_;
  UniqueFd other_;
};

TEST_F(ClassifyTest, AFilePasses) {
  const std::string path = t_.WriteFile("file", "x");
  for (const int flags : {O_RDONLY, O_WRONLY, O_RDWR | O_APPEND})
    Passes(UniqueFd(::open(path.c_str(), flags | O_CLOEXEC)), "a file");
  Passes(UniqueFd(static_cast<int>(::syscall(SYS_memfd_create, "m", 1U))), "a memfd");
}

TEST_F(ClassifyTest, APipePasses) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const UniqueFd reading(ends[0]), writing(ends[1]);
  Passes(reading, "a pipe");
  Passes(writing, "a pipe");
  ASSERT_EQ(::mkfifo((t_ / "fifo").c_str(), 0600), 0);
  Passes(UniqueFd(::open((t_ / "fifo").c_str(), O_RDWR | O_CLOEXEC)), "a fifo");
}

TEST_F(ClassifyTest, ATerminalPasses) {
  const UniqueFd master(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
  ASSERT_TRUE(master.valid());
  ASSERT_TRUE(::grantpt(master.get()) == 0 && ::unlockpt(master.get()) == 0);
  char name[128];
  ASSERT_EQ(::ptsname_r(master.get(), name, sizeof(name)), 0);
  Passes(UniqueFd(::open(name, O_RDWR | O_NOCTTY | O_CLOEXEC)), "a terminal");
}

TEST_F(ClassifyTest, HarmlessDevicesPass) {
  for (const char* path : {"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"})
    Passes(UniqueFd(::open(path, O_RDONLY | O_CLOEXEC)), path);
}

TEST_F(ClassifyTest, OtherDevicesDoNot) {
  for (const char* path :
       {"/dev/kmsg", "/dev/mem", "/dev/port", "/dev/fuse", "/dev/net/tun", "/dev/ptmx-not", "/dev/kvm",
        "/dev/vda", "/dev/loop0", "/dev/loop-control", "/dev/userfaultfd", "/dev/vhost-net"}) {
    const UniqueFd fd(::open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC));
    if (fd.valid()) Refused(fd, path);
  }
}

TEST_F(ClassifyTest, AConnectedStreamPasses) {
  Passes(Pair(SOCK_STREAM), "a unix stream pair");
  Passes(Pair(SOCK_SEQPACKET), "a unix seqpacket pair");
  Passes(ConnectedTcp(AF_INET), "a TCP connection");
  Passes(ConnectedTcp(AF_INET6), "a TCP connection");
}

TEST_F(ClassifyTest, ADatagramSocketDoesNot) {
  Refused(Pair(SOCK_DGRAM), "a unix datagram pair");
  Refused(Pair(SOCK_RAW), "a unix raw pair");
  Refused(Socket(AF_INET, SOCK_DGRAM), "UDP");
  Refused(Socket(AF_INET6, SOCK_DGRAM), "UDP");
  Refused(Socket(AF_UNIX, SOCK_DGRAM), "a unix datagram socket");
  UniqueFd udp = Socket(AF_INET, SOCK_DGRAM);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(9);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(::connect(udp.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  Refused(udp, "connected UDP");
}

TEST_F(ClassifyTest, AListeningSocketDoesNot) {
  Refused(Listening(AF_INET), "listening TCP");
  Refused(Listening(AF_INET6), "listening TCP");
  UniqueFd fd = Socket(AF_UNIX, SOCK_STREAM);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strcpy(address.sun_path, (t_ / "s").c_str());
  ASSERT_EQ(::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  Refused(fd, "a bound unix socket");
  ASSERT_EQ(::listen(fd.get(), 1), 0);
  Refused(fd, "a listening unix socket");
}

TEST_F(ClassifyTest, AnUnconnectedSocketDoesNot) {
  Refused(Socket(AF_INET, SOCK_STREAM), "TCP");
  Refused(Socket(AF_INET6, SOCK_STREAM), "TCP");
  Refused(Socket(AF_UNIX, SOCK_STREAM), "unix");
  Refused(Socket(AF_UNIX, SOCK_SEQPACKET), "unix");
}

TEST_F(ClassifyTest, SocketsOfOtherFamiliesDoNot) {
  Refused(Socket(AF_NETLINK, SOCK_RAW, 0), "netlink");
  const UniqueFd packet = Socket(AF_PACKET, SOCK_RAW);
  if (packet.valid()) Refused(packet, "packet");
  const UniqueFd raw = Socket(AF_INET, SOCK_RAW, IPPROTO_ICMP);
  if (raw.valid()) Refused(raw, "raw");
  const UniqueFd vsock = Socket(AF_VSOCK, SOCK_STREAM);
  if (vsock.valid()) Refused(vsock, "vsock");
  const UniqueFd algorithm = Socket(AF_ALG, SOCK_SEQPACKET);
  if (algorithm.valid()) Refused(algorithm, "alg");
}

TEST_F(ClassifyTest, ADirectoryDoesNot) {
  Refused(UniqueFd(::open(t_.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)), "a directory");
}

TEST_F(ClassifyTest, AHandleWithoutAccessDoesNot) {
  const std::string path = t_.WriteFile("file", "x");
  Refused(UniqueFd(::open(path.c_str(), O_PATH | O_CLOEXEC)), "O_PATH of a file");
  Refused(UniqueFd(::open(t_.path().c_str(), O_PATH | O_CLOEXEC)), "O_PATH of a directory");
  Refused(UniqueFd(::open("/dev/null", O_PATH | O_CLOEXEC)), "O_PATH of /dev/null");
}

TEST_F(ClassifyTest, NamespaceAndProcessFilesDoNot) {
  for (const char* path : {"/proc/self/ns/net", "/proc/self/ns/user", "/proc/self/ns/mnt", "/proc/self/mem",
                           "/proc/self/status", "/proc/sys/kernel/core_pattern", "/proc/self/attr/current"}) {
    const UniqueFd fd(::open(path, O_RDONLY | O_CLOEXEC));
    if (fd.valid()) Refused(fd, path);
  }
}

TEST_F(ClassifyTest, APidfdDoesNot) {
  // It is a regular file by its mode since 6.9, and the right to signal that process whatever Landlock scopes
  // say.
  Refused(UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0))), "a pidfd");
}

TEST_F(ClassifyTest, AMessageQueueDoesNot) {
  const std::string name = "/oarlock-test-" + std::to_string(::getpid());
  const UniqueFd queue(::mq_open(name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600, nullptr));
  if (!queue.valid()) GTEST_SKIP() << "no POSIX message queues here";
  (void)::mq_unlink(name.c_str());
  Refused(queue, "a message queue");
}

TEST_F(ClassifyTest, ARingDoesNot) {
  char params[120] = {};
  Refused(UniqueFd(static_cast<int>(::syscall(SYS_io_uring_setup, 4U, params))), "io_uring");
}

TEST_F(ClassifyTest, AListenerDoesNot) {
  UniqueFd listener;
  std::thread([&listener] {
    sock_filter allow[] = {BPF_STMT(BPF_RET | BPF_K, abi::kRetAllow)};
    const sock_fprog program{1, allow};
    (void)::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    listener.Reset(static_cast<int>(
        ::syscall(SYS_seccomp, abi::kSeccompSetModeFilter, abi::kSeccompFlagNewListener, &program)));
  }).join();
  Refused(listener, "a seccomp listener");
}

TEST_F(ClassifyTest, AnonymousFilesDoNot) {
  sigset_t none;
  (void)::sigemptyset(&none);
  Refused(UniqueFd(::epoll_create1(EPOLL_CLOEXEC)), "epoll");
  Refused(UniqueFd(::eventfd(0, EFD_CLOEXEC)), "eventfd");
  Refused(UniqueFd(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC)), "timerfd");
  Refused(UniqueFd(::signalfd(-1, &none, SFD_CLOEXEC)), "signalfd");
  Refused(UniqueFd(::inotify_init1(IN_CLOEXEC)), "inotify");
  abi::LandlockRulesetAttr attribute{};
  attribute.handled_access_fs = abi::kFsExecute;
  const UniqueFd ruleset(
      static_cast<int>(::syscall(abi::kSysLandlockCreateRuleset, &attribute, sizeof(attribute), 0U)));
  if (ruleset.valid()) Refused(ruleset, "a Landlock ruleset");
  const UniqueFd context(static_cast<int>(::syscall(SYS_fsopen, "tmpfs", 1U)));
  if (context.valid()) Refused(context, "fsopen");
  const UniqueFd mount(static_cast<int>(::syscall(SYS_open_tree, AT_FDCWD, "/", 0x80000U)));
  if (mount.valid()) Refused(mount, "open_tree");
  const UniqueFd fault(static_cast<int>(::syscall(SYS_userfaultfd, O_CLOEXEC)));
  if (fault.valid()) Refused(fault, "userfaultfd");
}

TEST_F(ClassifyTest, AClosedDescriptorDoesNot) {
  const auto step = ClassifyDescriptor(1 << 20, "/keep_fds");
  ASSERT_FALSE(step);
  EXPECT_EQ(step.error().code, Code::kKUnsupported);
}

// --- which are kept ----------------------------------------------------------------------------------------

class KeptTest : public ::testing::Test {
 protected:
  KeptTest() {
    const UniqueFd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
    for (const int number : {kNumber, kNumber + 1, kNumber + 2})
      EXPECT_EQ(::dup3(null.get(), number, O_CLOEXEC), number);
  }
  ~KeptTest() override {
    for (const int number : {kNumber, kNumber + 1, kNumber + 2}) (void)::close(number);
  }
  static Checked<std::vector<int>> Kept(const std::optional<std::vector<int>>& policy,
                                        std::vector<std::string> environment) {
    std::vector<char*> entries;
    for (std::string& entry : environment) entries.push_back(entry.data());
    entries.push_back(nullptr);
    return KeptDescriptors(policy, entries.data());
  }
};

TEST_F(KeptTest, ThePolicysListSortedAndOnce) {
  const auto kept = Kept(std::vector<int>{kNumber + 2, kNumber, kNumber + 2},
                         {"OARBANK_X=fd:" + std::to_string(kNumber + 1)});
  ASSERT_TRUE(kept);
  EXPECT_EQ(*kept, (std::vector<int>{kNumber, kNumber + 2}));
  EXPECT_TRUE(Kept(std::vector<int>{}, {"OARBANK_X=fd:" + std::to_string(kNumber)})->empty());
}

TEST_F(KeptTest, WithoutAListThoseOfTheEnvironment) {
  const std::string number = std::to_string(kNumber), next = std::to_string(kNumber + 1);
  const auto kept = Kept(std::nullopt, {"PATH=/bin", "OARBANK_OUT=fd:" + next, "OARBANK_IN=fd:" + number,
                                        "OARBANK_AGAIN=fd:" + number});
  ASSERT_TRUE(kept);
  EXPECT_EQ(*kept, (std::vector<int>{kNumber, kNumber + 1}));
}

TEST_F(KeptTest, WhatOnlyLooksLikeOneIsNone) {
  const std::string number = std::to_string(kNumber);
  for (const std::string& entry : std::vector<std::string>{
           "OARBANK_CONFINED=fd:" + number, "OARBANK_CONFINED=" + number, "OARBANK_X=" + number,
           "OARBANK_X=unix:/run/b", "XOARBANK_X=fd:" + number, "OARBANK=fd:" + number,
           "OARLOCK_X=fd:" + number, std::string("OARBANK_X=fd:"), std::string("OARBANK_X=fd:-1"),
           "OARBANK_X=fd:+" + number, "OARBANK_X=fd: " + number, "OARBANK_X=fd:" + number + "x",
           "OARBANK_X=fd:" + number + ",41", std::string("OARBANK_X=fd:0"), std::string("OARBANK_X=fd:2"),
           std::string("OARBANK_X=fd:99999999999"), std::string("OARBANK_X"),
           std::string("OARBANK_X=FD:40")}) {
    const auto kept = Kept(std::nullopt, {entry});
    ASSERT_TRUE(kept) << entry;
    EXPECT_TRUE(kept->empty()) << entry;
  }
}

TEST_F(KeptTest, AClosedOneIsRefused) {
  const auto by_policy = Kept(std::vector<int>{kNumber, 777}, {});
  ASSERT_FALSE(by_policy);
  EXPECT_EQ(by_policy.error().code, Code::kRange);
  EXPECT_EQ(by_policy.error().pointer, "/keep_fds/1");
  const auto by_environment = Kept(std::nullopt, {"OARBANK_SOCKET=fd:777"});
  ASSERT_FALSE(by_environment);
  EXPECT_EQ(by_environment.error().code, Code::kRange);
  EXPECT_NE(by_environment.error().text.find("OARBANK_SOCKET"), std::string::npos)
      << by_environment.error().text;
}

// --- the table ---------------------------------------------------------------------------------------------

TEST(EnsureStandardDescriptors, FillsTheClosedOnesAlone) {
  for (int closed = 0; closed < 8; ++closed)
    EXPECT_EQ(InChild([closed] {
                struct stat before[3]{};
                for (int fd = 0; fd < 3; ++fd) {
                  if ((closed >> fd & 1) != 0)
                    (void)::close(fd);
                  else if (::fstat(fd, &before[fd]) != 0)
                    return 2;
                }
                if (!EnsureStandardDescriptors()) return 3;
                struct stat null{};
                if (::stat("/dev/null", &null) != 0) return 4;
                for (int fd = 0; fd < 3; ++fd) {
                  struct stat now{};
                  if (::fstat(fd, &now) != 0 || (::fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0) return 5;
                  const bool filled = (closed >> fd & 1) != 0;
                  if (filled ? now.st_rdev != null.st_rdev : now.st_ino != before[fd].st_ino) return 6;
                }
                return 0;
              }),
              0)
        << closed;
}

TEST(CloseOthers, ClosesAllButTheKept) {
  for (const std::vector<int>& kept :
       {std::vector<int>{}, {3}, {kNumber}, {3, 4, kNumber, 900}, {0, 1, 2, 5}, {kNumber, kNumber + 1}})
    EXPECT_EQ(InChild([&kept] {
                for (int fd = 3; fd < 50; ++fd)
                  if (::dup2(2, fd) != fd) return 2;
                if (::dup2(2, 900) != 900) return 2;
                if (!CloseOthers(kept)) return 3;
                for (int fd = 0; fd < 1000; ++fd) {
                  const bool wanted = fd <= 2 || (std::ranges::find(kept, fd) != kept.end());
                  if ((::fcntl(fd, F_GETFD) >= 0) != wanted) return 4;
                }
                return 0;
              }),
              0);
}

TEST(DescriptorTable, ListsWhatIsOpenWithoutItself) {
  EXPECT_EQ(InChild([] {
              if (!CloseOthers({})) return 2;
              auto table = DescriptorTable::Open();
              if (!table) return 3;
              if (*table->List() != std::vector<int>{0, 1, 2}) return 4;
              if (::dup2(2, kNumber) != kNumber || ::dup2(2, 500) != 500) return 5;
              if (*table->List() != std::vector<int>{0, 1, 2, kNumber, 500}) return 6;
              (void)::close(kNumber);
              // Again and again, and also where there are more than one read brings.
              for (int fd = 600; fd < 1600; ++fd)
                if (::dup2(2, fd) != fd) return 7;
              const auto many = table->List();
              return many && many->size() == 1004 && std::ranges::is_sorted(*many) ? 0 : 8;
            }),
            0);
}

}  // namespace
}  // namespace oarlock::child
