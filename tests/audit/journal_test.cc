// SPDX-License-Identifier: Apache-2.0
#include "audit/journal.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/fs.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>
#include <set>

#include "audit/limits.h"
#include "notif/base/unique_fd.h"
#include "tests/audit/support.h"

namespace oarlock::audit {
namespace {

using testing::Batch;
using testing::CountOf;
using testing::Lines;
using testing::LogOptions;
using testing::SumOfCounts;
using testing::TempDirectory;
using testing::VerifyLog;

constexpr uint64_t kSecond = 1'000'000'000;

// A log that can be made full at any byte: RLIMIT_FSIZE gives short writes and then EFBIG, as a full disk
// gives ENOSPC.
class FileSizeLimit {
 public:
  FileSizeLimit() {
    (void)::getrlimit(RLIMIT_FSIZE, &before_);
    handler_ = ::signal(SIGXFSZ, SIG_IGN);
  }
  ~FileSizeLimit() {
    (void)::setrlimit(RLIMIT_FSIZE, &before_);
    (void)::signal(SIGXFSZ, handler_);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;
  void Set(uint64_t bytes) const {
    const rlimit limit{bytes, before_.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
  }
  void Lift() const { (void)::setrlimit(RLIMIT_FSIZE, &before_); }

 private:
  rlimit before_{};
  void (*handler_)(int) = nullptr;
};

class JournalTest : public ::testing::Test {
 protected:
  std::unique_ptr<Journal> Open() {
    auto journal = Journal::Open(options_, testing::SampleHost());
    EXPECT_TRUE(journal.has_value()) << (journal ? "" : journal.error().Message());
    return journal ? std::move(*journal) : nullptr;
  }
  // Turns until nothing is waiting, time standing still.
  void Drain(Journal& journal, uint64_t now_ns = kSecond) {
    for (int i = 0; i < 10'000 && journal.wake_at_ns() <= now_ns; ++i) {
      journal.Turn(now_ns);
      batch_.Take(journal);
    }
  }
  std::vector<std::string> LogLines() { return Lines(options_.path); }
  std::string Code(const std::string& line) {
    const auto value = nlohmann::json::parse(line, nullptr, false);
    return value.is_discarded() ? "(no record)" : value.value("status_code", "");
  }
  std::vector<std::string> Codes() {
    std::vector<std::string> codes;
    for (const std::string& line : LogLines()) codes.push_back(Code(line));
    return codes;
  }
  void ExpectIntact(uint64_t records) {
    const Verification result = VerifyLog(options_.path, options_.head_path);
    EXPECT_TRUE(result.intact()) << Sentence(result.findings[0].kind) << " in line "
                                 << result.findings[0].line;
    EXPECT_EQ(result.records, records);
    EXPECT_EQ(result.last, testing::HeadOf(options_.head_path));
  }

  TempDirectory directory_;
  WriterOptions options_ = LogOptions(directory_);
  SessionFacts session_ = testing::SampleSession();
  Batch batch_{session_};
};

// --- the chain over restarts
// -------------------------------------------------------------------------------------------

TEST_F(JournalTest, WritesOneChainOverRestarts) {
  for (int run = 0; run < 3; ++run) {
    auto journal = Open();
    batch_.Add(*journal, 10);
    Drain(*journal);
    journal->Close(kSecond);
  }
  EXPECT_EQ(batch_.written, 30U);
  ExpectIntact(30);
  const auto lines = LogLines();
  std::set<std::string> ids;
  for (size_t i = 0; i < lines.size(); ++i) {
    const auto value = nlohmann::json::parse(lines[i]);
    EXPECT_EQ(value["metadata"]["sequence"], i + 1);
    ids.insert(value["metadata"]["uid"]);
  }
  EXPECT_EQ(ids.size(), 30U);
}

TEST_F(JournalTest, CheckpointsStandAtTheirPlaces) {
  auto journal = Open();
  batch_.Add(*journal, 2500);
  Drain(*journal);
  EXPECT_EQ(batch_.written, 2500U);
  ExpectIntact(2502);
  const auto lines = LogLines();
  EXPECT_EQ(Code(lines[kCheckpointEvery - 1]), "CHECKPOINT");
  EXPECT_EQ(Code(lines[2 * kCheckpointEvery - 1]), "CHECKPOINT");
  EXPECT_EQ(CountOf(lines, "CHECKPOINT"), 2U);
  EXPECT_EQ(journal->counters().records.load(), 2502U);
  EXPECT_EQ(journal->counters().refusals.load(), 2500U);
}

TEST_F(JournalTest, ATornLineIsClosedAndNoted) {
  {
    auto journal = Open();
    batch_.Add(*journal, 3);
    Drain(*journal);
  }
  const std::string torn = LogLines()[2].substr(0, 900);
  testing::WriteFile(options_.path, testing::ReadFile(options_.path) + torn);
  auto journal = Open();
  batch_.Add(*journal, 1);
  Drain(*journal);
  ExpectIntact(5);
  EXPECT_EQ(VerifyLog(options_.path).torn, 1U);
  const auto lines = LogLines();
  EXPECT_EQ(lines[3], torn);
  EXPECT_EQ(Code(lines[4]), "TORN_LINE");
  EXPECT_EQ(nlohmann::json::parse(lines[4])["unmapped"]["torn_bytes"], 900);
  EXPECT_EQ(Code(lines[5]), "TCP_NOT_PROXY");
}

TEST_F(JournalTest, ALineThatLacksItsNewlineAloneIsARecord) {
  {
    auto journal = Open();
    batch_.Add(*journal, 3);
    Drain(*journal);
  }
  std::string content = testing::ReadFile(options_.path);
  content.pop_back();
  testing::WriteFile(options_.path, content);
  auto journal = Open();
  batch_.Add(*journal, 1);
  Drain(*journal);
  ExpectIntact(4);
}

TEST_F(JournalTest, AHeadBehindTheLogIsHarmless) {
  Head between;
  {
    auto journal = Open();
    batch_.Add(*journal, 3);
    Drain(*journal);
    between = journal->end();
    batch_.Add(*journal, 3);
    Drain(*journal);
  }
  const auto text = FormatHead(between);
  testing::WriteFile(options_.head_path, {text.data(), text.size()});
  auto journal = Open();
  batch_.Add(*journal, 1);
  Drain(*journal);
  ExpectIntact(7);
  EXPECT_EQ(CountOf(LogLines(), "TCP_NOT_PROXY"), 7U);
}

std::vector<std::string>* g_warnings = nullptr;

TEST_F(JournalTest, AHeadAheadOfTheLogMeansThatItWasCut) {
  std::vector<std::string> warnings;
  g_warnings = &warnings;
  options_.warn = [](const char* text) { g_warnings->push_back(text); };
  {
    auto journal = Open();
    batch_.Add(*journal, 10);
    Drain(*journal);
  }
  auto lines = LogLines();
  std::string cut;
  for (size_t i = 0; i < 7; ++i) cut += lines[i] + "\n";
  testing::WriteFile(options_.path, cut);
  EXPECT_FALSE(VerifyLog(options_.path, options_.head_path).intact());
  EXPECT_TRUE(warnings.empty());
  auto journal = Open();
  batch_.Add(*journal, 1);
  Drain(*journal);
  g_warnings = nullptr;
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_NE(warnings[0].find("its end is missing"), std::string::npos) << warnings[0];
  lines = LogLines();
  ASSERT_EQ(lines.size(), 9U);
  const auto note = nlohmann::json::parse(lines[7]);
  EXPECT_EQ(note["status_code"], "LOG_CUT");
  EXPECT_EQ(note["unmapped"]["last_sequence"], 7);
  EXPECT_EQ(note["unmapped"]["head_sequence"], 10);
  EXPECT_EQ(note["metadata"]["sequence"], 11);
  // The hole stays: verification shows where, for good.
  const Verification result = VerifyLog(options_.path, options_.head_path);
  ASSERT_EQ(result.findings_total, 2U);
  EXPECT_EQ(result.findings[0].kind, Finding::Kind::kSequence);
  EXPECT_EQ(result.findings[0].line, 8U);
  EXPECT_EQ(result.findings[0].expected, 8U);
}

TEST_F(JournalTest, ARemovedLogIsACutLog) {
  {
    auto journal = Open();
    batch_.Add(*journal, 4);
    Drain(*journal);
  }
  ASSERT_EQ(::unlink(options_.path.c_str()), 0);
  auto journal = Open();
  Drain(*journal);
  EXPECT_EQ(Codes(), std::vector<std::string>{"LOG_CUT"});
  ExpectIntact(1);  // a file that says that it continues
}

TEST_F(JournalTest, SaysWhatElseIsWrongWithItsEnd) {
  {
    auto journal = Open();
    batch_.Add(*journal, 4);
    Drain(*journal);
  }
  const std::string whole = testing::ReadFile(options_.path);
  const std::string head = testing::ReadFile(options_.head_path);
  const auto codes_after = [&](const std::string& log, const std::string& new_head) {
    testing::WriteFile(options_.path, log);
    testing::WriteFile(options_.head_path, new_head);
    auto journal = Open();
    Drain(*journal);
    auto codes = Codes();
    std::erase(codes, "TCP_NOT_PROXY");
    return codes;
  };
  using Strings = std::vector<std::string>;
  EXPECT_EQ(codes_after(whole, head), Strings{});
  EXPECT_EQ(codes_after(whole, ""), Strings{"HEAD_LOST"});
  EXPECT_EQ(codes_after(whole, std::string(kHeadSize, '\0')), Strings{"HEAD_LOST"});
  EXPECT_EQ(codes_after(whole + "somebody was here\n", head), (Strings{"(no record)", "LOG_FOREIGN"}));
  std::string altered = whole;
  altered[altered.size() - 900] ^= 1;
  EXPECT_EQ(codes_after(altered, head).back(), "LOG_ALTERED");
  std::string other_head = head;
  other_head[40] = other_head[40] == 'a' ? 'b' : 'a';
  EXPECT_EQ(codes_after(whole, other_head), Strings{"LOG_ALTERED"});
}

// --- the file
// ----------------------------------------------------------------------------------------------------------

TEST_F(JournalTest, CreatesTheLogWithItsMode) {
  const mode_t before = ::umask(0077);
  auto journal = Open();
  ::umask(before);
  for (const std::string& path : {options_.path, options_.head_path}) {
    struct stat status{};
    ASSERT_EQ(::stat(path.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 07777, 0640U);
  }
}

TEST_F(JournalTest, RefusesWhatIsNoLog) {
  const auto error = [&](const std::string& path) {
    WriterOptions options = options_;
    options.path = path;
    const auto journal = Journal::Open(options, testing::SampleHost());
    return journal ? std::string() : journal.error().Message();
  };
  const auto contains = [](const std::string& text, const char* part) {
    return text.find(part) != std::string::npos;
  };
  ASSERT_EQ(::symlink("/dev/null", directory_.path("link").c_str()), 0);
  EXPECT_TRUE(contains(error(directory_.path("link")), "ELOOP")) << error(directory_.path("link"));
  // A FIFO must not hold us up, whether or not anybody reads it.
  ASSERT_EQ(::mkfifo(directory_.path("fifo").c_str(), 0600), 0);
  EXPECT_TRUE(contains(error(directory_.path("fifo")), "not a regular file"));
  EXPECT_TRUE(contains(error("/dev/null"), "not a regular file"));
  EXPECT_TRUE(contains(error(directory_.path()), "EISDIR"));
  EXPECT_TRUE(contains(error(directory_.path("no/such/place")), "no/such/place"));
  testing::WriteFile(directory_.path("open"), "");
  ASSERT_EQ(::chmod(directory_.path("open").c_str(), 0666), 0);
  EXPECT_TRUE(contains(error(directory_.path("open")), "written by others (mode 0666)"));
  ASSERT_EQ(::chmod(directory_.path("open").c_str(), 0644), 0);
  EXPECT_EQ(error(directory_.path("open")), "");
  if (::geteuid() == 0) {
    testing::WriteFile(directory_.path("theirs"), "");
    ASSERT_EQ(::chown(directory_.path("theirs").c_str(), 65534, 65534), 0);
    EXPECT_TRUE(contains(error(directory_.path("theirs")), "belongs to uid 65534"));
  }
  WriterOptions options = options_;
  options.durability = Durability::kSynced;
  EXPECT_FALSE(Journal::Open(options, testing::SampleHost()).has_value());
}

TEST_F(JournalTest, ALeaseDoesNotHoldItUpForLong) {
  testing::WriteFile(options_.path, "");
  ASSERT_EQ(::chmod(options_.path.c_str(), 0640), 0);
  const UniqueFd holder(::open(options_.path.c_str(), O_RDONLY | O_CLOEXEC));
  auto* const before = ::signal(SIGIO, SIG_IGN);
  if (::fcntl(holder.get(), F_SETLEASE, F_RDLCK) != 0) GTEST_SKIP() << "no leases on this file system";
  timespec start{}, end{};
  (void)::clock_gettime(CLOCK_MONOTONIC, &start);
  const auto journal = Journal::Open(options_, testing::SampleHost());
  (void)::clock_gettime(CLOCK_MONOTONIC, &end);
  (void)::fcntl(holder.get(), F_SETLEASE, F_UNLCK);
  (void)::signal(SIGIO, before);
  ASSERT_FALSE(journal.has_value());
  EXPECT_EQ(journal.error().code, EWOULDBLOCK);
  EXPECT_LT(end.tv_sec - start.tv_sec, 10);
}

TEST_F(JournalTest, AReadersLockDoesNotStopIt) {
  auto journal = Open();
  const UniqueFd reader(::open(options_.path.c_str(), O_RDONLY | O_CLOEXEC));
  struct flock lock{};
  lock.l_type = F_RDLCK;
  ASSERT_EQ(::fcntl(reader.get(), F_OFD_SETLK, &lock), 0);
  batch_.Add(*journal, 1);
  Drain(*journal);
  EXPECT_EQ(batch_.written, 1U);
}

TEST_F(JournalTest, TakesALogByDescriptor) {
  const auto open = [&](int flags) {
    return ::open(options_.path.c_str(), flags | O_CREAT | O_CLOEXEC, 0600);
  };
  WriterOptions options = options_;
  options.path.clear();
  options.head_path.clear();
  for (const int flags : {O_RDWR | O_APPEND, O_WRONLY | O_APPEND}) {
    options.fd = open(flags);
    auto journal = Journal::Open(options, testing::SampleHost());
    ASSERT_TRUE(journal.has_value()) << journal.error().Message();
    batch_.Add(**journal, 2);
    Drain(**journal);
    (*journal)->Reopen();  // means nothing here
    Drain(**journal);
  }
  EXPECT_TRUE(VerifyLog(options_.path).intact());
  EXPECT_EQ(VerifyLog(options_.path).records, 4U);
  options.fd = open(O_RDWR);
  EXPECT_FALSE(Journal::Open(options, testing::SampleHost()).has_value())
      << "without O_APPEND lines could be overwritten";
  options.fd = open(O_RDONLY);
  EXPECT_FALSE(Journal::Open(options, testing::SampleHost()).has_value());
}

TEST_F(JournalTest, KeepsAReserve) {
  auto journal = Open();
  const auto allocated = [&] {
    struct stat status{};
    EXPECT_EQ(::stat(options_.path.c_str(), &status), 0);
    return static_cast<uint64_t>(status.st_blocks) * 512 - static_cast<uint64_t>(status.st_size);
  };
  struct stat status{};
  ASSERT_EQ(::stat(options_.path.c_str(), &status), 0);
  if (status.st_blocks == 0) GTEST_SKIP() << "this file system reserves nothing";
  EXPECT_EQ(status.st_size, 0);
  for (int i = 0; i < 20; ++i) {
    EXPECT_GE(allocated(), kReserveBytes - kReserveRefillBytes - kMaxBatchBytes / 2);
    batch_.Add(*journal, 100);
    Drain(*journal, kSecond * static_cast<uint64_t>(i + 1));
  }
  EXPECT_GT(testing::ReadFile(options_.path).size(), kReserveBytes) << "the reserve was never refilled";
}

TEST_F(JournalTest, ChangesByOthersAreRecords) {
  auto journal = Open();
  batch_.Add(*journal, 2);
  Drain(*journal);
  ASSERT_EQ(::chmod(options_.path.c_str(), 0666), 0);
  batch_.Add(*journal, 1);
  Drain(*journal);
  EXPECT_EQ(Codes(),
            (std::vector<std::string>{"TCP_NOT_PROXY", "TCP_NOT_PROXY", "LOG_MODE", "TCP_NOT_PROXY"}));
  EXPECT_EQ(nlohmann::json::parse(LogLines()[2])["unmapped"]["mode_after"], "0666");
  ExpectIntact(4);

  // An idle log is looked at too.
  ASSERT_EQ(::chmod(options_.path.c_str(), 0600), 0);
  journal->Turn(kSecond + 2 * kIdleLookNs);
  Drain(*journal);
  EXPECT_EQ(Codes().back(), "LOG_MODE");
  if (::geteuid() == 0) {
    ASSERT_EQ(::chown(options_.path.c_str(), 65534, 65534), 0);
    batch_.Add(*journal, 1);
    Drain(*journal);
    EXPECT_EQ(CountOf(LogLines(), "LOG_OWNER"), 1U);
    EXPECT_EQ(CountOf(LogLines(), "LOG_GROUP"), 1U);
  }
}

TEST_F(JournalTest, AnotherWritersLinesAreNotedAndNotGluedTo) {
  auto journal = Open();
  batch_.Add(*journal, 2);
  Drain(*journal);
  {
    const UniqueFd other(::open(options_.path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
    ASSERT_EQ(::write(other.get(), "half a line", 11), 11);
  }
  batch_.Add(*journal, 1);
  Drain(*journal);
  EXPECT_EQ(Codes(), (std::vector<std::string>{"TCP_NOT_PROXY", "TCP_NOT_PROXY", "(no record)", "LOG_GROWN",
                                               "TCP_NOT_PROXY"}));
  // Somebody cuts it.
  ASSERT_EQ(::truncate(options_.path.c_str(), 3000), 0);
  batch_.Add(*journal, 1);
  Drain(*journal);
  EXPECT_EQ(Codes(),
            (std::vector<std::string>{"TCP_NOT_PROXY", "(no record)", "LOG_SHRUNK", "TCP_NOT_PROXY"}));
  EXPECT_FALSE(VerifyLog(options_.path).intact());
}

TEST_F(JournalTest, RotationContinuesTheChain) {
  auto journal = Open();
  batch_.Add(*journal, 5);
  Drain(*journal);
  const std::string old = options_.path + ".1";
  ASSERT_EQ(::rename(options_.path.c_str(), old.c_str()), 0);
  batch_.Add(*journal, 1);  // before the signal: still the old file
  Drain(*journal);
  journal->Reopen();
  batch_.Add(*journal, 5);
  Drain(*journal);
  EXPECT_EQ(batch_.written, 11U);
  const auto before = Lines(old);
  EXPECT_EQ(before.size(), 7U);
  EXPECT_EQ(Code(before.back()), "CHECKPOINT");
  EXPECT_EQ(Codes()[0], "LOG_REOPENED");
  EXPECT_EQ(Codes().size(), 6U);
  const Verification first = VerifyLog(old);
  EXPECT_TRUE(first.intact());
  const UniqueFd fd(::open(options_.path.c_str(), O_RDONLY | O_CLOEXEC));
  const auto second = Verify(fd.get(), first.last, testing::HeadOf(options_.head_path));
  ASSERT_TRUE(second.has_value());
  EXPECT_TRUE(second->intact());
  EXPECT_EQ(second->last.sequence, 13U);
  ExpectIntact(6);

  // A reopen without a rotation changes nothing.
  journal->Reopen();
  Drain(*journal);
  ExpectIntact(6);
  // A restart right after a rotation goes on as well.
  journal.reset();
  journal = Open();
  batch_.Add(*journal, 1);
  Drain(*journal);
  ExpectIntact(7);
}

TEST_F(JournalTest, ARotationThatFailsKeepsTheOldFile) {
  auto journal = Open();
  batch_.Add(*journal, 1);
  Drain(*journal);
  const std::string old = options_.path + ".1";
  ASSERT_EQ(::rename(options_.path.c_str(), old.c_str()), 0);
  ASSERT_EQ(::mkdir(options_.path.c_str(), 0700), 0);
  journal->Reopen();
  batch_.Add(*journal, 1);
  Drain(*journal);
  EXPECT_EQ(batch_.written, 2U);
  EXPECT_EQ(Lines(old).size(), 2U);
  EXPECT_EQ(journal->wake_at_ns(), kSecond + kDownRetryNs) << "it is tried again";
  ASSERT_EQ(::rmdir(options_.path.c_str()), 0);
  Drain(*journal, kSecond + kDownRetryNs);
  EXPECT_EQ(Codes(), std::vector<std::string>{"LOG_REOPENED"});
}

TEST_F(JournalTest, ALogThatIsRemovedIsMadeNew) {
  auto journal = Open();
  batch_.Add(*journal, 3);
  Drain(*journal);
  ASSERT_EQ(::unlink(options_.path.c_str()), 0);
  batch_.Add(*journal, 1);
  Drain(*journal);
  EXPECT_EQ(batch_.written, 4U);
  EXPECT_EQ(Codes(), (std::vector<std::string>{"LOG_REOPENED", "LOG_REMOVED", "TCP_NOT_PROXY"}));
  EXPECT_EQ(nlohmann::json::parse(LogLines()[0])["metadata"]["sequence"], 4);
  ExpectIntact(3);
}

TEST_F(JournalTest, ALogThatCannotBeMadeNewIsUnavailable) {
  auto journal = Open();
  batch_.Add(*journal, 1);
  Drain(*journal);
  ASSERT_EQ(::unlink(options_.path.c_str()), 0);
  ASSERT_EQ(::mkdir(options_.path.c_str(), 0700), 0);
  batch_.Add(*journal, 2);
  journal->Turn(kSecond);
  batch_.Take(*journal);
  EXPECT_EQ(batch_.written, 1U) << "a line that nobody can read is no line";
  journal->Turn(kSecond + kUnwrittenWaitNs);
  batch_.Take(*journal);
  EXPECT_EQ(batch_.refused, 2U);
  ASSERT_EQ(::rmdir(options_.path.c_str()), 0);
  Drain(*journal, kSecond + kUnwrittenWaitNs + kDownRetryNs);
  EXPECT_EQ(SumOfCounts(LogLines()), 2U);
}

// --- a log that cannot be written
// --------------------------------------------------------------------------------------

TEST_F(JournalTest, RecordsWaitAndAreThenWritten) {
  const FileSizeLimit limit;
  auto journal = Open();
  batch_.Add(*journal, 1);
  Drain(*journal);
  limit.Set(testing::ReadFile(options_.path).size());
  batch_.Add(*journal, 3);
  journal->Turn(10 * kSecond);
  batch_.Take(*journal);
  EXPECT_EQ(batch_.written, 1U);
  EXPECT_EQ(batch_.refused, 0U);
  EXPECT_TRUE(journal->waiting());
  EXPECT_FALSE(journal->counters().available.load());
  EXPECT_EQ(journal->wake_at_ns(), 10 * kSecond + kRetryNs);
  // More come meanwhile and are taken.
  batch_.Add(*journal, 2);
  journal->Turn(10 * kSecond + 2 * kRetryNs);
  batch_.Take(*journal);
  EXPECT_EQ(batch_.written, 1U);
  limit.Lift();
  Drain(*journal, 14 * kSecond);
  EXPECT_EQ(batch_.written, 6U);
  EXPECT_EQ(batch_.refused, 0U);
  EXPECT_TRUE(journal->counters().available.load());
  ExpectIntact(6);
  EXPECT_EQ(CountOf(LogLines(), "AUDIT_UNAVAILABLE"), 0U);
}

TEST_F(JournalTest, AfterFiveSecondsRefusalsAreCountedAndToldOnce) {
  const FileSizeLimit limit;
  auto journal = Open();
  batch_.Add(*journal, 1);
  Drain(*journal);
  limit.Set(testing::ReadFile(options_.path).size());

  batch_.Add(*journal, 3);
  batch_.records.back().count = 40;  // a folded one stands for many
  journal->Turn(10 * kSecond);
  journal->Turn(10 * kSecond + kUnwrittenWaitNs - 1);
  batch_.Take(*journal);
  EXPECT_EQ(batch_.refused, 0U);
  journal->Turn(10 * kSecond + kUnwrittenWaitNs);
  batch_.Take(*journal);
  EXPECT_EQ(batch_.refused, 3U);
  EXPECT_EQ(journal->counters().lost.load(), 42U);

  // Now they are answered at once.
  const uint64_t down = 10 * kSecond + kUnwrittenWaitNs;
  batch_.Add(*journal, 5);
  EXPECT_LE(journal->wake_at_ns(), down);
  journal->Turn(down + 1);
  batch_.Take(*journal);
  EXPECT_EQ(batch_.refused, 8U);
  // Not a refusal: lost as well, but in no count of refusals.
  Record& session_end = batch_.Make();
  session_end.type = RecordType::kSessionEnd;
  journal->Add(session_end);
  // An approval that has no record is refused.
  Record& approval = batch_.Make(Refusal::kNone);
  approval.verdict = Verdict::kAllowed;
  journal->Add(approval);
  // A gap record's refusals would be forgotten with it.
  Record& gap = batch_.Make();
  gap.type = RecordType::kGap;
  gap.count = 100;
  journal->Add(gap);
  journal->Turn(down + 2);
  batch_.Take(*journal);
  EXPECT_EQ(batch_.refused, 11U);
  EXPECT_EQ(journal->wake_at_ns(), down + kDownRetryNs) << "the log is tried each second";

  limit.Lift();
  batch_.Add(*journal, 2);
  journal->Turn(down + kDownRetryNs);
  batch_.Take(*journal);
  EXPECT_EQ(batch_.written, 3U);
  const auto lines = LogLines();
  ASSERT_EQ(lines.size(), 4U);
  const auto note = nlohmann::json::parse(lines[1]);
  EXPECT_EQ(note["status_code"], "AUDIT_UNAVAILABLE");
  EXPECT_EQ(note["count"], 42 + 5 + 1 + 100);
  EXPECT_EQ(note["unmapped"]["lost_records"], 3 + 5 + 3);
  EXPECT_TRUE(note.contains("start_time") && note.contains("end_time"));
  EXPECT_EQ(SumOfCounts(lines), 1U + 148U + 2U);
  ExpectIntact(4);
  // Told once.
  batch_.Add(*journal, 1);
  Drain(*journal, down + 3 * kSecond);
  EXPECT_EQ(CountOf(LogLines(), "AUDIT_UNAVAILABLE"), 1U);
  EXPECT_EQ(CountOf(LogLines(), "TCP_NOT_PROXY"), 4U);
}

TEST_F(JournalTest, ItIsToldWithoutAnotherRecordToo) {
  const FileSizeLimit limit;
  auto journal = Open();
  limit.Set(0);
  batch_.Add(*journal, 1);
  journal->Turn(kSecond);
  journal->Turn(kSecond + kUnwrittenWaitNs);
  limit.Lift();
  Drain(*journal, 2 * kSecond + kUnwrittenWaitNs);
  EXPECT_EQ(Codes(), std::vector<std::string>{"AUDIT_UNAVAILABLE"});
}

TEST_F(JournalTest, TheLastWordIsSaidAtTheEnd) {
  const FileSizeLimit limit;
  std::vector<std::string> warnings;
  g_warnings = &warnings;
  options_.warn = [](const char* text) { g_warnings->push_back(text); };
  for (const bool recovers : {true, false}) {
    auto journal = Open();
    limit.Set(0);
    batch_.Add(*journal, 2);
    journal->Turn(kSecond);
    journal->Turn(kSecond + kUnwrittenWaitNs);
    batch_.Take(*journal);
    if (recovers) limit.Lift();
    journal->Close(kSecond + kUnwrittenWaitNs + 1);
  }
  g_warnings = nullptr;
  EXPECT_EQ(SumOfCounts(LogLines()), 2U);
  ASSERT_FALSE(warnings.empty());
  EXPECT_NE(warnings.back().find("2 refusals have no record"), std::string::npos) << warnings.back();
}

// The disk is full at every possible byte of a batch, and the file is a sequence of whole lines all the same.
TEST_F(JournalTest, FullAtEveryByte) {
  const FileSizeLimit limit;
  size_t line_size = 0;
  {
    auto journal = Open();
    batch_.Add(*journal, 1);
    Drain(*journal);
    line_size = testing::ReadFile(options_.path).size();
  }
  uint64_t answered = 1;
  for (size_t room = 0; room <= 3 * line_size + 20;
       room += room % line_size < 3 || room % line_size > line_size - 3 ? 1 : 37) {
    SCOPED_TRACE(room);
    auto journal = Open();
    const size_t size = testing::ReadFile(options_.path).size();
    limit.Set(size + room);
    const uint64_t written = batch_.written, refused = batch_.refused;
    batch_.Add(*journal, 3);
    journal->Turn(kSecond);
    batch_.Take(*journal);
    ASSERT_EQ(batch_.refused, refused);
    // Exactly those are acknowledged whose lines are in the file as a whole.
    const auto lines = LogLines();
    ASSERT_EQ(CountOf(lines, "TCP_NOT_PROXY"), batch_.written);
    const uint64_t fit = batch_.written - written;
    journal->Turn(kSecond + kUnwrittenWaitNs);
    batch_.Take(*journal);
    ASSERT_EQ(batch_.refused, refused + 3 - fit);
    ASSERT_EQ(CountOf(LogLines(), "TCP_NOT_PROXY"), batch_.written);
    limit.Lift();
    Drain(*journal, 2 * kSecond + kUnwrittenWaitNs);
    answered += 3;
    ASSERT_EQ(SumOfCounts(LogLines()), answered);
    ASSERT_TRUE(VerifyLog(options_.path, options_.head_path).intact());
  }
  EXPECT_GT(batch_.refused, 10U);
  EXPECT_GT(batch_.written, 10U);
}

// An append-only file (chattr +a) does not let a piece be cut off: then the rest follows when there is room,
// and if its record has been given up meanwhile, the piece is a torn line that is closed and noted.
class AppendOnlyTest : public JournalTest {
 protected:
  void SetUp() override {
    testing::WriteFile(options_.path, "");
    ASSERT_EQ(::chmod(options_.path.c_str(), 0640), 0);
    if (!SetAppendOnly(true)) GTEST_SKIP() << "no append-only files here";
  }
  void TearDown() override { (void)SetAppendOnly(false); }
  bool SetAppendOnly(bool on) {
    const UniqueFd fd(::open(options_.path.c_str(), O_RDONLY | O_CLOEXEC));
    int flags = 0;
    if (::ioctl(fd.get(), FS_IOC_GETFLAGS, &flags) != 0) return false;
    flags = on ? flags | FS_APPEND_FL : flags & ~FS_APPEND_FL;
    return ::ioctl(fd.get(), FS_IOC_SETFLAGS, &flags) == 0;
  }
};

TEST_F(AppendOnlyTest, APieceIsFinishedLater) {
  const FileSizeLimit limit;
  auto journal = Open();
  batch_.Add(*journal, 1);
  Drain(*journal);
  const size_t size = testing::ReadFile(options_.path).size();
  limit.Set(size + 700);
  batch_.Add(*journal, 2);
  journal->Turn(kSecond);
  batch_.Take(*journal);
  EXPECT_EQ(batch_.written, 1U);
  EXPECT_EQ(testing::ReadFile(options_.path).size(), size + 700) << "the piece could not be cut off";
  batch_.Add(*journal, 1);
  // A bit more room, a bit more of the line.
  limit.Set(size + 900);
  journal->Turn(kSecond + kRetryNs);
  limit.Set(size + size + 100);
  journal->Turn(kSecond + 2 * kRetryNs);
  batch_.Take(*journal);
  EXPECT_EQ(batch_.written, 2U);
  limit.Lift();
  Drain(*journal, 2 * kSecond);
  EXPECT_EQ(batch_.written, 4U);
  ExpectIntact(4);
}

TEST_F(AppendOnlyTest, APieceOfARecordThatWasGivenUpIsATornLine) {
  const FileSizeLimit limit;
  auto journal = Open();
  batch_.Add(*journal, 1);
  Drain(*journal);
  const size_t size = testing::ReadFile(options_.path).size();
  limit.Set(size + 700);
  batch_.Add(*journal, 2);
  journal->Turn(kSecond);
  journal->Turn(kSecond + kUnwrittenWaitNs);
  batch_.Take(*journal);
  EXPECT_EQ(batch_.refused, 2U);
  // While it is away our own words get a piece in; that piece is finished, whatever is refused meanwhile.
  const uint64_t down = kSecond + kUnwrittenWaitNs;
  limit.Set(size + 1000);
  journal->Turn(down + kDownRetryNs);
  batch_.Add(*journal, 4);
  journal->Turn(down + kDownRetryNs + 1);
  batch_.Take(*journal);
  EXPECT_EQ(batch_.refused, 6U);
  limit.Lift();
  batch_.Add(*journal, 1);
  Drain(*journal, down + 3 * kDownRetryNs);
  EXPECT_EQ(batch_.written, 2U);
  const Verification result = VerifyLog(options_.path, options_.head_path);
  EXPECT_TRUE(result.intact()) << Sentence(result.findings[0].kind) << result.findings[0].line;
  EXPECT_EQ(result.torn, 1U);
  EXPECT_EQ(SumOfCounts(LogLines()), 8U);
}

TEST_F(AppendOnlyTest, APieceThatLacksItsNewlineAloneIsARecord) {
  const FileSizeLimit limit;
  auto journal = Open();
  batch_.Add(*journal, 1);
  Drain(*journal);
  const size_t size = testing::ReadFile(options_.path).size();
  limit.Set(2 * size - 1);
  batch_.Add(*journal, 2);
  journal->Turn(kSecond);
  batch_.Take(*journal);
  EXPECT_EQ(batch_.written, 1U);
  journal->Turn(kSecond + kUnwrittenWaitNs);
  batch_.Take(*journal);
  EXPECT_EQ(batch_.written, 2U);
  EXPECT_EQ(batch_.refused, 1U);
  limit.Lift();
  Drain(*journal, 3 * kSecond + kUnwrittenWaitNs);
  EXPECT_EQ(SumOfCounts(LogLines()), 3U);
  ExpectIntact(3);
}

TEST_F(AppendOnlyTest, FullAtManyBytes) {
  const FileSizeLimit limit;
  uint64_t answered = 0;
  auto journal = Open();
  uint64_t now = kSecond;
  for (size_t room = 1; room < 6000; room += 61) {
    SCOPED_TRACE(room);
    limit.Set(testing::ReadFile(options_.path).size() + room);
    batch_.Add(*journal, 3);
    answered += 3;
    journal->Turn(now);
    if (room % 2 == 0) journal->Turn(now += kUnwrittenWaitNs);
    if (room % 3 == 0) {
      batch_.Add(*journal, 1);
      answered += 1;
      journal->Turn(now += kDownRetryNs);
    }
    limit.Lift();
    Drain(*journal, now += kUnwrittenWaitNs);
    Drain(*journal, now += kDownRetryNs);
    batch_.Take(*journal);
    ASSERT_EQ(batch_.written + batch_.refused, answered);
    const auto codes = Codes();
    ASSERT_EQ(static_cast<uint64_t>(std::ranges::count(codes, "TCP_NOT_PROXY")), batch_.written);
    ASSERT_EQ(SumOfCounts(LogLines()), answered);
    const Verification result = VerifyLog(options_.path, options_.head_path);
    ASSERT_TRUE(result.intact()) << Sentence(result.findings[0].kind) << result.findings[0].line;
  }
  EXPECT_GT(batch_.refused, 10U);
}

}  // namespace
}  // namespace oarlock::audit
