// SPDX-License-Identifier: Apache-2.0
#include "supervisor/lanes.h"

#include <sys/resource.h>

#include <algorithm>
#include <utility>

#include "notif/base/check.h"

namespace oarlock::supervisor {

Result<std::unique_ptr<Lanes>> Lanes::Start(const Options& options) {
  std::unique_ptr<Lanes> self(new Lanes(options));
  self->options_.shard.lanes = options.slow_lanes ? Shard::Options::Lanes::kFast : Shard::Options::Lanes::kNone;
  if (options.slow_lanes) {
    rlimit files{};
    (void)::getrlimit(RLIMIT_NOFILE, &files);
    const auto share = [&](uint64_t per_one, uint64_t most) { return std::clamp<uint64_t>(files.rlim_cur / per_one, 1, most); };
    self->budget_ = std::make_unique<Budget>(static_cast<uint32_t>(share(kDescriptorsPerCallShare, options.shard.max_calls)));
    self->options_.shard.budget = self->budget_.get();
    self->options_.shard.cached_tasks = share(kDescriptorsPerCachedTask, kCachedTasks);
  }
  for (unsigned i = 0; i < options.shards; ++i) self->fast_.push_back({OARLOCK_TRY(Shard::Start(self->options_.shard)), 0});
  if (options.slow_lanes) self->stand_in_ = OARLOCK_TRY(StandIn::Start(options.shard.writer_ring));
  return self;
}

void Lanes::Join() {
  for (const Fast& fast : fast_) fast.shard->Join();
  for (std::unique_ptr<Shard>& shard : slow_) {
    stand_in_->Forget(shard->lane().get());
    // One that hangs in its module's memory goes with the process; nothing of it may be taken from under it.
    if (!shard->JoinFor(std::chrono::milliseconds(kLaneEndMs))) shard.release()->Abandon();
  }
}

Shard* Lanes::LeastLoaded() const { return std::ranges::min_element(fast_, {}, &Fast::sessions)->shard.get(); }

void Lanes::Count(const Shard* shard, int sessions) {
  const auto at = std::ranges::find_if(fast_, [shard](const Fast& fast) { return fast.shard.get() == shard; });
  if (at != fast_.end()) at->sessions += sessions;
}

Result<Shard*> Lanes::Open(bool for_good) {
  OARLOCK_CHECK(options_.slow_lanes);
  Shard::Options options = options_.shard;
  options.max_calls = kMaxCallsPerLane;
  options.max_records = kMaxRecordsPerLane;
  options.lanes = for_good ? Shard::Options::Lanes::kSlowForGood : Shard::Options::Lanes::kSlow;
  slow_.push_back(OARLOCK_TRY(Shard::Start(options)));
  stand_in_->Watch(slow_.back()->lane());
  return slow_.back().get();
}

void Lanes::Retire(Shard* shard) {
  const auto at = std::ranges::find(slow_, shard, &std::unique_ptr<Shard>::get);
  if (at == slow_.end()) return;
  stand_in_->Forget(shard->lane().get());
  shard->Join();  // it has no session any more, hence nothing to hang in
  slow_.erase(at);
}

std::vector<Shard*> Lanes::All() const {
  std::vector<Shard*> all;
  for (const Fast& fast : fast_) all.push_back(fast.shard.get());
  for (const auto& shard : slow_) all.push_back(shard.get());
  return all;
}

}  // namespace oarlock::supervisor
