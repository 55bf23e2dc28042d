// Runs without `out`: each has a directory of its own, and --resume finds the right one.
#include "train/run_start.h"

#include <csignal>
#include <filesystem>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "checkpoint/resumed_run.h"
#include "cli/process.h"
#include "train/run_directories.h"

namespace dpt {
namespace {

namespace fs = std::filesystem;

// Two steps an epoch, three epochs.
struct Runs {
  Folder folder;
  Quick disk;
  Ran run(const Words& words, const std::string& resume = "") {
    return run_spec_in({folder.path(), resume, &disk, true}, kFiveSteps, with(kShort, words));
  }
  std::string path(const std::string& name) const { return folder.file("runs/" + name); }
  bool is_there(const std::string& name) const { return fs::exists(path(name)); }
  std::string model(const std::string& name) const {
    return read_file(path(name + "/model.safetensors"));
  }
};

TEST_CASE("no run overwrites another's results") {
  Runs runs;
  const Ran one = runs.run({"seed=1"}), two = runs.run({"seed=2"});
  CHECK_MESSAGE(one.code == 0, one.err);
  CHECK_MESSAGE(has(one.err, "run directory: " + runs.path("1") + "\n"), one.err);
  CHECK(runs.model("1") == one.weights);
  CHECK(runs.model("2") == two.weights);
  CHECK(one.weights != two.weights);
  CHECK(fs::read_symlink(runs.path("latest")) == "2");
  CHECK_FALSE(runs.is_there("1/model.previous.safetensors"));
  // One that is refused before its first step takes no number.
  class Full : public Quick {
    int64_t free_bytes(const std::string&) override { return 10; }
  } full;
  CHECK(run_spec_in({runs.folder.path(), "", &full, true}, kFiveSteps, kShort).code == 1);
  CHECK_FALSE(runs.is_there("3"));
  CHECK(fs::read_symlink(runs.path("latest")) == "2");
}

TEST_CASE("--resume auto continues the newest run in place if its spec is the same") {
  Runs runs;
  const Ran none = runs.run({"epochs=1"}, "auto");
  CHECK_MESSAGE(has(none.err, "holds no checkpoint; starting a new run\n"), none.err);
  const Ran rest = runs.run({"epochs=3", "save.every_steps=1", "log.every=2"}, "auto");
  CHECK_MESSAGE(rest.code == 0, rest.err);
  CHECK_MESSAGE(has(rest.err, "resuming from " + runs.path("1/checkpoints/step-000002")), rest.err);
  CHECK_FALSE(runs.is_there("2"));
  const Folder whole;
  CHECK(data_of(rest.weights) ==
        data_of(run_spec_in({whole.path()}, kFiveSteps, with(kShort, {"save=false"})).weights));
  // Other settings are another run's.
  const Ran other = runs.run({"optimizer={adam: 0.02}"}, "auto");
  CHECK_MESSAGE(other.code == 0, other.err);
  CHECK_MESSAGE(
      has(other.err, "--resume auto: " + runs.path("1") +
                         " is not resumed: its spec differs: 'optimizer.adam.lr' was 0.01 and is "
                         "0.02 now; --resume " +
                         runs.path("1") + " resumes it anyway; starting a new run\n"),
      other.err);
  CHECK(runs.model("1") == rest.weights);
  CHECK(runs.is_there("2/model.safetensors"));
  const Ran sgd = runs.run({"optimizer=sgd"}, "auto");
  CHECK_MESSAGE(has(sgd.err, "it was trained by optimizer 'adam', not 'sgd'; starting a new run\n"),
                sgd.err);
  CHECK(runs.is_there("3/model.safetensors"));
}

TEST_CASE(
    "--resume with a directory continues its newest run; an older checkpoint begins another") {
  Runs runs;
  CHECK(runs.run({"save.every_steps=1", "epochs=2"}).code == 0);
  CHECK(runs.run({"seed=5", "epochs=1"}).code == 0);
  const Ran newest = runs.run({"seed=5"}, runs.folder.file("runs"));
  CHECK_MESSAGE(has(newest.err, "resuming from " + runs.path("2/checkpoints/step-000002")),
                newest.err);
  // So it does with a folder of its own.
  const Folder own;
  const Ran there =
      run_spec_in({own.path(), runs.folder.file("runs")}, kFiveSteps, with(kShort, {"seed=5"}));
  CHECK_MESSAGE(has(there.err, "resuming from " + runs.path("2/checkpoints/step-000006")),
                there.err);
  const Ran first = runs.run({}, runs.path("1"));
  CHECK_MESSAGE(has(first.err, "resuming from " + runs.path("1/checkpoints/step-000004")),
                first.err);
  const Folder whole;
  CHECK(data_of(runs.model("1")) ==
        data_of(run_spec_in({whole.path()}, kFiveSteps, with(kShort, {"save=false"})).weights));
  CHECK_FALSE(runs.is_there("3"));
  const Ran branch = runs.run({}, runs.path("1/checkpoints/step-000004/"));
  CHECK_MESSAGE(branch.code == 0, branch.err);
  CHECK(runs.is_there("3/model.safetensors"));
  CHECK_FALSE(runs.is_there("1/checkpoints.previous"));
  CHECK_MESSAGE(has(branch.metrics, "{\"epoch\": 1,"), branch.metrics);
  // The newest checkpoint, as a run that was stopped names it.
  CHECK(runs.run({"epochs=4"}, runs.path("latest/checkpoints/step-000006")).code == 0);
  CHECK_FALSE(runs.is_there("4"));
}

TEST_CASE("a run of version 0.1.0 stays as it is, and can be continued") {
  Runs runs;
  Quick disk;
  const Folder before;
  CHECK(run_spec_in({before.path(), "", &disk}, kFiveSteps, with(kShort, {"epochs=1"})).code == 0);
  fs::copy(before.file("run"), runs.folder.file("runs"), fs::copy_options::recursive);
  const std::string old = read_file(runs.path("model.safetensors"));
  const Ran rest = runs.run({}, "auto");
  CHECK_MESSAGE(rest.code == 0, rest.err);
  CHECK_MESSAGE(
      has(rest.err,
          "runs is a run of dptrain 0.1.0, which did not number its runs; it is left unchanged\n"),
      rest.err);
  CHECK_MESSAGE(has(rest.err, "resuming from " + runs.path("checkpoints/step-000002")), rest.err);
  CHECK(read_file(runs.path("model.safetensors")) == old);
  CHECK(runs.is_there("1/model.safetensors"));
  CHECK_MESSAGE(has(rest.metrics, "{\"epoch\": 1,"), rest.metrics);
}

const std::string kEndless = R"(
data:
  dataset: {synthetic_images: {samples: 64, shape: [1, 4, 4]}}
  transforms: [to_tensor]
  batch_size: 8
model: [flatten, {linear: 10}]
loss: cross_entropy
optimizer: {sgd: 0.05}
epochs: 10000000
cores: 1
save: {every_steps: 1, keep: 1}
)";

TEST_CASE("--resume auto beside a run that still goes on says so, every time") {
  const Folder folder;
  folder.write("t.yaml", kEndless);
  Process live({"t.yaml"}, {}, folder.path());
  const std::string holder = fmt::format("(process {} on ", live.pid());
  REQUIRE_MESSAGE(
      becomes_true(60,
                   [&] {
                     return fs::exists(folder.file("runs/t/latest/checkpoints")) &&
                            !checkpoints_in(folder.file("runs/t/latest/checkpoints")).empty();
                   }),
      live.err());
  for (int i = 0; i < 2; ++i) {
    const Finished f = dptrain({"t.yaml", "--resume", "auto"}, {}, folder.path());
    CHECK(f.code == 1);
    CHECK_MESSAGE(has(f.err, "--resume auto: the run in runs/t/1 is still running " + holder),
                  f.err);
  }
  const Finished given = dptrain({"t.yaml", "--resume", "auto", "out=runs/t/1"}, {}, folder.path());
  CHECK(given.code == 1);
  CHECK_MESSAGE(has(given.err, "another run is writing to runs/t/1 " + holder), given.err);
  CHECK_FALSE(fs::exists(folder.file("runs/t/2")));
  // A new one is none of its business.
  const Finished next = dptrain({"t.yaml", "epochs=1"}, {}, folder.path());
  CHECK_MESSAGE(next.code == 0, next.err);
  CHECK(fs::exists(folder.file("runs/t/2/model.safetensors")));
  CHECK(fs::read_symlink(folder.file("runs/t/latest")) == "2");
}

Variables rank_of_two(int rank) {
  return {
      {"RANK", std::to_string(rank)}, {"WORLD_SIZE", "2"}, {"LOCAL_RANK", std::to_string(rank)}};
}

TEST_CASE("rank 0 numbers the run, and says to the others where it goes on" *
          doctest::skip(!kCanFork)) {
  const Folder folder;
  folder.write("t.yaml", kFiveSteps);
  const auto both = [&](const Words& more) {
    const Words words =
        with(with(kShort, {"parallel={ddp: {shard: optimizer}}", "devices=2"}), more);
    Process zero(with({"t.yaml"}, words), rank_of_two(0), folder.path());
    Process one(with({"t.yaml"}, words), rank_of_two(1), folder.path());
    CHECK_MESSAGE(zero.wait() == 0, zero.err());
    CHECK_MESSAGE(one.wait() == 0, one.err());
    return zero.err();
  };
  both({"save=false"});
  both({"epochs=1"});
  const std::string err = both({"--resume", "auto"});
  CHECK_MESSAGE(has(err, "resuming from runs/t/2/checkpoints/step-000002"), err);
  CHECK_FALSE(fs::exists(folder.file("runs/t/3")));
  const auto bits = [&](const std::string& run) {
    return data_of(read_file(folder.file("runs/t/" + run + "/model.safetensors")));
  };
  CHECK(bits("1") == bits("2"));
}

}  // namespace
}  // namespace dpt
