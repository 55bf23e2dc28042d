// gaussian_nll_loss: the negative log-likelihood of each element of the target t[N, D, ...] under a
// normal distribution (graph/formulas/losses/gaussian_nll.h). The output [N, 2 D, ...] has the
// means in its first D channels and the variances in the others, or their logarithms with
// log_variance.
#include "graph/formulas/losses/gaussian_nll.h"
#include "graph/operators/losses/loss_support.h"

namespace dpt::operators {
namespace {

void check(std::span<const TensorDesc> in) {
  const TensorDesc &y = in[0], &t = in[1];
  need_real("gaussian_nll_loss", y);
  if (y.shape.rank() < 2 || y.shape[1] % 2 != 0 ||
      t != TensorDesc{y.dtype, y.shape.with(1, y.shape[1] / 2)})
    fail(Fault::spec,
         "gaussian_nll_loss: output {} must have twice as many channels as the targets {}", str(y),
         str(t));
  need_divisor(y, in[2]);
}

// Calls f(i, j, term) for each element of the target, with its mean at i and its variance at j.
template <class T, class F>
void for_each_target(const KernelArgs& args, const formula::GaussianNll& loss, F f) {
  const auto y = args.in[0].as<const T>(), t = args.in[1].as<const T>();
  const auto half = static_cast<size_t>(args.in[1].desc.shape.tail(1).elements());
  for (size_t k = 0; k < t.size(); ++k) {
    const size_t i = k + k / half * half, j = i + half;
    f(i, j,
      loss.term(static_cast<double>(y[i]), static_cast<double>(y[j]), static_cast<double>(t[k])));
  }
}

void forward(const KernelArgs& args, const formula::GaussianNll& loss) {
  with_type_of(args.in[0], [&]<class T>(T) {
    double sum = 0;
    for_each_target<T>(args, loss, [&](size_t, size_t, const formula::GaussianTerm<double>& term) {
      sum += term.value;
    });
    args.out[0].as<double>()[0] = sum / static_cast<double>(args.in[2].as<const T>()[0]);
  });
}

void backward(const KernelArgs& args, const formula::GaussianNll& loss) {
  with_type_of(args.in[0], [&]<class T>(T) {
    const double divisor = static_cast<double>(args.in[2].as<const T>()[0]);
    const auto dx = args.out[0].as<T>();
    for_each_target<T>(args, loss,
                       [&](size_t i, size_t j, const formula::GaussianTerm<double>& term) {
                         dx[i] = static_cast<T>(term.mean_slope / divisor);
                         dx[j] = static_cast<T>(term.variance_slope / divisor);
                       });
  });
}

}  // namespace

Operators gaussian_nll_loss() {
  return loss_types<check, forward, backward>("gaussian_nll_loss", "gaussian_nll_loss_gradient");
}

}  // namespace dpt::operators
