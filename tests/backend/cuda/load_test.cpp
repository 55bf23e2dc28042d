#include "backend/cuda/interface/load.h"

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <tuple>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "base/error.h"
#include "cli/process.h"
#include "data/folder.h"

namespace dpt::cuda {
namespace {

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// An environment variable for as long as this lives.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) {
    if (const char* old = std::getenv(name)) old_ = old;
    setenv(name, value.c_str(), 1);
  }
  ~Variable() { setenv(name_, old_.c_str(), 1); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
  std::string old_;
};

TEST_CASE("a library is looked for in the folders that were named, then where the loader looks") {
  const Folder folder;
  folder.write("libdptrain_none.so.1", "no library");
  const Variable named("DPTRAIN_CUDA_PATH", folder.path() + ":" + folder.path() + "/none");
  const FoundLibrary broken = find_library("libdptrain_none.so.1");
  CHECK(broken.handle == nullptr);
  REQUIRE(broken.tried.size() >= 3);
  CHECK(broken.tried[0] == folder.path() + "/libdptrain_none.so.1: file too short");
  CHECK(broken.tried[1] == "not in " + folder.path() + "/none");
  CHECK(broken.tried[2] == "not in the search path of the dynamic loader");
  CHECK(broken.problem().starts_with("libdptrain_none.so.1 can't be loaded: " + broken.tried[0] +
                                     "; " + broken.tried[1]));
  CHECK(broken.problem().ends_with("; set DPTRAIN_CUDA_PATH to its folder"));

  const FoundLibrary zlib = find_library("libz.so.1");
  CHECK(zlib.problem().empty());
  CHECK(zlib.path.ends_with("/libz.so.1"));
  CHECK(zlib.path.front() == '/');
  CHECK(symbol_of(zlib, "zlibVersion") != nullptr);
  CHECK(symbol_of(zlib, "no_such_function") == nullptr);
}

TEST_CASE("the packages of a Python environment are searched") {
  const Folder folder;
  const std::string packages = "lib/python3.11/site-packages/nvidia/";
  folder.write(packages + "cudnn/lib/libdptrain_none.so.1", "no library");
  folder.write(packages + "nccl/lib/other", "");
  const Variable environment("VIRTUAL_ENV", folder.path());
  const std::string problem = find_library("libdptrain_none.so.1").problem();
  CHECK(has(problem,
            folder.path() + "/" + packages + "cudnn/lib/libdptrain_none.so.1: file too short"));
  CHECK(has(problem, "not in " + folder.path() + "/" + packages + "nccl/lib"));
}

TEST_CASE("of a missing library the message says what to install") {
  const auto problem = [](const char* name) {
    return FoundLibrary{.name = name,
                        .tried = {"not in /there", "not in the search path of the dynamic loader"}}
        .problem();
  };
  const std::string tried =
      " can't be loaded: not in /there; not in the search path of the dynamic loader; install ";
  CHECK(problem("libcudart.so.13") ==
        "libcudart.so.13" + tried +
            "NVIDIA's cuda-cudart-13-0 by apt, or nvidia-cuda-runtime by pip into an active "
            "environment, or set DPTRAIN_CUDA_PATH to its folder");
  CHECK(has(problem("libcublasLt.so.13"),
            "; install NVIDIA's libcublas-13-0 by apt, or nvidia-cublas by pip "));
  CHECK(has(problem("libcudnn_graph.so.9"),
            "; install NVIDIA's libcudnn9-cuda-13 by apt, or nvidia-cudnn-cu13 by pip "));
  CHECK(problem("libcuda.so.1") ==
        "libcuda.so.1" + tried + "NVIDIA's driver, or set DPTRAIN_CUDA_PATH to its folder");
}

// A folder of libraries, each a link to another.
class Libraries {
 public:
  void put(const std::string& name, const std::string& library) const {
    std::filesystem::create_symlink(library, path(name));
  }
  std::string path(const std::string& name) const { return folder_.file(name); }
  // Doctor's output with these before all others, and with this module, or its own.
  std::string doctor(const std::string& module, Variables environment = {}) const {
    environment.emplace_back("DPTRAIN_CUDA_PATH", folder_.path());
    if (!module.empty()) environment.emplace_back("DPTRAIN_CUDA_MODULE", module);
    const Finished doctor = dptrain({"doctor"}, environment);
    CHECK(doctor.code == 0);
    CHECK(has(doctor.out, "] data "));  // the last line
    return doctor.out;
  }

 private:
  Folder folder_;
};

// The line of doctor's on this.
std::string line_of(const std::string& doctor, const std::string& name) {
  const size_t begin = doctor.find("] " + name + " ");
  if (begin == std::string::npos) return "no line on " + name;
  return doctor.substr(begin - 2, doctor.find('\n', begin) - begin + 2);
}
std::string built(const char* library) {
  return (std::filesystem::read_symlink("/proc/self/exe").parent_path() / library).string();
}

TEST_CASE("a module that can't be used is told apart from none") {
  const Folder folder;
  folder.write("text.so", "no library");
  const auto line = [](const std::string& module) {
    return line_of(Libraries().doctor(module), "cuda");
  };
  const std::string mark = "[ ] cuda         ", text = folder.path() + "/text.so";
  CHECK(line(folder.path() + "/none.so") ==
        mark + folder.path() +
            "/none.so: no such file, the value of DPTRAIN_CUDA_MODULE; set it to the path of a "
            "libdptrain_cuda.so, or unset it");
  CHECK(line(text) == mark + text + ": " + text + ": file too short");
  CHECK(line("/proc/self/exe").starts_with(mark + "/proc/self/exe: "));
  const std::string take = "; use the libdptrain_cuda.so that was built with this program";
  const std::string zlib = find_library("libz.so.1").path;
  CHECK(line(zlib) == mark + zlib + ": it is not a dptrain module" + take);
  const std::string other = built("libother_module.so"), found = line(other);
  CHECK(found.starts_with(mark + other +
                          ": it was built for dptrain 0.0.1, but this program is dptrain "));
  CHECK(found.ends_with(take));
}

TEST_CASE("doctor has a line on every library and the driver, with a module and without") {
  const Libraries none;
  for (const std::string module : {"", "/none.so"})
    for (const char* name :
         {"cuda", "CUDA runtime", "cuBLASLt", "cuDNN", "NVRTC", "NCCL", "driver"}) {
      CAPTURE(module);
      CHECK(line_of(none.doctor(module), name).find("no line") == std::string::npos);
    }
}

TEST_CASE("doctor does not tick another library instead of one") {
  const std::string zlib = find_library("libz.so.1").path;
  for (const auto& [name, file, function] :
       {std::tuple("cuDNN", "libcudnn.so.9", "cudnnGetVersion"),
        {"NVRTC", "libnvrtc.so.13", "nvrtcVersion"},
        {"NCCL", "libnccl.so.2", "ncclGetVersion"},
        {"driver", "libcuda.so.1", "cuDriverGetVersion"}}) {
    const Libraries libraries;
    libraries.put(file, zlib);
    for (const std::string module : {"", "/none.so"}) {
      const std::string line = line_of(libraries.doctor(module), name);
      CHECK(line.starts_with(
          fmt::format("[ ] {:<12} {} has no {}; install ", name, libraries.path(file), function)));
      CHECK(line.ends_with(", or set DPTRAIN_CUDA_PATH to its folder"));
    }
  }
}

TEST_CASE("cuDNN is not ticked without the library that it loads later") {
  const Libraries libraries;
  libraries.put("libcudnn.so.9", built("libother_module.so"));
  const std::string line = line_of(libraries.doctor("/none.so"), "cuDNN");
  if (const FoundLibrary graph = find_library("libcudnn_graph.so.9"); graph.handle)
    CHECK(line == "[x] cuDNN        9.1.0 in " + libraries.path("libcudnn.so.9"));
  else
    CHECK(line.starts_with("[ ] cuDNN        libcudnn_graph.so.9 can't be loaded: not in "));
}

TEST_CASE("doctor shows the driver's version, and does not tick one that does not start") {
  const Libraries libraries;
  libraries.put("libcuda.so.1", built("libother_module.so"));
  const std::string fake = built("libfake_module.so"), path = libraries.path("libcuda.so.1");
  const auto driver = [&](const std::string& module, const Variables& environment) {
    return line_of(libraries.doctor(module, environment), "driver");
  };
  CHECK(driver(fake, {}) == "[x] driver       for CUDA 13.0 in " + path);
  CHECK(driver("/none.so", {}) == "[x] driver       for CUDA 13.0 in " + path);
  CHECK(driver(fake, {{"DPT_FAKE_DRIVER", "12040"}}) ==
        "[ ] driver       for CUDA 12.4 in " + path);
  const std::string stub = path +
                           " is a stub library, only meant for linking; remove its folder from "
                           "LD_LIBRARY_PATH and DPTRAIN_CUDA_PATH, and install NVIDIA's driver";
  for (const std::string& module : {fake, std::string("/none.so")})
    CHECK(driver(module, {{"DPT_FAKE_DRIVER", "0"}}) == "[ ] driver       " + stub);
  CHECK(line_of(libraries.doctor(fake, {{"DPT_FAKE_DRIVER", "0"}}), "gpu") ==
        "[ ] gpu          " + stub);
}

// The real module, which carries the folder that it was linked in.
TEST_CASE("a folder that is named goes before the module's own" *
          doctest::skip(loaded_module().module == nullptr)) {
  const Libraries libraries;
  libraries.put("libcudart.so.13", find_library("libcudart.so.13").path);
  CHECK(line_of(libraries.doctor(""), "CUDA runtime")
            .ends_with(" in " + libraries.path("libcudart.so.13")));
}

constexpr const char* kSpec =
    "version: 1\nname: t\ndata:\n"
    "  dataset: {random: {samples: 8, in_features: 2, out_features: 1}}\n"
    "  batch_size: 4\nmodel: [{linear: 1}]\nloss: mse_loss\n"
    "optimizer: {sgd: 0.1}\nepochs: 1\n";

TEST_CASE("device: cuda without a module ends in one sentence that says what to do") {
  const Libraries libraries;
  libraries.put("libcuda.so.1", built("libother_module.so"));
  const Folder folder;
  folder.write("t.yaml", kSpec);
  const auto reason = [&](const std::string& module, const char* driver) {
    const Finished run =
        dptrain({folder.file("t.yaml"), "out=" + folder.file("run"), "device=cuda"},
                {{"DPTRAIN_CUDA_PATH", libraries.path("")},
                 {"DPTRAIN_CUDA_MODULE", module},
                 {"DPT_FAKE_DRIVER", driver}});
    CHECK(run.code == 3);
    CHECK(run.out.empty());
    CHECK(run.err.starts_with("dptrain: device 'cuda' cannot be used: "));
    return run.err;
  };
  CHECK(has(reason("/none.so", "13000"),
            "/none.so: no such file, the value of DPTRAIN_CUDA_MODULE; "));
  CHECK(has(reason(built("libother_module.so"), "13000"),
            "; use the libdptrain_cuda.so that was built with "));
  CHECK(has(reason(built("libfake_module.so"), "0"),
            "is a stub library, only meant for linking; remove "));
}

TEST_CASE("device: cuda without a driver ends in one sentence" *
          doctest::skip(find_library("libcuda.so.1").handle != nullptr)) {
  const std::string reason =
      "no NVIDIA driver was found (libcuda.so.1); if this machine has a GPU, install the driver";
  CHECK(why_no_gpu() == reason);
  const Folder folder;
  folder.write("t.yaml", kSpec);
  const std::string spec = folder.path() + "/t.yaml", out = "out=" + folder.path() + "/run";
  const Finished cuda = dptrain({spec, out, "device=cuda"});
  CHECK(cuda.code == 3);
  CHECK(cuda.out.empty());
  CHECK(cuda.err ==
        "dptrain: device 'cuda' cannot be used: " + reason +
            ". Set `device: cpu`, or leave `device` out; `dptrain doctor` shows details\n");
  const Finished automatic = dptrain({spec, out});
  CHECK(automatic.code == 0);
  CHECK(has(automatic.out + automatic.err, "device: cpu (" + reason + ")\n") == has_nvidia_gpu());
}

TEST_CASE("a GPU of NVIDIA's is known by the list of PCI devices") {
  const Folder folder;
  CHECK_FALSE(has_nvidia_gpu(folder.path() + "/none"));
  folder.write("00/vendor", "0x10de\n");
  folder.write("00/class", "0x040300\n");  // its sound
  folder.write("01/vendor", "0x8086\n");
  folder.write("01/class", "0x030000\n");
  CHECK_FALSE(has_nvidia_gpu(folder.path()));
  folder.write("02/vendor", "0x10de\n");
  folder.write("02/class", "0x030200\n");
  CHECK(has_nvidia_gpu(folder.path()));
}

// The message of the error that f throws.
std::string message_of(const std::function<void()>& f, Fault fault) {
  try {
    f();
  } catch (const Error& e) {
    CHECK(e.fault() == fault);
    return e.what();
  }
  return "nothing was thrown";
}

// The real module, on a machine with CUDA's libraries and neither driver nor GPU.
TEST_CASE("the module says what is missing" *
          doctest::skip(loaded_module().module == nullptr ||
                        find_library("libcuda.so.1").handle != nullptr)) {
  CudaModule& module = cuda_module();
  CHECK(has(module.build(), "own kernels for compute "));
  for (const LibraryReport& library : module.libraries()) {
    CAPTURE(library.name);
    CHECK((!library.problem.empty() || (!library.version.empty() && !library.path.empty())));
    if (library.needed) CHECK(library.problem.empty());
  }
  CHECK(message_of([&] { module.devices(); }, Fault::device) ==
        "the NVIDIA driver is missing or not running; install a driver for CUDA 13.0");
  CHECK(message_of([&] { module.open(0); }, Fault::device) ==
        "the NVIDIA driver is missing or not running; install a driver for CUDA 13.0");
}

}  // namespace
}  // namespace dpt::cuda
