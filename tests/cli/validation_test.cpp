// Commands on a run with a validation set: eval, runs, compare, check and bench.
#include <string>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "cli/process.h"
#include "data/readers/image.h"
#include "paths.h"

namespace dpt {
namespace {

constexpr const char* kSpec = R"(
data:
  dataset: {synthetic_images: {samples: 120, test_samples: 30, shape: [1, 4, 4]}}
  transforms: [to_tensor]
  batch_size: 12
  validation: 0.25
model: [flatten, {linear: 16}, relu, {linear: 10}]
loss: cross_entropy
optimizer: {adam: 0.03}
epochs: 4
evaluate: {every_steps: 6, metrics: [accuracy, f1, confusion_matrix]}
save: {best: accuracy}
early_stop: 50
)";

// What follows `before` on its line, up to `until`.
std::string between(const std::string& text, const std::string& before, const std::string& until) {
  const size_t begin = text.find(before);
  REQUIRE_MESSAGE(begin != text.npos, text);
  const size_t from = begin + before.size();
  return text.substr(from, text.find(until, from) - from);
}

TEST_CASE("the commands understand a run with a validation set") {
  const Folder folder;
  folder.write("t.yaml", kSpec);
  const auto run = [&](const std::vector<std::string>& words) {
    const Finished f = dptrain(words, {}, folder.path());
    CHECK_MESSAGE(f.code == 0, (f.out + f.err));
    return f;
  };
  const Finished trained = run({"t.yaml", "cores=1"});
  const std::string best = between(trained.err, "best validation accuracy ", " in epoch");

  // The final line has the numbers of the best weights.
  const Finished test = run({"eval", "t.yaml", "cores=1", "--weights", "best"});
  CHECK(between(test.out, "Accuracy: ", " (test set, 30 samples)\n") ==
        between(trained.out.substr(trained.out.find("Test loss")), "Accuracy: ", " (best"));
  CHECK(has(test.out, "\nactual,0,1,2,"));
  // They are the default, and the command says so.
  const Finished usual = run({"eval", "t.yaml", "cores=1"});
  CHECK(usual.out == test.out);
  CHECK_MESSAGE(has(usual.err, "weights: runs/t/1/best.safetensors (best validation.accuracy " +
                                   best.substr(0, 6) + ", epoch "),
                usual.err);
  CHECK(run({"eval", "t.yaml", "cores=1", "--weights", "runs/t"}).out == test.out);
  const Finished last = run({"eval", "t.yaml", "cores=1", "--weights", "last"});
  CHECK_MESSAGE(has(last.err, "weights: runs/t/1/model.safetensors (last)\n"), last.err);
  CHECK(last.out == run({"eval", "t", "--weights", "runs/t/1/model.safetensors"}).out);
  const Finished own =
      run({"eval", "t.yaml", "cores=1", "--weights", "best", "--set", "validation"});
  CHECK_MESSAGE(has(own.out, " (validation set, 30 samples)\n"), own.out);
  const double percent = std::stod(between(own.out, "Validation accuracy: ", " %"));
  CHECK(percent == doctest::Approx(100 * std::stod(best)).epsilon(1e-4));  // as printed

  const Finished runs = run({"runs", "--json", "runs"});
  CHECK(std::stod(between(runs.out, "\"best.validation.accuracy\": ", ",")) ==
        doctest::Approx(std::stod(best)).epsilon(1e-3));  // four digits are printed
  CHECK(std::stod(between(runs.out, "\"test.loss\": ", ",")) ==
        doctest::Approx(std::stod(between(test.out, "Test loss: ", ","))).epsilon(1e-5));
  run({"compare", "runs/t/1", "runs/t/1"});
  run({"check", "t.yaml"});
  run({"bench", "t.yaml", "--modes", "single", "--rounds", "1", "--seconds", "0.01"});
}

TEST_CASE("a run that early_stop ended is finished, until it is continued") {
  const Folder folder;
  folder.write("t.yaml", kSpec);
  const std::vector<std::string> words = {"t.yaml", "epochs=40", "evaluate.every_steps=null",
                                          "early_stop={patience: 2, min_delta: 5}", "out=runs/t/1"};
  const auto state = [&] {
    const Finished f = dptrain({"runs", "--csv", "runs"}, {}, folder.path());
    return between(f.out.substr(f.out.find('\n')), "\n", "\n");
  };
  REQUIRE(dptrain(words, {}, folder.path()).code == 0);
  CHECK_MESSAGE(has(state(), ",finished"), state());
  const std::string before = read_file(folder.file("runs/t/1/metrics.jsonl"));
  CHECK(has(before, "\n{\"stopped_early\": true, \"time\": "));
  CHECK(has(read_file(folder.file("runs/t/1/report.html")), ">finished</span>"));
  // Continued for longer, and interrupted there, it is not.
  std::vector<std::string> longer = words;
  longer.insert(longer.end(), {"early_stop=20", "minutes=1e-6", "--resume", "auto"});
  const Finished more = dptrain(longer, {}, folder.path());
  REQUIRE_MESSAGE(more.code == 0, more.err);
  CHECK(has(more.err, "Stopped after"));
  CHECK_MESSAGE(has(state(), ",stopped"), state());
  CHECK(!has(read_file(folder.file("runs/t/1/metrics.jsonl")), "stopped_early"));
}

TEST_CASE("eval takes a run by its folder or its name, as predict does, and evaluates any set") {
  const Folder folder;
  folder.write("t.yaml", kSpec);
  REQUIRE(dptrain({"t.yaml", "cores=1"}, {}, folder.path()).code == 0);
  const auto eval = [&](std::vector<std::string> words) {
    words.insert(words.begin(), "eval");
    words.emplace_back("cores=1");
    const Finished f = dptrain(words, {}, folder.path());
    CHECK_MESSAGE(f.code == 0, f.err);
    return f.out;
  };
  for (const char* set : {"test", "validation", "train"}) {
    const std::string expected = eval({"t.yaml", "--set", set});
    for (const char* run : {"runs/t/1", "runs/t", "runs/t/", "t"})
      CHECK(eval({run, "--set", set}) == expected);
  }
  CHECK(eval({"t"}) == eval({"t", "--set", "test"}));
  CHECK_MESSAGE(has(eval({"t", "--set", "train"}), "Training loss: "), eval({"t"}));
  CHECK(has(eval({"t", "--set", "train"}), " (training set, 90 samples)\n"));
  CHECK(has(eval({"t", "--set", "train", "data.validation=0.5"}), " (training set, 60 samples)\n"));
  CHECK(has(dptrain({"eval", "--help"}).out, "--set validation"));
}

// The training and validation loss of one set of samples agree.
TEST_CASE("eval on the training set computes the loss without random transforms") {
  const Folder folder;
  folder.write("t.yaml", kSpec);
  const std::vector<std::string> more = {"data.transforms=[{random_crop: {padding: 1}}, to_tensor]",
                                         "data.validation=none",
                                         "data.dataset.synthetic_images.test_samples=120",
                                         "cores=1",
                                         "save.best=none",
                                         "early_stop=null"};
  std::vector<std::string> words = {"t.yaml"};
  words.insert(words.end(), more.begin(), more.end());
  REQUIRE_MESSAGE(dptrain(words, {}, folder.path()).code == 0,
                  dptrain(words, {}, folder.path()).err);
  const Finished once = dptrain({"eval", "t", "--set", "train"}, {}, folder.path());
  CHECK_MESSAGE(once.code == 0, once.err);
  CHECK(!has(once.out, " set, "));  // the spec has no validation set to confuse it with
  CHECK(dptrain({"eval", "t", "--set", "train", "seed=5"}, {}, folder.path()).out == once.out);
}

// Samples of the validation set do not count for the statistics of a table in an evaluation either.
TEST_CASE("eval standardizes a table as its run did") {
  const Folder folder;
  std::string train = "a,b,kind\n", test = train;
  for (int i = 0; i < 60; ++i) {
    const std::string row = fmt::format("{},{},{}\n", i * i % 97 * (i == 7 ? 100 : 1), i % 5,
                                        i % 3 == 0 ? "up" : "down");
    (i < 40 ? train : test) += row;
  }
  folder.write("train.csv", train);
  folder.write("test.csv", test);
  folder.write("t.yaml", R"(
data:
  dataset:
    csv: {path: train.csv, test_path: test.csv, targets: kind, classes: auto, standardize: true}
  validation: 0.4
  batch_size: 8
model: [{linear: 4}, tanh, {linear: 2}]
loss: cross_entropy
optimizer: {adam: 0.03}
epochs: 3
evaluate: true
)");
  const Finished trained = dptrain({"t.yaml", "cores=1"}, {}, folder.path());
  REQUIRE_MESSAGE(trained.code == 0, trained.err);
  const std::string last = trained.out.substr(trained.out.find("Test loss: "));
  const Finished eval = dptrain({"eval", "t", "--weights", "best"}, {}, folder.path());
  REQUIRE_MESSAGE(eval.code == 0, eval.err);
  // Printed with four digits by the one and six by the other.
  CHECK(std::stod(between(last, "Test loss: ", ",")) ==
        doctest::Approx(std::stod(between(eval.out, "Test loss: ", ","))).epsilon(1e-4));
}

TEST_CASE("eval says what is missing") {
  const Folder folder;
  folder.write("t.yaml", kSpec);
  const auto error = [&](const std::vector<std::string>& words) {
    const Finished f = dptrain(words, {}, folder.path());
    CHECK(f.code != 0);
    return f.err;
  };
  REQUIRE(dptrain({"t.yaml", "save.best=none"}, {}, folder.path()).code == 0);
  CHECK(has(error({"eval", "t.yaml", "--weights", "best"}), "the run kept no best weights"));
  CHECK(has(error({"eval", "t.yaml", "data.validation=none", "--set", "validation"}),
            "the spec has no validation set"));
  CHECK(has(error({"eval", "none"}), "none"));
  folder.write("x.npy", npy("<f4", "(20, 2)", std::vector<float>(40, 0.5F)));
  folder.write("y.npy", npy("<f4", "(20, 1)", std::vector<float>(20, 1.5F)));
  folder.write("v.yaml", R"(
data: {dataset: {npy: {inputs: x.npy, targets: y.npy}}, batch_size: 4, validation: 0.2}
model: [{linear: 1}]
loss: mse_loss
optimizer: {sgd: 0.1}
epochs: 1
)");
  REQUIRE(dptrain({"v.yaml"}, {}, folder.path()).code == 0);
  const std::string missing = error({"eval", "v"});
  CHECK_MESSAGE(has(missing,
                    "has no test split: write test_inputs and test_targets, or evaluate "
                    "the validation set with --set validation"),
                missing);
  // Such a run has no number of the test set, which is told before it trains.
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"v.yaml", "evaluate=true", "--print", "test.loss"},
        {"v.yaml", "--print", "test.loss"}}) {
    const std::string none = error(words);
    CHECK_MESSAGE(has(none,
                      "--print: this run has no number 'test.loss'; the data has no test "
                      "set; it has: loss, validation.loss, best.loss"),
                  none);
  }
}

// A text table with the words low, mid and high, each of which has its own x.
std::string sizes(const std::vector<int>& order, const std::vector<std::string>& names) {
  std::string out = "x,y\n";
  for (int i = 0; i < 30; ++i) {
    const int size = order[static_cast<size_t>(i) % order.size()];
    out += fmt::format("{},{}\n", size + i % 4 * 0.1, names[static_cast<size_t>(size)]);
  }
  return out;
}

TEST_CASE("a separate validation set has the classes of the training set") {
  const Folder folder;
  folder.write("t.yaml", R"(
data:
  dataset: {csv: {path: t.csv, targets: y, classes: "auto"}}
  validation: {csv: v.csv}
  batch_size: 10
model: [{linear: 16}, relu, {linear: 3}]
loss: cross_entropy
optimizer: {adam: 0.05}
epochs: 100
cores: 1
)");
  for (const std::vector<std::string>& names :
       {std::vector<std::string>{"low", "mid", "high"}, {"1", "2", "3"}, {"5", "03", "4"}}) {
    folder.write("t.csv", sizes({0, 1, 2}, names));
    folder.write("v.csv", sizes({2, 1}, names));
    const Finished f = dptrain({"t.yaml", "--print", "accuracy"}, {}, folder.path());
    CHECK_MESSAGE(f.out == "1\n", f.err);
    const Finished test =
        dptrain({"eval", "t", "data.dataset.csv.test_path=v.csv", "--print", "accuracy"}, {},
                folder.path());
    CHECK_MESSAGE(test.out == "1\n", test.err);
  }
}

TEST_CASE("a separate validation set cannot be read in another way than the training set") {
  const Folder folder;
  folder.write("t.csv", "x,y,y2\n1,0,2\n2,1,0\n3,2,1\n");
  folder.write("x.npy", npy("<f4", "(2, 1)", std::vector<float>{1, 2}));
  folder.write("y.npy", npy("<i4", "(2,)", std::vector<int32_t>{1, 2}));
  const auto check = [&](const std::string& dataset, const std::string& validation) {
    folder.write("t.yaml", fmt::format(R"(
data:
  dataset: {}
  validation: {}
  batch_size: 2
model: [{{linear: 3}}]
loss: cross_entropy
optimizer: sgd
)",
                                       dataset, validation));
    return dptrain({"check", "t.yaml"}, {}, folder.path());
  };
  const auto refused = [&](const std::string& dataset, const std::string& validation,
                           const std::string& why) {
    const Finished f = check(dataset, validation);
    CHECK(f.code != 0);
    CHECK_MESSAGE(has(f.err, why), f.err);
  };
  const std::string numbered = "{csv: {path: t.csv, targets: y, inputs: x, classes: 3}}";
  const auto csv = [](const std::string& keys) { return "{csv: {path: t.csv, " + keys + "}}"; };
  refused(numbered, csv("targets: y2"),
          "t.yaml:4:44: error: 'targets' of the validation set is that of the training set, which "
          "has y in line 3; delete 'targets' here, or give both the same value");
  refused(numbered, csv("inputs: [y2]"), "which has x in line 3; delete 'inputs'");
  refused(numbered, csv("classes: auto"), "which has 3 in line 3; delete 'classes'");
  refused(numbered, csv("class_names: ['0', '1', '2']"), "which leaves it out (default: [])");
  refused(numbered, csv("standardize: true"), "which leaves it out (default: false)");
  for (const char* keys : {"targets: [y], standardize: false", "classes: 3, missing: drop"}) {
    const Finished f = check(numbered, csv(keys));
    CHECK_MESSAGE(f.code == 0, f.err);
  }
  // Arrays hold numbers of the training set's classes.
  const std::string arrays = "{npy: {inputs: x.npy, targets: y.npy}}";
  const Finished f = check(numbered, arrays);
  CHECK_MESSAGE(f.code == 0, f.err);
  refused("{csv: {path: t.csv, targets: y, inputs: x, classes: 3, standardize: true}}", arrays,
          "is not encoded and standardized as the training set");
  folder.write("t.csv", "x,y\n1,1\n2,2\n3,3\n");
  refused("{csv: {path: t.csv, targets: y, classes: auto}}", arrays,
          "numbers classes in another way than the training set, whose classes are 1, 2, 3");
}

TEST_CASE("a separate folder of images is resized, cropped and turned as the training set is" *
          doctest::skip(!reads_png())) {
  const std::string image = read_file(test_file("fixtures/images/png/rgb.png"));
  const Folder folder;
  for (const char* name : {"t/a/1.png", "t/b/1.png", "v/a/1.png", "v/b/1.png"})
    folder.write(name, image);
  const auto check = [&](const std::string& validation) {
    folder.write("t.yaml",
                 "data:\n  dataset: {image_folder: {path: t, resize: 12, crop: 8}}\n  validation: "
                 "{image_folder: " +
                     validation +
                     "}\n  transforms: [to_tensor]\n  batch_size: 2\nmodel: [flatten, {linear: "
                     "2}]\nloss: cross_entropy\noptimizer: sgd\nepochs: 1\ncores: 1\n");
    return dptrain({"check", "t.yaml"}, {}, folder.path());
  };
  for (const char* same : {"v", "{path: v}", "{path: v, resize: 12, crop: [8]}"}) {
    const Finished f = check(same);
    CHECK_MESSAGE(f.code == 0, f.err);
  }
  CHECK(has(check("{path: v, crop: 9}").err, "which has 8 in line 2; delete 'crop' here"));
  CHECK(has(check("{path: v, exif: true}").err, "which leaves it out (default: false)"));
}

}  // namespace
}  // namespace dpt
