// dptrain bench as a user sees it: what it refuses, and a real, short one.
#include <csignal>
#include <filesystem>

#include <doctest/doctest.h>

#include "cli/process.h"
#include "spec/node.h"

namespace dpt {
namespace {

// Gradients that are stored, for the norm, are what workers read of each other.
const std::string kSpec = R"(name: small
data:
  dataset: {synthetic_images: {samples: 200, shape: [1, 4, 4]}}
  transforms: [to_tensor]
  batch_size: 40
model: [flatten, {linear: 64}, relu, {linear: 10}]
loss: cross_entropy
optimizer: {adam: 0.01}
clip_grad_norm: 1
epochs: 2
evaluate: true
)";

struct Bench {
  Folder folder;
  Bench() { folder.write("t.yaml", kSpec); }
  Finished run(std::vector<std::string> words, const Variables& environment = {}) const {
    const std::vector<std::string> first = {"bench", folder.file("t.yaml"), "--rounds=2",
                                            "--seconds=0.01", "out=" + folder.file("run")};
    words.insert(words.begin(), first.begin(), first.end());
    return dptrain(words, environment);
  }
};

double number(const Node& row, std::string_view key) { return std::stod(row.find(key)->text); }

// Each row's columns are what they are said to be.
void check_row(const Node& row) {
  CHECK(number(row, "ms_per_sample") > 0);
  CHECK(number(row, "samples_per_second") ==
        doctest::Approx(1000 / number(row, "ms_per_sample")).epsilon(1e-4));  // of six digits each
  CHECK(number(row, "compute_share") > 0);
  CHECK(number(row, "compute_share") + number(row, "communication_share") +
            number(row, "waiting_share") ==
        doctest::Approx(1).epsilon(1e-4));
  CHECK(number(row, "ms_per_sample_fastest") <= number(row, "ms_per_sample"));
  CHECK(number(row, "ms_per_sample_slowest") >= number(row, "ms_per_sample"));
  CHECK(number(row, "memory_predicted_bytes") > 1e6);
  CHECK(number(row, "memory_peak_bytes") > 1e6);
  CHECK(row.find("rounds")->text == "2");
  CHECK(row.find("spec")->text == "small");
  CHECK(has(row.find("machine")->text, "dptrain "));
}

}  // namespace

TEST_CASE("bench measures a pipeline on each number of devices") {
  const Bench bench;
  const Finished f =
      bench.run({"--modes", "single,pipeline", "--devices", "1,2", "--json", "devices=4"});
  REQUIRE_MESSAGE(f.code == 0, f.err);
  const SourceFile file{"bench.json", f.out};
  Diagnostics d;
  const Node root = read_yaml(file, d);
  const std::vector<Node>& rows = root.find("rows")->items;
  REQUIRE(rows.size() == 3);
  for (const Node& row : rows) check_row(row);
  CHECK(rows[1].find("mode")->text == "pipeline");
  CHECK(rows[1].find("devices")->text == "1");
  CHECK(rows[2].find("mode")->text == "pipeline");
  CHECK(rows[2].find("devices")->text == "2");
  CHECK(number(rows[2], "waiting_share") > 0);
}

TEST_CASE("bench measures every mode in processes and threads of its own") {
  const Bench bench;
  const Finished f =
      bench.run({"--devices", "1,2", "--json", "--svg", bench.folder.file("a.svg"), "seed=3"});
  REQUIRE_MESSAGE(f.code == 0, f.err);
  const SourceFile file{"bench.json", f.out};
  Diagnostics d;
  const Node root = read_yaml(file, d);
  REQUIRE(root.find("rows") != nullptr);
  const std::vector<Node>& rows = root.find("rows")->items;
  REQUIRE(rows.size() == 5);
  const std::vector<std::pair<std::string, std::string>> expected = {
      {"single", "1"}, {"dp", "1"}, {"dp", "2"}, {"ddp", "1"}, {"ddp", "2"}};
  for (size_t i = 0; i < rows.size(); ++i) {
    CAPTURE(i);
    check_row(rows[i]);
    CHECK(rows[i].find("mode")->text == expected[i].first);
    CHECK(rows[i].find("devices")->text == expected[i].second);
    CHECK(rows[i].find("batch_size")->text == "40");
    const bool alone = expected[i].second == "1";
    CHECK((number(rows[i], "waiting_share") == 0) == alone);
    CHECK((number(rows[i], "communication_share") == 0) == alone);
  }
  CHECK(number(rows[0], "speedup") == 1);
  const std::string run = bench.folder.file("run");
  CHECK(read_file(run + "/bench.json") == f.out);
  CHECK(read_file(run + "/bench.csv").starts_with("mode,devices,batch_size,precision,"));
  CHECK(read_file(run + "/bench.svg") == read_file(bench.folder.file("a.svg")));
  CHECK_FALSE(std::filesystem::exists(run + "/model.safetensors"));  // nothing was trained to keep
  const std::string page = read_file(run + "/report.html");
  CHECK(has(page, "<h2>Results</h2>"));
  std::filesystem::remove(run + "/report.html");
  const Finished report = dptrain({"report", run});
  CHECK_MESSAGE(report.code == 0, report.err);
  CHECK(report.out == "report: " + run + "/report.html\n");
  CHECK(read_file(run + "/report.html") == page);
}

TEST_CASE("a log has a line for each row that is measured, and Ctrl-C keeps them") {
  const Bench bench;
  const std::string spec = bench.folder.file("t.yaml"), run = bench.folder.file("run");
  for (const int signal : {SIGINT, SIGTERM}) {
    Process p({"bench", spec, "--modes=single,dp", "devices=2", "--rounds=1000", "--seconds=0.05",
               "out=" + run});
    CHECK(becomes_true(60, [&] {
      return has(p.err(), "dp on 2 devices, batch 40: ") && has(p.err(), "round 2 of 1000\n");
    }));
    p.send_group(signal);
    CHECK(p.wait() == 128 + signal);
    CHECK(has(p.err(), " samples/s (row 1 of 2, round 1 of 1000)\n"));
    CHECK(has(p.err(), " samples/s (row 2 of 2, round 1 of 1000)\n"));
    CHECK(has(p.err(), "stopped: measured 2 of 2 rows; the first in "));
    CHECK(has(p.out(), "\nsingle        1     40  fp32 "));
    CHECK(has(p.out(), "\ndp            2     40  fp32 "));
    CHECK(has(read_file(run + "/bench.csv"), "\ndp,2,40,fp32,"));
  }
}

TEST_CASE("bench prints a table, of lists of batch sizes too, or CSV") {
  const Bench bench;
  const Finished table = bench.run({"--modes", "single", "--batch-sizes", "10,20"});
  REQUIRE_MESSAGE(table.code == 0, table.err);
  CHECK(has(table.out, "small: each device has 1 core; "));
  CHECK(has(table.out, "\nsingle        1     10  fp32 "));
  CHECK(has(table.out, "\nsingle        1     20  fp32 "));
  CHECK(has(table.out, "\nmachine: "));
  const Finished csv = bench.run({"--modes", "dp", "--csv", "cores=1", "devices=3"});
  REQUIRE_MESSAGE(csv.code == 0, csv.err);
  CHECK(csv.out == read_file(bench.folder.file("run/bench.csv")));
  CHECK(has(csv.out, "\ndp,3,40,fp32,"));
}

TEST_CASE("bench says that workers share cores, and leaves out rows that can't be") {
  const Bench bench;
  const Finished f = bench.run({"--modes", "single,dp,ddp", "--devices", "80", "cores=1"});
  CHECK(f.code == 0);
  CHECK(has(f.out, "\ndp           80     40  fp32 "));
  CHECK(has(f.out, "80 workers take turns on "));
  CHECK(has(f.err, "ddp on 80 devices, batch 40 was not measured:\n"));
  CHECK(has(f.err, "batch_size 40 cannot be split evenly across 80 ranks; use 80, or"));
  const Finished none = bench.run({"--modes", "ddp", "--devices", "80"});
  CHECK(none.code == 2);
  CHECK(none.out.empty());
}

TEST_CASE("bench --compare shows the speed-up over single, and why rows are left out") {
  const Bench bench;
  const Finished f = bench.run({"--compare", "dp,ddp", "--devices", "1,3", "--json"});
  REQUIRE_MESSAGE(f.code == 0, f.err);
  CHECK(has(f.err, "ddp on 3 devices, batch 40 was not measured:\n"));
  CHECK(has(f.err, "batch_size 40 cannot be split evenly across 3 ranks"));
  const SourceFile file{"bench.json", f.out};
  Diagnostics d;
  const Node root = read_yaml(file, d);
  const std::vector<Node>& rows = root.find("rows")->items;
  REQUIRE(rows.size() == 4);  // single, dp on 1 and 3, ddp on 1
  const double single = number(rows[0], "ms_per_sample");
  for (const Node& row : rows) {
    check_row(row);
    CHECK(row.find("batch_size")->text == "40");
    CHECK(row.find("relative_to")->text == "single on 1 device, batch 40");
    CHECK(number(row, "speedup") ==
          doctest::Approx(single / number(row, "ms_per_sample")).epsilon(1e-4));  // of six digits
    CHECK(number(row, "efficiency") ==
          doctest::Approx(number(row, "speedup") / number(row, "ideal_speedup")).epsilon(1e-4));
    CHECK(row.find("device_has")->text == "1 core");
    CHECK(row.find("workers")->text == row.find("devices")->text);  // one core each
    CHECK(row.find("reason")->text.empty() == (row.find("mode")->text == "single"));
  }
  CHECK(has(read_file(bench.folder.file("run/bench.svg")), "stroke-dasharray"));  // the ideal
}

TEST_CASE("a number of stages that a pipeline cannot have leaves out its row alone") {
  const Bench bench;
  const Finished f = bench.run({"--compare", "pipeline", "--devices", "2,9", "--csv"});
  REQUIRE_MESSAGE(f.code == 0, f.err);
  CHECK(has(f.out, "\npipeline,2,40,fp32,"));
  CHECK(has(f.err, "pipeline on 9 devices, batch 40 was not measured:\n"));
}

TEST_CASE("bench runs where the data set is missing, on one of the same shapes") {
  const Folder folder;
  folder.write("t.yaml", R"(
data: {dataset: {fashion_mnist: {path: nowhere}}, transforms: [to_tensor], batch_size: 40}
model: [flatten, {linear: 10}]
loss: cross_entropy
optimizer: {sgd: 0.01}
)");
  const Finished f = dptrain({"bench", folder.file("t.yaml"), "--modes=single", "--rounds=1",
                              "--seconds=0.01", "out=" + folder.file("run")});
  REQUIRE_MESSAGE(f.code == 0, f.err);
  CHECK(has(f.out,
            "data: synthetic_images: 60000 x [1, 28, 28] u8, 10 classes (generated: fashion_mnist "
            "was not found)"));
  folder.write("csv.yaml", R"(
data: {dataset: {csv: nowhere.csv}, batch_size: 40}
model: [{linear: 10}]
loss: mse_loss
optimizer: {sgd: 0.01}
)");
  const Finished csv = dptrain({"bench", folder.file("csv.yaml"), "--modes=single"});
  CHECK(csv.code == 4);
  CHECK(has(csv.err, "nowhere.csv"));
}

TEST_CASE("what bench can't understand ends with code 2 and a message") {
  const Bench bench;
  const auto refused = [&](const std::vector<std::string>& words, const std::string& message) {
    const Finished f = bench.run(words);
    CAPTURE(words[0]);
    CHECK(f.code == 2);
    CHECK(f.out.empty());
    CHECK_MESSAGE(has(f.err, message), f.err);
  };
  refused({"--modes", "single,dpp"}, "unknown parallel mode 'dpp'");
  refused({"--compare", "dp", "--modes", "dp"}, "--compare and --modes both name the modes");
  refused({"--compare", "dpp"}, "unknown parallel mode 'dpp'");
  refused({"--modes", "dp,dp"},
          "--modes 'dp,dp' names 'dp' twice; write values separated by commas");
  refused({"--batch-sizes", "8,,16"}, "--batch-sizes '8,,16' has an empty entry");
  refused({"--batch-sizes", "0"}, "'batch_size' must be between 1 and 2^31");
  refused({"--devices", "1,two"}, "'devices' must be an integer, not 'two'");
  refused({"--devices", "0"}, "'devices' must be between 1 and 4096");
  refused({"--precision", "fp32,fp31"}, "unknown precision 'fp31'");
  refused({"--rounds", "0"}, "--rounds");
  refused({"--seconds", "-1"}, "--seconds");
  refused({"--json", "--csv"}, "--csv");
  refused({"--fast"}, "--fast");
  refused({"epoch=3"}, "did you mean 'epochs'?");
  CHECK(dptrain({"bench"}).code == 2);
}

TEST_CASE("a run that fails ends the benchmark with its code, and names the row") {
  const Bench bench;
  const Finished f = bench.run({"--modes", "ddp", "--devices", "2", "optimizer={sgd: 1e38}",
                                "clip_grad_norm={max_norm: 1e38}"});
  CHECK(f.code == 7);
  CHECK(has(f.err, "the loss is "));
  CHECK(has(f.err, "ddp on 2 devices, batch 40 ended with code 7; nothing was measured"));
}

}  // namespace dpt
