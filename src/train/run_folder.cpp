#include "train/run_folder.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include "base/count.h"
#include "base/fail.h"
#include "base/files.h"
#include "base/stderr.h"
#include "base/units.h"
#include "checkpoint/store.h"
#include "train/best_weights.h"
#include "train/metrics_file.h"

namespace dpt {
namespace {

namespace fs = std::filesystem;

// Warns if metrics.jsonl ends before the records that the checkpoint counts on, as it may after a
// power cut.
void warn_of_missing_records(const std::string& path, const Resume& resume) {
  std::error_code error;
  const auto there = static_cast<int64_t>(fs::file_size(path, error));
  const int64_t missing = resume.state.metrics_bytes - there;
  if (error || missing <= 0) return;
  int64_t epoch = 0;
  std::ifstream in(path, std::ios::binary);
  read_lines(in, [&](std::string_view line, int64_t) {
    const std::optional<Json> record = record_of(line);
    if (const auto at = record ? number_at(*record, "epoch") : std::nullopt)
      epoch = std::max(epoch, static_cast<int64_t>(*at));
  });
  print_stderr(
      "{} lacks {} of the records up to the checkpoint of step {}: it ends in epoch {}, and the "
      "checkpoint is of epoch {}; they were lost, as in a power cut, and stay missing\n",
      path, counted(missing, "byte"), resume.state.step, epoch,
      resume.state.epoch + (resume.state.of_epoch > 0 ? 1 : 0));
}

// Truncates a file to at most `bytes`, and to complete lines.
void cut(const std::string& path, int64_t bytes) {
  std::error_code error;
  auto size = static_cast<int64_t>(fs::file_size(path, error));
  if (error) return;
  size = std::min(size, bytes);
  std::ifstream in(path, std::ios::binary);
  while (size > 0 && in.seekg(size - 1).get() != '\n') --size;
  fs::resize_file(path, static_cast<uintmax_t>(size), error);
  if (error)
    fail(Fault::failed, "{} cannot be written: {}; choose another folder with out=DIR", path,
         error.message());
}

// The largest number of checkpoints that will be added to the folder at the same time.
size_t new_checkpoints(const Session& s, const std::string& folder, const Resume* resume) {
  const SaveSpec& save = s.settings.spec.save;
  if (!save.on) return 0;
  int64_t written = 1;  // after the last step
  if (save.every_epochs > 0) written += s.length.epochs / save.every_epochs;
  if (save.every_steps > 0) written += s.length.steps / save.every_steps;
  // Checkpoints by time are not counted: if the disk fills up, the oldest makes room for a new one.
  const auto most = static_cast<size_t>(std::min(written, save.keep + 1));
  size_t there = 0;
  std::error_code error;
  const std::string own = checkpoint_folder(folder);
  if (resume && fs::equivalent(fs::path(resume->path).parent_path(), own, error))
    for (const CheckpointName& c : checkpoints_in(own)) there += c.step <= resume->state.step;
  return most - std::min(there, most - 1);
}

// Restores metrics.jsonl as it was at the checkpoint; records after that are written again.
void continue_metrics(const std::string& folder, const Resume& resume) {
  const std::string to = folder + "/metrics.jsonl";
  const std::string from = metrics_of(resume.path);
  std::error_code error;
  if (from.empty() || !fs::exists(from, error)) {
    print_stderr("the metrics.jsonl of {} is missing: {} starts with this part of the run\n",
                 resume.path, to);
    fs::remove(to, error);
    return;
  }
  if (!fs::equivalent(from, to, error) ||
      fs::is_symlink(to, error)) {  // don't write through a link
    const std::string copy = fmt::format("{}/.aside-metrics", folder);
    fs::remove(copy, error);
    if (!fs::copy_file(from, copy, error))
      fail(Fault::failed, "{} cannot be copied to {}: {}", from, to, error.message());
    fs::rename(copy, to, error);
    if (error) fail(Fault::failed, "{} cannot be replaced: {}", to, error.message());
  }
  warn_of_missing_records(to, resume);
  cut(to, resume.state.metrics_bytes);
}

}  // namespace

void make_run_folder(const std::string& folder, Disk& disk) {
  std::string path = folder;
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  const std::string why =
      make_folders(disk, path) == 0 ? "" : std::generic_category().message(errno);
  std::error_code error;
  if (!fs::is_directory(path, error))  // a folder that cannot be synced will do
    fail(Fault::failed, "the run directory {} cannot be created: {}; choose another with out=DIR",
         path, why.empty() ? "a file with this name exists" : why);
}

void check_disk_space(const Session& s, const std::string& folder, const Resume* resume,
                      Disk& disk) {
  const int64_t free_bytes = disk.free_bytes(folder);
  const size_t weights = s.model.layout.total * sizeof(float);
  const size_t states =
      static_cast<size_t>(s.settings.states()) * s.model.layout.trainable * sizeof(float);
  const size_t checkpoints = new_checkpoints(s, folder, resume);
  const size_t best = metric_of_best(s.settings.spec, s.data).empty() ? 0 : weights;
  const size_t needed = weights + best + checkpoints * (weights + states);
  if (free_bytes < 0 || static_cast<size_t>(free_bytes) >= needed) return;
  const std::string beside = checkpoints == 0   ? ""
                             : checkpoints == 1 ? " and a checkpoint"
                                                : fmt::format(" and {} checkpoints", checkpoints);
  fail(Fault::failed,
       "{} has room for {:.1f} MiB, but the weights{} take {:.1f} MiB; free some disk space, "
       "{}{}choose another folder with out=DIR",
       folder, static_cast<double>(free_bytes) / kMiB, beside, static_cast<double>(needed) / kMiB,
       checkpoints > 2 ? "lower save.keep, " : "",
       checkpoints > 0 ? "write `save: false`, or " : "or ");
}

void begin_run_folder(const std::string& folder, const std::string& resolved_spec,
                      const Resume* resume, Disk& disk) {
  UnsyncedDisk whole;
  // If nothing is left to do, the weights belong to the spec that is already there.
  if (!resume || !resume->complete)
    write_file(whole, folder + "/spec.resolved.yaml", resolved_spec);
  const std::vector<CheckpointName> others = set_aside(disk, folder, resume ? resume->path : "");
  if (!others.empty())
    print_stderr(
        "{} of an earlier run {} kept in {} until this run has its own; to continue from the "
        "newest, use --resume {}\n",
        counted(others.size(), "checkpoint"), others.size() == 1 ? "is" : "are",
        fs::path(others[0].path).parent_path().string(), others[0].path);
  for (const std::string& gone : forget_previous(disk, folder, others, resume ? resume->path : ""))
    print_stderr("removed {}: only three folders of earlier checkpoints are kept\n", gone);
  if (resume) continue_metrics(folder, *resume);
  begin_best_weights(folder, resume ? resume->path : "");
  std::error_code ignored;
  if (!resume) fs::remove(folder + "/confusion_matrix.csv", ignored);
  fs::remove(failure_file(folder), ignored);
}

}  // namespace dpt
