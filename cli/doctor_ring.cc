// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <vector>

#include "cli/doctor.h"
#include "notif/base/result.h"
#include "notif/base/unique_fd.h"
#include "notif/ring.h"

namespace oarlock::cli::doctor {
namespace {

using policy::Code;

constexpr uint64_t kTurnNs = 200'000'000;
constexpr int kTurns = 10;
constexpr unsigned kWorkers = 64;

// The completion of `token`, or ETIMEDOUT.
int32_t ResultOf(Ring& ring, uint64_t token) {
  Completion completions[8];
  for (int turn = 0; turn < kTurns; ++turn) {
    for (size_t taken = ring.Take(completions); taken > 0; taken = ring.Take(completions))
      for (size_t i = 0; i < taken; ++i)
        if (completions[i].token == token) return completions[i].result;
    ring.SubmitAndWait(kTurnNs);
  }
  return -ETIMEDOUT;
}

// Each operation of a shard once, in the way it uses it. Empty, or the first that does not work.
std::string TryOperations() {
  auto ring = Ring::Make({.entries = 8, .completions = 16}), other = Ring::Make({.entries = 8, .completions = 16});
  int full[2], empty[2];
  if (!ring || !other || ::pipe2(full, O_CLOEXEC) != 0 || ::pipe2(empty, O_CLOEXEC) != 0) return "two rings and two pipes cannot be made";
  const auto gave = [](const char* operation, int32_t result) {
    return std::string(operation) + " gave " + (result < 0 ? ErrnoName(-result) : std::to_string(result));
  };
  if (::write(full[1], "x", 1) != 1) return "a pipe cannot be written";
  ring->Poll(full[0], POLLIN, 1);
  if (const int32_t result = ResultOf(*ring, 1); result < 0 || (result & POLLIN) == 0) return gave("POLL_ADD", result);

  // An abstract name of the kernel's choice, so that no file and no network is needed.
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  socklen_t size = sizeof(address);
  const UniqueFd listening(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)), socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (::bind(listening.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(sa_family_t)) != 0 || ::listen(listening.get(), 1) != 0 ||
      ::getsockname(listening.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0)
    return "a unix socket cannot be made";
  ring->Connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), size, 0, 2);
  if (const int32_t result = ResultOf(*ring, 2); result != 0) return gave("CONNECT", result);

  ring->Poll(empty[0], POLLIN, 3);
  ring->SubmitAndCollect();
  ring->Cancel(3, 4);
  if (const int32_t result = ResultOf(*ring, 3); result != -ECANCELED) return gave("ASYNC_CANCEL", result);

  ring->Post(other->fd(), 5, 7);
  ring->SubmitAndCollect();
  if (const int32_t result = ResultOf(*other, 5); result != 7) return gave("MSG_RING", result);
  return "ok";
}

std::string TryPersonality(uint32_t uid, uint32_t gid) {
  auto ring = Ring::Make({.entries = 8, .completions = 16});
  if (!ring) return ring.error().Message();
  std::vector<uint32_t> groups;
  if (uid == ::geteuid()) {
    groups.resize(static_cast<size_t>(std::max(::getgroups(0, nullptr), 0)));
    if (!groups.empty() && ::getgroups(static_cast<int>(groups.size()), groups.data()) < 0) groups.clear();
  }
  const auto id = ring->RegisterPersonality({uid, gid, groups});
  return id ? "ok" : id.error().Message();
}

std::string TryWorkers() {
  auto ring = Ring::Make({.entries = 8, .completions = 16});
  if (!ring) return ring.error().Message();
  const auto set = ring->SetMaxBlockedWorkers(kWorkers);
  return set ? "ok" : set.error().Message();
}

std::string Sysctl(const char* name) {
  std::ifstream file(std::string("/proc/sys/kernel/") + name);
  std::string value;
  file >> value;
  return value;
}

Check Creation(int error, const std::string& problem) {
  if (error == 0) return SupervisorsNeed("io_uring", problem, FilterRemedy("io_uring_setup"));
  std::string found = std::string("io_uring_setup gave ") + ErrnoName(error), remedy;
  const std::string off = Sysctl("io_uring_disabled");
  if (error == EPERM && off == "2") {
    found += ": switched off, kernel.io_uring_disabled is 2";
    remedy = "set the sysctl kernel.io_uring_disabled to 0, or to 1 with a group in kernel.io_uring_group";
  } else if (error == EPERM && off == "1" && ::geteuid() != 0) {
    found += ": kernel.io_uring_disabled is 1, for members of kernel.io_uring_group (" + Sysctl("io_uring_group") + ") alone";
    remedy = "add this user to that group, or set the sysctl kernel.io_uring_disabled to 0";
  } else if (error == ENOMEM) {
    remedy = "raise RLIMIT_MEMLOCK or the memory limit of the cgroup";
  } else if (error == EMFILE || error == ENFILE) {
    remedy = "raise RLIMIT_NOFILE";
  } else if (error == ENOSYS && !IsFiltered()) {
    remedy = "use a kernel of 6.1 or later with CONFIG_IO_URING";
  } else {
    remedy = FilterRemedy("io_uring_setup, io_uring_enter and io_uring_register");
  }
  return SupervisorsNeed("io_uring", std::move(found), std::move(remedy));
}

}  // namespace

void CheckRing(Checks& checks) {
  const Trial made = InChild([] {
    const auto ring = Ring::Make({});
    return ring ? std::string("0") : std::to_string(ring.error().code);
  });
  if (made.text != "0") {
    checks.push_back(Creation(made.text.empty() ? 0 : std::stoi(made.text), made.problem));
    for (const char* id : {"io_uring.operations", "io_uring.personality", "io_uring.workers"}) checks.push_back(Skipped(id, "io_uring"));
    return;
  }
  checks.push_back(Ok("io_uring", "a ring of a supervisor's size is made"));
  const auto need = [&](const char* id, const Trial& trial, const char* works, std::string remedy) {
    if (trial.text == "ok") checks.push_back(Ok(id, works));
    else checks.push_back(SupervisorsNeed(id, trial.problem.empty() ? trial.text : trial.problem, std::move(remedy)));
  };
  need("io_uring.operations", InChild(TryOperations), "POLL_ADD, CONNECT, ASYNC_CANCEL and MSG_RING work",
       IsFiltered() ? FilterRemedy("io_uring_enter") : "use Linux 6.1 or later; a security module may forbid single operations");
  need("io_uring.personality", InChild([] { return TryPersonality(::geteuid(), ::getegid()); }), "a ring acts with a module's credentials",
       FilterRemedy("io_uring_register"));
  need("io_uring.workers", InChild(TryWorkers), "the number of kernel workers can be set",
       IsFiltered() ? FilterRemedy("io_uring_register") : "use Linux 5.15 or later");
}

}  // namespace oarlock::cli::doctor
