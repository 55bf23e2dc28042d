// max_pool1d to max_pool3d and avg_pool1d to avg_pool3d: the largest element or the mean of each
// window of sequences [N, C, L], images [N, C, H, W] and volumes [N, C, D, H, W].
#include <vector>

#include <fmt/format.h>

#include "layers/layer.h"
#include "layers/window.h"

namespace dpt::layers {
namespace {

template <int kDims>
struct PoolKeys {
  Sizes kernel_size, stride, padding = {0}, dilation = {1};  // empty stride: kernel_size
  bool ceil_mode = false;

  // padding_text: describes the key `padding`.
  template <class Layer>
  static void add_size(KeyTable<Layer>& table, const char* padding_text) {
    table
        .required("kernel_size", &Layer::kernel_size,
                  kDims == 1 ? "size of the window"
                             : "size of the window: one number, or one per dimension",
                  kSize)
        .optional("stride", &Layer::stride, "step of the window; by default kernel_size", kSize)
        .optional("padding", &Layer::padding, padding_text, kSizeOrZero);
  }
  template <class Layer>
  static void add_ceil_mode(KeyTable<Layer>& table) {
    table.optional("ceil_mode", &Layer::ceil_mode,
                   "whether output sizes are rounded up, so that the last window may reach beyond "
                   "the padding");
  }

  void check_sizes(const Owner& owner, Diagnostics& d) const {
    const size_t before = d.count();
    check_count("kernel_size", kernel_size, kDims, owner, d);
    if (!stride.empty()) check_count("stride", stride, kDims, owner, d);
    check_count("padding", padding, kDims, owner, d);
    check_count("dilation", dilation, kDims, owner, d);
    if (d.count() != before) return;
    const Window w = window();
    for (size_t i = 0; i < 3; ++i)
      if (w.before[i] > covered(w, i) / 2) {
        d.error(owner.at("padding"),
                fmt::format("padding {} is more than half of the {} that the window covers",
                            w.before[i], covered(w, i)));
        return;
      }
  }

  Window window() const {
    const Extents around = extents_from(padding, kDims, 0);
    return {.kernel = extents_from(kernel_size, kDims),
            .stride = extents_from(stride.empty() ? kernel_size : stride, kDims),
            .dilation = extents_from(dilation, kDims),
            .before = around,
            .behind = around};
  }

  // Adds `op` with these settings and the window.
  ValueId pooled(std::string_view layer, std::string_view op, GraphBuilder& g, ValueId x,
                 Pool settings) const {
    need_image(layer, g.desc(x), kDims);
    settings.window = window();
    require_window_fits(layer, g.shape(x), settings.window, settings.ceil_mode);
    return g.apply(op, {x}, settings);
  }

  void add_sizes_to(PythonCall& call) const {
    add_sizes(call, "kernel_size", kernel_size);
    if (!stride.empty()) add_sizes(call, "stride", stride);
    add_sizes(call, "padding", padding, 0);
  }
};

template <int kDims>
struct MaxPool : PoolKeys<kDims> {
  using Keys = PoolKeys<kDims>;
  static constexpr std::string_view kName = kDims == 1   ? "max_pool1d"
                                            : kDims == 2 ? "max_pool2d"
                                                         : "max_pool3d";
  static constexpr Usage kUsage =
      kDims == 1   ? Usage{"torch.nn.MaxPool1d",
                         "- max_pool1d: 2\n"
                           "- max_pool1d: {kernel_size: 3, stride: 2, padding: 1, dilation: 1, "
                           "ceil_mode: true}"}
      : kDims == 2 ? Usage{"torch.nn.MaxPool2d",
                           "- max_pool2d: 2\n"
                           "- max_pool2d: {kernel_size: [3, 3], stride: 2, padding: 1, dilation: "
                           "1, ceil_mode: true}"}
                   : Usage{"torch.nn.MaxPool3d",
                           "- max_pool3d: 2\n"
                           "- max_pool3d: {kernel_size: [1, 3, 3], stride: [1, 2, 2],\n"
                           "    padding: [0, 1, 1], dilation: 1, ceil_mode: true}"};

  static KeyTable<MaxPool> keys() {
    KeyTable<MaxPool> table;
    Keys::add_size(table, "elements of -inf at each side, at most half the window");
    table.optional("dilation", &MaxPool::dilation, "distance between the window's elements", kSize);
    Keys::add_ceil_mode(table);
    return table;
  }
  static void check(const MaxPool& p, const Owner& owner, Diagnostics& d) {
    p.check_sizes(owner, d);
  }

  ValueId build(GraphBuilder& g, ValueId x) const {
    return this->pooled(kName, "max_pool", g, x, {.ceil_mode = this->ceil_mode});
  }

  std::string torch(const Shape&) const {
    PythonCall call(fmt::format("nn.MaxPool{}d", kDims));
    this->add_sizes_to(call);
    return add_sizes(call, "dilation", this->dilation, 1)
        .key("ceil_mode", this->ceil_mode, false)
        .str();
  }
};

template <int kDims>
struct AvgPool : PoolKeys<kDims> {
  using Keys = PoolKeys<kDims>;
  static constexpr std::string_view kName = kDims == 1   ? "avg_pool1d"
                                            : kDims == 2 ? "avg_pool2d"
                                                         : "avg_pool3d";
  static constexpr Usage kUsage =
      kDims == 1 ? Usage{"torch.nn.AvgPool1d",
                         "- avg_pool1d: 2\n"
                         "- avg_pool1d: {kernel_size: 3, stride: 2, padding: 1, ceil_mode: true,\n"
                         "    count_include_pad: false}"}
      : kDims == 2
          ? Usage{"torch.nn.AvgPool2d",
                  "- avg_pool2d: 2\n"
                  "- avg_pool2d: {kernel_size: 3, stride: 2, padding: 1, ceil_mode: true,\n"
                  "    count_include_pad: false, divisor_override: 4}"}
          : Usage{"torch.nn.AvgPool3d",
                  "- avg_pool3d: 2\n"
                  "- avg_pool3d: {kernel_size: 3, stride: 2, padding: 1, ceil_mode: true,\n"
                  "    count_include_pad: false, divisor_override: 4}"};

  bool count_include_pad = true;
  std::optional<int64_t> divisor_override;  // not of avg_pool1d, as in PyTorch

  static KeyTable<AvgPool> keys() {
    KeyTable<AvgPool> table;
    Keys::add_size(table, "zeros at each side, at most half the window");
    Keys::add_ceil_mode(table);
    table.optional("count_include_pad", &AvgPool::count_include_pad,
                   "whether the padding counts in the mean");
    if constexpr (kDims > 1)
      table.optional("divisor_override", &AvgPool::divisor_override,
                     "divisor of the window's sum; none: the number of elements", kSize);
    return table;
  }
  static void check(const AvgPool& p, const Owner& owner, Diagnostics& d) {
    p.check_sizes(owner, d);
  }

  ValueId build(GraphBuilder& g, ValueId x) const {
    return this->pooled(kName, "avg_pool", g, x,
                        {.ceil_mode = this->ceil_mode,
                         .count_include_pad = count_include_pad,
                         .divisor_override = divisor_override.value_or(0)});
  }

  std::string torch(const Shape&) const {
    PythonCall call(fmt::format("nn.AvgPool{}d", kDims));
    this->add_sizes_to(call);
    call.key("ceil_mode", this->ceil_mode, false).key("count_include_pad", count_include_pad, true);
    if (divisor_override) call.key("divisor_override", *divisor_override);
    return call.str();
  }
};

}  // namespace

std::vector<LayerType> pools() {
  return {layer_type<MaxPool<1>>("max_pool1d", "Takes the maximum of each window of a sequence."),
          layer_type<MaxPool<2>>("max_pool2d", "Takes the maximum of each window."),
          layer_type<MaxPool<3>>("max_pool3d", "Takes the maximum of each window of a volume."),
          layer_type<AvgPool<1>>("avg_pool1d", "Takes the mean of each window of a sequence."),
          layer_type<AvgPool<2>>("avg_pool2d", "Takes the mean of each window."),
          layer_type<AvgPool<3>>("avg_pool3d", "Takes the mean of each window of a volume.")};
}

}  // namespace dpt::layers
