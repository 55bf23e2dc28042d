// dptrain doctor: what this machine offers to dptrain, each line with a check or a cross.
#include <tuple>

#include <fmt/format.h>

#include "backend/cpu/kernels.h"
#include "backend/cpu/simd/simd.h"
#include "backend/cuda/libraries.h"
#include "backend/cuda/load.h"
#include "base/error.h"
#include "base/machine.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/spec_argument.h"
#include "data/readers/image.h"
#include "data/tables.h"

namespace dpt::commands {
namespace {

void line(bool good, std::string_view what, const std::string& found) {
  fmt::print("[{}] {:<12} {}\n", good ? "x" : " ", what, found);
}

// The module, the libraries it runs on, the driver, the GPUs.
void cuda_lines() {
  const cuda::LoadedModule& loaded = cuda::loaded_module();
  if (!loaded.module) {
    for (size_t i = 0; i < loaded.tried.size(); ++i) line(false, i ? "" : "cuda", loaded.tried[i]);
    return;
  }
  line(true, "cuda", fmt::format("{}: {}", loaded.path, loaded.module->build()));
  for (const cuda::LibraryReport& l : loaded.module->libraries())
    line(l.problem.empty(), l.name,
         l.problem.empty() ? fmt::format("{} in {}", l.version, l.path) : l.problem);
  const cuda::FoundLibrary driver = cuda::find_library("libcuda.so.1");
  line(driver.handle != nullptr, "driver", driver.handle ? driver.path : driver.problem());
  if (const std::string reason = cuda::why_no_gpu(); !reason.empty())
    return line(false, "gpu", reason);
  for (const cuda::DeviceProperties& p : loaded.module->devices())
    line(true, fmt::format("cuda:{}", p.index),
         fmt::format("{} at {}, compute {}.{}, {} multiprocessors, {} MiB", p.name, p.bus_id,
                     p.major, p.minor, p.multiprocessors, p.memory >> 20));
}

int run_doctor(const std::vector<std::string>& words) {
  Arguments arguments("doctor",
                      "What this machine offers: cores, instruction sets, libraries, GPUs, data.");
  arguments.parse(words);
  const std::vector<int> cores = usable_cores();
  line(true, "cpu",
       fmt::format("{}; {} usable core{}", cpu_name(), cores.size(), cores.size() == 1 ? "" : "s"));
  const std::string_view isa = simd_kernels().name;
  line(isa != "baseline", "kernels",
       isa == "baseline" ? "plain: this CPU has neither AVX2 nor AVX-512" : std::string(isa));
  line(!onednn_kernels().empty(), "oneDNN",
       onednn_kernels().empty() ? "built without; install libdnnl-dev and build again"
                                : "for matrix products on CPUs without own kernels");
  for (const auto& [has, name, package] : {std::tuple(reads_jpeg(), "JPEG", "libjpeg62-turbo-dev"),
                                           {reads_png(), "PNG", "libpng-dev"}})
    line(has, name,
         has ? "for folders of images"
             : fmt::format("built without; install {} and build again", package));
  line(true, "memory", fmt::format("{} MiB usable", usable_memory() >> 20));
  cuda_lines();
  for (const auto& [name, file] : {std::pair("fashion_mnist", "train-images-idx3-ubyte"),
                                   std::pair("tiny_shakespeare", "input.txt")}) {
    try {
      line(true, "data", find_files(name, "", "", {file}).at(0));
    } catch (const Error& e) {
      line(false, "data", e.what());
    }
  }
  return 0;
}

}  // namespace

Command doctor() { return {"doctor", "what this machine offers, and what is missing", run_doctor}; }

}  // namespace dpt::commands
