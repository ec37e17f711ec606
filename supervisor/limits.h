// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>

// Every bound of the supervisor, with its reason. At a bound a call *waits*; nothing that a policy allows is refused.
namespace oarlock::supervisor {

// Calls of one session that have been received and not yet answered; the rest wait in the kernel. A module of that many
// threads all blocked in connect is rare, and each costs us a descriptor.
inline constexpr uint32_t kMaxCallsPerSession = 256;
// Calls of one shard. Some 800 bytes each.
inline constexpr uint32_t kMaxCallsPerShard = 4096;
// Of the descriptors that the process may have, half are for received calls, two each.
inline constexpr uint64_t kDescriptorsPerCallShare = 4;
// Records of one shard on their way to the writer and back. Some 1.3 KiB each; the writer takes them in batches, so a
// few hundred keep it busy.
inline constexpr uint32_t kMaxRecordsPerShard = 256;
// So many calls in a row of one thread, and it is waited for beside the ring.
inline constexpr unsigned kAloneCalls = 16;
// Pidfds kept per session: more threads than this in connect at once just reopen theirs (5 us).
inline constexpr size_t kCachedTasks = 24;
// Where the process may have few descriptors, so many of them for each pidfd kept per session.
inline constexpr uint64_t kDescriptorsPerCachedTask = 256;
// How long a session waits for its share before it looks again.
inline constexpr uint64_t kParkedWaitNs = 5'000'000;

// How often a pending connect is looked at for signals and for its caller's end. A look costs 6 us.
inline constexpr uint64_t kLookIntervalNs = 100'000'000;
// Looks in one turn, so that thousands of pending connects cost 0.4 ms a turn and not a stall.
inline constexpr unsigned kLooksPerTurn = 64;
// Rounds of submitting connects within one turn before pending calls are looked at again.
inline constexpr unsigned kPassesPerTurn = 16;
// The longest sleep of a loop: a lost wake-up (io_uring had such bugs up to 7.3.3) costs a second, not for ever.
inline constexpr uint64_t kMaxWaitNs = 1'000'000'000;

// The watchdog's interval: a close that waits for somebody's linger time costs neighbours two of these, once.
inline constexpr long kWatchIntervalNs = 5'000'000;
// Looks without movement before it parks: a second.
inline constexpr unsigned kQuietLooks = 200;
// A wait longer than this in a step that a module can make slow counts against its session; honest programs cross it now and
// then on a busy machine, so it takes kStrikes of them within kStrikeWindowNs to send a session to the slow lane, and
// kPardonNs without one to bring it back. One that lasts kMoveNs is enough: a neighbour is to have no more than one wait of
// 50 ms a minute (E-212), and three in a row of those that a fork of much memory makes (265 ms, E-68) would be three.
inline constexpr uint64_t kStrikeNs = 1'000'000;
inline constexpr uint64_t kMoveNs = 40'000'000;
inline constexpr unsigned kStrikes = 3;
inline constexpr uint64_t kStrikeWindowNs = 1'000'000'000;
inline constexpr uint64_t kPardonNs = 60'000'000'000;
// How long the calls of a session wait for one of its own that hangs before they are refused.
inline constexpr uint64_t kHangNs = 2'000'000'000;
// A reader that died is started anew at most so often.
inline constexpr uint64_t kReaderRestartNs = 1'000'000'000;
// How often the stand-in looks at slow lanes, and while it answers for one; and how many calls of one it answers at a look.
inline constexpr int kStandInIdleMs = 100;
inline constexpr int kStandInBusyMs = 5;
inline constexpr unsigned kStandInCalls = 16;
// Calls and records of a slow lane.
inline constexpr uint32_t kMaxCallsPerLane = kMaxCallsPerSession;
inline constexpr uint32_t kMaxRecordsPerLane = 32;
// A session that cannot be moved now (no thread, no memory) is tried again after this; its calls wait.
inline constexpr int kMoveRetryMs = 200;
// How long a slow lane's thread is waited for when the supervisor ends.
inline constexpr int kLaneEndMs = 1000;

// Kernel workers kept free beyond one per session: reads of slow memory, closes.
inline constexpr unsigned kSpareWorkers = 16;

// The least RLIMIT_FSIZE, in bytes: below it there is no room for a log.
inline constexpr uint64_t kMinFileSize = 64ULL * 1024 * 1024;

// Our own shortage, not the other end's fault: what was asked for waits.
[[nodiscard]] constexpr bool IsShortage(int error) noexcept {
  return error == EMFILE || error == ENFILE || error == ENOMEM || error == ENOBUFS;
}
// ... and a listening socket is asked again after this; at once would spin.
inline constexpr std::chrono::milliseconds kAcceptRetry{100};
inline constexpr int kAcceptsAtOnce = 8;

// Admission.
inline constexpr size_t kMaxPendingPerUid = 16;        // connections that have not said all yet
inline constexpr size_t kMaxSessionsPerUid = 1024;
inline constexpr int kSpeakTimeoutMs = 5000;
inline constexpr size_t kMaxAncestors = 64;            // of a peer, looked through for live sessions
// How often a task's line of ancestors is begun anew because one of them has ended meanwhile.
inline constexpr int kLineageRestarts = 3;
// Descriptors that one session may hold at most: its listener and two per received call.
inline constexpr size_t kDescriptorsPerSession = 4;

}  // namespace oarlock::supervisor
