#include "train/run_directories.h"

#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include "data/folder.h"
#include "train/quick_disk.h"

namespace dpt {
namespace {

namespace fs = std::filesystem;

// What a run has written once it has begun.
void begin_run(const std::string& run) {
  std::ofstream(run + "/spec.resolved.yaml") << "epochs: 1\n";
}

TEST_CASE("numbers go up from the highest there is, whatever it is") {
  const Folder folder;
  Quick disk;
  const std::string base = folder.file("runs/mine");
  CHECK(make_next_run(base, disk) == base + "/1");
  CHECK(make_next_run(base, disk) == base + "/2");
  folder.write("runs/mine/7", "a file");
  fs::create_directory(base + "/012");
  fs::create_directory(base + "/9x");
  CHECK(make_next_run(base, disk) == base + "/8");
  fs::remove(base + "/1");
  CHECK(make_next_run(base, disk) == base + "/9");
  const std::string error =
      error_of(Fault::failed, [&] { make_next_run(folder.file("runs/mine/7"), disk); });
  CHECK_MESSAGE(has(error, "choose another with out=DIR"), error);
}

TEST_CASE("runs that start at the same moment have numbers of their own; latest is the highest") {
  const Folder folder;
  const std::string base = folder.file("runs/mine");
  std::vector<std::string> got(8);
  {
    std::vector<std::jthread> threads;
    for (std::string& run : got)
      threads.emplace_back([&run, &base] {
        Quick disk;
        run = make_next_run(base, disk);
        begin_run(run);
      });
  }
  CHECK(std::set<std::string>(got.begin(), got.end()).size() == got.size());
  link_latest(base);
  CHECK(fs::read_symlink(base + "/latest") == "8");
}

TEST_CASE("latest is a relative link to the newest run that has begun") {
  const Folder folder;
  Quick disk;
  const std::string base = folder.file("runs/mine");
  CHECK(newest_run(base) == base);
  begin_run(make_next_run(base, disk));
  link_latest(base);
  CHECK(fs::read_symlink(base + "/latest") == "1");
  CHECK(newest_run(base) == base + "/1");
  make_next_run(base, disk);
  link_latest(base);
  CHECK(newest_run(base + "/") == base + "/1");  // the second has not begun
  begin_run(base + "/2");
  link_latest(base);
  CHECK(newest_run(base) == base + "/2");
  CHECK(newest_run(base + "/1") == base + "/1");
  CHECK(newest_run(base + "/latest") == base + "/latest");
  CHECK(run_number(base, base + "/latest") == 2);
  CHECK(run_number(base, base + "/1/") == 1);
  CHECK_FALSE(run_number(base, base).has_value());
  CHECK_FALSE(run_number(folder.path(), base + "/1").has_value());
  // Only the run that was linked is gone, or links are.
  fs::remove_all(base + "/2");
  CHECK(newest_run(base) == base + "/1");
  fs::remove(base + "/latest");
  CHECK(newest_run(base) == base + "/1");
  CHECK(fs::directory_entry(base + "/latest").exists() == false);
  // What somebody has put there is left alone.
  folder.write("runs/mine/latest/notes.txt", "mine");
  link_latest(base);
  CHECK(read_file(base + "/latest/notes.txt") == "mine");
  CHECK(newest_run(base) == base + "/1");
}

TEST_CASE("a run without a number is found where there are no others") {
  const Folder folder;
  Quick disk;
  folder.write("runs/old/model.safetensors", "weights");
  const std::string base = folder.file("runs/old");
  CHECK(holds_run(base));
  CHECK(newest_run(base) == base);
  begin_run(make_next_run(base, disk));
  CHECK(newest_run(base) == base + "/1");
  CHECK_FALSE(holds_run(folder.file("runs")));
}

}  // namespace
}  // namespace dpt
