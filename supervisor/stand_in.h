// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <list>

#include "audit/record.h"
#include "notif/ring.h"
#include "supervisor/lane.h"

namespace oarlock::supervisor {

// Answers for slow lanes whose thread hangs in its module's memory, socket or file (a stalled FUSE page cannot be interrupted
// at all): once that has lasted 2 s, the session's further calls are refused with ADDR_UNREADABLE, recorded first, until the
// thread comes back. One thread for all lanes; it touches no module's memory itself.
class StandIn {
 public:
  [[nodiscard]] static Result<std::unique_ptr<StandIn>> Start(int writer_ring);
  ~StandIn();
  StandIn(const StandIn&) = delete;
  StandIn& operator=(const StandIn&) = delete;

  // From any one thread. After Forget the lane is looked at no more.
  void Watch(std::shared_ptr<Lane> lane);
  void Forget(const Lane* lane);

 private:
  explicit StandIn(int writer_ring) : writer_ring_(writer_ring) {}
  void Run();
  void Look(std::unique_lock<std::mutex>& lock);
  void RefuseOne(Session& session);
  [[nodiscard]] int Write(const Call& call, const Session& session);

  struct Watched {
    std::shared_ptr<Lane> lane;
    Beat::Reading last;
    uint64_t since_ns = 0;
    Session* taken = nullptr;   // while we answer for it
  };
  const int writer_ring_;
  std::mutex mutex_;            // of the list; no shard takes it
  std::condition_variable changed_;
  std::list<Watched> watched_;  // elements stay where they are while others come and go
  const Lane* in_hand_ = nullptr;  // a call of it is being refused, without the mutex: Forget of this one waits
  bool stopping_ = false;
  std::optional<Ring> ring_;
  audit::Record record_;
  std::thread thread_;
};

}  // namespace oarlock::supervisor
