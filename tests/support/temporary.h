// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <sys/types.h>

namespace oarlock::test {

// A directory of its own for one test, removed with all that is in it. Mode 0755, so that a module of another uid can get
// through to what it was granted.
class TemporaryDirectory {
 public:
  explicit TemporaryDirectory(const std::string& below = "/tmp");
  ~TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  // A subdirectory with this owner and mode.
  std::string MakeDirectory(const std::string& name, mode_t mode = 0755, uid_t uid = 0, gid_t gid = 0) const;
  std::string WriteFile(const std::string& name, const std::string& content, mode_t mode = 0644) const;

 private:
  std::string path_;
};

[[nodiscard]] std::string ReadWholeFile(const std::string& path);

}  // namespace oarlock::test
