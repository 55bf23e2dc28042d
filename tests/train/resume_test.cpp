// A run that goes on from a checkpoint ends in the bits of one that never stopped.
#include <atomic>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/resource.h>

#include "base/disk.h"
#include "cli/process.h"
#include "data/folder.h"
#include "data/readers/image.h"
#include "train/checkpoints.h"
#include "train/quick_disk.h"
#include "train/run_spec.h"

namespace dpt {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

// Five steps an epoch, the last one smaller; running statistics, dropout.
const std::string kSpec = R"(
data:
  dataset: {synthetic_images: {samples: 56, test_samples: 11, shape: [1, 4, 4]}}
  transforms: [to_tensor]
  batch_size: 12
model:
  - flatten
  - linear: 9
  - batch_norm1d
  - relu
  - dropout: 0.3
  - linear: 10
loss: cross_entropy
optimizer: {adam: 0.01}
epochs: 3
log: {every: 1}
evaluate: true
)";

std::string checkpoint(const Folder& run, int step) {
  return fmt::format("{}/run/checkpoints/step-{:06}", run.path(), step);
}

Words with(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

// A run that writes a checkpoint after each step.
struct Straight {
  Folder folder;
  Quick disk;
  Ran ran;
  explicit Straight(const Words& how, const std::string& spec = kSpec)
      : ran(run_spec_in({.folder = folder.path(), .disk = &disk}, spec,
                        with({"save={every_steps: 1, keep: 100}"}, how))) {
    CHECK_MESSAGE(ran.code == 0, ran.err);
  }
  // The rest of it, elsewhere, from that step on.
  Ran rest(int step, const Words& how, const std::string& spec = kSpec) const {
    const Folder other;
    return run_spec_in({other.path(), checkpoint(folder, step)}, spec, with({"save=false"}, how));
  }
};

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
           {"cores=1", "optimizer={adam_w: {amsgrad: true}}", "data.shuffle=false",
            "precision={bf16: {emulate: true, level: o3}}"},
           {"cores=1", "optimizer=adadelta", "evaluate.every=2",
            "data.transforms=[{random_crop: {padding: 1}}, to_tensor, {random_erasing: {p: 0.7}}]"},
           {"cores=2", "optimizer=sgd", "model[1].freeze=true",
            "loss={cross_entropy: {weight: "
            "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]}}"}}) {
    CAPTURE(how[1]);
    const Straight straight(how);
    for (const int step : {3, 10}) {
      CAPTURE(step);
      same(straight.ran, straight.rest(step, how));
    }
  }
}

TEST_CASE("so it is in every mode, with states that their owners keep, too") {
  const std::string pipeline = "parallel={pipeline: {stages: 2, chunks: 2, ";
  for (const Words& how :
       std::vector<Words>{{"parallel=dp", "devices=2", "cores=1"},
                          {"parallel=ddp", "devices=2", "cores=1"},
                          {"parallel={ddp: {shard: optimizer, compress: bf16}}", "devices=2",
                           "cores=1", "model[1].out_features=1100"},  // more than pass at a time
                          {pipeline + "deferred_batch_norm: true}}", "cores=1"},
                          {pipeline + "data_parallel: 2, processes: true}}", "cores=1"}}) {
    if (!kCanFork && how[0] != "parallel=dp") continue;
    CAPTURE(how[0]);
    const Straight straight(how);
    for (const int step : {4, 10}) same(straight.ran, straight.rest(step, how));
  }
}

TEST_CASE("with reproducible shards a run goes on in another mode with the same bits") {
  const std::string spec = kSpec + "reproducible: {shards: 4}\nsync_batch_norm: true\n";
  const Words single = {"cores=2"}, dp = {"parallel=dp", "devices=3", "cores=1"},
              ddp = {"parallel={ddp: {shard: optimizer}}", "devices=2", "cores=2"};
  const Straight straight(single, spec);
  same(straight.ran, straight.rest(7, dp, spec));
  if (!kCanFork) return;
  same(straight.ran, straight.rest(7, ddp, spec));
  const Straight sharded(ddp, spec);
  same(sharded.ran, sharded.rest(8, single, spec));
}

TEST_CASE("images that are read on the way go on in the middle of an epoch") {
  if (!reads_jpeg() || !reads_png()) return;
  const std::string images = DPT_TEST_DIR "/fixtures/images";
  const Words how = {"cores=2", "data.batch_size=4",
                     "data.dataset={image_folder: {path: " + images + ", test_path: " + images +
                         ", resize: 12, crop: 10}}"};
  const Straight straight(how);
  for (const int step : {2, 4}) same(straight.ran, straight.rest(step, how));
}

TEST_CASE("a run is trained on with more epochs, in its own folder, and keeps the newest") {
  const Folder folder;
  const Words save = {"cores=1", "save={every_steps: 2, keep: 2}"};
  const Ran first = run_spec_in({folder.path()}, kSpec, with(save, {"epochs=2"}));
  REQUIRE_MESSAGE(first.code == 0, first.err);
  const auto kept = [&] {
    std::vector<int64_t> out;
    for (const auto& c : checkpoints_in(folder.file("run/checkpoints"))) out.push_back(c.step);
    return out;
  };
  CHECK(kept() == std::vector<int64_t>{10, 8});
  const Ran second = run_spec_in({folder.path(), "auto"}, kSpec, save);
  CHECK(second.err.find("  epochs: 2 -> 3\n") != std::string::npos);
  CHECK(kept() == std::vector<int64_t>{15, 14});
  const Ran whole = run_spec(kSpec, {"cores=1"});
  same(whole, second);
  // One that is complete has nothing to do, says so, and ends as it did.
  const Ran idle = run_spec_in({folder.path(), "auto"}, kSpec, save);
  same(whole, idle);
  CHECK_MESSAGE(has(idle.err, "nothing is left to do: 3 epochs and 15 steps are done"), idle.err);
  CHECK_FALSE(has(second.err, "nothing is left to do"));
  // What is newer than where a run goes on is of another run; so is all, for one that begins anew.
  same(whole, run_spec_in({folder.path(), checkpoint(folder, 14)}, kSpec, {"cores=1"}));
  CHECK(kept() == std::vector<int64_t>{15, 14});
  same(whole, run_spec_in({folder.path()}, kSpec, {"cores=1"}));
  CHECK(kept() == std::vector<int64_t>{15});
  CHECK_FALSE(fs::exists(folder.file("run/checkpoints.previous")));
}

TEST_CASE("whatever is damaged in a checkpoint, it is found, and an older one is taken") {
  const Words how = {"cores=1"};
  const Straight straight(how);
  const std::string newest = checkpoint(straight.folder, 15);
  REQUIRE(damage(newest).empty());
  size_t damaged = 0;
  for (const auto& file : fs::directory_iterator(newest)) {
    const std::string path = file.path().string(), name = file.path().filename().string();
    CAPTURE(name);
    const std::string whole = read_file(path);
    const auto is_found = [&](const std::string& bytes) {
      std::ofstream(path, std::ios::binary) << bytes;
      CHECK_FALSE(damage(newest).empty());
      ++damaged;
    };
    for (size_t i = 0; i < whole.size(); i += std::max<size_t>(1, whole.size() / 17)) {
      std::string bytes = whole;
      bytes[i] = static_cast<char>(bytes[i] ^ (1 << i % 8));
      is_found(bytes);
      is_found(whole.substr(0, i));
    }
    is_found(whole + '\n');
    fs::remove(path);
    CHECK_FALSE(damage(newest).empty());
    std::ofstream(path, std::ios::binary) << whole;
    REQUIRE(damage(newest).empty());
  }
  CHECK(damaged > 150);
  fs::resize_file(newest + "/optimizer.safetensors", 100);
  const Ran rest = run_spec_in({straight.folder.path(), "auto"}, kSpec, how);
  same(straight.ran, rest);
  CHECK_MESSAGE(rest.err.find("step-000015 is passed over: its optimizer.safetensors is not as it "
                              "was written") != std::string::npos,
                rest.err);
  CHECK(damage(newest).empty());  // written anew
  fs::resize_file(newest + "/optimizer.safetensors", 100);
  const Ran named = straight.rest(15, how);
  CHECK(named.code == 4);
  CHECK(named.err.find("step-000015 can't be gone on from") != std::string::npos);
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
  refused({"optimizer.momentum=0.9"}, 2, "; train anew, from these weights if you like, with ");
  refused({"model[1].out_features=7"}, 2,
          "its '1.weight' is f32[9, 16], the model's is f32[7, 16]");
  refused({"data.batch_size=4"}, 2, "an epoch had 5 steps, and has 14 now");
  const Folder empty;
  const Ran none = run_spec_in({empty.path(), empty.path()}, kSpec);
  CHECK(none.code == 4);
  CHECK(none.err.find("holds no checkpoint") != std::string::npos);
  empty.write("run/model.safetensors", "");
  const Ran older = run_spec_in({empty.path(), empty.file("run")}, kSpec);
  CHECK(has(older.err, "; initial_weights=" + empty.file("run/model.safetensors") + " begins"));
  // What can't be read is another thing than what is not there.
  fs::create_symlink("checkpoints", empty.file("run/checkpoints"));
  const Ran loop = run_spec_in({empty.path(), "auto"}, kSpec);
  CHECK(loop.code == 4);
  CHECK_MESSAGE(has(loop.err, "run/checkpoints can't be read: Too many levels of symbolic links"),
                loop.err);
  fs::remove_all(empty.file("run"));
  const Ran fresh = run_spec_in({empty.path(), "auto"}, kSpec, {"cores=1", "epochs=1"});
  CHECK_MESSAGE(fresh.code == 0, fresh.err);
}

std::vector<int64_t> steps_in(const std::string& folder) {
  std::vector<int64_t> out;
  for (const auto& c : checkpoints_in(folder)) out.push_back(c.step);
  return out;
}

using Steps = std::vector<int64_t>;
const Words kShort = {"cores=1", "data.dataset.samples=24", "evaluate=false"};  // 2 steps an epoch

// On which no checkpoint can be written.
class Dead : public Quick {
 public:
  int create(const std::string&) override { return errno = EIO, -1; }
};

// Ctrl-C at the first checkpoint.
class Interrupted : public Quick {
 public:
  int create(const std::string& path) override {
    if (!std::exchange(done_, true)) std::raise(SIGINT);
    return Quick::create(path);
  }

 private:
  bool done_ = false;
};

TEST_CASE("what an earlier run has left goes once a later one is complete, and not before") {
  const Folder folder;
  const std::string now = folder.file("run/checkpoints"), before = now + ".previous";
  const auto run = [&](const std::string& resume, const Words& more, Disk* disk = nullptr) {
    Quick quick;
    return run_spec_in({folder.path(), resume, disk ? disk : &quick}, kSpec, with(kShort, more));
  };
  const Ran first = run("", {"save.every_steps=2"});
  CHECK(steps_in(now) == Steps{6, 4, 2});
  Dead dead;
  const Ran forgot = run("", {}, &dead);  // it has none of its own
  CHECK_MESSAGE(has(forgot.err, fmt::format("3 checkpoints of an earlier run are now in {0}; "
                                            "--resume {0}/step-000006 goes on from the newest",
                                            before)),
                forgot.err);
  CHECK(steps_in(now).empty());
  CHECK(steps_in(before) == Steps{6, 4, 2});
  Interrupted interrupted;
  const Ran stopped = run("", {"save.every_steps=1", "save.keep=1"}, &interrupted);
  CHECK_MESSAGE(stopped.code == 130, stopped.err);
  CHECK(steps_in(now) == Steps{2});
  CHECK(steps_in(before) == Steps{6, 4, 2});
  // Where it goes on from one of those, that one stays as long.
  const Ran rest = run(before + "/step-000004", {}, &dead);
  same(first, rest);
  CHECK_MESSAGE(has(rest.err, "1 checkpoint of an earlier run is now in " + before + "-2"),
                rest.err);
  CHECK(steps_in(before) == Steps{6, 4, 2});
  same(first, run(before + "/step-000004", {}));
  CHECK(steps_in(now) == Steps{6});
  CHECK(previous_folders(folder.file("run")).empty());
}

TEST_CASE("a run that writes no checkpoints passes none off as its own") {
  const Folder folder;
  const std::string now = folder.file("run/checkpoints"), before = now + ".previous";
  const Ran first = run_spec_in({folder.path()}, kSpec, kShort);
  CHECK(steps_in(now) == Steps{6});
  CHECK(run_spec_in({folder.path()}, kSpec, with(kShort, {"save=false", "optimizer.lr=1"})).code ==
        0);
  CHECK(steps_in(now).empty());
  CHECK(steps_in(before) == Steps{6});
  const Ran none = run_spec_in({folder.path(), folder.file("run")}, kSpec, kShort);
  CHECK(none.code == 4);
  CHECK_MESSAGE(has(none.err, "holds no checkpoint; those of an earlier run are in " + before),
                none.err);
  // Whatever is cut from what was recorded, it is at the end of a line.
  CHECK(read_file(before + "/metrics.jsonl") == first.metrics);
  folder.write("run/checkpoints.previous/metrics.jsonl",
               fmt::format("{{\"one\": 1}}\n{:9999}\n", 2));
  const Ran rest = run_spec_in({folder.path(), before}, kSpec, with(kShort, {"epochs=4"}));
  CHECK(rest.code == 0);
  CHECK(rest.metrics.starts_with("{\"one\": 1}\n{\"step\": 7, "));
}

TEST_CASE("a run that is refused changes no file") {
  const Folder folder;
  const Words words = with(kShort, {"save.every_steps=2"});
  REQUIRE(run_spec_in({folder.path()}, kSpec, words).code == 0);
  const std::string spec = read_file(folder.file("run/spec.resolved.yaml"));
  const std::string metrics = read_file(folder.file("run/metrics.jsonl"));
  for (const Words& more : std::vector<Words>{
           {"model[1].out_features=7"},
           {"optimizer.amsgrad=true"},
           {"optimizer.amsgrad=true", "parallel={ddp: {shard: optimizer}}", "devices=2"}}) {
    if (!kCanFork && more.size() > 1) continue;
    CAPTURE(more.size());
    const Ran ran = run_spec_in({folder.path(), checkpoint(folder, 2)}, kSpec, with(words, more));
    CHECK(ran.code == 2);
    CHECK_MESSAGE(has(ran.err, "does not fit the "), ran.err);
    CHECK(read_file(folder.file("run/spec.resolved.yaml")) == spec);
    CHECK(read_file(folder.file("run/metrics.jsonl")) == metrics);
    CHECK(steps_in(folder.file("run/checkpoints")) == Steps{6, 4, 2});
  }
}

TEST_CASE("metrics.jsonl is continued where the checkpoint lies beside it, however it is named") {
  const Straight straight(kShort);
  const std::string all = read_file(straight.folder.file("run/metrics.jsonl"));
  const fs::path at = fs::current_path();
  const auto rest = [&](const std::string& from) {
    const Folder other;
    other.write("run/metrics.jsonl", "{\"of\": \"another run\"}\n");
    const Ran ran = run_spec_in({other.path(), from}, kSpec, with(kShort, {"save=false"}));
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
  CHECK_MESSAGE(has(copied.err, "there is no metrics.jsonl of " + elsewhere.file("kept")),
                copied.err);
}

TEST_CASE("where metrics.jsonl was given up, a run goes on behind its last whole line") {
  const Folder folder;
  const Words words = with(kShort, {"epochs=120"});
  rlimit files{};
  getrlimit(RLIMIT_FSIZE, &files);
  const rlimit small{16000, files.rlim_max};
  const auto before = std::signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &small);
  const Ran ran = run_spec_in({folder.path()}, kSpec, words);
  setrlimit(RLIMIT_FSIZE, &files);
  std::signal(SIGXFSZ, before);
  CHECK(ran.code == 0);
  CHECK_MESSAGE(has(ran.err, "metrics.jsonl can't be written any more"), ran.err);
  const Ran rest = run_spec_in({folder.path(), "auto"}, kSpec, with(words, {"epochs=121"}));
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

// One that is full from some call on.
class Full : public Quick {
 public:
  explicit Full(int calls) : left_(calls) {}
  ssize_t write(int fd, const std::byte* bytes, size_t count) override {
    errno = ENOSPC;
    return --left_ < 0 ? -1 : Disk::write(fd, bytes, count);
  }

 private:
  std::atomic<int> left_;
};

TEST_CASE("where the disk is full the run goes on, says so once, and keeps what it has") {
  const Folder folder;
  Full disk(50);
  const Ran ran = run_spec_in({.folder = folder.path(), .disk = &disk}, kSpec,
                              {"cores=1", "save={every_steps: 1, keep: 1}"});
  CHECK(ran.code == 0);
  const size_t told = ran.err.find("No space left on device; the run goes on");
  CHECK_MESSAGE(told != std::string::npos, ran.err);
  CHECK(ran.err.find("no checkpoint", told) == std::string::npos);
  const auto left = checkpoints_in(folder.file("run/checkpoints"));
  REQUIRE(left.size() == 1);
  CHECK(damage(left[0].path).empty());
  CHECK(left[0].step > 0);
  CHECK(left[0].step < 15);
  same(run_spec(kSpec, {"cores=1"}), run_spec_in({folder.path(), "auto"}, kSpec, {"cores=1"}));
}

// 25 steps an epoch.
const std::string kLonger =
    kSpec + "save: {every_steps: 7}\nreproducible: {shards: 2}\nsync_batch_norm: true\n";
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
    CHECK_MESSAGE(rest.err.find("going on from ") != std::string::npos, rest.err);
    const auto bits = [&](const std::string& of) {
      return data_of(read_file(folder.file(of + "/model.safetensors")));
    };
    CHECK(bits(run) == bits("straight"));
  }
  const Finished nothing = dptrain(words("new", {"--resume", ""}));
  CHECK(nothing.code == 2);
  CHECK_MESSAGE(has(nothing.err, "--resume: '' is no value; leave it out, or give one (go on from"),
                nothing.err);
  const Finished fresh = dptrain(words("new", {"--resume", "auto", "epochs=1"}));
  CHECK(fresh.code == 0);
  CHECK_MESSAGE(fresh.err.find("holds no checkpoint; the run begins anew") != std::string::npos,
                fresh.err);
}

}  // namespace
}  // namespace dpt
