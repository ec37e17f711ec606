// SPDX-License-Identifier: Apache-2.0
#include "notif/base/resolve.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "tests/support/temporary.h"

namespace oarlock {
namespace {

using test::TemporaryDirectory;

class ResolvePathTest : public ::testing::Test {
 protected:
  ResolvePathTest() {
    (void)t_.MakeDirectory("a");
    (void)t_.MakeDirectory("a/b");
    (void)t_.MakeDirectory("links");
    (void)t_.WriteFile("a/file", "x");
    (void)t_.WriteFile("a/b/deep", "x");
  }
  void Link(const std::string& target, const std::string& at) const {
    ASSERT_EQ(::symlink(target.c_str(), (t_ / at).c_str()), 0) << at;
  }
  // Resolves, and holds it against realpath(3).
  ResolvedPath Resolve(const std::string& path) const {
    const auto resolved = ResolvePath(path);
    char* const expected = ::realpath(path.c_str(), nullptr);
    EXPECT_TRUE(resolved) << path << ": " << resolved.error().Message();
    EXPECT_NE(expected, nullptr) << path;
    if (!resolved || expected == nullptr) return {};
    EXPECT_EQ(resolved->canonical, expected) << path;
    ::free(expected);
    return *resolved;
  }
  void Fails(const std::string& path, int error) const {
    const auto resolved = ResolvePath(path);
    ASSERT_FALSE(resolved) << path << " -> " << resolved->canonical;
    EXPECT_EQ(resolved.error().code, error) << path;
    char* const expected = ::realpath(path.c_str(), nullptr);
    EXPECT_EQ(expected, nullptr) << path;
    EXPECT_EQ(errno, error) << path << ": realpath";
    ::free(expected);
  }
  using Directories = std::vector<std::string>;
  TemporaryDirectory t_;
};

TEST_F(ResolvePathTest, PlainPathsStayAsTheyAre) {
  EXPECT_EQ(Resolve("/").canonical, "/");
  EXPECT_EQ(Resolve(t_ / "a/b").canonical, t_ / "a/b");
  EXPECT_EQ(Resolve(t_ / "a/file").canonical, t_ / "a/file");
  EXPECT_TRUE(Resolve(t_ / "a/b/deep").link_directories.empty());
}

TEST_F(ResolvePathTest, DotsAndSlashesGo) {
  for (const char* path :
       {"a//b", "a/./b", "./a/b/.", "a/b/", "a/b/../b", "a/b/../../a/b", "links/../a/b", "a///b///"})
    EXPECT_EQ(Resolve(t_ / path).canonical, t_ / "a/b") << path;
  EXPECT_EQ(Resolve("/..").canonical, "/");
  EXPECT_EQ(Resolve("/../../..").canonical, "/");
  EXPECT_EQ(Resolve("/../../.." + (t_ / "a")).canonical, t_ / "a");
  EXPECT_EQ(Resolve("//" + (t_ / "a")).canonical, t_ / "a");
}

TEST_F(ResolvePathTest, FollowsLinksAndTellsWhereTheyLay) {
  Link("../a", "links/relative");
  Link(t_ / "a", "links/absolute");
  Link("a/b", "top");
  Link("b/deep", "a/inner");
  ResolvedPath resolved = Resolve(t_ / "links/relative");
  EXPECT_EQ(resolved.canonical, t_ / "a");
  EXPECT_EQ(resolved.link_directories, Directories{t_ / "links"});
  resolved = Resolve(t_ / "links/absolute/b/deep");
  EXPECT_EQ(resolved.canonical, t_ / "a/b/deep");
  EXPECT_EQ(resolved.link_directories, Directories{t_ / "links"});
  resolved = Resolve(t_ / "links/absolute/inner");
  EXPECT_EQ(resolved.canonical, t_ / "a/b/deep");
  EXPECT_EQ(resolved.link_directories, (Directories{t_ / "links", t_ / "a"}));
  resolved = Resolve(t_ / "top/../file");  // .. is of the target, not of the link
  EXPECT_EQ(resolved.canonical, t_ / "a/file");
  EXPECT_EQ(resolved.link_directories, Directories{t_.path()});
}

TEST_F(ResolvePathTest, TellsOfEveryLinkOfAChain) {
  (void)t_.MakeDirectory("one");
  (void)t_.MakeDirectory("two");
  (void)t_.MakeDirectory("three");
  Link("../two/next", "one/start");
  Link(t_ / "three/next", "two/next");
  Link("../a/file", "three/next");
  const ResolvedPath resolved = Resolve(t_ / "one/start");
  EXPECT_EQ(resolved.canonical, t_ / "a/file");
  EXPECT_EQ(resolved.link_directories, (Directories{t_ / "one", t_ / "two", t_ / "three"}));
}

TEST_F(ResolvePathTest, ALinkDirectoryIsCanonicalItself) {
  Link("a", "alias");
  Link("b", "a/to-b");
  const ResolvedPath resolved = Resolve(t_ / "alias/to-b/deep");
  EXPECT_EQ(resolved.canonical, t_ / "a/b/deep");
  EXPECT_EQ(resolved.link_directories, (Directories{t_.path(), t_ / "a"}));
}

TEST_F(ResolvePathTest, LinksToTheRootAndUpwards) {
  Link("/", "root");
  Link("..", "a/up");
  Link(".", "a/self");
  Link("../../../../../../../../../..", "far");
  EXPECT_EQ(Resolve(t_ / "root").canonical, "/");
  EXPECT_EQ(Resolve(t_ / "root" + t_.path() + "/a").canonical, t_ / "a");
  EXPECT_EQ(Resolve(t_ / "a/up/a/self/self/file").canonical, t_ / "a/file");
  EXPECT_EQ(Resolve(t_ / "far").canonical, "/");
}

TEST_F(ResolvePathTest, LoopsAndDanglingLinksFailAsInTheKernel) {
  Link("loop", "loop");
  Link("ring2", "ring1");
  Link("ring1", "ring2");
  Link("nowhere", "dangling");
  Link("/nonexistent/x", "far");
  Link("../links/dangling2", "links/dangling2");
  Fails(t_ / "loop", ELOOP);
  Fails(t_ / "loop/x", ELOOP);
  Fails(t_ / "ring1", ELOOP);
  Fails(t_ / "links/dangling2", ELOOP);
  Fails(t_ / "dangling", ENOENT);
  Fails(t_ / "dangling/x", ENOENT);
  Fails(t_ / "far", ENOENT);
  Fails(t_ / "missing", ENOENT);
  Fails(t_ / "missing/../a", ENOENT);
  Fails(t_ / "a/file/x", ENOTDIR);
  Fails(t_ / "a/file/..", ENOTDIR);
  Fails(t_ / "a/file/.", ENOTDIR);
}

TEST_F(ResolvePathTest, ASlashBehindAFileAsksForADirectory) {
  Link("file", "a/to-file");
  Fails(t_ / "a/file/", ENOTDIR);
  Fails(t_ / "a/to-file/", ENOTDIR);
}

TEST_F(ResolvePathTest, FollowsFortyLinksAndNoMore) {
  Link("a/file", "l1");
  for (int i = 2; i <= 41; ++i) Link("l" + std::to_string(i - 1), "l" + std::to_string(i));
  EXPECT_EQ(Resolve(t_ / "l40").link_directories.size(), 40U);
  Fails(t_ / "l41", ELOOP);
}

TEST_F(ResolvePathTest, NamesThatAreTooLongFail) {
  Fails(t_ / std::string(256, 'n'), ENAMETOOLONG);
  Link(std::string(4000, '/') + "etc", "slashes");
  EXPECT_EQ(Resolve(t_ / "slashes").canonical, "/etc");
}

TEST_F(ResolvePathTest, SaysWhichPathFailed) {
  const auto resolved = ResolvePath(t_ / "a/missing/x");
  ASSERT_FALSE(resolved);
  EXPECT_NE(resolved.error().Message().find(t_ / "a/missing"), std::string::npos)
      << resolved.error().Message();
}

TEST_F(ResolvePathTest, OddNamesAreNamesLikeOthers) {
  for (const char* name : {" ", "...", "-", "a\nb", "\xff\xfe", "*"}) {
    (void)t_.MakeDirectory(name);
    EXPECT_EQ(Resolve(t_ / name).canonical, t_ / name);
  }
}

TEST_F(ResolvePathTest, AgreesWithRealpathOnWhatLiesAbout) {
  size_t seen = 0;
  for (const char* root : {"/etc", "/lib", "/usr/lib", "/var", "/dev"})
    for (const auto& entry : std::filesystem::directory_iterator(
             root, std::filesystem::directory_options::skip_permission_denied)) {
      if (++seen > 2000) return;
      char* const expected = ::realpath(entry.path().c_str(), nullptr);
      const auto resolved = ResolvePath(entry.path());
      ASSERT_EQ(resolved.has_value(), expected != nullptr) << entry.path();
      if (expected != nullptr) EXPECT_EQ(resolved->canonical, expected);
      ::free(expected);
    }
}

TEST_F(ResolvePathTest, OpensWhatIsCanonicalAndNothingElse) {
  const auto opened = OpenCanonical(t_ / "a/b");
  ASSERT_TRUE(opened);
  EXPECT_NE(::fcntl(opened->get(), F_GETFL) & O_PATH, 0);
  EXPECT_NE(::fcntl(opened->get(), F_GETFD) & FD_CLOEXEC, 0);
  Link("a", "alias");
  for (const char* path : {"alias", "alias/b", "alias/."}) {
    const auto refused = OpenCanonical(t_ / path);
    ASSERT_FALSE(refused) << path;
    EXPECT_EQ(refused.error().code, ELOOP);
  }
  const auto missing = OpenCanonical(t_ / "missing");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ENOENT);
}

TEST(IsAtOrBelow, ComparesWholeNames) {
  EXPECT_TRUE(IsAtOrBelow("/a/b", "/a"));
  EXPECT_TRUE(IsAtOrBelow("/a", "/a"));
  EXPECT_TRUE(IsAtOrBelow("/", "/"));
  EXPECT_TRUE(IsAtOrBelow("/a", "/"));
  EXPECT_FALSE(IsAtOrBelow("/ab", "/a"));
  EXPECT_FALSE(IsAtOrBelow("/a", "/ab"));
  EXPECT_FALSE(IsAtOrBelow("/a", "/a/b"));
  EXPECT_FALSE(IsAtOrBelow("/", "/a"));
  EXPECT_FALSE(IsAtOrBelow("/b/a", "/a"));
}

}  // namespace
}  // namespace oarlock
