// softmax: y = exp(x) / sum of exp(x) along one dimension; dx = y * (dy - sum of y * dy).
// log_softmax: y = x - log(sum of exp(x)); dx = dy - exp(y) * sum of dy.
#include <algorithm>
#include <cmath>

#include "graph/operators/support.h"

namespace dpt::operators {
namespace {

template <bool kLog>
class SoftmaxType {
 public:
  static Operators types() {
    return {{.name = kName,
             .precision = Precision::full_on_cuda,
             .infer = typed<infer>,
             .gradient = gradient,
             .reference = typed<forward>},
            {.name = kGradient,
             .precision = Precision::full,
             .infer = typed<infer>,
             .reference = typed<backward>,
             .traits = Trait::backward}};
  }

 private:
  static constexpr std::string_view kName = kLog ? "log_softmax" : "softmax",
                                    kGradient = kLog ? "log_softmax_gradient" : "softmax_gradient";

  static std::vector<TensorDesc> infer(std::span<const TensorDesc> in, const Softmax& attrs) {
    need_real(kName, in[0]);
    need_dim(kName, in[0], attrs.dim);
    for (const TensorDesc& d : in) require(d == in[0], "a softmax and its gradient have one shape");
    return {in[0]};
  }

  static std::vector<ValueId> gradient(GraphBuilder& g, const GraphNode& n,
                                       std::span<const ValueId> dy) {
    return {g.apply(kGradient, {n.out[0], dy[0]}, n.attrs)};
  }

  // Calls f(extent, at) for each line along `dim`; at(i) is the offset of its element i.
  template <class F>
  static void for_each_line(const Shape& s, int dim, F f) {
    const Along a = along(s, dim);
    for (int64_t o = 0; o < a.outer; ++o)
      for (int64_t i = 0; i < a.inner; ++i)
        f(a.extent,
          [&](int64_t e) { return static_cast<size_t>((o * a.extent + e) * a.inner + i); });
  }

  static void forward(const KernelArgs& args, const Softmax& attrs) {
    with_type_of(args.in[0], [&]<class T>(T) {
      const auto x = args.in[0].as<const T>();
      const auto y = args.out[0].as<T>();
      for_each_line(args.in[0].desc.shape, attrs.dim, [&](int64_t n, auto at) {
        double top = -INFINITY, sum = 0;
        for (int64_t i = 0; i < n; ++i) top = std::max(top, static_cast<double>(x[at(i)]));
        for (int64_t i = 0; i < n; ++i) sum += std::exp(static_cast<double>(x[at(i)]) - top);
        const double log_sum = std::log(sum);
        for (int64_t i = 0; i < n; ++i) {
          const double below = static_cast<double>(x[at(i)]) - top;
          y[at(i)] = static_cast<T>(kLog ? below - log_sum : std::exp(below) / sum);
        }
      });
    });
  }

  static void backward(const KernelArgs& args, const Softmax& attrs) {
    with_type_of(args.in[0], [&]<class T>(T) {
      const auto y = args.in[0].as<const T>(), dy = args.in[1].as<const T>();
      const auto dx = args.out[0].as<T>();
      for_each_line(args.in[0].desc.shape, attrs.dim, [&](int64_t n, auto at) {
        double sum = 0;
        for (int64_t i = 0; i < n; ++i)
          sum += (kLog ? 1 : static_cast<double>(y[at(i)])) * static_cast<double>(dy[at(i)]);
        for (int64_t i = 0; i < n; ++i) {
          const double g = static_cast<double>(dy[at(i)]), v = static_cast<double>(y[at(i)]);
          dx[at(i)] = static_cast<T>(kLog ? g - std::exp(v) * sum : v * (g - sum));
        }
      });
    });
  }
};

}  // namespace

Operators softmax() {
  Operators out = SoftmaxType<false>::types();
  add(out, SoftmaxType<true>::types());
  return out;
}

}  // namespace dpt::operators
