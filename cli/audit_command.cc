// SPDX-License-Identifier: Apache-2.0
#include "cli/audit_command.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <ostream>
#include <vector>

#include "audit/escape.h"
#include "audit/reader.h"
#include "audit/vocabulary.h"
#include "notif/base/ulid.h"
#include "notif/kernel.h"

namespace oarlock::cli {
namespace {

constexpr int kExitFound = 0, kExitNotFound = 1, kExitUnreadable = 2, kExitUsage = 64;

std::string Upper(std::string text) {
  std::ranges::transform(text, text.begin(), [](char c) {
    return static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  });
  return text;
}

int Usage(std::ostream& err, const std::string& text) {
  err << "oarlock audit: " << audit::ForTerminal(text) << '\n';
  return kExitUsage;
}

// Opens what was asked for; says on `err` why it cannot be read.
std::optional<audit::Reader> OpenSource(const AuditSource& source, audit::Filter filter, std::ostream& err) {
  std::vector<std::string> paths;
  if (source.log.empty())
    paths = audit::DefaultSources();
  else
    paths.push_back(source.log);
  if (paths.empty()) {
    err << "oarlock audit: no log is in the default places, or none that you "
           "may read; name one with --log\n";
    return std::nullopt;
  }
  auto reader = audit::Reader::Open(paths, std::move(filter));
  if (reader) return std::move(*reader);
  err << "oarlock audit: " << audit::ForTerminal(reader.error().Message()) << '\n';
  return std::nullopt;
}

// What the reader passed over. Whether every file could be read.
bool Report(const audit::Reader& reader, std::ostream& err) {
  for (const std::string& problem : reader.problems())
    err << "oarlock audit: " << audit::ForTerminal(problem) << '\n';
  if (reader.bad_lines() > 0) err << "oarlock audit: " << reader.bad_lines() << " lines are no records\n";
  return reader.problems().empty();
}

// Byte for byte, so that what is piped on can still be verified; but never raw to a terminal.
void PrintJson(const audit::Entry& entry, const AuditSource& source, std::ostream& out) {
  out << (source.terminal || source.colour ? audit::ForTerminal(entry.line) : entry.line) << '\n';
}

}  // namespace

int AuditList(const AuditListOptions& options, std::ostream& out, std::ostream& err) {
  const uint64_t now_us = kernel::RealtimeUs();
  audit::Filter filter{.since_us = std::nullopt,
                       .until_us = std::nullopt,
                       .session = Upper(options.session),
                       .reason = Upper(options.reason),
                       .process = options.process,
                       .target = options.target,
                       .all = options.all};
  if (!filter.reason.empty()) {
    if (!audit::IsStatusCode(filter.reason))
      return Usage(err, "--reason '" + options.reason + "' is no reason code (docs/AUDIT.md lists them)");
    filter.all = true;  // who asks for one by name wants it
  }
  for (const auto& [text, field, name] : {std::tuple(&options.since, &filter.since_us, "--since"),
                                          std::tuple(&options.until, &filter.until_us, "--until")}) {
    if (text->empty()) continue;
    *field = audit::ParseMoment(*text, now_us);
    if (!*field)
      return Usage(err, std::string(name) + " '" + *text +
                            "' is no moment; use 2026-01-02, "
                            "2026-01-02T03:04:05Z, @1767323045 or 10m, 2h, 3d");
  }

  auto reader = OpenSource(options.source, std::move(filter), err);
  if (!reader) return kExitUnreadable;
  while (const auto entry = reader->Next()) {
    if (options.source.json) {
      PrintJson(*entry, options.source, out);
    } else {
      if (options.ids) out << audit::ForTerminal(entry->id) << ' ';
      out << audit::OneLine(*entry, options.source.colour) << '\n';
    }
    if (!out) break;  // the reader of our output has gone
  }
  return Report(*reader, err) ? kExitFound : kExitUnreadable;
}

int AuditShow(const std::string& id, const AuditSource& source, std::ostream& out, std::ostream& err) {
  const std::string wanted = Upper(id);
  const bool is_id = wanted.size() == Ulid::kLength && std::ranges::all_of(wanted, [](char c) {
                       return std::isdigit(static_cast<unsigned char>(c)) != 0 || (c >= 'A' && c <= 'Z');
                     });
  if (!is_id)
    return Usage(err, "'" + id +
                          "' is no record id: 26 letters and digits, as `list "
                          "--json` shows them");
  audit::Filter filter;
  filter.id = wanted;
  filter.all = true;
  auto reader = OpenSource(source, std::move(filter), err);
  if (!reader) return kExitUnreadable;
  const auto entry = reader->Next();
  if (!entry) {
    if (!Report(*reader, err)) return kExitUnreadable;
    err << "oarlock audit: no record " << wanted << '\n';
    return kExitNotFound;
  }
  if (source.json)
    PrintJson(*entry, source, out);
  else
    out << audit::AllFields(*entry, source.colour);
  return kExitFound;
}

}  // namespace oarlock::cli
