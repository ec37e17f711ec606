// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "notif/base/result.h"
#include "notif/grant.h"

namespace oarlock::supervisor {

// What an operator lets this supervisor grant at most (`--max-grant FILE`). What the file does not name is not allowed.
struct Ceiling {
  struct ProxyRange {
    ProxyAddress address = ProxyAddress::kLoopback4;
    uint16_t low = 0, high = 0;
  };
  struct Directory {
    std::string path;
    dev_t device = 0;
    ino_t inode = 0;
  };
  std::vector<uint32_t> uids;  // that a module may run as
  NetMode net = NetMode::kNone;
  std::vector<ProxyRange> proxies;
  std::vector<Directory> broker_directories;  // compared by device and inode, so that no alias counts

  // EINVAL with a JSON pointer in the message. Directories are looked up here.
  [[nodiscard]] static Result<Ceiling> Parse(std::string_view text);
  [[nodiscard]] static Result<Ceiling> Load(const std::string& path);
  // EPERM: what of the grant exceeds the ceiling. A broker below an alias of an allowed directory passes, and is then named by
  // the operator's own path: the alias could be turned to another directory afterwards.
  [[nodiscard]] Status Apply(Grant& grant, uint32_t module_uid) const;
};

}  // namespace oarlock::supervisor
