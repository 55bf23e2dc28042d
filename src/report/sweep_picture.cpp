#include "report/sweep_picture.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <deque>
#include <map>
#include <optional>
#include <system_error>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "report/html.h"
#include "report/line_chart.h"
#include "report/metric_text.h"
#include "report/report.h"
#include "report/sweep_table.h"
#include "report/value_plot.h"
#include "spec/metric_name.h"

namespace dpt {
namespace {

using Rows = std::vector<SettingRow>;

std::optional<double> number_in(const std::string& text) {
  double x = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, x);
  return error == std::errc() && rest == end ? std::optional(x) : std::nullopt;
}

// The distinct values of a key: numbers by value, words in the order of the sweep.
std::vector<std::string> values_of(const Sweep& sweep, size_t key) {
  std::vector<std::string> out;
  bool numbers = true;
  for (const SweepRun& r : sweep.runs) {
    const std::string* const value = r.point.find(sweep.keys[key]);
    if (!value || std::ranges::find(out, *value) != out.end()) continue;
    out.push_back(*value);
    numbers = numbers && number_in(*value);
  }
  if (numbers)
    std::ranges::stable_sort(out, {}, [](const std::string& v) { return *number_in(v); });
  return out;
}

size_t index_of(const std::vector<std::string>& values, const std::string& value) {
  return static_cast<size_t>(std::ranges::find(values, value) - values.begin());
}

std::optional<double> finite(const SeedMean& m) {
  return m.count > 0 && std::isfinite(m.mean) && std::abs(m.mean) < 1e100 ? std::optional(m.mean)
                                                                          : std::nullopt;
}

// The values of a row's other keys: "lr=0.1, devices=2".
std::string other_values(const Sweep& sweep, const SettingRow& row, size_t key) {
  const std::vector<std::string> names = short_keys(sweep.keys);
  std::vector<std::string> out;
  for (size_t k = 0; k < names.size(); ++k)
    if (k != key) out.push_back(fmt::format("{}={}", names[k], row.values[k]));
  return fmt::format("{}", fmt::join(out, ", "));
}

// Charts by one key, with the points of their curves.
struct KeyCharts {
  std::vector<LineChart> charts;
  std::deque<std::vector<CurvePoint>> points;
};

// A curve for each combination of the other keys, in the order of their values, or only dots if
// there are many.
template <class F>
void add_chart(KeyCharts& out, const Sweep& sweep, const Rows& rows, size_t key,
               const PlotTicks& ticks, LineChart chart, F&& value) {
  constexpr size_t kMostCurves = 8;
  std::vector<std::vector<std::string>> values;
  for (size_t k = 0; k < sweep.keys.size(); ++k) values.push_back(values_of(sweep, k));
  struct Others {
    std::string name;
    std::map<size_t, double> points;  // by tick
  };
  std::map<std::vector<size_t>, Others> curves;
  for (const SettingRow& r : rows) {
    const std::optional<double> y = value(r);
    std::vector<size_t> place;
    for (size_t k = 0; k < values.size(); ++k) place.push_back(index_of(values[k], r.values[k]));
    const size_t x = std::exchange(place[key], 0);
    if (!y || x == values[key].size()) continue;
    Others& others = curves[place];
    others.name = other_values(sweep, r, key);
    others.points.emplace(x, *y);
  }
  const bool dots = curves.size() > kMostCurves;
  for (const auto& [place, others] : curves) {
    if (!dots || chart.curves.empty()) {
      out.points.emplace_back();
      chart.curves.push_back({.name = others.name,
                              .points = &out.points.back(),
                              .color = chart.curves.size(),
                              .dots = dots});
    }
    for (const auto& [x, y] : others.points) out.points.back().push_back({ticks.places[x], y});
  }
  chart.x_name = sweep.keys[key];
  chart.tick_names = ticks.names;
  chart.tick_places = ticks.places;
  if (!chart.curves.empty()) out.charts.push_back(std::move(chart));
}

std::string by_key(const Sweep& sweep, const Rows& rows, size_t key) {
  const PlotTicks ticks = ticks_named(values_of(sweep, key));
  KeyCharts all;
  const auto add = [&](const std::string& title, bool from_zero, auto&& value) {
    LineChart chart{.title = title, .x_name = {}, .curves = {}, .from_zero = from_zero};
    if (in_percent(title)) {
      chart.title += " in %";
      chart.y_factor = 100;
    }
    add_chart(all, sweep, rows, key, ticks, std::move(chart), value);
  };
  add(sweep.metric, false, [](const SettingRow& r) { return finite(r.metric); });
  if (sweep.target)
    add(fmt::format("seconds to {} {}", sweep.target->metric,
                    value_text(sweep.target->metric, sweep.target->value)),
        true, [](const SettingRow& r) { return finite(r.reached_s); });
  if (sweep.metric != "loss")
    add("training loss", false, [](const SettingRow& r) { return finite(r.loss); });
  add("samples per second", true, [](const SettingRow& r) { return finite(r.samples_per_second); });
  return html::section("Results by " + sweep.keys[key], line_charts(all.charts));
}

// A cell of a heat map: the better the value among those from `low` to `high`, the darker.
std::string heat_cell(const std::string& metric, double value, double low, double high,
                      bool lower_is_better) {
  constexpr double kDarkest = 0.8;
  const double part = high > low ? (value - low) / (high - low) : 1;
  const double goodness = lower_is_better && high > low ? 1 - part : part;
  return fmt::format("<td style=\"background:rgba(var(--heat),{:.3f})\">{}</td>",
                     kDarkest * goodness, value_text(metric, value));
}

// The best mean of the metric over the other keys, for each pair of values.
std::string heat_map(const Sweep& sweep, const Rows& rows, size_t across, size_t down) {
  const std::vector<std::string> columns = values_of(sweep, across), lines = values_of(sweep, down);
  std::map<std::pair<size_t, size_t>, double> cells;
  const bool lower =
      lower_is_better(sweep.metric.starts_with("best.") ? sweep.metric.substr(5) : sweep.metric);
  for (const SettingRow& r : rows) {  // the best first
    const std::pair at(index_of(lines, r.values[down]), index_of(columns, r.values[across]));
    const auto value = finite(r.metric);
    if (!value || at.first == lines.size() || at.second == columns.size()) continue;
    const auto [cell, is_new] = cells.emplace(at, *value);
    if (!is_new && (lower ? *value < cell->second : *value > cell->second)) cell->second = *value;
  }
  if (cells.size() < 2) return "";
  double low = HUGE_VAL, high = -HUGE_VAL;
  for (const auto& [at, value] : cells) low = std::min(low, value), high = std::max(high, value);
  std::string out = fmt::format(
      "<p class=\"soft\">Rows: {}. Columns: {}. {}</p>\n<div class=\"wide\"><table "
      "class=\"heat\">\n<tr><th></th>",
      html::text(sweep.keys[down]), html::text(sweep.keys[across]),
      sweep.keys.size() > 2 ? "The best over the other keys; bluer is better."
                            : "Bluer is better.");
  for (const std::string& c : columns) out += fmt::format("<th>{}</th>", html::text(c));
  out += "</tr>\n";
  for (size_t l = 0; l < lines.size(); ++l) {
    out += fmt::format("<tr><th>{}</th>", html::text(lines[l]));
    for (size_t c = 0; c < columns.size(); ++c) {
      const auto cell = cells.find({l, c});
      out += cell == cells.end() ? "<td></td>"
                                 : heat_cell(sweep.metric, cell->second, low, high, lower);
    }
    out += "</tr>\n";
  }
  return html::section(
      fmt::format("{} by {} and {}", sweep.metric, sweep.keys[down], sweep.keys[across]),
      out + "</table></div>\n");
}

// The runs as rows of a benchmark: speed-up over `single` beside the ideal line, which bends where
// every core has a worker.
std::string speedup(const Sweep& sweep, const std::string& machine, int cores) {
  using Key = std::tuple<std::string, int64_t, int64_t, std::string>;
  std::map<Key, std::vector<double>> times;  // milliseconds per sample
  std::map<Key, int> workers;
  std::vector<Key> order;
  for (const SweepRun& r : sweep.runs) {
    const auto rate = r.numbers.find("samples_per_second");
    if (!rate) continue;
    const SweepFacts& f = r.facts;
    const Key key(f.mode, f.devices, f.batch_size, f.precision);
    if (!times.contains(key)) order.push_back(key);
    times[key].push_back(1000 / *rate);
    workers[key] = f.cores;
  }
  const auto is_single = [](const Key& k) { return std::get<0>(k) == "single"; };
  if (order.size() < 2 || std::ranges::none_of(order, is_single) ||
      std::ranges::all_of(order, is_single))
    return "";
  BenchReport report{.name = sweep.name,
                     .machine = machine,
                     .data = "the runs of this sweep, seconds of training without evaluations",
                     .cores = cores};
  for (const Key& key : order) {
    const auto& [mode, devices, batch_size, precision] = key;
    const std::vector<double>& ms = times[key];
    RowResult row{
        .row = {.mode = mode, .devices = devices, .batch_size = batch_size, .precision = precision},
        .facts = {},
        .data = {}};
    row.facts.workers = workers[key];
    row.ms_per_sample = mean_of(ms).mean;
    row.lower = row.fastest = *std::ranges::min_element(ms);
    row.upper = row.slowest = *std::ranges::max_element(ms);
    row.rounds = static_cast<int>(ms.size());
    report.rows.push_back(std::move(row));
    const int each = workers[key] / static_cast<int>(std::max<int64_t>(1, devices));
    report.device = each == 1 ? "1 core" : fmt::format("{} cores", each);
  }
  return html::section("Speed-up by number of devices",
                       "<div class=\"wide drawn\">\n" + speedup_svg(report) + "</div>\n");
}

// The columns as rows of texts; the state, a word, stands before the numbers.
html::Table settings_table(const Sweep& sweep, const Rows& rows) {
  std::vector<TextColumn> columns = sweep_columns(sweep, rows);
  std::rotate(columns.begin() + static_cast<std::ptrdiff_t>(sweep.keys.size()), columns.end() - 1,
              columns.end());
  html::Table out(rows.size() + 1);
  for (const TextColumn& c : columns) {
    for (size_t i = 0; i < out.size(); ++i) {
      out[i].push_back(c.cells[i]);
      std::string& cell = out[i].back();
      if (const size_t at = cell.find(" +- "); at != cell.npos) cell.replace(at, 4, " \u00b1 ");
    }
  }
  return out;
}

html::Table runs_table(const Sweep& sweep) {
  const bool notes = std::ranges::any_of(sweep.runs, [](const auto& r) { return !r.note.empty(); });
  html::Table out = {{"run", "state"}};
  if (notes) out[0].emplace_back("note");
  out[0].insert(out[0].end(), {"epochs", "loss"});
  if (sweep.metric != "loss") out[0].push_back(sweep.metric);
  out[0].insert(out[0].end(), {"best", "seconds"});
  const std::string best =
      sweep.metric.starts_with("best.") ? sweep.metric : "best." + sweep.metric;
  for (const SweepRun& r : sweep.runs) {
    const auto number = [&](const std::string& name) {
      const auto value = r.numbers.records().empty() ? std::nullopt : r.numbers.find(name);
      return value ? value_text(name, *value) : std::string("-");
    };
    std::vector<std::string>& row = out.emplace_back();
    row = {r.point.name, std::string(name_of(r.state))};
    if (notes) row.push_back(r.note);
    row.insert(row.end(), {fmt::format("{}", r.numbers.epochs()), number("loss")});
    if (sweep.metric != "loss") row.push_back(number(sweep.metric));
    row.insert(row.end(), {number(best), fmt::format("{:.2f}", r.numbers.seconds())});
  }
  return out;
}

}  // namespace

std::vector<std::string> sweep_pictures(const Sweep& sweep, const std::string& machine, int cores) {
  const Rows rows = setting_rows(sweep);
  constexpr size_t kMostKeys = 6, kMostMaps = 3;
  std::vector<std::string> out;
  const auto add = [&](std::string picture) {
    if (!picture.empty()) out.push_back(std::move(picture));
  };
  const auto of_devices = [](const std::string& key) {
    return key == "devices" || key.starts_with("parallel");
  };
  if (std::ranges::any_of(sweep.keys, of_devices)) add(speedup(sweep, machine, cores));
  const size_t keys = std::min(sweep.keys.size(), kMostKeys);
  for (size_t a = 0; a < std::min(keys, kMostMaps); ++a)
    for (size_t b = a + 1; b < std::min(keys, kMostMaps); ++b) add(heat_map(sweep, rows, b, a));
  for (size_t k = 0; k < keys; ++k) add(by_key(sweep, rows, k));
  return out;
}

std::string sweep_html(const Sweep& sweep, const std::string& command, const std::string& machine,
                       int cores) {
  const Rows rows = setting_rows(sweep);
  const std::string title = "Sweep of " + sweep.name;
  std::string body = fmt::format(
      "<header>\n<h1>{}</h1>\n<p><code>{}</code></p>\n<p class=\"soft\">{}</p>\n</header>\n",
      html::text(title), html::text(command), html::text(machine));
  std::string settings = html::table(settings_table(sweep, rows), sweep.keys.size() + 1);
  if (sweep.seeds > 1)
    settings +=
        "<p class=\"soft\">Means over the seeds, and after \u00b1 their standard deviation.</p>\n";
  body += html::section("Settings", settings);
  for (const std::string& picture : sweep_pictures(sweep, machine, cores)) body += picture;
  const html::Table runs = runs_table(sweep);
  body += html::section("Runs",
                        html::table(runs, std::ranges::find(runs[0], "epochs") - runs[0].begin()));
  return html::page(title, body);
}

}  // namespace dpt
