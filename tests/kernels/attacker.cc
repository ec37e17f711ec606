// SPDX-License-Identifier: Apache-2.0
// kernels-attacker: one attempt per word at what a key of the enforcement report promises. "0" means that it got through.
//   fork/WORD in a child
#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/random.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/ptrace.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <sys/xattr.h>

#include <thread>

#include "tests/hostile/program.h"

namespace {

using namespace hostile;

// At one address in every process of this program, which is linked statically.
char secret[] = "what only its own process may read";

const char* Path(const Words& words, size_t at = 1) { return words.at(at).c_str(); }
std::string Closed(int fd) {
  const std::string result = Result(fd);
  if (fd >= 0) close(fd);
  return result;
}
std::string Opened(const Words& words, int flags) { return Closed(open(Path(words), flags | O_CLOEXEC, 0666)); }

std::string WriteTo(const Words& words) {
  const int fd = open(Path(words), O_WRONLY | O_CLOEXEC);
  if (fd < 0) return Name(errno);
  const std::string result = Result(write(fd, "defaced", 7));
  close(fd);
  return result;
}

std::string List(const Words& words) { return Opened(words, O_RDONLY | O_DIRECTORY); }

// By a path that leads through /proc.
std::string TruncateByHandle(const Words& words) {
  const int fd = open(Path(words), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return Name(errno);
  const std::string again = "/proc/self/fd/" + std::to_string(fd);
  const std::string result = Result(truncate(again.c_str(), 0));
  close(fd);
  return result;
}

// What came of a program that another process became.
std::string Ended(pid_t pid) {
  int status = 0;
  waitpid(pid, &status, 0);
  return !WIFEXITED(status) ? "signal " + std::to_string(WTERMSIG(status)) : WEXITSTATUS(status) == 0 ? "0" : Name(WEXITSTATUS(status));
}
std::string Exec(const Words& words) {
  const pid_t pid = fork();
  if (pid == 0) {
    char* argv[] = {const_cast<char*>(Path(words)), nullptr};
    char* envp[] = {nullptr};
    execve(argv[0], argv, envp);
    _exit(errno);
  }
  return Ended(pid);
}

// A program that no file system holds.
std::string ExecMemfd(const Words& words) {
  const int from = open(Path(words), O_RDONLY | O_CLOEXEC);
  if (from < 0) return "open:" + Name(errno);
  const int fd = memfd_create("program", 0);
  if (fd < 0) return "memfd:" + Name(errno);
  char buffer[65536];
  for (ssize_t got; (got = read(from, buffer, sizeof(buffer))) > 0;)
    if (write(fd, buffer, static_cast<size_t>(got)) != got) return "write:" + Name(errno);
  const pid_t pid = fork();
  if (pid == 0) {
    char name[] = "program", by_path[64];
    char* argv[] = {name, nullptr};
    char* envp[] = {nullptr};
    (void)syscall(SYS_execveat, fd, "", argv, envp, AT_EMPTY_PATH);
    std::snprintf(by_path, sizeof(by_path), "/proc/self/fd/%d", fd);
    execve(by_path, argv, envp);
    _exit(errno);
  }
  return Ended(pid);
}

std::string MapExec(const Words& words) {
  const int fd = open(Path(words), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return "open:" + Name(errno);
  void* map = mmap(nullptr, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
  close(fd);
  return map == MAP_FAILED ? Name(errno) : "0";
}

std::string Utimes(const Words& words) {
  const timespec times[2] = {{1, 0}, {1, 0}};
  return Result(utimensat(AT_FDCWD, Path(words), times, 0));
}

std::string SharedMemory(const Words&) {
  const int id = shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600);
  if (id >= 0) shmctl(id, IPC_RMID, nullptr);
  return Result(id);
}
std::string Semaphore(const Words&) {
  const int id = semget(IPC_PRIVATE, 1, IPC_CREAT | 0600);
  if (id >= 0) semctl(id, 0, IPC_RMID);
  return Result(id);
}
std::string MessageQueue(const Words&) {
  const int id = msgget(IPC_PRIVATE, IPC_CREAT | 0600);
  if (id >= 0) msgctl(id, IPC_RMID, nullptr);
  return Result(id);
}
// The syscall: the name without its slash.
std::string PosixQueue(const Words& words) {
  const long fd = syscall(SYS_mq_open, Path(words), O_CREAT | O_RDWR, 0600, nullptr);
  if (fd >= 0) syscall(SYS_mq_unlink, Path(words));
  return Closed(static_cast<int>(fd));
}

std::string PosixMemory(const Words& words) {
  const std::string path = "/dev/shm/" + words.at(1);
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd >= 0) unlink(path.c_str());
  return Closed(fd);
}

std::string Kill(const Words& words) {
  const auto pid = static_cast<pid_t>(Number(words, 2));
  const std::string& how = words.at(1);
  if (how == "kill") return Result(kill(pid, 0));
  if (how == "group") return Result(kill(-pid, 0));
  if (how == "tkill") return Result(syscall(SYS_tkill, pid, 0));
  if (how == "tgkill") return Result(syscall(SYS_tgkill, pid, pid, 0));
  siginfo_t info{};
  info.si_code = SI_QUEUE;
  if (how == "queue") return Result(syscall(SYS_rt_sigqueueinfo, pid, SIGURG, &info));
  const long pidfd = syscall(SYS_pidfd_open, pid, 0);
  if (pidfd < 0) return "pidfd:" + Name(errno);
  const std::string result = Result(syscall(SYS_pidfd_send_signal, pidfd, 0, nullptr, 0));
  close(static_cast<int>(pidfd));
  return result;
}

// "owner,PID": the kernel sends a file's signal to its owner, a process or, negative, a group.
std::string Owner(const Words& words) {
  int ends[2];
  if (pipe(ends) != 0) return Name(errno);
  if (fcntl(ends[0], F_SETSIG, SIGUSR1) != 0) return "signal:" + Name(errno);
  if (fcntl(ends[0], F_SETOWN, static_cast<pid_t>(Number(words, 1))) != 0) return "owner:" + Name(errno);
  if (fcntl(ends[0], F_SETFL, O_ASYNC) != 0) return "async:" + Name(errno);
  return write(ends[1], "x", 1) == 1 ? "0" : Name(errno);
}

// It is let go when we end.
std::string Trace(const Words& words) { return Result(ptrace(PTRACE_SEIZE, static_cast<pid_t>(Number(words, 1)), nullptr, nullptr)); }
std::string ReadMemory(const Words& words) {
  char buffer[sizeof(secret)];
  iovec mine{buffer, sizeof(buffer)}, theirs{secret, sizeof(secret)};
  return Result(process_vm_readv(static_cast<pid_t>(Number(words, 1)), &mine, 1, &theirs, 1, 0));
}
std::string MemoryFile(const Words& words) {
  const std::string path = "/proc/" + words.at(1) + "/mem";
  return Closed(open(path.c_str(), O_RDONLY | O_CLOEXEC));
}
std::string TakeDescriptor(const Words& words) {
  const long pidfd = syscall(SYS_pidfd_open, Number(words, 1), 0);
  if (pidfd < 0) return "pidfd:" + Name(errno);
  return Result(syscall(SYS_pidfd_getfd, pidfd, 0, 0));
}

std::string Ioctl(const Words& words) {
  const int fd = open(Path(words), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return "open:" + Name(errno);
  int value = 0;
  const std::string result = Result(ioctl(fd, RNDGETENTCNT, &value));
  close(fd);
  return result;
}

// "daemon,PATH": leaves a process behind that writes there once its parent has gone.
std::string Daemon(const Words& words) {
  const pid_t pid = fork();
  if (pid == 0) {
    setsid();
    if (fork() != 0) _exit(0);
    for (int fd = 0; fd < 3; ++fd) close(fd);
    for (int i = 0; i < 500; ++i) {
      usleep(20'000);
      const int fd = open(Path(words), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
      (void)!write(fd, "alive", 5);
      close(fd);
    }
    _exit(0);
  }
  return Ended(pid);
}

// "owntable,HOW": a thread with a descriptor table of its own.
int InThread(void* argument) {
  static_cast<std::atomic<int>*>(argument)->store(1);
  return 0;
}
std::string OwnTable(const Words& words) {
  if (words.at(1) == "clone") {
    static std::atomic<int> done = 0;
    char* stack = static_cast<char*>(mmap(nullptr, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (clone(InThread, stack + (1 << 16), CLONE_VM | CLONE_FS | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM, &done) < 0) return Name(errno);
    while (done == 0) usleep(1000);
    return "0";
  }
  long result = 0;
  std::thread([&] { result = Raw(SYS_close_range, 900, 900, CLOSE_RANGE_UNSHARE); }).join();
  return result < 0 ? Name(-result) : "0";
}

// "threads,COUNT,PORT": that many connect at once; all must be greeted.
std::string Threads(const Words& words) {
  std::atomic<long> greeted = 0;
  std::vector<std::thread> threads;
  for (long i = 0; i < Number(words, 1); ++i)
    threads.emplace_back([&] {
      Address address = MakeAddress("127.0.0.1", Number(words, 2));
      const int fd = socket(AF_INET, SOCK_STREAM, 0);
      char byte;
      if (connect(fd, address.get(), address.size) == 0 && recv(fd, &byte, 1, 0) == 1) ++greeted;
      close(fd);
    });
  for (std::thread& thread : threads) thread.join();
  return std::to_string(greeted);
}

std::string Wait(const Words&) {
  printf("waiting\n");
  fflush(stdout);
  pause();
  return "0";
}

const Operations kOperations = {
    {"read", [](const Words& w) { return Opened(w, O_RDONLY); }},
    {"list", List},
    {"writeto", WriteTo},
    {"create", [](const Words& w) { return Opened(w, O_WRONLY | O_CREAT | O_EXCL); }},
    {"opentrunc", [](const Words& w) { return Opened(w, O_RDONLY | O_TRUNC); }},
    {"openneither", [](const Words& w) { return Opened(w, O_ACCMODE | O_TRUNC); }},
    {"truncate", [](const Words& w) { return Result(truncate(Path(w), 0)); }},
    {"truncatehandle", TruncateByHandle},
    {"unlink", [](const Words& w) { return Result(unlink(Path(w))); }},
    {"mkdir", [](const Words& w) { return Result(mkdir(Path(w), 0777)); }},
    {"rmdir", [](const Words& w) { return Result(rmdir(Path(w))); }},
    {"symlink", [](const Words& w) { return Result(symlink("/nowhere", Path(w))); }},
    {"fifo", [](const Words& w) { return Result(mkfifo(Path(w), 0666)); }},
    {"rename", [](const Words& w) { return Result(rename(Path(w), Path(w, 2))); }},
    {"link", [](const Words& w) { return Result(link(Path(w), Path(w, 2))); }},
    {"exec", Exec},
    {"execmemfd", ExecMemfd},
    {"mapexec", MapExec},
    {"chmod", [](const Words& w) { return Result(chmod(Path(w), 0600)); }},
    {"utimes", Utimes},
    {"xattr", [](const Words& w) { return Result(setxattr(Path(w), "user.oarlock", "x", 1, 0)); }},
    {"shm", SharedMemory},
    {"sem", Semaphore},
    {"msg", MessageQueue},
    {"mq", PosixQueue},
    {"posixshm", PosixMemory},
    {"signal", Kill},
    {"owner", Owner},
    {"trace", Trace},
    {"vmread", ReadMemory},
    {"mem", MemoryFile},
    {"getfd", TakeDescriptor},
    {"ioctl", Ioctl},
    {"daemon", Daemon},
    {"owntable", OwnTable},
    {"threads", Threads},
    {"wait", Wait},
};

}  // namespace

int main(int argc, char** argv) {
  if (argc == 1) return 0;  // what "exec" runs
  for (int i = 1; i < argc; ++i) {
    const std::string text = argv[i];
    if (!text.starts_with("fork/")) {
      Print(text, Do(kOperations, text));
      continue;
    }
    const pid_t pid = fork();
    if (pid == 0) {
      Print(text, Do(kOperations, text.substr(5)));
      _exit(0);
    }
    waitpid(pid, nullptr, 0);
  }
  return 0;
}
