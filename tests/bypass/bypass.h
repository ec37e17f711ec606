// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

#include "tests/hostile/program.h"

// oarlock-bypass: every known way out of a sandbox of this kind, tried from inside one and judged from outside.
//
// The outside half owns what must not be reached: servers, victims, files. It starts the launcher with the inside half as its
// program and has one row of the table tried after the other, over the inside half's stdin and stdout. Each try is a process of
// its own. What the inside half says is taken for its errno; whether a try got out is for the outside to see.
namespace bypass {

class Inside;
class Outside;

// How one part of a try shows that it got out.
enum class Kind : char {
  kArrives = 'A',  // a server that must not be reached has received the part's name
  kLeaks = 'L',    // the inside half knows a secret that it was not told
  kJudged = 'J',   // the row's own look at its victim
  kReports = 'R',  // the call itself is the harm (a kernel facility that must not be had): its result
};

struct Part {
  std::string name;
  Kind kind = Kind::kReports;
  bool optional = false;  // not every kernel or machine can do it at all
  int error = 0;          // 0: the calls went through
  std::string leak;
};

// What kind of row it is, beside being tried in turn.
enum : unsigned {
  kOpen = 1,       // open by nature: `open-by-design` where it gets out of a sandbox
  kOwnLaunch = 2,  // needs a launch of its own, under circumstances of its own
  kAfterwards = 4, // judged when the launch has ended
};

// One way out. Static; the function pointers may be null.
struct Row {
  const char* id;
  const char* what;
  void (*inside)(Inside&) = nullptr;                      // the try
  void (*prepare)(Outside&) = nullptr;                    // before it: its own victims and values
  bool (*judge)(Outside&, const Part&) = nullptr;         // of a kJudged part; without it, what `answer` noted
  std::string (*answer)(Outside&, const std::string&) = nullptr;  // what the inside half asks meanwhile
  void (*clean)(Outside&) = nullptr;
  void (*before_launch)(Outside&) = nullptr;              // in the launcher's process, before exec; kOwnLaunch
  const char* elsewhere = nullptr;                        // not tried here: why, and which test holds it
  unsigned flags = 0;
  int seconds = 6;                                        // for the try
};

// All rows, in the order of their ids.
[[nodiscard]] std::vector<Row> AllRows();
[[nodiscard]] std::span<const Row> FilterRows();
[[nodiscard]] std::span<const Row> InternetRows();
[[nodiscard]] std::span<const Row> UnixRows();
[[nodiscard]] std::span<const Row> SupervisorRows();
[[nodiscard]] std::span<const Row> FileRows();
[[nodiscard]] std::span<const Row> ExecutionRows();
[[nodiscard]] std::span<const Row> ProcessRows();
[[nodiscard]] std::span<const Row> LauncherRows();
[[nodiscard]] std::span<const Row> EffectRows();

// Descriptors that every launch inherits, put there by somebody hostile.
enum : int {
  kFdRing = 20,        // an io_uring with a registered personality
  kFdPolledRing = 21,  // one that the kernel polls, of the outside half
  kFdTcp = 22,         // connected where the sandbox must not
  kFdUnix = 23,        // likewise
  kFdDatagram = 24,    // an abstract datagram socket with its peer set
  kFdFile = 25,        // a file outside, open for writing
  kFdDirectory = 26,   // the directory outside
  kFdMemory = 27,      // a memfd, open for reading only
  kFdListener = 28,    // the seccomp listener of another process
  kFdProgram = 29,     // a program outside
  kFdTerminal = 30,    // the launcher's terminal
};

constexpr unsigned kNobody = 65534, kStranger = 54321;

int RunInside();
int RunOutside(int argc, char** argv);
// Modes of the program that others start: --victim, --landlock and so on. -1: no such mode.
int RunHelper(int argc, char** argv);

}  // namespace bypass
