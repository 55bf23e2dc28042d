// What is kept of checkpoints, and what is not: damaged ones, those of earlier runs, a full disk.
#include "checkpoint/store.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <zlib.h>

#include "base/disk.h"
#include "base/units.h"
#include "checkpoint/resumed_run.h"
#include "data/peak_growth.h"
#include "formats/safetensors.h"

namespace dpt {
namespace {

namespace fs = std::filesystem;

TEST_CASE("whatever is damaged in a checkpoint, it is found, and an older one is taken") {
  const Words how = {"cores=1"};
  const Straight straight(how);
  const std::string newest = checkpoint(straight.folder, 15);
  REQUIRE(damage(newest).empty());
  size_t damaged = 0;
  for (const auto& file : fs::directory_iterator(newest)) {
    const std::string path = file.path().string(), name = file.path().filename().string();
    CAPTURE(name);
    const std::string whole = read_file(path);
    const auto is_found = [&](const std::string& bytes) {
      std::ofstream(path, std::ios::binary) << bytes;
      CHECK_FALSE(damage(newest).empty());
      ++damaged;
    };
    for (size_t i = 0; i < whole.size(); i += std::max<size_t>(1, whole.size() / 17)) {
      std::string bytes = whole;
      bytes[i] = static_cast<char>(bytes[i] ^ (1 << i % 8));
      is_found(bytes);
      is_found(whole.substr(0, i));
    }
    is_found(whole + '\n');
    fs::remove(path);
    CHECK_FALSE(damage(newest).empty());
    std::ofstream(path, std::ios::binary) << whole;
    REQUIRE(damage(newest).empty());
  }
  CHECK(damaged > 150);
  fs::resize_file(newest + "/optimizer.safetensors", 100);
  const Ran rest = run_spec_in({straight.folder.path(), "auto"}, kFiveSteps, how);
  same(straight.ran, rest);
  CHECK_MESSAGE(
      rest.err.find("step-000015: its optimizer.safetensors is damaged") != std::string::npos,
      rest.err);
  CHECK(damage(newest).empty());  // written anew
  fs::resize_file(newest + "/optimizer.safetensors", 100);
  const Ran named = straight.rest(15, how);
  CHECK(named.code == 4);
  CHECK(named.err.find("step-000015 cannot be resumed: ") != std::string::npos);
}

TEST_CASE("files of a checkpoint that are far too large, or special, are found without reading") {
  const Words how = {"cores=1", "epochs=1"};
  const Straight straight(how);
  const std::string at = checkpoint(straight.folder, 5);
  const std::string manifest = at + "/manifest.txt", state = at + "/state.json",
                    model = at + "/model.safetensors";
  const std::string written = read_file(manifest), run = read_file(state);
  const uintmax_t weights = fs::file_size(model);
  fs::resize_file(model, 8 * kGiB);
  CHECK(damage(at) ==
        "its model.safetensors is damaged: it has 8589934592 bytes, and manifest.txt lists another "
        "size");
  fs::resize_file(model, weights);
  REQUIRE(damage(at).empty());

  std::string why;
  fs::resize_file(manifest, 3 * kGiB);
  CHECK(peak_growth([&] { why = damage(at); }) < kHostileBytes);
  CHECK(why == manifest + " has 3221225472 bytes; at most 4096 are read from a file of this kind");
  std::ofstream(manifest, std::ios::binary) << written;

  for (const std::string& path : {state, manifest}) {
    const std::string bytes = read_file(path);
    fs::remove(path);
    REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
    CHECK(damage(at) == (path == state ? "its state.json cannot be read"
                                       : path + " is a pipe, not a regular file"));
    fs::remove(path);
    std::ofstream(path, std::ios::binary) << bytes;
  }

  // One whose manifest agrees.
  const auto line = [](const std::string& text) {
    const auto* bytes = reinterpret_cast<const Bytef*>(text.data());
    return fmt::format("state.json {} bytes, crc32 {:08x}\n", text.size(),
                       crc32_z(0, bytes, text.size()));
  };
  const std::string large = run + std::string(17 * kMiB, ' ');
  std::ofstream(state, std::ios::binary) << large;
  REQUIRE(written.find(line(run)) != written.npos);
  std::ofstream(manifest, std::ios::binary)
      << std::string(written).replace(written.find(line(run)), line(run).size(), line(large));
  REQUIRE(damage(at).empty());
  const Ran ran = straight.rest(5, how);
  CHECK(ran.code == 4);
  CHECK_MESSAGE(has(ran.err, "bytes; at most 16777216 are read from a file of this kind"), ran.err);
}

// On which no checkpoint can be written.
class Dead : public Quick {
 public:
  int create(const std::string& path) override {
    return has(path, "/checkpoints/") ? (errno = EIO, -1) : Quick::create(path);
  }
};

// On which there is no folder for checkpoints, and none can be made.
class Bare : public Quick {
 public:
  int make_folder(const std::string& path) override {
    return path.ends_with("/checkpoints") ? (errno = EDQUOT, -1) : Quick::make_folder(path);
  }
};

TEST_CASE("a folder of checkpoints that cannot be made is named, and the run goes on") {
  const Folder folder;
  Bare disk;
  const Ran ran = run_spec_in({.folder = folder.path(), .disk = &disk}, kFiveSteps, kShort);
  CHECK_MESSAGE(ran.code == 0, ran.err);
  CHECK_MESSAGE(has(ran.err, folder.file("run/checkpoints") + " cannot be "), ran.err);
  CHECK_MESSAGE(has(ran.err, "Disk quota exceeded"), ran.err);
}

TEST_CASE("the weights of a checkpoint name their step") {
  const Straight straight(kShort);
  for (const int step : {2, 6}) {
    const std::string file = checkpoint(straight.folder, step) + "/model.safetensors";
    CHECK(SafeTensorsFile(file).metadata().at("step") == std::to_string(step));
  }
}

// Ctrl-C at the first checkpoint.
class Interrupted : public Quick {
 public:
  int create(const std::string& path) override {
    if (has(path, "/checkpoints/") && !std::exchange(done_, true)) std::raise(SIGINT);
    return Quick::create(path);
  }

 private:
  bool done_ = false;
};

TEST_CASE("what an earlier run has left goes once a later one is complete, and not before") {
  const Folder folder;
  const std::string now = folder.file("run/checkpoints"), before = now + ".previous";
  const auto run = [&](const std::string& resume, const Words& more, Disk* disk = nullptr) {
    Quick quick;
    return run_spec_in({folder.path(), resume, disk ? disk : &quick}, kFiveSteps,
                       with(kShort, more));
  };
  const Ran first = run("", {"save.every_steps=2"});
  CHECK(steps_in(now) == Steps{6, 4, 2});
  Dead dead;
  const Ran forgot = run("", {}, &dead);  // it has none of its own
  CHECK_MESSAGE(
      has(forgot.err,
          fmt::format("3 checkpoints of an earlier run are kept in {0} until this run has its own; "
                      "to continue from the newest, use --resume {0}/step-000006",
                      before)),
      forgot.err);
  CHECK(steps_in(now).empty());
  CHECK(steps_in(before) == Steps{6, 4, 2});
  Interrupted interrupted;
  const Ran stopped = run("", {"save.every_steps=1", "save.keep=1"}, &interrupted);
  CHECK_MESSAGE(stopped.code == 130, stopped.err);
  CHECK(steps_in(now) == Steps{2});
  CHECK(steps_in(before) == Steps{6, 4, 2});
  // Where it goes on from one of those, that one stays as long.
  const Ran rest = run(before + "/step-000004", {}, &dead);
  same(first, rest);
  CHECK_MESSAGE(has(rest.err, "1 checkpoint of an earlier run is kept in " + before + "-2"),
                rest.err);
  CHECK(steps_in(before) == Steps{6, 4, 2});
  same(first, run(before + "/step-000004", {}));
  CHECK(steps_in(now) == Steps{6});
  CHECK(previous_folders(folder.file("run")).empty());
}

TEST_CASE("a run that writes no checkpoints passes none off as its own") {
  const Folder folder;
  const std::string now = folder.file("run/checkpoints"), before = now + ".previous";
  const Ran first = run_spec_in({folder.path()}, kFiveSteps, kShort);
  CHECK(steps_in(now) == Steps{6});
  CHECK(run_spec_in({folder.path()}, kFiveSteps, with(kShort, {"save=false", "optimizer.lr=1"}))
            .code == 0);
  CHECK(steps_in(now).empty());
  CHECK(steps_in(before) == Steps{6});
  const Ran none = run_spec_in({folder.path(), folder.file("run")}, kFiveSteps, kShort);
  CHECK(none.code == 4);
  CHECK_MESSAGE(
      has(none.err, "holds no checkpoint; the checkpoints of an earlier run are in " + before),
      none.err);
  // Whatever is cut from what was recorded, it is at the end of a line.
  CHECK(read_file(before + "/metrics.jsonl") == first.metrics);
  folder.write("run/checkpoints.previous/metrics.jsonl",
               fmt::format("{{\"one\": 1}}\n{:9999}\n", 2));
  const Ran rest = run_spec_in({folder.path(), before}, kFiveSteps, with(kShort, {"epochs=4"}));
  CHECK(rest.code == 0);
  CHECK(rest.metrics.starts_with("{\"one\": 1}\n{\"step\": 7, "));
}

TEST_CASE("a run that is refused changes no file") {
  const Folder folder;
  const Words words = with(kShort, {"save.every_steps=2"});
  REQUIRE(run_spec_in({folder.path()}, kFiveSteps, words).code == 0);
  const std::string spec = read_file(folder.file("run/spec.resolved.yaml"));
  const std::string metrics = read_file(folder.file("run/metrics.jsonl"));
  for (const Words& more : std::vector<Words>{
           {"model[1].out_features=7"},
           {"optimizer.amsgrad=true"},
           {"optimizer.amsgrad=true", "parallel={ddp: {shard: optimizer}}", "devices=2"}}) {
    if (!kCanFork && more.size() > 1) continue;
    CAPTURE(more.size());
    const Ran ran =
        run_spec_in({folder.path(), checkpoint(folder, 2)}, kFiveSteps, with(words, more));
    CHECK(ran.code == 2);
    CHECK_MESSAGE(has(ran.err, "does not fit the "), ran.err);
    CHECK(read_file(folder.file("run/spec.resolved.yaml")) == spec);
    CHECK(read_file(folder.file("run/metrics.jsonl")) == metrics);
    CHECK(steps_in(folder.file("run/checkpoints")) == Steps{6, 4, 2});
  }
}

// One that is full from some call on, but for the weights.
class Full : public Quick {
 public:
  explicit Full(int calls) : left_(calls) {}
  int create(const std::string& path) override {
    weights_ = has(path, ".aside-model.");
    return Quick::create(path);
  }
  ssize_t write(int fd, const std::byte* bytes, size_t count) override {
    errno = ENOSPC;
    return !weights_ && --left_ < 0 ? -1 : Disk::write(fd, bytes, count);
  }

 private:
  bool weights_ = false;
  std::atomic<int> left_;
};

TEST_CASE("where the disk is full the run goes on, says so once, and keeps what it has") {
  const Folder folder;
  Full disk(50);
  const Ran ran = run_spec_in({.folder = folder.path(), .disk = &disk}, kFiveSteps,
                              {"cores=1", "save={every_steps: 1, keep: 1}"});
  CHECK(ran.code == 0);
  const size_t told =
      ran.err.find("No space left on device; free some disk space; the run continues");
  CHECK_MESSAGE(told != std::string::npos, ran.err);
  CHECK(ran.err.find("could not be written", told) == std::string::npos);
  const auto left = checkpoints_in(folder.file("run/checkpoints"));
  REQUIRE(left.size() == 1);
  CHECK(damage(left[0].path).empty());
  CHECK(left[0].step > 0);
  CHECK(left[0].step < 15);
  same(run_spec(kFiveSteps, {"cores=1"}),
       run_spec_in({folder.path(), "auto"}, kFiveSteps, {"cores=1"}));
}

// Keeps whatever old checkpoint is to be removed.
class Keeping : public Quick {
 public:
  int rename(const std::string& from, const std::string& to) override {
    if (has(to, ".aside-step-")) return errno = EMFILE, -1;
    return Quick::rename(from, to);
  }
};

TEST_CASE("an old checkpoint that cannot be removed is warned of, and new ones are written") {
  const Folder folder;
  Keeping disk;
  const Ran ran = run_spec_in({.folder = folder.path(), .disk = &disk}, kFiveSteps,
                              with(kShort, {"save={every_steps: 1, keep: 1}"}));
  CHECK(ran.code == 0);
  CHECK_MESSAGE(
      has(ran.err, fmt::format("old checkpoints could not be removed: {}: Too many open files; ",
                               checkpoint(folder, 1))),
      ran.err);
  CHECK_FALSE(has(ran.err, "could not be written"));
  CHECK(steps_in(folder.file("run/checkpoints")) == Steps{6, 5, 4, 3, 2, 1});
  for (const int step : {1, 6}) CHECK(damage(checkpoint(folder, step)).empty());
}

// Takes nothing more while there are two checkpoints: a disk that somebody else fills.
class Filling : public Quick {
 public:
  explicit Filling(std::string checkpoints) : checkpoints_(std::move(checkpoints)) {}
  ssize_t write(int fd, const std::byte* bytes, size_t count) override {
    if (fs::exists(checkpoints_) && steps_in(checkpoints_).size() >= 2) return errno = ENOSPC, -1;
    return Disk::write(fd, bytes, count);
  }

 private:
  std::string checkpoints_;
};

TEST_CASE("where the disk fills, the oldest checkpoint goes for a new one and for the weights") {
  const Folder folder;
  Filling disk(folder.file("run/checkpoints"));
  const Ran ran = run_spec_in({.folder = folder.path(), .disk = &disk}, kFiveSteps,
                              with(kShort, {"save={every_steps: 1, keep: 3}"}));
  CHECK_MESSAGE(ran.code == 0, ran.err);
  CHECK_MESSAGE(has(ran.err, fmt::format("the disk is full: {} is removed to make room for {}\n",
                                         checkpoint(folder, 1), checkpoint(folder, 3))),
                ran.err);
  CHECK_FALSE(has(ran.err, checkpoint(folder, 2)));  // it is said once, of the first one
  CHECK_MESSAGE(
      has(ran.err, fmt::format("the disk is full: {} is removed to make room for {}\n",
                               checkpoint(folder, 5), folder.file("run/model.safetensors"))),
      ran.err);
  CHECK(steps_in(folder.file("run/checkpoints")) == Steps{6});
  CHECK(damage(checkpoint(folder, 6)).empty());
  same(ran, run_spec(kFiveSteps, kShort));
}

// Notes how many bytes of metrics.jsonl are synced before each checkpoint appears, and whether
// data.json is.
class Noting : public Disk {
 public:
  explicit Noting(const Folder& folder) : metrics_(folder.file("run/metrics.jsonl")) {}
  int sync(int fd) override {
    std::error_code error;
    const std::string file = fs::read_symlink(fmt::format("/proc/self/fd/{}", fd), error).string();
    if (fs::equivalent(file, metrics_, error)) synced_ = static_cast<int64_t>(fs::file_size(file));
    if (has(file, ".aside-data.json")) fit_synced_ = true;
    return 0;
  }
  int rename(const std::string& from, const std::string& to) override {
    if (const size_t name = to.rfind("/step-"); name != to.npos && has(from, ".aside-"))
      at_checkpoint[std::stoi(to.substr(name + 6))] = fit_synced_ ? synced_.load() : -1;
    return Disk::rename(from, to);
  }
  std::map<int, int64_t> at_checkpoint;
  int64_t synced() const { return synced_; }

 private:
  std::string metrics_;
  std::atomic<int64_t> synced_ = 0;
  std::atomic<bool> fit_synced_ = false;
};

TEST_CASE(
    "data.json and the records that a checkpoint counts on are synced before it, all at the end") {
  const Folder folder;
  Noting disk(folder);
  REQUIRE(run_spec_in({.folder = folder.path(), .disk = &disk}, kFiveSteps,
                      with(kShort, {"save={every_steps: 1, keep: 9}"}))
              .code == 0);
  CHECK(disk.at_checkpoint.size() == 6);
  for (const auto& noted : disk.at_checkpoint) {
    const std::string state = read_file(checkpoint(folder, noted.first) + "/state.json");
    CHECK_MESSAGE(has(state, fmt::format("\"metrics_bytes\": {},", noted.second)), noted.first);
  }
  CHECK(disk.synced() == static_cast<int64_t>(fs::file_size(folder.file("run/metrics.jsonl"))));
}

TEST_CASE("records that a power cut took are named by the run that goes on") {
  const Straight straight(kShort);
  const std::string metrics = straight.folder.file("run/metrics.jsonl");
  const std::string all = read_file(metrics);
  const size_t kept = all.find("{\"epoch\": 1");
  REQUIRE(kept != std::string::npos);
  fs::resize_file(metrics, kept);
  Quick disk;
  const Ran rest =
      run_spec_in({straight.folder.path(), "auto", &disk}, kFiveSteps, with(kShort, {"epochs=4"}));
  CHECK(rest.code == 0);
  CHECK_MESSAGE(
      has(rest.err, fmt::format("{} lacks {} bytes of the records up to the checkpoint of step 6: "
                                "it ends in epoch 1, and the checkpoint is of epoch 3",
                                metrics, all.size() - kept)),
      rest.err);
}

// Full for the weights alone.
class NoWeights : public Quick {
 public:
  int create(const std::string& path) override {
    return has(path, ".aside-model.") ? (errno = ENOSPC, -1) : Quick::create(path);
  }
};

TEST_CASE("where the weights cannot be written, the error says what has them") {
  const Folder folder;
  NoWeights disk;
  const Ran ran = run_spec_in({.folder = folder.path(), .disk = &disk}, kFiveSteps, kShort);
  CHECK(ran.code == 1);
  CHECK_MESSAGE(
      has(ran.err, fmt::format("{} cannot be written: No space left on device; free some disk "
                               "space; then resume from the newest checkpoint with --resume {}",
                               folder.file("run/model.safetensors"), checkpoint(folder, 6))),
      ran.err);
  same(run_spec(kFiveSteps, kShort), run_spec_in({folder.path(), "auto"}, kFiveSteps, kShort));
}

TEST_CASE("a checkpoint whose manifest cannot be read is passed over") {
  const Straight straight({"cores=1"});
  for (const int step : {15, 14}) {
    const std::string manifest = checkpoint(straight.folder, step) + "/manifest.txt";
    fs::remove(manifest);
    if (step == 15) fs::create_symlink("/proc/self/mem", manifest);  // whose first byte is EIO
  }
  Quick disk;
  const Ran rest = run_spec_in({straight.folder.path(), "auto", &disk}, kFiveSteps, {"cores=1"});
  same(straight.ran, rest);
  CHECK_MESSAGE(has(rest.err, "skipping " + checkpoint(straight.folder, 15) + ": "), rest.err);
  CHECK_MESSAGE(has(rest.err, "manifest.txt cannot be read: Input/output error"), rest.err);
  CHECK_MESSAGE(has(rest.err, "skipping " + checkpoint(straight.folder, 14) + ": "), rest.err);
  CHECK_FALSE(has(rest.err, "skipping " + checkpoint(straight.folder, 13)));
}

}  // namespace
}  // namespace dpt
