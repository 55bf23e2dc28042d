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
  std::string problem() const;     // why it can't be loaded, and what to do; empty: it is
};

// Looks in the folders of $DPTRAIN_CUDA_PATH (colons between), then where the system's loader looks
// (LD_LIBRARY_PATH, its cache), in $CUDA_HOME, $CUDA_PATH and /usr/local/cuda, and in the packages
// nvidia-* of an active Python environment ($VIRTUAL_ENV, $CONDA_PREFIX).
FoundLibrary find_library(std::string_view name);

// Opens a file, and before it those libraries it asks for that the loader does not find by itself,
// and those of CUDA that are in the folders of $DPTRAIN_CUDA_PATH.
FoundLibrary open_with_needs(const std::string& path);

// A function of an open library; null where it has none.
void* symbol_of(const FoundLibrary& library, const char* name);
template <class F>
F* function_of(const FoundLibrary& library, const char* name) {
  return reinterpret_cast<F*>(symbol_of(library, name));
}

// "13.0" of 13000, as CUDA counts.
std::string cuda_version(int version);

// A library of CUDA as `dptrain doctor` prints it.
struct LibraryReport {
  std::string name, version, path;
  std::string problem;  // empty: it works
  bool needed = true;   // false: only some runs need it
};

// Each is opened, with the parts that it would itself load later, and asked for its version.
std::vector<LibraryReport> cuda_libraries();
LibraryReport cuda_library(
    std::string_view name);  // "cuDNN", or "driver", which is not among those

}  // namespace dpt::cuda
