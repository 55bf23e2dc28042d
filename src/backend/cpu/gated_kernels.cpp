// The CPU implementations of element-wise products and gated linear units.
#include "backend/cpu/kernels.h"
#include "backend/cpu/simd/elementwise.h"
#include "backend/cpu/support.h"
#include "graph/attrs.h"

namespace dpt {
namespace {

const ElementwiseKernels& gated_simd() {
  static const ElementwiseKernels& kernels = elementwise_simd(simd_kernels().isa);
  return kernels;
}

std::string refuses_gated(const KernelQuery& q) {
  for (const TensorDesc& d : q.in)
    if (std::string reason = not_f32(d); !reason.empty()) return reason;
  return "";
}

std::unique_ptr<Kernel> prepare_multiply(const KernelQuery& q) {
  return call([n = elements(q.out[0])](const KernelArgs& a) {
    gated_simd().multiply(data(a.in[0]), data(a.in[1]), data(a.out[0]), n);
  });
}

// glu: along the halved dimension, `outer` pairs of `half` adjacent elements.
struct Halves {
  size_t outer = 1, half = 1;
  Halves(const Shape& y, int dim) {
    for (int i = 0; i < y.rank(); ++i) (i < dim ? outer : half) *= static_cast<size_t>(y[i]);
  }
};

std::unique_ptr<Kernel> prepare_glu(const KernelQuery& q) {
  const Halves s(q.out[0].shape, settings<Glu>(q).dim);
  return call([=](const KernelArgs& a) {
    const auto sigmoid = gated_simd().activation[formula::kIndexOf<formula::Sigmoid>];
    const float* x = data(a.in[0]);
    float* y = data(a.out[0]);
    const float none[2] = {};
    for (size_t o = 0; o < s.outer; ++o, x += 2 * s.half, y += s.half) {
      sigmoid(x + s.half, y, s.half, none);
      gated_simd().multiply(x, y, y, s.half);
    }
  });
}

std::unique_ptr<Kernel> prepare_glu_gradient(const KernelQuery& q) {
  const Halves s(q.in[0].shape, settings<Glu>(q).dim);
  return call([=](const KernelArgs& a) {
    constexpr int kSigmoid = formula::kIndexOf<formula::Sigmoid>;
    const float *dy = data(a.in[0]), *x = data(a.in[1]);
    float* dx = data(a.out[0]);
    const float none[2] = {};
    for (size_t o = 0; o < s.outer; ++o, dy += s.half, x += 2 * s.half, dx += 2 * s.half) {
      float* const gate = dx + s.half;
      gated_simd().activation[kSigmoid](x + s.half, dx, s.half, none);
      gated_simd().multiply(dy, x, gate, s.half);
      gated_simd().activation_gradient[kSigmoid](dx, gate, gate, s.half, none);
      gated_simd().multiply(dx, dy, dx, s.half);
    }
  });
}

}  // namespace

std::vector<KernelType> gated_kernels() {
  return {simd_row("multiply", refuses_gated, prepare_multiply),
          simd_row("glu", refuses_gated, prepare_glu),
          simd_row("glu_gradient", refuses_gated, prepare_glu_gradient)};
}

}  // namespace dpt
