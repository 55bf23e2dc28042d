#include "backend/cpu/matrix_update.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <doctest/doctest.h>

#include "optim/fixture.h"

namespace dpt {
namespace {

constexpr formula::Muon<float> kMuon{.momentum = 0.95F,
                                     .one_minus_momentum = 0.05F,
                                     .a = 3.4445F,
                                     .b = -4.7750F,
                                     .c = 2.0315F,
                                     .eps = 1e-7F,
                                     .lr = 1};

std::vector<float> orthogonal(std::vector<float> x, int64_t rows, int64_t columns,
                              const formula::Muon<float>& s = kMuon) {
  std::vector<float> workspace(orthogonal_workspace(rows, columns));
  make_orthogonal(s, x.data(), rows, columns, workspace.data());
  return x;
}

// The numbers have a norm of 1 at first, with roundings of 2^-24. Five steps multiply what is small
// by at most 3.4445 each, together 485, and add roundings of their own: 485 * 2^-24 = 2.9e-5.
TEST_CASE("matrices become those of torch.optim.Muon in float64") {
  const optim_test::Document doc = optim_test::fixture("muon");
  const auto& matrices = optim_test::at(optim_test::at(doc.root, "cases").items.at(0), "matrices");
  CHECK(matrices.items.size() == 7);
  for (const Node& m : matrices.items) {
    const auto shape = optim_test::numbers(optim_test::at(m, "shape"));
    const auto x = optim_test::numbers(optim_test::at(m, "x"));
    const auto expected = optim_test::numbers(optim_test::at(m, "orthogonal"));
    const auto rows = static_cast<int64_t>(shape[0]), columns = static_cast<int64_t>(shape[1]);
    CAPTURE(rows);
    CAPTURE(columns);
    const std::vector<float> out = orthogonal({x.begin(), x.end()}, rows, columns);
    double worst = 0;
    for (size_t i = 0; i < out.size(); ++i)
      worst = std::max(worst, std::abs(double{out[i]} - expected[i]));
    CAPTURE(worst);
    CHECK(worst <= 2.9e-5);
  }
}

TEST_CASE("the transpose of a matrix becomes the transpose, and no step only divides by the norm") {
  std::vector<float> x(size_t{70} * 33), y(x.size());
  for (size_t i = 0; i < x.size(); ++i) x[i] = std::sin(static_cast<float>(i * i % 1009));
  for (size_t i = 0; i < x.size(); ++i) y[i % 33 * 70 + i / 33] = x[i];
  formula::Muon<float> s = kMuon;
  s.steps = 0;  // only the norm, which is a sum in another order
  const std::vector<float> high = orthogonal(x, 70, 33), wide = orthogonal(y, 33, 70);
  double worst = 0;
  for (size_t i = 0; i < x.size(); ++i)
    worst = std::max(worst, std::abs(double{high[i]} - double{wide[i % 33 * 70 + i / 33]}));
  CHECK(worst <= 2.9e-5);
  double sum = 0;
  for (const float v : orthogonal(x, 70, 33, s)) sum += double{v} * v;
  CHECK(sum == doctest::Approx(1).epsilon(1e-6));
}

TEST_CASE("zeros stay zeros, and nan is seen") {
  CHECK(orthogonal(std::vector<float>(12), 3, 4) == std::vector<float>(12));
  const std::vector<float> out = orthogonal({1, 2, 3, NAN, 5, 6}, 3, 2);
  CHECK(std::ranges::all_of(out, [](float v) { return std::isnan(v); }));
}

TEST_CASE("the learning rate depends on the shape as in torch.optim.Muon") {
  formula::Muon<double> s{};
  s.lr = 0.5;
  CHECK(step_size(s, 9, 4) == 0.5 * 1.5);
  CHECK(step_size(s, 4, 9) == 0.5);
  s.match_rms = true;
  CHECK(step_size(s, 9, 4) == doctest::Approx(0.5 * 0.2 * 3).epsilon(1e-15));
  CHECK(step_size(s, 4, 9) == step_size(s, 9, 4));
}

}  // namespace
}  // namespace dpt
