#include "data/summary.h"

#include <cmath>
#include <limits>
#include <map>

#include <doctest/doctest.h>

#include "data/datasets/loading.h"

namespace dpt {
namespace {

TEST_CASE("standardized inputs are summarized in the units of the file") {
  const Folder folder;
  folder.write("t.csv", "x,c,y\n80,a,1\n120,b,2\n-999,a,3\n");
  const DataSummary table = summarize(
      load("csv", "{path: t.csv, categories: c, standardize: true}", Split::train, folder.path()),
      {}, 10);
  CHECK(table.file_units);
  CHECK(table.inputs[0].range.min() == doctest::Approx(-999).epsilon(1e-6));  // through float32
  CHECK(table.inputs[0].range.max() == doctest::Approx(120).epsilon(1e-6));
  CHECK(table.inputs[1].range.max() == 1);
  folder.write("x.npy", npy("<f4", "(2, 2, 1)", std::vector<float>{10, 500, 20, 900}));
  folder.write("y.npy", npy("<i8", "(2,)", std::vector<int64_t>{0, 1}));
  const auto array = [&](const std::string& more) {
    return summarize(
        load("npy", "{inputs: x.npy, targets: y.npy" + more + "}", Split::train, folder.path()), {},
        10);
  };
  CHECK(array(", standardize: true").file_units);
  CHECK(array(", standardize: true").inputs[1].range.max() == doctest::Approx(900).epsilon(1e-6));
  CHECK(array(", standardize: true").inputs[0].range.min() == doctest::Approx(10).epsilon(1e-6));
  CHECK_FALSE(array("").file_units);
  CHECK(array("").inputs.size() == 2);
  CHECK(array("").inputs[1].name == "channel 1");
  CHECK(array("").inputs[1].range.min() == 500);
}

TEST_CASE("a range has the population's deviation, and counts what is not finite") {
  ValueRange r;
  for (const double x : {1.0, 3.0, 5.0}) r.add(x);
  r.add(std::numeric_limits<double>::quiet_NaN());
  r.add(std::numeric_limits<double>::infinity());
  CHECK(r.count() == 3);
  CHECK(r.broken() == 2);
  CHECK(r.min() == 1);
  CHECK(r.max() == 5);
  CHECK(r.mean() == 3);
  CHECK(r.std() == doctest::Approx(std::sqrt(8.0 / 3)).epsilon(1e-12));
  CHECK(ValueRange().std() == 0);
}

TEST_CASE("columns have their names, classes their counts, missing fields their columns") {
  const Folder folder;
  folder.write("t.csv", "a,kind,y\n1,x,up\n,z,down\n3,,up\n5,x,up\n");
  const Dataset d = load("csv", "{path: t.csv, classes: auto, categories: kind, missing: mean}",
                         Split::train, folder.path());
  const DataSummary all = summarize(d, {}, 1);
  CHECK(all.samples == 4);
  CHECK(all.read == 4);
  CHECK(all.classes.occurring() == std::map<int64_t, int64_t>{{0, 1}, {1, 3}});
  REQUIRE(all.inputs.size() == 3);
  CHECK(all.inputs[0].name == "a");
  CHECK(all.inputs[0].range.mean() == 3);
  CHECK(all.inputs[2].name == "kind=z");
  REQUIRE(all.missing.size() == 2);
  CHECK(all.missing[0].column == "a");
  CHECK(all.missing[1].fields == 1);
  const std::vector<uint32_t> rows{1, 3};
  const DataSummary some = summarize(d, rows, 1);
  CHECK(some.samples == 2);
  CHECK(some.classes.occurring() == std::map<int64_t, int64_t>{{0, 1}, {1, 1}});
  CHECK(some.inputs[0].range.max() == 5);
}

TEST_CASE("of samples that are read one by one some are read") {
  struct Reader : SampleReader {
    void read(uint32_t row, std::span<std::byte> out) const override {
      std::ranges::fill(out, static_cast<std::byte>(row));
    }
  };
  Dataset d;
  d.inputs = {.desc = {DType::u8, {100, 3, 2, 2}}};
  NewTable targets({DType::i32, {100}});
  std::ranges::fill(targets.as<int32_t>(), 0);
  targets.as<int32_t>()[5] = -100;
  d.targets = std::move(targets).done();
  d.classes = 1;
  d.reader = std::make_shared<Reader>();
  const DataSummary s = summarize(d, {}, 10);
  CHECK(s.read == 10);
  CHECK(s.inputs.size() == 3);
  CHECK(s.inputs[1].name == "channel 1");
  CHECK(s.inputs[1].range.max() == 90);
  CHECK(s.ignored == 1);
  CHECK(s.classes.samples(0) == 99);
}

TEST_CASE("a large label takes no memory for the classes below it") {
  ClassCounts counts(300'000'001);
  for (const int64_t c : {7, 300'000'000, 7, 0}) counts.add(c);
  CHECK(counts.samples(7) == 2);
  CHECK(counts.samples(8) == 0);
  CHECK(counts.occurring().size() == 3);
  CHECK(counts.rarest() == 1);
  const Folder folder;
  folder.write("x", npy<float>("<f4", "(2, 1)", {0, 1}));
  folder.write("y", npy<int32_t>("<i4", "(2,)", {3, 300'000'000}));
  const Dataset d = load("npy", "{inputs: x, targets: y}", Split::train, folder.path());
  const DataSummary s = summarize(d, {}, 10);
  CHECK(s.classes.classes() == 300'000'001);
}

TEST_CASE("values of targets and tokens") {
  const Folder folder;
  folder.write("x", npy<int32_t>("<i4", "(2, 3)", {0, 4, 4, 0, 1, 4}));
  folder.write("y", npy<float>("<f4", "(2, 2)", {1, 10, 3, 30}));
  const DataSummary s =
      summarize(load("npy", "{inputs: x, targets: y}", Split::train, folder.path()), {}, 10);
  CHECK(s.tokens_used == 3);
  CHECK(s.inputs[0].name == "all numbers");
  CHECK(s.inputs[0].range.max() == 4);
  CHECK(s.classes.classes() == 0);
  REQUIRE(s.targets.size() == 1);
  CHECK(s.targets[0].range.mean() == 11);
}

}  // namespace
}  // namespace dpt
