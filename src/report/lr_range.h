// The learning rate range test (Smith 2017, "Cyclical Learning Rates"): the loss while the learning
// rate grows from step to step, and the rate that it suggests.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace dpt {

struct LrCurve {
  std::vector<double> lr, loss;  // of each step
  std::vector<double> smooth;    // bias-corrected exponential average of the loss, as in fastai
  bool diverged = false;  // the curve ends where the loss grew beyond bounds, or was not finite
  size_t size() const { return smooth.size(); }
};

// Smooths the losses by 0.98 and ends the curve before the first that is not finite, and after the
// first whose average exceeds four times the least average. diverged: whether the run itself ended
// because its loss was not finite.
LrCurve smooth_curve(std::span<const double> lr, std::span<const double> loss, bool diverged);

struct LrSuggestion {
  // The rules of fastai's lr_find. valley: a point in the middle of the longest fall, which single
  // spikes move little. steep: where the average falls fastest.
  double valley = 0, steep = 0;
  bool falls_to_end = false;  // the fall ends where the test ended: a larger rate may be good, too
};

// As fastai does, leaves out the beginning (here a tenth of the curve) and the last five points.
// Empty if the curve has no fall; then `problem` says why and what to do.
std::optional<LrSuggestion> suggest_lr(const LrCurve& curve, std::string& problem);

// The curve as lines of characters, at most `width` wide, with the suggested rate marked; the
// horizontal axis is logarithmic.
std::string lr_chart(const LrCurve& curve, const LrSuggestion& suggestion, size_t width);
std::string lr_svg(const LrCurve& curve, const LrSuggestion& suggestion, const std::string& title);
std::string lr_json(const LrCurve& curve, const LrSuggestion& suggestion);

// Two digits, as people write learning rates: "0.0019", "1.9e-05".
std::string lr_text(double lr);

}  // namespace dpt
