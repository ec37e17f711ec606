// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "tests/support/process.h"
#include "tests/support/temporary.h"

// What stands around a module on a node, outside the sandbox and made of other people's programs: the agent's
// egress proxy (tinyproxy) and a web server beyond it (Python's).
namespace oarlock::test {

// tinyproxy on a free port of 127.0.0.1, with a configuration of its own and no privileges.
class TinyProxy {
 public:
  TinyProxy();
  [[nodiscard]] uint16_t port() const noexcept { return port_; }
  // Every request that it took, as its log says them.
  [[nodiscard]] int Requests() const;

 private:
  TemporaryDirectory directory_;
  uint16_t port_ = 0;
  std::unique_ptr<Process> process_;
};

// Serves a directory on a free port of 127.0.0.1, and counts who came.
class Origin {
 public:
  explicit Origin(const std::string& served);
  [[nodiscard]] uint16_t port() const noexcept { return port_; }
  [[nodiscard]] int Requests() const;

 private:
  TemporaryDirectory directory_;
  uint16_t port_ = 0;
  std::unique_ptr<Process> process_;
};

// A bare git repository "repo.git" in `directory`, with one commit that holds hello.txt, ready to be cloned
// from a server that knows nothing of git.
void MakeRepository(const std::string& directory, const std::string& hello);

}  // namespace oarlock::test
