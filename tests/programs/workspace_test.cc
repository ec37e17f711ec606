// SPDX-License-Identifier: Apache-2.0
// A workspace that a team shares by the setgid bit of its directories (E-138).
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/programs/workshop.h"

namespace oarlock::test {
namespace {

constexpr gid_t kTeam = 65534;
constexpr const char* kAsRootOfTeam = R"(,"run_as":{"uid":0,"gid":65534})";

mode_t ModeOf(const std::string& path) {
  struct stat status {};
  return ::lstat(path.c_str(), &status) == 0 ? status.st_mode & 07777 : 0;
}

// The workspace becomes the team's. A module whose gid is not 0 is one of it.
void Share(const Workshop& shop) {
  ASSERT_EQ(::chown(shop.work().c_str(), shop.uid(), kTeam), 0);
  ASSERT_EQ(::chmod(shop.work().c_str(), 02775), 0);
}

class SetgidWorkspace : public testing::TestWithParam<Identity> {
 protected:
  void SetUp() override {
    if (::getuid() != 0) GTEST_SKIP() << "run_as needs root";
  }
  [[nodiscard]] const char* policy() const { return GetParam() == Identity::kRoot ? kAsRootOfTeam : ""; }
};

INSTANTIATE_TEST_SUITE_P(Identities, SetgidWorkspace, testing::ValuesIn(kIdentities), [](const auto& test) { return Name(test.param); });

constexpr const char* kWork = R"sh(
set -e
umask 002
mkdir -p tree/sub && echo one >tree/sub/file && chmod 0750 tree/sub/file
mode() { stat -c '%a %g' "$@" | sort -u | tr '\n' ' '; }
echo "made: $(mode tree tree/sub)"
cp -r tree copied && echo "cp -r: $(mode copied copied/sub)"
cp -a tree archived && echo "cp -a: $(mode archived archived/sub)"
tar -cf tree.tar tree && mkdir out && tar -xpf tree.tar -C out && echo "tar: $(mode out/tree out/tree/sub)"
install -d -m 2770 installed && echo "install: $(mode installed)"
mkdir -m 2775 plain && chmod g-s plain && chmod g+s plain && echo "chmod: $(mode plain)"
git init -q --bare --shared=group shared.git
git -c init.defaultBranch=main clone -q shared.git clone 2>/dev/null
cd clone
echo hello >file && git add file && git -c user.name=a -c user.email=a@example.invalid commit -q -m one
git push -q origin HEAD:refs/heads/main
cd ..
echo "git: $(git -C shared.git config core.sharedrepository) $(find shared.git -type d -exec stat -c '%a %g' {} + | sort -u | tr '\n' ' ')"
git -C shared.git log --format=%s main
)sh";

TEST_P(SetgidWorkspace, E138_CopiesArchivesAndSharedRepositories) {
  const Workshop shop(GetParam(), "", policy());
  Share(shop);
  const Outcome done = shop.Inside({"/bin/bash", "-c", kWork}, {{"GIT_CONFIG_NOSYSTEM", "1"}});
  EXPECT_EQ(done.code, 0) << done.out << done.err;
  EXPECT_EQ(done.out,
            "made: 2775 65534 \ncp -r: 2775 65534 \ncp -a: 2775 65534 \ntar: 2775 65534 \ninstall: 2770 65534 \n"
            "chmod: 2775 65534 \ngit: 1 2775 65534 \none\n")
      << done.err;
  EXPECT_TRUE(shop.Denials().empty()) << testing::PrintToString(shop.Denials());
}

// What makes a file run as somebody else is refused by every way to it, and said so; the directory's bit is no such thing.
constexpr const char* kPast = R"sh(
cp /bin/true tool
chmod u+s tool; echo "chmod: $?"
install -m 4755 tool installed; echo "install: $?"
cp tool copy; /usr/bin/python3 -c '
import os
for mode in 0o4755, 0o6755, 0o2755:
    try:
        os.close(os.open(f"opened{mode:o}", os.O_CREAT | os.O_WRONLY, mode))
        print("open: 0")
    except PermissionError as error:
        print("open:", error)'
)sh";

TEST_P(SetgidWorkspace, E138_NoSetuidFile) {
  const Workshop shop(GetParam(), "", policy());
  Share(shop);
  const Outcome refused = shop.Inside({"/bin/bash", "-c", kPast});
  EXPECT_EQ(refused.out,
            "chmod: 1\ninstall: 1\nopen: [Errno 1] Operation not permitted: 'opened4755'\n"
            "open: [Errno 1] Operation not permitted: 'opened6755'\nopen: [Errno 1] Operation not permitted: 'opened2755'\n")
      << refused.err;
  EXPECT_NE(refused.err.find("chmod: changing permissions of 'tool': Operation not permitted"), std::string::npos) << refused.err;
  EXPECT_NE(refused.err.find("install: cannot change permissions of"), std::string::npos) << refused.err;
  for (const char* name : {"tool", "installed", "copy"}) EXPECT_EQ(ModeOf(shop.work() + "/" + name) & 06000, 0U) << name;
  EXPECT_NE(::access((shop.work() + "/opened4755").c_str(), F_OK), 0);
  uint64_t denials = 0;
  for (const auto& [text, count] : shop.Denials()) {
    EXPECT_TRUE(text.starts_with("SYSCALL_DENIED ") && text.find(" EPERM ") != std::string::npos) << text;
    denials += count;
  }
  EXPECT_EQ(denials, 5U) << testing::PrintToString(shop.Denials());

  const Outcome bare = shop.Outside({"/bin/bash", "-c", kPast});
  EXPECT_EQ(bare.out, "chmod: 0\ninstall: 0\nopen: 0\nopen: 0\nopen: 0\n") << bare.err;
  EXPECT_EQ(ModeOf(shop.work() + "/tool") & 04000, 04000U);
  EXPECT_LT(refused.seconds, bare.seconds + 2.0);
}

// With gid 0 a setgid file would be the root group's: there the bit is refused. Directories inherit it all the same, so
// plain copies go on.
TEST(SetgidWorkspaceOfRootGroup, E138_BitIsInheritedAndNotSet) {
  if (::getuid() != 0) GTEST_SKIP() << "only root has gid 0";
  const Workshop shop(Identity::kRoot, "", "");
  ASSERT_EQ(::chmod(shop.work().c_str(), 02775), 0);
  const std::vector<std::string> argv = {"/bin/bash", "-c",
                                         "mkdir -p tree/sub && echo one >tree/sub/file && cp -r tree copied && cat copied/sub/file; "
                                         "stat -c %a copied/sub; cp /bin/true tool; chmod g+s tool"};
  const Outcome done = shop.Inside(argv);
  EXPECT_EQ(done.out, "one\n2755\n");
  EXPECT_EQ(done.code, 1);
  EXPECT_NE(done.err.find("chmod: changing permissions of 'tool': Operation not permitted"), std::string::npos) << done.err;
  EXPECT_EQ(ModeOf(shop.work() + "/tool") & 02000, 0U);
  const std::map<std::string, uint64_t> denials = shop.Denials();
  ASSERT_EQ(denials.size(), 1U) << testing::PrintToString(denials);
  EXPECT_TRUE(denials.begin()->first.starts_with("SYSCALL_DENIED ")) << denials.begin()->first;
  EXPECT_EQ(shop.Outside({"/bin/chmod", "g+s", "tool"}).code, 0);
  EXPECT_EQ(ModeOf(shop.work() + "/tool") & 02000, 02000U);
}

}  // namespace
}  // namespace oarlock::test
