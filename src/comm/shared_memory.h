// SharedMemory: the mapping that holds what the workers of a machine share (weights, gradient
// buffers, optimizer states), whether they are threads or processes.
#pragma once

#include <cstddef>
#include <span>

namespace dpt {

// Aligned to 2 MiB and zero-filled; requests huge pages if it is large enough. It has no name in
// the file system: it is freed when the last process that maps it is gone, however that ends.
class SharedMemory {
 public:
  enum class Pages { on_touch, now };  // now: fail at once if there is too little memory

  // Memory for several processes. Children forked later have it at the same address; other
  // processes adopt() fd(). Throws Error{memory}.
  static SharedMemory create(size_t bytes, Pages pages = Pages::on_touch);

  // Memory for the threads of one process; fd() is -1. It gets huge pages even where the system
  // does not give them to shared mappings, as on Debian. A forked child gets a copy, not shared
  // memory.
  static SharedMemory create_private(size_t bytes, Pages pages = Pages::on_touch);

  // Maps memory that another process created. Takes ownership of fd, even if it throws. Throws
  // Error{rank} if the memory is smaller than `bytes` or not sealed against shrinking.
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
