// SPDX-License-Identifier: Apache-2.0
// Descriptors 0 to 2 belong to somebody outside too. What a module does to their flags stays with the module (E-201), and all else is as
// it was: access, order, ends, offsets.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <sys/fsuid.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include <atomic>
#include <thread>

#include "tests/support/sandbox.h"

namespace oarlock::test {
namespace {

constexpr const char* kNonBlocking = R"(
import fcntl, os
for fd in (0, 1, 2): fcntl.fcntl(fd, fcntl.F_SETFL, fcntl.fcntl(fd, fcntl.F_GETFL) | os.O_NONBLOCK)
)";

struct Pipe {
  UniqueFd read, write;
  // Of this user's making, as far as permission to open it goes.
  explicit Pipe(uid_t uid = 0, int flags = 0) {
    int ends[2] = {-1, -1};
    (void)::setfsuid(uid);
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC | flags), 0);
    (void)::setfsuid(0);
    read.Reset(ends[0]);
    write.Reset(ends[1]);
  }
};

bool NonBlocking(int fd) { return (::fcntl(fd, F_GETFL) & O_NONBLOCK) != 0; }

// What a write to a full pipe does: 0 once there is room, or its errno at once.
class Writer {
 public:
  explicit Writer(int fd) : thread_([this, fd] { result_ = ::write(fd, "x", 1) == 1 ? 0 : errno; }) {}
  ~Writer() { thread_.join(); }
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;
  [[nodiscard]] int result() const { return result_; }

 private:
  std::atomic<int> result_{-1};
  std::thread thread_;
};

class StdioTest : public testing::Test {
 protected:
  // Inside, or with nothing around it. `fds`: what becomes 0, 1 and 2; -1 leaves the usual.
  Outcome Run(const std::string& program, std::array<int, 3> fds, bool bare, std::optional<uid_t> uid = {}) {
    if (uid) sandbox_.As(*uid);
    const std::vector<std::string> argv = {"/usr/bin/python3", "-c", program};
    ProcessOptions options = sandbox_.Options(argv);
    if (bare) options.argv = argv;
    options.before_exec = [fds] {
      for (int to = 0; to <= 2; ++to)
        if (fds[static_cast<size_t>(to)] >= 0) (void)::dup2(fds[static_cast<size_t>(to)], to);
    };
    return RunProcess(options);
  }
  Sandbox sandbox_;
};

TEST_F(StdioTest, E201_NonBlockingInsideIsNotOutside) {
  // By root for itself, by root for another user, by another user for himself.
  struct Who {
    const char* name;
    std::string policy;
    std::optional<uid_t> uid;
  };
  for (const Who& who : {Who{"root", "", {}}, Who{"run_as", "\"run_as\":{\"uid\":65534,\"gid\":65534}", {}}, Who{"nobody", "", 65534}}) {
    SCOPED_TRACE(who.name);
    for (const bool bare : {false, true}) {
      SCOPED_TRACE(bare ? "bare" : "inside");
      const uid_t owner = who.uid.value_or(0);
      Pipe out(owner), in(owner);
      Sandbox sandbox(who.policy);
      if (who.uid) sandbox.As(*who.uid);
      ProcessOptions options = sandbox.Options({"/usr/bin/python3", "-c", kNonBlocking});
      if (bare) options.argv = {"/usr/bin/python3", "-c", kNonBlocking};
      const int read = in.read.get(), write = out.write.get();
      options.before_exec = [read, write] {
        (void)::dup2(read, 0);
        (void)::dup2(write, 1);
        (void)::dup2(write, 2);
      };
      const Outcome outcome = RunProcess(options);
      ASSERT_EQ(outcome.code, 0);
      EXPECT_EQ(NonBlocking(out.write.get()), bare);
      EXPECT_EQ(NonBlocking(in.read.get()), bare);
      // What that means to the holder outside.
      const int size = ::fcntl(out.write.get(), F_GETPIPE_SZ);
      const std::string much(static_cast<size_t>(size), 'x');
      ASSERT_EQ(::write(out.write.get(), much.data(), much.size()), size);
      {
        const Writer writer(out.write.get());
        if (bare) {
          EXPECT_TRUE(Eventually([&] { return writer.result() == EAGAIN; }));
        } else {
          ::usleep(200'000);
          EXPECT_EQ(writer.result(), -1);
        }
        std::string back(much.size(), '\0');
        EXPECT_EQ(::read(out.read.get(), back.data(), back.size()), size);
        if (!bare) EXPECT_TRUE(Eventually([&] { return writer.result() == 0; }));
      }
    }
  }
}

TEST_F(StdioTest, E201_AndOfATerminal) {
  for (const bool bare : {false, true}) {
    SCOPED_TRACE(bare ? "bare" : "inside");
    int master = -1, slave = -1;
    ASSERT_EQ(::openpty(&master, &slave, nullptr, nullptr, nullptr), 0);
    const UniqueFd outer(master), terminal(slave);
    const Outcome outcome = Run(std::string(kNonBlocking) + "os.write(1, b'%d %s\\n' % (os.isatty(0), os.ttyname(2).encode()))\n", {slave, slave, slave}, bare);
    EXPECT_EQ(outcome.code, 0);
    EXPECT_EQ(NonBlocking(slave), bare);
    char text[200] = {};
    ASSERT_GT(::read(master, text, sizeof(text) - 1), 0);
    EXPECT_EQ(std::string(text), "1 " + std::string(::ttyname(slave)) + "\r\n");
  }
}

// A pipe that its user may not open stays as it was: the launcher has no right to give that the user lacks.
TEST_F(StdioTest, APipeOfAnotherUserStays) {
  Pipe out(0);
  EXPECT_EQ(Run(kNonBlocking, {-1, out.write.get(), -1}, false, 65534).code, 0);
  EXPECT_TRUE(NonBlocking(out.write.get()));
}

// `2>&1`: one description to both numbers, before and after; two stay two.
TEST_F(StdioTest, WhatWasSharedIsShared) {
  const std::string program = R"(
import fcntl, os
fcntl.fcntl(1, fcntl.F_SETFL, fcntl.fcntl(1, fcntl.F_GETFL) | os.O_NONBLOCK)
os.write(1, b'%d' % (fcntl.fcntl(2, fcntl.F_GETFL) & os.O_NONBLOCK))
)";
  for (const bool bare : {false, true})
    for (const bool shared : {true, false}) {
      SCOPED_TRACE(testing::Message() << (bare ? "bare" : "inside") << (shared ? " shared" : " apart"));
      Pipe out;
      const UniqueFd other(::open(("/proc/self/fd/" + std::to_string(out.write.get())).c_str(), O_WRONLY | O_CLOEXEC));
      EXPECT_EQ(Run(program, {-1, out.write.get(), shared ? out.write.get() : other.get()}, bare).code, 0);
      char text[20] = {};
      ASSERT_GT(::read(out.read.get(), text, sizeof(text) - 1), 0);
      EXPECT_EQ(std::string(text), shared ? std::to_string(O_NONBLOCK) : "0");
    }
}

// Flags, access and ends as they were, by each way of having them.
TEST_F(StdioTest, AllElseIsAsItWas) {
  const std::string program = R"(
import fcntl, os, select, sys
poll = select.poll()
poll.register(0, select.POLLIN)
print('flags ->', hex(fcntl.fcntl(0, fcntl.F_GETFL) & ~0o100000), 'poll', poll.poll(0), flush=True)
try: print('read ->', os.read(0, 10), flush=True)
except OSError as e: print('read ->', e.errno, flush=True)
try: print('write ->', os.write(0, b''), flush=True)
except OSError as e: print('write ->', e.errno, flush=True)
)";
  TemporaryDirectory directory;
  const std::string fifo = directory / "fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0666), 0);
  const auto open = [&](int flags) { return UniqueFd(::open(fifo.c_str(), flags | O_CLOEXEC)); };
  struct Case {
    const char* name;
    std::function<std::vector<UniqueFd>()> make;  // the first becomes stdin
  };
  const auto list = [](auto... fds) {
    std::vector<UniqueFd> made;
    (made.push_back(std::move(fds)), ...);
    return made;
  };
  const std::vector<Case> cases = {
      {"a reader that never had a writer", [&] { return list(open(O_RDONLY | O_NONBLOCK)); }},
      {"a reader with a silent writer", [&] { auto read = open(O_RDONLY | O_NONBLOCK); auto write = open(O_WRONLY); return list(std::move(read), std::move(write)); }},
      {"a reader whose writer has spoken and gone", [&] {
         auto read = open(O_RDONLY | O_NONBLOCK);
         EXPECT_EQ(::write(open(O_WRONLY).get(), "abc", 3), 3);
         return list(std::move(read));
       }},
      {"a reader whose writer has gone", [&] { auto read = open(O_RDONLY | O_NONBLOCK); (void)open(O_WRONLY); return list(std::move(read)); }},
      {"both", [&] { return list(open(O_RDWR | O_NONBLOCK)); }},
      {"a writer that appends", [&] { auto both = open(O_RDWR); return list(open(O_WRONLY | O_APPEND), std::move(both)); }},
      {"a writer without a reader", [&] { auto both = open(O_RDWR); return list(open(O_WRONLY | O_NONBLOCK)); }},
      {"an anonymous pipe whose writer has gone", [&] { Pipe pipe; return list(std::move(pipe.read)); }},
      {"packets", [&] {
         Pipe pipe(0, O_DIRECT | O_NONBLOCK);
         EXPECT_EQ(::write(pipe.write.get(), "abc", 3) + ::write(pipe.write.get(), "de", 2), 5);
         return list(std::move(pipe.read), std::move(pipe.write));
       }},
      {"packets, written", [&] { Pipe pipe(0, O_DIRECT); return list(std::move(pipe.write), std::move(pipe.read)); }},
      {"nothing", [&] { return list(UniqueFd(::open("/dev/null", O_RDWR | O_CLOEXEC))); }},
  };
  for (const Case& one : cases) {
    SCOPED_TRACE(one.name);
    std::string out[2];
    for (const bool bare : {false, true}) {
      const auto fds = one.make();
      ASSERT_TRUE(fds[0].valid());
      const Outcome outcome = Run(program, {fds[0].get(), -1, -1}, bare);
      EXPECT_EQ(outcome.code, 0) << outcome.err;
      out[bare] = outcome.out;
    }
    EXPECT_EQ(out[0], out[1]);
    EXPECT_NE(ResultOf(out[0], "flags"), "(not done)");
  }
}

// `>>log 2>&1`, and a plain file behind both: one offset with whoever else holds it.
TEST_F(StdioTest, AFileKeepsItsCommonOffset) {
  TemporaryDirectory directory;
  const UniqueFd file(::open(directory.WriteFile("log", "").c_str(), O_RDWR | O_CLOEXEC));
  EXPECT_EQ(Run("import os\nos.write(1, b'one ')\nos.write(2, b'two ')\n", {-1, file.get(), file.get()}, false).code, 0);
  EXPECT_EQ(::lseek(file.get(), 0, SEEK_CUR), 8);
  char text[20] = {};
  EXPECT_EQ(::pread(file.get(), text, sizeof(text), 0), 8);
  EXPECT_EQ(std::string(text), "one two ");
}

// The controlling side of a terminal: an open of its name would be a new terminal.
TEST_F(StdioTest, AMasterStaysTheSameTerminal) {
  const UniqueFd master(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
  ASSERT_TRUE(master.valid());
  unsigned number = 0;
  ASSERT_EQ(::ioctl(master.get(), TIOCGPTN, &number), 0);
  const std::string program = "import array, fcntl, os\nn = array.array('I', [0])\nfcntl.ioctl(0, 0x80045430, n)\nprint('pty ->', n[0])\n";
  for (const bool bare : {false, true}) {
    const Outcome outcome = Run(program, {master.get(), -1, -1}, bare);
    EXPECT_EQ(ResultOf(outcome, "pty"), std::to_string(number)) << outcome.err;
  }
}

}  // namespace
}  // namespace oarlock::test
