// upsample: resizes by repeating the nearest pixel or by linear interpolation, [N, C, ...] ->
// [N, C, size] with one or two spatial dimensions. Same as nn.Upsample.
#include <cmath>

#include <fmt/ranges.h>

#include "layers/layer.h"
#include "layers/window.h"

namespace dpt::layers {
namespace {

struct Upsample {
  static constexpr Usage kUsage{"torch.nn.Upsample",
                                "- upsample: 2\n"
                                "- upsample: {size: [32, 48], mode: nearest}\n"
                                "- upsample: {scale_factor: [2, 3], mode: bilinear, "
                                "align_corners: true}"};

  std::vector<double> scale_factor;
  Sizes size;
  std::string mode = "nearest";
  bool align_corners = false;

  static KeyTable<Upsample> keys() {
    return KeyTable<Upsample>()
        .optional("scale_factor", &Upsample::scale_factor,
                  "factor of the size: one number, or one per dimension; this or size", kPositive)
        .optional("size", &Upsample::size,
                  "output size: one number, or one per dimension; this or scale_factor", kSize)
        .choice("mode", &Upsample::mode, {"nearest", "linear", "bilinear"},
                "interpolation: linear for [N, C, L], bilinear for [N, C, H, W], nearest for both")
        .optional("align_corners", &Upsample::align_corners,
                  "linear, bilinear: whether the first and last pixels stay where they are");
  }

  static void check(const Upsample& u, const Owner& owner, Diagnostics& d) {
    if (u.size.empty() == u.scale_factor.empty())
      d.error(owner.where, "upsample needs either 'scale_factor' or 'size'");
    if (u.align_corners && u.mode == "nearest")
      d.error(owner.at("align_corners"), "'align_corners' needs mode linear or bilinear");
  }

  ValueId build(GraphBuilder& g, ValueId x) const {
    const Shape shape = g.shape(x);
    const int dims = shape.rank() - 2;
    if (dims != 1 && dims != 2)
      fail(Fault::spec, "upsample takes [N, channels, ...] with 1 or 2 more dimensions, not {}",
           shape.str());
    if (mode == (dims == 1 ? "bilinear" : "linear"))
      fail(Fault::spec, "upsample: mode {} takes {}, not {}: use mode {}", mode,
           dims == 1 ? "[N, channels, height, width]" : "[N, channels, length]", shape.str(),
           dims == 1 ? "linear" : "bilinear");
    const size_t given = std::max(size.size(), scale_factor.size());
    if (given != 1 && given != static_cast<size_t>(dims))
      fail(Fault::spec, "upsample: {} numbers for the {} extents of {}", given, dims, shape.str());
    Resize r{.extents = {1, 1}, .scale = {0, 0}, .align_corners = align_corners};
    for (int i = 0; i < dims; ++i) {
      const auto at = static_cast<size_t>(2 - dims + i);
      const auto from = given == 1 ? 0 : static_cast<size_t>(i);
      if (!size.empty()) {
        r.extents[at] = size[from];
        continue;
      }
      r.scale[at] = scale_factor[from];
      const double extent = std::floor(static_cast<double>(shape[2 + i]) * r.scale[at]);
      if (extent < 1)
        fail(Fault::spec, "upsample: scale_factor {} leaves nothing of {}", r.scale[at],
             shape.str());
      if (extent > static_cast<double>(kMostExtent))
        fail(Fault::spec,
             "upsample: scale_factor {} makes more than 2^31 - 1 pixels along one dimension of {}; "
             "use a smaller one",
             r.scale[at], shape.str());
      r.extents[at] = static_cast<int64_t>(extent);
    }
    return g.apply(mode == "nearest" ? "upsample_nearest" : "upsample_bilinear", {x}, r);
  }

  std::string torch(const Shape&) const {
    PythonCall call("nn.Upsample");
    if (!size.empty())
      add_sizes(call, "size", size);
    else if (scale_factor.size() == 1)  // a plain float applies to all dimensions
      call.key("scale_factor", scale_factor[0]);
    else  // several factors must be a tuple
      call.expression("scale_factor", fmt::format("({})", fmt::join(scale_factor, ", ")));
    return call.key("mode", mode, "nearest").key("align_corners", align_corners, false).str();
  }
};

}  // namespace

LayerType upsample() {
  return layer_type<Upsample>(
      "upsample", "Resizes an image by repeating its pixels or by linear interpolation.");
}

}  // namespace dpt::layers
