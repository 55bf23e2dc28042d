// Files of torch.save that hold a state_dict: read without executing anything, and written.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/disk.h"
#include "formats/random_access_file.h"
#include "formats/safetensors.h"
#include "formats/tensor_file.h"

namespace dpt {

// Entries of a dict that hold the state_dict, the first one that there is.
inline constexpr std::array<std::string_view, 3> kStateDictEntries = {"state_dict",
                                                                      "model_state_dict", "model"};

// A file of torch.save since PyTorch 1.6: a ZIP archive with a pickle and the bytes of each
// storage. The pickle must hold a state_dict, or a dict with one in an entry of kStateDictEntries;
// other values, such as an optimizer's, are ignored. Elements of float64, float16 and bfloat16 are
// converted to float32, and bool to uint8.
class TorchFile : public TensorFile {
 public:
  // Throws Error{data} with the file's name and the problem. Refused: what Pickle and
  // read_zip_directory() refuse, pickles over 16 MiB, more than 65536 tensors, names over 512
  // bytes, more dimensions than a Shape has, tensors that are not entirely in their storage or
  // expanded to more than 2^24 elements, other element types, big-endian files.
  explicit TorchFile(const std::string& path);

  void read(const Entry& entry, std::span<std::byte> out) const override;

  // A tensor's elements in the file.
  struct Stored {
    DType dtype = DType::f32;
    uint64_t offset = 0;                             // of the first one, in the file
    std::array<int64_t, Shape::kMaxRank> strides{};  // in elements
  };

 private:
  RandomAccessFile file_;
  std::vector<Stored> stored_;  // Entry::offset is the index
};

// Writes a state_dict as torch.save does, with write_file(), and throws like it. torch.load reads
// it with weights_only=True. disk == nullptr: the real disk. REQUIRES: names are unique; elements
// are row-major.
void write_torch(const std::string& path, std::span<const NamedTensor> tensors,
                 Disk* disk = nullptr);

}  // namespace dpt
