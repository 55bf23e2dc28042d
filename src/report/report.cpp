#include "report/report.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/units.h"
#include "formats/csv_text.h"
#include "formats/json.h"
#include "report/baseline.h"
#include "report/numbers.h"
#include "report/reasons.h"

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

using Cells = std::vector<std::string>;

Cells table_line(const BenchReport& report, const RowResult& r) {
  const auto share = [&](double WorkerSeconds::*what) { return percent_text(r.share(what)); };
  const auto mib = [](double bytes) { return number_text(bytes / kMiB) + " MiB"; };
  return {r.row.mode,
          fmt::format("{}", r.row.devices),
          fmt::format("{}", r.row.batch_size),
          r.row.precision,
          time_text(r.ms_per_sample),
          number_text(r.samples_per_second()),
          ratio_text(report.speedup(r)),
          percent_text(report.efficiency(r)),
          share(&WorkerSeconds::compute),
          share(&WorkerSeconds::communication),
          share(&WorkerSeconds::waiting),
          mib(r.peak_bytes),
          mib(r.facts.predicted_bytes)};
}

// Pads columns to their widest cell: names left-aligned, numbers right-aligned.
std::string aligned(const std::vector<Cells>& lines) {
  std::vector<size_t> widths(lines.front().size());
  for (const Cells& cells : lines)
    for (size_t i = 0; i < cells.size(); ++i) widths[i] = std::max(widths[i], cells[i].size());
  std::string out;
  for (const Cells& cells : lines) {
    for (size_t i = 0; i < cells.size(); ++i) {
      const bool name = i == 0 || i == 3;  // mode, precision
      out += fmt::format(fmt::runtime(name ? "{}{:<{}}" : "{}{:>{}}"), i == 0 ? "" : "  ", cells[i],
                         widths[i]);
    }
    out += '\n';
  }
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

std::string bench_table(const BenchReport& report) {
  const std::vector<const RowResult*> rows = report.measured();
  std::string out = fmt::format("{}: each device has {}; each batch is split over all devices\n",
                                report.name, report.device);
  out += fmt::format("data: {}\nmachine: {}\n", report.data, report.machine);
  out += fmt::format("speed-up: relative to {}\n", report.relative_to());
  out += fmt::format(
      "efficiency: speed-up / ideal speed-up, which is N for N devices as long as each has {} of "
      "its own\n\n",
      report.device);
  std::vector<Cells> lines = {{"mode", "devices", "batch", "precision", "time/sample", "samples/s",
                               "speed-up", "efficiency", "compute", "communication", "waiting",
                               "memory", "predicted"}};
  for (const RowResult* r : rows) lines.push_back(table_line(report, *r));
  out += aligned(lines);
  std::string reasons;
  for (const RowResult* r : rows)
    if (const std::string text = report.reason(*r); !text.empty()) reasons += text + "\n";
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
