// Which rows `dptrain bench` measures; nothing is run.
#include "cli/bench_rows.h"

#include <algorithm>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/machine.h"
#include "data/folder.h"

namespace dpt {
namespace {

using commands::BenchLists;

const std::string kSpec = R"(
data:
  dataset: {synthetic_images: {samples: 200, shape: [1, 4, 4]}}
  transforms: [to_tensor]
  batch_size: 40
model: [flatten, {linear: 64}, relu, {linear: 32}, relu, {linear: 10}]
loss: cross_entropy
optimizer: {adam: 0.01}
)";

std::vector<BenchRow> rows_of(const BenchLists& lists, std::vector<std::string> overrides = {}) {
  const Folder folder;
  folder.write("t.yaml", kSpec);
  const SpecArgument argument{folder.file("t.yaml"), std::move(overrides)};
  return commands::RowMaker(argument, lists).rows();
}

// "single 1, dp 2"
std::string text_of(const std::vector<BenchRow>& rows) {
  std::vector<std::string> out;
  for (const BenchRow& r : rows) out.push_back(fmt::format("{} {}", r.mode, r.devices));
  return fmt::format("{}", fmt::join(out, ", "));
}

bool has_override(const BenchRow& row, const std::string& text) {
  return std::ranges::find(row.overrides, text) != row.overrides.end();
}

std::string refusal(const BenchLists& lists) {
  try {
    rows_of(lists);
  } catch (const BadSpec& e) {
    return e.text;
  }
  return "";
}

}  // namespace

TEST_CASE("--compare measures single and each mode by devices, all with the same batch") {
  const auto rows = rows_of({.compare = "dp,ddp", .devices = "1,2,4"});
  CHECK(text_of(rows) == "single 1, dp 1, dp 2, dp 4, ddp 1, ddp 2, ddp 4");
  for (const BenchRow& r : rows) {
    CHECK(r.batch_size == 40);
    CHECK(has_override(r, "data.batch_size=40"));
    CHECK(has_override(r, fmt::format("devices={}", r.devices)));
  }
  CHECK(text_of(rows_of({.compare = "single,ddp", .devices = "2"})) == "single 1, ddp 2");
}

TEST_CASE("a batch given for each replica is the same for all rows of a comparison") {
  for (const BenchRow& r :
       rows_of({.compare = "dp,ddp", .devices = "1,4"},
               {"data.batch_size=null", "data.batch_size_per_replica=10", "parallel={ddp: 2}"}))
    CHECK_MESSAGE(r.batch_size == 20, name_of(r));
}

TEST_CASE("rows do not scale learning rates, whose reference batch they replace") {
  for (const BenchRow& r :
       rows_of({.compare = "dp", .devices = "1"},
               {"data.batch_size=null", "data.batch_size_per_replica=10", "lr_scale=linear"}))
    CHECK(has_override(r, "lr_scale=none"));
  for (const BenchRow& r : rows_of({.compare = "dp", .devices = "1"}))
    CHECK_FALSE(has_override(r, "lr_scale=none"));
}

TEST_CASE("each batch size and precision of a comparison has its own row of single") {
  const auto rows = rows_of({.compare = "dp", .devices = "2", .batch_sizes = "8,16"});
  CHECK(text_of(rows) == "single 1, dp 2, single 1, dp 2");
  CHECK(rows[1].batch_size == 8);
  CHECK(rows[2].batch_size == 16);
}

TEST_CASE("without --devices a comparison goes up to the machine's cores") {
  const auto cores = static_cast<int64_t>(usable_cores().size());
  std::vector<int64_t> expected;
  for (int64_t n = 1; n < cores; n *= 2) expected.push_back(n);
  expected.push_back(cores);
  std::vector<int64_t> found;
  for (const BenchRow& r : rows_of({.compare = "dp"}, {"parallel={ddp: 3}"}))
    if (r.mode == "dp") found.push_back(r.devices);
  CHECK(found == expected);
  // Devices that have all cores each are one.
  CHECK(text_of(rows_of({.compare = "dp"}, {fmt::format("cores={}", cores)})) == "single 1, dp 1");
}

TEST_CASE("a comparison gives a pipeline as many stages as devices") {
  const auto rows = rows_of({.compare = "dp,pipeline", .devices = "1,2,3"});
  CHECK(text_of(rows) == "single 1, dp 1, dp 2, dp 3, pipeline 2, pipeline 3");
  CHECK(has_override(rows[5], "parallel.stages=3"));
  const std::string replicas = "parallel={pipeline: {stages: 2, data_parallel: 2, chunks: 2}}";
  CHECK(text_of(rows_of({.compare = "pipeline", .devices = "1,2,4,5,6"}, {replicas})) ==
        "single 1, pipeline 4, pipeline 6");
  CHECK(text_of(rows_of({.compare = "pipeline", .devices = "1"}, {replicas})) ==
        "single 1, pipeline 4");
  CHECK(text_of(rows_of({.compare = "pipeline", .devices = "2,3"},
                        {"parallel={pipeline: {stages: 2, cut: ['3']}}"})) ==
        "single 1, pipeline 2");
}

TEST_CASE("--devices is the number of a pipeline's devices without --compare, too") {
  const auto rows = rows_of({.modes = "single,pipeline", .devices = "2,3"});
  CHECK(text_of(rows) == "single 1, pipeline 2, pipeline 3");
  CHECK(has_override(rows[2], "parallel.stages=3"));
  CHECK(has_override(rows[2], "devices=3"));
  CHECK(text_of(rows_of({.modes = "pipeline"})) == "pipeline 2");
  // What makes no whole replicas, or contradicts the spec, is refused when it is measured.
  const auto uneven = rows_of({.modes = "pipeline", .devices = "4,5"},
                              {"parallel={pipeline: {stages: 2, data_parallel: 2, chunks: 2}}"});
  CHECK(text_of(uneven) == "pipeline 4, pipeline 5");
  CHECK(has_override(uneven[0], "parallel.stages=2"));
  CHECK(has_override(uneven[1], "devices=5"));
  CHECK(text_of(rows_of({.modes = "pipeline", .devices = "3"},
                        {"parallel={pipeline: {stages: 2, cut: ['3']}}"})) == "pipeline 3");
  CHECK(refusal({.modes = "pipeline", .devices = "two"}).find("must be an integer") !=
        std::string::npos);
}

TEST_CASE("a device has the same cores whatever modes are measured") {
  for (const char* modes : {"single", "dp", "single,dp,ddp"})
    for (const BenchRow& r : rows_of({.modes = modes, .devices = "1,2"}))
      CHECK_MESSAGE(has_override(r, "cores=1"), name_of(r));
  for (const BenchRow& r : rows_of({.modes = "single,dp", .devices = "2"}, {"cores=3"}))
    CHECK_MESSAGE(has_override(r, "cores=3"), name_of(r));
}

TEST_CASE("lists that make no comparison are refused") {
  CHECK(refusal({.modes = "dp", .compare = "dp"})
            .starts_with("dptrain: --compare and --modes both name the modes to measure; use only "
                         "one of them"));
  CHECK(refusal({.compare = "single"})
            .starts_with("dptrain: --compare measures single anyway; name a mode to compare"));
  CHECK(refusal({.compare = "dp,dp"}).starts_with("dptrain: --compare 'dp,dp' names 'dp' twice"));
  CHECK(refusal({.compare = "dpp"}).find("unknown parallel mode 'dpp'") != std::string::npos);
  CHECK(refusal({.compare = "dp", .devices = "2,two"}).find("must be an integer") !=
        std::string::npos);
}

}  // namespace dpt
