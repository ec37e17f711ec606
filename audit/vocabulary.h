// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "notif/refusals.h"

// The closed sets of the log beside the reason codes of notif/refusals.h: which layer refused, by which rule,
// and what the records say that are not about a call. The names are API (docs/AUDIT.md lists them; a test
// compares).
namespace oarlock::audit {

// Whose refusal it is: `firewall_rule.type`.
enum class Layer : uint8_t { kSupervisor, kSeccomp, kLandlock, kProxy, kCount };
[[nodiscard]] std::string_view Name(Layer layer) noexcept;

// `firewall_rule`: the part of the policy that a call was judged by.
enum class Rule : uint8_t {
  kTcpProxy,        // net.proxy
  kSelfConnect,     // net.self_connect
  kBind,            // net.bind
  kListen,          // net.listen
  kAccept,          // net.accept
  kUnixBroker,      // unix.broker
  kUnixWellKnown,   // unix.well_known
  kUnixAbstract,    // unix.abstract
  kUnixSocket,      // unix.socket
  kUnixType,        // unix.type
  kAddress,         // address
  kSocketFamily,    // socket.family
  kSocketType,      // socket.type
  kSocketProtocol,  // socket.protocol
  kSocketOption,    // socket.option
  kFastOpen,        // send.fastopen
  kSendAddress,     // send.address
  kCallTable,       // call.table
  kLog,             // audit.log
  kCount,
};
struct RuleText {
  std::string_view uid;   // "net.proxy"
  std::string_view name;  // "TCP connects reach the proxy alone"
};
[[nodiscard]] Rule RuleOf(Refusal refusal) noexcept;
[[nodiscard]] const RuleText& Describe(Rule rule) noexcept;

// What the log says of itself. Made by the writer alone.
enum class Notice : uint8_t {
  kNone,
  kTornLine,      // TORN_LINE: a writer died in the middle of a line
  kCut,           // LOG_CUT: the head knows of later lines than the log has
  kAltered,       // LOG_ALTERED: the last line does not have the hash it should
  kForeign,       // LOG_FOREIGN: the log's end is no record of ours
  kHeadLost,      // HEAD_LOST: no head beside a log that has lines, or an unreadable one
  kModeChanged,   // LOG_MODE
  kOwnerChanged,  // LOG_OWNER
  kGroupChanged,  // LOG_GROUP
  kShrunk,        // LOG_SHRUNK: shorter than this writer left it
  kGrown,         // LOG_GROWN: longer than this writer left it, so somebody else writes too
  kRemoved,       // LOG_REMOVED: unlinked while it was open
  kReopened,      // LOG_REOPENED: the first record of a file that continues another's chain
  kCount,
};
struct NoticeText {
  std::string_view code;
  std::string_view sentence;
  // What the two numbers of such a record mean: members of `unmapped`.
  std::string_view before, after;
  bool octal;        // they are file modes
  uint8_t severity;  // OCSF severity_id
};
[[nodiscard]] const NoticeText& Describe(Notice notice) noexcept;

// `status_code` of what is neither a call nor a notice.
inline constexpr std::string_view kCodeSupervisorStarted = "SUPERVISOR_STARTED";
inline constexpr std::string_view kCodeSupervisorStopped = "SUPERVISOR_STOPPED";
inline constexpr std::string_view kCodeSessionStarted = "SESSION_STARTED";
inline constexpr std::string_view kCodeSessionEnded = "SESSION_ENDED";
inline constexpr std::string_view kCodeCheckpoint = "CHECKPOINT";

// Whether a log can hold this `status_code`.
[[nodiscard]] bool IsStatusCode(std::string_view code) noexcept;
// The code of a record that only says that things take their course: starts, ends, checkpoints.
[[nodiscard]] bool IsRoutine(std::string_view code) noexcept;

}  // namespace oarlock::audit
