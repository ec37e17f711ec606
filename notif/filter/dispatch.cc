// SPDX-License-Identifier: Apache-2.0
#include "notif/filter/dispatch.h"

#include <seccomp.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "notif/base/check.h"
#include "notif/base/unique_fd.h"
#include "notif/filter/verdict.h"

namespace oarlock::filter {
namespace {

struct FreeContext {
  void operator()(void* context) const { seccomp_release(context); }
};
using Context = std::unique_ptr<void, FreeContext>;

// libseccomp compiles for the architecture it runs on and takes the numbers of that one raw. Those of another
// it would translate through its name table, which ends at 5.17. So the numbers of both our architectures are
// given to it as the host's own, and its own look at the architecture is cut off (Enter below).
uint32_t HostArch() {
  const uint32_t host = seccomp_arch_native();
  OARLOCK_CHECK(host == SCMP_ARCH_X86_64 || host == SCMP_ARCH_AARCH64, "no filters can be made on %#x", host);
  return host;
}

// Cases by marker: a return value that stands for a case until the program is taken apart again. Cases that
// lead to the same place share one, so that libseccomp can share the instruction.
class Markers {
 public:
  uint16_t Of(const Case& wanted) {
    for (size_t i = 0; i < cases_.size(); ++i)
      if (cases_[i].code == wanted.code && (wanted.code || cases_[i].verdict == wanted.verdict))
        return static_cast<uint16_t>(i);
    cases_.push_back(wanted);
    return static_cast<uint16_t>(cases_.size() - 1);
  }
  [[nodiscard]] const Case& At(uint32_t marker) const { return cases_.at(marker); }

 private:
  std::vector<Case> cases_;
};

std::vector<sock_filter> Compile(std::span<const Case> cases, Layout layout, Markers& markers) {
  // Unlike NOTIFY, the actions used here do not depend on what the build host's kernel supports.
  const Context context(seccomp_init(SCMP_ACT_ERRNO(ENOSYS)));
  OARLOCK_CHECK(context != nullptr);
  int error = seccomp_attr_set(context.get(), SCMP_FLTATR_CTL_OPTIMIZE, static_cast<uint32_t>(layout));
  OARLOCK_CHECK(error == 0, "optimization level %u: %d", static_cast<uint32_t>(layout), error);
  for (const Case& entry : cases) {
    if (!entry.code && entry.verdict == kEnosysVerdict)
      continue;  // the default; libseccomp refuses it as a rule
    error = seccomp_rule_add(context.get(), SCMP_ACT_TRACE(markers.Of(entry)), static_cast<int>(entry.nr), 0);
    OARLOCK_CHECK(error == 0, "call %u: %d", entry.nr, error);
  }

  const UniqueFd file(memfd_create("program", MFD_CLOEXEC));
  OARLOCK_CHECK(file.valid());
  error = seccomp_export_bpf(context.get(), file.get());
  OARLOCK_CHECK(error == 0, "export: %d", error);
  const off_t bytes = lseek(file.get(), 0, SEEK_END);
  OARLOCK_CHECK(bytes > 0 && static_cast<size_t>(bytes) % sizeof(sock_filter) == 0, "%jd bytes",
                intmax_t{bytes});
  std::vector<sock_filter> program(static_cast<size_t>(bytes) / sizeof(sock_filter));
  OARLOCK_CHECK(pread(file.get(), program.data(), static_cast<size_t>(bytes), 0) == bytes);
  return program;
}

constexpr uint16_t kLoad = BPF_LD | BPF_W | BPF_ABS;
constexpr uint16_t kJump = BPF_JMP | BPF_JA;
constexpr uint16_t kJumpEqual = BPF_JMP | BPF_JEQ | BPF_K;
constexpr uint16_t kJumpGreater = BPF_JMP | BPF_JGT | BPF_K;
constexpr uint16_t kJumpGreaterEqual = BPF_JMP | BPF_JGE | BPF_K;
constexpr uint16_t kReturn = BPF_RET | BPF_K;

// The place where the program goes on for the right architecture and a number below the x32 bit, with the
// number loaded: found by following libseccomp's own tests of both, which the caller has already made.
size_t Enter(std::span<const sock_filter> program) {
  enum class Holds { kNothing, kArch, kNumber };
  Holds holds = Holds::kNothing;
  bool arch_tested = false;
  for (size_t at = 0; at < program.size();) {
    const sock_filter& here = program[at];
    if (here.code == kLoad && here.k == offsetof(abi::SeccompData, arch) && !arch_tested) {
      holds = Holds::kArch;
      ++at;
    } else if (holds == Holds::kArch && here.code == kJumpEqual && here.k == HostArch()) {
      arch_tested = true;
      at += 1U + here.jt;
    } else if (here.code == kLoad && here.k == offsetof(abi::SeccompData, nr) && arch_tested) {
      holds = Holds::kNumber;
      ++at;
    } else if (holds == Holds::kNumber && here.code == kJumpGreaterEqual && here.k == abi::kX32Bit) {
      at += 1U + here.jf;
    } else if (here.code == kJump && holds != Holds::kNumber) {
      at += 1U + here.k;
    } else {
      OARLOCK_CHECK(holds == Holds::kNumber, "libseccomp's start is not understood at %zu: code %#x", at,
                    here.code);
      return at;
    }
  }
  OARLOCK_CHECK(false, "libseccomp's program has no end");
}

}  // namespace

void EmitDispatch(Draft& draft, std::span<const Case> cases, Layout layout) {
  Markers markers;
  const std::vector<sock_filter> program = Compile(cases, layout, markers);

  std::vector<Label> labels;
  for (size_t i = 0; i < program.size(); ++i) labels.push_back(draft.NewLabel());
  for (size_t i = Enter(program); i < program.size(); ++i) {
    const sock_filter& here = program[i];
    const auto after = [&](uint32_t offset) { return labels.at(i + 1 + offset); };
    draft.Bind(labels[i]);
    switch (here.code) {
      case kJump:
        draft.Jump(after(here.k));
        break;
      case kJumpEqual:
      case kJumpGreater:
      case kJumpGreaterEqual:
        draft.JumpIf(BPF_OP(here.code), here.k, after(here.jt), after(here.jf));
        break;
      case kReturn:
        if ((here.k & SECCOMP_RET_ACTION_FULL) == SECCOMP_RET_TRACE) {
          const Case& meant = markers.At(here.k & SECCOMP_RET_DATA);
          if (meant.code)
            draft.Jump(*meant.code);
          else
            draft.Return(meant.verdict);
        } else {
          // The default, or the end for a wrong architecture, which nothing leads to any more.
          OARLOCK_CHECK(here.k == kEnosysVerdict || i + 1 == program.size(), "instruction %zu returns %#x", i,
                        here.k);
          draft.Return(here.k);
        }
        break;
      default:
        OARLOCK_CHECK(false, "libseccomp wrote code %#x at %zu", here.code, i);
    }
  }
}

void CheckNumbers() {
  constexpr uint32_t kTokens[] = {SCMP_ARCH_X86_64, SCMP_ARCH_AARCH64};
  for (const Arch arch : {Arch::kX86_64, Arch::kAarch64}) {
    const uint32_t token = kTokens[static_cast<size_t>(arch)];
    for (const CallRow& row : Calls()) {
      const std::string name(row.name);
      const int known = seccomp_syscall_resolve_name_arch(token, name.c_str());
      if (known == __NR_SCMP_ERROR) continue;
      const int expected = known < 0 ? -1 : known;  // below -1: known elsewhere
      OARLOCK_CHECK(Number(row, arch) == expected, "%s is %d, not %d", name.c_str(), expected,
                    Number(row, arch));
    }
    int highest = 0;  // a later release knows later calls; those the filter answers ENOSYS
    for (const CallRow& row : Calls()) highest = std::max(highest, Number(row, arch));
    for (int nr = 0; nr <= highest; ++nr) {
      const std::unique_ptr<char, decltype(&std::free)> name(seccomp_syscall_resolve_num_arch(token, nr),
                                                             &std::free);
      OARLOCK_CHECK(name == nullptr || FindCall(arch, static_cast<uint32_t>(nr)) != nullptr,
                    "%s (%d) is missing", name.get(), nr);
    }
  }
}

}  // namespace oarlock::filter
