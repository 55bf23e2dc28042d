// Finds shared libraries of CUDA where distributions, NVIDIA's installers and Python packages put
// them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace dpt::cuda {

struct FoundLibrary {
  std::string name;                // "libcublasLt.so.13"
  void* handle = nullptr;          // of dlopen; stays open
  std::string path;                // where it was found
  std::vector<std::string> tried;  // each place with the loader's words
  std::string problem() const;     // "libcudnn.so.9 is in none of: ..."
};

// Looks in the folders of $DPTRAIN_CUDA_PATH (colons between), then where the system's loader looks
// (LD_LIBRARY_PATH, its cache), in $CUDA_HOME, $CUDA_PATH and /usr/local/cuda, and in the packages
// nvidia-* of an active Python environment ($VIRTUAL_ENV, $CONDA_PREFIX).
FoundLibrary find_library(std::string_view name);

// Opens a file, and before it those libraries it asks for that the loader does not find by itself.
FoundLibrary open_with_needs(const std::string& path);

// A function of an open library; null where it has none.
void* symbol_of(const FoundLibrary& library, const char* name);
template <class F>
F* function_of(const FoundLibrary& library, const char* name) {
  return reinterpret_cast<F*>(symbol_of(library, name));
}

}  // namespace dpt::cuda
