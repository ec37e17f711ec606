// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "notif/base/result.h"
#include "notif/grant.h"

// The admission message: the OCI *container process state* as JSON, over one stream connection, its descriptors with the
// first byte, ended by shutdown(SHUT_WR). It is all that the launcher and the supervisor know of each other.
// A change here is a new kWireVersion and a CHANGELOG line.
namespace oarlock::wire {

inline constexpr int kWireVersion = 1;
inline constexpr size_t kMaxMessageBytes = 128 * 1024;
inline constexpr size_t kMaxDescriptors = 2;  // seccompFd, cgroup
inline constexpr size_t kProbeBytes = 16;
inline constexpr size_t kMaxBrokerPath = 107;  // sun_path without its NUL
inline constexpr std::string_view kListenerName = "seccompFd";
inline constexpr std::string_view kCgroupName = "cgroup";
// The optional first line and the longest answer to it.
inline constexpr std::string_view kPrepareLine = "{\"oarlock\":1,\"prepare\":true}\n";
inline constexpr size_t kMaxAnswerBytes = 4096;
// The launcher gives up after this long (K_NOTIFY); a peer of another uid has as long to speak.
inline constexpr int kAnswerTimeoutMs = 5000;
// The proof: one connect() to the random address must give ENOANO within this. As long as for the answer: on a busy machine a
// supervisor that can answer may not be scheduled for a second (measured with five builds on two processors), and a launch that
// is refused for that is a refusal for overload.
inline constexpr int kProofTimeoutMs = 5000;

struct Admission {
  std::string module;
  std::string kind;
  std::string policy_json;     // the effective policy, as one JSON object
  std::string policy_sha256;   // 64 hex digits, of the policy file's bytes
  std::string filter;          // the shape's name
  std::array<uint8_t, kProbeBytes> probe{};
  Grant grant;
  int64_t pid = 0;             // state.pid: believed from container runtimes only
  std::vector<std::string> fds;  // names, in the order of SCM_RIGHTS
  std::string grant_name;      // from a container runtime: `metadata` names a grant; the rest is then empty
};

// Encoding cannot fail: the launcher has checked every field.
[[nodiscard]] std::string Encode(const Admission& admission);
// Strict: unknown versions, missing or extra keys of our metadata, wrong types and impossible values are refused with a
// sentence for the answer (EPROTO). Pure: no system calls, any bytes.
[[nodiscard]] Result<Admission> Decode(std::string_view message);

struct Answer {
  bool ok = false;
  std::string session;  // if ok
  std::string code;     // else, "K_NOTIFY"
  std::string error;    // else
};
[[nodiscard]] std::string Encode(const Answer& answer);  // one line with its newline
[[nodiscard]] Result<Answer> DecodeAnswer(std::string_view line);

struct Prepared {
  std::string cgroup;  // path of the leaf that the peer has been moved into; empty: none
};
[[nodiscard]] std::string Encode(const Prepared& prepared);
[[nodiscard]] Result<Prepared> DecodePrepared(std::string_view line);

}  // namespace oarlock::wire
