#include "train/run_directories.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <system_error>

#include <fmt/format.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/stderr.h"
#include "train/run_folder.h"

namespace dpt {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLatest = "latest";

std::string without_slash(std::string path) {
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return path;
}

// A run's number as dptrain writes it ("12"): no sign, no leading zero.
std::optional<int64_t> number_of(const std::string& name) {
  int64_t n = 0;
  const char* const end = name.data() + name.size();
  const auto [at, error] = std::from_chars(name.data(), end, n);
  constexpr int64_t kMost = 1'000'000'000;  // a larger number is somebody else's name
  if (error != std::errc() || at != end || n < 1 || n > kMost || name.starts_with('0')) return {};
  return n;
}

bool has_begun(const std::string& run) {
  std::error_code error;
  return fs::exists(run + "/spec.resolved.yaml", error);
}

// The highest run number in `base`; 0: none. begun: consider only runs that have begun.
int64_t highest(const std::string& base, bool begun) {
  int64_t out = 0;
  std::error_code error;
  for (fs::directory_iterator at(base, error), end; !error && at != end; at.increment(error))
    if (const auto n = number_of(at->path().filename().string()); n.value_or(0) > out)
      if (!begun || has_begun(at->path().string())) out = *n;
  return out;
}

}  // namespace

std::string make_next_run(const std::string& base, Disk& disk) {
  make_run_folder(base, disk);
  for (int64_t n = highest(base, false) + 1;; ++n) {
    std::string run = fmt::format("{}/{}", without_slash(base), n);
    if (disk.make_folder(run) != 0) {
      if (errno == EEXIST) continue;  // a run that started at the same moment made it
      fail(Fault::failed, "the run directory {} cannot be created: {}; choose another with out=DIR",
           run, std::generic_category().message(errno));
    }
    if (const int fd = disk.open_folder(base); fd >= 0) {
      disk.sync(fd);
      disk.close(fd);
    }
    return run;
  }
}

// Two runs that begin at the same moment may link in any order, so each checks again after linking.
void link_latest(const std::string& base) {
  const std::string link = fmt::format("{}/{}", base, kLatest);
  int64_t linked = 0;
  for (int64_t n = highest(base, true); n > linked; n = highest(base, true)) {
    const std::string aside = fmt::format("{}/.{}-{}", base, kLatest, getpid());
    std::error_code error;
    fs::remove(aside, error);
    if (::symlink(std::to_string(n).c_str(), aside.c_str()) != 0 ||
        ::rename(aside.c_str(), link.c_str()) != 0) {
      print_stderr("{} cannot be linked to {}: {}; the run continues\n", link, n,
                   std::generic_category().message(errno));
      fs::remove(aside, error);
      return;
    }
    linked = n;
  }
}

std::string newest_run(const std::string& directory) {
  std::string path = without_slash(directory);
  const std::string link = fmt::format("{}/{}", path, kLatest);
  std::error_code error;
  if (const fs::path target = fs::read_symlink(link, error); !error && has_begun(link))
    return number_of(target.string()) ? fmt::format("{}/{}", path, target.string()) : link;
  if (const int64_t n = highest(path, true); n > 0) return fmt::format("{}/{}", path, n);
  return path;
}

std::optional<int64_t> run_number(const std::string& base, const std::string& run) {
  std::error_code error;
  const fs::path path = fs::canonical(run, error);
  if (error || !fs::equivalent(path.parent_path(), base, error)) return {};
  return number_of(path.filename().string());
}

bool holds_run(const std::string& directory) {
  std::error_code error;
  return has_begun(directory) || fs::exists(directory + "/checkpoints", error) ||
         fs::exists(directory + "/model.safetensors", error);
}

}  // namespace dpt
