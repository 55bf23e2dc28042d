// upsample: resizes by repeating the nearest pixel or by linear or cubic interpolation, [N, C, ...]
// -> [N, C, size] with one to three spatial dimensions. Same as nn.Upsample.
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
                                "align_corners: true}\n"
                                "- upsample: {size: [8, 16, 16], mode: trilinear}\n"
                                "- upsample: {size: 32, mode: bicubic}"};

  std::vector<double> scale_factor;
  Sizes size;
  std::string mode = "nearest";
  bool align_corners = false;

  static KeyTable<Upsample> keys() {
    return KeyTable<Upsample>()
        .optional(
            "scale_factor", &Upsample::scale_factor,
            "factor of the size: one number, or one per dimension; give either this or `size`",
            kPositive)
        .optional(
            "size", &Upsample::size,
            "output size: one number, or one per dimension; give either this or `scale_factor`",
            kSize)
        .choice("mode", &Upsample::mode,
                {"nearest", "nearest-exact", "linear", "bilinear", "bicubic", "trilinear"},
                "interpolation: linear for [N, C, L], bilinear and bicubic for [N, C, H, W], "
                "trilinear for [N, C, D, H, W], nearest and nearest-exact for all; nearest-exact "
                "takes the pixel at the center")
        .optional("align_corners", &Upsample::align_corners,
                  "all modes but nearest: whether the first and last pixels stay where they are");
  }

  static void check(const Upsample& u, const Owner& owner, Diagnostics& d) {
    if (u.size.empty() == u.scale_factor.empty())
      d.error(owner.where, "upsample needs either 'scale_factor' or 'size'");
    if (u.align_corners && u.nearest())
      d.error(owner.at("align_corners"),
              "'align_corners' needs mode linear, bilinear, bicubic or trilinear");
  }

  ValueId build(GraphBuilder& g, ValueId x) const {
    const Shape shape = g.shape(x);
    const int dims = shape.rank() - 2;
    if (dims < 1 || dims > 3)
      fail(Fault::spec, "upsample takes [N, channels, ...] with 1 to 3 more dimensions, not {}",
           shape.str());
    constexpr std::string_view kLinear[] = {"linear", "bilinear", "trilinear"};
    const std::string_view linear = kLinear[dims - 1];
    if (!nearest() && mode != linear && (mode != "bicubic" || dims != 2))
      fail(Fault::spec, "upsample: mode {} does not take {}: use mode {}", mode, shape.str(),
           linear);
    const size_t given = std::max(size.size(), scale_factor.size());
    if (given != 1 && given != static_cast<size_t>(dims))
      fail(Fault::spec, "upsample: '{}' must be one number{} for {}, not {}",
           size.empty() ? "scale_factor" : "size", counts_text(dims), shape.str(), given);
    const std::string_view op = nearest()           ? "upsample_nearest"
                                : mode == "bicubic" ? "upsample_bicubic"
                                                    : "upsample_bilinear";
    Resize s{
        .extents = {1, 1, 1}, .align_corners = align_corners, .exact = mode == "nearest-exact"};
    for (int dim = 2; dim < shape.rank(); ++dim)
      resize(s, static_cast<size_t>(dim + 1 - dims), shape, dim);
    if (dims == 2 && mode == "nearest") use_extents(s, extents_of(shape));
    return g.apply(op, {x}, s);
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

 private:
  bool nearest() const { return mode.starts_with("nearest"); }
  // PyTorch (nearest_idx in ATen/native/UpSample.h) takes the nearest pixel of an image by the
  // extents, not by the factor, where they are equal or one is twice the other. In sequences and
  // volumes it does so in gradients only, which then are not those of its outputs.
  static void use_extents(Resize& r, const Extents& in) {
    for (size_t i = 0; i < 3; ++i)
      if (r.extents[i] == in[i] || r.extents[i] == 2 * in[i]) r.scale[i] = 0;
  }
  // Sets numbers `at` of r to those of dimension `dim` of an input of `shape`.
  void resize(Resize& r, size_t at, const Shape& shape, int dim) const {
    const auto from = std::max(size.size(), scale_factor.size()) == 1 ? 0 : size_t(dim - 2);
    if (!size.empty()) {
      r.extents[at] = size[from];
      return;
    }
    r.scale[at] = scale_factor[from];
    const double extent = std::floor(static_cast<double>(shape[dim]) * r.scale[at]);
    if (extent < 1)
      fail(
          Fault::spec,
          "upsample: scale_factor {} leaves nothing of {} of {}, which has {}; use at least {:.4g}",
          r.scale[at], dimension_text(shape, dim), shape.str(), shape[dim],
          1 / static_cast<double>(shape[dim]));
    if (extent > static_cast<double>(kMostExtent))
      fail(Fault::spec,
           "upsample: scale_factor {} makes more than 2^31 - 1 elements along {} of {}; use a "
           "smaller one",
           r.scale[at], dimension_text(shape, dim), shape.str());
    r.extents[at] = static_cast<int64_t>(extent);
  }
};

}  // namespace

LayerType upsample() {
  return layer_type<Upsample>(
      "upsample",
      "Resizes sequences, images or volumes by repeating elements or by interpolation.");
}

}  // namespace dpt::layers
