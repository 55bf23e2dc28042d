#include "train/best_weights.h"

#include <charconv>
#include <filesystem>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/stderr.h"
#include "checkpoint/model_file.h"
#include "formats/safetensors.h"

namespace dpt {

namespace fs = std::filesystem;

std::string best_weights_file(const std::string& folder) { return folder + "/best.safetensors"; }

std::optional<int64_t> step_of_best_weights(const std::string& path) {
  std::error_code error;
  if (!fs::exists(path, error)) return {};
  try {
    const SafeTensorsFile file(path);
    const auto& facts = file.metadata();
    const auto found = facts.find("step");
    int64_t step = 0;
    if (found == facts.end()) return {};
    const char* const end = found->second.data() + found->second.size();
    const auto [at, wrong] = std::from_chars(found->second.data(), end, step);
    return wrong == std::errc() && at == end ? std::optional(step) : std::nullopt;
  } catch (const Error&) {
    return {};
  }
}

void begin_best_weights(const std::string& folder, const std::string& resumed) {
  const std::string file = best_weights_file(folder);
  std::error_code error;
  if (resumed.empty()) {
    fs::remove(file, error);
    return;
  }
  const std::string metrics = metrics_of(resumed);  // beside it in the run's directory
  if (metrics.empty()) return;
  const fs::path from = fs::path(metrics).parent_path() / "best.safetensors";
  if (!fs::exists(from, error) || fs::equivalent(from, file, error)) return;
  const std::string copy = folder + "/.aside-best";
  if (fs::copy_file(from, copy, fs::copy_options::overwrite_existing, error))
    fs::rename(copy, file, error);
  if (error) print_stderr("{} cannot be copied to {}: {}\n", from.string(), file, error.message());
}

BestWeights::BestWeights(const Session& session, std::string folder, CheckpointStore& checkpoints,
                         Disk& disk)
    : session_(session), folder_(std::move(folder)), checkpoints_(checkpoints), disk_(disk) {}

void BestWeights::write(const BestValue& best, const Buffers& buffers,
                        const GradientScaler::State& scaler) {
  const std::string path = best_weights_file(folder_);
  try {
    checkpoints_.retry_with_space(path, [&] {
      save_model(session_.precision, session_.model, buffers, scaler, path, disk_,
                 {{"metric", fmt::format("{}.{}", session_.data.evaluated_set(), best.metric)},
                  {"value", fmt::format("{}", best.value)},
                  {"epoch", fmt::format("{}", best.epoch)},
                  {"step", fmt::format("{}", best.step)}});
    });
    warned_ = false;
  } catch (const std::exception& e) {
    if (!std::exchange(warned_, true))
      print_stderr(
          "the best weights so far, of step {}, could not be written: {}; the run "
          "continues\n",
          best.step, e.what());
  }
}

}  // namespace dpt
