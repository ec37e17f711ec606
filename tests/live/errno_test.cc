// SPDX-License-Identifier: Apache-2.0
// The errno contract, row by row, from inside a sandbox: what the program sees, what the log says, what the server saw. Each
// row runs with the module as root and as uid 65534.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>

#include "tests/support/sandbox.h"
#include "tests/support/servers.h"

namespace oarlock::test {
namespace {

constexpr const char* kNobody = "\"run_as\":{\"uid\":65534,\"gid\":65534}";

std::string Policy(const std::string& members, bool nobody) {
  if (!nobody) return members;
  return members.empty() ? kNobody : members + "," + kNobody;
}

std::string Egress(uint16_t port) { return "\"net\":\"egress-allowlist\",\"proxy_port\":" + std::to_string(port); }

size_t Count(const std::vector<LogLine>& log, const std::string& kind, const std::string& code, const std::string& call) {
  size_t count = 0;
  for (const LogLine& line : log)
    if (line.kind == kind && line.code == code && line.call == call) count += line.count;
  return count;
}

struct Row {
  const char* name;
  std::string policy;              // members
  std::string word;                // of oarlock-probe
  std::string expected;            // its result
  const char* kind;                // null: nothing is recorded
  const char* code;
  const char* call;
};

class ErrnoTest : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(AsRoot, ErrnoTest, testing::Values(false), [](const auto&) { return "root"; });
INSTANTIATE_TEST_SUITE_P(AsNobody, ErrnoTest, testing::Values(true), [](const auto&) { return "uid65534"; });

void Check(const Row& row, bool nobody) {
  Sandbox sandbox(Policy(row.policy, nobody));
  const Outcome outcome = sandbox.Probe({row.word});
  EXPECT_EQ(ResultOf(outcome, row.word), row.expected) << row.name << outcome.err;
  const auto log = sandbox.Log();
  if (row.kind == nullptr) {
    EXPECT_TRUE(std::ranges::none_of(log, [](const LogLine& line) { return !line.kind.empty(); })) << row.name;
    return;
  }
  EXPECT_EQ(Count(log, row.kind, row.code, row.call), 1U) << row.name << " " << row.word;
  // "socket:EACCES" where an earlier step of the operation failed.
  const std::string errno_name = row.expected.substr(row.expected.find(':') + 1);
  for (const LogLine& line : log) {
    if (line.code != row.code) continue;
    EXPECT_EQ(line.errno_name, errno_name) << row.name;
  }
}

TEST_P(ErrnoTest, R_OB_32_TcpConnects) {
  TcpServer proxy, other;
  TcpServer same_port_elsewhere("127.0.0.2", proxy.port());
  TcpServer on_v6("::1", proxy.port());
  const std::string policy = Egress(proxy.port()), port = std::to_string(proxy.port());
  for (const Row& row : std::vector<Row>{
           {"the proxy", policy, "tcp,127.0.0.1," + port, "0 hello", nullptr, "", ""},
           {"the proxy, mapped", policy, "tcp,::ffff:127.0.0.1," + port, "0 hello", nullptr, "", ""},
           {"another port", policy, "tcp,127.0.0.1," + std::to_string(other.port()), "EACCES", "DENY", "TCP_NOT_PROXY", "connect"},
           {"another loopback address", policy, "tcp,127.0.0.2," + port, "EACCES", "DENY", "TCP_NOT_PROXY", "connect"},
           {"::1", policy, "tcp,::1," + port, "EACCES", "DENY", "TCP_NOT_PROXY", "connect"},
           {"0.0.0.0", policy, "tcp,0.0.0.0," + port, "EACCES", "DENY", "TCP_NOT_PROXY", "connect"},
           {"::", policy, "tcp,::," + port, "EACCES", "DENY", "TCP_NOT_PROXY", "connect"},
           {"::ffff:0.0.0.0", policy, "tcp,::ffff:0.0.0.0," + port, "EACCES", "DENY", "TCP_NOT_PROXY", "connect"},
           {"outside", policy, "tcp,203.0.113.1,80", "EACCES", "DENY", "TCP_NOT_PROXY", "connect"},
           {"another mapped port", policy, "tcp,::ffff:127.0.0.1," + std::to_string(other.port()), "EACCES", "DENY", "TCP_NOT_PROXY", "connect"},
           {"as the policy chooses", policy + ",\"refuse_with\":{\"tcp\":\"ECONNREFUSED\"}", "tcp,127.0.0.1," + std::to_string(other.port()), "ECONNREFUSED", "DENY", "TCP_NOT_PROXY", "connect"},
           {"non-blocking", policy, "tcpnb,127.0.0.2," + port, "EACCES", "DENY", "TCP_NOT_PROXY", "connect"},
           {"disconnect and again", policy, "reconnect,127.0.0.1," + port, "0 EISCONN 0 0", nullptr, "", ""},
       })
    Check(row, GetParam());
  EXPECT_EQ(other.connections(), 0);
  EXPECT_EQ(same_port_elsewhere.connections(), 0);
  EXPECT_EQ(on_v6.connections(), 0);
  // The twins reach them.
  Sandbox bare;
  EXPECT_EQ(bare.ProbeBare({"tcp,127.0.0.2," + port}).out, "tcp,127.0.0.2," + port + " -> 0 hello\n");
  EXPECT_EQ(bare.ProbeBare({"tcp,::1," + port}).out, "tcp,::1," + port + " -> 0 hello\n");
  EXPECT_EQ(bare.ProbeBare({"tcp,0.0.0.0," + port}).out, "tcp,0.0.0.0," + port + " -> 0 hello\n");
  EXPECT_EQ(bare.ProbeBare({"tcp,127.0.0.1," + std::to_string(other.port())}).out, "tcp,127.0.0.1," + std::to_string(other.port()) + " -> 0 hello\n");
}

TEST_P(ErrnoTest, WhatTheKernelWouldGive) {
  const uint16_t closed = FreePort();
  const std::string policy = Egress(closed), port = std::to_string(closed);
  // sockaddr_in of 127.0.0.1 and the port, by hand.
  char hex[33];
  (void)std::snprintf(hex, sizeof(hex), "0200%02x%02x7f000001", closed >> 8, closed & 255);
  const std::string in = std::string(hex) + "0000000000000000";
  for (const Row& row : std::vector<Row>{
           {"proxy is down", policy, "tcp,127.0.0.1," + port, "ECONNREFUSED", nullptr, "", ""},
           {"no such descriptor", policy, "badconnect,77,127.0.0.1," + port, "EBADF", nullptr, "", ""},
           {"no such descriptor, refused address", policy, "badconnect,77,127.0.0.2," + port, "EBADF", nullptr, "", ""},
           {"negative descriptor", policy, "badconnect,-1,127.0.0.2," + port, "EBADF", nullptr, "", ""},
           {"no socket", policy, "badconnect,0,127.0.0.1," + port, "ENOTSOCK", nullptr, "", ""},
           {"no socket, refused address", policy, "badconnect,0,127.0.0.2," + port, "ENOTSOCK", nullptr, "", ""},
           {"unmapped pointer", policy, "pointer,2,8", "EFAULT", "PROBE", "ADDR_INVALID", "connect"},
           {"null pointer", policy, "pointer,2,0", "EFAULT", "PROBE", "ADDR_INVALID", "connect"},
           {"kernel pointer", policy, "pointer,2,0xffff888000000000", "EFAULT", "PROBE", "ADDR_INVALID", "connect"},
           {"length 0", policy, "rawconnect,2,1,0," + in, "EINVAL", "PROBE", "ADDR_INVALID", "connect"},
           {"length 1", policy, "rawconnect,2,1,1," + in, "EINVAL", "PROBE", "ADDR_INVALID", "connect"},
           {"length 15", policy, "rawconnect,2,1,15," + in, "EINVAL", "PROBE", "ADDR_INVALID", "connect"},
           {"length 128", policy, "rawconnect,2,1,128," + in, "ECONNREFUSED", nullptr, "", ""},
           {"length 129", policy, "rawconnect,2,1,129," + in, "EINVAL", "PROBE", "ADDR_INVALID", "connect"},
           {"length -1", policy, "rawconnect,2,1,-1," + in, "EINVAL", "PROBE", "ADDR_INVALID", "connect"},
           {"another family", policy, "rawconnect,2,1,16,10001234", "EAFNOSUPPORT", "PROBE", "ADDR_INVALID", "connect"},
       })
    Check(row, GetParam());
}

TEST_P(ErrnoTest, UnixConnects) {
  TemporaryDirectory directory;
  const std::string broker = directory.MakeDirectory("agent") + "/broker.sock", other = directory / "other.sock";
  UnixServer serving(broker), elsewhere(other), abstract("@oarlock-test-" + std::to_string(getpid()));
  const std::string policy = "\"broker_socket\":\"" + broker + "\"";
  for (const Row& row : std::vector<Row>{
           {"the broker", policy, "unix," + broker, "0 hello", nullptr, "", ""},
           {"another path", policy, "unix," + other, "EACCES", "DENY", "UNIX_NOT_BROKER", "connect"},
           {"a path that is not there", policy, "unix,/run/none.sock", "EACCES", "DENY", "UNIX_NOT_BROKER", "connect"},
           {"a well-known one", policy, "unix,/run/systemd/journal/socket", "ENOENT", "PROBE", "UNIX_ABSENT", "connect"},
           {"abstract", policy, "unix,@oarlock-test-" + std::to_string(getpid()), "ECONNREFUSED", "DENY", "UNIX_ABSTRACT", "connect"},
           {"abstract, not there", policy, "unix,@nobody", "ECONNREFUSED", "DENY", "UNIX_ABSTRACT", "connect"},
           {"a pair", policy, "pairconnect," + broker, "EACCES", "DENY", "SOCKET_TYPE", "connect"},
           {"wrong kind of socket", policy, "unixseq," + broker, "EPROTOTYPE", nullptr, "", ""},
           {"no broker at all", "", "unix," + broker, "socket:EACCES", "PROBE", "UNIX_NO_GRANT", "socket"},
       })
    Check(row, GetParam());
  EXPECT_EQ(elsewhere.connections(), 0);
  EXPECT_EQ(abstract.connections(), 0);
  Sandbox bare;
  EXPECT_EQ(bare.ProbeBare({"unix," + other}).out, "unix," + other + " -> 0 hello\n");
}

TEST_P(ErrnoTest, SeqpacketBroker) {
  TemporaryDirectory directory;
  const std::string broker = directory.MakeDirectory("agent") + "/broker.sock";
  UnixServer serving(broker, SOCK_SEQPACKET);
  Check({"seqpacket", "\"broker_socket\":\"" + broker + "\"", "unixseq," + broker, "0 hello", nullptr, "", ""}, GetParam());
}

TEST_P(ErrnoTest, Sockets) {
  TemporaryDirectory directory;
  const std::string broker = directory.MakeDirectory("agent") + "/broker.sock";
  UnixServer serving(broker);
  const std::string both = Egress(FreePort()) + ",\"broker_socket\":\"" + broker + "\"";
  for (const Row& row : std::vector<Row>{
           {"tcp", both, "socket,2,1,0", "0", nullptr, "", ""},
           {"tcp v6", both, "socket,10,0x80801,6", "0", nullptr, "", ""},
           {"unix", both, "socket,1,1,0", "0", nullptr, "", ""},
           {"udp", both, "socket,2,2,0", "EAFNOSUPPORT", "PROBE", "TYPE_DENIED", "socket"},
           {"udp v6", both, "socket,10,2,17", "EAFNOSUPPORT", "PROBE", "TYPE_DENIED", "socket"},
           {"raw", both, "socket,2,3,1", "EPERM", "DENY", "TYPE_DENIED", "socket"},
           {"packet", both, "socket,17,3,0", "EPERM", "DENY", "TYPE_DENIED", "socket"},
           {"mptcp", both, "socket,2,1,262", "EPROTONOSUPPORT", "DENY", "PROTOCOL_DENIED", "socket"},
           {"sctp", both, "socket,2,1,132", "EPROTONOSUPPORT", "DENY", "PROTOCOL_DENIED", "socket"},
           {"route netlink", both, "socket,16,3,0", "EAFNOSUPPORT", "PROBE", "FAMILY_DENIED", "socket"},
           {"audit netlink", both, "socket,16,3,9", "EAFNOSUPPORT", "DENY", "FAMILY_DENIED", "socket"},
           {"vsock", both, "socket,40,1,0", "EAFNOSUPPORT", "DENY", "FAMILY_DENIED", "socket"},
           {"alg", both, "socket,38,5,0", "EAFNOSUPPORT", "DENY", "FAMILY_DENIED", "socket"},
           {"unix datagram", both, "socket,1,2,0", "EACCES", "DENY", "UNIX_TYPE", "socket"},
           {"unix raw", both, "socket,1,3,0", "EACCES", "DENY", "UNIX_TYPE", "socket"},
           {"net none", "", "socket,2,1,0", "EAFNOSUPPORT", "DENY", "FAMILY_DENIED", "socket"},
           {"net none, v6", "", "socket,10,1,0", "EAFNOSUPPORT", "DENY", "FAMILY_DENIED", "socket"},
           {"net none, udp", "", "socket,2,2,0", "EAFNOSUPPORT", "PROBE", "FAMILY_DENIED", "socket"},
           {"unix without a broker", "", "socket,1,1,0", "EACCES", "PROBE", "UNIX_NO_GRANT", "socket"},
           {"pair", "", "socketpair,1,1", "0", nullptr, "", ""},
           {"seqpacket pair", "", "socketpair,1,0x80005", "0", nullptr, "", ""},
           {"datagram pair", "", "socketpair,1,2", "EACCES", "DENY", "UNIX_TYPE", "socketpair"},
           {"raw pair", "", "socketpair,1,3", "EACCES", "DENY", "UNIX_TYPE", "socketpair"},
       })
    Check(row, GetParam());
}

TEST_P(ErrnoTest, R_OB_32_Doors) {
  TcpServer proxy;
  TemporaryDirectory directory;
  UnixServer journal(directory / "journal.sock", SOCK_STREAM);
  const std::string policy = Egress(proxy.port()), port = std::to_string(proxy.port());
  for (const Row& row : std::vector<Row>{
           {"listen without bind", policy, "listen,2", "EACCES", "DENY", "LISTEN_DENIED", "listen"},
           {"accept", policy, "accept,2", "EACCES", "DENY", "ACCEPT_DENIED", "accept4"},
           {"bind", policy, "bind,127.0.0.1,18999", "EACCES", "DENY", "BIND_DENIED", "bind"},
           {"bind to port 0", policy, "bind,127.0.0.1,0", "EACCES", "PROBE", "BIND_DENIED", "bind"},
           {"fast open", policy, "fastopen,127.0.0.1," + port, "EOPNOTSUPP", "DENY", "FASTOPEN", "sendto"},
           {"fast open by sendmsg", policy, "fastopenmsg,127.0.0.1," + port, "EOPNOTSUPP", "DENY", "FASTOPEN", "sendmsg"},
           {"fast open by sendmmsg", policy, "fastopenmmsg,127.0.0.1," + port, "EOPNOTSUPP", "DENY", "FASTOPEN", "sendmmsg"},
           {"option: fast open connect", policy, "option,6,30", "ENOPROTOOPT", "DENY", "SOCKOPT_DENIED", "setsockopt"},
           {"option: routing header", policy, "option,41,57", "ENOPROTOOPT", "DENY", "SOCKOPT_DENIED", "setsockopt"},
           {"option: device", policy, "option,1,25", "ENOPROTOOPT", "DENY", "SOCKOPT_DENIED", "setsockopt"},
           {"option: port range", policy, "option,0,51", "ENOPROTOOPT", "DENY", "SOCKOPT_DENIED", "setsockopt"},
           {"option: no delay", policy, "option,6,1", "0", nullptr, "", ""},
           {"option: keep alive", policy, "option,1,9", "0", nullptr, "", ""},
           {"linger reset", policy, "linger,1,0", "0 1 0", nullptr, "", ""},
           {"linger off", policy, "linger,0,5", "0 0 0", nullptr, "", ""},
           {"linger with a time is off", policy, "linger,1,6", "0 0 0", nullptr, "", ""},
       })
    Check(row, GetParam());
  EXPECT_EQ(proxy.received(), "");
}

TEST_P(ErrnoTest, Calls) {
  struct Call {
    const char* name;
    std::string word, expected;
    const char *kind, *code;
  };
  for (const Call& call : std::vector<Call>{
           {"mount", "call,165", "EPERM", "DENY", "SYSCALL_DENIED"},
           {"umount2", "call,166", "EPERM", "DENY", "SYSCALL_DENIED"},
           {"unshare", "call,272,0x10000000", "EPERM", "DENY", "SYSCALL_DENIED"},
           {"setns", "call,308,0,0", "EPERM", "DENY", "SYSCALL_DENIED"},
           {"ptrace", "call,101,0", "EPERM", "DENY", "SYSCALL_DENIED"},
           {"bpf", "call,321", "EPERM", "DENY", "SYSCALL_DENIED"},
           {"keyctl", "call,250", "EPERM", "DENY", "SYSCALL_DENIED"},
           {"fsopen", "call,430", "EPERM", "DENY", "SYSCALL_DENIED"},
           {"mount_setattr", "call,442", "EPERM", "DENY", "SYSCALL_DENIED"},
           {"process_vm_readv", "call,310", "EPERM", "DENY", "SYSCALL_DENIED"},
           {"userfaultfd", "call,323", "EPERM", "DENY", "SYSCALL_DENIED"},
           {"shmget", "call,29", "EPERM", "DENY", "SYSCALL_DENIED"},
           {"clone", "call,56,0x10000011", "EPERM", "DENY", "SYSCALL_DENIED"},
           {"ioctl", "call,16,0,0x5412", "EPERM", "DENY", "SYSCALL_DENIED"},
           {"ioctl", "call,16,0,0x100005412", "EPERM", "DENY", "SYSCALL_DENIED"},
           {"ioctl", "call,16,0,0x8912", "EPERM", "PROBE", "SYSCALL_DENIED"},
           {"fcntl", "call,72,0,1024,1", "EINVAL", "DENY", "SYSCALL_DENIED"},
           {"prlimit64", "call,302,1,0", "EPERM", "DENY", "SYSCALL_DENIED"},
           {"personality", "call,135,0x0400000", "EPERM", "DENY", "SYSCALL_DENIED"},
           {"io_uring_setup", "call,425,1,0", "ENOSYS", "PROBE", "NOT_BUILT"},
           {"io_uring_enter", "call,426", "ENOSYS", nullptr, ""},
           {"clone3", "call,435,0,0", "ENOSYS", nullptr, ""},
           {"openat2", "call,437", "ENOSYS", nullptr, ""},
           {"io_setup", "call,206", "ENOSYS", nullptr, ""},
           {"(unknown)", "call,999", "ENOSYS", nullptr, ""},
           {"(x32)", "call,0x40000027", "ENOSYS", nullptr, ""},
           {"getpid", "call,39", "0", nullptr, ""},
       })
    Check({call.name, "", call.word, call.expected, call.kind, call.code, call.name}, GetParam());
}

TEST_P(ErrnoTest, SetuidBits) {
  TemporaryDirectory directory;
  const std::string work = directory.MakeDirectory("work", 0777);
  const std::string policy = "\"rw\":[\"" + work + "\"]";
  const bool gid_zero = !GetParam();
  const std::string file = directory.WriteFile("work/f", "x", 0666);
  if (!gid_zero) {
    ASSERT_EQ(chown(file.c_str(), 65534, 65534), 0);
  }
  for (const Row& row : std::vector<Row>{
           {"chmod setuid", policy, "call,268,-100,0", "EFAULT", nullptr, "", ""},
           {"create setuid", policy, "open," + work + "/s,0x41,04755", "EPERM", "DENY", "SYSCALL_DENIED", "openat"},
           {"create setgid", policy, "open," + work + "/g,0x41,02755", "EPERM", "DENY", "SYSCALL_DENIED", "openat"},
           {"fchmod setuid", policy, "call,91,0,04755", "EPERM", "DENY", "SYSCALL_DENIED", "fchmod"},
       })
    Check(row, GetParam());
  // In chmod the setgid bit counts only where the module's gid is 0: setgid workspaces are common.
  Sandbox sandbox(Policy(policy, GetParam()));
  const Outcome outcome = sandbox.Probe({"call,91,99,02755"});
  EXPECT_EQ(ResultOf(outcome, "call,91,99,02755"), gid_zero ? "EPERM" : "EBADF");
}

}  // namespace
}  // namespace oarlock::test
