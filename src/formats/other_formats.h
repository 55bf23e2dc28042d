// Names the format of a weights file that is not safetensors, and says how to convert it.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace dpt {

// The number of bytes at a file's beginning that other_format() needs.
inline constexpr size_t kFormatBytes = 512;

// Recognizes a file format by its first bytes and says how to convert it: "a file of torch.save
// (PyTorch); convert it in Python: ...". Knows torch.save's zip and pickle files, NumPy's .npy and
// .npz, HDF5 and GGUF; empty for any other. `path` appears in the Python line.
std::string other_format(std::span<const std::byte> head, const std::string& path);

}  // namespace dpt
