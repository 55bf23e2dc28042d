#include "backend/cuda/interface/plan_cache.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "base/sha256.h"
#include "base/stderr.h"
#include "base/units.h"
#include "base/write_bytes.h"

namespace dpt::cuda {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kMagic = "dptrain plan 1\n", kSuffix = ".plan", kAside = ".new";
constexpr size_t kDigits = 64;  // of a checksum
constexpr size_t kMostOfOne = 64 * kMiB;
constexpr mode_t kOthersWrite = S_IWGRP | S_IWOTH;  // whoever may write a file can choose its code
constexpr size_t kWritesBetweenScans = 16;

std::string environment(const char* name) {
  const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): nothing here sets any
  return value != nullptr ? value : "";
}

Descriptor open_file(const std::string& path, int flags) {
  return Descriptor(::open(path.c_str(), flags | O_CLOEXEC | O_NOFOLLOW, 0600));
}

bool ours(const struct stat& s) {
  return s.st_uid == ::geteuid() && (s.st_mode & kOthersWrite) == 0;
}

bool read_all(int fd, std::string& out) {
  for (size_t at = 0; at < out.size();) {
    const ssize_t n = ::read(fd, out.data() + at, out.size() - at);
    if (n <= 0) return false;
    at += static_cast<size_t>(n);
  }
  return true;
}

// Checksum of what follows it, length of the key, key, plan.
std::string contents(std::string_view key, std::string_view plan) {
  const std::string rest = fmt::format("{:016x}\n{}{}", key.size(), key, plan);
  return fmt::format("{}{}{}", kMagic, Sha256().update(std::string_view(rest)).hex(), rest);
}

// Why the content of a file is not a plan for the key; empty: it is, and becomes the plan.
std::string take_plan(std::string& all, std::string_view key) {
  const size_t front = kMagic.size() + kDigits;
  if (!all.starts_with(kMagic)) return "it is not a plan";
  const std::string_view rest = std::string_view(all).substr(std::min(front, all.size()));
  if (all.size() < front || Sha256().update(rest).hex() != all.substr(kMagic.size(), kDigits))
    return "it is damaged";
  const std::string before = fmt::format("{:016x}\n{}", key.size(), key);
  if (!rest.starts_with(before)) return "it is a plan for something else";
  all.erase(0, front + before.size());
  return "";
}

// Names of plans, and of files that a killed process left behind.
bool is_name_of_ours(const std::string& name) {
  const size_t dot = name.find('.');
  return dot == kDigits && name.find_first_not_of("0123456789abcdef") == dot &&
         (name.ends_with(kSuffix) || name.ends_with(kAside));
}

}  // namespace

std::string PlanCache::folder_of_user() {
  const std::string given = environment("DPTRAIN_PLAN_CACHE");
  if (given == "off" || !environment("DPTRAIN_NO_CACHE").empty()) return "";
  if (!given.empty()) return given;
  if (const std::string cache = environment("XDG_CACHE_HOME"); cache.starts_with('/'))
    return cache + "/dptrain/plans";
  const std::string home = environment("HOME");
  return home.empty() ? "" : home + "/.cache/dptrain/plans";
}

std::string PlanCache::path_of(std::string_view key) const {
  return fmt::format("{}/{}{}", folder_, Sha256().update(key).hex(), kSuffix);
}

std::optional<std::string> PlanCache::read(std::string_view key) {
  if (folder_.empty()) return {};
  struct stat folder {};
  if (::stat(folder_.c_str(), &folder) != 0) return {};
  if (!ours(folder)) {
    warn(folder_, "other users can write to it");
    return {};
  }
  const std::string path = path_of(key);
  const Descriptor file = open_file(path, O_RDONLY | O_NONBLOCK);
  if (!file) {
    if (errno != ENOENT) warn(path, "it cannot be opened");
    return {};
  }
  struct stat s {};
  std::string all, wrong;
  if (::fstat(file.get(), &s) != 0 || !S_ISREG(s.st_mode))
    wrong = "it is not a regular file";
  else if (!ours(s))
    wrong = "other users can write to it";
  else if (static_cast<size_t>(s.st_size) > kMostOfOne)
    wrong = "it is too large";
  else if (all.resize(static_cast<size_t>(s.st_size)); !read_all(file.get(), all))
    wrong = "it cannot be read";
  else
    wrong = take_plan(all, key);
  if (!wrong.empty()) {
    warn(path, wrong);
    return {};
  }
  ::futimens(file.get(), nullptr);  // it was used now; remove_oldest() wants to know
  return all;
}

void PlanCache::write(std::string_view key, std::string_view plan) {
  if (folder_.empty() || plan.empty() || plan.size() > kMostOfOne / 2 || !usable_folder()) return;
  const std::string path = path_of(key);
  size_t number = 0;
  {
    const std::lock_guard lock(mutex_);
    number = writes_++;
  }
  const std::string aside = fmt::format("{}.{}.{}{}", path, ::getpid(), number, kAside);
  // A process that had the same number and was killed may have left one.
  ::unlink(aside.c_str());
  bool written = false;
  if (Descriptor file = open_file(aside, O_WRONLY | O_CREAT | O_EXCL); file)
    written = write_bytes(file.get(), contents(key, plan)) == 0 && file.close();
  if (!written || ::rename(aside.c_str(), path.c_str()) != 0) {
    ::unlink(aside.c_str());
    return;
  }
  if (number % kWritesBetweenScans == 0) remove_oldest();
}

void PlanCache::remove(std::string_view key) {
  if (!folder_.empty()) ::unlink(path_of(key).c_str());
}

void PlanCache::reject(std::string_view key, std::string_view why) {
  remove(key);
  warn(path_of(key), fmt::format("cuDNN rejects it ({})", why));
}

bool PlanCache::usable_folder() {
  std::error_code ignored;
  const fs::path folder(folder_);
  if (folder.has_parent_path()) fs::create_directories(folder.parent_path(), ignored);
  ::mkdir(folder_.c_str(), 0700);
  struct stat s {};
  return ::stat(folder_.c_str(), &s) == 0 && S_ISDIR(s.st_mode) && ours(s);
}

void PlanCache::warn(const std::string& path, std::string_view why) {
  if (warned_.exchange(true)) return;
  print_stderr(
      "warning: the cuDNN plan cache cannot use {}: {}; a new plan is made. If this "
      "repeats, remove the folder {}, or set DPTRAIN_PLAN_CACHE to another folder or to off\n",
      path, why, folder_);
}

// What other processes remove or add meanwhile changes only how much stays.
void PlanCache::remove_oldest() {
  struct File {
    fs::file_time_type used;
    uintmax_t bytes;
    fs::path path;
  };
  constexpr std::chrono::hours kLeftBehind(1);
  const auto now = fs::file_time_type::clock::now();
  std::vector<File> files;
  uintmax_t bytes = 0;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(folder_, none)) {
    const std::string name = entry.path().filename().string();
    if (!is_name_of_ours(name)) continue;
    std::error_code gone;
    const File file{
        .used = entry.last_write_time(gone), .bytes = entry.file_size(gone), .path = entry.path()};
    if (gone) continue;
    if (name.ends_with(kAside)) {
      if (now - file.used > kLeftBehind) fs::remove(file.path, gone);
      continue;
    }
    bytes += file.bytes;
    files.push_back(file);
  }
  if (bytes <= most_bytes_) return;
  std::ranges::sort(files, {}, &File::used);
  for (const File& file : files) {
    if (bytes <= most_bytes_ / 4 * 3) return;
    std::error_code gone;
    fs::remove(file.path, gone);
    bytes -= file.bytes;
  }
}

}  // namespace dpt::cuda
