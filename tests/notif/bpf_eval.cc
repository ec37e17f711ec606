// SPDX-License-Identifier: Apache-2.0
#include "tests/notif/bpf_eval.h"

#include <array>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <optional>
#include <vector>

#include "notif/base/check.h"

namespace oarlock::bpf {
namespace {

using Scratch = std::array<uint32_t, BPF_MEMWORDS>;

bool IsJump(const sock_filter& instruction) { return BPF_CLASS(instruction.code) == BPF_JMP; }
bool IsJumpAlways(const sock_filter& instruction) { return instruction.code == (BPF_JMP | BPF_JA); }

bool IsKnownArithmetic(uint16_t code) {
  if (code == (BPF_ALU | BPF_NEG)) return true;
  if ((code & ~(BPF_ALU | 0xf0 | BPF_X)) != 0) return false;
  switch (BPF_OP(code)) {
    case BPF_ADD:
    case BPF_SUB:
    case BPF_MUL:
    case BPF_DIV:
    case BPF_AND:
    case BPF_OR:
    case BPF_XOR:
    case BPF_LSH:
    case BPF_RSH:
      return true;  // but not BPF_MOD, which seccomp's own list lacks
    default:
      return false;
  }
}

bool IsKnownJump(uint16_t code) {
  if (code == (BPF_JMP | BPF_JA)) return true;
  if ((code & ~(BPF_JMP | 0xf0 | BPF_X)) != 0) return false;
  const int op = BPF_OP(code);
  return op == BPF_JEQ || op == BPF_JGT || op == BPF_JGE || op == BPF_JSET;
}

bool IsKnown(uint16_t code) {
  switch (BPF_CLASS(code)) {
    case BPF_LD:
      return code == (BPF_LD | BPF_W | BPF_ABS) || code == (BPF_LD | BPF_W | BPF_LEN) ||
             code == (BPF_LD | BPF_IMM) || code == (BPF_LD | BPF_MEM);
    case BPF_LDX:
      return code == (BPF_LDX | BPF_W | BPF_LEN) || code == (BPF_LDX | BPF_IMM) ||
             code == (BPF_LDX | BPF_MEM);
    case BPF_ST:
      return code == BPF_ST;
    case BPF_STX:
      return code == BPF_STX;
    case BPF_ALU:
      return IsKnownArithmetic(code);
    case BPF_JMP:
      return IsKnownJump(code);
    case BPF_RET:
      return code == (BPF_RET | BPF_K) || code == (BPF_RET | BPF_A);
    default:
      return code == (BPF_MISC | BPF_TAX) || code == (BPF_MISC | BPF_TXA);
  }
}

const char* WhyInvalidAt(Program program, size_t at) {
  const sock_filter& here = program[at];
  const size_t left = program.size() - at - 1;  // instructions after this one
  if (!IsKnown(here.code)) return "an instruction that seccomp does not take";
  if (here.code == (BPF_LD | BPF_W | BPF_ABS) && (here.k >= sizeof(abi::SeccompData) || here.k % 4 != 0))
    return "a load outside struct seccomp_data or not aligned";
  if (IsJumpAlways(here) && here.k >= left) return "a jump out of the program";
  if (IsJump(here) && !IsJumpAlways(here) && (here.jt >= left || here.jf >= left))
    return "a jump out of the program";
  if (here.code == (BPF_ALU | BPF_DIV | BPF_K) && here.k == 0) return "a division by zero";
  if ((here.code == (BPF_ALU | BPF_LSH | BPF_K) || here.code == (BPF_ALU | BPF_RSH | BPF_K)) && here.k >= 32)
    return "a shift by 32 or more";
  const int access = BPF_MODE(here.code);
  const bool scratch =
      here.code == BPF_ST || here.code == BPF_STX ||
      (access == BPF_MEM && (BPF_CLASS(here.code) == BPF_LD || BPF_CLASS(here.code) == BPF_LDX));
  if (scratch && here.k >= BPF_MEMWORDS) return "a scratch word that does not exist";
  return nullptr;
}

// A scratch word must be written on every path before it is read.
bool ScratchIsWrittenBeforeRead(Program program) {
  std::vector<uint16_t> written(program.size(), 0xffff);
  uint16_t now = 0;
  for (size_t at = 0; at < program.size(); ++at) {
    const sock_filter& here = program[at];
    now &= written[at];
    if (here.code == BPF_ST || here.code == BPF_STX) now = static_cast<uint16_t>(now | (1U << here.k));
    if ((here.code == (BPF_LD | BPF_MEM) || here.code == (BPF_LDX | BPF_MEM)) && (now & (1U << here.k)) == 0)
      return false;
    if (!IsJump(here)) continue;
    if (IsJumpAlways(here)) {
      written[at + 1 + here.k] &= now;
    } else {
      written[at + 1 + here.jt] &= now;
      written[at + 1 + here.jf] &= now;
    }
    now = 0xffff;
  }
  return true;
}

uint32_t Word(const abi::SeccompData& data, uint32_t offset) {
  uint32_t word;
  OARLOCK_CHECK(offset + sizeof(word) <= sizeof(data));
  std::memcpy(&word, reinterpret_cast<const char*>(&data) + offset, sizeof(word));
  return word;
}

bool Taken(uint16_t code, uint32_t left, uint32_t right) {
  switch (BPF_OP(code)) {
    case BPF_JEQ:
      return left == right;
    case BPF_JGT:
      return left > right;
    case BPF_JGE:
      return left >= right;
    default:
      return (left & right) != 0;
  }
}

// None where the kernel ends the filter: a division by zero.
std::optional<uint32_t> Arithmetic(uint16_t code, uint32_t left, uint32_t right) {
  switch (BPF_OP(code)) {
    case BPF_ADD:
      return left + right;
    case BPF_SUB:
      return left - right;
    case BPF_MUL:
      return left * right;
    case BPF_DIV:
      return right == 0 ? std::nullopt : std::optional(left / right);
    case BPF_AND:
      return left & right;
    case BPF_OR:
      return left | right;
    case BPF_XOR:
      return left ^ right;
    case BPF_LSH:
      return left << (right & 31);
    case BPF_RSH:
      return left >> (right & 31);
    default:
      return 0U - left;
  }
}

}  // namespace

std::string WhyInvalid(Program program) {
  if (program.empty() || program.size() > abi::kMaxInstructions) return "an impossible length";
  for (size_t at = 0; at < program.size(); ++at)
    if (const char* why = WhyInvalidAt(program, at); why != nullptr) return Text(program, at) + ": " + why;
  if (BPF_CLASS(program.back().code) != BPF_RET) return "the last instruction is no return";
  if (!ScratchIsWrittenBeforeRead(program)) return "a scratch word is read before it is written";
  return "";
}

uint32_t Run(Program program, const abi::SeccompData& data) {
  uint32_t a = 0;
  uint32_t x = 0;
  Scratch scratch{};
  for (size_t at = 0; at < program.size(); ++at) {
    const sock_filter& here = program[at];
    const uint32_t operand = BPF_SRC(here.code) == BPF_X ? x : here.k;
    switch (BPF_CLASS(here.code)) {
      case BPF_LD:
      case BPF_LDX: {
        uint32_t& target = BPF_CLASS(here.code) == BPF_LD ? a : x;
        if (BPF_MODE(here.code) == BPF_ABS)
          target = Word(data, here.k);
        else if (BPF_MODE(here.code) == BPF_LEN)
          target = sizeof(data);
        else
          target = BPF_MODE(here.code) == BPF_MEM ? scratch.at(here.k) : here.k;
        break;
      }
      case BPF_ST:
        scratch.at(here.k) = a;
        break;
      case BPF_STX:
        scratch.at(here.k) = x;
        break;
      case BPF_ALU: {
        const std::optional<uint32_t> result = Arithmetic(here.code, a, operand);
        if (!result) return 0;
        a = *result;
        break;
      }
      case BPF_JMP:
        if (IsJumpAlways(here))
          at += here.k;
        else
          at += Taken(here.code, a, operand) ? here.jt : here.jf;
        break;
      case BPF_RET:
        return BPF_RVAL(here.code) == BPF_A ? a : here.k;
      default:
        (BPF_MISCOP(here.code) == BPF_TAX ? x : a) = BPF_MISCOP(here.code) == BPF_TAX ? a : x;
    }
  }
  OARLOCK_CHECK(false, "the program has no end: not one that the kernel would load");
}

bool IsConstantAllow(Program program, uint32_t nr, uint32_t arch) {
  uint32_t a = 0;
  for (size_t at = 0; at < program.size(); ++at) {
    const sock_filter& here = program[at];
    switch (here.code) {
      case BPF_LD | BPF_W | BPF_ABS:
        if (here.k != offsetof(abi::SeccompData, nr) && here.k != offsetof(abi::SeccompData, arch))
          return false;
        a = here.k == offsetof(abi::SeccompData, nr) ? nr : arch;
        break;
      case BPF_RET | BPF_K:
        return here.k == abi::kRetAllow;
      case BPF_JMP | BPF_JA:
        at += here.k;
        break;
      case BPF_JMP | BPF_JEQ | BPF_K:
      case BPF_JMP | BPF_JGE | BPF_K:
      case BPF_JMP | BPF_JGT | BPF_K:
      case BPF_JMP | BPF_JSET | BPF_K:
        at += Taken(here.code, a, here.k) ? here.jt : here.jf;
        break;
      case BPF_ALU | BPF_AND | BPF_K:
        a &= here.k;
        break;
      default:
        return false;
    }
  }
  return false;
}

std::string Text(Program program, size_t at) {
  const sock_filter& here = program[at];
  const char* name = "?";
  switch (here.code) {
    case BPF_LD | BPF_W | BPF_ABS:
      name = "ld";
      break;
    case BPF_ALU | BPF_AND | BPF_K:
      name = "and";
      break;
    case BPF_JMP | BPF_JA:
      name = "ja";
      break;
    case BPF_JMP | BPF_JEQ | BPF_K:
      name = "jeq";
      break;
    case BPF_JMP | BPF_JGE | BPF_K:
      name = "jge";
      break;
    case BPF_JMP | BPF_JGT | BPF_K:
      name = "jgt";
      break;
    case BPF_JMP | BPF_JSET | BPF_K:
      name = "jset";
      break;
    case BPF_RET | BPF_K:
      name = "ret";
      break;
    default:
      break;
  }
  char text[96];
  (void)std::snprintf(text, sizeof(text), "%zu: %s(%#x) %#x, %u, %u", at, name, here.code, here.k, here.jt,
                      here.jf);
  return text;
}

}  // namespace oarlock::bpf
