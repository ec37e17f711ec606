// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <charconv>
#include <concepts>
#include <map>

#include "policy/json.h"
#include "policy/names.h"
#include "policy/policy.h"

namespace oarlock::policy {
namespace {

std::string ToJson(const Root& root);
std::string ToJson(const Injection& injection);
std::string ToJson(const Identity& identity);
std::string ToJson(const Limits& limits);
std::string ToJson(const Environment& env);
std::string ToJson(const SeccompArgument& argument);
std::string ToJson(const SeccompRule& rule);
std::string ToJson(const Seccomp& seccomp);

std::string ToJson(const std::string& value) { return JsonQuote(value); }
std::string ToJson(std::string_view value) { return JsonQuote(value); }
std::string ToJson(bool value) { return value ? "true" : "false"; }
template <std::integral Integer>
std::string ToJson(Integer value) {
  return std::to_string(value);
}
std::string ToJson(double value) {
  std::array<char, 32> digits;
  // The shortest text that reads as the same double.
  const auto [end, error] = std::to_chars(digits.data(), digits.data() + digits.size(), value);
  return std::string(digits.data(), end);
}

template <typename Item>
std::string ToJson(const std::vector<Item>& items) {
  std::string text = "[";
  for (const Item& item : items) {
    if (text.size() > 1) text += ',';
    text += ToJson(item);
  }
  return text + "]";
}

template <typename Value>
std::string ToJson(const std::optional<Value>& value) {
  return value ? ToJson(*value) : "null";
}

class Object {
 public:
  template <typename Value>
  Object& Put(std::string_view key, const Value& value) {
    return Raw(key, ToJson(value));
  }
  // Left out where there is nothing: for fields to which null means nothing.
  template <typename Value>
  Object& PutIf(std::string_view key, const std::optional<Value>& value) {
    return value ? Put(key, *value) : *this;
  }
  Object& Raw(std::string_view key, std::string text) {
    members_[std::string(key)] = std::move(text);
    return *this;
  }
  [[nodiscard]] std::string Done() const {
    std::string text = "{";
    for (const auto& [key, value] : members_) {
      if (text.size() > 1) text += ',';
      text += JsonQuote(key) + ":" + value;
    }
    return text + "}";
  }

 private:
  std::map<std::string, std::string> members_;
};

std::string ToJson(const Root& root) {
  std::vector<std::string_view> rights;
  for (const auto& right : kRights)
    if ((root.rights & right.value) != 0) rights.push_back(right.name);
  return Object().Put("path", root.path).Put("rights", rights).Put("optional", root.optional).Done();
}

std::string ToJson(const Injection& injection) {
  return Object()
      .Put("host", injection.host)
      .Put("header", injection.header)
      .Put("from", injection.from)
      .Done();
}

std::string ToJson(const Identity& identity) {
  return Object().Put("uid", identity.uid).Put("gid", identity.gid).Done();
}

std::string ToJson(const Limits& limits) {
  return Object()
      .PutIf("cpu", limits.cpu)
      .PutIf("mem_gb", limits.mem_gb)
      .Put("swap_gb", limits.swap_gb)
      .PutIf("pids", limits.pids)
      .PutIf("nofile", limits.nofile)
      .PutIf("connects_per_second", limits.connects_per_second)
      .Put("hard", limits.hard)
      .Done();
}

std::string ToJson(const Environment& env) {
  Object set;
  for (const auto& [name, value] : env.set) set.Put(name, value);
  return Object().Put("keep", env.keep).Raw("set", set.Done()).Done();
}

std::string ToJson(const SeccompArgument& argument) {
  return Object()
      .Put("index", argument.index)
      .Put("value", argument.value)
      .Put("valueTwo", argument.value_two)
      .Put("op", argument.op)
      .Done();
}

std::string ToJson(const SeccompRule& rule) {
  return Object()
      .Put("names", rule.names)
      .Put("action", rule.action)
      .PutIf("errnoRet", rule.errno_ret)
      .Put("args", rule.args)
      .Done();
}

std::string ToJson(const Seccomp& seccomp) {
  return Object()
      .Put("defaultAction", seccomp.default_action)
      .PutIf("defaultErrnoRet", seccomp.default_errno_ret)
      .Put("architectures", seccomp.architectures)
      .Put("flags", seccomp.flags)
      .Put("syscalls", seccomp.syscalls)
      .Done();
}

}  // namespace

std::string Emit(const Policy& policy) {
  Object object;
  object.Put("version", policy.version)
      .Put("profile", NameIn(kProfiles, policy.profile))
      .Put("enforce", NameIn(kEnforces, policy.enforce))
      .Put("require", policy.require)
      .Put("module", policy.module)
      .Put("kind", policy.kind)
      .Put("exe", policy.exe)
      .Put("ro", policy.ro)
      .Put("rw", policy.rw)
      .Put("rd", policy.rd)
      .Put("wo", policy.wo)
      .Put("roots", policy.roots)
      .Put("base_system", policy.base_system)
      .Put("exec_rw", policy.exec_rw)
      .Put("exec_strict", policy.exec_strict)
      .Put("write_defaults", policy.write_defaults)
      .Put("net", NameIn(kNets, policy.net))
      .Put("proxy_port", policy.proxy_port)
      .Put("proxy_addr", NameIn(kProxyAddresses, policy.proxy_addr))
      .PutIf("net_allow", policy.net_allow)
      .Put("http_rules", policy.http_rules)
      .Put("net_allow_private", policy.net_allow_private)
      .Put("tls_intercept", policy.tls_intercept)
      .Put("inject", policy.inject)
      .Put("broker_socket", policy.broker_socket)
      .PutIf("unix_allow", policy.unix_allow)
      .Put("gpu", policy.gpu)
      .PutIf("gpu_devices", policy.gpu_devices)
      .Put("limits", policy.limits)
      .Put("cgroup", policy.cgroup)
      .Put("supervisor", policy.supervisor)
      .PutIf("seccomp", policy.seccomp)
      .Put("sysv_ipc", policy.sysv_ipc)
      .Put("run_as", policy.run_as)
      .Put("mediation", NameIn(kMediations, policy.mediation))
      .Put("local_unix", NameIn(kLocals, policy.local_unix))
      .Put("local_tcp", NameIn(kLocals, policy.local_tcp))
      .Put("netlink_route", NameIn(kLocals, policy.netlink_route))
      .Raw("refuse_with", Object().Put("tcp", NameIn(kTcpErrors, policy.refuse_tcp_error)).Done())
      .Put("broker_identity", policy.broker_identity)
      .Put("audit_approvals", policy.audit_approvals)
      .Put("tty", NameIn(kTtys, policy.tty))
      .Put("env", policy.env)
      .Put("pty", policy.pty)
      .Put("shm", NameIn(kShms, policy.shm))
      .PutIf("keep_fds", policy.keep_fds)
      .Put("log_denials", policy.log_denials)
      .Put("report", policy.report);
  if (policy.profile == Profile::kWriteAllowlist) object.Put("allow_write", policy.allow_write);
  return object.Done();
}

}  // namespace oarlock::policy
