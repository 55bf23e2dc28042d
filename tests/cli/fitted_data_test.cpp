// A run keeps what was fitted to its training data, whatever the files hold later.
#include <filesystem>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "cli/process.h"
#include "data/readers/npy.h"
#include "data/tables.h"

namespace dpt {
namespace {

struct Houses {
  int rows = 60, first = 0;
  double unit = 1;               // of the area
  std::string city = "C";        // the name of the first of four cities
  std::string more_column = "";  // a column of this name, first in the file
  std::vector<int> again{};      // rows that are repeated at the end
};

// Prices by city and area.
std::string houses(const Houses& h) {
  std::string out = (h.more_column.empty() ? "" : h.more_column + ",") + "city,area,price\n";
  const auto row = [&](int i) {
    const int city = i % 4, area = 40 + (i * 37) % 100;
    const std::string name = city == 0 ? h.city : fmt::format("C{}", city);
    if (!h.more_column.empty()) out += "5,";
    out += fmt::format("{},{},{}\n", name, area * h.unit, city + 0.02 * area);
  };
  for (int i = h.first; i < h.first + h.rows; ++i) row(i);
  for (const int i : h.again) row(i);
  return out;
}

constexpr const char* kSpec = R"(
data:
  dataset: {csv: {path: train.csv, targets: price, categories: [city], standardize: true}}
  validation: 0.2
  batch_size: 10
model: [{linear: 1}]
loss: mse_loss
optimizer: {adam: 0.1}
epochs: 40
cores: 1
)";

Finished run(const Folder& folder, const std::vector<std::string>& words) {
  const Finished f = dptrain(words, {}, folder.path());
  CHECK_MESSAGE(f.code == 0, f.err);
  return f;
}

void train(const Folder& folder, const std::vector<std::string>& more = {}) {
  folder.write("train.csv", houses({}));
  folder.write("t.yaml", kSpec);
  std::vector<std::string> words = {"t.yaml"};
  words.insert(words.end(), more.begin(), more.end());
  run(folder, words);
}

std::string loss(const Folder& folder, std::vector<std::string> words) {
  words.insert(words.begin(), "eval");
  words.insert(words.end(), {"--print", "loss"});
  return run(folder, words).out;
}

// data.json without its record of the samples.
std::string fit_in(const Folder& folder, const std::string& run) {
  const std::string text = read_file(folder.file(run + "/data.json"));
  return text.substr(0, text.find("\"trained_on\""));
}

}  // namespace

TEST_CASE("eval reads any table by what the run was fitted to, not by the table itself") {
  const Folder folder;
  train(folder);
  folder.write("holdout.csv", houses({.rows = 9, .first = 200}));
  const std::string as_test = loss(folder, {"t", "data.dataset.csv.test_path=holdout.csv"});
  const std::vector<std::string> whole = {"data.validation=none", "--set", "train"};
  const auto as_training = [&](const std::string& run, const std::string& file) {
    std::vector<std::string> words = {run, "data.dataset.csv.path=" + file};
    words.insert(words.end(), whole.begin(), whole.end());
    return loss(folder, words);
  };
  for (const std::string name : {"t", "runs/t/1", "t.yaml"})
    CHECK_MESSAGE(as_training(name, "holdout.csv") == as_test, name);
  // Columns are found by their names, and others are not used.
  folder.write("more.csv", houses({.rows = 9, .first = 200, .more_column = "id"}));
  CHECK(as_training("t", "more.csv") == as_test);
  CHECK(loss(folder, {"t", "data.dataset.csv.path=more.csv",
                      "data.dataset.csv.test_path=holdout.csv"}) == as_test);
  // Other units and other names are visible in the loss.
  folder.write("units.csv", houses({.rows = 9, .first = 200, .unit = 10}));
  CHECK(std::stod(as_training("t", "units.csv")) > 100 * std::stod(as_test));
  folder.write("names.csv", houses({.rows = 9, .first = 200, .city = "Z"}));
  CHECK(std::stod(as_training("t", "names.csv")) > 10 * std::stod(as_test));
  // A part of the training file is standardized as the whole.
  folder.write("first.csv", houses({.rows = 20}));
  CHECK(loss(folder, {"t", "data.limit=20", "data.validation=none", "--set", "train"}) ==
        loss(folder, {"t", "data.dataset.csv.test_path=first.csv"}));
  folder.write("lacks.csv", "city,price\nC,1\n");
  const Finished lacks = dptrain(
      {"eval", "t", "data.dataset.csv.path=lacks.csv", "data.validation=none", "--set", "train"},
      {}, folder.path());
  CHECK(lacks.code == 4);
  CHECK_MESSAGE(has(lacks.err, "lacks.csv has no column 'area'"), lacks.err);
}

TEST_CASE("a run directory and a test file are enough to evaluate") {
  const Folder folder;
  train(folder);
  folder.write("holdout.csv", houses({.rows = 9, .first = 200}));
  const std::vector<std::string> words = {"runs/t/1", "data.dataset.csv.test_path=holdout.csv"};
  const std::string with_training_file = loss(folder, words);
  std::filesystem::remove(folder.file("train.csv"));
  CHECK(loss(folder, words) == with_training_file);
  // Nine rows are fewer than a batch.
  std::vector<std::string> drops = words;
  drops.emplace_back("data.drop_last=true");
  CHECK(loss(folder, drops) == with_training_file);
  // A limit is one of the training data.
  std::vector<std::string> limited = words;
  limited.emplace_back("data.limit=4");
  CHECK(loss(folder, limited) == with_training_file);
  const Finished none = dptrain({"eval", "runs/t/1", "--set", "train"}, {}, folder.path());
  CHECK(none.code == 4);
  CHECK_MESSAGE(has(none.err, "train.csv"), none.err);
}

TEST_CASE("weights of a run on a table are trained on by that run's means and categories") {
  const Folder folder;
  train(folder, {"data.validation=none"});
  folder.write("train.csv", houses({.rows = 21, .first = 100, .unit = 10}));
  const auto begun = [&](const std::string& more) {
    return run(folder,
               {"t.yaml", "data.validation=none", "epochs=1", "optimizer.adam.lr=0",
                "initial_weights={file: runs/t/1/model.safetensors, partial: " + more + "}"});
  };
  CHECK_MESSAGE(has(begun("false").err,
                    "the table is read with the means and categories of the run that wrote "),
                "no note");
  CHECK(fit_in(folder, "runs/t/2") == fit_in(folder, "runs/t/1"));
  CHECK_FALSE(has(begun("true").err, "the table is read with"));
  CHECK(fit_in(folder, "runs/t/3") != fit_in(folder, "runs/t/1"));
}

TEST_CASE("a spec stands for its newest run in predict, too, without the training data") {
  const Folder folder;
  train(folder);
  folder.write("new.csv", "city,area\nC1,90\n");
  const std::string before = run(folder, {"predict", "t", "new.csv", "--csv"}).out;
  folder.write("train.csv", houses({.unit = 10}));
  CHECK(run(folder, {"predict", "t.yaml", "new.csv", "--csv"}).out == before);
  CHECK(run(folder,
            {"predict", "t.yaml", "new.csv", "--csv", "--weights", "runs/t/1/best.safetensors"})
            .out == before);
}

TEST_CASE("an exported program of a run gets its data as the run reads it") {
  const Folder folder;
  train(folder, {"data.validation=none"});
  run(folder, {"export", "t", "-o", "before.py"});
  folder.write("train.csv", houses({.rows = 20}));
  run(folder, {"export", "t", "-o", "after.py"});
  run(folder, {"export", "t.yaml", "data.validation=none", "-o", "anew.py"});
  const auto first = [&](const std::string& file) {
    return values_of<float>(read_npy(folder.file(file)))[4];  // the area
  };
  CHECK(first("after-train-x.npy") == first("before-train-x.npy"));
  CHECK(first("anew-train-x.npy") != first("before-train-x.npy"));
}

TEST_CASE("eval warns of a validation or training set that is not the run's") {
  const Folder folder;
  train(folder);
  const auto warnings = [&](std::vector<std::string> words) {
    words.insert(words.begin(), {"eval", "t", "--set"});
    return run(folder, words).err;
  };
  CHECK_FALSE(has(warnings({"validation"}), "warning"));
  CHECK_FALSE(has(warnings({"train"}), "warning"));
  CHECK(has(warnings({"validation", "seed=1"}),
            "warning: the validation set is not that of the run, as `data.validation` or `seed` "
            "differ: it contains samples that the run was trained on"));
  folder.write("train.csv", houses({.again = {1, 2, 3}}));
  const std::string more = warnings({"validation"});
  CHECK_MESSAGE(has(more,
                    "warning: the training data is not that of the run any more: it had 60 "
                    "samples, and has 63 now\n"),
                more);
  CHECK_MESSAGE(has(more, "it contains samples that the run was trained on"), more);
  const std::string trained = warnings({"train"});
  CHECK(has(trained, "it had 60 samples, and has 63 now\n"));
  CHECK_FALSE(has(trained, "validation set"));
  folder.write("train.csv", houses({.first = 1}));
  CHECK(has(warnings({"validation"}),
            "it has 60 samples as before, but with other values or in another order"));
  // A run of version 0.1.0 has no record.
  const std::string json = fit_in(folder, "runs/t/1");
  folder.write("runs/t/1/data.json", json.substr(0, json.rfind(',')) + "\n}\n");
  CHECK_FALSE(has(warnings({"validation"}), "warning"));
}

TEST_CASE("eval and --resume warn of a separate validation set that has changed") {
  const Folder folder;
  folder.write("valid.csv", houses({.rows = 20, .first = 60}));
  train(folder, {"data.validation={csv: {path: valid.csv}}", "name=t", "save.best=loss"});
  const auto evaluated = [&](const std::string& set, const std::vector<std::string>& more = {}) {
    std::vector<std::string> words = {"eval", "t", "--set", set};
    words.insert(words.end(), more.begin(), more.end());
    return run(folder, words).err;
  };
  const auto resumed = [&](const std::string& epochs) {
    return run(folder, {"runs/t/1/spec.resolved.yaml", "--resume", "runs/t/1", "epochs=" + epochs})
        .err;
  };
  CHECK_FALSE(has(evaluated("validation"), "warning"));
  CHECK_FALSE(has(resumed("41"), "warning"));
  folder.write("valid.csv", houses({.rows = 21, .first = 60}));
  const std::string more = evaluated("validation");
  CHECK_MESSAGE(has(more,
                    "warning: the validation set is not that of the run any more: it had 20 "
                    "samples, and has 21 now; its numbers cannot be compared with those of the "
                    "run\n"),
                more);
  CHECK_FALSE(has(evaluated("train"), "warning"));
  folder.write("valid.csv", houses({.rows = 20, .first = 61}));
  CHECK(has(evaluated("validation"),
            "it has 20 samples as before, but with other values or in another order"));
  const std::string again = resumed("42");
  CHECK_MESSAGE(has(again,
                    "warning: the validation set has changed since the checkpoint: it has 20 "
                    "samples as before, but with other values or in another order; the run "
                    "continues with it, so the best value and `early_stop` compare results of two "
                    "sets\n"),
                again);
  CHECK_FALSE(has(resumed("43"), "warning"));
  CHECK_FALSE(has(evaluated("validation"), "warning"));
  CHECK_FALSE(has(evaluated("validation", {"data.validation=0.2"}), "cannot be compared"));
}

TEST_CASE("a separate set is not one that a run trained on") {
  const Folder folder;
  train(folder);
  folder.write("valid.csv", houses({.rows = 20, .first = 60}));
  const Finished f =
      run(folder, {"eval", "t", "--set", "validation", "data.validation={csv: {path: valid.csv}}"});
  CHECK_MESSAGE(has(f.err,
                    "warning: the validation set is not that of the run, which held out a part of "
                    "its training set; the numbers of the two cannot be compared\n"),
                f.err);
  CHECK_FALSE(has(f.err, "was trained on"));
}

TEST_CASE("a resumed run keeps what it was fitted to, and says that its data has changed") {
  const Folder folder;
  train(folder, {"save.best=loss"});
  const std::string fit = fit_in(folder, "runs/t/1");
  run(folder, {"t.yaml", "save.best=loss", "--resume", "auto", "epochs=41"});
  CHECK_FALSE(has(run(folder, {"eval", "t", "--set", "validation"}).err, "warning"));
  folder.write("train.csv", houses({.unit = 10, .again = {0, 1}}));
  const Finished f = run(folder, {"t.yaml", "save.best=loss", "--resume", "auto", "epochs=42"});
  CHECK(fit_in(folder, "runs/t/1") == fit);
  CHECK_MESSAGE(has(f.err,
                    "warning: the training data has changed since the checkpoint: it had 60 "
                    "samples, and has 62 now; the run continues with it, and keeps its "
                    "categories, means, standard deviations and class names\n"),
                f.err);
  CHECK_MESSAGE(has(f.err,
                    "warning: the validation set is another one than before: it contains "
                    "samples that the run was trained on"),
                f.err);
  // What the run saw before stays known.
  CHECK(has(run(folder, {"eval", "t", "--set", "validation"}).err,
            "warning: the run was resumed with other training data"));
  // The same by a run directory, and by a checkpoint, from which a new run begins.
  folder.write("train.csv", houses({.unit = 3}));
  CHECK(has(run(folder, {"t.yaml", "epochs=43", "--resume", "runs/t/1"}).err, "and has 60 now"));
  CHECK(fit_in(folder, "runs/t/1") == fit);
  std::string oldest;
  for (const auto& e : std::filesystem::directory_iterator(folder.file("runs/t/1/checkpoints")))
    if (oldest.empty() || e.path().string() < oldest) oldest = e.path().string();
  run(folder, {"t.yaml", "out=other", "epochs=44", "--resume", oldest});
  CHECK(fit_in(folder, "other") == fit);
  // A training from scratch is fitted anew. The checkpoints that it sets aside keep their own.
  const std::string aside = fit_in(folder, "other");
  run(folder, {"t.yaml", "out=other", "epochs=2", "save=false"});
  CHECK(fit_in(folder, "other") != fit);
  CHECK(fit_in(folder, "other/checkpoints.previous") == aside);
}

TEST_CASE("--resume auto that starts a new run fits it anew") {
  const Folder folder;
  train(folder);
  folder.write("train.csv", houses({.unit = 10}));
  const Finished f = run(folder, {"t.yaml", "optimizer.lr=0.01", "--resume", "auto"});
  CHECK_MESSAGE(has(f.err, "starting a new run"), f.err);
  CHECK(fit_in(folder, "runs/t/2") != fit_in(folder, "runs/t/1"));
}

TEST_CASE("arrays are standardized by the run that is evaluated") {
  const Folder folder;
  std::vector<float> x, y;
  for (int i = 0; i < 40; ++i)
    x.push_back(static_cast<float>(100 + i % 13)), y.push_back(static_cast<float>(i % 13) / 4);
  folder.write("x.npy", npy<float>("<f4", "(40, 1)", x));
  folder.write("y.npy", npy<float>("<f4", "(40,)", y));
  folder.write("x5.npy", npy<float>("<f4", "(5, 1)", {x.begin(), x.begin() + 5}));
  folder.write("y5.npy", npy<float>("<f4", "(5,)", {y.begin(), y.begin() + 5}));
  folder.write("t.yaml", R"(
data: {dataset: {npy: {inputs: x.npy, targets: y.npy, standardize: true}}, batch_size: 8}
model: [{linear: 1}]
loss: mse_loss
optimizer: {adam: 0.1}
epochs: 30
evaluate: false
cores: 1
)");
  run(folder, {"t.yaml"});
  const std::string as_test = loss(
      folder, {"t", "data.dataset.npy.test_inputs=x5.npy", "data.dataset.npy.test_targets=y5.npy"});
  CHECK(loss(folder, {"t", "data.dataset.npy.inputs=x5.npy", "data.dataset.npy.targets=y5.npy",
                      "--set", "train"}) == as_test);
  CHECK(loss(folder, {"t", "data.limit=5", "--set", "train"}) == as_test);
}

TEST_CASE("characters of another text are the tokens of the run") {
  const Folder folder;
  std::string text, other;
  for (int i = 0; i < 100; ++i) text += "abcd", other += "bcdb";
  folder.write("t.txt", text);
  folder.write("other.txt", "bcd");
  folder.write("t.yaml", R"(
data: {dataset: {text: {path: t.txt, sequence_length: 2}}, batch_size: 8}
model: [{embedding: {num_embeddings: 4, embedding_dim: 8}}, {linear: 4}]
loss: {cross_entropy: {class_dim: -1}}
optimizer: {adam: 0.05}
epochs: 10
cores: 1
)");
  run(folder, {"t.yaml"});
  CHECK(std::stod(loss(folder, {"t", "data.dataset.text.path=other.txt",
                                "data.dataset.text.test_share=0", "--set", "train"})) < 0.1);
  folder.write("new.txt", "abcxabcd");
  const Finished f =
      dptrain({"eval", "t", "data.dataset.text.path=new.txt", "--set", "train"}, {}, folder.path());
  CHECK(f.code == 4);
  CHECK_MESSAGE(has(f.err,
                    "new.txt: byte 0x78 at offset 3 does not occur in the text that the model "
                    "is trained on"),
                f.err);
}

}  // namespace dpt
