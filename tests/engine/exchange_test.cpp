// What ranks read of each other's gradients, and where the optimizer's states are:
// parallel/exchange.h.
#include "parallel/exchange.h"

#include <cstring>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/units.h"
#include "data/folder.h"
#include "describe/plan_text.h"
#include "describe/traffic.h"
#include "engine/own_states.h"
#include "formats/safetensors.h"
#include "layers/golden.h"
#include "report/measure.h"
#include "session/update_partition.h"
#include "skip.h"
#include "train/run.h"
#include "train/run_spec.h"

namespace dpt {
namespace {

std::string spec(const std::string& more = "", const std::string& optimizer = "adam: 0.01") {
  return R"(
data:
  dataset: {synthetic_images: {samples: 120, shape: [1, 6, 6]}}
  transforms: [to_tensor]
  batch_size: 40
model: [flatten, {linear: 70}, relu, {dropout: 0.3}, {linear: 33}, relu, {linear: 10}]
loss: cross_entropy
epochs: 2
log: {every: 1}
)" + more +
         "optimizer: {" + optimizer + "}\n";
}

Ran run(const std::string& text, const std::string& parallel, int devices) {
  return run_spec(text, {"parallel=" + parallel, "devices=" + std::to_string(devices), "cores=1"});
}

std::unique_ptr<const Session> two_of(const std::string& text, const std::string& parallel) {
  return session_of(text, {"parallel=" + parallel, "devices=2", "cores=1"});
}

std::vector<float> numbers(const Node& list) {
  std::vector<float> out;
  for (const Node& n : list.items) out.push_back(static_cast<float>(golden::number(n)));
  return out;
}

TEST_CASE("compressed gradients are those of torch's hooks, to the bit where sums are exact") {
  if (skip_without(kCanFork, "a process that may fork")) return;
  const golden::Document fixture = golden::read_fixture("comm_hooks");
  const Folder folder;
  std::string csv;
  for (const Node& row : golden::at(fixture.root, "rows").items) {
    const std::vector<float> values = numbers(row);
    csv += fmt::format("{}\n", fmt::join(values, ","));
  }
  folder.write("t.csv", csv);
  const std::vector<float> weight = numbers(golden::at(fixture.root, "weight")), bias(4);
  write_safetensors(
      folder.file("w.safetensors"),
      {{{"0.weight", {DType::f32, {4, 6}}, reinterpret_cast<const std::byte*>(weight.data())},
        {"0.bias", {DType::f32, {4}}, reinterpret_cast<const std::byte*>(bias.data())}}});
  const std::string text =
      fmt::format(R"(
data:
  dataset: {{csv: {{path: {}, targets: [6, 7, 8, 9]}}}}
  batch_size: 16
  shuffle: false
model: [{{linear: 4}}]
loss: mse_loss
optimizer: {{sgd: {}}}
steps: 1
initial_weights: {}
)",
                  folder.file("t.csv"), golden::number(golden::at(fixture.root, "lr")),
                  folder.file("w.safetensors"));
  for (const Node& c : golden::at(fixture.root, "cases").items) {
    const std::string& hook = golden::at(c, "hook").text;
    CAPTURE(hook);
    std::vector<float> expected = numbers(golden::at(c, "weight"));
    for (float b : numbers(golden::at(c, "bias"))) expected.push_back(b);
    const Ran ran = run(text, hook == "none" ? "ddp" : "{ddp: {compress: " + hook + "}}", 2);
    REQUIRE_MESSAGE(ran.code == 0, ran.err);
    const std::string bytes = data_of(ran.weights);
    std::vector<float> got(expected.size());
    REQUIRE(bytes.size() == got.size() * sizeof(float));
    std::memcpy(got.data(), bytes.data(), bytes.size());
    CHECK(got == expected);
  }
}

TEST_CASE(
    "compressed gradients have the same bits for any number of ranks, and others than whole") {
  if (skip_without(kCanFork, "a process that may fork")) return;
  for (const std::string& more :
       {std::string(), std::string("clip_grad_norm: 0.1\n"), std::string("accumulate: 3\n"),
        std::string("precision: {fp16: {emulate: true, init_scale: 1048576}}\n")}) {
    CAPTURE(more);
    const std::string text = spec("reproducible: {shards: 4}\n" + more);
    const Ran one = run(text, "{ddp: {compress: bf16}}", 1);
    same(one, run(text, "{ddp: {compress: bf16}}", 2));
    same(one, run(text, "{ddp: {compress: bf16}}", 4));
    CHECK(data_of(one.weights) != data_of(run(text, "ddp", 2).weights));
    CHECK(data_of(one.weights) != data_of(run(text, "{ddp: {compress: fp16}}", 2).weights));
  }
  const std::string text = spec("reproducible: {shards: 4}\n");
  same(run(text, "{ddp: {compress: bf16}}", 1),
       run(text, "{pipeline: {stages: 2, data_parallel: 2, compress: bf16}}", 4));
}

TEST_CASE("sharded states change no bit") {
  if (skip_without(kCanFork, "a process that may fork")) return;
  for (const char* optimizer : {"adam: {lr: 0.01, amsgrad: true}", "sgd: {lr: 0.1}",
                                "adagrad: {lr: 0.1, initial_accumulator_value: 0.3}"})
    for (const char* more : {"", "clip_grad_norm: 0.1\n"}) {  // fused weights, stored ones
      CAPTURE(optimizer);
      const std::string text = spec(more, optimizer);
      same(run(text, "ddp", 4), run(text, "{ddp: {shard: optimizer}}", 4));
      const std::string pipeline = "{pipeline: {stages: 2, chunks: 2, data_parallel: 2";
      same(run(text, pipeline + "}}", 4), run(text, pipeline + ", shard: optimizer}}", 4));
    }
}

TEST_CASE("sharded states are out of the memory that ranks share: each element has one owner") {
  const auto whole = two_of(spec(), "ddp"), sharded = two_of(spec(), "{ddp: {shard: optimizer}}");
  CHECK(whole->layout.buffers.states == 2);
  CHECK(sharded->layout.buffers.states == 0);
  const double states = 2.0 * sizeof(float) * static_cast<double>(sharded->model.layout.trainable);
  // Through which states pass into a checkpoint.
  const size_t window = sharded->layout.buffers.window * sizeof(float) + 128;
  CHECK(Buffers::bytes(whole->layout.buffers) - Buffers::bytes(sharded->layout.buffers) + window >=
        states);
  size_t own = 0;
  for (const auto& share :
       partition_update(sharded->model.programs.begin()->second, sharded->model.layout,
                        sharded->batches.global_batch, sharded->devices.topology))
    own += OwnStates::elements(share);
  // All of them once; a piece ends with its cache line.
  CHECK(own >= static_cast<size_t>(sharded->model.parameters()));
  CHECK(own <= sharded->model.layout.trainable + 16 * sharded->model.graph.parameters.size());
  CHECK(describe(*sharded, false).find("optimizer states: each rank holds the states") !=
        std::string::npos);
}

TEST_CASE("states of a share lie one piece after another, each with the value it begins with") {
  const std::vector<UpdatePiece> share = {{.begin = 32, .end = 69}, {.begin = 160, .end = 176}};
  CHECK(OwnStates::elements(share) == 48 + 16);
  OwnStates states(share, 2, 0.5F);
  for (int i = 0; i < 2; ++i)
    for (size_t p = 0; p < share.size(); ++p)
      for (size_t at = share[p].begin; at < share[p].end; ++at) {
        float& x = states.state(i, p)[at];
        CHECK(x == 0.5F);  // else another one's
        x = -1;
      }
}

TEST_CASE("stages have nothing of each other's gradients") {
  CHECK(remote_share(*two_of(spec(), "dp")) > 0);
  CHECK(remote_share(*two_of(spec(), "pipeline")) == 0);
}

TEST_CASE("of compressed gradients half as many bytes are read") {
  const std::string text = spec("clip_grad_norm: 1\n");  // all are stored, compressed or not
  const auto whole = two_of(text, "ddp"), half = two_of(text, "{ddp: {compress: bf16}}");
  CHECK(half->model.layout.stored == whole->model.layout.stored);
  CHECK(half->layout.buffers.halved == whole->model.layout.stored);
  // Each of two ranks reads half of the other's; what else is moved is the same.
  const double read = remote_share(*whole), compressed = remote_share(*half);
  CHECK(read / (1 - 2 * read) == doctest::Approx(2 * compressed / (1 - 2 * compressed)));
  CHECK(describe(*half, false).find("gradients of other ranks: read as bf16\n") !=
        std::string::npos);
  // The sum of the shards' gradients, for the norm.
  const auto sums = [](const Session& session) {
    uint64_t out = 0;
    for (const WorkerTraffic& lines : traffic_of(session))
      for (const TrafficLine& line : lines) out += line.name == "sum_squares" ? line.bytes.read : 0;
    return out;
  };
  CHECK(sums(*whole) == 4 * whole->model.layout.stored);
  CHECK(sums(*half) == 2 * whole->model.layout.stored);
}

}  // namespace
}  // namespace dpt
