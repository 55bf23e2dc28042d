// adaptive_avg_pool2d: averages over as many regions of the image as output_size asks for, [N, C,
// H, W] -> [N, C, output_size].
#include "layers/layer.h"
#include "layers/window.h"

namespace dpt::layers {
namespace {

struct AdaptiveAvgPool {
  static constexpr Usage kUsage{"torch.nn.AdaptiveAvgPool2d",
                                "- adaptive_avg_pool2d: 1\n"
                                "- adaptive_avg_pool2d: {output_size: [7, 7]}"};

  Sizes output_size;

  static KeyTable<AdaptiveAvgPool> keys() {
    return KeyTable<AdaptiveAvgPool>().required("output_size", &AdaptiveAvgPool::output_size,
                                                "output height and width, or one number for both",
                                                kSize);
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
  return layer_type<AdaptiveAvgPool>(
      "adaptive_avg_pool2d",
      "Divides an image into output_size regions and takes the mean of each.");
}

}  // namespace dpt::layers
