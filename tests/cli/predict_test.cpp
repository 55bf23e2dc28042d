// dptrain predict.
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "cli/trained_table.h"
#include "data/readers/image.h"
#include "data/readers/npy.h"
#include "data/tables.h"
#include "paths.h"

namespace dpt {

TEST_CASE("predict says the class of new rows, by the run, its name, or its spec") {
  const Folder folder;
  train(folder);
  folder.write("new.csv", "note,y,x\nfirst,0,5\nsecond,1,-4\n");
  for (const std::string run : {"runs/t/1", "runs/t", "t", "t.yaml", "runs/t/latest"}) {
    const Finished f = predict(folder, {run, "new.csv"});
    CHECK_MESSAGE(f.code == 0, f.err);
    CHECK_MESSAGE(has(f.out, "file     row  class  probability\nnew.csv    0     up "), f.out);
    CHECK(has(f.out, "new.csv    1   down "));
  }
  const Finished csv = predict(folder, {"t", "new.csv", "--csv", "--top", "2"});
  CHECK(has(csv.out, "file,row,class,probability,class 2,probability 2\nnew.csv,0,up,"));
  const Finished json = predict(folder, {"t", "new.csv", "--json"});
  CHECK(has(json.out,
            "{\"file\": \"new.csv\", \"row\": 1, \"classes\": [{\"class\": 0, \"name\": "
            "\"down\", \"probability\": "));
}

TEST_CASE("a run directory alone is enough for predictions") {
  const Folder folder;
  train(folder);
  folder.write("new.csv", "5,0\n");
  const std::string before = predict(folder, {"t", "new.csv"}).out;
  std::filesystem::remove(folder.file("train.csv"));
  CHECK(predict(folder, {"runs/t/1", "new.csv"}).out == before);
  // Runs of versions that wrote no data.json need the data.
  std::filesystem::remove(folder.file("runs/t/1/data.json"));
  const Finished missing = predict(folder, {"runs/t/1", "new.csv"});
  CHECK(missing.code == 4);
  CHECK_MESSAGE(has(missing.err, "train.csv cannot be opened"), missing.err);
  folder.write("train.csv", table(64));
  CHECK(predict(folder, {"runs/t/1", "new.csv"}).out == before);
}

TEST_CASE("new rows of texts are encoded by the run's training part") {
  const Folder folder;
  std::string rows = "id,colour,size,kind\n";
  for (int i = 0; i < 64; ++i)
    rows += std::to_string(i) + (i % 2 == 0 ? ",red," : ",blue,") +
            (i % 5 == 0 ? "" : std::to_string(1000 + i % 7)) + (i % 2 == 0 ? ",up\n" : ",down\n");
  folder.write("train.csv", rows);
  folder.write("t.yaml", R"(
data:
  dataset:
    csv: {path: train.csv, targets: kind, classes: auto, exclude: id, categories: auto,
          missing: mean, standardize: true}
  validation: 0.25
  batch_size: 8
model: [{linear: 2}]
loss: cross_entropy
optimizer: {adam: 0.05}
epochs: 20
cores: 1
)");
  const Finished trained = dptrain({"t.yaml"}, {}, folder.path());
  REQUIRE_MESSAGE(trained.code == 0, trained.err);
  folder.write("new.csv", "size,colour\n1003,red\n,blue\n");
  const Finished f = predict(folder, {"t", "new.csv"});
  CHECK_MESSAGE(has(f.out, "new.csv    0     up "), f.out);
  CHECK_MESSAGE(has(f.out, "new.csv    1   down "), f.out);
  CHECK_FALSE(has(f.err, "note:"));
  // A text that is no category counts as none, which the user is told.
  folder.write("odd.csv", "size,colour\n1003,red\n1003,green\n1003,Red\n");
  const Finished odd = predict(folder, {"t", "odd.csv"});
  CHECK(odd.code == 0);
  CHECK_MESSAGE(has(odd.err,
                    "dptrain: note: odd.csv: row 1: 'green' in column 'colour' is none of the "
                    "categories that the model was trained with, so it counts as none of them\n"),
                odd.err);
  CHECK(has(odd.err, "row 2: 'Red'"));
  folder.write("gaps.csv", "size,colour\n1003,\n1003,red\n,NA\n");
  CHECK(has(predict(folder, {"t", "gaps.csv"}).err,
            "dptrain: note: gaps.csv: 2 fields without a value in columns of categories, so they "
            "count as none of them\n"));
  // The statistics come from the same rows when the spec's data is read again.
  std::filesystem::rename(folder.file("runs/t/1/data.json"), folder.file("kept.json"));
  CHECK(predict(folder, {"t", "new.csv", "--csv"}).out ==
        predict(folder, {"t.yaml", "new.csv", "--csv"}).out);
  const std::string again = predict(folder, {"t", "new.csv", "--csv"}).out;
  std::filesystem::rename(folder.file("kept.json"), folder.file("runs/t/1/data.json"));
  std::filesystem::remove(folder.file("train.csv"));
  CHECK(predict(folder, {"runs/t/1", "new.csv", "--csv"}).out == again);
}

TEST_CASE("predict refuses what does not fit, before it computes anything") {
  const Folder folder;
  train(folder);
  CHECK(has(predict(folder, {"t"}).err, "name a run and at least one file of samples"));
  CHECK(has(predict(folder, {"none", "new.csv"}).err,
            "none is neither a run directory, nor the name of a run in runs/, nor a spec"));
  // Specs of this ending may be installed ones, so their reader says what is wrong.
  CHECK(has(predict(folder, {"none.yaml", "new.csv"}).err, "none.yaml cannot be opened"));
  CHECK(has(predict(folder, {"t", "none.csv"}).err, "none.csv cannot be opened"));
  folder.write("wide.csv", "1,2,3,4,5\n");
  const Finished wide = predict(folder, {"t", "wide.csv"});
  CHECK(wide.code == 4);
  CHECK(has(wide.err, "wide.csv has 5 columns, but the model takes 2"));
}

TEST_CASE("predict writes the format that the ending of the output file names, or refuses it") {
  const Folder folder;
  train(folder);
  folder.write("new.csv", "5,0\n-4,1\n");
  const auto written = [&](const std::string& file, const std::vector<std::string>& more = {}) {
    std::vector<std::string> words = {"t", "new.csv", "-o", file};
    words.insert(words.end(), more.begin(), more.end());
    const Finished f = predict(folder, words);
    CHECK_MESSAGE(f.code == 0, f.err);
    CHECK(f.out.empty());
    return read_file(folder.file(file));
  };
  CHECK(written("out.csv") == predict(folder, {"t", "new.csv", "--csv"}).out);
  CHECK(written("out.JSON", {"--json"}) == predict(folder, {"t", "new.csv", "--json"}).out);
  CHECK(has(written("out.jsonl"), "{\"file\": \"new.csv\", \"row\": 1, \"classes\": ["));
  CHECK(written("out.npy").starts_with("\x93NUMPY"));
  for (const char* file : {"out.txt", "out", "out.npz"}) {
    const Finished f = predict(folder, {"t", "new.csv", "-o", file});
    CHECK(f.code == 2);
    CHECK_MESSAGE(has(f.err, std::string("predict -o ") + file + ": "), f.err);
    CHECK(has(f.err, ".csv, .json and .jsonl for predictions, .npy for the model's outputs"));
    CHECK(!std::filesystem::exists(folder.file(file)));
  }
  const Finished both = predict(folder, {"t", "new.csv", "--json", "-o", "out.csv"});
  CHECK(both.code == 2);
  CHECK_MESSAGE(has(both.err, "--json and -o out.csv ask for different formats"), both.err);
}

TEST_CASE("predict, export, report and data refuse to write over what they read") {
  const Folder folder;
  train(folder);
  folder.write("new.csv", "5,0\n-4,1\n");
  const auto refused = [&](const std::vector<std::string>& words, const std::string& file) {
    const std::string before = read_file(folder.file(file));
    const Finished f = dptrain(words, {}, folder.path());
    CHECK(f.code == 2);
    CHECK_MESSAGE(has(f.err, "is a file that this command reads; write to another file"), f.err);
    CHECK(read_file(folder.file(file)) == before);
  };
  refused({"predict", "t", "new.csv", "-o", "./new.csv"}, "new.csv");
  refused({"predict", "t", "new.csv", "-o", "train.csv"}, "train.csv");
  refused({"predict", "t", "new.csv", "-o", "runs/t/1/data.json"}, "runs/t/1/data.json");
  refused({"export", "t.yaml", "--to", "torch", "-o", "t.yaml"}, "t.yaml");
  refused({"export", "t.yaml", "--to", "torch", "-o", "train.csv"}, "train.csv");
  refused({"report", "t", "-o", "runs/t/1/metrics.jsonl"}, "runs/t/1/metrics.jsonl");
  refused({"report", "t", "--svg", "runs/t/1/metrics.jsonl"}, "runs/t/1/metrics.jsonl");
  refused({"data", "t.yaml", "--sheet", "train.csv"}, "train.csv");
  for (int i = 0; i < 2; ++i) CHECK(dptrain({"report", "t"}, {}, folder.path()).code == 0);
}

TEST_CASE("predict says that --top is for classes") {
  const Folder folder;
  folder.write("t.csv", "a,b\n1,2\n2,3\n3,4\n4,5\n");
  folder.write(
      "t.yaml",
      "data: {dataset: {csv: t.csv}, batch_size: 4}\nmodel: [{linear: 1}]\nloss: mse_loss\n"
      "optimizer: {sgd: 0.01}\nepochs: 1\n");
  REQUIRE(dptrain({"t.yaml"}, {}, folder.path()).code == 0);
  CHECK(has(predict(folder, {"t", "t.csv", "--top", "2"}).err, "note: --top is for classes"));
  CHECK(!has(predict(folder, {"t", "t.csv"}).err, "--top"));
}

TEST_CASE("predict leaves out tables that it cannot read, and counts them") {
  const Folder folder;
  train(folder);
  folder.write("new.csv", "5,0\n");
  folder.write("wide.csv", "1,2,3,4,5\n");
  const Finished f = predict(folder, {"t", "wide.csv", "new.csv", "none.csv", "--csv"});
  CHECK(f.code == 4);
  CHECK_MESSAGE(f.out.starts_with("file,row,class,probability\nnew.csv,0,up,"), f.out);
  CHECK(has(f.err, "dptrain: wide.csv has 5 columns, but the model takes 2"));
  CHECK(has(f.err, "dptrain: none.csv cannot be opened"));
  CHECK_MESSAGE(
      f.err.ends_with("dptrain: 2 of 3 files could not be read and have no predictions\n"), f.err);
}

TEST_CASE("predict leaves out images that it cannot read" * doctest::skip(!reads_png())) {
  const Folder folder;
  const std::string image = read_file(test_file("fixtures/images/png/rgb.png"));
  for (const char* name : {"set/a/1.png", "set/b/1.png", "new/1.png", "new/3.png"})
    folder.write(name, image);
  folder.write("new/2.png", image.substr(0, image.size() / 2));
  folder.write("new/4.png", "no image");
  folder.write("t.yaml",
               "data: {dataset: {image_folder: {path: set, crop: 4}}, transforms: [to_tensor], "
               "batch_size: 2}\nmodel: [flatten, {linear: 2}]\nloss: cross_entropy\n"
               "optimizer: {sgd: 0.1}\nepochs: 1\ncores: 1\n");
  const Finished trained = dptrain({"t.yaml"}, {}, folder.path());
  REQUIRE_MESSAGE(trained.code == 0, trained.err);
  const Finished f = predict(folder, {"t", "new"});
  CHECK(f.code == 4);
  for (const char* name : {"new/1.png", "new/3.png"}) CHECK_MESSAGE(has(f.out, name), f.out);
  for (const char* name : {"new/2.png", "new/4.png"}) {
    CHECK_MESSAGE(!has(f.out, name), f.out);
    CHECK_MESSAGE(has(f.err, std::string("dptrain: ") + name + " "), f.err);
  }
  CHECK_MESSAGE(
      f.err.ends_with("dptrain: 2 of 4 files could not be read and have no predictions\n"), f.err);
  // The rows of an array are those of the files.
  CHECK(predict(folder, {"t", "new", "-o", "out.npy"}).code == 4);
  const Table outputs = read_npy(folder.file("out.npy"));
  REQUIRE(outputs.desc.shape == Shape{4, 2});
  const auto values = values_of<float>(outputs);
  for (size_t i = 0; i < values.size(); ++i)
    CHECK(std::isnan(values[i]) == (i / 2 == 1 || i / 2 == 3));
  // A file that is named keeps its row, whatever its type; one of a folder is left out.
  folder.write("new/0.gif", "GIF89a");
  const Finished named =
      predict(folder, {"t", "new/0.gif", "new/1.png", "new/3.png", "-o", "named.npy"});
  CHECK(named.code == 4);
  CHECK_MESSAGE(has(named.err, "1 of 3 files could not be read and has no prediction"), named.err);
  const Table rows = read_npy(folder.file("named.npy"));
  REQUIRE(rows.desc.shape == Shape{3, 2});
  CHECK(std::isnan(values_of<float>(rows)[1]));
  CHECK_FALSE(std::isnan(values_of<float>(rows)[2]));
  const Finished left_out = predict(folder, {"t", "new"});
  CHECK_MESSAGE(has(left_out.err, "note: new/0.gif is left out"), left_out.err);
  CHECK(has(left_out.err, "2 of 4 files could not be read"));
  const Finished none = predict(folder, {"t", "new/4.png"});
  CHECK(none.code == 4);
  CHECK(none.out.empty());
  CHECK(has(none.err, "1 of 1 file could not be read and has no predictions\n"));
}

TEST_CASE("training, eval and predict warn once of 16-bit gray values that become white" *
          doctest::skip(!reads_png())) {
  const Folder folder;
  const std::string image = read_file(test_file("fixtures/png_kinds/png/grey16-edges.png"));
  for (const char* name : {"set/a/1.png", "set/a/2.png", "set/b/1.png", "set/b/2.png"})
    folder.write(name, image);
  folder.write("t.yaml",
               "data: {dataset: {image_folder: {path: set, crop: 4}}, transforms: "
               "[to_tensor], batch_size: 2}\nmodel: [flatten, {linear: 2}]\nloss: cross_entropy\n"
               "optimizer: {sgd: 0.1}\nepochs: 1\nparallel: ddp\ncores: 1\n");
  const auto warned = [&](const std::vector<std::string>& words, const std::string& where) {
    const Finished f = dptrain(words, {}, folder.path());
    CHECK_MESSAGE(f.code == 0, f.err);
    const size_t at = f.err.find(where);
    CHECK_MESSAGE(at != f.err.npos, f.err);
    CHECK_MESSAGE(f.err.find(where, at + 1) == f.err.npos, f.err);
  };
  const std::string text = "4 of 4 images have 16-bit gray values (";
  for (const char* command : {"check", "data"}) warned({command, "t.yaml"}, text);
  warned({"t.yaml"}, text);
  warned({"eval", "t", "--set", "train"}, text);
  warned({"predict", "t", "set"}, "note: " + text + "set/a/1.png), of which all above 255 become");
}

}  // namespace dpt
