// Which folders are checkpoints, and what becomes of those that earlier runs have left.
#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "checkpoint/resumed_run.h"
#include "checkpoint/store.h"

namespace dpt {
namespace {

namespace fs = std::filesystem;

TEST_CASE("checkpoints are known by their names, the newest first") {
  const Folder folder;
  for (const char* name : {"step-000002", "step-000010", "step-1000000", "step-", "step-x",
                           "step-3x", "step--4", "steps-5", "my-step-6", "7"})
    fs::create_directory(folder.file(name));
  CHECK(steps_in(folder.path()) == Steps{1000000, 10, 2});
  CHECK(steps_in(folder.file("missing")).empty());
  folder.write("file", "");
  CHECK_THROWS_AS(checkpoints_in(folder.file("file")), Error);
}

TEST_CASE("a checkpoint's metrics lie in its run directory") {
  CHECK(metrics_of("/a/run/checkpoints/step-000001") == "/a/run/metrics.jsonl");
  CHECK(metrics_of("/a/run/checkpoints/step-000001/") == "/a/run/metrics.jsonl");
  CHECK(metrics_of("/a/run/checkpoints.previous-2/step-000001") ==
        "/a/run/checkpoints.previous-2/metrics.jsonl");
  CHECK(metrics_of("/a/kept/step-000001").empty());
}

// A run directory with the folders of these checkpoints.
void make_checkpoints(const Folder& run, const std::string& folder, const Steps& steps) {
  for (const int64_t step : steps)
    fs::create_directories(run.file(fmt::format("{}/step-{:06}", folder, step)));
}

TEST_CASE("what is newer than where a run goes on is set aside, with a copy of the metrics") {
  const Folder run;
  Quick disk;
  CHECK(set_aside(disk, run.path(), "").empty());
  CHECK(previous_folders(run.path()).empty());
  make_checkpoints(run, "checkpoints", {1, 2, 3, 4});
  run.write("metrics.jsonl", "{}\n");
  CHECK(set_aside(disk, run.path(), run.file("checkpoints/step-000004")).empty());
  const auto moved = set_aside(disk, run.path(), run.file("checkpoints/step-000002"));
  REQUIRE(moved.size() == 2);
  CHECK(moved[0].step == 4);
  CHECK(moved[0].path == run.file("checkpoints.previous/step-000004"));
  CHECK(moved[1].path == run.file("checkpoints.previous/step-000003"));
  CHECK(steps_in(run.file("checkpoints")) == Steps{2, 1});
  CHECK(steps_in(run.file("checkpoints.previous")) == Steps{4, 3});
  CHECK(read_file(run.file("checkpoints.previous/metrics.jsonl")) == "{}\n");
  CHECK(set_aside(disk, run.path(), "").size() == 2);
  CHECK(steps_in(run.file("checkpoints")).empty());
  CHECK(steps_in(run.file("checkpoints.previous-2")) == Steps{2, 1});
  make_checkpoints(run, "checkpoints", {5});
  CHECK(set_aside(disk, run.path(), run.file("checkpoints.previous/step-000004")).size() == 1);
  CHECK(steps_in(run.file("checkpoints.previous-3")) == Steps{5});
}

// On which nothing can be moved, made or removed.
class Fixed : public Quick {
 public:
  explicit Fixed(bool makes) : makes_(makes) {}
  int make_folder(const std::string& path) override {
    return makes_ ? Quick::make_folder(path) : (errno = EROFS, -1);
  }
  int rename(const std::string&, const std::string&) override { return errno = EIO, -1; }
  int remove(const std::string&) override { return errno = EIO, -1; }

 private:
  bool makes_;
};

TEST_CASE("checkpoints that cannot be set aside end the run before it begins") {
  for (const bool makes : {false, true}) {
    const Folder run;
    make_checkpoints(run, "checkpoints", {1});
    Fixed disk(makes);
    const std::string error = fmt::format(
        "checkpoints of an earlier run cannot be moved from {0} to {0}.previous: {1}; "
        "choose another folder with out=DIR",
        run.file("checkpoints"), makes ? "Input/output error" : "Read-only file system");
    CHECK_THROWS_WITH_AS(set_aside(disk, run.path(), ""), error.c_str(), Error);
    CHECK(steps_in(run.file("checkpoints")) == Steps{1});
  }
}

TEST_CASE("three folders of earlier checkpoints stay: the new one, the resumed one, the longest") {
  const auto left = [](const Steps& newest, const std::vector<CheckpointName>& moved,
                       const std::string& resumed, bool removes = true) {
    const Folder run;
    for (size_t i = 0; i < newest.size(); ++i)
      make_checkpoints(run, fmt::format("checkpoints.previous-{}", i), {newest[i], 1});
    fs::create_directory(run.file("checkpoints.previous-empty"));
    const auto in_run = [&](const std::string& path) {
      return path.empty() ? "" : run.file("checkpoints.previous-" + path);
    };
    std::vector<CheckpointName> there;
    for (const CheckpointName& c : moved) there.push_back({c.step, in_run(c.path)});
    Quick disk;
    Fixed fixed(true);
    const auto gone = forget_previous(removes ? disk : static_cast<Disk&>(fixed), run.path(), there,
                                      in_run(resumed));
    std::string out;
    for (const std::string& path : previous_folders(run.path())) {
      CHECK(std::ranges::find(gone, path) == gone.end());
      out += path.substr(run.file("checkpoints.previous-").size()) + " ";
    }
    return out;
  };
  CHECK(left({2}, {}, "") == "0 empty ");
  CHECK(left({2, 9, 8, 7}, {}, "") == "1 2 3 ");
  CHECK(left({2, 9, 8, 7}, {{2, "0/step-000002"}}, "") == "0 1 2 ");
  CHECK(left({2, 3, 8, 7}, {{3, "1/step-000003"}}, "0/step-000002") == "0 1 2 ");
  CHECK(left({2, 9, 8, 7}, {}, "", false) == "0 1 2 3 empty ");
}

}  // namespace
}  // namespace dpt
