// dptrain sweep: runs of several values, interruption, failures, and the script for batch sizes.
#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/wait.h>

#include "base/folder_lock.h"
#include "cli/process.h"
#include "paths.h"

namespace dpt {
namespace {

namespace fs = std::filesystem;

const std::string kSmall = R"(data:
  dataset: {synthetic_images: {samples: 48, test_samples: 12, shape: [1, 4, 4]}}
  transforms: [to_tensor]
  batch_size: 12
model: [flatten, {linear: 10}]
loss: cross_entropy
optimizer: {sgd: 0.05}
evaluate: true
epochs: 2
)";

struct Sweeps {
  Folder folder;
  explicit Sweeps(const std::string& spec = kSmall) { folder.write("t.yaml", spec); }
  static std::vector<std::string> words(const std::vector<std::string>& more) {
    std::vector<std::string> all = {"sweep", "t.yaml"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  Finished run(const std::vector<std::string>& more) const {
    return dptrain(words(more), {}, folder.path());
  }
  std::string read(const std::string& name) const { return read_file(folder.file(name)); }
};

int lines(const std::string& text) { return static_cast<int>(std::ranges::count(text, '\n')); }

TEST_CASE("sweep trains every combination, and the same command keeps what is finished") {
  const Sweeps s;
  const std::vector<std::string> words = {"data.batch_size=12,24", "optimizer.lr=0.1,0.01",
                                          "--seeds=2", "epochs=1"};
  const Finished f = s.run(words);
  CHECK_MESSAGE(f.code == 0, f.err);
  CHECK(lines(f.out) == 5);
  CHECK(f.out.starts_with("batch_size    lr  seeds"));
  CHECK(f.out.find('\r') == f.out.npos);
  const std::string run = "sweeps/t/1/batch_size=12,lr=0.01,seed=1/";
  CHECK(has(s.read(run + "spec.resolved.yaml"), "seed: 1"));
  CHECK(has(s.read(run + "log.txt"), "Epoch [1/1]"));
  CHECK(lines(s.read("sweeps/t/1/sweep.csv")) == 9);
  CHECK(has(s.read("sweeps/t/1/sweep.html"), "test.accuracy by data.batch_size and optimizer.lr"));
  const std::string metrics = s.read(run + "metrics.jsonl");

  const Finished again = s.run(words);
  CHECK(again.code == 0);
  CHECK(again.out == f.out);
  CHECK(has(again.err, "continuing sweep sweeps/t/1: 8 runs, 0 to train"));
  CHECK(s.read(run + "metrics.jsonl") == metrics);
  // More seeds are trained in the same place, other settings in another.
  CHECK(has(s.run({"data.batch_size=12,24", "optimizer.lr=0.1,0.01", "--seeds=3", "epochs=1"}).err,
            "continuing sweep sweeps/t/1: 12 runs, 4 to train"));
  const Finished other = s.run({"data.batch_size=12,24", "epochs=2"});
  CHECK(has(other.err, "sweeps/t/1 holds another sweep; what differs now:\n  epochs: 1 -> 2\n"));
  CHECK(has(other.err, "beginning sweep sweeps/t/2: 2 runs"));
  CHECK(
      has(s.run({"data.batch_size=12,24", "epochs=2", "--new"}).err, "beginning sweep sweeps/t/3"));
  const Finished table = dptrain({"runs", "sweeps/t/2"}, {}, s.folder.path());
  CHECK(table.out.starts_with("run            data.batch_size"));
}

TEST_CASE("a sweep whose data file has changed is another sweep") {
  const Sweeps s(R"(name: t
data: {dataset: {csv: {path: t.csv, test_path: test.csv}}, batch_size: 4}
model: [{linear: 1}]
loss: mse_loss
optimizer: {sgd: 0.05}
epochs: 1
)");
  s.folder.write("t.csv", "a,b\n1,2\n2,3\n3,4\n4,5\n");
  s.folder.write("test.csv", "a,b\n1,2\n");
  CHECK(has(s.run({"optimizer.lr=0.1,0.01"}).err, "beginning sweep sweeps/t/1: 2 runs"));
  s.folder.write("test.csv", "a,b\n1,3\n");  // no run depends on it
  CHECK(has(s.run({"optimizer.lr=0.1,0.01"}).err, "continuing sweep sweeps/t/1: 2 runs, 0 to"));
  s.folder.write("t.csv", "a,b\n1,2\n2,3\n3,4\n4,6\n");
  const Finished changed = s.run({"optimizer.lr=0.1,0.01,0.001"});
  CHECK_MESSAGE(has(changed.err,
                    "sweeps/t/1 holds another sweep; what differs now:\n  the training data: it "
                    "has 4 samples "
                    "as before, but with other values or in another order (lr=0.1 was trained with "
                    "the former "
                    "data)\n"),
                changed.err);
  CHECK(has(changed.err, "beginning sweep sweeps/t/2: 3 runs, 3 to train"));
  s.folder.write("t.csv", "a,b\n1,2\n2,3\n3,4\n4,6\n5,7\n");
  const Finished refused = s.run({"optimizer.lr=0.1,0.01,0.001", "--out=sweeps/t/2"});
  CHECK(refused.code == 2);
  CHECK(has(refused.err, "  the training data: it had 4 samples, and has 5 now"));
}

TEST_CASE("a sweep from weights of a run on another table is continued") {
  const Sweeps s(R"(name: t
data: {dataset: {csv: {path: t.csv, standardize: true}}, batch_size: 4}
model: [{linear: 1}]
loss: mse_loss
optimizer: {sgd: 0.05}
epochs: 1
)");
  s.folder.write("t.csv", "a,b\n1,2\n2,3\n3,4\n4,5\n");
  s.folder.write("other.csv", "a,b\n7,2\n5,3\n3,4\n6,5\n");
  REQUIRE(dptrain({"t.yaml", "data.dataset.csv.path=other.csv"}, {}, s.folder.path()).code == 0);
  const std::vector<std::string> words = {"optimizer.lr=0.1,0.01",
                                          "initial_weights=runs/t/1/model.safetensors"};
  CHECK(s.run(words).code == 0);
  CHECK(has(s.run(words).err, "continuing sweep sweeps/t/1: 2 runs, 0 to train"));
}

TEST_CASE("sweep refuses another sweep's directory, a run's, and a wrong command line") {
  const Sweeps s;
  CHECK(s.run({"data.batch_size=12,24", "epochs=1", "--out=d"}).code == 0);
  const std::string before = s.read("d/sweep.json");
  const Finished other =
      s.run({"data.batch_size=12,24", "epochs=1", "optimizer.lr=0.1", "--out=d"});
  CHECK(other.code == 2);
  CHECK(has(other.err, "--out d holds another sweep"));
  CHECK(has(other.err, "optimizer.sgd.lr: 0.05 -> 0.1"));
  CHECK(s.read("d/sweep.json") == before);
  CHECK(has(s.run({"seed=1,2", "--out=d/batch_size=12"}).err, "holds a run"));
  const auto refused = [&](const std::vector<std::string>& words, const std::string& why) {
    const Finished f = s.run(words);
    CHECK(f.code == 2);
    CHECK_MESSAGE(has(f.err, why), f.err);
  };
  refused({}, "a sweep needs a key");
  refused({"data.batch_size=1,,2"}, "a value is missing between the commas");
  refused({"data.batch_size=12,x"}, "data.batch_size=x:1:17: error: ");
  refused({"seed=1,2", "out=x"}, "--out DIR");
  refused({"seed=1,2", "seed=3", "--seeds=2"}, "--seeds sets the seed");
  refused({"seed=1,2", "--jobs=0"}, "--jobs '0' is neither");
  refused({"seed=1,2", "--until=accuracy"}, "--until 'accuracy' is not METRIC=NUMBER");
  refused({"seed=1,2", "--until=f1=3"}, "do not record 'f1'");
  refused({"seed=1,2", "--until=loss=1", "--target=loss=1"}, "exclude each other");
  refused({"seed=1,2", "--zip", "--random=2"}, "exclude each other");
  refused({"seed=1,2", "--halving"}, "nothing to halve");
  refused({"seed=1,2", "--metric=accuracy", "evaluate=false"}, "set evaluate=true");
  CHECK(!fs::exists(s.folder.file("sweeps")));
  const Finished plan = s.run({"seed=1,2", "--dry-run"});
  CHECK(plan.out == "seed=1\nseed=2\n");
  refused({"seed=1..60"}, "these values make 60 runs; add --yes to train them");
  CHECK(lines(s.run({"seed=1..60", "--dry-run"}).out) == 60);
  CHECK(!fs::exists(s.folder.file("sweeps")));
}

TEST_CASE("a run that fails does not stop a sweep, and is tried again only on request") {
  const Sweeps s;
  const std::vector<std::string> words = {"optimizer.lr=0.1,1e300,0.01", "epochs=3"};
  const Finished f = s.run(words);
  CHECK(f.code == 1);
  CHECK_MESSAGE(has(f.err, "failed: lr=1e300: "), f.err);
  CHECK(lines(f.out) == 4);
  CHECK(f.out.find("failed") == f.out.rfind("failed"));
  CHECK(f.out.find("failed") > f.out.rfind("finished"));  // last in the table
  const Finished again = s.run(words);
  CHECK(again.code == 1);
  CHECK(has(again.err, " 3 runs, 0 to train"));
  const Finished retried = s.run({words[0], words[1], "--retry-failed"});
  CHECK(has(retried.err, " 3 runs, 1 to train"));
}

TEST_CASE("a sweep over modes trains `single` on one device, whatever the spec says") {
  const Sweeps s(kSmall + "devices: 2\nparallel: ddp\n");
  const Finished f = s.run({"parallel=single,dp,ddp", "data.batch_size=12,24", "epochs=1"});
  CHECK_MESSAGE(f.code == 0, f.err);
  CHECK(lines(f.out) == 7);
  CHECK(has(s.read("sweeps/t/1/parallel=single,batch_size=12/log.txt"),
            "devices: single uses 1 device; the 2 in the spec are for other modes\n"));
  CHECK(has(s.read("sweeps/t/1/parallel=ddp,batch_size=12/log.txt"), "ddp on 2 ranks"));
}

TEST_CASE("a sweep checks every combination before it trains the first") {
  const Sweeps s;
  for (const std::string option : {"--dry-run", "--jobs=1"}) {
    // There are ten classes; 17 samples cannot be split over two ranks.
    const Finished f = s.run({"parallel=single,{ddp: 2}", "data.batch_size=12,17",
                              "model[1].linear=10,2", "seed=1,2", option});
    CHECK(f.code == 2);
    CHECK(f.out.empty());
    CHECK_MESSAGE(has(f.err, "error: cross_entropy: the model outputs 2 scores"), f.err);
    CHECK_MESSAGE(has(f.err, "error: batch_size 17 cannot be split evenly across 2 ranks"), f.err);
    CHECK_MESSAGE(has(f.err, "\n  in parallel=single,batch_size=12,linear=2,seed=1 and "), f.err);
    CHECK_MESSAGE(has(f.err, "no run was started: 10 of 16 settings cannot be trained\n"), f.err);
  }
  const Finished missing = s.run({"data.dataset={csv: none.csv},{csv: no.csv}"});
  CHECK(missing.code == 4);
  CHECK_MESSAGE(has(missing.err, "dptrain: "), missing.err);
  CHECK(!fs::exists(s.folder.file("sweeps")));
}

TEST_CASE("a sweep that is stopped saves its runs and continues them exactly") {
  const std::string many = "epochs=100000000";
  for (const int signal : {SIGINT, SIGTERM}) {
    const Sweeps s;
    const auto words = Sweeps::words({"optimizer.lr=0.1,0.01", "--jobs=2", many});
    Process p(words, {}, s.folder.path());
    for (const char* run : {"lr=0.1", "lr=0.01"})
      CHECK(becomes_true(60, [&] {
        return has(s.read(fmt::format("sweeps/t/1/{}/metrics.jsonl", run)), "epoch");
      }));
    p.send(signal);
    CHECK(p.wait() == 128 + signal);
    CHECK(!is_locked(s.folder.file("sweeps/t/1/lr=0.1")));
    CHECK_MESSAGE(has(p.err(),
                      "the same command continues the sweep:\n  dptrain sweep t.yaml "
                      "optimizer.lr=0.1,0.01"),
                  p.err());
    CHECK(fs::exists(s.folder.file("sweeps/t/1/lr=0.01/model.safetensors")));
    CHECK(has(p.out(), "stopped"));
    CHECK(has(s.read("sweeps/t/1/sweep.json"), "\"state\": \"stopped\""));
  }
}

// The weights do not show where a run was stopped.
TEST_CASE("runs of a sweep that were stopped have the weights of runs that were not") {
  std::string spec = kSmall;
  spec.replace(spec.find("samples: 48"), 11, "samples: 4800");
  const Sweeps whole(spec), stopped(spec);
  const std::vector<std::string> words = {"optimizer.lr=0.1,0.01", "epochs=40", "--jobs=1",
                                          "cores=1"};
  REQUIRE(whole.run(words).code == 0);
  Process p(Sweeps::words(words), {}, stopped.folder.path());
  CHECK(becomes_true(
      60, [&] { return has(stopped.read("sweeps/t/1/lr=0.1/metrics.jsonl"), "\"epoch\": 2,"); }));
  p.send_group(SIGTERM);
  const int code = p.wait();
  CHECK((code == 143 || code == 0));  // 0: the machine was faster than this test
  const Finished rest = stopped.run(words);
  CHECK_MESSAGE(rest.code == 0, rest.err);
  for (const char* run : {"lr=0.1", "lr=0.01"}) {
    const std::string weights = fmt::format("sweeps/t/1/{}/model.safetensors", run);
    CHECK(whole.read(weights) == stopped.read(weights));
  }
}

TEST_CASE("a sweep that is killed leaves no process, and continues") {
  const Sweeps s;
  const auto words = Sweeps::words({"optimizer.lr=0.1,0.01", "--jobs=2", "epochs=100000000"});
  Process p(words, {}, s.folder.path());
  CHECK(becomes_true(60, [&] {
    return has(s.read("sweeps/t/1/lr=0.01/metrics.jsonl"), "epoch") &&
           has(s.read("sweeps/t/1/lr=0.1/metrics.jsonl"), "epoch");
  }));
  CHECK(p.children().size() == 2);
  p.send(SIGKILL);
  CHECK(p.wait() == 128 + SIGKILL);
  for (const char* run : {"lr=0.1", "lr=0.01"}) {
    const std::string folder = s.folder.file(fmt::format("sweeps/t/1/{}", run));
    CHECK(becomes_true(60, [&] { return !is_locked(folder); }));
    CHECK(fs::exists(folder + "/model.safetensors"));  // it ended in order
  }
  Process again(words, {}, s.folder.path());
  CHECK(
      becomes_true(60, [&] { return has(s.read("sweeps/t/1/lr=0.1/log.txt"), "resuming from"); }));
  again.send(SIGTERM);
  CHECK(again.wait() == 143);
  CHECK(has(again.err(), "continuing sweep sweeps/t/1: 2 runs, 2 to train"));
}

TEST_CASE("--until ends a sweep at the first run that reaches a value, --target each run") {
  const Sweeps s;
  // Every loss is below 100: a run ends after its first epoch, or a little later.
  const Finished until =
      s.run({"optimizer.lr=0.1,0.01,0.001", "--jobs=1", "--until=loss=100", "epochs=100000000"});
  CHECK_MESSAGE(until.code == 0, until.err);
  CHECK(has(until.err, "lr=0.1 reached loss 100.0000 in epoch 1, after "));
  CHECK(!fs::exists(s.folder.file("sweeps/t/1/lr=0.01")));
  CHECK(has(until.out, "epochs to 100.0000"));
  const Finished target =
      s.run({"optimizer.lr=0.1,0.01,0.001", "--target=train.loss=100", "epochs=100000000"});
  CHECK_MESSAGE(target.code == 0, target.err);
  CHECK(has(s.read("sweeps/t/2/sweep.csv"), ",reached,\n"));
  CHECK(fs::exists(s.folder.file("sweeps/t/2/lr=0.001/model.safetensors")));
  CHECK(has(s.read("sweeps/t/2/sweep.json"), "\"reached.epoch\": 1, "));
}

TEST_CASE("--halving trains the best settings for all epochs") {
  const Sweeps s;
  const Finished f = s.run({"optimizer.lr=0.0001,0.001,0.01,0.1", "--halving", "--eta=2",
                            "--metric=loss", "epochs=4", "--json"});
  CHECK_MESSAGE(f.code == 0, f.err);
  CHECK(has(f.err,
            "halving: 4 settings for 1 epoch, then 2 for 2, then 1 for 4: 8 epochs instead "
            "of 16\n"));
  CHECK(f.out == s.read("sweeps/t/1/sweep.json"));
  CHECK(has(f.out, R"({"run": "lr=0.1", "state": "finished")"));
}

// The script's exit code; what it prints is in "out" and "err" of the folder.
int script(const Folder& folder, const std::string& words) {
  const std::string line = fmt::format("cd {} && {} --dptrain {} {} >out 2>err", folder.path(),
                                       source_file("tools/sweep_batch_sizes.sh"), program(), words);
  return WEXITSTATUS(std::system(line.c_str()));  // NOLINT(concurrency-mt-unsafe)
}

TEST_CASE("sweep_batch_sizes.sh is a short form of dptrain sweep") {
  std::string spec = kSmall;
  spec.replace(spec.find("batch_size: 12"), 14, "batch_size_per_replica: 12");
  const Sweeps s(spec);
  CHECK_MESSAGE(script(s.folder, "t.yaml 16 4 -- epochs=1 cores=1") == 0, s.read("err"));
  CHECK(s.read("out").starts_with("batch_size_per_replica  "));
  CHECK(fs::exists(s.folder.file("sweeps/t/1/batch_size_per_replica=4/model.safetensors")));
  CHECK(script(s.folder, "--force t.yaml 16 4 -- epochs=1 cores=1") == 0);
  CHECK(fs::exists(s.folder.file("sweeps/t/2")));
  CHECK(script(s.folder, "--help") == 0);
  for (const char* words :
       {"", "t.yaml", "none.yaml 4 8", "t.yaml 4", "--no t.yaml 4 8", "--dptrain"}) {
    CHECK_MESSAGE(script(s.folder, words) == 2, words);
    CHECK(has(s.read("err"), "sweep_batch_sizes.sh: "));
  }
}

}  // namespace
}  // namespace dpt
