#include "train/run_folder.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <vector>

#include <fmt/format.h>

#include "base/fail.h"
#include "base/files.h"
#include "train/checkpoints.h"

namespace dpt {
namespace {

namespace fs = std::filesystem;

// Leaves so many bytes of a file, and of these whole lines.
void cut(const std::string& path, int64_t bytes) {
  std::error_code error;
  auto size = static_cast<int64_t>(fs::file_size(path, error));
  if (error) return;
  size = std::min(size, bytes);
  std::ifstream in(path, std::ios::binary);
  while (size > 0 && in.seekg(size - 1).get() != '\n') --size;
  fs::resize_file(path, static_cast<uintmax_t>(size), error);
  if (error)
    fail(Fault::failed, "{} can't be written: {}; choose another folder with out=DIR", path,
         error.message());
}

// What stood in metrics.jsonl at the checkpoint; what came after it comes again.
void continue_metrics(const std::string& folder, const Resume& resume) {
  const std::string to = folder + "/metrics.jsonl";
  const std::string from = metrics_of(resume.path);
  std::error_code error;
  if (from.empty() || !fs::exists(from, error)) {
    fmt::print(stderr, "there is no metrics.jsonl of {}: {} begins with what is trained now\n",
               resume.path, to);
    fs::remove(to, error);
    return;
  }
  if (!fs::equivalent(from, to, error) &&
      !fs::copy_file(from, to, fs::copy_options::overwrite_existing, error))
    fail(Fault::failed, "{} can't be copied to {}: {}", from, to, error.message());
  cut(to, resume.state.metrics_bytes);
}

}  // namespace

void begin_run_folder(const std::string& folder, const std::string& resolved_spec,
                      const Resume* resume, Disk& disk) {
  write_text(folder + "/spec.resolved.yaml", resolved_spec, "; choose another folder with out=DIR");
  const std::vector<CheckpointName> others = set_aside(disk, folder, resume ? resume->path : "");
  if (!others.empty())
    fmt::print(stderr,
               "{} checkpoint{} of an earlier run {} now in {}; --resume {} goes on from the "
               "newest\n",
               others.size(), others.size() == 1 ? "" : "s", others.size() == 1 ? "is" : "are",
               fs::path(others[0].path).parent_path().string(), others[0].path);
  if (resume) continue_metrics(folder, *resume);
}

}  // namespace dpt
