// SPDX-License-Identifier: Apache-2.0
// A program of its own: the children make threads, which ThreadSanitizer wants from a parent that never had
// any.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <random>

#include "audit/journal.h"
#include "audit/writer.h"
#include "tests/audit/shard.h"
#include "tests/audit/support.h"

namespace oarlock::audit {
namespace {

using testing::FakeShard;
using testing::IdsInLog;
using testing::LogOptions;
using testing::TempDirectory;
using testing::VerifyLog;

// kill -9 at any moment, many times over one log: every record that was acknowledged is in it, it stays one
// chain, and what was torn is closed and noted.
TEST(Writer, KilledAtAnyMoment) {
  const TempDirectory directory;
  const WriterOptions options = LogOptions(directory);
  const SessionFacts session = testing::SampleSession();
  constexpr size_t kMost = 100'000;
  void* const memory = ::mmap(nullptr, kMost, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  auto* const acknowledged = static_cast<std::atomic<uint8_t>*>(memory);
  std::mt19937 random(11);
  size_t kept = 0;
  uint64_t first_id = 1;
  for (int round = 0; round < 25; ++round) {
    SCOPED_TRACE(round);
    std::memset(memory, 0, kMost);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      auto writer = Writer::Start(options);
      if (!writer) ::_exit(1);
      FakeShard shard((*writer)->ring_fd(), session, 200, first_id);
      shard.on_answer = [&](uint64_t id, int result) {
        if (result == 0 && id - first_id < kMost) acknowledged[id - first_id].store(1);
      };
      for (;;) {
        (void)shard.Send(1 + random() % 200);
        (void)shard.Collect(1'000'000);
      }
    }
    for (int i = 0; i < 10'000 && acknowledged[0].load() == 0; ++i) ::usleep(1000);
    ::usleep(static_cast<useconds_t>(random() % 20'000));
    ASSERT_EQ(::kill(child, SIGKILL), 0);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << "it ended by itself: " << status;

    auto journal = Journal::Open(options, testing::SampleHost());
    ASSERT_TRUE(journal.has_value());
    for (int i = 0; i < 10; ++i) (*journal)->Turn(1'000'000'000);
    (*journal)->Close(1'000'000'000);
    const Verification result = VerifyLog(options.path, options.head_path);
    ASSERT_TRUE(result.intact()) << Sentence(result.findings[0].kind) << " in line "
                                 << result.findings[0].line;
    IdsInLog log(options.path);
    for (size_t i = 0; i < kMost; ++i) {
      if (acknowledged[i].load() == 0) continue;
      ASSERT_TRUE(log.Has(first_id + i)) << "record " << i << " was acknowledged and is lost";
      ++kept;
    }
    first_id += kMost;
  }
  EXPECT_GE(kept, 25U) << "each child had one acknowledged before it was killed";
  (void)::munmap(memory, kMost);
}

}  // namespace
}  // namespace oarlock::audit
