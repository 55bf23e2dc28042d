// The bytes of a data file in order, whether it is plain or compressed with gzip.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

namespace dpt {

// Not thread-safe; several on one file are independent. Every Error is Error{data} and names the
// file.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  ByteSource() = default;
  ByteSource(const ByteSource&) = delete;
  ByteSource& operator=(const ByteSource&) = delete;

  // Fills `out`. Throws if the file ends before or is damaged; `what` is what was to be read.
  virtual void read(std::span<std::byte> out, const std::string& what) = 0;
  // Throws if more follows, or if gzip's checksum is wrong.
  virtual void expect_end() = 0;
  // At most so many bytes can come, all in all: a header that announces more is lying, and no
  // memory needs to be taken for it.
  virtual uint64_t most_bytes() const = 0;
  virtual bool compressed() const = 0;
};

// Plain or gzip, by the first two bytes; several gzip members in one file are one stream, as for
// gzip -d. Throws Error{data} if the file can't be opened, and at once for what is no regular file
// (a folder, FIFO, socket or device).
std::unique_ptr<ByteSource> open_bytes(const std::string& path);

// A buffer that is aligned for vectors and, where it is large, for huge pages. Not initialised.
// Throws Error{memory} where less is free.
std::shared_ptr<std::byte[]> allocate_bytes(size_t bytes);

}  // namespace dpt
