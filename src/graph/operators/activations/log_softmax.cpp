// log_softmax: y = x - log(sum of exp(x)) along one dimension; dx = dy - exp(y) * sum of dy.
#include <algorithm>
#include <cmath>

#include "graph/operators/activations/softmax_rows.h"

namespace dpt::operators {
namespace {

std::vector<TensorDesc> infer(std::span<const TensorDesc> in, const Softmax& attrs) {
  return infer_softmax("log_softmax", in, attrs);
}

std::vector<ValueId> gradient(GraphBuilder& g, const GraphNode& n, std::span<const ValueId> dy) {
  return {g.apply("log_softmax_gradient", {n.out[0], dy[0]}, n.attrs)};
}

void forward(const KernelArgs& args, const Softmax& attrs) {
  with_type_of(args.in[0], [&]<class T>(T) {
    const auto x = args.in[0].as<const T>();
    const auto y = args.out[0].as<T>();
    for_each_line(args.in[0].desc.shape, attrs.dim, [&](int64_t n, auto at) {
      double top = -INFINITY, sum = 0;
      for (int64_t i = 0; i < n; ++i) top = std::max(top, static_cast<double>(x[at(i)]));
      for (int64_t i = 0; i < n; ++i) sum += std::exp(static_cast<double>(x[at(i)]) - top);
      const double log_sum = std::log(sum);
      for (int64_t i = 0; i < n; ++i)
        y[at(i)] = static_cast<T>(static_cast<double>(x[at(i)]) - top - log_sum);
    });
  });
}

void backward(const KernelArgs& args, const Softmax& attrs) {
  with_type_of(args.in[0], [&]<class T>(T) {
    const auto y = args.in[0].as<const T>(), dy = args.in[1].as<const T>();
    const auto dx = args.out[0].as<T>();
    for_each_line(args.in[0].desc.shape, attrs.dim, [&](int64_t n, auto at) {
      double sum = 0;
      for (int64_t i = 0; i < n; ++i) sum += static_cast<double>(dy[at(i)]);
      for (int64_t i = 0; i < n; ++i)
        dx[at(i)] = static_cast<T>(static_cast<double>(dy[at(i)]) -
                                   std::exp(static_cast<double>(y[at(i)])) * sum);
    });
  });
}

}  // namespace

Operators log_softmax() {
  return {{.name = "log_softmax",
           .precision = Precision::full_on_cuda,
           .infer = typed<infer>,
           .gradient = gradient,
           .reference = typed<forward>},
          {.name = "log_softmax_gradient",
           .precision = Precision::full,
           .infer = typed<infer>,
           .reference = typed<backward>,
           .traits = Trait::backward}};
}

}  // namespace dpt::operators
