// SPDX-License-Identifier: Apache-2.0
#include "audit/reader.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <deque>
#include <nlohmann/json.hpp>

#include "audit/escape.h"
#include "audit/format.h"
#include "audit/limits.h"
#include "audit/lines.h"
#include "notif/base/places.h"
#include "notif/base/unique_fd.h"

namespace oarlock::audit {
namespace {

using nlohmann::json;

// A log of a hundred thousand private runs in one directory still merges with few descriptors, but not
// without bound.
constexpr size_t kMergeChunkBytes = 8 * 1024;

// --- fields of a parsed line
// ----------------------------------------------------------------------------------------

// The member at the end of the path, or null.
template <typename... Keys>
const json* At(const json& value, Keys... keys) {
  const json* at = &value;
  for (const char* key : {keys...}) {
    if (!at->is_object()) return nullptr;
    const auto found = at->find(key);
    if (found == at->end()) return nullptr;
    at = &*found;
  }
  return at;
}

template <typename... Keys>
std::string TextAt(const json& value, Keys... keys) {
  const json* at = At(value, keys...);
  return at != nullptr && at->is_string() ? at->get<std::string>() : std::string();
}

template <typename... Keys>
int64_t IntAt(const json& value, int64_t absent, Keys... keys) {
  const json* at = At(value, keys...);
  return at != nullptr && at->is_number_integer() ? at->get<int64_t>() : absent;
}

template <typename... Keys>
uint64_t CountAt(const json& value, uint64_t absent, Keys... keys) {
  const json* at = At(value, keys...);
  return at != nullptr && at->is_number_unsigned() ? at->get<uint64_t>() : absent;
}

std::string PortText(const json& value) {
  const json* port = At(value, "dst_endpoint", "port");
  return port != nullptr && port->is_number_unsigned() ? ":" + std::to_string(port->get<uint64_t>())
                                                       : std::string();
}

// What a call was aimed at.
void FillTarget(const json& value, Entry* entry) {
  const std::string protocol = TextAt(value, "connection_info", "protocol_name");
  const std::string ip = TextAt(value, "dst_endpoint", "ip");
  if (!ip.empty()) {
    entry->address = (ip.find(':') != std::string::npos ? "[" + ip + "]" : ip) + PortText(value);
  } else if (At(value, "dst_endpoint", "name") != nullptr) {
    entry->address = TextAt(value, "dst_endpoint", "name");
    if (entry->address.empty()) entry->address = "(unnamed)";
  } else if (const json* name = At(value, "unmapped", "option_name");
             name != nullptr && name->is_number_integer()) {
    entry->address = "option " + std::to_string(IntAt(value, 0, "unmapped", "option_level")) + "/" +
                     std::to_string(name->get<int64_t>());
  }
  entry->target = protocol;
  if (!entry->address.empty()) entry->target += (protocol.empty() ? "" : " ") + entry->address;
}

std::optional<uint64_t> ParseTimeText(std::string_view text) noexcept;

uint64_t TimeOf(const json& value) {
  if (const auto precise = ParseTimeText(TextAt(value, "time_dt"))) return *precise;
  return CountAt(value, 0, "time") * 1000;
}

// --- moments
// --------------------------------------------------------------------------------------------------------

bool Digits(std::string_view& text, size_t count, uint64_t* value) noexcept {
  if (text.size() < count) return false;
  *value = 0;
  for (const char c : text.substr(0, count)) {
    if (c < '0' || c > '9') return false;
    *value = *value * 10 + static_cast<uint64_t>(c - '0');
  }
  text.remove_prefix(count);
  return true;
}

bool Literal(std::string_view& text, char c) noexcept {
  if (!text.starts_with(c)) return false;
  text.remove_prefix(1);
  return true;
}

bool IsLeap(uint64_t year) noexcept { return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0; }

// Days since 1970 of a date that exists, from 1970 on.
std::optional<uint64_t> Days(uint64_t year, uint64_t month, uint64_t day) noexcept {
  static constexpr uint8_t kLengths[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  if (year < 1970 || month < 1 || month > 12 || day < 1) return std::nullopt;
  if (day > kLengths[month - 1] + (month == 2 && IsLeap(year) ? 1U : 0U)) return std::nullopt;
  uint64_t days =
      (year - 1970) * 365 + (year - 1969) / 4 - (year - 1901) / 100 + (year - 1601) / 400 + day - 1;
  for (uint64_t m = 1; m < month; ++m) days += kLengths[m - 1];
  return days + (month > 2 && IsLeap(year) ? 1 : 0);
}

// A date with or without a time.
std::optional<uint64_t> ParseTimeText(std::string_view text) noexcept {
  uint64_t year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0, micros = 0;
  if (!Digits(text, 4, &year) || !Literal(text, '-') || !Digits(text, 2, &month) || !Literal(text, '-') ||
      !Digits(text, 2, &day))
    return std::nullopt;
  const auto days = Days(year, month, day);
  if (!days) return std::nullopt;
  int64_t offset_minutes = 0;
  if (!text.empty()) {
    if (!Literal(text, 'T') && !Literal(text, 't') && !Literal(text, ' ')) return std::nullopt;
    if (!Digits(text, 2, &hour) || !Literal(text, ':') || !Digits(text, 2, &minute)) return std::nullopt;
    if (Literal(text, ':')) {
      if (!Digits(text, 2, &second)) return std::nullopt;
      if (Literal(text, '.')) {
        uint64_t scale = 100'000, digit = 0;
        if (!Digits(text, 1, &digit)) return std::nullopt;
        do {
          micros += digit * scale;
          scale /= 10;
        } while (Digits(text, 1, &digit));
      }
    }
    if (hour > 23 || minute > 59 || second > 60) return std::nullopt;
    if (!text.empty() && !Literal(text, 'Z') && !Literal(text, 'z')) {
      const bool behind = text.front() == '-';
      uint64_t hours = 0, minutes = 0;
      if (text.front() != '+' && text.front() != '-') return std::nullopt;
      text.remove_prefix(1);
      if (!Digits(text, 2, &hours) || !Literal(text, ':') || !Digits(text, 2, &minutes) || hours > 23 ||
          minutes > 59)
        return std::nullopt;
      offset_minutes = static_cast<int64_t>(hours * 60 + minutes) * (behind ? -1 : 1);
    }
    if (!text.empty()) return std::nullopt;
  }
  const int64_t seconds =
      static_cast<int64_t>(*days * 86400 + hour * 3600 + minute * 60 + second) - offset_minutes * 60;
  if (seconds < 0) return std::nullopt;
  return static_cast<uint64_t>(seconds) * 1'000'000 + micros;
}

// --- files
// ----------------------------------------------------------------------------------------------------------

// Never waits on a FIFO and never reads a device.
Result<UniqueFd> OpenLog(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY));
  if (!fd.valid()) return OARLOCK_FAIL("open", errno, "'%s'", path.c_str());
  struct stat status{};
  if (::fstat(fd.get(), &status) != 0) return OARLOCK_FAIL("fstat", errno, "'%s'", path.c_str());
  if (!S_ISREG(status.st_mode))
    return OARLOCK_FAIL("open", EINVAL, "'%s' is not a regular file", path.c_str());
  return fd;
}

// "x.jsonl", "x.jsonl.1", "x.jsonl-20260102"; not what a compressor made of them.
bool IsLogName(std::string_view name) noexcept {
  static constexpr std::string_view kExtension = ".jsonl";
  const size_t at = name.rfind(kExtension);
  if (at == std::string_view::npos || at == 0 || name.front() == '.') return false;
  const std::string_view rest = name.substr(at + kExtension.size());
  if (rest.empty()) return true;
  return rest.size() > 1 && (rest.front() == '.' || rest.front() == '-') &&
         rest.find_first_not_of("0123456789", 1) == std::string_view::npos;
}

Result<std::vector<std::string>> LogsIn(const std::string& directory) {
  std::vector<std::string> paths;
  DIR* const stream = ::opendir(directory.c_str());
  if (stream == nullptr) return OARLOCK_FAIL("opendir", errno, "'%s'", directory.c_str());
  while (const dirent* entry = ::readdir(stream))
    if (IsLogName(entry->d_name)) paths.push_back(directory + "/" + entry->d_name);
  (void)::closedir(stream);
  std::ranges::sort(paths);
  return paths;
}

bool Contains(std::string_view text, std::string_view part) noexcept {
  return text.find(part) != std::string_view::npos;
}

}  // namespace

// --- one record
// -----------------------------------------------------------------------------------------------------

std::optional<Entry> ParseEntry(std::string line) {
  const json value = json::parse(line, nullptr, false);
  if (value.is_discarded() || !value.is_object()) return std::nullopt;
  Entry entry;
  entry.class_uid = static_cast<int>(IntAt(value, 0, "class_uid"));
  entry.id = TextAt(value, "metadata", "uid");
  if (entry.class_uid <= 0 || entry.id.empty()) return std::nullopt;
  entry.time_us = TimeOf(value);
  entry.sequence = CountAt(value, 0, "metadata", "sequence");
  entry.count = CountAt(value, 1, "count");
  entry.allowed = IntAt(value, 0, "action_id") == 1;
  entry.code = TextAt(value, "status_code");
  entry.detail = TextAt(value, "status_detail");
  entry.kind = TextAt(value, "unmapped", "kind");
  entry.session = TextAt(value, "actor", "process", "sandbox");
  if (entry.session.empty()) entry.session = TextAt(value, "unmapped", "session");
  entry.module = TextAt(value, "metadata", "tenant_uid");
  entry.process = TextAt(value, "actor", "process", "name");
  entry.path = TextAt(value, "actor", "process", "path");
  entry.pid = IntAt(value, 0, "actor", "process", "pid");
  entry.tid = IntAt(value, 0, "actor", "process", "tid");
  if (const std::string uid = TextAt(value, "actor", "process", "user", "uid"); !uid.empty()) {
    int64_t number = 0;
    const auto [end, error] = std::from_chars(uid.data(), uid.data() + uid.size(), number);
    if (error == std::errc() && end == uid.data() + uid.size()) entry.uid = number;
  }
  entry.call = TextAt(value, "unmapped", "syscall");
  FillTarget(value, &entry);
  entry.raw_addr = TextAt(value, "unmapped", "raw_addr");
  entry.error = static_cast<int>(IntAt(value, 0, "unmapped", "errno"));
  entry.error_name = TextAt(value, "unmapped", "errno_name");
  entry.rule = TextAt(value, "firewall_rule", "uid");
  entry.layer = TextAt(value, "firewall_rule", "type");
  entry.policy = TextAt(value, "policy", "uid");
  entry.hint = TextAt(value, "unmapped", "hint");
  entry.previous = TextAt(value, "unmapped", "prev_hash");
  entry.hash = TextAt(value, "unmapped", "hash");
  entry.line = std::move(line);
  return entry;
}

bool Filter::Matches(const Entry& entry) const {
  if (!all && (entry.IsProbe() || entry.allowed || IsRoutine(entry.code))) return false;
  if (since_us && entry.time_us < *since_us) return false;
  if (until_us && entry.time_us >= *until_us) return false;
  if (!id.empty() && entry.id != id) return false;
  if (!session.empty() && !entry.session.starts_with(session)) return false;
  if (!reason.empty() && entry.code != reason) return false;
  if (!process.empty()) {
    const bool number = process.find_first_not_of("0123456789") == std::string::npos;
    const bool is_pid =
        number && (process == std::to_string(entry.pid) || process == std::to_string(entry.tid));
    const bool named = entry.process == process || Unescape(entry.process) == process ||
                       entry.path == process || Unescape(entry.path) == process;
    if (!is_pid && !named) return false;
  }
  return target.empty() || Contains(entry.address, target) || Contains(Unescape(entry.address), target);
}

bool Filter::MayMatch(std::string_view line) const noexcept {
  // Without a backslash, JSON's strings are what they stand for. With one, whoever wrote the line may have hidden any of them
  // (\u0041, \t), so it is parsed.
  const auto may = [line](const std::string& wanted) { return wanted.empty() || Contains(line, wanted); };
  return (may(id) && may(session) && may(reason)) || line.find('\\') != std::string_view::npos;
}

// --- many records
// ---------------------------------------------------------------------------------------------------

struct Reader::State {
  // A file that is being read, with its next record.
  struct Source {
    std::string path;
    UniqueFd fd;
    LineReader lines;
    Entry next;
    Source(std::string name, UniqueFd opened, size_t chunk)
        : path(std::move(name)), fd(std::move(opened)), lines(fd.get(), kMaxReadLineBytes, 0, chunk) {}
  };
  // A file whose turn has not come.
  struct Waiting {
    uint64_t first_us;
    std::string path;
  };

  Filter filter;
  std::deque<Waiting> waiting;                   // by first_us
  std::vector<std::unique_ptr<Source>> sources;  // a heap: the earliest next record in front
  uint64_t bad_lines = 0, torn_lines = 0;
  std::vector<std::string> problems;

  // Heaps have the greatest in front, so later is less.
  static bool Later(const std::unique_ptr<Source>& a, const std::unique_ptr<Source>& b) noexcept {
    if (a->next.time_us != b->next.time_us) return a->next.time_us > b->next.time_us;
    return a->path > b->path;
  }

  void Problem(std::string text) {
    if (problems.size() < kMaxProblems) problems.push_back(std::move(text));
  }

  // The next record of one file that may be wanted. False at its end.
  bool Advance(Source& source) {
    for (;;) {
      switch (source.lines.Next()) {
        case LineReader::Got::kLine: {
          if (!filter.MayMatch(source.lines.line())) continue;
          auto entry = ParseEntry(std::string(source.lines.line()));
          if (!entry) {
            ++bad_lines;
            continue;
          }
          source.next = std::move(*entry);
          return true;
        }
        case LineReader::Got::kTooLong:
          ++bad_lines;
          continue;
        case LineReader::Got::kTorn:
          ++torn_lines;
          return false;
        case LineReader::Got::kEnd:
          return false;
        case LineReader::Got::kError:
          Problem("cannot read '" + source.path + "': " + ErrnoName(source.lines.error()));
          return false;
      }
    }
  }

  void Start(const std::string& path, UniqueFd fd, size_t chunk) {
    auto source = std::make_unique<Source>(path, std::move(fd), chunk);
    if (!Advance(*source)) return;
    sources.push_back(std::move(source));
    std::ranges::push_heap(sources, Later);
  }

  // Opens every file that may hold a record earlier than all those in front.
  void OpenDue() {
    while (!waiting.empty() &&
           (sources.empty() || waiting.front().first_us <= sources.front()->next.time_us)) {
      const std::string path = std::move(waiting.front().path);
      waiting.pop_front();
      if (auto fd = OpenLog(path))
        Start(path, std::move(*fd), kMergeChunkBytes);
      else
        Problem("cannot read: " + fd.error().Message());
    }
  }
};

Reader::Reader(std::unique_ptr<State> state) : state_(std::move(state)) {}
Reader::Reader(Reader&&) noexcept = default;
Reader& Reader::operator=(Reader&&) noexcept = default;
Reader::~Reader() = default;

Result<Reader> Reader::Open(std::span<const std::string> paths, Filter filter) {
  auto state = std::make_unique<State>();
  state->filter = std::move(filter);
  std::vector<std::string> files;
  std::vector<std::string> found;  // in directories
  for (const std::string& path : paths) {
    struct stat status{};
    if (::stat(path.c_str(), &status) != 0) return OARLOCK_FAIL("stat", errno, "'%s'", path.c_str());
    if (S_ISDIR(status.st_mode)) {
      auto logs = OARLOCK_TRY(LogsIn(path));
      found.insert(found.end(), std::make_move_iterator(logs.begin()), std::make_move_iterator(logs.end()));
    } else {
      files.push_back(path);
    }
  }
  const size_t chunk = files.size() + found.size() > 1 ? kMergeChunkBytes : kReadChunkBytes;
  for (const std::string& path : files) state->Start(path, OARLOCK_TRY(OpenLog(path)), chunk);
  // Where each file begins in time; a file without a record is done with.
  for (std::string& path : found) {
    auto fd = OpenLog(path);
    if (!fd) {
      state->Problem("cannot read: " + fd.error().Message());
      continue;
    }
    LineReader lines(fd->get(), kMaxReadLineBytes, 0, kMergeChunkBytes);
    for (auto got = lines.Next(); got == LineReader::Got::kLine || got == LineReader::Got::kTooLong;
         got = lines.Next()) {
      const auto entry = ParseEntry(std::string(lines.line()));
      if (!entry) continue;
      state->waiting.push_back({entry->time_us, std::move(path)});
      break;
    }
  }
  std::ranges::stable_sort(state->waiting, {}, &State::Waiting::first_us);
  return Reader(std::move(state));
}

std::optional<Entry> Reader::Next() {
  State& state = *state_;
  for (;;) {
    state.OpenDue();
    if (state.sources.empty()) return std::nullopt;
    std::ranges::pop_heap(state.sources, State::Later);
    State::Source& source = *state.sources.back();
    Entry entry = std::move(source.next);
    if (state.Advance(source)) {
      std::ranges::push_heap(state.sources, State::Later);
    } else {
      state.sources.pop_back();
    }
    if (state.filter.Matches(entry)) return entry;
  }
}

uint64_t Reader::bad_lines() const noexcept { return state_->bad_lines; }
uint64_t Reader::torn_lines() const noexcept { return state_->torn_lines; }
const std::vector<std::string>& Reader::problems() const noexcept { return state_->problems; }

std::vector<std::string> DefaultSources() {
  std::vector<std::string> sources;
  const std::string node = Places::For(0, "", "", "").log;
  if (::access(node.c_str(), R_OK) == 0) sources.push_back(node);
  const std::string own = Places::ForSelf().log_directory;
  if (!own.empty() && ::access(own.c_str(), R_OK | X_OK) == 0) sources.push_back(own);
  return sources;
}

std::optional<uint64_t> ParseMoment(std::string_view text, uint64_t now_us) noexcept {
  if (const auto moment = ParseTimeText(text)) return moment;
  const bool epoch = text.starts_with('@');
  if (epoch) text.remove_prefix(1);
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view unit(end, static_cast<size_t>(text.data() + text.size() - end));
  static constexpr uint64_t kMaxSeconds = 253'402'300'799;  // the year 9999
  if (error != std::errc() || number > kMaxSeconds) return std::nullopt;
  if (epoch) return unit.empty() ? std::optional(number * 1'000'000) : std::nullopt;
  if (unit.size() != 1) return std::nullopt;
  uint64_t seconds = 0;
  switch (unit.front()) {
    case 's':
      seconds = 1;
      break;
    case 'm':
      seconds = 60;
      break;
    case 'h':
      seconds = 3600;
      break;
    case 'd':
      seconds = 86400;
      break;
    case 'w':
      seconds = 7 * 86400;
      break;
    default:
      return std::nullopt;
  }
  if (number > kMaxSeconds / seconds) return std::nullopt;
  const uint64_t ago_us = number * seconds * 1'000'000;
  return ago_us < now_us ? now_us - ago_us : 0;
}

// --- for people
// -----------------------------------------------------------------------------------------------------

namespace {

constexpr std::string_view kRed = "\x1b[31m", kYellow = "\x1b[33m", kGreen = "\x1b[32m", kDim = "\x1b[2m",
                           kPlain = "\x1b[0m";

std::string TimeText(uint64_t time_us) {
  char text[kTimeTextSize];
  return {text, FormatTime(time_us, text)};
}

// The word of the second column, and its colour.
struct Standing {
  std::string_view word, colour;
};
Standing StandingOf(const Entry& entry) noexcept {
  if (entry.kind == "DENY") return {"DENY", kRed};
  if (entry.kind == "PROBE") return {"PROBE", kDim};
  if (entry.allowed) return {"ALLOW", kGreen};
  return {"NOTE", kYellow};
}

std::string ProcessText(const Entry& entry) {
  std::string text = entry.process.empty() ? "?" : ForTerminal(entry.process);
  const int64_t pid = entry.pid != 0 ? entry.pid : entry.tid;
  if (pid != 0) text += "[" + std::to_string(pid) + "]";
  return text;
}

std::string ErrorText(const Entry& entry) {
  if (!entry.error_name.empty()) return ForTerminal(entry.error_name);
  return entry.error == 0 ? "0" : std::to_string(entry.error);
}

}  // namespace

std::string OneLine(const Entry& entry, bool colour) {
  const Standing standing = StandingOf(entry);
  std::string text = TimeText(entry.time_us);
  text += ' ';
  if (colour) text += standing.colour;
  text += standing.word;
  if (colour) text += kPlain;
  text += ' ';
  text += entry.code.empty() ? "-" : ForTerminal(entry.code);
  text += ' ';
  if (!entry.call.empty()) {
    text += ProcessText(entry) + ' ' + ForTerminal(entry.call) + ' ';
    text += entry.target.empty() ? "-" : ForTerminal(entry.target);
    text += " -> " + ErrorText(entry);
  } else {
    text += !entry.session.empty() && !entry.module.empty()
                ? ForTerminal(entry.module) + '[' + std::to_string(entry.pid) + ']'
                : ProcessText(entry);
    text += ' ' + ForTerminal(entry.detail);
    if (!entry.session.empty()) text += " (session " + ForTerminal(entry.session) + ")";
  }
  if (entry.count != 1) text += " (x" + std::to_string(entry.count) + ")";
  return text;
}

std::string AllFields(const Entry& entry, bool colour) {
  std::string text;
  const auto add = [&](std::string_view name, const std::string& value) {
    if (value.empty()) return;
    if (colour) text += kDim;
    text += name;
    text.append(name.size() < 10 ? 10 - name.size() : 1, ' ');
    if (colour) text += kPlain;
    text += ForTerminal(value) + '\n';
  };
  const auto number = [](int64_t value) { return value > 0 ? std::to_string(value) : std::string(); };
  add("id", entry.id);
  add("time", TimeText(entry.time_us));
  add("sequence", std::to_string(entry.sequence));
  add("kind", std::string(StandingOf(entry).word));
  add("reason", entry.code);
  add("what", entry.detail);
  if (entry.count != 1) add("count", std::to_string(entry.count));
  add("call", entry.call);
  add("target", entry.target);
  add("raw", entry.raw_addr);
  if (!entry.call.empty()) add("errno", ErrorText(entry) + " (" + std::to_string(entry.error) + ")");
  add("process", entry.process);
  add("path", entry.path);
  add("pid", number(entry.pid));
  add("tid", number(entry.tid));
  if (entry.uid >= 0) add("uid", std::to_string(entry.uid));
  add("session", entry.session);
  add("module", entry.module);
  add("policy", entry.policy);
  add("rule", entry.rule);
  add("layer", entry.layer);
  add("hint", entry.hint);
  add("prev_hash", entry.previous);
  add("hash", entry.hash);
  return text;
}

}  // namespace oarlock::audit
