// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "child/step.h"
#include "notif/base/unique_fd.h"

namespace oarlock::child {

// Descriptors 0 to 2 are open, so that none of ours becomes one of them (E-171).
[[nodiscard]] Step EnsureStandardDescriptors();

// Those that the module keeps beside 0 to 2: the policy's list, or what OARBANK_*=fd:<n> names in the environment.
// P_RANGE for one that is closed.
[[nodiscard]] Checked<std::vector<int>> KeptDescriptors(const std::optional<std::vector<int>>& policy, char** environment);

// Only files, pipes, terminals and *connected* stream or seqpacket sockets pass: a datagram socket sends anywhere by name, and
// an inherited ring, listener, namespace or device is a way out by itself (E-02, E-92, E-205). K_UNSUPPORTED.
[[nodiscard]] Step ClassifyDescriptor(int fd, const std::string& pointer);

// Pipes and terminals behind 0 to 2 get an open file description of the module's own, where it may be opened: whoever else holds the
// old one keeps its flags, whatever the module does to its own (E-201). Access, O_APPEND, O_NONBLOCK and a pipe's packets stay, and
// what was one description to two numbers stays one. Regular files stay as they are, for their common offset; sockets cannot be
// opened anew. After the classification and before the identity changes.
[[nodiscard]] Step OwnStandardDescriptions();

// Closes everything above 2 but `kept` (sorted), by close_range.
[[nodiscard]] Step CloseOthers(const std::vector<int>& kept);

// A look at one's own descriptor table that still works inside the sandbox: opened before, read after (E-115).
class DescriptorTable {
 public:
  [[nodiscard]] static Checked<DescriptorTable> Open();
  // The numbers that are open now, but for this object's own.
  [[nodiscard]] Checked<std::vector<int>> List();

 private:
  explicit DescriptorTable(UniqueFd fd) : fd_(std::move(fd)) {}
  UniqueFd fd_;
};

}  // namespace oarlock::child
