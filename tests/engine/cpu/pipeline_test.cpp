// Layers on several devices: the bits are those of one device, whoever has which layer and in which
// order the chunks go.
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "oracles/random_spec.h"
#include "skip.h"
#include "train/run_spec.h"

namespace dpt {
namespace {

std::string spec(const std::string& more = "") {
  return R"(
data:
  dataset: {synthetic_images: {samples: 83, test_samples: 57, shape: [1, 6, 6]}}
  transforms: [to_tensor]
  batch_size: 32
model:
  - flatten
  - {linear: 19, name: lin1}
  - {layer_norm: null, name: norm}
  - gelu
  - {dropout: 0.3, name: drop}
  - {linear: 13, name: lin2}
  - {residual: {body: [{linear: 13}, tanh]}, name: rest}
  - {linear: 10, name: last}
loss: cross_entropy
optimizer: {adam: 0.01}
epochs: 2
log: {every: 1}
evaluate: {batch_size: 10}
)" + more;
}

std::string pipeline(const std::string& keys) {
  return fmt::format("parallel={{pipeline: {{{}}}}}", keys);
}

TEST_CASE("a model on several devices has the bits of one device") {
  const Ran one = run_spec(spec(), {"cores=1"});
  for (const std::vector<std::string>& where : std::vector<std::vector<std::string>>{
           {"model.lin2.device=1"},
           {"model.lin1.device=1"},
           {"model.norm.device=1", "model.lin2.device=0", "model.last.device=2"}}) {
    CAPTURE(where[0]);
    std::vector<std::string> how = where;
    how.emplace_back("cores=1");
    same(one, run_spec(spec(), how));
  }
  same(run_spec(spec("accumulate: 3\n"), {"cores=2"}),
       run_spec(spec("accumulate: 3\n"), {"cores=2", "model.norm.device=1"}));
}

TEST_CASE("a pipeline has the bits of one device that computes the chunks one by one") {
  const Ran one = run_spec(spec("accumulate: 4\n"), {"cores=1"});
  for (const char* keys :
       {"stages: 2, chunks: 4", "stages: 2, chunks: 4, schedule: gpipe",
        "stages: 2, chunks: 4, schedule: interleaved_1f1b", "stages: 3, chunks: 4",
        "stages: 2, chunks: 4, cut: norm", "stages: 2, chunks: 4, balance: memory",
        "stages: 2, chunks: 4, schedule: interleaved_1f1b, cut: [norm, lin2, last]"}) {
    CAPTURE(keys);
    same(one, run_spec(spec(), {pipeline(keys), "cores=1"}));
  }
  if (kCanFork)
    same(one, run_spec(spec(), {pipeline("stages: 3, chunks: 4, processes: true"), "cores=1"}));
  same(run_spec(spec("accumulate: 4\n"), {"cores=2"}),
       run_spec(spec(), {pipeline("stages: 2, chunks: 4"), "cores=2"}));
}

TEST_CASE("replicas of a pipeline have the bits of ddp, clipped or not") {
  if (skip_without(kCanFork, "a process that may fork")) return;
  for (const char* more : {"", "clip_grad_norm: 0.5\n",
                           "loss: {cross_entropy: {weight: [1, 2, 3, "
                           "1, 2, 3, 1, 2, 3, 1]}}\n"}) {
    CAPTURE(more);
    std::string text = spec();
    if (std::string(more).starts_with("loss"))
      text.replace(text.find("loss: cross_entropy\n"), 20, more);
    else
      text += more;
    const Ran ddp = run_spec(text, {"parallel=ddp", "devices=2", "cores=1", "accumulate=2"});
    same(ddp, run_spec(text, {pipeline("stages: 2, chunks: 2, data_parallel: 2"), "cores=1"}));
    same(ddp, run_spec(text, {pipeline("stages: 2, chunks: 2, data_parallel: 2, processes: true"),
                              "cores=1"}));
    same(ddp, run_spec(text, {"parallel=ddp", "devices=4", "cores=1", "accumulate=2",
                              "model.lin2.device=1"}));
  }
}

TEST_CASE("reproducible shards: pipelines and placements, too") {
  const std::string text = spec("reproducible: {shards: 4}\n");
  const Ran one = run_spec(text, {"cores=1", "accumulate=2"});
  same(one, run_spec(text, {pipeline("stages: 2, chunks: 2"), "cores=1"}));
  same(one, run_spec(text, {pipeline("stages: 2, chunks: 2"), "cores=3"}));
  same(one, run_spec(text, {pipeline("stages: 2"), "cores=1", "accumulate=2"}));
  if (kCanFork)
    same(one, run_spec(text, {pipeline("stages: 2, chunks: 2, data_parallel: 2"), "cores=1"}));
}

// As torch's Pipe: each chunk has statistics of its own, and each moves the running ones.
TEST_CASE("batch norm in a pipeline has the statistics of a chunk") {
  std::string text = spec();
  text.replace(text.find("layer_norm"), 10, "batch_norm1d");
  const Ran one = run_spec(text, {"cores=1", "accumulate=4"});
  same(one, run_spec(text, {pipeline("stages: 2, chunks: 4"), "cores=1"}));
  same(one, run_spec(text, {pipeline("stages: 3, chunks: 4, schedule: gpipe"), "cores=1"}));
  const Ran two = run_spec(text, {"cores=2", "accumulate=4"});
  same(two, run_spec(text, {pipeline("stages: 2, chunks: 4"), "cores=2"}));
  if (skip_without(kCanFork, "a process that may fork")) return;
  const Ran sync = run_spec(
      text, {"parallel=ddp", "devices=2", "cores=1", "accumulate=2", "sync_batch_norm=true"});
  same(sync, run_spec(text, {pipeline("stages: 2, chunks: 2, data_parallel: 2"), "cores=1",
                             "sync_batch_norm=true"}));
}

TEST_CASE("what is computed again has the same bits") {
  std::string text = spec();
  text.replace(text.find("layer_norm"), 10, "batch_norm1d");
  const Ran one = run_spec(text, {"cores=1", "accumulate=4"});
  for (const char* which : {"always", "except_last"})
    for (const char* schedule : {"1f1b", "gpipe"}) {
      CAPTURE(which);
      same(one, run_spec(text, {pipeline(fmt::format("stages: 2, chunks: 4, checkpoint: {}, "
                                                     "schedule: {}",
                                                     which, schedule)),
                                "cores=1"}));
    }
  same(run_spec(text, {"cores=2", "accumulate=3"}),
       run_spec(text, {pipeline("stages: 2, chunks: 3, checkpoint: always"), "cores=2"}));
}

// Weights of linear layers sum in another order where their gradients are fused into the update.
TEST_CASE("layers that are computed again have the same bits, with fused and stored gradients") {
  const std::vector<std::string> some = {"model.norm.checkpoint=true", "model.drop.checkpoint=true",
                                         "model.lin2.checkpoint=true",
                                         "model.rest.checkpoint=true"};
  std::vector<std::vector<std::string>> ways = {{"cores=2"},
                                                {"cores=2", "reproducible={shards: 5}"},
                                                {"cores=2", "clip_grad_value=0.01"},
                                                {"cores=2", "accumulate=2"},
                                                {"cores=1", "parallel=dp", "devices=2"},
                                                {"cores=2", pipeline("stages: 2, chunks: 1")}};
  if (kCanFork) {
    ways.push_back({"cores=1", "parallel=ddp", "devices=2"});
    ways.push_back({"cores=1", "parallel=ddp", "devices=2", "clip_grad_norm=0.5"});
    ways.push_back({"cores=1", pipeline("stages: 2, chunks: 1, data_parallel: 2")});
  }
  for (const std::vector<std::string>& how : ways) {
    CAPTURE(how.back());
    std::vector<std::string> again = how;
    again.insert(again.end(), some.begin(), some.end());
    const Ran kept = run_spec(spec(), how);
    same(kept, run_spec(spec(), again));
    if (how.back().starts_with("parallel={pipeline"))
      for (const char* which : {"always", "except_last"})
        same(kept, run_spec(spec(), {how[0], how[1],
                                     fmt::format("parallel.pipeline.checkpoint={}", which)}));
  }
}

TEST_CASE("a view that is computed again leaves the bits the same in every mode") {
  const std::string text = R"(
data:
  dataset: {synthetic_images: {samples: 8, shape: [4, 10, 13]}}
  transforms: [to_tensor]
  batch_size: 8
model: [{flatten: null, checkpoint: true, name: rows}, {linear: 10}]
loss: cross_entropy
optimizer: {sgd: 0.1}
reproducible: {shards: 5}
log: {every: 1}
)";
  const Ran kept = run_spec(text, {"cores=1", "model.rows.checkpoint=false"});
  same(kept, run_spec(text, {"cores=1"}));
  same(kept, run_spec(text, {"cores=1", "parallel=dp", "devices=2"}));
  same(kept, run_spec(text, {"cores=1", pipeline("stages: 2")}));
  if (kCanFork) same(kept, run_spec(text, {"cores=1", "parallel=ddp", "devices=2"}));
}

TEST_CASE("mixed precision in a pipeline has the bits of one device") {
  for (const char* precision : {"{bf16: {emulate: true}}", "{fp16: {emulate: true}}"}) {
    const std::string how = fmt::format("precision={}", precision);
    same(run_spec(spec(), {"cores=1", "accumulate=4", how}),
         run_spec(spec(), {pipeline("stages: 3, chunks: 4"), "cores=1", how}));
  }
}

// Each half is made where it is first read, by a node of the stage that has its numbers, and all of
// these are run before the next stage reads any.
TEST_CASE("two halves that a later stage reads have memory of their own") {
  std::string text = spec();
  const size_t model = text.find("model:"), loss = text.find("loss:");
  text.replace(model, loss - model,
               "model: [flatten, {identity: {}, name: x}, {linear: 15, name: a}, "
               "{linear: 15, name: b, from: x}, {add: {}, from: [a, b]}, {linear: 10}]\n");
  for (const char* precision : {"fp32", "{bf16: {emulate: true}}"}) {
    CAPTURE(precision);
    const std::string how = fmt::format("precision={}", precision);
    same(run_spec(text, {"cores=1", "accumulate=2", how}),
         run_spec(text, {pipeline("stages: 2, chunks: 2, cut: b"), "cores=1", how}));
  }
}

// Compares two runs of a random spec. Both may refuse a batch that leaves batch norm a single
// sample, and the second one a stage without anything to compute. Returns whether they trained.
bool same_or_refused(const Ran& a, const Ran& b) {
  const auto refused = [](const Ran& ran, const char* why) {
    return ran.code == 2 && ran.err.find(why) != std::string::npos;
  };
  if (refused(b, "has nothing to compute")) return false;
  const char* const norm = "no variance for batch norm";
  CHECK(refused(a, norm) == refused(b, norm));
  if (refused(a, norm) || refused(b, norm)) return false;
  same(a, b);
  return true;
}

TEST_CASE("random models in a pipeline have the bits of one device") {
  int trained = 0;
  for (uint64_t seed = 0; seed < (kSanitized ? 3 : 10); ++seed) {
    CAPTURE(seed);
    const std::string text = random_spec(seed);
    const Ran one = run_spec(text, {"cores=1", "accumulate=2"});
    const auto check = [&](const Ran& a, const std::string& stages) {
      trained +=
          same_or_refused(a, run_spec(text, {pipeline(stages), "cores=1", "accumulate=1"})) ? 1 : 0;
    };
    check(one, "stages: 2, chunks: 2");
    check(one, "stages: 2, chunks: 2, schedule: gpipe");
    check(run_spec(text, {"cores=1", "accumulate=1"}), "stages: 2");
  }
  CHECK(trained >= (kSanitized ? 6 : 20));
}

TEST_CASE("random models, placed on devices and in replicas of pipelines, have the bits of one") {
  if (skip_without(kCanFork, "a process that may fork")) return;
  int trained = 0;
  for (uint64_t seed = 20; seed < (kSanitized ? 23 : 30); ++seed) {
    CAPTURE(seed);
    const std::string text = random_spec(seed) + "reproducible: {shards: 4}\n";
    const Ran one = run_spec(text, {"cores=1", "accumulate=2"});
    for (const std::vector<std::string>& how : std::vector<std::vector<std::string>>{
             {pipeline("stages: 2, chunks: 2, data_parallel: 2"), "cores=1", "accumulate=1"},
             {"parallel=ddp", "devices=4", "cores=1", "accumulate=2", "model[1].device=1"},
             {"cores=2", "accumulate=2", "model[1].device=1"}})
      trained += same_or_refused(one, run_spec(text, how)) ? 1 : 0;
  }
  CHECK(trained >= (kSanitized ? 6 : 20));
}

TEST_CASE("a loss that is no number is found on the device where it arose") {
  const Ran ran = run_spec(
      spec(), {pipeline("stages: 2, chunks: 4, cut: lin2"), "cores=1", "optimizer={sgd: 1e30}"});
  CHECK(ran.code == 7);
  CHECK_MESSAGE(ran.err.find("of layer '") != std::string::npos, ran.err);
}

// A model of which a stage has no parameters, or nothing to compute.
std::string small(const std::string& model) {
  return "data: {dataset: {random: {samples: 8, in_features: 4, out_features: 2}}, batch_size: 4}\n"
         "loss: mse_loss\noptimizer: {sgd: 0.1}\nevaluate: true\nepochs: 2\nlog: {every: 1}\n"
         "cores: 1\nmodel: " +
         model;
}

TEST_CASE("a stage that holds only dropout has the bits of one device") {
  struct Case {
    const char* model;
    std::vector<std::vector<std::string>> splits;
  };
  const Case cases[] = {
      {"[{dropout: 0.5}, {linear: 2}]",
       {{"model[1].device=1"}, {pipeline("stages: 2")}, {pipeline("stages: 2, chunks: 2")}}},
      {"[{dropout: 0.5}, {linear: 8}, relu, {linear: 2}]",
       {{pipeline("stages: 3")},
        {pipeline("stages: 4")},
        {pipeline("stages: 2, chunks: 2, schedule: interleaved_1f1b")},
        {pipeline("stages: 4, schedule: gpipe, checkpoint: always")},
        {"model[1].device=1", "model[2].device=2", "model[3].device=0"}}},
      {"[{linear: 8}, {dropout: 0.5}, {linear: 2}, {dropout: 0.5}]",
       {{pipeline("stages: 4")}, {"model[1].device=1", "model[2].device=0", "model[3].device=1"}}}};
  for (const Case& c : cases) {
    const Ran one = run_spec(small(c.model)), two = run_spec(small(c.model), {"accumulate=2"});
    for (const std::vector<std::string>& split : c.splits) {
      CAPTURE(c.model);
      CAPTURE(split[0]);
      const bool chunks = split[0].find("chunks: 2") != std::string::npos;
      same(chunks ? two : one, run_spec(small(c.model), split));
    }
  }
  if (kCanFork)
    same(run_spec(small(cases[0].model)),
         run_spec(small(cases[0].model), {pipeline("stages: 2, processes: true")}));
}

TEST_CASE("layers that give back what they get go with their neighbours, or are refused") {
  const std::string flat = small("[{flatten: {start_dim: -1}}, {linear: 8}, relu, {linear: 2}]");
  same(run_spec(flat), run_spec(flat, {pipeline("stages: 3")}));
  const Ran four = run_spec(flat, {pipeline("stages: 4")});
  CHECK(four.code == 2);
  CHECK_MESSAGE(four.err.find("3 layers that compute something cannot be split into 4 stages; use "
                              "fewer stages or more layers") != std::string::npos,
                four.err);
  const Ran cut = run_spec(flat, {pipeline("stages: 2, cut: 1")});
  CHECK(cut.code == 2);
  CHECK_MESSAGE(cut.err.find("stage 0 (counted from 0), on device 0, has nothing to compute") !=
                    std::string::npos,
                cut.err);
  for (const char* nothing : {"{dropout: {p: 0.0}}", "identity"}) {
    CAPTURE(nothing);
    const Ran placed = run_spec(small(fmt::format("[{}, {{linear: 2, device: 1}}]", nothing)));
    CHECK(placed.code == 2);
    CHECK_MESSAGE(placed.err.find("has nothing to compute") != std::string::npos, placed.err);
    same(run_spec(small(fmt::format("[{}, {{linear: 2}}, {{linear: 2}}]", nothing))),
         run_spec(small(fmt::format("[{}, {{linear: 2}}, {{linear: 2}}]", nothing)),
                  {pipeline("stages: 2")}));
  }
}

}  // namespace
}  // namespace dpt
