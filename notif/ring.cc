// SPDX-License-Identifier: Apache-2.0
#include "notif/ring.h"

#include <grp.h>
#include <liburing.h>
#include <poll.h>
#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif
#include <linux/capability.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <utility>
#include <vector>

#include "notif/base/check.h"

namespace oarlock {
namespace {

// The thread's effective identity, changed by raw system calls (glibc's wrappers would change every thread) and put back
// when it goes out of scope. Effective ids only: while the *real* uid is another's, that user may signal us.
class BorrowedIdentity {
 public:
  static Result<BorrowedIdentity> Take(const kernel::Credentials& wanted) {
    BorrowedIdentity self;
    self.uid_ = ::geteuid();
    self.gid_ = ::getegid();
    const int count = ::getgroups(0, nullptr);
    if (count < 0) return OARLOCK_FAIL("getgroups", errno);
    self.groups_.resize(static_cast<size_t>(count));
    if (count > 0 && ::getgroups(count, self.groups_.data()) < 0) return OARLOCK_FAIL("getgroups", errno);
    if (::syscall(SYS_capget, &self.header_, self.capabilities_) != 0) return OARLOCK_FAIL("capget", errno);

    const std::vector<gid_t> groups(wanted.groups.begin(), wanted.groups.end());
    if (groups != self.groups_) {
      if (::syscall(SYS_setgroups, groups.size(), groups.data()) != 0) return OARLOCK_FAIL("setgroups", errno);
      self.restore_groups_ = true;
    }
    if (wanted.gid != self.gid_ && ::syscall(SYS_setresgid, -1, wanted.gid, -1) != 0)
      return OARLOCK_FAIL("setresgid", errno, "to %u", wanted.gid);
    if (wanted.uid != self.uid_ && ::syscall(SYS_setresuid, -1, wanted.uid, -1) != 0)
      return OARLOCK_FAIL("setresuid", errno, "to %u", wanted.uid);
    // A change between non-zero uids keeps what is effective, so it is cleared by hand.
    __user_cap_data_struct none[2];
    for (int i = 0; i < 2; ++i) {
      none[i] = self.capabilities_[i];
      none[i].effective = 0;
    }
    if (::syscall(SYS_capset, &self.header_, none) != 0) return OARLOCK_FAIL("capset", errno);
    return self;
  }
  BorrowedIdentity(BorrowedIdentity&& other) noexcept
      : uid_(other.uid_), gid_(other.gid_), groups_(std::move(other.groups_)),
        restore_groups_(other.restore_groups_), active_(std::exchange(other.active_, false)) {
    capabilities_[0] = other.capabilities_[0];
    capabilities_[1] = other.capabilities_[1];
  }
  BorrowedIdentity(const BorrowedIdentity&) = delete;
  BorrowedIdentity& operator=(const BorrowedIdentity&) = delete;
  BorrowedIdentity& operator=(BorrowedIdentity&&) = delete;
  ~BorrowedIdentity() {
    if (!active_) return;
    // The uid first: it gives back the right to change the rest. A supervisor that cannot get back must not go on.
    if (::geteuid() != uid_) OARLOCK_CHECK(::syscall(SYS_setresuid, -1, uid_, -1) == 0);
    OARLOCK_CHECK(::syscall(SYS_capset, &header_, capabilities_) == 0);
    if (::getegid() != gid_) OARLOCK_CHECK(::syscall(SYS_setresgid, -1, gid_, -1) == 0);
    if (restore_groups_) OARLOCK_CHECK(::syscall(SYS_setgroups, groups_.size(), groups_.data()) == 0);
  }

 private:
  BorrowedIdentity() = default;
  uid_t uid_ = 0;
  gid_t gid_ = 0;
  std::vector<gid_t> groups_;
  bool restore_groups_ = false;
  bool active_ = true;
  __user_cap_header_struct header_{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct capabilities_[2]{};
};

// Completions run only when this thread asks for them, so nothing interrupts the loop (6.1).
constexpr unsigned kDeferred = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_SUBMIT_ALL;
// For a ring whose thread also sleeps in poll(2): there they run too, since what makes them interrupts that sleep. With deferred ones
// neither the ring's descriptor nor an eventfd wakes it on every kernel (6.12.117 loses the eventfd's signal for good, 7.2 and 7.3
// deliver it 7 ms late).
constexpr unsigned kAtOnce = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG | IORING_SETUP_SUBMIT_ALL;

}  // namespace

struct Ring::State {
  io_uring ring{};
  // What Watch was asked for; the place after the last is for the ring itself.
  pollfd watched[kMaxWatched + 1] = {};
  uint64_t watched_tokens[kMaxWatched] = {};
  unsigned watched_count = 0;
  bool may_watch = false;
  ~State() { ::io_uring_queue_exit(&ring); }

  io_uring_sqe* Next() {
    io_uring_sqe* sqe = ::io_uring_get_sqe(&ring);
    if (sqe == nullptr) {
      Submit(false);
      sqe = ::io_uring_get_sqe(&ring);
      OARLOCK_CHECK(sqe != nullptr, "the submission queue stays full");
    }
    return sqe;
  }

  // Completions wait for the thread to run what makes them, or for room.
  [[nodiscard]] bool HasWork() const {
    return (IO_URING_READ_ONCE(*ring.sq.kflags) & (IORING_SQ_TASKRUN | IORING_SQ_CQ_OVERFLOW)) != 0;
  }

  void WaitWatching(uint64_t timeout_ns) {
    if (::io_uring_sq_ready(&ring) != 0 || HasWork()) Submit(true);
    if (::io_uring_cq_ready(&ring) != 0) timeout_ns = 0;
    timespec timeout{};
    timeout.tv_sec = static_cast<time_t>(timeout_ns / 1'000'000'000);
    timeout.tv_nsec = static_cast<long>(timeout_ns % 1'000'000'000);
    watched[watched_count] = {ring.ring_fd, POLLIN, 0};
    if (::ppoll(watched, watched_count + 1, timeout_ns == UINT64_MAX ? nullptr : &timeout, nullptr) <= 0)
      for (pollfd& one : watched) one.revents = 0;
    if (watched[watched_count].revents != 0 || HasWork()) Submit(true);
  }

  // Moves out what WaitWatching found; each is asked for again by whoever wants it again.
  size_t TakeWatched(std::span<Completion> out) {
    size_t taken = 0;
    for (unsigned i = 0; i < watched_count && taken < out.size();) {
      if (watched[i].revents == 0) {
        ++i;
        continue;
      }
      out[taken++] = {watched_tokens[i], watched[i].revents};
      Forget(i);
    }
    return taken;
  }

  void Forget(unsigned i) {
    watched[i] = watched[--watched_count];
    watched_tokens[i] = watched_tokens[watched_count];
  }

  void Submit(bool collect) {
    const int result = collect ? ::io_uring_submit_and_get_events(&ring) : ::io_uring_submit(&ring);
    Accept(result);
  }

  // EBUSY and EAGAIN: the completion queue is full or memory is short; what is queued stays queued for the next turn.
  static void Accept(int result) {
    OARLOCK_CHECK(result >= 0 || result == -EINTR || result == -ETIME || result == -EBUSY || result == -EAGAIN,
                  "io_uring_enter gave %d", result);
  }
};

Ring::Ring(std::unique_ptr<State> state) : state_(std::move(state)) {}
Ring::Ring(Ring&&) noexcept = default;
Ring& Ring::operator=(Ring&&) noexcept = default;
Ring::~Ring() = default;

Result<Ring> Ring::Make(const Options& options) {
  int result = 0;
  for (const unsigned flags : {options.watches ? kAtOnce : kDeferred, unsigned{IORING_SETUP_COOP_TASKRUN | IORING_SETUP_SUBMIT_ALL}, 0U}) {
    io_uring_params params{};
    params.flags = flags | IORING_SETUP_CLAMP | IORING_SETUP_CQSIZE;
    params.cq_entries = options.completions;
    io_uring ring{};
    result = ::io_uring_queue_init_params(options.entries, &ring, &params);
    if (result == 0) {
      auto state = std::make_unique<State>();
      state->ring = ring;
      // A child of ours must never hold the ring's memory: with it, it could act as us (E-03). We do not fork without
      // exec either; this is the second line.
      (void)::io_uring_ring_dontfork(&state->ring);
      state->may_watch = options.watches;
      return Ring(std::move(state));
    }
    if (result != -EINVAL) break;
  }
  const char* remedy = "";
  if (result == -EPERM)
    remedy = "io_uring is switched off for us: set the sysctl kernel.io_uring_disabled to 0, or allow the io_uring "
             "calls in the container's seccomp profile";
  else if (result == -ENOSYS)
    remedy = "io_uring is not there: use a kernel with CONFIG_IO_URING, or allow its calls in the container's profile";
  return OARLOCK_FAIL("io_uring_setup", -result, "%s", remedy);
}

void Ring::Poll(int fd, short events, uint64_t token) {
  io_uring_sqe* sqe = state_->Next();
  ::io_uring_prep_poll_add(sqe, fd, static_cast<unsigned>(events));
  ::io_uring_sqe_set_data64(sqe, token);
}

bool Ring::Watch(int fd, short events, uint64_t token) {
  State& state = *state_;
  OARLOCK_CHECK(state.may_watch);
  if (state.watched_count == kMaxWatched) return false;
  state.watched[state.watched_count] = {fd, events, 0};
  state.watched_tokens[state.watched_count++] = token;
  return true;
}

bool Ring::Unwatch(uint64_t token) {
  State& state = *state_;
  for (unsigned i = 0; i < state.watched_count; ++i) {
    if (state.watched_tokens[i] != token) continue;
    state.Forget(i);
    return true;
  }
  return false;
}

void Ring::PollInstead() {
  State& state = *state_;
  for (unsigned i = state.watched_count; i-- > 0;) {
    if (state.watched[i].revents != 0) continue;  // is told in a moment
    Poll(state.watched[i].fd, state.watched[i].events, state.watched_tokens[i]);
    state.Forget(i);
  }
}

void Ring::Connect(int fd, const sockaddr* address, socklen_t size, uint16_t personality, uint64_t token) {
  io_uring_sqe* sqe = state_->Next();
  ::io_uring_prep_connect(sqe, fd, address, size);
  sqe->personality = personality;
  ::io_uring_sqe_set_data64(sqe, token);
}

void Ring::Cancel(uint64_t target, uint64_t token) {
  io_uring_sqe* sqe = state_->Next();
  ::io_uring_prep_cancel64(sqe, target, 0);
  ::io_uring_sqe_set_data64(sqe, token);
}

// The kernel orders what came before a Post before what follows its completion; ThreadSanitizer does not see the kernel and is
// told, by one place for each target ring.
#if defined(__SANITIZE_THREAD__)
static char ordered_by_posts[4096];
#define OARLOCK_BEFORE_POST(ring_fd) __tsan_release(&ordered_by_posts[(ring_fd) & 4095])
#define OARLOCK_AFTER_POST(ring_fd) __tsan_acquire(&ordered_by_posts[(ring_fd) & 4095])
#else
#define OARLOCK_BEFORE_POST(ring_fd) static_cast<void>(0)
#define OARLOCK_AFTER_POST(ring_fd) static_cast<void>(0)
#endif

void Ring::Post(int ring_fd, uint64_t token, int32_t value) {
  OARLOCK_BEFORE_POST(ring_fd);
  io_uring_sqe* sqe = state_->Next();
  ::io_uring_prep_msg_ring(sqe, ring_fd, static_cast<unsigned>(value), token, 0);
  // Our own completion is wanted only where it failed; it then carries kPostFailed.
  sqe->flags |= IOSQE_CQE_SKIP_SUCCESS;
  ::io_uring_sqe_set_data64(sqe, UINT64_MAX);
}

void Ring::SubmitAndWait(uint64_t timeout_ns) {
  if (state_->watched_count != 0) return state_->WaitWatching(timeout_ns);
  io_uring_cqe* cqe = nullptr;
  if (timeout_ns == UINT64_MAX) {
    State::Accept(::io_uring_submit_and_wait(&state_->ring, 1));
    return;
  }
  __kernel_timespec timeout{};
  timeout.tv_sec = static_cast<int64_t>(timeout_ns / 1'000'000'000);
  timeout.tv_nsec = static_cast<int64_t>(timeout_ns % 1'000'000'000);
  State::Accept(::io_uring_submit_and_wait_timeout(&state_->ring, &cqe, 1, &timeout, nullptr));
}

void Ring::SubmitAndCollect() { state_->Submit(true); }

size_t Ring::Take(std::span<Completion> out) {
  io_uring_cqe* cqe = nullptr;
  unsigned head = 0;
  unsigned seen = 0;
  size_t taken = state_->TakeWatched(out);
  io_uring_for_each_cqe(&state_->ring, head, cqe) {
    if (taken == out.size()) break;
    ++seen;
    OARLOCK_CHECK(cqe->user_data != UINT64_MAX, "a post to another ring failed: %d", cqe->res);
    out[taken++] = {cqe->user_data, cqe->res};
  }
  ::io_uring_cq_advance(&state_->ring, seen);
  if (seen != 0) OARLOCK_AFTER_POST(fd());
  return taken;
}

Result<uint16_t> Ring::RegisterPersonality(const kernel::Credentials& credentials) {
  auto identity = BorrowedIdentity::Take(credentials);
  if (!identity) return std::unexpected(identity.error());
  const int id = ::io_uring_register_personality(&state_->ring);
  if (id < 0) return OARLOCK_FAIL("io_uring_register_personality", -id);
  return static_cast<uint16_t>(id);
}

void Ring::UnregisterPersonality(uint16_t personality) {
  OARLOCK_CHECK(::io_uring_unregister_personality(&state_->ring, personality) == 0);
}

Status Ring::SetMaxBlockedWorkers(unsigned count) {
  unsigned values[2] = {0, count};  // bounded: unchanged; unbounded: what sockets use
  if (const int result = ::io_uring_register_iowq_max_workers(&state_->ring, values); result < 0)
    return OARLOCK_FAIL("io_uring_register_iowq_max_workers", -result);
  return {};
}

int Ring::fd() const noexcept { return state_->ring.ring_fd; }

}  // namespace oarlock
