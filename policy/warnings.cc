// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "notif/abi/landlock.h"
#include "notif/base/text.h"
#include "policy/policy.h"

namespace oarlock::policy {
namespace {

struct Writable {
  std::string pointer;
  std::string path;  // without . and .. and doubled slashes
};

std::string Shown(std::string_view path) { return "\"" + Printable(path, 80) + "\""; }

// By text alone, as nothing is looked up here: a link in the path may make it wrong, which a warning can
// bear.
std::string Normal(std::string_view path) {
  std::vector<std::string_view> parts;
  while (!path.empty()) {
    const size_t slash = path.find('/');
    const std::string_view part = path.substr(0, slash);
    if (part == "..") {
      if (!parts.empty()) parts.pop_back();
    } else if (!part.empty() && part != ".") {
      parts.push_back(part);
    }
    path = slash == std::string_view::npos ? std::string_view() : path.substr(slash + 1);
  }
  std::string text;
  for (const std::string_view part : parts) {
    text += '/';
    text += part;
  }
  return text.empty() ? "/" : text;
}

bool IsAtOrBelow(std::string_view path, std::string_view root) {
  if (root == "/") return true;
  return path.starts_with(root) && (path.size() == root.size() || path[root.size()] == '/');
}

bool IsHome(std::string_view path) {
  if (path == "/root" || path == "/home") return true;
  return path.starts_with("/home/") && path.find('/', 6) == std::string_view::npos;
}

// What the system runs and believes: no part of it is a module's own.
constexpr auto kSystem = std::to_array<std::string_view>(
    {"/bin", "/boot", "/etc", "/lib", "/lib32", "/lib64", "/libx32", "/proc", "/sbin", "/sys", "/usr"});
// What all programs share: a directory in it may well be a module's own, the whole is not.
constexpr auto kShared = std::to_array<std::string_view>(
    {"/dev", "/opt", "/run", "/srv", "/tmp", "/var/lib", "/var/log", "/var/spool", "/var/tmp"});

std::vector<Writable> WritableRoots(const Policy& policy) {
  constexpr uint64_t kReading = abi::kFsExecute | abi::kFsReadFile | abi::kFsReadDir;
  std::vector<Writable> roots;
  const auto add = [&](std::string_view field, const std::vector<std::string>& paths) {
    for (size_t i = 0; i < paths.size(); ++i)
      roots.push_back({"/" + std::string(field) + "/" + std::to_string(i), Normal(paths[i])});
  };
  add("rw", policy.rw);
  add("wo", policy.wo);
  add("allow_write", policy.allow_write);
  for (const Root& root : policy.roots)
    if ((root.rights & ~kReading) != 0) roots.push_back({root.pointer, Normal(root.path)});
  return roots;
}

// The outer of all writable roots that hold `path`, or null.
const Writable* Holder(const std::vector<Writable>& roots, std::string_view path) {
  const auto at =
      std::ranges::find_if(roots, [&](const Writable& root) { return IsAtOrBelow(path, root.path); });
  return at == roots.end() ? nullptr : &*at;
}

void WarnOfRoot(const Writable& root, std::vector<Warning>* warnings) {
  const auto warn = [&](std::string text) { warnings->push_back({root.pointer, std::move(text)}); };
  const auto is_above = [&](std::string_view part) { return IsAtOrBelow(part, root.path); };
  const auto is_below = [&](std::string_view part) { return IsAtOrBelow(root.path, part); };
  if (root.path == "/") {
    warn("makes the whole file system writable; name the directories that are needed");
  } else if (IsHome(root.path)) {
    warn(
        "makes a home directory writable, with the keys and start-up files in it; name a directory below it");
  } else if (std::ranges::any_of(kSystem, is_above) || std::ranges::any_of(kSystem, is_below)) {
    warn("makes a part of the system writable (" + Shown(root.path) +
         "); name a directory of the module's own");
  } else if (std::ranges::any_of(kShared, is_above)) {
    warn("makes writable what all programs share (" + Shown(root.path) +
         "); name a directory of the module's own");
  }
}

void WarnOfReading(std::string_view field, const std::vector<std::string>& paths,
                   std::vector<Warning>* warnings) {
  for (size_t i = 0; i < paths.size(); ++i) {
    const std::string path = Normal(paths[i]);
    const std::string pointer = "/" + std::string(field) + "/" + std::to_string(i);
    if (path == "/") {
      warnings->push_back({pointer, "makes every file readable; name the directories that are needed"});
    } else if (IsHome(path)) {
      warnings->push_back(
          {pointer,
           "makes a home directory readable, with the keys and tokens in it; name a directory "
           "below it"});
    }
  }
}

void WarnOfGlobs(std::string_view field, const std::vector<std::string>& paths,
                 std::vector<Warning>* warnings) {
  for (size_t i = 0; i < paths.size(); ++i)
    if (paths[i].find_first_of("*?[") != std::string::npos)
      warnings->push_back({"/" + std::string(field) + "/" + std::to_string(i),
                           Shown(paths[i]) + " is taken literally: paths hold no patterns"});
}

}  // namespace

std::vector<Warning> Warnings(const Policy& policy) {
  std::vector<Warning> warnings;
  const std::vector<Writable> writable = WritableRoots(policy);
  for (const Writable& root : writable) WarnOfRoot(root, &warnings);
  WarnOfReading("ro", policy.ro, &warnings);
  WarnOfReading("rd", policy.rd, &warnings);
  const auto lists = std::to_array<std::pair<std::string_view, const std::vector<std::string>*>>(
      {{"ro", &policy.ro},
       {"rw", &policy.rw},
       {"rd", &policy.rd},
       {"wo", &policy.wo},
       {"allow_write", &policy.allow_write}});
  for (const auto& [field, paths] : lists) WarnOfGlobs(field, *paths, &warnings);

  if (policy.exe)
    if (const Writable* root = Holder(writable, Normal(*policy.exe)))
      warnings.push_back(
          {"/exe", "lies below " + root->pointer + ", so the module can replace its own program"});
  if (policy.broker_socket)
    if (const Writable* root = Holder(writable, Normal(*policy.broker_socket)))
      warnings.push_back(
          {"/broker_socket", "lies below " + root->pointer +
                                 ", where the module could put a socket of its own in its place: the "
                                 "launch will be refused with P_CONFLICT"});
  if (policy.run_as && policy.run_as->uid == 0)
    warnings.push_back({"/run_as/uid", "runs the module as root; choose a uid of its own"});
  return warnings;
}

}  // namespace oarlock::policy
