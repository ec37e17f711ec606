// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <expected>
#include <optional>
#include <span>
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
  // "P_RANGE /proxy_port: must be 1 to 65535, got 0"; "P_READ : ..." for the whole file. Printable ASCII and
  // capped, whatever the file holds; `pointer` itself is exact and may hold any character of a key.
  [[nodiscard]] std::string Line() const;
  friend bool operator==(const Problem&, const Problem&) = default;
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
  std::string pointer;       // where in the file it came from, for messages: "/roots/0"
  // What it grants; where it stood does not count.
  friend bool operator==(const Root& a, const Root& b) noexcept {
    return a.path == b.path && a.rights == b.rights && a.optional == b.optional;
  }
};

struct Limits {
  std::optional<double> cpu;
  std::optional<double> mem_gb;
  double swap_gb = 0;
  std::optional<int64_t> pids;
  std::optional<int64_t> nofile;   // default by profile: 4096 for module, else inherited
  std::optional<int64_t> connects_per_second;
  bool hard = false;
  friend bool operator==(const Limits&, const Limits&) = default;
};

struct Identity {
  uint32_t uid = 0, gid = 0;
  friend bool operator==(const Identity&, const Identity&) = default;
};

struct Environment {
  std::optional<std::vector<std::string>> keep;              // absent: everything but the launcher's own variables
  std::vector<std::pair<std::string, std::string>> set;      // sorted by name
  friend bool operator==(const Environment&, const Environment&) = default;
};

// A header that the egress proxy adds; `from` is "env:NAME", "file:/path" or "fd:N".
struct Injection {
  std::string host, header, from;
  friend bool operator==(const Injection&, const Injection&) = default;
};

// The OCI LinuxSeccomp object, names as written.
struct SeccompArgument {
  uint32_t index = 0;
  uint64_t value = 0, value_two = 0;
  std::string op;
  friend bool operator==(const SeccompArgument&, const SeccompArgument&) = default;
};
struct SeccompRule {
  std::vector<std::string> names;
  std::string action;
  std::optional<uint32_t> errno_ret;
  std::vector<SeccompArgument> args;
  friend bool operator==(const SeccompRule&, const SeccompRule&) = default;
};
struct Seccomp {
  std::string default_action;
  std::optional<uint32_t> default_errno_ret;
  std::vector<std::string> architectures, flags;
  std::vector<SeccompRule> syscalls;
  friend bool operator==(const Seccomp&, const Seccomp&) = default;
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
  std::optional<std::vector<std::string>> net_allow;  // "host", "host:port", "*.host", "*.host:port"
  std::vector<std::string> http_rules;                // "allow GET host/path"
  std::vector<std::string> net_allow_private, tls_intercept;
  std::vector<Injection> inject;
  std::optional<std::string> broker_socket;
  std::optional<std::vector<std::string>> unix_allow;  // absent: none (module), any (write-allowlist)
  bool gpu = false;
  std::optional<std::vector<std::string>> gpu_devices;
  Limits limits;
  std::optional<std::string> cgroup;
  std::optional<std::string> supervisor;   // a path, or "fd:N"
  std::optional<Seccomp> seccomp;
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
  friend bool operator==(const Policy&, const Policy&) = default;
};

inline constexpr size_t kMaxFileBytes = 1 << 20;
inline constexpr size_t kMaxDepth = 16;
inline constexpr size_t kMaxPathBytes = 4095;
inline constexpr size_t kMaxBrokerPathBytes = 103;
inline constexpr size_t kMaxProblems = 100;

// Parses and checks one policy. Pure: no system calls; paths are checked in form only. The problem returned
// is the first of this order: P_JSON and P_DUPKEY; an unknown version; every other rule of the page, by place
// in the document; last, sound values whose effect is not built yet. `from_environment`: it came from
// MOAT_SANDBOX_POLICY, which must say its profile (an empty variable is a missing policy) and whose default
// for `enforce` is best-effort, once that is built.
[[nodiscard]] Checked<Policy> Parse(std::string_view text, bool from_environment = false);
// Every problem (at most kMaxProblems) in that order instead of the first: for `policy check`.
[[nodiscard]] std::vector<Problem> Lint(std::string_view text, bool from_environment = false);
// The effective policy as one line of JSON with sorted keys; Parse(Emit(p)) gives p again. A policy made by
// hand need not be sound: Emit writes what it is given, bytes that are not UTF-8 included, and Parse refuses
// it then.
[[nodiscard]] std::string Emit(const Policy& policy);

// What a sound policy's author may not have meant. By form alone: nothing is looked up.
struct Warning {
  std::string pointer;
  std::string text;  // printable
};
[[nodiscard]] std::vector<Warning> Warnings(const Policy& policy);

// The grant that the policy asks of the supervisor. `broker_resolved` is the launcher's realpath of
// broker_socket, empty without one; the network namespace's cookie and `check_netns` stay for the launcher.
[[nodiscard]] Grant ToGrant(const Policy& policy, std::string_view broker_resolved);

// Every field of POLICY.json, nested ones too: "limits.cpu", "roots[].path". In the order of docs/POLICY.md.
struct FieldInfo {
  std::string_view name;
  std::string_view type;  // as messages say it: "an integer from 1 to 65535 or null"
  bool null_is_absent;
  bool built;  // false: refused with P_UNSUPPORTED when set to anything but its strictest value
};
[[nodiscard]] std::vector<FieldInfo> Fields();
// The names that `require` may hold: the keys of the enforcement report.
[[nodiscard]] std::span<const std::string_view> Capabilities() noexcept;

// A policy file, opened once and read through that one descriptor.
struct File {
  std::string text;
  std::string sha256;  // 64 hex digits, of the bytes
  // Canonical, for the check that no writable root holds the policy; empty for fd:N.
  std::string directory_of;
};
// `name`: a path, or "fd:N" for an inherited descriptor, which is read from its start, whatever its offset,
// and stays open. A regular file, owned by root or the effective uid, not writable by group or others, at
// most kMaxFileBytes; the last component is no symbolic link. Failure: P_READ with an empty pointer.
[[nodiscard]] Checked<File> ReadFile(const std::string& name);

}  // namespace oarlock::policy
