// Helpers for the files of this folder that list kernel implementations.
#pragma once

#include <any>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "backend/cpu/simd/halves.h"
#include "graph/kernel.h"
#include "graph/operator.h"

namespace dpt {

inline float* data(const TensorView& v) { return reinterpret_cast<float*>(v.data); }
// Input i, or null if there are fewer inputs.
inline float* data_or_null(const KernelArgs& a, size_t i) {
  return i < a.in.size() ? data(a.in[i]) : nullptr;
}
inline size_t elements(const TensorDesc& d) { return static_cast<size_t>(d.shape.elements()); }

// An operator's settings, or their defaults if the query has none.
template <class A>
A settings(const KernelQuery& q) {
  return q.attrs.has_value() ? std::any_cast<const A&>(q.attrs) : A{};
}

inline RoundTo round_to(DType half) {
  return half == DType::bf16 ? RoundTo::bf16 : half == DType::f16 ? RoundTo::f16 : RoundTo::f32;
}

// Why kernels of this type refuse this tensor; empty: they accept it.
inline std::string not_of_type(const TensorDesc& d, DType type) {
  return d.dtype == type
             ? ""
             : fmt::format("it computes in {}, not {}", name_of(type), name_of(d.dtype));
}
inline std::string not_f32(const TensorDesc& d) { return not_of_type(d, DType::f32); }

// Why kernels on rows of channels refuse this tensor; empty: they accept it. [N, C] is always
// accepted.
inline std::string not_rows_of_channels(const TensorDesc& d, DType type = DType::f32) {
  if (d.shape.rank() > 2 && !same_order(d.shape, d.layout, Layout::channels_last))
    return "it takes images channels_last";
  return not_of_type(d, type);
}

// Why kernels on images refuse these tensors, whose indices are i32; empty: they accept them.
inline std::string not_images(const KernelQuery& q, DType type) {
  for (const auto* side : {&q.in, &q.out})
    for (const TensorDesc& d : *side) {
      if (d.dtype != DType::i32)
        if (std::string reason = not_of_type(d, type); !reason.empty()) return reason;
      if (!same_order(d.shape, d.layout, Layout::channels_last))
        return "it takes images channels_last";
      if (d.shape.elements() == 0) return "it takes no empty tensors";
    }
  return "";
}

inline bool is_gradient(const KernelQuery& q) { return op(q.op).is(Trait::backward); }

// The shapes of x and y of an operator y = f(x), also for its gradient, from dy to dx.
struct ForwardShapes {
  const Shape &x, &y;
};
inline ForwardShapes forward_shapes(const KernelQuery& q) {
  const Shape &in = q.in[0].shape, &out = q.out[0].shape;
  return is_gradient(q) ? ForwardShapes{out, in} : ForwardShapes{in, out};
}

// A kernel that consists of one callable.
template <class F>
class Call : public Kernel {
 public:
  explicit Call(F f) : f_(std::move(f)) {}
  void run(const KernelArgs& args) override { f_(args); }

 private:
  F f_;
};

template <class F>
std::unique_ptr<Kernel> call(F f) {
  return std::make_unique<Call<F>>(std::move(f));
}

}  // namespace dpt
