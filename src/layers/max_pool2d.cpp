// max_pool2d: the largest element of each window, [N, C, H, W] -> [N, C, H', W'].
#include "layers/pool.h"

namespace dpt::layers {
namespace {

struct MaxPool : PoolKeys {
  static constexpr Usage kUsage{
      "torch.nn.MaxPool2d",
      "- max_pool2d: 2\n"
      "- max_pool2d: {kernel_size: [3, 3], stride: 2, padding: 1, dilation: 1, ceil_mode: true}"};
  static KeyTable<MaxPool> keys() {
    KeyTable<MaxPool> table;
    add_size(table);
    return table
        .optional("dilation", &MaxPool::dilation, "distance between the window's elements", kSize)
        .optional(
            "ceil_mode", &MaxPool::ceil_mode,
            "whether a window may reach beyond the padding, so that the output size is rounded up");
  }
  static void check(const MaxPool& p, const Owner& owner, Diagnostics& d) {
    p.check_sizes(owner, d);
  }

  ValueId build(GraphBuilder& g, ValueId x) const {
    need_image("max_pool2d", g.desc(x), 2);
    require_window_fits("max_pool2d", g.shape(x), window(), 2);
    return g.apply("max_pool", {x}, Pool{.window = window(), .ceil_mode = ceil_mode});
  }

  std::string torch(const Shape&) const {
    PythonCall call("nn.MaxPool2d");
    add_sizes_to(call);
    return add_sizes(call, "dilation", dilation, 1).key("ceil_mode", ceil_mode, false).str();
  }
};

}  // namespace

LayerType max_pool2d() {
  return layer_type<MaxPool>("max_pool2d", "Takes the maximum of each window.");
}

}  // namespace dpt::layers
