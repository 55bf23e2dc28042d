// multi_margin_loss: w[y] * sum over the classes i other than y of max(0, margin - output[y] +
// output[i])^p, divided by the number of classes, for a class target y and p = 1 or 2. Targets
// [N, C] are lists of labels, which end at the first negative one: the sum over the labels y and
// the classes i that are none of them.
#include "graph/operators/losses/class_targets.h"

namespace dpt::operators {
namespace {

void check(std::span<const TensorDesc> in) {
  need_classes("multi_margin_loss", in[0], 1);
  if (in[0].shape.rank() != 2)
    fail(Fault::spec, "multi_margin_loss: output {} must be [N, C]", str(in[0]));
  if (in[1] != TensorDesc{DType::i32, {in[0].shape[0]}} &&
      in[1] != TensorDesc{DType::i32, in[0].shape})
    fail(Fault::spec, "multi_margin_loss: output {} needs classes i32[{}] as targets, not {}",
         str(in[0]), in[0].shape[0], str(in[1]));
  need_divisor(in[0], in[2]);
  need_class_weight("multi_margin_loss", in, 1);
}

// The labels of a sample.
std::span<const int32_t> labels_of(const TensorView& target, int64_t sample, int64_t classes) {
  const auto all = target.as<const int32_t>();
  const bool list = target.desc.shape.rank() == 2;
  const auto length = static_cast<size_t>(list ? classes : 1);
  auto labels = all.subspan(static_cast<size_t>(sample) * length, length);
  if (list)
    labels = labels.first(static_cast<size_t>(
        std::ranges::find_if(labels, [](int32_t y) { return y < 0; }) - labels.begin()));
  for (const int32_t y : labels)
    if (y < 0 || y >= classes)
      fail(Fault::data, "target {} of sample {} in its batch is not in [0, {})", y, sample,
           classes);
  return labels;
}

// Calls f(i, y, z, factor) for each element i of the output whose distance z = margin - output[y] +
// output[i] is above 0, where y is the element of a label, and i of none. factor: w[y] / C.
template <class T, class F>
void for_each_violation(const KernelArgs& args, const MultiMargin& attrs, F f) {
  const double margin = attrs.margin;
  const auto x = args.in[0].as<const T>();
  const Weights w(args, 3);
  const int64_t samples = args.in[0].desc.shape[0], classes = args.in[0].desc.shape[1];
  for (int64_t n = 0; n < samples; ++n) {
    const auto labels = labels_of(args.in[1], n, classes);
    const auto first = static_cast<size_t>(n * classes);
    for (const int32_t label : labels) {
      const size_t y = first + static_cast<size_t>(label);
      const double factor = w[static_cast<size_t>(label)] / static_cast<double>(classes);
      for (int32_t c = 0; c < classes; ++c) {
        const size_t i = first + static_cast<size_t>(c);
        const double z = margin - static_cast<double>(x[y]) + static_cast<double>(x[i]);
        if (z > 0 && std::ranges::find(labels, c) == labels.end()) f(i, y, z, factor);
      }
    }
  }
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
  return loss_types<check, forward, backward>("multi_margin_loss", "multi_margin_loss_gradient");
}

}  // namespace dpt::operators
