// TensorFile: a file of named tensors that are read one at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/tensor.h"

namespace dpt {

// Thread: any, after construction.
class TensorFile {
 public:
  struct Entry {
    std::string name;
    TensorDesc desc;      // as read() returns it
    uint64_t offset = 0;  // where the file has the tensor; its meaning depends on the format
  };

  virtual ~TensorFile() = default;
  TensorFile() = default;
  TensorFile(const TensorFile&) = delete;
  TensorFile& operator=(const TensorFile&) = delete;

  const std::vector<Entry>& entries() const { return entries_; }
  const Entry* find(std::string_view name) const;  // null: no such tensor

  // Reads a tensor of this file, row-major. REQUIRES: `out` has entry.desc.bytes() bytes. Throws
  // Error{data}.
  virtual void read(const Entry& entry, std::span<std::byte> out) const = 0;

 protected:
  std::vector<Entry> entries_;
};

// The parts that wrappers of modules add to names in PyTorch: DataParallel and
// DistributedDataParallel, torch.compile, FSDP, and checkpointing.
inline constexpr std::array<std::string_view, 4> kWrapperNames = {
    "module", "_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module"};

// A tensor's name without such parts, anywhere in the name.
std::string without_wrappers(std::string_view name);

// Whether read_floats() takes tensors of this type: f32, f16, bf16 and f64.
bool readable_as_floats(DType dtype);

// Reads a tensor of `file` as float32, rounding f64 to nearest. Needs memory for the stored bytes
// of other types beside `out`. REQUIRES: `out` has the entry's number of elements, and
// readable_as_floats(entry.desc.dtype). Throws Error{data}.
void read_floats(const TensorFile& file, const TensorFile::Entry& entry, std::span<float> out);

// Whether read_counts() takes tensors of this type: i64, i32 and those of read_floats().
bool readable_as_counts(DType dtype);

// Reads a tensor of `file` as int64, as programs store batch norm's counts that convert a whole
// state_dict. Numbers that int64 does not have become 0. REQUIRES: `out` has the entry's number of
// elements, and readable_as_counts(entry.desc.dtype). Throws Error{data}.
void read_counts(const TensorFile& file, const TensorFile::Entry& entry, std::span<int64_t> out);

// Opens a file of safetensors or of torch.save, told apart by their first bytes. Throws Error{data}
// if it is neither, or as SafeTensorsFile and TorchFile do.
std::unique_ptr<const TensorFile> open_tensor_file(const std::string& path);

}  // namespace dpt
