#include "report/lr_range.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include <fmt/format.h>

#include "base/count.h"
#include "formats/json.h"

namespace dpt {
namespace {

// The longest sequence of ever lower averages, not necessarily neighbors: begin and end. A noisy
// fall is one, and a spike within it is skipped.
struct Fall {
  int64_t begin = 0,
          end = 0;  // the begin is fastai's: one before the first point if none is skipped
};
Fall longest_fall(std::span<const double> y) {
  std::vector<int64_t> length(y.size(), 1);
  size_t end = 0;
  for (size_t i = 1; i < y.size(); ++i)
    for (size_t j = 0; j < i; ++j) {
      if (y[i] < y[j] && length[i] < length[j] + 1) length[i] = length[j] + 1;
      if (length[end] < length[i]) end = i;
    }
  return {.begin = static_cast<int64_t>(end) - length[end], .end = static_cast<int64_t>(end)};
}

size_t steepest(std::span<const double> lr, std::span<const double> y) {
  size_t best = 0;
  double least = 0;
  for (size_t i = 0; i + 1 < y.size(); ++i) {
    const double slope = (y[i + 1] - y[i]) / std::log(lr[i + 1] / lr[i]);
    if (i == 0 || slope < least) best = i, least = slope;
  }
  return best;
}

}  // namespace

LrCurve smooth_curve(std::span<const double> lr, std::span<const double> loss, bool diverged) {
  constexpr double kKept = 0.98, kMost = 4;
  LrCurve out{.diverged = diverged};
  double average = 0, weight = 1, least = 0;
  for (size_t i = 0; i < lr.size(); ++i) {
    if (!std::isfinite(loss[i])) {
      out.diverged = true;
      break;
    }
    average = kKept * average + (1 - kKept) * loss[i];
    weight *= kKept;
    const double smooth = average / (1 - weight);
    least = i == 0 ? smooth : std::min(least, smooth);
    out.lr.push_back(lr[i]);
    out.loss.push_back(loss[i]);
    out.smooth.push_back(smooth);
    if (smooth > kMost * least && least > 0) {
      out.diverged = true;
      break;
    }
  }
  return out;
}

std::optional<LrSuggestion> suggest_lr(const LrCurve& curve, std::string& problem) {
  constexpr size_t kLast = 5, kFewest = 10;
  const size_t first = curve.size() / 10;
  if (curve.size() < first + kLast + kFewest) {
    problem = fmt::format(
        "the loss diverges after {} steps, at a learning rate of {}: use a smaller --from, or more "
        "--steps",
        curve.size(), curve.size() == 0 ? "--from" : lr_text(curve.lr.back()));
    return {};
  }
  const size_t count = curve.size() - first - kLast;
  const std::span lr = std::span(curve.lr).subspan(first, count);
  const std::span y = std::span(curve.smooth).subspan(first, count);
  const Fall fall = longest_fall(y);
  // Averages of a loss that stays the same wander by about a percent.
  constexpr double kLeast = 0.02;
  constexpr int64_t kShortest = 5;
  const auto value = [&](int64_t i) { return y[static_cast<size_t>(std::max<int64_t>(0, i))]; };
  const double drop = value(fall.begin) - value(fall.end);
  const int64_t length = fall.end - fall.begin;
  if (length < kShortest || drop < kLeast * std::abs(value(fall.begin))) {
    const std::string longest =
        fmt::format("the longest fall of its average is from {:.4g} to {:.4g}, in {}",
                    value(fall.begin), value(fall.end), counted(length, "step"));
    problem = curve.diverged
                  ? fmt::format(
                        "the loss falls too little, or in too few steps, before it diverges "
                        "at a learning rate of {} ({}): use a --to of about that, with "
                        "more --steps",
                        lr_text(curve.lr.back()), longest)
                  : fmt::format(
                        "the loss does not fall at any learning rate from {} to {} ({}): "
                        "widen --from and --to, use more --steps, or check whether the net "
                        "can learn from this data",
                        lr_text(curve.lr.front()), lr_text(curve.lr.back()), longest);
    return {};
  }
  const auto at = static_cast<size_t>(fall.begin + length / 3 + length / 6);
  return LrSuggestion{
      .valley = lr[at],
      .steep = lr[steepest(lr, y)],
      .falls_to_end = !curve.diverged && fall.end + 1 == static_cast<int64_t>(count)};
}

std::string lr_text(double lr) { return fmt::format("{:.2g}", lr); }

std::string lr_json(const LrCurve& curve, const LrSuggestion& suggestion) {
  constexpr int kDigits = 9;
  const auto list = [](const std::vector<double>& values) {
    Json::Array out;
    for (const double v : values) out.push_back(Json::rounded(v, kDigits));
    return Json(std::move(out)).on_line(1);
  };
  const Json out = {{"valley", Json::rounded(suggestion.valley, kDigits)},
                    {"steep", Json::rounded(suggestion.steep, kDigits)},
                    {"diverged", curve.diverged},
                    {"lr", list(curve.lr)},
                    {"loss", list(curve.loss)},
                    {"smooth", list(curve.smooth)}};
  return out.dump() + "\n";
}

}  // namespace dpt
