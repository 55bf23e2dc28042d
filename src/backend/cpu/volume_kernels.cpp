// The CPU implementations of the operators that turn volumes into images and back, in
// channels_last.
#include <algorithm>
#include <cstring>
#include <vector>

#include "backend/cpu/kernels.h"
#include "backend/cpu/support.h"
#include "base/half.h"
#include "graph/attrs.h"
#include "graph/windows.h"

namespace dpt {
namespace {

// Volumes x[N, D, P, C] and their images y[N D', P, C K], with P pixels in a plane.
struct Planes {
  int64_t samples, depth, pixels, channels, kernel, positions;
  Window window;

  Planes(const Shape& volume, const Shape& images, const Window& w)
      : samples(volume[0]),
        depth(volume[2]),
        pixels(volume.tail(3).elements()),
        channels(volume[1]),
        kernel(w.kernel[0]),
        positions(volume[0] > 0 ? images[0] / volume[0] : 0),
        window(w) {}

  int64_t plane(int64_t sample, int64_t depth_index) const {  // offset in x
    return (sample * depth + depth_index) * pixels * channels;
  }
  int64_t image(int64_t sample, int64_t position) const {  // offset in y
    return (sample * positions + position) * pixels * channels * kernel;
  }
  // The plane that tap k reads at a position; it may lie outside of the volume.
  int64_t source(int64_t position, int64_t k) const {
    return position * window.stride[0] - window.before[0] + k * window.dilation[0];
  }
  bool inside(int64_t plane) const { return plane >= 0 && plane < depth; }
  // Whether both have the same elements in the same order.
  bool same() const { return kernel == 1 && positions == depth && source(0, 0) == 0; }
};

std::string refuses_one(const TensorDesc& d) {
  return same_order(d.shape, d.layout, Layout::channels_last) ? "" : "it takes channels_last";
}

std::string refuses_unfold(const KernelQuery& q) {
  if (q.in[0].dtype != DType::f32 && !is_half(q.in[0].dtype))
    return fmt::format("it copies f32 and halves, not {}", name_of(q.in[0].dtype));
  const std::string reason = refuses_one(q.in[0]);
  return reason.empty() ? refuses_one(q.out[0]) : reason;
}

std::string refuses_fold(const KernelQuery& q) {
  for (const TensorDesc& d : q.in)
    if (std::string reason = not_f32(d); !reason.empty()) return reason;
  const std::string reason = refuses_one(q.in[0]);
  return reason.empty() ? refuses_one(q.out[0]) : reason;
}

// T: a type of the elements' size.
template <class T>
void unfold(const Planes& p, const T* x, T* y) {
  for (int64_t n = 0; n < p.samples; ++n)
    for (int64_t at = 0; at < p.positions; ++at)
      for (int64_t k = 0; k < p.kernel; ++k) {
        T* const to = y + p.image(n, at) + k;
        const int64_t elements = p.pixels * p.channels, plane = p.source(at, k);
        if (!p.inside(plane)) {
          for (int64_t i = 0; i < elements; ++i) to[i * p.kernel] = T{};
          continue;
        }
        const T* const from = x + p.plane(n, plane);
        for (int64_t i = 0; i < elements; ++i) to[i * p.kernel] = from[i];
      }
}

template <class T>
std::unique_ptr<Kernel> unfold_of(const Planes& p) {
  return call([p](const KernelArgs& a) {
    const T* const x = reinterpret_cast<const T*>(a.in[0].data);
    T* const y = reinterpret_cast<T*>(a.out[0].data);
    if (p.same())
      std::memcpy(y, x, a.in[0].desc.bytes());
    else
      unfold(p, x, y);
  });
}

std::unique_ptr<Kernel> prepare_unfold(const KernelQuery& q) {
  const Planes p(q.in[0].shape, q.out[0].shape, settings<DepthWindow>(q).window);
  if (is_half(q.in[0].dtype)) return unfold_of<uint16_t>(p);
  return unfold_of<float>(p);
}

// The bias in every pixel of sample n, or 0 without a bias.
void fill_with_bias(const Planes& p, int64_t n, const float* bias, float* x) {
  const int64_t pixels = p.depth * p.pixels;
  float* const to = x + p.plane(n, 0);
  if (!bias) {
    std::fill_n(to, pixels * p.channels, 0.0F);
    return;
  }
  for (int64_t i = 0; i < pixels; ++i) std::copy_n(bias, p.channels, to + i * p.channels);
}

// Adds the images of sample n, in the order of positions.
void add_images(const Planes& p, int64_t n, const float* y, float* x) {
  for (int64_t at = 0; at < p.positions; ++at)
    for (int64_t k = 0; k < p.kernel; ++k) {
      const int64_t plane = p.source(at, k), elements = p.pixels * p.channels;
      if (!p.inside(plane)) continue;
      float* const to = x + p.plane(n, plane);
      const float* const from = y + p.image(n, at) + k;
      for (int64_t i = 0; i < elements; ++i) to[i] += from[i * p.kernel];
    }
}

std::unique_ptr<Kernel> prepare_fold(const KernelQuery& q) {
  const Planes p(q.out[0].shape, q.in[0].shape, settings<DepthWindow>(q).window);
  return call([p](const KernelArgs& a) {
    const float* const y = data(a.in[0]);
    const float* const bias = a.in.size() > 1 ? data(a.in[1]) : nullptr;
    float* const x = data(a.out[0]);
    if (p.same() && !bias) {
      std::memcpy(x, y, a.in[0].desc.bytes());
      return;
    }
    for (int64_t n = 0; n < p.samples; ++n) {
      fill_with_bias(p, n, bias, x);
      add_images(p, n, y, x);
    }
  });
}

}  // namespace

std::vector<KernelType> volume_kernels() {
  return {{.op = "unfold_depth",
           .name = "channels_last",
           .refuses = refuses_unfold,
           .prepare = prepare_unfold,
           .by_sample = true},
          {.op = "fold_depth",
           .name = "channels_last",
           .refuses = refuses_fold,
           .prepare = prepare_fold,
           .by_sample = true}};
}

}  // namespace dpt
