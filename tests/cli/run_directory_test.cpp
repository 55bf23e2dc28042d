// Commands that are given runs/NAME take its newest run; those that write take a new number.
#include <filesystem>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "cli/process.h"

namespace dpt {
namespace {

namespace fs = std::filesystem;

const std::string kSpec = R"(
name: mine
data:
  dataset: {synthetic_images: {samples: 24, test_samples: 12, shape: [1, 4, 4]}}
  transforms: [to_tensor]
  batch_size: 12
model: [flatten, {linear: 10}]
loss: cross_entropy
optimizer: {sgd: 0.05}
evaluate: true
cores: 1
)";

struct Commands {
  Folder folder;
  Commands() { folder.write("t.yaml", kSpec); }
  Finished run(const std::vector<std::string>& words) const {
    return dptrain(words, {}, folder.path());
  }
  bool is_there(const std::string& name) const { return fs::exists(folder.file(name)); }
};

TEST_CASE("eval, compare and bench know the newest run of a name, and each run by its number") {
  const Commands c;
  const Finished none = c.run({"eval", "t.yaml"});
  CHECK(none.code == 4);
  CHECK_MESSAGE(has(none.err, "there is no runs/mine/model.safetensors: "), none.err);
  for (const char* seed : {"seed=1", "seed=2"}) CHECK(c.run({"t.yaml", seed}).code == 0);

  const auto loss = [&](const std::vector<std::string>& words) {
    const Finished f = c.run(words);
    CHECK_MESSAGE(f.code == 0, f.err);
    return f.out;
  };
  const std::string first = loss({"eval", "t.yaml", "--weights", "runs/mine/1"});
  const std::string newest = loss({"eval", "t.yaml"});
  CHECK(first != newest);
  CHECK(newest == loss({"eval", "t.yaml", "--weights", "runs/mine/2/model.safetensors"}));
  CHECK(newest == loss({"eval", "t.yaml", "--weights", "runs/mine/latest"}));
  CHECK(newest == loss({"eval", "t.yaml", "--weights", "runs/mine"}));
  CHECK(first == loss({"eval", "t.yaml", "out=runs/mine/1"}));

  CHECK(c.run({"compare", "runs/mine/latest", "runs/mine/2"}).code == 0);
  CHECK(c.run({"compare", "runs/mine/1", "runs/mine/2"}).code == 1);
  const Finished same = c.run({"compare", "runs/mine", "runs/mine/2"});
  CHECK_MESSAGE(same.code == 0, same.out);
  CHECK(same.err == "runs/mine: its newest run is runs/mine/2\n");

  const std::vector<std::string> bench = {"bench", "t.yaml", "--modes=single", "--rounds=1",
                                          "--seconds=0.001"};
  for (const char* number : {"3", "4"}) {
    const Finished f = c.run(bench);
    CHECK_MESSAGE(f.code == 0, f.err);
    CHECK_MESSAGE(has(f.err, std::string("runs/mine/") + number + "/bench.json"), f.err);
  }
  CHECK(c.is_there("runs/mine/3/bench.json"));
  CHECK(newest == loss({"eval", "t.yaml"}));  // figures are no run
}

TEST_CASE("eval finds the run of version 0.1.0, which lies in runs/NAME itself") {
  const Commands c;
  CHECK(c.run({"t.yaml", "out=runs/mine"}).code == 0);
  const Finished f = c.run({"eval", "t.yaml"});
  CHECK_MESSAGE(f.code == 0, f.err);
  CHECK(has(f.err, "runs/mine is a run of dptrain 0.1.0"));
}

}  // namespace
}  // namespace dpt
