// The program on a machine with fake GPUs, as processes.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "cli/process.h"
#include "data/folder.h"
#include "engine/gpu/gpu_specs.h"

namespace dpt {

// A machine with so many fake GPUs.
class Machine {
 public:
  explicit Machine(int gpus) {
    const std::filesystem::path built =
        std::filesystem::read_symlink("/proc/self/exe").parent_path();
    // Any library will do for a driver.
    std::filesystem::create_symlink(built / "libother_module.so", folder_.file("libcuda.so.1"));
    folder_.write("t.yaml", kMlp);
    environment_ = {{"DPTRAIN_CUDA_MODULE", (built / "libfake_module.so").string()},
                    {"DPTRAIN_CUDA_PATH", folder_.path()},
                    {"DPT_FAKE_GPUS", std::to_string(gpus)}};
  }
  std::vector<std::string> words(const std::string& run,
                                 const std::vector<std::string>& more) const {
    std::vector<std::string> out = {file("t.yaml"), "evaluate=true", "out=" + file(run)};
    out.insert(out.end(), more.begin(), more.end());
    return out;
  }
  Variables environment(const Variables& more = {}) const {
    Variables out = environment_;
    out.insert(out.end(), more.begin(), more.end());
    return out;
  }
  Finished train(const std::string& run, const std::vector<std::string>& more) const {
    return dptrain(words(run, more), environment());
  }
  std::string file(const std::string& name) const { return folder_.file(name); }
  std::string weights(const std::string& run) const {
    return read_file(file(run + "/model.safetensors"));
  }
  // Of two runs that only differ in who sums in which order.
  void same_numbers(const std::string& a, const std::string& b) const {
    const std::string tolerance = std::to_string(kSameNumbers);
    const Finished compared =
        dptrain({"compare", file(a), file(b), "--rtol", tolerance, "--atol", tolerance});
    CHECK_MESSAGE(compared.code == 0, compared.out << compared.err);
  }

 private:
  Folder folder_;
  Variables environment_;
};

}  // namespace dpt
