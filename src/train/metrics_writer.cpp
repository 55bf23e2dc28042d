#include "train/metrics_writer.h"

#include <cerrno>
#include <chrono>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include "base/disk.h"
#include "base/files.h"
#include "base/stderr.h"
#include "formats/json_text.h"

namespace dpt {
namespace {

constexpr size_t kMostSteps = 1024;  // recorded before they are written

std::string metrics_file(const std::string& folder) { return folder + "/metrics.jsonl"; }

double utc_s() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace

double samples_per_second(const Session& session, const EpochRecord& r) {
  return static_cast<double>(session.train.size()) * static_cast<double>(r.steps) /
         static_cast<double>(session.batches->steps()) / r.seconds;
}

MetricsWriter::MetricsWriter(const Session& session, std::string folder, std::string run,
                             bool goes_on)
    : session_(session), folder_(std::move(folder)), run_(std::move(run)) {
  open(goes_on);
  if (session_.spec.log.every > 0) steps_.reserve(kMostSteps);
}

MetricsWriter::~MetricsWriter() {
  if (!file_) return;
  write_steps();  // the steps before an error help to explain it
  std::fclose(file_);
}

// O_NOFOLLOW: the file belongs to the run directory, so a symbolic link is replaced, not followed.
void MetricsWriter::open(bool goes_on) {
  const std::string path = metrics_file(folder_);
  if (!goes_on) std::remove(path.c_str());
  const int fd = ::open(path.c_str(),
                        O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666);
  if (fd >= 0) file_ = fdopen(fd, "a");
  if (!file_) fail_writing(path);
  std::fseek(file_, 0, SEEK_END);
  bytes_ = std::ftell(file_);
}

void MetricsWriter::step(const StepRecord& record) {
  if (!file_) return;
  steps_.push_back({record, utc_s()});
  if (steps_.size() == kMostSteps) write_steps();
}

void MetricsWriter::write_steps() {
  std::string lines;
  for (const auto& [r, time] : steps_) {
    lines += fmt::format(R"({{"step": {}, "epoch": {}, "loss": {}, "lr": {:.9g})", r.step, r.epoch,
                         json_number(r.loss), r.lr);
    if (session_.scaler.on)
      lines += fmt::format(R"(, "loss_scale": {:.9g}, "skipped": {})", r.scale, r.skipped);
    if (session_.spec.clip.max_norm) lines += fmt::format(R"(, "norm": {})", json_number(r.norm));
    lines += fmt::format(R"(, "time": {:.3f}, "run": "{}"}})"
                         "\n",
                         time, run_);
  }
  steps_.clear();
  std::fputs(lines.c_str(), file_);
}

void MetricsWriter::epoch(const EpochRecord& r) {
  if (!file_) return;
  write_steps();
  std::string line = fmt::format(
      R"({{"epoch": {}, "loss": {}, "seconds": {:.6f}, "steps": {}, "lr": {:.9g}, )"
      R"("samples_per_second": {:.1f})",
      r.epoch, json_number(r.loss), r.seconds, r.steps, r.lr, samples_per_second(session_, r));
  if (r.evaluation) {
    line += fmt::format(R"(, "test_loss": {})", json_number(r.evaluation->loss));
    if (r.evaluation->accuracy >= 0)
      line += fmt::format(R"(, "test_accuracy": {:.6f})", r.evaluation->accuracy);
  }
  if (session_.scaler.on)
    line += fmt::format(R"(, "loss_scale": {:.9g}, "skipped_steps": {})", r.scale, r.skipped);
  line += fmt::format(R"(, "time": {:.3f}, "run": "{}"}})"
                      "\n",
                      utc_s(), run_);
  std::fputs(line.c_str(), file_);  // unlike fmt::print, it does not throw
  flush();
}

// A full disk must not cost the weights: warns once and continues without the file.
int64_t MetricsWriter::flush() {
  if (!file_) return bytes_;
  write_steps();
  if (std::fflush(file_) == 0 && !std::ferror(file_)) {
    bytes_ = std::ftell(file_);
    look_for_file();
    return bytes_;
  }
  print_stderr("{} cannot be written any more ({}); the run goes on without it\n",
               metrics_file(folder_), std::generic_category().message(errno));
  std::fclose(std::exchange(file_, nullptr));
  return bytes_;
}

// If the file was removed or moved, maybe with the run directory, whatever is written to it would
// be lost: warns and starts a new file.
void MetricsWriter::look_for_file() {
  const std::string path = metrics_file(folder_);
  struct stat open_one {};
  struct stat named {};
  if (::fstat(fileno(file_), &open_one) != 0) return;
  if (::lstat(path.c_str(), &named) == 0 && open_one.st_ino == named.st_ino &&
      open_one.st_dev == named.st_dev)
    return;
  std::fclose(std::exchange(file_, nullptr));
  Disk disk;
  make_folders(disk, folder_);
  try {
    open(true);  // append: if a file exists again, it is not ours to remove
    print_stderr("{} was removed or moved during the run; a new one begins here\n", path);
  } catch (const Error& e) {
    print_stderr("{} was removed or moved during the run, and {}; the run goes on without it\n",
                 path, e.what());
  }
}

}  // namespace dpt
