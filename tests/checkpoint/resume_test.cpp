// A run that goes on from a checkpoint ends in the bits of one that never stopped.
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <zlib.h>

#include "checkpoint/resumed_run.h"
#include "checkpoint/store.h"
#include "cli/process.h"
#include "data/readers/image.h"
#include "paths.h"
#include "skip.h"

namespace dpt {
namespace {

namespace fs = std::filesystem;

TEST_CASE("the rest of a run has the bits of the whole: optimizers, schedules, scales, masks") {
  for (const Words& how : std::vector<Words>{
           {"cores=2", "schedule={cosine_annealing: {}, interval: step, warmup: 3}"},
           {"cores=1", "optimizer={sgd: {lr: 0.05, momentum: 0.9, nesterov: true}}", "random=torch",
            "schedule={reduce_on_plateau: {patience: 0, threshold: 0.5}, warmup: 1}"},
           {"cores=1", "precision={fp16: {emulate: true, init_scale: 1e9, growth_interval: 3}}",
            "schedule={one_cycle: {max_lr: 0.1}}", "optimizer={sgd: {lr: 0.05}}"},
           {"cores=2", "optimizer={adagrad: {initial_accumulator_value: 0.1}}",
            "data.reshuffle=false", "evaluate=false", "schedule=reduce_on_plateau"},
           {"cores=1", "optimizer={rms_prop: {centered: true, momentum: 0.5}}", "accumulate=2",
            "clip_grad_norm=0.5", "random=torch", "reproducible=2"},
           {"cores=1", "optimizer={sgd: {lr: 0.05}}", "random=torch", "data.reshuffle=false"},
           {"cores=1", "optimizer={adam_w: {amsgrad: true}}", "data.shuffle=false",
            "precision={bf16: {emulate: true, level: o3}}"},
           {"cores=1", "optimizer={n_adam: {weight_decay: 0.1}}", "schedule={step: 1}"},
           {"cores=2", "optimizer={r_adam: {lr: 0.01}}", "schedule={one_cycle: {max_lr: 0.02}}"},
           {"cores=1", "optimizer=adamax", "accumulate=2", "ema=0.9"},
           {"cores=2", "optimizer={rprop: 0.001}", "schedule={exponential: 0.5, warmup: 1}"},
           {"cores=2", "optimizer={asgd: {lr: 0.1, lambd: 0.1, t0: 2, average: true}}",
            "schedule={exponential: 0.1}", "parameter_groups={match: 1, lr: 0.2}"},
           {"cores=1", "optimizer={asgd: {lr: 0.1, lambd: 0.1, t0: 6}}",
            "schedule={exponential: 0.5, interval: step}",
            "precision={fp16: {emulate: true, init_scale: 1e9, growth_interval: 3}}"},
           {"cores=1", "optimizer=adadelta", "evaluate.every=2",
            "data.transforms=[{random_crop: {padding: 1}}, to_tensor, {random_erasing: {p: 0.7}}]"},
           {"cores=1", "optimizer=sgd", "data.sampler=weighted",
            "data.transforms=[{random_crop: {padding: 1}}, to_tensor, {mixup: 0.5}, {cutmix: 1}]"},
           {"cores=2", "optimizer={adam_w: {lr: 0.1}}", "no_decay=[bias, norm]",
            "parameter_groups={match: '1.weight', lr: 0.01}", "freeze=[5.bias]",
            "schedule={reduce_on_plateau: {patience: 0, threshold: 0.5}, warmup: 1}"},
           {"cores=2", "optimizer=sgd", "model[1].freeze=true",
            "loss={cross_entropy: {weight: "
            "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]}}"}}) {
    CAPTURE(how[1]);
    const Straight straight(how);
    for (const int step : {3, 10}) {
      if (kSanitized && step == 10) continue;
      CAPTURE(step);
      same(straight.ran, straight.rest(step, how));
    }
  }
}

TEST_CASE("so it is in every mode, with states that their owners keep, too") {
  const std::string pipeline = "parallel={pipeline: {stages: 2, chunks: 2, ";
  for (const Words& how : std::vector<Words>{
           {"parallel=dp", "devices=2", "cores=1"},
           {"parallel=ddp", "devices=2", "cores=1"},
           {"parallel={ddp: {shard: optimizer, compress: bf16}}", "devices=2", "cores=1",
            "model[1].out_features=1100"},  // more than pass at a time
           {"parallel={ddp: {shard: optimizer}}", "devices=2", "cores=1",
            "optimizer={adam_w: {weight_decay: 0.1}}", "no_decay=[bias, norm]",
            "parameter_groups={match: 1, lr: 0.1}"},
           {"parallel={ddp: {shard: optimizer}}", "devices=2", "cores=1",
            "optimizer={rprop: 0.001}", "parameter_groups={match: 1, lr: 0.01}"},
           {"parallel={ddp: {shard: optimizer}}", "devices=2", "cores=1", "optimizer=n_adam"},
           {"parallel={ddp: {shard: optimizer}}", "devices=2", "cores=1",
            "optimizer={asgd: {lr: 0.1, lambd: 0.1, t0: 2, average: true}}",
            "schedule={exponential: 0.1}"},
           {"parallel={ddp: {shard: optimizer}}", "devices=3", "cores=1", "ema=0.9",
            "optimizer={muon: {lr: 0.02, adam_w_for: 5}}"},
           {pipeline + "deferred_batch_norm: true}}", "cores=1"},
           {pipeline + "data_parallel: 2, processes: true}}", "cores=1"}}) {
    if (!kCanFork && how[0] != "parallel=dp") continue;
    CAPTURE(how[0]);
    const Straight straight(how);
    for (const int step : {4, 10})
      if (!kSanitized || step == 4) same(straight.ran, straight.rest(step, how));
  }
}

TEST_CASE("with reproducible shards a run goes on in another mode with the same bits") {
  const std::string spec = kFiveSteps + "reproducible: {shards: 4}\nsync_batch_norm: true\n";
  const Words single = {"cores=2"}, dp = {"parallel=dp", "devices=3", "cores=1"},
              ddp = {"parallel={ddp: {shard: optimizer}}", "devices=2", "cores=2"};
  const Straight straight(single, spec);
  same(straight.ran, straight.rest(7, dp, spec));
  if (skip_without(kCanFork, "a process that may fork")) return;
  same(straight.ran, straight.rest(7, ddp, spec));
  const Straight sharded(ddp, spec);
  same(sharded.ran, sharded.rest(8, single, spec));
}

TEST_CASE("images that are read on the way go on in the middle of an epoch") {
  if (skip_without(reads_jpeg() && reads_png(), "libjpeg-turbo and libpng")) return;
  const std::string images = test_file("fixtures/images");
  const Words how = {"cores=2", "data.batch_size=4",
                     "data.dataset={image_folder: {path: " + images + ", test_path: " + images +
                         ", resize: 12, crop: 10}}"};
  const Straight straight(how);
  for (const int step : {2, 4}) same(straight.ran, straight.rest(step, how));
}

TEST_CASE("a schedule that jumps when a run gets longer is warned of") {
  const Folder folder;
  const auto train = [&](const std::string& schedule, const std::string& epochs,
                         const std::string& resume, const std::string& steps = "null") {
    return run_spec_in({folder.path(), resume}, kFiveSteps,
                       {"cores=1", "schedule=" + schedule, "epochs=" + epochs, "steps=" + steps})
        .err;
  };
  train("{cosine_annealing: }", "2", "");
  const std::string longer = train("{cosine_annealing: }", "20", folder.file("run"));
  CHECK_MESSAGE(has(longer, "warning: the learning rate jumps from "), longer);
  CHECK_MESSAGE(has(longer, ": the schedule now has 20 epochs, not 2; "), longer);
  CHECK_MESSAGE(has(longer, "keep the last rate: schedule=constant optimizer.lr=0.00"), longer);
  // Half of the rate follows half of the rate.
  train("{cosine_annealing: }", "2", "");
  const std::string smooth = train("{cosine_annealing: }", "4", folder.file("run"));
  CHECK_MESSAGE(has(smooth, "  epochs: 2 -> 4\n"), smooth);
  CHECK_FALSE_MESSAGE(has(smooth, "jumps"), smooth);
  // In the middle of an epoch, the last rate is that epoch's.
  train("{cosine_annealing: }", "20", "", "7");
  const std::string middle = train("{cosine_annealing: }", "20", folder.file("run"));
  CHECK_MESSAGE(has(middle, "warning: the learning rate jumps from 0.005 to 0.009938: "), middle);
  train("{step: {step_size: 1}}", "2", "");
  const std::string same = train("{step: {step_size: 1}}", "20", folder.file("run"));
  CHECK_MESSAGE(has(same, "  epochs: 2 -> 20\n"), same);
  CHECK_FALSE(has(same, "jumps"));
}

TEST_CASE("a run is trained on with more epochs, in its own folder, and keeps the newest") {
  const Folder folder;
  const Words save = {"cores=1", "save={every_steps: 2, keep: 2}"};
  const Ran first = run_spec_in({folder.path()}, kFiveSteps, with(save, {"epochs=2"}));
  REQUIRE_MESSAGE(first.code == 0, first.err);
  const auto kept = [&] { return steps_in(folder.file("run/checkpoints")); };
  CHECK(kept() == Steps{10, 8});
  const Ran second = run_spec_in({folder.path(), "auto"}, kFiveSteps, save);
  CHECK(second.err.find("  epochs: 2 -> 3\n") != std::string::npos);
  CHECK(kept() == Steps{15, 14});
  const Ran whole = run_spec(kFiveSteps, {"cores=1"});
  same(whole, second);
  // One that is complete has nothing to do, says so, and ends as it did.
  const Ran idle = run_spec_in({folder.path(), "auto"}, kFiveSteps, save);
  same(whole, idle);
  CHECK_MESSAGE(has(idle.err, "nothing left to do: 3 epochs and 15 steps are done"), idle.err);
  CHECK(has(idle.err, "; to train longer, set epochs=N"));
  // Its weights are of the spec that they were trained with, whatever this one says.
  const std::string trained = read_file(folder.file("run/spec.resolved.yaml"));
  run_spec_in({folder.path(), "auto"}, kFiveSteps, with(save, {"log.every=7"}));
  CHECK(read_file(folder.file("run/spec.resolved.yaml")) == trained);
  CHECK_FALSE(has(second.err, "nothing left to do"));
  // What is newer than where a run goes on is of another run; so is all, for one that begins anew.
  same(whole, run_spec_in({folder.path(), checkpoint(folder, 14)}, kFiveSteps, {"cores=1"}));
  CHECK(kept() == Steps{15, 14});
  same(whole, run_spec_in({folder.path()}, kFiveSteps, {"cores=1"}));
  CHECK(kept() == Steps{15});
  CHECK_FALSE(fs::exists(folder.file("run/checkpoints.previous")));
}

TEST_CASE("what can't be the rest of a run is refused, with what to do") {
  const Straight straight({"cores=1", "optimizer=sgd", "epochs=1"});
  const auto refused = [&](const Words& how, int code, const std::string& message) {
    CAPTURE(how[0]);
    const Ran ran = straight.rest(4, with({"cores=1", "optimizer=sgd"}, how));
    CHECK(ran.code == code);
    CHECK_MESSAGE(ran.err.find(message) != std::string::npos, ran.err);
    CHECK(ran.weights.empty());
  };
  refused({"optimizer=adam"}, 2, "it was trained by optimizer 'sgd', not 'adam'");
  refused({"optimizer.momentum=0.9"}, 2, "it has no '1.weight.momentum_buffer'");
  refused({"optimizer.momentum=0.9"}, 2, "; to start a new run from its weights, set ");
  refused({"model[1].out_features=7"}, 2,
          "its '1.weight' is f32[9, 16], but the model's is f32[7, 16]");
  refused({"data.batch_size=4"}, 2, "its epochs have 5 steps, but the epochs of this run have 14");
  const Folder empty;
  const Ran none = run_spec_in({empty.path(), empty.path()}, kFiveSteps);
  CHECK(none.code == 4);
  CHECK(none.err.find("holds no checkpoint") != std::string::npos);
  empty.write("run/model.safetensors", "");
  const Ran older = run_spec_in({empty.path(), empty.file("run")}, kFiveSteps);
  CHECK(has(older.err, "; to start a new run from its weights only, set initial_weights=" +
                           empty.file("run/model.safetensors")));
  // What can't be read is another thing than what is not there.
  fs::create_symlink("checkpoints", empty.file("run/checkpoints"));
  const Ran loop = run_spec_in({empty.path(), "auto"}, kFiveSteps);
  CHECK(loop.code == 4);
  CHECK_MESSAGE(has(loop.err, "run/checkpoints cannot be read: Too many levels of symbolic links"),
                loop.err);
  fs::remove_all(empty.file("run"));
  const Ran fresh = run_spec_in({empty.path(), "auto"}, kFiveSteps, {"cores=1", "epochs=1"});
  CHECK_MESSAGE(fresh.code == 0, fresh.err);
}

TEST_CASE("what is no folder, or not there, cannot be resumed") {
  const Folder folder;
  folder.write("file", "");
  for (const char* name : {"missing", "file"}) {
    const Ran ran = run_spec_in({folder.path(), folder.file(name)}, kFiveSteps, kShort);
    CHECK(ran.code == 4);
    CHECK_MESSAGE(has(ran.err, "--resume " + folder.file(name) +
                                   ": no such folder; pass a run directory, one of its "
                                   "checkpoints, or 'auto'"),
                  ran.err);
  }
}

// Replaces text in state.json, and its line of the manifest.
void change_state(const std::string& at, const std::string& from, const std::string& to) {
  const auto line = [](const std::string& text) {
    const auto* bytes = reinterpret_cast<const Bytef*>(text.data());
    return fmt::format("state.json {} bytes, crc32 {:08x}\n", text.size(),
                       crc32_z(0, bytes, text.size()));
  };
  const auto replace = [](std::string text, const std::string& old, const std::string& now) {
    REQUIRE_MESSAGE(has(text, old), text);
    return text.replace(text.find(old), old.size(), now);
  };
  const std::string state = read_file(at + "/state.json"), changed = replace(state, from, to);
  const std::string manifest = read_file(at + "/manifest.txt");
  std::ofstream(at + "/state.json", std::ios::binary) << changed;
  std::ofstream(at + "/manifest.txt", std::ios::binary)
      << replace(manifest, line(state), line(changed));
}

TEST_CASE("a checkpoint of another build is continued, with a note") {
  const Straight straight(kShort);
  CHECK_FALSE(has(straight.rest(4, kShort).err, "it was written by"));
  change_state(checkpoint(straight.folder, 4), "\"build\": \"", "\"build\": \"an older ");
  const Ran rest = straight.rest(4, kShort);
  same(straight.ran, rest);
  CHECK_MESSAGE(has(rest.err, "it was written by an older "), rest.err);
  CHECK_MESSAGE(has(rest.err, ": results may differ in the last bits\n"), rest.err);
}

TEST_CASE("metrics.jsonl is continued where the checkpoint lies beside it, however it is named") {
  const Straight straight(kShort);
  const std::string all = read_file(straight.folder.file("run/metrics.jsonl"));
  const fs::path at = fs::current_path();
  const auto rest = [&](const std::string& from) {
    const Folder other;
    other.write("run/metrics.jsonl", "{\"of\": \"another run\"}\n");
    const Ran ran = run_spec_in({other.path(), from}, kFiveSteps, with(kShort, {"save=false"}));
    CHECK_MESSAGE(ran.code == 0, ran.err);
    return ran;
  };
  fs::current_path(checkpoint(straight.folder, 3));
  same(straight.ran, rest("."));
  same(straight.ran, rest("../step-000004/"));
  fs::current_path(at);
  const Folder elsewhere;
  fs::copy(checkpoint(straight.folder, 4), elsewhere.file("kept"));
  const Ran copied = rest(elsewhere.file("kept"));
  CHECK(copied.step_losses().size() == 2);
  CHECK(copied.metrics.starts_with("{\"step\": 5, "));
  CHECK_MESSAGE(has(copied.err, "the metrics.jsonl of " + elsewhere.file("kept")), copied.err);
}

TEST_CASE("where metrics.jsonl could not be written, a run goes on behind its last whole line") {
  const Folder folder;
  const Words words = with(kShort, {"epochs=120"});
  rlimit files{};
  getrlimit(RLIMIT_FSIZE, &files);
  const rlimit small{16000, files.rlim_max};
  const auto before = std::signal(SIGXFSZ, SIG_IGN);
  std::fflush(stdout);  // what tests have printed so far is not to meet that limit
  setrlimit(RLIMIT_FSIZE, &small);
  const Ran ran = run_spec_in({folder.path()}, kFiveSteps, words);
  setrlimit(RLIMIT_FSIZE, &files);
  std::signal(SIGXFSZ, before);
  CHECK(ran.code == 0);
  CHECK_MESSAGE(has(ran.err, "metrics.jsonl cannot be written: File too large"), ran.err);
  const Ran rest = run_spec_in({folder.path(), "auto"}, kFiveSteps, with(words, {"epochs=121"}));
  CHECK(rest.code == 0);
  const size_t kept = rest.metrics.find("{\"step\": 241, ");
  REQUIRE(kept != std::string::npos);
  CHECK(kept > 15000);
  CHECK(rest.metrics.substr(0, kept) == ran.metrics.substr(0, kept));
  CHECK(rest.metrics[kept - 1] == '\n');
}

TEST_CASE("a run that goes on in fp16 begins with the scale that it names") {
  const Straight straight(kShort);
  const Ran rest =
      straight.rest(4, with(kShort, {"precision={fp16: {emulate: true, init_scale: 512}}"}));
  CHECK_MESSAGE(rest.code == 0, rest.err);
  CHECK_MESSAGE(has(rest.metrics, "\"loss_scale\": 512"), rest.metrics);
  CHECK_FALSE(has(rest.metrics, "\"loss_scale\": 1,"));
}

// 25 steps an epoch.
const std::string kLonger =
    kFiveSteps + "save: {every_steps: 7}\nreproducible: {shards: 2}\nsync_batch_norm: true\n";
const Words kMore = {"cores=1", "data.dataset.samples=300", "epochs=12"};

TEST_CASE("Ctrl-C, and then to the end, is the whole run; so is kill -9") {
  const Folder folder;
  folder.write("t.yaml", kLonger);
  const auto words = [&](const std::string& out, const Words& more) {
    return with(with({folder.file("t.yaml"), "out=" + folder.file(out)}, kMore), more);
  };
  REQUIRE(dptrain(words("straight", {"save=false"})).code == 0);
  struct End {
    int signal, code;
    Words mode;
  };
  for (const End& end : std::vector<End>{
           {SIGINT, 130, {}}, {SIGKILL, 137, {}}, {SIGTERM, 143, {"parallel=ddp", "devices=2"}}}) {
    if (!kCanFork && !end.mode.empty()) continue;
    CAPTURE(end.signal);
    const std::string run = fmt::format("run{}", end.signal);
    {
      Process process(words(run, end.mode));
      const std::string checkpoints = folder.file(run) + "/checkpoints";
      REQUIRE(becomes_true(60, [&] {
        const auto there = checkpoints_in(checkpoints);
        return !there.empty() && there[0].step > 13;
      }));
      process.send(end.signal);
      REQUIRE(process.wait(20) == end.code);
      if (end.signal != SIGKILL) CHECK(process.err().find("with --resume ") != std::string::npos);
    }
    const Finished rest = dptrain(words(run, with({"--resume", "auto", "save=false"}, end.mode)));
    CHECK_MESSAGE(rest.code == 0, rest.err);
    CHECK_MESSAGE(rest.err.find("resuming from ") != std::string::npos, rest.err);
    const auto bits = [&](const std::string& of) {
      return data_of(read_file(folder.file(of + "/model.safetensors")));
    };
    CHECK(bits(run) == bits("straight"));
  }
  const Finished nothing = dptrain(words("new", {"--resume", ""}));
  CHECK(nothing.code == 2);
  CHECK_MESSAGE(
      has(nothing.err, "--resume: the value is empty; pass a value (checkpoint to resume from"),
      nothing.err);
  const Finished fresh = dptrain(words("new", {"--resume", "auto", "epochs=1"}));
  CHECK(fresh.code == 0);
  CHECK_MESSAGE(fresh.err.find("holds no checkpoint; starting from scratch") != std::string::npos,
                fresh.err);
}

}  // namespace
}  // namespace dpt
