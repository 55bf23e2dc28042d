// pad: adds elements of one value around the last dimensions of each sample, or removes elements
// where a number is negative. Same as PyTorch's ConstantPad and ZeroPad.
#include <algorithm>

#include "base/fail.h"
#include "formats/python_call.h"
#include "graph/attrs.h"
#include "layers/layer.h"

namespace dpt::layers {
namespace {

struct PadLayer {
  static constexpr Usage kUsage{"torch.nn.ConstantPad1d, torch.nn.ConstantPad2d",
                                "- pad: 2\n"
                                "- pad: {padding: [1, 2, 0, 0], value: 0.5}"};

  std::vector<int64_t> padding;
  double value = 0;

  static KeyTable<PadLayer> keys() {
    return KeyTable<PadLayer>()
        .required("padding", &PadLayer::padding,
                  "one number for all sides of an image, or two per dimension, last dimension "
                  "first: [left, right, top, bottom]; negative: removes elements",
                  Range{.text = "must be between -2^31 and 2^31",
                        .low = -2147483648.0,
                        .high = 2147483648.0})
        .optional("value", &PadLayer::value, "value of the new elements");
  }

  static void check(const PadLayer& p, const Owner& owner, Diagnostics& d) {
    if (p.padding.size() != 1 && (p.padding.size() % 2 != 0 || p.padding.size() > 6))
      d.error(owner.at("padding"),
              fmt::format("'padding' must be one number, or 2, 4 or 6, not {}", p.padding.size()));
  }

  ValueId build(GraphBuilder& g, ValueId x) const {
    const Shape shape = g.shape(x);
    const std::vector<int64_t> sides = all_sides(shape);
    const int dims = static_cast<int>(sides.size() / 2);
    if (dims >= shape.rank())
      fail(Fault::spec, "pad: {} numbers pad {} dimensions after the batch, but {} has only {}",
           sides.size(), dims, shape.str(), shape.rank() - 1);
    Pad s{.value = value};
    for (int i = 0; i < dims; ++i) {
      const int dim = shape.rank() - 1 - i;
      const int64_t before = sides[static_cast<size_t>(2 * i)];
      const int64_t behind = sides[static_cast<size_t>(2 * i + 1)];
      if (shape[dim] + std::min({before, behind, before + behind, int64_t{0}}) < 1)
        fail(Fault::spec, "pad: {} and {} cut off all of extent {} of {}", before, behind, dim,
             shape.str());
      s.before[static_cast<size_t>(dim)] = before;
      s.behind[static_cast<size_t>(dim)] = behind;
    }
    return g.apply("pad", {x}, s);
  }

  std::string torch(const Shape& x) const {
    const std::vector<int64_t> sides = all_sides(x);
    return PythonCall(fmt::format("nn.ConstantPad{}d", sides.size() / 2))
        .arg(sides)
        .arg(value)
        .str();
  }

 private:
  std::vector<int64_t> all_sides(const Shape& x) const {
    if (padding.size() != 1) return padding;
    // One number pads all dimensions after the channels of [N, C, ...], or the only one of [N, F].
    const int dims = std::clamp(x.rank() - 2, 1, 3);
    return std::vector<int64_t>(static_cast<size_t>(2 * dims), padding[0]);
  }
};

}  // namespace

LayerType pad() { return layer_type<PadLayer>("pad", "Pads the last dimensions with a constant."); }

}  // namespace dpt::layers
