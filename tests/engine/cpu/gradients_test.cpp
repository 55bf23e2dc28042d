// Gradients of a step: sum over shards, norm, decision, measures and update.
#include <cmath>
#include <limits>

#include <doctest/doctest.h>

#include "engine/cpu/gradient_meter.h"
#include "engine/cpu/gradient_norm.h"
#include "engine/cpu/one_worker.h"
#include "engine/cpu/shard_gradients.h"
#include "engine/cpu/update.h"

namespace dpt {
namespace {

TEST_CASE("the decision follows from the norm") {
  const double inf = std::numeric_limits<double>::infinity();
  const ClipSpec none, clip{.max_norm = 2};
  CHECK(decide(none, false, 7).norm == 7);
  CHECK(decide(none, false, 7).clip_scale == 1);
  CHECK(decide(clip, false, 1).clip_scale == 1);
  CHECK(decide(clip, false, 8).clip_scale == doctest::Approx(0.25).epsilon(1e-6));
  CHECK_FALSE(decide(clip, false, inf).overflowed);  // without a loss scale, the loss decides
  CHECK(decide(none, true, inf).overflowed);
  CHECK_FALSE(decide(none, true, 7).overflowed);
}

// Two shards of one worker.
OneWorker two_shards(std::vector<std::string> how = {}) {
  how.insert(how.end(), {"reproducible={shards: 2}", "clip_grad_norm=1"});
  return OneWorker(kTinySpec, how);
}

void fill(const OneWorker& one, float first, float second) {
  for (size_t i = 0; i < one.buffers.sizes().stored; ++i) {
    one.buffers.gradient(0)[i] = first;
    one.buffers.gradient(1)[i] = second;
  }
}

TEST_CASE("gradients are read of all shards, until their sum is stored") {
  const OneWorker one = two_shards();
  fill(one, 1, 2);
  ShardGradients gradients(one.worker);
  const auto sources = [&] {
    size_t out = 0;
    gradients.each_range({.begin = 16, .end = 32},
                         [&](size_t begin, size_t end, auto shards, size_t first) {
                           CHECK(begin == 16);
                           CHECK(end == 32);
                           CHECK(first == 0);
                           CHECK(shards[0] == one.buffers.gradient(0));
                           out = shards.size();
                         });
    return out;
  };
  CHECK(sources() == 2);
  gradients.sum({0, 20});
  CHECK(gradients.total()[19] == 3);
  CHECK(gradients.total()[20] == 1);
  CHECK(sources() == 1);
  gradients.begin_step();
  CHECK(sources() == 2);
}

TEST_CASE("the gradients of shards without samples are 0") {
  const OneWorker one = two_shards();
  fill(one, 1, 2);
  const ShardGradients gradients(one.worker);
  const int group = one.worker.shard_groups() - 1;  // that of the second shard
  gradients.clear_empty(group, {{.rows = {0, 8}}, {.rows = {8, 8}}});
  CHECK(one.buffers.gradient(0)[0] == 1);
  CHECK(one.buffers.gradient(1)[0] == 0);
  CHECK(one.buffers.gradient(1)[49] == 0);
}

TEST_CASE("compressed gradients are read as the rounded sum, tile by tile") {
  const OneWorker one = two_shards({"parallel={ddp: {compress: bf16}}", "devices=2"});
  fill(one, 1, 2);
  ShardGradients gradients(one.worker);
  for (const int g : one.worker.own) gradients.compress(g);
  fill(one, 0, 0);  // only the halves are read; the other rank has written none
  gradients.each_range({.begin = 16, .end = 32},
                       [&](size_t begin, size_t end, auto shards, size_t first) {
                         CHECK(first == begin);
                         REQUIRE(shards.size() == 1);
                         CHECK(shards[0][0] == 1);
                         CHECK(shards[0][end - begin - 1] == 1);
                       });
}

TEST_CASE("a norm is that of the sum over shards, without the loss scale") {
  const OneWorker one = two_shards();
  fill(one, 1, 2);
  ShardGradients gradients(one.worker);
  const GradientMeter meter(one.worker);
  GradientNorm norm(one.worker, gradients, meter);
  auto step = one.step(0);
  step->input.scale = 2;
  norm.begin_step();
  CHECK(norm.decide(step->input).clip_scale == 1);  // nothing was summed
  norm.sum(step->input);
  const double expected = 3 * std::sqrt(double(one.buffers.sizes().stored)) / 2;
  CHECK(norm.decide(step->input).norm == doctest::Approx(expected));
  CHECK(norm.decide(step->input).clip_scale == doctest::Approx(1 / expected).epsilon(1e-5));
}

TEST_CASE("measures are norms of each parameter, and squares of shards") {
  const OneWorker one = two_shards({"log={every: 1, grad_norms: true, noise_scale: true}"});
  fill(one, 1, 2);
  ShardGradients gradients(one.worker);
  const GradientMeter meter(one.worker);
  GradientNorm norm(one.worker, gradients, meter);
  auto step = one.step(0);
  step->input.measured = true;
  norm.sum(step->input);
  norm.decide(step->input);
  const GradientMeasures m = meter.measures(step->input, 8);
  REQUIRE(m.norms.size() == 2);
  CHECK(m.norms[0] == doctest::Approx(3 * std::sqrt(40.)));  // the weight
  CHECK(m.norms[1] == doctest::Approx(3 * std::sqrt(10.)));  // the bias
  const double stored = double(one.buffers.sizes().stored);
  CHECK(m.shards == 2);
  CHECK(m.samples == 8);
  CHECK(m.inverse_samples == doctest::Approx(0.25));
  CHECK(m.square == doctest::Approx(9 * stored));
  CHECK(m.shard_square == doctest::Approx((4 + 16) * stored / 2));  // each is half of the batch
}

TEST_CASE("an update reads the sum over shards, scaled, and keeps averages") {
  OneWorker one = two_shards({"ema=0.5"});
  fill(one, 1, 2);
  const BindingTable bindings(one.worker);
  ShardGradients gradients(one.worker);
  CpuUpdate update(one.worker, bindings, gradients);
  const OptimizerStep sgd = one.session->settings.optimizer->step(
      one.session->settings.spec.optimizer.settings, 1, 0.5, {});
  auto step = one.step(0);
  step->input.update = {&sgd, 1};
  update.resume(1);
  update.run(step->input, 0.5);
  // 0 - lr 0.5 * (1 + 2) * 0.5, and half of it in the average.
  CHECK(one.buffers.weights()[0] == -0.75F);
  CHECK(one.buffers.weights()[49] == -0.75F);
  update.swap_average();
  CHECK(one.buffers.weights()[49] == -0.375F);
  update.swap_average();
  CHECK(one.buffers.weights()[49] == -0.75F);
}

}  // namespace
}  // namespace dpt
