// triplet_margin_loss: max(0, d(a, p) - d(a, n) + margin) for each sample with the vectors a
// (anchor), p (positive) and n (negative), output[N, 3, D]. d(x, y) is the p-norm of x - y + eps.
// With swap, d(p, n) replaces d(a, n) where it is smaller (Balntas et al., 2016). Targets are not
// used.
#include "graph/formulas/vector_losses.h"
#include "graph/operators/losses/loss_support.h"

namespace dpt::operators {
namespace {

void check(std::span<const TensorDesc> in) {
  const TensorDesc& y = in[0];
  need_real("triplet_margin_loss", y);
  if (y.shape.rank() != 3 || y.shape[1] != 3)
    fail(Fault::spec, "triplet_margin_loss: output {} must be [N, 3, D]", str(y));
  need_divisor(y, in[1]);
}

formula::TripletSettings settings_of(const TripletMargin& s) {
  return {.margin = s.margin, .p = s.p, .eps = s.eps, .swap = s.swap};
}

void forward(const KernelArgs& args, const TripletMargin& attrs) {
  const formula::TripletSettings s = settings_of(attrs);
  const int64_t width = args.in[0].desc.shape[2];
  with_type_of(args.in[0], [&]<class T>(T) {
    const T* y = args.in[0].as<const T>().data();
    double sum = 0;
    for (int64_t n = 0; n < args.in[0].desc.shape[0]; ++n, y += 3 * width) {
      const double loss = formula::triplet_of(y, width, s).loss;
      sum += loss < 0 ? 0 : loss;  // keeps nan
    }
    args.out[0].as<double>()[0] = sum / static_cast<double>(args.in[1].as<const T>()[0]);
  });
}

void backward(const KernelArgs& args, const TripletMargin& attrs) {
  const formula::TripletSettings s = settings_of(attrs);
  const int64_t width = args.in[0].desc.shape[2];
  with_type_of(args.in[0], [&]<class T>(T) {
    const double divisor = static_cast<double>(args.in[1].as<const T>()[0]);
    const T* y = args.in[0].as<const T>().data();
    T* dy = args.out[0].as<T>().data();
    for (int64_t n = 0; n < args.in[0].desc.shape[0]; ++n, y += 3 * width, dy += 3 * width) {
      const formula::Triplet t = formula::triplet_of(y, width, s);
      for (int64_t i = 0; i < width; ++i) {
        formula::TripletSlopes slopes;
        if (!(t.loss <= 0)) slopes = formula::triplet_slopes(y, width, i, t, s);
        dy[i] = static_cast<T>(slopes.anchor / divisor);
        dy[width + i] = static_cast<T>(slopes.positive / divisor);
        dy[2 * width + i] = static_cast<T>(slopes.negative / divisor);
      }
    }
  });
}

}  // namespace

Operators triplet_margin_loss() {
  return loss_types<check, forward, backward>("triplet_margin_loss",
                                              "triplet_margin_loss_gradient");
}

}  // namespace dpt::operators
