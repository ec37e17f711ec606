// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "audit/limits.h"

namespace oarlock::audit {

// The lines of a file that may be growing, in memory that does not grow with it: one line and one read.
// Borrows the descriptor and reads by offset, so that nothing is shared with other users of it. One thread.
class LineReader {
 public:
  enum class Got : uint8_t {
    kLine,
    kTooLong,  // a line of more than `limit` bytes was passed over; `line` is empty
    kTorn,  // the end, without a newline: `line` is what is there. The next call looks again from this line's
            // start
    kEnd,   // likewise, with nothing behind the last newline
    kError,  // `error` says which
  };

  explicit LineReader(int fd, size_t limit = kMaxReadLineBytes, uint64_t offset = 0,
                      size_t chunk = kReadChunkBytes)
      : fd_(fd), limit_(limit), chunk_(chunk), offset_(offset) {}

  [[nodiscard]] Got Next();
  // Of the last Next, until the next one; without the newline.
  [[nodiscard]] std::string_view line() const noexcept { return line_; }
  [[nodiscard]] uint64_t line_offset() const noexcept { return line_offset_; }
  [[nodiscard]] int error() const noexcept { return error_; }

 private:
  // More bytes behind those that are buffered: how many, 0 at the end, or -errno.
  [[nodiscard]] long Fill();

  int fd_;
  size_t limit_;
  size_t chunk_;
  uint64_t offset_;  // of the first buffered byte
  uint64_t line_offset_ = 0;
  std::string buffer_;
  size_t start_ = 0;  // in buffer_: of the next line
  bool look_again_ = false;
  std::string_view line_;
  int error_ = 0;
};

}  // namespace oarlock::audit
