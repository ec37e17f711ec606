// SPDX-License-Identifier: Apache-2.0
// What a launch finds around it, put there by somebody hostile (E-02, E-03, E-208). Datagram sockets as descriptors (E-205) are
// in bad_input_test, filters that pretend (E-213) in bad_input_faults_test.
#include <linux/io_uring.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <filesystem>

#include "tests/hostile/support.h"

namespace oarlock::test {
namespace {

// A ring of this process, polled by the kernel: whoever maps it has this process's rights without a single call.
class PolledRing {
 public:
  PolledRing() {
    parameters_.flags = IORING_SETUP_SQPOLL;
    parameters_.sq_thread_idle = 1000;
    fd_.Reset(static_cast<int>(::syscall(SYS_io_uring_setup, 4, &parameters_)));
    // Its owner goes on using it: the polling thread, which soon falls asleep, is woken again and again.
    if (fd_.valid()) waking_ = std::jthread([fd = fd_.get()](const std::stop_token& stop) {
        for (; !stop.stop_requested(); ::usleep(1000)) (void)::syscall(SYS_io_uring_enter, fd, 0, 0, IORING_ENTER_SQ_WAKEUP, nullptr, 0);
      });
  }
  [[nodiscard]] const UniqueFd& fd() const noexcept { return fd_; }
  [[nodiscard]] std::string Hex() const {
    std::string hex;
    for (size_t i = 0; i < sizeof(parameters_); ++i) {
      char two[3];
      (void)std::snprintf(two, sizeof(two), "%02x", reinterpret_cast<const unsigned char*>(&parameters_)[i]);
      hex += two;
    }
    return hex;
  }

 private:
  io_uring_params parameters_{};
  UniqueFd fd_;
  std::jthread waking_;
};

TEST(Inherit, E02_E03_RingFromBefore) {
  TcpServer victim;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(victim.port());
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const PolledRing ring;
  if (!ring.fd().valid()) GTEST_SKIP() << "no ring with a polling thread here: errno " << errno;
  const UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  char pointer[32];
  (void)std::snprintf(pointer, sizeof(pointer), "%lx", reinterpret_cast<unsigned long>(&address));
  const std::string word = "theirring,50," + ring.Hex() + "," + pointer + "," + std::to_string(socket.get());
  const auto hand_over = [&](ProcessOptions options) {
    options.before_exec = [&] {
      if (::dup2(ring.fd().get(), 50) < 0) ::_exit(118);
    };
    return RunProcess(options);
  };
  Sandbox closed;
  EXPECT_EQ(ResultOf(hand_over(closed.Options(Attack({word}))), word), "map:EBADF");
  Sandbox kept("\"keep_fds\":[50]");
  const Outcome refused = hand_over(kept.Options(Attack({word})));
  EXPECT_EQ(refused.code, 70);
  EXPECT_EQ(refused.out, "");
  EXPECT_TRUE(refused.err.starts_with("sandbox launch: K_UNSUPPORTED /keep_fds: ")) << refused.err;
  ::usleep(50'000);
  EXPECT_EQ(victim.connections(), 0);
  ProcessOptions bare;
  bare.argv = Attack({word});
  EXPECT_EQ(ResultOf(hand_over(bare), word), "0") << "the twin";
  EXPECT_TRUE(Eventually([&] { return victim.connections() == 1; }));
}

// Whatever is blocked, ignored or limited where it starts, a supervisor records every refusal and answers every call.
void SetHostileCircumstances() {
  sigset_t all;
  ::sigfillset(&all);
  (void)::sigprocmask(SIG_BLOCK, &all, nullptr);
  for (int signal = 1; signal < 32; ++signal)
    if (signal != SIGKILL && signal != SIGSTOP) (void)::signal(signal, SIG_IGN);
  (void)::umask(0);
  rlimit size{};
  (void)::getrlimit(RLIMIT_FSIZE, &size);
  size.rlim_cur = 16 << 10;  // below what the log will need
  (void)::setrlimit(RLIMIT_FSIZE, &size);
  rlimit files{};
  (void)::getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = 64;
  (void)::setrlimit(RLIMIT_NOFILE, &files);
}

TEST(Inherit, E208_HostileCircumstances) {
  TcpServer proxy;
  const std::string refused = "refusals,400," + std::to_string(proxy.port()), to = "to,127.0.0.1," + std::to_string(proxy.port());
  for (const bool node : {false, true}) {
    SCOPED_TRACE(node ? "node" : "private");
    std::unique_ptr<NodeUnder> daemon;
    if (node) daemon = std::make_unique<NodeUnder>(SetHostileCircumstances);
    Sandbox sandbox(Egress(proxy.port()));
    if (node) sandbox.Supervisor(daemon->socket());
    ProcessOptions options = sandbox.Options(Attack({refused, to}));
    options.before_exec = SetHostileCircumstances;
    const Outcome outcome = RunProcess(options);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(ResultOf(outcome, refused), "EACCES:400");
    EXPECT_EQ(ResultOf(outcome, to), "0");
    const auto log = node ? ReadLog(daemon->log_path()) : sandbox.Log();
    EXPECT_EQ(Refusals(log, "TCP_NOT_PROXY"), 400U);
    // The launcher's umask is none of the log's.
    const std::filesystem::path where = node ? daemon->log_path() : sandbox.directory() / "state/oarlock/audit";
    for (const auto& entry : std::filesystem::directory_iterator(node ? where.parent_path() : where)) {
      struct stat status{};
      ASSERT_EQ(::stat(entry.path().c_str(), &status), 0);
      EXPECT_EQ(status.st_mode & 027U, 0U) << entry.path() << " has mode " << std::oct << status.st_mode;
    }
    // The twin is refused nothing.
    if (!node) {
      const Outcome bare = sandbox.RunBare(Attack({refused}));
      EXPECT_EQ(ResultOf(bare, refused).find("EACCES"), std::string::npos) << bare.out;
    }
  }
}

}  // namespace
}  // namespace oarlock::test
