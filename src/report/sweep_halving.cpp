#include "report/sweep_halving.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "base/count.h"
#include "base/fail.h"
#include "spec/metric_name.h"

namespace dpt {
namespace {

std::vector<size_t> runs_of(const Sweep& sweep, const std::vector<size_t>& settings) {
  std::vector<size_t> out;
  for (size_t i = 0; i < sweep.runs.size(); ++i)
    if (std::ranges::find(settings, sweep.runs[i].point.setting) != settings.end())
      out.push_back(i);
  return out;
}

// Lower is better; infinite for a setting without the metric.
double score(const Sweep& sweep, size_t setting, int64_t epochs) {
  const std::string_view metric = without_best(sweep.metric);
  std::vector<double> values;
  for (const SweepRun* r : sweep.of_setting(setting)) {
    const auto value = r->numbers.at_epoch(metric, epochs);
    if (r->state == SweepState::failed || !value || std::isnan(*value)) return HUGE_VAL;
    values.push_back(*value);
  }
  const double mean = mean_of(values).mean;
  return lower_is_better(metric) ? mean : -mean;
}

}  // namespace

std::vector<Rung> halving_rungs(size_t settings, int64_t epochs, int eta, int64_t every) {
  int halvings = 0;
  for (double n = static_cast<double>(settings), e = static_cast<double>(epochs);
       n >= eta && e >= eta * static_cast<double>(every); n /= eta, e /= eta)
    ++halvings;
  if (halvings == 0)
    fail(Fault::spec,
         "--halving has nothing to halve: {} and {} (evaluated every {}) make one rung with --eta "
         "{}; take more values, more epochs or a smaller --eta, or leave --halving out",
         counted(settings, "setting"), counted(epochs, "epoch"), counted(every, "epoch"), eta);
  std::vector<Rung> out;
  for (int i = 0; i <= halvings; ++i) {
    const double kept = std::floor(static_cast<double>(settings) / std::pow(eta, i));
    const double share = static_cast<double>(epochs) / std::pow(eta, halvings - i);
    const auto steps = std::max<int64_t>(1, static_cast<int64_t>(share) / every);
    out.push_back({.settings = static_cast<size_t>(std::max(1.0, kept)),
                   .epochs = i == halvings ? epochs : steps * every});
  }
  return out;
}

std::string rungs_text(const std::vector<Rung>& rungs) {
  std::string out;
  int64_t done = 0, total = 0;
  for (const Rung& r : rungs) {
    out += out.empty() ? fmt::format("{} for {}", counted(r.settings, "setting"),
                                     counted(r.epochs, "epoch"))
                       : fmt::format(", then {} for {}", r.settings, r.epochs);
    total += static_cast<int64_t>(r.settings) * (r.epochs - done);
    done = r.epochs;
  }
  return fmt::format("{}: {} instead of {}", out, counted(total, "epoch"),
                     static_cast<int64_t>(rungs[0].settings) * rungs.back().epochs);
}

std::vector<size_t> best_settings(const Sweep& sweep, const std::vector<size_t>& settings,
                                  int64_t epochs, size_t count) {
  std::vector<size_t> out = settings;
  std::ranges::stable_sort(out, {}, [&](size_t setting) { return score(sweep, setting, epochs); });
  out.resize(std::min(out.size(), count));
  return out;
}

void run_halving(Sweep& sweep, const std::vector<Rung>& rungs,
                 const std::function<bool(const std::vector<size_t>&, int64_t)>& train) {
  std::vector<size_t> settings(sweep.settings());
  std::iota(settings.begin(), settings.end(), size_t{0});
  for (size_t i = 0; i < rungs.size(); ++i) {
    const bool last = i + 1 == rungs.size();
    if (!train(runs_of(sweep, settings), last ? 0 : rungs[i].epochs) || last) return;
    const std::vector<size_t> kept =
        best_settings(sweep, settings, rungs[i].epochs, rungs[i + 1].settings);
    for (SweepRun& r : sweep.runs) {
      const bool was = std::ranges::find(settings, r.point.setting) != settings.end();
      const bool is = std::ranges::find(kept, r.point.setting) != kept.end();
      if (!was || is || r.has_ended()) continue;
      r.state = SweepState::dropped;
      r.note = fmt::format("after {}", counted(rungs[i].epochs, "epoch"));
    }
    settings = kept;
  }
}

}  // namespace dpt
