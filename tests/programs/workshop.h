// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "tests/live/programs_proxy.h"
#include "tests/support/sandbox.h"
#include "tests/support/servers.h"

namespace oarlock::test {

inline constexpr uid_t kNobodyUid = 65534;
inline constexpr const char* kHello = "hello from the origin";

// As whom the module runs. Root starts it either way; the other one by run_as.
enum class Identity : uint8_t { kRoot, kNobody };
inline constexpr Identity kIdentities[] = {Identity::kRoot, Identity::kNobody};
[[nodiscard]] inline std::string Name(Identity identity) { return identity == Identity::kRoot ? "AsRoot" : "AsNobody"; }
inline std::ostream& operator<<(std::ostream& out, Identity identity) { return out << Name(identity); }

// A program's workspace, and what stands around it: the agent's proxy, a web server beyond it and one that nobody may reach.
// Scripts find in their environment: ORIGIN and PROXY_PORT (npm takes a PROXY for a URL), WORK (their writable directory, also
// HOME), TMPDIR (in WORK) and ELSEWHERE.
class Workshop {
 public:
  // `data`: a directory of tests/programs/data that is copied into the workspace; its prepare.sh runs at once, outside, with
  // SERVED, the origin's directory. `policy`: further members, each with a comma before it.
  Workshop(Identity identity, const std::string& data, const std::string& policy);

  [[nodiscard]] Outcome Inside(std::vector<std::string> argv, const std::map<std::string, std::string>& more = {}) const;
  // The same with nothing around it, under the same uid.
  [[nodiscard]] Outcome Outside(std::vector<std::string> argv, const std::map<std::string, std::string>& more = {}) const;
  // What Inside starts, for tests that start it themselves.
  [[nodiscard]] ProcessOptions InsideOptions(std::vector<std::string> argv, const std::map<std::string, std::string>& more = {}) const;

  // From the log: "CODE target ERRNO process", or the call's name where there is no target, and how often.
  [[nodiscard]] std::map<std::string, uint64_t> Denials() const;

  [[nodiscard]] Identity identity() const noexcept { return identity_; }
  [[nodiscard]] uid_t uid() const noexcept;
  [[nodiscard]] const TinyProxy& proxy() const noexcept { return proxy_; }
  [[nodiscard]] const Origin& origin() const { return *origin_; }
  [[nodiscard]] const TcpServer& forbidden() const noexcept { return forbidden_; }
  [[nodiscard]] const std::string& work() const noexcept { return work_; }
  // A directory that the module was not granted, although its mode lets everybody in.
  [[nodiscard]] const std::string& elsewhere() const noexcept { return elsewhere_; }

 private:
  [[nodiscard]] std::map<std::string, std::string> Environment() const;

  Identity identity_;
  TemporaryDirectory home_, served_;
  std::string work_, elsewhere_;
  TinyProxy proxy_;
  // It greets as a web server would, so that what gets through to it has really got something.
  TcpServer forbidden_{"127.0.0.1", 0, "HTTP/1.0 200 OK\r\nContent-Length: 10\r\n\r\nforbidden\n"};
  std::optional<Origin> origin_;
  std::optional<Sandbox> sandbox_;
};

}  // namespace oarlock::test
