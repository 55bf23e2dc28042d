#include "report/sweep_picture.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>
#include <system_error>
#include <tuple>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "report/report.h"
#include "report/svg.h"
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

// A line for each combination of the other keys, or only points if there are many.
template <class F>
ValuePlot plot_of(const Sweep& sweep, const Rows& rows, size_t key,
                  const std::vector<std::string>& values, const std::string& title, F&& value) {
  constexpr size_t kMostLines = 3;
  std::map<std::string, PlotSeries> series;
  std::vector<std::string> names;
  for (const SettingRow& r : rows) {
    const std::optional<double> y = value(r);
    const size_t x = index_of(values, r.values[key]);
    if (!y || x == values.size()) continue;
    const std::string name = other_values(sweep, r, key);
    if (!series.contains(name)) names.push_back(name);
    series[name].points.emplace_back(static_cast<double>(x), *y);
  }
  std::ranges::sort(names);
  ValuePlot out{.title = title, .from_zero = false, .series = {}};
  for (const std::string& name : names) {
    PlotSeries s{
        .name = name, .color = plot_color(out.series.size()), .points = series[name].points};
    if (names.size() > kMostLines && !out.series.empty()) {
      auto& all = out.series[0].points;
      all.insert(all.end(), s.points.begin(), s.points.end());
    } else {
      out.series.push_back(std::move(s));
    }
  }
  for (PlotSeries& s : out.series) std::ranges::stable_sort(s.points);
  return out;
}

std::string by_key(const Sweep& sweep, const Rows& rows, size_t key) {
  const std::vector<std::string> values = values_of(sweep, key);
  std::vector<ValuePlot> plots;
  const auto add = [&](const std::string& title, bool from_zero, auto&& value) {
    ValuePlot p = plot_of(sweep, rows, key, values, title, value);
    p.from_zero = from_zero;
    if (!p.series.empty()) plots.push_back(std::move(p));
  };
  add(sweep.metric, false, [](const SettingRow& r) { return finite(r.metric); });
  if (sweep.target)
    add(fmt::format("seconds to {} {}", sweep.target->metric,
                    metric_text(sweep.target->metric, sweep.target->value)),
        true, [](const SettingRow& r) { return finite(r.reached_s); });
  if (sweep.metric != "loss")
    add("training loss", false, [](const SettingRow& r) { return finite(r.loss); });
  add("samples per second", true, [](const SettingRow& r) { return finite(r.samples_per_second); });
  if (plots.empty()) return "";
  std::string out = svg::begin(kPlotWidth * static_cast<int>(plots.size()), kPlotHeight);
  out += svg::text(20, 26, fmt::format("Results by {}", sweep.keys[key]), "font-size=\"16\"");
  int left = 0;
  for (const ValuePlot& p : plots) {
    out += draw_plot(p, ticks_named(values), left, sweep.keys[key]);
    left += kPlotWidth;
  }
  return out + "</svg>\n";
}

// White for the worst value, blue for the best.
std::string shade(double goodness) {
  const auto mix = [&](int from, int to) {
    return static_cast<int>(std::lround(from + (to - from) * goodness));
  };
  return fmt::format("#{:02x}{:02x}{:02x}", mix(255, 68), mix(255, 119), mix(255, 170));
}

// The best mean of the metric over the other keys, for each pair of values.
std::string heat_map(const Sweep& sweep, const Rows& rows, size_t across, size_t down) {
  constexpr int kCell = 92, kLine = 34, kLeft = 150, kTop = 90;
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
  const int width = kLeft + kCell * static_cast<int>(columns.size()) + 40;
  const int height = kTop + kLine * static_cast<int>(lines.size()) + 30;
  std::string out = svg::begin(std::max(width, 480), height);
  out += svg::text(
      20, 26, fmt::format("{} by {} and {}", sweep.metric, sweep.keys[down], sweep.keys[across]),
      "font-size=\"16\"");
  out += svg::text(
      20, 46,
      sweep.keys.size() > 2 ? "the best over the other keys; darker is better" : "darker is better",
      "font-size=\"12\" fill=\"#666666\"");
  for (size_t c = 0; c < columns.size(); ++c)
    out += svg::text(kLeft + kCell * (static_cast<double>(c) + 0.5), kTop - 10, columns[c],
                     "text-anchor=\"middle\" font-size=\"12\"");
  for (size_t l = 0; l < lines.size(); ++l)
    out += svg::text(kLeft - 10, kTop + kLine * (static_cast<double>(l) + 0.6), lines[l],
                     "text-anchor=\"end\" font-size=\"12\"");
  for (const auto& [at, value] : cells) {
    const double part = high > low ? (value - low) / (high - low) : 1;
    const double goodness = lower && high > low ? 1 - part : part;
    const int x = kLeft + kCell * static_cast<int>(at.second);
    const int y = kTop + kLine * static_cast<int>(at.first);
    out += fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{}\"/>\n", x, y,
                       kCell - 2, kLine - 2, shade(goodness));
    out += svg::text(x + (kCell - 2) / 2.0, y + 0.6 * kLine, metric_text(sweep.metric, value),
                     fmt::format("text-anchor=\"middle\" font-size=\"12\" fill=\"{}\"",
                                 goodness > 0.6 ? "#ffffff" : "#222222"));
  }
  return out + "</svg>\n";
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
  return speedup_svg(report);
}

std::string html_table(const std::vector<SweepColumn>& columns) {
  std::string out = "<table>\n<tr>";
  for (const SweepColumn& c : columns) out += fmt::format("<th>{}</th>", svg::escaped(c.title));
  out += "</tr>\n";
  for (size_t i = 0; i < columns[0].cells.size(); ++i) {
    out += "<tr>";
    for (const SweepColumn& c : columns)
      out += fmt::format("<td>{}</td>", svg::escaped(c.cells[i]));
    out += "</tr>\n";
  }
  return out + "</table>\n";
}

std::vector<SweepColumn> run_columns(const Sweep& sweep) {
  std::vector<SweepColumn> out = {{"run", {}},        {"state", {}}, {"epochs", {}},  {"loss", {}},
                                  {sweep.metric, {}}, {"best", {}},  {"seconds", {}}, {"note", {}}};
  const std::string best =
      sweep.metric.starts_with("best.") ? sweep.metric : "best." + sweep.metric;
  for (const SweepRun& r : sweep.runs) {
    const auto number = [&](const std::string& name) {
      const auto value = r.numbers.records().empty() ? std::nullopt : r.numbers.find(name);
      return value ? metric_text(name, *value) : std::string("-");
    };
    const std::string cells[] = {r.point.name,
                                 std::string(state_text(r)),
                                 fmt::format("{}", r.numbers.epochs()),
                                 number("loss"),
                                 number(sweep.metric),
                                 number(best),
                                 fmt::format("{:.2f}", r.numbers.seconds()),
                                 r.note};
    for (size_t c = 0; c < out.size(); ++c) out[c].cells.push_back(cells[c]);
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
  std::string out = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>Sweep of {0}"
      "</title>\n<style>\nbody {{ font-family: sans-serif; margin: 2em; color: #222 }}\n"
      "table {{ border-collapse: collapse; margin: 1em 0 }}\n"
      "th, td {{ border-bottom: 1px solid #ddd; padding: 0.3em 0.8em; text-align: right; "
      "white-space: nowrap }}\n"
      "th:first-child, td:first-child, th:last-child, td:last-child {{ text-align: left; "
      "white-space: normal }}\n"
      "svg {{ max-width: 100%; height: auto; display: block; margin: 1em 0 }}\n"
      "</style>\n</head>\n<body>\n<h1>Sweep of {0}</h1>\n<p><code>{1}</code><br>{2}</p>\n",
      svg::escaped(sweep.name), svg::escaped(command), svg::escaped(machine));
  out += "<h2>Settings</h2>\n" + html_table(sweep_columns(sweep, setting_rows(sweep)));
  if (sweep.seeds > 1)
    out += "<p>Means over the seeds, and after +- their standard deviation.</p>\n";
  for (const std::string& picture : sweep_pictures(sweep, machine, cores)) out += picture;
  out += "<h2>Runs</h2>\n" + html_table(run_columns(sweep));
  return out + "</body>\n</html>\n";
}

}  // namespace dpt
