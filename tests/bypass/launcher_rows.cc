// SPDX-License-Identifier: Apache-2.0
// H. The launcher, its policy and its log. Most are of a launcher's own: a policy that is wrong never gets as far as a module.
#include <fcntl.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "tests/bypass/inside.h"
#include "tests/bypass/outside.h"

namespace bypass {
namespace {

constexpr Row kRows[] = {
    {.id = "E-170", .what = "variables that load libraries into the launcher",
     .elsewhere = "of the launcher's own process: LibraryTest.NothingIsLoadedIntoOurPrograms, LibraryTest.OtherVariablesChangeNothing"},
    {.id = "E-171", .what = "standard descriptors that are closed at the start",
     .elsewhere = "the suite speaks over them: LaunchTest.StandardDescriptorsThatAreClosedBecomeNull"},
    {.id = "E-172", .what = "no descriptor is left for the launcher",
     .inside = [](Inside& in) {
       in.ReadSecret("read", in.Text("secret_file"));
       in.To("connect", "127.0.0.1", in.Port("tcp"));
     },
     .before_launch = [](Outside&) {
       // Room for what is inherited and not for one more.
       const rlimit files{4, 4096};
       (void)setrlimit(RLIMIT_NOFILE, &files);
     },
     .flags = kOwnLaunch},
    {.id = "E-173", .what = "descriptors that the launcher inherits",
     .inside = [](Inside& in) {
       for (int fd = kFdRing; fd <= kFdTerminal; ++fd) in.Reports("fd" + std::to_string(fd), Raw(SYS_fcntl, fd, F_GETFD));
     }},
    {.id = "E-174", .what = "groups, signal mask, umask and core limit that the launcher inherits",
     .inside = [](Inside& in) {
       unsigned groups[64] = {};
       const long count = Raw(SYS_getgroups, 64, Of(groups));
       long found = -EPERM;
       for (long i = 0; i < count; ++i)
         if (groups[i] == kStranger) found = 0;
       in.Reports("group", found);
       uint64_t mask = 0;
       (void)Raw(SYS_rt_sigprocmask, SIG_BLOCK, 0, Of(&mask), 8);
       in.Reports("mask", (mask & (1UL << (SIGUSR1 - 1))) != 0 ? 0 : -EPERM);
       rlimit core{};
       (void)getrlimit(RLIMIT_CORE, &core);
       in.Reports("core", core.rlim_max != 0 ? 0 : -EPERM);
     },
     .before_launch = [](Outside& outside) {
       const gid_t group = kStranger;
       if (outside.options().identity == Identity::kRoot) (void)Raw(SYS_setgroups, 1, Of(&group));
       sigset_t all;
       (void)sigfillset(&all);
       (void)sigprocmask(SIG_SETMASK, &all, nullptr);
     },
     .flags = kOwnLaunch},
    {.id = "E-175", .what = "the program's path is swapped between check and exec",
     .elsewhere = "of the launcher: what may be executed is a rule of Landlock, which judges the file that is executed; LaunchTest.R_OB_22_ExecuteOnlyWhereGranted"},
    {.id = "E-176", .what = "a policy file that others can write, or that is no regular file",
     .elsewhere = "of the launcher: BadInputTest.PolicyFilesThatAreNotTrusted"},
    {.id = "E-177", .what = "policy text that readers understand differently",
     .elsewhere = "of the launcher: BadInputTest.R_OB_12_R_MO_22_EveryWrongPolicyStopsTheLaunch, BadPolicies.R_MO_37_GiveTheirCodeAndPointer"},
    {.id = "E-178", .what = "paths of the policy in odd forms",
     .elsewhere = "of the launcher: BadInputTest.R_OB_12_R_MO_22_EveryWrongPolicyStopsTheLaunch, Policy.PathsAreCheckedInFormOnly"},
    {.id = "E-179", .what = "paths of the policy that do not exist yet", .elsewhere = "of the launcher: BadInputTest.R_OB_09_PathsThatAreNotThere"},
    {.id = "E-180", .what = "rights of directories for a file", .elsewhere = "of the launcher: LaunchTest.FilesByKindOfRoot"},
    {.id = "E-181", .what = "a rule that takes away what its parent grants",
     .elsewhere = "the policy's language has none: Policy.R_MO_21_DenyPathsSaysWhatToDoInstead"},
    {.id = "E-182", .what = "less is applied on an older kernel without saying so",
     .elsewhere = "of the launcher: BadInputTest.R_OB_34_R_OB_45_WhatThisBuildOrHostCannotDo, RightsOf.EveryAbi"},
    {.id = "E-183", .what = "the kernel's audit says nothing of an executed program",
     .elsewhere = "nothing gets out by it; asked for at the launch (child/landlock.cc): RightsOf.AgreesWithThisKernel"},
    {.id = "E-184", .what = "the module mutes the kernel's audit of its refusals",
     .elsewhere = "nothing gets out by it, and the supervisor's own records do not depend on it: ErrnoTest.R_OB_32_TcpConnects"},
    {.id = "E-185", .what = "names that forge a line of the log",
     .elsewhere = "of the log: Format.HostileBytesStayInTheirString, OneLine.NothingRawReachesATerminal"},
    {.id = "E-186", .what = "a flood of refusals fills the disk or hides one of them",
     .elsewhere = "of the log: FullDiskTest.CountsExactlyAndRecovers, JournalTest.AfterFiveSecondsRefusalsAreCountedAndToldOnce"},
    {.id = "E-187", .what = "a launch that is interrupted between its steps",
     .elsewhere = "of the launcher: FaultTest.AHandOverThatFails, FaultTest.AProcessThatIsSaidToBeMade"},
};

}  // namespace

std::span<const Row> LauncherRows() { return kRows; }

}  // namespace bypass
