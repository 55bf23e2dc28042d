#include "train/metrics_writer.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <string_view>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/count.h"
#include "base/files.h"
#include "base/stderr.h"
#include "train/evaluation_text.h"

namespace dpt {
namespace {

constexpr int kDigits = 9;  // identify a float
constexpr int kDecimalsOfShare = 4, kDecimalsOfTime = 3;
constexpr size_t kMostSteps = 1024;  // kept before they are written
constexpr size_t kMostPending = size_t{1} << 20;
constexpr double kFlushInterval = 1;  // seconds: so late does `dptrain watch` see a step

std::string metrics_file(const std::string& folder) { return folder + "/metrics.jsonl"; }

// Device and inode of what has this name, a link's own; zeros: nothing has.
std::pair<dev_t, ino_t> id_of(const std::string& path) {
  struct stat named {};
  if (::lstat(path.c_str(), &named) != 0) return {};
  return {named.st_dev, named.st_ino};
}

// "1 record is"
std::string records_are(int64_t n) {
  return n == 0 ? "no record is" : counted(n, "record is", "records are");
}

int64_t lines_in(std::string_view text) { return std::ranges::count(text, '\n'); }

double utc_s() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace

double samples_per_second(const SessionData& data, const SessionBatches& batches,
                          const EpochRecord& r) {
  return static_cast<double>(data.train_samples()) * static_cast<double>(r.steps) /
         static_cast<double>(batches.train->steps()) / r.seconds;
}

MetricsWriter::MetricsWriter(const Session& session, std::string folder, std::string run,
                             const std::optional<TensorBoardLog::Start>& resumed)
    : session_(session),
      folder_(std::move(folder)),
      run_(std::move(run)),
      lock_id_(id_of(folder_ + "/.lock")),
      flushed_s_(utc_s()),
      results_(folder_) {
  open(resumed.has_value());
  if (!resumed) remove_event_files(folder_);
  std::remove((folder_ + "/report.html").c_str());  // of an earlier run, or of this one's beginning
  results_.restore();
  if (session_.settings.spec.log.tensorboard) events_.emplace(folder_, resumed);
  if (session_.settings.spec.log.every > 0) steps_.reserve(kMostSteps);
}

MetricsWriter::~MetricsWriter() {
  flush();  // records before an error are what explains it
  if (!pending_.empty())
    print_stderr("{}; {} missing from it\n", problem_, records_are(lost_ + lines_in(pending_)));
  close_file();
}

void MetricsWriter::close_file() {
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
}

// O_NOFOLLOW: the file belongs to the run directory, so a symbolic link is replaced, not followed.
void MetricsWriter::open(bool append) {
  const std::string path = metrics_file(folder_);
  if (!append) std::remove(path.c_str());
  fd_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC,
               0666);
  if (fd_ < 0) fail_writing(path);
  bytes_ = ::lseek(fd_, 0, SEEK_END);
}

void MetricsWriter::step(const StepRecord& record) {
  const double now = utc_s();
  steps_.push_back({record, now});
  if (steps_.size() == kMostSteps || now - flushed_s_ >= kFlushInterval) flush();
}

void MetricsWriter::format_steps() {
  for (const auto& [r, time] : steps_) {
    Json record = {{"step", r.step},
                   {"epoch", r.epoch},
                   {"loss", Json::rounded(r.loss, kDigits)},
                   {"lr", Json::rounded(r.lr, kDigits)}};
    if (session_.precision.scaler.on) {
      record.add("loss_scale", Json::rounded(r.scale, kDigits));
      record.add("skipped", r.skipped);
    }
    if (session_.settings.spec.clip.max_norm) record.add("norm", Json::rounded(r.norm, kDigits));
    if (r.noise_scale) record.add("noise_scale", Json::rounded(*r.noise_scale, kDigits));
    record.add("data_wait", Json::decimals(r.data_wait, kDecimalsOfShare));
    record.add("time", Json::decimals(time, kDecimalsOfTime));
    record.add("run", run_);
    // They are last, because readers drop the end of very long records (kMostRecordBytes).
    if (!r.grad_norms.empty()) record.add("grad_norms", norms_of(r.grad_norms));
    record.append_to(pending_);
    pending_ += '\n';
  }
  steps_.clear();
}

Json MetricsWriter::norms_of(const std::vector<double>& norms) const {
  const Graph& graph = session_.model.graph;
  Json out = Json::object();
  size_t next = 0;
  for (size_t p = 0; p < graph.parameters.size() && next < norms.size(); ++p)
    if (graph.gradients[p] != kNoValue)
      out.add(graph[graph.parameters[p]].name, Json::rounded(norms[next++], kDigits));
  return out;
}

void MetricsWriter::epoch(const EpochRecord& r, std::optional<double> evaluation_s) {
  constexpr int kDecimalsOfSeconds = 6;
  format_steps();
  Json record = {{"epoch", r.epoch},
                 {"loss", Json::rounded(r.loss, kDigits)},
                 {"seconds", Json::decimals(r.seconds, kDecimalsOfSeconds)},
                 {"steps", r.steps},
                 {"lr", Json::rounded(r.lr, kDigits)},
                 {"samples_per_second",
                  Json::decimals(samples_per_second(session_.data, session_.batches, r), 1)}};
  if (r.evaluation) add_evaluation(record, session_.data.evaluated_set(), *r.evaluation);
  if (evaluation_s)
    record.add("evaluation_seconds", Json::decimals(*evaluation_s, kDecimalsOfSeconds));
  if (session_.precision.scaler.on) {
    record.add("loss_scale", Json::rounded(r.scale, kDigits));
    record.add("skipped_steps", r.skipped);
  }
  record.add("data_wait", Json::decimals(r.data_wait, kDecimalsOfShare));
  add(std::move(record));
}

void MetricsWriter::evaluation(const EvaluationRecord& r) {
  format_steps();
  Json record = {{"evaluation", r.evaluation}, {"step", r.step}, {"epoch", r.epoch}};
  add_evaluation(record, session_.data.evaluated_set(), r.result);
  add(std::move(record));
}

void MetricsWriter::final_test(const FinalRecord& r) {
  format_steps();
  Json record = {{"final", true}, {"step", r.step}, {"epoch", r.epoch}};
  add_evaluation(record, "test", r.result);
  add(std::move(record));
}

void MetricsWriter::stopped_early() {
  format_steps();
  add({{"stopped_early", true}});
}

// Ends a record with its time and run, and writes it.
void MetricsWriter::add(Json record) {
  record.add("time", Json::decimals(utc_s(), kDecimalsOfTime));
  record.add("run", run_);
  record.append_to(pending_);
  pending_ += '\n';
  flush();
}

// A full disk is no reason to lose the weights: the run continues, and later records may fit.
int64_t MetricsWriter::flush() {
  format_steps();
  look_for_file();
  const std::string added = pending_.substr(passed_);
  const bool written = fd_ >= 0 && write_pending();
  if (!written) drop_records();
  passed_ = pending_.size();
  pass_on(added);
  flushed_s_ = utc_s();
  if (!written) return bytes_;
  if (std::exchange(failing_, false))
    print_stderr("{} can be written again; {} missing from it\n", metrics_file(folder_),
                 records_are(lost_));
  lost_ = 0;
  return bytes_;
}

int64_t MetricsWriter::sync(Disk& disk) {
  const int64_t bytes = flush();
  if (fd_ < 0) return bytes;
  if (disk.sync(fd_) != 0) {
    fail_once(fmt::format("{} cannot be written: {}", metrics_file(folder_),
                          std::generic_category().message(errno)));
    return bytes;
  }
  results_.sync(disk);
  sync_names(disk, folder_);
  return bytes;
}

void MetricsWriter::pass_on(std::string_view lines) {
  while (!lines.empty()) {
    const std::string_view line = lines.substr(0, lines.find('\n'));
    results_.add(line);
    if (events_) events_->add(line);
    lines.remove_prefix(line.size() + 1);
  }
  if (events_) events_->flush();
}

// Whether all is in the file. What was written of a line that did not fit is cut off again.
bool MetricsWriter::write_pending() {
  size_t written = 0;
  int error = 0;
  while (written < pending_.size() && error == 0) {
    const ssize_t n = ::write(fd_, pending_.data() + written, pending_.size() - written);
    if (n > 0)
      written += static_cast<size_t>(n);
    else if (n == 0 || errno != EINTR)
      error = n == 0 ? ENOSPC : errno;
  }
  const size_t lines = written == 0 ? 0 : pending_.rfind('\n', written - 1) + 1;  // npos + 1 is 0
  bytes_ += static_cast<int64_t>(lines);
  // Where it cannot be cut off, the rest of the line follows it.
  const bool cut = lines == written || ::ftruncate(fd_, bytes_) == 0;
  pending_.erase(0, cut ? lines : written);
  if (error == 0) return true;
  fail_once(fmt::format("{} cannot be written: {}", metrics_file(folder_),
                        std::generic_category().message(error)));
  return false;
}

void MetricsWriter::fail_once(const std::string& problem) {
  problem_ = problem;
  if (!std::exchange(failing_, true))
    print_stderr("{}; the run continues and tries again with each epoch\n", problem);
}

// Epochs are what `dptrain runs` reads.
void MetricsWriter::drop_records() {
  if (pending_.size() <= kMostPending) return;
  std::string kept;
  for (size_t at = 0; at < pending_.size();) {
    const size_t end = pending_.find('\n', at) + 1;
    const std::string_view line = std::string_view(pending_).substr(at, end - at);
    if (line.starts_with(R"({"step")"))
      ++lost_;
    else
      kept += line;
    at = end;
  }
  const size_t excess = kept.size() - std::min(kept.size(), kMostPending / 2);
  const size_t begin = excess == 0 ? 0 : kept.find('\n', excess - 1) + 1;
  lost_ += lines_in(std::string_view(kept).substr(0, begin));
  pending_ = kept.substr(begin);
}

// Where the file was removed or moved, maybe with the run directory, nobody would find what is
// written to it: says so, and begins a new one.
void MetricsWriter::look_for_file() {
  const std::string path = metrics_file(folder_);
  if (fd_ >= 0) {
    struct stat opened {};
    if (::fstat(fd_, &opened) != 0 || id_of(path) == std::pair(opened.st_dev, opened.st_ino))
      return;
    close_file();
  }
  try {
    reopen();
    print_stderr("{} was removed or moved during the run; a new one was started\n", path);
  } catch (const Error& e) {
    close_file();
    fail_once(fmt::format("{} was removed or moved during the run, and {}", path, e.what()));
  }
}

// Whoever removes a run directory removes its lock: another run could write there, too.
void MetricsWriter::reopen() {
  Disk disk;
  make_folders(disk, folder_);
  const std::string path = folder_ + "/.lock";
  if (const FileId there = id_of(path); there == FileId() || there != lock_id_) {
    lock_.reset();
    lock_.emplace(folder_);
    lock_id_ = id_of(path);
  }
  open(true);  // maybe there is one again, which is not ours to remove
}

}  // namespace dpt
