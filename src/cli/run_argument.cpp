#include "cli/run_argument.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "base/fail.h"
#include "base/stderr.h"
#include "cli/spec_argument.h"
#include "train/run_directories.h"
#include "train/run_summary.h"

namespace dpt {
namespace {

namespace fs = std::filesystem;

bool is_run(const std::string& path, const char* other) {
  std::error_code error;
  return fs::exists(path + "/spec.resolved.yaml", error) ||
         fs::exists(path + "/metrics.jsonl", error) ||
         (other && fs::exists(fs::path(path) / other, error));
}

std::string newest_below(const std::string& directory) {
  std::string out;
  fs::file_time_type newest = fs::file_time_type::min();
  for (const std::string& run : find_runs(directory))
    for (const char* file : {"/spec.resolved.yaml", "/metrics.jsonl"}) {
      std::error_code error;
      const auto time = fs::last_write_time(run + file, error);
      if (error || time < newest) continue;
      newest = time;
      out = run;
    }
  return out;
}

}  // namespace

std::vector<std::string> runs_named(const std::string& beginning) {
  const std::string folder = beginning.substr(0, beginning.rfind('/') + 1);
  std::vector<std::string> out;
  std::error_code error;
  for (fs::directory_iterator at("runs/" + folder, error), end; !error && at != end;
       at.increment(error))
    if (!fs::is_symlink(at->path(), error) && is_run(newest_run(at->path().string()), nullptr))
      out.push_back(folder + at->path().filename().string());
  std::ranges::sort(out, natural_less);
  return out;
}

std::string find_run(const std::string& given, const char* other) {
  std::error_code error;
  if (given.empty()) {
    std::string run = fs::is_directory("runs", error) ? newest_below("runs") : "";
    if (run.empty())
      fail(Fault::data, "found no run in runs/; name a run directory, such as runs/NAME/3");
    print_stderr("the newest run is {}\n", run);
    return run;
  }
  std::string folder = given;
  if (!fs::is_directory(folder, error) && fs::is_directory("runs/" + given, error))
    folder = "runs/" + given;
  while (folder.size() > 1 && folder.ends_with('/')) folder.pop_back();
  if (!fs::is_directory(folder, error))
    fail(Fault::data,
         "{} is not a directory; name a run directory, such as runs/NAME or runs/NAME/3", given);
  std::string run = named_run(folder);
  // `dptrain init shapes` makes runs/shapes of the data in shapes/.
  if (!is_run(run, other) && fs::is_directory("runs/" + given, error))
    run = named_run("runs/" + given);
  if (is_run(run, other)) return run;
  for (const std::string& place : {folder, "runs/" + given}) {
    const std::string inside = fs::is_directory(place, error) ? newest_below(place) : "";
    if (inside.empty()) continue;
    fail(Fault::data,
         "{0} is no run but contains runs, such as {1}: name one (`dptrain runs {0}` lists them)",
         place, inside);
  }
  fail(Fault::data,
       "{} holds no run: it has neither a spec.resolved.yaml nor a metrics.jsonl; runs without "
       "out=DIR are in runs/NAME",
       folder);
}

}  // namespace dpt
