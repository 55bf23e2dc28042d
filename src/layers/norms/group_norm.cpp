// group_norm (Wu and He, 2018): (x - mean) / sqrt(variance + eps) over groups of a sample's
// channels, then scaled and shifted for each channel; [N, C, ...]. The variance is biased.
#include "layers/layer.h"
#include "layers/norms/row_norm.h"

namespace dpt::layers {
namespace {

struct GroupNorm {
  static constexpr bool kNorm = true;
  static constexpr Usage kUsage{
      "torch.nn.GroupNorm",
      "- group_norm: 8\n"
      "- group_norm: {num_groups: 8, eps: 0.001, affine: true, bias: false}"};

  int64_t num_groups = 0;
  double eps = 1e-5;
  bool affine = true, bias = true;

  static KeyTable<GroupNorm> keys() {
    return KeyTable<GroupNorm>()
        .required("num_groups", &GroupNorm::num_groups,
                  "number of groups; each is normalized separately", kSize)
        .optional("eps", &GroupNorm::eps, "small number added to the variance", kNotNegative)
        .optional("affine", &GroupNorm::affine,
                  "whether each channel has a learned scale and offset")
        .optional("bias", &GroupNorm::bias, "whether a learned bias is added");
  }

  ValueId build(GraphBuilder& g, ValueId x) const {
    const Shape shape = g.shape(x);
    if (shape.rank() < 2)
      fail(Fault::spec, "group_norm takes [N, channels, ...], not {}", shape.str());
    if (shape[1] % num_groups != 0)
      fail(Fault::spec, "group_norm: the {} channels of {} cannot be divided evenly into {} groups",
           shape[1], shape.str(), num_groups);
    return row_norm(g, x, {.groups = num_groups, .eps = eps}, affine, bias);
  }

  std::string torch(const Shape& x) const {
    return PythonCall("nn.GroupNorm")
        .arg(num_groups)
        .arg(x[1])
        .keys(keys().arguments(*this), 1)
        .str();
  }
};

}  // namespace

LayerType group_norm() {
  return layer_type<GroupNorm>("group_norm", "Normalizes groups of channels of each sample.");
}

}  // namespace dpt::layers
