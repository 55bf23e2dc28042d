// `ema`, and `average` of asgd: the average of the weights that evaluations use and the run saves.
#include "graph/formulas/average.h"

#include <algorithm>
#include <bit>
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

const Words kAverage = {"ema=0.8"};
const Words kAsgd = {"optimizer={asgd: {lr: 0.1, lambd: 0.1, t0: 4, average: true}}"};

std::vector<float> values_of(const std::string& file, const std::string& name) {
  const SafeTensorsFile in(file);
  const SafeTensorsFile::Entry* entry = in.find(name);
  REQUIRE_MESSAGE(entry, file << " has no " << name);
  std::vector<float> out(static_cast<size_t>(entry->desc.shape.elements()));
  in.read(*entry, std::as_writable_bytes(std::span(out)));
  return out;
}

// The number under `key` in each epoch's record.
std::vector<double> of_epochs(const Ran& ran, const char* key) {
  std::vector<double> out;
  std::istringstream in(ran.metrics);
  for (std::string line; std::getline(in, line);)
    if (line.starts_with("{\"epoch\""))
      out.push_back(number_at(*record_of(line), key).value_or(-1));
  return out;
}

TEST_CASE("averages follow each update; the model that a run leaves has them") {
  const Straight run(with(kAverage, {"cores=2"}));
  const std::string saved = run.folder.file("run/model.safetensors");
  for (const std::string name : {"1.weight", "1.bias", "2.weight", "5.weight"}) {
    CAPTURE(name);
    std::vector<float> average;
    for (int step = 1; step <= 15; ++step) {
      const std::vector<float> weight =
          values_of(checkpoint(run.folder, step) + "/model.safetensors", name);
      if (step == 1) average = weight;
      for (size_t i = 0; i < weight.size(); ++i)
        average[i] =
            formula::lerp(average[i], weight[i], formula::average_rate<float>(0.8, step == 1));
      CHECK(values_of(checkpoint(run.folder, step) + "/optimizer.safetensors", name + ".ema") ==
            average);
    }
    CHECK(values_of(saved, name) == average);
    CHECK(values_of(checkpoint(run.folder, 15) + "/model.safetensors", name) != average);
  }
  // Running statistics are the model's own.
  CHECK(values_of(saved, "2.running_mean") ==
        values_of(checkpoint(run.folder, 15) + "/model.safetensors", "2.running_mean"));
}

TEST_CASE("evaluations use the averages, and training goes on with the weights") {
  const Folder folder;
  const Ran averaged =
      run_spec_in({.folder = folder.path()}, kFiveSteps, with(kAverage, {"cores=2", "save=false"}));
  const Ran plain = run_spec(kFiveSteps, {"cores=2"});
  REQUIRE_MESSAGE(averaged.code == 0, averaged.err);
  CHECK(averaged.step_losses() == plain.step_losses());
  CHECK(of_epochs(averaged, "test.loss") != of_epochs(plain, "test.loss"));
  // The last evaluation is that of the weights that the run has saved.
  const auto session = session_of(
      kFiveSteps, {"cores=2", "initial_weights=" + folder.file("run/model.safetensors")});
  const double loss = evaluate(*session).loss;
  CHECK(of_epochs(averaged, "test.loss").back() ==
        doctest::Approx(loss).epsilon(1e-8));  // nine digits are written
}

TEST_CASE("a model in halves has averages in halves, as in PyTorch") {
  const Words replicas = {"parallel={local_sgd: 2}", "devices=2"};
  for (const Words& averages : {kAverage, kAsgd, with(kAsgd, replicas)}) {
    if (!kCanFork && averages.size() > 1) continue;
    const Folder folder;
    const Ran ran = run_spec_in(
        {.folder = folder.path()}, kFiveSteps,
        with(averages, {"cores=1", "save=false", "precision={bf16: {emulate: true, level: o3}}"}));
    REQUIRE_MESSAGE(ran.code == 0, ran.err);
    for (const float x : values_of(folder.file("run/model.safetensors"), "1.weight"))
      CHECK((std::bit_cast<uint32_t>(x) & 0xFFFFU) == 0);
  }
}

TEST_CASE("averages have the same bits in every mode, with states that their owners keep, too") {
  const std::string shards = kFiveSteps + "reproducible: {shards: 4}\nsync_batch_norm: true\n";
  for (const Words& averages : {kAverage, kAsgd}) {
    const Ran one = run_spec(shards, with(averages, {"cores=1"}));
    CHECK(of_epochs(one, "test.loss") != of_epochs(run_spec(shards, {"cores=1"}), "test.loss"));
    for (const Words& how :
         std::vector<Words>{{"cores=3"},
                            {"parallel=dp", "devices=2", "cores=1"},
                            {"parallel=ddp", "devices=2", "cores=1"},
                            {"parallel={pipeline: {stages: 2, chunks: 1}}", "cores=1"},
                            {"parallel={ddp: {shard: optimizer}}", "devices=4", "cores=1"}}) {
      if (!kCanFork && how[0].find("ddp") != std::string::npos) continue;
      CAPTURE(how[0]);
      const Ran other = run_spec(shards, with(averages, how));
      same(one, other);
      CHECK(of_epochs(one, "test.loss") == of_epochs(other, "test.loss"));
    }
  }
}

TEST_CASE("asgd averages the weights after step t0, and with `average` they are the result") {
  const Straight run(with(kAsgd, {"cores=2"}));
  const std::string saved = run.folder.file("run/model.safetensors");
  for (const std::string name : {"1.weight", "1.bias", "5.weight"}) {
    CAPTURE(name);
    std::vector<float> average;
    for (int step = 1; step <= 15; ++step) {
      const std::vector<float> weight =
          values_of(checkpoint(run.folder, step) + "/model.safetensors", name);
      const auto mu = static_cast<float>(1.0 / std::max(1, step - 1 - 4));
      if (mu == 1) average = weight;
      for (size_t i = 0; i < weight.size(); ++i) average[i] += (weight[i] - average[i]) * mu;
      CHECK(values_of(checkpoint(run.folder, step) + "/optimizer.safetensors", name + ".ax") ==
            average);
    }
    CHECK(values_of(saved, name) == average);
    CHECK(values_of(checkpoint(run.folder, 15) + "/model.safetensors", name) != average);
  }
  // Without `average`, training is the same, and the result is the weights.
  const Straight plain({"cores=2", "optimizer={asgd: {lr: 0.1, lambd: 0.1, t0: 4}}"});
  CHECK(plain.ran.step_losses() == run.ran.step_losses());
  CHECK(of_epochs(plain.ran, "test.loss") != of_epochs(run.ran, "test.loss"));
  CHECK(values_of(plain.folder.file("run/model.safetensors"), "1.weight") ==
        values_of(checkpoint(run.folder, 15) + "/model.safetensors", "1.weight"));
}

TEST_CASE("evaluations use one average") {
  const Ran ran = run_spec(kFiveSteps, with(kAsgd, kAverage));
  CHECK(ran.code == 2);
  CHECK_MESSAGE(ran.err.find("that of `ema` or that of optimizer 'asgd'; leave `ema` out") !=
                    std::string::npos,
                ran.err);
}

TEST_CASE("a skipped step changes no average, and the first one that is made begins it") {
  const Words how = {
      "cores=1", "optimizer={sgd: {lr: 0.05}}",
      "precision={fp16: {emulate: true, init_scale: 1048576, growth_interval: 100}}"};
  const Straight run(with(kAverage, how));
  REQUIRE(run.ran.metrics.find("\"skipped\": true") != std::string::npos);
  REQUIRE(run.ran.metrics.find("\"skipped\": false") != std::string::npos);
  std::vector<float> average;
  bool made = false;
  int step = 0;
  std::istringstream in(run.ran.metrics);
  for (std::string line; std::getline(in, line) && step < 15;) {
    if (!line.starts_with("{\"step\"")) continue;
    const auto weight =
        values_of(checkpoint(run.folder, ++step) + "/model.safetensors", "5.weight");
    if (line.find("\"skipped\": false") != std::string::npos) {
      for (size_t i = 0; i < weight.size(); ++i)
        average[i] = formula::lerp(average[i], weight[i], formula::average_rate<float>(0.8, !made));
      made = true;
    } else if (!made) {
      average = weight;  // still the initial weights
    }
    CHECK(values_of(checkpoint(run.folder, step) + "/optimizer.safetensors", "5.weight.ema") ==
          average);
  }
  CHECK(step == 15);
}

TEST_CASE("the rest of a run has the averages of the whole") {
  for (const Words& how :
       std::vector<Words>{{"cores=2"},
                          {"parallel={ddp: {shard: optimizer}}", "devices=2", "cores=1"},
                          {"parallel={pipeline: {stages: 2, chunks: 2}}", "cores=1"}}) {
    if (!kCanFork && how[0].find("ddp") != std::string::npos) continue;
    CAPTURE(how[0]);
    const Straight straight(with(kAverage, how));
    for (const int step : {3, 10}) {
      const Ran rest = straight.rest(step, with(kAverage, how));
      same(straight.ran, rest);
      CHECK(of_epochs(straight.ran, "test.loss") == of_epochs(rest, "test.loss"));
    }
  }
}

TEST_CASE("a checkpoint without averages: they start from its weights") {
  for (const Words& how : std::vector<Words>{
           {"cores=2"}, {"parallel={ddp: {shard: optimizer}}", "devices=2", "cores=1"}}) {
    if (!kCanFork && how[0].find("ddp") != std::string::npos) continue;
    CAPTURE(how[0]);
    const Straight without(how);
    const Folder folder;
    const Ran rest = run_spec_in({folder.path(), checkpoint(without.folder, 14)}, kFiveSteps,
                                 with(with({"save={every_steps: 1}"}, kAverage), how));
    REQUIRE_MESSAGE(rest.code == 0, rest.err);
    CHECK(rest.err.find("the checkpoint has no averages of the weights") != std::string::npos);
    std::vector<float> average =
        values_of(checkpoint(without.folder, 14) + "/model.safetensors", "1.weight");
    const auto last = values_of(checkpoint(without.folder, 15) + "/model.safetensors", "1.weight");
    for (size_t i = 0; i < last.size(); ++i)
      average[i] = formula::lerp(average[i], last[i], formula::average_rate<float>(0.8, false));
    CHECK(values_of(folder.file("run/model.safetensors"), "1.weight") == average);
  }
}

TEST_CASE("a run without ema continues one that has averages, and drops them") {
  const Straight averaged(with(kAverage, {"cores=2"}));
  const Straight plain({"cores=2"});
  same(plain.ran, averaged.rest(3, {"cores=2"}));
}

TEST_CASE("a decay must be at least 0 and below 1") {
  const Ran ran = run_spec(kFiveSteps, {"ema=1"});
  CHECK(ran.code == 2);
  CHECK_MESSAGE(ran.err.find("'ema' must be at least 0 and below 1") != std::string::npos, ran.err);
}

}  // namespace
}  // namespace dpt
