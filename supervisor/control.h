// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <string>

#include "supervisor/admission.h"

namespace oarlock::supervisor {

// The control socket: SEQPACKET, one JSON object a message, each answered by one. Who may ask: as for admission.
//   {"oarlock":1,"verb":"check","pid":N}  -> {"ok":true,"session":ID} where N is confined by a session of ours
//   {"oarlock":1,"verb":"ps"}             -> {"ok":true,"sessions":[{session,pid,module,uid,started,...}]}
class Control {
 public:
  Control(Reactor& reactor, Admission& admission, int closer_ring)
      : reactor_(reactor), admission_(admission), closer_ring_(closer_ring) {}
  void Listen(UniqueFd listening);

 private:
  struct Peer {
    UniqueFd socket;
    Reactor::Id timer = 0, poll = 0;
  };
  void Take(UniqueFd socket);
  void Await(int fd);
  void OnReadable(int fd);
  void Drop(int fd);
  [[nodiscard]] std::string Answer(const std::string& request, const ucred& peer);

  Reactor& reactor_;
  Admission& admission_;
  int closer_ring_;
  std::map<int, Peer> peers_;
  UniqueFd listening_;
};

// A bound and listening unix socket of ours: a stale file of a dead supervisor is replaced, a living one is EADDRINUSE. `mode`
// is set before anybody can connect.
[[nodiscard]] Result<UniqueFd> ListenUnix(const std::string& path, int type, unsigned mode, int gid = -1);

}  // namespace oarlock::supervisor
