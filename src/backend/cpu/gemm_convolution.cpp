// Convolutions and their gradients as matrix products over positions (simd/gemm.h), for all samples
// at once. The weight is read once for all samples, and the order of sums does not depend on the
// other samples of a batch.
#include <algorithm>
#include <limits>
#include <type_traits>

#include "backend/cpu/convolution_roles.h"
#include "backend/cpu/half_kernels.h"
#include "backend/cpu/kernels.h"
#include "backend/cpu/scratch.h"
#include "backend/cpu/simd/gemm.h"
#include "backend/cpu/support.h"
#include "graph/windows.h"

namespace dpt {
namespace {

using Pass = ConvolutionPass;
using Roles = ConvolutionRoles;

size_t channels(const Roles& r) { return static_cast<size_t>(r.w->shape[1]); }
size_t filters(const Roles& r) { return static_cast<size_t>(r.w->shape[0]); }

// The number of an image's positions, or of a window's taps.
int64_t positions_of(const Shape& s) { return elements_of(all_of(extents_of(s))); }

bool is_identity(const Roles& r, const Window& w) {
  const Extents none{}, ones{1, 1, 1};
  return extents_of(r.w->shape) == ones && w.stride == ones && w.before == none &&
         extents_of(r.x->shape) == extents_of(r.y->shape);
}

// For each position of the window (tap), the pairs of rows to combine: (x, y), or (y, x) if the
// operator computes x. A row has the channels of one position.
class Taps {
 public:
  Taps(const Roles& r, const Window& w, Pass pass) {
    const auto samples = static_cast<size_t>(r.x->shape[0]);
    if (is_identity(r, w)) {
      const auto positions = static_cast<size_t>(positions_of(r.x->shape));
      pairs_.push_back({.count = samples * positions});
      return;
    }
    std::vector<size_t> ends;
    each_position(all_of(extents_of(r.w->shape)), {1, 1, 1}, [&](const Extents& tap) {
      add(r, w, tap);
      ends.push_back(x_.size());
    });
    const uint32_t* first = x_.data();
    const uint32_t* second = y_.data();
    if (pass == Pass::input_gradient) std::swap(first, second);
    for (size_t t = 0, begin = 0; t < ends.size(); begin = ends[t++])
      pairs_.push_back(
          {.count = ends[t] - begin, .first = first + begin, .second = second + begin});
  }
  Taps(const Taps&) = delete;
  Taps& operator=(const Taps&) = delete;

  const RowPairs* data() const { return pairs_.data(); }
  size_t count() const { return pairs_.size(); }

 private:
  void add(const Roles& r, const Window& w, const Extents& tap) {
    const Extents in = extents_of(r.x->shape), out = extents_of(r.y->shape);
    for (int64_t n = 0; n < r.x->shape[0]; ++n)
      each_position(all_of(out), {1, 1, 1}, [&](const Extents& to) {
        int64_t x = n, y = n;
        for (size_t i = 0; i < 3; ++i) {
          const int64_t from = to[i] * w.stride[i] + tap[i] * w.dilation[i] - w.before[i];
          if (from < 0 || from >= in[i]) return;
          x = x * in[i] + from;
          y = y * out[i] + to[i];
        }
        x_.push_back(static_cast<uint32_t>(x));
        y_.push_back(static_cast<uint32_t>(y));
      });
  }

  std::vector<uint32_t> x_, y_;
  std::vector<RowPairs> pairs_;
};

const Window& window(const KernelQuery& q) {
  return std::any_cast<const Convolution&>(q.attrs).window;
}

// A convolution or its input gradient. Positions of the result that no tap reaches get 0, or the
// bias.
class RowProducts : public Kernel {
 public:
  RowProducts(const KernelQuery& q, Pass pass, bool pairs)
      : gemm_(gemm_of(pairs ? Factors::pairs : Factors::floats)),
        taps_(Roles(q, pass), window(q), pass),
        bias_(q.in.size() > 2),
        result_(elements(q.out[0])),
        rounding_(rounding(q.rounds)) {
    const Roles roles(q, pass);
    const bool forward = pass == Pass::forward;
    product_.taps = taps_.data();
    product_.tap_count = taps_.count();
    product_.depth = forward ? channels(roles) : filters(roles);
    product_.columns = forward ? filters(roles) : channels(roles);
    product_.b_transposed = !forward;
    const bool identity = is_identity(roles, window(q));
    product_.adds = bias_ || !identity;
    if (identity) product_.to = round_to(q.rounds);
    gemm_workspace();
  }

  void run(const KernelArgs& a) override {
    RowProduct p = product_;
    p.a = data(a.in[0]);
    p.b = data(a.in[1]);
    p.c = data(a.out[0]);
    if (bias_) {
      const float* const bias = data(a.in[2]);
      for (size_t i = 0; i < result_; i += p.columns) std::copy_n(bias, p.columns, p.c + i);
    } else if (p.adds) {
      std::fill_n(p.c, result_, 0.0F);
    }
    gemm_.row_product(p, gemm_workspace());
    if (rounding_ != nullptr && p.to == RoundTo::f32) rounding_(p.c, p.c, result_);
  }

 private:
  const GemmKernels& gemm_;
  Taps taps_;
  bool bias_;
  size_t result_;
  Rounding rounding_;
  RowProduct product_{};
};

class RowSums : public Kernel {
 public:
  RowSums(const KernelQuery& q, Pass pass, bool pairs)
      : gemm_(gemm_of(pairs ? Factors::pairs : Factors::floats)),
        taps_(Roles(q, pass), window(q), pass) {
    const Roles roles(q, pass);
    sum_.taps = taps_.data();
    sum_.tap_count = taps_.count();
    sum_.depth = sum_.a_row = channels(roles);
    sum_.columns = filters(roles);
    gemm_workspace();
  }

  void run(const KernelArgs& a) override {
    RowSum s = sum_;
    s.a = data(a.in[1]);
    s.b = data(a.in[0]);
    s.c = data(a.out[0]);
    gemm_.row_sum(s, gemm_workspace());
  }

 private:
  const GemmKernels& gemm_;
  Taps taps_;
  RowSum sum_{};
};

template <Pass kPass>
std::string refuses(const KernelQuery& q) {
  const auto& s = std::any_cast<const Convolution&>(q.attrs);
  const Roles r(q, kPass);
  for (const TensorDesc* d : {r.x, r.y})
    if (std::string reason = not_rows_of_channels(*d); !reason.empty()) return reason;
  if (std::string reason = not_f32(*r.w); !reason.empty()) return reason;
  if (!same_order(r.w->shape, r.w->layout, Layout::transposed))
    return "it takes transposed weights";
  if (s.groups > 1) return "it takes no groups";
  constexpr size_t kLeast = 32;
  if (channels(r) < kLeast || filters(r) < kLeast) return "it would leave most of its panels empty";
  // oneDNN computes sample by sample (Note [one sample at a time]). That is only slower if the
  // weight does not stay in the caches between samples and is used at few positions of each.
  constexpr int64_t kLargeWeight = int64_t{1} << 20, kFewPositions = 100;
  const int64_t taps = positions_of(r.w->shape);
  const int64_t positions = positions_of(r.y->shape);
  for (const TensorDesc* d : {r.x, r.y})
    if (d->shape.elements() / d->shape[1] > std::numeric_limits<uint32_t>::max())
      return "it counts positions in 32 bits";
  if (taps > 1 && (r.w->shape.elements() < kLargeWeight || positions > kFewPositions))
    return "another implementation is faster, except for large weights and few positions";
  return "";
}

// The same as pairs of bf16, for the same shapes and with the same bits (simd/bf16_gemm.h).
template <Pass kPass, Bf16Products kAsked>
std::string refuses_pairs(const KernelQuery& q) {
  if (std::string reason = refuses_bf16_pairs(q, kAsked); !reason.empty()) return reason;
  return refuses<kPass>(q);
}

template <Pass kPass, bool kPairs>
std::unique_ptr<Kernel> prepare(const KernelQuery& q) {
  using K = std::conditional_t<kPass == Pass::weight_gradient, RowSums, RowProducts>;
  return std::make_unique<K>(q, kPass, kPairs);
}

template <Pass kPass>
void add_rows(std::vector<KernelType>& out, std::string_view op, Bf16Products products) {
  KernelType row{.op = op,
                 .name = "gemm_bf16",
                 .refuses = products == Bf16Products::instruction
                                ? refuses_pairs<kPass, Bf16Products::instruction>
                                : refuses_pairs<kPass, Bf16Products::automatic>,
                 .prepare = prepare<kPass, true>,
                 .by_sample = true,
                 .rounds = kPass != Pass::weight_gradient};
  if (products != Bf16Products::fma) out.push_back(row);
  row.name = "gemm";
  row.refuses = refuses<kPass>;
  row.prepare = prepare<kPass, false>;
  out.push_back(row);
}

}  // namespace

std::vector<KernelType> gemm_convolution_kernels(Bf16Products products) {
  std::vector<KernelType> out;
  add_rows<Pass::forward>(out, "convolution", products);
  add_rows<Pass::input_gradient>(out, "convolution_transpose", products);
  add_rows<Pass::weight_gradient>(out, "convolution_weight_gradient", products);
  return out;
}

}  // namespace dpt
