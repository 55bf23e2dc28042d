#include "backend/cuda/libraries.h"

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

// Folders `lib` below a Python environment's packages of NVIDIA: one for all of a CUDA version, or
// one for each library.
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

// "" stands for the loader's own places.
std::vector<std::string> folders() {
  std::vector<std::string> out;
  const std::string named = variable("DPTRAIN_CUDA_PATH");
  for (size_t begin = 0; begin < named.size();) {
    const size_t end = std::min(named.find(':', begin), named.size());
    if (end > begin) out.push_back(named.substr(begin, end - begin));
    begin = end + 1;
  }
  out.emplace_back();
  for (const std::string& root :
       {variable("CUDA_HOME"), variable("CUDA_PATH"), std::string("/usr/local/cuda")})
    if (!root.empty()) out.push_back(root + "/lib64");
  for (const char* environment : {"VIRTUAL_ENV", "CONDA_PREFIX"})
    if (const std::string root = variable(environment); !root.empty())
      add_python_folders(root, out);
  // CUDA_HOME is often /usr/local/cuda.
  std::vector<std::string> once;
  for (const std::string& folder : out)
    if (std::find(once.begin(), once.end(), folder) == once.end()) once.push_back(folder);
  return once;
}

// The folder that the loader took it from.
std::string folder_of(void* handle) {
  std::string folder(4096, '\0');
  if (dlinfo(handle, RTLD_DI_ORIGIN, folder.data()) != 0) return "";
  return folder.c_str();
}

// The library of which the loader says that it can't be opened: "NAME: cannot open shared ...".
std::string missing_library(const std::string& words) {
  const size_t colon = words.find(": cannot open shared object file");
  return colon == std::string::npos ? "" : words.substr(0, colon);
}

}  // namespace

std::string FoundLibrary::problem() const {
  if (handle) return "";
  return fmt::format("{} can't be loaded: {}", name, fmt::join(tried, "; "));
}

FoundLibrary find_library(std::string_view name) {
  FoundLibrary out{.name = std::string(name)};
  for (const std::string& folder : folders()) {
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
    out.tried.push_back(missing_library(words) == out.name ? "not where the loader looks" : words);
  }
  return out;
}

FoundLibrary open_with_needs(const std::string& path) {
  FoundLibrary out{.name = path.substr(path.rfind('/') + 1)};
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

}  // namespace dpt::cuda
