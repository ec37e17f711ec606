// SPDX-License-Identifier: Apache-2.0
#include "tests/endurance/support.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "notif/base/check.h"
#include "tests/support/temporary.h"

namespace oarlock::test {
namespace {

sockaddr_un UnixAddress(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  OARLOCK_CHECK(path.size() < sizeof(address.sun_path));
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

UniqueFd ListenUnix(const std::string& path, int backlog) {
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const sockaddr_un address = UnixAddress(path);
  OARLOCK_CHECK(::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0, "%s errno %d", path.c_str(), errno);
  OARLOCK_CHECK(::chmod(path.c_str(), 0666) == 0 && ::listen(fd.get(), backlog) == 0);
  return fd;
}

UniqueFd ListenTcp(int backlog, uint16_t* port) {
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_in in{};
  in.sin_family = AF_INET;
  in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(in);
  OARLOCK_CHECK(::bind(fd.get(), reinterpret_cast<sockaddr*>(&in), size) == 0 && ::listen(fd.get(), backlog) == 0);
  OARLOCK_CHECK(::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&in), &size) == 0);
  *port = ntohs(in.sin_port);
  return fd;
}

void Stop(const UniqueFd& stop, std::thread& thread) {
  const uint64_t one = 1;
  (void)!::write(stop.get(), &one, sizeof(one));
  if (thread.joinable()) thread.join();
}

// Until `stop`: greets whoever comes, and resets the connection once the peer has closed.
void ServeAll(int listening, int stop, std::atomic<uint64_t>* count) {
  const UniqueFd set(::epoll_create1(EPOLL_CLOEXEC));
  const auto watch = [&](int fd) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = fd;
    OARLOCK_CHECK(::epoll_ctl(set.get(), EPOLL_CTL_ADD, fd, &event) == 0);
  };
  watch(listening);
  watch(stop);
  std::vector<int> open;
  for (bool stopped = false; !stopped;) {
    epoll_event events[64];
    const int ready = ::epoll_wait(set.get(), events, 64, -1);
    for (int i = 0; i < ready; ++i) {
      const int fd = events[i].data.fd;
      if (fd == stop) {
        stopped = true;
      } else if (fd != listening) {
        char buffer[64];
        if (::recv(fd, buffer, sizeof(buffer), MSG_DONTWAIT) > 0) continue;
        ::close(fd);
        std::erase(open, fd);
      } else {
        for (int accepted = 0; (accepted = ::accept4(listening, nullptr, nullptr, SOCK_CLOEXEC)) >= 0;) {
          const linger reset{1, 0};
          (void)::setsockopt(accepted, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
          // Before the greeting: whoever has that is counted.
          if (count != nullptr) ++*count;
          (void)::send(accepted, "h", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
          open.push_back(accepted);
          watch(accepted);
        }
      }
    }
  }
  for (const int fd : open) ::close(fd);
}

std::string TcpTarget(uint16_t port) { return "tcp:" + std::to_string(port); }

std::string ReadComm(const std::filesystem::path& directory) {
  std::ifstream file(directory / "comm");
  std::string name;
  std::getline(file, name);
  return name;
}

bool IsNumber(const std::string& text) { return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos; }

std::vector<pid_t> AllProcesses() {
  std::vector<pid_t> list;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", error))
    if (const std::string name = entry.path().filename(); IsNumber(name)) list.push_back(std::atoi(name.c_str()));
  return list;
}

// Where every link of /proc/PID/fd leads.
std::vector<std::string> OpenFiles(pid_t pid) {
  std::vector<std::string> list;
  std::error_code error;
  std::filesystem::directory_iterator at("/proc/" + std::to_string(pid) + "/fd", error), end;
  for (; !error && at != end; at.increment(error)) {
    std::error_code gone;
    list.push_back(std::filesystem::read_symlink(at->path(), gone).string());
  }
  return list;
}

}  // namespace

Counter::Counter() : listening_(ListenTcp(512, &port_)), stop_(::eventfd(0, EFD_CLOEXEC)), target_(TcpTarget(port_)) {
  thread_ = std::thread([this] { Serve(); });
}

Counter::Counter(const std::string& path) : listening_(ListenUnix(path, 512)), stop_(::eventfd(0, EFD_CLOEXEC)), target_("unix:" + path) {
  thread_ = std::thread([this] { Serve(); });
}

Counter::~Counter() { Stop(stop_, thread_); }

void Counter::Serve() { ServeAll(listening_.get(), stop_.get(), &connections_); }

Full::Full() : listening_(ListenTcp(0, &port_)), stop_(::eventfd(0, EFD_CLOEXEC)), target_(TcpTarget(port_)) {
  sockaddr_in in{};
  in.sin_family = AF_INET;
  in.sin_port = htons(port_);
  in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  // One more than the backlog is accepted; a further one shows that the next is not.
  for (int i = 0; i < 2; ++i) {
    fillers_.emplace_back(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    (void)::connect(fillers_.back().get(), reinterpret_cast<sockaddr*>(&in), sizeof(in));
    pollfd done{fillers_.back().get(), POLLOUT, 0};
    const bool connected = ::poll(&done, 1, 100) == 1;
    OARLOCK_CHECK(connected == (i == 0), "backlog 0 took %d", i);
  }
  fillers_.pop_back();
}

Full::Full(const std::string& path) : listening_(ListenUnix(path, 0)), stop_(::eventfd(0, EFD_CLOEXEC)), target_("unix:" + path) {
  const sockaddr_un address = UnixAddress(path);
  for (int i = 0; i < 2; ++i) {
    fillers_.emplace_back(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    const bool connected = ::connect(fillers_.back().get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
    OARLOCK_CHECK(connected == (i == 0), "backlog 0 took %d", i);
  }
}

Full::~Full() { Stop(stop_, thread_); }

void Full::Drain() {
  OARLOCK_CHECK(!thread_.joinable() && ::listen(listening_.get(), 512) == 0);
  thread_ = std::thread([this] { ServeAll(listening_.get(), stop_.get(), nullptr); });
}

std::string ValueOf(const std::string& out, const std::string& name) {
  const std::string key = name + "=";
  for (size_t at = out.find(key); at != std::string::npos; at = out.find(key, at + 1)) {
    if (at > 0 && out[at - 1] != ' ' && out[at - 1] != '\n') continue;
    const size_t begin = at + key.size();
    return out.substr(begin, out.find_first_of(" \n", begin) - begin);
  }
  return {};
}

double NumberOf(const std::string& out, const std::string& name) {
  const std::string value = ValueOf(out, name);
  return value.empty() ? -1e9 : std::strtod(value.c_str(), nullptr);
}

Holding HoldingOf(pid_t pid) {
  Holding holding;
  for (const std::string& link : OpenFiles(pid)) {
    ++holding.descriptors;
    holding.pidfds += link.find("pidfd") != std::string::npos ? 1 : 0;
    holding.sockets += link.starts_with("socket:") ? 1 : 0;
  }
  std::error_code error;
  std::filesystem::directory_iterator at("/proc/" + std::to_string(pid) + "/task", error), end;
  for (; !error && at != end; at.increment(error)) {
    const std::string name = ReadComm(at->path());
    if (name.starts_with("iou-wrk-")) ++holding.io_workers;
    else if (!name.empty()) ++holding.threads;
  }
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmRSS:")) holding.rss_kib = std::atol(line.c_str() + 6);
  return holding;
}

std::string Describe(const Holding& holding) {
  return std::to_string(holding.descriptors) + " descriptors (" + std::to_string(holding.sockets) + " sockets, " +
         std::to_string(holding.pidfds) + " pidfds), " + std::to_string(holding.rss_kib) + " KiB, " + std::to_string(holding.threads) +
         " threads, " + std::to_string(holding.io_workers) + " io workers";
}

Holding Settled(pid_t pid) {
  Holding before = HoldingOf(pid);
  for (int i = 0; i < 50; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    const Holding now = HoldingOf(pid);
    const bool same = now.descriptors == before.descriptors && now.threads == before.threads && now.io_workers == before.io_workers;
    before = now;
    if (same) break;
  }
  return before;
}

pid_t FindHolder(const std::string& name, const std::string& prefix) {
  for (const pid_t pid : AllProcesses()) {
    if (ReadComm("/proc/" + std::to_string(pid)) != name) continue;
    for (const std::string& link : OpenFiles(pid))
      if (link.starts_with(prefix)) return pid;
  }
  return -1;
}

std::vector<pid_t> FindByCommandLine(const std::string& text) {
  std::vector<pid_t> found;
  for (const pid_t pid : AllProcesses())
    if (pid != ::getpid() && ReadWholeFile("/proc/" + std::to_string(pid) + "/cmdline").find(text) != std::string::npos) found.push_back(pid);
  return found;
}

Tallies::Tallies(const std::string& path) {
  const UniqueFd file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
  OARLOCK_CHECK(file.valid() && ::ftruncate(file.get(), sizeof(Tally) * kTallies) == 0);
  void* memory = ::mmap(nullptr, sizeof(Tally) * kTallies, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  OARLOCK_CHECK(memory != MAP_FAILED);
  memory_ = static_cast<Tally*>(memory);
}

Tallies::~Tallies() { (void)::munmap(memory_, sizeof(Tally) * kTallies); }

}  // namespace oarlock::test
