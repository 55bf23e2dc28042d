// The CPU implementations of `linear` and its gradients with hand-written kernels.
//
// Note [wide layers]: a matrix with long rows is packed first (simd/gemm.h), if there are enough
// rows of the other operand to make up for the packing: its rows are so far apart in memory that
// each few columns of the result would touch as many pages. It is also packed if the other operand,
// which has the rows of all samples, is too large to be read again for each few columns of the
// result. Packing does not change any bit.
//
// Note [products of bf16]: factors that are numbers of bf16 can be packed as pairs, which
// AVX512-BF16 multiplies with one instruction (simd/bf16_gemm.h). That does not change any bit of a
// chain either, so it is done wherever there are enough rows to make up for the packing. For
// factors of bf16, sums of `linear` are chains from a smaller number of rows on, on every CPU. AMX
// multiplies tiles of the same pairs (simd/amx_gemm.inc.cpp), with sums in another order; so it is
// used from a number of rows on that every shard has or none.
#include <type_traits>

#include "backend/cpu/bf16_products.h"
#include "backend/cpu/half_kernels.h"
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

bool is_bf16(const KernelQuery& q) { return q.rounded_inputs == DType::bf16; }

bool transposed(const TensorDesc& weight) { return weight.layout == Layout::transposed; }

constexpr size_t kLongRow = 256, kEnoughRows = 24;
constexpr size_t kLarge = size_t{256} * 1024;  // elements: 1 MiB, half of a common L2 cache

// Note [products of bf16]. As measured on Zen 4 with 20 to 784 columns.
constexpr size_t kNarrow = 16;  // columns of results of which packed products are half empty
constexpr size_t kRowsForChains = 16, kRowsForPairs = 12, kSummedRowsForPairs = 4;
constexpr size_t kRowsForTiles = 16;  // of a tile

template <Bf16Products kAsked>
std::string refuses_pairs(const KernelQuery& query) {
  return refuses_bf16_pairs(query, kAsked);
}

// The rows of the largest shard.
size_t usual_rows(const KernelQuery& q, size_t n) {
  return q.samples > 0 ? n / size(q.samples) * size(q.largest_shard) : n;
}

// The number of rows by which `linear` chooses its order of sums (simd/linear_order.h).
size_t rows_for_order(const KernelQuery& q, size_t n, size_t in) {
  const size_t usual = usual_rows(q, n);
  if (!is_bf16(q)) return usual;
  return usual >= kRowsForChains ? in : 0;  // always a chain, or never
}

// y = x w^T (linear_) or y = x w. A row of the weight in memory holds either the factors of one
// output or the factors of one input; this and the operator decide which product it is.
// pairs: Note [products of bf16].
class Product : public Kernel {
 public:
  Product(const KernelQuery& q, Factors asked, bool linear)
      : linear_(linear != transposed(q.in[1])),
        out_(size(q.in[1].shape[linear ? 0 : 1])),
        in_(size(q.in[1].shape[linear ? 1 : 0])),
        n_(rows(q.in[0].shape)),
        usual_n_(rows_for_order(q, n_, in_)),
        factors_(factors(q, asked)),
        packs_(
            factors_ != Factors::floats ||
            (out_ > kLongRow / 4 &&
             (linear_ ? linear_is_chains(usual_n_, in_) && n_ * in_ >= kLarge
                      : !linear && n_ >= kEnoughRows && (in_ > kLongRow || n_ * in_ >= kLarge)))),
        to_(round_to(q.rounds)),
        rounding_(packs_ ? nullptr : rounding(q.rounds)) {
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
    if (rounding_ != nullptr) rounding_(data(a.out[0]), data(a.out[0]), n_ * out_);
  }

 private:
  Factors factors(const KernelQuery& q, Factors asked) const {
    if (in_ == 0 || out_ <= kNarrow) return Factors::floats;
    if (asked == Factors::tiles && usual_rows(q, n_) >= kRowsForTiles) return Factors::tiles;
    const bool enough = linear_ ? linear_is_chains(usual_n_, in_) : n_ >= kRowsForPairs;
    return asked != Factors::floats && enough ? Factors::pairs : Factors::floats;
  }
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
                       .to = to_,
                       .bias = bias},
                      gemm_workspace());
  }

  const SimdKernels& simd_ = simd_kernels();
  bool linear_;
  size_t out_, in_, n_, usual_n_;
  Factors factors_;  // Note [products of bf16]
  bool packs_;       // Note [wide layers]
  const GemmKernels& gemm_ = gemm_of(factors_);
  RoundTo to_;
  Rounding rounding_;  // null: none, or within the product
};

struct Linear : Product {
  Linear(const KernelQuery& q, Factors asked) : Product(q, asked, true) {}
};
struct MatMul : Product {
  MatMul(const KernelQuery& q, Factors asked) : Product(q, asked, false) {}
};

// dw = dy^T x, or x^T dy if the weight is transposed.
class LinearWeightGradient : public Kernel {
 public:
  LinearWeightGradient(const KernelQuery& q, Factors asked)
      : left_(transposed(q.out[0]) ? 1 : 0),
        rows_(size(q.in[left_].shape.back())),
        columns_(size(q.in[1 - left_].shape.back())),
        n_(rows(q.in[0].shape)),
        factors_(factors(q, asked)),
        packs_(factors_ != Factors::floats ||
               (left_ == 0 && n_ >= kEnoughRows &&
                (columns_ > kLongRow ||
                 (columns_ >= kLongRow / 4 && rows_ >= 2 * kLongRow && n_ * rows_ >= kLarge)))) {
    if (packs_) gemm_workspace();
  }
  void run(const KernelArgs& a) override { make(a, 0, rows_, false, data(a.out[0])); }
  void run_rows(const KernelArgs& a, int64_t begin, int64_t end, bool continued,
                std::byte* out) override {
    make(a, size(begin), size(end - begin), continued, reinterpret_cast<float*>(out));
  }

 private:
  Factors factors(const KernelQuery& q, Factors asked) const {
    if (columns_ <= kNarrow) return Factors::floats;
    if (asked == Factors::tiles && usual_rows(q, n_) >= kRowsForTiles) return Factors::tiles;
    return asked != Factors::floats && n_ >= kSummedRowsForPairs ? Factors::pairs : Factors::floats;
  }
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
  size_t left_, rows_, columns_, n_;
  Factors factors_;  // Note [products of bf16]
  bool packs_;       // Note [wide layers]
  const GemmKernels& gemm_ = gemm_of(factors_);
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
  constexpr bool kProduct = std::is_constructible_v<K, const KernelQuery&, Factors>;
  return {.op = op,
          .name = simd_kernels().name,
          .refuses = refuses,
          .prepare = [](const KernelQuery& q) -> std::unique_ptr<Kernel> {
            if constexpr (kProduct)
              return std::make_unique<K>(q, Factors::floats);
            else
              return std::make_unique<K>(q);
          },
          .makes_rows = makes_rows,
          .by_sample = true,
          .rounds = std::is_base_of_v<Product, K>};
}

template <class K>
KernelType row_of_pairs(std::string_view op, Bf16Products asked) {
  KernelType out = row<K>(op, std::is_same_v<K, LinearWeightGradient>);
  out.name = "avx512_bf16";
  out.refuses = asked == Bf16Products::instruction ? refuses_pairs<Bf16Products::instruction>
                                                   : refuses_pairs<Bf16Products::automatic>;
  out.prepare = [](const KernelQuery& q) -> std::unique_ptr<Kernel> {
    return std::make_unique<K>(q, Factors::pairs);
  };
  return out;
}

// A weight gradient by tiles has no rows: samples that come in several calls would be summed in
// another order.
template <class K>
KernelType row_of_tiles(std::string_view op) {
  KernelType out = row<K>(op);
  out.name = "amx_bf16";
  out.refuses = [](const KernelQuery& q) { return refuses_bf16_tiles(q, Bf16Products::automatic); };
  out.prepare = [](const KernelQuery& q) -> std::unique_ptr<Kernel> {
    return std::make_unique<K>(q, Factors::tiles);
  };
  return out;
}

}  // namespace

std::vector<KernelType> linear_kernels(Bf16Products products) {
  std::vector<KernelType> out;
  if (products == Bf16Products::automatic)
    out = {row_of_tiles<Linear>("linear"), row_of_tiles<MatMul>("matmul"),
           row_of_tiles<LinearWeightGradient>("linear_weight_gradient")};
  if (products != Bf16Products::fma)
    for (const KernelType& k :
         {row_of_pairs<Linear>("linear", products), row_of_pairs<MatMul>("matmul", products),
          row_of_pairs<LinearWeightGradient>("linear_weight_gradient", products)})
      out.push_back(k);
  for (const KernelType& k :
       {row<Linear>("linear"), row<MatMul>("matmul"),
        row<LinearWeightGradient>("linear_weight_gradient", true), row<SumRows>("sum_rows")})
    out.push_back(k);
  return out;
}

}  // namespace dpt
