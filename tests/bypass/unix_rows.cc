// SPDX-License-Identifier: Apache-2.0
// C. Sockets of AF_UNIX, and what the supervisor's handling of sockets can be made to wait for.
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <filesystem>

#include "tests/bypass/inside.h"
#include "tests/bypass/outside.h"

namespace bypass {
namespace {

// One end of a pair that nobody had to ask for.
long PairOf(long type) {
  int pair[2] = {-1, -1};
  const long result = Raw(SYS_socketpair, AF_UNIX, type, 0, Of(pair));
  return result < 0 ? result : pair[0];
}

// A unix address of exactly these bytes behind the family.
Address Exactly(const std::string& bytes) {
  Address address;
  address.storage.ss_family = AF_UNIX;
  std::memcpy(reinterpret_cast<char*>(&address.storage) + 2, bytes.data(), std::min(bytes.size(), sizeof(address.storage) - 2));
  address.size = static_cast<socklen_t>(2 + bytes.size());
  return address;
}

std::string ComeTo(Outside& outside, const std::string& question) {
  const size_t space = question.find(' ');
  if (!outside.CanConnect(question.substr(space + 1))) return "no";
  outside.Note(question.substr(0, space));
  return "yes";
}

constexpr Row kRows[] = {
    {.id = "E-50", .what = "connect to a path outside every rule",
     .inside = [](Inside& in) {
       in.To("stream", in.Text("stream"));
       in.To("seqpacket", in.Text("packets"), 0, SOCK_SEQPACKET);
     }},
    {.id = "E-51", .what = "a datagram pair sends to a path: no socket, no connect",
     .inside = [](Inside& in) {
       const Address to = MakeAddress(in.Text("datagram"));
       for (const char* how : {"sendto", "sendmsg", "sendmmsg"}) in.SendTo(how, PairOf(SOCK_DGRAM), to, how);
       in.ConnectAndSend("connect", PairOf(SOCK_DGRAM), to);
       in.SendTo("socket", Socket(AF_UNIX, SOCK_DGRAM), to);
     }},
    {.id = "E-52", .what = "SOCK_RAW of AF_UNIX becomes a datagram socket",
     .inside = [](Inside& in) {
       const Address to = MakeAddress(in.Text("datagram"));
       in.SendTo("pair", PairOf(SOCK_RAW), to);
       in.SendTo("socket", Socket(AF_UNIX, SOCK_RAW), to);
     }},
    {.id = "E-53", .what = "SEQPACKET and STREAM pairs with a name in the send",
     .inside = [](Inside& in) {
       in.Maybe().SendTo("seqpacket", PairOf(SOCK_SEQPACKET), MakeAddress(in.Text("packets")));
       in.Maybe().SendTo("stream", PairOf(SOCK_STREAM), MakeAddress(in.Text("stream")));
       in.Maybe().SendTo("unconnected", Socket(AF_UNIX, SOCK_SEQPACKET), MakeAddress(in.Text("packets")));
     }},
    {.id = "E-54", .what = "abstract names",
     .inside = [](Inside& in) {
       in.To("stream", in.Text("abstract"));
       in.SendTo("sendto", PairOf(SOCK_DGRAM), MakeAddress(in.Text("abstract_datagram")));
       in.ConnectAndSend("connect", PairOf(SOCK_DGRAM), MakeAddress(in.Text("abstract_datagram")));
     }},
    {.id = "E-55", .what = "unix sockets that were connected before the confinement",
     .inside = [](Inside& in) {
       in.Arrives("stream", SendText(kFdUnix, in.Payload("stream")));
       in.Arrives("datagram", SendText(kFdDatagram, in.Payload("datagram")));
       in.SendTo("named", kFdDatagram, MakeAddress(in.Text("abstract_datagram")));
     }},
    {.id = "E-56", .what = "the module binds a name that clients outside may come to",
     .inside = [](Inside& in) {
       const auto serve = [&](const std::string& part, const std::string& name, bool automatic = false) {
         const long fd = Socket(AF_UNIX, SOCK_STREAM);
         Address address = automatic ? Exactly("") : MakeAddress(name);
         long result = fd < 0 ? fd : Raw(SYS_bind, fd, Of(address.get()), address.size);
         if (result == 0) result = Raw(SYS_listen, fd, 1);
         std::string bound = name;
         if (result == 0 && automatic) {
           Address own;
           unsigned size = sizeof(own.storage);
           (void)Raw(SYS_getsockname, fd, Of(own.get()), Of(&size));
           bound = "@" + std::string(reinterpret_cast<sockaddr_un*>(own.get())->sun_path + 1, size - 3);
         }
         if (result == 0) (void)in.Ask(part + " " + bound);
         (void)Raw(SYS_close, fd);
         in.Judged(part, result);
       };
       serve("work", in.Text("work") + "/served.sock");
       serve("outside", in.Text("outside") + "/served.sock");
       serve("abstract", "@oarlock-bypass-served-" + in.Text("victim"));
       serve("automatic", "", true);
     },
     .answer = ComeTo,
     .clean = [](Outside& outside) { (void)unlink((outside.Text("outside") + "/served.sock").c_str()); }},
    {.id = "E-57", .what = "twelve other names of a socket's path",
     .inside = [](Inside& in) {
       const std::string path = in.Text("stream"), directory = in.Text("outside"), work = in.Text("work");
       const std::string name = "stream.sock";
       (void)symlink(path.c_str(), (work + "/link").c_str());
       (void)symlink(directory.c_str(), (work + "/linked").c_str());
       const long file = Open(path, O_PATH), folder = Open(directory, O_PATH | O_DIRECTORY);
       in.To("symlink", work + "/link");
       in.To("directory-symlink", work + "/linked/" + name);
       in.To("dots", directory + "/../outside/" + name);
       in.To("slashes", directory + "//" + name);
       in.To("dot", directory + "/./" + name);
       in.To("root", "/proc/self/root" + path);
       in.To("thread-root", "/proc/thread-self/root" + path);
       in.To("fd", "/proc/self/fd/" + std::to_string(file));
       in.To("directory-fd", "/proc/self/fd/" + std::to_string(folder) + "/" + name);
       in.To("dev-fd", "/dev/fd/" + std::to_string(file));
       const long moved = Raw(SYS_chdir, Of(directory.c_str()));
       Address relative = Exactly(name + std::string(1, '\0'));
       in.ConnectAndSend("relative", moved < 0 ? moved : Socket(AF_UNIX, SOCK_STREAM), relative);
       in.To("cwd", "/proc/self/cwd/" + name);
     }},
    {.id = "E-58", .what = "where the path's string ends: without NUL, with junk behind it, at full length",
     .inside = [](Inside& in) {
       const std::string path = in.Text("stream"), zero(1, '\0');
       in.ConnectAndSend("no-nul", Socket(AF_UNIX, SOCK_STREAM), Exactly(path));
       in.ConnectAndSend("junk", Socket(AF_UNIX, SOCK_STREAM), Exactly(path + zero + in.Text("broker")));
       std::string full = path;
       full.insert(0, std::string(108 - path.size(), '/'));
       in.ConnectAndSend("full", Socket(AF_UNIX, SOCK_STREAM), Exactly(full));
       in.Maybe().ConnectAndSend("too-long", Socket(AF_UNIX, SOCK_STREAM), Exactly("/" + full));
       in.Maybe().ConnectAndSend("empty", Socket(AF_UNIX, SOCK_STREAM), Exactly(""));
       // The broker's name in front, as a comparison of the first bytes alone would want it.
       in.Maybe().ConnectAndSend("prefix", Socket(AF_UNIX, SOCK_STREAM), Exactly(in.Text("broker") + "/../../outside/stream.sock"));
     }},
    {.id = "E-59", .what = "the module puts a link to another socket in the broker's place",
     .inside = [](Inside& in) {
       const std::string broker = in.Text("broker"), aside = broker + ".aside";
       const long moved = Raw(SYS_rename, Of(broker.c_str()), Of(aside.c_str()));
       if (moved == 0) (void)symlink(in.Text("stream").c_str(), broker.c_str());
       if (moved < 0) in.Arrives("link", moved);
       else in.To("link", broker);
     },
     .clean = [](Outside& outside) {
       const std::string broker = outside.Text("broker");
       std::error_code ignored;
       if (std::filesystem::exists(broker + ".aside", ignored)) std::filesystem::rename(broker + ".aside", broker, ignored);
     }},
    {.id = "E-60", .what = "the same socket by another mount of its directory",
     .inside = [](Inside& in) { in.To("alias", in.Text("alias") + "/stream.sock"); }},
    {.id = "E-61", .what = "a datagram socket that somebody outside hands over by SCM_RIGHTS",
     .inside = [](Inside& in) {
       const Address to = MakeAddress(in.Text("datagram"));
       in.SendTo("giver-sendto", FromServer(in.Text("giver"), "datagram"), to);
       in.SendTo("giver-sendmsg", FromServer(in.Text("giver"), "datagram"), to, "sendmsg");
       // What the broker hands over is its own to answer for (SECURITY.md): of its socket, what the filter can see of the call.
       in.SendTo("broker-sendto", FromServer(in.Text("broker"), "datagram"), to);
     }},
    {.id = "E-62", .what = "a datagram pair is disconnected by AF_UNSPEC and gets another name",
     .inside = [](Inside& in) {
       const long fd = PairOf(SOCK_DGRAM);
       sockaddr none{};
       if (fd >= 0) (void)Raw(SYS_connect, fd, Of(&none), sizeof(none));
       in.ConnectAndSend("again", fd, MakeAddress(in.Text("datagram")));
     }},
    {.id = "E-63", .what = "a datagram socket connects to a stream's path; a family that is not AF_UNIX",
     .inside = [](Inside& in) {
       in.Maybe().ConnectAndSend("stream", Socket(AF_UNIX, SOCK_DGRAM), MakeAddress(in.Text("stream")));
       Address odd = MakeAddress(in.Text("stream"));
       odd.storage.ss_family = AF_INET;
       in.Maybe().ConnectAndSend("family", Socket(AF_UNIX, SOCK_STREAM), odd);
     }},
    {.id = "E-64", .what = "the look-ups that libc makes at every start",
     .elsewhere = "no way out: noise, which is told apart; ErrnoTest.UnixConnects"},
    {.id = "E-65", .what = "sendmmsg whose first message is harmless and whose second has a name",
     .inside = [](Inside& in) { in.SendTo("second", PairOf(SOCK_DGRAM), MakeAddress(in.Text("datagram")), "second"); }},
    {.id = "E-66", .what = "the supervisor's close of a lingering connection waits",
     .elsewhere = "a delay inside the supervisor, measured there: StallTest.E66_LingeringClose"},
    {.id = "E-67", .what = "the same by any other descriptor that the supervisor holds for a moment",
     .elsewhere = "as E-66: StallTest.E67_LingeringSocketOfTheBroker, StallTest.E67_SocketWhoseQueueHoldsALingeringOne, StalledFileTest.E67_E206_FileWhoseCloseDoesNotEnd"},
    {.id = "E-68", .what = "the supervisor's read waits for the lock of memory that is being forked",
     .elsewhere = "as E-66: StallTest.E68_AddressInMemoryThatIsBeingForked"},
    {.id = "E-69", .what = "a sender that faults holds its socket's lock",
     .elsewhere = "as E-66: StallTest.E69_SocketWhoseLockIsHeld, ReaderTest.E69_E206_SocketWhoseLockIsHeldForGood"},
};

}  // namespace

std::span<const Row> UnixRows() { return kRows; }

}  // namespace bypass
