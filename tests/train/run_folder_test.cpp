// What a run does to its directory, and how it ends where a batch system asks for it.
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <unistd.h>

#include "base/disk.h"
#include "base/folder_lock.h"
#include "checkpoint/store.h"
#include "cli/process.h"
#include "data/folder.h"
#include "skip.h"
#include "train/quick_disk.h"
#include "train/run_spec.h"

namespace dpt {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

// Five steps an epoch, the last one smaller.
const std::string kSpec = R"(
data:
  dataset: {synthetic_images: {samples: 56, test_samples: 11, shape: [1, 4, 4]}}
  transforms: [to_tensor]
  batch_size: 12
model: [flatten, {linear: 9}, relu, {linear: 10}]
loss: cross_entropy
optimizer: {sgd: 0.05}
epochs: 2
cores: 1
log: {every: 1}
)";

Ran run_in(const Folder& folder, const Words& words, Disk& disk, const std::string& resume = "") {
  return run_spec_in({folder.path(), resume, &disk}, kSpec, words);
}

TEST_CASE("a second run in the same folder ends at once, and changes nothing there") {
  const Folder folder;
  Quick disk;
  CHECK(run_in(folder, {}, disk).code == 0);
  const std::string spec = read_file(folder.file("run/spec.resolved.yaml"));
  {
    const FolderLock first(folder.file("run"));
    const Ran second = run_in(folder, {"epochs=1"}, disk);
    CHECK(second.code == 1);
    CHECK_MESSAGE(has(second.err, "another run is writing to " + folder.file("run") + " (process "),
                  second.err);
    CHECK(read_file(folder.file("run/spec.resolved.yaml")) == spec);
    CHECK(checkpoints_in(folder.file("run/checkpoints")).size() == 1);
  }
  CHECK(run_in(folder, {"epochs=1"}, disk).code == 0);
}

// Which folders were synced.
class Listening : public Disk {
 public:
  std::set<std::string> synced;
  int open_folder(const std::string& path) override {
    const int fd = Disk::open_folder(path);
    const std::scoped_lock lock(mutex_);
    last_ = {fd, path};
    return fd;
  }
  int sync(int fd) override {
    const std::scoped_lock lock(mutex_);
    if (fd == last_.first) synced.insert(last_.second);
    return 0;
  }

 private:
  std::mutex mutex_;  // files are written at once
  std::pair<int, std::string> last_;
};

TEST_CASE("all folders above a checkpoint that were made for it are synced") {
  const Folder folder;
  fs::create_directory(folder.file("a"));
  Listening disk;
  const Ran ran = run_spec_in({folder.file("a"), "", &disk}, kSpec, {});
  CHECK_MESSAGE(ran.code == 0, ran.err);
  CHECK(disk.synced.contains(folder.file("a/run/checkpoints/")));
  CHECK(disk.synced.contains(folder.file("a/run")));
  CHECK(disk.synced.contains(folder.file("a")));
  CHECK_FALSE(disk.synced.contains(folder.path()));
}

class Small : public Quick {
 public:
  explicit Small(int64_t bytes) : bytes_(bytes) {}
  int64_t free_bytes(const std::string&) override { return bytes_; }

 private:
  int64_t bytes_;
};

TEST_CASE("a disk without room for the weights and a checkpoint is told before the first step") {
  const Folder folder;
  // Two layers of 153 and 100 elements, twice: SGD keeps no states.
  Small tiny(1000), enough(4000), unknown(-1);
  const Ran ran = run_in(folder, {}, tiny);
  CHECK(ran.code == 1);
  CHECK_MESSAGE(has(ran.err, "run has room for 0.0 MiB, but the weights and a checkpoint take "),
                ran.err);
  CHECK_FALSE(fs::exists(folder.file("run/metrics.jsonl")));
  CHECK(run_in(folder, {}, enough).code == 0);
  CHECK(run_in(folder, {}, unknown).code == 0);
  Small weights(1500);
  CHECK(run_in(folder, {}, weights).code == 1);
  CHECK(run_in(folder, {"save=false"}, weights).code == 0);
}

TEST_CASE("all checkpoints that are there at the same time must fit, those of before included") {
  const Folder folder;
  // The weights or a checkpoint take 1088 bytes: 144, 9, 90 and 10 floats, each to a multiple of 64
  // bytes.
  const auto fits = [&](int sets, const Words& words, const std::string& resume = "") {
    Small enough(1088 * sets), less(1088 * sets - 1);
    const Ran refused = run_in(folder, words, less, resume);
    CHECK(refused.code == 1);
    CHECK_MESSAGE(has(refused.err, "run has room for 0.0 MiB, but the weights and "), refused.err);
    const Ran ran = run_in(folder, words, enough, resume);
    CHECK_MESSAGE(ran.code == 0, ran.err);
    return refused.err;
  };
  const std::string err = fits(4, {"save={every_steps: 4, keep: 2}"});
  CHECK_MESSAGE(
      has(err, "the weights and 3 checkpoints take 0.0 MiB; free some disk space, lower save.keep"),
      err);
  CHECK(checkpoints_in(folder.file("run/checkpoints")).size() == 2);  // 8, 10
  fits(2, {"save={every_steps: 4, keep: 2}", "epochs=3"}, "auto");
  // Fewer are written than kept: those of steps 4 to 20 and the last; two of these are there.
  fits(5, {"save={every_steps: 4, keep: 9}", "epochs=4"}, "auto");
}

TEST_CASE("what a run that was killed has left half-written is removed by the next one") {
  const Folder folder;
  const std::string left = folder.write("run/.aside-model.safetensors.4711", "half of it");
  Quick disk;
  CHECK(run_in(folder, {}, disk).code == 0);
  CHECK_FALSE(fs::exists(left));
}

TEST_CASE("files of a run replace links of their names and leave what these lead to") {
  const Folder folder;
  Quick disk;
  REQUIRE(run_in(folder, {"save.every_steps=5"}, disk).code == 0);
  const std::string metrics = read_file(folder.file("run/metrics.jsonl"));
  for (const std::string resume : {"", "auto"}) {
    CAPTURE(resume);
    for (const char* name : {"metrics.jsonl", "spec.resolved.yaml", "model.safetensors"}) {
      fs::remove(folder.file("run/") + name);
      folder.write(std::string("kept-") + name, metrics);
      fs::create_symlink(folder.file("kept-") + name, folder.file("run/") + name);
    }
    const Ran ran = run_in(folder, {resume.empty() ? "epochs=3" : "epochs=4"}, disk, resume);
    CHECK_MESSAGE(ran.code == 0, ran.err);
    for (const char* name : {"metrics.jsonl", "spec.resolved.yaml", "model.safetensors"}) {
      CAPTURE(name);
      CHECK(read_file(folder.file("kept-") + name) == metrics);
      CHECK_FALSE(fs::is_symlink(folder.file("run/") + name));
    }
    CHECK(ran.metrics.size() > metrics.size());
  }
}

TEST_CASE("a run directory that is a link to another disk is used as it is") {
  const Folder folder, other;
  fs::create_directory_symlink(other.path(), folder.file("run"));
  Quick disk;
  CHECK(run_in(folder, {}, disk).code == 0);
  CHECK(fs::exists(other.file("model.safetensors")));
  CHECK(fs::is_symlink(folder.file("run")));
  same(run_in(folder, {"epochs=3"}, disk, "auto"), run_spec(kSpec, {"epochs=3"}));
}

// Removes or moves the run directory while a checkpoint is written to it.
class Removing : public Quick {
 public:
  Removing(std::string run, std::string to) : run_(std::move(run)), to_(std::move(to)) {}
  int create(const std::string& path) override {
    if (has(path, "/checkpoints/") && !std::exchange(done_, true)) {
      if (to_.empty())
        fs::remove_all(run_);
      else
        fs::rename(run_, to_);
    }
    return Quick::create(path);
  }

 private:
  std::string run_, to_;
  bool done_ = false;
};

TEST_CASE("a run directory that is removed or moved is made again, with a warning") {
  for (const std::string to : {"", "moved"}) {
    CAPTURE(to);
    const Folder folder;
    Removing disk(folder.file("run"), to.empty() ? "" : folder.file(to));
    const Ran ran = run_in(folder, {"save.every_steps=3", "epochs=3"}, disk);
    CHECK_MESSAGE(ran.code == 0, ran.err);
    CHECK_MESSAGE(has(ran.err, folder.file("run/metrics.jsonl") +
                                   " was removed or moved during the run; a new one was started\n"),
                  ran.err);
    CHECK_FALSE(ran.weights.empty());
    CHECK_MESSAGE(ran.metrics.ends_with("}\n"), ran.metrics);
    CHECK(has(ran.metrics, "\"step\": 15,"));
    CHECK(checkpoints_in(folder.file("run/checkpoints")).at(0).step == 15);
  }
}

TEST_CASE("a run directory that is made again during the run is locked again") {
  const Folder folder;
  folder.write("t.yaml", kSpec);
  const std::string run = folder.file("run");
  Process first({folder.file("t.yaml"), "epochs=100000000", "out=" + run});
  REQUIRE(becomes_true(60, [&] { return has(first.out(), "Epoch [1/"); }));
  fs::rename(run, folder.file("moved"));
  CHECK(becomes_true(60, [&] { return has(first.err(), "a new one was started"); }));
  CHECK(is_locked(run));
  const Finished second = dptrain({folder.file("t.yaml"), "epochs=1", "out=" + run});
  CHECK(second.code == 1);
  CHECK_MESSAGE(has(second.err,
                    fmt::format("another run is writing to {} (process {} on ", run, first.pid())),
                second.err);
}

// Asks for the run's end at the first checkpoint.
class Interrupted : public Quick {
 public:
  explicit Interrupted(int signal) : signal_(signal) {}
  int create(const std::string& path) override {
    if (has(path, "/checkpoints/") && !std::exchange(done_, true)) std::raise(signal_);
    return Quick::create(path);
  }

 private:
  int signal_;
  bool done_ = false;
};

TEST_CASE(
    "of what stopped runs have left three folders stay: the last, and those trained longest") {
  const Folder folder;
  const auto stop = [&](int step, const std::string& resume = "") {
    Interrupted disk(SIGINT);
    const Ran ran =
        run_in(folder, {fmt::format("save={{every_steps: {}, keep: 1}}", step)}, disk, resume);
    CHECK_MESSAGE(ran.code == 130, ran.err);
    return ran.err;
  };
  const auto left = [&] {
    std::vector<int64_t> out;
    for (const std::string& previous : previous_folders(folder.file("run")))
      out.push_back(checkpoints_in(previous).at(0).step);
    return out;
  };
  for (const int step : {7, 2, 3, 1}) stop(step);
  CHECK(left() == std::vector<int64_t>{8, 3, 4});
  const std::string err = stop(6);  // the last one had 2 steps
  CHECK(left() == std::vector<int64_t>{8, 4, 2});
  CHECK_MESSAGE(
      has(err, "run/checkpoints.previous-2: only three folders of earlier checkpoints are kept"),
      err);
  stop(4);
  CHECK(left() == std::vector<int64_t>{8, 7, 4});
  // The one that a run goes on from is kept, though there are three that come before it.
  stop(8, folder.file("run/checkpoints.previous-3/step-000004"));
  CHECK(left() == std::vector<int64_t>{8, 4, 5});
}

TEST_CASE("a batch system's warning saves a checkpoint and ends with 75") {
  const Folder folder;
  for (const int signal : {SIGUSR1, SIGUSR2}) {
    Interrupted disk(signal);
    const Ran ran = run_in(folder, {"save.every_steps=3"}, disk);
    CHECK_MESSAGE(ran.code == 75, ran.err);
    CHECK(checkpoints_in(folder.file("run/checkpoints"))[0].step == 4);
    CHECK_MESSAGE(has(ran.err, "step-000004"), ran.err);
  }
  Quick disk;
  same(run_in(folder, {}, disk, "auto"), run_spec(kSpec, {}));
}

// Has no room for checkpoints.
class Full : public Interrupted {
 public:
  using Interrupted::Interrupted;
  int create(const std::string& path) override {
    const int made = Interrupted::create(path);
    if (!has(path, "/checkpoints/") || made < 0) return made;
    ::close(made);
    errno = ENOSPC;
    return -1;
  }
};

TEST_CASE("a run without a checkpoint does not ask to be requeued") {
  const Folder folder;
  Full disk(SIGUSR1);
  const Ran ran = run_in(folder, {"save.every_steps=3"}, disk);
  CHECK_MESSAGE(ran.code == 1, ran.err);
  CHECK_MESSAGE(has(ran.err, "the exit code is 1 instead of 75; free some disk space"), ran.err);
}

// Takes its time over the first file.
class Slow : public Quick {
 public:
  int create(const std::string& path) override {
    if (!std::exchange(slept_, true)) sleep_ms(900);
    return Quick::create(path);
  }

 private:
  bool slept_ = false;
};

TEST_CASE("workers wait for a save longer than for each other" * doctest::skip(!kCanFork)) {
  const Folder folder;
  Slow disk;
  const Ran ran = run_in(folder, {"parallel={ddp: {timeout: 0.7}}", "devices=2", "epochs=1"}, disk);
  CHECK_MESSAGE(ran.code == 0, ran.err);
}

TEST_CASE(
    "what a change of the spec does to the rest of a run is told where it is not to be seen") {
  const Folder one, two;
  Quick disk;
  const Words plateau = {"schedule={reduce_on_plateau: {patience: 0, threshold: 0.9}}",
                         "save.every_steps=7", "optimizer={sgd: 0.08}"};
  CHECK(run_in(one, plateau, disk).code == 0);
  const std::string middle = one.file("run/checkpoints/step-000007");
  const auto rest = [&](Words more) {
    more.insert(more.begin(), plateau.begin(), plateau.end());
    const Ran ran = run_in(two, more, disk, middle);
    CHECK_MESSAGE(ran.code == 0, ran.err);
    return ran;
  };
  const auto assigned = [](const Ran& ran) {
    return has(ran.err, "in its middle with its samples");
  };
  // The first epoch is no progress beyond 90 %.
  const Ran same_mode = rest({"epochs=3"});
  CHECK_FALSE(assigned(same_mode));
  CHECK_FALSE(has(same_mode.err, "the learning rate continues at"));
  const Ran lower = rest({"optimizer={sgd: 0.02}"});
  CHECK_MESSAGE(has(lower.err, "the learning rate continues at 0.02: 0.02 times the"), lower.err);
  CHECK_MESSAGE(has(lower.metrics, "\"step\": 8, \"epoch\": 2,"), lower.metrics);
  CHECK_MESSAGE(has(lower.metrics.substr(lower.metrics.find("\"step\": 8")), "\"lr\": 0.02, "),
                lower.metrics);
  if (skip_without(kCanFork, "a process that may fork")) return;
  const Ran other_mode = rest({"parallel=ddp", "devices=2"});
  CHECK_MESSAGE(has(other_mode.err,
                    "the rest of epoch 2 uses another sample order (assigned to 2 replicas, not "
                    "one order for all)"),
                other_mode.err);
}

}  // namespace
}  // namespace dpt
