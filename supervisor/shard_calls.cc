// SPDX-License-Identifier: Apache-2.0
// What a shard does with a received call: copy, pin, judge, act.
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "notif/abi/process.h"
#include "notif/base/check.h"
#include "notif/calls.h"
#include "notif/kernel.h"
#include "supervisor/record_call.h"
#include "supervisor/shard.h"
#include "supervisor/watched.h"

namespace oarlock::supervisor {
namespace {

using proxyport::Decision;

// The table's refusal, asked again about the same registers that made the filter notify.
Refusal AsTheTableSays(const CallRow& row, const Call& call) noexcept {
  const Refusal refusal = RefusalOf(row, call.args);
  return refusal == Refusal::kNone ? Refusal::kCallDenied : refusal;
}

int LowInt(uint64_t argument) noexcept { return static_cast<int>(static_cast<uint32_t>(argument)); }

}  // namespace

void Shard::Receive(uint32_t index) {
  Session& session = *sessions_[index].session;
  abi::SeccompNotif notification;
  beat_.Enter(Beat::Step::kReceive);
  const int result = kernel::Receive(session.listener.get(), &notification);
  beat_.Leave();
  if (result == -EINTR && beat_.TakeInterruption() == Beat::Step::kReceive) {
    // Somebody else receives from this listener: whoever admitted it kept a copy. That is no session of ours.
    return EndSession(index);
  }
  // -ENOENT: the caller was killed or interrupted between the wake-up and now. Nothing was received.
  if (result != 0) return;
  const uint32_t at = TakeCall();
  Call& call = calls_[at];
  call.state = Call::State::kStarting;
  call.session = index;
  TakeIn(notification, &call);
  NoteCaller(call.tid);
  call.ready_ns = turn_ns_;
  call.received_ns = kernel::MonotonicNs();
  CountIn(session);
  ++session.calls;
  Handle(at);
}

// A wait beside the ring is for a thread that calls again and again while no other does: it sleeps while we work, so its CPU is
// ours. Where several take turns, that CPU is somebody's, and the ring's wake-ups choose a free one.
void Shard::NoteCaller(pid_t tid) {
  if (tid == last_caller_) {
    if (alone_ < kAloneCalls) ++alone_;
    return;
  }
  last_caller_ = tid;
  if (std::exchange(alone_, 0U) >= kAloneCalls) ring_->PollInstead();
}

void Shard::Handle(uint32_t at) {
  Call& call = calls_[at];
  Session& session = *sessions_[call.session].session;
  const CallRow* row = FindCall(kNativeArch, call.nr);
  // The filter notifies rows of the table and nothing else.
  if (row == nullptr) return Refuse(at, Refusal::kCallDenied);
  switch (row->handler) {
    case Handler::kConnect:
      return HandleConnect(at);
    case Handler::kSocket:
      return Judge(at, session.gate.JudgeSocket(static_cast<uint32_t>(call.args[0]), static_cast<uint32_t>(call.args[1]),
                                                static_cast<uint32_t>(call.args[2])));
    case Handler::kSocketPair:
      return Judge(at, session.gate.JudgeSocketPair(static_cast<uint32_t>(call.args[0]),
                                                    static_cast<uint32_t>(call.args[1])));
    case Handler::kSetSockOpt:
      return HandleSetSockOpt(at);
    case Handler::kBind:
      return HandleBind(at);
    case Handler::kSend:
      return HandleSend(at);
    case Handler::kTask:
      return HandleTask(at, *row);
    case Handler::kTrace:
      return HandleTrace(at, *row);
    case Handler::kMemory:
      return HandleMemory(at);
    case Handler::kRefuse:
    case Handler::kNone:
      return Refuse(at, AsTheTableSays(*row, call));
  }
}

void Shard::Judge(uint32_t at, const Decision& decision) {
  switch (decision.verdict) {
    case Decision::Verdict::kRefuse: return Refuse(at, decision.refusal);
    case Decision::Verdict::kContinue:
    case Decision::Verdict::kConnect: return Approve(at);
  }
}

// A reader is waited for in poll alone, so nobody needs to stand in for us.
int Shard::Read(const Call& call, uint64_t pointer, void* to, size_t size) {
  if (Reader* reader = sessions_[call.session].session->reader.get(); reader != nullptr) {
    const int result = reader->Read(call.tid, pointer, to, size);
    CloseElsewhere(reader->TakeLate());
    return result;
  }
  return Watched(call.session, Beat::Step::kRead, [&] { return kernel::ReadCaller(call.tid, pointer, to, size); });
}

// We are short of something: the call waits, and is looked at anew as if it had just come.
void Shard::TryLater(uint32_t at) {
  calls_[at].state = Call::State::kRetry;
  Pend(at);
}

// A string of the caller's that ends within `to`: its length, -ENAMETOOLONG, or as Read. Never beyond the page that the string ends in,
// nor more at once than a reader takes.
int Shard::ReadText(const Call& call, uint64_t pointer, std::span<char> to) {
  constexpr uint64_t kLeastPage = 4096;
  for (size_t at = 0; at < to.size();) {
    const size_t size = std::min<size_t>({to.size() - at, proxyport::Address::kMaxSize, kLeastPage - (pointer + at) % kLeastPage});
    if (const int result = Read(call, pointer + at, &to[at], size); result != 0) return result;
    if (const void* end = std::memchr(&to[at], 0, size); end != nullptr) return static_cast<int>(static_cast<const char*>(end) - to.data());
    at += size;
  }
  return -ENAMETOOLONG;
}

// Copies the address, once. kNone: it is there, or has a length that the gate judges.
Refusal Shard::ReadAddress(uint32_t at, uint64_t pointer, int32_t size) {
  Call& call = calls_[at];
  call.address.size = 0;
  if (size < 0 || size > static_cast<int32_t>(proxyport::Address::kMaxSize)) return Refusal::kAddressInvalid;
  if (size == 0) return Refusal::kAddressInvalid;
  const int result = Read(call, pointer, call.address.bytes, static_cast<size_t>(size));
  if (result == -EFAULT) return Refusal::kAddressFault;
  if (result != 0) return Refusal::kAddressUnreadable;
  call.address.size = static_cast<uint32_t>(size);
  call.address_read = true;
  return Refusal::kNone;
}

int Shard::PinTask(Session& session, uint32_t session_index, pid_t tid, int fd) {
  if (session.reader != nullptr) {
    const int result = session.reader->Pin(tid, fd);
    CloseElsewhere(session.reader->TakeLate());
    return result;
  }
  return Watched(session_index, Beat::Step::kPin, [&] {
    int result = -ESRCH;
    for (int attempt = 0; attempt < 2 && result == -ESRCH; ++attempt) {
      const int pidfd = session.tasks.Open(tid);
      if (IsShortage(-pidfd)) return pidfd;
      if (pidfd < 0) continue;
      result = kernel::PinDescriptor(pidfd, fd);
      // The cached pidfd is of a thread that has ended; its number may have been given to this caller.
      if (result == -ESRCH) session.tasks.Drop(tid);
    }
    return result;
  });
}

// Duplicates the caller's descriptor, so that no dup2 of its can change what is judged and used.
Shard::Pinned Shard::Pin(uint32_t at, int fd) {
  Call& call = calls_[at];
  Session& session = *sessions_[call.session].session;
  const int pinned = PinTask(session, call.session, call.tid, fd);
  // Only now is it sure that thread and memory were the caller's.
  if (kernel::IdValid(session.listener.get(), call.id) != 0) {
    if (pinned >= 0) {
      call.fd.Reset(pinned);
      call.close_elsewhere = true;  // it may be whatever its number was given to meanwhile
    }
    Release(at);
    return Pinned::kAnswered;
  }
  if (IsShortage(-pinned)) {
    TryLater(at);
    return Pinned::kAnswered;
  }
  // Of what is no socket a reader tells this and no more; it comes before the address for the kernel too.
  if (pinned == -EBADF || (session.reader != nullptr && pinned == -ENOTSOCK)) {
    Answer(at, pinned);
    return Pinned::kAnswered;
  }
  if (pinned < 0) return Pinned::kUnreadable;
  call.fd.Reset(pinned);
  return Pinned::kOk;
}

// Returns 0, or -ENOTSOCK or -EBADF of what is none.
int Shard::FetchFacts(Call& call) {
  const auto fetch = [&](int name, std::optional<int>& fact) {
    if (fact) return 0;
    int value = 0;
    const int result = kernel::GetSocketInt(call.fd.get(), SOL_SOCKET, name, &value);
    if (result == 0) fact = value;
    return result;
  };
  const int result = fetch(SO_DOMAIN, call.socket.domain);
  call.close_elsewhere = call.socket.domain != AF_INET && call.socket.domain != AF_INET6;
  if (result == -ENOTSOCK || result == -EBADF) return result;
  (void)fetch(SO_TYPE, call.socket.type);
  (void)fetch(SO_PROTOCOL, call.socket.protocol);
  return 0;
}

void Shard::HandleConnect(uint32_t at) {
  Call& call = calls_[at];
  Session& session = *sessions_[call.session].session;
  const bool by_length = LowInt(call.args[2]) == static_cast<int>(kLoopProbeLength) && !session.proved;
  const Refusal unread = ReadAddress(at, call.args[1], by_length ? static_cast<int32_t>(session.probe.size()) : LowInt(call.args[2]));
  if (const Pinned pinned = Pin(at, LowInt(call.args[0])); pinned != Pinned::kOk) {
    if (pinned == Pinned::kUnreadable) Refuse(at, Refusal::kAddressUnreadable);
    return;
  }
  if (!session.proved && call.address.size == session.probe.size() &&
      std::memcmp(call.address.bytes, session.probe.data(), session.probe.size()) == 0) {
    // The launcher's proof: only a supervisor that receives, reads, duplicates and answers can give this errno.
    session.proved = true;
    return Answer(at, -ENOANO);
  }
  const Decision decision = by_length ? Decision::Refuse(Refusal::kAddressInvalid) : unread == Refusal::kNone ? session.gate.JudgeConnect(call.address) : Decision::Refuse(unread);
  if (decision.verdict == Decision::Verdict::kRefuse) {
    // As the kernel, which copies the address before it asks whether the descriptor is a socket.
    const int not_socket = FetchFacts(call);
    if (unread == Refusal::kNone && not_socket != 0) return Answer(at, not_socket);
    return Refuse(at, decision.refusal);
  }
  call.target = decision.target;
  if (call.target->kind == proxyport::Target::Kind::kTcp) {
    int protocol = 0;
    const int result = kernel::GetSocketInt(call.fd.get(), SOL_SOCKET, SO_PROTOCOL, &protocol);
    if (result == -ENOTSOCK || result == -EBADF) {
      call.close_elsewhere = true;
      return Answer(at, result);
    }
    if (result == 0) call.socket.protocol = protocol;
    if (session.gate.needs_netns_cookie()) {
      uint64_t cookie = 0;
      if (kernel::GetNetnsCookie(call.fd.get(), &cookie) == 0) call.socket.netns_cookie = cookie;
    }
    if (protocol != IPPROTO_TCP) (void)FetchFacts(call);
    if (const Refusal refusal = session.gate.JudgeTcpSocket(call.socket); refusal != Refusal::kNone) {
      (void)FetchFacts(call);
      return Refuse(at, refusal);
    }
  }
  Approve(at);
}

void Shard::Connect(uint32_t at) {
  Call& call = calls_[at];
  Session& session = *sessions_[call.session].session;
  if (session.moving) return Hold(at);
  if (call.target->kind == proxyport::Target::Kind::kUnix && session.blocked_unix != kNoSlot) {
    // Each unix connect that blocks costs a kernel worker, so one per session and target is in the kernel. While it waits the
    // backlog is full, and a non-blocking caller is told so.
    const int flags = kernel::GetFileFlags(call.fd.get());
    if (flags >= 0 && (flags & O_NONBLOCK) != 0) return Answer(at, -EAGAIN);
    uint64_t timeout_ns = 0;
    if (call.deadline_ns == 0 && kernel::GetSocketTimeNs(call.fd.get(), SOL_SOCKET, SO_SNDTIMEO, &timeout_ns) == 0 && timeout_ns != 0)
      call.deadline_ns = kernel::MonotonicNs() + timeout_ns;
    call.state = Call::State::kQueued;
    call.next = kNoSlot;
    if (session.queue_tail == kNoSlot) session.queue_head = at;
    else calls_[session.queue_tail].next = at;
    session.queue_tail = at;
    return Pend(at);
  }
  BeginAttempt(at);
}

void Shard::BeginAttempt(uint32_t at) {
  Call& call = calls_[at];
  Session& session = *sessions_[call.session].session;
  call.state = Call::State::kConnecting;
  const bool is_unix = call.target->kind == proxyport::Target::Kind::kUnix;
  if (is_unix) session.blocked_unix = at;  // until it has ended, which is mostly at once
  call.attempt.Begin(*ring_, call.fd.get(), *call.target, is_unix ? session.personality : uint16_t{0},
                     {Token::Slot(TokenKind::kConnect, at, call.generation),
                      Token::Slot(TokenKind::kPoll, at, call.generation),
                      Token::Slot(TokenKind::kCancel, at, call.generation)},
                     call.deadline_ns);
  NoteSubmission(at);
  if (turn_ns_ < careful_until_ns_) SubmitBegun();
}

// What it has queued is submitted by SubmitBegun, which looks how long that takes.
void Shard::NoteSubmission(uint32_t at) {
  if (calls_[at].attempt.TakeQueued()) begun_.push_back({at, calls_[at].generation});
}

void Shard::AttemptMoved(uint32_t at) {
  Call& call = calls_[at];
  NoteSubmission(at);
  if (call.state == Call::State::kConnecting && !call.attempt.busy()) FinishConnect(at);
}

void Shard::FinishConnect(uint32_t at) {
  Call& call = calls_[at];
  const uint32_t session_index = call.session;
  Session& session = *sessions_[session_index].session;
  const int result = call.attempt.result();
  const bool is_unix = call.target->kind == proxyport::Target::Kind::kUnix;

  if (call.submit_ns != 0 && result != -EADDRNOTAVAIL) Strike(session_index, kernel::MonotonicNs(), call.submit_ns);
  if (result == -ECANCELED && session.moving && !call.caller_gone) {
    if (is_unix) session.blocked_unix = kNoSlot;
    return Hold(at);
  }
  if (result == -ECANCELED && call.signalled && !call.caller_gone) {
    // Looked at again now that the connect is out of the kernel: the signal may have gone to another thread.
    call.signalled = false;
    int error = 0;
    const bool ends = SignalEnds(call, &error);
    if (!ends) return BeginAttempt(at);
    if (is_unix) session.blocked_unix = kNoSlot;
    Answer(at, error);
  } else {
    if (is_unix) session.blocked_unix = kNoSlot;
    if (result == -ECANCELED || call.caller_gone) {
      Release(at);
    } else if (call.attempt.self_connected()) {
      Refuse(at, Refusal::kSelfConnect);
    } else if (is_unix && result != 0 && result != -EAGAIN) {
      // Facts of a unix socket are asked for only where the kernel refused: they cost a call each.
      (void)FetchFacts(call);
      sockaddr_storage peer{};
      socklen_t size = 0;
      const bool unnamed = result == -EISCONN && kernel::GetPeerAddress(call.fd.get(), &peer, &size) == 0 &&
                           size <= offsetof(sockaddr_un, sun_path);
      const Refusal refusal = proxyport::Gate::JudgeUnixFailure(-result, call.socket, unnamed);
      if (refusal != Refusal::kNone) Refuse(at, refusal);
      else Answer(at, result);
    } else {
      Answer(at, result);
    }
  }
  if (is_unix) StartNextQueued(session_index);
}

void Shard::StartNextQueued(uint32_t session_index) {
  Session* session = sessions_[session_index].session.get();
  if (session == nullptr || session->blocked_unix != kNoSlot || session->queue_head == kNoSlot) return;
  const uint32_t at = session->queue_head;
  session->queue_head = calls_[at].next;
  if (session->queue_head == kNoSlot) session->queue_tail = kNoSlot;
  calls_[at].next = kNoSlot;
  BeginAttempt(at);
}

// Out of the middle of its session's queue.
void Shard::Unqueue(uint32_t at) {
  Call& call = calls_[at];
  Session& session = *sessions_[call.session].session;
  uint32_t* link = &session.queue_head;
  uint32_t before = kNoSlot;
  while (*link != at) {
    before = *link;
    link = &calls_[*link].next;
  }
  *link = call.next;
  if (session.queue_tail == at) session.queue_tail = before;
  call.next = kNoSlot;
}

// SO_LINGER alone reaches this as granted: it is performed on the pinned socket, off and {1, 0} as asked. A time is taken as
// off, so that no close of anybody ever waits (E-66, E-190, E-191).
void Shard::HandleSetSockOpt(uint32_t at) {
  Call& call = calls_[at];
  if (LowInt(call.args[1]) != SOL_SOCKET || LowInt(call.args[2]) != SO_LINGER) return Refuse(at, Refusal::kSocketOption);
  linger wanted{};
  const int size = LowInt(call.args[4]);
  const int read = size < static_cast<int>(sizeof(wanted)) ? -EINVAL
                                                           : Read(call, call.args[3], &wanted, sizeof(wanted));
  if (const Pinned pinned = Pin(at, LowInt(call.args[0])); pinned != Pinned::kOk) {
    if (pinned == Pinned::kUnreadable) Refuse(at, Refusal::kAddressUnreadable);
    return;
  }
  const int not_socket = FetchFacts(call);
  if (read == -EINVAL || read == -EFAULT) return Answer(at, not_socket != 0 ? not_socket : read);
  if (read != 0) return Refuse(at, Refusal::kAddressUnreadable);
  const bool reset = wanted.l_onoff != 0 && wanted.l_linger == 0;
  // Waits for the socket's lock, as a connect does (E-69).
  Answer(at, Watched(call.session, Beat::Step::kSubmit, [&] { return kernel::SetLinger(call.fd.get(), reset, 0); }));
}

// Never granted; the address is read for the record, and to tell a routine probe from the rest.
void Shard::HandleBind(uint32_t at) {
  Call& call = calls_[at];
  const Refusal unread = ReadAddress(at, call.args[1], LowInt(call.args[2]));
  if (kernel::IdValid(sessions_[call.session].session->listener.get(), call.id) != 0) return Release(at);
  if (unread == Refusal::kAddressFault || unread == Refusal::kAddressInvalid) return Refuse(at, unread);
  Refuse(at, proxyport::Gate::JudgeBind(call.address));
}

void Shard::HandleSend(uint32_t at) {
  Call& call = calls_[at];
  const CallRow* row = FindCall(kNativeArch, call.nr);
  if (row->roles[4] == Role::kAddress) {
    // sendto, for the record only: the refusal stands whatever the address says.
    (void)ReadAddress(at, call.args[4], LowInt(call.args[5]));
    if (kernel::IdValid(sessions_[call.session].session->listener.get(), call.id) != 0) return Release(at);
  }
  Refuse(at, AsTheTableSays(*row, call));
}

// Under exec_strict a program may have memory in a file, but not memory to run: we make the file, of a kind that can never be executed
// (E-140), and give it to the caller.
void Shard::HandleMemory(uint32_t at) {
  Call& call = calls_[at];
  Session& session = *sessions_[call.session].session;
  const auto flags = static_cast<uint32_t>(call.args[1]);
  char name[250];  // with its end, as the kernel's limit
  const int length = ReadText(call, call.args[0], name);
  if (kernel::IdValid(session.listener.get(), call.id) != 0) return Release(at);
  if (length == -EFAULT) return Answer(at, -EFAULT);
  if (length == -ENAMETOOLONG) return Answer(at, -EINVAL);
  if (length < 0) return Refuse(at, Refusal::kAddressUnreadable);
  if ((flags & (abi::kMfdExec | abi::kMfdNoexecSeal)) == abi::kMfdExec) return Refuse(at, Refusal::kExecutableMemory);
  UniqueFd file(kernel::MakeMemory(name, flags, session.facts.uid, session.gid));
  if (IsShortage(-file.get())) return TryLater(at);
  if (file.get() == -EPERM) return Refuse(at, Refusal::kExecutableMemory);
  if (!file.valid()) return Answer(at, file.get());
  call.fd = std::move(file);
  call.gives = true;
  Approve(at);
}

void Shard::Give(uint32_t at) {
  Call& call = calls_[at];
  const int listener = sessions_[call.session].session->listener.get();
  const bool close_on_exec = (call.args[1] & abi::kMfdCloexec) != 0;
  // Waits for the caller's thread to run, which its module can put off.
  const int number = Watched(call.session, Beat::Step::kPin, [&] {
    return kernel::InstallDescriptor(listener, call.id, call.fd.get(), close_on_exec);
  });
  if (number < 0) return Answer(at, number);
  // Before the answer: the caller's threads may have filled the file and closed it by now, but hardly much of it.
  ClosePinned(call);
  (void)kernel::Reply(listener, call.id, number, 0);
  Release(at);
}

}  // namespace oarlock::supervisor
