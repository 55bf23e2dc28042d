// safetensors files: named tensors behind a JSON header. An own reader and writer, since a file may
// come from anyone: nothing in it is believed before it is checked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/disk.h"
#include "base/tensor.h"

namespace dpt {

// An open file whose header was read and checked; a tensor's bytes are read when asked for, so
// that a file which does not fit costs nothing but its header. dtypes F32 F64 F16 BF16 I64 I32 U8.
// Thread: any, after construction.
class SafeTensorsFile {
 public:
  struct Entry {
    std::string name;
    TensorDesc desc;
    uint64_t offset = 0;  // in the file
  };

  // Throws Error{data} that names the file and what is wrong. Refused: what is no regular file,
  // headers over 16 MiB, over 65536 tensors, names over 512 bytes, more extents than a Shape has,
  // sizes that do not fit the shape, overlaps, holes, bytes after the last tensor, anything twice.
  explicit SafeTensorsFile(const std::string& path);
  ~SafeTensorsFile();
  SafeTensorsFile(const SafeTensorsFile&) = delete;
  SafeTensorsFile& operator=(const SafeTensorsFile&) = delete;

  const std::vector<Entry>& entries() const { return entries_; }  // in the order of their bytes
  const Entry* find(std::string_view name) const;                 // null: not there
  const std::map<std::string, std::string>& metadata() const { return metadata_; }

  // Reads a tensor of this file. REQUIRES: `out` has desc.bytes(). Throws Error{data}.
  void read(const Entry& entry, std::span<std::byte> out) const;

 private:
  std::string path_;
  int fd_;
  std::vector<Entry> entries_;
  std::map<std::string, std::string> metadata_;
};

// A file, read in whole.
class SafeTensors {
 public:
  struct Entry {
    std::string name;
    TensorDesc desc;
    const std::byte* data = nullptr;  // aligned as its type wants
  };

  // Throws Error{data} as SafeTensorsFile does.
  static SafeTensors read(const std::string& path);

  const std::vector<Entry>& entries() const& { return entries_; }  // in the order of their bytes
  void entries() && = delete;                      // a range-for over a temporary would dangle
  const Entry* find(std::string_view name) const;  // null: not there
  const std::map<std::string, std::string>& metadata() const { return metadata_; }

 private:
  std::vector<Entry> entries_;
  std::map<std::string, std::string> metadata_;
  std::shared_ptr<const std::byte[]> data_;
};

struct NamedTensor {
  std::string name;
  TensorDesc desc;
  const std::byte* data = nullptr;
};

// What stands in a file before the bytes of the tensors, in the order given: these start at a
// multiple of 64 bytes. REQUIRES: names are unique.
std::string safetensors_head(std::span<const NamedTensor> tensors,
                             const std::map<std::string, std::string>& metadata = {});

// By write_file(), and throws as it does. disk: null: the machine's. REQUIRES: names are unique.
void write_safetensors(const std::string& path, std::span<const NamedTensor> tensors,
                       const std::map<std::string, std::string>& metadata = {},
                       Disk* disk = nullptr);

}  // namespace dpt
