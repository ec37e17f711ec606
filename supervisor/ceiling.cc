// SPDX-License-Identifier: Apache-2.0
#include "supervisor/ceiling.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "notif/base/resolve.h"
#include "notif/base/text.h"
#include "notif/json.h"
#include "notif/wire.h"

namespace oarlock::supervisor {
namespace {

std::unexpected<Error> Wrong(const std::string& text) { return OARLOCK_FAIL("max-grant", EINVAL, "%s", text.c_str()); }

bool IsPort(const Json& json) { return json.is_number_unsigned() && json.get<uint64_t>() >= 1 && json.get<uint64_t>() <= 65535; }

}  // namespace

Result<Ceiling> Ceiling::Parse(std::string_view text) {
  std::string problem;
  const Json json = ParseStrictJson(text, &problem);
  if (!problem.empty()) return Wrong(problem);
  if (!json.is_object()) return Wrong("the file must hold one JSON object");
  Ceiling ceiling;
  for (const auto& [key, value] : json.items()) {
    const std::string at = "/" + Printable(key, 40);
    if (key == "uids") {
      if (!value.is_array()) return Wrong(at + ": must be an array of uids");
      for (const Json& uid : value) {
        if (!uid.is_number_unsigned() || uid.get<uint64_t>() >= UINT32_MAX) return Wrong(at + ": must be an array of uids");
        ceiling.uids.push_back(uid.get<uint32_t>());
      }
    } else if (key == "net") {
      bool known = false;
      for (const NetMode mode : {NetMode::kNone, NetMode::kEgressAllowlist, NetMode::kEgressAny, NetMode::kHost})
        if (value == Name(mode)) {
          ceiling.net = mode;
          known = true;
        }
      if (!known) return Wrong(at + ": must be one of none, egress-allowlist, egress-any, host");
    } else if (key == "proxy") {
      if (!value.is_array()) return Wrong(at + ": must be an array of {addr, ports: [low, high]}");
      for (size_t i = 0; i < value.size(); ++i) {
        const Json& entry = value[i];
        const std::string entry_at = at + "/" + std::to_string(i);
        if (!entry.is_object() || entry.size() != 2 || !entry.contains("addr") || !entry.contains("ports"))
          return Wrong(entry_at + ": must be {addr, ports: [low, high]}");
        ProxyRange range;
        if (entry["addr"] == Text(ProxyAddress::kLoopback6)) range.address = ProxyAddress::kLoopback6;
        else if (entry["addr"] != Text(ProxyAddress::kLoopback4)) return Wrong(entry_at + "/addr: must be 127.0.0.1 or ::1");
        const Json& ports = entry["ports"];
        if (!ports.is_array() || ports.size() != 2 || !IsPort(ports[0]) || !IsPort(ports[1]) || ports[0] > ports[1])
          return Wrong(entry_at + "/ports: must be [low, high], each 1 to 65535");
        range.low = ports[0].get<uint16_t>();
        range.high = ports[1].get<uint16_t>();
        ceiling.proxies.push_back(range);
      }
    } else if (key == "broker_dirs") {
      if (!value.is_array()) return Wrong(at + ": must be an array of directories");
      for (size_t i = 0; i < value.size(); ++i) {
        const std::string entry_at = at + "/" + std::to_string(i);
        if (!value[i].is_string()) return Wrong(entry_at + ": must be a directory's path");
        Directory directory;
        directory.path = value[i].get<std::string>();
        struct stat status {};
        const auto resolved = directory.path.starts_with('/') ? ResolvePath(directory.path) : Result<ResolvedPath>(ResolvedPath{});
        if (!resolved || resolved->canonical.empty() || ::stat(resolved->canonical.c_str(), &status) != 0 || !S_ISDIR(status.st_mode))
          return Wrong(entry_at + ": '" + Printable(directory.path, 100) + "' is no directory");
        directory.path = resolved->canonical;
        directory.device = status.st_dev;
        directory.inode = status.st_ino;
        ceiling.broker_directories.push_back(std::move(directory));
      }
    } else if (key == "unix_any") {
      if (value != false) return Wrong(at + ": only false is built");
    } else if (key == "local_unix" || key == "local_tcp") {
      if (value != "none") return Wrong(at + ": only \"none\" is built");
    } else {
      return Wrong(at + ": unknown key");
    }
  }
  return ceiling;
}

Result<Ceiling> Ceiling::Load(const std::string& path) {
  std::ifstream file(path);
  if (!file) return OARLOCK_FAIL("open", errno, "%s", path.c_str());
  std::stringstream text;
  text << file.rdbuf();
  return Parse(text.str());
}

Status Ceiling::Apply(Grant& grant, uint32_t module_uid) const {
  const auto exceeds = [](const std::string& what) { return OARLOCK_FAIL("max-grant", EPERM, "%s", what.c_str()); };
  if (std::ranges::find(uids, module_uid) == uids.end())
    return exceeds("uid " + std::to_string(module_uid) + " is not among the operator's uids");
  if (grant.net > net) return exceeds(std::string("net ") + Name(grant.net) + " exceeds the operator's " + Name(net));
  if (grant.proxy_port != 0 && std::ranges::none_of(proxies, [&](const ProxyRange& range) {
        return range.address == grant.proxy_address && range.low <= grant.proxy_port && grant.proxy_port <= range.high;
      }))
    return exceeds("proxy port " + std::to_string(grant.proxy_port) + " is not among the operator's");
  if (grant.has_broker()) {
    const std::string parent = DirectoryOf(grant.broker_resolved), name = grant.broker_resolved.substr(grant.broker_resolved.rfind('/') + 1);
    struct stat status {};
    const bool there = ::stat(parent.c_str(), &status) == 0;
    const auto directory = std::ranges::find_if(broker_directories, [&](const Directory& allowed) {
      return there && allowed.device == status.st_dev && allowed.inode == status.st_ino;
    });
    if (directory == broker_directories.end() || name.empty() || name == "." || name == "..")
      return exceeds("the broker's directory '" + Printable(parent, 100) + "' is not among the operator's");
    grant.broker_resolved = directory->path + "/" + name;
    if (grant.broker_resolved.size() > wire::kMaxBrokerPath)
      return exceeds("the broker's path is longer than " + std::to_string(wire::kMaxBrokerPath) + " bytes by its canonical name");
  }
  return {};
}

}  // namespace oarlock::supervisor
