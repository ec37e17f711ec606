// SPDX-License-Identifier: Apache-2.0
#include "supervisor/admission.h"

#include <poll.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "audit/writer.h"
#include "notif/base/resolve.h"
#include "notif/base/text.h"
#include "notif/kernel.h"

namespace oarlock::supervisor {

// One launcher that is speaking.
struct Admission::Connection {
  UniqueFd socket;
  ucred peer{};
  bool node = true;                  // came through the admission socket; else we made it ourselves
  std::optional<pid_t> expected;     // whose messages it must be, where SO_PEERCRED names the maker of a socket pair
  UniqueFd pidfd;
  std::optional<ProcessFacts> process;
  std::string text;
  std::vector<UniqueFd> descriptors;
  bool prepared = false;
  Reactor::Id poll = 0, timer = 0;
  std::string session;               // once it is being decided
  Pending* logging = nullptr;        // the record that is being written for it
};

// A session that a shard has taken, while its first record is being written.
struct Admission::Pending {
  audit::Record record;
  SessionInfo info;
  Connection* connection = nullptr;
  bool is_end = false;
};

namespace {

constexpr const char* kCode = "K_NOTIFY";
constexpr const char* kAdmission = "admission";

void Copy(std::string_view from, std::span<char> to) noexcept {
  const size_t size = std::min(from.size(), to.size() - 1);
  std::memcpy(to.data(), from.data(), size);
  to[size] = '\0';
}

std::unexpected<Error> No(const std::string& text) { return OARLOCK_FAIL(kAdmission, EPERM, "%s", text.c_str()); }

// Our own refusals are whole sentences; what the system refused is told with its operation and errno.
std::string TextOf(const Error& error) {
  return std::string_view(error.operation) == kAdmission ? error.detail : error.Message();
}

uint64_t OwnNetnsCookie() {
  const UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  uint64_t cookie = 0;
  (void)kernel::GetNetnsCookie(socket.get(), &cookie);
  return cookie;
}

}  // namespace

Admission::Admission(Reactor& reactor, Options options)
    : reactor_(reactor), options_(std::move(options)) {}

Admission::~Admission() = default;

void Admission::Listen(UniqueFd listening) {
  const int fd = listening.get();
  listening_.push_back(std::move(listening));
  reactor_.OnConnection(fd, [this](UniqueFd socket) {
    auto connection = std::make_unique<Connection>();
    connection->socket = std::move(socket);
    Start(std::move(connection));
  });
}

void Admission::Serve(UniqueFd socket, std::optional<pid_t> expected) {
  auto connection = std::make_unique<Connection>();
  connection->socket = std::move(socket);
  connection->node = false;
  connection->expected = expected;
  Start(std::move(connection));
}

void Admission::Start(std::unique_ptr<Connection> owned) {
  Connection& connection = *owned;
  connections_.emplace(&connection, std::move(owned));
  const int on = 1;
  socklen_t size = sizeof(connection.peer);
  (void)::setsockopt(connection.socket.get(), SOL_SOCKET, SO_PASSCRED, &on, sizeof(on));
  if (::getsockopt(connection.socket.get(), SOL_SOCKET, SO_PEERCRED, &connection.peer, &size) != 0) return Drop(connection);
  if (connection.expected) connection.peer.pid = *connection.expected;

  auto pidfd = connection.node ? OpenPeerPidfd(connection.socket.get(), connection.peer.pid) : OpenPidfd(connection.peer.pid);
  if (!pidfd) return Refuse(connection, "the peer has gone: " + pidfd.error().Message());
  connection.pidfd = std::move(*pidfd);
  auto process = ReadProcess(connection.peer.pid, connection.pidfd.get());
  if (!process) return Refuse(connection, "the peer cannot be looked at: " + process.error().Message());
  connection.process = std::move(*process);

  if (connection.node) {
    if (auto may = MayAsk(connection.peer, *connection.process); !may) return Refuse(connection, TextOf(may.error()));
    const auto speaking = std::ranges::count_if(connections_, [&](const auto& other) {
      return other.second->node && other.second->peer.uid == connection.peer.uid && other.second->session.empty();
    });
    if (connection.peer.uid != 0 && connection.peer.uid != ::geteuid() && static_cast<size_t>(speaking) > kMaxPendingPerUid)
      return Refuse(connection, "uid " + std::to_string(connection.peer.uid) + " has too many admissions pending; try again");
  }
  connection.timer = reactor_.After(std::chrono::milliseconds(kSpeakTimeoutMs), [this, &connection] {
    connection.timer = 0;
    Refuse(connection, "the message did not come within 5 s");
  });
  Await(connection);
}

Status Admission::MayAsk(const ucred& peer, const ProcessFacts& process) const {
  const auto named = [&](uint32_t uid) { return std::ranges::find(options_.admit_uids, uid) != options_.admit_uids.end(); };
  const auto member = [&](uint32_t gid) { return std::ranges::find(options_.admit_gids, gid) != options_.admit_gids.end(); };
  const bool allowed = peer.uid == 0 || peer.uid == ::geteuid() || named(peer.uid) || member(peer.gid) ||
                       std::ranges::any_of(process.groups, member);
  if (!allowed) return No("uid " + std::to_string(peer.uid) + " may not use this supervisor (--admit-uid or --admit-group names who may)");
  // Never a task of a live session, whatever its uid: it would admit a grant of its own making.
  if (const SessionInfo* session = Find(peer.pid); session != nullptr)
    return No("process " + std::to_string(peer.pid) + " is confined by session " + std::string(session->facts.id.text()));
  return {};
}

const SessionInfo* Admission::Find(pid_t pid) const {
  for (size_t steps = 0; !sessions_.empty() && pid > 1 && steps < kMaxAncestors; ++steps) {
    const auto process = ReadLineage(pid);
    if (!process) return nullptr;
    for (const auto& [id, session] : sessions_)
      if (session.facts.pid == pid && session.start_ticks == process->start_ticks) return &session;
    pid = process->parent;
  }
  return nullptr;
}

std::vector<const SessionInfo*> Admission::Sessions() const {
  std::vector<const SessionInfo*> all;
  for (const auto& [id, session] : sessions_) all.push_back(&session);
  return all;
}

void Admission::Await(Connection& connection) {
  connection.poll = reactor_.OnReady(connection.socket.get(), POLLIN, [this, &connection](int) {
    connection.poll = 0;
    OnReadable(connection);
  });
}

void Admission::OnReadable(Connection& connection) {
  for (int i = 0; i < 16; ++i) {
    char buffer[16 * 1024];
    // Room for more descriptors than are due, so that too many are seen and not just cut.
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * 8) + CMSG_SPACE(sizeof(ucred))];
    iovec part{buffer, sizeof(buffer)};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof(control);
    const ssize_t got = ::recvmsg(connection.socket.get(), &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return Await(connection);
    if (got < 0) return Refuse(connection, std::string("recvmsg: ") + ErrnoName(errno));

    bool credentials_match = false;
    size_t received = 0;
    for (cmsghdr* part_of = CMSG_FIRSTHDR(&message); part_of != nullptr; part_of = CMSG_NXTHDR(&message, part_of)) {
      if (part_of->cmsg_level != SOL_SOCKET) continue;
      if (part_of->cmsg_type == SCM_CREDENTIALS) {
        ucred sender{};
        std::memcpy(&sender, CMSG_DATA(part_of), sizeof(sender));
        // A socket that a gate connected shows the gate's owner as its peer; each message shows who really sent it.
        credentials_match = sender.pid == connection.peer.pid;
      } else if (part_of->cmsg_type == SCM_RIGHTS) {
        const size_t count = (part_of->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t j = 0; j < count; ++j) {
          int fd = -1;
          std::memcpy(&fd, CMSG_DATA(part_of) + j * sizeof(int), sizeof(fd));
          connection.descriptors.emplace_back(fd);
          ++received;
        }
      }
    }
    if ((message.msg_flags & MSG_CTRUNC) != 0 || connection.descriptors.size() > wire::kMaxDescriptors)
      return Refuse(connection, "too many descriptors came with the message");
    if (got == 0) return Complete(connection);
    if (!credentials_match) return Refuse(connection, "the message is not of the process that connected");
    if (received != 0 && !connection.text.empty()) return Refuse(connection, "descriptors must come with the message's first byte");
    connection.text.append(buffer, static_cast<size_t>(got));
    if (connection.text.size() > wire::kMaxMessageBytes) return Refuse(connection, "the message is longer than 128 KiB");
    if (!connection.prepared && connection.text.starts_with(wire::kPrepareLine)) {
      if (!connection.descriptors.empty()) return Refuse(connection, "descriptors must come with the message's first byte");
      connection.prepared = true;
      connection.text.erase(0, wire::kPrepareLine.size());
      const std::string line = wire::Encode(wire::Prepared{});
      (void)::send(connection.socket.get(), line.data(), line.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    }
  }
  Await(connection);
}

void Admission::Complete(Connection& connection) {
  auto examined = Examine(connection);
  if (!examined) return Refuse(connection, TextOf(examined.error()));
  reactor_.Forget(std::exchange(connection.timer, 0));
  NewSession* session = examined->get();
  auto lane = LaneFor(*session, connection);
  if (!lane) return Refuse(connection, "there is no thread for this session now; try again: " + lane.error().Message());
  session->shard = *lane;
  options_.lanes->Count(session->shard, 1);
  connection.session = session->facts.id.text();
  deciding_.emplace(session, std::pair(std::move(*examined), &connection));
  reactor_.Post(session->shard->ring_fd(), Token::Pointer(TokenKind::kAdmit, session), 0);
}

// Slow from the start: whom somebody else admitted, and whose files can make a thread hang for ever.
Result<Shard*> Admission::LaneFor(const NewSession& session, const Connection& connection) {
  if (!connection.node) return options_.lanes->LeastLoaded();
  const bool stranger = session.admitted_by != 0 && session.admitted_by != ::geteuid();
  if (!stranger && !session.slow_files) return options_.lanes->LeastLoaded();
  return options_.lanes->Open(/*for_good=*/true);
}

// A reader of this process's, which has been seen to do its work. Here too it is the reader that hangs, if somebody does.
Result<std::unique_ptr<Reader>> Admission::ReaderFor(pid_t pid) const {
  constexpr const char* kWhy = "the process sees file systems that may not answer, and the reader that they need ";
  const auto fail = [](const std::string& text) { return No(kWhy + text); };
  const Result<std::string>& program = *options_.reader_program;
  if (!program) return fail("cannot be started: " + program.error().Message());
  auto reader = Reader::Start(*program);
  if (!reader) return fail("cannot be started: " + reader.error().Message());
  // As CheckAccess.
  char byte = 0;
  if (const int result = (*reader)->Read(pid, 8, &byte, 1); result != -EFAULT && result != 0)
    return fail(std::string("cannot read it: ") + ErrnoName(-result));
  if (const int result = (*reader)->Pin(pid, INT32_MAX); result != -EBADF)
    return fail(std::string("cannot take its descriptors: ") + ErrnoName(-result));
  return reader;
}

Result<std::unique_ptr<NewSession>> Admission::Examine(Connection& connection) {
  auto decoded = wire::Decode(connection.text);
  if (!decoded) return std::unexpected(decoded.error());
  if (!decoded->grant_name.empty())
    return No("'" + Printable(decoded->grant_name, 64) + "' names a grant, and grants for container runtimes are not built");
  if (connection.descriptors.size() != decoded->fds.size())
    return No(std::to_string(decoded->fds.size()) + " descriptors are named and " + std::to_string(connection.descriptors.size()) + " came");
  const auto at = std::ranges::find(decoded->fds, wire::kListenerName) - decoded->fds.begin();
  UniqueFd listener = std::move(connection.descriptors[static_cast<size_t>(at)]);
  if (!IsListener(listener.get())) {
    Close(std::move(listener));
    return No("seccompFd is no seccomp listener");
  }
  // The credentials of the confined process, as they are now: it may have changed them since it connected.
  const ProcessFacts process = OARLOCK_TRY(ReadProcess(connection.peer.pid, connection.pidfd.get()));
  if (connection.process->start_ticks != process.start_ticks) return No("the process that connected has gone");
  if (connection.node) OARLOCK_TRY_VOID(MayAsk(connection.peer, process));
  OARLOCK_TRY_VOID(CheckProcess(process));
  const bool slow_files = connection.node && HasSlowMount(process.pid);
  std::unique_ptr<Reader> reader;
  if (slow_files && options_.reader_program) reader = OARLOCK_TRY(ReaderFor(process.pid));
  else OARLOCK_TRY_VOID(CheckAccess(process.pid, connection.pidfd.get()));
  OARLOCK_TRY_VOID(CheckGrant(connection, decoded->grant, process));

  auto session = std::make_unique<NewSession>();
  session->listener = std::move(listener);
  session->uid = process.uid;
  session->gid = process.gid;
  session->groups = process.groups;
  session->reply_ring = reactor_.ring_fd();
  session->start_ticks = process.start_ticks;
  session->seccomp_filters = process.seccomp_filters;
  session->admitted_by = connection.peer.uid;
  session->slow_files = slow_files;
  session->reader = std::move(reader);
  std::erase_if(users_, [](const auto& known) { return known.second.use_count() == 1; });  // whose sessions have all ended
  auto& user = users_[process.uid];
  if (user == nullptr) user = std::make_shared<UserLoad>();
  session->user = user;
  audit::SessionFacts& facts = session->facts;
  facts.id = options_.session_id.value_or(Ulid::Make());
  facts.pid = process.pid;
  facts.uid = process.uid;
  Copy(decoded->module, facts.module);
  Copy(decoded->kind, facts.kind);
  Copy(decoded->policy_sha256, facts.policy_sha256);
  const Grant& grant = decoded->grant;
  facts.has_proxy = grant.has_proxy();
  if (facts.has_proxy) {
    const bool v6 = grant.proxy_address == ProxyAddress::kLoopback6;
    Copy((v6 ? "[::1]:" : "127.0.0.1:") + std::to_string(grant.proxy_port), facts.proxy);
  }
  Copy(grant.broker_name, facts.broker);
  session->admission = std::move(*decoded);
  return session;
}

Status Admission::CheckProcess(const ProcessFacts& process) const {
  if (!process.no_new_privs) return No("the process has not set no_new_privs");
  if (process.seccomp_mode != 2 || process.seccomp_filters < 1) return No("the process has no seccomp filter");
  const bool one_uid = process.real_uid == process.uid && process.saved_uid == process.uid && process.fs_uid == process.uid;
  const bool one_gid = process.real_gid == process.gid && process.saved_gid == process.gid && process.fs_gid == process.gid;
  if (!one_uid || !one_gid) return No("the process's real, effective and saved ids differ: it could change who it is");
  if ((process.effective_capabilities | process.permitted_capabilities) != 0) return No("the process still has capabilities");
  return {};
}

Status Admission::CheckGrant(const Connection& connection, Grant& grant, const ProcessFacts& process) const {
  if (connection.node && options_.ceiling) OARLOCK_TRY_VOID(options_.ceiling->Apply(grant, process.uid));
  // Its connects are its own, so it may come back here, and an orphan of it is not known as the session's.
  if (connection.node && grant.net == NetMode::kHost && (process.uid == 0 || process.uid == ::geteuid()))
    return No("a module with net host and the uid " + std::to_string(process.uid) + " could use this supervisor itself: give it a uid of its own (run_as), or a private supervisor");
  if (grant.has_broker()) {
    // A link in it could be turned elsewhere after this look.
    if (auto canonical = OpenCanonical(DirectoryOf(grant.broker_resolved)); !canonical) return No("the broker's directory: " + canonical.error().Message());
    // The gate never reaches Oarlock's own sockets, under whatever name.
    struct stat broker {}, own {};
    const bool there = ::stat(grant.broker_resolved.c_str(), &broker) == 0;
    for (const std::string& path : options_.own_sockets)
      if (grant.broker_resolved == path || (there && ::stat(path.c_str(), &own) == 0 && own.st_dev == broker.st_dev && own.st_ino == broker.st_ino))
        return No("the broker is one of Oarlock's own sockets");
    if (!options_.runtime.empty() && grant.broker_resolved.starts_with(options_.runtime + "/"))
      return No("the broker lies in Oarlock's own runtime directory");
  }
  if (grant.has_proxy() && SameNetns(process.pid) && grant.netns_cookie != 0 && grant.netns_cookie != OwnNetnsCookie())
    return No("the grant names a network namespace that is not the process's");
  if (connection.node && connection.peer.uid != 0 && connection.peer.uid != ::geteuid()) {
    const auto held = std::ranges::count_if(sessions_, [&](const auto& entry) { return entry.second.admitted_by == connection.peer.uid; });
    if (static_cast<size_t>(held) >= kMaxSessionsPerUid) return No("uid " + std::to_string(connection.peer.uid) + " holds 1024 sessions already");
  }
  rlimit files{};
  (void)::getrlimit(RLIMIT_NOFILE, &files);
  if ((sessions_.size() + 1) * kDescriptorsPerSession + kMaxCallsPerSession > files.rlim_cur)
    return No("the supervisor's descriptors are used up: raise its RLIMIT_NOFILE");
  return {};
}

// A session has left this shard.
void Admission::Leave(Shard* shard) {
  options_.lanes->Count(shard, -1);
  if (settled_ || !Lanes::IsSlow(shard)) return;
  reactor_.Post(shard->ring_fd(), Token::Make(TokenKind::kStop, 0), 0);
  reactor_.Flush();
  options_.lanes->Retire(shard);
}

// A session that has made its shard wait goes to a lane of its own; one that has been quiet there comes back.
void Admission::OnMoved(std::unique_ptr<MovedSession> moved) {
  const auto at = sessions_.find(moved->id.text());
  if (moved->from != nullptr) Leave(std::exchange(moved->from, nullptr));
  if (at != sessions_.end()) at->second.shard = nullptr;
  if (at == sessions_.end() || settled_) {
    // It was ended meanwhile. Without its listener the kernel answers whoever still waits.
    for (Call& call : moved->calls) Close(std::move(call.fd));
    return;
  }
  Result<Shard*> shard = moved->to_slow ? options_.lanes->Open(/*for_good=*/false) : options_.lanes->LeastLoaded();
  if (!shard) return MoveLater(std::move(moved));
  moved->reply_ring = reactor_.ring_fd();
  moved->refusal.clear();
  options_.lanes->Count(*shard, 1);
  MovedSession* raw = moved.get();
  moving_.emplace(raw, std::pair(std::move(moved), *shard));
  reactor_.Post((*shard)->ring_fd(), Token::Pointer(TokenKind::kAdopt, raw), 0);
}

// Its calls wait; nothing is refused for our shortage.
void Admission::MoveLater(std::unique_ptr<MovedSession> moved) {
  const auto held = std::make_shared<std::unique_ptr<MovedSession>>(std::move(moved));
  reactor_.After(std::chrono::milliseconds(kMoveRetryMs), [this, held] { OnMoved(std::move(*held)); });
}

void Admission::OnAdopted(MovedSession* raw) {
  auto decided = moving_.extract(raw);
  auto& [moved, shard] = decided.mapped();
  const auto at = sessions_.find(moved->id.text());
  if (!moved->refusal.empty()) {
    Leave(shard);
    return MoveLater(std::move(moved));
  }
  if (at == sessions_.end()) {
    // Ended while it was on its way: what told its old shard found nobody there.
    reactor_.Post(shard->ring_fd(), Token::Slot(TokenKind::kEndSession, moved->index, moved->generation), 0);
    return;
  }
  SessionInfo& info = at->second;
  info.shard = shard;
  info.index = moved->index;
  info.generation = moved->generation;
}

bool Admission::Handle(uint64_t token, int32_t value) {
  switch (Token::KindOf(token)) {
    case TokenKind::kAdmitted:
      OnAdmitted(Token::PointerOf<NewSession>(token));
      return true;
    case TokenKind::kSessionEnded: {
      const std::unique_ptr<EndedSession> ended(Token::PointerOf<EndedSession>(token));
      const auto at = sessions_.find(ended->id.text());
      Leave(ended->shard);
      if (at == sessions_.end()) return true;  // its first record could not be written
      const SessionInfo session = at->second;
      sessions_.erase(at);
      LogEnd(session, *ended);
      if (ended_) ended_(session, *ended);
      return true;
    }
    case TokenKind::kMoved:
      OnMoved(std::unique_ptr<MovedSession>(Token::PointerOf<MovedSession>(token)));
      return true;
    case TokenKind::kAdopted:
      OnAdopted(Token::PointerOf<MovedSession>(token));
      return true;
    case TokenKind::kRecordFree:
      OnLogged(Token::PointerOf<Pending>(token), value == 0);
      return true;
    case TokenKind::kNone:
    case TokenKind::kListener:
    case TokenKind::kConnect:
    case TokenKind::kPoll:
    case TokenKind::kCancel:
    case TokenKind::kRecorded:
    case TokenKind::kAdmit:
    case TokenKind::kAdopt:
    case TokenKind::kStop:
    case TokenKind::kEndSession:
    case TokenKind::kClose:
    case TokenKind::kReactor:
      return false;
  }
  return false;
}

void Admission::OnAdmitted(NewSession* raw) {
  const auto decided = deciding_.extract(raw);
  const auto& [session, connection] = decided.mapped();
  if (!session->refusal.empty()) {
    Leave(session->shard);
    Close(std::move(raw->listener));
    if (connection != nullptr) Refuse(*connection, session->refusal);
    return;
  }
  auto pending = std::make_unique<Pending>();
  pending->connection = connection;
  if (connection != nullptr) connection->logging = pending.get();
  SessionInfo& info = pending->info;
  info.facts = session->facts;
  info.start_ticks = session->start_ticks;
  info.seccomp_filters = session->seccomp_filters;
  info.admitted_by = session->admitted_by;
  info.started_us = kernel::RealtimeUs();
  info.shard = session->shard;
  info.index = session->index;
  info.generation = session->generation;
  sessions_.emplace(info.facts.id.text(), info);

  // The session stands in the log before its module runs.
  audit::Record& record = pending->record;
  record.type = audit::RecordType::kSessionStart;
  record.session = &pending->info.facts;
  record.real_us = record.first_us = record.last_us = info.started_us;
  record.mono_ns = kernel::MonotonicNs();
  record.reply_ring = reactor_.ring_fd();
  record.reply_token = Token::Pointer(TokenKind::kRecordFree, pending.get());
  audit::Send(reactor_.ring(), options_.writer_ring, record);
  Pending* const key = pending.get();
  logging_.emplace(key, std::move(pending));
}

void Admission::OnLogged(Pending* raw, bool written) {
  const auto logged = logging_.extract(raw);
  Pending* pending = logged.mapped().get();
  audit::Returned(pending->record);
  if (pending->connection != nullptr) pending->connection->logging = nullptr;
  if (pending->is_end) return;
  const auto id = std::string(pending->info.facts.id.text());
  const auto at = sessions_.find(id);
  if (!written) {
    if (at != sessions_.end()) {
      const SessionInfo info = at->second;
      sessions_.erase(at);
      // One that is just being moved is ended when it arrives.
      if (info.shard != nullptr) reactor_.Post(info.shard->ring_fd(), Token::Slot(TokenKind::kEndSession, info.index, info.generation), 0);
    }
    if (pending->connection != nullptr) Refuse(*pending->connection, "the audit log cannot be written");
    return;
  }
  if (pending->connection != nullptr) {
    Reply(*pending->connection, wire::Encode(wire::Answer{.ok = true, .session = id, .code = {}, .error = {}}));
    if (started_ && at != sessions_.end()) started_(at->second);
  }
}

void Admission::LogEnd(const SessionInfo& session, const EndedSession& ended) {
  auto pending = std::make_unique<Pending>();
  pending->info = session;
  pending->is_end = true;
  audit::Record& record = pending->record;
  record.type = audit::RecordType::kSessionEnd;
  record.session = &pending->info.facts;
  record.calls = ended.calls;
  record.refusals = ended.refusals;
  record.real_us = record.first_us = record.last_us = kernel::RealtimeUs();
  record.mono_ns = kernel::MonotonicNs();
  record.reply_ring = reactor_.ring_fd();
  record.reply_token = Token::Pointer(TokenKind::kRecordFree, pending.get());
  audit::Send(reactor_.ring(), options_.writer_ring, record);
  Pending* const key = pending.get();
  logging_.emplace(key, std::move(pending));
}

void Admission::Refuse(Connection& connection, const std::string& text) {
  const auto failed = failed_;
  Reply(connection, wire::Encode(wire::Answer{.ok = false, .session = {}, .code = kCode, .error = text}));
  if (failed) failed(text);
}

void Admission::Reply(Connection& connection, const std::string& line) {
  (void)::send(connection.socket.get(), line.data(), line.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  Drop(connection);
}

void Admission::Drop(Connection& connection) {
  if (connection.poll != 0) reactor_.Forget(connection.poll);
  if (connection.timer != 0) reactor_.Forget(connection.timer);
  for (auto& [session, deciding] : deciding_)
    if (deciding.second == &connection) deciding.second = nullptr;
  if (connection.logging != nullptr) connection.logging->connection = nullptr;
  for (UniqueFd& fd : connection.descriptors) Close(std::move(fd));
  Close(std::move(connection.socket));
  connections_.erase(&connection);
}

// Whatever came from a peer may hold something whose close waits as long as the peer chose.
void Admission::Close(UniqueFd fd) {
  if (fd.valid()) reactor_.Post(options_.closer_ring, Token::Make(TokenKind::kClose, static_cast<uint64_t>(fd.Release())), 0);
}

}  // namespace oarlock::supervisor
