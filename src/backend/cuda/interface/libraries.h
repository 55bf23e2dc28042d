// Finds the shared libraries of CUDA where distributions, NVIDIA's installers and Python packages
// put them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace dpt::cuda {

struct FoundLibrary {
  std::string name;                // "libcublasLt.so.13"
  void* handle = nullptr;          // of dlopen; never closed
  std::string path;                // where it was found
  std::vector<std::string> tried;  // each place, with the loader's message
  std::string problem() const;     // why it cannot be loaded and what to do; empty: it is
};

// Searches in this order: the folders of $DPTRAIN_CUDA_PATH (separated by colons), the system's
// loader (LD_LIBRARY_PATH, its cache), $CUDA_HOME, $CUDA_PATH, /usr/local/cuda, and the nvidia-*
// packages of an active Python environment ($VIRTUAL_ENV, $CONDA_PREFIX).
FoundLibrary find_library(std::string_view name);

// Opens a library file. First opens its dependencies that the loader does not find by itself, and
// the needed CUDA libraries that lie in folders of $DPTRAIN_CUDA_PATH.
FoundLibrary open_with_needs(const std::string& path);

// A function of an open library, or null.
void* symbol_of(const FoundLibrary& library, const char* name);
template <class F>
F* function_of(const FoundLibrary& library, const char* name) {
  return reinterpret_cast<F*>(symbol_of(library, name));
}

// "13.0" for 13000, CUDA's version number.
std::string cuda_version(int version);

// The state of a CUDA library as `dptrain doctor` prints it.
struct LibraryReport {
  std::string name, version, path;
  std::string problem;  // empty: it works
  bool needed = true;   // false: only some runs need it
};

// Open each library, with the libraries that it loads on demand, and read its version.
// cuda_library(): "cuDNN", say, or "driver", which cuda_libraries() does not include.
std::vector<LibraryReport> cuda_libraries();
LibraryReport cuda_library(std::string_view name);  // "cuDNN", or "driver", which is not among them

}  // namespace dpt::cuda
