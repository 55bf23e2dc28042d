#include "report/run_results.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "report/metric_text.h"
#include "spec/metric_name.h"

namespace dpt {
namespace {

// The ranks of a metric's last and best value.
struct Ranks {
  std::string_view metric;
  int last = 0, best = 0;
};
constexpr Ranks kRanks[] = {
    {"loss", 0, 10},
    {"test.loss", 7, 11},
    {"test.accuracy", 4, 9},
    {"validation.loss", 3, 13},
    {"validation.accuracy", 2, 1},
};
constexpr Ranks kOtherMetrics{"", 8, 12};

bool is_count(std::string_view name) {
  return name == "ranks" || name == "workers" || name == "hosts";
}

// The metrics of the runs, those of kRanks first.
std::vector<std::string> metrics_of(const std::vector<const RunSummary*>& runs) {
  std::vector<std::string> out;
  for (const Ranks& r : kRanks) out.emplace_back(r.metric);
  for (const RunSummary* run : runs)
    for (const std::string& name : run->numbers.names())
      if (is_result(name) && std::ranges::find(out, name) == out.end()) out.push_back(name);
  return out;
}

}  // namespace

std::vector<ResultColumn> result_columns(const std::vector<const RunSummary*>& runs) {
  std::vector<ResultColumn> out;
  for (const char* name : {"ranks", "workers", "hosts"})
    out.push_back({.name = name, .title = name, .rank = 2, .if_different = true});
  out.push_back({.name = "epochs_done", .title = "epochs done", .rank = 6});
  for (const std::string& metric : metrics_of(runs)) {
    const auto* const found = std::ranges::find(kRanks, metric, &Ranks::metric);
    const Ranks& ranks = found == std::end(kRanks) ? kOtherMetrics : *found;
    out.push_back({.name = metric, .title = metric, .rank = ranks.last});
    out.push_back({.name = std::string(kBestPrefix) + metric, .title = "best", .rank = ranks.best});
  }
  out.push_back({.name = "seconds", .title = "seconds", .rank = 8});
  out.push_back({.name = "samples_per_second", .title = "samples/s", .rank = 5});
  out.push_back({.name = "state", .title = "state", .text = true});
  out.push_back({.name = "note", .title = "note", .rank = 12, .text = true});
  return out;
}

Json result_value(const RunSummary& run, std::string_view name) {
  constexpr int kDigits = 9;
  if (name == "state") return name_of(run.state);
  if (name == "note") return run.note;
  if (name == "epochs_done") return run.numbers.epochs();
  if (is_count(name)) {
    const auto count = run.environment ? run.environment->number(name) : std::nullopt;
    return count ? Json::decimals(*count, 0) : Json();
  }
  const auto x = run.numbers.find(name);
  return x && std::isfinite(*x) ? Json::rounded(*x, kDigits) : Json();
}

std::string result_text(const RunSummary& run, std::string_view name) {
  const Json value = result_value(run, name);
  if (const std::string* const text = value.text()) return *text;
  if (name == "epochs_done" || is_count(name)) return value.is_null() ? "" : value.dump();
  const auto x = run.numbers.find(name);
  if (!x || (name.starts_with(kBestPrefix) && std::isnan(*x))) return "";
  if (name == "seconds") return *x > 0 ? fmt::format("{:.2f}", *x) : "";
  if (name == "samples_per_second") return fmt::format("{:.0f}", *x);
  return value_text(name, *x);
}

}  // namespace dpt
