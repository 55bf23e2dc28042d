#include "backend/cuda/load.h"

#include <cstdlib>
#include <filesystem>
#include <functional>

#include <doctest/doctest.h>

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
  CHECK(broken.tried[2] == "not where the loader looks");
  CHECK(broken.problem().starts_with("libdptrain_none.so.1 can't be loaded: " + broken.tried[0] +
                                     "; " + broken.tried[1]));

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

// Doctor's line on the module that the variable names.
std::string doctor_of(const std::string& module) {
  const Finished doctor = dptrain({"doctor"}, {{"DPTRAIN_CUDA_MODULE", module}});
  CHECK(doctor.code == 0);
  const size_t begin = doctor.out.find("] cuda "), end = doctor.out.find('\n', begin);
  return doctor.out.substr(begin - 2, end - begin + 2);
}

TEST_CASE("a module that can't be used is told apart from none") {
  const Folder folder;
  folder.write("text.so", "no library");
  const std::string mark = "[ ] cuda         ", text = folder.path() + "/text.so";
  CHECK(doctor_of(folder.path() + "/none.so") == mark + folder.path() + "/none.so: no such file");
  CHECK(doctor_of(text) == mark + text + ": " + text + ": file too short");
  CHECK(doctor_of("/proc/self/exe").starts_with(mark + "/proc/self/exe: "));
  const std::string zlib = find_library("libz.so.1").path;
  CHECK(doctor_of(zlib) == mark + zlib + ": it is not dptrain's");
  const std::string other =
      (std::filesystem::read_symlink("/proc/self/exe").parent_path() / "libother_module.so")
          .string();
  CHECK(doctor_of(other).starts_with(mark + other + ": it is of dptrain 0.0.1, this is dptrain "));
}

TEST_CASE("device: cuda without a driver ends in one sentence" *
          doctest::skip(find_library("libcuda.so.1").handle != nullptr)) {
  const std::string reason =
      "there is no NVIDIA driver (libcuda.so.1); on a machine with a GPU, install it";
  CHECK(why_no_gpu() == reason);
  const Folder folder;
  folder.write("t.yaml",
               "version: 1\nname: t\ndata:\n"
               "  dataset: {random: {samples: 8, in_features: 2, out_features: 1}}\n"
               "  batch_size: 4\nmodel: [{linear: 1}]\nloss: mse_loss\n"
               "optimizer: {sgd: 0.1}\nepochs: 1\n");
  const std::string spec = folder.path() + "/t.yaml", out = "out=" + folder.path() + "/run";
  const Finished cuda = dptrain({spec, out, "device=cuda"});
  CHECK(cuda.code == 3);
  CHECK(cuda.out.empty());
  CHECK(cuda.err ==
        "dptrain: device 'cuda' can't be used: " + reason +
            ". Write `device: cpu`, or leave `device` out; `dptrain doctor` says more\n");
  const Finished automatic = dptrain({spec, out});
  CHECK(automatic.code == 0);
  CHECK(has(automatic.out + automatic.err, "device: cpu (" + reason + ")\n"));
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
    CHECK(library.version.empty() == !library.problem.empty());
    CHECK(library.path.empty() == !library.problem.empty());
    if (library.needed) CHECK(library.problem.empty());
  }
  CHECK(message_of([&] { module.devices(); }, Fault::device) ==
        "the NVIDIA driver is missing or does not start; CUDA 13.0 needs one");
  CHECK(message_of([&] { module.open(0); }, Fault::device) ==
        "the NVIDIA driver is missing or does not start; CUDA 13.0 needs one");
}

}  // namespace
}  // namespace dpt::cuda
