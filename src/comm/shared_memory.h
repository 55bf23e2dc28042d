// SharedMemory: the one mapping in which the workers of a machine keep what they share (weights,
// gradient buffers, optimizer states), whether they are threads or processes.
#pragma once

#include <cstddef>
#include <span>

namespace dpt {

// Begins at a 2 MiB boundary, is zero at first, and asks for huge pages where it is large enough.
// It has no name anywhere: it is gone when the last process that maps it is, however that ends.
class SharedMemory {
 public:
  enum class Pages { on_touch, now };  // now: a machine that is too small is found out at once

  // For several processes: children forked later see it at the same address; others adopt() fd().
  // Errors: Error{memory}.
  static SharedMemory create(size_t bytes, Pages pages = Pages::on_touch);

  // For the threads of one process only; fd() is -1. Gets huge pages also where the system keeps
  // them from shared mappings, as Debian does. A child that is forked gets a copy: not shared.
  static SharedMemory create_private(size_t bytes, Pages pages = Pages::on_touch);

  // Maps what another process created and handed over. Takes the descriptor, also when it throws.
  // Errors: Error{rank} when it is smaller than `bytes` or could still be shrunk.
  static SharedMemory adopt(int fd, size_t bytes);

  SharedMemory(SharedMemory&& other) noexcept;
  SharedMemory& operator=(SharedMemory&& other) noexcept;
  ~SharedMemory();

  std::byte* data() const { return data_; }
  size_t bytes() const { return bytes_; }
  std::span<std::byte> span() const { return {data_, bytes_}; }
  int fd() const { return fd_; }  // -1: private

 private:
  SharedMemory(std::byte* data, size_t bytes, int fd) : data_(data), bytes_(bytes), fd_(fd) {}

  std::byte* data_ = nullptr;
  size_t bytes_ = 0;
  int fd_ = -1;
};

}  // namespace dpt
