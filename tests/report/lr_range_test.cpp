#include "report/lr_range.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include <doctest/doctest.h>

namespace dpt {
namespace {

// A hundred steps from 1e-7 to 10, with this loss at step i and rate lr.
LrCurve curve_of(const std::function<double(int i, double lr)>& loss_at) {
  std::vector<double> lr, loss;
  for (int i = 0; i < 100; ++i) {
    lr.push_back(1e-7 * std::pow(10 / 1e-7, i / 99.0));
    loss.push_back(loss_at(i, lr.back()));
  }
  return smooth_curve(lr, loss, false);
}
// Falls from 2.3 to 0.8 around a rate of 1e-3, and diverges beyond 0.1.
double usual(double lr) {
  return 2.3 - 1.5 / (1 + std::exp(-2 * (std::log10(lr) + 3))) + 90 * lr * lr;
}
LrSuggestion suggested(const LrCurve& curve) {
  std::string problem;
  const auto found = suggest_lr(curve, problem);
  REQUIRE_MESSAGE(found, problem);
  return *found;
}
std::string problem_of(const LrCurve& curve) {
  std::string problem;
  CHECK(!suggest_lr(curve, problem));
  return problem;
}

// Expected rates: the code of fastai's `valley` and `steep`, run in Python on the same numbers.
// Both choose one of the curve's rates, so only the rounding of std::pow may differ.
doctest::Approx rate(double lr) { return doctest::Approx(lr).epsilon(1e-9); }

TEST_CASE("valley and steep are fastai's") {
  const LrCurve curve = curve_of([](int, double lr) { return usual(lr); });
  CHECK(curve.diverged);
  CHECK(curve.size() == 87);  // the first average of four times the least
  const LrSuggestion s = suggested(curve);
  CHECK(s.valley == rate(0.00017073526474706903));
  CHECK(s.steep == rate(0.005857020818056661));
  CHECK(!s.falls_to_end);
}

TEST_CASE("spikes and noise leave the valley within the fall of the loss") {
  // The loss falls between rates of 1e-5 and 1e-1. The steepest point jumps out of that.
  CHECK(suggested(curve_of([](int i, double lr) {
          return usual(lr) + (i == 40 ? 20 : 0);
        })).valley == rate(0.0010974987654930567));
  const LrSuggestion low =
      suggested(curve_of([](int i, double lr) { return usual(lr) - (i == 30 ? 2 : 0); }));
  CHECK(low.valley == rate(0.00020565123083486514));
  CHECK(low.steep == rate(2.2051307399030455e-05));
  CHECK(suggested(curve_of([](int i, double lr) {
          return usual(lr) + 0.1 * std::sin(i * i);
        })).valley == rate(0.0006280291441834253));
}

TEST_CASE("a loss that falls to the end gives the middle, and says so") {
  const LrSuggestion s = suggested(curve_of([](int i, double) { return 3 - 0.02 * i; }));
  CHECK(s.valley == rate(0.0013219411484660286));
  CHECK(s.falls_to_end);
}

TEST_CASE("curves without a fall have no suggestion") {
  CHECK(problem_of(curve_of([](int i, double) {
          return 2.3 + 0.02 * std::sin(i * i);
        })).starts_with("the loss does not fall at any learning rate from 1e-07 to 10"));
  const std::string brief = problem_of(curve_of([](int i, double) {
    return i < 40 ? 2 + 0.01 * (i % 2) : i < 43 ? 1.0 : 1e6;
  }));
  CHECK_MESSAGE(
      brief.starts_with("the loss falls too little, or in too few steps, before it diverges at"),
      brief);
  const LrCurve up = curve_of([](int i, double) { return 2.3 + 0.5 * i * i; });
  CHECK(up.size() == 8);
  CHECK(
      problem_of(up).starts_with("the loss diverges after 8 steps, at a learning rate of 3.7e-07"));
  const LrCurve none = curve_of([](int, double) { return std::nan(""); });
  CHECK(none.size() == 0);
  CHECK(none.diverged);
  CHECK(problem_of(none).starts_with("the loss diverges after 0 steps"));
}

TEST_CASE("a curve ends before a loss that is not finite; losses may be negative") {
  const LrCurve curve = curve_of(
      [](int i, double) { return i == 50 ? std::numeric_limits<double>::infinity() : -0.1 * i; });
  CHECK(curve.size() == 50);
  CHECK(curve.diverged);
  CHECK(suggested(curve).valley > 1e-6);
  const LrCurve one = smooth_curve(std::vector<double>{1}, std::vector<double>{5}, true);
  CHECK(one.smooth.at(0) == doctest::Approx(5));  // the first average is the loss itself
}

TEST_CASE("the chart marks the valley in each line, between the axes") {
  const LrCurve curve = curve_of([](int, double lr) { return usual(lr); });
  const std::string chart = lr_chart(curve, suggested(curve), 80);
  CHECK(std::ranges::count(chart, '\n') == 13);
  CHECK(std::ranges::count(chart, '|') >= 10);  // the curve hides one or two
  CHECK(chart.find("1e-03") != chart.npos);
  size_t begin = 0;
  for (size_t end = 0; (end = chart.find('\n', begin)) != chart.npos; begin = end + 1)
    CHECK(end - begin <= 80);
  CHECK(lr_svg(curve, suggested(curve), "a < b").find("a &lt; b") != std::string::npos);
  CHECK(
      lr_json(curve, suggested(curve)).starts_with("{\"valley\": 0.000170735265, \"steep\": 0.00"));
}

}  // namespace
}  // namespace dpt
