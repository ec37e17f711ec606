// SPDX-License-Identifier: Apache-2.0
// A disk that is really full: a small tmpfs in a mount namespace of the test's own.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>

#include "audit/limits.h"
#include "audit/writer.h"
#include "notif/base/unique_fd.h"
#include "tests/audit/shard.h"
#include "tests/audit/support.h"

namespace oarlock::audit {
namespace {

using std::chrono::steady_clock;
using testing::CountOf;
using testing::FakeShard;
using testing::Lines;
using testing::SumOfCounts;
using testing::VerifyLog;

double Seconds(steady_clock::time_point since) {
  return std::chrono::duration<double>(steady_clock::now() - since).count();
}

class FullDiskTest : public ::testing::Test {
 protected:
  void Mount(const char* size) {
    if (::geteuid() != 0) GTEST_SKIP() << "needs root";
    // Before the writer's thread is made, so that it sees the same mounts.
    if (::unshare(CLONE_NEWNS) != 0) GTEST_SKIP() << "no mount namespaces here";
    ASSERT_EQ(::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr), 0);
    place_ = directory_.path("disk");
    ASSERT_EQ(::mkdir(place_.c_str(), 0700), 0);
    ASSERT_EQ(::mount("tmpfs", place_.c_str(), "tmpfs", 0, (std::string("mode=0700,size=") + size).c_str()),
              0);
    options_.path = place_ + "/audit.jsonl";
    options_.head_path = place_ + "/audit.head";
    options_.warn = [](const char*) {};
  }
  void Resize(const char* size) {
    ASSERT_EQ(::mount("tmpfs", place_.c_str(), "tmpfs", MS_REMOUNT, (std::string("size=") + size).c_str()),
              0);
  }
  void TearDown() override {
    if (!place_.empty()) (void)::umount2(place_.c_str(), MNT_DETACH);
  }

  testing::TempDirectory directory_;
  std::string place_;
  WriterOptions options_;
  SessionFacts session_ = testing::SampleSession();
};

TEST_F(FullDiskTest, CountsExactlyAndRecovers) {
  ASSERT_NO_FATAL_FAILURE(Mount("64k"));
  if (IsSkipped()) return;
  auto started = Writer::Start(options_);
  ASSERT_TRUE(started.has_value()) << started.error().Message();
  auto writer = std::move(*started);
  FakeShard shard(writer->ring_fd(), session_, 100);
  shard.on_answer = [&](uint64_t, int result) {
    // At any moment: no success that is not in the file.
    if (result == 0) {
      ASSERT_GE(CountOf(Lines(options_.path), "UNIX_NOT_BROKER"), shard.written);
    }
  };

  // More than fit: some are written, the rest waits for five seconds and is then answered.
  ASSERT_EQ(shard.Send(100), 100U);
  const auto full = steady_clock::now();
  while (shard.refused == 0) {
    (void)shard.Collect(50'000'000);
    ASSERT_LT(Seconds(full), 20.0);
  }
  EXPECT_GE(Seconds(full), 4.9);
  EXPECT_LE(Seconds(full), 8.0);
  while (shard.in_flight() > 0) ASSERT_GT(shard.Collect(1'000'000'000), 0U);
  EXPECT_GT(shard.written, 10U);
  EXPECT_EQ(shard.written + shard.refused, 100U);
  EXPECT_EQ(CountOf(Lines(options_.path), "UNIX_NOT_BROKER"), shard.written);
  EXPECT_FALSE(writer->counters().available.load());
  EXPECT_EQ(writer->counters().lost.load(), shard.refused);

  // From now on refusals are answered at once.
  for (int i = 0; i < 5; ++i) {
    const auto sent = steady_clock::now();
    shard.Run(20);
    EXPECT_LT(Seconds(sent), 0.9) << "they waited for a log that is known to be full";
  }
  EXPECT_EQ(shard.written + shard.refused, 200U);

  // Room again: it is told within about a second, by itself.
  Resize("4m");
  const auto room = steady_clock::now();
  while (CountOf(Lines(options_.path), "AUDIT_UNAVAILABLE") == 0) {
    ASSERT_LT(Seconds(room), 5.0);
    ::usleep(20'000);
  }
  shard.Run(50);
  writer.reset();
  const auto lines = Lines(options_.path);
  EXPECT_EQ(shard.written + shard.refused, 250U);
  EXPECT_EQ(SumOfCounts(lines), 250U);
  EXPECT_EQ(CountOf(lines, "UNIX_NOT_BROKER"), shard.written);
  EXPECT_EQ(CountOf(lines, "AUDIT_UNAVAILABLE"), 1U);
  EXPECT_TRUE(VerifyLog(options_.path, options_.head_path).intact());
}

TEST_F(FullDiskTest, StopsInTimeWhileItIsFull) {
  ASSERT_NO_FATAL_FAILURE(Mount("64k"));
  if (IsSkipped()) return;
  auto writer = Writer::Start(options_);
  ASSERT_TRUE(writer.has_value());
  FakeShard shard((*writer)->ring_fd(), session_, 100);
  ASSERT_EQ(shard.Send(100), 100U);
  const auto stop = steady_clock::now();
  writer->reset();
  EXPECT_LT(Seconds(stop), 8.0);
  while (shard.in_flight() > 0) ASSERT_GT(shard.Collect(1'000'000'000), 0U);
  EXPECT_GT(shard.refused, 0U);
  EXPECT_EQ(CountOf(Lines(options_.path), "UNIX_NOT_BROKER"), shard.written);
}

TEST_F(FullDiskTest, TheReserveOutlastsTheDisk) {
  ASSERT_NO_FATAL_FAILURE(Mount("8m"));
  if (IsSkipped()) return;
  auto writer = Writer::Start(options_);
  ASSERT_TRUE(writer.has_value());
  FakeShard shard((*writer)->ring_fd(), session_, 64);
  shard.Run(10);
  {
    const UniqueFd junk(::open((place_ + "/junk").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    const std::string block(4096, 'x');
    while (::write(junk.get(), block.data(), block.size()) == static_cast<ssize_t>(block.size())) {
    }
  }
  const auto full = steady_clock::now();
  shard.Run(200);
  EXPECT_LT(Seconds(full), 3.0);
  EXPECT_EQ(shard.written, 210U) << "the reserve was not there";
}

}  // namespace
}  // namespace oarlock::audit
