#include "train/reporter.h"

#include <cmath>
#include <csignal>
#include <cstdio>
#include <utility>

#include <fmt/format.h>

#include "backend/cpu/half_kernels.h"
#include "base/count.h"
#include "base/files.h"
#include "base/machine.h"
#include "base/signals.h"
#include "base/stderr.h"
#include "base/stdout.h"
#include "checkpoint/resume.h"
#include "engine/clock.h"
#include "session/batch_text.h"
#include "train/best_weights.h"
#include "train/evaluation_text.h"
#include "train/evaluations.h"

namespace dpt {
namespace {

constexpr int64_t kMostWarnings = 5;  // per kind and epoch

std::string name_of_stop(int signal) {
  if (signal == SIGINT) return "Interrupted (Ctrl-C)";
  if (signal == SIGTERM) return "Stopped (SIGTERM)";
  if (signal == SIGHUP) return "Stopped (SIGHUP: the terminal was closed)";
  if (signal == SIGXCPU) return "Stopped (SIGXCPU: the limit on CPU time, ulimit -t)";
  if (signal == SIGUSR1) return "Stopped (SIGUSR1)";
  if (signal == SIGUSR2) return "Stopped (SIGUSR2)";
  return fmt::format("Stopped (signal {})", signal);
}

std::string_view kind_of(const Devices& devices) { return devices.on_gpu() ? "GPU" : "CPU"; }

// What must be known of `single` to compare it with other modes.
std::string single_text(const Session& s) {
  const DeviceSpec& asked = s.settings.spec.devices;
  const Topology& topology = s.devices.topology;
  const int devices = topology.devices_per_replica, workers = topology.total_workers();
  if (s.settings.mode->name != "single") return "";
  std::string out;
  if (asked.count.value_or(devices) != devices)
    out += fmt::format("devices: single uses {}; the {} in the spec are for other modes\n",
                       counted(devices, "device"), *asked.count);
  if (workers > devices && !asked.cores && !s.devices.on_gpu())
    out += fmt::format(
        "cores: single uses {}; to compare it with dp or ddp, give each device one core: cores=1\n",
        counted(workers, "core"));
  return out;
}

// "1539 parameters (1536 of them frozen)"
std::string parameters_text(const CompiledModel& model) {
  int64_t all = 0;
  for (const ValueId v : model.graph.parameters) all += model.graph[v].desc.shape.elements();
  const int64_t frozen = all - model.parameters();
  return counted(all, "parameter") +
         (frozen > 0 ? fmt::format(" ({} of them frozen)", frozen) : "");
}

std::string lines_of_header(const Session& s) {
  const Topology& topology = s.devices.topology;
  std::string out;
  if (!s.devices.note.empty()) out += s.devices.note + "\n";
  out += fmt::format("data: {}\n", s.data.train.description);
  out +=
      fmt::format("model: {}, {} on {} with {}\n", parameters_text(s.model), s.plan.mode,
                  topology.ranks > 1 ? fmt::format("{} ranks", topology.ranks)
                  : topology.devices_per_rank > 1
                      ? fmt::format("{} {} devices", topology.devices_per_rank, kind_of(s.devices))
                      : fmt::format("one {}", s.devices.on_gpu() ? "GPU" : "CPU device"),
                  counted(topology.total_workers(), "worker"));
  out += single_text(s);
  if (s.devices.on_gpu() && topology.replicas() > 1)
    out +=
        fmt::format("gradients: summed by {}\n",
                    s.devices.sums_on_host() ? "the CPUs, in the memory that they share" : "NCCL");
  if (s.precision.policy.on())
    out += fmt::format("precision: {}{}\n", text_of(s.precision.policy),
                       s.devices.on_gpu() || computes_in(s.precision.policy.half)
                           ? ""
                           : ", emulated: results of fp32 kernels are rounded");
  out += fmt::format("batch: {}; {} per epoch\n", batch_text(s.devices, s.batches),
                     counted(s.batches.train->steps(), "step"));
  return out + lr_scale_text(s.settings, s.batches, s.parameter_groups) +
         groups_text(s.parameter_groups) + frozen_text(s.model);
}

ProgressPlan progress_plan(const Session& s) {
  const int64_t of_epoch = s.batches.train->steps();
  const auto samples = static_cast<double>(s.data.train_samples());
  ProgressPlan out{.epochs = s.length.epochs,
                   .steps_of_epoch = of_epoch,
                   .steps = s.length.steps,
                   .by_steps = s.length.steps < s.length.epochs * of_epoch,
                   .samples_of_step = samples / static_cast<double>(of_epoch)};
  if (!s.data.test) return out;
  out.evaluate_every =
      s.settings.spec.evaluate.every_steps > 0 ? 0 : s.settings.spec.evaluate.every;
  out.evaluate_every_steps = s.settings.spec.evaluate.every_steps;
  out.test_batches = s.batches.test->steps();
  out.test_samples = static_cast<double>(s.data.test_samples());
  return out;
}

}  // namespace

std::string model_file(const std::string& folder) { return folder + "/model.safetensors"; }

std::string previous_model_file(const std::string& folder) {
  return folder + "/model.previous.safetensors";
}

std::string progress_file(const std::string& folder) { return folder + "/progress.txt"; }

std::string batch_shape(const TensorDesc& one_batch, int64_t n) {
  return one_batch.shape.with(0, n).str();
}

Reporter::Reporter(const Session& session, std::string folder, const Settings& settings)
    : session_(session),
      folder_(std::move(folder)),
      cpus_(settings.cpus > 0 ? settings.cpus : static_cast<int>(usable_cores().size())),
      disk_(settings.disk ? *settings.disk : machines_own_),
      plan_(progress_plan(session)),
      display_(plan_, {.log_interval_s = settings.log_interval_s,
                       .step_lines = session.settings.spec.log.every > 0,
                       .file = folder_.empty() ? "" : progress_file(folder_)}) {
  if (!folder_.empty()) metrics_.emplace(session, folder_, settings.run_id, settings.resumed);
}

void Reporter::begin(const Start& start) {
  if (!folder_.empty())
    std::rename(model_file(folder_).c_str(), previous_model_file(folder_).c_str());
  print_note("{}", lines_of_header(session_));
  const Topology& topology = session_.devices.topology;
  const int available = session_.devices.on_gpu() ? session_.devices.gpus.count : cpus_;
  if (session_.settings.mode->processes)
    print_stdout("Number of available {}s: {}\n", kind_of(session_.devices), available);
  if (topology.devices_per_rank > 1)
    print_stdout("Let's use {} {}s!\n", topology.devices_per_rank, kind_of(session_.devices));
  plan_.steps_before = start.step;
  now_ = {
      .epoch = start.epoch + 1, .of_epoch = start.of_epoch, .step = start.step, .began_s = now_s()};
  display_.begin(plan_, now_);
}

void Reporter::begin_epoch(int64_t epoch, int64_t of_epoch) {
  now_.epoch = epoch;
  now_.of_epoch = of_epoch;
  now_.began_s = now_s();
  display_.publish(now_);
}

// Prints shapes like PyTorch's DataParallel tutorial: "In Model" for each replica, "Outside" for
// the whole batch.
void Reporter::shapes(const StepRows& rows) {
  const TensorDesc& x = session_.model.graph[session_.model.graph.input].desc;
  const TensorDesc& y = session_.model.graph[session_.model.graph.output].desc;
  const Topology& topology = session_.devices.topology;
  std::string lines;
  for (const auto& micro : rows.micro) {
    int64_t total = 0;
    for (int replica = 0; replica <= topology.replica(topology.workers_per_rank() - 1); ++replica) {
      int64_t n = 0;
      for (int s = 0; s < topology.shards; ++s)
        if (topology.replica(topology.owner(s)) == replica)
          n += micro[static_cast<size_t>(s)].rows.count();
      total += n;
      if (n > 0)
        lines += fmt::format("\tIn Model: input size {} output size {}\n", batch_shape(x, n),
                             batch_shape(y, n));
    }
    lines += fmt::format("Outside: input size {} output_size {}\n", batch_shape(x, total),
                         batch_shape(y, total));
  }
  display_.print(std::move(lines), "");
}

void Reporter::step(const StepRecord& r) {
  if (session_.settings.spec.log.shapes) shapes(*r.rows);
  if (r.empty && ++empty_ <= kMostWarnings) warn_of_empty(r);
  now_.of_epoch = r.of_epoch;
  now_.step = r.step;
  now_.loss = r.loss;
  now_.lr = r.lr;
  now_.waited_s = r.waited_s;
  display_.publish(now_);
  const int64_t every = session_.settings.spec.log.every;
  if (every == 0 || r.step % every != 0) return;
  if (metrics_) metrics_->step(r);
  display_.step_line({.epoch = r.epoch,
                      .of_epoch = r.of_epoch,
                      .step = r.step,
                      .loss = r.loss,
                      .lr = r.lr,
                      .skipped = r.skipped});
}

void Reporter::warn_of_empty(const StepRecord& r) {
  display_.print(
      "",
      fmt::format("warning: epoch {}, step {}: the loss ignores all targets, so it is nan and the "
                  "gradients are 0, as in PyTorch; the step is left out of the epoch's mean loss\n",
                  r.epoch, r.step));
}

void Reporter::begin_evaluation() {
  const double now = now_s();
  now_.trained_s += now - now_.began_s;
  now_.began_s = now;
  now_.evaluating = 1;
  now_.batches = 0;
  display_.publish(now_);
}

void Reporter::evaluated(int64_t batches) {
  now_.batches = batches;
  display_.publish(now_);
}

// Returns the seconds that it took; empty: there was none.
std::optional<double> Reporter::end_evaluation() {
  const double now = now_s();
  std::optional<double> out;
  if (now_.evaluating != 0)
    now_.evaluated_s = out.emplace(now - now_.began_s);
  else
    now_.trained_s += now - now_.began_s;
  now_.evaluating = 0;
  now_.began_s = now;
  display_.publish(now_);
  return out;
}

void Reporter::evaluation(const EvaluationRecord& r) {
  const std::optional<double> seconds = end_evaluation();
  display_.print_result(fmt::format("Step [{}/{}], {}", r.step, session_.length.steps,
                                    evaluation_text(session_.data.evaluated_set(), r.result)),
                        position_text(plan_, r.epoch, now_.of_epoch, r.step),
                        fmt::format("evaluation {}", seconds_text(seconds.value_or(0))),
                        warning_of(r.result, fmt::format("step {}", r.step)));
  if (metrics_) metrics_->evaluation(r);
  write_confusion_matrix(r.result);
}

// If the loss is not finite.
std::string Reporter::warning_of(const Evaluation& e, const std::string& where) const {
  if (std::isfinite(e.loss)) return "";
  return fmt::format(
      "{0}: the {1} loss is {2}; check the {1} set for nan, inf and samples whose targets are all "
      "ignored\n",
      where, session_.data.evaluated_set(), unsigned_nan(e.loss));
}

// A full disk is no reason to end the run.
void Reporter::write_confusion_matrix(const Evaluation& e) const {
  if (e.confusion_matrix.empty() || folder_.empty()) return;
  try {
    write_text(folder_ + "/confusion_matrix.csv",
               confusion_csv(e, session_.data.train.class_names));
  } catch (const Error& error) {
    print_stderr("{}; the run continues\n", error.what());
  }
}

void Reporter::epoch(const EpochRecord& r) {
  const std::optional<double> evaluation_s = end_evaluation();
  std::string messages;
  if (empty_ > kMostWarnings)
    messages = fmt::format("warning: epoch {}: the loss ignores all targets in {} more steps\n",
                           r.epoch, empty_ - kMostWarnings);
  empty_ = 0;
  std::string line = fmt::format("Epoch [{}/{}], Loss: {:.4f}", r.epoch, session_.length.epochs,
                                 unsigned_nan(r.loss));
  if (r.evaluation) line += ", " + evaluation_text(session_.data.evaluated_set(), *r.evaluation);
  if (session_.precision.scaler.on)
    line += fmt::format(", Loss scale: {:g}, skipped steps: {}", r.scale, r.skipped);
  if (r.evaluation) messages += warning_of(*r.evaluation, fmt::format("epoch {}", r.epoch));
  display_.print_result(
      line, epoch_text(plan_, r.epoch),
      epoch_figures({.seconds = r.seconds,
                     .samples_per_second = samples_per_second(session_.data, session_.batches, r),
                     .lr = r.lr,
                     .evaluation_s = evaluation_s}),
      std::move(messages));
  if (metrics_) metrics_->epoch(r, evaluation_s);
  if (r.evaluation) write_confusion_matrix(*r.evaluation);
}

void Reporter::final_test(const FinalRecord& r) {
  print_stdout("{} ({} weights, epoch {})\n", evaluation_text("test", r.result),
               r.best ? "best" : "last", r.epoch);
  if (metrics_) metrics_->final_test(r);
  write_confusion_matrix(r.result);
}

// Names the file only if it has these weights: it could not be written, perhaps.
void Reporter::print_best(const BestValue& best) const {
  if (best.metric.empty() || folder_.empty()) return;
  if (best.epoch == 0 && best.waited > 0)
    print_note("no best weights were kept: {}\n", text_of(session_.data, best));
  if (best.epoch == 0) return;
  const std::string file = best_weights_file(folder_);
  const bool there = step_of_best_weights(file) == best.step;
  print_note("best {}: {}\n", text_of(session_.data, best),
             there ? file : "its weights are not in " + file);
}

void Reporter::end(const End& end) {
  display_.settle();
  if (metrics_ && end.stopped_early) metrics_->stopped_early();
  sync_metrics();
  metrics_.reset();  // which says what is missing there
  const std::string_view saved = end.checkpoint.empty() ? "weights" : "checkpoint";
  if (end.stopped_by == SIGPIPE)
    print_stderr(
        "standard output was closed by its reader; training stopped after a complete step\n");
  else if (end.stopped_by == kTimeLimitReached)
    print_stderr("Stopped after {:g} minutes (`minutes`); {} saved\n",
                 session_.settings.spec.minutes.value_or(0), saved);
  else if (end.stopped_by)
    print_stderr("{}; {} saved\n", name_of_stop(end.stopped_by), saved);
  else if (end.stopped_early && end.early_stop.epoch == 0)
    print_note("Stopped early (`early_stop`): {}\n", text_of(session_.data, end.early_stop));
  else if (end.stopped_early)
    print_note("Stopped early (`early_stop`): no better {} in {}; {} was the best\n",
               fmt::format("{} {}", session_.data.evaluated_set(), end.early_stop.metric),
               counted(end.early_stop.waited, "evaluation"),
               text_of(session_.data, end.early_stop));
  print_best(end.best);
  if (!folder_.empty())
    print_note("weights: {0}/model.safetensors, numbers: {0}/metrics.jsonl\n", folder_);
  if (end.stopped_by && !end.checkpoint.empty()) print_stderr("{}\n", resume_hint(end.checkpoint));
}

int64_t Reporter::sync_metrics() { return metrics_ ? metrics_->sync(disk_) : 0; }

}  // namespace dpt
