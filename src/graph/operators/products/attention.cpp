// attention: y[N, T, E] = softmax(q k^T / sqrt(E / heads)) v for each sample and head, as PyTorch's
// scaled_dot_product_attention. qkv[N, T, 3E] holds q, k and v side by side in its last dimension,
// E columns each. Head h has columns h * E / heads to (h + 1) * E / heads of each, and of y.
// causal: a position attends only to itself and earlier positions. The second result is for the
// gradient: logsumexp[N, heads, T] over the scores of each position.
//   attention_gradient(dy, qkv, y, logsumexp) -> dqkv
// Formulas: Dao et al., "FlashAttention", 2022 (arxiv.org/abs/2205.14135), section 3.1 and appendix
// B.
#include <algorithm>
#include <cmath>

#include "graph/operators/support.h"

namespace dpt::operators {
namespace {

// REQUIRES: y is [N, T, E].
TensorDesc logsumexp_of(const TensorDesc& y, int64_t heads) {
  return {full(y.dtype), {y.shape[0], heads, y.shape[1]}};
}

std::vector<TensorDesc> infer(std::span<const TensorDesc> in, const Attention& attrs) {
  need_real("attention", in[0]);
  const Shape& x = in[0].shape;
  const int64_t heads = attrs.heads;
  if (x.rank() != 3 || x.back() % 3 != 0)
    fail(Fault::spec, "attention: {} is not [N, T, 3E]: q, k and v of each position", x.str());
  if (heads < 1 || x.back() == 0 || x.back() / 3 % heads != 0)
    fail(Fault::spec,
         "attention: q, k and v of {} have {} columns each, which {} heads can't share", x.str(),
         x.back() / 3, heads);
  const TensorDesc y{in[0].dtype, x.with(2, x.back() / 3)};
  return {y, logsumexp_of(y, heads)};
}

std::vector<TensorDesc> infer_gradient(std::span<const TensorDesc> in, const Attention& attrs) {
  const std::vector<TensorDesc> out = infer(in.subspan(1, 1), attrs);
  require(in[0] == out[0] && in[2] == out[0] && in[3] == out[1],
          "attention_gradient: dy and y are like the result");
  return {in[1]};
}

std::vector<ValueId> gradient(GraphBuilder& g, const GraphNode& n, std::span<const ValueId> dy) {
  return {g.apply("attention_gradient", {dy[0], n.in[0], n.out[0], n.out[1]}, n.attrs)};
}

// One head of one sample: offsets and strides of its rows, and which positions attend to which.
struct Head {
  int64_t positions, columns;  // T, E / heads
  int64_t qkv_row, y_row;      // 3E, E
  int64_t qkv, y, logsumexp;   // offsets of the head's first elements
  double scale;
  bool causal;

  int64_t seen(int64_t position) const { return causal ? position + 1 : positions; }
  int64_t q(int64_t position) const { return qkv + position * qkv_row; }
  int64_t k(int64_t position) const { return q(position) + y_row; }
  int64_t v(int64_t position) const { return k(position) + y_row; }
  int64_t row(int64_t position) const { return y + position * y_row; }
};

template <class F>
void each_head(const Shape& qkv, const Attention& attrs, F f) {
  const int64_t positions = qkv[1], e = qkv[2] / 3, columns = e / attrs.heads;
  for (int64_t n = 0; n < qkv[0]; ++n)
    for (int64_t h = 0; h < attrs.heads; ++h)
      f(Head{.positions = positions,
             .columns = columns,
             .qkv_row = 3 * e,
             .y_row = e,
             .qkv = n * positions * 3 * e + h * columns,
             .y = n * positions * e + h * columns,
             .logsumexp = (n * attrs.heads + h) * positions,
             .scale = 1 / std::sqrt(static_cast<double>(columns)),
             .causal = attrs.causal});
}

template <class T>
double dot(const T* a, const T* b, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  return sum;
}

void forward(const KernelArgs& args, const Attention& attrs) {
  with_type_of(args.in[0], [&]<class T>(T) {
    const T* qkv = args.in[0].as<const T>().data();
    T *y = args.out[0].as<T>().data(), *logsumexp = args.out[1].as<T>().data();
    std::vector<double> p, row;
    each_head(args.in[0].desc.shape, attrs, [&](const Head& head) {
      for (int64_t i = 0; i < head.positions; ++i) {
        p.clear();
        for (int64_t j = 0; j < head.seen(i); ++j)
          p.push_back(head.scale * dot(qkv + head.q(i), qkv + head.k(j), head.columns));
        const double largest = *std::ranges::max_element(p);
        double sum = 0;
        row.assign(static_cast<size_t>(head.columns), 0);
        for (int64_t j = 0; j < head.seen(i); ++j) {
          const double weight = std::exp(p[static_cast<size_t>(j)] - largest);
          sum += weight;
          for (int64_t c = 0; c < head.columns; ++c)
            row[static_cast<size_t>(c)] += weight * static_cast<double>(qkv[head.v(j) + c]);
        }
        for (int64_t c = 0; c < head.columns; ++c)
          y[head.row(i) + c] = static_cast<T>(row[static_cast<size_t>(c)] / sum);
        logsumexp[head.logsumexp + i] = static_cast<T>(largest + std::log(sum));
      }
    });
  });
}

// With p = softmax(scores) and D = dot(dy, y) of each row: dv = p^T dy, dscores = p * (dy v^T - D),
// from which dq = dscores k and dk = dscores^T q.
void backward(const KernelArgs& args, const Attention& attrs) {
  with_type_of(args.in[0], [&]<class T>(T) {
    const T *dy = args.in[0].as<const T>().data(), *qkv = args.in[1].as<const T>().data();
    const T *y = args.in[2].as<const T>().data(), *logsumexp = args.in[3].as<const T>().data();
    const auto dqkv = args.out[0].as<T>();
    std::vector<double> sums(dqkv.size(), 0);
    each_head(args.in[1].desc.shape, attrs, [&](const Head& head) {
      for (int64_t i = 0; i < head.positions; ++i) {
        const int64_t q = head.q(i), row = head.row(i);
        const double d = dot(dy + row, y + row, head.columns);
        for (int64_t j = 0; j < head.seen(i); ++j) {
          const int64_t k = head.k(j), v = head.v(j);
          const double score = head.scale * dot(qkv + q, qkv + k, head.columns);
          const double p = std::exp(score - static_cast<double>(logsumexp[head.logsumexp + i]));
          const double ds = head.scale * p * (dot(dy + row, qkv + v, head.columns) - d);
          for (int64_t c = 0; c < head.columns; ++c) {
            sums[static_cast<size_t>(q + c)] += ds * static_cast<double>(qkv[k + c]);
            sums[static_cast<size_t>(k + c)] += ds * static_cast<double>(qkv[q + c]);
            sums[static_cast<size_t>(v + c)] += p * static_cast<double>(dy[row + c]);
          }
        }
      }
    });
    for (size_t i = 0; i < sums.size(); ++i) dqkv[i] = static_cast<T>(sums[i]);
  });
}

// Two products of [T, E / heads] and [T, T] per head, with two operations per term. A causal mask
// is not taken into account, as in PyTorch's FlopCounterMode.
double flops(std::span<const TensorDesc>, std::span<const TensorDesc> out) {
  const Shape& y = out[0].shape;
  return 4.0 * static_cast<double>(y.elements()) * static_cast<double>(y[1]);
}

// Five such products.
double gradient_flops(std::span<const TensorDesc> in, std::span<const TensorDesc>) {
  const Shape& y = in[0].shape;
  return 10.0 * static_cast<double>(y.elements()) * static_cast<double>(y[1]);
}

}  // namespace

Operators attention() {
  return {{.name = "attention",
           .precision = Precision::compute,
           .infer = typed<infer>,
           .gradient = gradient,
           .reference = typed<forward>,
           .flops = flops,
           .torch_order = TorchOrder::sequence_first},
          {.name = "attention_gradient",
           .precision = Precision::compute,
           .infer = typed<infer_gradient>,
           .reference = typed<backward>,
           .flops = gradient_flops,
           .traits = Trait::backward}};
}

}  // namespace dpt::operators
