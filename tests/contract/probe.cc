// SPDX-License-Identifier: Apache-2.0
// contract-probe: what a module tries, word by word, as tests/support/probe.cc does; here files, processes, calls and what two
// processes have between them. A word may begin with where it is done: "fork:", "thread:", "setsid:", "exec:", one before another
// ("thread:fork:open,/root,0": by a child that a thread makes).
#include <fcntl.h>
#include <linux/landlock.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <sys/xattr.h>

#include <array>

#include "tests/hostile/program.h"

namespace {

using namespace hostile;  // NOLINT(google-build-using-namespace): what the probes share

const char* program;

std::string DoAnywhere(const std::string& text);

// --- files ---------------------------------------------------------------------------------------------------------------------

std::string Open(const Words& w) {
  const int fd = open(w.at(1).c_str(), static_cast<int>(Number(w, 2)) | O_CLOEXEC | O_NOCTTY, static_cast<mode_t>(Number(w, 3, 0644)));
  const std::string result = Result(fd);
  if (fd >= 0) close(fd);
  return result;
}

std::string Read(const Words& w) {
  const int fd = open(w.at(1).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return Name(errno);
  char buffer[256];
  const ssize_t got = read(fd, buffer, sizeof(buffer));
  close(fd);
  std::string text(buffer, static_cast<size_t>(std::max<ssize_t>(got, 0)));
  return got < 0 ? Name(errno) : "0 " + text.substr(0, text.find('\n'));
}

// Creates or appends, and says whether a byte went in.
std::string Write(const Words& w) {
  const int fd = open(w.at(1).c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY, 0644);
  if (fd < 0) return Name(errno);
  const std::string result = write(fd, "x", 1) == 1 ? "0" : Name(errno);
  close(fd);
  return result;
}

std::string List(const Words& w) {
  const int fd = open(w.at(1).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return Name(errno);
  char buffer[4096];
  const std::string result = Result(syscall(SYS_getdents64, fd, buffer, sizeof(buffer)));
  close(fd);
  return result;
}

std::string Stat(const Words& w) {
  struct stat status {};
  return Result(stat(w.at(1).c_str(), &status));
}

// "ioctl,PATH,REQUEST[,FLAGS]" with a zeroed buffer.
std::string Ioctl(const Words& w) {
  const int fd = open(w.at(1).c_str(), static_cast<int>(Number(w, 3, O_RDWR)) | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  if (fd < 0) return "open:" + Name(errno);
  std::array<char, 256> buffer{};
  const std::string result = Result(ioctl(fd, static_cast<unsigned long>(Number(w, 2)), buffer.data()));
  close(fd);
  return result;
}

std::string Attribute(const Words& w) { return Result(setxattr(w.at(1).c_str(), "user.contract", "x", 1, 0)); }

// --- programs ------------------------------------------------------------------------------------------------------------------

std::string Ended(pid_t pid) {
  int status = 0;
  if (pid < 0) return Name(errno);
  if (waitpid(pid, &status, 0) != pid) return Name(errno);
  return WIFEXITED(status) ? "exit " + std::to_string(WEXITSTATUS(status)) : "signal " + std::to_string(WTERMSIG(status));
}

// The errno of the exec itself comes through a pipe that it closes.
std::string Execute(const std::vector<std::string>& argv, int fd = -1) {
  std::vector<char*> pointers;
  for (const std::string& argument : argv) pointers.push_back(const_cast<char*>(argument.c_str()));
  pointers.push_back(nullptr);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return "pipe:" + Name(errno);
  const pid_t pid = fork();
  if (pid == 0) {
    (void)dup2(open("/dev/null", O_WRONLY), 1);
    if (fd >= 0) syscall(SYS_execveat, fd, "", pointers.data(), environ, AT_EMPTY_PATH);
    else execve(pointers[0], pointers.data(), environ);
    const int error = errno;
    (void)!write(ends[1], &error, sizeof(error));
    _exit(126);
  }
  close(ends[1]);
  int error = 0;
  const ssize_t got = read(ends[0], &error, sizeof(error));
  close(ends[0]);
  const std::string ended = Ended(pid);
  return got == static_cast<ssize_t>(sizeof(error)) ? Name(error) : ended;
}

// A copy of this program in memory, run from there.
std::string MemoryExec(const Words&) {
  const int memory = static_cast<int>(syscall(SYS_memfd_create, "program", 0U));
  if (memory < 0) return "memfd:" + Name(errno);
  const int self = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  if (self < 0) return "self:" + Name(errno);
  char buffer[65536];
  for (ssize_t got; (got = read(self, buffer, sizeof(buffer))) > 0;) (void)!write(memory, buffer, static_cast<size_t>(got));
  close(self);
  const std::string result = Execute({"program", "exit,9"}, memory);
  close(memory);
  return result;
}

std::string Map(const Words& w, bool then_protect) {
  const int fd = open(w.at(1).c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return "open:" + Name(errno);
  void* at = mmap(nullptr, 4096, then_protect ? PROT_READ : PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
  close(fd);
  if (at == MAP_FAILED) return "mmap:" + Name(errno);
  return then_protect ? Result(mprotect(at, 4096, PROT_READ | PROT_EXEC)) : "0";
}

std::string Spawn(const Words& w) {
  pid_t pid = -1;
  std::vector<char*> argv;
  for (size_t i = 1; i < w.size(); ++i) argv.push_back(const_cast<char*>(w[i].c_str()));
  argv.push_back(nullptr);
  const int error = posix_spawn(&pid, argv[0], nullptr, nullptr, argv.data(), environ);
  return error != 0 ? Name(error) : Ended(pid);
}

std::string System(const Words& w) {
  const int status = system(w.at(1).c_str());
  return status < 0 ? Name(errno) : "exit " + std::to_string(WEXITSTATUS(status));
}

std::string Thread(const Words&) {
  pthread_t thread;
  const int error = pthread_create(&thread, nullptr, [](void* p) -> void* { return p; }, nullptr);
  if (error != 0) return Name(error);
  pthread_join(thread, nullptr);
  return "0";
}

// clone with these flags and a child that ends at once.
std::string Clone(const Words& w) {
  const pid_t pid = static_cast<pid_t>(syscall(SYS_clone, Number(w, 1) | SIGCHLD, 0, 0, 0, 0));
  if (pid == 0) _exit(0);
  return Ended(pid);
}

// getpid by the i386 entry, in a child: whether the entry is there at all is its end.
std::string Foreign(const Words&) {
#ifdef __x86_64__
  const pid_t pid = fork();
  if (pid == 0) {
    long result;
    asm volatile("int $0x80" : "=a"(result) : "a"(20L) : "memory");
    _exit(result > 0 ? 0 : 1);
  }
  return Ended(pid);
#else
  return "none";
#endif
}

// --- others --------------------------------------------------------------------------------------------------------------------

std::string PidfdSend(const Words& w) {
  const int fd = static_cast<int>(syscall(SYS_pidfd_open, Number(w, 1), 0));
  if (fd < 0) return "open:" + Name(errno);
  const std::string result = Result(syscall(SYS_pidfd_send_signal, fd, Number(w, 2), nullptr, 0));
  close(fd);
  return result;
}

std::string PidfdGet(const Words& w) {
  const int fd = static_cast<int>(syscall(SYS_pidfd_open, Number(w, 1), 0));
  if (fd < 0) return "open:" + Name(errno);
  return Result(syscall(SYS_pidfd_getfd, fd, Number(w, 2), 0));
}

// Lets the kernel send a signal to somebody: when what arrives on our own pair is to be told.
std::string Owner(const Words& w) {
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0) return "socketpair:" + Name(errno);
  if (fcntl(pair[0], F_SETOWN, static_cast<int>(Number(w, 1))) != 0) return "F_SETOWN:" + Name(errno);
  if (fcntl(pair[0], F_SETSIG, static_cast<int>(Number(w, 2))) != 0) return "F_SETSIG:" + Name(errno);
  if (fcntl(pair[0], F_SETFL, O_ASYNC) != 0) return "O_ASYNC:" + Name(errno);
  const std::string result = write(pair[1], "x", 1) == 1 ? "0" : Name(errno);
  usleep(50'000);
  return result;
}

// A child of ours is no stranger: it can be ended.
std::string KillChild(const Words& w) {
  const pid_t pid = fork();
  if (pid == 0) {
    for (;;) pause();
  }
  const std::string result = Result(kill(pid, static_cast<int>(Number(w, 1, SIGTERM))));
  if (result != "0") (void)syscall(SYS_exit_group, 3);
  return result + " " + Ended(pid);
}

std::string Groups(const Words&) { return "0 " + std::to_string(getpgrp()) + " " + std::to_string(getpid()); }

std::string ThreadsOfUs(const Words&) { return "0 " + std::to_string(getpid()) + " " + std::to_string(syscall(SYS_gettid)); }

// --- sockets -------------------------------------------------------------------------------------------------------------------

std::string MakeSocket(const Words& w) {
  const int fd = socket(static_cast<int>(Number(w, 1)), static_cast<int>(Number(w, 2)), static_cast<int>(Number(w, 3)));
  const std::string result = Result(fd);
  if (fd >= 0) close(fd);
  return result;
}

// "to,HOST,PORT[,PROTOCOL]" or "to,/path" or "to,@name": connects, says a byte, and waits for one.
std::string To(const Words& w) {
  Address address = MakeAddress(w.at(1), Number(w, 2));
  const int fd = socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC, static_cast<int>(Number(w, 3)));
  if (fd < 0) return "socket:" + Name(errno);
  std::string result = Result(connect(fd, address.get(), address.size));
  if (result == "0") {
    pollfd ready{fd, POLLIN, 0};
    char byte;
    if (poll(&ready, 1, 5000) != 1 || read(fd, &byte, 1) != 1) result = "0 (silent)";
  }
  close(fd);
  return result;
}

// "pair,TYPE[,NAME]": a pair that talks; with a name a send that carries it.
std::string Pair(const Words& w) {
  int pair[2];
  if (socketpair(AF_UNIX, static_cast<int>(Number(w, 1)), 0, pair) != 0) return "socketpair:" + Name(errno);
  std::string result;
  if (w.size() > 2) {
    Address address = MakeAddress(w[2]);
    result = Result(sendto(pair[0], "pair", 4, 0, address.get(), address.size));
  } else {
    char text[8] = {};
    result = write(pair[0], "pair", 4) == 4 && read(pair[1], text, 4) == 4 && std::strcmp(text, "pair") == 0 ? "0" : Name(errno);
  }
  close(pair[0]);
  close(pair[1]);
  return result;
}

std::string Bind(const Words& w, bool then_listen) {
  Address address = MakeAddress(w.at(1), Number(w, 2));
  const int fd = socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC, static_cast<int>(Number(w, 3)));
  if (fd < 0) return "socket:" + Name(errno);
  std::string result = Result(bind(fd, address.get(), address.size));
  if (result == "0" && then_listen) result = Result(listen(fd, 1));
  close(fd);
  return result;
}

// Without bind the kernel chooses the port.
std::string Listen(const Words& w) {
  const int fd = socket(static_cast<int>(Number(w, 1)), SOCK_STREAM | SOCK_CLOEXEC, static_cast<int>(Number(w, 2)));
  if (fd < 0) return "socket:" + Name(errno);
  const std::string result = Result(listen(fd, 1));
  close(fd);
  return result;
}

// Says a byte over an inherited descriptor and reads one back.
std::string Exchange(const Words& w) {
  const int fd = static_cast<int>(Number(w, 1));
  char byte = 'x';
  if (write(fd, &byte, 1) != 1) return "write:" + Name(errno);
  pollfd ready{fd, POLLIN, 0};
  if (poll(&ready, 1, 5000) != 1) return "silent";
  return read(fd, &byte, 1) == 1 ? "0 " + std::string(1, byte) : "read:" + Name(errno);
}

std::string Ring(const Words&) {
  char parameters[120] = {};
  const int fd = static_cast<int>(syscall(SYS_io_uring_setup, 4, parameters));
  const std::string result = Result(fd);
  if (fd >= 0) close(fd);
  return result;
}

// --- what one process leaves for another ---------------------------------------------------------------------------------------

// Attaches to the outside's shared memory and reads what stands there.
std::string SharedMemory(const Words& w) {
  const int id = static_cast<int>(syscall(SYS_shmget, Number(w, 1), 0, 0));
  if (id < 0) return Name(errno);
  const auto* text = reinterpret_cast<const char*>(syscall(SYS_shmat, id, nullptr, 0));
  return reinterpret_cast<long>(text) == -1 ? "shmat:" + Name(errno) : "0 " + std::string(text);
}

std::string Queue(const Words& w) {
  const int fd = static_cast<int>(syscall(SYS_mq_open, w.at(1).c_str(), O_RDWR | O_CLOEXEC, 0, nullptr));
  const std::string result = Result(fd);
  if (fd >= 0) close(fd);
  return result;
}

// --- a wider sandbox -----------------------------------------------------------------------------------------------------------

// A second domain that allows everything below "/". Later words are done within it.
std::string Widen(const Words&) {
  landlock_ruleset_attr attribute{};
  attribute.handled_access_fs = (1ULL << 13) - 1;
  const int ruleset = static_cast<int>(syscall(SYS_landlock_create_ruleset, &attribute, sizeof(attribute), 0));
  if (ruleset < 0) return "create:" + Name(errno);
  landlock_path_beneath_attr beneath{};
  beneath.allowed_access = attribute.handled_access_fs;
  beneath.parent_fd = open("/", O_PATH | O_CLOEXEC);
  if (beneath.parent_fd < 0) return "open:" + Name(errno);
  if (syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &beneath, 0) != 0) return "add:" + Name(errno);
  const std::string result = Result(syscall(SYS_landlock_restrict_self, ruleset, 0));
  close(ruleset);
  close(beneath.parent_fd);
  return result;
}

// "reopen,FD,FLAGS": by the name that /proc gives it.
std::string Reopen(const Words& w) {
  const int fd = open(("/proc/self/fd/" + w.at(1)).c_str(), static_cast<int>(Number(w, 2)) | O_CLOEXEC);
  const std::string result = Result(fd);
  if (fd >= 0) close(fd);
  return result;
}

// Beneath a handle on a directory, which any process may have.
std::string Beneath(const Words& w) {
  const int directory = open(w.at(1).c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0) return "handle:" + Name(errno);
  const int fd = openat(directory, w.at(2).c_str(), static_cast<int>(Number(w, 3)) | O_CLOEXEC, 0644);
  const std::string result = Result(fd);
  if (fd >= 0) close(fd);
  close(directory);
  return result;
}

// --- ourselves -----------------------------------------------------------------------------------------------------------------

std::string Status(const Words& w) {
  FILE* file = fopen("/proc/self/status", "re");
  if (file == nullptr) return Name(errno);
  char line[1024];
  std::string result = "absent";
  while (fgets(line, sizeof(line), file) != nullptr) {
    const std::string text(line);
    if (!text.starts_with(w.at(1) + ":\t")) continue;
    result = "0 " + text.substr(w[1].size() + 2);
    while (!result.empty() && (result.back() == '\n' || result.back() == '\t')) result.pop_back();
  }
  fclose(file);
  return result;
}

std::string Call(const Words& w) {
  return Result(syscall(Number(w, 1), Number(w, 2), Number(w, 3), Number(w, 4), Number(w, 5), Number(w, 6), Number(w, 7)));
}

// Names of the environment that the kernel still shows of this process.
std::string Environ(const Words& w) {
  const int fd = open("/proc/self/environ", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return Name(errno);
  std::string text(65536, '\0');
  const ssize_t got = read(fd, text.data(), text.size());
  close(fd);
  text.resize(static_cast<size_t>(std::max<ssize_t>(got, 0)));
  return text.find(w.at(1)) == std::string::npos ? "absent" : "0";
}

const Operations kOperations = {
    {"open", Open},
    {"read", Read},
    {"write", Write},
    {"list", List},
    {"stat", Stat},
    {"access", [](const Words& w) { return Result(access(w.at(1).c_str(), static_cast<int>(Number(w, 2)))); }},
    {"chdir", [](const Words& w) { return Result(chdir(w.at(1).c_str())); }},
    {"rename", [](const Words& w) { return Result(rename(w.at(1).c_str(), w.at(2).c_str())); }},
    {"link", [](const Words& w) { return Result(link(w.at(1).c_str(), w.at(2).c_str())); }},
    {"symlink", [](const Words& w) { return Result(symlink(w.at(1).c_str(), w.at(2).c_str())); }},
    {"mkfifo", [](const Words& w) { return Result(mkfifo(w.at(1).c_str(), 0644)); }},
    {"mkdir", [](const Words& w) { return Result(mkdir(w.at(1).c_str(), 0755)); }},
    {"rmdir", [](const Words& w) { return Result(rmdir(w.at(1).c_str())); }},
    {"unlink", [](const Words& w) { return Result(unlink(w.at(1).c_str())); }},
    {"mknod", [](const Words& w) { return Result(mknod(w.at(1).c_str(), S_IFCHR | 0666, makedev(static_cast<unsigned>(Number(w, 2)), static_cast<unsigned>(Number(w, 3))))); }},
    {"truncate", [](const Words& w) { return Result(truncate(w.at(1).c_str(), Number(w, 2))); }},
    {"chmod", [](const Words& w) { return Result(chmod(w.at(1).c_str(), static_cast<mode_t>(Number(w, 2)))); }},
    {"utimes", [](const Words& w) { return Result(utimes(w.at(1).c_str(), nullptr)); }},
    {"setxattr", Attribute},
    {"ioctl", Ioctl},
    {"exec", [](const Words& w) { return Execute(std::vector<std::string>(w.begin() + 1, w.end())); }},
    {"memoryexec", MemoryExec},
    {"mapexec", [](const Words& w) { return Map(w, false); }},
    {"protectexec", [](const Words& w) { return Map(w, true); }},
    {"spawn", Spawn},
    {"system", System},
    {"newthread", Thread},
    {"clone", Clone},
    {"int80", Foreign},
    {"kill", [](const Words& w) { return Result(kill(static_cast<pid_t>(Number(w, 1)), static_cast<int>(Number(w, 2)))); }},
    {"tgkill", [](const Words& w) { return Result(syscall(SYS_tgkill, Number(w, 1), Number(w, 1), Number(w, 2))); }},
    {"pidfdsend", PidfdSend},
    {"pidfdget", PidfdGet},
    {"owner", Owner},
    {"killchild", KillChild},
    {"groups", Groups},
    {"ids", ThreadsOfUs},
    {"socket", MakeSocket},
    {"to", To},
    {"pair", Pair},
    {"bind", [](const Words& w) { return Bind(w, false); }},
    {"bindlisten", [](const Words& w) { return Bind(w, true); }},
    {"listen", Listen},
    {"exchange", Exchange},
    {"ring", Ring},
    {"shm", SharedMemory},
    {"msg", [](const Words& w) { return Result(syscall(SYS_msgget, Number(w, 1), 0)); }},
    {"sem", [](const Words& w) { return Result(syscall(SYS_semget, Number(w, 1), 0, 0)); }},
    {"queue", Queue},
    {"widen", Widen},
    {"reopen", Reopen},
    {"beneath", Beneath},
    {"status", Status},
    {"call", Call},
    {"environ", Environ},
    {"euid", [](const Words&) { return "0 " + std::to_string(geteuid()); }},
    {"uid", [](const Words&) { return "0 " + std::to_string(getuid()) + " " + std::to_string(getgid()); }},
    {"pid", [](const Words&) { return "0 " + std::to_string(getpid()); }},
    {"say", [](const Words& w) { return "0 " + w.at(1); }},
    {"sleep", [](const Words& w) { usleep(static_cast<useconds_t>(Number(w, 1) * 1000)); return std::string("0"); }},
    {"exit", [](const Words& w) -> std::string { _exit(static_cast<int>(Number(w, 1))); }},
};

// --- where ---------------------------------------------------------------------------------------------------------------------

// In a child, which tells its result through a pipe.
std::string InChild(const std::string& text, bool own_session, bool other_image) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return "pipe:" + Name(errno);
  const pid_t pid = fork();
  if (pid < 0) return "fork:" + Name(errno);
  if (pid == 0) {
    if (own_session && setsid() < 0) _exit(4);
    if (other_image) {
      (void)dup2(ends[1], 1);
      execl(program, program, text.c_str(), static_cast<char*>(nullptr));
      _exit(5);
    }
    const std::string result = DoAnywhere(text);
    (void)!write(ends[1], result.data(), result.size());
    _exit(0);
  }
  close(ends[1]);
  std::string result;
  char buffer[1024];
  for (ssize_t got; (got = read(ends[0], buffer, sizeof(buffer))) > 0;) result.append(buffer, static_cast<size_t>(got));
  close(ends[0]);
  const std::string ended = Ended(pid);
  if (ended != "exit 0") return "child:" + ended;
  if (!other_image) return result;
  const size_t arrow = result.find(" -> ");
  return arrow == std::string::npos ? "silent" : result.substr(arrow + 4, result.find('\n') - arrow - 4);
}

std::string InThread(const std::string& text) {
  struct Work {
    std::string text, result;
  } work{text, ""};
  pthread_t thread;
  const int error = pthread_create(&thread, nullptr, [](void* p) -> void* {
    auto* mine = static_cast<Work*>(p);
    mine->result = DoAnywhere(mine->text);
    return nullptr;
  }, &work);
  if (error != 0) return "thread:" + Name(error);
  pthread_join(thread, nullptr);
  return work.result;
}

std::string DoAnywhere(const std::string& text) {
  const size_t colon = text.find(':');
  if (colon == std::string::npos || text.find(',') < colon) return Do(kOperations, text);
  const std::string where = text.substr(0, colon), rest = text.substr(colon + 1);
  if (where == "thread") return InThread(rest);
  if (where == "fork") return InChild(rest, false, false);
  if (where == "setsid") return InChild(rest, true, false);
  if (where == "exec") return InChild(rest, false, true);
  return "(no such place)";
}

}  // namespace

int main(int argc, char** argv) {
  program = argv[0];
  (void)signal(SIGPIPE, SIG_IGN);
  for (int i = 1; i < argc; ++i) {
    // "stdin": the words come one a line.
    if (std::string(argv[i]) == "stdin") {
      Print("stdin", "ready");
      char line[4096];
      while (fgets(line, sizeof(line), stdin) != nullptr) {
        std::string word(line);
        while (!word.empty() && word.back() == '\n') word.pop_back();
        Print(word, DoAnywhere(word));
      }
      continue;
    }
    Print(argv[i], DoAnywhere(argv[i]));
  }
  return 0;
}
