// Sequential reading of a data file, plain or compressed with gzip.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

namespace dpt {

// Not thread-safe; several sources may read one file independently. Every error is an Error{data}
// that names the file.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  ByteSource() = default;
  ByteSource(const ByteSource&) = delete;
  ByteSource& operator=(const ByteSource&) = delete;

  // Fills `out`. Throws if the file is damaged or ends before; `what` describes the data in the
  // error.
  virtual void read(std::span<std::byte> out, const std::string& what) = 0;
  // Throws if more bytes follow, or if gzip's checksum is wrong.
  virtual void expect_end() = 0;
  // An upper bound on all bytes that the source can yield. A header that announces more is wrong,
  // and no memory need be allocated for it.
  virtual uint64_t most_bytes() const = 0;
  virtual bool compressed() const = 0;
};

// Opens a file; the first two bytes decide between plain and gzip. Several gzip members in a file
// form one stream, as in gzip -d. Throws Error{data} if the file cannot be opened, and immediately
// if it is not a regular file (a folder, FIFO, socket or device).
std::unique_ptr<ByteSource> open_bytes(const std::string& path);

// Allocates an uninitialized buffer, aligned for vector instructions and, if large, for huge pages.
// Throws Error{memory} if less is free.
std::shared_ptr<std::byte[]> allocate_bytes(size_t bytes);

}  // namespace dpt
