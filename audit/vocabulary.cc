// SPDX-License-Identifier: Apache-2.0
#include "audit/vocabulary.h"

#include <array>
#include <cstddef>

#include "notif/base/check.h"

namespace oarlock::audit {
namespace {

constexpr std::array<std::string_view, static_cast<size_t>(Layer::kCount)> kLayers = {"supervisor", "seccomp",
                                                                                      "landlock", "proxy"};

constexpr std::array<RuleText, static_cast<size_t>(Rule::kCount)> kRules = {{
    {"net.proxy", "TCP connects reach the proxy alone"},
    {"net.self_connect", "no connection to itself"},
    {"net.bind", "no bind"},
    {"net.listen", "no listen"},
    {"net.accept", "no accept"},
    {"unix.broker", "unix connects reach the broker alone"},
    {"unix.well_known", "system services are absent"},
    {"unix.abstract", "no abstract unix names"},
    {"unix.socket", "unix sockets need a broker"},
    {"unix.type", "unix sockets are streams"},
    {"address", "the address must be readable and whole"},
    {"socket.family", "socket families"},
    {"socket.type", "socket types"},
    {"socket.protocol", "socket protocols"},
    {"socket.option", "socket options"},
    {"send.fastopen", "no connection by sending"},
    {"send.address", "no addressed sends"},
    {"call.table", "the table of calls"},
    {"audit.log", "no answer without a record"},
}};

constexpr std::array<NoticeText, static_cast<size_t>(Notice::kCount)> kNotices = {{
    {"", "", "", "", false, 1},
    {"TORN_LINE", "a writer ended in the middle of a line; the torn line has been closed and is no record",
     "torn_bytes", "", false, 2},
    {"LOG_CUT", "the head knows of later records than the log holds: its end is missing", "last_sequence",
     "head_sequence", false, 4},
    {"LOG_ALTERED", "the last line of the log does not have the hash that it should", "last_sequence",
     "head_sequence", false, 4},
    {"LOG_FOREIGN", "the end of the log is no record of this program", "size_bytes", "", false, 4},
    {"HEAD_LOST", "the log has records but no readable head beside it: a missing end cannot be noticed",
     "last_sequence", "", false, 3},
    {"LOG_MODE", "the mode of the log was changed", "mode_before", "mode_after", true, 4},
    {"LOG_OWNER", "the owner of the log was changed", "uid_before", "uid_after", false, 4},
    {"LOG_GROUP", "the group of the log was changed", "gid_before", "gid_after", false, 4},
    {"LOG_SHRUNK", "the log is shorter than its writer left it: records are missing", "size_before",
     "size_after", false, 4},
    {"LOG_GROWN", "the log is longer than its writer left it: somebody else writes to it", "size_before",
     "size_after", false, 4},
    {"LOG_REMOVED", "the log was removed while it was open; a new one continues its chain", "size_before", "",
     false, 4},
    {"LOG_REOPENED", "the log was reopened; its chain continues here", "", "", false, 1},
}};

constexpr bool RulesComplete() {
  for (const RuleText& rule : kRules)
    if (rule.uid.empty() || rule.name.empty()) return false;
  for (size_t i = 1; i < kNotices.size(); ++i)
    if (kNotices[i].code.empty() || kNotices[i].sentence.empty()) return false;
  return true;
}
static_assert(RulesComplete(), "every rule and every notice has its texts");

}  // namespace

std::string_view Name(Layer layer) noexcept {
  OARLOCK_CHECK(layer < Layer::kCount);
  return kLayers[static_cast<size_t>(layer)];
}

Rule RuleOf(Refusal refusal) noexcept {
  switch (refusal) {
    case Refusal::kTcpNotProxy:
      return Rule::kTcpProxy;
    case Refusal::kUnixNotBroker:
      return Rule::kUnixBroker;
    case Refusal::kUnixAbsent:
      return Rule::kUnixWellKnown;
    case Refusal::kUnixAbstract:
      return Rule::kUnixAbstract;
    case Refusal::kAddressUnreadable:
    case Refusal::kAddressFault:
    case Refusal::kAddressInvalid:
    case Refusal::kAddressFamily:
      return Rule::kAddress;
    case Refusal::kFamilyDenied:
    case Refusal::kFamilyProbe:
      return Rule::kSocketFamily;
    case Refusal::kSocketType:
    case Refusal::kDatagramProbe:
    case Refusal::kTypeDenied:
    case Refusal::kRawDenied:
      return Rule::kSocketType;
    case Refusal::kProtocolDenied:
      return Rule::kSocketProtocol;
    case Refusal::kUnixNoGrant:
      return Rule::kUnixSocket;
    case Refusal::kUnixType:
      return Rule::kUnixType;
    case Refusal::kBindDenied:
    case Refusal::kBindProbe:
      return Rule::kBind;
    case Refusal::kListenDenied:
      return Rule::kListen;
    case Refusal::kAcceptDenied:
      return Rule::kAccept;
    case Refusal::kFastOpen:
      return Rule::kFastOpen;
    case Refusal::kAddressedSend:
      return Rule::kSendAddress;
    case Refusal::kSocketOption:
      return Rule::kSocketOption;
    case Refusal::kSelfConnect:
      return Rule::kSelfConnect;
    case Refusal::kNone:  // an approval: the shard knows which grant; the table let it through
    case Refusal::kLease:
    case Refusal::kInterfaceIoctl:
    case Refusal::kCallDenied:
    case Refusal::kForeignTask:
    case Refusal::kExecutableMemory:
    case Refusal::kTruncateDenied:
    case Refusal::kNotBuilt:
      return Rule::kCallTable;
    case Refusal::kAuditUnavailable:
      return Rule::kLog;
    case Refusal::kCount:
      break;
  }
  OARLOCK_CHECK(false, "no rule for refusal %d", static_cast<int>(refusal));
}

const RuleText& Describe(Rule rule) noexcept {
  OARLOCK_CHECK(rule < Rule::kCount);
  return kRules[static_cast<size_t>(rule)];
}

const NoticeText& Describe(Notice notice) noexcept {
  OARLOCK_CHECK(notice < Notice::kCount);
  return kNotices[static_cast<size_t>(notice)];
}

bool IsStatusCode(std::string_view code) noexcept {
  for (size_t i = static_cast<size_t>(Reason::kNone) + 1; i < static_cast<size_t>(Reason::kCount); ++i)
    if (code == oarlock::Name(static_cast<Reason>(i))) return true;
  for (const NoticeText& notice : kNotices)
    if (!notice.code.empty() && code == notice.code) return true;
  return IsRoutine(code);
}

bool IsRoutine(std::string_view code) noexcept {
  return code == kCodeSupervisorStarted || code == kCodeSupervisorStopped || code == kCodeSessionStarted ||
         code == kCodeSessionEnded || code == kCodeCheckpoint;
}

}  // namespace oarlock::audit
