#include "checkpoint/resume.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <set>

#include <fmt/format.h>

#include "base/count.h"
#include "base/fail.h"
#include "base/files.h"
#include "base/stderr.h"
#include "base/units.h"
#include "base/version.h"
#include "checkpoint/model_file.h"
#include "checkpoint/named_tensors.h"
#include "checkpoint/store.h"
#include "optim/group_schedules.h"
#include "spec/changes.h"

namespace dpt {
namespace {

namespace fs = std::filesystem;

// state.json and spec.resolved.yaml.
std::string read_text(const std::string& path) { return read_file(path, 16 * kMiB); }

// Whether the path exists. Throws Error{data} if that cannot be determined.
bool is_there(const std::string& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (status.type() == fs::file_type::none)
    fail(Fault::data, "--resume: {} cannot be read: {}; fix that, or leave --resume out", path,
         error.message());
  return fs::exists(status);
}

// Keys that may change: how long and where a run trains, and what it reports. All others define
// what is trained.
bool may_differ(const std::string& key) {
  static const std::set<std::string, std::less<>> keys = {
      "version",  "name",   "epochs", "steps",        "device",   "devices", "cores", "minutes",
      "parallel", "graphs", "out",    "memory_limit", "evaluate", "save",    "log",   "early_stop"};
  return keys.contains(key.substr(0, key.find_first_of(".[")));
}

std::string anew(const Resume& r) {
  return fmt::format(
      "; to start a new run from its weights, set initial_weights={}/model.safetensors", r.path);
}

std::string states_file(const std::string& checkpoint) {
  return checkpoint + "/optimizer.safetensors";
}

bool restore_states(const RunSettings& settings, const CompiledModel& model, const Resume& r,
                    const StateOf& state) {
  return read_states(settings, model, states_file(r.path), state, Fault::spec, anew(r));
}

// Why this run cannot continue that one, judging by its state; empty if it can.
std::string misfit(const TrainState& state, const Session& s) {
  if (state.optimizer != s.settings.optimizer->name)
    return fmt::format("it was trained by optimizer '{}', not '{}'", state.optimizer,
                       s.settings.optimizer->name);
  if (state.steps_of_epoch != s.batches.train->steps())
    return fmt::format(
        "its epochs have {}, but the epochs of this run have {}: the data, the batch size or the "
        "number of replicas has changed",
        counted(state.steps_of_epoch, "step"), s.batches.train->steps());
  return "";
}

// Why `--resume auto` does not continue that run; empty if it does.
std::string other_spec(const std::vector<SpecChange>& changes) {
  const auto other = std::ranges::find_if_not(changes, may_differ, &SpecChange::key);
  return other == changes.end() ? ""
                                : fmt::format("its spec differs: '{}' was {} and is {} now",
                                              other->key, other->before, other->now);
}

// Adds notes on consequences of a changed spec that the list of changed keys does not show.
void add_surprises(const Session& s, Resume& r) {
  const TrainState& state = r.state;
  const std::string samples = order_of_samples(s.devices);
  if (state.of_epoch > 0 && !state.samples.empty() && state.samples != samples)
    r.notes.push_back(fmt::format(
        "the rest of epoch {} uses another sample order ({}, not {}): in this epoch some samples "
        "are used twice and some not at all; in later epochs each is used once",
        state.epoch + 1, samples, state.samples));
  GroupSchedules schedules(
      s.settings.spec.schedule, s.parameter_groups.rates,
      schedule_interval(s.settings.spec.schedule) == "step" ? s.length.steps : s.length.epochs);
  for (const std::string& note : schedules.restore(state.schedule)) r.notes.push_back(note);
  if (s.settings.spec.ema && !has_averages(states_file(r.path)))
    r.notes.emplace_back(
        "the checkpoint has no averages of the weights: with `ema` they start from its weights");
}

// The length of the run that wrote the checkpoint, if this run has another one.
std::optional<RunLength> other_length(const Session& s, const std::vector<SpecChange>& changes) {
  Spec before = s.settings.spec;
  bool differs = false;
  for (const SpecChange& c : changes) {
    if (c.key != "epochs" && c.key != "steps") continue;
    int64_t value = 0;
    const char* const end = c.before.data() + c.before.size();
    const bool given = std::from_chars(c.before.data(), end, value).ptr == end && value > 0;
    (c.key == "epochs" ? before.epochs : before.steps) =
        given ? std::optional(value) : std::nullopt;
    differs = true;
  }
  Diagnostics d;
  const RunLength out = differs && (before.epochs || before.steps)
                            ? make_length(before, s.batches.train->steps(), d)
                            : RunLength();
  return out.steps > 0 && d.ok() ? std::optional(out) : std::nullopt;
}

// Schedules that depend on the length of the run continue at another rate if it has changed.
void note_jump_of_rate(const Session& s, const std::vector<SpecChange>& changes, Resume& r) {
  constexpr double kJump = 0.1;  // of the larger rate
  const ScheduleSpec& spec = s.settings.spec.schedule;
  const std::string unit(schedule_interval(spec));
  const int64_t k = unit == "step" ? r.state.step : r.state.epoch;
  const std::optional<RunLength> before = other_length(s, changes);
  // The last interval of the run before: with epochs, the one that it stopped in.
  const int64_t end = unit == "epoch" && r.state.step % s.batches.train->steps() != 0 ? k : k - 1;
  if (!before || end < 0 || r.complete) return;
  const int64_t was = unit == "step" ? before->steps : before->epochs,
                is = unit == "step" ? s.length.steps : s.length.epochs;
  GroupSchedules old(spec, s.parameter_groups.rates, was), now(spec, s.parameter_groups.rates, is);
  (void)old.restore(r.state.schedule);
  (void)now.restore(r.state.schedule);
  const double last = old.lr(end), next = now.lr(k);
  // A schedule may fall by itself between two intervals.
  const auto differs = [&](double other) {
    return std::abs(last - other) > kJump * std::max(std::abs(last), std::abs(other));
  };
  if (!differs(now.lr(end)) || !differs(next)) return;
  r.notes.push_back(fmt::format(
      "warning: the learning rate jumps from {:.4g} to {:.4g}: the schedule now has {}, not {}; "
      "for a smooth end, start a new run, or keep the last rate: schedule=constant "
      "optimizer.lr={:.4g} --resume RUN",
      last, next, counted(is, unit), was, last));
}

// The setting that ends the run and must grow to train longer; both if both end it.
std::string longer(const Session& s) {
  const bool by_steps = s.settings.spec.steps == s.length.steps;
  const bool by_epochs = s.settings.spec.epochs == s.length.epochs &&
                         s.length.steps == s.length.epochs * s.batches.train->steps();
  return by_steps && by_epochs ? "both epochs=N and steps=N" : by_steps ? "steps=N" : "epochs=N";
}

// The newest intact checkpoint; adds a note for each damaged one that is newer.
std::string newest_whole(const std::string& folder, std::vector<std::string>& notes) {
  for (const CheckpointName& c : checkpoints_in(folder)) {
    const std::string why = damage(c.path);
    if (why.empty()) return c.path;
    notes.push_back(fmt::format("skipping {}: {}", c.path, why));
  }
  return "";
}

}  // namespace

bool is_checkpoint(const std::string& directory) {
  return is_there(directory + "/state.json") || is_there(directory + "/manifest.txt");
}

std::string order_of_samples(const Devices& devices) {
  if (devices.topology.reproducible) return "the same in every mode";
  if (devices.topology.per_replica_sampling)
    return fmt::format("assigned to {} replicas", devices.topology.replicas());
  return "one order for all";
}

std::optional<Resume> find_resume(const std::string& where, const std::string& run_folder,
                                  const Session& s, const std::string& resolved_spec,
                                  std::string& why, Match match) {
  const bool automatic = where == "auto";
  Resume out;
  std::string given = automatic ? run_folder : where;
  while (given.size() > 1 && given.ends_with('/')) given.pop_back();
  std::error_code error;
  if (!automatic && !(is_there(given) && fs::is_directory(given, error)))
    fail(Fault::data,
         "--resume {}: no such folder; pass a run directory, one of its checkpoints, or 'auto'",
         where);
  if (is_checkpoint(given)) {
    if (const std::string broken = damage(given); !broken.empty())
      fail(Fault::data,
           "{} cannot be resumed: {}; pass the run directory to --resume to use its newest intact "
           "checkpoint",
           given, broken);
    out.path = given;
  } else {
    std::string folder = checkpoint_folder(given);
    if (!is_there(folder)) folder = given;
    out.path = newest_whole(folder, out.notes);
  }
  if (out.path.empty()) {
    std::string notes;
    for (const std::string& note : out.notes) notes += note + "\n";
    why = fmt::format("{}{} holds no checkpoint", notes, given);
    for (const std::string& folder : previous_folders(given))
      why += fmt::format("; the checkpoints of an earlier run are in {0}: --resume {0}", folder);
    if (const std::string model = given + "/model.safetensors"; is_there(model))
      why +=
          fmt::format("; to start a new run from its weights only, set initial_weights={}", model);
    if (!automatic) fail(Fault::data, "--resume {}: {}", where, why);
    return {};
  }
  const std::string file = out.path + "/state.json";
  out.state = train_state_of(read_text(file), file);
  const std::vector<SpecChange> changes =
      spec_changes(read_text(out.path + "/spec.resolved.yaml"), resolved_spec, registries());
  std::string unfit = misfit(out.state, s);
  if (match == Match::same_spec) {
    const std::string other = unfit.empty() ? other_spec(changes) : unfit;
    if (!other.empty()) why = fmt::format("{} is not resumed: {}", given, other);
    if (!other.empty() && unfit.empty())
      why += fmt::format("; --resume {} resumes it anyway", given);
    if (!other.empty()) return {};
  }
  if (!unfit.empty()) fail(Fault::spec, "{} cannot be resumed: {}{}", out.path, unfit, anew(out));
  const EarlyStopSpec& early = s.settings.spec.early_stop;
  const bool stopped_early = early.patience > 0 &&
                             out.state.early_stop.metric == metric_of_early_stop(s.settings.spec) &&
                             out.state.early_stop.waited >= early.patience;
  const bool done = out.state.epoch >= s.length.epochs ||
                    (out.state.step >= s.length.steps && out.state.of_epoch == 0);
  out.complete = done || stopped_early;
  if (!done && stopped_early)
    out.notes.push_back(fmt::format(
        "nothing left to do: the {} has not improved in {}, so the run was stopped early; to train "
        "longer, set a larger early_stop.patience",
        out.state.early_stop.metric, counted(out.state.early_stop.waited, "evaluation")));
  if (done)
    out.notes.push_back(fmt::format(
        "nothing left to do: {} and {} are done, out of {} and {}; to train longer, set {}",
        counted(out.state.epoch, "epoch"), counted(out.state.step, "step"), s.length.epochs,
        s.length.steps, longer(s)));
  if (out.state.build != version())
    out.notes.push_back(
        fmt::format("it was written by {}, but this is {}: results may differ in the last bits",
                    out.state.build, version()));
  add_surprises(s, out);
  note_jump_of_rate(s, changes, out);
  if (!changes.empty()) out.notes.emplace_back("changed since:");
  for (const SpecChange& c : changes)
    out.notes.push_back(fmt::format("  {}: {} -> {}", c.key, c.before, c.now));
  return out;
}

void restore(const Session& s, const Resume& resume, const Buffers& buffers) {
  read_model(s.model, resume.path + "/model.safetensors", buffers, Fault::spec,
             "; resume it with its own model, or start a new run without --resume");
  if (s.devices.own_states()) return;
  if (!restore_states(s.settings, s.model, resume, [&](int i) { return buffers.state(i); }))
    start_average(s.settings, s.devices, buffers);
  buffers.copy_to_replicas();
}

std::vector<float> restore_own_states(const RunSettings& settings, const CompiledModel& model,
                                      const Resume& resume) {
  std::vector<float> out(static_cast<size_t>(settings.states()) * model.layout.trainable);
  if (!restore_states(settings, model, resume, [&](int i) {
        return out.data() + static_cast<size_t>(i) * model.layout.trainable;
      }))
    out.resize(static_cast<size_t>(settings.average_state()) * model.layout.trainable);
  return out;
}

std::string resume_hint(const std::string& checkpoint) {
  return "to resume, run the same command with --resume " + checkpoint;
}

void print_resume_hint(const std::string& run_folder, const std::optional<Resume>& continued) {
  try {
    const std::vector<CheckpointName> own = checkpoints_in(checkpoint_folder(run_folder));
    const std::string newest = !own.empty() ? own[0].path : continued ? continued->path : "";
    if (!newest.empty()) print_stderr("{}\n", resume_hint(newest));
  } catch (const Error&) {  // report the original failure, not this one
  }
}

}  // namespace dpt
