// SPDX-License-Identifier: Apache-2.0
// oarlock-endurance: the program inside. Small, static and never sanitized, so that what is measured is not its own. A target is
// "tcp:PORT" (of 127.0.0.1) or "unix:PATH"; results are "name=value" words.
//   loop TARGET COUNT                       connects, each greeted by the server
//   serve                                   the same, for each "TARGET COUNT" line of stdin; "refused" ones must be refused
//   storm TARGET COUNT SIGNAL FLAGS GIVEUP  a loop while SIGNAL (urg, alrm) comes every millisecond. FLAGS: restart, plain.
//                                           GIVEUP: retry (after EINTR) or once
//   alarm TARGET FLAGS CROWD                alarm(1) during one connect, while CROWD other ones of the same session wait
//   timeout TARGET MS CROWD                 SO_SNDTIMEO during one connect; MS 0: O_NONBLOCK
//   block TARGET THREADS OTHER COUNT        THREADS threads connect to TARGET; meanwhile COUNT connects to OTHER
//   nonblock TARGET THREADS COUNT           COUNT connects with O_NONBLOCK by each of THREADS threads
//   hang TARGET THREADS                     THREADS threads connect to TARGET; says so and waits
//   outlive FILE TARGET WAITING [tree]      loops until the supervisor is lost and then tries it again and again: tally.h
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "tests/endurance/tally.h"

namespace oarlock::test {
namespace {

struct Target {
  int family = AF_UNIX;
  sockaddr_storage address{};
  socklen_t size = 0;
  explicit Target(const std::string& text) {
    if (text.starts_with("tcp:")) {
      auto* in = reinterpret_cast<sockaddr_in*>(&address);
      family = in->sin_family = AF_INET;
      in->sin_port = htons(static_cast<uint16_t>(std::atoi(text.c_str() + 4)));
      in->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      size = sizeof(*in);
    } else {
      auto* un = reinterpret_cast<sockaddr_un*>(&address);
      un->sun_family = AF_UNIX;
      std::strncpy(un->sun_path, text.c_str() + 5, sizeof(un->sun_path) - 1);
      size = sizeof(*un);
    }
  }
  [[nodiscard]] const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address); }
};

const char* Name(int error) { return error == 0 ? "0" : strerrorname_np(error); }
double Milliseconds(uint64_t since_ns) { return static_cast<double>(NowNs() - since_ns) / 1e6; }

// The other end's first byte: it has really accepted.
bool Greeted(int fd) {
  pollfd ready{fd, POLLIN, 0};
  char byte = 0;
  for (const uint64_t start = NowNs(); Milliseconds(start) < 20'000;) {
    if (poll(&ready, 1, 1000) <= 0) continue;
    const ssize_t got = recv(fd, &byte, 1, 0);
    if (got >= 0 || errno != EINTR) return got == 1;
  }
  return false;
}

// 0 or an errno; EBADMSG where nobody greeted.
int ConnectOnce(const Target& target) {
  const int fd = socket(target.family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return errno;
  int error = connect(fd, target.get(), target.size) == 0 ? 0 : errno;
  if (error == 0 && !Greeted(fd)) error = EBADMSG;
  close(fd);
  return error;
}

int Loop(const std::string& where, long count, int expected = 0) {
  const Target target(where);
  long right = 0;
  int odd = 0;
  for (long i = 0; i < count; ++i) {
    const int error = ConnectOnce(target);
    if (error == expected) ++right;
    else odd = error;
  }
  printf("right=%ld odd=%s\n", right, odd == 0 ? "none" : Name(odd));
  fflush(stdout);
  return right == count ? 0 : 1;
}

int Serve() {
  char where[256];
  char kind[16];
  long count = 0;
  printf("ready\n");
  fflush(stdout);
  while (scanf("%255s %ld %15s", where, &count, kind) == 3) (void)Loop(where, count, std::strcmp(kind, "refused") == 0 ? EACCES : 0);
  return 0;
}

// --- signals

std::atomic<long> signals = 0;
std::atomic<uint64_t> handled_at = 0;
void OnSignal(int) {
  ++signals;
  handled_at = NowNs();
}
void Handle(int signal, bool restart) {
  struct sigaction action {};
  action.sa_handler = OnSignal;
  action.sa_flags = restart ? SA_RESTART : 0;
  sigaction(signal, &action, nullptr);
}

struct Storm {
  long connected = 0, socket_eintr = 0, connect_eintr = 0, eisconn = 0, lost = 0, other = 0;
  int odd = 0;
};

// A connect that EINTR ended natively goes on in the kernel. Whether this one does; 2 s are far more than loopback needs.
bool GoesOn(int fd) {
  sockaddr_storage peer{};
  for (const uint64_t start = NowNs(); Milliseconds(start) < 2000;) {
    pollfd ready{fd, POLLOUT, 0};
    if (poll(&ready, 1, 100) > 0 && (ready.revents & POLLHUP) != 0) return false;  // closed: nothing was ever begun
    socklen_t size = sizeof(peer);
    if (getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &size) == 0) return true;
  }
  return false;
}

void StormOnce(const Target& target, bool retry, Storm& storm) {
  int fd = -1;
  while ((fd = socket(target.family, SOCK_STREAM | SOCK_CLOEXEC, 0)) < 0 && errno == EINTR) {
    ++storm.socket_eintr;
    if (!retry) {
      ++storm.lost;
      return;
    }
  }
  if (fd < 0) {
    ++storm.other;
    storm.odd = errno;
    return;
  }
  bool interrupted = false, connected = false;
  for (;;) {
    if (connect(fd, target.get(), target.size) == 0) {
      connected = true;
      break;
    }
    if (errno == EINTR) {
      ++storm.connect_eintr;
      interrupted = true;
      if (!retry) {
        connected = GoesOn(fd);
        if (!connected) ++storm.lost;
        break;
      }
      continue;
    }
    // After EINTR these are what a program that retries has to expect; without one nothing excuses them.
    if (errno == EALREADY && interrupted) {
      pollfd ready{fd, POLLOUT, 0};
      (void)poll(&ready, 1, 100);
      continue;
    }
    if (errno == EISCONN) {
      connected = interrupted;
      if (!interrupted) ++storm.eisconn;
      break;
    }
    ++storm.other;
    storm.odd = errno;
    break;
  }
  if (connected && Greeted(fd)) ++storm.connected;
  close(fd);
}

int RunStorm(const std::string& where, long count, const std::string& name, bool restart, bool retry) {
  const Target target(where);
  const int signal = name == "urg" ? SIGURG : SIGALRM;
  Handle(signal, restart);
  std::atomic<bool> stop = false;
  std::thread sender;
  if (signal == SIGALRM) {
    const itimerval every{{0, 1000}, {0, 1000}};
    setitimer(ITIMER_REAL, &every, nullptr);
  } else {
    // As a runtime that preempts its threads: at one thread, from another.
    sender = std::thread([&stop, self = pthread_self()] {
      sigset_t none;
      sigfillset(&none);
      pthread_sigmask(SIG_BLOCK, &none, nullptr);
      timespec next{};
      clock_gettime(CLOCK_MONOTONIC, &next);
      while (!stop) {
        next.tv_nsec += 1'000'000;
        if (next.tv_nsec >= 1'000'000'000) next = {next.tv_sec + 1, next.tv_nsec - 1'000'000'000};
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, nullptr);
        pthread_kill(self, SIGURG);
      }
    });
  }
  Storm storm;
  for (long i = 0; i < count; ++i) StormOnce(target, retry, storm);
  stop = true;
  if (sender.joinable()) sender.join();
  const itimerval never{};
  setitimer(ITIMER_REAL, &never, nullptr);
  printf("connected=%ld socket_eintr=%ld connect_eintr=%ld eisconn=%ld lost=%ld other=%ld odd=%s signals=%ld\n", storm.connected,
         storm.socket_eintr, storm.connect_eintr, storm.eisconn, storm.lost, storm.other, storm.odd == 0 ? "none" : Name(storm.odd),
         signals.load());
  return 0;
}

// --- blocked threads

std::vector<std::thread> Waiting(const Target& target, long threads, std::atomic<long>& begun, std::atomic<long>& through) {
  std::vector<std::thread> list;
  for (long i = 0; i < threads; ++i)
    list.emplace_back([&] {
      const int fd = socket(target.family, SOCK_STREAM | SOCK_CLOEXEC, 0);
      ++begun;
      if (connect(fd, target.get(), target.size) == 0 && Greeted(fd)) ++through;
      close(fd);
    });
  while (begun < threads) usleep(1000);
  usleep(200'000);
  return list;
}

// A process beside us whose threads wait at the same target, for as long as this object lives.
class Crowd {
 public:
  Crowd(const Target& target, long threads) {
    int ends[2];
    if (threads == 0 || pipe2(ends, O_CLOEXEC) != 0) return;
    pid_ = fork();
    if (pid_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      std::atomic<long> begun = 0, through = 0;
      auto list = Waiting(target, threads, begun, through);
      (void)!write(ends[1], "w", 1);
      for (;;) pause();
    }
    close(ends[1]);
    char byte = 0;
    (void)!read(ends[0], &byte, 1);
    close(ends[0]);
  }
  ~Crowd() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  Crowd(const Crowd&) = delete;
  Crowd& operator=(const Crowd&) = delete;

 private:
  pid_t pid_ = -1;
};

int Alarm(const std::string& where, bool restart, long others) {
  const Target target(where);
  const Crowd crowd(target, others);
  Handle(SIGALRM, restart);
  const int fd = socket(target.family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  printf("ready\n");
  fflush(stdout);
  alarm(1);
  const uint64_t start = NowNs();
  const int error = connect(fd, target.get(), target.size) == 0 ? 0 : errno;
  const double took = Milliseconds(start);
  const bool greeted = error == 0 && Greeted(fd);
  printf("result=%s greeted=%d handlers=%ld handler_ms=%.0f ms=%.0f\n", Name(error), greeted ? 1 : 0, signals.load(),
         handled_at == 0 ? -1.0 : static_cast<double>(handled_at - start) / 1e6, took);
  return 0;
}

int Timeout(const std::string& where, long ms, long others) {
  const Target target(where);
  const Crowd crowd(target, others);
  const int fd = socket(target.family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const timeval limit{ms / 1000, ms % 1000 * 1000};
  if (ms == 0) fcntl(fd, F_SETFL, O_NONBLOCK);
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
  const uint64_t start = NowNs();
  const int error = connect(fd, target.get(), target.size) == 0 ? 0 : errno;
  printf("result=%s ms=%.1f\n", Name(error), Milliseconds(start));
  return 0;
}

int Block(const std::string& where, long threads, const std::string& other, long count) {
  const Target target(where);
  std::atomic<long> begun = 0, through = 0;
  auto list = Waiting(target, threads, begun, through);
  (void)Loop(other, count);
  printf("waiting=%ld\n", threads - through);
  fflush(stdout);
  for (std::thread& thread : list) thread.join();
  printf("through=%ld\n", through.load());
  return 0;
}

int NonBlock(const std::string& where, long threads, long count) {
  const Target target(where);
  std::atomic<long> connected = 0, eagain = 0, other = 0;
  std::vector<std::thread> list;
  for (long i = 0; i < threads; ++i)
    list.emplace_back([&] {
      for (long round = 0; round < count; ++round) {
        const int fd = socket(target.family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (connect(fd, target.get(), target.size) == 0) connected += Greeted(fd) ? 1 : 0;
        else ++(errno == EAGAIN ? eagain : other);
        close(fd);
      }
    });
  for (std::thread& thread : list) thread.join();
  printf("connected=%ld eagain=%ld other=%ld\n", connected.load(), eagain.load(), other.load());
  return 0;
}

int Hang(const std::string& where, long threads) {
  const Target target(where);
  std::atomic<long> begun = 0, through = 0;
  auto list = Waiting(target, threads, begun, through);
  printf("hanging\n");
  fflush(stdout);
  for (std::thread& thread : list) thread.join();
  return 1;
}

// --- a supervisor that dies

constexpr int kSpare = 8, kRounds = 40;

void Later(Tally& tally, const Target& target, const int (&spare)[kSpare]) {
  const Target elsewhere("tcp:9");
  const auto note = [&](uint64_t start, int error) {
    const uint64_t took = NowNs() - start;
    ++tally.later;
    if (took > tally.slowest_ns) tally.slowest_ns = took;
    if (error == 0) ++tally.passed;
    else if (error != ENOSYS) {
      ++tally.wrong;
      tally.odd_errno = error;
    }
  };
  for (int round = 0; round < kRounds; ++round) {
    uint64_t start = NowNs();
    note(start, socket(target.family, SOCK_STREAM | SOCK_CLOEXEC, 0) >= 0 ? 0 : errno);
    start = NowNs();
    note(start, connect(spare[round % kSpare], target.get(), target.size) == 0 ? 0 : errno);
    start = NowNs();
    note(start, connect(spare[round % kSpare], elsewhere.get(), elsewhere.size) == 0 ? 0 : errno);
    start = NowNs();
    note(start, bind(spare[round % kSpare], elsewhere.get(), elsewhere.size) == 0 ? 0 : errno);
    usleep(5000);
  }
}

void LoopUntilLost(Tally& tally, const Target& target) {
  tally.pid = getpid();
  int spare[kSpare];
  for (int& fd : spare) fd = socket(target.family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  while (tally.lost_at_ns == 0) {
    const int fd = socket(target.family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int error = fd < 0 ? errno : 0;
    if (error == 0) {
      ++tally.begun;
      error = connect(fd, target.get(), target.size) == 0 ? 0 : errno;
      if (error == 0) {
        if (Greeted(fd)) ++tally.connected;
        else error = EBADMSG;
      }
    }
    if (error == ENOSYS) {
      sockaddr_storage peer{};
      socklen_t size = sizeof(peer);
      if (fd >= 0 && getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &size) == 0) tally.in_flight = 1;
      tally.lost_at_ns = NowNs();
    } else if (error != 0) {
      tally.odd_errno = error;
    }
    if (fd >= 0) close(fd);
  }
  Later(tally, target, spare);
}

// Each child makes the next one and ends: nobody can name the last.
[[noreturn]] void Hop(Tally& tally) {
  for (;;) {
    const pid_t pid = fork();
    if (pid > 0) _exit(0);
    setsid();
    ++tally.begun;
    usleep(100);
  }
}

int Outlive(const char* file, const std::string& where, const std::string& waiting_on, bool tree) {
  const int map = open(file, O_RDWR | O_CLOEXEC);
  void* memory = mmap(nullptr, sizeof(Tally) * kTallies, PROT_READ | PROT_WRITE, MAP_SHARED, map, 0);
  if (memory == MAP_FAILED) return 3;
  Tally* tallies = static_cast<Tally*>(memory);
  const Target target(where);
  for (const int signal : {SIGTERM, SIGHUP, SIGINT, SIGPIPE}) (void)::signal(signal, SIG_IGN);
  if (tree) {
    for (const unsigned slot : {1U, 2U})
      if (fork() == 0) {
        // The second is nobody's child and in a session of its own.
        setsid();
        if (slot == 2 && fork() > 0) _exit(0);
        LoopUntilLost(tallies[slot], target);
        for (;;) pause();
      }
    if (fork() == 0) Hop(tallies[3]);
  }
  std::thread waiting([&, target_of = Target(waiting_on)] {
    const int fd = socket(target_of.family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const int error = connect(fd, target_of.get(), target_of.size) == 0 ? 0 : errno;
    tallies[0].waiting_errno = error;
    tallies[0].waiting_ended_at_ns = NowNs();
  });
  printf("looping\n");
  fflush(stdout);
  LoopUntilLost(tallies[0], target);
  waiting.join();
  printf("lost\n");
  fflush(stdout);
  // Whatever has come up in its place meanwhile serves others.
  char line[16];
  (void)!read(0, line, sizeof(line));
  for (int i = 0; i < 20; ++i)
    if (socket(target.family, SOCK_STREAM | SOCK_CLOEXEC, 0) >= 0 || errno != ENOSYS) ++tallies[0].passed;
  printf("done\n");
  fflush(stdout);
  if (tree)
    for (;;) pause();
  return 7;
}

int Main(const std::vector<std::string>& words) {
  const auto is = [&](const char* name, size_t arguments) { return words.size() == arguments + 1 && words[0] == name; };
  const auto number = [&](size_t at) { return std::strtol(words[at].c_str(), nullptr, 10); };
  if (is("loop", 2)) return Loop(words[1], number(2));
  if (is("serve", 0)) return Serve();
  if (is("storm", 5)) return RunStorm(words[1], number(2), words[3], words[4] == "restart", words[5] == "retry");
  if (is("alarm", 3)) return Alarm(words[1], words[2] == "restart", number(3));
  if (is("timeout", 3)) return Timeout(words[1], number(2), number(3));
  if (is("block", 4)) return Block(words[1], number(2), words[3], number(4));
  if (is("nonblock", 3)) return NonBlock(words[1], number(2), number(3));
  if (is("hang", 2)) return Hang(words[1], number(2));
  if (is("outlive", 3) || is("outlive", 4)) return Outlive(words[1].c_str(), words[2], words[3], words.size() == 5);
  return 2;
}

}  // namespace
}  // namespace oarlock::test

int main(int argc, char** argv) { return oarlock::test::Main({argv + 1, argv + argc}); }
