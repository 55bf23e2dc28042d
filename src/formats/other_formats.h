// Names the format of a weights file that is not safetensors, and says how to convert it.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace dpt {

// How many of a file's first bytes other_format() looks at.
inline constexpr size_t kFormatBytes = 512;

// "a file of torch.save (PyTorch); convert it in Python: ...", by magic numbers: torch.save's zip
// and pickle files, NumPy's .npy and .npz, HDF5, GGUF. Empty: none of these. `path` is the file's,
// for the Python line.
std::string other_format(std::span<const std::byte> head, const std::string& path);

}  // namespace dpt
