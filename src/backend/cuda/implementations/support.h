// Helpers for the files of this folder that list implementations.
#pragma once

#include <functional>
#include <string>
#include <type_traits>
#include <utility>

#include <fmt/format.h>

#include "backend/cpu/support.h"
#include "backend/cuda/interface/context.h"
#include "backend/cuda/interface/launch.h"
#include "backend/cuda/kernels/images.h"
#include "backend/cuda/kernels/number.h"
#include "backend/cuda/kernels/pointwise.h"
#include "backend/cuda/kernels/sums.h"
#include "base/half.h"
#include "graph/operator.h"
#include "graph/windows.h"

namespace dpt::cuda {

template <class T>
T* at(const TensorView& v) {
  return reinterpret_cast<T*>(v.data);
}
template <class T>
T* at_or_null(std::span<const TensorView> all, size_t i) {
  return i < all.size() ? at<T>(all[i]) : nullptr;
}

inline int64_t count(const TensorDesc& d) { return d.shape.elements(); }

// Calls f with a value of the type in which numbers of this type are stored.
template <class F>
decltype(auto) with_number(DType t, F&& f) {
  if (t == DType::bf16) return f(Bf16{});
  if (t == DType::f16) return f(F16{});
  return f(float{});
}

// Why f32 kernels refuse this query; empty: they accept it.
inline std::string not_f32(const KernelQuery& q) {
  for (const auto* side : {&q.in, &q.out})
    for (const TensorDesc& d : *side)
      if (is_half(d.dtype)) return fmt::format("it takes f32, not {}", name_of(d.dtype));
  return "";
}

// Why kernels for values of a single type refuse this query; empty: they accept it.
inline std::string not_one_type(const KernelQuery& q) {
  const auto number = [](const TensorDesc& d) { return d.dtype == DType::f32 || is_half(d.dtype); };
  const TensorDesc* first = nullptr;
  for (const auto* side : {&q.in, &q.out})
    for (const TensorDesc& d : *side) {
      if (!number(d)) continue;
      if (first && first->dtype != d.dtype)
        return fmt::format("it takes one type, not {} and {}", name_of(first->dtype),
                           name_of(d.dtype));
      first = &d;
    }
  return "";
}

// A kernel that calls f(args, context) with the context that is current now. f enqueues on its
// stream.
template <class F>
std::unique_ptr<Kernel> enqueue(F f) {
  return call([f = std::move(f), &context = DeviceContext::current()](const KernelArgs& a) {
    f(a, context);
  });
}

inline KernelType own(std::string_view op, std::string (*refuses)(const KernelQuery&),
                      std::unique_ptr<Kernel> (*prepare)(const KernelQuery&)) {
  return {.op = op, .name = "own", .refuses = refuses, .prepare = prepare};
}

// [N, C, ...] as [N, C, H, W]: other ranks than 4 have height 1, and all dimensions behind the
// channels are the width.
inline Shape with_height(const Shape& s) {
  return s.rank() == 4 ? s : Shape{s[0], s[1], 1, s.rank() > 2 ? s.tail(2).elements() : 1};
}

// An image as cuDNN convolves and pools it: [N, C, H, W], where sequences have height 1, or [N, C,
// D, H, W].
inline Shape dnn_image(const Shape& s) { return s.rank() == 5 ? s : with_height(s); }

// Applies relu to the first result, in place.
using AfterKernel = std::function<void(const KernelArgs&, DeviceContext&)>;
inline AfterKernel clip_result(const KernelQuery& q) {
  return with_number(q.out[0].dtype, [&]<class T>(T) -> AfterKernel {
    return [n = count(q.out[0])](const KernelArgs& a, DeviceContext& c) {
      launch(c.stream, Map<Relu, T>{{}, at<T>(a.out[0]), at<T>(a.out[0])}, n);
    };
  });
}

inline ImageShape image_of(const TensorDesc& d) {
  const Shape& s = d.shape;
  const int64_t c = s.rank() > 1 ? s[1] : 1;
  const auto [depth, height, width] = extents_of(s);
  const auto step = strides_of(Shape{s[0], c, depth, height, width}, d.layout);
  return {.n = s[0],
          .c = c,
          .d = depth,
          .h = height,
          .w = width,
          .step_n = step[0],
          .step_c = step[1],
          .step_d = step[2],
          .step_h = step[3],
          .step_w = step[4]};
}

// The image that an operator reads and the one that it makes; for a gradient, those of the
// operator.
inline const TensorDesc& image_in(const KernelQuery& q) {
  return is_gradient(q) ? q.out[0] : q.in[0];
}
inline const TensorDesc& image_out(const KernelQuery& q) {
  return is_gradient(q) ? q.in[0] : q.out[0];
}

// The channels as columns of a matrix.
inline Rows channels_of(const TensorDesc& d) {
  const Shape& s = d.shape;
  const bool together = s.rank() < 3 || same_order(s, d.layout, Layout::channels_last);
  return {.columns = s[1], .inner = together ? 1 : s.tail(2).elements(), .elements = s.elements()};
}

// How the rows of a sum by column are divided into chunks, each summed by one block per 32 columns.
struct ColumnPlan {
  int64_t rows, columns, chunk_rows;
  ColumnPlan(int64_t all_rows, int64_t all_columns) : rows(all_rows), columns(all_columns) {
    // Enough blocks for a GPU; rows that are worth a block.
    constexpr int64_t kBlocks = 512, kLeast = 64;
    const int64_t across = std::max<int64_t>(1, (columns + 31) / 32);
    const int64_t chunks = std::max<int64_t>(1, std::min(kBlocks / across, rows / kLeast));
    chunk_rows = std::max<int64_t>(1, (rows + chunks - 1) / chunks);
  }
  int64_t chunks() const { return (rows + chunk_rows - 1) / chunk_rows; }
  size_t bytes(int terms) const {
    return sizeof(double) * static_cast<size_t>(chunks() * terms * columns);
  }
};

// Enqueues the sum of `term` over all rows: out[k] [columns] for term k. If elements >= 0, it is
// written behind the last sum. REQUIRES: p.bytes(kTerms) of workspace are reserved.
template <class Term, class To, size_t kTerms>
void sum_columns(DeviceContext& c, const ColumnPlan& p, const Term& term, To* const (&out)[kTerms],
                 double elements = -1) {
  static_assert(kTerms == Term::kTerms);
  auto* partial = reinterpret_cast<double*>(c.workspace);
  ColumnSums<Term> sums{term, partial, {}, p.rows, p.columns, p.chunk_rows};
  const int64_t chunks = sums.chunks();
  if constexpr (std::is_same_v<To, float>)
    if (chunks == 1 && elements < 0) std::copy_n(out, kTerms, sums.out);
  launch(c.stream, sums, chunks * sums.across());
  if (sums.out[0]) return;
  SumChunks<To, static_cast<int>(kTerms)> all{partial,       {},      chunks, p.columns,
                                              elements >= 0, elements};
  std::copy_n(out, kTerms, all.out);
  launch(c.stream, all, std::max<int64_t>(p.columns, 1));
}

}  // namespace dpt::cuda
