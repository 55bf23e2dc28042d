// The layers adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_max_pool1d and adaptive_max_pool2d.
#pragma once

#include "layers/layer.h"
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
        kDims == 1 ? "output length" : "output height and width, or one number for both", kSize);
  }
  static void check(const AdaptivePool& p, const Owner& owner, Diagnostics& d) {
    check_count("output_size", p.output_size, kDims, owner, d);
  }

  ValueId build(GraphBuilder& g, ValueId x) const {
    need_image(kNames.layer, g.desc(x), kDims);
    return g.apply(kNames.op, {x}, Resize{pair_of(spread(output_size, kDims))});
  }

  std::string torch(const Shape&) const {
    PythonCall call(kNames.torch.substr(kNames.torch.find('.') + 1));
    return add_sizes(call, "", output_size).str();
  }
};

}  // namespace dpt::layers
