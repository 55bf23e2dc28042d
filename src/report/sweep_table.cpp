#include "report/sweep_table.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/stderr.h"
#include "formats/csv_text.h"
#include "report/metric_text.h"
#include "spec/metric_name.h"

namespace dpt {
namespace {

template <class F>
SeedMean mean_over(const std::vector<const SweepRun*>& runs, F&& value) {
  std::vector<double> values;
  for (const SweepRun* r : runs)
    if (const std::optional<double> v = value(*r)) values.push_back(*v);
  return mean_of(values);
}

std::string state_of(const std::vector<const SweepRun*>& runs) {
  std::map<std::string_view, int> counts;
  for (const SweepRun* r : runs) ++counts[name_of(r->state)];
  if (counts.size() == 1) return std::string(counts.begin()->first);
  std::vector<std::string> out;
  for (const auto& [name, count] : counts) out.push_back(fmt::format("{} {}", count, name));
  return fmt::format("{}", fmt::join(out, ", "));
}

SettingRow row_of(const Sweep& sweep, size_t setting) {
  const std::vector<const SweepRun*> runs = sweep.of_setting(setting);
  SettingRow out{.setting = setting, .values = {}, .runs = static_cast<int>(runs.size())};
  for (const std::string& key : sweep.keys) {
    const std::string* const value = runs[0]->point.find(key);
    out.values.push_back(value ? *value : "-");
  }
  const auto number = [&](const std::string& name) {
    return mean_over(runs, [name](const SweepRun& r) -> std::optional<double> {
      if (r.numbers.records().empty()) return {};
      return r.numbers.find(name);
    });
  };
  out.metric = number(sweep.metric);
  out.loss = number("loss");
  out.epochs = number("epochs");
  out.seconds = number("seconds");
  out.samples_per_second = number("samples_per_second");
  const auto reached = [&](auto&& value) {
    return mean_over(runs, [&](const SweepRun& r) -> std::optional<double> {
      const NumbersRecord* const at = sweep.reached(r);
      return at ? std::optional(value(*at)) : std::nullopt;
    });
  };
  out.reached_epoch =
      reached([](const NumbersRecord& at) { return static_cast<double>(at.epoch); });
  out.reached_s = reached([](const NumbersRecord& at) { return at.trained_s; });
  for (const SweepRun* r : runs) out.ended += r->has_ended() ? 1 : 0;
  out.state = state_of(runs);
  return out;
}

// "86.95 +- 0.21 %"
std::string mean_text(std::string_view metric, const SeedMean& m, bool seeds) {
  if (m.count == 0) return "-";
  std::string mean = value_text(metric, m.mean);
  if (!seeds || m.count < 2) return mean;
  return in_percent(metric) ? fmt::format("{:.2f} +- {:.2f} %", 100 * m.mean, 100 * m.deviation)
                            : fmt::format("{} +- {:.4f}", mean, m.deviation);
}

std::string plain(const SeedMean& m, int decimals) {
  return m.count == 0 ? "-" : fmt::format("{:.{}f}", m.mean, decimals);
}

bool is_number_cell(const std::string& cell) {
  return cell == "-" || (!cell.empty() && (std::isdigit(static_cast<unsigned char>(cell[0])) != 0 ||
                                           cell[0] == '-' || cell == "nan" || cell == "inf"));
}

}  // namespace

std::vector<SettingRow> setting_rows(const Sweep& sweep) {
  std::vector<SettingRow> out;
  for (size_t s = 0; s < sweep.settings(); ++s) out.push_back(row_of(sweep, s));
  const bool lower = lower_is_better(sweep.metric);
  std::ranges::stable_sort(out, [&](const SettingRow& a, const SettingRow& b) {
    if (a.reached_s.count != b.reached_s.count) return a.reached_s.count > b.reached_s.count;
    if (a.reached_s.count > 0 && a.reached_s.mean != b.reached_s.mean)
      return a.reached_s.mean < b.reached_s.mean;
    const bool x = a.metric.count > 0 && !std::isnan(a.metric.mean);
    const bool y = b.metric.count > 0 && !std::isnan(b.metric.mean);
    if (!x || !y) return x && !y;
    return lower ? a.metric.mean < b.metric.mean : a.metric.mean > b.metric.mean;
  });
  return out;
}

std::vector<TextColumn> sweep_columns(const Sweep& sweep, const std::vector<SettingRow>& rows) {
  const bool seeds = sweep.seeds > 1;
  std::vector<TextColumn> out;
  const auto add = [&](const std::string& title, int rank, auto&& cell) {
    TextColumn column{.cells = {title}, .right = true, .rank = rank, .name = title};
    for (const SettingRow& r : rows) {
      column.cells.push_back(cell(r));
      column.right = column.right && is_number_cell(column.cells.back());
    }
    out.push_back(std::move(column));
  };
  const std::vector<std::string> names = short_keys(sweep.keys);
  for (size_t k = 0; k < names.size(); ++k)
    add(escape_controls(names[k]), 0,
        [&](const SettingRow& r) { return escape_controls(r.values[k]); });
  if (seeds) add("seeds", 5, [](const SettingRow& r) { return fmt::format("{}", r.metric.count); });
  if (sweep.metric != "loss")
    add(sweep.metric, 0,
        [&](const SettingRow& r) { return mean_text(sweep.metric, r.metric, seeds); });
  add("loss", sweep.metric == "loss" ? 0 : 4,
      [&](const SettingRow& r) { return mean_text("loss", r.loss, seeds); });
  if (sweep.target) {
    const auto title = [&](const char* what) {
      return fmt::format("{} to {}", what, value_text(sweep.target->metric, sweep.target->value));
    };
    add(title("epochs"), 2,
        [](const SettingRow& r) { return plain(r.reached_epoch, r.runs > 1 ? 1 : 0); });
    add(title("seconds"), 0, [](const SettingRow& r) { return plain(r.reached_s, 2); });
  }
  add("epochs", 6, [](const SettingRow& r) { return plain(r.epochs, 0); });
  add("seconds", 3, [](const SettingRow& r) { return plain(r.seconds, 2); });
  add("samples/s", 2, [](const SettingRow& r) { return plain(r.samples_per_second, 0); });
  add("state", 1, [](const SettingRow& r) { return r.state; });
  return out;
}

std::string sweep_text(const Sweep& sweep, size_t width) {
  std::vector<TextColumn> columns = sweep_columns(sweep, setting_rows(sweep));
  std::vector<std::string> left_out;
  if (width > 0) left_out = fit_columns(columns, width);
  return table_text(columns) + left_out_text(std::move(left_out), width);
}

std::vector<std::string> recorded_metrics(const Sweep& sweep) {
  std::set<std::string> out;
  for (const SweepRun& r : sweep.runs)
    for (const NumbersRecord& record : r.numbers.records())
      for (const auto& [name, value] : record.values)
        if (name != "lr") out.insert(name);
  return {out.begin(), out.end()};
}

std::string sweep_csv(const Sweep& sweep) {
  const std::vector<std::string> metrics = recorded_metrics(sweep);
  std::vector<std::string> header = {"run"};
  for (const std::string& key : sweep.keys) header.push_back(key);
  if (sweep.seeds > 0) header.emplace_back("seed");
  for (const std::string& m : metrics) {
    header.push_back(m);
    header.push_back(fmt::format("{}{}", kBestPrefix, m));
  }
  for (const char* name : {"epochs", "steps", "seconds", "samples_per_second"})
    header.emplace_back(name);
  const size_t first_number = 1 + sweep.keys.size() + (sweep.seeds > 0 ? 1 : 0);
  std::vector<std::string> lines;
  const auto add = [&](const std::vector<std::string>& fields) {
    std::vector<std::string> quoted;
    for (const std::string& f : fields) quoted.push_back(csv_text(f));
    lines.push_back(fmt::format("{}\n", fmt::join(quoted, ",")));
  };
  std::vector<std::string> titles = header;
  for (const char* name : {"reached_epoch", "reached_seconds", "state", "note"})
    titles.emplace_back(name);
  add(titles);
  for (const SweepRun& r : sweep.runs) {
    std::vector<std::string> fields = {r.point.name};
    for (size_t i = 1; i < first_number; ++i) {
      const std::string* const value = r.point.find(header[i]);
      fields.push_back(value ? *value : "");
    }
    for (size_t i = first_number; i < header.size(); ++i) {
      const auto value = r.numbers.find(header[i]);
      fields.push_back(value && std::isfinite(*value) ? exact_number(*value) : "");
    }
    const NumbersRecord* const at = sweep.reached(r);
    fields.push_back(at ? fmt::format("{}", at->epoch) : "");
    fields.push_back(at ? exact_number(at->trained_s) : "");
    fields.emplace_back(name_of(r.state));
    fields.push_back(r.note);
    add(fields);
  }
  return fmt::format("{}", fmt::join(lines, ""));
}

}  // namespace dpt
