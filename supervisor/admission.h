// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/socket.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "supervisor/ceiling.h"
#include "supervisor/lanes.h"
#include "supervisor/peer.h"
#include "supervisor/reactor.h"
#include "supervisor/session.h"
#include "supervisor/shard.h"

namespace oarlock::supervisor {

// A live session as admission and control know it.
struct SessionInfo {
  audit::SessionFacts facts;
  uint64_t start_ticks = 0;     // of the confined process: with its pid, who it is
  int seccomp_filters = 0;      // at admission
  uint32_t admitted_by = 0;     // uid of the peer
  uint64_t started_us = 0;
  Shard* shard = nullptr;       // null: on its way from one to another
  uint32_t index = 0, generation = 0;
};

// Who may register a sandbox, and what is checked before it is one. Runs on a reactor, off every call's path.
class Admission {
 public:
  struct Options {
    std::vector<uint32_t> admit_uids;        // beside uid 0 and our own
    std::vector<uint32_t> admit_gids;        // whose members may too
    std::optional<Ceiling> ceiling;
    std::vector<std::string> own_sockets;    // which no grant may name as its broker
    std::string runtime;                     // nor anything in here
    Lanes* lanes = nullptr;                  // outlives us
    int writer_ring = -1;
    int closer_ring = -1;
    std::optional<Ulid> session_id;          // of the one session of a private supervisor
    std::optional<Result<std::string>> reader_program;  // for sessions whose files can hang; absent: they go without
  };
  Admission(Reactor& reactor, Options options);
  ~Admission();

  // Accepts connections from a listening socket, for ever.
  void Listen(UniqueFd listening);
  // Serves one connection that we made ourselves (a private supervisor): the launcher is `expected`, or the socket's own peer.
  void Serve(UniqueFd connection, std::optional<pid_t> expected);
  void OnStarted(std::function<void(const SessionInfo&)> started) { started_ = std::move(started); }
  void OnEnded(std::function<void(const SessionInfo&, const EndedSession&)> ended) { ended_ = std::move(ended); }
  // A connection came to nothing: its text, for a private supervisor that has no other.
  void OnFailed(std::function<void(const std::string&)> failed) { failed_ = std::move(failed); }

  // No session is moved any more: the shards are about to stop.
  void Settle() { settled_ = true; }
  // A completion from a shard or the writer; false: not one of ours.
  bool Handle(uint64_t token, int32_t value);

  // The session that `pid` belongs to: it is the confined process or a descendant of it. Null: none that we can tell.
  [[nodiscard]] const SessionInfo* Find(pid_t pid) const;
  [[nodiscard]] std::vector<const SessionInfo*> Sessions() const;
  // Whether this peer may speak to us at all: uid, and no task of a live session.
  [[nodiscard]] Status MayAsk(const ucred& peer, const ProcessFacts& process) const;

 private:
  struct Connection;
  struct Pending;
  void Start(std::unique_ptr<Connection> connection);
  void Await(Connection& connection);
  void OnReadable(Connection& connection);
  void Complete(Connection& connection);
  void Refuse(Connection& connection, const std::string& text);
  void Reply(Connection& connection, const std::string& line);
  void Drop(Connection& connection);
  void Close(UniqueFd fd);
  [[nodiscard]] Result<std::unique_ptr<NewSession>> Examine(Connection& connection);
  [[nodiscard]] Result<std::unique_ptr<Reader>> ReaderFor(pid_t pid) const;
  [[nodiscard]] Status CheckProcess(const ProcessFacts& process) const;
  [[nodiscard]] Status CheckGrant(const Connection& connection, Grant& grant, const ProcessFacts& process) const;
  [[nodiscard]] Result<Shard*> LaneFor(const NewSession& session, const Connection& connection);
  void OnMoved(std::unique_ptr<MovedSession> moved);
  void MoveLater(std::unique_ptr<MovedSession> moved);
  void OnAdopted(MovedSession* moved);
  void Leave(Shard* shard);
  void OnAdmitted(NewSession* admitted);
  void OnLogged(Pending* pending, bool written);
  void LogEnd(const SessionInfo& session, const EndedSession& ended);

  Reactor& reactor_;
  Options options_;
  bool settled_ = false;
  std::vector<UniqueFd> listening_;
  std::map<const void*, std::unique_ptr<Connection>> connections_;
  std::map<NewSession*, std::pair<std::unique_ptr<NewSession>, Connection*>> deciding_;  // a shard has it
  std::map<Pending*, std::unique_ptr<Pending>> logging_;                                // the writer has it
  std::map<MovedSession*, std::pair<std::unique_ptr<MovedSession>, Shard*>> moving_;    // that shard has it
  std::map<uint32_t, std::shared_ptr<UserLoad>> users_;       // by the module's uid
  std::map<std::string, SessionInfo, std::less<>> sessions_;  // by id
  std::function<void(const SessionInfo&)> started_;
  std::function<void(const SessionInfo&, const EndedSession&)> ended_;
  std::function<void(const std::string&)> failed_;
};

}  // namespace oarlock::supervisor
