#include "report/report.h"

#include <algorithm>
#include <sstream>
#include <string>

#include <doctest/doctest.h>

#include "golden_text.h"
#include "report/results.h"
#include "spec/node.h"

namespace dpt {
namespace {

BenchReport report() {
  BenchReport r;
  r.name = "a<b";
  r.machine = "Some CPU, 2 cores (avx512 kernels); dptrain \"1.2.3\"";
  r.data = "random: 100 x [5] f32";
  r.rows.push_back(result("single", 1, 8, 0.010, {.compute = 1, .slowest = 1}));
  r.rows.push_back(result("dp", 2, 8, 0.0125, {1.2, 0.2, 0.6, 0.6}));
  r.rows.push_back(result("ddp", 2, 512, 0.00025, {1.9, 0, 0.1, 0.95}));
  r.rows.back().row.precision = "bf16";
  r.rows.push_back(r.rows[1]);
  r.rows.back().refused = "no";
  r.cores = 2;
  return r;
}

// dp, ddp and a pipeline beside single, with more devices than the machine has cores.
BenchReport comparison(const std::vector<int64_t>& batches) {
  BenchReport r;
  r.name = "mlp";
  r.machine = "Some CPU, 4 cores (avx512 kernels); dptrain 1.2.3";
  r.data = "random: 100 x [5] f32";
  r.cores = 4;
  for (const int64_t batch : batches) {
    const double ms = 0.21 / static_cast<double>(batch);
    r.rows.push_back(result("single", 1, batch, ms, {.compute = 1, .slowest = 1}));
    r.rows.push_back(result("dp", 1, batch, 1.01 * ms, {.compute = 1, .slowest = 1}));
    r.rows.push_back(result("dp", 2, batch, ms / 1.5, {1.4, 0.2, 0.4, 0.8}));
    r.rows.push_back(result("dp", 4, batch, ms / 2.4, {2.6, 0.4, 1, 0.8}));
    r.rows.push_back(result("dp", 8, batch, ms / 2.56, {2.6, 0.4, 5.2, 0.8}));
    r.rows.push_back(result("ddp", 1, batch, ms, {.compute = 1, .slowest = 1}));
    r.rows.push_back(result("ddp", 2, batch, ms / 1.9, {1.9, 0, 0.1, 0.95}));
    r.rows.push_back(result("ddp", 4, batch, ms / 3.6, {3.4, 0.12, 0.48, 0.9}));
    r.rows.push_back(result("ddp", 8, batch, ms / 2.6, {3.4, 0.1, 4.6, 0.9}));
    r.rows.push_back(result("pipeline", 2, batch, 1.1 * ms, {1, 0.1, 0.9, 0.6}));
    r.rows.back().facts.bubble = 0.5;
  }
  return r;
}

size_t count(std::string_view text, std::string_view part) {
  size_t n = 0;
  for (size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++n;
  return n;
}

}  // namespace

TEST_CASE("table, JSON, CSV and picture of fixed numbers") {
  check_golden(bench_table(report(), 0), "report/golden/table.txt");
  check_golden(bench_json(report()), "report/golden/bench.json");
  check_golden(bench_csv(report()), "report/golden/bench.csv");
  check_golden(bench_svg(report()), "report/golden/bench.svg");
}

TEST_CASE("table, CSV and pictures of a comparison by the number of devices") {
  check_golden(bench_table(comparison({64}), 0), "report/golden/compare_table.txt");
  check_golden(bench_csv(comparison({64})), "report/golden/compare.csv");
  check_golden(speedup_svg(comparison({64})), "report/golden/compare.svg");
  check_golden(speedup_svg(comparison({8, 64, 512, 4096})), "report/golden/compare_batches.svg");
}

TEST_CASE("the table of a benchmark fits a terminal") {
  for (const size_t width : {40, 80, 200}) {
    const std::string text = bench_table(comparison({8, 512}), width);
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);)
      CHECK_MESSAGE(line.size() <= std::max<size_t>(width, 60), line);
    for (const char* title : {"mode", "devices", "batch", "samples/s", "speed-up"})
      CHECK(has(text, title));
    CHECK(has(text, "not shown, see --csv: predicted") == (width < 200));
  }
}

TEST_CASE("a page of a benchmark has its rows, reasons and picture") {
  const BenchReport r = comparison({8, 512});
  const std::string page = bench_page(bench_json(r), "<svg></svg>");
  CHECK(page.starts_with("<!doctype html>"));
  CHECK(count(page, "<tr>") == r.measured().size() + 1);
  CHECK(has(page, "<h2>Reasons</h2>"));
  CHECK(has(page, "data:image/svg+xml,%3Csvg"));
  CHECK_THROWS_AS(bench_page("{}", ""), Error);
}

TEST_CASE("speed-ups are over single with the same batch and precision in every form") {
  const BenchReport r = comparison({8, 512});
  CHECK(r.relative_to() == "single with the same batch and precision");
  for (const RowResult* row : r.measured())
    if (row->row.mode == "single") CHECK(r.speedup(*row) == 1);
  CHECK(r.speedup(r.rows[16]) == doctest::Approx(1.9));  // ddp on 2 devices, batch 512
  CHECK(r.efficiency(r.rows[16]) == doctest::Approx(0.95));
  CHECK(r.efficiency(r.rows[18]) == doctest::Approx(0.65));  // 8 devices share 4 cores
  BenchReport none = r;
  for (RowResult& row : none.rows)
    if (row.row.mode == "single") row.refused = "no";
  CHECK(none.relative_to() == "the first row with the same batch and precision");
  CHECK(
      has(bench_table(none, 0), "\nspeed-up: relative to the first row with the same batch and "));
  CHECK(has(bench_csv(none), ",\"dp on 1 device, batch 512\","));
  BenchReport mixed = r;
  mixed.rows[0].refused = "no";
  CHECK(has(mixed.relative_to(), ", otherwise to the first such row"));
}

// Numbers that stand behind `before` in an SVG.
std::vector<double> numbers_behind(const std::string& svg, const std::string& before) {
  std::vector<double> out;
  for (size_t at = svg.find(before); at != svg.npos; at = svg.find(before, at + 1))
    out.push_back(std::stod(svg.substr(at + before.size())));
  return out;
}

TEST_CASE("bars of large batches are as long as those of small ones") {
  const std::string svg = bench_svg(comparison({1, 4096}));
  // In the row that takes longest, compute has half of 520 pixels: one such bar for each batch.
  const std::vector<double> widths = numbers_behind(svg, " width=\"");
  CHECK(std::ranges::count(widths, 260) == 2);
}

TEST_CASE("labels of lines that end close to each other do not overlap") {
  BenchReport r = comparison({64});
  for (RowResult& row : r.rows)
    if (row.row.mode == "ddp") row.ms_per_sample = 1.001 * r.rows[4].ms_per_sample;
  const std::string svg = speedup_svg(r);
  std::vector<double> at = numbers_behind(svg, "<text x=\"818.0\" y=\"");
  REQUIRE(at.size() == 3);  // ideal, dp, ddp; the pipeline ends at 2 devices
  for (size_t i = 1; i < at.size(); ++i) CHECK(at[i] - at[i - 1] >= 14 - 0.1);  // one decimal
}

TEST_CASE("JSON holds rows of names and numbers, and text in quotes") {
  const SourceFile file{"bench.json", bench_json(report())};
  Diagnostics d;
  const Node root = read_yaml(file, d);  // JSON is YAML
  CHECK(d.render() == "");
  REQUIRE(root.entries.size() == 1);
  const Node* rows = root.find("rows");
  REQUIRE(rows != nullptr);
  REQUIRE(rows->items.size() == 3);  // one was refused
  const Node& dp = rows->items[1];
  CHECK(dp.find("mode")->text == "dp");
  CHECK(dp.find("devices")->text == "2");
  CHECK(dp.find("batch_size")->text == "8");
  CHECK(dp.find("precision")->text == "fp32");
  CHECK(dp.find("ms_per_sample")->text == "0.0125");
  CHECK(dp.find("samples_per_second")->text == "80000");
  CHECK(dp.find("speedup")->text == "0.8");
  CHECK(dp.find("ideal_speedup")->text == "2");
  CHECK(dp.find("efficiency")->text == "0.4");
  CHECK(dp.find("relative_to")->text == "single on 1 device, batch 8");
  CHECK(dp.find("device_has")->text == "1 core");
  CHECK(
      dp.find("reason")->text.starts_with("dp on 2 devices, batch 8: 1.25x slower than single: "));
  CHECK(dp.find("communication_share")->text == "0.1");
  CHECK(dp.find("machine")->text == report().machine);
  CHECK_FALSE(dp.find("speedup")->quoted);
  CHECK(dp.find("mode")->quoted);
}

TEST_CASE("CSV has the names of JSON's columns, and as many fields in each line") {
  const std::string csv = bench_csv(report());
  CHECK(csv.starts_with(
      "mode,devices,batch_size,precision,ms_per_sample,samples_per_second,speedup,"));
  CHECK(std::ranges::count(csv, '\n') == 4);
  CHECK(count(csv, "\"Some CPU, 2 cores (avx512 kernels); dptrain \"\"1.2.3\"\"\"") == 3);
}

TEST_CASE("the picture has a bar of three parts for each row that was measured") {
  const std::string svg = bench_svg(report());
  CHECK(count(svg, "height=\"18\"") == 3 + 3 * 3);  // the legend's, the rows'
  CHECK(has(svg, "a&lt;b"));
  CHECK(count(svg, "<text") == count(svg, "</text>"));
  CHECK(svg.ends_with("</svg>\n"));
  BenchReport odd = report();
  odd.name = "a\x1b[2J";
  CHECK(bench_svg(odd).find('\x1b') == std::string::npos);
}

TEST_CASE("a row's shares add up to one") {
  const RowResult r = report().rows[1];
  CHECK(r.share(&WorkerSeconds::compute) + r.share(&WorkerSeconds::communication) +
            r.share(&WorkerSeconds::waiting) ==
        doctest::Approx(1));
}

}  // namespace dpt
