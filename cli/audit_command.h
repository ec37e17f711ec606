// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <iosfwd>
#include <string>

// `oarlock audit list` and `oarlock audit show`. Records are the result and go to `out`; what could not be
// read, and why, goes to `err`. The return value is the exit code.
namespace oarlock::cli {

// Where to read and how to print, for every verb of `audit`.
struct AuditSource {
  std::string log;        // --log or the positional FILE: a log or a directory; empty: the default places
  bool json = false;      // records as they are in the log, one a line
  bool terminal = false;  // the output is a terminal: what a forged log holds must not reach it raw
  bool colour = false;    // and it wants colours
};

struct AuditListOptions {
  AuditSource source;
  std::string session;       // its id, or the first letters of it
  std::string reason;        // a code such as UNIX_NOT_BROKER, in either case
  std::string process;       // pid, name or path
  std::string target;        // part of an address
  std::string since, until;  // see ParseMoment
  bool all = false;          // also probes, approvals, starts, ends and checkpoints
  bool ids = false;          // each record's id in front, for `show`
};
// 0: read to the end, with or without a match; 2: a log cannot be read; 64: an option makes no sense.
[[nodiscard]] int AuditList(const AuditListOptions& options, std::ostream& out, std::ostream& err);

// The record with this id, with every field. 0: found; 1: not found; 2: a log cannot be read; 64: no such id.
[[nodiscard]] int AuditShow(const std::string& id, const AuditSource& source, std::ostream& out,
                            std::ostream& err);

}  // namespace oarlock::cli
