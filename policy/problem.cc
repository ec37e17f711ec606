// SPDX-License-Identifier: Apache-2.0
#include "notif/base/check.h"
#include "notif/base/text.h"
#include "policy/policy.h"

namespace oarlock::policy {
namespace {
// A key or a message can be as long as the file; one line on a terminal or in a journal cannot.
constexpr size_t kMaxPointerInLine = 200;
constexpr size_t kMaxTextInLine = 600;
}  // namespace

std::string_view Name(Code code) noexcept {
  switch (code) {
    case Code::kRead:
      return "P_READ";
    case Code::kJson:
      return "P_JSON";
    case Code::kDupKey:
      return "P_DUPKEY";
    case Code::kUnknown:
      return "P_UNKNOWN";
    case Code::kType:
      return "P_TYPE";
    case Code::kRange:
      return "P_RANGE";
    case Code::kPath:
      return "P_PATH";
    case Code::kConflict:
      return "P_CONFLICT";
    case Code::kUnsupported:
      return "P_UNSUPPORTED";
    case Code::kNnp:
      return "K_NNP";
    case Code::kCaps:
      return "K_CAPS";
    case Code::kIdentity:
      return "K_IDENTITY";
    case Code::kLandlock:
      return "K_LANDLOCK";
    case Code::kSeccomp:
      return "K_SECCOMP";
    case Code::kNotify:
      return "K_NOTIFY";
    case Code::kCgroup:
      return "K_CGROUP";
    case Code::kGpu:
      return "K_GPU";
    case Code::kRequired:
      return "K_REQUIRED";
    case Code::kKUnsupported:
      return "K_UNSUPPORTED";
  }
  OARLOCK_CHECK(false, "code %u", static_cast<unsigned>(code));
}

std::string Problem::Line() const {
  std::string line(Name(code));
  line += ' ';
  line += Printable(pointer, kMaxPointerInLine);
  line += ": ";
  line += Printable(text, kMaxTextInLine);
  return line;
}

}  // namespace oarlock::policy
