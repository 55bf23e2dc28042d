// Reads parts of a file at any offset.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace dpt {

// An open regular file. Every error is an Error{data} that names the file. Thread: any.
class RandomAccessFile {
 public:
  // Throws for anything but a regular file (base/files.h).
  explicit RandomAccessFile(const std::string& path);
  ~RandomAccessFile();
  RandomAccessFile(const RandomAccessFile&) = delete;
  RandomAccessFile& operator=(const RandomAccessFile&) = delete;

  const std::string& path() const { return path_; }
  uint64_t size() const { return size_; }  // when it was opened
  // Throws if the file ends before `out` is full.
  void read(uint64_t offset, std::span<std::byte> out) const;

 private:
  std::string path_;
  int fd_ = -1;
  uint64_t size_ = 0;
};

}  // namespace dpt
