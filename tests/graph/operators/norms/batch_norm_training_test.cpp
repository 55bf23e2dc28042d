#include <doctest/doctest.h>

#include "graph/operators/run.h"

namespace dpt {
namespace {

// Two channels of two samples: means 1 and 4, variances 0.25 and 1.
const Numbers kBatch{f64({2, 2}), {0.5, 3, 1.5, 5}};
const BatchNorm kNoEps{.eps = 0, .momentum = 0.5};

}  // namespace

TEST_CASE("batch_norm_training normalises by the moments of its own batch, and gives them") {
  CHECK(run_op("batch_norm_training", {kBatch}, kNoEps) == std::vector<double>{-1, -1, 1, 1});
  CHECK(run_op("batch_norm_training", {kBatch}, kNoEps, {}, 1) == std::vector<double>{1, 4, 2, 1});
  const Numbers w{f64({2}), {3, 2}}, b{f64({2}), {1, -1}};
  CHECK(run_op("batch_norm_relu_training", {kBatch, w, b}, kNoEps) ==
        std::vector<double>{0, 0, 4, 1});
  CHECK(run_op("batch_norm_add_relu_training", {kBatch, {f64({2, 2}), {3, 3, -5, 1}}, w, b},
               kNoEps) == std::vector<double>{1, 0, 0, 2});
}

TEST_CASE("batch_norm_training moves the running statistics, the variance unbiased") {
  const std::vector<Numbers> in = {kBatch,
                                   {f64({2}), {3, 2}},
                                   {f64({2}), {1, -1}},
                                   {f64({2}), {3, 0}},
                                   {f64({2}), {1, 4}},
                                   {{DType::i64, {}}, {7}}};
  CHECK(run_op("batch_norm_training", in, kNoEps, {}, 2) == std::vector<double>{2, 2});
  CHECK(run_op("batch_norm_training", in, kNoEps, {}, 3) == std::vector<double>{0.75, 3});
  CHECK(run_op("batch_norm_training", in, kNoEps, {}, 4) == std::vector<double>{8});
}

TEST_CASE("batch_norm_training names what does not fit") {
  CHECK(refusal("batch_norm_training", {f32({8, 4}), f32({2})}) ==
        "batch_norm_training: [2] does not fit the channels, which take [4]");
}

}  // namespace dpt
