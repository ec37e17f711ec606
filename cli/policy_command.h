// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <iosfwd>
#include <string>

// `oarlock policy check` and `oarlock policy show`. Findings and warnings are the result and go to `out`;
// what keeps a command from its work goes to `err`. The return value is the exit code.
namespace oarlock::cli {

// Every problem of the policy, one line each: "FILE: CODE pointer: text", then what its author may not have
// meant, as "FILE: warning pointer: text". With `json`, one array of {code, pointer, text}; a warning's code
// is "warning". 0: sound (with or without warnings), 1: findings, 70: the file cannot be read.
[[nodiscard]] int PolicyCheck(const std::string& file, bool json, std::ostream& out, std::ostream& err);

// The effective policy, every default filled in, as one line of JSON with sorted keys.
// 0: written, 1: the policy has findings (the first of them is told), 70: the file cannot be read.
[[nodiscard]] int PolicyShow(const std::string& file, std::ostream& out, std::ostream& err);

}  // namespace oarlock::cli
