// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <climits>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "notif/base/sha256.h"
#include "notif/base/unique_fd.h"
#include "policy/policy.h"

namespace oarlock::policy {
namespace {

constexpr uid_t kNobody = 65534;

class ReadFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = "/tmp/oarlock-policy-XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
    ASSERT_EQ(::chmod(directory_.c_str(), 0755), 0);
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  std::string Write(const std::string& name, const std::string& text, mode_t mode = 0600) {
    const std::string path = directory_ + "/" + name;
    std::ofstream(path, std::ios::binary) << text;
    EXPECT_EQ(::chmod(path.c_str(), mode), 0);
    return path;
  }

  static void ExpectRefused(const std::string& name, const char* reason) {
    const auto file = ReadFile(name);
    ASSERT_FALSE(file) << name;
    EXPECT_EQ(file.error().code, Code::kRead);
    EXPECT_EQ(file.error().pointer, "");
    EXPECT_NE(file.error().text.find(reason), std::string::npos) << file.error().Line();
  }

  std::string directory_;
};

// Runs `check` in a child of another user; true if it returned true there.
template <typename Check>
bool AsNobody(Check check) {
  const pid_t child = ::fork();
  if (child == 0)
    ::_exit(::setresgid(kNobody, kNobody, kNobody) == 0 && ::setresuid(kNobody, kNobody, kNobody) == 0 &&
                    check()
                ? 0
                : 1);
  int status = 0;
  return ::waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST_F(ReadFileTest, ReadsAndHashes) {
  const std::string text = "{\"module\":\"a\"}\n";
  const auto file = ReadFile(Write("p.json", text));
  ASSERT_TRUE(file);
  EXPECT_EQ(file->text, text);
  EXPECT_EQ(file->sha256, Sha256Hex(text));
  EXPECT_EQ(file->directory_of, directory_);
  EXPECT_TRUE(ReadFile(Write("readable.json", text, 0444)));
  EXPECT_TRUE(ReadFile(Write("fd:x", text)));  // by its path, such a name is a name
  const auto empty = ReadFile(Write("empty.json", ""));
  ASSERT_TRUE(empty);
  EXPECT_EQ(empty->text, "");
}

TEST_F(ReadFileTest, NamesTheDirectoryAsItIs) {
  Write("p.json", "{}");
  ASSERT_EQ(::symlink(directory_.c_str(), (directory_ + "/link").c_str()), 0);
  ASSERT_EQ(::mkdir((directory_ + "/sub").c_str(), 0755), 0);
  for (const char* detour :
       {"/link/p.json", "/sub/../p.json", "/./p.json", "//p.json", "/link/link/sub/../p.json"}) {
    const auto file = ReadFile(directory_ + detour);
    ASSERT_TRUE(file) << detour;
    EXPECT_EQ(file->directory_of, directory_) << detour;
  }
  const std::string before = std::filesystem::current_path();
  std::filesystem::current_path(directory_);
  const auto relative = ReadFile("p.json");
  std::filesystem::current_path(before);
  ASSERT_TRUE(relative);
  EXPECT_EQ(relative->directory_of, directory_);
}

TEST_F(ReadFileTest, RefusesWhatIsNoRegularFile) {
  const std::string file = Write("p.json", "{}");
  ASSERT_EQ(::symlink(file.c_str(), (directory_ + "/link").c_str()), 0);
  ExpectRefused(directory_ + "/link", "symbolic link");
  ASSERT_EQ(::symlink("nowhere", (directory_ + "/dangling").c_str()), 0);
  ExpectRefused(directory_ + "/dangling", "symbolic link");
  ASSERT_EQ(::mkfifo((directory_ + "/fifo").c_str(), 0600), 0);
  ExpectRefused(directory_ + "/fifo", "is a pipe");
  ExpectRefused(directory_, "is a directory");
  ExpectRefused(directory_ + "/", "is a directory");
  ExpectRefused(directory_ + "/.", "is a directory");
  ExpectRefused("/dev/null", "is a device");
  ExpectRefused("/dev/zero", "is a device");
  ExpectRefused(directory_ + "/absent", "ENOENT");
  ExpectRefused(directory_ + "/absent/p.json", "ENOENT");
  ExpectRefused(file + "/p.json", "ENOTDIR");
  ExpectRefused("", "no file name");
  ExpectRefused(std::string("/a\0b", 4), "no file name");
  ExpectRefused("/" + std::string(PATH_MAX, 'a'), "ENAMETOOLONG");
}

TEST_F(ReadFileTest, RefusesWhatOthersMayWrite) {
  for (const mode_t mode : {0620, 0602, 0666, 0660, 0777, 0222})
    ExpectRefused(Write("p.json", "{}", mode), "writable by its group or by others");
}

TEST_F(ReadFileTest, RefusesOneByteTooMany) {
  const auto largest = ReadFile(Write("p.json", std::string(kMaxFileBytes, ' ')));
  ASSERT_TRUE(largest);
  EXPECT_EQ(largest->text.size(), kMaxFileBytes);
  ExpectRefused(Write("q.json", std::string(kMaxFileBytes + 1, ' ')), "at most 1048576");
  // Sparse, so that only the size is large.
  const std::string sparse = Write("s.json", "");
  ASSERT_EQ(::truncate(sparse.c_str(), off_t{1} << 40), 0);
  ExpectRefused(sparse, "at most 1048576");
}

TEST_F(ReadFileTest, RefusesWhatKeepsNoSize) {
  // A regular file by its mode, whose contents the kernel makes up: its size says 0.
  ExpectRefused("/proc/self/status", "changed while it was read");
}

TEST_F(ReadFileTest, RefusesAnotherUsersFile) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to own files as others";
  const std::string theirs = Write("theirs.json", "{}", 0644);
  ASSERT_EQ(::chown(theirs.c_str(), 1234, 0), 0);
  ExpectRefused(theirs, "belongs to uid 1234");
  EXPECT_TRUE(AsNobody([&] {
    const auto file = ReadFile(theirs);
    return !file && file.error().code == Code::kRead &&
           file.error().text.find("uid 1234") != std::string::npos;
  }));

  const std::string roots = Write("roots.json", "{}", 0644);
  EXPECT_TRUE(AsNobody([&] { return ReadFile(roots).has_value(); }));
  const std::string own = Write("own.json", "{}", 0600);
  ASSERT_EQ(::chown(own.c_str(), kNobody, kNobody), 0);
  EXPECT_TRUE(AsNobody([&] { return ReadFile(own).has_value(); }));
  ExpectRefused(own, "belongs to uid 65534");

  const std::string secret = Write("secret.json", "{}", 0600);
  EXPECT_TRUE(AsNobody([&] {
    const auto file = ReadFile(secret);
    return !file && file.error().text.find("EACCES") != std::string::npos;
  }));
}

TEST_F(ReadFileTest, ReadsAnInheritedDescriptorFromItsStart) {
  const std::string text = "{\"module\":\"inherited\"}";
  const UniqueFd fd(::open(Write("p.json", text).c_str(), O_RDONLY | O_CLOEXEC));
  ASSERT_EQ(::lseek(fd.get(), 5, SEEK_SET), 5);
  const auto file = ReadFile("fd:" + std::to_string(fd.get()));
  ASSERT_TRUE(file) << file.error().Line();
  EXPECT_EQ(file->text, text);
  EXPECT_EQ(file->sha256, Sha256Hex(text));
  EXPECT_EQ(file->directory_of, "");
  EXPECT_EQ(::lseek(fd.get(), 0, SEEK_CUR), 5) << "the offset is its owner's";
}

TEST_F(ReadFileTest, ReadsAMemfdThatOthersMayNotWrite) {
  const UniqueFd fd(::memfd_create("policy", MFD_CLOEXEC));
  ASSERT_TRUE(fd.valid());
  ASSERT_EQ(::write(fd.get(), "{}", 2), 2);
  const std::string name = "fd:" + std::to_string(fd.get());
  ExpectRefused(name, "writable by its group or by others");  // memfds are born with mode 0777
  ASSERT_EQ(::fchmod(fd.get(), 0600), 0);
  const auto file = ReadFile(name);
  ASSERT_TRUE(file) << file.error().Line();
  EXPECT_EQ(file->text, "{}");
}

TEST_F(ReadFileTest, RefusesOtherDescriptors) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const UniqueFd reader(ends[0]), writer(ends[1]);
  ExpectRefused("fd:" + std::to_string(reader.get()), "is a pipe");
  const UniqueFd directory(::open(directory_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  ExpectRefused("fd:" + std::to_string(directory.get()), "is a directory");
  const UniqueFd device(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  ExpectRefused("fd:" + std::to_string(device.get()), "is a device");
  const std::string path = Write("p.json", "{}");
  const UniqueFd write_only(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  ExpectRefused("fd:" + std::to_string(write_only.get()), "EBADF");
  const UniqueFd path_only(::open(path.c_str(), O_PATH | O_CLOEXEC));
  ExpectRefused("fd:" + std::to_string(path_only.get()), "EBADF");
  const UniqueFd loose(::open(Write("loose.json", "{}", 0666).c_str(), O_RDONLY | O_CLOEXEC));
  ExpectRefused("fd:" + std::to_string(loose.get()), "writable by its group or by others");
  ExpectRefused("fd:1000000", "EBADF");
  for (const char* name : {"fd:", "fd:x", "fd:-1", "fd:+3", "fd: 3", "fd:3x", "fd:99999999999999999999"})
    ExpectRefused(name, "is no descriptor");
}

TEST_F(ReadFileTest, AHostileNameStaysInItsLine) {
  const auto file = ReadFile(directory_ + "/\x1b]0;x\x07\n" + std::string(3000, 'a'));
  ASSERT_FALSE(file);
  for (const char c : file.error().Line()) EXPECT_TRUE(c >= 0x20 && c < 0x7f);
  EXPECT_LT(file.error().Line().size(), 1000U);
}

}  // namespace
}  // namespace oarlock::policy
