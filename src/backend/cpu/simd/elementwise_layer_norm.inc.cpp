// Layer norm and RMS norm over the columns of x [rows, columns], and their gradients.
#include "backend/cpu/simd/elementwise.h"
#include "backend/cpu/simd/lanes.h"

namespace dpt::DPT_ISA {
namespace {

void layer_norm(const float* x, const float* w, const float* b, float* y, float* mean, float* rstd,
                size_t rows, size_t columns, float eps) {
  const float n = static_cast<float>(columns);
  for (size_t r = 0; r < rows; ++r, x += columns, y += columns) {
    Lanes sum = zero();
    each_vector(
        columns, [&](size_t i, auto at) __attribute__((always_inline)) { sum += at.get(x + i); });
    mean[r] = sum_of(sum) / n;
    const Lanes m = all(mean[r]);
    Lanes squares = zero();
    each_vector(
        columns, [&](size_t i, auto at) __attribute__((always_inline)) {
          const Lanes d = at.get(x + i) - m;
          // Lanes behind the end would add (0 - mean)^2.
          squares += select(at.or_lowest(zero()) < Lanes(0), Lanes(0), d * d);
        });
    rstd[r] = 1 / __builtin_sqrtf(sum_of(squares) / n + eps);
    const Lanes s = all(rstd[r]);
    each_vector(
        columns, [&](size_t i, auto at) __attribute__((always_inline)) {
          const Lanes h = (at.get(x + i) - m) * s;
          const Lanes weighted = w == nullptr ? h : h * at.get(w + i);
          at.put(y + i, b == nullptr ? weighted : weighted + at.get(b + i));
        });
  }
}

// dx = rstd * (g - mean(g) - h * mean(g * h)) with g = dy * w and h the normalized x.
void layer_norm_input_gradient(const float* dy, const float* x, const float* mean,
                               const float* rstd, const float* w, float* dx, size_t rows,
                               size_t columns) {
  const float n = static_cast<float>(columns);
  for (size_t r = 0; r < rows; ++r, dy += columns, x += columns, dx += columns) {
    const Lanes m = all(mean[r]), s = all(rstd[r]);
    Lanes sum = zero(), along = zero();
    each_vector(
        columns, [&](size_t i, auto at) __attribute__((always_inline)) {
          const Lanes g = w == nullptr ? at.get(dy + i) : at.get(dy + i) * at.get(w + i);
          sum += g;
          along += g * ((at.get(x + i) - m) * s);
        });
    const Lanes mean_g = all(sum_of(sum) / n), mean_gh = all(sum_of(along) / n);
    each_vector(
        columns, [&](size_t i, auto at) __attribute__((always_inline)) {
          const Lanes g = w == nullptr ? at.get(dy + i) : at.get(dy + i) * at.get(w + i);
          at.put(dx + i, s * (g - mean_g - (at.get(x + i) - m) * s * mean_gh));
        });
  }
}

// Each vector of columns is summed down all rows.
void layer_norm_weight_gradient(const float* dy, const float* x, const float* mean,
                                const float* rstd, float* dw, float* db, size_t rows,
                                size_t columns) {
  each_vector(
      columns, [&](size_t i, auto at) __attribute__((always_inline)) {
        Lanes sum = zero(), along = zero();
        for (size_t r = 0; r < rows; ++r) {
          const Lanes d = at.get(dy + r * columns + i);
          sum += d;
          along += d * ((at.get(x + r * columns + i) - Lanes(all(mean[r]))) * Lanes(all(rstd[r])));
        }
        at.put(dw + i, along);
        at.put(db + i, sum);
      });
}

void rms_norm(const float* x, const float* w, float* y, float* rstd, size_t rows, size_t columns,
              float eps) {
  const float n = static_cast<float>(columns);
  for (size_t r = 0; r < rows; ++r, x += columns, y += columns) {
    Lanes squares = zero();
    each_vector(
        columns, [&](size_t i, auto at) __attribute__((always_inline)) {
          const Lanes v = at.get(x + i);
          squares += v * v;
        });
    rstd[r] = 1 / __builtin_sqrtf(sum_of(squares) / n + eps);
    const Lanes s = all(rstd[r]);
    each_vector(
        columns, [&](size_t i, auto at) __attribute__((always_inline)) {
          const Lanes h = at.get(x + i) * s;
          at.put(y + i, w == nullptr ? h : h * at.get(w + i));
        });
  }
}

// dx = rstd * (g - h * mean(g * h)) with g = dy * w and h the normalized x.
void rms_norm_input_gradient(const float* dy, const float* x, const float* rstd, const float* w,
                             float* dx, size_t rows, size_t columns) {
  const float n = static_cast<float>(columns);
  for (size_t r = 0; r < rows; ++r, dy += columns, x += columns, dx += columns) {
    const Lanes s = all(rstd[r]);
    Lanes along = zero();
    each_vector(
        columns, [&](size_t i, auto at) __attribute__((always_inline)) {
          const Lanes g = w == nullptr ? at.get(dy + i) : at.get(dy + i) * at.get(w + i);
          along += g * (at.get(x + i) * s);
        });
    const Lanes mean_gh = all(sum_of(along) / n);
    each_vector(
        columns, [&](size_t i, auto at) __attribute__((always_inline)) {
          const Lanes g = w == nullptr ? at.get(dy + i) : at.get(dy + i) * at.get(w + i);
          at.put(dx + i, s * (g - at.get(x + i) * s * mean_gh));
        });
  }
}

void rms_norm_weight_gradient(const float* dy, const float* x, const float* rstd, float* dw,
                              size_t rows, size_t columns) {
  each_vector(
      columns, [&](size_t i, auto at) __attribute__((always_inline)) {
        Lanes along = zero();
        for (size_t r = 0; r < rows; ++r)
          along +=
              at.get(dy + r * columns + i) * (at.get(x + r * columns + i) * Lanes(all(rstd[r])));
        at.put(dw + i, along);
      });
}

}  // namespace

void add_layer_norm(ElementwiseKernels& kernels) {
  kernels.layer_norm = layer_norm;
  kernels.layer_norm_input_gradient = layer_norm_input_gradient;
  kernels.layer_norm_weight_gradient = layer_norm_weight_gradient;
  kernels.rms_norm = rms_norm;
  kernels.rms_norm_input_gradient = rms_norm_input_gradient;
  kernels.rms_norm_weight_gradient = rms_norm_weight_gradient;
}

}  // namespace dpt::DPT_ISA
