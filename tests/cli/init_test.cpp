// dptrain init: each kind of data gives a spec that passes the check and trains.
#include <algorithm>
#include <cmath>
#include <filesystem>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "cli/process.h"
#include "data/readers/image.h"
#include "paths.h"

namespace dpt {
namespace {

// Runs init on the data, checks the spec and trains two steps; returns the spec.
std::string trained(const Folder& folder, const std::string& data,
                    const std::vector<std::string>& more = {}) {
  std::vector<std::string> words = {"init", data, "--out", "s.yaml", "--force"};
  words.insert(words.end(), more.begin(), more.end());
  const Finished made = dptrain(words, {}, folder.path());
  CHECK_MESSAGE(made.code == 0, made.err);
  CHECK_MESSAGE(has(made.out, "wrote s.yaml; next:\n  dptrain check s.yaml\n  dptrain s.yaml\n"),
                made.out);
  const Finished checked = dptrain({"check", "s.yaml"}, {}, folder.path());
  CHECK_MESSAGE(checked.code == 0, checked.err);
  const Finished run = dptrain({"s.yaml", "steps=2", "cores=1"}, {}, folder.path());
  CHECK_MESSAGE(run.code == 0, run.err);
  const std::string spec = read_file(folder.file("s.yaml"));
  CHECK(spec.starts_with("# yaml-language-server: $schema="));
  return spec;
}

TEST_CASE("init: a CSV of words as classes, and one of real numbers") {
  const Folder folder;
  std::string words = "a,note,kind\n", numbers;
  for (int i = 0; i < 60; ++i) {
    words += fmt::format("{}.5,text {},{}\n", i % 7, i, i % 2 == 0 ? "no" : "wine: red");
    numbers += fmt::format("{};{}\n", i % 9 + 0.25, 1000 * i + 5e5);
  }
  folder.write("w.csv", words);
  folder.write("n.csv", numbers);
  const std::string classes = trained(folder, "w.csv");
  CHECK_MESSAGE(has(classes, "class_names: [\"no\", \"wine: red\"]"), classes);
  CHECK_MESSAGE(has(classes, "exclude: [note]"), classes);
  CHECK_MESSAGE(has(classes, "- linear: 2 "), classes);
  const std::string values = trained(folder, "n.csv");
  CHECK_MESSAGE(has(values, "loss: mse_loss"), values);
  CHECK_MESSAGE(has(values, "- standardize: {mean: "), values);
}

TEST_CASE("init: tables of training, validation and test samples") {
  const Folder folder;
  const auto write = [&](const std::string& name, const std::string& target) {
    std::string text = "a,b,y\n";
    for (int i = 0; i < 60; ++i)
      text += fmt::format("{}.5,{},{}\n", i % 7, i % 3 == 0 ? "" : fmt::format("{}.25", i % 5),
                          target == "class" ? (i % 2 == 0 ? "no" : "yes") : fmt::format("{}.5", i));
    folder.write(name, text);
  };
  write("train.csv", "value");
  write("test.csv", "value");
  const std::string tested = trained(folder, "train.csv");
  CHECK_MESSAGE(has(tested, "evaluate: {metrics: [mae, r2]} "), tested);
  CHECK(has(tested, "# in addition to the loss, on the test set"));
  write("val.csv", "value");
  const std::string values = trained(folder, "train.csv");
  CHECK_MESSAGE(has(values, "    csv:\n      path: val.csv\n      missing: mean\n"), values);
  CHECK(has(values, "early_stop: "));
  CHECK(has(values, "evaluate: {metrics: [mae, r2]} "));
  CHECK(has(values, "# in addition to the loss, on the validation set"));
  for (const char* name : {"train.csv", "val.csv", "test.csv"}) write(name, "class");
  const std::string classes = trained(folder, "train.csv");
  CHECK_MESSAGE(has(classes, "      path: val.csv\n      missing: mean\n"), classes);
  CHECK(has(classes, "evaluate: true "));
}

TEST_CASE("init: arrays of a validation set") {
  const Folder folder;
  const auto write = [&](const std::string& word, size_t n) {
    folder.write("a/x_" + word + ".npy",
                 npy("<f4", fmt::format("({}, 2)", n), std::vector<float>(2 * n, 0.5F)));
    folder.write("a/y_" + word + ".npy",
                 npy("<f4", fmt::format("({},)", n), std::vector<float>(n, 0.5F)));
  };
  write("train", 30);
  write("val", 5);
  for (const bool tested : {false, true}) {
    CAPTURE(tested);
    if (tested) write("test", 5);
    const std::string spec = trained(folder, "a");
    CHECK_MESSAGE(has(spec, "    npy:\n      inputs: a/x_val.npy\n      targets: a/y_val.npy\n"),
                  spec);
    CHECK(has(spec, "early_stop: "));
    CHECK(has(spec, "test_inputs: a/x_test.npy") == tested);
  }
}

TEST_CASE("init: arrays of images, of tokens, and with a test set") {
  const Folder folder;
  folder.write("i/x.npy", npy("|u1", "(6, 3, 16, 16)", std::vector<uint8_t>(6 * 768, 7)));
  folder.write("i/y.npy", npy("<i8", "(6,)", std::vector<int64_t>{0, 1, 2, 0, 1, 2}));
  CHECK(has(trained(folder, "i"), "- conv2d: {out_channels: 16"));
  // Gray images without a dimension of channels.
  for (const char* type : {"|u1", "<f4"}) {
    folder.write("g/x.npy", type[1] == 'u'
                                ? npy(type, "(6, 16, 14)", std::vector<uint8_t>(6 * 224, 7))
                                : npy(type, "(6, 16, 14)", std::vector<float>(6 * 224, 0.5F)));
    folder.write("g/y.npy", npy("<i8", "(6,)", std::vector<int64_t>{0, 1, 2, 0, 1, 2}));
    const std::string gray = trained(folder, "g");
    CHECK_MESSAGE(has(gray, "  - reshape: [1, 16, 14] "), gray);
    CHECK(has(gray, "- conv2d: {out_channels: 16"));
    CHECK(has(gray, "- normalize: {mean: 0."));
    CHECK_FALSE(has(gray, "standardize"));
  }
  folder.write("v/x.npy", npy("<f4", "(6, 2, 4, 8, 9)", std::vector<float>(6 * 576, 0.5F)));
  folder.write("v/y.npy", npy("<i8", "(6,)", std::vector<int64_t>{0, 1, 2, 0, 1, 2}));
  CHECK(has(trained(folder, "v"), "- conv3d: {out_channels: 16"));
  folder.write("t/x.npy", npy("<i4", "(6, 3)", std::vector<int32_t>(18, 4)));
  folder.write("t/y.npy", npy("<f4", "(6, 2)", std::vector<float>(12, 1.5F)));
  folder.write("t/x_test.npy", npy("<i4", "(1, 3)", std::vector<int32_t>(3, 4)));
  folder.write("t/y_test.npy", npy("<f4", "(1, 2)", std::vector<float>(2, 1.5F)));
  const std::string tokens = trained(folder, "t");
  CHECK_MESSAGE(has(tokens, "embedding: {num_embeddings: 5,"), tokens);
  CHECK_MESSAGE(has(tokens, "evaluate: {metrics: [mae, r2]}"), tokens);
}

TEST_CASE("init: a class for each pixel, voxel or position") {
  const Folder folder;
  const auto labels = [](size_t count, int64_t classes) {
    std::vector<int64_t> out(count);
    for (size_t i = 0; i < count; ++i) out[i] = static_cast<int64_t>(i) % classes;
    return out;
  };
  folder.write("p/x.npy", npy("|u1", "(6, 3, 5, 9)", std::vector<uint8_t>(6 * 135, 7)));
  folder.write("p/y.npy", npy("<i8", "(6, 5, 9)", labels(6 * 45, 4)));
  const std::string pixels = trained(folder, "p");
  CHECK_MESSAGE(has(pixels, "- conv2d: {out_channels: 4, kernel_size: 1} "), pixels);
  CHECK_MESSAGE(has(pixels, "loss: cross_entropy "), pixels);
  folder.write("v/x.npy", npy("<f4", "(6, 1, 4, 3, 5)", std::vector<float>(360, 0.5F)));
  folder.write("v/y.npy", npy("<i8", "(6, 4, 3, 5)", labels(360, 3)));
  CHECK(has(trained(folder, "v"), "- conv3d: {out_channels: 3, kernel_size: 1} "));
  folder.write("s/x.npy", npy("<f4", "(6, 2, 12)", std::vector<float>(144, 0.5F)));
  folder.write("s/y.npy", npy("<i8", "(6, 12)", labels(72, 3)));
  CHECK(has(trained(folder, "s"), "- conv1d: {out_channels: 3, kernel_size: 1} "));
  // Without a dimension of channels.
  folder.write("g/x.npy", npy("<f4", "(6, 5, 9)", std::vector<float>(270, 0.5F)));
  folder.write("g/y.npy", npy("<i8", "(6, 5, 9)", labels(270, 2)));
  CHECK(has(trained(folder, "g"), "- reshape: [1, 5, 9] "));
}

TEST_CASE("init: labels that mark pixels without a class are ignored") {
  const Folder folder;
  folder.write("b/x.npy", npy("<f4", "(4, 1, 4, 4)", std::vector<float>(64, 0.5F)));
  std::vector<uint8_t> bytes(64, 1);
  bytes[0] = bytes[33] = 255;
  folder.write("b/y.npy", npy("|u1", "(4, 4, 4)", bytes));
  const std::string spec = trained(folder, "b");
  CHECK_MESSAGE(has(spec, "- conv2d: {out_channels: 2, kernel_size: 1} "), spec);
  CHECK_MESSAGE(has(spec, "loss: {cross_entropy: {ignore_index: 255}} "), spec);
  CHECK_MESSAGE(has(spec, "# targets of 255 count as targets without a class"), spec);
  std::vector<int64_t> labels(64, 2);
  labels[5] = -1;
  folder.write("b/y.npy", npy("<i8", "(4, 4, 4)", labels));
  CHECK(has(trained(folder, "b"), "loss: {cross_entropy: {ignore_index: -1}} "));
}

TEST_CASE("init: targets of 1 and -1, and label sequences") {
  const Folder folder;
  const auto refusal = [&](const char* data) {
    const Finished f = dptrain({"init", data, "--out", "none.yaml"}, {}, folder.path());
    CHECK(f.code != 0);
    CHECK(!std::filesystem::exists(folder.file("none.yaml")));
    CHECK_MESSAGE(!has(f.err, "none.yaml"), f.err);
    return f.err;
  };
  std::vector<float> signs(40, 1);
  signs[3] = signs[8] = -1;
  folder.write("f/x.npy", npy("<f4", "(40, 2)", std::vector<float>(80, 0.5F)));
  folder.write("f/y.npy", npy("<f4", "(40,)", signs));
  const std::string spec = trained(folder, "f");
  CHECK_MESSAGE(has(spec, "loss: soft_margin_loss "), spec);
  CHECK_MESSAGE(!has(spec, "- standardize"), spec);
  CHECK_MESSAGE(has(spec, "evaluate: {metrics: [accuracy, f1, auc]} "), spec);
  CHECK_MESSAGE(has(spec, "epochs: 50 "), spec);
  CHECK_MESSAGE(has(spec, "early_stop: 10 "), spec);
  for (const char* shape : {"(40,)", "(20, 2)"}) {
    folder.write("f/y.npy", npy("<i8", shape, std::vector<int64_t>(signs.begin(), signs.end())));
    CHECK(has(refusal("f"), "are numbers: save them as float32"));
  }
  folder.write("c/x.npy", npy("<f4", "(4, 9, 5)", std::vector<float>(180, 0.5F)));
  folder.write("c/y.npy",
               npy("<i8", "(4, 3)", std::vector<int64_t>{1, 2, 3, 1, 1, -1, 3, 2, -1, 2, 2, 2}));
  const std::string sequences = refusal("c");
  CHECK_MESSAGE(has(sequences,
                    "no spec was written: the samples are [9, 5] f32, and the targets of "
                    "each are [3] i32: if these are sequences of labels"),
                sequences);
  CHECK(has(sequences, "`loss: ctc_loss`"));
  folder.write("o/x.npy", npy("<f4", "(4, 1, 8, 8)", std::vector<float>(256, 0.5F)));
  folder.write("o/y.npy", npy("<i8", "(4, 2, 2)", std::vector<int64_t>(16, 1)));
  CHECK(has(refusal("o"), "the output [N, C, ...]"));
  // Classes and labels that are stored in another shape or type.
  folder.write("l/x.npy", npy("|u1", "(4, 3, 8, 8)", std::vector<uint8_t>(768, 7)));
  folder.write("l/y.npy", npy("<i8", "(4, 1)", std::vector<int64_t>{0, 1, 2, 1}));
  CHECK(has(refusal("l"),
            "if these are classes, one per sample, save them as [N]: "
            "numpy.save(\"y.npy\", y.ravel())"));
  folder.write("l/y.npy", npy("<i8", "(4, 2)", std::vector<int64_t>{0, 1, 1, 1, 0, 0, 1, 0}));
  CHECK(has(refusal("l"),
            "if each is a label that a sample may have, save them as float32: "
            "numpy.save(\"y.npy\", y.astype(\"float32\"))"));
  folder.write("l/y.npy", npy("<i8", "(4, 2)", std::vector<int64_t>{0, 1, 1, 0, 1, 0, 0, 1}));
  CHECK(has(refusal("l"),
            "the targets are one-hot; save class numbers: numpy.save(\"y.npy\", y.argmax(1))"));
  folder.write("l/y.npy", npy("<i8", "(4, 2)", std::vector<int64_t>{0, 1, 1, 1, 0, 0, 9, 0}));
  CHECK(has(refusal("l"), "save values as float32: numpy.save("));
  CHECK_FALSE(has(refusal("l"), "ctc_loss"));
  // Numbers that are not finite.
  folder.write("m/x.npy", npy("<f4", "(3, 2)", std::vector<float>(6, 0.5F)));
  folder.write("m/y.npy", npy("<f4", "(3,)", std::vector<float>{1, 2, NAN}));
  CHECK(has(refusal("m"),
            "m: sample 2 of the training set (counted from 0) has a target that is "
            "not finite; fix or remove that sample"));
  folder.write("k/x.npy", npy("|u1", "(4, 8, 9, 3)", std::vector<uint8_t>(864, 7)));
  folder.write("k/y.npy", npy("<i8", "(4,)", std::vector<int64_t>{0, 1, 0, 1}));
  CHECK(has(refusal("k"),
            "the samples are [8, 9, 3], images with their channels last, as in Keras; dptrain "
            "takes [channels, height, width]: numpy.save(\"x.npy\", x.transpose(0, 3, 1, 2))"));
  folder.write("n/x.npy", npy("<f8", "(4,)", std::vector<double>{1, 2, 3, 4}));
  folder.write("n/y.npy", npy("<i8", "(4,)", std::vector<int64_t>{0, 1, 0, 1}));
  CHECK(has(refusal("n"),
            "the inputs are 4 single numbers of type f32, but samples of a net are "
            "rows of numbers; store the inputs as [N, 1]"));
}

TEST_CASE("init: images in folders" * doctest::skip(!reads_png())) {
  const std::string image = read_file(test_file("fixtures/images/png/rgb.png"));
  const Folder folder;
  for (const char* name : {"pics/a/1.png", "pics/a/2.png", "pics/b c/1.png"})
    folder.write(name, image);
  CHECK(has(trained(folder, "pics"), "path: pics "));
  // A test set may lack a class.
  for (const char* name : {"sets/train/a/1.png", "sets/train/b/1.png", "sets/test/a/1.png"})
    folder.write(name, image);
  CHECK(has(trained(folder, "sets"), "- linear: 2 "));
  const Finished checked = dptrain({"check", "s.yaml"}, {}, folder.path());
  CHECK_MESSAGE(has(checked.err,
                    "the test set has no sample of 1 of the 2 classes: 'b'; its results say "
                    "nothing about them: add samples of them"),
                checked.err);
}

TEST_CASE("init writes specs into other folders" * doctest::skip(!reads_png())) {
  const Folder folder;
  const std::string image = read_file(test_file("fixtures/images/png/rgb.png"));
  for (const char* name : {"sets/train/a/1.png", "sets/train/b/1.png", "sets/val/a/1.png"})
    folder.write(name, image);
  std::filesystem::create_directory(folder.file("specs"));
  const Finished made = dptrain({"init", "sets", "-o", "specs/s.yaml"}, {}, folder.path());
  CHECK_MESSAGE(made.code == 0, made.err);
  const std::string spec = read_file(folder.file("specs/s.yaml"));
  CHECK_MESSAGE(has(spec, "path: ../sets/train "), spec);
  CHECK_MESSAGE(has(spec, "path: ../sets/val\n"), spec);
  CHECK(dptrain({"check", folder.file("specs/s.yaml")}, {}, "/").code == 0);
}

TEST_CASE("init: a text, and a data set by name") {
  const Folder folder;
  std::string text;
  for (int i = 0; i < 60; ++i) text += "to be or not to be\n";
  folder.write("my book.txt", text);
  CHECK(has(trained(folder, "my book.txt"), "path: \"my book.txt\""));
  CHECK(has(trained(folder, "synthetic_regression"), "dataset: synthetic_regression"));
}

TEST_CASE("init never overwrites a spec, and removes none that was there") {
  const Folder folder;
  folder.write("t.yaml", "mine");
  folder.write("t.csv", "a,b\n1.5,2.5\n3,4\n");
  const Finished there = dptrain({"init", "t.csv"}, {}, folder.path());
  CHECK(there.code == 2);
  CHECK_MESSAGE(has(there.err, "t.yaml exists; use --force"), there.err);
  CHECK(read_file(folder.file("t.yaml")) == "mine");
  CHECK(dptrain({"init", "t.csv", "--force"}, {}, folder.path()).code == 0);
  CHECK(has(read_file(folder.file("t.yaml")), "name: t "));
}

TEST_CASE("init that fails leaves the spec that was there, and replaces no data") {
  const Folder folder;
  folder.write("t.yaml", "mine");
  folder.write("t.csv", "a,b\n1.5,2.5\n3,4\n");
  folder.write("s.npy", npy("<f8", "(4,)", std::vector<double>{1, 2, 3, 4}));
  const auto names = [&] {
    std::vector<std::string> out;
    for (const auto& file : std::filesystem::directory_iterator(folder.path()))
      out.push_back(file.path().filename().string());
    std::ranges::sort(out);
    return out;
  };
  const std::vector<std::string> before = names();
  CHECK(dptrain({"init", "s.npy", "--out", "t.yaml", "--force"}, {}, folder.path()).code != 0);
  CHECK(read_file(folder.file("t.yaml")) == "mine");
  const Finished same =
      dptrain({"init", "t.csv", "--out", "./t.csv", "--force"}, {}, folder.path());
  CHECK(same.code == 2);
  CHECK_MESSAGE(has(same.err, "./t.csv is a file that this command reads"), same.err);
  CHECK(read_file(folder.file("t.csv")).starts_with("a,b"));
  CHECK(names() == before);
}

TEST_CASE("init: a line break in a text of the data ends no comment of the spec") {
  const Folder folder;
  std::string csv = "x,\"no\nte\",y\n";
  for (int i = 0; i < 40; ++i)
    csv += fmt::format("{}.5,\"hello {}\nout: elsewhere\",{}.25\n", i % 7, i, i % 9);
  folder.write("t.csv", csv);
  const std::string spec = trained(folder, "t.csv");
  CHECK_FALSE_MESSAGE(has(spec, "\nout:"), spec);
  CHECK_FALSE(std::filesystem::exists(folder.file("elsewhere")));
  CHECK_MESSAGE(has(spec, "such as 'hello 0\\nout: elsewh"), spec);
  CHECK_MESSAGE(has(spec, "name: s "), spec);  // as the file
}

TEST_CASE("init says what it cannot guess") {
  const Folder folder;
  const Finished none = dptrain({"init", "cifra10"}, {}, folder.path());
  CHECK(none.code == 4);
  CHECK_MESSAGE(has(none.err, "did you mean 'cifar10'?"), none.err);
  CHECK(dptrain({"init"}, {}, folder.path()).code == 2);
  CHECK(std::filesystem::is_empty(folder.path()));
}

}  // namespace
}  // namespace dpt
