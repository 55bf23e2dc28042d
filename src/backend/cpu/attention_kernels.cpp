// The CPU implementations of attention and its gradient (graph/operators/products/attention.cpp).
// They compute one head of one sample at a time.
//
// Note [attention of bf16]: on numbers of bf16 the weights and the gradients of scores are rounded
// to bf16 before they are multiplied, on every CPU, as in PyTorch. So VDPBF16PS multiplies them
// where it is faster than fma, and no bit depends on that.
#include "backend/cpu/bf16_products.h"
#include "backend/cpu/half_kernels.h"
#include "backend/cpu/kernels.h"
#include "backend/cpu/scratch.h"
#include "backend/cpu/simd/attention.h"
#include "backend/cpu/support.h"
#include "graph/attrs.h"

namespace dpt {
namespace {

std::string refuses(const KernelQuery& q) { return not_f32(q.in[0]); }

class HeadByHead : public Kernel {
 public:
  // pairs: Note [attention of bf16].
  HeadByHead(const KernelQuery& q, const TensorDesc& y, bool pairs)
      : simd_(variant(q, pairs)),
        samples_(extent(y, 0)),
        heads_(static_cast<size_t>(settings<Attention>(q).heads)),
        head_{.positions = extent(y, 1),
              .columns = extent(y, 2) / heads_,
              .qkv_row = 3 * extent(y, 2),
              .y_row = extent(y, 2),
              .causal = settings<Attention>(q).causal},
        rounding_(rounding(q.rounds)) {
    workspace();
  }

 protected:
  // Calls f(head, offset of its first element in qkv, in y, in logsumexp) for every head.
  template <class F>
  void each_head(const float* qkv, F f) const {
    if (head_.positions == 0) return;
    for (size_t n = 0; n < samples_; ++n)
      for (size_t h = 0; h < heads_; ++h) {
        const size_t row = n * head_.positions, at = row * head_.qkv_row + h * head_.columns;
        AttentionHead head = head_;
        head.q = qkv + at;
        head.k = head.q + head_.y_row;
        head.v = head.k + head_.y_row;
        f(head, at, row * head_.y_row + h * head_.columns, (n * heads_ + h) * head_.positions);
      }
  }
  void round(float* x, const TensorDesc& d) const {
    if (rounding_ != nullptr) rounding_(x, x, elements(d));
  }
  float* workspace() const {
    const size_t floats = attention_workspace(head_.positions, head_.columns);
    return reinterpret_cast<float*>(scratch(floats * sizeof(float)));
  }

  const AttentionKernels& simd_;

 private:
  static const AttentionKernels& variant(const KernelQuery& q, bool pairs) {
    const AttentionVariants& all = attention_simd(simd_kernels().isa);
    if (pairs) return all.instruction;
    return q.rounded_inputs == DType::bf16 ? all.bf16 : all.floats;
  }
  static size_t extent(const TensorDesc& d, int i) { return static_cast<size_t>(d.shape[i]); }

  size_t samples_, heads_;
  AttentionHead head_;
  Rounding rounding_;
};

class Forward : public HeadByHead {
 public:
  Forward(const KernelQuery& q, bool pairs) : HeadByHead(q, q.out[0], pairs) {}
  void run(const KernelArgs& a) override {
    float *const y = data(a.out[0]), *const logsumexp = data(a.out[1]);
    each_head(data(a.in[0]), [&](const AttentionHead& head, size_t, size_t at, size_t row) {
      simd_.forward(head, y + at, logsumexp + row, workspace());
    });
    round(y, a.out[0].desc);
  }
};

class Backward : public HeadByHead {
 public:
  Backward(const KernelQuery& q, bool pairs) : HeadByHead(q, q.in[0], pairs) {}
  void run(const KernelArgs& a) override {
    const float *const dy = data(a.in[0]), *const y = data(a.in[2]);
    const float* const logsumexp = data(a.in[3]);
    float* const dqkv = data(a.out[0]);
    each_head(data(a.in[1]), [&](const AttentionHead& head, size_t from, size_t at, size_t row) {
      float *const dq = dqkv + from, *const dk = dq + head.y_row, *const dv = dk + head.y_row;
      simd_.backward(
          head,
          {.dy = dy + at, .y = y + at, .logsumexp = logsumexp + row, .dq = dq, .dk = dk, .dv = dv},
          workspace());
    });
    round(dqkv, a.out[0].desc);
  }
};

template <class K>
KernelType row(std::string_view op) {
  return {.op = op,
          .name = simd_kernels().name,
          .refuses = refuses,
          .prepare = [](const KernelQuery& q) -> std::unique_ptr<Kernel> {
            return std::make_unique<K>(q, false);
          },
          .by_sample = true,
          .rounds = true};
}

template <Bf16Products kAsked>
std::string refuses_pairs(const KernelQuery& query) {
  return refuses_bf16_pairs(query, kAsked);
}

template <class K>
KernelType row_of_pairs(std::string_view op, Bf16Products asked) {
  KernelType out = row<K>(op);
  out.name = "avx512_bf16";
  out.refuses = asked == Bf16Products::instruction ? refuses_pairs<Bf16Products::instruction>
                                                   : refuses_pairs<Bf16Products::automatic>;
  out.prepare = [](const KernelQuery& q) -> std::unique_ptr<Kernel> {
    return std::make_unique<K>(q, true);
  };
  return out;
}

}  // namespace

std::vector<KernelType> attention_kernels(Bf16Products products) {
  std::vector<KernelType> out;
  if (products != Bf16Products::fma)
    out = {row_of_pairs<Forward>("attention", products),
           row_of_pairs<Backward>("attention_gradient", products)};
  out.push_back(row<Forward>("attention"));
  out.push_back(row<Backward>("attention_gradient"));
  return out;
}

}  // namespace dpt
