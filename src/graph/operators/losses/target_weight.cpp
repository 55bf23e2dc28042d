// target_weight: the sum of w[y] over class targets y that are not ignored, or their number without
// weights: this shard's part of the divisor of a mean over targets.
#include "graph/operators/losses/class_targets.h"

namespace dpt::operators {
namespace {

std::vector<TensorDesc> infer(std::span<const TensorDesc> in, const std::any&) {
  if (in[0].dtype != DType::i32)
    fail(Fault::spec, "target_weight: takes classes (i32), not {}", str(in[0]));
  if (in.size() > 1 && in[1].shape.rank() != 1)
    fail(Fault::spec, "target_weight: weight {} is not one number per class", in[1].shape.str());
  return one_double();
}

void reference(const KernelArgs& args, const std::any& attrs) {
  const TensorView* w = input_or_none(args, 1);
  const int64_t ignore = settings<NllLoss>(attrs).ignore_index;
  double sum = 0;
  for (int32_t y : args.in[0].as<const int32_t>()) {
    if (y == ignore) continue;
    if (w != nullptr && (y < 0 || y >= w->desc.shape[0]))
      fail(Fault::data, "target {} is not in [0, {})", y, w->desc.shape[0]);
    sum += weight_at(w, static_cast<size_t>(y));
  }
  args.out[0].as<double>()[0] = sum;
}

std::vector<Sample> samples() {
  const TensorDesc sum{DType::f64, {1}};
  return {
      {{"target_weight", {i32({7})}, {sum}, NllLoss{}}, {{0, 3}}},
      {{"target_weight", {i32({37}), f32({3})}, {sum}, NllLoss{}}, {{0, 3}, {0, 2}}},
      {{"target_weight", {i32({3, 5}), f32({4})}, {sum}, NllLoss{.ignore_index = 2}},
       {{0, 4}, {0, 2}}},
  };
}

}  // namespace

OperatorType target_weight() {
  return {.name = "target_weight",
          .precision = Precision::full,
          .infer = infer,
          .reference = reference,
          .samples = samples,
          .flops = elements_of_first_input};
}

}  // namespace dpt::operators
