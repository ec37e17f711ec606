// SPDX-License-Identifier: Apache-2.0
// hostile-attacker: ways round a call that is watched, one per word. Runs inside the sandbox and, as the twin, outside. A word's
// result is "0", the name of an errno, or a tally "0:12 EACCES:7"; whatever it can reach it also sends "attack" to.
//   thread/WORD in a thread beside the leader · deadleader/WORD in a thread whose leader has exited · fork/WORD, vfork/WORD in a child
#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/io_uring.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <thread>

#include "tests/hostile/program.h"

namespace {

using namespace hostile;

constexpr int kMptcp = 262, kUdpLite = 136;
constexpr long kHigh = 1L << 32;
constexpr const char* kText = "attack";

long Send(int fd) { return Raw(SYS_sendto, fd, Of(kText), 6, MSG_NOSIGNAL); }

std::string Connect(int fd, Address address) {
  if (fd < 0) return "socket:" + Name(errno);
  std::string result = Result(connect(fd, address.get(), address.size));
  if (result == "0") (void)Send(fd);
  close(fd);
  return result;
}

// "to,ADDRESS,PORT[,TYPE[,PROTOCOL]]": numbers may be wider than the kernel reads them.
std::string To(const Words& words) {
  const Address address = MakeAddress(words.at(1), Number(words, 2));
  const long fd = syscall(SYS_socket, address.family(), Number(words, 3, SOCK_STREAM), Number(words, 4));
  return Connect(static_cast<int>(fd), address);
}

// "length,ADDRESS,PORT,LENGTH": more or fewer bytes than the address has.
std::string Length(const Words& words) {
  Address address = MakeAddress(words.at(1), Number(words, 2));
  const int fd = socket(address.family(), SOCK_STREAM, 0);
  if (fd < 0) return "socket:" + Name(errno);
  return Result(syscall(SYS_connect, fd, address.get(), Number(words, 3)));
}

// "bytes,HEX": a unix address of exactly these bytes behind the family.
std::string Bytes(const Words& words) {
  Address address;
  address.storage.ss_family = AF_UNIX;
  const std::string& hex = words.at(1);
  for (size_t i = 0; i + 1 < hex.size(); i += 2)
    reinterpret_cast<unsigned char*>(&address.storage)[2 + i / 2] = static_cast<unsigned char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  address.size = static_cast<socklen_t>(2 + hex.size() / 2);
  return Connect(socket(AF_UNIX, SOCK_STREAM, 0), address);
}

// "alias,HOW,PATH": a name by a descriptor that only O_PATH opens.
std::string Alias(const Words& words) {
  const std::string &how = words.at(1), &path = words.at(2);
  const size_t slash = path.rfind('/');
  const bool directory = how == "directory";
  const int fd = open(directory ? path.substr(0, slash).c_str() : path.c_str(), O_PATH | O_CLOEXEC);
  if (fd < 0) return "open:" + Name(errno);
  const std::string name = how == "dev" ? "/dev/fd/" + std::to_string(fd)
                                        : "/proc/self/fd/" + std::to_string(fd) + (directory ? path.substr(slash) : "");
  return Connect(socket(AF_UNIX, SOCK_STREAM, 0), MakeAddress(name));
}

// "fast,HOW,ADDRESS,PORT[,PROTOCOL[,HIGH]]": connects inside a send.
std::string Fast(const Words& words) {
  Address address = MakeAddress(words.at(2), Number(words, 3));
  const int fd = socket(address.family(), SOCK_STREAM, static_cast<int>(Number(words, 4)));
  if (fd < 0) return "socket:" + Name(errno);
  const long flags = MSG_FASTOPEN | MSG_NOSIGNAL | Number(words, 5);
  char text[] = "attack";
  iovec part{text, 6};
  mmsghdr message{};
  message.msg_hdr.msg_name = address.get();
  message.msg_hdr.msg_namelen = address.size;
  message.msg_hdr.msg_iov = &part;
  message.msg_hdr.msg_iovlen = 1;
  const std::string& how = words.at(1);
  std::string result;
  if (how == "sendto") result = Result(syscall(SYS_sendto, fd, text, 6, flags, address.get(), address.size));
  if (how == "sendmsg") result = Result(syscall(SYS_sendmsg, fd, &message.msg_hdr, flags));
  if (how == "sendmmsg") result = Result(syscall(SYS_sendmmsg, fd, &message, 1, flags));
  if (how == "option") {
    const int on = 1;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_FASTOPEN_CONNECT, &on, sizeof(on));
    return Connect(fd, address);
  }
  close(fd);
  return result;
}

// "again,ADDRESS,PORT,HOW,VICTIM": a permitted connection is taken apart, then the socket used for something else.
std::string Again(const Words& words) {
  Address proxy = MakeAddress(words.at(1), Number(words, 2)), victim = MakeAddress(words.at(1), Number(words, 4));
  const int fd = socket(proxy.family(), SOCK_STREAM, 0);
  if (fd < 0 || connect(fd, proxy.get(), proxy.size) != 0) return "proxy:" + Name(errno);
  sockaddr none{};
  none.sa_family = AF_UNSPEC;
  if (syscall(SYS_connect, fd, &none, words.at(3) == "short" ? 2 : sizeof(none)) != 0) return "disconnect:" + Name(errno);
  if (words.at(3) == "fast") {
    const std::string result = Result(sendto(fd, "attack", 6, MSG_FASTOPEN | MSG_NOSIGNAL, victim.get(), victim.size));
    close(fd);
    return result;
  }
  return Connect(fd, victim);
}

// "datagram,HOW,ADDRESS,PORT[,PROTOCOL]"
std::string Datagram(const Words& words) {
  Address address = MakeAddress(words.at(2), Number(words, 3));
  const int fd = socket(address.family(), SOCK_DGRAM, static_cast<int>(Number(words, 4)));
  if (fd < 0) return "socket:" + Name(errno);
  if (words.at(1) == "connect") return Connect(fd, address);
  const std::string result = Result(sendto(fd, kText, 6, 0, address.get(), address.size));
  close(fd);
  return result;
}

// "pair,TYPE,HOW,NAME": a datagram socket that nobody had to ask for.
std::string Pair(const Words& words) {
  int pair[2];
  if (syscall(SYS_socketpair, AF_UNIX, Number(words, 1), 0, pair) != 0) return "socketpair:" + Name(errno);
  Address address = MakeAddress(words.at(3));
  const std::string& how = words.at(2);
  if (how == "connect") return Connect(pair[0], address);
  if (how == "sendto") return Result(sendto(pair[0], kText, 6, 0, address.get(), address.size));
  char text[] = "attack";
  iovec part{text, 6};
  mmsghdr messages[2]{};
  for (mmsghdr& message : messages) {
    message.msg_hdr.msg_iov = &part;
    message.msg_hdr.msg_iovlen = 1;
  }
  messages[1].msg_hdr.msg_name = address.get();
  messages[1].msg_hdr.msg_namelen = address.size;
  if (how == "sendmsg") return Result(sendmsg(pair[0], &messages[1].msg_hdr, 0));
  return Result(sendmmsg(pair[0], messages, 2, 0));
}

// "listen,PROTOCOL,HOW": prints the port and waits for somebody to come.
std::string Listen(const Words& words) {
  const int fd = socket(AF_INET, SOCK_STREAM, static_cast<int>(Number(words, 1)));
  if (fd < 0) return "socket:" + Name(errno);
  Address any = MakeAddress("0.0.0.0");
  if (words.at(2) == "bind" && bind(fd, any.get(), any.size) != 0) return "bind:" + Name(errno);
  if (listen(fd, 1) != 0) return "listen:" + Name(errno);
  Address own;
  own.size = sizeof(own.storage);
  getsockname(fd, own.get(), &own.size);
  printf("listening %d\n", ntohs(reinterpret_cast<sockaddr_in*>(own.get())->sin_port));
  fflush(stdout);
  pollfd ready{fd, POLLIN, 0};
  if (poll(&ready, 1, 5000) <= 0) return "nobody";
  return Result(accept(fd, nullptr, nullptr));
}

// "int80,HOW,PORT": the i386 entry, whose numbers mean something else.
long Int80(long nr, long b, long c, long d) {
  long result;
  asm volatile("int $0x80" : "=a"(result) : "a"(nr), "b"(b), "c"(c), "d"(d) : "r8", "r9", "r10", "r11", "memory");
  return static_cast<int>(result);
}
std::string ForeignArch(const Words& words) {
  void* low = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
  Address victim = MakeAddress("127.0.0.1", Number(words, 2));
  std::memcpy(low, victim.get(), sizeof(sockaddr_in));
  auto* arguments = reinterpret_cast<uint32_t*>(static_cast<char*>(low) + 128);
  constexpr long kSocketcall = 102, kSocket = 359, kConnect = 362;
  long fd, result;
  if (words.at(1) == "socketcall") {
    arguments[0] = AF_INET, arguments[1] = SOCK_STREAM, arguments[2] = 0;
    fd = Int80(kSocketcall, 1, Of(arguments), 0);
    arguments[0] = static_cast<uint32_t>(fd), arguments[1] = static_cast<uint32_t>(Of(low)), arguments[2] = sizeof(sockaddr_in);
    result = fd < 0 ? fd : Int80(kSocketcall, 3, Of(arguments), 0);
  } else {
    fd = words.at(1) == "own" ? socket(AF_INET, SOCK_STREAM, 0) : Int80(kSocket, AF_INET, SOCK_STREAM, 0);
    result = fd < 0 ? fd : Int80(kConnect, fd, Of(low), sizeof(sockaddr_in));
  }
  if (result == 0) (void)Send(static_cast<int>(fd));
  return result < 0 ? Name(-result) : "0";
}

// "x32,PORT"
std::string X32(const Words& words) {
  constexpr long kX32 = 0x40000000;
  Address victim = MakeAddress("127.0.0.1", Number(words, 1));
  const long fd = Raw(kX32 | SYS_socket, AF_INET, SOCK_STREAM, 0);
  if (fd < 0) return "socket:" + Name(-fd);
  const long result = Raw(kX32 | SYS_connect, fd, Of(victim.get()), victim.size);
  return result < 0 ? Name(-result) : "0";
}

// --- rings -------------------------------------------------------------------------------------------------

class Ring {
 public:
  Ring(int fd, const io_uring_params& p) : fd_(fd), polled_((p.flags & IORING_SETUP_SQPOLL) != 0) {
    const size_t size = std::max<size_t>(p.sq_off.array + p.sq_entries * 4, p.cq_off.cqes + p.cq_entries * sizeof(io_uring_cqe));
    void* at = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, IORING_OFF_SQ_RING);
    void* entries = mmap(nullptr, p.sq_entries * sizeof(io_uring_sqe), PROT_READ | PROT_WRITE, MAP_SHARED, fd, IORING_OFF_SQES);
    if (at == MAP_FAILED || entries == MAP_FAILED) {
      error_ = errno;
      return;
    }
    base_ = static_cast<char*>(at);
    sqes_ = static_cast<io_uring_sqe*>(entries);
    p_ = p;
  }
  [[nodiscard]] int error() const { return error_; }
  long Run(const io_uring_sqe& sqe) {
    auto* tail = Word(p_.sq_off.tail);
    const uint32_t mask = *Word(p_.sq_off.ring_mask), at = *tail & mask;
    sqes_[at] = sqe;
    Word(p_.sq_off.array)[at] = at;
    __atomic_store_n(tail, *tail + 1, __ATOMIC_RELEASE);
    auto *head = Word(p_.cq_off.head), *end = Word(p_.cq_off.tail);
    if (!polled_ && Raw(SYS_io_uring_enter, fd_, 1, 1, IORING_ENTER_GETEVENTS) < 0) return -EOPNOTSUPP;
    for (int i = 0; i < 3000 && __atomic_load_n(end, __ATOMIC_ACQUIRE) == *head; ++i) usleep(1000);
    if (__atomic_load_n(end, __ATOMIC_ACQUIRE) == *head) return -ETIME;
    const auto* cqes = reinterpret_cast<io_uring_cqe*>(base_ + p_.cq_off.cqes);
    const long result = cqes[*head & *Word(p_.cq_off.ring_mask)].res;
    __atomic_store_n(head, *head + 1, __ATOMIC_RELEASE);
    return result;
  }

 private:
  uint32_t* Word(uint32_t offset) { return reinterpret_cast<uint32_t*>(base_ + offset); }
  int fd_, error_ = 0;
  bool polled_;
  io_uring_params p_{};
  char* base_ = nullptr;
  io_uring_sqe* sqes_ = nullptr;
};

// Socket, connect and send without any of these calls.
std::string ByRing(Ring& ring, Address victim) {
  if (ring.error() != 0) return "map:" + Name(ring.error());
  io_uring_sqe sqe{};
  sqe.opcode = IORING_OP_SOCKET;
  sqe.fd = AF_INET;
  sqe.off = SOCK_STREAM;
  const long fd = ring.Run(sqe);
  if (fd < 0) return "socket:" + Name(-fd);
  sqe = {};
  sqe.opcode = IORING_OP_CONNECT;
  sqe.fd = static_cast<int>(fd);
  sqe.addr = reinterpret_cast<uint64_t>(victim.get());
  sqe.off = victim.size;
  const long result = ring.Run(sqe);
  return result < 0 ? Name(-result) : "0";
}
// "ring,PORT": one of our own.
std::string OwnRing(const Words& words) {
  io_uring_params parameters{};
  const long fd = Raw(SYS_io_uring_setup, 4, Of(&parameters));
  if (fd < 0) return "setup:" + Name(-fd);
  Ring ring(static_cast<int>(fd), parameters);
  return ByRing(ring, MakeAddress("127.0.0.1", Number(words, 1)));
}
// "theirring,FD,HEX OF PARAMETERS,HEX OF ADDRESS POINTER": one from before; the address lies in its owner's memory.
std::string TheirRing(const Words& words) {
  io_uring_params parameters{};
  const std::string& hex = words.at(2);
  for (size_t i = 0; i + 1 < hex.size(); i += 2)
    reinterpret_cast<unsigned char*>(&parameters)[i / 2] = static_cast<unsigned char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  Ring ring(static_cast<int>(Number(words, 1)), parameters);
  if (ring.error() != 0) return "map:" + Name(ring.error());
  io_uring_sqe sqe{};
  sqe.opcode = IORING_OP_CONNECT;
  sqe.fd = static_cast<int>(Number(words, 4));
  sqe.addr = std::strtoull(words.at(3).c_str(), nullptr, 16);
  sqe.off = sizeof(sockaddr_in);
  const long result = ring.Run(sqe);
  return result < 0 ? Name(-result) : "0";
}

// --- memory ------------------------------------------------------------------------------------------------

// "memory,CASE,PORT": the proxy's address at an odd place.
std::string Memory(const Words& words) {
  const std::string& kind = words.at(1);
  Address proxy = MakeAddress("127.0.0.1", Number(words, 2));
  const auto map = [](size_t size, int protection, int flags = MAP_PRIVATE | MAP_ANONYMOUS, int fd = -1) {
    return static_cast<char*>(mmap(nullptr, size, protection, flags, fd, 0));
  };
  constexpr size_t kPage = 4096;
  long length = proxy.size;
  char* at = map(3 * kPage, PROT_READ | PROT_WRITE);
  const auto put = [&](char* where) {
    std::memcpy(where, proxy.get(), proxy.size);
    at = where;
  };
  if (kind == "end") put(at + kPage - 16), munmap(at + 16, kPage);
  if (kind == "half") put(at + kPage - 8), munmap(at + 8, kPage);
  if (kind == "lastbyte") put(at + kPage - 15), munmap(at + 15, kPage);
  if (kind == "longhalf") put(at + kPage - 16), munmap(at + 16, kPage), length = 128;
  if (kind == "cross") put(at + kPage - 8);
  if (kind == "none") put(at), mprotect(at, kPage, PROT_NONE);
  if (kind == "halfnone") put(at + kPage - 8), mprotect(at + 8, kPage, PROT_NONE);
  if (kind == "readonly") put(at), mprotect(at, kPage, PROT_READ);
  if (kind == "unmapped") put(at), munmap(at, kPage);
  if (kind == "null") at = nullptr;
  if (kind == "kernel") at = reinterpret_cast<char*>(0xffff888000000000);
  if (kind == "noncanonical") at = reinterpret_cast<char*>(0x0000900000000000);
  if (kind == "wrap") at = reinterpret_cast<char*>(-8L);
  if (kind == "shared") at = map(kPage, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS), put(at);
  if (kind == "file" || kind == "beyondfile" || kind == "crossfile") {
    char name[] = "/dev/shm/hostile-XXXXXX", work[] = "./hostile-XXXXXX";
    int fd = mkstemp(name);
    if (fd < 0) fd = mkstemp(work);
    if (fd < 0) return "file:" + Name(errno);
    unlink(name);
    unlink(work);
    if (kind == "file") {
      (void)!pwrite(fd, proxy.get(), 16, 100);
      at = map(kPage, PROT_READ, MAP_SHARED, fd) + 100;
    } else if (kind == "beyondfile") {
      (void)!pwrite(fd, proxy.get(), 16, kPage - 16);
      at = map(2 * kPage, PROT_READ, MAP_SHARED, fd) + kPage;  // a fault here is SIGBUS
    } else {
      (void)!pwrite(fd, proxy.get(), 8, kPage - 8);
      char* both = map(2 * kPage, PROT_READ | PROT_WRITE);
      std::memcpy(both + kPage, reinterpret_cast<char*>(proxy.get()) + 8, 8);
      (void)mmap(both, kPage, PROT_READ, MAP_SHARED | MAP_FIXED, fd, 0);
      at = both + kPage - 8;
    }
  }
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  if (fd < 0) return "socket:" + Name(errno);
  const long result = Raw(SYS_connect, fd, Of(at), length);
  close(fd);
  return result < 0 ? Name(-result) : "0";
}

// --- races -------------------------------------------------------------------------------------------------

// A second task that changes what the first one passes: a thread, or a process that shares the page.
class Flipper {
 public:
  template <class F>
  Flipper(bool process, volatile int* stop, volatile long* flips, F flip) : stop_(stop), flips_(flips) {
    const auto loop = [stop, flips, flip] {
      for (bool on = false; *stop == 0; on = !on) {
        flip(on);
        *flips = *flips + 1;
        for (int i = 0; i < 20; ++i) asm volatile("pause");
      }
    };
    if (!process) {
      thread_ = std::thread(loop);
      return;
    }
    pid_ = fork();
    if (pid_ == 0) {
      loop();
      _exit(0);
    }
  }
  // On a busy machine each has to get its turn: every so many rounds, waits until something has been flipped.
  void Keep(long round) {
    if (round % 64 != 0) return;
    for (int i = 0; i < 20'000 && *flips_ < seen_ + 2; ++i) usleep(50);
    seen_ = *flips_;
  }
  ~Flipper() {
    *stop_ = 1;
    if (thread_.joinable()) thread_.join();
    if (pid_ > 0) waitpid(pid_, nullptr, 0);
  }

 private:
  volatile int* stop_;
  volatile long* flips_;
  long seen_ = 0;
  std::thread thread_;
  pid_t pid_ = -1;
};

struct Shared {
  Address address;
  volatile int stop = 0;
  volatile long flips = 0;
};
Shared* MakeShared() {
  void* page = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  return new (page) Shared;
}

// "flip,HOW,ROUNDS,unix,PATH,OTHER"        two paths that differ in one byte
// "flip,HOW,ROUNDS,port,PORT,OTHER"        127.0.0.1, two ports
// "flip,HOW,ROUNDS,host,PORT"              127.0.0.1 and 127.0.0.2
// "flip,HOW,ROUNDS,unspec,PORT"            AF_UNSPEC and AF_INET, on a TCP socket
// "flip,HOW,ROUNDS,udp,PORT,BROKER|-"      the same on a UDP socket, one of the broker's or one of our own
// HOW: thread, process
std::string Flip(const Words& words) {
  const bool process = words.at(1) == "process";
  const long rounds = Number(words, 2);
  const std::string& kind = words.at(3);
  Shared* shared = MakeShared();
  int type = SOCK_STREAM, given = -1;
  auto* in = reinterpret_cast<sockaddr_in*>(shared->address.get());
  volatile char* byte = nullptr;
  char one = 0, other = 0;
  if (kind == "unix") {
    shared->address = MakeAddress(words.at(4));
    size_t at = 0;
    while (words.at(4).at(at) == words.at(5).at(at)) ++at;
    byte = reinterpret_cast<sockaddr_un*>(shared->address.get())->sun_path + at;
    one = words.at(4)[at], other = words.at(5)[at];
  } else {
    shared->address = MakeAddress("127.0.0.1", Number(words, 4));
    if (kind == "host") byte = reinterpret_cast<char*>(&in->sin_addr) + 3, one = 1, other = 2;
    if (kind == "unspec" || kind == "udp") byte = reinterpret_cast<char*>(&in->sin_family), one = AF_UNSPEC, other = AF_INET;
    if (kind == "udp") type = SOCK_DGRAM;
    if (kind == "udp" && words.at(5) != "-") {
      given = Receive(words.at(5)).front();
      if (given < 0) return "receive:" + Name(-given);
    }
  }
  const uint16_t port = htons(static_cast<uint16_t>(Number(words, 4))), second = htons(static_cast<uint16_t>(Number(words, 5)));
  Tally tally;
  {
    Flipper flipper(process, &shared->stop, &shared->flips, [=](bool on) {
      if (byte != nullptr) *byte = on ? one : other;
      else *static_cast<volatile uint16_t*>(&in->sin_port) = on ? port : second;
    });
    for (long i = 0; i < rounds; ++i) {
      flipper.Keep(i);
      const int fd = given >= 0 ? given : socket(kind == "unix" ? AF_UNIX : AF_INET, type, 0);
      if (fd < 0) {
        tally.Add("socket:" + Name(errno));
        continue;
      }
      const long result = Raw(SYS_connect, fd, Of(shared->address.get()), shared->address.size);
      tally.AddResult(result);
      // Of a stream the server counts the connection; of a datagram socket what it gets.
      if (type == SOCK_DGRAM && result == 0) (void)Send(fd);
      if (given < 0) close(fd);
    }
  }
  return tally.Text();
}

// "swap,ROUNDS,PORT,BROKER": the number that connect() is given stands for a TCP socket and for the broker's UDP socket in turn.
std::string Swap(const Words& words) {
  const long rounds = Number(words, 1);
  Address proxy = MakeAddress("127.0.0.1", Number(words, 2));
  const int udp = Receive(words.at(3)).front();
  if (udp < 0) return "receive:" + Name(-udp);
  constexpr int kNumber = 90;
  static std::atomic<int> tcp = -1;
  static volatile int stop = 0;
  static volatile long flips = 0;
  dup2(udp, kNumber);
  Tally tally;
  {
    Flipper flipper(false, &stop, &flips, [=](bool on) {
      const int fd = on ? tcp.load() : udp;
      if (fd >= 0) (void)Raw(SYS_dup2, fd, kNumber);
    });
    for (long i = 0; i < rounds; ++i) {
      flipper.Keep(i);
      const int fresh = socket(AF_INET, SOCK_STREAM, 0);
      if (fresh < 0) {
        tally.Add("socket:" + Name(errno));
        continue;
      }
      tcp = fresh;
      tally.AddResult(Raw(SYS_connect, kNumber, Of(proxy.get()), proxy.size));
      Address peer;
      peer.size = sizeof(peer.storage);
      if (getpeername(udp, peer.get(), &peer.size) == 0) {
        tally.Add("udp-connected");
        (void)Send(udp);
        sockaddr none{};
        (void)Raw(SYS_connect, udp, Of(&none), sizeof(none));
      }
      tcp = -1;
      (void)Raw(SYS_dup2, udp, kNumber);
      close(fresh);
    }
  }
  return tally.Text();
}

// "tables,HOW,PORT,OTHER,BROKER": a thread with a descriptor table of its own; one number, two files.
struct Tables {
  std::string how;
  Address proxy, victim;
  int number = 80, own_tcp = -1, udp = -1;
  long unshared = 0, connected = 0, refused = 0, udp_connected = 0, peer = 0;
  std::atomic<int> done = 0;
};
int OwnTable(void* argument) {
  auto& t = *static_cast<Tables*>(argument);
  if (t.how[1] == 'l' && t.how[2] == 'o' && t.how[3] == 's') t.unshared = Raw(SYS_close_range, 900, 900, CLOSE_RANGE_UNSHARE);
  if (t.how[0] == 'u') t.unshared = Raw(SYS_unshare, CLONE_FILES);
  if (t.unshared == 0) {
    // The leader's number is a fresh TCP socket; here it is the broker's UDP socket, then a TCP socket of our own.
    (void)Raw(SYS_dup2, t.udp, t.number);
    t.udp_connected = Raw(SYS_connect, t.number, Of(t.proxy.get()), t.proxy.size);
    (void)Raw(SYS_sendto, t.number, Of(kText), 6, MSG_NOSIGNAL);
    (void)Raw(SYS_dup2, t.own_tcp, t.number);
    t.refused = Raw(SYS_connect, t.number, Of(t.victim.get()), t.victim.size);
    t.connected = Raw(SYS_connect, t.number, Of(t.proxy.get()), t.proxy.size);
    Address peer;
    unsigned size = sizeof(peer.storage);
    t.peer = Raw(SYS_getpeername, t.number, Of(peer.get()), Of(&size));
  }
  t.done = 1;
  return 0;
}
std::string TablesApart(const Words& words) {
  static Tables t;
  t.how = words.at(1);
  t.proxy = MakeAddress("127.0.0.1", Number(words, 2));
  t.victim = MakeAddress("127.0.0.1", Number(words, 3));
  t.udp = Receive(words.at(4)).front();
  if (t.udp < 0) return "receive:" + Name(-t.udp);
  const int mine = socket(AF_INET, SOCK_STREAM, 0);
  t.own_tcp = socket(AF_INET, SOCK_STREAM, 0);
  dup2(mine, t.number);
  std::thread thread;
  if (t.how == "clone") {
    // No thread-local storage of its own: it makes bare calls alone.
    char* stack = static_cast<char*>(mmap(nullptr, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (clone(OwnTable, stack + (1 << 16), CLONE_VM | CLONE_FS | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM, &t) < 0) return "clone:" + Name(errno);
  } else {
    thread = std::thread(OwnTable, &t);
  }
  while (t.done == 0) usleep(1000);
  if (thread.joinable()) thread.join();
  if (t.unshared < 0) return "unshare:" + Name(-t.unshared);
  Address peer;
  peer.size = sizeof(peer.storage);
  const auto name = [](long result) { return result < 0 ? Name(-result) : std::string("0"); };
  const std::string leader = getpeername(t.number, peer.get(), &peer.size) == 0 ? "connected" : "untouched";
  return "udp " + name(t.udp_connected) + ", other " + name(t.refused) + ", proxy " + name(t.connected) + ", peer " + name(t.peer) + ", leader's " + leader;
}

// --- filters and listeners ---------------------------------------------------------------------------------

// "notif,FD": the listener's own calls, by number.
std::string ListenerCall(const Words& words) {
  char buffer[256] = {};
  std::string text;
  for (const unsigned long request : {0xc0502100UL, 0xc0182101UL, 0x40082102UL, 0x40182103UL, 0x40082104UL, 0xc0502100UL | 1UL << 32}) {
    const long result = Raw(SYS_ioctl, Number(words, 1), static_cast<long>(request), Of(buffer));
    text += (text.empty() ? "" : " ") + (result < 0 ? Name(-result) : "0");
  }
  return text;
}
// "everyfd": the same on every descriptor that there is.
std::string EveryDescriptor(const Words&) {
  Tally tally;
  char buffer[256] = {};
  for (int fd = 0; fd < 4096; ++fd)
    if (fcntl(fd, F_GETFD) >= 0) tally.AddResult(Raw(SYS_ioctl, fd, static_cast<long>(0xc0502100UL), Of(buffer)));
  return tally.Text();
}
struct Instruction {
  uint16_t code;
  uint8_t yes, no;
  uint32_t k;
};
struct Program {
  uint16_t length;
  Instruction* code;
};
// "filter,HOW,PORT": a filter of the module's own on top; then an attempt.
std::string OwnFilter(const Words& words) {
  const std::string& how = words.at(1);
  Instruction allow[] = {{6, 0, 0, 0x7fff0000}};
  // connect() goes to a listener of our own.
  Instruction notify[] = {{0x20, 0, 0, 0}, {0x15, 0, 1, SYS_connect}, {6, 0, 0, 0x7fc00000}, {6, 0, 0, 0x7fff0000}};
  Instruction pretend[] = {{0x20, 0, 0, 0}, {0x15, 0, 1, SYS_connect}, {6, 0, 0, 0x00050000}, {6, 0, 0, 0x7fff0000}};
  Program program{1, allow};
  if (how == "listener" || how == "quietnotify") program = {4, notify};
  if (how == "pretend") program = {4, pretend};
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  const long installed = Raw(SYS_seccomp, 1, how == "listener" ? 1L << 3 : 0, Of(&program));
  Address victim = MakeAddress("127.0.0.1", Number(words, 2));
  const std::string first = installed < 0 ? Name(-installed) : "0";
  if (how == "listener") {
    // A thread answers "go on" to whatever comes.
    if (installed >= 0) std::thread([fd = static_cast<int>(installed)] {
        for (;;) {
          struct { uint64_t id; char rest[72]; } request{};
          if (Raw(SYS_ioctl, fd, static_cast<long>(0xc0502100UL), Of(&request)) < 0) return;
          struct { uint64_t id; int64_t value; int32_t error; uint32_t flags; } answer{request.id, 0, 0, 1};
          (void)Raw(SYS_ioctl, fd, static_cast<long>(0xc0182101UL), Of(&answer));
        }
      }).detach();
  }
  return first + " " + Connect(socket(AF_INET, SOCK_STREAM, 0), victim);
}

// --- the supervisor and its neighbours ---------------------------------------------------------------------

// "process,PID": everything that one process can do to another of its own user.
std::string OnProcess(const Words& words) {
  const pid_t pid = static_cast<pid_t>(Number(words, 1));
  std::string text;
  const auto add = [&](const char* what, long result) { text += (text.empty() ? "" : " ") + std::string(what) + "=" + (result < 0 ? Name(-result) : "0"); };
  const auto opened = [&](const char* what, const char* name, int flags) {
    const std::string path = "/proc/" + std::to_string(pid) + "/" + name;
    long fd = Raw(SYS_openat, AT_FDCWD, Of(path.c_str()), flags | O_CLOEXEC);
    char byte;
    if (fd >= 0 && (flags & (O_DIRECTORY | O_WRONLY | O_RDWR)) == 0) {
      const long got = Raw(SYS_read, fd, Of(&byte), 1);
      if (got < 0) fd = got;
    }
    add(what, fd);
  };
  opened("mem", "mem", O_RDWR);
  opened("environ", "environ", O_RDONLY);
  opened("maps", "maps", O_RDONLY);
  opened("auxv", "auxv", O_RDONLY);
  opened("root", "root/etc/hostname", O_RDONLY);
  // The numbers may be listed; what is behind them may not be had.
  long had = -ENOENT;
  for (int fd = 0; fd < 64 && had == -ENOENT; ++fd) {
    const std::string path = "/proc/" + std::to_string(pid) + "/fd/" + std::to_string(fd);
    had = Raw(SYS_openat, AT_FDCWD, Of(path.c_str()), O_PATH | O_CLOEXEC);
  }
  add("fdN", had);
  const long pidfd = Raw(SYS_pidfd_open, pid, 0);
  long taken = -EBADF;
  for (int fd = 0; pidfd >= 0 && fd < 64 && taken < 0; ++fd) {
    const long result = Raw(SYS_pidfd_getfd, pidfd, fd, 0);
    if (result >= 0 || result != -EBADF) taken = result;
    if (result < 0 && result != -EBADF) break;
  }
  add("getfd", taken);
  // A page that may be written, where its map can be read at all.
  unsigned long where = 0x400000;
  if (FILE* maps = fopen(("/proc/" + std::to_string(pid) + "/maps").c_str(), "re"); maps != nullptr) {
    char line[512];
    unsigned long start = 0;
    char rights[8];
    while (fgets(line, sizeof(line), maps) != nullptr)
      if (std::sscanf(line, "%lx-%*x %7s", &start, rights) == 2 && rights[1] == 'w') where = start;
    fclose(maps);
  }
  char byte = 0;
  iovec local{&byte, 1}, remote{reinterpret_cast<void*>(where), 1};
  add("readv", Raw(SYS_process_vm_readv, pid, Of(&local), 1, Of(&remote), 1, 0));
  add("writev", Raw(SYS_process_vm_writev, pid, Of(&local), 1, Of(&remote), 1, 0));
  add("kcmp", Raw(SYS_kcmp, pid, pid, 0, 0, 0));
  add("kill", Raw(SYS_kill, pid, SIGCONT));
  add("tgkill", Raw(SYS_tgkill, pid, pid, SIGCONT));
  siginfo_t info{};
  info.si_code = SI_QUEUE;
  add("sigqueue", Raw(SYS_rt_sigqueueinfo, pid, SIGCONT, Of(&info)));
  add("pidfdsignal", pidfd < 0 ? pidfd : Raw(SYS_pidfd_send_signal, pidfd, SIGCONT, 0, 0));
  const uint64_t limit[2] = {~0UL, ~0UL};
  add("prlimit", Raw(SYS_prlimit64, pid, 4 /* core */, 0, Of(limit)));
  const long seized = Raw(SYS_ptrace, 0x4206 /* seize */, pid, 0, 0);
  add("ptrace", seized);
  return text;
}

// "owner,PID": the kernel sends a file's signal to its owner.
std::string Owner(const Words& words) {
  int ends[2];
  if (pipe(ends) != 0) return Name(errno);
  (void)fcntl(ends[0], F_SETSIG, SIGKILL);
  if (fcntl(ends[0], F_SETOWN, static_cast<pid_t>(Number(words, 1))) != 0) return "owner:" + Name(errno);
  (void)fcntl(ends[0], F_SETFL, O_ASYNC);
  return write(ends[1], "x", 1) == 1 ? "0" : Name(errno);
}

// "kill,PID,SIGNAL"
std::string Kill(const Words& words) { return Result(kill(static_cast<pid_t>(Number(words, 1)), static_cast<int>(Number(words, 2)))); }

// "deface,PATH": what can be done to a file from outside its directory's rules.
std::string Deface(const Words& words) {
  const char* path = words.at(1).c_str();
  std::string text;
  const auto add = [&](const char* what, long result) { text += (text.empty() ? "" : " ") + std::string(what) + "=" + (result < 0 ? Name(-result) : "0"); };
  add("read", Raw(SYS_openat, AT_FDCWD, Of(path), O_RDONLY | O_CLOEXEC));
  add("write", Raw(SYS_openat, AT_FDCWD, Of(path), O_WRONLY | O_CLOEXEC));
  add("truncating", Raw(SYS_openat, AT_FDCWD, Of(path), O_RDONLY | O_TRUNC | O_CLOEXEC));
  add("truncate", Raw(SYS_truncate, Of(path), 0));
  const std::string moved = words.at(1) + ".moved";
  add("rename", Raw(SYS_rename, Of(path), Of(moved.c_str())));
  add("link", Raw(SYS_link, Of(path), Of(moved.c_str())));
  add("unlink", Raw(SYS_unlink, Of(path)));
  const int handle = static_cast<int>(Raw(SYS_openat, AT_FDCWD, Of(path), O_PATH | O_CLOEXEC));
  const std::string again = "/proc/self/fd/" + std::to_string(handle);
  add("reopen", handle < 0 ? handle : Raw(SYS_openat, AT_FDCWD, Of(again.c_str()), O_WRONLY | O_CLOEXEC));
  return text;
}

std::string Uffd(const Words& words) {
  if (words.at(1) == "call") return Result(syscall(SYS_userfaultfd, O_CLOEXEC | Number(words, 2)));
  return Result(open("/dev/userfaultfd", O_RDWR | O_CLOEXEC));
}

// "dumpable,0": what follows is done by a process that must not be looked at.
std::string Dumpable(const Words& words) { return Result(prctl(PR_SET_DUMPABLE, Number(words, 1), 0, 0, 0)); }

// "storm,THREADS,MILLISECONDS,ADDRESS[,PORT]": that many threads connect at once; how it came out of those that came back.
std::string Storm(const Words& words) {
  const long count = Number(words, 1);
  static Address address;
  address = MakeAddress(words.at(3), Number(words, 4));
  static std::atomic<long> started = 0, finished = 0, failed = 0;
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 1 << 16);
  for (long i = 0; i < count; ++i) {
    pthread_t thread;
    if (pthread_create(&thread, &attributes, [](void*) -> void* {
          const long fd = Raw(SYS_socket, address.family(), SOCK_STREAM, 0);
          ++started;
          if (fd < 0 || Raw(SYS_connect, fd, Of(address.get()), address.size) != 0) ++failed;
          ++finished;
          return nullptr;
        }, nullptr) != 0) return "thread:" + Name(errno);
  }
  for (int i = 0; i < 500 && started < count; ++i) usleep(10'000);
  printf("pending\n");
  fflush(stdout);
  usleep(static_cast<useconds_t>(Number(words, 2) * 1000));
  return "started " + std::to_string(started) + " finished " + std::to_string(finished) + " failed " + std::to_string(failed);
}

// "refusals,COUNT,PORT": that many refused connects, each to another port.
std::string Refusals(const Words& words) {
  Tally tally;
  for (long i = 0; i < Number(words, 1); ++i) {
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    Address address = MakeAddress("127.0.0.2", 1024 + i);
    tally.AddResult(Raw(SYS_connect, fd, Of(address.get()), address.size));
    close(fd);
  }
  return tally.Text();
}

// "connects,COUNT,PORT"
std::string Connects(const Words& words) {
  Tally tally;
  Address address = MakeAddress("127.0.0.1", Number(words, 2));
  for (long i = 0; i < Number(words, 1); ++i) {
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0) {
      tally.Add("socket:" + Name(errno));
      continue;
    }
    tally.AddResult(Raw(SYS_connect, fd, Of(address.get()), address.size));
    close(fd);
  }
  return tally.Text();
}

std::string Sleep(const Words& words) {
  usleep(static_cast<useconds_t>(Number(words, 1) * 1000));
  return "0";
}

const Operations kOperations = {
    {"to", To}, {"length", Length}, {"bytes", Bytes}, {"alias", Alias}, {"fast", Fast}, {"again", Again}, {"datagram", Datagram},
    {"pair", Pair}, {"listen", Listen}, {"int80", ForeignArch}, {"x32", X32}, {"ring", OwnRing}, {"theirring", TheirRing},
    {"memory", Memory}, {"flip", Flip}, {"swap", Swap}, {"tables", TablesApart}, {"notif", ListenerCall}, {"everyfd", EveryDescriptor},
    {"filter", OwnFilter}, {"process", OnProcess}, {"kill", Kill}, {"owner", Owner}, {"deface", Deface}, {"uffd", Uffd}, {"dumpable", Dumpable}, {"storm", Storm},
    {"refusals", Refusals}, {"connects", Connects}, {"sleep", Sleep},
};

// In whichever task the prefix names.
void DoIn(const std::string& text) {
  const size_t slash = text.find('/'), comma = text.find(',');
  const std::string where = slash < comma ? text.substr(0, slash) : "", word = slash < comma ? text.substr(slash + 1) : text;
  if (where == "thread") {
    std::thread([&] { Print(text, Do(kOperations, word)); }).join();
  } else if (where == "fork") {
    const pid_t pid = fork();
    if (pid == 0) {
      Print(text, Do(kOperations, word));
      _exit(0);
    }
    waitpid(pid, nullptr, 0);
  } else if (where == "vfork") {
    // The parent is frozen meanwhile and shares the memory.
    static const std::string* volatile result;
    result = nullptr;
    const pid_t pid = vfork();
    if (pid == 0) {
      result = new std::string(Do(kOperations, word));
      _exit(0);
    }
    waitpid(pid, nullptr, 0);
    Print(text, result != nullptr ? *result : "(nothing)");
  } else if (where == "deadleader") {
    // The last word: the process ends with the thread.
    std::thread([text, word, leader = getpid()] {
      const std::string path = "/proc/self/task/" + std::to_string(leader) + "/stat";
      for (int i = 0; i < 300; ++i) {
        char line[256] = {};
        const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
        (void)!read(fd, line, sizeof(line) - 1);
        close(fd);
        if (std::strstr(line, ") Z ") != nullptr) break;
        usleep(10'000);
      }
      Print(text, Do(kOperations, word));
      _exit(0);
    }).detach();
    (void)Raw(SYS_exit, 0);
  } else {
    Print(text, Do(kOperations, text));
  }
}

}  // namespace

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "stdin") != 0) {
      DoIn(argv[i]);
      continue;
    }
    // Further words come line by line.
    Print("stdin", "ready");
    char line[4096];
    while (fgets(line, sizeof(line), stdin) != nullptr) {
      line[std::strcspn(line, "\n")] = '\0';
      DoIn(line);
    }
  }
  return 0;
}
