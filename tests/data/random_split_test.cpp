// The expected numbers are PyTorch's: random_split(range(n), [1 - f, f],
// torch.Generator().manual_seed(seed)).
#include "data/random_split.h"

#include <vector>

#include <doctest/doctest.h>

namespace dpt {
namespace {

TEST_CASE("random_split: the samples of PyTorch's random_split") {
  const RandomSplit split = random_split(11, 0.3, 7);
  CHECK(split.train == std::vector<uint32_t>{3, 0, 9, 2, 5, 8, 4, 10});
  CHECK(split.validation == std::vector<uint32_t>{1, 7, 6});
}

TEST_CASE("random_split: the counts of PyTorch's random_split") {
  struct Case {
    int64_t samples;
    double fraction;
    size_t train, validation;
  };
  for (const Case& c :
       {Case{60000, 0.1, 54000, 6000}, Case{10, 0.25, 8, 2}, Case{7, 0.5, 4, 3}, Case{1, 0.5, 1, 0},
        Case{999, 0.3333333333333333, 666, 333}, Case{203, 0.2, 163, 40}, Case{3, 0.9, 1, 2}}) {
    CAPTURE(c.samples);
    CAPTURE(c.fraction);
    const RandomSplit split = random_split(c.samples, c.fraction, 1);
    CHECK(split.train.size() == c.train);
    CHECK(split.validation.size() == c.validation);
  }
}

}  // namespace
}  // namespace dpt
