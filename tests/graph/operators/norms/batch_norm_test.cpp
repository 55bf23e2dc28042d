#include <doctest/doctest.h>

#include "graph/operators/run.h"

namespace dpt {
namespace {

const BatchNorm kWithRelu{.relu = true}, kWithAdd{.add = true, .relu = true};

// With moments: two channels of two samples, mean 1 and 2, rstd 2 and 0.5.
const Given kImage{f64({2, 2}), {1.5, 1, 0.5, 4}}, kGiven{f64({4}), {1, 2, 2, 0.5}};

// Without: two channels of two samples with means 1 and 4, variances 0.25
// and 1.
const Given kBatch{f64({2, 2}), {0.5, 3, 1.5, 5}};
BatchNorm in_training(BatchNorm s = {}) {
  s.eps = 0;
  s.momentum = 0.5;
  s.training = true;
  return s;
}

}  // namespace

TEST_CASE(
    "batch_norm with relu normalises, scales, shifts and leaves out what "
    "is below 0") {
  CHECK(run_op("batch_norm", {kImage, kGiven}, kWithRelu) == std::vector<double>{1, 0, 0, 1});
  CHECK(run_op("batch_norm", {kImage, kGiven, {f64({2}), {3, -2}}, {f64({2}), {-1, 3}}},
               kWithRelu) == std::vector<double>{2, 4, 0, 1});
}

TEST_CASE("batch_norm with an addition adds before it leaves out what is below 0") {
  CHECK(run_op("batch_norm", {kImage, {f64({2, 2}), {-3, 1, 1.5, 0}}, kGiven}, kWithAdd) ==
        std::vector<double>{0, 0.5, 0.5, 1});
}

TEST_CASE("between halves each of the steps of batch_norm is rounded") {
  const BatchNorm halves{.add = true, .relu = true, .between = DType::bf16};
  // 1 + 2^-8 is halfway between two numbers of bf16, and 1 the even one.
  const double x = 1 + 0x1p-8, r = 2 + 0x1p-6;
  CHECK(run_op("batch_norm", {{f64({1, 1}), {x}}, {f64({1, 1}), {r}}, {f64({2}), {0, 1}}},
               halves) == std::vector<double>{3.015625});
}

TEST_CASE(
    "batch_norm in training normalises by the moments of its own batch, "
    "and gives them") {
  CHECK(run_op("batch_norm", {kBatch}, in_training()) == std::vector<double>{-1, -1, 1, 1});
  CHECK(run_op("batch_norm", {kBatch}, in_training(), {}, 1) == std::vector<double>{1, 4, 2, 1});
  const Given w{f64({2}), {3, 2}}, b{f64({2}), {1, -1}};
  CHECK(run_op("batch_norm", {kBatch, w, b}, in_training(kWithRelu)) ==
        std::vector<double>{0, 0, 4, 1});
  CHECK(run_op("batch_norm", {kBatch, {f64({2, 2}), {3, 3, -5, 1}}, w, b}, in_training(kWithAdd)) ==
        std::vector<double>{1, 0, 0, 2});
}

TEST_CASE(
    "batch_norm in training moves the running statistics, the variance "
    "unbiased") {
  const std::vector<Given> in = {kBatch,
                                 {f64({2}), {3, 2}},
                                 {f64({2}), {1, -1}},
                                 {f64({2}), {3, 0}},
                                 {f64({2}), {1, 4}},
                                 {{DType::i64, {}}, {7}}};
  CHECK(run_op("batch_norm", in, in_training(), {}, 2) == std::vector<double>{2, 2});
  CHECK(run_op("batch_norm", in, in_training(), {}, 3) == std::vector<double>{0.75, 3});
  CHECK(run_op("batch_norm", in, in_training(), {}, 4) == std::vector<double>{8});
}

TEST_CASE("batch_norm names what does not fit") {
  CHECK(refusal("batch_norm", {f32({8, 4}), f64({8}), f32({2})}) ==
        "batch_norm: [2] does not fit the channels, which take [4]");
  CHECK(refusal("batch_norm", {f32({8, 4}), f32({2})}, in_training()) ==
        "batch_norm: [2] does not fit the channels, which take [4]");
  CHECK(refusal("batch_norm", {f32({8, 4}), f32({8, 2}), f64({8})}, kWithAdd) ==
        "batch_norm: f32[8, 4] and f32[8, 2] do not fit together");
}

TEST_CASE("a batch norm is called by what it does") {
  const OperatorType& norm = op("batch_norm");
  CHECK(label_of(norm, BatchNorm{}) == "batch_norm");
  CHECK(label_of(norm, kWithAdd) == "batch_norm{add,relu}");
  CHECK(label_of(norm, in_training(kWithRelu)) == "batch_norm{relu,training}");
  CHECK(label_of(op("relu"), {}) == "relu");
}

}  // namespace dpt
