// pixel_shuffle (Shi et al., 2016): [N, C r^2, H, W] -> [N, C, H r, W r]; r^2 channels become r x r
// pixels.
#include "base/checked.h"
#include "layers/layer.h"
#include "layers/window.h"

namespace dpt::layers {
namespace {

struct PixelShuffle {
  static constexpr Usage kUsage{"torch.nn.PixelShuffle",
                                "- pixel_shuffle: 2\n"
                                "- pixel_shuffle: {upscale_factor: 3}"};

  int64_t upscale_factor = 1;

  static KeyTable<PixelShuffle> keys() {
    return KeyTable<PixelShuffle>().required("upscale_factor", &PixelShuffle::upscale_factor,
                                             "factor of the height and of the width", kSize);
  }

  ValueId build(GraphBuilder& g, ValueId x) const {
    need_image("pixel_shuffle", g.desc(x), 2);
    const Shape s = g.shape(x);
    const int64_t r = upscale_factor, square = (Checked(r) * r).value();
    if (s[1] % square != 0)
      fail(Fault::spec,
           "pixel_shuffle: the {} channels of {} are not a multiple of {}, the square of "
           "upscale_factor {}",
           s[1], s.str(), square, r);
    if (r == 1) return x;
    const int64_t channels = s[1] / square;
    const ValueId parts = g.apply("reshape", {x}, Reshape{{s[0], channels, r, r, s[2], s[3]}});
    const ValueId pixels = g.apply("permute", {parts}, Permute{{0, 1, 4, 2, 5, 3}});
    return g.apply(
        "reshape", {pixels},
        Reshape{{s[0], channels, (Checked(s[2]) * r).value(), (Checked(s[3]) * r).value()}});
  }

  std::string torch(const Shape&) const {
    return PythonCall("nn.PixelShuffle").arg(upscale_factor).str();
  }
};

}  // namespace

LayerType pixel_shuffle() {
  return layer_type<PixelShuffle>(
      "pixel_shuffle", "Rearranges channels as pixels: [N, C r^2, H, W] to [N, C, H r, W r].");
}

}  // namespace dpt::layers
