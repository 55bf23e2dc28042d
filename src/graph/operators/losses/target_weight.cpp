// target_weight: the sum of w[y] over class targets y that are not ignored, or their number without
// weights: this shard's part of the divisor of a mean over targets.
#include "graph/operators/losses/class_targets.h"

namespace dpt::operators {
namespace {

std::vector<TensorDesc> infer(std::span<const TensorDesc> in) {
  if (in[0].dtype != DType::i32)
    fail(Fault::spec, "target_weight: takes classes (i32), not {}", str(in[0]));
  if (in.size() > 1 && in[1].shape.rank() != 1)
    fail(Fault::spec, "target_weight: weight {} is not one number per class", in[1].shape.str());
  return one_double();
}

void reference(const KernelArgs& args, const NllLoss& attrs) {
  const Weights w(args, 1);
  const int64_t ignore = attrs.ignore_index;
  double sum = 0;
  for (int32_t y : args.in[0].as<const int32_t>()) {
    if (y == ignore) continue;
    if (args.in.size() > 1 && (y < 0 || y >= args.in[1].desc.shape[0]))
      fail(Fault::data, "target {} is not in [0, {})", y, args.in[1].desc.shape[0]);
    sum += w[static_cast<size_t>(y)];
  }
  args.out[0].as<double>()[0] = sum;
}

}  // namespace

Operators target_weight() {
  return {{.name = "target_weight",
           .precision = Precision::full,
           .infer = typed<infer>,
           .reference = typed<reference>,
           .flops = elements_of_first_input}};
}

}  // namespace dpt::operators
