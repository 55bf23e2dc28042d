// adaptive_avg_pool2d: averages over as many regions of the image as output_size asks for, [N, C,
// H, W] -> [N, C, output_size].
#include "layers/layer.h"
#include "layers/window.h"

namespace dpt::layers {
namespace {

struct AdaptiveAvgPool {
  Sizes output_size;

  static KeyTable<AdaptiveAvgPool> keys() {
    return KeyTable<AdaptiveAvgPool>().required(
        "output_size", &AdaptiveAvgPool::output_size,
        "extents of the output: one number, or one for each", kSize);
  }
  static void check(const AdaptiveAvgPool& p, const Owner& owner, Diagnostics& d) {
    check_count("output_size", p.output_size, 2, owner, d);
  }

  ValueId build(GraphBuilder& g, ValueId x) const {
    need_image("adaptive_avg_pool2d", g.desc(x), 2);
    return g.apply("adaptive_avg_pool", {x}, Resize{pair_of(spread(output_size, 2))});
  }

  std::string torch(const Shape&) const {
    PythonCall call("nn.AdaptiveAvgPool2d");
    return add_sizes(call, "", output_size).str();
  }
};

}  // namespace

LayerType adaptive_avg_pool2d() {
  return layer_type<AdaptiveAvgPool>("adaptive_avg_pool2d",
                                     "Means of as many pieces of the image as are asked for.");
}

}  // namespace dpt::layers
