// SPDX-License-Identifier: Apache-2.0
#include "tests/audit/support.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "notif/base/unique_fd.h"
#include "notif/calls.h"

namespace oarlock::audit::testing {

TempDirectory::TempDirectory() {
  std::string pattern = ::testing::TempDir() + "/oarlock-audit-XXXXXX";
  if (::mkdtemp(pattern.data()) == nullptr) std::abort();
  path_ = pattern;
}

TempDirectory::~TempDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream content;
  content << file.rdbuf();
  return content.str();
}

void WriteFile(const std::string& path, std::string_view content) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << content;
}

std::vector<std::string> Lines(const std::string& path) {
  const std::string content = ReadFile(path);
  EXPECT_TRUE(content.empty() || content.back() == '\n') << "the log does not end in a newline";
  std::vector<std::string> lines;
  std::istringstream stream(content);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

size_t CountOf(const std::vector<std::string>& lines, std::string_view part) {
  return static_cast<size_t>(std::ranges::count_if(
      lines, [&](const std::string& line) { return line.find(part) != std::string::npos; }));
}

SessionFacts SampleSession() {
  SessionFacts session;
  session.id = Ulid(1'700'000'000'000, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10});
  std::strcpy(session.module, "weather");
  std::strcpy(session.kind, "runner");
  std::memset(session.policy_sha256, 'a', 64);
  session.pid = 4000;
  session.uid = 1001;
  session.has_proxy = true;
  std::strcpy(session.proxy, "127.0.0.1:3128");
  std::strcpy(session.broker, "/run/broker/weather.sock");
  return session;
}

Host SampleHost() {
  Host host;
  std::strcpy(host.hostname, "node1");
  std::strcpy(host.program, "oarlockd");
  host.pid = 321;
  host.uid = 0;
  host.boot_us = 1'699'000'000'000'000;
  host.ticks_per_second = 100;
  return host;
}

Record SampleCall(Refusal refusal, std::string_view call, const SessionFacts& session) {
  const CallRow* row = FindCall(call);
  if (row == nullptr) std::abort();
  Record record;
  record.refusal = refusal;
  record.error = Describe(refusal).error;
  record.session = &session;
  record.nr = static_cast<uint32_t>(Number(*row, kNativeArch));
  record.tid = 4002;
  record.notification = 0xfedc'ba98'7654'3210;
  record.task.pid = 4001;
  record.task.start_ticks = 123'456;
  record.task.uid = 1001;
  record.task.name_size = 4;
  std::memcpy(record.task.name, "curl", 4);
  record.task.path_size = 13;
  std::memcpy(record.task.path, "/usr/bin/curl", 13);
  record.real_us = 1'700'000'123'456'789;
  record.mono_ns = 55'000'000'001;
  record.queue_ns = 2'100;
  record.decision_ns = 950;
  return record;
}

void SetAddress(Record& record, std::string_view bytes) {
  const size_t size = std::min(bytes.size(), sizeof(record.address));
  std::memcpy(record.address, bytes.data(), size);
  record.address_size = static_cast<uint8_t>(size);
}

std::string Inet4(uint32_t address, uint16_t port) {
  sockaddr_in in{};
  in.sin_family = AF_INET;
  in.sin_port = htons(port);
  in.sin_addr.s_addr = htonl(address);
  return {reinterpret_cast<const char*>(&in), sizeof(in)};
}

std::string Inet6(std::string_view address, uint16_t port) {
  sockaddr_in6 in{};
  in.sin6_family = AF_INET6;
  in.sin6_port = htons(port);
  if (::inet_pton(AF_INET6, std::string(address).c_str(), &in.sin6_addr) != 1) std::abort();
  return {reinterpret_cast<const char*>(&in), sizeof(in)};
}

std::string Unix(std::string_view name) {
  const sa_family_t family = AF_UNIX;
  std::string bytes(reinterpret_cast<const char*>(&family), sizeof(family));
  bytes += name;
  return bytes;
}

std::string FormatLine(const Record& record, const Stamp& stamp) {
  std::vector<char> buffer(kMaxLineBytes);
  const size_t size = Format(record, SampleHost(), stamp, std::span<char, kMaxLineBytes>(buffer));
  EXPECT_EQ(buffer[size - 1], '\n');
  (void)Seal({buffer.data(), size - 1});
  return {buffer.data(), size - 1};
}

WriterOptions LogOptions(const TempDirectory& directory, std::string_view name) {
  WriterOptions options;
  options.path = directory.path(name);
  options.head_path = directory.path("audit.head");
  options.warn = [](const char*) {};
  return options;
}

Verification VerifyLog(const std::string& path, const std::string& head_path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  EXPECT_TRUE(fd.valid()) << path;
  std::optional<Head> head;
  if (!head_path.empty()) head = HeadOf(head_path);
  auto result = Verify(fd.get(), std::nullopt, head);
  EXPECT_TRUE(result.has_value());
  return result ? *result : Verification{};
}

Head HeadOf(const std::string& head_path) {
  const auto head = ParseHead(ReadFile(head_path));
  EXPECT_TRUE(head.has_value()) << head_path;
  return head.value_or(Head{});
}

Record& Batch::Make(Refusal refusal) {
  records.push_back(SampleCall(refusal, "connect", session_));
  SetAddress(records.back(), Inet4(0xc0000201, 443));
  return records.back();
}

void Batch::Add(Journal& journal, size_t count) {
  for (size_t i = 0; i < count; ++i) journal.Add(Make());
}

void Batch::Take(Journal& journal) {
  while (Record* record = journal.TakeFinished()) {
    EXPECT_TRUE(record->result == 0 || record->result == -EIO);
    ++(record->result == 0 ? written : refused);
  }
}

uint64_t SumOfCounts(const std::vector<std::string>& lines) {
  uint64_t sum = 0;
  for (const std::string& line : lines) {
    const auto value = nlohmann::json::parse(line, nullptr, false);
    if (value.is_discarded()) continue;
    const std::string code = value.value("status_code", "");
    const bool refusal = value.value("action_id", 0) == 2;
    if (refusal || code == "AUDIT_UNAVAILABLE" || code == "GAP") sum += value.value("count", uint64_t{1});
  }
  return sum;
}

}  // namespace oarlock::audit::testing
