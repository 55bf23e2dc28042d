// Helpers for the operators of this folder: attributes, shape checks, loops and samples.
#pragma once

#include <any>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/fail.h"
#include "base/half.h"
#include "graph/attrs.h"
#include "graph/builder.h"

namespace dpt::operators {

// An operator's attributes, or the defaults if none were given.
template <class A>
const A& settings(const std::any& attrs) {
  static const A defaults{};
  return attrs.has_value() ? std::any_cast<const A&>(attrs) : defaults;
}

inline std::string str(const TensorDesc& d) {
  return fmt::format("{}{}", name_of(d.dtype), d.shape.str());
}

inline bool is_real(DType t) { return t == DType::f32 || t == DType::f64 || is_half(t); }

// The dtype of results that must not be rounded to a half: statistics, and gradients of weights,
// which are sums over many samples.
inline DType full(DType t) { return is_half(t) ? DType::f32 : t; }

// Throws Error{spec} if the dtype of x is not floating point, such as an embedding's indices.
inline void need_real(std::string_view op, const TensorDesc& x) {
  if (!is_real(x.dtype))
    fail(Fault::spec, "{}: the input must be real numbers, not {}", op, str(x));
}

// The extent of one dimension, and the number of elements of the dimensions before and after it.
struct Along {
  int64_t outer, extent, inner;
};
inline Along along(const Shape& s, int dim) {
  Along a{.outer = 1, .extent = s[dim], .inner = 1};
  for (int i = 0; i < dim; ++i) a.outer *= s[i];
  for (int i = dim + 1; i < s.rank(); ++i) a.inner *= s[i];
  return a;
}

inline void need_dim(std::string_view op, const TensorDesc& x, int dim) {
  if (dim < 1 || dim >= x.shape.rank())
    fail(Fault::spec, "{}: {} has no dimension {} behind that of the samples", op, x.shape.str(),
         dim);
}

// Calls f with a value of the C++ type of v, which is float or double.
template <class F>
void with_type_of(const TensorView& v, F f) {
  with_real(v.desc.dtype, [&](auto* null) { f(std::remove_pointer_t<decltype(null)>{}); });
}

// Input i, or nothing if there are fewer inputs.
template <class T>
std::span<const T> optional_input(const KernelArgs& args, size_t i) {
  return args.in.size() > i ? args.in[i].as<const T>() : std::span<const T>{};
}

// y[i] = f(a[i]) or f(a[i], b[i]), computed in double.
template <class F>
void map(const KernelArgs& args, F f) {
  with_type_of(args.in[0], [&]<class T>(T) {
    const auto a = args.in[0].as<const T>();
    const auto y = args.out[0].as<T>();
    if constexpr (std::is_invocable_v<F, double, double>) {
      const auto b = args.in[1].as<const T>();
      for (size_t i = 0; i < y.size(); ++i)
        y[i] = static_cast<T>(f(static_cast<double>(a[i]), static_cast<double>(b[i])));
    } else {
      for (size_t i = 0; i < y.size(); ++i) y[i] = static_cast<T>(f(static_cast<double>(a[i])));
    }
  });
}

// Set an operator's layouts and the index of its weight.
inline OperatorType in_any_layout(OperatorType t) {
  t.layouts = Layouts::any;
  return t;
}
inline OperatorType with_weight(OperatorType t, int weight) {
  t.weight = weight;
  return t;
}
inline OperatorType on_images(OperatorType t, int weight = -1) {
  t.layouts = Layouts::images;
  return with_weight(t, weight);
}

inline OperatorType selecting(OperatorType t) {
  t.selects = true;
  return t;
}

inline TensorDesc f32(Shape s) { return {DType::f32, s}; }
inline TensorDesc i32(Shape s) { return {DType::i32, s}; }

// Shape rule of activations, which take one floating-point tensor, and of their gradients, which
// take two of the same shape.
inline std::vector<TensorDesc> same_as_first(std::string_view op, std::span<const TensorDesc> in) {
  need_real(op, in[0]);
  for (const TensorDesc& d : in)
    require(d == in[0], "operands of an element-wise operator have one shape");
  return {in[0]};
}

inline std::vector<Sample> elementwise_samples(std::string_view op, size_t inputs,
                                               std::any attrs = {}, Sample::Range range = {-4, 4},
                                               const std::vector<double>& kinks = {}) {
  std::vector<Sample> out;
  for (const Shape& s : {Shape{3, 5}, Shape{1, 33}, Shape{2, 3, 7}}) {
    std::vector<Sample::Range> ranges(inputs, Sample::Range{});
    ranges[0] = range;
    out.push_back({.query = {op, std::vector(inputs, f32(s)), {f32(s)}, attrs},
                   .ranges = ranges,
                   .kinks = kinks});
  }
  return out;
}

inline double elements_of_first_input(std::span<const TensorDesc> in, std::span<const TensorDesc>) {
  return static_cast<double>(in[0].shape.elements());
}

}  // namespace dpt::operators
