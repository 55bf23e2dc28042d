// Helpers for the operators of this folder: attributes, shape checks and loops.
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
template <class A>
const A& settings(const A& attrs) = delete;  // they are the settings

// Functions of the attributes' own type, f(x, attributes) or f(attributes), or without attributes,
// f(x), as fields of OperatorType: `.infer = typed<infer>`.
template <auto f>
struct Typed;
template <class R, class X, class A, R (*f)(X, const A&)>
struct Typed<f> {
  static R call(X x, const std::any& attrs) { return f(x, settings<A>(attrs)); }
};
template <class A, class R, R (*f)(const A&)>
requires(!std::is_same_v<A, KernelArgs>) struct Typed<f> {
  static R call(const std::any& attrs) { return f(settings<A>(attrs)); }
};
template <class R, R (*f)(std::span<const TensorDesc>)>
struct Typed<f> {
  static R call(std::span<const TensorDesc> in, const std::any&) { return f(in); }
};
template <void (*f)(const KernelArgs&)>
struct Typed<f> {
  static void call(const KernelArgs& args, const std::any&) { f(args); }
};
template <auto f>
inline constexpr auto* typed = &Typed<f>::call;

// A file of this folder returns the operator that it describes, and those of its gradient.
using Operators = std::vector<OperatorType>;
inline void add(Operators& all, Operators more) { all.insert(all.end(), more.begin(), more.end()); }

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

// Calls f with a value of the C++ type of v, for which the reference implementations are compiled.
// REQUIRES: v is f32 or f64, or f only copies elements of 4 bytes.
template <class F>
void with_type_of(const TensorView& v, F f) {
  v.desc.dtype == DType::f64 ? f(double{}) : f(float{});
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

// Shape rule of activations, which take one floating-point tensor, and of their gradients, which
// take two of the same shape.
inline std::vector<TensorDesc> same_as_first(std::string_view op, std::span<const TensorDesc> in) {
  need_real(op, in[0]);
  for (const TensorDesc& d : in)
    require(d == in[0], "operands of an element-wise operator have one shape");
  return {in[0]};
}

inline double no_flops(std::span<const TensorDesc>, std::span<const TensorDesc>) { return 0; }

inline double elements_of_first_input(std::span<const TensorDesc> in, std::span<const TensorDesc>) {
  return static_cast<double>(in[0].shape.elements());
}

}  // namespace dpt::operators
