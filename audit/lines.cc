// SPDX-License-Identifier: Apache-2.0
#include "audit/lines.h"

#include <unistd.h>

#include <cerrno>

namespace oarlock::audit {

long LineReader::Fill() {
  if (start_ > 0) {
    buffer_.erase(0, start_);
    offset_ += start_;
    start_ = 0;
  }
  const size_t held = buffer_.size();
  buffer_.resize(held + chunk_);
  ssize_t got = 0;
  do {
    got = ::pread(fd_, buffer_.data() + held, chunk_, static_cast<off_t>(offset_ + held));
  } while (got < 0 && errno == EINTR);
  const int error = errno;
  buffer_.resize(held + static_cast<size_t>(got > 0 ? got : 0));
  return got < 0 ? -error : got;
}

LineReader::Got LineReader::Next() {
  line_ = {};
  if (look_again_) {
    // What was torn may have been repaired by its writer since, and then be other bytes.
    look_again_ = false;
    offset_ += start_;
    start_ = 0;
    buffer_.clear();
  }
  size_t searched = start_;
  bool too_long = false;
  uint64_t skipped_from = 0;
  for (;;) {
    const size_t newline = buffer_.find('\n', searched);
    if (newline != std::string::npos) {
      line_offset_ = too_long ? skipped_from : offset_ + start_;
      if (!too_long && newline - start_ <= limit_)
        line_ = std::string_view(buffer_).substr(start_, newline - start_);
      const bool passed = too_long || newline - start_ > limit_;
      start_ = newline + 1;
      return passed ? Got::kTooLong : Got::kLine;
    }
    if (buffer_.size() - start_ > limit_) {
      // Only its end is of interest now.
      if (!too_long) skipped_from = offset_ + start_;
      too_long = true;
      offset_ += buffer_.size();
      buffer_.clear();
      start_ = 0;
    }
    searched = buffer_.size() - start_;  // as an offset from the start that Fill moves to
    const long got = Fill();
    if (got < 0) {
      error_ = static_cast<int>(-got);
      return Got::kError;
    }
    if (got > 0) continue;
    if (too_long) {
      // Unfinished and beyond the limit: nothing of it is kept, and it is passed over when it ends.
      offset_ = skipped_from;
      start_ = 0;
      buffer_.clear();
      line_offset_ = skipped_from;
      return Got::kTorn;
    }
    line_offset_ = offset_ + start_;
    look_again_ = true;
    line_ = std::string_view(buffer_).substr(start_);
    return line_.empty() ? Got::kEnd : Got::kTorn;
  }
}

}  // namespace oarlock::audit
