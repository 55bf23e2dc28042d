// What follows the backward pass on a GPU, against the CPU's.
#include "backend/cuda/kernels/update.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <vector>

#include <doctest/doctest.h>

#include "backend/cpu/update.h"
#include "backend/cuda/fake_api.h"
#include "graph/optimizer_step.h"
#include "optim/gradient_scaler.h"

namespace dpt::cuda {
namespace {

constexpr size_t kSize = 300;

std::vector<float> numbers(double low, double high, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<float> out(kSize);
  for (float& x : out)
    x = static_cast<float>(std::uniform_real_distribution<double>(low, high)(random));
  return out;
}

// Two steps of an optimizer on the CPU and by the GPU's kernel.
template <class Formula>
void compare(const Formula& scalars, int states, double clip_value) {
  std::vector<float> weight = numbers(-1, 1, 1), gradient = numbers(-2, 2, 2);
  std::vector<std::vector<float>> state(3, numbers(0, 1, 3));
  std::vector<float> weight2 = weight;
  std::vector<std::vector<float>> state2 = state;
  StepState step{.grad_scale = 0.5};
  const auto rounded_scalars = rounded<float>(scalars);
  using Rounded = std::remove_const_t<decltype(rounded_scalars)>;
  for (int round = 0; round < 2; ++round) {
    const float* const shard = gradient.data();
    UpdateArgs args;
    args.weight = weight.data();
    for (int s = 0; s < states; ++s) args.state[s] = state[static_cast<size_t>(s)].data();
    args.shards = &shard;
    args.shard_count = 1;
    args.grad_scale = 0.5F;
    args.clip_value = static_cast<float>(clip_value);
    args.end = kSize;
    run_update(scalars, args);
    Update<Rounded> update{
        &rounded_scalars,
        1,
        {&step, weight2.data(), {}, gradient.data(), static_cast<float>(clip_value), 0}};
    for (int s = 0; s < states; ++s)
      update.buffers.states[s] = state2[static_cast<size_t>(s)].data();
    for (size_t i = kSize; i-- > 0;) update(static_cast<int64_t>(i));
  }
  // The same formulas in the same order, but for Adam's roots on the CPU (simd/roots.h).
  for (size_t i = 0; i < kSize; ++i)
    REQUIRE(std::abs(weight[i] - weight2[i]) <= 1e-6F * std::max(1.0F, std::abs(weight[i])));
  for (int s = 0; s < states; ++s)
    CHECK(state[static_cast<size_t>(s)] == state2[static_cast<size_t>(s)]);
  step.skip = 1;
  const std::vector<float> before = weight2;
  Update<Rounded>{&rounded_scalars, 1, {&step, weight2.data(), {}, gradient.data(), 0, 0}}(0);
  CHECK(weight2 == before);
}

TEST_CASE("optimizers update as the CPU's do") {
  for (const double clip : {0.0, 0.3}) {
    compare(formula::Sgd<double>{.lr = 0.1, .momentum = 0, .weight_decay = 0.01}, 0, clip);
    compare(formula::Sgd<double>{.lr = 0.1, .momentum = 0.9, .nesterov = true}, 1, clip);
    compare(formula::Adam<double>{.step_size = 0.1,
                                  .one_minus_beta1 = 0.1,
                                  .beta2 = 0.999,
                                  .one_minus_beta2 = 0.001,
                                  .inverse_correction = 1.5,
                                  .eps = 1e-8,
                                  .amsgrad = true},
            3, clip);
    compare(formula::RmsProp<double>{.lr = 0.1,
                                     .alpha = 0.99,
                                     .one_minus_alpha = 0.01,
                                     .eps = 1e-8,
                                     .momentum = 0.9,
                                     .centered = true},
            3, clip);
    compare(formula::Adagrad<double>{.clr = 0.1, .eps = 1e-10}, 1, clip);
    compare(formula::Adadelta<double>{.lr = 0.1, .rho = 0.9, .one_minus_rho = 0.1, .eps = 1e-6}, 2,
            clip);
    compare(formula::Adamax<double>{.clr = 0.1, .one_minus_beta1 = 0.1, .beta2 = 0.9, .eps = 1e-8},
            2, clip);
    compare(formula::NAdam<double>{.gradient_step = 0.1,
                                   .average_step = 0.2,
                                   .one_minus_beta1 = 0.1,
                                   .beta2 = 0.999,
                                   .one_minus_beta2 = 0.001,
                                   .correction2 = 0.5,
                                   .eps = 1e-8,
                                   .weight_decay = 0.1},
            2, clip);
    for (const bool rectified : {false, true})
      compare(formula::RAdam<double>{.lr = 0.1,
                                     .one_minus_beta1 = 0.1,
                                     .beta2 = 0.999,
                                     .one_minus_beta2 = 0.001,
                                     .correction1 = 0.5,
                                     .root_of_correction2 = 0.25,
                                     .rectification = 0.5,
                                     .eps = 1e-8,
                                     .keep = 0.9,
                                     .rectified = rectified},
              2, clip);
    for (const bool first : {false, true})
      compare(formula::Rprop<double>{.lr = 0.1,
                                     .etaminus = 0.5,
                                     .etaplus = 1.2,
                                     .step_size_min = 0.01,
                                     .step_size_max = 0.5,
                                     .first_step = first},
              2, clip);
    compare(formula::Lion<double>{.lr = 0.1,
                                  .beta1 = 0.9,
                                  .one_minus_beta1 = 0.1,
                                  .beta2 = 0.99,
                                  .one_minus_beta2 = 0.01,
                                  .keep = 0.9},
            1, clip);
    compare(formula::Muon<double>{.momentum = 0.9, .one_minus_momentum = 0.1}, 2, clip);
    for (const double mu : {1.0, 0.25})
      compare(formula::Asgd<double>{.eta = 0.1, .keep = 0.99, .mu = mu, .weight_decay = 0.1}, 1,
              clip);
  }
}

StepState decided(double loss, double power, const DecideUpdate& like, const StepState& before) {
  StepState state = before;
  const int64_t first_update = 0;
  StepReport report;
  DecideUpdate j = like;
  j.losses = &loss;
  j.micro_batches = 1;
  j.norm_partial = &power;
  j.state = &state;
  j.first_update = &first_update;
  j.report = &report;
  j(0);
  CHECK(report.skip == state.skip);
  return state;
}
StepState decided(double loss, double power, const DecideUpdate& like, double scale = 1) {
  return decided(loss, power, like, StepState{.loss_scale = scale});
}

TEST_CASE("gradients are clipped by their norm, without the scale of the loss") {
  const DecideUpdate clips{.norm_type = 2, .max_norm = 1};
  CHECK(decided(1, 16, clips).norm == 4);
  CHECK(decided(1, 16, clips).grad_scale == 1 / (4 + 1e-6));
  CHECK(decided(1, 0.25, clips).grad_scale == 1);
  const StepState scaled = decided(1, 16, clips, 2);
  CHECK(scaled.norm == 2);
  CHECK(scaled.grad_scale == 1 / (2 + 1e-6) / 2);
  CHECK(decided(1, 3, DecideUpdate{.norm_type = 0, .max_norm = 0}).norm == 3);
  CHECK(decided(1, 8, DecideUpdate{.norm_type = 3, .max_norm = 0}).norm == doctest::Approx(2));
}

TEST_CASE("a loss, or scaled gradients, that are not finite are skipped") {
  const DecideUpdate scales{.norm_type = 2, .scales = true};
  CHECK(decided(1, 1, scales).skip == 0);
  CHECK(decided(1, INFINITY, scales).skip == 1);
  CHECK(decided(1, NAN, scales).skip == 1);
  CHECK(decided(NAN, 1, scales).skip == 1);
  CHECK(decided(INFINITY, 1, DecideUpdate{.norm_type = 2}).skip == 1);
  CHECK(decided(1, INFINITY, DecideUpdate{.norm_type = 2}).skip ==
        0);  // torch clips by it all the same
}

TEST_CASE("a step whose targets are all ignored is made, and keeps the scale of the loss") {
  for (const bool scales : {false, true}) {
    const DecideUpdate takes{
        .norm_type = 2, .max_norm = 1, .scales = scales, .rule = {2, 0.5, 3}, .takes_empty = true};
    const StepState after = decided(NAN, 0, takes, StepState{.divisor = 0, .loss_scale = 4});
    CHECK(after.skip == 0);
    CHECK(after.halted == 0);
    CHECK(after.updates == 1);
    CHECK(after.loss_scale == 4);
    CHECK(decided(NAN, 0, takes, StepState{.divisor = 2, .loss_scale = 4}).skip == 1);
  }
}

TEST_CASE("after a loss that is no number nothing is updated any more, unless the loss is scaled") {
  const DecideUpdate plain{.norm_type = 2};
  const StepState after = decided(NAN, 1, plain);
  CHECK(decided(1, 1, plain, after).skip == 1);
  const DecideUpdate scales{.norm_type = 2, .scales = true, .rule = {2, 0.5, 3}};
  CHECK(decided(1, 1, scales, decided(NAN, 1, scales)).skip == 0);
}

TEST_CASE("the scale of the loss goes on as the CPU's, and skipped steps are no updates") {
  const ScalerSettings settings{.on = true,
                                .init_scale = 1e30,
                                .growth_factor = 3e3,
                                .backoff_factor = 0.3,
                                .growth_interval = 3};
  GradientScaler cpu(settings);
  const DecideUpdate judge{
      .norm_type = 2, .scales = true, .rule = {settings.growth_factor, settings.backoff_factor, 3}};
  StepState state{.loss_scale = settings.init_scale};
  std::mt19937 random(1);
  for (int64_t step = 0; step < 200; ++step) {
    const bool overflows = random() % 4 == 0;
    const int64_t updates = step - cpu.skipped();
    state = decided(1, overflows ? INFINITY : 1, judge, state);
    CHECK(state.formula == updates);
    cpu.update(overflows);
    CHECK(state.loss_scale == cpu.scale());
    CHECK(state.growth_tracker == cpu.growth_tracker());
    CHECK(state.updates == step + 1 - cpu.skipped());
  }
}

TEST_CASE("shards are summed in the fixed tree") {
  std::vector<float> wide(10);
  for (size_t s = 0; s < 5; ++s) wide[2 * s] = std::array{1e8F, 1.0F, -1e8F, 1.0F, 3.0F}[s];
  SumShards{wide.data(), 2, 5}(0);
  const float expected = ((1e8F + 1.0F) + (-1e8F + 1.0F)) + 3.0F;
  CHECK(wide[0] == expected);
}

}  // namespace
}  // namespace dpt::cuda
