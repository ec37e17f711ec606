// SPDX-License-Identifier: Apache-2.0
// Who may admit a sandbox, and what of one is admitted (spec: admission; E-108, E-109, E-212).
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <thread>

#include "tests/live/admission_support.h"
#include "tests/support/servers.h"

namespace oarlock::test {
namespace {

using Steps = std::vector<std::string>;

// --- wrong messages ----------------------------------------------------------------------------------------

struct WrongSpeech {
  const char* name;
  // From the sample's text to the one that is sent.
  std::function<std::string(std::string)> text;
  // "@S" stands for the admission socket, "@T" for the text's file.
  Steps steps;
  const char* answer;  // that the last "line" must hold
};
std::ostream& operator<<(std::ostream& out, const WrongSpeech& wrong) { return out << wrong.name; }

std::string Same(std::string text) { return text; }
std::function<std::string(std::string)> Changed(const std::function<void(wire::Admission&)>& change) {
  return [change](const std::string&) {
    wire::Admission admission = SampleAdmission();
    change(admission);
    return wire::Encode(admission);
  };
}
std::function<std::string(std::string)> Replaced(const std::string& from, const std::string& to) {
  return [from, to](std::string text) {
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return text.replace(at, from.size(), to);
  };
}
Steps Sending(const std::string& send) {
  return Steps{"connect,@S"} + kConfined + Steps{"text,@T", send, "shut", "line"};
}

std::vector<WrongSpeech> WrongSpeeches() {
  std::vector<WrongSpeech> wrong = {
      // descriptors
      {"NoDescriptor", Same, Sending("send,-"), "1 descriptors are named and 0 came"},
      {"TwoListeners", Same, Sending("send,LL"), "1 descriptors are named and 2 came"},
      {"ThreeDescriptors", Same, Sending("send,Lnn"), "too many descriptors"},
      {"TwentyDescriptors", Same, Sending("send,Lnnnnnnnnnnnnnnnnnnn"), "too many descriptors"},
      {"ManyDescriptors", Same, Sending("send," + std::string(200, 'n')), "too many descriptors"},
      {"ListenerNamedTwice", Changed([](wire::Admission& a) { a.fds = {"seccompFd", "seccompFd"}; }),
       Sending("send,LL"), "exactly once"},
      {"CgroupNamedAndAbsent", Changed([](wire::Admission& a) { a.fds = {"seccompFd", "cgroup"}; }),
       Sending("send,L"), "2 descriptors are named and 1 came"},
      {"OrderIsTheNames", Changed([](wire::Admission& a) { a.fds = {"cgroup", "seccompFd"}; }),
       Sending("send,Ld"), "no seccomp listener"},
      {"UnknownName", Replaced("seccompFd", "notifyFd"), Sending("send,L"), "notifyFd"},
      {"NoneNamed", Replaced("[\"seccompFd\"]", "[]"), Sending("send,-"), "seccompFd"},
      {"DescriptorWithALaterByte", Same,
       Steps{"connect,@S"} + kConfined + Steps{"text,@T", "send,-,0,1", "drain", "send,L,1", "shut", "line"},
       "first byte"},
      {"DescriptorWithTheLastByte", Same,
       Steps{"connect,@S"} + kConfined +
           Steps{"text,@T", "send,-,0,500", "drain", "send,L,500", "shut", "line"},
       "first byte"},
      {"SecondDescriptorLater", Changed([](wire::Admission& a) { a.fds = {"seccompFd", "cgroup"}; }),
       Steps{"connect,@S"} + kConfined + Steps{"text,@T", "send,L,0,1", "drain", "send,d,1", "shut", "line"},
       "first byte"},
      // the text
      {"Empty", Same, Steps{"connect,@S", "shut", "line"}, "not valid JSON"},
      {"Truncated", Same, Sending("send,L,0,200"), "not valid JSON"},
      {"OneByteShort", [](std::string text) { return text.substr(0, text.size() - 1); }, Sending("send,L"),
       "not valid JSON"},
      {"TrailingBytes", [](std::string text) { return text + "{}"; }, Sending("send,L"), "not valid JSON"},
      {"TrailingNul", [](std::string text) { return text + std::string("\0{}", 3); }, Sending("send,L"),
       "not valid JSON"},
      {"NotJson", [](std::string) { return std::string("SELECT * FROM sessions"); }, Sending("send,L"),
       "not valid JSON"},
      {"Binary",
       [](std::string) {
         std::string text;
         for (int i = 0; i < 4096; ++i) text += static_cast<char>(i * 7 + i / 256);
         return text;
       },
       Sending("send,L"), "not valid JSON"},
      {"Zeros", [](std::string) { return std::string(100'000, '\0'); }, Sending("send,L"), "not valid JSON"},
      {"DeeplyNested", [](std::string) { return std::string(100'000, '['); }, Sending("send,L"),
       "nested too deeply"},
      {"OneByteTooLong",
       [](std::string text) { return text + std::string(wire::kMaxMessageBytes + 1 - text.size(), ' '); },
       Sending("send,L"), "128 KiB"},
      {"MuchTooLong", [](std::string) { return std::string(4 << 20, 'x'); }, Sending("send,L"), "128 KiB"},
      {"KeyTwice", Replaced("{", "{\"pid\":1,"), Sending("send,L"), "stands twice"},
      {"KeyTwiceInMetadata", Replaced("\\\"kind\\\"", "\\\"module\\\":\\\"x\\\",\\\"kind\\\""),
       Sending("send,L"), "stands twice"},
      {"OtherVersion", Replaced("\\\"oarlock\\\":1", "\\\"oarlock\\\":2"), Sending("send,L"), "version 2"},
      {"NoVersion", Replaced("\\\"oarlock\\\":1,", ""), Sending("send,L"), "oarlock"},
      {"ExtraKey", Replaced("\\\"kind\\\"", "\\\"root\\\":true,\\\"kind\\\""), Sending("send,L"),
       "unknown key 'root'"},
      {"GrantsName", [](std::string) { return std::string(R"({"fds":["seccompFd"],"metadata":"render"})"); },
       Sending("send,L"), "names a grant"},
      {"NetHost", Replaced("\\\"net\\\":\\\"none\\\"", "\\\"net\\\":\\\"host\\\""), Sending("send,L"),
       "net host"},
      {"PrepareTwice",
       [](std::string text) {
         return std::string(wire::kPrepareLine) + std::string(wire::kPrepareLine) + text;
       },
       Steps{"connect,@S"} + kConfined +
           Steps{"text,@T", "send,-,0,58", "drain", "send,L,58", "shut", "line", "line"},
       "first byte"},
      {"PrepareWithDescriptors", [](std::string text) { return std::string(wire::kPrepareLine) + text; },
       Steps{"connect,@S"} + kConfined + Steps{"text,@T", "send,L", "shut", "line"}, "first byte"},
      // the sender
      {"CredentialsOfAnother", Same,
       Steps{"connect,@S", "nnp", "filter", "text,@T", "sendas,1", "shut", "line"},
       "not of the process that connected"},
      {"SentByAChild", Same,
       Steps{"connect,@S", "fork"} + kConfined + Steps{"text,@T", "send,L", "shut", "line"},
       "not of the process that connected"},
      {"SentByAChildInPart", Same,
       Steps{"connect,@S", "save,1"} + kConfined +
           Steps{"text,@T", "send,L,0,100", "fork", "send,-,100", "shut", "line"},
       "not of the process that connected"},
      // the process
      {"WithoutNoNewPrivs", Same,
       Steps{"connect,@S", "filter", "dropcaps", "text,@T", "send,L", "shut", "line"}, "no_new_privs"},
      {"CapabilitiesLeft", Same, Steps{"connect,@S", "nnp", "filter", "text,@T", "send,L", "shut", "line"},
       "still has capabilities"},
      {"UidsDiffer", Same,
       Steps{"connect,@S", "resgid,1000,1000,1000", "resuid,1000,1000,2000", "nnp", "filter", "text,@T",
             "send,L", "shut", "line"},
       "ids differ"},
      {"RealUidDiffers", Same,
       Steps{"connect,@S", "resuid,2000,1000,1000", "nnp", "filter", "text,@T", "send,L", "shut", "line"},
       "ids differ"},
      {"GidsDiffer", Same,
       Steps{"connect,@S", "resgid,1000,1000,2000", "resuid,1000,1000,1000", "nnp", "filter", "text,@T",
             "send,L", "shut", "line"},
       "ids differ"},
      {"NoFilterOfItsOwn", Same,
       Steps{"connect,@S", "foreignfilter", "dropcaps", "nnp", "text,@T", "send,L", "shut", "line"},
       "no seccomp filter"},
      // the grant
      {"OtherNetworkNamespace", Changed([](wire::Admission& a) {
         a.grant.net = NetMode::kEgressAllowlist;
         a.grant.proxy_port = 3128;
         a.grant.netns_cookie = 0x7fff'ffff'ffff;
       }),
       Sending("send,L"), "network namespace"},
      {"BrokerIsTheAdmissionSocket", Same, {}, "own sockets"},
      {"BrokerIsTheControlSocket", Same, {}, "own sockets"},
      {"BrokerInTheRuntimeDirectory", Changed([](wire::Admission& a) {
         a.grant.broker_name = "/run/x";
         a.grant.broker_resolved = "/run/oarlock/private/1.sock";
       }),
       Sending("send,L"), "runtime directory"},
  };
  for (const auto& [name, letter] :
       {std::pair("Null", 'n'), std::pair("Directory", 'd'), std::pair("Epoll", 'e'), std::pair("Tcp", 't'),
        std::pair("Udp", 'u'), std::pair("Pipe", 'p'), std::pair("SocketPair", 's'),
        std::pair("NamedAlike", 'm')})
    wrong.push_back({name, Same, Sending(std::string("send,") + letter), "no seccomp listener"});
  return wrong;
}

class WrongSpeechTest : public ::testing::TestWithParam<WrongSpeech> {};

TEST_P(WrongSpeechTest, IsRefusedAndHarmsNothing) {
  Node node;
  WrongSpeech wrong = GetParam();
  if (wrong.steps.empty()) {
    wrong.text = Changed([&](wire::Admission& a) {
      a.grant.broker_name = "/run/x";
      a.grant.broker_resolved =
          std::string(wrong.name).find("Control") == std::string::npos ? node.socket() : node.control();
    });
    wrong.steps = Sending("send,L");
  }
  const std::string file = node.Write("message", wrong.text(wire::Encode(SampleAdmission())));
  for (std::string& step : wrong.steps)
    for (const auto& [mark, value] : {std::pair("@S", node.socket()), std::pair("@T", file)})
      if (const size_t at = step.find(mark); at != std::string::npos) step.replace(at, 2, value);
  const Outcome outcome = Speak(wrong.steps);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const size_t last = outcome.out.rfind("line -> ");
  ASSERT_NE(last, std::string::npos) << outcome.out;
  const std::string answer = outcome.out.substr(last + 8);
  EXPECT_NE(answer.find("\"ok\":false"), std::string::npos) << outcome.out;
  EXPECT_NE(answer.find("K_NOTIFY"), std::string::npos) << outcome.out;
  EXPECT_NE(answer.find(wrong.answer), std::string::npos) << outcome.out;
  node.ExpectWell();
}
INSTANTIATE_TEST_SUITE_P(Admission, WrongSpeechTest, ::testing::ValuesIn(WrongSpeeches()),
                         [](const auto& wrong) { return wrong.param.name; });

// --- right ones: the twins ---------------------------------------------------------------------------------

class AdmissionTest : public ::testing::Test {
 protected:
  // A complete right speech.
  static Steps Right(const Node& node, const std::string& file) {
    return Steps{"connect," + node.socket()} + kConfined + Steps{"text," + file, "send,L", "shut", "line"};
  }
  static void ExpectAdmitted(const std::string& answer) {
    EXPECT_NE(answer.find("\"ok\":true"), std::string::npos) << answer;
  }
  static void ExpectRefused(const std::string& answer, const std::string& part) {
    EXPECT_NE(answer.find("\"ok\":false"), std::string::npos) << answer;
    EXPECT_NE(answer.find(part), std::string::npos) << answer;
  }
  // The line that is no other's: "timed" ones hold the time too.
  static std::string LastLine(const Outcome& outcome) {
    const size_t at = outcome.out.rfind("line -> ");
    return at == std::string::npos ? outcome.out : outcome.out.substr(at + 8);
  }
};

TEST_F(AdmissionTest, ARightMessageIsAdmittedInEveryWayOfSendingIt) {
  Node node;
  const std::string good = node.Write("good", SampleAdmission());
  const std::string prepared =
      node.Write("prepared", std::string(wire::kPrepareLine) + wire::Encode(SampleAdmission()));
  wire::Admission with_cgroup = SampleAdmission();
  with_cgroup.fds = {"seccompFd", "cgroup"};
  const std::string two = node.Write("two", with_cgroup);
  std::string exactly = wire::Encode(SampleAdmission());
  exactly += std::string(wire::kMaxMessageBytes - exactly.size(), ' ');
  const std::string longest = node.Write("longest", exactly);
  const std::string connect = "connect," + node.socket();
  for (const Steps& steps : {
           Right(node, good),
           Steps{connect} + kConfined +
               Steps{"text," + good, "send,L,0,1", "drain", "send,-,1", "shut", "line"},
           Steps{connect} + kConfined +
               Steps{"text," + good, "send,L,0,100", "drain", "send,-,100,1", "drain", "send,-,101", "shut",
                     "line"},
           Steps{connect} + kConfined + Steps{"text," + longest, "send,L", "shut", "line"},
           Steps{connect} + kConfined + Steps{"text," + two, "send,Ld", "shut", "line"},
           Steps{connect} + kConfined +
               Steps{"text," + prepared, "send,-,0,29", "timedline", "send,L,29", "shut", "line"},
           Steps{connect} + kConfined +
               Steps{"text," + prepared, "send,-,0,10", "drain", "send,-,10,19", "timedline", "send,L,29",
                     "shut", "line"},
           // Credentials may say what is true.
           Steps{connect} + kConfined + Steps{"text," + good, "sendas", "shut", "line"},
           Steps{connect, "uid,1000", "nnp", "filter", "text," + good, "send,L", "shut", "line"},
       }) {
    const Outcome outcome = Speak(steps);
    ExpectAdmitted(LastLine(outcome));
    if (outcome.out.find("timedline") != std::string::npos)
      EXPECT_NE(outcome.out.find(" 0 {}\n"), std::string::npos) << outcome.out;
  }
  node.ExpectWell();
}

TEST_F(AdmissionTest, OneThatLeavesInTheMiddleHarmsNothing) {
  Node node;
  const std::string good = node.Write("good", SampleAdmission());
  const std::string connect = "connect," + node.socket();
  for (const Steps& steps : {
           Steps{connect},
           Steps{connect, "close"},
           Steps{connect, "shut"},
           Steps{connect, "deaf", "shut"},
           Steps{connect} + kConfined + Steps{"text," + good, "send,L,0,50"},
           Steps{connect} + kConfined + Steps{"text," + good, "send,L"},
           Steps{connect} + kConfined + Steps{"text," + good, "send,L", "close"},
           Steps{connect} + kConfined + Steps{"text," + good, "send,L", "shut"},
           Steps{connect} + kConfined + Steps{"text," + good, "deaf", "send,L", "shut"},
           Steps{connect} + kConfined + Steps{"text," + good, "send,L", "shut", "close", "sleep,50"},
       })
    for (int i = 0; i < 5; ++i) EXPECT_EQ(Speak(steps).code, 0);
  node.ExpectWell();
}

TEST_F(AdmissionTest, OneThatHadGoneBeforeItSpokeIsRefused) {
  Node node;
  const std::string good = node.Write("good", SampleAdmission());
  const Outcome outcome = Speak(Steps{"connectby," + node.socket()} + kConfined +
                                Steps{"text," + good, "send,L", "shut", "line"});
  // By the time it is looked at, or by who sends.
  EXPECT_EQ(outcome.out.find("\"ok\":true"), std::string::npos) << outcome.out;
  node.ExpectWell();
}

TEST_F(AdmissionTest, ASilentPeerHasFiveSeconds) {
  Node node({"--admit-uid", std::to_string(kNobody)});
  // Side by side.
  Process of_a_uid(SpeakerOptions({"uid,65534", "connect," + node.socket(), "timedline"}));
  Process of_a_pid(SpeakerOptions({"pid", "connect," + node.socket(), "timedline"}));
  // One that trickles has no longer.
  const std::string good = node.Write("good", SampleAdmission());
  Steps trickle =
      Steps{"uid,65534", "connect," + node.socket(), "nnp", "filter", "text," + good, "send,L,0,1"};
  for (int i = 1; i < 8; ++i) trickle = trickle + Steps{"sleep,900", "send,-," + std::to_string(i) + ",1"};
  Process trickling(SpeakerOptions(trickle + Steps{"shut", "line"}));
  for (Process* silent : {&of_a_uid, &of_a_pid}) {
    const Outcome outcome = silent->Wait();
    const std::string result = ResultOf(outcome, "timedline");
    EXPECT_NE(result.find("within 5 s"), std::string::npos) << outcome.out;
    const int waited = std::atoi(result.c_str());
    EXPECT_GE(waited, 4900);
    EXPECT_LE(waited, 8000);
  }
  ExpectRefused(LastLine(trickling.Wait()), "within 5 s");
  node.ExpectWell();
}

TEST_F(AdmissionTest, SixteenOfAUidMayBePending) {
  Node node({"--admit-uid", std::to_string(kNobody), "--admit-uid", std::to_string(kSomebody)});
  const std::string many = "many,24," + node.socket();
  ProcessOptions options = SpeakerOptions({"uid,65534", many, "hold"});
  Process crowd(options);
  ASSERT_TRUE(crowd.WaitFor("many,24")) << crowd.out();
  const std::string result = ResultOf(crowd.out(), many);
  EXPECT_TRUE(result.starts_with("0 8 ")) << result;
  EXPECT_NE(result.find("too many admissions pending"), std::string::npos) << result;
  // While they hold what they have: another uid and root are not concerned, and of theirs nobody gets in.
  const std::string good = node.Write("good", SampleAdmission());
  const Steps speech =
      Steps{"connect," + node.socket(), "nnp", "filter", "text," + good, "send,L", "shut", "line"};
  ExpectRefused(LastLine(Speak(Steps{"uid,65534"} + speech)), "too many admissions pending");
  ExpectAdmitted(LastLine(Speak(Steps{"uid,65533"} + speech)));
  node.Launches();
  (void)crowd.Wait();
  EXPECT_TRUE(Eventually(
      [&] { return LastLine(Speak(Steps{"uid,65534"} + speech)).find("\"ok\":true") != std::string::npos; }));
  node.ExpectWell();
}

TEST_F(AdmissionTest, AStrangersFloodDelaysNobody) {
  Node node({"--admit-uid", std::to_string(kNobody)});
  // A uid that may not: the door is open to it, and nothing behind.
  Process flood(SpeakerOptions({"uid,65533", "many,300," + node.socket(), "hold"}));
  ASSERT_TRUE(flood.WaitFor("many,300", std::chrono::seconds(20)));
  EXPECT_TRUE(ResultOf(flood.out(), "many,300," + node.socket()).starts_with("0 300 ")) << flood.out();
  node.Launches();
  (void)flood.Wait();
  node.ExpectWell();
}

// --- who ---------------------------------------------------------------------------------------------------

TEST_F(AdmissionTest, AnotherUidIsRefusedWhereItIsNotNamed) {
  Node node({"--admit-uid", std::to_string(kSomebody)});
  const std::string good = node.Write("good", SampleAdmission());
  const Steps speech =
      Steps{"connect," + node.socket(), "nnp", "filter", "text," + good, "send,L", "shut", "line"};
  const Outcome refused = Speak(Steps{"uid,65534"} + speech);
  EXPECT_EQ(ResultOf(refused, "connect," + node.socket()), "0") << "it can reach the socket";
  ExpectRefused(LastLine(refused), "uid 65534 may not use this supervisor");
  ExpectAdmitted(LastLine(Speak(Steps{"uid,65533"} + speech)));
  // By our own launcher, too.
  Sandbox nobody, somebody;
  nobody.Supervisor(node.socket()).As(kNobody);
  somebody.Supervisor(node.socket()).As(kSomebody);
  const Outcome launched = nobody.Probe({"pid"});
  EXPECT_EQ(launched.code, 70);
  EXPECT_EQ(launched.out, "");
  EXPECT_NE(launched.err.find("K_NOTIFY"), std::string::npos) << launched.err;
  EXPECT_NE(launched.err.find("may not use this supervisor"), std::string::npos) << launched.err;
  EXPECT_EQ(somebody.Probe({"pid"}).code, 0);
  node.ExpectWell();
}

TEST_F(AdmissionTest, WithoutANamedUidTheSocketItselfIsClosed) {
  Node node;
  struct stat status{};
  ASSERT_EQ(::stat(node.socket().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0600U);
  ASSERT_EQ(::stat(node.control().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0600U);
  const Outcome outcome = Speak({"uid,65534", "connect," + node.socket(), "seqpacket," + node.control()});
  EXPECT_EQ(ResultOf(outcome, "connect," + node.socket()), "EACCES");
  EXPECT_EQ(ResultOf(outcome, "seqpacket," + node.control()), "EACCES");
  // Were it not: the question is asked all the same.
  ASSERT_EQ(::chmod(node.socket().c_str(), 0666), 0);
  const std::string good = node.Write("good", SampleAdmission());
  ExpectRefused(LastLine(Speak(Steps{"uid,65534", "connect," + node.socket(), "nnp", "filter", "text," + good,
                                     "send,L", "shut", "line"})),
                "may not use this supervisor");
  node.ExpectWell();
}

TEST_F(AdmissionTest, AGroupsMembersMayAndOthersNot) {
  constexpr const char* kGroup = "54321";
  Node node({"--admit-group", kGroup});
  struct stat status{};
  ASSERT_EQ(::stat(node.socket().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0660U);
  EXPECT_EQ(status.st_gid, 54321U);
  const std::string good = node.Write("good", SampleAdmission());
  const std::string connect = "connect," + node.socket();
  const Steps speech = Steps{"nnp", "filter", "text," + good, "send,L", "shut", "line"};
  // A member by a supplementary group, one by its own gid, and one that left the group behind once it was
  // connected.
  ExpectAdmitted(LastLine(
      Speak(Steps{"groups,54321", "resgid,1000,1000,1000", "resuid,1000,1000,1000", connect} + speech)));
  ExpectAdmitted(LastLine(
      Speak(Steps{"groups", "resgid,54321,54321,54321", "resuid,1000,1000,1000", connect} + speech)));
  EXPECT_EQ(ResultOf(Speak({"uid,1000", connect}), connect), "EACCES");
  ASSERT_EQ(::chmod(node.socket().c_str(), 0666), 0);
  ExpectRefused(LastLine(Speak(Steps{"uid,1000", connect} + speech)), "uid 1000 may not use this supervisor");
  node.ExpectWell();
}

TEST_F(AdmissionTest, ATaskOfALiveSessionIsRefusedWithEveryUid) {
  Node node({"--admit-uid", "1000"});
  const std::string good = node.Write("good", SampleAdmission());
  const std::string connect = "connect," + node.socket();
  const Steps speech = Steps{"text," + good, "send,L", "shut", "line"};
  for (const std::string uid : {"0", "1000"}) {
    SCOPED_TRACE(uid);
    const Steps who = uid == "0" ? Steps{} : Steps{"uid,1000"};
    // Two connections of one process; it is admitted over the first and speaks over the second: the same pid,
    // and the credentials of each message are right.
    const Outcome same = Speak(who + Steps{connect, "save,2", connect, "dropcaps", "nnp", "filter"} + speech +
                               Steps{"load,2"} + speech);
    const size_t first = same.out.find("line -> "), second = same.out.rfind("line -> ");
    ASSERT_NE(first, second) << same.out;
    ExpectAdmitted(same.out.substr(first, second - first));
    ExpectRefused(same.out.substr(second), "is confined by session");
    // A child of it that has a connection of its own making is stopped by its filter; one that it inherited
    // is not its own.
    const Outcome child = Speak(who + Steps{connect, "save,2", connect, "dropcaps", "nnp", "filter"} +
                                speech + Steps{"fork", "reach," + node.socket(), "load,2"} + speech);
    EXPECT_EQ(ResultOf(child, "reach," + node.socket()), "EACCES") << child.out;
    ExpectRefused(LastLine(child), "not of the process that connected");
  }
  node.ExpectWell();
}

// --- a module ----------------------------------------------------------------------------------------------

TEST_F(AdmissionTest, AModuleReachesNeitherSocket) {
  Node node({"--admit-uid", "1000"});
  const TemporaryDirectory directory;
  UnixServer broker(directory / "broker.sock");
  // With a broker, so that there are unix sockets at all.
  Sandbox sandbox("\"broker_socket\":\"" + directory.path() + "/broker.sock\"");
  sandbox.Supervisor(node.socket());
  const std::string admit = "unix," + node.socket(), control = "unixseq," + node.control(),
                    allowed = "unix," + (directory / "broker.sock");
  const std::string roundabout = "unix," + node.directory().path() + "/.." + node.socket().substr(4);
  const Outcome inside = sandbox.Probe({admit, control, roundabout, allowed});
  EXPECT_EQ(inside.code, 0) << inside.err;
  EXPECT_EQ(ResultOf(inside, admit), "EACCES");
  EXPECT_EQ(ResultOf(inside, control), "EACCES");
  EXPECT_EQ(ResultOf(inside, roundabout), "EACCES");
  EXPECT_EQ(ResultOf(inside, allowed), "0 hello");
  // Without the sandbox it gets through to both.
  const Outcome bare = sandbox.ProbeBare({admit, control});
  EXPECT_TRUE(ResultOf(bare, admit).starts_with("0")) << bare.out;
  EXPECT_TRUE(ResultOf(bare, control).starts_with("0")) << bare.out;
  int refused = 0;
  for (const LogLine& line : node.daemon().Log())
    if (line.code == "UNIX_NOT_BROKER" && (line.target == node.socket() || line.target == node.control()))
      ++refused;
  EXPECT_EQ(refused, 2);
  node.ExpectWell();
}

// A descriptor that was connected before the sandbox and handed through it.
class InheritedConnection {
 public:
  InheritedConnection(const std::string& path, int type, int number) : number_(number) {
    address_.sun_family = AF_UNIX;
    std::memcpy(address_.sun_path, path.data(), path.size());
    type_ = type;
  }
  // In the child that will become the launcher and then the module: the pid is its own.
  void Connect() const {
    const int fd = ::socket(AF_UNIX, type_, 0);
    if (fd < 0 || ::connect(fd, reinterpret_cast<const sockaddr*>(&address_), sizeof(address_)) != 0 ||
        ::dup2(fd, number_) < 0)
      ::_exit(123);
    (void)::close(fd);
  }

 private:
  sockaddr_un address_{};
  int type_, number_;
};

TEST_F(AdmissionTest, AModuleWithAConnectionFromBeforeIsRefused) {
  Node node;
  const std::string good = node.Write("good", SampleAdmission());
  Sandbox sandbox("\"keep_fds\":[50,51],\"rd\":[\"" + node.directory().path() + "\"]");
  sandbox.Supervisor(node.socket());
  const InheritedConnection admission(node.socket(), SOCK_STREAM, 50),
      control(node.control(), SOCK_SEQPACKET, 51);
  const Steps words = {"use,51",       "say,{\"oarlock\":1,\"verb\":\"ps\"}",
                       "timedline",    "use,50",
                       "text," + good, "send,-",
                       "shut",         "line"};
  ProcessOptions options = sandbox.Options(Steps{SpeakerPath()} + words);
  options.before_exec = [&] {
    admission.Connect();
    control.Connect();
  };
  const Outcome inside = RunProcess(options);
  EXPECT_EQ(inside.code, 0) << inside.err;
  const std::string asked = ResultOf(inside, "timedline");
  EXPECT_NE(asked.find("is confined by session"), std::string::npos) << inside.out;
  EXPECT_EQ(asked.find("\"ok\":true"), std::string::npos) << inside.out;
  ExpectRefused(ResultOf(inside, "line"), "");

  // The same without a sandbox around it: control answers.
  options = SpeakerOptions(words);
  options.before_exec = [&] {
    admission.Connect();
    control.Connect();
  };
  const Outcome bare = RunProcess(options);
  EXPECT_NE(ResultOf(bare, "timedline").find("\"ok\":true"), std::string::npos) << bare.out;

  // Connected by another process: whatever the module sends shows that it is not that one.
  const UniqueFd stream(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)),
      packets(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  const auto connect = [](int fd, const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.data(), path.size());
    return ::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address));
  };
  ASSERT_EQ(connect(stream.get(), node.socket()), 0);
  ASSERT_EQ(connect(packets.get(), node.control()), 0);
  options = sandbox.Options(Steps{SpeakerPath()} + words);
  options.before_exec = [&] {
    if (::dup2(stream.get(), 50) < 0 || ::dup2(packets.get(), 51) < 0) ::_exit(123);
  };
  const Outcome others = RunProcess(options);
  EXPECT_EQ(others.code, 0) << others.err;
  ExpectRefused(ResultOf(others, "timedline"), "not of the process that connected");
  ExpectRefused(ResultOf(others, "line"), "not of the process that connected");
}

// The broker's name is swapped for one of Oarlock's own sockets once the session runs: the supervisor then
// connects to itself.
TEST_F(AdmissionTest, ASessionWhoseBrokerBecomesOurSocketIsNotBelieved) {
  Node node;
  const std::string broker = node.directory() / "broker.sock";
  for (const bool control : {false, true})
    for (const bool hard : {false, true}) {
      SCOPED_TRACE(std::string(control ? "control" : "admission") +
                   (hard ? ", hard link" : ", symbolic link"));
      wire::Admission admission = SampleAdmission();
      admission.grant.broker_name = admission.grant.broker_resolved = broker;
      const std::string file = node.Write("swap", admission), go = node.directory() / "go.sock";
      Steps steps = Steps{"connect," + node.socket()} + kConfined +
                    Steps{"text," + file, "send,L", "shut", "timedline", "fork"};
      steps = steps + (control ? Steps{"sleep,500", "seqpacket," + broker,
                                       "say,{\"oarlock\":1,\"verb\":\"ps\"}", "line"}
                               : Steps{"sleep,500", "connect," + broker, "send,L", "shut", "line"});
      Process speaker(SpeakerOptions(steps));
      ASSERT_TRUE(speaker.WaitFor("timedline")) << speaker.out();
      EXPECT_NE(speaker.out().find("\"ok\":true"), std::string::npos) << speaker.out();
      const std::string& target = control ? node.control() : node.socket();
      ASSERT_EQ(hard ? ::link(target.c_str(), broker.c_str()) : ::symlink(target.c_str(), broker.c_str()), 0)
          << errno;
      const Outcome outcome = speaker.Wait();
      ExpectRefused(LastLine(outcome), "not of the process that connected");
      ASSERT_EQ(::unlink(broker.c_str()), 0);
    }
  node.ExpectWell();
}

// --- the supervisor's own rights ---------------------------------------------------------------------------

TEST_F(AdmissionTest, AnUnprivilegedSupervisorAdmitsItsOwnUserAlone) {
  const TemporaryDirectory directory;
  const std::string run = directory.MakeDirectory("run", 0755, kNobody, kNobody),
                    log = directory.MakeDirectory("log", 0755, kNobody, kNobody);
  ProcessOptions options;
  options.argv = {OarlockdPath(), "--socket", run + "/admit.sock", "--log", log + "/audit.jsonl"};
  options.uid = kNobody;
  options.timeout = std::chrono::minutes(10);
  Process supervisor(options);
  ASSERT_TRUE(supervisor.WaitFor("ready:")) << supervisor.err();
  const std::string good = directory.WriteFile("good", wire::Encode(SampleAdmission()));
  const Steps speech =
      Steps{"connect," + run + "/admit.sock"} + kConfined + Steps{"text," + good, "send,L", "shut", "line"};
  ExpectAdmitted(LastLine(Speak(Steps{"uid,65534", "dumpable,1"} + speech)));
  // Root may ask, and gets told that this supervisor cannot act for it.
  const std::string root = LastLine(Speak(speech));
  ExpectRefused(root, "");
  EXPECT_TRUE(root.find("CAP_SYS_PTRACE") != std::string::npos ||
              root.find("credentials") != std::string::npos)
      << root;
  // Undumpable, though its own user's: it could not be looked after.
  ExpectRefused(LastLine(Speak(Steps{"uid,65534", "connect," + run + "/admit.sock", "nnp", "filter",
                                     "dumpable,0", "text," + good, "send,L", "shut", "line"})),
                "CAP_SYS_PTRACE");
  EXPECT_TRUE(supervisor.Running());
  supervisor.Signal(SIGTERM);
  EXPECT_EQ(supervisor.Wait().code, 0);
}

// --- listeners that somebody else holds too ----------------------------------------------------------------

// RECV on an empty queue blocks, and O_NONBLOCK does not change that. Who keeps a copy of the listener takes
// a call away between the supervisor's poll and its RECV, again and again.
TEST_F(AdmissionTest, APeerThatTakesItsOwnCallsStallsNobody) {
  Node node({"--admit-uid", std::to_string(kNobody)});
  const std::string good = node.Write("good", SampleAdmission());
  // Once in a while is enough: a RECV that found nothing waits for the next call, and there is none.
  Steps steps = {"uid,65534", "connect," + node.socket(), "nnp", "filter", "text," + good, "send,L", "shut"};
  for (int i = 0; i < 8; ++i) steps.emplace_back("steal");
  Process thief(SpeakerOptions(steps + Steps{"timedline", "drip,40,500"}));
  ASSERT_TRUE(thief.WaitFor("timedline")) << thief.out();
  ASSERT_NE(thief.out().find("\"ok\":true"), std::string::npos) << thief.out();
  // A neighbour is served all the while.
  while (thief.Running()) {
    Sandbox neighbour;
    neighbour.Supervisor(node.socket());
    const Outcome outcome = neighbour.Probe({"socket,2,1"});
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  const Outcome outcome = thief.Wait();
  EXPECT_EQ(ResultOf(outcome, "drip,40,500").find("0 0"), std::string::npos)
      << "nothing was stolen: " << outcome.out;
  node.ExpectWell();
}

// Nobody says that the filter is one of ours. Calls that ours would never ask about are refused like others.
TEST_F(AdmissionTest, APeersOwnFilterMayAskAnything) {
  Node node({"--admit-uid", std::to_string(kNobody)});
  wire::Admission admission = SampleAdmission();
  admission.grant.net = NetMode::kEgressAllowlist;
  admission.grant.proxy_port = FreePort();
  admission.grant.broker_name = admission.grant.broker_resolved = node.directory() / "broker.sock";
  admission.grant.audit_approvals = true;
  const std::string file = node.Write("message", admission);
  for (int seed = 1; seed <= 4; ++seed) {
    const std::string fuzz = "fuzz," + std::to_string(seed) + ",2500";
    const Outcome outcome = Speak({"uid,65534", "connect," + node.socket(), "nnp", "text," + file,
                                   "filterall", "send,L", "shut", "line", fuzz});
    ExpectAdmitted(LastLine(outcome));
    EXPECT_TRUE(ResultOf(outcome, fuzz).starts_with("0 2")) << outcome.out;
    ASSERT_TRUE(node.daemon().process().Running()) << node.daemon().process().Wait().err;
  }
  node.ExpectWell();
}

// Overload slows whom it is of: one user's sandboxes whose broker hangs must not use up what others need.
TEST_F(AdmissionTest, OneUidsWaitingCallsLeaveRoomForOthers) {
  Node node({"--admit-uid", std::to_string(kNobody)});
  const TemporaryDirectory directory;
  const std::string path = directory / "hangs.sock";
  UnixServer hangs(path, SOCK_STREAM, 0666, false, 0);
  wire::Admission admission = SampleAdmission();
  admission.grant.broker_name = admission.grant.broker_resolved = path;
  const std::string file = node.Write("message", admission);
  std::vector<std::unique_ptr<Process>> crowd;
  for (int i = 0; i < 18; ++i) {
    crowd.push_back(std::make_unique<Process>(
        SpeakerOptions({"uid,65534", "connect," + node.socket(), "nnp", "filter", "text," + file, "send,L",
                        "shut", "timedline", "crowd,256," + path, "hold"})));
    ASSERT_TRUE(crowd.back()->WaitFor("timedline")) << i;
    ASSERT_NE(crowd.back()->out().find("\"ok\":true"), std::string::npos) << crowd.back()->out();
  }
  for (const auto& each : crowd) ASSERT_TRUE(each->WaitFor("crowd,256", std::chrono::seconds(30)));
  ASSERT_TRUE(node.daemon().process().Running()) << node.daemon().process().Wait().err;
  for (int i = 0; i < 3; ++i) node.Launches();
  for (const auto& each : crowd) each->Signal(SIGKILL);
  crowd.clear();
  node.ExpectWell(std::chrono::seconds(30));
}

// --- what lingers (E-212) ----------------------------------------------------------------------------------

TEST_F(AdmissionTest, ARefusedPeersLingeringSocketDelaysNobody) {
  Node node({"--admit-uid", std::to_string(kNobody)});
  // Each close of one of these takes eight seconds. One of a uid that may not, one of a uid that may, one of
  // root that stays silent; and one to the control socket.
  const std::string bytes = node.Write("x", "x");
  for (const Steps& steps : {
           Steps{"uid,65533", "connect," + node.socket(), "text," + bytes, "send,w"},
           Steps{"uid,65534", "connect," + node.socket(), "text," + bytes, "send,w", "shut"},
           Steps{"uid,65534", "connect," + node.socket(), "text," + bytes, "send,wwwww"},
           Steps{"seqpacket," + node.control(), "text," + bytes, "send,w"},
       }) {
    node.daemon().process().Signal(SIGSTOP);
    Process peer(SpeakerOptions(steps + Steps{"hold"}));
    EXPECT_TRUE(peer.WaitFor("send,")) << peer.out();
    node.daemon().process().Signal(SIGCONT);
    node.Launches();  // its launcher waits five seconds for the answer, no longer
  }
  node.ExpectWell(std::chrono::seconds(90));
}

// How long a close waits is the peer's choice, and an hour is one. It may cost the supervisor that one
// descriptor, but not those of all who come after.
TEST_F(AdmissionTest, ASocketThatLingersForAnHourHoldsNothingBack) {
  for (const char* who : {"uid,65533", "uid,65534"}) {
    SCOPED_TRACE(who);
    Node node({"--admit-uid", std::to_string(kNobody)});
    const size_t before = node.daemon().Descriptors();
    const std::string bytes = node.Write("x", "x");
    // Sent before the supervisor looks who it is. The other end of the lingering connection stays, and never
    // reads.
    node.daemon().process().Signal(SIGSTOP);
    Process lingering(
        SpeakerOptions({who, "connect," + node.socket(), "text," + bytes, "send,W", "shut", "hold"}));
    ASSERT_TRUE(lingering.WaitFor("shut ->")) << lingering.out();
    node.daemon().process().Signal(SIGCONT);
    for (int i = 0; i < 10; ++i) node.Launches();
    EXPECT_TRUE(Eventually([&] { return node.daemon().Descriptors() <= before + 3; }))
        << node.daemon().Descriptors() << " descriptors, " << before << " before";
    // Nor does it keep the supervisor from ending.
    node.daemon().process().Signal(SIGTERM);
    EXPECT_TRUE(Eventually([&] { return !node.daemon().process().Running(); }));
  }
}

// --- the operator's ceiling --------------------------------------------------------------------------------

class CeilingTest : public AdmissionTest {
 protected:
  CeilingTest() {
    allowed_ = files_.MakeDirectory("allowed");
    other_ = files_.MakeDirectory("other");
    EXPECT_EQ(::symlink(allowed_.c_str(), (files_ / "alias").c_str()), 0);
    max_ = files_.WriteFile("max.json",
                            R"({"uids":[65534],"net":"egress-allowlist",)"
                            R"("proxy":[{"addr":"127.0.0.1","ports":[3128,3130]}],"broker_dirs":[")" +
                                allowed_ + "\"]}");
  }
  static void ExpectLaunched(const Outcome& outcome) {
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_TRUE(outcome.out.starts_with("pid -> 0")) << outcome.out;
  }
  static void ExpectHeld(const Outcome& outcome, const std::string& part) {
    EXPECT_EQ(outcome.code, 70) << outcome.err;
    EXPECT_EQ(outcome.out, "");
    EXPECT_TRUE(outcome.err.starts_with("sandbox launch: K_NOTIFY ")) << outcome.err;
    EXPECT_NE(outcome.err.find(part), std::string::npos) << outcome.err;
    EXPECT_EQ(std::ranges::count(outcome.err, '\n'), 1) << outcome.err;
  }
  [[nodiscard]] Steps Arguments(const std::string& max = "") const {
    return {"--admit-uid", std::to_string(kNobody), "--admit-uid", std::to_string(kSomebody),
            "--max-grant", max.empty() ? max_ : max};
  }
  static std::string Proxy(int port, const char* address = "127.0.0.1") {
    return "\"net\":\"egress-allowlist\",\"proxy_addr\":\"" + std::string(address) +
           "\",\"proxy_port\":" + std::to_string(port);
  }
  static std::string Broker(const std::string& path) { return "\"broker_socket\":\"" + path + "\""; }
  TemporaryDirectory files_;
  std::string allowed_, other_, max_;
};

TEST_F(CeilingTest, NoGrantExceedsIt) {
  Daemon daemon(Arguments());
  UnixServer inside(allowed_ + "/b.sock"), outside(other_ + "/b.sock"), above(files_ / "b.sock");
  (void)files_.MakeDirectory("allowed/deeper");
  UnixServer deeper(allowed_ + "/deeper/b.sock");
  const auto launch = [&](const std::string& policy, uid_t uid = kNobody) {
    Sandbox sandbox(policy);
    sandbox.Supervisor(daemon.socket()).As(uid);
    return sandbox.Probe({"pid"});
  };
  ExpectLaunched(launch(""));
  ExpectHeld(launch("", kSomebody), "uid 65533");
  ExpectLaunched(launch(Proxy(3128)));
  ExpectLaunched(launch(Proxy(3130)));
  ExpectHeld(launch(Proxy(3127)), "proxy port 3127");
  ExpectHeld(launch(Proxy(3131)), "proxy port 3131");
  ExpectHeld(launch(Proxy(3128, "::1")), "proxy port 3128");
  ExpectLaunched(launch(Broker(allowed_ + "/b.sock")));
  ExpectHeld(launch(Broker(other_ + "/b.sock")), "broker's directory");
  ExpectHeld(launch(Broker(files_ / "b.sock")), "broker's directory");
  ExpectHeld(launch(Broker(allowed_ + "/deeper/b.sock")), "broker's directory");
  ExpectLaunched(launch(Broker(files_ / "alias/b.sock")));
  ExpectLaunched(launch(Proxy(3129) + "," + Broker(allowed_ + "/b.sock")));
  EXPECT_TRUE(daemon.process().Running());
}

TEST_F(CeilingTest, RootIsHeldToItToo) {
  // The uid of the module counts, not that of who admits it.
  Daemon daemon(Arguments());
  Sandbox as_root, as_nobody("\"run_as\":{\"uid\":65534,\"gid\":65534}");
  as_root.Supervisor(daemon.socket());
  as_nobody.Supervisor(daemon.socket());
  ExpectHeld(as_root.Probe({"pid"}), "uid 0");
  const Outcome outcome = as_nobody.Probe({"uid"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "uid -> 0 65534 65534\n");
}

TEST_F(CeilingTest, WithoutNetNoProxy) {
  Daemon daemon(Arguments(
      files_.WriteFile("none.json", R"({"uids":[65534],"proxy":[{"addr":"127.0.0.1","ports":[1,65535]}]})")));
  Sandbox none, proxy(Proxy(3128));
  none.Supervisor(daemon.socket()).As(kNobody);
  proxy.Supervisor(daemon.socket()).As(kNobody);
  ExpectLaunched(none.Probe({"pid"}));
  ExpectHeld(proxy.Probe({"pid"}), "net egress-allowlist exceeds the operator's none");
}

TEST_F(CeilingTest, AnEmptyOneAllowsNothing) {
  Daemon daemon(Arguments(files_.WriteFile("empty.json", "{}")));
  Sandbox sandbox;
  sandbox.Supervisor(daemon.socket()).As(kNobody);
  ExpectHeld(sandbox.Probe({"pid"}), "uid 65534");
}

// Messages of a launcher that is not ours: a directory is known by what it is, not by its name.
TEST_F(CeilingTest, AnAliasOfADirectoryIsThatDirectory) {
  Daemon daemon(Arguments());
  UnixServer broker(allowed_ + "/b.sock");
  const auto speak = [&](const std::string& resolved) {
    wire::Admission admission = SampleAdmission();
    admission.grant.broker_name = admission.grant.broker_resolved = resolved;
    const std::string file = files_.WriteFile("message", wire::Encode(admission));
    return LastLine(Speak({"uid,65534", "connect," + daemon.socket(), "nnp", "filter", "text," + file,
                           "send,L", "shut", "line"}));
  };
  ExpectAdmitted(speak(allowed_ + "/b.sock"));
  ExpectAdmitted(speak(files_ / "alias/b.sock"));
  ExpectAdmitted(speak(files_ / "other/../allowed/b.sock"));
  ExpectRefused(speak(other_ + "/b.sock"), "broker's directory");
  ExpectRefused(speak(files_ / "alias/../other/b.sock"), "broker's directory");
  ExpectRefused(speak(files_ / "missing/b.sock"), "broker's directory");
}

// ... and stays that directory: an alias that is turned elsewhere afterwards must not carry the session with
// it (G7).
TEST_F(CeilingTest, AnAliasThatIsTurnedAfterwardsLeadsNowhere) {
  Daemon daemon(Arguments());
  UnixServer allowed(allowed_ + "/b.sock"), other(other_ + "/b.sock");
  const std::string alias = files_ / "turning", broker = alias + "/b.sock";
  ASSERT_EQ(::symlink(allowed_.c_str(), alias.c_str()), 0);
  wire::Admission admission = SampleAdmission();
  admission.grant.broker_name = admission.grant.broker_resolved = broker;
  const std::string file = files_.WriteFile("message", wire::Encode(admission));
  const std::string reach = "reach," + broker;
  // The proof of a mediated connect is in the child: the speaker itself must not be held up.
  Process speaker(SpeakerOptions({"uid,65534", "connect," + daemon.socket(), "nnp", "filter", "text," + file,
                                  "send,L", "shut", "timedline", reach, "hold", reach}));
  ASSERT_TRUE(speaker.WaitFor(reach)) << speaker.out();
  ASSERT_NE(speaker.out().find("\"ok\":true"), std::string::npos) << speaker.out();
  ASSERT_EQ(ResultOf(speaker.out(), reach), "0") << speaker.out();
  ASSERT_EQ(allowed.connections(), 1);
  ASSERT_EQ(::unlink(alias.c_str()), 0);
  ASSERT_EQ(::symlink(other_.c_str(), alias.c_str()), 0);
  const Outcome outcome = speaker.Wait();
  EXPECT_NE(outcome.out.find("hold -> 0"), std::string::npos) << outcome.out;
  EXPECT_EQ(other.connections(), 0) << "a broker that the operator does not allow was reached: "
                                    << outcome.out;
}

}  // namespace
}  // namespace oarlock::test
