// Losses of torch's usual loop, with its generator's orders and masks
// (tests/fixtures/torch_loops.py).
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "data/readers/image.h"
#include "layers/golden.h"
#include "paths.h"
#include "skip.h"
#include "train/run_spec.h"

namespace dpt {
namespace {

using golden::at;
using golden::number;

// Up to 15 steps of nets with a few dozen weights: float32 losses differ by the order of sums, some
// 1e-7 a step. Another order of samples or of a mask moves them by more than 1e-4.
constexpr double kGate = 5e-6;

void check_losses(const Node& test, const std::vector<std::string>& overrides) {
  CAPTURE(at(at(test, "spec"), "name").text);
  CAPTURE(overrides.back());
  const Ran ran = run_spec(to_yaml(at(test, "spec")), overrides);
  REQUIRE_MESSAGE(ran.code == 0, ran.err);
  const std::vector<double> losses = ran.step_losses();
  const std::vector<Node>& expected = at(test, "losses").items;
  REQUIRE(losses.size() == expected.size());
  double worst = 0;
  for (size_t i = 0; i < losses.size(); ++i)
    worst = std::max(worst, std::abs(losses[i] - number(expected[i])));
  CAPTURE(worst);
  CHECK(worst <= kGate);
}

}  // namespace

TEST_CASE("orders of samples and masks are those of torch's usual loop, evaluated or not") {
  const golden::Document fixture = golden::read_fixture("torch_loops");
  int orders = 0, masks = 0;
  for (const Node& test : at(fixture.root, "cases").items) {
    const Node& dataset = at(at(at(test, "spec"), "data"), "dataset");
    const bool of_values = golden::find(dataset, "random");
    ++(of_values ? orders : masks);
    // A mask is drawn for the whole batch, whoever has its samples.
    std::vector<std::string> overrides = {"log.every=1", of_values ? "cores=1" : "cores=2"};
    if (golden::find(dataset, "image_folder")) {
      if (skip_without(reads_jpeg() && reads_png(), "libjpeg-turbo and libpng")) continue;
      overrides.push_back("data.dataset.path=" + test_file("fixtures/images"));
    }
    check_losses(test, overrides);
    if (of_values && !golden::find(at(test, "spec"), "random"))
      check_losses(test, {"log.every=1", "cores=1", "devices=2", "parallel=dp"});
  }
  CHECK(orders == 19);
  CHECK(masks == 47);
}

}  // namespace dpt
