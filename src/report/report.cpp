#include "bench/report.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/csv_text.h"
#include "base/json_text.h"

namespace dpt {
namespace {

constexpr double kMiB = 1048576;

// A column of JSON and CSV: a number as it is, a word that JSON puts in quotes.
struct Field {
  std::string_view name;
  std::string value;
  bool text = false;
};

std::vector<Field> fields(const BenchReport& report, const RowResult& r) {
  const auto number = [](double x) { return fmt::format("{:.6g}", x); };
  const auto count = [](double x) { return fmt::format("{:.0f}", x); };
  return {{"mode", r.row.mode, true},
          {"devices", fmt::format("{}", r.row.devices)},
          {"batch_size", fmt::format("{}", r.row.batch_size)},
          {"precision", r.row.precision, true},
          {"ms_per_sample", number(r.ms_per_sample)},
          {"samples_per_second", number(r.samples_per_second())},
          {"speedup", number(report.speedup(r))},
          {"compute_share", number(r.share(&WorkerSeconds::compute))},
          {"communication_share", number(r.share(&WorkerSeconds::communication))},
          {"waiting_share", number(r.share(&WorkerSeconds::waiting))},
          {"memory_predicted_bytes", count(r.facts.predicted_bytes)},
          {"memory_peak_bytes", count(r.peak_bytes)},
          {"ms_per_sample_fastest", number(r.fastest)},
          {"ms_per_sample_slowest", number(r.slowest)},
          {"rounds", fmt::format("{}", r.rounds)},
          {"workers", fmt::format("{}", r.facts.workers)},
          {"spec", report.name, true},
          {"data", report.data, true},
          {"machine", report.machine, true}};
}

std::vector<const RowResult*> measured(const BenchReport& report) {
  std::vector<const RowResult*> out;
  for (const RowResult& r : report.rows)
    if (r.refused.empty()) out.push_back(&r);
  return out;
}

std::string line_of(const BenchReport& report, const RowResult& r) {
  const auto percent = [&](double WorkerSeconds::*what) {
    return fmt::format("{:.1f} %", 100 * r.share(what));
  };
  return fmt::format(
      "{:<8} {:>7} {:>7}  {:<9} {:>11.4g} {:>9.2f} {:>11.0f} {:>9} {:>14} {:>9} {:>10.1f} "
      "{:>9.1f}\n",
      r.row.mode, r.row.devices, r.row.batch_size, r.row.precision, r.ms_per_sample,
      report.speedup(r), r.samples_per_second(), percent(&WorkerSeconds::compute),
      percent(&WorkerSeconds::communication), percent(&WorkerSeconds::waiting),
      r.facts.predicted_bytes / kMiB, r.peak_bytes / kMiB);
}

}  // namespace

double BenchReport::speedup(const RowResult& row) const {
  const auto first =
      std::ranges::find_if(rows, [](const RowResult& r) { return r.refused.empty(); });
  return first->ms_per_sample / row.ms_per_sample;
}

std::string bench_table(const BenchReport& report) {
  std::string out = fmt::format("{}: a device is {}; batches are of all devices together\n",
                                report.name, report.device);
  out += fmt::format("data: {}\nmachine: {}\n\n", report.data, report.machine);
  out += fmt::format("{:<8} {:>7} {:>7}  {:<9} {:>11} {:>9} {:>11} {:>9} {:>14} {:>9} {:>20}\n", "",
                     "", "", "", "", "", "", "", "", "", "memory in MiB");
  out +=
      fmt::format("{:<8} {:>7} {:>7}  {:<9} {:>11} {:>9} {:>11} {:>9} {:>14} {:>9} {:>10} {:>9}\n",
                  "mode", "devices", "batch", "precision", "ms/sample", "speed-up", "samples/s",
                  "compute", "communication", "waiting", "predicted", "peak");
  for (const RowResult* r : measured(report)) out += line_of(report, *r);
  if (!report.sentences.empty()) out += fmt::format("\n{}\n", fmt::join(report.sentences, "\n"));
  return out;
}

std::string bench_json(const BenchReport& report) {
  std::vector<std::string> rows;
  for (const RowResult* r : measured(report)) {
    std::vector<std::string> entries;
    for (const Field& f : fields(report, *r))
      entries.push_back(fmt::format("\"{}\": {}", f.name, f.text ? json_text(f.value) : f.value));
    rows.push_back(fmt::format("{{{}}}", fmt::join(entries, ", ")));
  }
  return fmt::format("{{\"rows\": [{}]}}\n", fmt::join(rows, ",\n  "));
}

std::string bench_csv(const BenchReport& report) {
  std::string out;
  for (const RowResult* r : measured(report)) {
    std::vector<std::string_view> names;
    std::vector<std::string> values;
    for (const Field& f : fields(report, *r)) {
      names.push_back(f.name);
      values.push_back(csv_text(f.value));
    }
    if (out.empty()) out = fmt::format("{}\n", fmt::join(names, ","));
    out += fmt::format("{}\n", fmt::join(values, ","));
  }
  return out;
}

}  // namespace dpt
