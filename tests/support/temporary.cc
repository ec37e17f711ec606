// SPDX-License-Identifier: Apache-2.0
#include "tests/support/temporary.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "notif/base/check.h"

namespace oarlock::test {

TemporaryDirectory::TemporaryDirectory(const std::string& below) : path_(below + "/oarlock-test-XXXXXX") {
  OARLOCK_CHECK(::mkdtemp(path_.data()) != nullptr);
  OARLOCK_CHECK(::chmod(path_.c_str(), 0755) == 0);
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string TemporaryDirectory::MakeDirectory(const std::string& name, mode_t mode, uid_t uid, gid_t gid) const {
  const std::string path = path_ + "/" + name;
  OARLOCK_CHECK(::mkdir(path.c_str(), 0700) == 0, "%s", path.c_str());
  OARLOCK_CHECK(::chown(path.c_str(), uid, gid) == 0 && ::chmod(path.c_str(), mode) == 0);
  return path;
}

std::string TemporaryDirectory::WriteFile(const std::string& name, const std::string& content, mode_t mode) const {
  const std::string path = path_ + "/" + name;
  {
    std::ofstream file(path, std::ios::trunc | std::ios::binary);
    file << content;
  }
  OARLOCK_CHECK(::chmod(path.c_str(), mode) == 0);
  return path;
}

std::string ReadWholeFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace oarlock::test
