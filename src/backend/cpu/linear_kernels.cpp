// The rows of `linear` and its gradients that call the hand-written kernels.
#include <fmt/format.h>

#include "backend/cpu/kernels.h"
#include "backend/cpu/simd/simd.h"

namespace dpt {
namespace {

std::string refuses(const KernelQuery& query) {
  if (query.in[0].dtype != DType::f32)
    return fmt::format("it computes in f32, not {}", name_of(query.in[0].dtype));
  if (simd_kernels().isa == Isa::baseline) return "this CPU has neither AVX2 nor AVX-512";
  return "";
}

size_t size(int64_t n) { return static_cast<size_t>(n); }
// The extents before the last, any of which may be 0.
size_t rows(const Shape& s) { return size(s.with(s.rank() - 1, 1).elements()); }

float* data(const TensorView& v) { return reinterpret_cast<float*>(v.data); }

class Linear : public Kernel {
 public:
  explicit Linear(const KernelQuery& q)
      : out_(size(q.in[1].shape[0])),
        in_(size(q.in[1].shape[1])),
        n_(rows(q.in[0].shape)),
        usual_n_(q.samples > 0 ? n_ / size(q.samples) * size(q.largest_shard) : n_) {}
  void run(const KernelArgs& a) override {
    simd_.linear(data(a.in[0]), data(a.in[1]), a.in.size() > 2 ? data(a.in[2]) : nullptr,
                 data(a.out[0]), n_, out_, in_, usual_n_);
  }

 private:
  const SimdKernels& simd_ = simd_kernels();
  size_t out_, in_, n_, usual_n_;
};

class MatMul : public Kernel {
 public:
  explicit MatMul(const KernelQuery& q)
      : out_(size(q.in[1].shape[1])), in_(size(q.in[1].shape[0])), n_(rows(q.in[0].shape)) {}
  void run(const KernelArgs& a) override {
    simd_.matmul(data(a.in[0]), data(a.in[1]), a.in.size() > 2 ? data(a.in[2]) : nullptr,
                 data(a.out[0]), n_, out_, in_);
  }

 private:
  const SimdKernels& simd_ = simd_kernels();
  size_t out_, in_, n_;
};

class LinearWeightGradient : public Kernel {
 public:
  explicit LinearWeightGradient(const KernelQuery& q)
      : out_(size(q.out[0].shape[0])), in_(size(q.out[0].shape[1])), n_(rows(q.in[0].shape)) {}
  void run(const KernelArgs& a) override {
    simd_.linear_weight_gradient(data(a.in[0]), out_, data(a.in[1]), data(a.out[0]), n_, out_, in_,
                                 false);
  }
  void run_rows(const KernelArgs& a, int64_t begin, int64_t end, bool continued,
                std::byte* out) override {
    simd_.linear_weight_gradient(data(a.in[0]) + begin, out_, data(a.in[1]),
                                 reinterpret_cast<float*>(out), n_, size(end - begin), in_,
                                 continued);
  }

 private:
  const SimdKernels& simd_ = simd_kernels();
  size_t out_, in_, n_;
};

class SumRows : public Kernel {
 public:
  explicit SumRows(const KernelQuery& q) : out_(size(q.out[0].shape[0])), n_(rows(q.in[0].shape)) {}
  void run(const KernelArgs& a) override {
    simd_.sum_rows(data(a.in[0]), data(a.out[0]), n_, out_);
  }

 private:
  const SimdKernels& simd_ = simd_kernels();
  size_t out_, n_;
};

template <class K>
KernelType row(std::string_view op, bool makes_rows = false) {
  return {op,
          simd_kernels().name,
          refuses,
          [](const KernelQuery& q) -> std::unique_ptr<Kernel> { return std::make_unique<K>(q); },
          makes_rows,
          true};
}

}  // namespace

std::vector<KernelType> linear_kernels() {
  return {row<Linear>("linear"), row<MatMul>("matmul"),
          row<LinearWeightGradient>("linear_weight_gradient", true), row<SumRows>("sum_rows")};
}

}  // namespace dpt
