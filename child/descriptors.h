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

// A pipe or a terminal gets an open file description of its own, so that flags which the module sets (O_NONBLOCK, O_ASYNC) are not
// those of whoever holds it outside (E-201). Where that is not permitted it stays shared.
void OwnDescription(int fd);

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
