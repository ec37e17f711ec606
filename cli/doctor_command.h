// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <iosfwd>
#include <string>

namespace oarlock::cli {

struct DoctorOptions {
  std::string profile = "module";
  bool json = false;
};

// `oarlock doctor`: what this host cannot do, why, and what to do about it, by doing it, and by launching a module in each way
// at the end. 0: everything of the profile can be enforced; 1: something is unavailable; 64: no such profile.
[[nodiscard]] int Doctor(const DoctorOptions& options, std::ostream& out, std::ostream& err);

}  // namespace oarlock::cli
