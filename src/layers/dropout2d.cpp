// dropout2d (Tompson et al., 2015): in training, sets all elements of a channel to 0 with
// probability p and divides the others by 1 - p. The identity in evaluation. [N, C, ...] with one
// to three further dimensions.
#include "base/fail.h"
#include "formats/python_call.h"
#include "graph/attrs.h"
#include "layers/dropout_number.h"
#include "layers/layer.h"

namespace dpt::layers {
namespace {

struct Dropout2d {
  static constexpr Usage kUsage{"torch.nn.Dropout2d, torch.nn.Dropout1d, torch.nn.Dropout3d",
                                "- dropout2d\n"
                                "- dropout2d: {p: 0.2}"};

  double p = 0.5;

  static KeyTable<Dropout2d> keys() {
    return KeyTable<Dropout2d>().optional("p", &Dropout2d::p,
                                          "probability that a channel becomes zero", kProbability);
  }

  ValueId build(GraphBuilder& g, ValueId x) const {
    const TensorDesc in = g.desc(x);
    if (in.shape.rank() < 3 || in.shape.rank() > 5)
      fail(Fault::spec,
           "dropout2d takes [N, channels, ...] with 1 to 3 more dimensions, not {}: use dropout",
           in.shape.str());
    if (!g.mode().training || p == 0) return x;
    // For p = 1 PyTorch draws no random numbers either, and the counter-based mask is all zeros.
    if (!g.mode().torch_masks || p == 1)
      return g.apply("dropout", {x}, Dropout{.p = p, .key = dropout_number(g), .channels = true});
    const ValueId mask = g.mask({in.dtype, {in.shape[0], in.shape[1]}}, 1 - p);
    // PyTorch divides the mask by 1 - p in f32.
    const float scale = 1.0F / static_cast<float>(1 - p);
    return g.apply("masked_channels", {x, mask}, Masked{.scale = scale, .order = {0, 1}});
  }

  std::string torch(const Shape& x) const {
    return PythonCall(fmt::format("nn.Dropout{}d", x.rank() - 2)).arg(p).str();
  }
};

}  // namespace

LayerType dropout2d() {
  return layer_type<Dropout2d>(
      "dropout2d",
      "In training, sets whole channels to zero at random and scales the others by 1 / (1 - p): "
      "[N, C, ...] with 1 to 3 more dimensions.");
}

}  // namespace dpt::layers
