// Plans that are kept on disk: hits, misses, damage, strangers, several processes.
#include "backend/cuda/interface/plan_cache.h"

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/files.h"
#include "data/folder.h"

namespace dpt::cuda {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> files_in(const std::string& folder) {
  std::vector<fs::path> out;
  for (const auto& entry : fs::directory_iterator(folder)) out.push_back(entry.path());
  return out;
}

template <class Body>
std::string stderr_of(const Folder& folder, Body body) {
  const int kept = ::dup(STDERR_FILENO);
  const int err = ::open(folder.file("err").c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0600);
  ::dup2(err, STDERR_FILENO);
  body();
  ::dup2(kept, STDERR_FILENO);
  ::close(kept);
  ::close(err);
  return read_file(folder.file("err"));
}

class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) {
    if (const char* const before = std::getenv(name)) before_ = before;
    value ? setenv(name, value, 1) : unsetenv(name);
  }
  ~Variable() { before_ ? setenv(name_, before_->c_str(), 1) : unsetenv(name_); }

 private:
  const char* name_;
  std::optional<std::string> before_;
};

TEST_CASE("a plan is found by its key alone, also by another process") {
  const Folder folder;
  const std::string plans = folder.file("new/plans");
  PlanCache first(plans), second(plans);
  CHECK(!first.read("a norm"));
  CHECK(!fs::exists(plans));  // reading makes nothing
  const std::string plan("a\0b\nc", 5);
  first.write("a norm", plan);
  CHECK(second.read("a norm") == plan);
  CHECK(!second.read("a norm "));
  CHECK(!second.read(""));
  second.write("a norm", "another");
  CHECK(first.read("a norm") == "another");
  CHECK(files_in(plans).size() == 1);
  struct stat s {};
  REQUIRE(::stat(plans.c_str(), &s) == 0);
  CHECK((s.st_mode & 0777) == 0700);
  REQUIRE(::stat(files_in(plans)[0].c_str(), &s) == 0);
  CHECK((s.st_mode & 0777) == 0600);
  PlanCache off("");
  off.write("a norm", plan);
  CHECK(!off.read("a norm"));
}

TEST_CASE("a damaged or foreign file is ignored with one warning and replaced") {
  const auto damaged = [](const std::string& what, const auto& damage) {
    CAPTURE(what);
    const Folder folder;
    PlanCache cache(folder.file("plans"));
    cache.write("key", "a plan of some length");
    cache.write("other key", "another plan");
    const auto path_of_key = [&] {
      for (const fs::path& file : files_in(folder.file("plans")))
        if (read_file(file.string()).find("another") == std::string::npos) return file;
      return fs::path();
    }();
    damage(path_of_key.string());
    const std::string said = stderr_of(folder, [&] {
      CHECK(!cache.read("key"));
      CHECK(!cache.read("key"));
    });
    CHECK(said.starts_with("warning: the cuDNN plan cache cannot use " + path_of_key.string()));
    CHECK(said.find("warning", 1) == std::string::npos);
    CHECK(said.find(what) != std::string::npos);
    CHECK(cache.read("other key") == "another plan");
    cache.write("key", "a new plan");
    CHECK(cache.read("key") == "a new plan");
  };
  const auto edit = [](auto change) {
    return [change](const std::string& path) {
      std::string all = read_file(path);
      change(all);
      write_text(path, all);
    };
  };
  damaged("it is damaged", edit([](std::string& s) { s.pop_back(); }));
  damaged("it is damaged", edit([](std::string& s) { s.back() = '!'; }));
  damaged("it is damaged", edit([](std::string& s) { s.resize(20); }));
  damaged("it is not a plan", edit([](std::string& s) { s.clear(); }));
  damaged("it is not a plan", edit([](std::string& s) {
            s = "\x7f"
                "ELF" +
                s;
          }));
  damaged("it is a plan for something else", [](const std::string& path) {
    for (const fs::path& file : files_in(fs::path(path).parent_path().string()))
      if (file != path) fs::copy_file(file, path, fs::copy_options::overwrite_existing);
  });
  damaged("other users can write to it",
          [](const std::string& path) { ::chmod(path.c_str(), 0666); });
  damaged("it cannot be opened", [](const std::string& path) {
    fs::rename(path, path + ".real");
    fs::create_symlink(path + ".real", path);
  });
}

TEST_CASE("a folder that others may write to holds no plans") {
  const Folder folder;
  PlanCache cache(folder.file("plans"));
  cache.write("key", "plan");
  ::chmod(folder.file("plans").c_str(), 0777);
  const std::string said = stderr_of(folder, [&] {
    CHECK(!cache.read("key"));
    cache.write("another", "plan");
  });
  CHECK(files_in(folder.file("plans")).size() == 1);
  CHECK(said.find("other users can write to it") != std::string::npos);
}

TEST_CASE("plans that were not used for the longest time make room") {
  const Folder folder;
  PlanCache cache(folder.file("plans"), 10000);
  const std::string plan(1000, 'p');
  using namespace std::chrono_literals;
  for (int i = 0; i < 16; ++i) {
    cache.write(fmt::format("key {}", i), plan);
    for (const fs::path& file : files_in(folder.file("plans")))  // older by an hour
      fs::last_write_time(file, fs::last_write_time(file) - 1h);
  }
  CHECK(cache.read("key 0") == plan);  // used now
  std::ofstream(folder.file("plans/mine.txt")) << std::string(100000, 'x');
  cache.write("key 16", plan);
  for (const int kept : {0, 14, 15, 16}) CHECK(cache.read(fmt::format("key {}", kept)) == plan);
  for (const int removed : {1, 2, 7}) CHECK(!cache.read(fmt::format("key {}", removed)));
  CHECK(fs::exists(folder.file("plans/mine.txt")));
  uintmax_t bytes = 0;
  for (const fs::path& file : files_in(folder.file("plans")))
    if (file.extension() == ".plan") bytes += fs::file_size(file);
  CHECK(bytes <= 10000);
}

TEST_CASE("processes write and read the same plans at the same time") {
  const Folder folder;
  const auto plan_of = [](int i) { return std::string(20000, static_cast<char>('a' + i)); };
  std::vector<pid_t> children;
  for (int child = 0; child < 4; ++child) {
    const pid_t pid = ::fork();
    REQUIRE(pid >= 0);
    if (pid != 0) {
      children.push_back(pid);
      continue;
    }
    PlanCache cache(folder.file("plans"));
    bool right = true;
    for (int i = 0; i < 200; ++i) {
      const std::string key = fmt::format("key {}", i % 5);
      const auto got = cache.read(key);
      right = right && (!got || *got == plan_of(i % 5));
      cache.write(key, plan_of(i % 5));
      right = right && cache.read(key) == plan_of(i % 5);
    }
    ::_exit(right ? 0 : 1);
  }
  for (const pid_t pid : children) {
    int status = -1;
    REQUIRE(::waitpid(pid, &status, 0) == pid);
    CHECK(status == 0);
  }
  CHECK(files_in(folder.file("plans")).size() == 5);
}

TEST_CASE("the environment names the folder of plans") {
  const Variable none("DPTRAIN_NO_CACHE", nullptr), home("HOME", "/home/me"),
      xdg("XDG_CACHE_HOME", nullptr), unset("DPTRAIN_PLAN_CACHE", nullptr);
  CHECK(PlanCache::folder_of_user() == "/home/me/.cache/dptrain/plans");
  const Variable cache("XDG_CACHE_HOME", "/cache");
  CHECK(PlanCache::folder_of_user() == "/cache/dptrain/plans");
  {
    const Variable moved("DPTRAIN_PLAN_CACHE", "/elsewhere");
    CHECK(PlanCache::folder_of_user() == "/elsewhere");
    const Variable no_cache("DPTRAIN_NO_CACHE", "1");
    CHECK(PlanCache::folder_of_user() == "");
  }
  const Variable off("DPTRAIN_PLAN_CACHE", "off");
  CHECK(PlanCache::folder_of_user() == "");
}

}  // namespace
}  // namespace dpt::cuda
