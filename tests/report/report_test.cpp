#include "bench/report.h"

#include <algorithm>
#include <string>

#include <doctest/doctest.h>

#include "bench/results.h"
#include "golden_text.h"
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
  r.sentences.emplace_back("dp on 2 devices, batch 8: 1.25x slower than single.");
  return r;
}

size_t count(std::string_view text, std::string_view part) {
  size_t n = 0;
  for (size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++n;
  return n;
}

}  // namespace

TEST_CASE("table, JSON, CSV and picture of fixed numbers") {
  check_golden(bench_table(report()), "bench/golden/table.txt");
  check_golden(bench_json(report()), "bench/golden/bench.json");
  check_golden(bench_csv(report()), "bench/golden/bench.csv");
  check_golden(bench_svg(report()), "bench/golden/bench.svg");
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
