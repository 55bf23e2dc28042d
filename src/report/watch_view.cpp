#include "report/watch_view.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/status_line.h"
#include "base/stderr.h"
#include "report/metric_text.h"
#include "report/reported_run.h"
#include "spec/metric_name.h"

namespace dpt {
namespace {

std::string of_text(int64_t done, int64_t all) {
  return all > 0 ? fmt::format("{}/{}", done, all) : fmt::format("{}", done);
}

std::vector<std::string> results(const RunCurves& curves) {
  std::vector<std::string> out;
  for (const Curve& c : curves.curves()) {
    if (!is_result(c.tag) || is_by_label(c.tag)) continue;
    const auto last = c.last();
    const auto best = c.best();
    if (!last || !best) continue;
    std::string text = fmt::format("{} {}", c.tag, value_text(c.tag, *last));
    if (c.points.size() > 1)
      text += best->value == *last ? " (best)"
                                   : fmt::format(" (best {}, {})", value_text(c.tag, best->value),
                                                 epoch_text(curves, best->step));
    out.push_back(std::move(text));
  }
  return out;
}

std::string cut(const std::string& text, size_t most) {
  if (characters_of(text) <= most) return text;
  std::string out = text;
  while (!out.empty() && characters_of(out) > most - 2) do
      out.pop_back();
    while (!out.empty() && (static_cast<unsigned char>(out.back()) & 0xC0) == 0x80);
  return out + "..";
}

// Puts the fields on as few lines as have room.
std::vector<std::string> wrapped(const std::vector<std::string>& fields, size_t width,
                                 std::string_view between = "  ") {
  std::vector<std::string> out;
  for (const std::string& field : fields) {
    if (field.empty()) continue;
    const std::string text = escape_controls(field);
    if (!out.empty() && characters_of(out.back()) + between.size() + characters_of(text) <= width)
      out.back() += std::string(between) + text;
    else
      out.push_back(cut(text, width));
  }
  return out;
}

std::string bar(int64_t done, int64_t all, int columns) {
  const auto width = static_cast<size_t>(std::clamp(columns / 4, 8, 30));
  const double part = std::clamp(static_cast<double>(done) / static_cast<double>(all), 0.0, 1.0);
  const auto full = static_cast<size_t>(std::floor(part * static_cast<double>(width)));
  return fmt::format("[{}{}]", std::string(full, '='), std::string(width - full, ' '));
}

// The bar of "step 30/60"; empty for other texts.
std::string bar_of(std::string_view text, int columns) {
  constexpr std::string_view kStep = "step ";
  const size_t slash = text.find('/');
  if (!text.starts_with(kStep) || slash == text.npos) return "";
  int64_t done = 0, all = 0;
  std::from_chars(text.data() + kStep.size(), text.data() + slash, done);
  std::from_chars(text.data() + slash + 1, text.data() + text.size(), all);
  return all > 0 ? bar(done, all, columns) : "";
}

// The parts of a line of a log (train/progress.h): "epoch 1/10, step 30/60: loss 0.4, lr 0.001".
std::vector<std::string> parts_of(std::string_view line, int columns) {
  std::vector<std::string> out;
  for (size_t at = 0; at < line.size();) {
    const size_t end = std::min({line.size(), line.find(", ", at), line.find(": ", at)});
    out.emplace_back(line.substr(at, end - at));
    at = end + 2;
    out.push_back(bar_of(out.back(), columns));  // wrapped() leaves out empty ones
  }
  return out;
}

std::vector<std::string> position(const WatchedRun& run, double now, int columns) {
  const bool running = run.state == "running";
  if (running && !run.progress.empty()) return parts_of(run.progress, columns);
  const RunCurves& c = *run.curves;
  std::vector<std::string> out = {"epoch " + of_text(c.epoch(), run.epochs),
                                  "step " + of_text(c.step(), run.steps)};
  if (run.steps > 0) out.push_back(bar(c.step(), run.steps, columns));
  if (running)
    if (const auto left = seconds_left(c, run.steps, now))
      out.push_back("ETA " + clock_duration(*left));
  const double end = running || c.times().empty() ? now : c.times().back().time;
  const double begin = run.began > 0 ? run.began : c.first_time();
  if (begin > 0) out.push_back("elapsed " + clock_duration(end - begin));
  if (const Curve* rate = c.find("samples_per_second"))
    if (const auto last = rate->last()) out.push_back(samples_per_second(*last));
  if (const Curve* lr = c.find("lr"))
    if (const auto last = lr->last()) out.push_back("lr " + value_text("lr", *last));
  return out;
}

std::vector<TextCurve> charted(const RunCurves& curves) {
  std::vector<TextCurve> out;
  const Curve* steps = curves.find("step.loss");
  if (const Curve* train = curves.find("loss"); train && (!steps || train->points.size() > 1))
    out.push_back({.name = "loss", .points = &train->points});
  else if (steps)
    out.push_back({.name = "step.loss", .points = &steps->points});
  for (const char* tag : {"validation.loss", "test.loss"})
    if (const Curve* c = curves.find(tag); c && out.size() < 2)
      out.push_back({.name = tag, .points = &c->points, .marks = true});
  return out;
}

// A number of a record: "loss 0.3120", "8,310 samples/s", "validation.loss 0.3410".
std::string number_text_of(const std::string& tag, double value) {
  const std::string text = value_text(tag, value);
  if (tag == "samples_per_second" || tag == "seconds") return text;
  if (tag == "evaluation_seconds") return "evaluation " + text;
  if (tag == "step.loss") return "loss " + text;
  return fmt::format("{} {}", tag == "lr" ? tag : title_of(tag), text);
}

}  // namespace

std::vector<std::string> watch_lines(const WatchedRun& run, const TextChartSize& size, double now) {
  const auto width = static_cast<size_t>(std::max(20, size.columns - 1));
  const RunCurves& curves = *run.curves;
  std::vector<std::string> out = wrapped({run.path, run.spec, run.state}, width);
  const auto add = [&](const std::vector<std::string>& lines) {
    out.insert(out.end(), lines.begin(), lines.end());
  };
  if (!run.note.empty()) add(wrapped({run.note}, width));
  if (curves.step() == 0 && curves.epoch() == 0 && run.progress.empty()) {
    add(wrapped({"no step or epoch has been recorded yet"}, width));
  } else {
    add(wrapped(position(run, now, size.columns), width));
    add(wrapped(results(curves), width));
  }
  TextChartSize chart = size;
  chart.columns = static_cast<int>(width);
  chart.rows = size.rows - static_cast<int>(out.size());
  const auto of_epoch = static_cast<double>(curves.steps_of_epoch());
  const std::vector<TextCurve> drawn = charted(curves);
  add(text_chart(drawn, chart, of_epoch > 0 ? "epoch" : "step", of_epoch > 0 ? of_epoch : 1));
  if (out.size() > static_cast<size_t>(size.rows)) out.resize(static_cast<size_t>(size.rows));
  return out;
}

std::string record_line(const WatchedRun& run, std::string_view line) {
  const auto record = parse_record(line);
  if (!record || record->kind() == RecordKind::other) return "";
  ScalarReader reader;
  const auto scalars = reader.read(*record);
  const RecordKind kind = record->kind();
  std::string where;
  if (const auto epoch = record->number("epoch"))
    where = "epoch " + of_text(static_cast<int64_t>(*epoch), run.epochs);
  if (kind != RecordKind::epoch)
    where += fmt::format("{}step {}", where.empty() ? "" : ", ", of_text(scalars->step, run.steps));
  if (kind == RecordKind::final) where = "final evaluation, " + where;
  std::vector<std::string> parts;
  for (const auto& [tag, value] : scalars->values)
    if (!tag.starts_with("grad_norms.") && !is_by_label(tag))
      parts.push_back(number_text_of(tag, value));
  return fmt::format("{}: {}\n", where, fmt::join(parts, ", "));
}

std::string LogPosition::line(const WatchedRun& run, bool recorded, double now) {
  constexpr double kInterval = 60;
  if (recorded && printed_ > 0) printed_ = now;
  if (run.state != "running" || run.progress.empty() ||
      (printed_ > 0 && now - printed_ < kInterval))
    return "";
  printed_ = now;
  return run.progress + "\n";
}

std::string final_text(const WatchedRun& run, size_t width) {
  std::vector<std::string> parts = {run.path + ":", run.state + ",",
                                    "epoch " + of_text(run.curves->epoch(), run.epochs) + ",",
                                    "step " + of_text(run.curves->step(), run.steps) + ","};
  for (const std::string& r : results(*run.curves)) parts.push_back(r + ",");
  if (run.note.empty())
    parts.back().pop_back();
  else
    parts.push_back(run.note);
  return fmt::format("{}\n", width == 0
                                 ? fmt::format("{}", fmt::join(parts, " "))
                                 : fmt::format("{}", fmt::join(wrapped(parts, width, " "), "\n")));
}

}  // namespace dpt
