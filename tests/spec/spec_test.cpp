#include "spec/spec.h"

#include <cmath>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "small_registries.h"

namespace dpt {
namespace {

using test::complaints;
using test::Read;
using test::with_rest;

}  // namespace

TEST_CASE("the tutorial's spec, every value") {
  const Read r(
      "version: 1\nname: fmnist_ddp\nseed: 0\n"
      "data:\n  dataset: fashion_mnist\n  transforms: [to_tensor, {divide: 255}]\n"
      "  batch_size_per_replica: 100\n  shuffle: true\n  reshuffle: false\n"
      "model:\n  - flatten\n  - linear: 200\n    name: lin1\n  - sigmoid\n  - linear: 200\n"
      "  - log_softmax\n  - linear: 10\n"
      "loss: cross_entropy\noptimizer: {adam: 0.01}\nepochs: 10\ndevice: auto\ndevices: 2\n"
      "parallel: ddp\nprecision: fp32\n");
  CHECK(r.d.render() == "");
  const Spec& s = r.spec;
  CHECK(s.name == "fmnist_ddp");
  CHECK(s.path == "t.yaml");
  CHECK(s.data.dataset.what->name == "fashion_mnist");
  REQUIRE(s.data.transforms.size() == 2);
  CHECK(std::any_cast<const test::Divide&>(s.data.transforms[1].settings).by == 255);
  CHECK(s.data.batch_size_per_replica == 100);
  CHECK(!s.data.batch_size);
  CHECK(!s.data.reshuffle);
  CHECK(s.model.size() == 6);
  CHECK(s.model[1].name == "lin1");
  CHECK(s.loss.what->name == "cross_entropy");
  CHECK(std::any_cast<const test::Adam&>(s.optimizer.settings).lr == 0.01);
  CHECK(s.epochs == 10);
  CHECK(!s.steps);
  CHECK(s.devices.device == "auto");
  CHECK(s.devices.count == 2);
  CHECK(s.parallel.what->name == "ddp");
}

TEST_CASE("what is left out has its default") {
  const Read r(with_rest(""));
  CHECK(r.d.render() == "");
  const Spec& s = r.spec;
  CHECK(s.name.empty());
  CHECK(s.seed == 0);
  CHECK(s.epochs == 1);
  CHECK(!s.steps);
  CHECK(s.parallel.what->name == "single");
  CHECK(!s.schedule.schedule);
  CHECK(!s.devices.count);
  CHECK(!s.devices.cores);
  CHECK(!s.reproducible_shards);
  CHECK(!s.evaluate.on);
  CHECK(!s.clip.max_norm);
  CHECK(!s.clip.value);
  CHECK(s.log.loss == "global");
  CHECK(s.random == "counter");
  CHECK(s.precision.what->name == "fp32");
  CHECK(s.accumulate == 1);
  CHECK(s.data.reshuffle);
}

TEST_CASE("every choice is written in three ways") {
  const auto momentum = [](const std::string& optimizer) {
    const Read r(with_rest("optimizer: " + optimizer + "\n"));
    REQUIRE(r.d.render() == "");
    const auto& s = std::any_cast<const test::Sgd&>(r.spec.optimizer.settings);
    return std::pair(s.lr, s.momentum);
  };
  CHECK(momentum("sgd") == std::pair(1e-3, 0.0));
  CHECK(momentum("{sgd: 0.1}") == std::pair(0.1, 0.0));
  CHECK(momentum("{sgd: {momentum: 0.9}}") == std::pair(1e-3, 0.9));
  CHECK(momentum("{sgd: }") == std::pair(1e-3, 0.0));
  const Read r(with_rest("parallel: {ddp: {backend: gloo, bucket_cap_mb: 25}}\n"));
  CHECK(std::any_cast<const test::Ddp&>(r.spec.parallel.settings).backend == "gloo");
}

TEST_CASE("a schedule with what may stand beside it") {
  const Read r(with_rest("schedule: {step: {step_size: 3}, warmup: 2, interval: step}\n"));
  CHECK(r.d.render() == "");
  CHECK(r.spec.schedule.schedule.what->name == "step");
  CHECK(r.spec.schedule.warmup == 2);
  CHECK(r.spec.schedule.interval == "step");
  CHECK(r.spec.schedule.warmup_factor == 1e-2);
  const Read only(with_rest("schedule: {warmup: 5, warmup_factor: 0.5}\n"));
  CHECK(only.d.render() == "");
  CHECK(!only.spec.schedule.schedule);
  CHECK(only.spec.schedule.warmup == 5);
  CHECK(!Read(with_rest("schedule: null\n")).spec.schedule.schedule);
}

TEST_CASE("batch_size may be auto, in a file and as an override") {
  const auto read = [](const std::string& batch) {
    std::string text = with_rest("");
    const std::string given = "batch_size: 100";
    text.replace(text.find(given), given.size(), batch);
    return Read(text);
  };
  const Read chosen = read("batch_size: auto");
  CHECK(chosen.d.render() == "");
  CHECK(chosen.spec.data.auto_batch);
  CHECK(!chosen.spec.data.batch_size);
  const Read given = read("batch_size: 7");
  CHECK(!given.spec.data.auto_batch);
  CHECK(given.spec.data.batch_size == 7);
  CHECK(read("batch_size: \"auto\"").spec.data.auto_batch);  // as in JSON
  CHECK(read("batch_size: 0").d.render().find("must be between 1 and 2^31") != std::string::npos);
  CHECK(read("batch_size: auto, batch_size_per_replica: 4")
            .d.render()
            .find("cannot be used together") != std::string::npos);
}

TEST_CASE("sections that may be one value") {
  const Read r(with_rest(
      "reproducible: 8\nclip_grad_norm: 1.5\nclip_grad_value: 0.5\nevaluate: true\nsteps: 7\n"));
  CHECK(r.d.render() == "");
  CHECK(r.spec.reproducible_shards == 8);
  CHECK(r.spec.clip.max_norm == 1.5);
  CHECK(r.spec.clip.norm_type == 2);
  CHECK(r.spec.clip.value == 0.5);
  CHECK(r.spec.evaluate.on);
  CHECK(r.spec.evaluate.every == 1);
  CHECK(r.spec.steps == 7);
  CHECK(!r.spec.epochs);
  const Read maps(with_rest(
      "reproducible: {shards: 4}\nclip_grad_norm: {max_norm: 2, norm_type: .inf}\n"
      "evaluate: {every: 3, batch_size: 10}\nlog: {every: 5, loss: rank0, shapes: true}\n"));
  CHECK(maps.d.render() == "");
  CHECK(maps.spec.reproducible_shards == 4);
  CHECK(std::isinf(maps.spec.clip.norm_type));
  CHECK(maps.spec.evaluate.on);
  CHECK(maps.spec.evaluate.batch_size == 10);
  CHECK(maps.spec.log.every == 5);
  CHECK(maps.spec.log.loss == "rank0");
  CHECK(maps.spec.log.shapes);
  CHECK(!Read(with_rest("evaluate: false\n")).spec.evaluate.on);
}

TEST_CASE("devices are a number or a list") {
  const Read r(with_rest("devices: [cpu:1, cpu:0]\ncores: 3\n"));
  CHECK(r.d.render() == "");
  CHECK(r.spec.devices.device == "cpu");
  CHECK(r.spec.devices.count == 2);
  CHECK(r.spec.devices.indices == std::vector<int64_t>{1, 0});
  CHECK(r.spec.devices.cores == 3);
  const Read numbers(with_rest("device: cuda\ndevices: [0, 2]\n"));  // refused elsewhere
  CHECK(numbers.d.render() == "");
  CHECK(numbers.spec.devices.device == "cuda");
  CHECK(numbers.spec.devices.indices == std::vector<int64_t>{0, 2});
}

TEST_CASE("seeds are any 64-bit integer") {
  CHECK(Read(with_rest("seed: -1\n")).spec.seed == -1);
  CHECK(Read(with_rest("seed: 9223372036854775807\n")).spec.seed == INT64_MAX);
  CHECK(!Read(with_rest("seed: -9223372036854775809\n")).d.ok());
}

TEST_CASE("all complaints of a file come at once, in its order") {
  CHECK(complaints(with_rest("epochs: 010\n"
                             "model:\n"
                             "  - linaer: 200\n"
                             "  - linear: {out_feature: 5, bias: yes}\n"
                             "optimizer:\n"
                             "  sgd:\n"
                             "    momentun: 0.9\n")) ==
        "t.yaml:1:9: error: 'epochs' must be an integer, not '010': a leading 0 means octal in "
        "YAML; write it without the 0\n"
        "    1 | epochs: 010\n"
        "      |         ^^^\n"
        "t.yaml:3:5: error: unknown layer 'linaer'; did you mean 'linear'?\n"
        "    3 |   - linaer: 200\n"
        "      |     ^^^^^^\n"
        "t.yaml:4:5: error: layer 'linear' needs 'out_features': size of each output sample\n"
        "    4 |   - linear: {out_feature: 5, bias: yes}\n"
        "      |     ^^^^^^\n"
        "t.yaml:4:14: error: unknown key 'out_feature' in layer 'linear'; did you mean "
        "'out_features'?\n"
        "    4 |   - linear: {out_feature: 5, bias: yes}\n"
        "      |              ^^^^^^^^^^^\n"
        "t.yaml:4:36: error: 'bias' must be true or false, not 'yes'\n"
        "    4 |   - linear: {out_feature: 5, bias: yes}\n"
        "      |                                    ^^^\n"
        "t.yaml:7:5: error: unknown key 'momentun' in optimizer 'sgd'; did you mean 'momentum'?\n"
        "    7 |     momentun: 0.9\n"
        "      |     ^^^^^^^^\n");
}

TEST_CASE("a precision is a choice with settings") {
  const Read r(with_rest("precision: {bf16: o2}\n"));
  CHECK(r.d.render() == "");
  CHECK(r.spec.precision.what->name == "bf16");
  CHECK(std::any_cast<const test::Mixed&>(r.spec.precision.settings).level == "o2");
  CHECK(complaints(with_rest("precision: fp8\n")).find("known: fp32, bf16") != std::string::npos);
}

}  // namespace dpt
