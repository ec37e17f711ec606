// SPDX-License-Identifier: Apache-2.0
// From a shard's record to its line in the file and back: no heap memory.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "audit/format.h"
#include "audit/journal.h"
#include "audit/writer.h"
#include "tests/audit/shard.h"
#include "tests/audit/support.h"

namespace {
std::atomic<bool> g_counting = false;
std::atomic<uint64_t> g_allocations = 0;
void Count() noexcept {
  if (g_counting.load(std::memory_order_relaxed)) g_allocations.fetch_add(1, std::memory_order_relaxed);
}
}  // namespace

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
// The sanitizers have an allocator of their own, so only C++'s is counted. Not inlined, or the compiler sees
// malloc meet delete.
[[gnu::noinline]] void* operator new(size_t size) {
  Count();
  void* memory = std::malloc(size);
  if (memory == nullptr) std::abort();
  return memory;
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept { std::free(memory); }
#else
extern "C" {
void* __libc_malloc(size_t size);
void* __libc_calloc(size_t count, size_t size);
void* __libc_realloc(void* memory, size_t size);
void* malloc(size_t size) {
  Count();
  return __libc_malloc(size);
}
void* calloc(size_t count, size_t size) {
  Count();
  return __libc_calloc(count, size);
}
void* realloc(void* memory, size_t size) {
  Count();
  return __libc_realloc(memory, size);
}
}
#endif

namespace oarlock::audit {
namespace {

// How many allocations `work` makes, in any thread.
template <typename Work>
uint64_t Allocations(Work work) {
  g_allocations = 0;
  g_counting = true;
  work();
  g_counting = false;
  return g_allocations;
}

// Where the compiler cannot see that it is of no use.
void* volatile g_sink = nullptr;

TEST(Allocation, TheCounterCounts) {
  EXPECT_EQ(Allocations([] {
              g_sink = ::operator new(8);
              ::operator delete(g_sink);
            }),
            1U);
}

TEST(Allocation, FormattingMakesNone) {
  const SessionFacts session = testing::SampleSession();
  const Host host = testing::SampleHost();
  Record record = testing::SampleCall(Refusal::kUnixNotBroker, "connect", session);
  testing::SetAddress(record, testing::Unix("/run/docker.sock"));
  static char buffer[kMaxLineBytes];
  EXPECT_EQ(Allocations([&] {
              for (int i = 0; i < 100; ++i) {
                const size_t size = Format(record, host, {.sequence = 7, .real_us = 1},
                                           std::span<char, kMaxLineBytes>(buffer));
                (void)Seal({buffer, size - 1});
              }
            }),
            0U);
}

TEST(Allocation, TheJournalMakesNone) {
  const testing::TempDirectory directory;
  const SessionFacts session = testing::SampleSession();
  auto journal = Journal::Open(testing::LogOptions(directory), testing::SampleHost());
  ASSERT_TRUE(journal.has_value());
  std::vector<Record> records(3000, testing::SampleCall(Refusal::kTcpNotProxy, "connect", session));
  size_t finished = 0;
  EXPECT_EQ(Allocations([&] {
              for (Record& record : records) (*journal)->Add(record);
              while ((*journal)->waiting()) {
                (*journal)->Turn(1);
                while ((*journal)->TakeFinished() != nullptr) ++finished;
              }
            }),
            0U);
  EXPECT_EQ(finished, records.size());
}

TEST(Allocation, TheWriterMakesNone) {
  const testing::TempDirectory directory;
  const SessionFacts session = testing::SampleSession();
  auto writer = Writer::Start(testing::LogOptions(directory));
  ASSERT_TRUE(writer.has_value());
  testing::FakeShard shard((*writer)->ring_fd(), session, 64);
  shard.Run(64);  // whatever is set up at first use
  EXPECT_EQ(Allocations([&] { shard.Run(2000); }), 0U);
  EXPECT_EQ(shard.written, 2064U);
}

}  // namespace
}  // namespace oarlock::audit
