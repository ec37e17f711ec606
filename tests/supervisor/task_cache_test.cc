// SPDX-License-Identifier: Apache-2.0
#include "supervisor/task_cache.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <condition_variable>
#include <cstdio>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "notif/kernel.h"

namespace oarlock::supervisor {
namespace {

// A thread that lives until it is told to end.
class LiveThread {
 public:
  LiveThread() : thread_([this] { Run(); }) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return tid_ != 0; });
  }
  ~LiveThread() { End(); }
  LiveThread(const LiveThread&) = delete;
  LiveThread& operator=(const LiveThread&) = delete;
  [[nodiscard]] pid_t tid() const noexcept { return tid_; }
  void End() {
    {
      const std::lock_guard lock(mutex_);
      over_ = true;
    }
    changed_.notify_all();
    if (thread_.joinable()) thread_.join();
  }

 private:
  void Run() {
    std::unique_lock lock(mutex_);
    tid_ = static_cast<pid_t>(::syscall(SYS_gettid));
    changed_.notify_all();
    changed_.wait(lock, [this] { return over_; });
  }
  std::mutex mutex_;
  std::condition_variable changed_;
  pid_t tid_ = 0;
  bool over_ = false;
  std::thread thread_;
};

// The thread that a pidfd is of.
pid_t TaskOf(int pidfd) {
  char path[64];
  (void)std::snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", pidfd);
  FILE* file = std::fopen(path, "re");
  if (file == nullptr) return -1;
  char line[256];
  int pid = -1;
  while (std::fgets(line, sizeof(line), file) != nullptr)
    if (std::sscanf(line, "Pid:\t%d", &pid) == 1) break;
  (void)std::fclose(file);
  return pid;
}

bool IsOpen(int fd) { return ::fcntl(fd, F_GETFD) >= 0; }

TEST(TaskCache, GivesThePidfdOfTheThreadAndKeepsIt) {
  TaskCache cache;
  LiveThread a, b;
  const int first = cache.Open(a.tid()), second = cache.Open(b.tid());
  ASSERT_GE(first, 0);
  ASSERT_GE(second, 0);
  EXPECT_NE(first, second);
  EXPECT_EQ(TaskOf(first), a.tid());
  EXPECT_EQ(TaskOf(second), b.tid());
  EXPECT_EQ(cache.Open(a.tid()), first);
  EXPECT_EQ(cache.Open(b.tid()), second);
  EXPECT_EQ(cache.size(), 2U);
  EXPECT_NE(::fcntl(first, F_GETFD) & FD_CLOEXEC, 0);
}

TEST(TaskCache, AThreadThatIsGoneIsAnErrnoAndNoEntry) {
  TaskCache cache;
  pid_t tid = 0;
  {
    LiveThread gone;
    tid = gone.tid();
  }
  EXPECT_EQ(cache.Open(tid), -ESRCH);
  EXPECT_LT(cache.Open(-1), 0);
  EXPECT_LT(cache.Open(0), 0);
  EXPECT_EQ(cache.size(), 0U);
}

TEST(TaskCache, AnEntryOfAThreadThatEndedPinsNothing) {
  TaskCache cache;
  LiveThread thread;
  const int pidfd = cache.Open(thread.tid());
  ASSERT_GE(pidfd, 0);
  const int pinned = kernel::PinDescriptor(pidfd, STDIN_FILENO);
  EXPECT_GE(pinned, 0);
  kernel::Close(pinned);
  thread.End();
  EXPECT_EQ(kernel::PinDescriptor(pidfd, STDIN_FILENO), -ESRCH);
  // The cache cannot know; dropping is what makes it look again.
  EXPECT_EQ(cache.Open(thread.tid()), pidfd);
  cache.Drop(thread.tid());
  EXPECT_FALSE(IsOpen(pidfd));
  EXPECT_EQ(cache.Open(thread.tid()), -ESRCH);
}

TEST(TaskCache, ReplacesTheOneThatWasLongestUnused) {
  TaskCache cache;
  std::vector<std::unique_ptr<LiveThread>> threads;
  std::vector<int> pidfds;
  for (size_t i = 0; i < kCachedTasks; ++i) {
    threads.push_back(std::make_unique<LiveThread>());
    pidfds.push_back(cache.Open(threads.back()->tid()));
    ASSERT_GE(pidfds.back(), 0);
  }
  EXPECT_EQ(cache.size(), kCachedTasks);
  EXPECT_EQ(std::set<int>(pidfds.begin(), pidfds.end()).size(), kCachedTasks);
  EXPECT_EQ(cache.Open(threads[0]->tid()), pidfds[0]);  // used again: the second is the oldest now
  LiveThread more;
  const int added = cache.Open(more.tid());
  ASSERT_GE(added, 0);
  EXPECT_EQ(TaskOf(added), more.tid());
  EXPECT_EQ(cache.size(), kCachedTasks);
  EXPECT_EQ(cache.Open(threads[0]->tid()), pidfds[0]);
  for (size_t i = 2; i < kCachedTasks; ++i) EXPECT_EQ(cache.Open(threads[i]->tid()), pidfds[i]) << i;
  EXPECT_EQ(TaskOf(cache.Open(threads[1]->tid())), threads[1]->tid());
}

TEST(TaskCache, ManyMoreThreadsThanEntriesStayTrueAndLeakNothing) {
  size_t open_before = 0;
  for (int fd = 0; fd < 1024; ++fd) open_before += IsOpen(fd) ? 1 : 0;
  {
    TaskCache cache;
    std::vector<std::unique_ptr<LiveThread>> threads;
    for (size_t i = 0; i < 3 * kCachedTasks; ++i) threads.push_back(std::make_unique<LiveThread>());
    unsigned random = 7;
    for (int i = 0; i < 5000; ++i) {
      random = random * 1103515245 + 12345;
      const pid_t tid = threads[(random >> 8) % threads.size()]->tid();
      if ((random >> 24) % 8 == 0) {
        cache.Drop(tid);
        continue;
      }
      const int pidfd = cache.Open(tid);
      ASSERT_GE(pidfd, 0);
      if (i % 37 == 0) ASSERT_EQ(TaskOf(pidfd), tid);
      ASSERT_LE(cache.size(), kCachedTasks);
    }
    size_t open_now = 0;
    for (int fd = 0; fd < 1024; ++fd) open_now += IsOpen(fd) ? 1 : 0;
    EXPECT_EQ(open_now, open_before + cache.size());
  }
  size_t open_after = 0;
  for (int fd = 0; fd < 1024; ++fd) open_after += IsOpen(fd) ? 1 : 0;
  EXPECT_EQ(open_after, open_before);
}

TEST(TaskCache, DroppingClosesThatOneAlone) {
  TaskCache cache;
  LiveThread a, b, c;
  const int first = cache.Open(a.tid()), second = cache.Open(b.tid()), third = cache.Open(c.tid());
  cache.Drop(12345678);  // nobody's
  EXPECT_EQ(cache.size(), 3U);
  cache.Drop(a.tid());
  EXPECT_EQ(cache.size(), 2U);
  EXPECT_FALSE(IsOpen(first));
  EXPECT_EQ(cache.Open(b.tid()), second);
  EXPECT_EQ(cache.Open(c.tid()), third);
  cache.Drop(c.tid());
  cache.Drop(b.tid());
  cache.Drop(b.tid());
  EXPECT_EQ(cache.size(), 0U);
  EXPECT_FALSE(IsOpen(second) || IsOpen(third));
  EXPECT_EQ(TaskOf(cache.Open(a.tid())), a.tid());
}

}  // namespace
}  // namespace oarlock::supervisor
