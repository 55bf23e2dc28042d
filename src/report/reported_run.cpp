#include "report/reported_run.h"

#include <array>
#include <cerrno>
#include <filesystem>
#include <span>
#include <system_error>

#include <fmt/format.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "base/error.h"
#include "base/files.h"
#include "base/sha256.h"
#include "base/units.h"

namespace dpt {
namespace {

constexpr size_t kMostText = 4 * kMiB;  // larger files would make no readable page

std::string text_of_file(const std::string& path) {
  try {
    std::error_code error;
    return std::filesystem::exists(path, error) ? read_file(path, kMostText) : "";
  } catch (const Error&) {
    return "";
  }
}

// Empty if the file cannot be read.
std::string hash_of(const std::string& path) {
  try {
    const Descriptor file(open_regular_file(path));
    std::array<std::byte, 1 << 16> block;
    Sha256 out;
    while (true) {
      const ssize_t n = ::read(file.get(), block.data(), block.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return "";
      if (n == 0) return out.hex();
      out.update(std::span<const std::byte>(block).first(static_cast<size_t>(n)));
    }
  } catch (const Error&) {
    return "";
  }
}

}  // namespace

std::string ReportedRun::environment_text(const std::string& key) const {
  if (!summary.environment) return "";
  if (const auto x = summary.environment->number(key)) return fmt::format("{:.15g}", *x);
  return std::string(summary.environment->text(key));
}

ReportedRun read_reported(const std::string& path, const std::string& name, uint64_t most_hashed) {
  ReportedRun out{.name = name, .summary = summarize_run(path), .curves = read_curves(path)};
  out.spec = text_of_file(path + "/spec.resolved.yaml");
  out.plan = text_of_file(path + "/plan.txt");
  out.plan_svg = text_of_file(path + "/plan.svg");
  out.confusion = text_of_file(path + "/confusion_matrix.csv");
  for (const char* file : {"model.safetensors", "best.safetensors"}) {
    std::error_code error;
    const std::string weights = path + "/" + file;
    const auto bytes = std::filesystem::file_size(weights, error);
    if (error) continue;
    out.weights.push_back({file, bytes <= most_hashed ? hash_of(weights) : ""});
  }
  return out;
}

std::string epoch_text(const RunCurves& curves, double step) {
  if (curves.steps_of_epoch() == 0) return fmt::format("step {:.0f}", step);
  return fmt::format("epoch {:.4g}", step / static_cast<double>(curves.steps_of_epoch()));
}

}  // namespace dpt
