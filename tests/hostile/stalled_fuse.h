// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <linux/fuse.h>
#include <poll.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "notif/base/unique_fd.h"

namespace oarlock::test {

// A file system with one file, "f", that answers everything but what it is told not to: a page that never comes, a close that
// never ends. Mounted in a mount namespace of the calling thread's own, which what it starts shares. Its end sets all that waits
// free, so it must end before those that wait are waited for.
class StalledFuse {
 public:
  StalledFuse(std::string mount_point, std::string content) : mount_point_(std::move(mount_point)), content_(std::move(content)) {
    content_.resize(4096);
    static const bool apart = ::unshare(CLONE_NEWNS) == 0 && ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
    if (!apart) return;
    device_.Reset(::open("/dev/fuse", O_RDWR | O_CLOEXEC | O_NONBLOCK));
    if (!device_.valid()) return;
    const std::string options = "fd=" + std::to_string(device_.get()) + ",rootmode=40755,user_id=0,group_id=0,allow_other";
    mounted_ = ::mount("stalled", mount_point_.c_str(), "fuse", MS_NOSUID | MS_NODEV, options.c_str()) == 0;
    if (!mounted_) return;
    stop_.Reset(::eventfd(0, EFD_CLOEXEC));
    thread_ = std::thread([this] { Serve(); });
  }
  ~StalledFuse() {
    if (!mounted_) return;
    const uint64_t one = 1;
    (void)!::write(stop_.get(), &one, sizeof(one));
    thread_.join();
    // Forced: whoever waits gets an error now.
    (void)::umount2(mount_point_.c_str(), MNT_FORCE);
    (void)::umount2(mount_point_.c_str(), MNT_DETACH);
    device_.Reset();
  }
  StalledFuse(const StalledFuse&) = delete;
  StalledFuse& operator=(const StalledFuse&) = delete;
  [[nodiscard]] bool mounted() const noexcept { return mounted_; }
  [[nodiscard]] std::string file() const { return mount_point_ + "/f"; }
  void StallReads() { stall_reads_ = true; }
  void StallCloses() { stall_closes_ = true; }
  // Requests that wait for an answer that will not come.
  [[nodiscard]] int stalled() const noexcept { return stalled_; }

 private:
  void Serve() {
    std::vector<char> request(1 << 17);
    for (;;) {
      pollfd ready[2] = {{stop_.get(), POLLIN, 0}, {device_.get(), POLLIN, 0}};
      (void)::poll(ready, 2, -1);
      if (ready[0].revents != 0 || (ready[1].revents & (POLLERR | POLLHUP)) != 0) return;
      const ssize_t got = ::read(device_.get(), request.data(), request.size());
      if (got >= static_cast<ssize_t>(sizeof(fuse_in_header))) Answer(request.data());
    }
  }
  void Answer(const char* request) {
    const auto& in = *reinterpret_cast<const fuse_in_header*>(request);
    const char* body = request + sizeof(in);
    switch (in.opcode) {
      case FUSE_INIT: {
        fuse_init_out out{};
        out.major = FUSE_KERNEL_VERSION;
        out.minor = std::min<uint32_t>(reinterpret_cast<const fuse_init_in*>(body)->minor, FUSE_KERNEL_MINOR_VERSION);
        out.max_readahead = 4096;
        out.max_write = 65536;
        out.max_background = 12;
        out.congestion_threshold = 9;
        return Reply(in.unique, &out, sizeof(out));
      }
      case FUSE_LOOKUP: {
        if (std::strcmp(body, "f") != 0) return Fail(in.unique, ENOENT);
        fuse_entry_out out{};
        out.nodeid = 2;
        out.entry_valid = out.attr_valid = 1000;
        out.attr = Attributes(2);
        return Reply(in.unique, &out, sizeof(out));
      }
      case FUSE_GETATTR: {
        fuse_attr_out out{};
        out.attr_valid = 1000;
        out.attr = Attributes(in.nodeid);
        return Reply(in.unique, &out, sizeof(out));
      }
      case FUSE_OPEN:
      case FUSE_OPENDIR: {
        const fuse_open_out out{};
        return Reply(in.unique, &out, sizeof(out));
      }
      case FUSE_READ: {
        if (stall_reads_) {
          ++stalled_;
          return;
        }
        const auto& read = *reinterpret_cast<const fuse_read_in*>(body);
        const size_t from = std::min<size_t>(read.offset, content_.size());
        return Reply(in.unique, content_.data() + from, std::min<size_t>(read.size, content_.size() - from));
      }
      case FUSE_FLUSH:
        if (stall_closes_) {
          ++stalled_;
          return;
        }
        return Reply(in.unique, nullptr, 0);
      case FUSE_RELEASE:
      case FUSE_RELEASEDIR:
      case FUSE_READDIR: return Reply(in.unique, nullptr, 0);
      case FUSE_STATFS: {
        const fuse_statfs_out out{};
        return Reply(in.unique, &out, sizeof(out));
      }
      case FUSE_FORGET:
      case FUSE_BATCH_FORGET:
      case FUSE_INTERRUPT: return;  // an interrupt changes nothing here
      default: return Fail(in.unique, ENOSYS);
    }
  }
  fuse_attr Attributes(uint64_t node) const {
    fuse_attr attributes{};
    attributes.ino = node;
    attributes.mode = node == 1 ? S_IFDIR | 0755 : S_IFREG | 0644;
    attributes.nlink = 1;
    attributes.size = node == 1 ? 0 : content_.size();
    attributes.blksize = 4096;
    return attributes;
  }
  void Reply(uint64_t unique, const void* data, size_t size) const {
    fuse_out_header header{static_cast<uint32_t>(sizeof(header) + size), 0, unique};
    std::vector<char> message(sizeof(header) + size);
    std::memcpy(message.data(), &header, sizeof(header));
    if (size != 0) std::memcpy(message.data() + sizeof(header), data, size);
    (void)!::write(device_.get(), message.data(), message.size());
  }
  void Fail(uint64_t unique, int error) const {
    const fuse_out_header header{sizeof(header), -error, unique};
    (void)!::write(device_.get(), &header, sizeof(header));
  }
  std::string mount_point_, content_;
  bool mounted_ = false;
  UniqueFd device_, stop_;
  std::atomic<bool> stall_reads_ = false, stall_closes_ = false;
  std::atomic<int> stalled_ = 0;
  std::thread thread_;
};

}  // namespace oarlock::test
