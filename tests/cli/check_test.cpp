// dptrain check: all errors of a spec's data and weights at once.
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "cli/process.h"
#include "data/readers/image.h"
#include "formats/safetensors.h"
#include "paths.h"

namespace dpt {
namespace {

std::string spec(const std::string& dataset, const std::string& more = "") {
  return "data: {dataset: " + dataset +
         ", batch_size: 2}\n"
         "model: [flatten, {linear: {out_features: 1, bias: false}}]\n"
         "loss: mse_loss\noptimizer: {sgd: 0.1}\nepochs: 1\n" +
         more;
}

TEST_CASE("check names every file of the data and the weights that is missing") {
  const Folder folder;
  folder.write("t.yaml", spec("{csv: {path: a.csv, test_path: b.csv}}",
                              "evaluate: true\ninitial_weights: c.safetensors\n"));
  const Finished f = dptrain({"check", folder.file("t.yaml")});
  CHECK(f.code == 4);
  CHECK(f.out.empty());
  for (const char* file : {"a.csv", "b.csv", "c.safetensors"}) {
    const size_t at = f.err.find(folder.file(file));
    CHECK_MESSAGE(at != f.err.npos, f.err);
    CHECK_MESSAGE(f.err.find(folder.file(file), at + 1) == f.err.npos, f.err);  // once
  }
}

TEST_CASE("a data set that is missing does not hide that the model does not fit it") {
  const Folder folder;
  folder.write("t.yaml",
               "data: {dataset: {cifar10: {path: nowhere}}, transforms: [to_tensor], batch_size: "
               "2}\nmodel: [flatten, {linear: 9}]\nloss: cross_entropy\noptimizer: {sgd: 0.1}\n"
               "epochs: 1\n");
  const Finished f = dptrain({"check", folder.file("t.yaml")});
  CHECK(f.code == 4);
  CHECK_MESSAGE(has(f.err, "nowhere"), f.err);
  CHECK_MESSAGE(has(f.err, "9 "), f.err);
  CHECK_MESSAGE(has(f.err, "10 classes"), f.err);
}

TEST_CASE("check finds numbers that are not finite in data and weights") {
  const Folder folder;
  folder.write("x.npy", npy("<f4", "(4, 2)", std::vector<float>{1, 2, 3, 4, NAN, 6, 7, 8}));
  folder.write("y.npy", npy("<f4", "(4, 1)", std::vector<float>{1, 2, 3, INFINITY}));
  const std::vector<float> weight = {1, NAN};
  write_safetensors(
      folder.file("w.safetensors"),
      std::vector<NamedTensor>{
          {"1.weight", {DType::f32, {1, 2}}, reinterpret_cast<const std::byte*>(weight.data())}});
  folder.write("t.yaml",
               spec("{npy: {inputs: x.npy, targets: y.npy}}", "initial_weights: w.safetensors\n"));
  const Finished f = dptrain({"check", folder.file("t.yaml")});
  CHECK(f.code == 4);
  for (const char* text :
       {"sample 2 of the training set (counted from 0) has an input that is not",
        "sample 3 of the training set (counted from 0) has a target that is not",
        "1 of the 2 values of '1.weight' are not finite", "while reading `initial_weights` ("})
    CHECK_MESSAGE(has(f.err, text), f.err);
}

// 6 samples of 4 time steps with labels of at most 3 letters.
TEST_CASE("check finds label sequences that are too long for ctc_loss") {
  const Folder folder;
  folder.write("x.npy", npy("<f4", "(6, 4, 2)", std::vector<float>(48, 0.5F)));
  const auto labels = [&](const char* file, int64_t of_sample_2, int64_t of_sample_4) {
    std::vector<int64_t> all(18, -1);
    for (size_t i = 0; i < all.size(); i += 3) all[i] = 1, all[i + 1] = 2;
    for (size_t i = 0; i < 3; ++i) all[6 + i] = of_sample_2, all[12 + i] = of_sample_4;
    folder.write(file, npy("<i8", "(6, 3)", all));
  };
  labels("good.npy", -1, -1);
  labels("bad.npy", 2, 1);
  folder.write("t.yaml", R"(
data:
  dataset: {npy: {inputs: x.npy, targets: bad.npy, test_inputs: x.npy, test_targets: good.npy}}
  batch_size: 2
model: [{linear: 3}]
loss: {ctc_loss: {ignore_index: -1}}
optimizer: {sgd: 0.1}
epochs: 1
evaluate: true
)");
  const std::string path = folder.file("t.yaml");
  const std::string problem =
      "set (counted from 0) has 3 labels and 2 repetitions, which need a blank between equal "
      "labels, so ctc_loss needs 5 time steps, but the model's output has T = 4: ";
  for (const char* command : {"check", "train"}) {
    const Finished f = dptrain({command, path, "out=" + folder.file("run")});
    CHECK(f.code == 4);
    CHECK_MESSAGE(has(f.err, "dptrain: sample 2 of the training " + problem), f.err);
    CHECK(has(f.err, ". 1 other sample of this set does not fit either\n"));
  }
  CHECK(dptrain({"check", path, "loss.ctc_loss.zero_infinity=true"}).code == 0);
  const Finished test =
      dptrain({"check", path, "data.dataset.npy.targets=" + folder.file("good.npy"),
               "data.dataset.npy.test_targets=" + folder.file("bad.npy")});
  CHECK(test.code == 4);
  CHECK_MESSAGE(has(test.err, "dptrain: sample 2 of the test " + problem), test.err);
}

TEST_CASE("check explains integer targets of 1 and -1") {
  const Folder folder;
  folder.write("x.npy", npy("<f4", "(4, 2)", std::vector<float>(8, 0.5F)));
  folder.write("y.npy", npy("<i8", "(4, 1)", std::vector<int64_t>{1, -1, 1, 1}));
  folder.write("t.yaml", spec("{npy: {inputs: x.npy, targets: y.npy}}"));
  const Finished f = dptrain({"check", folder.file("t.yaml"), "loss=soft_margin_loss"});
  CHECK(f.code == 4);
  CHECK_MESSAGE(has(f.err, "sample 1 (counted from 0) at [0] is -1"), f.err);
  CHECK_MESSAGE(has(f.err, "numbers: save them as float32 (numpy: y.astype(\"float32\"))"), f.err);
  folder.write("y.npy", npy("<i8", "(4, 1)", std::vector<int64_t>{1, -1, 3, 1}));
  const Finished other = dptrain({"check", folder.file("t.yaml"), "loss=cross_entropy"});
  CHECK_MESSAGE(has(other.err,
                    "; if it marks targets to leave out, set `ignore_index: -1` of the "
                    "loss"),
                other.err);
}

TEST_CASE("check warns about class numbers of arrays without a sample") {
  const Folder folder;
  folder.write("x.npy", npy("<f4", "(4, 2)", std::vector<float>(8, 0.5F)));
  const auto checked = [&](const std::vector<int64_t>& labels, const std::string& classes) {
    folder.write("y.npy", npy("<i8", "(4,)", labels));
    folder.write("t.yaml",
                 "data: {dataset: {npy: {inputs: x.npy, targets: y.npy}}, batch_size: "
                 "2}\nmodel: [{linear: " +
                     classes + "}]\nloss: cross_entropy\noptimizer: adam\nepochs: 1\n");
    return dptrain({"check", folder.file("t.yaml")}).err;
  };
  CHECK(has(checked({0, 7, 7, 0}, "8"),
            "the training set has no sample of 6 of the 8 classes 0..7, such as class 1; number "
            "classes from 0 without gaps: numpy.unique(y, return_inverse=True)[1]"));
  CHECK(has(checked({1, 2, 3, 3}, "4"), "no sample of 1 of the 4 classes 0..3, such as class 0;"));
  CHECK(checked({0, 1, 1, 0}, "2").empty());
}

TEST_CASE("check and training name columns and targets of a size that nets learn badly from") {
  const Folder folder;
  std::string text = "area,rooms,price\n";
  for (int i = 0; i < 20; ++i)
    text += fmt::format("{},{},{}\n", 1000 + i * 70 % 900, i % 4, 200'000 + i * 7000 % 90'000);
  folder.write("h.csv", text);
  folder.write("t.yaml", R"(data: {dataset: {csv: h.csv}, batch_size: 5}
model: [linear: 1]
loss: mse_loss
optimizer: {sgd: 0.1}
epochs: 1
cores: 1
)");
  const std::string area = "the column 'area' has a mean of 1350 ",
                    scale = "write `standardize: true`",
                    price = "the targets have a mean of 235000 ";
  const std::string remedy = "write `target_transforms: [standardize: {mean: ";
  const auto run = [&](std::vector<std::string> words) {
    words.insert(words.begin() + 1, "t.yaml");
    return dptrain(words, {}, folder.path()).err;
  };
  const std::string diverged = run({"train", "epochs=20"});
  CHECK_MESSAGE(has(diverged, "No weights are saved; "), diverged);
  CHECK(diverged.find(area) < diverged.rfind(area));  // also in the message
  for (const std::string& text_of : {run({"check"}), diverged, run({"lr-find", "--from", "1"})}) {
    CHECK_MESSAGE(has(text_of, area), text_of);
    CHECK(has(text_of, scale));
    CHECK(has(text_of, price));
    CHECK(has(text_of, remedy));
  }
  const std::string scaled = run({"check", "data.dataset={csv: {path: h.csv, standardize: true}}",
                                  "data.target_transforms=[standardize: {mean: 2e5, std: 5e4}]"});
  CHECK_MESSAGE(!has(scaled, "deviation"), scaled);
  CHECK(!has(run({"check", "model=[batch_norm1d, linear: 1]"}), scale));
  folder.write("h.csv", "a,b,y\n0.001,20,1\n0.002,-50,0\n0.001,30,1\n");
  CHECK(has(run({"check"}), "and 'b' of "));
  // Categories are 0 and 1.
  folder.write("h.csv", "a,b,y\nx,20,1\ny,-50,0\nx,30,1\n");
  CHECK(!has(run({"check", "data.dataset={csv: {path: h.csv, categories: auto}}"}), "deviation"));
}

TEST_CASE("check warns about images with their channels last") {
  const Folder folder;
  folder.write("x.npy", npy("|u1", "(4, 8, 9, 3)", std::vector<uint8_t>(864, 7)));
  folder.write("y.npy", npy("<i8", "(4,)", std::vector<int64_t>{0, 1, 0, 1}));
  const auto checked = [&](const std::string& transforms, const std::string& first) {
    folder.write("t.yaml", "data: {dataset: {npy: {inputs: x.npy, targets: y.npy}}, transforms: [" +
                               transforms + "to_tensor], batch_size: 2}\nmodel: [" + first +
                               "flatten, {linear: 2}]\nloss: cross_entropy\noptimizer: adam\n"
                               "epochs: 1\n");
    const Finished f = dptrain({"check", folder.file("t.yaml")});
    CHECK_MESSAGE(f.code == 0, f.err);
    return f.err;
  };
  CHECK_MESSAGE(has(checked("", "{conv2d: {out_channels: 2, kernel_size: 1}}, "),
                    "the samples are [8, 9, 3], as images with their channels last (Keras), but "
                    "conv2d takes [channels, height, width]: save the array as x.transpose(0, 3, "
                    "1, 2)"),
                checked("", ""));
  CHECK(has(checked("random_horizontal_flip, ", ""), "but random_horizontal_flip takes"));
  CHECK_FALSE(has(checked("", ""), "channels last"));
  CHECK_FALSE(
      has(checked("", "{permute: [3, 1, 2]}, {conv2d: {out_channels: 2, kernel_size: 1}}, "),
          "channels last"));
}

TEST_CASE("check decodes images" * doctest::skip(!reads_png())) {
  const Folder folder;
  const std::string image = read_file(test_file("fixtures/images/png/rgb.png"));
  folder.write("set/a/1.png", image);
  folder.write("set/a/2.png", image.substr(0, image.size() / 2));
  folder.write("set/b/3.png", image);
  folder.write("set/b/4.png", "no image");
  folder.write("t.yaml",
               "data: {dataset: {image_folder: {path: set, crop: 4}}, transforms: [to_tensor], "
               "batch_size: 2}\nmodel: [flatten, {linear: 2}]\nloss: cross_entropy\n"
               "optimizer: {sgd: 0.1}\nepochs: 1\n");
  const Finished f = dptrain({"check", folder.file("t.yaml")});
  CHECK(f.code == 4);
  CHECK_MESSAGE(has(f.err, folder.file("set/a/2.png")), f.err);
  CHECK_MESSAGE(has(f.err, folder.file("set/b/4.png")), f.err);
  CHECK(has(f.err, "training set: decoded 2 of 4 images; 2 cannot be read\n"));
  // With on_error: skip they are left out. Files of other types and turned images are counted.
  folder.write("set/b/5.gif", "GIF89a");
  const std::string exif =
      "eXIf" + std::string("MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0", 26);
  constexpr size_t kHead = 33;  // the signature and IHDR
  folder.write("set/b/6.png", image.substr(0, kHead) + big_endian(exif.size() - 4, 4) + exif +
                                  big_endian(crc32(0, reinterpret_cast<const Bytef*>(exif.data()),
                                                   static_cast<uInt>(exif.size())),
                                             4) +
                                  image.substr(kHead));
  const Finished skipped = dptrain({"check", folder.file("t.yaml"), "data.dataset.on_error=skip"});
  CHECK_MESSAGE(skipped.code == 0, skipped.err);
  for (const std::string& text :
       {"warning: left out: " + folder.file("set/a/2.png") + " cannot be read as PNG",
        "warning: left out: " + folder.file("set/b/4.png") + " is not a JPEG",
        "warning: " + folder.file("set") + ": 1 file is left out, as its type is not read: 1 .gif",
        std::string("decoded 3 of 3 images"),
        "warning: training set: 1 of the images that were read is to be turned, as its EXIF data "
        "says (" +
            folder.file("set/b/6.png")})
    CHECK_MESSAGE(has(skipped.err, text), text, "\n", skipped.err);
  std::filesystem::remove(folder.file("set/a/2.png"));
  std::filesystem::remove(folder.file("set/b/4.png"));
  const Finished good = dptrain({"check", folder.file("t.yaml")});
  CHECK_MESSAGE(good.code == 0, good.err);
  CHECK(good.out == folder.file("t.yaml") + ": ok\n");
}

TEST_CASE("check finds patterns that match nothing and says what partial weights take") {
  const Folder folder;
  const std::string keys =
      "data: {dataset: {random: {samples: 8, in_features: 4, out_features: 2}}, batch_size: 4}\n"
      "loss: mse_loss\noptimizer: {sgd: 0.1}\n";
  const std::string wrong =
      folder.write("wrong.yaml", keys +
                                     "model: [{linear: 3}, {linear: 2, name: fc}]\nfreeze: fd\n"
                                     "lr_scale: linear\n");
  const Finished f = dptrain({"check", wrong});
  CHECK(f.code == 2);
  CHECK_MESSAGE(has(f.err, ":6:11: error: lr_scale needs the batch size"), f.err);
  const Finished scaled = dptrain({"check", wrong, "lr_scale={linear: 4}"});
  CHECK(scaled.code == 2);
  CHECK_MESSAGE(has(scaled.err, ":5:9: error: no parameter matches 'fd'; did you mean 'fc'?"),
                scaled.err);

  const std::string small =
      folder.write("small.yaml", keys + "model: [{linear: 3}]\nout: run\nsave: false\n");
  const std::string run = folder.file("run");
  REQUIRE(dptrain({small, "out=" + run, "data.dataset.out_features=3"}).code == 0);
  const std::string partial = folder.write(
      "partial.yaml", keys +
                          "model: [{linear: 3}, {linear: 2, name: fc}]\n"
                          "initial_weights: {file: run/model.safetensors, partial: true}\n");
  const Finished good = dptrain({"check", partial});
  CHECK(good.code == 0);
  CHECK_MESSAGE(has(good.err, "initial weights: 2 of 4 tensors from " + run +
                                  "/model.safetensors; not in the file: 'fc.weight', 'fc.bias'\n"),
                good.err);
  const Finished strict = dptrain({"check", partial, "initial_weights.partial=false"});
  CHECK(strict.code == 4);
  CHECK_MESSAGE(has(strict.err, "to take only what fits, write `initial_weights: {file: ..., "),
                strict.err);
}

}  // namespace
}  // namespace dpt
