#include "report/run_report.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <ctime>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "report/confusion_table.h"
#include "report/html.h"
#include "report/label_tables.h"
#include "report/line_chart.h"
#include "report/metric_text.h"
#include "report/run_time.h"
#include "spec/metric_name.h"

namespace dpt {
namespace {

using html::text;

std::string spec_name(const ReportedRun& run) {
  const auto name = run.summary.spec.find("name");
  return name == run.summary.spec.end() ? run.name : name->second;
}

std::string utc_text(double time) {
  const auto seconds = static_cast<std::time_t>(time);
  std::tm parts{};
  std::array<char, 40> out{};
  if (!(time > 0) || ::gmtime_r(&seconds, &parts) == nullptr) return "";
  return std::strftime(out.data(), out.size(), "%Y-%m-%d %H:%M:%S UTC", &parts) > 0 ? out.data()
                                                                                    : "";
}

std::string head(const ReportedRun& run) {
  const RunCurves& c = run.curves;
  std::string out = fmt::format(
      "<header>\n<h1>{} <span class=\"state\">{}</span></h1>\n<p class=\"soft\">{}</p>\n",
      text(spec_name(run)), name_of(run.summary.state), text(run.name));
  std::string epochs = run.environment_text("epochs"), steps = run.environment_text("steps");
  out += fmt::format("<p>Epoch {}{}, step {}{}{}.</p>\n", c.epoch(),
                     epochs.empty() ? "" : " of " + epochs, c.step(),
                     steps.empty() ? "" : " of " + steps,
                     c.times().empty() ? "" : ", last record " + utc_text(c.times().back().time));
  if (!run.summary.note.empty()) out += fmt::format("<p><b>{}</b></p>\n", text(run.summary.note));
  return out + "</header>\n";
}

std::string tiles(const ReportedRun& run) {
  std::string out;
  for (const Curve& c : run.curves.curves()) {
    const auto last = c.last();
    const auto best = c.best();
    if (!is_result(c.tag) || is_by_label(c.tag) || !last || !best) continue;
    out += fmt::format("<div class=\"tile\">{}<b>{}</b><span class=\"soft\">{}</span></div>\n",
                       text(title_of(c.tag)), text(value_text(c.tag, *last)),
                       c.points.size() < 2 ? ""
                       : best->value == *last
                           ? "the best"
                           : text(fmt::format("best {}, {}", value_text(c.tag, best->value),
                                              epoch_text(run.curves, best->step))));
  }
  return out.empty() ? "" : "<div class=\"tiles\">\n" + out + "</div>\n";
}

// The color of a set is the same in all charts.
size_t color_of_set(std::string_view name) {
  const std::string_view set = set_of(name);
  if (set == "validation" || name == "evaluation_seconds") return 1;
  return set == "test" ? 2 : name == "step.loss" ? 7 : 0;
}

struct XAxis {
  std::string name = "step";
  double scale = 1;
};

XAxis x_axis(const RunCurves& curves) {
  if (curves.steps_of_epoch() == 0) return {};
  return {.name = "epoch", .scale = static_cast<double>(curves.steps_of_epoch())};
}

std::string title_of_group(std::string_view group) {
  if (group == "seconds") return "seconds per epoch";
  if (group == "grad_norms") return "norms of gradients by parameter";
  return std::string(group);
}

// Of many parameters, those with the largest last norm are drawn; of many labels, the worst.
void keep_some(std::vector<const Curve*>& curves, size_t most, bool largest) {
  if (curves.size() <= most) return;
  std::ranges::stable_sort(curves, [&](const Curve* a, const Curve* b) {
    const double x = a->last().value_or(0), y = b->last().value_or(0);
    return largest ? x > y : x < y;
  });
  curves.resize(most);
}

LineChart chart_of(const ReportedRun& run, const std::string& group,
                   std::vector<const Curve*> curves) {
  constexpr size_t kMostAlike = 8;
  const size_t all = curves.size();
  const bool norms = group == "grad_norms", labels = is_by_label(curves[0]->tag);
  if (norms || labels) keep_some(curves, kMostAlike, norms);
  const XAxis x = x_axis(run.curves);
  LineChart chart{.title = title_of_group(group), .x_name = x.name, .curves = {}};
  if (curves.size() == 1 && group != "seconds" && !labels) chart.title = title_of(curves[0]->tag);
  if (all > curves.size())
    chart.title +=
        fmt::format(" (the {} {} of {})", curves.size(), norms ? "largest" : "lowest", all);
  chart.from_zero = group == "samples_per_second" || group == "seconds" || group == "data_wait";
  if (in_percent(curves[0]->tag)) {
    chart.y_factor = 100;
    chart.title += " in %";
  }
  for (const Curve* c : curves)
    chart.curves.push_back({.name = title_of(c->tag),
                            .points = &c->points,
                            .x_scale = x.scale,
                            .color = norms || labels ? chart.curves.size() : color_of_set(c->tag),
                            .thin = c->tag == "step.loss" && curves.size() > 1});
  return chart;
}

std::vector<LineChart> charts_of(const ReportedRun& run, bool only_results) {
  std::vector<std::pair<std::string, std::vector<const Curve*>>> groups;
  for (const Curve& c : run.curves.curves()) {
    const bool none = std::ranges::all_of(c.points, [](const auto& p) { return p.value == 0; });
    if (c.tag == "skipped_steps" && none) continue;
    if (only_results && (!is_result(c.tag) || is_by_label(c.tag)) && c.tag != "step.loss") continue;
    const std::string group(group_of(c.tag));
    const auto found = std::ranges::find(groups, group, [](const auto& g) { return g.first; });
    if (found == groups.end())
      groups.push_back({group, {&c}});
    else
      found->second.push_back(&c);
  }
  // Results first.
  std::ranges::stable_sort(groups, {}, [](const auto& g) {
    return std::ranges::any_of(g.second, [](const Curve* c) { return is_result(c->tag); }) ? 0 : 1;
  });
  std::vector<LineChart> out;
  for (const auto& [group, curves] : groups) out.push_back(chart_of(run, group, curves));
  return out;
}

std::string time_section(const ReportedRun& run) {
  const RunTime time = time_of(run);
  if (time.parts.empty()) return "";
  const double total = time.total();
  std::string bar = "<div class=\"bar\">", legend = "<div class=\"legend\">";
  constexpr std::array<size_t, 4> kColors = {0, 1, 2, 7};
  constexpr std::array<std::string_view, 4> kNames = {"training steps", "waiting for data",
                                                      "evaluation", ""};
  for (const TimePart& p : time.parts) {
    const auto at = static_cast<size_t>(std::ranges::find(kNames, p.name) - kNames.begin());
    const size_t color = kColors[std::min(at, kColors.size() - 1)];
    bar += fmt::format("<i class=\"b{}\" style=\"width:{:.2f}%\"></i>", color,
                       100 * p.seconds / total);
    legend += fmt::format(
        "<span><svg viewBox=\"0 0 24 10\"><rect class=\"f{}\" width=\"24\" "
        "height=\"10\"/></svg>{} {}, {:.0f} %</span>",
        color, text(p.name), duration_text(p.seconds), 100 * p.seconds / total);
  }
  std::string out = bar + "</div>\n" + legend + "</div>\n";
  for (const std::string& reason : time.reasons) out += fmt::format("<p>{}</p>\n", text(reason));
  return out;
}

std::string facts(const ReportedRun& run) {
  std::string out = "<table class=\"facts\">\n";
  const auto row = [&](std::string_view name, const std::string& value) {
    if (!value.empty()) out += fmt::format("<tr><td>{}</td><td>{}</td></tr>\n", name, text(value));
  };
  if (run.summary.environment) {
    row("started", utc_text(run.summary.environment->number("started").value_or(0)));
    constexpr std::pair<const char*, const char*> kFacts[] = {
        {"program", "version"},
        {"host", "host"},
        {"job", "job"},
        {"run id", "run"},
        {"resumed by", "resume"},
        {"CPU", "cpu"},
        {"usable cores", "cores"},
        {"device", "device"},
        {"mode", "mode"},
        {"ranks", "ranks"},
        {"hosts", "hosts"},
        {"devices", "devices"},
        {"workers", "workers"},
        {"precision", "precision"},
        {"data", "data"},
        {"training samples", "samples"},
        {"validation samples", "validation_samples"},
        {"test samples", "test_samples"},
        {"global batch", "batch_size"},
        {"parameters", "parameters"},
        {"seed", "seed"}};
    for (const auto& [name, key] : kFacts) row(name, run.environment_text(key));
  }
  row("directory", run.summary.path);
  for (const WeightsHash& w : run.weights)
    row("SHA-256 of " + w.file,
        w.sha256.empty() ? fmt::format("not computed for a large file; see `dptrain report {}`",
                                       run.summary.path)
                         : w.sha256);
  return out + "</table>\n";
}

}  // namespace

std::string curves_svg(const ReportedRun& run) { return charts_svg(charts_of(run, true)); }

std::string run_report(const ReportedRun& run) {
  std::string body = head(run) + tiles(run);
  body += html::section("Curves", line_charts(charts_of(run, false)));
  body += html::section("Labels", label_tables(run.curves));
  body += html::section("Confusion matrix", confusion_table(run.confusion));
  body += html::section("Time", time_section(run));
  std::string plan;
  if (!run.plan_svg.empty()) plan += html::picture(run.plan_svg, "the pipeline's schedule");
  if (!run.plan.empty()) plan += html::folded("What each step does (dptrain plan)", run.plan);
  body += html::section("Plan", plan);
  if (!run.spec.empty())
    body += html::section("Spec", html::folded("spec.resolved.yaml", run.spec));
  body += html::section("Environment", facts(run));
  return html::page(fmt::format("{} ({})", spec_name(run), name_of(run.summary.state)), body);
}

}  // namespace dpt
