// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string>

#include "child/step.h"
#include "notif/base/unique_fd.h"
#include "notif/wire.h"

namespace oarlock::child {

// The launcher's side of admission. Connected before confinement, since connect() is a notified call; used after it with calls
// that the filter never notifies: sendmsg without flags, recv, poll, shutdown, close.
class Handover {
 public:
  // To a supervisor's admission socket ("/path"), or over a descriptor that its maker left us ("fd:N").
  [[nodiscard]] static Checked<Handover> Connect(const std::string& supervisor);
  // Starts a private supervisor for this one run: double-forked, so that the module inherits no child that it did not make,
  // from a program beside our own, with an environment of our making. Where its log and its control socket go is told to it:
  // it believes no variable.
  [[nodiscard]] static Checked<Handover> StartPrivate(const std::string& log_directory, const std::string& runtime_directory);

  // The optional first exchange: the supervisor may move us into a cgroup leaf of its making.
  [[nodiscard]] Checked<wire::Prepared> Prepare();
  // Sends the message with the listener and waits for the acknowledgement. The session's id.
  [[nodiscard]] Checked<std::string> Admit(const std::string& message, UniqueFd listener);
  [[nodiscard]] int fd() const noexcept { return socket_.get(); }
  void Close() noexcept {
    socket_.Reset();
    start_.Reset();
  }

 private:
  explicit Handover(UniqueFd socket) : socket_(std::move(socket)) {}
  [[nodiscard]] Checked<std::string> ReadLine();
  [[nodiscard]] std::unexpected<Problem> WriteFailed(int error);
  [[nodiscard]] std::unexpected<Problem> Lost(const std::string& doing, int error);
  UniqueFd socket_;
  // Of a private supervisor until its first answer: what kept it from starting, or nothing, and its end.
  UniqueFd start_;
  std::string program_;
};

// The proof that the supervisor's loop works: one connect() to the random address on a socket made before the filter must
// give ENOANO, within a second. It also proves that the filter is in force. K_NOTIFY.
class LoopProof {
 public:
  [[nodiscard]] static Checked<LoopProof> Make();
  [[nodiscard]] const std::array<uint8_t, wire::kProbeBytes>& probe() const noexcept { return probe_; }
  // `by_length`: where the filter lets every other connect() pass.
  [[nodiscard]] Step Prove(bool by_length);
  [[nodiscard]] int fd() const noexcept { return socket_.get(); }
  void Close() noexcept { socket_.Reset(); }

 private:
  UniqueFd socket_;
  std::array<uint8_t, wire::kProbeBytes> probe_{};
};

}  // namespace oarlock::child
