// instance_norm (Ulyanov et al., 2016): (x - mean) / sqrt(variance + eps) over each channel of each
// sample, [N, C, ...], in training and in evaluation. Same as PyTorch's InstanceNorm without
// running statistics. The variance is biased.
#include "layers/layer.h"
#include "layers/norms/norm_epsilon.h"
#include "layers/norms/row_norm.h"

namespace dpt::layers {
namespace {

struct InstanceNorm {
  static constexpr bool kNorm = true;
  static constexpr Usage kUsage{
      "torch.nn.InstanceNorm1d, torch.nn.InstanceNorm2d, torch.nn.InstanceNorm3d",
      "- instance_norm\n"
      "- instance_norm: {eps: 0.001, affine: true, bias: false}"};

  double eps = 1e-5;
  bool affine = false, bias = true;

  static KeyTable<InstanceNorm> keys() {
    return KeyTable<InstanceNorm>()
        .optional("eps", &InstanceNorm::eps, "small number added to the variance", kNotNegative)
        .optional("affine", &InstanceNorm::affine,
                  "whether each channel has a learned scale and offset")
        .optional("bias", &InstanceNorm::bias, "whether a learned bias is added");
  }

  static void check(const InstanceNorm& c, const Owner& owner, Diagnostics& d) {
    check_epsilon(c.eps, owner, d);
  }

  ValueId build(GraphBuilder& g, ValueId x) const {
    const Shape shape = g.shape(x);
    if (shape.rank() < 3 || shape.rank() > 5)
      fail(Fault::spec,
           "instance_norm takes [N, channels, ...] with 1 to 3 more dimensions, not {}",
           shape.str());
    if (shape.tail(2).elements() == 1)
      fail(Fault::spec,
           "instance_norm: each channel of {} has one element, so it has no variance; use "
           "layer_norm or group_norm",
           shape.str());
    return row_norm(g, x, {.groups = shape[1], .eps = eps}, affine, bias);
  }

  std::string torch(const Shape& x) const {
    return PythonCall(fmt::format("nn.InstanceNorm{}d", x.rank() - 2))
        .arg(x[1])
        .keys(keys().arguments(*this))
        .str();
  }
};

}  // namespace

LayerType instance_norm() {
  return layer_type<InstanceNorm>("instance_norm", "Normalizes each channel of each sample.");
}

}  // namespace dpt::layers
