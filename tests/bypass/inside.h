// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <sys/syscall.h>

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "tests/bypass/bypass.h"

namespace bypass {

using hostile::Address;
using hostile::MakeAddress;
using hostile::Of;
using hostile::Raw;

// What a try has in hand. Results are those of raw calls: a negative errno, or what came out. It reports each part as it goes,
// so that what a killed or hanging try had done until then is known.
class Inside {
 public:
  Inside(std::string id, std::map<std::string, std::string> values) : id_(std::move(id)), values_(std::move(values)) {}

  // What the outside half has told: ports, paths, pids.
  [[nodiscard]] std::string Text(const std::string& key) const;
  [[nodiscard]] long Number(const std::string& key) const;
  [[nodiscard]] int Port(const std::string& key) const { return static_cast<int>(Number(key)); }

  void Arrives(const std::string& part, long result) { Tell(part, Kind::kArrives, result, ""); }
  void Leaks(const std::string& part, long result, const std::string& text) { Tell(part, Kind::kLeaks, result, text); }
  void Judged(const std::string& part, long result) { Tell(part, Kind::kJudged, result, ""); }
  void Reports(const std::string& part, long result) { Tell(part, Kind::kReports, result, ""); }
  // The next part may be beyond this kernel or machine.
  Inside& Maybe() {
    optional_ = true;
    return *this;
  }
  // What a server has to receive for this part.
  [[nodiscard]] std::string Payload(const std::string& part) const { return "<" + id_ + "/" + part + ">"; }
  // Asks the outside half to do or look at something now.
  std::string Ask(const std::string& question);

  // --- steps that many tries share ---
  // A socket of these, connected and the payload sent.
  void To(const std::string& part, const std::string& host, long port = 0, long type = SOCK_STREAM, long protocol = 0);
  void ConnectAndSend(const std::string& part, long fd, Address address);
  // Sends to a name without a connect.
  void SendTo(const std::string& part, long fd, Address address, const std::string& how = "sendto", long flags = 0);
  // A connection to the proxy; a negative errno.
  [[nodiscard]] long Proxy();
  [[nodiscard]] long ProxyBy6();
  // The file's secret.
  void ReadSecret(const std::string& part, const std::string& path);
  void ReadSecretFrom(const std::string& part, long fd);

 private:
  void Tell(const std::string& part, Kind kind, long result, const std::string& leak);
  std::string id_;
  std::map<std::string, std::string> values_;
  bool optional_ = false;
};

[[nodiscard]] inline long Open(const std::string& path, int flags, int mode = 0) {
  return Raw(SYS_openat, AT_FDCWD, Of(path.c_str()), flags | O_CLOEXEC, mode);
}
[[nodiscard]] inline long Socket(long domain, long type, long protocol = 0) { return Raw(SYS_socket, domain, type, protocol); }
inline long SendText(long fd, const std::string& text) {
  return Raw(SYS_sendto, fd, Of(text.data()), static_cast<long>(text.size()), MSG_NOSIGNAL, 0, 0);
}
// Runs `work` in a child and gives its exit code, or minus the signal that ended it.
[[nodiscard]] int InChild(const std::function<int()>& work);
// The child's exit code as a result: 0, or the errno that it ended with.
[[nodiscard]] inline long ResultOfChild(const std::function<long()>& work) {
  const int code = InChild([&] { return static_cast<int>(-work()); });
  return code == 0 ? 0 : code > 0 ? -code : -EINTR;
}

// Passes a descriptor on.
[[nodiscard]] long SendDescriptor(int socket, int fd);
// The descriptor that a server at this path hands out for a word; a negative errno.
[[nodiscard]] long FromServer(const std::string& path, const std::string& word);
// Answers whatever comes to this seccomp listener with "go on".
void AnswerContinue(int listener);

// One line from a descriptor, read byte by byte: others read on from there. False at its end.
bool ReadLine(int fd, std::string* line);
void WriteLine(int fd, const std::string& text);

}  // namespace bypass
