// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "notif/grant.h"

namespace oarlock::policy {

// The launcher's error codes; the names (P_READ ...) are API. Every one of them is exit 70.
enum class Code : uint8_t {
  kRead, kJson, kDupKey, kUnknown, kType, kRange, kPath, kConflict, kUnsupported,                 // P_...
  kNnp, kCaps, kIdentity, kLandlock, kSeccomp, kNotify, kCgroup, kGpu, kRequired, kKUnsupported,  // K_...
};
[[nodiscard]] std::string_view Name(Code code) noexcept;  // "P_READ", ..., "K_UNSUPPORTED"

// One clear line: what, where, what to do. `pointer` is a JSON pointer (RFC 6901), empty for the whole file.
struct Problem {
  Code code;
  std::string pointer;
  std::string text;
  // "P_RANGE /proxy_port: must be 1 to 65535, got 0". Never holds a newline or a control character.
  [[nodiscard]] std::string Line() const;
};
template <typename T>
using Checked = std::expected<T, Problem>;

enum class Profile : uint8_t { kModule, kWriteAllowlist };
enum class Enforce : uint8_t { kStrict, kBestEffort };
enum class Mediation : uint8_t { kFull, kConnect };
enum class Tty : uint8_t { kNone, kInherit };
enum class Shm : uint8_t { kNone, kHost };
enum class Local : uint8_t { kNone, kOwn };

// Rights of a root, by landlockconfig's names; bit positions are Landlock's own (notif/abi/landlock.h).
struct Root {
  std::string path;          // as written: absolute, not yet resolved
  uint64_t rights = 0;
  bool optional = false;     // a missing path is skipped, and the report says so
  std::string pointer;       // where in the file it came from, for messages: "/rw/0"
};

struct Limits {
  std::optional<double> cpu;
  std::optional<double> mem_gb;
  double swap_gb = 0;
  std::optional<int64_t> pids;
  std::optional<int64_t> nofile;   // default by profile: 4096 for module, else inherited
  std::optional<int64_t> connects_per_second;
  bool hard = false;
};

struct Identity { uint32_t uid = 0, gid = 0; };

struct Environment {
  std::optional<std::vector<std::string>> keep;              // absent: everything but the launcher's own variables
  std::vector<std::pair<std::string, std::string>> set;
};

// POLICY.json after checking, with every default filled in. A value; applying it never changes it (R-MO-39).
struct Policy {
  int version = 1;
  Profile profile = Profile::kModule;
  Enforce enforce = Enforce::kStrict;
  std::vector<std::string> require;
  std::string module;
  std::string kind = "runner";
  std::optional<std::string> exe;
  std::vector<std::string> ro, rw, rd, wo;
  std::vector<Root> roots;
  bool base_system = true;
  bool exec_rw = false;
  bool exec_strict = true;
  std::vector<std::string> allow_write;
  bool write_defaults = true;
  NetMode net = NetMode::kNone;
  std::optional<uint16_t> proxy_port;
  ProxyAddress proxy_addr = ProxyAddress::kLoopback4;
  std::optional<std::string> broker_socket;
  bool gpu = false;
  std::optional<std::vector<std::string>> gpu_devices;
  Limits limits;
  std::optional<std::string> cgroup;
  std::optional<std::string> supervisor;   // a path, or "fd:N"
  bool sysv_ipc = false;
  std::optional<Identity> run_as;
  Mediation mediation = Mediation::kFull;
  Local local_unix = Local::kNone;
  Local local_tcp = Local::kNone;
  Local netlink_route = Local::kNone;
  int refuse_tcp_error = 13;               // EACCES, ENETUNREACH or ECONNREFUSED
  bool broker_identity = false;
  bool audit_approvals = false;
  Tty tty = Tty::kNone;
  Environment env;
  bool pty = false;
  Shm shm = Shm::kNone;
  std::optional<std::vector<int>> keep_fds;  // absent: those named by OARBANK_*=fd:<n> in the environment
  bool log_denials = true;
  std::optional<std::string> report;
};

// Parses and checks one policy. Pure: no system calls; paths are checked in form only. The first problem in document
// order, P_JSON and P_DUPKEY before all others. `from_environment`: it came from MOAT_SANDBOX_POLICY, whose default for
// `enforce` is best-effort.
[[nodiscard]] Checked<Policy> Parse(std::string_view text, bool from_environment = false);
// Every problem (at most 100) instead of the first: for `policy check`.
[[nodiscard]] std::vector<Problem> Lint(std::string_view text, bool from_environment = false);
// The effective policy as one line of JSON with sorted keys; Parse(Emit(p)) gives p again.
[[nodiscard]] std::string Emit(const Policy& policy);

// A policy file, opened once and read through that one descriptor.
struct File {
  std::string text;
  std::string sha256;   // 64 hex digits, of the bytes
  std::string directory_of;  // the canonical directory, for the check that no writable root holds the policy; empty for fd:N
};
// `name`: a path, or "fd:N" for an inherited descriptor. Regular file, owned by root or the effective uid, not writable by
// group or others, at most 1 MiB, O_NOFOLLOW, never a FIFO or a device. Failure: P_READ with an empty pointer.
[[nodiscard]] Checked<File> ReadFile(const std::string& name);

}  // namespace oarlock::policy
