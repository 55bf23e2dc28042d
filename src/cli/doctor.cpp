// dptrain doctor: what this machine offers to dptrain, each line with a check or a cross.
#include <tuple>

#include <fmt/format.h>

#include "backend/cpu/kernels.h"
#include "backend/cpu/simd/simd.h"
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

int run_doctor(const std::vector<std::string>& words) {
  Arguments arguments("doctor",
                      "What this machine offers: cores, instruction sets, libraries, data.");
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
  line(false, "cuda", "this dptrain was built for CPUs only");
  try {
    const auto files = find_files("fashion_mnist", "", "", {"train-images-idx3-ubyte"});
    line(true, "data", files.at(0));
  } catch (const Error& e) {
    line(false, "data", e.what());
  }
  return 0;
}

}  // namespace

Command doctor() { return {"doctor", "what this machine offers, and what is missing", run_doctor}; }

}  // namespace dpt::commands
