// `log.grad_norms`: the norm of each parameter's gradient in step records.
#include <cmath>
#include <sstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "checkpoint/resumed_run.h"
#include "formats/safetensors.h"
#include "train/metrics_file.h"
#include "train/run_spec.h"

namespace dpt {
namespace {

const std::vector<std::string> kNames = {"1.weight", "1.bias",   "2.weight",
                                         "2.bias",   "5.weight", "5.bias"};

std::vector<float> weights_of(const Folder& run, int step, const std::string& name) {
  const SafeTensorsFile in(checkpoint(run, step) + "/model.safetensors");
  const SafeTensorsFile::Entry* entry = in.find(name);
  REQUIRE_MESSAGE(entry, name);
  std::vector<float> out(static_cast<size_t>(entry->desc.shape.elements()));
  in.read(*entry, std::as_writable_bytes(std::span(out)));
  return out;
}

// The norms in the records of steps, as JSON objects.
std::vector<std::string> norms_in(const Ran& ran) {
  CHECK_MESSAGE(ran.code == 0, ran.err);
  std::vector<std::string> out;
  std::istringstream in(ran.metrics);
  for (std::string line; std::getline(in, line);)
    if (const auto record = record_of(line); const Json* norms = record.value().find("grad_norms"))
      out.push_back(norms->dump());
  return out;
}

// With plain SGD, a step is lr times the gradient.
TEST_CASE("norms are those of the gradients that steps are made of, before clipping") {
  const Words log = {"log={every: 1, grad_norms: true}", "optimizer={sgd: 0.25}", "epochs=1"};
  for (const Words& how :
       std::vector<Words>{{"cores=1"}, {"cores=2"}, {"cores=2", "accumulate=2"}}) {
    CAPTURE(how.back());
    const Straight run(with(log, how));
    const auto norms = norms_in(run.ran);
    REQUIRE(norms.size() == 5);
    for (int step = 2; step <= 5; ++step)
      for (const std::string& name : kNames) {
        CAPTURE(name);
        const auto before = weights_of(run.folder, step - 1, name);
        const auto after = weights_of(run.folder, step, name);
        double squares = 0;
        for (size_t i = 0; i < before.size(); ++i)
          squares +=
              std::pow((static_cast<double>(before[i]) - static_cast<double>(after[i])) / 0.25, 2);
        const double norm =
            number_at(*record_of(norms[static_cast<size_t>(step) - 1]), name).value_or(-1);
        // A weight near 1 is rounded to 6e-8, its difference to 4 times that by the division.
        const double rounding = 2.4e-7 * std::sqrt(static_cast<double>(before.size()));
        CHECK(std::abs(norm - std::sqrt(squares)) <= rounding);
      }
    // Steps are smaller with clipping, the gradient of the first one is the same.
    const auto clipped =
        norms_in(run_spec(kFiveSteps, with(with(log, how), {"clip_grad_norm=1e-3"})));
    CHECK(clipped[0] == norms[0]);
    CHECK(clipped[4] != norms[4]);
  }
}

TEST_CASE("norms do not depend on the loss scale") {
  const auto first = [](const char* scale) {
    const Ran ran = run_spec(
        kFiveSteps, {"log={every: 1, grad_norms: true}", "epochs=1", "cores=1",
                     fmt::format("precision={{fp16: {{emulate: true, init_scale: {}}}}}", scale)});
    return number_at(*record_of(norms_in(ran).at(0)), "5.bias").value_or(-1);
  };
  // Powers of two, neither of which makes subnormal or infinite gradients of this layer.
  CHECK(first("1024") == doctest::Approx(first("256")).epsilon(1e-3));  // halves have 11 bits
}

// Stored gradients are rounded in other places than those that are fused into the update.
TEST_CASE("only recorded steps are measured; bits are those of other runs that store gradients") {
  const Ran plain = run_spec(kFiveSteps, {"cores=2", "clip_grad_norm=1e30"});
  const Ran measured = run_spec(kFiveSteps, {"cores=2", "log={every: 3, grad_norms: true}"});
  CHECK(norms_in(measured).size() == 5);  // of 15 steps
  CHECK(norms_in(plain).empty());
  CHECK(plain.losses() == measured.losses());
}

TEST_CASE("steps that are not recorded have no barrier for it") {
  const auto plain = session_of(kFiveSteps, {"cores=2"});
  const auto measured = session_of(kFiveSteps, {"cores=2", "log={every: 3, grad_norms: true}"});
  CHECK(measured->plan.barriers(1) == plain->plan.barriers(1));
  CHECK(measured->plan.str().find("sum_loss, sum_squares (recorded steps)\n"
                                  "  all          barrier (recorded steps)\n") !=
        std::string::npos);
  // Clipping needs the norm in every step.
  const auto clipped =
      session_of(kFiveSteps, {"cores=2", "log={every: 3, grad_norms: true}", "clip_grad_norm=1"});
  CHECK(clipped->plan.barriers(1) == plain->plan.barriers(1) + 1);
  CHECK(clipped->plan.str().find("recorded") == std::string::npos);
}

TEST_CASE("frozen parameters have no norm") {
  const Ran ran = run_spec(kFiveSteps, {"cores=1", "epochs=1", "model[1].freeze=true",
                                        "log={every: 1, grad_norms: true}"});
  const auto norms = norms_in(ran);
  REQUIRE(norms.size() == 5);
  CHECK(norms[0].find("1.weight") == std::string::npos);
  CHECK(ran.err.find(" of them frozen), single on one CPU device") != std::string::npos);
  CHECK(number_at(*record_of(norms[0]), "5.bias").value_or(0) > 0);
}

TEST_CASE("norms have the same bits in every mode") {
  const std::string spec = kFiveSteps + "reproducible: {shards: 4}\n";
  const Words log = {"log={every: 2, grad_norms: true}"};
  // Parameters of several chunks, which workers measure apart.
  const Words wide = {"model=[flatten, {linear: 700}, relu, {linear: 10}]", "epochs=1"};
  const auto one = norms_in(run_spec(spec, with(with(log, wide), {"cores=1"})));
  CHECK(one.size() == 2);
  for (const Words& how :
       std::vector<Words>{{"cores=3"},
                          {"parallel=dp", "devices=2", "cores=2"},
                          {"parallel=ddp", "devices=2", "cores=1"},
                          {"parallel={ddp: {shard: optimizer}}", "devices=2", "cores=1"}}) {
    if (!kCanFork && how[0].find("ddp") != std::string::npos) continue;
    CAPTURE(how[0]);
    CHECK(norms_in(run_spec(spec, with(with(log, wide), how))) == one);
  }
}

}  // namespace
}  // namespace dpt
