#include <cmath>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "graph/formulas/losses.h"
#include "graph/operators/run.h"

namespace dpt {

TEST_CASE("mse_loss is torch's, over the divisor") {
  const std::vector<Given> in = {
      {f64({1, 5}), {0, 0.25, -0.5, 2, -3}}, {f64({1, 5}), {0, 0, 0, 0, 0}}, {f64({1}), {5}}};
  CHECK(close(run_op("mse_loss", in), {13.3125 / 5}));
  CHECK(close(run_op("mse_loss_gradient", in), {0, 0.1, -0.2, 0.8, -1.2}));
}

TEST_CASE("l1_loss is torch's; its slope is zero where the output is right") {
  const std::vector<Given> in = {
      {f64({1, 5}), {0, 0.25, -0.5, 2, -3}}, {f64({1, 5}), {0, 0, 0, 0, 0}}, {f64({1}), {1}}};
  CHECK(close(run_op("l1_loss", in), {5.75}));
  CHECK(close(run_op("l1_loss_gradient", in), {0, 1, -1, 1, -1}));
}

TEST_CASE("smooth_l1_loss is torch's") {
  const std::vector<Given> in = {
      {f64({1, 5}), {0, 0.25, -0.5, 2, -3}}, {f64({1, 5}), {0, 0, 0, 0, 0}}, {f64({1}), {1}}};
  CHECK(close(run_op("smooth_l1_loss", in, formula::SmoothL1{.beta = 0.5}), {4.8125}));
  CHECK(close(run_op("smooth_l1_loss_gradient", in, formula::SmoothL1{.beta = 0.5}),
              {0, 0.5, -1, 1, -1}));
}

TEST_CASE("smooth_l1_loss with beta 0 is l1_loss") {
  const std::vector<Given> in = {
      {f64({1, 5}), {0, 0.25, -0.5, 2, -3}}, {f64({1, 5}), {0, 0, 0, 0, 0}}, {f64({1}), {1}}};
  CHECK(close(run_op("smooth_l1_loss", in, formula::SmoothL1{.beta = 0}), {5.75}));
  CHECK(close(run_op("smooth_l1_loss_gradient", in, formula::SmoothL1{.beta = 0}),
              {0, 1, -1, 1, -1}));
}

TEST_CASE("huber_loss is torch's") {
  const std::vector<Given> in = {
      {f64({1, 5}), {0, 0.25, -0.5, 2, -3}}, {f64({1, 5}), {0, 0, 0, 0, 0}}, {f64({1}), {1}}};
  CHECK(close(run_op("huber_loss", in, formula::Huber{.delta = 0.5}), {2.40625}));
  CHECK(close(run_op("huber_loss_gradient", in, formula::Huber{.delta = 0.5}),
              {0, 0.25, -0.5, 0.5, -0.5}));
}

TEST_CASE("bce_loss is torch's, also at 0 and 1") {
  const std::vector<Given> in = {
      {f64({1, 5}), {0, 1, 0.25, 0.9, 1e-30}}, {f64({1, 5}), {0, 1, 0.5, 0, 1}}, {f64({1}), {1}}};
  CHECK(close(run_op("bce_loss", in), {72.21712609960126}));
  CHECK(close(run_op("bce_loss_gradient", in), {0, 0, -1.333333333333333, 10, -1000000003995.803}));
}

TEST_CASE("bce_loss weighs the elements of each sample") {
  const std::vector<Given> in = {{f64({2, 2}), {0.5, 0.5, 0.5, 0.5}},
                                 {f64({2, 2}), {1, 1, 0, 0}},
                                 {f64({1}), {2}},
                                 {f64({2}), {1, 3}}};
  CHECK(close(run_op("bce_loss", in), {4 * std::log(2)}));
  CHECK(close(run_op("bce_loss_gradient", in), {-1, -3, 1, 3}));
}

TEST_CASE("bce_loss refuses weights that fit no sample") {
  CHECK(refusal("bce_loss", {f32({4, 3}), f32({4, 3}), f32({1}), f32({4})}) ==
        "bce_loss: weights f32[4] do not fit the last extents of output f32[4, 3]");
}

TEST_CASE("bce_with_logits_loss is torch's, with both weights and far out") {
  const std::vector<Given> in = {{f64({1, 5}), {0, 100, -100, 0.5, -2}},
                                 {f64({1, 5}), {0, 1, 1, 0.25, 1}},
                                 {f64({1}), {1}},
                                 {f64({5}), {1, 2, 1, 0.5, 1}},
                                 {f64({5}), {3, 1, 1, 2, 0.5}}};
  const formula::BceWithLogits attrs{.weight = true, .pos_weight = true};
  CHECK(close(run_op("bce_with_logits_loss", in, attrs), {102.24040930119399}));
  CHECK(close(run_op("bce_with_logits_loss_gradient", in, attrs),
              {0.5, 0, -1, 0.1390370820011591, -0.4403985389889412}));
}

TEST_CASE("kl_div is torch's, zero where the target is") {
  const std::vector<Given> in = {
      {f64({1, 3}), {-1, -2, -0.5}}, {f64({1, 3}), {0, 0.25, 0.75}}, {f64({1}), {1}}};
  CHECK(close(run_op("kl_div", in, formula::KlDiv{}), {0.3126648553811917}));
  CHECK(close(run_op("kl_div_gradient", in, formula::KlDiv{}), {0, -0.25, -0.75}));
}

TEST_CASE("kl_div takes targets that are logarithms") {
  const std::vector<Given> in = {
      {f64({1, 3}), {-1, -2, -0.5}}, {f64({1, 3}), {-1, -0.5, -3}}, {f64({1}), {1}}};
  CHECK(close(run_op("kl_div", in, formula::KlDiv{.log_target = true}), {0.7853283186492903}));
  CHECK(close(run_op("kl_div_gradient", in, formula::KlDiv{.log_target = true}),
              {-0.3678794411714423, -0.6065306597126334, -0.04978706836786394}));
}

TEST_CASE("poisson_nll_loss is torch's, of rates and of their logarithms") {
  const std::vector<Given> logs = {
      {f64({1, 3}), {0, 1, -1}}, {f64({1, 3}), {2, 1, 0}}, {f64({1}), {1}}};
  const double e = std::exp(1.0);
  CHECK(close(run_op("poisson_nll_loss", logs, formula::PoissonNll{}), {1 + e - 1 + 1 / e}));
  CHECK(
      close(run_op("poisson_nll_loss_gradient", logs, formula::PoissonNll{}), {-1, e - 1, 1 / e}));
  const std::vector<Given> rates = {{f64({1, 2}), {0, 2}}, {f64({1, 2}), {1, 4}}, {f64({1}), {1}}};
  const formula::PoissonNll s{.log_input = false, .eps = 0.5};
  CHECK(close(run_op("poisson_nll_loss", rates, s), {std::log(2.0) + 2 - 4 * std::log(2.5)}));
  CHECK(close(run_op("poisson_nll_loss_gradient", rates, s), {-1, 1 - 4 / 2.5}));
}

TEST_CASE("poisson_nll_loss: full adds Stirling's approximation for targets above 1") {
  const std::vector<Given> in = {
      {f64({1, 3}), {0, 0, 0}}, {f64({1, 3}), {0, 1, 3}}, {f64({1}), {1}}};
  const double more = 3 * std::log(3.0) - 3 + 0.5 * std::log(6 * std::acos(-1.0));
  CHECK(close(run_op("poisson_nll_loss", in, formula::PoissonNll{.full = true}), {3 + more}));
  CHECK(close(run_op("poisson_nll_loss_gradient", in, formula::PoissonNll{.full = true}),
              {1, 0, -2}));
}

TEST_CASE("soft_margin_loss is torch's") {
  const std::vector<Given> in = {
      {f64({1, 4}), {0, 1, -2, 0.5}}, {f64({1, 4}), {1, -1, -1, 1}}, {f64({1}), {1}}};
  // log(2) + log(1 + e) + log(1 + e^-2) + log(1 + e^-0.5)
  CHECK(close(run_op("soft_margin_loss", in, {}), {2.6074138633012476}));
  CHECK(close(run_op("soft_margin_loss_gradient", in, {}),
              {-0.5, 0.7310585786300049, 0.11920292202211755, -0.3775406687981454}));
}

TEST_CASE("soft_margin_loss of a large distance is finite, where torch's is not") {
  const std::vector<Given> in = {
      {f64({1, 2}), {-1000, 1000}}, {f64({1, 2}), {1, 1}}, {f64({1}), {1}}};
  CHECK(close(run_op("soft_margin_loss", in, {}), {1000}));
  CHECK(close(run_op("soft_margin_loss_gradient", in, {}), {-1, 0}));
}

TEST_CASE("sigmoid_focal_loss is torchvision's") {
  const std::vector<Given> in = {
      {f64({3, 1}), {0, 0, 0}}, {f64({3, 1}), {1, 0, 0.5}}, {f64({1}), {1}}};
  // Every probability is 1/2: the factor is 1/4, the cross entropy log 2.
  const double term = std::log(2.0) / 4;
  CHECK(close(run_op("sigmoid_focal_loss", in, formula::SigmoidFocal{}),
              {term * (0.25 + 0.75 + 0.5)}));
  CHECK(close(run_op("sigmoid_focal_loss", in, formula::SigmoidFocal{.alpha = -1}), {3 * term}));
  // A positive target: (-1/2 - 2 log 2 / 2) / 4.
  CHECK(close(run_op("sigmoid_focal_loss_gradient", in, formula::SigmoidFocal{.alpha = -1}),
              {-0.125 - term, 0.125 + term, 0}));
}

TEST_CASE("sigmoid_focal_loss without gamma is bce_with_logits_loss") {
  const std::vector<Given> in = {
      {f64({2, 2}), {-3, 1, 0.5, 4}}, {f64({2, 2}), {1, 0, 0.25, 1}}, {f64({1}), {4}}};
  const formula::SigmoidFocal plain{.alpha = -1, .gamma = 0};
  CHECK(close(run_op("sigmoid_focal_loss", in, plain),
              run_op("bce_with_logits_loss", in, formula::BceWithLogits{})));
  CHECK(close(run_op("sigmoid_focal_loss_gradient", in, plain),
              run_op("bce_with_logits_loss_gradient", in, formula::BceWithLogits{})));
}

TEST_CASE("sigmoid_focal_loss is finite where the target is certain") {
  const std::vector<Given> in = {
      {f64({1, 4}), {800, -800, 800, -800}}, {f64({1, 4}), {1, 0, 0, 1}}, {f64({1}), {1}}};
  for (const double gamma : {0.0, 0.5, 2.0, 3.0}) {
    CAPTURE(gamma);
    const formula::SigmoidFocal s{.alpha = -1, .gamma = gamma};
    CHECK(close(run_op("sigmoid_focal_loss", in, s), {1600}));
    CHECK(close(run_op("sigmoid_focal_loss_gradient", in, s), {0, 0, 1, -1}));
  }
}

TEST_CASE("hinge_embedding_loss is torch's, also at the margin and for other targets") {
  const std::vector<Given> in = {{f64({1, 6}), {0.25, 2, 0.25, 1, 2, 0.5}},
                                 {f64({1, 6}), {1, 1, -1, -1, -1, 0}},
                                 {f64({1}), {1}}};
  CHECK(close(run_op("hinge_embedding_loss", in), {0.25 + 2 + 0.75 + 1}));
  CHECK(close(run_op("hinge_embedding_loss_gradient", in), {1, 1, -1, 0, 0, 0}));
}

TEST_CASE("bce_with_logits_loss takes one weight of positive targets for all outputs") {
  const std::vector<Given> in = {
      {f64({1, 3}), {0, 0, 0}}, {f64({1, 3}), {1, 0, 1}}, {f64({1}), {1}}, {f64({1}), {3}}};
  CHECK(close(run_op("bce_with_logits_loss", in, formula::BceWithLogits{.pos_weight = true}),
              {7 * std::log(2.0)}));
}

TEST_CASE("pointwise losses refuse targets of another shape and help with classes") {
  for (const char* const op : {"mse_loss", "sigmoid_focal_loss"}) {
    CHECK(refusal(op, {f32({4, 3}), f32({4, 1}), f32({1})}) ==
          fmt::format("{}: output f32[4, 3] needs targets f32[4, 3], not f32[4, 1]", op));
    CHECK(refusal(op, {f32({4, 3}), i32({4}), f32({1})}) ==
          fmt::format("{}: output f32[4, 3] needs targets f32[4, 3], not i32[4]; class numbers "
                      "become such targets by target_transforms: [one_hot]",
                      op));
  }
}

}  // namespace dpt
