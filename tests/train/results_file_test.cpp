#include "train/results_file.h"

#include <filesystem>

#include <doctest/doctest.h>

#include "data/folder.h"
#include "train/run_spec.h"
#include "train/tensorboard_log.h"

namespace dpt {
namespace {

namespace fs = std::filesystem;

// The lines of a run that go on where a test adds them to metrics.jsonl.
class Lines {
 public:
  explicit Lines(const Folder& folder) : folder_(folder), results_(folder.path()) {}
  void add(const std::string& line) {
    text_ += line + "\n";
    folder_.write("metrics.jsonl", text_);
    results_.add(line);
  }

 private:
  const Folder& folder_;
  ResultsFile results_;
  std::string text_;
};

TEST_CASE("results.csv has a line per epoch, and columns that appear later") {
  const Folder folder;
  Lines run(folder);
  run.add(R"({"step": 1, "epoch": 1, "loss": 9})");
  CHECK(!fs::exists(folder.file("results.csv")));
  run.add(R"({"epoch": 1, "loss": 0.5, "time": 1795452581.334, "run": "a"})");
  CHECK(read_file(folder.file("results.csv")) == "epoch,loss,time\n1,0.5,1795452581.334\n");
  run.add(R"({"epoch": 2, "loss": null, "time": 2})");
  run.add(R"({"epoch": 3, "loss": 0.25, "test_loss": 0.75, "time": 3})");
  run.add(R"({"final": true, "epoch": 3, "step": 12, "test_loss": 0.7})");
  CHECK(read_file(folder.file("results.csv")) ==
        "epoch,loss,time,test.loss\n1,0.5,1795452581.334,\n2,,2,\n3,0.25,3,0.75\n");
}

TEST_CASE("results.csv that was removed is made again, and a link is not followed") {
  const Folder folder;
  Lines run(folder);
  run.add(R"({"epoch": 1, "loss": 1})");
  fs::remove(folder.file("results.csv"));
  run.add(R"({"epoch": 2, "loss": 2})");
  CHECK(read_file(folder.file("results.csv")) == "epoch,loss\n1,1\n2,2\n");
  const std::string other = folder.write("other", "kept");
  fs::remove(folder.file("results.csv"));
  fs::create_symlink(other, folder.file("results.csv"));
  run.add(R"({"epoch": 3, "loss": 3})");
  CHECK(read_file(other) == "kept");
  CHECK(read_file(folder.file("results.csv")) == "epoch,loss\n1,1\n2,2\n3,3\n");
}

const std::string kSpec = R"(
data:
  dataset: {synthetic_images: {samples: 56, test_samples: 11, shape: [1, 4, 4]}}
  transforms: [to_tensor]
  batch_size: 12
model: [flatten, {linear: 10}]
loss: cross_entropy
optimizer: {sgd: 0.05}
epochs: 4
evaluate: {every: 2}
save: {every_epochs: 1}
cores: 1
log: {every: 1, tensorboard: true}
)";

std::vector<std::string> events(const Folder& folder) {
  std::vector<std::string> out;
  for (const auto& entry : fs::directory_iterator(folder.file("run")))
    if (has(entry.path().filename().string(), "events.out.tfevents."))
      out.push_back(entry.path().string());
  std::sort(out.begin(), out.end());
  return out;
}

int count(const std::string& text, const std::string& part) {
  int n = 0;
  for (size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++n;
  return n;
}

TEST_CASE("results.csv and events continue with a resumed run, without what came after") {
  const Folder folder;
  REQUIRE(run_spec_in({folder.path()}, kSpec).code == 0);
  const std::string whole = read_file(folder.file("run/results.csv"));
  CHECK(count(whole, "\n") == 5);
  CHECK(whole.starts_with(
      "epoch,loss,seconds,steps,lr,samples_per_second,data_wait,time,test.loss,"));
  REQUIRE(events(folder).size() == 1);
  const std::string first = read_file(events(folder)[0]);
  CHECK(count(first, "step.loss") == 20);
  CHECK(count(first, "\n\4loss") == 5);  // and the key of the spec
  CHECK(count(first, "test.accuracy") == 2);
  CHECK(has(first, "    epochs: 4\n"));

  // From the end of the second epoch: step 10.
  const RunIn again{.folder = folder.path(), .resume = folder.file("run/checkpoints/step-000010")};
  REQUIRE(run_spec_in(again, kSpec).code == 0);
  const std::string csv = read_file(folder.file("run/results.csv"));
  CHECK(count(csv, "\n") == 5);
  const auto losses = [](const std::string& text) {
    std::string out;
    for (size_t at = 0; at < text.size(); at = text.find('\n', at) + 1)
      out += text.substr(at, text.find(',', text.find(',', at) + 1) - at) + "\n";
    return out;
  };
  CHECK(losses(csv) == losses(whole));
  REQUIRE(events(folder).size() == 2);
  CHECK(read_file(events(folder)[0]) == first);
  // Points from step 10 on are dropped, and that step's are written again.
  const std::string second = read_file(events(folder)[1]);
  CHECK(has(second, std::string("\x10\x0a\x3a\x02\x08\x01", 6)));  // step 10, session_log: START
  CHECK(count(second, "step.loss") == 11);
  CHECK(count(second, "\n\4loss") == 4);

  // A new run in the directory does not continue the curves.
  REQUIRE(run_spec_in({folder.path()}, kSpec, {"log.tensorboard=false"}).code == 0);
  CHECK(events(folder).empty());
  // One that is asked for events only now writes the earlier points, too.
  REQUIRE(run_spec_in(again, kSpec).code == 0);
  REQUIRE(events(folder).size() == 1);
  const std::string all = read_file(events(folder)[0]);
  CHECK(count(all, "step.loss") == 20);
  CHECK(count(all, "\n\4loss") == 5);
  CHECK(!has(all, std::string("\x3a\x02\x08\x01", 4)));
}

}  // namespace
}  // namespace dpt
