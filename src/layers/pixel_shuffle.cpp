// pixel_shuffle (Shi et al., 2016): [N, C r^2, H, W] -> [N, C, H r, W r]; r^2 channels become r x r
// pixels. pixel_unshuffle is its inverse.
#include "base/checked.h"
#include "layers/layer.h"
#include "layers/window.h"

namespace dpt::layers {
namespace {

template <bool kInverse>
struct PixelShuffle {
  static constexpr std::string_view kName = kInverse ? "pixel_unshuffle" : "pixel_shuffle";
  static constexpr std::string_view kKey = kInverse ? "downscale_factor" : "upscale_factor";
  static constexpr Usage kUsage = kInverse ? Usage{"torch.nn.PixelUnshuffle",
                                                   "- pixel_unshuffle: 2\n"
                                                   "- pixel_unshuffle: {downscale_factor: 3}"}
                                           : Usage{"torch.nn.PixelShuffle",
                                                   "- pixel_shuffle: 2\n"
                                                   "- pixel_shuffle: {upscale_factor: 3}"};

  int64_t factor = 1;

  static KeyTable<PixelShuffle> keys() {
    return KeyTable<PixelShuffle>().required(kKey, &PixelShuffle::factor,
                                             kInverse ? "divisor of the height and of the width"
                                                      : "factor of the height and of the width",
                                             kSize);
  }

  ValueId build(GraphBuilder& g, ValueId x) const {
    need_image(kName, g.desc(x), 2);
    const Shape s = g.shape(x);
    const int64_t r = factor, square = (Checked(r) * r).value();
    check_divisible(s, square);
    if (r == 1) return x;
    const auto to = [&](ValueId v, const Shape& shape) {
      return g.apply("reshape", {v}, Reshape{shape});
    };
    if (kInverse) {
      const int64_t h = s[2] / r, w = s[3] / r;
      const ValueId parts =
          g.apply("permute", {to(x, {s[0], s[1], h, r, w, r})}, Permute{{0, 1, 3, 5, 2, 4}});
      return to(parts, {s[0], (Checked(s[1]) * square).value(), h, w});
    }
    const int64_t channels = s[1] / square;
    const ValueId pixels = g.apply("permute", {to(x, {s[0], channels, r, r, s[2], s[3]})},
                                   Permute{{0, 1, 4, 2, 5, 3}});
    return to(pixels, {s[0], channels, (Checked(s[2]) * r).value(), (Checked(s[3]) * r).value()});
  }

  std::string torch(const Shape&) const {
    return PythonCall(kInverse ? "nn.PixelUnshuffle" : "nn.PixelShuffle").arg(factor).str();
  }

 private:
  void check_divisible(const Shape& s, int64_t square) const {
    if (kInverse && (s[2] % factor != 0 || s[3] % factor != 0))
      fail(Fault::spec,
           "pixel_unshuffle: height {} and width {} of {} are not multiples of downscale_factor {}",
           s[2], s[3], s.str(), factor);
    if (!kInverse && s[1] % square != 0)
      fail(Fault::spec,
           "pixel_shuffle: the {} channels of {} are not a multiple of {}, the square of "
           "upscale_factor {}",
           s[1], s.str(), square, factor);
  }
};

}  // namespace

std::vector<LayerType> pixel_shuffles() {
  return {
      layer_type<PixelShuffle<false>>(
          "pixel_shuffle", "Rearranges channels as pixels: [N, C r^2, H, W] to [N, C, H r, W r]."),
      layer_type<PixelShuffle<true>>(
          "pixel_unshuffle",
          "Rearranges pixels as channels: [N, C, H r, W r] to [N, C r^2, H, W].")};
}

}  // namespace dpt::layers
