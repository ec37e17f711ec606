// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "audit/lines.h"
#include "audit/writer.h"
#include "notif/base/unique_fd.h"
#include "notif/ring.h"
#include "tests/audit/support.h"

namespace oarlock::audit::testing {

// What a shard does with the writer: a ring, a pool of records, acknowledgements. Made and used in one
// thread.
class FakeShard {
 public:
  FakeShard(int writer_ring, const SessionFacts& session, size_t pool, uint64_t first_id = 1)
      : ring_(*Ring::Make({.entries = 256, .completions = 4096})),
        writer_ring_(writer_ring),
        records_(pool),
        next_id_(first_id) {
    for (size_t i = 0; i < pool; ++i) {
      records_[i] = SampleCall(Refusal::kUnixNotBroker, "connect", session);
      SetAddress(records_[i], Unix("/run/docker.sock"));
      records_[i].reply_ring = ring_.fd();
      records_[i].reply_token = i;
    }
    for (size_t i = pool; i > 0; --i) free_.push_back(i - 1);
  }

  // Sends as many of `count` as the pool allows; how many.
  size_t Send(size_t count) {
    size_t sent = 0;
    for (; sent < count && !free_.empty(); ++sent) {
      Record& record = records_[free_.back()];
      free_.pop_back();
      record.notification = next_id_++;
      record.real_us = 0;
      audit::Send(ring_, writer_ring_, record);
    }
    ring_.SubmitAndCollect();
    return sent;
  }

  // Takes what has been acknowledged, waiting for the first.
  size_t Collect(uint64_t timeout_ns) {
    ring_.SubmitAndWait(timeout_ns);
    size_t total = 0;
    std::array<Completion, 64> completions;
    while (const size_t count = ring_.Take(completions)) {
      for (size_t i = 0; i < count; ++i) {
        Record& record = records_[completions[i].token];
        Returned(record);
        EXPECT_TRUE(completions[i].result == 0 || completions[i].result == -EIO) << completions[i].result;
        ++(completions[i].result == 0 ? written : refused);
        if (on_answer) on_answer(record.notification, completions[i].result);
        free_.push_back(completions[i].token);
      }
      total += count;
    }
    return total;
  }

  // Sends `count` records and waits for their answers.
  void Run(size_t count) {
    const uint64_t before = written + refused;
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    size_t sent = 0;
    while (written + refused < before + count) {
      sent += Send(count - sent);
      (void)Collect(100'000'000);
      ASSERT_LT(std::chrono::steady_clock::now(), deadline) << "answers are missing";
    }
  }

  uint64_t written = 0, refused = 0;
  std::function<void(uint64_t id, int result)> on_answer;
  [[nodiscard]] size_t in_flight() const { return records_.size() - free_.size(); }

 private:
  Ring ring_;
  int writer_ring_;
  std::vector<Record> records_;
  std::vector<size_t> free_;
  uint64_t next_id_;
};

// Which records are in a log that is being written, by their notification ids.
class IdsInLog {
 public:
  explicit IdsInLog(const std::string& path)
      : fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)), lines_(fd_.get()) {}
  bool Has(uint64_t id) {
    while (lines_.Next() == LineReader::Got::kLine) {
      static constexpr std::string_view kKey = R"("notif_id":")";
      const size_t at = lines_.line().find(kKey);
      if (at != std::string_view::npos)
        ids_.insert(
            std::strtoull(std::string(lines_.line().substr(at + kKey.size(), 20)).c_str(), nullptr, 10));
    }
    return ids_.contains(id);
  }

 private:
  UniqueFd fd_;
  LineReader lines_;
  std::set<uint64_t> ids_;
};

}  // namespace oarlock::audit::testing
