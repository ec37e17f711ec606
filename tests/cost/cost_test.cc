// SPDX-License-Identifier: Apache-2.0
// What one call costs its supervisor, counted: system calls of the thread that answers, and heap allocations. Each figure is the
// difference between N and 2N calls, so that what happens once cancels, and has to come out whole.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/cost/counter.h"
#include "tests/support/daemon.h"
#include "tests/support/sandbox.h"
#include "tests/support/servers.h"

namespace oarlock::test {
namespace {

constexpr long kCalls = 100;
// What may stray into a phase at its ends: a timer of the loop, the last call's tail. Less than a tenth of a call each.
constexpr long kStray = kCalls / 10;
constexpr long kWarm = 21;
constexpr int kConnects = kWarm + 3 * kCalls + 2;  // of one Count

using PerCall = std::map<std::string, long>;

const std::map<long, std::string>& Names() {
  static const std::map<long, std::string> names = {
      {SYS_ioctl, "ioctl"}, {SYS_process_vm_readv, "process_vm_readv"}, {438, "pidfd_getfd"}, {434, "pidfd_open"},
      {SYS_getsockopt, "getsockopt"}, {SYS_getsockname, "getsockname"}, {SYS_connect, "connect"}, {SYS_close, "close"},
      {426, "io_uring_enter"}, {SYS_ppoll, "ppoll"}, {SYS_fcntl, "fcntl"}, {SYS_clock_gettime, "clock_gettime"}, {SYS_futex, "futex"}};
  return names;
}

std::string NameOf(long number) {
  const auto at = Names().find(number);
  return at != Names().end() ? at->second : "call " + std::to_string(number);
}

// Lets the client make `count` calls; all of them must do what they should.
void Make(Process& client, const char* what, long count) {
  client.Write(std::string(what) + " " + std::to_string(count) + "\n");
  const std::string answer = "done " + std::to_string(count) + " " + std::to_string(count) + "\n";
  const size_t before = client.out().size();
  ASSERT_TRUE(client.WaitFor(answer, std::chrono::seconds(60))) << client.out().substr(before) << client.err();
}

// By how much `read` grows per call of the kind. Counts are all different, so that each answer is told from those before.
template <typename Read>
long PerOne(Process& client, const char* what, long warm, Read read) {
  Make(client, what, warm);
  const long start = read();
  Make(client, what, kCalls + warm % 7);
  const long middle = read();
  Make(client, what, 2 * kCalls + warm % 7);
  const long difference = (read() - middle) - (middle - start);
  const long whole = std::lround(static_cast<double>(difference) / kCalls);
  EXPECT_LE(std::abs(difference - whole * kCalls), kStray) << what << ": " << difference << " in " << kCalls << " calls";
  return whole;
}

// What one call of each kind costs the thread. `odd`: what did not come out whole.
struct Counted {
  PerCall socket, connect;
  std::string odd;
};

PerCall CountCalls(Process& client, const char* what, const SyscallCounter& counter, long odd, std::string* problem) {
  const auto start = counter.Read();
  Make(client, what, kCalls + odd);
  const auto middle = counter.Read();
  Make(client, what, 2 * kCalls + odd);
  const auto end = counter.Read();
  PerCall out;
  for (size_t i = 0; i < start.size(); ++i) {
    const long difference = (end[i] - middle[i]) - (middle[i] - start[i]);
    const long whole = std::lround(static_cast<double>(difference) / kCalls);
    const std::string name = NameOf(static_cast<long>(i));
    if (std::abs(difference - whole * kCalls) > kStray) *problem += " " + name + ": " + std::to_string(difference) + " in " + std::to_string(kCalls) + " calls";
    if (whole != 0) out[name] = whole;
  }
  return out;
}

Counted Count(Process& client, pid_t tid) {
  Counted out;
  Make(client, "connect", kWarm);
  const SyscallCounter counter(tid);
  if (!counter.attached()) {
    out.odd = "ptrace: errno " + std::to_string(counter.error());
    return out;
  }
  // Other numbers for each kind: the answers are searched for.
  out.socket = CountCalls(client, "socket", counter, 0, &out.odd);
  out.connect = CountCalls(client, "connect", counter, 1, &out.odd);
  // A client's connect is a socket() and a connect().
  for (const auto& [name, count] : out.socket)
    if ((out.connect[name] -= count) == 0) out.connect.erase(name);
  return out;
}

std::string ClientPath() { return OARLOCK_BINARY_DIR "/tests/bin/oarlock-cost-client"; }

std::string Grants(const TcpServer& server, const std::string& broker) {
  return "\"net\":\"egress-allowlist\",\"proxy_port\":" + std::to_string(server.port()) + ",\"broker_socket\":\"" + broker + "\"";
}

const PerCall kFloorSocket = {{"ioctl", 2}};  // RECV, SEND
const PerCall kFloorConnect = {{"ioctl", 3}, {"process_vm_readv", 1}, {"pidfd_getfd", 1}, {"getsockopt", 1}, {"connect", 1}, {"close", 1}};
const PerCall kOurSocket = {{"ppoll", 1}, {"ioctl", 2}};
// io_uring_enter is the connect; getsockname finds a socket connected to itself (E-45).
const PerCall kOurConnect = {{"ppoll", 1}, {"ioctl", 3}, {"process_vm_readv", 1}, {"pidfd_getfd", 1}, {"getsockopt", 1},
                             {"io_uring_enter", 1}, {"getsockname", 1}, {"close", 1}};
const PerCall kOurUnixConnect = {{"ppoll", 1}, {"ioctl", 3}, {"process_vm_readv", 1}, {"pidfd_getfd", 1}, {"io_uring_enter", 1}, {"close", 1}};
// A clock that the vDSO cannot read costs calls of the machine's, not ours.
PerCall WithoutClock(PerCall calls) {
  calls.erase("clock_gettime");
  return calls;
}

class Cost : public ::testing::Test {
 protected:
  Cost() : broker_(directory_ / "broker/socket") {
    (void)directory_.MakeDirectory("broker");
    unix_ = std::make_unique<UnixServer>(broker_);
  }
  TemporaryDirectory directory_;
  TcpServer server_;
  std::string broker_;
  std::unique_ptr<UnixServer> unix_;
};

TEST_F(Cost, TheFloorsSystemCalls) {
  ProcessOptions options;
  options.argv = {OARLOCK_BINARY_DIR "/tests/bin/oarlock-floor", std::to_string(server_.port()), "--", ClientPath(), std::to_string(server_.port())};
  options.timeout = std::chrono::minutes(2);
  Process floor(options);
  const Counted counted = Count(floor, floor.pid());
  EXPECT_EQ(counted.odd, "");
  EXPECT_EQ(counted.connect, kFloorConnect);
  EXPECT_EQ(counted.socket, kFloorSocket);
  EXPECT_EQ(floor.Wait().code, 0);
  EXPECT_EQ(server_.connections(), kConnects);
}

// A node supervisor that sends no session away, however slow its steps: traced ones are, and those of a busy machine.
class PatientNode {
 public:
  explicit PatientNode(std::map<std::string, std::string> environment = {}) {
    ProcessOptions options;
    const std::string never = std::to_string(UINT64_MAX);
    options.argv = {OARLOCK_BINARY_DIR "/tests/bin/lanes-daemon", socket(), directory_ / "control.sock", directory_ / "audit.jsonl", "0", never, never};
    options.environment = std::move(environment);
    options.timeout = std::chrono::minutes(2);
    process_ = std::make_unique<Process>(options);
    EXPECT_TRUE(process_->WaitFor("ready:")) << process_->err();
  }
  [[nodiscard]] std::string socket() const { return directory_ / "admit.sock"; }
  [[nodiscard]] pid_t pid() const { return process_->pid(); }
  void Ends() {
    process_->Signal(SIGTERM);
    EXPECT_EQ(process_->Wait().code, 0);
  }

 private:
  TemporaryDirectory directory_;
  std::unique_ptr<Process> process_;
};

TEST_F(Cost, OursSystemCalls) {
  for (const bool private_supervisor : {true, false})
    for (const bool is_unix : {false, true}) {
      SCOPED_TRACE(std::string(private_supervisor ? "private" : "node") + (is_unix ? ", unix" : ", tcp"));
      const Server& server = is_unix ? static_cast<const Server&>(*unix_) : server_;
      const PatientNode node;
      Sandbox sandbox(Grants(server_, broker_));
      sandbox.Timeout(std::chrono::minutes(2));
      if (!private_supervisor) sandbox.Supervisor(node.socket());
      Process client(sandbox.Options({ClientPath(), is_unix ? broker_ : std::to_string(server_.port())}));
      const int before = server.connections();
      Make(client, "socket", 10);  // it stands
      const pid_t supervisor = private_supervisor ? ProcessWith("oarlock-private", sandbox.directory().path()) : node.pid();
      ASSERT_GT(supervisor, 0);
      // A first session goes to the first of them.
      const std::vector<pid_t> shards = ThreadsNamed(supervisor, "oarlock-shard");
      ASSERT_EQ(shards.size(), private_supervisor ? 1U : 2U);
      const Counted counted = Count(client, shards[0]);
      EXPECT_EQ(client.Wait().code, 0);
      EXPECT_EQ(server.connections() - before, kConnects);
      EXPECT_EQ(counted.odd, "");
      EXPECT_EQ(WithoutClock(counted.connect), is_unix ? kOurUnixConnect : kOurConnect);
      EXPECT_EQ(WithoutClock(counted.socket), kOurSocket);
    }
}

// Where several threads call, the ring chooses who is woken where: a wait beside it would put the shard behind the callers.
TEST_F(Cost, CallersThatTakeTurnsAreWaitedForInTheRing) {
  const PatientNode node;
  Sandbox sandbox(Grants(server_, broker_));
  sandbox.Timeout(std::chrono::minutes(2)).Supervisor(node.socket());
  const ProcessOptions options = sandbox.Options({ClientPath(), std::to_string(server_.port())});
  // The first and the third go to the first shard. The first is quiet after its calls, and waited for as they left it.
  Process quiet(options);
  Make(quiet, "socket", 50);
  Process elsewhere(options);
  Make(elsewhere, "socket", 1);
  Process client(options);
  const SyscallCounter counter(ThreadsNamed(node.pid(), "oarlock-shard").at(0));
  ASSERT_TRUE(counter.attached()) << counter.error();
  Make(client, "turns", 3);
  std::string odd;
  EXPECT_EQ(WithoutClock(CountCalls(client, "turns", counter, 2, &odd)), (PerCall{{"ioctl", 2}, {"io_uring_enter", 1}}));
  EXPECT_EQ(odd, "");
}

// Every allocation of every thread of a node supervisor.
TEST_F(Cost, NoHeapAllocations) {
#ifdef OARLOCK_SANITIZED
  GTEST_SKIP() << "a sanitizer has an allocator of its own, which a preloaded counter does not see";
#endif
  const std::string path = directory_.WriteFile("counter", std::string(8, '\0'));
  const UniqueFd file(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  void* shared = ::mmap(nullptr, 8, PROT_READ, MAP_SHARED, file.get(), 0);
  ASSERT_NE(shared, MAP_FAILED);
  const auto* counter = static_cast<const std::atomic<uint64_t>*>(shared);
  const auto read = [counter] { return static_cast<long>(counter->load()); };

  const std::string preload = OARLOCK_BINARY_DIR "/tests/bin/liboarlock-cost-preload.so";
  PatientNode node({{"LD_PRELOAD", preload}, {"OARLOCK_COST_COUNTER", path}});
  const long started = read();
  EXPECT_GT(started, 0) << "the counter does not count";

  for (const bool is_unix : {false, true}) {
    SCOPED_TRACE(is_unix ? "unix" : "tcp");
    Sandbox sandbox(Grants(server_, broker_));
    sandbox.Timeout(std::chrono::minutes(2)).Supervisor(node.socket());
    Process client(sandbox.Options({ClientPath(), is_unix ? broker_ : std::to_string(server_.port())}));
    Make(client, "socket", 10);
    const long before = read();
    EXPECT_GT(before, started) << "an admission allocates: the counter would have seen it";
    EXPECT_EQ(PerOne(client, "socket", 20, read), 0);
    EXPECT_EQ(PerOne(client, "connect", 22, read), 0);
    // Not one, at all: nothing else happens in this time.
    EXPECT_EQ(read(), before);
    EXPECT_EQ(client.Wait().code, 0);
  }
  node.Ends();
  (void)::munmap(shared, 8);
}

}  // namespace
}  // namespace oarlock::test
