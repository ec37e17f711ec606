// SPDX-License-Identifier: Apache-2.0
// hostile-staller: a module that makes whoever acts for it wait, and the neighbour that measures whether it had to. Each attack
// prints "attacking" once it has begun and goes on for its time.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include <optional>
#include <thread>

#include "notif/base/pass_fd.h"
#include "tests/hostile/program.h"

namespace {

using namespace hostile;

double Now() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}
std::string Ms(double value) {
  char text[32];
  (void)snprintf(text, sizeof(text), "%.1f", value);
  return text;
}
void Announce() {
  static bool done = false;
  if (!done) printf("attacking\n");
  fflush(stdout);
  done = true;
}

// "neighbour,PORT,MILLISECONDS": stands by for a line of input, then one connect every two milliseconds, each with its socket().
std::string Neighbour(const Words& words) {
  Address proxy = MakeAddress("127.0.0.1", Number(words, 1));
  printf("standing by\n");
  fflush(stdout);
  (void)getchar();
  const double end = Now() + static_cast<double>(Number(words, 2));
  double worst = 0;
  long count = 0, over = 0, failed = 0;
  while (Now() < end) {
    const double before = Now();
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0 || connect(fd, proxy.get(), proxy.size) != 0) ++failed;
    const double took = Now() - before;
    close(fd);
    ++count;
    if (took > 50) ++over;
    worst = std::max(worst, took);
    usleep(2000);
  }
  return "connects " + std::to_string(count) + " failed " + std::to_string(failed) + " over50 " + std::to_string(over) + " worst " + Ms(worst);
}

// Connects one descriptor over and over, so that whoever does it for us holds a copy when the last of ours is closed.
class Poker {
 public:
  explicit Poker(Address address) : address_(address), thread_([this] { Loop(); }) {}
  ~Poker() {
    stop_ = true;
    thread_.join();
  }
  void Take(int fd) { fd_ = fd; }
  [[nodiscard]] double worst() const { return worst_; }

 private:
  void Loop() {
    while (!stop_) {
      const int fd = fd_;
      if (fd < 0) {
        sched_yield();
        continue;
      }
      const double before = Now();
      (void)Raw(SYS_connect, fd, Of(address_.get()), address_.size);
      worst_ = std::max<double>(worst_, Now() - before);
    }
  }
  Address address_;
  std::atomic<int> fd_ = -1;
  std::atomic<bool> stop_ = false;
  std::atomic<double> worst_ = 0;
  std::thread thread_;
};

// A connection whose peer does not read, full, and told to wait at its close.
int Filled(long port, int seconds) {
  Address silent = MakeAddress("127.0.0.1", port);
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  const int small = 4096;
  (void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &small, sizeof(small));
  const linger wait{1, seconds};
  (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &wait, sizeof(wait));
  if (fd < 0 || connect(fd, silent.get(), silent.size) != 0) {
    close(fd);
    return -1;
  }
  static char block[1 << 16];
  for (int i = 0; i < 4096 && send(fd, block, sizeof(block), MSG_DONTWAIT | MSG_NOSIGNAL) > 0; ++i) {
  }
  return fd;
}

// "closetime,PORT,SECONDS": how long the close of such a connection takes.
std::string CloseTime(const Words& words) {
  const int fd = Filled(Number(words, 1), static_cast<int>(Number(words, 2)));
  if (fd < 0) return Name(errno);
  const double before = Now();
  close(fd);
  return Ms(Now() - before);
}

// E-66: "lingers,MILLISECONDS,PORT"
std::string Lingers(const Words& words) {
  const double end = Now() + static_cast<double>(Number(words, 1));
  Poker poker(MakeAddress("127.0.0.1", Number(words, 2)));
  long rounds = 0;
  double worst = 0;
  while (Now() < end) {
    const int fd = Filled(Number(words, 2), 6);
    if (fd < 0) continue;
    poker.Take(fd);
    Announce();
    usleep(static_cast<useconds_t>(rounds % 7 * 50));
    const double before = Now();
    close(fd);
    worst = std::max(worst, Now() - before);
    poker.Take(-1);
    ++rounds;
  }
  return "rounds " + std::to_string(rounds) + " worst " + Ms(worst);
}

// E-67: "handed,MILLISECONDS,PORT,BROKER,HOW": the same by a socket that somebody outside made so. HOW: direct; queued: it lies
// unread in a pair that is connected in its place.
std::string Handed(const Words& words) {
  const double end = Now() + static_cast<double>(Number(words, 1));
  const bool queued = words.at(4) == "queued";
  Poker poker(MakeAddress("127.0.0.1", Number(words, 2)));
  long rounds = 0, unreachable = 0;
  static std::atomic<long> left = 0;
  while (Now() < end) {
    const int given = Receive(words.at(3)).front();
    if (given < 0) {
      ++unreachable;
      usleep(1000);
      continue;
    }
    int pinned = given;
    if (queued) {
      int pair[2];
      (void)!socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
      (void)!oarlock::SendWithFd(pair[0], "", 1, given);
      close(given);
      close(pair[0]);
      pinned = pair[1];
    }
    poker.Take(pinned);
    Announce();
    usleep(static_cast<useconds_t>(300 + rounds % 7 * 50));
    // Where ours is the last copy, it is we who wait, and a thread of its own may do that. Where not, somebody else is left to.
    std::thread([pinned] {
      const double before = Now();
      close(pinned);
      if (Now() - before < 500) ++left;
    }).detach();
    usleep(2000);
    poker.Take(-1);
    ++rounds;
    usleep(20'000);
  }
  return "rounds " + std::to_string(rounds) + " unreachable " + std::to_string(unreachable) + " left " + std::to_string(left);
}

char* Populate(long megabytes) {
  const size_t size = static_cast<size_t>(megabytes) << 20;
  char* at = static_cast<char*>(mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  (void)madvise(at, size, MADV_NOHUGEPAGE);
  for (size_t i = 0; i < size; i += 4096) at[i] = 1;
  return at;
}

// E-68: "forks,MILLISECONDS,MEGABYTES,PORT": the address lies in memory that is being copied.
std::string Forks(const Words& words) {
  (void)Populate(Number(words, 2));
  const double end = Now() + static_cast<double>(Number(words, 1));
  Address proxy = MakeAddress("127.0.0.1", Number(words, 3));
  std::atomic<bool> stop = false;
  std::atomic<double> worst = 0;
  std::thread connecting([&] {
    while (!stop) {
      const long fd = Raw(SYS_socket, AF_INET, SOCK_STREAM, 0);
      const double before = Now();
      (void)Raw(SYS_connect, fd, Of(proxy.get()), proxy.size);
      worst = std::max<double>(worst, Now() - before);
      (void)Raw(SYS_close, fd);
    }
  });
  printf("memory at %p\n", static_cast<void*>(proxy.get()));
  Announce();
  long rounds = 0;
  for (; Now() < end; ++rounds) {
    const pid_t pid = fork();
    if (pid == 0) _exit(0);
    if (pid > 0) waitpid(pid, nullptr, 0);
  }
  stop = true;
  connecting.join();
  return "forks " + std::to_string(rounds) + " worst " + Ms(worst);
}

// A process of its own that asks for SO_LINGER over and over: its memory is not the one that is being forked.
class Lingerer {
 public:
  explicit Lingerer(int fd) : worst_(static_cast<double*>(mmap(nullptr, sizeof(double), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))) {
    pid_ = fork();
    if (pid_ != 0) return;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (const linger off{};; usleep(200)) {
      const double before = Now();
      (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &off, sizeof(off));
      *worst_ = std::max(*worst_, Now() - before);
    }
  }
  Lingerer(const Lingerer&) = delete;
  Lingerer& operator=(const Lingerer&) = delete;
  ~Lingerer() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  [[nodiscard]] double worst() const { return *worst_; }

 private:
  double* worst_;
  pid_t pid_ = -1;
};

// E-69: "sends,MILLISECONDS,MEGABYTES,PORT": a sender holds the socket's lock while its pages come in, and the socket is connected
// meanwhile. "asked,...": it is asked for SO_LINGER.
std::string Sends(const Words& words) {
  Address proxy = MakeAddress("127.0.0.1", Number(words, 3));
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  if (fd < 0 || connect(fd, proxy.get(), proxy.size) != 0) return Name(errno);
  std::optional<Lingerer> lingerer;
  if (words[0] == "asked") lingerer.emplace(fd);
  (void)Populate(Number(words, 2));
  const double end = Now() + static_cast<double>(Number(words, 1));
  std::atomic<bool> stop = false;
  std::thread draining([&] {
    static char buffer[1 << 20];
    while (!stop)
      if (recv(fd, buffer, sizeof(buffer), MSG_DONTWAIT) <= 0) usleep(200);
  });
  std::thread sending([&] {
    while (!stop) {
      constexpr size_t kSize = 1 << 22;
      char* fresh = static_cast<char*>(mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
      (void)madvise(fresh, kSize, MADV_NOHUGEPAGE);
      (void)send(fd, fresh, kSize, MSG_NOSIGNAL | MSG_DONTWAIT);
      munmap(fresh, kSize);
    }
  });
  double worst = 0;
  long rounds = 0;
  {
    Poker poker(proxy);
    if (!lingerer) poker.Take(fd);
    Announce();
    for (; Now() < end; ++rounds) {
      const pid_t pid = fork();
      if (pid == 0) _exit(0);
      if (pid > 0) waitpid(pid, nullptr, 0);
    }
    worst = lingerer ? lingerer->worst() : poker.worst();
  }
  stop = true;
  draining.join();
  sending.join();
  return "forks " + std::to_string(rounds) + " worst " + Ms(worst);
}

// E-209: "queues,MILLISECONDS,COUNT,PORT": freeing the last copy frees that many sockets. COUNT/0: how long our own close takes.
std::string Queues(const Words& words) {
  const double end = Now() + static_cast<double>(Number(words, 1));
  Poker poker(MakeAddress("127.0.0.1", Number(words, 3)));
  const bool poke = Number(words, 3) != 0;
  long rounds = 0, queued = 0;
  double worst = 0;
  while (Now() < end) {
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0) return "pair:" + Name(errno);
    const int big = 1 << 22;
    (void)setsockopt(pair[1], SOL_SOCKET, SO_SNDBUF, &big, sizeof(big));
    queued = 0;
    while (queued < Number(words, 2)) {
      constexpr int kAtOnce = 252;
      int fds[kAtOnce];
      int made = 0;
      for (; made < kAtOnce; made += 2)
        if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds + made) != 0) break;
      const bool sent = made > 0 && oarlock::SendWithFds(pair[1], "", 1, {fds, static_cast<size_t>(made)}, MSG_DONTWAIT) == 1;
      for (int i = 0; i < made; ++i) close(fds[i]);
      if (!sent) break;
      queued += made;
    }
    close(pair[1]);
    if (poke) {
      poker.Take(pair[0]);
      usleep(static_cast<useconds_t>(200 + rounds % 7 * 50));
    }
    Announce();
    const double before = Now();
    close(pair[0]);
    worst = std::max(worst, Now() - before);
    poker.Take(-1);
    ++rounds;
  }
  return "rounds " + std::to_string(rounds) + " queued " + std::to_string(queued) + " worst " + Ms(worst);
}

// E-78, E-206: "page,PATH,PORT": the address lies in a file whose file system does not answer.
std::string Page(const Words& words) {
  const int fd = open(words.at(1).c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return "open:" + Name(errno);
  void* at = mmap(nullptr, 4096, PROT_READ, MAP_SHARED, fd, 0);
  if (at == MAP_FAILED) return "map:" + Name(errno);
  const int s = socket(AF_INET, SOCK_STREAM, 0);
  if (s < 0) return "socket:" + Name(errno);
  Announce();
  const long result = Raw(SYS_connect, s, Of(at), sizeof(sockaddr_in));
  return result < 0 ? Name(-result) : "0";
}

// E-67, E-206: "file,PATH,PORT": a file whose close waits, given to connect().
std::string File(const Words& words) {
  Poker poker(MakeAddress("127.0.0.1", Number(words, 2)));
  const int fd = open(words.at(1).c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return "open:" + Name(errno);
  poker.Take(fd);
  Announce();
  usleep(static_cast<useconds_t>(Number(words, 3) * 1000));
  return "0";
}

// E-69, E-206: "holds,PATH,PORT": connects a socket whose lock is held by a send from a page that does not come.
std::string Holds(const Words& words) {
  const int fd = open(words.at(1).c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return "open:" + Name(errno);
  void* at = mmap(nullptr, 4096, PROT_READ, MAP_SHARED, fd, 0);
  if (at == MAP_FAILED) return "map:" + Name(errno);
  Address proxy = MakeAddress("127.0.0.1", Number(words, 2));
  const int s = socket(AF_INET, SOCK_STREAM, 0);
  if (s < 0 || connect(s, proxy.get(), proxy.size) != 0) return Name(errno);
  std::thread sending([&] { (void)Raw(SYS_sendto, s, Of(at), 4096, MSG_NOSIGNAL); });
  usleep(200'000);
  Announce();
  const long result = Raw(SYS_connect, s, Of(proxy.get()), proxy.size);
  printf("connected: %s\n", result < 0 ? Name(-result).c_str() : "0");
  fflush(stdout);
  sending.join();
  return result < 0 ? Name(-result) : "0";
}

// E-212: "crowd,MILLISECONDS,COUNT": threads that take turns at the trivial call. Whoever is woken on their CPUs stands behind them.
std::string Crowd(const Words& words) {
  const double end = Now() + static_cast<double>(Number(words, 1));
  std::atomic<long> calls = 0;
  std::vector<std::thread> threads;
  for (long i = 0; i < Number(words, 2); ++i)
    threads.emplace_back([&] {
      while (Now() < end) {
        (void)Raw(SYS_close, Raw(SYS_socket, AF_INET, SOCK_STREAM, 0));
        ++calls;
        usleep(50);
      }
    });
  Announce();
  for (std::thread& thread : threads) thread.join();
  return "calls " + std::to_string(calls);
}

const Operations kOperations = {
    {"neighbour", Neighbour}, {"closetime", CloseTime}, {"lingers", Lingers}, {"handed", Handed}, {"forks", Forks},
    {"sends", Sends},         {"asked", Sends},         {"queues", Queues},       {"page", Page},       {"file", File},
    {"holds", Holds},         {"crowd", Crowd},
};

}  // namespace

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) Print(argv[i], Do(kOperations, argv[i]));
  return 0;
}
