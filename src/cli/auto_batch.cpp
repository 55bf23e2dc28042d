#include "cli/auto_batch.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <system_error>

#include <fmt/format.h>

#include "base/fail.h"
#include "base/files.h"
#include "base/machine.h"
#include "base/stderr.h"
#include "base/units.h"
#include "cli/bench_rows.h"
#include "cli/measured_row.h"
#include "report/batch_choice.h"
#include "report/measure.h"
#include "spec/changes.h"
#include "train/run_directories.h"

namespace dpt::commands {
namespace {

namespace fs = std::filesystem;

// The batch size of the run that --resume continues; empty if there is none.
std::string resumed_batch(const Spec& spec, const std::string& resume) {
  if (resume.empty()) return "";
  const std::string run = resume == "auto" ? newest_run(run_folder(spec)) : newest_run(resume);
  const std::string file = run + "/spec.resolved.yaml";
  std::error_code ignored;
  if (!fs::exists(file, ignored)) return "";
  const FlatSpec before = flatten_spec(read_file(file, kMiB), registries());
  const auto found = before.find("data.batch_size");
  return found == before.end() || found->second == "auto" ? "" : found->second;
}

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

struct Facts {
  BatchLimits limits;
  bool on_gpu = false;
};

// For a session with some batch size: not every size fits every spec.
Facts facts_of(const SpecArgument& argument) {
  constexpr int kSizes[] = {32, 8, 2, 1};
  for (const int each : kSizes) {
    try {
      const LoadedSpec loaded =
          load_with(argument, {fmt::format("data.batch_size_per_replica={}", each)});
      const auto s = open_session(loaded, {.runs = false, .sizes_only = true});
      return {.limits = {.samples = s->data.train_samples(),
                         .unit = s->devices.topology.replicas() * s->settings.spec.accumulate},
              .on_gpu = s->devices.on_gpu()};
    } catch (const BadSpec&) {
      if (each == kSizes[std::size(kSizes) - 1]) throw;
    }
  }
  return {};
}

// Runs steps of one batch size, for about a third of a second.
class Trials {
 public:
  Trials(const SpecArgument& argument, const Spec& spec)
      : argument_(argument), common_(without_evaluations(spec)) {}

  BatchTrial operator()(int64_t batch) {
    BenchRow row{.mode = "training", .batch_size = batch, .overrides = common_};
    row.overrides.push_back(fmt::format("data.batch_size={}", batch));
    const auto free = static_cast<double>(usable_memory());
    try {
      if (speed_ == 0) speed_ = measured(row, kFewest);
      const double per_second = speed_ / static_cast<double>(batch);
      const auto steps =
          static_cast<int64_t>(std::clamp(kSeconds * per_second, 1.0 * kFewest, 1e5));
      speed_ = measured(row, steps);
    } catch (const Refused& e) {
      return {.batch = batch, .refused = e.what()};
    }
    if (peak_bytes_ > free)  // it swapped
      return {.batch = batch,
              .refused = fmt::format("it took {:.0f} MiB, but {:.0f} MiB were free",
                                     peak_bytes_ / kMiB, free / kMiB)};
    print_stderr("data.batch_size {}: {:.0f} samples/s\n", batch, speed_);
    return {.batch = batch, .samples_per_second = speed_};
  }

 private:
  static constexpr double kSeconds = 0.3;
  static constexpr int64_t kFewest = 3;

  double measured(const BenchRow& row, int64_t steps) {
    const int64_t warm_up = 1 + steps / 4;
    const RunSteps run{.timed = {warm_up, warm_up + steps}, .marked = {warm_up, warm_up + 1}};
    const Reading r = measure(row, run, {}, [&](const BenchRow& each, int notes) {
      return start_row(argument_, each, notes);
    });
    peak_bytes_ = r.peak_bytes;
    return static_cast<double>(r.samples) / std::max(r.seconds, 1e-9);
  }

  const SpecArgument& argument_;
  std::vector<std::string> common_;  // overrides of all batch sizes
  double speed_ = 0;                 // samples per second of the batch before; 0: none was measured
  double peak_bytes_ = 0;
};

std::string chosen_batch(const SpecArgument& argument, const Spec& spec) {
  constexpr double kMostSeconds = 10;
  const Facts facts = facts_of(argument);
  const std::vector<int64_t> candidates = batch_candidates(facts.limits);
  Trials trial(argument, spec);
  const std::vector<BatchTrial> trials = measure_batches(
      candidates, facts.on_gpu, [&](int64_t batch) { return trial(batch); }, kMostSeconds,
      seconds_now);
  const std::optional<BatchTrial> best = choose_batch(trials, facts.on_gpu);
  if (!best)
    fail(Fault::memory, "data.batch_size: auto: even a batch of {} does not run: {}",
         trials.front().batch, trials.front().refused);
  const BatchTrial& last = trials.back();
  std::string limit;
  if (!last.refused.empty())
    limit = fmt::format("; {} does not run: {}", last.batch,
                        last.refused.substr(0, last.refused.find('\n')));
  else if (last.batch == candidates.back())
    limit = "; larger ones would leave fewer than 16 steps per epoch";
  print_stderr("data.batch_size: auto is {}: {}{}\n", best->batch,
               facts.on_gpu ? "the largest that ran"
                            : "the smallest within 10 % of the fastest that was measured",
               limit);
  return std::to_string(best->batch);
}

}  // namespace

LoadedSpec with_chosen_batch(LoadedSpec loaded, SpecArgument argument, const std::string& resume,
                             const std::optional<World>& world) {
  if (!loaded.spec.data.auto_batch) return loaded;
  argument.path = find_spec(argument.path);
  std::string batch = resumed_batch(loaded.spec, resume);
  if (batch.empty() && world && world->size > 1)
    fail(Fault::spec,
         "data.batch_size: auto measures before ranks start, so a run that {} starts needs a "
         "number; write data.batch_size=N",
         world->launcher);
  if (batch.empty()) batch = chosen_batch(argument, loaded.spec);
  return load_with(argument, {"data.batch_size=" + batch});
}

}  // namespace dpt::commands
