// SPDX-License-Identifier: Apache-2.0
#include "tests/support/daemon.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>

#include "notif/base/check.h"

namespace oarlock::test {

Daemon::Daemon(std::vector<std::string> more_arguments) {
  (void)directory_.MakeDirectory("run", 0755);
  (void)directory_.MakeDirectory("log", 0755);
  ProcessOptions options;
  options.argv = {OarlockdPath(), "--socket", socket(), "--control", control(), "--log", log_path()};
  options.argv.insert(options.argv.end(), more_arguments.begin(), more_arguments.end());
  options.timeout = std::chrono::hours(1);
  process_ = std::make_unique<Process>(options);
  EXPECT_TRUE(process_->WaitFor("ready:")) << process_->err();
}

Daemon::~Daemon() { Stop(); }

void Daemon::Stop() {
  if (!process_->Running()) return;
  process_->Signal(SIGTERM);
  if (!Eventually([&] { return !process_->Running(); }, std::chrono::seconds(10))) process_->Signal(SIGKILL);
  (void)process_->Wait();
}

size_t Daemon::Descriptors() const {
  size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/" + std::to_string(pid()) + "/fd")) ++count;
  return count;
}

}  // namespace oarlock::test
