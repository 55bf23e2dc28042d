#include "train/noise_scale.h"

#include <cmath>
#include <fstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "base/generator.h"
#include "checkpoint/resumed_run.h"
#include "train/metrics_file.h"
#include "train/run_spec.h"

namespace dpt {
namespace {

// The expected squared norms of mean gradients over shards of these sizes and over their batch.
GradientMeasures expected(double trace, double square, const std::vector<double>& shards) {
  GradientMeasures out{.shards = static_cast<int>(shards.size())};
  for (const double n : shards) {
    out.samples += n;
    out.inverse_samples += 1 / n / static_cast<double>(shards.size());
  }
  out.shard_square = square + trace * out.inverse_samples;
  out.square = square + trace / out.samples;
  return out;
}

TEST_CASE("the estimates are unbiased: expected norms give the exact noise scale") {
  for (const std::vector<double>& shards :
       std::vector<std::vector<double>>{{8, 8}, {8, 7, 7, 5}, {1, 100}}) {
    NoiseScale scale;
    CHECK(std::isnan(scale.value()));
    scale.add(expected(300, 4, shards));
    CHECK(scale.value() == doctest::Approx(75).epsilon(1e-9));  // rounding of a few operations
    // Both parts are averaged, then divided.
    scale.add(expected(100, 2, shards));
    CHECK(scale.value() == doctest::Approx((0.9 * 300 + 0.1 * 100) / (0.9 * 4 + 0.1 * 2)));
  }
}

TEST_CASE("steps that say nothing are left out") {
  NoiseScale scale;
  scale.add(expected(300, 4, {8}));
  GradientMeasures zero = expected(300, 4, {8, 8});
  zero.square = zero.shard_square = 0;
  scale.add(zero);
  GradientMeasures infinite = expected(300, 4, {8, 8});
  infinite.square = INFINITY;
  scale.add(infinite);
  CHECK(scale.state().empty());
  scale.add(expected(300, 4, {8, 8}));
  CHECK(scale.value() == doctest::Approx(75));
  NoiseScale other;
  other.restore(scale.state());
  CHECK(other.value() == scale.value());
  other.restore({});
  CHECK(std::isnan(other.value()));
  // A batch whose shards differ too much to see a gradient in them.
  GradientMeasures noise = expected(300, 0, {8, 8});
  noise.square *= 0.9;
  NoiseScale unknown;
  unknown.add(noise);
  CHECK(std::isnan(unknown.value()));
}

// Linear regression without bias: y = x . w* + noise, x normal with 5 inputs, weights that stay
// where they begin. With d = w - w*, the gradient of a sample is 2 x (x . d - noise), so
// |G|^2 = 4 |d|^2 and tr(Sigma) = 4 ((inputs + 1) |d|^2 + inputs * noise^2).
TEST_CASE("linear regression has the noise scale that its formula says") {
  constexpr int kInputs = 5, kSamples = 25600;
  constexpr double kNoise = 2;
  const Folder folder;
  Generator generator(3);
  const std::vector<double> truth = {1, -0.5, 0.25, 0.75, -1};
  {
    std::vector<float> numbers(size_t{kSamples} * (kInputs + 1));
    generator.normal_(numbers, 0, 1);
    std::ofstream out(folder.file("t.csv"));
    for (size_t i = 0; i < kSamples; ++i) {
      double y = kNoise * static_cast<double>(numbers[i * (kInputs + 1) + kInputs]);
      for (size_t j = 0; j < kInputs; ++j) {
        const auto x = static_cast<double>(numbers[i * (kInputs + 1) + j]);
        out << x << ',';
        y += x * truth[j];
      }
      out << y << '\n';
    }
  }
  const Ran ran = run_spec(fmt::format(R"(
data:
  dataset: {{csv: {{path: {}}}}}
  batch_size: 256
model: [{{linear: {{out_features: 1, bias: false}}, init: {{weight: zeros}}}}]
loss: mse_loss
optimizer: {{sgd: 0}}
epochs: 1
reproducible: {{shards: 8}}
log: {{every: 1, noise_scale: true}}
)",
                                       folder.file("t.csv")));
  REQUIRE_MESSAGE(ran.code == 0, ran.err);
  double square = 0;  // |d|^2, as the weights are 0
  for (const double t : truth) square += t * t;
  const double exact = ((kInputs + 1) * square + kInputs * kNoise * kNoise) / square;
  std::vector<double> scales;
  std::istringstream in(ran.metrics);
  for (std::string line; std::getline(in, line);)
    if (const auto scale = number_at(*record_of(line), "noise_scale")) scales.push_back(*scale);
  REQUIRE(scales.size() == 100);
  // Averages over some 19 steps. Those of |G|^2 have a relative deviation of about
  // 2 sqrt(tr(Sigma) / 256 / |G|^2 / 5) / sqrt(19) = 0.04, those of tr(Sigma) of
  // sqrt(2 / (7 * 5)) / sqrt(19) = 0.055: four deviations of the quotient.
  for (size_t i = 20; i < scales.size(); ++i) CHECK(std::abs(scales[i] / exact - 1) < 0.28);
  double mean = 0;  // over five independent spans
  for (const size_t i : {19U, 39U, 59U, 79U, 99U}) mean += scales[i] / 5;
  CHECK(std::abs(mean / exact - 1) < 0.13);
}

TEST_CASE("noise scales have the same bits in every mode, and go on from a checkpoint") {
  const std::string spec = kFiveSteps + "reproducible: {shards: 4}\nsync_batch_norm: true\n";
  const Words noisy = {"log={every: 1, noise_scale: true, grad_norms: true}"};
  const auto scales = [](const Ran& ran) {
    CHECK_MESSAGE(ran.code == 0, ran.err);
    std::vector<std::string> out;
    std::istringstream in(ran.metrics);
    for (std::string line; std::getline(in, line);)
      if (const size_t at = line.find("\"noise_scale\""); at != std::string::npos)
        out.push_back(line.substr(at, line.find(", \"data_wait\"") - at) +
                      line.substr(line.find("\"grad_norms\"")));
    return out;
  };
  const Straight one(with(noisy, {"cores=1"}), spec);
  const auto expected = scales(one.ran);
  CHECK(expected.size() == 15);
  for (const Words& how : std::vector<Words>{{"cores=3"},
                                             {"parallel=dp", "devices=2", "cores=1"},
                                             {"parallel=ddp", "devices=2", "cores=1"}}) {
    if (!kCanFork && how[0] == "parallel=ddp") continue;
    CAPTURE(how[0]);
    CHECK(scales(run_spec(spec, with(noisy, how))) == expected);
  }
  const auto rest = scales(one.rest(10, with(noisy, {"cores=2"}), spec));
  CHECK(rest == expected);
}

TEST_CASE("one shard has no noise scale, and a GPU none yet") {
  const Ran one = run_spec(kFiveSteps, {"cores=1", "log={every: 1, noise_scale: true}"});
  CHECK(one.code == 2);
  CHECK_MESSAGE(one.err.find("`reproducible: {shards: 8}`") != std::string::npos, one.err);
  const Ran never = run_spec(kFiveSteps, {"cores=2", "log={noise_scale: true}"});
  CHECK(never.code == 2);
  CHECK_MESSAGE(never.err.find("'every' is 0") != std::string::npos, never.err);
}

}  // namespace
}  // namespace dpt
