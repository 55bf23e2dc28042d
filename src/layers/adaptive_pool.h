// The layers adaptive_avg_pool1d to adaptive_avg_pool3d and adaptive_max_pool1d to
// adaptive_max_pool3d.
#pragma once

#include "layers/layer.h"
#include "layers/volume.h"
#include "layers/window.h"

namespace dpt::layers {

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
    const Sizes sizes = spread(output_size, kDims);
    const auto pool = [&](Pair extents) {
      return [&g, extents](ValueId v) { return g.apply(kNames.op, {v}, Resize{extents}); };
    };
    if (kDims < 3) return pool(pair_of(sizes))(x);
    x = on_planes(g, x, pool(pair_of(sizes)));
    return along_depth(g, x, pool({sizes[0], g.shape(x).tail(3).elements()}));
  }

  std::string torch(const Shape&) const {
    PythonCall call(kNames.torch.substr(kNames.torch.find('.') + 1));
    return add_sizes(call, "", output_size).str();
  }
};

}  // namespace dpt::layers
