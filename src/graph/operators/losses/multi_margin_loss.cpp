// multi_margin_loss: w[y] * sum over the classes i other than y of max(0, margin - output[y] +
// output[i])^p, divided by the number of classes, for a class target y and p = 1 or 2.
#include "graph/operators/losses/class_targets.h"

namespace dpt::operators {
namespace {

constexpr int64_t kNone = -1;  // no target is ignored

void check(std::span<const TensorDesc> in) {
  need_classes("multi_margin_loss", in[0], 1);
  if (in[0].shape.rank() != 2)
    fail(Fault::spec, "multi_margin_loss: output {} must be [N, C]", str(in[0]));
  if (in[1] != TensorDesc{DType::i32, {in[0].shape[0]}})
    fail(Fault::spec, "multi_margin_loss: output {} needs classes i32[{}] as targets, not {}",
         str(in[0]), in[0].shape[0], str(in[1]));
  need_divisor(in[0], in[2]);
  need_class_weight("multi_margin_loss", in, 1);
}

std::vector<TensorDesc> infer(std::span<const TensorDesc> in) {
  check(in);
  return one_double();
}

std::vector<TensorDesc> infer_gradient(std::span<const TensorDesc> in) {
  check(in);
  return {in[0]};
}

std::vector<ValueId> gradient(GraphBuilder& g, const GraphNode& n, std::span<const ValueId> dy) {
  return loss_gradient(g, n, "multi_margin_loss_gradient", dy);
}

// Calls f(i, y, z, factor) for each element i of the output whose distance z = margin - output[y] +
// output[i] is above 0, where y is the element of the target's class. factor: w[y] / C.
template <class T, class F>
void for_each_violation(const KernelArgs& args, const MultiMargin& attrs, F f) {
  const double margin = attrs.margin;
  const auto x = args.in[0].as<const T>();
  const TensorView* w = input_or_none(args, 3);
  for_each_position(args.in[0], args.in[1], 1, kNone, [&](const Position& p) {
    const size_t y = p.first + static_cast<size_t>(p.target);
    const double factor =
        weight_at(w, static_cast<size_t>(p.target)) / static_cast<double>(p.classes);
    for (size_t i = p.first; i < p.first + static_cast<size_t>(p.classes); ++i) {
      const double z = margin - static_cast<double>(x[y]) + static_cast<double>(x[i]);
      if (i != y && z > 0) f(i, y, z, factor);
    }
  });
}

void forward(const KernelArgs& args, const MultiMargin& attrs) {
  const int p = attrs.p;
  with_type_of(args.in[0], [&]<class T>(T) {
    double sum = 0;
    for_each_violation<T>(args, attrs, [&](size_t, size_t, double z, double factor) {
      sum += factor * (p == 1 ? z : z * z);
    });
    args.out[0].as<double>()[0] = sum / static_cast<double>(args.in[2].as<const T>()[0]);
  });
}

void backward(const KernelArgs& args, const MultiMargin& attrs) {
  const int p = attrs.p;
  with_type_of(args.in[0], [&]<class T>(T) {
    const double divisor = static_cast<double>(args.in[2].as<const T>()[0]);
    const auto dx = args.out[0].as<T>();
    std::vector<double> sums(dx.size());
    for_each_violation<T>(args, attrs, [&](size_t i, size_t y, double z, double factor) {
      const double slope = factor * (p == 1 ? 1 : 2 * z) / divisor;
      sums[i] += slope;
      sums[y] -= slope;
    });
    for (size_t i = 0; i < dx.size(); ++i) dx[i] = static_cast<T>(sums[i]);
  });
}

}  // namespace

Operators multi_margin_loss() {
  return {{.name = "multi_margin_loss",
           .precision = Precision::full,
           .infer = typed<infer>,
           .gradient = gradient,
           .reference = typed<forward>,
           .flops = elements_of_first_input},
          {.name = "multi_margin_loss_gradient",
           .precision = Precision::full,
           .infer = typed<infer_gradient>,
           .reference = typed<backward>,
           .traits = Trait::backward}};
}

}  // namespace dpt::operators
