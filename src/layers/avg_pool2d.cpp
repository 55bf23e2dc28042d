// avg_pool2d: the mean of each window, [N, C, H, W] -> [N, C, H', W'].
#include "layers/pool.h"

namespace dpt::layers {
namespace {

struct AvgPool : PoolKeys {
  static constexpr Usage kUsage{
      "torch.nn.AvgPool2d",
      "- avg_pool2d: 2\n"
      "- avg_pool2d: {kernel_size: 3, stride: 2, padding: 1, ceil_mode: true,\n"
      "    count_include_pad: false, divisor_override: 4}"};

  bool count_include_pad = true;
  std::optional<int64_t> divisor_override;

  static KeyTable<AvgPool> keys() {
    KeyTable<AvgPool> table;
    add_size(table);
    return table
        .optional(
            "ceil_mode", &AvgPool::ceil_mode,
            "whether a window may reach beyond the padding, so that the output size is rounded up")
        .optional("count_include_pad", &AvgPool::count_include_pad,
                  "whether the padding counts in the mean")
        .optional("divisor_override", &AvgPool::divisor_override,
                  "divisor of the window's sum; none: the number of elements", kSize);
  }
  static void check(const AvgPool& p, const Owner& owner, Diagnostics& d) {
    p.check_sizes(owner, d);
  }

  ValueId build(GraphBuilder& g, ValueId x) const {
    need_image("avg_pool2d", g.desc(x), 2);
    require_window_fits("avg_pool2d", g.shape(x), window(), 2);
    return g.apply("avg_pool", {x},
                   Pool{.window = window(),
                        .ceil_mode = ceil_mode,
                        .count_include_pad = count_include_pad,
                        .divisor_override = divisor_override.value_or(0)});
  }

  std::string torch(const Shape&) const {
    PythonCall call("nn.AvgPool2d");
    add_sizes_to(call);
    call.key("ceil_mode", ceil_mode, false).key("count_include_pad", count_include_pad, true);
    if (divisor_override) call.key("divisor_override", *divisor_override);
    return call.str();
  }
};

}  // namespace

LayerType avg_pool2d() {
  return layer_type<AvgPool>("avg_pool2d", "Takes the mean of each window.");
}

}  // namespace dpt::layers
