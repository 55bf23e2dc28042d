// Helpers for losses. Inputs: output, target, divisor [1], and constants with weights. The result
// is f64[1]: this shard's sum of terms divided by the divisor (layers/loss.h, Note [divisor]). A
// gradient operator takes the same inputs and returns d loss / d output; since the loss is the last
// node, there is no dy.
#pragma once

#include "graph/operators/support.h"

namespace dpt::operators {

inline std::vector<ValueId> loss_gradient(GraphBuilder& g, const GraphNode& n, std::string_view op,
                                          std::span<const ValueId> dy) {
  require(dy[0] == kNoValue, "a loss is the last node: nothing can stand behind it");
  std::vector<ValueId> out(n.in.size(), kNoValue);
  out[0] = g.apply(op, n.in, n.attrs);
  return out;
}

// The result of a loss, which is summed over shards.
inline std::vector<TensorDesc> one_double() { return {{DType::f64, {1}}}; }

inline void need_divisor(const TensorDesc& output, const TensorDesc& divisor) {
  require(divisor.shape == Shape{1} && divisor.dtype == output.dtype, "a loss takes a divisor [1]");
}

// Targets must have the output's shape and dtype; weights must fit the output's last dimensions.
inline void need_pointwise(std::string_view op, std::span<const TensorDesc> in) {
  const TensorDesc &x = in[0], &t = in[1];
  need_real(op, x);
  if (t != x)
    fail(Fault::spec, "{}: output {} needs targets {}, not {}{}", op, str(x), str(x), str(t),
         t.dtype == DType::i32
             ? "; class numbers become such targets by target_transforms: [one_hot]"
             : "");
  need_divisor(x, in[2]);
  for (const TensorDesc& w : in.subspan(3)) {
    const int from = x.shape.rank() - w.shape.rank();
    if (w.shape != Shape{1} && (from < 1 || x.shape.tail(from) != w.shape))
      fail(Fault::spec, "{}: weights {} do not fit the last extents of output {}", op, str(w),
           str(x));
  }
}

// Element i of a weight that is broadcast over the leading dimensions; 1 if there is no weight.
inline double weight_at(const TensorView* w, size_t i) {
  if (w == nullptr) return 1;
  const size_t n = static_cast<size_t>(w->desc.shape.elements());
  return w->desc.dtype == DType::f64 ? w->as<const double>()[i % n]
                                     : static_cast<double>(w->as<const float>()[i % n]);
}

inline const TensorView* input_or_none(const KernelArgs& args, size_t i) {
  return i < args.in.size() ? &args.in[i] : nullptr;
}

// Calls f(x, t, i) for each element and returns the divisor.
template <class F>
double for_each_term(const KernelArgs& args, F f) {
  double divisor = 1;
  with_type_of(args.in[0], [&]<class T>(T) {
    const auto x = args.in[0].as<const T>(), t = args.in[1].as<const T>();
    divisor = static_cast<double>(args.in[2].as<const T>()[0]);
    for (size_t i = 0; i < x.size(); ++i)
      f(static_cast<double>(x[i]), static_cast<double>(t[i]), i);
  });
  return divisor;
}

template <class F>
void sum_terms(const KernelArgs& args, F term) {
  double sum = 0;
  const double divisor =
      for_each_term(args, [&](double x, double t, size_t i) { sum += term(x, t, i); });
  args.out[0].as<double>()[0] = sum / divisor;
}

template <class F>
void map_slopes(const KernelArgs& args, F slope) {
  with_type_of(args.in[0], [&]<class T>(T) {
    const double divisor = static_cast<double>(args.in[2].as<const T>()[0]);
    const auto dx = args.out[0].as<T>();
    for_each_term(args, [&](double x, double t, size_t i) {
      dx[i] = static_cast<T>(slope(x, t, i) / divisor);
    });
  });
}

// Samples of an element-wise loss, with outputs in range x and targets in range t. `weights`: how
// many constants follow the divisor.
inline std::vector<Sample> pointwise_samples(std::string_view op, bool gradient, std::any attrs,
                                             Sample::Range x, Sample::Range t, int weights = 0) {
  std::vector<Sample> out;
  for (const Shape& s : {Shape{3, 5}, Shape{4, 1}, Shape{2, 3, 17}}) {
    std::vector<TensorDesc> in = {f32(s), f32(s), f32({1})};
    std::vector<Sample::Range> ranges = {x, t, {1, 8}};
    for (int i = 0; i < weights; ++i) {
      in.push_back(f32({s.back()}));
      ranges.push_back({0, 2});
    }
    const TensorDesc result = gradient ? f32(s) : TensorDesc{DType::f64, {1}};
    out.push_back({{op, std::move(in), {result}, attrs}, std::move(ranges)});
  }
  return out;
}

inline std::vector<Sample> both(std::vector<Sample> a, std::vector<Sample> b) {
  for (Sample& s : b) a.push_back(std::move(s));
  return a;
}

}  // namespace dpt::operators
