// What a run makes of its losses: which targets count, and which of them a schedule looks at.
#include <regex>

#include <doctest/doctest.h>

#include "data/folder.h"
#include "train/run_spec.h"

namespace dpt {
namespace {

std::vector<double> numbers_of(const std::string& metrics, const std::string& key) {
  std::vector<double> out;
  const std::regex number("\"" + key + R"(": ([-+.e0-9]+))");
  for (std::sregex_iterator i(metrics.begin(), metrics.end(), number), end; i != end; ++i)
    out.push_back(std::stod((*i)[1]));
  return out;
}

}  // namespace

TEST_CASE("targets that are the loss's ignore_index count nothing, in the mean and the accuracy") {
  const Folder folder;
  folder.write("some.csv", "1,2,0\n3,-1,-100\n0,4,1\n-100,7,-100\n2,2,2\n");
  folder.write("kept.csv", "1,2,0\n0,4,1\n2,2,2\n");
  const auto run = [&](const std::string& file, const std::string& loss) {
    const std::string path = folder.file(file);
    return run_spec("data:\n  dataset: {csv: {path: " + path + ", test_path: " + path +
                    ", classes: 3}}\n  batch_size: 8\n  shuffle: false\n" +
                    "model: [{linear: 3}]\nloss: " + loss +
                    "\noptimizer: {sgd: 0.01}\nepochs: 3\nevaluate: true\ncores: 1\n");
  };
  const Ran some = run("some.csv", "cross_entropy"), kept = run("kept.csv", "cross_entropy");
  REQUIRE_MESSAGE(some.code == 0, some.err);
  for (const char* key : {"loss", "test.loss", "test.accuracy"}) {
    const std::vector<double> a = numbers_of(some.metrics, key), b = numbers_of(kept.metrics, key);
    REQUIRE(a.size() == 3);
    // Sums over other numbers of rows are rounded in another order.
    for (size_t i = 0; i < a.size(); ++i) CHECK(a[i] == doctest::Approx(b[i]).epsilon(1e-6));
  }
  CHECK(has(data_error([&] { run("some.csv", "{cross_entropy: {ignore_index: 7}}"); }),
            "the label of sample 1 (counted from 0) is -100"));
}

TEST_CASE("the accuracy leaves out labels that equal an ignore_index that is a class") {
  const Folder folder;
  folder.write("some.csv", "1,2,0\n3,-1,1\n0,4,1\n-1,7,2\n2,2,2\n");
  folder.write("kept.csv", "1,2,0\n-1,7,2\n2,2,2\n");
  for (const char* loss : {"cross_entropy", "nll_loss"}) {
    CAPTURE(loss);
    const auto run = [&](const std::string& file, const std::vector<std::string>& how) {
      const std::string path = folder.file(file);
      return run_spec("data:\n  dataset: {csv: {path: " + path + ", test_path: " + path +
                          ", classes: 3}}\n  batch_size: 8\n  shuffle: false\n" +
                          "model: [{linear: 3}, log_softmax]\nloss: {" + loss +
                          ": {ignore_index: 1}}\noptimizer: {sgd: 0.01}\nepochs: 3\n"
                          "evaluate: {batch_size: 2}\n",
                      how);
    };
    const std::vector<double> kept =
        numbers_of(run("kept.csv", {"cores=1"}).metrics, "test.accuracy");
    REQUIRE(kept.size() == 3);
    for (const std::vector<std::string>& how :
         std::vector<std::vector<std::string>>{{"cores=1"},
                                               {"cores=1", "parallel=dp", "devices=2"},
                                               {"cores=1", "parallel={pipeline: {stages: 2}}"}})
      CHECK(numbers_of(run("some.csv", how).metrics, "test.accuracy") == kept);
  }
}

namespace {

// Two batches of each epoch have some labels that are ignored, the second has no others.
const char* const kEmpty = "1,2,0\n3,-1,1\n0,4,-100\n-1,7,-100\n2,2,2\n0.5,1,0\n1,1,-100\n2,0,1\n";

std::string spec_of_empty(const std::string& csv, const std::string& optimizer,
                          const std::string& loss = "cross_entropy") {
  return "data:\n  dataset: {csv: {path: " + csv +
         ", classes: 3}}\n  batch_size: 2\n  shuffle: false\nmodel: [{linear: 3}]\nloss: " + loss +
         "\noptimizer: " + optimizer + "\nepochs: 2\nseed: 0\nlog: {every: 1}\ncores: 1\n";
}

}  // namespace

// By PyTorch 2.13: nn.Linear(2, 3) after torch.manual_seed(0), the loss of each step; the mean over
// an epoch's targets that are not ignored. The step without any still moves Adam's and momentum's
// weights.
TEST_CASE("a step whose targets are all ignored has the loss nan and moves weights, as in torch") {
  const Folder folder;
  folder.write("t.csv", kEmpty);
  struct Case {
    const char* optimizer;
    std::vector<double> steps, epochs;
  };
  for (const Case& c :
       {Case{"{adam: 0.1}",
             {0.796988308, 1.33488274, 0.60754478, 0.327695519, 1.12065315, 0.276739925},
             {0.974257374, 0.634687454}},
        Case{"{sgd: {lr: 0.1, momentum: 0.9, weight_decay: 0.01}}",
             {0.796988308, 1.19390845, 0.789285243, 0.381266594, 1.08282375, 0.153454557},
             {0.954215753, 0.61632705}}}) {
    CAPTURE(c.optimizer);
    const Ran ran = run_spec(spec_of_empty(folder.file("t.csv"), c.optimizer));
    REQUIRE_MESSAGE(ran.code == 0, ran.err);
    std::vector<double> expected = c.steps;
    expected.insert(expected.begin() + 3, c.epochs[0]);
    expected.push_back(c.epochs[1]);
    const std::vector<double> losses = numbers_of(ran.metrics, "loss");  // null is none
    REQUIRE(losses.size() == expected.size());
    // Eight steps of float32 with numbers near 1.
    for (size_t i = 0; i < losses.size(); ++i)
      CHECK(losses[i] == doctest::Approx(expected[i]).epsilon(2e-6));
    for (const char* step : {"warning: epoch 1, step 2: ", "warning: epoch 2, step 6: "})
      CHECK_MESSAGE(has(ran.err, step), ran.err);
    CHECK_MESSAGE(has(ran.metrics, R"({"step": 2, "epoch": 1, "loss": null)"), ran.metrics);
  }
}

TEST_CASE("a step whose targets are all ignored is the same in every mode, and no overflow") {
  const Folder folder;
  folder.write("t.csv", kEmpty);
  const std::string text = spec_of_empty(folder.file("t.csv"), "{adam: 0.1}",
                                         "{cross_entropy: {label_smoothing: 0.1}}") +
                           "reproducible: {shards: 2}\n";
  for (const char* more :
       {"seed=1", "clip_grad_norm=0.5", "precision={fp16: {emulate: true, init_scale: 256}}"}) {
    CAPTURE(more);
    const Ran one = run_spec(text, {more});
    CHECK_MESSAGE(has(one.err, "warning: epoch 1, step 2: "), one.err);
    CHECK_MESSAGE(!has(one.metrics, "\"skipped\": true"), one.metrics);
    same(one, run_spec(text, {more, "cores=2"}));
    same(one, run_spec(text, {more, "parallel=dp", "devices=2"}));
    if (kCanFork) same(one, run_spec(text, {more, "parallel=ddp", "devices=2"}));
  }
  const auto stages = [&](const char* how) {
    return run_spec(text, {"model=[{linear: 4}, {linear: 3}]", how});
  };
  same(stages("accumulate=2"), stages("parallel={pipeline: {stages: 2, chunks: 2}}"));
}

TEST_CASE("many steps whose targets are all ignored are named at first, then counted") {
  const Folder folder;
  std::string rows = "1,2,0\n3,-1,1\n";
  for (int i = 0; i < 16; ++i) rows += "1,2,-100\n";
  folder.write("t.csv", rows);
  const Ran ran = run_spec(spec_of_empty(folder.file("t.csv"), "{sgd: 0.1}"));
  REQUIRE_MESSAGE(ran.code == 0, ran.err);
  for (const char* line : {"epoch 1, step 6: ", "epoch 2, step 11: ",
                           "epoch 1: the loss ignores all targets in 3 more steps"})
    CHECK_MESSAGE(has(ran.err, line), ran.err);
  CHECK_FALSE(has(ran.err, "epoch 1, step 7: "));
}

// torch's gradients are nan then, and so are all weights after the step.
TEST_CASE("a step whose targets all have the class weight 0 ends the run and says so") {
  const Folder folder;
  folder.write("t.csv", "1,2,0\n3,-1,2\n0,4,1\n-1,7,1\n");
  const Ran ran = run_spec(
      spec_of_empty(folder.file("t.csv"), "{sgd: 0.1}", "{cross_entropy: {weight: [1, 0, 2]}}"));
  CHECK(ran.code == 7);
  CHECK_MESSAGE(has(ran.err,
                    "the loss is nan at epoch 1, step 2: every target of the step has the "
                    "class weight 0 or is ignored"),
                ran.err);
  CHECK(has(ran.err, "set ignore_index to the class"));
}

TEST_CASE("bce_loss refuses targets that are not between 0 and 1, by their sample") {
  const Folder folder;
  folder.write("good.csv", "1,2,0\n3,-1,1\n0,4,0.5\n");
  folder.write("high.csv", "1,2,0\n3,-1,1\n0,4,1.5\n");
  folder.write("low.csv", "1,2,0\n3,-1,-0.25\n0,4,1\n");
  const auto run = [&](const std::string& train, const std::string& test, const std::string& loss) {
    return run_spec("data:\n  dataset: {csv: {path: " + folder.file(train) +
                    ", test_path: " + folder.file(test) + ", header: no}}\n  batch_size: 2\n" +
                    "model: [{linear: 1}, sigmoid]\nloss: " + loss +
                    "\noptimizer: {sgd: 0.01}\nevaluate: true\ncores: 1\n");
  };
  CHECK(run("good.csv", "good.csv", "bce_loss").code == 0);
  CHECK(run("high.csv", "high.csv", "bce_with_logits_loss").code == 0);  // as torch
  CHECK(has(data_error([&] { run("high.csv", "good.csv", "bce_loss"); }),
            "sample 2 of the training set (counted from 0) has the target 1.5, but bce_loss takes "
            "targets from 0 to 1"));
  CHECK(has(data_error([&] { run("good.csv", "low.csv", "bce_loss"); }),
            "sample 1 of the test set (counted from 0) has the target -0.25"));
}

TEST_CASE("a test loss that is no number is told, and null in the metrics, since JSON has no nan") {
  const Folder folder;
  folder.write("train.csv", "1,2,0\n3,-1,1\n");
  folder.write("test.csv", "1,2,0\n1e30,1e30,1\n");
  const Ran ran = run_spec("data:\n  dataset: {csv: {path: " + folder.file("train.csv") +
                           ", test_path: " + folder.file("test.csv") +
                           "}}\n  batch_size: 2\nmodel: [{linear: 1}]\nloss: mse_loss\n"
                           "optimizer: {sgd: 0.01}\nepochs: 1\nevaluate: true\ncores: 1\n");
  CHECK_MESSAGE(ran.code == 0, ran.err);
  CHECK_MESSAGE(has(ran.err, "epoch 1: the test loss is inf; check the test set"), ran.err);
  CHECK_MESSAGE(has(ran.metrics, "\"test.loss\": null"), ran.metrics);
}

TEST_CASE("reduce_on_plateau looks at one sort of loss: that of the evaluations there are") {
  // The rate is too low for any progress, so each value after the first lowers it.
  const auto rates = [](const std::string& evaluate) {
    const Ran ran = run_spec(
        "data: {dataset: {random: {samples: 8}}, batch_size: 8}\nmodel: [{linear: 10}]\n"
        "loss: mse_loss\noptimizer: {sgd: 1e-6}\nepochs: 7\ncores: 1\nschedule: "
        "{reduce_on_plateau: {patience: 0, threshold: 0.5}}\n" +
        evaluate);
    REQUIRE_MESSAGE(ran.code == 0, ran.err);
    return numbers_of(ran.metrics, "lr");
  };
  const auto expect = [](const std::vector<double>& got, const std::vector<double>& wanted) {
    REQUIRE(got.size() == wanted.size());
    for (size_t i = 0; i < got.size(); ++i) CHECK(got[i] == doctest::Approx(wanted[i]));
  };
  expect(rates("evaluate: {every: 3}\n"), {1e-6, 1e-6, 1e-6, 1e-6, 1e-6, 1e-6, 1e-7});
  expect(rates("evaluate: {every: 2}\n"), {1e-6, 1e-6, 1e-6, 1e-6, 1e-7, 1e-7, 1e-8});
}

}  // namespace dpt
