// Checkpoints of runs on fake GPUs: the rest of such a run has the bits of the whole, whatever the
// mode, and a checkpoint knows nothing of the device that it was written on.
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/units.h"
#include "checkpoint/resumed_run.h"
#include "checkpoint/store.h"
#include "engine/gpu/fake_fleet.h"
#include "engine/gpu/fake_gpu.h"
#include "engine/gpu/gpu_specs.h"
#include "formats/safetensors.h"

namespace dpt {
namespace {

using cuda::FakeApi;

// Eleven steps an epoch, of which many are a launch; dropout, running statistics.
const std::string kSteps = R"(
data:
  dataset: {synthetic_images: {samples: 86, test_samples: 13, shape: [1, 3, 3]}}
  transforms: [{random_crop: {padding: 1}}, to_tensor]
  batch_size: 8
model:
  - flatten
  - {linear: 7}
  - batch_norm1d
  - {dropout: 0.3}
  - {linear: 10}
loss: cross_entropy
optimizer: {adam: 0.01}
epochs: 2
log: {every: 1}
evaluate: {batch_size: 7}
)";
// Two steps an epoch.
const Words kFew = {"data.batch_size=48", "evaluate=false"};

// A run on GPUs, in a folder that stays where one is given.
Ran on_gpus(const Words& how, RunIn where, const std::string& spec = kSteps,
            const std::function<void(FakeApi::Settings&)>& settings = {}) {
  Quick quick;
  where.disk = &quick;
  Fleet gpus;
  const Ran out = run_spec_in(where, spec, with({"device=cuda"}, how), gpus.opener(settings));
  CHECK_MESSAGE(out.code == 0, out.err);
  CHECK(gpus.opened() > 0);
  CHECK(gpus.leaks() == "");
  return out;
}

// Whether a run that is cut into two at that step ends as one that never stopped.
void goes_on(const Words& how, int step, const std::string& spec = kSteps,
             const std::function<void(FakeApi::Settings&)>& settings = {}) {
  CAPTURE(fmt::format("{}, from step {}", fmt::join(how, " "), step));
  const Folder one, two, three;
  const Ran whole = on_gpus(with(how, {"save=false"}), {one.path()}, spec, settings);
  const Words saves = with(how, {fmt::format("save={{every_steps: {}, keep: 100}}", step)});
  same(whole, on_gpus(saves, {two.path()}, spec, settings));
  same(whole,
       on_gpus(with(how, {"save=false"}), {three.path(), checkpoint(two, step)}, spec, settings));
}

TEST_CASE("a GPU's run goes on where it was: many steps as a graph, images, schedules, scales") {
  goes_on({}, 3);
  goes_on({"graphs=false", "evaluate=false", "schedule={one_cycle: {max_lr: 0.1}}"}, 14);
  goes_on({"data.sampler=weighted"}, 5);
  // Batches that the host makes.
  goes_on({}, 6, kSteps, [](FakeApi::Settings& s) { s.free_memory = 1; });
  goes_on({"precision={fp16: {lists: cuda, emulate: true, init_scale: 67108864, growth_interval: "
           "3}}",
           "optimizer={sgd: {lr: 0.05, momentum: 0.9}}", "accumulate=2"},
          8);
  goes_on({"optimizer={adagrad: {initial_accumulator_value: 0.1}}",
           "schedule={reduce_on_plateau: {patience: 0, threshold: 0.5}}", "epochs=3"},
          11);
  goes_on({"optimizer={asgd: {lr: 0.1, lambd: 0.1, t0: 2, average: true}}",
           "parameter_groups={match: 1, lr: 0.2}", "schedule={exponential: 0.1}", "epochs=3"},
          11);
}

// Weights of 36 MB and states of twice that, which are copied in several pieces.
TEST_CASE("a large model goes on, and little memory is pinned" * doctest::skip(kSanitized)) {
  const Words large = {"model=[flatten, {linear: 3000}, {linear: 3000}, {linear: 10}]",
                       "data.batch_size=4", "data.limit=8", "epochs=1", "evaluate=false"};
  goes_on(large, 1);
  Told told;
  const Ran ran = run_spec(kSteps, with({"device=cuda", "steps=1"}, large), fake_gpu(told));
  CHECK_MESSAGE(ran.code == 0, ran.err);
  CHECK(told.most_pinned > 32 * kMiB);
  CHECK(told.most_pinned < 34 * kMiB);
}

TEST_CASE("a save in the middle of an epoch cuts a launch of many steps, and no other") {
  const auto launches = [](const Words& how) {
    Told told;
    Quick quick;
    const Folder folder;
    const Ran ran =
        run_spec_in({.folder = folder.path(), .disk = &quick}, kSteps,
                    with({"device=cuda", "epochs=1", "evaluate=false"}, how), fake_gpu(told));
    CHECK_MESSAGE(ran.code == 0, ran.err);
    CHECK(told.leaks == "");
    return std::ranges::count_if(told.calls, [](const std::string& call) {
      return call.find(" graph of ") != std::string::npos;
    });
  };
  // The first step and the smaller last one are enqueued call by call. The nine full batches
  // between them are 8 + 1 steps; or 4, and 4 + 1 after the save.
  CHECK(launches({"save=false"}) == 2);
  CHECK(launches({"save={every_steps: 5}"}) == 3);
}

TEST_CASE("GPUs save by time, too, in spite of the steps that are under way" *
          doctest::skip(!kCanFork)) {
  for (const Words& how : std::vector<Words>{{}, {"parallel=ddp", "devices=2"}}) {
    const Folder one, two, three;
    const Words few = with(kFew, how);
    const Ran whole = on_gpus(with(few, {"save=false"}), {one.path()});
    same(whole, on_gpus(with(few, {"save={every_minutes: 1e-12, keep: 100}"}), {two.path()}));
    CHECK(steps_in(two.file("run/checkpoints")) == Steps{4, 3, 2, 1});
    same(whole, on_gpus(with(few, {"save=false"}), {three.path(), checkpoint(two, 3)}));
  }
}

TEST_CASE("so do GPUs in every mode, with states of which each has a piece" *
          doctest::skip(!kCanFork)) {
  const std::string pipeline = "parallel={pipeline: {stages: 2, chunks: 2";
  for (const Words& how : std::vector<Words>{
           {"parallel=ddp", "devices=2"},
           {"parallel={ddp: {backend: gloo, compress: bf16}}", "devices=2"},
           {"parallel={ddp: {shard: optimizer, bucket_cap_mb: 0.0001}}", "devices=3"},
           {"parallel={ddp: {shard: optimizer, backend: gloo}}", "devices=2"},
           {"parallel=dp", "devices=2"},
           {"parallel={dp: {loss: distributed}}", "devices=2"},
           {pipeline + ", deferred_batch_norm: true}}", "data.batch_size=24"},
           {pipeline + ", data_parallel: 2, shard: optimizer}}"},
           {pipeline + ", processes: true}}"},
           {"model[4].device=1", "devices=2"}})
    goes_on(with(kFew, how), 1);
}

TEST_CASE("a checkpoint of a CPU continues on a GPU, and the other way round") {
  const Words cpu = {"device=cpu", "cores=1"}, save = {"save={every_steps: 1, keep: 100}"};
  for (const char* spec : {kMlp, kImages}) {
    Quick quick;
    const Folder one, two, three, four;
    const Ran on_cpu = run_spec_in({.folder = one.path(), .disk = &quick}, spec, with(cpu, save));
    const Ran on_gpu = on_gpus(save, {two.path()}, spec);
    agree(on_gpus({"save=false"}, {three.path(), checkpoint(one, 4)}, spec), on_cpu, kSameNumbers);
    agree(on_gpu, run_spec_in({four.path(), checkpoint(two, 4)}, spec, with(cpu, {"save=false"})),
          kSameNumbers);
    for (const char* name : {"model.safetensors", "optimizer.safetensors"}) {
      const auto tensors = [&](const Folder& run) {
        std::string out;
        const SafeTensors file = SafeTensors::read(checkpoint(run, 4) + "/" + name);
        for (const auto& e : file.entries())
          out += fmt::format("{} {}\n", e.name, e.desc.shape.str());
        return out;
      };
      CHECK(tensors(one) == tensors(two));
    }
  }
}

TEST_CASE("Ctrl-C leaves a GPU's run a checkpoint of its last step" * doctest::skip(!kCanFork)) {
  const Words how = {"evaluate=false", "epochs=40", "devices=2", "parallel=ddp"};
  const Folder one, two;
  Quick quick;
  Fleet gpus;
  const Ran stopped = run_spec_in(
      {.folder = one.path(), .disk = &quick}, kSteps, with({"device=cuda"}, how),
      gpus.opener([](FakeApi::Settings& s) { s.interrupt_call = s.index == 1 ? 400 : -1; }));
  CHECK_MESSAGE(stopped.code == 130, stopped.err);
  CHECK(gpus.leaks() == "");
  const auto left = checkpoints_in(checkpoint_folder(one.file("run")));
  REQUIRE(left.size() == 1);
  CHECK(left[0].step == std::ssize(stopped.step_losses()));
  CHECK(left[0].step < 440);
  same(on_gpus(with(how, {"save=false"}), {two.path()}), on_gpus(how, {one.path(), "auto"}));
}

}  // namespace
}  // namespace dpt
