#include "cli/sweep_check.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "base/count.h"
#include "base/fail.h"
#include "cli/bench_rows.h"
#include "train/run_data.h"

namespace dpt {
namespace {

SweepFacts facts_of(const Session& s) {
  const Spec& spec = s.settings.spec;
  const Topology& t = s.devices.topology;
  // Runs with weights of another run read a table by its means, which change the samples.
  const bool is_known = s.data.train.made && !form_of_weights(spec);
  return {.epochs = spec.epochs.value_or(spec.steps ? 0 : 1),
          .cores = t.total_workers(),
          .mode = s.plan.mode,
          .precision = std::string(spec.precision.what->name),
          .devices = int64_t{t.ranks} * t.devices_per_rank,
          .batch_size = s.batches.global_batch,
          .data = is_known ? std::optional(record_of(s.data)) : std::nullopt};
}

// The errors of settings, in the order in which they are found.
class Errors {
 public:
  void add(Fault fault, const std::string& text, const std::string& run) {
    ++runs_;
    const auto found = std::ranges::find(errors_, text, &Entry::text);
    if (found == errors_.end())
      errors_.push_back({.fault = fault, .text = text, .run = run});
    else
      ++found->more;
  }

  void throw_if_any(size_t settings) const {
    if (errors_.empty()) return;
    constexpr size_t kMostShown = 5;
    std::string text;
    for (size_t i = 0; i < std::min(errors_.size(), kMostShown); ++i)
      text += fmt::format("{}  in {}{}\n", errors_[i].text, errors_[i].run,
                          errors_[i].more > 0
                              ? fmt::format(" and {}", counted(errors_[i].more, "more setting"))
                              : "");
    if (errors_.size() > kMostShown)
      text += fmt::format("and {}\n", counted(errors_.size() - kMostShown, "more error"));
    text += fmt::format("no run was started: {} of {} cannot be trained", runs_,
                        counted(settings, "setting"));
    const Fault fault = errors_[0].fault;
    if (fault == Fault::spec) throw BadSpec{text + "\n"};
    constexpr size_t kPrefix = 9;  // "dptrain: ", which is printed before an error
    fail(fault, "{}", text.substr(kPrefix));
  }

 private:
  struct Entry {
    Fault fault;
    std::string text, run;
    size_t more = 0;  // further settings with the same error
  };
  std::vector<Entry> errors_;
  size_t runs_ = 0;
};

}  // namespace

Spec check_settings(std::vector<SweepRun>& runs, const SpecArgument& argument) {
  Errors errors;
  std::optional<Spec> first;
  SweepFacts facts;
  for (size_t i = 0; i < runs.size(); ++i) {
    const SweepPoint& point = runs[i].point;
    if (i == 0 || point.setting != runs[i - 1].point.setting) try {
        LoadedSpec loaded = commands::load_with(argument, point.overrides());
        if (!first) first = loaded.spec;
        assume_batch_size(loaded.spec);
        facts = facts_of(*open_session(loaded, {.sizes_only = true}));
      } catch (const BadSpec& e) {
        errors.add(Fault::spec, e.text, point.name);
      } catch (const Error& e) {
        errors.add(e.fault(), fmt::format("dptrain: {}\n", e.report()), point.name);
      }
    runs[i].facts = facts;
  }
  errors.throw_if_any(runs.back().point.setting + 1);
  return *std::move(first);
}

}  // namespace dpt
