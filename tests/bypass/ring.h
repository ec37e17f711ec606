// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <linux/io_uring.h>
#include <sys/mman.h>

#include "tests/bypass/inside.h"

namespace bypass {

// An io_uring without a library, also one that somebody else made: only the descriptor and its parameters are needed.
class Ring {
 public:
  Ring(int fd, const io_uring_params& parameters) : fd_(fd), p_(parameters) { Map(); }
  // The parameters in hexadecimal.
  Ring(int fd, const std::string& hex) : fd_(fd) {
    for (size_t i = 0; i + 1 < hex.size() && i / 2 < sizeof(p_); i += 2)
      reinterpret_cast<unsigned char*>(&p_)[i / 2] = static_cast<unsigned char>(std::stoi(hex.substr(i, 2), nullptr, 16));
    if (hex.empty()) error_ = ENOSYS;
    else Map();
  }
  [[nodiscard]] int error() const { return error_; }

  // The completion's result; -ETIME where there is none in time.
  long Run(const io_uring_sqe& sqe) {
    auto* tail = Word(p_.sq_off.tail);
    const uint32_t mask = *Word(p_.sq_off.ring_mask), at = *tail & mask;
    sqes_[at] = sqe;
    Word(p_.sq_off.array)[at] = at;
    __atomic_store_n(tail, *tail + 1, __ATOMIC_RELEASE);
    auto *head = Word(p_.cq_off.head), *end = Word(p_.cq_off.tail);
    if ((p_.flags & IORING_SETUP_SQPOLL) == 0) {
      const long entered = Raw(SYS_io_uring_enter, fd_, 1, 1, IORING_ENTER_GETEVENTS, 0, 0);
      if (entered < 0) return entered;
    }
    for (int i = 0; i < 2000 && __atomic_load_n(end, __ATOMIC_ACQUIRE) == *head; ++i) usleep(1000);
    if (__atomic_load_n(end, __ATOMIC_ACQUIRE) == *head) return -ETIME;
    const auto* cqes = reinterpret_cast<io_uring_cqe*>(base_ + p_.cq_off.cqes);
    const long result = cqes[*head & *Word(p_.cq_off.ring_mask)].res;
    __atomic_store_n(head, *head + 1, __ATOMIC_RELEASE);
    return result;
  }

  long ConnectAndSend(Address address, const std::string& text) {
    if (error_ != 0) return -error_;
    io_uring_sqe sqe{};
    sqe.opcode = IORING_OP_SOCKET;
    sqe.fd = address.family();
    sqe.off = SOCK_STREAM;
    const long fd = Run(sqe);
    if (fd < 0) return fd;
    sqe = {};
    sqe.opcode = IORING_OP_CONNECT;
    sqe.fd = static_cast<int>(fd);
    sqe.addr = reinterpret_cast<uint64_t>(address.get());
    sqe.off = address.size;
    if (const long result = Run(sqe); result < 0) return result;
    sqe = {};
    sqe.opcode = IORING_OP_SEND;
    sqe.fd = static_cast<int>(fd);
    sqe.addr = reinterpret_cast<uint64_t>(text.data());
    sqe.len = static_cast<uint32_t>(text.size());
    const long sent = Run(sqe);
    return sent < 0 ? sent : 0;
  }

 private:
  void Map() {
    const size_t size = std::max<size_t>(p_.sq_off.array + p_.sq_entries * 4, p_.cq_off.cqes + p_.cq_entries * sizeof(io_uring_cqe));
    void* at = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, IORING_OFF_SQ_RING);
    void* entries = mmap(nullptr, p_.sq_entries * sizeof(io_uring_sqe), PROT_READ | PROT_WRITE, MAP_SHARED, fd_, IORING_OFF_SQES);
    if (at == MAP_FAILED || entries == MAP_FAILED) {
      error_ = errno;
      return;
    }
    base_ = static_cast<char*>(at);
    sqes_ = static_cast<io_uring_sqe*>(entries);
  }
  uint32_t* Word(uint32_t offset) { return reinterpret_cast<uint32_t*>(base_ + offset); }
  int fd_, error_ = 0;
  io_uring_params p_{};
  char* base_ = nullptr;
  io_uring_sqe* sqes_ = nullptr;
};

}  // namespace bypass
