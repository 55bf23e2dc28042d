// cross_entropy: lp = log_softmax(output) along the dimension of C classes, w the class weights (or
// 1), e the label smoothing. For each position:
//   class target y:    -(1 - e) w[y] lp[y] - e / C * sum of w lp; 0 if y is ignored
//   probabilities p[C]: -sum of w p' lp, with p' = p (1 - e) + e / C
// Both are sums of -q lp with weights q that do not depend on the output, so the gradient is
// softmax(output) * (sum of q) - q. The formulas are those of torch.nn.CrossEntropyLoss.
#include <algorithm>
#include <cmath>

#include "graph/operators/losses/class_targets.h"

namespace dpt::operators {
namespace {

void check(std::span<const TensorDesc> in, const CrossEntropy& attrs) {
  const int dim = attrs.dim;
  need_classes("cross_entropy", in[0], dim);
  const TensorDesc &x = in[0], &t = in[1];
  const Shape positions = positions_of(x.shape, dim);
  if (t != x && t != TensorDesc{DType::i32, positions})
    fail(Fault::spec,
         "cross_entropy: output {} needs classes i32{} or probabilities {} as targets, not {}",
         str(x), positions.str(), str(x), str(t));
  need_divisor(x, in[2]);
  need_class_weight("cross_entropy", in, dim);
}

// Calls f(position, q) for each position that is not ignored.
template <class T, class F>
void for_each_q(const KernelArgs& args, const CrossEntropy& s, F f) {
  const TensorView &output = args.in[0], &target = args.in[1];
  const Weights w(args, 3);
  const Along a = along(output.desc.shape, s.dim);
  std::vector<double> q(static_cast<size_t>(a.extent));
  const double even = s.label_smoothing / static_cast<double>(a.extent);
  if (target.desc.dtype == DType::i32) {
    for_each_position(output, target, s.dim, s.ignore_index, [&](const Position& p) {
      for (size_t c = 0; c < q.size(); ++c) q[c] = even * w[c];
      const auto y = static_cast<size_t>(p.target);
      q[y] += (1 - s.label_smoothing) * w[y];
      f(p, q);
    });
    return;
  }
  const auto t = target.as<const T>();
  for (int64_t n = 0; n < a.outer; ++n)
    for (int64_t i = 0; i < a.inner; ++i) {
      const Position p{.first = static_cast<size_t>(n * a.extent * a.inner + i),
                       .step = static_cast<size_t>(a.inner),
                       .classes = a.extent,
                       .target = 0};
      for (size_t c = 0; c < q.size(); ++c)
        q[c] =
            w[c] * (static_cast<double>(t[p.first + c * p.step]) * (1 - s.label_smoothing) + even);
      f(p, q);
    }
}

// log_softmax of the scores at one position.
template <class T>
void log_softmax_at(std::span<const T> x, const Position& p, std::vector<double>& lp) {
  lp.resize(static_cast<size_t>(p.classes));
  if (lp.empty()) return;
  for (size_t c = 0; c < lp.size(); ++c) lp[c] = static_cast<double>(x[p.first + c * p.step]);
  const double top = *std::max_element(lp.begin(), lp.end());
  double sum = 0;
  for (double v : lp) sum += std::exp(v - top);
  for (double& v : lp) v = v - top - std::log(sum);
}

void forward(const KernelArgs& args, const CrossEntropy& attrs) {
  with_type_of(args.in[0], [&]<class T>(T) {
    const auto x = args.in[0].as<const T>();
    double sum = 0;
    std::vector<double> lp;
    for_each_q<T>(args, attrs, [&](const Position& p, const std::vector<double>& q) {
      log_softmax_at(x, p, lp);
      for (size_t c = 0; c < q.size(); ++c)
        if (q[c] != 0) sum -= q[c] * lp[c];  // 0 * -inf counts as 0, as in PyTorch
    });
    args.out[0].as<double>()[0] = sum / static_cast<double>(args.in[2].as<const T>()[0]);
  });
}

void backward(const KernelArgs& args, const CrossEntropy& attrs) {
  with_type_of(args.in[0], [&]<class T>(T) {
    const auto x = args.in[0].as<const T>();
    const auto dx = args.out[0].as<T>();
    const double divisor = static_cast<double>(args.in[2].as<const T>()[0]);
    for (T& d : dx) d = 0;
    std::vector<double> lp;
    for_each_q<T>(args, attrs, [&](const Position& p, const std::vector<double>& q) {
      log_softmax_at(x, p, lp);
      double total = 0;
      for (double v : q) total += v;
      for (size_t c = 0; c < q.size(); ++c)
        dx[p.first + c * p.step] = static_cast<T>((std::exp(lp[c]) * total - q[c]) / divisor);
    });
  });
}

}  // namespace

Operators cross_entropy() {
  return loss_types<check, forward, backward>("cross_entropy", "cross_entropy_gradient");
}

}  // namespace dpt::operators
