// The CPU implementations of softmax, log_softmax and cross entropy.
#include <algorithm>

#include "backend/cpu/kernels.h"
#include "backend/cpu/simd/elementwise.h"
#include "backend/cpu/support.h"
#include "base/fail.h"
#include "graph/attrs.h"

namespace dpt {
namespace {

// The positions along whose classes a kernel goes: `groups` matrices, which are [positions,
// classes], or [classes, positions] unless the classes are the last dimension.
struct Positions {
  size_t groups = 1, positions = 1, classes;
  const SoftmaxKernels* kernels;

  Positions(const Shape& x, int dim) : classes(static_cast<size_t>(x[dim])) {
    const bool last = dim == x.rank() - 1;
    for (int i = 0; i < x.rank(); ++i)
      if (i != dim) (i < dim && !last ? groups : positions) *= static_cast<size_t>(x[i]);
    const ElementwiseKernels& simd = elementwise_simd(simd_kernels().isa);
    kernels = last ? &simd.rows : &simd.columns;
  }
  size_t elements() const { return positions * classes; }  // of a group
};

std::string refuses(const KernelQuery& q) {
  for (const TensorDesc& d : q.in)
    if (d.dtype != DType::i32)
      if (std::string reason = not_f32(d); !reason.empty()) return reason;
  return "";
}

template <auto kKernel>
std::unique_ptr<Kernel> prepare_softmax(const KernelQuery& q) {
  const Positions p(q.in[0].shape, settings<Softmax>(q).dim);
  return call([p, f = p.kernels->*kKernel](const KernelArgs& a) {
    for (size_t at = 0; at < p.groups * p.elements(); at += p.elements())
      f(data(a.in[0]) + at, data(a.out[0]) + at, p.positions, p.classes);
  });
}

template <auto kKernel>
std::unique_ptr<Kernel> prepare_gradient(const KernelQuery& q) {
  const Positions p(q.in[0].shape, settings<Softmax>(q).dim);
  return call([p, f = p.kernels->*kKernel](const KernelArgs& a) {
    for (size_t at = 0; at < p.groups * p.elements(); at += p.elements())
      f(data(a.in[0]) + at, data(a.in[1]) + at, data(a.out[0]) + at, p.positions, p.classes);
  });
}

void check_targets(const TensorView& t, int64_t classes, int64_t ignore) {
  const auto targets = t.as<const int32_t>();
  for (size_t i = 0; i < targets.size(); ++i)
    if (targets[i] != ignore && (targets[i] < 0 || targets[i] >= classes))
      fail(Fault::data, "target {} of sample {} in its batch is not in [0, {})", targets[i],
           static_cast<int64_t>(i) * t.desc.shape[0] / t.desc.shape.elements(), classes);
}

// Of group g.
ClassLossArgs class_loss(const KernelArgs& a, const CrossEntropy& s, const Positions& p, size_t g) {
  const TensorView& t = a.in[1];
  const bool classes = t.desc.dtype == DType::i32;
  return {.x = data(a.in[0]) + g * p.elements(),
          .target = classes ? t.as<const int32_t>().data() + g * p.positions : nullptr,
          .probabilities = classes ? nullptr : data(t) + g * p.elements(),
          .weight = data_or_null(a, 3),
          .n = p.positions,
          .c = p.classes,
          .ignore = s.ignore_index,
          .smoothing = static_cast<float>(s.label_smoothing),
          .factor = 1 / data(a.in[2])[0]};
}

std::unique_ptr<Kernel> prepare_cross_entropy(const KernelQuery& q) {
  const auto s = settings<CrossEntropy>(q);
  const Positions p(q.in[0].shape, s.dim);
  const auto check = [=](const TensorView& t) {
    if (t.desc.dtype == DType::i32)
      check_targets(t, static_cast<int64_t>(p.classes), s.ignore_index);
  };
  if (is_gradient(q))
    return call([=](const KernelArgs& a) {
      check(a.in[1]);
      for (size_t g = 0; g < p.groups; ++g)
        p.kernels->cross_entropy_gradient(class_loss(a, s, p, g),
                                          data(a.out[0]) + g * p.elements());
    });
  return call([=](const KernelArgs& a) {
    check(a.in[1]);
    double sum = 0;
    for (size_t g = 0; g < p.groups; ++g) sum += p.kernels->cross_entropy(class_loss(a, s, p, g));
    a.out[0].as<double>()[0] = sum / static_cast<double>(data(a.in[2])[0]);
  });
}

}  // namespace

std::vector<KernelType> softmax_kernels() {
  using K = SoftmaxKernels;
  return {simd_row("softmax", refuses, prepare_softmax<&K::softmax>),
          simd_row("softmax_gradient", refuses, prepare_gradient<&K::softmax_gradient>),
          simd_row("log_softmax", refuses, prepare_softmax<&K::log_softmax>),
          simd_row("log_softmax_gradient", refuses, prepare_gradient<&K::log_softmax_gradient>),
          simd_row("cross_entropy", refuses, prepare_cross_entropy),
          simd_row("cross_entropy_gradient", refuses, prepare_cross_entropy)};
}

}  // namespace dpt
