// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "notif/base/result.h"

// Reading logs: `oarlock audit list|show` and all that judges old verdicts. Streams: memory does not grow
// with a log. What is read is a file that somebody else may have written, so every field may be absent or
// odd; nothing here trusts it.
namespace oarlock::audit {

// One record, as far as readers need its fields. Texts are those of the log: bytes of the sandbox are still
// escaped (escape.h); what else a forged line holds is not, so whatever goes to a terminal passes
// ForTerminal.
struct Entry {
  std::string line;  // as it is in the log, without the newline
  uint64_t time_us = 0;
  uint64_t sequence = 0;
  uint64_t count = 1;  // refusals that it stands for
  int class_uid = 0;
  bool allowed = false;
  std::string id;      // metadata.uid
  std::string code;    // status_code
  std::string detail;  // status_detail
  std::string kind;    // "DENY", "PROBE"; empty: not a refusal
  std::string session, module;
  std::string process, path;  // comm, exe
  int64_t pid = 0, tid = 0, uid = -1;
  std::string call;
  std::string target;   // "tcp 192.0.2.1:443", "unix-stream /run/x", "option 6/23"; empty: none
  std::string address;  // of `target`: what a filter compares
  std::string raw_addr;
  int error = 0;
  std::string error_name;
  std::string rule, layer, policy;
  std::string hint;
  std::string previous, hash;

  [[nodiscard]] bool IsProbe() const noexcept { return kind == "PROBE"; }
};
// Nothing where the line is no JSON object of the sort. Never throws.
[[nodiscard]] std::optional<Entry> ParseEntry(std::string line);

// Which records are wanted; an empty field wants all.
struct Filter {
  std::optional<uint64_t> since_us = {}, until_us = {};  // from `since`, before `until`
  std::string id = {};                                   // a record's
  std::string session = {};                              // its id, or the first letters of it
  std::string reason = {};                               // a status_code
  std::string process = {};                              // a pid, a process name, or an executable's path
  std::string target = {};  // part of an address: "192.0.2.1", ":443", "/run/"; compared with the escaped and
                            // the plain text
  bool all = false;         // also probes, approvals, starts, ends and checkpoints

  [[nodiscard]] bool Matches(const Entry& entry) const;
  // False only where the line cannot match whatever it parses to: most lines are told apart without parsing
  // them.
  [[nodiscard]] bool MayMatch(std::string_view line) const noexcept;
};

// Reads logs as one: a file in its own order, several merged by time. A directory stands for the logs in it,
// rotated ones (name.jsonl.1, name.jsonl-20260102) included. Holds one line of each file that is being read;
// of a directory, a file is opened when its turn comes.
class Reader {
 public:
  // Fails where a path cannot be read at all. In a directory, such files are problems instead.
  [[nodiscard]] static Result<Reader> Open(std::span<const std::string> paths, Filter filter = {});
  Reader(Reader&&) noexcept;
  Reader& operator=(Reader&&) noexcept;
  ~Reader();

  // The next record that the filter wants; nothing at the end.
  [[nodiscard]] std::optional<Entry> Next();

  // What was passed over so far.
  [[nodiscard]] uint64_t bad_lines() const noexcept;  // no records, or too long
  [[nodiscard]] uint64_t torn_lines()
      const noexcept;  // unfinished last lines: their writer is at it, or died
  // One sentence per file that could not be read, at most kMaxProblems of them.
  static constexpr size_t kMaxProblems = 20;
  [[nodiscard]] const std::vector<std::string>& problems() const noexcept;

 private:
  struct State;
  explicit Reader(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// Where logs are when nothing is said: the node's log if we may read it, and our own private supervisors'
// directory. Empty if there is neither.
[[nodiscard]] std::vector<std::string> DefaultSources();

// A moment: "2026-01-02", "2026-01-02T03:04:05.6Z" (also with a space, without seconds, or with an offset;
// UTC where none is said), "@1767323045", or so long ago: "90s", "10m", "2h", "3d", "1w".
[[nodiscard]] std::optional<uint64_t> ParseMoment(std::string_view text, uint64_t now_us) noexcept;

// One line for people, without a newline: TIME KIND REASON process[pid] call target -> ERRNO (xN). Safe for a
// terminal.
[[nodiscard]] std::string OneLine(const Entry& entry, bool colour);
// Every field on a line of its own, names in front. Safe for a terminal.
[[nodiscard]] std::string AllFields(const Entry& entry, bool colour);

}  // namespace oarlock::audit
