// SPDX-License-Identifier: Apache-2.0
#include "child/roots.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>

#include "notif/base/read_text.h"
#include "notif/base/resolve.h"
#include "notif/base/text.h"

namespace oarlock::child {
namespace {

using namespace abi;  // NOLINT(google-build-using-namespace): rights are its names

constexpr uint64_t kReadExecute = kFsExecute | kFsReadFile | kFsReadDir;
constexpr uint64_t kRead = kFsReadFile | kFsReadDir;
// Every right that a program without devices needs. Device nodes stay out (E-126); so does RESOLVE_UNIX, which stays handled
// with no rule: unix sockets are reached through the supervisor.
constexpr uint64_t kReadWrite = kFsReadFile | kFsReadDir | kFsWriteFile | kFsTruncate | kFsRemoveDir | kFsRemoveFile |
                                kFsMakeDir | kFsMakeReg | kFsMakeSock | kFsMakeFifo | kFsMakeSym | kFsRefer;
// Profile write-allowlist: whoever may write a tree may run what is in it.
constexpr uint64_t kWriteTree = kReadWrite | kFsExecute;
constexpr uint64_t kOutbox = kFsMakeReg | kFsMakeDir | kFsWriteFile | kFsTruncate;
constexpr uint64_t kDevice = kFsReadFile | kFsWriteFile;
constexpr uint64_t kChanges = kFsWriteFile | kFsTruncate | kFsRemoveDir | kFsRemoveFile | kFsMakeChar | kFsMakeDir |
                              kFsMakeReg | kFsMakeSock | kFsMakeFifo | kFsMakeBlock | kFsMakeSym | kFsRefer;

constexpr const char* kBaseReadExecute[] = {"/usr", "/lib", "/lib32", "/lib64", "/bin", "/sbin",
                                            "/etc", "/opt", "/proc", "/sys/devices/system/cpu"};
constexpr const char* kBaseDevices[] = {"/dev/null", "/dev/zero", "/dev/random", "/dev/urandom", "/dev/full"};
// Often links out of /etc, where Landlock judges the target: without these names do not resolve and no certificate verifies.
constexpr const char* kBaseFiles[] = {"/etc/resolv.conf", "/etc/hosts", "/etc/localtime", "/etc/mtab",
                                      "/etc/ssl/cert.pem", "/etc/ssl/certs/ca-certificates.crt",
                                      "/etc/pki/tls/certs/ca-bundle.crt"};
// What profile write-allowlist makes writable by itself; /run and /dev by what is in them, /proc see below.
constexpr const char* kWritableTrees[] = {"/tmp", "/var/tmp"};
// The machine's memory, ports and log among the character devices.
constexpr std::string_view kMachineDevices[] = {"mem", "kmem", "port", "kmsg", "nvram"};
constexpr const char* kGpuDevices[] = {"/dev/dri", "/dev/kfd"};
constexpr std::string_view kGpuPrefix = "nvidia";  // below /dev

// A path that leads nowhere for this user, and so for what it starts. Any other failure leaves open where it leads.
bool IsMissing(int error) { return error == ENOENT || error == ENOTDIR || error == EACCES; }

// One root on its way: what was asked, and what it came to.
struct Opened {
  PathRule rule;
  std::vector<std::string> link_directories;
};

class Opener {
 public:
  Step Add(const std::string& path, uint64_t rights, const std::string& pointer) {
    auto resolved = ResolvePath(path);
    if (!resolved) return Stop(Code::kPath, pointer, "'" + Printable(path, 200) + "': " + resolved.error().Message());
    return AddResolved(path, std::move(*resolved), rights, pointer);
  }
  // Nothing where it is not there, or where this user cannot get to.
  Step AddOptional(const std::string& path, uint64_t rights, const std::string& pointer, bool* there = nullptr) {
    auto resolved = ResolvePath(path);
    if (there != nullptr) *there = resolved.has_value();
    if (!resolved && !IsMissing(resolved.error().code)) return Stop(Code::kPath, pointer, "'" + Printable(path, 200) + "': " + resolved.error().Message());
    if (!resolved) return {};
    return AddResolved(path, std::move(*resolved), rights, pointer);
  }
  std::vector<Opened>& opened() { return opened_; }

 private:
  Step AddResolved(const std::string& path, ResolvedPath resolved, uint64_t rights, const std::string& pointer) {
    // The same object asked for twice has both rights.
    const auto same = std::ranges::find(opened_, resolved.canonical, [](const Opened& root) { return root.rule.path; });
    if (same != opened_.end()) {
      same->rule.rights |= rights;
      same->link_directories.insert(same->link_directories.end(), resolved.link_directories.begin(), resolved.link_directories.end());
      return {};
    }
    auto fd = OpenCanonical(resolved.canonical);
    if (!fd) return Stop(Code::kPath, pointer, "'" + Printable(path, 200) + "': " + fd.error().Message());
    struct stat status {};
    if (::fstat(fd->get(), &status) != 0) return Stop(Code::kPath, pointer, "'" + Printable(path, 200) + "': cannot be looked at");
    Opened root;
    root.rule.parent = std::move(*fd);
    root.rule.rights = rights;
    root.rule.is_directory = S_ISDIR(status.st_mode);
    root.rule.path = std::move(resolved.canonical);
    root.rule.pointer = pointer;
    root.link_directories = std::move(resolved.link_directories);
    opened_.push_back(std::move(root));
    return {};
  }
  std::vector<Opened> opened_;
};

// A place that no writable root may lie on or above.
struct Place {
  std::string path;
  const char* what;
  bool tolerated = false;
  bool log = false;  // of private supervisors: may lie below $HOME, and the report says so
};

// The canonical form of a place, or of its nearest ancestor that is there: what a module could make is as bad as what is.
std::string NearestCanonical(std::string path) {
  std::string missing;
  while (!path.empty()) {
    auto resolved = ResolvePath(path);
    if (resolved) return resolved->canonical == "/" ? missing : resolved->canonical + missing;
    if (!IsMissing(resolved.error().code)) return resolved.error().Message();  // no path: any root may hold it
    const size_t slash = path.rfind('/');
    missing = path.substr(slash) + missing;
    path.resize(slash);
  }
  return missing;
}

std::string At(const char* field, size_t index) { return std::string("/") + field + "/" + std::to_string(index); }

Step AddLists(const policy::Policy& policy, Opener& opener, Roots& roots) {
  const auto list = [&](const std::vector<std::string>& paths, const char* field, uint64_t rights) -> Step {
    for (size_t i = 0; i < paths.size(); ++i)
      if (auto step = opener.Add(paths[i], rights, At(field, i)); !step) return step;
    return {};
  };
  const uint64_t write = policy.exec_rw ? kReadWrite | kFsExecute : kReadWrite;
  if (auto step = list(policy.ro, "ro", kReadExecute); !step) return step;
  if (auto step = list(policy.rw, "rw", write); !step) return step;
  if (auto step = list(policy.rd, "rd", kRead); !step) return step;
  if (auto step = list(policy.wo, "wo", kOutbox); !step) return step;
  for (const policy::Root& root : policy.roots) {
    bool there = true;
    const Step step = root.optional ? opener.AddOptional(root.path, root.rights, root.pointer, &there)
                                    : opener.Add(root.path, root.rights, root.pointer);
    if (!step) return step;
    if (!there) roots.skipped.push_back(root.path);
  }
  if (policy.exe) return opener.Add(*policy.exe, kFsExecute | kFsReadFile, "/exe");
  return {};
}

Step AddBaseSystem(const policy::Policy& policy, Opener& opener) {
  if (!policy.base_system) return {};
  const std::string pointer = "/base_system";
  for (const char* path : kBaseReadExecute)
    if (auto step = opener.AddOptional(path, kReadExecute, pointer); !step) return step;
  for (const char* path : kBaseFiles)
    if (auto step = opener.AddOptional(path, kFsReadFile, pointer); !step) return step;
  for (const char* path : kBaseDevices)
    if (auto step = opener.AddOptional(path, kDevice, pointer); !step) return step;
  return {};
}

Step AddDevices(const policy::Policy& policy, Opener& opener) {
  constexpr uint64_t kControl = kDevice | kFsReadDir | kFsIoctlDev;
  if (policy.tty == policy::Tty::kInherit)
    if (auto step = opener.AddOptional("/dev/tty", kControl, "/tty"); !step) return step;
  if (policy.tty == policy::Tty::kInherit)
    if (const char* terminal = ::ttyname(STDIN_FILENO); terminal != nullptr)
      if (auto step = opener.AddOptional(terminal, kControl, "/tty"); !step) return step;
  if (policy.pty)
    for (const char* path : {"/dev/ptmx", "/dev/pts"})
      if (auto step = opener.AddOptional(path, kControl, "/pty"); !step) return step;
  if (policy.shm == policy::Shm::kHost) {
    const bool by_default = policy.profile == policy::Profile::kWriteAllowlist;
    const Step step = by_default ? opener.AddOptional("/dev/shm", kReadWrite, "/shm") : opener.Add("/dev/shm", kReadWrite, "/shm");
    if (!step) return step;
  }
  if (!policy.gpu) return {};

  size_t found = 0;
  if (policy.gpu_devices) {
    for (size_t i = 0; i < policy.gpu_devices->size(); ++i, ++found)
      if (auto step = opener.Add((*policy.gpu_devices)[i], kControl, At("gpu_devices", i)); !step) return step;
  } else {
    std::vector<std::string> paths(std::begin(kGpuDevices), std::end(kGpuDevices));
    if (DIR* devices = ::opendir("/dev"); devices != nullptr) {
      while (const dirent* entry = ::readdir(devices))
        if (std::string_view(entry->d_name).starts_with(kGpuPrefix)) paths.push_back(std::string("/dev/") + entry->d_name);
      (void)::closedir(devices);
    }
    for (const std::string& path : paths) {
      bool there = false;
      if (auto step = opener.AddOptional(path, kControl, "/gpu", &there); !step) return step;
      found += there ? 1 : 0;
    }
  }
  if (found == 0) return Stop(Code::kGpu, "/gpu", "no GPU device is present (/dev/dri, /dev/nvidia*, /dev/kfd)");
  return {};
}

std::vector<Place> PlacesOf(const RootsContext& context, const std::string& broker) {
  std::vector<Place> places;
  const auto add = [&](const std::string& path, const char* what, bool log = false) {
    if (!path.empty()) places.push_back({NearestCanonical(path), what, false, log});
  };
  add(context.places.runtime, "Oarlock's runtime directory");
  if (!context.places.log.empty()) add(DirectoryOf(context.places.log), "Oarlock's log", true);
  add(context.places.log_directory, "Oarlock's logs", true);
  if (context.supervisor.starts_with('/')) add(DirectoryOf(context.supervisor), "the supervisor's socket");
  add(context.places.grants, "Oarlock's grants");
  if (!broker.empty()) places.push_back({DirectoryOf(broker), "the broker's directory"});
  if (!context.policy_directory.empty()) places.push_back({context.policy_directory, "the policy file's directory", context.tolerate_own_policy});
  return places;
}

// What is in `directory` today, but for `places` and what lies above them. Links lead to what has a rule of its own, or should
// have none; block devices are whole file systems.
Step AddChildren(const std::string& directory, uint64_t rights, const std::vector<Place>& places, Opener& opener) {
  DIR* entries = ::opendir(directory.c_str());
  if (entries == nullptr) return {};
  std::vector<std::string> names;
  while (const dirent* entry = ::readdir(entries))
    if (const std::string_view name(entry->d_name); name != "." && name != "..") names.emplace_back(name);
  (void)::closedir(entries);
  std::ranges::sort(names);
  for (const std::string& name : names) {
    const std::string path = directory + "/" + name;
    struct stat status {};
    if (::lstat(path.c_str(), &status) != 0 || S_ISLNK(status.st_mode) || S_ISBLK(status.st_mode)) continue;
    if (S_ISCHR(status.st_mode) && std::ranges::find(kMachineDevices, name) != std::end(kMachineDevices)) continue;
    const auto is_it = [&](const Place& place) { return place.path == path; };
    const auto holds = [&](const Place& place) { return IsAtOrBelow(place.path, path); };
    if (std::ranges::any_of(places, is_it)) continue;
    const Step step = std::ranges::any_of(places, holds) ? AddChildren(path, rights, places, opener)
                                                         : opener.AddOptional(path, rights, "/write_defaults");
    if (!step && ::lstat(path.c_str(), &status) == 0) return step;  // else it has gone meanwhile
  }
  return {};
}

Step AddWriteAllowlist(const policy::Policy& policy, const RootsContext& context, const std::vector<Place>& places, Opener& opener, Roots& roots) {
  if (policy.profile != policy::Profile::kWriteAllowlist) return {};
  if (auto step = opener.Add("/", kReadExecute, "/profile"); !step) return step;
  for (size_t i = 0; i < policy.allow_write.size(); ++i) {
    const std::string& path = policy.allow_write[i];
    bool there = true;
    const Step step = policy.enforce == policy::Enforce::kBestEffort ? opener.AddOptional(path, kWriteTree, At("allow_write", i), &there)
                                                                     : opener.Add(path, kWriteTree, At("allow_write", i));
    if (!step) return step;
    if (there) continue;
    roots.skipped.push_back(path);
    roots.warnings.push_back("/allow_write/" + std::to_string(i) + ": '" + Printable(path, 200) + "' is not there and is left out");
  }
  if (!policy.write_defaults) return {};
  const std::string pointer = "/write_defaults";
  for (const char* path : kWritableTrees)
    if (auto step = opener.AddOptional(path, kWriteTree, pointer); !step) return step;
  if (context.home.starts_with('/'))
    if (auto step = opener.AddOptional(context.home, kWriteTree, pointer); !step) return step;
  if (auto step = AddChildren("/dev", kWriteTree | kFsIoctlDev, places, opener); !step) return step;
  if (auto step = AddChildren("/run", kWriteTree, places, opener); !step) return step;
  // Uid 0 needs no capability to write sysctls, and one of them names a program that the kernel runs outside of all this.
  const bool root = policy.run_as ? policy.run_as->uid == 0 : ::geteuid() == 0;
  if (!root) return opener.AddOptional("/proc", kWriteTree, pointer);
  roots.warnings.emplace_back("the command runs as uid 0, which may write sysctls: of /proc only its own process's directory is writable (give it a uid of its own: run_as)");
  return opener.AddOptional("/proc/self", kWriteTree, pointer);
}

Step CheckGpuDevices(const policy::Policy& policy, const std::vector<Opened>& opened) {
  if (!policy.gpu_devices) return {};
  for (const Opened& root : opened) {
    if (!root.rule.pointer.starts_with("/gpu_devices/")) continue;
    struct stat status {};
    const bool device = ::fstat(root.rule.parent.get(), &status) == 0 && (S_ISCHR(status.st_mode) || S_ISDIR(status.st_mode));
    if (!device) return Stop(Code::kPath, root.rule.pointer, "'" + Printable(root.rule.path, 200) + "' is no device and no directory of devices");
  }
  return {};
}

Checked<std::string> ResolveBroker(const policy::Policy& policy, std::vector<std::string>& link_directories) {
  if (!policy.broker_socket) return std::string();
  const std::string shown = "'" + Printable(*policy.broker_socket, 200) + "'";
  auto resolved = ResolvePath(*policy.broker_socket);
  if (!resolved) return Stop(Code::kPath, "/broker_socket", shown + ": " + resolved.error().Message());
  struct stat status {};
  if (::lstat(resolved->canonical.c_str(), &status) != 0 || !S_ISSOCK(status.st_mode))
    return Stop(Code::kPath, "/broker_socket", shown + " is no socket");
  if (resolved->canonical.size() > policy::kMaxBrokerPathBytes)
    return Stop(Code::kPath, "/broker_socket", shown + " resolves to a path longer than 103 bytes");
  link_directories = std::move(resolved->link_directories);
  return resolved->canonical;
}

struct Identity {
  dev_t device;
  ino_t inode;
  friend bool operator==(const Identity&, const Identity&) = default;
};
// ENOENT and the like where there is nothing to identify.
Result<Identity> IdentityOf(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return OARLOCK_FAIL("stat", errno, "'%s'", path.c_str());
  return Identity{status.st_dev, status.st_ino};
}

Checked<std::vector<std::string>> MountPoints() {
  constexpr size_t kMaxBytes = 64 << 20;  // 100,000 mounts, the kernel's limit for a namespace, of 600 bytes
  const auto text = ReadText("/proc/self/mountinfo", kMaxBytes);
  if (!text) return Stop(Code::kPath, "", "what is mounted below the writable roots cannot be told: " + text.error().Message());
  std::vector<std::string> mounts;
  for (size_t at = 0; at < text->size();) {
    const size_t end = std::min(text->find('\n', at), text->size());
    // id parent major:minor root mount-point ...; a space in a path is \\040.
    for (int field = 0; field < 4 && at < end; ++field) at = std::min(text->find(' ', at), end) + 1;
    std::string point = text->substr(at, std::min(text->find(' ', at), end) - at);
    for (size_t space = 0; (space = point.find("\\040", space)) != std::string::npos;) point.replace(space, 4, " ");
    mounts.push_back(std::move(point));
    at = end + 1;
  }
  return mounts;
}

// A root below which the module may make changes, and what they may reach.
class WritableRoot {
 public:
  static Checked<WritableRoot> Make(const PathRule& rule, const std::vector<std::string>& mounts) {
    WritableRoot root(rule);
    // A right on a directory covers what is mounted below it. A mount that answers to nobody leads nowhere.
    for (const std::string& path : mounts) {
      if (!IsAtOrBelow(path, rule.path)) continue;
      const auto identity = IdentityOf(path);
      if (identity) root.doors_.push_back(*identity);
      else if (const int error = identity.error().code; !IsMissing(error) && error != ENOTCONN && error != ESTALE)
        return Stop(Code::kPath, rule.pointer, "what is mounted below '" + Printable(rule.path, 200) + "' cannot be told: " + identity.error().Message());
    }
    // By the opened directory: its name may have gone since.
    struct stat own {};
    if (::fstat(rule.parent.get(), &own) != 0) return Stop(Code::kPath, rule.pointer, "'" + Printable(rule.path, 200) + "': " + ErrnoName(errno));
    root.doors_.push_back({own.st_dev, own.st_ino});
    return root;
  }
  [[nodiscard]] const PathRule& rule() const noexcept { return rule_; }
  // Whether writing below it can reach `place`, also where one of them is another mount of the same tree.
  // A place that cannot be looked at may be anywhere.
  [[nodiscard]] bool Reaches(const std::string& place) const {
    if (!place.starts_with('/') || IsAtOrBelow(place, rule_.path)) return true;
    for (std::string path = place; path != "/"; path = DirectoryOf(path)) {
      const auto identity = IdentityOf(path);
      if (identity ? std::ranges::find(doors_, *identity) != doors_.end() : !IsMissing(identity.error().code)) return true;
    }
    return false;
  }

 private:
  explicit WritableRoot(const PathRule& rule) : rule_(rule) {}
  const PathRule& rule_;
  std::vector<Identity> doors_;
};

Checked<std::vector<WritableRoot>> WritableRoots(const std::vector<Opened>& opened) {
  std::vector<std::string> mounts;
  std::vector<WritableRoot> writable;
  for (const Opened& root : opened) {
    if ((root.rule.rights & kChanges) == 0 || !root.rule.is_directory) continue;
    if (writable.empty()) {
      auto points = MountPoints();
      if (!points) return std::unexpected(points.error());
      mounts = std::move(*points);
    }
    auto made = WritableRoot::Make(root.rule, mounts);
    if (!made) return std::unexpected(made.error());
    writable.push_back(std::move(*made));
  }
  return writable;
}

Step CheckWritable(const std::vector<WritableRoot>& writable, const std::vector<Place>& places, const std::string& home, Roots& roots) {
  for (const WritableRoot& root : writable) {
    for (const Place& place : places) {
      if (place.path.empty() || !root.Reaches(place.path)) continue;
      const std::string text = "the writable root '" + Printable(root.rule().path, 200) + "' holds " + place.what + " (" +
                               Printable(place.path, 200) + "): the module would write its own next launch";
      if (place.log && !home.empty() && root.rule().path == home) {
        roots.log_below_home = true;
        continue;
      }
      if (!place.tolerated) return Stop(Code::kConflict, root.rule().pointer, text + "; move one of the two");
      roots.warnings.push_back(text);
    }
  }
  return {};
}

Step CheckLinks(const std::vector<WritableRoot>& writable, const std::vector<std::string>& directories, const std::string& pointer) {
  for (const std::string& directory : directories)
    for (const WritableRoot& root : writable)
      if (IsAtOrBelow(directory, root.rule().path))
        return Stop(Code::kPath, pointer, "a symbolic link in '" + Printable(directory, 200) + "', which this sandbox may write, leads to it: "
                                          "the module could point it elsewhere for the next launch");
  return {};
}

// Where the report goes: the launcher writes it with its own rights, which may be root's, so the module must have no say in
// where that is.
Step OpenReport(const policy::Policy& policy, const std::vector<WritableRoot>& writable, Roots& roots) {
  if (!policy.report) return {};
  const std::string shown = "'" + Printable(*policy.report, 200) + "'";
  auto resolved = ResolvePath(DirectoryOf(*policy.report));
  if (!resolved) return Stop(Code::kPath, "/report", shown + ": " + resolved.error().Message());
  roots.report_name = policy.report->substr(policy.report->rfind('/') + 1);
  if (roots.report_name.empty() || roots.report_name == "." || roots.report_name == "..") return Stop(Code::kPath, "/report", shown + " names no file");
  if (auto step = CheckLinks(writable, resolved->link_directories, "/report"); !step) return step;
  for (const WritableRoot& root : writable)
    if (root.Reaches(resolved->canonical))
      return Stop(Code::kConflict, "/report", shown + " lies where the sandbox may write ('" + Printable(root.rule().path, 200) + "'): it could lead the launcher elsewhere");
  auto directory = OpenCanonical(resolved->canonical);
  if (!directory) return Stop(Code::kPath, "/report", shown + ": " + directory.error().Message());
  roots.report_directory = std::move(*directory);
  return {};
}

}  // namespace

Checked<Roots> OpenRoots(const policy::Policy& policy, const RootsContext& context) {
  Roots roots;
  std::vector<std::string> broker_links;
  auto broker = ResolveBroker(policy, broker_links);
  if (!broker) return std::unexpected(broker.error());
  roots.broker_resolved = *broker;
  const std::vector<Place> places = PlacesOf(context, roots.broker_resolved);

  Opener opener;
  if (auto step = AddLists(policy, opener, roots); !step) return std::unexpected(step.error());
  if (auto step = AddBaseSystem(policy, opener); !step) return std::unexpected(step.error());
  if (auto step = AddWriteAllowlist(policy, context, places, opener, roots); !step) return std::unexpected(step.error());
  if (auto step = AddDevices(policy, opener); !step) return std::unexpected(step.error());
  if (auto step = CheckGpuDevices(policy, opener.opened()); !step) return std::unexpected(step.error());

  std::vector<Opened>& opened = opener.opened();
  const auto writable_roots = WritableRoots(opened);
  if (!writable_roots) return std::unexpected(writable_roots.error());
  const std::vector<WritableRoot>& writable = *writable_roots;
  for (const Opened& root : opened)
    if (auto step = CheckLinks(writable, root.link_directories, root.rule.pointer); !step) return std::unexpected(step.error());
  if (auto step = CheckLinks(writable, broker_links, "/broker_socket"); !step) return std::unexpected(step.error());

  if (auto step = OpenReport(policy, writable, roots); !step) return std::unexpected(step.error());
  const auto home = policy.profile == policy::Profile::kWriteAllowlist ? ResolvePath(context.home) : Result<ResolvedPath>(ResolvedPath{});
  if (auto step = CheckWritable(writable, places, home ? home->canonical : "", roots); !step) return std::unexpected(step.error());

  for (Opened& root : opened) roots.rules.push_back(std::move(root.rule));
  return roots;
}

}  // namespace oarlock::child
