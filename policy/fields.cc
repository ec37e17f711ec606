// SPDX-License-Identifier: Apache-2.0
#include <cerrno>
#include <cmath>
#include <limits>

#include "notif/calls.h"
#include "policy/hosts.h"
#include "policy/reader.h"

// The fields of POLICY.json: one row each, with what it takes, how it is read, and whether its effect is
// built.
namespace oarlock::policy {
namespace {

using Kind = JsonValue::Kind;

constexpr bool kOrNull = true, kNeverNull = false;
constexpr bool kBuilt = true, kNotBuilt = false;

constexpr int64_t kMaxInt = std::numeric_limits<int32_t>::max();
constexpr int64_t kMaxId = 0xffff'fffe;   // the next one means "leave as it is" to setresuid(2)
constexpr int64_t kMaxPids = 4'194'304;   // PID_MAX_LIMIT
constexpr double kCpuPeriodUs = 100'000;  // cpu.max's period, as the agent writes it
constexpr double kMinCpuQuotaUs = 1000;   // below it the kernel answers EINVAL
constexpr double kMaxCpus = 1'000'000;    // keeps cpu.max far below the kernel's own bound of 2^44 us
constexpr double kGibibyte = 1073741824.0;
constexpr double kMaxGibibytes = 8589934591;  // 2^63 bytes, less one
constexpr int64_t kMaxErrno = 4095;
constexpr size_t kMaxSocketPathBytes = 107;  // sun_path, with its NUL

// --- plain members
// ---------------------------------------------------------------------------------------------------

template <auto kMember>
void ReadBool(Reader& r, const At& at) {
  r.Bool(at, &(r.policy.*kMember));
}

template <auto kMember>
void ReadPaths(Reader& r, const At& at) {
  r.Paths(at, &(r.policy.*kMember));
}

template <auto kMember>
void ReadOptionalPaths(Reader& r, const At& at) {
  r.Paths(at, &(r.policy.*kMember).emplace());
}

template <auto kMember, size_t kLimit = kMaxPathBytes>
void ReadOptionalPath(Reader& r, const At& at) {
  std::string path;
  r.Path(at, r.active.back()->type, kLimit, &path);
  if (!path.empty()) r.policy.*kMember = std::move(path);
}

template <auto kMember, const auto& kNames>
void ReadName(Reader& r, const At& at) {
  r.Choose(at, kNames, &(r.policy.*kMember));
}

// An object whose members are rows of their own.
void ReadObject(Reader& r, const At& at) {
  const FieldRow& row = *r.active.back();
  if (r.Is(at, Kind::kObject, row.type)) r.Members(at, std::string(row.name) + ".");
}

// --- the policy itself
// -----------------------------------------------------------------------------------------------

void ReadVersion(Reader& r, const At& at) {
  if (at.value.kind != Kind::kInteger) return r.WrongType(at);
  if (at.value.magnitude == 1 && !at.value.negative && !at.value.huge) return;
  r.Add(Code::kUnsupported, at, "this Oarlock reads version 1 alone");
  r.found.back().stage = Stage::kVersion;
}

void ReadRequire(Reader& r, const At& at) {
  r.Strings(at, &r.policy.require, [&](const At& item) {
    if (std::ranges::find(Capabilities(), item.value.string) != Capabilities().end()) return true;
    std::string text = "no capability of the report is called " + Shown(item.value.string);
    if (const auto nearest = Nearest(item.value.string, Capabilities()); !nearest.empty())
      text += "; did you mean " + Shown(nearest) + "?";
    r.Add(Code::kRange, item, std::move(text));
    return false;
  });
}

void ReadModule(Reader& r, const At& at) { r.Label(at, 200, &r.policy.module); }
void ReadKind(Reader& r, const At& at) { r.Label(at, 40, &r.policy.kind); }

// --- files
// -----------------------------------------------------------------------------------------------------------

void ReadRoots(Reader& r, const At& at) {
  r.List(at, [&](const At& item) {
    if (!r.Is(item, Kind::kObject, "an object with path and rights")) return;
    Root root;
    root.pointer = item.pointer;
    r.root = &root;
    r.Members(item, "roots[].");
    r.NeedsMember(item, "path");
    r.NeedsMember(item, "rights");
    r.policy.roots.push_back(std::move(root));
  });
}

void ReadRootPath(Reader& r, const At& at) {
  r.Path(at, r.active.back()->type, kMaxPathBytes, &r.root->path);
}
void ReadRootOptional(Reader& r, const At& at) { r.Bool(at, &r.root->optional); }

void ReadRootRights(Reader& r, const At& at) {
  r.List(at, [&](const At& item) {
    if (!r.Is(item, Kind::kString, "the name of a right")) return;
    const std::string& name = item.value.string;
    const auto row = std::ranges::find(kRights, name, &Named<uint64_t>::name);
    if (row != kRights.end()) {
      r.root->rights |= row->value;
      return;
    }
    std::array<std::string_view, kRights.size()> words;
    std::ranges::transform(kRights, words.begin(), &Named<uint64_t>::name);
    std::string text = "no right is called " + Shown(name);
    if (const auto nearest = Nearest(name, words); !nearest.empty())
      text += "; did you mean " + Shown(nearest) + "?";
    r.Add(Code::kRange, item, std::move(text));
  });
  if (at.value.kind == Kind::kList && at.value.items.empty())
    r.Add(Code::kRange, at,
          "grants nothing, and cannot take away what another root grants; remove this root");
}

void ReadExecWritable(Reader& r, const At& at) {
  if (r.Is(at, Kind::kBool, r.active.back()->type)) r.exec_writable = at.value.boolean;
}

void ReadDenyPaths(Reader& r, const At& at) {
  if (!r.Is(at, Kind::kList, r.active.back()->type) || at.value.items.empty()) return;
  r.Add(
      Code::kUnsupported, at,
      "the sandbox is allowlist-only: nothing can be denied inside what is allowed; narrow the allowed paths "
      "instead");
}

// --- network
// ---------------------------------------------------------------------------------------------------------

void ReadProxyPort(Reader& r, const At& at) {
  int64_t port = 0;
  if (r.Integer(at, 1, 65535, &port)) r.policy.proxy_port = static_cast<uint16_t>(port);
}

void RefuseEntry(Reader& r, const At& at, const std::string& why) {
  r.Add(Code::kRange, at, Shown(at.value.string) + ": " + why);
}

void ReadNetAllow(Reader& r, const At& at) {
  auto& entries = r.policy.net_allow.emplace();
  r.Strings(at, &entries, [&](const At& item) {
    const auto problem = AllowEntryProblem(item.value.string);
    if (problem) RefuseEntry(r, item, *problem);
    return !problem;
  });
  if (at.value.kind == Kind::kList && at.value.items.empty())
    r.Add(Code::kRange, at, "is empty and would allow nothing; list a host, or use net \"none\"");
}

void ReadHttpRules(Reader& r, const At& at) {
  r.Strings(at, &r.policy.http_rules, [&](const At& item) {
    HttpRule rule;
    const auto problem = ParseHttpRule(item.value.string, &rule);
    if (problem) {
      RefuseEntry(r, item, *problem);
    } else {
      r.host_uses.push_back({rule.host, Code::kRange, item.pointer, item.value.position});
    }
    return !problem;
  });
}

// A host that must stand in net_allow.
bool CheckHost(Reader& r, const At& at) {
  const auto problem = HostProblem(at.value.string, true);
  if (problem) {
    RefuseEntry(r, at, *problem);
  } else {
    r.host_uses.push_back({at.value.string, Code::kConflict, at.pointer, at.value.position});
  }
  return !problem;
}

template <auto kMember>
void ReadHosts(Reader& r, const At& at) {
  r.Strings(at, &(r.policy.*kMember), [&](const At& item) { return CheckHost(r, item); });
}

void ReadInject(Reader& r, const At& at) {
  r.List(at, [&](const At& item) {
    if (!r.Is(item, Kind::kObject, "an object with host, header and from")) return;
    Injection injection;
    r.injection = &injection;
    r.Members(item, "inject[].");
    r.NeedsMember(item, "host");
    r.NeedsMember(item, "header");
    r.NeedsMember(item, "from");
    r.policy.inject.push_back(std::move(injection));
  });
}

void ReadInjectHost(Reader& r, const At& at) {
  if (r.Is(at, Kind::kString, r.active.back()->type) && CheckHost(r, at)) r.injection->host = at.value.string;
}

void ReadInjectHeader(Reader& r, const At& at) {
  if (!r.Is(at, Kind::kString, r.active.back()->type)) return;
  if (!IsToken(at.value.string)) return r.OutOfRange(at, Shown(at.value.string));
  r.injection->header = at.value.string;
}

bool IsVariableName(std::string_view name) {
  return !name.empty() && name.find('=') == std::string_view::npos && !HasControl(name);
}

// "fd:N" of a descriptor that is not one of the module's own three.
bool IsInheritedFd(std::string_view text) {
  uint64_t fd = 0;
  return text.starts_with("fd:") && !text.substr(3).starts_with('0') &&
         ParseNumber(text.substr(3), 3, kMaxInt, &fd);
}

void ReadInjectFrom(Reader& r, const At& at) {
  if (!r.Is(at, Kind::kString, r.active.back()->type)) return;
  const std::string_view from = at.value.string;
  const bool variable = from.starts_with("env:") && IsVariableName(from.substr(4));
  const bool file = from.starts_with("file:/") && !HasControl(from) && from.size() - 5 <= kMaxPathBytes;
  if (!variable && !file && !IsInheritedFd(from)) return r.OutOfRange(at, Shown(from));
  r.injection->from = from;
}

void ReadGpu(Reader& r, const At& at) {
  if (at.value.kind == Kind::kBool) {
    r.policy.gpu = at.value.boolean;
  } else {
    r.Choose(at, kGpus, &r.policy.gpu);
  }
}

// --- limits
// ----------------------------------------------------------------------------------------------------------

void ReadCpu(Reader& r, const At& at) {
  double cpu = 0;
  if (!r.Number(at, &cpu)) return;
  if (!(std::round(cpu * kCpuPeriodUs) >= kMinCpuQuotaUs && cpu <= kMaxCpus))
    return r.Add(Code::kRange, at, "must be from 0.01 (the kernel's least quota, 1 ms in 100 ms) to 1000000");
  r.policy.limits.cpu = cpu;
}

void ReadMemory(Reader& r, const At& at) {
  double gib = 0;
  if (!r.Number(at, &gib)) return;
  if (!(std::floor(gib * kGibibyte) >= 1 && gib <= kMaxGibibytes))
    return r.Add(Code::kRange, at, "must be above 0 and at most 8589934591, in GiB");
  r.policy.limits.mem_gb = gib;
}

void ReadSwap(Reader& r, const At& at) {
  double gib = 0;
  if (!r.Number(at, &gib)) return;
  if (!(gib >= 0 && gib <= kMaxGibibytes)) return r.Add(Code::kRange, at, "must be 0 to 8589934591, in GiB");
  r.policy.limits.swap_gb = gib == 0 ? 0 : gib;  // -0 is 0
}

template <auto kMember, int64_t kLow, int64_t kHigh>
void ReadLimit(Reader& r, const At& at) {
  int64_t number = 0;
  if (r.Integer(at, kLow, kHigh, &number)) r.policy.limits.*kMember = number;
}

void ReadHard(Reader& r, const At& at) { r.Bool(at, &r.policy.limits.hard); }

// --- process
// ---------------------------------------------------------------------------------------------------------

void ReadSupervisor(Reader& r, const At& at) {
  std::string path;
  if (at.value.kind == Kind::kString && at.value.string.starts_with("fd:")) {
    if (!IsInheritedFd(at.value.string))
      return r.Add(Code::kPath, at,
                   "must be an absolute path or fd:N with N from 3, got " + Shown(at.value.string));
    path = at.value.string;
  } else {
    r.Path(at, r.active.back()->type, kMaxSocketPathBytes, &path);
  }
  if (!path.empty()) r.policy.supervisor = std::move(path);
}

void ReadRunAs(Reader& r, const At& at) {
  if (!r.Is(at, Kind::kObject, r.active.back()->type)) return;
  r.policy.run_as.emplace();
  r.Members(at, "run_as.");
  r.NeedsMember(at, "uid");
  r.NeedsMember(at, "gid");
}

template <auto kMember>
void ReadId(Reader& r, const At& at) {
  int64_t id = 0;
  if (r.Integer(at, 0, kMaxId, &id)) (*r.policy.run_as).*kMember = static_cast<uint32_t>(id);
}

// The launcher takes these for itself; handed on, they would lead the module to its own supervisor, or lie to
// a launcher started inside.
bool IsLauncherVariable(std::string_view name) {
  return name == "OARBANK_CONFINED" || name == "MOAT_SANDBOX_POLICY" || name.starts_with("OARLOCK_");
}

bool CheckVariable(Reader& r, const At& at, std::string_view name) {
  if (!IsVariableName(name)) {
    r.Add(Code::kRange, at, "no environment variable can be called " + Shown(name));
    return false;
  }
  if (IsLauncherVariable(name)) {
    r.Add(Code::kRange, at, Shown(name) + " is the launcher's own and never reaches the module; remove it");
    return false;
  }
  return true;
}

void ReadEnvKeep(Reader& r, const At& at) {
  r.Strings(at, &r.policy.env.keep.emplace(),
            [&](const At& item) { return CheckVariable(r, item, item.value.string); });
}

void ReadEnvSet(Reader& r, const At& at) {
  if (!r.Is(at, Kind::kObject, r.active.back()->type)) return;
  for (const JsonValue& member : at.value.items) {
    if (r.Enough()) return;
    const At here{member, at.pointer + PointerStep(member.key)};
    if (member.duplicate || !CheckVariable(r, here, member.key) || !r.Is(here, Kind::kString, "a string"))
      continue;
    if (member.string.find('\0') != std::string::npos) {
      r.Add(Code::kRange, here, "an environment variable cannot hold NUL");
      continue;
    }
    r.policy.env.set.emplace_back(member.key, member.string);
  }
}

void ReadKeepFds(Reader& r, const At& at) {
  auto& fds = r.policy.keep_fds.emplace();
  r.List(at, [&](const At& item) {
    if (item.value.kind != Kind::kInteger && item.value.kind != Kind::kReal)
      return r.WrongType(item, "a descriptor's number");
    int64_t fd = 0;
    if (!r.Integer(item, 0, kMaxInt, &fd)) return;
    if (fd < 3) return r.Add(Code::kRange, item, "descriptors 0, 1 and 2 are always kept; list those from 3");
    fds.push_back(static_cast<int>(fd));
  });
}

void ReadRefuseTcp(Reader& r, const At& at) { r.Choose(at, kTcpErrors, &r.policy.refuse_tcp_error); }

// --- the OCI seccomp section
// -----------------------------------------------------------------------------------------

constexpr auto kSeccompActions = std::to_array<std::string_view>(
    {"SCMP_ACT_KILL", "SCMP_ACT_KILL_PROCESS", "SCMP_ACT_KILL_THREAD", "SCMP_ACT_TRAP", "SCMP_ACT_ERRNO",
     "SCMP_ACT_TRACE", "SCMP_ACT_ALLOW", "SCMP_ACT_LOG", "SCMP_ACT_NOTIFY"});
constexpr auto kSeccompOperators =
    std::to_array<std::string_view>({"SCMP_CMP_NE", "SCMP_CMP_LT", "SCMP_CMP_LE", "SCMP_CMP_EQ",
                                     "SCMP_CMP_GE", "SCMP_CMP_GT", "SCMP_CMP_MASKED_EQ"});
constexpr auto kSeccompFlags = std::to_array<std::string_view>(
    {"SECCOMP_FILTER_FLAG_TSYNC", "SECCOMP_FILTER_FLAG_LOG", "SECCOMP_FILTER_FLAG_SPEC_ALLOW",
     "SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV"});
constexpr auto kSeccompArchitectures = std::to_array<std::string_view>(
    {"SCMP_ARCH_X86",     "SCMP_ARCH_X86_64",   "SCMP_ARCH_X32",         "SCMP_ARCH_ARM",
     "SCMP_ARCH_AARCH64", "SCMP_ARCH_MIPS",     "SCMP_ARCH_MIPS64",      "SCMP_ARCH_MIPS64N32",
     "SCMP_ARCH_MIPSEL",  "SCMP_ARCH_MIPSEL64", "SCMP_ARCH_MIPSEL64N32", "SCMP_ARCH_PPC",
     "SCMP_ARCH_PPC64",   "SCMP_ARCH_PPC64LE",  "SCMP_ARCH_S390",        "SCMP_ARCH_S390X",
     "SCMP_ARCH_PARISC",  "SCMP_ARCH_PARISC64", "SCMP_ARCH_RISCV64",     "SCMP_ARCH_LOONGARCH64",
     "SCMP_ARCH_M68K",    "SCMP_ARCH_SH",       "SCMP_ARCH_SHEB"});

// One of the words, or a problem of that code.
template <size_t N>
bool CheckWord(Reader& r, const At& at, const std::array<std::string_view, N>& words, Code code,
               std::string_view what) {
  if (std::ranges::find(words, at.value.string) != words.end()) return true;
  std::string text = "no " + std::string(what) + " is called " + Shown(at.value.string);
  if (const auto nearest = Nearest(at.value.string, words); !nearest.empty())
    text += "; did you mean " + Shown(nearest) + "?";
  r.Add(code, at, std::move(text));
  return false;
}

void ReadSeccomp(Reader& r, const At& at) {
  if (!r.Is(at, Kind::kObject, r.active.back()->type)) return;
  r.policy.seccomp.emplace();
  r.Members(at, "seccomp.");
  r.NeedsMember(at, "defaultAction");
}

void ReadAction(Reader& r, const At& at, std::string* out) {
  if (!r.Is(at, Kind::kString, r.active.back()->type)) return;
  if (!CheckWord(r, at, kSeccompActions, Code::kRange, "action")) return;
  if (at.value.string == "SCMP_ACT_NOTIFY")
    return r.Add(Code::kUnsupported, at,
                 "the supervisor answers Oarlock's own notifications alone; use another action");
  *out = at.value.string;
}

void ReadErrno(Reader& r, const At& at, std::optional<uint32_t>* out) {
  int64_t number = 0;
  if (r.Integer(at, 0, kMaxErrno, &number)) *out = static_cast<uint32_t>(number);
}

void ReadDefaultAction(Reader& r, const At& at) { ReadAction(r, at, &r.policy.seccomp->default_action); }
void ReadDefaultErrno(Reader& r, const At& at) { ReadErrno(r, at, &r.policy.seccomp->default_errno_ret); }

void ReadArchitectures(Reader& r, const At& at) {
  r.Strings(at, &r.policy.seccomp->architectures, [&](const At& item) {
    return CheckWord(r, item, kSeccompArchitectures, Code::kUnsupported, "architecture");
  });
}

void ReadFlags(Reader& r, const At& at) {
  r.Strings(at, &r.policy.seccomp->flags,
            [&](const At& item) { return CheckWord(r, item, kSeccompFlags, Code::kUnsupported, "flag"); });
}

void RefuseListener(Reader& r, const At& at) {
  r.Add(Code::kUnsupported, at, "the one listener of the sandbox is Oarlock's own; remove it");
}

void ReadSyscalls(Reader& r, const At& at) {
  r.List(at, [&](const At& item) {
    if (!r.Is(item, Kind::kObject, "an object with names and action")) return;
    SeccompRule rule;
    r.rule = &rule;
    r.Members(item, "seccomp.syscalls[].");
    r.NeedsMember(item, "names");
    r.NeedsMember(item, "action");
    const bool takes_errno = rule.action == "SCMP_ACT_ERRNO" || rule.action == "SCMP_ACT_TRACE";
    if (rule.errno_ret && !rule.action.empty() && !takes_errno)
      r.Add(Code::kConflict, At{*item.value.Find("errnoRet"), item.pointer + "/errnoRet"},
            "the action " + rule.action + " returns no errno");
    r.policy.seccomp->syscalls.push_back(std::move(rule));
  });
}

void ReadNames(Reader& r, const At& at) {
  r.Strings(at, &r.rule->names, [&](const At& item) {
    if (FindCall(item.value.string) != nullptr) return true;
    r.Add(Code::kUnsupported, item, "no system call is called " + Shown(item.value.string));
    return false;
  });
  if (at.value.kind == Kind::kList && at.value.items.empty()) r.Add(Code::kRange, at, "names no system call");
}

void ReadRuleAction(Reader& r, const At& at) { ReadAction(r, at, &r.rule->action); }
void ReadRuleErrno(Reader& r, const At& at) { ReadErrno(r, at, &r.rule->errno_ret); }

void ReadArguments(Reader& r, const At& at) {
  r.List(at, [&](const At& item) {
    if (!r.Is(item, Kind::kObject, "an object with index, value and op")) return;
    SeccompArgument argument;
    r.argument = &argument;
    r.Members(item, "seccomp.syscalls[].args[].");
    for (const std::string_view key : {"index", "value", "op"}) r.NeedsMember(item, key);
    r.rule->args.push_back(std::move(argument));
  });
}

void ReadIndex(Reader& r, const At& at) {
  int64_t index = 0;
  if (r.Integer(at, 0, 5, &index)) r.argument->index = static_cast<uint32_t>(index);
}

template <auto kMember>
void ReadArgumentValue(Reader& r, const At& at) {
  // The whole of 64 bits, which Integer does not reach.
  if (at.value.kind != Kind::kInteger) return r.WrongType(at);
  if (at.value.negative || at.value.huge) return r.Add(Code::kRange, at, "must be 0 to 18446744073709551615");
  r.argument->*kMember = at.value.magnitude;
}

void ReadOperator(Reader& r, const At& at) {
  if (r.Is(at, Kind::kString, r.active.back()->type) &&
      CheckWord(r, at, kSeccompOperators, Code::kRange, "operator"))
    r.argument->op = at.value.string;
}

// --- the table
// -------------------------------------------------------------------------------------------------------

constexpr std::string_view kBool = "true or false";
constexpr std::string_view kPaths = "a list of absolute paths";
constexpr std::string_view kPath = "an absolute path";
constexpr std::string_view kPathOrNull = "an absolute path or null";
constexpr std::string_view kHosts = "a list of host names";
constexpr std::string_view kNoneOrOwn = "\"none\" or \"own\"";

using P = Policy;

// To build an effect: write it, then turn the field's kNotBuilt into kBuilt (its last two columns then stay
// unread).
constexpr auto kRows = std::to_array<FieldRow>({
    {"version", "the integer 1", kNeverNull, kBuilt, ReadVersion},
    {"profile", "\"module\" or \"write-allowlist\"", kNeverNull, kBuilt, ReadName<&P::profile, kProfiles>},
    {"enforce", "\"strict\" or \"best-effort\"", kNeverNull, kBuilt, ReadName<&P::enforce, kEnforces>},
    {"require", "a list of the report's capability names", kNeverNull, kBuilt, ReadRequire},
    {"module", "a string of at most 200 bytes", kNeverNull, kBuilt, ReadModule},
    {"kind", "a string of at most 40 bytes", kNeverNull, kBuilt, ReadKind},

    {"exe", kPathOrNull, kOrNull, kBuilt, ReadOptionalPath<&P::exe>},
    {"ro", kPaths, kNeverNull, kBuilt, ReadPaths<&P::ro>},
    {"rw", kPaths, kNeverNull, kBuilt, ReadPaths<&P::rw>},
    {"rd", kPaths, kNeverNull, kBuilt, ReadPaths<&P::rd>},
    {"wo", kPaths, kNeverNull, kBuilt, ReadPaths<&P::wo>},
    {"roots", "a list of objects with path and rights", kNeverNull, kBuilt, ReadRoots},
    {"roots[].path", kPath, kNeverNull, kBuilt, ReadRootPath},
    {"roots[].rights", "a list of right names", kNeverNull, kBuilt, ReadRootRights},
    {"roots[].optional", kBool, kNeverNull, kBuilt, ReadRootOptional},
    {"base_system", kBool, kNeverNull, kBuilt, ReadBool<&P::base_system>},
    {"exec_rw", kBool, kNeverNull, kBuilt, ReadBool<&P::exec_rw>},
    {"exec_writable", kBool, kNeverNull, kBuilt, ReadExecWritable},
    {"exec_strict", kBool, kNeverNull, kBuilt, ReadBool<&P::exec_strict>},
    {"allow_write", kPaths, kNeverNull, kBuilt, ReadPaths<&P::allow_write>},
    {"write_defaults", kBool, kNeverNull, kBuilt, ReadBool<&P::write_defaults>},
    {"deny_paths", "an empty list", kNeverNull, kBuilt, ReadDenyPaths},

    {"net", "\"none\", \"egress-allowlist\", \"egress-any\" or \"host\"", kNeverNull, kBuilt,
     ReadName<&P::net, kNets>},
    {"proxy_port", "an integer from 1 to 65535 or null", kOrNull, kBuilt, ReadProxyPort},
    {"proxy_addr", "\"127.0.0.1\" or \"::1\"", kNeverNull, kBuilt, ReadName<&P::proxy_addr, kProxyAddresses>},
    {"net_allow", "a list of host[:port] or *.host[:port]", kNeverNull, kNotBuilt, ReadNetAllow, "",
     [](const P& p) { return !p.net_allow; }},
    {"http_rules", "a list of \"allow|deny METHOD host/path\"", kNeverNull, kNotBuilt, ReadHttpRules, "[]",
     [](const P& p) { return p.http_rules.empty(); }},
    {"net_allow_private", kHosts, kNeverNull, kNotBuilt, ReadHosts<&P::net_allow_private>, "[]",
     [](const P& p) { return p.net_allow_private.empty(); }},
    {"tls_intercept", kHosts, kNeverNull, kNotBuilt, ReadHosts<&P::tls_intercept>, "[]",
     [](const P& p) { return p.tls_intercept.empty(); }},
    {"inject", "a list of objects with host, header and from", kNeverNull, kNotBuilt, ReadInject, "[]",
     [](const P& p) { return p.inject.empty(); }},
    {"inject[].host", "a host name", kNeverNull, kBuilt, ReadInjectHost},
    {"inject[].header", "a header's name", kNeverNull, kBuilt, ReadInjectHeader},
    {"inject[].from", "\"env:NAME\", \"file:/path\" or \"fd:N\"", kNeverNull, kBuilt, ReadInjectFrom},
    {"broker_socket", kPathOrNull, kOrNull, kBuilt, ReadOptionalPath<&P::broker_socket, kMaxBrokerPathBytes>},
    {"unix_allow", "a list of absolute paths or null", kOrNull, kNotBuilt, ReadOptionalPaths<&P::unix_allow>,
     "[]", [](const P& p) { return p.unix_allow && p.unix_allow->empty(); }},

    {"gpu", "true, false, \"none\" or \"compute\"", kNeverNull, kBuilt, ReadGpu},
    {"gpu_devices", kPaths, kNeverNull, kBuilt, ReadOptionalPaths<&P::gpu_devices>},

    {"limits", "an object", kNeverNull, kBuilt, ReadObject},
    {"limits.cpu", "a number above 0", kNeverNull, kNotBuilt, ReadCpu, "",
     [](const P& p) { return !p.limits.cpu; }},
    {"limits.mem_gb", "a number above 0", kNeverNull, kNotBuilt, ReadMemory, "",
     [](const P& p) { return !p.limits.mem_gb; }},
    {"limits.swap_gb", "a number from 0", kNeverNull, kNotBuilt, ReadSwap, "0",
     [](const P& p) { return p.limits.swap_gb == 0; }},
    {"limits.pids", "an integer from 1 to 4194304", kNeverNull, kNotBuilt,
     ReadLimit<&Limits::pids, 1, kMaxPids>, "", [](const P& p) { return !p.limits.pids; }},
    {"limits.nofile", "an integer from 16", kNeverNull, kBuilt, ReadLimit<&Limits::nofile, 16, kMaxInt>},
    {"limits.connects_per_second", "an integer from 1", kNeverNull, kNotBuilt,
     ReadLimit<&Limits::connects_per_second, 1, kMaxInt>, "",
     [](const P& p) { return !p.limits.connects_per_second; }},
    {"limits.hard", kBool, kNeverNull, kNotBuilt, ReadHard, "false",
     [](const P& p) { return !p.limits.hard; }},
    {"cgroup", kPathOrNull, kOrNull, kNotBuilt, ReadOptionalPath<&P::cgroup>, "null",
     [](const P& p) { return !p.cgroup; }},

    {"supervisor", "an absolute path, \"fd:N\" or null", kOrNull, kBuilt, ReadSupervisor},
    {"seccomp", "an OCI seccomp object", kNeverNull, kNotBuilt, ReadSeccomp, "",
     [](const P& p) { return !p.seccomp; }},
    {"seccomp.defaultAction", "an action's name, as \"SCMP_ACT_ALLOW\"", kNeverNull, kBuilt,
     ReadDefaultAction},
    {"seccomp.defaultErrnoRet", "an integer from 0 to 4095", kNeverNull, kBuilt, ReadDefaultErrno},
    {"seccomp.architectures", "a list of architecture names", kNeverNull, kBuilt, ReadArchitectures},
    {"seccomp.flags", "a list of flag names", kNeverNull, kBuilt, ReadFlags},
    {"seccomp.listenerPath", "left out", kNeverNull, kBuilt, RefuseListener},
    {"seccomp.listenerMetadata", "left out", kNeverNull, kBuilt, RefuseListener},
    {"seccomp.syscalls", "a list of objects with names and action", kNeverNull, kBuilt, ReadSyscalls},
    {"seccomp.syscalls[].names", "a list of system call names", kNeverNull, kBuilt, ReadNames},
    {"seccomp.syscalls[].action", "an action's name, as \"SCMP_ACT_ERRNO\"", kNeverNull, kBuilt,
     ReadRuleAction},
    {"seccomp.syscalls[].errnoRet", "an integer from 0 to 4095", kNeverNull, kBuilt, ReadRuleErrno},
    {"seccomp.syscalls[].args", "a list of objects with index, value and op", kNeverNull, kBuilt,
     ReadArguments},
    {"seccomp.syscalls[].args[].index", "an integer from 0 to 5", kNeverNull, kBuilt, ReadIndex},
    {"seccomp.syscalls[].args[].value", "an integer of 64 bits", kNeverNull, kBuilt,
     ReadArgumentValue<&SeccompArgument::value>},
    {"seccomp.syscalls[].args[].valueTwo", "an integer of 64 bits", kNeverNull, kBuilt,
     ReadArgumentValue<&SeccompArgument::value_two>},
    {"seccomp.syscalls[].args[].op", "an operator's name, as \"SCMP_CMP_EQ\"", kNeverNull, kBuilt,
     ReadOperator},
    {"sysv_ipc", kBool, kNeverNull, kBuilt, ReadBool<&P::sysv_ipc>},
    {"run_as", "an object with uid and gid, or null", kOrNull, kBuilt, ReadRunAs},
    {"run_as.uid", "an integer from 0 to 4294967294", kNeverNull, kBuilt, ReadId<&Identity::uid>},
    {"run_as.gid", "an integer from 0 to 4294967294", kNeverNull, kBuilt, ReadId<&Identity::gid>},
    {"mediation", "\"full\" or \"connect\"", kNeverNull, kBuilt, ReadName<&P::mediation, kMediations>},
    {"local_unix", kNoneOrOwn, kNeverNull, kNotBuilt, ReadName<&P::local_unix, kLocals>, "\"none\"",
     [](const P& p) { return p.local_unix == Local::kNone; }},
    {"local_tcp", kNoneOrOwn, kNeverNull, kNotBuilt, ReadName<&P::local_tcp, kLocals>, "\"none\"",
     [](const P& p) { return p.local_tcp == Local::kNone; }},
    {"netlink_route", kNoneOrOwn, kNeverNull, kNotBuilt, ReadName<&P::netlink_route, kLocals>, "\"none\"",
     [](const P& p) { return p.netlink_route == Local::kNone; }},
    {"refuse_with", "an object with tcp", kNeverNull, kBuilt, ReadObject},
    {"refuse_with.tcp", "\"EACCES\", \"ENETUNREACH\" or \"ECONNREFUSED\"", kNeverNull, kBuilt, ReadRefuseTcp},
    {"broker_identity", kBool, kNeverNull, kNotBuilt, ReadBool<&P::broker_identity>, "false",
     [](const P& p) { return !p.broker_identity; }},
    {"audit_approvals", kBool, kNeverNull, kBuilt, ReadBool<&P::audit_approvals>},
    {"tty", "\"inherit\" or \"none\"", kNeverNull, kBuilt, ReadName<&P::tty, kTtys>},
    {"env", "an object with keep and set", kNeverNull, kBuilt, ReadObject},
    {"env.keep", "a list of variable names or null", kOrNull, kBuilt, ReadEnvKeep},
    {"env.set", "an object of strings", kNeverNull, kBuilt, ReadEnvSet},
    {"pty", kBool, kNeverNull, kBuilt, ReadBool<&P::pty>},
    {"shm", "\"none\" or \"host\"", kNeverNull, kBuilt, ReadName<&P::shm, kShms>},
    {"keep_fds", "a list of descriptor numbers from 3", kNeverNull, kBuilt, ReadKeepFds},
    {"log_denials", kBool, kNeverNull, kBuilt, ReadBool<&P::log_denials>},
    {"report", kPathOrNull, kOrNull, kBuilt, ReadOptionalPath<&P::report>},
});

constexpr bool EveryUnbuiltRowSaysWhatItTakes() {
  for (const FieldRow& row : kRows)
    if (!row.built && row.is_strictest == nullptr) return false;
  return true;
}
static_assert(EveryUnbuiltRowSaysWhatItTakes(), "a field that is not built yet needs its strictest value");

// The agent's keys, then the page's own. Other spellings of theirs (fs, net.no-loopback) never reach a
// coordinator.
constexpr auto kCapabilities = std::to_array<std::string_view>(
    {"filesystem",         "ipc",           "net.none",      "net.egress-allowlist",
     "net.egress-any",     "no_loopback",   "no_link_local", "gpu.compute",
     "exec_writable_deny", "folders.read",  "folders.write", "exec_writable_deny.mmap",
     "net.destination",    "unix.pathname", "sysv_ipc",      "metadata_writes",
     "cgroup.limits",      "cgroup.kill",   "children",      "audit"});

}  // namespace

std::span<const FieldRow> FieldRows() noexcept { return kRows; }

std::vector<FieldInfo> Fields() {
  std::vector<FieldInfo> fields;
  for (const FieldRow& row : kRows) {
    FieldInfo field{row.name, row.type, row.null_is_absent, row.built};
    // What stands inside a field that is not built is not built either.
    for (const FieldInfo& outer : fields)
      if (!outer.built && row.name.size() > outer.name.size() && row.name.starts_with(outer.name) &&
          (row.name[outer.name.size()] == '.' || row.name[outer.name.size()] == '['))
        field.built = false;
    fields.push_back(field);
  }
  return fields;
}

std::span<const std::string_view> Capabilities() noexcept { return kCapabilities; }

}  // namespace oarlock::policy
