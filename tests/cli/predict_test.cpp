// dptrain predict.
#include <filesystem>
#include <string>

#include "cli/trained_table.h"

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
  CHECK(has(predict(folder, {"t", "none.csv"}).err, "none.csv cannot be opened"));
  CHECK(has(predict(folder, {"none", "t.yaml"}).err, "none"));
  folder.write("wide.csv", "1,2,3,4,5\n");
  const Finished wide = predict(folder, {"t", "wide.csv"});
  CHECK(wide.code == 4);
  CHECK(has(wide.err, "wide.csv has 5 columns, but the model takes 2"));
}

}  // namespace dpt
