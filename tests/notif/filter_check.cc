// SPDX-License-Identifier: Apache-2.0
#include "tests/notif/filter_check.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <random>

#include "notif/base/check.h"
#include "notif/filter/embedded.h"

namespace oarlock::filter_check {
namespace {

constexpr uint32_t kEnosys = abi::kRetErrno | ENOSYS;
constexpr uint64_t kHighGarbage = 0xdeadbeef00000000;

struct Candidates {
  std::vector<uint64_t> exact;  // the values themselves
  std::vector<uint64_t> near;   // and what is like them in some way
  std::vector<uint64_t> flips;  // and one bit away
};

void Unique(std::vector<uint64_t>& values) {
  std::ranges::sort(values);
  values.erase(std::ranges::unique(values).begin(), values.end());
}

void AddTest(const ArgTest& test, Candidates& out) {
  if (test.op == ArgTest::Op::kPointerSet) {
    for (const uint64_t pointer : {uint64_t{0}, uint64_t{1}, uint64_t{1} << 31, uint64_t{1} << 32,
                                   uint64_t{1} << 63, uint64_t{0xffffffff}, kHighGarbage, ~uint64_t{0}})
      out.exact.push_back(pointer);
    return;
  }
  for (const uint64_t value : test.values) {
    out.exact.push_back(value);
    for (const uint64_t like : {value + 1, value - 1, value | ~uint64_t{test.mask}, value | kHighGarbage,
                                (value + 1) | kHighGarbage, value | (uint64_t{1} << 32)})
      out.near.push_back(like);
    for (unsigned bit = 0; bit < 32; ++bit) out.flips.push_back(value ^ (uint64_t{1} << bit));
  }
}

std::array<Candidates, 6> CandidatesOf(const CallRow& row) {
  std::array<Candidates, 6> candidates;
  for (unsigned shape = 0; shape < kShapeCount; ++shape) {
    const Behaviour behaviour = BehaviourIn(row, ShapeAt(shape));
    if (behaviour.rule == nullptr) continue;
    for (const ArgClause& clause : behaviour.rule->clauses)
      for (const ArgTest& test : clause.tests) AddTest(test, candidates.at(test.arg));
  }
  for (Candidates& arg : candidates) {
    if (!arg.exact.empty())
      for (const uint64_t plain : {uint64_t{0}, uint64_t{0xffffffff}, ~uint64_t{0}})
        arg.exact.push_back(plain);
    arg.near.insert(arg.near.end(), arg.exact.begin(), arg.exact.end());
    arg.flips.insert(arg.flips.end(), arg.near.begin(), arg.near.end());
    Unique(arg.exact);
    Unique(arg.near);
    Unique(arg.flips);
  }
  return candidates;
}

// All combinations of the values for the arguments that have some.
void Combine(const std::array<const std::vector<uint64_t>*, 6>& values, size_t arg, Args& current,
             std::vector<Args>& out) {
  if (arg == current.size()) {
    out.push_back(current);
    return;
  }
  if (values.at(arg)->empty()) {
    Combine(values, arg + 1, current, out);
    return;
  }
  for (const uint64_t value : *values.at(arg)) {
    current.at(arg) = value;
    Combine(values, arg + 1, current, out);
  }
}

constexpr Args kPlainArguments[] = {
    {0, 0, 0, 0, 0, 0},
    {~uint64_t{0}, ~uint64_t{0}, ~uint64_t{0}, ~uint64_t{0}, ~uint64_t{0}, ~uint64_t{0}},
    {3, 0x7ffd12345678, 4096, 0, 0, 0},
};

std::string Describe(Arch arch, const Shape& shape, const abi::SeccompData& data, uint32_t expected,
                     uint32_t got) {
  const auto nr = static_cast<uint32_t>(data.nr);
  const CallRow* row = FindCall(arch, nr);
  char text[400];
  (void)std::snprintf(text, sizeof(text),
                      "%s %s: call %#x (%.*s) of architecture %#x with %#jx %#jx %#jx %#jx %#jx %#jx: the "
                      "table says %#x, the program %#x",
                      arch == Arch::kX86_64 ? "x86_64" : "aarch64", ShapeName(shape).data(), nr,
                      row != nullptr ? static_cast<int>(row->name.size()) : 1,
                      row != nullptr ? row->name.data() : "-", data.arch, uintmax_t{data.args[0]},
                      uintmax_t{data.args[1]}, uintmax_t{data.args[2]}, uintmax_t{data.args[3]},
                      uintmax_t{data.args[4]}, uintmax_t{data.args[5]}, expected, got);
  return text;
}

class Comparison {
 public:
  Comparison(bpf::Program program, Arch arch, const Shape& shape)
      : program_(program), arch_(arch), shape_(shape) {}

  // False once a difference is found.
  bool Try(uint32_t arch, uint32_t nr, const Args& args) {
    abi::SeccompData data = {
        .nr = static_cast<int32_t>(nr), .arch = arch, .instruction_pointer = 0x401000, .args = {}};
    std::ranges::copy(args, data.args);
    const uint32_t expected = Expected(arch_, shape_, data);
    const uint32_t got = bpf::Run(program_, data);
    if (expected != got && difference_.empty()) difference_ = Describe(arch_, shape_, data, expected, got);
    return difference_.empty();
  }
  bool TryPlain(uint32_t arch, uint32_t nr) {
    return std::ranges::all_of(kPlainArguments, [&](const Args& args) { return Try(arch, nr, args); });
  }
  [[nodiscard]] const std::string& difference() const { return difference_; }

 private:
  bpf::Program program_;
  Arch arch_;
  Shape shape_;
  std::string difference_;
};

// By argument, the exact values of all rules and zero.
const std::array<std::vector<uint64_t>, 6>& EdgesOfAllRules() {
  static const std::array<std::vector<uint64_t>, 6> kPool = [] {
    std::array<std::vector<uint64_t>, 6> pool;
    for (const CallRow& row : Calls()) {
      const std::array<Candidates, 6> candidates = CandidatesOf(row);
      for (size_t arg = 0; arg < pool.size(); ++arg)
        pool.at(arg).insert(pool.at(arg).end(), candidates.at(arg).exact.begin(),
                            candidates.at(arg).exact.end());
    }
    for (std::vector<uint64_t>& values : pool) Unique(values);
    return pool;
  }();
  return kPool;
}

constexpr uint32_t kHighestTried = 600;

std::string FindUncached(bpf::Program program, Arch arch, const Shape& shape) {
  for (uint32_t nr = 0; nr <= kHighestTried; ++nr) {
    const CallRow* row = FindCall(arch, nr);
    const bool constant = row != nullptr && BehaviourIn(*row, shape).action == Action::kAllow;
    if (bpf::IsConstantAllow(program, nr, AuditArch(arch)) == constant) continue;
    return "call " + std::to_string(nr) + (constant ? " is not" : " is") + " allowed on its number alone";
  }
  return "";
}

}  // namespace

bpf::Program Generated(Arch arch, const Shape& shape) {
  const unsigned index = ShapeIndex(shape);
  const sock_filter* all = arch == Arch::kX86_64 ? filter::kInstructionsX86_64 : filter::kInstructionsAarch64;
  const uint32_t* starts = arch == Arch::kX86_64 ? filter::kStartsX86_64 : filter::kStartsAarch64;
  return {all + starts[index], all + starts[index + 1]};
}

std::string ProgramName(Arch arch, const Shape& shape) {
  std::string name = arch == Arch::kX86_64 ? "x86_64_" : "aarch64_";
  name += ShapeName(shape);
  std::ranges::replace(name, '+', '_');
  return name;
}

uint32_t Expected(Arch arch, const Shape& shape, const abi::SeccompData& data) {
  if (data.arch != AuditArch(arch)) return abi::kRetKillProcess;
  const CallRow* row = FindCall(arch, static_cast<uint32_t>(data.nr));
  if (row == nullptr) return kEnosys;  // x32 numbers among them
  switch (Evaluate(BehaviourIn(*row, shape), data.args)) {
    case Action::kAllow:
      return abi::kRetAllow;
    case Action::kNotify:
      return abi::kRetUserNotif;
    case Action::kEnosys:
      return kEnosys;
    case Action::kArgs:
      break;
  }
  OARLOCK_CHECK(false, "%.*s has no outcome", static_cast<int>(row->name.size()), row->name.data());
}

std::vector<Args> EdgeArguments(const CallRow& row) {
  const std::array<Candidates, 6> candidates = CandidatesOf(row);
  std::vector<Args> all(std::begin(kPlainArguments), std::end(kPlainArguments));
  std::array<const std::vector<uint64_t>*, 6> values{};
  for (size_t arg = 0; arg < 6; ++arg) values.at(arg) = &candidates.at(arg).near;
  Args current = {0x1111, 0x2222, 0x3333, 0x4444, 0x5555, 0x6666};
  Combine(values, 0, current, all);
  // Single bits: one argument at a time, the others at exact values, or the product would be too large.
  for (size_t flipped = 0; flipped < 6; ++flipped) {
    if (candidates.at(flipped).flips.empty()) continue;
    for (size_t arg = 0; arg < 6; ++arg)
      values.at(arg) = arg == flipped ? &candidates.at(arg).flips : &candidates.at(arg).exact;
    Combine(values, 0, current, all);
  }
  return all;
}

std::string FindDifference(bpf::Program program, Arch arch, const Shape& shape) {
  if (std::string why = bpf::WhyInvalid(program); !why.empty()) return why;
  if (std::string why = FindUncached(program, arch, shape); !why.empty()) return why;

  Comparison comparison(program, arch, shape);
  const uint32_t native = AuditArch(arch);
  for (uint32_t nr = 0; nr <= kHighestTried; ++nr) {
    if (!comparison.TryPlain(native, nr)) return comparison.difference();
    for (const uint32_t foreign : {abi::kAuditArchX86_64, abi::kAuditArchAarch64, abi::kAuditArchI386,
                                   abi::kAuditArchArm, 0U, 0xffffffffU, native ^ 1U, native ^ 0x80000000U})
      if (!comparison.TryPlain(foreign, nr)) return comparison.difference();
    for (const uint32_t bit : {abi::kX32Bit, 0x80000000U, 0xc0000000U, 0x10000U, 0x400U})
      if (!comparison.TryPlain(native, nr | bit)) return comparison.difference();
  }
  for (const uint32_t nr :
       {abi::kX32Bit - 1, abi::kX32Bit, 0x7fffffffU, 0x80000000U, 0xfffffffeU, 0xffffffffU})
    if (!comparison.TryPlain(native, nr)) return comparison.difference();
  for (const CallRow& row : Calls()) {
    if (Number(row, arch) < 0) continue;
    for (const Args& args : EdgeArguments(row))
      if (!comparison.Try(native, static_cast<uint32_t>(Number(row, arch)), args))
        return comparison.difference();
  }

  // The same inputs in every run. Numbers at random; and for calls with rules, values from the edges of all
  // rules, since a wrong jump leads into the code of another.
  std::mt19937_64 random(ShapeIndex(shape));
  for (int i = 0; i < 20'000; ++i) {
    const Args args = {random(), random(), random(), random(), random(), random()};
    const auto nr = static_cast<uint32_t>(i % 2 == 0 ? random() : random() % 512);
    if (!comparison.Try(native, nr, args)) return comparison.difference();
  }
  const std::array<std::vector<uint64_t>, 6>& pool = EdgesOfAllRules();
  for (const CallRow& row : Calls()) {
    if (Number(row, arch) < 0 || BehaviourIn(row, shape).action != Action::kArgs) continue;
    for (int i = 0; i < 2'000; ++i) {
      Args args{};
      for (size_t arg = 0; arg < args.size(); ++arg)
        if (!pool.at(arg).empty()) args.at(arg) = pool.at(arg)[random() % pool.at(arg).size()];
      if (!comparison.Try(native, static_cast<uint32_t>(Number(row, arch)), args))
        return comparison.difference();
    }
  }
  return "";
}

}  // namespace oarlock::filter_check
