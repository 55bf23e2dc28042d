// The page about several runs.
#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/status_line.h"
#include "report/html.h"
#include "report/line_chart.h"
#include "report/metric_text.h"
#include "report/run_report.h"
#include "report/runs_table.h"
#include "spec/metric_name.h"

namespace dpt {
namespace {

using html::Table;

std::string hash_of_model(const ReportedRun& run) {
  for (const WeightsHash& w : run.weights)
    if (w.file == "model.safetensors") return w.sha256;
  return "";
}

// The tags of all runs, by first appearance.
std::vector<std::string> tags_of(std::span<const ReportedRun> runs) {
  std::vector<std::string> out;
  for (const ReportedRun& run : runs)
    for (const Curve& c : run.curves.curves())
      if (std::ranges::find(out, c.tag) == out.end()) out.push_back(c.tag);
  // Results first.
  std::ranges::stable_sort(out, {}, [](const std::string& tag) { return is_result(tag) ? 0 : 1; });
  return out;
}

// Whether a run has more than one point: metrics of the test set may have a last one only.
bool has_curve(std::span<const ReportedRun> runs, std::string_view tag) {
  return std::ranges::any_of(runs, [&](const ReportedRun& run) {
    const Curve* const c = run.curves.find(tag);
    return c && c->points.size() > 1;
  });
}

// The counts of env.json in which runs differ.
std::vector<std::string> different_counts(std::span<const ReportedRun> runs) {
  std::vector<std::string> out = {"ranks", "workers", "hosts"};
  std::erase_if(out, [&](const std::string& key) {
    return std::ranges::all_of(runs, [&](const ReportedRun& run) {
      return run.environment_text(key) == runs[0].environment_text(key);
    });
  });
  return out;
}

std::string results(std::span<const ReportedRun> runs, const std::vector<std::string>& tags) {
  Table rows = {{"run", "state", "epochs"}};
  const std::vector<std::string> counts = different_counts(runs);
  rows[0].insert(rows[0].end(), counts.begin(), counts.end());
  for (const std::string& tag : tags)
    if (is_result(tag) && !is_by_label(tag)) {
      rows[0].push_back(title_of(tag));
      if (has_curve(runs, tag)) rows[0].push_back("best");
    }
  rows[0].insert(rows[0].end(), {"seconds", "samples/s"});
  for (const ReportedRun& run : runs) {
    std::vector<std::string> row = {run.name, std::string(name_of(run.summary.state)),
                                    fmt::format("{}", run.summary.numbers.epochs())};
    for (const std::string& key : counts) row.push_back(run.environment_text(key));
    for (const std::string& tag : tags) {
      if (!is_result(tag) || is_by_label(tag)) continue;
      const Curve* c = run.curves.find(tag);
      const auto last = c ? c->last() : std::nullopt;
      const auto best = c ? c->best() : std::nullopt;
      row.push_back(last ? value_text(tag, *last) : "-");
      if (has_curve(runs, tag)) row.push_back(best ? value_text(tag, best->value) : "-");
    }
    const auto rate = run.summary.numbers.find("samples_per_second");
    row.push_back(fmt::format("{:.2f}", run.summary.numbers.seconds()));
    row.push_back(rate ? grouped(static_cast<int64_t>(*rate)) : "-");
    rows.push_back(std::move(row));
  }
  return html::table(rows, 2);
}

// Curves by epochs, unless a run has none: runs of other batch sizes have other steps.
std::vector<LineChart> charts_of(std::span<const ReportedRun> runs,
                                 const std::vector<std::string>& tags, bool only_results) {
  const bool by_epoch =
      std::ranges::all_of(runs, [](const ReportedRun& r) { return r.curves.steps_of_epoch() > 0; });
  std::vector<LineChart> out;
  for (const std::string& tag : tags) {
    if (tag.starts_with("grad_norms.") || tag == "skipped_steps" || is_by_label(tag)) continue;
    if (only_results && !is_result(tag)) continue;
    if (!has_curve(runs, tag) && has_curve(runs, "loss")) continue;  // the table has it
    LineChart chart{.title = title_of(tag), .x_name = by_epoch ? "epoch" : "step", .curves = {}};
    if (in_percent(tag)) {
      chart.y_factor = 100;
      chart.title += " in %";
    }
    chart.from_zero = tag == "samples_per_second" || group_of(tag) == "seconds";
    for (size_t i = 0; i < runs.size(); ++i) {
      const Curve* c = runs[i].curves.find(tag);
      if (!c) continue;
      chart.curves.push_back(
          {.name = runs[i].name,
           .points = &c->points,
           .x_scale = by_epoch ? static_cast<double>(runs[i].curves.steps_of_epoch()) : 1,
           .color = i,
           .dashed = i / 8 % 2 == 1});
    }
    out.push_back(std::move(chart));
  }
  return out;
}

std::string differences(std::span<const ReportedRun> runs) {
  std::vector<RunRow> rows;
  for (const ReportedRun& run : runs) rows.push_back({run.name, run.summary});
  const RunsTable table = make_runs_table(std::move(rows), {});
  if (table.keys.empty()) return "<p>The specs are the same.</p>\n";
  Table out = {{"key"}};
  for (const ReportedRun& run : runs) out[0].push_back(run.name);
  for (const std::string& key : table.keys) {
    std::vector<std::string> row = {key};
    for (const ReportedRun& run : runs) {
      const auto found = run.summary.spec.find(key);
      row.push_back(found == run.summary.spec.end() ? "-" : found->second);
    }
    out.push_back(std::move(row));
  }
  return html::table(out, 99);
}

// The names of the runs by the hash of their weights, by first appearance.
std::vector<std::pair<std::string, std::vector<std::string>>> by_hash(
    std::span<const ReportedRun> runs) {
  std::vector<std::pair<std::string, std::vector<std::string>>> out;
  for (const ReportedRun& run : runs) {
    const std::string hash = hash_of_model(run);
    if (hash.empty()) continue;
    const auto found = std::ranges::find(out, hash, [](const auto& g) { return g.first; });
    if (found == out.end())
      out.push_back({hash, {run.name}});
    else
      found->second.push_back(run.name);
  }
  return out;
}

std::string weights(std::span<const ReportedRun> runs) {
  const auto groups = by_hash(runs);
  if (groups.empty()) return "";
  Table rows = {{"SHA-256 of model.safetensors", "runs"}};
  for (const auto& [hash, names] : groups)
    rows.push_back({hash, fmt::format("{}", fmt::join(names, ", "))});
  return (groups.size() == 1 && groups[0].second.size() == runs.size()
              ? "<p>All runs ended in the same bits.</p>\n"
              : "") +
         html::table(rows, 99);
}

}  // namespace

std::string weights_text(std::span<const ReportedRun> runs) {
  std::string out;
  for (const auto& [hash, names] : by_hash(runs))
    out += fmt::format("{}  {}{}\n", hash, fmt::join(names, ", "),
                       names.size() > 1 ? " (the same bits)" : "");
  return out.empty() ? "" : "SHA-256 of model.safetensors:\n" + out;
}

std::string curves_svg(std::span<const ReportedRun> runs) {
  return charts_svg(charts_of(runs, tags_of(runs), true));
}

std::string runs_report(std::span<const ReportedRun> runs) {
  const std::vector<std::string> tags = tags_of(runs);
  std::string body = fmt::format("<header><h1>{} runs</h1></header>\n", runs.size());
  body += html::section("Results", results(runs, tags));
  body += html::section("Curves", line_charts(charts_of(runs, tags, false)));
  body += html::section("Differences of the specs", differences(runs));
  body += html::section("Final weights", weights(runs));
  for (const ReportedRun& run : runs)
    if (!run.summary.note.empty())
      body += fmt::format("<p>{}: {}</p>\n", html::text(run.name), html::text(run.summary.note));
  return html::page(fmt::format("{} runs", runs.size()), body);
}

}  // namespace dpt
