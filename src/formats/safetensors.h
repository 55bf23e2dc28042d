// safetensors files: a JSON header, then the bytes of named tensors. dptrain has its own reader and
// writer, because files come from untrusted sources: everything is checked before it is used.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/disk.h"
#include "base/tensor.h"
#include "formats/random_access_file.h"
#include "formats/tensor_file.h"

namespace dpt {

// An open file whose header has been read and checked. Reads a tensor's bytes on demand, so that
// rejecting an unsuitable file costs only its header. Dtypes: F32 F64 F16 BF16 I64 I32 U8. Entries
// are in the order of their bytes. Thread: any, after construction.
class SafeTensorsFile : public TensorFile {
 public:
  // Throws Error{data} with the file's name and the problem. Refused: anything but a regular file,
  // headers over 16 MiB, more than 65536 tensors, names over 512 bytes, more dimensions than a
  // Shape has, sizes that do not match the shape, overlaps, gaps, bytes after the last tensor,
  // repeated keys.
  explicit SafeTensorsFile(const std::string& path);

  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  void read(const Entry& entry, std::span<std::byte> out) const override;

 private:
  RandomAccessFile file_;
  std::map<std::string, std::string> metadata_;
};

// A file read completely into memory. Copies share the memory.
class SafeTensors {
 public:
  struct Entry {
    std::string name;
    TensorDesc desc;
    const std::byte* data = nullptr;  // aligned for its dtype; owned by the SafeTensors
  };

  // Throws Error{data} for the same reasons as SafeTensorsFile.
  static SafeTensors read(const std::string& path);

  const std::vector<Entry>& entries() const& { return entries_; }  // in the order of their bytes
  void entries() && = delete;                      // a range-for over a temporary would dangle
  const Entry* find(std::string_view name) const;  // null: no such tensor
  const std::map<std::string, std::string>& metadata() const { return metadata_; }

 private:
  std::vector<Entry> entries_;
  std::map<std::string, std::string> metadata_;
  std::shared_ptr<const std::byte[]> data_;
};

struct NamedTensor {
  std::string name;
  TensorDesc desc;
  const std::byte* data = nullptr;  // row-major, unless `stored` is given
  // The shape of as many elements, and their layout, at `data`: the file gets them row-major.
  std::optional<TensorDesc> stored{};
  BytesToWrite bytes() const;  // row-major; refers to `data`
};

// The part of a file before the tensors' bytes, which follow in the given order. Its size is a
// multiple of 64 bytes. REQUIRES: names are unique.
std::string safetensors_head(std::span<const NamedTensor> tensors,
                             const std::map<std::string, std::string>& metadata = {});

// Writes a file with write_file(), and throws like it. disk == nullptr: the real disk. REQUIRES:
// names are unique.
void write_safetensors(const std::string& path, std::span<const NamedTensor> tensors,
                       const std::map<std::string, std::string>& metadata = {},
                       Disk* disk = nullptr);

}  // namespace dpt
