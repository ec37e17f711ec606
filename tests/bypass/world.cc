// SPDX-License-Identifier: Apache-2.0
// The outside half's world: what must not be reached from inside, and what a hostile parent leaves open.
#include <dirent.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <linux/io_uring.h>
#include <linux/seccomp.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <net/route.h>
#include <netpacket/packet.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <filesystem>
#include <fstream>

#include "tests/bypass/inside.h"
#include "tests/bypass/outside.h"

namespace bypass {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void Fail(const std::string& what) {
  fprintf(stderr, "oarlock-bypass: %s: %s\n", what.c_str(), strerror(errno));
  exit(2);
}

std::string Hex(const void* data, size_t size) {
  std::string hex;
  for (size_t i = 0; i < size; ++i) {
    char two[3];
    (void)snprintf(two, sizeof(two), "%02x", static_cast<const unsigned char*>(data)[i]);
    hex += two;
  }
  return hex;
}

// A descriptor above those that launches inherit.
int High(int fd) {
  const int high = fcntl(fd, F_DUPFD_CLOEXEC, 200);
  if (fd >= 0) (void)close(fd);
  return high;
}

}  // namespace

std::string Outside::Text(const std::string& key) const {
  const auto found = values_.find(key);
  return found == values_.end() ? "" : found->second;
}

std::string Outside::Filled(std::string text) const {
  for (const char* key : {"work", "tools", "outside", "proxy", "broker", "policy", "base"}) {
    const std::string place = std::string("{") + (std::strcmp(key, "proxy") == 0 ? "proxy_port" : key) + "}";
    for (size_t at; (at = text.find(place)) != std::string::npos;) text.replace(at, place.size(), Text(key));
  }
  return text;
}

Outside::Outside(Options options) : options_(std::move(options)) {
  (void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  // Namespaces of our own: whatever a try changes of the network, mounts, queues or the host name ends with us.
  if (getuid() != 0) Fail("needs root, to be able to see what happens outside");
  if (unshare(CLONE_NEWNET | CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS) != 0) Fail("unshare");
  if (mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) Fail("private mounts");
  unsigned char random[12];
  if (getentropy(random, sizeof(random)) != 0) Fail("getentropy");
  secret_ = "secret-" + Hex(random, sizeof(random));
  MakeDirectories();
  MakeNetwork();
  servers_ = std::make_unique<Servers>();
  MakeServers();
  MakeInherited();
  const Victim victim = NewVictim();
  Set("victim", victim.pid);
  Set("victim_address", static_cast<long>(victim.address));
}

Outside::~Outside() {
  waking_ = {};
  servers_.reset();
  for (const auto& [pid, in] : victims_) {
    (void)kill(pid, SIGKILL);
    if (in >= 0) (void)close(in);
  }
  // What a try left behind is ours to reap: it has ended, or is killed by its id.
  for (int i = 0; i < 200; ++i) {
    const pid_t pid = waitpid(-1, nullptr, WNOHANG);
    if (pid < 0) break;
    if (pid == 0) usleep(5000);
  }
  for (const char* mounted : {"/alias", "/merged", "/overlay"}) (void)umount2((base_ + mounted).c_str(), MNT_DETACH);
  std::error_code ignored;
  fs::remove_all(base_, ignored);
}

void Outside::MakeDirectories() {
  char name[] = "/tmp/oarlock-bypass-XXXXXX";
  if (mkdtemp(name) == nullptr || chmod(name, 0755) != 0) Fail("a directory below /tmp");
  base_ = name;
  Set("base", base_);
  (void)umask(022);
  for (const char* each : {"work", "tools", "outside", "agent", "alias", "merged", "state", "upper", "overlay"}) {
    const std::string path = base_ + "/" + each;
    if (mkdir(path.c_str(), 0755) != 0) Fail(path);
    Set(each, path);
  }
  for (const char* owned : {"work", "state"})
    if (chown((base_ + "/" + owned).c_str(), uid(), uid()) != 0) Fail(owned);
  for (const char* each : {"/tools/oarlock-bypass", "/tools/setuid", "/outside/program"}) fs::copy_file("/proc/self/exe", base_ + each);
  if (chown((base_ + "/tools/setuid").c_str(), kStranger, kStranger) != 0 || chmod((base_ + "/tools/setuid").c_str(), 06755) != 0) Fail("setuid program");
  for (const char* file : {"/tools/flagged", "/tools/futex"}) {
    std::ofstream(base_ + file) << std::string(4096, '\0');
    if (chown((base_ + file).c_str(), uid(), uid()) != 0) Fail(file);
  }
  Set("secret_file", MakeFile("secret", secret_));
  Set("own_file", MakeFile("own", "own"));
  if (mkfifo((Text("outside") + "/fifo").c_str(), 0666) != 0 || chmod((Text("outside") + "/fifo").c_str(), 0666) != 0) Fail("fifo");
  (void)mount(Text("outside").c_str(), Text("alias").c_str(), nullptr, MS_BIND, nullptr);
  // An overlay needs its upper directory on a file system that can be one: a tmpfs.
  (void)mount("tmpfs", Text("overlay").c_str(), "tmpfs", 0, "mode=0755");
  (void)mkdir((Text("overlay") + "/upper").c_str(), 0755);
  (void)mkdir((Text("overlay") + "/work").c_str(), 0755);
  const std::string layers = "lowerdir=" + Text("outside") + ",upperdir=" + Text("overlay") + "/upper,workdir=" + Text("overlay") + "/work";
  Set("overlaid", mount("overlay", Text("merged").c_str(), "overlay", 0, layers.c_str()) == 0 ? "yes" : "");
}

std::string Outside::MakeFile(const std::string& name, const std::string& content, mode_t mode) {
  const std::string path = Text("outside") + "/" + name;
  (void)unlink(path.c_str());
  {
    std::ofstream file(path, std::ios::trunc | std::ios::binary);
    file << content;
  }
  if (chown(path.c_str(), uid(), uid()) != 0 || chmod(path.c_str(), mode) != 0) Fail(path);
  return path;
}

// The loopback interface, and one that leads away: a TUN device, so that what leaves is what we read from it.
void Outside::MakeNetwork() {
  const UniqueFd control(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)), control6(socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const auto raise = [&](const char* name) {
    ifreq request{};
    std::strcpy(request.ifr_name, name);
    request.ifr_flags = IFF_UP;
    return ioctl(control.get(), SIOCSIFFLAGS, &request) == 0;
  };
  if (!raise("lo")) Fail("lo");
  Set("away", "");
  away_.Reset(open("/dev/net/tun", O_RDWR | O_CLOEXEC | O_NONBLOCK));
  ifreq tun{};
  std::strcpy(tun.ifr_name, "away0");
  tun.ifr_flags = IFF_TUN | IFF_NO_PI;
  if (away_.valid() && ioctl(away_.get(), TUNSETIFF, &tun) == 0) {
    ifreq address{};
    std::strcpy(address.ifr_name, "away0");
    auto* in = reinterpret_cast<sockaddr_in*>(&address.ifr_addr);
    in->sin_family = AF_INET;
    inet_pton(AF_INET, "198.51.100.1", &in->sin_addr);
    bool well = ioctl(control.get(), SIOCSIFADDR, &address) == 0;
    inet_pton(AF_INET, "255.255.255.0", &in->sin_addr);
    well = well && ioctl(control.get(), SIOCSIFNETMASK, &address) == 0 && raise("away0");
    rtentry route{};
    route.rt_dst.sa_family = route.rt_gateway.sa_family = route.rt_genmask.sa_family = AF_INET;
    route.rt_flags = RTF_UP;
    route.rt_dev = tun.ifr_name;
    well = well && ioctl(control.get(), SIOCADDRT, &route) == 0;
    struct {
      in6_addr address;
      uint32_t prefix;
      int index;
    } address6{};
    inet_pton(AF_INET6, "2001:db8::1", &address6.address);
    address6.prefix = 64;
    address6.index = static_cast<int>(if_nametoindex("away0"));
    well = well && ioctl(control6.get(), SIOCSIFADDR, &address6) == 0;
    in6_rtmsg route6{};
    route6.rtmsg_flags = RTF_UP;
    route6.rtmsg_metric = 1;
    route6.rtmsg_ifindex = address6.index;
    well = well && ioctl(control6.get(), SIOCADDRT, &route6) == 0;
    if (well) {
      Set("away", "away0");
      Set("away_index", address6.index);
    }
  }
  loopback_.Reset(socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, htons(ETH_P_IP)));
  sockaddr_ll where{};
  where.sll_family = AF_PACKET;
  where.sll_protocol = htons(ETH_P_IP);
  where.sll_ifindex = static_cast<int>(if_nametoindex("lo"));
  (void)bind(loopback_.get(), reinterpret_cast<sockaddr*>(&where), sizeof(where));
  // Duplicate address detection would hold the address back for a second.
  usleep(10'000);
}

bool Outside::StartProxy() {
  for (int i = 0; i < 50; ++i) {
    const int port = servers_->Tcp("proxy", "127.0.0.1", Number("proxy"), Servers::Sort::kQuiet);
    if (port > 0) {
      Set("proxy", port);
      return true;
    }
    usleep(10'000);
  }
  return false;
}

void Outside::StopProxy() {
  servers_->Remove("proxy");
  // The servers' own poll may hold the socket a moment longer.
  Address address = MakeAddress("127.0.0.1", Number("proxy"));
  for (int i = 0; i < 100; ++i) {
    const UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (bind(fd.get(), address.get(), address.size) == 0) return;
    usleep(5000);
  }
}

constexpr std::pair<const char*, const char*> kNeighbours[] = {
    {"tcp_second", "127.0.0.2"}, {"tcp_far", "127.1.2.3"}, {"tcp_away", "198.51.100.1"}, {"tcp6", "::1"}};
void Outside::StartNeighbours() {
  for (const auto& [key, host] : kNeighbours) Set(key, servers_->Tcp(key, host, Number("proxy")));
}
void Outside::StopNeighbours() {
  for (const auto& [key, host] : kNeighbours) servers_->Remove(key);
}

void Outside::MakeServers() {
  if (!StartProxy()) Fail("a port for the proxy");
  const int proxy = Number("proxy");
  const auto tcp = [&](const char* key, const char* host, int port) { Set(key, servers_->Tcp(key, host, port)); };
  tcp("tcp", "127.0.0.1", 0);
  StartNeighbours();
  Set("udp", servers_->Udp("udp", "127.0.0.1", 0));
  Set("udp_proxy", servers_->Udp("udp_proxy", "127.0.0.1", proxy));
  Set("lite", servers_->Udp("lite", "127.0.0.1", 0, IPPROTO_UDPLITE));
  const auto unix_server = [&](const char* key, const std::string& path, int type, Servers::Sort sort = Servers::Sort::kVictim) {
    if (const int result = servers_->Unix(key, path, type, sort); result < 0) errno = -result, Fail(path);
    Set(key, path);
  };
  const std::string pid = std::to_string(getpid());
  unix_server("stream", Text("outside") + "/stream.sock", SOCK_STREAM);
  unix_server("datagram", Text("outside") + "/datagram.sock", SOCK_DGRAM);
  unix_server("packets", Text("outside") + "/packets.sock", SOCK_SEQPACKET);
  unix_server("abstract", "@oarlock-bypass-" + pid, SOCK_STREAM);
  unix_server("abstract_datagram", "@oarlock-bypass-datagram-" + pid, SOCK_DGRAM);
  unix_server("broker", Text("agent") + "/broker.sock", SOCK_STREAM, Servers::Sort::kBroker);
  unix_server("giver", Text("outside") + "/giver.sock", SOCK_STREAM, Servers::Sort::kBroker);
  servers_->Give("datagram", High(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)));
  servers_->Give("file", High(open(Text("secret_file").c_str(), O_RDONLY | O_CLOEXEC)));
}

void Outside::MakeInherited() {
  const auto inherit = [&](int number, int fd) {
    if (fd >= 0) inherited_[number] = High(fd);
  };
  const auto connected = [](const std::string& host, int port, int type) {
    Address address = MakeAddress(host, port);
    const int fd = socket(address.family(), type | SOCK_CLOEXEC, 0);
    if (fd >= 0) (void)connect(fd, address.get(), address.size);
    return fd;
  };
  inherit(kFdTcp, connected("127.0.0.1", Number("tcp"), SOCK_STREAM));
  inherit(kFdUnix, connected(Text("stream"), 0, SOCK_STREAM));
  inherit(kFdDatagram, connected(Text("abstract_datagram"), 0, SOCK_DGRAM));
  inherit(kFdFile, open(MakeFile("inherited", "as it was").c_str(), O_RDWR | O_CLOEXEC));
  inherit(kFdDirectory, open(Text("outside").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  inherit(kFdProgram, open((Text("outside") + "/program").c_str(), O_RDONLY | O_CLOEXEC));
  const int memory = High(memfd_create("oarlock-bypass", MFD_CLOEXEC));
  (void)!write(memory, "as it was", 9);
  (void)fchmod(memory, 0666);
  Set("memory", memory);
  inherit(kFdMemory, open(("/proc/self/fd/" + std::to_string(memory)).c_str(), O_RDONLY | O_CLOEXEC));

  // Rings: one that whoever holds it may enter, with our credentials registered; and one that the kernel polls for us.
  io_uring_params parameters{};
  const int ring = static_cast<int>(syscall(SYS_io_uring_setup, 8, &parameters));
  if (ring >= 0) {
    Set("ring", Hex(&parameters, sizeof(parameters)));
    Set("ring_personality", syscall(SYS_io_uring_register, ring, IORING_REGISTER_PERSONALITY, nullptr, 0));
    inherit(kFdRing, ring);
  }
  io_uring_params polled{};
  polled.flags = IORING_SETUP_SQPOLL;
  polled.sq_thread_idle = 1000;
  const int polled_ring = High(static_cast<int>(syscall(SYS_io_uring_setup, 8, &polled)));
  if (polled_ring >= 0) {
    static Address address;
    static const char text[] = "<E-03/connect>";
    address = MakeAddress("127.0.0.1", Number("tcp"));
    Set("polled", Hex(&polled, sizeof(polled)));
    Set("polled_socket", High(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)));
    Set("polled_address", Of(address.get()));
    Set("polled_text", Of(text));
    inherited_[kFdPolledRing] = polled_ring;
    // Its owner goes on using it: the polling thread, which soon falls asleep, is woken again and again.
    waking_ = std::jthread([polled_ring](const std::stop_token& stop) {
      for (; !stop.stop_requested(); usleep(2000)) (void)syscall(SYS_io_uring_enter, polled_ring, 0, 0, IORING_ENTER_SQ_WAKEUP, nullptr, 0);
    });
  }

  // A process whose connect waits for whoever holds its listener.
  int numbers[2], taken[2];
  if (pipe2(numbers, O_CLOEXEC) != 0 || pipe2(taken, O_CLOEXEC) != 0) return;
  const pid_t watched = fork();
  if (watched == 0) {
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    struct Instruction {
      uint16_t code;
      uint8_t yes, no;
      uint32_t k;
    } code[] = {{0x20, 0, 0, 0}, {0x15, 0, 1, SYS_connect}, {6, 0, 0, SECCOMP_RET_USER_NOTIF}, {6, 0, 0, SECCOMP_RET_ALLOW}};
    struct {
      uint16_t length;
      Instruction* code;
    } program{4, code};
    (void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    const long fd = Raw(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, Of(&program));
    (void)Raw(SYS_write, numbers[1], Of(&fd), sizeof(fd));
    char byte;
    (void)Raw(SYS_read, taken[0], Of(&byte), 1);
    // Copies of our servers' sockets would keep their ports taken.
    (void)Raw(SYS_close_range, 3, ~0U, 0);
    Address address = MakeAddress("127.0.0.1", Number("tcp"));
    const long socket = Socket(AF_INET, SOCK_STREAM);
    if (Raw(SYS_connect, socket, Of(address.get()), address.size) == 0) (void)SendText(socket, "<E-92/continue>");
    pause();
    _exit(0);
  }
  victims_.emplace_back(watched, -1);
  long number = -1;
  if (read(numbers[0], &number, sizeof(number)) == sizeof(number) && number >= 0) {
    const UniqueFd pidfd(static_cast<int>(syscall(SYS_pidfd_open, watched, 0)));
    inherit(kFdListener, static_cast<int>(syscall(SYS_pidfd_getfd, pidfd.get(), number, 0)));
  }
  (void)!write(taken[1], "x", 1);
  for (const int fd : {numbers[0], numbers[1], taken[0], taken[1]}) (void)close(fd);
}

void Outside::TakeIdentity() const {
  if (options_.identity == Identity::kRoot) return;
  for (int capability = 0; prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) == 0; ++capability) {
  }
  (void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  if (options_.identity == Identity::kUnprivileged &&
      (Raw(SYS_setgroups, 0, 0) != 0 || Raw(SYS_setresgid, kNobody, kNobody, kNobody) != 0 || Raw(SYS_setresuid, kNobody, kNobody, kNobody) != 0))
    _exit(118);
  struct {
    uint32_t version;
    int pid;
  } header{0x20080522, 0};
  const uint32_t none[6] = {};
  if (Raw(SYS_capset, Of(&header), Of(none)) != 0) _exit(118);
}

Victim Outside::NewVictim(bool stranger) {
  Victim victim;
  int to[2], from[2];
  if (pipe2(to, O_CLOEXEC) != 0 || pipe2(from, O_CLOEXEC) != 0) Fail("pipe");
  const std::string program = self(), environment = "OARLOCK_BYPASS=" + secret_;
  victim.pid = fork();
  if (victim.pid == 0) {
    (void)setsid();
    (void)dup2(to[0], 0);
    (void)dup2(from[1], 1);
    if (stranger) {
      if (Raw(SYS_setgroups, 0, 0) != 0 || setresgid(kStranger, kStranger, kStranger) != 0 || setresuid(kStranger, kStranger, kStranger) != 0) _exit(118);
    } else {
      TakeIdentity();
    }
    char mode[] = "--victim";
    std::string path = program, secret = secret_, variable = environment;
    char* argv[] = {path.data(), mode, secret.data(), nullptr};
    char* envp[] = {variable.data(), nullptr};
    (void)execve(path.c_str(), argv, envp);
    _exit(127);
  }
  (void)close(to[0]);
  (void)close(from[1]);
  std::string line;
  if (!ReadLine(from[0], &line)) Fail("a victim");
  victim.address = std::strtoul(line.c_str(), nullptr, 10);
  (void)close(from[0]);
  victims_.emplace_back(victim.pid, to[1]);
  return victim;
}

bool Outside::Alive(pid_t pid) {
  siginfo_t info{};
  return waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == 0;
}

std::vector<std::string> Outside::Departed() {
  std::vector<std::string> packets;
  char buffer[4096];
  for (ssize_t got; (got = read(away_.get(), buffer, sizeof(buffer))) > 0;) {
    const std::string packet(buffer, static_cast<size_t>(got));
    // Of the kernel's own: neighbour discovery, multicast reports, and what answers for connections of before.
    const int version = static_cast<unsigned char>(packet[0]) >> 4;
    const int protocol = static_cast<unsigned char>(packet[version == 6 ? 6 : 9]);
    if (protocol == IPPROTO_ICMPV6 || protocol == IPPROTO_IGMP || protocol == IPPROTO_ICMP || protocol == 0) continue;
    packets.push_back(packet);
  }
  return packets;
}

std::vector<std::string> Outside::OnLoopback() {
  std::vector<std::string> packets;
  char buffer[4096];
  sockaddr_ll from{};
  for (;;) {
    socklen_t size = sizeof(from);
    const ssize_t got = recvfrom(loopback_.get(), buffer, sizeof(buffer), 0, reinterpret_cast<sockaddr*>(&from), &size);
    if (got <= 0) return packets;
    packets.emplace_back(buffer, static_cast<size_t>(got));
  }
}

bool Outside::CanConnect(const std::string& host, int port) {
  Address address = MakeAddress(host, port);
  const UniqueFd fd(socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (connect(fd.get(), address.get(), address.size) == 0) return true;
  if (errno != EINPROGRESS) return false;
  pollfd ready{fd.get(), POLLOUT, 0};
  int error = ETIMEDOUT;
  socklen_t size = sizeof(error);
  if (poll(&ready, 1, 500) > 0) (void)getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &size);
  return error == 0;
}

}  // namespace bypass
