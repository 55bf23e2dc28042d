// Runs with a validation set: the same bits in every mode and after a resume, the best weights, the
// test set at the end, and runs that end early.
#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/error.h"
#include "base/files.h"
#include "checkpoint/resumed_run.h"
#include "formats/safetensors.h"
#include "train/best_weights.h"

namespace dpt {
namespace {

namespace fs = std::filesystem;

const std::string kSpec = R"(
data:
  dataset: {synthetic_images: {samples: 70, test_samples: 21, shape: [1, 4, 4]}}
  transforms: [to_tensor]
  batch_size: 12
  validation: 0.2
model:
  - flatten
  - linear: 9
  - batch_norm1d
  - relu
  - dropout: 0.3
  - linear: 10
loss: cross_entropy
optimizer: {adam: 0.01}
epochs: 4
sync_batch_norm: true
log: {every: 1}
evaluate: {batch_size: 5, every_steps: 3, metrics: [accuracy, top5, f1, confusion_matrix]}
save: {best: loss}
)";  // 56 samples are trained on: five steps an epoch

// The lines without what depends on the clock.
std::string numbers(std::string metrics) {
  for (const char* from : {", \"time\"", ", \"seconds\"", ", \"samples_per_second\"",
                           ", \"evaluation_seconds\"", ", \"data_wait\""})
    for (size_t at = metrics.find(from); at != metrics.npos; at = metrics.find(from)) {
      const size_t end = metrics.find_first_of(",}\n", at + 2);
      metrics.erase(
          at, std::string_view(from) == ", \"time\"" ? metrics.find('\n', at) - at : end - at);
    }
  return metrics;
}

struct Whole {
  Folder folder;
  Ran ran;
  std::string best, matrix;
  explicit Whole(const Words& words, const std::string& spec = kSpec) {
    Quick quick;
    ran = run_spec_in({.folder = folder.path(), .disk = &quick}, spec, words);
    CHECK_MESSAGE(ran.code == 0, ran.err);
    if (fs::exists(file("best.safetensors"))) best = read_file(file("best.safetensors"));
    if (fs::exists(file("confusion_matrix.csv"))) matrix = read_file(file("confusion_matrix.csv"));
  }
  std::string file(const std::string& name) const { return folder.path() + "/run/" + name; }
};

TEST_CASE("validation, metrics and best weights have the same bits in every mode") {
  const Words shards = {"reproducible=8"};
  const Whole one(with(shards, {"cores=1"}));
  CHECK(has(one.ran.out, "Step [3/20], Validation loss: "));
  CHECK(has(one.ran.out, " (best weights, epoch "));
  CHECK(has(one.ran.err, "best validation loss "));
  CHECK(!one.best.empty());
  CHECK(!one.matrix.empty());
  for (const Words& how : {Words{"cores=3"}, Words{"parallel=dp", "devices=2", "cores=1"},
                           Words{"parallel=ddp", "devices=2", "cores=1"}}) {
    if (!kCanFork && how[0] == "parallel=ddp") continue;
    CAPTURE(how[0]);
    const Whole other(with(shards, how));
    same(one.ran, other.ran);
    CHECK(numbers(one.ran.metrics) == numbers(other.ran.metrics));
    CHECK(one.best == other.best);
    CHECK(one.matrix == other.matrix);
  }
}

TEST_CASE("stages of a pipeline evaluate the same metrics") {
  const Words shards = {"reproducible=4", "cores=1"};
  const Whole one(shards);
  const Whole staged(with(shards, {"model[3].device=1"}));
  CHECK(numbers(one.ran.metrics) == numbers(staged.ran.metrics));
  CHECK(one.matrix == staged.matrix);
}

TEST_CASE("a run that stops between evaluations ends, resumed, as one that did not stop") {
  const Whole whole({"cores=1", "save.every_steps=1", "save.keep=100"});
  for (const int step : {2, 3, 5, 9, 10, 17}) {  // after 3 and 9 there was an evaluation
    CAPTURE(step);
    const Folder folder;
    fs::copy(whole.folder.path(), folder.path(), fs::copy_options::recursive);
    Quick quick;
    const Ran rest =
        run_spec_in({.folder = folder.path(), .resume = checkpoint(folder, step), .disk = &quick},
                    kSpec, {"cores=1", "save.every_steps=1", "save.keep=100"});
    CHECK_MESSAGE(rest.code == 0, rest.err);
    CHECK(rest.weights == whole.ran.weights);
    CHECK(numbers(rest.metrics) == numbers(whole.ran.metrics));
    CHECK(read_file(folder.path() + "/run/best.safetensors") == whole.best);
  }
}

TEST_CASE("best.safetensors has the weights of the best evaluation, and says which") {
  const Whole run({"cores=1"});
  const SafeTensorsFile file(run.file("best.safetensors"));
  const auto& facts = file.metadata();
  CHECK(facts.at("metric") == "validation.loss");
  CHECK(step_of_best_weights(run.file("best.safetensors")) == std::stoll(facts.at("step")));
  // A run that ends there has them as its last weights.
  const Whole until({"cores=1", "steps=" + facts.at("step")});
  CHECK(data_of(run.best) == data_of(until.ran.weights));
  CHECK(has(run.ran.metrics, "\"validation.loss\": " + facts.at("value").substr(0, 7)));
}

TEST_CASE("validation samples are not trained on, and data.limit applies before the split") {
  const auto session = session_of(kSpec, {"cores=1", "data.limit=50"});
  CHECK(session->data.train_samples() == 40);
  CHECK(session->data.test_samples() == 10);
  std::vector<uint32_t> all = session->data.train_rows;
  all.insert(all.end(), session->data.test_rows.begin(), session->data.test_rows.end());
  std::ranges::sort(all);
  for (uint32_t i = 0; i < 50; ++i) CHECK(all[i] == i);
  CHECK(session->data.train.inputs.data == session->data.test->inputs.data);  // nothing is copied
}

TEST_CASE("a validation set of its own is evaluated as a whole; evaluate: false turns it off") {
  const Words own = {"cores=1",
                     "data.validation={synthetic_images: {samples: 13, seed: 5, "
                     "shape: [1, 4, 4]}}"};
  const auto session = session_of(kSpec, own);
  CHECK(session->data.train_samples() == 70);
  CHECK(session->data.test_samples() == 13);
  CHECK(session->data.final_test);
  const auto off = session_of(kSpec, with(own, {"evaluate=false", "save.best=none"}));
  CHECK(!off->data.test);
  CHECK(!off->data.final_test);
  // data.validation alone evaluates on it, and not on the test set.
  const Whole alone({"cores=1"}, kSpec.substr(0, kSpec.find("evaluate:")));
  CHECK(has(alone.ran.out, "Validation accuracy: "));
  CHECK(!has(alone.ran.out, "Test loss"));
  CHECK(!alone.best.empty());  // by the loss
}

TEST_CASE("a validation set whose samples do not fit is refused") {
  const Words how = {"cores=1",
                     "data.validation={synthetic_images: {samples: 13, shape: [1, 5, 4]}}"};
  CHECK_THROWS_WITH_AS(
      session_of(kSpec, how),
      "the validation samples are [1, 5, 4], but the training samples are [1, 4, 4]", Error);
}

TEST_CASE("early_stop ends a run as if it were complete; resumed, nothing is left to do") {
  const Words how = {"cores=1", "epochs=50", "optimizer={sgd: 0.3}",
                     "early_stop={patience: 2, min_delta: 0.5}"};
  const Whole run(how);
  CHECK(has(run.ran.err, "Stopped early (`early_stop`): no better validation loss in 2"));
  CHECK(has(run.ran.out, "Training on CPU 0 finished."));
  CHECK(has(run.ran.metrics, "{\"final\": true"));
  const Ran again = run_spec_in({.folder = run.folder.path(), .resume = "auto"}, kSpec, how);
  CHECK_MESSAGE(again.code == 0, again.err);
  CHECK(has(again.err, "so the run was stopped early"));
  CHECK(again.weights == run.ran.weights);
  const Ran more = run_spec_in({.folder = run.folder.path(), .resume = "auto"}, kSpec,
                               with(how, {"early_stop.patience=4"}));
  CHECK_MESSAGE(more.code == 0, more.err);
  CHECK(has(more.err, "in 4 evaluations"));
}

TEST_CASE("minutes stops a run with a checkpoint and exit code 0, in ddp, too") {
  for (const Words& how : {Words{"cores=1"}, Words{"parallel=ddp", "devices=2", "cores=1"}}) {
    if (!kCanFork && how[0] == "parallel=ddp") continue;
    CAPTURE(how[0]);
    const Words endless = with(how, {"epochs=1000000", "log.every=0", "minutes=0.005"});
    const Whole run(endless);
    CHECK(has(run.ran.err, "Stopped after 0.005 minutes (`minutes`); checkpoint saved"));
    CHECK(has(run.ran.err, "to resume, run the same command with --resume "));
    CHECK(!has(run.ran.metrics, "{\"final\": true"));
    CHECK(!steps_in(run.folder.path() + "/run/checkpoints").empty());
  }
}

}  // namespace
}  // namespace dpt
