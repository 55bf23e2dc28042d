#include "backend/cuda/interface/load.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "backend/cuda/kernels/fingerprint.h"
#include "base/fail.h"
#include "base/installation.h"
#include "base/version.h"
#include "comm/child.h"
#include "comm/shared_memory.h"

namespace dpt::cuda {
namespace {

namespace fs = std::filesystem;
constexpr const char* kFile = "libdptrain_cuda.so";
constexpr const char* kVariable = "DPTRAIN_CUDA_MODULE";
constexpr const char* kAbsent = ": no such file";

// Where the module may be: beside the program, in the build tree, or where it is installed.
std::vector<std::string> candidate_paths() {
  if (const char* named = std::getenv(kVariable)) return {named};
  const fs::path folder = program_folder();
  std::vector<std::string> out;
  for (const char* subfolder :
       {".", "backend/cuda/module", "../src/backend/cuda/module", "../lib/dptrain"})
    if (std::string path = (folder / subfolder / kFile).lexically_normal();
        std::find(out.begin(), out.end(), path) == out.end())
      out.push_back(std::move(path));
  return out;
}

// Empty if the module is of the same build as the program.
std::string mismatch(const ModuleEntry* entry) {
  std::string what;
  if (!entry)
    what = "it is not a dptrain module";
  else if (entry->version != version())
    what = fmt::format("it was built for {}, but this program is {}", entry->version, version());
  else if (entry->kernels != kKernelFingerprint)
    what = "it was built from other kernel sources";
  else
    return "";
  return what + fmt::format("; use the {} that was built with this program", kFile);
}

LoadedModule load() {
  LoadedModule out;
  for (const std::string& path : candidate_paths()) {
    std::error_code ignored;
    if (!fs::exists(path, ignored)) {
      out.tried.push_back(path + kAbsent);
      if (std::getenv(kVariable))
        out.tried.back() += fmt::format(
            ", the value of {}; set it to the path of a {}, or unset it", kVariable, kFile);
      continue;
    }
    const FoundLibrary library = open_with_needs(path);
    if (!library.handle) {
      out.tried.push_back(fmt::format("{}: {}", path, fmt::join(library.tried, "; ")));
      continue;
    }
    auto* const entry = function_of<ModuleEntryFunction>(library, kModuleEntryName);
    const std::string wrong = mismatch(entry ? entry() : nullptr);
    if (wrong.empty()) {
      out.module = entry()->module;
      out.path = path;
      return out;
    }
    out.tried.push_back(fmt::format("{}: {}", path, wrong));
  }
  return out;
}

// The first place with a file and its problem. If there is none, one message for all places.
std::string why_not_loaded(const LoadedModule& loaded) {
  for (const std::string& tried : loaded.tried)
    if (!tried.ends_with(kAbsent)) return tried;
  return fmt::format(
      "{} was not found next to the program; install the CUDA toolkit and build with meson setup "
      "-Dcuda=enabled",
      kFile);
}

}  // namespace

const LoadedModule& loaded_module() {
  static const LoadedModule loaded = load();
  return loaded;
}

CudaModule& cuda_module() {
  const LoadedModule& loaded = loaded_module();
  if (!loaded.module) fail(Fault::device, "{}", why_not_loaded(loaded));
  return *loaded.module;
}

bool has_nvidia_gpu(const std::string& pci_devices) {
  const auto word_of = [](const fs::path& file) {
    std::string word;
    std::ifstream(file) >> word;
    return word;
  };
  std::error_code ignored;
  for (const auto& device : fs::directory_iterator(pci_devices, ignored))
    if (word_of(device.path() / "vendor") == "0x10de" &&
        word_of(device.path() / "class").starts_with("0x03"))  // a display controller
      return true;
  return false;
}

std::string why_no_gpu() {
  // Check this before loading the module, which loads hundreds of megabytes of libraries.
  if (!find_library("libcuda.so.1").handle)
    return "no NVIDIA driver was found (libcuda.so.1); if this machine has a GPU, install the "
           "driver";
  if (const LibraryReport driver = cuda_library("driver"); !driver.problem.empty())
    return driver.problem;
  try {
    if (cuda_module().devices().empty())
      return "CUDA finds no GPU; check the output of nvidia-smi and the value of "
             "CUDA_VISIBLE_DEVICES";
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

GpuSurvey gpus_of_this_process() {
  GpuSurvey out{.problem = why_no_gpu()};
  if (out.problem.empty()) out.count = static_cast<int>(cuda_module().devices().size());
  return out;
}

GpuSurvey survey_gpus() {
  if (!find_library("libcuda.so.1").handle) return {.problem = why_no_gpu()};
  struct Answer {
    int count;
    char problem[1000], nccl_problem[1000];  // 0-terminated
  };
  const SharedMemory memory = SharedMemory::create(sizeof(Answer));
  auto& answer = *reinterpret_cast<Answer*>(memory.data());
  const auto write = [](char(&to)[1000], const std::string& text) { text.copy(to, sizeof to - 1); };
  const int code = run_in_child([&] {
    write(answer.problem, why_no_gpu());
    if (answer.problem[0] != 0) return 0;
    answer.count = static_cast<int>(cuda_module().devices().size());
    write(answer.nccl_problem, cuda_module().nccl_problem());
    return 0;
  });
  if (code != 0)
    return {.problem = fmt::format("the process that looked for GPUs exited with code {}", code)};
  return {answer.count, answer.problem, answer.nccl_problem};
}

}  // namespace dpt::cuda
