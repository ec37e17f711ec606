// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "notif/base/result.h"
#include "notif/base/unique_fd.h"

namespace oarlock {

// A path followed to its end, with the places where a symbolic link was met on the way.
struct ResolvedPath {
  std::string canonical;                    // absolute, no link in it
  std::vector<std::string> link_directories;  // canonical directories that hold a link which was followed
};
// ENOENT, ENOTDIR, ELOOP, EACCES ... as realpath(3).
[[nodiscard]] Result<ResolvedPath> ResolvePath(const std::string& path);

// O_PATH of a canonical path, by openat2(RESOLVE_NO_SYMLINKS): a link that was put there since is ELOOP.
[[nodiscard]] Result<UniqueFd> OpenCanonical(const std::string& canonical);

// What a path lies in: "/" for the root's own entries, "." for a name without a slash.
[[nodiscard]] std::string DirectoryOf(const std::string& path);

// `path` is `directory` or lies below it; both canonical.
[[nodiscard]] bool IsAtOrBelow(const std::string& path, const std::string& directory);

}  // namespace oarlock
