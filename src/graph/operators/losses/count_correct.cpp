// count_correct: at how many positions of an output the argmax along `dim` is the target class.
// Targets equal to ignore_index do not count. argmax as in PyTorch: the first nan, or else the
// first of equal maxima.
#include <cmath>

#include "graph/operators/losses/class_targets.h"

namespace dpt::operators {
namespace {

std::vector<TensorDesc> infer(std::span<const TensorDesc> in, const CountCorrect& attrs) {
  const int dim = attrs.dim;
  need_classes("count_correct", in[0], dim);
  const Shape positions = positions_of(in[0].shape, dim);
  if (in[1] != TensorDesc{DType::i32, positions})
    fail(Fault::spec, "count_correct: output {} needs classes i32{} as targets, not {}", str(in[0]),
         positions.str(), str(in[1]));
  return one_double();
}

void reference(const KernelArgs& args, const CountCorrect& s) {
  with_type_of(args.in[0], [&]<class T>(T) {
    const auto x = args.in[0].as<const T>();
    const auto targets = args.in[1].as<const int32_t>();
    const Along a = along(args.in[0].desc.shape, s.dim);
    int64_t right = 0;
    for (int64_t n = 0; n < a.outer; ++n)
      for (int64_t i = 0; i < a.inner; ++i) {
        const auto at = [&](int64_t c) {
          return x[static_cast<size_t>((n * a.extent + c) * a.inner + i)];
        };
        int64_t best = 0;
        for (int64_t c = 1; c < a.extent && !std::isnan(at(best)); ++c)
          if (at(c) > at(best) || std::isnan(at(c))) best = c;
        const int64_t target = targets[static_cast<size_t>(n * a.inner + i)];
        right += best == target && target != s.ignore_index;
      }
    args.out[0].as<double>()[0] = static_cast<double>(right);
  });
}

}  // namespace

Operators count_correct() {
  return {{.name = "count_correct",
           .precision = Precision::full,
           .infer = typed<infer>,
           .reference = typed<reference>,
           .flops = elements_of_first_input}};
}

}  // namespace dpt::operators
