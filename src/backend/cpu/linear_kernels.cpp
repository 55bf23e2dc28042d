// The CPU implementations of `linear` and its gradients with hand-written kernels.
//
// Note [wide layers]: a matrix with long rows is packed first (simd/gemm.h), if there are enough
// rows of the other operand to make up for the packing: its rows are so far apart in memory that
// each few columns of the result would touch as many pages. It is also packed if the other operand,
// which has the rows of all samples, is too large to be read again for each few columns of the
// result. Packing does not change any bit.
#include "backend/cpu/kernels.h"
#include "backend/cpu/scratch.h"
#include "backend/cpu/simd/gemm.h"
#include "backend/cpu/simd/linear_order.h"
#include "backend/cpu/simd/simd.h"
#include "backend/cpu/support.h"

namespace dpt {
namespace {

std::string refuses(const KernelQuery& query) {
  if (std::string reason = not_f32(query.in[0]); !reason.empty()) return reason;
  if (simd_kernels().isa == Isa::baseline) return "this CPU has neither AVX2 nor AVX-512";
  return "";
}

size_t size(int64_t n) { return static_cast<size_t>(n); }
// The product of all dimensions but the last; may be 0.
size_t rows(const Shape& s) { return size(s.with(s.rank() - 1, 1).elements()); }

bool transposed(const TensorDesc& weight) { return weight.layout == Layout::transposed; }

constexpr size_t kLongRow = 256, kEnoughRows = 24;
constexpr size_t kLarge = size_t{256} * 1024;  // elements: 1 MiB, half of a common L2 cache

// y = x w^T (linear_) or y = x w. A row of the weight in memory holds either the factors of one
// output or the factors of one input; this and the operator decide which product it is.
class Product : public Kernel {
 public:
  explicit Product(const KernelQuery& q)
      : linear_((q.op == "linear") != transposed(q.in[1])),
        out_(size(q.in[1].shape[q.op == "linear" ? 0 : 1])),
        in_(size(q.in[1].shape[q.op == "linear" ? 1 : 0])),
        n_(rows(q.in[0].shape)),
        usual_n_(q.samples > 0 ? n_ / size(q.samples) * size(q.largest_shard) : n_),
        packs_(out_ > kLongRow / 4 &&
               (linear_ ? linear_is_chains(usual_n_, in_) && n_ * in_ >= kLarge
                        : q.op == "matmul" && n_ >= kEnoughRows &&
                              (in_ > kLongRow || n_ * in_ >= kLarge))) {
    if (packs_) gemm_workspace();
  }
  void run(const KernelArgs& a) override {
    const float* bias = a.in.size() > 2 ? data(a.in[2]) : nullptr;
    if (packs_)
      run_packed(a, bias);
    else if (linear_)
      simd_.linear(data(a.in[0]), data(a.in[1]), bias, data(a.out[0]), n_, out_, in_, usual_n_);
    else
      simd_.matmul(data(a.in[0]), data(a.in[1]), bias, data(a.out[0]), n_, out_, in_);
  }

 private:
  void run_packed(const KernelArgs& a, const float* bias) const {
    const RowPairs all{.count = n_};
    gemm_.row_product({.taps = &all,
                       .tap_count = 1,
                       .depth = in_,
                       .columns = out_,
                       .a = data(a.in[0]),
                       .b = data(a.in[1]),
                       .b_transposed = linear_,
                       .c = data(a.out[0]),
                       .adds = false,
                       .chain = true,
                       .bias = bias},
                      gemm_workspace());
  }

  const SimdKernels& simd_ = simd_kernels();
  const GemmKernels& gemm_ = gemm_simd(simd_.isa);
  bool linear_;
  size_t out_, in_, n_, usual_n_;
  bool packs_;  // Note [wide layers]
};

// dw = dy^T x, or x^T dy if the weight is transposed.
class LinearWeightGradient : public Kernel {
 public:
  explicit LinearWeightGradient(const KernelQuery& q)
      : left_(transposed(q.out[0]) ? 1 : 0),
        rows_(size(q.in[left_].shape.back())),
        columns_(size(q.in[1 - left_].shape.back())),
        n_(rows(q.in[0].shape)),
        packs_(left_ == 0 && n_ >= kEnoughRows &&
               (columns_ > kLongRow ||
                (columns_ >= kLongRow / 4 && rows_ >= 2 * kLongRow && n_ * rows_ >= kLarge))) {
    if (packs_) gemm_workspace();
  }
  void run(const KernelArgs& a) override { make(a, 0, rows_, false, data(a.out[0])); }
  void run_rows(const KernelArgs& a, int64_t begin, int64_t end, bool continued,
                std::byte* out) override {
    make(a, size(begin), size(end - begin), continued, reinterpret_cast<float*>(out));
  }

 private:
  void make(const KernelArgs& a, size_t begin, size_t count, bool continued, float* out) const {
    const float* const left = data(a.in[left_]) + begin;
    const float* const right = data(a.in[1 - left_]);
    if (!packs_) {
      simd_.linear_weight_gradient(left, rows_, right, out, n_, count, columns_, continued);
      return;
    }
    const RowPairs all{.count = n_};
    gemm_.row_sum({.taps = &all,
                   .tap_count = 1,
                   .depth = count,
                   .columns = columns_,
                   .a = left,
                   .a_row = rows_,
                   .b = right,
                   .c = out,
                   .adds = continued,
                   .chain = true},
                  gemm_workspace());
  }

  const SimdKernels& simd_ = simd_kernels();
  const GemmKernels& gemm_ = gemm_simd(simd_.isa);
  size_t left_, rows_, columns_, n_;
  bool packs_;  // Note [wide layers]
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
  return {row<Product>("linear"), row<Product>("matmul"),
          row<LinearWeightGradient>("linear_weight_gradient", true), row<SumRows>("sum_rows")};
}

}  // namespace dpt
