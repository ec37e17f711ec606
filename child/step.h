// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <expected>
#include <string>

#include "notif/base/result.h"
#include "policy/policy.h"

// What a step of the launch returns: done, or one clear problem. Any problem before exec is exit 70, and the module never
// runs.
namespace oarlock::child {

using policy::Code;
using policy::Problem;
template <typename T>
using Checked = policy::Checked<T>;
using Step = Checked<void>;

[[nodiscard]] inline std::unexpected<Problem> Stop(Code code, std::string pointer, std::string text) {
  return std::unexpected(Problem{code, std::move(pointer), std::move(text)});
}
[[nodiscard]] inline std::unexpected<Problem> Stop(Code code, const Error& error) {
  return Stop(code, "", error.Message());
}

}  // namespace oarlock::child
