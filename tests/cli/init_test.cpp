// dptrain init: each kind of data gives a spec that passes the check and trains.
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

TEST_CASE("init: arrays of images, of tokens, and with a test set") {
  const Folder folder;
  folder.write("i/x.npy", npy("|u1", "(6, 3, 16, 16)", std::vector<uint8_t>(6 * 768, 7)));
  folder.write("i/y.npy", npy("<i8", "(6,)", std::vector<int64_t>{0, 1, 2, 0, 1, 2}));
  CHECK(has(trained(folder, "i"), "- conv2d: {out_channels: 16"));
  folder.write("v/x.npy", npy("<f4", "(6, 2, 4, 8, 9)", std::vector<float>(6 * 576, 0.5F)));
  folder.write("v/y.npy", npy("<i8", "(6,)", std::vector<int64_t>{0, 1, 2, 0, 1, 2}));
  CHECK(has(trained(folder, "v"), "- conv3d: {out_channels: 16"));
  folder.write("t/x.npy", npy("<i4", "(6, 3)", std::vector<int32_t>(18, 4)));
  folder.write("t/y.npy", npy("<f4", "(6, 2)", std::vector<float>(12, 1.5F)));
  folder.write("t/x_test.npy", npy("<i4", "(1, 3)", std::vector<int32_t>(3, 4)));
  folder.write("t/y_test.npy", npy("<f4", "(1, 2)", std::vector<float>(2, 1.5F)));
  const std::string tokens = trained(folder, "t");
  CHECK_MESSAGE(has(tokens, "embedding: {num_embeddings: 5,"), tokens);
  CHECK_MESSAGE(has(tokens, "evaluate: true"), tokens);
}

TEST_CASE("init: images in folders" * doctest::skip(!reads_png())) {
  const std::string image = read_file(test_file("fixtures/images/png/rgb.png"));
  const Folder folder;
  for (const char* name : {"pics/a/1.png", "pics/a/2.png", "pics/b c/1.png"})
    folder.write(name, image);
  CHECK(has(trained(folder, "pics"), "path: pics "));
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
