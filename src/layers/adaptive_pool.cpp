// adaptive_avg_pool1d to adaptive_avg_pool3d and adaptive_max_pool1d to adaptive_max_pool3d: the
// means or largest elements of as many regions of sequences [N, C, L], images [N, C, H, W] and
// volumes [N, C, D, H, W] as output_size asks for.
#include <vector>

#include "layers/layer.h"
#include "layers/window.h"

namespace dpt::layers {
namespace {

struct AdaptiveNames {
  std::string_view layer, op, torch, example;
};

template <int kDims, const AdaptiveNames& kNames>
struct AdaptivePool {
  static constexpr Usage kUsage{kNames.torch, kNames.example};

  Sizes output_size;

  static KeyTable<AdaptivePool> keys() {
    return KeyTable<AdaptivePool>().required(
        "output_size", &AdaptivePool::output_size,
        kDims == 1   ? "output length"
        : kDims == 2 ? "output height and width, or one number for both"
                     : "output depth, height and width, or one number for all",
        kSize);
  }
  static void check(const AdaptivePool& p, const Owner& owner, Diagnostics& d) {
    check_count("output_size", p.output_size, kDims, owner, d);
  }

  ValueId build(GraphBuilder& g, ValueId x) const {
    need_image(kNames.layer, g.desc(x), kDims);
    return g.apply(kNames.op, {x}, Resize{extents_from(output_size, kDims)});
  }

  std::string torch(const Shape&) const {
    PythonCall call(kNames.torch.substr(kNames.torch.find('.') + 1));
    return add_sizes(call, "", output_size).str();
  }
};

constexpr AdaptiveNames kAvg1{"adaptive_avg_pool1d", "adaptive_avg_pool",
                              "torch.nn.AdaptiveAvgPool1d",
                              "- adaptive_avg_pool1d: 1\n- adaptive_avg_pool1d: {output_size: 7}"};
constexpr AdaptiveNames kAvg2{
    "adaptive_avg_pool2d", "adaptive_avg_pool", "torch.nn.AdaptiveAvgPool2d",
    "- adaptive_avg_pool2d: 1\n- adaptive_avg_pool2d: {output_size: [7, 7]}"};
constexpr AdaptiveNames kAvg3{
    "adaptive_avg_pool3d", "adaptive_avg_pool", "torch.nn.AdaptiveAvgPool3d",
    "- adaptive_avg_pool3d: 1\n- adaptive_avg_pool3d: {output_size: [1, 7, 7]}"};
constexpr AdaptiveNames kMax1{"adaptive_max_pool1d", "adaptive_max_pool",
                              "torch.nn.AdaptiveMaxPool1d",
                              "- adaptive_max_pool1d: 1\n- adaptive_max_pool1d: {output_size: 7}"};
constexpr AdaptiveNames kMax2{
    "adaptive_max_pool2d", "adaptive_max_pool", "torch.nn.AdaptiveMaxPool2d",
    "- adaptive_max_pool2d: 1\n- adaptive_max_pool2d: {output_size: [7, 7]}"};
constexpr AdaptiveNames kMax3{
    "adaptive_max_pool3d", "adaptive_max_pool", "torch.nn.AdaptiveMaxPool3d",
    "- adaptive_max_pool3d: 1\n- adaptive_max_pool3d: {output_size: [1, 7, 7]}"};

}  // namespace

std::vector<LayerType> adaptive_pools() {
  return {
      layer_type<AdaptivePool<1, kAvg1>>(
          kAvg1.layer, "Divides a sequence into output_size regions and takes the mean of each."),
      layer_type<AdaptivePool<2, kAvg2>>(
          kAvg2.layer, "Divides an image into output_size regions and takes the mean of each."),
      layer_type<AdaptivePool<3, kAvg3>>(
          kAvg3.layer, "Divides a volume into output_size regions and takes the mean of each."),
      layer_type<AdaptivePool<1, kMax1>>(
          kMax1.layer,
          "Divides a sequence into output_size regions and takes the maximum of each."),
      layer_type<AdaptivePool<2, kMax2>>(
          kMax2.layer, "Divides an image into output_size regions and takes the maximum of each."),
      layer_type<AdaptivePool<3, kMax3>>(
          kMax3.layer, "Divides a volume into output_size regions and takes the maximum of each.")};
}

}  // namespace dpt::layers
