#include "train/reporter.h"

#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <limits>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend/cpu/half_kernels.h"
#include "base/count.h"
#include "base/disk.h"
#include "base/files.h"
#include "base/json_text.h"
#include "base/stderr.h"
#include "base/stdout.h"
#include "train/clock.h"

namespace dpt {
namespace {

constexpr size_t kMostSteps = 1024;   // kept before they are written
constexpr int64_t kMostWarnings = 5;  // of one kind, in an epoch

bool shows_bars() {
  const char* term = std::getenv("TERM");
  return isatty(STDERR_FILENO) && term && std::string_view(term) != "dumb";
}

std::string name_of_stop(int signal) {
  if (signal == SIGINT) return "Interrupted (Ctrl-C)";
  if (signal == SIGTERM) return "Stopped (SIGTERM)";
  if (signal == SIGUSR1) return "Stopped (SIGUSR1)";
  if (signal == SIGUSR2) return "Stopped (SIGUSR2)";
  return fmt::format("Stopped (signal {})", signal);
}

std::string metrics_file(const std::string& folder) { return folder + "/metrics.jsonl"; }

std::string_view kind_of(const Session& s) { return s.on_gpu() ? "GPU" : "CPU"; }

std::string lines_of_header(const Session& s) {
  const Topology& who = s.who;
  std::string out;
  if (!s.note.empty()) out += s.note + "\n";
  out += fmt::format("data: {}\n", s.train.description);
  out += fmt::format("model: {}, {} on {} with {}\n", counted(s.parameters(), "parameter"),
                     s.plan.mode,
                     who.ranks > 1     ? fmt::format("{} ranks", who.ranks)
                     : who.devices > 1 ? fmt::format("{} {} devices", who.devices, kind_of(s))
                                       : fmt::format("one {}", s.on_gpu() ? "GPU" : "CPU device"),
                     counted(who.total_workers(), "worker"));
  if (s.on_gpu() && who.replicas() > 1)
    out += fmt::format("gradients: summed by {}\n",
                       s.sums_on_host() ? "the CPUs, in the memory that they share" : "NCCL");
  if (s.precision.on())
    out += fmt::format("precision: {}{}\n", text_of(s.precision),
                       s.on_gpu() || computes_in(s.precision.half)
                           ? ""
                           : ", emulated: results of fp32 kernels are rounded");
  const int replicas = who.replicas();
  out += fmt::format("batch: {} over all replicas, {} of each replica; {} an epoch\n",
                     counted(s.global_batch, "sample"), s.global_batch / replicas,
                     counted(s.batches->steps(), "step"));
  return out;
}

}  // namespace

double unsigned_nan(double number) {
  return std::isnan(number) ? std::numeric_limits<double>::quiet_NaN() : number;
}

std::string model_file(const std::string& folder) { return folder + "/model.safetensors"; }

std::string previous_model_file(const std::string& folder) {
  return folder + "/model.previous.safetensors";
}

std::string batch_shape(const TensorDesc& one_batch, int64_t n) {
  return one_batch.shape.with(0, n).str();
}

Reporter::Reporter(const Session& session, std::string folder, bool goes_on)
    : session_(session), folder_(std::move(folder)), terminal_(shows_bars()) {
  if (folder_.empty()) return;
  open_metrics(goes_on);
  if (session_.spec.log.every > 0) steps_.reserve(kMostSteps);
}

// A file of the run directory itself: a link of that name is replaced, not written through.
void Reporter::open_metrics(bool goes_on) {
  const std::string path = metrics_file(folder_);
  if (!goes_on) std::remove(path.c_str());
  const int fd = ::open(path.c_str(),
                        O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666);
  if (fd >= 0) metrics_ = fdopen(fd, "a");
  if (!metrics_) fail_writing(path);
  std::fseek(metrics_, 0, SEEK_END);
  metrics_bytes_ = std::ftell(metrics_);
}

Reporter::~Reporter() {
  if (!metrics_) return;
  write_steps();  // those before an error are what explains it
  std::fclose(metrics_);
}

void Reporter::begin() {
  if (!folder_.empty())
    std::rename(model_file(folder_).c_str(), previous_model_file(folder_).c_str());
  print_stderr("{}", lines_of_header(session_));
  const Topology& who = session_.who;
  const int available = session_.on_gpu() ? session_.gpus.count : who.ranks * who.devices;
  if (session_.mode->processes)
    print_stdout("Number of available {}s: {}\n", kind_of(session_), available);
  if (who.devices > 1) print_stdout("Let's use {} {}s!\n", who.devices, kind_of(session_));
}

// As the DataParallel tutorial prints them: every replica inside, the whole outside.
void Reporter::shapes(const StepRows& rows) {
  const TensorDesc& x = session_.graph[session_.graph.input].desc;
  const TensorDesc& y = session_.graph[session_.graph.output].desc;
  const Topology& who = session_.who;
  std::string lines;
  for (const auto& micro : rows.micro) {
    int64_t total = 0;
    for (int replica = 0; replica <= who.replica(who.workers_per_rank() - 1); ++replica) {
      int64_t n = 0;
      for (int s = 0; s < who.shards; ++s)
        if (who.replica(who.owner(s)) == replica) n += micro[static_cast<size_t>(s)].rows.count();
      total += n;
      if (n > 0)
        lines += fmt::format("\tIn Model: input size {} output size {}\n", batch_shape(x, n),
                             batch_shape(y, n));
    }
    lines += fmt::format("Outside: input size {} output_size {}\n", batch_shape(x, total),
                         batch_shape(y, total));
  }
  write_stdout(lines);
}

void Reporter::step(const StepRecord& r) {
  if (session_.spec.log.shapes) shapes(*r.rows);
  if (r.empty && ++empty_ <= kMostWarnings) warn_of_empty(r);
  if (terminal_) bar(r);
  const int64_t every = session_.spec.log.every;
  if (!metrics_ || every == 0 || r.step % every != 0) return;
  steps_.push_back(r);
  if (steps_.size() == kMostSteps) write_steps();
}

void Reporter::warn_of_empty(const StepRecord& r) {
  clear_bar();
  print_stderr(
      "warning: epoch {}, step {}: the loss ignores all targets, so it is nan and the gradients "
      "are 0, as in PyTorch; the epoch's mean loss leaves the step out\n",
      r.epoch, r.step);
}

void Reporter::write_steps() {
  std::string lines;
  for (const StepRecord& r : steps_) {
    lines += fmt::format(R"({{"step": {}, "epoch": {}, "loss": {}, "lr": {:.9g})", r.step, r.epoch,
                         json_number(r.loss), r.lr);
    if (session_.scaler.on)
      lines += fmt::format(R"(, "loss_scale": {:.9g}, "skipped": {})", r.scale, r.skipped);
    if (session_.spec.clip.max_norm) lines += fmt::format(R"(, "norm": {})", json_number(r.norm));
    lines += "}\n";
  }
  steps_.clear();
  std::fputs(lines.c_str(), metrics_);
}

void Reporter::epoch(const EpochRecord& r) {
  clear_bar();
  if (empty_ > kMostWarnings)
    print_stderr("warning: epoch {}: the loss ignores all targets in {} more steps\n", r.epoch,
                 empty_ - kMostWarnings);
  empty_ = 0;
  std::string line =
      fmt::format("Epoch [{}/{}], Loss: {:.4f}", r.epoch, session_.epochs, unsigned_nan(r.loss));
  if (r.evaluation) {
    line += fmt::format(", Test loss: {:.4f}", unsigned_nan(r.evaluation->loss));
    if (r.evaluation->accuracy >= 0)
      line += fmt::format(", Accuracy: {:.2f} %", 100 * r.evaluation->accuracy);
  }
  if (session_.scaler.on)
    line += fmt::format(", Loss scale: {:g}, skipped steps: {}", r.scale, r.skipped);
  print_stdout("{}\n", line);
  if (r.evaluation && !std::isfinite(r.evaluation->loss))
    print_stderr(
        "epoch {}: the test loss is {}; check the test set for nan, inf and samples whose targets "
        "are all ignored\n",
        r.epoch, unsigned_nan(r.evaluation->loss));
  if (!metrics_) return;
  write_steps();
  const auto samples = static_cast<double>(session_.train.size());
  line = fmt::format(R"({{"epoch": {}, "loss": {}, "seconds": {:.6f}, "steps": {}, "lr": {:.9g}, )"
                     R"("samples_per_second": {:.1f})",
                     r.epoch, json_number(r.loss), r.seconds, r.steps, r.lr,
                     samples * static_cast<double>(r.steps) /
                         static_cast<double>(session_.batches->steps()) / r.seconds);
  if (r.evaluation) {
    line += fmt::format(R"(, "test_loss": {})", json_number(r.evaluation->loss));
    if (r.evaluation->accuracy >= 0)
      line += fmt::format(R"(, "test_accuracy": {:.6f})", r.evaluation->accuracy);
  }
  if (session_.scaler.on)
    line += fmt::format(R"(, "loss_scale": {:.9g}, "skipped_steps": {})", r.scale, r.skipped);
  std::fputs((line + "}\n").c_str(), metrics_);  // does not throw, unlike fmt::print
  flush_metrics();
}

// A full disk is no reason to lose the weights: says it once and goes on without.
void Reporter::flush_metrics() {
  if (std::fflush(metrics_) == 0 && !std::ferror(metrics_)) {
    metrics_bytes_ = std::ftell(metrics_);
    look_for_metrics();
    return;
  }
  print_stderr("{} cannot be written any more ({}); the run goes on without it\n",
               metrics_file(folder_), std::generic_category().message(errno));
  std::fclose(metrics_);
  metrics_ = nullptr;
}

// Where the file was removed or moved, maybe with the run directory, nobody would find what is
// written to it: says so, and begins a new one.
void Reporter::look_for_metrics() {
  const std::string path = metrics_file(folder_);
  struct stat open {};
  struct stat named {};
  if (::fstat(fileno(metrics_), &open) != 0) return;
  if (::lstat(path.c_str(), &named) == 0 && open.st_ino == named.st_ino &&
      open.st_dev == named.st_dev)
    return;
  std::fclose(std::exchange(metrics_, nullptr));
  Disk disk;
  make_folders(disk, folder_);
  try {
    open_metrics(true);  // maybe there is one again, which is not ours to remove
    print_stderr("{} was removed or moved during the run; a new one begins here\n", path);
  } catch (const Error& e) {
    print_stderr("{} was removed or moved during the run, and {}; the run goes on without it\n",
                 path, e.what());
  }
}

void Reporter::end(int stopped_by, const std::string& checkpoint) {
  clear_bar();
  if (metrics_) {
    write_steps();
    flush_metrics();
  }
  if (stopped_by == SIGPIPE)
    print_stderr("standard output was closed by its reader; stopped after a whole step\n");
  else if (stopped_by)
    print_stderr("{}; {} saved\n", name_of_stop(stopped_by),
                 checkpoint.empty() ? "weights" : "checkpoint");
  if (!folder_.empty())
    print_stderr("weights: {0}/model.safetensors, numbers: {0}/metrics.jsonl\n", folder_);
  if (stopped_by && !checkpoint.empty())
    print_stderr("to go on: the same command with --resume {}\n", checkpoint);
}

int64_t Reporter::metrics_bytes() {
  if (metrics_) {
    write_steps();
    flush_metrics();
  }
  return metrics_bytes_;
}

void Reporter::bar(const StepRecord& r) {
  const double now = now_s();
  if (now - bar_time_ < 0.1) return;
  bar_time_ = now;
  bar_shown_ = true;
  constexpr int64_t kWidth = 30;
  const int64_t steps = session_.batches->steps(), full = r.of_epoch * kWidth / steps;
  write_stderr(fmt::format("\r\x1b[Kepoch {}/{} [{:<{}}] {}/{} loss {:.4f}", r.epoch,
                           session_.epochs, std::string(static_cast<size_t>(full), '='), kWidth,
                           r.of_epoch, steps, r.loss));
}

void Reporter::clear_bar() {
  if (!bar_shown_) return;
  write_stderr("\r\x1b[K");
  bar_shown_ = false;
}

}  // namespace dpt
