// SPDX-License-Identifier: Apache-2.0
// F. Running code.
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <filesystem>

#include "tests/bypass/inside.h"
#include "tests/bypass/outside.h"

namespace bypass {
namespace {

constexpr int kPayloadCode = 42;

// Runs it in a child; 0 where it was our payload that ran.
long Runs(const std::function<void(char**, char**)>& run, int wanted = kPayloadCode, const char* mode = "--payload") {
  const int code = InChild([&] {
    char name[] = "payload";
    std::string word = mode;
    char* argv[] = {name, word.data(), nullptr};
    char* envp[] = {nullptr};
    errno = 0;
    run(argv, envp);
    return errno == kPayloadCode ? 1 : errno;
  });
  return code == wanted ? 0 : code > 0 ? -code : code == 0 ? -EPROTO : -EINTR;
}

// Fills it with this very program.
void CopySelf(long fd) {
  const long self = Open("/proc/self/exe", O_RDONLY);
  static char buffer[1 << 16];
  for (long got; (got = Raw(SYS_read, self, Of(buffer), sizeof(buffer))) > 0;) (void)Raw(SYS_write, fd, Of(buffer), got);
  (void)Raw(SYS_close, self);
}
long ExecveAt(long fd, char** argv, char** envp) {
  const long result = Raw(SYS_execveat, fd, Of(""), Of(argv), Of(envp), AT_EMPTY_PATH);
  errno = static_cast<int>(-result);
  return result;
}
void Execve(const std::string& path, char** argv, char** envp) { errno = static_cast<int>(-Raw(SYS_execve, Of(path.c_str()), Of(argv), Of(envp))); }

constexpr Row kRows[] = {
    {.id = "E-140", .what = "a program in a memfd",
     .inside = [](Inside& in) {
       const long fd = Raw(SYS_memfd_create, Of("bypass"), 0);
       if (fd >= 0) CopySelf(fd);
       const std::string number = std::to_string(fd);
       in.Reports("execveat", fd < 0 ? fd : Runs([&](char** argv, char** envp) { ExecveAt(fd, argv, envp); }));
       in.Reports("proc", fd < 0 ? fd : Runs([&](char** argv, char** envp) { Execve("/proc/self/fd/" + number, argv, envp); }));
       in.Reports("dev", fd < 0 ? fd : Runs([&](char** argv, char** envp) { Execve("/dev/fd/" + number, argv, envp); }));
     }},
    {.id = "E-141", .what = "the loader runs a file that may not be executed",
     .inside = [](Inside& in) {
       const std::string program = in.Text("work") + "/loaded";
       std::error_code failed;
       std::filesystem::copy_file("/bin/true", program, std::filesystem::copy_options::overwrite_existing, failed);
       in.Maybe().Reports("loader", failed ? -failed.value() : Runs([&](char**, char** envp) {
                            std::string loader = "/lib64/ld-linux-x86-64.so.2", file = program;
                            char* argv[] = {loader.data(), file.data(), nullptr};
                            Execve(loader, argv, envp);
                          }, 0));
     },
     .flags = kOpen},
    {.id = "E-142", .what = "an interpreter runs a script that may not be executed",
     .inside = [](Inside& in) {
       std::string script = in.Text("work") + "/script";
       const long fd = Open(script, O_CREAT | O_WRONLY | O_TRUNC, 0644);
       if (fd >= 0) (void)Raw(SYS_write, fd, Of("exit 42\n"), 8);
       in.Reports("sh", fd < 0 ? fd : Runs([&](char**, char** envp) {
                    std::string shell = "/bin/sh";
                    char* argv[] = {shell.data(), script.data(), nullptr};
                    Execve(shell, argv, envp);
                  }));
     },
     .flags = kOpen},
    {.id = "E-143", .what = "memory that is writable and executable",
     .inside = [](Inside& in) {
       in.Reports("anonymous", Raw(SYS_mmap, 0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) < 0 ? -EACCES : 0);
     },
     .flags = kOpen},
    {.id = "E-144", .what = "a nameless file, an inherited program and a file of the module's own are executed",
     .inside = [](Inside& in) {
       const auto by = [&](const std::string& part, long writing) {
         if (writing < 0) return in.Reports(part, writing);
         CopySelf(writing);
         (void)Raw(SYS_fchmod, writing, 0755);
         const long fd = Open("/proc/self/fd/" + std::to_string(writing), O_RDONLY);
         (void)Raw(SYS_close, writing);
         in.Reports(part, fd < 0 ? fd : Runs([&](char** argv, char** envp) { ExecveAt(fd, argv, envp); }));
       };
       by("tmpfile", Open(in.Text("work"), O_TMPFILE | O_RDWR, 0755));
       by("own", Open(in.Text("work") + "/program", O_CREAT | O_TRUNC | O_RDWR, 0755));
       in.Reports("own-path", Runs([&](char** argv, char** envp) { Execve(in.Text("work") + "/program", argv, envp); }));
       in.Reports("inherited", Runs([](char** argv, char** envp) { ExecveAt(kFdProgram, argv, envp); }));
       in.Reports("outside", Runs([&](char** argv, char** envp) { Execve(in.Text("outside") + "/program", argv, envp); }));
     }},
    {.id = "E-145", .what = "a setuid program gives its owner's rights",
     .inside = [](Inside& in) {
       in.Reports("setuid", Runs([&](char** argv, char** envp) { Execve(in.Text("tools") + "/setuid", argv, envp); }, kStranger % 251, "--euid"));
     }},
    {.id = "E-146", .what = "personality takes protections away",
     .inside = [](Inside& in) {
       for (const auto& [name, persona] : {std::pair{"executable", READ_IMPLIES_EXEC}, std::pair{"layout", ADDR_NO_RANDOMIZE}, std::pair{"zero", MMAP_PAGE_ZERO}})
         in.Reports(name, ResultOfChild([which = persona] {
                      const long result = Raw(SYS_personality, which);
                      return result < 0 ? result : 0;
                    }));
     }},
    {.id = "E-147", .what = "a crash is handled outside the sandbox",
     .inside = [](Inside& in) {
       rlimit limit{};
       (void)getrlimit(RLIMIT_CORE, &limit);
       limit.rlim_cur = limit.rlim_max;
       (void)setrlimit(RLIMIT_CORE, &limit);
       (void)chdir(in.Text("work").c_str());
       (void)InChild([] { return raise(SIGABRT); });
       in.Maybe().Judged("core", limit.rlim_max == 0 ? -EPERM : 0);
     },
     .judge = [](Outside& outside, const Part&) {
       for (const auto& entry : std::filesystem::directory_iterator(outside.Text("work")))
         if (entry.path().filename().string().starts_with("core")) return true;
       return false;
     },
     .flags = kOpen},
};

}  // namespace

std::span<const Row> ExecutionRows() { return kRows; }

}  // namespace bypass
