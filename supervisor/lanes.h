// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "supervisor/shard.h"
#include "supervisor/stand_in.h"

namespace oarlock::supervisor {

// The threads that serve sessions: the fast lane's shards, and one more for each session that is slow. Used on the reactor's
// thread.
class Lanes {
 public:
  struct Options {
    unsigned shards = 1;
    bool slow_lanes = true;       // false: there is one session, which has no neighbours
    Shard::Options shard;         // of the fast ones; of the others all but the sizes
  };
  [[nodiscard]] static Result<std::unique_ptr<Lanes>> Start(const Options& options);
  // After kStop was posted to All(): waits for their end. What they post to the reactor still comes after this.
  void Join();

  // The fast shard with the fewest sessions.
  [[nodiscard]] Shard* LeastLoaded() const;
  void Count(const Shard* shard, int sessions);
  // A new slow lane; EAGAIN, ENOMEM: no thread or memory for one now.
  [[nodiscard]] Result<Shard*> Open(bool for_good);
  // Of a slow lane: ends it, once its session has left. Of a fast shard: nothing.
  void Retire(Shard* shard);
  // null: between two, after it has made a fast one wait.
  [[nodiscard]] static bool IsSlow(const Shard* shard) noexcept { return shard == nullptr || shard->lane() != nullptr; }
  [[nodiscard]] std::vector<Shard*> All() const;

 private:
  explicit Lanes(const Options& options) : options_(options) {}
  struct Fast {
    std::unique_ptr<Shard> shard;
    int sessions = 0;
  };
  Options options_;
  std::unique_ptr<Budget> budget_;
  std::vector<Fast> fast_;
  std::vector<std::unique_ptr<Shard>> slow_;
  std::unique_ptr<StandIn> stand_in_;
};

}  // namespace oarlock::supervisor
