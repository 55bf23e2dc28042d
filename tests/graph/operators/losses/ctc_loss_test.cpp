#include <cmath>
#include <limits>

#include <doctest/doctest.h>

#include "base/error.h"
#include "graph/operators/run.h"

namespace dpt {
namespace {

// Two times and the classes blank, 1 and 2, with probabilities 0.5, 0.3, 0.2 and 0.1, 0.6, 0.3.
Given scores(double shift = 0) {
  Given out{f64({1, 2, 3}), {}};
  for (const double p : {0.5, 0.3, 0.2, 0.1, 0.6, 0.3}) out.content.push_back(std::log(p) + shift);
  return out;
}

double loss_of(const std::vector<double>& labels, const Ctc& s, double shift = 0) {
  const auto count = static_cast<int64_t>(labels.size());
  return run_op("ctc_loss", {scores(shift), {i32({1, count}), labels}, {f64({1}), {1}}}, s)[0];
}

}  // namespace

TEST_CASE("ctc_loss sums the probabilities of all alignments") {
  const Ctc s{.by_length = false};
  // 1 is "1 1", "1 blank" or "blank 1"; 1 2 is only itself; no labels are two blanks.
  CHECK(loss_of({1}, s) == doctest::Approx(-std::log(0.3 * 0.6 + 0.3 * 0.1 + 0.5 * 0.6)));
  CHECK(loss_of({1, 2}, s) == doctest::Approx(-std::log(0.3 * 0.3)));
  CHECK(loss_of({-100, 1}, s) == doctest::Approx(-std::log(0.5 * 0.1)));
  CHECK(loss_of({1, 2}, Ctc{}) == doctest::Approx(-std::log(0.3 * 0.3) / 2));
  CHECK(loss_of({1}, s, 7) == doctest::Approx(loss_of({1}, s)));  // scores need no normalization
}

TEST_CASE("ctc_loss without an alignment is infinite, or 0") {
  CHECK(loss_of({1, 1}, Ctc{}) == std::numeric_limits<double>::infinity());
  CHECK(loss_of({1, 1}, Ctc{.zero_infinity = true}) == 0);
  const Given labels{i32({1, 2}), {1, 1}}, one{f64({1}), {1}};
  CHECK(run_op("ctc_loss_gradient", {scores(), labels, one}, Ctc{.zero_infinity = true}) ==
        std::vector<double>(6, 0));
}

TEST_CASE("ctc_loss refuses labels that are no classes, and other shapes") {
  CHECK_THROWS_WITH_AS(
      loss_of({3}, Ctc{}),
      "label 3 of sample 0 in its batch is not in [0, 3); write its padding as ignore_index",
      Error);
  CHECK_THROWS_WITH_AS(
      loss_of({0}, Ctc{}),
      "label 0 of sample 0 in its batch is the blank of ctc_loss: if it is padding, write "
      "ignore_index: 0; otherwise choose another blank",
      Error);
  CHECK(refusal("ctc_loss", {f32({2, 3}), i32({2, 1}), f32({1})}) ==
        "ctc_loss: output f32[2, 3] must be [N, T, C] with at least one time");
  CHECK(refusal("ctc_loss", {f32({2, 3, 4}), i32({2}), f32({1})}) ==
        "ctc_loss: output f32[2, 3, 4] needs labels i32[2, S], not i32[2]");
}

}  // namespace dpt
