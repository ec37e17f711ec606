// SPDX-License-Identifier: Apache-2.0
#include <poll.h>
#include <signal.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <initializer_list>

#include "child/identity.h"
#include "cli/doctor.h"
#include "notif/abi/process.h"
#include "notif/abi/seccomp.h"
#include "notif/base/pass_fd.h"
#include "notif/base/result.h"
#include "notif/base/unique_fd.h"
#include "notif/filter/programs.h"
#include "notif/json.h"
#include "notif/kernel.h"

namespace oarlock::cli::doctor {
namespace {

using policy::Code;

constexpr int kPatienceMs = 1500;      // for each thing that the other side does
constexpr int kSignalMs = 50;          // for a signal to have its effect
constexpr int kNotReached = -1;
constexpr uint32_t kNobody = 65534, kAnother = 65533;

using Address = std::array<uint8_t, 16>;  // what the module connects to: random, so that reading it is proof

// The module's first word, with its listener; its last is the errno of its call.
struct Hello {
  int32_t refused = 0;    // by a step before the filter: 1 + its Code
  int32_t installed = 0;  // 0, or the filter's errno
  char text[200] = {};
};

void OnSignal(int) {}

void SendHello(int socket, Hello hello, int listener) {
  (void)SendWithFds(socket, &hello, sizeof(hello), {&listener, listener >= 0 ? 1U : 0U});
}

// The steps of a launch that concern the supervisor, then one call that it is to answer.
[[noreturn]] void PlayModule(int socket, const std::optional<policy::Identity>& identity, const Address& address) {
  Hello hello;
  const auto refuse = [&](const policy::Problem& problem) {
    hello.refused = 1 + static_cast<int32_t>(problem.code);
    (void)problem.text.copy(hello.text, sizeof(hello.text) - 1);
    SendHello(socket, hello, -1);
    ::_exit(0);
  };
  if (auto taken = child::TakeIdentity(identity); !taken) refuse(taken.error());
  if (auto set = child::SetNoNewPrivs(); !set) refuse(set.error());
  struct sigaction action {};
  action.sa_handler = OnSignal;
  (void)::sigaction(SIGUSR1, &action, nullptr);
  const UniqueFd target(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  auto listener = InstallFilter(FilterProgram(Shape{}));
  if (!listener) hello.installed = listener.error().code;
  SendHello(socket, hello, listener ? listener->get() : -1);
  if (!listener) ::_exit(0);
  // With a copy of ours left, nobody's going would be seen.
  listener->Reset();
  const long result = ::syscall(SYS_connect, target.get(), address.data(), address.size());
  const int32_t answer = result == 0 ? 0 : errno;
  (void)!::write(socket, &answer, sizeof(answer));
  ::_exit(0);
}

bool Readable(int fd) {
  pollfd ready{fd, POLLIN, 0};
  int polled = 0;
  do polled = ::poll(&ready, 1, kPatienceMs);
  while (polled < 0 && errno == EINTR);
  return polled == 1 && (ready.revents & POLLIN) != 0;
}

bool IsListener(int fd) {
  char target[64] = {};
  return ::readlink(("/proc/self/fd/" + std::to_string(fd)).c_str(), target, sizeof(target) - 1) > 0 &&
         std::string_view(target) == "anon_inode:seccomp notify";
}

// The supervisor's part, from the listener to the answer. What was reached, and how it went: 0 or an errno.
Json PlaySupervisor(int socket, pid_t module, const Address& address) {
  Json saw = Json::object();
  Hello hello;
  iovec part{&hello, sizeof(hello)};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  if (!Readable(socket) || ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC) != sizeof(hello)) return saw;
  saw["refused"] = hello.refused;
  saw["text"] = hello.text;
  if (hello.refused != 0) return saw;
  saw["install"] = hello.installed;
  if (hello.installed != 0) return saw;
  const cmsghdr* rights = CMSG_FIRSTHDR(&message);
  int received = -1;
  if (rights != nullptr && rights->cmsg_type == SCM_RIGHTS) std::memcpy(&received, CMSG_DATA(rights), sizeof(received));
  const UniqueFd listener(received);
  saw["listener"] = listener.valid() && IsListener(listener.get()) ? 0 : EBADF;
  if (saw["listener"] != 0) return saw;
  saw["sync"] = -kernel::EnableSyncWakeUp(listener.get());

  abi::SeccompNotif notification{};
  saw["receive"] = !Readable(listener.get()) ? ETIMEDOUT : -kernel::Receive(listener.get(), &notification);
  if (saw["receive"] != 0) return saw;
  Address read{};
  const int error = kernel::ReadCaller(static_cast<pid_t>(notification.pid), notification.data.args[1], read.data(), read.size());
  saw["read"] = error != 0 ? -error : read != address ? EBADMSG : 0;
  const UniqueFd thread(static_cast<int>(::syscall(abi::kSysPidfdOpen, notification.pid, abi::kPidfdThread)));
  saw["thread"] = thread.valid() ? 0 : errno;
  const int task = kernel::OpenTask(static_cast<pid_t>(notification.pid));
  const UniqueFd pidfd(task);
  saw["task"] = task < 0 ? -task : 0;
  if (task >= 0) {
    const int pinned = kernel::PinDescriptor(task, static_cast<int>(notification.data.args[0]));
    const UniqueFd copy(pinned);
    saw["pin"] = pinned < 0 ? -pinned : 0;
  }
  // A signal must wait for the answer, or a call that was performed would be reported as interrupted.
  (void)::kill(module, SIGUSR1);
  (void)::poll(nullptr, 0, kSignalMs);
  saw["wait"] = -kernel::IdValid(listener.get(), notification.id);
  saw["reply"] = -kernel::Reply(listener.get(), notification.id, 0, -ENOANO);
  int32_t answer = 0;
  saw["answer"] = Readable(socket) && ::read(socket, &answer, sizeof(answer)) == sizeof(answer) ? answer : ETIMEDOUT;
  return saw;
}

// One module and its supervisor: its parent, as with `oarlock run`, or no relation of it, as with `sandbox-exec` and its private
// supervisor.
std::string PlayScene(bool parent, const std::optional<policy::Identity>& identity) {
  int pair[2], pipe[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0 || ::pipe2(pipe, O_CLOEXEC) != 0) return DumpJson(Json::object());
  UniqueFd ours(pair[0]), theirs(pair[1]), read(pipe[0]), write(pipe[1]);
  Address address{};
  (void)::getrandom(address.data(), address.size(), 0);
  const pid_t module = ::fork();
  if (module < 0) return DumpJson(Json::object());
  if (module == 0) PlayModule(theirs.get(), identity, address);
  theirs.Reset();
  std::string saw = DumpJson(Json::object());
  if (parent) {
    saw = DumpJson(PlaySupervisor(ours.get(), module, address));
  } else {
    const pid_t middle = ::fork();
    if (middle == 0) {
      if (::fork() != 0) ::_exit(0);
      (void)::alarm(8);
      const std::string text = DumpJson(PlaySupervisor(ours.get(), module, address));
      ::_exit(::write(write.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()) ? 0 : 1);
    }
    write.Reset();
    ours.Reset();
    if (middle > 0) (void)::waitpid(middle, nullptr, 0);
    char buffer[2048];
    // Its end, or the alarm's.
    if (const ssize_t got = ::read(read.get(), buffer, sizeof(buffer)); got > 0) saw.assign(buffer, static_cast<size_t>(got));
  }
  (void)::kill(module, SIGKILL);
  (void)::waitpid(module, nullptr, 0);
  return saw;
}

// What a scene showed, by stage.
class Scene {
 public:
  static Scene Play(bool parent, const std::optional<policy::Identity>& identity) {
    Scene scene;
    const Trial trial = InChild([&] { return PlayScene(parent, identity); });
    std::string problem;
    scene.saw_ = ParseStrictJson(trial.text, &problem);
    if (!problem.empty() || !scene.saw_.is_object()) scene.saw_ = Json::object();
    scene.problem_ = trial.problem;
    return scene;
  }
  // 0 or an errno; -1: not reached.
  [[nodiscard]] int At(const char* stage) const { return saw_.value(stage, kNotReached); }
  [[nodiscard]] bool Good(const char* stage) const { return At(stage) == 0; }
  [[nodiscard]] std::string Text() const { return saw_.value("text", ""); }
  [[nodiscard]] const std::string& problem() const noexcept { return problem_; }
  [[nodiscard]] bool MaySee() const { return Good("read") && Good("task") && Good("pin"); }

 private:
  Json saw_;
  std::string problem_;
};

std::string Gave(const char* call, int error) {
  return error == kNotReached ? std::string(call) + " was not reached" : std::string(call) + " gave " + ErrnoName(error);
}

Check Listener(const Scene& scene) {
  constexpr const char* kId = "seccomp.listener";
  if (scene.Good("listener")) return Ok(kId, "a filter with a listener is installed and handed over");
  Check check = Unavailable(kId, "", "", kEveryLaunch, Code::kSeccomp);
  const int error = scene.At("install");
  check.found = error == 0 ? "seccomp says that it made a listener, and there is none" : Gave("seccomp(NEW_LISTENER)", error);
  if (error == EBUSY) {
    check.found += ": another listener is around this process, and the kernel has one per chain of filters";
    check.remedy = "start Oarlock outside of that sandbox, container or WSL distribution, or without its notifying profile";
  } else if (error == EINVAL) {
    check.found += ": WAIT_KILLABLE_RECV is not known";
    check.remedy = Since("5.19");
  } else if (error == ENOSYS && !IsFiltered()) {
    check.remedy = "use a kernel with CONFIG_SECCOMP_FILTER";
  } else {
    check.remedy = FilterRemedy("seccomp(SECCOMP_SET_MODE_FILTER)");
  }
  return check;
}

// Steps of the launcher that stand before the filter.
Check Privileges(const Scene& scene) {
  const int refused = scene.At("refused");
  if (refused == kNotReached)
    return Skipped("privileges", "a process that plays the module" + (scene.problem().empty() ? "" : ": " + scene.problem()));
  if (refused == 0) return Ok("privileges", "capabilities and privileges are given up for good, and read back");
  return Unavailable("privileges", scene.Text(), FilterRemedy("prctl, capset, setgroups, setresuid and setresgid"), kEveryLaunch,
                     static_cast<Code>(refused - 1));
}

Check Receive(const Scene& scene) {
  constexpr const char* kId = "seccomp.answer";
  if (scene.Good("receive") && scene.Good("reply") && scene.At("answer") == ENOANO) return Ok(kId, "a call is received and answered");
  const char* stage = !scene.Good("receive") ? "receive" : !scene.Good("reply") ? "reply" : "answer";
  return SupervisorsNeed(kId, "a notified call is not answered: " + Gave(stage, scene.At(stage)),
                         "a security profile may block the listener's ioctls: allow them (AppArmor, SELinux, seccomp)");
}

Check WaitKillable(const Scene& scene) {
  constexpr const char* kId = "seccomp.wait_killable";
  if (scene.Good("wait") && scene.At("answer") == ENOANO) return Ok(kId, "a signal waits until the call is answered");
  return Unavailable(kId, "a signal takes a received call away from the supervisor: " + Gave("NOTIF_ID_VALID", scene.At("wait")),
                     Since("5.19"), kEveryLaunch, Code::kSeccomp);
}

Check SyncWakeUp(const Scene& scene) {
  constexpr const char* kId = "seccomp.sync_wake_up";
  if (scene.Good("sync")) return Ok(kId, "the answered thread runs next on the same processor");
  return Limited(kId, Gave("NOTIF_SET_FLAGS", scene.At("sync")), Since("6.6"), "half of the speed of an answer");
}

Check ThreadPidfd(const Scene& scene) {
  constexpr const char* kId = "pidfd.thread";
  if (scene.Good("thread")) return Ok(kId, "a single thread's descriptors can be looked at");
  return Limited(kId, Gave("pidfd_open(PIDFD_THREAD)", scene.At("thread")), Since("6.9"),
                 "modules whose threads have descriptor tables of their own: their calls for that are refused");
}

std::string YamaText() {
  std::ifstream file("/proc/sys/kernel/yama/ptrace_scope");
  std::string value;
  return file >> value ? "kernel.yama.ptrace_scope is " + value : "there is no Yama";
}

// Whether the module is a stranger's: the private supervisor of sandbox-exec is no ancestor of it.
Check Stranger(const Scene& parent, const Scene& stranger, const Node& node) {
  constexpr const char* kId = "ptrace.unrelated";
  if (!parent.MaySee()) return Skipped(kId, "what is named above");
  if (stranger.MaySee()) return Ok(kId, "a supervisor that is no ancestor may see the module's calls; " + YamaText());
  const char* stage = !stranger.Good("read") ? "read" : !stranger.Good("task") ? "task" : "pin";
  const char* call = !stranger.Good("read") ? "process_vm_readv" : !stranger.Good("task") ? "pidfd_open" : "pidfd_getfd";
  Check check = SupervisorsNeed(kId, "only a parent may see a module's calls: " + Gave(call, stranger.At(stage)) + "; " + YamaText(),
                                "use 'oarlock run', or a node supervisor (oarlockd as root, OARLOCK_SUPERVISOR), or set "
                                "kernel.yama.ptrace_scope to 0");
  check.stops = "'sandbox-exec' without a node supervisor";
  if (node.named) check.verdict = Verdict::kLimited;
  return check;
}

// Modules with a uid of their own, which only a privileged supervisor and launcher can have.
Check OtherIdentity(const Scene& parent) {
  constexpr const char* kId = "run_as";
  if (!parent.MaySee()) return Skipped(kId, "what is named above");
  const uint32_t id = ::geteuid() == kNobody || ::getegid() == kNobody ? kAnother : kNobody;
  const Scene other = Scene::Play(false, policy::Identity{id, id});
  if (other.MaySee()) return Ok(kId, "a module can be given a uid and gid of its own");
  Check check = Limited(kId, other.Text(), "", "policies with run_as");
  const bool refused = other.At("refused") > 0;
  if (!refused) check.found = "the supervisor may not see the calls of another uid: " + Gave("process_vm_readv", other.At("read"));
  check.code = refused ? static_cast<Code>(other.At("refused") - 1) : Code::kNotify;
  check.remedy = refused ? "start the launcher as root with CAP_SETUID, CAP_SETGID and CAP_SETPCAP" : "give the supervisor CAP_SYS_PTRACE";
  return check;
}

}  // namespace

void CheckCalls(Checks& checks, const Node& node) {
  const Scene scene = Scene::Play(true, std::nullopt);
  checks.push_back(Privileges(scene));
  const auto skip = [&](std::initializer_list<const char*> ids, const char* needed) {
    for (const char* id : ids) checks.push_back(Skipped(id, needed));
    for (const char* id : {"seccomp.wait_killable", "process_vm_readv", "pidfd_open", "pidfd_getfd", "pidfd.thread", "ptrace.unrelated",
                           "run_as"})
      checks.push_back(Skipped(id, needed));
  };
  if (scene.At("refused") > 0) return skip({"seccomp.listener", "seccomp.answer", "seccomp.sync_wake_up"}, "privileges");
  checks.push_back(Listener(scene));
  if (!scene.Good("listener")) return skip({"seccomp.answer", "seccomp.sync_wake_up"}, "seccomp.listener");
  checks.push_back(SyncWakeUp(scene));
  checks.push_back(Receive(scene));
  if (!scene.Good("receive")) return skip({}, "seccomp.answer");
  // Without an answer this would show nothing.
  checks.push_back(scene.Good("reply") ? WaitKillable(scene) : Skipped("seccomp.wait_killable", "seccomp.answer"));
  const auto need = [&](const char* id, const char* stage, const char* what) {
    const char* yama = IsFiltered() ? "" : "; Yama's kernel.yama.ptrace_scope must be below 2";
    if (scene.Good(stage)) checks.push_back(Ok(id, what));
    else checks.push_back(SupervisorsNeed(id, Gave(id, scene.At(stage)), FilterRemedy(id) + yama));
  };
  need("process_vm_readv", "read", "a parent reads the module's memory");
  need("pidfd_open", "task", "a process can be named for good");
  if (scene.Good("task")) need("pidfd_getfd", "pin", "a parent duplicates the module's descriptors");
  else checks.push_back(Skipped("pidfd_getfd", "pidfd_open"));
  if (scene.Good("task")) checks.push_back(ThreadPidfd(scene));
  else checks.push_back(Skipped("pidfd.thread", "pidfd_open"));
  checks.push_back(Stranger(scene, scene.MaySee() ? Scene::Play(false, std::nullopt) : scene, node));
  checks.push_back(OtherIdentity(scene));
}

}  // namespace oarlock::cli::doctor
