// Small examples of every operator, for conformance tests, gradient checks and benchmarks.
#pragma once

#include <any>
#include <string_view>
#include <utility>
#include <vector>

#include "graph/graph.h"
#include "graph/operator.h"

namespace dpt {

struct Sample {
  KernelQuery query;  // floating-point tensors are f32; tests also run it with f64
  struct Range {
    // Float inputs: uniform in [low, high]; integer inputs: low <= i < high
    double low = -2, high = 2;
  };
  std::vector<Range> ranges{};  // for each input; default if missing
  std::vector<double> kinks{};  // gradient checks keep x away from these points
};
using Samples = std::vector<Sample>;

// Those of an operator. An operator of a gradient has the nodes that the gradients of other samples
// add; their inputs have the ranges of the numbers that come out there.
const Samples& samples_of(std::string_view op);
const Samples& written_samples_of(std::string_view op);  // only those of the functions below

// A file for each folder of graph/operators/.
Samples activation_samples();
Samples image_samples();
Samples loss_samples();
Samples movement_samples();
Samples norm_samples();
Samples product_samples();

// The operator's shape rule gives the results.
inline Sample sample(std::string_view name, std::vector<TensorDesc> in, std::any attrs = {},
                     std::vector<Sample::Range> ranges = {}, std::vector<double> kinks = {}) {
  std::vector<TensorDesc> out = op(name).infer(in, attrs);
  return {
      {name, std::move(in), std::move(out), std::move(attrs)}, std::move(ranges), std::move(kinks)};
}
inline Samples& operator+=(Samples& all, const Samples& more) {
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

inline TensorDesc f32(Shape s) { return {DType::f32, s}; }
inline TensorDesc f64(Shape s) { return {DType::f64, s}; }
inline TensorDesc i32(Shape s) { return {DType::i32, s}; }

// One or several inputs of one shape; `first` is the range of the first.
Samples elementwise_samples(std::string_view op, size_t inputs, const std::any& attrs = {},
                            Sample::Range first = {-4, 4}, const std::vector<double>& kinks = {});

}  // namespace dpt
