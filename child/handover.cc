// SPDX-License-Identifier: Apache-2.0
#include "child/handover.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "notif/base/pass_fd.h"
#include "notif/base/places.h"
#include "notif/base/text.h"
#include "notif/calls.h"

namespace oarlock::child {
namespace {

// The descriptor that the private supervisor finds its connection at.
constexpr int kPrivateConnection = 3;

// What a process on its way to be the private supervisor leaves in a pipe where it cannot go on.
struct StartFailure {
  enum Step : int { kFork, kNull, kConnection, kDescriptors, kDirectory, kExec };
  Step step;
  int error;
};

std::string Describe(const std::string& program, const StartFailure& failure) {
  constexpr const char* kSteps[] = {"fork: ", "/dev/null: ", "its connection: ", "close_range: ", "chdir: ", ""};
  const auto step = std::min<size_t>(static_cast<size_t>(failure.step), std::size(kSteps) - 1);
  return "cannot start " + Printable(program, 200) + ": " + kSteps[step] + ErrnoName(failure.error);
}

std::unexpected<Problem> NoSupervisor(const std::string& text) {
  return Stop(Code::kNotify, "/supervisor", text);
}

int64_t NowMs() {
  timespec now{};
  (void)::clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
}

}  // namespace

Checked<Handover> Handover::Connect(const std::string& supervisor) {
  if (supervisor.starts_with("fd:")) {
    uint64_t number = 0;
    if (!ParseNumber(std::string_view(supervisor).substr(3), 3, INT32_MAX, &number)) return NoSupervisor("'" + Printable(supervisor, 40) + "' is no descriptor");
    UniqueFd socket(static_cast<int>(number));
    int type = 0;
    socklen_t size = sizeof(type);
    if (::getsockopt(socket.get(), SOL_SOCKET, SO_TYPE, &type, &size) != 0 || type != SOCK_STREAM)
      return NoSupervisor("descriptor " + std::to_string(number) + " is no stream socket");
    if (::fcntl(socket.get(), F_SETFD, FD_CLOEXEC) != 0) return NoSupervisor(std::string("FD_CLOEXEC: ") + ErrnoName(errno));
    return Handover(std::move(socket));
  }
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (supervisor.size() >= sizeof(address.sun_path)) return NoSupervisor("'" + Printable(supervisor, 40) + "' is too long for a socket's path");
  std::memcpy(address.sun_path, supervisor.data(), supervisor.size());
  UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket.valid()) return NoSupervisor(std::string("socket: ") + ErrnoName(errno));
  // A full backlog must not hold us for ever: the kernel's own limit for a blocking unix connect.
  const timeval limit{wire::kAnswerTimeoutMs / 1000, 0};
  if (::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)) != 0) return NoSupervisor(std::string("SO_SNDTIMEO: ") + ErrnoName(errno));
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    const int error = errno;
    const char* remedy = error == EACCES ? " (who may use it is the operator's choice: oarlockd --admit-uid)"
                         : error == ENOENT || error == ECONNREFUSED ? " (is oarlockd running?)"
                                                                    : "";
    return NoSupervisor("cannot connect to '" + Printable(supervisor, 108) + "': " + ErrnoName(error) + remedy);
  }
  return Handover(std::move(socket));
}

Checked<Handover> Handover::StartPrivate(const std::string& log_directory, const std::string& runtime_directory) {
  const auto program = FindProgram("oarlock-private");
  if (!program) return NoSupervisor("the private supervisor cannot be started: " + program.error().Message());
  // Filled in, for a filter around us can say that the call was done.
  int ends[2] = {-1, -1}, pair[2] = {-1, -1};
  // Closed by the exec, so that it tells of nothing but a failure. Nobody waits for it: it is looked at when no answer comes.
  if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return NoSupervisor(std::string("pipe: ") + ErrnoName(errno));
  UniqueFd start(ends[0]), start_write(ends[1]);
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) return NoSupervisor(std::string("socketpair: ") + ErrnoName(errno));
  UniqueFd ours(pair[0]), theirs(pair[1]);
  // Before anything is sent, so that each of our messages shows who sent it.
  const int on = 1;
  if (::setsockopt(theirs.get(), SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) != 0) return NoSupervisor(std::string("SO_PASSCRED: ") + ErrnoName(errno));

  const std::string connection = std::to_string(kPrivateConnection);
  const char* const arguments[] = {program->c_str(), "--connection", connection.c_str(), "--log-directory", log_directory.c_str(), "--runtime-directory", runtime_directory.c_str(), nullptr};
  // Nothing of the module's environment: it must not load code into the supervisor or redirect it.
  const char* const environment[] = {"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8", nullptr};

  const pid_t self = ::getpid();
  const pid_t middle = ::fork();
  // A filter around us can make fork return 0 without a child: then this is no child.
  if (middle == 0 && ::getpid() == self) return NoSupervisor("fork had no effect: something filters us");
  if (middle < 0) return NoSupervisor(std::string("fork: ") + ErrnoName(errno));
  if (middle == 0) {
    int report = start_write.get();
    const auto fail = [&report](StartFailure::Step step) {
      const StartFailure failure{step, errno};
      (void)!::write(report, &failure, sizeof(failure));
      ::_exit(1);
    };
    (void)::setsid();
    const pid_t last = ::fork();
    if (last < 0) fail(StartFailure::kFork);
    if (last != 0) ::_exit(0);
    const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null < 0 || ::dup2(null, 0) < 0 || ::dup2(null, 1) < 0 || ::dup2(null, 2) < 0) fail(StartFailure::kNull);
    // Out of the way of the connection.
    if (report == kPrivateConnection) report = ::fcntl(report, F_DUPFD_CLOEXEC, kPrivateConnection + 1);
    if (theirs.get() == kPrivateConnection) {
      if (::fcntl(kPrivateConnection, F_SETFD, 0) != 0) fail(StartFailure::kConnection);
    } else if (::dup2(theirs.get(), kPrivateConnection) < 0) {
      fail(StartFailure::kConnection);
    }
    if (::syscall(SYS_close_range, kPrivateConnection + 1, ~0U, CLOSE_RANGE_CLOEXEC) != 0) fail(StartFailure::kDescriptors);
    if (::chdir("/") != 0) fail(StartFailure::kDirectory);
    ::execve(program->c_str(), const_cast<char* const*>(arguments), const_cast<char* const*>(environment));
    fail(StartFailure::kExec);
  }
  int status = 0;
  pid_t ended = -1;
  do ended = ::waitpid(middle, &status, 0);
  while (ended < 0 && errno == EINTR);
  // It would be the module's child. Where SIGCHLD is ignored, the kernel has taken it, and says that there is none.
  struct sigaction children {};
  const bool taken = ended < 0 && errno == ECHILD && ::sigaction(SIGCHLD, nullptr, &children) == 0 &&
                     (children.sa_handler == SIG_IGN || (children.sa_flags & SA_NOCLDWAIT) != 0);
  if (!taken && ended != middle) return NoSupervisor(ended < 0 ? std::string("waitpid: ") + ErrnoName(errno) : "waitpid had no effect: something filters us");
  Handover handover(std::move(ours));
  handover.start_ = std::move(start);
  handover.program_ = *program;
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) return handover.Lost("waiting for it", ECHILD);
  return handover;
}

// The connection is gone. Where nothing but our own fork can have been at its other end, why.
std::unexpected<Problem> Handover::Lost(const std::string& doing, int error) {
  if (!start_.valid()) return NoSupervisor(error != 0 ? doing + ": " + ErrnoName(error) : "the supervisor closed the connection without an answer");
  // It was written before the connection went.
  StartFailure failure{};
  if (::read(start_.get(), &failure, sizeof(failure)) == static_cast<ssize_t>(sizeof(failure))) return NoSupervisor(Describe(program_, failure));
  return NoSupervisor(Printable(program_, 200) + " ended without an answer");
}

Checked<std::string> Handover::ReadLine() {
  std::string line;
  const int64_t deadline = NowMs() + wire::kAnswerTimeoutMs;
  while (line.size() < wire::kMaxAnswerBytes) {
    pollfd ready{socket_.get(), POLLIN, 0};
    const int64_t left = deadline - NowMs();
    if (left <= 0) return NoSupervisor("the supervisor did not answer within 5 s");
    const int polled = ::poll(&ready, 1, static_cast<int>(left));
    if (polled < 0 && errno == EINTR) continue;
    if (polled <= 0) continue;
    // Looked at first, then taken up to the newline: what follows belongs to the next exchange.
    char bytes[256];
    ssize_t got = ::recv(socket_.get(), bytes, std::min(sizeof(bytes), wire::kMaxAnswerBytes - line.size()), MSG_PEEK);
    if (got > 0) {
      const void* newline = std::memchr(bytes, '\n', static_cast<size_t>(got));
      const size_t wanted = newline == nullptr ? static_cast<size_t>(got) : static_cast<size_t>(static_cast<const char*>(newline) - bytes) + 1;
      got = ::recv(socket_.get(), bytes, wanted, 0);
    }
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return Lost("reading the supervisor's answer", got < 0 ? errno : 0);
    start_.Reset();
    line.append(bytes, static_cast<size_t>(got));
    if (line.back() == '\n') {
      line.pop_back();
      return line;
    }
  }
  return NoSupervisor("the supervisor's answer is too long");
}

std::unexpected<Problem> Handover::WriteFailed(int error) {
  // It may have refused and closed already, or never have started: its reason is better than our errno. Where the connection
  // stands, it waits for us, and there is none.
  if (error == EPIPE || error == ECONNRESET) {
    const bool starting = start_.valid();
    auto line = ReadLine();
    if (!line && starting) return std::unexpected(line.error());
    if (line)
      if (auto answer = wire::DecodeAnswer(*line); answer && !answer->ok) return NoSupervisor("the supervisor refused: " + Printable(answer->error, 400));
  }
  return NoSupervisor(std::string("writing to the supervisor: ") + ErrnoName(error));
}

Checked<wire::Prepared> Handover::Prepare() {
  if (::send(socket_.get(), wire::kPrepareLine.data(), wire::kPrepareLine.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(wire::kPrepareLine.size()))
    return std::unexpected(WriteFailed(errno).error());
  auto line = ReadLine();
  if (!line) return std::unexpected(line.error());
  if (auto prepared = wire::DecodePrepared(*line); prepared) return *prepared;
  // A refusal comes in the place of the answer.
  if (auto answer = wire::DecodeAnswer(*line); answer && !answer->ok) return NoSupervisor("the supervisor refused: " + Printable(answer->error, 400));
  return NoSupervisor("the supervisor's answer is not understood: " + Printable(*line, 100));
}

Checked<std::string> Handover::Admit(const std::string& message, UniqueFd listener) {
  size_t sent = 0;
  while (sent < message.size()) {
    const int fd = listener.get();
    const ssize_t wrote = SendWithFds(socket_.get(), message.data() + sent, message.size() - sent, {&fd, sent == 0 ? 1U : 0U});
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return WriteFailed(wrote < 0 ? errno : EIO);
    sent += static_cast<size_t>(wrote);
  }
  // Ours goes: with a copy left here, the death of the supervisor would hang every call instead of failing it (E-91).
  listener.Reset();
  (void)::shutdown(socket_.get(), SHUT_WR);
  auto line = ReadLine();
  if (!line) return std::unexpected(line.error());
  const auto answer = wire::DecodeAnswer(*line);
  if (!answer) return NoSupervisor("the supervisor's answer is not understood: " + Printable(*line, 100));
  if (!answer->ok) return NoSupervisor("the supervisor refused: " + Printable(answer->error, 400));
  return answer->session;
}

Checked<LoopProof> LoopProof::Make() {
  LoopProof proof;
  proof.socket_.Reset(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!proof.socket_.valid() || ::getrandom(proof.probe_.data(), proof.probe_.size(), 0) != static_cast<ssize_t>(proof.probe_.size()))
    return Stop(Code::kNotify, "", std::string("the proof of the supervisor cannot be made: ") + ErrnoName(errno));
  return proof;
}

Step LoopProof::Prove(bool by_length) {
  const pid_t self = ::getpid();
  int pidfd = -1;
  // In a process of its own: once the supervisor has received the call, only SIGKILL ends it. A raw clone, for fork() asks for an
  // exit signal, and the module must not find a SIGCHLD of a child that it did not make. Its first three arguments are the same
  // on every architecture that we know.
  const auto pid = static_cast<pid_t>(::syscall(SYS_clone, CLONE_PIDFD, nullptr, &pidfd, nullptr, nullptr));
  if (pid < 0) return Stop(Code::kNotify, "", std::string("clone: ") + ErrnoName(errno));
  if (pid == 0) {
    // A filter around us can make clone return 0 without a child: then this is no child.
    if (::getpid() == self) return Stop(Code::kNotify, "", "clone had no effect: something filters us");
    const long result = ::syscall(SYS_connect, socket_.get(), probe_.data(), by_length ? kLoopProbeLength : probe_.size());
    ::_exit(result == 0 ? 0 : errno);
  }
  const UniqueFd ended(pidfd);
  pollfd ready{ended.get(), POLLIN, 0};
  const int64_t deadline = NowMs() + wire::kProofTimeoutMs;
  int polled = 0;
  do {
    const int64_t left = std::max<int64_t>(deadline - NowMs(), 0);
    polled = ::poll(&ready, 1, static_cast<int>(left));
  } while (polled < 0 && errno == EINTR);
  if (polled <= 0) (void)::kill(pid, SIGKILL);
  int status = 0;
  pid_t gone = -1;
  do gone = ::waitpid(pid, &status, __WALL);
  while (gone < 0 && errno == EINTR);
  if (gone != pid) return Stop(Code::kNotify, "", gone < 0 ? std::string("waitpid: ") + ErrnoName(errno) : "waitpid had no effect: something filters us");
  if (polled <= 0)
    return Stop(Code::kNotify, "", "the supervisor did not answer the proof call within 5 s: it cannot receive or answer notifications "
                                   "(a container's security profile may forbid it)");
  const int error = WIFEXITED(status) ? WEXITSTATUS(status) : EINTR;
  if (error == ENOANO) return {};
  return Stop(Code::kNotify, "", std::string("the proof call gave ") + (error == 0 ? "success" : ErrnoName(error)) +
                                     " and not the supervisor's answer: something filters us or it");
}

}  // namespace oarlock::child
