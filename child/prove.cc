// SPDX-License-Identifier: Apache-2.0
#include "child/prove.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace oarlock::child {
namespace {

constexpr const char* kNoEffect = "landlock_restrict_self returned success, yet a forbidden ";

bool OpensAsDirectory(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  return fd.valid();
}

// Device nodes are made nowhere. One that stands for no device needs no privilege (since 5.8), so in a directory that we may
// write to, Landlock alone is in the way.
Step ProveNodes(const std::string& directory) {
  const std::string path = directory + "/.oarlock-" + std::to_string(::getpid());
  if (::mknod(path.c_str(), S_IFCHR | 0600, 0) != 0 && errno == EACCES) return {};
  (void)::unlink(path.c_str());
  return Stop(Code::kLandlock, "", std::string(kNoEffect) + "mknod is not refused: something filters us");
}

bool IsReadableRoot(const PathRule& rule) { return rule.path == "/" && (rule.rights & abi::kFsReadDir) != 0; }

// The wall has no door: any connect is EACCES before a packet is thought of. Without the domain it would be ECONNREFUSED.
Step ProveNetwork() {
  const UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.valid() && errno == EAFNOSUPPORT) return {};  // no IPv4 here at all
  if (!socket.valid()) return Stop(Code::kLandlock, "", std::string("the network's wall cannot be proved: socket: ") + ErrnoName(errno));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(1);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 && errno == EACCES) return {};
  return Stop(Code::kLandlock, "", std::string(kNoEffect) + "TCP connect is not refused: something filters us");
}

}  // namespace

LandlockProof::LandlockProof(const std::vector<PathRule>& rules) {
  const bool needs_writable = std::ranges::any_of(rules, IsReadableRoot);
  for (const PathRule& rule : rules) {
    if (needs_writable && rule.is_directory && (rule.rights & abi::kFsMakeReg) != 0 && ::access(rule.path.c_str(), W_OK | X_OK) == 0) writable_ = rule.path;
    if (rule.is_directory && (rule.rights & abi::kFsReadDir) != 0 && OpensAsDirectory(rule.path)) granted_.push_back(rule.path);
  }
}

Step LandlockProof::Prove(const LandlockRights& handled, const std::vector<PathRule>& rules) const {
  for (const std::string& path : granted_)
    if (!OpensAsDirectory(path) && errno != ENOENT)  // which somebody may have removed meanwhile
      return Stop(Code::kLandlock, "", "landlock_add_rule returned success, yet '" + path + "' cannot be read: something filters us");
  // Reading the root directory, unless a rule allows just that.
  if (std::ranges::none_of(rules, IsReadableRoot)) {
    if (OpensAsDirectory("/") || errno != EACCES) return Stop(Code::kLandlock, "", std::string(kNoEffect) + "open works: something filters us");
  } else if (!writable_.empty()) {
    if (auto step = ProveNodes(writable_); !step) return step;
  }
  if ((handled.net & abi::kNetConnectTcp) != 0)
    if (auto step = ProveNetwork(); !step) return step;
  return {};
}

}  // namespace oarlock::child
