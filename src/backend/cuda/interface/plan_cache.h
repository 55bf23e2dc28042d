// Plans of cuDNN in the user's cache folder: making those of ResNet-50 takes longer than training
// its first hundred steps. A run depends on none of them: what is missing is made and kept, what
// cannot be kept is made at the next start again.
#pragma once

#include <atomic>
#include <cstddef>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "base/units.h"

namespace dpt::cuda {

// Files of one folder, one for each plan. Thread: any, several at once; processes may share the
// folder. A file that is damaged, of another user, or of something else is ignored with a warning,
// once in a process, and the next write replaces it.
class PlanCache {
 public:
  static constexpr size_t kMostBytes = 256 * kMiB;

  // The user's folder: $DPTRAIN_PLAN_CACHE, else ${XDG_CACHE_HOME:-~/.cache}/dptrain/plans; none
  // where neither is known, with DPTRAIN_PLAN_CACHE=off, and where DPTRAIN_NO_CACHE is set.
  static std::string folder_of_user();

  // folder: it is made, for its user alone, at the first write; empty: nothing is kept. most_bytes:
  // of all files; the plans that were used least recently are removed first.
  explicit PlanCache(std::string folder, size_t most_bytes = kMostBytes)
      : folder_(std::move(folder)), most_bytes_(most_bytes) {}

  // Returns what was written with this key. The key says all that a plan depends on: the work, the
  // versions of the libraries, the GPU.
  std::optional<std::string> read(std::string_view key);
  // Written aside and renamed, so a reader sees the old file or the new one.
  void write(std::string_view key, std::string_view plan);
  void remove(std::string_view key);
  // Removes a plan that cuDNN cannot restore or execute, and warns.
  void reject(std::string_view key, std::string_view why);

 private:
  std::string path_of(std::string_view key) const;
  bool usable_folder();
  void warn(const std::string& path, std::string_view why);
  void remove_oldest();

  const std::string folder_;
  const size_t most_bytes_;
  std::atomic<bool> warned_ = false;
  std::mutex mutex_;  // of what follows
  size_t writes_ = 0;
};

}  // namespace dpt::cuda
