// SPDX-License-Identifier: Apache-2.0
#include "audit/writer.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "tests/audit/shard.h"
#include "tests/audit/support.h"

namespace oarlock::audit {
namespace {

using testing::CountOf;
using testing::FakeShard;
using testing::IdsInLog;
using testing::Lines;
using testing::LogOptions;
using testing::TempDirectory;
using testing::VerifyLog;

std::unique_ptr<Writer> StartWriter(const WriterOptions& options) {
  auto writer = Writer::Start(options);
  EXPECT_TRUE(writer.has_value()) << (writer ? "" : writer.error().Message());
  return writer ? std::move(*writer) : nullptr;
}

class WriterTest : public ::testing::Test {
 protected:
  TempDirectory directory_;
  WriterOptions options_ = LogOptions(directory_);
  SessionFacts session_ = testing::SampleSession();
};

TEST_F(WriterTest, AnswersWhenTheLineIsInTheFile) {
  auto writer = StartWriter(options_);
  FakeShard shard(writer->ring_fd(), session_, 64);
  IdsInLog log(options_.path);
  shard.on_answer = [&](uint64_t id, int result) {
    ASSERT_EQ(result, 0);
    ASSERT_TRUE(log.Has(id)) << "record " << id << " was acknowledged before its line was in the file";
  };
  shard.Run(3000);
  EXPECT_EQ(shard.written, 3000U);
  EXPECT_EQ(writer->counters().refusals.load(), 3000U);
  EXPECT_LE(writer->counters().batches.load(), 3000U);
  writer.reset();
  const Verification result = VerifyLog(options_.path, options_.head_path);
  EXPECT_TRUE(result.intact());
  EXPECT_EQ(result.records, 3003U);  // with the checkpoints
}

TEST_F(WriterTest, ManyRingsPostAtOnce) {
  auto writer = StartWriter(options_);
  constexpr size_t kRings = 4, kEach = 2500;
  std::vector<std::thread> threads;
  threads.reserve(kRings);
  std::atomic<uint64_t> written = 0;
  for (size_t i = 0; i < kRings; ++i)
    threads.emplace_back([&, i] {
      FakeShard shard(writer->ring_fd(), session_, 32 + 50 * i, 1 + i * 1'000'000);
      shard.Run(kEach);
      written += shard.written;
    });
  for (std::thread& thread : threads) thread.join();
  writer.reset();
  EXPECT_EQ(written.load(), kRings * kEach);
  EXPECT_TRUE(VerifyLog(options_.path, options_.head_path).intact());
  EXPECT_EQ(CountOf(Lines(options_.path), "UNIX_NOT_BROKER"), kRings * kEach);
  IdsInLog log(options_.path);
  for (size_t i = 0; i < kRings; ++i)
    for (size_t id = 0; id < kEach; ++id) ASSERT_TRUE(log.Has(1 + i * 1'000'000 + id));
}

TEST_F(WriterTest, WhatWasPostedIsWrittenBeforeItStops) {
  for (int round = 0; round < 20; ++round) {
    auto writer = StartWriter(options_);
    FakeShard shard(writer->ring_fd(), session_, 200);
    ASSERT_EQ(shard.Send(200), 200U);
    writer.reset();  // nobody waits for the answers
    EXPECT_EQ(CountOf(Lines(options_.path), "UNIX_NOT_BROKER"), static_cast<size_t>(200 * (round + 1)));
    while (shard.in_flight() > 0) ASSERT_GT(shard.Collect(5'000'000'000), 0U);
    EXPECT_EQ(shard.written, 200U);
  }
}

TEST_F(WriterTest, RecordsWithoutAnAnswerAreWrittenToo) {
  auto writer = StartWriter(options_);
  Record record;  // its own ring is not needed: the supervisor's last word
  record.type = RecordType::kSupervisorStop;
  auto ring = Ring::Make({.entries = 8, .completions = 16});
  ASSERT_TRUE(ring.has_value());
  Send(*ring, writer->ring_fd(), record);
  ring->SubmitAndCollect();
  writer.reset();
  EXPECT_EQ(CountOf(Lines(options_.path), "SUPERVISOR_STOPPED"), 1U);
}

TEST_F(WriterTest, ReopensWhileRecordsCome) {
  auto writer = StartWriter(options_);
  FakeShard shard(writer->ring_fd(), session_, 64);
  const std::string old = options_.path + ".1";
  shard.Run(500);
  ASSERT_EQ(::rename(options_.path.c_str(), old.c_str()), 0);
  writer->Reopen();
  shard.Run(500);
  writer.reset();
  const Verification first = VerifyLog(old);
  const Verification second = VerifyLog(options_.path, options_.head_path);
  EXPECT_TRUE(first.intact());
  EXPECT_TRUE(second.intact());
  EXPECT_EQ(second.first_previous, first.last.hash);
  EXPECT_EQ(CountOf(Lines(old), "UNIX_NOT_BROKER") + CountOf(Lines(options_.path), "UNIX_NOT_BROKER"), 1000U);
}

TEST_F(WriterTest, StartSaysWhyItCannot) {
  options_.path = directory_.path("missing/audit.jsonl");
  const auto writer = Writer::Start(options_);
  ASSERT_FALSE(writer.has_value());
  EXPECT_EQ(writer.error().code, ENOENT);
  EXPECT_NE(writer.error().Message().find(options_.path), std::string::npos);
}

}  // namespace
}  // namespace oarlock::audit
