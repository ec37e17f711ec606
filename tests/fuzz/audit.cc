// SPDX-License-Identifier: Apache-2.0
// A log that somebody else wrote: any line. What is shown of it is safe for a terminal, and no filter passes over what it wants.
#include <algorithm>
#include <string>

#include "audit/chain.h"
#include "audit/reader.h"
#include "notif/base/text.h"
#include "tests/fuzz/fuzz.h"

using namespace oarlock;  // NOLINT(google-build-using-namespace)

namespace {

void CheckShown(const audit::Entry& entry) {
  const std::string line = audit::OneLine(entry, false), fields = audit::AllFields(entry, false);
  OARLOCK_CHECK(IsPrintable(line), "%zu bytes", line.size());
  OARLOCK_CHECK(std::ranges::none_of(fields, [](char c) { return (static_cast<unsigned char>(c) < 0x20 && c != '\n') || c == 0x7f; }), "%zu bytes", fields.size());
  // With colours, nothing but ours: what is left without them is the same.
  std::string plain;
  const std::string coloured = audit::OneLine(entry, true);
  for (size_t at = 0; at < coloured.size();) {
    if (coloured.compare(at, 2, "\x1b[") == 0) at = std::min(coloured.find('m', at), coloured.size() - 1) + 1;
    else plain += coloured[at++];
  }
  OARLOCK_CHECK(plain == line, "%s", plain.c_str());
}

void CheckFilters(const audit::Entry& entry, const std::string& wanted) {
  for (const bool all : {false, true})
    for (int field = 0; field < 6; ++field) {
      audit::Filter filter;
      filter.all = all;
      if (field == 1) filter.id = wanted;
      if (field == 2) filter.session = wanted;
      if (field == 3) filter.reason = wanted;
      if (field == 4) filter.process = wanted;
      if (field == 5) filter.target = wanted;
      OARLOCK_CHECK(!filter.Matches(entry) || filter.MayMatch(entry.line), "field %d, '%s'", field, Printable(wanted, 100).c_str());
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // The line; behind a newline, what a filter wants.
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const size_t newline = text.find('\n');
  const std::string line(text.substr(0, newline));
  const std::string wanted(newline == std::string_view::npos ? "" : text.substr(newline + 1));
  if (const auto entry = audit::ParseEntry(line)) {
    OARLOCK_CHECK(entry->line == line, "the line is kept");
    CheckShown(*entry);
    CheckFilters(*entry, wanted);
    for (const std::string* word : {&entry->id, &entry->session, &entry->code, &entry->process, &entry->path, &entry->address}) CheckFilters(*entry, *word);
  }
  if (const auto link = audit::ParseLink(line)) {
    // As it was before it was sealed: the digits, and `"}}`, are its end.
    std::string sealed = line;
    sealed.replace(line.size() - 3 - audit::kZeroHash.size(), audit::kZeroHash.size(), audit::View(audit::kZeroHash));
    OARLOCK_CHECK(audit::HashOf(sealed) == audit::HashOf(line), "a line's hash is of all but itself");
    const audit::Hash hash = audit::Seal(sealed);
    const auto again = audit::ParseLink(sealed);
    OARLOCK_CHECK(again && again->hash == hash && audit::HashOf(sealed) == hash && again->sequence == link->sequence && again->previous == link->previous, "a sealed line");
  }
  if (const auto head = audit::ParseHead(line)) {
    const auto bytes = audit::FormatHead(*head);
    OARLOCK_CHECK(audit::ParseHead({bytes.data(), bytes.size()}) == *head, "a head");
  }
  (void)audit::ParseMoment(line, 1'800'000'000'000'000);
  return 0;
}
