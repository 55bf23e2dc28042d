#include "report/report.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/units.h"
#include "base/wrap.h"
#include "formats/csv_text.h"
#include "formats/json.h"
#include "report/baseline.h"
#include "report/numbers.h"
#include "report/reasons.h"
#include "report/text_table.h"

namespace dpt {
namespace {

// The columns of JSON and CSV.
Json fields(const BenchReport& report, const RowResult& r) {
  const auto number = [](double x) { return Json::rounded(x, 6); };
  const auto count = [](double x) { return Json::decimals(x, 0); };
  return {{"mode", r.row.mode},
          {"devices", r.row.devices},
          {"batch_size", r.row.batch_size},
          {"precision", r.row.precision},
          {"ms_per_sample", number(r.ms_per_sample)},
          {"samples_per_second", number(r.samples_per_second())},
          {"speedup", number(report.speedup(r))},
          {"ideal_speedup", number(report.ideal(r))},
          {"efficiency", number(report.efficiency(r))},
          {"relative_to", name_of(report.baseline(r).row)},
          {"compute_share", number(r.share(&WorkerSeconds::compute))},
          {"communication_share", number(r.share(&WorkerSeconds::communication))},
          {"waiting_share", number(r.share(&WorkerSeconds::waiting))},
          {"memory_predicted_bytes", count(r.facts.predicted_bytes)},
          {"memory_peak_bytes", count(r.peak_bytes)},
          {"ms_per_sample_fastest", number(r.fastest)},
          {"ms_per_sample_slowest", number(r.slowest)},
          {"rounds", r.rounds},
          {"workers", r.facts.workers},
          {"device_has", report.device},
          {"reason", report.reason(r)},
          {"spec", report.name},
          {"data", report.data},
          {"machine", report.machine}};
}

// The columns of the table for people.
std::vector<TextColumn> columns_of(const BenchReport& report) {
  std::vector<TextColumn> out;
  const auto add = [&](const std::string& title, int rank, auto&& cell) {
    TextColumn column{.cells = {title}, .right = true, .rank = rank, .name = title};
    for (const RowResult* r : report.measured()) column.cells.push_back(cell(*r));
    out.push_back(std::move(column));
  };
  const auto share = [&](const std::string& title, int rank, double WorkerSeconds::*what) {
    add(title, rank, [what](const RowResult& r) { return percent_text(r.share(what)); });
  };
  const auto mib = [](double bytes) { return number_text(bytes / kMiB) + " MiB"; };
  add("mode", 0, [](const RowResult& r) { return r.row.mode; });
  add("devices", 0, [](const RowResult& r) { return fmt::format("{}", r.row.devices); });
  add("batch", 0, [](const RowResult& r) { return fmt::format("{}", r.row.batch_size); });
  add("precision", 3, [](const RowResult& r) { return r.row.precision; });
  add("time/sample", 2, [](const RowResult& r) { return time_text(r.ms_per_sample); });
  add("samples/s", 0, [](const RowResult& r) { return number_text(r.samples_per_second()); });
  add("speed-up", 0, [&](const RowResult& r) { return ratio_text(report.speedup(r)); });
  add("efficiency", 1, [&](const RowResult& r) { return percent_text(report.efficiency(r)); });
  share("compute", 7, &WorkerSeconds::compute);
  share("communication", 6, &WorkerSeconds::communication);
  share("waiting", 5, &WorkerSeconds::waiting);
  add("memory", 4, [&](const RowResult& r) { return mib(r.peak_bytes); });
  add("predicted", 8, [&](const RowResult& r) { return mib(r.facts.predicted_bytes); });
  for (const char* name : {"mode", "precision"})
    std::ranges::find(out, name, &TextColumn::name)->right = false;
  return out;
}

}  // namespace

std::vector<const RowResult*> BenchReport::measured() const {
  std::vector<const RowResult*> out;
  for (const RowResult& r : rows)
    if (r.refused.empty()) out.push_back(&r);
  return out;
}

std::vector<std::vector<const RowResult*>> BenchReport::by_batch() const {
  std::vector<std::vector<const RowResult*>> out;
  for (const RowResult* r : measured()) {
    const auto same = [&](const std::vector<const RowResult*>& group) {
      return group.front()->row.batch_size == r->row.batch_size &&
             group.front()->row.precision == r->row.precision;
    };
    const auto at = std::ranges::find_if(out, same);
    (at == out.end() ? out.emplace_back() : *at).push_back(r);
  }
  return out;
}

const RowResult& BenchReport::baseline(const RowResult& row) const {
  return baseline_of(row, rows);
}
double BenchReport::speedup(const RowResult& row) const { return dpt::speedup(row, baseline(row)); }
double BenchReport::ideal(const RowResult& row) const {
  return ideal_speedup(row, baseline(row), cores);
}
std::string BenchReport::reason(const RowResult& row) const {
  return dpt::reason(row, rows, cores);
}

std::string BenchReport::relative_to() const {
  const std::vector<const RowResult*> all = measured();
  const auto has_single = [&](const RowResult* r) { return baseline(*r).row.mode == "single"; };
  if (std::ranges::all_of(all, has_single)) return "single with the same batch and precision";
  if (std::ranges::none_of(all, has_single))
    return "the first row with the same batch and precision";
  return "single with the same batch and precision, otherwise to the first such row";
}

std::string bench_table(const BenchReport& report, size_t width) {
  std::string out = wrapped(
      fmt::format("{0}: each device has {1}; each batch is split over all devices\n"
                  "data: {2}\nmachine: {3}\nspeed-up: relative to {4}\n"
                  "efficiency: speed-up / ideal speed-up, which is N for N devices as long as each "
                  "has {1} of its own",
                  report.name, report.device, report.data, report.machine, report.relative_to()),
      width);
  std::vector<TextColumn> columns = columns_of(report);
  std::vector<std::string> left_out;
  if (width > 0) left_out = fit_columns(columns, width);
  out += "\n" + table_text(columns) + left_out_text(std::move(left_out), width);
  std::string reasons;
  for (const RowResult* r : report.measured())
    if (const std::string text = report.reason(*r); !text.empty()) reasons += wrapped(text, width);
  return reasons.empty() ? out : out + "\n" + reasons;
}

std::string bench_json(const BenchReport& report) {
  Json::Array rows;
  for (const RowResult* r : report.measured()) {
    Json row = fields(report, *r);
    rows.push_back(rows.empty() ? std::move(row) : std::move(row).on_line(2));
  }
  return Json{{"rows", std::move(rows)}}.dump() + "\n";
}

std::string bench_csv(const BenchReport& report) {
  std::string out;
  for (const RowResult* r : report.measured()) {
    const Json row = fields(report, *r);
    std::vector<std::string_view> names;
    std::vector<std::string> values;
    for (const auto& [name, value] : row.members()) {
      names.push_back(name);
      values.push_back(csv_text(value.text() ? *value.text() : value.dump()));
    }
    if (out.empty()) out = fmt::format("{}\n", fmt::join(names, ","));
    out += fmt::format("{}\n", fmt::join(values, ","));
  }
  return out;
}

}  // namespace dpt
