// dptrain doctor: lists what dptrain can use on this machine, each line with a check mark or a
// cross.
#include <algorithm>
#include <atomic>
#include <thread>
#include <tuple>
#include <vector>

#include <fmt/format.h>

#include "backend/cpu/kernels.h"
#include "backend/cpu/simd/simd.h"
#include "backend/cuda/interface/libraries.h"
#include "backend/cuda/interface/load.h"
#include "base/count.h"
#include "base/disk.h"
#include "base/error.h"
#include "base/installation.h"
#include "base/machine.h"
#include "base/stdout.h"
#include "base/units.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/spec_argument.h"
#include "comm/links/load.h"
#include "data/readers/image.h"
#include "data/tables.h"
#include "formats/json.h"

namespace dpt::commands {
namespace {

// One part of this machine that doctor looks for; printed as a line, or as an entry of JSON.
struct Found {
  bool good = false;
  std::string what, text;
};
using Report = std::vector<Found>;

void add(Report& out, bool good, std::string_view what, const std::string& text) {
  out.push_back({.good = good, .what = std::string(what), .text = text});
}

void add_library(Report& out, bool good, const cuda::LibraryReport& l) {
  add(out, good, l.name,
      l.problem.empty() ? fmt::format("{} in {}", l.version, l.path) : l.problem);
}

// Whether the driver initializes; without a module, only whether the library was found.
bool starts(const cuda::LibraryReport& driver, cuda::CudaModule* module) {
  try {
    if (driver.problem.empty() && module) module->devices();
  } catch (const Error&) {
    return false;
  }
  return driver.problem.empty();
}

// NCCL's ranks share files in /dev/shm. Containers often limit it to 64 MiB.
void add_shared_memory(Report& out) {
  constexpr int64_t kEnough = 256 * kMiB;
  const int64_t free = Disk().free_bytes("/dev/shm");
  add(out, free >= kEnough, "/dev/shm",
      free >= kEnough
          ? fmt::format("{} MiB free, for NCCL", free / int64_t{kMiB})
          : fmt::format("{} MiB free, but NCCL may need {} with several GPUs; start a container "
                        "with --shm-size=1g",
                        std::max<int64_t>(free, 0) / int64_t{kMiB}, kEnough / int64_t{kMiB}));
}

// Lines about the CUDA module, the libraries it uses, the driver and the GPUs.
void add_cuda(Report& out) {
  const auto& [module, path, tried] = cuda::loaded_module();
  if (module) add(out, true, "cuda", fmt::format("{}: {}", path, module->build()));
  for (size_t i = 0; i < tried.size() && !module; ++i) add(out, false, i ? "" : "cuda", tried[i]);
  for (const cuda::LibraryReport& l : module ? module->libraries() : cuda::cuda_libraries())
    add_library(out, l.problem.empty(), l);
  const cuda::LibraryReport driver = cuda::cuda_library("driver");
  add_library(out, starts(driver, module), driver);
  if (const std::string reason = cuda::why_no_gpu(); !reason.empty())
    return add(out, false, "gpu", reason);
  const std::vector<cuda::DeviceProperties> gpus = module->devices();
  for (const cuda::DeviceProperties& p : gpus)
    add(out, true, fmt::format("cuda:{}", p.index),
        fmt::format("{} at {}, compute {}.{}, {} multiprocessors, {} MiB", p.name, p.bus_id,
                    p.major, p.minor, p.multiprocessors, p.memory / kMiB));
  if (gpus.size() > 1) add_shared_memory(out);
}

// The measured rate of fma: on one core, and on all at once.
void add_peak(Report& out, size_t cores) {
  const double alone = fma_flops();
  std::atomic<double> all = 0;
  std::vector<std::jthread> threads(cores);
  for (std::jthread& t : threads) t = std::jthread([&] { all += fma_flops(); });
  threads.clear();  // joins them
  add(out, true, "fp32",
      fmt::format("fma: {:.1f} GFLOP/s on one core, {:.1f} GFLOP/s on all at once", alone * 1e-9,
                  all * 1e-9));
}

// What can carry data between hosts.
void add_links(Report& out) {
  for (const std::string_view backend : link_backends()) {
    const auto& [module, path, problem] = loaded_link_module(backend);
    add(out, module != nullptr, backend,
        module ? fmt::format("{}: {}", path, module->build()) : problem);
  }
}

Report report_of_machine() {
  Report out;
  const std::vector<int> cores = usable_cores();
  add(out, true, "cpu", fmt::format("{}; {}", cpu_name(), counted(cores.size(), "usable core")));
  const std::string_view isa = simd_kernels().name;
  add(out, isa != "baseline", "kernels",
      isa == "baseline" ? "baseline: this CPU has neither AVX2 nor AVX-512" : std::string(isa));
  if (isa != "baseline") add_peak(out, cores.size());
  const Bf16Probe& bf16 = bf16_probe();
  add(out, bf16.faster() || bf16.tiles_faster(), "bf16", text_of(bf16));
  add(out, !onednn_kernels().empty(), "oneDNN",
      onednn_kernels().empty() ? "built without; " + build_again_with("libdnnl-dev")
                               : "for matrix products where dptrain has no kernel of its own");
  for (const auto& [has, name, package] : {std::tuple(reads_jpeg(), "JPEG", "libjpeg62-turbo-dev"),
                                           {reads_png(), "PNG", "libpng-dev"},
                                           {reads_webp(), "WebP", "libwebp-dev"},
                                           {reads_tiff(), "TIFF", "libtiff-dev"}})
    add(out, has, name,
        has ? "for folders of images" : "built without; " + build_again_with(package));
  add(out, true, "memory", fmt::format("{} MiB usable", usable_memory() / kMiB));
  add_cuda(out);
  add_links(out);
  if (const std::string configs = installed_file("configs"); !configs.empty())
    add(out, true, "configs", configs + ": dptrain configs/NAME.yaml reads them");
  for (const auto& [name, file] : {std::pair("fashion_mnist", "train-images-idx3-ubyte"),
                                   std::pair("tiny_shakespeare", "input.txt")}) {
    try {
      add(out, true, "data", find_files(name, "", "", {file}).at(0));
    } catch (const Error& e) {
      add(out, false, "data", e.what());
    }
  }
  return out;
}

struct DoctorArguments {
  bool json = false;
};

void declare_doctor(Arguments& arguments, DoctorArguments& given) {
  arguments.about(
      "Reports what this machine offers: cores, instruction sets, libraries, GPUs, data.");
  arguments.flag("--json", given.json, "print JSON");
}

int run_doctor(DoctorArguments& given) {
  const Report report = report_of_machine();
  Json entries = Json::array();
  for (const Found& f : report)
    entries.push(Json{{"what", f.what}, {"ok", f.good}, {"text", f.text}}.on_line(0));
  if (given.json) {
    print_stdout("{}\n", Json{{"found", std::move(entries)}}.dump());
    return 0;
  }
  for (const Found& f : report)
    print_stdout("[{}] {:<12} {}\n", f.good ? "x" : " ", f.what, f.text);
  return 0;
}

}  // namespace

Command doctor() {
  return make_command("doctor", "report what this machine offers and what is missing",
                      declare_doctor, run_doctor);
}

}  // namespace dpt::commands
