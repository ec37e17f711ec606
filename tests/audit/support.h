// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "audit/chain.h"
#include "audit/format.h"
#include "audit/host.h"
#include "audit/journal.h"
#include "audit/record.h"

namespace oarlock::audit::testing {

// A directory of its own that goes with the object.
class TempDirectory {
 public:
  TempDirectory();
  ~TempDirectory();
  TempDirectory(const TempDirectory&) = delete;
  TempDirectory& operator=(const TempDirectory&) = delete;
  [[nodiscard]] std::string path(std::string_view name) const { return path_ + "/" + std::string(name); }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

[[nodiscard]] std::string ReadFile(const std::string& path);
void WriteFile(const std::string& path, std::string_view content);
// The whole lines, without their newlines. Fails the test if the file does not end in one.
[[nodiscard]] std::vector<std::string> Lines(const std::string& path);
[[nodiscard]] size_t CountOf(const std::vector<std::string>& lines, std::string_view part);

// A session, a host and a call that stay the same, so that lines can be compared.
[[nodiscard]] SessionFacts SampleSession();
[[nodiscard]] Host SampleHost();
[[nodiscard]] Record SampleCall(Refusal refusal, std::string_view call, const SessionFacts& session);
void SetAddress(Record& record, std::string_view bytes);
[[nodiscard]] std::string Inet4(uint32_t address, uint16_t port);
[[nodiscard]] std::string Inet6(std::string_view address, uint16_t port);
[[nodiscard]] std::string Unix(std::string_view name);

// One line as Format makes it, sealed, without its newline.
[[nodiscard]] std::string FormatLine(const Record& record, const Stamp& stamp = {.sequence = 1});

// Options for a log `name` in `directory`, with its head beside it.
[[nodiscard]] WriterOptions LogOptions(const TempDirectory& directory, std::string_view name = "audit.jsonl");

// Verifies the log against its head.
[[nodiscard]] Verification VerifyLog(const std::string& path, const std::string& head_path = "");
[[nodiscard]] Head HeadOf(const std::string& head_path);

// Refusals that go into a journal, with what became of them.
struct Batch {
  explicit Batch(const SessionFacts& session) : session_(session) {}
  Record& Make(Refusal refusal = Refusal::kTcpNotProxy);
  // Adds `count` refusals to the journal.
  void Add(Journal& journal, size_t count);
  // Takes what is finished.
  void Take(Journal& journal);

  uint64_t written = 0, refused = 0;  // acknowledged with 0, with -EIO
  std::deque<Record> records;         // stay where they are

 private:
  const SessionFacts& session_;
};

// The sum that the log promises: `count` over refusals, AUDIT_UNAVAILABLE and GAP records.
[[nodiscard]] uint64_t SumOfCounts(const std::vector<std::string>& lines);

}  // namespace oarlock::audit::testing
