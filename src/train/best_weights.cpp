#include "train/best_weights.h"

#include <charconv>
#include <filesystem>
#include <map>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/stderr.h"
#include "checkpoint/model_file.h"
#include "formats/safetensors.h"

namespace dpt {

namespace fs = std::filesystem;

namespace {

// The metadata of a safetensors file; empty if it cannot be read as one.
std::map<std::string, std::string> facts_of(const std::string& path) {
  std::error_code error;
  if (!fs::exists(path, error)) return {};
  try {
    return SafeTensorsFile(path).metadata();
  } catch (const Error&) {
    return {};
  }
}

template <typename T>
std::optional<T> number_in(const std::string& text) {
  T out{};
  const char* const end = text.data() + text.size();
  const auto [at, wrong] = std::from_chars(text.data(), end, out);
  return wrong == std::errc() && at == end ? std::optional(out) : std::nullopt;
}

}  // namespace

std::string best_weights_file(const std::string& folder) { return folder + "/best.safetensors"; }

std::optional<int64_t> step_of_best_weights(const std::string& path) {
  const std::map<std::string, std::string> facts = facts_of(path);
  return facts.contains("step") ? number_in<int64_t>(facts.at("step")) : std::nullopt;
}

std::optional<std::string> text_of_best_weights(const std::string& path) {
  const std::map<std::string, std::string> facts = facts_of(path);
  if (!facts.contains("metric") || !facts.contains("value") || !facts.contains("epoch")) return {};
  const std::optional<double> value = number_in<double>(facts.at("value"));
  if (!value) return {};
  return fmt::format("{} {:.4f}, epoch {}", facts.at("metric"), *value, facts.at("epoch"));
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
