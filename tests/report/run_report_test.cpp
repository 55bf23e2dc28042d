#include "report/run_report.h"

#include <cstdlib>

#include <doctest/doctest.h>

#include "data/folder.h"
#include "report/confusion_table.h"
#include "report/html.h"
#include "report/line_chart.h"
#include "report/run_time.h"

namespace dpt {
namespace {

int count(const std::string& text, const std::string& part) {
  int n = 0;
  for (size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++n;
  return n;
}

// A run with three epochs; `loss` of the last one.
void write_run(const Folder& folder, const std::string& run, const std::string& lr, double loss,
               const std::string& weights) {
  folder.write(run + "/spec.resolved.yaml",
               "name: <net> & \"co\"\nepochs: 3\noptimizer: {sgd: {lr: " + lr + "}}\n");
  std::string metrics;
  for (int epoch = 1; epoch <= 3; ++epoch)
    metrics += "{\"epoch\": " + std::to_string(epoch) + ", \"loss\": " + std::to_string(loss) +
               ", \"seconds\": 2, \"steps\": 10, \"lr\": " + lr +
               ", \"samples_per_second\": 100, \"data_wait\": 0.25, \"validation_loss\": 0.5, "
               "\"validation_accuracy\": 0.9, \"evaluation_seconds\": 3, \"time\": " +
               std::to_string(1000 + 5 * epoch) + ", \"run\": \"a\"}\n";
  folder.write(run + "/metrics.jsonl", metrics);
  folder.write(run + "/env.json", R"({"version": "dptrain 1", "host": "node<1>", "started": 998,
    "epochs": 3, "steps": 30, "seed": 4})");
  folder.write(run + "/model.safetensors", weights);
}

TEST_CASE("a page about a run has its parts, escaped, and no scripts") {
  const Folder folder;
  write_run(folder, "run", "0.1", 0.25, "abc");
  folder.write("run/plan.txt", "each shard: a < b\n");
  folder.write("run/plan.svg", "<svg onload='x'></svg>");
  folder.write("run/confusion_matrix.csv", "3,1\n0,4\n");
  const ReportedRun run = read_reported(folder.file("run"), "run");
  const std::string page = run_report(run);
  for (const char* part :
       {"<title>&lt;net&gt; &amp; &quot;co&quot; (finished)</title>",
        "<h1>&lt;net&gt; &amp; &quot;co&quot; ", ">finished</span>", "Epoch 3 of 3, step 30 of 30",
        "validation.accuracy<b>90.00 %</b>", "<figcaption>loss</figcaption>",
        "<figcaption>validation.accuracy in %</figcaption>",
        "<figcaption>learning rate</figcaption>", "7 of 8 samples are right: 87.50 %",
        "each shard: a &lt; b", "name: &lt;net&gt; &amp; &quot;co&quot;", "node&lt;1&gt;",
        "<td>seed</td><td>4</td>", "1970-01-01 00:16:38 UTC",
        // SHA-256 of "abc", from FIPS 180-4
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
        "data:image/svg+xml,%3Csvg", "prefers-color-scheme:dark", "width=device-width"})
    CHECK_MESSAGE(has(page, part), std::string(part));
  for (const char* no :
       {"<script", "onload=", "http://", "https://", "src=\"/", "<net>", "node<1>"})
    CHECK_MESSAGE(!has(page, no), std::string(no));
  CHECK(count(page, "<section>") == count(page, "</section>"));
  CHECK(count(page, "<svg") == count(page, "</svg>"));
}

TEST_CASE("a page is made of whatever a run directory has") {
  const Folder folder;
  folder.write("empty/spec.resolved.yaml", "epochs: 2\n");
  const std::string empty = run_report(read_reported(folder.file("empty"), "empty"));
  CHECK(has(empty, ">killed</span>"));
  CHECK(has(empty, "there is no metrics.jsonl"));
  CHECK(!has(empty, "<h2>Curves</h2>"));
  folder.write("odd/metrics.jsonl", "{\"epoch\": 1, \"loss\": null}\nnothing\n{\"step\": 1e300}\n");
  CHECK(has(run_report(read_reported(folder.file("odd"), "odd")), "unknown"));
}

TEST_CASE("large weights are hashed only where time is not short") {
  const Folder folder;
  write_run(folder, "run", "0.1", 0.25, "abcd");
  const std::string page = run_report(read_reported(folder.file("run"), "run", 3));
  CHECK(has(page, "not computed for a large file"));
  CHECK(!has(page, "88d4266fd4e6338d13b845fcf289579d209c897823b9217da3e161936f031589"));
  CHECK(has(run_report(read_reported(folder.file("run"), "run", 4)),
            "88d4266fd4e6338d13b845fcf289579d209c897823b9217da3e161936f031589"));
}

TEST_CASE("time is divided into training, waiting, evaluation and the rest, with reasons") {
  const Folder folder;
  write_run(folder, "run", "0.1", 0.25, "");
  const RunTime time = time_of(read_reported(folder.file("run"), "run"));
  REQUIRE(time.parts.size() == 4);
  CHECK(time.parts[0].seconds == doctest::Approx(4.5));  // 3 epochs of 2 s, 25 % of them waiting
  CHECK(time.parts[1].seconds == doctest::Approx(1.5));
  CHECK(time.parts[2].seconds == doctest::Approx(9));
  CHECK(time.parts[3].seconds == doctest::Approx(2));  // from 998 to 1015
  CHECK(time.total() == doctest::Approx(17));
  REQUIRE(time.reasons.size() == 2);
  CHECK(time.reasons[0] == "6 s of training: 100 samples/s on average, 2 s for an epoch.");
  CHECK(time.reasons[1].starts_with("Evaluations take 53 % of the time: "));
}

TEST_CASE("several runs: curves together, differences of specs, runs of the same bits") {
  const Folder folder;
  write_run(folder, "a", "0.1", 0.25, "same");
  write_run(folder, "b", "0.2", 0.35, "same");
  write_run(folder, "c", "0.2", 0.45, "other");
  std::vector<ReportedRun> runs;
  for (const char* name : {"a", "b", "c"}) runs.push_back(read_reported(folder.file(name), name));
  const std::string page = runs_report(runs);
  CHECK(count(page, "<tr><td>optimizer.sgd.lr</td><td>0.1</td><td>0.2</td><td>0.2</td></tr>") == 1);
  CHECK(count(page, "<td>a, b</td>") == 1);
  CHECK(count(page, "<td>c</td>") == 2);  // its results and its weights
  CHECK(has(page, "<figcaption>loss</figcaption>"));
  CHECK(!has(page, "All runs ended in the same bits"));
  const std::string text = weights_text(runs);
  CHECK_MESSAGE(has(text, "  a, b (the same bits)\n"), text);
  CHECK(has(text, "  c\n"));
  runs.pop_back();
  CHECK(has(runs_report(runs), "All runs ended in the same bits"));
}

TEST_CASE("a confusion matrix may have names, and is refused if it is none") {
  const std::string named = confusion_table("actual,\"a,b\",<c>\n\"a,b\",3,1\n<c>,0,0\n");
  CHECK(has(named, "<th>a,b</th><th>&lt;c&gt;</th><th>right</th>"));
  CHECK(has(named, "0.620)\">3</td>"));  // 0.08 + 0.72 * 3 / 4
  CHECK(has(named, "<td>75.0 %</td>"));
  CHECK(has(named, "3 of 4 samples are right: 75.00 %"));
  for (const char* bad : {"", "x\n", "1,2\n", "1,2\n3\n", "1,-2\n3,4\n", "1,x\n3,4\n"})
    CHECK_MESSAGE(confusion_table(bad).empty(), bad);
}

TEST_CASE("charts have gaps where a number is not finite, and few points for many") {
  const double nan = std::nan("");
  const std::vector<CurvePoint> gap = {{1, 1}, {2, nan}, {3, 1}, {4, 2}};
  const std::string with_gap =
      line_chart({.title = "a<b", .x_name = "step", .curves = {{.name = "x", .points = &gap}}});
  CHECK(has(with_gap, "<figcaption>a&lt;b</figcaption>"));
  const size_t path = with_gap.find(" d=\"");
  REQUIRE(path != with_gap.npos);
  const std::string d = with_gap.substr(path, with_gap.find("\"/>", path) - path);
  CHECK(count(d, "M") == 2);
  CHECK(count(d, "L") == 1);
  const std::vector<CurvePoint> none = {{1, nan}};
  CHECK(line_chart({.title = "t", .x_name = "x", .curves = {{.name = "x", .points = &none}}})
            .empty());
  std::vector<CurvePoint> many;
  constexpr int kMany = 100'000, kHigh = 77'777;
  for (int i = 0; i < kMany; ++i) many.push_back({static_cast<double>(i), i == kHigh ? 9.0 : 1.0});
  const std::string thin =
      line_chart({.title = "t", .x_name = "x", .curves = {{.name = "x", .points = &many}}});
  CHECK(count(thin, "L") < 1000);
  CHECK(thin.size() < 20'000);
  // The one high point is drawn: 10 + 210 * 0.4 / 8.8 from the top, with margins of 5 % of 8.
  CHECK(has(thin, " 19.5L"));
}

TEST_CASE("a chart by values of a key names as many of them as there is room for") {
  const std::vector<CurvePoint> points = {{0, 0.5}, {2, 0.75}};
  LineChart chart{.title = "t", .x_name = "lr", .curves = {{.name = "x", .points = &points}}};
  chart.y_factor = 100;
  chart.tick_names = {"0.001", "<b>", "0.1"};
  chart.tick_places = {0, 1, 2};
  const std::string drawn = line_chart(chart);
  for (const char* name : {">0.001</text>", ">&lt;b&gt;</text>", ">0.1</text>"})
    CHECK_MESSAGE(has(drawn, name), name);
  CHECK(has(drawn, "<title>lr 0.1: 75</title>"));
  // (0 + 0.5) / 3 of 402, behind a margin of 66
  CHECK(has(drawn, "cx=\"133.0\""));
  chart.tick_names = {"0.001", std::string(30, 'n'), "0.1"};
  CHECK(!has(line_chart(chart), "nnn</text>"));
  chart.curves[0].dots = true;
  CHECK(count(line_chart(chart), "<circle") == 2);
  CHECK(!has(line_chart(chart), "class=\"curve"));
}

TEST_CASE("a picture of curves stands alone, with a legend that is broken into lines") {
  const std::vector<CurvePoint> points = {{1, 0.5}, {2, 0.75}};
  LineChart chart{.title = "a<b", .x_name = "epoch", .curves = {}};
  for (const char* name : {"one", "two"})
    chart.curves.push_back({.name = name + std::string(30, '&'), .points = &points});
  const std::string two = charts_svg({chart, chart, {.title = "empty", .x_name = "x"}});
  CHECK(two.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"1020\" height=\"350\""));
  CHECK(count(two, "<svg") == 3);
  CHECK(count(two, "<svg") == count(two, "</svg>"));
  CHECK(count(two, "<g ") == count(two, "</g>"));
  CHECK(count(two, "a&lt;b</text>") == 2);
  CHECK(!has(two, "empty"));
  CHECK(count(two, "translate(0.0 6.0)") == 2);   // the first name
  CHECK(count(two, "translate(0.0 24.0)") == 2);  // the second, below
  CHECK(has(two, "prefers-color-scheme:dark"));
  CHECK(charts_svg({{.title = "empty", .x_name = "x"}}).empty());
}

TEST_CASE("metrics that runs have once are in the table, and not drawn") {
  const Folder folder;
  for (const char* run : {"a", "b"}) {
    write_run(folder, run, "0.1", 0.25, "");
    folder.write(std::string(run) + "/metrics.jsonl",
                 read_file(folder.file(std::string(run) + "/metrics.jsonl")) +
                     "{\"final\": true, \"step\": 30, \"epoch\": 3, \"test_accuracy\": 0.8}\n");
  }
  const std::vector<ReportedRun> runs = {read_reported(folder.file("a"), "a"),
                                         read_reported(folder.file("b"), "b")};
  const std::string page = runs_report(runs);
  CHECK(has(page, "<th class=\"right\">test.accuracy</th><th class=\"right\">seconds</th>"));
  CHECK(!has(page, "<figcaption>test accuracy in %</figcaption>"));
  CHECK(has(page, "<figcaption>validation.accuracy in %</figcaption>"));
  const std::string picture = curves_svg(runs);
  CHECK(has(picture, ">validation.accuracy in %</text>"));
  CHECK(!has(picture, "samples per second"));
  CHECK(has(curves_svg(runs[0]), ">test.accuracy</text>"));  // beside the validation accuracy
}

}  // namespace
}  // namespace dpt
