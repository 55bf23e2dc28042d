// Common part of max_pool2d and avg_pool2d.
#pragma once

#include "layers/layer.h"
#include "layers/window.h"

namespace dpt::layers {

struct PoolKeys {
  Sizes kernel_size, stride, padding = {0}, dilation = {1};  // empty stride: kernel_size
  bool ceil_mode = false;

  template <class Layer>
  static void add_size(KeyTable<Layer>& table) {
    table
        .required("kernel_size", &Layer::kernel_size,
                  "size of the window: one number, or one per dimension", kSize)
        .optional("stride", &Layer::stride, "step of the window; by default kernel_size", kSize)
        .optional("padding", &Layer::padding,
                  "zeros (max_pool2d: -inf) around the image, at most half the window",
                  kSizeOrZero);
  }

  void check_sizes(const Owner& owner, Diagnostics& d) const {
    const size_t before = d.count();
    check_count("kernel_size", kernel_size, 2, owner, d);
    if (!stride.empty()) check_count("stride", stride, 2, owner, d);
    check_count("padding", padding, 2, owner, d);
    check_count("dilation", dilation, 2, owner, d);
    if (d.count() != before) return;
    const Window w = window();
    for (size_t i = 0; i < 2; ++i)
      if (w.before[i] > covered(w, i) / 2) {
        d.error(owner.at("padding"),
                fmt::format("padding {} is more than half of the {} that the window covers",
                            w.before[i], covered(w, i)));
        return;
      }
  }

  Window window() const {
    const Pair around = pair_of(spread(padding, 2));
    return {.kernel = pair_of(spread(kernel_size, 2)),
            .stride = pair_of(spread(stride.empty() ? kernel_size : stride, 2)),
            .dilation = pair_of(spread(dilation, 2)),
            .before = around,
            .behind = around};
  }

  void add_sizes_to(PythonCall& call) const {
    add_sizes(call, "kernel_size", kernel_size);
    if (!stride.empty()) add_sizes(call, "stride", stride);
    add_sizes(call, "padding", padding, 0);
  }
};

}  // namespace dpt::layers
