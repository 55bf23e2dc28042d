// Samples that a run could not use, found without a run.
#include "data/check_samples.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "data/datasets/loading.h"

namespace dpt {
namespace {

// Counts as an image set of so many samples, of which some cannot be read.
struct Broken : SampleReader {
  explicit Broken(std::vector<uint32_t> rows) : broken(std::move(rows)) {}
  void read(uint32_t row, std::span<std::byte>) const override {
    seen.push_back(row);
    if (std::ranges::find(broken, row) != broken.end())
      throw Error(Fault::data, fmt::format("{}.png is damaged", row));
  }
  std::vector<uint32_t> broken;
  mutable std::vector<uint32_t> seen;
};

Dataset images(int64_t samples, std::shared_ptr<const SampleReader> reader) {
  Dataset d;
  d.inputs = {{DType::u8, {samples, 3, 2, 2}}, nullptr};
  d.targets = NewTable({DType::i32, {samples}}).done();
  d.reader = std::move(reader);
  return d;
}

TEST_CASE("numbers that are not finite are found in inputs and targets") {
  const Folder folder;
  std::vector<float> x(24, 1);
  folder.write("x.npy", npy("<f4", "(8, 3)", x));
  const auto problems = [&](const std::vector<float>& inputs, const std::vector<float>& targets) {
    folder.write("x.npy", npy("<f4", "(8, 3)", inputs));
    folder.write("y.npy", npy("<f4", "(8, 1)", targets));
    const Dataset d = load("npy", fmt::format("{{inputs: {}, targets: {}}}", folder.file("x.npy"),
                                              folder.file("y.npy")));
    const SampleReport report = check_samples(d, "training", 10);
    CHECK(report.read == 0);
    return report.problems;
  };
  const std::vector<float> y(8, 0);
  CHECK(problems(x, y).empty());
  std::vector<float> broken = x;
  broken[3 * 5 + 1] = NAN;
  broken[3 * 5 + 2] = INFINITY;
  CHECK(problems(broken, y) ==
        std::vector<std::string>{"sample 5 of the training set (counted from 0) has an input that "
                                 "is not finite; fix or remove that sample"});
  broken[3 * 7] = NAN;
  std::vector<float> targets = y;
  targets[2] = -INFINITY;
  CHECK(problems(broken, targets) ==
        std::vector<std::string>{"sample 5 of the training set (counted from 0) has an input that "
                                 "is not finite, and so has 1 other; fix or remove them",
                                 "sample 2 of the training set (counted from 0) has a target that "
                                 "is not finite; fix or remove that sample"});
}

TEST_CASE("as many images are decoded as asked for, evenly spread, and each broken one is named") {
  const auto few = std::make_shared<Broken>(std::vector<uint32_t>{1, 3});
  const SampleReport all = check_samples(images(4, few), "training", 10);
  CHECK(all.read == 4);
  CHECK(all.broken == 2);
  CHECK(all.problems == std::vector<std::string>{"1.png is damaged", "3.png is damaged"});
  const auto many = std::make_shared<Broken>(std::vector<uint32_t>{});
  CHECK(check_samples(images(100, many), "training", 4).read == 4);
  CHECK(many->seen == std::vector<uint32_t>{0, 25, 50, 75});
  std::vector<uint32_t> rows(50);
  for (uint32_t i = 0; i < 50; ++i) rows[i] = i;
  const auto none = std::make_shared<Broken>(rows);
  const SampleReport bad = check_samples(images(50, none), "training", 100);
  CHECK(bad.problems.size() == 11);
  CHECK(bad.problems.back() == "40 other samples cannot be read either");
}

TEST_CASE("a set that was not made has nothing to look at") {
  Dataset d = images(4, std::make_shared<Broken>(std::vector<uint32_t>{0}));
  d.made = false;
  const SampleReport report = check_samples(d, "training", 10);
  CHECK(report.problems.empty());
  CHECK(report.read == 0);
}

}  // namespace
}  // namespace dpt
