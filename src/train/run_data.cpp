#include "train/run_data.h"

#include <filesystem>
#include <string_view>
#include <system_error>

#include <fmt/format.h>

#include "base/count.h"
#include "base/files.h"
#include "base/units.h"
#include "checkpoint/resume.h"
#include "data/fingerprint.h"
#include "train/run_directories.h"

namespace dpt {
namespace {

namespace fs = std::filesystem;

SetRecord record_of(const Dataset& set) {
  return {.samples = set.size(), .fingerprint = full_fingerprint(set)};
}

// "it had 600 samples, and has 603 now"; empty: the samples are the same.
std::string change(const SetRecord& before, const SetRecord& now) {
  if (before.samples != now.samples)
    return fmt::format("it had {}, and has {} now", counted(before.samples, "sample"), now.samples);
  if (before.fingerprint != now.fingerprint)
    return fmt::format("it has {} as before, but with other values or in another order",
                       counted(now.samples, "sample"));
  return "";
}

// What differs in the separate validation set; empty: nothing, or there is none.
std::string validation_change(const DataRecord& before, const DataRecord& now) {
  if (!before.validation || !now.validation || now.validation->fingerprint.empty()) return "";
  return change(*before.validation, *now.validation);
}

// Whether a random part of the training set is for validation.
bool splits(const DataRecord& record) { return !record.split.empty(); }

bool fits_anything(const SampleForm& form) {
  return !form.columns.encodings.empty() || !form.channels.empty() || !form.class_names.empty() ||
         !form.characters.empty();
}

}  // namespace

DataRecord record_of(const SessionData& data) {
  DataRecord out{.training = record_of(data.train), .split = fingerprint_of_rows(data.train_rows)};
  if (data.test && data.evaluated == EvaluatedSet::validation && data.train_rows.empty())
    out.validation = record_of(*data.test);
  return out;
}

std::string data_change(const DataRecord& before, const DataRecord& now) {
  if (const std::string changed = change(before.training, now.training); !changed.empty())
    return "the training data: " + changed;
  const std::string changed = validation_change(before, now);
  return changed.empty() ? "" : "the validation set: " + changed;
}

std::optional<SampleForm> form_of_run(const std::string& path) {
  std::error_code error;
  fs::path folder = fs::absolute(path, error).lexically_normal();
  if (!folder.has_filename()) folder = folder.parent_path();  // "runs/t/1/"
  if (!fs::is_directory(folder, error)) folder = folder.parent_path();
  constexpr size_t kMostFormBytes = 16 * kMiB;
  constexpr int kLevels = 3;  // RUN, checkpoints, step-000938
  for (int level = 0; level < kLevels; ++level, folder = folder.parent_path()) {
    // Checkpoints that were set aside have a copy of their run's file.
    const bool aside = folder.filename().string().starts_with("checkpoints.previous");
    if (!aside && (is_checkpoint(folder.string()) || !holds_run(folder.string()))) continue;
    const std::string file = (folder / "data.json").string();
    if (!fs::exists(file, error)) return {};
    return form_from_json(read_file(file, kMostFormBytes), file);
  }
  return {};
}

std::optional<SampleForm> form_of_weights(const Spec& spec) {
  if (spec.initial_weights.empty() || spec.partial_weights) return {};
  std::optional<SampleForm> form = form_of_run(spec.initial_weights);
  return form && !form->columns.encodings.empty() ? form : std::nullopt;
}

void write_form(const std::string& folder, const SessionData& data,
                const std::optional<SampleForm>& resumed, Disk& disk) {
  SampleForm form = form_of(data.train);
  if (resumed) form.trained_on = resumed->trained_on;
  const DataRecord now = record_of(data);
  if (form.trained_on.empty() || form.trained_on.back() != now) form.trained_on.push_back(now);
  write_file(disk, folder + "/data.json", to_json(form));
}

std::vector<std::string> evaluated_data_changes(const SampleForm& run, const SessionData& now) {
  std::vector<std::string> out;
  const bool validation = now.evaluated == EvaluatedSet::validation;
  if (run.trained_on.empty() || now.evaluated == EvaluatedSet::test || !now.train.made) return out;
  const DataRecord &before = run.trained_on.back(), current = record_of(now);
  constexpr std::string_view kLeak =
      "samples that the run was trained on, so its numbers are better than those of new samples";
  if (const std::string changed = change(before.training, current.training); !changed.empty()) {
    out.push_back(fmt::format("the training data is not that of the run any more: {}", changed));
    if (validation && splits(current) && current.training.samples != before.training.samples)
      out.push_back(fmt::format(
          "the validation set is drawn from other samples than in the run: unless all samples are "
          "new, it contains {}; restore the data, or evaluate new samples as a test set",
          kLeak));
    else if (validation && splits(current))
      out.push_back(fmt::format(
          "if samples were moved or replaced, the validation set contains {}; restore the data, or "
          "evaluate new samples as a test set",
          kLeak));
  } else if (validation && splits(current) && current.split != before.split) {
    out.push_back(fmt::format(
        "the validation set is not that of the run, as `data.validation` or `seed` differ: it "
        "contains {}",
        kLeak));
  }
  if (validation && splits(before) && !splits(current))
    out.push_back(
        "the validation set is not that of the run, which held out a part of its training set; the "
        "numbers of the two cannot be compared");
  if (const std::string changed = validation_change(before, current); !changed.empty())
    out.push_back(
        fmt::format("the validation set is not that of the run any more: {}; its numbers cannot be "
                    "compared with those of the run",
                    changed));
  if (validation && splits(current) && run.trained_on.size() > 1)
    out.push_back(fmt::format(
        "the run was resumed with other training data or another validation set: its validation "
        "set contains {}",
        kLeak));
  return out;
}

std::vector<std::string> resumed_data_changes(const SampleForm& run, const SessionData& now) {
  std::vector<std::string> out;
  if (run.trained_on.empty() || !now.train.made) return out;
  const DataRecord &before = run.trained_on.back(), current = record_of(now);
  const std::string changed = change(before.training, current.training);
  if (!changed.empty())
    out.push_back(fmt::format(
        "the training data has changed since the checkpoint: {}; {}", changed,
        fits_anything(run) ? "the run continues with it, and keeps its categories, means, standard "
                             "deviations and class names"
                           : "the run continues with it"));
  if (const std::string other = validation_change(before, current); !other.empty())
    out.push_back(fmt::format(
        "the validation set has changed since the checkpoint: {}; the run continues with it, so "
        "the best value and `early_stop` compare results of two sets",
        other));
  if (!splits(current) || (changed.empty() && current.split == before.split)) return out;
  if (current.split != before.split)
    out.push_back(
        "the validation set is another one than before: it contains samples that the run was "
        "trained on, and the best value and `early_stop` compare results of two sets; for results "
        "of samples that were never trained on, restore the data or start a new run");
  else
    out.push_back(
        "if samples were moved or replaced, the validation set contains samples that the run was "
        "trained on; for results of samples that were never trained on, restore the data or start "
        "a new run");
  return out;
}

}  // namespace dpt
