// SPDX-License-Identifier: Apache-2.0
// Real programs inside the sandbox: each does its work through the agent's proxy, each fails at once, in the
// way that it knows, when it goes past it, and the servers that it must not reach have seen nobody.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <map>
#include <optional>
#include <ostream>

#include "tests/live/programs_proxy.h"
#include "tests/support/sandbox.h"
#include "tests/support/servers.h"

namespace oarlock::test {
namespace {

constexpr uid_t kNobodyUid = 65534;
constexpr const char* kHello = "hello from the origin";
// A refusal is an answer: how much longer than the same program unconfined one may take. Generous, since the
// machine may be busy; a program that retries or waits for a time-out takes tens of seconds.
constexpr double kRefusedWithinSeconds = 2.0;

enum class Verb : uint8_t { kSandboxExec, kRun };
enum class Identity : uint8_t { kRoot, kNobody };

// One way to start the module: by which verb, and as whom.
struct Launch {
  Verb verb;
  Identity identity;
  [[nodiscard]] const char* errno_name() const { return verb == Verb::kRun ? "ENETUNREACH" : "EACCES"; }
  [[nodiscard]] const char* errno_text() const {
    return verb == Verb::kRun ? "Network is unreachable" : "Permission denied";
  }
};

std::string Name(const Launch& launch) {
  return std::string(launch.verb == Verb::kRun ? "Run" : "SandboxExec") +
         (launch.identity == Identity::kRoot ? "AsRoot" : "AsNobody");
}

constexpr Launch kLaunches[] = {{Verb::kSandboxExec, Identity::kRoot},
                                {Verb::kSandboxExec, Identity::kNobody},
                                {Verb::kRun, Identity::kRoot},
                                {Verb::kRun, Identity::kNobody}};

// A module, its agent and what lies around them. Programs find in their environment: ORIGIN and PROXY
// (ports), WORK (their writable directory).
class Node {
 public:
  explicit Node(Launch launch, const std::string& more_policy = "") : launch_(launch) {
    (void)served_.WriteFile("file.txt", std::string(kHello) + "\n");
    origin_.emplace(served_.path());
    const uid_t owner = launch.identity == Identity::kNobody ? kNobodyUid : ::getuid();
    work_ = home_.MakeDirectory("work", 0755, owner, owner);
    std::string policy =
        R"("rw":[")" + work_ + R"("],"net":"egress-allowlist","proxy_port":)" + std::to_string(proxy_.port());
    if (launch.identity == Identity::kNobody) policy += R"(,"run_as":{"uid":65534,"gid":65534})";
    sandbox_.emplace(policy + more_policy);
    sandbox_->Timeout(std::chrono::seconds(120));
    for (const auto& [name, value] : Environment()) sandbox_->Environment(name, value);
  }

  // The program inside, as this launch starts it.
  [[nodiscard]] Outcome Inside(std::vector<std::string> argv,
                               const std::map<std::string, std::string>& environment = {}) const {
    ProcessOptions options = sandbox_->Options(argv);
    if (launch_.verb == Verb::kRun) {
      options.argv = {OarlockPath(), "run", "--policy", sandbox_->policy_path(), "--"};
      options.argv.insert(options.argv.end(), argv.begin(), argv.end());
    }
    options.environment.insert(environment.begin(), environment.end());
    options.directory = work_;
    return RunProcess(options);
  }
  // The same with nothing around it, under the same uid.
  [[nodiscard]] Outcome Outside(std::vector<std::string> argv,
                                const std::map<std::string, std::string>& environment = {}) const {
    ProcessOptions options;
    options.argv = std::move(argv);
    options.environment = Environment();
    options.environment.insert(environment.begin(), environment.end());
    options.directory = work_;
    options.timeout = std::chrono::seconds(120);
    if (launch_.identity == Identity::kNobody) options.uid = kNobodyUid;
    return RunProcess(options);
  }

  // What a person should see in the log: "CODE target ERRNO process" and how often.
  [[nodiscard]] std::map<std::string, uint64_t> Denials() const {
    std::map<std::string, uint64_t> denials;
    for (const LogLine& line : sandbox_->Log())
      if (line.kind == "DENY")
        denials[line.code + " " + line.target + " " + line.errno_name + " " + line.process] += line.count;
    return denials;
  }

  [[nodiscard]] const Launch& launch() const { return launch_; }
  [[nodiscard]] const TinyProxy& proxy() const { return proxy_; }
  [[nodiscard]] const Origin& origin() const { return *origin_; }
  [[nodiscard]] const TcpServer& forbidden() const { return forbidden_; }
  [[nodiscard]] const std::string& work() const { return work_; }
  [[nodiscard]] const TemporaryDirectory& served() const { return served_; }

 private:
  [[nodiscard]] std::map<std::string, std::string> Environment() const {
    return {{"ORIGIN", std::to_string(origin_->port())},
            {"PROXY", std::to_string(proxy_.port())},
            {"WORK", work_},
            {"HOME", work_},
            {"ERRNO", launch_.errno_name()}};
  }

  Launch launch_;
  TemporaryDirectory home_, served_;
  std::string work_;
  TinyProxy proxy_;
  // It greets as a web server would, so that what gets through to it has really got something.
  TcpServer forbidden_{"127.0.0.1", 0, "HTTP/1.0 200 OK\r\nContent-Length: 10\r\n\r\nforbidden\n"};
  std::optional<Origin> origin_;
  std::optional<Sandbox> sandbox_;
};

bool SkippedForPrivilege(const Launch& launch) {
  return launch.identity == Identity::kNobody && ::getuid() != 0;
}

// --- through the proxy, and past it
// ---------------------------------------------------------------------------------

// What one program does. The scripts are bash's; TARGET is a port that is not the proxy's.
struct Program {
  const char* name;
  const char* through;     // prints the origin's greeting
  const char* past;        // tries the target itself; prints the greeting where it gets through
  int code;                // how it says that it could not
  uint64_t connects;       // attempts of `past` that the log must show
  const char* process;     // who made them
  int least_requests = 1;  // that `through` makes of the proxy
};

// In Python a refusal is told by the name of its errno, so that tests see the number and not somebody's text
// for it.
constexpr Program kPrograms[] = {
    {"Curl", "exec curl -sS http://127.0.0.1:$ORIGIN/file.txt",
     "exec curl -sSv --noproxy '*' http://127.0.0.1:$TARGET/file.txt", 7, 1, "curl"},

    // wget tries an EACCES again twenty times, within minutes, and an ENETUNREACH once (F-46).
    {"Wget", "exec wget -q -O - http://127.0.0.1:$ORIGIN/file.txt",
     "tries=$([ $ERRNO = EACCES ] && echo --tries=1); exec wget --no-proxy $tries -O - "
     "http://127.0.0.1:$TARGET/file.txt",
     4, 1, "wget"},

    {"Git", "git clone -q http://127.0.0.1:$ORIGIN/repo.git copy && cat copy/hello.txt",
     "rm -rf direct; env -i PATH=$PATH HOME=$HOME GIT_CURL_VERBOSE=1 "
     "git clone http://127.0.0.1:$TARGET/repo.git direct || exit; cat direct/hello.txt",
     128, 1, "git-remote-http", 3},

    {"Bash",
     "exec 3<>/dev/tcp/127.0.0.1/$PROXY; printf 'GET http://127.0.0.1:%s/file.txt HTTP/1.0\\r\\n\\r\\n' "
     "$ORIGIN >&3; cat <&3",
     "set -e; exec 3<>/dev/tcp/127.0.0.1/$TARGET; printf 'GET /file.txt HTTP/1.0\\r\\n\\r\\n' >&3; "
     "while read -t 30 -r line; do echo \"$line\"; case $line in hello*|forbidden*) break;; esac; done <&3",
     1, 1, "bash"},

    {"Urllib", R"(exec /usr/bin/python3 -c '
import os, urllib.request
url = "http://127.0.0.1:" + os.environ["ORIGIN"] + "/file.txt"
print(urllib.request.urlopen(url, timeout=30).read().decode())')",
     R"(exec /usr/bin/python3 -c '
import errno, os, sys, urllib.error, urllib.request
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
try:
    print(opener.open("http://127.0.0.1:" + os.environ["TARGET"] + "/file.txt", timeout=30).read().decode())
except urllib.error.URLError as error:
    print(errno.errorcode[error.reason.errno])
    sys.exit(3)')",
     3, 1, "python3"},

    // The requests run in a loop of another thread and are awaited from this one: each needs a wake-up
    // through a socket pair (F-18).
    {"Asyncio", R"(exec /usr/bin/python3 -c '
import asyncio, os, threading
async def fetch():
    reader, writer = await asyncio.open_connection("127.0.0.1", int(os.environ["PROXY"]))
    writer.write(("GET http://127.0.0.1:%s/file.txt HTTP/1.0\r\n\r\n" % os.environ["ORIGIN"]).encode())
    return (await reader.read()).decode()
loop = asyncio.new_event_loop()
threading.Thread(target=loop.run_forever, daemon=True).start()
futures = [asyncio.run_coroutine_threadsafe(fetch(), loop) for _ in range(8)]
print([future.result(30) for future in futures][-1])')",
     R"(exec /usr/bin/python3 -c '
import asyncio, errno, os, sys
async def fetch():
    reader, writer = await asyncio.open_connection("127.0.0.1", int(os.environ["TARGET"]))
    writer.write(b"GET /file.txt HTTP/1.0\r\n\r\n")
    async for line in reader:
        if line.startswith((b"hello", b"forbidden")): return line.decode()
try:
    print(asyncio.run(asyncio.wait_for(fetch(), 30)))
except OSError as error:
    print(errno.errorcode[error.errno])
    sys.exit(3)')",
     3, 1, "python3", 8},

    {"Threads", R"(exec /usr/bin/python3 -c '
import concurrent.futures, os, urllib.request
url = "http://127.0.0.1:" + os.environ["ORIGIN"] + "/file.txt"
with concurrent.futures.ThreadPoolExecutor(8) as pool:
    pages = list(pool.map(lambda _: urllib.request.urlopen(url, timeout=30).read().decode(), range(32)))
print(pages[-1])')",
     R"(exec /usr/bin/python3 -c '
import concurrent.futures, errno, os, socket, sys
def reach(_):
    try:
        with socket.create_connection(("127.0.0.1", int(os.environ["TARGET"])), timeout=30) as connection:
            connection.sendall(b"GET /file.txt HTTP/1.0\r\n\r\n")
            return next(line for line in connection.makefile() if line.startswith(("hello", "forbidden")))
    except OSError as error:
        return errno.errorcode[error.errno]
with concurrent.futures.ThreadPoolExecutor(8) as pool:
    results = set(pool.map(reach, range(8)))
print(*results)
sys.exit(3 if results == {os.environ["ERRNO"]} else 0)')",
     3, 8, "python3", 32},

    {"Subprocess", R"(exec /usr/bin/python3 -c '
import os, subprocess
print(subprocess.run(["curl", "-sS", "http://127.0.0.1:" + os.environ["ORIGIN"] + "/file.txt"], check=True,
                     capture_output=True, text=True).stdout)')",
     R"(exec /usr/bin/python3 -c '
import os, subprocess, sys
script = "curl -sSv --noproxy \"*\" http://127.0.0.1:$TARGET/file.txt | cat; exit ${PIPESTATUS[0]}"
done = subprocess.run(script, shell=True, executable="/bin/bash", text=True,
                      stderr=subprocess.STDOUT, stdout=subprocess.PIPE)
print(done.stdout)
sys.exit(done.returncode)')",
     7, 1, "curl"},

    {"Multiprocessing", R"(exec /usr/bin/python3 -c '
import multiprocessing, os, urllib.request
def work(pipe):
    url = "http://127.0.0.1:" + os.environ["ORIGIN"] + "/file.txt"
    pipe.send(urllib.request.urlopen(url, timeout=30).read().decode())
ours, theirs = multiprocessing.Pipe()
child = multiprocessing.Process(target=work, args=(theirs,))
child.start()
theirs.close()
print(ours.recv())
child.join()')",
     R"(exec /usr/bin/python3 -c '
import errno, multiprocessing, os, socket, sys
def work(pipe):
    try:
        with socket.create_connection(("127.0.0.1", int(os.environ["TARGET"])), timeout=30) as connection:
            connection.sendall(b"GET /file.txt HTTP/1.0\r\n\r\n")
            pipe.send(next(line for line in connection.makefile() if line.startswith(("hello", "forbidden"))))
    except OSError as error:
        pipe.send(errno.errorcode[error.errno])
ours, theirs = multiprocessing.Pipe()
child = multiprocessing.Process(target=work, args=(theirs,))
child.start()
theirs.close()
result = ours.recv()
child.join()
print(result)
sys.exit(3 if result == os.environ["ERRNO"] else 0)')",
     3, 1, "python3"},
};

std::ostream& operator<<(std::ostream& out, const Program& program) { return out << program.name; }
std::ostream& operator<<(std::ostream& out, const Launch& launch) { return out << Name(launch); }

class RealPrograms : public testing::TestWithParam<std::tuple<Program, Launch>> {};

TEST_P(RealPrograms, ReachTheProxyAndNothingElse) {
  const auto& [program, launch] = GetParam();
  if (SkippedForPrivilege(launch)) GTEST_SKIP() << "run_as needs root";
  for (const char* needed : {"tinyproxy", "curl", "wget", "git"})
    ASSERT_NE(FindInstalled(needed), "") << needed << ": scripts/install-deps.sh test installs it";
  const Node node(launch);
  if (std::string(program.name) == "Git") MakeRepository(node.served().path(), std::string(kHello) + "\n");
  const auto bash = [](const char* script) { return std::vector<std::string>{"/bin/bash", "-c", script}; };
  const auto target = [](uint16_t port) {
    return std::map<std::string, std::string>{{"TARGET", std::to_string(port)}};
  };

  const Outcome through = node.Inside(bash(program.through));
  EXPECT_EQ(through.code, 0) << through.out << through.err;
  EXPECT_NE(through.out.find(kHello), std::string::npos) << through.out << through.err;
  EXPECT_GE(node.proxy().Requests(), program.least_requests);
  EXPECT_GE(node.origin().Requests(), program.least_requests);
  EXPECT_TRUE(node.Denials().empty()) << testing::PrintToString(node.Denials());

  // The origin would serve it, but the proxy is the only way there.
  const int requests = node.origin().Requests();
  const Outcome past = node.Inside(bash(program.past), target(node.origin().port()));
  const Outcome forbidden = node.Inside(bash(program.past), target(node.forbidden().port()));
  for (const Outcome* refused : {&past, &forbidden}) {
    EXPECT_EQ(refused->code, program.code) << refused->out << refused->err;
    const std::string said = refused->out + refused->err;
    EXPECT_TRUE(said.find(launch.errno_name()) != std::string::npos ||
                said.find(launch.errno_text()) != std::string::npos)
        << said;
    EXPECT_EQ(said.find(kHello), std::string::npos) << said;
  }
  EXPECT_EQ(node.origin().Requests(), requests);
  EXPECT_EQ(node.forbidden().connections(), 0);
  const auto denial = [&](uint16_t port) {
    return "TCP_NOT_PROXY 127.0.0.1:" + std::to_string(port) + " " + launch.errno_name() + " " +
           program.process;
  };
  EXPECT_EQ(node.Denials(),
            (std::map<std::string, uint64_t>{{denial(node.origin().port()), program.connects},
                                             {denial(node.forbidden().port()), program.connects}}));

  // The twins: it was the sandbox that refused.
  const Outcome bare = node.Outside(bash(program.past), target(node.origin().port()));
  EXPECT_EQ(bare.code, 0) << bare.out << bare.err;
  EXPECT_NE(bare.out.find(kHello), std::string::npos) << bare.out << bare.err;
  EXPECT_GT(node.origin().Requests(), requests);
  (void)node.Outside(bash(program.past), target(node.forbidden().port()));
  EXPECT_GE(node.forbidden().connections(), 1);
  EXPECT_LT(past.seconds, bare.seconds + kRefusedWithinSeconds);
  EXPECT_LT(forbidden.seconds, bare.seconds + kRefusedWithinSeconds);
}

INSTANTIATE_TEST_SUITE_P(Programs, RealPrograms,
                         testing::Combine(testing::ValuesIn(kPrograms), testing::ValuesIn(kLaunches)),
                         [](const auto& test) {
                           return std::string(std::get<0>(test.param).name) + Name(std::get<1>(test.param));
                         });

// --- inside, with every launch
// --------------------------------------------------------------------------------------

class InsideModule : public testing::TestWithParam<Launch> {
 protected:
  void SetUp() override {
    if (SkippedForPrivilege(GetParam())) GTEST_SKIP() << "run_as needs root";
  }
};

INSTANTIATE_TEST_SUITE_P(Launches, InsideModule, testing::ValuesIn(kLaunches),
                         [](const auto& test) { return Name(test.param); });

TEST_P(InsideModule, TheBrokerAnswersAndNoOtherSocketDoes) {
  const TemporaryDirectory places;
  const UnixServer broker(places / "broker.sock"), other(places / "other.sock"),
      abstract("@" + (places / "x").substr(1));
  const Node node(GetParam(), R"(,"broker_socket":")" + (places / "broker.sock") + R"(")");
  const std::vector<std::string> argv = {"/usr/bin/python3",
                                         "-c",
                                         R"(
import errno, socket, sys
for name in sys.argv[1:]:
    with socket.socket(socket.AF_UNIX) as connection:
        try:
            connection.connect(name.replace("@", "\0"))
            hello = connection.recv(64)
            connection.sendall(b"ping")
            print(hello.decode().strip(), connection.recv(64).decode())
        except OSError as error:
            print(errno.errorcode[error.errno])
)",
                                         places / "broker.sock",
                                         places / "other.sock",
                                         "@" + (places / "x").substr(1),
                                         places / "absent.sock"};
  const Outcome inside = node.Inside(argv);
  EXPECT_EQ(inside.out, "hello ping\nEACCES\nECONNREFUSED\nEACCES\n") << inside.err;
  EXPECT_EQ(broker.connections(), 1);
  EXPECT_EQ(broker.received(), "ping");
  EXPECT_EQ(other.connections() + abstract.connections(), 0);
  // The supervisor connects with the module's credentials.
  ASSERT_EQ(broker.peers().size(), 1U);
  EXPECT_EQ(broker.peers()[0].uid, GetParam().identity == Identity::kNobody ? kNobodyUid : ::getuid());
  EXPECT_EQ(node.Denials(), (std::map<std::string, uint64_t>{
                                {"UNIX_NOT_BROKER " + (places / "other.sock") + " EACCES python3", 1},
                                {"UNIX_ABSTRACT @" + (places / "x").substr(1) + " ECONNREFUSED python3", 1},
                                {"UNIX_NOT_BROKER " + (places / "absent.sock") + " EACCES python3", 1}}));

  EXPECT_EQ(node.Outside(argv).out, "hello ping\nhello ping\nhello ping\nENOENT\n");
  EXPECT_EQ(other.connections() + abstract.connections(), 2);
}

// A signal that lands between a call and the supervisor's look at it must not break what programs never retry
// (F-60).
TEST_P(InsideModule, TwoHundredPipelinesComplete) {
  const Node node(GetParam());
  const Outcome done = node.Inside({"/bin/bash", "-c", "for i in {1..200}; do echo abc | cat | cat; done"});
  std::string expected;
  for (int i = 0; i < 200; ++i) expected += "abc\n";
  EXPECT_EQ(done.code, 0) << done.err;
  EXPECT_EQ(done.out, expected);
  EXPECT_TRUE(node.Denials().empty());
}

// ... nor mediated calls that race with the SIGCHLD of a shell's children.
TEST_P(InsideModule, ChildrenThatConnectAreReaped) {
  const Node node(GetParam());
  const Outcome done = node.Inside({"/bin/sh", "-c",
                                    "trap 'seen=yes' CHLD; i=0; while [ $i -lt 40 ]; do "
                                    "curl -sS http://127.0.0.1:$ORIGIN/file.txt & "
                                    "(:) & wait; wait; i=$((i + 1)); done"});
  EXPECT_EQ(done.code, 0) << done.err;
  std::string expected;
  for (int i = 0; i < 40; ++i) expected += std::string(kHello) + "\n";
  EXPECT_EQ(done.out, expected) << done.err;
}

TEST_P(InsideModule, PythonsOwnPlumbingWorks) {
  const Node node(GetParam());
  const Outcome done = node.Inside({"/usr/bin/python3", "-c", R"(
import asyncio, multiprocessing, os, socket, subprocess, sys, threading

# A loop in another thread wakes up (F-18), and one that nobody else knows starts (F-19).
loop = asyncio.new_event_loop()
threading.Thread(target=loop.run_forever, daemon=True).start()
for i in range(200):
    assert asyncio.run_coroutine_threadsafe(asyncio.sleep(0, result=i), loop).result(30) == i
asyncio.run(asyncio.sleep(0))
print("asyncio")

# Every sort of send and receive on a pair, with and without boundaries (F-19).
for kind in socket.SOCK_STREAM, socket.SOCK_SEQPACKET:
    a, b = socket.socketpair(socket.AF_UNIX, kind)
    a.send(b"one")
    assert b.recvfrom(16)[0] == b"one"
    a.sendmsg([b"t", b"wo"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, os.pipe()[0].to_bytes(4, "little"))])
    assert b.recvmsg(16, 64)[0] == b"two"
print("pairs")

async def programs():
    child = await asyncio.create_subprocess_exec("cat", stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert (await child.communicate(b"through")) == (b"through", None)
asyncio.run(programs())
assert subprocess.run("exit 42", shell=True).returncode == 42
assert subprocess.run(["sh", "-c", "kill -SEGV $$"]).returncode == -11
print("subprocess")

for method in "fork", "spawn":
    child = multiprocessing.get_context(method).Process(target=sys.exit, args=(42,))
    child.start()
    child.join()
    assert child.exitcode == 42, (method, child.exitcode)
print("multiprocessing")

# What needs /dev/shm says so, instead of hanging.
try:
    multiprocessing.Lock()
except PermissionError:
    print("no shared memory")
)"});
  EXPECT_EQ(done.code, 0) << done.err;
  EXPECT_EQ(done.out, "asyncio\npairs\nsubprocess\nmultiprocessing\nno shared memory\n") << done.err;
  EXPECT_TRUE(node.Denials().empty()) << testing::PrintToString(node.Denials());
}

// F-84: whoever waits for the module learns how it ended.
TEST_P(InsideModule, ExitCodesPassThrough) {
  const Node node(GetParam());
  const auto code = [&](const std::string& script) { return node.Inside({"/bin/sh", "-c", script}).code; };
  EXPECT_EQ(code("kill -SEGV $$"), 139);
  EXPECT_EQ(code("kill -ABRT $$"), 134);
  EXPECT_EQ(code("kill -KILL $$"), 137);
  EXPECT_EQ(code("kill -PIPE $$"), 141);
  EXPECT_EQ(code("exit 42"), 42);
  EXPECT_EQ(code("exit 255"), 255);
  EXPECT_EQ(code("exit 0"), 0);
}

// F-34: clients that look for a proxy in their environment find it under every name, and nothing that sends
// them past it.
TEST_P(InsideModule, TheEnvironmentNamesTheProxy) {
  const Node node(GetParam());
  const Outcome done = node.Inside({"/usr/bin/env"}, {{"NO_PROXY", "localhost,127.0.0.1"},
                                                      {"no_proxy", "*"},
                                                      {"http_proxy", "http://192.0.2.1:1"},
                                                      {"KEPT", "yes"},
                                                      {"OARLOCK_ANYTHING", "launcher's"}});
  const std::string url = "http://127.0.0.1:" + std::to_string(node.proxy().port());
  for (const char* name :
       {"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"})
    EXPECT_NE(("\n" + done.out).find("\n" + std::string(name) + "=" + url + "\n"), std::string::npos)
        << name << done.out;
  EXPECT_NE(done.out.find("NODE_USE_ENV_PROXY=1\n"), std::string::npos) << done.out;
  EXPECT_NE(done.out.find("KEPT=yes\n"), std::string::npos) << done.out;
  for (const char* gone : {"NO_PROXY=", "no_proxy=", "OARLOCK_", "OARBANK_CONFINED", "192.0.2.1"})
    EXPECT_EQ(done.out.find(gone), std::string::npos) << gone << done.out;
}

// --- single cases
// ---------------------------------------------------------------------------------------------------

// F-46, F-47: tools that retry what they take for a passing trouble give up at once under `oarlock run`,
// which says how many refusals there were, on stderr alone.
TEST(RunVerb, WgetTriesOnceAndTheFooterCounts) {
  const Node node({Verb::kRun, Identity::kRoot});
  const Outcome done = node.Inside({"/usr/bin/wget", "--no-proxy", "-O", "-",
                                    "http://127.0.0.1:" + std::to_string(node.forbidden().port()) + "/"});
  EXPECT_EQ(done.code, 4) << done.err;
  EXPECT_EQ(done.out, "");
  EXPECT_NE(done.err.find("oarlock: 1 refusal, "), std::string::npos) << done.err;
  EXPECT_EQ(node.Denials().size(), 1U);
  EXPECT_EQ(node.forbidden().connections(), 0);

  const Outcome quiet = node.Inside({"/bin/true"});
  EXPECT_EQ(quiet.err, "");  // nothing refused, nothing said
}

// The one-line use, with options instead of a policy file.
TEST(RunVerb, OptionsMakeThePolicy) {
  const Node node({Verb::kRun, Identity::kRoot});
  const TemporaryDirectory places;
  const UnixServer broker(places / "broker.sock");
  ProcessOptions options;
  options.argv = {OarlockPath(),
                  "run",
                  "--quiet",
                  "--proxy-port",
                  std::to_string(node.proxy().port()),
                  "--rw",
                  node.work(),
                  "--broker",
                  places / "broker.sock",
                  "--",
                  "bash",
                  "-c",
                  "curl -sS http://127.0.0.1:$ORIGIN/file.txt > \"$WORK/file\" && cat \"$WORK/file\"; "
                  "echo $OARBANK_BROKER; curl --noproxy '*' -sS http://127.0.0.1:$ORIGIN/file.txt; echo $?"};
  options.environment = {{"ORIGIN", std::to_string(node.origin().port())},
                         {"WORK", node.work()},
                         {"XDG_STATE_HOME", places / "state"}};
  options.directory = node.work();
  options.timeout = std::chrono::seconds(60);
  const Outcome done = RunProcess(options);
  EXPECT_EQ(done.out, std::string(kHello) + "\nunix:" + (places / "broker.sock") + "\n7\n") << done.err;
  EXPECT_EQ(done.err.find("oarlock:"), std::string::npos) << done.err;  // --quiet
}

// F-40: resolv.conf is often a link out of /etc, where Landlock judges the target. The rule follows it to
// that one file.
TEST(BaseSystem, AResolverConfigurationElsewhereIsReadable) {
  if (::getuid() != 0) GTEST_SKIP() << "a mount namespace needs root";
  const TemporaryDirectory places;
  (void)places.MakeDirectory("resolve");
  (void)places.WriteFile("resolve/stub.conf", "nameserver 192.0.2.53\n");
  (void)places.WriteFile("resolve/secret", "not granted\n");
  const Sandbox sandbox;
  const auto in_namespace = [&](const std::string& link, const std::string& command) {
    // A copy of /etc with the link in it, mounted over /etc for this launch alone.
    ProcessOptions options = sandbox.Options({"/bin/sh", "-c", command});
    options.argv.insert(
        options.argv.begin(),
        {"/usr/bin/unshare", "-m", "/bin/sh", "-c",
         "set -e; etc=$1; link=$2; shift 2; rm -rf $etc; cp -a /etc $etc; rm -f $etc/resolv.conf; "
         "ln -s $link $etc/resolv.conf; mount --bind $etc /etc; exec \"$@\"",
         "sh", places / "etc", link});
    return RunProcess(options);
  };
  const std::string commands =
      "cat /etc/resolv.conf; cat " + (places / "resolve/secret") + "; ls " + (places / "resolve");
  const Outcome followed = in_namespace(places / "resolve/stub.conf", commands);
  EXPECT_EQ(followed.out, "nameserver 192.0.2.53\n") << followed.err;
  EXPECT_NE(followed.err.find("secret: Permission denied"), std::string::npos) << followed.err;
  EXPECT_NE(followed.code, 0);
  // A link to nowhere is not worth a launch.
  EXPECT_EQ(in_namespace(places / "resolve/absent.conf", "echo started").out, "started\n");
}

}  // namespace
}  // namespace oarlock::test
