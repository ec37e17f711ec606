// SPDX-License-Identifier: Apache-2.0
// oarlock-inmate: the processes around and inside a launch into which a fault is injected.
//   hold TTY -- PROGRAM...     runs PROGRAM in a session of its own, with a controlling terminal where TTY is "yes" and one to take
//                              where it is "leader", then waits until everything that came of it has ended; what does not is killed
//                              and named on stdout as LEFT
//   start WORDS -- PROGRAM...  becomes PROGRAM in a state that a launch must undo (see Start), so that each of its steps shows
//   look DIRECTORY PORTS...    the module: prints what it has and what it can do, one fact a line, the same in every whole launch
// "state": what is, "deny": what the sandbox refuses, "grant": what the policy grants.
#include <dirent.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

using Words = std::vector<std::string>;

std::string ErrorName(int error) {
  const char* name = strerrorname_np(error);
  return name != nullptr ? name : "errno" + std::to_string(error);
}
std::string Result(long value) { return value < 0 ? ErrorName(errno) : "0"; }

void Must(bool done, const char* what) {
  if (done) return;
  fprintf(stderr, "inmate: %s: %s\n", what, ErrorName(errno).c_str());
  _exit(118);
}

// --- hold ------------------------------------------------------------------------------------------------------------------

// Children of ours, adopted ones included.
std::vector<pid_t> Children() {
  std::vector<pid_t> children;
  DIR* processes = opendir("/proc");
  Must(processes != nullptr, "/proc");
  while (const dirent* entry = readdir(processes)) {
    const pid_t pid = std::atoi(entry->d_name);
    if (pid <= 0) continue;
    FILE* file = fopen(("/proc/" + std::string(entry->d_name) + "/stat").c_str(), "re");
    if (file == nullptr) continue;
    char text[512] = {};
    (void)!fread(text, 1, sizeof(text) - 1, file);
    fclose(file);
    const char* behind = std::strrchr(text, ')');
    char state = 0;
    int parent = 0;
    if (behind != nullptr && sscanf(behind + 1, " %c %d", &state, &parent) == 2 && parent == getpid()) children.push_back(pid);
  }
  closedir(processes);
  return children;
}

int Hold(const std::string& terminal, char** program) {
  Must(prctl(PR_SET_CHILD_SUBREAPER, 1) == 0, "subreaper");
  int master = -1;
  char slave[64] = "";
  if (terminal != "no") {
    master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    Must(master >= 0 && unlockpt(master) == 0 && ptsname_r(master, slave, sizeof(slave)) == 0, "a terminal");
  }
  const pid_t main = fork();
  Must(main >= 0, "fork");
  if (main == 0) {
    Must(setsid() > 0, "setsid");
    // The first terminal that a session leader opens becomes its controlling one.
    if (terminal == "yes") Must(open(slave, O_RDWR | O_CLOEXEC) >= 0, "opening the terminal");
    if (terminal == "leader") Must(setenv("INMATE_TERMINAL", slave, 1) == 0, "setenv");
    execv(program[0], program);
    Must(false, program[0]);
  }
  // The main process has 30 s. What is left then has 8 s, since a private supervisor goes when its session has gone.
  constexpr int kLookMs = 2, kHungMs = 30'000, kLeftMs = 8'000;
  int main_status = -1;
  for (int waited_ms = 0;;) {
    int status = 0;
    const pid_t pid = waitpid(-1, &status, WNOHANG);
    if (pid < 0 && errno == ECHILD) break;
    if (pid == main) {
      main_status = status;
      waited_ms = 0;
    }
    if (pid != 0) continue;
    if (waited_ms >= (main_status == -1 ? kHungMs : kLeftMs)) {
      for (const pid_t left : Children()) {
        char name[64] = {};
        if (FILE* file = fopen(("/proc/" + std::to_string(left) + "/comm").c_str(), "re"); file != nullptr) {
          (void)!fread(name, 1, sizeof(name) - 1, file);
          fclose(file);
        }
        printf("LEFT %s", name);
        kill(left, SIGKILL);
      }
      fflush(stdout);
    }
    usleep(kLookMs * 1000);
    waited_ms += kLookMs;
  }
  return WIFSIGNALED(main_status) ? 128 + WTERMSIG(main_status) : WEXITSTATUS(main_status);
}

// --- start -----------------------------------------------------------------------------------------------------------------

void Place(int fd, int number) { Must(fd >= 0 && (fd == number || (dup2(fd, number) == number && close(fd) == 0)), "dup2"); }

// What a launcher may inherit, so that a step which is left out can be seen from inside:
//   descriptors of directories (5, 77), a datagram socket (78) and a listener (79); 9, which OARBANK_SERVICE_KEPT names
//   blocked signals; SIGUSR2 ignored, which stays; a personality without randomized addresses
//   limits as high as they go; supplementary groups; inheritable and ambient capabilities
// WORDS: "leader" takes the terminal as a session leader, where setsid fails; "uid=N" drops to a user; "byte=PATH" and
// "status=PATH" are files behind the descriptors that OARBANK_CONFINED (10) and OARLOCK_EXEC_STATUS (11) name; "clean" none of all.
int Start(const Words& words, char** program) {
  uid_t uid = 0;
  bool clean = false;
  for (const std::string& word : words) {
    if (word == "clean") clean = true;
    if (word.starts_with("uid=")) uid = static_cast<uid_t>(std::stoul(word.substr(4)));
    if (word.starts_with("byte=")) Place(open(word.c_str() + 5, O_WRONLY | O_CREAT | O_TRUNC, 0644), 10);
    if (word.starts_with("status=")) Place(open(word.c_str() + 7, O_WRONLY | O_CREAT | O_TRUNC, 0644), 11);
    if (word == "leader") {
      Must(setsid() > 0, "setsid");
      Place(open(getenv("INMATE_TERMINAL"), O_RDWR | O_CLOEXEC), 76);
      Must(close(76) == 0 && close(open("/dev/tty", O_RDWR)) == 0, "the terminal");
    }
  }
  if (!clean) {
    Place(open("/", O_RDONLY | O_DIRECTORY), 5);
    Place(open("/", O_RDONLY | O_DIRECTORY), 77);
    Place(socket(AF_UNIX, SOCK_DGRAM, 0), 78);
    const int listener = socket(AF_INET, SOCK_STREAM, 0);
    Must(listen(listener, 1) == 0, "listen");
    Place(listener, 79);
    int ends[2];
    Must(pipe(ends) == 0, "pipe");
    Must(close(ends[0]) == 0, "close");
    Place(ends[1], 9);
    rlimit core{RLIM_INFINITY, RLIM_INFINITY};
    Must(setrlimit(RLIMIT_CORE, &core) == 0, "RLIMIT_CORE");
    Must(personality(ADDR_NO_RANDOMIZE) != -1, "personality");
    const gid_t groups[] = {7, 8};
    Must(setgroups(2, groups) == 0, "setgroups");
    if (uid == 0) {
      __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
      __user_cap_data_struct data[2]{};
      Must(syscall(SYS_capget, &header, data) == 0, "capget");
      for (auto& half : data) half.inheritable = half.permitted;
      Must(syscall(SYS_capset, &header, data) == 0, "capset");
      for (const int capability : {CAP_NET_RAW, CAP_SYS_PTRACE, CAP_DAC_OVERRIDE})
        Must(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, capability, 0, 0) == 0, "PR_CAP_AMBIENT");
    }
    Must(signal(SIGUSR2, SIG_IGN) != SIG_ERR, "signal");
    sigset_t blocked;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGTERM);
    sigaddset(&blocked, SIGALRM);
    Must(sigprocmask(SIG_BLOCK, &blocked, nullptr) == 0, "sigprocmask");
  }
  if (uid != 0) Must(setresgid(uid, uid, uid) == 0 && setresuid(uid, uid, uid) == 0, "setresuid");
  execv(program[0], program);
  Must(false, program[0]);
  return 0;
}

// --- look ------------------------------------------------------------------------------------------------------------------

void Tell(const char* kind, const std::string& what, const std::string& result) { printf("%s %s -> %s\n", kind, what.c_str(), result.c_str()); }

void TellStatus() {
  constexpr const char* kLines[] = {"Uid", "Gid", "Groups", "Threads", "SigPnd", "ShdPnd", "SigBlk", "SigIgn", "SigCgt", "CapInh", "CapPrm",
                                    "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp", "Seccomp_filters", "Umask"};
  FILE* file = fopen("/proc/self/status", "re");
  Must(file != nullptr, "/proc/self/status");
  char text[1024];
  while (fgets(text, sizeof(text), file) != nullptr) {
    std::string line(text);
    const size_t colon = line.find(':');
    if (std::ranges::find(kLines, line.substr(0, colon)) == std::end(kLines)) continue;
    std::string value;
    for (const char c : line.substr(colon + 1))
      if (c == '\t' || c == ' ') value += value.empty() || value.back() == ' ' ? "" : " ";
      else if (c != '\n') value += c;
    while (value.ends_with(' ')) value.pop_back();
    Tell("state", line.substr(0, colon), value);
  }
  fclose(file);
}

void TellLimits() {
  for (int resource = 0; resource < RLIM_NLIMITS; ++resource) {
    rlimit limit{};
    const int result = getrlimit(resource, &limit);
    Tell("state", "limit " + std::to_string(resource), result != 0 ? ErrorName(errno) : std::to_string(limit.rlim_cur) + " " + std::to_string(limit.rlim_max));
  }
}

void TellDescriptors() {
  std::vector<int> open;
  DIR* directory = opendir("/proc/self/fd");
  Must(directory != nullptr, "/proc/self/fd");
  while (const dirent* entry = readdir(directory))
    if (entry->d_name[0] != '.' && std::atoi(entry->d_name) != dirfd(directory)) open.push_back(std::atoi(entry->d_name));
  closedir(directory);
  std::ranges::sort(open);
  for (const int fd : open) {
    char target[512] = {};
    (void)!readlink(("/proc/self/fd/" + std::to_string(fd)).c_str(), target, sizeof(target) - 1);
    std::string text(target);
    text.resize(std::min(text.find('['), text.size()));
    Tell("state", "fd " + std::to_string(fd), text + " " + std::to_string(fcntl(fd, F_GETFL) & ~0100000) + " " + std::to_string(fcntl(fd, F_GETFD)));
  }
}

void TellProcess(char** environment) {
  char text[64] = {};
  const int fd = open("/proc/self/personality", O_RDONLY | O_CLOEXEC);
  (void)!read(fd, text, sizeof(text) - 1);
  close(fd);
  text[std::strcspn(text, "\n")] = '\0';
  Tell("state", "personality", text);
  Tell("state", "securebits", std::to_string(prctl(PR_GET_SECUREBITS)));
  Tell("state", "dumpable", std::to_string(prctl(PR_GET_DUMPABLE)));
  Tell("state", "session", getsid(0) == getpid() ? "own" : "another's");
  Tell("state", "group", getpgrp() == getpid() ? "own" : "another's");
  Tell("state", "children", waitpid(-1, nullptr, WNOHANG) < 0 ? ErrorName(errno) : "some");
  itimerval timer{};
  Tell("state", "timer", getitimer(ITIMER_REAL, &timer) == 0 && timer.it_value.tv_sec == 0 && timer.it_value.tv_usec == 0 ? "none" : "runs");
  // The terminal's number, the seventh field.
  char stat[512] = {};
  const int stat_fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
  (void)!read(stat_fd, stat, sizeof(stat) - 1);
  close(stat_fd);
  int tty = -1;
  const char* behind = std::strrchr(stat, ')');
  if (behind != nullptr) (void)!sscanf(behind + 1, " %*c %*d %*d %*d %d", &tty);
  Tell("state", "terminal", std::to_string(tty));
  char path[4096];
  Tell("state", "directory", getcwd(path, sizeof(path)) != nullptr ? path : ErrorName(errno));
  std::vector<std::string> entries;
  for (char** entry = environment; *entry != nullptr; ++entry) entries.emplace_back(*entry);
  std::ranges::sort(entries);
  for (const std::string& entry : entries) Tell("state", "environment", entry);
}

std::string Open(const std::string& path, int flags) {
  const int fd = open(path.c_str(), flags | O_CLOEXEC, 0600);
  const std::string result = Result(fd);
  if (fd >= 0) close(fd);
  return result;
}

std::string Connect(int domain, int type, const void* address, socklen_t size, bool greeting) {
  const int fd = socket(domain, type | SOCK_CLOEXEC, 0);
  if (fd < 0) return "socket:" + ErrorName(errno);
  std::string result = Result(connect(fd, static_cast<const sockaddr*>(address), size));
  pollfd ready{fd, POLLIN, 0};
  char byte = 0;
  if (greeting && result == "0" && (poll(&ready, 1, 5000) != 1 || recv(fd, &byte, 1, 0) != 1)) result = "0 (silent)";
  close(fd);
  return result;
}
std::string Tcp(const char* port, bool greeting = false) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(std::atoi(port)));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return Connect(AF_INET, SOCK_STREAM, &address, sizeof(address), greeting);
}
std::string Unix(const std::string& name, bool greeting = false) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, name.data(), std::min(name.size(), sizeof(address.sun_path)));
  if (name[0] == '@') address.sun_path[0] = '\0';
  return Connect(AF_UNIX, SOCK_STREAM, &address, static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size() + (name[0] == '@' ? 0 : 1)), greeting);
}

std::string Execute(const std::string& path) {
  const pid_t pid = fork();
  if (pid < 0) return "fork:" + ErrorName(errno);
  if (pid == 0) {
    execl(path.c_str(), path.c_str(), "nothing", nullptr);
    _exit(errno);
  }
  int status = 0;
  (void)waitpid(pid, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) != 0 ? ErrorName(WEXITSTATUS(status)) : std::to_string(status);
}

// Bound sockets and the like are for the twin to close.
void TellCalls() {
  const int stream = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in any{};
  any.sin_family = AF_INET;
  Tell("deny", "bind", Result(bind(stream, reinterpret_cast<sockaddr*>(&any), sizeof(any))));
  Tell("deny", "listen", Result(listen(stream, 1)));
  close(stream);
  Tell("deny", "datagram socket", Result(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)));
  Tell("deny", "raw socket", Result(socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_ICMP)));
  Tell("deny", "packet socket", Result(socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0)));
  int pair[2];
  Tell("deny", "datagram pair", Result(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, pair)));
  Tell("deny", "io_uring_setup", Result(syscall(SYS_io_uring_setup, 1, std::vector<char>(120).data())));
  Tell("deny", "unshare", Result(unshare(CLONE_FS | CLONE_NEWUSER)));
  Tell("deny", "signal to 1", Result(kill(1, 0)));
  Tell("deny", "signal to the parent", Result(kill(getppid(), 0)));
  char byte = 0;
  const iovec here{&byte, 1}, there{reinterpret_cast<void*>(&Must), 1};
  Tell("deny", "memory of the parent", Result(process_vm_readv(getppid(), &here, 1, &there, 1, 0)));
  Tell("deny", "ptrace", Result(ptrace(PTRACE_SEIZE, getppid(), nullptr, nullptr)));
  Tell("deny", "keyctl", Result(syscall(SYS_keyctl, 0, -3, 0)));
  Tell("deny", "chroot", Result(chroot(".")));
  Tell("deny", "sethostname", Result(syscall(SYS_sethostname, "x", -1)));
}

void TellFiles(const std::string& t) {
  Tell("deny", "read /", Open("/", O_RDONLY | O_DIRECTORY));
  Tell("deny", "read secret", Open(t + "/secret", O_RDONLY));
  Tell("deny", "write secret", Open(t + "/secret", O_WRONLY));
  Tell("deny", "truncate secret", Result(truncate((t + "/secret").c_str(), 6)));
  Tell("deny", "create outside", Open(t + "/outside", O_WRONLY | O_CREAT));
  Tell("deny", "write in ro", Open(t + "/ro/file", O_WRONLY));
  Tell("deny", "create in rd", Open(t + "/rd/new", O_WRONLY | O_CREAT));
  Tell("deny", "execute in rd", Execute(t + "/rd/true"));
  Tell("deny", "execute in rw", Execute(t + "/rw/true"));
  Tell("deny", "list wo", Open(t + "/wo", O_RDONLY | O_DIRECTORY));
  Tell("deny", "terminal", Open("/dev/tty", O_RDWR | O_NOCTTY));
  Tell("deny", "write /proc", Open("/proc/self/oom_score_adj", O_WRONLY));
  Tell("deny", "memory device", Open("/dev/mem", O_RDONLY));
  Tell("grant", "read ro", Open(t + "/ro/file", O_RDONLY));
  Tell("grant", "execute ro", Execute(t + "/ro/true"));
  Tell("grant", "read rd", Open(t + "/rd/file", O_RDONLY));
  Tell("grant", "list rd", Open(t + "/rd", O_RDONLY | O_DIRECTORY));
  Tell("grant", "create in rw", Open(t + "/rw/new", O_RDWR | O_CREAT | O_TRUNC));
  Tell("grant", "create in wo", Open(t + "/wo/new", O_WRONLY | O_CREAT));
  for (const char* path : {"/usr", "/etc", "/opt", "/proc", "/bin/", "/lib/", "/sbin/", "/sys/devices/system/cpu"})
    Tell("grant", std::string("list ") + path, Open(path, O_RDONLY | O_DIRECTORY));
  Tell("grant", "list /lib64/", Open("/lib64/", O_RDONLY | O_DIRECTORY));
  for (const char* path : {"/dev/null", "/dev/zero", "/dev/random", "/dev/urandom", "/dev/full"})
    Tell("grant", std::string("open ") + path, Open(path, O_RDWR));
}

// Says first, by the file that it leaves, that it ran.
int Look(const Words& words, char** environment) {
  const std::string& t = words.at(0);
  const int marker = open((t + "/rw/ran").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  printf("RAN\n");
  if (marker >= 0) close(marker);
  TellStatus();
  TellLimits();
  TellDescriptors();
  TellProcess(environment);
  TellFiles(t);
  Tell("deny", "connect to another port", Tcp(words.at(2).c_str()));
  Tell("deny", "connect to another socket", Unix(t + "/other.sock"));
  Tell("deny", "connect to an abstract name", Unix(words.at(3)));
  Tell("grant", "connect to the proxy", Tcp(words.at(1).c_str(), true));
  Tell("grant", "connect to the broker", Unix(t + "/broker/socket", true));
  TellCalls();
  fflush(stdout);
  return 0;
}

}  // namespace

int main(int argc, char** argv, char** environment) {
  Words words;
  int at = 2;
  for (; at < argc && std::strcmp(argv[at], "--") != 0; ++at) words.emplace_back(argv[at]);
  const std::string verb = argc > 1 ? argv[1] : "";
  if (verb == "look" && words.size() == 4) return Look(words, environment);
  if (verb == "nothing") return 0;
  if (at + 1 >= argc) return 117;
  if (verb == "hold" && words.size() == 1) return Hold(words[0], argv + at + 1);
  if (verb == "start") return Start(words, argv + at + 1);
  return 117;
}
