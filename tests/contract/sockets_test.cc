// SPDX-License-Identifier: Apache-2.0
// Sockets and what else passes between processes: which a module makes, where they lead, and what those outside saw.
#include <arpa/inet.h>
#include <mqueue.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <thread>

#include "notif/base/sha256.h"
#include "tests/contract/support.h"
#include "tests/support/daemon.h"
#include "tests/support/servers.h"

namespace oarlock::test {
namespace {

class Sockets : public EachUser {
 protected:
  Sockets() : broker_path_(t_.MakeDirectory("agent") + "/broker.sock"), broker_(broker_path_) {}
  std::string Egress() const { return "\"net\":\"egress-allowlist\",\"proxy_port\":" + std::to_string(proxy_.port()); }
  std::string Broker() const { return "\"broker_socket\":\"" + broker_path_ + "\""; }
  Outcome Inside(const std::string& policy, const Words& words) const {
    Sandbox sandbox(policy);
    sandbox.As(GetParam());
    return test::Inside(sandbox, words);
  }
  Outcome Bare(const Words& words) const {
    Sandbox sandbox;
    sandbox.As(GetParam());
    return test::Bare(sandbox, words);
  }
  void Each(const std::string& policy, const std::vector<Row>& rows) const {
    Words words;
    for (const Row& row : rows) words.push_back(row.word);
    const Outcome inside = Inside(policy, words), bare = Bare(words);
    for (const Row& row : rows) {
      EXPECT_EQ(ResultOf(inside, row.word), row.inside) << row.word << inside.err;
      if (!row.bare.empty()) EXPECT_EQ(ResultOf(bare, row.word), row.bare) << "the twin: " << row.word;
    }
  }
  TemporaryDirectory t_;
  TcpServer proxy_;
  std::string broker_path_;
  UnixServer broker_;
};
OARLOCK_EACH_USER(Sockets);

std::string Socket(int family, int type, int protocol = 0) {
  return "socket," + std::to_string(family) + "," + std::to_string(type) + "," + std::to_string(protocol);
}

// Where datagrams would arrive: as the journal's socket, say.
class Receiver {
 public:
  explicit Receiver(const std::string& name) : fd_(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, name.data(), name.size());
    socklen_t size = sizeof(address);
    if (name[0] == '@') {
      address.sun_path[0] = '\0';
      size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
    }
    EXPECT_EQ(::bind(fd_.get(), reinterpret_cast<sockaddr*>(&address), size), 0) << name;
    if (name[0] != '@') (void)::chmod(name.c_str(), 0777);
  }
  [[nodiscard]] int Take() {
    char buffer[64];
    while (::recv(fd_.get(), buffer, sizeof(buffer), 0) >= 0) ++count_;
    return std::exchange(count_, 0);
  }

 private:
  UniqueFd fd_;
  int count_ = 0;
};

TEST_P(Sockets, R_OB_25_NoUnixSocketWithoutABroker) {
  std::vector<Row> rows;
  for (const int type : {int{SOCK_STREAM}, int{SOCK_SEQPACKET}, int{SOCK_DGRAM}, int{SOCK_RAW}})
    for (const int flags : {0, int{SOCK_CLOEXEC}, int{SOCK_NONBLOCK}, SOCK_CLOEXEC | SOCK_NONBLOCK}) rows.push_back({Socket(AF_UNIX, type | flags), "EACCES", "0"});
  rows.push_back({"to," + broker_path_, "socket:EACCES", "0"});
  rows.push_back({"ring", "ENOSYS", "0"});
  Each("", rows);
  EXPECT_EQ(broker_.connections(), 1) << "the twin's alone";
  // The grant opens this one, and streams alone.
  for (Row& row : rows)
    if (row.word == Socket(AF_UNIX, SOCK_STREAM) || row.word == "to," + broker_path_) row.inside = "0";
  const Outcome granted = Inside(Broker(), {"to," + broker_path_, Socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC), Socket(AF_UNIX, SOCK_DGRAM), "ring"});
  EXPECT_EQ(ResultOf(granted, "to," + broker_path_), "0") << granted.err;
  EXPECT_EQ(ResultOf(granted, Socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC)), "0");
  EXPECT_EQ(ResultOf(granted, Socket(AF_UNIX, SOCK_DGRAM)), "EACCES");
  EXPECT_EQ(ResultOf(granted, "ring"), "ENOSYS");
}

TEST_P(Sockets, R_OB_26_PairsWorkAndReachNobody) {
  const std::string journal = t_ / "journal.sock", name = "@contract-journal-" + std::to_string(::getpid());
  Receiver receiver(journal), abstract(name);
  for (const std::string& policy : {std::string(), Broker()}) {
    const Words words = {"pair,1", "pair,5", "pair,524289", "pair,2," + journal, "pair,3," + journal, "pair,2," + name, "pair,1," + journal, "pair,5," + journal};
    const Outcome inside = Inside(policy, words);
    for (size_t i = 0; i < 3; ++i) EXPECT_EQ(ResultOf(inside, words[i]), "0") << words[i] << inside.err;
    for (size_t i = 3; i < 6; ++i) EXPECT_EQ(ResultOf(inside, words[i]), "socketpair:EACCES") << words[i];
    for (size_t i = 6; i < 8; ++i) EXPECT_NE(ResultOf(inside, words[i]), "0") << words[i];
    ::usleep(20'000);
    EXPECT_EQ(receiver.Take() + abstract.Take(), 0);
    const Outcome bare = Bare(words);
    for (size_t i = 0; i < 6; ++i) EXPECT_EQ(ResultOf(bare, words[i]), "0") << "the twin: " << words[i];
    EXPECT_EQ(receiver.Take(), 2);
    EXPECT_EQ(abstract.Take(), 1);
  }
  // As asyncio and multiprocessing use them.
  Sandbox sandbox;
  sandbox.As(GetParam());
  EXPECT_EQ(sandbox.Run({"/usr/bin/python3", "-c",
                         "import asyncio, socket\n"
                         "async def main():\n"
                         "  a, b = socket.socketpair()\n"
                         "  a.setblocking(False); b.setblocking(False)\n"
                         "  loop = asyncio.get_running_loop()\n"
                         "  await loop.sock_sendall(a, b'through')\n"
                         "  print((await loop.sock_recv(b, 10)).decode())\n"
                         "asyncio.run(main())\n"})
                .out,
            "through\n");
}

TEST_P(Sockets, R_OB_27_EveryOtherFamilyIsRefused) {
  const std::string policy = Egress() + "," + Broker();
  Words words;
  for (int family = 0; family <= 60; ++family)
    for (const int type : {SOCK_STREAM, SOCK_DGRAM, SOCK_RAW}) words.push_back(Socket(family, type));
  // Those with a protocol of note.
  words.push_back(Socket(AF_NETLINK, SOCK_RAW, 9));
  words.push_back(Socket(AF_NETLINK, SOCK_RAW, 12));
  const Outcome inside = Inside(policy, words), bare = Bare(words);
  int refused = 0, made = 0;
  for (const std::string& word : words) {
    const std::string result = ResultOf(inside, word);
    const bool permitted = word == Socket(AF_UNIX, SOCK_STREAM) || word == Socket(AF_INET, SOCK_STREAM) || word == Socket(AF_INET6, SOCK_STREAM);
    if (permitted) {
      EXPECT_EQ(result, "0") << word;
      continue;
    }
    EXPECT_TRUE(result == "EAFNOSUPPORT" || result == "EPERM" || result == "EACCES") << word << " " << result;
    refused += result == "0" ? 0 : 1;
    made += ResultOf(bare, word) == "0" ? 1 : 0;
  }
  EXPECT_EQ(refused, static_cast<int>(words.size()) - 3);
  EXPECT_GE(made, GetParam() == 0 ? 8 : 4) << "the twin makes several of them";
  for (const int family : {AF_NETLINK, AF_VSOCK, AF_ALG}) EXPECT_EQ(ResultOf(inside, Socket(family, SOCK_STREAM)), "EAFNOSUPPORT") << family;
  EXPECT_EQ(ResultOf(inside, Socket(AF_PACKET, SOCK_RAW)), "EPERM");
}

TEST_P(Sockets, R_OB_28_AbstractSocketsOutsideAreOutOfReach) {
  const std::string name = "@contract-" + std::to_string(::getpid()) + "-" + std::to_string(GetParam());
  UnixServer server(name);
  for (const std::string& policy : {std::string(), Broker()}) {
    const Outcome inside = Inside(policy, {"to," + name, "pair,1", "fork:to," + name});
    const std::string expected = policy.empty() ? "socket:EACCES" : "ECONNREFUSED";
    EXPECT_EQ(ResultOf(inside, "to," + name), expected) << inside.err;
    EXPECT_EQ(ResultOf(inside, "fork:to," + name), expected);
    EXPECT_EQ(ResultOf(inside, "pair,1"), "0");
    EXPECT_EQ(server.connections(), 0);
  }
  EXPECT_EQ(ResultOf(Bare({"to," + name}), "to," + name), "0");
}

TEST_P(Sockets, R_OB_30_NetNoneHasNoInternetSockets) {
  std::vector<Row> rows;
  for (const int family : {AF_INET, AF_INET6}) {
    for (const int protocol : {0, 6}) rows.push_back({Socket(family, SOCK_STREAM, protocol), "EAFNOSUPPORT", "0"});
    for (const int flags : {SOCK_CLOEXEC, SOCK_NONBLOCK}) rows.push_back({Socket(family, SOCK_STREAM | flags), "EAFNOSUPPORT", "0"});
    for (const int protocol : {0, 17}) rows.push_back({Socket(family, SOCK_DGRAM, protocol), "EAFNOSUPPORT", "0"});
    rows.push_back({Socket(family, SOCK_STREAM, 262), "EAFNOSUPPORT", ""});
    rows.push_back({Socket(family, SOCK_STREAM, 132), "EAFNOSUPPORT", ""});
    rows.push_back({Socket(family, SOCK_SEQPACKET, 132), "EAFNOSUPPORT", ""});
    rows.push_back({Socket(family, SOCK_DGRAM, family == AF_INET ? 1 : 58), "EAFNOSUPPORT", ""});
    rows.push_back({Socket(family, SOCK_RAW, 6), "EAFNOSUPPORT", GetParam() == 0 ? "0" : "EPERM"});
  }
  rows.push_back({"to,127.0.0.1," + std::to_string(proxy_.port()), "socket:EAFNOSUPPORT", "0"});
  rows.push_back({"ring", "ENOSYS", "0"});
  Each("", rows);
  EXPECT_EQ(proxy_.connections(), 1) << "the twin's alone";
}

TEST_P(Sockets, R_OB_31_TheAllowlistHasStreamsAlone) {
  std::vector<Row> rows;
  for (const int family : {AF_INET, AF_INET6}) {
    for (const int protocol : {0, 6}) rows.push_back({Socket(family, SOCK_STREAM, protocol), "0", "0"});
    for (const int protocol : {0, 17}) rows.push_back({Socket(family, SOCK_DGRAM, protocol), "EAFNOSUPPORT", "0"});
    rows.push_back({Socket(family, SOCK_RAW, 6), "EPERM", GetParam() == 0 ? "0" : "EPERM"});
    rows.push_back({Socket(family, SOCK_SEQPACKET), "EAFNOSUPPORT", ""});
    for (const int protocol : {262, 132, 256, 33, 1, 255}) rows.push_back({Socket(family, SOCK_STREAM, protocol), "EPROTONOSUPPORT", ""});
  }
  Each(Egress(), rows);
}

TEST_P(Sockets, R_OB_33_NothingIsBound) {
  std::vector<Row> rows;
  for (const std::string address : {"127.0.0.1", "0.0.0.0", "::1", "::"}) {
    const uint16_t port = FreePort();
    rows.push_back({"bind," + address + "," + std::to_string(port), "EACCES", "0"});
    rows.push_back({"bind," + address + ",0", "EACCES", "0"});
    rows.push_back({"bind," + address + "," + std::to_string(port) + ",262", "socket:EPROTONOSUPPORT", ""});
  }
  const std::string unix_name = "@contract-bound-" + std::to_string(::getpid());
  (void)t_.MakeDirectory("mine", 0777);
  rows.push_back({"bind," + unix_name, "EACCES", "0"});
  rows.push_back({"bind," + t_ / "mine/s.sock", "EACCES", "0"});
  const std::string policy = Egress() + "," + Broker() + ",\"rw\":[\"" + t_ / "mine" + "\"]";
  Each(policy, rows);
}

TEST_P(Sockets, R_OB_35_NeverListening) {
  std::vector<Row> rows = {{"listen,2", "EACCES", "0"},      // the kernel chooses the port, which no rule of Landlock's judges
                           {"listen,10", "EACCES", "0"},
                           {"listen,2,262", "socket:EPROTONOSUPPORT", ""},
                           {"bindlisten,127.0.0.1," + std::to_string(FreePort()), "EACCES", "0"},
                           {"bindlisten,@contract-listens-" + std::to_string(::getpid()), "EACCES", "0"},
                           {"fork:listen,2", "EACCES", "0"},
                           {"ring", "ENOSYS", "0"}};
  Each(Egress() + "," + Broker(), rows);
  // A connection that was accepted outside and passed in works.
  int ends[2];
  const UniqueFd listening(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)), client(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  ASSERT_EQ(::bind(listening.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(::listen(listening.get(), 1), 0);
  ASSERT_EQ(::getsockname(listening.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
  ASSERT_EQ(::connect(client.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
  const UniqueFd accepted(::accept4(listening.get(), nullptr, nullptr, SOCK_CLOEXEC));
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  const UniqueFd mine(ends[0]), theirs(ends[1]);
  ASSERT_EQ(::write(client.get(), "a", 1), 1);
  ASSERT_EQ(::write(mine.get(), "b", 1), 1);
  Sandbox sandbox("\"keep_fds\":[61,62]");
  sandbox.As(GetParam());
  ProcessOptions options = sandbox.Options(WithProbe({"exchange,61", "exchange,62"}));
  options.before_exec = [&] {
    if (::dup2(accepted.get(), 61) != 61 || ::dup2(theirs.get(), 62) != 62) ::_exit(118);
  };
  const Outcome outcome = RunProcess(options);
  EXPECT_EQ(outcome.out, "exchange,61 -> 0 a\nexchange,62 -> 0 b\n") << outcome.err;
  char byte = 0;
  EXPECT_EQ(::read(client.get(), &byte, 1), 1);
  EXPECT_EQ(byte, 'x');
}

// --- link-local, on an interface of the test's own -----------------------------------------------------------------------------

bool Raise(const char* name, const char* address) {
  const UniqueFd fd(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request{};
  std::strcpy(request.ifr_name, name);
  if (address != nullptr) {
    auto* in = reinterpret_cast<sockaddr_in*>(&request.ifr_addr);
    in->sin_family = AF_INET;
    (void)::inet_pton(AF_INET, address, &in->sin_addr);
    if (::ioctl(fd.get(), SIOCSIFADDR, &request) != 0) return false;
  }
  request.ifr_flags = IFF_UP;
  return ::ioctl(fd.get(), SIOCSIFFLAGS, &request) == 0;
}

TEST(SocketsOfAHost, R_OB_32_R_OB_43_NoLinkLocalNoOtherLoopbackNoPrivateAddress) {
  if (::getuid() != 0) GTEST_SKIP() << "makes a network namespace";
  // In a thread, so that the namespace is its own; the servers' threads and the launched processes come of it.
  std::string skipped;
  std::thread([&] {
    if (::unshare(CLONE_NEWNET) != 0 || !Raise("lo", nullptr) || !Raise("lo:1", "169.254.7.7") || !Raise("lo:2", "10.9.8.7")) {
      skipped = std::string("no network namespace or no further addresses: ") + std::strerror(errno);
      return;
    }
    TcpServer proxy;
    std::vector<std::unique_ptr<TcpServer>> others;
    std::vector<std::string> addresses = {"127.0.0.2", "::1", "169.254.7.7", "10.9.8.7"};
    for (const std::string& address : addresses) others.push_back(std::make_unique<TcpServer>(address, proxy.port()));
    const std::string port = std::to_string(proxy.port());
    Sandbox sandbox("\"net\":\"egress-allowlist\",\"proxy_port\":" + port);
    Words words = {"to,127.0.0.1," + port, "to,::ffff:127.0.0.1," + port};
    for (const std::string& address : addresses) words.push_back("to," + address + "," + port);
    words.push_back("to,::ffff:169.254.7.7," + port);
    words.push_back("to,fe80::1," + port);
    const Outcome inside = Inside(sandbox, words);
    for (size_t i = 0; i < words.size(); ++i) EXPECT_EQ(ResultOf(inside, words[i]), i < 2 ? "0" : "EACCES") << words[i] << inside.err;
    for (const auto& other : others) EXPECT_EQ(other->connections(), 0);
    const Outcome bare = Bare(sandbox, words);
    for (size_t i = 0; i + 1 < words.size(); ++i) EXPECT_EQ(ResultOf(bare, words[i]), "0") << "the twin: " << words[i];
    for (const auto& other : others) EXPECT_GE(other->connections(), 1);
  }).join();
  if (!skipped.empty()) GTEST_SKIP() << skipped;
}

// --- what processes share ------------------------------------------------------------------------------------------------------

TEST_P(Sockets, R_OB_44_NothingIsSharedWithProcessesOutside) {
  // A segment, a queue, semaphores and a POSIX queue that everybody may use.
  const key_t key = 0x0a100000 + static_cast<key_t>(::getpid() % 50000) * 4 + (GetParam() == 0 ? 0 : 1);
  const int shm = ::shmget(key, 4096, IPC_CREAT | IPC_EXCL | 0666), msg = ::msgget(key, IPC_CREAT | IPC_EXCL | 0666), sem = ::semget(key, 1, IPC_CREAT | IPC_EXCL | 0666);
  ASSERT_TRUE(shm >= 0 && msg >= 0 && sem >= 0) << std::strerror(errno);
  auto* text = static_cast<char*>(::shmat(shm, nullptr, 0));
  std::strcpy(text, "outside");
  const std::string name = "contract-" + std::to_string(::getpid());
  const mode_t mask = ::umask(0);
  const mqd_t queue = ::mq_open(("/" + name).c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0666, nullptr);
  (void)::umask(mask);
  const std::string number = std::to_string(key), other = t_ / "agent/other.sock", hidden = "@contract-ipc-" + std::to_string(::getpid());
  UnixServer beside(other), abstract(hidden);
  {
    for (const bool with_broker : {false, true}) {
      SCOPED_TRACE(with_broker);
      std::vector<Row> rows = {{"shm," + number, "EPERM", "0 outside"},
                               {"msg," + number, "EPERM", "0"},
                               {"sem," + number, "EPERM", "0"},
                               {"to," + other, with_broker ? "EACCES" : "socket:EACCES", "0"},
                               {"to," + hidden, with_broker ? "ECONNREFUSED" : "socket:EACCES", "0"},
                               {"to," + broker_path_, with_broker ? "0" : "socket:EACCES", "0"},
                               {"kill," + std::to_string(::getpid()) + ",0", "EPERM", GetParam() == 0 ? "0" : "EPERM"}};
      if (queue >= 0) rows.push_back({"queue," + name, "ENOSYS", "0"});
      const int before = beside.connections();
      Words words;
      for (const Row& row : rows) words.push_back(row.word);
      const Outcome inside = Inside(with_broker ? Broker() : "", words);
      for (const Row& row : rows) EXPECT_EQ(ResultOf(inside, row.word), row.inside) << row.word << inside.err;
      EXPECT_EQ(beside.connections(), before);
      EXPECT_EQ(abstract.connections(), before);
      const Outcome bare = Bare(words);
      for (const Row& row : rows) EXPECT_EQ(ResultOf(bare, row.word), row.bare) << "the twin: " << row.word;
    }
  }
  (void)::shmdt(text);
  (void)::shmctl(shm, IPC_RMID, nullptr);
  (void)::msgctl(msg, IPC_RMID, nullptr);
  (void)::semctl(sem, 0, IPC_RMID);
  if (queue >= 0) {
    (void)::mq_close(queue);
    (void)::mq_unlink(("/" + name).c_str());
  }
}

// --- the record ----------------------------------------------------------------------------------------------------------------

TEST_P(Sockets, R_MO_36_EachRefusalIsARecordInAChain) {
  TcpServer other;
  Sandbox sandbox(Egress());
  sandbox.As(GetParam());
  const std::string word = "to,127.0.0.1," + std::to_string(other.port());
  const std::string policy_text = ReadWholeFile(sandbox.policy_path());
  EXPECT_EQ(ResultOf(test::Inside(sandbox, {word, "call,165", word}), word), "EACCES");
  int connects = 0, mounts = 0;
  std::string previous;
  for (const LogLine& line : sandbox.Log()) {
    const Json record = Parsed(line.text);
    EXPECT_GT(record["metadata"]["sequence"].get<int>(), 0);
    EXPECT_EQ(record["unmapped"]["prev_hash"].get<std::string>().size(), 64U);
    if (!previous.empty()) EXPECT_EQ(record["unmapped"]["prev_hash"], previous);
    previous = record["unmapped"]["hash"];
    if (line.kind != "DENY") continue;
    EXPECT_GT(record["time"].get<int64_t>(), 1'600'000'000'000);
    EXPECT_GT(record["actor"]["process"]["pid"].get<int>(), 1);
    EXPECT_EQ(record["policy"]["uid"], Sha256Hex(policy_text));
    EXPECT_EQ(record["disposition_id"], 2);
    if (line.call == "connect") {
      connects += static_cast<int>(line.count);
      EXPECT_EQ(record["dst_endpoint"]["port"], other.port());
    }
    if (line.call == "mount") mounts += static_cast<int>(line.count);
  }
  EXPECT_EQ(connects, 2);
  EXPECT_EQ(mounts, 1);
  EXPECT_EQ(other.connections(), 0);
}

}  // namespace
}  // namespace oarlock::test
