// Draws small plots side by side: loss, accuracy and speed by the value of one key.
#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "base/fail.h"
#include "report/runs_table.h"
#include "report/svg.h"
#include "report/value_plot.h"

namespace dpt {
namespace {

constexpr const char* kTestColor = "#ee8866";
constexpr const char* kColor = "#4477aa";

// The distinct values of the key in order, and each row's index into them (-1: no value).
struct Ticks {
  PlotTicks axis;
  std::vector<int> of_row;
};

// REQUIRES: rows sorted by the key.
Ticks ticks_of(const RunsTable& table, const std::string& key) {
  Ticks out;
  std::vector<std::string> names;
  for (const RunRow& row : table.rows) {
    const auto found = row.run.spec.find(key);
    if (found == row.run.spec.end()) {
      out.of_row.push_back(-1);
      continue;
    }
    if (names.empty() || names.back() != found->second) names.push_back(found->second);
    out.of_row.push_back(static_cast<int>(names.size()) - 1);
  }
  out.axis = ticks_named(std::move(names));
  return out;
}

}  // namespace

std::string runs_svg(const RunsTable& given, const std::string& key) {
  RunsTable table = given;
  sort_rows(table, key);
  const Ticks ticks = ticks_of(table, key);
  constexpr double kMost = 1e100;  // larger values would overflow the axis
  const auto series = [&](std::string name, std::string color, auto&& value) {
    PlotSeries out{.name = std::move(name), .color = std::move(color), .points = {}};
    for (size_t i = 0; i < table.rows.size(); ++i)
      if (const std::optional<double> v = value(table.rows[i].run);
          v && std::abs(*v) < kMost && ticks.of_row[i] >= 0)
        out.points.emplace_back(ticks.of_row[i], *v);
    return out;
  };
  using Run = const RunSummary&;
  // The validation set's number where a run has one, else the test set's.
  const auto evaluated = [](Run r, const std::string& metric) {
    const auto of_validation = r.numbers.find("validation." + metric);
    return of_validation ? of_validation : r.numbers.find("test." + metric);
  };
  std::vector<ValuePlot> plots = {
      {.title = "loss",
       .from_zero = false,
       .series = {series("training", kColor, [](Run r) { return r.numbers.find("loss"); }),
                  series("evaluation", kTestColor, [&](Run r) { return evaluated(r, "loss"); })}},
      {.title = "accuracy in %",
       .from_zero = false,
       .series = {series("evaluation", kTestColor,
                         [&](Run r) {
                           const auto share = evaluated(r, "accuracy");
                           return share ? std::optional(100 * *share) : std::nullopt;
                         })}},
      {.title = "samples per second",
       .from_zero = true,
       .series = {series("training", kColor,
                         [](Run r) { return r.numbers.find("samples_per_second"); })}}};
  for (ValuePlot& p : plots)
    std::erase_if(p.series, [](const PlotSeries& s) { return s.points.empty(); });
  std::erase_if(plots, [](const ValuePlot& p) { return p.series.empty(); });
  if (plots.empty()) fail(Fault::data, "no run has both a value of '{}' and a result to draw", key);
  std::string out = svg::begin(kPlotWidth * static_cast<int>(plots.size()), kPlotHeight);
  out += svg::text(20, 26, fmt::format("Results by {}", key), "font-size=\"16\"");
  int left = 0;
  for (const ValuePlot& p : plots) {
    out += draw_plot(p, ticks.axis, left, key);
    left += kPlotWidth;
  }
  return out + "</svg>\n";
}

}  // namespace dpt
