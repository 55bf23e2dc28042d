// cosine_embedding_loss: for each sample with the vectors a and b, output[N, 2, D], and the target
// 1 or -1 in [N, 1]: 1 - cos(a, b) for a target of 1, max(0, cos(a, b) - margin) for -1, else 0.
// cos(a, b) = a b / sqrt((a a + 1e-12) (b b + 1e-12)), as in PyTorch.
#include "graph/formulas/vector_losses.h"
#include "graph/operators/losses/loss_support.h"

namespace dpt::operators {
namespace {

void check(std::span<const TensorDesc> in) {
  const TensorDesc &y = in[0], &t = in[1];
  need_real("cosine_embedding_loss", y);
  if (y.shape.rank() != 3 || y.shape[1] != 2)
    fail(Fault::spec, "cosine_embedding_loss: output {} must be [N, 2, D]", str(y));
  if (t != TensorDesc{y.dtype, {y.shape[0], 1}})
    fail(Fault::spec, "cosine_embedding_loss: targets {} must be {}[{}, 1]", str(t),
         name_of(y.dtype), y.shape[0]);
  need_divisor(y, in[2]);
}

void forward(const KernelArgs& args, const CosineEmbedding& attrs) {
  const double margin = attrs.margin;
  const int64_t width = args.in[0].desc.shape[2];
  with_type_of(args.in[0], [&]<class T>(T) {
    const T* y = args.in[0].as<const T>().data();
    double sum = 0;
    for (const T target : args.in[1].as<const T>()) {
      const formula::Angle angle = formula::angle_of(y, width);
      sum += formula::cosine_term(angle, static_cast<double>(target), margin).value;
      y += 2 * width;
    }
    args.out[0].as<double>()[0] = sum / static_cast<double>(args.in[2].as<const T>()[0]);
  });
}

void backward(const KernelArgs& args, const CosineEmbedding& attrs) {
  const double margin = attrs.margin;
  const int64_t width = args.in[0].desc.shape[2];
  with_type_of(args.in[0], [&]<class T>(T) {
    const double divisor = static_cast<double>(args.in[2].as<const T>()[0]);
    const T* y = args.in[0].as<const T>().data();
    T* dy = args.out[0].as<T>().data();
    for (const T target : args.in[1].as<const T>()) {
      const formula::Angle angle = formula::angle_of(y, width);
      const double slope =
          formula::cosine_term(angle, static_cast<double>(target), margin).slope / divisor;
      for (int64_t i = 0; i < width; ++i) {
        const double a = static_cast<double>(y[i]), b = static_cast<double>(y[width + i]);
        dy[i] = static_cast<T>(slope * formula::cosine_slope(angle, a, angle.a, b));
        dy[width + i] = static_cast<T>(slope * formula::cosine_slope(angle, b, angle.b, a));
      }
      y += 2 * width;
      dy += 2 * width;
    }
  });
}

}  // namespace

Operators cosine_embedding_loss() {
  return loss_types<check, forward, backward>("cosine_embedding_loss",
                                              "cosine_embedding_loss_gradient");
}

}  // namespace dpt::operators
