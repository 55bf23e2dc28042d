// The CPU implementations of pooling, channel sums and layout changes of images in channels_last.
#include <algorithm>
#include <cstring>
#include <functional>
#include <vector>

#include <fmt/format.h>

#include "backend/cpu/half_kernels.h"
#include "backend/cpu/kernels.h"
#include "backend/cpu/scratch.h"
#include "backend/cpu/simd/images.h"
#include "backend/cpu/support.h"
#include "base/half.h"
#include "graph/operator.h"
#include "graph/windows.h"

namespace dpt {
namespace {

const ImageKernels& simd() {
  static const ImageKernels& kernels = image_simd(simd_kernels().isa);
  return kernels;
}

std::string refuses_halves(const KernelQuery& q) { return not_images(q, DType::f32); }

// Whether some window lies wholly in the padding, as one with a large dilation may.
bool has_empty_window(const Pool& s, const Extents& in, const Extents& out) {
  for (size_t i = 0; i < 3; ++i)
    for (int64_t place = 0; place < out[i]; ++place)
      if (inside(s.window, i, place, in[i]).elements() == 0) return true;
  return false;
}

std::string refuses_max(const KernelQuery& q) {
  const auto [x, y] = forward_shapes(q);
  if (has_empty_window(std::any_cast<const Pool&>(q.attrs), extents_of(x), extents_of(y)))
    return "a window has no element";
  return not_images(q, q.in[0].dtype == DType::bf16 ? DType::bf16 : DType::f32);
}

// Where the windows of a pooling operator lie in x, and the divisors of their sums.
struct Positions {
  size_t c, rows, columns;  // see PoolArgs
  size_t x_size, y_size;    // elements of one sample
  std::vector<size_t> row{}, begin{0};
  std::vector<int32_t> first{}, last{};
  int32_t step = 1;
  std::vector<float> divisors{};

  PoolArgs args() const {
    return {.c = c,
            .rows = rows,
            .columns = columns,
            .row = row.data(),
            .begin = begin.data(),
            .first = first.data(),
            .last = last.data(),
            .step = step,
            .divisor = divisors.data()};
  }
};

// box_of(position in y): the window's box in x, in which it takes elements in steps of `step`.
// divisor(position in y): of the sum.
template <class BoxOf, class Divisor>
Positions positions(const Shape& x, const Shape& y, const Extents& step, BoxOf box_of,
                    Divisor divisor) {
  const Extents in = extents_of(x), out = extents_of(y);
  Positions p{.c = static_cast<size_t>(x[1]),
              .rows = static_cast<size_t>(out[0] * out[1]),
              .columns = static_cast<size_t>(out[2]),
              .x_size = static_cast<size_t>(x.tail(1).elements()),
              .y_size = static_cast<size_t>(y.tail(1).elements()),
              .step = static_cast<int32_t>(step[2])};
  for (int64_t d = 0; d < out[0]; ++d)
    for (int64_t h = 0; h < out[1]; ++h) {
      Box rows = box_of({d, h, 0});
      rows[2] = {0, 1};
      each_position(rows, step, [&](const Extents& at) {
        p.row.push_back(static_cast<size_t>((at[0] * in[1] + at[1]) * in[2]));
      });
      p.begin.push_back(p.row.size());
      for (int64_t w = 0; w < out[2]; ++w)
        p.divisors.push_back(static_cast<float>(divisor({d, h, w})));
    }
  for (int64_t w = 0; w < out[2]; ++w) {
    const Span1 columns = box_of({0, 0, w})[2];
    p.first.push_back(static_cast<int32_t>(columns.first));
    p.last.push_back(static_cast<int32_t>(columns.last));
  }
  return p;
}

Positions windows(const Shape& x, const Shape& y, const Pool& s) {
  const Extents in = extents_of(x);
  return positions(
      x, y, s.window.dilation, [&](const Extents& at) { return inside(s.window, at, in); },
      [&](const Extents& at) { return divisor_of(s, at, in); });
}

Positions pieces(const Shape& x, const Shape& y) {
  const Extents in = extents_of(x), out = extents_of(y);
  const auto box_of = [&](const Extents& at) { return piece(at, in, out); };
  return positions(x, y, {1, 1, 1}, box_of,
                   [&](const Extents& at) { return elements_of(box_of(at)); });
}

// Calls a function for each sample.
class EachSample : public Kernel {
 public:
  using Run = std::function<void(const KernelArgs& args, int64_t sample)>;
  EachSample(int64_t samples, Run run) : samples_(samples), run_(std::move(run)) {}
  void run(const KernelArgs& args) override {
    for (int64_t n = 0; n < samples_; ++n) run_(args, n);
  }

 private:
  int64_t samples_;
  Run run_;
};

EachSample::Run max_pool_of_bf16(const Positions& p, bool gradient) {
  if (!gradient)
    return [p](const KernelArgs& a, int64_t n) {
      const auto i = static_cast<size_t>(n);
      simd().max_pool_bf16(a.in[0].as<const uint16_t>().data() + i * p.x_size,
                           a.out[0].as<uint16_t>().data() + i * p.y_size,
                           a.out[1].as<int32_t>().data() + i * p.y_size, p.args());
    };
  const size_t bytes = p.x_size * sizeof(float);
  scratch(bytes);
  return [p, bytes](const KernelArgs& a, int64_t n) {
    const auto i = static_cast<size_t>(n);
    auto* const sums = reinterpret_cast<float*>(scratch(bytes));
    std::fill_n(sums, p.x_size, 0.0F);
    simd().max_pool_gradient_bf16(a.in[0].as<const uint16_t>().data() + i * p.y_size,
                                  a.in[1].as<const int32_t>().data() + i * p.y_size, sums,
                                  p.args());
    to_halves(DType::bf16, sums, a.out[0].as<uint16_t>().data() + i * p.x_size, p.x_size);
  };
}

std::unique_ptr<Kernel> prepare_pool(const KernelQuery& q) {
  // Only max pools have indices, and only adaptive pools no windows.
  const bool gradient = is_gradient(q), largest = (gradient ? q.in : q.out).size() > 1;
  const auto [x, y] = forward_shapes(q);
  const auto* const pool = std::any_cast<Pool>(&q.attrs);
  const Positions p = pool != nullptr ? windows(x, y, *pool) : pieces(x, y);
  EachSample::Run run;
  if (q.in[0].dtype == DType::bf16)
    run = max_pool_of_bf16(p, gradient);
  else if (largest && !gradient)
    run = [p](const KernelArgs& a, int64_t n) {
      const auto i = static_cast<size_t>(n);
      simd().max_pool(data(a.in[0]) + i * p.x_size, data(a.out[0]) + i * p.y_size,
                      a.out[1].as<int32_t>().data() + i * p.y_size, p.args());
    };
  else if (largest)
    run = [p](const KernelArgs& a, int64_t n) {
      const auto i = static_cast<size_t>(n);
      float* dx = data(a.out[0]) + i * p.x_size;
      std::fill_n(dx, p.x_size, 0.0F);
      simd().max_pool_gradient(data(a.in[0]) + i * p.y_size,
                               a.in[1].as<const int32_t>().data() + i * p.y_size, dx, p.args());
    };
  else if (!gradient)
    run = [p](const KernelArgs& a, int64_t n) {
      const auto i = static_cast<size_t>(n);
      simd().mean_pool(data(a.in[0]) + i * p.x_size, data(a.out[0]) + i * p.y_size, p.args());
    };
  else
    run = [p](const KernelArgs& a, int64_t n) {
      const auto i = static_cast<size_t>(n);
      float* dx = data(a.out[0]) + i * p.x_size;
      std::fill_n(dx, p.x_size, 0.0F);
      simd().mean_pool_gradient(data(a.in[0]) + i * p.y_size, dx, p.args());
    };
  return std::make_unique<EachSample>(x[0], std::move(run));
}

std::string refuses_sum(const KernelQuery& q) {
  return not_rows_of_channels(q.in[0], q.in[0].dtype == DType::bf16 ? DType::bf16 : DType::f32);
}

std::unique_ptr<Kernel> prepare_sum(const KernelQuery& q) {
  const auto c = static_cast<size_t>(q.in[0].shape[1]);
  const size_t rows = elements(q.in[0]) / std::max<size_t>(1, c);
  if (q.in[0].dtype == DType::bf16)
    return std::make_unique<EachSample>(1, [=](const KernelArgs& a, int64_t) {
      simd().sum_channels_bf16(a.in[0].as<const uint16_t>().data(), data(a.out[0]), rows, c);
    });
  return std::make_unique<EachSample>(1, [=](const KernelArgs& a, int64_t) {
    simd_kernels().sum_rows(data(a.in[0]), data(a.out[0]), rows, c);
  });
}

std::string refuses_reorder(const KernelQuery& q) {
  if (q.in[0].dtype != DType::f32 && !is_half(q.in[0].dtype))
    return fmt::format("it copies f32 and halves, not {}", name_of(q.in[0].dtype));
  if (q.in[0].layout == Layout::transposed || q.out[0].layout == Layout::transposed)
    return "it moves images only";
  return "";
}

std::unique_ptr<Kernel> prepare_reorder(const KernelQuery& q) {
  const Shape& s = q.in[0].shape;
  auto rows = static_cast<size_t>(s[1]), columns = static_cast<size_t>(s.tail(2).elements());
  if (q.in[0].layout == Layout::channels_last) std::swap(rows, columns);
  if (is_half(q.in[0].dtype))
    return std::make_unique<EachSample>(s[0], [=](const KernelArgs& a, int64_t n) {
      const size_t at = static_cast<size_t>(n) * rows * columns;
      simd().transpose_halves(a.in[0].as<const uint16_t>().data() + at,
                              a.out[0].as<uint16_t>().data() + at, rows, columns);
    });
  return std::make_unique<EachSample>(s[0], [=](const KernelArgs& a, int64_t n) {
    const size_t at = static_cast<size_t>(n) * rows * columns;
    simd().transpose(data(a.in[0]) + at, data(a.out[0]) + at, rows, columns);
  });
}

}  // namespace

std::vector<KernelType> image_kernels() {
  return {simd_row("max_pool", refuses_max, prepare_pool),
          simd_row("max_pool_gradient", refuses_max, prepare_pool),
          simd_row("avg_pool", refuses_halves, prepare_pool),
          simd_row("avg_pool_gradient", refuses_halves, prepare_pool),
          simd_row("adaptive_avg_pool", refuses_halves, prepare_pool),
          simd_row("adaptive_avg_pool_gradient", refuses_halves, prepare_pool),
          simd_row("adaptive_max_pool", refuses_halves, prepare_pool),
          simd_row("adaptive_max_pool_gradient", refuses_halves, prepare_pool),
          simd_row("sum_channels", refuses_sum, prepare_sum),
          simd_row("reorder", refuses_reorder, prepare_reorder)};
}

}  // namespace dpt
