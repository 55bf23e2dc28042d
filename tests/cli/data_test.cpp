// dptrain data.
#include <filesystem>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "cli/data_text.h"
#include "cli/process.h"
#include "data/datasets/loading.h"
#include "data/peak_growth.h"
#include "data/readers/image.h"
#include "skip.h"

namespace dpt {
namespace {

std::string spec(const std::string& data) {
  return "data: {" + data +
         ", batch_size: 4}\nmodel: [flatten, {linear: 2}]\nloss: cross_entropy\n"
         "optimizer: {sgd: 0.1}\nepochs: 1\n";
}

const std::string kTable =
    "age,sex,alive\n20,male,no\n,female,yes\n40,female,yes\n60,male,no\n35,male,no\n28,male,no\n";

TEST_CASE("data prints samples, classes, ranges and missing values of each part") {
  const Folder folder;
  folder.write("t.csv", kTable);
  folder.write(
      "t.yaml",
      spec("dataset: {csv: {path: t.csv, classes: auto, categories: auto, missing: mean}}, "
           "validation: 0.34"));
  const Finished f =
      dptrain({"data", "t.yaml"}, {{"COLUMNS", "80"}, {"LC_ALL", "C"}}, folder.path());
  REQUIRE_MESSAGE(f.code == 0, f.err);
  CHECK_MESSAGE(has(f.out, "training set: 4 samples, [3] f32 before transforms\n"), f.out);
  CHECK_MESSAGE(has(f.out, "\nvalidation set: 2 samples, [3] f32 before transforms\n"), f.out);
  CHECK_MESSAGE(has(f.out, "\nclass  samples "), f.out);
  CHECK_MESSAGE(has(f.out, " %  ####"), f.out);
  CHECK_MESSAGE(has(f.out, "\ninput       min  max "), f.out);
  CHECK_MESSAGE(has(f.out, "\nsex=female "), f.out);
  CHECK_MESSAGE(has(f.out, "\nmissing values in the file: age 1\n"), f.out);
  CHECK_MESSAGE(has(f.out, "\nafter transforms: [3] f32, from 0 to "), f.out);
}

TEST_CASE("classes far above the number of samples are counted, not listed") {
  const Folder folder;
  folder.write("x", npy<float>("<f4", "(2, 1)", {0, 1}));
  folder.write("y", npy<int32_t>("<i4", "(2,)", {3, 300'000'000}));
  const Dataset d = load("npy", "{inputs: x, targets: y}", Split::train, folder.path());
  std::string text, json;
  const size_t grown = peak_growth([&] {
    const DataSummary s = summarize(d, {}, 10);
    text = data_text("training", d, s, {.columns = 80, .ascii = true});
    json = data_json("training", d, s).dump();
  });
  CHECK(grown < kHostileBytes);
  CHECK_MESSAGE(has(text, "and 299999999 more classes; the rarest is 0 with 0 samples"), text);
  CHECK_MESSAGE(has(json, R"({"name": "300000000", "samples": 1})"), json);
  CHECK_FALSE(has(json, R"("name": "4")"));
}

TEST_CASE("data says that the sampler is weighted, and how many samples an epoch draws") {
  const Folder folder;
  folder.write("t.csv", kTable);
  folder.write("t.yaml", spec("dataset: {csv: {path: t.csv, classes: auto, inputs: age, missing: "
                              "mean}}, validation: 0.34"));
  const std::string line =
      "\nsampler weighted: an epoch draws 4 samples with replacement, all classes equally\n"
      "  often\n\nvalidation set: ";
  const auto text = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words = {"data", "t.yaml"};
    words.insert(words.end(), more.begin(), more.end());
    const Finished f = dptrain(words, {{"COLUMNS", "80"}, {"LC_ALL", "C"}}, folder.path());
    REQUIRE_MESSAGE(f.code == 0, f.err);
    return f.out;
  };
  CHECK_FALSE(has(text({}), "sampler"));
  const std::string weighted = text({"data.sampler=weighted"});
  CHECK_MESSAGE(has(weighted, line), weighted);
}

TEST_CASE("data writes a sheet of images, and only of images") {
  if (skip_without(reads_png(), "libpng")) return;
  const Folder folder;
  folder.write("t.yaml",
               spec("dataset: {synthetic_images: {samples: 30, shape: [3, 8, 8], classes: 2}}, "
                    "transforms: [to_tensor]"));
  const Finished f =
      dptrain({"data", "t.yaml", "--sheet", "s.png", "--samples", "9"}, {}, folder.path());
  REQUIRE_MESSAGE(f.code == 0, f.err);
  CHECK_MESSAGE(has(f.out, "s.png: 216 x 252 pixels, 9 training samples after transforms\n"),
                f.out);
  const std::string bytes = read_file(folder.file("s.png"));
  CHECK(decode_image(std::as_bytes(std::span(bytes)), "s.png").width == 216);
  folder.write("t.csv", kTable);
  folder.write("u.yaml", spec("dataset: {csv: {path: t.csv, classes: auto, inputs: age, missing: "
                              "drop}}"));
  const Finished none = dptrain({"data", "u.yaml", "--sheet", "u.png"}, {}, folder.path());
  CHECK(none.code == 2);
  CHECK_MESSAGE(has(none.err, "a sheet shows images"), none.err);
  CHECK_FALSE(std::filesystem::exists(folder.file("u.png")));
}

TEST_CASE("data names the file, row and column of what cannot be read") {
  const Folder folder;
  folder.write("t.csv", kTable);
  folder.write("t.yaml", spec("dataset: {csv: {path: t.csv, classes: auto, categories: sex}}"));
  const Finished f = dptrain({"data", "t.yaml"}, {}, folder.path());
  CHECK(f.code == 4);
  CHECK_MESSAGE(has(f.err, "t.csv:3:1: column 'age' is empty on this line; enter a value, fill"),
                f.err);
}

size_t longest_line(const std::string& text) {
  size_t out = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    out = std::max(out, end - at);
    at = end + 1;
  }
  return out;
}

TEST_CASE("the text of a data set fits into the columns of the terminal") {
  Dataset d;
  d.inputs = {.desc = {DType::f32, {2000, 60}}};
  d.targets = {.desc = {DType::i32, {2000}}};
  d.classes = 50;
  d.class_names.assign(50, "a class with a long name");
  d.description = "csv: 2000 x [60] f32, 50 classes, from a file";
  DataSummary s;
  s.samples = s.read = 2000;
  s.classes = ClassCounts(50);
  for (int64_t c = 0; c < 50; ++c)
    for (int64_t i = 0; i < 1000 * (c + 1); ++i) s.classes.add(c);
  for (int i = 0; i < 60; ++i) {
    s.inputs.push_back({.name = "a column with a long name", .range = {}});
    for (const double x : {-1.2345e-20, 1.2345e20}) s.inputs.back().range.add(x);
  }
  for (const size_t columns : {40U, 60U, 80U, 200U}) {
    CAPTURE(columns);
    const std::string text = data_text("training", d, s, {.columns = columns, .ascii = true});
    CHECK_MESSAGE(longest_line(text) <= columns, text);
    CHECK(has(text, "class (m"));
    CHECK(has(text, "and 30 more classes; the rarest is"));
    CHECK(has(text, "and 20 more\n"));
    CHECK(has(text, "####") == (columns >= 40));
  }
  CHECK(has(data_text("training", d, s, {.columns = 200}), "\u2588\u2588"));
}

}  // namespace
}  // namespace dpt
