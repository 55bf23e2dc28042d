#include "backend/cuda/interface/libraries.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace dpt::cuda {
namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

// Adds the `lib` folders of NVIDIA's packages in a Python environment: one for a whole CUDA
// version, or one per library.
void add_python_folders(const std::string& root, std::vector<std::string>& out) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  std::vector<std::string> found;
  for (const auto& python : fs::directory_iterator(fs::path(root) / "lib", ignored)) {
    if (!python.path().filename().string().starts_with("python")) continue;
    const fs::path packages = python.path() / "site-packages" / "nvidia";
    for (const auto& package : fs::directory_iterator(packages, ignored))
      if (fs::is_directory(package.path() / "lib", ignored))
        found.push_back((package.path() / "lib").string());
  }
  std::sort(found.begin(), found.end());
  out.insert(out.end(), found.begin(), found.end());
}

// The folders of $DPTRAIN_CUDA_PATH.
std::vector<std::string> named_folders() {
  std::vector<std::string> out;
  const std::string named = variable("DPTRAIN_CUDA_PATH");
  for (size_t begin = 0; begin < named.size();) {
    const size_t end = std::min(named.find(':', begin), named.size());
    if (end > begin) out.push_back(named.substr(begin, end - begin));
    begin = end + 1;
  }
  return out;
}

// All folders to search, in order. "" stands for the dynamic loader's own search.
std::vector<std::string> folders() {
  std::vector<std::string> out = named_folders();
  out.emplace_back();
  for (const std::string& root :
       {variable("CUDA_HOME"), variable("CUDA_PATH"), std::string("/usr/local/cuda")})
    if (!root.empty()) out.push_back(root + "/lib64");
  for (const char* environment : {"VIRTUAL_ENV", "CONDA_PREFIX"})
    if (const std::string root = variable(environment); !root.empty())
      add_python_folders(root, out);
  // Remove duplicates: CUDA_HOME is often /usr/local/cuda.
  std::vector<std::string> once;
  for (const std::string& folder : out)
    if (std::find(once.begin(), once.end(), folder) == once.end()) once.push_back(folder);
  return once;
}

// The folder from which the dynamic loader loaded the library.
std::string folder_of(void* handle) {
  std::string folder(4096, '\0');
  if (dlinfo(handle, RTLD_DI_ORIGIN, folder.data()) != 0) return "";
  return folder.c_str();
}

// The library that a message of the dynamic loader says is missing: "NAME: cannot open shared ...".
std::string missing_library(const std::string& words) {
  const size_t colon = words.find(": cannot open shared object file");
  return colon == std::string::npos ? "" : words.substr(0, colon);
}

FoundLibrary find_in(const std::vector<std::string>& folders, std::string_view name) {
  FoundLibrary out{.name = std::string(name)};
  for (const std::string& folder : folders) {
    const std::string path = folder.empty() ? out.name : folder + "/" + out.name;
    std::error_code ignored;
    if (!folder.empty() && !std::filesystem::exists(path, ignored)) {
      out.tried.push_back(fmt::format("not in {}", folder));
      continue;
    }
    if (void* handle = dlopen(path.c_str(), RTLD_LAZY | RTLD_GLOBAL)) {
      out.handle = handle;
      out.path = folder.empty() ? folder_of(handle) + "/" + out.name : path;
      return out;
    }
    const std::string words = dlerror();
    out.tried.push_back(missing_library(words) == out.name
                            ? "not in the search path of the dynamic loader"
                            : words);
  }
  return out;
}

// "9.19.0" for 91900.
std::string version_of_three(size_t v) {
  return fmt::format("{}.{}.{}", v / 10000, v / 100 % 100, v % 100);
}
// Calls a version function with an output argument; 0: it failed.
int told_by(void* function) {
  int v = 0;
  return reinterpret_cast<int (*)(int*)>(function)(&v) == 0 ? v : 0;
}
size_t returned_by(void* function) { return reinterpret_cast<size_t (*)()>(function)(); }

// One of the libraries of CUDA 13.
struct CudaLibrary {
  std::string_view name, file;
  std::string_view apt, pip;  // names of NVIDIA's packages
  const char* function;       // returns its version
  std::string (*version)(void* function);
  std::vector<std::string_view> parts = {};  // libraries that it loads on demand
  bool needed = false;
};

const std::vector<CudaLibrary>& table() {
  static const std::vector<CudaLibrary> libraries{
      {.name = "CUDA runtime",
       .file = "libcudart.so.13",
       .apt = "cuda-cudart-13-0",
       .pip = "nvidia-cuda-runtime",
       .function = "cudaRuntimeGetVersion",
       .version = [](void* f) { return cuda_version(told_by(f)); },
       .needed = true},
      {.name = "cuBLASLt",
       .file = "libcublasLt.so.13",
       .apt = "libcublas-13-0",
       .pip = "nvidia-cublas",
       .function = "cublasLtGetVersion",
       .version = [](void* f) { return version_of_three(returned_by(f)); },
       .needed = true},
      {.name = "cuDNN",
       .file = "libcudnn.so.9",
       .apt = "libcudnn9-cuda-13",
       .pip = "nvidia-cudnn-cu13",
       .function = "cudnnGetVersion",
       .version = [](void* f) { return version_of_three(returned_by(f)); },
       .parts = {"libcudnn_graph.so.9", "libcudnn_heuristic.so.9",
                 "libcudnn_engines_precompiled.so.9", "libcudnn_engines_runtime_compiled.so.9"}},
      // cuDNN compiles some kernels with it.
      {.name = "NVRTC",
       .file = "libnvrtc.so.13",
       .apt = "cuda-nvrtc-13-0",
       .pip = "nvidia-cuda-nvrtc",
       .function = "nvrtcVersion",
       .version =
           [](void* f) {
             int major = 0, minor = 0;
             reinterpret_cast<int (*)(int*, int*)>(f)(&major, &minor);
             return fmt::format("{}.{}", major, minor);
           }},
      {.name = "NCCL",
       .file = "libnccl.so.2",
       .apt = "libnccl2",
       .pip = "nvidia-nccl-cu13",
       .function = "ncclGetVersion",
       .version = [](void* f) { return version_of_three(static_cast<size_t>(told_by(f))); }}};
  return libraries;
}

const CudaLibrary kDriver{.name = "driver",
                          .file = "libcuda.so.1",
                          .apt = "",
                          .pip = "",
                          .function = "cuDriverGetVersion",
                          .version = [](void* f) {
                            const int v = told_by(f);
                            return v > 0 ? "for CUDA " + cuda_version(v) : "";
                          }};

// What to do if a file is missing or is not the expected library.
std::string remedy(std::string_view file) {
  const std::string folder = "set DPTRAIN_CUDA_PATH to its folder";
  if (file == kDriver.file) return "install NVIDIA's driver, or " + folder;
  for (const CudaLibrary& l : table())
    if (l.file == file || std::find(l.parts.begin(), l.parts.end(), file) != l.parts.end())
      return fmt::format(
          "install NVIDIA's {} by apt, or {} by pip into an active environment, or {}", l.apt,
          l.pip, folder);
  return folder;
}

LibraryReport report(const CudaLibrary& library) {
  const FoundLibrary found = find_library(library.file);
  LibraryReport out{.name = std::string(library.name),
                    .path = found.path,
                    .problem = found.problem(),
                    .needed = library.needed};
  if (!found.handle) return out;
  void* const function = symbol_of(found, library.function);
  if (!function)
    out.problem =
        fmt::format("{} has no {}; {}", found.path, library.function, remedy(library.file));
  for (const std::string_view part : library.parts)
    if (out.problem.empty()) out.problem = find_library(part).problem();
  if (!out.problem.empty()) return out;
  out.version = library.version(function);  // cuDNN would abort without its parts
  if (out.version.empty())
    out.problem = fmt::format(
        "{} is a stub library, only meant for linking; remove its folder from LD_LIBRARY_PATH and "
        "DPTRAIN_CUDA_PATH, and install NVIDIA's driver",
        found.path);
  return out;
}

}  // namespace

std::string FoundLibrary::problem() const {
  if (handle) return "";
  return fmt::format("{} can't be loaded: {}; {}", name, fmt::join(tried, "; "), remedy(name));
}

FoundLibrary find_library(std::string_view name) { return find_in(folders(), name); }

FoundLibrary open_with_needs(const std::string& path) {
  FoundLibrary out{.name = path.substr(path.rfind('/') + 1)};
  // Load these first, or the module's own search path would take precedence over the user's.
  for (const CudaLibrary& library : table())
    if (library.needed) find_in(named_folders(), library.file);
  for (std::string before;;) {
    if ((out.handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL))) {
      out.path = path;
      return out;
    }
    const std::string words = dlerror(), missing = missing_library(words);
    if (missing.empty() || missing == before || missing == path) {
      out.tried.push_back(words);
      return out;
    }
    if (const FoundLibrary need = find_library(missing); !need.handle) {
      out.tried.push_back(need.problem());
      return out;
    }
    before = missing;
  }
}

void* symbol_of(const FoundLibrary& library, const char* name) {
  return library.handle ? dlsym(library.handle, name) : nullptr;
}

std::string cuda_version(int v) { return fmt::format("{}.{}", v / 1000, v % 1000 / 10); }

std::vector<LibraryReport> cuda_libraries() {
  std::vector<LibraryReport> out;
  for (const CudaLibrary& library : table()) out.push_back(report(library));
  return out;
}

LibraryReport cuda_library(std::string_view name) {
  for (const CudaLibrary& library : table())
    if (library.name == name) return report(library);
  return report(kDriver);
}

}  // namespace dpt::cuda
