// SPDX-License-Identifier: Apache-2.0
// E. The file system.
#include <fcntl.h>
#include <linux/mount.h>
#include <sched.h>
#include <signal.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/bypass/inside.h"
#include "tests/bypass/outside.h"

namespace bypass {
namespace {

std::string Content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}
mode_t ModeOf(const std::string& path) {
  struct stat status{};
  return lstat(path.c_str(), &status) == 0 ? status.st_mode : 0;
}
bool Exists(const std::string& path) { return ModeOf(path) != 0; }

// What the module gets hold of a detached mount by.
long NewMount() {
  const long context = Raw(SYS_fsopen, Of("tmpfs"), 0);
  if (context < 0) return context;
  if (const long made = Raw(SYS_fsconfig, context, 6 /* create */, 0, 0, 0); made < 0) return made;
  return Raw(SYS_fsmount, context, 0, 0);
}

constexpr Row kRows[] = {
    {.id = "E-110", .what = "mode, times and attributes of files outside every rule",
     .inside = [](Inside& in) {
       const std::string path = in.Text("own_file");
       const timespec times[2] = {{1, 0}, {1, 0}};
       in.Judged("chmod", Raw(SYS_fchmodat, AT_FDCWD, Of(path.c_str()), 0640));
       in.Judged("utimensat", Raw(SYS_utimensat, AT_FDCWD, Of(path.c_str()), Of(times), 0));
       in.Maybe().Judged("setxattr", Raw(SYS_setxattr, Of(path.c_str()), Of("user.bypass"), Of("x"), 1, 0));
     },
     .prepare = [](Outside& outside) { (void)outside.MakeFile("own", "own"); },
     .judge = [](Outside& outside, const Part& part) {
       struct stat status{};
       const std::string path = outside.Text("own_file");
       if (stat(path.c_str(), &status) != 0) return false;
       if (part.name == "chmod") return (status.st_mode & 07777) == 0640;
       if (part.name == "utimensat") return status.st_mtim.tv_sec == 1;
       return getxattr(path.c_str(), "user.bypass", nullptr, 0) == 1;
     },
     .flags = kOpen},
    {.id = "E-111", .what = "which files exist outside, and what they look like",
     .inside = [](Inside& in) {
       const std::string path = in.Text("secret_file"), directory = in.Text("outside");
       struct stat status{};
       in.Reports("stat", stat(path.c_str(), &status) == 0 && status.st_size > 0 ? 0 : -errno);
       in.Reports("access", Raw(SYS_faccessat, AT_FDCWD, Of(path.c_str()), F_OK));
       in.Reports("chdir", Raw(SYS_chdir, Of(directory.c_str())));
     },
     .flags = kOpen},
    {.id = "E-112", .what = "inotify and fanotify on directories outside",
     .inside = [](Inside& in) {
       const std::string directory = in.Text("outside");
       const long watch = Raw(SYS_inotify_init1, 0);
       in.Reports("inotify", watch < 0 ? watch : Raw(SYS_inotify_add_watch, watch, Of(directory.c_str()), IN_OPEN | IN_CREATE));
       in.Maybe().Reports("fanotify", Raw(SYS_fanotify_init, 0x200 /* by file id */, O_RDONLY));
     },
     .flags = kOpen},
    {.id = "E-113", .what = "O_PATH handles of anything, and fchdir to them",
     .inside = [](Inside& in) {
       const long fd = Open(in.Text("outside"), O_PATH | O_DIRECTORY);
       in.Reports("open", fd);
       in.Reports("fchdir", fd < 0 ? fd : Raw(SYS_fchdir, fd));
     },
     .flags = kOpen},
    {.id = "E-114", .what = "a file that was open before the confinement keeps its rights",
     .inside = [](Inside& in) {
       const std::string text = in.Payload("write");
       in.Judged("truncate", Raw(SYS_ftruncate, kFdFile, 0));
       in.Judged("write", Raw(SYS_pwrite64, kFdFile, Of(text.data()), static_cast<long>(text.size()), 0));
     },
     .judge = [](Outside& outside, const Part& part) {
       const std::string content = Content(outside.Text("outside") + "/inherited");
       return part.name == "write" ? content == "<E-114/write>" : !content.starts_with("as it was");
     }},
    {.id = "E-115", .what = "a directory that was open before the confinement",
     .inside = [](Inside& in) {
       in.ReadSecretFrom("openat", Raw(SYS_openat, kFdDirectory, Of("secret"), O_RDONLY | O_CLOEXEC));
       char buffer[4096];
       in.Reports("getdents", Raw(SYS_getdents64, kFdDirectory, Of(buffer), sizeof(buffer)));
       in.Judged("fchmodat", Raw(SYS_fchmodat, kFdDirectory, Of("own"), 0604));
     },
     .prepare = [](Outside& outside) { (void)outside.MakeFile("own", "own"); },
     .judge = [](Outside& outside, const Part&) { return (ModeOf(outside.Text("own_file")) & 07777) == 0604; }},
    {.id = "E-116", .what = "a file that somebody outside hands over by SCM_RIGHTS",
     .inside = [](Inside& in) { in.ReadSecretFrom("giver", FromServer(in.Text("giver"), "file")); }},
    {.id = "E-117", .what = "a read-only memfd is opened again for writing through /proc/self/fd",
     .inside = [](Inside& in) {
       const long fd = Open("/proc/self/fd/" + std::to_string(kFdMemory), O_RDWR);
       in.Judged("write", fd < 0 ? fd : Raw(SYS_pwrite64, fd, Of("changed!!"), 9, 0));
     },
     .judge = [](Outside& outside, const Part&) {
       char buffer[16] = {};
       (void)!pread(outside.Number("memory"), buffer, 9, 0);
       return std::string(buffer) == "changed!!";
     }},
    {.id = "E-118", .what = "file handles open what paths may not",
     .inside = [](Inside& in) {
       const std::string path = in.Text("secret_file");
       struct {
         file_handle head;
         char room[128];
       } handle{};
       handle.head.handle_bytes = sizeof(handle.room);
       int mount_id = 0;
       const long made = Raw(SYS_name_to_handle_at, AT_FDCWD, Of(path.c_str()), Of(&handle), Of(&mount_id), 0);
       const long mount = Open(in.Text("work"), O_RDONLY | O_DIRECTORY);
       in.ReadSecretFrom("open", made < 0 ? made : Raw(SYS_open_by_handle_at, mount, Of(&handle), O_RDONLY));
     }},
    {.id = "E-119", .what = "mount and umount",
     .inside = [](Inside& in) {
       const std::string at = in.Text("work") + "/mounted", outside = in.Text("outside");
       (void)mkdir(at.c_str(), 0755);
       in.Reports("tmpfs", Raw(SYS_mount, Of("tmpfs"), Of(at.c_str()), Of("tmpfs"), 0, 0));
       in.Reports("umount", Raw(SYS_umount2, Of(at.c_str()), MNT_DETACH));
       const long bound = Raw(SYS_mount, Of(outside.c_str()), Of(at.c_str()), 0, MS_BIND, 0);
       if (bound == 0) in.ReadSecret("bind", at + "/secret");
       else in.Leaks("bind", bound, "");
       (void)Raw(SYS_umount2, Of(at.c_str()), MNT_DETACH);
     }},
    {.id = "E-120", .what = "detached mounts by the new calls",
     .inside = [](Inside& in) {
       const std::string at = in.Text("work") + "/mounted", outside = in.Text("outside");
       (void)mkdir(at.c_str(), 0755);
       const long made = NewMount();
       in.Reports("fsmount", made);
       const long tree = Raw(SYS_open_tree, AT_FDCWD, Of(outside.c_str()), OPEN_TREE_CLONE);
       in.Reports("open_tree", tree);
       in.Reports("move_mount", made < 0 ? made : Raw(SYS_move_mount, made, Of(""), AT_FDCWD, Of(at.c_str()), MOVE_MOUNT_F_EMPTY_PATH));
       (void)Raw(SYS_umount2, Of(at.c_str()), MNT_DETACH);
       in.ReadSecretFrom("cloned", tree < 0 ? tree : Raw(SYS_openat, tree, Of("secret"), O_RDONLY | O_CLOEXEC));
     }},
    {.id = "E-121", .what = "mount_setattr",
     .inside = [](Inside& in) {
       const long made = NewMount();
       const uint64_t attributes[4] = {1 /* read-only */, 0, 0, 0};
       in.Reports("setattr", made < 0 ? made : Raw(SYS_mount_setattr, made, Of(""), AT_EMPTY_PATH, Of(attributes), sizeof(attributes)));
     }},
    {.id = "E-122", .what = "chroot",
     .inside = [](Inside& in) {
       const std::string work = in.Text("work");
       in.Reports("chroot", ResultOfChild([&] { return Raw(SYS_chroot, Of(work.c_str())); }));
     }},
    {.id = "E-123", .what = "namespaces of one's own, with fresh capabilities",
     .inside = [](Inside& in) {
       const std::pair<const char*, long> kinds[] = {{"user", CLONE_NEWUSER}, {"net", CLONE_NEWNET}, {"mount", CLONE_NEWNS}, {"ipc", CLONE_NEWIPC},
                                                     {"uts", CLONE_NEWUTS},   {"pid", CLONE_NEWPID}, {"cgroup", CLONE_NEWCGROUP}};
       for (const auto& [name, kind] : kinds) in.Reports(name, ResultOfChild([which = kind] { return Raw(SYS_unshare, which); }));
       in.Reports("clone", ResultOfChild([] {
                    const long pid = Raw(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0);
                    if (pid == 0) _exit(0);
                    return pid < 0 ? pid : 0;
                  }));
       const long own = Open("/proc/self/ns/net", O_RDONLY);
       in.Reports("setns", own < 0 ? own : ResultOfChild([&] { return Raw(SYS_setns, own, CLONE_NEWNET); }));
     }},
    {.id = "E-124", .what = "files are renamed and linked out of and into the tree",
     .inside = [](Inside& in) {
       const std::string work = in.Text("work"), outside = in.Text("outside");
       const std::string mine = work + "/mine", theirs = outside + "/theirs";
       (void)Raw(SYS_close, Open(mine, O_CREAT | O_WRONLY, 0644));
       const auto rename2 = [](const std::string& from, const std::string& to) { return Raw(SYS_rename, Of(from.c_str()), Of(to.c_str())); };
       const auto link2 = [](const std::string& from, const std::string& to) { return Raw(SYS_link, Of(from.c_str()), Of(to.c_str())); };
       in.Judged("link-out", link2(mine, outside + "/link-out"));
       in.Judged("link-in", link2(theirs, work + "/link-in"));
       in.Judged("rename-out", rename2(mine, outside + "/rename-out"));
       in.Judged("rename-in", rename2(theirs, work + "/rename-in"));
       in.Judged("unlink", Raw(SYS_unlink, Of((outside + "/unlinked").c_str())));
     },
     .prepare = [](Outside& outside) {
       (void)outside.MakeFile("theirs", "theirs");
       (void)outside.MakeFile("unlinked", "unlinked");
     },
     .judge = [](Outside& outside, const Part& part) {
       if (part.name == "unlink") return !Exists(outside.Text("outside") + "/unlinked");
       return Exists(outside.Text(part.name.ends_with("-in") ? "work" : "outside") + "/" + part.name);
     },
     .clean = [](Outside& outside) {
       for (const char* name : {"/link-out", "/rename-out"}) (void)unlink((outside.Text("outside") + name).c_str());
     }},
    {.id = "E-125", .what = "truncate outside the tree, by name and by O_TRUNC",
     .inside = [](Inside& in) {
       const std::string first = in.Text("outside") + "/truncate", second = in.Text("outside") + "/trunc";
       in.Judged("truncate", Raw(SYS_truncate, Of(first.c_str()), 0));
       in.Judged("trunc", Open(second, O_RDONLY | O_TRUNC));
       in.Judged("write", Open(in.Text("outside") + "/made", O_CREAT | O_WRONLY, 0644));
     },
     .prepare = [](Outside& outside) {
       for (const char* name : {"truncate", "trunc"}) (void)outside.MakeFile(name, "whole");
     },
     .judge = [](Outside& outside, const Part& part) {
       const std::string base = outside.Text("outside") + "/";
       return part.name == "write" ? Exists(base + "made") : Content(base + part.name).empty();
     },
     .clean = [](Outside& outside) { (void)unlink((outside.Text("outside") + "/made").c_str()); }},
    {.id = "E-126", .what = "device nodes of the module's own making",
     .inside = [](Inside& in) {
       const std::string work = in.Text("work");
       in.Judged("node-char", Raw(SYS_mknodat, AT_FDCWD, Of((work + "/node-char").c_str()), S_IFCHR | 0666, static_cast<long>(makedev(1, 1))));
       in.Judged("node-block", Raw(SYS_mknodat, AT_FDCWD, Of((work + "/node-block").c_str()), S_IFBLK | 0666, static_cast<long>(makedev(7, 0))));
     },
     .judge = [](Outside& outside, const Part& part) {
       const mode_t mode = ModeOf(outside.Text("work") + "/" + part.name);
       return S_ISCHR(mode) || S_ISBLK(mode);
     }},
    {.id = "E-127", .what = "ioctls on a device that was open before the confinement",
     .inside = [](Inside& in) {
       char key = 'i';
       const long result = Raw(SYS_ioctl, kFdTerminal, TIOCSTI, Of(&key));
       (void)in.Ask("key type");
       in.Judged("type", result);
     },
     .answer = KeyArrived},
    {.id = "E-128", .what = "a path of the policy is a link in a place that the module writes to",
     .elsewhere = "of the policy's reader: BadInputTest.LinksThatTheModuleCouldTurn"},
    {.id = "E-129", .what = "a file that has a rule of its own is replaced by another",
     .elsewhere = "the new file is refused, and that is no way out: LaunchTest.FilesByKindOfRoot"},
    {.id = "E-130", .what = "another view of the same files by an overlay",
     .inside = [](Inside& in) {
       if (in.Text("overlaid").empty()) in.Maybe();
       in.ReadSecret("merged", in.Text("merged") + "/secret");
     }},
    {.id = "E-131", .what = "the same files by another mount", .inside = [](Inside& in) { in.ReadSecret("alias", in.Text("alias") + "/secret"); }},
    {.id = "E-132", .what = "/proc tells about other processes",
     .inside = [](Inside& in) {
       const std::string proc = "/proc/" + in.Text("victim");
       in.ReadSecret("cmdline", proc + "/cmdline");
       in.Reports("status", Open(proc + "/status", O_RDONLY));
       in.Reports("sockets", Open("/proc/net/tcp", O_RDONLY));
     },
     .flags = kOpen},
    {.id = "E-133", .what = "environment and memory of other processes through /proc",
     .inside = [](Inside& in) {
       const std::string proc = "/proc/" + in.Text("victim");
       const long fd = Open(proc + "/environ", O_RDONLY);
       in.ReadSecretFrom("environ", fd);
       in.Reports("mem", Open(proc + "/mem", O_RDWR));
       const long maps = Open(proc + "/maps", O_RDONLY);
       char buffer[256];
       in.Reports("maps", maps < 0 ? maps : Raw(SYS_read, maps, Of(buffer), sizeof(buffer)) > 0 ? 0 : -EACCES);
       in.ReadSecret("root", proc + "/root" + in.Text("secret_file"));
     }},
    {.id = "E-134", .what = "/proc is written to",
     .inside = [](Inside& in) {
       const long fd = Open("/proc/" + in.Text("victim") + "/oom_score_adj", O_WRONLY);
       in.Judged("oom", fd < 0 ? fd : Raw(SYS_write, fd, Of("555"), 3));
       // Only opened: what would be written holds for the whole machine.
       in.Reports("core_pattern", Open("/proc/sys/kernel/core_pattern", O_WRONLY));
       in.Maybe().Reports("sysrq", Open("/proc/sysrq-trigger", O_WRONLY));
     },
     .judge = [](Outside& outside, const Part&) { return Content("/proc/" + outside.Text("victim") + "/oom_score_adj") == "555\n"; }},
    {.id = "E-135", .what = "/proc/self/mem writes to memory that is read-only",
     .inside = [](Inside& in) {
       static const char text[] = "constant";
       const long fd = Open("/proc/self/mem", O_RDWR);
       const long result = fd < 0 ? fd : Raw(SYS_pwrite64, fd, Of("k"), 1, Of(text));
       in.Reports("write", result < 0 ? result : *const_cast<const volatile char*>(text) == 'k' ? 0 : -EIO);
     }},
    {.id = "E-136", .what = "a FIFO outside",
     .inside = [](Inside& in) {
       const long fd = Open(in.Text("outside") + "/fifo", O_WRONLY | O_NONBLOCK);
       in.Judged("write", fd < 0 ? fd : Raw(SYS_write, fd, Of("fifo"), 4));
       (void)in.Ask("look");
       in.Reports("read", Open(in.Text("outside") + "/fifo", O_RDONLY | O_NONBLOCK));
     },
     .prepare = [](Outside& outside) { outside.Set("fifo_reader", open((outside.Text("outside") + "/fifo").c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)); },
     .answer = [](Outside& outside, const std::string&) {
       char buffer[16] = {};
       if (read(outside.Number("fifo_reader"), buffer, sizeof(buffer)) == 4) outside.Note("write");
       return std::string();
     },
     .clean = [](Outside& outside) { (void)close(outside.Number("fifo_reader")); }},
    {.id = "E-137", .what = "/dev/shm",
     .inside = [](Inside& in) { in.Judged("create", Open("/dev/shm/oarlock-bypass-" + in.Text("victim"), O_CREAT | O_RDWR, 0600)); },
     .judge = [](Outside& outside, const Part&) { return Exists("/dev/shm/oarlock-bypass-" + outside.Text("victim")); },
     .clean = [](Outside& outside) { (void)unlink(("/dev/shm/oarlock-bypass-" + outside.Text("victim")).c_str()); }},
    {.id = "E-138", .what = "a setuid file in the module's own tree, for somebody outside to run",
     .inside = [](Inside& in) {
       const auto at = [&](const char* name) { return in.Text("work") + "/setuid-" + name; };
       const auto plain = [&](const char* name) {
         const long fd = Open(at(name), O_CREAT | O_RDWR, 0644);
         return fd;
       };
       (void)Raw(SYS_umask, 0);
       (void)plain("chmod"), (void)plain("fchmodat"), (void)plain("fchmodat2");
       in.Judged("chmod", Raw(SYS_chmod, Of(at("chmod").c_str()), 04755));
       in.Judged("fchmod", Raw(SYS_fchmod, plain("fchmod"), 04755));
       in.Judged("fchmodat", Raw(SYS_fchmodat, AT_FDCWD, Of(at("fchmodat").c_str()), 04755));
       in.Judged("fchmodat2", Raw(452, AT_FDCWD, Of(at("fchmodat2").c_str()), 04755, 0));
       in.Judged("open", Raw(SYS_open, Of(at("open").c_str()), O_CREAT | O_WRONLY, 04755));
       in.Judged("openat", Raw(SYS_openat, AT_FDCWD, Of(at("openat").c_str()), O_CREAT | O_WRONLY, 04755));
       in.Judged("creat", Raw(SYS_creat, Of(at("creat").c_str()), 04755));
       in.Judged("mknod", Raw(SYS_mknod, Of(at("mknod").c_str()), S_IFREG | 04755, 0));
       in.Judged("mknodat", Raw(SYS_mknodat, AT_FDCWD, Of(at("mknodat").c_str()), S_IFREG | 04755, 0));
       const uint64_t how[3] = {O_CREAT | O_WRONLY, 04755, 0};
       in.Judged("openat2", Raw(SYS_openat2, AT_FDCWD, Of(at("openat2").c_str()), Of(how), sizeof(how)));
       // O_TMPFILE, then given a name.
       const long nameless = Raw(SYS_openat, AT_FDCWD, Of(in.Text("work").c_str()), O_TMPFILE | O_RDWR, 04755);
       const std::string link = "/proc/self/fd/" + std::to_string(nameless);
       in.Judged("tmpfile", nameless < 0 ? nameless : Raw(SYS_linkat, AT_FDCWD, Of(link.c_str()), AT_FDCWD, Of(at("tmpfile").c_str()), AT_SYMLINK_FOLLOW));
     },
     .judge = [](Outside& outside, const Part& part) { return (ModeOf(outside.Text("work") + "/setuid-" + part.name) & 06000) != 0; }},
    {.id = "E-139", .what = "files that somebody outside runs later: hooks, start-up files",
     .inside = [](Inside& in) { in.Judged("hook", Open(in.Text("work") + "/post-commit", O_CREAT | O_WRONLY, 0755)); },
     .judge = [](Outside& outside, const Part&) { return (ModeOf(outside.Text("work") + "/post-commit") & 0100) != 0; },
     .flags = kOpen},
};

}  // namespace

std::span<const Row> FileRows() { return kRows; }

}  // namespace bypass
