// pad: adds elements around the last dimensions of each sample, of one value or copies of its own,
// or removes elements where a number is negative. Same as PyTorch's ConstantPad, ZeroPad,
// ReflectionPad, ReplicationPad and CircularPad.
#include <algorithm>

#include "base/fail.h"
#include "formats/python_call.h"
#include "graph/attrs.h"
#include "layers/layer.h"
#include "layers/pad_inside.h"

namespace dpt::layers {
namespace {

struct PadLayer {
  static constexpr Usage kUsage{
      "torch.nn.ConstantPad1d, torch.nn.ConstantPad2d, torch.nn.ConstantPad3d, "
      "torch.nn.ReflectionPad1d, torch.nn.ReflectionPad2d, torch.nn.ReflectionPad3d, "
      "torch.nn.ReplicationPad1d, torch.nn.ReplicationPad2d, torch.nn.ReplicationPad3d, "
      "torch.nn.CircularPad1d, torch.nn.CircularPad2d, torch.nn.CircularPad3d",
      "- pad: 2\n"
      "- pad: {padding: [1, 2, 0, 0], value: 0.5}\n"
      "- pad: {padding: 1, mode: reflect}\n"
      "- pad: {padding: [1, 1, 0, 0, 2, 2], mode: replicate}"};

  std::vector<int64_t> padding;
  double value = 0;
  std::string mode = "constant";

  static KeyTable<PadLayer> keys() {
    return KeyTable<PadLayer>()
        .required("padding", &PadLayer::padding,
                  "one number for all sides, or two per dimension, last dimension "
                  "first: [left, right, top, bottom]; negative: removes elements",
                  Range{.text = "must be between -2^31 and 2^31",
                        .low = -2147483648.0,
                        .high = 2147483648.0})
        .optional("value", &PadLayer::value, "mode constant: value of the new elements")
        .choice("mode", &PadLayer::mode, {"constant", "reflect", "replicate", "circular"},
                "what the new elements are, as in torch.nn.functional.pad; the other modes copy "
                "elements of [N, C, ...]");
  }

  static void check(const PadLayer& p, const Owner& owner, Diagnostics& d) {
    if (p.padding.size() != 1 && (p.padding.size() % 2 != 0 || p.padding.size() > 6))
      d.error(owner.at("padding"),
              fmt::format("'padding' must be one number, or 2, 4 or 6, not {}", p.padding.size()));
    if (p.mode != "constant" && p.value != 0)
      d.error(owner.at("value"), "'value' needs mode constant");
  }

  ValueId build(GraphBuilder& g, ValueId x) const {
    const Shape shape = g.shape(x);
    const std::vector<int64_t> sides = all_sides(shape);
    const int dims = static_cast<int>(sides.size() / 2);
    if (dims >= shape.rank())
      fail(Fault::spec, "pad: {} numbers pad {} dimensions after the batch, but {} has only {}",
           sides.size(), dims, shape.str(), shape.rank() - 1);
    const bool copies = mode != "constant";
    if (copies && (shape.rank() < 3 || shape.rank() > 5 || dims > shape.rank() - 2))
      fail(Fault::spec,
           "pad: mode {} takes [N, channels, ...] with 1 to 3 more dimensions and pads behind the "
           "channels: {} numbers do not fit {}",
           mode, sides.size(), shape.str());
    // In PyTorch, mode circular repeats what negative numbers leave. The other modes that copy take
    // elements of the whole input, also some that negative numbers remove.
    const bool cuts_last = mode == "reflect" || mode == "replicate";
    Pad s{.value = value}, cuts;
    for (int i = 0; i < dims; ++i) {
      const int dim = shape.rank() - 1 - i;
      const int64_t before = sides[static_cast<size_t>(2 * i)];
      const int64_t behind = sides[static_cast<size_t>(2 * i + 1)];
      const int64_t first_cut = cuts_last ? 0 : std::min(before, behind);
      if (shape[dim] + std::min({first_cut, before + behind, int64_t{0}}) < 1)
        fail(Fault::spec, "pad: {} and {} cut off all of extent {} of {}", before, behind, dim,
             shape.str());
      const auto at = static_cast<size_t>(dim);
      cuts.before[at] = copies ? std::min<int64_t>(before, 0) : 0;
      cuts.behind[at] = copies ? std::min<int64_t>(behind, 0) : 0;
      s.before[at] = before - cuts.before[at];
      s.behind[at] = behind - cuts.behind[at];
    }
    if (!copies) return g.apply("pad", {x}, s);
    const auto cut = [&](ValueId v) { return adds_nothing(cuts) ? v : g.apply("pad", {v}, cuts); };
    if (cuts_last) return cut(pad_inside(g, x, "pad", "mode", mode, s));
    return pad_inside(g, cut(x), "pad", "mode", mode, s);
  }

  std::string torch(const Shape& x) const {
    const std::vector<int64_t> sides = all_sides(x);
    const size_t dims = sides.size() / 2;
    if (mode == "constant")
      return PythonCall(fmt::format("nn.ConstantPad{}d", dims)).arg(sides).arg(value).str();
    const std::string_view name = mode == "reflect"     ? "Reflection"
                                  : mode == "replicate" ? "Replication"
                                                        : "Circular";
    // PyTorch's modules for images and volumes pad all extents.
    std::vector<int64_t> all = sides;
    all.resize(static_cast<size_t>(2 * (x.rank() - 2)));
    return PythonCall(fmt::format("nn.{}Pad{}d", name, x.rank() - 2)).arg(all).str();
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

LayerType pad() {
  return layer_type<PadLayer>("pad", "Pads the last dimensions with a constant, or with copies.");
}

}  // namespace dpt::layers
