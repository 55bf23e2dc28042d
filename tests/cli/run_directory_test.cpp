// Commands that are given runs/NAME take its newest run; those that write take a new number.
#include <csignal>
#include <filesystem>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <unistd.h>

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
  CHECK_MESSAGE(has(none.err, "runs/mine/model.safetensors does not exist: "), none.err);
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

TEST_CASE("a name is that of a run, even if a folder of data has the same name") {
  const Commands c;
  CHECK(c.run({"t.yaml", "steps=1"}).code == 0);
  c.folder.write("mine/data.csv", "a,b\n1,2\n");
  const Finished f = c.run({"predict", "mine", "no.npy"});
  CHECK_MESSAGE(has(f.err, "no.npy"), f.err);
  CHECK_MESSAGE(!has(f.err, "holds no run"), f.err);
}

TEST_CASE("a folder that contains runs, as a sweep's, is no run, and the error names one") {
  const Commands c;
  for (const char* out : {"out=both/a", "out=both/b"})
    CHECK(c.run({"t.yaml", "steps=1", out}).code == 0);
  const Finished f = c.run({"eval", "both"});
  CHECK(f.code == 4);
  CHECK_MESSAGE(has(f.err, "both is no run but contains runs, such as both/"), f.err);
  CHECK_MESSAGE(has(f.err, ": name one (`dptrain runs both` lists them)"), f.err);
  // Those of runs/ are found beside a folder of data that has the same name.
  CHECK(c.run({"t.yaml", "steps=1", "out=runs/photos/a"}).code == 0);
  c.folder.write("photos/1.csv", "a,b\n1,2\n");
  const Finished beside = c.run({"eval", "photos"});
  CHECK_MESSAGE(has(beside.err, "runs/photos is no run but contains runs, such as runs/photos/a"),
                beside.err);
}

TEST_CASE("eval names the keys in which a spec differs from its newest run") {
  const Commands c;
  REQUIRE(c.run({"t.yaml", "data.dataset.samples=12"}).code == 0);
  const Finished other = c.run({"eval", "t.yaml", "evaluate.batch_size=6"});
  REQUIRE(other.code == 0);
  CHECK(has(other.err,
            "warning: runs/mine/1 was trained with other settings than t.yaml:\n"
            "  data.dataset.synthetic_images.samples: 12 in the run, 24 in the spec\n"));
  CHECK_FALSE(has(other.err, "evaluate"));
  // The user named the run, or trained the spec as it is.
  CHECK_FALSE(has(c.run({"eval", "runs/mine/1"}).err, "warning"));
  CHECK_FALSE(has(c.run({"eval", "t.yaml", "--weights", "runs/mine/1"}).err, "warning"));
  REQUIRE(c.run({"t.yaml"}).code == 0);
  CHECK_FALSE(has(c.run({"eval", "t.yaml"}).err, "warning"));
}

TEST_CASE("eval finds the run of version 0.1.0, which lies in runs/NAME itself") {
  const Commands c;
  CHECK(c.run({"t.yaml", "out=runs/mine"}).code == 0);
  const Finished f = c.run({"eval", "t.yaml"});
  CHECK_MESSAGE(f.code == 0, f.err);
  CHECK(has(f.err, "runs/mine is a run of dptrain 0.1.0"));
}

// The cores that a process may run on, as "0-3"; a worker's process is its worker.
std::string cores_of(pid_t pid) {
  const std::string status = read_file("/proc/" + std::to_string(pid) + "/status");
  const std::string key = "Cpus_allowed_list:\t";
  const size_t begin = status.find(key);
  if (begin == std::string::npos) return "";
  return status.substr(begin + key.size(), status.find('\n', begin) - begin - key.size());
}

TEST_CASE("runs at the same time have cores of their own, which are free again after kill -9") {
  const std::string all = cores_of(getpid());
  if (all.find_first_of(",-") == std::string::npos) {
    MESSAGE("skipped: this machine has one core");
    return;
  }
  const Commands c;
  const Folder locks;  // not those of other runs on this machine
  const Variables environment = {{"XDG_RUNTIME_DIR", locks.path()}};
  const std::vector<std::string> words = {"t.yaml", "epochs=100000000", "evaluate=false"};
  const auto started = [&](const Process& p) {
    return becomes_true(60, [&] { return has(p.out(), "Epoch [1/"); });
  };
  Process one(words, environment, c.folder.path());
  REQUIRE_MESSAGE(started(one), one.err());
  Process two(words, environment, c.folder.path());
  REQUIRE_MESSAGE(started(two), two.err());
  const std::string first = cores_of(one.pid()), second = cores_of(two.pid());
  CHECK(first.find_first_of(",-") == std::string::npos);
  CHECK(second.find_first_of(",-") == std::string::npos);
  CHECK(first != second);
  one.send(SIGKILL);
  CHECK(one.wait(10) == 137);
  Process three(words, environment, c.folder.path());
  REQUIRE_MESSAGE(started(three), three.err());
  CHECK(cores_of(three.pid()) == first);
}

}  // namespace
}  // namespace dpt
